//! How the paths of a subsystem are used: what people may set of that.

use crate::limits::ENTRIES;
use nvme::pdu::Digests;
use units::Nanos;

/// How paths are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// I/O queues of an association: the numbers of those that cores connect are 1 to this.
    pub io_queues: u16,
    /// Entries of a queue.
    pub entries: u16,
    /// Digests of PDUs.
    pub digests: Digests,
    /// The keep-alive timeout; not 0.
    pub keep_alive: Nanos,
    /// From a try to connect to the next.
    pub reconnect_delay: Nanos,
    /// How long requests wait for a path.
    pub fast_io_fail: Nanos,
    /// How long it is tried to connect anew.
    pub controller_loss: Nanos,
    /// What drives have in caches outlives a loss of their power, whatever they say: nothing is a
    /// lapse.
    pub caches_stay: bool,
}

impl Default for Settings {
    /// As paths are used where nobody says otherwise. Who connects cores says how many queues there
    /// are: here none is.
    fn default() -> Self {
        Self {
            io_queues: 0,
            entries: ENTRIES,
            digests: Digests::default(),
            keep_alive: Nanos::from_millis(2_000),
            reconnect_delay: Nanos::from_millis(1_000),
            fast_io_fail: Nanos::from_millis(5_000),
            controller_loss: Nanos::from_millis(600_000),
            caches_stay: false,
        }
    }
}
