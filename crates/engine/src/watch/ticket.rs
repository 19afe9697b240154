//! Tickets of watched requests; see the module above for their states.

use super::flush::Flush;
use super::{NONE, Opening};
use crate::mutants::{self, Mutant};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use io::{BufMut, Drive, DriveError, Env, Pool, Priority};
use std::rc::Rc;

/// A request on its way through an opening. Dropped before its end, it is left behind.
pub(super) struct Pass<E: Env, T: Future + Unpin + 'static> {
    opening: Rc<Opening<E>>,
    ticket: Option<T>,
    entry: u32,
    since: u32,
}

impl<E: Env, T: Future + Unpin + 'static> Pass<E, T> {
    #[inline]
    pub fn new(opening: Rc<Opening<E>>, ticket: T) -> Self {
        let since = opening.watch.inner.tick.get();
        opening.under_way.set(opening.under_way.get() + 1);
        Self { opening, ticket: Some(ticket), entry: NONE, since }
    }

    /// `Err` once the request is given up.
    #[inline]
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<T::Output, DriveError>> {
        let ticket = self.ticket.as_mut().expect("a ticket is not polled after its end");
        match Pin::new(ticket).poll(cx) {
            Poll::Ready(output) => {
                self.ticket = None;
                self.ended();
                self.opening.watch.leave(&mut self.entry);
                Poll::Ready(Ok(output))
            }
            Poll::Pending => self.pending(cx),
        }
    }

    fn pending(&mut self, cx: &mut Context<'_>) -> Poll<Result<T::Output, DriveError>> {
        let opening = &*self.opening;
        if mutants::is(Mutant::TimeoutIsDone) && opening.watch.is_old(self.since) {
            self.leave_behind();
            return Poll::Ready(Err(DriveError::Timeout));
        }
        if !opening.is_out() && opening.watch.is_old(self.since) {
            opening.give_up(DriveError::Timeout);
        }
        if opening.is_out() {
            let why = opening.why();
            let given_up = &opening.watch.inner.given_up;
            given_up.set(given_up.get() + 1);
            self.leave_behind();
            return Poll::Ready(Err(why));
        }
        opening.watch.wait(&mut self.entry, opening.number, self.since, cx.waker());
        Poll::Pending
    }

    /// Lets the request go on to its end with nobody waiting for its outcome.
    fn leave_behind(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        self.ended();
        self.opening.watch.leave(&mut self.entry);
        let opening = self.opening.clone();
        let env = opening.watch.inner.env.clone();
        env.spawn(Priority::Last, async move {
            drop(ticket.await);
            drop(opening);
        });
    }

    #[inline]
    fn ended(&self) {
        let under_way = &self.opening.under_way;
        under_way.set(under_way.get() - 1);
    }

    fn note(&self, error: DriveError) {
        self.opening.note(error);
    }
}

impl<E: Env, T: Future + Unpin + 'static> Drop for Pass<E, T> {
    #[inline]
    fn drop(&mut self) {
        if self.ticket.is_some() {
            self.leave_behind();
        }
    }
}

/// Ticket of a read: gives a buffer of the same length back with the outcome. After `Ok` it is
/// the one that was given.
pub struct Reading<E: Env>(ReadingState<E>);

enum ReadingState<E: Env> {
    Refused(DriveError, Option<BufMut>),
    Going(Pass<E, <E::Drive as Drive>::Read>, usize),
}

impl<E: Env> Reading<E> {
    pub(super) fn refused(error: DriveError, into: BufMut) -> Self {
        Self(ReadingState::Refused(error, Some(into)))
    }

    #[inline]
    pub(super) fn going(pass: Pass<E, <E::Drive as Drive>::Read>, bytes: usize) -> Self {
        Self(ReadingState::Going(pass, bytes))
    }
}

impl<E: Env> Future for Reading<E> {
    type Output = (Result<(), DriveError>, BufMut);

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            ReadingState::Refused(error, into) => {
                Poll::Ready((Err(*error), into.take().expect("polled after its end")))
            }
            ReadingState::Going(pass, bytes) => match pass.poll(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Ok((result, into))) => {
                    if let Err(error) = result
                        && error != DriveError::Media
                    {
                        pass.note(error);
                    }
                    Poll::Ready((result, into))
                }
                Poll::Ready(Err(error)) => Poll::Ready((Err(error), Pool::single(*bytes))),
            },
        }
    }
}

/// Ticket of anything else.
pub struct Doing<E: Env>(DoingState<E>);

enum DoingState<E: Env> {
    Refused(DriveError),
    Going(Pass<E, <E::Drive as Drive>::Done>),
    Flushing(Flush<E>),
    /// A change that waits until it may be sent, and then for its outcome.
    Held(Held),
}

/// The outcome of a change that is held.
pub(super) type Held = Pin<Box<dyn Future<Output = Result<(), DriveError>>>>;

impl<E: Env> Doing<E> {
    pub(super) fn refused(error: DriveError) -> Self {
        Self(DoingState::Refused(error))
    }

    #[inline]
    pub(super) fn going(pass: Pass<E, <E::Drive as Drive>::Done>) -> Self {
        Self(DoingState::Going(pass))
    }

    pub(super) fn held(held: Held) -> Self {
        Self(DoingState::Held(held))
    }

    pub(super) fn flushing(flush: Flush<E>) -> Self {
        Self(DoingState::Flushing(flush))
    }
}

impl<E: Env> Future for Doing<E> {
    type Output = Result<(), DriveError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            DoingState::Refused(error) => Poll::Ready(Err(*error)),
            DoingState::Flushing(flush) => flush.poll(cx),
            DoingState::Held(held) => held.as_mut().poll(cx),
            DoingState::Going(pass) => match pass.poll(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Ok(result)) => {
                    if let Err(error) = result
                        && !matches!(error, DriveError::Unsupported | DriveError::Media)
                    {
                        pass.note(error);
                    }
                    Poll::Ready(result)
                }
                Poll::Ready(Err(_)) if mutants::is(Mutant::TimeoutIsDone) => Poll::Ready(Ok(())),
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            },
        }
    }
}
