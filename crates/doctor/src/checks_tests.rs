//! Each check on a machine that is well, and on one with a fault.

use crate::facts::*;
use crate::{CHECKS, Facts, Outcome, Report, Status, examine};
use Status::{Critical, Ok as Well, Unknown, Warning};
use control::config::{Access, Config, Mistake};
use drives::sysfs::{Device, Identity, Kind, Link, Pci, Port, PortKind, Width};
use health::rules::{Level, Reason as Judged, Rule, Verdict};
use redfish::view::{self, Certificate, Health, KnownDrive, Memory};
use std::collections::BTreeSet;
use std::sync::Arc;
use units::{GIB, MIB};

#[path = "checks_rows.rs"]
mod rows;
use rows::*;

/// The 1st of July 2026.
const NOW: u64 = 1_782_864_000;
const DAY: u64 = 86_400;

fn device(number: u32) -> Device {
    let width = Width { lanes: 4, megatransfers: 16_000 };
    let link = Link { now: width, device: width, port: None };
    let address = format!("0000:0{number}:00.0");
    Device {
        name: format!("nvme{number}n1"),
        number: Some((259, number)),
        bytes: Some(GIB),
        identity: Identity {
            wwid: Some(format!("eui.{number}")),
            serial: Some(format!("S{number}")),
            namespace: Some(1),
            ..Identity::default()
        },
        kind: Kind::Nvme,
        pci: Some(Pci { address, link: Some(link), ..Pci::default() }),
        ..Device::default()
    }
}

fn drive(number: u32, is_listed: bool) -> Drive {
    let content = Content::Slot { array: "data".to_owned(), slot: number as u16, latest: NOW };
    Drive {
        path: format!("/dev/nvme{number}n1"),
        is_listed,
        device: Some(device(number)),
        block_bytes: Some(4096),
        uses: Vec::new(),
        content: Some(content),
        verdict: Some(Verdict::default()),
        known: None,
    }
}

fn port(name: &str, address: &str) -> Port {
    Port {
        name: name.to_owned(),
        kind: PortKind::Physical,
        mac: None,
        is_enabled: true,
        has_link: true,
        megabits: Some(100_000),
        full_duplex: Some(true),
        mtu: Some(9_000),
        addresses: vec![address.to_owned()],
    }
}

fn listener(address: &str, of: ListenerOf) -> Listener {
    Listener { address: address.parse().expect("an address"), of, is_local: Some(true) }
}

fn export(is_nvme: bool) -> ListenerOf {
    ListenerOf::Export { id: "data:1".to_owned(), is_nvme }
}

/// A machine on which all is well, without a daemon.
fn good() -> Facts {
    let https = "192.0.2.1:8443";
    let says = Config {
        drives: vec!["/dev/nvme*n?".to_owned()],
        https: vec![https.parse().expect("an address")],
        ..Config::default()
    };
    let certificate = Certificate {
        fingerprint: "AB:CD".to_owned(),
        not_before: NOW - DAY,
        not_after: NOW + 90 * DAY,
        names: vec!["shelf.example".to_owned()],
        ..Certificate::default()
    };
    let node = |path: &str, kind, mode| Node {
        path: path.into(),
        kind: Some(kind),
        mode,
        user: 0,
        parent_mode: Some(0o755),
    };
    Facts {
        now: NOW,
        config: Configured { file: "/p.toml".into(), unread: None, mistakes: vec![], says },
        daemon: Daemon::Absent,
        kernel: Kernel {
            release: Some("6.12.1-amd64".to_owned()),
            uring_disabled: Some(0),
            uring_group: None,
            ring: Some(Ok(())),
        },
        process: Process {
            user: Some(0),
            capabilities: Some(u64::MAX),
            files: Some(Limit { soft: 1024, hard: 524_288 }),
            locked: Some(Limit { soft: 8 * MIB, hard: 8 * MIB }),
            ..Process::default()
        },
        memory: Room { total: Some(64 * GIB), available: Some(60 * GIB) },
        network: Network {
            ports: vec![port("eth0", "192.0.2.1/24")],
            listeners: vec![
                listener(https, ListenerOf::Https),
                listener("192.0.2.1:4420", export(true)),
                listener("[::1]:80", export(false)),
            ],
            sockets: vec![],
            first_free_port: Some(1024),
        },
        drives: vec![drive(0, true), drive(1, true)],
        absent: vec![],
        https: Https {
            host: "shelf".to_owned(),
            file: Some("/c.pem".into()),
            certificate: Some(Ok(certificate)),
            key: Some("/k.pem".into()),
            key_mode: Some(0o640),
        },
        clock: Clock { is_kept: Some(true), latest: Some(NOW - 1) },
        state: State {
            dir: Some("/state".into()),
            node: node("/state", NodeKind::Directory, 0o700),
            is_read_only: Some(false),
            free: Some(GIB),
        },
        socket: node("/run/palisade/palisade.sock", NodeKind::Socket, 0o660),
    }
}

