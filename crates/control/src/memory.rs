//! The daemon's own memory where memory is short.
//!
//! Purpose: programs on this machine may have their memory written out to a volume of ours (a file
//! system's cache, swap). If the daemon then waited for memory until those writes are done, both
//! would wait for ever. What requests need is allocated at start; the kernel is asked for the rest:
//!
//! - *flusher*: a thread that gets memory from the kernel starts no I/O for it and waits for none
//!   (`PR_SET_IO_FLUSHER`).
//! - *locked*: a page that was touched is never taken away (`mlockall`, `MCL_ONFAULT`), so none has
//!   to be read back. Not where a GPU may be used: its driver maps far more than is there.
//!
//! Invariants
//! - Asked for before the daemon has threads: these inherit the first. The second is the process's.
//! - Memory is locked only by who may lock without limit: under one, what is allocated later would
//!   fail.
//! - Nothing that is refused here keeps the daemon from serving; it is said once, and by `status`.

use parity_gpu::Placement;
use redfish::view;
use rustix::io::Errno;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, Rlimit, configure_io_flusher_behavior, getrlimit, setrlimit};
use std::path::Path;
use units::format_size;

/// One of them is there where NVIDIA's driver is.
const GPU: [&str; 2] = ["/dev/nvidiactl", "/proc/driver/nvidia/version"];

/// Why memory can't be locked, and how many bytes could be; `None` is no limit.
type NotLocked = (Errno, Option<u64>);

/// Asks for both, for this thread, those that it will start, and the process.
pub fn keep(placement: Placement) -> view::Memory {
    let gpu = may_use_gpu(placement, |path| Path::new(path).exists());
    let locked = if gpu { None } else { Some(lock()) };
    told(configure_io_flusher_behavior(true), locked)
}

/// Whether parity may be computed on a GPU. It is opened later, on a thread of its own: what is
/// known now is what was asked for, and whether there is a driver.
fn may_use_gpu(placement: Placement, exists: impl Fn(&str) -> bool) -> bool {
    match placement {
        Placement::Cpu => false,
        Placement::Gpu => true,
        Placement::Auto => GPU.into_iter().any(exists),
    }
}

/// Locks what is there and what will be, if there is no limit to it.
fn lock() -> Result<(), NotLocked> {
    let limit = getrlimit(Resource::Memlock);
    // Who may lock with a limit of nothing is held to none. A capability that is listed would not
    // say so: it may count in a namespace only.
    let asked = limit.maximum.map(|_| 0);
    let lock = || {
        setrlimit(Resource::Memlock, Rlimit { current: asked, ..limit })?;
        mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT)
    };
    let outcome = lock();
    if limit.maximum.is_some() {
        // It was allowed before.
        let _ = setrlimit(Resource::Memlock, limit);
    }
    outcome.map_err(|error| (error, limit.maximum))
}

/// What came of it, for clients; memory that is left unlocked on purpose is `None`.
fn told(flusher: Result<(), Errno>, locked: Option<Result<(), NotLocked>>) -> view::Memory {
    let mut problems = Vec::new();
    if let Err(error) = flusher {
        problems.push(format!(
            "the daemon may wait for I/O when it needs memory, as the kernel refused \
             PR_SET_IO_FLUSHER ({error}); run it with CAP_SYS_RESOURCE"
        ));
    }
    if let Some(Err((error, limit))) = locked {
        let limit = limit.map_or("unlimited".to_owned(), format_size);
        problems.push(format!(
            "the daemon's memory is not locked, as the kernel refused mlockall ({error}, the limit \
             is {limit}); run it with CAP_IPC_LOCK or LimitMEMLOCK=infinity"
        ));
    }
    view::Memory {
        io_flusher: flusher.is_ok(),
        locked: matches!(locked, Some(Ok(()))),
        left_to_gpu: locked.is_none(),
        problem: (!problems.is_empty()).then(|| problems.join("; ")),
    }
}

/// Says what came of it.
pub fn say(memory: &view::Memory) {
    if let Some(problem) = &memory.problem {
        runtime::say(format_args!(
            "palisade: warning: when this machine runs short of memory, its programs that write \
             to volumes may hang\n  {problem}"
        ));
    }
    let locked = match (memory.locked, memory.left_to_gpu) {
        (true, _) => "locked",
        (false, true) => "not locked, as a GPU may be used",
        (false, false) => "not locked",
    };
    runtime::say(format_args!("palisade: memory is {locked}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_left_to_a_gpu_that_may_be_used() {
        let here = |path: &str| path == GPU[1];
        assert!(may_use_gpu(Placement::Auto, here) && may_use_gpu(Placement::Gpu, |_| false));
        assert!(!may_use_gpu(Placement::Auto, |_| false) && !may_use_gpu(Placement::Cpu, here));
        let left = told(Ok(()), None);
        assert!(left.left_to_gpu && !left.locked && left.problem.is_none(), "{left:?}");
    }

    #[test]
    fn what_is_refused_is_told_with_its_remedy() {
        let fine = told(Ok(()), Some(Ok(())));
        assert!(fine.io_flusher && fine.locked && !fine.left_to_gpu && fine.problem.is_none());
        let refused = told(Err(Errno::PERM), Some(Err((Errno::PERM, Some(8 << 20)))));
        assert!(!refused.io_flusher && !refused.locked && !refused.left_to_gpu);
        let problem = refused.problem.expect("two");
        for word in ["CAP_SYS_RESOURCE", "CAP_IPC_LOCK", "LimitMEMLOCK=infinity", "8 MiB"] {
            assert!(problem.contains(word), "{problem}");
        }
    }
}
