//! Events as clients see them: streams, over restarts, too, the log, and webhooks.

use crate::common::place::{Daemon, Place};
use crate::common::{LIMIT, until};
use crate::redfish::{Answer, ask, connect, get};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;

const SERVICE: &str = "/redfish/v1/EventService";
const ENTRIES: &str = "/redfish/v1/Managers/palisade/LogServices/Events/Entries";

fn place(what: &str) -> Place {
    let mut place = Place::new(what, 64);
    place.more = format!("state = {}\n", Value::from(place.file("state").to_string_lossy()));
    place
}

/// A stream, open, and the last event before it.
struct Stream(BufReader<UnixStream>, u64);

impl Stream {
    /// Opens one, with more headers.
    fn open(place: &Place, query: &str, headers: &str) -> Self {
        let mut stream = connect(place);
        let request =
            format!("GET {SERVICE}/SSE{query} HTTP/1.1\r\nhost: palisade\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut own = Self(BufReader::new(stream), 0);
        let head = own.line().expect("an answer");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        // Once the first part is there, the stream is open.
        while own.line().expect("a comment") != ":" {}
        if !headers.contains("last-event-id") {
            let line = own.line().expect("an identifier");
            let id = line.strip_prefix("id: ").expect("an identifier");
            own.1 = id.parse().expect("a number");
        }
        own
    }

    /// The next line; none at the end.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let count = self.0.read_line(&mut line).expect("in time");
        (count > 0).then(|| line.trim_end().to_owned())
    }

    /// The next event: its identifier, its message's name and its record; none at the end.
    fn event(&mut self) -> Option<(u64, String, Value)> {
        let mut id = 0;
        loop {
            let line = self.line()?;
            if let Some(text) = line.strip_prefix("id: ") {
                id = text.parse().expect("a number");
            }
            if line == "0" {
                // The end of an answer in parts.
                return None;
            }
            let Some(data) = line.strip_prefix("data: ") else { continue };
            let event: Value = serde_json::from_str(data).expect("JSON");
            let record = event["Events"][0].clone();
            let name = record["MessageId"].as_str().expect("a message").rsplit('.').next();
            return Some((id, name.expect("a name").to_owned(), record));
        }
    }

    /// Reads up to an event of this name: the names of all that came, and its record.
    fn until(&mut self, name: &str) -> (Vec<String>, Value) {
        let mut names = Vec::new();
        loop {
            let (_, own, record) = self.event().unwrap_or_else(|| panic!("no {name}: {names:?}"));
            names.push(own.clone());
            if own == name {
                return (names, record);
            }
        }
    }

    /// Reads to the end.
    fn end(&mut self) {
        while self.event().is_some() {}
    }
}

fn ids(place: &Place) -> Vec<u64> {
    let entries = get(place, &format!("{ENTRIES}?$top=4096"));
    let id = |entry: &Value| entry["Id"].as_str().expect("an id").parse().expect("a number");
    entries["Members"].as_array().expect("members").iter().map(id).collect()
}

