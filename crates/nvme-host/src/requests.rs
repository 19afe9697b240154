//! What a core asks of the namespaces of a subsystem, whichever connection carries it.
//!
//! A request is carried by one or more commands, each for a *part* of it. Queues take parts; what
//! they can't end comes back.
//!
//! | state     | leaves by                                                                      |
//! |-----------|--------------------------------------------------------------------------------|
//! | waiting   | a queue takes its last part → under way; nobody will carry it → ended          |
//! | under way | its last part is answered → ended, or waiting if one was not carried out and   |
//! |           | belongs to another path; its last part comes back unanswered → waiting if it   |
//! |           | reads or flushes, ended as *gone* if it is of a controller's own queue, else   |
//! |           | held                                                                           |
//! | held      | its association can't carry it out any more → waiting, or ended                |
//! | ended     | its ticket takes the outcome → free; there is no ticket → free at once         |
//!
//! Invariants
//! - A namespace's requests are taken by the paths that are the ways to it ([`Way`]), and by no
//!   others.
//! - Parts of a request that are under way are all on one connection: whoever took the first takes
//!   the others, until it leaves. A request that came back in part is not handed out before all its
//!   other parts came back or were answered.
//! - The buffer of a read is in its request, or with the one receiver that fills it.
//! - Requests go to the paths that lead to their namespaces in turn. One whose path has gone is
//!   taken by any.
//! - A path that did not carry out a request takes none of that namespace before somebody says that
//!   it may again.
//! - A *change* is what is not a read or a flush. A path that is *unchecked* for a namespace takes
//!   none of its changes, nor is it ever its turn to; one that is *unnamed* takes those of one
//!   place only. No path takes those of a namespace that is *barred*.
//! - What an association asks for its own sake is carried by its queue alone, and only as long as
//!   the association is unchecked.
//! - Entries are recycled, never freed: after warm-up nothing is allocated.

use crate::limits::{BLOCKS_MOST, GUARD_BYTES, PATHS, TURNS_AWAY, ZEROS};
use crate::mutants::{self, Mutant};
use core::cell::RefCell;
use core::task::{Context, Poll, Waker};
use io::local::Event;
use io::{Buf, BufMut, DriveError, Gather, Pool};
use nvme::command::Command;
use nvme::status::Status;
use std::collections::VecDeque;

/// What a request does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum What {
    Read,
    Write {
        fua: bool,
    },
    /// Zeros, by Write Zeroes.
    Zeroes,
    /// Zeros, by writes of them.
    Zeros,
    Discard,
    Flush,
    /// Whatever the command says, of the controller itself; its data comes from there.
    Own(Command),
}

impl What {
    /// Whether it may be carried out twice, whatever else is done in between.
    fn is_repeatable(&self) -> bool {
        matches!(self, Self::Read | Self::Flush) || mutants::is(Mutant::FenceOff)
    }

    /// Whether it changes what a namespace holds.
    fn is_change(&self) -> bool {
        matches!(self, Self::Write { .. } | Self::Zeroes | Self::Zeros | Self::Discard)
    }

    /// Most bytes of a part, where commands move at most `data_most` bytes and blocks have
    /// `1 << shift`.
    fn part_most(&self, data_most: u32, shift: u8) -> u64 {
        let blocks = u64::from(BLOCKS_MOST) << shift;
        match self {
            Self::Read | Self::Write { .. } => blocks.min(data_most.into()),
            Self::Zeros => blocks.min(data_most.min(ZEROS as u32).into()),
            // A block more would not fit its field.
            Self::Zeroes | Self::Discard => blocks,
            Self::Flush | Self::Own(_) => u64::MAX,
        }
    }
}

/// A controller as a host has it, from its admin queue's Connect until all its connections have
/// ended (Base, section 3.1.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Association {
    /// The path that leads there, below [`limits::PATHS`](crate::limits::PATHS).
    pub path: u8,
    /// Grows from one association of a subsystem to the next.
    pub turn: u64,
}

/// How the requests of a namespace are carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// By these paths, a bit for each. None: they wait.
    Paths(u64),
    /// Not at all: they end so.
    No(DriveError),
}

/// Where a request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Free,
    Waiting,
    UnderWay,
    Held,
    Ended,
}

