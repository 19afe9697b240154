//! Memory that is shared by descriptors.
//!
//! It stays the machine's: it is not locked here, as the daemon's own is, so that the machine may
//! be paged, ballooned and merged as it would be without.

#![allow(unsafe_code)] // one mapping is not locked

use crate::session::Refused;
use rustix::fs::{MemfdFlags, SealFlags};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use vhost::vhost_user::message::VhostUserMemoryRegion;
use vhost_user::Memory;
use vm_memory::{
    FileOffset, GuestAddress, GuestMemoryMmap, GuestMemoryRegion, GuestRegionMmap, MmapRegion,
};

/// Most parts of a machine's memory.
const PARTS_MAX: usize = 32;
/// The kind of file that hugetlbfs has (`HUGETLBFS_MAGIC` in statfs(2)).
const HUGE_PAGES: i64 = 0x958458f6;
/// Most bytes of it.
const BYTES_MAX: u64 = 1 << 44;

/// A machine's memory.
pub struct Map {
    /// As rings see it: by the machine's own addresses.
    pub memory: Memory,
    /// For each part: where the process that runs the machine has it, how much that is, and where
    /// the machine has it.
    parts: Vec<(u64, u64, u64)>,
}

impl Map {
    /// Maps all that a machine shares.
    ///
    /// # Errors
    /// It can't be.
    pub fn new(parts: &[VhostUserMemoryRegion], files: Vec<File>) -> Result<Self, Refused> {
        if parts.is_empty() || parts.len() > PARTS_MAX || parts.len() != files.len() {
            return Err(Refused("parts of memory and descriptors for them".to_owned()));
        }
        let whole = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.memory_size));
        if whole > BYTES_MAX {
            return Err(Refused("more memory than a machine has".to_owned()));
        }
        let mut regions = Vec::new();
        for (part, file) in parts.iter().zip(files) {
            let (offset, bytes) = (part.mmap_offset, part.memory_size);
            regions.push(region(file, (offset, bytes), part.guest_phys_addr)?);
        }
        let of =
            |part: &VhostUserMemoryRegion| (part.user_addr, part.memory_size, part.guest_phys_addr);
        regions.sort_by_key(GuestMemoryRegion::start_addr);
        let memory = GuestMemoryMmap::from_regions(regions);
        let memory = memory.map_err(|error| Refused(format!("memory: {error}")))?;
        Ok(Self { memory: Arc::new(memory), parts: parts.iter().map(of).collect() })
    }

    /// Where the machine has what the process that runs it has at an address.
    pub fn of_machine(&self, address: u64) -> Option<u64> {
        self.parts.iter().find_map(|(begin, bytes, machine)| {
            let offset = address.checked_sub(*begin).filter(|offset| offset < bytes)?;
            machine.checked_add(offset)
        })
    }
}

/// Maps a part of a file. One that can shrink is refused: who touches what is gone is ended by the
/// kernel.
fn region(file: File, (offset, bytes): (u64, u64), at: u64) -> Result<GuestRegionMmap, Refused> {
    let failed = |error: &dyn core::fmt::Display| Refused(format!("memory: {error}"));
    // What is no memory has no seals.
    let seals = rustix::fs::fcntl_get_seals(&file).unwrap_or(SealFlags::empty());
    if !seals.contains(SealFlags::SHRINK) {
        return Err(Refused("memory that may shrink; use memory-backend-memfd".to_owned()));
    }
    // What lacks a page of that kind ends who touches it, too.
    let about = rustix::fs::fstatfs(&file).map_err(|error| failed(&error))?;
    if about.f_type == HUGE_PAGES {
        return Err(Refused(
            "memory of a pool of huge pages, which may run out; leave out hugetlb=on".to_owned(),
        ));
    }
    let length = file.metadata().map_err(|error| failed(&error))?.len();
    if offset.checked_add(bytes).is_none_or(|end| end > length) {
        return Err(Refused("memory: its file is too short".to_owned()));
    }
    let bytes = usize::try_from(bytes).map_err(|error| failed(&error))?;
    let region = MmapRegion::from_file(FileOffset::new(file, offset), bytes);
    let region = region.map_err(|error| failed(&error))?;
    // SAFETY: these pages are mapped, by this very region; that they may be paged out changes
    // nothing that is read there.
    let unlocked = unsafe { rustix::mm::munlock(region.as_ptr().cast(), region.size()) };
    unlocked.map_err(|error| failed(&error))?;
    GuestRegionMmap::new(region, GuestAddress(at))
        .ok_or_else(|| Refused("memory: it ends beyond all addresses".to_owned()))
}

/// Maps one part of a file as memory of its own.
///
/// # Errors
/// It can't be.
pub fn alone(file: File, (offset, bytes): (u64, u64)) -> Result<Memory, Refused> {
    let region = region(file, (offset, bytes), 0)?;
    let memory = GuestMemoryMmap::from_regions(vec![region]);
    memory.map(Arc::new).map_err(|error| Refused(format!("memory: {error}")))
}

/// New memory of this many bytes, all zeros, which does not shrink.
///
/// # Errors
/// What the kernel says.
pub fn fresh(bytes: u64) -> Result<File, Refused> {
    let failed = |error: rustix::io::Errno| Refused(format!("memory: {error}"));
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file: OwnedFd = rustix::fs::memfd_create("palisade-flight", flags).map_err(failed)?;
    rustix::fs::ftruncate(&file, bytes).map_err(failed)?;
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals).map_err(failed)?;
    Ok(file.into())
}
