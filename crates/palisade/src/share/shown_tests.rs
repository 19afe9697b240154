//! Shares as programs and people see them.

use super::*;
use crate::share::tests::system;
use serde_json::json;

fn shown(change: impl FnOnce(&mut FileSystem)) -> Shown {
    let mut of = system("docs", "docs", &["alice", "bob"]);
    change(&mut of);
    Shown::new(&of, &of.shares[0])
}

fn failed(problem: &str) -> ExportHealth {
    let problem = Some(problem.to_owned());
    ExportHealth { state: ServiceState::Failed, checked: None, problem }
}

#[test]
fn a_share_has_these_keys() {
    let health = json!({ "state": "ok", "checked": 60, "problem": null });
    let expected = json!({
        "name": "docs",
        "volume": "tank/docs",
        "read_only": false,
        "smb_users": [],
        "nfs_clients": ["10.0.0.0/24"],
        "filesystem": {
            "type": "xfs", "mounted": true, "read_only": false, "size_bytes": 10u64 << 30,
            "used_bytes": 1u64 << 30, "smb_listen": "[::]:445", "nfs_listen": "[::]:2049",
            "users": [{ "name": "alice", "uid": 70_001 }, { "name": "bob", "uid": 70_002 }],
            "health": health,
        },
        "protocols": [
            {
                "protocol": "smb", "server": "samba", "version": "4.22.4",
                "url": "smb://192.0.2.1/docs", "clients": ["192.0.2.7"], "health": health,
            },
            {
                "protocol": "nfs", "server": "nfs-ganesha", "version": null,
                "url": "nfs://192.0.2.1/docs", "clients": [], "health": health,
            },
        ],
    });
    assert_eq!(serde_json::to_value(shown(|_| {})).expect("JSON"), expected);
}

#[test]
fn a_table_has_a_row_for_each_protocol() {
    let text = table(&[shown(|of| of.shares[0].protocols[1].health = failed("no answer"))]);
    let whole = "\
SHARE  VOLUME     BY   STATE   CLIENTS  URL
docs   tank/docs  smb  ok      1        smb://192.0.2.1/docs
docs   tank/docs  nfs  failed  0        nfs://192.0.2.1/docs  no answer
";
    assert_eq!(text, whole);
}

#[test]
fn a_share_is_no_better_than_its_file_system() {
    use ServiceState::{Failed, Ok, Starting};
    let health = |state, problem: &str| ExportHealth {
        state,
        checked: None,
        problem: (!problem.is_empty()).then(|| problem.to_owned()),
    };
    for (of, by, told) in [
        (health(Ok, ""), health(Ok, ""), (Ok, None)),
        (health(Failed, "a"), health(Failed, "b"), (Failed, Some("a"))),
        (health(Failed, ""), health(Ok, ""), (Failed, None)),
        (health(Starting, "a"), health(Failed, "b"), (Failed, Some("b"))),
        (health(Starting, "a"), health(Ok, ""), (Starting, Some("a"))),
        (health(Ok, ""), health(Starting, "b"), (Starting, Some("b"))),
    ] {
        assert_eq!(standing(&of, &by), told, "{of:?} {by:?}");
    }
}

#[test]
fn all_about_a_share_says_what_to_do_about_it() {
    let well = "\
SHARE  VOLUME     BY   STATE  CLIENTS  URL
docs   tank/docs  smb  ok     1        smb://192.0.2.1/docs
docs   tank/docs  nfs  ok     0        nfs://192.0.2.1/docs

file system  xfs, mounted, 1 GiB of 10 GiB used
smb          samba 4.22.4, asked as a client 1970-01-01T00:01:00Z
smb users    all: alice, bob
connected    192.0.2.7 by smb
nfs          nfs-ganesha, asked as a client 1970-01-01T00:01:00Z
nfs clients  10.0.0.0/24";
    assert_eq!(detail(&shown(|_| {})), well);
    let text = detail(&shown(|of| {
        (of.kind, of.mounted, of.size_bytes) = (None, false, None);
        of.health = failed("no such device");
        of.shares[0].read_only = true;
        of.shares[0].smb_users = vec!["bob:ro".to_owned()];
        of.shares[0].protocols[1].health = failed("no answer");
    }));
    for line in [
        "file system  not known yet, not mounted",
        "access       read only",
        "smb users    bob:ro",
        "nfs          nfs-ganesha, not asked as a client yet",
        "problem      no such device",
        "problem      by nfs: no answer",
    ] {
        assert!(text.lines().any(|own| own == line), "{line}: {text}");
    }
    assert!(text.ends_with(&format!("what to do   {}", ExportHealth::ACTION)), "{text}");
}

