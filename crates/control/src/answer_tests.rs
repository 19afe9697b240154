//! Refusals of requests that are no reads have a line in the audit log, each once.

use super::*;
use crate::renewal::tests::run_with;
use hyper::Request;
use redfish::view::Ending;

const FIND: &str =
    "/redfish/v1/Systems/local/Storage/palisade/Actions/Oem/PalisadeStorage.FindDrives";

/// A request of a user of the socket.
fn asked(
    method: &str,
    uri: &str,
    header: (&'static str, &str),
    body: Result<&str, NoBody>,
) -> Asked {
    let request = Request::builder().method(method).uri(uri).header(header.0, header.1);
    let request = match header.0 {
        "content-type" => request,
        _ => request.header("content-type", "application/json"),
    };
    let body = body.map(|text| Bytes::copy_from_slice(text.as_bytes()));
    let mut asked = request.body(body.into()).expect("a request");
    asked.extensions_mut().insert(Peer::Socket { user: 4_000_000_007, groups: Vec::new() });
    asked
}

/// Who may not change accounts learns of them what is its own, and no path of a receiver.
#[test]
fn accounts_and_receivers_are_told_to_who_may_know_of_them() {
    use redfish::events::{Event, Shown, Subscription};
    let of = |account: &str| Event {
        id: account.len() as u64,
        ..Event::new(&say::LOGGED_IN, &[&account, &"192.0.2.1"], "")
    };
    let other = Event { id: 9, ..Event::new(&say::ARRAY_FAILED, &[&"tank"], "") };
    let destination = "https://hooks.example/services/secret".to_owned();
    let one = Subscription { id: "s".to_owned(), destination, ..Subscription::default() };
    let events = Shown {
        entries: Arc::new([of("a"), of("bo"), other].map(Arc::new).into()),
        subscriptions: Arc::new(vec![one]),
        ..Shown::default()
    };
    let view = View { events: Arc::new(events), ..View::default() };
    let get = |caller: &Caller, path: &str, query: &str| {
        let found = routes::find(&format!("/redfish/v1/{path}")).expect("a route");
        let Body::Json(told) = read(&view, caller, &found, query).expect("read").body else {
            panic!("no JSON");
        };
        told.to_string()
    };
    let log = "Managers/palisade/LogServices/Events/Entries";
    for (role, account, is_all) in [
        (caller::Role::Administrator, None, true),
        (caller::Role::Operator, Some("a"), false),
        (caller::Role::ReadOnly, Some("a"), false),
    ] {
        let account = account.map(str::to_owned);
        let caller = Caller { role: Some(role), account, ..Caller::default() };
        for told in
            [get(&caller, log, ""), get(&caller, log.trim_end_matches("/Entries"), "$expand=*")]
        {
            assert!(told.contains("account a logged in"), "{role:?}: {told}");
            assert!(told.contains("array tank has failed"), "{role:?}: {told}");
            assert_eq!(told.contains("account bo logged in"), is_all, "{role:?}: {told}");
        }
        let receiver = get(&caller, "EventService/Subscriptions/s", "");
        assert!(receiver.contains("\"Destination\":\"https://hooks.example"), "{receiver}");
        assert_eq!(receiver.contains("services/secret"), is_all, "{receiver}");
    }
}

#[test]
fn a_refusal_of_what_is_no_read_has_one_line() {
    run_with(false, Vec::new(), |manager| async move {
        let access = toml::from_str("administrators = ['4000000007']").expect("a table");
        manager.set_local(crate::local::Local::read(Some(&access)).expect("read"));
        let (none, empty) = (("x-none", ""), Ok("{}"));
        let queried = format!("{FIND}?$top=1");
        let refused = [
            ("PUT", "/redfish/v1", none, empty, 405),
            ("POST", "/redfish/v1", none, empty, 405),
            ("DELETE", "/redfish/v1/None", none, Ok(""), 404),
            ("POST", FIND, ("content-type", "text/plain"), empty, 415),
            ("POST", queried.as_str(), none, empty, 400),
            ("POST", FIND, ("odata-version", "3.0"), empty, 412),
            ("POST", FIND, none, Err(NoBody::TooLarge), 413),
            // This one is noted where the body is understood.
            ("POST", FIND, none, Ok("{"), 400),
        ];
        let before = manager.audit().log().entries.len();
        for (at, (method, uri, header, body, status)) in refused.into_iter().enumerate() {
            let answer = answer(&manager, asked(method, uri, header, body)).await;
            assert_eq!(answer.status().as_u16(), status, "{method} {uri}");
            let log = manager.audit().log();
            assert_eq!(log.entries.len(), before + at + 1, "{method} {uri}");
            let line = log.entries.back().expect("a line");
            let path = uri.split('?').next().unwrap_or_default();
            assert_eq!(line.request, format!("{method} {path}"));
            assert_eq!((line.who.as_str(), line.result), ("uid:4000000007", Ending::Refused));
            assert!(line.message.is_some());
        }
        let before = manager.audit().log().entries.len();
        for uri in ["/redfish/v1/None", "/redfish/v1?$top=x", FIND] {
            answer(&manager, asked("GET", uri, none, Ok(""))).await;
        }
        assert_eq!(manager.audit().log().entries.len(), before, "reads are not noted");
    });
}

#[test]
fn open_metrics_take_no_memory_of_who_is_nobody() {
    run_with(false, Vec::new(), |manager| async move {
        manager.metrics.set_open(true);
        manager.refresh();
        let mut request = asked("GET", "/metrics", ("x-none", ""), Ok(""));
        let address = core::net::Ipv4Addr::LOCALHOST.into();
        request.extensions_mut().insert(Peer::Network { address });
        let answer = answer(&manager, request).await;
        let takes = answer.extensions().get::<Takes>();
        assert_eq!((answer.status(), takes), (StatusCode::OK, Some(&Takes(None))));
    });
}

/// A request of somebody on the network who did not log in.
fn strange(method: &str, uri: &str, header: (&'static str, &str)) -> Asked {
    let mut request = asked(method, uri, header, Ok(""));
    let address = core::net::Ipv4Addr::LOCALHOST.into();
    request.extensions_mut().insert(Peer::Network { address });
    request
}

#[test]
fn a_script_is_not_asked_to_open_the_browsers_own_dialog() {
    run_with(false, Vec::new(), |manager| async move {
        for (header, scheme) in
            [(("x-none", ""), "Basic "), (("x-requested-with", "a page"), "PalisadeSession ")]
        {
            let told = answer(&manager, strange("GET", "/redfish/v1/Systems", header)).await;
            assert_eq!(told.status(), 401, "{header:?}");
            let wanted = told.headers()[WWW_AUTHENTICATE].to_str().expect("a text");
            assert!(wanted.starts_with(scheme), "{header:?}: {wanted}");
        }
    });
}

#[test]
fn the_console_is_there_for_who_did_not_log_in_and_not_on_the_socket() {
    run_with(false, Vec::new(), |manager| async move {
        let none = ("x-none", "");
        for (method, uri, status) in
            [("GET", "/", 200), ("HEAD", "/shelf?x=1", 200), ("GET", "/x", 404), ("POST", "/", 405)]
        {
            let told = answer(&manager, strange(method, uri, none)).await;
            assert_eq!(told.status(), status, "{method} {uri}");
            assert!(!told.headers().contains_key(WWW_AUTHENTICATE), "{method} {uri}");
            assert_eq!(told.extensions().get::<Takes>(), Some(&Takes(None)));
            let of_socket = answer(&manager, asked(method, uri, none, Ok(""))).await;
            assert_ne!(of_socket.status(), 200, "{method} {uri}");
        }
        let lines = manager.audit().log().entries.len();
        answer(&manager, strange("POST", "/arrays", none)).await;
        assert_eq!(manager.audit().log().entries.len(), lines, "nobody asked for a change");
    });
}
