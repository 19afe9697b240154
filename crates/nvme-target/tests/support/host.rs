//! A host that speaks bytes: what it sends is what the test says, right or wrong.

use super::{HOST, SUBSYSTEM, nqn};
use io::{Closed, Transport};
use nvme::command::{COMMAND_BYTES, Command, Completion, FABRICS, admin, nvm};
use nvme::fabrics::{ANY_CONTROLLER, Connect, ConnectData, NO_FLOW_CONTROL, Property, property};
use nvme::pdu::{
    self, COMMON_BYTES, Digests, Fatal, Header, InitializeRequest, InitializeResponse, Kind,
    SHORT_HEADER_BYTES, Transfer, flag,
};
use nvme::sgl::Sgl;
use nvme::status::Status;
use parity::crc32c;
use sim::net::End;
use std::cell::Cell;
use std::io::IoSlice;

/// A PDU of the target.
#[derive(Debug)]
pub enum Pdu {
    Done(Completion),
    Data { command: u16, offset: u32, data: Vec<u8>, flags: u8 },
    Ready(Transfer),
    Termination(u16, u32),
}

pub struct Host {
    pub end: End<()>,
    pub digests: Digests,
    pub name: String,
    pub subsystem: String,
    pub host_id: [u8; 16],
    pub attributes: u8,
    pub alignment: u8,
    /// A PDU that is damaged ends the connection, and not the test.
    pub tolerant: bool,
    next: Cell<u16>,
}

