//! Whole procedures, small.

use super::course::Runner;
use super::options::{Options, Profile, Source};
use super::shelf::Shelf;
use super::spec_sheet::bench_spec_sheet;
use super::sweep::{Sweep, bench_sweep};
use super::yard::Yard;
use crate::error::BenchError;
use crate::scale::Scale;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;
use units::MIB;

fn small(source: Source) -> Options {
    Options {
        profile: Profile::Quick,
        instances: 2,
        seconds: Some(Duration::from_millis(80)),
        area: Some(64 * MIB),
        ..Options::new(source)
    }
}

fn paced() -> Source {
    let model = pace::by_name("sn840").expect("is there");
    Source::Model { model, count: 8, scale: Scale::Part(16) }
}

#[test]
fn a_sheet_has_all_its_figures_and_tables() {
    let report = bench_spec_sheet(&small(paced()), "1.2.3", "palisade bench", &|_| ()).unwrap();
    let named = |name: &str| {
        let found = report.results.iter().find(|own| own.name == name);
        found.unwrap_or_else(|| panic!("{name} is missing: {:?}", report.missing)).value
    };
    for state in ["baseline", "nominal"] {
        for workload in ["4k-random-read", "4k-random-mixed", "4k-random-write"] {
            for aspect in ["", "-latency-us", "-p50-us", "-p99-us", "-p999-us", "-max-us", "-cov"] {
                named(&format!("{state}-{workload}{aspect}"));
            }
            named(&format!("{state}-{workload}-cpu-percent"));
            named(&format!("{state}-{workload}-drive-writes"));
        }
        assert!(named(&format!("{state}-128k-sequential-read")) > 0.0);
    }
    // A healthy read is one of a drive's. Writes of one stripe share those of its parity, and there
    // are few stripes here.
    let reads = named("nominal-4k-random-read-drive-reads");
    assert!((reads - 1.0).abs() < 0.001, "{reads}");
    let writes = named("nominal-4k-random-write-drive-writes");
    assert!((1.0..2.6).contains(&writes), "{writes}");
    assert!(named("nominal-4k-random-read-of-bound") > 0.0);
    assert!(named("device-rebuild-4k-random-read") > 0.0);
    let sheet = report.tables.last().expect("there are tables");
    assert!(sheet.rows.iter().any(|row| row[0] == "4k-random-read-in-rebuild".to_owned().into()));
    assert!(report.results.iter().all(|own| own.goal.is_none()), "a quick run judges nothing");
    let tables: Vec<&str> = report.tables.iter().map(|own| own.name.as_str()).collect();
    assert_eq!(tables, ["setup", "random", "sequential", "product-sheet"]);
    for table in &report.tables {
        assert!(!table.rows.is_empty() && !table.source.is_empty(), "{}", table.name);
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.name);
    }
    assert!(report.runs.iter().any(|run| run.name == "nominal-4k-random-write" && run.counts));
    assert_eq!(report.drives.len(), 8);
}

#[test]
fn a_sweep_has_a_table_for_each_pattern() {
    let sweep = Sweep { blocks: vec![MIB, 4096], pairs: vec![(1, 1), (2, 8), (64, 64)] };
    let memory = small(Source::Memory { bytes: 64 * MIB, count: 3 });
    let report = bench_sweep(&memory, &sweep, "", "", &|_| ()).unwrap();
    let tables: Vec<&str> = report.tables.iter().map(|own| own.name.as_str()).collect();
    let wanted = [
        "setup",
        "warm-up",
        "local-4k-random-read",
        "local-4k-random-write",
        "local-4k-random-mixed",
        "local-1m-sequential-read",
        "local-1m-sequential-write",
    ];
    assert_eq!(tables, wanted);
    assert_eq!([2, 5].map(|at| report.tables[at].rows.len()), [3, 2], "one is too large");
    assert!(report.notes.iter().any(|note| note.contains("1m-sequential-read-64x64 was left out")));
    assert!(report.results.iter().any(|own| own.name == "local-4k-random-mixed-2x8-p99-us"));
    let one = small(Source::Memory { bytes: 128 * MIB, count: 1 });
    let sweep = Sweep { blocks: vec![4096], pairs: vec![(1, 4)] };
    let report = bench_sweep(&one, &sweep, "", "", &|_| ()).unwrap();
    assert_eq!(report.tables.last().map(|own| own.rows.len()), Some(3));
    assert!(report.results.iter().any(|own| own.name == "single-drive-4k-random-write-1x4"));
}

#[test]
fn a_run_that_is_to_end_ends() {
    let options = small(paced());
    options.stop.store(true, Ordering::Relaxed);
    let ended = bench_spec_sheet(&options, "", "", &|_| ());
    assert!(matches!(ended, Err(BenchError::Interrupted)));
}

#[test]
fn drives_are_left_without_records() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let paths: Vec<_> = (0..3).map(|number| dir.path().join(number.to_string())).collect();
    for path in &paths {
        std::fs::File::create(path).unwrap().set_len(64 * MIB).unwrap();
    }
    let options = small(Source::Drives(paths.clone()));
    let shelf = Shelf::open(&options, 2, |_| Ok(0.0)).unwrap();
    let signature = |path: &PathBuf| {
        let content = std::fs::read(path).unwrap();
        format::foreign_signature(&content[..1 << 20], &content[63 << 20..])
    };
    let yard = Yard::make(&options, &shelf).unwrap();
    let runner = Runner::new(&options, &shelf, &yard, 4096);
    runner.fill().unwrap();
    assert!(paths.iter().all(|path| signature(path).is_some()), "an array is on them");
    drop(yard);
    assert!(paths.iter().all(|path| signature(path).is_none()), "its records were wiped");
    drop(shelf);
    // What was written is data now.
    let refused = Shelf::open(&options, 2, |_| Ok(0.0));
    assert!(matches!(&refused, Err(BenchError::WouldDestroy { .. })), "{refused:?}");
    assert_eq!(refused.map(drop).map_err(|error| error.status()), Err(3));
    let named = Options { destroy: paths, ..options };
    assert!(Shelf::open(&named, 2, |_| Ok(0.0)).is_ok());
}
