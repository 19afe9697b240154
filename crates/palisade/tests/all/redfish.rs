//! The management interface as other programs see it: HTTP on the daemon's socket.

use crate::common::place::{Daemon, Place};
use crate::common::{LIMIT, until};
use crate::confirm::agreed;
use redfish::routes::{self, Method, ROUTES};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;

pub const POOLS: &str = "/redfish/v1/Systems/local/Storage/palisade/StoragePools";
pub const VOLUMES: &str = "/redfish/v1/Systems/local/Storage/palisade/Volumes";
pub const DRIVES: &str = "/redfish/v1/Chassis/local/Drives";
const FIND: &str =
    "/redfish/v1/Systems/local/Storage/palisade/Actions/Oem/PalisadeStorage.FindDrives";

/// What the daemon answered.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Answer {
    /// The first answer in these bytes; none if they are no whole head.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n")?;
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        Some(Self { status, headers: lines.filter_map(header).collect(), body: body.to_owned() })
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The name of the first message of an error, without its registry.
    pub fn message(&self) -> String {
        let json = self.json();
        let id = json["error"]["@Message.ExtendedInfo"][0]["MessageId"].as_str().expect("an id");
        id.rsplit('.').next().expect("a name").to_owned()
    }
}

pub fn connect(place: &Place) -> UnixStream {
    connect_at(&place.file("socket"))
}

fn connect_at(socket: &Path) -> UnixStream {
    let stream = UnixStream::connect(socket).expect("the daemon listens");
    stream.set_read_timeout(Some(LIMIT)).expect("set");
    stream.set_write_timeout(Some(LIMIT)).expect("set");
    stream
}

/// All that comes until the daemon closes.
pub fn rest(stream: &mut impl Read) -> Vec<u8> {
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut part) {
            Ok(0) => return bytes,
            Ok(count) => bytes.extend(part.iter().take(count)),
            // It closed while there was something that it had not read.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return bytes,
            Err(error) => panic!("{error}"),
        }
    }
}

/// What these bytes are answered.
pub fn send(place: &Place, bytes: &[u8]) -> Option<Answer> {
    send_at(&place.file("socket"), bytes)
}

/// The same of the daemon with this socket.
fn send_at(socket: &Path, bytes: &[u8]) -> Option<Answer> {
    let mut stream = connect_at(socket);
    // It may have closed already.
    let _ = stream.write_all(bytes);
    Answer::read(&rest(&mut stream))
}

/// A request as it is sent.
pub fn request(method: &str, uri: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {uri} HTTP/1.1\r\nhost: palisade\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

pub fn ask(place: &Place, method: &str, uri: &str, body: &Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    send(place, request(method, uri, &body).as_bytes()).expect("an answer")
}

/// What the daemon with this socket answers to a request for a resource.
pub fn get_at(socket: &Path, uri: &str) -> Answer {
    send_at(socket, request("GET", uri, "").as_bytes()).expect("an answer")
}

pub fn get(place: &Place, uri: &str) -> Value {
    let answer = ask(place, "GET", uri, &Value::Null);
    assert_eq!(answer.status, 200, "{uri}: {answer:?}");
    answer.json()
}

/// Every URI that a resource leads to.
fn links(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let leads = ["@odata.id", "Uri", "@Redfish.ActionInfo"].contains(&key.as_str());
                match value.as_str().filter(|_| leads) {
                    Some(uri) if uri.starts_with("/redfish/") => drop(found.insert(uri.to_owned())),
                    _ => links(value, found),
                }
            }
        }
        Value::Array(array) => array.iter().for_each(|value| links(value, found)),
        _ => {}
    }
}

/// The URI of the drive at a path.
pub fn drive_uri(place: &Place, path: &str) -> String {
    let find = "/redfish/v1/Systems/local/Storage/palisade/Actions/Oem/PalisadeStorage.FindDrives";
    let found = ask(place, "POST", find, &json!({ "Paths": [path] }));
    assert_eq!(found.status, 200, "{found:?}");
    found.json()["Drives"][0]["@odata.id"].as_str().expect("a URI").to_owned()
}

