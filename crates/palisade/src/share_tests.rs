//! What `palisade share` takes, and asks for.

use super::*;
use clap::Parser;
use clap::error::ErrorKind;

#[derive(Debug, Parser)]
struct Whole {
    #[command(subcommand)]
    command: Command,
}

fn parsed(line: &str) -> Result<Command, ErrorKind> {
    let words = std::iter::once("share").chain(line.split(' '));
    Whole::try_parse_from(words).map(|whole| whole.command).map_err(|error| error.kind())
}

/// A file system of `tank/VOLUME` with a share of this name, by SMB and NFS, and these users.
pub fn system(volume: &str, share: &str, users: &[&str]) -> FileSystem {
    let user = |(at, name): (usize, &&str)| json!({ "name": name, "uid": 70_001 + at });
    let health = json!({ "state": "ok", "checked": 60, "problem": null });
    let by = |protocol: &str, server: &str, version: Option<&str>, clients: &[&str]| {
        json!({
            "protocol": protocol, "server": server, "version": version, "clients": clients,
            "url": format!("{protocol}://192.0.2.1/{share}"), "health": health,
        })
    };
    let whole = json!({
        "array": "tank", "volume": volume, "volume_uuid": format!("uuid-of-{volume}"),
        "kind": "xfs", "mounted": true, "read_only": false, "size_bytes": 10u64 << 30,
        "used_bytes": 1u64 << 30, "smb_listen": "[::]:445", "nfs_listen": "[::]:2049",
        "users": users.iter().enumerate().map(user).collect::<Vec<_>>(), "health": health,
        "shares": [{
            "name": share, "read_only": false, "smb_users": [], "nfs_clients": ["10.0.0.0/24"],
            "protocols": [
                by("smb", "samba", Some("4.22.4"), &["192.0.2.7"]),
                by("nfs", "nfs-ganesha", None, &[]),
            ],
        }],
    });
    serde_json::from_value(whole).expect("a file system")
}

#[test]
fn a_share_is_asked_for_as_it_is_named() {
    let body = |line: &str| match parsed(line) {
        Ok(Command::Create(create)) => wanted(&create.request(), "/v")["Oem"]["Palisade"].take(),
        other => panic!("{line}: {other:?}"),
    };
    let volume = json!({ "@odata.id": "/v" });
    let least = json!({ "Volume": volume, "Name": "docs", "Smb": true, "Nfs": false });
    assert_eq!(body("create docs --volume tank/docs --smb"), least);
    let line = "create docs --volume tank/docs --format ext4 --overwrite --yes --smb --nfs \
                --read-only --smb-user alice bob:ro --smb-user carol --nfs-client 10.0.0.0/24 \
                fd00::/64:ro --smb-listen 192.0.2.1:445 --nfs-listen [::]:2049";
    let most = json!({
        "Volume": volume, "Name": "docs", "Format": "ext4", "Overwrite": true, "Smb": true,
        "Nfs": true, "ReadOnly": true, "SmbUsers": ["alice", "bob:ro", "carol"],
        "NfsClients": ["10.0.0.0/24", "fd00::/64:ro"], "SmbListen": "192.0.2.1:445",
        "NfsListen": "[::]:2049",
    });
    assert_eq!(body(line), most);
}

#[test]
fn what_does_not_go_together_is_wrong_usage() {
    use ErrorKind::{ArgumentConflict, MissingRequiredArgument};
    for (line, why) in [
        ("create docs --volume tank/docs", MissingRequiredArgument),
        ("create docs --smb", MissingRequiredArgument),
        ("create docs --volume tank --smb", ErrorKind::ValueValidation),
        ("create docs --volume tank/docs --smb --format zfs", ErrorKind::InvalidValue),
        ("create docs --volume tank/docs --smb --overwrite", MissingRequiredArgument),
        ("create docs --volume tank/docs --nfs --smb-user alice", MissingRequiredArgument),
        ("create docs --volume tank/docs --nfs --smb-listen a:1", MissingRequiredArgument),
        ("create docs --volume tank/docs --smb --nfs-client 10.0.0.1", MissingRequiredArgument),
        ("create docs --volume tank/docs --smb --nfs-listen a:1", MissingRequiredArgument),
        ("set docs", MissingRequiredArgument),
        ("set docs --smb --no-smb", ArgumentConflict),
        ("set docs --no-smb --no-nfs", ArgumentConflict),
        ("set docs --no-smb --smb-user alice", ArgumentConflict),
        ("set docs --no-nfs --nfs-client 10.0.0.1", ArgumentConflict),
        ("set docs --read-only --read-write", ArgumentConflict),
        ("set docs --smb-user alice --all-smb-users", ArgumentConflict),
        ("set docs --nfs-client 10.0.0.1 --no-nfs-clients", ArgumentConflict),
        ("user add", MissingRequiredArgument),
        ("user password", MissingRequiredArgument),
    ] {
        assert_eq!(parsed(line).err(), Some(why), "{line}");
    }
}

#[test]
fn only_what_is_named_becomes_another() {
    let body = |line: &str| match parsed(&format!("set docs {line}")) {
        Ok(Command::Set(set)) => set.body()["Oem"]["Palisade"].take(),
        other => panic!("{line}: {other:?}"),
    };
    for (line, own) in [
        ("--smb", json!({ "Smb": true })),
        ("--no-smb --nfs", json!({ "Smb": false, "Nfs": true })),
        ("--no-nfs", json!({ "Nfs": false })),
        ("--read-only", json!({ "ReadOnly": true })),
        ("--read-write", json!({ "ReadOnly": false })),
        ("--smb-user alice bob:ro", json!({ "SmbUsers": ["alice", "bob:ro"] })),
        ("--all-smb-users", json!({ "SmbUsers": [] })),
        ("--nfs-client 10.0.0.0/24", json!({ "NfsClients": ["10.0.0.0/24"] })),
        ("--no-nfs-clients", json!({ "NfsClients": [] })),
        ("--smb-listen a:1 --nfs-listen b:2", json!({ "SmbListen": "a:1", "NfsListen": "b:2" })),
    ] {
        assert_eq!(body(line), own, "{line}");
    }
}

#[test]
fn a_share_is_found_whatever_its_case_but_first_as_it_is_written() {
    let all = [system("a", "Docs", &[]), system("b", "docs", &[]), system("c", "Größe", &[])];
    let found = |name: &str| find(&all, name).map(|(of, share)| (&*of.volume, &*share.name));
    assert_eq!(found("docs"), Ok(("b", "docs")));
    assert_eq!(found("Docs"), Ok(("a", "Docs")));
    assert_eq!(found("GRÖSSE"), Ok(("c", "Größe")));
    assert_eq!(found("doc"), Err(Problem::new(&say::NO_SHARE, &[&"doc"])));
}
