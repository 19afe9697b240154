//! Another product's array, as a block device: measured by the same workloads as ours, over as many
//! bytes, and shown beside it.

use super::course::{Course, Runner};
use super::figures;
use super::judge;
use super::options::{Options, Peer, Source};
use super::setup::{How, Step};
use super::shelf::Shelf;
use super::yard::Yard;
use crate::error::BenchError;
use crate::report::Report;
use workload::Workload;

/// A peer that is there, and of which nothing goes that was not named.
pub struct Opened {
    peer: Peer,
    options: Options,
    shelf: Shelf,
}

/// What a peer came to.
pub struct Measured {
    /// Its name.
    pub name: String,
    /// Its courses, in the workloads' order.
    pub courses: Vec<Course>,
}

/// Its state in results.
fn state(peer: &Peer) -> String {
    format!("peer-{}", peer.name)
}

/// What is done with the peers, in order.
pub fn steps(options: &Options, all: &[Workload]) -> Vec<Step> {
    let one = |peer: &Peer| {
        let prepare = Step::prepare("peer", &format!("{} is filled", peer.path.display()));
        let runs = all.iter().map(|own| Step::run("peer", own, How::Steady));
        std::iter::once(prepare).chain(runs).collect::<Vec<_>>()
    };
    options.peers.iter().flat_map(one).collect()
}

/// Opens all peers.
///
/// # Errors
/// When one can't be used, or has data that may not go.
pub fn open(options: &Options) -> Result<Vec<Opened>, BenchError> {
    let one = |peer: &Peer| -> Result<Opened, BenchError> {
        let peer = peer.clone();
        let options = Options { source: Source::Device(peer.path.clone()), ..options.clone() };
        let shelf = Shelf::open(&options, 1, |_| Ok(0.0))?;
        Ok(Opened { peer, options, shelf })
    };
    options.peers.iter().map(one).collect()
}

impl Opened {
    /// Fills `area` bytes of it and runs all workloads; beside the bare drives' courses where there
    /// are any.
    ///
    /// # Errors
    /// When a request fails, or the run is to end.
    pub fn measure(
        &self,
        report: &mut Report,
        (all, bare): (&[Workload], Option<&[Course]>),
        (area, largest): (u64, usize),
        progress: &dyn Fn(&str),
    ) -> Result<Measured, BenchError> {
        let (options, state) = (&self.options, state(&self.peer));
        progress(&format!("filling {}", self.peer.path.display()));
        let yard = Yard::bare(options, &self.shelf)?;
        let mut runner = Runner::new(options, &self.shelf, yard, largest)?;
        runner.area = runner.area.min(area);
        runner.fill()?;
        let mut courses = Vec::new();
        for (at, workload) in all.iter().enumerate() {
            progress(&format!("{state}-{}", workload.name));
            let course = runner.course(workload)?;
            let against = figures::Against {
                baseline: bare.map(|bare| bare[at].value()),
                ..judge::bare(workload)
            };
            figures::add(report, &state, &course, against);
            courses.push(course);
        }
        Ok(Measured { name: self.peer.name.clone(), courses })
    }
}
