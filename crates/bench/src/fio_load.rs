//! Loads of the generator made by fio (<https://fio.readthedocs.io>) instead: the same requests,
//! over the same files or an array's NBD exports, and what came of them in the same terms.
//!
//! Latencies are those of fio's own histogram, which knows them to 1 in 64 (its `json+` output,
//! `FIO_IO_U_PLAT_BITS` in stat.h); a series is of its logs of requests a second.

use crate::error::{BenchError, is_to_go_on};
use crate::fio::available;
use crate::served;
use core::fmt::Write as _;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use units::Nanos;
use workload::{Order, Shape, Side, Tally};

/// The shortest interval of fio's logs that has something in it.
const SHORTEST: Duration = Duration::from_millis(100);

/// How often it is seen that a run is to end.
const LOOK: Duration = Duration::from_millis(20);

/// Where fio's requests go.
#[derive(Clone, Debug)]
pub enum Reached {
    /// Files or devices.
    Files {
        /// Their paths.
        paths: Vec<PathBuf>,
        /// The first byte of each that is used.
        start: u64,
        /// Whether they are in memory: then each request is a system call of the thread itself.
        in_memory: bool,
    },
    /// Volumes of an array, as one address space.
    Nbd {
        /// Where each core serves them.
        addresses: Vec<SocketAddr>,
        /// How many there are.
        volumes: usize,
    },
}

/// A load for fio.
#[derive(Clone, Debug)]
pub struct FioLoad {
    /// What kept job files are called.
    pub name: String,
    /// The requests, of each load beside the others.
    pub shapes: Vec<Shape>,
    /// Where they go.
    pub reached: Reached,
    /// Threads that requests of the calling thread itself have.
    pub cores: u16,
    /// Only counts requests: no latencies and no series, which cost fio time, and as many threads
    /// as cores, each on a CPU of its own.
    pub only_counts: bool,
    /// Machines that run it by their `fio --server`; none: this one.
    pub clients: Vec<String>,
}

/// Refuses where there is no fio.
///
/// # Errors
/// `Fio`, with what to do.
pub fn check() -> Result<(), BenchError> {
    match available() {
        true => Ok(()),
        false => Err(BenchError::Fio("it is not here; install the package fio".to_owned())),
    }
}

/// A folder for jobs, gone with its owner.
///
/// # Errors
/// When there is no room for it.
pub fn temporary() -> Result<tempfile::TempDir, BenchError> {
    tempfile::tempdir().map_err(|error| BenchError::System { path: "a folder".into(), error })
}

/// A name or path in a job file, where `:` is between files and a backslash before one that is not.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace('\\', "\\\\").replace(':', "\\:")
}

impl FioLoad {
    /// The job file; without a time each byte is once asked for.
    pub fn job(&self, counted: Option<Duration>, interval: Duration) -> String {
        let mut text = String::from("[global]\n");
        let mut line = |key: &str, value: &str| {
            let _ = writeln!(text, "{key}={value}");
        };
        if let Some(counted) = counted {
            line("time_based", "1");
            line("runtime", &format!("{}ms", counted.as_millis()));
        }
        line("norandommap", "1");
        line("randrepeat", "0");
        line("group_reporting", "1");
        if self.only_counts || counted.is_none() {
            line("gtod_reduce", "1");
        } else {
            line("lat_percentiles", "1");
            line("clat_percentiles", "0");
            line("write_iops_log", "series");
            line("log_avg_msec", &interval.as_millis().max(1).to_string());
            line("per_job_logs", "0");
            // Threads tell a client more than processes do.
            if !self.clients.is_empty() {
                line("thread", "1");
            }
        }
        let in_memory = matches!(self.reached, Reached::Files { in_memory: true, .. });
        if self.only_counts || in_memory {
            line("thread", "1");
            line("cpus_allowed", &format!("0-{}", self.cores - 1));
            line("cpus_allowed_policy", "split");
        }
        match &self.reached {
            Reached::Files { in_memory: true, .. } => line("ioengine", "psync"),
            Reached::Files { .. } => {
                line("ioengine", "io_uring");
                line("direct", "1");
            }
            Reached::Nbd { .. } => line("ioengine", "nbd"),
        }
        for (number, shape) in self.shapes.iter().enumerate() {
            self.section(number, shape, &mut text);
        }
        text
    }