#[test]
fn a_stream_tells_the_life_of_an_array() {
    let mut place = place("events: life");
    let drives = place.drives(4);
    let daemon = Daemon::start(&place, 1);
    let mut stream = Stream::open(&place, "", "");
    daemon.create("tank", "5", &drives[..3], &[]);
    daemon.volume(&place, "tank/db", "4M");
    let (names, record) = stream.until("ExportCreated");
    assert_eq!(names, ["ArrayCreated", "VolumeCreated", "ExportCreated"]);
    let origin = record["OriginOfCondition"]["@odata.id"].as_str().expect("an origin");
    assert_eq!(get(&place, origin)["@odata.id"], origin);
    daemon.call(&["array", "fail", "tank", "--drive", "slot:0"]);
    let (names, record) = stream.until("ArrayDegraded");
    assert_eq!(names, ["DriveOut", "ArrayDegraded"]);
    assert_eq!(
        (&record["MessageSeverity"], &record["EventType"]),
        (&json!("Warning"), &json!("Alert"))
    );
    assert!(record["Resolution"].as_str().is_some_and(|text| text.contains("array replace tank")));
    daemon.call(&["array", "replace", "tank", "--slot", "0", "--with", &drives[3]]);
    let (mut names, _) = stream.until("ArrayOptimal");
    // The engine may tell that before the rebuild is over.
    if !names.iter().any(|name| name == "JobCompleted") {
        names.extend(stream.until("JobCompleted").0);
    }
    for name in ["DriveReplaced", "JobStarted", "DriveBack", "JobCompleted"] {
        assert!(names.iter().any(|own| own == name), "{name}: {names:?}");
    }
    // The log has what the stream told.
    let all =
        get(&place, &format!("{ENTRIES}?$filter=MessageId%20eq%20'Palisade.1.0.ArrayDegraded'"));
    assert_eq!(all["Members"][0]["Message"], "array tank is degraded", "{all}");
    daemon.call(&["array", "stop", "tank"]);
    let (names, _) = stream.until("ArrayStopped");
    assert!(!names.iter().any(|name| name == "ArrayDeleted"), "{names:?}");
    daemon.call(&["array", "assemble", "tank"]);
    stream.until("ArrayStarted");
    daemon.stop();
    let (names, _) = stream.until("DaemonEnds");
    assert!(!names.iter().any(|name| name == "ArrayDeleted"), "{names:?}");
    stream.end();
}

#[test]
fn who_comes_back_is_told_what_it_missed_over_a_stop_and_a_kill() {
    let mut place = place("events: restarts");
    let drives = place.drives(2);
    let daemon = Daemon::start(&place, 1);
    let mut stream = Stream::open(&place, "", "");
    let mut silent = Stream::open(&place, "?$filter=Severity%20eq%20'Critical'", "");
    daemon.create("tank", "1", &drives, &[]);
    let (first, name, _) = stream.event().expect("an event");
    assert_eq!(name, "ArrayCreated");
    assert!(silent.1 < first, "whoever heard nothing knows where it was");
    daemon.call(&["volume", "create", "tank/a", "--size", "4M"]);
    daemon.stop();
    // All of the end is told before the streams end.
    let (names, _) = stream.until("ArrayStopped");
    assert!(names.iter().any(|name| name == "DaemonEnds"), "{names:?}");
    silent.end();
    let daemon = Daemon::start(&place, 1);
    let mut back = Stream::open(&place, "", &format!("last-event-id: {first}\r\n"));
    let (second, name, _) = back.event().expect("an event");
    assert_eq!((second, name.as_str()), (first + 1, "VolumeCreated"));
    let (names, _) = back.until("DaemonStarted");
    assert!(names.iter().any(|name| name == "DaemonEnds"), "{names:?}");
    daemon.call(&["volume", "create", "tank/b", "--size", "4M"]);
    let (told, name, _) = back.event().expect("an event");
    assert_eq!(name, "VolumeCreated");
    daemon.kill();
    let daemon = Daemon::start(&place, 1);
    let newest = ids(&place)[0];
    assert!(newest > told, "{newest} after {told}");
    let mut all = ids(&place);
    all.reverse();
    assert!(all.is_sorted_by(|a, b| a < b), "{all:?}");
    // One that is not known may be of any time: all that is kept, and a notice before it.
    let mut lost = Stream::open(&place, "", "last-event-id: 99999999999\r\n");
    let (id, name, _) = lost.event().expect("a notice");
    assert!(id < all[0] && name == "EventBufferExceeded", "{id} {name}");
    assert_eq!(lost.event().expect("the oldest").0, all[0]);
    daemon.stop();
}

fn log_in(place: &Place, password: &str) -> Answer {
    let body = json!({"UserName": "root", "Password": password});
    ask(place, "POST", "/redfish/v1/SessionService/Sessions", &body)
}

