//! Who may do what, asked of the daemon's own answers.

use super::*;
use crate::accounts::{Accounts, hasher, turns};
use crate::answer;
use crate::audit::Audit;
use crate::config::Config;
use crate::counters::Ledger;
use crate::data;
use crate::gpu::Parity;
use crate::http::Asked;
use crate::reply::Content;
use crate::reply::JSON;
use crate::state::State;
use core::future::Future;
use engine::Settings;
use hyper::body::Bytes;
use hyper::header::{LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Request, Response, StatusCode};
use redfish::access::Role;
use redfish::change::NewAccount;
use redfish::routes::{Method, ROUTES, Resource};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const PASSWORD: &str = "correct horse";

fn name(role: Role) -> &'static str {
    match role {
        Role::Administrator => "root",
        Role::Operator => "ops",
        Role::ReadOnly => "eye",
    }
}

/// Runs a test beside a daemon with an account of each role, named as above.
fn run<F: Future<Output = ()>>(test: impl FnOnce(Arc<Manager>) -> F) {
    let place = tempfile::tempdir().expect("a directory");
    let config = Config::parse("").expect("a configuration");
    let kernel = parity::select_kernel().expect("a kernel");
    let parity = Arc::new(Parity::open(kernel, config.parity, config.parity_check));
    let ledger = Arc::new(Ledger::new(true, 0));
    let started = data::start(1, Settings::default(), parity.clone(), ledger);
    let (cores, data) = started.expect("cores");
    let state = State::open(place.path()).expect("a state directory");
    let kept = Audit::read(&state).expect("a log");
    let audit = Audit::go_on(&state, kept).expect("is written");
    let manager = Manager::new(data, parity, Default::default(), Vec::new(), true);
    let state = Arc::new(state);
    let accounts = Accounts::go_on(state.clone(), Accounts::read(&state));
    let manager = Arc::new(manager.keeping(Some(state), accounts, audit));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async {
        for role in Role::ALL {
            let (name, password) = (name(role).to_owned(), Secret::new(PASSWORD));
            let new = NewAccount { name, password, role, enabled: true, must_change: false };
            manager.accounts().create(new).await.expect("created");
        }
        manager.refresh();
        test(manager.clone()).await;
        manager.shut_down().await;
        manager.audit().close();
    });
    runtime.shutdown_background();
    assert!(cores.stop());
}

fn network(last: u8) -> Peer {
    Peer::Network { address: IpAddr::from([192, 0, 2, last]) }
}

fn basic(name: &str, password: &str) -> (&'static str, String) {
    let code = Base64::encode_string(format!("{name}:{password}").as_bytes());
    ("authorization", format!("Basic {code}"))
}

async fn ask(
    manager: &Arc<Manager>,
    peer: Peer,
    header: Option<(&'static str, String)>,
    (method, uri): (&str, &str),
    body: &Value,
) -> Response<Bytes> {
    let mut request = Request::builder().method(method).uri(uri).header("content-type", JSON);
    if let Some((name, value)) = header {
        request = request.header(name, value);
    }
    let bytes = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let mut asked: Asked = request.body(Ok(bytes).into()).expect("a request");
    asked.extensions_mut().insert(peer);
    answer::answer(manager, asked).await.map(Content::whole)
}

fn message(response: &Response<Bytes>) -> String {
    let body: Value = serde_json::from_slice(response.body()).unwrap_or_default();
    let id = body["error"]["@Message.ExtendedInfo"][0]["MessageId"].as_str().unwrap_or_default();
    id.rsplit('.').next().unwrap_or_default().to_owned()
}

fn verb(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Post => "POST",
        Method::Patch => "PATCH",
        Method::Delete => "DELETE",
    }
}

