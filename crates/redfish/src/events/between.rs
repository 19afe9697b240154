//! What came to be between two views.
//!
//! The order makes sense to who reads it: what went goes first, from hosts down to arrays; then
//! drives, then what that made of arrays and their tasks; then what came, from arrays up to hosts.
//!
//! While the daemon starts nothing is told. Once the start is over all is told that is not as it
//! should be.
//!
//! Invariant: no more than [`MOST_AT_ONCE`] events come of two views; the gravest are told.

use super::{Event, health};
use crate::hardware::Health;
use crate::messages::{self as say, Severity};
use crate::service::uri;
use crate::view::{
    Array, ArrayState, DriveState, Export, Job, JobEnd, KnownDrive, SlotInfo, SlotState, TaskState,
    View, Volume,
};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

/// How many events two views may differ by.
pub const MOST_AT_ONCE: usize = 512;

/// Things by what names them.
type Named<'a, T> = BTreeMap<&'a str, &'a T>;

/// What came to be between two views, in an order that makes sense. No event has an identifier or
/// a moment yet.
pub fn between(before: &View, after: &View) -> Vec<Event> {
    if !after.status.ready {
        return Vec::new();
    }
    let nothing;
    let (mut told, before) = if before.status.ready {
        (Vec::new(), before)
    } else {
        nothing = healthy(after);
        let version = &after.status.version;
        (vec![Event::new(&say::DAEMON_STARTED, &[version], uri::MANAGER)], &nothing)
    };
    let arrays = Arrays::of(before, after);
    arrays.less(&mut told);
    drives(before, after, &mut told);
    arrays.slots(&mut told);
    jobs(before, after, &mut told, true);
    arrays.states(&mut told);
    jobs(before, after, &mut told, false);
    arrays.more(&mut told);
    daemon(before, after, &mut told);
    bounded(told)
}

/// A view in which all is well that another one has: what that differs by is to be told at a start.
fn healthy(view: &View) -> View {
    let mut well = view.clone();
    well.status.ready = true;
    well.status.state.problem = None;
    well.status.parity.gpu_suspect = false;
    for known in &mut well.drives {
        if known.drive.state == DriveState::Unusable {
            known.drive.state = DriveState::Free;
        }
        if known.hardware.health != Health::Ok {
            known.hardware = Arc::default();
        }
    }
    // What goes on has begun with the daemon, and hosts have come.
    well.jobs.retain(|job| job.ended.is_some());
    for array in &mut well.status.arrays {
        if array.state != ArrayState::Stopped {
            array.state = ArrayState::Optimal;
        }
        (array.problem, array.unreadable) = (None, Vec::new());
        array.slots = array.slots.iter().map(in_sync).collect();
        for export in &mut array.exports {
            export.serving = true;
            export.clients = Vec::new();
            if let Some(nvme) = &mut export.nvme {
                nvme.connections = [].into();
            }
        }
    }
    well
}

/// A slot as it is when nothing is wrong with it.
fn in_sync(slot: &SlotInfo) -> SlotInfo {
    let state = match slot.state {
        SlotState::Rebuilding => SlotState::Rebuilding,
        _ => SlotState::InSync,
    };
    SlotInfo { quarantined: false, state, ..slot.clone() }
}

/// As many as are told of two views.
fn bounded(mut told: Vec<Event>) -> Vec<Event> {
    let all = told.len();
    if all <= MOST_AT_ONCE {
        return told;
    }
    // One is for how many are left out.
    let most = MOST_AT_ONCE - 1;
    for least in [Severity::Critical, Severity::Warning] {
        let grave = told.iter().filter(|event| event.severity() >= least).count();
        let mut spare = most.saturating_sub(grave);
        if least == Severity::Warning || grave >= most {
            told.retain(|event| {
                event.severity() >= least || {
                    let is_told = spare > 0;
                    spare = spare.saturating_sub(1);
                    is_told
                }
            });
            break;
        }
    }
    told.truncate(most);
    let omitted = all - told.len();
    told.push(Event::new(&say::EVENTS_OMITTED, &[&omitted], uri::MANAGER));
    told
}

