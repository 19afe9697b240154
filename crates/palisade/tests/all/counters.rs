//! What hosts ask of a volume is what its metrics count, over both front ends.

use crate::cli::nvme::{HOST, host_of};
use crate::cli::place::{Place, eventually};
use crate::common::nbd::{Client, Kind};
use crate::redfish::{Answer, get_at};
use serde_json::{Value, json};

fn get(place: &Place, uri: &str) -> Answer {
    get_at(&place.socket(), uri)
}

/// What is counted of each kind: done, bytes and failed requests.
fn counted(metrics: &Value) -> [(u64, u64, u64); 4] {
    ["Reads", "Writes", "Flushes", "Discards"].map(|kind| {
        let of = &metrics["Oem"]["Palisade"][kind];
        let number = |key: &str| of[key].as_u64().expect(key);
        let latencies = of["Latencies"].as_array().expect("a list");
        let sum: u64 = latencies.iter().map(|count| count.as_u64().expect("a number")).sum();
        assert_eq!((sum, number("UnderWay"), number("Abandoned")), (number("Done"), 0, 0));
        let failed = ["OutOfBounds", "Unavailable", "Stopped"].map(number).iter().sum();
        (number("Done"), number("Bytes"), failed)
    })
}

#[test]
fn metrics_of_a_volume_are_what_hosts_asked_of_it() {
    let place = Place::running(3);
    place.create("data", "5", &[0, 1, 2]);
    let volume = place.json(&["volume", "create", "data/v", "--size", "4M"]);
    let uuid = volume["uuid"].as_str().expect("text");
    let uri = format!("/redfish/v1/Systems/local/Storage/palisade/Volumes/{uuid}/Metrics");
    let idle = get(&place, &uri).json();
    assert_eq!(counted(&idle), [(0, 0, 0); 4]);
    let socket = place.dir.path().join("v.sock");
    let at = format!("unix:{}", socket.display());
    place.json(&["export", "create", "data/v", "--nbd", &at]);
    let export = place.export("data/v", &["--any-host"]);

    let mut nbd = Client::connect(&socket, "data/v").expect("connects");
    let data = vec![7; 8192];
    for n in 0..7 {
        nbd.write(n * 8192, &data).expect("written");
    }
    for n in 0..5 {
        nbd.read(n * 4096, &mut [0; 4096]).expect("read");
    }
    for (kind, length) in [(Kind::Flush, 0), (Kind::Flush, 0), (Kind::WriteZeroes, 65536)] {
        nbd.send(kind, 0, 9, (0, length), &[]).expect("sent");
        assert_eq!(nbd.receive().expect("answered"), 9);
    }
    // What the front end refuses never comes to the volume.
    assert!(!nbd.can_read(nbd.size, &mut [0; 4096]).expect("answered"));
    let (_admin, mut queue) = host_of(&export, HOST).enter().expect("connects");
    for n in 0..3 {
        queue.write(1, n * 8, &[5; 4096]).expect("written");
    }
    for n in 0..4 {
        assert_eq!(queue.read(1, n, 16).expect("read").len(), 8192);
    }
    let reads = (5 + 4, 5 * 4096 + 4 * 8192, 0);
    let writes = (7 + 3, 7 * 8192 + 3 * 4096, 0);
    let mut expected = [reads, writes, (2, 0, 0), (1, 65536, 0)];
    eventually("all is counted", || counted(&get(&place, &uri).json()) == expected);
    let statistics = &get(&place, &uri).json()["IOStatistics"];
    let said = json!({"ReadIORequests": 9, "ReadIOKiBytes": 52, "WriteIORequests": 10,
        "WriteIOKiBytes": 68, "NonIORequests": 3});
    assert_eq!(*statistics, said);

    // The counters are the volume's, whoever comes after a stop of its array.
    drop((nbd, queue));
    place.json(&["array", "stop", "data"]);
    assert_eq!(counted(&get(&place, &uri).json()), expected);
    place.json(&["array", "assemble", "data"]);
    let mut nbd = Client::connect(&socket, "data/v").expect("connects");
    nbd.read(0, &mut [0; 512]).expect("read");
    expected[0] = (10, reads.1 + 512, 0);
    eventually("it goes on", || counted(&get(&place, &uri).json()) == expected);
    drop(nbd);
    for export in ["data:1", "data:2"] {
        place.json(&["export", "delete", export]);
    }
    place.json(&["volume", "delete", "data/v", "--yes"]);
    assert_eq!(get(&place, &uri).status, 404);
}
