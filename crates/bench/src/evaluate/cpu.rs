//! What the machine's CPUs do, by `/proc/stat` (proc_stat(5)).

/// Ticks of all CPUs together, since the machine started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ticks {
    /// In programs, in the kernel, and in interrupts.
    pub busy: u64,
    /// All of them.
    pub all: u64,
}

/// The fields of the first line that are neither idle nor waiting for I/O: user, nice, system, irq,
/// softirq. What the hypervisor gave to others (steal) is nobody's work here; guests' time is in
/// user's.
const BUSY: [usize; 5] = [0, 1, 2, 5, 6];
/// The fields that add up to all time.
const ALL: usize = 8;

impl Ticks {
    /// Now; nothing where the system does not tell.
    pub fn now() -> Self {
        read(&std::fs::read_to_string("/proc/stat").unwrap_or_default()).unwrap_or_default()
    }

    /// The percentage of all CPUs' time since `before` in which they were busy.
    pub fn percent_since(&self, before: &Self) -> f64 {
        let (busy, all) =
            (self.busy.saturating_sub(before.busy), self.all.saturating_sub(before.all));
        if all == 0 { 0.0 } else { busy as f64 * 100.0 / all as f64 }
    }
}

fn read(stat: &str) -> Option<Ticks> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line.split_whitespace().map_while(|own| own.parse().ok()).collect();
    let busy = BUSY.iter().filter_map(|at| fields.get(*at)).sum();
    Some(Ticks { busy, all: fields.iter().take(ALL).sum() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_user_system_and_interrupts() {
        let stat = "cpu  100 20 30 400 50 6 7 8 90 10\ncpu0 1 2 3\n";
        assert_eq!(read(stat), Some(Ticks { busy: 163, all: 621 }));
        let later = "cpu  150 20 80 500 50 6 7 8 90 10\n";
        let percent = read(later).and_then(|own| Some(own.percent_since(&read(stat)?)));
        assert_eq!(percent, Some(50.0));
        assert_eq!(read("intr 5\n"), None);
        assert!(Ticks::now().all > 0);
    }
}
