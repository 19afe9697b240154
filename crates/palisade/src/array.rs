//! `palisade array`: manages arrays.

use crate::client::{self, Change, Client};
use crate::confirm::{self, Word};
use crate::fetch::{self, links};
use crate::output::{How, Output, Problem, percent, state, table, word_of};
use crate::share::shown;
use crate::task::time_left;
use crate::volume::size;
use crate::{complete, export, named, status, volume};
use clap::Subcommand;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap_complete::engine::ArgValueCompleter;
use control::names;
use drives::remote::is_remote;
use redfish::messages as say;
use redfish::read;
use redfish::service::uri;
use redfish::told::Left;
use redfish::view::{self, Answer};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use units::format_size;

/// How often `wait` and progress look.
const POLL: Duration = Duration::from_millis(100);

/// What `array create` takes.
#[derive(Debug, clap::Args)]
pub struct Create {
    /// Name of the new array
    name: String,
    /// RAID level
    #[arg(long, value_parser = levels())]
    level: String,
    /// Drives, in the order of their slots: block devices or files; also by serial number or id
    #[arg(long, value_name = "PATH", num_args = 1.., required = true,
          add = ArgValueCompleter::new(complete::drives))]
    drives: Vec<PathBuf>,
    /// Strip size: a power of two from 4K to 1M
    #[arg(long, default_value = "64K", value_parser = strip)]
    strip: u32,
    /// Block size of the array [default: the largest of its drives]
    #[arg(long, value_name = "512|4096", value_parser = block)]
    block: Option<u32>,
    /// Destroy what this drive holds; repeat it for each such drive
    #[arg(long, value_name = "PATH", add = ArgValueCompleter::new(complete::drives))]
    overwrite: Vec<PathBuf>,
    /// Accept namespaces of one drive in one group: they die together
    #[arg(long)]
    same_drive: bool,
    /// Other servers may reach the drives: only one at a time may use the array. Drives behind
    /// NVMe over Fabrics count so by themselves
    #[arg(long)]
    shared: bool,
    /// Confirm that what these drives hold is destroyed
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    how: How,
}

fn strip(text: &str) -> Result<u32, String> {
    u32::try_from(size(text)?).map_err(|_| "use 4K to 1M".to_owned())
}

fn block(text: &str) -> Result<u32, String> {
    match size(text)? {
        512 => Ok(512),
        4096 => Ok(4096),
        _ => Err("use 512 or 4096".to_owned()),
    }
}

/// What can be done with arrays.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create an array
    Create(Create),
    /// List arrays
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Show an array: drives, tasks, volumes, exports and shares
    Show {
        /// Name or UUID of the array
        #[arg(add = ArgValueCompleter::new(complete::arrays))]
        name: String,
        /// Exit with the array's state: 0 optimal, 1 degraded, 2 failed or stopped, 4 not known
        #[arg(long)]
        exit_state: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Stop an array; its exports are disconnected
    Stop {
        /// Name or UUID of the array
        #[arg(add = ArgValueCompleter::new(complete::arrays))]
        name: String,
        #[command(flatten)]
        how: How,
    },
    /// Start an array that is stopped
    Assemble(Assemble),
    /// Delete an array, with all its volumes and data
    Delete {
        /// Name or UUID of the array
        #[arg(add = ArgValueCompleter::new(complete::arrays))]
        name: String,
        /// Confirm that all data of the array is destroyed
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        how: How,
    },
    /// Take a drive of an array out of service
    Fail {
        /// Name or UUID of the array
        #[arg(add = ArgValueCompleter::new(complete::arrays))]
        name: String,
        /// Drive: its path, serial number or id, slot:N, or ARRAY:N
        #[arg(long, add = ArgValueCompleter::new(complete::drives))]
        drive: String,
        #[command(flatten)]
        how: How,
    },
    /// Replace the failed or missing drive of a slot, and rebuild
    Replace {
        /// Name or UUID of the array
        #[arg(add = ArgValueCompleter::new(complete::arrays))]
        name: String,
        /// Number of the slot
        #[arg(long, value_name = "N")]
        slot: u16,
        /// New drive: a block device or file; also by serial number or id
        #[arg(long, value_name = "PATH", add = ArgValueCompleter::new(complete::drives))]
        with: PathBuf,
        /// Destroy what the new drive holds; name its path again
        #[arg(long, value_name = "PATH", add = ArgValueCompleter::new(complete::drives))]
        overwrite: Vec<PathBuf>,
        /// Confirm that what the new drive holds is destroyed
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        how: How,
    },
    /// Check the redundancy of an array while it is in use
    Scrub(Scrub),
    /// Wait until an array has no task left
    Wait {
        /// Name or UUID of the array
        #[arg(add = ArgValueCompleter::new(complete::arrays))]
        name: String,
        /// Give up after this time
        #[arg(long, value_name = "SECONDS", value_parser = seconds)]
        timeout: Option<Duration>,
        #[command(flatten)]
        output: Output,
    },
}