/// A request for an array on these drives.
pub fn pool(place: &Place, name: &str, raid: &str, drives: &[String]) -> Value {
    let link = |path: &String| json!({ "@odata.id": drive_uri(place, path) });
    let own: Vec<Value> = drives.iter().map(link).collect();
    json!({
        "Name": name,
        "SupportedRAIDTypes": [raid],
        "CapacitySources": [{ "ProvidingDrives": { "Members": own } }],
    })
}

/// A machine need not have these. A test of the crate that makes resources reaches them all.
const OF_MACHINE: &[&str] = &[
    "/EthernetInterfaces/{EthernetInterface}",
    "/Sensors/{Sensor}",
    "/Fans/{Fan}",
    "/PowerSupplies/{PowerSupply}",
    "/PowerSupplies/{PowerSupply}/Metrics",
    "/Drives/{Drive}/Metrics",
    // Nor Samba and NFS-Ganesha.
    "/FileSystems/{FileSystem}",
    "/FileSystems/{FileSystem}/ActionInfo/{Action}",
    "/FileSystems/{FileSystem}/ExportedFileShares",
    "/FileSystems/{FileSystem}/ExportedFileShares/{FileShare}",
];

#[test]
fn every_resource_is_reached_and_is_what_its_route_says() {
    let mut place = Place::new("redfish: routes", 16);
    let drives = place.drives(4);
    let daemon = Daemon::start(&place, 1);
    daemon.create("tank", "5", &drives[..3], &[]);
    daemon.volume(&place, "tank/db", "4M");
    daemon.call(&["export", "create", "tank/db", "--nvme-tcp", "127.0.0.1:0", "--any-host"]);
    daemon.call(&["array", "scrub", "tank", "--check"]);
    daemon.settle("tank");
    let slow = slow(&place, FIND);
    assert_eq!(slow.json()["Drives"], json!([]), "{slow:?}");
    let unlinked = ["/redfish", "/redfish/v1/odata", "/redfish/v1/openapi.json"];
    let mut open: BTreeSet<String> = unlinked.map(str::to_owned).into();
    open.extend(["/redfish/v1", "/redfish/v1/openapi.yaml"].map(str::to_owned));
    let (mut seen, mut rows) = (BTreeSet::new(), BTreeSet::new());
    while let Some(uri) = open.pop_first() {
        if !seen.insert(uri.clone()) {
            continue;
        }
        let found = routes::find(&uri).unwrap_or_else(|| panic!("no route leads to {uri}"));
        rows.insert(found.route.uri);
        let answer = ask(&place, "GET", &uri, &Value::Null);
        assert_eq!(answer.status, 200, "{uri}: {answer:?}");
        assert_eq!(answer.header("odata-version"), "4.0", "{uri}");
        assert_eq!(answer.header("allow"), found.route.allow(), "{uri}");
        if !answer.header("content-type").starts_with("application/json") {
            continue;
        }
        let json = answer.json();
        if !found.route.schema.is_empty() {
            assert_eq!(json["@odata.type"], found.route.schema, "{uri}");
            assert_eq!(json["@odata.id"], uri.as_str());
            assert!(answer.header("link").contains("rel=describedby"), "{uri}");
        }
        links(&json, &mut open);
    }
    let reads = |row: &&routes::Route| row.privilege(Method::Get).is_some();
    let is_of_machine = |uri: &&str| OF_MACHINE.iter().any(|tail| uri.ends_with(tail));
    let uris = ROUTES.iter().filter(reads).map(|row| row.uri);
    let missed: Vec<_> = uris.filter(|uri| !rows.contains(uri) && !is_of_machine(uri)).collect();
    // Schemas are found by $metadata, which is no JSON; a monitor is told to who asked for a
    // change.
    let others = [
        "/redfish/v1/$metadata",
        "/redfish/v1/Schemas/{File}",
        "/redfish/v1/TaskService/TaskMonitors/{TaskMonitor}",
        // Without a state directory there is none.
        "/redfish/v1/Managers/palisade/NetworkProtocol/HTTPS/Certificates/{Certificate}",
        "/redfish/v1/AccountService/Accounts/{ManagerAccount}",
        "/redfish/v1/SessionService/Sessions/{Session}",
        // It does not end, and nobody is subscribed.
        "/redfish/v1/EventService/SSE",
        "/redfish/v1/EventService/Subscriptions/{EventDestination}",
        // It is Prometheus', not Redfish's.
        "/metrics",
    ];
    assert!(missed.iter().all(|uri| others.contains(uri)), "{missed:?}");
    daemon.stop();
}

