//! The whole procedure on real cores, with a device that computes what the kernels do, or not.

use super::*;
use parity_gpu::fake::FakeDriver;

fn service(driver: &FakeDriver, limits: Limits) -> Arc<Service> {
    let own = driver.clone();
    let service = Service::start(Box::new(|| Ok(Box::new(own))), 0, limits, Box::new(|_| {}));
    let service = service.expect("it is started");
    service.opened().expect("the fake device passes its test");
    Arc::new(service)
}

fn small(parity: Placement) -> Placements {
    let (span, drive_bytes) = (Duration::from_millis(60), 16 * MIB);
    Placements { parity, rounds: 1, span, drive_bytes }
}

fn measured(report: &Report, name: &str) -> bool {
    report.results.iter().any(|metric| metric.name == name)
}

/// Why a figure is open.
fn open<'a>(report: &'a Report, name: &str) -> Option<&'a str> {
    report.open.iter().find(|open| open.name == name).map(|open| open.reason.as_str())
}

/// Does something when it is said that a workload begins.
fn at(begin: &str, act: impl Fn()) -> impl Fn(&str) {
    move |line| {
        if line.starts_with(begin) {
            act();
        }
    }
}

const GOALS: [&str; 2] = ["auto-vs-best", "parity-cpu-saved"];

#[test]
fn every_placement_writes_what_is_read() {
    let driver = FakeDriver::new(7, 1 << 30);
    // Nobody is late here, however busy the machine is.
    let late = Duration::from_secs(60);
    let service = service(&driver, Limits { late, patience: late, ..Limits::default() });
    let mut report = Report::new("test", "test");
    let auto = small(Placement::Auto);
    measure(&auto, Ok(service.clone()), &mut report, &|_| {}).expect("it is measured");
    assert!(service.figures().jobs > 0 && service.fence().is_none());
    let names =
        ["full-stripe-write-gpu-iops", "degraded-read-gpu-iops", "4k-small-write-auto-iops"];
    for name in names.into_iter().chain(["auto-vs-best", "full-stripe-write-none-cpu-us"]) {
        assert!(measured(&report, name), "{name}: {:?}", report.open);
    }
    // The process's CPU time is that of other tests, too.
    let saved = open(&report, "parity-cpu-saved");
    assert!(measured(&report, "parity-cpu-saved") || saved.unwrap().contains("noise"));
    assert!(report.missing.is_empty(), "{:?}", report.missing);
    let note = report.notes.iter().find(|note| note.starts_with("full-stripe-write-gpu: "));
    assert!(note.is_some_and(|note| note.contains(" jobs (") && note.contains(", 0 undone")));
}

#[test]
fn every_goal_is_measured_or_open() {
    for parity in [Placement::Cpu, Placement::Auto] {
        let mut report = Report::new("test", "test");
        let none = Err("no libcuda.so.1".to_owned());
        measure(&small(parity), none, &mut report, &|_| {}).expect("the CPU is measured");
        let reason = if parity == Placement::Cpu { "--parity" } else { "libcuda" };
        assert!(GOALS.iter().all(|goal| open(&report, goal).unwrap().contains(reason)));
        assert!(measured(&report, "full-stripe-write-cpu-iops"));
    }
    let driver = FakeDriver::new(7, 1 << 30);
    let mut report = Report::new("test", "test");
    let gpu = Ok(service(&driver, Limits::default()));
    measure(&small(Placement::Gpu), gpu, &mut report, &|_| {}).expect("it is measured");
    assert_eq!(open(&report, "auto-vs-best"), Some("only --parity auto measures it"));
    assert!(measured(&report, "parity-cpu-saved") != open(&report, "parity-cpu-saved").is_some());
}

/// What it did before nobody compared.
#[test]
fn a_wrong_result_leaves_all_of_the_gpus_figures_open() {
    let driver = FakeDriver::new(7, 1 << 30);
    let service = service(&driver, Limits { sample: 1, ..Limits::default() });
    let mut report = Report::new("test", "test");
    let spoil = at("degraded-read: ", || driver.switches().spoil(usize::MAX));
    let auto = small(Placement::Auto);
    measure(&auto, Ok(service.clone()), &mut report, &spoil).expect("the CPU is measured");
    let fence = service.fence().expect("it is compared").to_string();
    assert!(fence.contains("another result than the CPU"), "{fence}");
    let sides =
        ["full-stripe-write-gpu-iops", "degraded-read-gpu-gbps", "degraded-read-auto-cpu-us"];
    for name in GOALS.into_iter().chain(sides) {
        assert_eq!(open(&report, name), Some(&fence[..]), "{name}");
        assert!(!measured(&report, name), "{name}");
    }
    assert!(measured(&report, "degraded-read-cpu-iops"));
}

/// What it did before was right and stays.
#[test]
fn a_device_that_hangs_leaves_its_figures_open_from_then_on() {
    let driver = FakeDriver::new(7, 1 << 30);
    let service = service(&driver, Limits::default());
    let mut report = Report::new("test", "test");
    let hang = at("full-stripe-write: ", || driver.switches().hang(true));
    let auto = small(Placement::Auto);
    measure(&auto, Ok(service.clone()), &mut report, &hang).expect("the CPU is measured");
    driver.switches().hang(false);
    assert!(service.figures().undone > 0);
    for name in GOALS.into_iter().chain(["full-stripe-write-gpu-iops"]) {
        assert!(open(&report, name).is_some() && !measured(&report, name), "{name}");
    }
    assert!(measured(&report, "full-stripe-write-cpu-iops"));
}

/// No sample would find it.
#[test]
fn a_wrong_parity_ends_the_run() {
    let driver = FakeDriver::new(7, 1 << 30);
    let service = service(&driver, Limits { sample: 0, ..Limits::default() });
    let mut report = Report::new("test", "test");
    let spoil = at("full-stripe-write: ", || driver.switches().spoil(usize::MAX));
    let found = measure(&small(Placement::Gpu), Ok(service), &mut report, &spoil);
    assert!(matches!(found, Err(BenchError::Scrub(_))), "{found:?}");
    assert!(report.results.is_empty(), "{:?}", report.results);
}