fn by<'a, T>(
    all: impl IntoIterator<Item = &'a T>,
    name: impl Fn(&'a T) -> &'a str,
) -> Named<'a, T> {
    all.into_iter().map(|one| (name(one), one)).collect()
}

/// Those of the first that the second have not, in their order.
fn gone<'a, T>(
    from: &'a [T],
    to: &Named<'_, T>,
    name: fn(&T) -> &str,
) -> impl Iterator<Item = &'a T> {
    from.iter().filter(move |one| !to.contains_key(name(one)))
}

/// The resource of a drive by its path; that of its array where the drive is not known.
fn drive_uri(view: &View, path: Option<&str>, array: &Array) -> String {
    let known = view.drives.iter().find(|known| Some(known.drive.path.as_str()) == path);
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

/// The resource of an export.
fn export_uri(array: &Array, export: &Export) -> String {
    let fabric = export.kind.fabric();
    let number = uri::export_number(&export.id).unwrap_or_default();
    uri::connection(fabric, &uri::connection_id(&array.uuid, number))
}

fn uuid(array: &Array) -> &str {
    &array.uuid
}

fn volume_id(volume: &Volume) -> &str {
    &volume.uuid
}

fn export_id(export: &Export) -> &str {
    &export.id
}

fn drive_id(known: &KnownDrive) -> &str {
    &known.id
}

/// Hosts that are connected: with subsystem, host, and the resource of an export that it has.
fn hosts(view: &View) -> BTreeMap<(&str, &str), String> {
    let mut all = BTreeMap::new();
    for array in &view.status.arrays {
        for export in &array.exports {
            let Some(nvme) = &export.nvme else { continue };
            for host in nvme.connections.iter().filter(|host| !host.host.is_empty()) {
                let key = (nvme.subsystem.as_str(), host.host.as_str());
                all.entry(key).or_insert_with(|| export_uri(array, export));
            }
        }
    }
    all
}

/// What can't be read, by volume: ranges as first byte and end, in order and apart.
fn unreadable(array: &Array) -> BTreeMap<&str, Vec<(u64, u64)>> {
    let mut all: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for range in &array.unreadable {
        let end = range.offset.saturating_add(range.length);
        all.entry(range.volume.as_str()).or_default().push((range.offset, end));
    }
    for ranges in all.values_mut() {
        ranges.sort_unstable();
        let mut apart: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
        for &(begin, end) in ranges.iter() {
            match apart.last_mut().filter(|last| begin <= last.1) {
                Some(last) => last.1 = last.1.max(end),
                None => apart.push((begin, end)),
            }
        }
        *ranges = apart;
    }
    all
}

/// Whether a range is within one of these.
fn is_within(ranges: &[(u64, u64)], (begin, end): (u64, u64)) -> bool {
    ranges.iter().any(|own| own.0 <= begin && end <= own.1)
}

/// The arrays of two views.
struct Arrays<'a> {
    before: &'a View,
    after: &'a View,
    old: Named<'a, Array>,
    new: Named<'a, Array>,
}

impl<'a> Arrays<'a> {
    fn of(before: &'a View, after: &'a View) -> Self {
        let (old, new) = (by(&before.status.arrays, uuid), by(&after.status.arrays, uuid));
        Self { before, after, old, new }
    }

    /// Those that both have.
    fn both(&self) -> impl Iterator<Item = (&'a Array, &'a Array)> {
        let after = self.after.status.arrays.iter();
        after.filter_map(|new| Some((*self.old.get(new.uuid.as_str())?, new)))
    }

    /// Those that run in both.
    fn run_in_both(&self) -> impl Iterator<Item = (&'a Array, &'a Array)> {
        let runs = |array: &Array| array.state != ArrayState::Stopped;
        self.both().filter(move |(old, new)| runs(old) && runs(new))
    }

