//! Everything that is wrong in a view, by a table of rules.
//!
//! Invariants
//! - A condition is named by a key: the same as long as the same is wrong with the same thing,
//!   whatever figures its text has. No two conditions of a view have one key.
//! - Nothing is wrong that only takes time: neither a rebuild, nor an array that a person stopped.
//! - Texts are those of the registry's messages; what to do is the line of `status.next`, where
//!   there is one.

use crate::messages::{self as say, Notice};
use crate::service::uri;
use crate::view::{
    Array, ArrayState, DriveState, Export, ExportHealth, Fan, Health, Measures, NetworkPort,
    Problem, Sensor, Shelf, ShelfState, Silence, SlotInfo, SlotState, Supply, TaskState, View,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

/// Something that is wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Condition {
    /// Names it: the message, the resource, and which part of it where it has several.
    pub key: String,
    /// The message of the registry, without the registry's name.
    pub message: String,
    /// What stands for `%1` and so on in the message's text.
    pub args: Vec<String>,
    /// How grave it is.
    pub severity: Health,
    /// What is wrong, one line.
    pub what: String,
    /// What to do, one line.
    pub action: String,
    /// The URI of what it is about.
    pub of: String,
    /// What that is called.
    pub name: String,
}

impl Condition {
    fn new(notice: &Notice, args: &[&dyn Display], of: &str, name: impl Display) -> Self {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        Self {
            key: format!("{} {of}", notice.name),
            message: notice.name.to_owned(),
            severity: notice.severity.into(),
            what: notice.text(&args),
            action: notice.advice(&args),
            of: of.to_owned(),
            name: name.to_string(),
            args,
        }
    }

    /// It is about this part of the resource.
    fn part(mut self, part: impl Display) -> Self {
        self.key.push_str(&format!(" {part}"));
        self
    }

    /// With other advice, if there is other.
    fn advised(mut self, action: Option<String>) -> Self {
        self.action = action.unwrap_or(self.action);
        self
    }

    fn grave(self, severity: Health) -> Self {
        Self { severity, ..self }
    }
}

/// A rule: finds conditions.
type Rule = fn(&View, &mut Vec<Condition>);

/// The rules, each with the messages that it tells.
pub(super) const RULES: &[(&[&str], Rule)] = &[
    (&["ArrayDegraded", "ArrayFailed", "ArrayDoesNotStart"], arrays),
    (&["DriveOut", "DriveMissing"], slots),
    (&["BlocksLost"], unreadable),
    (&["JobStuck"], jobs),
    (&["ScrubFound"], scrubs),
    (&["ExportFailed"], exports),
    (&["DriveUnusable"], drives),
    (&["DriveNotWell"], health),
    (&["StateProblem"], state),
    (&["GpuSuspect"], gpu),
    (&["MemoryNotLocked"], memory),
    // Further messages are those of `messages::https` and `messages::accounts`.
    (&["CertificateEnds", "CertificateEarly", "HttpsNotBound", "HttpsOff"], https),
    (&["SensorNotWell"], sensors),
    (&["FanNotWell"], fans),
    (&["SupplyNotWell"], supplies),
    (&["PortWithoutLink"], ports),
    (&["ShelfSilent", "ShelfPartNotWell"], shelves),
    (&["MailNotSent", "MailRefused"], mail),
    (&["WebhookFails", "EventsDropped"], webhooks),
];

/// Everything that is wrong, the gravest first.
pub fn conditions(view: &View) -> Vec<Condition> {
    let mut all = Vec::new();
    for (_, rule) in RULES {
        rule(view, &mut all);
    }
    all.sort_by(|a, b| (b.severity, &a.key).cmp(&(a.severity, &b.key)));
    all.dedup_by(|a, b| a.key == b.key);
    let mut known = BTreeSet::new();
    all.retain(|one| known.insert(one.key.clone()));
    all
}

/// What a person is told to do about what begins so.
fn advice(view: &View, begins: &str) -> Option<String> {
    let next = view.status.next.iter().find(|next| next.what.starts_with(begins));
    next.map(|next| next.action.clone())
}

/// The same about an array; none where two arrays have its name, as nobody knows which is meant.
fn advice_of(view: &View, array: &Array, rest: &str) -> Option<String> {
    let alike = view.status.arrays.iter().filter(|other| other.name == array.name).count();
    let begins = format!("array {} {rest}", array.name);
    if alike == 1 { advice(view, &begins) } else { None }
}

