//! What a subsystem does for servers that share its drives.
//!
//! A *guard* says what has to stand on a namespace for it to be changed. A core's queue that is
//! connected behind it reads that before it carries any change there, and changes nothing but that
//! place before it names its controller: see `carrier`. States of a guard: set → *broken*, once
//! something else was read, or whoever set it is through with the drive → set anew, or taken away.
//!
//! *Controllers*: those that may carry out what this host sent are named for others, and others'
//! are ended for this host: see `fences`.
//!
//! Invariants
//! - A namespace whose guard is broken is not changed, by whatever path, until the guard is set
//!   anew or taken away.
//! - Controllers are named only if all can be: who has the named ones ended may rely on that.

use super::{State, Subsystem};
use crate::fences::Meant;
use crate::path::{PathRecord, Stage};
use crate::requests::Association;
use crate::settings::Settings;
use core::future::Future;
use io::Guard;
use nvme::reset::Instance;
use std::collections::BTreeMap;
use std::sync::Arc;
use units::Nanos;

/// Keep-alive timeouts of a fence, as far as is known before a controller has told.
const FENCE_TIMES: u64 = 3;

struct Guarded {
    guard: Arc<Guard>,
    is_broken: bool,
}

/// The guards of namespaces.
#[derive(Default)]
pub(super) struct Guards {
    all: BTreeMap<u32, Guarded>,
    /// The controllers that stand there by name, as was said last.
    named: BTreeMap<u32, Vec<Instance>>,
}

impl Guards {
    /// Namespaces that have one.
    pub fn namespaces(&self) -> Vec<u32> {
        self.all.keys().copied().collect()
    }

    /// Those whose guard is broken.
    pub fn barred(&self) -> Vec<u32> {
        self.all.iter().filter(|(_, own)| own.is_broken).map(|(namespace, _)| *namespace).collect()
    }
}

impl Subsystem {
    /// What has to stand on a namespace for it to be changed by queues that are connected from now
    /// on; `None`: nothing.
    pub(crate) fn set_guard(&self, namespace: u32, guard: Option<Guard>) {
        self.change(|state| match guard.map(Arc::new) {
            Some(guard) => {
                state.guards.all.insert(namespace, Guarded { guard, is_broken: false });
            }
            None => {
                state.guards.all.remove(&namespace);
                state.guards.named.remove(&namespace);
            }
        });
    }

    /// What a guard asks for stands on a namespace with the names of these controllers; none:
    /// whoever reads it counts on any.
    pub(crate) fn set_named(&self, namespace: u32, controllers: Vec<Instance>) {
        // Once a period, and seldom anything new.
        if self.lock().guards.named.get(&namespace) != Some(&controllers) {
            self.change(|state| {
                state.guards.named.insert(namespace, controllers);
            });
        }
    }

    /// Waits until the controller of an association that there is stands there by name, or need
    /// not.
    pub(crate) fn is_named(&self, namespace: u32, by: Association) -> impl Future<Output = ()> {
        self.changed.wait_until(move || {
            let state = self.lock();
            let own = state.paths.get(&by.path).map(|record| record.instance);
            let is_named = state.guards.named.get(&namespace).is_some_and(|all| {
                all.is_empty() || own.flatten().is_some_and(|own| all.contains(&own))
            });
            (is_named || !state.guards.all.contains_key(&namespace)).then_some(())
        })
    }

    /// Breaks the guard of a namespace, if it is this one.
    pub(crate) fn bar(&self, namespace: u32, guard: &Guard) {
        self.change(|state| {
            let own = state.guards.all.get_mut(&namespace);
            if let Some(own) = own.filter(|own| *own.guard == *guard) {
                own.is_broken = true;
            }
        });
    }

    /// Waits until a namespace has a guard that is not broken, or none.
    pub(crate) fn guard(&self, namespace: u32) -> impl Future<Output = Option<Arc<Guard>>> {
        self.changed.wait_until(move || match self.lock().guards.all.get(&namespace) {
            Some(own) => (!own.is_broken).then(|| Some(own.guard.clone())),
            None => Some(None),
        })
    }

    /// Something else stands there than this guard asks for.
    pub(crate) fn breaks(&self, namespace: u32, guard: &Arc<Guard>) {
        self.change(|state| {
            let own = state.guards.all.get_mut(&namespace);
            if let Some(own) = own.filter(|own| Arc::ptr_eq(&own.guard, guard)) {
                own.is_broken = true;
            }
        });
    }