    /// What went: hosts, exports, volumes, arrays.
    fn less(&self, told: &mut Vec<Event>) {
        let left = hosts(self.after);
        for ((subsystem, host), origin) in hosts(self.before) {
            if !left.contains_key(&(subsystem, host)) {
                let args: [&dyn Display; 2] = [&host, &subsystem];
                told.push(Event::new(&say::HOST_DISCONNECTED, &args, origin));
            }
        }
        for (old, new) in self.run_in_both() {
            for export in gone(&old.exports, &by(&new.exports, export_id), export_id) {
                let args: [&dyn Display; 3] = [&export.volume, &new.name, &export.uri];
                told.push(Event::new(&say::EXPORT_DELETED, &args, export_uri(old, export)));
            }
        }
        for (old, new) in self.run_in_both() {
            for volume in gone(&old.volumes, &by(&new.volumes, volume_id), volume_id) {
                let origin = uri::volume(&volume.uuid);
                told.push(Event::new(&say::VOLUME_DELETED, &[&volume.name, &new.name], origin));
            }
        }
        for array in gone(&self.before.status.arrays, &self.new, uuid) {
            let notice = match array.state {
                ArrayState::Stopped => &say::ARRAY_GONE,
                _ => &say::ARRAY_DELETED,
            };
            told.push(Event::new(notice, &[&array.name], uri::pool(&array.uuid)));
        }
    }

    /// What became of the drives of slots. What is wrong with an array that has just started is
    /// told, too.
    fn slots(&self, told: &mut Vec<Event>) {
        let runs = |array: &&Array| array.state != ArrayState::Stopped;
        for new in self.after.status.arrays.iter().filter(runs) {
            let old = self.old.get(new.uuid.as_str()).copied().filter(runs);
            for slot in &new.slots {
                match old {
                    None => self.slot(new, &in_sync(slot), slot, told),
                    Some(old) => {
                        let was = old.slots.iter().find(|was| was.slot == slot.slot);
                        was.iter().for_each(|was| self.slot(new, was, slot, told));
                    }
                }
            }
        }
    }

    fn slot(&self, array: &Array, was: &SlotInfo, is: &SlotInfo, told: &mut Vec<Event>) {
        let shown = match (is.drive.is_some(), was.drive.is_some()) {
            (false, true) => was,
            _ => is,
        };
        let drive = drive_name(shown);
        let view = if shown.drive == is.drive { self.after } else { self.before };
        let origin = drive_uri(view, shown.drive.as_deref(), array);
        let args: [&dyn Display; 3] = [&drive, &is.slot, &array.name];
        if is.quarantined && !was.quarantined {
            told.push(Event::new(&say::DRIVE_HANGS, &args, origin.clone()));
        }
        let is_other = is.drive != was.drive || is.serial != was.serial;
        match is.state {
            SlotState::Failed if was.state != SlotState::Failed => {
                let reason = is.reason.as_deref().unwrap_or("taken out of service");
                let args: [&dyn Display; 4] = [&drive, &is.slot, &array.name, &reason];
                told.push(Event::new(&say::DRIVE_OUT, &args, origin));
            }
            SlotState::Missing if was.state != SlotState::Missing => {
                told.push(Event::new(&say::DRIVE_MISSING, &args, origin));
            }
            SlotState::Rebuilding if was.state != SlotState::Rebuilding || is_other => {
                told.push(Event::new(&say::DRIVE_REPLACED, &args, origin));
            }
            SlotState::InSync if was.state != SlotState::InSync => {
                // A rebuild that began and ended between the two views.
                if is_other && was.state != SlotState::Rebuilding {
                    told.push(Event::new(&say::DRIVE_REPLACED, &args, origin.clone()));
                }
                told.push(Event::new(&say::DRIVE_BACK, &args, origin));
            }
            _ => {}
        }
    }

