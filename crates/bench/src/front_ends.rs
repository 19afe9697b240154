//! What front ends add to a volume: part of `palisade bench services`.
//!
//! One data core serves, one core of a host asks: the same client and the same front end, over an
//! array's volume and over one that answers at once (*empty*). Taken in turns within every round,
//! order alternating: the array's, the empty one, and the same requests made by the data core
//! itself (*in-process*). A core that does what both of these do can do
//! `1 / (1/empty + 1/in-process)` operations per second (*bound*).
//!
//! Invariant: what the array's volume was given is read back and scrubbed in the end.

use crate::bay::{Bay, Make, Source};
use crate::error::{BenchError, is_to_go_on};
use crate::files::check_memory;
use crate::load::{Load, Op, Order, Until};
use crate::nvme_tcp::{Cpus, bound};
use crate::record::{BLOCK, Record};
use crate::report::{Goal, Report};
use crate::rig::{Aim, Rig};
use crate::stats::{Sample, Spread};
use crate::through::{Through, Ways, files, rings};
use engine::Volume;
use io::{BlockError, Blocks, Buf, BufMut};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Drives of the array: RAID 5, 4+1; and bytes of each.
const DRIVES: usize = 5;
const DRIVE_BYTES: u64 = 128 << 20;
/// CPU of the host.
const HOST_CPU: usize = 1;
/// What a front end has to keep of what it has without a volume.
const LEAST: f64 = 0.85;
/// Bytes of a block of the volumes.
const SECTOR: usize = 512;

/// A volume that answers at once: nothing is kept.
#[derive(Clone)]
struct Empty(u64);

impl Blocks for Empty {
    fn bytes(&self) -> u64 {
        self.0
    }
    fn block_bytes(&self) -> u32 {
        SECTOR as u32
    }
    fn strip_bytes(&self) -> u32 {
        64 << 10
    }
    fn stripe_bytes(&self) -> u32 {
        256 << 10
    }
    fn volatile_cache(&self) -> bool {
        false
    }
    /// No block ends with a zero: who reads a file would look whether it was cut.
    async fn read(&self, _: u64, mut into: BufMut) -> (Result<(), BlockError>, BufMut) {
        into.chunks_exact_mut(SECTOR).for_each(|block| block[SECTOR - 1] = 1);
        (Ok(()), into)
    }
    async fn write(&self, _: u64, _: Buf, _: bool) -> Result<(), BlockError> {
        Ok(())
    }
    async fn compare_and_write(&self, _: u64, _: (Buf, Buf), _: bool) -> Result<bool, BlockError> {
        Ok(true)
    }
    async fn write_zeroes(&self, _: u64, _: u64, _: bool) -> Result<(), BlockError> {
        Ok(())
    }
    async fn discard(&self, _: u64, _: u64) -> Result<(), BlockError> {
        Ok(())
    }
    async fn flush(&self) -> Result<(), BlockError> {
        Ok(())
    }
}

/// What is asked, and how it is called.
struct Workload {
    name: &'static str,
    op: Op,
    bytes: usize,
    depth: usize,
}

const SMALL: [Workload; 2] = [
    Workload { name: "4k-read", op: Op::Read, bytes: 4 << 10, depth: 32 },
    Workload { name: "4k-write", op: Op::Write, bytes: 4 << 10, depth: 32 },
];
const LARGE: Workload = Workload { name: "128k-read", op: Op::Read, bytes: 128 << 10, depth: 8 };

/// Where requests go, by whom, and the record of what is written there.
struct Side<'a> {
    rig: &'a Rig,
    aim: Aim,
    record: &'a Arc<Record>,
}

impl Side<'_> {
    fn load(&self, own: &Workload) -> Load {
        Load::new(own.op, Order::Random, own.bytes, own.depth, self.record)
    }
}

/// How much is measured.
#[derive(Clone, Copy)]
pub struct HowLong<'a> {
    /// Rounds, at least 1.
    pub rounds: usize,
    /// Time of each side in a round.
    pub span: Duration,
    /// Set when it is to end.
    pub stop: &'a AtomicBool,
}

