//! The receiver: PDUs from the host, one after the other.
//!
//! Invariant: after a PDU whose lengths, flags or order are wrong nothing more is read; what is
//! wrong within a command is told by its completion, and reading goes on behind its data.

use super::{Admission, Admitted, EndReason, Flow, Session, data_bytes};
use crate::limits::{CAPSULE_DATA, DATA_MOST, RECEIVE_BATCH};
use crate::volume::Held;
use crate::{Closed, Transport, Volumes};
use io::Env;
use io::local::yield_now;
use nvme::command::{COMMAND_BYTES, Command, FABRICS};
use nvme::pdu::{
    COMMON_BYTES, DIGEST_BYTES, Digests, Fatal, Header, Kind, Rest, SHORT_HEADER_BYTES, Transfer,
    flag,
};
use nvme::status::Status;
use nvme_stream::{Received, read_data, skip};
use std::rc::Rc;

/// A command whose data was damaged on its way is not carried out (TCP, section 3.3.1.1).
const DAMAGED: Status = Status::TRANSIENT_TRANSPORT;

impl From<Closed> for EndReason {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl From<Fatal> for EndReason {
    fn from(fatal: Fatal) -> Self {
        Self::Fatal(fatal)
    }
}

/// Reads a PDU of the host up to its data.
pub(super) async fn read_header<T: Transport>(
    transport: &T,
    digests: Digests,
    raw: &mut Received,
) -> Result<(Header, Rest), EndReason> {
    let most = |kind: Kind| match kind {
        Kind::Command => Some(CAPSULE_DATA),
        kind => kind.is_of_host().then_some(DATA_MOST),
    };
    nvme_stream::read_header(transport, digests, most, raw).await
}

/// The command within a capsule's header.
pub(super) fn command_of(raw: &[u8]) -> Command {
    let mut bytes = [0; COMMAND_BYTES];
    bytes.copy_from_slice(&raw[COMMON_BYTES..COMMON_BYTES + COMMAND_BYTES]);
    Command(bytes)
}

impl<E: Env, T: Transport, X: Volumes> Session<E, T, X> {
    /// The receiver: takes PDUs until the connection ends. Gives why it does, and the header that
    /// came last.
    pub(super) async fn receive(self: &Rc<Self>) -> (EndReason, Received) {
        let mut raw = Received::new();
        loop {
            for _ in 0..RECEIVE_BATCH {
                if let Err(reason) = self.receive_one(&mut raw).await {
                    return (reason, raw);
                }
            }
            // The host gets to work on the first replies while the rest of what it sent is begun.
            yield_now().await;
        }
    }

    async fn receive_one(self: &Rc<Self>, raw: &mut Received) -> Result<(), EndReason> {
        let (header, rest) = read_header(&*self.transport, self.form.digests, raw).await?;
        if !self.is_current() {
            return Err(EndReason::Lost);
        }
        match header.kind {
            Kind::Command => self.receive_command(&command_of(raw), &rest).await,
            Kind::HostData => self.receive_data(&header, raw, &rest).await,
            Kind::HostTermination => Err(EndReason::Host),
            _ => Err(Fatal::Sequence.into()),
        }
    }

    async fn receive_command(
        self: &Rc<Self>,
        command: &Command,
        rest: &Rest,
    ) -> Result<(), EndReason> {
        self.terms.controller.note_traffic();
        let Some(at) = self.slots.borrow_mut().begin(command) else {
            return Err(Fatal::Limit.into());
        };
        let admitted = self.join(at, command).and_then(|()| self.admit(command));
        let admitted = admitted.and_then(|admitted| {
            let bytes = data_bytes(command, admitted.flow, rest.data)?;
            Ok((admitted, bytes))
        });
        let (Admitted { volume, flow }, bytes) = match admitted {
            Ok(admitted) => admitted,
            Err(status) => {
                self.skip_data(rest).await?;
                self.refuse(at, status);
                return Ok(());
            }
        };
        {
            let mut slots = self.slots.borrow_mut();
            let slot = slots.get(at);
            (slot.volume, slot.bytes) = (volume, bytes);
            slot.is_inbound = matches!(flow, Flow::In(..));
        }
        match flow {
            Flow::In(..) if rest.data > 0 => return self.receive_capsule(at, rest).await,
            _ => self.skip_data(rest).await?,
        }
        match flow {
            Flow::Event => self.hold(at),
            Flow::Disconnect => {
                self.answer(at, Status::SUCCESS, 0);
                return Err(EndReason::Disconnected);
            }
            _ => self.begin_transfer(at),
        }
        Ok(())
    }

