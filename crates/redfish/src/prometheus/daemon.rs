//! The daemon: its process, memory, parity, HTTPS, sessions and requests.

use super::text::Kind::{Counter, Gauge};
use super::text::{Text, labels, truth};
use crate::messages as say;
use crate::view::{Parity, View};

/// What no view says of the daemon.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Daemon {
    /// What the kernel says of the process; none if it can't be asked.
    pub process: Option<Process>,
    /// Requests that were answered, by the first digit of the status: 1 to 5.
    pub answers: [u64; 5],
}

/// What the kernel says of a process.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Process {
    /// Seconds that it has computed, in its own code and in the kernel.
    pub cpu_seconds: f64,
    /// Bytes of memory that it has at hand.
    pub resident_bytes: u64,
    /// Bytes of addresses that it has taken.
    pub virtual_bytes: u64,
    /// Open files.
    pub open_files: u64,
    /// How many there may be; none if that has no bound.
    pub most_files: Option<u64>,
    /// Threads.
    pub threads: u64,
}

pub fn write(text: &mut Text, view: &View, daemon: &Daemon) {
    of_itself(text, view);
    state(text, view);
    parity(text, &view.status.parity);
    access(text, view);
    text.counter(
        "palisade_api_requests_total",
        "Requests to the management API that were answered.",
    );
    for (class, count) in ["1xx", "2xx", "3xx", "4xx", "5xx"].iter().zip(daemon.answers) {
        text.with("", ("code", class), count);
    }
    if let Some(process) = &daemon.process {
        self::process(text, process, view.server.since);
    }
}

fn of_itself(text: &mut Text, view: &View) {
    let status = &view.status;
    text.gauge("palisade_build_info", "The daemon's version.");
    text.put(&labels(&[("version", &status.version)]), 1);
    let ready = ("palisade_ready", "Whether start-up is over.");
    text.one(Gauge, ready, truth(status.ready));
    text.one(Gauge, ("palisade_cores", "Data cores."), status.cores);
    let next = ("palisade_advice", "Things that palisade status says a person should see to.");
    text.one(Gauge, next, status.next.len());
    let memory = &status.memory;
    let locked = ("palisade_memory_locked", "Whether the daemon's memory is never taken away.");
    text.one(Gauge, locked, truth(memory.locked));
    let left = "Whether memory is not locked because a GPU may be used.";
    text.one(Gauge, ("palisade_memory_left_to_gpu", left), truth(memory.left_to_gpu));
    let flusher = "Whether threads that need memory wait for nobody's I/O (PR_SET_IO_FLUSHER).";
    text.one(Gauge, ("palisade_memory_io_flusher", flusher), truth(memory.io_flusher));
    let refused = "Whether the kernel refused what keeps the daemon going where memory is short.";
    text.one(Gauge, ("palisade_memory_problem", refused), truth(memory.problem.is_some()));
}

fn state(text: &mut Text, view: &View) {
    let kept = &view.status.state;
    let there = ("palisade_state_directory", "Whether the daemon has a state directory.");
    text.one(Gauge, there, truth(kept.directory.is_some()));
    let problem =
        "Whether the state directory, and with it the audit log, can't be used or written.";
    text.one(Gauge, ("palisade_state_problem", problem), truth(kept.problem.is_some()));
    let lines = ("palisade_audit_lines_total", "Lines of the audit log, from its first one on.");
    text.one(Counter, lines, view.log.entries.back().map_or(0, |entry| entry.number));
}

fn parity(text: &mut Text, parity: &Parity) {
    text.gauge("palisade_parity_info", "What computes parity.");
    let gpu = parity.gpu.as_deref().unwrap_or_default();
    let info = [("placement", &parity.placement[..]), ("kernel", &parity.kernel), ("gpu", gpu)];
    text.put(&labels(&info), 1);
    let problem = ("palisade_gpu_problem", "Whether a GPU is there that is not used.");
    text.one(Gauge, problem, truth(parity.problem.is_some()));
    let suspect = ("palisade_gpu_suspect", "Whether parity that the GPU computed may be wrong.");
    text.one(Gauge, suspect, truth(parity.gpu_suspect));
    text.one(Counter, ("palisade_gpu_jobs_total", "Jobs that the GPU did."), parity.gpu_jobs);
    let bytes = ("palisade_gpu_read_bytes_total", "Bytes that the GPU's jobs read.");
    text.one(Counter, bytes, parity.gpu_bytes);
    let undone = "Jobs that the GPU was given and that the CPU did in the end.";
    text.one(Counter, ("palisade_gpu_undone_jobs_total", undone), parity.gpu_undone);
    let checked = "Jobs that GPU and CPU both did, and that were compared.";
    text.one(Counter, ("palisade_gpu_checked_jobs_total", checked), parity.gpu_checked);
    let shared = "Bytes of I/O memory that the GPU reaches by itself.";
    text.one(Gauge, ("palisade_gpu_shared_bytes", shared), parity.gpu_shared_bytes);
    let kept = "Bytes kept from use, as a GPU that hung may write to them yet.";
    text.one(Gauge, ("palisade_gpu_kept_bytes", kept), parity.gpu_kept_bytes);
}

fn access(text: &mut Text, view: &View) {
    let accounts = ("palisade_accounts", "Accounts.");
    text.one(Gauge, accounts, view.access.accounts.len());
    text.one(Gauge, ("palisade_sessions", "Sessions."), view.access.sessions.len());
    let https = &view.https;
    let listeners = ("palisade_https_listeners", "Addresses on which HTTPS is served.");
    text.one(Gauge, listeners, https.listeners.len());
    let problem = "Whether HTTPS is not served as the configuration says.";
    // Those of a certificate's dates have a metric of their own.
    let dates = [&say::CERTIFICATE_ENDS, &say::CERTIFICATE_EARLY];
    let mut problems = https.problems.iter();
    let is_one = problems.any(|own| !dates.iter().any(|dated| own.what.is(dated)));
    text.one(Gauge, ("palisade_https_problem", problem), truth(is_one));
    if let Some(certificate) = &https.certificate {
        let until = "palisade_https_certificate_expiry_timestamp_seconds";
        let help = "Until when the certificate of HTTPS is good, in seconds since 1970.";
        text.one(Gauge, (until, help), certificate.not_after);
        let own = "Whether the daemon made the certificate of HTTPS, and renews it.";
        text.one(Gauge, ("palisade_https_certificate_own", own), truth(certificate.is_made));
    }
}

/// The names that Prometheus' own libraries give these.
fn process(text: &mut Text, process: &Process, since: u64) {
    let cpu = ("process_cpu_seconds_total", "Seconds of CPU time, of the user and of the system.");
    text.one(Counter, cpu, process.cpu_seconds);
    let resident = ("process_resident_memory_bytes", "Resident memory, in bytes.");
    text.one(Gauge, resident, process.resident_bytes);
    let virtual_ = ("process_virtual_memory_bytes", "Virtual memory, in bytes.");
    text.one(Gauge, virtual_, process.virtual_bytes);
    text.one(Gauge, ("process_open_fds", "Open files."), process.open_files);
    if let Some(most) = process.most_files {
        text.one(Gauge, ("process_max_fds", "Most open files."), most);
    }
    text.one(Gauge, ("process_threads", "Threads."), process.threads);
    let start = "When the process was started, in seconds since 1970.";
    text.one(Gauge, ("process_start_time_seconds", start), since);
}