    fn section(&self, number: usize, shape: &Shape, text: &mut String) {
        let parts: Vec<(usize, String, u64, u64, u64)> = match &self.reached {
            Reached::Files { paths, start, in_memory } => {
                let names: Vec<String> = paths.iter().map(|path| escaped(path)).collect();
                let is_few = *in_memory || self.only_counts;
                let jobs = if is_few { usize::from(self.cores) } else { shape.jobs };
                let each = shape.area / paths.len() as u64;
                let files = paths.len() as u64;
                vec![(jobs, format!("filename={}", names.join(":")), *start, each, files)]
            }
            Reached::Nbd { addresses, volumes } => {
                let each = shape.area / *volumes as u64;
                let all: Vec<(usize, usize)> = (0..addresses.len())
                    .flat_map(|core| (0..*volumes).map(move |volume| (core, volume)))
                    .collect();
                let part = |(at, (core, volume)): (usize, &(usize, usize))| {
                    let jobs = workload::generate::share(shape.jobs, at, all.len()).len();
                    let uri = format!("uri=nbd://{}/{}", addresses[*core], served::name(*volume));
                    (jobs, uri, 0, each, 1)
                };
                all.iter().enumerate().map(part).filter(|part| part.0 > 0).collect()
            }
        };
        let targets = parts.len();
        let all: usize = parts.iter().map(|part| part.0).sum();
        for (at, (jobs, target, start, each, files)) in parts.into_iter().enumerate() {
            let _ = writeln!(text, "\n[{}-{number}-{at}]", self.name);
            if at == 0 {
                text.push_str("new_group=1\n");
            }
            let mut line = |key: &str, value: String| {
                let _ = writeln!(text, "{key}={value}");
            };
            let is_random = shape.order == Order::Random;
            let what = match (is_random, shape.reads) {
                (true, 0) => "randwrite",
                (true, 100) => "randread",
                (true, _) => "randrw",
                (false, 0) => "write",
                (false, 100) => "read",
                (false, _) => "rw",
            };
            line("rw", what.to_owned());
            if !matches!(shape.reads, 0 | 100) {
                line("rwmixread", shape.reads.to_string());
            }
            line("bs", shape.bytes.to_string());
            line("numjobs", jobs.to_string());
            // As much is under way, by however many.
            let depth = (shape.jobs * shape.depth / (jobs * targets)).max(1);
            line("iodepth", depth.to_string());
            let service = if is_random { "random" } else { "roundrobin" };
            line("file_service_type", service.to_owned());
            let block = shape.bytes as u64;
            // Sequential jobs begin at equal distances, and each goes round in its own part.
            let own = if is_random { each } else { each / jobs as u64 } / block * block;
            line("offset", start.to_string());
            if !is_random {
                line("offset_increment", own.to_string());
            }
            line("size", (own * files).to_string());
            if let Some(rate) = shape.rate {
                let one = rate / all as f64;
                let reads = f64::from(shape.reads) / 100.0;
                line("rate_iops", format!("{:.0},{:.0}", one * reads, one * (1.0 - reads)));
            }
            text.push_str(&target);
            text.push('\n');
        }
    }

