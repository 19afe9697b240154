//! Collections larger than an answer, and such as change while they are read.

use super::*;
use redfish::query::Query;
use redfish::routes;
use redfish::service::render;
use redfish::view::{Array, View, Volume};
use std::cell::Cell;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufStream};
use tokio::net::{UnixListener, UnixStream};

/// Answers GETs until the client goes: `make` gives a collection, and `get` what it links to.
async fn serve(
    stream: UnixStream,
    make: &dyn Fn(&str) -> Value,
    get: &dyn Fn(&str) -> Option<Value>,
) {
    let mut stream = BufStream::new(stream);
    loop {
        let mut first = String::new();
        let mut line = String::from("more");
        if stream.read_line(&mut first).await.expect("reads") == 0 {
            return;
        }
        while !line.trim().is_empty() {
            line.clear();
            stream.read_line(&mut line).await.expect("reads");
        }
        let target = first.split(' ').nth(1).expect("a target");
        let (path, query) = target.split_once('?').expect("a query");
        let told = Query::parse(query).and_then(|query| query.apply(make(path), get));
        let (status, body) = match told {
            Ok(value) => (200, value),
            Err(refusal) => (refusal.status, refusal.body()),
        };
        let body = body.to_string();
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all((head + &body).as_bytes()).await.expect("written");
        stream.flush().await.expect("written");
    }
}

/// What a client reads of a collection of such a daemon.
fn read_of(
    collection: &str,
    make: &dyn Fn(&str) -> Value,
    get: &dyn Fn(&str) -> Option<Value>,
) -> Value {
    told(make, get, async |client| expanded(client, collection).await).expect("is read")
}

/// What such a daemon tells who asks.
fn told<T>(
    make: &dyn Fn(&str) -> Value,
    get: &dyn Fn(&str) -> Option<Value>,
    ask: impl AsyncFnOnce(&Client) -> T,
) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("socket");
        let listener = UnixListener::bind(&socket).expect("bound");
        let client = Client::new(socket);
        let daemon = async {
            let (stream, _) = listener.accept().await.expect("comes");
            serve(stream, make, get).await;
        };
        tokio::select! {
            told = ask(&client) => told,
            () = daemon => panic!("the client went away"),
        }
    })
}

fn names(collection: &Value) -> Vec<&str> {
    let all = collection["Members"].as_array().expect("a list");
    all.iter().map(|one| one["Name"].as_str().expect("a name")).collect()
}

/// A view of one array with so many volumes.
fn view(volumes: usize) -> View {
    let array = json!({
        "name": "tank", "uuid": "u", "level": "5", "state": "optimal", "strip_bytes": 65536,
        "block_bytes": 4096, "size_bytes": 1, "free_bytes": 0, "epoch": 1, "unclean": false,
        "slots": [], "tasks": [], "last_scrub": null, "unreadable": [], "region_map": null,
        "drive_io": [], "volumes": [], "exports": [],
    });
    let status = json!({
        "version": "", "pid": 1, "cores": 1, "ready": true, "arrays": [], "next": [],
        "parity": {"placement": "cpu", "kernel": "", "gpu": null, "problem": null, "gpu_jobs": 0,
            "gpu_bytes": 0, "gpu_undone": 0, "gpu_checked": 0, "gpu_shared_bytes": 0,
            "gpu_kept_bytes": 0},
        "memory": {"io_flusher": false, "locked": false, "left_to_gpu": false},
    });
    let mut array: Array = serde_json::from_value(array).expect("an array");
    array.volumes = (0..volumes)
        .map(|number| Volume {
            array: "tank".to_owned(),
            name: format!("v{number}"),
            uuid: format!("u{number}"),
            size_bytes: 1,
        })
        .collect();
    let mut status: Status = serde_json::from_value(status).expect("a status");
    status.arrays.push(array);
    View { status, ..View::default() }
}

