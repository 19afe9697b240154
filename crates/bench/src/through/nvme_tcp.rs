//! A host of NVMe/TCP: no digests, commands' data in the capsule where it fits.
//!
//! NVM Express TCP transport specification, sections 3.3 (data transfers) and 3.6 (PDUs).

use super::line::{Ask, Line, Protocol};
use io::{Closed, Transport};
use nvme::command::{Command, nvm};
use nvme::pdu::{self, Digests, Header, Kind, SHORT_HEADER_BYTES, Transfer, flag};
use nvme::sgl::Sgl;
use nvme_target::limits::{CAPSULE_DATA, DATA_MOST};

/// Bytes of a block of the namespaces.
pub const BLOCK: u64 = 512;
/// Bytes of a request at most.
pub const LARGEST: usize = DATA_MOST as usize;

/// See the module.
pub struct NvmeTcp;

impl Protocol for NvmeTcp {
    type Kept = ();

    fn ask((): &(), out: &mut Vec<u8>, slot: u16, (space, at): (u32, u64), what: Ask<'_>) {
        let (opcode, bytes, data) = match what {
            Ask::Read(bytes) => (nvm::READ, bytes, &[][..]),
            Ask::Write(data) if data.len() <= CAPSULE_DATA as usize => {
                (nvm::WRITE, data.len(), data)
            }
            // The target asks for it.
            Ask::Write(data) => (nvm::WRITE, data.len(), &[][..]),
        };
        let length = bytes as u32;
        let sgl = match data.is_empty() {
            true => Sgl::Transport { length },
            false => Sgl::InCapsule { offset: 0, length },
        };
        let command = Command::new(opcode, slot, space, sgl);
        let command = command.with_blocks(at / BLOCK, length / BLOCK as u32, false);
        let header = Header::new(Kind::Command, 0, data.len() as u32, 4, Digests::default());
        out.extend(pdu::command(&header, &command));
        out.extend(data);
    }

    async fn receive(line: &Line<Self>) -> Result<(), Closed> {
        let mut raw = [0; SHORT_HEADER_BYTES];
        line.stream.read_exact(&mut raw).await?;
        let header = raw.first_chunk().and_then(|own| Header::decode(own).ok()).ok_or(Closed)?;
        match header.kind {
            Kind::Response => {
                let done = pdu::completion(&raw);
                line.answer(done.id, done.status.is_success())
            }
            Kind::ControllerData => {
                let Transfer { command, offset, bytes, .. } = Transfer::decode(&raw);
                // The target aligns data to 4 bytes, as it was asked to: there is no padding.
                line.fill(command, Some((offset as usize, bytes as usize))).await?;
                match header.flags & flag::SUCCESS {
                    0 => Ok(()),
                    _ => line.answer(command, true),
                }
            }
            Kind::ReadyToTransfer => {
                let wanted = Transfer::decode(&raw);
                let data = line.data(wanted.command)?;
                let (from, bytes) = (wanted.offset as usize, wanted.bytes as usize);
                let part = data.get(from..from.saturating_add(bytes)).ok_or(Closed)?;
                let last = (flag::LAST, wanted.bytes, 4, Digests::default());
                let header = Header::new(Kind::HostData, last.0, last.1, last.2, last.3);
                line.send(|out| {
                    out.extend(wanted.encode(&header));
                    out.extend(part);
                });
                Ok(())
            }
            _ => Err(Closed),
        }
    }
}
