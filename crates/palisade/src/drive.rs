//! `palisade drive`: lists, shows, finds, inspects and erases drives, and connects those behind
//! NVMe over Fabrics.

pub mod fabric;
mod power;
mod show;

use crate::array::{DONE, absolute, text_of_unreadable};
use crate::client::{self, Change, Client};
use crate::confirm::{self, Word};
use crate::output::{How, Output, Problem, health, say, state, table};
use crate::status::Named;
use crate::{complete, fetch, named};
use clap::Subcommand;
use clap_complete::engine::ArgValueCompleter;
use control::failure;
use control::probe::{self, Unread};
use core::fmt::Display;
use drives::remote::is_remote;
use drives::{OpenError, OpenOptions, SharedDrive};
use redfish::messages;
use redfish::service::uri;
use redfish::told::Wiped;
use redfish::view::{self, Answer};
use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use units::format_size;

/// What can be done with drives.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the drives of the daemon's configuration
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Show a drive: its health and why, its place, temperature, wear and life
    Show {
        /// Drive: a block device or file; also by serial number, id or ARRAY:SLOT
        #[arg(add = ArgValueCompleter::new(complete::drives))]
        drive: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Switch a drive's indicator on or off, to find the drive
    Locate {
        /// Drive: a block device or file; also by serial number, id or ARRAY:SLOT
        #[arg(add = ArgValueCompleter::new(complete::drives))]
        drive: PathBuf,
        /// Whether the indicator is to be on
        switch: Switch,
        #[command(flatten)]
        how: How,
    },
    /// Show an NVMe drive's power states, or put it in one
    Power {
        /// Drive: a block device; also by serial number, id or ARRAY:SLOT
        #[arg(add = ArgValueCompleter::new(complete::drives))]
        drive: PathBuf,
        /// The power state to put it in
        #[arg(long, value_name = "N")]
        state: Option<u8>,
        #[command(flatten)]
        how: How,
    },
    /// Ask a discovery service which subsystems are where (NVMe over TCP)
    Discover {
        #[command(flatten)]
        service: fabric::Service,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        host: fabric::Host,
    },
    /// Connect a subsystem by a path (NVMe over TCP); its namespaces are drives then
    Connect {
        #[command(flatten)]
        path: fabric::Path,
        #[command(flatten)]
        how: How,
        #[command(flatten)]
        terms: fabric::Terms,
    },
    /// Connect all subsystems that a discovery service tells of
    ConnectAll {
        #[command(flatten)]
        service: fabric::Service,
        #[command(flatten)]
        how: How,
        #[command(flatten)]
        terms: fabric::Terms,
    },
    /// Disconnect a subsystem, or take one path to it away
    Disconnect {
        #[command(flatten)]
        gone: fabric::Gone,
        #[command(flatten)]
        how: How,
    },
    /// Show the paths to drives behind NVMe over Fabrics, and how they are
    Paths {
        /// Drive: its name nvme://NQN/NSID, serial number, id or ARRAY:SLOT; all without it
        #[arg(add = ArgValueCompleter::new(complete::drives))]
        drive: Option<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
    /// Show the array record on a drive; needs no daemon
    Inspect {
        /// Drive: a block device or file; also by serial number, id or ARRAY:SLOT
        #[arg(add = ArgValueCompleter::new(complete::drives))]
        path: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Erase the array record on a drive, so that it belongs to no array; needs no daemon
    Wipe {
        /// Drive: a block device or file; also by serial number, id or ARRAY:SLOT
        #[arg(add = ArgValueCompleter::new(complete::drives))]
        path: PathBuf,
        /// Confirm that the record is erased
        #[arg(long)]
        yes: bool,
        /// Also erase what is not Palisade's on this drive; name its path again
        #[arg(long, value_name = "PATH", add = ArgValueCompleter::new(complete::drives))]
        overwrite: Option<PathBuf>,
        #[command(flatten)]
        how: How,
    },
}

/// On or off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Switch {
    /// The indicator shines
    On,
    /// It does not
    Off,
}

/// Carries a command out.
pub async fn run(command: &Command, client: &Client) -> Result<(), Problem> {
    match command {
        Command::List { output } => {
            fetch::find_drives(client, &[]).await?;
            let drives = fetch::drives(client).await?.into_iter().map(Named::from).collect();
            output.print(&Answer::new(Drives { drives }), list);
            Ok(())
        }
        Command::Show { drive, output } => show::run(drive, *output, client).await,
        Command::Locate { drive, switch, how } => locate(drive, *switch, *how, client).await,
        Command::Power { drive, state, how } => power::run(drive, *state, *how, client).await,
        Command::Discover { service, host, output } => {
            fabric::discover((service, host), *output, client).await
        }
        Command::Connect { path, terms, how } => fabric::connect((path, terms), *how, client).await,
        Command::ConnectAll { service, terms, how } => {
            fabric::connect_all((service, terms), *how, client).await
        }
        Command::Disconnect { gone, how } => fabric::disconnect(gone, *how, client).await,
        Command::Paths { drive, output } => fabric::paths(drive.as_deref(), *output, client).await,
        Command::Inspect { path, output } => inspect(&here(path, client).await?, *output),
        Command::Wipe { path, yes, overwrite, how } => {
            let named = match overwrite {
                Some(other) if other != path && absolute(other) != absolute(path) => {
                    let args: [&dyn Display; 2] = [&other.display(), &path.display()];
                    return Err(Problem::new(&messages::OVERWRITE_NAMES_OTHER, &args));
                }
                other => other.is_some(),
            };
            let path = named::path(client, path).await?;
            wipe(&path, (*yes, named), *how, client).await
        }
    }
}

/// All drives that the daemon knows.
#[derive(Debug, Serialize)]
struct Drives {
    drives: Vec<Named>,
}

/// The path of a drive of this machine; its name is asked of the daemon only where it is none.
async fn here(name: &Path, client: &Client) -> Result<PathBuf, Problem> {
    match client.is_remote() {
        true => Ok(name.to_owned()),
        false => named::path(client, name).await,
    }
}

fn list(list: &Drives) -> String {
    let row = |named: &Named| {
        let drive = &named.drive;
        let what = match (&drive.array, &drive.signature, &drive.problem) {
            (Some(array), ..) => {
                format!("{array} slot {}", drive.slot.map_or("-".into(), |s| s.to_string()))
            }
            (None, Some(signature), _) => signature.clone(),
            (None, None, Some(problem)) => problem.clone(),
            _ => String::new(),
        };
        let size = format_size(drive.bytes);
        let id = named.id.clone();
        let (path, serial) = (drive.path.clone(), drive.serial.clone());
        vec![path, serial, size, state(&drive.state), health(named.health), id, what]
    };
    let rows: Vec<_> = list.drives.iter().map(row).collect();
    table(&["DRIVE", "SERIAL", "SIZE", "STATE", "HEALTH", "ID", "HOLDS"], &rows)
}

/// Switches a drive's indicator.
async fn locate(name: &Path, switch: Switch, how: How, client: &Client) -> Result<(), Problem> {
    let known = named::one(client, name).await?;
    let on = switch == Switch::On;
    let body = json!({ "LocationIndicatorActive": on });
    let change = Change::patch(uri::drive(&known.id), body);
    if confirm::change(&change, how, client).await?.is_none() {
        return Ok(());
    }
    how.output.print(&DONE, |_| {
        let word = if on { "on" } else { "off" };
        format!("the indicator of drive {} is {word}", known.drive.path)
    });
    Ok(())
}

fn not_opened(error: &OpenError) -> Problem {
    let told = Problem::from(failure::not_opened(error));
    match error {
        OpenError::InUse { .. } => {
            told.advise("unmount it, stop the program that uses it, or delete its array")
        }
        _ => told,
    }
}

/// Opens a drive for a look, whoever has it.
fn open(path: &Path) -> Result<SharedDrive, Problem> {
    if is_remote(path) {
        return fabric::open(path);
    }
    let options = OpenOptions { read_only: true, exclusive: false, ..OpenOptions::default() };
    SharedDrive::open(path, &options).map_err(|error| not_opened(&error))
}

fn inspect(path: &Path, output: Output) -> Result<(), Problem> {
    let drive = open(path)?;
    let content = probe::content(&drive);
    let Some(record) = content.record else {
        let name = path.display();
        let holds = content.signature.map_or("nothing known".to_owned(), |s| s);
        return Err(match content.problem {
            Some(problem) => {
                let advice = content.unread.unwrap_or(Unread::Damaged).advice(&name.to_string());
                Problem::new(&messages::RECORD_DAMAGED, &[&name, &problem]).advise(advice)
            }
            None => Problem::new(&messages::NO_PALISADE_RECORD, &[&name, &holds]),
        });
    };
    if let Some(problem) = content.problem {
        eprintln!("palisade: {}: {problem}", path.display());
    }
    let bytes = drive.info().bytes;
    let answer = Answer::new(probe::inspected(&path.to_string_lossy(), bytes, &record));
    output.print(&answer, record_text);
    Ok(())
}

fn record_text(record: &view::Inspected) -> String {
    let yes = |flag: bool| if flag { "yes" } else { "no" }.to_owned();
    let size = |bytes: u64| format!("{} ({bytes} bytes)", format_size(bytes));
    let lines = [
        ("array", format!("{} ({})", record.array_name, record.array_uuid)),
        ("level", format!("{} over {} drives", record.level, record.drives)),
        ("slot", format!("{} (drive {})", record.slot, record.drive_uuid)),
        ("strip", format_size(record.strip_bytes.into())),
        ("block", format!("{} bytes", record.block_bytes)),
        ("data", format!("{} at {}", size(record.data_bytes), format_size(record.data_offset))),
        ("epoch", format!("{} (record {})", record.epoch, record.sequence)),
        ("zeroed", yes(record.zeroed)),
        ("unclean", yes(record.unclean)),
        ("journal", text_of_journal(record)),
        ("lost", format!("{} of {} ranges listed", record.lost_ranges, format::limits::LOST_MAX)),
    ];
    let mut text: String = lines.iter().map(|(key, value)| format!("{key:<10}{value}\n")).collect();
    let slots: Vec<_> = record
        .slots
        .iter()
        .map(|s| vec![s.slot.to_string(), s.serial.clone(), state(&s.state)])
        .collect();
    text.push_str(&format!("\n{}", table(&["SLOT", "SERIAL", "STATE"], &slots)));
    let volumes: Vec<_> =
        record.volumes.iter().map(|v| vec![v.name.clone(), size(v.size_bytes)]).collect();
    if !volumes.is_empty() {
        text.push_str(&format!("\n{}", table(&["VOLUME", "SIZE"], &volumes)));
    }
    if !record.unreadable.is_empty() {
        text.push_str(&format!("\n{}", text_of_unreadable(&record.unreadable)));
    }
    text
}

/// Whether the journal counts, and for what.
fn text_of_journal(record: &view::Inspected) -> String {
    let list = |groups: &[u16]| groups.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    let mut text = if record.journal { "in use" } else { "not in use" }.to_owned();
    if !record.guarded_groups.is_empty() {
        text += &format!("; groups {} need it", list(&record.guarded_groups));
    }
    if !record.loss_accepted_groups.is_empty() {
        text += &format!("; loss was accepted in groups {}", list(&record.loss_accepted_groups));
    }
    text
}

/// What wiping a drive needs a word for; it may be one that somebody has.
fn unconfirmed(path: &Path) -> Result<Problem, Problem> {
    let content = probe::content(&open(path)?);
    let name = path.display().to_string();
    Ok(match content.foreign() {
        Some(what) => probe::wipes_foreign(&name, &what).into(),
        None => Problem::unconfirmed(&format!(
            "this erases the records on {name}, which holds {}",
            content.told()
        )),
    })
}

async fn wipe(
    path: &Path,
    (yes, overwrite): (bool, bool),
    how: How,
    client: &Client,
) -> Result<(), Problem> {
    let name = path.display().to_string();
    if !yes && !how.dry_run && !confirm::is_terminal() && !client.is_remote() {
        return Err(unconfirmed(path)?);
    }
    let word = Word { name: &name, yes, is_named: false };
    let done = match found_by_daemon(path, client).await? {
        Some(drive) => wipe_by_daemon(&drive, overwrite, (word, how), client).await?,
        None => wipe_here(path, overwrite, word, how)?,
    };
    let Some(held) = done else { return Ok(()) };
    if how.output.json {
        how.output.print(&DONE, |_| String::new());
    } else {
        let held = held.unwrap_or("nothing known".to_owned());
        say(&format!("drive {name} is erased; it held {held}"));
    }
    Ok(())
}

/// The URI of a drive; none if there is no daemon, or it can't tell the drive from others.
async fn found_by_daemon(path: &Path, client: &Client) -> Result<Option<String>, Problem> {
    match fetch::find_drives(client, &[absolute(path)]).await {
        Ok(found) => Ok(found.into_iter().next()),
        // A drive of another machine is that machine's daemon's.
        Err(problem) if client.is_remote() => Err(problem),
        Err(problem) if problem.is(&messages::NO_DAEMON) => Ok(None),
        Err(problem) if problem.is(&messages::DRIVE_NOT_KNOWN) => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// Erases a drive that no daemon knows; what was on it, or none if that was only shown.
fn wipe_here(
    path: &Path,
    overwrite: bool,
    word: Word<'_>,
    how: How,
) -> Result<Option<Option<String>>, Problem> {
    // While it is open nobody else has it: what is agreed to is what is erased.
    let drive = match how.dry_run {
        true => open(path)?,
        false if is_remote(path) => fabric::open(path)?,
        false => {
            SharedDrive::open(path, &OpenOptions::default()).map_err(|error| not_opened(&error))?
        }
    };
    let (name, content) = (word.name, probe::content(&drive));
    if let Some(what) = content.foreign().filter(|_| !overwrite) {
        return Err(probe::wipes_foreign(name, &what).into());
    }
    if let Some(record) = &content.record
        && let Some(owner) = record.owner.filter(|_| record.shared)
    {
        let args: [&dyn Display; 3] = [&name, &record.name, &owner.host];
        return Err(Problem::new(&messages::OWNER_ON_DRIVE, &args));
    }
    let known = view::PlannedDrive {
        slot: None,
        path: name.to_owned(),
        serial: drive.serial(),
        bytes: drive.info().bytes,
        content: Some(content.told()),
        destroys: content.holds(),
        refused: false,
    };
    let plan = view::Plan {
        dry_run: true,
        array: None,
        drives: vec![known],
        steps: vec![format!("erase the records on {name}")],
        lost: vec![format!("what {name} holds: {}", content.told())],
    };
    if how.dry_run {
        confirm::print(&plan, how.output);
        return Ok(None);
    }
    word.agree(&plan)?;
    match probe::erase(&drive) {
        Ok(()) => Ok(Some(content.signature)),
        Err(error) => {
            let problem = format!("the drive failed: {error}");
            Err(Problem::new(&messages::WIPE_FAILED, &[&name, &problem]))
        }
    }
}

/// Has the daemon erase a drive.
async fn wipe_by_daemon(
    drive: &str,
    overwrite: bool,
    (word, how): (Word<'_>, How),
    client: &Client,
) -> Result<Option<Option<String>>, Problem> {
    let action = format!("{drive}/Actions/Oem/PalisadeDrive.Wipe");
    let wipe = Change::post(action, json!({ "Overwrite": overwrite }));
    let answer = confirm::destroy(&wipe, word, how, client).await?;
    answer.map(|told| Ok(client::read::<Wiped>(told)?.held)).transpose()
}
