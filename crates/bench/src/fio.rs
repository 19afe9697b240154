//! fio (<https://fio.readthedocs.io>), the yardstick of the raw side: what a well-known load
//! generator gets out of the same files on one CPU.

use crate::error::BenchError;
use crate::load::Op;
use crate::stats::Sample;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The ways of I/O that are tried.
pub const ENGINES: [&str; 2] = ["psync", "io_uring"];

/// Whether there is a fio.
pub fn available() -> bool {
    let quiet = Command::new("fio").arg("--version").stdout(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

/// Random requests of 4 KiB at `depth` over `paths`, on the first CPU this process may use;
/// requests per second.
pub fn random_4k(
    engine: &str,
    op: Op,
    depth: usize,
    paths: &[PathBuf],
    span: Duration,
) -> Result<f64, BenchError> {
    let side = if op.writes() { "write" } else { "read" };
    let names: Vec<_> = paths.iter().map(|p| p.display().to_string()).collect();
    let mut fio = Command::new("fio");
    fio.args(["--name=raw", "--bs=4k", "--time_based", "--norandommap", "--randrepeat=0"])
        .args(["--file_service_type=random", "--gtod_reduce=1", "--output-format=json"])
        .args(["--thread", "--group_reporting", "--invalidate=0"])
        .arg(format!("--rw=rand{side}"))
        .arg(format!("--ioengine={engine}"))
        .arg(format!("--iodepth={depth}"))
        .arg(format!("--filename={}", names.join(":")))
        .arg(format!("--runtime={}ms", span.as_millis()))
        .arg(format!("--cpus_allowed={}", first_cpu()));
    run(&mut fio, |report| rate(report, side))
}

/// Runs it; what there is to know of its report.
fn run<T>(fio: &mut Command, known: impl FnOnce(&str) -> Option<T>) -> Result<T, BenchError> {
    let output = fio.stdin(Stdio::null()).output();
    let output = output.map_err(|error| BenchError::Fio(error.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(BenchError::Fio(said.lines().next().unwrap_or("failed").to_owned()));
    }
    known(&String::from_utf8_lossy(&output.stdout))
        .ok_or_else(|| BenchError::Fio("its report can't be understood".to_owned()))
}

/// What comes of random reads of 4 KiB of a file for some time, past the page cache, `depth` at a
/// time. CPU time is not told.
///
/// # Errors
/// `Fio`, if it can't be run or a read fails.
pub fn direct_4k_reads(path: &Path, depth: usize, span: Duration) -> Result<Sample, BenchError> {
    let name = path.display().to_string().replace('\\', "\\\\").replace(':', "\\:");
    let mut fio = Command::new("fio");
    fio.args(["--name=reads", "--rw=randread", "--bs=4k", "--ioengine=libaio", "--direct=1"])
        .args(["--time_based", "--norandommap", "--randrepeat=0", "--gtod_reduce=1", "--thread"])
        .args(["--output-format=json", "--readonly"])
        .arg(format!("--iodepth={depth}"))
        .arg(format!("--filename={name}"))
        .arg(format!("--runtime={}ms", span.as_millis().max(1)));
    run(&mut fio, reads)
}

/// What was read, of fio's report, which notes of fio may precede.
fn reads(report: &str) -> Option<Sample> {
    let json: serde_json::Value = serde_json::from_str(&report[report.find('{')?..]).ok()?;
    let read = &json["jobs"][0]["read"];
    let elapsed = Duration::from_millis(read["runtime"].as_u64()?);
    Some(Sample { operations: read["total_ios"].as_u64()?, elapsed, cpu: Duration::ZERO })
}

/// The first CPU this process may use.
fn first_cpu() -> usize {
    let set = rustix::thread::sched_getaffinity(None).ok();
    set.and_then(|set| (0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| set.is_set(*cpu)))
        .unwrap_or(0)
}

/// Requests per second in fio's report, which notes of fio may precede.
fn rate(report: &str, side: &str) -> Option<f64> {
    let json: serde_json::Value = serde_json::from_str(&report[report.find('{')?..]).ok()?;
    json["jobs"][0][side]["iops"].as_f64().filter(|rate| *rate > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_understood() {
        let report = "note: x\n{\"jobs\":[{\"read\":{\"iops\":1234.5},\"write\":{\"iops\":0}}]}";
        assert_eq!(rate(report, "read"), Some(1234.5));
        assert_eq!(rate(report, "write"), None);
        assert_eq!(rate("fio: no", "read"), None);
        let sample = reads("{\"jobs\":[{\"read\":{\"total_ios\":50,\"runtime\":20}}]}").unwrap();
        assert!((sample.rate() - 2500.0).abs() < 1e-6 && sample.operations == 50);
        assert_eq!(reads("{\"jobs\":[]}"), None);
    }

    #[test]
    fn there_is_a_first_cpu() {
        let set = rustix::thread::sched_getaffinity(None).unwrap();
        assert!(set.is_set(first_cpu()));
    }
}
