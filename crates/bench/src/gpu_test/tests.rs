//! The checks on the fake device, right and wrong.

use super::*;
use parity_gpu::fake::FakeDriver;

const LONG: Duration = Duration::from_secs(600);

fn cases() -> Vec<Case> {
    vectors::parse(&vectors::text()).unwrap()
}

fn small() -> GpuBench {
    GpuBench {
        rounds: 1,
        span: Duration::from_micros(10),
        device_bytes: 2 << 20,
        resident_bytes: 4 << 20,
        lane_bytes: 2 << 20,
        lanes: 1,
        core_bytes: 2 << 20,
        power_span: Duration::from_millis(1),
        budget: LONG,
        ..GpuBench::default()
    }
}

/// A kernel whose checks are not looked at.
fn unchecked(kernel: &str) -> Result<CpuPart, String> {
    let (check, gbps) = (Check::default(), BTreeMap::new());
    Ok(CpuPart { kernel: kernel.to_owned(), check, gbps })
}

#[test]
fn every_kernel_is_run_and_right() {
    let driver = FakeDriver::new(5, 1 << 30);
    let findings = carry_out("1.2.3", &cases(), &small(), Ok(&driver), &unchecked, &|_| {});
    assert_eq!((findings.status, &findings.problems[..]), (GOOD, &[][..]));
    let gpu = findings.gpu.as_ref().unwrap();
    assert_eq!((gpu.kernels.len(), gpu.check.left), (13, 0));
    assert!(gpu.check.done > 500 && gpu.check.unfit > 300, "{}", gpu.check);
    assert!(findings.to_text().ends_with("all kernels are right\n"));
    assert!(findings.to_json().contains("\"resident-pq\""));
}

#[test]
fn the_processors_kernel_is_checked_on_every_case() {
    let cases = cases();
    let check = check_cpu(&cases, LONG);
    assert_eq!((check.done, check.wrong, check.named.len()), (cases.len(), 0, 0));
    let late = check_cpu(&cases, Duration::ZERO);
    assert!(late.problems("kernel")[0].starts_with("kernel: no time for"));
}

#[test]
fn a_wrong_bit_is_found_and_named() {
    let driver = FakeDriver::new(5, 1 << 30);
    driver.switches().spoil(3);
    // An answer could have it in bytes that nobody reads.
    let mut cases = cases();
    cases.retain(|case| case.line().starts_with("generate"));
    let (check, _) = check_gpu(&cases[..12], &mut *driver.open(0).unwrap(), LONG).unwrap();
    assert_eq!(check.wrong, 3, "{check}");
    assert!(check.problems("GPU")[0].contains("wrong result: "));
    driver.switches().lose();
    let findings = carry_out("1.2.3", &cases[..1], &small(), Ok(&driver), &unchecked, &|_| {});
    assert_eq!(findings.status, WRONG);
}

#[test]
fn a_vector_that_was_changed_is_wrong() {
    let text = vectors::text();
    let line = text.lines().next().unwrap();
    let (front, crc) = line.split_at(line.len() - 1);
    let line = format!("{front}{}", if crc == "0" { "1" } else { "0" });
    let check = check_cpu(&vectors::parse(&line).unwrap(), LONG);
    assert_eq!((check.done, check.wrong, &check.named[..]), (1, 1, &[line][..]));
    assert!(vectors::parse("generate 8 2").is_err());
}

#[test]
fn without_a_gpu_there_is_one_line() {
    let none = || Err(NoGpu::Absent("because".to_owned()));
    let findings = carry_out("1.2.3", &[], &small(), none(), &unchecked, &|_| {});
    assert_eq!((findings.status, findings.to_text().lines().count()), (NO_GPU, 1));
    assert!(findings.to_json().contains("\"gpu\": null"));
    let wrong = |_: &str| Err("it died".to_owned());
    assert_eq!(carry_out("1.2.3", &[], &small(), none(), &wrong, &|_| {}).status, WRONG);
}

/// Something is there and does not work: that is not what a machine without a GPU says.
#[test]
fn a_gpu_that_is_broken_is_no_missing_one() {
    let broken = Err(NoGpu::Broken("listing GPUs: error 999".to_owned()));
    let findings = carry_out("1.2.3", &[], &small(), broken, &unchecked, &|_| {});
    assert_eq!(findings.status, WRONG);
    assert!(findings.to_text().contains("error 999"), "{}", findings.to_text());
}