/// Asks for an action without waiting for it, and then for its answer.
fn slow(place: &Place, uri: &str) -> Answer {
    let impatient = request("POST", uri, "{}").replacen("\r\n", "\r\nprefer: respond-async\r\n", 1);
    let begun = send(place, impatient.as_bytes()).expect("an answer");
    assert_eq!((begun.status, &begun.json()["TaskState"]), (202, &"Running".into()), "{begun:?}");
    let monitor = begun.header("location").to_owned();
    assert_eq!(begun.json()["TaskMonitor"], monitor.as_str());
    until("the answer", LIMIT, || {
        let answer = ask(place, "GET", &monitor, &Value::Null);
        (answer.status != 202).then_some(answer)
    })
}

#[test]
fn a_change_that_nobody_waits_for_is_answered_by_its_monitor() {
    let mut place = Place::new("redfish: slow changes", 16);
    let drives = place.drives(3);
    let daemon = Daemon::start(&place, 1);
    let body = pool(&place, "tank", "RAID5", &drives).to_string();
    let impatient = |body: &str| {
        let request = request("POST", POOLS, body);
        let request = request.replacen("\r\n", "\r\nprefer: respond-async\r\n", 1);
        send(&place, request.as_bytes()).expect("an answer")
    };
    let begun = impatient(&body);
    assert_eq!(begun.status, 202, "{begun:?}");
    let answered = |begun: &Answer| {
        until("the answer", LIMIT, || {
            let answer = ask(&place, "GET", begun.header("location"), &Value::Null);
            (answer.status != 202).then_some(answer)
        })
    };
    let made = answered(&begun);
    assert_eq!((made.status, &made.json()["Name"]), (201, &"tank".into()), "{made:?}");
    assert_eq!(get(&place, made.header("location"))["Name"], "tank");
    // It is kept, and so is what a refusal says.
    assert_eq!(answered(&begun).body, made.body);
    let refused = answered(&impatient(&body));
    assert_eq!(refused.status, 409, "{refused:?}");
    let tasks = get(&place, "/redfish/v1/TaskService/Tasks?$expand=.");
    let states: Vec<&Value> =
        tasks["Members"].as_array().expect("members").iter().map(|t| &t["TaskState"]).collect();
    assert_eq!(states, ["Completed", "Exception"]);
    daemon.stop();
}

#[test]
fn schemas_of_our_own_are_served() {
    let place = Place::new("redfish: schemas", 16);
    let daemon = Daemon::start(&place, 1);
    let metadata = ask(&place, "GET", "/redfish/v1/$metadata", &Value::Null);
    assert_eq!(metadata.header("content-type"), "application/xml;charset=utf-8");
    let own: Vec<&str> =
        metadata.body.split("Uri=\"").filter(|part| part.starts_with("/redfish/")).collect();
    assert!(!own.is_empty(), "{}", metadata.body);
    for part in own {
        let (uri, _) = part.split_once('"').expect("an end");
        let schema = ask(&place, "GET", uri, &Value::Null);
        assert_eq!(schema.status, 200, "{uri}");
        assert!(schema.body.contains("<edmx:Edmx"), "{uri}: {}", schema.body);
    }
    let missing = ask(&place, "GET", "/redfish/v1/Schemas/None.xml", &Value::Null);
    assert_eq!(missing.status, 404);
    daemon.stop();
}

