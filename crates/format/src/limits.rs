//! Every constant of the format, under the names of `docs/format.md`, and how they relate.

use units::MIB;

/// First bytes of a record slot.
pub const MAGIC: [u8; 8] = *b"PALISADE";
/// Version in the slot header.
pub const FORMAT_VERSION: u32 = 3;
/// Bytes of the head area, and of the tail area.
pub const AREA_BYTES: u64 = MIB;
/// Bytes of one record slot.
pub const SLOT_BYTES: u64 = 256 << 10;
/// Bytes of a slot's header.
pub const HEADER_BYTES: usize = 128;
/// Bytes of the fixed part of the array record.
pub const FIXED_BYTES: usize = 192;
/// Bytes of one address range.
pub const RANGE_BYTES: usize = 64;
/// Bytes of a slot entry without its serial.
pub const SLOT_ENTRY_BYTES: usize = 56;
/// Bytes of a group entry.
pub const GROUP_ENTRY_BYTES: usize = 8;
/// Bytes of a volume entry without name and extents.
pub const VOLUME_ENTRY_BYTES: usize = 32;
/// Bytes of an extent.
pub const EXTENT_BYTES: usize = 16;
/// Bytes of an export entry without its address.
pub const EXPORT_ENTRY_BYTES: usize = 24;
/// Most bytes of a name.
pub const NAME_MAX: usize = 64;
/// Most bytes of a serial number.
pub const SERIAL_MAX: usize = 64;
/// Most bytes of an export's address.
pub const ADDRESS_MAX: usize = 256;
/// Most volumes of an array.
pub const VOLUMES_MAX: usize = 256;
/// Most extents of all volumes of an array together.
pub const EXTENTS_MAX: usize = 4096;
/// Most bytes of what an export over NVMe/TCP or iSCSI says behind its entry.
pub const NVME_EXPORT_MAX: usize = 16384;
/// Bytes of that before its texts, of either.
pub const NVME_EXPORT_BYTES: usize = 8;
/// Most addresses that an export over NVMe/TCP or iSCSI listens on.
pub const LISTENERS_MAX: usize = 16;
/// Most hosts that an export over NVMe/TCP or iSCSI names.
pub const HOSTS_MAX: usize = 128;
/// The largest namespace number.
pub const NAMESPACES_MAX: u32 = 1024;
/// Most bytes of a qualified name of NVMe.
pub const NQN_MAX: usize = 223;
/// Most bytes of a name of iSCSI.
pub const IQN_MAX: usize = 223;
/// The largest number of a logical unit at a Fibre Channel port.
pub const UNITS_MAX: u16 = 4095;
/// Bytes of what an export at such a port says before its initiators or hosts.
pub const FC_EXPORT_BYTES: usize = 16;
/// Numbers that tell secrets apart are smaller.
pub const SECRETS_END: u32 = 1 << 24;
/// Most bytes of the name by which initiators prove who they are; of a user or client of a share.
pub const USER_MAX: usize = 64;
/// Most shares of a volume.
pub const SHARES_MAX: usize = 128;
/// Most bytes of a share's name.
pub const SHARE_NAME_MAX: usize = 240;
/// Bytes of a share without who may have it, and without its name.
pub const SHARE_BYTES: usize = 8;
/// Most exports of an array.
pub const EXPORTS_MAX: usize = 256;
/// Epochs and sequence numbers are smaller: nobody gets there, and one more never overflows.
pub const COUNTERS_END: u64 = 1 << 60;
/// What is read is smaller than this, so that whoever goes on from it never comes to the end.
pub const COUNTERS_READ_END: u64 = COUNTERS_END / 2;
/// Bytes of an entry of the list of lost ranges.
pub const LOST_ENTRY_BYTES: usize = 16;
/// Most entries of that list.
pub const LOST_MAX: usize = 4096;
/// Lost ranges are counted in units of this many bytes, whatever the block.
pub const LOST_UNIT: u64 = 512;
/// Bytes of what a record says of its tasks.
pub const TASKS_BYTES: usize = 80;
/// First bytes of a page of the region map.
pub const PAGE_MAGIC: [u8; 8] = *b"PALIREGN";
/// Bytes of a page of the region map.
pub const PAGE_BYTES: usize = 4096;
/// Bytes of a page's header.
pub const PAGE_HEADER_BYTES: usize = 64;
/// Bytes of a region's entry in its page.
pub const REGION_ENTRY_BYTES: usize = 32;
/// Entries of a page.
pub const PAGE_ENTRIES: usize = (PAGE_BYTES - PAGE_HEADER_BYTES) / REGION_ENTRY_BYTES;
/// Written bits of a region.
pub const REGION_BITS: u64 = 64;
/// A group has no more regions than this: bands of larger ones share bits.
pub const REGIONS_MAX: u64 = 1 << 20;
/// The journal area of a new array has no less, and a thousandth of the drive where that is more,
pub const JOURNAL_BYTES_MIN: u64 = MIB;
/// up to this.
pub const JOURNAL_BYTES_MAX: u64 = 64 * MIB;
/// First bytes of a batch of the journal.
pub const JOURNAL_MAGIC: [u8; 8] = *b"PALIJRNL";
/// A batch begins and ends at a multiple of this, and so does its payload.
pub const BATCH_ALIGN: usize = 4096;
/// Bytes of a batch's header.
pub const BATCH_HEADER_BYTES: usize = 128;
/// Bytes of an entry without its ranges.
pub const ENTRY_BYTES: usize = 16;
/// Bytes of a range of an entry.
pub const JOURNAL_RANGE_BYTES: usize = 24;
/// First bytes of an in-flight page.
pub const FLIGHT_MAGIC: [u8; 8] = *b"PALIFLGT";
/// Bytes of an in-flight page's header.
pub const FLIGHT_HEADER_BYTES: usize = 128;
/// Bytes of an entry of an in-flight page.
pub const FLIGHT_ENTRY_BYTES: usize = 16;
/// Largest in-flight page.
pub const FLIGHT_BYTES_MAX: usize = 65536;
/// First bytes of an owner page.
pub const OWNER_MAGIC: [u8; 8] = *b"PALIOWNR";
/// Where a drive has its owner page: behind the record slots of the head area.
pub const OWNER_AT: u64 = 2 * SLOT_BYTES;
/// Bytes of an owner page.
pub const OWNER_BYTES: usize = 4096;
/// Bytes of its header.
pub const OWNER_HEADER_BYTES: usize = 192;
/// Bytes of these that say whose it is, from its begin on.
pub const OWNER_NAMED_BYTES: usize = 64;
/// Bytes of a controller in it.
pub const CONTROLLER_BYTES: usize = 16;
/// Most controllers in it.
pub const CONTROLLERS_MAX: usize = 128;
/// A slot image is a multiple of this, whatever the block size.
pub const IMAGE_ALIGN: usize = 4096;

