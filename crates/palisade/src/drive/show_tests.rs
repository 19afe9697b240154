//! What is shown of a drive: golden texts.

use super::*;
use redfish::view::{Drive, DrivePlace, DrivePower, DrivePowerState, Health};
use serde_json::json;

fn known(hardware: Hardware) -> KnownDrive {
    KnownDrive {
        remote: None,
        id: "eui.0025385b01404d3e".to_owned(),
        wwid: Some("eui.0025385b01404d3e".to_owned()),
        model: Some("KCM7XRUG7T68".to_owned()),
        is_file: false,
        hardware: hardware.into(),
        drive: Drive {
            path: "/dev/nvme3n1".to_owned(),
            serial: "S3".to_owned(),
            bytes: 7_681_501_126_656,
            block_bytes: 4096,
            state: DriveState::InUse,
            array: Some("tank".to_owned()),
            slot: Some(3),
            signature: None,
            problem: None,
        },
    }
}

fn whole() -> Hardware {
    let text = |text: &str| Some(text.to_owned());
    let state = |state, milliwatts| DrivePowerState {
        state,
        max_milliwatts: Some(milliwatts),
        serves: true,
        enter_us: 0,
        exit_us: 0,
    };
    Hardware {
        kind: text("nvme"),
        transport: text("pcie"),
        controller: text("nvme3"),
        namespace: Some(1),
        firmware: text("0106"),
        bus_address: text("0000:03:00.0"),
        link: Some(PcieLink {
            lanes: 2,
            max_lanes: 4,
            megatransfers: 8_000,
            max_megatransfers: 16_000,
        }),
        place: Some(DrivePlace { enclosure: "shelf".to_owned(), slot: "3".to_owned() }),
        located: Some(false),
        health: Health::Warning,
        reasons: vec![Reason {
            rule: "wear".to_owned(),
            health: Health::Warning,
            what: "93% of its life is used".to_owned(),
            action: "replace it: array replace tank --slot 3 --with PATH".to_owned(),
            since: 1_700_000_000,
        }],
        smart: Some(Smart {
            celsius: Some(41),
            available_spare_percent: 98,
            spare_threshold_percent: 10,
            percentage_used: 93,
            read_bytes: 1 << 42,
            written_bytes: 3 << 43,
            read_commands: 12_345,
            write_commands: 67_890,
            busy_minutes: 77,
            power_cycles: 12,
            power_on_hours: 4123,
            unsafe_shutdowns: 3,
            error_log_entries: 5,
            sensors_celsius: vec![Some(40), None, Some(44)],
            ..Smart::default()
        }),
        warning_celsius: Some(70),
        critical_celsius: Some(80),
        power: Some(DrivePower { state: 1, states: vec![state(0, 25_000), state(1, 18_000)] }),
        worn_out: Some(1_800_000_000),
        asked: Some(1_700_000_100),
        ..Hardware::default()
    }
}

const WHOLE: &str = "\
drive         /dev/nvme3n1
health        warning
              warning: 93% of its life is used
              since 2023-11-14T22:13:20Z; replace it: array replace tank --slot 3 --with PATH
model         KCM7XRUG7T68
serial        S3
firmware      0106
id            eui.0025385b01404d3e
wwid          eui.0025385b01404d3e
size          7 TiB in blocks of 4096 bytes (7681501126656 bytes)
state         in-use: array tank slot 3
device        NVMe over PCI Express, nvme3, namespace 1, at 0000:03:00.0
link          2 lanes at 8 GT/s, of 4 lanes at 16 GT/s
place         enclosure shelf, slot 3
indicator     off
temperature   41 °C (warns from 70 °C, acts from 80 °C); sensors 40 °C, 44 °C
life used     93%; worn out about 2027-01-15
spare         98% (warns below 10%)
media errors  0
error log     5 entries
powered       4123 hours, 12 times on, 3 times off without notice
read          4 TiB by 12345 commands
written       24 TiB by 67890 commands
busy          77 minutes
power state   1 of 0 to 1, at most 18 W
asked         2023-11-14T22:15:00Z
";

/// A file, of which nothing is known.
const BARE: &str = "\
drive         /dev/nvme3n1
health        ok
model         KCM7XRUG7T68
serial        S3
id            eui.0025385b01404d3e
wwid          eui.0025385b01404d3e
size          7 TiB in blocks of 4096 bytes (7681501126656 bytes)
state         in-use: array tank slot 3
";

#[test]
fn a_drive_is_shown_to_people() {
    assert_eq!(text(&known(whole()).into()), WHOLE);
    assert_eq!(text(&known(Hardware::default()).into()), BARE);
}

#[test]
fn what_can_not_be_asked_is_said() {
    let hardware = Hardware {
        sensor_celsius: Some(39),
        problem: Some("the daemon lacks CAP_SYS_ADMIN\nand more".to_owned()),
        ..Hardware::default()
    };
    let told = text(&known(hardware).into());
    let rest = "temperature   39 °C\nnot known     the daemon lacks CAP_SYS_ADMIN\\nand more\n";
    assert_eq!(told, format!("{BARE}{rest}"));
    let mut foreign = known(Hardware::default());
    (foreign.drive.array, foreign.drive.slot) = (None, None);
    (foreign.drive.state, foreign.drive.signature) = (DriveState::Foreign, Some("ext4".to_owned()));
    assert!(text(&foreign.clone().into()).ends_with("state         foreign: ext4\n"));
    foreign.drive.state = DriveState::Unusable;
    assert!(text(&foreign.into()).contains("health        critical\n"));
}

#[test]
fn programs_get_all_of_it() {
    let told = serde_json::to_string(&Answer::new(Shown::from(known(whole())))).expect("encodes");
    let told: serde_json::Value = serde_json::from_str(&told).expect("is JSON");
    for (key, value) in [
        ("/schema", json!(1)),
        ("/id", json!("eui.0025385b01404d3e")),
        ("/path", json!("/dev/nvme3n1")),
        ("/health", json!("warning")),
        ("/state", json!("in-use")),
        ("/slot", json!(3)),
        ("/hardware/kind", json!("nvme")),
        (
            "/hardware/reasons/0/do",
            json!(WHOLE[WHOLE.find("replace").expect("is there")..].lines().next()),
        ),
        ("/hardware/smart/written_bytes", json!(3u64 << 43)),
        ("/hardware/smart/sensors_celsius", json!([40, null, 44])),
        ("/hardware/place", json!({"enclosure": "shelf", "slot": "3"})),
        ("/hardware/power/state", json!(1)),
    ] {
        assert_eq!(told.pointer(key), Some(&value), "{key}");
    }
    let keys: Vec<&str> = told.as_object().expect("an object").keys().map(String::as_str).collect();
    let expected = [
        "array",
        "block_bytes",
        "bytes",
        "hardware",
        "health",
        "id",
        "model",
        "path",
        "schema",
        "serial",
        "signature",
        "slot",
        "state",
        "wwid",
    ];
    assert_eq!(keys, expected);
}
