//! A namespace as a drive.
//!
//! Requests go to [`Requests`], which whatever connection there is carries; what lies outside of
//! the namespace, or not on its blocks, does not get there.

use crate::Subsystem;
use crate::admin::Waits;
use crate::requests::{Asked, Requests, What};
use core::future::{Future, ready};
use core::pin::Pin;
use core::task::{Context, Poll};
use io::{Buf, BufMut, Controller, Drive, DriveError, DriveInfo, Ending, Gather, Guard, Reached};
use nvme::reset::Instance;
use std::rc::Rc;
use std::sync::Arc;
use units::Nanos;

/// What a namespace can do beyond reading and writing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Can {
    /// Write Zeroes (ONCS, bit 3).
    pub write_zeroes: bool,
    /// Dataset Management (ONCS, bit 2), with its range in the capsule.
    pub discard: bool,
}

/// One core's handle to a namespace. Clones share it.
#[derive(Clone)]
pub struct RemoteDrive {
    requests: Rc<Requests>,
    namespace: u32,
    info: Rc<DriveInfo>,
    can: Can,
    lapse: u64,
    reach: Option<Rc<Reach>>,
}

/// How a namespace is reached.
struct Reach {
    subsystem: Arc<Subsystem>,
    namespace: u32,
    requests: Rc<Requests>,
}

impl RemoteDrive {
    /// The namespace of that number, which is so, by whoever carries these requests.
    pub fn new(requests: Rc<Requests>, namespace: u32, info: DriveInfo, can: Can) -> Self {
        Self { requests, namespace, info: Rc::new(info), can, lapse: 0, reach: None }
    }

    /// The same, opened behind that lapse of its subsystem ([`Subsystem::lapse`]): with the next
    /// one it is gone, if it has a cache.
    ///
    /// [`Subsystem::lapse`]: crate::Subsystem::lapse
    #[must_use]
    pub fn behind(self, lapse: u64) -> Self {
        Self { lapse: if self.info.volatile_cache { lapse } else { 0 }, ..self }
    }

    /// The same, which tells how it is reached: it is a namespace of this subsystem.
    #[must_use]
    pub fn of(self, subsystem: Arc<Subsystem>) -> Self {
        let requests = self.requests.clone();
        let reach = Reach { subsystem, namespace: self.namespace, requests };
        Self { reach: Some(Rc::new(reach)), ..self }
    }

    fn asked(&self, what: What, (offset, bytes): (u64, u64)) -> Asked {
        Asked {
            what,
            namespace: self.namespace,
            by: None,
            lapse: self.lapse,
            offset,
            bytes,
            shift: self.info.block_bytes.trailing_zeros() as u8,
            data: Gather::new(),
            into: None,
        }
    }

    fn ask(&self, asked: Asked) -> Waits {
        Waits { requests: self.requests.clone(), ticket: self.requests.ask(asked) }
    }

    /// A request for a range; one for no bytes is done at once.
    fn range(&self, what: What, offset: u64, bytes: u64) -> DoneTicket {
        match self.info.check(offset, bytes) {
            Ok(()) if bytes > 0 => {
                DoneTicket(Done::Asked(self.ask(self.asked(what, (offset, bytes)))))
            }
            checked => DoneTicket(Done::Ready(checked)),
        }
    }
}

impl Drive for RemoteDrive {
    type Read = ReadTicket;
    type Done = DoneTicket;

    fn info(&self) -> &DriveInfo {
        &self.info
    }

    fn read(&self, offset: u64, into: BufMut) -> ReadTicket {
        let bytes = into.len() as u64;
        match self.info.check(offset, bytes) {
            Ok(()) if bytes > 0 => {
                let asked = self.asked(What::Read, (offset, bytes));
                ReadTicket(Read::Asked(self.ask(Asked { into: Some(into), ..asked })))
            }
            checked => ReadTicket(Read::Ready(checked, Some(into))),
        }
    }

    fn write(&self, offset: u64, data: &[Buf], fua: bool) -> DoneTicket {
        let bytes = data.iter().map(|piece| piece.len() as u64).sum();
        match self.info.check(offset, bytes) {
            Ok(()) if bytes > 0 => {
                let asked = self.asked(What::Write { fua }, (offset, bytes));
                let data = data.iter().cloned().collect();
                DoneTicket(Done::Asked(self.ask(Asked { data, ..asked })))
            }
            checked => DoneTicket(Done::Ready(checked)),
        }
    }

    fn flush(&self) -> DoneTicket {
        // Without a cache there is nothing to make durable.
        if !self.info.volatile_cache {
            return DoneTicket(Done::Ready(Ok(())));
        }
        DoneTicket(Done::Asked(self.ask(self.asked(What::Flush, (0, 0)))))
    }

    fn write_zeroes(&self, offset: u64, bytes: u64) -> DoneTicket {
        self.range(if self.can.write_zeroes { What::Zeroes } else { What::Zeros }, offset, bytes)
    }

    fn discard(&self, offset: u64, bytes: u64) -> DoneTicket {
        if !self.can.discard {
            return DoneTicket(Done::Ready(Err(DriveError::Unsupported)));
        }
        self.range(What::Discard, offset, bytes)
    }

    fn reached(&self) -> Option<&dyn Reached> {
        self.reach.as_deref().map(|own| own as &dyn Reached)
    }
}

impl Reached for Reach {
    fn fence(&self) -> Nanos {
        self.subsystem.fence()
    }

    fn guard(&self, guard: Option<Guard>) {
        self.subsystem.set_guard(self.namespace, guard);
        // Of this core's requests the next may be a change already.
        self.requests.unbar(self.namespace);
    }

    fn controllers(&self) -> Vec<Controller> {
        let controller = |own: Instance| Controller {
            number: own.controller,
            uniquifier: own.uniquifier,
            random: own.random,
        };
        self.subsystem.controllers().into_iter().map(controller).collect()
    }

    fn named(&self, controllers: &[Controller]) {
        self.subsystem.set_named(self.namespace, controllers.iter().map(instance).collect());
    }

    fn bar(&self, guard: &Guard) {
        self.subsystem.bar(self.namespace, guard);
    }

    fn end(&self, controller: Controller) -> Ending {
        // What can't be named can't be ended.
        if controller.uniquifier == 0 {
            return Box::pin(ready(false));
        }
        Box::pin(self.subsystem.end(instance(&controller)))
    }
}

fn instance(of: &Controller) -> Instance {
    let Controller { number, uniquifier, random } = *of;
    Instance { controller: number, uniquifier, random }
}

/// Ticket of a read: gives the buffer back with the outcome. Dropping it cancels nothing.
pub struct ReadTicket(Read);

enum Read {
    Ready(Result<(), DriveError>, Option<BufMut>),
    Asked(Waits),
}

/// Ticket of anything else. Dropping it cancels nothing.
pub struct DoneTicket(Done);

enum Done {
    Ready(Result<(), DriveError>),
    Asked(Waits),
}

impl Future for ReadTicket {
    type Output = (Result<(), DriveError>, BufMut);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Read::Ready(result, into) => {
                Poll::Ready((*result, into.take().expect("ticket polled after its end")))
            }
            Read::Asked(waits) => waits.requests.poll(waits.ticket, cx).map(|outcome| {
                (outcome.result, outcome.into.expect("a read gives its buffer back"))
            }),
        }
    }
}

impl Future for DoneTicket {
    type Output = Result<(), DriveError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Done::Ready(result) => Poll::Ready(*result),
            Done::Asked(waits) => {
                waits.requests.poll(waits.ticket, cx).map(|outcome| outcome.result)
            }
        }
    }
}
