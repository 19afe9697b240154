//! One connection behind its Connect: commands under way, a sender, a receiver.
//!
//! | state of a slot | leaves by                                                             |
//! |-----------------|-----------------------------------------------------------------------|
//! | free            | the sender takes a part of a request → sent                           |
//! | sent            | its completion, or data with its success told → free; a completion    |
//! |                 | that says that it was not carried out, and may be again → again; the  |
//! |                 | connection's end → free, its part back                                |
//! | again           | the sender sends it once more → sent; the connection's end, as above  |
//!
//! What a write's data is asked for is sent behind what was sent before it, in pieces that the
//! controller takes, one request for data at a time, each right behind the one before.
//!
//! Invariants
//! - A command's identifier names its slot and which use of it: what was answered, or never asked,
//!   is not answered again. It ends the connection.
//! - Data goes only where a command wants it: what does not follow what came before, is more than
//!   was asked for, or belongs to a command that has none, ends the connection.
//! - The receiver alone ends slots, and only it gives parts back: when nothing more is received,
//!   and the sender has ended.

use crate::keeper::until_next;
use crate::limits::{
    RANGE_BYTES, RECEIVE_BATCH, SILENCE, SILENCE_LOOKS, SLOT_BITS, SLOTS_MOST, TRIES,
};
use crate::mutants::{self, Mutant};
use crate::requests::{Answer, Asked, Association, Carrier, Part, Requests, What};
use crate::wire::{Form, Frame, Pieces, read_header};
use core::cell::{Cell, RefCell};
use core::future::pending;
use io::local::yield_now;
use io::{Closed, DriveError, Env, Priority, Transport};
use nvme::command::{Command, Completion, nvm};
use nvme::pdu::{self, Fatal, Header, Kind, Rest, SHORT_HEADER_BYTES, Transfer, flag};
use nvme::sgl::Sgl;
use nvme::status::Status;
use nvme_stream::{Received, read_data, skip};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::rc::{Rc, Weak};
use thiserror::Error;
use units::Nanos;

/// How long the end of a connection may take to be told to the controller.
const LEAVE: Nanos = Nanos::from_millis(100);

/// Why a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum End {
    /// The other end closed it, or it was lost.
    #[error("the connection was closed")]
    Closed,
    /// The controller said that we did something wrong: its fatal error status and information.
    #[error("the controller ended the connection: error {0:#06x}, {1:#010x}")]
    Terminated(u16, u32),
    /// The controller did something wrong.
    #[error("the controller broke the protocol: {0}")]
    Wrong(Fatal),
    /// It was ended here.
    #[error("the connection was ended")]
    Here,
    /// Commands were under way, and nothing came for too long.
    #[error("the controller answered no command for {} s", SILENCE.0 / 1_000_000_000)]
    Silent,
}

impl From<Closed> for End {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl From<Fatal> for End {
    fn from(fatal: Fatal) -> Self {
        Self::Wrong(fatal)
    }
}

/// What commands of a queue may be like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Commands at a time.
    pub commands: u16,
    /// Most bytes of a command's data.
    pub data_most: u32,
    /// Most bytes of data in a command's capsule.
    pub capsule_data: u32,
}

/// Which way a command's data goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Moves {
    Nothing,
    /// From the controller.
    In,
    /// To it.
    Out,
    /// To it, as a range of blocks in the capsule.
    Range,
}