/// What one round measured.
#[derive(Clone, Copy)]
struct Turn {
    array: Sample,
    empty: Sample,
    inside: Sample,
}

impl Turn {
    fn bound(&self) -> f64 {
        bound(&self.empty, &self.inside)
    }
}

/// A front end: its volume, the empty one, and the volume without it.
struct Stand<'a> {
    name: &'static str,
    sides: [Side<'a>; 3],
}

impl Stand<'_> {
    fn rounds(&self, own: &Workload, how_long: HowLong<'_>) -> Result<Vec<Turn>, BenchError> {
        let HowLong { rounds, span, stop } = how_long;
        let loads = self.sides.each_ref().map(|side| side.load(own));
        let mut turns = Vec::new();
        // The first round does not count: memory and tables are warm afterwards.
        for round in 0..=rounds as u64 {
            let mut samples = [Sample::default(); 3];
            let mut order = [0, 1, 2];
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                is_to_go_on(stop)?;
                let Side { rig, aim, .. } = &self.sides[at];
                samples[at] = rig.run(aim, &loads[at], Until::Elapsed(span), round)?.0;
            }
            let [array, empty, inside] = samples;
            turns.extend((round > 0).then_some(Turn { array, empty, inside }));
        }
        Ok(turns)
    }

    fn measure(
        &self,
        workloads: &[Workload],
        how_long: HowLong<'_>,
        report: &mut Report,
        progress: &dyn Fn(&str),
    ) -> Result<(), BenchError> {
        for own in workloads {
            let name = format!("{}-{}", self.name, own.name);
            progress(&name);
            add(report, &name, &self.rounds(own, how_long)?);
        }
        Ok(())
    }
}

