//! Requests about shares: what each becomes, and its words.

use super::*;
use crate::change::tests::{STORAGE, ask, post, refused, view, volume_link, why};
use crate::change::{Change, Method};
use serde_json::{Value, json};

const SYSTEM: &str = "FileSystems/volume-of-aaaa-1";

fn at() -> (String, String) {
    ("aaaa-1".to_owned(), "volume-of-aaaa-1".to_owned())
}

fn create(array: &str, name: &str) -> CreateShare {
    CreateShare {
        array: array.to_owned(),
        volume: format!("volume-of-{array}"),
        name: name.to_owned(),
        format: None,
        overwrite: false,
        smb: false,
        nfs: false,
        read_only: false,
        smb_users: Vec::new(),
        nfs_clients: Vec::new(),
        smb_listen: None,
        nfs_listen: None,
    }
}

fn set() -> SetShare {
    let (array, volume) = at();
    SetShare {
        array,
        volume,
        name: "docs".to_owned(),
        smb: None,
        nfs: None,
        read_only: None,
        smb_users: None,
        nfs_clients: None,
        smb_listen: None,
        nfs_listen: None,
    }
}

fn patch(body: &Value) -> Result<Change, Refusal> {
    let uri = format!("{STORAGE}/{SYSTEM}/ExportedFileShares/docs");
    ask(Method::Patch, &uri, &body.to_string())
}

#[test]
fn the_first_share_of_a_volume_makes_its_file_system() {
    let volume = volume_link("volume-of-bbbb-2");
    let bare = json!({"Oem": {"Palisade": {"Volume": volume, "Name": "docs"}}});
    let made = post("FileSystems", &bare);
    assert_eq!(made, Ok(Change::Share(ShareChange::Create(create("bbbb-2", "docs")))));
    let made = made.expect("is taken");
    assert!(!made.may_destroy(&view()) && made.is_noted());
    assert_eq!((made.array(), &*made.words(&view())), (Some("bbbb-2"), "share twin/db as docs"));

    let whole = json!({"Oem": {"Palisade": {
        "Volume": volume, "Name": "my docs", "Format": "ext4", "Overwrite": true, "Smb": true,
        "Nfs": true, "ReadOnly": true, "SmbUsers": ["alice", "bob:ro"],
        "NfsClients": ["10.0.0.0/24:ro"], "SmbListen": "[::]:445", "NfsListen": "[::]:2049",
    }}});
    let made = post("FileSystems", &whole);
    let wanted = CreateShare {
        format: Some(Format::Ext4),
        overwrite: true,
        smb: true,
        nfs: true,
        read_only: true,
        smb_users: vec!["alice".into(), "bob:ro".into()],
        nfs_clients: vec!["10.0.0.0/24:ro".into()],
        smb_listen: Some("[::]:445".into()),
        nfs_listen: Some("[::]:2049".into()),
        ..create("bbbb-2", "my docs")
    };
    assert_eq!(made, Ok(Change::Share(ShareChange::Create(wanted))));
    let made = made.expect("is taken");
    assert!(made.may_destroy(&view()));
    assert_eq!(
        made.words(&view()),
        "share twin/db as my docs, make its file system (ext4), overwrite what it holds, by SMB, \
         by NFS, read only, users alice bob:ro, clients 10.0.0.0/24:ro, SMB at [::]:445, \
         NFS at [::]:2049"
    );
    let gone = json!({"Oem": {"Palisade": {"Volume": volume_link("x"), "Name": "docs"}}});
    refused(post("FileSystems", &gone), "ResourceMissingAtURI", "#/Oem/Palisade/Volume");
}

