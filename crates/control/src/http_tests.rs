//! What clients cost before and after it is known who they are.

use super::*;
use crate::answer;
use crate::manager::Manager;
use crate::renewal::tests::run_with;
use hyper::body::Bytes;
use std::net::IpAddr;
use tokio::io::DuplexStream;

const SOCKET: Peer = Peer::Socket { user: 0, groups: Vec::new() };
const NETWORK: Peer = Peer::Network { address: IpAddr::V4(std::net::Ipv4Addr::LOCALHOST) };
const ACCOUNTS: &str = "/redfish/v1/AccountService/Accounts";
const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";
const FIND: &str =
    "/redfish/v1/Systems/local/Storage/palisade/Actions/Oem/PalisadeStorage.FindDrives";

/// How long something may take that happens at once.
const SOON: Duration = Duration::from_secs(20);

/// A client of this manager.
fn connect(manager: &Arc<Manager>, room: &Arc<Room>, peer: Peer) -> DuplexStream {
    let (own, other) = tokio::io::duplex(64 << 10);
    let place = room.enter(&peer).expect("room");
    let manager = manager.clone();
    let answer = move |asked| {
        let manager = manager.clone();
        async move { answer::answer(&manager, asked).await }
    };
    tokio::spawn(converse(other, peer, place, answer, pending()));
    own
}

