//! Configuration, daemon, kernel, limits and capabilities.

use super::as_root;
use crate::Said;
use crate::facts::{Daemon, Facts, Process};
use units::{MIB, format_size};

/// The oldest kernel whose io_uring has what cores need.
const KERNEL: (u32, u32) = (5, 11);

/// Capabilities by their bits (capabilities(7)).
const NET_BIND_SERVICE: u32 = 10;
const IPC_LOCK: u32 = 14;
const SYS_ADMIN: u32 = 21;
const SYS_RESOURCE: u32 = 24;

/// Connections that a core serves, over NVMe/TCP and NBD.
const CONNECTIONS: u64 = 2048 + 128;

/// Files that are open besides: clients of the socket and of HTTPS, what each core and drive has.
const OTHER_FILES: u64 = 512 + 256;

/// Bytes that a core allocates at start, for payloads and one array's strips.
const OF_A_CORE: u64 = 136 * MIB;

/// Bytes that everything else takes.
const OF_ALL: u64 = 64 * MIB;

/// Below it ports are bound with a capability only, unless the kernel says otherwise.
const FREE_PORT: u16 = 1024;

/// Whose limits are told.
fn whose(process: &Process) -> &'static str {
    if process.is_daemon { "the daemon" } else { "this shell" }
}

/// What to do where the unit is to say more.
fn unit(line: &str) -> String {
    format!(
        "run: systemctl edit palisade, and write below [Service]: {line}; then: systemctl restart \
         palisade"
    )
}

/// How a daemon gets a capability.
fn granted(capability: &str) -> String {
    let lines = format!(
        "AmbientCapabilities=CAP_{capability}, and on a line of its own \
         CapabilityBoundingSet=CAP_{capability}"
    );
    format!("{}; in a container: docker run --cap-add {capability}", unit(&lines))
}

/// What is said where the daemon does not run and an ordinary user asks.
fn nobody_knows(facts: &Facts, what: &str) -> Vec<Said> {
    if is_hidden(facts) {
        return Vec::new();
    }
    let why = "no daemon runs, and who asks is not root: what the daemon would have is not known";
    vec![Said::unknown(what, why, format!("start the daemon, or run: {}", as_root(facts)))]
}

/// Whether what is known of the process says anything of a daemon.
fn is_telling(facts: &Facts) -> bool {
    facts.process.is_daemon || facts.process.user == Some(0) && !is_hidden(facts)
}

/// Whether a daemon runs whose process is not known: who asks has other limits and capabilities,
/// and the check of the daemon says once that it could not be asked.
fn is_hidden(facts: &Facts) -> bool {
    facts.daemon.is_silent() && !facts.process.is_daemon
}

fn has(process: &Process, capability: u32) -> Option<bool> {
    process.capabilities.map(|bits| bits >> capability & 1 == 1)
}

pub fn config(facts: &Facts) -> Vec<Said> {
    let file = facts.config.file.display();
    if let Some(error) = &facts.config.unread {
        return vec![Said::critical(
            format!("{file} can't be read: {error}"),
            "the daemon does not start without its configuration",
            format!(
                "write the file, make it readable, or name another: palisade doctor --config FILE; \
                 then: palisade check-config {file}"
            ),
        )];
    }
    let wrong = facts.config.mistakes.iter().map(|mistake| {
        Said::critical(
            format!("{file}: {mistake}"),
            "the daemon does not start with a mistake in the file, and takes nothing of it when it \
             is told to read it again",
            format!("correct it, then run: palisade check-config {file}"),
        )
    });
    let found: Vec<_> = wrong.collect();
    if found.is_empty() { vec![Said::ok(format!("{file} has no mistakes"))] } else { found }
}

pub fn daemon(facts: &Facts) -> Vec<Said> {
    let socket = facts.socket.path.display();
    let about = format!("{socket}: ");
    vec![match &facts.daemon {
        Daemon::Running(told) => {
            Said::ok(format!("version {} runs as process {}", told.version, told.pid))
        }
        Daemon::Absent => Said::ok(format!("none answers at {socket}; the machine is looked at")),
        Daemon::Silent { why, is_refusal: true } => Said::unknown(
            format!(
                "one is at {socket}, and does not answer this user: {}",
                why.trim_start_matches(&about).trim_end_matches('.')
            ),
            "what only it knows is not looked at: its limits, drives and exports",
            match facts.config.says.access {
                None => {
                    format!("run: {}; or ask as a member of the group palisade", as_root(facts))
                }
                Some(_) => "ask as a user whom `[access]` of the configuration names".to_owned(),
            },
        ),
        Daemon::Silent { why, is_refusal: false } => Said::warning(
            format!("one is at {socket}, and can't be asked: {why}"),
            "it may stand still: commands and the console get no answer either; what only it \
             knows is not looked at",
            "see what it does: systemctl status palisade; and what it said: journalctl -u palisade",
        ),
    }]
}

