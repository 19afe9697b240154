//! `palisade doctor` on made-up machines, and beside a daemon.

use crate::common::place::{Daemon, Place};
use crate::common::{output, text};
use serde_json::Value;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Two NVMe drives with links of four lanes each, and a port of 25 Gb/s.
const SYS: &str = "\
class/block/nvme0n1 -> ../../devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1
class/block/nvme1n1 -> ../../devices/pci0000:00/0000:02:00.0/nvme/nvme1/nvme1n1
class/net/eth0 -> ../../devices/pci0000:00/0000:03:00.0/net/eth0
class/nvme/
devices/pci0000:00/0000:01:00.0/current_link_speed = 16.0 GT/s PCIe
devices/pci0000:00/0000:01:00.0/current_link_width = 4
devices/pci0000:00/0000:01:00.0/max_link_speed = 16.0 GT/s PCIe
devices/pci0000:00/0000:01:00.0/max_link_width = 4
devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1/dev = 259:0
devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1/device -> ..
devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1/queue/logical_block_size = 512
devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1/size = 2097152
devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1/wwid = eui.0
devices/pci0000:00/0000:01:00.0/nvme/nvme0/serial = S0
devices/pci0000:00/0000:01:00.0/nvme/nvme0/subsystem -> ../../../../../class/nvme
devices/pci0000:00/0000:01:00.0/nvme/nvme0/transport = pcie
devices/pci0000:00/0000:02:00.0/current_link_speed = 16.0 GT/s PCIe
devices/pci0000:00/0000:02:00.0/current_link_width = 4
devices/pci0000:00/0000:02:00.0/max_link_speed = 16.0 GT/s PCIe
devices/pci0000:00/0000:02:00.0/max_link_width = 4
devices/pci0000:00/0000:02:00.0/nvme/nvme1/nvme1n1/dev = 259:1
devices/pci0000:00/0000:02:00.0/nvme/nvme1/nvme1n1/device -> ..
devices/pci0000:00/0000:02:00.0/nvme/nvme1/nvme1n1/queue/logical_block_size = 512
devices/pci0000:00/0000:02:00.0/nvme/nvme1/nvme1n1/size = 2097152
devices/pci0000:00/0000:02:00.0/nvme/nvme1/nvme1n1/wwid = eui.1
devices/pci0000:00/0000:02:00.0/nvme/nvme1/serial = S1
devices/pci0000:00/0000:02:00.0/nvme/nvme1/subsystem -> ../../../../../class/nvme
devices/pci0000:00/0000:02:00.0/nvme/nvme1/transport = pcie
devices/pci0000:00/0000:03:00.0/net/eth0/addresses = 192.0.2.1/24
devices/pci0000:00/0000:03:00.0/net/eth0/carrier = 1
devices/pci0000:00/0000:03:00.0/net/eth0/device -> ../..
devices/pci0000:00/0000:03:00.0/net/eth0/flags = 0x1003
devices/pci0000:00/0000:03:00.0/net/eth0/mtu = 9000
devices/pci0000:00/0000:03:00.0/net/eth0/speed = 25000
";

const PROC: &str = "\
clock = 1
meminfo = MemTotal: 67108864 kB\\nMemAvailable: 60000000 kB
self/limits = Max open files 1024 524288 files\\nMax locked memory 8388608 8388608 bytes
self/mountinfo = 29 1 259:7 / / rw - ext4 /dev/sda1 rw
self/status = Uid: 0 0 0 0\\nGid: 0 0 0 0\\nGroups: 0\\nCapEff: 000001ffffffffff
swaps = Filename Type Size Used Priority
sys/kernel/hostname = shelf
sys/kernel/io_uring_disabled = 0
sys/kernel/osrelease = 6.12.1-amd64
sys/net/ipv4/ip_unprivileged_port_start = 1024
";

/// A machine: its trees, and a configuration of a daemon on it.
struct Machine {
    dir: TempDir,
    config: String,
}

impl Machine {
    /// One on which all is well, but for the words that are others.
    fn new(others: &[(&str, &str)], config: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).expect("set");
        for (name, tree) in [("sys", SYS), ("proc", PROC)] {
            let tree =
                others.iter().fold(tree.to_owned(), |tree, (from, to)| tree.replace(from, to));
            let into = dir.path().join(name);
            std::fs::create_dir(&into).expect("made");
            drives::sysfs::tree::unpack(&tree, &into).expect("unpacked");
        }
        let machine = Self { dir, config: config.to_owned() };
        let state = machine.at("state");
        std::fs::create_dir(&state).expect("made");
        std::fs::set_permissions(&state, PermissionsExt::from_mode(0o700)).expect("set");
        machine
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What `doctor` says of it.
    fn doctor(&self, words: &[&str]) -> Output {
        let [sys, state, socket] = ["sys", "state", "sock"].map(|name| self.at(name));
        let text =
            format!("sysfs = {sys:?}\nstate = {state:?}\nsocket = {socket:?}\n{}\n", self.config);
        std::fs::write(self.at("palisade.toml"), text).expect("written");
        let (config, proc) = (self.at("palisade.toml"), self.at("proc"));
        doctor(&config, &proc, words)
    }
}

