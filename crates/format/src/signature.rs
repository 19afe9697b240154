//! What else a drive may hold: signatures of file systems, partition tables and other storage.
//!
//! Purpose: no drive is taken that holds something of somebody (D11). Short magics are believed
//! only together with fields that must fit, because drives full of random bytes are common here.
//! Offsets and magics are those of each format's own documentation, as libblkid knows them.

use crate::limits::MAGIC;

/// Something that a drive holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// What it is, for people: `ext4`, `GPT partition table`, …
    pub what: &'static str,
    /// Where it was seen.
    pub detail: String,
}

const SECTOR: usize = 512;
const MD_MAGIC: u32 = 0xa92b_4efc;

/// What is told by a magic alone: offset from the drive's begin, magic, what it is.
const MAGICS: [(usize, &[u8], &str); 38] = [
    (0, b"LUKS\xba\xbe\x00\x01", "LUKS"),
    (0, b"LUKS\xba\xbe\x00\x02", "LUKS"),
    (0, b"bluestore block device", "Ceph BlueStore"),
    (3, b"NTFS    ", "NTFS"),
    (3, b"EXFAT   ", "exFAT"),
    (3, b"-FVE-FS-", "BitLocker"),
    (512, b"EFI PART", "GPT partition table"),
    (4096, b"EFI PART", "GPT partition table"),
    (65536 + 64, b"_BHRfS_M", "btrfs"),
    (4096 + 24, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81", "bcache"),
    (4096 + 24, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef", "bcachefs"),
    (32769, b"CD001\x01", "ISO 9660"),
    (0, b"hsqs\x00\x00\x00\x00", "squashfs"),
    (1024, b"\x10\x20\xf5\xf2", "F2FS"),
    (1024, b"\xe2\xe1\xf5\xe0", "EROFS"),
    (1024, b"\x02\0\0\0\0\0\x34\x34", "NILFS2"),
    (1024, b"H+\0\x04", "HFS+"),
    (1024, b"HX\0\x05", "HFS+"),
    (1024, b"OCFSV2", "OCFS2"),
    (2048, b"OCFSV2", "OCFS2"),
    (4096, b"OCFSV2", "OCFS2"),
    (8192, b"OCFSV2", "OCFS2"),
    (32, b"NXSB", "APFS"),
    (32, b"ORCLDISK", "Oracle ASM"),
    (32768, b"JFS1", "JFS"),
    (65536, b"\x01\x16\x19\x70", "GFS2"),
    (65536, b"ReIsEr4", "Reiser4"),
    (65536 + 52, b"ReIsEr", "ReiserFS"),
    (8192 + 52, b"ReIsEr", "ReiserFS"),
    (65536 + 1372, b"\x19\x01\x54\x19", "UFS"),
    (SECTOR + 4, b"!Stra0tis\x86\xff\x02^\x41rh", "Stratis"),
    (0, b"dmvdo001", "VDO"),
    (0, b"QFI\xfb", "QCOW2 image"),
    (0, b"KDMV", "VMDK image"),
    (0, b"vhdxfile", "VHDX image"),
    (0, b"conectix", "VHD image"),
    (64, b"\x7f\x10\xda\xbe", "VDI image"),
    (8192 + 1372, b"\x54\x19\x01\x00", "UFS"),
];

/// What is judged at once where nothing is known: whether it looks random.
const PIECE_BYTES: usize = 4096;

fn at(bytes: &[u8], offset: usize, magic: &[u8]) -> bool {
    bytes.get(offset..).is_some_and(|rest| rest.starts_with(magic))
}

fn le16(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

fn le32(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

fn be32(bytes: &[u8], offset: usize) -> Option<u32> {
    le32(bytes, offset).map(u32::swap_bytes)
}

/// Looks for something foreign. `head` is the first 1 MiB of the drive or more, `tail` the last
/// 1 MiB or more, ending at the drive's end; both shorter on a smaller drive. `None` when nothing
/// is known there, which random bytes are. Drives of Palisade are reported too.
pub fn foreign_signature(head: &[u8], tail: &[u8]) -> Option<Signature> {
    let found = |what, place: &str| Some(Signature { what, detail: place.to_owned() });
    if let Some(place) = palisade(head, tail) {
        return found("Palisade array", place);
    }
    if let Some((what, place)) = of_head(head) {
        return found(what, place);
    }
    if let Some((what, place)) = of_tail(tail) {
        return found(what, place);
    }
    partitions(head).and_then(|what| found(what, "first sector"))
}

/// Whether bytes in which nothing is known hold something all the same. A piece that is one byte
/// over and over is blank; one that looks random may be what was left by who erased a drive, and
/// is nothing known: nobody can tell it from encrypted data.
pub fn holds_data(bytes: &[u8]) -> bool {
    bytes.chunks(PIECE_BYTES).any(|piece| {
        let blank = piece.iter().all(|byte| *byte == piece[0]);
        !blank && !looks_random(piece)
    })
}

/// Pearson's test of how often each byte is there: for random bytes chi squared is 255 on average,
/// with a deviation of 23, and 512 once in 10^17 times. Text has many times that.
fn looks_random(piece: &[u8]) -> bool {
    let mut counts = [0u64; 256];
    piece.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let (n, squares) = (piece.len() as u64, counts.iter().map(|n| n * n).sum::<u64>());
    256 * squares <= n * (n + 512)
}

fn palisade(head: &[u8], tail: &[u8]) -> Option<&'static str> {
    let slot = crate::SLOT_BYTES as usize;
    if at(head, 0, &MAGIC) || at(head, slot, &MAGIC) {
        return Some("head area");
    }
    let seen = (0..tail.len()).step_by(SECTOR).any(|offset| at(tail, offset, &MAGIC));
    seen.then_some("tail area")
}

fn of_head(head: &[u8]) -> Option<(&'static str, &'static str)> {
    for (offset, magic, what) in MAGICS {
        if at(head, offset, magic) {
            return Some((what, "head of the drive"));
        }
    }
    let what = ext(head)
        .or_else(|| xfs(head))
        .or_else(|| fat(head))
        .or_else(|| swap(head))
        .or_else(|| lvm(head))
        .or_else(|| md_1(head, 0).then_some("Linux md 1.1"))
        .or_else(|| md_1(head, 4096).then_some("Linux md 1.2"))
        .or_else(|| zfs(head).then_some("ZFS"))?;
    Some((what, "head of the drive"))
}

fn of_tail(tail: &[u8]) -> Option<(&'static str, &'static str)> {
    let end = |back: usize| tail.len().checked_sub(back);
    let what = if [SECTOR, 4096]
        .into_iter()
        .any(|back| end(back).is_some_and(|offset| at(tail, offset, b"EFI PART")))
    {
        "GPT partition table (backup)"
    } else if end(2 * SECTOR).is_some_and(|at_| at(tail, at_, b"Intel Raid ISM Cfg Sig. ")) {
        "Intel Matrix RAID"
    } else if end(SECTOR).is_some_and(|at_| at(tail, at_, b"\xde\x11\xde\x11") && ddf(tail, at_)) {
        "SNIA DDF RAID"
    } else if end(SECTOR).is_some_and(|at_| at(tail, at_, b"conectix")) {
        "VHD image"
    } else if end(4096).is_some_and(|at_| drbd(tail, at_)) {
        "DRBD"
    } else if sectors(tail).any(|offset| md_1(tail, offset)) {
        "Linux md 1.0"
    } else if sectors(tail).any(|offset| md_0(tail, offset)) {
        "Linux md 0.90"
    } else if zfs(tail) {
        "ZFS"
    } else {
        return None;
    };
    Some((what, "tail of the drive"))
}

/// Offsets of the sectors of `tail`, which ends with one.
fn sectors(tail: &[u8]) -> impl Iterator<Item = usize> + use<> {
    (tail.len() % SECTOR..tail.len()).step_by(SECTOR)
}

fn ext(head: &[u8]) -> Option<&'static str> {
    let sb = head.get(1024..2048)?;
    let fits = le16(sb, 56)? == 0xef53
        && le32(sb, 0)? != 0 // inodes
        && le32(sb, 24)? <= 6 // block size: 1 KiB to 64 KiB
        && le32(sb, 20)? <= 1 // first data block
        && le32(sb, 76)? <= 1 // revision
        && le16(sb, 58)? & !7 == 0; // state
    if !fits {
        return None;
    }
    let (compat, incompat) = (le32(sb, 92)?, le32(sb, 96)?);
    let later_than_3 = incompat & !0x1f != 0;
    Some(match (later_than_3, compat & 4 != 0) {
        (true, _) => "ext4",
        (false, true) => "ext3",
        (false, false) => "ext2",
    })
}

fn xfs(head: &[u8]) -> Option<&'static str> {
    let block = be32(head, 4)?;
    let fits = at(head, 0, b"XFSB") && block.is_power_of_two() && (512..=65536).contains(&block);
    fits.then_some("XFS")
}

fn fat(head: &[u8]) -> Option<&'static str> {
    let named = at(head, 54, b"FAT12   ")
        || at(head, 54, b"FAT16   ")
        || at(head, 54, b"FAT     ")
        || at(head, 82, b"FAT32   ");
    (named && at(head, 510, b"\x55\xaa")).then_some("FAT")
}

