//! Bodies: what each becomes, and that what is wrong is refused by name.

use super::*;
use crate::access::{Access, Account, Role};
use crate::events::Subscription;
use crate::messages as say;
use crate::routes;
use crate::view::*;
use serde_json::{Value, json};

pub(super) const STORAGE: &str = "/redfish/v1/Systems/local/Storage/palisade";

fn drive(id: &str, path: &str) -> KnownDrive {
    KnownDrive {
        remote: None,
        id: id.into(),
        wwid: None,
        model: None,
        is_file: false,
        hardware: Default::default(),
        drive: Drive {
            path: path.into(),
            serial: id.to_uppercase(),
            bytes: 1 << 30,
            block_bytes: 4096,
            state: DriveState::Free,
            array: None,
            slot: None,
            signature: None,
            problem: None,
        },
    }
}

fn named(id: &str) -> NamedDrive {
    NamedDrive { id: id.into(), path: format!("/dev/{id}"), serial: id.to_uppercase(), seen: None }
}

fn export(id: &str, nvme: Option<NvmeExport>) -> Export {
    Export {
        id: id.into(),
        array: "tank".into(),
        volume: "db".into(),
        serving: true,
        kind: if nvme.is_some() { ExportKind::NvmeTcp } else { ExportKind::Nbd },
        nvme,
        ..Export::default()
    }
}

fn filesystem(array: &str) -> FileSystem {
    let health = ExportHealth { state: ServiceState::Ok, checked: None, problem: None };
    let protocol = ShareProtocol {
        protocol: Protocol::Smb,
        server: "samba".into(),
        version: None,
        url: "smb://srv/docs".into(),
        clients: Vec::new(),
        health: health.clone(),
    };
    FileSystem {
        array: "tank".into(),
        volume: "db".into(),
        volume_uuid: format!("volume-of-{array}"),
        kind: Some("xfs".into()),
        mounted: true,
        read_only: false,
        size_bytes: Some(1 << 20),
        used_bytes: Some(1 << 10),
        smb_listen: "[::]:445".into(),
        nfs_listen: "[::]:2049".into(),
        users: vec![ShareUser { name: "alice".into(), uid: 70_001 }],
        health,
        shares: vec![Share {
            name: "docs".into(),
            read_only: false,
            smb_users: vec!["alice".into()],
            nfs_clients: Vec::new(),
            protocols: vec![protocol],
        }],
    }
}

fn array(name: &str, uuid: &str) -> Array {
    let nvme = NvmeExport {
        subsystem: String::new(),
        nsid: 1,
        nguid: String::new(),
        uuid: String::new(),
        listeners: Vec::new(),
        advertise: Vec::new(),
        hosts: Vec::new(),
        any_host: true,
        connections: [].into(),
    };
    Array {
        name: name.into(),
        uuid: uuid.into(),
        level: "5".into(),
        state: ArrayState::Optimal,
        strip_bytes: 65536,
        block_bytes: 4096,
        size_bytes: 1 << 30,
        epoch: 1,
        volumes: vec![Volume {
            array: name.into(),
            name: "db".into(),
            uuid: format!("volume-of-{uuid}"),
            size_bytes: 1 << 20,
        }],
        exports: vec![export(&format!("{name}:1"), None), export(&format!("{name}:2"), Some(nvme))],
        filesystems: if name == "tank" { vec![filesystem(uuid)] } else { Vec::new() },
        ..Array::default()
    }
}

fn job(id: &str, ended: Option<(u64, JobEnd)>) -> Job {
    let task = Task {
        id: "tank:scrub".into(),
        kind: TaskKind::Scrub,
        done_bytes: 0,
        total_bytes: 1,
        progress: 0.0,
        seconds_left: None,
        state: TaskState::Running,
        problem: None,
        hindrance: None,
    };
    Job { id: id.into(), array: "aaaa-1".into(), task, began: 0, ended }
}

fn account(name: &str) -> Account {
    let role = Role::Operator;
    Account { name: name.into(), role, enabled: true, must_change: false, generation: 1 }
}

