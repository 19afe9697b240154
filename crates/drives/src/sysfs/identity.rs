//! What identifies a drive for ever, whatever its name is now.
//!
//! Invariant: silence says nothing. Where the kernel does not tell enough, two identities are
//! neither the same nor another.

/// What identifies a block device.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Identity {
    /// Its World Wide Identifier; that of a partition ends in `-part` and its number.
    pub wwid: Option<String>,
    /// The serial number of the drive, of a partition too.
    pub serial: Option<String>,
    /// Which of the drive's namespaces it is, for NVMe.
    pub namespace: Option<u32>,
    /// Which partition it is; `None` for a whole drive.
    pub partition: Option<u32>,
}

/// What two identities are to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// They are of one drive.
    Same,
    /// They are of two drives.
    Other,
    /// They don't say enough.
    Unknown,
}

/// Whether both are said, and differ.
fn differs<T: PartialEq>(one: &Option<T>, two: &Option<T>) -> bool {
    one.is_some() && two.is_some() && one != two
}

impl Identity {
    /// Whether nothing is known of the drive.
    pub fn is_silent(&self) -> bool {
        self.wwid.is_none() && self.serial.is_none()
    }

    /// What this identity and another are to each other, in either order.
    ///
    /// A World Wide Identifier that both have decides. Where neither has one, the serial number
    /// does, with the namespace; where one has, the serial number can tell only that they differ.
    pub fn compare(&self, other: &Self) -> Comparison {
        if self.is_silent() || other.is_silent() {
            return Comparison::Unknown;
        }
        if self.partition != other.partition
            || differs(&self.wwid, &other.wwid)
            || differs(&self.serial, &other.serial)
            || differs(&self.namespace, &other.namespace)
        {
            return Comparison::Other;
        }
        let serial = self.serial.is_some() && self.serial == other.serial;
        match (&self.wwid, &other.wwid) {
            (Some(_), Some(_)) => Comparison::Same,
            (None, None) if serial && self.namespace == other.namespace => Comparison::Same,
            _ => Comparison::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Comparison::{Other, Same, Unknown};

    fn identity(wwid: &str, serial: &str, namespace: u32, partition: u32) -> Identity {
        let said = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let number = |number: u32| Some(number).filter(|number| *number > 0);
        Identity {
            wwid: said(wwid),
            serial: said(serial),
            namespace: number(namespace),
            partition: number(partition),
        }
    }

    #[test]
    fn two_identities_are_compared() {
        for (one, two, expected) in [
            // WWID, serial, namespace, partition; nothing where the kernel is silent.
            (("a", "1", 1, 0), ("a", "1", 1, 0), Same),
            (("a", "1", 1, 0), ("b", "1", 2, 0), Other),
            (("a", "1", 1, 0), ("b", "1", 1, 0), Other),
            (("a", "1", 1, 0), ("a", "2", 1, 0), Other),
            (("a", "", 0, 0), ("a", "1", 1, 0), Same),
            (("a", "", 0, 0), ("b", "1", 1, 0), Other),
            (("a", "1", 1, 0), ("", "1", 1, 0), Unknown),
            (("a", "1", 1, 0), ("", "2", 1, 0), Other),
            (("a", "1", 1, 0), ("", "1", 2, 0), Other),
            (("a", "", 1, 0), ("", "1", 1, 0), Unknown),
            (("", "1", 1, 0), ("", "1", 1, 0), Same),
            (("", "1", 0, 0), ("", "1", 0, 0), Same),
            (("", "1", 1, 0), ("", "1", 0, 0), Unknown),
            (("", "1", 1, 0), ("", "1", 2, 0), Other),
            (("", "", 0, 0), ("a", "1", 1, 0), Unknown),
            (("", "", 0, 0), ("", "", 0, 0), Unknown),
            (("", "", 1, 1), ("", "", 2, 2), Unknown),
            (("", "1", 0, 1), ("", "1", 0, 2), Other),
            (("", "1", 0, 0), ("", "1", 0, 1), Other),
            (("a-part1", "1", 1, 1), ("a-part1", "1", 1, 1), Same),
            (("a", "1", 1, 0), ("a-part1", "1", 1, 1), Other),
        ] {
            let (one, two) =
                (identity(one.0, one.1, one.2, one.3), identity(two.0, two.1, two.2, two.3));
            assert_eq!(one.compare(&two), expected, "{one:?} {two:?}");
            assert_eq!(two.compare(&one), expected, "{two:?} {one:?}");
        }
    }
}
