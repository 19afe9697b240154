//! ETags change with what is told, and with nothing else.

use super::*;
use crate::routes;
use crate::sample;
use crate::service::{render, uri};
use crate::view::View;
use serde_json::json;

fn tag(view: &View, uri: &str) -> String {
    let resource = render(view, &routes::find(uri).expect(uri)).expect(uri);
    read(&resource).expect("has an ETag").to_owned()
}

/// A view with arrays, volumes and jobs that have not ended.
fn full() -> View {
    let is_full = |view: &View| {
        let arrays = &view.status.arrays;
        let has_all = |array: &crate::view::Array| {
            !array.volumes.is_empty() && !array.tasks.is_empty() && !array.slots.is_empty()
        };
        arrays.iter().any(has_all)
    };
    let mut view = (0..).map(sample::view).find(is_full).expect("one has all");
    let at = view.status.arrays.iter().position(|array| {
        !array.volumes.is_empty() && !array.tasks.is_empty() && !array.slots.is_empty()
    });
    view.status.arrays.swap(0, at.expect("is there"));
    view
}

#[test]
fn time_progress_and_counters_change_no_etag() {
    let before = full();
    let mut after = before.clone();
    after.server.now += 60;
    after.status.parity.gpu_bytes += 1;
    for array in &mut after.status.arrays {
        array.unclean = !array.unclean;
        array.crash_safe = array.crash_safe.map(|is_safe| !is_safe);
        array.owner.iter_mut().for_each(|own| own.heartbeat_age_ms = Some(u64::MAX));
        array.tasks.iter_mut().for_each(|task| task.done_bytes /= 2);
        for slot in &mut array.slots {
            slot.read_errors += 1;
            slot.rewritten += 1;
            slot.timeouts += 1;
        }
        if let Some(map) = &mut array.region_map {
            map.dirty_regions += 1;
            map.written_bytes += 1;
        }
        array.drive_io.iter_mut().for_each(|io| io.reads += 1);
    }
    let mut uris = vec![uri::MANAGER.to_owned(), "/redfish/v1/JobService".to_owned()];
    uris.extend(before.status.arrays.iter().map(|array| uri::pool(&array.uuid)));
    let volumes = before.status.arrays.iter().flat_map(|array| &array.volumes);
    uris.extend(volumes.map(|volume| uri::volume(&volume.uuid)));
    for uri in uris {
        assert_eq!(tag(&before, &uri), tag(&after, &uri), "{uri}");
    }
}

#[test]
fn what_a_drive_says_each_minute_changes_no_etag_but_that_of_its_metrics() {
    use crate::view::{DrivePower, Hardware, Health, Smart};
    let mut before = full();
    let known = before.drives.first_mut().expect("a drive");
    let (own, metrics) = (uri::drive(&known.id), uri::drive_metrics(&known.id));
    let mut hardware = Hardware {
        smart: Some(Smart::default()),
        power: Some(DrivePower { state: 0, states: Vec::new() }),
        sensor_celsius: Some(40),
        asked: Some(1),
        worn_out: Some(1),
        ..Hardware::default()
    };
    known.hardware = hardware.clone().into();
    let set = |hardware: &Hardware| {
        let mut view = before.clone();
        view.drives[0].hardware = hardware.clone().into();
        view
    };
    hardware.smart = Some(Smart { celsius: Some(41), power_on_hours: 2, ..Smart::default() });
    hardware.power = Some(DrivePower { state: 3, states: Vec::new() });
    (hardware.sensor_celsius, hardware.asked, hardware.worn_out) = (Some(41), Some(61), Some(2));
    let after = set(&hardware);
    assert_eq!(tag(&before, &own), tag(&after, &own));
    assert_ne!(tag(&before, &metrics), tag(&after, &metrics));
    hardware.health = Health::Warning;
    assert_ne!(tag(&before, &own), tag(&set(&hardware), &own));
}

#[test]
fn the_progress_of_a_job_changes_its_etag() {
    let mut before = full();
    let mut job = before.jobs.pop().expect("a job");
    (job.ended, job.task.done_bytes, job.task.total_bytes) = (None, 4 << 20, 8 << 20);
    let uri = uri::job(&job.id);
    let mut after = before.clone();
    before.jobs.push(job.clone());
    job.task.done_bytes = 6 << 20;
    after.jobs.push(job);
    assert_ne!(tag(&before, &uri), tag(&after, &uri));
}

#[test]
fn what_is_counted_changes_the_etag_of_metrics_alone() {
    use crate::counters::{Counters, VolumeCounters};
    let before = full();
    let volume = before.status.arrays[0].volumes[0].uuid.clone();
    let mut counters = VolumeCounters { volume: volume.clone(), ..VolumeCounters::default() };
    counters.reads.latency.buckets[3] = 1;
    let counters = Counters { volumes: vec![counters.into()], ..Counters::default() };
    let after = View { counters: counters.into(), ..before.clone() };
    let own = uri::volume_metrics(&volume);
    assert_ne!(tag(&before, &own), tag(&after, &own));
    let get = |view, uri: &str| render(view, &routes::find(uri).expect(uri)).expect(uri);
    let whole = |view| {
        let mut whole = get(view, &uri::volume(&volume));
        whole["Metrics"] = get(view, &own);
        of(&whole)
    };
    assert_eq!(whole(&before), whole(&after), "also where they are within another");
}