fn running(view: &View) -> impl Iterator<Item = &Array> {
    view.status.arrays.iter().filter(|array| array.state != ArrayState::Stopped)
}

fn arrays(view: &View, all: &mut Vec<Condition>) {
    for array in &view.status.arrays {
        let (of, name) = (uri::pool(&array.uuid), &array.name);
        let plain = |notice| Condition::new(notice, &[name], &of, name);
        all.extend(match (array.state, &array.problem) {
            (ArrayState::Degraded, _) => {
                Some(plain(&say::ARRAY_DEGRADED).advised(advice_of(view, array, "is degraded")))
            }
            (ArrayState::Failed, _) => {
                Some(plain(&say::ARRAY_FAILED).advised(advice_of(view, array, "has failed")))
            }
            (ArrayState::Stopped, Some(problem)) => {
                let args: [&dyn Display; 2] = [name, problem];
                let found = Condition::new(&say::ARRAY_DOES_NOT_START, &args, &of, name);
                Some(found.advised(advice_of(view, array, "is not started")))
            }
            (ArrayState::Stopped | ArrayState::Optimal, _) => None,
        });
    }
}

/// The resource of a slot's drive; that of its array where the drive is not known.
fn drive_of(view: &View, array: &Array, slot: &SlotInfo) -> String {
    let known = view.drives.iter().find(|known| Some(&known.drive.path) == slot.drive.as_ref());
    known.map_or_else(|| uri::pool(&array.uuid), |known| uri::drive(&known.id))
}

/// How a person knows the drive of a slot.
fn drive_name(slot: &SlotInfo) -> String {
    match (&slot.drive, slot.serial.as_str()) {
        (Some(path), _) => path.clone(),
        (None, "") => "-".to_owned(),
        (None, serial) => format!("with serial number {serial}"),
    }
}

fn slots(view: &View, all: &mut Vec<Condition>) {
    for array in running(view) {
        for slot in &array.slots {
            let (drive, of) = (drive_name(slot), drive_of(view, array, slot));
            let mut found = match slot.state {
                SlotState::InSync | SlotState::Rebuilding => continue,
                SlotState::Failed => {
                    let reason = slot.reason.as_deref().unwrap_or("taken out of service");
                    let args: [&dyn Display; 4] = [&drive, &slot.slot, &array.name, &reason];
                    Condition::new(&say::DRIVE_OUT, &args, &of, &drive)
                }
                SlotState::Missing => {
                    let args: [&dyn Display; 3] = [&drive, &slot.slot, &array.name];
                    Condition::new(&say::DRIVE_MISSING, &args, &of, &drive)
                }
            };
            // The drive's resource may come and go; the slot stays.
            found.key = format!("{} {} slot {}", found.message, uri::pool(&array.uuid), slot.slot);
            let begins = format!("is degraded in slot {}:", slot.slot);
            all.push(found.advised(advice_of(view, array, &begins)));
        }
    }
}

fn unreadable(view: &View, all: &mut Vec<Condition>) {
    for array in &view.status.arrays {
        let mut bytes: BTreeMap<&str, u64> = BTreeMap::new();
        for range in &array.unreadable {
            let sum = bytes.entry(&range.volume).or_default();
            *sum = sum.saturating_add(range.length);
        }
        for (volume, bytes) in bytes.into_iter().filter(|(_, bytes)| *bytes > 0) {
            let known = array.volumes.iter().find(|own| own.name == volume);
            let of = known.map_or_else(|| uri::pool(&array.uuid), |own| uri::volume(&own.uuid));
            let args: [&dyn Display; 3] = [&volume, &array.name, &bytes];
            let name = format!("{}/{volume}", array.name);
            let found = Condition::new(&say::BLOCKS_LOST, &args, &of, name).part(volume);
            all.push(found.advised(advice_of(view, array, "can't read ")));
        }
    }
}

fn jobs(view: &View, all: &mut Vec<Condition>) {
    for array in &view.status.arrays {
        for task in array.tasks.iter().filter(|task| task.state == TaskState::Stuck) {
            let of = uri::pool(&array.uuid);
            let problem = task.problem.as_deref().unwrap_or("it is stuck");
            let args: [&dyn Display; 2] = [&task.id, &problem];
            let found = Condition::new(&say::JOB_STUCK, &args, &of, &task.id);
            let own = advice(view, &format!("task {} is stuck", task.id));
            all.push(found.part(task.kind.word()).advised(own));
        }
    }
}

