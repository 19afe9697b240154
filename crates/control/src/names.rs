//! What people mean by a name: arrays, volumes, exports, tasks and drives of the view.
//!
//! Invariants
//! - A name that two arrays have, running or found, names neither where one could be lost by it.
//! - Of two arrays of one name, what only a running one can do is meant for the one that runs.

use crate::convert;
use crate::failure;
use crate::look::canonical;
use core::fmt::Display;
use engine::manage::command::ManageError;
use redfish::messages as say;
use redfish::view::{Array, ArrayState, Error, Export, SlotInfo, SlotState, TaskKind, Volume};
use std::path::Path;

/// Whether people who say `name` may mean this array.
fn is_called(name: &str, own: &str, uuid: &str) -> bool {
    name == own || name.eq_ignore_ascii_case(uuid)
}

/// Makes sure that a name is that of exactly one array.
pub(crate) fn one_of<T: Display>(name: &str, uuids: &[T]) -> Result<(), Error> {
    match uuids {
        [] => Err(unknown_array(name)),
        [_] => Ok(()),
        [first, second, ..] => Err(Error::new(&say::NAME_AMBIGUOUS, &[&name, first, second])),
    }
}

pub(crate) fn unknown_array(name: &str) -> Error {
    Error::new(&say::NO_ARRAY, &[&name])
}

pub(crate) fn not_running(name: &str) -> Error {
    Error::new(&say::ARRAY_NOT_RUNNING, &[&name])
}

pub(crate) fn already_running(name: &str) -> Error {
    Error::new(&say::ARRAY_RUNNING, &[&name])
}

pub(crate) fn no_export(id: &str) -> Error {
    Error::new(&say::NO_EXPORT_ID, &[&id])
}

pub(crate) fn no_task(id: &str) -> Error {
    Error::new(&say::NO_TASK_ID, &[&id])
}

/// A drive is named twice.
pub fn named_twice(path: &str) -> Error {
    Error::new(&say::DRIVE_TWICE, &[&path])
}

/// A drive that may be overwritten is none of a command's.
pub fn overwrites_other(path: &str) -> Error {
    Error::new(&say::OVERWRITE_OTHER, &[&path])
}

/// The arrays that people may mean.
fn all_called<'a>(arrays: &'a [Array], name: &str) -> impl Iterator<Item = &'a Array> {
    arrays.iter().filter(move |array| is_called(name, &array.name, &array.uuid))
}

fn the_one<'a>(name: &str, called: &[&'a Array]) -> Result<&'a Array, Error> {
    let uuids: Vec<&str> = called.iter().map(|array| array.uuid.as_str()).collect();
    one_of(name, &uuids)?;
    called.first().copied().ok_or_else(|| unknown_array(name))
}

/// The one array of this name or identity.
///
/// # Errors
/// There is none, or two have the name.
pub fn array<'a>(arrays: &'a [Array], name: &str) -> Result<&'a Array, Error> {
    the_one(name, &all_called(arrays, name).collect::<Vec<_>>())
}

/// The running array of this name or identity; of two arrays of one name, the one that runs.
///
/// # Errors
/// There is none, or it does not run.
pub fn running<'a>(arrays: &'a [Array], name: &str) -> Result<&'a Array, Error> {
    let mut called = all_called(arrays, name);
    if let Some(array) = called.find(|array| array.state != ArrayState::Stopped) {
        return Ok(array);
    }
    array(arrays, name)?;
    Err(not_running(name))
}

/// The array of this name or identity, which does not run.
///
/// # Errors
/// There is none, or two have the name, or one of that name runs.
pub fn stopped<'a>(arrays: &'a [Array], name: &str) -> Result<&'a Array, Error> {
    let called: Vec<&Array> = all_called(arrays, name).collect();
    match called.iter().any(|array| array.state != ArrayState::Stopped) {
        true => Err(already_running(name)),
        false => the_one(name, &called),
    }
}

/// The volume of this name.
///
/// # Errors
/// There is none.
pub fn volume<'a>(array: &'a Array, name: &str) -> Result<&'a Volume, Error> {
    let missing = || ManageError::NoVolume(array.name.clone(), name.to_owned());
    let found = array.volumes.iter().find(|volume| volume.name == name);
    found.ok_or_else(|| failure::told(&missing()).about(&array.name))
}

