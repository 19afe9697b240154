//! PDUs of a host as bytes, to be sent as they are or with some of them changed.

use super::Rig;
use super::host::{Data, Host, Pdu, blocks};
use nvme::command::{Command, nvm};
use nvme::pdu::{self, Digests, Header, Kind, Transfer};
use nvme::sgl::Sgl;
use nvme::status::Status;
use palisade_nvme_target::EndReason;
use parity::crc32c;
use std::cell::Cell;
use std::rc::Rc;

/// No digests.
pub const PLAIN: Digests = Digests { header: false, data: false };

/// How far a connection has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    Opened,
    Initialized,
    Admin,
    Io,
}

pub const STAGES: [Stage; 4] = [Stage::Opened, Stage::Initialized, Stage::Admin, Stage::Io];

/// Why a connection ended.
pub type Ended = Rc<Cell<Option<EndReason>>>;

/// A connection to core 0, how it ends, and one for an admin queue if the former is for I/O.
pub fn pair(rig: &Rig) -> (Host, Ended, Host) {
    let (end, ended) = rig.connect(0, Default::default());
    (Host::new(end), ended, rig.host())
}

/// Two connections, each to a core of its own: one for an admin queue, one for I/O.
pub fn with_io(rig: &Rig, configure: impl Fn(&mut Host)) -> (Host, Host) {
    let mut both = [0, 1].map(|core| Host::new(rig.connect(core, Default::default()).0));
    both.iter_mut().for_each(configure);
    both.into()
}

/// An admin and an I/O queue of one controller.
pub async fn enter(admin: &Host, io: &Host) {
    let controller = admin.enter().await;
    let done = io.join(1, controller).await.unwrap();
    assert_eq!((done.status, done.result), (Status::SUCCESS, controller.into()));
}

/// Brings the first connection to a stage.
pub async fn reach(host: &Host, admin: &Host, stage: Stage) {
    match stage {
        Stage::Opened => {}
        Stage::Initialized => {
            host.initialize().await.unwrap();
        }
        Stage::Admin => {
            host.enter().await;
        }
        Stage::Io => {
            enter(admin, host).await;
        }
    }
}

/// A command with this identifier whose data is told so.
pub fn with(mut command: Command, id: u16, sgl: Sgl) -> Command {
    command.0[2..4].copy_from_slice(&id.to_le_bytes());
    command.0[24..40].copy_from_slice(&sgl.encode());
    command
}

fn add_digest(all: &mut Vec<u8>, is_there: bool, of: &[u8]) {
    if is_there {
        all.extend(crc32c(0, of).to_le_bytes());
    }
}

/// A PDU with data, or none.
fn whole(head: &[u8], header: &Header, digests: Digests, data: &[u8]) -> Vec<u8> {
    let mut all = head.to_vec();
    add_digest(&mut all, digests.header, head);
    if !data.is_empty() {
        all.resize(header.data_offset.into(), 0);
        all.extend(data);
        add_digest(&mut all, digests.data, data);
    }
    all
}

/// A command's capsule.
pub fn capsule(digests: Digests, command: &Command, data: &[u8]) -> Vec<u8> {
    let header = Header::new(Kind::Command, 0, data.len() as u32, 4, digests);
    whole(&pdu::command(&header, command), &header, digests, data)
}

/// Data that was asked for, or not.
pub fn host_data(digests: Digests, transfer: &Transfer, flags: u8, data: &[u8]) -> Vec<u8> {
    let header = Header::new(Kind::HostData, flags, data.len() as u32, 4, digests);
    whole(&transfer.encode(&header), &header, digests, data)
}

/// The shortest PDU whose first byte is this.
pub fn shortest(kind: u8) -> Vec<u8> {
    let bytes: u8 = match kind {
        0 | 1 => 128,
        4 => 72,
        _ => 24,
    };
    let mut all = vec![0; bytes.into()];
    (all[0], all[2], all[4]) = (kind, bytes, bytes);
    all
}

/// Begins a write of blocks of namespace 1 and waits for the request for its data.
pub async fn ask(host: &Host, first: u64, data: &[u8]) -> Transfer {
    let count = (data.len() / super::BLOCK) as u32;
    host.begin(blocks(nvm::WRITE, first, count), &Data::In(data)).await.unwrap();
    match host.next_pdu().await.unwrap() {
        Pdu::Ready(ready) => ready,
        other => panic!("data is asked for: {other:?}"),
    }
}
