//! What a drive says that it is: its controller and its namespaces, as Identify gives them.
//!
//! Base, section 5.17.2.1 (Identify Controller, figure 275), figure 276 (power state descriptor);
//! NVM, section 4.1.5.1 (Identify Namespace, figure 97) and figure 98 (LBA format).
//! [`crate::identify`] has the same answers as a target gives them.
//!
//! Purpose: fields that somebody who looks after drives wants to know. The others are passed over,
//! and zero where an answer is written, which stand-ins of drives do.
//!
//! Invariants: any bytes have a meaning, as drives send what they like: a text loses what is not
//! printable, a number that is too large counts as the largest. What is read is at most
//! [`POWER_STATES_MOST`] power states long, whatever the drive says.

use crate::bytes::{array_at, put, u16_at, u32_at, u64_at, u128_at};
use crate::identify::{BYTES, optional};
use crate::reset::Instance;
use crate::smart::celsius;
use alloc::string::String;
use alloc::vec::Vec;

/// The most power states that a drive can have.
pub const POWER_STATES_MOST: usize = 32;
const POWER_STATES_AT: usize = 2048;
const POWER_STATE_BYTES: usize = 32;

/// A controller (CNS 01h; Base, figure 275).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Controller {
    /// The vendor, by its number at the PCI-SIG (VID).
    pub vendor: u16,
    /// The subsystem's vendor (SSVID).
    pub subsystem_vendor: u16,
    /// The serial number, without the blanks around it; 20 characters at most.
    pub serial: String,
    /// The model; 40 characters at most.
    pub model: String,
    /// The revision of the firmware that runs; 8 characters at most.
    pub firmware: String,
    /// Most bytes of data of a command (MDTS), as a power of two in units of the smallest page that
    /// the controller has (CAP.MPSMIN); 0: no limit.
    pub transfer_shift: u8,
    /// Its number within the subsystem (CNTLID).
    pub id: u16,
    /// The version of the specification that it keeps to, as the property has it: 1.4 is
    /// 0x0001_0400. Those before 1.2 say 0.
    pub version: u32,
    /// Optional admin commands (OACS).
    pub admin_optional: u16,
    /// Optional commands and features (ONCS); see [`optional`].
    pub optional: u16,
    /// The largest namespace identifier (NN).
    pub namespaces: u32,
    /// Kelvin from which it is too warm (WCTEMP); 0: not said.
    pub warning_kelvin: u16,
    /// Kelvin from which it protects itself (CCTEMP); 0: not said.
    pub critical_kelvin: u16,
    /// Bytes of all its media (TNVMCAP); 0: not said.
    pub capacity: u128,
    /// It has a volatile write cache (VWC).
    pub write_cache: bool,
    /// Its power states, from 0: at least one, at most [`POWER_STATES_MOST`].
    pub power_states: Vec<PowerState>,
}

impl Controller {
    /// Reads the answer.
    pub fn decode(b: &[u8; BYTES]) -> Self {
        // The number of power states is less one (NPSS).
        let states = (usize::from(b[263]) + 1).min(POWER_STATES_MOST);
        let state =
            |number| PowerState::decode(&array_at(b, POWER_STATES_AT + POWER_STATE_BYTES * number));
        Self {
            vendor: u16_at(b, 0),
            subsystem_vendor: u16_at(b, 2),
            serial: text(&b[4..24]),
            model: text(&b[24..64]),
            firmware: text(&b[64..72]),
            transfer_shift: b[77],
            id: u16_at(b, 78),
            version: u32_at(b, 80),
            admin_optional: u16_at(b, 256),
            warning_kelvin: u16_at(b, 266),
            critical_kelvin: u16_at(b, 268),
            capacity: u128_at(b, 280),
            namespaces: u32_at(b, 516),
            optional: u16_at(b, 520),
            write_cache: b[525] & 1 == 1,
            power_states: (0..states).map(state).collect(),
        }
    }

