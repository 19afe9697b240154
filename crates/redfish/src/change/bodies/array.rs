//! What the start of an array takes, and what a new one is told of its drives.

use super::{Property, Takes, may};

/// Whether namespaces of one drive may be in one group.
pub(super) const SAME_DRIVE: Property = may(
    "SameDrive",
    Takes::Truth,
    "Namespaces of one drive may be in one group, though they die together.",
);

/// Whether other servers may reach the drives.
pub(super) const SHARED: Property = may(
    "Shared",
    Takes::Truth,
    "Other servers may reach the drives. Those behind a fabric count so whatever this says.",
);

/// The parameters of `Assemble`.
pub(super) const ASSEMBLE: &[Property] = &[
    may(
        "StartDegraded",
        Takes::Truth,
        "Start though drives are missing that no record says failed.",
    ),
    may(
        "AcceptLoss",
        Takes::Truth,
        "Start though blocks written at a crash may be wrong, or newest records are gone.",
    ),
    may(
        "TakeOver",
        Takes::Truth,
        "Take a shared array that another server had, once that shows no sign of life any more.",
    ),
    may(
        "OtherServerIsOff",
        Takes::Truth,
        "Say that no other server runs that reaches the drives, where drives can't tell.",
    ),
];
