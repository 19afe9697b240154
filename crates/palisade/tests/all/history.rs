//! The past that charts show: of a daemon under load, and over its restart.

use crate::common::nbd::Client;
use crate::common::place::{Daemon, Place};
use crate::common::{LIMIT, until};
use serde_json::Value;
use std::time::{SystemTime, UNIX_EPOCH};

const REPORTS: &str = "/redfish/v1/TelemetryService/MetricReports";

/// The series of a metric in a report.
fn series(report: &Value, metric: &str) -> Value {
    let all = report["Oem"]["Palisade"]["Series"].as_array().expect("a list");
    all.iter().find(|own| own["MetricId"] == metric).cloned().unwrap_or_default()
}

/// Seconds since 1970.
fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

/// The sum of a metric's values.
fn sum(report: &Value, metric: &str) -> f64 {
    let series = series(report, metric);
    series["Values"].as_array().into_iter().flatten().filter_map(Value::as_f64).sum()
}

#[test]
fn the_past_of_a_load_is_there_after_a_restart() {
    let mut place = Place::new("history", 64);
    place.more = format!("state = {}\n", Value::from(place.file("state").to_string_lossy()));
    let drives = place.drives(2);
    let daemon = Daemon::start(&place, 1);
    daemon.create("tank", "1", &drives, &[]);
    let served = daemon.volume(&place, "tank/v", "4M");
    let report = |daemon: &Daemon, id: &str| -> Value {
        let text = daemon.text(&["api", "GET", &format!("{REPORTS}/{id}")]);
        serde_json::from_str(&text).expect("JSON")
    };
    let uuid = daemon.call(&["volume", "list"])["volumes"][0]["uuid"].clone();
    let of_volume = format!("Seconds.volume.{}", uuid.as_str().expect("text"));
    let mut client = Client::connect(&served.socket, "tank/v").expect("connects");
    until("writes are in the past", LIMIT, || {
        for n in 0..8 {
            client.write(n * 4096, &[7; 4096]).expect("written");
        }
        (sum(&report(&daemon, &of_volume), "WriteRate") > 0.0).then_some(())
    });
    drop(client);
    let array = daemon.call(&["array", "show", "tank"])["uuid"].clone();
    let of_array = format!("Minutes.array.{}", array.as_str().expect("text"));
    for id in ["Seconds", "Minutes", "Hours", &of_array] {
        until(id, LIMIT, || {
            let report = report(&daemon, id);
            assert_eq!(report["Id"], id);
            let values = report["MetricValues"].as_array().expect("a list");
            let is_written =
                |own: &&Value| own["MetricId"] == "WriteBandwidth" && own["MetricValue"] != "0";
            let is_told = values.iter().any(|own| is_written(&own));
            (sum(&report, "WriteBandwidth") > 0.0 && is_told).then_some(())
        });
    }
    let brief = report(&daemon, &format!("{of_volume}?$select=Oem"));
    assert!(brief.get("MetricValues").is_none() && sum(&brief, "WriteRate") > 0.0);
    let before = series(&report(&daemon, &of_volume), "WriteRate");
    daemon.stop();
    assert!(place.file("state").join("history.bin").exists());
    // A daemon that is back within a second leaves no gap.
    let stopped = seconds();
    until("a second passes without a daemon", LIMIT, || (seconds() > stopped + 1).then_some(()));

    let daemon = Daemon::start(&place, 1);
    let after = series(&report(&daemon, &of_volume), "WriteRate");
    assert_eq!(after["StartTime"], before["StartTime"]);
    let known = before["Values"].as_array().expect("a list");
    assert_eq!(after["Values"].as_array().expect("a list")[..known.len()], known[..]);
    until("it goes on behind a gap", LIMIT, || {
        let after = series(&report(&daemon, &of_volume), "WriteRate");
        let values = after["Values"].as_array().expect("a list");
        let later = &values[known.len()..];
        let goes_on = later.contains(&Value::Null) && later.last().is_some_and(Value::is_number);
        goes_on.then_some(())
    });
    daemon.stop();
}
