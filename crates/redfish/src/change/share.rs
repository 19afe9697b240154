//! What a request wants done with file systems' shares.
//!
//! - `POST FileSystems`: under `Oem.Palisade` `Volume`, the share's `Name`, `Format`?,
//!   `Overwrite`?, and [`Terms`].
//! - `POST ExportedFileShares`: `Name`, and under `Oem.Palisade` [`Terms`].
//! - `PATCH` of a share: under `Oem.Palisade` [`Terms`]; what is absent stays.
//! - `PalisadeFileSystem.AddUser`, `SetUserPassword`: `UserName`, `Password`. `DeleteUser`:
//!   `UserName`.
//!
//! What goes with what is for who carries it out to say.

use super::bodies::MOST_NAMES;
use super::node::Fields;
use super::{links, nothing};
use crate::access::Secret;
use crate::error::{Base, Refusal};
use crate::routes::{Match, Method, Resource};
use crate::view::{
    Array, CreateShare, FileSystem, Format, SetShare, SetShareUser, UserChange, View,
};

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ShareChange {
    /// Shares a volume's file system.
    Create(CreateShare),
    /// Changes a share.
    Set(SetShare),
    /// Ends a share. Its files stay.
    Delete {
        /// The array's UUID.
        array: String,
        /// The volume's UUID.
        volume: String,
        /// What the share is called.
        name: String,
    },
    /// Changes a user.
    User(SetShareUser),
}

impl ShareChange {
    /// The UUID of the array that it changes.
    pub fn array(&self) -> &str {
        match self {
            Self::Create(CreateShare { array, .. })
            | Self::Set(SetShare { array, .. })
            | Self::Delete { array, .. }
            | Self::User(SetShareUser { array, .. }) => array,
        }
    }

    /// The UUID of the volume whose file system it is of.
    pub fn volume(&self) -> &str {
        match self {
            Self::Create(CreateShare { volume, .. })
            | Self::Set(SetShare { volume, .. })
            | Self::Delete { volume, .. }
            | Self::User(SetShareUser { volume, .. }) => volume,
        }
    }

    /// Whether data may be destroyed by it.
    pub const fn may_destroy(&self) -> bool {
        match self {
            Self::Create(request) => request.overwrite,
            Self::Set(_) | Self::Delete { .. } | Self::User(_) => false,
        }
    }

    /// What is to be done, in words.
    pub fn words(&self, view: &View) -> String {
        match self {
            Self::Create(request) => create(request, view),
            Self::Set(request) => set(request, view),
            Self::Delete { array, volume, name } => {
                format!("end the share {name} of {}", called(view, array, volume))
            }
            Self::User(SetShareUser { array, volume, name, change }) => {
                let of = called(view, array, volume);
                match change {
                    UserChange::Add(_) => format!("add the user {name} of {of}"),
                    UserChange::Password(_) => format!("change the password of {name} of {of}"),
                    UserChange::Delete => format!("delete the user {name} of {of}"),
                }
            }
        }
    }
}

/// A volume with its array, as people call it: by UUIDs where names are not known.
fn called(view: &View, array: &str, volume: &str) -> String {
    let of = view.array(array).map_or(array, |array| &array.name);
    let known = view.volume(volume).map(|(_, volume)| volume.name.as_str());
    let shared = || view.file_system(volume).map(|(_, own)| own.volume.as_str());
    format!("{of}/{}", known.or_else(shared).unwrap_or(volume))
}

fn listed(what: &str, names: &[String], none: &str) -> String {
    match names {
        [] => format!("{what} {none}"),
        names => format!("{what} {}", names.join(" ")),
    }
}

