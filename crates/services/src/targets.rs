//! iSCSI targets that are to be there, whoever serves them: the kernel's LIO over an export's ublk
//! device ([`crate::lio`]), or tgt over its file ([`crate::tgt`]).
//!
//! A target is one export: it has one unit, a volume, and lets in only whom the export names, and
//! who asks here how it is.
//!
//! | the export says | there is                         | it is served by    |
//! |-----------------|----------------------------------|--------------------|
//! | a server        | whatever                         | that one           |
//! | none            | a target of it                   | who serves that    |
//! | none            | no target; ublk, and LIO         | LIO                |
//! | none            | no target; one of both is not    | tgt                |
//!
//! `ID.iscsi` in the folder of this process is there before the target, and until it is gone: it
//! says the server, the target and its portals. Who asks has a name and an account of its own, the
//! same for all: both stand in `asker` there.
//!
//! Invariant: a target is well if whoever asks logs in at each portal and reads a block.

use crate::keeper::{Host, put};
use crate::tgt::Instance;
use crate::ublk::Driver;
use crate::wire::{Iscsi, Known, Server, Wanted};
use crate::{device, lio, lock};
use ::iscsi::{Account, Asked, Identity, Name, Refusal, Secret, UNIT, ask};
use ::shares::system::{reached, secret};
use rustix::rand::{GetRandomFlags, getrandom};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long who asks waits at a portal.
const LIMIT: Duration = Duration::from_secs(10);
/// The file with who asks.
const ASKER: &str = "asker";
/// What its name begins with.
const ASKER_NAME: &str = "iqn.2024-07.internal.palisade:asker-";
/// What its secret is made of: so many characters, of which there are 64.
const SECRET_CHARACTERS: usize = 16;

/// A target that is to be there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Where it is to be reached.
    pub portals: Vec<SocketAddr>,
    /// Who may log in.
    pub initiators: Vec<Name>,
    /// Who asks how it is.
    pub asker: Name,
    /// By what initiators prove who they are.
    pub account: Option<Account>,
    /// By what who asks does, where initiators have to: whoever pretends to be the target learns
    /// nothing of theirs.
    pub asker_account: Option<Account>,
    /// The volume's device or file.
    pub path: PathBuf,
    /// Its smallest unit.
    pub block_bytes: u32,
    /// What it is called, and hosts know its unit by.
    pub identity: Identity,
}

impl Target {
    /// All that may log in.
    pub fn allowed(&self) -> impl Iterator<Item = &Name> {
        self.initiators.iter().chain([&self.asker])
    }

    /// All by which that is proved.
    pub fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.account.iter().chain(self.account.as_ref().and(self.asker_account.as_ref()))
    }

    /// Asks at each portal how it is; how many bytes it has.
    fn ask(&self) -> io::Result<Option<u64>> {
        let account = self.account.as_ref().and(self.asker_account.as_ref());
        let mut bytes = None;
        for portal in &self.portals {
            let asked = Asked {
                portal: reached(*portal),
                target: &self.identity.target,
                unit: UNIT,
                initiator: &self.asker,
                account,
            };
            match ask(&asked, LIMIT) {
                Ok(told) => bytes = Some(told.bytes),
                // It serves a host alone that wants that.
                Err(Refusal::Reserved) => {}
                Err(why) => return Err(io::Error::other(format!("{portal}: {why}"))),
            }
        }
        Ok(bytes)
    }
}

/// What stands in `ID.iscsi`.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Mark {
    server: Server,
    target: Name,
    portals: Vec<SocketAddr>,
}

fn mark_of(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.iscsi"))
}

impl Mark {
    fn read(folder: &Path, id: &str) -> Option<Self> {
        let text = std::fs::read_to_string(mark_of(folder, id)).ok()?;
        let mut words = text.split_whitespace();
        let server = match words.next()? {
            "lio" => Server::Lio,
            _ => Server::Tgt,
        };
        let target = Name::new(words.next()?).ok()?;
        Some(Self { server, target, portals: words.filter_map(|word| word.parse().ok()).collect() })
    }

