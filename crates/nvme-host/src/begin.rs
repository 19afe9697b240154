//! How a connection begins: an exchange of parameters (TCP, section 3.4), then a Connect (Base,
//! sections 3.3.1 and 6.3).
//!
//! Nobody else uses the connection meanwhile, so both are one exchange after the other.
//!
//! Invariant: what that needs is given back when the connection has begun. Whoever connects lives
//! on with it, and would hold that memory as long.

use crate::admin::{Admin, SHAPE};
use crate::queue::{End, Queue, Shape};
use crate::requests::{Association, Requests};
use crate::wire::{Form, Frame, read_header};
use io::Transport;
use nvme::fabrics::{CONNECT_DATA_BYTES, Connect, ConnectData, NO_FLOW_CONTROL, refusal};
use nvme::nqn::Nqn;
use nvme::pdu::{self, Digests, Fatal, InitializeRequest, InitializeResponse, Kind};
use nvme::sgl::Sgl;
use nvme::status::Status;
use nvme_stream::Received;
use std::io::IoSlice;
use std::rc::Rc;
use thiserror::Error;

/// The least that a controller may let a host send in one PDU (TCP, section 3.6.2.3).
const DATA_LEAST: u32 = 4096;
/// The identifier of a Connect: nothing else is under way.
const CONNECT_ID: u16 = 0;

/// What a connection is to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Begin {
    /// The queue: 0 is the admin queue.
    pub queue: u16,
    /// Its entries, at least 2.
    pub entries: u16,
    /// The controller; [`nvme::fabrics::ANY_CONTROLLER`] for the admin queue.
    pub controller: u16,
    /// The keep-alive timeout in milliseconds; 0 for I/O queues.
    pub keep_alive_ms: u32,
    /// Digests that are to be used.
    pub digests: Digests,
    /// The host.
    pub host: Nqn,
    /// The host's identifier.
    pub host_id: [u8; 16],
    /// The subsystem.
    pub subsystem: Nqn,
}

/// Why a connection did not begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum NotBegun {
    /// It ended before.
    #[error(transparent)]
    Ended(End),
    /// The controller does not use the digests that are wanted.
    #[error("the controller does not use the digests that are wanted")]
    NoDigests,
    /// The Connect was refused, with this result.
    #[error("Connect refused: {}", refusal(*.0, *.1))]
    Refused(Status, u64),
}

impl<E: Into<End>> From<E> for NotBegun {
    fn from(end: E) -> Self {
        Self::Ended(end.into())
    }
}

/// A connection that has begun.
pub struct Begun<T> {
    transport: Rc<T>,
    form: Form,
    entries: u16,
    /// The controller that it is of.
    pub controller: u16,
}

impl<T: Transport> Begun<T> {
    /// The queue that it is of an association, for these requests. It is never given more commands
    /// than it has entries for.
    pub fn queue(
        self,
        shape: Shape,
        requests: Rc<Requests>,
        association: Association,
    ) -> Rc<Queue<T>> {
        let commands = shape.commands.min(self.entries - 1);
        let shape = Shape { commands, ..shape };
        Queue::new(self.transport, self.form, shape, requests, (association, false))
    }

    /// The admin queue that it is, for who asks by `admin`: no other connection ever is.
    pub fn admin_queue(self, admin: &Admin) -> Rc<Queue<T>> {
        let commands = SHAPE.commands.min(self.entries - 1);
        let shape = Shape { commands, ..SHAPE };
        let own = (Association::default(), true);
        Queue::new(self.transport, self.form, shape, admin.requests(), own)
    }
}

/// Exchanges parameters, and connects a queue.
///
/// # Errors
/// Why it is not connected. The transport is closed then.
pub async fn begin<T: Transport>(transport: Rc<T>, how: &Begin) -> Result<Begun<T>, NotBegun> {
    let begun = Box::pin(exchange(&*transport, how)).await;
    if begun.is_err() {
        transport.close();
    }
    let (form, controller) = begun?;
    Ok(Begun { transport, form, entries: how.entries, controller })
}

async fn exchange<T: Transport>(transport: &T, how: &Begin) -> Result<(Form, u16), NotBegun> {
    let form = initialize(transport, how.digests).await?;
    let connect = Connect {
        format: 0,
        queue: how.queue,
        entries_less_one: how.entries.max(2) - 1,
        // Only then may data tell that a read has succeeded (TCP, section 3.6.2.10).
        attributes: NO_FLOW_CONTROL,
        keep_alive_ms: how.keep_alive_ms,
    };
    let length = CONNECT_DATA_BYTES as u32;
    let command = connect.encode(CONNECT_ID, Sgl::InCapsule { offset: 0, length });
    let data = ConnectData {
        host_id: how.host_id,
        controller: how.controller,
        subsystem: how.subsystem.clone(),
        host: Some(how.host.clone()),
    };
    let mut frame = Frame::default();
    frame.command_with(&form, &command, &data.encode());
    transport.write_all(&mut frame.parts()).await?;

    let mut raw = Received::new();
    let (header, _) = read_header(transport, form.digests, 0, &mut raw).await?;
    if header.kind != Kind::Response {
        return Err(Fatal::Sequence.into());
    }
    let done = pdu::completion(raw.first_chunk().expect("a header was read whole"));
    if done.id != CONNECT_ID {
        return Err(Fatal::Field(20).into());
    }
    if !done.status.is_success() {
        return Err(NotBegun::Refused(done.status, done.result));
    }
    // The result's low half is the controller's number (Base, figure 380).
    Ok((form, done.result as u16))
}

/// Exchanges parameters.
async fn initialize<T: Transport>(transport: &T, digests: Digests) -> Result<Form, NotBegun> {
    let request = InitializeRequest { digests, ..InitializeRequest::default() };
    transport.write_all(&mut [IoSlice::new(&request.encode())]).await?;
    let mut raw = Received::new();
    let (header, _) = read_header(transport, Digests::default(), 0, &mut raw).await?;
    if header.kind != Kind::InitializeResponse {
        return Err(Fatal::Sequence.into());
    }
    let response = InitializeResponse::decode(raw.first_chunk().expect("a header was read whole"));
    if response.version != 0 {
        return Err(Fatal::Unsupported(8).into());
    }
    let alignment = pdu::alignment(response.alignment).ok_or(Fatal::Field(10))?;
    if response.digests != digests {
        return Err(NotBegun::NoDigests);
    }
    let data_most = response.data_most;
    if data_most < DATA_LEAST || !data_most.is_multiple_of(4) {
        return Err(Fatal::Field(12).into());
    }
    Ok(Form { digests, alignment, data_most })
}