fn create(request: &CreateShare, view: &View) -> String {
    let of = called(view, &request.array, &request.volume);
    let mut parts = vec![format!("share {of} as {}", request.name)];
    parts.extend(request.format.map(|format| format!("make its file system ({})", format.word())));
    let words = [
        (request.overwrite, "overwrite what it holds"),
        (request.smb, "by SMB"),
        (request.nfs, "by NFS"),
        (request.read_only, "read only"),
    ];
    parts.extend(words.iter().filter(|(is_said, _)| *is_said).map(|(_, word)| (*word).to_owned()));
    if !request.smb_users.is_empty() {
        parts.push(listed("users", &request.smb_users, ""));
    }
    if !request.nfs_clients.is_empty() {
        parts.push(listed("clients", &request.nfs_clients, ""));
    }
    parts.extend(request.smb_listen.iter().map(|place| format!("SMB at {place}")));
    parts.extend(request.nfs_listen.iter().map(|place| format!("NFS at {place}")));
    parts.join(", ")
}

fn set(request: &SetShare, view: &View) -> String {
    let of = called(view, &request.array, &request.volume);
    let mut parts = vec![format!("change the share {} of {of}", request.name)];
    let truths = [
        (request.smb, "by SMB", "not by SMB"),
        (request.nfs, "by NFS", "not by NFS"),
        (request.read_only, "read only", "not read only"),
    ];
    for (is_wanted, yes, no) in truths {
        parts.extend(is_wanted.map(|is_wanted| if is_wanted { yes } else { no }.to_owned()));
    }
    parts.extend(request.smb_users.iter().map(|names| listed("users", names, "all")));
    parts.extend(request.nfs_clients.iter().map(|names| listed("clients", names, "none")));
    parts.extend(request.smb_listen.iter().map(|place| format!("SMB at {place}")));
    parts.extend(request.nfs_listen.iter().map(|place| format!("NFS at {place}")));
    parts.join(", ")
}

/// How a share is wanted, as far as it is said.
#[derive(PartialEq, Eq, Default)]
struct Terms {
    smb: Option<bool>,
    nfs: Option<bool>,
    read_only: Option<bool>,
    smb_users: Option<Vec<String>>,
    nfs_clients: Option<Vec<String>>,
    smb_listen: Option<String>,
    nfs_listen: Option<String>,
}

/// `Smb`, `Nfs`, `ReadOnly`, `SmbUsers`, `NfsClients`, `SmbListen` and `NfsListen`, as far as they
/// are there.
fn terms(oem: &mut Fields<'_>) -> Result<Terms, Refusal> {
    let mut truth = |name| oem.take(name).map(|node| node.truth()).transpose();
    let (smb, nfs, read_only) = (truth("Smb")?, truth("Nfs")?, truth("ReadOnly")?);
    let mut texts = |name| oem.take(name).map(|node| node.texts(0, MOST_NAMES)).transpose();
    let (smb_users, nfs_clients) = (texts("SmbUsers")?, texts("NfsClients")?);
    let mut text = |name| -> Result<_, Refusal> {
        Ok(oem.take(name).map(|node| node.text()).transpose()?.map(str::to_owned))
    };
    let (smb_listen, nfs_listen) = (text("SmbListen")?, text("NfsListen")?);
    Ok(Terms { smb, nfs, read_only, smb_users, nfs_clients, smb_listen, nfs_listen })
}

/// Reads such a change.
pub(super) fn parse(
    view: &View,
    found: &Match,
    method: Method,
    mut fields: Fields<'_>,
) -> Result<ShareChange, Refusal> {
    if found.route.resource == Resource::FileSystems {
        let change = first(view, &mut fields)?;
        fields.end()?;
        return Ok(change);
    }
    let (array, of) = view.file_system(found.id(0)).ok_or_else(|| nothing(found))?;
    let change = match (method, found.route.resource) {
        (Method::Post, Resource::FileShares) => another(array, of, &mut fields)?,
        (Method::Patch, Resource::FileShare) => {
            let share = of.share(found.id(1)).ok_or_else(|| nothing(found))?;
            return changed(array, of, &share.name, fields);
        }
        (Method::Delete, Resource::FileShare) => {
            let share = of.share(found.id(1)).ok_or_else(|| nothing(found))?;
            let (array, volume) = (array.uuid.clone(), of.volume_uuid.clone());
            ShareChange::Delete { array, volume, name: share.name.clone() }
        }
        (Method::Post, action) => user(array, of, action, &mut fields)?,
        _ => return Err(Refusal::not_allowed()),
    };
    fields.end()?;
    Ok(change)
}