    /// What became of arrays, and of what is on them.
    fn states(&self, told: &mut Vec<Event>) {
        for array in &self.after.status.arrays {
            let origin = || uri::pool(&array.uuid);
            let name = &array.name;
            let old = self.old.get(array.uuid.as_str()).copied();
            let was = old.map(|old| old.state);
            let mut tell = |notice| told.push(Event::new(notice, &[name], origin()));
            let is_stopped = |state| state == ArrayState::Stopped;
            match was {
                None if is_stopped(array.state) => tell(&say::ARRAY_FOUND),
                None => {
                    let args: [&dyn Display; 2] = [name, &array.level];
                    told.push(Event::new(&say::ARRAY_CREATED, &args, origin()));
                }
                Some(was) if was == array.state => {}
                Some(was) if is_stopped(was) => tell(&say::ARRAY_STARTED),
                Some(_) if is_stopped(array.state) => tell(&say::ARRAY_STOPPED),
                Some(_) => {}
            }
            let is_new = was.is_none_or(is_stopped);
            let became = was != Some(array.state);
            let notice = match array.state {
                ArrayState::Degraded if became => Some(&say::ARRAY_DEGRADED),
                ArrayState::Failed if became => Some(&say::ARRAY_FAILED),
                ArrayState::Optimal if became && !is_new => Some(&say::ARRAY_OPTIMAL),
                _ => None,
            };
            told.extend(notice.map(|notice| Event::new(notice, &[name], origin())));
            let problem = array.problem.as_ref().filter(|_| is_stopped(array.state));
            if let Some(problem) = problem
                && old.is_none_or(|old| old.problem.as_ref() != Some(problem))
            {
                told.push(Event::new(&say::ARRAY_DOES_NOT_START, &[name, problem], origin()));
            }
            lost(old, array, told);
        }
    }

    /// What came: volumes, exports, hosts.
    fn more(&self, told: &mut Vec<Event>) {
        for array in self.after.status.arrays.iter().filter(|new| new.state != ArrayState::Stopped)
        {
            let old = self.old.get(array.uuid.as_str()).copied();
            // What an array has that was stopped came with it.
            let was_stopped = old.is_some_and(|old| old.state == ArrayState::Stopped);
            let volumes = by(old.iter().flat_map(|old| &old.volumes), volume_id);
            let exports = by(old.iter().flat_map(|old| &old.exports), export_id);
            for volume in array.volumes.iter().filter(|_| !was_stopped) {
                volume_came(array, volumes.get(volume.uuid.as_str()).copied(), volume, told);
            }
            for export in &array.exports {
                let was = exports.get(export.id.as_str()).copied();
                export_came(array, was, export, was_stopped, told);
            }
        }
        let there = hosts(self.before);
        for ((subsystem, host), origin) in hosts(self.after) {
            if !there.contains_key(&(subsystem, host)) {
                let args: [&dyn Display; 2] = [&host, &subsystem];
                told.push(Event::new(&say::HOST_CONNECTED, &args, origin));
            }
        }
    }
}

