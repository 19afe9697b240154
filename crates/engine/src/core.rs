//! One core of the engine: the arrays that run on it, and its mail.

use crate::Host;
use crate::array::message::{ArrayId, Mail as ArrayMail};
use crate::array::{Array, MANAGER};
use crate::limits::{DRIVE_DEADLINE, SCRATCH_BYTES};
use crate::mail::Mail;
use crate::manage::Manager;
use crate::region::Guards;
use crate::stripe::compute::Accelerator;
use core::cell::RefCell;
use io::Priority;
use std::rc::Rc;
use units::Nanos;

/// What whoever starts an engine may choose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// How long a drive may take for a request before it is taken out (D16).
    pub deadline: Nanos,
    /// Most scratch memory of an array on a core, in bytes; the widest stripe always has enough.
    pub scratch_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { deadline: DRIVE_DEADLINE, scratch_bytes: SCRATCH_BYTES }
    }
}

/// What a core starts its arrays with.
#[derive(Clone, Copy)]
pub(crate) struct Choices<'a> {
    pub settings: Settings,
    pub accelerator: Option<&'a Accelerator>,
    pub guards: Guards,
}

/// The engine on one core. Clones share it.
pub struct Core<E: Host> {
    inner: Rc<Inner<E>>,
}

impl<E: Host> Clone for Core<E> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

struct Inner<E: Host> {
    env: E,
    settings: Settings,
    accelerator: Option<Accelerator>,
    guards: Guards,
    arrays: RefCell<Vec<Array<E>>>,
    manager: Option<Manager<E>>,
}

impl<E: Host> Core<E> {
    /// Starts the engine on this core with the usual settings. Once a core, at its start.
    pub fn start(env: E) -> Self {
        Self::start_with(env, Settings::default(), None)
    }

    /// As [`Core::start`]; every core gets the same settings. Parity is computed by `accelerator`
    /// too, where there is one that wants to.
    pub fn start_with(env: E, settings: Settings, accelerator: Option<Accelerator>) -> Self {
        Self::start_guarded(env, settings, accelerator, Guards::All)
    }

    /// As [`Core::start`], for the benchmark that measures what it costs a write not to be lost in
    /// a crash, and for nothing else: after a crash *nothing is right* of what was written by
    /// arrays of this engine. Their writes take every band for written and every region for dirty,
    /// and no in-flight page names them. So an array must have been written whole before, by an
    /// engine that guards, and must not be discarded, resynced or rebuilt by this one.
    pub fn start_unguarded(env: E) -> Self {
        Self::start_guarded(env, Settings::default(), None, Guards::Skipped)
    }

    fn start_guarded(
        env: E,
        settings: Settings,
        accelerator: Option<Accelerator>,
        guards: Guards,
    ) -> Self {
        let manager = (env.core() == MANAGER).then(|| Manager::new(env.clone(), settings));
        let arrays = RefCell::new(Vec::new());
        let inner = Inner { env: env.clone(), settings, accelerator, guards, arrays, manager };
        let core = Self { inner: Rc::new(inner) };
        let receiver = core.clone();
        env.spawn(Priority::First, async move {
            loop {
                let mail = receiver.inner.env.receive().await;
                receiver.receive(mail);
            }
        });
        core
    }

    /// The array of this name within the engine, if it runs here.
    pub fn array(&self, id: ArrayId) -> Option<Array<E>> {
        self.inner.arrays.borrow().iter().find(|a| a.id() == id).cloned()
    }

    fn manager(&self) -> &Manager<E> {
        self.inner.manager.as_ref().expect("mail for the manager goes to its core")
    }

    fn receive(&self, mail: Mail<E::Shared>) {
        match mail {
            Mail::Array(array, mail) => self.receive_array(array, mail),
            Mail::Start { array, view, drives, regions, flushes } => {
                let Inner { env, settings, accelerator, guards, .. } = &*self.inner;
                let accelerator = accelerator.as_ref();
                let choices = Choices { settings: *settings, accelerator, guards: *guards };
                let shared = (&*regions, flushes);
                let started = Array::start(env, array, view, &drives, shared, choices);
                if let Some(manager) = &self.inner.manager {
                    manager.attach(started.clone());
                }
                self.inner.arrays.borrow_mut().push(started);
                let core = self.inner.env.core();
                self.inner.env.post(MANAGER, Mail::Started { core, array });
            }
            Mail::Started { array, .. } => self.manager().started(array),
            Mail::Forget(array) => {
                let mut arrays = self.inner.arrays.borrow_mut();
                if let Some(at) = arrays.iter().position(|a| a.id() == array) {
                    arrays.remove(at).close();
                }
            }
            Mail::Request(request) => self.manager().request(request),
        }
    }

    fn receive_array(&self, id: ArrayId, mail: ArrayMail<E::Shared>) {
        match mail {
            ArrayMail::Adopted { generation, .. } => self.manager().adopted(id, generation),
            ArrayMail::Drained { .. } => self.manager().drained(id),
            ArrayMail::Quiet { .. } => self.manager().quiet(id),
            ArrayMail::DriveFailed { read, slot, incarnation, error } => {
                self.manager().drive_failed(id, (slot, incarnation), error, read);
            }
            ArrayMail::Unreadable { slot, incarnation, rewritten } => {
                self.manager().unreadable(id, slot, incarnation, rewritten);
            }
            ArrayMail::Lost(change, origin) => self.manager().lost(id, change, origin),
            ArrayMail::Keeper(mail) => self.manager().keeper(id, mail),
            ArrayMail::FirstWrite(group) => self.manager().first_write(id, group),
            ArrayMail::EndDirectWrites => self.manager().end_direct_writes(id),
            mail => {
                // Mail that was under way when its array was forgotten has no reader any more.
                if let Some(array) = self.array(id) {
                    array.receive(mail);
                }
            }
        }
    }
}
