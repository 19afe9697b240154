//! A shelf of drives behind NVMe/TCP, as a machine room has them: drives that are reached by ports
//! of two IO modules, any of which can be pulled out, fall silent or be slow. To prove on one
//! machine what hosts of such a shelf do.
//!
//! - [`plan`]: what a shelf is made of, and what its parts are called. `state`: what has become of
//!   them, and what is shown. `sensors`: what it measures of itself. `zone`: which hosts have what.
//!   These do nothing.
//! - [`Shelf`]: one that runs: `core` is what runs on each core, `gate` a connection that can fall
//!   silent, `namespace` what is served, `switches` what connections look at.
//! - [`ask`]: what a running shelf is asked, over a socket. `service`: the same over HTTPS, as such
//!   shelves have it.

mod ask;
mod core;
mod error;
mod gate;
mod namespace;
pub mod plan;
mod rack;
mod sensors;
mod service;
mod state;
mod switches;
mod zone;

pub use ask::{Answer, Ask, Control, ask};
pub use error::ShelfError;
pub use plan::Plan;
pub use rack::{Shelf, serial};
pub use sensors::{Reading, ShownSensor};
pub use service::{Access, Service};
pub use state::{Pull, Shown, ShownDrive, ShownModule, ShownNamespace, ShownPort};
pub use zone::ZoneWords;
