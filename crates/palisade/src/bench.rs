//! `palisade bench`: measures this machine and prints what it gives.
//!
//! Status 0: everything was measured (whether or not goals were met); 1: something was left out, or
//! nothing could be measured, or `--gpu` and a driver that did not come back; 2: what is asked for
//! can't be measured so; 3: `--gpu`, and there is no NVIDIA driver or GPU, or data would go that
//! `--destroy-data` does not name; 130: Ctrl-C. Results go to the standard output, everything else
//! to the standard error.

mod evaluate;

use crate::serve;
use bench::gpu_bench::nvidia;
use bench::remote::Part;
use bench::services_bench;
use bench::watchdog::Watchdog;
use bench::{
    ApiBench, ArrayBench, BenchError, GpuBench, HealthBench, ModelBench, NvmeTcpBench, ParityBench,
    RemoteBench, RemoteHost, Report, Scale, ServicesBench, bench_api, bench_array, bench_health,
    bench_model, bench_nvme_tcp, bench_parity, bench_parity_gpu, bench_remote, bench_services,
    gpu_table, list_models, parity_table, serve_remote_host,
};
use control::config::Placement;
use pace::Model;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Measure the performance of this machine
#[derive(clap::Args, Debug)]
pub struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Measure the management interface of a daemon over HTTPS, and what it takes from hosts
    Api(ApiArgs),
    /// Measure an array beside its raw drives: RAID 5 over files in memory
    Array(ArrayArgs),
    /// Compare two reports: status 1 if a result is worse in the second one by more than is allowed
    Compare(evaluate::CompareArgs),
    /// Measure what looking after drives takes from hosts: each is asked every second, or never
    Health(HealthArgs),
    /// Measure the same workloads in every state: bare drives, and an array of them just made,
    /// nominal, without a drive, and while that is being filled
    LifeCycle(evaluate::ProcedureArgs),
    /// Measure a paced drive against the numbers of its model
    Model(ModelArgs),
    /// Measure the NVMe/TCP target beside a bare echo and the volume itself, over loopback
    NvmeTcp(NvmeTcpArgs),
    /// Measure the parity kernels beside Intel's ISA-L (package libisal2), memcpy and reading
    Parity(ParityArgs),
    /// Measure how fast a drive is filled, idle and beside hosts, and what hosts get meanwhile
    Rebuild(evaluate::ProcedureArgs),
    /// Measure drives behind NVMe/TCP: one, an array of them, paths and shelves that go, several
    /// servers on one shelf
    Remote(RemoteArgs),
    /// Measure what one host gets of its drives, and two, three and more at once
    Scale(evaluate::ScaleArgs),
    /// Measure every way in to a volume beside the same way to something else: files, iSCSI, SMB
    /// and NFS, and what looking after them costs
    Services(ServicesArgs),
    /// Measure what a product's sheet says: bare drives, and an array of them
    SpecSheet(evaluate::ProcedureArgs),
    /// Measure patterns of requests, each at several numbers of jobs and depths
    Sweep(evaluate::SweepArgs),
    /// Serve with stand-ins that say how drives are, for `bench health`
    #[command(hide = true)]
    ServeByStandIns(serve::Arguments),
    /// Be a server process of `bench remote`
    #[command(hide = true)]
    RemoteHost(RemoteHostArgs),
}

