//! Shares of volumes' file systems: what a request has to say, what is recorded once it is carried
//! out, what `palisade services` is told of that, and what is shown. Who mounts and serves them is
//! no part of the daemon ([`crate::services`]).
//!
//! A volume's shares are one export: its record says what is wanted ([`ShareExport`]). A request
//! makes another of it, or is refused; who carries it out ([`crate::sharing`]) has it recorded.
//!
//! Invariants
//! - Names of shares differ in more than the case of letters, whatever array they are of.
//! - No two file systems are reached at one address.
//! - Who may have a share is recorded in one form: networks as `ADDRESS/BITS`.

use crate::address::of_server;
use ::shares::names::folded;
use ::shares::{NFS_PORT, Network, SMB_PORT, ShareName, UserName};
use core::fmt::Display;
use engine::manage::command::ArrayStatus;
use format::{Access, ExportAddress, Filesystem, MakeFilesystem, ShareExport};
use redfish::access::Secret;
use redfish::messages as say;
use redfish::messages::Entry;
use redfish::view::{self, Error, UserChange};
use services::wire::{FileServer, Files, Share, Shares};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use units::Uuid;

/// Ports for further file systems begin here.
const MORE_SMB: u16 = 4450;
/// See [`MORE_SMB`].
const MORE_NFS: u16 = 20490;
/// Who serves.
const SAMBA: &str = "Samba";
/// See [`SAMBA`].
const GANESHA: &str = "NFS-Ganesha";
/// What is behind who may only read.
const ONLY_READS: &str = ":ro";
/// Most bytes of a password: as many as Samba's own programs read.
const PASSWORD_MOST: usize = 127;
/// An address that nobody has (RFC 5737); nothing is sent there.
const FAR_AWAY: (Ipv4Addr, u16) = (Ipv4Addr::new(192, 0, 2, 1), 9);

/// A volume, and what is shared of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shared {
    /// The volume, as `ARRAY/VOLUME`.
    pub volume: String,
    /// What is recorded.
    pub own: ShareExport,
}

