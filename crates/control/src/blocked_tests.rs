//! A control thread that is blocked holds no host up.

use crate::renewal::tests::{array, drives, run_with};
use nbd::{Client, FUA, Kind};
use redfish::view::{CreateExport, CreateVolume};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

#[allow(dead_code, reason = "the tests of the program use the rest")]
#[path = "../../palisade/tests/all/common/nbd.rs"]
mod nbd;

/// What a host does while the control thread is blocked: so many writes, each flushed and read.
const ROUNDS: u64 = 300;

/// So long before the test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A host: connects, waits until the control thread is blocked, and uses its volume.
fn host(
    socket: PathBuf,
    connected: tokio::sync::oneshot::Sender<()>,
    blocked: Receiver<()>,
    done: Sender<u64>,
) {
    let mut client = Client::connect(&socket, "data/v").expect("connected");
    let _ = connected.send(());
    blocked.recv().expect("is blocked");
    let mut read = [0; 4096];
    for round in 0..ROUNDS {
        let (offset, block) = (round % 64 * 4096, [round as u8; 4096]);
        let flags = if round % 2 == 0 { FUA } else { 0 };
        client.send(Kind::Write, flags, round, (offset, 4096), &block).expect("sent");
        assert_eq!(client.receive().expect("written"), round);
        client.send(Kind::Flush, 0, round, (0, 0), &[]).expect("sent");
        assert_eq!(client.receive().expect("flushed"), round);
        client.read(offset, &mut read).expect("read");
        assert_eq!(read, block);
    }
    let _ = done.send(ROUNDS);
}

#[test]
fn a_blocked_control_thread_holds_no_host_up() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths = drives(dir.path(), 2);
    let socket = dir.path().join("nbd");
    run_with(true, paths.clone(), |manager| async move {
        manager.start(Duration::ZERO).await;
        let made = manager.create(&array(&manager, &paths)).await.expect("created");
        let volume =
            CreateVolume { array: made.uuid.clone(), name: "v".to_owned(), size_bytes: 1 << 20 };
        let volume = manager.create_volume(&volume).await.expect("created");
        let export = CreateExport {
            array: made.uuid,
            volume: volume.uuid,
            nbd: Some(format!("unix:{}", socket.display())),
            nvme_tcp: Vec::new(),
            subsystem: None,
            hosts: Vec::new(),
            any_host: false,
            advertise: Vec::new(),
        };
        manager.create_export(&export).await.expect("exported");
        let (tell_connected, connected) = tokio::sync::oneshot::channel();
        let ((block, blocked), (tell_done, done)) = (channel(), channel());
        let host = std::thread::spawn(|| host(socket, tell_connected, blocked, tell_done));
        connected.await.expect("a host is connected");
        // Nothing else runs on this thread until the host is done.
        block.send(()).expect("the host waits");
        assert_eq!(done.recv_timeout(PATIENCE), Ok(ROUNDS));
        host.join().expect("the host ended");
    });
}
