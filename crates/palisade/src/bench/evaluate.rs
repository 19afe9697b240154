//! `palisade bench spec-sheet`, `life-cycle`, `rebuild`, `scale` and `sweep`: what is measured,
//! how, where the report goes, and that Ctrl-C ends it in order. `compare`, which measures nothing.

use super::{model_name_one, print, seconds, size, tell};
use bench::compare::{bench_compare, is_no_worse};
use bench::evaluate::hosts::{Hosts, bench_scale};
use bench::evaluate::life_cycle::bench_life_cycle;
use bench::evaluate::options::{Loader, Options, Peer, Profile, Source};
use bench::evaluate::rebuild::bench_rebuild;
use bench::evaluate::spec_sheet::bench_spec_sheet;
use bench::evaluate::sweep::{Sweep, bench_sweep};
use bench::scale::Scale;
use bench::through::Through;
use bench::{BenchError, Report};
use layout::Level;
use pace::Model;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::signal::unix::SignalKind;

/// What is measured.
#[derive(clap::Args, Debug)]
#[group(skip)]
struct TargetArgs {
    /// Drives by their paths; an array is made of them, and wiped in the end
    #[arg(long, value_name = "PATH", num_args = 1.., group = "target")]
    drives: Vec<PathBuf>,
    /// Paced drives of a model, in memory; bench model list shows all
    #[arg(long, value_name = "NAME", group = "target", requires = "count",
        value_parser = model_name_one)]
    model: Option<&'static Model>,
    /// Drives in memory, of this size
    #[arg(long, value_name = "SIZE", group = "target", requires = "count", value_parser = size)]
    memory: Option<u64>,
    /// A block device as it is, local or remote; no array is made
    #[arg(long, value_name = "PATH", group = "target")]
    device: Option<PathBuf>,
    /// Number of drives of the model, or in memory
    #[arg(long, value_name = "N")]
    count: Option<usize>,
    /// How fast drives of a model are, of what the model is: 1, a part such as 1/4, or auto, which
    /// is the largest part at which the cores are idle for 30% of their time [default: auto]
    #[arg(long, value_name = "auto|1|1/4…")]
    scale: Option<Scale>,
    /// Drives whose data may go
    #[arg(long, value_name = "PATH", num_args = 1..)]
    destroy_data: Vec<PathBuf>,
}

/// How it is measured.
#[derive(clap::Args, Debug)]
struct WorkArgs {
    /// The array's level: jbod, 0, 1, 5, 6 or 10
    #[arg(long, default_value = "5", value_parser = level)]
    level: Level,
    /// Size of a strip
    #[arg(long, default_value = "64K", value_parser = strip)]
    strip: u32,
    /// Data cores
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    cores: u16,
    /// Volumes that the array is cut into
    #[arg(long, default_value_t = 1)]
    volumes: usize,
    /// Percentage of reads in mixed loads
    #[arg(long, default_value_t = 70)]
    mix: u8,
    /// How long runs are: as the papers', short, or quick, whose goals are not judged
    #[arg(long, value_name = "paper|short|quick", default_value_t = Profile::Short)]
    profile: Profile,
    /// Instances of each run
    #[arg(long, default_value_t = 3)]
    instances: usize,
    /// Seconds of an instance, in place of the profile's
    #[arg(long, value_parser = seconds)]
    seconds: Option<f64>,
    /// Bytes that are used, in place of the profile's
    #[arg(long, value_name = "SIZE", value_parser = size)]
    area: Option<u64>,
    /// Open loads: so many requests come each second, whether or not those before are done
    #[arg(long, value_name = "R")]
    rate: Option<f64>,
    /// Another array to be measured beside ours, by spec-sheet and sweep: md, which is made of the
    /// same drives by mdadm once ours is measured; or a name, and its block device
    #[arg(long, value_name = "md|NAME=PATH")]
    peer: Vec<Peer>,
    /// Who makes the loads: our generator, or fio, which takes bare drives by their paths and
    /// arrays by NBD
    #[arg(long, value_name = "own|fio", default_value_t = Loader::Own)]
    load: Loader,
    /// What the load reaches an array's volumes by, over loopback or as files (fuse) or block
    /// devices (ublk) of this machine: cores of hosts ask, as many as there are data cores; in
    /// place of asking the engine in this process. iscsi takes tgt over files; files and devices
    /// take root
    #[arg(long, value_name = "nbd|nvme-tcp|fuse|ublk|iscsi")]
    through: Option<Through>,
    /// Folder that fio's job files and reports are kept in
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Only show what would be measured, on what, and in which order
    #[arg(long)]
    dry_run: bool,
}

