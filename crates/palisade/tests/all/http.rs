//! HTTP as clients break it: what is no request, and what is too much, too slow or cut off.

use crate::common::place::{Daemon, Place};
use crate::common::{LIMIT, until};
use crate::redfish::{Answer, POOLS, ask, connect, request, rest, send};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

/// What begins a request that is answered 200, and is the last of its connection.
const HEAD: &str = "GET /redfish/v1 HTTP/1.1\r\nhost: p\r\nconnection: close\r\n";

/// The answer to what is no request, or to one that is too much: its status and first message.
fn refused(place: &Place, bytes: &[u8]) -> (u16, String) {
    let answer = send(place, bytes);
    let what = String::from_utf8_lossy(bytes.get(..200).unwrap_or(bytes)).into_owned();
    let answer = answer.unwrap_or_else(|| panic!("{what}: no answer"));
    for (name, value) in [
        ("odata-version", "4.0"),
        ("connection", "close"),
        ("content-type", "application/json;charset=utf-8"),
    ] {
        assert_eq!(answer.header(name), value, "{what}: {name}");
    }
    assert!(answer.header("date").ends_with("GMT"), "{what}: {answer:?}");
    assert_eq!(answer.header("content-length"), answer.body.len().to_string(), "{what}");
    (answer.status, answer.message())
}

/// How many answers a connection gives to these bytes, behind which nothing comes.
fn answers(place: &Place, bytes: &[u8]) -> Vec<String> {
    let mut stream = connect(place);
    stream.write_all(bytes).expect("sent");
    stream.shutdown(Shutdown::Write).expect("shut");
    let text = String::from_utf8_lossy(&rest(&mut stream)).into_owned();
    text.match_indices("HTTP/1.1 ").map(|(at, _)| text[at + 9..at + 12].to_owned()).collect()
}

#[test]
fn what_is_no_request_is_refused_and_serves_nobody_to_break_in() {
    let place = Place::new("http: no requests", 16);
    let daemon = Daemon::start(&place, 1);
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET /redfish/v1 HTTP/3.0\r\nhost: p\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /redfish/v1 HTTP/1.1\r\nno header\r\n\r\n",
        b"GET /redfish/v1 HTTP/1.1\r\nhost : p\r\n\r\n",
        b"GET /redfish/v1 HTTP/1.1\r\nhost: p\r\nx: y\r\n folded\r\n\r\n",
        b"GET /redfish/v1 HTTP/1.1\r\nhost: p\r\nx: a\0b\r\n\r\n",
        b"GET /redfish/v1 HTTP/1.1\r\nhost: p\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx",
        b"GET /redfish/v1 HTTP/1.1\r\nhost: p\r\ncontent-length: 1, 2\r\n\r\nxx",
        b"GET /redfish/v1 HTTP/1.1\r\nhost: p\r\ncontent-length: -1\r\n\r\n",
        b"GET /redfish/v1 HTTP/1.1\r\nhost: p\r\ncontent-length: +1\r\n\r\nx",
        b"GET /redfish/v1 HTTP/1.1\r\nhost: p\r\ncontent-length: 99999999999999999999\r\n\r\n",
        b"GET /redfish/v1 HTTP/1.1\r\nhost: p\r\ntransfer-encoding: gzip\r\n\r\n",
        b"GET /redfish/v1 HTTP/1.1\r\nhost: p\r\ntransfer-encoding: chunked, x\r\n\r\n0\r\n\r\n",
        b"GET /redfish/v1 HTTP/1.0\r\nhost: p\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        assert_eq!(refused(&place, bytes), (400, "GeneralError".to_owned()));
    }
    for hosts in ["", "host: a\r\nhost: b\r\n"] {
        let bytes = format!("GET /redfish/v1 HTTP/1.1\r\n{hosts}\r\n");
        assert_eq!(refused(&place, bytes.as_bytes()), (400, "HeaderMissing".to_owned()));
    }
    // What we do not undo could be undone by somebody else.
    for encoding in ["gzip, chunked", "chunked\r\ntransfer-encoding: chunked"] {
        let bytes = format!("{HEAD}transfer-encoding: {encoding}\r\n\r\n0\r\n\r\n");
        let refusal = refused(&place, bytes.as_bytes());
        assert_eq!(refusal, (400, "UnrecognizedRequestBody".to_owned()), "{encoding}");
    }
    let old = b"GET /redfish/v1 HTTP/1.0\r\n\r\n";
    assert_eq!(send(&place, old).expect("an answer").status, 200);
    daemon.stop();
}

