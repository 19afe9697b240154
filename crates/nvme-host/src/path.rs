//! A path as its subsystem has it: see there for its states.

use crate::fences::Fences;
use crate::keeper::Problem;
use crate::queue::Shape;
use crate::subsystem::{Path, Terms};
use core::net::SocketAddr;
use nvme::log::Access;
use nvme::reset::Instance;
use std::collections::BTreeMap;
use units::Nanos;

/// Where a path is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    Connecting,
    Live,
    Closing,
    Lost,
}

/// What is known of a path.
pub(crate) struct PathRecord {
    pub serial: u64,
    pub address: SocketAddr,
    pub stage: Stage,
    /// The association there is, or was last.
    pub turn: u64,
    pub controller: u16,
    /// Something can be sent by an association: it is live, or was and is not closed yet.
    pub is_used: bool,
    /// The controller of that, or of the last, if it can be named.
    pub instance: Option<Instance>,
    /// Whether it ends others.
    pub resets: bool,
    pub entries: u16,
    pub shape: Shape,
    /// Namespaces that the controller has.
    pub access: BTreeMap<u32, Access>,
    /// When what it answered last was asked, of all whether it is there.
    pub heard: Nanos,
    /// Carriers that have a connection, or make one.
    pub carriers: usize,
    /// I/O queues that are connected.
    pub queues: u16,
    pub fences: Fences,
    pub errors: u64,
    /// Associations that there were.
    pub associations: u64,
    pub problem: Option<Problem>,
    pub next_try: Option<Nanos>,
    pub is_removed: bool,
    /// It did not carry out what it should have a way to.
    pub is_doubted: bool,
}

/// The state of a path, as users know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathState {
    /// Requests go by it.
    Live,
    /// It is being connected, or will be.
    Connecting,
    /// What went by it may still be carried out.
    Fencing,
    /// It is not tried any more.
    Lost,
}

/// A path, as users know it.
#[derive(Clone, Debug)]
pub struct PathStatus {
    /// Which.
    pub path: Path,
    /// Where the controller answers.
    pub address: SocketAddr,
    /// Its state.
    pub state: PathState,
    /// The controller's number in the subsystem, if it is live.
    pub controller: Option<u16>,
    /// How the controller comes to its namespaces, while it is live.
    pub access: BTreeMap<u32, Access>,
    /// I/O queues that are connected.
    pub queues: u16,
    /// How often an association ended or could not begin.
    pub errors: u64,
    /// Associations behind the first.
    pub reconnects: u64,
    /// What was wrong last.
    pub problem: Option<Problem>,
    /// The time until it is tried again, if it will be.
    pub next_try: Option<Nanos>,
}

impl PathRecord {
    pub fn new(serial: u64, address: SocketAddr) -> Self {
        Self {
            serial,
            address,
            stage: Stage::Connecting,
            turn: 0,
            controller: 0,
            is_used: false,
            instance: None,
            resets: false,
            entries: 0,
            shape: Shape { commands: 0, data_most: 0, capsule_data: 0 },
            access: BTreeMap::new(),
            heard: Nanos(0),
            carriers: 0,
            queues: 0,
            fences: Fences::default(),
            errors: 0,
            associations: 0,
            problem: None,
            next_try: None,
            is_removed: false,
            is_doubted: false,
        }
    }

    fn state(&self) -> PathState {
        match self.stage {
            Stage::Live => PathState::Live,
            Stage::Lost => PathState::Lost,
            Stage::Closing => PathState::Fencing,
            Stage::Connecting if !self.fences.is_empty() => PathState::Fencing,
            Stage::Connecting => PathState::Connecting,
        }
    }

    pub fn terms(&self, path: u8, lapse: u64) -> Terms {
        Terms {
            association: (path, self.turn).into(),
            address: self.address,
            controller: self.controller,
            entries: self.entries,
            shape: self.shape,
            lapse,
        }
    }

    /// The first reason of an association counts.
    pub fn ends(&mut self, problem: Problem) {
        if matches!(self.stage, Stage::Live | Stage::Connecting) {
            self.stage = Stage::Closing;
            self.errors += u64::from(!self.is_removed);
            self.problem = Some(problem);
        }
    }

    pub fn status(&self, number: u8, now: Nanos) -> PathStatus {
        let is_live = self.stage == Stage::Live;
        PathStatus {
            path: (number, self.serial).into(),
            address: self.address,
            state: self.state(),
            controller: is_live.then_some(self.controller),
            access: if is_live { self.access.clone() } else { BTreeMap::new() },
            queues: self.queues,
            errors: self.errors,
            reconnects: self.associations.saturating_sub(1),
            problem: self.problem.clone(),
            next_try: self.next_try.map(|at| at.since(now)),
        }
    }
}
