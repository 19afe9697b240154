//! Seeds that once found something; they are replayed before anything else.
//!
//! `crates/trials/regressions` has one a line: the seed, what is cut from it, and behind `#` what
//! it found.

use crate::scenario::Cuts;

const TEXT: &str = include_str!("../regressions");

/// All of them.
///
/// # Panics
/// If a line is not understood.
pub fn all() -> Vec<(u64, Cuts)> {
    let lines = TEXT.lines().map(|l| l.split('#').next().unwrap_or("").trim());
    lines.filter(|l| !l.is_empty()).map(|l| read(l).expect("a seed and its cuts")).collect()
}

fn read(line: &str) -> Option<(u64, Cuts)> {
    let mut words = line.split_whitespace();
    let seed = words.next()?.parse().ok()?;
    let mut cuts = Cuts::default();
    while let Some(word) = words.next() {
        match word {
            "--without" => {
                let list = words.next()?.split(',').map(|n| n.parse().ok());
                cuts.without = list.collect::<Option<_>>()?;
            }
            "--one-core" => cuts.one_core = true,
            "--one-lane" => cuts.one_lane = true,
            "--sessions" => cuts.sessions = Some(words.next()?.parse().ok()?),
            "--picture" => cuts.picture = Some(words.next()?.parse().ok()?),
            _ => return None,
        }
    }
    Some((seed, cuts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use layout::Level;

    #[test]
    fn cuts_are_written_and_read_alike() {
        let cuts = Cuts {
            without: vec![1, 5],
            one_core: true,
            one_lane: true,
            sessions: Some(2),
            picture: Some(7),
        };
        assert_eq!(read(&format!("12{cuts}")), Some((12, cuts)));
        assert_eq!(read("12 --nothing"), None);
        all();
    }

    #[test]
    fn one_has_raid_6_of_many_drives() {
        let many = |s: Scenario| s.level == Level::Raid6 && s.width > 32;
        assert!(all().into_iter().any(|(seed, _)| many(Scenario::new(seed))));
    }
}