#[test]
fn what_clients_type_is_said() {
    let lines = connect(&shown(|_| {}));
    let whole = [
        "mount -t cifs //192.0.2.1/docs DIR -o username=alice",
        "smbclient //192.0.2.1/docs -U alice",
        "mount -t nfs4 192.0.2.1:/docs DIR",
    ];
    assert_eq!(lines, whole);
    let lines = connect(&shown(|of| {
        of.users.clear();
        of.shares[0].name = "Team 1".to_owned();
        of.shares[0].protocols[0].url = "smb://0.0.0.0:1445/Team%201".to_owned();
        of.shares[0].protocols[1].url = "nfs://[fd00::1]:3049/Team%201".to_owned();
    }));
    let whole = [
        "mount -t cifs '//ADDR/Team 1' DIR -o username=USER,port=1445",
        "smbclient '//ADDR/Team 1' -U USER -p 1445",
        "mount -t nfs4 '[fd00::1]:/Team 1' DIR -o port=3049",
    ];
    assert_eq!(lines, whole);
    let none = connect(&shown(|of| {
        of.shares[0].protocols.truncate(1);
        of.shares[0].protocols[0].url = "smb://host:x/".to_owned();
    }));
    assert!(none.is_empty(), "{none:?}");
    for (url, told) in [
        ("smb://host/docs", Some(("host", None))),
        ("smb://host:445", Some(("host", Some(445)))),
        ("smb://[::]:445/docs", Some(("::", Some(445)))),
        ("smb://[::1", None),
        ("smb:///docs", None),
        ("docs", None),
    ] {
        assert_eq!(place(url), told, "{url}");
    }
}

#[test]
fn who_is_not_let_in_yet_is_said() {
    let next = |change: fn(&mut FileSystem)| {
        let share = shown(change);
        what_next(&share, &connect(&share))
    };
    let on_the_client = "\non the client:\n    mount -t cifs ";
    assert!(next(|_| {}).starts_with(on_the_client));
    let text = next(|of| {
        of.users.clear();
        of.shares[0].name = "Team 1".to_owned();
        of.shares[0].nfs_clients.clear();
    });
    let whole = "
by SMB nobody is let in until: palisade share user add NAME --share 'Team 1'
by NFS nobody is let in until: palisade share set 'Team 1' --nfs-client CIDR
on the client:";
    assert!(text.starts_with(whole), "{text}");
    let text = next(|of| of.shares[0].smb_users = vec!["bob".to_owned(), "carol:ro".to_owned()]);
    let whole = "\nby SMB carol is let in once added: palisade share user add carol --share docs\n";
    assert!(text.starts_with(whole), "{text}");
    let text = next(|of| of.shares[0].protocols[0].url = "smb://[::]/docs".to_owned());
    assert!(text.contains("where ADDR is an address of this machine"), "{text}");
}

#[test]
fn a_summary_has_what_is_wrong_in_the_place_of_the_url() {
    assert_eq!(table_within(100, &[]), "");
    let mut of = system("docs", "docs", &[]);
    of.shares[0].protocols[0].health = failed(&"word ".repeat(40));
    let text = table_within(80, &[&of]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("SHARE  VOLUME     BY   STATE   CLIENTS  URL"));
    let begin = "docs   tank/docs  smb  failed  1        word word";
    assert!(lines.next().is_some_and(|line| line.starts_with(begin)), "{text}");
    let last = "docs   tank/docs  nfs  ok      0        nfs://192.0.2.1/docs";
    assert_eq!(lines.next(), Some(last));
}