/// Most bytes of all exports' entries with what they say.
pub const EXPORTS_BYTES_MAX: usize = EXPORTS_MAX * (EXPORT_ENTRY_BYTES + ADDRESS_MAX);

/// Most bytes of an array record.
pub const RECORD_MAX: usize = SLOT_BYTES as usize - HEADER_BYTES;

const LARGEST: usize = FIXED_BYTES
    + NAME_MAX
    + layout::MAX_RANGES * RANGE_BYTES
    + layout::MAX_DRIVES as usize * (SLOT_ENTRY_BYTES + SERIAL_MAX)
    + layout::MAX_GROUPS as usize * GROUP_ENTRY_BYTES
    + VOLUMES_MAX * (VOLUME_ENTRY_BYTES + NAME_MAX)
    + EXTENTS_MAX * EXTENT_BYTES
    + EXPORTS_BYTES_MAX
    + 8
    + LOST_MAX * LOST_ENTRY_BYTES
    + TASKS_BYTES;

// The largest record that the limits allow fits its slot, and two slots fit an area.
const _: () = assert!(LARGEST <= RECORD_MAX);
const _: () = assert!(2 * SLOT_BYTES <= AREA_BYTES);
const _: () = assert!(PAGE_HEADER_BYTES + PAGE_ENTRIES * REGION_ENTRY_BYTES == PAGE_BYTES);
const _: () = assert!(MIB as usize % (2 * PAGE_BYTES) == 0);
const _: () = assert!(OWNER_AT + OWNER_BYTES as u64 <= AREA_BYTES);
const _: () = assert!(OWNER_HEADER_BYTES + CONTROLLERS_MAX * CONTROLLER_BYTES <= OWNER_BYTES);
const _: () = assert!((SLOT_BYTES as usize).is_multiple_of(IMAGE_ALIGN));
