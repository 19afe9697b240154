//! Drives: those that the configuration names, and other NVMe drives.
//!
//! Purpose: what the kernel's tree tells of them, and of this machine's own what is on them and how
//! well they are. What a daemon that runs has told is not asked of the drive again.
//!
//! Invariants
//! - A drive is opened only to be read, and not at all where another program or an array has it.
//! - Each drive is asked on a thread of its own, all at once. Those that have not answered when
//!   [`PATIENCE`] is over are left to themselves.

use super::{PATIENCE, Proc, text};
use crate::facts::{By, Configured, Content, Daemon, Drive, Listener, ListenerOf, Told, Use};
use crate::gather::network::listener;
use control::{config, probe};
use drives::admin::{Admin, KernelAdmin};
use drives::remote::Name;
use drives::sysfs::{Device, Kind, Sysfs, Transport};
use drives::{OpenOptions, SharedDrive};
use format::{ArrayRecord, ExportAddress, ExportRecord};
use health::rules::{Facts, Judge, Smart, Verdict};
use health::settings::Settings;
use redfish::view::DriveState;
use std::collections::BTreeSet;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Instant;

/// What was seen.
pub struct Seen {
    /// The drives.
    pub drives: Vec<Drive>,
    /// What is named and not there.
    pub absent: Vec<String>,
    /// Where exports listen, by the records.
    pub listeners: Vec<Listener>,
    /// The latest moment that a record tells of, in seconds since 1970.
    pub latest: Option<u64>,
}

/// What a drive told.
#[derive(Default)]
struct Answer {
    content: Option<Content>,
    exports: Vec<Listener>,
    verdict: Option<Verdict>,
}

/// Looks at all drives, below this root of devices; whether that is this machine's own.
pub fn look(
    proc: &Proc<'_>,
    config: &Configured,
    daemon: &Daemon,
    (sysfs, is_own): (&Path, bool),
    now: u64,
) -> Seen {
    let devices = Sysfs::new(sysfs).devices();
    let (mut drives, absent) = listed(config, &devices, (is_own, daemon.told()));
    let named = drives.iter().filter_map(|drive| drive.device.as_ref());
    let named: BTreeSet<String> =
        named.flat_map(|d| core::iter::once(&d.name).chain(&d.part_of)).cloned().collect();
    drives.extend(others(&devices, &named));
    let more = unnamed(daemon.told(), &drives);
    drives.extend(more);
    let mounts = proc.text("self/mountinfo").unwrap_or_default();
    let swaps = proc.text("swaps").unwrap_or_default();
    for drive in &mut drives {
        drive.known = known(daemon.told(), drive);
        if let Some(device) = &drive.device {
            drive.block_bytes = block_bytes(sysfs, device);
            drive.uses = uses(sysfs, &devices, device, (&mounts, &swaps));
        }
    }
    let settings = config.says.health;
    let answers = ask(&drives, is_own, settings, now);
    let (mut listeners, mut latest) = (Vec::new(), None);
    for (drive, answer) in drives.iter_mut().zip(answers) {
        (drive.content, drive.verdict) = (answer.content, answer.verdict);
        let fresh = answer.exports.into_iter().filter(|one| !listeners.contains(one));
        listeners.extend(fresh.collect::<Vec<_>>());
        if let Some(Content::Slot { latest: own, .. }) = drive.content {
            latest = latest.max(Some(own));
        }
    }
    Seen { drives, absent, listeners, latest }
}