/// Where the report goes.
#[derive(clap::Args, Debug)]
struct OutputArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Also write the JSON to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Also write a page with charts to this file; it needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also write each table to this folder, as comma-separated values
    #[arg(long, value_name = "DIR")]
    csv: Option<PathBuf>,
}

impl OutputArgs {
    /// Prints a report, and writes it to files.
    fn print(&self, report: Result<Report, BenchError>) -> ExitCode {
        let written = report.as_ref().map_or(Ok(()), |report| self.write(report));
        let status = print(report, self.json, self.out.as_deref(), Report::to_table);
        match written {
            Ok(()) => status,
            Err(error) => {
                eprintln!("palisade: {error}");
                ExitCode::FAILURE
            }
        }
    }

    fn write(&self, report: &Report) -> Result<(), BenchError> {
        if let Some(path) = &self.html {
            std::fs::write(path, bench::html::page(report))
                .map_err(|error| BenchError::System { path: path.clone(), error })?;
        }
        self.csv.as_ref().map_or(Ok(()), |dir| bench::sheets::write_all(report, dir))
    }
}

/// `palisade bench spec-sheet`, and others with as many options.
#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("target").required(true))]
pub struct ProcedureArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// `palisade bench sweep`.
#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("target").required(true))]
pub struct SweepArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    work: WorkArgs,
    /// Sizes of requests: random reads and writes, below 64K mixed ones too, from 1M on sequential
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', default_value = "4K,64K,1M",
        value_parser = size)]
    block: Vec<u64>,
    /// Jobs, one number for each depth
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "16,16,32")]
    jobs: Vec<usize>,
    /// Requests that each job has under way
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "16,32,32")]
    depth: Vec<usize>,
    #[command(flatten)]
    output: OutputArgs,
}

/// `palisade bench scale`.
#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("target").required(true))]
pub struct ScaleArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    work: WorkArgs,
    /// Number of hosts that this program plays, which share the drives evenly; or machines that
    /// run fio --server, each with drives of these paths of its own
    #[arg(long, value_name = "N|ADDR,…", default_value = "3")]
    hosts: Hosts,
    #[command(flatten)]
    output: OutputArgs,
}

/// `palisade bench compare`.
#[derive(clap::Args, Debug)]
pub struct CompareArgs {
    /// The first report: what --out or --json of a benchmark made
    #[arg(value_name = "A.json")]
    a: PathBuf,
    /// The second one
    #[arg(value_name = "B.json")]
    b: PathBuf,
    /// The part by which a result may be worse in the second one
    #[arg(long, value_name = "PART", default_value_t = 0.05)]
    worse: f64,
    #[command(flatten)]
    output: OutputArgs,
}

fn level(text: &str) -> Result<Level, String> {
    text.parse().map_err(|_| "use jbod, 0, 1, 5, 6 or 10".to_owned())
}

fn strip(text: &str) -> Result<u32, String> {
    let fine = |bytes: &u64| bytes.is_power_of_two() && (4096..=1 << 20).contains(bytes);
    let bytes = units::parse_size(text).filter(fine).and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| "use a power of two from 4K to 1M".to_owned())
}