/// What became of blocks, and what a scrub found. Of an array that does not run only the record is
/// known, which has not all that could not be read: it is compared with nothing.
fn lost(old: Option<&Array>, new: &Array, told: &mut Vec<Event>) {
    let runs = |array: &Array| array.state != ArrayState::Stopped;
    let before = old.filter(|old| runs(old) || !runs(new)).map(unreadable).unwrap_or_default();
    let after = unreadable(new);
    let origin = |name: &str| {
        let volume = new.volumes.iter().find(|volume| volume.name == name);
        volume.map_or_else(|| uri::pool(&new.uuid), |volume| uri::volume(&volume.uuid))
    };
    let stops = old.is_some_and(runs) && !runs(new);
    for (volume, ranges) in after.iter().filter(|_| !stops) {
        let known = before.get(volume).map_or(&[][..], Vec::as_slice);
        if ranges.iter().any(|range| !is_within(known, *range)) {
            let bytes: u64 = ranges.iter().map(|(begin, end)| end - begin).sum();
            let args: [&dyn Display; 3] = [volume, &new.name, &bytes];
            told.push(Event::new(&say::BLOCKS_LOST, &args, origin(volume)));
        }
    }
    // A volume that was deleted has nothing to read.
    let is_there = |name: &str| new.volumes.iter().any(|volume| volume.name == name);
    let is_back = |name: &&&str| !after.contains_key(**name) && is_there(name);
    let both_run = old.is_some_and(runs) && runs(new);
    for volume in before.keys().filter(|name| both_run && is_back(name)) {
        told.push(Event::new(&say::BLOCKS_BACK, &[volume, &new.name], origin(volume)));
    }
    let last = |array: &Array| array.last_scrub.as_ref().map(|scrub| scrub.ended);
    if let (Some(old), Some(scrub)) = (old, &new.last_scrub)
        && last(old) != Some(scrub.ended)
        && old.state != ArrayState::Stopped
        && scrub.mismatches > 0
    {
        let args: [&dyn Display; 2] = [&new.name, &scrub.mismatches];
        told.push(Event::new(&say::SCRUB_FOUND, &args, uri::pool(&new.uuid)));
    }
}

fn volume_came(array: &Array, was: Option<&Volume>, is: &Volume, told: &mut Vec<Event>) {
    let notice = match was {
        None => &say::VOLUME_CREATED,
        Some(was) if was.size_bytes != is.size_bytes => &say::VOLUME_RESIZED,
        Some(_) => return,
    };
    let args: [&dyn Display; 3] = [&is.name, &array.name, &is.size_bytes];
    told.push(Event::new(notice, &args, uri::volume(&is.uuid)));
}

fn export_came(
    array: &Array,
    was: Option<&Export>,
    is: &Export,
    was_stopped: bool,
    told: &mut Vec<Event>,
) {
    let origin = export_uri(array, is);
    let args: [&dyn Display; 3] = [&is.volume, &array.name, &is.uri];
    if was.is_none() && !was_stopped {
        told.push(Event::new(&say::EXPORT_CREATED, &args, origin.clone()));
    }
    // What an array serves that was stopped need not be told, nor one that only was about to.
    let was_served =
        was.is_none() || was_stopped || was.is_some_and(|was| was.serving || was.problem.is_none());
    match (was_served, is.serving, &is.problem) {
        (true, false, Some(problem)) => {
            let args: [&dyn Display; 3] = [&is.volume, &array.name, problem];
            told.push(Event::new(&say::EXPORT_FAILED, &args, origin));
        }
        (false, true, _) => told.push(Event::new(&say::EXPORT_SERVED, &args, origin)),
        _ => {}
    }
}

/// What became of drives as such.
fn drives(before: &View, after: &View, told: &mut Vec<Event>) {
    let (old, new) = (by(&before.drives, drive_id), by(&after.drives, drive_id));
    let serial = |known: &KnownDrive| match known.drive.serial.as_str() {
        "" => "-".to_owned(),
        serial => serial.to_owned(),
    };
    for known in gone(&before.drives, &new, drive_id) {
        let args: [&dyn Display; 2] = [&known.drive.path, &serial(known)];
        told.push(Event::new(&say::DRIVE_GONE, &args, uri::drive(&known.id)));
    }
    for known in &after.drives {
        let (path, origin) = (&known.drive.path, || uri::drive(&known.id));
        let before = old.get(known.id.as_str()).copied();
        let was = before.map(|was| was.drive.state);
        if was.is_none() {
            told.push(Event::new(&say::DRIVE_CAME, &[path, &serial(known)], origin()));
        }
        let was_usable = was != Some(DriveState::Unusable);
        match (was_usable, known.drive.state == DriveState::Unusable) {
            (true, true) => {
                let problem = known.drive.problem.as_deref().unwrap_or("it can't be opened");
                told.push(Event::new(&say::DRIVE_UNUSABLE, &[path, &problem], origin()));
            }
            (false, false) => told.push(Event::new(&say::DRIVE_USABLE, &[path], origin())),
            _ => {}
        }
        health::changed(before, known, told);
    }
}