/// What `array assemble` takes.
#[derive(Debug, clap::Args)]
pub struct Assemble {
    /// Name or UUID of the array
    #[arg(add = ArgValueCompleter::new(complete::arrays))]
    name: String,
    /// Start although drives are missing that may be in use by another host
    #[arg(long)]
    start_degraded: bool,
    /// Start although data may be lost. After a crash without all drives, blocks that were
    /// being written may be wrong. After a drive lost its last records, the last changes of
    /// volumes and exports may be forgotten
    #[arg(long)]
    accept_loss: bool,
    /// Take the array over from another server. It is waited until no drive shows a sign of
    /// life of that server; while it lives this is refused
    #[arg(long)]
    take_over: bool,
    /// Say that no other server runs that reaches the drives, or that it is cut off from them:
    /// drives that are not behind NVMe over Fabrics can't tell
    #[arg(long)]
    other_server_is_off: bool,
    /// Confirm that data may be lost
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    how: How,
}

/// What `array scrub` takes.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("mode").required(true).args(["check", "repair"]))]
pub struct Scrub {
    /// Name or UUID of the array
    #[arg(add = ArgValueCompleter::new(complete::arrays))]
    name: String,
    /// Count mismatches, and write nothing
    #[arg(long)]
    check: bool,
    /// Repair strips that are known to be wrong
    #[arg(long)]
    repair: bool,
    /// Where it is not known which strip is wrong, trust the data and write parity anew
    #[arg(long, requires = "repair", conflicts_with = "check")]
    trust_data: bool,
    #[command(flatten)]
    how: How,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    seconds.ok_or_else(|| "use a number of seconds".to_owned())
}

