//! What is different between two looks at the block devices.
//!
//! Purpose: a pure function from two lists to what became of each device. Hidden paths of
//! namespaces are no part of it: their head says whether the drive is there.
//!
//! Invariants
//! - Each device of the first list stayed, or is named by one change; so is each of the second.
//! - A device that another one was put in place of, and that is nowhere else, is *replaced*; a
//!   device that went and is known under another name is *moved*, never gone.

use super::device::Device;
use super::identity::Comparison;

/// What became of a device. Names are the kernel's ([`Device::name`]).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Change {
    /// A device is there that was not.
    Appeared {
        /// Its name.
        name: String,
    },
    /// A device is no longer there.
    Gone {
        /// The name it had.
        name: String,
    },
    /// A device has another name: it was taken out and put back. Handles of it are of no use.
    Moved {
        /// The name it had.
        from: String,
        /// The name it has.
        to: String,
    },
    /// Another device has the name, or the same one was taken out and put back. Handles of the
    /// former are of no use.
    Replaced {
        /// The name.
        name: String,
    },
}

/// Whether both numbers are known, and differ.
fn came_anew(before: &Device, after: &Device) -> bool {
    matches!((before.diskseq, after.diskseq), (Some(one), Some(two)) if one != two)
}

/// Whether a device that has the name of the one before is still that one, as far as is known.
fn stayed(before: &Device, after: &Device) -> bool {
    let other = before.identity.compare(&after.identity) == Comparison::Other;
    before.name == after.name && !other && !came_anew(before, after)
}

/// Whether a device that has the name of the one before is that one, put back.
fn put_back(before: &Device, after: &Device) -> bool {
    before.name == after.name && before.identity.compare(&after.identity) == Comparison::Same
}

/// Takes the pairs of devices out of both lists for which `is_pair` holds.
fn take_pairs<'a, 'b>(
    before: &mut Vec<&'a Device>,
    after: &mut Vec<&'b Device>,
    is_pair: impl Fn(&Device, &Device) -> bool,
) -> Vec<(&'a Device, &'b Device)> {
    let mut pairs = Vec::new();
    before.retain(|one| {
        let found = after.iter().position(|two| is_pair(one, two));
        match found {
            Some(at) => pairs.push((*one, after.remove(at))),
            None => return true,
        }
        false
    });
    pairs
}

/// What became of the devices of one look by the next one. First those that went, then those that
/// moved or were replaced, then those that came, each in the order of the lists.
pub fn changes(before: &[Device], after: &[Device]) -> Vec<Change> {
    let mut old: Vec<&Device> = before.iter().filter(|device| !device.hidden).collect();
    let mut new: Vec<&Device> = after.iter().filter(|device| !device.hidden).collect();
    take_pairs(&mut old, &mut new, stayed);
    let back = take_pairs(&mut old, &mut new, put_back);
    let same = |one: &Device, two: &Device| one.identity.compare(&two.identity) == Comparison::Same;
    let moved = take_pairs(&mut old, &mut new, same);
    let replaced = take_pairs(&mut old, &mut new, |one, two| one.name == two.name);
    let gone = old.iter().map(|one| Change::Gone { name: one.name.clone() });
    let moved = moved
        .iter()
        .map(|(one, two)| Change::Moved { from: one.name.clone(), to: two.name.clone() });
    let replaced = back.iter().chain(&replaced);
    let replaced = replaced.map(|(one, _)| Change::Replaced { name: one.name.clone() });
    let appeared = new.iter().map(|two| Change::Appeared { name: two.name.clone() });
    gone.chain(moved).chain(replaced).chain(appeared).collect()
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
