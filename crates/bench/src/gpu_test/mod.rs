//! The checks of `palisade-test-gpu`: every kernel of a GPU and of the processor.
//!
//! Purpose: stand in for nobody's word. Each case of the vectors is computed by the reference
//! here, must have the checksum that was written down when the folder was packed, and is then
//! done by every kernel and compared byte by byte.
//! Invariants: status 0 only if every case was done and every kernel was right; no part takes
//! longer than it may; without a GPU the processor's kernels are still checked.

mod checks;
#[cfg(test)]
mod tests;
pub mod vectors;

use crate::error::BenchError;
use crate::gpu_bench::cores::Cores;
use crate::gpu_bench::works::works;
use crate::gpu_bench::{GpuBench, NoGpu, bench_parity_gpu, gpu_table};
use crate::report::{Machine, Report};
use crate::stats::Spread;
pub use checks::{Check, check_cpu, check_gpu};
use core::fmt::Write as _;
use parity_gpu::Driver;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use vectors::Case;

/// Everything was right.
pub const GOOD: u8 = 0;
/// Something was wrong, or not all could be checked.
pub const WRONG: u8 = 1;
/// There is no GPU, or no driver; the processor's kernels were right.
pub const NO_GPU: u8 = 3;

/// Bytes of data that a core goes over when its kernels are measured.
const CORE_BYTES: usize = 16 << 20;
/// Rounds of that.
const ROUNDS: usize = 5;

/// What one kernel of the processor came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CpuPart {
    /// The kernel's name.
    pub kernel: String,
    /// Its checks.
    pub check: Check,
    /// GB/s of data on one core from memory, by work.
    pub gbps: BTreeMap<String, f64>,
}

/// Checks and measures the kernel that this process has chosen.
///
/// # Errors
/// When no kernel can be chosen.
pub fn cpu_part(cases: &[Case], budget: Duration) -> Result<CpuPart, String> {
    let kernel = ::parity::select_kernel().map_err(|error| error.to_string())?.to_owned();
    let check = check_cpu(cases, budget);
    let mut cores = Cores::new(1, CORE_BYTES);
    let mut gbps = BTreeMap::new();
    for work in works() {
        let mut turn = || cores.one(&work, Duration::from_millis(10)).rate();
        let rates: Vec<f64> = (0..ROUNDS).map(|_| turn()).collect();
        if let Some(rate) = Spread::of(rates) {
            gbps.insert(work.name.to_owned(), rate.median * work.data() as f64 / 1e9);
        }
    }
    Ok(CpuPart { kernel, check, gbps })
}

/// What a GPU came to.
#[derive(Clone, Debug, Serialize)]
pub struct GpuPart {
    /// Its name.
    pub device: String,
    /// Its checks.
    pub check: Check,
    /// Its kernels that were run.
    pub kernels: Vec<String>,
    /// What was measured; null where that could not be done.
    pub bench: Option<Report>,
}

/// All that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Findings {
    /// Version of this form.
    pub schema: u32,
    /// The program's version.
    pub version: String,
    /// Where it ran.
    pub machine: Machine,
    /// As the program ends.
    pub status: u8,
    /// Why that is not 0, a text each.
    pub problems: Vec<String>,
    /// Cases of the vectors.
    pub cases: usize,
    /// Every kernel of the processor that it can run.
    pub cpu: Vec<CpuPart>,
    /// The GPU; null without one.
    pub gpu: Option<GpuPart>,
}

/// Checks everything. `cpu` checks the processor's kernel of a name, in a process of its own, as
/// a process chooses one kernel for good. `progress` is told what is under way.
pub fn carry_out(
    version: &str,
    cases: &[Case],
    bench: &GpuBench,
    gpu: Result<&dyn Driver, NoGpu>,
    cpu: &dyn Fn(&str) -> Result<CpuPart, String>,
    progress: &dyn Fn(&str),
) -> Findings {
    let mut findings = Findings {
        schema: 1,
        version: version.to_owned(),
        machine: Machine::here(),
        status: GOOD,
        problems: ::parity::warnings(),
        cases: cases.len(),
        cpu: Vec::new(),
        gpu: None,
    };
    for kernel in ::parity::kernels() {
        progress(&format!("CPU kernel {kernel}"));
        match cpu(kernel) {
            Ok(part) => {
                findings.problems.extend(part.check.problems(&format!("CPU kernel {kernel}")));
                findings.cpu.push(part);
            }
            Err(error) => findings.problems.push(format!("CPU kernel {kernel}: {error}")),
        }
    }
    match gpu {
        Ok(driver) => {
            let problems = &mut findings.problems;
            match gpu_part(version, cases, bench, driver, problems, progress) {
                Ok(part) => findings.gpu = Some(part),
                Err(error) => findings.problems.push(format!("GPU: {error}")),
            }
        }
        Err(reason) if findings.problems.is_empty() => {
            findings.status = reason.status();
            findings.problems.push(reason.to_string());
            return findings;
        }
        Err(reason) => findings.problems.push(reason.to_string()),
    }
    findings.status = if findings.problems.is_empty() { GOOD } else { WRONG };
    findings
}

fn gpu_part(
    version: &str,
    cases: &[Case],
    bench: &GpuBench,
    driver: &dyn Driver,
    problems: &mut Vec<String>,
    progress: &dyn Fn(&str),
) -> Result<GpuPart, BenchError> {
    progress("opening the GPU");
    let mut device = driver.open(bench.device)?;
    let name = device.name().to_owned();
    progress("checking the GPU's kernels");
    let (check, kernels) = check_gpu(cases, &mut *device, bench.budget)?;
    progress("closing the GPU");
    drop(device);
    problems.extend(check.problems("GPU"));
    for kind in parity_gpu::Kind::ALL.iter().filter(|kind| !kernels.contains(kind)) {
        problems.push(format!("GPU: no case ran {}", kind.name()));
    }
    let kernels = kernels.into_iter().map(|kind| kind.name().to_owned()).collect();
    let tell = |line: &str| progress(&format!("measuring the GPU: {line}"));
    let report = bench_parity_gpu(bench, driver, (version, "palisade-test-gpu"), &tell);
    let report = report.map_err(|error| problems.push(format!("GPU: {error}"))).ok();
    Ok(GpuPart { device: name, check, kernels, bench: report })
}

impl Findings {
    /// One JSON object.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("findings have texts as keys");
        text.push('\n');
        text
    }

    /// For people; one line where there is no GPU.
    pub fn to_text(&self) -> String {
        let names: Vec<&str> = self.cpu.iter().map(|part| part.kernel.as_str()).collect();
        if self.status == NO_GPU {
            let reason = self.problems.join("; ");
            return format!("{reason} (CPU kernels {} are right)\n", names.join(", "));
        }
        let mut text = String::new();
        for part in &self.cpu {
            let _ = write!(text, "CPU kernel {:12} {}", part.kernel, part.check);
            for work in ["p", "pq", "pqr"] {
                let rate = part.gbps.get(work).copied().unwrap_or_default();
                let _ = write!(text, "  {work} {rate:.1} GB/s");
            }
            text.push('\n');
        }
        if let Some(gpu) = &self.gpu {
            let _ = writeln!(text, "GPU {}: {}", gpu.device, gpu.check);
            let _ = writeln!(text, "GPU kernels: {}", gpu.kernels.join(" "));
            text.push_str(&gpu.bench.as_ref().map_or(String::new(), gpu_table));
        }
        for problem in &self.problems {
            let _ = writeln!(text, "WRONG: {problem}");
        }
        if self.problems.is_empty() {
            text.push_str("all kernels are right\n");
        }
        text
    }
}
