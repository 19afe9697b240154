//! How file systems and shares are told.

use super::*;
use crate::change::tests;
use crate::etag;
use crate::routes;
use crate::service::render;
use crate::view::ExportHealth;

fn get(view: &View, uri: &str) -> Value {
    render(view, &routes::find(uri).expect(uri)).expect(uri)
}

fn system(view: &mut View) -> &mut FileSystem {
    &mut view.status.arrays[0].filesystems[0]
}

#[test]
fn a_file_system_is_told_as_far_as_it_is_known() {
    let mut view = tests::view();
    let uri = uri::file_system("volume-of-aaaa-1");
    let told = get(&view, &uri);
    assert_eq!((&told["Id"], &told["Name"]), (&json!("volume-of-aaaa-1"), &json!("db")));
    let capacity = json!({"Data": {"AllocatedBytes": 1 << 20, "ConsumedBytes": 1 << 10}});
    assert_eq!(told["Capacity"], capacity);
    let own = &told["Oem"]["Palisade"];
    assert_eq!(own["Volume"], link(uri::volume("volume-of-aaaa-1")));
    assert_eq!(own["Users"], json!([{"UserName": "alice", "UID": 70_001}]));
    assert_eq!(own["Health"], json!({"State": "Ok"}));
    let one = system(&mut view);
    (one.kind, one.size_bytes, one.used_bytes) = (None, None, None);
    let told = get(&view, &uri);
    assert!(told.get("Capacity").is_none() && told["Oem"]["Palisade"].get("Type").is_none());
}

#[test]
fn what_clients_write_changes_no_etag() {
    let mut view = tests::view();
    let uri = uri::file_system("volume-of-aaaa-1");
    let before = get(&view, &uri);
    let one = system(&mut view);
    one.used_bytes = Some(1 << 11);
    one.health.checked = Some(7);
    let after = get(&view, &uri);
    assert_ne!(before["Capacity"], after["Capacity"]);
    assert_eq!(etag::read(&before), etag::read(&after));
    system(&mut view).size_bytes = Some(1 << 30);
    assert_ne!(etag::read(&get(&view, &uri)), etag::read(&before));
}

#[test]
fn a_share_is_found_by_its_name_whatever_that_is() {
    let mut view = tests::view();
    let name = "Größe 1.2 日本";
    let one = system(&mut view);
    one.shares[0].name = name.to_owned();
    one.shares[0].read_only = true;
    let uri = uri::file_share("volume-of-aaaa-1", name);
    let id = "Gr%C3%B6%C3%9Fe%201.2%20%E6%97%A5%E6%9C%AC";
    assert!(uri.ends_with(&format!("/{id}")), "{uri}");
    let all = get(&view, &uri::file_shares("volume-of-aaaa-1"));
    assert_eq!(all["Members"], json!([link(&uri)]));
    let told = get(&view, &uri);
    assert_eq!((&told["Id"], &told["Name"]), (&json!(id), &json!(name)));
    assert_eq!(told["FileSharePath"], json!(format!("/shares/{name}")));
    assert_eq!(told["FileSharingProtocols"], json!(["SMBv3_0", "SMBv3_0_2", "SMBv3_1_1"]));
    assert_eq!(told["DefaultAccessCapabilities"], json!(["Read"]));
}

#[test]
fn a_share_is_as_clients_find_it() {
    use ServiceState::{Failed, Ok, Starting};
    let mut view = tests::view();
    let health = |state| ExportHealth { state, checked: None, problem: None };
    for (of, smb, nfs, state, told) in [
        (Ok, Ok, Ok, "Enabled", "OK"),
        (Ok, Ok, Failed, "Enabled", "Warning"),
        (Ok, Starting, Failed, "Enabled", "Warning"),
        (Ok, Failed, Failed, "UnavailableOffline", "Critical"),
        (Failed, Ok, Ok, "UnavailableOffline", "Critical"),
        (Ok, Ok, Starting, "Starting", "OK"),
        (Starting, Ok, Ok, "Starting", "OK"),
    ] {
        let one = system(&mut view);
        one.health = health(of);
        let share = &mut one.shares[0];
        share.protocols.truncate(1);
        share.protocols[0].health = health(smb);
        let mut other = share.protocols[0].clone();
        (other.protocol, other.health) = (Protocol::Nfs, health(nfs));
        share.protocols.push(other);
        let share = get(&view, &uri::file_share("volume-of-aaaa-1", "docs"));
        let expected = json!({"State": state, "Health": told});
        assert_eq!(share["Status"], expected, "{of:?} {smb:?} {nfs:?}");
        assert_eq!(share["FileSharingProtocols"].as_array().map(Vec::len), Some(5));
    }
}
