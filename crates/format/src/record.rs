//! What an array record says: plain values, the same on all drives of an array but for
//! `this_slot` and `this_drive`.
//!
//! The epoch changes only through [`ArrayRecord::next_epoch`] and
//! [`ArrayRecord::next_epoch_without`], which keep each slot's last epoch in step; that is how
//! assembly tells a stale drive from one that went its own way.

use crate::FormatError;
use crate::size::Split;
use layout::{Layout, Level, Range};
use units::{Slot, Uuid, Wwpn};

/// An epoch's counter and random id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct EpochMark {
    /// Grows by one with every epoch.
    pub counter: u64,
    /// Random, so that two histories with equal counters differ.
    pub id: u64,
}

/// The epoch of a record, with its predecessor's id (D8).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Epoch {
    /// Grows by one with every epoch; the first is 1.
    pub counter: u64,
    /// Random, so that two histories with equal counters differ.
    pub id: u64,
    /// The id of the epoch before; 0 in the first.
    pub previous: u64,
}

impl Epoch {
    /// The first epoch of a new array.
    pub const fn first(id: u64) -> Self {
        Self { counter: 1, id, previous: 0 }
    }

    /// Counter and id.
    pub const fn mark(self) -> EpochMark {
        EpochMark { counter: self.counter, id: self.id }
    }
}

/// What a slot's drive is worth. *Missing* is not recorded; assembly derives it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SlotState {
    /// Every strip is right.
    InSync,
    /// Strips are right below the border (D17).
    Rebuilding {
        /// Durable border in strips of the data area: stripes of the slot's group.
        border: u64,
    },
    /// The drive is out.
    Failed,
}

/// One slot of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotRecord {
    /// The drive that is, or was, in the slot.
    pub drive: Uuid,
    /// Its serial number, at most 64 bytes; may be empty.
    pub serial: String,
    /// What it is worth.
    pub state: SlotState,
    /// The last epoch it took part in; kept by [`ArrayRecord::next_epoch`]. Older than the
    /// record's when the drive failed or was left behind.
    pub last: EpochMark,
    /// The counter of the epoch up to which a drive that is failed or rebuilding holds everything;
    /// 0: it does not, or it is in sync. Kept by [`ArrayRecord::fail_slot`].
    pub since: u64,
}

/// Where the region map and the journal lie on every drive of an array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Areas {
    /// First byte of the region map area, a whole number of MiB like all of these.
    pub map_start: u64,
    /// Bytes of the region map area.
    pub map_bytes: u64,
    /// First byte of the journal area.
    pub journal_start: u64,
    /// Bytes of the journal area.
    pub journal_bytes: u64,
    /// A written bit stands for 2 to the power of this bands.
    pub shift: u8,
}

/// State of one group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct GroupRecord {
    /// Writes may have been under way: a resync of its dirty regions is owed.
    pub unclean: bool,
    /// A person accepted that the redundancy of a group that lacks a drive may not match its data.
    /// It is trusted until no slot lacks; then a resync of its dirty regions is owed.
    pub loss_accepted: bool,
    /// Whatever was under way in it is in the journal area, so that its redundancy is right
    /// everywhere once that was carried out. Said of parity groups, with a journal key.
    pub guarded: bool,
}

/// A run of array addresses that belongs to a volume; whole rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Extent {
    /// First array address, bytes.
    pub array_start: u64,
    /// Length, bytes.
    pub bytes: u64,
}

/// One volume: its extents one behind the other, cut at `bytes`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeRecord {
    /// Identity.
    pub uuid: Uuid,
    /// Name within the array: 1 to 64 bytes, no `/`, no control characters.
    pub name: String,
    /// Size hosts see, bytes.
    pub bytes: u64,
    /// Where it lies.
    pub extents: Vec<Extent>,
}

/// An export over NVMe/TCP: a namespace of a subsystem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NvmeExport {
    /// The subsystem's qualified name.
    pub subsystem: String,
    /// The namespace's number within it, from 1 on.
    pub nsid: u32,
    /// Where it listens; at least one.
    pub listeners: Vec<Listener>,
    /// Qualified names of the hosts that may have it, at least one; `None`: any may.
    pub hosts: Option<Vec<String>>,
}

/// Where an export over NVMe/TCP or iSCSI listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listener {
    /// `HOST:PORT`.
    pub address: String,
    /// What hosts are told instead, where addresses are translated on the way.
    pub advertise: Option<String>,
}

