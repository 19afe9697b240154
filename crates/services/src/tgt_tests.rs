//! What `tgtadm` shows is read.

use super::*;
use ::iscsi::{Identity, Secret};

/// As tgt 1.0.85 prints it: a target with a session, and another one.
const SHOWN: &str = "\
Target 1: iqn.2024-07.internal.palisade:one
    System information:
        Driver: iscsi
        State: ready
    I_T nexus information:
        I_T nexus: 1
            Initiator: iqn.2026-11.example:a alias: host
            Connection: 0
                IP Address: 127.0.0.1
        I_T nexus: 2
            Initiator: iqn.2026-11.example:b alias: none
            Connection: 0
                IP Address: 127.0.0.1
    LUN information:
        LUN: 0
            Type: controller
            SCSI ID: IET     00010000
            SCSI SN: beaf10
            Size: 0 MB, Block size: 1
            Backing store path: None
            Backing store flags: 
        LUN: 1
            Type: disk
            SCSI ID: 60014050000000000000000000000000
            SCSI SN: 00000000000000000000000000000000
            Size: 67 MB, Block size: 512
            Thin-provisioning: Yes
            Backing store type: rdwr
            Backing store path: /run/palisade-services/a-1.0
            Backing store flags: 
    Account information:
        u1
    ACL information:
        iqn.2026-11.example:a
        iqn.2026-11.example:asker
Target 7: iqn.2024-07.internal.palisade:two
    System information:
        Driver: iscsi
        State: ready
    I_T nexus information:
    LUN information:
        LUN: 0
            Type: controller
            SCSI SN: beaf70
            Backing store path: None
    Account information:
    ACL information:
";

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn account(user: &str) -> Account {
    Account::new(user, Secret::new("abcdefghijkl").expect("possible")).expect("possible")
}

fn target() -> Target {
    Target {
        portals: vec!["127.0.0.1:3260".parse().expect("an address")],
        initiators: vec![name("iqn.2026-11.example:a")],
        asker: name("iqn.2026-11.example:asker"),
        account: Some(account("u1")),
        asker_account: None,
        path: "/run/palisade-services/a-1.0".into(),
        block_bytes: 512,
        identity: Identity {
            target: name("iqn.2024-07.internal.palisade:one"),
            serial: "0".repeat(32),
            naa: format!("6001405{}", "0".repeat(25)),
        },
    }
}

#[test]
fn what_is_shown_is_read() {
    let shown = Shown::read(SHOWN);
    assert_eq!(shown.len(), 2);
    let one = &shown[0];
    assert_eq!((one.number, &*one.name), (1, "iqn.2024-07.internal.palisade:one"));
    assert_eq!(one.sessions, ["iqn.2026-11.example:a", "iqn.2026-11.example:b"]);
    assert_eq!(one.connections, [("1", "0"), ("2", "0")].map(|(s, c)| (s.into(), c.into())));
    assert_eq!(one.path, "/run/palisade-services/a-1.0");
    assert_eq!(one.accounts, ["u1"]);
    assert_eq!(one.access, ["iqn.2026-11.example:a", "iqn.2026-11.example:asker"]);
    let other = Shown {
        number: 7,
        name: "iqn.2024-07.internal.palisade:two".to_owned(),
        is_ready: true,
        ..Shown::default()
    };
    assert_eq!(shown[1], other);
}

#[test]
fn a_target_that_is_otherwise_is_seen() {
    let shown = Shown::read(SHOWN).remove(0);
    assert!(shown.is(&target()));
    assert!(!Shown { is_ready: false, ..shown.clone() }.is(&target()));
    let changes: [fn(&mut Target); 7] = [
        |own| own.initiators.push(name("iqn.2026-11.example:c")),
        |own| own.initiators.clear(),
        |own| own.account = None,
        |own| own.account = Some(account("u2")),
        |own| own.asker_account = Some(account("u2")),
        |own| own.path = "/run/palisade-services/a-1.1".into(),
        |own| own.identity.serial = "1".repeat(32),
    ];
    for change in changes {
        let mut target = target();
        change(&mut target);
        assert!(!shown.is(&target), "{target:?}");
    }
}

#[test]
fn portals_have_a_folder_whatever_their_order() {
    let all = ["127.0.0.1:3260", "[::1]:3260"].map(|portal| portal.parse().expect("an address"));
    let folder = |portals: &[SocketAddr]| Instance::of(Path::new("/run/x"), portals).folder;
    assert_eq!(folder(&all), folder(&[all[1], all[0], all[1]]));
    assert_ne!(folder(&all), folder(&all[..1]));
}
