//! Drives: named, alone, as good as they could be.

use super::as_root;
use crate::Said;
use crate::facts::{By, Content, Daemon, Drive, Facts, Use};
use drives::sysfs::{Comparison, Device};
use health::rules::Level;
use redfish::view::{DriveState, Health};
use std::collections::BTreeMap;
use units::format_size;

/// Drives that the configuration names.
fn listed(facts: &Facts) -> impl Iterator<Item = &Drive> {
    facts.drives.iter().filter(|drive| drive.is_listed)
}

/// What was found, or that all is well with the drives that are named, if there are any.
fn or_ok(facts: &Facts, found: Vec<Said>, well: &str) -> Vec<Said> {
    match found.is_empty() && listed(facts).next().is_some() {
        true => vec![Said::ok(well)],
        false => found,
    }
}

/// How to have the daemon read its configuration again.
fn reload(facts: &Facts) -> &'static str {
    match facts.daemon {
        Daemon::Absent => "; the next start reads it",
        _ => "; then: systemctl reload palisade",
    }
}

pub fn absent(facts: &Facts) -> Vec<Said> {
    let file = facts.config.file.display();
    if facts.config.is_usable() && facts.config.says.drives.is_empty() {
        return vec![Said::warning(
            format!("{file} names no drives"),
            "the daemon starts no array: it looks only at drives that are named",
            name_drives(facts),
        )];
    }
    let said = facts.absent.iter().map(|name| {
        Said::warning(
            format!("nothing is at {name}, which `drives` names"),
            "an array that has a drive there starts without it, and has less redundancy",
            format!(
                "plug it in, or correct the name in {file}; see what is there: palisade drive \
                 list, or nvme list"
            ),
        )
    });
    or_ok(facts, said.collect(), &format!("{} drives are there", listed(facts).count()))
}

/// How to name drives. A drive that is plugged in again while the daemon has it open may be
/// `nvme1n2`.
fn name_drives(facts: &Facts) -> String {
    let (file, reload) = (facts.config.file.display(), reload(facts));
    match facts.drives.iter().find(|drive| drive.uses.iter().any(is_systems)) {
        Some(own) => format!(
            "write them one by one, without {}, which the system is on, into `drives` in {file}; \
             names that stay are shown by: ls -l /dev/disk/by-id{reload}",
            own.path
        ),
        None => {
            format!("write drives = [\"/dev/nvme*n?\"], or their paths, into {file}{reload}")
        }
    }
}

/// A drive for people.
fn about(drive: &Drive) -> String {
    let device = drive.device.as_ref();
    let size = device.and_then(|device| device.bytes).map(format_size);
    let serial = device.and_then(|device| device.identity.serial.as_ref());
    let parts = [size, serial.map(|serial| format!("serial {serial}"))];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => drive.path.clone(),
        false => format!("{} ({})", drive.path, parts.join(", ")),
    }
}

/// The array that a drive belongs to, and its slot.
fn slot_of(drive: &Drive) -> Option<(&str, u16)> {
    if let Some(Content::Slot { array, slot, .. }) = &drive.content {
        return Some((array, *slot));
    }
    let known = &drive.known.as_ref()?.drive;
    Some((known.array.as_deref()?, known.slot?))
}

/// Whether nothing is on a drive, by what was read or by the daemon's word.
fn is_blank(drive: &Drive) -> bool {
    match &drive.content {
        Some(content) => *content == Content::Blank,
        None => drive.known.as_ref().is_some_and(|known| known.drive.state == DriveState::Free),
    }
}

/// What is on a drive that is nobody's here, likewise.
fn foreign_of(drive: &Drive) -> Option<&str> {
    match (&drive.content, &drive.known) {
        (Some(Content::Foreign(what)), _) => Some(what),
        (None, Some(known)) if known.drive.state == DriveState::Foreign => {
            Some(known.drive.signature.as_deref().unwrap_or("something unknown"))
        }
        _ => None,
    }
}

