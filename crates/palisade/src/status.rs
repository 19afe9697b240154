//! `palisade status`: everything at a glance.

use crate::client::Client;
use crate::event::{self, Event};
use crate::fetch;
use crate::output::{Output, Problem, percent, state, table, table_within, word_of};
use crate::overview;
use crate::watch::{self, Drawn};
use hyper::StatusCode;
use redfish::dates;
use redfish::read;
use redfish::service::uri;
use redfish::view::{self, Alert, Answer, KnownDrive};
use serde::Serialize;
use std::collections::BTreeMap;

/// How many of the last warnings are shown, and of how many seconds.
const WARNINGS: (usize, u64) = (5, 86_400);

/// What `palisade status` takes.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Show it again whenever something changes, until interrupted
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    output: Output,
}

/// Everything at a glance.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Overview {
    /// The daemon and its arrays, and what to do next.
    #[serde(flatten)]
    pub status: view::Status,
    /// All drives, by path.
    pub drives: Vec<Named>,
    /// What drives are plugged into.
    pub enclosures: Vec<Housing>,
    /// Hosts that are connected over NVMe/TCP, by name.
    pub hosts: Vec<Host>,
    /// What is wrong now, in short.
    pub alerts: InShort,
    /// The last warnings, the newest last.
    pub warnings: Vec<Event>,
}

/// Alerts that stand, in short.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct InShort {
    /// How many there are.
    pub count: usize,
    /// How many of them nobody has acknowledged.
    pub unseen: usize,
    /// The gravest of them; `ok` if there is none.
    pub worst: view::Health,
    /// They, the gravest first.
    #[serde(skip)]
    pub all: Vec<Alert>,
}

impl InShort {
    /// Of alerts.
    pub fn of(all: Vec<Alert>) -> Self {
        let unseen = all.iter().filter(|own| own.acknowledged.is_none()).count();
        let worst = all.iter().map(|own| own.severity).max().unwrap_or_default();
        Self { count: all.len(), unseen, worst, all }
    }
}

/// A drive, with what names it for ever.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Named {
    /// Names it for ever.
    pub id: String,
    /// How well it is: the worse of what it is as a device and of what the daemon makes of it.
    pub health: view::Health,
    /// What is known of it.
    #[serde(flatten)]
    pub drive: view::Drive,
}

impl From<KnownDrive> for Named {
    fn from(known: KnownDrive) -> Self {
        Self { health: known.health(), id: known.id, drive: known.drive }
    }
}

/// What drives are plugged into.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Housing {
    /// How many drives are there.
    pub drives: usize,
    /// How many of them have drives of the daemon's.
    pub own: usize,
    /// How well it is, and what is in it.
    pub health: view::Health,
    /// What is known of it.
    #[serde(flatten)]
    pub enclosure: view::Enclosure,
}

impl Housing {
    /// An enclosure among these drives.
    fn of(enclosure: view::Enclosure, drives: &[KnownDrive]) -> Self {
        let is_inside = |known: &&KnownDrive| {
            let place = known.hardware.place.as_ref();
            place.is_some_and(|place| place.enclosure == enclosure.id)
        };
        let worst = drives.iter().filter(is_inside).map(KnownDrive::health).max();
        let own = enclosure.slots.iter().filter(|slot| slot.drive.is_some()).count();
        let there = |shelf: &view::Shelf| {
            let is_there = |bay: &&view::ShelfBay| bay.state != view::ShelfState::Absent;
            shelf.bays.iter().filter(is_there).count()
        };
        let shelf = enclosure.shelf.as_ref();
        let told = shelf.map(view::Shelf::worst).unwrap_or_default();
        Self {
            drives: shelf.map_or(own, there),
            own,
            health: worst.unwrap_or_default().max(told),
            enclosure,
        }
    }
}

/// A host.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Host {
    /// Its qualified name; empty if it gave none.
    pub host: String,
    /// What it has.
    pub exports: Vec<String>,
    /// Its controllers.
    pub controllers: usize,
    /// Their queues: connections of TCP.
    pub queues: usize,
}

/// Shows it, once or whenever it changes.
pub async fn run(arguments: &Arguments, client: &Client) -> Result<(), Problem> {
    let output = arguments.output;
    let draw = async |screen: Option<usize>| {
        let overview = fetch(client).await?;
        let goes_on = overview.status.arrays.iter().any(|array| !array.tasks.is_empty());
        let text = output.text(&Answer::new(overview), |own| overview::text(own, screen));
        Ok(Drawn { text, goes_on })
    };
    match arguments.watch {
        true => watch::watch(client, output, draw).await,
        false => {
            crate::output::say(&draw(overview::screen(output)).await?.text);
            Ok(())
        }
    }
}

