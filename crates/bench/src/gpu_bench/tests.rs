//! The whole procedure on the fake device.

use super::*;
use parity_gpu::fake::FakeDriver;

fn small() -> GpuBench {
    GpuBench {
        rounds: 2,
        span: Duration::from_micros(100),
        device_bytes: 2 << 20,
        resident_bytes: 8 << 20,
        lane_bytes: 2 << 20,
        lanes: 2,
        core_bytes: 2 << 20,
        power_span: Duration::from_millis(1),
        ..GpuBench::default()
    }
}

fn bench(options: &GpuBench, driver: &FakeDriver) -> Result<Report, BenchError> {
    bench_parity_gpu(options, driver, ("1.2.3", "palisade bench parity --gpu"), &|_| {})
}

#[test]
fn every_work_is_measured_on_every_side() {
    let report = bench(&small(), &FakeDriver::new(3, 1 << 30)).unwrap();
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    let names: Vec<_> = report.results.iter().map(|result| result.name.as_str()).collect();
    for work in works() {
        for side in ["resident", "streamed", "one-core", "all-cores"] {
            let name = format!("{side}-{}-gbps", work.name);
            assert!(names.contains(&name.as_str()), "{name} in {names:?}");
        }
    }
    let unmapped =
        |name: &&str| report.open.iter().any(|open| open.name == format!("mapped-{name}"));
    let unmapped: Vec<_> = works().iter().map(|work| work.name).filter(unmapped).collect();
    assert_eq!(unmapped, ["delta4k-pq"], "what a kernel adds to is copied");
    assert!(names.contains(&"mapped-pq") && names.contains(&"mapped-crc32c-gbps"));
    for limit in ["device-copy-gbps", "link-up-gbps", "link-down-gbps", "link-both-gbps"] {
        assert!(names.contains(&limit), "{limit}");
    }
    let goal = |name: &str| report.results.iter().find(|result| result.name == name).unwrap().goal;
    assert_eq!((goal("resident-pq"), goal("streamed-pq")), (Some(0.80), Some(0.90)));
    assert_eq!((goal("resident-p"), report.missing.len()), (None, 0));
    // A machine of tests has no meter of the fake device.
    let open = json["open"].as_array().unwrap();
    let watts = open.iter().find(|open| open["name"] == "resident-pq-watts").unwrap();
    assert!(watts["value"].is_null() && watts["reason"].is_string());
    assert!(gpu_table(&report).contains("GPU 0: fake"));
    let note = report.notes.iter().find(|note| note.starts_with("resident: "));
    assert!(note.is_some_and(|note| note.starts_with("resident: 8 MiB of strips")), "{note:?}");
}

/// With less memory than was asked for, what there was is said.
#[test]
fn resident_strips_are_as_many_as_there_is_room_for() {
    let options = GpuBench { budget: Duration::ZERO, resident_bytes: 1 << 40, ..small() };
    // All else takes 64 MiB.
    let report = bench(&options, &FakeDriver::new(3, 80 << 20)).unwrap();
    let note = report.notes.iter().find(|note| note.starts_with("resident: ")).unwrap();
    assert!(note.starts_with("resident: 16 MiB of strips"), "{note}");
}

/// Of each side, whatever it does when it is timed: nothing is wrong before.
#[test]
fn what_goes_wrong_in_the_turns_ends_the_run() {
    let lanes = (2, 2 << 20);
    for work in works() {
        for side in 0..3 {
            let driver = FakeDriver::new(3, 1 << 30);
            let mut stage = Stage::open(&driver, 0, (2 << 20, 8 << 20), lanes).unwrap();
            let mut tracks = match side {
                0 => vec![stage.resident(&work).unwrap()],
                1 => stage.streamed(&work).unwrap(),
                _ => stage.mapped(&work).unwrap().unwrap_or_default(),
            };
            if tracks.is_empty() {
                continue;
            }
            let span = Duration::from_micros(1);
            let mut turn = |stage: &mut Stage| {
                tracks.iter_mut().try_for_each(|tried| stage.blank(tried)).unwrap();
                let times = &mut Times::default();
                match side {
                    0 => stage.compute(&mut tracks[0], times, span).unwrap(),
                    _ => stage.stream(&mut tracks, times, span).unwrap(),
                };
                tracks.iter_mut().try_for_each(|tried| stage.check(tried))
            };
            turn(&mut stage).unwrap_or_else(|error| panic!("{}, {side}: {error}", work.name));
            driver.switches().spoil(1);
            let wrong = turn(&mut stage).map_err(|error| error.to_string());
            assert!(wrong.is_err(), "{}, side {side}", work.name);
        }
    }
}

#[test]
fn the_last_turns_are_compared_in_a_run() {
    let driver = FakeDriver::new(3, 1 << 30);
    // Right again before the next work.
    let spoil = |line: &str| {
        driver.switches().spoil(if line == "p: turns" { usize::MAX } else { 0 });
    };
    let found = bench_parity_gpu(&small(), &driver, ("1.2.3", "palisade"), &spoil);
    assert!(matches!(found, Err(BenchError::Different { .. })), "{found:?}");
}

#[test]
fn only_what_is_not_there_is_absent() {
    let of = |problem| {
        let error = DriverError { asked: parity_gpu::Asked::List, problem };
        has_devices(Err(error)).unwrap_err()
    };
    let absent = [Problem::Missing("libcuda.so.1".to_owned()), Problem::NoDevice].map(of);
    assert_eq!(absent.map(|found| found.status()), [3, 3]);
    assert_eq!(has_devices(Ok(vec![])).unwrap_err().status(), 3);
    let code = Problem::Code(803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH".to_owned());
    let broken = [code, Problem::Lost("CUDA_ERROR_UNKNOWN".to_owned()), Problem::Busy].map(of);
    assert!(
        broken[0].to_string().contains("error 803") && broken[0].to_string().contains("nvidia-smi")
    );
    assert_eq!(broken.map(|found| found.status()), [1, 1, 1]);
    assert_eq!(has_devices(Ok(vec!["a GPU".to_owned()])), Ok(()));
}

#[test]
fn a_wrong_result_ends_the_run() {
    let driver = FakeDriver::new(3, 1 << 30);
    driver.switches().spoil(1 << 20);
    let options = small();
    let lanes = (1, 1 << 20);
    let mut stage = Stage::open(&driver, 0, (64 << 10, 256 << 10), lanes).unwrap();
    // One job, so that the wrong bit is in what is compared.
    let error = stage.single(&works::pq(4096)).map(|_| ()).unwrap_err();
    assert!(matches!(error, BenchError::Different { .. }), "{error}");
    driver.switches().spoil(0);
    driver.switches().refuse(1);
    assert!(matches!(bench(&options, &driver), Err(BenchError::Gpu(_))));
}

#[test]
fn what_no_time_is_left_for_stays_open() {
    let options = GpuBench { budget: Duration::ZERO, ..small() };
    let report = bench(&options, &FakeDriver::new(3, 1 << 30)).unwrap();
    let open = |name: &str| report.open.iter().any(|open| open.name == name);
    assert!(open("resident-pq") && open("streamed-pq") && open("break-even-time"));
}
