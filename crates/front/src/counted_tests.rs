//! A volume whose requests are counted, against a plain list of them.

use super::*;
use crate::counters::{Counts, counters};
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use io::Pool;
use io::histogram::BUCKETS;
use std::collections::BTreeMap;

/// A clock that a test sets.
#[derive(Clone, Default)]
struct Set(Rc<Cell<u64>>);

impl Clock for Set {
    fn now(&self) -> Nanos {
        Nanos(self.0.get())
    }
}

/// What a request is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    Done,
    /// Another block was found than the one compared with.
    Other,
    Failed(BlockError),
}

/// A volume that answers a request when a test says so.
#[derive(Clone, Default)]
struct Slow {
    asked: Rc<Cell<u64>>,
    answers: Rc<RefCell<BTreeMap<u64, Answer>>>,
}

impl Slow {
    /// The answer to the next request, which has the next number.
    fn ask(&self) -> impl Future<Output = Result<bool, BlockError>> + '_ {
        let number = self.asked.get();
        self.asked.set(number + 1);
        poll_fn(move |_| match self.answers.borrow().get(&number) {
            None => Poll::Pending,
            Some(Answer::Done) => Poll::Ready(Ok(true)),
            Some(Answer::Other) => Poll::Ready(Ok(false)),
            Some(Answer::Failed(error)) => Poll::Ready(Err(*error)),
        })
    }
}

impl Blocks for Slow {
    fn bytes(&self) -> u64 {
        1 << 30
    }
    fn block_bytes(&self) -> u32 {
        512
    }
    fn strip_bytes(&self) -> u32 {
        4096
    }
    fn stripe_bytes(&self) -> u32 {
        8192
    }
    fn volatile_cache(&self) -> bool {
        true
    }
    async fn read(&self, _: u64, into: BufMut) -> (Result<(), BlockError>, BufMut) {
        (self.ask().await.map(drop), into)
    }
    async fn write(&self, _: u64, _: Buf, _: bool) -> Result<(), BlockError> {
        self.ask().await.map(drop)
    }
    async fn compare_and_write(&self, _: u64, _: (Buf, Buf), _: bool) -> Result<bool, BlockError> {
        self.ask().await
    }
    async fn write_zeroes(&self, _: u64, _: u64, _: bool) -> Result<(), BlockError> {
        self.ask().await.map(drop)
    }
    async fn discard(&self, _: u64, _: u64) -> Result<(), BlockError> {
        self.ask().await.map(drop)
    }
    async fn flush(&self) -> Result<(), BlockError> {
        self.ask().await.map(drop)
    }
}

type Volume = Counted<Slow, Set>;
type Going = Pin<Box<dyn Future<Output = ()>>>;

/// What can be asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Call {
    Read,
    Write,
    CompareAndWrite,
    WriteZeroes,
    Discard,
    Flush,
}

const CALLS: [Call; 6] =
    [Call::Read, Call::Write, Call::CompareAndWrite, Call::WriteZeroes, Call::Discard, Call::Flush];

/// Asks for so many blocks; what is given through is looked at.
fn call(volume: &Volume, call: Call, blocks: usize, answer: Rc<Cell<Option<Answer>>>) -> Going {
    let (volume, bytes) = (volume.clone(), blocks * 512);
    Box::pin(async move {
        let data = || Pool::single(bytes).freeze();
        let told = match call {
            Call::Read => {
                let (outcome, back) = volume.read(0, Pool::single(bytes)).await;
                assert_eq!(back.len(), bytes, "the buffer comes back");
                outcome.map(|()| true)
            }
            Call::Write => volume.write(0, data(), false).await.map(|()| true),
            Call::CompareAndWrite => volume.compare_and_write(0, (data(), data()), true).await,
            Call::WriteZeroes => volume.write_zeroes(0, bytes as u64, false).await.map(|()| true),
            Call::Discard => volume.discard(0, bytes as u64).await.map(|()| true),
            Call::Flush => volume.flush().await.map(|()| true),
        };
        answer.set(Some(match told {
            Ok(true) => Answer::Done,
            Ok(false) => Answer::Other,
            Err(error) => Answer::Failed(error),
        }));
    })
}

/// A request as the oracle remembers it.
struct Known {
    number: u64,
    call: Call,
    bytes: u64,
    began: u64,
    future: Going,
    answer: Rc<Cell<Option<Answer>>>,
}

/// What is over, in the plainest way: one line a request.
struct Line {
    kind: Kind,
    time: u64,
    bytes: u64,
    /// `None`: it was dropped.
    answer: Option<Answer>,
}