/// Which roles may have this, of rows whose identifiers are nobody's. Written beside the table of
/// routes: one holds the other.
fn roles(resource: Resource, method: Method) -> &'static [Role] {
    use Resource as R;
    use Role::{Administrator, Operator, ReadOnly};
    match (method, resource) {
        // Accounts and sessions of others.
        (Method::Get, R::Account | R::Session) => &[Administrator],
        (Method::Get, _) => &[Administrator, Operator, ReadOnly],
        // Of what one asked for oneself.
        (_, R::TaskMonitor) => &[Administrator, Operator, ReadOnly],
        (_, R::Accounts | R::Account | R::SessionService | R::Session | R::VerifyLog) => {
            &[Administrator]
        }
        (_, R::GenerateCsr | R::ReplaceCertificate) => &[Administrator],
        (_, R::Discover | R::Connect | R::Disconnect) => &[Administrator],
        (_, R::EventService | R::SubmitTestEvent | R::Subscriptions) => &[Administrator],
        (_, R::Subscription | R::ResumeSubscription | R::TestAlerts) => &[Administrator],
        _ => &[Administrator, Operator],
    }
}

/// What anybody may have who finds the daemon.
fn is_open(resource: Resource, method: Method) -> bool {
    use Resource as R;
    match (method, resource) {
        (Method::Post, R::Sessions) => true,
        (Method::Get, _) => matches!(
            resource,
            R::Versions
                | R::ServiceRoot
                | R::Odata
                | R::Metadata
                | R::CsdlFile
                | R::JsonSchemaText
                | R::OpenApi
                | R::OpenApiYaml
        ),
        _ => false,
    }
}

#[test]
fn every_role_may_do_what_it_should_and_nothing_else() {
    run(async |manager| {
        let socket = |user| Peer::Socket { user, groups: vec![user] };
        let text = "operators = ['70001']\nread_only = ['70002']\nadministrators = ['70000']";
        let access = toml::from_str(text).expect("a table");
        manager.set_local(crate::local::Local::read(Some(&access)).expect("read"));
        for row in ROUTES {
            let part = |part: &str| if part.starts_with('{') { "x-1" } else { part }.to_owned();
            let uri = row.uri.split('/').map(part).collect::<Vec<_>>().join("/");
            for &(method, _) in row.methods {
                let (asked, open) = ((verb(method), uri.as_str()), is_open(row.resource, method));
                let is_let_in = |told: &Response<Bytes>| {
                    let denied = message(told) == "InsufficientPrivilege"
                        || told.status() == StatusCode::UNAUTHORIZED;
                    !denied
                };
                let nobody = ask(&manager, network(1), None, asked, &json!({})).await;
                assert_eq!(is_let_in(&nobody), open, "{asked:?}: {nobody:?}");
                assert!(open || nobody.status() == 401, "{asked:?}: {nobody:?}");
                assert!(open || nobody.headers().contains_key(WWW_AUTHENTICATE), "{asked:?}");
                let stranger = ask(&manager, socket(70003), None, asked, &json!({})).await;
                assert_eq!(is_let_in(&stranger), open, "{asked:?}: {stranger:?}");
                assert!(open || stranger.status() == 403, "{asked:?}: {stranger:?}");
                for (role, user) in Role::ALL.into_iter().zip(70000..) {
                    let may = open || roles(row.resource, method).contains(&role);
                    let header = Some(basic(name(role), PASSWORD));
                    let told = ask(&manager, network(2), header, asked, &json!({})).await;
                    assert_eq!(is_let_in(&told), may, "{role} {asked:?}: {told:?}");
                    assert!(may || told.status() == 403, "{role} {asked:?}: {told:?}");
                    let told = ask(&manager, socket(user), None, asked, &json!({})).await;
                    assert_eq!(is_let_in(&told), may, "{role} {asked:?}: {told:?}");
                }
            }
        }
        assert_eq!(manager.view().access.accounts.len(), 3, "nothing was changed");
    });
}

/// A request with the same meaning in other words, or one that no row has.
fn otherwise(method: Method, uri: &str) -> Vec<(&'static str, String)> {
    let slash = format!("{uri}/");
    match method {
        Method::Get => vec![("HEAD", uri.to_owned()), ("GET", slash)],
        Method::Post => vec![("POST", format!("{uri}/Members")), ("POST", slash)],
        Method::Patch => vec![("PATCH", slash), ("PUT", uri.to_owned())],
        Method::Delete => vec![("DELETE", slash)],
    }
}

