//! Changes in words, as the audit log has them: one line, without secrets.

use super::{AccessChange, Change, FabricChange, JobAction};
use crate::view::{self, NamedDrive, View};
use core::fmt::Write;

impl Change {
    /// What is to be done, with names as the view has them. A name may be anything: who prints it
    /// takes care of characters that are none.
    pub fn words(&self, view: &View) -> String {
        let called = |uuid: &String| match view.array(uuid) {
            Some(array) => format!("array {} ({uuid})", array.name),
            None => format!("array {uuid}"),
        };
        let volume_called = |uuid: &String| match view.volume(uuid) {
            Some((_, volume)) => format!("volume {} ({uuid})", volume.name),
            None => format!("volume {uuid}"),
        };
        match self {
            Self::Access(change) => change.words(),
            Self::Certificate(change) => change.words(),
            Self::Events(change) => change.words(),
            Self::Alerts(change) => change.words(),
            Self::CreateArray(array) => create(array),
            Self::CreateVolumeOnDrives { array, size_bytes } => match size_bytes {
                Some(bytes) => format!("{}, and a volume of {bytes} bytes in it", create(array)),
                None => format!("{}, and a volume in all of it", create(array)),
            },
            Self::DeleteArray { array } => format!("delete {}", called(array)),
            Self::Stop { array } => format!("stop {}", called(array)),
            Self::Assemble { array, request } => {
                let mut words = format!("assemble {}", called(array));
                with(&mut words, request.start_degraded, "start degraded");
                with(&mut words, request.accept_loss, "accept loss");
                with(&mut words, request.take_over, "take over");
                with(&mut words, request.other_server_is_off, "other server is off");
                words
            }
            Self::FailDrive { array, request } => {
                format!("fail drive {} of {}", request.drive, called(array))
            }
            Self::ReplaceDrive { array, request } => {
                let view::ReplaceDrive { slot, with, overwrite } = request;
                let words = format!("replace slot {slot} of {} with ", called(array));
                words + &drive(with) + &overwriting(overwrite)
            }
            Self::Scrub { array, request } => scrub(&called(array), *request),
            Self::CreateVolume(view::CreateVolume { array, name, size_bytes }) => {
                format!("create volume {name} of {size_bytes} bytes in {}", called(array))
            }
            Self::ResizeVolume { array, volume, request } => {
                let bytes = request.size_bytes;
                let volume = volume_called(volume);
                format!("resize {volume} of {} to {bytes} bytes", called(array))
            }
            Self::DeleteVolume { array, volume } => {
                format!("delete {} of {}", volume_called(volume), called(array))
            }
            Self::CreateExport(request) => {
                export(request, &volume_called(&request.volume), &called(&request.array))
            }
            Self::DeleteExport { id } => format!("delete export {id}"),
            Self::Job { id, action } => job(view, id, *action),
            Self::Wipe(_) | Self::LocateDrive { .. } | Self::SetDrivePower { .. } => {
                of_drive(self, view)
            }
            Self::Fabric(change) => change.words(),
            Self::Share(change) => change.words(view),
            Self::FindDrives { paths } => format!("look for drives: {}", paths.join(", ")),
            Self::VerifyLog => "verify the audit log".to_owned(),
        }
    }

    /// Whether it changes anything: what only looks needs no line in the audit log.
    pub const fn is_noted(&self) -> bool {
        // A login is noted with the name of who logs in.
        !matches!(
            self,
            Self::FindDrives { .. }
                | Self::VerifyLog
                | Self::Fabric(FabricChange::Discover { .. })
                | Self::Access(AccessChange::LogIn { .. })
        )
    }
}

/// Adds what was said beside.
fn with(words: &mut String, is_said: bool, what: &str) {
    if is_said {
        // A text takes all that is written to it.
        let _ = write!(words, ", {what}");
    }
}

fn overwriting(drives: &[NamedDrive]) -> String {
    match drives {
        [] => String::new(),
        drives => format!(", overwrite {}", listed(drives)),
    }
}

/// A drive by its path, which says where, and its identifier, which says which.
fn drive(named: &NamedDrive) -> String {
    format!("{} ({})", named.path, named.id)
}

fn job(view: &View, id: &str, action: JobAction) -> String {
    let word = match action {
        JobAction::Suspend => "pause",
        JobAction::Resume => "resume",
        JobAction::Cancel => "cancel",
    };
    let name = view.job(id).map_or("", |job| job.task.id.as_str());
    format!("{word} task {name} ({id})")
}

/// A change of a drive.
fn of_drive(change: &Change, view: &View) -> String {
    match change {
        Change::Wipe(view::WipeDrive { drive: wiped, overwrite }) => {
            let mut words = format!("wipe drive {}", drive(wiped));
            with(&mut words, *overwrite, "overwrite");
            words
        }
        Change::LocateDrive { id, on } => {
            let word = if *on { "on" } else { "off" };
            format!("switch {word} the indicator of drive {}", known(view, id))
        }
        Change::SetDrivePower { id, state } => {
            format!("put drive {} in power state {state}", known(view, id))
        }
        _ => String::new(),
    }
}

/// The same of an identifier.
fn known(view: &View, id: &str) -> String {
    view.drive(id).map_or_else(|| id.to_owned(), |known| drive(&known.into()))
}

fn listed(drives: &[NamedDrive]) -> String {
    drives.iter().map(drive).collect::<Vec<_>>().join(", ")
}

fn scrub(array: &str, request: view::ScrubArray) -> String {
    let mut words = format!("scrub {array}");
    with(&mut words, request.repair, "repair");
    with(&mut words, request.trust_data, "trust data");
    words
}

fn create(array: &view::CreateArray) -> String {
    let view::CreateArray { name, level, drives, overwrite, same_drive, shared, .. } = array;
    let words = format!("create array {name} of level {level} on {}", listed(drives));
    let mut words = words + &overwriting(overwrite);
    with(&mut words, *same_drive, "namespaces of one drive in one group");
    with(&mut words, *shared, "shared");
    words
}

fn export(request: &view::CreateExport, volume: &str, array: &str) -> String {
    let mut words = format!("export {volume} of {array}");
    let places = request.nbd.iter().map(|place| format!("NBD {place}"));
    let places = places.chain(request.nvme_tcp.iter().map(|place| format!("NVMe/TCP {place}")));
    let portals = request.iscsi.iter().flat_map(|iscsi| &iscsi.portals);
    let places = places.chain(portals.map(|place| format!("iSCSI {place}")));
    let port = request.fc.iter().map(|fc| format!("Fibre Channel port {}", fc.port));
    let places = places.chain(port);
    let own = request.local.iter().map(|local| match local {
        view::LocalExport::Ublk => "a block device of the machine, by ublk".to_owned(),
        view::LocalExport::VhostUser(path) => format!("a virtual machine's socket {path}"),
        view::LocalExport::Several => "several things of the machine".to_owned(),
        view::LocalExport::Device => "a block device of the machine".to_owned(),
        view::LocalExport::File(path) => format!("file {path} of the machine"),
    });
    let places: Vec<String> = places.chain(own).collect();
    with(&mut words, !places.is_empty(), &format!("at {}", places.join(", ")));
    with(&mut words, request.any_host, "to any host");
    let hosts = match (&request.iscsi, &request.fc) {
        (Some(iscsi), _) => &iscsi.initiators,
        (None, Some(fc)) => &fc.initiators,
        (None, None) => &request.hosts,
    };
    with(&mut words, !hosts.is_empty(), &format!("to {}", hosts.join(", ")));
    words
}
