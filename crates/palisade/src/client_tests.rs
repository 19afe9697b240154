//! The client against daemons that say what a test has them say.

use super::*;
use crate::confirm;
use crate::logins::Session;
use crate::output::{How, Output};
use control::certificate;
use redfish::error::Refusal;
use rustls::crypto::ring;
use rustls::sign::SingleCertAndKey;
use rustls::{ServerConfig, version};
use serde_json::json;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio_rustls::TlsAcceptor;

/// Reads a request up to its end, which is that of a body of JSON or of the headers.
async fn asked(stream: &mut UnixStream) -> String {
    let mut text = String::new();
    let mut bytes = [0; 4096];
    loop {
        let read = stream.read(&mut bytes).await.expect("reads");
        text.push_str(&String::from_utf8_lossy(&bytes[..read]));
        if text.ends_with("\r\n\r\n") || text.ends_with('}') {
            return text;
        }
        assert!(read > 0, "the client goes within a request: {text}");
    }
}

async fn answer(stream: &mut UnixStream, status: &str, body: &Value) {
    let body = body.to_string();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes()).await.expect("written");
}

/// A daemon of this listener, and somebody who asks it.
fn talk(daemon: impl AsyncFnOnce(UnixListener), asks: impl AsyncFnOnce(Client)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("socket");
        let listener = UnixListener::bind(&socket).expect("bound");
        tokio::join!(daemon(listener), asks(Client::new(socket)));
    });
}