#[test]
fn other_words_for_a_request_let_nobody_else_in() {
    run(async |manager| {
        for row in ROUTES {
            let part = |part: &str| if part.starts_with('{') { "x-1" } else { part }.to_owned();
            let uri = row.uri.split('/').map(part).collect::<Vec<_>>().join("/");
            for &(method, _) in row.methods {
                let open = is_open(row.resource, method);
                for (verb, uri) in otherwise(method, &uri) {
                    let asked = (verb, uri.as_str());
                    let nobody = ask(&manager, network(1), None, asked, &json!({})).await;
                    assert!(open || nobody.status() == 401, "{asked:?}: {nobody:?}");
                    for role in Role::ALL {
                        let may = open || roles(row.resource, method).contains(&role);
                        let header = Some(basic(name(role), PASSWORD));
                        let told = ask(&manager, network(2), header, asked, &json!({})).await;
                        // What is no request at all is told so to whoever has logged in.
                        let is_refused = [403, 404, 405].contains(&told.status().as_u16());
                        assert!(may || is_refused, "{role} {asked:?}: {told:?}");
                        let is_denied = [401, 403].contains(&told.status().as_u16());
                        assert!(!may || !is_denied, "{role} {asked:?}: {told:?}");
                    }
                }
            }
        }
        assert_eq!(manager.view().access.accounts.len(), 3, "nothing was changed");
    });
}

#[test]
fn who_must_change_the_password_may_do_nothing_else_anywhere() {
    run(async |manager| {
        let (new, role) = ("new".to_owned(), Role::Administrator);
        let password = Secret::new(PASSWORD);
        let new = NewAccount { name: new, password, role, enabled: true, must_change: true };
        manager.accounts().create(new).await.expect("created");
        manager.refresh();
        for row in ROUTES {
            let part = |part: &str| if part.starts_with('{') { "x-1" } else { part }.to_owned();
            let uri = row.uri.split('/').map(part).collect::<Vec<_>>().join("/");
            for &(method, _) in row.methods.iter().filter(|(own, _)| !is_open(row.resource, *own)) {
                let (asked, header) = ((verb(method), uri.as_str()), basic("new", PASSWORD));
                let told = ask(&manager, network(2), Some(header), asked, &json!({})).await;
                let why = (told.status().as_u16(), message(&told));
                assert_eq!(why, (403, "PasswordChangeRequired".to_owned()), "{asked:?}");
            }
        }
    });
}

#[test]
fn a_session_may_at_any_time_what_its_account_may() {
    run(async |manager| {
        let begun = log_in(&manager, network(4), "ops").await;
        let token = || Some(("x-auth-token", header(&begun, TOKEN)));
        let known = || Some(basic("ops", PASSWORD));
        let (own, root) = (uri::account("ops"), || Some(basic("root", PASSWORD)));
        let get = ("GET", "/redfish/v1/Systems");
        let status = |header, asked, body: Value| {
            let manager = manager.clone();
            async move { ask(&manager, network(4), header, asked, &body).await.status().as_u16() }
        };
        assert_eq!(status(known(), get, Value::Null).await, 200);
        for (change, may_read, may_change) in [
            (json!({"RoleId": "ReadOnly"}), 200, 403),
            (json!({"RoleId": "Operator"}), 200, 400),
            (json!({"PasswordChangeRequired": true}), 403, 403),
            (json!({"PasswordChangeRequired": false}), 200, 400),
            (json!({"Enabled": false}), 401, 401),
            (json!({"Enabled": true}), 401, 401),
        ] {
            let told = status(root(), ("PATCH", &own), change.clone()).await;
            assert_eq!(told, 200, "{change}");
            for (at, header) in [token(), known()].into_iter().enumerate() {
                // What a disabled account could do it can do again by its password.
                if at == 1 && change["Enabled"] == json!(true) {
                    continue;
                }
                assert_eq!(status(header.clone(), get, Value::Null).await, may_read, "{change}");
                let post = ("POST", uri::POOLS);
                assert_eq!(status(header, post, json!({})).await, may_change, "{change}");
            }
        }
        // Another account of the same name is another.
        let token = header(&log_in(&manager, network(4), "ops").await, TOKEN);
        let token = || Some(("x-auth-token", token.clone()));
        assert_eq!(status(token(), get, Value::Null).await, 200);
        assert_eq!(status(root(), ("DELETE", &own), Value::Null).await, 204);
        let body = json!({"UserName": "ops", "Password": "another one", "RoleId": "Administrator"});
        assert_eq!(status(root(), ("POST", uri::ACCOUNTS), body).await, 201);
        assert_eq!(status(token(), get, Value::Null).await, 401);
        assert_eq!(status(known(), get, Value::Null).await, 401);
    });
}