fn swap(head: &[u8]) -> Option<&'static str> {
    let pages = [4096, 8192, 16384, 32768, 65536];
    let magics: [&[u8]; 2] = [b"SWAPSPACE2", b"SWAP-SPACE"];
    let seen = pages.iter().any(|page| magics.iter().any(|magic| at(head, page - 10, magic)));
    seen.then_some("swap space")
}

fn lvm(head: &[u8]) -> Option<&'static str> {
    let mut labels = (0..4).map(|sector| sector * SECTOR);
    let seen = labels.any(|sb| at(head, sb, b"LABELONE") && at(head, sb + 24, b"LVM2 001"));
    seen.then_some("LVM2 physical volume")
}

/// A version 1 superblock of md: magic, major version 1, and no unknown feature bits.
fn md_1(bytes: &[u8], offset: usize) -> bool {
    le32(bytes, offset) == Some(MD_MAGIC)
        && le32(bytes, offset + 4) == Some(1)
        && le32(bytes, offset + 12) == Some(0)
}

/// A version 0.90 superblock of md, of either byte order.
fn md_0(bytes: &[u8], offset: usize) -> bool {
    let words = [le32(bytes, offset), le32(bytes, offset + 4), le32(bytes, offset + 8)];
    let swapped = words.map(|word| word.map(u32::swap_bytes));
    let is = |w: [Option<u32>; 3]| {
        w[0] == Some(MD_MAGIC) && w[1] == Some(0) && matches!(w[2], Some(90 | 91))
    };
    is(words) || is(swapped)
}

