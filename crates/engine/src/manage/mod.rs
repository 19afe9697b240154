//! The manager: configuration of all arrays of an engine. It runs on one core.
//!
//! It alone writes records, publishes snapshots and runs tasks. Requests of the control plane
//! and reports of the cores each run as a task of their own; whatever changes an array's
//! configuration holds that array's `lock` from the first decision to the settled snapshot, so
//! changes happen one after the other.
//!
//! Every change goes through the same three steps ([`managed`]):
//! 1. *commit*: the changed record is durable on every drive that takes part;
//! 2. *publish*: every core adopts the new snapshot;
//! 3. *settle*: every core learns that all have.
//!
//! Acknowledgements that depend on the change wait for step 3 (D2).

mod area;
pub mod command;
mod create;
mod discard;
mod doubt;
mod errors;
pub mod feed;
mod gap;
mod guard;
mod keeper;
pub mod lost;
mod managed;
mod numbers;
mod owner;
mod pages;
mod parts;
mod pause;
pub mod plan;
mod progress;
mod replay;
mod scrub;
mod status;
mod store;
mod tasks;
mod teller;
mod volumes;

use crate::Host;
use crate::array::Array;
use crate::array::message::ArrayId;
use crate::core::Settings;
use crate::limits::FEED_LOOK;
use crate::mutants::{self, Mutant};
use crate::region::message::ToKeeper;
use crate::watch::quarantine::Quarantine;
use crate::watch::{Opened, Watch, Watched};
use command::{ArrayStatus, Change, DriveRef, Identity, ManageError, Reply, Request};
use core::cell::{Cell, RefCell};
use core::future::Future;
use feed::Feed;
use io::{DriveError, Priority};
use managed::Managed;
use owner::Terms;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::{self, Arc};
use teller::Teller;
use units::{Generation, GroupNo, Slot, Uuid};

pub use store::{NextSlot, erase as erase_records, read as read_record};

/// The manager of an engine. Clones share it.
pub struct Manager<E: Host> {
    inner: Rc<Inner<E>>,
}

impl<E: Host> Clone for Manager<E> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

struct Inner<E: Host> {
    env: E,
    /// Over all requests of the manager itself.
    watch: Watch<E>,
    quarantine: Rc<Quarantine>,
    teller: Rc<Teller>,
    /// The last number that a task has.
    last_task: Rc<Cell<u64>>,
    arrays: RefCell<Vec<Rc<Managed<E>>>>,
    next_id: Cell<u32>,
    /// Counts arrays that came and went, and when each of them last did: what was read of its
    /// drives before is out of date.
    changes: Cell<u64>,
    changed: RefCell<BTreeMap<Uuid, u64>>,
    /// Who has shared arrays here.
    identity: RefCell<Option<Arc<Identity>>>,
    /// The terms in which this engine has, or had, any.
    terms: Terms,
}

impl<E: Host> Manager<E> {
    /// The manager of the engine whose first core is `env`.
    pub fn new(env: E, settings: Settings) -> Self {
        let inner = Inner {
            watch: Watch::new(&env, settings.deadline),
            quarantine: Rc::default(),
            teller: Rc::default(),
            last_task: Rc::default(),
            env,
            arrays: RefCell::default(),
            next_id: Cell::new(1),
            changes: Cell::new(0),
            changed: RefCell::default(),
            identity: RefCell::default(),
            terms: Terms::default(),
        };
        Self { inner: Rc::new(inner) }
    }

    fn env(&self) -> &E {
        &self.inner.env
    }

    /// Opens a drive; refused while requests of an old opening of it are under way.
    fn open(&self, reference: &DriveRef<E::Shared>) -> Result<Watched<E>, ManageError> {
        if self.inner.quarantine.holds(&reference.path) {
            return Err(ManageError::Quarantined(reference.path.clone()));
        }
        Ok(self.inner.watch.open(&Opened::new(reference.shared.clone())))
    }

