//! Who is no Administrator writes and listens only where the configuration has it.

use super::*;
use crate::caller::Role;
use crate::local::Socket;
use crate::renewal::tests::run_with;
use redfish::view::{CreateArray, CreateExport, WipeDrive};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::time::Duration;

fn caller(role: Role) -> Caller {
    Caller { role: Some(role), ..Caller::default() }
}

fn find(path: &Path) -> Change {
    Change::FindDrives { paths: vec![path.display().to_string()] }
}

async fn refused(manager: &Manager, mut change: Change) -> Option<(u16, String)> {
    confine(manager, &caller(Role::Administrator), "", &mut change.clone()).await.expect("may all");
    let refusal = confine(manager, &caller(Role::Operator), "", &mut change).await.err()?;
    Some((refusal.status, refusal.body().to_string()))
}

#[track_caller]
fn is(refused: Option<(u16, String)>, name: &str) {
    let (status, body) = refused.expect("refused");
    assert!(status == 403 && body.contains(&format!("Palisade.1.0.{name}")), "{status} {body}");
}

#[test]
fn drives_that_the_configuration_does_not_name_are_an_administrators() {
    let place = tempfile::tempdir().expect("a directory");
    let at = |name: &str| place.path().join(name);
    let make = |name| {
        let file = std::fs::File::create(at(name)).expect("made");
        file.set_len(64 << 20).expect("long enough");
    };
    ["drive-1", "other"].into_iter().for_each(make);
    symlink(at("drive-1"), at("link")).expect("made");
    let pattern = at("drive-*").display().to_string();
    run_with(false, vec![pattern], |manager| async move {
        manager.start(Duration::ZERO).await;
        let (named, other) = (at("drive-1"), at("other"));
        for path in [&other, &at("none"), &at("drive-1/../other"), &at("drive-2")] {
            is(refused(&manager, find(path)).await, "DriveNotNamed");
        }
        assert_eq!(refused(&manager, find(&named)).await, None);
        let mut by_link = find(&at("link"));
        confine(&manager, &caller(Role::Operator), "", &mut by_link).await.expect("is named");
        assert_eq!(by_link, find(&named), "what the link leads to later is no matter");
        let lines = manager.audit().log();
        let is_look = |what: &str| what.starts_with("look for drives: ");
        let looks = lines.entries.iter().filter(|line| is_look(&line.what)).count();
        assert_eq!(looks, 4, "an Administrator's, but not at what is named: {lines:?}");
        // Also when an Administrator has found it.
        let paths = [&other, &named].map(|path| path.display().to_string());
        manager.find_drives(&paths).await.expect("are there");
        let drive = |path: &String| NamedDrive { path: path.clone(), ..NamedDrive::default() };
        for (path, is_named) in [(&paths[0], false), (&paths[1], true)] {
            let array = CreateArray { drives: vec![drive(path)], ..CreateArray::default() };
            let wipe = WipeDrive { drive: drive(path), overwrite: true };
            for change in [Change::CreateArray(array), Change::Wipe(wipe)] {
                match refused(&manager, change).await {
                    None => assert!(is_named, "{path}"),
                    refused => is(refused, "DriveNotNamed"),
                }
            }
        }
    });
}

#[test]
fn files_of_volumes_are_an_administrators() {
    run_with(false, Vec::new(), |manager| async move {
        let export = |local| {
            let local = Some(local);
            Change::CreateExport(CreateExport { local, ..CreateExport::default() })
        };
        assert_eq!(refused(&manager, export(LocalExport::Device)).await, None);
        let file = export(LocalExport::File("/srv/v".to_owned()));
        is(refused(&manager, file).await, "FileElsewhere");
    });
}

#[test]
fn sockets_elsewhere_are_an_administrators() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("socket");
    let _listener = UnixListener::bind(&path).expect("bound");
    run_with(false, Vec::new(), |manager| async move {
        let export = |nbd: String| {
            Change::CreateExport(CreateExport { nbd: Some(nbd), ..CreateExport::default() })
        };
        let dir = place.path().display();
        let own = export(format!("unix:{dir}/nbd"));
        is(refused(&manager, own.clone()).await, "SocketElsewhere");
        manager.set_socket(Socket::bound(&path).expect("a socket"));
        assert_eq!(refused(&manager, own).await, None);
        assert_eq!(refused(&manager, export("127.0.0.1:0".to_owned())).await, None);
        for other in [
            "unix:/run/other".to_owned(),
            format!("unix:{dir}/below/nbd"),
            format!("unix:{dir}/../nbd"),
            format!("unix:{dir}/.."),
            "unix:nbd".to_owned(),
            "unix:".to_owned(),
        ] {
            is(refused(&manager, export(other)).await, "SocketElsewhere");
        }
    });
}