    /// How long after the last contact what was sent by any of its paths may be carried out, at
    /// most.
    pub fn fence(&self) -> Nanos {
        self.lock().fence_time(&self.settings)
    }

    /// The controllers that may carry out what they were sent: of associations that are live, and
    /// of those whose fence has not ended. None if one of them can't be named.
    pub fn controllers(&self) -> Vec<Instance> {
        if self.is_alias {
            return Vec::new();
        }
        let state = self.lock();
        let of_path = |own: &PathRecord| {
            let used = own.is_used.then_some(own.instance);
            own.fences.controllers().chain(used).collect::<Vec<_>>()
        };
        let all: Option<Vec<_>> = state.paths.values().flat_map(of_path).collect();
        all.unwrap_or_default()
    }

    /// Has a controller ended, of a server that has the same name and identifier as this host, by
    /// any path whose controller does that. True: it has, with all that it was sent. False: nobody
    /// could ask, it was refused, or it took longer than a fence; it may end later.
    ///
    /// One that is not there has ended. To be asked only of servers of that name: one of another
    /// name's is not there for whoever is asked, and may go on.
    pub fn end(self: &Arc<Self>, controller: Instance) -> impl Future<Output = bool> + use<> {
        let waits = (!self.is_alias).then(|| Waits::new(self.clone(), controller));
        async move {
            let Some(waits) = waits else { return false };
            let subsystem = &*waits.subsystem;
            subsystem.changed.wait_until(|| subsystem.lock().outcome(controller)).await
        }
    }

    // For keepers.

    /// Waits until there is a controller that this association may ask to be ended, which it then
    /// does.
    pub(crate) fn wanted(&self, by: Association) -> impl Future<Output = (Meant, Instance)> {
        self.changed.wait_until(move || {
            let State { paths, others, .. } = &mut *self.lock();
            let mut own = paths.iter_mut().filter_map(|(path, record)| {
                let (turn, controller) = record.fences.ask(by)?;
                Some((Meant::Own((*path, turn).into()), controller))
            });
            let other = || others.ask(by).map(|own| (Meant::Other(own), own));
            own.next().or_else(other)
        })
    }

    /// Whether a controller is still to be ended.
    pub(crate) fn is_wanted(&self, of: Meant) -> bool {
        let state = self.lock();
        match of {
            Meant::Own(association) => {
                let record = state.paths.get(&association.path);
                record.is_some_and(|record| record.fences.is_running(association.turn))
            }
            Meant::Other(controller) => state.others.is_running(controller),
        }
    }

    /// A controller has ended, with all that it was sent.
    pub(crate) fn is_ended(&self, of: Meant) {
        match of {
            Meant::Own(association) => self.fenced(association),
            Meant::Other(controller) => self.change(|state| state.others.end(controller)),
        }
    }

    /// An association does not ask any more for a controller to be ended; whether in vain.
    pub(crate) fn asked(&self, of: Meant, by: Association, is_refused: bool) {
        self.change(|state| match of {
            Meant::Own(association) => {
                if let Some(record) = state.paths.get_mut(&association.path) {
                    record.fences.asked(association.turn, by, is_refused);
                }
            }
            Meant::Other(controller) => state.others.asked(controller, by, is_refused),
        });
    }
}

impl State {
    /// See [`Subsystem::fence`].
    pub(super) fn fence_time(&self, settings: &Settings) -> Nanos {
        self.fence.unwrap_or(Nanos(FENCE_TIMES * settings.keep_alive.0))
    }

    /// Whether another server's controller has ended, if that can be said.
    fn outcome(&self, controller: Instance) -> Option<bool> {
        let live = self.paths.iter().filter(|(_, own)| own.stage == Stage::Live && own.resets);
        self.others.outcome(controller, live.map(|(path, own)| (*path, own.turn).into()))
    }
}

/// Somebody who waits for another server's controller to end.
struct Waits {
    subsystem: Arc<Subsystem>,
    controller: Instance,
}

impl Waits {
    fn new(subsystem: Arc<Subsystem>, controller: Instance) -> Self {
        subsystem.change(|state| state.others.begin(controller));
        Self { subsystem, controller }
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.subsystem.change(|state| state.others.leave(self.controller));
    }
}
