//! What clients cost before and after it is known who they are.

use super::*;
use crate::answer;
use crate::manager::Manager;
use crate::renewal::tests::run_with;
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
    tokio::spawn(converse(other, peer, place, answer));
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
