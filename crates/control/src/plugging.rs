//! Follows drives that are pulled out and plugged in.
//!
//! The kernel announces each device that comes or goes; it is also looked once a minute, for what
//! was not heard. Each look asks the kernel alone, aside, and no drive: which of the devices that
//! arrays have open are there. What is not is settled by [`crate::plugs`], within a second.
//!
//! Invariants
//! - The engine is asked, and fails drives; nothing here changes an array by itself.
//! - A kernel whose tree of devices can't be read says nothing: no drive is gone for that.

use crate::claims::Lookup;
use crate::convert;
use crate::inventory::Inventory;
use crate::manager::Manager;
use crate::plugs::{Coverage, InUse, Kernel, Opening, is_used, numbers};
use drives::sysfs::ROOT as SYSFS;
use drives::sysfs::Sysfs;
use drives::uevent::{Listener, Notice};
use engine::manage::command::{ArrayStatus, Reply, Request};
use health::departures::{Place, Verdict};
use redfish::messages as say;
use redfish::service::uri;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UnixDatagram;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use units::Uuid;

/// How often it is looked for what was not heard.
const LOOK: Duration = Duration::from_secs(60);

/// How long after an announcement it is looked, so that many are one look.
const TOGETHER: Duration = Duration::from_millis(30);

/// When a look that could not be made is made again.
const AGAIN: Duration = Duration::from_millis(200);

/// How long the engine may take to say which arrays can spare which drives. It says so in moments;
/// a machine that is overloaded takes longer, and what is held for want of an answer stays held.
const PATIENCE: Duration = Duration::from_secs(5);

/// The kinds of device whose announcements are of drives.
const KINDS: [&str; 2] = ["block", "nvme"];

/// Drives of an array that are to be failed.
#[derive(Debug)]
struct ToFail {
    array: Uuid,
    openings: Vec<Opening>,
}

impl ToFail {
    fn request<T>(&self, reply: Reply<ArrayStatus>) -> Request<T> {
        let paths = self.openings.iter().map(|opening| opening.path.clone()).collect();
        Request::Fail(self.array.to_string(), paths, reply)
    }
}

/// Openings by the arrays that use them.
fn by_array(gone: &[Opening], in_use: &InUse) -> Vec<ToFail> {
    let mut all: BTreeMap<Uuid, Vec<Opening>> = BTreeMap::new();
    for opening in gone {
        if let Some(place) = in_use.get(opening) {
            all.entry(place.array).or_default().push(opening.clone());
        }
    }
    all.into_iter().map(|(array, openings)| ToFail { array, openings }).collect()
}

impl Manager {
    /// Follows drives for as long as the daemon runs.
    pub(crate) async fn keep_plugged(&self) {
        let (send, receive) = mpsc::unbounded_channel();
        tokio::join!(self.follow_plugs(&send), self.keep_failing(receive), self.keep_finding());
    }

    /// Hears of drives, looks which are there, and says which are to be failed. Waits for nothing
    /// but the kernel's word and a short one of the engine.
    async fn follow_plugs(&self, failing: &mpsc::UnboundedSender<ToFail>) {
        let mut ear = listen();
        loop {
            let is_seen = self.look_at_plugs(failing).await;
            let heard = async {
                match &ear {
                    Some(ear) => ear.hear().await,
                    None => core::future::pending().await,
                }
            };
            let settle = async {
                match self.plugs.due() {
                    // One that could not be made is not made again at once.
                    Some(_) if !is_seen => sleep(AGAIN).await,
                    Some(due) => sleep_until(due.into()).await,
                    None => sleep(LOOK).await,
                }
            };
            tokio::select! {
                is_good = heard => match is_good {
                    // More is often announced at once.
                    true => sleep(TOGETHER).await,
                    false => {
                        sleep(AGAIN).await;
                        ear = listen();
                    }
                },
                () = settle => {}
            }
        }
    }

