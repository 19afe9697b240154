//! How a connection begins: an exchange of parameters (TCP, section 3.4), then a Connect (Base,
//! section 3.3.1 and 6.3).
//!
//! No memory is taken but what a connection has in reserve. A Connect that is refused is answered,
//! and the connection ends: a host that wants to try again connects again.

use super::receive::{command_of, read_header};
use super::reply::Form;
use super::{EndReason, Opened, Terms, data_bytes};
use crate::access::PortId;
use crate::controller::{Association, Controller, Way};
use crate::limits::{DATA_MOST, DISCOVERY_ENTRIES, ENTRIES_LEAST, ENTRIES_MOST};
use crate::mutants::{self, Mutant};
use crate::server::Server;
use crate::session::Flow;
use crate::target::NoController;
use crate::{Transport, Volumes};
use io::Env;
use nvme::command::{Command, Completion, FABRICS};
use nvme::fabrics::{self, ANY_CONTROLLER, CONNECT_DATA_BYTES, Connect, ConnectData, Wrong};
use nvme::identify::ControllerKind;
use nvme::nqn::DISCOVERY;
use nvme::pdu::{self, Digests, Fatal, InitializeRequest, InitializeResponse, Kind};
use nvme::status::Status;
use nvme_stream::{Received, read_data};
use parity::crc32c;
use std::io::IoSlice;
use std::sync::Arc;
use units::Nanos;

/// How often a Connect looks whether what its host had before has ended.
const LOOK: Nanos = Nanos::from_millis(1);

/// How far the submission queue was taken, in the answer to a Connect: nobody will be told.
const NO_SQ_HEAD: u16 = 0xffff;

/// What is wrong with a Connect: the status, and its result.
type Refusal = (Status, u64);

/// Exchanges parameters and accepts a Connect.
pub(super) async fn begin<E: Env, T: Transport, X: Volumes>(
    server: &Server<E, T, X>,
    opened: &Opened<T>,
    port: PortId,
    way: &Way,
) -> Result<(Terms, Form), EndReason> {
    let mut raw = Received::new();
    let transport = &*opened.transport;
    let outcome = begin_with(server, opened, &mut raw, (port, way)).await;
    if let Err(EndReason::Fatal(fatal)) = outcome {
        let wrong = &raw[..];
        let head = pdu::termination(Kind::ControllerTermination, fatal, wrong.len() as u32);
        transport.write_all(&mut [IoSlice::new(&head), IoSlice::new(wrong)]).await?;
    }
    outcome
}

async fn begin_with<E: Env, T: Transport, X: Volumes>(
    server: &Server<E, T, X>,
    opened: &Opened<T>,
    raw: &mut Received,
    (port, way): (PortId, &Way),
) -> Result<(Terms, Form), EndReason> {
    let transport = &*opened.transport;
    let mut form = initialize(transport, raw).await?;
    let (header, rest) = read_header(transport, form.digests, raw).await?;
    match header.kind {
        Kind::Command => {}
        Kind::HostTermination => return Err(EndReason::Host),
        _ => return Err(Fatal::Sequence.into()),
    }
    let command = command_of(raw);
    let mut data = [0; CONNECT_DATA_BYTES];
    let fits = rest.data as usize == data.len();
    let whole = fits && read_data(transport, &mut data, &rest).await?;
    let outcome = match whole || !fits {
        true => check(&command, rest.data),
        false => Err((Status::TRANSIENT_TRANSPORT, 0)),
    };
    let outcome = match outcome {
        Ok(connect) => accept(server, opened, (&connect, &data), (port, way)).await,
        Err(refusal) => Err(refusal),
    };
    match outcome {
        Ok(terms) => {
            // The result's low half is the controller's number (Base, figure 380).
            let result = u64::from(terms.controller.id);
            form.is_success_told = !terms.has_flow_control;
            // It was the first command that the queue took (Base, section 3.3.1.2 and 6.3).
            let sq_head = if terms.has_flow_control { 1 } else { NO_SQ_HEAD };
            let done =
                Completion { result, sq_head, ..Completion::of(command.id(), Status::SUCCESS) };
            let answer = answer(transport, &form, &done).await;
            if answer.is_err() {
                server.target.end_queue(&terms.controller, terms.queue);
            }
            answer.map(|()| (terms, form))
        }
        Err((status, result)) => {
            let done = Completion { result, ..Completion::of(command.id(), status) };
            answer(transport, &form, &done).await?;
            Err(EndReason::Refused(status))
        }
    }
}