/// How a command moves data.
pub enum Data<'a> {
    None,
    /// So many bytes to the host.
    Out(u32),
    /// From the host, in the capsule.
    Capsule(&'a [u8]),
    /// From the host, as asked for.
    In(&'a [u8]),
}

/// A command with nothing but an opcode and a namespace.
pub fn command(opcode: u8, nsid: u32) -> Command {
    let mut bytes = [0; COMMAND_BYTES];
    (bytes[0], bytes[1]) = (opcode, 0x40);
    bytes[4..8].copy_from_slice(&nsid.to_le_bytes());
    Command(bytes)
}

/// A command for blocks of namespace 1.
pub fn blocks(opcode: u8, first: u64, count: u32) -> Command {
    let mut c = command(opcode, 1);
    c.0[40..48].copy_from_slice(&first.to_le_bytes());
    c.0[48..52].copy_from_slice(&(count - 1).to_le_bytes());
    c
}

/// An admin command with dwords from 10 on.
pub fn admin_command(opcode: u8, nsid: u32, dwords: &[u32]) -> Command {
    let mut c = command(opcode, nsid);
    for (at, value) in dwords.iter().enumerate() {
        c.0[40 + 4 * at..44 + 4 * at].copy_from_slice(&value.to_le_bytes());
    }
    c
}

/// A Get Log Page for so many bytes.
pub fn log_page(page: u8, bytes: u32, offset: u64) -> Command {
    let dwords = bytes / 4 - 1;
    let ten = u32::from(page) | dwords << 16;
    admin_command(
        admin::GET_LOG_PAGE,
        0xffff_ffff,
        &[ten, dwords >> 16, offset as u32, (offset >> 32) as u32],
    )
}

impl Host {
    pub fn new(end: End<()>) -> Self {
        Self {
            end,
            digests: Digests::default(),
            name: HOST.into(),
            subsystem: SUBSYSTEM.into(),
            host_id: [5; 16],
            attributes: NO_FLOW_CONTROL,
            alignment: 0,
            tolerant: false,
            next: Cell::new(1),
        }
    }

    pub async fn send(&self, bytes: &[u8]) -> Result<(), Closed> {
        self.end.write_all(&mut [IoSlice::new(bytes)]).await
    }

    pub async fn receive(&self, bytes: usize) -> Result<Vec<u8>, Closed> {
        let mut all = vec![0; bytes];
        self.end.read_exact(&mut all).await?;
        Ok(all)
    }

    /// Exchanges parameters.
    pub async fn initialize(&self) -> Result<InitializeResponse, Closed> {
        let request = InitializeRequest {
            alignment: self.alignment,
            digests: self.digests,
            ..InitializeRequest::default()
        };
        self.send(&request.encode()).await?;
        let answer = self.receive(pdu::INITIALIZE_BYTES).await?;
        Ok(InitializeResponse::decode(answer.as_slice().try_into().unwrap()))
    }

    pub fn connect_command(&self, queue: u16, entries: u16) -> Command {
        let connect = Connect {
            format: 0,
            queue,
            entries_less_one: entries - 1,
            attributes: self.attributes,
            keep_alive_ms: 0,
        };
        connect.encode(0, Sgl::InCapsule { offset: 0, length: 1024 })
    }

    pub fn connect_data(&self, controller: u16) -> [u8; 1024] {
        let data = ConnectData {
            host_id: self.host_id,
            controller,
            subsystem: nqn(&self.subsystem),
            host: (!self.name.is_empty()).then(|| nqn(&self.name)),
        };
        data.encode()
    }

    /// Connects a queue; gives the completion.
    pub async fn join(&self, queue: u16, controller: u16) -> Result<Completion, Closed> {
        self.initialize().await?;
        // As Linux does: a short admin queue.
        let entries = if queue == 0 { 32 } else { 128 };
        let (command, data) = (self.connect_command(queue, entries), self.connect_data(controller));
        self.send_capsule(&command, &data).await?;
        match self.next_pdu().await? {
            Pdu::Done(completion) => Ok(completion),
            Pdu::Termination(..) if self.tolerant => Err(Closed),
            other => panic!("a Connect is answered: {other:?}"),
        }
    }

    /// Connects the admin queue and enables the controller; gives its number.
    pub async fn enter(&self) -> u16 {
        let done = self.join(0, ANY_CONTROLLER).await.unwrap();
        assert_eq!(done.status, Status::SUCCESS);
        self.set_property(property::CONFIGURATION, 0x46_0001).await;
        done.result as u16
    }

    pub async fn set_property(&self, offset: u32, value: u64) {
        let property = Property { offset, wide: false, value };
        let (done, _) = self.call(property.encode(0, true), Data::None).await.unwrap();
        assert_eq!(done.status, Status::SUCCESS);
    }

    /// As [`Host::set_property`] for what [`Host::enter`] sets, where the connection may end.
    pub async fn try_enable(&self) -> Result<(), Closed> {
        let property = Property { offset: property::CONFIGURATION, wide: false, value: 0x46_0001 };
        self.call(property.encode(0, true), Data::None).await.map(|_| ())
    }

    pub async fn property(&self, offset: u32, wide: bool) -> u64 {
        let property = Property { offset, wide, value: 0 };
        let (done, _) = self.call(property.encode(0, false), Data::None).await.unwrap();
        assert_eq!(done.status, Status::SUCCESS);
        done.result
    }

    fn digest(&self, is_there: bool, bytes: &[u8]) -> Vec<u8> {
        if is_there { crc32c(0, bytes).to_le_bytes().into() } else { Vec::new() }
    }

    /// Sends a command and data in its capsule.
    pub async fn send_capsule(&self, command: &Command, data: &[u8]) -> Result<(), Closed> {
        let header = Header::new(Kind::Command, 0, data.len() as u32, 4, self.digests);
        let head = pdu::command(&header, command);
        let mut all = [&head[..], &self.digest(self.digests.header, &head)].concat();
        if !data.is_empty() {
            all.resize(header.data_offset.into(), 0);
            all.extend_from_slice(data);
            all.extend(self.digest(self.digests.data, data));
        }
        self.send(&all).await
    }

    /// Sends data that was asked for.
    pub async fn send_data(&self, ready: &Transfer, data: &[u8], last: bool) -> Result<(), Closed> {
        let flags = if last { flag::LAST } else { 0 };
        let header = Header::new(Kind::HostData, flags, data.len() as u32, 4, self.digests);
        let head = ready.encode(&header);
        let mut all = [&head[..], &self.digest(self.digests.header, &head)].concat();
        all.resize(header.data_offset.into(), 0);
        all.extend_from_slice(data);
        all.extend(self.digest(self.digests.data, data));
        self.send(&all).await
    }

    /// The number that the next command gets.
    pub fn next_id(&self) -> u16 {
        self.next.get()
    }

    /// A command with a number of its own; gives it.
    pub async fn begin(&self, mut command: Command, data: &Data<'_>) -> Result<u16, Closed> {
        let id = self.next.get();
        self.next.set(id.wrapping_add(1).max(1));
        command.0[2..4].copy_from_slice(&id.to_le_bytes());
        let sgl = match data {
            Data::None => Sgl::Transport { length: 0 },
            Data::Out(length) => Sgl::Transport { length: *length },
            Data::Capsule(data) => Sgl::InCapsule { offset: 0, length: data.len() as u32 },
            Data::In(data) => Sgl::Transport { length: data.len() as u32 },
        };
        if command.opcode() != FABRICS {
            command.0[24..40].copy_from_slice(&sgl.encode());
        }
        let capsule = if let Data::Capsule(data) = data { data } else { &[][..] };
        self.send_capsule(&command, capsule).await?;
        Ok(id)
    }

    /// A command from begin to end; nothing else is under way.
    pub async fn call(
        &self,
        command: Command,
        data: Data<'_>,
    ) -> Result<(Completion, Vec<u8>), Closed> {
        let id = self.begin(command, &data).await?;
        let mut got = Vec::new();
        loop {
            match self.next_pdu().await? {
                Pdu::Done(completion) => {
                    assert_eq!(completion.id, id);
                    return Ok((completion, got));
                }
                Pdu::Data { command, offset, data, flags } => {
                    assert_eq!((command, offset as usize), (id, got.len()));
                    got.extend(data);
                    if flags & flag::SUCCESS != 0 {
                        assert_ne!(flags & flag::LAST, 0);
                        return Ok((Completion::of(id, Status::SUCCESS), got));
                    }
                }
                Pdu::Ready(ready) => {
                    let Data::In(all) = data else { panic!("data that nobody has is asked for") };
                    let from = ready.offset as usize;
                    let all = &all[from..from + ready.bytes as usize];
                    let half = (all.len() / 2).next_multiple_of(4).min(all.len());
                    self.send_data(&Transfer { bytes: half as u32, ..ready }, &all[..half], false)
                        .await?;
                    let rest = Transfer {
                        offset: ready.offset + half as u32,
                        bytes: (all.len() - half) as u32,
                        ..ready
                    };
                    self.send_data(&rest, &all[half..], true).await?;
                }
                Pdu::Termination(status, information) => {
                    panic!("terminated: {status} {information}")
                }
            }
        }
    }

    /// A command that has to end so.
    pub async fn expect(&self, command: Command, data: Data<'_>, status: Status) -> Vec<u8> {
        let (done, got) = self.call(command, data).await.unwrap();
        assert_eq!(done.status, status);
        got
    }

    pub async fn read(&self, first: u64, count: u32) -> Vec<u8> {
        let bytes = count * super::BLOCK as u32;
        self.expect(blocks(nvm::READ, first, count), Data::Out(bytes), Status::SUCCESS).await
    }

    pub async fn identify(&self, what: u8, nsid: u32) -> Vec<u8> {
        let command = admin_command(admin::IDENTIFY, nsid, &[what.into()]);
        self.expect(command, Data::Out(4096), Status::SUCCESS).await
    }

    pub async fn log(&self, page: u8, bytes: u32) -> Vec<u8> {
        self.expect(log_page(page, bytes, 0), Data::Out(bytes), Status::SUCCESS).await
    }

    /// What must hold of a PDU, unless this host knows of damage.
    fn must(&self, holds: bool) -> Result<(), Closed> {
        assert!(holds || self.tolerant, "a PDU of the target is wrong");
        if holds { Ok(()) } else { Err(Closed) }
    }

    /// The next PDU of the target, checked as far as every one can be.
    pub async fn next_pdu(&self) -> Result<Pdu, Closed> {
        let common: [u8; COMMON_BYTES] = self.receive(COMMON_BYTES).await?.try_into().unwrap();
        let header = Header::decode(&common);
        self.must(header.is_ok_and(|header| !header.kind.is_of_host()))?;
        let header = header.unwrap();
        let alignment = pdu::alignment(self.alignment).unwrap();
        let rest = header.check(self.digests, alignment, u32::MAX);
        self.must(rest.is_ok_and(|rest| rest.data <= 2 << 20))?;
        let rest = rest.unwrap();
        let raw = [&common[..], &self.receive(rest.header).await?].concat();
        if rest.header_digest {
            self.must(self.receive(4).await? == crc32c(0, &raw).to_le_bytes())?;
        }
        self.receive(rest.padding).await?;
        let data = self.receive(rest.data as usize).await?;
        if rest.data_digest {
            self.must(self.receive(4).await? == crc32c(0, &data).to_le_bytes())?;
        }
        let raw: [u8; SHORT_HEADER_BYTES] = raw.try_into().unwrap();
        let transfer = Transfer::decode(&raw);
        Ok(match header.kind {
            Kind::Response => Pdu::Done(pdu::completion(&raw)),
            Kind::ReadyToTransfer => Pdu::Ready(transfer),
            Kind::ControllerData => {
                assert_eq!(transfer.bytes as usize, data.len());
                let Transfer { command, offset, .. } = transfer;
                Pdu::Data { command, offset, data, flags: header.flags }
            }
            Kind::ControllerTermination => {
                let status = u16::from_le_bytes([raw[8], raw[9]]);
                let information = u32::from_le_bytes([raw[10], raw[11], raw[12], raw[13]]);
                Pdu::Termination(status, information)
            }
            other => panic!("not of a target: {other:?}"),
        })
    }

    /// The connection is terminated for this, and then closed.
    pub async fn expect_fatal(&self, fatal: Fatal) {
        match self.next_pdu().await.unwrap() {
            Pdu::Termination(status, information) => {
                assert_eq!((status, information), fatal.code());
            }
            other => panic!("not terminated: {other:?}"),
        }
        assert!(self.next_pdu().await.is_err(), "closed behind it");
    }
}