    /// Runs it in this folder, where the job file and fio's report stay; what came of each load.
    ///
    /// # Errors
    /// When fio can't be run or a request fails, or it is to end.
    pub fn run(
        &self,
        (dir, number): (&Path, usize),
        counted: Option<Duration>,
        interval: Duration,
        stop: &AtomicBool,
    ) -> Result<Vec<Tally>, BenchError> {
        let interval = interval.max(SHORTEST).min(counted.unwrap_or(SHORTEST));
        let system = |path: &Path| {
            let path = path.to_owned();
            move |error| BenchError::System { path, error }
        };
        let stem = format!("{number:04}-{}", self.name);
        let dir = dir.join(&stem);
        std::fs::create_dir_all(&dir).map_err(system(&dir))?;
        let (job, out) = (dir.join("job.fio"), dir.join("report.json"));
        std::fs::write(&job, self.job(counted, interval)).map_err(system(&job))?;
        self.carry_out(&dir, stop)?;
        let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        let mut tallies = tallies(&read(&out))
            .filter(|found| found.len() == self.shapes.len() * self.clients.len().max(1))
            .ok_or_else(|| BenchError::Fio("its report can't be understood".to_owned()))?;
        let logs = (1..).map(|number| dir.join(format!("series_iops.{number}.log")));
        let one = std::iter::once(dir.join("series_iops.log"));
        let logs: String =
            one.chain(logs.take_while(|path| path.exists())).map(|path| read(&path)).collect();
        if !self.clients.is_empty() {
            // Of one load each: all machines together.
            tallies = vec![Tally::of(&tallies)];
        }
        let series = series(&logs, counted.unwrap_or(interval), interval);
        let is_known = series.iter().any(|count| *count > 0);
        // Where fio logged nothing there is one value.
        tallies[0].series = if is_known { series } else { vec![tallies[0].made] };
        Ok(tallies)
    }

    /// Runs fio in this folder.
    fn carry_out(&self, dir: &Path, stop: &AtomicBool) -> Result<(), BenchError> {
        let problem = |error: std::io::Error| BenchError::Fio(error.to_string());
        let path = dir.join("said.txt");
        let said = std::fs::File::create(&path).map_err(problem)?;
        let mut command = Command::new("fio");
        command.args(["--output-format=json+", "--output=report.json"]);
        for client in &self.clients {
            // A port stands behind a comma there.
            command.arg(format!("--client={}", client.replace(':', ",")));
            command.arg("job.fio");
        }
        if self.clients.is_empty() {
            command.arg("job.fio");
        }
        command.current_dir(dir).stdin(Stdio::null());
        command.stdout(said.try_clone().map_err(problem)?).stderr(said);
        let mut child = command.spawn().map_err(problem)?;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(problem)? {
                break status;
            }
            if stop.load(Ordering::Relaxed) {
                // It may have ended.
                let _ = child.kill();
                let _ = child.wait();
                return Err(BenchError::Interrupted);
            }
            std::thread::sleep(LOOK);
        };
        // Ctrl-C ends fio, too.
        is_to_go_on(stop)?;
        if status.success() {
            return Ok(());
        }
        let said = std::fs::read_to_string(&path).unwrap_or_default();
        let why = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed");
        Err(BenchError::Fio(format!("{why} (its job is {})", dir.join("job.fio").display())))
    }
}

/// One side of a group in fio's report.
fn side(of: &Value) -> Option<(Side, u64)> {
    let mut side = Side { bytes: of["io_bytes"].as_u64()?, ..Side::default() };
    let bins = of["lat_ns"]["bins"].as_object();
    if bins.is_none() {
        // It only counted.
        side.times.note_many(Nanos(0), of["total_ios"].as_u64().unwrap_or(0));
    }
    for (nanos, count) in bins.into_iter().flatten() {
        side.times.note_many(Nanos(nanos.parse().ok()?), count.as_u64()?);
    }
    Some((side, of["runtime"].as_u64()?))
}

/// What came of each group, in fio's report, which notes of fio may precede.
fn tallies(report: &str) -> Option<Vec<Tally>> {
    let json: Value = serde_json::from_str(&report[report.find('{')?..]).ok()?;
    let one = |job: &Value| {
        let ((reads, read_ms), (writes, write_ms)) = (side(&job["read"])?, side(&job["write"])?);
        let made = reads.times.count() + writes.times.count();
        let failed = job["total_err"].as_u64().or(job["error"].as_u64()).unwrap_or(0);
        let time = Nanos::from_millis(read_ms.max(write_ms));
        Some(Tally { reads, writes, made, failed, time, ..Tally::default() })
    };
    let is_one = |job: &&Value| job["jobname"] != "All clients";
    let all = json["jobs"].as_array().or(json["client_stats"].as_array())?;
    all.iter().filter(is_one).map(one).collect()
}