#[test]
fn a_stream_ends_with_its_session_and_tells_of_logins() {
    let place = place("events: sessions");
    let daemon = Daemon::start(&place, 1);
    let new = json!({"UserName": "root", "Password": "correct horse", "RoleId": "Administrator"});
    let mut watch = Stream::open(&place, "", "");
    assert_eq!(ask(&place, "POST", "/redfish/v1/AccountService/Accounts", &new).status, 201);
    watch.until("AccountCreated");
    assert_eq!(log_in(&place, "wrong horse").status, 401);
    let (_, record) = watch.until("LoginRefused");
    assert_eq!(record["MessageArgs"][0], "root");
    assert!(record["MessageArgs"][1].as_str().is_some_and(|from| from.starts_with("socket")));
    let session = log_in(&place, "correct horse");
    watch.until("LoggedIn");
    let token = session.header("x-auth-token").to_owned();
    let mut stream = Stream::open(&place, "", &format!("x-auth-token: {token}\r\n"));
    let ended = ask(&place, "DELETE", session.header("location"), &Value::Null);
    assert_eq!(ended.status, 204, "{ended:?}");
    stream.end();
    daemon.stop();
}

#[test]
fn the_configuration_and_tests_are_told() {
    let place = place("events: configuration");
    let daemon = Daemon::start(&place, 1);
    let mut stream = Stream::open(&place, "", "");
    let again = || {
        let process = Pid::from_raw(daemon.id() as i32).expect("a process");
        kill_process(process, Signal::HUP).expect("signalled");
    };
    again();
    stream.until("ConfigurationReloaded");
    let config = place.file("palisade.toml");
    let right = std::fs::read_to_string(&config).expect("there");
    std::fs::write(&config, format!("{right}\nnonsense = 1\n")).expect("written");
    again();
    stream.until("ConfigurationNotTaken");
    let test = format!("{SERVICE}/Actions/EventService.SubmitTestEvent");
    let asked =
        ask(&place, "POST", &test, &json!({"MessageId": "Alert.1.0.X", "Message": "hello"}));
    assert_eq!(asked.status, 204, "{asked:?}");
    let (_, record) = stream.until("TestEvent");
    assert_eq!(record["MessageArgs"], json!(["Alert.1.0.X", "hello"]));
    daemon.stop();
}

#[test]
fn what_can_not_be_streamed_is_refused() {
    let place = place("events: refusals");
    let daemon = Daemon::start(&place, 1);
    for (query, status) in [("$filter=Name%20eq%20'x'", 400), ("$filter=", 400), ("$top=1", 501)] {
        let answer = ask(&place, "GET", &format!("{SERVICE}/SSE?{query}"), &Value::Null);
        assert_eq!(answer.status, status, "{query}: {answer:?}");
    }
    // Whoever had events of another server has had none of this one.
    let mut other = Stream::open(&place, "", "last-event-id: x\r\n");
    assert_eq!(other.event().expect("a notice").1, "EventBufferExceeded");
    drop(other);
    let head = ask(&place, "HEAD", &format!("{SERVICE}/SSE"), &Value::Null);
    assert_eq!((head.status, head.header("content-type")), (200, "text/event-stream"));
    let streams: Vec<_> = (0..32).map(|_| Stream::open(&place, "", "")).collect();
    let full = ask(&place, "GET", &format!("{SERVICE}/SSE"), &Value::Null);
    assert_eq!((full.status, full.header("retry-after")), (503, "10"), "{full:?}");
    let one = get(&place, &format!("{SERVICE}/Subscriptions?$expand=."));
    let one = &one["Members"][0];
    assert_eq!((&one["SubscriptionType"], &one["Protocol"]), (&json!("SSE"), &json!("Redfish")));
    let mut streams = streams;
    let ended = ask(&place, "DELETE", one["@odata.id"].as_str().expect("a URI"), &Value::Null);
    assert_eq!(ended.status, 204, "{ended:?}");
    drop(streams.drain(1..));
    daemon.stop();
}

/// The next request that a receiver is sent, which it answers.
fn received(listener: &TcpListener, status: &str) -> String {
    let (mut stream, _) = listener.accept().expect("somebody calls");
    stream.set_read_timeout(Some(LIMIT)).expect("set");
    let mut reader = BufReader::new(stream.try_clone().expect("cloned"));
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("in time");
        if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = text.trim().parse().expect("a number");
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("in time");
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(answer.as_bytes()).expect("written");
    format!("{head}\r\n{}", String::from_utf8_lossy(&body))
}

