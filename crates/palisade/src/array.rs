//! `palisade array`: groups of drives that store as one.

use crate::client::Client;
use crate::output::{Output, Problem, percent, state, table, word_of};
use crate::task::time_left;
use crate::volume::size;
use crate::{export, status, volume};
use clap::Subcommand;
use control::api::{self, Answer};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use units::format_size;

/// How often `wait` and progress look.
const POLL: Duration = Duration::from_millis(100);

/// What `array create` takes.
#[derive(Debug, clap::Args)]
pub struct Create {
    /// Its name
    name: String,
    /// 0, 1, 5, 6, 10 or jbod
    #[arg(long, value_parser = ["0", "1", "5", "6", "10", "jbod"])]
    level: String,
    /// Files or block devices, in the order of slots
    #[arg(long, value_name = "PATH", num_args = 1.., required = true)]
    drives: Vec<PathBuf>,
    /// Strip size, 4K to 1M
    #[arg(long, default_value = "64K", value_parser = strip)]
    strip: u32,
    /// Block size; the largest of the drives' unless said
    #[arg(long, value_name = "512|4096", value_parser = block)]
    block: Option<u32>,
    /// A drive of these whose content may be destroyed
    #[arg(long, value_name = "PATH")]
    overwrite: Vec<PathBuf>,
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: Output,
}

fn strip(text: &str) -> Result<u32, String> {
    u32::try_from(size(text)?).map_err(|_| "give 4K to 1M".to_owned())
}

fn block(text: &str) -> Result<u32, String> {
    match size(text)? {
        512 => Ok(512),
        4096 => Ok(4096),
        _ => Err("give 512 or 4096".to_owned()),
    }
}

