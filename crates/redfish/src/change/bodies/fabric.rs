//! What is taken of paths to drives behind NVMe over Fabrics.

use super::{Property, TCP_PORT, Takes, may, must};
use crate::change::fabric;

const HOST_NQN: Property =
    may("HostNQN", Takes::Text, "The NQN by which this host is known there.");
const HOST_ID: Property = may("HostID", Takes::Text, "Its host identifier, a UUID.");
const HEADER_DIGEST: Property = may("HeaderDigest", Takes::Truth, "Whether headers have digests.");
const DATA_DIGEST: Property = may("DataDigest", Takes::Truth, "Whether data has digests.");

const fn within((least, most): (u16, u16)) -> Takes {
    Takes::Whole(least as u64, most as u64)
}

/// Asks a discovery service.
pub(super) const DISCOVER: &[Property] = &[
    must("Address", Takes::Text, "The service's address, or a name that leads there."),
    may("Port", TCP_PORT, "Its TCP port; 8009 where none is given."),
    HOST_NQN,
    HOST_ID,
    HEADER_DIGEST,
    DATA_DIGEST,
];

/// Connects.
pub(super) const CONNECT: &[Property] = &[
    must("Address", Takes::Text, "The address, or a name that leads there."),
    may("Port", TCP_PORT, "The TCP port; 4420, or 8009 without a subsystem."),
    may("Subsystem", Takes::Text, "The NQN of the subsystem."),
    HOST_NQN,
    HOST_ID,
    HEADER_DIGEST,
    DATA_DIGEST,
    may("IOQueues", within(fabric::IO_QUEUES), "I/O queues of a path."),
    may("QueueSize", within(fabric::QUEUE_SIZE), "Entries of each."),
    may("KeepAliveSeconds", within(fabric::KEEP_ALIVE), "The keep-alive timeout."),
    may(
        "ReconnectDelaySeconds",
        within(fabric::RECONNECT_DELAY),
        "The time from a try to connect to the next.",
    ),
    may(
        "FastIOFailSeconds",
        within(fabric::FAST_IO_FAIL),
        "The time for which requests wait for a path.",
    ),
    may(
        "ControllerLossSeconds",
        within(fabric::CONTROLLER_LOSS),
        "The time for which it is tried to connect anew.",
    ),
];

/// Disconnects.
pub(super) const DISCONNECT: &[Property] = &[
    must("Subsystem", Takes::Text, "The NQN of the subsystem."),
    may("Address", Takes::Text, "The address of the path."),
    may("Port", TCP_PORT, "Its TCP port; 4420 where none is given."),
];