/// What is said of those of these drives that could not be read, together.
fn unread<'a>(facts: &Facts, drives: impl Iterator<Item = &'a Drive>) -> Option<Said> {
    let paths: Vec<&str> = drives
        .filter(|d| d.content.is_none() && d.known.is_none())
        .map(|d| d.path.as_str())
        .collect();
    let (first, again) = (paths.first()?, as_root(facts));
    Some(Said::unknown(
        format!("what is on {} is not known", paths.join(", ")),
        "what could not be read may be an array's, or be needed by somebody else",
        format!("run: {again}; if root can't read it either: dd if={first} of=/dev/null count=1"),
    ))
}

pub fn unlisted(facts: &Facts) -> Vec<Said> {
    let file = facts.config.file.display();
    let mend =
        |drive: &Drive| format!("add \"{}\" to `drives` in {file}{}", drive.path, reload(facts));
    let others = || facts.drives.iter().filter(|d| !d.is_listed && d.uses.is_empty());
    let said = others().filter_map(|drive| match slot_of(drive) {
        Some((array, slot)) => Some(Said::critical(
            format!("{} is slot {slot} of array \"{array}\", and not in `drives`", about(drive)),
            "the next start looks only at drives that are named: the array starts without it, and \
             has less redundancy",
            mend(drive),
        )),
        None if is_blank(drive) => Some(Said::warning(
            format!("{} is in no use, and not in `drives`", about(drive)),
            "the daemon does not know it: no array can be made of it, none be repaired with it",
            mend(drive),
        )),
        None => None,
    });
    let mut found: Vec<_> = said.collect();
    found.extend(unread(facts, others().filter(|drive| slot_of(drive).is_none())));
    or_ok(facts, found, "no drive of an array, and no other NVMe drive, is left out")
}

/// Whether one device is a part of the other.
fn is_part_of(part: &Device, whole: &Device) -> bool {
    part.part_of.as_ref() == Some(&whole.name)
}

pub fn twice(facts: &Facts) -> Vec<Said> {
    let all: Vec<(&Drive, &Device)> =
        listed(facts).filter_map(|drive| Some((drive, drive.device.as_ref()?))).collect();
    let mut found = Vec::new();
    for (at, (one, device)) in all.iter().enumerate() {
        for (two, other) in all.iter().skip(at + 1) {
            let what = if device.identity.compare(&other.identity) == Comparison::Same {
                "are one drive by two ways"
            } else if is_part_of(device, other) || is_part_of(other, device) {
                "lie on one another"
            } else {
                continue;
            };
            found.push(Said::critical(
                format!("{} and {} {what}", one.path, two.path),
                "an array of both would write each over the other, and lose both when one fails",
                format!(
                    "take one of them out of `drives` in {}{}",
                    facts.config.file.display(),
                    reload(facts)
                ),
            ));
        }
    }
    or_ok(facts, found, "no drive is named twice")
}

/// Directories whose file systems the system runs on.
const SYSTEM: [&str; 14] = [
    "bin", "boot", "efi", "etc", "home", "lib", "nix", "opt", "root", "sbin", "sysroot", "tmp",
    "usr", "var",
];

/// Whether the system needs what is there: then nothing is told that would end it.
fn is_systems(own: &Use) -> bool {
    let is_needed = |place: &String| {
        let first = place.trim_start_matches('/').split('/').next().unwrap_or_default();
        first.is_empty() || SYSTEM.contains(&first)
    };
    own.is_swap || own.mounts.iter().any(is_needed)
}

/// A word of a command.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@%".contains(c);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// What has a drive, and what ends that.
fn user(own: &Use) -> (String, String) {
    let part = format!("/dev/{}", own.part);
    // What is mounted below another place ends first.
    let words: Vec<String> = own.mounts.iter().rev().map(|at| quoted(at)).collect();
    let (told, places) = (own.mounts.join(", "), words.join(" "));
    let (what, end) = match &own.by {
        By::Mount => return (format!("{part} is mounted at {told}"), format!("umount {places}")),
        By::Swap => return (format!("{part} is swap space"), "swapon --show".to_owned()),
        By::Md(md) => (format!("{part} belongs to {md}"), format!("mdadm --stop {md}")),
        By::Mapper { group: Some(group), .. } => {
            (format!("{part} belongs to volume group {group}"), format!("vgchange -an {group}"))
        }
        By::Mapper { name, group: None } => {
            (format!("{part} is below /dev/mapper/{name}"), format!("dmsetup remove {name}"))
        }
        By::Holder(holder) => {
            (format!("{part} is below {holder}"), format!("lsblk --inverse {holder}"))
        }
    };
    if places.is_empty() { (what, end) } else { (what, format!("umount {places} && {end}")) }
}

