//! The on-disk format: array record, record slots, foreign signatures, assembly.
//!
//! Purpose: the code of `docs/format.md`, which is the format; where they differ the page is
//! right. Everything here is a function of bytes and values: no I/O, no clock, no randomness.
//!
//! - [`record`]: what an array record says.
//! - [`encode`] and [`decode`]: a record slot's bytes, each integer written explicitly.
//! - [`slots`]: where record slots are, which record counts, which slot is written next.
//! - [`region`]: the region map: its pages, and where they lie.
//! - [`journal`]: the journal: batches of redo records.
//! - [`owner`]: owner pages: which server has an array, and that it lives.
//! - [`assemble`]: which drives make an array, and why others do not.
//! - [`foreign_signature`]: what else a drive may hold.
//! - [`size`]: how much of a drive is used.
//!
//! Invariant: bytes from drives are not trusted. No input makes `decode`, `newest`, `assemble` or
//! `foreign_signature` panic, loop for long, or allocate more than a few times its own size.

mod assemble;
mod check;
mod codec;
mod decode;
mod encode;
mod error;
pub mod flight;
pub mod journal;
pub mod limits;
mod more;
pub mod owner;
pub mod record;
pub mod region;
mod signature;
pub mod size;
pub mod slots;

pub use assemble::{
    AssembleError, AssembleOptions, Assembly, Found, Missing, StaleReason, assemble,
};
pub use decode::{decode, longer_than};
pub use encode::encode;
pub use error::FormatError;
pub use limits::{AREA_BYTES, FORMAT_VERSION, MAGIC, SLOT_BYTES};
pub use record::{
    Access, Areas, ArrayRecord, Epoch, EpochMark, ExportAddress, ExportRecord, Extent, FcExport,
    Filesystem, GroupRecord, IscsiExport, IscsiServer, LastScrub, Listener, LostRange, LostReason,
    MakeFilesystem, NvmeExport, NvmeFcExport, Owner, Paused, ScrubMode, ScrubRecord, Share,
    ShareExport, SlotRecord, SlotState, VolumeRecord,
};
pub use signature::{Signature, foreign_signature, holds_data};
pub use size::{Split, journal_bytes, split, split_with, usable_bytes};
pub use slots::{LostTail, newest, next_slot, slot_offsets, tail_offset};
