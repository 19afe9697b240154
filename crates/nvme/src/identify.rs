//! What Identify gives: controllers, namespaces, lists of them.
//!
//! Base, section 5.17 (Identify); NVM, section 4.1.5 for what its namespaces have. All answers have
//! 4096 bytes. What is not named here is zero: not there, not supported, no limit, as its field
//! says.

use crate::bytes::put;
use crate::nqn::Nqn;
use crate::reset::Instance;

/// Bytes of every answer.
pub const BYTES: usize = 4096;

/// What is asked for (CNS; Base, figure 273).
pub mod cns {
    /// The namespace, as the NVM command set has it.
    pub const NAMESPACE: u8 = 0x00;
    /// The controller.
    pub const CONTROLLER: u8 = 0x01;
    /// Namespaces that are active here.
    pub const ACTIVE_NAMESPACES: u8 = 0x02;
    /// What identifies a namespace.
    pub const NAMESPACE_DESCRIPTORS: u8 = 0x03;
    /// The namespace, for a command set.
    pub const NAMESPACE_OF_SET: u8 = 0x05;
    /// The controller, for a command set.
    pub const CONTROLLER_OF_SET: u8 = 0x06;
    /// Active namespaces of a command set.
    pub const ACTIVE_NAMESPACES_OF_SET: u8 = 0x07;
    /// The namespace, whatever its command set.
    pub const NAMESPACE_INDEPENDENT: u8 = 0x08;
    /// All namespaces that there are.
    pub const ALLOCATED_NAMESPACES: u8 = 0x10;
    /// A namespace that there is, active here or not.
    pub const ALLOCATED_NAMESPACE: u8 = 0x11;
    /// Controllers that have a namespace.
    pub const CONTROLLERS_OF_NAMESPACE: u8 = 0x12;
    /// All controllers.
    pub const CONTROLLERS: u8 = 0x13;
    /// Combinations of command sets.
    pub const COMMAND_SETS: u8 = 0x1c;
}

/// Optional commands (ONCS; Base, figure 275).
pub mod optional {
    /// Compare.
    pub const COMPARE: u16 = 1 << 0;
    /// Dataset Management.
    pub const DATASET_MANAGEMENT: u16 = 1 << 2;
    /// Write Zeroes.
    pub const WRITE_ZEROES: u16 = 1 << 3;
    /// The fields Save of Set Features and Select of Get Features.
    pub const SAVE_AND_SELECT: u16 = 1 << 4;
    /// Verify.
    pub const VERIFY: u16 = 1 << 7;
}

/// The kind of a controller (CNTRLTYPE).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ControllerKind {
    /// With namespaces.
    Io = 1,
    /// Of the discovery service.
    Discovery = 2,
}

/// Events that a controller can tell of (OAES), and that a host wants to be told of (Base, figures
/// 275 and 321).
pub mod event {
    /// Namespace attributes.
    pub const NAMESPACES: u32 = 1 << 8;
    /// Asymmetric access.
    pub const ACCESS: u32 = 1 << 11;
    /// A cross-controller reset is over (Base 2.3).
    pub const RESET: u32 = 1 << 20;
    /// The discovery log page.
    pub const DISCOVERY: u32 = 1 << 31;
}

/// A controller (CNS 01h; Base, figure 275).
#[derive(Clone, Debug)]
pub struct Controller {
    /// Of what kind it is.
    pub kind: ControllerKind,
    /// The serial number, ASCII; longer ones are cut at 20 bytes.
    pub serial: alloc::string::String,
    /// The model; cut at 40 bytes.
    pub model: alloc::string::String,
    /// The revision of its firmware; cut at 8 bytes.
    pub firmware: alloc::string::String,
    /// Which it is within the subsystem.
    pub instance: Instance,
    /// Cross-controller resets at a time (CCRL); 0: none.
    pub resets_most: u8,
    /// Most milliseconds in which commands may still take effect behind the end of the association
    /// (CQT).
    pub quiesce_ms: u16,
    /// The version it keeps to, as the property has it.
    pub version: u32,
    /// Most bytes of data of a command, as a power of two in units of 4096; 0: no limit.
    pub transfer_shift: u8,
    /// Events that it may tell of (OAES).
    pub events: u32,
    /// Most requests for events at a time.
    pub event_requests: u8,
    /// Granularity of the keep-alive timer in units of 100 ms.
    pub keep_alive_units: u16,
    /// Most commands of a queue at a time.
    pub commands_most: u16,
    /// The largest namespace identifier.
    pub namespaces: u32,
    /// The largest number of a group of namespaces with the same access.
    pub access_groups: u32,
    /// Optional commands; see [`optional`].
    pub optional: u16,
    /// It does compare and write, fused.
    pub fused_compare: bool,
    /// It has a volatile write cache.
    pub write_cache: bool,
    /// Bytes of the largest capsule of a command.
    pub command_capsule: u32,
    /// The subsystem's name.
    pub subsystem: Nqn,
}

