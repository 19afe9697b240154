//! Exports.

use super::Names;
use super::text::{Text, labels, truth};
use crate::view::{Export, View};

/// How an export of the array of this name is called.
fn id_of(array: &str, export: &Export) -> String {
    let number = export.id.rsplit_once(':').map_or("", |(_, number)| number);
    format!("{array}:{number}")
}

/// The labels of an export of the array of this name.
pub fn labels_of(array: &str, export: &Export) -> String {
    labels(&[
        ("array", array),
        ("volume", &export.volume),
        ("export", &id_of(array, export)),
        ("protocol", export.kind.word()),
    ])
}

pub fn write(text: &mut Text, view: &View, names: &Names<'_>) {
    let mut all: Vec<(String, &Export)> = Vec::new();
    for array in &view.status.arrays {
        let name = names.array(array);
        for export in &array.exports {
            all.push((labels_of(&name, export), export));
        }
    }
    text.gauge("palisade_export_serving", "Whether an export is served now.");
    all.iter().for_each(|(labels, export)| text.put(labels, truth(export.serving)));
    let controllers = "Controllers that hosts have of an NVMe export's subsystem.";
    text.gauge("palisade_export_controllers", controllers);
    for (labels, export) in &all {
        export.nvme.iter().for_each(|nvme| text.put(labels, nvme.connections.len()));
    }
}
