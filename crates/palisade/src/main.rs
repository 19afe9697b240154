//! The palisade program: daemon and command line; wiring only.
//!
//! One module per noun ([`array`], [`drive`], [`volume`], [`export`], [`share`], [`task`],
//! [`account`], [`alert`], [`audit`], [`event`], [`status`]), each a client of the daemon
//! ([`serve`]) through [`client`] and [`fetch`]; [`request`] is a client of anything else.
//! [`remote`] is a daemon elsewhere, where [`login`] logs in and [`logins`] keeps that. [`named`]
//! finds the drives that are meant, [`confirm`] has changes planned and agreed to, [`secret`] reads
//! passwords, [`output`] and [`overview`] print, [`watch`] again and again by [`sse`], [`complete`]
//! completes, [`services`] makes devices and files of volumes. [`explain`] tells what messages
//! mean, [`doctor`] what is wrong with a machine. [`shelf`], `demo` and `bench` are programs of
//! their own behind the same name.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused for safety, 4 no daemon.

mod account;
mod alert;
mod array;
mod audit;
mod bench;
mod check_config;
mod client;
mod complete;
mod confirm;
mod demo;
mod doctor;
mod drive;
mod event;
mod explain;
mod export;
mod fetch;
mod login;
mod logins;
#[cfg(test)]
mod man;
mod named;
mod output;
mod overview;
mod port;
mod remote;
mod request;
mod secret;
mod serve;
mod services;
mod share;
mod shelf;
mod signals;
mod sse;
mod status;
mod task;
mod volume;
mod watch;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::CompleteEnv;
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
    #[arg(long, global = true, value_name = "PATH", help_heading = "Daemon")]
    socket: Option<PathBuf>,
    /// URL of a daemon elsewhere, where `palisade login` was used [default: PALISADE_URL, where
    /// PALISADE_SOCKET is not set]
    #[arg(
        long,
        global = true,
        value_name = "URL",
        conflicts_with = "socket",
        help_heading = "Daemon"
    )]
    url: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the daemon
    Serve(serve::Arguments),
    /// Make block devices and files of this machine of volumes, for the daemon; needs root
    Services(services::Arguments),
    /// Show arrays, drives, jobs, exports, shares and hosts, and what to do next
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
    /// Manage exports: volumes served over NBD, NVMe/TCP, iSCSI, Fibre Channel or here
    #[command(subcommand)]
    Export(export::Command),
    /// List Fibre Channel ports, at which volumes are exported
    #[command(subcommand)]
    Port(port::Command),
    /// Manage shares: file systems of volumes, served over SMB or NFS
    #[command(subcommand)]
    Share(share::Command),
    /// Manage drives
    #[command(subcommand)]
    Drive(drive::Command),
    /// Manage accounts, which may log in over the network
    #[command(subcommand)]
    Account(account::Command),
    /// List what is wrong, acknowledge it, and say who is told of it
    #[command(subcommand)]
    Alert(alert::Command),
    /// Read and verify the audit log: who changed what
    #[command(subcommand)]
    Audit(audit::Command),
    /// List events, or watch them happen
    #[command(subcommand)]
    Event(event::Command),
    /// Log in at a daemon elsewhere, for --url
    Login(login::Arguments),
    /// End sessions at daemons elsewhere
    Logout(login::Out),
    /// Send a Redfish request, and print its answer
    Api(request::Arguments),
    /// Print a script that completes commands and names in a shell
    Completion(complete::Arguments),
    /// Check a configuration without using it
    CheckConfig(check_config::Arguments),
    /// Look for what is wrong with this machine for the daemon: why, and what mends it
    ///
    /// Looks at the configuration, kernel, io_uring, limits, capabilities, locked memory, network,
    /// drives, certificate, clock, state directory and socket. Changes nothing, and needs no
    /// daemon; one that runs is asked, too. Run it as root to have all looked at.
    Doctor(doctor::Arguments),
    /// Explain a message: what it means, why, and what to do; needs no daemon
    Explain(explain::Arguments),
    /// Show a whole life with files as drives: create, export, lose a drive, rebuild
    Demo(demo::Options),
    /// Measure the performance of this machine
    Bench(Box<bench::BenchArgs>),
    /// Run a shelf of drives behind NVMe/TCP on this machine, to try what hosts of one do
    Shelf(Box<shelf::Arguments>),
}

