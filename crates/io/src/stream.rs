//! A connection as front ends see it: bytes both ways.

use core::future::Future;
use std::io::IoSlice;

/// The stream's other end is gone, or [`Transport::close`] was called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closed;

impl core::fmt::Display for Closed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("connection closed")
    }
}

impl core::error::Error for Closed {}

/// A stream of bytes both ways, used by tasks of one core: at most one reads and one writes at
/// the same time. Futures are polled to their end.
pub trait Transport: 'static {
    /// Fills `into`. Headers are read one by one: a socket should buffer short reads.
    fn read_exact(&self, into: &mut [u8]) -> impl Future<Output = Result<(), Closed>>;

    /// Sends all parts in order. The slices may be advanced in place.
    fn write_all(&self, parts: &mut [IoSlice<'_>]) -> impl Future<Output = Result<(), Closed>>;

    /// Ends the direction to the other end, which reads what was sent and then the end. Nothing may
    /// be written any more.
    fn finish(&self);

    /// Says what the connection is for, once that is known: the name of what it reaches. Who made
    /// the connection may want to know; nothing else comes of it.
    fn is_for(&self, name: &str) {
        let _ = name;
    }

    /// Ends both directions: running and later calls return [`Closed`]. Whoever listens may
    /// call it too, to end a connection that takes too long or when the server stops.
    /// While bytes of the other end are unread this may reset the connection: then what was sent
    /// last may never be read there. See [`Transport::finish`].
    fn close(&self);
}