/// What became of tasks: their ends, or all else.
fn jobs(before: &View, after: &View, told: &mut Vec<Event>, ends: bool) {
    let old = by(&before.jobs, |job: &Job| job.id.as_str());
    for job in &after.jobs {
        let was = old.get(job.id.as_str()).copied();
        let (task, origin) = (&job.task.id, || uri::job(&job.id));
        if ends {
            let Some((_, end)) = job.ended.filter(|_| was.is_none_or(|was| was.ended.is_none()))
            else {
                continue;
            };
            if was.is_none() {
                told.push(Event::new(&say::JOB_STARTED, &[task], origin()));
            }
            let notice = match end {
                JobEnd::Completed => &say::JOB_COMPLETED,
                JobEnd::Cancelled => &say::JOB_CANCELLED,
                JobEnd::Interrupted => &say::JOB_INTERRUPTED,
            };
            told.push(Event::new(notice, &[task], origin()));
            continue;
        }
        if job.ended.is_some() {
            continue;
        }
        if was.is_none() {
            told.push(Event::new(&say::JOB_STARTED, &[task], origin()));
        }
        let state = was.map_or(TaskState::Running, |was| was.task.state);
        match (state, job.task.state) {
            (TaskState::Stuck, TaskState::Stuck)
            | (TaskState::Paused, TaskState::Paused)
            | (TaskState::Running, TaskState::Running) => {}
            (_, TaskState::Stuck) => {
                let problem = job.task.problem.as_deref().unwrap_or("it waits for drives");
                told.push(Event::new(&say::JOB_STUCK, &[task, &problem], origin()));
            }
            (_, TaskState::Paused) => {
                told.push(Event::new(&say::JOB_PAUSED, &[task], origin()));
            }
            (_, TaskState::Running) => {
                told.push(Event::new(&say::JOB_GOES_ON, &[task], origin()));
            }
        }
    }
}

/// What became of the daemon itself.
fn daemon(before: &View, after: &View, told: &mut Vec<Event>) {
    match (&before.status.state.problem, &after.status.state.problem) {
        (None, Some(problem)) => {
            told.push(Event::new(&say::STATE_PROBLEM, &[problem], uri::MANAGER));
        }
        (Some(_), None) => told.push(Event::new(&say::STATE_WELL, &[], uri::MANAGER)),
        _ => {}
    }
    if after.status.parity.gpu_suspect && !before.status.parity.gpu_suspect {
        told.push(Event::new(&say::GPU_SUSPECT, &[], uri::STORAGE));
    }
    if let (Some(was), Some(is)) = (&before.https.certificate, &after.https.certificate)
        && was.fingerprint != is.fingerprint
    {
        let origin = uri::CERTIFICATE;
        told.push(Event::new(&say::CERTIFICATE_REPLACED, &[&is.fingerprint], origin));
    }
    accounts(before, after, told);
}

/// What became of accounts. Their service is what all may read.
fn accounts(before: &View, after: &View, told: &mut Vec<Event>) {
    let (old, new) = (&before.access.accounts, &after.access.accounts);
    let of = |all: &[crate::access::Account], name: &str| {
        all.iter().find(|account| account.name == name).cloned()
    };
    for account in old.iter().filter(|account| of(new, &account.name).is_none()) {
        told.push(Event::new(&say::ACCOUNT_DELETED, &[&account.name], uri::ACCOUNT_SERVICE));
    }
    for account in new {
        let notice = match of(old, &account.name) {
            None => &say::ACCOUNT_CREATED,
            Some(was) if was != *account => &say::ACCOUNT_CHANGED,
            Some(_) => continue,
        };
        told.push(Event::new(notice, &[&account.name, &account.role], uri::ACCOUNT_SERVICE));
    }
}

#[cfg(test)]
#[path = "between_tests.rs"]
mod tests;