    /// Looks which drives are there, and settles what is due; false if that could not be seen.
    async fn look_at_plugs(&self, failing: &mpsc::UnboundedSender<ToFail>) -> bool {
        let Ok(arrays) = self.running().await else { return false };
        let in_use = in_use(&self.inventory(), &arrays);
        let numbers: Vec<u64> = in_use.keys().map(|opening| opening.device).collect();
        let (at, sysfs) = (self.plugs.now(), self.sysfs.clone());
        let Some(kernel) =
            self.aside(Lookup::Devices, move || ask(sysfs, &numbers)).await.flatten()
        else {
            return false;
        };
        if self.plugs.saw(&in_use, kernel, at) {
            self.attend.notify_one();
            self.plugs.news.notify_one();
        }
        if self.plugs.due().is_some_and(|due| due <= std::time::Instant::now()) {
            self.settle_departures(failing).await;
        }
        true
    }

    /// Looks at the drives themselves when others came, and tells of those that are back. A drive
    /// that hangs holds up this, and nothing else.
    async fn keep_finding(&self) {
        loop {
            self.plugs.news.notified().await;
            if self.view().status.ready {
                // What can't be opened is listed with its problem.
                let _ = self.look_again(false).await;
                self.renew().await;
                self.tell_returned(&self.running().await.unwrap_or_default());
            }
        }
    }

    /// Says what becomes of the drives that went.
    async fn settle_departures(&self, failing: &mpsc::UnboundedSender<ToFail>) {
        let Ok(arrays) = self.running().await else { return };
        let in_use = in_use(&self.inventory(), &arrays);
        let mut coverage = Coverage::default();
        let end = Instant::now() + PATIENCE;
        for (array, slots) in self.plugs.to_ask(&in_use) {
            let drives = slots.iter().map(|slot| format!("slot:{slot}")).collect();
            let ask = |reply| Request::CanSpare(array.to_string(), drives, reply);
            // An array that does not say so can't.
            let can_spare = timeout_at(end, self.data.ask(ask)).await;
            coverage.heard(array, slots, matches!(can_spare, Ok(Ok(true))));
        }
        for verdict in self.plugs.settle(self.plugs.now(), &in_use, &coverage) {
            match verdict {
                Verdict::Fail(gone) => {
                    for to_fail in by_array(&gone, &in_use) {
                        self.plugs.failing(to_fail.array, &to_fail.openings, &in_use);
                        // Whoever receives them ends with this.
                        let _ = failing.send(to_fail);
                    }
                }
                Verdict::Hold(gone) => self.tell_held(&gone, (&in_use, &arrays)),
                Verdict::Wait(gone) => self.tell_waited(&gone, (&in_use, &arrays)),
            }
        }
        self.refresh();
        self.attend.notify_one();
    }

    /// Has the engine fail what is to be failed. An array that takes long holds up no other.
    async fn keep_failing(&self, mut receive: mpsc::UnboundedReceiver<ToFail>) {
        let mut under_way = JoinSet::new();
        loop {
            tokio::select! {
                Some(to_fail) = receive.recv() => {
                    let data = self.data.clone();
                    under_way.spawn(async move {
                        let outcome = data.ask(|reply| to_fail.request(reply)).await;
                        (to_fail, outcome.is_ok())
                    });
                }
                Some(Ok((to_fail, is_done))) = under_way.join_next() => {
                    self.ended_failing(&to_fail, is_done).await;
                }
                else => return,
            }
        }
    }

    /// The engine has failed drives, or could not: the array runs no more, or things have changed
    /// since it was asked.
    async fn ended_failing(&self, to_fail: &ToFail, is_done: bool) {
        if !is_done {
            to_fail.openings.iter().for_each(|opening| self.plugs.refused(opening));
            let arrays = self.running().await.unwrap_or_default();
            let in_use = in_use(&self.inventory(), &arrays);
            self.tell_held(&to_fail.openings, (&in_use, &arrays));
        }
        self.attend.notify_one();
        self.renew().await;
    }

    /// Tells that more drives of arrays went at once than could be spared.
    fn tell_held(&self, gone: &[Opening], known: (&InUse, &[ArrayStatus])) {
        let places: Vec<&Place<Uuid>> = gone.iter().filter_map(|one| known.0.get(one)).collect();
        let arrays: BTreeSet<Uuid> = places.iter().map(|place| place.array).collect();
        for array in arrays {
            let count = places.iter().filter(|place| place.array == array).count();
            let (name, origin) = (name_of(known.1, array), uri::pool(&array.to_string()));
            self.events().tell(&say::DRIVES_GONE_TOGETHER, &[&count, &name], &origin);
        }
    }