    fn uuid(&self) -> Uuid {
        let (a, b) = (self.env().random(), self.env().random());
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&a.to_le_bytes());
        bytes[8..].copy_from_slice(&b.to_le_bytes());
        Uuid::from_random(bytes)
    }

    /// The running array of this name or identity.
    fn named(&self, name: &str) -> Result<Rc<Managed<E>>, ManageError> {
        let uuid = name.parse::<Uuid>().ok();
        let arrays = self.inner.arrays.borrow();
        let found = arrays.iter().find(|a| {
            let record = a.record();
            record.name == name || Some(record.array) == uuid
        });
        found.cloned().ok_or_else(|| ManageError::NoArray(name.to_owned()))
    }

    fn by_id(&self, id: ArrayId) -> Option<Rc<Managed<E>>> {
        self.inner.arrays.borrow().iter().find(|a| a.id() == id).cloned()
    }

    /// The manager's own core runs the array.
    pub fn attach(&self, local: Array<E>) {
        if let Some(array) = self.by_id(local.id()) {
            array.attach(local);
        }
    }

    /// A core runs the array.
    pub fn started(&self, id: ArrayId) {
        if let Some(array) = self.by_id(id) {
            array.core_started();
        }
    }

    /// A core has adopted a generation of the array.
    pub fn adopted(&self, id: ArrayId, generation: Generation) {
        if let Some(array) = self.by_id(id) {
            array.core_adopted(generation);
        }
    }

    /// A core has ended every operation begun before the last draining publication.
    pub fn drained(&self, id: ArrayId) {
        if let Some(array) = self.by_id(id) {
            array.core_drained();
        }
    }

    /// A core has ended every change begun before the last publication that asked.
    pub fn quiet(&self, id: ArrayId) {
        if let Some(array) = self.by_id(id) {
            array.core_quiet();
        }
    }

    /// A drive failed a request that redundancy must make up for.
    pub fn drive_failed(&self, id: ArrayId, seat: (Slot, u32), error: DriveError, read: bool) {
        if let Some(array) = self.by_id(id) {
            self.env().spawn(Priority::First, async move {
                array.drive_failed(seat, error, read).await;
            });
        }
    }

    /// A drive could not read blocks, or they were written back.
    pub fn unreadable(&self, id: ArrayId, slot: Slot, incarnation: u32, rewritten: bool) {
        if let Some(array) = self.by_id(id) {
            array.errors.count(slot, incarnation, rewritten);
        }
    }

    /// A group is about to be written.
    pub fn first_write(&self, id: ArrayId, group: GroupNo) {
        if let Some(array) = self.by_id(id) {
            self.env().spawn(Priority::First, async move { array.first_write(group).await });
        }
    }

    /// A block without redundancy is to be compared and written.
    pub fn end_direct_writes(&self, id: ArrayId) {
        if let Some(array) = self.by_id(id) {
            self.env().spawn(Priority::First, async move { array.end_direct_writes().await });
        }
    }

    /// Mail for the keeper of an array's region map.
    pub fn keeper(&self, id: ArrayId, mail: ToKeeper) {
        if let Some(array) = self.by_id(id) {
            keeper::receive(&array, mail);
        }
    }

    /// Runs a request as a task of its own and gives its answer to `reply`. What it changed is told
    /// before.
    fn run<T: 'static>(
        &self,
        reply: Reply<T>,
        work: impl Future<Output = Result<T, ManageError>> + 'static,
    ) {
        let me = self.clone();
        self.env().spawn(Priority::First, async move {
            let answer = work.await;
            me.tell_all();
            reply(answer);
        });
    }

    /// Runs a request on a named array, once it runs; refused while it is being made.
    fn on<T: 'static, F: Future<Output = Result<T, ManageError>> + 'static>(
        &self,
        name: &str,
        reply: Reply<T>,
        work: impl FnOnce(Rc<Managed<E>>) -> F,
    ) {
        match self.named(name) {
            Ok(array) => {
                let work = work(array.clone());
                self.run(reply, async move {
                    array.ready().await?;
                    work.await
                });
            }
            Err(error) => reply(Err(error)),
        }
    }

    /// Runs a request that ends a named array, which may end its creation too.
    fn ending<F: Future<Output = Result<(), ManageError>> + 'static>(
        &self,
        name: &str,
        reply: Reply<()>,
        work: impl FnOnce(Rc<Managed<E>>) -> F,
    ) {
        match self.named(name) {
            Ok(array) => {
                let work = work(array.clone());
                self.run(reply, async move {
                    if array.cancel_creation().await {
                        return Ok(());
                    }
                    array.ready().await?;
                    work.await
                });
            }
            Err(error) => reply(Err(error)),
        }
    }

    /// Puts a drive in a slot; without an identity for a `new` one only the slot's own, as it went.
    fn put_in(
        &self,
        name: &str,
        (slot, drive): (Slot, DriveRef<E::Shared>),
        new: Option<Uuid>,
        reply: Reply<ArrayStatus>,
    ) {
        let me = self.clone();
        self.on(name, reply, |array| async move {
            let with = me.open(&drive)?;
            array.replace(slot, (drive, with), new).await
        });
    }

    /// From now on news go to this feed; how all arrays are now. Ends what another one heard.
    fn feed(&self, feed: &Arc<Feed<Change>>) -> Vec<ArrayStatus> {
        let arrays = self.inner.arrays.borrow();
        let all: Vec<ArrayStatus> = arrays.iter().map(|array| array.status()).collect();
        let feed = Arc::downgrade(feed);
        self.inner.teller.begin(feed.clone(), all.clone());
        self.env().spawn(Priority::Last, look(Rc::downgrade(&self.inner), feed));
        all
    }

    /// Tells all that is news.
    fn tell_all(&self) {
        if !self.inner.teller.is_heard() {
            return;
        }
        let arrays = self.inner.arrays.borrow();
        // First, as one that is gone may have been started again since.
        self.inner.teller.tell_gone(|id| arrays.iter().any(|array| array.id() == id));
        arrays.iter().for_each(|array| array.announce());
    }

    /// Takes a request of the control plane.
    pub fn request(&self, request: Request<E::Shared>) {
        let me = self.clone();
        match request {
            Request::Create(new, drives, reply) => {
                self.run(reply, async move { me.create(new, drives).await });
            }
            Request::Assemble(name, drives, options, reply) => {
                self.run(reply, async move { me.assemble(name, drives, options).await });
            }
            Request::Stop(name, reply) => {
                self.ending(&name, reply, |array| async move { me.stop(&array).await });
            }
            Request::Delete(name, reply) => {
                self.ending(&name, reply, |array| async move { me.delete(&array).await });
            }
            Request::Fail(name, drives, reply) => {
                self.on(&name, reply, |a| async move { a.fail(&drives).await });
            }
            Request::CanSpare(name, drives, reply) => {
                self.on(&name, reply, |a| async move { a.can_spare_all(&drives) });
            }
            Request::Replace(name, slot, drive, reply) => {
                self.put_in(&name, (slot, drive), Some(self.uuid()), reply);
            }
            Request::Return(name, slot, drive, reply) => {
                let new = mutants::is(Mutant::ReturnUnchecked).then(|| self.uuid());
                self.put_in(&name, (slot, drive), new, reply);
            }
            Request::Scrub(name, repair, reply) => {
                self.on(&name, reply, |a| async move { a.start_scrub(repair).await });
            }
            Request::Task(name, kind, number, action, reply) => {
                let which = numbers::Which { kind, number };
                self.on(&name, reply, |a| async move { a.act_on_task(which, action).await });
            }
            Request::VolumeCreate(name, volume, bytes, reply) => {
                let uuid = self.uuid();
                self.on(
                    &name,
                    reply,
                    |a| async move { a.create_volume(&volume, bytes, uuid).await },
                );
            }
            Request::VolumeResize(name, volume, size, reply) => {
                self.on(&name, reply, |a| async move { a.resize_volume(&volume, size).await });
            }
            Request::VolumeDelete(name, volume, reply) => {
                self.on(&name, reply, |a| async move { a.delete_volume(&volume).await });
            }
            Request::ExportCreate(name, volume, address, reply) => {
                self.on(&name, reply, |a| async move { a.create_export(&volume, address).await });
            }
            Request::ExportSet(name, id, address, reply) => {
                self.on(&name, reply, |a| async move { a.set_export(id, address).await });
            }
            Request::ExportDelete(name, id, reply) => {
                self.on(&name, reply, |a| async move { a.delete_export(id).await });
            }
            Request::Identify(identity, reply) => {
                *self.inner.identity.borrow_mut() = Some(Arc::new(identity));
                reply(Ok(()));
            }
            Request::Feed(feed, reply) => reply(Ok(self.feed(&feed))),
            Request::Status(reply) => {
                let arrays = self.inner.arrays.borrow();
                reply(Ok(arrays.iter().map(|a| a.status()).collect()));
            }
        }
    }
}

/// Looks for news as long as this feed is the one that is read.
async fn look<E: Host>(inner: Weak<Inner<E>>, feed: sync::Weak<Feed<Change>>) {
    loop {
        let Some(sleep) = inner.upgrade().map(|inner| inner.env.sleep(FEED_LOOK)) else { return };
        sleep.await;
        let Some(inner) = inner.upgrade() else { return };
        if !inner.teller.is_heard_in(&feed) {
            return;
        }
        Manager { inner }.tell_all();
    }
}
