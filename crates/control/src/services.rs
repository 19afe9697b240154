//! `palisade services` as the daemon has it: which volumes it makes devices and files of this
//! machine, and how they are.
//!
//! It connects to a socket beside the daemon's own, and says nothing that is not asked: the daemon
//! sends all that is wanted, and anew whenever that changes. Descriptors come back with which the
//! cores serve a file ([`crate::files`]), and how each export is.
//!
//! | state of an export | meaning                               | left by                   |
//! |--------------------|---------------------------------------|---------------------------|
//! | wanted             | nothing serves it                     | descriptors come          |
//! | attached           | cores have descriptors of its file    | it is not mounted any more |
//! | attached           | cores serve the queues of its device  | the device has ended       |
//! | leaving            | it is to go, unless somebody uses it  | gone, or busy             |
//!
//! Invariants
//! - An export's revision grows with each change of what is wanted of it; what is said of an older
//!   one is not what was asked for.
//! - Whoever waits for an export waits for a bounded time, and is told where `palisade services`
//!   goes meanwhile.
//! - The daemon never opens nor looks at what stands on its own volumes.

mod kinds;
mod shown;
mod talk;
mod users;

pub use shown::Shown;
pub use talk::listen;

use crate::connection::Target;
use crate::data::Data;
use crate::devices::{Known, Queue};
use crate::files::File;
use crate::lock::lock;
use engine::manage::command::{ArrayStatus, ExportStatus};
use format::{ArrayRecord, ExportRecord, ShareExport};
use fuse::Look;
use kinds::{kind_of, of_shares};
use redfish::access::Secret;
use redfish::messages as say;
use redfish::service::uri;
use redfish::view::{self, Error};
use services::wire::{FileLook, Kind, Order, Receiver, Standing, State, UserChange, Wanted, Word};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};
use talk::{REST, receive, refuse_others, send};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::time::timeout;
use units::{CoreId, Uuid};
use users::Users;

/// How long who makes or ends an export waits for it.
const PATIENCE: Duration = Duration::from_secs(30);
/// The same of who ends a file system.
const UNMOUNTS: Duration = Duration::from_secs(600);
/// How long who resizes a volume waits for its device to have the size.
const RESIZED: Duration = Duration::from_secs(10);
/// How long one that runs may take to come: it asks for the daemon twice a second.
const RETURNS: Duration = Duration::from_secs(3);

/// How long a change of a user may take: Samba's program for it has a while, and the file system
/// may be looked at before.
const USER_CHANGES: Duration = Duration::from_secs(90);
/// How long the end of what is not wanted any more is waited for.
const ENDED: Duration = Duration::from_secs(60);

/// An export of this machine.
struct Own {
    target: Target,
    wanted: Wanted,
    /// The one that serves it, by its number.
    mount: (u64, Weak<Mount>),
    standing: Option<Standing>,
    /// Why nobody is asked for it.
    problem: Option<String>,
}

impl Own {
    /// What came of what is wanted now, if that was said: how it is, and what is wrong.
    fn answer(&self) -> Option<(State, String)> {
        if let Some(problem) = self.problem.as_ref().filter(|_| !self.wanted.leaving) {
            return Some((State::Failed, problem.clone()));
        }
        let said = self.standing.as_ref()?;
        (said.revision >= self.wanted.revision)
            .then(|| (said.state, said.problem.clone().unwrap_or_default()))
    }
}

#[derive(Default)]
struct Inner {
    /// By export: `ARRAY:NUMBER`.
    exports: BTreeMap<String, Own>,
    /// Of arrays that don't run.
    absent: Vec<Wanted>,
    /// Devices that cores serve, by [`Wanted::id`]: as long as they do, whatever is wanted.
    devices: BTreeMap<String, Device>,
    /// The last that was given to a change.
    revision: u64,
    /// Since when `palisade services` is waited for, unless it is there.
    since: Option<Instant>,
    /// Changes of users.
    users: Users,
    /// What cores serve of exports that are not wanted any more, by their volumes.
    ending: Vec<(Uuid, Weak<Mount>)>,
}