pub(crate) fn view() -> View {
    View {
        status: Status {
            arrays: vec![array("tank", "aaaa-1"), array("twin", "bbbb-2"), array("twin", "cccc-3")],
            ..Status::default()
        },
        drives: vec![drive("a", "/dev/a"), drive("b", "/dev/b"), drive("c", "/dev/c")],
        jobs: vec![job("j1", None), job("j2", Some((1, JobEnd::Completed)))],
        access: Access { accounts: vec![account("ana")], ..Access::default() }.into(),
        events: Shown {
            subscriptions: vec![Subscription { id: "s1".to_owned(), ..Subscription::default() }]
                .into(),
            ..Shown::default()
        }
        .into(),
        ..View::default()
    }
}

pub(super) fn ask(method: Method, uri: &str, body: &str) -> Result<Change, Refusal> {
    let found = routes::find(uri).unwrap_or_else(|| panic!("no route of {uri}"));
    parse(&view(), &found, method, body.as_bytes())
}

pub(super) fn post(uri: &str, body: &Value) -> Result<Change, Refusal> {
    ask(Method::Post, &format!("{STORAGE}/{uri}"), &body.to_string())
}

fn link(to: &str) -> Value {
    json!({"@odata.id": format!("/redfish/v1/{to}")})
}

fn drive_link(id: &str) -> Value {
    link(&format!("Chassis/local/Drives/{id}"))
}

fn pool_link(id: &str) -> Value {
    link(&format!("Systems/local/Storage/palisade/StoragePools/{id}"))
}

pub(super) fn volume_link(id: &str) -> Value {
    link(&format!("Systems/local/Storage/palisade/Volumes/{id}"))
}

/// The message's name, and the property that it is about.
pub(super) fn why(outcome: Result<Change, Refusal>) -> (u16, String, String) {
    let refusal = outcome.expect_err("it was not refused");
    let message = &refusal.messages[0];
    let name = message.id.rsplit_once('.').unwrap().1.to_owned();
    (refusal.status, name, message.related.first().cloned().unwrap_or_default())
}

pub(super) fn refused(outcome: Result<Change, Refusal>, name: &str, property: &str) {
    assert_eq!(why(outcome), (400, name.to_owned(), property.to_owned()));
}

fn pool_body() -> Value {
    json!({
        "Name": "new",
        "SupportedRAIDTypes": ["RAID6"],
        "CapacitySources": [{"ProvidingDrives": {"Members": [drive_link("b"), drive_link("a")]}}],
        "Oem": {"Palisade": {
            "@odata.type": "#PalisadeStoragePool.v1_0_0.StoragePool",
            "Level": "6",
            "StripSizeBytes": 131_072,
            "BlockSizeBytes": 512,
            "Overwrite": [drive_link("a")],
            "Shared": true,
        }},
    })
}

#[test]
fn a_pool_is_an_array() {
    let wanted = CreateArray {
        name: "new".into(),
        level: "6".into(),
        drives: vec![named("b"), named("a")],
        strip_bytes: 131_072,
        block_bytes: Some(512),
        overwrite: vec![named("a")],
        same_drive: false,
        shared: true,
    };
    assert_eq!(post("StoragePools", &pool_body()), Ok(Change::CreateArray(wanted)));
}

#[test]
fn each_type_of_raid_is_a_level() {
    for (raid, level) in
        [("RAID0", "0"), ("RAID1", "1"), ("RAID5", "5"), ("RAID10", "10"), ("None", "jbod")]
    {
        let mut body = pool_body();
        body["SupportedRAIDTypes"] = json!([raid]);
        body.as_object_mut().unwrap().remove("Oem");
        let Ok(Change::CreateArray(array)) = post("StoragePools", &body) else { panic!("{raid}") };
        assert_eq!((array.level.as_str(), array.strip_bytes), (level, 65536));
    }
    let mut body = pool_body();
    body.as_object_mut().unwrap().remove("SupportedRAIDTypes");
    assert!(post("StoragePools", &body).is_ok(), "the level alone suffices");
}