/// What a request is about.
pub(crate) struct Asked {
    pub what: What,
    pub namespace: u32,
    /// The association whose queue alone is to carry it.
    pub by: Option<Association>,
    /// The lapse of its subsystem behind which it was opened, if a later one ends it; else 0.
    pub lapse: u64,
    /// Where it begins in the namespace, and how much it is about, in bytes.
    pub offset: u64,
    pub bytes: u64,
    /// Bytes of a block, as a power of two.
    pub shift: u8,
    /// What is written.
    pub data: Gather,
    /// What is read into.
    pub into: Option<BufMut>,
}

/// How a request ended.
pub(crate) struct Outcome {
    pub result: Result<(), DriveError>,
    pub into: Option<BufMut>,
    /// How the command ended that was answered last.
    pub answer: Answer,
}

/// What a completion says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    pub status: Status,
    pub value: u64,
}

const NO_ANSWER: Answer = Answer { status: Status::SUCCESS, value: 0 };

struct Entry {
    asked: Asked,
    state: State,
    /// Tells tickets of this use of the entry from older ones.
    turn: u32,
    /// Bytes that parts were taken of.
    taken: u64,
    /// Whose turn it is to take it, as long as that path leads there.
    turn_of: Option<u8>,
    /// Who takes its parts, once one is taken.
    carrier: Option<Carrier>,
    /// Parts under way.
    open: u32,
    /// A part came back.
    is_back: bool,
    /// A part was not carried out: another path may do it.
    is_turned_away: bool,
    /// How often that was so.
    turns_away: u8,
    /// While it is held: by whom.
    holder: Association,
    result: Result<(), DriveError>,
    answer: Answer,
    waker: Option<Waker>,
    has_ticket: bool,
}

/// A part of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// The request.
    pub entry: u32,
    /// Where it begins in the request, and how much it is.
    pub from: u64,
    pub bytes: u32,
}

/// A queue that takes parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Carrier {
    number: u64,
    association: Association,
}

/// Whose a ticket is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket {
    entry: u32,
    turn: u32,
}

struct Tables {
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// Requests of which parts are left to be taken, in order of asking.
    waiting: VecDeque<u32>,
    /// Why nobody will carry anything.
    refused: Option<DriveError>,
    /// The last lapse of the subsystem.
    lapse: u64,
    /// The ways to namespaces, in their order; others are carried by any path.
    ways: Vec<(u32, Way)>,
    /// Namespaces, and paths that do not carry out their requests now.
    away: Vec<(u32, u8)>,
    /// Namespaces, and associations that do not carry out changes of them yet.
    unchecked: Vec<(u32, Association)>,
    /// Those that carry out changes of one place only, where that is.
    unnamed: Vec<(u32, Association, u64)>,
    /// Namespaces that are not changed.
    barred: Vec<u32>,
    /// Carriers that there are, by their paths.
    joined: [u16; PATHS as usize],
    /// Paths that have any, a bit for each.
    present: u64,
    /// Whose turn it is next, or of whoever comes behind it.
    next: u8,
    /// How many carriers there ever were.
    carriers: u64,
}

/// All requests of a core to a subsystem; or to a controller, of itself.
#[derive(Default)]
pub struct Requests {
    tables: RefCell<Tables>,
    changed: Event,
    zeros: RefCell<Option<Buf>>,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            refused: None,
            lapse: 0,
            ways: Vec::new(),
            away: Vec::new(),
            unchecked: Vec::new(),
            unnamed: Vec::new(),
            barred: Vec::new(),
            joined: [0; PATHS as usize],
            present: 0,
            next: 0,
            carriers: 0,
        }
    }
}

impl Tables {
    fn get(&mut self, entry: u32) -> &mut Entry {
        &mut self.entries[entry as usize]
    }

    /// Where the first request waits of which this queue may take a part: behind those that another
    /// path's turn it is to take, and seldom far, as what no path leads to is refused before long.
    fn next(&self, carrier: Carrier) -> Option<usize> {
        let may = |at: &u32| {
            let entry = &self.entries[*at as usize];
            let leads = self.paths(&entry.asked);
            let is_its = |path: u8| leads >> path & 1 == 1;
            let path = carrier.association.path;
            entry.carrier.is_none_or(|own| own == carrier)
                && entry.asked.by.is_none_or(|own| own == carrier.association)
                && is_its(path)
                && entry.turn_of.is_none_or(|own| own == path || !is_its(own))
        };
        self.waiting.iter().position(may)
    }