impl Moves {
    fn of(asked: &Asked) -> Self {
        match asked.what {
            What::Read => Self::In,
            What::Own(_) if asked.bytes > 0 => Self::In,
            What::Write { .. } | What::Zeros => Self::Out,
            What::Discard => Self::Range,
            What::Zeroes | What::Flush | What::Own(_) => Self::Nothing,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    Sent,
    Again,
}

#[derive(Clone, Copy)]
struct Slot {
    state: State,
    /// Which use of it this is.
    turn: u16,
    part: Part,
    moves: Moves,
    /// It is of the controller itself.
    is_own: bool,
    /// How often it was sent.
    tries: u8,
    /// Bytes of data that came.
    received: u32,
    /// Bytes of data that were asked for; all where they are in the capsule.
    wanted: u32,
    /// Data that was asked for waits to be sent.
    is_asking: bool,
    /// Data came without its digest.
    is_broken: bool,
}

const FREE: Slot = Slot {
    state: State::Free,
    turn: 0,
    part: Part { entry: 0, from: 0, bytes: 0 },
    moves: Moves::Nothing,
    is_own: false,
    tries: 0,
    received: 0,
    wanted: 0,
    is_asking: false,
    is_broken: false,
};

struct Slots {
    all: Box<[Slot]>,
    free: Vec<u16>,
    /// Data that is to be sent: of which command, and where.
    asked: VecDeque<Transfer>,
    again: VecDeque<u16>,
}

impl Slots {
    fn new(count: u16) -> Self {
        let count = count.clamp(1, SLOTS_MOST);
        Self {
            all: vec![FREE; usize::from(count)].into(),
            free: (0..count).rev().collect(),
            asked: VecDeque::with_capacity(usize::from(count)),
            again: VecDeque::with_capacity(usize::from(count)),
        }
    }

    fn get(&mut self, at: u16) -> &mut Slot {
        &mut self.all[usize::from(at)]
    }

    /// The slot of a command that is under way.
    fn under_way(&mut self, command: u16) -> Option<(u16, &mut Slot)> {
        let (at, turn) = (command & (SLOTS_MOST - 1), command >> SLOT_BITS);
        let slot = self.all.get_mut(usize::from(at))?;
        (slot.state == State::Sent && slot.turn == turn).then_some((at, slot))
    }

    fn id(&self, at: u16) -> u16 {
        at | self.all[usize::from(at)].turn << SLOT_BITS
    }

    /// Frees a slot: its number names nothing until it is used again, and then another command.
    fn free(&mut self, at: u16) -> Part {
        let id = self.id(at);
        let slot = self.get(at);
        let part = slot.part;
        let turn = (slot.turn + 1) & (u16::MAX >> SLOT_BITS);
        *slot = Slot { turn, ..FREE };
        self.asked.retain(|transfer| transfer.command != id);
        self.free.push(at);
        part
    }
}

/// See the module above.
pub struct Queue<T> {
    transport: Rc<T>,
    form: Form,
    shape: Shape,
    requests: Rc<Requests>,
    slots: RefCell<Slots>,
    end: Cell<Option<End>>,
    is_sending: Cell<bool>,
    has_sender: Cell<bool>,
    carrier: Carrier,
    /// PDUs that came.
    received: Cell<u64>,
    /// No other queue ever carries these requests.
    is_only: bool,
}

impl<T: Transport> Queue<T> {
    /// The queue of a connection that has begun so.
    pub(crate) fn new(
        transport: Rc<T>,
        form: Form,
        shape: Shape,
        requests: Rc<Requests>,
        (association, is_only): (Association, bool),
    ) -> Rc<Self> {
        Rc::new(Self {
            carrier: requests.join(association),
            is_only,
            transport,
            form,
            shape,
            requests,
            slots: RefCell::new(Slots::new(shape.commands)),
            end: Cell::new(None),
            is_sending: Cell::new(false),
            has_sender: Cell::new(false),
            received: Cell::new(0),
        })
    }

    /// Ends the connection: what is under way comes back.
    pub fn close(&self) {
        self.over(End::Here);
    }

    /// Ends a connection once it brings nothing for too long while commands are under way. One that
    /// has ended is waited for in vain.
    pub async fn end_if_silent<E: Env>(queue: Weak<Self>, env: &E) {
        let (mut seen, mut looks) = (0, 0);
        loop {
            // With those of all other queues.
            let look = Nanos(SILENCE.0 / u64::from(SILENCE_LOOKS));
            env.sleep(until_next(look, env.now())).await;
            let Some(queue) = queue.upgrade() else { return pending().await };
            let received = queue.received.get();
            let is_quiet = received == seen && queue.under_way() > 0;
            (seen, looks) = (received, if is_quiet { looks + 1 } else { 0 });
            if looks == SILENCE_LOOKS {
                return queue.over(End::Silent);
            }
        }
    }

    /// Commands under way.
    pub fn under_way(&self) -> usize {
        let slots = self.slots.borrow();
        slots.all.len() - slots.free.len()
    }

    /// Nothing more is sent or received. The first reason counts.
    fn over(&self, end: End) {
        if self.end.get().is_none() {
            self.end.set(Some(end));
        }
        self.transport.close();
        self.requests.changed().notify();
    }

    /// Carries requests until the connection ends; says why it does. Then everything is back.
    pub async fn run<E: Env>(self: Rc<Self>, env: &E) -> End {
        self.has_sender.set(true);
        env.spawn(Priority::First, self.clone().send());
        let mut raw = Received::new();
        let end = self.receive(&mut raw).await;
        let end = *self.end.get().get_or_insert(end);
        self.end.set(Some(end));
        if let End::Wrong(fatal) = end {
            self.tell(env, fatal, &raw).await;
        }
        self.over(end);
        let requests = self.requests.clone();
        requests.changed().wait_until(|| (!self.has_sender.get()).then_some(())).await;
        if self.is_only {
            self.requests.refuse(DriveError::Gone);
        }
        self.give_back();
        end
    }

    /// Tells the controller what it did wrong, if nothing else is being sent.
    async fn tell<E: Env>(&self, env: &E, fatal: Fatal, raw: &Received) {
        self.requests.changed().notify();
        if self.is_sending.get() {
            return;
        }
        // The connection is gone for good once nobody has it.
        let (transport, sleep) = (Rc::downgrade(&self.transport), env.sleep(LEAVE));
        env.spawn(Priority::First, async move {
            sleep.await;
            if let Some(transport) = transport.upgrade() {
                transport.close();
            }
        });
        let head = pdu::termination(Kind::HostTermination, fatal, raw.len() as u32);
        let told = self.transport.write_all(&mut [IoSlice::new(&head), IoSlice::new(raw)]).await;
        if told.is_ok() {
            self.transport.finish();
        }
    }

    fn give_back(&self) {
        let mut slots = self.slots.borrow_mut();
        for at in 0..slots.all.len() as u16 {
            if slots.get(at).state != State::Free {
                let part = slots.free(at);
                self.requests.give_back(&part);
            }
        }
        self.requests.leave(self.carrier);
    }

    // The sender.

    async fn send(self: Rc<Self>) {
        let mut frame = Frame::default();
        loop {
            let next = || match self.end.get() {
                Some(_) => Some(false),
                None => self.has_work().then_some(true),
            };
            if !self.requests.changed().wait_until(next).await {
                break;
            }
            frame.clear();
            self.fill(&mut frame);
            self.is_sending.set(true);
            let sent = self.transport.write_all(&mut frame.parts()).await;
            self.is_sending.set(false);
            frame.clear();
            if sent.is_err() {
                self.over(End::Closed);
            }
        }
        self.has_sender.set(false);
        self.requests.changed().notify();
    }

    fn has_work(&self) -> bool {
        let slots = self.slots.borrow();
        let is_wanted = !slots.asked.is_empty() || !slots.again.is_empty();
        is_wanted || !slots.free.is_empty() && self.requests.has_parts(self.carrier)
    }

    /// Puts together what waits to be sent: data that was asked for first.
    fn fill(&self, frame: &mut Frame) {
        let slots = &mut *self.slots.borrow_mut();
        while frame.has_room() {
            if let Some(transfer) = slots.asked.pop_front() {
                self.add_data(slots, frame, transfer);
            } else if let Some(at) = slots.again.pop_front() {
                self.add_command(slots, frame, at);
            } else if let Some(at) = slots.free.last().copied()
                && let Some(part) = self.requests.take(self.carrier, self.shape.data_most)
            {
                slots.free.pop();
                let look = |asked: &Asked| (Moves::of(asked), matches!(asked.what, What::Own(_)));
                let (moves, is_own) = self.requests.with(&part, look);
                let slot = slots.get(at);
                *slot = Slot { turn: slot.turn, part, moves, is_own, ..FREE };
                self.add_command(slots, frame, at);
            } else {
                return;
            }
        }
    }

    /// A piece of what was asked for; the rest of it is next.
    fn add_data(&self, slots: &mut Slots, frame: &mut Frame, transfer: Transfer) {
        let bytes = transfer.bytes.min(self.form.data_most);
        let rest = transfer.bytes - bytes;
        let Some((_, slot)) = slots.under_way(transfer.command) else { return };
        let data = self.requests.data(&slot.part, transfer.offset, bytes);
        frame.data(&self.form, &Transfer { bytes, ..transfer }, rest == 0, data);
        slot.is_asking = rest > 0;
        if rest > 0 {
            let offset = transfer.offset + bytes;
            slots.asked.push_front(Transfer { offset, bytes: rest, ..transfer });
        }
    }

    fn add_command(&self, slots: &mut Slots, frame: &mut Frame, at: u16) {
        let id = slots.id(at);
        let slot = slots.get(at);
        (slot.state, slot.tries) = (State::Sent, slot.tries + 1);
        (slot.received, slot.wanted) = (0, 0);
        (slot.is_asking, slot.is_broken) = (false, false);
        let part = slot.part;
        let command = self.requests.with(&part, |asked| command_of(asked, &part, id));
        if slot.moves == Moves::Range {
            let range = self.requests.with(&part, |asked| range(asked, &part));
            return frame.command_with(&self.form, &command, &range);
        }
        if slot.moves != Moves::Out || part.bytes > self.shape.capsule_data {
            return frame.command(&self.form, &command, Pieces::new());
        }
        let length = part.bytes;
        slot.wanted = length;
        let command = command.with_sgl(Sgl::InCapsule { offset: 0, length });
        frame.command(&self.form, &command, self.requests.data(&part, 0, length));
    }

    // The receiver.

    async fn receive(&self, raw: &mut Received) -> End {
        loop {
            for _ in 0..RECEIVE_BATCH {
                if let Err(end) = self.receive_one(raw).await {
                    return end;
                }
            }
            // Who got an answer may ask for more before the rest is received.
            yield_now().await;
        }
    }

    async fn receive_one(&self, raw: &mut Received) -> Result<(), End> {
        let most = self.shape.data_most;
        let (header, rest) = read_header(&*self.transport, self.form.digests, most, raw).await?;
        self.received.set(self.received.get() + 1);
        if let Some(end) = self.end.get() {
            return Err(end);
        }
        match header.kind {
            Kind::Response => {
                let completion = pdu::completion(short(raw));
                self.complete(&completion)
            }
            Kind::ControllerData => {
                let transfer = Transfer::decode(short(raw));
                self.receive_data(&header, &transfer, &rest).await
            }
            Kind::ReadyToTransfer => self.ready(&Transfer::decode(short(raw))),
            Kind::ControllerTermination => {
                let raw = short(raw);
                let status = u16::from_le_bytes([raw[8], raw[9]]);
                let information = u32::from_le_bytes([raw[10], raw[11], raw[12], raw[13]]);
                skip(&*self.transport, rest.data as usize).await?;
                Err(End::Terminated(status, information))
            }
            _ => Err(Fatal::Sequence.into()),
        }
    }

    /// Data of a read: as much as was asked for, one piece behind the other.
    async fn receive_data(
        &self,
        header: &Header,
        transfer: &Transfer,
        rest: &Rest,
    ) -> Result<(), End> {
        let part = {
            let mut slots = self.slots.borrow_mut();
            let (_, slot) = slots.under_way(transfer.command).ok_or(Fatal::Field(8))?;
            if slot.moves != Moves::In {
                return Err(Fatal::Field(8).into());
            }
            if transfer.bytes != rest.data || rest.data == 0 {
                return Err(Fatal::Field(16).into());
            }
            let end = transfer.offset.checked_add(transfer.bytes);
            if transfer.offset != slot.received || end.is_none_or(|end| end > slot.part.bytes) {
                return Err(Fatal::OutOfRange.into());
            }
            slot.part
        };
        let from = part.from as usize + transfer.offset as usize;
        let mut buffer = self.requests.take_buffer(&part).expect("a read has its buffer");
        let into = &mut buffer[from..from + transfer.bytes as usize];
        let whole = read_data(&*self.transport, into, rest).await;
        self.requests.put_buffer(&part, buffer);
        let whole = whole?;
        {
            let mut slots = self.slots.borrow_mut();
            let (_, slot) = slots.under_way(transfer.command).expect("only the receiver ends it");
            slot.received += transfer.bytes;
            slot.is_broken |= !whole;
        }
        if header.flags & flag::SUCCESS == 0 {
            return Ok(());
        }
        if header.flags & flag::LAST == 0 {
            return Err(Fatal::Field(1).into());
        }
        self.complete(&Completion::of(transfer.command, Status::SUCCESS))
    }

    /// Data of a write is asked for.
    fn ready(&self, transfer: &Transfer) -> Result<(), End> {
        let slots = &mut *self.slots.borrow_mut();
        let (_, slot) = slots.under_way(transfer.command).ok_or(Fatal::Field(8))?;
        if slot.moves != Moves::Out {
            return Err(Fatal::Field(8).into());
        }
        if slot.is_asking {
            return Err(Fatal::Limit.into());
        }
        let end = transfer.offset.checked_add(transfer.bytes);
        let is_next = transfer.offset == slot.wanted && transfer.bytes > 0;
        if !is_next || end.is_none_or(|end| end > slot.part.bytes) {
            return Err(Fatal::OutOfRange.into());
        }
        slot.wanted += transfer.bytes;
        slot.is_asking = true;
        slots.asked.push_back(*transfer);
        self.requests.changed().notify();
        Ok(())
    }

    /// A command is over.
    fn complete(&self, completion: &Completion) -> Result<(), End> {
        let slots = &mut *self.slots.borrow_mut();
        let (at, slot) = slots.under_way(completion.id).ok_or(Fatal::Field(20))?;
        let status = match slot.is_broken {
            true => Status::TRANSIENT_TRANSPORT,
            false => completion.status,
        };
        if status.is_success() {
            let bytes = slot.part.bytes;
            let is_moved = match slot.moves {
                Moves::In => slot.received == bytes,
                Moves::Out => slot.wanted == bytes && !slot.is_asking,
                Moves::Range | Moves::Nothing => true,
            };
            // What was not moved can't have been done.
            if !is_moved {
                return Err(Fatal::Sequence.into());
            }
        }
        if !slot.is_own && may_again(status) && slot.tries < TRIES {
            slot.state = State::Again;
            slots.asked.retain(|transfer| transfer.command != completion.id);
            slots.again.push_back(at);
            self.requests.changed().notify();
            return Ok(());
        }
        if !slot.is_own && is_elsewhere(status) && self.requests.turn_away(&slot.part) {
            slots.free(at);
            return Ok(());
        }
        let part = slots.free(at);
        let has_waited = !slots.again.is_empty() || self.requests.has_parts(self.carrier);
        let answer = Answer { status, value: completion.result };
        self.requests.answered(&part, result_of(status), answer);
        if has_waited {
            self.requests.changed().notify();
        }
        Ok(())
    }
}

fn short(raw: &Received) -> &[u8; SHORT_HEADER_BYTES] {
    raw.first_chunk().expect("a header was read whole")
}

/// The command of a part, its data not in the capsule.
fn command_of(asked: &Asked, part: &Part, id: u16) -> Command {
    let first = (asked.offset + part.from) >> asked.shift;
    let blocks = part.bytes >> asked.shift;
    let plain = |opcode, sgl| Command::new(opcode, id, asked.namespace, sgl);
    let with = |opcode, length, fua| {
        plain(opcode, Sgl::Transport { length }).with_blocks(first, blocks, fua)
    };
    match &asked.what {
        What::Read => with(nvm::READ, part.bytes, false),
        What::Write { fua } => with(nvm::WRITE, part.bytes, *fua),
        What::Zeros => with(nvm::WRITE, part.bytes, false),
        // Without its bit 25 (DEAC): blocks stay allocated, and are zero.
        What::Zeroes => with(nvm::WRITE_ZEROES, 0, false),
        What::Flush => plain(nvm::FLUSH, Sgl::Transport { length: 0 }),
        What::Discard => {
            // One range; its blocks are not needed any more (AD).
            let dwords = [0, 1 << 2, 0, 0, 0, 0];
            let sgl = Sgl::InCapsule { offset: 0, length: RANGE_BYTES };
            plain(nvm::DATASET_MANAGEMENT, sgl).with_dwords(dwords)
        }
        What::Own(command) => {
            command.clone().with_id(id).with_sgl(Sgl::Transport { length: part.bytes })
        }
    }
}

/// The range of a Dataset Management command (NVM, figure 44).
fn range(asked: &Asked, part: &Part) -> [u8; RANGE_BYTES as usize] {
    let first = (asked.offset + part.from) >> asked.shift;
    let mut range = [0; RANGE_BYTES as usize];
    range[4..8].copy_from_slice(&(part.bytes >> asked.shift).to_le_bytes());
    range[8..].copy_from_slice(&first.to_le_bytes());
    range
}

/// Whether a command was not carried out, and may be now.
fn may_again(status: Status) -> bool {
    let passing = [Status::TRANSIENT_TRANSPORT, Status::INTERRUPTED];
    !status.is_lasting() && passing.iter().any(|own| status.is(*own))
}

/// Whether a command was not carried out by this path, and may be by another, or later: what is
/// wrong is the way to the namespace.
fn is_elsewhere(status: Status) -> bool {
    const PATH: u16 = 3;
    let is_its = status.kind() == PATH || status.is(Status::NOT_READY);
    is_its && !status.is_lasting() && !mutants::is(Mutant::AnaIgnored)
}

/// What a status says of a drive.
fn result_of(status: Status) -> Result<(), DriveError> {
    const MEDIA: u16 = 2;
    if status.is_success() {
        return Ok(());
    }
    Err(match status.kind() {
        MEDIA => DriveError::Media,
        _ if status.is(Status::LBA_RANGE) => DriveError::Shrunk,
        _ if status.is(Status::INVALID_NAMESPACE) => DriveError::Gone,
        _ if status.is(Status::INVALID_OPCODE) => DriveError::Unsupported,
        _ => DriveError::Fault,
    })
}
