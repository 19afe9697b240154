//! The palisade program: daemon and command line; wiring only.
//!
//! One module per noun ([`array`], [`drive`], [`volume`], [`export`], [`task`], [`account`],
//! [`audit`], [`status`]), each a client of the daemon ([`serve`]) through [`client`] and
//! [`fetch`]; [`confirm`] has changes planned and agreed to, [`secret`] reads passwords, [`output`]
//! prints, [`explain`] tells what messages mean. `demo` and `bench` are programs of their own
//! behind the same name.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused for safety, 4 no daemon.

mod account;
mod array;
mod audit;
mod bench;
mod check_config;
mod client;
mod confirm;
mod demo;
mod drive;
mod explain;
mod export;
mod fetch;
mod output;
mod secret;
mod serve;
mod status;
mod task;
mod volume;

use clap::{Parser, Subcommand};
use client::Client;
use output::Problem;
use std::path::PathBuf;
use std::process::ExitCode;

/// Software RAID for NVMe drives, in user space.
#[derive(Debug, Parser)]
#[command(
    name = "palisade",
    version,
    after_help = "Exit status: 0 done, 1 failed, 2 wrong usage, 3 refused to protect data, 4 no \
                  daemon"
)]
struct Arguments {
    /// Socket of the daemon [default: PALISADE_SOCKET, else /run/palisade/palisade.sock]
    #[arg(long, global = true, value_name = "PATH")]
    socket: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the daemon
    Serve(serve::Arguments),
    /// Show all arrays and what they are doing
    Status(status::Arguments),
    /// Manage arrays
    #[command(subcommand)]
    Array(array::Command),
    /// Manage background tasks: rebuild, resync, scrub
    #[command(subcommand)]
    Task(task::Command),
    /// Manage volumes
    #[command(subcommand)]
    Volume(volume::Command),
    /// Manage exports: volumes served over NBD or NVMe/TCP
    #[command(subcommand)]
    Export(export::Command),
    /// Manage drives
    #[command(subcommand)]
    Drive(drive::Command),
    /// Manage accounts, which may log in over the network
    #[command(subcommand)]
    Account(account::Command),
    /// Read and verify the audit log: who changed what
    #[command(subcommand)]
    Audit(audit::Command),
    /// Check a configuration without using it
    CheckConfig(check_config::Arguments),
    /// Explain a message: what it means, why, and what to do; needs no daemon
    Explain(explain::Arguments),
    /// Show a whole life with files as drives: create, export, lose a drive, rebuild
    Demo(demo::Options),
    /// Measure the performance of this machine
    Bench(bench::BenchArgs),
}

fn main() -> ExitCode {
    if cfg!(panic = "unwind") {
        abort_on_panic();
    }
    demo::end_with_parent();
    let Arguments { socket, command } = Arguments::parse();
    let outcome = match command {
        Command::Demo(options) => return demo::run(&options),
        Command::Bench(arguments) => return bench::run(arguments),
        Command::CheckConfig(arguments) => check_config::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Serve(arguments) => {
            let code = serve::run(&arguments, socket).err().map_or(0, |problem| problem.tell());
            control::server::leave_if_stuck(code);
            return ExitCode::from(code);
        }
        command => ask(&command, &Client::new(client::socket_or_default(socket))),
    };
    outcome.unwrap_or_else(|problem| problem.report())
}

/// Has builds that unwind end as releases do: with the first thread that panics, not without it.
fn abort_on_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        usual(info);
        std::process::abort();
    }));
}

/// Carries out what needs the daemon, or may.
fn ask(command: &Command, client: &Client) -> Result<ExitCode, Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| Problem::new(&redfish::messages::COMMAND_CANNOT_START, &[&error]))?;
    runtime.block_on(async {
        match command {
            Command::Array(command) => return array::run(command, client).await,
            Command::Audit(command) => return audit::run(command, client).await,
            Command::Status(arguments) => status::run(arguments, client).await?,
            Command::Account(command) => account::run(command, client).await?,
            Command::Volume(command) => volume::run(command, client).await?,
            Command::Task(command) => task::run(command, client).await?,
            Command::Export(command) => export::run(command, client).await?,
            Command::Drive(command) => drive::run(command, client).await?,
            Command::Serve(_)
            | Command::CheckConfig(_)
            | Command::Demo(_)
            | Command::Bench(_)
            | Command::Explain(_) => {
                unreachable!("carried out by `main`")
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

#[cfg(test)]
mod tests {
    use rustix::process::Signal;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    /// Set in the process that is to end.
    const CHILD: &str = "PALISADE_TEST_PANICS";

    /// A data core is such a thread: that it panics is not kept to itself.
    #[test]
    fn a_thread_that_panics_ends_the_process() {
        if std::env::var_os(CHILD).is_some() {
            super::abort_on_panic();
            let core = std::thread::spawn(|| panic!("as it should"));
            assert!(core.join().is_err());
            // Where nothing aborts, this process ends as if all were well.
            return;
        }
        let own = std::env::current_exe().expect("a path");
        let mut child = Command::new(own);
        child.args(["--exact", "tests::a_thread_that_panics_ends_the_process", "--nocapture"]);
        let output = child.env(CHILD, "1").output().expect("started");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), Some(Signal::ABORT.as_raw()), "{said}");
        assert!(said.contains("as it should"), "the usual message comes first: {said}");
    }
}
