//! Volumes that virtual machines have, over vhost-user.
//!
//! The checks of what a machine has are those of `script/guest.d/virtual`, which run in it. What
//! has to happen to the daemon meanwhile they ask for by events.
//!
//! As the tests of [`crate::guest`] that one has a name that ends with `is_a_host`.

use crate::common::place::{Daemon, Place};
use crate::common::{Running, count_of, program, start, tools_are_there, until};
use crate::guest::guest;
use serde_json::Value;
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const STAGE: Duration = Duration::from_secs(60);
/// Who may use a machine's socket.
const GROUP: u32 = 12_345;
/// The machine's processors, each with a queue: more than there are data cores.
const CPUS: &str = "4";
/// The MiB of what it has.
const MIB: u64 = 64;

fn export(daemon: &Daemon, id: &str) -> Value {
    daemon.call(&["export", "show", id])
}

#[test]
fn a_socket_is_one_volumes_and_one_machines() {
    let mut place = Place::new("machines", 16);
    let daemon = Daemon::start(&place, 2);
    let drives = place.drives(4);
    daemon.create("data", "5", &drives, &[]);
    for name in ["data/one", "data/other"] {
        daemon.call(&["volume", "create", name, "--size", "4M"]);
    }
    let socket = place.file("machines/vm.sock");
    let folder = socket.parent().expect("a folder");
    std::fs::create_dir(folder).expect("made");
    // Who is not root has its own.
    let given = std::os::unix::fs::chown(folder, None, Some(GROUP));
    let group = given.map_or_else(|_| folder.metadata().expect("it is there").gid(), |()| GROUP);
    std::fs::set_permissions(folder, Permissions::from_mode(0o2770)).expect("set");
    let path = socket.to_str().expect("text");
    for wrong in ["/a/../b", "/ends/"] {
        let said = daemon.ends(2, &["export", "create", "data/one", "--vhost-user", wrong]);
        assert!(said.contains("BadAddress"), "{said}");
    }
    let made = daemon.call(&["export", "create", "data/one", "--vhost-user", path]);
    assert_eq!((&made["kind"], &made["socket"]), (&"vhost-user".into(), &path.into()));
    assert_eq!(made["serving"], true);
    // The group that may use it is its folder's.
    let own = std::fs::metadata(&socket).expect("it is there");
    assert_eq!((own.mode() & 0o777, own.gid()), (0o660, group));
    let said = daemon.ends(1, &["export", "create", "data/one", "--vhost-user", path]);
    assert!(said.contains("AlreadyExported"), "{said}");
    let said = daemon.ends(1, &["export", "create", "data/other", "--vhost-user", path]);
    assert!(said.contains("FileTaken"), "{said}");
    // What comes to nothing leaves nothing, and takes nothing along.
    assert_eq!(daemon.call(&["export", "list"])["exports"].as_array().map(Vec::len), Some(1));
    let shown = export(&daemon, "data:1");
    assert_eq!((shown["serving"] == true, shown["clients"].is_null()), (true, true));
    // One machine at a time.
    let has_it = |is_so: bool| {
        until("it is told who has it", STAGE, || {
            (export(&daemon, "data:1")["clients"].is_null() != is_so).then_some(())
        });
    };
    let first = UnixStream::connect(&socket).expect("connected");
    has_it(true);
    let mut second = UnixStream::connect(&socket).expect("connected");
    let mut none = [0; 1];
    assert_eq!(std::io::Read::read(&mut second, &mut none).ok(), Some(0), "it is sent away");
    drop(first);
    has_it(false);
    // What is no machine is sent away, too.
    let mut stranger = UnixStream::connect(&socket).expect("connected");
    stranger.write_all(&[0xff; 64]).expect("written");
    let ended = std::io::Read::read(&mut stranger, &mut none);
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    has_it(false);
    // It comes back with the daemon, and goes with the export.
    daemon.kill();
    let daemon = Daemon::start(&place, 1);
    drop(UnixStream::connect(&socket).expect("connected"));
    let said = daemon.ends(3, &["volume", "delete", "data/one", "--yes"]);
    assert!(said.contains("data:1"), "{said}");
    daemon.call(&["export", "delete", "data:1"]);
    assert!(!socket.exists());
    daemon.stop();
}

/// Who serves the machine.
struct Server {
    place: Place,
    drives: Vec<String>,
    daemon: Option<Daemon>,
}