#[test]
fn the_log_says_which_user_of_the_socket_used_an_account() {
    run(async |manager| {
        let stranger = || Peer::Socket { user: 70_009, groups: Vec::new() };
        let get = ("GET", "/redfish/v1/Systems");
        let wrong = || Some(basic("root", "incorrect battery"));
        for _ in 0..redfish::access::FAILURES_FREE {
            let told = ask(&manager, stranger(), wrong(), get, &Value::Null).await;
            assert_eq!(told.status(), 401);
        }
        assert_eq!(log_in(&manager, stranger(), "root").await.status(), 429);
        let root = || Peer::Socket { user: 0, groups: Vec::new() };
        assert_eq!(log_in(&manager, root(), "root").await.status(), 201, "it is not locked out");
        let lines = manager.audit().log();
        let from = |text: &str| lines.entries.iter().filter(|line| line.from == text).count();
        assert!(from("socket (uid 70009)") > 0 && from("socket (uid 0)") > 0, "{lines:?}");
        assert_eq!(from("socket"), 0, "{lines:?}");
    });
}

#[test]
fn what_is_wrong_lets_nobody_in_and_tells_nothing() {
    run(async |manager| {
        let get = ("GET", "/redfish/v1/Systems");
        let wrong = [
            (basic("root", "incorrect battery"), "ResourceAtUriUnauthorized"),
            (basic("none", PASSWORD), "ResourceAtUriUnauthorized"),
            (("authorization", "Basic x".to_owned()), "ResourceAtUriUnauthorized"),
            (("authorization", "Bearer x".to_owned()), "ResourceAtUriUnauthorized"),
            (("x-auth-token", "x".to_owned()), "NoValidSession"),
        ];
        for (header, why) in wrong {
            let peer = Peer::Socket { user: 0, groups: Vec::new() };
            for peer in [network(3), peer] {
                let told = ask(&manager, peer, Some(header.clone()), get, &Value::Null).await;
                assert_eq!((told.status().as_u16(), message(&told).as_str()), (401, why));
                let body = String::from_utf8_lossy(told.body()).into_owned();
                assert!(!body.contains(PASSWORD) && !body.contains("battery"), "{body}");
            }
        }
        for uri in ["/redfish/v1/None", "/redfish/none", "/metrics/none"] {
            let told = ask(&manager, network(3), None, ("GET", uri), &Value::Null).await;
            assert_eq!(told.status(), 401, "{uri}");
        }
        let told = ask(&manager, network(3), None, ("PUT", "/redfish/v1"), &Value::Null).await;
        assert_eq!(told.status(), 405);
        let put = ("PUT", "/redfish/v1/Systems");
        let told = ask(&manager, network(3), None, put, &Value::Null).await;
        assert_eq!(told.status(), 401, "who is nobody learns nothing of what there is");
    });
}

async fn log_in(manager: &Arc<Manager>, peer: Peer, name: &str) -> Response<Bytes> {
    let body = json!({"UserName": name, "Password": PASSWORD});
    ask(manager, peer, None, ("POST", uri::SESSIONS), &body).await
}

fn header(response: &Response<Bytes>, name: impl hyper::header::AsHeaderName) -> String {
    let value = response.headers().get(name).expect("a header");
    value.to_str().expect("text").to_owned()
}