/// An export over iSCSI: the one unit of a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IscsiExport {
    /// Where it listens; at least one.
    pub portals: Vec<Listener>,
    /// Names of the initiators that may have it; at least one.
    pub initiators: Vec<String>,
    /// The name by which they prove who they are (CHAP); the secret is not in the record.
    pub user: Option<String>,
    /// Tells the secret that the export was made with from those of exports before; below 2^24.
    pub secret: u32,
    /// Who serves it.
    pub server: IscsiServer,
}

/// Who serves an export over iSCSI.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum IscsiServer {
    /// Whoever can.
    #[default]
    Any,
    /// The kernel's LIO.
    Lio,
    /// tgt.
    Tgt,
}

/// An export at a Fibre Channel port, which initiators have by FCP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FcExport {
    /// The port.
    pub port: Wwpn,
    /// The number of the logical unit.
    pub unit: u16,
    /// The ports of the initiators that may have it; at least one.
    pub initiators: Vec<Wwpn>,
}

/// An export at a Fibre Channel port, which hosts have by NVMe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NvmeFcExport {
    /// The port.
    pub port: Wwpn,
    /// Qualified names of the hosts that may have it; at least one.
    pub hosts: Vec<String>,
}

/// A volume's file system, and the shares of it that clients have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShareExport {
    /// The file system is to be made: nobody has been let in yet.
    pub make: Option<MakeFilesystem>,
    /// Where SMB is to be reached, `HOST:PORT`.
    pub smb: String,
    /// Where NFS is to be reached, `HOST:PORT`.
    pub nfs: String,
    /// The shares; at least one.
    pub shares: Vec<Share>,
}

impl ShareExport {
    /// Where it is to be reached by the protocols that its shares have.
    pub fn listens(&self) -> impl Iterator<Item = &str> {
        let has = |is_one: fn(&Share) -> bool| self.shares.iter().any(is_one);
        let smb = has(|share| share.smb).then_some(&*self.smb);
        let nfs = has(|share| share.nfs).then_some(&*self.nfs);
        smb.into_iter().chain(nfs)
    }
}

/// How a file system is to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MakeFilesystem {
    /// Which.
    pub kind: Filesystem,
    /// Whatever the volume holds may go.
    pub overwrite: bool,
}

/// A kind of file system.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Filesystem {
    /// XFS.
    Xfs,
    /// ext4.
    Ext4,
}

/// A share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Share {
    /// Its name, different in every share of an array.
    pub name: String,
    /// By SMB.
    pub smb: bool,
    /// By NFS.
    pub nfs: bool,
    /// Nobody may write.
    pub read_only: bool,
    /// Users that may have it by SMB; all, if it names none.
    pub users: Vec<Access>,
    /// Addresses of clients that may have it by NFS.
    pub clients: Vec<Access>,
}

/// Who may have a share.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Access {
    /// The name of a user, or addresses.
    pub who: String,
    /// Only to read.
    pub read_only: bool,
}

/// Where hosts find an export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ExportAddress {
    /// NBD over TCP, `HOST:PORT`.
    NbdTcp(String),
    /// NBD over a Unix socket, its path.
    NbdUnix(String),
    /// NVMe/TCP.
    NvmeTcp(NvmeExport),
    /// A block device of the server itself.
    Device,
    /// A file of the server itself, its path.
    File(String),
    /// A block device of the server itself by ublk, which its kernel has to have.
    Ublk,
    /// A virtual machine of the server, over vhost-user: its socket's path.
    VhostUser(String),
    /// iSCSI.
    Iscsi(IscsiExport),
    /// Shares of its file system.
    Shares(ShareExport),
    /// FCP at a Fibre Channel port.
    Fc(FcExport),
    /// NVMe at a Fibre Channel port.
    NvmeFc(NvmeFcExport),
}

impl ExportAddress {
    /// Whether it stays on the server.
    pub const fn stays(&self) -> bool {
        self.is_local() || matches!(self, Self::VhostUser(_))
    }

    /// Whether it is served by others than the daemon: the server's kernel, and who serves iSCSI,
    /// Fibre Channel and files.
    pub const fn is_others(&self) -> bool {
        let is_network =
            matches!(self, Self::Iscsi(_) | Self::Shares(_) | Self::Fc(_) | Self::NvmeFc(_));
        self.is_local() || is_network
    }

    /// Whether the server itself uses it.
    pub const fn is_local(&self) -> bool {
        matches!(self, Self::Device | Self::File(_) | Self::Ublk)
    }
}

/// One export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExportRecord {
    /// Number, different in every export of the array.
    pub id: u32,
    /// The volume it serves.
    pub volume: Uuid,
    /// Where it listens.
    pub address: ExportAddress,
}