#[test]
fn what_matters_changes_the_etag() {
    let mut before = full();
    let array = &mut before.status.arrays[0];
    (array.size_bytes, array.free_bytes) = (1 << 41, 1 << 40);
    array.slots[0].state = crate::view::SlotState::Failed;
    let (pool, volume) = (uri::pool(&array.uuid), uri::volume(&array.volumes[0].uuid));
    type Change = fn(&mut crate::view::Array);
    let changes: [(Change, &str); 7] = [
        (|array| array.name.push('x'), &pool),
        (|array| array.epoch += 1, &pool),
        (|array| array.free_bytes /= 3, &pool),
        (|array| array.slots[0].state = crate::view::SlotState::Rebuilding, &pool),
        (|array| array.slots[0].serial.push('x'), &pool),
        (|array| array.volumes[0].size_bytes += 1, &volume),
        (|array| array.volumes[0].name.push('x'), &volume),
    ];
    for (number, (change, uri)) in changes.into_iter().enumerate() {
        let mut after = before.clone();
        change(&mut after.status.arrays[0]);
        assert_ne!(tag(&before, uri), tag(&after, uri), "change {number}");
    }
    let mut fewer = before.clone();
    fewer.status.arrays[0].volumes.clear();
    assert_ne!(tag(&before, uri::VOLUMES), tag(&fewer, uri::VOLUMES), "a collection has one");
}

#[test]
fn what_moves_is_a_property_that_there_is() {
    let mut text = String::new();
    for file in crate::schema::csdl_files() {
        text.push_str(&crate::schema::csdl(&file).expect("is a file"));
    }
    let standard = [
        PROPERTY,
        "Message",
        "MessageArgs",
        "DateTime",
        "EstimatedCompletionTime",
        "PercentComplete",
        "PercentageComplete",
        "IOStatistics",
        "UncorrectableIOReadErrorCount",
        "UncorrectableIOWriteErrorCount",
    ];
    for name in MOVING.iter().filter(|name| !standard.contains(name)) {
        assert!(text.contains(&format!("Property Name=\"{name}\"")), "{name}");
    }
}

#[test]
fn no_two_values_are_fed_alike() {
    let values = [
        json!({}),
        json!([]),
        json!(""),
        json!(null),
        json!(0),
        json!("0"),
        json!(false),
        json!(true),
        json!([[], []]),
        json!([[[]]]),
        json!({"a": "b"}),
        json!({"ab": ""}),
        json!(["a", "b"]),
        json!(["ab"]),
        json!({"a": {"b": 1}}),
        json!({"a": {}, "b": 1}),
    ];
    for (at, one) in values.iter().enumerate() {
        assert_eq!(of(one), of(&one.clone()));
        for other in &values[at + 1..] {
            assert_ne!(of(one), of(other), "{one} and {other}");
        }
    }
    let tag = of(&json!({"A": 1, "DateTime": "x", "B": [{"DoneBytes": 4}]}));
    assert_eq!(tag, of(&json!({"A": 1, "B": [{}], "@odata.etag": "y"})));
    assert_eq!((tag.len(), tag.starts_with("W/\"")), (28, true), "{tag}");
}

fn conditions(if_match: Option<&str>, if_none_match: Option<&str>) -> Conditions {
    Conditions::read(if_match, if_none_match).expect("can be read")
}

#[test]
fn headers_list_etags_in_all_their_forms() {
    let tag = Some("W/\"a1\"");
    for hit in ["*", " * ", "W/\"a1\"", "\"a1\"", "a1", "W/a1", "\"x\", W/\"a1\"", "\"a1\" ,\"x\""]
    {
        assert_eq!(conditions(Some(hit), None).check(tag), Ok(()), "{hit}");
        assert_eq!(conditions(None, Some(hit)).is_unchanged(tag), Ok(true), "{hit}");
        assert_eq!(conditions(None, Some(hit)).check(tag).unwrap_err().status, 412, "{hit}");
    }
    for miss in ["\"a\"", "W/\"a12\"", "\"A1\"", "x, y", "\"a,a1\"", "\"W/a1\""] {
        assert_eq!(conditions(Some(miss), None).check(tag).unwrap_err().status, 412, "{miss}");
        assert_eq!(conditions(None, Some(miss)).is_unchanged(tag), Ok(false), "{miss}");
        assert_eq!(conditions(None, Some(miss)).check(tag), Ok(()), "{miss}");
    }
    for wrong in
        ["", " ", ",", "\"a", "a\"", "\"a\" \"b\"", "\"a\",", "W/\"a1\"x", "W/", "\"\"", "*, \"a\""]
    {
        assert_eq!(conditions(Some(wrong), None).check(tag).unwrap_err().status, 412, "{wrong}");
        assert_eq!(Conditions::read(None, Some(wrong)).expect_err(wrong).status, 400, "{wrong}");
    }
}

#[test]
fn a_request_without_conditions_always_holds() {
    let none = conditions(None, None);
    assert!(none.is_empty());
    assert_eq!((none.check(Some("x")), none.is_unchanged(Some("x"))), (Ok(()), Ok(false)));
    let some = conditions(Some("\"b\""), None);
    assert_eq!(some.check(None), Ok(()), "what is not there is told otherwise");
    assert_eq!(some.is_unchanged(Some("\"a\"")).unwrap_err().status, 412);
    assert!(!some.is_empty());
}
