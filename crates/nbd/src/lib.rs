//! The NBD front end, server side: fixed newstyle handshake and transmission.
//!
//! Protocol: "The NBD protocol", doc/proto.md of the NetworkBlockDevice project; comments name
//! its sections. Offered: `base:allocation` block status, structured replies, FUA, flush, trim,
//! write-zeroes, block size information, several connections to one export, export list. TLS is
//! refused by policy; extended headers and resizing are not offered.
//!
//! This crate has no sockets: [`serve_connection`] talks through a [`Transport`], finds volumes
//! through [`Exports`], and runs on whatever implements `io::Env`. Whoever listens accepts
//! connections, picks a core, and runs one `serve_connection` for each.
//!
//! - [`wire`]: bytes. [`limits`]: every bound. `command`: what a request may do.
//! - `handshake`: greeting and options, until an export is chosen.
//! - `transmission`: one receiver, a fixed set of workers, one sender.
//!
//! Invariants
//! - Whatever a client sends ends at most its own connection. Nothing is allocated by a length
//!   it sent; in the transmission phase nothing is allocated for a command at all.
//! - A connection ends only after all its requests to the volume have.
//! - Nothing of a connection that broke lands behind what came by another after that.

mod command;
mod handshake;
pub mod limits;
mod transmission;
pub mod wire;

pub use front::{ConnectionMemory, Fence, Link, MemorySize};
pub use io::{Closed, Transport};

use io::{Blocks, Env};
use std::rc::Rc;
use std::sync::Arc;

/// The exports a connection may choose from.
pub trait Exports {
    /// What is served.
    type Volume: Blocks;

    /// Names of all exports, for clients that ask.
    fn list(&self) -> Vec<String>;

    /// Opens an export, with the fence that all connections of its volume share. The empty name is
    /// the default export; if this gives `None` for it and there is exactly one export, that one is
    /// the default.
    fn open(&self, name: &str) -> Option<(Self::Volume, Arc<Fence>)>;

    /// This connection, as others see it.
    fn link(&self) -> Arc<dyn Link>;
}

/// What a client did that the protocol forbids and no reply can tell it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Violation {
    /// Client flags we did not offer.
    #[error("unknown client flags")]
    ClientFlags,
    /// An option did not begin with its magic.
    #[error("option without its magic")]
    OptionMagic,
    /// More option data than [`limits::OPTION_BYTES`].
    #[error("option too long")]
    OptionTooLong,
    /// More than [`limits::OPTIONS`] options.
    #[error("too many options")]
    TooManyOptions,
    /// A client without fixed newstyle sent another option than the export's name.
    #[error("option needs fixed newstyle")]
    NotFixedNewstyle,
    /// A request did not begin with its magic.
    #[error("request without its magic")]
    RequestMagic,
    /// A write with more payload than [`limits::REQUEST_BYTES_MAX`].
    #[error("write too long")]
    WriteTooLong,
}

/// Why a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndReason {
    /// The client said goodbye in the transmission phase.
    Disconnected,
    /// The client said goodbye in the handshake.
    Aborted,
    /// The transport was closed, by either side.
    Closed,
    /// `NBD_OPT_EXPORT_NAME` named an export that does not exist; the option has no error reply.
    UnknownExport,
    /// The client broke the protocol.
    Violation(Violation),
    /// The core already has as many connections as its memory allows.
    Refused,
}

/// Serves one connection from greeting to end; the transport is closed then. Must be polled to
/// its end: to stop early, close the transport. Runs further tasks on the same core, which end
/// with it.
pub async fn serve_connection<E, T, X>(
    env: E,
    transport: Rc<T>,
    exports: X,
    memory: Rc<ConnectionMemory>,
) -> EndReason
where
    E: Env,
    T: Transport,
    X: Exports,
{
    let reason = match front::Share::open(&memory) {
        None => EndReason::Refused,
        Some(share) => {
            let mut scratch = vec![0; limits::OPTION_BYTES].into_boxed_slice();
            match handshake::negotiate(&*transport, &exports, &mut scratch).await {
                Err(reason) => reason,
                Ok(agreed) => {
                    let passage = Rc::new(agreed.fence.enter(exports.link()));
                    let own = (share, passage);
                    transmission::serve(env, transport.clone(), agreed, own, &mut scratch).await
                }
            }
        }
    };
    transport.close();
    reason
}
