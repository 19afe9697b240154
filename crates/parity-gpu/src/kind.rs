//! The kernels by name.
//!
//! Purpose: one list of what `kernels/parity.c` exports, for whoever launches, tests or counts.

/// Hands the list to a macro: each kernel's name here and in every form of the source.
macro_rules! kernels {
    ($each:ident) => {
        $each! {
            /// P: the sum of the inputs.
            GenerateP parity_generate_p
            /// P, and Q: the sum of g^i times input i.
            GeneratePq parity_generate_pq
            /// P, Q, and R: the sum of g^2i times input i.
            GeneratePqr parity_generate_pqr
            /// Each output is a row of factors times the inputs.
            Dot parity_dot
            /// Adds changes of inputs to P.
            DeltaP parity_delta_p
            /// Adds changes of inputs, each times its factor, to Q.
            DeltaQ parity_delta_q
            /// Both.
            DeltaPq parity_delta_pq
            /// Adds changes of inputs, times a row of factors for each output.
            Deltas parity_deltas
            /// Where P first differs from the inputs' sum.
            VerifyP parity_verify_p
            /// Where P or Q first differs.
            VerifyPq parity_verify_pq
            /// Where P, Q or R first differs.
            VerifyPqr parity_verify_pqr
            /// Where outputs first differ from what [`Kind::Dot`] would give.
            VerifyDot parity_verify_dot
            /// CRC-32C of each block of each input.
            Crc32c parity_crc32c
        }
    };
}
#[cfg(feature = "fake")]
pub(crate) use kernels;

macro_rules! kind {
    ($($(#[$doc:meta])* $kind:ident $name:ident)*) => {
        /// One kernel; see the top of `kernels/parity.c` for what each computes.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Kind] = &[$(Kind::$kind),*];

            /// The kernel's name in every form.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Kind::$kind => stringify!($name),)*
                }
            }
        }
    };
}
kernels!(kind);

impl Kind {
    /// Whether it adds to its outputs, so that they go to the device first.
    pub(crate) const fn adds(self) -> bool {
        matches!(self, Kind::DeltaP | Kind::DeltaQ | Kind::DeltaPq | Kind::Deltas)
    }

    /// Whether it compares its outputs, so that it only reads them.
    #[cfg(test)]
    pub(crate) const fn compares(self) -> bool {
        matches!(self, Kind::VerifyP | Kind::VerifyPq | Kind::VerifyPqr | Kind::VerifyDot)
    }

    /// Whether it multiplies, a few rows at a time.
    pub(crate) const fn by_rows(self) -> bool {
        matches!(self, Kind::Dot | Kind::Deltas | Kind::VerifyDot)
    }
}