    fn write(&self, folder: &Path, id: &str) -> io::Result<()> {
        let server = match self.server {
            Server::Lio => "lio",
            Server::Tgt => "tgt",
        };
        let portals = self.portals.iter().map(|portal| format!(" {portal}"));
        let text = format!("{server} {}{}", self.target, portals.collect::<String>());
        put(folder, id, &mark_of(folder, id), text.as_bytes())
    }

    /// All of a folder, with their exports.
    fn all(folder: &Path) -> io::Result<Vec<(String, Self)>> {
        let mut all = Vec::new();
        for file in std::fs::read_dir(folder)?.flatten() {
            let name = file.file_name().into_string().unwrap_or_default();
            if let Some(id) = name.strip_suffix(".iscsi")
                && let Some(mark) = Self::read(folder, id)
            {
                all.push((id.to_owned(), mark));
            }
        }
        Ok(all)
    }

    /// The `tgtd` that serves it, or is to.
    fn instance(&self, folder: &Path) -> io::Result<Instance> {
        let is_beside = |other: &Self| other.server == Server::Tgt && other.portals == self.portals;
        let beside = Self::all(folder)?.into_iter().map(|(_, mark)| mark);
        let names: BTreeSet<Name> = beside.filter(is_beside).map(|mark| mark.target).collect();
        Ok(Instance::of(folder, &self.portals).with(names.into_iter().collect()))
    }

    /// Ends the target, whoever has it. One that another export of the volume has by now stays:
    /// this one was deleted.
    fn end(&self, folder: &Path, id: &str) -> io::Result<()> {
        let is_others = |(other, mark): &(String, Self)| other != id && mark.target == self.target;
        let is_others = Self::all(folder)?.iter().any(is_others);
        match (self.server, is_others) {
            (Server::Lio, false) => lio::end(id, &self.target),
            (Server::Lio, true) => lio::let_go(id),
            (Server::Tgt, false) => self.instance(folder)?.end(&self.target),
            (Server::Tgt, true) => Ok(()),
        }
    }
}

/// Held while a target changes, which two exports may have by turns.
fn changing(target: &Name) -> Arc<Mutex<()>> {
    static CHANGING: Mutex<BTreeMap<Name, Arc<Mutex<()>>>> = Mutex::new(BTreeMap::new());
    lock(&CHANGING).entry(target.clone()).or_default().clone()
}

/// Who asks, and its secret.
fn asker(folder: &Path) -> io::Result<(Name, Secret)> {
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = lock(&MAKING);
    let read = || {
        let text = std::fs::read_to_string(folder.join(ASKER)).ok()?;
        let (name, secret) = text.split_once(' ')?;
        Some((Name::new(name).ok()?, Secret::new(secret).ok()?))
    };
    if let Some(known) = read() {
        return Ok(known);
    }
    let mut name = [0; 8];
    getrandom(&mut name, GetRandomFlags::empty())?;
    let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
    // The folder is this user's alone.
    let text = format!("{ASKER_NAME}{name} {}", secret(SECRET_CHARACTERS)?);
    put(folder, ASKER, &folder.join(ASKER), text.as_bytes())?;
    read().ok_or_else(|| ErrorKind::InvalidData.into())
}