#[test]
fn a_session_is_begun_used_and_ended_by_its_account() {
    run(async |manager| {
        let told = log_in(&manager, network(4), "ops").await;
        assert_eq!(told.status(), 201, "{told:?}");
        let (uri, token) = (header(&told, LOCATION), header(&told, TOKEN));
        let body: Value = serde_json::from_slice(told.body()).expect("JSON");
        assert_eq!((&body["UserName"], &body["@odata.id"]), (&json!("ops"), &json!(uri)));
        assert!(!body.to_string().contains(&token));
        let own = || Some(("x-auth-token", token.clone()));
        let told = ask(&manager, network(4), own(), ("GET", &uri), &Value::Null).await;
        assert_eq!(told.status(), 200);
        let told = ask(&manager, network(4), own(), ("GET", "/redfish/v1"), &Value::Null).await;
        assert_eq!(told.status(), 200);
        // Those of others are not in what a query puts together.
        let other = log_in(&manager, network(4), "eye").await;
        let other = (header(&other, LOCATION), header(&other, TOKEN));
        let query = format!("{}?$expand=.", uri::SESSIONS);
        let told = ask(&manager, network(4), own(), ("GET", &query), &Value::Null).await;
        let body: Value = serde_json::from_slice(told.body()).expect("JSON");
        let named: Vec<&str> = body["Members"]
            .as_array()
            .expect("members")
            .iter()
            .filter_map(|one| one["UserName"].as_str())
            .collect();
        assert_eq!((named, &body["Members@odata.count"]), (vec!["ops"], &json!(2)));
        let told = ask(&manager, network(4), own(), ("DELETE", &other.0), &Value::Null).await;
        assert_eq!(told.status(), 403);
        let told = ask(&manager, network(4), own(), ("DELETE", &uri), &Value::Null).await;
        assert_eq!(told.status(), 204);
        let told = ask(&manager, network(4), own(), ("GET", &uri), &Value::Null).await;
        assert_eq!(message(&told), "NoValidSession");
        let root = Some(basic("root", PASSWORD));
        let told = ask(&manager, network(4), root, ("DELETE", &other.0), &Value::Null).await;
        assert_eq!(told.status(), 204);
        let lines = manager.audit().log();
        let all = format!("{lines:?}");
        assert!(all.contains("log in") && !all.contains(&token) && !all.contains(PASSWORD));
    });
}

#[test]
fn there_is_an_end_to_sessions() {
    run(async |manager| {
        let names = ["root", "ops", "eye", "one", "two"];
        for name in ["one", "two"] {
            let (name, password) = (name.to_owned(), Secret::new(PASSWORD));
            let (role, enabled, must_change) = (Role::ReadOnly, true, false);
            let new = NewAccount { name, password, role, enabled, must_change };
            manager.accounts().create(new).await.expect("created");
        }
        for number in 0..64 {
            let told = log_in(&manager, network(4), names[number % 5]).await;
            assert_eq!(told.status(), 201);
        }
        let told = log_in(&manager, network(4), "two").await;
        assert_eq!(
            (told.status().as_u16(), message(&told).as_str()),
            (503, "SessionLimitExceeded")
        );
        assert!(told.headers().contains_key(RETRY_AFTER), "{told:?}");
    });
}

#[test]
fn who_hangs_up_is_counted_and_keeps_nobody_out() {
    run(async |manager| {
        let get = ("GET", "/redfish/v1/Systems");
        let held = manager.accounts().hold_passwords();
        // Fewer than wait for their turn, and than have a line each in the log.
        for number in 0..12 {
            let header = Some(basic("root", &format!("wrong {number}")));
            let asking = Box::pin(ask(&manager, network(9), header, get, &Value::Null));
            let mut asking = asking;
            let once = core::future::poll_fn(|cx| {
                core::task::Poll::Ready(asking.as_mut().poll(cx).is_pending())
            });
            once.await;
            drop(asking);
            tokio::task::yield_now().await;
        }
        let other = tokio::spawn({
            let manager = manager.clone();
            async move {
                let right = Some(basic("ops", PASSWORD));
                ask(&manager, network(10), right, get, &Value::Null).await
            }
        });
        tokio::task::yield_now().await;
        drop(held);
        assert_eq!(other.await.expect("ends").status(), 200);
        // Behind those of this address that wait.
        let right = || Some(basic("root", PASSWORD));
        let told = ask(&manager, network(9), right(), get, &Value::Null).await;
        assert_eq!((told.status().as_u16(), message(&told).as_str()), (429, "LoginLocked"));
        let log = manager.audit().log();
        let is_wrong = |id: &String| id.ends_with("ResourceAtUriUnauthorized");
        let of = |line: &&Arc<redfish::view::Entry>| {
            line.from == "192.0.2.9" && line.message.as_ref().is_some_and(is_wrong)
        };
        let tried = log.entries.iter().filter(of).count();
        assert_eq!(tried, redfish::access::FAILURES_FREE as usize);
    });
}