/// The metadata of DRBD, of versions 8 and 9, which begins here.
fn drbd(tail: &[u8], offset: usize) -> bool {
    let magics: [&[u8]; 3] = [b"\x83\x74\x02\x6b", b"\x83\x74\x02\x6c", b"\x83\x74\x02\x6d"];
    magics.iter().any(|magic| at(tail, offset + 60, magic))
}

/// A DDF anchor header: version text behind the GUID, "0x.xx.xx".
fn ddf(tail: &[u8], offset: usize) -> bool {
    tail.get(offset + 32..offset + 40).is_some_and(|version| version.is_ascii())
}

/// An uberblock of ZFS: at 1 KiB steps in the second half of each 256 KiB label; of either byte
/// order, with a version that exists.
fn zfs(bytes: &[u8]) -> bool {
    sectors(bytes).any(|offset| {
        let Some(word) = bytes.get(offset..offset + 16) else { return false };
        let version = |le: bool| {
            let v: [u8; 8] = word[8..].try_into().unwrap_or_default();
            if le { u64::from_le_bytes(v) } else { u64::from_be_bytes(v) }
        };
        let exists = |version: u64| (1..=28).contains(&version) || version == 5000;
        word.starts_with(&0x00ba_b10c_u64.to_le_bytes()) && exists(version(true))
            || word.starts_with(&0x00ba_b10c_u64.to_be_bytes()) && exists(version(false))
    })
}

/// A table of DOS partitions: boot flags 0 or 0x80, at least one entry that is used.
fn partitions(head: &[u8]) -> Option<&'static str> {
    if !at(head, 510, b"\x55\xaa") {
        return None;
    }
    let entries = head.get(446..510)?.chunks_exact(16);
    let sound = entries.clone().all(|entry| matches!(entry[0], 0 | 0x80));
    let used = entries.clone().any(|entry| entry[4] != 0 && le32(entry, 12) != Some(0));
    (sound && used).then_some("DOS partition table")
}
