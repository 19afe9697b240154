//! Whole procedures, small.

use super::course::Runner;
use super::hosts::{Hosts, bench_scale};
use super::life_cycle::bench_life_cycle;
use super::options::{Loader, Options, Profile, Source};
use super::rebuild::bench_rebuild;
use super::shelf::Shelf;
use super::spec_sheet::bench_spec_sheet;
use super::sweep::{Sweep, bench_sweep};
use super::yard::{LOOK, Yard};
use crate::error::BenchError;
use crate::report::{Cell, Report};
use crate::scale::Scale;
use crate::through::{Through, files, lacks};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;
use units::MIB;

/// What is used for a rebuild of it to last: one of less is over before anything can be measured
/// beside it, where others compute.
const LONG_REBUILD: Option<u64> = Some(256 * MIB);

fn small(source: Source) -> Options {
    Options {
        profile: Profile::Quick,
        instances: 2,
        seconds: Some(Duration::from_millis(40)),
        area: Some(64 * MIB),
        ..Options::new(source)
    }
}

/// Each table has rows of as many cells as it has columns, and a source.
fn are_whole(report: &Report) {
    for table in &report.tables {
        assert!(!table.rows.is_empty() && !table.source.is_empty(), "{}", table.name);
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.name);
    }
}

fn value(report: &Report, name: &str) -> f64 {
    let found = report.results.iter().find(|own| own.name == name);
    found.unwrap_or_else(|| panic!("{name} is missing: {:?}", report.missing)).value
}

/// Whether a figure beside a rebuild is there. Where others compute too, the rebuild may be over
/// before anything can be measured: then it is left open, and is not there.
fn is_measured(report: &Report, name: &str) -> bool {
    let is_open = report.open.iter().any(|own| own.name == name);
    assert!(is_open || value(report, name) > 0.0, "{name}");
    !is_open
}

fn paced() -> Source {
    let model = pace::by_name("sn840").expect("is there");
    Source::Model { model, count: 8, scale: Scale::Part(2) }
}

#[test]
fn a_sheet_has_all_its_figures_and_tables() {
    let options = Options { area: LONG_REBUILD, ..small(paced()) };
    let report = bench_spec_sheet(&options, "1.2.3", "palisade bench", &|_| ()).unwrap();
    let named = |name: &str| value(&report, name);
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
    assert!(named("nominal-4k-random-write-drive-pages") > 0.0);
    assert!(named("nominal-4k-random-read-of-bound") > 0.0);
    is_measured(&report, "device-rebuild-4k-random-read");
    let sheet = report.tables.last().expect("there are tables");
    assert!(sheet.rows.iter().any(|row| row[0] == "4k-random-read-in-rebuild".to_owned().into()));
    assert!(report.results.iter().all(|own| own.goal.is_none()), "a quick run judges nothing");
    let tables: Vec<&str> = report.tables.iter().map(|own| own.name.as_str()).collect();
    let wanted = ["setup", "topology", "process", "random", "sequential", "product-sheet"];
    assert_eq!(tables, wanted);
    are_whole(&report);
    assert!(report.runs.iter().any(|run| run.name == "nominal-4k-random-write" && run.counts));
    assert_eq!(report.drives.len(), 8);
}

