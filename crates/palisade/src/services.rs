//! `palisade services`: what makes block devices and files of this machine for the daemon.

use crate::client::socket_or_default;
use crate::output::Problem;
use control::config::Config;
use redfish::messages as say;
use std::path::{Path, PathBuf};

/// What `palisade services` takes.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Configuration file (TOML), the daemon's
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Does what the daemon wants until the process is ended. `socket` overrules the configuration's.
pub fn run(arguments: &Arguments, socket: Option<PathBuf>) -> Result<(), Problem> {
    let config: Config = crate::serve::read(&arguments.config)?;
    let socket = socket.or(config.socket).unwrap_or_else(|| socket_or_default(None));
    let usual = Path::new(redfish::view::DEFAULT_SOCKET);
    let folder = config.services.unwrap_or_else(|| services::folder(&socket, usual));
    match services::run(&services::socket(&socket), &folder) {
        Ok(never) => match never {},
        Err(why) => Err(Problem::new(&say::SERVICES_CANNOT_RUN, &[&why])),
    }
}
