//! Makes a failure small: steps, sessions, cores and lanes are left out as long as the same
//! oracle still finds something.
//!
//! Each attempt runs in a process of its own, because an assertion of the engine ends a process.

use crate::scenario::{Cuts, Scenario};
use std::process::Command;
use std::time::{Duration, Instant};

/// How long shrinking may take.
const LIMIT: Duration = Duration::from_secs(90);

/// Runs this program again; its line if something was found.
fn attempt(seed: u64, cuts: &Cuts) -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let text = format!("--seed {seed}{cuts}");
    let output = Command::new(program).args(text.split(' ')).arg("--once").output();
    let output = output.ok()?;
    if output.status.code() != Some(1) {
        return None;
    }
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.lines().find(|l| l.starts_with("seed ")).map(str::to_owned)
}

/// The oracle that a line names.
fn oracle(line: &str) -> Option<&str> {
    line.split_once('[')?.1.split_once(']').map(|(name, _)| name)
}

/// The smallest cuts found under which the same oracle finds something, and what it says then.
pub fn shrink(seed: u64, line: &str) -> (Cuts, String) {
    let begun = Instant::now();
    let mut best = (Cuts::default(), line.to_owned());
    let wanted = oracle(line).map(str::to_owned);
    let better = |cuts: Cuts, best: &mut (Cuts, String)| {
        if begun.elapsed() > LIMIT {
            return false;
        }
        let Some(line) = attempt(seed, &cuts) else { return false };
        let same = oracle(&line).map(str::to_owned) == wanted;
        if same {
            *best = (cuts, line);
        }
        same
    };
    let sessions = Scenario::new(seed).sessions.len();
    for n in 1..sessions {
        if better(Cuts { sessions: Some(n), ..best.0.clone() }, &mut best) {
            break;
        }
    }
    better(Cuts { one_core: true, ..best.0.clone() }, &mut best);
    better(Cuts { one_lane: true, ..best.0.clone() }, &mut best);
    let scenario = Scenario::new(seed).reduced(&best.0);
    let steps = scenario.sessions.iter().flat_map(|s| &s.steps);
    let mut left: Vec<usize> = steps.map(|s| s.number).collect();
    let mut size = left.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < left.len() {
            let part: Vec<usize> = left[at..(at + size).min(left.len())].to_vec();
            let mut cuts = best.0.clone();
            cuts.without.extend(&part);
            cuts.without.sort_unstable();
            if better(cuts, &mut best) {
                left.retain(|n| !part.contains(n));
            } else {
                at += size;
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    if let Some(picture) = picture(&best.1) {
        better(Cuts { picture: Some(picture), ..best.0.clone() }, &mut best);
    }
    best
}

/// The picture that a line names.
fn picture(line: &str) -> Option<usize> {
    line.split_once("picture ")?.1.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let line = "seed 3 commit abc: [versions] picture 12 at border 7: wrong";
        assert_eq!((oracle(line), picture(line)), (Some("versions"), Some(12)));
    }
}
