//! Everything the cores of an engine send each other.

use crate::array::message::ArrayId;
use crate::array::view::View;
use crate::manage::command::Request;
use crate::region::table::TableStart;
use crate::watch::Opened;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use units::CoreId;

/// One piece of mail.
pub enum Mail<S> {
    /// About a running array.
    Array(ArrayId, crate::array::message::Mail<S>),
    /// From the manager to every core: run this array.
    Start {
        /// Its name within the engine.
        array: ArrayId,
        /// Its first snapshot.
        view: Arc<View>,
        /// The drive of each slot, where there is one.
        drives: Vec<Option<Opened<S>>>,
        /// What is known of its region map.
        regions: Arc<TableStart>,
        /// Counts the flushes of all drives that its cores begin.
        flushes: Arc<AtomicU64>,
    },
    /// To the manager: this core runs the array.
    Started {
        /// Which core.
        core: CoreId,
        /// Which array.
        array: ArrayId,
    },
    /// From the manager to every core: forget the array; nothing uses it any more.
    Forget(ArrayId),
    /// From the control plane to the manager.
    Request(Request<S>),
}
