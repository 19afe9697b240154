//! Simulated connections: bytes both ways, split, merged and late, and the ways they end.
//!
//! What is written arrives in order, in pieces whose borders and times are drawn from the world's
//! seed. A [`Weather`] says how bad it gets: a connection may be cut after any byte (the other end
//! learns of it at once, or never), and bits may flip on the way.
//!
//! States of a connection: *open* ⇄ *held* (what is on its way, and what is sent, arrives once it
//! is let go: a network that stands still) → *silent* (nothing arrives any more, in either
//! direction, and no end hears of the other's) or *closed* by an end: that one reads and writes no
//! more, the other reads what had been sent, then learns of it. But if the end that closes had not
//! read all, the connection is *reset*, as TCP does it: what the other has not read yet is lost,
//! unless it is held: then it arrives before that is heard.
//!
//! Invariant: bytes are neither reordered nor doubled; only those behind a cut, and those that a
//! reset leaves, are lost.

use crate::env::SimEnv;
use crate::rng::Rng;
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Poll, Waker};
use io::{Closed, Env, Transport};
use std::collections::VecDeque;
use std::io::{IoSlice, Read};
use std::rc::Rc;
use units::Nanos;

/// Bytes that are on their way or wait to be read before a writer has to wait.
const WINDOW: usize = 256 << 10;

/// How a connection ends by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// Both ends learn of it.
    Reset,
    /// Nobody does: bytes vanish.
    Silence,
}

/// How a connection behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Weather {
    /// The longest time that a piece takes.
    pub delay_most: Nanos,
    /// Most bytes of a piece; 0: as they were written.
    pub piece_most: usize,
    /// The end, after so many bytes of both directions together.
    pub cut: Option<(u64, Cut)>,
    /// The byte, counted over both directions, of which a bit flips.
    pub flip: Option<u64>,
}

#[derive(Default)]
struct Way {
    /// When bytes arrive, and how many of these have not been read.
    pieces: VecDeque<(Nanos, usize)>,
    /// Their bytes. One store for all: where pieces are single bytes, an allocation for each would
    /// be most of what a simulation costs.
    bytes: VecDeque<u8>,
    latest: Nanos,
    closed: bool,
    wakers: Vec<Waker>,
}

impl Way {
    fn wake(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }
}

struct Line {
    ways: [RefCell<Way>; 2],
    weather: Cell<Weather>,
    sent: Cell<u64>,
    silent: Cell<bool>,
    held: Cell<bool>,
    /// Which ends have closed it.
    gone: [Cell<bool>; 2],
}

/// One end of a connection. Clones are the same end.
pub struct End<M: Send + 'static> {
    line: Rc<Line>,
    side: usize,
    env: SimEnv<M>,
}

impl<M: Send + 'static> Clone for End<M> {
    fn clone(&self) -> Self {
        Self { line: self.line.clone(), side: self.side, env: self.env.clone() }
    }
}

/// A connection between two cores, which may be the same.
pub fn connect<M: Send + 'static>(
    one: &SimEnv<M>,
    other: &SimEnv<M>,
    weather: Weather,
) -> (End<M>, End<M>) {
    let line = Rc::new(Line {
        ways: Default::default(),
        weather: Cell::new(weather),
        sent: Cell::new(0),
        silent: Cell::new(false),
        held: Cell::new(false),
        gone: Default::default(),
    });
    let end = |side, env: &SimEnv<M>| End { line: line.clone(), side, env: env.clone() };
    (end(0, one), end(1, other))
}

