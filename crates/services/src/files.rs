//! Shares of one export's file system: what the daemon says, as who makes them ([`shares`]) takes
//! it, and what came of it.
//!
//! A text of a record may be anything: what is no name, address or network is refused here.

use crate::keeper::Host;
use crate::wire::{FileServer, Files, Share, Shares, State, UserChange};
use crate::{blocks, device};
use ::shares::{Change, Make, Place, ServerIs, ShareName, Told, Type, UserName, Wanted};
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

fn wrong(text: &str, why: impl Display) -> io::Error {
    io::Error::other(format!("{text:?}: {why}"))
}

fn address(text: &str) -> io::Result<SocketAddr> {
    text.parse().map_err(|why| wrong(text, why))
}

fn share(own: &Share) -> io::Result<::shares::Share> {
    let user = |(name, only_reads): &(String, bool)| {
        Ok((UserName::new(name).map_err(|why| wrong(name, why))?, *only_reads))
    };
    let client = |(text, only_reads): &(String, bool)| {
        Ok((text.parse().map_err(|why| wrong(text, why))?, *only_reads))
    };
    Ok(::shares::Share {
        name: ShareName::new(&own.name).map_err(|why| wrong(&own.name, why))?,
        is_smb: own.smb,
        is_nfs: own.nfs,
        is_read_only: own.read_only,
        users: own.users.iter().map(user).collect::<io::Result<_>>()?,
        clients: own.clients.iter().map(client).collect::<io::Result<_>>()?,
    })
}

fn wanted(own: &Shares, of: String) -> io::Result<Wanted> {
    let make = |(kind, overwrite): &(String, bool)| {
        let kind = Type::of(kind).ok_or_else(|| wrong(kind, "it is no file system"))?;
        Ok::<_, io::Error>(Make { kind, overwrite: *overwrite })
    };
    Ok(Wanted {
        of,
        make: own.make.as_ref().map(make).transpose()?,
        smb: address(&own.smb)?,
        nfs: address(&own.nfs)?,
        shares: own.shares.iter().map(share).collect::<io::Result<_>>()?,
    })
}

/// Has a file system of a volume, on a device, served as it is wanted: how it is, what is wrong,
/// and what came of one that is served.
///
/// # Errors
/// It can't be.
pub fn serve(
    host: &impl Host,
    (id, of): (&str, String),
    own: &Shares,
    device: &str,
) -> io::Result<(State, Option<String>, Option<Box<Files>>)> {
    let bytes = blocks::bytes(device)?;
    let place = Place::new(host.folder(), id);
    let own = match place.serve(&wanted(own, of)?, (Path::new(device), bytes))? {
        Told::Made => return Ok((State::Made, None, None)),
        Told::Holds(what) => return Ok((State::Holds, Some(what), None)),
        Told::Served(own) => own,
    };
    let servers = [&own.smb, &own.nfs].into_iter().flatten();
    servers.filter_map(|own| own.process).for_each(|process| host.watch(process));
    let files = Files {
        kind: own.name,
        read_only: own.is_read_only,
        note: own.note,
        size: own.size,
        used: own.used,
        users: own.users.into_iter().map(|user| (user.name, user.uid)).collect(),
        smb: own.smb.map(server),
        nfs: own.nfs.map(server),
    };
    let problem = problem(&files);
    let state = if problem.is_some() { State::Failed } else { State::Ok };
    Ok((state, problem.or_else(|| files.note.clone()), Some(Box::new(files))))
}

fn server(own: ServerIs) -> FileServer {
    FileServer {
        version: own.version,
        clients: own.clients.iter().map(ToString::to_string).collect(),
        problem: own.problem,
        problems: own.problems.into_iter().map(|(name, why)| (name.to_string(), why)).collect(),
    }
}

/// The first thing that is wrong with a file system that is served.
fn problem(own: &Files) -> Option<String> {
    let of_server = |own: &FileServer| {
        let of_share = || own.problems.iter().next().map(|(name, why)| format!("{name}: {why}"));
        own.problem.clone().or_else(of_share)
    };
    let read_only = || {
        let why = "its file system can only be read since an error; see the kernel's log";
        own.read_only.then(|| why.to_owned())
    };
    [&own.smb, &own.nfs].into_iter().flatten().find_map(of_server).or_else(read_only)
}

/// Whether nobody has a connection to its servers, as far as that can be told.
pub fn has_no_client(own: &Shares) -> bool {
    let ports = [&own.smb, &own.nfs].into_iter().filter_map(|text| address(text).ok());
    ports.map(|own| own.port()).all(|port| ::shares::clients(port).is_ok_and(|all| all.is_empty()))
}

/// Changes a user of a file system's shares.
///
/// # Errors
/// It can't be: why.
pub fn change(folder: &Path, id: &str, user: &str, change: &UserChange) -> io::Result<()> {
    let name = UserName::new(user).map_err(|why| wrong(user, why))?;
    let change = match change {
        UserChange::Add(password) => Change::Add(password.expose()),
        UserChange::Password(password) => Change::Password(password.expose()),
        UserChange::Delete => Change::Delete,
    };
    Place::new(folder, id).change(&name, change).map(drop)
}

/// Lets shares rest, if there are any: clients ask for them until they are served again. What
/// stands on a device that waits for the daemon waits, too.
///
/// # Errors
/// They can't be.
pub fn rest(folder: &Path, id: &str) -> io::Result<()> {
    if device::is_at_hand(folder, id).is_err() { Ok(()) } else { Place::new(folder, id).rest() }
}

/// Ends shares, and unmounts their file system, unless somebody of this machine uses it.
///
/// # Errors
/// Somebody does, or it can't be.
pub fn leave(folder: &Path, id: &str) -> io::Result<()> {
    Place::new(folder, id).leave()
}

/// Ends shares and their mount, whoever uses them.
///
/// # Errors
/// It can't be.
pub fn end(folder: &Path, id: &str) -> io::Result<()> {
    Place::new(folder, id).end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_name_is_refused() {
        let own = Shares {
            make: None,
            smb: "0.0.0.0:445".into(),
            nfs: "[::]:2049".into(),
            shares: vec![Share {
                name: "docs".into(),
                smb: true,
                nfs: true,
                read_only: false,
                users: vec![("alice".into(), true)],
                clients: vec![("10.0.0.0/8".into(), false)],
            }],
        };
        assert_eq!(wanted(&own, String::new()).expect("possible").shares[0].name.as_str(), "docs");
        let with = |change: fn(&mut Shares)| {
            let mut own = own.clone();
            change(&mut own);
            wanted(&own, String::new()).expect_err("refused").to_string()
        };
        for told in [
            with(|own| own.shares[0].name = "a]\n[global".into()),
            with(|own| own.shares[0].users[0].0 = "a b".into()),
            with(|own| own.shares[0].clients[0].0 = "10.0.0.0/99".into()),
            with(|own| own.make = Some(("zfs".into(), false))),
            with(|own| own.smb = "here".into()),
            with(|own| own.nfs = "0.0.0.0".into()),
        ] {
            assert!(told.starts_with('"'), "{told}");
        }
    }
}