/// How the last finished scrub ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LastScrub {
    /// Bytes of array data whose redundancy was checked.
    pub checked_bytes: u64,
    /// Stripes that did not match, or had blocks that could not be read.
    pub mismatches: u64,
    /// Stripes of these that were made right.
    pub repaired: u64,
    /// Stripes of these of which nobody can know which strip is wrong.
    pub unlocated: u64,
    /// Stripes of these with blocks that could neither be read nor recovered.
    pub unreadable: u64,
    /// When it ended, seconds since 1970.
    pub unix_seconds: u64,
}

/// Why nobody can give a range of the array back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LostReason {
    /// A drive was rebuilt while another could not read what that needed.
    Rebuild,
    /// A resync needed blocks that a drive could not read.
    Resync,
    /// It was being written at a crash after which a drive was gone.
    Crash,
    /// Blocks beside it were written while nothing could give it back.
    Write,
}

/// A range of array addresses whose content is lost, until it is written anew.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LostRange {
    /// First array address, bytes.
    pub start: u64,
    /// Length, bytes.
    pub bytes: u64,
    /// Why.
    pub reason: LostReason,
}

/// Which kinds of task a person has told to wait.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Paused {
    /// Rebuilds.
    pub rebuild: bool,
    /// Resyncs.
    pub resync: bool,
    /// The scrub; only while there is one.
    pub scrub: bool,
}

/// What a scrub writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ScrubMode {
    /// Nothing.
    Check,
    /// Over strips that are known to be wrong.
    Repair,
    /// That, and where nobody can know, what the data says.
    TrustData,
}

/// A scrub that has not ended: where it goes on, and what it found before.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ScrubRecord {
    /// What it writes.
    pub mode: ScrubMode,
    /// The group at which it goes on.
    pub group: u16,
    /// The stripe of it at which it goes on.
    pub stripe: u64,
    /// As in [`LastScrub`].
    pub checked_bytes: u64,
    /// As in [`LastScrub`].
    pub mismatches: u64,
    /// As in [`LastScrub`].
    pub repaired: u64,
    /// As in [`LastScrub`].
    pub unlocated: u64,
    /// As in [`LastScrub`].
    pub unreadable: u64,
}

/// Which running system has the array.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Owner {
    /// The host.
    pub host: Uuid,
    /// The host's boot.
    pub boot: Uuid,
}

/// The array record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayRecord {
    /// Identity of the array.
    pub array: Uuid,
    /// Name of the array: 1 to 64 bytes, no `/`, no control characters.
    pub name: String,
    /// Its epoch.
    pub epoch: Epoch,
    /// Counts writes of records; the same on all drives (in the slot header).
    pub sequence: u64,
    /// The slot of the drive that holds this copy.
    pub this_slot: Slot,
    /// That drive.
    pub this_drive: Uuid,
    /// The array's block, bytes: 512 or 4096.
    pub block_bytes: u32,
    /// Its level.
    pub level: Level,
    /// Where the data area begins on each drive, bytes.
    pub data_offset: u64,
    /// Bytes of each drive's data area.
    pub data_bytes: u64,
    /// Its address ranges.
    pub ranges: Vec<Range>,
    /// Its slots, in order.
    pub slots: Vec<SlotRecord>,
    /// Its groups, in order.
    pub groups: Vec<GroupRecord>,
    /// Its volumes.
    pub volumes: Vec<VolumeRecord>,
    /// Its exports.
    pub exports: Vec<ExportRecord>,
    /// The last finished scrub.
    pub last_scrub: Option<LastScrub>,
    /// Other servers may reach its drives: whoever has it says so there, and an owner counts.
    pub shared: bool,
    /// Who has it, if it is shared. What older releases left here means nothing without that.
    pub owner: Option<Owner>,
    /// Means nothing: what is found stays.
    pub heartbeat: u64,
    /// It was last started with `--start-degraded`.
    pub started_degraded: bool,
    /// Creation finished: whatever was not written reads as zeros. Without it the array can only be
    /// wiped.
    pub zeroed: bool,
    /// A later release forbids this one to write (unknown read-only-compat flag). Such a record
    /// is never encoded.
    pub read_only: bool,
    /// Where region map and journal are.
    pub areas: Areas,
    /// What a batch of the journal must name to count; 0: none does. Random, and a new one
    /// whenever older batches end to count.
    pub journal_key: u64,
    /// What nobody can give back: ascending, without overlap.
    pub lost: Vec<LostRange>,
    /// Which tasks wait until they are told to go on.
    pub paused: Paused,
    /// The scrub that has not ended.
    pub scrub: Option<ScrubRecord>,
}

