//! What resources say of drives.

use super::*;
use crate::routes;
use crate::service::render;
use crate::view::{Drive, DrivePlace, Health, PcieLink, Smart};

fn drive(wwid: &str, state: DriveState, hardware: Hardware) -> KnownDrive {
    let drive = Drive {
        path: "/dev/a".to_owned(),
        serial: String::new(),
        bytes: 0,
        block_bytes: 0,
        state,
        array: None,
        slot: None,
        signature: None,
        problem: None,
    };
    let (id, wwid, hardware) = ("a".to_owned(), Some(wwid.to_owned()), hardware.into());
    KnownDrive { id, wwid, model: None, is_file: false, hardware, drive, remote: None }
}

fn resource(state: DriveState, hardware: Hardware) -> Value {
    let view = View { drives: vec![drive("", state, hardware)], ..View::default() };
    let found = routes::find(&uri::drive("a")).expect("a route");
    render(&view, &found).expect("is there")
}

#[test]
fn a_wwid_of_a_known_kind_identifies_the_drive() {
    let named = |wwid: &str| identifiers(&drive(wwid, DriveState::Free, Hardware::default()));
    for (wwid, name, format) in [
        ("eui.0025385b01404d3e", "00-25-38-5b-01-40-4d-3e", "EUI"),
        ("eui.00000000000000018ce38ee2058a8d01", "00000000000000018ce38ee2058a8d01", "NGUID"),
        ("naa.5000c500a1b2c3d4", "5000c500a1b2c3d4", "NAA"),
        (
            "uuid.ba1f1d94-1d0c-4a25-8d55-6f1e4a1f9d10",
            "ba1f1d94-1d0c-4a25-8d55-6f1e4a1f9d10",
            "UUID",
        ),
    ] {
        let expected = json!({"DurableName": name, "DurableNameFormat": format});
        assert_eq!(named(wwid), [expected]);
    }
    for wwid in ["", "eui", "eui.", "eui.002538", "naa.x", "uuid.x", "nvme.1234-5678", "t10.a b"] {
        assert_eq!(named(wwid), [] as [Value; 0], "{wwid}");
    }
}

#[test]
fn the_worse_of_the_device_and_of_what_the_daemon_makes_of_it_is_told() {
    use DriveState::{Failed, Free, InUse};
    for (state, health, told) in [
        (InUse, Health::Ok, "OK"),
        (InUse, Health::Warning, "Warning"),
        (Free, Health::Critical, "Critical"),
        (Failed, Health::Ok, "Critical"),
        (Failed, Health::Warning, "Critical"),
    ] {
        let all = resource(state, Hardware { health, ..Hardware::default() });
        assert_eq!(all["Status"]["Health"], told, "{state:?} {health:?}");
        assert_eq!(all["Oem"]["Palisade"]["Hardware"]["Health"], health.word());
    }
}

#[test]
fn a_reason_is_a_condition_with_a_message_of_the_registry() {
    let reason = Reason {
        rule: "wear".to_owned(),
        health: Health::Warning,
        what: "93% of its life is used".to_owned(),
        action: "replace it".to_owned(),
        since: 1_700_000_000,
    };
    let hardware = Hardware { reasons: vec![reason], ..Hardware::default() };
    let condition = resource(DriveState::Free, hardware)["Status"]["Conditions"][0].clone();
    let expected = json!({
        "MessageId": "Palisade.1.0.DriveUnwell",
        "Message": "drive /dev/a is not well: 93% of its life is used",
        "MessageArgs": ["/dev/a", "93% of its life is used", "wear"],
        "Resolution": "replace it",
        "Severity": "Warning",
        "Timestamp": "2023-11-14T22:13:20Z",
    });
    assert_eq!(condition, expected);
    let well = resource(DriveState::Free, Hardware::default());
    assert_eq!(well["Status"], json!({"State": "Enabled", "Health": "OK"}));
}

#[test]
fn what_it_speaks_is_told() {
    for (kind, transport, protocol) in [
        ("nvme", "pcie", json!("NVMe")),
        ("nvme", "rdma", json!("NVMeOverFabrics")),
        ("scsi", "tcp", json!("iSCSI")),
        ("scsi", "fc", json!("FCP")),
        // SRP or iSER.
        ("scsi", "rdma", Value::Null),
        ("dm", "fc", Value::Null),
        ("other", "tcp", Value::Null),
    ] {
        let (kind_of, by) = (Some(kind.to_owned()), Some(transport.to_owned()));
        let hardware = Hardware { kind: kind_of, transport: by, ..Hardware::default() };
        let all = resource(DriveState::Free, hardware);
        assert_eq!(all["Protocol"], protocol, "{kind} {transport}");
    }
}

