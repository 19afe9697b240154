//! Machines with a fault, and with what looks like one, each with what is said of it.

use super::*;

/// Makes another machine of one.
pub type Change = fn(&mut Facts);

/// A check, what is wrong, how grave it is, and what is said of it.
pub type Row = (&'static str, Change, Status, &'static [&'static str]);

/// Faults of a machine without a daemon.
pub const SYSTEM: &[Row] = &[
    ("config", |f| f.config.unread = Some("gone".into()), Critical, &["/p.toml", "gone"]),
    (
        "config",
        |f| f.config.mistakes.push(Mistake { line: Some(3), what: "no key".into() }),
        Critical,
        &["/p.toml: line 3: no key", "palisade check-config /p.toml"],
    ),
    (
        "daemon",
        |f| f.daemon = silent(true),
        Unknown,
        &[
            "does not answer this user: no",
            "sudo palisade doctor --config /p.toml;",
            "the group palisade",
        ],
    ),
    (
        "daemon",
        |f| (f.daemon, f.config.says.access) = (silent(true), Some(Access::default())),
        Unknown,
        &["a user whom `[access]`"],
    ),
    ("daemon", |f| f.daemon = silent(false), Warning, &["stand still", "journalctl -u palisade"]),
    ("kernel", |f| f.kernel.release = Some("5.10.0".into()), Warning, &["5.10.0", "apt install"]),
    ("kernel", |f| f.kernel.release = Some("4.19".into()), Warning, &["4.19"]),
    ("kernel", |f| f.kernel.release = None, Unknown, &["not known"]),
    (
        "io-uring",
        |f| f.kernel.uring_disabled = Some(2),
        Warning,
        &["io_uring_disabled = 2", "sysctl -w kernel.io_uring_disabled=0"],
    ),
    (
        "io-uring",
        |f| (f.kernel.uring_disabled, f.process.capabilities) = (Some(1), Some(0)),
        Warning,
        &["io_uring_disabled = 1"],
    ),
    ("io-uring", |f| f.kernel.ring = Some(Err("refused".into())), Warning, &["refused", "seccomp"]),
    ("io-uring", |f| f.kernel.ring = None, Unknown, &["palisade doctor"]),
    (
        "open-files",
        |f| f.process.files = Some(Limit { soft: 1024, hard: 2048 }),
        Warning,
        &["2048", "2952", "below [Service]: LimitNOFILE=4096; then", "ulimit -Hn 4096"],
    ),
    (
        "memory-lock",
        |f| f.process.capabilities = Some(0),
        Warning,
        &["8 MiB", "LimitMEMLOCK=infinity"],
    ),
    (
        "memory",
        |f| f.memory.available = Some(100 * MIB),
        Critical,
        &["100 MiB", "200 MiB", "cores"],
    ),
    ("sys-admin", |f| f.process.capabilities = Some(0), Warning, &["CAP_SYS_ADMIN"]),
    ("sys-resource", |f| f.process.capabilities = Some(0), Warning, &["CAP_SYS_RESOURCE"]),
    (
        "net-bind",
        |f| f.process.capabilities = Some(0),
        Critical,
        &["port 80", "ports from 1024 on", "AmbientCap", "CapabilityBound"],
    ),
    (
        "net-bind",
        |f| (f.process.capabilities, f.process.user) = (Some(0), Some(1000)),
        Unknown,
        &["sudo palisade doctor"],
    ),
];

pub const NETWORK: &[Row] = &[
    (
        "listener-address",
        |f| {
            f.network.listeners[0].is_local = Some(false);
        },
        Critical,
        &[
            "192.0.2.1:8443 (https)",
            "ip address add 192.0.2.1/LENGTH",
            "sysctl -w net.ipv4.ip_nonlocal_bind=1",
            "/p.toml",
        ],
    ),
    (
        "listener-address",
        |f| f.network.listeners[1].is_local = Some(false),
        Critical,
        &["(export data:1)", "palisade export delete data:1"],
    ),
    (
        "listener-port",
        |f| {
            let owner = Owner { pid: 9, name: "nginx".into(), is_daemon: false };
            let address = "0.0.0.0:8443".parse().expect("one");
            f.network.sockets = vec![Socket { address, owner: Some(owner) }];
        },
        Critical,
        &["nginx (process 9) listens on 0.0.0.0:8443", "systemctl status 9"],
    ),
    (
        "listener-port",
        |f| {
            let address = "[::1]:80".parse().expect("one");
            f.network.sockets = vec![Socket { address, owner: None }];
        },
        Critical,
        &["another program", "ss --listening", "sport = :80"],
    ),
    ("port-link", |f| f.network.ports[0].has_link = false, Warning, &["eth0", "ip link show eth0"]),
    (
        "port-link",
        |f| {
            f.network.listeners = vec![listener("[::]:8443", ListenerOf::Https)];
            f.network.ports[0].has_link = false;
        },
        Warning,
        &["eth0"],
    ),
    (
        "port-link",
        |f| (f.network.ports[0].has_link, f.network.ports[0].is_enabled) = (false, false),
        Warning,
        &["switched off", "ip link set eth0 up"],
    ),
    (
        "mtu",
        |f| f.network.ports[0].mtu = Some(1500),
        Warning,
        &["eth0 of 100 Gb/s has an MTU of 1500", "ip link set eth0 mtu 9000"],
    ),
];

pub const DRIVES: &[Row] = &[
    ("drive-absent", |f| f.absent = vec!["/dev/x".into()], Warning, &["nothing is at /dev/x"]),
    ("drive-absent", |f| f.config.says.drives.clear(), Warning, &["\"/dev/nvme*n?\""]),
    (
        "drive-absent",
        |f| {
            f.config.says.drives.clear();
            used(f, By::Mount, &["/", "/boot/efi"]);
        },
        Warning,
        &["names no drives", "one by one, without /dev/nvme0n1", "/dev/disk/by-id"],
    ),
    (
        "drive-unlisted",
        |f| f.drives[1].is_listed = false,
        Critical,
        &["/dev/nvme1n1 (1 GiB, serial S1) is slot 1 of array \"data\"", "add \"/dev/nvme1n1\""],
    ),
    (
        "drive-unlisted",
        |f| (f.drives[1].is_listed, f.drives[1].content) = (false, Some(Content::Blank)),
        Warning,
        &["in no use"],
    ),
    (
        "drive-unlisted",
        |f| (f.drives[1].is_listed, f.drives[1].content) = (false, None),
        Unknown,
        &["what is on /dev/nvme1n1 is not known", "sudo palisade doctor"],
    ),
    (
        "drive-foreign",
        |f| f.drives.iter_mut().for_each(|drive| drive.content = None),
        Unknown,
        &[
            "what is on /dev/nvme0n1, /dev/nvme1n1 is not known",
            "dd if=/dev/nvme0n1 of=/dev/null count=1",
        ],
    ),
    (
        "drive-twice",
        |f| f.drives[1].device.as_mut().expect("one").identity = device(0).identity,
        Critical,
        &["/dev/nvme0n1 and /dev/nvme1n1 are one drive by two ways"],
    ),
    (
        "drive-twice",
        |f| {
            let part = f.drives[1].device.as_mut().expect("one");
            (part.partition, part.part_of) = (Some(1), Some("nvme0n1".into()));
        },
        Critical,
        &["lie on one another"],
    ),
    (
        "drive-in-use",
        |f| used(f, By::Mount, &["/mnt", "/mnt/a b"]),
        Warning,
        &["at /mnt, /mnt/a b", "umount '/mnt/a b' /mnt"],
    ),
    ("drive-in-use", |f| used(f, By::Swap, &[]), Warning, &["is on /dev/nvme0n1 (swap)"]),
    (
        "drive-in-use",
        |f| {
            used(f, By::Mount, &["/", "/boot/efi"]);
            used(f, By::Md("/dev/md0".into()), &["/usr"]);
        },
        Warning,
        &[
            "the system is on /dev/nvme0n1 (/, /boot/efi, /usr)",
            "the others one by one, without it",
            "ls -l /dev/disk/by-id",
        ],
    ),
    (
        "drive-in-use",
        |f| {
            used(f, By::Mount, &["/"]);
            f.config.says.drives = vec!["/dev/nvme0n1".into()];
        },
        Warning,
        &["take it out of `drives` in /p.toml"],
    ),
    (
        "drive-in-use",
        |f| used(f, By::Md("/dev/md0".into()), &[]),
        Warning,
        &["run: mdadm --stop /dev/md0"],
    ),
    (
        "drive-in-use",
        |f| used(f, By::Mapper { name: "vg-lv".into(), group: Some("vg".into()) }, &["/srv"]),
        Warning,
        &["run: umount /srv && vgchange -an vg"],
    ),
    (
        "drive-in-use",
        |f| used(f, By::Mapper { name: "secret".into(), group: None }, &[]),
        Warning,
        &["dmsetup remove secret"],
    ),
    ("drive-in-use", |f| used(f, By::Holder("/dev/bcache0".into()), &[]), Warning, &["bcache0"]),
    (
        "drive-foreign",
        |f| f.drives[0].content = Some(Content::Foreign("ext4".into())),
        Warning,
        &["/dev/nvme0n1 holds ext4", "palisade drive wipe /dev/nvme0n1"],
    ),
    (
        "drive-link",
        |f| {
            let pci = f.drives[0].device.as_mut().expect("one").pci.as_mut().expect("one");
            pci.link.as_mut().expect("one").now = Width { lanes: 2, megatransfers: 8_000 };
        },
        Warning,
        &["is 8.0 GT/s x2, and could be 16.0 GT/s x4", "lspci -vvs 0000:00:00.0"],
    ),
    (
        "drive-health",
        |f| {
            let (what, action) = ("worn".to_owned(), "replace it".to_owned());
            let (rule, level) = (Rule::Wear, Level::Critical);
            let reasons = vec![Judged { rule, level, what, action, since: NOW }];
            f.drives[0].verdict = Some(Verdict { level, reasons });
        },
        Critical,
        &["/dev/nvme0n1: worn", "replace it"],
    ),
    (
        "drive-blocks",
        |f| f.drives[1].block_bytes = Some(512),
        Warning,
        &["512 bytes: /dev/nvme1n1", "nvme id-ns -H /dev/nvme1n1"],
    ),
];

pub const KEEPING: &[Row] = &[
    (
        "certificate",
        |f| f.https.certificate = Some(Err("no key".into())),
        Critical,
        &["no key", "systemctl reload palisade"],
    ),
    ("certificate", |f| own(f).not_after = NOW + 30 * DAY, Warning, &["/c.pem ends within 30"]),
    ("certificate", |f| own(f).not_after = NOW, Critical, &["ended at 2026-07-01"]),
    ("certificate", |f| own(f).not_before = NOW + 1, Critical, &["good from"]),
    ("certificate", |f| f.https.certificate = None, Unknown, &["sudo palisade doctor"]),
    (
        "certificate-names",
        |f| own(f).names = ["localhost", "127.0.0.1", "::1"].map(Into::into).to_vec(),
        Warning,
        &["is for localhost, 127.0.0.1, ::1 only", "made for shelf", "openssl"],
    ),
    ("certificate-names", |f| own(f).names.clear(), Warning, &["no name at all"]),
    ("certificate-key", |f| f.https.key_mode = Some(0o644), Critical, &["everybody may read"]),
    ("certificate-key", |f| f.https.key_mode = Some(0o660), Critical, &["its group may write"]),
    ("clock", |f| f.clock.is_kept = Some(false), Warning, &["timedatectl set-ntp true"]),
    ("clock", |f| f.clock.is_kept = None, Unknown, &["timedatectl"]),
    ("clock", |f| f.clock.latest = Some(NOW + 60), Critical, &["it was 2026-07-01"]),
    ("clock", |f| f.now = 5, Critical, &["1970-01-01"]),
    ("state", |f| f.state = State::default(), Warning, &["no state directory", "/p.toml"]),
    ("state", |f| f.state.node.kind = Some(NodeKind::Other), Critical, &["no directory"]),
    ("state", |f| f.state.is_read_only = Some(true), Critical, &["mount -o remount,rw"]),
    ("state", |f| f.state.node.mode = 0o770, Critical, &["mode 770", "chmod 700 /state"]),
    ("state", |f| f.state.node.mode = 0o755, Warning, &["others may read", "chmod 700 /state"]),
    (
        "state",
        |f| {
            f.process.is_daemon = true;
            f.process.user = Some(991);
        },
        Critical,
        &["user 0's, and the daemon is user 991", "chown -R 991 /state"],
    ),
    ("state-room", |f| f.state.free = Some(200 * MIB), Warning, &["200 MiB", "du -xh"]),
    ("state-room", |f| f.state.free = Some(0), Critical, &["0 MiB"]),
    ("socket", |f| f.socket.kind = Some(NodeKind::Other), Critical, &["is no socket", "mv "]),
    ("socket", |f| f.socket.mode = 0o666, Warning, &["chmod 660 /run/palisade/palisade.sock"]),
    ("socket", |f| f.socket.parent_mode = Some(0o777), Warning, &["chmod go-w /run/palisade"]),
];

/// As [`Row`], of a machine where a daemon runs.
pub type ToldRow = (&'static str, fn(&mut Facts, &mut Told), Status, &'static [&'static str]);

pub const TOLD: &[ToldRow] = &[
    ("memory-lock", |_, t| t.memory.locked = false, Warning, &["LimitMEMLOCK=infinity"]),
    ("sys-resource", |_, t| t.memory.io_flusher = false, Warning, &["CAP_SYS_RESOURCE"]),
    (
        "drive-unusable",
        |_, t| {
            let drive = &mut t.drives[0].drive;
            (drive.state, drive.problem) = (view::DriveState::Unusable, Some("busy".into()));
        },
        Critical,
        &["the daemon can't use /dev/nvme0n1: busy"],
    ),
    (
        // What is told already is not told again.
        "drive-unusable",
        |f, t| {
            t.drives.push(known(2));
            t.drives.iter_mut().for_each(|own| own.drive.state = view::DriveState::Unusable);
            used(f, By::Mount, &["/"]);
            f.absent = vec![t.drives[2].drive.path.clone()];
        },
        Critical,
        &["the daemon can't use /dev/nvme1n1"],
    ),
    (
        "drive-unusable",
        |_, t| t.drives[1].drive.state = view::DriveState::Failed,
        Critical,
        &["palisade array replace data --slot 1 --with DRIVE"],
    ),
    (
        "drive-health",
        |_, t| {
            let reason = view::Reason {
                rule: "wear".into(),
                health: Health::Warning,
                what: "worn".into(),
                action: "replace it".into(),
                since: NOW,
            };
            let link = view::Reason { rule: "link".into(), ..reason.clone() };
            t.drives[0].hardware =
                Arc::new(view::Hardware { reasons: vec![reason, link], ..Default::default() });
        },
        Warning,
        &["/dev/nvme0n1: worn"],
    ),
    (
        "certificate-served",
        |_, t| t.fingerprint = Some("EF".into()),
        Warning,
        &["another certificate than /c.pem", "systemctl reload palisade"],
    ),
    (
        "state",
        |_, t| t.state_problem = Some("full".into()),
        Critical,
        &["the daemon can't use /state: full"],
    ),
    (
        "drive-unlisted",
        |f, _| (f.drives[1].is_listed, f.drives[1].content) = (false, None),
        Critical,
        &["is slot 1 of array \"data\"", "; then: systemctl reload palisade"],
    ),
];

/// What looks like a fault and is none.
pub const FINE: &[(&str, Change)] = &[
    ("kernel", |f| f.kernel.release = Some("5.11-rc1".into())),
    ("io-uring", |f| f.kernel.uring_disabled = Some(1)),
    ("io-uring", |f| {
        (f.kernel.uring_disabled, f.kernel.uring_group) = (Some(1), Some(44));
        (f.process.capabilities, f.process.groups) = (Some(0), vec![44]);
    }),
    ("open-files", |f| f.process.files = Some(Limit { soft: 1, hard: u64::MAX })),
    ("memory-lock", |f| {
        f.process.capabilities = Some(0);
        f.process.locked = Some(Limit { soft: 1, hard: u64::MAX });
    }),
    ("memory-lock", |f| {
        (f.process.capabilities, f.process.may_use_gpu) = (Some(0), true);
    }),
    ("listener-address", |f| f.network.listeners[0].address = "[::]:8443".parse().expect("one")),
    // Another family, another port, or the daemon itself.
    ("listener-port", |f| {
        let socket =
            |address: &str, owner| Socket { address: address.parse().expect("one"), owner };
        let daemon = Owner { pid: 7, name: "palisade".into(), is_daemon: true };
        f.network.sockets = vec![
            socket("192.0.2.9:8443", None),
            socket("[::]:4420", None),
            socket("192.0.2.1:8443", Some(daemon)),
        ];
    }),
    ("drive-unlisted", |f| {
        f.drives[1].is_listed = false;
        f.drives[1].content = Some(Content::Foreign("ext4".into()));
    }),
    ("drive-unlisted", |f| {
        (f.drives[0].is_listed, f.drives[1].is_listed) = (false, true);
        used(f, By::Mount, &["/"]);
    }),
    ("drive-twice", |f| {
        // A drive that says nothing of itself may be any.
        f.drives[0].device.as_mut().expect("one").identity = Identity::default();
    }),
    ("certificate", |f| (own(f).not_after, own(f).is_made) = (NOW + DAY, true)),
    ("certificate-names", |f| own(f).names = vec!["192.0.2.1".into()]),
    ("certificate-names", |f| own(f).names = vec!["*.example".into()]),
    // A service's name, or an address that leads here by way of another machine.
    ("certificate-names", |f| own(f).names = vec!["storage.example".into()]),
    ("certificate-names", |f| own(f).names = vec!["198.51.100.7".into()]),
    ("certificate-names", |f| {
        own(f).names = vec!["localhost".into()];
        f.config.says.https = vec!["127.0.0.1:8443".parse().expect("one")];
    }),
    // Which of its ports hosts take, an address for all of them does not say.
    ("port-link", |f| {
        f.network.listeners[0].address = "0.0.0.0:8443".parse().expect("one");
        let spare = Port { has_link: false, ..port("eth1", "198.51.100.1/24") };
        f.network.ports.push(spare);
    }),
    ("port-link", |f| {
        f.network.listeners[0].address = "[::]:8443".parse().expect("one");
        let spare = Port { has_link: false, ..port("eth1", "2001:db8::1/64") };
        f.network.ports.push(spare);
    }),
    ("clock", |f| f.clock.latest = Some(NOW + 2)),
    ("state", |f| f.state.node.kind = None),
    ("socket", |f| {
        f.socket.mode = 0o666;
        f.config.says.access = Some(Access::default());
    }),
    ("socket", |f| f.socket.parent_mode = Some(0o1777)),
];
