//! Parity on a GPU, where there is one and it pays.
//!
//! Invariant: what can't be done there is done by the CPU; a machine without a GPU, or whose GPU
//! goes, serves all the same.

use crate::api::{self, Error};
use engine::Accelerator;
use io::Reach;
use parity_gpu::cuda::CudaDriver;
use parity_gpu::{Driver, DriverError, Event, Fence, Limits, Placement, Problem, Service};
use std::rc::Rc;
use std::sync::Arc;

/// Where parity is computed.
pub struct Parity {
    /// The CPU's kernel.
    kernel: &'static str,
    placement: Placement,
    service: Option<Service>,
    /// Why there is no GPU though one was looked for and found.
    problem: Option<String>,
}

impl Parity {
    /// Opens the first GPU, unless all is to be done on the CPU, by `kernel`.
    ///
    /// # Errors
    /// If the GPU is asked for by name, and there is none that works.
    pub fn open(kernel: &'static str, placement: Placement) -> Result<Self, Error> {
        let cpu = Self { kernel, placement, service: None, problem: None };
        if placement == Placement::Cpu {
            return Ok(cpu);
        }
        let opened = CudaDriver::load().map_err(Fence::Failed);
        cpu.with(opened.and_then(|driver| start(Box::new(driver))))
    }

    fn with(self, opened: Result<Service, Fence>) -> Result<Self, Error> {
        match opened {
            Ok(service) => Ok(Self { service: Some(service), ..self }),
            Err(fence) if self.placement == Placement::Gpu => {
                let hint = "install NVIDIA's driver, or let the CPU do it: --parity auto or cpu";
                Err(Error::failed(format!("parity can't be computed on a GPU: {fence}"), hint))
            }
            Err(fence) => {
                let problem = (!is_none(&fence)).then(|| fence.to_string());
                Ok(Self { problem, ..self })
            }
        }
    }

    /// What a core asks for parity. Once for each core, on it.
    pub fn accelerator(&self) -> Option<Accelerator> {
        let service = self.service.as_ref()?;
        let jobs = Rc::new(service.handle(self.placement));
        Some(Accelerator { jobs, reach: service.reach() })
    }

    /// Who is to be told of memory that hosts' data lies in.
    pub fn reach(&self) -> Option<Arc<dyn Reach>> {
        self.service.as_ref().map(Service::reach)
    }

    /// How it stands, for clients.
    pub fn status(&self) -> api::Parity {
        let fence = self.service.as_ref().and_then(Service::fence).map(|fence| fence.to_string());
        let figures = self.service.as_ref().map(Service::figures).unwrap_or_default();
        api::Parity {
            placement: self.placement.to_string(),
            kernel: self.kernel.to_owned(),
            gpu: self.service.as_ref().map(|service| service.device().to_owned()),
            problem: fence.or_else(|| self.problem.clone()),
            gpu_jobs: figures.jobs,
            gpu_bytes: figures.bytes,
        }
    }
}

fn start(driver: Box<dyn Driver>) -> Result<Service, Fence> {
    Service::start(driver, 0, Limits::default(), Box::new(tell))
}

/// Says what became of the GPU, on its own thread.
fn tell(event: Event) {
    let Event::Fenced(fence) = event;
    eprintln!("palisade: warning: the GPU computes no parity any more: {fence}");
    if matches!(fence, Fence::Wrong { .. }) {
        eprintln!("  scrub all arrays: what it computed before may be wrong, too");
    }
}

/// Whether there simply is no GPU.
fn is_none(fence: &Fence) -> bool {
    let missing =
        |error: &DriverError| matches!(error.problem, Problem::Missing(_) | Problem::NoDevice);
    matches!(fence, Fence::Failed(error) if missing(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use parity_gpu::Asked;

    fn failed(placement: Placement, asked: Asked, problem: Problem) -> Result<Parity, Error> {
        let cpu = Parity { kernel: "portable", placement, service: None, problem: None };
        cpu.with(Err(Fence::Failed(DriverError { asked, problem })))
    }

    #[test]
    fn a_machine_without_a_gpu_serves_and_says_nothing() {
        let missing = || Problem::Missing("libcuda.so.1".to_owned());
        let parity = failed(Placement::Auto, Asked::Load, missing()).expect("it serves");
        let status = parity.status();
        assert_eq!((status.gpu, status.problem, &status.placement[..]), (None, None, "auto"));
        assert!(parity.accelerator().is_none() && parity.reach().is_none());
        let refused = failed(Placement::Gpu, Asked::Load, missing()).err();
        let refused = refused.expect("it was asked for");
        assert!(refused.error.contains("libcuda.so.1"), "{}", refused.error);
        assert!(refused.hint.contains("--parity auto"), "{}", refused.hint);
    }

    #[test]
    fn a_gpu_that_does_not_work_is_told() {
        let parity = failed(Placement::Auto, Asked::Open, Problem::Memory);
        let problem = parity.expect("it serves").status().problem.expect("it is told");
        assert!(problem.contains("memory"), "{problem}");
    }
}
