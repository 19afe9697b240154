//! `palisade serve`: the daemon.

use crate::client::socket_or_default;
use crate::output::Problem;
use control::config::{Config, ConfigError, Placement};
use redfish::messages as say;
use redfish::view::Error;
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
    let read = reader(arguments, socket);
    Ok(control::server::serve(read()?, read)?)
}

/// The same with stand-ins that say how drives are: only to measure what asking costs.
pub fn run_by_stand_ins(arguments: &Arguments) -> Result<(), Problem> {
    let read = reader(arguments, None);
    Ok(control::server::serve_by_stand_ins(read()?, read)?)
}

/// What reads the configuration, as often as it is asked.
fn reader(
    arguments: &Arguments,
    socket: Option<PathBuf>,
) -> impl Fn() -> Result<Config, Error> + Send + Sync + use<> {
    let (file, parity) = (arguments.config.clone(), arguments.parity);
    move || {
        let mut config = read(&file)?;
        config.parity = parity.unwrap_or(config.parity);
        config.socket = socket.clone().or(config.socket).or_else(|| Some(socket_or_default(None)));
        Ok(config)
    }
}

/// Reads the configuration.
pub fn read(file: &Path) -> Result<Config, Error> {
    Config::read(file).map_err(|error| match &error {
        ConfigError::Read(path, why) => Error::new(&say::CONFIG_NOT_READ, &[&path.display(), why]),
        ConfigError::Parse(path, why) => Error::new(&say::CONFIG_WRONG, &[&path.display(), why]),
    })
}