impl Inner {
    /// Something of an export is wanted otherwise from here on.
    fn change(&mut self, export: &str, change: impl FnOnce(&mut Own)) -> bool {
        let Some(own) = self.exports.get_mut(export) else { return false };
        change(own);
        self.revision += 1;
        own.wanted.revision = self.revision;
        true
    }
}

/// A mount that cores serve: dropped with the last of them.
struct Mount {
    of: Weak<Services>,
    export: String,
    number: u64,
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Some(services) = self.of.upgrade() {
            services.unmounted(&self.export, self.number);
        }
    }
}

/// A ublk device that cores serve, and the mount that it counts as.
#[derive(Clone)]
struct Device {
    known: Weak<Known>,
    mount: (u64, Weak<Mount>),
}

/// What became of an export that was to go.
pub enum Left {
    /// It is gone, or nobody is there who could say.
    Gone,
    /// Somebody uses it: what.
    Busy(String),
}

/// All of it.
pub struct Services {
    inner: Mutex<Inner>,
    /// Whether `palisade services` is connected.
    is_there: watch::Sender<bool>,
    /// Something is wanted otherwise.
    changed: watch::Sender<()>,
    /// Something was said of an export.
    told: watch::Sender<()>,
    /// The daemon ends.
    ending: watch::Sender<bool>,
    /// The same, for cores.
    is_ending: Arc<AtomicBool>,
}

/// An export that nothing is known of yet.
fn wanted_of(id: String, name: (String, String), kind: Kind, block_bytes: u32) -> Wanted {
    let (array, volume) = name;
    Wanted {
        id,
        revision: 0,
        array,
        volume,
        kind,
        bytes: 0,
        block_bytes,
        best_bytes: block_bytes,
        discard_bytes: block_bytes,
        attached: false,
        leaving: false,
        suspended: false,
    }
}

fn absent() -> Error {
    Error::new(&say::SERVICES_ABSENT, &[])
}

impl Default for Services {
    fn default() -> Self {
        let inner = Mutex::default();
        let (changed, told) = (watch::Sender::new(()), watch::Sender::new(()));
        let (is_there, ending) = (watch::Sender::new(false), watch::Sender::new(false));
        let is_ending = Arc::default();
        Self { inner, is_there, changed, told, ending, is_ending }
    }
}