#[derive(clap::Args, Debug)]
struct ApiArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Rounds of each result
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Seconds of a round, of each side where there are two
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Seconds for which an idle daemon is watched, three times
    #[arg(long, default_value_t = 10.0, value_parser = seconds)]
    idle_seconds: f64,
    /// Arrays, of four drives each
    #[arg(long, default_value_t = 8)]
    arrays: usize,
    /// Volumes, on all arrays together
    #[arg(long, default_value_t = 256)]
    volumes: usize,
    /// Volumes that are read at once, on all arrays of another daemon together
    #[arg(long, default_value_t = 1000)]
    listed: usize,
    /// Folder for the drives, in a file system in memory
    #[arg(long, default_value = "/dev/shm")]
    dir: PathBuf,
    /// Also write the JSON to this file
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
struct ArrayArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Rounds of each workload; each round measures both sides
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Seconds that each side is measured in a round
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Data cores; 2 also compares the CPU time per request with that of one core
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=2))]
    cores: u16,
    /// Number of drives of the array
    #[arg(long, default_value_t = 5)]
    drives: usize,
    /// Size of each drive; twice as many are created
    #[arg(long, default_value = "1G", value_parser = size)]
    drive_size: u64,
    /// Folder for the drives, in a file system in memory
    #[arg(long, default_value = "/dev/shm")]
    dir: PathBuf,
    /// Compute parity on cpu, gpu or auto, and compare these with arrays in memory of eight data
    /// strips and two parities
    #[arg(long, value_name = "WHERE")]
    parity: Option<Placement>,
    /// Also write the JSON to this file
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
struct HealthArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Rounds; each round measures both sides
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Seconds that each side is measured in a round
    #[arg(long, default_value_t = 4.0, value_parser = seconds)]
    seconds: f64,
    /// Seconds for which an idle daemon is watched, three times on each side
    #[arg(long, default_value_t = 5.0, value_parser = seconds)]
    idle_seconds: f64,
    /// Number of drives of the array
    #[arg(long, default_value_t = 24)]
    drives: usize,
    /// Folder for the drives, in a file system in memory
    #[arg(long, default_value = "/dev/shm")]
    dir: PathBuf,
    /// Also write the JSON to this file
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
struct ModelArgs {
    /// The model's name, or list: show all models and where their numbers are from
    #[arg(value_parser = model_name)]
    name: Named,
    /// How fast the drive is, of what the model is: 1, a part such as 1/4, or the largest part at
    /// which the core is idle for 30% of its time
    #[arg(long, value_name = "auto|1|1/4…", default_value_t = Scale::Auto)]
    scale: Scale,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Rounds of each load
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Seconds of a load in a round
    #[arg(long, default_value_t = 0.25, value_parser = seconds)]
    seconds: f64,
    /// Also write the JSON to this file
    #[arg(long)]
    out: Option<PathBuf>,
}

/// What `bench model` is about.
#[derive(Clone, Debug)]
enum Named {
    All,
    One(&'static Model),
}

fn model_name(text: &str) -> Result<Named, String> {
    if text == "list" {
        return Ok(Named::All);
    }
    model_name_one(text).map(Named::One)
}

fn model_name_one(text: &str) -> Result<&'static Model, String> {
    pace::by_name(text).ok_or_else(|| {
        let names: Vec<&str> = pace::model::MODELS.iter().map(|model| model.name).collect();
        format!("there is no such model; use {} or list", names.join(", "))
    })
}