#[test]
fn more_volumes_than_an_answer_holds_are_read_by_pages() {
    let view = view(12_000);
    let resource = |uri: &str| render(&view, &routes::find(uri)?);
    let whole = resource(uri::VOLUMES).expect("is there");
    let query = Query::parse("$expand=.").expect("a query");
    let refused = query.apply(whole, &resource).err().map(|refusal| refusal.status);
    assert_eq!(refused, Some(507), "too large for one answer");
    let told = read_of(uri::VOLUMES, &|uri| resource(uri).expect("is there"), &resource);
    let expected: Vec<String> = (0..12_000).map(|number| format!("v{number}")).collect();
    assert!(names(&told) == expected, "all, in their order");
    let volumes = read::all(&told, |one| Ok(one["Id"].as_str().map(str::to_owned)));
    assert_eq!(volumes.expect("are read").len(), 12_000);
}

/// A collection of these numbers.
fn numbers(of: impl Iterator<Item = u32>) -> Value {
    let links: Vec<Value> = of.map(|one| json!({"@odata.id": format!("/m/{one}")})).collect();
    let mut all = json!({"@odata.id": "/m", "Members@odata.count": links.len(), "Members": links});
    etag::put(&mut all);
    all
}

fn numbered(uri: &str) -> Option<Value> {
    let number = uri.strip_prefix("/m/")?;
    Some(json!({"@odata.id": uri, "Name": number}))
}

#[test]
fn pages_are_as_large_as_the_daemon_gives_them() {
    let large = |uri: &str| {
        let mut one = numbered(uri)?;
        one["More"] = vec![0; 3000].into();
        Some(one)
    };
    let told = read_of("/m", &|_| numbers(0..700), &large);
    let expected: Vec<String> = (0..700).map(|number: u32| number.to_string()).collect();
    assert_eq!(names(&told), expected);
}

#[test]
fn a_collection_that_changes_meanwhile_is_read_again() {
    // With the second request one of the first page goes: the last but one page would begin late.
    let asked = Cell::new(0);
    let make = |_: &str| {
        asked.set(asked.get() + 1);
        numbers((0..1200).filter(|number| asked.get() < 2 || *number != 3))
    };
    let told = read_of("/m", &make, &numbered);
    let expected: Vec<String> =
        (0..1200).filter(|number| *number != 3).map(|number: u32| number.to_string()).collect();
    assert_eq!(names(&told), expected);
    assert_eq!(asked.get(), 5);
}

#[test]
fn a_collection_that_never_rests_is_told_as_it_was_met() {
    // At each request there is one more before all others.
    let asked = Cell::new(0);
    let make = |_: &str| {
        asked.set(asked.get() + 1);
        numbers((1200 - asked.get()..2400).filter(|number| number % 2 == 0))
    };
    let told = read_of("/m", &make, &numbered);
    let names = names(&told);
    let once: BTreeSet<_> = names.iter().collect();
    assert_eq!(once.len(), names.len(), "no member is there twice");
    assert!((1200..2400).step_by(2).all(|number| names.contains(&number.to_string().as_str())));
}

#[test]
fn what_is_empty_or_small_is_read_at_once() {
    for count in [0, 1, 512] {
        let asked = Cell::new(0);
        let make = |_: &str| {
            asked.set(asked.get() + 1);
            numbers(0..count)
        };
        assert_eq!(names(&read_of("/m", &make, &numbered)).len(), count as usize);
        assert_eq!(asked.get(), 1);
    }
}

#[test]
fn file_systems_are_read_with_their_shares() {
    let mut view = view(0);
    let system = |number: usize| {
        let name = format!("Team {number}");
        crate::share::tests::system(&format!("v{number}"), &name, &["alice"])
    };
    // More than a page, in the order in which they are told.
    let systems: Vec<_> = (0..PAGE + 8).map(system).collect();
    view.status.arrays[0].filesystems.clone_from(&systems);
    let resource = |uri: &str| render(&view, &routes::find(uri)?);
    let read = told(&|uri| resource(uri).expect("is there"), &resource, async |client| {
        (filesystems(client).await, arrays(client, &[Part::Shares]).await)
    });
    assert!(read.0.expect("are read") == systems, "all, with all that is known of them");
    assert!(read.1.expect("are read")[0].filesystems == systems);
}
