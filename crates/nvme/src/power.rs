//! The power state that a drive is in, and is to be in: feature 02h, Power Management.
//!
//! Base, section 5.27.1.2 (dword 11 of Set Features, dword 0 of the completion of Get Features);
//! section 8.15 for what power states are. Which ones a drive has is said by its controller
//! ([`crate::drive::Controller::power_states`]).
//!
//! Invariant: a value that is written has a state that a drive can have.

/// The feature's identifier (Base, section 5.27.1).
pub const FEATURE: u8 = 0x02;

/// The feature's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Power {
    /// The power state's number (PS), 0 to 31.
    pub state: u8,
    /// The workload that the host expects (WH), 0 to 7; 0: none in particular.
    pub workload: u8,
}

impl Power {
    /// Reads the value; any is one.
    pub const fn decode(value: u32) -> Self {
        Self { state: (value & 0x1f) as u8, workload: (value >> 5 & 7) as u8 }
    }

    /// Writes the value; `None`: no drive can have that state or workload.
    pub const fn encode(&self) -> Option<u32> {
        if self.state > 0x1f || self.workload > 7 {
            return None;
        }
        Some(self.state as u32 | (self.workload as u32) << 5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_states_that_can_be_are_written() {
        let power = Power { state: 31, workload: 2 };
        assert_eq!((power.encode(), Power::decode(0xffff_ff5f)), (Some(0x5f), power));
        assert_eq!(Power { state: 32, workload: 0 }.encode(), None);
        assert_eq!(Power { state: 0, workload: 8 }.encode(), None);
    }

    proptest! {
        #[test]
        fn any_value_is_one(value in any::<u32>()) {
            prop_assert_eq!(Power::decode(value).encode(), Some(value & 0xff));
        }
    }
}
