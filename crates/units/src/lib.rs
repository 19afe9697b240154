//! Units as types: one name and one type for each kind of number that crosses a crate border.
//!
//! Purpose: a slot is never mistaken for a strip index, a stripe number never for a band. Byte
//! offsets and lengths inside one function stay `u64`; what they are relative to is in their
//! name (`array_offset`, `drive_offset`). Conversions that can fail return `Option`.
//!
//! Invariant: this crate depends on nothing and does no I/O.

mod mutants;
mod set;
mod size;
mod uuid;
mod wwpn;

pub use set::{SlotSet, StripSet};
pub use size::{format_size, parse_size};
pub use uuid::Uuid;
pub use wwpn::Wwpn;

use core::fmt;

/// Bytes in a KiB.
pub const KIB: u64 = 1 << 10;
/// Bytes in a MiB.
pub const MIB: u64 = 1 << 20;
/// Bytes in a GiB.
pub const GIB: u64 = 1 << 30;
/// Bytes each drive contributes to one band.
pub const BAND_BYTES: u64 = MIB;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl $name {
            /// The number as an index into a slice.
            #[allow(clippy::unnecessary_cast)]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

number! {
    /// A drive's position in an array, counted from 0.
    Slot(u16)
}
number! {
    /// A group of drives that share redundancy, counted from 0 within the array.
    GroupNo(u16)
}
number! {
    /// A stripe of one group, counted from 0 at the start of the data area.
    StripeNo(u64)
}
number! {
    /// A band (1 MiB per drive of consecutive stripes) of one group, counted from 0.
    BandNo(u64)
}
number! {
    /// A strip's role in its stripe: 0..k are data, k..k+m are parity (or copies).
    StripIndex(u16)
}
number! {
    /// A core of the data path, counted from 0.
    CoreId(u16)
}
number! {
    /// A configuration generation of a running array; grows with every published change.
    Generation(u64)
}

/// A point in time or a span, in nanoseconds of a monotonic clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// A span of `n` microseconds.
    pub const fn from_micros(n: u64) -> Self {
        Self(n * 1_000)
    }
    /// A span of `n` milliseconds.
    pub const fn from_millis(n: u64) -> Self {
        Self(n * 1_000_000)
    }
    /// The point `span` later; saturates at the end of time.
    pub const fn after(self, span: Nanos) -> Self {
        Self(self.0.saturating_add(span.0))
    }
    /// The span from `earlier` to `self`, 0 if `earlier` is later.
    pub const fn since(self, earlier: Nanos) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}