fn doctor(config: &Path, proc: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
    command.env_remove("PALISADE_SOCKET").env_remove("PALISADE_URL").arg("doctor");
    command.arg("--config").arg(config).arg("--proc").arg(proc).args(words);
    output(&mut command)
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(output)))
}

/// The checks with this status, by name.
fn with(report: &Value, statuses: &[&str]) -> Vec<String> {
    let checks = report["checks"].as_array().expect("checks").iter();
    let own = checks.filter(|own| statuses.contains(&own["status"].as_str().expect("a word")));
    own.map(|own| own["id"].as_str().expect("a name").to_owned()).collect()
}

const DRIVES: &str = "drives = [\"/dev/nvme0n1\", \"/dev/nvme1n1\"]\nhttps = [\"192.0.2.1:8443\"]";

#[test]
fn a_machine_that_is_well_has_nothing_to_mend() {
    let machine = Machine::new(&[], DRIVES);
    let told = machine.doctor(&["--json"]);
    let report = json(&told);
    assert_eq!(told.status.code(), Some(0), "{report:#}");
    assert_eq!((&report["schema"], &report["ok"]), (&1.into(), &true.into()));
    assert_eq!(with(&report, &["warning", "critical"]), [""; 0]);
    // What only system calls and drives tell is not known of a machine that is not this one.
    assert_eq!(with(&report, &["unknown"]), ["io-uring", "drive-foreign"]);
    let first = &report["checks"][0];
    let keys: Vec<_> = first.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["area", "id", "status", "what"], "no why and mend where all is well");
    let told = machine.doctor(&[]);
    let said = text(&told);
    assert!(
        told.status.success() && said.contains("ok        kernel             Linux 6.12.1-amd64")
    );
    assert!(said.ends_with("nothing to mend, 2 not known\n"), "{said}");
}

