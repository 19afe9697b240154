//! Which drives people mean: by path, serial number, id, or `ARRAY:SLOT`.
//!
//! Invariants
//! - A name that may stand for two drives stands for none.
//! - What is, or looks like, a path of this machine counts for nothing where the daemon is another
//!   machine's.

use crate::array::absolute;
use crate::client::Client;
use crate::drive::fabric;
use crate::fetch;
use crate::output::Problem;
use control::names;
use drives::remote::Name;
use redfish::messages as say;
use redfish::read;
use redfish::service::uri;
use redfish::view::{Array, KnownDrive};
use std::path::{Path, PathBuf};

/// What was said, for the daemon: a path counts from here, not from where the daemon is.
pub fn said(name: &Path, client: &Client) -> String {
    match is_path(name, client) {
        true => absolute(name),
        false => name.to_string_lossy().into_owned(),
    }
}

/// Whether it can be nothing but a path, or leads to something here.
fn is_path(name: &Path, client: &Client) -> bool {
    let text = name.to_string_lossy();
    let is_slot = text.starts_with("slot:");
    !is_slot && (text.contains('/') || (!client.is_remote() && name.exists()))
}

/// The drives that the daemon knows under a name that is no path, each once.
pub async fn known(client: &Client, name: &str) -> Result<Option<KnownDrive>, Problem> {
    let drives = fetch::drives(client).await?;
    let arrays = fetch::arrays(client, &[]).await?;
    let found = called(name, &drives, &arrays);
    one_of(name, &found).map(|found| found.cloned())
}

fn one_of<'a>(name: &str, found: &[&'a KnownDrive]) -> Result<Option<&'a KnownDrive>, Problem> {
    match found {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        several => {
            let word = |known: &&KnownDrive| format!("{} (id {})", known.drive.path, known.id);
            let words: Vec<String> = several.iter().map(word).collect();
            Err(Problem::new(&say::DRIVE_AMBIGUOUS, &[&name, &words.join(", ")]))
        }
    }
}

/// All that are called so.
fn called<'a>(name: &str, drives: &'a [KnownDrive], arrays: &[Array]) -> Vec<&'a KnownDrive> {
    let slot = name.rsplit_once(':').and_then(|(array, slot)| {
        let slot: u16 = slot.parse().ok()?;
        let array = names::array(arrays, array).ok()?;
        array.slots.iter().find(|own| own.slot == slot)?.drive.as_deref()
    });
    let is_it = |known: &&KnownDrive| {
        known.id == name
            || (!name.is_empty() && known.drive.serial == name)
            || slot == Some(known.drive.path.as_str())
    };
    drives.iter().filter(is_it).collect()
}

/// The path of the drive that is meant. Without a daemon it is what was said.
pub async fn path(client: &Client, name: &Path) -> Result<PathBuf, Problem> {
    if is_path(name, client) {
        return Ok(name.to_owned());
    }
    match known(client, &name.to_string_lossy()).await {
        Ok(Some(known)) => Ok(known.drive.path.into()),
        Ok(None) => Ok(name.to_owned()),
        Err(problem) if problem.is(&say::NO_DAEMON) => Ok(name.to_owned()),
        Err(problem) => Err(problem),
    }
}

/// The one drive that is named: by what the daemon knows already, else by a look at the path.
pub async fn one(client: &Client, name: &Path) -> Result<KnownDrive, Problem> {
    let known = fetch::drives(client).await?;
    let path = said(name, client);
    if let Some(own) = known.iter().find(|known| known.drive.path == path) {
        return Ok(own.clone());
    }
    let uris = drives(client, &[name.to_owned()]).await?;
    let uri = uris.first().ok_or_else(|| read::strange("FindDrives: /Drives"))?;
    Ok(read::drive(&client.get(uri).await?)?)
}

/// The URIs of drives that are named.
async fn drives(client: &Client, said: &[PathBuf]) -> Result<Vec<String>, Problem> {
    let (mut paths, mut found) = (Vec::new(), Vec::new());
    for name in said {
        let text = name.to_string_lossy();
        // A file of this name is here, too: which of the two is meant nobody can know.
        let is_clear = text.contains('/');
        let known = if is_clear { None } else { known(client, &text).await? };
        match known {
            Some(known) if is_path(name, client) => {
                let own = uri::drive(&known.id);
                let file = fetch::find_drives(client, &[absolute(name)]).await?;
                if file.first() != Some(&own) {
                    let words =
                        format!("{} (id {}), {}", known.drive.path, known.id, absolute(name));
                    return Err(Problem::new(&say::DRIVE_AMBIGUOUS, &[&text, &words]));
                }
                found.push(Some(own));
            }
            Some(known) => found.push(Some(uri::drive(&known.id))),
            None => {
                paths.push(absolute(name));
                found.push(None);
            }
        }
    }
    let mut looked = match paths.is_empty() {
        true => Vec::new(),
        false => fetch::find_drives(client, &paths).await?,
    }
    .into_iter();
    let all: Option<Vec<String>> =
        found.into_iter().map(|own| own.or_else(|| looked.next())).collect();
    all.ok_or_else(|| read::strange("FindDrives: /Drives").into())
}