/// What these bytes are answered, to the end of the connection; its client says no more.
async fn sent(manager: &Arc<Manager>, room: &Arc<Room>, peer: Peer, bytes: &str) -> String {
    let mut client = connect(manager, room, peer);
    client.write_all(bytes.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    let read = timeout(SOON, client.read_to_end(&mut answer)).await;
    read.expect("it does not wait for more").expect("read");
    String::from_utf8_lossy(&answer).into_owned()
}

fn post(uri: &str, length: usize, more: &str, body: &str) -> String {
    format!(
        "POST {uri} HTTP/1.1\r\nhost: p\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n{more}\r\n{body}"
    )
}

#[test]
fn a_body_is_read_only_of_who_may_send_it() {
    run_with(false, Vec::new(), |manager| async move {
        let room = Arc::new(Room::default());
        let large = 1 << 20;
        for (uri, length, status) in [
            (ACCOUNTS, large, 401),
            (ACCOUNTS, 10, 401),
            ("/redfish/v1/None", large, 401),
            ("/redfish/v1", large, 401),
            (SESSIONS, large, 413),
            (SESSIONS, 16385, 413),
        ] {
            let asked = post(uri, length, "", "{");
            let answer = sent(&manager, &room, NETWORK, &asked).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{uri}: {answer}");
            assert!(answer.contains("connection: close\r\n"), "{uri}: {answer}");
        }
        // Nobody is asked to go on sending.
        let asked = post(ACCOUNTS, large, "expect: 100-continue\r\n", "");
        let answer = sent(&manager, &room, NETWORK, &asked).await;
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
        // In parts, so that nothing says how much there is.
        let parts = format!("4001\r\n{}\r\n", " ".repeat(0x4001));
        let asked = format!(
            "POST {SESSIONS} HTTP/1.1\r\nhost: p\r\ntransfer-encoding: chunked\r\n\r\n{parts}"
        );
        let answer = sent(&manager, &room, NETWORK, &asked).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    });
}

#[test]
fn a_short_body_that_nobody_wants_ends_no_connection() {
    run_with(false, Vec::new(), |manager| async move {
        let room = Arc::new(Room::default());
        let last = "GET /redfish HTTP/1.1\r\nhost: p\r\nconnection: close\r\n\r\n";
        let get = "GET /redfish HTTP/1.1\r\nhost: p\r\ncontent-length: 2\r\n\r\n{}";
        for (first, status) in [(post(ACCOUNTS, 2, "", "{}"), "401"), (get.to_owned(), "200")] {
            let answer = sent(&manager, &room, NETWORK, &format!("{first}{last}")).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
            assert_eq!(answer.matches("HTTP/1.1 ").count(), 2, "{answer}");
        }
    });
}

#[test]
fn bodies_of_one_share_take_none_of_another() {
    run_with(false, Vec::new(), |manager| async move {
        let room = Arc::new(Room::default());
        let find = post(FIND, 2, "connection: close\r\n", "{}");
        let mut network = room.pools.body(Share::Network);
        let mut nobody = room.pools.body(Share::Nobody);
        assert!(network.grow(Share::Network.most()) && nobody.grow(Share::Nobody.most()));
        let answer = sent(&manager, &room, SOCKET, &find).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let mut socket = room.pools.body(Share::Socket);
        assert!(socket.grow(Share::Socket.most()));
        let answer = sent(&manager, &room, SOCKET, &find).await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert!(answer.contains("retry-after: 10\r\n"), "{answer}");
        drop(socket);
        let answer = sent(&manager, &room, SOCKET, &find).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let answer = sent(&manager, &room, NETWORK, &post(SESSIONS, 2, "", "{}")).await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    });
}

#[test]
fn a_page_of_another_site_changes_nothing() {
    run_with(false, Vec::new(), |manager| async move {
        let room = Arc::new(Room::default());
        let sites = [
            ("", 200),
            ("origin: https://p\r\n", 200),
            ("origin: HTTPS://P\r\nsec-fetch-site: same-origin\r\n", 200),
            ("sec-fetch-site: none\r\n", 200),
            ("origin: https://evil.example\r\n", 403),
            ("origin: https://p.evil.example\r\n", 403),
            ("origin: http://p\r\n", 403),
            ("origin: null\r\n", 403),
            ("origin: https://p\r\norigin: https://evil.example\r\n", 403),
            ("sec-fetch-site: cross-site\r\n", 403),
            ("sec-fetch-site: same-site\r\n", 403),
        ];
        for (site, status) in sites {
            let asked = post(FIND, 2, &format!("{site}connection: close\r\n"), "{}");
            let answer = sent(&manager, &room, SOCKET, &asked).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{site}: {answer}");
            assert_eq!(answer.contains("Palisade.1.0.AnotherSite"), status == 403, "{answer}");
            // Who only reads does no harm: a browser keeps what it reads from the page.
            let read =
                format!("GET /redfish/v1 HTTP/1.1\r\nhost: p\r\n{site}connection: close\r\n\r\n");
            let answer = sent(&manager, &room, SOCKET, &read).await;
            assert!(answer.starts_with("HTTP/1.1 200 "), "{site}: {answer}");
        }
        // A form's types, and none, as a page can send them without a question to the service.
        for kind in ["", "content-type: text/plain\r\n", "content-type: multipart/form-data\r\n"] {
            let asked = format!(
                "POST {FIND} HTTP/1.1\r\nhost: p\r\n{kind}content-length: 2\r\n\
                 connection: close\r\n\r\n{{}}"
            );
            let answer = sent(&manager, &room, SOCKET, &asked).await;
            assert!(answer.starts_with("HTTP/1.1 415 "), "{kind}: {answer}");
        }
    });
}

#[test]
fn what_needs_a_login_is_not_kept_by_anybody() {
    run_with(false, Vec::new(), |manager| async move {
        let room = Arc::new(Room::default());
        for (uri, kept) in [
            ("/redfish/v1", "no-cache"),
            ("/redfish/v1/openapi.json", "no-cache"),
            ("/redfish/v1/Systems", "no-store"),
            ("/redfish/v1/None", "no-store"),
        ] {
            let read = format!("GET {uri} HTTP/1.1\r\nhost: p\r\nconnection: close\r\n\r\n");
            let answer = sent(&manager, &room, SOCKET, &read).await;
            assert!(answer.contains(&format!("cache-control: {kept}\r\n")), "{uri}");
            assert!(answer.contains("x-content-type-options: nosniff\r\n"), "{uri}");
        }
    });
}

#[test]
fn what_everybody_may_have_takes_no_memory_of_answers() {
    run_with(false, Vec::new(), |manager| async move {
        let room = Arc::new(Room::default());
        let large = Bytes::from(vec![0; Share::Nobody.most()]);
        let taken = room.pools.answer(Share::Nobody, large).expect("all of it");
        let read = "GET /redfish/v1/openapi.json HTTP/1.1\r\nhost: p\r\nconnection: close\r\n\r\n";
        let mut all = Vec::new();
        for _ in 0..64 {
            let mut client = connect(&manager, &room, NETWORK);
            client.write_all(read.as_bytes()).await.expect("sent");
            let mut first = [0; 12];
            client.read_exact(&mut first).await.expect("an answer");
            assert_eq!(&first, b"HTTP/1.1 200");
            all.push(client);
        }
        drop((all, taken));
    });
}
