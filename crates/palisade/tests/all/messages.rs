//! Every message is provoked once: by a scene of this file, or by a test that is named here.
//!
//! A scene is a text. Each line is a command, or a request, behind the name of the message that it
//! ends with; `ok` if it does what it should. `{…}` stand for what the scene has.

use crate::alert_messages::ALERTS;
use crate::cli::place::{Place, errors, program, scribble};
use crate::cli::tasks::{large, paused_scrub};
use crate::common::place::{Daemon, Place as Site};
use crate::owner::OWNERS;
use crate::redfish::{POOLS, VOLUMES, ask, pool, request, send};
use redfish::error::Base;
use redfish::messages;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Commands without a daemon.
const ALONE: &str = "
NoDaemon status
SocketFailed --socket {dir}/config.toml/x status
BadUrl --url http://127.0.0.1 status
RequestWrong api POST / {
ConfigNotRead serve --config /no/such/file
ConfigWrong serve --config {dir}/bad.toml
NoSuchMessage explain Nothing
DriveNotOpened drive inspect /no/such/drive
NotADrive drive inspect {dir}
DriveEmpty drive inspect {dir}/empty
NoPalisadeRecord drive inspect {0}
OverwriteNamesOther drive wipe {0} --yes --overwrite {2}
Unconfirmed drive wipe {0}
Unconfirmed share delete docs
WipeHoldsData drive wipe {1} --yes
SocketTaken serve --config {dir}/config.toml --socket {dir}/config.toml
SocketNotMade serve --config {dir}/config.toml --socket /proc/none/palisade.sock
";

/// Commands that a daemon answers.
const SERVED: &str = "
ok array create data --level 5 --drives {0} {1} {2}
NoArray array show none
ArrayRunning array assemble data
NoVolume volume delete data/none --yes
NoExport export delete data:9
NoExportId export delete 9
NoShare share show none
NoShares share user add alice
NoAlert alert ack 0
NoTaskId task pause none
NoTask task pause data:scrub
DriveInUse --socket {dir}/none drive wipe {0} --yes
DaemonRuns serve --config {dir}/config.toml
BadName array create a+b --level 1 --drives {3} {4}
NameIsUuid array create 01234567-89ab-cdef-0123-456789abcdef --level 1 --drives {3} {4}
NameTaken array create data --level 1 --drives {3} {4}
LevelDrives array create a --level 5 --drives {3} {4}
BadStrip array create a --level 1 --drives {3} {4} --strip 5000
DriveTwice array create a --level 1 --drives {3} {3}
OverwriteOther array create a --level 1 --drives {3} {4} --overwrite {5}
DriveOfArray array create a --level 1 --drives {0} {3}
DriveHoldsData array create a --level 1 --drives {3} {7}
DriveNoIndicator drive locate {3} on
DriveNotNvme drive power {3} --state 1
BadDriveName array create a --level 1 --drives {3} nvme://x
DriveNotRemote drive paths {3}
SubsystemNotReached drive discover -a 127.0.0.1 -s 1
SubsystemNotConnected drive disconnect -n nqn.2026-11.org.example:s
RemoteNotOpened drive inspect nvme://nqn.2026-11.org.example:s/1
DriveTooSmall array create a --level 1 --drives {3} {dir}/small
ok volume create data/v --size 4M
ok volume create data/w --size 1M
ok volume create data/x --size 1M
BadSize volume create data/y --size 100
NoSpace volume create data/y --size 1G
Unconfirmed volume resize data/v --size 2M
BadAddress export create data/v --nbd here
AddressNotFound export create data/v --nbd no-such-host.invalid:10809
CannotListen export create data/v --nbd 192.0.2.1:10809
ExportHosts export create data/v --nvme-tcp 127.0.0.1:0
BadNqn export create data/v --nvme-tcp 127.0.0.1:0 --host here
AdvertiseCount export create data/v --nvme-tcp 127.0.0.1:0 --any-host --advertise {two}
AddressTwice export create data/v --nvme-tcp {tcp} --nvme-tcp {tcp} --any-host
DiscoveryNqn export create data/v --nvme-tcp 127.0.0.1:0 --any-host --subsystem {discovery}
ok export create data/v --nbd unix:{dir}/nbd
AlreadyExported export create data/v --nbd unix:{dir}/nbd
ok export create data/w --nvme-tcp {tcp} --any-host --advertise 127.0.0.1:1
AlreadyInSubsystem export create data/w --nvme-tcp 127.0.0.1:0 --any-host
AdvertisedOtherwise export create data/x --nvme-tcp {tcp} --any-host --advertise 127.0.0.1:2
VolumeExported volume delete data/v --yes
NoDriveInArray array fail data --drive x
NoSlot array replace data --slot 9 --with {3}
SlotInUse array replace data --slot 1 --with {3}
ok array fail data --drive slot:1
WouldLoseData array fail data --drive slot:2
ok array create zero --level 0 --drives {5} {6}
NoRedundancy array scrub zero --check
ok array stop zero
ArrayNotRunning volume create zero/v --size 1M
NameTakenStopped array create zero --level 1 --drives {3} {4}
";

/// Commands about a task that waits.
const PAUSED: &str = "
TaskPaused array wait data
ArrayBusy array scrub data --check
";

/// A command about a task that goes on.
const RUNNING: &str = "TaskLasts array wait data --timeout 0";

/// Commands about arrays that lack drives.
const LACKING: &str = "
NeedsStartDegraded array assemble pair
TooManyMissing array assemble many --start-degraded
";

/// What a daemon says of drives and arrays when it starts.
const AT_START: &[&str] = &["ArrayNotStarted", "ArrayLacksDrives", "DrivesInUse"];

/// Requests: method, URI and body behind the message.
const ASKED: &str = r#"
ResourceMissingAtURI GET /redfish/v1/None
OperationNotAllowed PUT /redfish/v1
PropertyUnknown POST {pools} {"Name":"a","SupportedRAIDTypes":["RAID5"],{drives},"Size":1}
PropertyMissing POST {pools} {}
PropertyDuplicate POST {pools} {"Name":"a","Name":"b"}
MalformedJSON POST {pools} {"Name"
UnrecognizedRequestBody POST {pools} []
PropertyValueTypeError POST {pools} {"Name":1}
PropertyValueNotInList POST {pools} {"Name":"a","SupportedRAIDTypes":["RAID7"],{drives}}
PropertyValueConflict POST {pools} {"Name":"a","SupportedRAIDTypes":["RAID6"],{drives},{own}}
ArraySizeTooLong POST {pools} {"Name":"a","SupportedRAIDTypes":["RAID5","RAID6"],{drives}}
ArraySizeTooShort POST {pools} {"Name":"a","SupportedRAIDTypes":[],{drives}}
PropertyValueResourceConflict POST {volumes} {"Name":"a","CapacityBytes":1048576,{chassis}}
EmptyJSON PATCH {volume} {}
PropertyValueOutOfRange PATCH {volume} {"CapacityBytes":-1}
BadBlockSize POST {pools} {"Name":"a","SupportedRAIDTypes":["RAID5"],{drives},{block}}
ActionParameterUnknown POST {pool}/Actions/Oem/PalisadeStoragePool.Stop {"Now":true}
ActionParameterDuplicate POST {pool}/Actions/Oem/PalisadeStoragePool.Scrub {"Mode":"A","Mode":"B"}
ActionParameterMissing POST {pool}/Actions/Oem/PalisadeStoragePool.FailDrive {}
ActionParameterValueTypeError POST {pool}/Actions/Oem/PalisadeStoragePool.Scrub {"Mode":1}
ActionParameterValueNotInList POST {pool}/Actions/Oem/PalisadeStoragePool.Scrub {"Mode":"x"}
ActionParameterValueOutOfRange POST {pool}/Actions/Oem/PalisadeStoragePool.ReplaceDrive {"Slot":-1}
PayloadTooLarge POST {pools} {large}
PropertyNotWritable PATCH {volume} {"Name":"other"}
QueryParameterUnsupported GET /redfish/v1/Chassis?$none
QueryNotSupportedOnResource GET /redfish/v1?$top=1
QueryNotSupportedOnOperation POST {pools}?only {}
QueryCombinationInvalid GET /redfish/v1/Chassis?only&$top=1
QueryParameterValueTypeError GET /redfish/v1/Chassis?$top=one
QueryParameterValueFormatError GET /redfish/v1/Chassis?$filter=(
QueryParameterOutOfRange GET /redfish/v1/Chassis?$top=-1
"#;

/// Requests with a header: method, URI and header behind the message.
const HEADED: &str = "
HeaderInvalid POST {pool}/Actions/Oem/PalisadeStoragePool.Stop palisade-plan: perhaps
PreconditionFailed GET /redfish/v1 odata-version: 3.0
";

/// The lines of a scene: what they end with, and the rest.
fn lines(scene: &str) -> impl Iterator<Item = (&str, &str)> {
    scene.lines().filter(|line| !line.is_empty()).map(|line| line.split_once(' ').expect("words"))
}

/// Plays a scene of commands.
fn play(scene: &str, place: &Place, own: &[(&str, &str)]) {
    for (name, words) in lines(scene) {
        let mut words = words.replace("{dir}", place.dir.path().to_str().expect("text"));
        for (key, value) in own {
            words = words.replace(key, value);
        }
        for number in 0..8 {
            words = words.replace(&format!("{{{number}}}"), &place.name(number));
        }
        let output = place.run(&words.split(' ').collect::<Vec<_>>());
        check(name, &output, &words);
    }
}

/// An end with this message, and the exit status that goes with it.
fn check(name: &str, output: &std::process::Output, words: &str) {
    let said = errors(output);
    let code = match messages::find(name) {
        None => 0,
        Some(entry) => i32::from(entry.exit()),
    };
    assert_eq!(output.status.code(), Some(code), "{name}: {words}: {said}");
    let told = format!("(palisade explain {name})");
    assert!(code == 0 || said.trim_end().ends_with(&told), "{name}: {words}: {said}");
}

#[test]
fn what_commands_say_by_themselves() {
    let place = Place::new(3);
    scribble(&place.drive(1), 4086, b"SWAPSPACE2");
    std::fs::write(place.dir.path().join("bad.toml"), "sockets = 1\n").expect("written");
    std::fs::write(place.dir.path().join("empty"), "").expect("written");
    play(ALONE, &place, &[]);
}

#[test]
fn what_the_daemon_says_to_commands() {
    let mut place = Place::new(8);
    scribble(&place.drive(7), 4086, b"SWAPSPACE2");
    std::fs::write(place.dir.path().join("small"), vec![1; 2 << 20]).expect("written");
    place.start();
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let tcp = free.local_addr().expect("is known").to_string();
    drop(free);
    let own = [
        ("{tcp}", tcp.as_str()),
        ("{two}", "127.0.0.1:1 --advertise 127.0.0.1:2"),
        ("{discovery}", "nqn.2014-08.org.nvmexpress.discovery"),
    ];
    play(SERVED, &place, &own);
}

#[test]
fn what_is_said_of_a_task_that_waits() {
    let mut place = large(3);
    place.start();
    place.create_written("data", "5", &[0, 1, 2]);
    paused_scrub(&place);
    play(PAUSED, &place, &[]);
    place.json(&["task", "cancel", "data:scrub"]);
    let (name, words) = lines(RUNNING).next().expect("a line");
    let words: Vec<&str> = words.split(' ').collect();
    let mut last = None;
    for _ in 0..50 {
        place.json(&["array", "scrub", "data", "--check"]);
        let output = place.run(&words);
        place.json(&["array", "wait", "data", "--timeout", "60"]);
        // One that was over before is started again.
        let is_over = output.status.code() == Some(0);
        last = Some(output);
        if !is_over {
            break;
        }
    }
    check(name, &last.expect("ran"), RUNNING);
}

#[test]
fn what_is_said_of_arrays_that_lack_drives() {
    let mut place = Place::running(8);
    place.create("pair", "1", &[0, 1]);
    place.create("many", "5", &[2, 3, 4]);
    place.create("wide", "5", &[5, 6, 7]);
    place.end(rustix::process::Signal::TERM);
    for number in [1, 3, 4, 7] {
        let away = place.dir.path().join(format!("away{number}"));
        std::fs::rename(place.drive(number), away).expect("moved");
    }
    place.start();
    play(LACKING, &place, &[]);
    let mut other = Place::new(0);
    let text = format!("drives = [\"{}/drive*.img\"]\n", place.dir.path().display());
    std::fs::write(other.config(), text).expect("written");
    let (config, socket) = (other.config(), other.socket());
    let words = ["serve", "--config", config.to_str().expect("text"), "--socket"];
    other.start_by(program(&[&words[..], &[socket.to_str().expect("text")]].concat()));
    let said = place.said() + &other.said();
    for name in AT_START {
        assert!(said.contains(&format!("(palisade explain {name})")), "{name}: {said}");
    }
}

#[test]
fn what_a_poor_machine_makes_of_commands() {
    let place = Place::new(0);
    let config = place.config();
    let serve = ["serve", "--config", config.to_str().expect("text")];
    let output = program(&serve).env("PALISADE_PARITY", "none").output().expect("ran");
    check("ParityKernel", &output, "serve");
    let limited = "ulimit -n 4; exec \"$0\" status";
    let mut shell = Command::new("sh");
    shell.args(["-c", limited, env!("CARGO_BIN_EXE_palisade")]);
    check("CommandCannotStart", &shell.output().expect("ran"), limited);
}

/// What [`what_a_poor_machine_makes_of_commands`] shows.
const POOR: &[&str] = &["ParityKernel", "CommandCannotStart"];

#[test]
fn what_requests_are_answered() {
    let mut site = Site::new("messages", 16);
    let drives = site.drives(6);
    let daemon = Daemon::start(&site, 1);
    let body = pool(&site, "a", "RAID5", &drives[3..]);
    let sources = format!("\"CapacitySources\":{}", body["CapacitySources"]);
    daemon.create("tank", "5", &drives[..3], &[]);
    daemon.call(&["volume", "create", "tank/v", "--size", "4M"]);
    let first = |uri: &str| {
        let all = ask(&site, "GET", uri, &Value::Null).json();
        all["Members"][0]["@odata.id"].as_str().expect("a URI").to_owned()
    };
    let chassis =
        json!([{ "ProvidingPools": { "Members": [{ "@odata.id": "/redfish/v1/Chassis" }] } }]);
    let own = [
        ("{pools}", POOLS.to_owned()),
        ("{volumes}", VOLUMES.to_owned()),
        ("{pool}", first(POOLS)),
        ("{volume}", first(VOLUMES)),
        ("{drives}", sources),
        ("{own}", "\"Oem\":{\"Palisade\":{\"Level\":\"5\"}}".to_owned()),
        ("{block}", "\"Oem\":{\"Palisade\":{\"BlockSizeBytes\":1000}}".to_owned()),
        ("{large}", " ".repeat((1 << 20) + 1)),
        ("{chassis}", format!("\"CapacitySources\":{chassis}")),
    ];
    for (name, words) in lines(ASKED) {
        let mut words = words.to_owned();
        for (key, value) in &own {
            words = words.replace(key, value);
        }
        let mut words = words.splitn(3, ' ');
        let [method, uri, body] = [(); 3].map(|()| words.next().unwrap_or_default());
        let answer = send(&site, request(method, uri, body).as_bytes()).expect("an answer");
        assert_eq!(answer.message(), name, "{method} {uri}: {answer:?}");
        let status = match messages::find(name) {
            Some(entry) => entry.status(),
            None => Base::find(name).expect("a message").status(),
        };
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(!answer.json()["error"]["@Message.ExtendedInfo"][0]["Resolution"].is_null());
    }
    for (name, words) in lines(HEADED) {
        let words = words.replace("{pool}", &first(POOLS));
        let mut words = words.splitn(3, ' ');
        let [method, uri, header] = [(); 3].map(|()| words.next().unwrap_or_default());
        let headed = format!("\r\n{header}\r\n");
        let asked = request(method, uri, "").replacen("\r\n", &headed, 1);
        let answer = send(&site, asked.as_bytes()).expect("an answer");
        assert_eq!(answer.message(), name, "{asked}: {answer:?}");
    }
    daemon.stop();
}

#[test]
fn every_message_is_provoked() {
    let mut provoked: BTreeSet<&str> = BTreeSet::new();
    for scene in [ALONE, SERVED, PAUSED, RUNNING, LACKING, ASKED, HEADED] {
        provoked.extend(lines(scene).map(|(name, _)| name).filter(|name| *name != "ok"));
    }
    provoked.extend(AT_START.iter().chain(POOR));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (file, test, names) in crate::elsewhere::ELSEWHERE.iter().chain(ALERTS).chain(OWNERS) {
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        assert!(text.contains(&format!("fn {test}()")), "{file} has no test {test}");
        for name in *names {
            assert!(provoked.insert(name), "{name} is provoked already");
        }
    }
    let all: BTreeSet<&str> = messages::all()
        .map(|entry| entry.name)
        .chain(Base::ALL.iter().map(Base::name))
        .chain(messages::notices().map(|notice| notice.name))
        .collect();
    let never: Vec<_> = all.difference(&provoked).collect();
    assert!(never.is_empty(), "provoked by nothing: {never:?}");
    let unknown: Vec<_> = provoked.difference(&all).collect();
    assert!(unknown.is_empty(), "no messages: {unknown:?}");
}