/// The first share of a volume's file system.
fn first(view: &View, fields: &mut Fields<'_>) -> Result<ShareChange, Refusal> {
    const FORMATS: [Format; 2] = [Format::Xfs, Format::Ext4];
    let mut oem = fields.oem()?;
    let (array, volume) = links::linked_volume(view, &oem.need("Volume")?)?;
    let (array, volume) = (array.uuid.clone(), volume.uuid.clone());
    let name = oem.need("Name")?.text()?.to_owned();
    let format = oem.take("Format").map(|node| node.word(&FORMATS.map(Format::word)));
    let format = format.transpose()?;
    let overwrite = oem.flag("Overwrite")?;
    let terms = terms(&mut oem)?;
    oem.end()?;
    Ok(ShareChange::Create(CreateShare {
        format: FORMATS.into_iter().find(|own| format == Some(own.word())),
        overwrite,
        ..wanted((array, volume), name, terms)
    }))
}

/// Another share of a file system.
fn another(
    array: &Array,
    of: &FileSystem,
    fields: &mut Fields<'_>,
) -> Result<ShareChange, Refusal> {
    let name = fields.need("Name")?.text()?.to_owned();
    let mut oem = fields.oem()?;
    let terms = terms(&mut oem)?;
    oem.end()?;
    let at = (array.uuid.clone(), of.volume_uuid.clone());
    Ok(ShareChange::Create(wanted(at, name, terms)))
}

/// A share of a file system that is there already.
fn wanted((array, volume): (String, String), name: String, terms: Terms) -> CreateShare {
    CreateShare {
        array,
        volume,
        name,
        format: None,
        overwrite: false,
        smb: terms.smb.unwrap_or_default(),
        nfs: terms.nfs.unwrap_or_default(),
        read_only: terms.read_only.unwrap_or_default(),
        smb_users: terms.smb_users.unwrap_or_default(),
        nfs_clients: terms.nfs_clients.unwrap_or_default(),
        smb_listen: terms.smb_listen,
        nfs_listen: terms.nfs_listen,
    }
}

/// What a share has, and keeps as it was created.
const READ_ONLY: [&str; 7] = [
    "Id",
    "Name",
    "FileSharePath",
    "FileSharingProtocols",
    "DefaultAccessCapabilities",
    "Status",
    "Links",
];

/// A share that is to be another.
fn changed(
    array: &Array,
    of: &FileSystem,
    name: &str,
    mut fields: Fields<'_>,
) -> Result<ShareChange, Refusal> {
    fields.not_empty()?;
    let mut oem = fields.oem()?;
    if let Some(node) = READ_ONLY.iter().find_map(|name| fields.take(name)) {
        return Err(node.read_only());
    }
    let terms = terms(&mut oem)?;
    oem.end()?;
    fields.end()?;
    if terms == Terms::default() {
        return Err(Refusal::base(&Base::NO_OPERATION, &[]));
    }
    Ok(ShareChange::Set(SetShare {
        array: array.uuid.clone(),
        volume: of.volume_uuid.clone(),
        name: name.to_owned(),
        smb: terms.smb,
        nfs: terms.nfs,
        read_only: terms.read_only,
        smb_users: terms.smb_users,
        nfs_clients: terms.nfs_clients,
        smb_listen: terms.smb_listen,
        nfs_listen: terms.nfs_listen,
    }))
}

/// An action on users.
fn user(
    array: &Array,
    of: &FileSystem,
    action: Resource,
    fields: &mut Fields<'_>,
) -> Result<ShareChange, Refusal> {
    let name = fields.need("UserName")?.text()?.to_owned();
    let mut password = || fields.need("Password")?.secret().map(Secret::new);
    let change = match action {
        Resource::AddShareUser => UserChange::Add(password()?),
        Resource::SetShareUserPassword => UserChange::Password(password()?),
        _ => UserChange::Delete,
    };
    let (array, volume) = (array.uuid.clone(), of.volume_uuid.clone());
    Ok(ShareChange::User(SetShareUser { array, volume, name, change }))
}

#[cfg(test)]
#[path = "share_tests.rs"]
mod tests;
