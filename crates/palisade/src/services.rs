//! `palisade services`: what makes block devices and files of this machine for the daemon.

use crate::client::socket_or_default;
use crate::output::Problem;
use control::config::Config;
use redfish::messages as say;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// What `palisade services` takes.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Configuration file (TOML), the daemon's
    #[arg(long, value_name = "FILE", required_unless_present = "reader")]
    config: Option<PathBuf>,
    /// Read blocks for the process that has begun this one
    #[arg(long, hide = true)]
    reader: bool,
}

/// Does what the daemon wants until the process is ended. `socket` overrules the configuration's.
pub fn run(arguments: &Arguments, socket: Option<PathBuf>) -> Result<(), Problem> {
    let Some(config) = arguments.config.as_ref().filter(|_| !arguments.reader) else {
        // It would be called `exe`.
        let _ = std::fs::write("/proc/self/comm", "palisade-reader");
        services::read_for_another(io::stdin().lock(), io::stdout());
        return Ok(());
    };
    let config: Config = crate::serve::read(config)?;
    let socket = socket.or(config.socket).unwrap_or_else(|| socket_or_default(None));
    let usual = Path::new(redfish::view::DEFAULT_SOCKET);
    let folder = config.services.unwrap_or_else(|| services::folder(&socket, usual));
    // Without a thread for that the machine stops as it does.
    let _ = std::thread::Builder::new().name("palisade-end".to_owned()).spawn(end_in_time);
    match services::run(&services::socket(&socket), &folder) {
        Ok(never) => match never {},
        Err(why) => Err(Problem::new(&say::SERVICES_CANNOT_RUN, &[&why])),
    }
}

/// Waits for the end of this process. What it made stays, unless the machine stops.
fn end_in_time() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
        terminate.recv().await;
        if machine_stops() {
            services::end();
        }
        std::process::exit(0);
    });
}

/// Whether the service manager stops all there is (systemctl(1), `is-system-running`).
fn machine_stops() -> bool {
    let asked = Command::new("systemctl").arg("is-system-running").output();
    asked.is_ok_and(|told| told.stdout.trim_ascii() == b"stopping")
}
