//! `palisade demo`: the main job, played with separate processes as a user would.
//!
//! Purpose: show that an array serves real clients and outlives its drives. This module calls the
//! program's own daemon and command line, and `nbdinfo`, `nbdcopy`, `qemu-img`, `e2fsck` and
//! `script/read-array` of other people or other make; it knows nothing of drives or engine and
//! compares only what clients read.
//!
//! - [`play`]: the steps; [`share`]: those of a file share; [`serve`]: an array to play with;
//!   [`console`]: that with a page, under the [`load`] of a client of its own; [`plan`]: what the
//!   options mean.
//! - [`daemon`], [`tools`], [`child`], [`stream`]: the processes.
//! - [`place`], [`image`], [`random`]: the files. [`report`], [`bar`]: what is shown.
//!
//! Invariant: every process and every temporary file it makes is gone when it ends, however it
//! ends; only SIGKILL leaves files behind.

mod bar;
pub mod child;
mod console;
mod daemon;
mod error;
mod image;
mod load;
mod place;
mod plan;
mod play;
mod random;
mod report;
mod serve;
mod share;
mod stream;
mod tools;

use clap::builder::ArgPredicate;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

/// Set in the environment of a daemon that must not outlive who started it.
const PARENT: &str = "PALISADE_END_WITH_PARENT";

/// Most drives.
const MOST: i64 = layout::MAX_DRIVES as i64;

/// What `palisade demo` takes.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// RAID level [default: 5; with --console: 6]
    #[arg(
        long,
        default_value = "5",
        default_value_if("console", ArgPredicate::IsPresent, "6"),
        hide_default_value = true,
        value_parser = ["0", "1", "5", "6", "10"]
    )]
    pub level: String,
    /// Number of drives [default: 8; with --serve and level 1: 2; with --console and other levels:
    /// 12 of 24]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=MOST))]
    pub drives: Option<u16>,
    /// Size of each drive [default: 128M; with --serve: enough for a volume of 512M; with
    /// --console: 512M]
    #[arg(long, value_name = "SIZE")]
    pub drive_size: Option<String>,
    /// Strip size
    #[arg(long, value_name = "SIZE")]
    pub strip: Option<String>,
    /// Create drives and image in this folder, and keep them [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Create an array and a volume, print how to connect, and serve until interrupted
    #[arg(long)]
    pub serve: bool,
    /// Listen for NBD at this address [default: 127.0.0.1:10809, or a free port]
    #[arg(long, value_name = "ADDR:PORT", requires = "serve")]
    pub nbd: Option<String>,
    /// Listen for NVMe/TCP at this address, and let any host connect
    #[arg(long, value_name = "ADDR:PORT", requires = "serve")]
    pub nvme_tcp: Option<String>,
    /// Serve the web console over HTTPS at this address (port 0: any), and print its URL, account
    /// and password. There are 24 drives in an enclosure, and some load
    #[arg(long, value_name = "ADDR:PORT", requires = "serve")]
    pub console: Option<SocketAddr>,
    /// Play it with a file share: clients of SMB and NFS. With --serve: leave one to play with
    #[arg(long, conflicts_with_all = ["nbd", "nvme_tcp", "console"])]
    pub share: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Plays the demo, or serves. The status is 0 when all went well, 1 when a step failed, 2 when the
/// options can't be carried out.
pub fn run(options: &Options) -> ExitCode {
    let result = prepare(options);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(None) => ExitCode::FAILURE,
        Err(Some(error)) => {
            eprintln!("palisade demo: {error}\n{}", error.advice());
            ExitCode::from(if matches!(error, error::DemoError::Usage(_)) { 2 } else { 1 })
        }
    }
}

/// The error is none where it was told already.
fn prepare(options: &Options) -> Result<(), Option<error::DemoError>> {
    let plan = plan::Plan::new(options)?;
    if options.share && !rustix::process::geteuid().is_root() {
        return Err(Some(error::DemoError::NotRoot));
    }
    let drives = match options.console {
        Some(_) => place::Drives::Slots,
        None => {
            tools::check(options.share)?;
            place::Drives::Plain
        }
    };
    let interrupt = child::Interrupt::watch()
        .map_err(|error| error::DemoError::Wrong(format!("signals: {error}")))?;
    let mut place = place::Place::new(options.dir.as_deref(), drives)?;
    place.needs(plan.file_bytes())?;
    if let Some(address) = options.console {
        return Ok(console::serve(&plan, &place, address, &interrupt)?);
    }
    if options.share {
        place.open_to_shares()?;
        return match options.serve {
            true => Ok(share::serve(&plan, &place, &interrupt)?),
            false => share::play(&plan, &place, &interrupt),
        };
    }
    if options.serve {
        return Ok(serve::serve(&plan, &place, &interrupt)?);
    }
    play::play(&plan, &place, &interrupt)
}

/// To be called by the daemon first of all: if the demo started it, it ends with the demo, even
/// where that is killed.
pub fn end_with_parent() {
    if std::env::var_os(PARENT).is_some() {
        let _ =
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM));
    }
}