#[derive(clap::Args, Debug)]
struct ParityArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Measure the kernels of an NVIDIA GPU instead, beside the CPU on one core and on all
    #[arg(long, conflicts_with_all = ["memory_strip", "isal"])]
    gpu: bool,
    /// Number of the GPU
    #[arg(long, default_value_t = 0, requires = "gpu")]
    device: usize,
    /// Rounds of each workload; each round measures all sides [default: 15, with --gpu 9]
    #[arg(long)]
    rounds: Option<usize>,
    /// Seconds that each side is measured in a round
    #[arg(long, default_value_t = 0.02, value_parser = seconds)]
    seconds: f64,
    /// Size of each strip in memory; fifty are created
    #[arg(long, default_value = "16M", value_parser = size)]
    memory_strip: u64,
    /// Library of ISA-L: a path, or a name for the loader
    #[arg(long, default_value = bench::isal::SONAME)]
    isal: PathBuf,
    /// Also write the JSON to this file
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
struct NvmeTcpArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Rounds of each workload; each round measures the target, the echo and the volume itself
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Seconds that each side is measured in a round
    #[arg(long, default_value_t = 0.5, value_parser = seconds)]
    seconds: f64,
    /// Seconds for which idle connections are measured
    #[arg(long, default_value_t = 10.0, value_parser = seconds)]
    idle_seconds: f64,
    /// Number of connections whose memory is measured
    #[arg(long, default_value_t = 1000)]
    connections: usize,
    /// Also measure a target that may use only as many CPUs as it has data cores
    #[arg(long)]
    pin: bool,
    /// Size of each drive; six are created, eleven with --pin
    #[arg(long, default_value = "256M", value_parser = size)]
    drive_size: u64,
    /// Folder for the drives, in a file system in memory [default: memory of this process]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Also write the JSON to this file
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
struct RemoteArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Measure only these: drive, array, reset, silence, silence-timed, back, scaling, idle
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<Part>,
    /// Rounds of each comparison; each round measures all sides
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Seconds that each side is measured in a round
    #[arg(long, default_value_t = 0.5, value_parser = seconds)]
    seconds: f64,
    /// Seconds for which idle paths are measured
    #[arg(long, default_value_t = 10.0, value_parser = seconds)]
    idle_seconds: f64,
    /// How fast paced drives are, of what their model is: 1, a part such as 1/64, or the largest
    /// part at which cores are idle for 30% of their time
    #[arg(long, value_name = "auto|1|1/4…", default_value_t = Scale::Auto)]
    scale: Scale,
    /// Size of the one drive, and of what is used of the array
    #[arg(long, default_value = "256M", value_parser = size)]
    drive_size: u64,
    /// Also write the JSON to this file
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
struct ServicesArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Measure only these: front-ends, nbdfuse, iscsi, smb, nfs, idle
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<services_bench::Part>,
    /// Rounds of each comparison; each round measures both sides
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Seconds that each side is measured in a round; the file of a share is read once
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Seconds for which exports and shares are watched that nobody uses, three times
    #[arg(long, default_value_t = 10.0, value_parser = seconds)]
    idle_seconds: f64,
    /// Size of a volume, and of the file of a share
    #[arg(long, default_value = "256M", value_parser = size)]
    size: u64,
    /// Number of block devices that nobody uses
    #[arg(long, default_value_t = 32)]
    exports: usize,
    /// Number of shares that nobody uses, each by SMB and NFS
    #[arg(long, default_value_t = 8)]
    shares: usize,
    /// Folder for the drives, in a file system in memory
    #[arg(long, default_value = "/dev/shm")]
    dir: PathBuf,
    /// Also write the JSON to this file
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
struct RemoteHostArgs {
    /// Its name as a host
    #[arg(long)]
    name: String,
    /// Where its drives are found
    #[arg(long, required = true)]
    at: Vec<SocketAddr>,
    /// Bytes of its array that are used
    #[arg(long)]
    area: Option<u64>,
}

fn seconds(text: &str) -> Result<f64, String> {
    let fine = |s: &f64| (0.001..=3600.0).contains(s);
    text.parse().ok().filter(fine).ok_or_else(|| "use 0.001 to 3600 seconds".to_owned())
}

pub fn size(text: &str) -> Result<u64, String> {
    units::parse_size(text).ok_or_else(|| "use a size like 64K, 10G or 1.5T".to_owned())
}

/// Carries `palisade bench …` out.
pub fn run(args: BenchArgs) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let command = format!("palisade {}", words.join(" "));
    match args.what {
        What::Api(args) => api(&args, &command),
        What::Array(args) => array(&args, &command),
        What::Health(args) => health(&args, &command),
        What::Model(args) => model(&args, &command),
        What::NvmeTcp(args) => nvme_tcp(&args, &command),
        What::Parity(args) => parity(&args, &command),
        What::Remote(args) => remote(&args, &command),
        What::RemoteHost(args) => remote_host(args),
        What::Services(args) => services(&args, &command),
        What::Sweep(args) => evaluate::sweep(&args, &command),
        What::SpecSheet(args) => evaluate::spec_sheet(&args, &command),
        What::Compare(args) => evaluate::compare(&args, &command),
        What::LifeCycle(args) => evaluate::life_cycle(&args, &command),
        What::Scale(args) => evaluate::scale(&args, &command),
        What::Rebuild(args) => evaluate::rebuild(&args, &command),
        What::ServeByStandIns(args) => {
            let code = serve::run_by_stand_ins(&args).err().map_or(0, |problem| problem.tell());
            control::server::leave_if_stuck(code);
            ExitCode::from(code)
        }
    }
}

