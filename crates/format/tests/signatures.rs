//! Foreign signatures: each is seen, random bytes are not mistaken for any.

use palisade_format::{encode, foreign_signature, holds_data};
use units::MIB;

mod common;

/// Bytes of xorshift64*: never a signature by intent.
fn random(seed: u64) -> Vec<u8> {
    let mut x = seed | 1;
    let word = || {
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        x.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes()
    };
    std::iter::repeat_with(word).take(MIB as usize / 8).flatten().collect()
}

fn what(head: &[(usize, &[u8])], tail: &[(usize, &[u8])]) -> Option<&'static str> {
    let place = |bytes: &mut Vec<u8>, parts: &[(usize, &[u8])]| {
        for (offset, part) in parts {
            bytes[*offset..][..part.len()].copy_from_slice(part);
        }
    };
    let (mut first, mut last) = (vec![0; MIB as usize], vec![0; MIB as usize]);
    place(&mut first, head);
    place(&mut last, tail);
    foreign_signature(&first, &last).map(|signature| signature.what)
}

#[test]
fn empty_and_random_drives_hold_nothing() {
    assert_eq!(what(&[], &[]), None);
    assert_eq!(foreign_signature(&[], &[]), None);
    for seed in 0..64 {
        let (mut head, mut tail) = (random(seed), random(seed + 1000));
        // The two-byte magics are there by chance now and then.
        head[1080..1082].copy_from_slice(b"\x53\xef");
        head[510..512].copy_from_slice(b"\x55\xaa");
        head[..4].copy_from_slice(b"\xfc\x4e\x2b\xa9");
        tail[(MIB as usize) - 8192..][..4].copy_from_slice(b"\xfc\x4e\x2b\xa9");
        assert_eq!(foreign_signature(&head, &tail), None, "seed {seed}");
    }
}

/// Where each format has its magic, and what else must fit.
#[test]
fn magics_are_seen_where_they_belong() {
    let seen = |name, parts: &[(usize, &[u8])]| {
        assert_eq!(what(parts, &[]), Some(name));
        let moved: Vec<_> = parts.iter().map(|(at, part)| (at + 24, *part)).collect();
        assert_eq!(what(&moved, &[]), None, "{name} elsewhere");
    };
    seen("F2FS", &[(1024, b"\x10\x20\xf5\xf2")]);
    seen("BitLocker", &[(3, b"-FVE-FS-")]);
    seen("GFS2", &[(65536, b"\x01\x16\x19\x70")]);
    for block in [1024, 2048, 4096, 8192] {
        seen("OCFS2", &[(block, b"OCFSV2")]);
    }
    seen("JFS", &[(32768, b"JFS1")]);
    seen("ReiserFS", &[(65536 + 52, b"ReIsEr2Fs")]);
    seen("ReiserFS", &[(8192 + 52, b"ReIsErFs")]);
    seen("Reiser4", &[(65536, b"ReIsEr4")]);
    seen("NILFS2", &[(1024, b"\x02\0\0\0\0\0\x34\x34")]);
    seen("APFS", &[(32, b"NXSB")]);
    seen("HFS+", &[(1024, b"H+\0\x04")]);
    seen("HFS+", &[(1024, b"HX\0\x05")]);
    seen("EROFS", &[(1024, b"\xe2\xe1\xf5\xe0")]);
    seen("UFS", &[(65536 + 1372, b"\x19\x01\x54\x19")]);
    seen("Oracle ASM", &[(32, b"ORCLDISK")]);
    seen("Stratis", &[(516, b"!Stra0tis\x86\xff\x02^\x41rh")]);
    seen("VDO", &[(0, b"dmvdo001")]);
    seen("QCOW2 image", &[(0, b"QFI\xfb")]);
    seen("VMDK image", &[(0, b"KDMV")]);
    seen("VHDX image", &[(0, b"vhdxfile")]);
    seen("VHD image", &[(0, b"conectix")]);
    seen("VDI image", &[(64, b"\x7f\x10\xda\xbe")]);
    let end = MIB as usize;
    assert_eq!(what(&[], &[(end - 512, b"conectix")]), Some("VHD image"));
    for last in [0x6b, 0x6c, 0x6d] {
        let magic = [0x83, 0x74, 0x02, last];
        assert_eq!(what(&[], &[(end - 4096 + 60, &magic)]), Some("DRBD"));
    }
}