fn scrubs(view: &View, all: &mut Vec<Condition>) {
    for array in &view.status.arrays {
        let last = array.last_scrub.as_ref();
        let left = last.map_or(0, |last| last.mismatches.saturating_sub(last.repaired));
        if left > 0 {
            let args: [&dyn Display; 2] = [&array.name, &left];
            let of = uri::pool(&array.uuid);
            all.push(Condition::new(&say::SCRUB_FOUND, &args, &of, &array.name));
        }
    }
}

/// The resource of an export.
fn export_uri(array: &Array, export: &Export) -> String {
    let fabric = export.kind.fabric();
    let number = uri::export_number(&export.id).unwrap_or_default();
    uri::connection(fabric, &uri::connection_id(&array.uuid, number))
}

fn exports(view: &View, all: &mut Vec<Condition>) {
    for array in running(view) {
        for export in array.exports.iter().filter(|export| !export.serving) {
            let Some(problem) = &export.problem else { continue };
            let args: [&dyn Display; 3] = [&export.volume, &array.name, problem];
            let of = export_uri(array, export);
            let found = Condition::new(&say::EXPORT_FAILED, &args, &of, &export.id);
            // What is asked as a client asks is served by another process.
            let other = export.health.as_ref().map(|_| ExportHealth::ACTION.to_owned());
            all.push(found.advised(other));
        }
    }
}

fn drives(view: &View, all: &mut Vec<Condition>) {
    for known in view.drives.iter().filter(|known| known.drive.state == DriveState::Unusable) {
        let problem = known.drive.problem.as_deref().unwrap_or("it can't be opened or read");
        let args: [&dyn Display; 2] = [&known.drive.path, &problem];
        let of = uri::drive(&known.id);
        all.push(Condition::new(&say::DRIVE_UNUSABLE, &args, &of, &known.drive.path));
    }
}

fn health(view: &View, all: &mut Vec<Condition>) {
    for known in &view.drives {
        for reason in known.hardware.reasons.iter().filter(|own| own.health != Health::Ok) {
            let args: [&dyn Display; 3] = [&known.drive.path, &reason.what, &reason.action];
            let of = uri::drive(&known.id);
            let found = Condition::new(&say::DRIVE_NOT_WELL, &args, &of, &known.drive.path);
            all.push(found.part(&reason.rule).grave(reason.health));
        }
    }
}

fn state(view: &View, all: &mut Vec<Condition>) {
    let Some(problem) = &view.status.state.problem else { return };
    let found = Condition::new(&say::STATE_PROBLEM, &[problem], uri::MANAGER, "state directory");
    let next = view.status.next.iter().find(|next| next.what.contains(problem.as_str()));
    all.push(found.advised(next.map(|next| next.action.clone())));
}

fn gpu(view: &View, all: &mut Vec<Condition>) {
    if view.status.parity.gpu_suspect {
        let name = view.status.parity.gpu.as_deref().unwrap_or("GPU");
        let found = Condition::new(&say::GPU_SUSPECT, &[], uri::MANAGER, name);
        all.push(found.advised(advice(view, "parity is computed on the CPU")));
    }
}

fn memory(view: &View, all: &mut Vec<Condition>) {
    if let Some(problem) = &view.status.memory.problem {
        all.push(Condition::new(&say::MEMORY_NOT_LOCKED, &[problem], uri::MANAGER, "memory"));
    }
}

/// What is wrong with HTTPS, its certificate and accounts. Without any account nobody is to use it.
fn https(view: &View, all: &mut Vec<Condition>) {
    let access = view.access.problem.as_ref();
    let is_used = !view.access.accounts.is_empty() || access.is_some();
    let problem = |Problem { what, .. }: &Problem, of: &str, name: &str| {
        // The certificate's end has come.
        let has_ended = |end: u64| what.is(&say::CERTIFICATE_ENDS) && end <= view.server.now;
        let ends = view.https.certificate.as_ref().map(|own| own.not_after);
        let is_over = ends.is_some_and(has_ended);
        Condition {
            key: format!("{} {of} {}", what.name, what.args.first().map_or("", String::as_str)),
            message: what.name.to_string(),
            args: what.args.clone(),
            severity: if is_over { Health::Critical } else { Health::Warning },
            what: what.error.clone(),
            action: what.hint.clone(),
            of: of.to_owned(),
            name: name.to_owned(),
        }
    };
    all.extend(access.map(|own| problem(own, uri::ACCOUNT_SERVICE, "accounts")));
    let own = view.https.problems.iter().filter(|_| is_used);
    all.extend(own.map(|own| problem(own, uri::NETWORK_PROTOCOL, "HTTPS")));
}

