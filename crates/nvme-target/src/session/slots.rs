//! The commands of one queue that are in progress, in fixed places.
//!
//! States of a slot: *free* → *new* (the command was read) → *waiting* for memory → *receiving* its
//! data → *working* (a worker has it) → *answered* (its completion waits to be sent) → free. A
//! command skips what it does not need; a request for an event is *held* until there is one, and
//! half of a pair ([`super::fused`]) that has its data is *ready* until the other has.
//!
//! Invariant: a slot is in the list of free ones exactly while it is free.

use front::Lease;
use io::BufMut;
use nvme::command::Command;
use nvme::status::Status;
use units::Nanos;

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Free,
    New,
    Waiting,
    Receiving,
    Ready,
    Working,
    Held,
    Answered,
}

/// A command in progress.
pub(crate) struct Slot<V> {
    pub state: State,
    pub command: Command,
    /// The volume it is for.
    pub volume: Option<V>,
    /// Bytes of data it moves.
    pub bytes: u32,
    /// They come from the host.
    pub is_inbound: bool,
    /// Bytes that have come.
    pub received: u32,
    /// Some of what has come is not what was sent.
    pub is_broken: bool,
    /// When it began to receive data, or to wait for its other half.
    pub since: Nanos,
    /// It is half of a pair.
    pub half: Option<Half>,
    /// Its memory.
    pub buffer: Option<(BufMut, Lease)>,
}

/// What half of a pair knows of its other half.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Half {
    /// It has not come.
    Alone,
    /// It is in this slot.
    Joined(u16),
    /// It is not carried out, or does not come: this half ends so.
    Lost(Status),
}

/// A queue's slots.
pub(crate) struct Slots<V> {
    all: Vec<Slot<V>>,
    free: Vec<u16>,
}

impl<V> Slots<V> {
    pub fn new(count: u16) -> Self {
        let none = || Slot {
            state: State::Free,
            command: Command([0; 64]),
            volume: None,
            bytes: 0,
            is_inbound: false,
            received: 0,
            is_broken: false,
            since: Nanos(0),
            half: None,
            buffer: None,
        };
        Self {
            all: core::iter::repeat_with(none).take(count.into()).collect(),
            free: (0..count).rev().collect(),
        }
    }

    /// A command came; `None` if there is no room.
    pub fn begin(&mut self, command: &Command) -> Option<u16> {
        let at = self.free.pop()?;
        let slot = self.get(at);
        slot.state = State::New;
        slot.command = command.clone();
        (slot.bytes, slot.received, slot.is_broken) = (0, 0, false);
        slot.half = None;
        Some(at)
    }

    /// The slot of a number that is this queue's own.
    pub fn get(&mut self, at: u16) -> &mut Slot<V> {
        &mut self.all[usize::from(at)]
    }

    /// The slot that receives data, if a host names it rightly.
    pub fn receiving(&mut self, at: u16, command: u16) -> Option<&mut Slot<V>> {
        let slot = self.all.get_mut(usize::from(at))?;
        (slot.state == State::Receiving && slot.command.id() == command).then_some(slot)
    }

    /// When the first of those began to that have memory and wait for what their host sends next.
    pub fn receiving_since(&self) -> Option<Nanos> {
        let waits = |slot: &&Slot<V>| match (slot.state, slot.half) {
            (State::Receiving, _) => true,
            // Unless it is us whom its other half waits for.
            (State::Ready, Some(Half::Joined(other))) => {
                self.all[usize::from(other)].state != State::Waiting
            }
            (State::Ready, _) => true,
            _ => false,
        };
        self.all.iter().filter(waits).map(|slot| slot.since).min()
    }

    /// The command is over: what it held was given back.
    pub fn end(&mut self, at: u16) {
        let slot = self.get(at);
        debug_assert!(slot.state != State::Free, "a command ends once");
        slot.state = State::Free;
        slot.volume = None;
        slot.buffer = None;
        self.free.push(at);
    }

    /// Commands in progress.
    #[cfg(test)]
    pub fn used(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// Takes the memory of all that no worker has: their host is gone.
    pub fn drain(&mut self) {
        for slot in &mut self.all {
            if matches!(slot.state, State::Waiting | State::Receiving | State::Ready) {
                slot.buffer = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_bounded_and_used_again() {
        let mut slots = Slots::<()>::new(2);
        let command = Command([7; 64]);
        let (a, b) = (slots.begin(&command).unwrap(), slots.begin(&command).unwrap());
        assert!(a != b && slots.begin(&command).is_none() && slots.used() == 2);
        slots.end(a);
        assert_eq!(slots.begin(&command), Some(a));
    }

    #[test]
    fn data_is_only_for_the_command_that_was_asked() {
        let mut slots = Slots::<()>::new(2);
        let mut command = Command([0; 64]);
        command.0[2] = 9;
        let at = slots.begin(&command).unwrap();
        assert!(slots.receiving(at, 9).is_none());
        slots.get(at).state = State::Receiving;
        assert!(slots.receiving(at, 9).is_some() && slots.receiving(at, 8).is_none());
        assert!(slots.receiving(1 - at, 9).is_none() && slots.receiving(999, 9).is_none());
    }
}
