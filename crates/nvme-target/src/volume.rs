//! The commands of namespaces: what may begin, and what a worker does.
//!
//! NVM, section 3.2 (commands) and 2.1.4 (atomicity: a block is written whole or not at all, and
//! compared and written as one; more is not promised). A namespace's blocks are its volume's.
//!
//! Invariant: a volume is asked only for whole blocks within its size, as it was when the command
//! came.

use crate::access::Export;
use crate::limits::{DATA_MOST, RANGE_BYTES};
use crate::mutants::{self, Mutant};
use crate::server::SCRATCH;
use crate::session::{Admission, Admitted, Flow, Session};
use crate::{Transport, Volumes};
use front::Lease;
use io::{BlockError, Blocks, BufMut, Env, Pool};
use nvme::command::{Command, nvm};
use nvme::log::Access;
use nvme::status::Status;
use std::rc::Rc;

/// The namespace identifier that stands for all.
pub(crate) const ALL: u32 = 0xffff_ffff;

/// A namespace as a queue sees it.
pub(crate) struct Seen<K, V> {
    pub export: Export<K>,
    /// How this controller comes to it.
    pub access: Access,
    /// Its volume, unless this core can't come to it.
    pub volume: Option<V>,
}

/// The namespaces of a queue, as of a generation of the target's changes.
pub(crate) struct View<K, V> {
    changes: Option<u64>,
    /// By number.
    pub all: Vec<Seen<K, V>>,
}

impl<K, V> Default for View<K, V> {
    fn default() -> Self {
        Self { changes: None, all: Vec::new() }
    }
}

impl<K, V> View<K, V> {
    /// The namespace of a number.
    pub fn get(&self, nsid: u32) -> Option<&Seen<K, V>> {
        let at = self.all.binary_search_by_key(&nsid, |seen| seen.export.nsid).ok()?;
        self.all.get(at)
    }
}

/// A volume that a command is for, with its key: when the command is carried out its namespace may
/// be another's.
pub(crate) type Held<X> = (<X as Volumes>::Key, <X as Volumes>::Volume);

/// What a refusal of a volume is to a host.
fn status_of(error: BlockError, fault: Status) -> Status {
    match error {
        BlockError::Bounds => Status::LBA_RANGE,
        BlockError::Unavailable => fault,
        // It is about to go, or to be moved: the host may look for it elsewhere, or again.
        BlockError::Stopped => Status::NOT_READY,
    }
}

/// Offset and bytes of a range of blocks within a volume.
fn extent<V: Blocks>(volume: &V, first: u64, blocks: u64) -> Result<(u64, u64), Status> {
    let block = u64::from(volume.block_bytes());
    let all = volume.bytes() / block;
    let is_outside = match () {
        () if mutants::is(Mutant::RangeWraps) => first.wrapping_add(blocks) > all,
        () if mutants::is(Mutant::RangeAtEnd) => first >= all || blocks > all - first + 1,
        () => first >= all || blocks > all - first,
    };
    if is_outside {
        return Err(Status::LBA_RANGE);
    }
    Ok((first * block, blocks * block))
}

/// The ranges of a Dataset Management command (NVM, figure 41): first block and blocks of each.
fn ranges(data: &[u8]) -> impl Iterator<Item = (u64, u64)> + '_ {
    data.chunks_exact(RANGE_BYTES as usize).map(|range| {
        let blocks: &[u8; 4] = range[4..].first_chunk().expect("a range has 16 bytes");
        let first: &[u8; 8] = range[8..].first_chunk().expect("a range has 16 bytes");
        (u64::from_le_bytes(*first), u64::from(u32::from_le_bytes(*blocks)))
    })
}

impl<E: Env, T: Transport, X: Volumes> Session<E, T, X> {
    /// Looks again for namespaces if any have changed.
    pub(crate) fn refresh(&self) {
        let target = &self.server.target;
        let changes = target.changes();
        let seen = self.view.borrow().changes;
        if seen == Some(changes) || seen.is_some() && mutants::is(Mutant::ViewKept) {
            return;
        }
        let exports = target.namespaces(&self.terms.controller);
        let port = self.terms.controller.association.port;
        let seen = |(export, access): (Export<X::Key>, Access)| {
            let volume = self.server.volumes.open(&export.volume, port);
            Seen { export, access, volume }
        };
        let all = exports.into_iter().map(seen).collect();
        *self.view.borrow_mut() = View { changes: Some(changes), all };
    }

    /// Whether a namespace is still the host's, and still that volume.
    pub(crate) fn still_has(&self, nsid: u32, volume: &X::Key) -> bool {
        self.refresh();
        self.view.borrow().get(nsid).is_some_and(|seen| seen.export.volume == *volume)
    }