/// What a sensor reads, for people.
fn reading(sensor: &Sensor) -> String {
    let Some(value) = sensor.reading else { return "nothing".to_owned() };
    let (per, unit) = match sensor.measures {
        Measures::Temperature => (1000.0, "°C"),
        Measures::Voltage => (1000.0, "V"),
        Measures::Current => (1000.0, "A"),
        Measures::Power => (1_000_000.0, "W"),
    };
    format!("{:.1} {unit}", value as f64 / per)
}

fn sensors(view: &View, all: &mut Vec<Condition>) {
    let unwell = |own: &&Sensor| own.health != Health::Ok;
    for sensor in view.surroundings.sensors.iter().filter(unwell) {
        let args: [&dyn Display; 2] = [&sensor.name, &reading(sensor)];
        let of = uri::sensor(&sensor.id);
        let found = Condition::new(&say::SENSOR_NOT_WELL, &args, &of, &sensor.name);
        all.push(found.grave(sensor.health));
    }
}

fn fans(view: &View, all: &mut Vec<Condition>) {
    let unwell = |own: &&Fan| own.health != Health::Ok;
    for fan in view.surroundings.fans.iter().filter(unwell) {
        let turns = match fan.rpm {
            Some(rpm) => format!("{rpm} turns a minute"),
            None => "a speed that nobody knows".to_owned(),
        };
        let args: [&dyn Display; 2] = [&fan.name, &turns];
        let found = Condition::new(&say::FAN_NOT_WELL, &args, &uri::fan(&fan.id), &fan.name);
        all.push(found.grave(fan.health));
    }
}

fn supplies(view: &View, all: &mut Vec<Condition>) {
    let unwell = |own: &&Supply| own.health != Health::Ok || own.is_on == Some(false);
    for supply in view.surroundings.supplies.iter().filter(unwell) {
        let problem = match supply.is_on {
            Some(false) => "gives no power",
            _ => "is not well",
        };
        let args: [&dyn Display; 2] = [&supply.name, &problem];
        let of = uri::supply(&supply.id);
        let found = Condition::new(&say::SUPPLY_NOT_WELL, &args, &of, &supply.name);
        all.push(found.grave(supply.health.max(Health::Warning)));
    }
}

/// The address of `ADDR:PORT`, without brackets; none if it stands for all, or is a path.
fn address(listener: &str) -> Option<std::net::IpAddr> {
    let socket: std::net::SocketAddr = listener.parse().ok()?;
    Some(socket.ip()).filter(|address| !address.is_unspecified())
}

fn has(port: &NetworkPort, address: std::net::IpAddr) -> bool {
    let own = |text: &String| text.split('/').next().and_then(|own| own.parse().ok());
    port.addresses.iter().filter_map(own).any(|own: std::net::IpAddr| own == address)
}

fn ports(view: &View, all: &mut Vec<Condition>) {
    let exports = view.status.arrays.iter().flat_map(|array| &array.exports);
    let nvme = exports.clone().filter_map(|export| export.nvme.as_ref());
    let listeners: BTreeSet<&String> = nvme
        .flat_map(|nvme| &nvme.listeners)
        .chain(exports.filter_map(|export| export.nbd.as_ref()))
        .chain(&view.https.listeners)
        .collect();
    for port in view.surroundings.ports.iter().filter(|port| !port.has_link) {
        let own = listeners.iter().filter(|own| address(own).is_some_and(|one| has(port, one)));
        let own: Vec<&str> = own.map(|own| own.as_str()).collect();
        if !own.is_empty() {
            let args: [&dyn Display; 2] = [&port.id, &own.join(", ")];
            let of = uri::port(&port.id);
            all.push(Condition::new(&say::PORT_WITHOUT_LINK, &args, &of, &port.id));
        }
    }
}

/// How a part of a shelf is, for people.
fn shelf_part(state: ShelfState, health: Health, value: Option<String>) -> String {
    let word = match (state, health) {
        (ShelfState::Enabled, Health::Ok) => "well",
        (ShelfState::Enabled, Health::Warning) => "warning",
        (ShelfState::Enabled, Health::Critical) => "critical",
        (state, _) => state.word(),
    };
    value.map_or_else(|| word.to_owned(), |value| format!("{word}, {value}"))
}