    /// Writes the answer. Of texts and power states what is beyond the most is left out.
    pub fn encode(&self) -> [u8; BYTES] {
        let mut b = [0; BYTES];
        put(&mut b, 0, &self.vendor.to_le_bytes());
        put(&mut b, 2, &self.subsystem_vendor.to_le_bytes());
        put_text(&mut b[4..24], &self.serial);
        put_text(&mut b[24..64], &self.model);
        put_text(&mut b[64..72], &self.firmware);
        b[77] = self.transfer_shift;
        put(&mut b, 78, &self.id.to_le_bytes());
        put(&mut b, 80, &self.version.to_le_bytes());
        put(&mut b, 256, &self.admin_optional.to_le_bytes());
        let states = self.power_states.len().min(POWER_STATES_MOST);
        b[263] = states.saturating_sub(1) as u8;
        put(&mut b, 266, &self.warning_kelvin.to_le_bytes());
        put(&mut b, 268, &self.critical_kelvin.to_le_bytes());
        put(&mut b, 280, &self.capacity.to_le_bytes());
        put(&mut b, 516, &self.namespaces.to_le_bytes());
        put(&mut b, 520, &self.optional.to_le_bytes());
        b[525] = u8::from(self.write_cache);
        for (number, state) in self.power_states.iter().take(states).enumerate() {
            put(&mut b, POWER_STATES_AT + POWER_STATE_BYTES * number, &state.encode());
        }
        b
    }

    /// From how many degrees Celsius it is too warm; `None`: it does not say.
    pub fn warning_celsius(&self) -> Option<i32> {
        celsius(self.warning_kelvin)
    }

    /// From how many degrees Celsius it protects itself; `None`: it does not say.
    pub fn critical_celsius(&self) -> Option<i32> {
        celsius(self.critical_kelvin)
    }

    /// Whether it can keep the value of a feature over a power cycle.
    pub const fn can_save(&self) -> bool {
        self.optional & optional::SAVE_AND_SELECT != 0
    }
}

/// One of a controller's power states (Base, figure 276; section 8.15).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PowerState {
    /// The most that it takes (MP), in units of 10 mW, or of 0.1 mW if [`Self::is_fine`]; 0: not
    /// said.
    pub max_power: u16,
    /// The unit of the most is 0.1 mW (MXPS).
    pub is_fine: bool,
    /// The controller processes no I/O commands in it (NOPS).
    pub is_non_operational: bool,
    /// Most microseconds to enter it (ENLAT); 0: not said.
    pub enter_us: u32,
    /// Most microseconds to leave it (EXLAT); 0: not said.
    pub exit_us: u32,
}

impl PowerState {
    /// Reads a descriptor.
    pub fn decode(b: &[u8; POWER_STATE_BYTES]) -> Self {
        Self {
            max_power: u16_at(b, 0),
            is_fine: b[3] & 1 == 1,
            is_non_operational: b[3] >> 1 & 1 == 1,
            enter_us: u32_at(b, 4),
            exit_us: u32_at(b, 8),
        }
    }

    /// Writes a descriptor.
    pub fn encode(&self) -> [u8; POWER_STATE_BYTES] {
        let mut b = [0; POWER_STATE_BYTES];
        put(&mut b, 0, &self.max_power.to_le_bytes());
        b[3] = u8::from(self.is_fine) | u8::from(self.is_non_operational) << 1;
        put(&mut b, 4, &self.enter_us.to_le_bytes());
        put(&mut b, 8, &self.exit_us.to_le_bytes());
        b
    }

    /// The most that it takes, in milliwatts, rounded up; `None`: not said.
    pub fn max_milliwatts(&self) -> Option<u32> {
        let power = u32::from(self.max_power);
        let milliwatts = if self.is_fine { power.div_ceil(10) } else { power * 10 };
        (power > 0).then_some(milliwatts)
    }
}

/// A namespace of the NVM command set (CNS 00h; NVM, figure 97).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Namespace {
    /// Blocks (NSZE); 0: there is no such namespace.
    pub blocks: u64,
    /// Blocks that may be allocated (NCAP).
    pub capacity: u64,
    /// Blocks that are allocated (NUSE).
    pub used: u64,
    /// Which of its formats it has (FLBAS), from 0 to 63.
    pub format: u8,
    /// The size of its blocks, as a power of two in bytes (LBADS of that format).
    pub block_shift: u8,
    /// Bytes of metadata of each block (MS of that format).
    pub metadata_bytes: u16,
    /// What it is known by for ever (NGUID), the most significant byte first; zeros: it has none.
    pub nguid: [u8; 16],
    /// The same, shorter (EUI64).
    pub eui64: [u8; 8],
}

