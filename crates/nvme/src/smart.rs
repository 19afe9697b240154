//! The SMART / Health Information log: how a drive is, what it has done, what befell it.
//!
//! Base, section 5.16.1.3 and figure 207 (log page 02h). [`crate::log::Health`] is the same page as
//! a target gives it.
//!
//! Invariants: any bytes have a meaning. Numbers are the drive's own, in its units; functions give
//! them in units of people. A drive that does not count something says 0, which nobody can tell
//! from a count of 0.

use crate::bytes::{put, u16_at, u32_at, u128_at};
use alloc::vec::Vec;

/// Bytes of the page.
pub const BYTES: usize = 512;

/// Bytes of a data unit: a thousand blocks of 512 bytes.
pub const DATA_UNIT_BYTES: u128 = 512_000;

/// Bits of [`Smart::critical_warning`].
pub mod warning {
    /// The spare capacity is below its threshold.
    pub const SPARE: u8 = 1 << 0;
    /// A temperature is above, or below, what it should be.
    pub const TEMPERATURE: u8 = 1 << 1;
    /// Errors have made the drive less reliable.
    pub const RELIABILITY: u8 = 1 << 2;
    /// Nothing can be written any more.
    pub const READ_ONLY: u8 = 1 << 3;
    /// What keeps volatile memory over a power cut has failed.
    pub const BACKUP: u8 = 1 << 4;
    /// The persistent memory region can be read only, or is unreliable.
    pub const MEMORY_REGION: u8 = 1 << 5;
}

/// The page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Smart {
    /// What is wrong now; see [`warning`].
    pub critical_warning: u8,
    /// The composite temperature in kelvin; 0: not said.
    pub kelvin: u16,
    /// Spare capacity that is left, in per cent.
    pub available_spare: u8,
    /// Below this many per cent of spare it warns.
    pub spare_threshold: u8,
    /// Life that is used, in per cent; 255 stands for more, too.
    pub percentage_used: u8,
    /// What is wrong in any of its endurance groups.
    pub endurance_warning: u8,
    /// Units of [`DATA_UNIT_BYTES`] that hosts have read, rounded up.
    pub data_units_read: u128,
    /// Units of [`DATA_UNIT_BYTES`] that hosts have written, rounded up.
    pub data_units_written: u128,
    /// Commands of hosts that read.
    pub read_commands: u128,
    /// Commands of hosts that wrote.
    pub write_commands: u128,
    /// Minutes that it was busy with I/O commands.
    pub busy_minutes: u128,
    /// How often it was powered on.
    pub power_cycles: u128,
    /// Hours that it was on.
    pub power_on_hours: u128,
    /// How often it lost power without notice.
    pub unsafe_shutdowns: u128,
    /// Errors of its media, or of data's integrity, that it could not mend.
    pub media_errors: u128,
    /// Entries in its error log over its life.
    pub error_log_entries: u128,
    /// Minutes at or above its warning temperature.
    pub warning_minutes: u32,
    /// Minutes at or above its critical temperature.
    pub critical_minutes: u32,
    /// Its temperature sensors 1 to 8 in kelvin; 0: there is none of that number.
    pub sensors_kelvin: [u16; 8],
    /// How often it became slower for the heat, by the lower and by the higher limit.
    pub throttled: [u32; 2],
    /// Seconds that it was slower for the heat, by the lower and by the higher limit.
    pub throttled_seconds: [u32; 2],
}

impl Smart {
    /// Reads the page.
    pub fn decode(b: &[u8; BYTES]) -> Self {
        Self {
            critical_warning: b[0],
            kelvin: u16_at(b, 1),
            available_spare: b[3],
            spare_threshold: b[4],
            percentage_used: b[5],
            endurance_warning: b[6],
            data_units_read: u128_at(b, 32),
            data_units_written: u128_at(b, 48),
            read_commands: u128_at(b, 64),
            write_commands: u128_at(b, 80),
            busy_minutes: u128_at(b, 96),
            power_cycles: u128_at(b, 112),
            power_on_hours: u128_at(b, 128),
            unsafe_shutdowns: u128_at(b, 144),
            media_errors: u128_at(b, 160),
            error_log_entries: u128_at(b, 176),
            warning_minutes: u32_at(b, 192),
            critical_minutes: u32_at(b, 196),
            sensors_kelvin: core::array::from_fn(|sensor| u16_at(b, 200 + 2 * sensor)),
            throttled: [u32_at(b, 216), u32_at(b, 220)],
            throttled_seconds: [u32_at(b, 224), u32_at(b, 228)],
        }
    }

    /// Writes the page.
    pub fn encode(&self) -> [u8; BYTES] {
        let mut b = [0; BYTES];
        b[0] = self.critical_warning;
        put(&mut b, 1, &self.kelvin.to_le_bytes());
        (b[3], b[4]) = (self.available_spare, self.spare_threshold);
        (b[5], b[6]) = (self.percentage_used, self.endurance_warning);
        let counters = [
            (32, self.data_units_read),
            (48, self.data_units_written),
            (64, self.read_commands),
            (80, self.write_commands),
            (96, self.busy_minutes),
            (112, self.power_cycles),
            (128, self.power_on_hours),
            (144, self.unsafe_shutdowns),
            (160, self.media_errors),
            (176, self.error_log_entries),
        ];
        counters.into_iter().for_each(|(at, value)| put(&mut b, at, &value.to_le_bytes()));
        for (sensor, kelvin) in self.sensors_kelvin.iter().enumerate() {
            put(&mut b, 200 + 2 * sensor, &kelvin.to_le_bytes());
        }
        let [lower, higher] = self.throttled;
        let [lower_seconds, higher_seconds] = self.throttled_seconds;
        let times = [
            (192, self.warning_minutes),
            (196, self.critical_minutes),
            (216, lower),
            (220, higher),
            (224, lower_seconds),
            (228, higher_seconds),
        ];
        times.into_iter().for_each(|(at, value)| put(&mut b, at, &value.to_le_bytes()));
        b
    }