    async fn skip_data(&self, rest: &Rest) -> Result<(), Closed> {
        let digest = if rest.data_digest { DIGEST_BYTES } else { 0 };
        skip(&*self.transport, rest.data as usize + digest).await
    }

    /// Receives data that is within the capsule: it follows at once.
    async fn receive_capsule(self: &Rc<Self>, at: u16, rest: &Rest) -> Result<(), EndReason> {
        let want = rest.data as usize;
        let is_half = self.slots.borrow_mut().get(at).half.is_some();
        let taken = match is_half {
            // It may keep its memory until the other half comes, and the reserve has to come back
            // without anything else that is received.
            true => self.share.try_take_whole(want),
            false => Some(self.share.take(&self.server.env, want).await),
        };
        let Some((mut data, lease)) = taken else {
            self.skip_data(rest).await?;
            self.refuse(at, Status::NOT_READY);
            return Ok(());
        };
        assert_eq!(data.len(), want, "data of a capsule fits the reserve");
        let whole = read_data(&*self.transport, &mut data, rest).await?;
        self.slots.borrow_mut().get(at).buffer = Some((data, lease));
        if whole {
            self.work(at);
        } else {
            self.refuse(at, DAMAGED);
        }
        Ok(())
    }

    /// Receives data that we asked for.
    async fn receive_data(
        self: &Rc<Self>,
        header: &Header,
        raw: &Received,
        rest: &Rest,
    ) -> Result<(), EndReason> {
        let raw: &[u8; SHORT_HEADER_BYTES] = raw.first_chunk().expect("a header was read whole");
        let transfer = Transfer::decode(raw);
        let (from, to) = (transfer.offset as usize, transfer.offset as usize + rest.data as usize);
        let (mut data, lease) = {
            let mut slots = self.slots.borrow_mut();
            let Some(slot) = slots.receiving(transfer.tag, transfer.command) else {
                return Err(Fatal::Field(10).into());
            };
            if transfer.bytes != rest.data || rest.data == 0 {
                return Err(Fatal::Field(16).into());
            }
            let is_last = header.flags & flag::LAST != 0;
            let is_end = to == slot.bytes as usize;
            if transfer.offset != slot.received || to > slot.bytes as usize || is_last && !is_end {
                return Err(Fatal::OutOfRange.into());
            }
            slot.buffer.take().expect("a command that receives has memory")
        };
        let whole = read_data(&*self.transport, &mut data[from..to], rest).await?;
        let mut slots = self.slots.borrow_mut();
        let slot = slots.get(transfer.tag);
        slot.buffer = Some((data, lease));
        slot.received = to as u32;
        slot.is_broken |= !whole;
        let (is_done, is_broken) = (slot.received == slot.bytes, slot.is_broken);
        drop(slots);
        match (is_done, is_broken) {
            (false, _) => {}
            (true, true) => self.refuse(transfer.tag, DAMAGED),
            (true, false) => self.work(transfer.tag),
        }
        Ok(())
    }

    /// Whether a command may begin.
    fn admit(&self, command: &Command) -> Admission<Held<X>> {
        if self.terms.queue == 0 {
            return self.admit_admin(command);
        }
        if command.opcode() == FABRICS {
            return match command.fabrics_type() {
                nvme::fabrics::kind::DISCONNECT => {
                    Ok(Admitted { volume: None, flow: Flow::Disconnect })
                }
                nvme::fabrics::kind::CONNECT => Err(Status::SEQUENCE_ERROR),
                _ => Err(Status::INVALID_OPCODE),
            };
        }
        if !self.terms.controller.is_enabled() {
            return Err(Status::SEQUENCE_ERROR);
        }
        self.admit_io(command)
    }
}