/// Another program that serves disks to virtual machines, QEMU's own: it serves zeros of its own at
/// a socket.
fn peer(place: &Place, socket: &str) -> Running {
    let own = place.file("peer.raw");
    File::create(&own).and_then(|file| file.set_len(MIB << 20)).expect("made");
    let mut command = program("qemu-storage-daemon");
    command.arg("--blockdev").arg(format!("file,node-name=disk,filename={}", own.display()));
    command.arg("--export").arg(format!(
        "vhost-user-blk,id=disk,node-name=disk,addr.type=unix,addr.path={socket},writable=on,\
         num-queues={CPUS}"
    ));
    Running(start(&mut command))
}

impl Server {
    fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("it runs")
    }

    /// Does what the machine asks for; the answer.
    fn event(&mut self, words: &[&str]) -> String {
        match words {
            ["restart"] => {
                self.daemon.take().expect("it runs").kill();
                self.daemon = Some(Daemon::start(&self.place, 2));
            }
            ["stop"] => {
                self.daemon.take().expect("it runs").stop();
                self.daemon = Some(Daemon::start(&self.place, 1));
            }
            ["lose"] => {
                self.daemon().call(&["array", "fail", "data", "--drive", "slot:1"]);
            }
            ["mend"] => {
                let drive = self.place.drive();
                let words = ["array", "replace", "data", "--slot", "1", "--with", &drive];
                self.daemon().call(&words);
                assert_eq!(self.daemon().settle("data")["state"], "optimal");
                self.drives[1] = drive;
            }
            ["grow", more] => {
                let bytes = more.parse::<u64>().expect("a number") + (MIB << 20);
                let size = bytes.to_string();
                self.daemon().call(&["volume", "resize", "data/v", "--size", &size]);
            }
            ["written"] => {
                // Of what is written in order more counts as written, until it is clean.
                let map = || self.daemon().show("data")["region_map"].clone();
                let clean = || (map()["dirty_regions"] == 0).then_some(());
                until("it is clean", Duration::from_secs(1200), clean);
                return format!("go {}", map()["written_bytes"]);
            }
            other => panic!("not known: {other:?}"),
        }
        "go".to_owned()
    }
}

#[test]
fn linux_6_12_of_a_machine_with_a_volume_is_a_host() {
    let mut place = Place::new("a virtual machine", 64);
    // The machine may be slow for as long as others compute.
    place.drive_deadline_ms = 600_000;
    let daemon = Daemon::start(&place, 2);
    let drives = place.drives(4);
    daemon.create("data", "5", &drives, &[]);
    let made = daemon.call(&["volume", "create", "data/v", "--size", &format!("{MIB}M")]);
    let uuid = made["uuid"].as_str().expect("text").replace('-', "");
    let socket = place.file("machine.sock");
    let path = socket.to_str().expect("text").to_owned();
    daemon.call(&["export", "create", "data/v", "--vhost-user", &path]);
    if !tools_are_there(&["qemu-storage-daemon"]) {
        return;
    }
    let other = place.file("peer.sock").to_str().expect("text").to_owned();
    let _peer = peer(&place, &other);
    until("it is served", STAGE, || Path::new(&other).exists().then_some(()));
    let kills = count_of("PALISADE_MACHINE_KILLS", 3).to_string();
    let mib = MIB.to_string();
    let machine = ["run", "6.12", "--events", "--time-limit", "3600", "--cpus", CPUS];
    let served = ["--vhost-user", &path, "--vhost-user", &other];
    let words = [&machine[..], &served, &["--", "virtual", &mib, &uuid[..20], &kills]].concat();
    let mut server = Server { place, drives, daemon: Some(daemon) };
    let said = guest(&words, |line, machine| {
        if let Some(event) = line.trim().strip_prefix("@ ") {
            let answer = server.event(&event.split_whitespace().collect::<Vec<_>>());
            writeln!(machine, "{answer}").expect("the machine listens");
        }
    });
    let Some(said) = said else { return };
    assert!(said.lines().any(|line| line == "0 failed"), "{said}");
    server.daemon().settle("data");
    server.daemon().scrub("data");
    server.daemon.take().expect("it runs").stop();
    let check = Place::read_array(&["--check"], &server.drives);
    assert!(!check.is_empty());
}
