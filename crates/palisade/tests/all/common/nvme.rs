//! A small NVMe/TCP host: one queue a connection, one command at a time.
//!
//! Blocking sockets and the structures of crate `nvme`; no digests, data of writes as asked for.

use nvme::command::{COMMAND_BYTES, Command, Completion, nvm};
use nvme::fabrics::{ANY_CONTROLLER, Connect, ConnectData, NO_FLOW_CONTROL, Property, property};
use nvme::identify::cns;
use nvme::nqn::Nqn;
use nvme::pdu::{
    self, COMMON_BYTES, Digests, Header, InitializeRequest, Kind, SHORT_HEADER_BYTES, Transfer,
    flag,
};
use nvme::sgl::Sgl;
use nvme::status::Status;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Who connects, and to what.
#[derive(Clone, Debug)]
pub struct Host {
    pub address: String,
    pub subsystem: String,
    pub name: String,
}

/// A queue.
pub struct Queue {
    stream: TcpStream,
    /// The controller's number, or why the Connect was refused.
    pub connected: Result<u16, Status>,
}

impl Host {
    /// Connects a queue of a controller.
    pub fn connect(&self, queue: u16, controller: u16) -> io::Result<Queue> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.write_all(&InitializeRequest::default().encode())?;
        stream.read_exact(&mut [0; pdu::INITIALIZE_BYTES])?;
        let nqn = |name: &str| Nqn::new(name).expect("a qualified name");
        let subsystem = nqn(&self.subsystem);
        let host = (!self.name.is_empty()).then(|| nqn(&self.name));
        let data = ConnectData { host_id: [3; 16], controller, subsystem, host }.encode();
        let connect = Connect {
            format: 0,
            queue,
            entries_less_one: 31,
            attributes: NO_FLOW_CONTROL,
            keep_alive_ms: 0,
        };
        let sgl = Sgl::InCapsule { offset: 0, length: data.len() as u32 };
        let mut queue = Queue { stream, connected: Ok(0) };
        queue.send(&connect.encode(1, sgl), &data)?;
        let (done, _) = queue.answer(&[])?;
        let good = done.status.is_success();
        queue.connected = if good { Ok(done.result as u16) } else { Err(done.status) };
        Ok(queue)
    }

    /// Connects the admin queue and one for I/O.
    pub fn enter(&self) -> io::Result<(Queue, Queue)> {
        let mut admin = self.connect(0, ANY_CONTROLLER)?;
        let controller = admin.connected.expect("accepted");
        let enable = Property { offset: property::CONFIGURATION, wide: false, value: 0x46_0001 };
        assert!(admin.call(enable.encode(1, true), &[])?.0.status.is_success());
        let queue = self.connect(1, controller)?;
        queue.connected.expect("accepted");
        Ok((admin, queue))
    }
}

impl Queue {
    fn send(&mut self, command: &Command, data: &[u8]) -> io::Result<()> {
        let header = Header::new(Kind::Command, 0, data.len() as u32, 4, Digests::default());
        let head = pdu::command(&header, command);
        self.stream.write_all(&[&head[..], data].concat())
    }

    /// What a command comes to: its completion and its data. `data` is sent when asked for.
    fn answer(&mut self, data: &[u8]) -> io::Result<(Completion, Vec<u8>)> {
        let mut got = Vec::new();
        loop {
            let mut raw = [0; SHORT_HEADER_BYTES];
            self.stream.read_exact(&mut raw)?;
            let common: &[u8; COMMON_BYTES] = raw.first_chunk().expect("8 bytes");
            let header = Header::decode(common).expect("a header");
            let transfer = Transfer::decode(&raw);
            match header.kind {
                Kind::Response => return Ok((pdu::completion(&raw), got)),
                Kind::ControllerData => {
                    let mut part = vec![0; transfer.bytes as usize];
                    self.stream.read_exact(&mut part)?;
                    got.extend(part);
                    if header.flags & flag::SUCCESS != 0 {
                        return Ok((Completion::of(transfer.command, Status::SUCCESS), got));
                    }
                }
                Kind::ReadyToTransfer => {
                    let from = transfer.offset as usize;
                    let part = &data[from..from + transfer.bytes as usize];
                    let none = Digests::default();
                    let header = Header::new(Kind::HostData, flag::LAST, transfer.bytes, 4, none);
                    self.stream.write_all(&[&transfer.encode(&header), part].concat())?;
                }
                other => panic!("not expected: {other:?}"),
            }
        }
    }

    /// A command from begin to end, as it is.
    pub fn call(&mut self, command: Command, data: &[u8]) -> io::Result<(Completion, Vec<u8>)> {
        self.send(&command, &[])?;
        self.answer(data)
    }

    /// A command for blocks of a namespace that moves so many bytes.
    fn blocks(&mut self, opcode: u8, place: (u32, u64, u64), data: &[u8]) -> io::Result<Vec<u8>> {
        let (nsid, first, count) = place;
        let block = self.block_bytes(nsid);
        let mut bytes = [0; COMMAND_BYTES];
        (bytes[0], bytes[1], bytes[2]) = (opcode, 0x40, 7);
        bytes[4..8].copy_from_slice(&nsid.to_le_bytes());
        let length = (count * block) as u32;
        bytes[24..40].copy_from_slice(&Sgl::Transport { length }.encode());
        bytes[40..48].copy_from_slice(&first.to_le_bytes());
        bytes[48..50].copy_from_slice(&(count as u16 - 1).to_le_bytes());
        let (done, got) = self.call(Command(bytes), data)?;
        if done.status.is_success() {
            Ok(got)
        } else {
            Err(io::Error::other(format!("{:?}", done.status)))
        }
    }

    /// All files of the tests have blocks of 512 bytes.
    fn block_bytes(&self, _: u32) -> u64 {
        512
    }

    pub fn read(&mut self, nsid: u32, first: u64, count: u64) -> io::Result<Vec<u8>> {
        self.blocks(nvm::READ, (nsid, first, count), &[])
    }

    pub fn write(&mut self, nsid: u32, first: u64, data: &[u8]) -> io::Result<()> {
        let count = data.len() as u64 / self.block_bytes(nsid);
        self.blocks(nvm::WRITE, (nsid, first, count), data).map(|_| ())
    }

    /// Identify on the admin queue.
    pub fn identify(&mut self, what: u8, nsid: u32) -> io::Result<Vec<u8>> {
        let mut bytes = [0; COMMAND_BYTES];
        (bytes[0], bytes[1], bytes[2], bytes[40]) = (nvme::command::admin::IDENTIFY, 0x40, 9, what);
        bytes[4..8].copy_from_slice(&nsid.to_le_bytes());
        bytes[24..40].copy_from_slice(&Sgl::Transport { length: 4096 }.encode());
        let (done, got) = self.call(Command(bytes), &[])?;
        assert!(done.status.is_success(), "{:?}", done.status);
        Ok(got)
    }

    /// Numbers of the namespaces that are there.
    pub fn namespaces(&mut self) -> io::Result<Vec<u32>> {
        let list = self.identify(cns::ACTIVE_NAMESPACES, 0)?;
        let ids = list.chunks_exact(4).map(|id| u32::from_le_bytes(id.try_into().expect("4")));
        Ok(ids.take_while(|id| *id != 0).collect())
    }
}