    /// The paths that have a carrier and may carry such a request.
    fn paths(&self, asked: &Asked) -> u64 {
        let namespace = asked.namespace;
        let Way::Paths(all) = self.way(namespace) else { return 0 };
        let away = self.away.iter().filter(|(own, _)| *own == namespace);
        let present = if mutants::is(Mutant::IoBeforeQueues) { u64::MAX } else { self.present };
        let all = away.fold(all & present, |all, (_, path)| all & !(1 << path));
        if !asked.what.is_change() {
            return all;
        }
        let unchecked = self.unchecked.iter().filter(|(own, _)| *own == namespace);
        let all = unchecked.fold(all, |all, (_, by)| all & !(1 << by.path));
        let is_there = |at: u64| asked.offset == at && asked.bytes == GUARD_BYTES as u64;
        let unnamed =
            self.unnamed.iter().filter(|(own, _, at)| *own == namespace && !is_there(*at));
        unnamed.fold(all, |all, (_, by, _)| all & !(1 << by.path))
    }

    /// Whose turn it is to carry such a request.
    fn next_path(&mut self, at: u32) -> Option<u8> {
        let asked = &self.entries[at as usize].asked;
        if let Some(by) = asked.by {
            return Some(by.path);
        }
        let all = self.paths(asked);
        if all == 0 {
            return None;
        }
        let behind = all & u64::MAX << self.next;
        let next = if behind == 0 { all } else { behind };
        let path = next.trailing_zeros() as u8;
        self.next = (path + 1) % PATHS;
        Some(path)
    }

    fn way(&self, namespace: u32) -> Way {
        let found = self.ways.binary_search_by_key(&namespace, |(id, _)| *id);
        found.map_or(Way::Paths(u64::MAX), |at| self.ways[at].1)
    }

    /// Why a request is not carried, if it is not.
    fn refusal(&self, asked: &Asked) -> Option<DriveError> {
        let is_past = asked.lapse != 0 && asked.lapse < self.lapse;
        let lapsed = is_past && !mutants::is(Mutant::CacheForgotten);
        let is_barred = asked.what.is_change() && self.barred.contains(&asked.namespace);
        let is_left = asked.by.is_some_and(|by| !self.unchecked.contains(&(asked.namespace, by)));
        self.refused.or(match self.way(asked.namespace) {
            _ if lapsed || is_barred || is_left => Some(DriveError::Gone),
            Way::Paths(_) => None,
            Way::No(error) => Some(error),
        })
    }

    /// Ends what waits and is not carried any more.
    fn refuse_waiting(&mut self) {
        for at in core::mem::take(&mut self.waiting) {
            match self.refusal(&self.entries[at as usize].asked) {
                Some(error) => {
                    let entry = self.get(at);
                    (entry.state, entry.result) = (State::UnderWay, Err(error));
                    self.settle(at);
                }
                None => self.waiting.push_back(at),
            }
        }
    }

    fn end(&mut self, at: u32, result: Result<(), DriveError>) {
        let entry = self.get(at);
        entry.result = result;
        entry.state = State::Ended;
        entry.asked.data.clear();
        if let Some(waker) = entry.waker.take() {
            waker.wake();
        }
        if !entry.has_ticket {
            self.forget(at);
        }
    }

    fn forget(&mut self, at: u32) {
        let entry = self.get(at);
        entry.state = State::Free;
        entry.turn = entry.turn.wrapping_add(1);
        (entry.asked.into, entry.waker) = (None, None);
        entry.asked.data.clear();
        self.free.push(at);
    }

    /// All parts of a request that were taken are answered, or came back.
    fn settle(&mut self, at: u32) {
        let entry = self.get(at);
        if entry.open > 0 {
            return;
        }
        let is_whole = entry.taken >= entry.asked.bytes || entry.result.is_err();
        let is_turned_away = core::mem::take(&mut entry.is_turned_away);
        if !entry.is_back {
            if is_turned_away && entry.result.is_ok() {
                return self.wait(at);
            }
            if is_whole && entry.state == State::UnderWay {
                let result = entry.result;
                self.end(at, result);
            }
            return;
        }
        entry.is_back = false;
        match entry.asked.what {
            What::Own(_) => self.end(at, Err(DriveError::Gone)),
            ref what if what.is_repeatable() => self.wait(at),
            _ => entry.state = State::Held,
        }
    }