#[test]
fn data_is_told_from_blank_and_from_random_bytes() {
    for seed in 0..64 {
        assert!(!holds_data(&random(seed)), "seed {seed}");
    }
    for blank in [0x00, 0x55, 0xff] {
        assert!(!holds_data(&vec![blank; MIB as usize]));
    }
    let text = b"Minutes of the general meeting, 14 March. Present: all but one.\n";
    assert!(holds_data(&text.repeat(100)) && holds_data(text));
    // A single byte where all else is blank, and a page of text among random bytes.
    let mut bytes = vec![0; MIB as usize];
    bytes[70_000] = 1;
    assert!(holds_data(&bytes));
    let mut bytes = random(7);
    bytes[8192..12288].copy_from_slice(&text.repeat(64));
    assert!(holds_data(&bytes));
    assert!(!holds_data(&[]) && !holds_data(&random(3)[..512]));
}

#[test]
fn known_formats_are_seen() {
    let end = MIB as usize;
    let md = |minor: u8| {
        let mut sb = vec![0u8; 16];
        sb[..4].copy_from_slice(&0xa92b_4efc_u32.to_le_bytes());
        sb[4] = minor;
        sb
    };
    let (md1, mut md0) = (md(1), md(0));
    md0[8] = 90;
    let uber = [&0x00ba_b10c_u64.to_le_bytes()[..], &5000u64.to_le_bytes()].concat();
    let mut ext = vec![0u8; 1024];
    ext[0] = 16;
    ext[24] = 2;
    ext[56..58].copy_from_slice(b"\x53\xef");
    ext[58] = 1;
    ext[76] = 1;
    ext[92] = 4;
    ext[96] = 0x42;
    let mut part = vec![0u8; 66];
    part[4] = 0x83;
    part[12] = 9;
    part[64..].copy_from_slice(b"\x55\xaa");
    let expect = |name, head: &[(usize, &[u8])], tail: &[(usize, &[u8])]| {
        assert_eq!(what(head, tail), Some(name));
    };
    expect("ext4", &[(1024, &ext)], &[]);
    ext[96] = 2;
    expect("ext3", &[(1024, &ext)], &[]);
    expect("XFS", &[(0, b"XFSB\0\0\x10\0")], &[]);
    expect("btrfs", &[(65600, b"_BHRfS_M")], &[]);
    expect("FAT", &[(82, b"FAT32   "), (510, b"\x55\xaa")], &[]);
    expect("swap space", &[(4086, b"SWAPSPACE2")], &[]);
    expect("LUKS", &[(0, b"LUKS\xba\xbe\0\x02")], &[]);
    expect("LVM2 physical volume", &[(512, b"LABELONE"), (536, b"LVM2 001")], &[]);
    expect("Linux md 1.1", &[(0, &md1)], &[]);
    expect("Linux md 1.2", &[(4096, &md1)], &[]);
    expect("Linux md 1.0", &[], &[(end - 8192, &md1)]);
    expect("Linux md 0.90", &[], &[(end - 65536, &md0)]);
    expect("ZFS", &[(128 << 10, &uber)], &[]);
    expect("ZFS", &[], &[(end - (128 << 10), &uber)]);
    expect("GPT partition table", &[(512, b"EFI PART"), (446, &part)], &[]);
    expect("GPT partition table (backup)", &[], &[(end - 512, b"EFI PART")]);
    expect("DOS partition table", &[(446, &part)], &[]);
    let ours = encode(&common::plain(layout::Level::Raid0, 2));
    expect("Palisade array", &[(0, &ours)], &[]);
    expect("Palisade array", &[], &[(256 << 10, &ours)]);
}