fn add(report: &mut Report, name: &str, turns: &[Turn]) {
    let spread = |of: &dyn Fn(&Turn) -> f64| Spread::of(turns.iter().map(of));
    let ratio = spread(&|turn| turn.array.rate() / turn.empty.rate());
    report.add(name, "ratio", ratio, Some(Goal::AtLeast(LEAST)));
    let ratio = spread(&|turn| turn.array.rate() / turn.bound());
    report.add(&format!("{name}-of-bound"), "ratio", ratio, None);
    type Own = (&'static str, fn(&Turn) -> Sample);
    let sides: [Own; 3] =
        [("array", |t| t.array), ("empty", |t| t.empty), ("in-process", |t| t.inside)];
    for (side, sample) in sides {
        let rate = spread(&|turn| sample(turn).rate());
        report.add(&format!("{name}-{side}-iops"), "iops", rate, None);
        let cpu = spread(&|turn| sample(turn).cpu_micros());
        report.add(&format!("{name}-{side}-cpu-us"), "us", cpu, None);
    }
}

/// Measures what a virtual machine's rings and files add to a volume; results go into the report,
/// and `progress` is told what happens.
///
/// # Errors
/// When it can't be carried out or is to end, or the array is not right afterwards. Where this
/// machine mounts no files for this process, rings alone are measured before that is told.
pub fn measure(
    how_long: HowLong<'_>,
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    measure_with(DRIVE_BYTES, how_long, report, progress)
}

fn measure_with(
    drive_bytes: u64,
    how_long: HowLong<'_>,
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    if how_long.rounds == 0 || how_long.span.is_zero() {
        return Err(BenchError::Usage("give at least one round, and some time".into()));
    }
    check_memory(drive_bytes * DRIVES as u64)?;
    progress("making and filling the drives");
    let bay = Bay::create(Source::memory(DRIVES, drive_bytes), Make::default())?;
    // Before the host's core starts, which stays where it starts.
    let cpus = Cpus::find();
    cpus.pin(HOST_CPU);
    let hosts = Rig::start_beside(1);
    cpus.spread();
    let files = files::check(Through::Fuse);
    measure_on(&bay, &hosts?, (how_long, files.is_ok()), report, progress)?;
    progress("reading back");
    bay.verify()?;
    report.notes.push(
        "front ends: empty is a volume that answers at once, in-process the volume alone; bound: \
         1 / (1/empty + 1/in-process), since one core does what both do"
            .to_owned(),
    );
    files
}

fn measure_on(
    bay: &Bay,
    hosts: &Rig,
    (how_long, has_files): (HowLong<'_>, bool),
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    let side = bay.side();
    let Aim::Volume { array, volume } = side.aim else { return Err(BenchError::CoreGone) };
    let bytes = side.record.blocks() * BLOCK as u64;
    let nothing = Arc::new(Record::new(bytes));
    let behind = move |core: &engine::Core<crate::rig::Env>| {
        let array = core.array(array).expect("the array runs while it is measured");
        Volume::new(array, volume)
    };
    let stand = |name, array, empty| Stand {
        name,
        sides: [
            Side { rig: hosts, aim: Aim::Remote(array), record: &side.record },
            Side { rig: hosts, aim: Aim::Remote(empty), record: &nothing },
            Side { rig: &bay.rig, aim: side.aim.clone(), record: &side.record },
        ],
    };
    let own = rings::serve(&bay.rig, behind)?;
    let empty = rings::serve(&bay.rig, move |_| Empty(bytes))?;
    let own = stand("vhost-user", Ways::rings(own, bytes), Ways::rings(empty, bytes));
    own.measure(&SMALL, how_long, report, progress)?;
    if !has_files {
        return Ok(());
    }
    let own = files::mount(&bay.rig, 1, move |core, _| behind(core))?.open()?;
    let empty = files::mount(&bay.rig, 1, move |_, _| Empty(bytes))?.open()?;
    let own = stand("fuse", Ways::opened(own, bytes), Ways::opened(empty, bytes));
    own.measure(&SMALL, how_long, report, progress)?;
    own.measure(&[LARGE], how_long, report, progress)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn all_that_is_promised_is_in_the_report() {
        let mut report = Report::new("", "");
        let (span, stop) = (Duration::from_millis(5), AtomicBool::new(false));
        let short = HowLong { rounds: 2, span, stop: &stop };
        for none in [HowLong { rounds: 0, ..short }, HowLong { span: Duration::ZERO, ..short }] {
            let outcome = measure(none, &mut report, &|_| ());
            assert!(matches!(outcome, Err(BenchError::Usage(_))), "{outcome:?}");
        }
        let measured = measure_with(16 << 20, short, &mut report, &|_| ());
        let mut front_ends = vec!["vhost-user-4k-read", "vhost-user-4k-write"];
        if crate::through::lacks(files::check(Through::Fuse)) {
            assert!(measured.is_err());
        } else {
            measured.unwrap();
            front_ends.extend(["fuse-4k-read", "fuse-4k-write", "fuse-128k-read"]);
        }
        let found = |name: &str| {
            let own = report.results.iter().find(|own| own.name == name);
            own.unwrap_or_else(|| panic!("no {name}: {:?}", report.missing))
        };
        for name in &front_ends {
            let own = found(name);
            assert_eq!((own.unit, own.goal), ("ratio", Some(LEAST)), "{name}");
            assert!(own.value > 0.0 && own.low <= own.value && own.value <= own.high, "{name}");
            assert!(found(&format!("{name}-of-bound")).goal.is_none());
            for side in ["array", "empty", "in-process"] {
                for (what, unit) in [("iops", "iops"), ("cpu-us", "us")] {
                    let own = found(&format!("{name}-{side}-{what}"));
                    assert!(own.unit == unit && own.value > 0.0, "{name}-{side}-{what}");
                }
            }
        }
        assert_eq!(report.results.len(), front_ends.len() * 8);
        stop.store(true, Ordering::Relaxed);
        let ended = measure_with(16 << 20, short, &mut report, &|_| ());
        assert!(matches!(ended, Err(BenchError::Interrupted)), "{ended:?}");
    }
}
