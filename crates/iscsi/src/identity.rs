//! What a host knows a volume by, over SCSI: the same by whatever server and protocol it comes, so
//! that several ways to it are one volume.

use crate::Name;
use units::Uuid;

/// The vendor in an INQUIRY (SPC-4, 6.4.2).
pub const VENDOR: &str = "PALISADE";
/// The product in an INQUIRY.
pub const PRODUCT: &str = "VOLUME";

/// The company that servers of Linux name, as there is none of Palisade's: OpenFabrics' OUI. What
/// follows it is random, as a UUID is.
const COMPANY: &str = "001405";
/// What the names of targets begin with: `.internal` is reserved for private use.
const TARGET: &str = "iqn.2024-07.internal.palisade:";
/// Digits of the identifier that are the volume's.
const OWN_DIGITS: usize = 25;

/// What a volume is known by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The name of its target.
    pub target: Name,
    /// The unit's serial number (SPC-4, 7.8.18): the volume's UUID. It has as many characters as
    /// tgt makes of each.
    pub serial: String,
    /// Its identifier (SPC-4, 7.8.6.6.5): NAA, IEEE Registered Extended, as 32 hexadecimal digits.
    pub naa: String,
}

impl Identity {
    /// Of a volume.
    pub fn of(volume: Uuid) -> Self {
        let serial = volume.to_string();
        let own: String = serial.replace('-', "").chars().take(OWN_DIGITS).collect();
        let target = Name::of_ours(format!("{TARGET}{volume}"));
        Self { target, naa: format!("6{COMPANY}{own}"), serial }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_known_by_its_uuid() {
        let own =
            Identity::of(Uuid([0x12, 0x34, 0x56, 0x78, 9, 10, 11, 12, 0, 0, 0, 0, 0, 0, 0, 1]));
        assert_eq!(own.serial, "12345678-090a-0b0c-0000-000000000001");
        assert_eq!(own.naa, "600140512345678090a0b0c000000000");
        let target = "iqn.2024-07.internal.palisade:12345678-090a-0b0c-0000-000000000001";
        assert_eq!(Name::new(target), Ok(own.target));
    }
}