/// Major and minor number of a release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

pub fn kernel(facts: &Facts) -> Vec<Said> {
    let release = facts.kernel.release.as_deref();
    let (Some(release), Some(version)) = (release, release.and_then(version)) else {
        let why = "the kernel does not say its release";
        return vec![Said::unknown("the kernel's release is not known", why, "run: uname -r")];
    };
    if version >= KERNEL {
        return vec![Said::ok(format!("Linux {release}"))];
    }
    vec![Said::warning(
        format!("Linux {release} is older than {}.{}", KERNEL.0, KERNEL.1),
        "its io_uring lacks what cores need: requests are served by blocking threads, slower",
        "boot a newer kernel; on Debian: apt install linux-image-amd64",
    )]
}

pub fn io_uring(facts: &Facts) -> Vec<Said> {
    const WHY: &str = "requests are served by blocking threads, slower";
    let (kernel, process) = (&facts.kernel, &facts.process);
    let is_in_group = kernel.uring_group.is_some_and(|group| process.groups.contains(&group));
    let is_admin = has(process, SYS_ADMIN) == Some(true);
    let forbids = match kernel.uring_disabled {
        Some(1) => is_telling(facts) && !is_admin && !is_in_group,
        Some(number) => number > 1,
        None => false,
    };
    if let Some(number) = kernel.uring_disabled.filter(|_| forbids) {
        return vec![Said::warning(
            format!("io_uring is switched off (kernel.io_uring_disabled = {number})"),
            WHY,
            "run: sysctl -w kernel.io_uring_disabled=0; and to keep it: echo \
             kernel.io_uring_disabled=0 > /etc/sysctl.d/60-palisade.conf",
        )];
    }
    match &kernel.ring {
        Some(Ok(())) => vec![Said::ok("io_uring is there")],
        // What this process may not, the daemon may.
        Some(Err(_)) if kernel.uring_disabled == Some(1) && !process.is_daemon && !is_admin => {
            nobody_knows(facts, "io_uring is for some users only (kernel.io_uring_disabled = 1)")
        }
        Some(Err(error)) => vec![Said::warning(
            format!("no io_uring can be set up: {error}"),
            WHY,
            "in a container let its filter of system calls pass io_uring_setup, io_uring_enter and \
             io_uring_register, as with: docker run --security-opt seccomp=FILE; else boot a \
             kernel that has CONFIG_IO_URING",
        )],
        None => vec![Said::unknown(
            "io_uring is not switched off; whether it works is not known",
            "only the kernel of this machine can be asked, by a system call",
            "run there: palisade doctor",
        )],
    }
}

pub fn files(facts: &Facts) -> Vec<Said> {
    let process = &facts.process;
    let Some(limit) = process.files.filter(|_| !is_hidden(facts)) else { return Vec::new() };
    // The daemon raises the one to the other.
    let most = limit.hard;
    let drives = facts.drives.iter().filter(|drive| drive.is_listed).count() as u64;
    let needed = u64::from(facts.config.says.cores) * CONNECTIONS + OTHER_FILES + 4 * drives;
    let whose = whose(process);
    if most >= needed {
        let most = if most == u64::MAX { "any number of".to_owned() } else { most.to_string() };
        return vec![Said::ok(format!("{whose} may open {most} files"))];
    }
    if !is_telling(facts) {
        return nobody_knows(facts, "how many files the daemon may open is not known");
    }
    let (has, most) = (most, needed.next_power_of_two());
    vec![Said::warning(
        format!("{whose} may open {has} files, and may need {needed}"),
        "hosts and clients beyond that are turned away",
        format!("{}; in a shell: ulimit -Hn {most}", unit(&format!("LimitNOFILE={most}"))),
    )]
}

pub fn memory_lock(facts: &Facts) -> Vec<Said> {
    const WHY: &str = "when memory is short, programs on this machine that write to volumes may \
                       hang: the kernel waits for the daemon, whose own memory is to be read back";
    let mend = || unit("LimitMEMLOCK=infinity");
    let process = &facts.process;
    if let Some(told) = facts.daemon.told() {
        let memory = &told.memory;
        return vec![match (memory.locked, memory.left_to_gpu) {
            (true, _) => Said::ok("the daemon's memory is locked"),
            (_, true) => Said::ok("memory is left unlocked, as a GPU may be used"),
            _ => Said::warning("the daemon's memory is not locked", WHY, mend()),
        }];
    }
    if is_hidden(facts) {
        return Vec::new();
    }
    if process.may_use_gpu {
        return vec![Said::ok("memory is left unlocked, as a GPU may be used")];
    }
    let (may, limit) = (has(process, IPC_LOCK), process.locked);
    let (Some(may), Some(limit)) = (may, limit) else { return Vec::new() };
    if may || limit.hard == u64::MAX {
        return vec![Said::ok("memory may be locked without limit")];
    }
    if !is_telling(facts) {
        return nobody_knows(facts, "whether the daemon may lock its memory is not known");
    }
    vec![Said::warning(format!("only {} may be locked", format_size(limit.hard)), WHY, mend())]
}

