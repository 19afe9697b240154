//! Load generator, procedures and reports: what this machine gives, measured here.
//!
//! Purpose: every number is a comparison inside one run. Two sides take turns in short slices,
//! order alternating, and a result is the median of the rounds' ratios with the smallest and the
//! largest round beside it. Both sides go through the same generator, buffers and reactor.
//!
//! - [`api`]: the procedure of `palisade bench api`.
//! - [`health`]: the procedure of `palisade bench health`.
//! - [`array`]: the procedure of `palisade bench array`; `bay`: an array to be measured; `costs`:
//!   what it pays for losing nothing; [`placement`]: where its parity is computed.
//! - [`parity_bench`]: the procedure of `palisade bench parity`; [`isal`] and [`read_pass`]: its
//!   yardsticks.
//! - [`gpu_bench`]: the procedure of `palisade bench parity --gpu`; [`gpu_test`]: the checks of
//!   the program `palisade-test-gpu`; [`watchdog`]: what ends either when a driver hangs.
//! - [`nvme_tcp`]: the procedure of `palisade bench nvme-tcp`.
//! - [`front_ends`]: what `palisade bench services` measures in this process.
//! - [`remote`]: the procedure of `palisade bench remote`.
//! - [`services_bench`]: the procedure of `palisade bench services`.
//! - [`evaluate`]: what an evaluator runs: `palisade bench spec-sheet` and `sweep`.
//! - [`model`]: the procedure of `palisade bench model`; [`scale`]: how slow paced drives are.
//! - [`load`]: requests whose writes are recorded, against raw drives or a volume; [`record`]: what
//!   was written, and the check of what is read back. [`generated`]: loads of the generator, which
//!   sees by itself where reads find something else. [`fio_load`]: the same loads by fio;
//!   [`served`]: what it reaches an array by. [`through`]: loads of our own over a network, or
//!   as files and devices of this machine.
//! - [`rig`]: cores with an engine on them; [`files`]: drives in memory; [`fio`]: the yardstick
//!   of the raw side.
//! - [`stats`], [`report`]: medians; JSON and table. [`html`], [`sheets`]: a report as one page,
//!   and as files for spreadsheets. [`compare`]: the procedure of `palisade bench compare`.
//!
//! Invariants
//! - Nothing is generated, checked or allocated on the measured path on one side only.
//! - A result whose condition does not hold is left out, and the report says why.
//! - The drives are files without a name: they are gone when the process is, however it ends. Those
//!   of [`api`], [`health`] and [`services_bench`] have names, since another process opens them:
//!   they go when the procedure ends.

pub mod api;
pub mod array;
mod bay;
pub mod compare;
mod costs;
pub mod error;
pub mod evaluate;
pub mod files;
pub mod fio;
pub mod fio_load;
pub mod front_ends;
pub mod generated;
pub mod gpu_bench;
pub mod gpu_test;
pub mod health;
pub mod html;
pub mod isal;
pub mod load;
pub mod model;
mod named;
pub mod nvme_tcp;
mod omitted;
pub mod parity_bench;
pub mod placement;
mod read_pass;
pub mod record;
pub mod remote;
pub mod report;
pub mod rig;
pub mod scale;
pub mod served;
pub mod services_bench;
mod shapes;
pub mod sheets;
pub mod stats;
pub mod through;
pub mod watchdog;

pub use api::{ApiBench, bench_api};
pub use array::{ArrayBench, bench_array};
pub use error::BenchError;
pub use gpu_bench::{GpuBench, bench_parity_gpu, gpu_table};
pub use health::{HealthBench, bench_health};
pub use model::{ModelBench, bench_model, list_models};
pub use nvme_tcp::{NvmeTcpBench, bench_nvme_tcp};
pub use parity_bench::{ParityBench, bench_parity, parity_table};
pub use remote::{RemoteBench, RemoteHost, bench_remote, serve_remote_host};
pub use report::{Machine, Metric, Report};
pub use scale::Scale;
pub use services_bench::{ServicesBench, bench_services};
