//! `palisade serve`: the daemon.

use crate::client::socket_or_default;
use crate::output::Problem;
use control::config::{Config, ConfigError, Placement};
use redfish::messages as say;
use std::path::PathBuf;

/// What `palisade serve` takes.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Configuration file (TOML). Its keys are socket, cores, drives = ["PATH or pattern", …],
    /// drive_deadline_ms, drive_wait_ms, parity and parity_check
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Compute parity on cpu, gpu, or auto: where a job costs less [default: the configuration's,
    /// else auto]
    #[arg(long, value_name = "WHERE")]
    parity: Option<Placement>,
}

/// Serves until SIGTERM or SIGINT. `socket` overrules the configuration's.
pub fn run(arguments: &Arguments, socket: Option<PathBuf>) -> Result<(), Problem> {
    let mut config = Config::read(&arguments.config).map_err(|error| match &error {
        ConfigError::Read(path, why) => {
            Problem::new(&say::CONFIG_NOT_READ, &[&path.display(), why])
        }
        ConfigError::Parse(path, why) => Problem::new(&say::CONFIG_WRONG, &[&path.display(), why]),
    })?;
    config.parity = arguments.parity.unwrap_or(config.parity);
    config.socket = socket.or(config.socket).or_else(|| Some(socket_or_default(None)));
    Ok(control::server::serve(config)?)
}