#[test]
fn a_life_cycle_has_every_state_and_table() {
    let seconds = Some(Duration::from_millis(20));
    let options = Options { seconds, area: LONG_REBUILD, instances: 1, ..small(paced()) };
    let report = bench_life_cycle(&options, "1.2.3", "palisade bench", &|_| ()).unwrap();
    let named = |name: &str| value(&report, name);
    for state in ["baseline", "initialising", "nominal", "device-down", "device-rebuild"] {
        for workload in workload::workloads(70) {
            let name = format!("{state}-{}", workload.name);
            if state == "device-rebuild" && !is_measured(&report, &name) {
                continue;
            }
            assert!(named(&name) > 0.0, "{name}");
            for aspect in ["latency-us", "p99-us", "cov", "cpu-percent", "drive-reads"] {
                named(&format!("{name}-{aspect}"));
            }
            assert!(state == "baseline" || named(&format!("{name}-to-baseline")) > 0.0);
        }
    }
    // Without a drive a read of its strips is one of each other drive's: 7/8 + 7/8.
    let reads = named("device-down-4k-random-read-drive-reads");
    // So on average: a short run has few.
    assert!((reads - 1.75).abs() < 0.2, "{reads}");
    assert!(named("device-down-4k-random-read-of-bound") > 0.1);
    let journal = "4k-random-write-drive-batches";
    assert!(named(&format!("device-down-{journal}")) > 0.0);
    assert_eq!(named(&format!("nominal-{journal}")), 0.0, "a whole array logs nothing");
    let has = |name: &str| report.results.iter().any(|own| own.name == name);
    assert!(!has("device-rebuild-4k-random-read-of-bound"), "there is no bound beside a rebuild");
    let tables: Vec<&str> = report.tables.iter().map(|own| own.name.as_str()).collect();
    let wanted = [
        "setup",
        "topology",
        "process",
        "nominal",
        "device-down",
        "device-rebuild",
        "performance",
        "efficiency",
        "life-cycle",
        "life-cycle-drives",
    ];
    assert_eq!(tables, wanted);
    are_whole(&report);
    let panels = report.tables.iter().find(|own| own.name == "device-down").expect("is there");
    assert_eq!(panels.rows.len(), 4 * 5);
    let read = |panel: &str| {
        let is_it = |row: &&Vec<Cell>| {
            row[0] == panel.to_owned().into() && row[1] == "4k-random-read".to_owned().into()
        };
        panels.rows.iter().find(is_it).expect("has its row").clone()
    };
    assert_eq!(read("ratio")[8], 0.56.into(), "what was published");
    let to_baseline = named("device-down-4k-random-read-to-baseline");
    let Cell::Number(ratio) = read("ratio")[3] else { panic!("no number") };
    assert!((ratio - to_baseline).abs() < 1e-9, "{ratio} {to_baseline}");
    assert!(report.results.iter().all(|own| own.goal.is_none()), "a quick run judges nothing");
    let raid0 = Options { level: layout::Level::Raid0, ..options };
    let dry = Options { dry_run: true, ..raid0 };
    let report = bench_life_cycle(&dry, "", "", &|_| ()).unwrap();
    let process = report.tables.iter().find(|own| own.name == "process").expect("is there");
    let is_down = |row: &Vec<Cell>| row[1] == "device-down".to_owned().into();
    assert!(!process.rows.iter().any(is_down), "no drive of it can be spared");
}

#[test]
fn a_rebuild_is_measured_idle_and_beside_hosts() {
    let seconds = Some(Duration::from_millis(40));
    let options = Options { seconds, area: LONG_REBUILD, ..small(paced()) };
    let report = bench_rebuild(&options, "1.2.3", "palisade bench", &|_| ()).unwrap();
    let named = |name: &str| value(&report, name);
    for name in ["idle-paced", "idle-memory"] {
        assert!(named(&format!("rebuild-{name}")) > 0.0, "{name}");
    }
    for name in ["load-host", "load-rebuild", "load-sum", "load-p99"] {
        is_measured(&report, &format!("rebuild-{name}"));
    }
    let idle = named("rebuild-idle-paced");
    assert!(idle < 1.05, "no drive is filled faster than it writes: {idle}");
    for waf in ["rebuild-waf", "rebuild-load-waf"] {
        assert!(!is_measured(&report, waf) || (1.0..1.5).contains(&named(waf)), "{waf}");
    }
    let tables: Vec<&str> = report.tables.iter().map(|own| own.name.as_str()).collect();
    assert_eq!(tables, ["setup", "topology", "process", "rebuild-idle", "rebuild-load"]);
    are_whole(&report);
    let rows = |at: usize| report.tables[at].rows.len();
    assert_eq!((rows(3), rows(4)), (2 + 2, 6 + 2));
    let raid0 = Options { level: layout::Level::Raid0, ..options };
    let refused = bench_rebuild(&raid0, "", "", &|_| ());
    assert!(matches!(&refused, Err(BenchError::Refused(why)) if why.contains("level 0")));
}

#[test]
fn a_drive_that_is_put_in_again_is_filled_as_an_empty_one() {
    let options = small(Source::Memory { bytes: 64 * MIB, count: 4 });
    let shelf = Shelf::open(&options, 3, |_| Ok(0.0)).unwrap();
    let yard = Yard::make(&options, &shelf).unwrap();
    let runner = Runner::new(&options, &shelf, yard, 1 << 20).unwrap();
    runner.fill().unwrap();
    // Nothing is under way any more that a drive would miss.
    while runner.yard.status().unwrap().expect("it is there").region_map.dirty_regions > 0 {
        std::thread::sleep(LOOK);
    }
    let used = runner.area / 3;
    assert!(runner.yard.used() >= used, "{used}");
    for _ in 0..2 {
        let given = shelf.drives[0].io_counts().write_bytes;
        runner.yard.begin_rebuild().unwrap();
        while runner.yard.is_rebuilding().unwrap() {
            std::thread::sleep(LOOK);
        }
        let given = shelf.drives[0].io_counts().write_bytes - given;
        assert!(given >= used, "{given} of {used}");
    }
}