#[test]
fn a_wrong_pool_is_refused_by_name() {
    type Spoil = fn(&mut Value);
    let cases: [(Spoil, &str, &str); 16] = [
        (|b| b["Extra"] = json!(1), "PropertyUnknown", "#/Extra"),
        (|b| b["Oem"]["Palisade"]["Extra"] = json!(1), "PropertyUnknown", "#/Oem/Palisade/Extra"),
        (|b| b["Oem"]["Other"] = json!({}), "PropertyUnknown", "#/Oem/Other"),
        (|b| drop(b.as_object_mut().unwrap().remove("Name")), "PropertyMissing", "#/Name"),
        (|b| b["Name"] = json!(7), "PropertyValueTypeError", "#/Name"),
        (|b| b["Name"] = json!(null), "PropertyValueTypeError", "#/Name"),
        (
            |b| b["Oem"]["Palisade"]["Level"] = json!("5"),
            "PropertyValueConflict",
            "#/Oem/Palisade/Level",
        ),
        (
            |b| b["Oem"]["Palisade"]["Level"] = json!("7"),
            "PropertyValueNotInList",
            "#/Oem/Palisade/Level",
        ),
        (
            |b| b["SupportedRAIDTypes"] = json!(["RAID50"]),
            "PropertyValueNotInList",
            "#/SupportedRAIDTypes/0",
        ),
        (|b| b["SupportedRAIDTypes"] = json!([]), "ArraySizeTooShort", "#/SupportedRAIDTypes"),
        (
            |b| b["SupportedRAIDTypes"] = json!(["RAID6", "RAID6"]),
            "ArraySizeTooLong",
            "#/SupportedRAIDTypes",
        ),
        (
            |b| b["Oem"]["Palisade"]["StripSizeBytes"] = json!(1u64 << 32),
            "PropertyValueOutOfRange",
            "#/Oem/Palisade/StripSizeBytes",
        ),
        (
            |b| b["Oem"]["Palisade"]["StripSizeBytes"] = json!(-1),
            "PropertyValueOutOfRange",
            "#/Oem/Palisade/StripSizeBytes",
        ),
        (
            |b| b["Oem"]["Palisade"]["StripSizeBytes"] = json!(1.5),
            "PropertyValueTypeError",
            "#/Oem/Palisade/StripSizeBytes",
        ),
        (
            |b| b["CapacitySources"][0]["ProvidingDrives"]["Members"] = json!([]),
            "ArraySizeTooShort",
            "#/CapacitySources/0/ProvidingDrives/Members",
        ),
        (|b| b["CapacitySources"] = json!("x"), "PropertyValueTypeError", "#/CapacitySources"),
    ];
    for (spoil, name, property) in cases {
        let mut body = pool_body();
        spoil(&mut body);
        refused(post("StoragePools", &body), name, property);
    }
}

#[test]
fn a_link_must_lead_to_what_the_property_takes() {
    let with = |first: Value| {
        let mut body = pool_body();
        body["CapacitySources"][0]["ProvidingDrives"]["Members"][0] = first;
        post("StoragePools", &body)
    };
    let at = "#/CapacitySources/0/ProvidingDrives/Members/0";
    refused(with(drive_link("x")), "ResourceMissingAtURI", at);
    refused(with(link("Nowhere")), "ResourceMissingAtURI", at);
    refused(with(json!({"@odata.id": ""})), "ResourceMissingAtURI", at);
    refused(with(pool_link("aaaa-1")), "PropertyValueResourceConflict", at);
    refused(with(json!("/redfish/v1/Chassis/local/Drives/a")), "PropertyValueTypeError", at);
    refused(with(json!({})), "PropertyMissing", &format!("{at}/@odata.id"));
    refused(with(json!({"@odata.id": "/", "x": 1})), "PropertyUnknown", &format!("{at}/x"));
}

