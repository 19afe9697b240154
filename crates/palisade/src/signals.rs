//! What asks this program to end: SIGINT, SIGTERM, SIGHUP.

use std::io;
use std::thread;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// Calls `told` whenever one of them comes, on a thread of its own; from now on they do nothing
/// else.
///
/// # Errors
/// They can't be listened for.
pub fn watch(mut told: impl FnMut() + Send + 'static) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let [mut int, mut term, mut hup] = {
        let _context = runtime.enter();
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [int, term, hup] = kinds.map(signal);
        [int?, term?, hup?]
    };
    let listen = async move {
        loop {
            tokio::select! {
                _ = int.recv() => {}
                _ = term.recv() => {}
                _ = hup.recv() => {}
            }
            told();
        }
    };
    thread::Builder::new().name("signals".into()).spawn(move || runtime.block_on(listen))?;
    Ok(())
}