#[test]
fn requests_share_a_connection_until_the_daemon_lets_it_go() {
    let daemon = async |listener: UnixListener| {
        let (mut stream, _) = listener.accept().await.expect("comes");
        assert!(asked(&mut stream).await.starts_with("GET /a HTTP/1.1"));
        answer(&mut stream, "200 OK", &json!({"A": 1})).await;
        let planned = asked(&mut stream).await;
        assert!(planned.contains("palisade-plan: only") && planned.ends_with(r#"{"B":2}"#));
        let refused = view::Error::new(&say::ARRAY_BUSY, &[&"scrub"]);
        answer(&mut stream, "409 Conflict", &Refusal::from(refused).body()).await;
        // The next request comes, and nobody answers it any more.
        asked(&mut stream).await;
        drop(stream);
        let (mut stream, _) = listener.accept().await.expect("comes again");
        assert!(asked(&mut stream).await.starts_with("GET /c HTTP/1.1"));
        answer(&mut stream, "200 OK", &json!({"C": 3})).await;
        // A change is not sent again.
        asked(&mut stream).await;
    };
    let asks = async |client: Client| {
        assert_eq!(client.get("/a").await, Ok(json!({"A": 1})));
        let refused = client.plan(&Change::post("/b", json!({"B": 2}))).await;
        assert_eq!(refused.err(), Some(Problem::new(&say::ARRAY_BUSY, &[&"scrub"])));
        assert_eq!(client.get("/c").await, Ok(json!({"C": 3})));
        assert!(client.change(&Change::delete("/d"), None).await.is_err());
    };
    talk(daemon, asks);
}

#[test]
fn a_change_that_a_person_thinks_about_has_a_connection_of_its_own() {
    let lost = vec!["volume tank/db, 8 MiB".to_owned()];
    let plan = view::Plan { dry_run: true, lost, ..view::Plan::default() };
    let planned = serde_json::to_value(Planned::new(&plan, "t".to_owned(), 0));
    let planned = planned.expect("JSON");
    let daemon = async |listener: UnixListener| {
        let (mut stream, _) = listener.accept().await.expect("comes");
        assert!(asked(&mut stream).await.contains("palisade-plan: only"));
        answer(&mut stream, "200 OK", &planned).await;
        // Nothing comes here any more: the daemon may let it go whenever it likes.
        assert_eq!(stream.read(&mut [0; 1]).await.expect("reads"), 0);
        let (mut stream, _) = listener.accept().await.expect("comes again");
        assert!(asked(&mut stream).await.contains("palisade-confirm: t"));
        answer(&mut stream, "200 OK", &json!({"A": 1})).await;
    };
    let asks = async |client: Client| {
        let word = confirm::Word { name: "tank/db", yes: true, is_named: false };
        let how = How { dry_run: false, output: Output { json: true } };
        let change = Change::delete("/db");
        let told = confirm::destroy(&change, word, how, &client).await;
        assert_eq!(told, Ok(Some(json!({"A": 1}))));
    };
    talk(daemon, asks);
}

#[test]
fn the_answer_of_a_change_that_takes_long_is_waited_for() {
    let daemon = async |listener: UnixListener| {
        let (mut stream, _) = listener.accept().await.expect("comes");
        assert!(asked(&mut stream).await.starts_with("POST /a HTTP/1.1"));
        for _ in 0..2 {
            answer(&mut stream, "202 Accepted\r\nlocation: /m", &json!({"Id": "m"})).await;
            assert!(asked(&mut stream).await.starts_with("GET /m HTTP/1.1"));
        }
        let refused = view::Error::new(&say::SOCKET_FORBIDDEN, &[&"/s", &"no"]);
        answer(&mut stream, "409 Conflict", &Refusal::from(refused).body()).await;
        asked(&mut stream).await;
        answer(&mut stream, "202 Accepted", &json!({"Id": "m"})).await;
    };
    let asks = async |client: Client| {
        let refused = client.post("/a", &json!({"A": 1})).await;
        assert_eq!(refused, Err(Problem::new(&say::SOCKET_FORBIDDEN, &[&"/s", &"no"])));
        assert!(client.post("/b", &json!({"B": 1})).await.is_err(), "it leads nowhere");
    };
    talk(daemon, asks);
}

#[test]
fn what_keeps_the_daemon_from_answering_is_told_by_name() {
    let error = std::io::Error::from(ErrorKind::PermissionDenied);
    let told = not_connected(Path::new("/s"), &error);
    assert_eq!(told, Problem::new(&say::SOCKET_FORBIDDEN, &[&"/s", &error]));
    assert!(told.is_refusal() && !broken("nothing").is_refusal());
    let answer = |status: StatusCode| {
        let mut answer = Response::new(Bytes::new());
        *answer.status_mut() = status;
        understood(answer)
    };
    let told = answer(StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(told, Err(Problem::new(&say::TOO_MANY_CLIENTS, &[])));
    let told = answer(StatusCode::BAD_GATEWAY);
    assert_eq!(told, Err(Problem::new(&say::NO_ANSWER, &[&"its answer is not valid"])));
}

#[test]
fn a_daemon_that_stands_still_is_no_answer() {
    const PATIENCE: Duration = Duration::from_millis(500);
    let daemon = async |listener: UnixListener| {
        let (mut stream, _) = listener.accept().await.expect("comes");
        assert!(asked(&mut stream).await.starts_with("GET /head"));
        let (mut stream, _) = listener.accept().await.expect("comes again");
        assert!(asked(&mut stream).await.starts_with("GET /rest"));
        let begun = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{";
        stream.write_all(begun).await.expect("written");
        let (mut stream, _) = listener.accept().await.expect("comes for a stream");
        assert!(asked(&mut stream).await.starts_with("GET /stream"));
        assert_eq!(stream.read(&mut [0; 1]).await.expect("reads"), 0, "it has given up");
    };
    let asks = async |client: Client| {
        let client = Client { patience: PATIENCE, ..client };
        for uri in ["/head", "/rest"] {
            assert_eq!(client.get(uri).await, Err(silent(PATIENCE)), "{uri}");
        }
        assert_eq!(client.open(&Asked::get("/stream")).await.err(), Some(silent(PATIENCE)));
    };
    talk(daemon, asks);
}

#[test]
fn an_answer_is_not_larger_than_there_is_room_for() {
    let daemon = async |listener: UnixListener| {
        let (mut stream, _) = listener.accept().await.expect("comes");
        asked(&mut stream).await;
        let part = vec![b' '; 1 << 20];
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.expect("written");
        // The client goes before there is an end.
        while stream.write_all(&part).await.is_ok() {}
    };
    let asks = async |client: Client| {
        assert_eq!(client.get("/a").await, Err(broken("its answer is too large")));
    };
    talk(daemon, asks);
}

#[test]
fn how_long_the_daemon_says_to_wait_is_kept() {
    let answer = Response::builder().status(503).header(RETRY_AFTER, "10");
    let told = understood(answer.body(Bytes::new()).expect("an answer")).expect_err("it is full");
    assert_eq!(told.after(), Duration::from_secs(10));
    assert!(told.is(&say::TOO_MANY_CLIENTS));
}

/// A token is for the daemon that gave it: whoever answers in its place gets none.
#[test]
fn a_token_is_not_sent_to_another_certificate() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let identity = || certificate::make(&certificate::For::default(), 1_790_000_000, None);
        let (own, other) = (identity().expect("made"), identity().expect("made"));
        let serve = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&version::TLS13])
            .expect("TLS 1.3")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from((*other.certified).clone())));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let port = listener.local_addr().expect("known").port();
        let url = Url::parse(&format!("https://127.0.0.1:{port}")).expect("a URL");
        let session = Session { uri: "/s".to_owned(), token: "secret".to_owned() };
        let login = Login {
            url: url.to_string(),
            fingerprint: own.shown.fingerprint,
            key: own.shown.key,
            user: "ana".to_owned(),
            session: Some(session),
        };
        let client = Client::logged_in(url, login);
        let daemon = async {
            let (stream, _) = listener.accept().await.expect("comes");
            TlsAcceptor::from(Arc::new(serve)).accept(stream).await.err()
        };
        let (refused, told) = tokio::join!(daemon, client.get("/redfish/v1"));
        assert!(told.expect_err("it is another").is(&say::CERTIFICATE_CHANGED));
        assert!(refused.is_some(), "there is no connection by which anything could be sent");
    });
}