/// What shelves that tell of themselves say of themselves and of their parts: names, how they are,
/// and what is read.
fn shelf_parts(shelf: &Shelf) -> impl Iterator<Item = (String, Health, String)> {
    let text = shelf_part(ShelfState::Enabled, shelf.health, None);
    let own = [
        ("chassis".to_owned(), shelf.health, text),
        ("power".to_owned(), shelf.power(), "switched off".to_owned()),
    ];
    let bays = shelf.bays.iter().map(|own| {
        let text = shelf_part(own.state, own.health, own.serial.clone());
        (format!("drive in slot {}", own.slot), own.grade(), text)
    });
    let ports = shelf.ports.iter().map(|own| {
        let text = match (own.is_enabled, own.has_link) {
            (Some(false), _) => "switched off".to_owned(),
            (_, Some(false)) => "no link".to_owned(),
            _ => shelf_part(ShelfState::Enabled, own.health, None),
        };
        let of = match own.module.as_str() {
            "" => String::new(),
            // Two modules may have ports of one name.
            module => format!(" of {module}"),
        };
        (format!("port {}{of}", own.name), own.health, text)
    });
    let parts = shelf.parts.iter().map(|own| {
        let text = shelf_part(own.state, own.health, own.value());
        (own.name.clone(), own.grade(), text)
    });
    own.into_iter().chain(bays).chain(ports).chain(parts)
}

fn shelves(view: &View, all: &mut Vec<Condition>) {
    for enclosure in &view.surroundings.enclosures {
        let Some(shelf) = &enclosure.shelf else { continue };
        let (of, name) = (uri::chassis(&enclosure.id), &enclosure.name);
        if let Some(Silence { since, why }) = &shelf.silence {
            let since = crate::dates::text(*since);
            let args: [&dyn Display; 4] = [name, &shelf.url, &since, why];
            all.push(Condition::new(&say::SHELF_SILENT, &args, &of, name));
        }
        for (part, health, text) in shelf_parts(shelf).filter(|own| own.1 != Health::Ok) {
            let args: [&dyn Display; 3] = [name, &part, &text];
            let found = Condition::new(&say::SHELF_PART_NOT_WELL, &args, &of, name);
            all.push(found.part(&part).grave(health));
        }
    }
}

fn mail(view: &View, all: &mut Vec<Condition>) {
    let (mail, of) = (&view.events.mail, uri::EVENT_SERVICE);
    if let Some(problem) = &mail.problem {
        let args: [&dyn Display; 2] = [&mail.server, problem];
        all.push(Condition::new(&say::MAIL_NOT_SENT, &args, of, &mail.server));
    }
    for own in view.events.subscriptions.iter().filter(|own| own.is_mail()) {
        let Some(problem) = &own.standing.problem else { continue };
        let (of, recipient) = (uri::subscription(&own.id), own.recipient());
        let args: [&dyn Display; 2] = [&recipient, problem];
        all.push(Condition::new(&say::MAIL_REFUSED, &args, &of, recipient));
    }
}

/// For how many seconds it is told that events were dropped.
const DROPPED: u64 = 86_400;

fn webhooks(view: &View, all: &mut Vec<Condition>) {
    let is_hook = |own: &&crate::events::Subscription| !own.is_stream() && !own.is_mail();
    for own in view.events.subscriptions.iter().filter(is_hook) {
        let standing = &own.standing;
        let receiver = crate::events::receiver::shortened(&own.destination);
        let of = uri::subscription(&own.id);
        let problem = match (&standing.problem, standing.is_suspended) {
            (Some(problem), _) => Some(problem.as_str()),
            (None, true) => Some("the subscription is suspended"),
            (None, false) => None,
        };
        if let Some(problem) = problem {
            let args: [&dyn Display; 2] = [&receiver, &problem];
            let found = Condition::new(&say::WEBHOOK_FAILS, &args, &of, receiver);
            let resume = "see to the receiver, then resume the subscription".to_owned();
            all.push(found.advised(standing.is_suspended.then_some(resume)));
        }
        let end = standing.dropped_at.map(|at| at.saturating_add(DROPPED));
        if end.is_some_and(|end| view.server.now < end) {
            let args: [&dyn Display; 2] = [&receiver, &standing.dropped];
            all.push(Condition::new(&say::EVENTS_DROPPED, &args, &of, receiver));
        }
    }
}

#[cfg(test)]
#[path = "conditions_tests.rs"]
mod tests;