/// What is said of a drive that the system is on: one thing, whatever has which part of it.
fn of_system(facts: &Facts, drive: &Drive) -> Option<Said> {
    let uses = || drive.uses.iter().filter(|own| is_systems(own));
    uses().next()?;
    let mut places: Vec<&str> = uses().flat_map(|own| &own.mounts).map(String::as_str).collect();
    places.extend(uses().any(|own| own.is_swap).then_some("swap"));
    places.sort();
    places.dedup();
    let (path, file) = (&drive.path, facts.config.file.display());
    let is_alone = facts.config.says.drives.contains(path);
    Some(Said::warning(
        format!("the system is on {path} ({}), and `drives` names it", places.join(", ")),
        "the daemon leaves it alone while it is in use, and would count it as one of its drives \
         when it is not",
        match is_alone {
            true => format!("take it out of `drives` in {file}"),
            false => format!(
                "write the others one by one, without it, into `drives` in {file}; names that \
                 stay are shown by: ls -l /dev/disk/by-id"
            ),
        },
    ))
}

pub fn in_use(facts: &Facts) -> Vec<Said> {
    let file = facts.config.file.display();
    let of_others = |drive: &Drive| {
        let said = drive.uses.iter().map(|own| {
            let (what, end) = user(own);
            Said::warning(
                format!("{what}, and `drives` names {}", drive.path),
                "the daemon leaves a drive alone that another program has: an array that it \
                 belongs to starts without it",
                format!("run: {end}; or take it out of `drives` in {file}"),
            )
        });
        said.collect::<Vec<_>>()
    };
    let said = listed(facts).flat_map(|drive| match of_system(facts, drive) {
        Some(one) => vec![one],
        None => of_others(drive),
    });
    or_ok(facts, said.collect(), "no other program has a drive")
}

pub fn foreign(facts: &Facts) -> Vec<Said> {
    let foreign = listed(facts)
        .filter(|drive| drive.uses.is_empty())
        .filter_map(|drive| Some((drive, foreign_of(drive)?)));
    let said = foreign.map(|(drive, what)| {
        let path = &drive.path;
        Said::warning(
            format!("{path} holds {what}"),
            "it is no array's, and is refused for one so that nothing is lost that somebody needs",
            format!(
                "if nobody needs it, run: palisade drive wipe {path} --overwrite {path}; else take \
                 it out of `drives` in {}",
                facts.config.file.display()
            ),
        )
    });
    let mut found: Vec<_> = said.collect();
    let is_used = |drive: &Drive| !drive.uses.is_empty() || slot_of(drive).is_some();
    found.extend(unread(facts, listed(facts).filter(|drive| !is_used(drive))));
    or_ok(facts, found, "no drive holds anything foreign")
}

pub fn unusable(facts: &Facts) -> Vec<Said> {
    let Some(told) = facts.daemon.told() else { return Vec::new() };
    // Of what others have, and of what is not there, checks of their own tell.
    let is_told = |path: &String| {
        let used = facts.drives.iter().filter(|drive| !drive.uses.is_empty());
        facts.absent.contains(path) || used.map(|drive| &drive.path).any(|own| own == path)
    };
    let drives = told
        .drives
        .iter()
        .filter(|known| known.drive.state != DriveState::Unusable || !is_told(&known.drive.path));
    let bad = drives.filter_map(|known| {
        let path = &known.drive.path;
        match known.drive.state {
            DriveState::Unusable => {
                let why = known.drive.problem.as_deref().unwrap_or("it does not say why");
                Some(Said::critical(
                    format!("the daemon can't use {path}: {why}"),
                    "an array that it belongs to runs without it, and has less redundancy",
                    format!(
                        "let the daemon's user open it, or replace it: palisade drive show {path}"
                    ),
                ))
            }
            DriveState::Failed => Some(Said::critical(
                format!("{path} is out of service"),
                "its array has less redundancy until it is replaced",
                format!(
                    "run: palisade array replace {} --slot {} --with DRIVE",
                    known.drive.array.as_deref().unwrap_or("NAME"),
                    known.drive.slot.map_or("N".to_owned(), |slot| slot.to_string())
                ),
            )),
            _ => None,
        }
    });
    or_ok(facts, bad.collect(), "the daemon can use its drives")
}

