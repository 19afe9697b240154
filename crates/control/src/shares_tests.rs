//! What requests make of what is recorded, and how that is shown.

use super::*;
use redfish::messages::ErrorCode;
use redfish::view::{CreateShare, SetShare};
use services::wire::FileServer;
use std::collections::BTreeMap;

fn request(name: &str) -> CreateShare {
    CreateShare {
        array: "a".into(),
        volume: "v".into(),
        name: name.into(),
        format: None,
        overwrite: false,
        smb: true,
        nfs: true,
        read_only: false,
        smb_users: Vec::new(),
        nfs_clients: Vec::new(),
        smb_listen: None,
        nfs_listen: None,
    }
}

fn set(name: &str) -> SetShare {
    SetShare {
        array: "a".into(),
        volume: "v".into(),
        name: name.into(),
        smb: None,
        nfs: None,
        read_only: None,
        smb_users: None,
        nfs_clients: None,
        smb_listen: None,
        nfs_listen: None,
    }
}

fn shared(volume: &str, name: &str, others: &[Shared]) -> Shared {
    let own = created(&request(name), (volume, None), others).expect("possible");
    Shared { volume: volume.into(), own }
}

fn names(own: &ShareExport) -> String {
    Shared { volume: "t/a".into(), own: own.clone() }.names()
}

fn listens(own: &ShareExport) -> (&str, &str) {
    (&own.smb, &own.nfs)
}

#[test]
fn a_request_says_what_it_has_to() {
    let with = |change: fn(&mut CreateShare)| {
        let mut own = request("docs");
        change(&mut own);
        check_create(&own).err().map(|error| (error.code, error.error))
    };
    assert_eq!(with(|_| ()), None);
    assert_eq!(with(|own| own.smb_users = vec!["alice".into(), "bob:ro".into()]), None);
    assert_eq!(with(|own| own.nfs_clients = vec!["fd00::/64:ro".into(), "10.0.0.7".into()]), None);
    for (told, has) in [
        (with(|own| own.name = "a%b".into()), "can't be the name of a share"),
        (with(|own| (own.smb, own.nfs) = (false, false)), "needs SMB or NFS"),
        (with(|own| own.overwrite = true), "--overwrite goes with --format only"),
        (with(|own| own.smb_users = vec!["Alice".into()]), "can't be a user"),
        (with(|own| own.smb_users = vec!["a".into(), "a:ro".into()]), "a is named twice"),
        (with(|own| own.nfs_clients = vec!["10.0.0.5/24".into()]), "10.0.0.0/24 is meant"),
        (with(|own| own.nfs_clients = vec!["::1".into(), "::1/128:ro".into()]), "named twice"),
        (
            with(|own| (own.smb, own.smb_users) = (false, vec!["alice".into()])),
            "users are given, but the share is not by SMB",
        ),
        (
            with(|own| (own.nfs, own.nfs_clients) = (false, vec!["::/0".into()])),
            "networks of clients are given",
        ),
        (
            with(|own| (own.nfs, own.nfs_listen) = (false, Some("0.0.0.0:1".into()))),
            "addresses of NFS are given",
        ),
        (with(|own| own.smb_listen = Some("nas:445".into())), "no IP address with a port"),
        (with(|own| own.smb_listen = Some("0.0.0.0:0".into())), "its port is 0"),
        (with(|own| own.nfs_listen = Some("[fe80::1%3]:2049".into())), "of one interface"),
    ] {
        let (code, error) = told.expect("refused");
        assert_eq!(code, ErrorCode::Usage, "{error}");
        assert!(error.contains(has), "{error}");
    }
}

#[test]
fn file_systems_have_places_of_their_own() {
    let first = shared("t/a", "docs", &[]);
    assert_eq!(listens(&first.own), ("0.0.0.0:445", "0.0.0.0:2049"));
    let all = [first];
    let second = shared("t/b", "music", &all);
    assert_eq!(listens(&second.own), ("0.0.0.0:4450", "0.0.0.0:20490"));
    let [first] = all;
    let third = shared("t/c", "films", &[first.clone(), second]);
    assert_eq!(listens(&third.own), ("0.0.0.0:4451", "0.0.0.0:20491"));
    // Where the first is not reached by NFS, the second has the usual port.
    let mut only_smb = first;
    only_smb.own.shares[0].nfs = false;
    let all = [only_smb];
    let second = shared("t/b", "music", &all);
    assert_eq!(listens(&second.own), ("0.0.0.0:4450", "0.0.0.0:2049"));
    // Then the first goes elsewhere, once it is reached by that, too.
    let nfs = SetShare { nfs: Some(true), ..set("docs") };
    let [first] = all;
    let own = changed(&nfs, ("t/a", &first.own), core::slice::from_ref(&second)).expect("possible");
    assert_eq!(listens(&own), ("0.0.0.0:445", "0.0.0.0:20490"));
    let own = created(&request("more"), ("t/a", Some(&first.own)), &[second]).expect("possible");
    assert_eq!(listens(&own), ("0.0.0.0:445", "0.0.0.0:20490"));
}

