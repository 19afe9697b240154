//! One virtual core of a machine whose drives are its own, or behind a shelf.

use crate::shelf::Shelf;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use engine::mail::Mail;
use io::{Buf, BufMut, Drive, DriveInfo, Env, Priority, Reached};
use nvme_host::RemoteDrive;
use sim::{SharedSimDrive, SimDrive, SimEnv};
use std::rc::Rc;
use units::{CoreId, Nanos};

/// What cores send each other.
pub type Message = Mail<SharedSimDrive>;

/// A core. Clones are the same.
#[derive(Clone)]
pub struct Machine {
    own: SimEnv<Message>,
    shelf: Option<Rc<Shelf>>,
}

impl Machine {
    /// A core whose drives are its own, or that shelf's.
    pub fn new(own: SimEnv<Message>, shelf: Option<&Rc<Shelf>>) -> Self {
        Self { own, shelf: shelf.cloned() }
    }
}

impl Env for Machine {
    type Drive = Attached;
    type Shared = SharedSimDrive;
    type Mail = Message;
    type Sleep = <SimEnv<Message> as Env>::Sleep;

    fn core(&self) -> CoreId {
        self.own.core()
    }

    fn cores(&self) -> u16 {
        // The last one is the shelf's.
        self.own.cores() - u16::from(self.shelf.is_some())
    }

    fn now(&self) -> Nanos {
        self.own.now()
    }

    fn sleep(&self, span: Nanos) -> Self::Sleep {
        self.own.sleep(span)
    }

    #[track_caller]
    fn spawn(&self, priority: Priority, task: impl Future<Output = ()> + 'static) {
        self.own.spawn(priority, task);
    }

    fn post(&self, to: CoreId, mail: Message) {
        self.own.post(to, mail);
    }

    fn receive(&self) -> impl Future<Output = Message> {
        self.own.receive()
    }

    fn bind(&self, shared: &SharedSimDrive) -> Attached {
        match &self.shelf {
            Some(shelf) => Attached::Behind(shelf.drive(self.core(), shared)),
            None => Attached::Own(self.own.bind(shared)),
        }
    }

    fn random(&self) -> u64 {
        self.own.random()
    }

    fn wall_millis(&self) -> u64 {
        self.own.wall_millis()
    }
}

/// A core's handle to a drive.
#[derive(Clone)]
pub enum Attached {
    /// Of the machine itself.
    Own(SimDrive),
    /// Behind a shelf.
    Behind(RemoteDrive),
}

/// The one ticket or the other.
pub enum Ticket<A, B> {
    /// Of a drive of the machine's own.
    Own(A),
    /// Of one behind a shelf.
    Behind(B),
}

impl<T, A, B> Future for Ticket<A, B>
where
    A: Future<Output = T> + Unpin,
    B: Future<Output = T> + Unpin,
{
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match &mut *self {
            Self::Own(ticket) => Pin::new(ticket).poll(cx),
            Self::Behind(ticket) => Pin::new(ticket).poll(cx),
        }
    }
}

type Done = Ticket<<SimDrive as Drive>::Done, <RemoteDrive as Drive>::Done>;

impl Drive for Attached {
    type Read = Ticket<<SimDrive as Drive>::Read, <RemoteDrive as Drive>::Read>;
    type Done = Done;

    fn info(&self) -> &DriveInfo {
        match self {
            Self::Own(drive) => drive.info(),
            Self::Behind(drive) => drive.info(),
        }
    }

    fn read(&self, offset: u64, into: BufMut) -> Self::Read {
        match self {
            Self::Own(drive) => Ticket::Own(drive.read(offset, into)),
            Self::Behind(drive) => Ticket::Behind(drive.read(offset, into)),
        }
    }

    fn write(&self, offset: u64, data: &[Buf], fua: bool) -> Done {
        match self {
            Self::Own(drive) => Ticket::Own(drive.write(offset, data, fua)),
            Self::Behind(drive) => Ticket::Behind(drive.write(offset, data, fua)),
        }
    }

    fn flush(&self) -> Done {
        match self {
            Self::Own(drive) => Ticket::Own(drive.flush()),
            Self::Behind(drive) => Ticket::Behind(drive.flush()),
        }
    }

    fn write_zeroes(&self, offset: u64, bytes: u64) -> Done {
        match self {
            Self::Own(drive) => Ticket::Own(drive.write_zeroes(offset, bytes)),
            Self::Behind(drive) => Ticket::Behind(drive.write_zeroes(offset, bytes)),
        }
    }

    fn discard(&self, offset: u64, bytes: u64) -> Done {
        match self {
            Self::Own(drive) => Ticket::Own(drive.discard(offset, bytes)),
            Self::Behind(drive) => Ticket::Behind(drive.discard(offset, bytes)),
        }
    }

    fn reached(&self) -> Option<&dyn Reached> {
        match self {
            Self::Own(drive) => drive.reached(),
            Self::Behind(drive) => drive.reached(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::Rig;
    use sim::{DriveConfig, WorldConfig};

    #[test]
    fn a_drive_behind_a_shelf_tells_how_it_is_reached() {
        let shared = SharedSimDrive::new(DriveConfig::new(18 << 20, 1));
        let config = WorldConfig::new(1).with_cores(2);
        let rig = Rig::behind(config, core::slice::from_ref(&shared), (true, 1));
        let Ok(rig) = rig else { panic!("it is not connected") };
        for core in 0..2 {
            let drive = rig.env(CoreId(core)).bind(&shared);
            let reached = drive.reached().expect("others may reach it");
            assert_eq!(reached.controllers().len(), 2);
        }
        let own = Attached::Own(rig.world.env(CoreId(0)).bind(&shared));
        assert!(own.reached().is_none());
    }
}