#[test]
fn a_request_hides_no_second_one() {
    let place = Place::new("http: smuggled requests", 16);
    let daemon = Daemon::start(&place, 1);
    let second = "GET /redfish HTTP/1.1\r\nhost: p\r\nconnection: close\r\n\r\n";
    let post = "POST /redfish/v1 HTTP/1.1\r\nhost: p\r\n";
    let chunked = "transfer-encoding: chunked\r\n";
    // Of two framings only one counts, and what is behind it is no request.
    for framing in
        [format!("content-length: 4\r\n{chunked}"), format!("{chunked}content-length: 4\r\n")]
    {
        let both = format!("{post}{framing}\r\n0\r\n\r\n{second}");
        assert_eq!(answers(&place, both.as_bytes()), ["405"], "{framing}");
    }
    // A body's end is where its framing says.
    let length = second.len();
    let within = format!("{post}content-length: {length}\r\n\r\n{second}");
    assert_eq!(answers(&place, within.as_bytes()), ["405"]);
    let within = format!("{post}{chunked}\r\n{length:x};x=\"y\"\r\n{second}\r\n0\r\nx: y\r\n\r\n");
    assert_eq!(answers(&place, within.as_bytes()), ["405"]);
    let behind = format!("{post}content-length: 0\r\n\r\n{second}");
    assert_eq!(answers(&place, behind.as_bytes()), ["405", "200"]);
    // A framing that is wrong ends the connection, where the body is read.
    let read = format!("POST {POOLS} HTTP/1.1\r\nhost: p\r\n");
    for wrong in
        ["1\nx\n0\n\n", "x\r\n", "-1\r\n\r\n", "1\r\nxx\r\n0\r\n\r\n", "ffffffffffffffffff\r\n"]
    {
        let wrong = format!("{read}{chunked}\r\n{wrong}{second}");
        assert_eq!(answers(&place, wrong.as_bytes()), ["400"], "{wrong}");
    }
    let extension =
        format!("{read}{chunked}\r\n1;{}\r\nx\r\n0\r\n\r\n{second}", "x".repeat(1 << 17));
    let answers = answers(&place, extension.as_bytes());
    assert_eq!(answers, ["400"], "an extension without end");
    daemon.stop();
}

#[test]
fn what_is_too_large_is_refused() {
    let place = Place::new("http: large requests", 16);
    let daemon = Daemon::start(&place, 1);
    let too_large = (431, "GeneralError".to_owned());
    let large = format!("{HEAD}x: {}\r\n\r\n", "y".repeat(17 << 10));
    assert_eq!(refused(&place, large.as_bytes()), too_large);
    // More than any buffer on the way takes: the answer comes all the same.
    let huge = format!("{HEAD}x: {}\r\n\r\n", "y".repeat(900 << 10));
    assert_eq!(refused(&place, huge.as_bytes()), too_large);
    let long = format!("GET /{} HTTP/1.1\r\nhost: p\r\n\r\n", "y".repeat(17 << 10));
    assert_eq!(refused(&place, long.as_bytes()), too_large);
    let many = format!("{HEAD}{}\r\n", "x: y\r\n".repeat(1000));
    assert_eq!(refused(&place, many.as_bytes()), too_large);
    let fits = format!("{HEAD}x: {}\r\n\r\n", "y".repeat(15 << 10));
    assert_eq!(send(&place, fits.as_bytes()).expect("an answer").status, 200);

    let too_large = (413, "PayloadTooLarge".to_owned());
    let body = " ".repeat((1 << 20) + 1);
    assert_eq!(refused(&place, request("POST", POOLS, &body).as_bytes()), too_large);
    let part = format!("{:x}\r\n{}\r\n", 1 << 18, " ".repeat(1 << 18));
    let chunked = format!(
        "POST {POOLS} HTTP/1.1\r\nhost: p\r\ntransfer-encoding: chunked\r\n\r\n{}0\r\n\r\n",
        part.repeat(5)
    );
    assert_eq!(refused(&place, chunked.as_bytes()), too_large);
    daemon.stop();
}