#[test]
fn a_webhook_is_told_after_failures_and_after_a_restart() {
    let place = place("events: webhook");
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let uri = format!("http://{}/hook", listener.local_addr().expect("bound"));
    let daemon = Daemon::start(&place, 1);
    let subscriptions = format!("{SERVICE}/Subscriptions");
    for (key, value, message) in [
        ("Destination", json!("ftp://receiver.example/"), "PropertyValueFormatError"),
        ("Destination", json!("http://a:secret@receiver.example/"), "PropertyValueFormatError"),
        ("Protocol", json!("FTP"), "PropertyValueNotInList"),
        ("HttpHeaders", json!([{"Host": "x"}]), "PropertyValueError"),
    ] {
        let mut body = json!({"Protocol": "Redfish", "Destination": uri});
        body[key] = value;
        let answer = ask(&place, "POST", &subscriptions, &body);
        assert_eq!((answer.status, answer.message().as_str()), (400, message), "{answer:?}");
    }
    let new = json!({
        "Protocol": "Redfish", "Destination": uri, "Context": "mine",
        "HttpHeaders": [{"Authorization": "Bearer hidden"}],
        "MessageIds": ["Palisade.1.0.TestEvent"],
    });
    let made = ask(&place, "POST", &subscriptions, &new);
    assert_eq!((made.status, made.header("location").is_empty()), (201, false), "{made:?}");
    let own = made.header("location").to_owned();
    assert_eq!(
        (&made.json()["HttpHeaders"], &made.json()["Context"]),
        (&json!([]), &json!("mine"))
    );
    let test = format!("{SERVICE}/Actions/EventService.SubmitTestEvent");
    let tell = |text: &str| {
        let body = json!({"MessageId": "x", "Message": text});
        assert_eq!(ask(&place, "POST", &test, &body).status, 204);
    };
    tell("first");
    for status in ["500 No", "503 Later", "204 Done"] {
        let request = received(&listener, status);
        assert!(request.to_ascii_lowercase().contains("authorization: bearer hidden"), "{request}");
        assert!(request.contains("first") && request.contains("\"Context\":\"mine\""), "{request}");
    }
    until("a delivery", LIMIT, || {
        let own = get(&place, &own);
        (own["Oem"]["Palisade"]["DeliveredEvents"] == 1 && own["Status"]["Health"] == "OK")
            .then_some(())
    });
    daemon.kill();
    let daemon = Daemon::start(&place, 1);
    assert_eq!(get(&place, &own)["Destination"], uri.as_str());
    tell("second");
    // What was told just before a kill may be told again.
    let again = received(&listener, "200 OK");
    assert!(again.contains("second") || received(&listener, "200 OK").contains("second"));
    assert_eq!(ask(&place, "PATCH", &own, &json!({"Context": "other"})).json()["Context"], "other");
    tell("third");
    assert!(received(&listener, "200 OK").contains("\"Context\":\"other\""));
    assert_eq!(ask(&place, "DELETE", &own, &Value::Null).status, 204);
    assert_eq!(get(&place, &subscriptions)["Members"], json!([]));
    let said = daemon.said();
    assert!(!said.contains("hidden"), "{said}");
    daemon.stop();
}

/// The alert of a message; none if none stands.
fn alert(daemon: &Daemon, message: &str) -> Option<Value> {
    let all = daemon.call(&["alert", "list"]);
    let all = all["alerts"].as_array().expect("alerts").clone();
    all.into_iter().find(|own| own["message"] == message)
}