/// However short it was to be.
#[test]
fn an_instance_lasts_until_each_load_has_had_a_request() {
    let seconds = Some(Duration::from_nanos(10));
    let options = Options { seconds, instances: 1, area: Some(8 * MIB), ..small(paced()) };
    let shelf = Shelf::open(&options, 3, |_| Ok(0.0)).unwrap();
    let yard = Yard::make(&options, &shelf).unwrap();
    let mut runner = Runner::new(&options, &shelf, yard, 4096).unwrap();
    runner.fill().unwrap();
    let workloads = workload::workloads(70);
    let loads = runner.load(&workloads[3]);
    assert!(runner.loads(&loads).unwrap().ran.has_all());
    assert!(runner.course(&workloads[3]).unwrap().is_known());
    let is_write = |own: &&workload::Workload| own.reads == 0;
    let write = workloads.iter().find(is_write).expect("there is one");
    assert!(runner.course_from_creation(write).unwrap().is_known());
}

/// A file stands for another product's array.
#[test]
fn a_peer_is_measured_beside_the_array() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("peer");
    std::fs::File::create(&path).unwrap().set_len(64 * MIB).unwrap();
    let options = Options {
        instances: 1,
        peers: vec![format!("other={}", path.display()).parse().unwrap()],
        ..small(Source::Memory { bytes: 64 * MIB, count: 3 })
    };
    let sweep = Sweep { blocks: vec![4096], pairs: vec![(1, 4)] };
    let report = bench_sweep(&options, &sweep, "", "", &|_| ()).unwrap();
    assert!(value(&report, "peer-other-4k-random-read-1x4") > 0.0);
    are_whole(&report);
    let table = report.tables.last().expect("is there");
    let at = table.columns.iter().position(|own| own == "other IOPS").expect("has a column");
    assert!(table.rows.iter().all(|row| matches!(row[at], Cell::Number(iops) if iops > 0.0)));
    // It has data now, and was not named.
    let refused = bench_spec_sheet(&options, "", "", &|_| ());
    assert!(matches!(&refused, Err(BenchError::WouldDestroy { path: own, .. }) if *own == path));
    let refused = bench_life_cycle(&options, "", "", &|_| ());
    assert!(matches!(&refused, Err(BenchError::Refused(why)) if why.contains("no peer")));
    let sheet = Options { destroy: vec![path], ..options };
    let report = bench_spec_sheet(&sheet, "", "", &|_| ()).unwrap();
    are_whole(&report);
    let random = report.tables.iter().find(|own| own.name == "random").expect("is there");
    assert_eq!(random.columns[5..7], ["other".to_owned(), "other, to baseline".to_owned()]);
    assert!(value(&report, "peer-other-4k-random-write-to-baseline") > 0.0);
}

#[test]
fn hosts_share_the_drives_and_are_measured_one_two_and_more() {
    let options = Options { instances: 1, ..small(Source::Memory { bytes: 64 * MIB, count: 4 }) };
    let report = bench_scale(&options, &Hosts::Here(2), "", "", &|_| ()).unwrap();
    for workload in ["128k-sequential-read", "4k-random-write"] {
        assert!(value(&report, &format!("hosts-1-{workload}")) > 0.0);
        // One core makes both hosts' loads: no more than it can.
        assert!(value(&report, &format!("hosts-2-{workload}-to-baseline")) > 0.0);
    }
    let tables: Vec<&str> = report.tables.iter().map(|own| own.name.as_str()).collect();
    assert_eq!(tables, ["setup", "topology", "process", "fio-parameters", "scale"]);
    are_whole(&report);
    let scale = report.tables.last().expect("is there");
    let first = &scale.rows[0];
    assert_eq!((scale.rows.len(), &first[5]), (4 * 2, &11.9.into()), "what was published");
    let odd = bench_scale(&options, &Hosts::Here(3), "", "", &|_| ());
    assert!(matches!(&odd, Err(BenchError::Refused(why)) if why.contains("multiple")));
    let there = Hosts::There(vec!["10.0.0.1".to_owned()]);
    let refused = bench_scale(&options, &there, "", "", &|_| ());
    assert!(matches!(&refused, Err(BenchError::Refused(why)) if why.contains("--drives")));
    let drives = Source::Drives(vec!["/dev/nvme0n1".into()]);
    let blind = Options { area: None, ..small(drives.clone()) };
    let refused = bench_scale(&blind, &there, "", "", &|_| ());
    assert!(matches!(&refused, Err(BenchError::Refused(why)) if why.contains("--area")));
    // Nobody can look at them: they have to be named.
    let refused = bench_scale(&small(drives), &there, "", "", &|_| ());
    assert_eq!(refused.map(drop).map_err(|error| error.status()), Err(3));
}

