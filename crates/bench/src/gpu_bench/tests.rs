//! The whole procedure on the fake device.

use super::*;
use parity_gpu::fake::FakeDriver;

fn small() -> GpuBench {
    GpuBench {
        rounds: 2,
        span: Duration::from_micros(100),
        device_bytes: 2 << 20,
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
}

#[test]
fn a_wrong_result_ends_the_run() {
    let driver = FakeDriver::new(3, 1 << 30);
    driver.switches().spoil(1 << 20);
    let options = small();
    let lanes = (1, 1 << 20);
    let mut stage = Stage::open(&driver, 0, 64 << 10, lanes).unwrap();
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
