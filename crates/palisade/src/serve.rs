//! `palisade serve`: the daemon.

use crate::client::socket_or_default;
use crate::output::Problem;
use control::config::{Config, ConfigError, Placement};
use std::path::PathBuf;

/// What `palisade serve` takes.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// TOML with socket, cores, drives = ["path or glob", …], drive_deadline_ms,
    /// drive_wait_ms, parity and parity_check
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Where parity is computed: cpu, gpu, or auto, where each job costs less [default: the
    /// configuration's, which is auto if it says nothing]
    #[arg(long, value_name = "WHERE")]
    parity: Option<Placement>,
}

/// Serves until SIGTERM or SIGINT. `socket` overrules the configuration's.
pub fn run(arguments: &Arguments, socket: Option<PathBuf>) -> Result<(), Problem> {
    let mut config = Config::read(&arguments.config).map_err(|error| {
        let hint = match error {
            ConfigError::Read(..) => "name a file that can be read with --config",
            ConfigError::Parse(..) => {
                "the keys are socket, cores, drives = [\"path\", …], drive_deadline_ms, \
                 drive_wait_ms, parity, parity_check"
            }
        };
        Problem::failed(error.to_string(), hint)
    })?;
    config.parity = arguments.parity.unwrap_or(config.parity);
    config.socket = socket.or(config.socket).or_else(|| Some(socket_or_default(None)));
    Ok(control::server::serve(config)?)
}