/// Refuses a size that no volume of an array can have.
///
/// # Errors
/// It is 0.
pub fn volume_size(array: &Array, bytes: u64) -> Result<(), Error> {
    match bytes {
        0 => Err(failure::told(&ManageError::BadSize(0, array.block_bytes)).about(&array.name)),
        _ => Ok(()),
    }
}

/// The export of this ID, whichever array it is of.
///
/// # Errors
/// There is none.
pub fn export<'a>(arrays: &'a [Array], id: &str) -> Result<&'a Export, Error> {
    let mut all = arrays.iter().flat_map(|array| &array.exports);
    all.find(|export| export.id == id).ok_or_else(|| no_export(id))
}

/// The export that `ARRAY:NUMBER` names: its running array, itself and its number.
///
/// # Errors
/// There is none.
pub fn export_of<'a>(arrays: &'a [Array], id: &str) -> Result<(&'a Array, &'a Export, u32), Error> {
    let (name, number) = id.rsplit_once(':').ok_or_else(|| no_export(id))?;
    let number: u32 = number.parse().map_err(|_| no_export(id))?;
    let array = running(arrays, name)?;
    let own = convert::export_id(&array.name, number);
    let missing = || failure::told(&ManageError::NoExport(array.name.clone(), number));
    let export = array.exports.iter().find(|export| export.id == own);
    Ok((array, export.ok_or_else(missing)?, number))
}

/// The array and the kind of task that `ARRAY:KIND` names.
///
/// # Errors
/// No task can be called so.
pub fn task(id: &str) -> Result<(&str, TaskKind), Error> {
    let named = id.rsplit_once(':').and_then(|(array, word)| {
        let kind = TaskKind::ALL.into_iter().find(|kind| kind.word() == word)?;
        Some((array, kind))
    });
    named.ok_or_else(|| no_task(id))
}

/// An array has no such task.
pub fn no_task_of(array: &Array, kind: TaskKind) -> Error {
    let kind = convert::engine_kind(kind);
    failure::told(&ManageError::NoTask(kind)).about(&array.name)
}

/// Whether two paths lead to one drive.
pub fn is_same_drive(one: &str, other: &str) -> bool {
    one == other || canonical(Path::new(one)) == canonical(Path::new(other))
}