/// A link's width for people: `8.0 GT/s x4`.
fn width(width: drives::sysfs::Width) -> String {
    let tenths = width.megatransfers / 100;
    format!("{}.{} GT/s x{}", tenths / 10, tenths % 10, width.lanes)
}

pub fn link(facts: &Facts) -> Vec<Said> {
    if facts.config.says.health.link == 0 {
        return Vec::new();
    }
    let links = listed(facts)
        .filter_map(|drive| Some((drive, drive.device.as_ref()?.pci.as_ref()?)))
        .filter_map(|(drive, pci)| Some((drive, pci, pci.link?)));
    let links: Vec<_> = links.collect();
    let said = links.iter().filter(|(_, _, link)| link.is_reduced()).map(|(drive, pci, link)| {
        Said::warning(
            format!(
                "the link of {} is {}, and could be {}",
                drive.path,
                width(link.now),
                width(link.could_be())
            ),
            "the drive is slower than it could be, and an array is as slow as its slowest drive",
            format!(
                "seat it anew or try another slot; what the kernel met is shown by: lspci -vvs {}",
                pci.address
            ),
        )
    });
    let found: Vec<_> = said.collect();
    match (found.is_empty(), links.is_empty()) {
        (false, _) => found,
        (_, true) => Vec::new(),
        (_, false) => vec![Said::ok("links are as wide and fast as they can be")],
    }
}

pub fn health(facts: &Facts) -> Vec<Said> {
    const WHY: &str = "a drive that is not well may fail soon; while it still answers it can be \
                       replaced without losing redundancy";
    let mut found = Vec::new();
    let mut is_known = false;
    for drive in listed(facts) {
        let mut add = |is_critical: bool, what: &str, action: &str| {
            let (what, mend) = (format!("{}: {what}", drive.path), action.to_owned());
            found.push(match is_critical {
                true => Said::critical(what, WHY, mend),
                false => Said::warning(what, WHY, mend),
            });
        };
        if let Some(known) = &drive.known {
            is_known = true;
            // The link is told by a check of its own.
            for reason in known.hardware.reasons.iter().filter(|reason| reason.rule != "link") {
                add(reason.health == Health::Critical, &reason.what, &reason.action);
            }
        } else if let Some(verdict) = &drive.verdict {
            is_known = true;
            for reason in &verdict.reasons {
                add(reason.level == Level::Critical, &reason.what, &reason.action);
            }
        }
    }
    match (found.is_empty(), is_known) {
        (false, _) => found,
        (_, true) => vec![Said::ok("drives are well")],
        (_, false) => Vec::new(),
    }
}

pub fn blocks(facts: &Facts) -> Vec<Said> {
    let mut sizes: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for drive in listed(facts) {
        if let Some(bytes) = drive.block_bytes {
            sizes.entry(bytes).or_default().push(&drive.path);
        }
    }
    let Some((most, _)) = sizes.iter().max_by_key(|(bytes, paths)| (paths.len(), **bytes)) else {
        return Vec::new();
    };
    if sizes.len() == 1 {
        return vec![Said::ok(format!("drives have blocks of {most} bytes"))];
    }
    let words = sizes.iter().map(|(bytes, paths)| format!("{bytes} bytes: {}", paths.join(", ")));
    let words: Vec<String> = words.collect();
    let other = sizes.iter().find(|(bytes, _)| *bytes != most).and_then(|(_, paths)| paths.first());
    vec![Said::warning(
        format!("drives have blocks of several sizes ({})", words.join("; ")),
        "an array of small blocks can't be repaired with a drive of large ones",
        format!(
            "give those that hold nothing the same size, which erases them; their formats are \
             shown by: nvme id-ns -H {}",
            other.unwrap_or(&"DRIVE")
        ),
    )]
}