    /// A request waits to be carried from its begin on.
    fn wait(&mut self, at: u32) {
        if let Some(error) = self.refusal(&self.entries[at as usize].asked) {
            return self.end(at, Err(error));
        }
        let turn_of = self.next_path(at);
        let entry = self.get(at);
        entry.turn_of = turn_of;
        (entry.state, entry.taken, entry.result) = (State::Waiting, 0, Ok(()));
        // Nothing of it is under way: anybody may take it.
        entry.carrier = None;
        self.waiting.push_back(at);
    }
}

impl Requests {
    /// Happens when there is something to take, and when a queue says so.
    pub(crate) fn changed(&self) -> &Event {
        &self.changed
    }

    /// Begins a request.
    pub(crate) fn ask(&self, asked: Asked) -> Ticket {
        let tables = &mut *self.tables.borrow_mut();
        let entry = Entry {
            asked,
            state: State::Waiting,
            turn: 0,
            taken: 0,
            turn_of: None,
            carrier: None,
            open: 0,
            is_back: false,
            is_turned_away: false,
            turns_away: 0,
            holder: Association::default(),
            result: Ok(()),
            answer: NO_ANSWER,
            waker: None,
            has_ticket: true,
        };
        let at = match tables.free.pop() {
            Some(at) => {
                let turn = tables.get(at).turn;
                *tables.get(at) = Entry { turn, ..entry };
                at
            }
            None => {
                tables.entries.push(entry);
                tables.entries.len() as u32 - 1
            }
        };
        let ticket = Ticket { entry: at, turn: tables.get(at).turn };
        tables.wait(at);
        self.changed.notify();
        ticket
    }

    /// A queue of an association comes to take parts.
    pub(crate) fn join(&self, association: Association) -> Carrier {
        let tables = &mut *self.tables.borrow_mut();
        tables.carriers += 1;
        tables.joined[usize::from(association.path)] += 1;
        tables.present |= 1 << association.path;
        Carrier { number: tables.carriers, association }
    }

    /// A queue takes nothing any more, and has nothing under way: others may take what it left.
    pub(crate) fn leave(&self, carrier: Carrier) {
        let tables = &mut *self.tables.borrow_mut();
        for entry in &mut tables.entries {
            entry.carrier = entry.carrier.filter(|own| *own != carrier);
        }
        let path = carrier.association.path;
        tables.joined[usize::from(path)] -= 1;
        if tables.joined[usize::from(path)] == 0 {
            tables.present &= !(1 << path);
        }
        let before = tables.unchecked.len();
        tables.unchecked.retain(|(_, by)| *by != carrier.association);
        tables.unnamed.retain(|(_, by, _)| *by != carrier.association);
        if tables.unchecked.len() < before {
            tables.refuse_waiting();
        }
        self.changed.notify();
    }

    /// By this association no changes of these namespaces are carried out, before it is said that
    /// they may. Before its queue joins; when that leaves it is over.
    pub(crate) fn set_unchecked(&self, namespaces: &[u32], by: Association) {
        let all = namespaces.iter().map(|namespace| (*namespace, by));
        self.tables.borrow_mut().unchecked.extend(all);
    }

    /// This association may carry out changes of one place of a namespace, if its queue has not
    /// left: [`GUARD_BYTES`] there.
    pub(crate) fn stands(&self, namespace: u32, by: Association, at: u64) {
        let tables = &mut *self.tables.borrow_mut();
        let before = tables.unchecked.len();
        tables.unchecked.retain(|own| *own != (namespace, by));
        if tables.unchecked.len() < before {
            tables.unnamed.push((namespace, by, at));
            self.changed.notify();
        }
    }

    /// This association may carry out changes of a namespace.
    pub(crate) fn checked(&self, namespace: u32, by: Association) {
        let tables = &mut *self.tables.borrow_mut();
        tables.unchecked.retain(|own| *own != (namespace, by));
        tables.unnamed.retain(|(of, own, _)| (*of, *own) != (namespace, by));
        self.changed.notify();
    }

    /// Only these namespaces are not changed from now on: what is asked of that ends as gone, also
    /// if it waits. What is under way stays so.
    pub(crate) fn set_barred(&self, namespaces: &[u32]) {
        let tables = &mut *self.tables.borrow_mut();
        if *namespaces != tables.barred[..] {
            namespaces.clone_into(&mut tables.barred);
            tables.refuse_waiting();
        }
    }

