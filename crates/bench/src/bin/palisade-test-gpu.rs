//! The program of a packed test: checks every kernel of this machine's GPU and processor, and
//! measures them.
//!
//! Status 0: all right; 1: something is wrong, or could not be checked in time; 2: the arguments
//! make no sense; 3: there is no NVIDIA driver or GPU, which one line says.

use palisade_bench::GpuBench;
use palisade_bench::gpu_bench::nvidia;
use palisade_bench::gpu_test::vectors::{self, Case};
use palisade_bench::gpu_test::{CpuPart, carry_out, cpu_part};
use palisade_bench::watchdog::Watchdog;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

const USAGE: &str = "usage: palisade-test-gpu [--json] [--seconds N] [--within N] [--device N] \
                     --vectors FILE
       palisade-test-gpu --write-vectors FILE | --version";

/// Set where the program was started by a loader of its own: where that finds libraries.
const LIBRARIES: &str = "PALISADE_LIBRARIES";

/// Most seconds of the whole, and of how many of a part's: with 45, seven minutes and a half.
const WITHIN: u64 = 450;
const PARTS: u64 = 10;

struct Options {
    json: bool,
    /// Most seconds of each part.
    seconds: u64,
    /// Most seconds of the whole, if not the usual ones.
    within: Option<u64>,
    device: usize,
    vectors: Option<PathBuf>,
    write: Option<PathBuf>,
    /// Checks the processor's kernel alone; what it came to is printed as JSON.
    cpu_part: bool,
    version: bool,
}

fn options() -> Option<Options> {
    let mut options = Options {
        json: false,
        seconds: 45,
        within: None,
        device: 0,
        vectors: None,
        write: None,
        cpu_part: false,
        version: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--json" => options.json = true,
            "--seconds" => options.seconds = words.next()?.parse().ok().filter(|s| *s > 0)?,
            "--within" => options.within = Some(words.next()?.parse().ok()?),
            "--device" => options.device = words.next()?.parse().ok()?,
            "--vectors" => options.vectors = Some(words.next()?.into()),
            "--write-vectors" => options.write = Some(words.next()?.into()),
            "--cpu-part" => options.cpu_part = true,
            "--version" => options.version = true,
            _ => return None,
        }
    }
    Some(options)
}

/// This program, once more, for one of the processor's kernels.
fn child(options: &Options, kernel: &str) -> Result<CpuPart, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    if let Some(libraries) = std::env::var_os(LIBRARIES) {
        // What runs is the loader.
        command
            .arg("--library-path")
            .arg(libraries)
            .arg(std::env::args_os().next().unwrap_or_default());
    }
    command.args(["--cpu-part", "--seconds", &options.seconds.to_string()]);
    command.arg("--vectors").arg(options.vectors.clone().unwrap_or_default());
    let output = command.env(::parity::VARIABLE, kernel).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(format!("its process ended with {}: {said}", output.status));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

fn cases(options: &Options) -> Result<Vec<Case>, String> {
    let path = options.vectors.as_ref().ok_or(USAGE)?;
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    vectors::parse(&text)
}

fn run(options: &Options) -> Result<u8, String> {
    let version = env!("CARGO_PKG_VERSION");
    if options.version {
        println!("palisade-test-gpu {version}");
        return Ok(0);
    }
    if let Some(path) = &options.write {
        std::fs::write(path, vectors::text()).map_err(|e| format!("{}: {e}", path.display()))?;
        return Ok(0);
    }
    let (cases, budget) = (cases(options)?, Duration::from_secs(options.seconds));
    if options.cpu_part {
        let part = cpu_part(&cases, budget)?;
        println!("{}", serde_json::to_string(&part).map_err(|error| error.to_string())?);
        return Ok(0);
    }
    let within = options.within.unwrap_or(WITHIN.max(PARTS.saturating_mul(options.seconds)));
    let watchdog = Watchdog::start("palisade-test-gpu", Duration::from_secs(within));
    let watchdog = watchdog.map_err(|error| error.to_string())?;
    let tell = |what: &str| watchdog.tell(what);
    let bench = GpuBench { device: options.device, budget, ..GpuBench::default() };
    tell("starting NVIDIA's driver");
    let driver = nvidia();
    let gpu = driver.as_ref().map(|driver| -> &dyn parity_gpu::Driver { driver });
    let gpu = gpu.map_err(Clone::clone);
    let cpu = |kernel: &str| child(options, kernel);
    let findings = carry_out(version, &cases, &bench, gpu, &cpu, &tell);
    tell("the program's end");
    print!("{}", if options.json { findings.to_json() } else { findings.to_text() });
    Ok(findings.status)
}

fn main() -> ExitCode {
    let Some(options) = options() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(&options) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("palisade-test-gpu: {error}");
            ExitCode::FAILURE
        }
    }
}
