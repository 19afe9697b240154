//! The array engine: volumes, arrays, stripes, rebuild, resync, scrub.
