//! Tickets of drive requests.
//!
//! States: *ready* (the request ran inside the call), *kernel*, *write* and *flush* (with the
//! reactor; the times of reads and writes are taken), *remote* (with the connections of a fabric),
//! *pieces* (several requests, all started),
//! *held* (by a faulty drive), *late* (done, but told later), *paced* (done, and told when a drive
//! of its model would be). None of them cancels anything when dropped.

use crate::bound::Begun;
use crate::faulty::Held;
use crate::file::{Asked, FileDrive, error_of};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use io::{BufMut, DriveError};
use runtime::{Errno, Reactor, Sleep};
use std::sync::Arc;

type ReadResult = (Result<(), DriveError>, BufMut);

/// Ticket of a read: gives the buffer back with the outcome.
pub struct ReadTicket(pub(crate) Reading);

pub(crate) enum Reading {
    Ready(Reactor, Option<ReadResult>),
    Kernel(runtime::ReadTicket, Begun),
    Remote(nvme_host::ReadTicket, Begun),
    Held(Arc<Held>),
    Late(Sleep, Box<ReadTicket>),
    Paced(Sleep, Option<ReadResult>),
}

/// Ticket of anything else.
pub struct DoneTicket(pub(crate) Doing);

pub(crate) enum Doing {
    Ready(Reactor, Result<(), DriveError>),
    Kernel(runtime::DoneTicket, Asked),
    Write(runtime::DoneTicket, Asked, Begun),
    Flush(runtime::DoneTicket, Arc<FileDrive>),
    Remote(nvme_host::DoneTicket),
    RemoteWrite(nvme_host::DoneTicket, Begun),
    /// Of a change.
    Pieces(Vec<runtime::DoneTicket>, Result<(), DriveError>),
    Held(Arc<Held>),
    Late(Sleep, Box<DoneTicket>),
    Paced(Sleep, Result<(), DriveError>),
}

impl ReadTicket {
    pub(crate) fn ready(reactor: &Reactor, result: Result<(), DriveError>, into: BufMut) -> Self {
        reactor.charge(into.len());
        Self(Reading::Ready(reactor.clone(), Some((result, into))))
    }
}

impl DoneTicket {
    pub(crate) fn ready(reactor: &Reactor, result: Result<(), DriveError>) -> Self {
        Self(Doing::Ready(reactor.clone(), result))
    }
}

impl Future for ReadTicket {
    type Output = ReadResult;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ReadResult> {
        match &mut self.0 {
            Reading::Ready(reactor, result) => match reactor.poll_budget(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(()) => Poll::Ready(result.take().expect("ticket polled after its end")),
            },
            Reading::Kernel(ticket, begun) => Pin::new(ticket).poll(cx).map(|(result, into)| {
                let result = result.map_err(|Errno(n)| error_of(Asked::Read, n));
                let result = begun.drive().judge(result, &into);
                if result.is_ok() {
                    begun.read_done();
                }
                (result, into)
            }),
            Reading::Remote(ticket, begun) => Pin::new(ticket).poll(cx).map(|(result, into)| {
                if result.is_ok() {
                    begun.read_done();
                }
                (result, into)
            }),
            Reading::Held(held) => held
                .poll(cx)
                .map(|(result, into)| (result, into.expect("a held read gives its buffer back"))),
            Reading::Paced(sleep, result) => Pin::new(sleep)
                .poll(cx)
                .map(|()| result.take().expect("ticket polled after its end")),
            Reading::Late(sleep, ticket) => match Pin::new(sleep).poll(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(()) => Pin::new(&mut **ticket).poll(cx),
            },
        }
    }
}

impl Future for DoneTicket {
    type Output = Result<(), DriveError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Doing::Ready(reactor, result) => reactor.poll_budget(cx).map(|()| *result),
            Doing::Kernel(ticket, asked) => {
                Pin::new(ticket).poll(cx).map_err(|Errno(errno)| error_of(*asked, errno))
            }
            Doing::Write(ticket, asked, begun) => Pin::new(ticket).poll(cx).map(|written| {
                if written.is_ok() {
                    begun.write_done();
                }
                written.map_err(|Errno(errno)| error_of(*asked, errno))
            }),
            Doing::Flush(ticket, drive) => Pin::new(ticket).poll(cx).map(|flushed| {
                let flushed = flushed.map_err(|Errno(errno)| error_of(Asked::Sync, errno));
                drive.judge_flush(flushed)
            }),
            Doing::Remote(ticket) => Pin::new(ticket).poll(cx),
            Doing::RemoteWrite(ticket, begun) => Pin::new(ticket).poll(cx).map(|written| {
                if written.is_ok() {
                    begun.write_done();
                }
                written
            }),
            Doing::Pieces(tickets, result) => poll_pieces(tickets, result, cx),
            Doing::Held(held) => held.poll(cx).map(|(result, _)| result),
            Doing::Paced(sleep, result) => Pin::new(sleep).poll(cx).map(|()| *result),
            Doing::Late(sleep, ticket) => match Pin::new(sleep).poll(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(()) => Pin::new(&mut **ticket).poll(cx),
            },
        }
    }
}

/// Done when the last piece is; the first error found counts.
fn poll_pieces(
    tickets: &mut Vec<runtime::DoneTicket>,
    result: &mut Result<(), DriveError>,
    cx: &mut Context<'_>,
) -> Poll<Result<(), DriveError>> {
    while let Some(ticket) = tickets.last_mut() {
        match Pin::new(ticket).poll(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(Errno(errno))) => {
                *result = result.and(Err(error_of(Asked::Change, errno)));
            }
        }
        tickets.pop();
    }
    Poll::Ready(*result)
}