/// Exchanges parameters.
async fn initialize<T: Transport>(transport: &T, raw: &mut Received) -> Result<Form, EndReason> {
    let (header, _) = read_header(transport, Digests::default(), raw).await?;
    if header.kind != Kind::InitializeRequest {
        return Err(Fatal::Sequence.into());
    }
    let request = InitializeRequest::decode(raw.first_chunk().expect("a header was read whole"));
    if request.version != 0 {
        return Err(Fatal::Unsupported(8).into());
    }
    let Some(alignment) = pdu::alignment(request.alignment) else {
        return Err(Fatal::Field(10).into());
    };
    let response = InitializeResponse {
        version: 0,
        alignment: 0,
        digests: request.digests,
        data_most: DATA_MOST,
    };
    transport.write_all(&mut [IoSlice::new(&response.encode())]).await?;
    Ok(Form { digests: request.digests, alignment, is_success_told: false })
}

/// Answers a Connect.
async fn answer<T: Transport>(
    transport: &T,
    form: &Form,
    completion: &Completion,
) -> Result<(), EndReason> {
    let header = pdu::response(form.digests, completion);
    let digest = crc32c(0, &header).to_le_bytes();
    let digest = if form.digests.header { &digest[..] } else { &[] };
    Ok(transport.write_all(&mut [IoSlice::new(&header), IoSlice::new(digest)]).await?)
}

/// Whether a command is a Connect that can be.
fn check(command: &Command, data: u32) -> Result<Connect, Refusal> {
    let plain = |status| (status, 0);
    let is_connect =
        command.opcode() == FABRICS && command.fabrics_type() == fabrics::kind::CONNECT;
    if !is_connect {
        return Err(plain(Status::SEQUENCE_ERROR));
    }
    let flow = Flow::In(CONNECT_DATA_BYTES as u32, true);
    data_bytes(command, flow, data).map_err(plain)?;
    if data == 0 {
        // It has to be in the capsule, for which there is always room.
        return Err(plain(Status::SGL_TYPE));
    }
    let connect = Connect::decode(command);
    let wrong = |wrong: Wrong| (Status::CONNECT_PARAMETERS, wrong.result());
    if connect.format != 0 {
        return Err(plain(Status::CONNECT_FORMAT));
    }
    let entries = u32::from(connect.entries_less_one) + 1;
    if !(u32::from(ENTRIES_LEAST)..=u32::from(ENTRIES_MOST)).contains(&entries) {
        return Err(wrong(Wrong::ENTRIES));
    }
    Ok(connect)
}

/// Accepts a Connect: makes a controller, or finds the queue's.
async fn accept<E: Env, T: Transport, X: Volumes>(
    server: &Server<E, T, X>,
    opened: &Opened<T>,
    (connect, data): (&Connect, &[u8; CONNECT_DATA_BYTES]),
    (port, way): (PortId, &Way),
) -> Result<Terms, Refusal> {
    let wrong = |wrong: Wrong| (Status::CONNECT_PARAMETERS, wrong.result());
    let data = ConnectData::decode(data).map_err(|(which, _)| wrong(which))?;
    opened.transport.is_for(data.subsystem.as_str());
    let (controller, epoch) = match connect.queue {
        0 => (associate(server, opened, connect, &data, (port, way)).await?, 0),
        queue => join(server, queue, &data, port)?,
    };
    Ok(Terms {
        queue: connect.queue,
        entries: connect.entries_less_one + 1,
        has_flow_control: connect.attributes & fabrics::NO_FLOW_CONTROL == 0,
        epoch,
        local: way.local.clone(),
        controller,
    })
}