#[test]
fn what_is_not_there_and_what_can_not_be_done_is_told() {
    let place = Place::new("redfish: refusals", 16);
    let daemon = Daemon::start(&place, 1);
    let none = format!("{POOLS}/00000000-0000-0000-0000-000000000000");
    for uri in ["/redfish/v2", "/redfish/v1/None", "/redfish/v1//", &none, "/redfish/v1/%ff"] {
        let answer = ask(&place, "GET", uri, &Value::Null);
        assert_eq!((answer.status, answer.message().as_str()), (404, "ResourceMissingAtURI"));
    }
    for method in ["POST", "PATCH", "PUT", "DELETE", "TRACE", "OPTIONS", "NONE"] {
        let answer = ask(&place, method, "/redfish/v1", &Value::Null);
        assert_eq!((answer.status, answer.header("allow")), (405, "GET, HEAD"), "{method}");
        assert_eq!(answer.message(), "OperationNotAllowed");
    }
    let answer = ask(&place, "GET", &format!("{POOLS}/x/Actions/None"), &Value::Null);
    assert_eq!(answer.status, 404);

    let whole = ask(&place, "GET", "/redfish/v1/Chassis", &Value::Null);
    let head = ask(&place, "HEAD", "/redfish/v1/Chassis", &Value::Null);
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    for name in ["content-length", "content-type", "allow", "odata-version", "link"] {
        assert_eq!(head.header(name), whole.header(name), "{name}");
        assert!(!head.header(name).is_empty(), "{name}");
    }
    let other = b"GET /redfish/v1 HTTP/1.1\r\nhost: p\r\nconnection: close\r\n\
        odata-version: 3.0\r\n\r\n";
    assert_eq!(send(&place, other).expect("an answer").status, 412);
    for (query, status) in [("$none", 501), ("$expand=x", 400), ("$top=-1", 400)] {
        let uri = format!("/redfish/v1/Chassis?{query}");
        let answer = ask(&place, "GET", &uri, &Value::Null);
        assert_eq!(answer.status, status, "{uri}: {answer:?}");
    }
    assert_eq!(get(&place, "/redfish/v1/Chassis?$expand=.")["Members"][0]["Id"], "local");
    assert_eq!(get(&place, "/redfish/v1/Chassis?only")["Id"], "local");
    daemon.stop();
}

#[test]
fn a_body_is_read_strictly() {
    let mut place = Place::new("redfish: bodies", 16);
    let drives = place.drives(3);
    let daemon = Daemon::start(&place, 1);
    let right = pool(&place, "tank", "RAID5", &drives);
    let with = |key: &str, value: Value| {
        let mut body = right.clone();
        body[key] = value;
        body
    };
    for (body, message) in [
        (with("Size", json!(1)), "PropertyUnknown"),
        (with("Name", json!(1)), "PropertyValueTypeError"),
        (with("SupportedRAIDTypes", json!(["RAID7"])), "PropertyValueNotInList"),
    ] {
        let answer = ask(&place, "POST", POOLS, &body);
        assert_eq!((answer.status, answer.message().as_str()), (400, message), "{answer:?}");
    }
    let whole = right.to_string();
    let doubled = whole.replacen('{', "{\"Name\":\"other\",", 1);
    for (body, message) in [
        (doubled.as_str(), "PropertyDuplicate"),
        (&whole[..whole.len() - 1], "MalformedJSON"),
        ("", "PropertyMissing"),
        ("[]", "UnrecognizedRequestBody"),
    ] {
        let answer = send(&place, request("POST", POOLS, body).as_bytes()).expect("an answer");
        assert_eq!((answer.status, answer.message().as_str()), (400, message), "{answer:?}");
    }
    let deep = "[".repeat(100_000);
    let answer = send(&place, request("POST", POOLS, &deep).as_bytes()).expect("an answer");
    assert_eq!(answer.status, 400);
    let text = request("POST", POOLS, &whole).replace("application/json", "text/plain");
    assert_eq!(send(&place, text.as_bytes()).expect("an answer").status, 415);
    let query = ask(&place, "POST", &format!("{POOLS}?only"), &right);
    assert_eq!(query.status, 400);
    assert_eq!(get(&place, POOLS)["Members@odata.count"], 0);
    daemon.stop();
}