#[test]
fn a_machine_with_faults_is_told_each_with_why_and_what_mends_it() {
    let others = [
        ("6.12.1-amd64", "5.4.0-26"),
        ("io_uring_disabled = 0", "io_uring_disabled = 2"),
        ("000001ffffffffff", "0000000000000000"),
        ("1024 524288 files", "1024 1024 files"),
        ("clock = 1", "clock = 0"),
        ("MemAvailable: 60000000", "MemAvailable: 1000"),
        ("0000:01:00.0/current_link_width = 4", "0000:01:00.0/current_link_width = 1"),
        ("wwid = eui.1", "wwid = eui.0"),
        ("serial = S1", "serial = S0"),
        ("259:7 / / rw - ext4 /dev/sda1", "259:1 / /srv rw - ext4 /dev/nvme1n1"),
        ("192.0.2.1/24", "192.0.2.2/24"),
        ("carrier = 1", "carrier = 0"),
    ];
    let config = "drives = [\"/dev/nvme0n1\", \"/dev/nvme1n1\", \"/dev/nvme7n1\"]\n\
                  https = [\"192.0.2.1:443\", \"192.0.2.2:8443\"]";
    let machine = Machine::new(&others, config);
    // Another program listens on the second address.
    let line = "0: 020200C0:20FB 00000000:0000 0A 0:0 0:0 0 0 0 4711 1 0 100";
    let fds = machine.at("proc/55/fd");
    std::fs::create_dir_all(&fds).expect("made");
    std::fs::create_dir_all(machine.at("proc/net")).expect("made");
    std::fs::write(machine.at("proc/net/tcp"), format!("head\n {line}\n")).expect("written");
    std::fs::write(machine.at("proc/55/comm"), "nginx\n").expect("written");
    symlink("socket:[4711]", fds.join("3")).expect("linked");
    std::fs::set_permissions(machine.at("state"), PermissionsExt::from_mode(0o777)).expect("set");
    std::fs::write(machine.at("sock"), "").expect("written");
    std::fs::write(machine.at("state/https.pem"), "no certificate").expect("written");
    std::fs::set_permissions(machine.at("state/https.pem"), PermissionsExt::from_mode(0o644))
        .expect("set");
    let told = machine.doctor(&["--json"]);
    let report = json(&told);
    assert_eq!((told.status.code(), &report["ok"]), (Some(1), &false.into()), "{report:#}");
    let expected = [
        "kernel",
        "io-uring",
        "open-files",
        "memory-lock",
        "memory",
        "sys-admin",
        "sys-resource",
        "net-bind",
        "listener-address",
        "listener-port",
        "port-link",
        "drive-absent",
        "drive-twice",
        "drive-in-use",
        "drive-link",
        "certificate",
        "certificate-key",
        "clock",
        "state",
        "socket",
    ];
    assert_eq!(with(&report, &["warning", "critical"]), expected, "{report:#}");
    for own in report["checks"].as_array().expect("checks") {
        let is_bad = matches!(own["status"].as_str(), Some("warning" | "critical"));
        for key in ["why", "mend"] {
            assert!(!is_bad || own[key].as_str().is_some_and(|text| text.len() > 9), "{own:#}");
        }
    }
    let said = text(&machine.doctor(&[]));
    for word in ["critical  memory", "why:  ", "mend: ", "nginx (process 55)", "20 findings: "] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn mistakes_of_the_configuration_are_findings_and_what_can_be_is_looked_at() {
    let machine = Machine::new(&[], "");
    let config = machine.at("bad.toml");
    std::fs::write(&config, "cores = 1\ncors = 1\n").expect("written");
    let told = doctor(&config, &machine.at("proc"), &["--json"]);
    let report = json(&told);
    assert_eq!(told.status.code(), Some(1), "{report:#}");
    let first = &report["checks"][0];
    assert_eq!((&first["id"], &first["status"]), (&"config".into(), &"critical".into()));
    assert!(first["what"].as_str().is_some_and(|what| what.contains("line 2: ")), "{first:#}");
    assert!(with(&report, &["ok"]).contains(&"kernel".to_owned()), "{report:#}");
    let told = doctor(&machine.at("none.toml"), &machine.at("proc"), &[]);
    let said = text(&told);
    assert!(told.status.code() == Some(1) && said.contains("none.toml can't be read"), "{said}");
}

#[test]
fn a_daemon_that_runs_is_asked() {
    let mut place = Place::new("doctor", 12);
    let drives = place.drives(3);
    let daemon = Daemon::start(&place, 1);
    daemon.create("data", "1", &drives[..2], &[]);
    // The next start is to look at the first only.
    let machine = Machine::new(&[], &format!("drives = [{:?}]", drives[0]));
    let socket = daemon.socket().to_string_lossy().into_owned();
    let told = machine.doctor(&["--json", "--socket", &socket]);
    let report = json(&told);
    let checks = report["checks"].as_array().expect("checks");
    let of = |id: &str| checks.iter().filter(|own| own["id"] == id).collect::<Vec<_>>();
    let what = of("daemon")[0]["what"].to_string();
    assert!(what.contains(&format!("process {}", daemon.pid())), "{what}");
    assert_eq!(of("drive-unusable")[0]["status"], "ok", "{report:#}");
    let lost = format!("{} is slot 1 of array \"data\"", drives[1]);
    let is_told = |own: &&Value| own["what"].as_str().is_some_and(|what| what.contains(&lost));
    assert!(of("drive-unlisted").iter().any(is_told), "{report:#}");
    assert_eq!(told.status.code(), Some(1));
}

#[test]
fn a_daemon_that_does_not_answer_is_told_once_and_its_port_is_its_own() {
    let machine = Machine::new(&[("MemAvailable: 60000000", "MemAvailable: 1000")], DRIVES);
    // It takes a connection, and ends it. Who listens on its port can't be seen.
    let socket = UnixListener::bind(machine.at("sock")).expect("bound");
    std::fs::set_permissions(machine.at("sock"), PermissionsExt::from_mode(0o660)).expect("set");
    std::fs::create_dir_all(machine.at("proc/net")).expect("made");
    let line = "0: 010200C0:20FB 00000000:0000 0A 0:0 0:0 0 0 0 4711 1 0 100";
    std::fs::write(machine.at("proc/net/tcp"), format!("head\n {line}\n")).expect("written");
    std::thread::spawn(move || {
        for taken in socket.incoming() {
            drop(taken);
        }
    });
    let report = json(&machine.doctor(&["--json"]));
    assert_eq!(with(&report, &["warning", "critical"]), ["daemon"], "{report:#}");
}

#[test]
fn wrong_usage_is_refused_and_help_says_what_is_looked_at() {
    let machine = Machine::new(&[], DRIVES);
    for words in [&["--bogus"][..], &["--url", "https://shelf:8443"], &["more"]] {
        let told = machine.doctor(words);
        assert_eq!(told.status.code(), Some(2), "{words:?}: {}", text(&told));
        assert!(told.stdout.is_empty());
    }
    let said = text(&machine.doctor(&["--help"]));
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in ["io_uring", "certificate", "clock", "what mends it", "1 findings", "--config"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}
