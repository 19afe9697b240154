//! The kernel, a process, memory and the clock, as `/proc` and a few system calls tell of them.

use super::Proc;
use crate::facts::{Clock, Daemon, Kernel, Limit, Process, Room};
use control::config::Placement;

/// The kernel. A ring is set up, and given back, where the tree is this machine's own.
pub fn kernel(proc: &Proc<'_>) -> Kernel {
    let group = proc.text("sys/kernel/io_uring_group");
    Kernel {
        release: proc.text("sys/kernel/osrelease"),
        uring_disabled: proc.number("sys/kernel/io_uring_disabled"),
        // -1 is no group.
        uring_group: group.and_then(|group| group.parse().ok()),
        ring: proc.is_own().then(|| runtime::try_io_uring().map_err(|error| error.to_string())),
    }
}

/// The clock, and the latest moment that is known to have been.
pub fn clock(proc: &Proc<'_>, latest: Option<u64>) -> Clock {
    let is_kept = proc.is_own().then(|| runtime::is_clock_kept().ok()).flatten();
    // A recorded tree may tell it in a file of ours.
    let is_kept = is_kept.or_else(|| proc.number("clock").map(|kept| kept == 1));
    Clock { is_kept, latest }
}

/// Memory of the machine.
pub fn memory(proc: &Proc<'_>) -> Room {
    let text = proc.text("meminfo").unwrap_or_default();
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let number = line.trim_start_matches(':').split_whitespace().next()?;
        number.parse::<u64>().ok()?.checked_mul(1024)
    };
    Room { total: bytes("MemTotal"), available: bytes("MemAvailable") }
}

/// The daemon's process, or whoever asks.
pub fn process(proc: &Proc<'_>, daemon: &Daemon, placement: Placement) -> Process {
    let pid = proc.pid_of(daemon);
    let own = pid.map_or("self".to_owned(), |pid| pid.to_string());
    let status = proc.text(&format!("{own}/status")).unwrap_or_default();
    let limits = proc.text(&format!("{own}/limits")).unwrap_or_default();
    let line = |name: &str| {
        let mut found = status.lines().filter_map(|line| line.split_once(':'));
        found.find(|(own, _)| *own == name).map(|(_, value)| value.trim())
    };
    let groups = line("Groups").unwrap_or_default().split_whitespace();
    let gid = line("Gid").and_then(|line| line.split_whitespace().nth(1));
    let has_driver = || proc.at("driver/nvidia/version").exists();
    Process {
        is_daemon: pid.is_some(),
        user: line("Uid").and_then(|line| line.split_whitespace().nth(1)?.parse().ok()),
        groups: groups.chain(gid).filter_map(|group| group.parse().ok()).collect(),
        capabilities: line("CapEff").and_then(|bits| u64::from_str_radix(bits, 16).ok()),
        files: limit(&limits, "Max open files"),
        locked: limit(&limits, "Max locked memory"),
        may_use_gpu: match placement {
            Placement::Cpu => false,
            Placement::Gpu => true,
            Placement::Auto => has_driver(),
        },
    }
}

/// A line of proc_pid_limits(5).
fn limit(text: &str, name: &str) -> Option<Limit> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let mut numbers = line.split_whitespace().map(|word| match word {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    });
    Some(Limit { soft: numbers.next()??, hard: numbers.next()?? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Told;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory");
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        dir
    }

    const STATUS: &str = "Name:\tpalisade\nUid:\t0\t991\t0\t0\nGid:\t7\t8\t7\t7\nGroups:\t4 24 \n\
                          CapEff:\t0000000000204000\n";
    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit\n\
         Max open files            1024                 524288               files\n\
         Max locked memory         8388608              unlimited            bytes\n";

    #[test]
    fn a_process_is_read_from_its_files() {
        let other = STATUS.replace("991", "5");
        let dir = tree(&[
            ("self/status", &other),
            ("77/status", STATUS),
            ("77/limits", LIMITS),
            ("77/comm", "palisade\n"),
        ]);
        let proc = Proc(dir.path());
        let told = |pid| Daemon::Running(Box::new(Told { pid, ..Told::default() }));
        let daemon = process(&proc, &told(77), Placement::Cpu);
        assert!(daemon.is_daemon && !daemon.may_use_gpu);
        assert_eq!((daemon.user, daemon.groups), (Some(991), vec![4, 24, 8]));
        assert_eq!(daemon.capabilities, Some(0x20_4000));
        assert_eq!(daemon.files, Some(Limit { soft: 1024, hard: 524_288 }));
        assert_eq!(daemon.locked.map(|limit| limit.hard), Some(u64::MAX));
        // Without the daemon's process here it is who asks.
        for absent in [Daemon::Absent, told(78)] {
            let own = process(&proc, &absent, Placement::Gpu);
            assert!(!own.is_daemon && own.may_use_gpu && own.files.is_none());
            assert_eq!(own.user, Some(5));
        }
    }

    #[test]
    fn the_kernel_memory_and_the_clock_are_read() {
        let dir = tree(&[
            ("sys/kernel/osrelease", "6.12.1-amd64\n"),
            ("sys/kernel/io_uring_disabled", "1\n"),
            ("sys/kernel/io_uring_group", "-1\n"),
            ("meminfo", "MemTotal:       1024 kB\nMemFree: 1 kB\nMemAvailable:    512 kB\n"),
            ("clock", "0\n"),
        ]);
        let proc = Proc(dir.path());
        let found = kernel(&proc);
        assert_eq!(found.release.as_deref(), Some("6.12.1-amd64"));
        assert_eq!((found.uring_disabled, found.uring_group, found.ring), (Some(1), None, None));
        let room = memory(&proc);
        assert_eq!((room.total, room.available), (Some(1 << 20), Some(1 << 19)));
        assert_eq!(clock(&proc, Some(7)), Clock { is_kept: Some(false), latest: Some(7) });
        let none = tree(&[]);
        assert_eq!(kernel(&Proc(none.path())), Kernel::default());
        assert_eq!(memory(&Proc(none.path())), Room::default());
        assert_eq!(clock(&Proc(none.path()), None), Clock::default());
    }
}