/// An action of an array; one that goes on in the background names its job.
fn act_on(place: &Place, pool: &str, name: &str, body: &Value) {
    let uri = format!("{pool}/Actions/Oem/PalisadeStoragePool.{name}");
    let answer = ask(place, "POST", &uri, body);
    assert_eq!(answer.status, 204, "{name}: {answer:?}");
    let job = answer.headers.get("location");
    assert_eq!(job.is_some(), ["Scrub", "ReplaceDrive"].contains(&name), "{answer:?}");
    if let Some(job) = job {
        let kind = if name == "Scrub" { "scrub" } else { "rebuild" };
        let told = get(place, job).to_string().to_lowercase();
        assert!(told.contains(kind), "{told}");
    }
}

#[test]
fn arrays_volumes_and_exports_come_and_go() {
    let mut place = Place::new("redfish: changes", 16);
    let drives = place.drives(4);
    let daemon = Daemon::start(&place, 1);
    let wanted = pool(&place, "tank", "RAID5", &drives[..3]);
    let plan = request("POST", POOLS, &wanted.to_string()).replacen(
        "\r\n",
        "\r\npalisade-plan: only\r\n",
        1,
    );
    let plan = send(&place, plan.as_bytes()).expect("an answer");
    assert_eq!((plan.status, &plan.json()["Plan"]["Level"]), (200, &"5".into()), "{plan:?}");
    assert_eq!(get(&place, POOLS)["Members@odata.count"], 0);

    let made = ask(&place, "POST", POOLS, &wanted);
    let uri = made.header("location").to_owned();
    assert_eq!((made.status, &made.json()["@odata.id"]), (201, &json!(uri)), "{made:?}");
    assert_eq!(get(&place, &uri)["Name"], "tank");
    let source = json!([{ "ProvidingPools": { "Members": [{ "@odata.id": uri }] } }]);
    let body = json!({ "Name": "db", "CapacityBytes": 4 << 20, "CapacitySources": source });
    let volume = ask(&place, "POST", VOLUMES, &body);
    assert_eq!(volume.status, 201, "{volume:?}");
    let volume = volume.header("location").to_owned();
    let grown = ask(&place, "PATCH", &volume, &json!({ "CapacityBytes": 8 << 20 }));
    assert_eq!((grown.status, &grown.json()["CapacityBytes"]), (200, &json!(8 << 20)));
    let less = json!({ "CapacityBytes": 4 << 20 });
    let shrunk = ask(&place, "PATCH", &volume, &less);
    assert_eq!((shrunk.status, shrunk.message().as_str()), (403, "ConfirmationRequired"));
    let shrunk = agreed(&place, "PATCH", &volume, &less);
    assert_eq!((shrunk.status, &shrunk.json()["CapacityBytes"]), (200, &json!(4 << 20)));

    let body = json!({
        "VolumeInfo": [{ "Volume": { "@odata.id": volume } }],
        "Oem": { "Palisade": { "Listeners": ["127.0.0.1:0"] } },
    });
    let export = ask(&place, "POST", "/redfish/v1/Fabrics/nbd/Connections", &body);
    assert_eq!(export.status, 201, "{export:?}");
    assert_eq!(daemon.call(&["export", "list"])["exports"][0]["volume"], "db");
    // A volume that is exported stays.
    let kept = ask(&place, "DELETE", &volume, &Value::Null);
    assert_eq!((kept.status, kept.message().as_str()), (403, "VolumeExported"), "{kept:?}");
    let export = export.header("location");
    assert_eq!(ask(&place, "DELETE", export, &Value::Null).status, 204, "{export}");
    assert_eq!(agreed(&place, "DELETE", &volume, &Value::Null).status, 204, "{volume}");
    for uri in [export, &volume] {
        assert_eq!(ask(&place, "GET", uri, &Value::Null).status, 404, "{uri}");
    }

    let act = |name: &str, body: Value| act_on(&place, &uri, name, &body);
    act("FailDrive", json!({ "Drive": { "@odata.id": drive_uri(&place, &drives[1]) } }));
    assert_eq!(get(&place, &uri)["Status"]["Health"], "Warning");
    let with = json!({ "@odata.id": drive_uri(&place, &drives[3]) });
    act("ReplaceDrive", json!({ "Slot": 1, "With": with }));
    daemon.settle("tank");
    act("Scrub", json!({ "Mode": "Check" }));
    daemon.settle("tank");
    act("Stop", json!({}));
    assert_eq!(get(&place, &uri)["Status"]["State"], "StandbyOffline");
    act("Assemble", json!({}));
    assert_eq!(get(&place, &uri)["Status"]["State"], "Enabled");
    assert!([200, 204].contains(&agreed(&place, "DELETE", &uri, &Value::Null).status));
    assert_eq!(get(&place, POOLS)["Members@odata.count"], 0);
    assert_eq!(get(&place, DRIVES)["Members@odata.count"], 4);
    daemon.stop();
}