/// Bits of SGLS: SGLs in any form, at byte granularity; offsets into a capsule; the transport's own
/// data block.
const SGL_SUPPORT: u32 = 1 | 1 << 20 | 1 << 21;

impl Controller {
    /// Writes the answer.
    pub fn encode(&self) -> [u8; BYTES] {
        let mut b = [0; BYTES];
        text(&mut b, 4, 20, &self.serial);
        text(&mut b, 24, 40, &self.model);
        text(&mut b, 64, 8, &self.firmware);
        // Several ports and controllers share the subsystem; of namespaces, access is reported.
        let is_io = self.kind == ControllerKind::Io;
        b[76] = if is_io { 0b1011 } else { 0b11 };
        b[77] = self.transfer_shift;
        put(&mut b, 78, &self.instance.controller.to_le_bytes());
        put(&mut b, 80, &self.version.to_le_bytes());
        put(&mut b, 92, &self.events.to_le_bytes());
        // Host identifiers of 128 bits, keep-alive by traffic.
        put(&mut b, 96, &(1u32 | 1 << 6).to_le_bytes());
        b[111] = self.kind as u8;
        b[135] = self.instance.uniquifier;
        put(&mut b, 136, &self.instance.random.to_le_bytes());
        // Aborts of four commands at a time; 0's based.
        b[258] = 3;
        b[259] = self.event_requests.saturating_sub(1);
        // One slot of firmware, which can't be written.
        b[260] = 0b11;
        // Log pages: effects of commands, offsets and long lengths.
        b[261] = if is_io { 0b110 } else { 0b100 };
        put(&mut b, 320, &self.keep_alive_units.to_le_bytes());
        if is_io {
            // ANA: ten seconds for a transition, all states.
            (b[342], b[343]) = (10, 0b1_1111);
            put(&mut b, 344, &self.access_groups.to_le_bytes());
            put(&mut b, 348, &self.access_groups.to_le_bytes());
        }
        put(&mut b, 386, &self.quiesce_ms.to_le_bytes());
        // Entries of 64 and 16 bytes.
        (b[512], b[513]) = (0x66, 0x44);
        put(&mut b, 514, &self.commands_most.to_le_bytes());
        put(&mut b, 516, &self.namespaces.to_le_bytes());
        put(&mut b, 520, &self.optional.to_le_bytes());
        put(&mut b, 522, &u16::from(self.fused_compare).to_le_bytes());
        // A flush of all namespaces is known (bits 2:1, 11b) where there is a cache.
        b[525] = if self.write_cache { 0b111 } else { 0b100 };
        put(&mut b, 536, &SGL_SUPPORT.to_le_bytes());
        put(&mut b, 540, &self.namespaces.to_le_bytes());
        put(&mut b, 768, &self.subsystem.encode());
        put(&mut b, 1792, &(self.command_capsule / 16).to_le_bytes());
        put(&mut b, 1796, &1u32.to_le_bytes());
        // One descriptor for each command; controllers are made as hosts connect.
        b[1803] = 1;
        b[1807] = self.resets_most;
        b
    }
}

/// Puts ASCII text padded with blanks; what is not printable becomes a question mark.
fn text(into: &mut [u8; BYTES], at: usize, bytes: usize, text: &str) {
    into[at..at + bytes].fill(b' ');
    let printable = text.chars().map(|c| if matches!(c, ' '..='~') { c as u8 } else { b'?' });
    into[at..at + bytes].iter_mut().zip(printable).for_each(|(to, from)| *to = from);
}