/// Tells a person who looks. That nobody does any more, as where a terminal is gone, ends nothing.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// This program; where it can't be found out, that is told.
fn program() -> Option<PathBuf> {
    let found = std::env::current_exe();
    found
        .inspect_err(|error| {
            eprintln!("palisade: where this program is can't be found out: {error}");
        })
        .ok()
}

fn api(args: &ApiArgs, command: &str) -> ExitCode {
    let Some(program) = program() else { return ExitCode::FAILURE };
    let options = ApiBench {
        rounds: args.rounds,
        span: Duration::from_secs_f64(args.seconds),
        idle: Duration::from_secs_f64(args.idle_seconds),
        arrays: args.arrays,
        volumes: args.volumes,
        listed: args.listed,
        dir: args.dir.clone(),
        program,
    };
    let report = bench_api(&options, env!("CARGO_PKG_VERSION"), command, &tell);
    print(report, args.json, args.out.as_deref(), Report::to_table)
}

fn array(args: &ArrayArgs, command: &str) -> ExitCode {
    let options = ArrayBench {
        rounds: args.rounds,
        span: Duration::from_secs_f64(args.seconds),
        cores: args.cores,
        drives: args.drives,
        drive_bytes: args.drive_size,
        dir: args.dir.clone(),
        parity: args.parity,
    };
    let report = bench_array(&options, env!("CARGO_PKG_VERSION"), command, &tell);
    print(report, args.json, args.out.as_deref(), Report::to_table)
}

fn health(args: &HealthArgs, command: &str) -> ExitCode {
    let Some(program) = program() else { return ExitCode::FAILURE };
    let options = HealthBench {
        rounds: args.rounds,
        span: Duration::from_secs_f64(args.seconds),
        idle: Duration::from_secs_f64(args.idle_seconds),
        drives: args.drives,
        dir: args.dir.clone(),
        program,
    };
    let report = bench_health(&options, env!("CARGO_PKG_VERSION"), command, &tell);
    print(report, args.json, args.out.as_deref(), Report::to_table)
}

fn model(args: &ModelArgs, command: &str) -> ExitCode {
    let version = env!("CARGO_PKG_VERSION");
    let report = match args.name {
        Named::All => Ok(list_models(version, command)),
        Named::One(model) => {
            let span = Duration::from_secs_f64(args.seconds);
            let options = ModelBench { model, scale: args.scale, rounds: args.rounds, span };
            bench_model(&options, version, command, &tell)
        }
    };
    print(report, args.json, args.out.as_deref(), Report::to_table)
}

fn nvme_tcp(args: &NvmeTcpArgs, command: &str) -> ExitCode {
    let options = NvmeTcpBench {
        rounds: args.rounds,
        span: Duration::from_secs_f64(args.seconds),
        idle: Duration::from_secs_f64(args.idle_seconds),
        connections: args.connections,
        drive_bytes: args.drive_size,
        dir: args.dir.clone(),
        pin: args.pin,
    };
    let report = bench_nvme_tcp(&options, env!("CARGO_PKG_VERSION"), command, &tell);
    print(report, args.json, args.out.as_deref(), Report::to_table)
}

fn remote(args: &RemoteArgs, command: &str) -> ExitCode {
    let Some(program) = program() else { return ExitCode::FAILURE };
    let options = RemoteBench {
        rounds: args.rounds,
        span: Duration::from_secs_f64(args.seconds),
        idle: Duration::from_secs_f64(args.idle_seconds),
        scale: args.scale,
        drive_bytes: args.drive_size,
        only: args.only.clone(),
        program,
    };
    let report = bench_remote(&options, env!("CARGO_PKG_VERSION"), command, &tell);
    print(report, args.json, args.out.as_deref(), Report::to_table)
}

