//! CPU time of a process and of all that it has begun, also of what has ended since.
//!
//! A process says its own time, and that of children that have ended and were waited for, with
//! theirs (proc_pid_stat(5)): so the sum over a process and those below it only grows. What the
//! kernel does in threads of its own for them, such as those of a loop device, counts nowhere.

use std::collections::BTreeMap;
use std::time::Duration;

/// A process.
struct Stat {
    id: u32,
    parent: u32,
    name: String,
    /// Ticks of its own, and of children that have ended.
    own: u64,
    ended: u64,
}

impl Stat {
    /// A line of `/proc/PID/stat`. The name, in brackets, may hold anything.
    fn parse(text: &str) -> Option<Self> {
        let (before, fields) = text.rsplit_once(')')?;
        let (id, name) = before.split_once('(')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Self {
            id: id.trim().parse().ok()?,
            parent: fields.get(1)?.parse().ok()?,
            name: name.to_owned(),
            own: number(11)? + number(12)?,
            ended: number(13)? + number(14)?,
        })
    }

    /// All processes of this machine.
    fn all() -> Vec<Self> {
        let read = |process: std::fs::DirEntry| {
            Self::parse(&std::fs::read_to_string(process.path().join("stat")).ok()?)
        };
        std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(read).collect()
    }
}

/// A process with those below it: itself first.
pub struct Tree(Vec<Stat>);

/// CPU time that several have taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shares {
    /// The process itself.
    pub own: Duration,
    /// Children of it that have ended.
    pub ended: Duration,
    /// Those that are there.
    pub below: Duration,
}

impl Shares {
    /// All of it.
    pub fn sum(self) -> Duration {
        self.own + self.ended + self.below
    }

    /// What it is more than before.
    pub fn since(self, before: Self) -> Self {
        Self {
            own: self.own.saturating_sub(before.own),
            ended: self.ended.saturating_sub(before.ended),
            below: self.below.saturating_sub(before.below),
        }
    }
}

impl Tree {
    /// Of this process, as it is now.
    pub fn of(root: u32) -> Self {
        Self::within(Stat::all(), root)
    }

    fn within(mut others: Vec<Stat>, root: u32) -> Self {
        let mut own: Vec<Stat> = others.extract_if(.., |one| one.id == root).collect();
        let mut from = 0;
        while from < own.len() {
            let parent = own[from].id;
            own.extend(others.extract_if(.., |one| one.parent == parent));
            from += 1;
        }
        Self(own)
    }

    /// Its processes of this name that none of that name has begun.
    pub fn named(&self, name: &str) -> Vec<u32> {
        let is_of = |own: &Stat| self.0.iter().any(|one| one.id == own.parent && one.name == name);
        let heads = self.0.iter().filter(|own| own.name == name && !is_of(own));
        heads.map(|own| own.id).collect()
    }

    /// What they have taken so far.
    pub fn shares(&self) -> Shares {
        let Some((root, below)) = self.0.split_first() else { return Shares::default() };
        let below = below.iter().map(|one| one.own + one.ended).sum();
        Shares { own: time(root.own), ended: time(root.ended), below: time(below) }
    }

    /// The same of those below it by their names.
    pub fn by_name(&self) -> BTreeMap<String, Duration> {
        let mut all = BTreeMap::new();
        for one in self.0.iter().skip(1) {
            *all.entry(one.name.clone()).or_default() += time(one.own + one.ended);
        }
        all
    }
}

/// What processes have taken so far, each with those below it.
pub fn cpu(roots: &[u32]) -> Duration {
    roots.iter().map(|root| Tree::of(*root).shares().sum()).sum()
}

fn time(ticks: u64) -> Duration {
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_counts_with_all_that_it_has_begun() {
        let stat = |id: u32, parent: u32, name: &str, own: u64, ended: u64| {
            let line = format!("{id} ({name}) S {parent} 0 0 0 0 0 0 0 0 0 {own} 0 {ended} 0 20 0");
            Stat::parse(&line).expect("a line")
        };
        let all = || {
            vec![
                stat(9, 4, "smbd) (x", 16, 32),
                stat(1, 0, "init", 1000, 1000),
                stat(3, 1, "services", 1, 2),
                stat(4, 3, "smbd", 4, 8),
                stat(5, 4, "smbd", 64, 0),
                stat(6, 1, "smbd", 1000, 0),
            ]
        };
        let tree = Tree::within(all(), 3);
        let Shares { own, ended, below } = tree.shares();
        assert_eq!([own, ended, below], [1, 2, 124].map(time));
        assert_eq!(tree.shares().sum(), time(127));
        assert_eq!(tree.named("smbd"), [4]);
        assert_eq!(tree.by_name()["smbd"], time(76));
        assert_eq!(Tree::within(all(), 77).shares(), Shares::default());
    }

    #[test]
    fn this_process_is_found() {
        let own = Tree::of(std::process::id());
        assert_eq!(own.0[0].id, std::process::id());
    }
}