#[test]
fn an_address_is_of_one_file_system() {
    let first = shared("t/a", "docs", &[]);
    let others = [first.clone()];
    let at = |smb: &str, nfs: &str| {
        let (smb_listen, nfs_listen) = (Some(smb.to_owned()), Some(nfs.to_owned()));
        let own = CreateShare { smb_listen, nfs_listen, ..request("music") };
        created(&own, ("t/b", None), &others).map_err(|error| error.error)
    };
    for (smb, nfs) in [("10.0.0.1:445", "[::]:999"), ("[::]:999", "0.0.0.0:2049")] {
        let refused = at(smb, nfs).expect_err("taken");
        assert!(refused.contains("clients reach the shares of volume t/a"), "{refused}");
    }
    let refused = at("10.0.0.1:999", "0.0.0.0:999").expect_err("taken by itself");
    assert!(refused.contains("clients reach the shares of volume t/b"), "{refused}");
    let own = at("[::]:999", "[::1]:998").expect("possible");
    assert_eq!(listens(&own), ("[::]:999", "[::1]:998"));
    // A further share is where others of its file system are.
    let elsewhere = CreateShare { smb_listen: Some("[::]:1".into()), ..request("more") };
    let refused = created(&elsewhere, ("t/a", Some(&first.own)), &[]).expect_err("elsewhere");
    assert!(refused.error.contains("other shares of volume t/a are at 0.0.0.0:445"));
    let own = SetShare { smb_listen: Some("[::]:1".into()), ..set("docs") };
    let own = changed(&own, ("t/a", &first.own), &[]).expect("possible");
    assert_eq!(listens(&own), ("[::]:1", "0.0.0.0:2049"));
}

#[test]
fn names_differ_everywhere() {
    let here = shared("t/a", "Größe", &[]);
    let others = [here.clone()];
    for name in ["GRÖSSE", "größe"] {
        for (own, others) in [(Some(&here.own), &[][..]), (None, &others[..])] {
            let refused = created(&request(name), ("t/a", own), others).expect_err("taken");
            assert_eq!(refused.code, ErrorCode::Refused);
            assert!(refused.error.contains("\"Größe\" is there already, of volume t/a"));
        }
    }
    let two = created(&request("b"), ("t/a", Some(&here.own)), &[]).expect("possible");
    assert_eq!(names(&two), "Größe, b");
    assert_eq!(names(&without(&two, "b").expect("there")), "Größe");
    assert!(without(&two, "B").is_err());
    assert_eq!(without(&here.own, "Größe").expect("there").shares, []);
}

#[test]
fn a_file_system_is_made_for_its_first_share_alone() {
    let format =
        CreateShare { format: Some(view::Format::Xfs), overwrite: true, ..request("docs") };
    let own = created(&format, ("t/a", None), &[]).expect("possible");
    assert_eq!(own.make, Some(MakeFilesystem { kind: Filesystem::Xfs, overwrite: true }));
    let again = CreateShare { name: "more".into(), ..format };
    let refused = created(&again, ("t/a", Some(&own)), &[]).expect_err("shared already");
    assert!(refused.error.contains("is not made anew"), "{}", refused.error);
    let more = created(&request("more"), ("t/a", Some(&own)), &[]).expect("possible");
    assert_eq!((more.make, more.shares.len()), (own.make, 2));
}