pub fn memory(facts: &Facts) -> Vec<Said> {
    let cores = u64::from(facts.config.says.cores);
    let needed = cores * OF_A_CORE + OF_ALL;
    let (Some(total), Some(available)) = (facts.memory.total, facts.memory.available) else {
        return Vec::new();
    };
    // That of a daemon that runs is taken already.
    let (room, word) = match facts.daemon {
        Daemon::Absent => (available, "free"),
        _ => (total, "in all"),
    };
    if room >= needed {
        return vec![Said::ok(format!("{} of memory {word}", round(room)))];
    }
    vec![Said::critical(
        format!("{} of memory {word}, and `cores = {cores}` takes {}", round(room), round(needed)),
        "all memory of the data path is allocated and locked at start: the start fails, or other \
         programs are killed for it",
        format!("write a smaller `cores` in {}, or add memory", facts.config.file.display()),
    )]
}

/// A size to a whole MiB.
fn round(bytes: u64) -> String {
    format!("{} MiB", bytes / MIB)
}

pub fn sys_admin(facts: &Facts) -> Vec<Said> {
    use drives::sysfs::Kind;
    let is_nvme =
        |drive: &&crate::facts::Drive| drive.device.as_ref().is_some_and(|d| d.kind == Kind::Nvme);
    let mut listed = facts.drives.iter().filter(|drive| drive.is_listed);
    if is_hidden(facts) || !listed.any(|drive| is_nvme(&drive)) {
        return Vec::new();
    }
    match has(&facts.process, SYS_ADMIN) {
        None => Vec::new(),
        Some(true) => {
            let whose = whose(&facts.process);
            vec![Said::ok(format!("{whose} may ask drives how they are (CAP_SYS_ADMIN)"))]
        }
        Some(false) if !is_telling(facts) => {
            nobody_knows(facts, "whether the daemon may ask drives how they are is not known")
        }
        Some(false) => vec![Said::warning(
            format!("{} lacks CAP_SYS_ADMIN", whose(&facts.process)),
            "NVMe drives tell only who has it how they are: wear, spare and errors are not known, \
             and nobody is warned",
            granted("SYS_ADMIN"),
        )],
    }
}

pub fn flusher(facts: &Facts) -> Vec<Said> {
    let told = facts.daemon.told().map(|told| told.memory.io_flusher);
    let may = told.or_else(|| has(&facts.process, SYS_RESOURCE));
    let whose = if told.is_some() { "the daemon" } else { whose(&facts.process) };
    match may.filter(|_| !is_hidden(facts)) {
        None => Vec::new(),
        Some(true) => vec![Said::ok(format!(
            "{whose} waits for no I/O when memory is short (CAP_SYS_RESOURCE)"
        ))],
        Some(false) if told.is_none() && !is_telling(facts) => {
            nobody_knows(facts, "whether the daemon has CAP_SYS_RESOURCE is not known")
        }
        Some(false) => vec![Said::warning(
            format!("{whose} lacks CAP_SYS_RESOURCE"),
            "when memory is short, programs on this machine that write to volumes may hang: the \
             daemon waits for I/O that is to go through it",
            granted("SYS_RESOURCE"),
        )],
    }
}

pub fn net_bind(facts: &Facts) -> Vec<Said> {
    let first = facts.network.first_free_port.unwrap_or(FREE_PORT);
    let mut listeners = facts.network.listeners.iter().filter(|_| !is_hidden(facts));
    let low = listeners.find(|own| own.address.port() < first);
    let (Some(low), Some(may)) = (low, has(&facts.process, NET_BIND_SERVICE)) else {
        return Vec::new();
    };
    if may {
        let whose = whose(&facts.process);
        return vec![Said::ok(format!("{whose} may bind port {}", low.address.port()))];
    }
    if !is_telling(facts) {
        return nobody_knows(facts, "whether the daemon may bind its ports is not known");
    }
    vec![Said::critical(
        format!(
            "port {} takes CAP_NET_BIND_SERVICE, which {} lacks",
            low.address.port(),
            whose(&facts.process)
        ),
        "the daemon can't listen there",
        format!("choose ports from {first} on; or {}", granted("NET_BIND_SERVICE")),
    )]
}
