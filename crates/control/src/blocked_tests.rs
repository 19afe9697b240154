//! A control thread that is blocked holds no host up.

use crate::manager::Manager;
use crate::renewal::tests::{array, drives, run_with};
use nbd::{Client, FUA, Kind};
use redfish::view::{CreateExport, CreateVolume};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
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

/// An export of a volume of an array on these two drives: where clients find it.
async fn exported(manager: &Arc<Manager>, paths: &[String], socket: &Path) -> String {
    manager.start(Duration::ZERO).await;
    let made = manager.create(&array(manager, paths)).await.expect("created");
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
        local: None,
        iscsi: None,
        fc: None,
    };
    manager.create_export(&export).await.expect("exported").uri
}

#[test]
fn a_blocked_control_thread_holds_no_host_up() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths = drives(dir.path(), 2);
    let socket = dir.path().join("nbd");
    run_with(true, paths.clone(), |manager| async move {
        exported(&manager, &paths, &socket).await;
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

/// Whether fio is there with its engine for NBD; where tools are required it has to be.
fn has_fio() -> bool {
    let told = Command::new("fio").arg("--enghelp=nbd").output();
    let is_there = told.is_ok_and(|told| String::from_utf8_lossy(&told.stdout).contains("uri"));
    let says = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    let required = says("PALISADE_REQUIRE_TOOLS", "1") || says("CI", "true");
    assert!(is_there || !required, "no fio with an nbd engine; script/test installs it");
    is_there
}

/// fio, which writes a volume for ten seconds and verifies it. Once it is connected it opens
/// `ready`,
/// and waits for a line of `go`.
fn fio(dir: &Path, uri: &str) -> Command {
    let pipes = ["ready", "go"].map(|name| dir.join(name));
    let made = Command::new("mkfifo").args(&pipes).status().expect("mkfifo starts");
    assert!(made.success());
    let [ready, go] = pipes;
    let wait = format!("echo > {}; read line < {}", ready.display(), go.display());
    let mut fio = Command::new("timeout");
    fio.args([&PATIENCE.as_secs().to_string(), "fio"]);
    fio.args(["--name=host", "--ioengine=nbd", "--iodepth=8", "--bs=4k", "--rw=randwrite"]);
    fio.args(["--verify=crc32c", "--verify_backlog=64", "--verify_fatal=1"]);
    fio.args(["--verify_state_save=0", "--time_based", "--runtime=10"]);
    fio.arg(format!("--uri={uri}")).arg(format!("--exec_prerun={wait}"));
    fio.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    fio
}

#[test]
fn fio_notices_nothing_of_a_blocked_control_thread() {
    if !has_fio() {
        eprintln!("skipped: no fio with an nbd engine");
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let paths = drives(dir.path(), 2);
    let place = dir.path().to_owned();
    run_with(true, paths.clone(), |manager| async move {
        let uri = exported(&manager, &paths, &place.join("nbd")).await;
        let fio = fio(&place, &uri).spawn().expect("fio starts");
        let ready = place.join("ready");
        let ready = tokio::task::spawn_blocking(move || std::fs::read(ready));
        ready.await.expect("ran").expect("fio is connected");
        // Nothing else runs on this thread until fio is over.
        std::fs::write(place.join("go"), "\n").expect("fio waits");
        let ended = fio.wait_with_output().expect("waited for");
        let said = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success() && said.contains("err= 0"), "{said}");
    });
}