/// The same with a daemon that runs.
fn running() -> (Facts, Told) {
    let mut facts = good();
    facts.process.is_daemon = true;
    let memory = Memory { io_flusher: true, locked: true, ..Memory::default() };
    let told = Told {
        version: "1".to_owned(),
        pid: 7,
        memory,
        drives: vec![known(0), known(1)],
        fingerprint: Some("abcd".to_owned()),
        ..Told::default()
    };
    (facts, told)
}

fn known(number: u32) -> KnownDrive {
    KnownDrive {
        remote: None,
        id: format!("eui.{number}"),
        wwid: None,
        model: None,
        is_file: false,
        drive: view::Drive {
            path: format!("/dev/nvme{number}n1"),
            serial: format!("S{number}"),
            bytes: GIB,
            block_bytes: 4096,
            state: view::DriveState::InUse,
            array: Some("data".to_owned()),
            slot: Some(number as u16),
            signature: None,
            problem: None,
        },
        hardware: Arc::default(),
    }
}

fn outcomes(report: &Report, id: &str) -> Vec<Outcome> {
    report.checks.iter().filter(|outcome| outcome.id == id).cloned().collect()
}

fn silent(is_refusal: bool) -> Daemon {
    Daemon::Silent { why: "no".to_owned(), is_refusal }
}

fn used(facts: &mut Facts, by: By, mounts: &[&str]) {
    let (is_swap, mounts) = (by == By::Swap, mounts.iter().map(|at| (*at).to_owned()).collect());
    facts.drives[0].uses.push(Use { part: "nvme0n1p1".to_owned(), by, mounts, is_swap });
}

fn own(facts: &mut Facts) -> &mut Certificate {
    let own = facts.https.certificate.as_mut().expect("there is one");
    own.as_mut().expect("it can be used")
}

/// Holds what a check says of a machine against a row.
fn hold(facts: &Facts, (id, _, status, words): &Row) {
    let found = outcomes(&examine(facts), id);
    let [only] = found.as_slice() else { panic!("{id} {words:?}: one is said, not {found:?}") };
    let text = format!("{} {} {}", only.what, only.why, only.mend);
    assert_eq!(only.status, *status, "{id}: {text}");
    words.iter().for_each(|word| assert!(text.contains(word), "{id}: {word} is not in: {text}"));
    assert!(!only.why.is_empty() && !only.mend.is_empty(), "{id}: {text}");
}

#[test]
fn on_a_good_machine_all_is_well() {
    let (mut facts, told) = running();
    for drive in &mut facts.drives {
        drive.known = told.drives.iter().find(|known| known.drive.path == drive.path).cloned();
    }
    facts.daemon = Daemon::Running(Box::new(told));
    let report = examine(&facts);
    let bad: Vec<_> = report.checks.iter().filter(|outcome| outcome.status != Well).collect();
    assert!(report.ok && bad.is_empty(), "{bad:?}");
    let ids: Vec<_> = CHECKS.iter().map(|check| check.id).collect();
    let told: Vec<_> = report.checks.iter().map(|outcome| outcome.id).collect();
    assert_eq!(told, ids, "each check says something once, in its order");
    assert!(report.checks.iter().all(|own| own.why.is_empty() && own.mend.is_empty()));
    // Without a daemon nothing is missed but what only it knows.
    let alone = examine(&good());
    assert!(alone.ok && alone.checks.iter().all(|own| own.status == Well), "{alone:?}");
    let silent: Vec<_> =
        ids.into_iter().filter(|id| alone.checks.iter().all(|outcome| outcome.id != *id)).collect();
    assert_eq!(silent, ["drive-unusable", "certificate-served"]);
}

#[test]
fn each_fault_is_found_with_why_and_what_mends_it() {
    let mut red = BTreeSet::new();
    for row in [SYSTEM, NETWORK, DRIVES, KEEPING].concat() {
        let mut facts = good();
        row.1(&mut facts);
        hold(&facts, &row);
        red.insert(row.0);
    }
    for row in TOLD {
        let (mut facts, mut told) = running();
        row.1(&mut facts, &mut told);
        for drive in &mut facts.drives {
            drive.known = told.drives.iter().find(|known| known.drive.path == drive.path).cloned();
        }
        facts.daemon = Daemon::Running(Box::new(told));
        hold(&facts, &(row.0, |_| {}, row.2, row.3));
        red.insert(row.0);
    }
    let all: BTreeSet<_> = CHECKS.iter().map(|check| check.id).collect();
    assert_eq!(red, all, "each check has been red");
}

#[test]
fn what_looks_like_a_fault_and_is_none_is_let_be() {
    for (id, change) in FINE {
        let mut facts = good();
        change(&mut facts);
        let found = outcomes(&examine(&facts), id);
        assert!(found.iter().all(|outcome| outcome.status == Well), "{id}: {found:?}");
        assert!(!found.is_empty(), "{id} says so");
    }
}

