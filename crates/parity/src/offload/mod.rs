//! Jobs that somebody else may do: a GPU, or whoever else offers it.
//!
//! Purpose: the one interface between who has parity to compute and what computes it elsewhere.
//! A caller that has a helper asks it for each job: [`Offload::wants`] it, or is it done here at
//! once? What was submitted is answered through a [`Ticket`], which any task can wait for.
//!
//! Invariants: a ticket is answered exactly once. Buffers of a job that was not done may still be
//! written by whoever took it: they never come back to the caller, who computes again into others
//! (a job's inputs are shared, so that the caller has them still).

mod operation;

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use operation::{Answer, Operation, What};

/// An operation, once, on these strips; it owns its buffers.
#[derive(Clone, Debug)]
pub struct Job<I, O> {
    /// What to do.
    pub operation: Arc<Operation>,
    /// What is read; see [`Operation::reads`].
    pub inputs: Vec<I>,
    /// What is written, or added to; see [`Operation::writes`].
    pub outputs: Vec<O>,
}

impl<I: AsRef<[u8]>, O: AsRef<[u8]> + AsMut<[u8]>> Job<I, O> {
    /// Bytes of its strips.
    pub fn strip_len(&self) -> usize {
        self.inputs.first().map_or(0, |input| input.as_ref().len())
    }

    /// Whether its buffers are as many as the operation's and of one length.
    pub fn is_whole(&self) -> bool {
        let len = self.strip_len();
        self.inputs.len() == self.operation.reads().len()
            && self.outputs.len() == self.operation.writes().len()
            && self.inputs.iter().all(|input| input.as_ref().len() == len)
            && self.outputs.iter().all(|output| output.as_ref().len() == len)
    }

    /// Does it here.
    ///
    /// # Panics
    ///
    /// If counts or lengths of buffers are not the operation's.
    pub fn compute(&mut self) -> Answer {
        self.operation.compute_in(&self.inputs, &mut self.outputs)
    }
}

/// What a job came to: its outputs and what was found out, or that it was not done.
pub type Done<O> = Result<(Answer, Vec<O>), Undone>;

/// A job was given up; do it here, into other buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Undone;

/// Who does jobs for one core.
pub trait Offload<I, O> {
    /// Whether a job of this operation on strips of `bytes` shall be submitted. If not, the caller
    /// does it at once, within [`Offload::here`]. `lone`: nothing else of the caller's is under
    /// way, so that somebody waits for just this job.
    fn wants(&self, operation: &Operation, bytes: usize, lone: bool) -> bool;

    /// Runs `work`, such a job, and may take its time.
    fn here(&self, operation: &Operation, bytes: usize, work: &mut dyn FnMut()) {
        let _ = (operation, bytes);
        work();
    }

    /// Takes a job.
    ///
    /// # Panics
    ///
    /// If its buffers are not those of the operation.
    fn submit(&self, job: Job<I, O>) -> Ticket<O>;
}

/// Waits for a job.
#[derive(Debug)]
pub struct Ticket<O> {
    slot: Arc<Mutex<Slot<O>>>,
}

/// Answers a ticket, from any thread. Dropped unanswered it says [`Undone`].
#[derive(Debug)]
pub struct Answerer<O> {
    slot: Arc<Mutex<Slot<O>>>,
}

#[derive(Debug)]
struct Slot<O> {
    done: Option<Done<O>>,
    answered: bool,
    waker: Option<Waker>,
}

/// A ticket, and what answers it.
pub fn ticket<O>() -> (Answerer<O>, Ticket<O>) {
    let slot = Arc::new(Mutex::new(Slot { done: None, answered: false, waker: None }));
    (Answerer { slot: slot.clone() }, Ticket { slot })
}

fn lock<O>(slot: &Mutex<Slot<O>>) -> MutexGuard<'_, Slot<O>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<O> Answerer<O> {
    /// Answers. What was answered before stays.
    pub fn answer(self, done: Done<O>) {
        self.put(done);
    }

    fn put(&self, done: Done<O>) {
        let mut slot = lock(&self.slot);
        if slot.answered {
            return;
        }
        slot.answered = true;
        slot.done = Some(done);
        let waker = slot.waker.take();
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<O> Drop for Answerer<O> {
    fn drop(&mut self) {
        self.put(Err(Undone));
    }
}

impl<O> Future for Ticket<O> {
    type Output = Done<O>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Done<O>> {
        let mut slot = lock(&self.slot);
        match slot.done.take() {
            Some(done) => Poll::Ready(done),
            None => {
                slot.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Code;

    #[test]
    fn a_ticket_is_answered_once_and_also_by_who_forgets_it() {
        let context = &mut Context::from_waker(Waker::noop());
        let (answerer, mut waits) = ticket::<Vec<u8>>();
        assert!(Pin::new(&mut waits).poll(context).is_pending());
        let told = std::thread::spawn(|| answerer.answer(Ok((Answer::Written, vec![vec![7]]))));
        told.join().expect("it answers");
        let Poll::Ready(Ok((Answer::Written, outputs))) = Pin::new(&mut waits).poll(context) else {
            panic!("it was answered");
        };
        assert_eq!(outputs, [[7]]);
        let (forgotten, mut waits) = ticket::<Vec<u8>>();
        drop(forgotten);
        assert_eq!(Pin::new(&mut waits).poll(context), Poll::Ready(Err(Undone)));
    }

    /// Every operation does what the code does, on the strips that it names.
    #[test]
    fn operations_are_the_codes() {
        let code = Code::new(4, 2).unwrap();
        let data: Vec<Vec<u8>> = (0..4u8).map(|i| vec![i.wrapping_mul(57) ^ 0x3c; 64]).collect();
        let mut job = Job {
            operation: Operation::generate(code),
            inputs: data.clone(),
            outputs: vec![vec![0; 64]; 2],
        };
        assert!(job.is_whole());
        assert_eq!(job.compute(), Answer::Written);
        let mut strips = [data, job.outputs].concat();
        let verify = Operation::verify(code);
        let whole =
            Job { operation: verify, inputs: strips.clone(), outputs: Vec::<Vec<u8>>::new() };
        assert_eq!(whole.clone().compute(), Answer::Differs(None));
        let present = [true, false, true, true, false, true];
        let recover = Operation::recover(code, &present, &[1, 4]).unwrap();
        assert_eq!((recover.reads(), recover.writes()), (&[0, 5, 2, 3][..], &[1, 4][..]));
        let inputs = recover.reads().iter().map(|&strip| strips[strip].clone()).collect();
        let mut lost = Job { operation: recover, inputs, outputs: vec![vec![0; 64]; 2] };
        lost.compute();
        assert_eq!(lost.outputs, [strips[1].clone(), strips[4].clone()]);
        let new = vec![0xa5; 64];
        let mut update = Job {
            operation: Operation::update(code, &[2], &[4, 5]),
            inputs: vec![strips[2].clone(), new.clone()],
            outputs: strips[4..].to_vec(),
        };
        update.compute();
        strips[2] = new;
        strips.truncate(4);
        strips.extend(update.outputs);
        assert_eq!(
            Job { inputs: strips.clone(), ..whole.clone() }.compute(),
            Answer::Differs(None)
        );
        strips[0][9] ^= 1;
        assert_eq!(Job { inputs: strips, ..whole }.compute(), Answer::Differs(Some(9)));
    }
}