/// Requests in each interval, by the lines of fio's logs: a time in ms, and requests a second of
/// one job in the interval that ended then.
fn series(log: &str, counted: Duration, interval: Duration) -> Vec<u64> {
    let step = interval.as_millis().max(1) as f64;
    let count = (counted.as_millis() as f64 / step).round().max(1.0) as usize;
    let mut sums = vec![0.0; count];
    for line in log.lines() {
        let mut fields = line.split(',').map(|field| field.trim().parse::<f64>().ok());
        if let (Some(Some(at)), Some(Some(rate))) = (fields.next(), fields.next()) {
            let number = ((at / step).round() as usize).clamp(1, count) - 1;
            sums[number] += rate * step / 1e3;
        }
    }
    sums.into_iter().map(|sum| sum as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape { jobs: 4, ..Shape::one(70, Order::Random, 4096, 32, 64 << 20) }
    }

    #[test]
    fn a_job_file_says_what_the_generator_would_do() {
        let reached = Reached::Files {
            paths: vec!["/d/a".into(), "/d/b:c".into()],
            start: 4096,
            in_memory: false,
        };
        let name = "4k-random-mixed".to_owned();
        let load = FioLoad {
            name,
            shapes: vec![shape()],
            reached,
            cores: 1,
            only_counts: false,
            clients: Vec::new(),
        };
        let job = load.job(Some(Duration::from_secs(2)), Duration::from_secs(1));
        for line in [
            "runtime=2000ms",
            "ioengine=io_uring",
            "direct=1",
            "rw=randrw",
            "rwmixread=70",
            "bs=4096",
            "numjobs=4",
            "iodepth=32",
            "filename=/d/a:/d/b\\:c",
            "offset=4096",
            "size=67108864",
        ] {
            assert!(job.lines().any(|own| own == line), "{line} is missing: {job}");
        }
        let addresses = vec!["127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap()];
        let reached = Reached::Nbd { addresses, volumes: 1 };
        let sequential = Shape { reads: 0, order: Order::Sequential, bytes: 1 << 20, ..shape() };
        let job = FioLoad { shapes: vec![shape(), sequential], reached, ..load }
            .job(Some(Duration::from_secs(2)), Duration::from_secs(1));
        assert_eq!(job.matches("new_group=1").count(), 2, "{job}");
        assert_eq!(job.matches("numjobs=2").count(), 4, "each core has half of them: {job}");
        assert!(job.contains("uri=nbd://127.0.0.1:2/v0"), "{job}");
        assert!(job.contains("offset_increment=33554432\nsize=33554432"), "{job}");
    }

    #[test]
    fn reports_and_logs_are_understood() {
        let report = r#"note: x
{"jobs": [{"error": 0,
  "read": {"io_bytes": 8192, "runtime": 500,
           "lat_ns": {"bins": {"1000": 1, "3000": 1}}},
  "write": {"io_bytes": 0, "runtime": 0, "total_ios": 0, "lat_ns": {"mean": 0}}}]}"#;
        let found = &tallies(report).expect("is understood")[0];
        assert_eq!((found.operations(), found.made, found.failed), (2, 2, 0));
        assert_eq!((found.rate(), found.bandwidth()), (4.0, 16384.0));
        assert_eq!(found.reads.times.mean(), 2000.0);
        assert!(tallies("fio: no").is_none());
        let log = "500, 100, 0, 4096, 0\n500, 50, 1, 4096, 0\n1001, 200, 0, 4096, 0\n";
        let half = Duration::from_millis(500);
        assert_eq!(series(log, Duration::from_secs(1), half), [75, 100]);
        assert_eq!(series("", half, half), [0]);
    }
}