#[test]
fn a_device_is_told_in_standard_properties() {
    let smart = Smart { percentage_used: 7, critical_warning: 2, ..Smart::default() };
    let hardware = Hardware {
        kind: Some("nvme".to_owned()),
        transport: Some("tcp".to_owned()),
        firmware: Some("1.2".to_owned()),
        link: Some(PcieLink {
            lanes: 2,
            max_lanes: 4,
            megatransfers: 2_500,
            max_megatransfers: 16_000,
        }),
        place: Some(DrivePlace { enclosure: "shelf".to_owned(), slot: "12".to_owned() }),
        located: Some(false),
        smart: Some(smart),
        ..Hardware::default()
    };
    let all = resource(DriveState::Free, hardware.clone());
    for (property, value) in [
        ("Protocol", json!("NVMeOverFabrics")),
        ("MediaType", json!("SSD")),
        ("Revision", json!("1.2")),
        ("FirmwareVersion", json!("1.2")),
        ("NegotiatedSpeedGbs", json!(5.0)),
        ("CapableSpeedGbs", json!(64.0)),
        ("LocationIndicatorActive", json!(false)),
        ("PredictedMediaLifeLeftPercent", json!(93)),
        ("FailurePredicted", json!(false)),
    ] {
        assert_eq!(all[property], value, "{property}");
    }
    let place = json!({"LocationType": "Slot", "ServiceLabel": "12", "LocationOrdinalValue": 12});
    assert_eq!(all["PhysicalLocation"]["PartLocation"], place);
    // Spares, reliability and media that can only be read foretell a failure; heat does not.
    for (bits, predicted) in [(1, true), (2, false), (4, true), (8, true), (16, false)] {
        let smart = Smart { critical_warning: bits, percentage_used: 120, ..Smart::default() };
        let hardware = Hardware { smart: Some(smart), ..hardware.clone() };
        let all = resource(DriveState::Free, hardware);
        assert_eq!(all["FailurePredicted"], predicted, "{bits}");
        assert_eq!(all["PredictedMediaLifeLeftPercent"], 0);
    }
    // What nobody knows is not there.
    let bare = resource(DriveState::Free, Hardware::default());
    for property in ["Metrics", "LocationIndicatorActive", "FailurePredicted", "PhysicalLocation"] {
        assert_eq!(bare.get(property), None, "{property}");
    }
}

#[test]
fn counts_beyond_an_integer_are_the_largest_one() {
    let smart = Smart { power_on_hours: u128::MAX, written_bytes: u128::MAX, ..Smart::default() };
    let hardware = Hardware { smart: Some(smart), ..Hardware::default() };
    let view = View { drives: vec![drive("", DriveState::Free, hardware)], ..View::default() };
    let found = routes::find(&uri::drive_metrics("a")).expect("a route");
    let metrics = render(&view, &found).expect("is there");
    assert_eq!(metrics["NVMeSMART"]["PowerOnHours"], json!(i64::MAX));
    assert_eq!(metrics["NVMeSMART"]["DataUnitsWritten"], json!(i64::MAX));
}

#[test]
fn a_drive_that_is_open_has_times_though_it_tells_nothing_of_its_life() {
    use crate::counters::{Counters, DriveCounters, Latency};
    let mut reads = Latency { nanos: 5_000, ..Latency::default() };
    (reads.buckets[0], reads.buckets[2]) = (2, 1);
    let own = DriveCounters { drive: "a".to_owned(), reads, writes: Latency::default() };
    let counters = Counters { drives: vec![own], ..Counters::default() };
    let drives = vec![drive("", DriveState::Free, Hardware::default())];
    let view = View { drives, counters: counters.into(), ..View::default() };
    let of = |uri: &str| render(&view, &routes::find(uri).expect("a route")).expect("is there");
    let mut resource = of(&uri::drive("a"));
    let metrics = of(&uri::drive_metrics("a"));
    assert_eq!(resource["Metrics"], json!({"@odata.id": uri::drive_metrics("a")}));
    let reads = &metrics["Oem"]["Palisade"]["Reads"];
    assert_eq!((&reads["Timed"], &reads["Nanoseconds"]), (&json!(3), &json!(5_000)));
    let latencies = reads["Latencies"].as_array().expect("a list");
    assert_eq!((latencies.len(), &latencies[0], &latencies[2]), (26, &json!(2), &json!(1)));
    assert_eq!(metrics["Oem"]["Palisade"]["Writes"]["Timed"], 0);
    assert_eq!(metrics.get("NVMeSMART"), None);
    // An array's drive is asked for them before anything was counted.
    let drives = vec![drive("", DriveState::InUse, Hardware::default())];
    let early = View { drives, ..View::default() };
    let found = routes::find(&uri::drive_metrics("a")).expect("a route");
    assert_eq!(render(&early, &found).expect("is there")["Oem"]["Palisade"].get("Reads"), None);
    // Who reads both back knows that there is no log of its life.
    resource["Metrics"] = metrics;
    assert_eq!(crate::read::drive(&resource).expect("a drive").hardware.smart, None);
}
