//! Drives, whatever array takes them.

use super::Names;
use super::text::{Text, labels, truth};
use crate::view::{DriveState, View};

const STATES: [(DriveState, &str); 6] = [
    (DriveState::InUse, "in-use"),
    (DriveState::Found, "found"),
    (DriveState::Failed, "failed"),
    (DriveState::Foreign, "foreign"),
    (DriveState::Free, "free"),
    (DriveState::Unusable, "unusable"),
];

pub fn write(text: &mut Text, view: &View, names: &Names<'_>) {
    let drives: Vec<_> =
        view.drives.iter().map(|known| (labels(&[("drive", &known.id)]), known)).collect();
    text.gauge("palisade_drive_info", "What a drive is, and where.");
    for (_, known) in &drives {
        let drive = &known.drive;
        let owner = view.status.arrays.iter().find(|array| {
            array.slots.iter().any(|slot| slot.drive.as_deref() == Some(&drive.path))
        });
        let array = owner.map(|array| names.array(array));
        let slot = drive.slot.map(|slot| slot.to_string());
        let all = [
            ("drive", &known.id[..]),
            ("path", &drive.path),
            ("serial", &drive.serial),
            ("model", known.model.as_deref().unwrap_or_default()),
            ("kind", if known.is_file { "file" } else { "device" }),
            ("array", array.as_ref().or(drive.array.as_ref()).map_or("", |name| name)),
            ("slot", slot.as_deref().unwrap_or_default()),
        ];
        text.put(&labels(&all), 1);
    }
    text.gauge("palisade_drive_state", "How a drive is: 1 for its state, 0 for the others.");
    for (labels, known) in &drives {
        text.states(labels, &STATES, &known.drive.state);
    }
    text.gauge("palisade_drive_size_bytes", "The size of a drive.");
    drives.iter().for_each(|(labels, known)| text.put(labels, known.drive.bytes));
    text.gauge("palisade_drive_problem", "Whether a drive can't be used.");
    for (labels, known) in &drives {
        text.put(labels, truth(known.drive.problem.is_some()));
    }
}