#[test]
fn nothing_is_told_that_ends_the_system() {
    let places = ["/", "/boot", "/boot/efi", "/usr", "/var", "/var/log", "/home"];
    let mapper = |group| By::Mapper { name: "a-b".to_owned(), group };
    let group = Some("a".to_owned());
    for by in [By::Mount, By::Swap, By::Md("/dev/md0".into()), mapper(None), mapper(group)] {
        for place in places {
            let mut facts = good();
            used(&mut facts, by.clone(), &[place]);
            let found = outcomes(&examine(&facts), "drive-in-use");
            let mend: String = found.iter().map(|own| own.mend.as_str()).collect();
            for word in ["umount", "swapoff", "mdadm", "dmsetup", "vgchange"] {
                assert!(!mend.contains(word), "{by:?} {place}: {mend}");
            }
        }
    }
}

#[test]
fn a_daemon_that_does_not_answer_runs_all_the_same() {
    for (user, is_refusal) in [(1000, true), (0, false)] {
        let mut facts = good();
        facts.daemon = silent(is_refusal);
        // Its port is taken, by itself, and so is its memory; what a shell may is another matter.
        let https = facts.network.listeners[0].address;
        facts.network.sockets = vec![Socket { address: https, owner: None }];
        facts.memory.available = Some(MIB);
        (facts.process.user, facts.process.capabilities) = (Some(user), Some(0));
        facts.process.files = Some(Limit { soft: 1, hard: 1 });
        facts.drives[1].is_listed = false;
        let report = examine(&facts);
        let bad: Vec<_> = report.checks.iter().filter(|own| own.status != Well).collect();
        let told: Vec<_> = bad.iter().map(|own| own.id).collect();
        assert_eq!(told, ["daemon", "drive-unlisted"], "{bad:?}");
        assert!(bad[1].mend.contains("; then: systemctl"), "{bad:?}");
    }
    // Another program that can be seen is one, whoever answers.
    let mut facts = good();
    facts.daemon = silent(true);
    let owner = Some(Owner { pid: 9, name: "nginx".into(), is_daemon: false });
    facts.network.sockets = vec![Socket { address: facts.network.listeners[0].address, owner }];
    assert_eq!(outcomes(&examine(&facts), "listener-port")[0].status, Critical);
}

#[test]
fn what_does_not_apply_is_not_told() {
    let mut facts = good();
    (facts.config.says.https, facts.network.listeners) = (vec![], vec![]);
    facts.network.ports.clear();
    facts.drives.clear();
    let report = examine(&facts);
    let told: BTreeSet<_> = report.checks.iter().map(|outcome| outcome.id).collect();
    for id in ["listener-address", "listener-port", "port-link", "mtu", "net-bind", "certificate"] {
        assert!(!told.contains(id), "{id}");
    }
    for id in ["sys-admin", "drive-twice", "drive-link", "drive-health", "drive-blocks"] {
        assert!(!told.contains(id), "{id}");
    }
    facts = good();
    (facts.state, facts.config.unread) = (State::default(), Some("gone".into()));
    assert!(outcomes(&examine(&facts), "state").is_empty(), "the file may name a directory");
    facts = good();
    facts.network.listeners[1].is_local = None;
    assert!(outcomes(&examine(&facts), "listener-address").is_empty(), "nobody knows");
    facts = good();
    (facts.network.ports[0].mtu, facts.network.ports[0].megabits) = (Some(1500), Some(1_000));
    assert!(outcomes(&examine(&facts), "mtu").is_empty(), "a slow port");
    facts.config.says.health.link = 0;
    facts.drives = vec![drive(0, true)];
    assert!(outcomes(&examine(&facts), "drive-link").is_empty());
}

#[test]
fn the_form_for_programs_is_fixed() {
    let mut facts = good();
    facts.kernel.release = Some("5.4".into());
    let report = examine(&facts);
    assert!(!report.ok);
    let only: Vec<_> = report.checks.iter().map(|own| (own.id, own.area)).take(3).collect();
    assert_eq!(only, [("config", "config"), ("daemon", "daemon"), ("kernel", "kernel")]);
    for (status, word) in
        [(Well, "ok"), (Warning, "warning"), (Critical, "critical"), (Unknown, "unknown")]
    {
        let bad = status.is_finding();
        assert_eq!(bad, matches!(word, "warning" | "critical"));
    }
}

#[test]
fn the_page_for_administrators_lists_the_checks() {
    let page = include_str!("../../../docs/operating.md");
    let rows = CHECKS
        .iter()
        .map(|check| format!("| {} | `{}` | {} |\n", check.area, check.id, check.looks_for));
    let table: String = rows.collect();
    assert!(page.contains(&table), "docs/operating.md lacks the table:\n{table}");
}