impl Services {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    /// The daemon ends: nothing is said any more. What is there stays, and whoever uses it has
    /// errors until the daemon is there again.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
        self.ending.send_replace(true);
    }

    /// Whether there is who makes devices and files. One that is about to come is waited for.
    ///
    /// # Errors
    /// There is not.
    pub async fn check(&self) -> Result<(), Error> {
        let mut there = self.is_there.subscribe();
        let waits = self.inner().since.map_or(Duration::ZERO, |since| since.elapsed());
        let comes = timeout(RETURNS.saturating_sub(waits), there.wait_for(|is_there| *is_there));
        if comes.await.is_ok_and(|told| told.is_ok()) { Ok(()) } else { Err(absent()) }
    }

    /// An export of an array that runs is to be there, if its secret is known that has one.
    pub fn want(
        &self,
        array: &ArrayStatus,
        status: &ExportStatus,
        target: Target,
        secret: Result<Option<Secret>, String>,
    ) {
        let (secret, problem) = match secret {
            Ok(secret) => (secret, None),
            Err(problem) => (None, Some(problem)),
        };
        let Some(kind) = kind_of(&status.address, status.volume, secret.as_ref()) else { return };
        let bytes = array.volumes.iter().find(|volume| volume.uuid == status.volume);
        let bytes = bytes.map_or(0, |volume| volume.bytes);
        let id = uri::connection_id(&array.uuid.to_string(), status.id);
        // Not dropped while others are locked out: the last to drop it locks them out, too.
        let device;
        let mut inner = self.inner();
        let export = target.export.clone();
        let is_known = |own: &Own| {
            let of = |target: &Target| (target.array, target.volume);
            of(&own.target) == of(&target)
                && (&own.wanted.kind, &own.problem) == (&kind, &problem)
                && !own.wanted.suspended
        };
        let known = inner.exports.get(&export).filter(|own| is_known(own));
        let had = known.map(|own| own.wanted.bytes);
        if had.is_none() {
            let name = (array.name.clone(), status.volume_name.clone());
            let (best_bytes, discard_bytes) = (array.strip_bytes, array.discard_bytes);
            let wanted = wanted_of(id.clone(), name, kind, array.block_bytes);
            let mut wanted = Wanted { bytes, best_bytes, discard_bytes, ..wanted };
            let mut mount = (0, Weak::new());
            // A device is served on, whichever run of its array that is.
            let served = inner.devices.get(&id).cloned();
            device = served.as_ref().and_then(|served| served.known.upgrade());
            if let (Some(served), Some(device)) = (served, &device)
                && device.volume == target.volume
            {
                device.array.store(target.array.0, Ordering::Relaxed);
                (mount, wanted.attached) = (served.mount, true);
            }
            let own = Own { target, wanted, mount, standing: None, problem };
            inner.exports.insert(export.clone(), own);
            inner.change(&export, |_| ());
        } else if had != Some(bytes) {
            inner.change(&export, |own| own.wanted.bytes = bytes);
        }
        drop(inner);
        self.changed.send_replace(());
    }

    /// An export is not wanted any more; whether it was one of these. Who uses it has errors.
    pub fn forget(&self, export: &str) -> bool {
        let mut inner = self.inner();
        inner.ending.retain(|(_, mount)| mount.strong_count() > 0);
        let Some(own) = inner.exports.remove(export) else { return false };
        inner.ending.push((own.target.volume, own.mount.1));
        drop(inner);
        self.changed.send_replace(());
        true
    }

    /// An export stays, and can't be used: its array does not run. Whether it is one of these.
    pub fn suspend(&self, export: &str) -> bool {
        let change = |own: &mut Own| (own.wanted.suspended, own.wanted.attached) = (true, false);
        let was = self.inner().change(export, change);
        if was {
            self.changed.send_replace(());
        }
        was
    }

    /// These arrays were found, and don't run: what is there of their exports stays.
    pub fn set_absent<'a>(&self, arrays: impl Iterator<Item = &'a ArrayRecord>) {
        let own = |array: &ArrayRecord, export: &ExportRecord| {
            let volume = array.volumes.iter().find(|volume| volume.uuid == export.volume)?;
            let id = uri::connection_id(&array.array.to_string(), export.id);
            let name = (array.name.clone(), volume.name.clone());
            let kind = kind_of(&export.address, export.volume, None)?;
            let wanted = wanted_of(id, name, kind, array.block_bytes);
            Some(Wanted { suspended: true, ..wanted })
        };
        let all = arrays.flat_map(|array| array.exports.iter().map(move |e| (array, e)));
        let all: Vec<Wanted> = all.filter_map(|(array, export)| own(array, export)).collect();
        let mut inner = self.inner();
        let same = |(one, other): (&Wanted, &Wanted)| {
            *one == Wanted { revision: one.revision, ..other.clone() }
        };
        if inner.absent.len() == all.len() && inner.absent.iter().zip(&all).all(same) {
            return;
        }
        inner.revision += 1;
        let revision = inner.revision;
        inner.absent = all.into_iter().map(|own| Wanted { revision, ..own }).collect();
        drop(inner);
        self.changed.send_replace(());
    }

    /// Somebody asks again for an export that is wanted: it is to be tried at once.
    pub fn renew(&self, export: &str) {
        self.inner().change(export, |_| ());
        self.changed.send_replace(());
    }

    /// Waits until an export that is wanted can be used.
    ///
    /// # Errors
    /// It can't be: why.
    pub async fn served(&self, export: &str) -> Result<(), Error> {
        let failed = |why: &str| Error::new(&say::SERVICES_FAILED, &[&export, &why]);
        match self.wait(export, PATIENCE).await? {
            Some((State::Ok, _)) => Ok(()),
            Some((_, why)) => Err(failed(&why)),
            None => Err(failed("no answer in time")),
        }
    }

    /// A volume has another size: waits until its devices have it, too, for some time.
    pub async fn resized(&self, volume: Uuid, bytes: u64) {
        for export in self.set_bytes(volume, bytes) {
            // How it is is told by itself.
            let _ = self.wait(&export, RESIZED).await;
        }
    }

    /// Says how large a volume is to be; of which exports.
    fn set_bytes(&self, volume: Uuid, bytes: u64) -> Vec<String> {
        let mut inner = self.inner();
        let own = inner.exports.iter().filter(|(_, own)| own.target.volume == volume);
        let all: Vec<String> = own.map(|(export, _)| export.clone()).collect();
        for export in &all {
            inner.change(export, |own| own.wanted.bytes = bytes);
        }
        drop(inner);
        self.changed.send_replace(());
        all
    }

    /// Has exports that hosts use rest, before their array stops: they wait.
    pub async fn rest(&self, exports: &[String]) {
        let all = exports.iter().filter(|export| self.suspend(export));
        let waits = all.collect::<Vec<_>>();
        let all_rest = async {
            for export in waits {
                // Nobody is there who could: hosts may see errors.
                let _ = self.wait(export, PATIENCE).await;
            }
        };
        // Or it took too long.
        let _ = timeout(PATIENCE, all_rest).await;
    }

    /// Has an export go, unless somebody uses it; then it stays as it was.
    pub async fn leave(&self, export: &str) -> Result<Left, Error> {
        self.leave_within(export, self.leaves(export)).await
    }

    /// The same, within a time.
    pub async fn leave_within(&self, export: &str, limit: Duration) -> Result<Left, Error> {
        if self.set_leaving(export, true).is_none() {
            return Ok(Left::Gone);
        }
        match self.wait(export, limit).await {
            Ok(Some((State::Gone, _))) => Ok(Left::Gone),
            Ok(other) => {
                self.set_leaving(export, false);
                let why = other.map(|(_, why)| why).filter(|why| !why.is_empty());
                Ok(Left::Busy(why.unwrap_or_else(|| "no answer in time".to_owned())))
            }
            Err(error) => {
                // What nobody has mounted needs nobody to end it. A device of ublk may be used
                // though no core has it.
                let is_attached = self.set_leaving(export, false) == Some(true);
                let is_there = is_attached || self.may_be_there(export);
                if is_there { Err(error) } else { Ok(Left::Gone) }
            }
        }
    }

    /// How long an export may take to go: what was written to a file system and is not yet on its
    /// device is written first.
    fn leaves(&self, export: &str) -> Duration {
        let is_files = |own: &Own| matches!(own.wanted.kind, Kind::Shares(_));
        if self.inner().exports.get(export).is_some_and(is_files) { UNMOUNTS } else { PATIENCE }
    }

    /// Whether something may be there of an export: a file system of shares, or a link to a device.
    fn may_be_there(&self, export: &str) -> bool {
        let inner = self.inner();
        let Some(Own { wanted, .. }) = inner.exports.get(export) else { return false };
        match wanted.kind {
            Kind::Shares(_) => true,
            Kind::File(_) => false,
            _ => services::link(&wanted.array, &wanted.volume).is_some_and(|own| own.is_symlink()),
        }
    }

    /// An export that was to leave, or to rest, stays.
    pub fn stay(&self, export: &str) {
        self.inner().change(export, |own| {
            (own.wanted.leaving, own.wanted.suspended) = (false, false);
        });
        self.changed.send_replace(());
    }

    /// It is to go, or it is not; whether it was attached.
    pub fn set_leaving(&self, export: &str, leaving: bool) -> Option<bool> {
        let mut inner = self.inner();
        let is_attached = inner.exports.get(export)?.mount.1.strong_count() > 0;
        inner.change(export, |own| own.wanted.leaving = leaving);
        drop(inner);
        self.changed.send_replace(());
        Some(is_attached)
    }

    /// Waits for what came of what is wanted of an export, for so long.
    pub async fn wait(
        &self,
        export: &str,
        patience: Duration,
    ) -> Result<Option<(State, String)>, Error> {
        let (mut told, mut there) = (self.told.subscribe(), self.is_there.subscribe());
        let found = async {
            loop {
                told.mark_unchanged();
                if !*there.borrow_and_update() {
                    return Err(absent());
                }
                match self.inner().exports.get(export) {
                    None => return Ok(None),
                    Some(own) => {
                        if let Some(answer) = own.answer() {
                            return Ok(Some(answer));
                        }
                    }
                }
                tokio::select! {
                    _ = told.changed() => {}
                    _ = there.changed() => {}
                }
            }
        };
        timeout(patience, found).await.unwrap_or(Ok(None))
    }

    /// Whether an export is one of these, and can be used.
    pub fn serves(&self, export: &str) -> bool {
        let ok = view::ServiceState::Ok;
        let health = self.shown(export).and_then(|shown| shown.health);
        health.is_some_and(|health| health.state == ok)
    }

    /// How an export is, if it is one of these.
    pub fn shown(&self, export: &str) -> Option<Shown> {
        let inner = self.inner();
        let Own { wanted, standing, problem, .. } = inner.exports.get(export)?;
        let waits = inner.since.map_or(Duration::ZERO, |since| since.elapsed());
        let nobody = (!*self.is_there.borrow()).then(|| (waits, absent().error));
        let (standing, problem) = (standing.as_ref(), problem.as_ref());
        Some(Shown::new(&shown::Known { wanted, standing, problem }, nobody))
    }

    /// Whether an export is a device of ublk now.
    pub fn is_ublk(&self, export: &str) -> bool {
        let inner = self.inner();
        let Some(own) = inner.exports.get(export) else { return false };
        let device = own.standing.as_ref().and_then(|said| said.device.as_deref());
        let served = inner.devices.get(&own.wanted.id);
        device.is_some_and(services::is_ublk)
            || served.is_some_and(|device| device.known.strong_count() > 0)
    }

    /// Cores serve it no more, if it is this mount.
    fn unmounted(&self, export: &str, number: u64) {
        // Whoever waits for its end.
        self.told.send_replace(());
        let mut inner = self.inner();
        if inner.exports.get(export).is_none_or(|own| own.mount.0 != number) {
            return;
        }
        inner.change(export, |own| own.wanted.attached = false);
        drop(inner);
        self.changed.send_replace(());
    }

    /// Has the cores serve the file of an export.
    fn attach(
        self: &Arc<Self>,
        data: &Data,
        id: &str,
        look: FileLook,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Wanted, String> {
        if descriptors.len() != usize::from(data.cores()) {
            return Err(format!("{} descriptors for {} cores", descriptors.len(), data.cores()));
        }
        let (now, target, mount) = self.take(id)?;
        let FileLook { uid, gid, mode, seconds } = look;
        let look = Look { uid, gid, mode, seconds };
        for (core, fd) in (0..data.cores()).map(CoreId).zip(descriptors) {
            let file = File { target: target.clone(), look, held: mount.clone() };
            data.serve_file(core, fd, file);
        }
        self.changed.send_replace(());
        Ok(now)
    }

    /// An export is attached from here on, as long as its mount is held.
    fn take(self: &Arc<Self>, id: &str) -> Result<(Wanted, Target, Arc<Mount>), String> {
        const GONE: &str = "it is not wanted any more";
        let mut inner = self.inner();
        let found = inner.exports.iter().find(|(_, own)| own.wanted.id == id);
        let (export, own) = found.ok_or(GONE)?;
        if own.wanted.suspended {
            return Err("its array does not run".to_owned());
        }
        let export = export.clone();
        // No mount of the export had this number, nor one of an earlier run of its array.
        let number = inner.revision + 1;
        let mount = Arc::new(Mount { of: Arc::downgrade(self), export: export.clone(), number });
        inner.change(&export, |own| {
            own.mount = (number, Arc::downgrade(&mount));
            own.wanted.attached = true;
        });
        let own = inner.exports.get(&export).ok_or(GONE)?;
        Ok((own.wanted.clone(), own.target.clone(), mount))
    }

    /// Has the cores serve the device of an export: each so many of its queues as others.
    fn attach_device(
        self: &Arc<Self>,
        data: &Data,
        id: &str,
        (queues, depth): (u16, u16),
        own: Vec<OwnedFd>,
    ) -> Result<Wanted, String> {
        let [device] = <[OwnedFd; 1]>::try_from(own)
            .map_err(|own| format!("{} descriptors for a device", own.len()))?;
        if !data.has_rings() {
            return Err("the daemon has no io_uring".to_owned());
        }
        self.has_room(data, queues)?;
        let device = Arc::new(device);
        // Of a device none or all queues are served: what a core serves can't be taken from it.
        let map = |number| Queue::map(device.clone(), number, depth);
        let all: Vec<Queue> = (0..queues)
            .map(map)
            .collect::<io::Result<_>>()
            .map_err(|error| format!("its queues: {error}"))?;
        let (now, target, mount) = self.take(id)?;
        let of = (target.array, target.volume);
        let counts_as = (mount.number, Arc::downgrade(&mount));
        let known = Arc::new(Known::new(of, queues, self.is_ending.clone(), mount));
        let device = Device { known: Arc::downgrade(&known), mount: counts_as };
        let mut inner = self.inner();
        inner.devices.retain(|_, device| device.known.strong_count() > 0);
        inner.devices.insert(id.to_owned(), device);
        drop(inner);
        for (queue, core) in all.into_iter().zip((0..data.cores()).cycle().map(CoreId)) {
            data.serve_device(core, queue, known.clone());
        }
        self.changed.send_replace(());
        Ok(now)
    }

    /// Whether each core has memory for its part of another device with so many queues.
    fn has_room(&self, data: &Data, queues: u16) -> Result<(), String> {
        let of_a_core = |queues: u16| usize::from(queues.div_ceil(data.cores()));
        // Not dropped while others are locked out.
        let served: Vec<Arc<Known>> =
            self.inner().devices.values().filter_map(|device| device.known.upgrade()).collect();
        let taken: usize = served.iter().map(|known| of_a_core(known.queues)).sum();
        match taken + of_a_core(queues) <= ublk::MEMORY.connections {
            true => Ok(()),
            false => Err(format!("no memory for more than {taken} queues on a data core")),
        }
    }

    /// What is said of exports; whether any is otherwise than it was.
    fn tell(&self, all: Vec<Standing>) -> bool {
        let mut is_other = false;
        let mut inner = self.inner();
        for said in all {
            let own = inner.exports.values_mut().find(|own| own.wanted.id == said.id);
            if let Some(own) = own {
                let how = |s: &Standing| Standing { revision: 0, checked: 0, ..s.clone() };
                is_other |= own.standing.as_ref().map(how) != Some(how(&said));
                own.standing = Some(said);
            }
        }
        drop(inner);
        self.told.send_replace(());
        is_other
    }

    /// Something else is to be shared of a file system; what is there of it stays.
    pub fn set_shares(&self, export: &str, shares: &ShareExport) {
        self.inner().change(export, |own| own.wanted.kind = of_shares(shares));
        self.changed.send_replace(());
    }

    /// Whether the file system of an export is made as it is wanted, and waits for that to be
    /// known.
    pub fn is_made(&self, export: &str) -> bool {
        let inner = self.inner();
        let own = inner.exports.get(export);
        own.and_then(|own| own.answer()).is_some_and(|(state, _)| state == State::Made)
    }

    /// Whether one is.
    pub fn are_made(&self) -> bool {
        let inner = self.inner();
        let mut all = inner.exports.values().filter_map(|own| own.answer());
        all.any(|(state, _)| state == State::Made)
    }

    /// Waits, for a time, until nothing of a volume is there any more that was wanted once: two may
    /// not have its file system mounted. Whether that is so.
    pub async fn has_ended(&self, volume: Uuid) -> bool {
        let mut told = self.told.subscribe();
        let ended = async {
            loop {
                told.mark_unchanged();
                let is_there =
                    |(of, mount): &(Uuid, Weak<Mount>)| *of == volume && mount.strong_count() > 0;
                if !self.inner().ending.iter().any(is_there) || told.changed().await.is_err() {
                    return;
                }
            }
        };
        timeout(ENDED, ended).await.is_ok()
    }

    /// Has a user of an export's file system changed: what came of it.
    ///
    /// # Errors
    /// Nobody is there who could.
    pub async fn change_user(
        &self,
        export: &str,
        user: &str,
        change: UserChange,
    ) -> Result<Result<(), String>, Error> {
        let told = {
            let mut inner = self.inner();
            if !*self.is_there.borrow() {
                return Err(absent());
            }
            let Some(own) = inner.exports.get(export) else {
                return Ok(Err("it is not shared any more".to_owned()));
            };
            let id = own.wanted.id.clone();
            inner.users.ask(id, user.to_owned(), change)
        };
        self.changed.send_replace(());
        match timeout(USER_CHANGES, told).await {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(_)) => Err(absent()),
            Err(_) => Ok(Err("no answer in time".to_owned())),
        }
    }

    fn wanted(&self, data: &Data) -> Order {
        let inner = self.inner();
        let mut all: BTreeMap<&str, Wanted> =
            inner.absent.iter().map(|wanted| (wanted.id.as_str(), wanted.clone())).collect();
        for Own { wanted, problem, .. } in inner.exports.values() {
            // What can't be served yet rests: nothing of it ends.
            let waits = !wanted.leaving;
            let suspended = if problem.is_some() { waits } else { wanted.suspended };
            all.insert(&wanted.id, Wanted { suspended, ..wanted.clone() });
        }
        let (cores, rings) = (data.cores(), data.has_rings());
        Order::Wanted { cores, rings, exports: all.into_values().collect() }
    }

    /// Serves `palisade services`, one at a time, until it is aborted. Only root is it, or the
    /// daemon's own user.
    pub async fn keep(
        self: Arc<Self>,
        data: Data,
        listener: UnixListener,
        noted: impl Fn() + Send + Sync,
    ) {
        let mut ending = self.ending.subscribe();
        self.inner().since = Some(Instant::now());
        while !*ending.borrow_and_update() {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(REST).await;
                continue;
            };
            let own = rustix::process::geteuid().as_raw();
            let is_ours = |user: u32| user == 0 || user == own;
            if !stream.peer_cred().is_ok_and(|peer| is_ours(peer.uid())) {
                continue;
            }
            self.is_there.send_replace(true);
            noted();
            let (me, talked) = (self.clone(), data.clone());
            let talking = me.talk(&talked, &stream, &noted);
            tokio::select! {
                // Who comes when this one has just gone is no other.
                biased;
                _ = ending.changed() => {}
                _ = talking => {}
                () = refuse_others(&listener) => {}
            }
            self.is_there.send_replace(false);
            let mut inner = self.inner();
            inner.since = Some(Instant::now());
            inner.exports.values_mut().for_each(|own| own.standing = None);
            inner.users.end();
            drop(inner);
            noted();
        }
    }

    /// Talks with it until it goes.
    async fn talk(
        self: &Arc<Self>,
        data: &Data,
        stream: &UnixStream,
        noted: &(impl Fn() + Sync),
    ) -> io::Result<()> {
        let mut changed = self.changed.subscribe();
        let mut receiver = Receiver::default();
        // What is to be sent already, too.
        changed.mark_changed();
        loop {
            tokio::select! {
                word = receive(stream, &mut receiver) => match word? {
                    (Word::Attach { id, look }, own) => {
                        let outcome = self.attach(data, &id, look, own);
                        send(stream, &Order::Attached { id, outcome }).await?;
                    }
                    (Word::AttachDevice { id, queues, depth }, own) => {
                        let outcome = self.attach_device(data, &id, (queues, depth), own);
                        send(stream, &Order::Attached { id, outcome }).await?;
                    }
                    (Word::User { number, outcome }, _) => {
                        self.inner().users.answer(number, outcome);
                    }
                    (Word::Are(all), _) => {
                        if self.tell(all) {
                            noted();
                        }
                    }
                },
                _ = changed.changed() => {
                    // Before users of an export change it is known there.
                    send(stream, &self.wanted(data)).await?;
                    let orders = self.inner().users.orders();
                    for order in orders {
                        send(stream, &order).await?;
                    }
                }
            }
        }
    }
}
