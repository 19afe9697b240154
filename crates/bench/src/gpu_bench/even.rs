//! The break-even size of a job: where a device begins to be worth its way.

use super::GpuBench;
use super::cores::Cores;
use super::stage::{Stage, Times, Wait};
use super::works;
use crate::error::BenchError;
use crate::stats::{Sample, Spread};

/// Data strips of the job.
const DATA: usize = 8;
/// Bytes of the smallest strip.
const LEAST: usize = 4 << 10;

/// What was found; without a size, the reason.
pub struct Even {
    /// By wall-clock time.
    pub time: Result<Spread, String>,
    /// By the processor's time.
    pub cpu: Result<Spread, String>,
}

/// One size in one round.
#[derive(Clone, Copy)]
struct Point {
    bytes: usize,
    /// Whether the device's time is below the core's.
    sooner: bool,
    /// Whether the processor's time for the device is below the core's.
    cheaper: bool,
}

/// Measures all sizes in each round.
///
/// # Errors
/// If the device is in trouble or computes anything wrong.
pub fn measure(
    stage: &mut Stage,
    cores: &mut Cores,
    options: &GpuBench,
) -> Result<Even, BenchError> {
    let most = options.lane_bytes.min(options.core_bytes);
    let sizes: Vec<usize> = core::iter::successors(Some(LEAST), |strip| Some(strip * 2))
        .take_while(|strip| strip * DATA <= most)
        .collect();
    let mut rounds = Vec::new();
    for _ in 0..options.rounds.min(5) {
        let mut points = Vec::new();
        for &strip in &sizes {
            points.push(point(stage, cores, options, strip)?);
        }
        rounds.push(points);
    }
    let time = spread(rounds.iter().map(|points| smallest(points, |point| point.sooner)), most);
    let cpu = spread(rounds.iter().map(|points| smallest(points, |point| point.cheaper)), most);
    Ok(Even { time, cpu })
}

fn point(
    stage: &mut Stage,
    cores: &mut Cores,
    options: &GpuBench,
    strip: usize,
) -> Result<Point, BenchError> {
    let work = works::pq(strip);
    let mut track = stage.single(&work)?;
    let (mut looking, mut sleeping) = (Times::default(), Times::default());
    let span = options.span / 2;
    let here = cores.one(&work, span);
    let wall = stage.one_by_one(&mut track, Wait::Looking, &mut looking, span)?;
    let spent = stage.one_by_one(&mut track, Wait::Sleeping, &mut sleeping, span)?;
    let seconds = |sample: &Sample| 1.0 / sample.rate();
    Ok(Point {
        bytes: strip * DATA,
        sooner: seconds(&wall) < seconds(&here),
        cheaper: spent.cpu_micros() < here.cpu_micros(),
    })
}

/// The smallest size at which, and above which, `better` holds.
fn smallest(points: &[Point], better: impl Fn(&Point) -> bool) -> Option<usize> {
    points.iter().rev().take_while(|point| better(point)).last().map(|point| point.bytes)
}

fn spread(
    found: impl Iterator<Item = Option<usize>> + Clone,
    most: usize,
) -> Result<Spread, String> {
    let (rounds, none) = (found.clone().count(), found.clone().filter(Option::is_none).count());
    let sizes: Option<Vec<f64>> = found.map(|size| size.map(|bytes| bytes as f64)).collect();
    let most = units::format_size(most as u64);
    sizes.and_then(Spread::of).ok_or_else(|| {
        format!("no job of up to {most} was better on the device in {none} of {rounds} rounds")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_counts_only_with_all_above_it() {
        let point = |bytes, sooner| Point { bytes, sooner, cheaper: false };
        let points = [point(1, true), point(2, false), point(4, true), point(8, true)];
        assert_eq!(smallest(&points, |point| point.sooner), Some(4));
        assert_eq!(smallest(&points, |point| point.cheaper), None);
        let found = [Some(4), Some(8), Some(4)];
        let sizes = spread(found.into_iter(), 8).unwrap();
        assert_eq!((sizes.median, sizes.low, sizes.high), (4.0, 4.0, 8.0));
        assert!(spread([Some(4), None].into_iter(), 8).unwrap_err().ends_with("1 of 2 rounds"));
    }
}