    /// The composite temperature in degrees Celsius; `None`: not said.
    pub fn celsius(&self) -> Option<i32> {
        celsius(self.kelvin)
    }

    /// Its sensors in degrees Celsius, from 1 to the last that there is; `None`: there is none of
    /// that number.
    pub fn sensors_celsius(&self) -> Vec<Option<i32>> {
        let count = self.sensors_kelvin.iter().rposition(|kelvin| *kelvin > 0).map_or(0, |i| i + 1);
        self.sensors_kelvin[..count].iter().map(|kelvin| celsius(*kelvin)).collect()
    }

    /// Bytes that hosts have read.
    pub fn read_bytes(&self) -> u128 {
        self.data_units_read.saturating_mul(DATA_UNIT_BYTES)
    }

    /// Bytes that hosts have written.
    pub fn written_bytes(&self) -> u128 {
        self.data_units_written.saturating_mul(DATA_UNIT_BYTES)
    }
}

/// Degrees Celsius of a temperature in kelvin, as NVMe has it: whole kelvin above absolute zero,
/// which is taken to be -273 °C; `None` for 0, which means that none is said.
pub fn celsius(kelvin: u16) -> Option<i32> {
    (kelvin > 0).then(|| i32::from(kelvin) - 273)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Health;
    use proptest::prelude::*;

    /// Each counter has a number of its own, at the place that the document names.
    #[test]
    fn the_page_is_read_where_the_document_says() {
        let mut b = [0; BYTES];
        b[..7].copy_from_slice(&[0b1010, 0x43, 1, 99, 10, 255, 4]);
        (0..10).for_each(|counter| b[32 + 16 * counter] = counter as u8 + 1);
        b[47] = 0x80;
        (b[192], b[197], b[200], b[201], b[204], b[205]) = (11, 1, 0x2b, 1, 0x11, 1);
        (b[216], b[220], b[224], b[229]) = (21, 22, 23, 1);
        let is = Smart {
            critical_warning: warning::TEMPERATURE | warning::READ_ONLY,
            kelvin: 323,
            available_spare: 99,
            spare_threshold: 10,
            percentage_used: 255,
            endurance_warning: 4,
            data_units_read: 1 << 127 | 1,
            data_units_written: 2,
            read_commands: 3,
            write_commands: 4,
            busy_minutes: 5,
            power_cycles: 6,
            power_on_hours: 7,
            unsafe_shutdowns: 8,
            media_errors: 9,
            error_log_entries: 10,
            warning_minutes: 11,
            critical_minutes: 256,
            sensors_kelvin: [299, 0, 273, 0, 0, 0, 0, 0],
            throttled: [21, 22],
            throttled_seconds: [23, 256],
        };
        let read = Smart::decode(&b);
        assert_eq!(read, is);
        assert_eq!((read.celsius(), read.written_bytes()), (Some(50), 1_024_000));
        assert_eq!(read.read_bytes(), u128::MAX, "more than can be");
        assert_eq!(read.sensors_celsius(), [Some(26), None, Some(0)]);
        assert_eq!(Smart::default().sensors_celsius(), []);
    }

    #[test]
    fn zero_kelvin_is_no_temperature() {
        let table = [(0, None), (1, Some(-272)), (273, Some(0)), (343, Some(70))];
        for (kelvin, is) in table {
            assert_eq!(celsius(kelvin), is, "{kelvin}");
        }
        assert_eq!(celsius(u16::MAX), Some(65262));
    }

    #[test]
    fn what_a_target_of_ours_says_is_read() {
        let health = Health {
            is_read_only: true,
            written_bytes: 1,
            media_errors: 3,
            errors: 4,
            ..Health::default()
        };
        let read = Smart::decode(&health.encode());
        assert_eq!((read.critical_warning, read.celsius()), (warning::READ_ONLY, Some(27)));
        assert_eq!((read.available_spare, read.spare_threshold), (100, 10));
        assert_eq!((read.data_units_written, read.media_errors, read.error_log_entries), (1, 3, 4));
    }

    proptest! {
        /// Any bytes are a page; written again they are the same but for what is reserved.
        #[test]
        fn any_bytes_are_a_page(bytes in prop::collection::vec(any::<u8>(), BYTES)) {
            let bytes: &[u8; BYTES] = bytes[..].try_into().unwrap();
            let read = Smart::decode(bytes);
            let mut known = *bytes;
            known[7..32].fill(0);
            known[232..].fill(0);
            prop_assert_eq!(read.encode(), known);
            let _ = (read.celsius(), read.sensors_celsius());
            let _ = (read.read_bytes(), read.written_bytes());
        }
    }
}