#[test]
fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let model = pace::by_name("sn840").expect("is there");
    let source = Source::Model { model, count: 8, scale: Scale::Auto };
    let options = Options { dry_run: true, profile: Profile::Short, ..small(source) };
    let never = |line: &str| panic!("{line}");
    let sweep = Sweep { blocks: vec![4096], pairs: vec![(1, 1)] };
    for report in [
        bench_life_cycle(&options, "", "", &never).unwrap(),
        bench_spec_sheet(&options, "", "", &never).unwrap(),
        bench_rebuild(&options, "", "", &never).unwrap(),
        bench_sweep(&options, &sweep, "", "", &never).unwrap(),
    ] {
        assert!(report.results.is_empty());
        let tables: Vec<&str> = report.tables.iter().map(|own| own.name.as_str()).collect();
        assert_eq!(tables, ["setup", "topology", "process"]);
        are_whole(&report);
        assert!(report.to_table().contains("at the scale auto"));
    }
}

/// Real fio, over files and over an array's exports; its jobs are kept.
#[test]
fn fio_makes_the_loads_of_drives_and_arrays() {
    if !crate::fio::available() {
        assert!(std::env::var_os("CI").is_none(), "fio is missing");
        eprintln!("skipped: fio is missing");
        return;
    }
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let paths: Vec<_> = (0..3).map(|number| dir.path().join(number.to_string())).collect();
    for path in &paths {
        std::fs::File::create(path).unwrap().set_len(64 * MIB).unwrap();
    }
    let keep = dir.path().join("kept");
    let options = Options {
        load: Loader::Fio,
        keep: Some(keep.clone()),
        instances: 1,
        ..small(Source::Drives(paths.clone()))
    };
    let shelf = Shelf::open(&options, 2, |_| Ok(0.0)).unwrap();
    let workload = &workload::workloads(70)[3];
    let bare = Yard::bare(&options, &shelf).unwrap();
    let mut runner = Runner::new(&options, &shelf, bare, 4096).unwrap();
    runner.fill().unwrap();
    let course = runner.course_at_once(workload).unwrap();
    assert!(course.value() > 0.0 && !course.instances()[0].is_asked_here);
    let tally = &course.instances()[0].ran.tally;
    let share = tally.reads.times.count() as f64 / tally.operations() as f64;
    assert!((0.6..0.8).contains(&share), "70% read: {share}");
    assert!(tally.series.iter().sum::<u64>() > 0 && tally.times().mean() > 0.0);
    drop(runner);
    let yard = Yard::make(&options, &shelf).unwrap();
    let mut runner = Runner::new(&options, &shelf, yard, 4096).unwrap();
    runner.fill().unwrap();
    let course = runner.course_at_once(workload).unwrap();
    let own = &course.instances()[0];
    assert!(course.value() > 0.0 && own.is_asked_here);
    // Of each request a read or, with its parity, two reads and two writes: .7 + .3 * 2.
    let reads = own.asked.reads as f64 / own.ran.tally.made as f64;
    assert!((0.9..1.5).contains(&reads), "{reads}");
    drop(runner);
    let kept = std::fs::read_dir(&keep).unwrap().count();
    assert!(kept >= 2, "{kept}");
    let job =
        std::fs::read_to_string(keep.join("0001-4k-random-mixed/job.fio")).unwrap_or_default();
    assert!(job.contains("uri=nbd://127.0.0.1"), "{job}");
}

#[test]
fn a_device_is_no_array() {
    let options = small(Source::Device(PathBuf::from("/dev/null")));
    for procedure in [bench_life_cycle, bench_rebuild] {
        let refused = procedure(&options, "", "", &|_| ());
        assert!(matches!(&refused, Err(BenchError::Refused(why)) if why.contains("--drives")));
    }
}

