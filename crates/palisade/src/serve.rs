//! `palisade serve`: the daemon.

use crate::client::socket_or_default;
use crate::output::Problem;
use control::api::Error;
use control::config::{Config, ConfigError, Placement};
use std::path::{Path, PathBuf};

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
    let (file, parity) = (arguments.config.clone(), arguments.parity);
    let read = move || {
        let mut config = read(&file)?;
        config.parity = parity.unwrap_or(config.parity);
        config.socket = socket.clone().or(config.socket).or_else(|| Some(socket_or_default(None)));
        Ok(config)
    };
    Ok(control::server::serve(read()?, read)?)
}

/// Reads the configuration.
fn read(file: &Path) -> Result<Config, Error> {
    Config::read(file).map_err(|error| {
        let hint = match error {
            ConfigError::Read(..) => "name a readable file with --config",
            ConfigError::Parse(..) => {
                "correct the file; its keys are socket, cores, drives = [\"PATH\", …], \
                 drive_deadline_ms, drive_wait_ms, parity, parity_check, confirm and state"
            }
        };
        Error::failed(error.to_string(), hint)
    })
}