async fn fetch(client: &Client) -> Result<Overview, Problem> {
    let drives = fetch::drives(client).await?;
    let enclosures = enclosures(client, &drives).await?;
    let drives = drives.into_iter().map(Named::from).collect();
    let (status, now) = fetch::status(client).await?;
    let hosts = hosts(&status.arrays);
    let warnings = warnings(client, now.saturating_sub(WARNINGS.1)).await?;
    let alerts = alerts(client).await?;
    Ok(Overview { status, drives, enclosures, hosts, alerts, warnings })
}

/// What drives are plugged into.
async fn enclosures(client: &Client, drives: &[KnownDrive]) -> Result<Vec<Housing>, Problem> {
    let all = read::enclosures(&fetch::expanded(client, uri::CHASSIS_ALL).await?)?;
    Ok(all.into_iter().map(|own| Housing::of(own, drives)).collect())
}

/// What is wrong now.
async fn alerts(client: &Client) -> Result<InShort, Problem> {
    // A daemon of before, or one that tells no alerts to who asks, has none.
    let none = [StatusCode::NOT_FOUND, StatusCode::FORBIDDEN];
    let told = client.get_unless(uri::SERVICE_CONDITIONS, &none).await?;
    Ok(InShort::of(told.map(|told| read::alerts(&told)).transpose()?.unwrap_or_default()))
}

/// The last warnings since then.
async fn warnings(client: &Client, since: u64) -> Result<Vec<Event>, Problem> {
    const BAD: &str = "Severity%20eq%20'Warning'%20or%20Severity%20eq%20'Critical'";
    let uri = format!("{}?$expand=.&$filter={BAD}&$top={}", uri::EVENT_ENTRIES, WARNINGS.0);
    // Who may not see logs sees no warnings.
    let none = [StatusCode::NOT_FOUND, StatusCode::FORBIDDEN];
    let Some(lines) = client.get_unless(&uri, &none).await? else { return Ok(Vec::new()) };
    let mut events: Vec<Event> = read::contents(&lines)?.iter().filter_map(event::read).collect();
    events.retain(|event| dates::seconds(&event.time).is_none_or(|time| time >= since));
    // The log has the newest first.
    events.reverse();
    Ok(events)
}

/// The hosts that exports have. A host that has several by one controller is connected once.
fn hosts(arrays: &[view::Array]) -> Vec<Host> {
    // With the controllers of each that are counted: their subsystems and numbers.
    type Counted<'a> = (Host, Vec<(&'a str, u16)>);
    let mut hosts: BTreeMap<&str, Counted<'_>> = BTreeMap::new();
    for export in arrays.iter().flat_map(|array| &array.exports) {
        let Some(nvme) = &export.nvme else { continue };
        for connection in nvme.connections.iter() {
            let (own, seen) = hosts.entry(&connection.host).or_default();
            if !own.exports.contains(&export.id) {
                own.exports.push(export.id.clone());
            }
            let controller = (nvme.subsystem.as_str(), connection.controller);
            if !seen.contains(&controller) {
                seen.push(controller);
                own.queues += connection.queues;
            }
        }
    }
    let named = |(name, (own, seen)): (&str, Counted<'_>)| Host {
        host: name.to_owned(),
        controllers: seen.len(),
        ..own
    };
    hosts.into_iter().map(named).collect()
}

/// A table of arrays with what they are busy with.
pub fn arrays(arrays: &[view::Array]) -> String {
    table(&HEADINGS, &rows(arrays))
}

/// The same within so many columns.
pub fn arrays_within(columns: usize, arrays: &[view::Array]) -> String {
    table_within(columns, &HEADINGS, &rows(arrays), &[0, 5, 6])
}

const HEADINGS: [&str; 7] = ["ARRAY", "LEVEL", "STATE", "SIZE", "FREE", "DRIVES", "DOING"];

fn rows(arrays: &[view::Array]) -> Vec<Vec<String>> {
    let row = |a: &view::Array| {
        vec![
            a.name.clone(),
            a.level.clone(),
            state(&a.state),
            units::format_size(a.size_bytes),
            units::format_size(a.free_bytes),
            drives(a),
            doing(a),
        ]
    };
    arrays.iter().map(row).collect()
}

/// How many slots' drives count, and which do not.
fn drives(array: &view::Array) -> String {
    let (good, bad): (Vec<_>, Vec<_>) =
        array.slots.iter().partition(|slot| slot.state == view::SlotState::InSync);
    let mut text = format!("{}/{}", good.len(), array.slots.len());
    for slot in bad {
        text.push_str(&format!(" {}:{}", slot.slot, word_of(&slot.state)));
    }
    text
}

/// How a task stands that does not go on.
pub fn standing(task: &view::Task) -> &'static str {
    match task.state {
        view::TaskState::Running => "",
        view::TaskState::Stuck => " (stuck)",
        view::TaskState::Paused => " (paused)",
    }
}

fn doing(array: &view::Array) -> String {
    let tasks: Vec<String> = array
        .tasks
        .iter()
        .map(|t| format!("{} {}{}", word_of(&t.kind), percent(t), standing(t)))
        .collect();
    match &array.problem {
        Some(problem) => problem.clone(),
        None => tasks.join(", "),
    }
}