    /// Tells of drives that went with their paths.
    fn tell_waited(&self, gone: &[Opening], known: (&InUse, &[ArrayStatus])) {
        for opening in gone {
            let Some(place) = known.0.get(opening) else { continue };
            let (name, origin) =
                (name_of(known.1, place.array), uri::pool(&place.array.to_string()));
            self.events().tell(
                &say::DRIVE_PATH_GONE,
                &[&opening.path, &place.slot, &name],
                &origin,
            );
        }
    }

    /// Tells of drives that are back, with the command that would use them.
    fn tell_returned(&self, arrays: &[ArrayStatus]) {
        let mut returned = convert::returned(&self.inventory(), arrays);
        // These take their slots by themselves.
        let gone = self.returns.gone();
        returned.retain(|seat, _| !gone.contains(seat));
        for ((array, slot), path) in self.plugs.returned(returned) {
            let name = name_of(arrays, array);
            let origin = uri::pool(&array.to_string());
            self.events().tell(&say::DRIVE_RETURNED, &[&path, &slot, &name], &origin);
        }
    }
}

/// What a person calls an array.
fn name_of(arrays: &[ArrayStatus], uuid: Uuid) -> String {
    let array = arrays.iter().find(|array| array.uuid == uuid);
    array.map_or_else(|| uuid.to_string(), |array| array.name.clone())
}

/// What hears the kernel's announcements.
struct Ear {
    listener: Listener,
    /// The same socket for the runtime, which only says when there is something to receive.
    ready: UnixDatagram,
}

impl Ear {
    fn open() -> std::io::Result<Self> {
        let listener = Listener::open()?;
        let ready = std::os::unix::net::UnixDatagram::from(listener.as_fd().try_clone_to_owned()?);
        Ok(Self { ready: UnixDatagram::from_std(ready)?, listener })
    }

    /// Takes all announcements that are there; whether one is of a drive, or some were lost.
    fn take(&self) -> std::io::Result<bool> {
        let mut is_heard = false;
        loop {
            match self.listener.receive()? {
                Some(Notice::Lost) => is_heard = true,
                Some(Notice::Event(event)) => {
                    is_heard |= event.subsystem.is_some_and(|kind| KINDS.contains(&kind.as_str()));
                }
                None if is_heard => return Ok(true),
                // The runtime then waits for more.
                None => return Err(ErrorKind::WouldBlock.into()),
            }
        }
    }

    /// Waits for an announcement of a drive; false if it hears nothing any more.
    async fn hear(&self) -> bool {
        self.ready.async_io(Interest::READABLE, || self.take()).await.unwrap_or(false)
    }
}

/// What hears; nothing where the kernel has nothing to listen to, which is said.
fn listen() -> Option<Ear> {
    match Ear::open() {
        Ok(ear) => Some(ear),
        Err(error) => {
            runtime::say(format_args!(
                "palisade: the kernel's announcements of devices can't be heard: {error}\n  a \
                 drive that is pulled out is noticed within a minute, or by the first request to it"
            ));
            None
        }
    }
}

/// Asks the kernel for its devices, and which of these numbers none has; nothing if its tree can't
/// be read. Which devices there are in truth no other tree says.
fn ask(sysfs: PathBuf, open: &[u64]) -> Option<Kernel> {
    let by_number = Path::new(SYSFS).join("dev/block");
    if !by_number.is_dir() {
        return None;
    }
    let is_missing = |device: &&u64| {
        let (major, minor) = numbers(**device);
        let found = std::fs::symlink_metadata(by_number.join(format!("{major}:{minor}")));
        found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
    };
    let missing = open.iter().filter(is_missing).copied().collect();
    Some(Kernel { devices: Sysfs::new(sysfs).devices(), missing })
}

/// The block devices that running arrays use.
fn in_use(inventory: &Inventory, arrays: &[ArrayStatus]) -> InUse {
    let mut all = InUse::new();
    for array in arrays {
        for slot in array.slots.iter().filter(|slot| is_used(slot.health)) {
            let Some(path) = &slot.path else { continue };
            let drive = inventory.at(path).and_then(|known| known.drive.as_ref());
            if let Some(device) = drive.and_then(|drive| drive.device()) {
                let place = Place { array: array.uuid, slot: slot.slot.0 };
                all.insert(Opening { path: path.clone(), device }, place);
            }
        }
    }
    all
}

#[cfg(test)]
#[path = "plugging_tests.rs"]
mod tests;
