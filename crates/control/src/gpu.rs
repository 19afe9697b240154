//! Parity on a GPU, where there is one and it pays.
//!
//! Invariants: nobody waits for a GPU, and its driver is loaded only if it is wanted; what can't be
//! done there is done by the CPU, so that a machine without a GPU, or whose GPU goes, serves all
//! the same.

use engine::Accelerator;
use io::Reach;
use parity_gpu::{Event, Fence, Limits, Load, Placement, Problem, Service, cuda};
use redfish::view;
use std::rc::Rc;
use std::sync::Arc;

/// Where parity is computed.
pub struct Parity {
    /// The CPU's kernel.
    kernel: &'static str,
    placement: Placement,
    /// The GPU, from when it is asked for.
    service: Option<Service>,
}

impl Parity {
    /// Has the first GPU opened, unless all is to be done on the CPU, by `kernel`. One of `check`
    /// of its jobs is done on both.
    pub fn open(kernel: &'static str, placement: Placement, check: u32) -> Self {
        Self::with(kernel, placement, check, Box::new(cuda::load))
    }

    fn with(kernel: &'static str, placement: Placement, check: u32, load: Load) -> Self {
        let limits = Limits { sample: check, ..Limits::default() };
        let start = || {
            let tell = Box::new(move |event| tell(placement, &event));
            let started = Service::start(load, 0, limits, tell);
            started.map_err(|fence| say(placement, &fence)).ok()
        };
        let service = (placement != Placement::Cpu).then(start).flatten();
        Self { kernel, placement, service }
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
    pub fn status(&self) -> view::Parity {
        let service = self.service.as_ref();
        let fence = service.and_then(Service::fence);
        let figures = service.map(Service::figures).unwrap_or_default();
        view::Parity {
            placement: self.placement.to_string(),
            kernel: self.kernel.to_owned(),
            gpu: service.and_then(Service::device),
            gpu_suspect: fence.as_ref().is_some_and(is_suspect),
            problem: fence.filter(|fence| is_told(self.placement, fence)).map(|f| f.to_string()),
            gpu_jobs: figures.jobs,
            gpu_bytes: figures.bytes,
            gpu_undone: figures.undone,
            gpu_checked: figures.sampled,
            gpu_shared_bytes: figures.reached,
            gpu_kept_bytes: figures.kept,
        }
    }
}

/// Says what became of the GPU, on its own thread.
fn tell(placement: Placement, event: &Event) {
    match event {
        Event::Opened(name) => {
            runtime::say(format_args!("palisade: parity is also computed on {name} ({placement})"))
        }
        Event::NotShared(error) => {
            runtime::say(format_args!(
                "palisade: warning: the GPU can't reach the daemon's memory, strips are copied: \
                 {error}"
            ));
        }
        Event::Fenced(fence) => say(placement, fence),
    }
}

fn say(placement: Placement, fence: &Fence) {
    if !is_told(placement, fence) {
        return;
    }
    runtime::say(format_args!(
        "palisade: warning: the GPU is not used for parity from now on: {fence}"
    ));
    match fence {
        _ if is_suspect(fence) => {
            runtime::say(format_args!("  parity that it computed may be wrong: scrub all arrays"))
        }
        _ if is_none(fence) => runtime::say(format_args!(
            "  install NVIDIA's driver, or start the daemon with --parity cpu"
        )),
        _ => {}
    }
}

/// Whether a person wants to know: not that there is no GPU where none was asked for.
fn is_told(placement: Placement, fence: &Fence) -> bool {
    placement == Placement::Gpu || !is_none(fence)
}

/// Whether what the GPU computed before may be wrong.
fn is_suspect(fence: &Fence) -> bool {
    matches!(fence, Fence::Wrong { .. } | Fence::Undone { .. })
}

/// Whether there simply is no GPU.
fn is_none(fence: &Fence) -> bool {
    let Fence::Failed(error) = fence else { return false };
    matches!(error.problem, Problem::Missing(_) | Problem::NoDevice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parity_gpu::{Asked, DriverError};

    /// How it stands once a driver has failed so.
    fn failed(placement: Placement, problem: Problem) -> (Parity, view::Parity) {
        let error = DriverError { asked: Asked::Load, problem };
        let parity = Parity::with("portable", placement, 0, Box::new(|| Err(error)));
        if let Some(service) = &parity.service {
            service.opened().expect_err("there is no driver");
        }
        let status = parity.status();
        (parity, status)
    }

    #[test]
    fn a_machine_without_a_gpu_serves_and_says_so_if_it_was_asked_for() {
        let missing = || Problem::Missing("libcuda.so.1".to_owned());
        let (parity, auto) = failed(Placement::Auto, missing());
        assert_eq!((auto.gpu, auto.problem, &auto.placement[..]), (None, None, "auto"));
        assert!(parity.accelerator().is_some_and(|accelerator| {
            let code = parity::Code::new(4, 2).expect("a code");
            !accelerator.jobs.wants(&parity::offload::Operation::generate(code), 1 << 20, false)
        }));
        let (_, gpu) = failed(Placement::Gpu, missing());
        assert!(gpu.problem.is_some_and(|problem| problem.contains("libcuda.so.1")));
        let (parity, cpu) = failed(Placement::Cpu, missing());
        assert!(parity.accelerator().is_none() && cpu.problem.is_none());
    }

    #[test]
    fn a_gpu_that_computed_wrong_parity_is_suspect() {
        let kind = parity_gpu::Kind::ALL[0];
        assert!(is_suspect(&Fence::Wrong { kind, unchecked: 3 }));
        assert!(is_suspect(&Fence::Undone { kind }) && !is_suspect(&Fence::Hung));
    }

    #[test]
    fn a_gpu_that_does_not_work_is_told() {
        let (_, status) = failed(Placement::Auto, Problem::Memory);
        assert!(status.problem.is_some_and(|problem| problem.contains("memory")));
    }
}