fn main() -> ExitCode {
    if cfg!(panic = "unwind") {
        abort_on_panic();
    }
    demo::end_with_parent();
    CompleteEnv::with_factory(Arguments::command).var(complete::VARIABLE).complete();
    let Arguments { socket, url, command } = Arguments::parse();
    let outcome = match command {
        Command::Demo(options) => return demo::run(&options),
        Command::Bench(arguments) => return bench::run(*arguments),
        Command::Shelf(arguments) => return shelf::run(&arguments),
        Command::CheckConfig(arguments) => check_config::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments, socket, url.as_deref()),
        Command::Explain(arguments) => explain::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Serve(arguments) => {
            let code = serve::run(&arguments, socket).err().map_or(0, |problem| problem.tell());
            control::server::leave_if_stuck(code);
            return ExitCode::from(code);
        }
        Command::Services(arguments) => {
            services::run(&arguments, socket).map(|()| ExitCode::SUCCESS)
        }
        Command::Completion(arguments) => complete::run(&arguments).map(|()| ExitCode::SUCCESS),
        command => ask(&command, socket, url.as_deref()),
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
fn ask(command: &Command, socket: Option<PathBuf>, url: Option<&str>) -> Result<ExitCode, Problem> {
    let client = &Client::meant(socket, url)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| Problem::new(&redfish::messages::COMMAND_CANNOT_START, &[&error]))?;
    let outcome = runtime.block_on(async {
        match command {
            Command::Array(command) => return array::run(command, client).await,
            Command::Alert(command) => return alert::run(command, client).await,
            Command::Audit(command) => return audit::run(command, client).await,
            Command::Status(arguments) => status::run(arguments, client).await?,
            Command::Account(command) => account::run(command, client).await?,
            Command::Volume(command) => volume::run(command, client).await?,
            Command::Task(command) => task::run(command, client).await?,
            Command::Export(command) => export::run(command, client).await?,
            Command::Port(command) => port::run(command, client).await?,
            Command::Share(command) => share::run(command, client).await?,
            Command::Drive(command) => drive::run(command, client).await?,
            Command::Event(command) => event::run(command, client).await?,
            Command::Login(arguments) => login::run(arguments).await?,
            Command::Logout(out) => login::end(out, url).await?,
            Command::Api(arguments) => request::run(arguments, client).await?,
            Command::Serve(_)
            | Command::Services(_)
            | Command::Completion(_)
            | Command::CheckConfig(_)
            | Command::Doctor(_)
            | Command::Demo(_)
            | Command::Bench(_)
            | Command::Shelf(_)
            | Command::Explain(_) => {
                unreachable!("carried out by `main`")
            }
        }
        Ok(ExitCode::SUCCESS)
    });
    // A name that is looked up may take longer than anybody waits.
    runtime.shutdown_background();
    outcome
}

#[cfg(test)]
mod tests {
    use super::Arguments;
    use clap::CommandFactory;
    use rustix::process::Signal;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    /// Commands that change nothing of a daemon but who is logged in.
    const READERS: &[&str] = &[
        "array list",
        "array show",
        "array wait",
        "audit list",
        "audit verify",
        "port list",
        "account list",
        "alert list",
        "alert test",
        "bench api",
        "bench array",
        "bench compare",
        "bench health",
        "bench model",
        "bench nvme-tcp",
        "bench parity",
        "bench remote",
        "bench remote-host",
        "bench serve-by-stand-ins",
        "bench services",
        "check-config",
        "completion",
        "demo",
        "doctor",
        "drive discover",
        "drive inspect",
        "drive list",
        "drive paths",
        "drive show",
        "event list",
        "event watch",
        "explain",
        "export release",
        "export list",
        "export show",
        "login",
        "logout",
        "serve",
        "services",
        "share list",
        "share show",
        "share user list",
        "shelf ctl pull",
        "shelf ctl restore",
        "shelf ctl set",
        "shelf ctl show",
        "shelf ctl slow drive",
        "shelf ctl zone add",
        "shelf ctl zone remove",
        "status",
        "task list",
        "volume list",
    ];

    /// Commands that do something, by name, and whether they have `--dry-run`.
    fn leaves(command: &clap::Command, name: &str, found: &mut Vec<(String, bool)>) {
        for own in command.get_subcommands() {
            leaves(own, format!("{name} {}", own.get_name()).trim(), found);
        }
        if !command.has_subcommands() {
            let is_dry = |arg: &clap::Arg| {
                let aliases = arg.get_all_aliases().unwrap_or_default();
                arg.get_long() == Some("dry-run") || aliases.contains(&"dry-run")
            };
            found.push((name.to_owned(), command.get_arguments().any(is_dry)));
        }
    }

    #[test]
    fn every_command_that_changes_something_can_be_planned() {
        let mut found = Vec::new();
        leaves(&Arguments::command(), "", &mut found);
        let mut without: Vec<&str> =
            found.iter().filter(|own| !own.1).map(|own| own.0.as_str()).collect();
        let mut readers = READERS.to_vec();
        without.sort_unstable();
        readers.sort_unstable();
        assert_eq!(without, readers);
    }

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