    /// A namespace may be changed again.
    pub(crate) fn unbar(&self, namespace: u32) {
        self.tables.borrow_mut().barred.retain(|own| *own != namespace);
    }

    /// Whether there is a part for this queue to take.
    pub(crate) fn has_parts(&self, carrier: Carrier) -> bool {
        self.tables.borrow().next(carrier).is_some()
    }

    /// Takes a part of the request that waits longest, where commands move at most `data_most`
    /// bytes.
    pub(crate) fn take(&self, carrier: Carrier, data_most: u32) -> Option<Part> {
        let tables = &mut *self.tables.borrow_mut();
        let place = tables.next(carrier)?;
        let at = tables.waiting[place];
        let entry = tables.get(at);
        entry.carrier = Some(carrier);
        let left = entry.asked.bytes - entry.taken;
        let bytes = left.min(entry.asked.what.part_most(data_most, entry.asked.shift));
        let part = Part { entry: at, from: entry.taken, bytes: bytes as u32 };
        entry.taken += bytes;
        entry.open += 1;
        if entry.taken == entry.asked.bytes {
            entry.state = State::UnderWay;
            tables.waiting.remove(place);
        }
        Some(part)
    }

    /// What a part is of.
    pub(crate) fn with<T>(&self, part: &Part, look: impl FnOnce(&Asked) -> T) -> T {
        look(&self.tables.borrow_mut().get(part.entry).asked)
    }

    /// What is written by `bytes` bytes of a part, from `from` on.
    pub(crate) fn data(&self, part: &Part, from: u32, bytes: u32) -> Gather {
        let tables = &mut *self.tables.borrow_mut();
        let asked = &tables.get(part.entry).asked;
        if asked.what == What::Zeros {
            let mut zeros = self.zeros.borrow_mut();
            let zeros = zeros.get_or_insert_with(|| Pool::single(ZEROS).freeze());
            return core::iter::once(zeros.slice(..bytes as usize)).collect();
        }
        let (mut skip, mut left) = (part.from as usize + from as usize, bytes as usize);
        let mut pieces = Gather::new();
        for piece in &asked.data {
            if left == 0 {
                break;
            }
            let begin = skip.min(piece.len());
            let end = (begin + left).min(piece.len());
            if begin < end {
                pieces.push(piece.slice(begin..end));
            }
            (skip, left) = (skip - begin, left - (end - begin));
        }
        pieces
    }

    /// Takes the buffer of a read, to fill it; it is given back by [`Requests::put_buffer`].
    pub(crate) fn take_buffer(&self, part: &Part) -> Option<BufMut> {
        self.tables.borrow_mut().get(part.entry).asked.into.take()
    }

    /// Gives the buffer of a read back.
    pub(crate) fn put_buffer(&self, part: &Part, buffer: BufMut) {
        self.tables.borrow_mut().get(part.entry).asked.into = Some(buffer);
    }

    /// A part was answered. After an error no more parts of its request are taken.
    pub(crate) fn answered(&self, part: &Part, result: Result<(), DriveError>, answer: Answer) {
        let tables = &mut *self.tables.borrow_mut();
        let entry = tables.get(part.entry);
        entry.open -= 1;
        entry.answer = answer;
        entry.result = entry.result.and(result);
        if result.is_err() && entry.state == State::Waiting {
            entry.state = State::UnderWay;
            tables.waiting.retain(|at| *at != part.entry);
        }
        tables.settle(part.entry);
    }

    /// A part was refused where it was sent, and not carried out: another path may do that, or this
    /// one later. False if that was so too often: then it is answered.
    pub(crate) fn turn_away(&self, part: &Part) -> bool {
        let tables = &mut *self.tables.borrow_mut();
        let entry = tables.get(part.entry);
        if entry.turns_away >= TURNS_AWAY {
            return false;
        }
        entry.turns_away += 1;
        entry.open -= 1;
        entry.is_turned_away = true;
        let away = entry.carrier.map(|own| (entry.asked.namespace, own.association.path));
        if entry.state == State::Waiting {
            entry.state = State::UnderWay;
            tables.waiting.retain(|at| *at != part.entry);
        }
        let is_new = away.filter(|own| !tables.away.contains(own));
        tables.away.extend(is_new);
        tables.settle(part.entry);
        self.changed.notify();
        true
    }