#[test]
fn a_volume_on_drives_is_made_with_its_array_or_not_at_all() {
    let mut place = Place::new("redfish: a volume on drives", 16);
    let drives = place.drives(3);
    let daemon = Daemon::start(&place, 1);
    let link = |path: &String| json!({ "@odata.id": drive_uri(&place, path) });
    let links: Vec<Value> = drives.iter().map(link).collect();
    let body = |bytes: u64| {
        json!({
            "Name": "db", "RAIDType": "RAID5", "CapacityBytes": bytes,
            "Links": { "Drives": links },
        })
    };
    let refused = ask(&place, "POST", VOLUMES, &body(1 << 40));
    assert_eq!(refused.status, 409, "{refused:?}");
    assert_eq!(get(&place, POOLS)["Members@odata.count"], 0);
    let made = ask(&place, "POST", VOLUMES, &body(4 << 20));
    assert_eq!((made.status, &made.json()["Name"]), (201, &"db".into()), "{made:?}");
    assert_eq!(daemon.show("db")["volumes"][0]["size_bytes"], 4 << 20);
    daemon.stop();
}

#[test]
fn a_change_is_carried_to_its_end_though_its_client_has_gone() {
    let mut place = Place::new("redfish: a client goes", 16);
    let drives = place.drives(3);
    let daemon = Daemon::start(&place, 1);
    let body = pool(&place, "tank", "RAID5", &drives).to_string();
    let mut stream = connect(&place);
    stream.write_all(request("POST", POOLS, &body).as_bytes()).expect("sent");
    drop(stream);
    until("the array", LIMIT, || (get(&place, POOLS)["Members@odata.count"] == 1).then_some(()));
    // A body that was cut off asks for nothing.
    let pool = get(&place, POOLS)["Members"][0]["@odata.id"].as_str().expect("a URI").to_owned();
    let stop = format!("{pool}/Actions/Oem/PalisadeStoragePool.Stop");
    let cut = format!("POST {stop} HTTP/1.1\r\nhost: p\r\ncontent-length: 2\r\n\r\n");
    let mut stream = connect(&place);
    stream.write_all(cut.as_bytes()).expect("sent");
    stream.shutdown(Shutdown::Write).expect("shut");
    rest(&mut stream);
    assert_eq!(daemon.show("tank")["state"], "optimal");
    daemon.stop();
}

/// Asks with a header, or several.
fn ask_with(place: &Place, (method, uri): (&str, &str), header: &str, body: &Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let text = request(method, uri, &body).replacen("\r\n", &format!("\r\n{header}\r\n"), 1);
    send(place, text.as_bytes()).expect("an answer")
}

/// Deletes what is there, as it is: by its plan's token.
fn delete_whatever_it_is(place: &Place, uri: &str) {
    let delete = |headers: &str| ask_with(place, ("DELETE", uri), headers, &Value::Null);
    let asked = delete("If-Match: *");
    assert_eq!((asked.status, asked.message().as_str()), (403, "ConfirmationRequired"));
    let token = asked.json()["Token"].as_str().expect("a token").to_owned();
    let gone = delete(&format!("If-Match: *\r\nPalisade-Confirm: {token}"));
    assert_eq!(gone.status, 204, "{gone:?}");
}