/// Who serves an export's target.
///
/// # Errors
/// Nobody can: why.
pub fn server(host: &impl Host, id: &str, own: &Iscsi) -> io::Result<Server> {
    let known = || Mark::read(host.folder(), id).map(|mark| mark.server);
    match own.server.or_else(known) {
        Some(Server::Tgt) => Ok(Server::Tgt),
        Some(Server::Lio) if !host.has_rings() => {
            Err(io::Error::other("the daemon has no io_uring"))
        }
        Some(Server::Lio) => match Driver::load()? {
            None => Err(io::Error::other("this kernel has no ublk; load ublk_drv (Linux 6.12)")),
            Some(_) if !lio::load() => Err(io::Error::other(
                "this kernel has no LIO; load target_core_iblock and iscsi_target_mod",
            )),
            Some(_) => Ok(Server::Lio),
        },
        // What of them can't be used is as good as none.
        None => {
            match host.has_rings() && Driver::load().is_ok_and(|d| d.is_some()) && lio::load() {
                true => Ok(Server::Lio),
                false => Ok(Server::Tgt),
            }
        }
    }
}

/// How a target is.
pub struct Served {
    /// Initiators that have it.
    pub sessions: Vec<String>,
    /// What is still other than it is wanted.
    pub note: Option<String>,
}

/// Has a target served over a volume's device or file.
///
/// # Errors
/// It can't be, or nobody can use it.
pub fn serve(
    host: &impl Host,
    (wanted, own): (&Wanted, &Iscsi),
    server: Server,
    path: &Path,
) -> io::Result<Served> {
    let (folder, id) = (host.folder(), &wanted.id);
    let target = target(folder, wanted, own, path)?;
    let name = target.identity.target.clone();
    let changing = changing(&name);
    let held = lock(&changing);
    let mark = Mark { server, target: name, portals: target.portals.clone() };
    match Mark::read(folder, id) {
        Some(known) if known == mark => {}
        other => {
            other.map_or(Ok(()), |other| other.end(folder, id))?;
            mark.write(folder, id)?;
        }
    }
    make(folder, id, &mark, &target)?;
    drop(held);
    watch(host, &mark);
    let bytes = target.ask()?;
    let sessions = sessions(folder, id, &mark, &target.asker)?;
    let mut note = None;
    if let Some(bytes) = bytes.filter(|bytes| *bytes != wanted.bytes) {
        // Servers look at a size once.
        if sessions.is_empty() {
            rest(folder, id)?;
            make(folder, id, &mark, &target)?;
            target.ask()?;
        } else {
            note = Some(format!("it has {bytes} bytes until no initiator is logged in"));
        }
    }
    Ok(Served { sessions, note })
}

fn make(folder: &Path, id: &str, mark: &Mark, target: &Target) -> io::Result<()> {
    match mark.server {
        Server::Lio => lio::serve(id, target),
        Server::Tgt => mark.instance(folder)?.serve(target),
    }
}

/// Has the export looked after as soon as the process ends that serves it.
fn watch(host: &impl Host, mark: &Mark) {
    if mark.server == Server::Tgt
        && let Ok(Some(process)) = Instance::of(host.folder(), &mark.portals).holder()
    {
        host.watch(process);
    }
}

fn sessions(folder: &Path, id: &str, mark: &Mark, asker: &Name) -> io::Result<Vec<String>> {
    let mut all = match mark.server {
        Server::Lio => lio::sessions(id, &mark.target)?,
        Server::Tgt => Instance::of(folder, &mark.portals).sessions(&mark.target)?,
    };
    all.retain(|name| name != asker.as_str());
    all.sort();
    Ok(all)
}

/// Initiators that have an export's target, as far as that can be told.
pub fn users(folder: &Path, id: &str) -> Option<Vec<String>> {
    let (asker, _) = asker(folder).ok()?;
    sessions(folder, id, &Mark::read(folder, id)?, &asker).ok()
}

