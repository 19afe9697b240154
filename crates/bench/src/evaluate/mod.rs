//! What an evaluator needs before trusting an array: the procedures of the field's reports, on this
//! machine's drives or on paced ones.
//!
//! - [`options`]: what is asked for. [`shelf`]: the drives; nothing on them goes that is not named.
//! - [`yard`]: cores, and an array on them. [`course`]: one workload in one state, until it is
//!   steady and then in instances. [`cpu`]: the machine's CPU time.
//! - [`figures`]: results and their aspects. [`setup`]: what was measured, as a table.
//!   [`published`]: what documents say, from one file.
//! - [`spec_sheet`], [`sweep`]: the procedures of `palisade bench spec-sheet` and `sweep`.
//!
//! Invariants
//! - What it makes on drives is wiped in the end, however that comes, unless the process is killed.
//! - A figure is of requests that were done while it counted, and whose content was looked at.

pub mod course;
pub mod cpu;
pub mod figures;
pub mod options;
pub mod published;
pub mod setup;
pub mod shelf;
pub mod spec_sheet;
pub mod sweep;
pub mod yard;

use crate::error::BenchError;
use crate::generated::Span;
use crate::scale::Scale;
use layout::Level;
use options::{Options, Source, workloads};
use pace::bound::Group;
use shelf::Shelf;
use std::time::Duration;
use units::MIB;
use workload::Shape;
use yard::Yard;

/// How long cores are watched to find a scale.
const WATCH: Duration = Duration::from_millis(200);

/// A group of an array of this level over so many drives.
pub fn group(level: Level, drives: usize) -> Group {
    let drives = drives as u32;
    let (data, parities) = match level {
        Level::Jbod | Level::Raid0 => (drives, 0),
        Level::Raid1 => (1, drives - 1),
        Level::Raid5 => (drives - 1, 1),
        Level::Raid6 => (drives - 2, 2),
        Level::Raid10 => (1, 1),
    };
    Group { data, parities }
}

/// How many drives' bytes an array has room for.
///
/// # Errors
/// `Refused` if the level can't have so few drives.
fn data_strips(options: &Options) -> Result<usize, BenchError> {
    let count = match &options.source {
        Source::Drives(paths) => paths.len(),
        Source::Model { count, .. } | Source::Memory { count, .. } => *count,
        Source::Device(_) => return Ok(1),
    };
    let least = match options.level {
        Level::Jbod | Level::Raid0 | Level::Raid1 => 2,
        Level::Raid5 => 3,
        Level::Raid6 | Level::Raid10 => 4,
    };
    if count < least {
        let level = options.level;
        let problem = format!("level {level} takes at least {least} drives, not {count}");
        return Err(BenchError::Refused(problem));
    }
    let group = group(options.level, count);
    let width = (group.data + group.parities) as usize;
    Ok(count / width * group.data as usize)
}

/// Opens or makes the drives.
fn shelf_for(options: &Options, data: usize, progress: &dyn Fn(&str)) -> Result<Shelf, BenchError> {
    let Source::Model { model, count, .. } = options.source else {
        return Shelf::open(options, data, |_| Ok(0.0));
    };
    // Small drives are as busy as large ones.
    let busy = |slower: u32| -> Result<f64, BenchError> {
        progress(&format!("watching the cores at the scale {}", Scale::Part(slower)));
        let shelf = Shelf::paced(model, slower, count, 16 * MIB);
        let yard = Yard::bare(options, &shelf)?;
        let (aim, area) = (yard.aim(workload::target::TURN), 4 * MIB * count as u64);
        yard.rig().fill(&aim, area)?;
        let mut most = 0.0f64;
        for own in workloads(options.mix).iter().filter(|own| !own.is_sequential()) {
            let shape = Shape {
                jobs: own.jobs,
                ..Shape::one(own.reads, own.order, own.bytes, own.depth, area)
            };
            most = most.max(yard.rig().generate(&aim, shape, Span::of(WATCH), 1)?.busy());
        }
        Ok(most)
    };
    Shelf::open(options, data, busy)
}

#[cfg(test)]
mod tests;
