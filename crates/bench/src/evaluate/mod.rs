//! What an evaluator needs before trusting an array: the procedures of the field's reports, on this
//! machine's drives or on paced ones.
//!
//! - [`options`]: what is asked for. [`shelf`]: the drives; nothing on them goes that is not named.
//! - [`yard`]: cores, and an array on them. [`course`]: one workload in one state, until it is
//!   steady and then in instances. [`cpu`]: the machine's CPU time.
//! - [`figures`]: results and their aspects; `judge`: what they are compared with. [`setup`]: what
//!   is measured, and in which order, as tables. [`published`]: what documents say, from one file.
//! - `states`: those of an array that end by themselves. `peer`: another product's array beside
//!   ours; `md`: that of Linux. `versus`: the generator beside fio.
//! - [`spec_sheet`], [`life_cycle`], [`rebuild`], [`sweep`], [`hosts`]: the procedures of `palisade
//!   bench spec-sheet`, `life-cycle`, `rebuild`, `sweep` and `scale`.
//!
//! Invariants
//! - What it makes on drives is wiped in the end, however that comes, unless the process is killed.
//! - A figure is of requests that were done while it counted, and whose content was looked at.

pub mod course;
pub mod cpu;
pub mod figures;
pub mod hosts;
mod judge;
pub mod life_cycle;
mod md;
pub mod options;
mod peer;
pub mod published;
pub mod rebuild;
pub mod setup;
pub mod shelf;
pub mod spec_sheet;
mod states;
pub mod sweep;
mod versus;
pub mod yard;

use crate::error::BenchError;
use crate::generated::Span;
use crate::scale::Scale;
use layout::Layout;
use options::{Options, Source};
use pace::bound::Group;
use shelf::Shelf;
use std::time::Duration;
use units::{BAND_BYTES, GroupNo, MIB};
use workload::workloads;
use yard::Yard;

/// How long cores are watched to find a scale.
const WATCH: Duration = Duration::from_millis(200);

/// A group of an array that is asked for, over so many drives.
///
/// # Errors
/// `Refused` if its level, strip and number of drives do not go together.
fn group(options: &Options, drives: usize) -> Result<Group, BenchError> {
    let (level, drives) = (options.level, u16::try_from(drives).unwrap_or(u16::MAX));
    let least = level.min_drives();
    if drives < least {
        let problem = format!("level {level} takes at least {least} drives, not {drives}");
        return Err(BenchError::Refused(problem));
    }
    let layout = Layout::new(level, drives, options.strip, BAND_BYTES)
        .map_err(|error| BenchError::Refused(error.to_string()))?;
    let (data, parities) = (layout.k(GroupNo(0)).into(), layout.m(GroupNo(0)).into());
    Ok(Group { data, parities })
}

/// How many drives' bytes an array has room for.
///
/// # Errors
/// `Refused` if the level can't have so many drives.
fn data_strips(options: &Options) -> Result<usize, BenchError> {
    if matches!(options.source, Source::Device(_)) {
        return Ok(1);
    }
    let count = options.source.count();
    let group = group(options, count)?;
    let width = (group.data + group.parities) as usize;
    Ok(count / width * group.data as usize)
}

/// Opens or makes the drives.
fn shelf_for(options: &Options, data: usize, progress: &dyn Fn(&str)) -> Result<Shelf, BenchError> {
    let (Source::Model { model, count, .. }, false) = (&options.source, options.dry_run) else {
        return Shelf::open(options, data, |_| Ok(0.0));
    };
    let count = *count;
    // Small drives are as busy as large ones.
    let busy = |slower: u32| -> Result<f64, BenchError> {
        progress(&format!("watching the cores at the scale {}", Scale::Part(slower)));
        let shelf = Shelf::paced(model, slower, count, 16 * MIB);
        let yard = Yard::bare(options, &shelf)?;
        let (aim, area) = (yard.aim(workload::target::TURN), 4 * MIB * count as u64);
        yard.rig().fill(&aim, area)?;
        let mut most = 0.0f64;
        for own in workloads(options.mix).iter().filter(|own| !own.is_sequential()) {
            let shape = own.shape(area, None);
            most = most.max(yard.rig().generate(&aim, shape, Span::of(WATCH), 1)?.busy());
        }
        Ok(most)
    };
    Shelf::open(options, data, busy)
}

#[cfg(test)]
mod tests;
