//! Every case by every kernel, compared byte by byte with the reference.

use super::vectors::{Case, Made};
use crate::error::BenchError;
use core::fmt;
use parity_gpu::{Device, Kind, Room, Track};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Room for the largest case, the widest code's.
const ROOM: usize = 4 << 20;
/// How long one case may take on a device.
const PATIENCE: Duration = Duration::from_secs(10);
/// Cases that are named when they are wrong; more are counted.
const NAMED: usize = 10;

/// How the cases of one kernel, or of a device's, ended.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Check {
    /// Cases that were done.
    pub done: usize,
    /// Cases that are not for it, as a GPU takes multiples of 16 bytes only.
    pub unfit: usize,
    /// Cases that time was too short for.
    pub left: usize,
    /// Cases that came out wrong.
    pub wrong: usize,
    /// The first of these.
    pub named: Vec<String>,
}

impl Check {
    fn count(&mut self, case: &Case, right: bool) {
        self.done += 1;
        if !right {
            self.wrong += 1;
            if self.named.len() < NAMED {
                self.named.push(case.line().to_owned());
            }
        }
    }

    /// What is wrong, a text each.
    pub fn problems(&self, who: &str) -> Vec<String> {
        let mut problems: Vec<String> =
            self.named.iter().map(|case| format!("{who}: wrong result: {case}")).collect();
        if self.left > 0 {
            problems.push(format!("{who}: no time for {} cases", self.left));
        }
        problems
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cases, {} wrong", self.done, self.wrong)?;
        if self.left > 0 { write!(f, ", {} left", self.left) } else { Ok(()) }
    }
}

/// Every case by this process's kernel of the processor.
pub fn check_cpu(cases: &[Case], budget: Duration) -> Check {
    let (start, mut check) = (Instant::now(), Check::default());
    for case in cases {
        if start.elapsed() > budget {
            check.left += 1;
            continue;
        }
        let made = case.made();
        let right = case.is_as_written(&made) && made.iter().all(|made| cpu_is_right(case, made));
        check.count(case, right);
    }
    check
}

fn cpu_is_right(case: &Case, made: &Made) -> bool {
    let mut outputs = made.before.clone();
    let answer = case.operation().compute_in(&made.inputs, &mut outputs);
    outputs == made.outputs && answer == made.answer
}

/// Every case that a GPU takes, all lengths of a case in one batch; and the kernels that ran.
///
/// # Errors
/// If the device fails or hangs.
pub fn check_gpu(
    cases: &[Case],
    device: &mut dyn Device,
    budget: Duration,
) -> Result<(Check, Vec<Kind>), BenchError> {
    let (start, mut check, mut kinds) = (Instant::now(), Check::default(), Vec::new());
    let room = Room::new(device, ROOM, ROOM)?;
    for case in cases {
        if start.elapsed() > budget {
            check.left += 1;
            continue;
        }
        let lens = case.lens().iter().copied();
        let track = Track::new(device, room, case.operation(), lens);
        let Some(mut track) = track.filter(|track| track.jobs() == case.lens().len()) else {
            check.unfit += 1;
            continue;
        };
        let made = case.made();
        let right = case.is_as_written(&made) && gpu_is_right(device, room, &mut track, &made)?;
        check.count(case, right);
        kinds.push(track.kind());
    }
    kinds.sort();
    kinds.dedup();
    Ok((check, kinds))
}

fn gpu_is_right(
    device: &mut dyn Device,
    room: Room,
    track: &mut Track,
    made: &[Made],
) -> Result<bool, BenchError> {
    for (job, made) in made.iter().enumerate() {
        for (input, bytes) in made.inputs.iter().enumerate() {
            track.load(device, job, input, bytes);
        }
        for (output, bytes) in made.before.iter().enumerate() {
            track.load_output(device, job, output, bytes);
        }
    }
    track.up(device)?;
    track.compute(device)?;
    track.down(device)?;
    device.mark(room.stream())?;
    let start = Instant::now();
    while !device.passed(room.stream())? {
        if start.elapsed() > PATIENCE {
            return Err(BenchError::GpuHung(PATIENCE.as_secs()));
        }
        std::thread::yield_now();
    }
    let is_right = |(job, made): (usize, &Made)| {
        let answer = track.answer(device, job);
        track.outputs(device, job) == made.outputs && answer.as_ref() == Some(&made.answer)
    };
    Ok(made.iter().enumerate().all(is_right))
}
