//! What the daemon's resource has beside what Redfish says of it.

use super::Extension;
use crate::counters::CoreCounters;
use crate::view;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Changes that destroy data need the token of their plan.
pub const ON: &str = "on";

/// Everybody may read `/metrics`.
pub const OPEN: &str = "open";

/// What the daemon tells of itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Manager {
    /// The daemon's process.
    #[serde(rename = "ProcessID")]
    pub process_id: u32,
    /// Data cores.
    pub cores: u16,
    /// Whether start-up is over.
    pub ready: bool,
    /// Whether changes that destroy data need the token of their plan: `on` or `off`.
    pub confirm: String,
    /// Who may read `/metrics`: everybody (`open`), or who has logged in (`login`).
    #[serde(default)]
    pub metrics: String,
    /// What the data cores did since they started.
    #[serde(default)]
    pub core_times: Vec<CoreTime>,
    /// What computes parity.
    pub parity: Parity,
    /// Whether the daemon goes on where memory is short.
    pub memory: Memory,
    /// What a person should do; empty where all is well.
    #[serde(default)]
    pub next: Vec<Next>,
    /// What the daemon keeps that is not on the drives.
    #[serde(default)]
    pub state: Kept,
}

/// How a data core spent its time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct CoreTime {
    /// Which, from 0.
    pub core: u16,
    /// In which it worked.
    pub busy_milliseconds: u64,
    /// In which it looked for work.
    pub looking_milliseconds: u64,
    /// In which it slept.
    pub asleep_milliseconds: u64,
    /// Requests to volumes that it began.
    pub requests: u64,
}

impl From<&CoreCounters> for CoreTime {
    fn from(own: &CoreCounters) -> Self {
        Self {
            core: own.core,
            busy_milliseconds: own.busy_nanos() / 1_000_000,
            looking_milliseconds: own.looking_nanos / 1_000_000,
            asleep_milliseconds: own.asleep_nanos / 1_000_000,
            requests: own.requests,
        }
    }
}

/// What the daemon keeps that is not on the drives.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Kept {
    /// The state directory. Without one the daemon serves on its socket only, and the audit log
    /// ends with it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub directory: Option<String>,
    /// Why it can't be used or written.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<String>,
}

impl From<Kept> for view::Kept {
    fn from(Kept { directory, problem }: Kept) -> Self {
        Self { directory, problem }
    }
}

impl Extension for Manager {
    const OF: &'static str = "Manager";
}

/// Something that a person should see to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Next {
    /// What happened, one line.
    pub what: String,
    /// What to do, one line: with the command where there is one.
    pub action: String,
}

/// What the kernel grants a daemon that memory may be written out to.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Memory {
    /// Whether threads that need memory wait for nobody's I/O.
    #[serde(rename = "IOFlusher")]
    pub io_flusher: bool,
    /// Whether memory that was touched is never taken away.
    pub locked: bool,
    /// Whether it is not locked because a GPU may be used.
    #[serde(rename = "LeftToGPU")]
    pub left_to_gpu: bool,
    /// What was refused, and what would allow it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<String>,
}

/// What computes parity.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Parity {
    /// Where work goes: `cpu`, `gpu`, or `auto`, where each costs less.
    pub placement: String,
    /// The CPU's kernel.
    pub kernel: String,
    /// The GPU, if one was opened.
    #[serde(rename = "GPU", skip_serializing_if = "Option::is_none", default)]
    pub gpu: Option<String>,
    /// Why a GPU is not used that is there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<String>,
    /// Whether parity that the GPU computed may be wrong.
    #[serde(rename = "GPUSuspect", default)]
    pub gpu_suspect: bool,
    /// Pieces of work that the GPU did since the daemon's start.
    #[serde(rename = "GPUJobs")]
    pub gpu_jobs: u64,
    /// Bytes that these read.
    #[serde(rename = "GPUBytes")]
    pub gpu_bytes: u64,
    /// Pieces of work that it was given and that the CPU did in the end.
    #[serde(rename = "GPUUndone")]
    pub gpu_undone: u64,
    /// Pieces of work that both did, and that were compared.
    #[serde(rename = "GPUChecked")]
    pub gpu_checked: u64,
    /// Bytes of I/O memory that it reaches by itself.
    #[serde(rename = "GPUSharedBytes")]
    pub gpu_shared_bytes: u64,
    /// Bytes of memory that are kept from use, as a GPU that hung may write to them yet.
    #[serde(rename = "GPUKeptBytes")]
    pub gpu_kept_bytes: u64,
}

impl From<&view::View> for Manager {
    fn from(view: &view::View) -> Self {
        let status = &view.status;
        let memory = &status.memory;
        let next =
            |next: &view::Next| Next { what: next.what.clone(), action: next.action.clone() };
        Self {
            process_id: status.pid,
            cores: status.cores,
            ready: status.ready,
            confirm: if view.server.confirms { ON } else { "off" }.to_owned(),
            metrics: if view.server.open_metrics { OPEN } else { "login" }.to_owned(),
            core_times: view.counters.cores.iter().map(Into::into).collect(),
            parity: Parity::from(&status.parity),
            memory: Memory {
                io_flusher: memory.io_flusher,
                locked: memory.locked,
                left_to_gpu: memory.left_to_gpu,
                problem: memory.problem.clone(),
            },
            next: status.next.iter().map(next).collect(),
            state: Kept {
                directory: status.state.directory.clone(),
                problem: status.state.problem.clone(),
            },
        }
    }
}

impl From<&view::Parity> for Parity {
    fn from(parity: &view::Parity) -> Self {
        Self {
            placement: parity.placement.clone(),
            kernel: parity.kernel.clone(),
            gpu: parity.gpu.clone(),
            problem: parity.problem.clone(),
            gpu_suspect: parity.gpu_suspect,
            gpu_jobs: parity.gpu_jobs,
            gpu_bytes: parity.gpu_bytes,
            gpu_undone: parity.gpu_undone,
            gpu_checked: parity.gpu_checked,
            gpu_shared_bytes: parity.gpu_shared_bytes,
            gpu_kept_bytes: parity.gpu_kept_bytes,
        }
    }
}

impl From<Parity> for view::Parity {
    fn from(parity: Parity) -> Self {
        Self {
            placement: parity.placement,
            kernel: parity.kernel,
            gpu: parity.gpu,
            problem: parity.problem,
            gpu_suspect: parity.gpu_suspect,
            gpu_jobs: parity.gpu_jobs,
            gpu_bytes: parity.gpu_bytes,
            gpu_undone: parity.gpu_undone,
            gpu_checked: parity.gpu_checked,
            gpu_shared_bytes: parity.gpu_shared_bytes,
            gpu_kept_bytes: parity.gpu_kept_bytes,
        }
    }
}

impl From<Memory> for view::Memory {
    fn from(memory: Memory) -> Self {
        let Memory { io_flusher, locked, left_to_gpu, problem } = memory;
        Self { io_flusher, locked, left_to_gpu, problem }
    }
}

impl From<Next> for view::Next {
    fn from(next: Next) -> Self {
        Self { what: next.what, action: next.action }
    }
}
