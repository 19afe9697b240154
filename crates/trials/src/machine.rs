//! One virtual core of a machine whose drives are its own, or behind a shelf. Its world may have
//! more cores than the machine.

use crate::paths::Paths;
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

/// Which cores of a world are a machine's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The first.
    pub first: u16,
    /// How many.
    pub cores: u16,
}

impl Place {
    /// The world's core that is such a core of the machine.
    pub const fn of(self, core: CoreId) -> CoreId {
        CoreId(self.first + core.0)
    }

    /// The world's cores.
    pub fn all(self) -> impl Iterator<Item = CoreId> {
        (self.first..self.first + self.cores).map(CoreId)
    }
}

/// A core. Clones are the same.
#[derive(Clone)]
pub struct Machine {
    own: SimEnv<Message>,
    place: Place,
    paths: Option<Rc<Paths>>,
}

impl Machine {
    /// A core of a machine whose drives are its own, or reached by paths.
    pub fn new(own: SimEnv<Message>, place: Place, paths: Option<&Rc<Paths>>) -> Self {
        Self { own, place, paths: paths.cloned() }
    }
}

impl Env for Machine {
    type Drive = Attached;
    type Shared = SharedSimDrive;
    type Mail = Message;
    type Sleep = <SimEnv<Message> as Env>::Sleep;

    fn core(&self) -> CoreId {
        CoreId(self.own.core().0 - self.place.first)
    }

    fn cores(&self) -> u16 {
        self.place.cores
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
        self.own.post(self.place.of(to), mail);
    }

    fn receive(&self) -> impl Future<Output = Message> {
        self.own.receive()
    }

    fn bind(&self, shared: &SharedSimDrive) -> Attached {
        match &self.paths {
            Some(paths) => Attached::Behind(paths.drive(self.core(), shared)),
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
        let rig = Rig::behind(config, core::slice::from_ref(&shared), (true, 1), 0);
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