/// What is asked of namespaces on this layout: sizes in blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Namespace {
    /// Blocks.
    pub blocks: u64,
    /// Bytes of a block, a power of two.
    pub block_bytes: u32,
    /// Its group, for asymmetric access.
    pub group: u32,
    /// Blocks between borders that requests should not cross (NOIOB); 0: none.
    pub boundary: u16,
    /// Blocks of the smallest write that costs no reading before (NPWG, NPWA), 0: not told.
    pub write_unit: u16,
    /// Blocks of the best write (NOWS), 0: not told.
    pub write_best: u16,
    /// Blocks of what can be deallocated (NPDG, NPDA), 0: not told.
    pub deallocate_unit: u16,
    /// What it is known by, for ever.
    pub nguid: [u8; 16],
    /// Nobody may write it.
    pub read_only: bool,
}

impl Namespace {
    /// Writes the answer to CNS 00h (NVM, figure 97).
    pub fn encode(&self) -> [u8; BYTES] {
        let mut b = [0; BYTES];
        for at in [0, 8, 16] {
            put(&mut b, at, &self.blocks.to_le_bytes());
        }
        let told = self.write_unit > 0 || self.write_best > 0 || self.deallocate_unit > 0;
        // The namespace has atomic units of its own (bit 1), and preferences (bit 4).
        b[24] = 1 << 1 | u8::from(told) << 4;
        // One format, the first; deallocated blocks read as zeros, by Write Zeroes too.
        b[33] = 1 | 1 << 3;
        // More than one controller may have it.
        b[30] = 1;
        put(&mut b, 46, &self.boundary.to_le_bytes());
        let based = |count: u16| count.saturating_sub(1).to_le_bytes();
        for (at, count) in [(64, self.write_unit), (66, self.write_unit)] {
            put(&mut b, at, &based(count));
        }
        for (at, count) in [(68, self.deallocate_unit), (70, self.deallocate_unit)] {
            put(&mut b, at, &based(count));
        }
        put(&mut b, 72, &based(self.write_best));
        put(&mut b, 92, &self.group.to_le_bytes());
        b[99] = u8::from(self.read_only);
        put(&mut b, 104, &self.nguid);
        b[130] = self.block_bytes.trailing_zeros() as u8;
        b
    }
}

/// The list of what identifies a namespace (CNS 03h; Base, figure 277): NGUID, UUID, command set.
pub fn descriptors(nguid: &[u8; 16], uuid: &[u8; 16]) -> [u8; BYTES] {
    let mut b = [0; BYTES];
    let all: [(u8, &[u8]); 3] = [(2, nguid), (3, uuid), (4, &[0])];
    let mut at = 0;
    for (kind, value) in all {
        (b[at], b[at + 1]) = (kind, value.len() as u8);
        put(&mut b, at + 4, value);
        at += 4 + value.len();
    }
    b
}

/// A namespace whatever its command set (CNS 08h; Base, figure 280): shared, of a group.
/// `has_no_cache`: it has no volatile write cache, though its controller may say that there is one
/// (NSFEAT, VWCNP; Base 2.1, the same structure).
pub fn namespace_independent(group: u32, is_ready: bool, has_no_cache: bool) -> [u8; BYTES] {
    let mut b = [0; BYTES];
    b[0] = u8::from(has_no_cache) << NO_CACHE_BIT;
    b[1] = 1;
    put(&mut b, 4, &group.to_le_bytes());
    b[14] = u8::from(is_ready);
    b
}

/// Whether the answer to that says that it has no volatile write cache.
pub const fn has_no_cache(b: &[u8; BYTES]) -> bool {
    b[0] >> NO_CACHE_BIT & 1 == 1
}

/// Where NSFEAT says so.
const NO_CACHE_BIT: u32 = 5;

/// Combinations of command sets (CNS 1Ch; Base, figure 290): one, the NVM command set alone.
pub fn command_sets() -> [u8; BYTES] {
    let mut b = [0; BYTES];
    b[0] = 1;
    b
}

/// Identifiers of namespaces above `after`, in ascending order; as many as fit (CNS 02h).
pub fn namespace_list(ids: impl Iterator<Item = u32>, after: u32) -> [u8; BYTES] {
    let mut b = [0; BYTES];
    let above = ids.filter(|id| *id > after).take(BYTES / 4);
    above.enumerate().for_each(|(i, id)| put(&mut b, 4 * i, &id.to_le_bytes()));
    b
}