const fn kind(call: Call) -> Kind {
    match call {
        Call::Read => Kind::Read,
        Call::Write | Call::CompareAndWrite => Kind::Write,
        Call::WriteZeroes | Call::Discard => Kind::Discard,
        Call::Flush => Kind::Flush,
    }
}

/// The interval of a time, by walking through all.
fn interval(time: u64) -> usize {
    let mut most = 1000;
    for n in 0..BUCKETS {
        if time <= most || n == BUCKETS - 1 {
            return n;
        }
        most *= 2;
    }
    unreachable!("the last interval has no end")
}

fn expected(lines: &[Line], kind: Kind) -> Counts {
    let mut counts = Counts::default();
    for line in lines.iter().filter(|line| line.kind == kind) {
        match line.answer {
            None => counts.abandoned += 1,
            Some(Answer::Failed(BlockError::Bounds)) => counts.failed[0] += 1,
            Some(Answer::Failed(BlockError::Unavailable)) => counts.failed[1] += 1,
            Some(Answer::Failed(BlockError::Stopped)) => counts.failed[2] += 1,
            Some(answer) => {
                counts.times.buckets[interval(line.time)] += 1;
                counts.times.nanos += line.time;
                counts.bytes += if answer == Answer::Done { line.bytes } else { 0 };
            }
        }
    }
    counts
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

fn poll(future: &mut Going) -> bool {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

/// A history of requests that begin, are answered in any order, fail, and are dropped; the counts
/// are right after each step.
fn history(seed: u64) {
    let mut random = Random(seed * 0x9e37_79b9 + 1);
    let (writer, reader) = counters();
    let (clock, slow) = (Set::default(), Slow::default());
    let volume = Counted::new(slow.clone(), &clock, Some(Rc::new(writer)));
    let (mut open, mut lines): (Vec<Known>, Vec<Line>) = Default::default();
    for _ in 0..200 {
        let most = 1 << (1 + random.below(36));
        clock.0.set(clock.0.get() + random.below(most));
        match random.below(5) {
            0 | 1 => {
                let asked = CALLS[random.below(6) as usize];
                let blocks = 1 + random.below(8);
                let bytes = if asked == Call::Flush { 0 } else { blocks * 512 };
                let answer = Rc::new(Cell::new(None));
                let mut future = call(&volume, asked, blocks as usize, answer.clone());
                let (number, began) = (slow.asked.get(), clock.0.get());
                if random.below(8) == 0 {
                    // Never polled: it was never begun.
                    drop(future);
                } else {
                    assert!(!poll(&mut future));
                    open.push(Known { number, call: asked, bytes, began, future, answer });
                }
            }
            step if !open.is_empty() => {
                let at = random.below(open.len() as u64) as usize;
                let Known { number, call, bytes, began, mut future, answer } = open.swap_remove(at);
                let told = match random.below(6) {
                    0 => Answer::Failed(BlockError::Bounds),
                    1 => Answer::Failed(BlockError::Unavailable),
                    2 => Answer::Failed(BlockError::Stopped),
                    3 if call == Call::CompareAndWrite => Answer::Other,
                    _ => Answer::Done,
                };
                if step < 4 {
                    slow.answers.borrow_mut().insert(number, told);
                    assert!(poll(&mut future));
                    assert_eq!(answer.get(), Some(told), "the answer is the volume's");
                }
                drop(future);
                let time = clock.0.get() - began;
                let answer = (step < 4).then_some(told);
                lines.push(Line { kind: kind(call), time, bytes, answer });
            }
            _ => {}
        }
        for kind_ in Kind::ALL {
            assert_eq!(reader.counts(kind_), expected(&lines, kind_), "seed {seed}, {kind_:?}");
            let under_way = open.iter().filter(|known| kind(known.call) == kind_).count();
            assert_eq!(reader.mark().under_way(kind_), under_way as u64, "seed {seed}");
        }
        assert_eq!(reader.mark().begun(), (lines.len() + open.len()) as u64);
    }
}

#[test]
fn counts_are_those_of_a_plain_list_of_requests() {
    (1..200).for_each(history);
}

#[test]
fn nothing_is_counted_without_a_writer_and_nothing_else_differs() {
    let (clock, slow) = (Set::default(), Slow::default());
    slow.answers.borrow_mut().insert(0, Answer::Done);
    let volume: Volume = Counted::new(slow.clone(), &clock, None);
    let answer = Rc::new(Cell::new(None));
    assert!(poll(&mut call(&volume, Call::Write, 1, answer.clone())));
    assert_eq!(answer.get(), Some(Answer::Done));
    let sizes = [volume.block_bytes(), volume.strip_bytes(), volume.stripe_bytes()];
    assert_eq!((volume.bytes(), sizes), (1 << 30, [512, 4096, 8192]));
    assert!(volume.volatile_cache());
}
