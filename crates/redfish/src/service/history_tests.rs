//! Reports of the past: they are of what there is, in both forms the same.

use super::*;
use crate::history::tests::World;
use crate::history::{History, Past};
use crate::routes;
use crate::service::{render, render_brief};
use std::collections::BTreeMap;

fn world() -> View {
    let mut world = World::new(4, 3, 2, 2);
    let mut history = History::default();
    for seconds in [1, 1, 2, 60, 1] {
        history.sample(&world.go_on(seconds, |at| at > 0));
    }
    View { past: Past::new(history), ..world.view.clone() }
}

fn get(view: &View, id: &str) -> Option<Value> {
    render(view, &routes::find(&uri::metric_report(id)).expect("a route"))
}

#[test]
fn both_forms_say_the_same() {
    let view = world();
    let uuid = &view.status.arrays[0].volumes[1].uuid;
    for (id, kind, count) in [
        ("Seconds".to_owned(), Kind::Machine, 64),
        (format!("Seconds.volume.{uuid}"), Kind::Volume, 64),
        (format!("Minutes.array.{}", view.status.arrays[1].uuid), Kind::Array, 2),
        ("Hours.drive.drive-1".to_owned(), Kind::Drive, 1),
    ] {
        let report = get(&view, &id).expect(&id);
        let mut of_series = BTreeMap::new();
        let extension: oem::MetricReport = oem::of(&report).expect("readable");
        assert_eq!(extension.series.len(), kind.fields().len());
        for own in &extension.series {
            assert_eq!(own.values.len(), count, "{id}");
            let begin = dates::seconds(&own.start_time).expect("a time");
            for (at, value) in own.values.iter().enumerate() {
                let time = dates::text(begin + at as u64 * own.step_seconds);
                if let Some(value) = value {
                    let of = (own.metric_id.clone(), own.metric_property.clone(), time);
                    of_series.insert(of, value.to_string());
                }
            }
        }
        let text = |own: &Value, key: &str| own[key].as_str().expect(key).to_owned();
        let values = report["MetricValues"].as_array().expect("values");
        let of_values: BTreeMap<_, _> = values
            .iter()
            .map(|own| {
                let of = ["MetricId", "MetricProperty", "Timestamp"].map(|key| text(own, key));
                (of.into(), text(own, "MetricValue"))
            })
            .collect();
        assert!(!values.is_empty());
        assert_eq!(of_values.len(), values.len());
        assert_eq!(of_series, of_values, "{id}");
        let of = extension.series[0].metric_property.clone();
        assert!(render(&view, &routes::find(&of).expect("a route")).is_some(), "{of}");
        for own in values {
            let metric = uri::metric_definition(&text(own, "MetricId"));
            assert!(render(&view, &routes::find(&metric).expect("a route")).is_some());
        }
    }
}

#[test]
fn what_is_not_there_has_no_past_and_what_nobody_saw_an_empty_one() {
    let view = world();
    for id in ["Days", "Seconds.volume.none", "Seconds.drive.none", "Hours.array.", "Hours.x.y"] {
        assert_eq!(get(&view, id), None, "{id}");
    }
    let uuid = view.status.arrays[0].uuid.to_ascii_uppercase();
    let report = get(&view, &format!("Hours.array.{uuid}")).expect("a report");
    assert_eq!(report["Id"], format!("Hours.array.{}", view.status.arrays[0].uuid));
    let young = View { past: Past::default(), ..view };
    for id in ["Seconds", "Minutes", "Hours", "Hours.drive.drive-0"] {
        let report = get(&young, id).expect("a report");
        assert_eq!(report["MetricValues"], json!([]));
        assert_eq!(report["Oem"]["Palisade"]["Series"], json!([]));
    }
}

#[test]
fn a_brief_report_is_the_same_without_its_values() {
    let view = world();
    let found = routes::find(&uri::metric_report("Minutes")).expect("a route");
    let mut whole = render(&view, &found).expect("a report");
    let brief = render_brief(&view, &found).expect("a report");
    let own = whole.as_object_mut().expect("an object");
    assert!(own.remove("MetricValues").is_some() && own.remove("@odata.etag").is_some());
    assert_eq!(whole, brief);
    let other = routes::find(&uri::metric_report("Cores")).expect("a route");
    assert_eq!(render_brief(&view, &other), None);
    let query = |text| crate::query::Query::parse(text).expect("a query");
    assert!(query("$select=Oem,Id").leaves_out("MetricValues"));
    for whole in ["", "$select=*", "$select=MetricValues/MetricId", "$expand=."] {
        assert!(!query(whole).leaves_out("MetricValues"), "{whole}");
    }
}