/// What the configuration names: drives that are there, and names that lead nowhere. Those behind a
/// fabric are as the daemon tells of them; nothing is known of them without it.
fn listed(
    config: &Configured,
    devices: &[Device],
    (is_own, told): (bool, Option<&Told>),
) -> (Vec<Drive>, Vec<String>) {
    let (mut drives, mut absent, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    for pattern in &config.says.drives {
        if let Some(Ok(name)) = Name::of(Path::new(pattern)) {
            let there = behind(&name, told);
            if told.is_some() && there.is_empty() {
                absent.push(pattern.clone());
            }
            let new = there.into_iter().filter(|path| seen.insert(PathBuf::from(path)));
            drives.extend(new.map(|path| drive(path, true, None)));
            continue;
        }
        let mut paths = config::paths(pattern);
        if !is_own {
            let recorded = devices.iter().filter(|device| !device.hidden).map(Device::node);
            paths.extend(recorded.filter(|node| config::names(pattern, node)));
        }
        let mut is_there = false;
        for path in paths {
            let device = device_at(&path, devices, is_own);
            if device.is_none() && !path.exists() {
                continue;
            }
            is_there = true;
            let real = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            if seen.insert(real) {
                drives.push(drive(path.display().to_string(), true, device));
            }
        }
        if !is_there {
            absent.push(pattern.clone());
        }
    }
    (drives, absent)
}

/// The drives behind a fabric that a name stands for, of those that the daemon tells of.
fn behind(name: &Name, told: Option<&Told>) -> Vec<String> {
    let is_meant = |path: &&String| match Name::of(Path::new(path)) {
        Some(Ok(own)) => {
            (name.subsystem.is_none() || name.subsystem == own.subsystem)
                && (name.namespace.is_none() || name.namespace == own.namespace)
        }
        _ => false,
    };
    let all = told.iter().flat_map(|told| &told.drives).map(|known| &known.drive.path);
    all.filter(is_meant).cloned().collect()
}

/// NVMe drives of this machine that are not named, nor a part of them, and that anybody could open.
/// `named` has the drives of partitions that are named.
fn others(devices: &[Device], named: &BTreeSet<String>) -> Vec<Drive> {
    let is_local = |device: &Device| device.transport().is_none_or(|t| t == Transport::Pcie);
    let is_other = |device: &&Device| {
        device.kind == Kind::Nvme
            && device.partition.is_none()
            && !device.hidden
            && device.bytes.is_none_or(|bytes| bytes > 0)
            && is_local(device)
            && !named.contains(&device.name)
    };
    let all = devices.iter().filter(is_other);
    all.map(|one| drive(one.node().display().to_string(), false, Some(one.clone()))).collect()
}

/// Drives that arrays of the daemon have, and that are not among these.
fn unnamed(told: Option<&Told>, drives: &[Drive]) -> Vec<Drive> {
    let real = |path: &str| std::fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
    let there: BTreeSet<PathBuf> = drives.iter().map(|drive| real(&drive.path)).collect();
    let all = told.iter().flat_map(|told| &told.drives);
    let used = all.filter(|known| known.drive.state == DriveState::InUse);
    let more = used.map(|known| &known.drive.path).filter(|path| !there.contains(&real(path)));
    more.map(|path| drive(path.clone(), false, None)).collect()
}

fn drive(path: String, is_listed: bool, device: Option<Device>) -> Drive {
    let (block_bytes, uses, content, verdict, known) = (None, Vec::new(), None, None, None);
    Drive { path, is_listed, device, block_bytes, uses, content, verdict, known }
}

/// The device at a path: by its number on this machine, by its name in a recorded tree.
fn device_at(path: &Path, devices: &[Device], is_own: bool) -> Option<Device> {
    let is_it: Box<dyn Fn(&&Device) -> bool> = match (is_own, std::fs::metadata(path)) {
        (true, Ok(found)) if found.file_type().is_block_device() => {
            let number = (rustix::fs::major(found.rdev()), rustix::fs::minor(found.rdev()));
            Box::new(move |device| device.number == Some(number))
        }
        (false, _) => Box::new(|device| device.node() == path),
        _ => return None,
    };
    devices.iter().find(is_it).cloned()
}

fn known(told: Option<&Told>, drive: &Drive) -> Option<redfish::view::KnownDrive> {
    let real = |path: &str| std::fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
    let own = real(&drive.path);
    let mut all = told?.drives.iter();
    all.find(|known| known.drive.path == drive.path || real(&known.drive.path) == own).cloned()
}

/// The directory of a device, by its name.
fn directory(sysfs: &Path, name: &str) -> PathBuf {
    sysfs.join("class/block").join(name.replace('/', "!"))
}

fn block_bytes(sysfs: &Path, device: &Device) -> Option<u32> {
    let own = directory(sysfs, &device.name);
    let files = ["queue/logical_block_size", "../queue/logical_block_size"];
    files.iter().find_map(|file| text(&own.join(file))?.trim().parse().ok())
}

/// The partitions of a device.
fn parts<'a>(devices: &'a [Device], name: &'a str) -> impl Iterator<Item = &'a Device> {
    devices.iter().filter(move |other| other.part_of.as_deref() == Some(name))
}

/// The devices that are made of this one, by name.
fn holders(sysfs: &Path, name: &str) -> Vec<String> {
    let entries = std::fs::read_dir(directory(sysfs, name).join("holders")).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.map(|name| name.replace('!', "/")).collect();
    names.sort();
    names
}

/// A device, what is made of it, their partitions, and so on.
fn above<'a>(sysfs: &Path, devices: &'a [Device], own: &'a Device) -> Vec<&'a Device> {
    let mut found = vec![own];
    let mut at = 0;
    while let Some(device) = found.get(at).copied() {
        let holders = holders(sysfs, &device.name);
        let held = devices.iter().filter(|other| holders.contains(&other.name));
        // Partitions of the first have uses of their own.
        let parts = parts(devices, &device.name).filter(|_| at > 0);
        let new: Vec<_> = held.chain(parts).filter(|other| !found.contains(other)).collect();
        found.extend(new);
        at += 1;
    }
    found
}

/// Who has a device, or a part of it.
fn uses(
    sysfs: &Path,
    devices: &[Device],
    device: &Device,
    (mounts, swaps): (&str, &str),
) -> Vec<Use> {
    let mut found = Vec::new();
    for part in core::iter::once(device).chain(parts(devices, &device.name)) {
        let all = above(sysfs, devices, part);
        let mut places: Vec<String> =
            all.iter().flat_map(|one| mounts_of(sysfs, mounts, one)).collect();
        places.sort();
        places.dedup();
        let is_swap = all.iter().any(|one| is_swap(swaps, one));
        let name = &part.name;
        let mut add =
            |by| found.push(Use { part: name.clone(), by, mounts: places.clone(), is_swap });
        if !mounts_of(sysfs, mounts, part).is_empty() {
            add(By::Mount);
        }
        if self::is_swap(swaps, part) {
            add(By::Swap);
        }
        holders(sysfs, name).iter().for_each(|holder| add(held(sysfs, holder)));
    }
    found
}

/// Whether a device is swap space, by `/proc/swaps`.
fn is_swap(swaps: &str, device: &Device) -> bool {
    let node = device.node();
    swaps.lines().any(|line| line.split_whitespace().next().is_some_and(|n| node == Path::new(n)))
}

/// Where a device is mounted, by proc_pid_mountinfo(5). The third word is its number, which some
/// file systems make up; the second behind ` - ` is what was mounted.
fn mounts_of(sysfs: &Path, mounts: &str, device: &Device) -> Vec<String> {
    let number = device.number.map(|(major, minor)| format!("{major}:{minor}"));
    let mapping = text(&directory(sysfs, &device.name).join("dm/name"));
    let mapping = mapping.map(|name| Path::new("/dev/mapper").join(name.trim()));
    let nodes = [Some(device.node()), mapping];
    let place = |line: &str| {
        let (head, tail) = line.split_once(" - ").unwrap_or((line, ""));
        let mut words = head.split(' ').skip(2);
        let (own, at) = (words.next()?, words.nth(1)?);
        let source = tail.split(' ').nth(1).map(PathBuf::from);
        let is_it = number.as_deref() == Some(own) || source.is_some() && nodes.contains(&source);
        is_it.then(|| at.replace("\\040", " "))
    };
    mounts.lines().filter_map(place).collect()
}

/// What a device is that another one is made of.
fn held(sysfs: &Path, holder: &str) -> By {
    let own = directory(sysfs, holder);
    let said = |file: &str| text(&own.join(file)).map(|text| text.trim().to_owned());
    if own.join("md").is_dir() {
        return By::Md(format!("/dev/{holder}"));
    }
    match said("dm/name") {
        Some(name) => {
            let is_lvm = said("dm/uuid").is_some_and(|uuid| uuid.starts_with("LVM-"));
            By::Mapper { group: is_lvm.then(|| group(&name)), name }
        }
        None => By::Holder(format!("/dev/{holder}")),
    }
}

/// The volume group in the name of a mapping of LVM: what is before the first hyphen that is not
/// doubled.
fn group(name: &str) -> String {
    let plain = name.replace("--", "\0");
    plain.split('-').next().unwrap_or_default().replace('\0', "-")
}

/// Asks drives what is on them and how well they are.
fn ask(drives: &[Drive], is_own: bool, settings: Settings, now: u64) -> Vec<Answer> {
    let asked: Vec<_> = drives
        .iter()
        .map(|drive| {
            let (path, device) = (PathBuf::from(&drive.path), drive.device.clone());
            let is_in_use =
                |known: &redfish::view::KnownDrive| known.drive.state == DriveState::InUse;
            let is_read = (is_own || device.is_none())
                && drive.uses.is_empty()
                && !drive.known.as_ref().is_some_and(is_in_use);
            let is_judged = is_own && drive.known.is_none();
            let (tell, told) = mpsc::channel();
            std::thread::spawn(move || {
                let (content, exports) = if is_read { read(&path) } else { Default::default() };
                let verdict = device.filter(|_| is_judged).and_then(|d| judge(&d, &settings, now));
                // Nobody may wait for it any more.
                let _ = tell.send(Answer { content, exports, verdict });
            });
            told
        })
        .collect();
    let end = Instant::now() + PATIENCE;
    let wait = |told: mpsc::Receiver<Answer>| {
        told.recv_timeout(end.saturating_duration_since(Instant::now())).unwrap_or_default()
    };
    asked.into_iter().map(wait).collect()
}

/// What is on a drive, and where exports of its array listen.
fn read(path: &Path) -> (Option<Content>, Vec<Listener>) {
    let options = OpenOptions { read_only: true, exclusive: false, ..OpenOptions::default() };
    let Ok(drive) = SharedDrive::open(path, &options) else { return Default::default() };
    let found = probe::content(&drive);
    if let Some(record) = &found.record {
        let listeners = record.exports.iter().flat_map(|export| listeners(record, export));
        let content = Content::Slot {
            array: record.name.clone(),
            slot: record.this_slot.0,
            latest: record.last_scrub.map_or(0, |scrub| scrub.unix_seconds),
        };
        return (Some(content), listeners.collect());
    }
    let content = match (found.holds(), found.unread) {
        (Some(_), Some(probe::Unread::Drive)) => None,
        (Some(what), _) => Some(Content::Foreign(what)),
        (None, _) => Some(Content::Blank),
    };
    (content, Vec::new())
}

fn listeners(record: &ArrayRecord, export: &ExportRecord) -> Vec<Listener> {
    let of = |is_nvme| ListenerOf::Export { id: format!("{}:{}", record.name, export.id), is_nvme };
    match &export.address {
        ExportAddress::NbdTcp(address) => listener(address, of(false)).into_iter().collect(),
        ExportAddress::NbdUnix(_)
        | ExportAddress::Device
        | ExportAddress::File(_)
        | ExportAddress::Ublk
        | ExportAddress::VhostUser(_)
        | ExportAddress::Fc(_)
        | ExportAddress::NvmeFc(_) => Vec::new(),
        ExportAddress::Iscsi(iscsi) => {
            let all = iscsi.portals.iter();
            all.filter_map(|own| listener(&own.address, of(false))).collect()
        }
        ExportAddress::Shares(own) => {
            let all = own.listens();
            all.filter_map(|address| listener(address, of(false))).collect()
        }
        ExportAddress::NvmeTcp(nvme) => {
            let all = nvme.listeners.iter();
            all.filter_map(|own| listener(&own.address, of(true))).collect()
        }
    }
}

/// How well an NVMe drive is, by its own word. Its link is another matter.
fn judge(device: &Device, settings: &Settings, now: u64) -> Option<Verdict> {
    let admin = KernelAdmin::open(&device.controllers.first()?.node()).ok()?;
    let (controller, smart) = (admin.controller().ok()?, admin.smart().ok()?);
    let facts = Facts {
        smart: Some(Smart {
            critical_warning: smart.critical_warning,
            spare_percent: smart.available_spare,
            threshold_percent: smart.spare_threshold,
            used_percent: smart.percentage_used,
            media_errors: smart.media_errors,
        }),
        celsius: smart.celsius(),
        warning_celsius: nvme::smart::celsius(controller.warning_kelvin),
        critical_celsius: nvme::smart::celsius(controller.critical_kelvin),
        ..Facts::default()
    };
    Some(Judge::default().judge(&facts, settings, now))
}

#[cfg(test)]
#[path = "drives_tests.rs"]
mod tests;