impl<M: Send + 'static> End<M> {
    /// Another weather from now on; bytes go on being counted.
    pub fn set_weather(&self, weather: Weather) {
        self.line.weather.set(weather);
    }

    /// How it behaves now.
    pub fn weather(&self) -> Weather {
        self.line.weather.get()
    }

    /// Bytes that both ends have sent.
    pub fn sent(&self) -> u64 {
        self.line.sent.get()
    }

    /// Nothing more is sent by this end; it still reads.
    pub fn hang_up(&self) {
        let mut way = self.line.ways[self.side].borrow_mut();
        way.closed = true;
        way.wake();
    }

    /// Whether this end has closed the connection.
    pub fn is_over(&self) -> bool {
        self.line.gone[self.side].get()
    }

    /// From now on nothing arrives, and nothing is lost, before [`End::let_go`].
    pub fn hold(&self) {
        self.line.held.set(true);
    }

    /// What was held arrives.
    pub fn let_go(&self) {
        self.line.held.set(false);
        self.line.ways.iter().for_each(|way| way.borrow_mut().wake());
    }

    /// Bytes that this end has not read yet.
    pub fn unread(&self) -> usize {
        self.line.ways[1 - self.side].borrow().bytes.len()
    }

    /// The other end has closed the connection, and this one hears of it.
    fn other_is_gone(&self) -> bool {
        self.line.gone[1 - self.side].get() && !self.line.silent.get() && !self.line.held.get()
    }

    /// Puts bytes on their way.
    fn send(&self, bytes: &[u8]) -> Result<(), Closed> {
        let mut bytes = bytes.to_vec();
        let weather = self.line.weather.get();
        let from = self.line.sent.get();
        self.line.sent.set(from + bytes.len() as u64);
        if let Some(at) = weather.flip.and_then(|at| at.checked_sub(from))
            && let Some(byte) = bytes.get_mut(at as usize)
        {
            *byte ^= 1 << (self.env.random() % 8);
        }
        let end = weather.cut.filter(|(after, _)| from + bytes.len() as u64 > *after);
        if let Some((after, _)) = end {
            bytes.truncate(after.saturating_sub(from) as usize);
        }
        if !self.line.silent.get() {
            self.deliver(&bytes, weather);
        }
        match end {
            Some((_, Cut::Reset)) => {
                self.close();
                Err(Closed)
            }
            Some((_, Cut::Silence)) => {
                self.line.silent.set(true);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn deliver(&self, bytes: &[u8], weather: Weather) {
        let mut rng = Rng::new(self.env.random());
        let mut way = self.line.ways[self.side].borrow_mut();
        way.bytes.extend(bytes);
        let mut rest = bytes.len();
        while rest > 0 {
            // Pieces that arrive at once are not to be told from one.
            let is_whole = weather.piece_most == 0 || weather.delay_most.0 == 0;
            let most = if is_whole { rest } else { weather.piece_most };
            let count = rng.between(1, most.min(rest) as u64) as usize;
            let count = if is_whole { rest } else { count };
            let delay = Nanos(rng.between(0, weather.delay_most.0));
            way.latest = way.latest.max(self.env.now().after(delay));
            let due = way.latest;
            match way.pieces.back_mut() {
                Some((last, bytes)) if *last == due => *bytes += count,
                _ => way.pieces.push_back((due, count)),
            }
            rest -= count;
        }
        way.wake();
    }

    /// Takes what has arrived; says when to look again if that is not enough.
    fn take(&self, into: &mut [u8], filled: &mut usize) -> Result<Option<Nanos>, Closed> {
        if self.line.gone[self.side].get() {
            return Err(Closed);
        }
        let mut way = self.line.ways[1 - self.side].borrow_mut();
        while *filled < into.len() {
            if self.line.held.get() {
                return Ok(None);
            }
            let Some((due, left)) = way.pieces.front_mut() else {
                return if way.closed || self.other_is_gone() { Err(Closed) } else { Ok(None) };
            };
            if *due > self.env.now() {
                return Ok(Some(*due));
            }
            let count = (*left).min(into.len() - *filled);
            *left -= count;
            if *left == 0 {
                way.pieces.pop_front();
            }
            way.bytes.read_exact(&mut into[*filled..*filled + count]).expect("a piece is there");
            *filled += count;
            way.wake();
        }
        Ok(None)
    }
}

impl<M: Send + 'static> Transport for End<M> {
    fn read_exact(&self, into: &mut [u8]) -> impl Future<Output = Result<(), Closed>> {
        let mut filled = 0;
        let mut alarm = None;
        poll_fn(move |cx| {
            loop {
                let due = match self.take(into, &mut filled) {
                    Err(closed) => return Poll::Ready(Err(closed)),
                    Ok(_) if filled == into.len() => return Poll::Ready(Ok(())),
                    Ok(due) => due,
                };
                let Some(due) = due else {
                    let mut way = self.line.ways[1 - self.side].borrow_mut();
                    way.wakers.push(cx.waker().clone());
                    return Poll::Pending;
                };
                // Closing wakes too.
                self.line.ways[1 - self.side].borrow_mut().wakers.push(cx.waker().clone());
                let timer = alarm.insert(self.env.sleep(due.since(self.env.now())));
                if Pin::new(timer).poll(cx).is_pending() {
                    return Poll::Pending;
                }
            }
        })
    }

    fn write_all(&self, parts: &mut [IoSlice<'_>]) -> impl Future<Output = Result<(), Closed>> {
        let bytes = parts.iter().map(|part| &**part).collect::<Vec<_>>().concat();
        let mut sent = 0;
        poll_fn(move |cx| {
            loop {
                let mut way = self.line.ways[self.side].borrow_mut();
                if way.closed || self.line.gone[self.side].get() || self.other_is_gone() {
                    return Poll::Ready(Err(Closed));
                }
                let room = WINDOW.saturating_sub(way.bytes.len());
                if sent < bytes.len() && room == 0 {
                    way.wakers.push(cx.waker().clone());
                    return Poll::Pending;
                }
                drop(way);
                let count = room.min(bytes.len() - sent);
                if let Err(closed) = self.send(&bytes[sent..sent + count]) {
                    return Poll::Ready(Err(closed));
                }
                sent += count;
                if sent == bytes.len() {
                    return Poll::Ready(Ok(()));
                }
            }
        })
    }

    fn finish(&self) {
        self.hang_up();
    }

    fn close(&self) {
        let is_first = !self.line.gone[self.side].get();
        if is_first && self.unread() > 0 && !self.line.silent.get() && !self.line.held.get() {
            let mut way = self.line.ways[self.side].borrow_mut();
            (way.pieces, way.bytes) = Default::default();
        }
        self.line.gone[self.side].set(true);
        self.line.ways.iter().for_each(|way| way.borrow_mut().wake());
    }
}