/// An admin queue: a new controller.
async fn associate<E: Env, T: Transport, X: Volumes>(
    server: &Server<E, T, X>,
    opened: &Opened<T>,
    connect: &Connect,
    data: &ConnectData,
    (port, way): (PortId, &Way),
) -> Result<Arc<Controller>, Refusal> {
    let wrong = |wrong: Wrong| (Status::CONNECT_PARAMETERS, wrong.result());
    if data.controller != ANY_CONTROLLER {
        return Err(wrong(Wrong::CONTROLLER));
    }
    let is_discovery = data.subsystem.as_str() == DISCOVERY;
    if is_discovery && connect.entries_less_one >= DISCOVERY_ENTRIES {
        return Err(wrong(Wrong::ENTRIES));
    }
    // Its answers are by the host's name.
    if is_discovery && data.host.is_none() {
        return Err(wrong(Wrong::HOST));
    }
    let kind = if is_discovery { ControllerKind::Discovery } else { ControllerKind::Io };
    let association = Association {
        subsystem: data.subsystem.clone(),
        host: data.host.clone(),
        host_id: data.host_id,
        port,
        way: way.clone(),
        kind,
    };
    // What the host has given up, and sends again, must not be carried out after it.
    while !is_discovery && server.target.is_draining(&data.subsystem, &data.host_id) {
        if opened.is_closed.get() {
            return Err((Status::CONNECT_BUSY, 0));
        }
        server.env.sleep(LOOK).await;
    }
    let (is_settled, has_name) = (server.target.is_settled(), data.host.is_some());
    let begun = (server.env.wall_seconds(), server.env.random());
    let made = server.target.associate(association, connect.keep_alive_ms, begun);
    made.map_err(|why| match why {
        NoController::Subsystem if is_settled => wrong(Wrong::SUBSYSTEM),
        NoController::Subsystem | NoController::Absent => {
            (Status::CONNECT_PARAMETERS.passing(), Wrong::SUBSYSTEM.result())
        }
        NoController::Host => {
            let (status, result) =
                if has_name { (Status::CONNECT_HOST, 0) } else { wrong(Wrong::HOST) };
            (if is_settled { status } else { status.passing() }, result)
        }
        NoController::Full => (Status::CONNECT_BUSY, 0),
    })
}

/// An I/O queue: of the controller that it names, which must be the same host's; with its epoch.
/// A host whose controller is gone, perhaps with a restart, or of whose number another has one
/// since, has done nothing wrong: it is to begin anew.
fn join<E: Env, T: Transport, X: Volumes>(
    server: &Server<E, T, X>,
    queue: u16,
    data: &ConnectData,
    port: PortId,
) -> Result<(Arc<Controller>, u32), Refusal> {
    let wrong = |wrong: Wrong| (Status::CONNECT_PARAMETERS, wrong.result());
    let anew = |wrong: Wrong| (Status::CONNECT_PARAMETERS.passing(), wrong.result());
    let found = server.target.find(&data.subsystem, data.controller);
    let Some(controller) = found.filter(|c| !c.is_lost() && !c.is_discovery()) else {
        return Err(anew(Wrong::CONTROLLER));
    };
    let own = &controller.association;
    if own.host != data.host || own.host_id != data.host_id {
        return Err(anew(Wrong::HOST));
    }
    if own.port != port {
        return Err(anew(Wrong::CONTROLLER));
    }
    if !controller.is_enabled() && !mutants::is(Mutant::NotEnabled) {
        return Err((Status::SEQUENCE_ERROR, 0));
    }
    if controller.is_resetting() {
        return Err((Status::CONNECT_BUSY, 0));
    }
    if queue > controller.granted() {
        return Err(wrong(Wrong::QUEUE));
    }
    match controller.begin_queue(queue) {
        Some(epoch) => Ok((controller, epoch)),
        None => Err(wrong(Wrong::QUEUE)),
    }
}