#[test]
fn another_share_is_of_the_file_system_whose_collection_it_is_posted_to() {
    let uri = format!("{SYSTEM}/ExportedFileShares");
    let body = json!({"Name": "music", "Oem": {"Palisade": {"Nfs": true, "NfsClients": ["::/0"]}}});
    let wanted =
        CreateShare { nfs: true, nfs_clients: vec!["::/0".into()], ..create("aaaa-1", "music") };
    assert_eq!(post(&uri, &body), Ok(Change::Share(ShareChange::Create(wanted))));
    let bare = Ok(Change::Share(ShareChange::Create(create("aaaa-1", "music"))));
    assert_eq!(post(&uri, &json!({"Name": "music"})), bare);
    let format = json!({"Name": "music", "Oem": {"Palisade": {"Format": "xfs"}}});
    refused(post(&uri, &format), "PropertyUnknown", "#/Oem/Palisade/Format");
    let other = "FileSystems/volume-of-bbbb-2/ExportedFileShares";
    assert_eq!(why(post(other, &json!({"Name": "music"}))).0, 404, "it is not shared");
}

#[test]
fn a_share_is_changed_and_ended() {
    let body = json!({"@odata.etag": "x", "Oem": {"Palisade": {"SmbUsers": [], "Nfs": false}}});
    let changed = patch(&body);
    let wanted = SetShare { nfs: Some(false), smb_users: Some(Vec::new()), ..set() };
    assert_eq!(changed, Ok(Change::Share(ShareChange::Set(wanted))));
    let words = changed.expect("is taken").words(&view());
    assert_eq!(words, "change the share docs of tank/db, not by NFS, users all");
    refused(patch(&json!({})), "EmptyJSON", "");
    for nothing in [json!({"@odata.id": "x"}), json!({"Oem": {}}), json!({"Oem": {"Palisade": {}}})]
    {
        refused(patch(&nothing), "NoOperation", "");
    }
    refused(patch(&json!({"Name": "x"})), "PropertyNotWritable", "#/Name");
    let unknown = json!({"Oem": {"Palisade": {"Protocols": []}}});
    refused(patch(&unknown), "PropertyUnknown", "#/Oem/Palisade/Protocols");

    let delete = |name: &str| {
        ask(Method::Delete, &format!("{STORAGE}/{SYSTEM}/ExportedFileShares/{name}"), "")
    };
    let (array, volume) = at();
    let gone = ShareChange::Delete { array, volume, name: "docs".into() };
    let change = delete("docs");
    assert_eq!(change, Ok(Change::Share(gone)));
    let change = change.expect("is taken");
    assert_eq!(change.words(&view()), "end the share docs of tank/db");
    assert!(!change.may_destroy(&view()) && change.array() == Some("aaaa-1"));
    for name in ["Docs", "docs%20", "x"] {
        assert_eq!(why(delete(name)).0, 404, "{name}");
    }
    assert_eq!(why(ask(Method::Delete, &format!("{STORAGE}/{SYSTEM}"), "")).0, 405);
}

#[test]
fn users_of_shares_are_changed_and_their_passwords_told_nowhere() {
    let act = |name: &str, body: &Value| {
        post(&format!("{SYSTEM}/Actions/Oem/PalisadeFileSystem.{name}"), body)
    };
    let change = |change| {
        let (array, volume) = at();
        Ok(Change::Share(ShareChange::User(SetShareUser {
            array,
            volume,
            name: "bob".to_owned(),
            change,
        })))
    };
    let both = json!({"UserName": "bob", "Password": "hidden"});
    let secret = || Secret::new("hidden");
    for (name, wanted, words) in [
        ("AddUser", change(UserChange::Add(secret())), "add the user bob of tank/db"),
        (
            "SetUserPassword",
            change(UserChange::Password(secret())),
            "change the password of bob of tank/db",
        ),
    ] {
        let read = act(name, &both);
        assert!(!format!("{read:?}").contains("hidden"));
        assert_eq!(read, wanted);
        assert_eq!(read.expect("is taken").words(&view()), words);
    }
    let read = act("DeleteUser", &json!({"UserName": "bob"}));
    assert_eq!(read, change(UserChange::Delete));
    assert_eq!(read.expect("is taken").words(&view()), "delete the user bob of tank/db");
    refused(act("DeleteUser", &both), "ActionParameterUnknown", "#/Password");
    refused(act("AddUser", &json!({"UserName": "bob"})), "ActionParameterMissing", "#/Password");
    let no_text = json!({"UserName": "bob", "Password": 7});
    refused(act("AddUser", &no_text), "ActionParameterValueError", "#/Password");
}