impl Namespace {
    /// Reads the answer.
    pub fn decode(b: &[u8; BYTES]) -> Self {
        // The bits above the fourth count only where there are more than 16 formats (NLBAF, less
        // one).
        let high = if b[25] >= 16 { b[26] >> 5 & 3 } else { 0 };
        let format = b[26] & 0xf | high << 4;
        let at = FORMATS_AT + 4 * usize::from(format);
        Self {
            blocks: u64_at(b, 0),
            capacity: u64_at(b, 8),
            used: u64_at(b, 16),
            format,
            metadata_bytes: u16_at(b, at),
            block_shift: b[at + 2],
            nguid: array_at(b, 104),
            eui64: array_at(b, 120),
        }
    }

    /// Writes the answer, with as many formats as it takes to have that one. Those before it are
    /// not there.
    pub fn encode(&self) -> [u8; BYTES] {
        let mut b = [0; BYTES];
        let format = self.format & 0x3f;
        put(&mut b, 0, &self.blocks.to_le_bytes());
        put(&mut b, 8, &self.capacity.to_le_bytes());
        put(&mut b, 16, &self.used.to_le_bytes());
        (b[25], b[26]) = (format, format & 0xf | (format >> 4) << 5);
        put(&mut b, 104, &self.nguid);
        put(&mut b, 120, &self.eui64);
        let at = FORMATS_AT + 4 * usize::from(format);
        put(&mut b, at, &self.metadata_bytes.to_le_bytes());
        b[at + 2] = self.block_shift;
        b
    }

    /// Bytes of a block; `None`: the format that the drive named is none.
    pub fn block_bytes(&self) -> Option<u32> {
        // Blocks have at least 512 bytes (NVM, figure 98, LBADS).
        (9..32).contains(&self.block_shift).then(|| 1 << self.block_shift)
    }
}

/// What a namespace is known by (CNS 03h; Base, figure 277); zeros: it has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Identifiers {
    /// EUI64.
    pub eui64: [u8; 8],
    /// NGUID.
    pub nguid: [u8; 16],
    /// UUID.
    pub uuid: [u8; 16],
}

impl Identifiers {
    /// Reads the answer: descriptors up to the first without a length. Those that are not known,
    /// or not as long as their type has them, are passed over.
    pub fn decode(b: &[u8; BYTES]) -> Self {
        let (mut is, mut rest) = (Self::default(), &b[..]);
        while let [kind, length, _, _, behind @ ..] = rest
            && *length > 0
            && let Some((value, others)) = behind.split_at_checked(usize::from(*length))
        {
            match kind {
                1 => value.try_into().into_iter().for_each(|own| is.eui64 = own),
                2 => value.try_into().into_iter().for_each(|own| is.nguid = own),
                3 => value.try_into().into_iter().for_each(|own| is.uuid = own),
                _ => {}
            }
            rest = others;
        }
        is
    }

    /// Whether there is any: only then two namespaces can be told apart, whatever the way to them.
    pub fn is_any(&self) -> bool {
        *self != Self::default()
    }
}

/// Identifiers of namespaces in ascending order, up to the first zero (CNS 02h).
pub fn namespaces(b: &[u8; BYTES]) -> impl Iterator<Item = u32> {
    let (all, _) = b.as_chunks::<4>();
    all.iter().map(|own| u32::from_le_bytes(*own)).take_while(|id| *id != 0)
}

/// What a controller behind a network says of how it wants to be used (CNS 01h; Base, figures 275
/// and 278).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fabric {
    /// Keep-alive by traffic: any command restarts the timer (CTRATT, bit 6).
    pub is_alive_by_traffic: bool,
    /// It tells of asymmetric access (CMIC, bit 3).
    pub has_ana: bool,
    /// Most seconds of a change of access (ANATT).
    pub ana_seconds: u8,
    /// Most groups of namespaces with the same access (NANAGRPID).
    pub ana_groups: u32,
    /// Namespaces that the page of access may list (MNAN); 0: as many as there may be at all.
    pub namespaces_most: u32,
    /// Events that it can tell of (OAES); see [`crate::identify::event`].
    pub events: u32,
    /// Granularity of the keep-alive timer in units of 100 ms (KAS); 0: there is none.
    pub keep_alive_units: u16,
    /// Most milliseconds in which commands may still take effect behind the end of the association
    /// (CQT).
    pub quiesce_ms: u16,
    /// Which instance of a controller it is.
    pub instance: Instance,
    /// Cross-controller resets at a time (CCRL); 0: it does none.
    pub resets_most: u8,
    /// Most commands of a queue at a time (MAXCMD); 0: as many as it has entries.
    pub commands_most: u16,
    /// Bytes of data that a command's capsule may have, from its header on.
    pub capsule_data: u32,
    /// It is of the discovery service (CNTRLTYPE).
    pub is_discovery: bool,
}