#[test]
fn a_request_that_is_cut_off_asks_for_nothing() {
    let place = Place::new("http: cut requests", 16);
    let daemon = Daemon::start(&place, 1);
    let whole = request("POST", POOLS, "{\"Name\": \"tank\"}");
    for at in 0..whole.len() {
        let found = answers(&place, &whole.as_bytes()[..at]);
        assert!(found.is_empty() || found == ["400"], "{at}: {found:?}");
    }
    assert_eq!(ask(&place, "GET", "/redfish", &Value::Null).status, 200);
    daemon.stop();
}

/// Sends these parts, each so long after the one before, and waits for the end; what was answered
/// and how long it took.
fn slowly(
    mut stream: UnixStream,
    parts: impl Iterator<Item = String>,
    pause: Duration,
) -> (Option<Answer>, Duration) {
    let begun = Instant::now();
    let mut writer = stream.try_clone().expect("cloned");
    let reader = thread::spawn(move || rest(&mut stream));
    for part in parts {
        if writer.write_all(part.as_bytes()).is_err() {
            break;
        }
        // A client that is slow on purpose.
        thread::sleep(pause);
        if reader.is_finished() {
            break;
        }
    }
    (Answer::read(&reader.join().expect("it ends")), begun.elapsed())
}

#[test]
fn a_client_that_never_finishes_is_let_go() {
    let place = Place::new("http: slow clients", 16);
    let daemon = Daemon::start(&place, 1);
    let wait = |parts: Vec<String>, pause: u64, status: Option<u16>, least: u64| {
        let stream = connect(&place);
        let what = parts.join("");
        thread::spawn(move || {
            let (answer, took) = slowly(stream, parts.into_iter(), Duration::from_millis(pause));
            assert_eq!(answer.map(|answer| answer.status), status, "{what}");
            assert!(took >= Duration::from_secs(least) && took < LIMIT, "{what}: {took:?}");
        })
    };
    let head = "GET /redfish/v1 HTTP/1.1\r\nhost: p\r\n".to_owned();
    let post = format!("POST {POOLS} HTTP/1.1\r\nhost: p\r\n");
    let body = format!("{post}content-length: 9999\r\n\r\n{{");
    let chunks = format!("{post}transfer-encoding: chunked\r\n\r\n");
    let trickled = |first: &String, part: &str| {
        let parts = std::iter::once(first.clone());
        parts.chain(std::iter::repeat_n(part.to_owned(), 200)).collect()
    };
    let all = [
        wait(vec![String::new()], 0, None, 9),
        wait(vec![head.clone()], 0, Some(408), 9),
        wait(trickled(&head, "x: y\r\n"), 500, Some(408), 9),
        wait(vec![body.clone()], 0, Some(408), 29),
        wait(trickled(&body, " "), 500, Some(408), 29),
        wait(trickled(&chunks, "1\r\n \r\n"), 500, Some(408), 29),
    ];
    for one in all {
        one.join().expect("let go");
    }
    daemon.stop();
}

#[test]
fn a_client_beyond_the_limit_is_told_so() {
    let place = Place::new("http: many clients", 16);
    let daemon = Daemon::start(&place, 1);
    let asked = "GET /redfish HTTP/1.1\r\nhost: p\r\n\r\n";
    let mut all = Vec::new();
    for _ in 0..256 {
        let mut stream = connect(&place);
        stream.write_all(asked.as_bytes()).expect("sent");
        let mut first = [0; 12];
        stream.read_exact(&mut first).expect("an answer");
        assert_eq!(&first, b"HTTP/1.1 200");
        all.push(stream);
    }
    assert_eq!(refused(&place, b""), (503, "ServiceTemporarilyUnavailable".to_owned()));
    let answer = send(&place, HEAD.as_bytes()).expect("an answer");
    assert_eq!((answer.status, answer.header("retry-after")), (503, "10"));
    // 300 at one time: each is answered something.
    let more: Vec<_> = (0..44).map(|_| connect(&place)).collect();
    for mut stream in more {
        let _ = stream.write_all(HEAD.as_bytes());
        let answer = Answer::read(&rest(&mut stream));
        assert!(answer.is_none_or(|answer| answer.status == 503));
    }
    all.pop();
    until("room", LIMIT, || {
        let answer = ask(&place, "GET", "/redfish", &Value::Null);
        (answer.status == 200).then_some(())
    });
    drop(all);
    daemon.stop();
}