    /// Why a namespace is not there, of which the last look found nothing: there is none, or the
    /// controller is lost, which it was before that look if it took its last namespaces.
    pub(crate) fn no_namespace(&self) -> Status {
        if self.is_current() { Status::INVALID_NAMESPACE } else { Status::ABORTED_QUEUE }
    }

    /// Whether a command of an I/O queue may begin.
    pub(crate) fn admit_io(&self, command: &Command) -> Admission<Held<X>> {
        self.refresh();
        let view = self.view.borrow();
        if command.opcode() == nvm::FLUSH && command.namespace() == ALL {
            return Ok(Admitted::plain());
        }
        let seen = view.get(command.namespace()).ok_or_else(|| self.no_namespace())?;
        if let Some(refusal) = seen.access.refusal() {
            return Err(refusal);
        }
        let volume = seen.volume.as_ref().ok_or(Status::NOT_READY)?;
        let flow = match command.opcode() {
            nvm::FLUSH => Flow::Plain,
            nvm::DATASET_MANAGEMENT => {
                Flow::In(((command.dword(10) & 0xff) + 1) * RANGE_BYTES, false)
            }
            opcode @ (nvm::READ | nvm::WRITE | nvm::COMPARE | nvm::WRITE_ZEROES | nvm::VERIFY) => {
                let (_, bytes) = extent(volume, command.first_block(), command.blocks())?;
                match opcode {
                    nvm::WRITE_ZEROES | nvm::VERIFY => Flow::Plain,
                    _ if bytes > DATA_MOST.into() => return Err(Status::INVALID_FIELD),
                    nvm::READ => Flow::Out(bytes as u32),
                    _ => Flow::In(bytes as u32, true),
                }
            }
            _ => return Err(Status::INVALID_OPCODE),
        };
        let held = (seen.export.volume.clone(), volume.clone());
        Ok(Admitted { volume: Some(held), flow })
    }

    /// Carries out a command of a volume, and answers it.
    pub(crate) async fn carry_out_io(
        self: &Rc<Self>,
        slot: u16,
        command: &Command,
        volume: &X::Volume,
        buffer: Option<(BufMut, Lease)>,
    ) {
        if let Err(status) = self.in_order(command, volume).await {
            drop(buffer);
            return self.answer(slot, status, 0);
        }
        let done = match (command.opcode(), buffer) {
            (nvm::READ, Some((into, lease))) => match self.read(command, volume, into).await {
                Ok(data) => return self.answer_with(slot, (data, lease)),
                Err(status) => Err(status),
            },
            (nvm::WRITE, Some((data, lease))) => {
                let done = self.write(command, volume, data).await;
                drop(lease);
                done
            }
            (nvm::COMPARE, Some((data, lease))) => {
                let done = self.compare(command, volume, Some(&data)).await;
                drop((data, lease));
                done
            }
            (nvm::DATASET_MANAGEMENT, Some((data, lease))) => {
                let done = deallocate(command, volume, &data).await;
                drop((data, lease));
                done
            }
            (nvm::VERIFY, _) => self.compare(command, volume, None).await,
            (nvm::WRITE_ZEROES, _) => write_zeroes(command, volume).await,
            (nvm::FLUSH, _) => flush(volume).await,
            _ => Err(Status::INTERNAL),
        };
        self.answer(slot, done.err().unwrap_or(Status::SUCCESS), 0);
    }

    async fn read(
        &self,
        command: &Command,
        volume: &X::Volume,
        into: BufMut,
    ) -> Result<BufMut, Status> {
        let (offset, bytes) = extent(volume, command.first_block(), command.blocks())?;
        let (outcome, data) = volume.read(offset, into).await;
        outcome.map_err(|error| status_of(error, Status::UNRECOVERED_READ))?;
        self.tally.reads.set(self.tally.reads.get() + 1);
        self.tally.read_bytes.set(self.tally.read_bytes.get() + bytes);
        Ok(data)
    }

    async fn write(
        &self,
        command: &Command,
        volume: &X::Volume,
        data: BufMut,
    ) -> Result<(), Status> {
        let (offset, bytes) = extent(volume, command.first_block(), command.blocks())?;
        let outcome = volume.write(offset, data.freeze(), command.is_fua()).await;
        outcome.map_err(|error| status_of(error, Status::WRITE_FAULT))?;
        self.tally.writes.set(self.tally.writes.get() + 1);
        self.tally.written_bytes.set(self.tally.written_bytes.get() + bytes);
        Ok(())
    }