#[test]
fn who_names_a_state_of_an_account_is_alone_with_it() {
    run(async |manager| {
        let own = uri::account("ops");
        let root = Some(basic("root", PASSWORD));
        let told = ask(&manager, network(6), root.clone(), ("GET", &own), &Value::Null).await;
        let tag = header(&told, hyper::header::ETAG);
        let held = manager.accounts().hold_passwords();
        let patch = |tag: Option<String>, body: Value| {
            let (manager, own, code) = (manager.clone(), own.clone(), root.clone());
            tokio::spawn(async move {
                let mut request = Request::builder().method("PATCH").uri(&own);
                request = request.header("content-type", JSON);
                for (name, value) in code.into_iter().chain(tag.map(|tag| ("if-match", tag))) {
                    request = request.header(name, value);
                }
                let body = Ok(body.to_string().into());
                let mut asked: Asked = request.body(body.into()).expect("a request");
                asked.extensions_mut().insert(network(6));
                answer::answer(&manager, asked).await
            })
        };
        let new = json!({"Password": "another one", "Enabled": true});
        let first = patch(Some(tag), new);
        tokio::task::yield_now().await;
        let second = patch(None, json!({"RoleId": "Administrator"}));
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        drop(held);
        assert_eq!(first.await.expect("ends").status(), 200);
        assert_eq!(second.await.expect("ends").status(), 200);
        let log = manager.audit().log();
        let of = |line: &&Arc<redfish::view::Entry>| line.request.contains("PATCH");
        let told: Vec<_> = log.entries.iter().filter(of).map(|line| line.of.is_some()).collect();
        assert_eq!(told, [false, true, false, true], "one after the other");
        // Of two who give it a new password the second is told.
        let told = ask(&manager, network(6), root.clone(), ("GET", &own), &Value::Null).await;
        let tag = header(&told, hyper::header::ETAG);
        let password = |text: &str| json!({"Password": text});
        let both = [
            patch(Some(tag.clone()), password("a second one")),
            patch(Some(tag), password("a third one")),
        ];
        let mut told = Vec::new();
        for one in both {
            told.push(one.await.expect("ends").status().as_u16());
        }
        assert_eq!(told, [200, 412]);
    });
}

#[test]
fn an_administrator_unlocks_an_account() {
    run(async |manager| {
        let (own, root) = (uri::account("ops"), || Some(basic("root", PASSWORD)));
        for _ in 0..redfish::access::FAILURES_FREE {
            let wrong = Some(basic("ops", "not this one"));
            let told = ask(&manager, network(7), wrong, ("GET", uri::SYSTEM), &Value::Null).await;
            assert_eq!(told.status(), 401);
        }
        let locked = async |is: bool| {
            manager.refresh();
            let told = ask(&manager, network(6), root(), ("GET", &own), &Value::Null).await;
            let body: Value = serde_json::from_slice(told.body()).expect("JSON");
            assert_eq!(body["Locked"], is);
            header(&told, hyper::header::ETAG)
        };
        let tag = locked(true).await;
        let patch = async |header, locked: bool| {
            let body = json!({"Locked": locked});
            let told = ask(&manager, network(6), header, ("PATCH", &own), &body).await;
            (told.status().as_u16(), message(&told))
        };
        let own_wish = patch(Some(basic("ops", PASSWORD)), false).await;
        assert_eq!(own_wish, (403, "InsufficientPrivilege".to_owned()));
        assert_eq!(patch(root(), true).await, (400, "PropertyValueNotInList".to_owned()));
        assert_eq!(patch(root(), false).await.0, 200);
        assert_eq!(locked(false).await, tag, "nobody changed the account");
        let right = Some(basic("ops", PASSWORD));
        let told = ask(&manager, network(7), right, ("GET", uri::SYSTEM), &Value::Null).await;
        assert_eq!(told.status(), 200);
    });
}