#[test]
fn a_sweep_has_a_table_for_each_pattern() {
    let sweep = Sweep { blocks: vec![MIB, 4096], pairs: vec![(1, 1), (2, 8), (64, 64)] };
    let memory = small(Source::Memory { bytes: 64 * MIB, count: 3 });
    let report = bench_sweep(&memory, &sweep, "", "", &|_| ()).unwrap();
    let tables: Vec<&str> = report.tables.iter().map(|own| own.name.as_str()).collect();
    let wanted = [
        "setup",
        "topology",
        "process",
        "warm-up",
        "local-4k-random-read",
        "local-4k-random-write",
        "local-4k-random-mixed",
        "local-1m-sequential-read",
        "local-1m-sequential-write",
    ];
    assert_eq!(tables, wanted);
    assert_eq!([4, 7].map(|at| report.tables[at].rows.len()), [3, 2], "one is too large");
    assert!(report.notes.iter().any(|note| note.contains("1m-sequential-read-64x64 was left out")));
    assert!(report.results.iter().any(|own| own.name == "local-4k-random-mixed-2x8-p99-us"));
    let one = small(Source::Memory { bytes: 128 * MIB, count: 1 });
    let sweep = Sweep { blocks: vec![4096], pairs: vec![(1, 4)] };
    let report = bench_sweep(&one, &sweep, "", "", &|_| ()).unwrap();
    assert_eq!(report.tables.last().map(|own| own.rows.len()), Some(3));
    assert!(report.results.iter().any(|own| own.name == "single-drive-4k-random-write-1x4"));
}

/// Hosts in front of an array: what they ask is what drives are asked for, as without them.
#[test]
fn volumes_are_measured_as_hosts_reach_them() {
    let sweep = Sweep { blocks: vec![4096], pairs: vec![(1, 4)] };
    let memory = Source::Memory { bytes: 64 * MIB, count: 3 };
    let mut ways = vec![Through::Nbd, Through::NvmeTcp];
    if !lacks(files::check(Through::Fuse)) {
        ways.push(Through::Fuse);
    }
    for through in ways {
        let options = Options { through: Some(through), volumes: 2, ..small(memory.clone()) };
        let report = bench_sweep(&options, &sweep, "", "", &|_| ()).unwrap();
        assert_eq!(report.tables[4].name, "remote-4k-random-read");
        are_whole(&report);
        assert!(report.to_table().contains(&format!("over {through}")));
        let reads = value(&report, "remote-4k-random-read-1x4-drive-reads");
        assert!((reads - 1.0).abs() < 1e-9, "{reads}");
        assert!(value(&report, "remote-4k-random-mixed-1x4") > 0.0);
    }
    let large = Sweep { blocks: vec![2 * MIB], ..sweep };
    let options = Options { through: Some(Through::NvmeTcp), ..small(memory) };
    let refused = bench_sweep(&options, &large, "", "", &|_| ());
    assert!(matches!(&refused, Err(BenchError::Refused(why)) if why.contains("1 MiB")));
    let refused = bench_scale(&options, &Hosts::Here(1), "", "", &|_| ());
    assert!(matches!(&refused, Err(BenchError::Refused(why)) if why.contains("--through")));
    // An array that is made anew is served anew.
    let few = Options { instances: 1, ..options };
    let report = bench_life_cycle(&few, "", "", &|_| ()).unwrap();
    assert!(value(&report, "initialising-4k-random-read") > 0.0);
    assert!(value(&report, "device-down-4k-random-read") > 0.0);
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
    let runner = Runner::new(&options, &shelf, yard, 4096).unwrap();
    runner.fill().unwrap();
    assert!(paths.iter().all(|path| signature(path).is_some()), "an array is on them");
    drop(runner);
    assert!(paths.iter().all(|path| signature(path).is_none()), "its records were wiped");
    drop(shelf);
    // What was written is data now.
    let refused = Shelf::open(&options, 2, |_| Ok(0.0));
    assert!(matches!(&refused, Err(BenchError::WouldDestroy { .. })), "{refused:?}");
    assert_eq!(refused.map(drop).map_err(|error| error.status()), Err(3));
    let named = Options { destroy: paths, ..options };
    assert!(Shelf::open(&named, 2, |_| Ok(0.0)).is_ok());
}