impl Fabric {
    /// Reads the answer.
    pub fn decode(b: &[u8; BYTES]) -> Self {
        // IOCCSZ counts 16 bytes each, the command's 64 among them; ICDOFF is where data begins.
        let capsule = u32_at(b, 1792).saturating_mul(16);
        let begin = 64 + 16 * u32::from(u16_at(b, 1800));
        Self {
            is_alive_by_traffic: u32_at(b, 96) >> 6 & 1 == 1,
            has_ana: b[76] >> 3 & 1 == 1,
            ana_seconds: b[342],
            ana_groups: u32_at(b, 348),
            namespaces_most: u32_at(b, 540),
            events: u32_at(b, 92),
            keep_alive_units: u16_at(b, 320),
            quiesce_ms: u16_at(b, 386),
            instance: Instance {
                controller: u16_at(b, 78),
                uniquifier: b[135],
                random: u64_at(b, 136),
            },
            resets_most: b[1807],
            commands_most: u16_at(b, 514),
            // Data that begins elsewhere is not put into capsules.
            capsule_data: if begin == 64 { capsule.saturating_sub(begin) } else { 0 },
            is_discovery: b[111] == 2,
        }
    }
}

/// Where the formats of a namespace begin; each has 4 bytes.
const FORMATS_AT: usize = 128;

/// ASCII text without what pads it. What is not printable becomes a question mark.
pub(crate) fn text(field: &[u8]) -> String {
    let is_padding = |byte: &u8| matches!(byte, b' ' | 0);
    let begin = field.iter().position(|byte| !is_padding(byte)).unwrap_or(field.len());
    let end = field.iter().rposition(|byte| !is_padding(byte)).map_or(begin, |last| last + 1);
    let printable = |byte: &u8| if matches!(byte, b' '..=b'~') { char::from(*byte) } else { '?' };
    field[begin..end].iter().map(printable).collect()
}