fn target(folder: &Path, wanted: &Wanted, own: &Iscsi, path: &Path) -> io::Result<Target> {
    let (asker, secret) = asker(folder)?;
    // An account is one target's.
    let user = format!("asker-{}", own.serial);
    let asker_account = Account::new(&user, secret).map_err(io::Error::other)?;
    let name = |text: &String| Name::new(text).map_err(io::Error::other);
    let account = |known: &Known| {
        let unknown = || io::Error::other("the secret of its user is not known");
        let secret = known.secret.as_ref().ok_or_else(unknown)?;
        let secret = Secret::new(secret.expose()).map_err(io::Error::other)?;
        Account::new(&known.user, secret).map_err(io::Error::other)
    };
    Ok(Target {
        portals: own.portals.clone(),
        initiators: own.initiators.iter().map(name).collect::<Result<_, _>>()?,
        asker,
        account: own.account.as_ref().map(account).transpose()?,
        asker_account: Some(asker_account),
        path: path.to_owned(),
        block_bytes: wanted.block_bytes,
        identity: Identity {
            target: name(&own.target)?,
            serial: own.serial.clone(),
            naa: own.naa.clone(),
        },
    })
}

/// Lets an export's target rest, if there is one: initiators ask for it until it is served again.
/// One whose device waits for the daemon stays: they wait there.
///
/// # Errors
/// It can't be.
pub fn rest(folder: &Path, id: &str) -> io::Result<()> {
    match Mark::read(folder, id) {
        Some(mark) if mark.server == Server::Tgt => mark.instance(folder)?.rest(&mark.target),
        Some(mark) if device::is_at_hand(folder, id).is_ok() => lio::rest(id, &mark.target),
        _ => Ok(()),
    }
}

/// Has an export's target, if there is one, let its volume go, so that others may be asked whether
/// they use that.
///
/// # Errors
/// Somebody else uses its device, or it can't be.
pub fn let_go(folder: &Path, id: &str) -> io::Result<()> {
    match Mark::read(folder, id) {
        Some(mark) if mark.server == Server::Lio => {
            if let Some(user) = device::opener(folder, id)? {
                return Err(io::Error::other(user));
            }
            end(folder, id)
        }
        _ => rest(folder, id),
    }
}

/// Ends an export's target, if there is one, whoever has it.
///
/// # Errors
/// It can't be ended.
pub fn end(folder: &Path, id: &str) -> io::Result<()> {
    let Some(mark) = Mark::read(folder, id) else { return Ok(()) };
    let changing = changing(&mark.target);
    let _held = lock(&changing);
    mark.end(folder, id)?;
    match std::fs::remove_file(mark_of(folder, id)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Ends what a process has left that serves no export's target.
///
/// # Errors
/// It can't be ended.
pub fn sweep(folder: &Path) -> io::Result<()> {
    let wanted: Vec<Instance> =
        Mark::all(folder)?.iter().map(|(_, mark)| Instance::of(folder, &mark.portals)).collect();
    Instance::sweep(folder, &wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_stays_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let (name, secret) = asker(folder.path()).expect("made");
        assert_eq!(asker(folder.path()).expect("read"), (name.clone(), secret.clone()));
        let other = tempfile::tempdir().expect("a folder");
        assert_ne!(asker(other.path()).expect("made").1, secret);
        std::fs::write(folder.path().join(ASKER), "damaged").expect("written");
        assert_ne!(asker(folder.path()).expect("made anew").0, name);
    }

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let portals = ["127.0.0.1:3260", "[::1]:3261"].map(|at| at.parse().expect("an address"));
        for server in [Server::Lio, Server::Tgt] {
            let target = Name::new("iqn.2026-11.example:a").expect("a name");
            let mark = Mark { server, target, portals: portals.to_vec() };
            mark.write(folder.path(), "a-1").expect("written");
            assert_eq!(Mark::read(folder.path(), "a-1"), Some(mark));
        }
        assert_eq!(Mark::all(folder.path()).expect("listed").len(), 1);
    }

    #[test]
    fn a_portal_of_all_addresses_is_reached_here() {
        for (portal, from_here) in [
            ("0.0.0.0:3260", "127.0.0.1:3260"),
            ("[::]:3260", "[::1]:3260"),
            ("192.0.2.1:3260", "192.0.2.1:3260"),
        ] {
            let portal = portal.parse().expect("an address");
            assert_eq!(reached(portal).to_string(), from_here);
        }
    }
}