/// Controllers from `from` on, in ascending order, with their count before them; as many as fit
/// (CNS 12h and 13h; Base, figure 134).
pub fn controller_list(ids: impl Iterator<Item = u16>, from: u16) -> [u8; BYTES] {
    let mut b = [0; BYTES];
    let mut count = 0u16;
    for id in ids.filter(|id| *id >= from).take(BYTES / 2 - 1) {
        count += 1;
        put(&mut b, 2 * usize::from(count), &id.to_le_bytes());
    }
    put(&mut b, 0, &count.to_le_bytes());
    b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::{u16_at, u32_at, u64_at};

    #[test]
    fn a_controller_stands_where_the_document_says() {
        let controller = Controller {
            kind: ControllerKind::Io,
            serial: "PAL1".into(),
            model: "Palisade ä".into(),
            firmware: "0.1.0-longer".into(),
            instance: Instance { controller: 7, uniquifier: 3, random: 5 },
            resets_most: 2,
            quiesce_ms: 500,
            version: 0x2_0000,
            transfer_shift: 5,
            events: 1 << 8,
            event_requests: 4,
            keep_alive_units: 10,
            commands_most: 1024,
            namespaces: 3,
            access_groups: 4,
            optional: optional::COMPARE | optional::WRITE_ZEROES,
            fused_compare: true,
            write_cache: true,
            command_capsule: 64 + 8192,
            subsystem: Nqn::new("nqn.2026-11.example:a").unwrap(),
        };
        let b = controller.encode();
        assert_eq!(&b[4..24], b"PAL1                ");
        assert_eq!((&b[24..35], &b[64..72]), (&b"Palisade ? "[..], &b"0.1.0-lo"[..]));
        assert_eq!((b[77], u16_at(&b, 78), u32_at(&b, 80), b[111]), (5, 7, 0x2_0000, 1));
        assert_eq!((b[135], u64_at(&b, 136), u16_at(&b, 386), b[1807]), (3, 5, 500, 2));
        assert_eq!((b[259], u16_at(&b, 320), b[512], b[513]), (3, 10, 0x66, 0x44));
        assert_eq!((u16_at(&b, 514), u32_at(&b, 516), u16_at(&b, 520)), (1024, 3, 9));
        assert_eq!((u16_at(&b, 522), b[525] & 1), (1, 1));
        assert_eq!(&b[768..790], b"nqn.2026-11.example:a\0");
        assert_eq!((u32_at(&b, 1792), u32_at(&b, 1796), b[1803]), (516, 1, 1));
        assert_eq!((b[76] & 8, b[261] & 2, u32_at(&b, 344), u32_at(&b, 348)), (8, 2, 4, 4));
        // Linux refuses a controller that reports access of no namespaces
        // (drivers/nvme/host/multipath.c, "Invalid MNAN value").
        let b =
            Controller { kind: ControllerKind::Discovery, namespaces: 0, ..controller }.encode();
        assert_eq!((b[76] & 8, b[261] & 2, u32_at(&b, 344), u32_at(&b, 540)), (0, 0, 0, 0));
    }

    #[test]
    fn a_namespace_stands_where_the_document_says() {
        let namespace = Namespace {
            blocks: 1 << 33,
            block_bytes: 4096,
            group: 2,
            boundary: 64,
            write_unit: 64,
            write_best: 256,
            deallocate_unit: 0,
            nguid: [9; 16],
            read_only: false,
        };
        let b = namespace.encode();
        assert_eq!([0, 8, 16].map(|at| u64_at(&b, at)), [1 << 33; 3]);
        assert_eq!((b[25], b[26], b[130], u16_at(&b, 46)), (0, 0, 12, 64));
        assert_eq!((u16_at(&b, 64), u16_at(&b, 66), u16_at(&b, 72)), (63, 63, 255));
        assert_eq!((u16_at(&b, 68), &b[104..120]), (0, &[9; 16][..]));
    }

    #[test]
    fn lists_say_what_fits() {
        let b = namespace_list([1, 2, 9].into_iter(), 1);
        assert_eq!((u32_at(&b, 0), u32_at(&b, 4), u32_at(&b, 8)), (2, 9, 0));
        let b = namespace_list(1..5000, 0);
        assert_eq!(u32_at(&b, 4092), 1024);
        let b = controller_list(1..5000, 3);
        assert_eq!((u16_at(&b, 0), u16_at(&b, 2), u16_at(&b, 4094)), (2047, 3, 2049));
        let b = descriptors(&[1; 16], &[2; 16]);
        assert_eq!((b[0], b[1], b[4], b[20], b[21], b[24]), (2, 16, 1, 3, 16, 2));
        assert_eq!((b[40], b[41], b[44], b[45]), (4, 1, 0, 0));
    }
}
