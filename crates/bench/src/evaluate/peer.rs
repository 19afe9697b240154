//! Another product's array, as a block device: measured by the same workloads as ours, over as many
//! bytes, and shown beside it. Linux md is made for that, of the drives that our array had.

use super::course::{Course, Runner};
use super::figures;
use super::judge;
use super::md::{self, Md};
use super::options::{Options, Peer, Source};
use super::setup::{How, Step};
use super::shelf::Shelf;
use super::yard::Yard;
use crate::error::BenchError;
use crate::report::Report;
use std::path::Path;
use workload::Workload;

/// md's name in results.
const MD: &str = "md";

/// A peer, of which nothing goes that was not named.
pub enum Opened {
    /// One that is there.
    There {
        /// Its name.
        name: String,
        /// Its device is what is asked for.
        options: Box<Options>,
        /// The device.
        shelf: Box<Shelf>,
    },
    /// md, to be made when nobody else has the drives.
    Md(Box<Options>),
}

/// What a peer came to.
pub struct Measured {
    /// Its name.
    pub name: String,
    /// Its courses, in the workloads' order.
    pub courses: Vec<Course>,
}

/// What is done with the peers, in order.
pub fn steps(options: &Options, all: &[Workload]) -> Vec<Step> {
    let one = |peer: &Peer| {
        let what = match peer {
            Peer::Md => "an array of md is made of the drives and filled".to_owned(),
            Peer::There { path, .. } => format!("{} is filled", path.display()),
        };
        let prepare = Step::prepare("peer", &what);
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
    let one = |peer: &Peer| match peer {
        Peer::Md => {
            md::check(options)?;
            Ok(Opened::Md(Box::new(options.clone())))
        }
        Peer::There { name, path } => {
            let (options, shelf) = device(options, path)?;
            Ok(Opened::There { name: name.clone(), options: options.into(), shelf: shelf.into() })
        }
    };
    options.peers.iter().map(one).collect()
}

/// Opens a peer's device: it is what is asked for.
fn device(options: &Options, path: &Path) -> Result<(Options, Shelf), BenchError> {
    let source = Source::Device(path.to_owned());
    let options = Options { source, through: None, ..options.clone() };
    let shelf = Shelf::open(&options, 1, |_| Ok(0.0))?;
    Ok((options, shelf))
}

/// Measures all peers, one after the other; nobody has the array's drives open any more.
///
/// # Errors
/// As [`Opened::measure`].
pub fn measure_all(
    report: &mut Report,
    peers: &[Opened],
    what: (&[Workload], Option<&[Course]>),
    (area, largest): (u64, usize),
    progress: &dyn Fn(&str),
) -> Result<Vec<Measured>, BenchError> {
    let one = |peer: &Opened| peer.measure(report, what, (area, largest), progress);
    peers.iter().map(one).collect()
}

impl Opened {
    /// Fills `area` bytes of it and runs all workloads; beside the bare drives' courses where there
    /// are any.
    ///
    /// # Errors
    /// When a request fails, or the run is to end.
    fn measure(
        &self,
        report: &mut Report,
        what: (&[Workload], Option<&[Course]>),
        (area, largest): (u64, usize),
        progress: &dyn Fn(&str),
    ) -> Result<Measured, BenchError> {
        let options = match self {
            Self::There { name, options, shelf } => {
                let own = (name.as_str(), &**options, &**shelf);
                return measure_device(report, own, what, (area, largest), progress);
            }
            Self::Md(options) => options,
        };
        progress("making an array of md");
        let md = Md::make(options)?;
        // What is on it is what was written on its drives.
        let options = Options { destroy: vec![md.path().to_owned()], ..(**options).clone() };
        let (options, shelf) = device(&options, md.path())?;
        report.notes.push(
            "md: made by mdadm as it makes arrays by itself, except that its parity was not made \
             first (--assume-clean)"
                .to_owned(),
        );
        measure_device(report, (MD, &options, &shelf), what, (area, largest), progress)
    }
}

/// Measures a device.
fn measure_device(
    report: &mut Report,
    (name, options, shelf): (&str, &Options, &Shelf),
    (all, bare): (&[Workload], Option<&[Course]>),
    (area, largest): (u64, usize),
    progress: &dyn Fn(&str),
) -> Result<Measured, BenchError> {
    let state = format!("peer-{name}");
    progress(&format!("filling {}", shelf.drives[0].path().display()));
    let yard = Yard::bare(options, shelf)?;
    let mut runner = Runner::new(options, shelf, yard, largest)?;
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
    Ok(Measured { name: name.to_owned(), courses })
}