/// Puts text, padded with blanks.
fn put_text(into: &mut [u8], text: &str) {
    into.fill(b' ');
    let printable = text.chars().map(|c| if matches!(c, ' '..='~') { c as u8 } else { b'?' });
    into.iter_mut().zip(printable).for_each(|(to, from)| *to = from);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A controller at the places of the document, written by hand.
    #[test]
    fn a_controller_is_read_where_the_document_says() {
        let mut b = [0; BYTES];
        b[..4].copy_from_slice(&[0x36, 0x1b, 0xf4, 0x1a]);
        b[4..24].copy_from_slice(b"          S123      ");
        b[24..64].copy_from_slice(b"QEMU NVMe Ctrl\0\0\xff drive \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        b[64..72].copy_from_slice(b"8.2.2   ");
        (b[77], b[78], b[79]) = (7, 2, 1);
        (b[81], b[82], b[256], b[263]) = (4, 1, 0x2a, 1);
        // 343 and 373 kelvin.
        (b[266], b[267], b[268], b[269]) = (0x57, 1, 0x75, 1);
        (b[285], b[516], b[517], b[520], b[525]) = (1, 0, 1, 0x10, 7);
        (b[2048], b[2049], b[2051]) = (0xc4, 0x09, 0);
        (b[2080], b[2083], b[2084], b[2089], b[2112]) = (25, 3, 0x10, 2, 9);
        let state = PowerState { max_power: 2500, ..PowerState::default() };
        let idle = PowerState {
            max_power: 25,
            is_fine: true,
            is_non_operational: true,
            enter_us: 16,
            exit_us: 512,
        };
        let is = Controller {
            vendor: 0x1b36,
            subsystem_vendor: 0x1af4,
            serial: "S123".into(),
            model: "QEMU NVMe Ctrl??? drive".into(),
            firmware: "8.2.2".into(),
            transfer_shift: 7,
            id: 0x102,
            version: 0x1_0400,
            admin_optional: 0x2a,
            optional: 0x10,
            namespaces: 256,
            warning_kelvin: 343,
            critical_kelvin: 373,
            capacity: 1 << 40,
            write_cache: true,
            power_states: alloc::vec![state, idle],
        };
        let read = Controller::decode(&b);
        assert_eq!(read, is);
        assert_eq!((read.warning_celsius(), read.critical_celsius()), (Some(70), Some(100)));
        assert_eq!((state.max_milliwatts(), idle.max_milliwatts()), (Some(25_000), Some(3)));
        assert!(read.can_save());
        let silent = Controller::decode(&[0; BYTES]);
        assert_eq!((silent.warning_celsius(), silent.power_states.len()), (None, 1));
        assert_eq!((silent.power_states[0].max_milliwatts(), silent.can_save()), (None, false));
    }

    #[test]
    fn a_namespace_is_read_where_the_document_says() {
        let mut b = [0; BYTES];
        (b[4], b[8], b[17], b[25], b[26]) = (1, 2, 3, 4, 0x62);
        b[104..120].fill(7);
        b[120..128].fill(8);
        (b[136], b[138], b[330]) = (8, 12, 9);
        let is = Namespace {
            blocks: 1 << 32,
            capacity: 2,
            used: 0x300,
            format: 2,
            block_shift: 12,
            metadata_bytes: 8,
            nguid: [7; 16],
            eui64: [8; 8],
        };
        assert_eq!(Namespace::decode(&b), is, "few formats: the high bits mean nothing");
        assert_eq!(is.block_bytes(), Some(4096));
        b[25] = 63;
        let high = Namespace::decode(&b);
        assert_eq!((high.format, high.block_bytes()), (50, Some(512)));
        for (shift, bytes) in [(0, None), (8, None), (31, Some(1 << 31)), (32, None), (255, None)] {
            assert_eq!(Namespace { block_shift: shift, ..is }.block_bytes(), bytes);
        }
    }

    /// What targets write: [`crate::identify`].
    #[test]
    fn what_identifies_a_namespace_is_read_as_it_was_written() {
        let b = crate::identify::descriptors(&[1; 16], &[2; 16]);
        let is = Identifiers { nguid: [1; 16], uuid: [2; 16], eui64: [0; 8] };
        assert_eq!((Identifiers::decode(&b), is.is_any()), (is, true));
        assert!(!Identifiers::decode(&[0; BYTES]).is_any());
        // One that is longer than the answer, one of another length, and one that nobody knows.
        let mut b = [0; BYTES];
        b[..5].copy_from_slice(&[9, 1, 0, 0, 7]);
        b[5..10].copy_from_slice(&[2, 1, 0, 0, 7]);
        b[10..22].copy_from_slice(&[1, 8, 0, 0, 3, 3, 3, 3, 3, 3, 3, 3]);
        b[22..24].copy_from_slice(&[9, 255]);
        assert_eq!(Identifiers::decode(&b).eui64, [3; 8]);
        assert_eq!(Identifiers::decode(&[255; BYTES]), Identifiers::default());
        let b = crate::identify::namespace_list([1, 5, 7].into_iter(), 1);
        assert_eq!(namespaces(&b).collect::<Vec<_>>(), [5, 7]);
        assert_eq!(namespaces(&crate::identify::namespace_list(1..2000, 0)).count(), 1024);
    }

    #[test]
    fn what_a_target_says_of_its_use_is_read() {
        let controller = crate::identify::Controller {
            kind: crate::identify::ControllerKind::Io,
            serial: "S".into(),
            model: "M".into(),
            firmware: "F".into(),
            instance: Instance { controller: 7, uniquifier: 2, random: 9 << 40 },
            resets_most: 4,
            quiesce_ms: 0,
            version: 0x2_0000,
            transfer_shift: 5,
            events: 0,
            event_requests: 4,
            keep_alive_units: 10,
            commands_most: 1024,
            namespaces: 3,
            access_groups: 1,
            optional: 0,
            fused_compare: false,
            write_cache: false,
            command_capsule: 64 + 8192,
            subsystem: crate::nqn::Nqn::new("nqn.2026-11.example:a").unwrap(),
        };
        let is = Fabric {
            is_alive_by_traffic: true,
            has_ana: true,
            ana_seconds: 10,
            ana_groups: 1,
            namespaces_most: 3,
            events: 0,
            keep_alive_units: 10,
            quiesce_ms: 0,
            instance: Instance { controller: 7, uniquifier: 2, random: 9 << 40 },
            resets_most: 4,
            commands_most: 1024,
            capsule_data: 8192,
            is_discovery: false,
        };
        let mut b = controller.encode();
        assert_eq!(Fabric::decode(&b), is);
        b[1800] = 1;
        assert_eq!(Fabric::decode(&b).capsule_data, 0);
        b[386..388].copy_from_slice(&500u16.to_le_bytes());
        b[92..96].copy_from_slice(&crate::identify::event::ACCESS.to_le_bytes());
        let own = Fabric::decode(&b);
        assert_eq!((own.quiesce_ms, own.events), (500, crate::identify::event::ACCESS));
        b[1792..1796].fill(0xff);
        let _ = Fabric::decode(&b);
    }

    #[test]
    fn texts_are_read_whatever_is_in_them() {
        assert_eq!(text(b"  \0 "), "");
        assert_eq!(text(b""), "");
        assert_eq!(text(b" a b\0"), "a b");
        assert_eq!(text("ä\u{7f}\n".as_bytes()), "????");
    }

    fn state() -> impl Strategy<Value = PowerState> {
        (any::<u16>(), any::<bool>(), any::<bool>(), any::<u32>(), any::<u32>()).prop_map(
            |(max_power, is_fine, is_non_operational, enter_us, exit_us)| PowerState {
                max_power,
                is_fine,
                is_non_operational,
                enter_us,
                exit_us,
            },
        )
    }

    proptest! {
        #[test]
        fn controllers_are_read_as_they_were_written(
            (vendor, subsystem_vendor, id) in any::<(u16, u16, u16)>(),
            (admin_optional, optional) in any::<(u16, u16)>(),
            (transfer_shift, version, namespaces, write_cache) in any::<(u8, u32, u32, bool)>(),
            (warning_kelvin, critical_kelvin, capacity) in any::<(u16, u16, u128)>(),
            serial in "([!-~]([ -~]{0,18}[!-~])?)?",
            model in "([!-~]([ -~]{0,38}[!-~])?)?",
            firmware in "([!-~]([ -~]{0,6}[!-~])?)?",
            power_states in prop::collection::vec(state(), 1..=POWER_STATES_MOST),
        ) {
            let is = Controller {
                vendor, subsystem_vendor, serial, model, firmware, transfer_shift, id, version,
                admin_optional, optional, namespaces, warning_kelvin, critical_kelvin, capacity,
                write_cache, power_states,
            };
            prop_assert_eq!(Controller::decode(&is.encode()), is);
        }

        #[test]
        fn namespaces_are_read_as_they_were_written(
            (blocks, capacity, used, nguid, eui64) in any::<(u64, u64, u64, [u8; 16], [u8; 8])>(),
            (format, block_shift, metadata_bytes) in (0u8..64, any::<u8>(), any::<u16>()),
        ) {
            let is = Namespace {
                blocks, capacity, used, format, block_shift, metadata_bytes, nguid, eui64,
            };
            prop_assert_eq!(Namespace::decode(&is.encode()), is);
        }

        /// What drives send is read without a panic, and once read it stays the same.
        #[test]
        fn any_bytes_are_something(bytes in prop::collection::vec(any::<u8>(), BYTES)) {
            let bytes: &[u8; BYTES] = bytes[..].try_into().unwrap();
            let controller = Controller::decode(bytes);
            prop_assert!((1..=POWER_STATES_MOST).contains(&controller.power_states.len()));
            let texts = [&controller.serial, &controller.model, &controller.firmware];
            prop_assert!(texts.iter().all(|text| text.bytes().all(|b| (b' '..=b'~').contains(&b))));
            for state in &controller.power_states {
                prop_assert_eq!(state.max_milliwatts().is_some(), state.max_power > 0);
            }
            prop_assert_eq!(&Controller::decode(&controller.encode()), &controller);
            let namespace = Namespace::decode(bytes);
            prop_assert_eq!(&Namespace::decode(&namespace.encode()), &namespace);
            let _ = (namespace.block_bytes(), controller.warning_celsius());
        }
    }
}