#[test]
fn doubled_properties_are_seen_wherever_they_are() {
    let uri = format!("{STORAGE}/StoragePools");
    let ask = |body: &str| ask(Method::Post, &uri, body);
    refused(ask(r#"{"Name":"a","Name":"b"}"#), "PropertyDuplicate", "#/Name");
    refused(ask(r#"{"Oem":{"P":[{"a/b":1,"a/b":1}]}}"#), "PropertyDuplicate", "#/Oem/P/0/a~1b");
    let uri = format!("{STORAGE}/StoragePools/aaaa-1/Actions/Oem/PalisadeStoragePool.Assemble");
    let twice = super::tests::ask(Method::Post, &uri, r#"{"AcceptLoss":false,"AcceptLoss":true}"#);
    refused(twice, "ActionParameterDuplicate", "#/AcceptLoss");
}

#[test]
fn what_is_not_json_is_malformed() {
    let uri = format!("{STORAGE}/StoragePools");
    let deep = "[".repeat(200_000);
    let nested = format!("{}1{}", "[".repeat(40), "]".repeat(40));
    for body in ["{", "}", "{\"a\":}", "{} {}", "\u{0}", "{\"a\":1,}", "NaN", &deep, &nested] {
        refused(ask(Method::Post, &uri, body), "MalformedJSON", "");
    }
    for body in ["[]", "7", "null", "\"text\""] {
        refused(ask(Method::Post, &uri, body), "UnrecognizedRequestBody", "");
    }
    let found = routes::find(&uri).unwrap();
    refused(parse(&view(), &found, Method::Post, &[0xff, 0xfe]), "MalformedJSON", "");
    let long = format!("{{\"{}\":1}}", "x".repeat(300));
    refused(ask(Method::Post, &uri, &long), "MalformedJSON", "");
}

#[test]
fn actions_of_a_pool() {
    let act = |name: &str, body: Value| {
        post(&format!("StoragePools/aaaa-1/Actions/Oem/PalisadeStoragePool.{name}"), &body)
    };
    let array = || "aaaa-1".to_owned();
    assert_eq!(act("Stop", json!({})), Ok(Change::Stop { array: array() }));
    let request = AssembleArray { start_degraded: true, ..Default::default() };
    let outcome = act("Assemble", json!({"StartDegraded": true}));
    assert_eq!(outcome, Ok(Change::Assemble { array: array(), request }));
    let request =
        AssembleArray { take_over: true, other_server_is_off: true, ..Default::default() };
    let outcome = act("Assemble", json!({"TakeOver": true, "OtherServerIsOff": true}));
    assert_eq!(outcome, Ok(Change::Assemble { array: array(), request }));
    for (body, drive) in
        [(json!({"Drive": drive_link("b")}), "/dev/b"), (json!({"Slot": 3}), "slot:3")]
    {
        let request = FailDrive { drive: drive.into() };
        assert_eq!(act("FailDrive", body), Ok(Change::FailDrive { array: array(), request }));
    }
    let request = ReplaceDrive { slot: 2, with: named("c"), overwrite: vec![named("c")] };
    let body = json!({"Slot": 2, "With": drive_link("c"), "Overwrite": [drive_link("c")]});
    assert_eq!(act("ReplaceDrive", body), Ok(Change::ReplaceDrive { array: array(), request }));
    let scrub = |repair, trust_data| {
        Ok(Change::Scrub { array: array(), request: ScrubArray { repair, trust_data } })
    };
    assert_eq!(act("Scrub", json!({})), scrub(false, false));
    assert_eq!(act("Scrub", json!({"Mode": "Repair", "TrustData": true})), scrub(true, true));

    refused(act("Scrub", json!({"TrustData": true})), "PropertyValueConflict", "#/TrustData");
    refused(act("Scrub", json!({"Mode": "x"})), "ActionParameterValueNotInList", "#/Mode");
    refused(act("Stop", json!({"Now": true})), "ActionParameterUnknown", "#/Now");
    refused(act("FailDrive", json!({})), "ActionParameterMissing", "#/Drive");
    let both = json!({"Drive": drive_link("b"), "Slot": 1});
    refused(act("FailDrive", both), "PropertyValueConflict", "#/Slot");
    let range = json!({"Slot": 65536});
    refused(act("FailDrive", range), "ActionParameterValueOutOfRange", "#/Slot");
    let text = json!({"AcceptLoss": "yes"});
    refused(act("Assemble", text), "ActionParameterValueTypeError", "#/AcceptLoss");
}

#[test]
fn an_empty_body_of_an_action_is_no_parameters() {
    let uri = format!("{STORAGE}/StoragePools/aaaa-1/Actions/Oem/PalisadeStoragePool.Stop");
    for body in ["", " \r\n", "{}"] {
        assert_eq!(ask(Method::Post, &uri, body), Ok(Change::Stop { array: "aaaa-1".into() }));
    }
}

#[test]
fn volumes_are_created_in_an_array_or_on_drives() {
    let body = json!({"Name": "v", "CapacityBytes": 4096,
        "CapacitySources": [{"ProvidingPools": {"Members": [pool_link("AAAA-1")]}}]});
    let wanted = CreateVolume { array: "aaaa-1".into(), name: "v".into(), size_bytes: 4096 };
    assert_eq!(post("Volumes", &body), Ok(Change::CreateVolume(wanted)));

    let body = json!({"Name": "v", "RAIDType": "RAID5", "CapacityBytes": 4096,
        "Links": {"Drives": [drive_link("a"), drive_link("b"), drive_link("c")]}});
    let Ok(Change::CreateVolumeOnDrives { array, size_bytes }) = post("Volumes", &body) else {
        panic!("not taken")
    };
    assert_eq!((array.name.as_str(), array.level.as_str(), size_bytes), ("v", "5", Some(4096)));
    assert_eq!(array.drives, ["a", "b", "c"].map(named));

    // As OpenStack's Ironic writes it.
    let mut nameless = body.clone();
    nameless.as_object_mut().unwrap().remove("Name");
    nameless["Encrypted"] = json!(false);
    nameless["VolumeType"] = json!("StripedWithParity");
    let Ok(Change::CreateVolumeOnDrives { array, .. }) = post("Volumes", &nameless) else {
        panic!("not taken")
    };
    assert_eq!(array.name, "volume1");
    nameless["Encrypted"] = json!(true);
    refused(post("Volumes", &nameless), "PropertyValueNotInList", "#/Encrypted");
    nameless["VolumeType"] = json!("Mirrored");
    refused(post("Volumes", &nameless), "PropertyValueConflict", "#/VolumeType");

    let mut both = body.clone();
    both["CapacitySources"] = json!([]);
    refused(post("Volumes", &both), "PropertyValueConflict", "#/Links");
    refused(post("Volumes", &json!({"Name": "v"})), "PropertyMissing", "#/CapacitySources");
    let mut zero = body;
    zero["CapacityBytes"] = json!(0);
    refused(post("Volumes", &zero), "PropertyValueOutOfRange", "#/CapacityBytes");
}

#[test]
fn a_volume_changes_its_size_is_checked_and_deleted() {
    let uri = format!("{STORAGE}/Volumes/volume-of-aaaa-1");
    let (array, volume) = (|| "aaaa-1".to_owned(), || "volume-of-aaaa-1".to_owned());
    let body = r#"{"@odata.etag":"x","CapacityBytes":8192,"Oem":{"Palisade":{}}}"#;
    let request = ResizeVolume { size_bytes: 8192, shrink: false };
    let wanted = Change::ResizeVolume { array: array(), volume: volume(), request };
    assert_eq!(ask(Method::Patch, &uri, body), Ok(wanted));
    let wanted = Change::DeleteVolume { array: array(), volume: volume() };
    assert_eq!(ask(Method::Delete, &uri, ""), Ok(wanted));
    let request = ScrubArray { repair: false, trust_data: false };
    let check = ask(Method::Post, &format!("{uri}/Actions/Volume.CheckConsistency"), "");
    assert_eq!(check, Ok(Change::Scrub { array: array(), request }));

    refused(ask(Method::Patch, &uri, "{}"), "EmptyJSON", "");
    refused(ask(Method::Patch, &uri, r#"{"@odata.id":"x"}"#), "NoOperation", "");
    refused(ask(Method::Patch, &uri, r#"{"Name":"x"}"#), "PropertyNotWritable", "#/Name");
    refused(ask(Method::Patch, &uri, r#"{"Color":"x"}"#), "PropertyMissing", "#/CapacityBytes");
    let extra = r#"{"CapacityBytes":1,"Color":"x"}"#;
    refused(ask(Method::Patch, &uri, extra), "PropertyUnknown", "#/Color");
    // Nobody shrinks a volume by a word in the body.
    let word = r#"{"CapacityBytes":1,"Oem":{"Palisade":{"Shrink":true}}}"#;
    refused(ask(Method::Patch, &uri, word), "PropertyUnknown", "#/Oem/Palisade/Shrink");
}

#[test]
fn what_may_destroy_data_is_known() {
    let view = view();
    let (array, volume) = ("aaaa-1".to_owned(), "volume-of-aaaa-1".to_owned());
    let now = view.array(&array).expect("it is there").volumes[0].size_bytes;
    let resize = |size_bytes| Change::ResizeVolume {
        array: array.clone(),
        volume: volume.clone(),
        request: ResizeVolume { size_bytes, shrink: false },
    };
    let assemble = |accept_loss| Change::Assemble {
        array: array.clone(),
        request: AssembleArray { start_degraded: true, accept_loss, ..Default::default() },
    };
    for (change, may) in [
        (resize(now - 1), true),
        (resize(now), false),
        (resize(now + 1), false),
        (assemble(true), true),
        (assemble(false), false),
        (Change::DeleteArray { array: array.clone() }, true),
        (Change::DeleteVolume { array: array.clone(), volume: volume.clone() }, true),
        (Change::Stop { array: array.clone() }, false),
        (Change::DeleteExport { id: "aaaa-1:1".into() }, false),
    ] {
        assert_eq!(change.may_destroy(&view), may, "{change:?}");
        assert_eq!(change.array(), Some("aaaa-1"), "{change:?}");
    }
    let made = post("StoragePools", &pool_body()).expect("it is one");
    assert!(made.may_destroy(&view) && made.array().is_none());
    let mut body = pool_body();
    body["Oem"]["Palisade"]["Overwrite"] = json!([]);
    assert!(!post("StoragePools", &body).expect("it is one").may_destroy(&view));
}

fn connections(fabric: &str, body: &Value) -> Result<Change, Refusal> {
    let uri = format!("/redfish/v1/Fabrics/{fabric}/Connections");
    ask(Method::Post, &uri, &body.to_string())
}

#[test]
fn a_connection_is_an_export() {
    let info = json!([{"Volume": volume_link("volume-of-bbbb-2")}]);
    let body = json!({"VolumeInfo": info, "Oem": {"Palisade": {"Listeners": ["[::1]:4420"],
        "Hosts": ["nqn.h"], "AnyHost": false, "Subsystem": "nqn.s", "Advertise": ["a:1"]}}});
    let wanted = CreateExport {
        array: "bbbb-2".into(),
        volume: "volume-of-bbbb-2".into(),
        nbd: None,
        nvme_tcp: vec!["[::1]:4420".into()],
        subsystem: Some("nqn.s".into()),
        hosts: vec!["nqn.h".into()],
        any_host: false,
        advertise: vec!["a:1".into()],
        local: None,
        iscsi: None,
        fc: None,
    };
    assert_eq!(connections("nvme", &body), Ok(Change::CreateExport(wanted)));
    refused(connections("nbd", &body), "PropertyUnknown", "#/Oem/Palisade/Advertise");

    let body = json!({"VolumeInfo": info, "ConnectionType": "Storage",
        "Oem": {"Palisade": {"Listeners": ["unix:/run/x"]}}});
    let Ok(Change::CreateExport(export)) = connections("nbd", &body) else { panic!("not taken") };
    assert_eq!(export.nbd.as_deref(), Some("unix:/run/x"));
    assert!(export.nvme_tcp.is_empty());

    let body = json!({"VolumeInfo": info, "Oem": {"Palisade": {"Portals": ["[::1]:3260"],
        "Initiators": ["iqn.i"], "User": "u", "Secret": "hidden-hidden", "Server": "Tgt"}}});
    let made = connections("iscsi", &body);
    assert!(!format!("{made:?}").contains("hidden"));
    let Ok(Change::CreateExport(export)) = made else { panic!("not taken") };
    let iscsi = export.iscsi.expect("iSCSI");
    assert_eq!(
        (&iscsi.portals[..], iscsi.user.as_deref()),
        (&["[::1]:3260".into()][..], Some("u"))
    );
    assert_eq!(iscsi.secret.expect("given").reveal(), "hidden-hidden");
    assert_eq!(iscsi.server, Some(view::IscsiServer::Tgt));

    let body = json!({"VolumeInfo": info, "ConnectionType": "Storage",
        "Oem": {"Palisade": {"Listeners": ["unix:/run/x"]}}});
    let bare = json!({"VolumeInfo": info});
    refused(connections("nbd", &bare), "PropertyMissing", "#/Oem/Palisade/Listeners");
    assert_eq!(why(connections("ib", &body)).0, 404);
    let fc = json!({"VolumeInfo": info, "Oem": {"Palisade": {"Port": "20:00:00:25:b5:00:00:1f",
        "Protocol": "Nvme", "Initiators": ["nqn.2026-11.example:a"]}}});
    let Ok(Change::CreateExport(request)) = connections("fc", &fc) else { panic!("not taken") };
    let fc = request.fc.expect("is at a port");
    assert!(fc.is_nvme && fc.initiators == ["nqn.2026-11.example:a"], "{fc:?}");
    refused(connections("fc", &bare), "PropertyMissing", "#/Oem/Palisade/Port");
}

#[test]
fn connections_are_deleted_on_their_own_fabric() {
    let delete = |fabric: &str, id: &str| {
        ask(Method::Delete, &format!("/redfish/v1/Fabrics/{fabric}/Connections/{id}"), "")
    };
    let gone = |id: &str| Ok(Change::DeleteExport { id: id.to_owned() });
    assert_eq!(delete("nbd", "aaaa-1-1"), gone("aaaa-1:1"));
    assert_eq!(delete("nvme", "bbbb-2-2"), gone("bbbb-2:2"));
    for (fabric, id) in [("nvme", "aaaa-1-1"), ("nbd", "aaaa-1-3"), ("nbd", "aaaa-1"), ("nbd", "x")]
    {
        assert_eq!(why(delete(fabric, id)).0, 404, "{fabric} {id}");
    }
}

#[test]
fn a_drives_indicator_and_power_state_are_changed() {
    let drive = "/redfish/v1/Chassis/local/Drives/a";
    let locate = |body: &str| ask(Method::Patch, drive, body);
    for on in [true, false] {
        let expected = Change::LocateDrive { id: "a".to_owned(), on };
        assert_eq!(locate(&format!("{{\"LocationIndicatorActive\":{on}}}")), Ok(expected));
    }
    let refused = |body: &str| {
        let refusal = locate(body).expect_err(body);
        refusal.messages[0].id.rsplit('.').next().map(str::to_owned)
    };
    for (body, message) in [
        ("{}", "EmptyJSON"),
        ("{\"Oem\":{}}", "PropertyMissing"),
        ("{\"LocationIndicatorActive\":1}", "PropertyValueTypeError"),
        ("{\"FirmwareVersion\":\"2\",\"LocationIndicatorActive\":true}", "PropertyNotWritable"),
        ("{\"Nothing\":1,\"LocationIndicatorActive\":true}", "PropertyUnknown"),
    ] {
        assert_eq!(refused(body).as_deref(), Some(message), "{body}");
    }
    let action = format!("{drive}/Actions/Oem/PalisadeDrive.SetPowerState");
    let set = |body: &str| ask(Method::Post, &action, body);
    let expected = Change::SetDrivePower { id: "a".to_owned(), state: 31 };
    assert_eq!(set("{\"State\":31}").as_ref(), Ok(&expected));
    assert!(set("{\"State\":32}").is_err() && set("{}").is_err());
    assert!(expected.is_noted() && !expected.may_destroy(&view()));
    assert_eq!(expected.words(&view()), "put drive /dev/a (a) in power state 31");
    let other = action.replace("/a/", "/none/");
    assert_eq!(ask(Method::Post, &other, "{\"State\":1}").map_err(|one| one.status), Err(404));
}

#[test]
fn drives_and_jobs() {
    let uri = "/redfish/v1/Chassis/local/Drives/a/Actions/Oem/PalisadeDrive.Wipe";
    let wipe = |overwrite| Ok(Change::Wipe(WipeDrive { drive: named("a"), overwrite }));
    assert_eq!(ask(Method::Post, uri, ""), wipe(false));
    assert_eq!(ask(Method::Post, uri, r#"{"Overwrite":true}"#), wipe(true));
    let find = post("Actions/Oem/PalisadeStorage.FindDrives", &json!({"Paths": ["/dev/z"]}));
    assert_eq!(find, Ok(Change::FindDrives { paths: vec!["/dev/z".into()] }));
    for (word, action) in [
        ("Suspend", JobAction::Suspend),
        ("Resume", JobAction::Resume),
        ("Cancel", JobAction::Cancel),
    ] {
        let act = |id: &str| {
            let uri = format!("/redfish/v1/JobService/Jobs/{id}/Actions/Job.{word}");
            ask(Method::Post, &uri, "")
        };
        let id = "j1".to_owned();
        assert_eq!(act("j1"), Ok(Change::Job { id, action }));
        assert_eq!(why(act("j2")).0, 409);
        assert_eq!(why(act("j3")).0, 404);
    }
}

#[test]
fn what_is_not_there_or_cannot_be_done() {
    let gone = post("StoragePools/x/Actions/Oem/PalisadeStoragePool.Stop", &json!({}));
    let refusal = gone.unwrap_err();
    assert_eq!(refusal.status, 404);
    assert_eq!(refusal.messages[0].args, [format!("{STORAGE}/StoragePools/x")]);
    let uri = format!("{STORAGE}/StoragePools/aaaa-1");
    assert_eq!(ask(Method::Patch, &uri, "{").unwrap_err().status, 405);
    let deleted = ask(Method::Delete, &uri, "");
    assert_eq!(deleted, Ok(Change::DeleteArray { array: "aaaa-1".into() }));
    let body = ask(Method::Delete, &uri, r#"{"Force":true}"#);
    refused(body, "PropertyUnknown", "#/Force");
}

#[test]
fn a_key_in_the_wrong_place_is_told_nobody() {
    let root = "/redfish/v1/CertificateService/Actions/CertificateService.ReplaceCertificate";
    let key = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n";
    let right = json!({
        "CertificateString": "x",
        "CertificateType": "PEM",
        "CertificateUri": link("Managers/palisade/NetworkProtocol/HTTPS/Certificates/1"),
    });
    assert!(ask(Method::Post, root, &right.to_string()).is_ok());
    for (name, value) in [
        ("CertificateString", json!([key])),
        ("CertificateType", json!(key)),
        ("CertificateUri", json!(key)),
        ("CertificateUri", json!({"@odata.id": key})),
        ("CertificateUri", json!({"@odata.id": format!("/redfish/v1/Chassis/local/Drives/{key}")})),
        ("Other", json!(key)),
    ] {
        let mut body = right.clone();
        body[name] = value;
        let refusal = ask(Method::Post, root, &body.to_string()).expect_err("refused");
        let told = refusal.body().to_string();
        assert!(told.contains(name) && !told.contains("BEGIN") && !told.contains("c2V"), "{told}");
    }
}

#[test]
fn a_person_reads_names() {
    let told = with_names(&view(), Error::new(&say::NO_ARRAY, &[&"aaaa-1"]).advise("stop aaaa-1"));
    assert_eq!(
        (told.error.as_str(), told.hint.as_str()),
        ("no array is named \"tank\"", "stop tank")
    );
    let twin = with_names(&view(), Error::new(&say::NO_ARRAY, &[&"bbbb-2"]));
    assert_eq!(twin.error, "no array is named \"bbbb-2\"", "two arrays have this name");
}

#[test]
fn whatever_is_cut_or_mangled_is_refused_or_taken() {
    let uri = format!("{STORAGE}/StoragePools");
    let found = routes::find(&uri).unwrap();
    let whole = pool_body().to_string().into_bytes();
    for at in 0..whole.len() {
        let cut = &whole[..at];
        assert!(parse(&view(), &found, Method::Post, cut).is_err());
        for with in [b'"', b'{', b'[', b'}', b',', 0, 0xff, b'9'] {
            let mut mangled = whole.clone();
            mangled[at] = with;
            let _ = parse(&view(), &found, Method::Post, &mangled);
        }
    }
}

#[test]
fn changes_have_words_for_the_audit_log() {
    let view = view();
    let said = |change: Result<Change, Refusal>| change.expect("read").words(&view);
    let pool = |id: &str, action: &str, body: &Value| {
        said(post(&format!("StoragePools/{id}/Actions/Oem/PalisadeStoragePool.{action}"), body))
    };
    assert_eq!(pool("aaaa-1", "Stop", &json!({})), "stop array tank (aaaa-1)");
    assert_eq!(
        pool("bbbb-2", "Assemble", &json!({"AcceptLoss": true})),
        "assemble array twin (bbbb-2), accept loss"
    );
    let body = json!({"Slot": 1, "With": drive_link("b"), "Overwrite": [drive_link("b")]});
    let words = pool("aaaa-1", "ReplaceDrive", &body);
    assert!(words.starts_with("replace slot 1 of array tank (aaaa-1) with"), "{words}");
    assert!(words.ends_with("with /dev/b (b), overwrite /dev/b (b)"), "{words}");
    let cancel = Change::Job { id: "j1".into(), action: JobAction::Cancel };
    assert!(cancel.words(&view).starts_with("cancel task "), "{}", cancel.words(&view));
    assert!(cancel.is_noted());
    assert!(!Change::VerifyLog.is_noted());
}