    /// A host with several paths may send a change again by another one: what comes later must take
    /// effect later then.
    async fn in_order(&self, command: &Command, volume: &X::Volume) -> Result<(), Status> {
        match nvm::CHANGES.contains(&command.opcode()) && self.terms.controller.is_shared() {
            true => volume.in_order().await.map_err(|why| status_of(why, Status::WRITE_FAULT)),
            false => Ok(()),
        }
    }

    /// Compares a block, and writes it if it is what it should be.
    pub(crate) async fn compare_and_write(
        &self,
        command: &Command,
        volume: &X::Volume,
        (expected, data): (BufMut, BufMut),
    ) -> Result<(), Status> {
        let (offset, bytes) = extent(volume, command.first_block(), command.blocks())?;
        let blocks = (expected.freeze(), data.freeze());
        match volume.compare_and_write(offset, blocks, command.is_fua()).await {
            Ok(true) => {
                self.tally.writes.set(self.tally.writes.get() + 1);
                self.tally.written_bytes.set(self.tally.written_bytes.get() + bytes);
                Ok(())
            }
            Ok(false) => Err(Status::COMPARE_FAILURE),
            Err(error) => Err(status_of(error, Status::WRITE_FAULT)),
        }
    }

    /// Reads blocks, and compares them to `with` if that is given.
    async fn compare(
        &self,
        command: &Command,
        volume: &X::Volume,
        with: Option<&[u8]>,
    ) -> Result<(), Status> {
        let (offset, bytes) = extent(volume, command.first_block(), command.blocks())?;
        let mut scratch = self.server.take_scratch();
        let mut outcome = Ok(());
        for at in (0..bytes).step_by(SCRATCH) {
            let part = (bytes - at).min(SCRATCH as u64) as usize;
            scratch.truncate(part);
            let (read, back) = volume.read(offset + at, scratch).await;
            let at = at as usize;
            outcome = match read {
                Err(error) => Err(status_of(error, Status::UNRECOVERED_READ)),
                Ok(()) if with.is_some_and(|with| with[at..at + part] != back[..]) => {
                    Err(Status::COMPARE_FAILURE)
                }
                Ok(()) => Ok(()),
            };
            // Where a drive hangs, a volume gives back other memory.
            let whole = back.whole().filter(|whole| whole.len() == SCRATCH);
            scratch = whole.unwrap_or_else(|| Pool::single(SCRATCH));
            if outcome.is_err() {
                break;
            }
        }
        self.server.give_scratch(scratch);
        outcome
    }

    /// Flushes every namespace of this controller, and answers.
    pub(crate) async fn flush_all(self: &Rc<Self>, slot: u16) {
        let volumes: Vec<_> =
            self.view.borrow().all.iter().map(|seen| seen.volume.clone()).collect();
        let mut status = Status::SUCCESS;
        for volume in volumes {
            let done = match volume {
                Some(volume) => flush(&volume).await,
                None => Err(Status::NOT_READY),
            };
            status = done.err().unwrap_or(status);
        }
        self.answer(slot, status, 0);
    }
}

async fn flush<V: Blocks>(volume: &V) -> Result<(), Status> {
    volume.flush().await.map_err(|error| status_of(error, Status::WRITE_FAULT))
}

async fn write_zeroes<V: Blocks>(command: &Command, volume: &V) -> Result<(), Status> {
    let (offset, bytes) = extent(volume, command.first_block(), command.blocks())?;
    let outcome = volume.write_zeroes(offset, bytes, command.is_fua()).await;
    outcome.map_err(|error| status_of(error, Status::WRITE_FAULT))
}

/// Bit of dword 11: the ranges are to be deallocated. All others are hints.
const DEALLOCATE: u32 = 1 << 2;

async fn deallocate<V: Blocks>(command: &Command, volume: &V, data: &[u8]) -> Result<(), Status> {
    let count = (command.dword(10) & 0xff) as usize + 1;
    let data = &data[..count * RANGE_BYTES as usize];
    let counts = |range: &(u64, u64)| range.1 > 0 || mutants::is(Mutant::EmptyRange);
    for (first, blocks) in ranges(data).filter(counts) {
        extent(volume, first, blocks)?;
    }
    if command.dword(11) & DEALLOCATE == 0 {
        return Ok(());
    }
    for (first, blocks) in ranges(data).filter(counts) {
        let (offset, bytes) = extent(volume, first, blocks)?;
        let outcome = volume.discard(offset, bytes).await;
        outcome.map_err(|error| status_of(error, Status::WRITE_FAULT))?;
    }
    Ok(())
}