/// Drives that are named, where `*` in the name of one behind a fabric stands for all that are
/// found there. Several ports may lead to one drive: it is named once.
pub async fn expanded(client: &Client, said: &[PathBuf]) -> Result<Vec<PathBuf>, Problem> {
    let mut all: Vec<PathBuf> = Vec::new();
    for path in said {
        let name = Name::of(path).and_then(Result::ok).filter(|name| name.place.is_some());
        match name.filter(|name| name.subsystem.is_none() || name.namespace.is_none()) {
            None => all.push(path.clone()),
            Some(name) => {
                let found = fabric::reach(&name, client).await?;
                if found.is_empty() {
                    return Err(Problem::new(&say::NOT_ONE_DRIVE, &[&path.display(), &0]));
                }
                for own in found {
                    if !all.contains(&own) {
                        all.push(own);
                    }
                }
            }
        }
    }
    Ok(all)
}

/// The URIs of the drives that a command names, each once, and of those of them that may be
/// overwritten.
pub async fn drives_of(
    client: &Client,
    names: &[PathBuf],
    overwrite: &[PathBuf],
) -> Result<(Vec<String>, Vec<String>), Problem> {
    let uris = drives(client, names).await?;
    for (at, (uri, name)) in uris.iter().zip(names).enumerate() {
        if uris.iter().take(at).any(|other| other == uri) {
            return Err(names::named_twice(&said(name, client)).into());
        }
    }
    let mut again = Vec::new();
    for other in overwrite {
        let is_it = |name: &PathBuf| {
            name == other
                || (!client.is_remote() && names::is_same_drive(&absolute(name), &absolute(other)))
        };
        let own = match names.iter().position(is_it) {
            Some(at) => uris.get(at).cloned(),
            None if client.is_remote() || !is_path(other, client) => {
                let own = drives(client, core::slice::from_ref(other)).await?;
                own.into_iter().find(|own| uris.contains(own))
            }
            None => None,
        };
        again.push(own.ok_or_else(|| names::overwrites_other(&said(other, client)))?);
    }
    Ok((uris, again))
}

#[cfg(test)]
mod tests {
    use super::*;
    use redfish::view::{Drive, DriveState};
    use serde_json::json;

    fn drive(id: &str, path: &str, serial: &str) -> KnownDrive {
        let (path, serial) = (path.to_owned(), serial.to_owned());
        KnownDrive {
            remote: None,
            id: id.to_owned(),
            wwid: None,
            model: None,
            is_file: true,
            hardware: Default::default(),
            drive: Drive {
                path,
                serial,
                bytes: 0,
                block_bytes: 512,
                state: DriveState::Free,
                array: None,
                slot: None,
                signature: None,
                problem: None,
            },
        }
    }

    fn array() -> Array {
        serde_json::from_value(json!({
            "name": "tank", "uuid": "u", "level": "1", "state": "optimal", "strip_bytes": 65536,
            "block_bytes": 512, "size_bytes": 0, "free_bytes": 0, "epoch": 1, "unclean": false,
            "slots": [
                { "slot": 0, "drive": "/dev/a", "serial": "A", "state": "in-sync" },
                { "slot": 1, "drive": null, "serial": "B", "state": "missing" },
            ],
            "tasks": [], "last_scrub": null, "drive_io": [], "volumes": [], "exports": [],
        }))
        .expect("an array")
    }

    #[test]
    fn a_drive_is_named_by_serial_number_id_or_slot() {
        let drives = [
            drive("wwid-a", "/dev/a", "A"),
            drive("wwid-b", "/dev/b", "B"),
            drive("B", "/dev/c", "C"),
            drive("d", "/dev/d", "C"),
            drive("tank:0", "/dev/e", "E"),
        ];
        let arrays = [array()];
        let found = |name: &str| {
            let found = called(name, &drives, &arrays);
            one_of(name, &found).map(|one| one.map(|known| known.drive.path.as_str()))
        };
        for (name, path) in
            [("wwid-a", "/dev/a"), ("A", "/dev/a"), ("u:0", "/dev/a"), ("d", "/dev/d")]
        {
            assert_eq!(found(name), Ok(Some(path)), "{name}");
        }
        for name in ["", "none", "tank:1", "tank:7", "other:0", "tank:x"] {
            assert_eq!(found(name), Ok(None), "{name}");
        }
        // A serial number and an id, two serial numbers, a slot and an id.
        for (name, both) in [
            ("B", "/dev/b (id wwid-b), /dev/c (id B)"),
            ("C", "/dev/c (id B), /dev/d (id d)"),
            ("tank:0", "/dev/a (id wwid-a), /dev/e (id tank:0)"),
        ] {
            let told = Err(Problem::new(&say::DRIVE_AMBIGUOUS, &[&name, &both]));
            assert_eq!(found(name), told, "{name}");
        }
    }
}
