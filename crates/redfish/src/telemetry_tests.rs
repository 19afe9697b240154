//! Readings are of metrics that there are, and of properties that the resources have.

use super::*;
use crate::counters::*;
use crate::routes;
use crate::sample;
use crate::service::render;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A view with counters of all that is in it.
fn view(seed: u64) -> View {
    let mut view = sample::view(seed);
    let all = view.status.arrays.iter().flat_map(|array| &array.volumes);
    let mut done = Operations::default();
    (done.latency.buckets[0], done.latency.buckets[BUCKETS - 1]) = (2, 1);
    let of = |uuid: &String| VolumeCounters {
        volume: uuid.clone(),
        reads: done,
        writes: done,
        flushes: done,
        discards: done,
    };
    let mut volumes: Vec<_> = all.map(|volume| Arc::new(of(&volume.uuid))).collect();
    volumes.sort_by(|a, b| a.volume.cmp(&b.volume));
    let all = view.status.arrays.iter().flat_map(|array| &array.exports);
    let of = |id: &String| ExportCounters { export: id.clone(), ..Default::default() };
    let exports = all.map(|export| of(&export.id)).collect();
    let hosts = ["", "nqn.a:b", "nqn.a-b", "nqn.gone"];
    let hosts = hosts.map(|host| HostCounters { host: host.to_owned(), ..Default::default() });
    let cores = vec![CoreCounters::default(), CoreCounters { core: 1, ..Default::default() }];
    let hosts = hosts.to_vec();
    view.counters = Arc::new(Counters { volumes, exports, hosts, cores, ..Default::default() });
    view
}

#[test]
fn each_metric_is_in_one_report_and_has_a_name_of_its_own() {
    let ids: BTreeSet<_> = METRICS.iter().map(|metric| metric.id).collect();
    assert_eq!(ids.len(), METRICS.len());
    for report in Report::ALL {
        assert!(report.metrics().count() > 0, "{report:?}");
        assert_eq!(Report::of(report.id()), Some(report));
    }
    assert_eq!(Report::of("volumes"), None);
}

#[test]
fn each_reading_is_of_a_metric_and_of_a_property_that_is_there() {
    let mut told = BTreeSet::new();
    for seed in 0..200 {
        let view = view(seed);
        for report in Report::ALL {
            let mut seen = BTreeSet::new();
            for own in readings(&view, report) {
                let metric = metric_of(own.metric).expect(own.metric);
                assert_eq!(metric.report, report);
                assert!(seen.insert((own.metric, own.of.clone())), "{own:?}");
                let (uri, pointer) = own.of.split_once('#').unwrap_or((&own.of, ""));
                let found = routes::find(uri).expect(uri);
                let resource = render(&view, &found).expect(uri);
                let value = resource.pointer(pointer).expect(&own.of);
                if !pointer.is_empty() {
                    assert_eq!(value.to_string(), own.value, "{own:?}");
                }
                told.insert(own.metric);
            }
            assert!(changes(&view, &view, report).is_empty());
            let all = changes(&View::default(), &view, report);
            assert_eq!(all, readings(&view, report));
        }
    }
    assert_eq!(told.len(), METRICS.len(), "{told:?}");
}

#[test]
fn a_change_is_told_and_nothing_else() {
    let before = (0..).map(view).find(|view| !view.counters.volumes.is_empty()).expect("one");
    let mut counters = (*before.counters).clone();
    let own = Arc::make_mut(&mut counters.volumes[0]);
    own.writes.latency.buckets[3] += 1;
    own.writes.bytes += 4096;
    let now = View { counters: Arc::new(counters), ..before.clone() };
    let told = changes(&before, &now, Report::Volumes);
    let told: Vec<_> = told.iter().map(|own| (own.metric, &own.value[..])).collect();
    let expected =
        [("VolumeWrites", "4"), ("VolumeWriteBytes", "4096"), ("VolumeWriteLatencies", "1")];
    assert_eq!(told, expected);
    assert!(changes(&before, &now, Report::Cores).is_empty());
}
