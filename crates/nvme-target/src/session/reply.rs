//! The sender: what waits to be sent, several at once where several wait.
//!
//! Data of a read goes from the volume's buffer; everything between two such is one run of bytes,
//! so completions that follow each other are one slice.
//!
//! Invariant: a reply that ends its command carries its slot, which is free once it is sent or
//! dropped; so what waits is bounded by the slots. Nothing is sent behind a termination.

use super::Session;
use crate::limits::REPLY_BATCH;
use crate::{Transport, Volumes};
use arrayvec::ArrayVec;
use core::cell::Cell;
use front::{Lease, Outbox};
use io::{BufMut, Env};
use nvme::command::Completion;
use nvme::pdu::{self, Digests, Header, Kind, Transfer, flag};
use nvme_stream::{add_header, parts};
use parity::crc32c;
use std::io::IoSlice;
use std::rc::Rc;
use units::Nanos;

/// What to send.
pub(crate) enum Reply {
    /// A command's end.
    End { slot: u16, completion: Completion },
    /// Its data, and its end. The lease is given back after the memory.
    Data { slot: u16, data: BufMut, _lease: Lease, completion: Completion },
    /// A request for a command's data.
    Ready(Transfer),
    /// The connection's end.
    Termination(Box<[u8]>),
}

/// How this connection's PDUs look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Form {
    pub digests: Digests,
    /// Of data to the host, bytes.
    pub alignment: usize,
    /// No completion follows data of a command that ended well.
    pub is_success_told: bool,
}

/// What waits to be sent.
pub(crate) struct Replies {
    outbox: Outbox<Reply>,
    /// Since when something is being sent.
    sending: Cell<Option<Nanos>>,
}

impl Replies {
    pub fn new() -> Self {
        Self { outbox: Outbox::new(0), sending: Cell::new(None) }
    }

    pub fn push(&self, reply: Reply) {
        self.outbox.push(reply);
    }

    /// Ends the sender once everything is sent or dropped.
    pub fn stop(&self) {
        self.outbox.stop();
    }

    /// Since when something is being sent.
    pub fn sending_since(&self) -> Option<Nanos> {
        self.sending.get()
    }

    /// Waits until all is sent or dropped.
    pub async fn flushed(&self) {
        let done = || (self.outbox.is_empty() && self.sending.get().is_none()).then_some(());
        self.outbox.changed().wait_until(done).await;
    }
}

/// The bytes around data, with the places where data goes.
#[derive(Default)]
struct Frame {
    bytes: Vec<u8>,
    /// Where in `bytes` the data of each reply that has some goes.
    cuts: ArrayVec<usize, REPLY_BATCH>,
}

impl Frame {
    fn clear(&mut self) {
        self.bytes.clear();
        self.cuts.clear();
    }

    fn header(&mut self, form: &Form, header: &[u8]) {
        add_header(&mut self.bytes, form.digests, header);
    }

    fn add(&mut self, form: &Form, reply: &Reply) {
        match reply {
            Reply::End { completion, .. } => {
                self.header(form, &pdu::response(form.digests, completion));
            }
            Reply::Ready(transfer) => {
                let header = Header::new(Kind::ReadyToTransfer, 0, 0, 4, form.digests);
                self.header(form, &transfer.encode(&header));
            }
            Reply::Termination(bytes) => self.bytes.extend_from_slice(bytes),
            Reply::Data { data, completion, .. } => self.data(form, data, completion),
        }
    }

    fn data(&mut self, form: &Form, data: &BufMut, completion: &Completion) {
        let flags = if form.is_success_told { flag::LAST | flag::SUCCESS } else { flag::LAST };
        let bytes = data.len() as u32;
        let header = Header::new(Kind::ControllerData, flags, bytes, form.alignment, form.digests);
        let begin = self.bytes.len();
        let transfer = Transfer { command: completion.id, tag: 0, offset: 0, bytes };
        self.header(form, &transfer.encode(&header));
        self.bytes.resize(begin + usize::from(header.data_offset), 0);
        self.cuts.push(self.bytes.len());
        if form.digests.data {
            self.bytes.extend_from_slice(&crc32c(0, data).to_le_bytes());
        }
        if !form.is_success_told {
            self.header(form, &pdu::response(form.digests, completion));
        }
    }

    fn parts<'a>(&'a self, batch: &'a [Reply]) -> ArrayVec<IoSlice<'a>, { 2 * REPLY_BATCH + 1 }> {
        let data = batch.iter().filter_map(|reply| match reply {
            Reply::Data { data, .. } => Some(&**data),
            _ => None,
        });
        parts(&self.bytes, &self.cuts, data)
    }
}

/// The sender's task.
pub(super) async fn run<E: Env, T: Transport, X: Volumes>(session: Rc<Session<E, T, X>>) {
    let mut frame = Frame::default();
    let replies = &session.replies;
    while replies.outbox.wait().await {
        let batch = replies.outbox.next_batch::<REPLY_BATCH>();
        replies.sending.set(Some(session.server.env.now()));
        if !session.is_over() {
            frame.clear();
            let last = batch.iter().position(|reply| matches!(reply, Reply::Termination(_)));
            let sent = &batch[..last.map_or(batch.len(), |at| at + 1)];
            sent.iter().for_each(|reply| frame.add(&session.form, reply));
            let outcome = session.transport.write_all(&mut frame.parts(sent)).await;
            match outcome {
                Err(_) => session.give_up(),
                Ok(()) if last.is_some() => session.finish(),
                Ok(()) => {}
            }
        }
        let mut slots = session.slots.borrow_mut();
        for reply in batch {
            if let Reply::End { slot, .. } | Reply::Data { slot, .. } = reply {
                slots.end(slot);
            }
        }
        drop(slots);
        replies.sending.set(None);
        replies.outbox.changed().notify();
    }
}