#[test]
fn an_account_changes_its_own_password_and_nothing_else_of_itself() {
    run(async |manager| {
        let own = uri::account("eye");
        let eye = || Some(basic("eye", PASSWORD));
        let patch = |header, uri, body: Value| {
            let manager = manager.clone();
            async move { ask(&manager, network(5), header, ("PATCH", uri), &body).await }
        };
        let told = patch(eye(), own.as_str(), json!({"RoleId": "Administrator"})).await;
        assert_eq!(
            (told.status().as_u16(), message(&told).as_str()),
            (403, "InsufficientPrivilege")
        );
        let other = uri::account("root");
        let told = patch(eye(), other.as_str(), json!({"Password": "another one"})).await;
        assert_eq!(told.status(), 403);
        let told = patch(eye(), own.as_str(), json!({"Password": "short"})).await;
        assert_eq!((told.status().as_u16(), message(&told).as_str()), (400, "PropertyValueError"));
        assert!(!String::from_utf8_lossy(told.body()).contains("short\""));
        let told = patch(eye(), own.as_str(), json!({"Password": "another one"})).await;
        assert_eq!(told.status(), 200, "{told:?}");
        let told = patch(eye(), own.as_str(), json!({"Password": "another one"})).await;
        assert_eq!(told.status(), 401);
    });
}

#[test]
fn a_password_that_must_be_changed_comes_first() {
    run(async |manager| {
        let root = || Some(basic("root", PASSWORD));
        let own = uri::account("ops");
        let must = json!({"PasswordChangeRequired": true});
        let told = ask(&manager, network(6), root(), ("PATCH", &own), &must).await;
        assert_eq!(told.status(), 200, "{told:?}");
        let told = log_in(&manager, network(6), "ops").await;
        let body: Value = serde_json::from_slice(told.body()).expect("JSON");
        let id = body["@Message.ExtendedInfo"][0]["MessageId"].as_str().expect("is told");
        assert!(id.ends_with(".PasswordChangeRequired"), "{body}");
        let token = || Some(("x-auth-token", header(&told, TOKEN)));
        for (asked, status) in [
            (("GET", own.as_str()), 200),
            (("GET", "/redfish/v1/Systems"), 403),
            (("GET", "/redfish/v1"), 200),
            (("POST", uri::POOLS), 403),
            (("DELETE", own.as_str()), 403),
        ] {
            let told = ask(&manager, network(6), token(), asked, &Value::Null).await;
            assert_eq!(told.status(), status, "{asked:?}: {told:?}");
            assert!(status == 200 || message(&told) == "PasswordChangeRequired", "{told:?}");
        }
        let both = json!({"Password": "another one", "RoleId": "Administrator"});
        let told = ask(&manager, network(6), token(), ("PATCH", &own), &both).await;
        assert_eq!(message(&told), "PasswordChangeRequired");
        let new = json!({"Password": "another one"});
        let told = ask(&manager, network(6), token(), ("PATCH", &own), &new).await;
        assert_eq!(told.status(), 200, "{told:?}");
        let get = ("GET", "/redfish/v1/Systems");
        let told = ask(&manager, network(6), token(), get, &Value::Null).await;
        assert_eq!(told.status(), 401, "its sessions have ended");
        let ops = Some(basic("ops", "another one"));
        assert_eq!(ask(&manager, network(6), ops, get, &Value::Null).await.status(), 200);
    });
}