/// What can be done with arrays.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make an array
    Create(Create),
    /// List all arrays
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Show everything about an array
    Show {
        /// Its name or UUID
        name: String,
        /// Exit with 0 if it is optimal, 1 degraded, 2 failed or stopped, 4 if that can't be told
        #[arg(long)]
        exit_state: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Stop an array cleanly; its exports end
    Stop {
        /// Its name or UUID
        name: String,
        #[command(flatten)]
        output: Output,
    },
    /// Start an array that was stopped or could not be started
    Assemble {
        /// Its name or UUID
        name: String,
        /// Start though drives are missing that are not known to have failed
        #[arg(long)]
        start_degraded: bool,
        /// Start though unclean and degraded: blocks being written at the crash may be wrong; or
        /// though a drive lost its last records: what only they said is forgotten
        #[arg(long)]
        accept_loss: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Delete an array and everything in it
    Delete {
        /// Its name or UUID
        name: String,
        /// Really
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Take a drive out of service
    Fail {
        /// The array's name or UUID
        name: String,
        /// Path, serial number or slot:N
        #[arg(long)]
        drive: String,
        #[command(flatten)]
        output: Output,
    },
    /// Put another drive in a slot and rebuild it
    Replace {
        /// The array's name or UUID
        name: String,
        /// The slot
        #[arg(long, value_name = "N")]
        slot: u16,
        /// File or block device
        #[arg(long, value_name = "PATH")]
        with: PathBuf,
        /// The same drive, if its content may be destroyed
        #[arg(long, value_name = "PATH")]
        overwrite: Vec<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
    /// Compare parity and copies with the data, beside other work
    Scrub(Scrub),
    /// Wait until no task runs
    Wait {
        /// Its name or UUID
        name: String,
        /// Give up after this long
        #[arg(long, value_name = "SECONDS", value_parser = seconds)]
        timeout: Option<Duration>,
        #[command(flatten)]
        output: Output,
    },
}

/// What `array scrub` takes.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("mode").required(true).args(["check", "repair"]))]
pub struct Scrub {
    /// Its name or UUID
    name: String,
    /// Only count what does not agree
    #[arg(long)]
    check: bool,
    /// Write over the strips that are known to be wrong
    #[arg(long)]
    repair: bool,
    /// With --repair: where nobody can know which strip is wrong, write what the data says
    #[arg(long, requires = "repair", conflicts_with = "check")]
    trust_data: bool,
    #[command(flatten)]
    output: Output,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    seconds.ok_or_else(|| "give a number of seconds".to_owned())
}

/// Carries a command out; the exit code is that of `--exit-state`.
pub async fn run(command: &Command, client: &Client) -> Result<ExitCode, Problem> {
    match command {
        Command::Create(create) => self::create(create, client).await?,
        Command::List { output } => {
            let answer: Answer<api::ArrayList> = client.get(&["arrays"]).await?;
            output.print(&answer, |list| status::arrays(&list.arrays));
        }
        Command::Show { name, exit_state, output } => {
            let answer: Result<Answer<api::Array>, Problem> = client.get(&["arrays", name]).await;
            if *exit_state {
                let answer = answer.map_err(Problem::without_state)?;
                output.print(&answer, text);
                return Ok(exit_code(answer.body.state));
            }
            output.print(&answer?, text);
        }
        Command::Stop { name, output } => {
            let answer = client.post(&["arrays", name, "stop"], &Empty {}).await?;
            output.print(&answer, |_: &api::Done| format!("{name} is stopped"));
        }
        Command::Assemble { name, start_degraded, accept_loss, output } => {
            let (start_degraded, accept_loss) = (*start_degraded, *accept_loss);
            let request = api::AssembleArray { start_degraded, accept_loss };
            output.print(&client.post(&["arrays", name, "assemble"], &request).await?, text);
        }
        Command::Delete { name, yes, output } => {
            if !yes {
                let what = format!("this deletes array {name} and everything in it");
                return Err(Problem::unconfirmed(&what));
            }
            let answer = client.delete(&["arrays", name]).await?;
            output.print(&answer, |deleted| text_of_deleted(name, deleted));
        }
        other => change(other, client).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The commands about an array's drives and tasks.
async fn change(command: &Command, client: &Client) -> Result<(), Problem> {
    match command {
        Command::Fail { name, drive, output } => {
            let request = api::FailDrive { drive: drive_name(drive) };
            output.print(&client.post(&["arrays", name, "fail"], &request).await?, text);
        }
        Command::Replace { name, slot, with, overwrite, output } => {
            let (with, overwrite) = (absolute(with), overwrite.iter().map(|p| absolute(p)));
            let request = api::ReplaceDrive { slot: *slot, with, overwrite: overwrite.collect() };
            output.print(&client.post(&["arrays", name, "replace"], &request).await?, text);
        }
        Command::Scrub(scrub) => {
            let Scrub { repair, trust_data, .. } = *scrub;
            let request = api::ScrubArray { repair, trust_data };
            let answer = client.post(&["arrays", &scrub.name, "scrub"], &request).await?;
            scrub.output.print(&answer, text);
        }
        Command::Wait { name, timeout, output } => {
            output.print(&wait(name, *timeout, client).await?, text);
        }
        _ => unreachable!("carried out by `run`"),
    }
    Ok(())
}

/// A request without content.
#[derive(serde::Serialize)]
pub struct Empty {}

fn exit_code(state: api::ArrayState) -> ExitCode {
    ExitCode::from(match state {
        api::ArrayState::Optimal => 0,
        api::ArrayState::Degraded => 1,
        api::ArrayState::Failed | api::ArrayState::Stopped => 2,
    })
}

fn text_of_deleted(name: &str, deleted: &api::Deleted) -> String {
    match deleted.left.is_empty() {
        true => format!("{name} is deleted"),
        false => format!(
            "{name} is deleted; not erased, as not there or not readable: {}\n\
             if such a drive comes back, erase it with: palisade drive wipe PATH --yes",
            deleted.left.join(", ")
        ),
    }
}

/// Paths count from here, not from where the daemon is.
pub fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
}

/// A drive by path, unless it can't be one.
fn drive_name(drive: &str) -> String {
    let other = drive.starts_with("slot:") || (!drive.contains('/') && !Path::new(drive).exists());
    if other { drive.to_owned() } else { absolute(Path::new(drive)) }
}

async fn create(create: &Create, client: &Client) -> Result<(), Problem> {
    let request = api::CreateArray {
        name: create.name.clone(),
        level: create.level.clone(),
        drives: create.drives.iter().map(|path| absolute(path)).collect(),
        strip_bytes: create.strip,
        block_bytes: create.block,
        overwrite: create.overwrite.iter().map(|path| absolute(path)).collect(),
        dry_run: create.dry_run,
    };
    if create.dry_run {
        create.output.print(&client.post(&["arrays"], &request).await?, plan);
        return Ok(());
    }
    create.output.print(&client.post(&["arrays"], &request).await?, text);
    Ok(())
}

async fn wait(
    name: &str,
    timeout: Option<Duration>,
    client: &Client,
) -> Result<Answer<api::Array>, Problem> {
    let start = Instant::now();
    loop {
        let answer: Answer<api::Array> = client.get(&["arrays", name]).await?;
        let tasks = &answer.body.tasks;
        let running = tasks.iter().find(|task| task.state == api::TaskState::Running);
        let Some(task) = running.or(tasks.first()) else { return Ok(answer) };
        if task.state == api::TaskState::Paused {
            return Err(Problem::failed(
                format!("{} of {name} is paused", word_of(&task.kind)),
                format!("have it go on with: palisade task resume {}", task.id),
            ));
        }
        if let Some(problem) = &task.problem {
            return Err(Problem::failed(
                format!("{} of {name} is stuck: {problem}", word_of(&task.kind)),
                "bring missing drives back, or write anew what is unreadable: it tries again",
            ));
        }
        if timeout.is_some_and(|timeout| start.elapsed() >= timeout) {
            return Err(Problem::failed(
                format!("{} of {name} is at {}", word_of(&task.kind), percent(task)),
                "wait longer, or watch it with: palisade status --watch",
            ));
        }
        tokio::time::sleep(POLL).await;
    }
}

fn plan(plan: &api::Plan) -> String {
    let row = |drive: &api::PlannedDrive| {
        let destroys = drive.destroys.clone().unwrap_or_default();
        let word = match (drive.refused, destroys.is_empty()) {
            (true, _) => "refused without --overwrite",
            (false, false) => "destroyed",
            (false, true) => "",
        };
        vec![
            drive.slot.to_string(),
            drive.path.clone(),
            drive.serial.clone(),
            format_size(drive.bytes),
            destroys,
            word.to_owned(),
        ]
    };
    let rows: Vec<_> = plan.drives.iter().map(row).collect();
    format!(
        "would make {}: level {}, strip {}, block {} bytes, {} usable\n\n{}",
        plan.name,
        plan.level,
        format_size(plan.strip_bytes.into()),
        plan.block_bytes,
        format_size(plan.size_bytes),
        table(&["SLOT", "DRIVE", "SERIAL", "SIZE", "HOLDS", ""], &rows)
    )
}

/// An array for people.
pub fn text(array: &api::Array) -> String {
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
        text.push_str(&format!("does not run: {problem}\n"));
    }
    for warning in &array.warnings {
        text.push_str(&format!("warning: {warning}\n"));
    }
    for task in &array.tasks {
        let (done, total) = (format_size(task.done_bytes), format_size(task.total_bytes));
        let kind = word_of(&task.kind);
        text.push_str(&format!("{kind} {} ({done} of {total} per drive)", percent(task)));
        match (task.state, time_left(task)) {
            (api::TaskState::Paused, _) => {
                text.push_str(&format!(", paused: palisade task resume {}\n", task.id));
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
        text.push_str(&format!("{written} ever written, {} regions dirty\n", map.dirty_regions));
    }
    if let Some(scrub) = &array.last_scrub {
        text.push_str(&text_of_scrub(scrub, array.size_bytes));
    }
    text.push_str(&format!("\n{}", slots(array)));
    array.slots.iter().filter_map(trouble).for_each(|line| text.push_str(&line));
    if !array.volumes.is_empty() {
        text.push_str(&format!("\n{}", volume::volumes(&array.volumes)));
    }
    if !array.exports.is_empty() {
        text.push_str(&format!("\n{}", export::exports(&array.exports)));
    }
    text
}

/// What can't be given back: the first ranges, and how many there are.
pub fn text_of_unreadable(ranges: &[api::Unreadable]) -> String {
    const SHOWN: usize = 10;
    if ranges.is_empty() {
        return String::new();
    }
    let bytes = format_size(ranges.iter().map(|range| range.length).sum());
    let mut text =
        format!("{bytes} can't be given back; reads fail there until they are written anew:\n");
    for range in ranges.iter().take(SHOWN) {
        let api::Unreadable { volume, offset, length, reason } = range;
        text.push_str(&format!("  {volume} at {offset}, {length} bytes ({})\n", word_of(reason)));
    }
    if ranges.len() > SHOWN {
        let more = ranges.len() - SHOWN;
        text.push_str(&format!("  and {more} more ranges: see --json\n"));
    }
    text
}

/// What the last scrub found; what it could compare with nothing is said.
fn text_of_scrub(scrub: &api::LastScrub, size_bytes: u64) -> String {
    let mut text = format!("last scrub: {} checked", format_size(scrub.checked_bytes));
    let unchecked = size_bytes.saturating_sub(scrub.checked_bytes);
    if unchecked > 0 {
        let unchecked = format_size(unchecked);
        text.push_str(&format!(" ({unchecked} had nothing to compare with: a drive was missing)"));
    }
    text.push_str(&format!(", {} mismatches, {} repaired\n", scrub.mismatches, scrub.repaired));
    if scrub.unreadable > 0 {
        let stripes = scrub.unreadable;
        text.push_str(&format!("  {stripes} stripes have blocks that nothing could give\n"));
    }
    if scrub.unlocated > 0 {
        text.push_str(&format!(
            "  in {} stripes nobody can know which strip is wrong: they are left as they are \
             unless you run `array scrub NAME --repair --trust-data`\n",
            scrub.unlocated
        ));
    }
    text
}

fn slots(array: &api::Array) -> String {
    let row = |slot: &api::SlotInfo| {
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
fn trouble(slot: &api::SlotInfo) -> Option<String> {
    let reason = slot.reason.as_ref()?;
    let timeouts = match slot.timeouts {
        0 => String::new(),
        n => format!(", {n} not done in time"),
    };
    let held = match slot.quarantined {
        true => "; held: earlier requests may still be carried out",
        false => "",
    };
    let (number, failures) = (slot.slot, slot.failures);
    Some(format!("slot {number}: {reason} ({failures} requests failed{timeouts}){held}\n"))
}

/// What a slot's drive could not read, and what it held that was wrong; nothing if neither.
fn errors(slot: &api::SlotInfo) -> String {
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
    fn what_took_a_drive_out_is_said() {
        let slot = api::SlotInfo {
            slot: 3,
            drive: None,
            serial: "s".into(),
            state: api::SlotState::Failed,
            read_errors: 0,
            rewritten: 0,
            wrong_strips: 0,
            failures: 5,
            timeouts: 2,
            reason: Some("no answer in time".into()),
            quarantined: true,
        };
        let text = "slot 3: no answer in time (5 requests failed, 2 not done in time); held: \
                    earlier requests may still be carried out\n";
        assert_eq!(trouble(&slot).as_deref(), Some(text));
        assert_eq!(trouble(&api::SlotInfo { reason: None, ..slot }), None);
    }

    #[test]
    fn what_can_not_be_given_back_is_said() {
        assert_eq!(text_of_unreadable(&[]), "");
        let range = |i: u64| api::Unreadable {
            volume: "v".into(),
            offset: i * 4096,
            length: 1024,
            reason: api::UnreadableReason::Rebuild,
        };
        let text = text_of_unreadable(&[range(3)]);
        assert!(
            text.starts_with("1 KiB can't") && text.ends_with("v at 12288, 1024 bytes (rebuild)\n")
        );
        let many: Vec<_> = (0..12).map(range).collect();
        assert!(text_of_unreadable(&many).ends_with("  and 2 more ranges: see --json\n"));
    }

    #[test]
    fn a_scrub_says_what_it_could_not_check() {
        let checked_bytes = 2 << 20;
        let (mismatches, repaired, unlocated, unreadable, ended) = (1, 0, 0, 0, 0);
        let mut scrub =
            api::LastScrub { checked_bytes, mismatches, repaired, unlocated, unreadable, ended };
        let text = text_of_scrub(&scrub, 2 << 20);
        assert_eq!(text, "last scrub: 2 MiB checked, 1 mismatches, 0 repaired\n");
        let text = text_of_scrub(&scrub, 3 << 20);
        assert!(text.contains("1 MiB had nothing to compare with"), "{text}");
        scrub.unlocated = 1;
        assert!(text_of_scrub(&scrub, 2 << 20).contains("--trust-data"));
    }
}
