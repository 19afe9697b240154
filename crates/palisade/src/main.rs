//! The palisade program: daemon and command line.

mod bench;

use clap::Parser;
use std::process::ExitCode;

/// Software RAID in user space.
#[derive(Parser, Debug)]
#[command(name = "palisade", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Measures this machine.
    Bench(bench::BenchArgs),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Bench(args) => bench::run(args),
    }
}