    /// Waits until a path did not carry out what it was sent; all such paths.
    pub(crate) async fn turned_away(&self) -> Vec<u8> {
        let away = || {
            let tables = self.tables.borrow();
            let paths = tables.away.iter().map(|(_, path)| *path).collect::<Vec<_>>();
            (!paths.is_empty()).then_some(paths)
        };
        self.changed.wait_until(away).await
    }

    /// Every path may be asked again for everything that its ways are to.
    pub(crate) fn try_again(&self) {
        self.tables.borrow_mut().away.clear();
        self.changed.notify();
    }

    /// A part comes back without an answer: its connection is over.
    pub(crate) fn give_back(&self, part: &Part) {
        let tables = &mut *self.tables.borrow_mut();
        let entry = tables.get(part.entry);
        entry.open -= 1;
        entry.is_back = true;
        entry.holder = entry.carrier.map(|own| own.association).unwrap_or_default();
        if entry.state == State::Waiting {
            entry.state = State::UnderWay;
            tables.waiting.retain(|at| *at != part.entry);
        }
        tables.settle(part.entry);
        self.changed.notify();
    }

    /// How many requests are held.
    pub fn held(&self) -> usize {
        let tables = self.tables.borrow();
        tables.entries.iter().filter(|entry| entry.state == State::Held).count()
    }

    /// This association, and those of its path before it, can't carry out any more what they had:
    /// what is held for that waits again.
    pub fn release(&self, over: Association) {
        let tables = &mut *self.tables.borrow_mut();
        for at in 0..tables.entries.len() as u32 {
            let entry = tables.get(at);
            let is_its = entry.holder.path == over.path && entry.holder.turn <= over.turn;
            if entry.state == State::Held && is_its {
                tables.wait(at);
            }
        }
        self.changed.notify();
    }

    /// From now on requests end so, also those that wait. What is under way or held stays so until
    /// it is answered, or comes back, or is released.
    pub fn refuse(&self, error: DriveError) {
        let tables = &mut *self.tables.borrow_mut();
        tables.refused = Some(error);
        tables.refuse_waiting();
    }

    /// The subsystem has had so many lapses: drives with a cache that were opened before the last
    /// one are gone. Before a queue is joined behind it.
    pub(crate) fn set_lapse(&self, lapse: u64) {
        let tables = &mut *self.tables.borrow_mut();
        if lapse > tables.lapse {
            tables.lapse = lapse;
            tables.refuse_waiting();
        }
    }

    /// The ways to namespaces from now on, in ascending order. What is under way stays so.
    pub fn set_ways(&self, ways: &[(u32, Way)]) {
        debug_assert!(ways.is_sorted_by(|one, next| one.0 < next.0));
        let tables = &mut *self.tables.borrow_mut();
        if *ways != tables.ways[..] {
            tables.away.clear();
        }
        ways.clone_into(&mut tables.ways);
        tables.refuse_waiting();
        self.changed.notify();
    }

    /// Looks for the outcome of a ticket's request, which it has then taken.
    pub(crate) fn poll(&self, ticket: Ticket, cx: &mut Context<'_>) -> Poll<Outcome> {
        let tables = &mut *self.tables.borrow_mut();
        let entry = tables.get(ticket.entry);
        assert_eq!(entry.turn, ticket.turn, "ticket polled after its end");
        if entry.state != State::Ended {
            match &mut entry.waker {
                Some(waker) => waker.clone_from(cx.waker()),
                None => entry.waker = Some(cx.waker().clone()),
            }
            return Poll::Pending;
        }
        let (result, answer) = (entry.result, entry.answer);
        let outcome = Outcome { result, into: entry.asked.into.take(), answer };
        tables.forget(ticket.entry);
        Poll::Ready(outcome)
    }

    /// Nobody waits for a ticket any more; its request goes on. Nothing if its outcome was taken.
    pub(crate) fn drop_ticket(&self, ticket: Ticket) {
        let tables = &mut *self.tables.borrow_mut();
        let entry = tables.get(ticket.entry);
        if entry.turn != ticket.turn {
            return;
        }
        entry.has_ticket = false;
        if entry.state == State::Ended {
            tables.forget(ticket.entry);
        }
    }

    /// Whether nothing is asked, held, or waits for its ticket.
    pub fn is_idle(&self) -> bool {
        let tables = self.tables.borrow();
        tables.free.len() == tables.entries.len()
    }
}

#[cfg(test)]
#[path = "requests_tests.rs"]
mod tests;