#[test]
fn what_is_not_said_stays() {
    let with = CreateShare {
        smb_users: vec!["alice:ro".into()],
        nfs_clients: vec!["10.0.0.0/8".into()],
        ..request("docs")
    };
    let own = created(&with, ("t/a", None), &[]).expect("possible");
    let change = |own: &ShareExport, request: SetShare| {
        changed(&request, ("t/a", own), &[]).map_err(|error| error.error)
    };
    let read_only = change(&own, SetShare { read_only: Some(true), ..set("docs") });
    let read_only = read_only.expect("possible");
    let said: Vec<String> = read_only.shares[0].users.iter().map(said).collect();
    assert_eq!((said, read_only.shares[0].read_only), (vec!["alice:ro".to_owned()], true));
    // Who had it by SMB has it no more once it is not by that, and not again by itself.
    let only_nfs = change(&own, SetShare { smb: Some(false), ..set("docs") }).expect("possible");
    assert!(only_nfs.shares[0].users.is_empty() && !only_nfs.shares[0].clients.is_empty());
    let all = change(&own, SetShare { smb_users: Some(Vec::new()), ..set("docs") });
    assert!(all.expect("possible").shares[0].users.is_empty());
    let none = SetShare { smb: Some(false), nfs: Some(false), ..set("docs") };
    assert!(change(&own, none).expect_err("by nothing").contains("needs SMB or NFS"));
    let users = SetShare { smb_users: Some(vec!["bob".into()]), ..set("docs") };
    assert!(change(&only_nfs, users).expect_err("not by SMB").contains("is not by SMB"));
    assert!(change(&own, set("Docs")).expect_err("no such").contains("no share is named"));
}

#[test]
fn a_share_is_shown_as_clients_find_it() {
    let format = CreateShare { format: Some(view::Format::Ext4), ..request("Team 1") };
    let own = created(&format, ("t/a", None), &[]).expect("possible");
    let own = ShareExport { smb: "192.0.2.7:445".into(), nfs: "[fd00::1]:999".into(), ..own };
    let of = || ("t", "a", "aaaa".to_owned());
    let nobody = shown(&own, of(), (None, None));
    assert_eq!((nobody.mounted, nobody.kind.as_deref()), (false, Some("ext4")));
    let urls: Vec<&str> = nobody.shares[0].protocols.iter().map(|own| own.url.as_str()).collect();
    assert_eq!(urls, ["smb://192.0.2.7/Team%201", "nfs://[fd00::1]:999/Team%201"]);
    let server = FileServer {
        version: "4.3".into(),
        clients: vec!["192.0.2.9".into()],
        problem: None,
        problems: BTreeMap::new(),
    };
    let bad = BTreeMap::from([("Team 1".to_owned(), "bad network name".to_owned())]);
    let files = Files {
        kind: "xfs".into(),
        read_only: false,
        note: None,
        size: 10,
        used: 1,
        users: vec![("alice".into(), 70001)],
        smb: Some(FileServer { problems: bad, ..server.clone() }),
        nfs: Some(server),
    };
    let failed = view::ExportHealth {
        state: view::ServiceState::Failed,
        checked: Some(7),
        problem: Some("Team 1: bad network name".into()),
    };
    let told = |files: Files| shown(&own, of(), (Some(&files), Some(failed.clone())));
    let is = told(files.clone());
    assert_eq!(is.health.state, view::ServiceState::Ok, "servers' problems are of shares");
    let by: Vec<_> = is.shares[0].protocols.iter().map(|own| own.health.state).collect();
    assert_eq!(by, [view::ServiceState::Failed, view::ServiceState::Ok]);
    assert_eq!(is.shares[0].protocols[0].health.problem.as_deref(), Some("bad network name"));
    assert_eq!(is.shares[0].protocols[1].clients, ["192.0.2.9"]);
    let read_only = told(Files { read_only: true, ..files.clone() });
    assert_eq!(read_only.health.state, view::ServiceState::Failed);
    let note = Some("it can't be made as large as its volume: why".to_owned());
    let small = told(Files { note: note.clone(), ..files.clone() });
    assert_eq!((small.health.state, small.health.problem), (view::ServiceState::Ok, note));
    // A server that nobody looked for yet is starting.
    let starting = told(Files { nfs: None, ..files });
    assert_eq!(starting.shares[0].protocols[1].health.state, view::ServiceState::Starting);
}

#[test]
fn passwords_are_lines() {
    let check = |text: &str| check_password(&Secret::new(text.to_owned()));
    assert!(check("pass word ü").is_ok() && check(&"a".repeat(127)).is_ok());
    for wrong in ["", "a\nb", "a\u{7f}", &"a".repeat(128)] {
        assert!(check(wrong).is_err(), "{wrong:?}");
    }
}