#[test]
fn a_storm_from_many_addresses_keeps_no_session_waiting() {
    /// Addresses, and logins of each.
    const STORM: (u8, u8) = (20, 20);
    run(async |manager| {
        let get = ("GET", "/redfish/v1/Systems");
        let token = header(&log_in(&manager, network(200), "ops").await, TOKEN);
        let known = Some(basic("eye", PASSWORD));
        let told = ask(&manager, network(201), known.clone(), get, &Value::Null).await;
        assert_eq!(told.status(), 200);
        let over = Arc::new(AtomicUsize::new(0));
        let held = manager.accounts().hold_passwords();
        let storm: Vec<_> = (0..STORM.0)
            .flat_map(|address| (0..STORM.1).map(move |number| (address, number)))
            .map(|(address, number)| {
                let (manager, over) = (manager.clone(), over.clone());
                tokio::spawn(async move {
                    let (name, wrong) = ("root", format!("wrong {number}"));
                    let told = match number % 3 {
                        0 => {
                            let body = json!({"UserName": name, "Password": wrong});
                            let post = ("POST", uri::SESSIONS);
                            ask(&manager, network(address), None, post, &body).await
                        }
                        _ => {
                            let header = Some(basic(name, &wrong));
                            ask(&manager, network(address), header, get, &Value::Null).await
                        }
                    };
                    over.fetch_add(1, Ordering::Relaxed);
                    told
                })
            })
            .collect();
        // Passwords wait in a queue with an end; beyond it somebody is told to come again.
        let all = usize::from(STORM.0) * usize::from(STORM.1);
        let waiting = hasher::WAITING * (turns::WAITING + 1);
        while all - over.load(Ordering::Relaxed) > waiting {
            tokio::task::yield_now().await;
        }
        for _ in 0..100 {
            let own = Some(("x-auth-token", token.clone()));
            let told = ask(&manager, network(200), own, get, &Value::Null).await;
            assert_eq!(told.status(), 200, "a session");
            let told = ask(&manager, network(201), known.clone(), get, &Value::Null).await;
            assert_eq!(told.status(), 200, "what was right a moment ago");
            let socket = Peer::Socket { user: 0, groups: Vec::new() };
            assert_eq!(ask(&manager, socket, None, get, &Value::Null).await.status(), 200);
            tokio::task::yield_now().await;
        }
        let before = over.load(Ordering::Relaxed);
        assert!(before < all, "none of these waited for a password");
        drop(held);
        let mut wrong = 0;
        for one in storm {
            let told = one.await.expect("ends");
            wrong += usize::from(told.status() == 401);
            let waits = [429, 503].contains(&told.status().as_u16());
            assert!(told.status() == 401 || waits, "{told:?}");
            assert!(!waits || told.headers().contains_key(RETRY_AFTER), "{told:?}");
        }
        assert!((1..=all - before).contains(&wrong), "{wrong} of {all}, {before} before");
        assert_eq!(log_in(&manager, network(202), "ops").await.status(), 201, "who is right");
        let sizes = manager.accounts().sizes();
        assert!(sizes.iter().all(|size| *size <= usize::from(STORM.0) * 2 + 4), "{sizes:?}");
        let lines = manager.audit().log().entries.len();
        // At most so many of who is not known, and a few of who is.
        assert!(lines <= 300 + 12, "{lines} lines, {wrong} wrong");
    });
}

#[test]
fn who_guesses_waits_and_the_others_are_answered() {
    run(async |manager| {
        let get = ("GET", "/redfish/v1/Systems");
        let storm: Vec<_> = (0..200)
            .map(|number| {
                let manager = manager.clone();
                tokio::spawn(async move {
                    let header = Some(basic("root", &format!("wrong {number}")));
                    ask(&manager, network(7), header, get, &Value::Null).await
                })
            })
            .collect();
        tokio::task::yield_now().await;
        let socket = Peer::Socket { user: 0, groups: Vec::new() };
        let told = ask(&manager, socket.clone(), None, get, &Value::Null).await;
        assert_eq!(told.status(), 200);
        let right = Some(basic("root", PASSWORD));
        let told = ask(&manager, network(8), right.clone(), get, &Value::Null).await;
        assert_eq!(told.status(), 200);
        let mut wrong = 0;
        for one in storm {
            let told = one.await.expect("ends");
            wrong += u32::from(told.status() == 401);
            let waits = [429, 503].contains(&told.status().as_u16());
            assert!(told.status() == 401 || waits, "{told:?}");
            assert!(!waits || told.headers().contains_key(RETRY_AFTER), "{told:?}");
            assert!(told.status() != 429 || message(&told) == "LoginLocked", "{told:?}");
        }
        assert_eq!(wrong, redfish::access::FAILURES_FREE);
        let told = ask(&manager, network(7), right.clone(), get, &Value::Null).await;
        assert_eq!(told.status(), 200, "what was right a moment ago is known");
        manager.accounts().alter("root", Default::default()).await.expect("changed");
        let told = ask(&manager, network(7), Some(basic("ops", PASSWORD)), get, &Value::Null).await;
        assert_eq!(told.status(), 200, "another account");
        let told = log_in(&manager, network(7), "eye").await;
        assert_eq!(told.status(), 201);
        let lines = manager.audit().log().entries.len();
        assert!(lines < 60, "the log is nobody's to fill: {lines}");
    });
}

#[path = "login_nobody_tests.rs"]
mod nobody;
