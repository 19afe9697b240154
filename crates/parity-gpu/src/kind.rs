//! The kernels by name.
//!
//! Purpose: one list of what `kernels/parity.c` exports, for whoever launches, tests or counts.

/// One kernel; see the top of `kernels/parity.c` for what each computes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// P: the sum of the inputs.
    GenerateP,
    /// P, and Q: the sum of g^i times input i.
    GeneratePq,
    /// P, Q, and R: the sum of g^2i times input i.
    GeneratePqr,
    /// Each output is a row of factors times the inputs.
    Dot,
    /// Adds changes of inputs to P.
    DeltaP,
    /// Adds changes of inputs, each times its factor, to Q.
    DeltaQ,
    /// Both.
    DeltaPq,
    /// Adds changes of inputs, times a row of factors for each output.
    Deltas,
    /// Where P first differs from the inputs' sum.
    VerifyP,
    /// Where P or Q first differs.
    VerifyPq,
    /// Where P, Q or R first differs.
    VerifyPqr,
    /// Where outputs first differ from what [`Kind::Dot`] would give.
    VerifyDot,
    /// CRC-32C of each block of each input.
    Crc32c,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 13] = [
        Kind::GenerateP,
        Kind::GeneratePq,
        Kind::GeneratePqr,
        Kind::Dot,
        Kind::DeltaP,
        Kind::DeltaQ,
        Kind::DeltaPq,
        Kind::Deltas,
        Kind::VerifyP,
        Kind::VerifyPq,
        Kind::VerifyPqr,
        Kind::VerifyDot,
        Kind::Crc32c,
    ];

    /// The kernel's name in every form.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::GenerateP => "parity_generate_p",
            Kind::GeneratePq => "parity_generate_pq",
            Kind::GeneratePqr => "parity_generate_pqr",
            Kind::Dot => "parity_dot",
            Kind::DeltaP => "parity_delta_p",
            Kind::DeltaQ => "parity_delta_q",
            Kind::DeltaPq => "parity_delta_pq",
            Kind::Deltas => "parity_deltas",
            Kind::VerifyP => "parity_verify_p",
            Kind::VerifyPq => "parity_verify_pq",
            Kind::VerifyPqr => "parity_verify_pqr",
            Kind::VerifyDot => "parity_verify_dot",
            Kind::Crc32c => "parity_crc32c",
        }
    }

    /// Whether it adds to its outputs, so that they go to the device first.
    pub const fn adds(self) -> bool {
        matches!(self, Kind::DeltaP | Kind::DeltaQ | Kind::DeltaPq | Kind::Deltas)
    }

    /// Whether it compares its outputs, so that it only reads them.
    pub const fn compares(self) -> bool {
        matches!(self, Kind::VerifyP | Kind::VerifyPq | Kind::VerifyPqr | Kind::VerifyDot)
    }
}