/// What is asked for; where that makes no sense it says so.
fn options(target: &TargetArgs, work: &WorkArgs) -> Option<Options> {
    if target.scale.is_some() && target.model.is_none() {
        eprintln!("palisade: --scale is for drives of a model: give --model, or leave it out");
        return None;
    }
    let count = target.count.unwrap_or_default();
    let source = match (target.model, target.memory, &target.device) {
        (Some(model), ..) => {
            Source::Model { model, count, scale: target.scale.unwrap_or(Scale::Auto) }
        }
        (_, Some(bytes), _) => Source::Memory { bytes, count },
        (.., Some(path)) => Source::Device(path.clone()),
        _ => Source::Drives(target.drives.clone()),
    };
    let WorkArgs { level, strip, cores, volumes, mix, profile, instances, .. } = *work;
    Some(Options {
        destroy: target.destroy_data.clone(),
        level,
        strip,
        cores,
        volumes,
        mix,
        profile,
        instances,
        seconds: work.seconds.map(Duration::from_secs_f64),
        area: work.area,
        rate: work.rate,
        peers: work.peer.clone(),
        load: work.load,
        through: work.through,
        keep: work.keep.clone(),
        dry_run: work.dry_run,
        ..Options::new(source)
    })
}

/// Has Ctrl-C, or another signal to end, set `stop`; Ctrl-C once more ends the program at once.
/// `goes` is what is said of what was made.
pub fn end_in_order(stop: Arc<AtomicBool>, goes: &'static str) {
    let told = move |kind: SignalKind| {
        let is_first = !stop.swap(true, Ordering::Relaxed);
        if is_first {
            super::tell(&format!("palisade: ending; {goes}"));
        } else if kind == SignalKind::interrupt() {
            // A terminal that goes sends more than one of the others.
            std::process::exit(130);
        }
    };
    // Without it such a signal ends the program, and leaves what was made.
    let _ = crate::signals::watch(told);
}

/// Carries a procedure out: what is asked for, until Ctrl-C, and where its report goes.
fn carry_out(
    (target, work): (&TargetArgs, &WorkArgs),
    output: &OutputArgs,
    procedure: impl FnOnce(&Options) -> Result<Report, BenchError>,
) -> ExitCode {
    let Some(options) = options(target, work) else { return ExitCode::from(2) };
    end_in_order(options.stop.clone(), "what was made on drives is wiped");
    output.print(procedure(&options))
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Carries `palisade bench spec-sheet` out.
pub fn spec_sheet(args: &ProcedureArgs, command: &str) -> ExitCode {
    carry_out((&args.target, &args.work), &args.output, |options| {
        bench_spec_sheet(options, VERSION, command, &tell)
    })
}

/// Carries `palisade bench life-cycle` out.
pub fn life_cycle(args: &ProcedureArgs, command: &str) -> ExitCode {
    carry_out((&args.target, &args.work), &args.output, |options| {
        bench_life_cycle(options, VERSION, command, &tell)
    })
}

/// Carries `palisade bench rebuild` out.
pub fn rebuild(args: &ProcedureArgs, command: &str) -> ExitCode {
    carry_out((&args.target, &args.work), &args.output, |options| {
        bench_rebuild(options, VERSION, command, &tell)
    })
}

/// Carries `palisade bench scale` out.
pub fn scale(args: &ScaleArgs, command: &str) -> ExitCode {
    carry_out((&args.target, &args.work), &args.output, |options| {
        bench_scale(options, &args.hosts, VERSION, command, &tell)
    })
}

/// Carries `palisade bench sweep` out.
pub fn sweep(args: &SweepArgs, command: &str) -> ExitCode {
    let (jobs, depths) = (&args.jobs, &args.depth);
    if jobs.len() != depths.len() {
        eprintln!(
            "palisade: --jobs has {} numbers and --depth {}: give as many, they are pairs",
            jobs.len(),
            depths.len()
        );
        return ExitCode::from(2);
    }
    let pairs = jobs.iter().copied().zip(depths.iter().copied()).collect();
    let sweep = Sweep { blocks: args.block.clone(), pairs };
    carry_out((&args.target, &args.work), &args.output, |options| {
        bench_sweep(options, &sweep, VERSION, command, &tell)
    })
}

/// Carries `palisade bench compare` out.
pub fn compare(args: &CompareArgs, command: &str) -> ExitCode {
    let report = match bench_compare((&args.a, &args.b), args.worse, VERSION, command) {
        Ok(report) => report,
        Err(error) => return args.output.print(Err(error)),
    };
    report.notes.iter().for_each(|note| tell(note));
    let is_fine = is_no_worse(&report);
    let status = args.output.print(Ok(report));
    if is_fine { status } else { ExitCode::FAILURE }
}