/// The slot whose drive has this path or serial number, or is named `slot:N`.
///
/// # Errors
/// There is none, or the serial number is that of two drives.
pub fn slot<'a>(array: &'a Array, drive: &str) -> Result<&'a SlotInfo, Error> {
    let by_number = drive.strip_prefix("slot:").and_then(|n| n.parse::<u16>().ok());
    let named = |slot: &&SlotInfo| {
        Some(slot.slot) == by_number
            || slot.serial == drive
            || slot.drive.as_deref().is_some_and(|path| is_same_drive(path, drive))
    };
    // A drive that failed in one slot may be another's by now: that is the one meant.
    let is_out = |slot: &&SlotInfo| matches!(slot.state, SlotState::Failed | SlotState::Missing);
    let all: Vec<&SlotInfo> = array.slots.iter().filter(named).collect();
    let mut counting = all.iter().filter(|slot| !is_out(slot));
    if let (Some(one), Some(other)) = (counting.next(), counting.next()) {
        let place = |slot: &SlotInfo| {
            format!("{} (slot:{})", slot.drive.as_deref().unwrap_or("-"), slot.slot)
        };
        let both = format!("{}, {}", place(one), place(other));
        return Err(Error::new(&say::DRIVE_AMBIGUOUS, &[&drive, &both]));
    }
    let missing = || ManageError::NoDrive(array.name.clone(), drive.to_owned());
    let found = all.into_iter().min_by_key(is_out);
    found.ok_or_else(|| failure::told(&missing()).about(&array.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use redfish::view::ErrorCode;

    fn slot_info(slot: u16, path: Option<&str>, serial: &str, state: SlotState) -> SlotInfo {
        SlotInfo {
            slot,
            drive: path.map(str::to_owned),
            serial: serial.to_owned(),
            state,
            read_errors: 0,
            rewritten: 0,
            wrong_strips: 0,
            failures: 0,
            timeouts: 0,
            reason: None,
            quarantined: false,
        }
    }

    fn array_of(name: &str, uuid: &str, state: ArrayState) -> Array {
        Array {
            name: name.to_owned(),
            uuid: uuid.to_owned(),
            level: "1".to_owned(),
            state,
            strip_bytes: 65536,
            block_bytes: 512,
            epoch: 1,
            ..Array::default()
        }
    }

    fn export(id: &str) -> Export {
        Export {
            id: id.to_owned(),
            array: "data".to_owned(),
            volume: "v".to_owned(),
            serving: true,
            ..Export::default()
        }
    }

    #[test]
    fn two_arrays_of_one_name_are_told_apart_where_one_could_be_lost() {
        let arrays = [
            array_of("data", "0a", ArrayState::Stopped),
            array_of("data", "0b", ArrayState::Degraded),
            array_of("old", "0c", ArrayState::Stopped),
        ];
        let error = array(&arrays, "data").expect_err("either may be meant");
        assert_eq!(error.code, ErrorCode::Refused);
        assert!(error.error.contains("0a and 0b"), "{error:?}");
        assert_eq!(running(&arrays, "data"), Ok(&arrays[1]));
        assert_eq!(array(&arrays, "0A"), Ok(&arrays[0]));
        assert_eq!(running(&arrays, "old"), Err(not_running("old")));
        assert_eq!(running(&arrays, "none"), Err(unknown_array("none")));
        assert_eq!(stopped(&arrays, "data"), Err(already_running("data")));
        assert_eq!(stopped(&arrays, "0a"), Ok(&arrays[0]));
        assert_eq!(stopped(&arrays, "old"), Ok(&arrays[2]));
        assert_eq!(stopped(&arrays, "none"), Err(unknown_array("none")));
    }

    #[test]
    fn exports_and_tasks_are_named_by_their_array() {
        let mut data = array_of("da:ta", "0a", ArrayState::Optimal);
        data.exports = vec![export("da:ta:3")];
        let arrays = [data];
        let found = export_of(&arrays, "da:ta:3").map(|(_, export, number)| (&*export.id, number));
        assert_eq!(found, Ok(("da:ta:3", 3)));
        assert!(export_of(&arrays, "0a:3").is_ok() && super::export(&arrays, "da:ta:3").is_ok());
        let error = export_of(&arrays, "da:ta:4").expect_err("there is none");
        assert!(error.error.contains("no export 4"), "{error:?}");
        for id in ["", "3", "da:ta:x"] {
            assert_eq!(export_of(&arrays, id), Err(no_export(id)));
        }
        assert_eq!(task("da:ta:scrub"), Ok(("da:ta", TaskKind::Scrub)));
        assert_eq!(task("data:zero"), Err(no_task("data:zero")));
        let error = no_task_of(&arrays[0], TaskKind::Scrub);
        assert!(error.error.contains("no scrub"), "{error:?}");
    }

    #[test]
    fn a_drive_is_named_by_path_serial_number_or_slot() {
        let mut data = array_of("data", "0a", ArrayState::Degraded);
        data.slots = vec![
            slot_info(0, Some("/dev/a"), "A", SlotState::Failed),
            slot_info(1, Some("/dev/b"), "B", SlotState::InSync),
            slot_info(2, Some("/dev/a"), "A", SlotState::Rebuilding),
        ];
        let found = |drive| slot(&data, drive).map(|slot| slot.slot).map_err(|error| error.hint);
        let hint = || Err("list its drives with: palisade array show data".to_owned());
        assert_eq!((found("slot:0"), found("/dev/b"), found("B")), (Ok(0), Ok(1), Ok(1)));
        assert_eq!((found("/dev/a"), found("A")), (Ok(2), Ok(2)), "where it counts");
        assert_eq!((found("slot:3"), found("/dev/c"), found("slot:x")), (hint(), hint(), hint()));
    }

    #[test]
    fn a_serial_number_of_two_drives_names_neither() {
        let mut data = array_of("data", "0a", ArrayState::Optimal);
        data.slots = vec![
            slot_info(0, Some("/dev/a"), "S", SlotState::InSync),
            slot_info(1, Some("/dev/b"), "S", SlotState::InSync),
            slot_info(2, Some("/dev/c"), "S", SlotState::Failed),
        ];
        let told = slot(&data, "S").expect_err("either may be meant");
        assert!(told.is(&say::DRIVE_AMBIGUOUS), "{told:?}");
        assert!(told.error.ends_with("/dev/a (slot:0), /dev/b (slot:1)"), "{told:?}");
        assert_eq!(slot(&data, "/dev/b").map(|slot| slot.slot), Ok(1));
        assert_eq!(slot(&data, "slot:2").map(|slot| slot.slot), Ok(2));
    }
}
