//! `palisade bench array`, small: its JSON is what is promised, whatever this machine reaches.

use serde_json::Value;
use std::process::Command;

const SMALL: [&str; 8] =
    ["bench", "array", "--rounds", "2", "--seconds", "0.05", "--drive-size", "64M"];

fn has_fio() -> bool {
    Command::new("fio").arg("--version").output().is_ok_and(|o| o.status.success())
}

fn names(report: &Value) -> Vec<&str> {
    let results = report["results"].as_array().expect("results is a list");
    results.iter().map(|r| r["name"].as_str().expect("a name is text")).collect()
}

fn check_result(result: &Value) {
    let keys: Vec<_> = result.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["goal", "high", "low", "met", "name", "unit", "value"], "{result}");
    let number = |key: &str| result[key].as_f64().expect("a number");
    assert!(number("low") > 0.0 && number("low") <= number("value"), "{result}");
    assert!(number("value") <= number("high"), "{result}");
    assert_eq!(result["goal"].is_null(), result["met"].is_null(), "{result}");
}

#[test]
fn a_small_array_is_measured() {
    let out = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-array.json");
    let run = Command::new(env!("CARGO_BIN_EXE_palisade"))
        .args(SMALL)
        .args(["--cores", "2", "--json", "--out"])
        .arg(&out)
        .output()
        .expect("palisade runs");
    let errors = String::from_utf8_lossy(&run.stderr);
    let text = String::from_utf8(run.stdout).expect("JSON is UTF-8");
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {errors}"));
    assert_eq!(std::fs::read_to_string(out).expect("the file is written"), text);
    assert_eq!(report["schema"], 1);
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    assert!(report["machine"].is_object());
    assert!(report["command"].as_str().unwrap().starts_with("palisade bench array --rounds 2"));
    report["results"].as_array().unwrap().iter().for_each(check_result);
    let names = names(&report);
    let mut always = vec!["4k-random-write-array-iops", "128k-sequential-read-raw-gbps"];
    always.extend(["4k-random-read-array-cpu-us", "cores-2-cpu-ratio"]);
    if has_fio() {
        always.extend(["raw-vs-fio-4k-read", "raw-vs-fio-4k-write"]);
    } else {
        assert_eq!(run.status.code(), Some(1), "what is left out fails the run: {errors}");
    }
    for name in always {
        assert!(names.contains(&name), "{name} is missing: {names:?} {errors}");
    }
    let ratios = ["4k-random-read", "128k-sequential-read"];
    let reads = ratios.map(|name| names.contains(&name));
    let left_out = errors.contains("not measured: 4k-random-read");
    assert_eq!(reads, [!left_out; 2], "a ratio is there or said to be left out: {errors}");
    let missing = errors.contains("not measured:");
    assert_eq!(run.status.code(), Some(i32::from(missing)), "{errors}");
}

#[test]
fn nonsense_is_refused() {
    for (flag, value) in [("--seconds", "0"), ("--drive-size", "much"), ("--cores", "3")] {
        let run = Command::new(env!("CARGO_BIN_EXE_palisade"))
            .args(["bench", "array", flag, value])
            .output()
            .expect("palisade runs");
        assert_eq!(run.status.code(), Some(2), "{flag} {value}");
        assert!(run.stdout.is_empty());
    }
    let run = Command::new(env!("CARGO_BIN_EXE_palisade"))
        .args(["bench", "array", "--drive-size", "100000G"])
        .output()
        .expect("palisade runs");
    assert_eq!(run.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&run.stderr).contains("free"), "{run:?}");
}
