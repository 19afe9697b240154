//! What asks this program to end: SIGINT, SIGTERM, SIGHUP.

use std::io;
use std::sync::Arc;
use std::thread;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// Calls `told` whenever one of them comes, which it names, on a thread of its own; from now on
/// they do nothing else. A hangup that whoever started this program had it ignore, as nohup(1)
/// does, stays ignored; SIGINT does not, which a shell has those ignore that it starts with `&`.
///
/// # Errors
/// They can't be listened for.
pub fn watch(told: impl Fn(SignalKind) + Send + Sync + 'static) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (context, told) = (runtime.enter(), Arc::new(told));
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let stays = ignored(&status) >> (SignalKind::hangup().as_raw_value() - 1) & 1 == 1;
    let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
    kinds.extend((!stays).then(SignalKind::hangup));
    for kind in kinds {
        let (mut stream, told) = (signal(kind)?, told.clone());
        runtime.spawn(async move {
            while stream.recv().await.is_some() {
                told(kind);
            }
        });
    }
    drop(context);
    let listen = move || runtime.block_on(std::future::pending::<()>());
    thread::Builder::new().name("signals".into()).spawn(listen)?;
    Ok(())
}

/// The signals that a process ignores, by what `/proc/PID/status` says: the first is bit 0
/// (proc(5)).
fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|own| u64::from_str_radix(own.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_known() {
        assert_eq!(ignored("SigBlk:\t00000000000000ff\nSigIgn:\t0000000000001001\n"), 0x1001);
        assert_eq!(ignored("Name:\tpalisade\n"), 0);
    }
}