/// Carries a command out; the exit code is that of `--exit-state`.
pub async fn run(command: &Command, client: &Client) -> Result<ExitCode, Problem> {
    match command {
        Command::Create(create) => self::create(create, client).await?,
        Command::List { output } => {
            let arrays = fetch::arrays(client, fetch::ALL).await?;
            output.print(&Answer::new(view::ArrayList { arrays }), |list| {
                status::arrays(&list.arrays)
            });
        }
        Command::Show { name, exit_state, output } => {
            let answer = show(name, client).await;
            if *exit_state {
                let answer = answer.map_err(Problem::without_state)?;
                output.print(&answer, text);
                return Ok(exit_code(answer.body.state));
            }
            output.print(&answer?, text);
        }
        Command::Stop { name, how } => {
            let arrays = fetch::arrays(client, &[]).await?;
            let stop = action(&names::running(&arrays, name)?.uuid, "Stop", json!({}));
            if confirm::change(&stop, *how, client).await?.is_some() {
                how.output.print(&DONE, |_| format!("array {name} is stopped"));
            }
        }
        Command::Assemble(start) => assemble(start, client).await?,
        Command::Delete { name, yes, how } => delete(name, *yes, *how, client).await?,
        other => change(other, client).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The commands about an array's drives and tasks.
async fn change(command: &Command, client: &Client) -> Result<(), Problem> {
    match command {
        Command::Fail { name, drive, how } => {
            let arrays = fetch::arrays(client, &[]).await?;
            let array = names::running(&arrays, name)?;
            let body = failing(array, &named::said(Path::new(drive), client), client).await?;
            let fail = action(&array.uuid, "FailDrive", body);
            if confirm::change(&fail, *how, client).await?.is_some() {
                how.output.print(&show(&array.uuid, client).await?, text);
            }
        }
        Command::Replace { name, slot, with, overwrite, yes, how } => {
            let arrays = fetch::arrays(client, &[]).await?;
            let uuid = &names::running(&arrays, name)?.uuid;
            let name = named::said(with, client);
            let (with, overwrite) =
                named::drives_of(client, core::slice::from_ref(with), overwrite).await?;
            let with = with.first().map(|uri| fetch::link(uri));
            let body = json!({ "Slot": slot, "With": with, "Overwrite": links(&overwrite) });
            let word = Word { name: &name, yes: *yes, is_named: true };
            let replace = action(uuid, "ReplaceDrive", body);
            if overwrites(&replace, &overwrite, word, *how, client).await?.is_some() {
                how.output.print(&show(uuid, client).await?, text);
            }
        }
        Command::Scrub(scrub) => {
            let Scrub { repair, trust_data, .. } = *scrub;
            let arrays = fetch::arrays(client, &[]).await?;
            let uuid = &names::running(&arrays, &scrub.name)?.uuid;
            let mode = if repair { "Repair" } else { "Check" };
            let body = json!({ "Mode": mode, "TrustData": trust_data });
            let begin = action(uuid, "Scrub", body);
            if confirm::change(&begin, scrub.how, client).await?.is_some() {
                scrub.how.output.print(&show(uuid, client).await?, text);
            }
        }
        Command::Wait { name, timeout, output } => {
            output.print(&wait(name, *timeout, client).await?, text);
        }
        _ => unreachable!("carried out by `run`"),
    }
    Ok(())
}

/// What is said of a change that has nothing to tell.
pub const DONE: Answer<view::Done> = Answer::new(view::Done { done: true });

/// The array of this name or identity.
pub async fn show(name: &str, client: &Client) -> Result<Answer<view::Array>, Problem> {
    let arrays = fetch::arrays(client, fetch::ALL).await?;
    Ok(Answer::new(names::array(&arrays, name)?.clone()))
}

/// An action of an array.
fn action(uuid: &str, name: &str, body: Value) -> Change {
    Change::post(format!("{}/Actions/Oem/PalisadeStoragePool.{name}", uri::pool(uuid)), body)
}

/// Makes a change that destroys what drives hold, if it may overwrite any.
async fn overwrites(
    change: &Change,
    overwrite: &[String],
    word: Word<'_>,
    how: How,
    client: &Client,
) -> Result<Option<Value>, Problem> {
    match overwrite.is_empty() {
        true => confirm::change(change, how, client).await,
        false => confirm::destroy(change, word, how, client).await,
    }
}

/// Starts an array on whatever drives are there by now.
async fn assemble(start: &Assemble, client: &Client) -> Result<(), Problem> {
    fetch::find_drives(client, &[]).await?;
    let arrays = fetch::arrays(client, &[]).await?;
    let uuid = &names::stopped(&arrays, &start.name)?.uuid;
    let mut body =
        json!({ "StartDegraded": start.start_degraded, "AcceptLoss": start.accept_loss });
    // A daemon of before does not know these.
    for (name, is_said) in
        [("TakeOver", start.take_over), ("OtherServerIsOff", start.other_server_is_off)]
    {
        if is_said {
            body[name] = true.into();
        }
    }
    let assemble = action(uuid, "Assemble", body);
    let (how, word) = (start.how, Word { name: &start.name, yes: start.yes, is_named: true });
    let done = match start.accept_loss {
        true => confirm::destroy(&assemble, word, how, client).await?,
        false => confirm::change(&assemble, how, client).await?,
    };
    if done.is_some() {
        how.output.print(&show(uuid, client).await?, text);
    }
    Ok(())
}

async fn delete(name: &str, yes: bool, how: How, client: &Client) -> Result<(), Problem> {
    if !yes && !how.dry_run && !confirm::is_terminal() {
        let what = format!("this deletes array {name} with all its volumes and data");
        return Err(Problem::unconfirmed(&what));
    }
    let arrays = fetch::arrays(client, &[]).await?;
    let delete = Change::delete(uri::pool(&names::array(&arrays, name)?.uuid));
    let word = Word { name, yes, is_named: false };
    let left = match confirm::destroy(&delete, word, how, client).await? {
        None => return Ok(()),
        Some(Value::Null) => Vec::new(),
        Some(told) => client::read::<Left>(told)?.left,
    };
    let answer = Answer::new(view::Deleted { done: true, left });
    how.output.print(&answer, |deleted| text_of_deleted(name, deleted));
    Ok(())
}

/// What names a drive of an array that is to be taken out: the drive itself, so that no other is
/// taken that came to its slot meanwhile; the slot, if that was named or has no drive.
async fn failing(array: &view::Array, drive: &str, client: &Client) -> Result<Value, Problem> {
    let slot = match names::slot(array, drive) {
        Ok(slot) => slot,
        Err(error) => {
            let known = named::known(client, drive).await?;
            let known = known.ok_or(error)?;
            return Ok(json!({ "Drive": fetch::link(&uri::drive(&known.id)) }));
        }
    };
    let path = slot.drive.as_ref().filter(|_| !drive.starts_with("slot:"));
    if let Some(path) = path {
        let drives = fetch::drives(client).await?;
        if let Some(known) = drives.iter().find(|known| known.drive.path == *path) {
            return Ok(json!({ "Drive": fetch::link(&uri::drive(&known.id)) }));
        }
    }
    Ok(json!({ "Slot": slot.slot }))
}

fn exit_code(state: view::ArrayState) -> ExitCode {
    ExitCode::from(match state {
        view::ArrayState::Optimal => 0,
        view::ArrayState::Degraded => 1,
        view::ArrayState::Failed | view::ArrayState::Stopped => 2,
    })
}

fn text_of_deleted(name: &str, deleted: &view::Deleted) -> String {
    match deleted.left.is_empty() {
        true => format!("array {name} is deleted"),
        false => format!(
            "array {name} is deleted; drives that were missing or not readable are not erased: {}\n\
             when such a drive comes back, erase it with: palisade drive wipe PATH --yes",
            deleted.left.join(", ")
        ),
    }
}

/// Paths count from here, not from where the daemon is. Names of remote drives are none.
pub fn absolute(path: &Path) -> String {
    if is_remote(path) {
        return path.to_string_lossy().into_owned();
    }
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
}

/// Reads a level, also as mdadm has it: `raid6`.
fn levels() -> impl TypedValueParser<Value = String> {
    let level = |alias: &'static str| PossibleValue::new(&alias[4..]).alias(alias);
    let levels = ["raid0", "raid1", "raid5", "raid6", "raid10"].map(level);
    let all = levels.into_iter().chain([PossibleValue::new("jbod")]);
    PossibleValuesParser::new(all).map(|typed| typed.trim_start_matches("raid").to_owned())
}

async fn create(create: &Create, client: &Client) -> Result<(), Problem> {
    let drives = named::expanded(client, &create.drives).await?;
    let overwrite = named::expanded(client, &create.overwrite).await?;
    let (drives, overwrite) = named::drives_of(client, &drives, &overwrite).await?;
    let mut own = json!({
        "Level": create.level,
        "StripSizeBytes": create.strip,
        "Overwrite": links(&overwrite),
    });
    if let Some(bytes) = create.block {
        own["BlockSizeBytes"] = bytes.into();
    }
    if create.same_drive {
        own["SameDrive"] = true.into();
    }
    if create.shared {
        own["Shared"] = true.into();
    }
    let body = json!({
        "Name": create.name,
        "CapacitySources": [{ "ProvidingDrives": { "Members": links(&drives) } }],
        "Oem": { "Palisade": own },
    });
    let word = Word { name: &create.name, yes: create.yes, is_named: true };
    let change = Change::post(uri::POOLS, body);
    if let Some(made) = overwrites(&change, &overwrite, word, create.how, client).await? {
        let uuid = read::array(&made)?.uuid;
        create.how.output.print(&show(&uuid, client).await?, text);
    }
    Ok(())
}

async fn wait(
    name: &str,
    timeout: Option<Duration>,
    client: &Client,
) -> Result<Answer<view::Array>, Problem> {
    let start = Instant::now();
    loop {
        let arrays = fetch::arrays(client, &[fetch::Part::Tasks]).await?;
        let tasks = &names::array(&arrays, name)?.tasks;
        let running = tasks.iter().find(|task| task.state == view::TaskState::Running);
        let Some(task) = running.or(tasks.first()) else { return show(name, client).await };
        if task.state == view::TaskState::Paused {
            let kind = word_of(&task.kind);
            return Err(Problem::new(&say::TASK_PAUSED, &[&kind, &name, &task.id]));
        }
        if let Some(problem) = &task.problem {
            let kind = word_of(&task.kind);
            return Err(Problem::new(&say::TASK_STUCK, &[&kind, &name, problem]));
        }
        if timeout.is_some_and(|timeout| start.elapsed() >= timeout) {
            let kind = word_of(&task.kind);
            return Err(Problem::new(&say::TASK_LASTS, &[&kind, &name, &percent(task)]));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// An array for people.
pub fn text(array: &view::Array) -> String {
    let mut text = format!(
        "{}  {}\nlevel {}, strip {}, block {} bytes, {} usable, {} free, epoch {}\n{}\n",
        array.name,
        state(&array.state),
        array.level,
        format_size(array.strip_bytes.into()),
        array.block_bytes,
        format_size(array.size_bytes),
        format_size(array.free_bytes),
        array.epoch,
        array.uuid,
    );
    if let Some(problem) = &array.problem {
        text.push_str(&format!("not running: {problem}\n"));
    }
    if array.shared {
        text.push_str(&text_of_owner(array.owner.as_ref()));
    }
    for warning in &array.warnings {
        text.push_str(&format!("warning: {warning}\n"));
    }
    for task in &array.tasks {
        let (done, total) = (format_size(task.done_bytes), format_size(task.total_bytes));
        let kind = word_of(&task.kind);
        text.push_str(&format!("{kind} {} ({done} of {total} per drive)", percent(task)));
        match (task.state, time_left(task)) {
            (view::TaskState::Paused, _) => {
                text.push_str(&format!(
                    ", paused; resume it with: palisade task resume {}\n",
                    task.id
                ));
            }
            (_, left) if left.is_empty() => text.push('\n'),
            (_, left) => text.push_str(&format!(", {left} left\n")),
        }
        if let Some(problem) = &task.problem {
            text.push_str(&format!("  stuck: {problem}\n"));
        }
    }
    text.push_str(&text_of_unreadable(&array.unreadable));
    if let Some(map) = &array.region_map {
        let written = format_size(map.written_bytes);
        text.push_str(&format!("{written} written so far, {} regions dirty\n", map.dirty_regions));
    }
    if let Some(scrub) = &array.last_scrub {
        text.push_str(&text_of_scrub(&array.name, scrub));
    }
    text.push_str(&format!("\n{}", slots(array)));
    array.slots.iter().filter_map(trouble).for_each(|line| text.push_str(&line));
    if !array.volumes.is_empty() {
        text.push_str(&format!("\n{}", volume::volumes(&array.volumes)));
    }
    if !array.exports.is_empty() {
        text.push_str(&format!("\n{}", export::exports(&array.exports)));
    }
    if !array.filesystems.is_empty() {
        let shares: Vec<_> = array.filesystems.iter().flat_map(shown::of_system).collect();
        text.push_str(&format!("\n{}", shown::table(&shares)));
    }
    text
}

/// Which server has a shared array.
fn text_of_owner(owner: Option<&view::Owner>) -> String {
    let Some(owner) = owner else { return "shared, no server has it\n".to_owned() };
    let host = match owner.name.is_empty() {
        true => owner.host_id.clone(),
        false => format!("{} ({})", owner.name, owner.host_id),
    };
    let own = if owner.own { ", this server" } else { "" };
    let age = owner.heartbeat_age_ms.map_or_else(
        || "unknown".to_owned(),
        |ms| format!("{}.{} s ago", ms / 1_000, ms % 1_000 / 100),
    );
    format!("shared, owner {host}{own}, last heartbeat {age}\n")
}

/// What can't be given back: the first ranges, and how many there are.
pub fn text_of_unreadable(ranges: &[view::Unreadable]) -> String {
    const SHOWN: usize = 10;
    if ranges.is_empty() {
        return String::new();
    }
    let bytes = format_size(ranges.iter().map(|range| range.length).sum());
    let mut text =
        format!("{bytes} can't be read; reads of these ranges fail until they are written anew:\n");
    for range in ranges.iter().take(SHOWN) {
        let view::Unreadable { volume, offset, length, reason } = range;
        text.push_str(&format!("  {volume} at {offset}, {length} bytes ({})\n", word_of(reason)));
    }
    if ranges.len() > SHOWN {
        let more = ranges.len() - SHOWN;
        text.push_str(&format!("  and {more} more ranges; list them with --json\n"));
    }
    text
}

/// What the last scrub found, and what it could not compare. What was never written has nothing
/// to compare, and is not spoken of.
fn text_of_scrub(array: &str, scrub: &view::LastScrub) -> String {
    let mut text = format!(
        "last scrub: {} checked, {} mismatches, {} repaired\n",
        format_size(scrub.checked_bytes),
        scrub.mismatches,
        scrub.repaired
    );
    if let Some(bytes) = scrub.uncompared_bytes.filter(|bytes| *bytes > 0) {
        let bytes = format_size(bytes);
        text.push_str(&format!("  {bytes} could not be checked: a drive was missing\n"));
    }
    if scrub.unreadable > 0 {
        let stripes = scrub.unreadable;
        text.push_str(&format!(
            "  {stripes} stripes have blocks that can't be read or recovered\n"
        ));
    }
    if scrub.unlocated > 0 {
        text.push_str(&format!(
            "  {} mismatches are not repaired, as it is not known which strip is wrong; to keep \
             the data as it reads now, run: palisade array scrub {array} --repair --trust-data\n",
            scrub.unlocated
        ));
    }
    text
}

fn slots(array: &view::Array) -> String {
    let row = |slot: &view::SlotInfo| {
        let io = array.drive_io.iter().find(|io| io.slot == slot.slot);
        let moved = |bytes: Option<u64>| bytes.map_or(String::new(), format_size);
        vec![
            slot.slot.to_string(),
            slot.drive.clone().unwrap_or_else(|| "-".to_owned()),
            slot.serial.clone(),
            state(&slot.state),
            moved(io.map(|io| io.read_bytes)),
            moved(io.map(|io| io.write_bytes)),
            errors(slot),
        ]
    };
    let rows: Vec<_> = array.slots.iter().map(row).collect();
    table(&["SLOT", "DRIVE", "SERIAL", "STATE", "READ", "WRITTEN", "ERRORS"], &rows)
}

/// What took a slot's drive out, and what that means for it; nothing if nothing did.
fn trouble(slot: &view::SlotInfo) -> Option<String> {
    let reason = slot.reason.as_ref()?;
    let timeouts = match slot.timeouts {
        0 => String::new(),
        n => format!(", {n} timed out"),
    };
    let held = match slot.quarantined {
        true => "; held until it has ended earlier requests",
        false => "",
    };
    let (number, failures) = (slot.slot, slot.failures);
    Some(format!("slot {number}: {reason} ({failures} requests failed{timeouts}){held}\n"))
}

/// What a slot's drive could not read, and what it held that was wrong; nothing if neither.
pub fn errors(slot: &view::SlotInfo) -> String {
    let mut parts = Vec::new();
    if slot.read_errors > 0 {
        parts.push(format!("{} unreadable ({} written back)", slot.read_errors, slot.rewritten));
    }
    if slot.wrong_strips > 0 {
        parts.push(format!("{} wrong", slot.wrong_strips));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_as_mdadm_has_them() {
        let command = clap::Command::new("create");
        let read = |text: &str| levels().parse_ref(&command, None, text.as_ref());
        for (text, level) in [("6", "6"), ("raid6", "6"), ("raid10", "10"), ("jbod", "jbod")] {
            assert_eq!(read(text).ok().as_deref(), Some(level), "{text}");
        }
        for text in ["raid7", "raidjbod", "raid"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn who_has_a_shared_array_is_said() {
        assert_eq!(text_of_owner(None), "shared, no server has it\n");
        let mut owner = view::Owner {
            host_id: "7".into(),
            boot_id: "8".into(),
            name: "srv2".into(),
            own: false,
            heartbeat_age_ms: Some(1_250),
        };
        let text = "shared, owner srv2 (7), last heartbeat 1.2 s ago\n";
        assert_eq!(text_of_owner(Some(&owner)), text);
        (owner.name, owner.own, owner.heartbeat_age_ms) = (String::new(), true, None);
        let text = "shared, owner 7, this server, last heartbeat unknown\n";
        assert_eq!(text_of_owner(Some(&owner)), text);
    }

    #[test]
    fn what_took_a_drive_out_is_said() {
        let slot = view::SlotInfo {
            slot: 3,
            drive: None,
            serial: "s".into(),
            state: view::SlotState::Failed,
            read_errors: 0,
            rewritten: 0,
            wrong_strips: 0,
            failures: 5,
            timeouts: 2,
            reason: Some("no answer in time".into()),
            quarantined: true,
        };
        let text = "slot 3: no answer in time (5 requests failed, 2 timed out); held until it \
                    has ended earlier requests\n";
        assert_eq!(trouble(&slot).as_deref(), Some(text));
        assert_eq!(trouble(&view::SlotInfo { reason: None, ..slot }), None);
    }

    #[test]
    fn what_can_not_be_given_back_is_said() {
        assert_eq!(text_of_unreadable(&[]), "");
        let range = |i: u64| view::Unreadable {
            volume: "v".into(),
            offset: i * 4096,
            length: 1024,
            reason: view::UnreadableReason::Rebuild,
        };
        let text = text_of_unreadable(&[range(3)]);
        assert!(
            text.starts_with("1 KiB can't be read")
                && text.ends_with("v at 12288, 1024 bytes (rebuild)\n")
        );
        let many: Vec<_> = (0..12).map(range).collect();
        assert!(
            text_of_unreadable(&many).ends_with("  and 2 more ranges; list them with --json\n")
        );
    }

    #[test]
    fn a_scrub_says_what_it_could_not_check() {
        let mut scrub = view::LastScrub {
            checked_bytes: 2 << 20,
            uncompared_bytes: None,
            mismatches: 1,
            repaired: 0,
            unlocated: 0,
            unreadable: 0,
            ended: 0,
        };
        let found = "last scrub: 2 MiB checked, 1 mismatches, 0 repaired\n";
        for nothing in [None, Some(0)] {
            scrub.uncompared_bytes = nothing;
            assert_eq!(text_of_scrub("data", &scrub), found);
        }
        scrub.uncompared_bytes = Some(1 << 20);
        let text = text_of_scrub("data", &scrub);
        assert_eq!(text, format!("{found}  1 MiB could not be checked: a drive was missing\n"));
        scrub.unlocated = 1;
        let text = text_of_scrub("data", &scrub);
        assert!(text.contains("array scrub data --repair --trust-data"), "{text}");
    }
}