#[test]
fn alerts_are_listed_acknowledged_and_tested() {
    let mut place = place("events: alerts");
    let drives = place.drives(3);
    let daemon = Daemon::start(&place, 1);
    let mut stream = Stream::open(&place, "", "");
    daemon.create("tank", "1", &drives[..2], &[]);
    daemon.call(&["array", "fail", "tank", "--drive", "slot:0"]);
    stream.until("CriticalAlertRaised");
    let degraded = alert(&daemon, "ArrayDegraded").expect("it is degraded");
    let out = alert(&daemon, "DriveOut").expect("a drive is out");
    assert_eq!((&degraded["severity"], &out["severity"]), (&json!("warning"), &json!("critical")));
    assert!(out["do"].as_str().is_some_and(|text| text.contains("array replace tank")), "{out}");
    let conditions = get(&place, "/redfish/v1/ServiceConditions");
    assert_eq!(conditions["HealthRollup"], "Critical");
    let pool = get(&place, degraded["of"].as_str().expect("a URI"));
    assert_eq!(pool["Status"]["Conditions"][0]["MessageId"], "Palisade.1.0.ArrayDegraded");
    // In short, beside whatever else this machine may lack.
    let seen = || {
        let short = daemon.call(&["status"])["alerts"].clone();
        assert_eq!(short["worst"], "critical");
        let number = |key: &str| short[key].as_u64().expect("a number");
        assert!(number("count") >= 2, "{short}");
        number("count") - number("unseen")
    };
    assert_eq!(seen(), 0);
    let id = degraded["id"].as_str().expect("an identifier").to_owned();
    daemon.call(&["alert", "ack", &id]);
    assert_eq!(seen(), 1);
    stream.until("AlertAcknowledged");
    daemon.stop();
    let daemon = Daemon::start(&place, 1);
    let again = alert(&daemon, "ArrayDegraded").expect("it is degraded");
    assert_eq!((&again["id"], again["acknowledged"].is_array()), (&json!(id), true));
    let mut stream = Stream::open(&place, "", "");
    daemon.call(&["array", "replace", "tank", "--slot", "0", "--with", &drives[2]]);
    while alert(&daemon, "ArrayDegraded").is_some() {
        stream.until("AlertCleared");
    }
    assert_eq!(daemon.call(&["alert", "test"])["recipients"], json!([]));
    let new = json!({"Protocol": "Redfish", "Destination": "http://127.0.0.1:9/secret"});
    let made = ask(&place, "POST", &format!("{SERVICE}/Subscriptions"), &new);
    assert_eq!(made.status, 201, "{made:?}");
    let said = daemon.refused(&["alert", "test"]);
    assert!(said.contains("TestNotDelivered") && !said.contains("secret"), "{said}");
    recipients_are_shown_and_changed(&place, &daemon);
    daemon.stop();
}

fn recipients_are_shown_and_changed(place: &Place, daemon: &Daemon) {
    let shown = || daemon.call(&["alert", "mail"]);
    let off = json!({
        "enabled": false, "server": null, "port": null, "from": null, "tls": "starttls",
        "user": null, "has_password": false,
    });
    assert_eq!(shown(), json!({"schema": 1, "mail": off, "recipients": []}));
    let (ana, bob) = ("ana@mail.example", "bob@mail.example:critical");
    let way = ["--server", "127.0.0.1:9", "--from", "nas@mail.example", "--tls", "none"];
    daemon.call(&[&["alert", "mail"], &way[..], &["--to", ana, "--to", bob]].concat());
    let on = json!({
        "enabled": true, "server": "127.0.0.1", "port": 9, "from": "nas@mail.example",
        "tls": "none", "user": null, "has_password": false,
    });
    assert_eq!(shown()["mail"], on);
    let told = || {
        let mut all: Vec<(String, Value)> = Vec::new();
        for own in shown()["recipients"].as_array().expect("recipients") {
            let address = own["address"].as_str().expect("an address");
            all.push((address.to_owned(), own["severities"].clone()));
        }
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    };
    let of = |name: &str, severities: &[&str]| (format!("{name}@mail.example"), json!(severities));
    let both = &["warning", "critical"][..];
    assert_eq!(told(), [of("ana", both), of("bob", &["critical"])]);
    // Who is told already is told otherwise, and not twice.
    daemon.call(&["alert", "mail", "--to", "Ana@mail.example:critical", "--to", bob]);
    assert_eq!(told(), [of("Ana", &["critical"]), of("bob", &["critical"])]);
    daemon.call(&["alert", "mail", "--remove", ana]);
    assert_eq!(told(), [of("bob", &["critical"])]);
    assert!(daemon.refused(&["alert", "mail", "--remove", ana]).contains("NoRecipient"));
    let subscriptions = get(place, &format!("{SERVICE}/Subscriptions"));
    assert_eq!(subscriptions["Members@odata.count"], 3, "and the webhook, and the stream");
}