impl Shared {
    /// The names of all its shares.
    fn names(&self) -> String {
        self.own.shares.iter().map(|share| share.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Refuses what it stands in the way of, as `entry` says of the volume and its shares.
    pub fn refuses(&self, entry: &'static Entry) -> Error {
        Error::new(entry, &[&self.volume, &self.names()])
    }
}

/// Refuses what the shares of an array stand in the way of: its stop, and its end.
///
/// # Errors
/// It has some.
pub fn has_none(array: &str, all: &[Shared]) -> Result<(), Error> {
    let own: Vec<String> = all.iter().map(Shared::names).collect();
    match own.is_empty() {
        true => Ok(()),
        false => Err(Error::new(&say::ARRAY_SHARED, &[&array, &own.join(", ")])),
    }
}

/// What is shared of a volume, if an export is that.
pub fn export(address: &ExportAddress) -> Option<&ShareExport> {
    match address {
        ExportAddress::Shares(own) => Some(own),
        _ => None,
    }
}

/// The same, with the volume, which is of this array and called so.
pub fn shared(array: &str, volume: &str, address: &ExportAddress) -> Option<Shared> {
    let own = export(address)?.clone();
    Some(Shared { volume: format!("{array}/{volume}"), own })
}

/// The shared file systems of an array that runs.
pub fn recorded(array: &ArrayStatus) -> Vec<Shared> {
    let all = array.exports.iter();
    all.filter_map(|own| shared(&array.name, &own.volume_name, &own.address)).collect()
}

/// What is shared of a volume of an array, and what that is called.
pub fn shared_of(array: &ArrayStatus, volume: Uuid) -> Option<Shared> {
    let own = array.exports.iter().filter(|own| own.volume == volume);
    own.filter_map(|own| shared(&array.name, &own.volume_name, &own.address)).next()
}

/// The shared file systems of an array, as far as a view shows what is recorded.
pub fn seen(array: &view::Array) -> Vec<Shared> {
    let access = |text: &String| {
        let (who, read_only) = split(text);
        Access { who: who.to_owned(), read_only }
    };
    let share = |own: &view::Share| format::Share {
        name: own.name.clone(),
        smb: own.is_by(view::Protocol::Smb),
        nfs: own.is_by(view::Protocol::Nfs),
        read_only: own.read_only,
        users: own.smb_users.iter().map(access).collect(),
        clients: own.nfs_clients.iter().map(access).collect(),
    };
    let shared = |own: &view::FileSystem| Shared {
        volume: format!("{}/{}", array.name, own.volume),
        own: ShareExport {
            make: None,
            smb: own.smb_listen.clone(),
            nfs: own.nfs_listen.clone(),
            shares: own.shares.iter().map(share).collect(),
        },
    };
    array.filesystems.iter().map(shared).collect()
}

/// Whether a request says what it has to, in a possible form, whatever there is to be shared.
///
/// # Errors
/// It does not, or not in such a form.
pub fn check_create(request: &view::CreateShare) -> Result<(), Error> {
    share_of(request).map(drop)
}

/// The share that a request asks for, if it says what it has to, in a possible form.
fn share_of(request: &view::CreateShare) -> Result<format::Share, Error> {
    if request.overwrite && request.format.is_none() {
        return Err(Error::new(&say::SHARE_OVERWRITE, &[]));
    }
    for text in [&request.smb_listen, &request.nfs_listen].into_iter().flatten() {
        listen(text)?;
    }
    let name = &request.name;
    ShareName::new(name).map_err(|why| Error::new(&say::SHARE_NAME, &[name, &why]))?;
    let share = format::Share {
        name: name.clone(),
        smb: request.smb,
        nfs: request.nfs,
        read_only: request.read_only,
        users: users(&request.smb_users)?,
        clients: clients(&request.nfs_clients)?,
    };
    check_protocols(&share, (&request.smb_listen, &request.nfs_listen))?;
    Ok(share)
}

/// Whether a share is by some protocol, and nothing is said of another.
fn check_protocols(
    share: &format::Share,
    (smb_at, nfs_at): (&Option<String>, &Option<String>),
) -> Result<(), Error> {
    let without = |what: &str, protocol: &str| {
        Err(Error::new(&say::SHARE_WITHOUT_PROTOCOL, &[&what, &protocol]))
    };
    match share {
        format::Share { smb: false, nfs: false, .. } => Err(Error::new(&say::SHARE_PROTOCOL, &[])),
        format::Share { smb: false, users, .. } if !users.is_empty() => without("users", "SMB"),
        format::Share { nfs: false, clients, .. } if !clients.is_empty() => {
            without("networks of clients", "NFS")
        }
        format::Share { smb: false, .. } if smb_at.is_some() => without("addresses of SMB", "SMB"),
        format::Share { nfs: false, .. } if nfs_at.is_some() => without("addresses of NFS", "NFS"),
        _ => Ok(()),
    }
}

/// Who is meant, and whether only to read.
fn split(text: &str) -> (&str, bool) {
    match text.strip_suffix(ONLY_READS) {
        Some(who) => (who, true),
        None => (text, false),
    }
}

/// Users that a request names.
fn users(all: &[String]) -> Result<Vec<Access>, Error> {
    accesses(all, &say::SHARE_USER_NAME, |who| UserName::new(who).map(|own| own.to_string()))
}

/// Networks of clients that a request names.
fn clients(all: &[String]) -> Result<Vec<Access>, Error> {
    accesses(all, &say::SHARE_CLIENT, |who| who.parse::<Network>().map(|own| own.to_string()))
}

fn accesses<E: Display>(
    all: &[String],
    wrong: &'static Entry,
    read: impl Fn(&str) -> Result<String, E>,
) -> Result<Vec<Access>, Error> {
    let mut known = BTreeSet::new();
    let mut access = |text: &String| {
        let (who, read_only) = split(text);
        let who = read(who).map_err(|why| Error::new(wrong, &[text, &why]))?;
        match known.insert(who.clone()) {
            true => Ok(Access { who, read_only }),
            false => Err(Error::new(&say::SHARE_TWICE, &[&who])),
        }
    };
    all.iter().map(&mut access).collect()
}

/// An address at which servers are to listen.
fn listen(text: &str) -> Result<SocketAddr, Error> {
    of_server(text, &say::SHARE_LISTEN)
}

/// What is recorded of a volume once a share of it is made. `own` is what was before, `others` are
/// those of all other volumes.
///
/// # Errors
/// It is refused.
pub fn created(
    request: &view::CreateShare,
    (volume, own): (&str, Option<&ShareExport>),
    others: &[Shared],
) -> Result<ShareExport, Error> {
    let share = share_of(request)?;
    is_new(&share.name, (volume, own), others)?;
    let mut export = match own {
        Some(_) if request.format.is_some() => {
            return Err(Error::new(&say::SHARED_NOT_FORMATTED, &[&volume]));
        }
        Some(own) => own.clone(),
        None => ShareExport {
            make: request.format.map(|kind| make(kind, request.overwrite)),
            smb: String::new(),
            nfs: String::new(),
            shares: Vec::new(),
        },
    };
    for (text, own, is_used) in [
        (&request.smb_listen, &export.smb, export.shares.iter().any(|own| own.smb)),
        (&request.nfs_listen, &export.nfs, export.shares.iter().any(|own| own.nfs)),
    ] {
        if let Some(text) = text.as_ref().filter(|text| is_used && text != &own) {
            let why = format!("other shares of volume {volume} are at {own}");
            return Err(Error::new(&say::SHARE_LISTEN, &[text, &why]));
        }
    }
    place(&mut export, (&request.smb_listen, &request.nfs_listen), others)?;
    export.shares.push(share);
    export.shares.sort_by(|one, other| one.name.cmp(&other.name));
    is_free(&export, (volume, own), others)?;
    Ok(export)
}

/// What is recorded of a volume once a share of it is changed.
///
/// # Errors
/// It is refused, or there is no such share.
pub fn changed(
    request: &view::SetShare,
    (volume, own): (&str, &ShareExport),
    others: &[Shared],
) -> Result<ShareExport, Error> {
    let mut export = own.clone();
    let share = export.shares.iter_mut().find(|share| share.name == request.name);
    let share = share.ok_or_else(|| Error::new(&say::NO_SHARE, &[&request.name]))?;
    share.smb = request.smb.unwrap_or(share.smb);
    share.nfs = request.nfs.unwrap_or(share.nfs);
    share.read_only = request.read_only.unwrap_or(share.read_only);
    // Who had it by a protocol that it is not by any more has it no more.
    share.users.retain(|_| share.smb);
    share.clients.retain(|_| share.nfs);
    if let Some(all) = &request.smb_users {
        share.users = users(all)?;
    }
    if let Some(all) = &request.nfs_clients {
        share.clients = clients(all)?;
    }
    check_protocols(share, (&request.smb_listen, &request.nfs_listen))?;
    // By what its shares were before: what they were not by may be at another place.
    let mut placed = own.clone();
    place(&mut placed, (&request.smb_listen, &request.nfs_listen), others)?;
    (export.smb, export.nfs) = (placed.smb, placed.nfs);
    is_free(&export, (volume, Some(own)), others)?;
    Ok(export)
}

/// What is recorded of a volume once a share of it is ended; `shares` may be none.
///
/// # Errors
/// There is no such share.
pub fn without(own: &ShareExport, name: &str) -> Result<ShareExport, Error> {
    let mut export = own.clone();
    export.shares.retain(|share| share.name != name);
    match export.shares.len() < own.shares.len() {
        true => Ok(export),
        false => Err(Error::new(&say::NO_SHARE, &[&name])),
    }
}

/// Whether no share is called so.
fn is_new(
    name: &str,
    (volume, own): (&str, Option<&ShareExport>),
    others: &[Shared],
) -> Result<(), Error> {
    let here = own.into_iter().flat_map(|own| &own.shares).map(|share| (share, volume));
    let there = others.iter().flat_map(|of| of.own.shares.iter().map(|share| (share, &*of.volume)));
    let is_same = |share: &format::Share| folded(&share.name) == folded(name);
    match here.chain(there).find(|(share, _)| is_same(share)) {
        Some((share, of)) => Err(Error::new(&say::SHARE_EXISTS, &[&share.name, &of])),
        None => Ok(()),
    }
}

fn make(kind: view::Format, overwrite: bool) -> MakeFilesystem {
    let kind = match kind {
        view::Format::Xfs => Filesystem::Xfs,
        view::Format::Ext4 => Filesystem::Ext4,
    };
    MakeFilesystem { kind, overwrite }
}

/// Where a file system is reached.
fn addresses(own: &ShareExport) -> impl Iterator<Item = SocketAddr> {
    own.listens().filter_map(|text| text.parse().ok())
}

/// Says where a file system is reached, as it is wanted or else as it was; where nobody knows it
/// yet by a protocol, that is a place which no other has.
fn place(
    export: &mut ShareExport,
    (smb, nfs): (&Option<String>, &Option<String>),
    others: &[Shared],
) -> Result<(), Error> {
    let taken: Vec<SocketAddr> = others.iter().flat_map(|of| addresses(&of.own)).collect();
    let by = |is_one: fn(&format::Share) -> bool| export.shares.iter().any(is_one);
    let is_used = (by(|share| share.smb), by(|share| share.nfs));
    for (text, own, is_used, ports) in [
        (smb, &mut export.smb, is_used.0, (SMB_PORT, MORE_SMB)),
        (nfs, &mut export.nfs, is_used.1, (NFS_PORT, MORE_NFS)),
    ] {
        if let Some(text) = text {
            *own = listen(text)?.to_string();
            continue;
        }
        let known = own.parse::<SocketAddr>();
        let is_free = known.is_ok_and(|known| !taken.iter().any(|other| meet(known, *other)));
        if !is_used && !is_free {
            *own = free(ports, &taken);
        }
    }
    Ok(())
}

/// Whether one who listens at the one takes connections to the other.
fn meet(one: SocketAddr, other: SocketAddr) -> bool {
    let (a, b) = (one.ip().to_canonical(), other.ip().to_canonical());
    one.port() == other.port() && (a == b || a.is_unspecified() || b.is_unspecified())
}

/// All addresses of this machine with this port, or, where another file system has that, with the
/// next that none has.
fn free((first, more): (u16, u16), taken: &[SocketAddr]) -> String {
    let of = |port: u16| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    let is_free = |port: &u16| !taken.iter().any(|other| meet(of(*port), *other));
    let port = core::iter::once(first).chain(more..).find(is_free).unwrap_or(first);
    of(port).to_string()
}

/// Whether no other file system is reached where this one is to be, and both its protocols are at
/// addresses of their own. What was so before is not refused.
fn is_free(
    export: &ShareExport,
    (volume, before): (&str, Option<&ShareExport>),
    others: &[Shared],
) -> Result<(), Error> {
    let taken = |at: SocketAddr, of: &str| Err(Error::new(&say::SHARE_LISTENS, &[&at, &of]));
    let had: Vec<SocketAddr> = before.into_iter().flat_map(addresses).collect();
    for at in addresses(export).filter(|at| !had.contains(at)) {
        for other in others {
            if addresses(&other.own).any(|own| meet(own, at)) {
                return taken(at, &other.volume);
            }
        }
    }
    match addresses(export).collect::<Vec<_>>()[..] {
        [smb, nfs] if meet(smb, nfs) => taken(smb, volume),
        _ => Ok(()),
    }
}

/// Whether a text can be a password of a user.
fn check_password(password: &Secret) -> Result<(), Error> {
    let text = password.reveal();
    let why = match text {
        "" => "it is empty",
        text if text.len() > PASSWORD_MOST => "it has more than 127 bytes",
        text if text.chars().any(char::is_control) => "it has characters of control",
        _ => return Ok(()),
    };
    Err(Error::new(&say::SHARE_USER_PASSWORD, &[&why]))
}

/// Whether a request to change a user says what it has to, and no share of its volume is in its
/// way.
///
/// # Errors
/// It is refused.
pub fn check_user_change(
    request: &view::SetShareUser,
    (volume, own): (&str, &ShareExport),
) -> Result<(), Error> {
    let view::SetShareUser { name, change, .. } = request;
    UserName::new(name).map_err(|why| Error::new(&say::SHARE_USER_NAME, &[name, &why]))?;
    let names_it = |share: &&format::Share| share.users.iter().any(|user| user.who == *name);
    match change {
        UserChange::Add(password) | UserChange::Password(password) => check_password(password),
        UserChange::Delete => match own.shares.iter().find(names_it) {
            Some(share) => Err(Error::new(&say::SHARE_USER_NAMED, &[name, &volume, &share.name])),
            None => Ok(()),
        },
    }
}

/// Whether a user can be changed so that is there, or is not.
///
/// # Errors
/// It is refused.
pub fn check_user_is(
    request: &view::SetShareUser,
    volume: &str,
    is_there: bool,
) -> Result<(), Error> {
    match (is_there, &request.change) {
        (true, UserChange::Add(_)) => {
            Err(Error::new(&say::SHARE_USER_EXISTS, &[&request.name, &volume]))
        }
        (false, UserChange::Password(_) | UserChange::Delete) => {
            Err(Error::new(&say::NO_SHARE_USER, &[&request.name, &volume]))
        }
        _ => Ok(()),
    }
}

const fn word(kind: Filesystem) -> &'static str {
    match kind {
        Filesystem::Xfs => "xfs",
        Filesystem::Ext4 => "ext4",
    }
}

/// What `palisade services` is to serve.
pub fn told(export: &ShareExport) -> Shares {
    let who = |all: &[Access]| all.iter().map(|own| (own.who.clone(), own.read_only)).collect();
    let share = |own: &format::Share| Share {
        name: own.name.clone(),
        smb: own.smb,
        nfs: own.nfs,
        read_only: own.read_only,
        users: who(&own.users),
        clients: who(&own.clients),
    };
    Shares {
        make: export.make.map(|make| (word(make.kind).to_owned(), make.overwrite)),
        smb: export.smb.clone(),
        nfs: export.nfs.clone(),
        shares: export.shares.iter().map(share).collect(),
    }
}

/// Why a share can't be had, of those protocols that it is by.
pub fn problem(share: &format::Share, files: &Files) -> Option<String> {
    let by = [(share.smb, &files.smb), (share.nfs, &files.nfs)];
    let by = by.into_iter().filter(|(is_by, _)| *is_by);
    by.filter_map(|(_, server)| problem_at(server.as_ref()?, &share.name)).next()
}

fn problem_at(server: &FileServer, share: &str) -> Option<String> {
    server.problem.clone().or_else(|| server.problems.get(share).cloned())
}

/// How a file system is shown: its array's and its volume's name, and the volume's UUID; what was
/// told of it, and how its export is.
pub fn shown(
    export: &ShareExport,
    (array, volume, uuid): (&str, &str, String),
    (files, health): (Option<&Files>, Option<view::ExportHealth>),
) -> view::FileSystem {
    let mut health = health.unwrap_or_else(starting);
    if let Some(files) = files {
        // Servers' problems are those of their shares.
        (health.state, health.problem) = match files.read_only {
            true => (view::ServiceState::Failed, Some(READ_ONLY.to_owned())),
            false => (view::ServiceState::Ok, files.note.clone()),
        };
    }
    let (made, here) = (export.make.map(|make| word(make.kind).to_owned()), own_address());
    let users = files.iter().flat_map(|files| &files.users);
    let user = |(name, uid): &(String, u32)| view::ShareUser { name: name.clone(), uid: *uid };
    let share = |own: &format::Share| view::Share {
        name: own.name.clone(),
        read_only: own.read_only,
        smb_users: own.users.iter().map(said).collect(),
        nfs_clients: own.clients.iter().map(said).collect(),
        protocols: protocols((export, here), own, (files, &health)),
    };
    view::FileSystem {
        array: array.to_owned(),
        volume: volume.to_owned(),
        volume_uuid: uuid,
        kind: files.as_ref().map(|files| files.kind.clone()).or(made),
        mounted: files.is_some(),
        read_only: files.as_ref().is_some_and(|files| files.read_only),
        size_bytes: files.as_ref().map(|files| files.size),
        used_bytes: files.as_ref().map(|files| files.used),
        smb_listen: export.smb.clone(),
        nfs_listen: export.nfs.clone(),
        users: users.map(user).collect(),
        shares: export.shares.iter().map(share).collect(),
        health,
    }
}

/// What an operator is told of a file system that shut itself down for writing.
const READ_ONLY: &str = "nothing can be written since an error; see the kernel's log, end its \
                         shares, and check the file system";

const fn starting() -> view::ExportHealth {
    view::ExportHealth { state: view::ServiceState::Starting, checked: None, problem: None }
}

/// Who may have a share, as requests say it.
fn said(own: &Access) -> String {
    format!("{}{}", own.who, if own.read_only { ONLY_READS } else { "" })
}

/// How a share is by each of its protocols, while its file system is so; `here` is this machine.
fn protocols(
    (export, here): (&ShareExport, IpAddr),
    share: &format::Share,
    (files, health): (Option<&Files>, &view::ExportHealth),
) -> Vec<view::ShareProtocol> {
    let all = [
        (share.smb, view::Protocol::Smb, SAMBA, (&export.smb, SMB_PORT)),
        (share.nfs, view::Protocol::Nfs, GANESHA, (&export.nfs, NFS_PORT)),
    ];
    let own = all.into_iter().filter(|(is_by, ..)| *is_by);
    own.map(|(_, protocol, server, (address, usual))| {
        let told = files.and_then(|files| match protocol {
            view::Protocol::Smb => files.smb.as_ref(),
            view::Protocol::Nfs => files.nfs.as_ref(),
        });
        let problem = told.and_then(|told| problem_at(told, &share.name));
        let state = match (files, told) {
            (None, _) => health.state,
            // It was not looked for yet.
            (Some(_), None) => view::ServiceState::Starting,
            (Some(_), Some(_)) if problem.is_some() => view::ServiceState::Failed,
            (Some(_), Some(_)) => view::ServiceState::Ok,
        };
        let problem = problem.or_else(|| health.problem.clone().filter(|_| files.is_none()));
        view::ShareProtocol {
            protocol,
            server: server.to_owned(),
            version: told.map(|told| told.version.clone()).filter(|own| !own.is_empty()),
            url: url(protocol, (address, usual, here), &share.name),
            clients: told.map(|told| told.clients.clone()).unwrap_or_default(),
            health: view::ExportHealth { state, checked: health.checked, problem },
        }
    })
    .collect()
}

/// How clients name a share (for NFS RFC 2224, section 2; for SMB the same form): the port only
/// where it is not the usual one.
fn url(
    protocol: view::Protocol,
    (address, usual, here): (&str, u16, IpAddr),
    share: &str,
) -> String {
    let (protocol, share) = (protocol.word(), redfish::routes::encoded(share));
    let Ok(address) = address.parse::<SocketAddr>() else {
        return format!("{protocol}://{address}/{share}");
    };
    let ip = if address.ip().is_unspecified() { here } else { address.ip() };
    let host = if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() };
    let port = address.port();
    let port = if port == usual { String::new() } else { format!(":{port}") };
    format!("{protocol}://{host}{port}/{share}")
}

/// The address by which this machine reaches others, and they it, as far as it knows.
fn own_address() -> IpAddr {
    let found = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect(FAR_AWAY)?;
        std::io::Result::Ok(socket.local_addr()?.ip())
    };
    found().unwrap_or(Ipv4Addr::LOCALHOST.into())
}

#[cfg(test)]
#[path = "shares_tests.rs"]
mod tests;