fn services(args: &ServicesArgs, command: &str) -> ExitCode {
    let Some(program) = program() else { return ExitCode::FAILURE };
    let options = ServicesBench {
        rounds: args.rounds,
        span: Duration::from_secs_f64(args.seconds),
        idle: Duration::from_secs_f64(args.idle_seconds),
        bytes: args.size,
        exports: args.exports,
        shares: args.shares,
        only: args.only.clone(),
        dir: args.dir.clone(),
        program,
        stop: Arc::default(),
    };
    evaluate::end_in_order(options.stop.clone(), "what was made goes");
    let report = bench_services(&options, env!("CARGO_PKG_VERSION"), command, &tell);
    print(report, args.json, args.out.as_deref(), Report::to_table)
}

fn remote_host(args: RemoteHostArgs) -> ExitCode {
    let RemoteHostArgs { name, at, area } = args;
    match serve_remote_host(&RemoteHost { name, at, area }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("palisade: {error}");
            ExitCode::from(error.status())
        }
    }
}

fn parity(args: &ParityArgs, command: &str) -> ExitCode {
    if args.gpu {
        return parity_gpu(args, command);
    }
    let options = ParityBench {
        rounds: args.rounds.unwrap_or(ParityBench::default().rounds),
        span: Duration::from_secs_f64(args.seconds),
        memory_bytes: args.memory_strip,
        isal: args.isal.clone(),
    };
    let report = bench_parity(&options, env!("CARGO_PKG_VERSION"), command, &tell);
    print(report, args.json, args.out.as_deref(), parity_table)
}

/// What a run with a GPU may take beyond its budget, besides the turns of the last work and of what
/// follows it, which are no more than so many a round.
const BEYOND: Duration = Duration::from_secs(120);
const TURNS: f64 = 60.0;

fn parity_gpu(args: &ParityArgs, command: &str) -> ExitCode {
    let usual = GpuBench::default();
    let options = GpuBench {
        device: args.device,
        rounds: args.rounds.unwrap_or(usual.rounds),
        span: Duration::from_secs_f64(args.seconds),
        ..usual
    };
    let turns = Duration::from_secs_f64(args.seconds * options.rounds.min(10_000) as f64 * TURNS);
    let watchdog = match Watchdog::start("palisade", options.budget + BEYOND + turns) {
        Ok(watchdog) => watchdog,
        Err(error) => {
            eprintln!("palisade: the thread that watches the driver can't start: {error}");
            return ExitCode::FAILURE;
        }
    };
    watchdog.tell("starting NVIDIA's driver");
    let driver = match nvidia() {
        Ok(driver) => driver,
        Err(reason) => {
            eprintln!("palisade: {reason}");
            return ExitCode::from(reason.status());
        }
    };
    let names = (env!("CARGO_PKG_VERSION"), command);
    let progress = |line: &str| {
        watchdog.tell(line);
        tell(line);
    };
    let report = bench_parity_gpu(&options, &driver, names, &progress);
    watchdog.tell("the program's end");
    print(report, args.json, args.out.as_deref(), gpu_table)
}

/// Prints a report as JSON or by `table`, and what is missing in it.
fn print(
    report: Result<Report, BenchError>,
    json: bool,
    out: Option<&Path>,
    table: fn(&Report) -> String,
) -> ExitCode {
    let report = match report {
        Ok(report) => report,
        Err(error) => {
            tell(&format!("palisade: {error}"));
            return ExitCode::from(error.status());
        }
    };
    print!("{}", if json { report.to_json() } else { table(&report) });
    for missing in &report.missing {
        tell(&format!("not measured: {missing}"));
    }
    if let Some(path) = out
        && let Err(error) = std::fs::write(path, report.to_json())
    {
        tell(&format!("palisade: {}: {error}", path.display()));
        return ExitCode::FAILURE;
    }
    if report.missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