#[test]
fn a_change_of_what_is_no_longer_so_is_refused() {
    let mut place = Place::new("redfish: ETags", 16);
    let drives = place.drives(3);
    let daemon = Daemon::start(&place, 1);
    let made = ask(&place, "POST", POOLS, &pool(&place, "tank", "RAID5", &drives));
    let pool = made.header("location").to_owned();
    assert_eq!(made.header("etag"), made.json()["@odata.etag"].as_str().expect("an ETag"));
    let source = json!([{ "ProvidingPools": { "Members": [{ "@odata.id": pool }] } }]);
    let body = json!({ "Name": "db", "CapacityBytes": 4 << 20, "CapacitySources": source });
    let made = ask(&place, "POST", VOLUMES, &body);
    let (volume, first) = (made.header("location").to_owned(), made.header("etag").to_owned());
    assert!(first.starts_with("W/\""), "{made:?}");

    let with = |method: &str, uri: &str, header: &str, body: &Value| {
        ask_with(&place, (method, uri), header, body)
    };
    let known = with("GET", &volume, &format!("If-None-Match: \"x\", {first}"), &Value::Null);
    assert_eq!((known.status, known.header("etag"), &*known.body), (304, &*first, ""));
    let head = with("HEAD", &volume, "x: y", &Value::Null);
    assert_eq!((head.status, head.header("etag"), &*head.body), (200, &*first, ""));
    assert!(head.header("content-length").parse::<usize>().is_ok_and(|length| length > 100));
    let query = ask(&place, "GET", &format!("{VOLUMES}?$expand=."), &Value::Null);
    assert_eq!(
        (query.header("etag"), &query.json()["Members"][0]["@odata.etag"]),
        ("", &json!(first))
    );

    // Two read it; one changes it.
    let grow = |tag: &str, bytes: u64| {
        with("PATCH", &volume, &format!("If-Match: {tag}"), &json!({ "CapacityBytes": bytes }))
    };
    let grown = grow(&first, 8 << 20);
    let second = grown.header("etag").to_owned();
    assert_eq!((grown.status, grown.json()["@odata.etag"] == second), (200, true), "{grown:?}");
    assert_ne!(first, second);
    let late = grow(&first, 12 << 20);
    assert_eq!((late.status, late.message().as_str()), (412, "PreconditionFailed"), "{late:?}");
    assert_eq!(get(&place, &volume)["CapacityBytes"], 8 << 20);
    assert_eq!(grow("\"unended", 12 << 20).status, 412);
    let gone = with("DELETE", &volume, &format!("If-Match: {first}"), &Value::Null);
    assert_eq!(gone.status, 412, "{gone:?}");

    // Of several that come at once one is the first.
    let (grow, second) = (&grow, &second);
    let told: Vec<u16> = thread::scope(|scope| {
        let asks = (0..8).map(|more| scope.spawn(move || grow(second, (12 + more) << 20).status));
        asks.collect::<Vec<_>>().into_iter().map(|one| one.join().expect("asked")).collect()
    });
    assert_eq!(told.iter().filter(|status| **status == 200).count(), 1, "{told:?}");
    assert_eq!(told.iter().filter(|status| **status == 412).count(), 7, "{told:?}");

    // What an action and a new volume are held against is the array and the collection.
    let scrub = format!("{pool}/Actions/Oem/PalisadeStoragePool.Scrub");
    let stale = with("POST", &scrub, &format!("If-Match: {first}"), &json!({}));
    assert_eq!(stale.status, 412, "{stale:?}");
    let tag = get(&place, VOLUMES)["@odata.etag"].as_str().expect("an ETag").to_owned();
    let more = json!({ "Name": "log", "CapacityBytes": 4 << 20, "CapacitySources": source });
    let made = with("POST", VOLUMES, &format!("If-Match: {tag}"), &more);
    assert_eq!(made.status, 201, "{made:?}");
    let third = json!({ "Name": "wal", "CapacityBytes": 4 << 20, "CapacitySources": source });
    assert_eq!(with("POST", VOLUMES, &format!("If-Match: {tag}"), &third).status, 412);
    delete_whatever_it_is(&place, made.header("location"));
    assert_eq!(with("DELETE", "/redfish/v1/Chassis", "If-Match: *", &Value::Null).status, 405);
    let nothing = with("DELETE", &format!("{VOLUMES}/x"), "If-Match: \"a\"", &Value::Null);
    assert_eq!(nothing.status, 404, "{nothing:?}");
    daemon.stop();
}