impl ArrayRecord {
    /// The record of a new array, everything in sync, its creation not finished, without volumes.
    /// `split` is how its drives are divided, and the layout that of their data areas; `drives` are
    /// UUIDs and serial numbers in the order of the slots, of which there are `layout.drives()`.
    pub fn new(
        array: Uuid,
        name: &str,
        epoch_id: u64,
        block_bytes: u32,
        layout: &Layout,
        split: &Split,
        drives: &[(Uuid, String)],
    ) -> Self {
        let epoch = Epoch::first(epoch_id);
        let slots = drives.iter().map(|(drive, serial)| SlotRecord {
            drive: *drive,
            serial: serial.clone(),
            state: SlotState::InSync,
            last: epoch.mark(),
            since: 0,
        });
        Self {
            array,
            name: name.to_owned(),
            epoch,
            sequence: 1,
            this_slot: Slot(0),
            this_drive: drives.first().map_or(Uuid::NIL, |(drive, _)| *drive),
            block_bytes,
            level: layout.level(),
            data_offset: split.data_offset,
            data_bytes: layout.data_bytes(),
            ranges: layout.ranges().to_vec(),
            slots: slots.collect(),
            groups: vec![GroupRecord::default(); layout.groups().into()],
            volumes: Vec::new(),
            exports: Vec::new(),
            last_scrub: None,
            shared: false,
            owner: None,
            heartbeat: 0,
            started_degraded: false,
            zeroed: false,
            read_only: false,
            areas: split.areas,
            journal_key: 0,
            lost: Vec::new(),
            paused: Paused::default(),
            scrub: None,
        }
    }

    /// Calls a slot failed, and keeps up to when its drive holds everything. The next epoch must
    /// follow. Panics when there is no such slot.
    pub fn fail_slot(&mut self, slot: Slot) {
        let slot = &mut self.slots[slot.index()];
        if slot.state == SlotState::InSync {
            slot.since = slot.last.counter;
        }
        slot.state = SlotState::Failed;
    }

    /// Whether its own drive has failed by it: a drive that is being put back says so until it has
    /// joined. No other record does.
    pub fn given_up(&self) -> bool {
        self.slots.get(self.this_slot.index()).is_some_and(|own| own.state == SlotState::Failed)
    }

    /// What a slot's drive must offer at least, bytes.
    pub const fn drive_bytes(&self) -> u64 {
        self.data_offset + self.data_bytes + crate::AREA_BYTES
    }

    /// The layout that the ranges describe. Cannot fail for a record that was decoded or checked.
    pub fn layout(&self) -> Result<Layout, FormatError> {
        Ok(Layout::from_ranges(self.level, self.ranges.clone(), self.data_bytes)?)
    }

    /// Whether the record keeps every rule of the format.
    pub fn check(&self) -> Result<(), FormatError> {
        crate::check::check(self)
    }

    /// Begins the next epoch; `id` is random. Set the slots' states before: the slots that are
    /// not failed then take part in the new epoch, the failed ones keep their last.
    pub fn next_epoch(&mut self, id: u64) {
        self.next_epoch_without(id, |_| false);
    }

    /// The same, leaving drives behind: they keep the last epoch they took part in, and count
    /// again when they are back. Sound only while their groups acknowledge no write.
    pub fn next_epoch_without(&mut self, id: u64, left_behind: impl Fn(Slot) -> bool) {
        self.epoch = Epoch { counter: self.epoch.counter + 1, id, previous: self.epoch.id };
        let mark = self.epoch.mark();
        for (number, slot) in (0u16..).map(Slot).zip(&mut self.slots) {
            if slot.state != SlotState::Failed && !left_behind(number) {
                slot.last = mark;
            }
        }
    }

    /// The copy for the drive in `slot`. Panics when there is no such slot.
    pub fn for_slot(&self, slot: Slot) -> Self {
        let mut copy = self.clone();
        copy.this_slot = slot;
        copy.this_drive = self.slots[slot.index()].drive;
        copy
    }

    /// Makes good for accepted losses: a group whose slots are all in sync again owes the resync
    /// that it could not have without them.
    pub fn settle_losses(&mut self, layout: &Layout) {
        for (number, group) in (0u16..).map(units::GroupNo).zip(&mut self.groups) {
            let in_sync = |slot: Slot| self.slots[slot.index()].state == SlotState::InSync;
            if group.loss_accepted && layout.slots(number).all(in_sync) {
                (group.loss_accepted, group.unclean) = (false, true);
            }
        }
    }

    /// True when the group owes a resync while it lacks a drive; what a guarded one owes then is to
    /// carry out what its journal area says.
    pub fn owes_resync(&self, layout: &Layout, group: units::GroupNo) -> bool {
        let record = self.groups[group.index()];
        record.unclean && !record.guarded && layout.m(group) > 0
    }
}
