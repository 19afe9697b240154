//! `palisade bench api`, `bench array`, `bench health`, `bench model`, `bench nvme-tcp`, `bench
//! parity` and `bench remote`, small: their JSON is what is promised, whatever this machine
//! reaches.

use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;
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
    // A cost may be none, or less.
    let cost = result["name"].as_str().unwrap().starts_with("region-map-cost")
        || result["name"] == "guard-cpu-us"
        || result["name"] == "4k-read-depth-1-added-us"
        || result["name"].as_str().unwrap().ends_with("-memory-mib");
    assert!((cost || number("low") > 0.0) && number("low") <= number("value"), "{result}");
    assert!(number("value") <= number("high"), "{result}");
    assert_eq!(result["goal"].is_null(), result["met"].is_null(), "{result}");
}

/// Runs a benchmark that also writes its report to this file: its exit status, what it said, and
/// the report.
fn measured(arguments: &[&OsStr], out: &Path) -> (Option<i32>, String, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
    let run = command.args(arguments).args(["--json", "--out"]).arg(out).output();
    let run = run.expect("palisade runs");
    let errors = String::from_utf8_lossy(&run.stderr).into_owned();
    let text = String::from_utf8(run.stdout).expect("JSON is UTF-8");
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {errors}"));
    assert_eq!(std::fs::read_to_string(out).expect("the file is written"), text);
    assert_eq!(report["schema"], 1);
    (run.status.code(), errors, report)
}

#[test]
fn a_small_array_is_measured() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-array.json");
    let arguments: Vec<_> = SMALL.iter().chain(&["--cores", "2"]).map(OsStr::new).collect();
    let (status, errors, report) = measured(&arguments, &out);
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    assert!(report["machine"].is_object());
    assert!(report["command"].as_str().unwrap().starts_with("palisade bench array --rounds 2"));
    report["results"].as_array().unwrap().iter().for_each(check_result);
    let names = names(&report);
    let mut always = vec!["4k-random-write-array-iops", "128k-sequential-read-raw-gbps"];
    always.extend(["4k-random-read-array-cpu-us", "cores-2-cpu-ratio", "guard-cpu-us"]);
    always.extend(["region-map-cost-cold", "degraded-4k-random-write", "degraded-1m-read"]);
    always.extend(["degraded-4k-random-read", "rebuild", "rebuild-gbps"]);
    always.push("4k-read-depth-1-added-us");
    always.extend(["128k-sequential-write-raid6-4p2", "128k-sequential-write-raid5-7p1"]);
    always.extend(["size-1g-create-ms", "size-64g-start-ms", "size-8t-4k-write-us"]);
    always.push("size-8t-memory-mib");
    if has_fio() {
        always.extend(["raw-vs-fio-4k-read", "raw-vs-fio-4k-write"]);
    } else {
        assert_eq!(status, Some(1), "what is left out fails the run: {errors}");
    }
    for name in always {
        assert!(names.contains(&name), "{name} is missing: {names:?} {errors}");
    }
    let reads = ["4k-random-read", "128k-sequential-read"];
    let writes = ["4k-random-write", "4k-random-mixed", "4k-random-write-hot"];
    let writes = writes.iter().chain(&["128k-sequential-write"]);
    // Where the raw side falls behind fio, all ratios to it are left out.
    for (first, ratios) in [("read", reads.to_vec()), ("write", writes.copied().collect())] {
        let left_out = errors.contains(&format!("not measured: 4k-random-{first}: "));
        for name in ratios {
            let is_said = errors.contains(&format!("not measured: {name}: "));
            let is_there = names.contains(&name);
            assert_eq!((is_there, is_said), (!left_out, left_out), "{name}: {errors}");
        }
    }
    let missing = errors.contains("not measured:");
    assert_eq!(status, Some(i32::from(missing)), "{errors}");
}

#[test]
fn a_model_is_measured_against_its_numbers() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-model.json");
    let words = "bench model d5-p5336 --scale 1/64 --rounds 1 --seconds 0.05";
    let arguments: Vec<_> = words.split(' ').map(OsStr::new).collect();
    let (status, errors, report) = measured(&arguments, &out);
    assert_eq!(status, Some(0), "{errors}");
    assert_eq!(report["model"], serde_json::json!({ "name": "d5-p5336", "scale": 1.0 / 64.0 }));
    let goals: Vec<_> = report["results"].as_array().unwrap().iter().collect();
    let goals = goals.iter().filter(|own| !own["goal"].is_null());
    let goals: Vec<_> = goals.map(|own| (own["name"].as_str().unwrap(), &own["goal"])).collect();
    let mut wanted: Vec<(String, f64)> = Vec::new();
    for what in ["4k-read", "4k-write", "4k-mixed"] {
        wanted.extend([1, 64].map(|depth| (format!("error-{what}-depth-{depth}"), 0.03)));
    }
    wanted.extend(["read", "write"].map(|what| (format!("error-128k-{what}-depth-8"), 0.03)));
    wanted.push(("paced-cpu-us".to_owned(), 0.3));
    assert_eq!(goals.len(), wanted.len(), "{goals:?}");
    for ((name, goal), (wanted, value)) in goals.into_iter().zip(&wanted) {
        assert_eq!((name, goal.as_f64()), (wanted.as_str(), Some(*value)));
    }
    let table = &report["tables"][0];
    assert_eq!(table["columns"], serde_json::json!(["what", "value", "source"]));
    let is_assumed = |row: &Value| row[2].as_str().is_some_and(|own| own.starts_with("assumed"));
    assert!(table["rows"].as_array().unwrap().iter().any(is_assumed));
}

#[test]
fn models_are_listed_and_others_are_refused() {
    let bench = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
        let run = command.args(["bench", "model"]).args(arguments).output().expect("runs");
        let text = |bytes| String::from_utf8(bytes).expect("is UTF-8");
        (run.status.code(), text(run.stdout), text(run.stderr))
    };
    let (status, listed, _) = bench(&["list"]);
    assert_eq!(status, Some(0));
    for text in ["sn840", "pblaze6", "d5-p5336", "assumed", "W, Figure 8"] {
        assert!(listed.contains(text), "{text} is missing: {listed}");
    }
    let (status, _, errors) = bench(&["sn850"]);
    assert_eq!(status, Some(2), "{errors}");
    assert!(errors.contains("use sn840, pblaze6, d5-p5336 or list"), "{errors}");
    let (status, _, errors) = bench(&["sn840", "--scale", "2"]);
    assert_eq!(status, Some(2), "{errors}");
    assert!(errors.contains("1/4"), "{errors}");
}

/// Runs `palisade bench` with these words: its status and what it said.
fn bench(words: &str) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
    let run = command.arg("bench").args(words.split(' ')).output().expect("palisade runs");
    let said = [run.stdout, run.stderr].concat();
    (run.status.code(), String::from_utf8_lossy(&said).into_owned())
}

/// The report within what was said.
fn report_in(said: &str) -> Value {
    let json = said.find("{\n").map(|from| &said[from..=said.rfind('}').expect("ends")]);
    serde_json::from_str(json.unwrap_or_default()).expect("is JSON")
}

#[test]
fn a_sheet_that_can_not_be_measured_is_refused() {
    for (words, text) in [
        ("spec-sheet", "--drives"),
        ("spec-sheet --model nothing --count 8", "use sn840"),
        ("spec-sheet --model sn840", "--count"),
        ("spec-sheet --model sn840 --count 2", "level 5 takes at least 3 drives, not 2"),
        ("spec-sheet --model sn840 --count 65", "1 to 64 drives"),
        ("spec-sheet --memory 64M --count 4 --scale 1/4", "--model"),
        ("spec-sheet --memory 64M --count 4 --level 7", "use jbod"),
        ("spec-sheet --memory 64M --count 4 --area 1M", "at least 64 MiB"),
        ("spec-sheet --memory 64M --count 4 --mix 101", "percentage"),
        ("spec-sheet --memory 64M --count 4 --instances 0", "at least one instance"),
        ("spec-sheet --memory 64M --count 4 --model sn840", "cannot be used with"),
        ("life-cycle --device /dev/null", "bench life-cycle makes an array"),
        ("rebuild --memory 64M --count 4 --level 0", "level 0 has nothing to fill a drive from"),
        ("spec-sheet --memory 64M --count 4 --load fio", "give --drives or --device"),
        ("spec-sheet --memory 64M --count 4 --load ior", "use own or fio"),
        ("spec-sheet --memory 64M --count 4 --keep /tmp", "give --load fio"),
        ("scale --memory 64M --count 4 --hosts 0", "use 1 to 64 hosts"),
        ("scale --memory 64M --count 4 --hosts 3", "give a multiple"),
        ("sweep --memory 64M --count 4 --jobs 1,2 --depth 1", "they are pairs"),
        ("sweep --memory 64M --count 4 --block 3K", "powers of two"),
    ] {
        let (status, said) = bench(words);
        assert_eq!(status, Some(2), "{words}: {said}");
        assert!(said.contains(text), "{words}: {said}");
    }
}

#[test]
fn a_life_cycle_is_shown_before_it_is_run() {
    let (status, said) = bench("life-cycle --model sn840 --count 8 --dry-run");
    assert_eq!(status, Some(0), "{said}");
    for text in ["at the scale auto", "group 0, 7 + 1", "device-rebuild", "8 paced drives sn840"] {
        assert!(said.contains(text), "{text} is missing: {said}");
    }
    assert!(!said.contains("filling"), "nothing was done: {said}");
}

#[test]
fn reports_are_written_in_every_form_and_compared() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (html, csv, out) = (path("a.html"), path("csv"), path("a.json"));
    let words = "sweep --memory 64M --count 1 --block 4K --jobs 1 --depth 4 --profile quick";
    let words = format!("{words} --seconds 0.02 --instances 1 --area 64M");
    let (status, said) = bench(&format!("{words} --html {html} --csv {csv} --out {out}"));
    assert_eq!(status, Some(0), "{said}");
    let page = std::fs::read_to_string(&html).expect("is written");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("single-drive"), "{page}");
    let table = std::fs::read_to_string(dir.path().join("csv/single-drive.csv")).expect("written");
    assert_eq!(table.lines().count(), 4, "{table}");
    let (status, said) = bench(&format!("compare {out} {out}"));
    assert_eq!(status, Some(0), "{said}");
    let mut other: Value =
        serde_json::from_slice(&std::fs::read(&out).expect("is written")).expect("is JSON");
    for result in other["results"].as_array_mut().expect("has results") {
        if result["name"] == "single-drive-4k-random-read-1x4" {
            result["value"] = (result["value"].as_f64().expect("a number") * 0.9).into();
        }
    }
    let worse = path("b.json");
    std::fs::write(&worse, other.to_string()).expect("is written");
    let (status, said) = bench(&format!("compare {out} {worse}"));
    assert_eq!(status, Some(1), "{said}");
    let missed: Vec<&str> = said.lines().filter(|line| line.ends_with("missed")).collect();
    assert!(missed.len() == 1 && missed[0].contains("0.900"), "{said}");
    assert_eq!(bench(&format!("compare {out} {worse} --worse 0.2")).0, Some(0));
    let (status, said) = bench(&format!("compare {out} {html}"));
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("no report of palisade bench"), "{said}");
    // What can't be written does not lose the report.
    let (status, said) =
        bench(&format!("{words} --dry-run --html {}/no/a.html", dir.path().display()));
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("setup:") && said.contains("no/a.html"), "{said}");
}

/// A `fio --server`, ended with it.
struct FioServer(std::process::Child, u16);

impl FioServer {
    fn start() -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|own| own.local_addr());
        let port = free.expect("a port").port();
        let mut command = Command::new("fio");
        command.arg(format!("--server=ip:127.0.0.1,{port}"));
        let null = std::process::Stdio::null;
        let mut child = command.stdout(null()).stderr(null()).spawn().expect("fio is here");
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = child.try_wait().expect("is a child");
            assert!(ended.is_none(), "fio ended: {ended:?}");
            std::thread::yield_now();
        }
        Self(child, port)
    }
}

impl Drop for FioServer {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn three_hosts_of_fio_are_measured_together() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let path = dir.path().join("drive");
    std::fs::write(&path, vec![0; 64 << 20]).expect("a drive");
    let path = path.display();
    let servers: Vec<FioServer> = (0..3).map(|_| FioServer::start()).collect();
    let hosts: Vec<String> = servers.iter().map(|own| format!("127.0.0.1:{}", own.1)).collect();
    let words = format!(
        "scale --drives {path} --hosts {} --area 64M --seconds 0.3 --instances 1 --json",
        hosts.join(",")
    );
    let (status, said) = bench(&words);
    assert_eq!(status, Some(3), "{said}");
    assert!(said.contains("can't be looked at from here"), "{said}");
    let (status, said) = bench(&format!("{words} --destroy-data {path}"));
    assert_eq!(status, Some(0), "{said}");
    let report = report_in(&said);
    for hosts in 1..=3 {
        for workload in ["128k-sequential-read", "4k-random-write"] {
            let name = format!("hosts-{hosts}-{workload}");
            let all = report["results"].as_array().expect("has results");
            let own = all.iter().find(|own| own["name"] == name.as_str());
            assert!(own.is_some_and(|own| own["value"].as_f64() > Some(0.0)), "{name}: {said}");
        }
    }
}

/// Both generators, by the same path.
#[test]
fn the_generator_is_measured_beside_fio() {
    let dir = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let path = dir.path().join("drive");
    std::fs::File::create(&path).and_then(|file| file.set_len(96 << 20)).expect("a drive");
    let words =
        "spec-sheet --profile quick --seconds 0.02 --instances 1 --area 64M --json --device";
    let (status, said) = bench(&format!("{words} {}", path.display()));
    assert_eq!(status, Some(0), "{said}");
    let report = report_in(&said);
    // What takes longer than this run does beside other work is left open; this is not.
    for name in ["generator-vs-fio-4k-read", "generator-vs-fio-4k-write"] {
        assert!(names(&report).contains(&name), "{said}");
    }
}

#[test]
fn drives_with_data_are_kept_unless_they_are_named() {
    let dir = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let path = dir.path().join("drive");
    let content = vec![7; 1 << 20];
    let mut all = content.clone();
    all.extend(vec![0; 15 << 20]);
    std::fs::write(&path, &all).expect("a drive");
    let (status, said) = bench(&format!("spec-sheet --device {} --profile quick", path.display()));
    assert_eq!(status, Some(3), "{said}");
    assert!(said.contains(&format!("--destroy-data {}", path.display())), "{said}");
    assert!(std::fs::read(&path).expect("is there") == all, "nothing was written");
}

/// Each run of a sheet is long; Ctrl-C comes once something is measured.
#[test]
fn ctrl_c_ends_a_sheet_and_wipes_its_array() {
    let dir = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let paths: Vec<_> = (0..3).map(|number| dir.path().join(number.to_string())).collect();
    for path in &paths {
        std::fs::File::create(path).and_then(|file| file.set_len(96 << 20)).expect("a drive");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
    command.args(["bench", "spec-sheet", "--seconds", "0.05", "--instances", "1", "--area", "64M"]);
    command.arg("--drives").args(&paths).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("palisade runs");
    let said = std::io::BufReader::new(child.stderr.take().expect("is piped"));
    let mut lines = std::io::BufRead::lines(said).map_while(Result::ok);
    assert!(lines.any(|line| line == "nominal-128k-sequential-read"), "an array is measured");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("is there");
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.wait().expect("ends").code(), Some(130), "{rest:?}");
    for path in &paths {
        let content = std::fs::read(path).expect("is there");
        let (head, tail) = (&content[..1 << 20], &content[95 << 20..]);
        assert!(format::foreign_signature(head, tail).is_none(), "its record was wiped");
    }
}

/// The results of `bench api` that have goals in a whole run, and their units.
const API_GOALS: [(&str, &str); 10] = [
    ("api-get-p50-ms", "ms"),
    ("api-get-p99-ms", "ms"),
    ("api-get-loaded-p99-ms", "ms"),
    ("api-list-1000-volumes-ms", "ms"),
    ("api-event-p99-ms", "ms"),
    ("api-host-iops", "ratio"),
    ("api-counters-iops", "ratio"),
    ("api-idle-cpu", "ratio"),
    ("api-login-ms", "ms"),
    ("api-memory-mib", "MiB"),
];

#[test]
fn a_small_daemon_is_measured_over_https() {
    let dir = tempfile::Builder::new().prefix("bench-api-").tempdir().expect("a directory");
    let out = dir.path().join("api.json");
    let short = ["bench", "api", "--rounds", "1", "--seconds", "0.05", "--idle-seconds", "0.05"];
    let small = ["--arrays", "1", "--volumes", "3", "--listed", "5", "--dir"];
    let mut arguments: Vec<_> = short.iter().chain(&small).map(OsStr::new).collect();
    arguments.push(dir.path().as_os_str());
    let (status, errors, report) = measured(&arguments, &out);
    assert_eq!(status, Some(0), "{errors}");
    assert!(report["command"].as_str().unwrap().starts_with("palisade bench api --rounds 1"));
    let results = report["results"].as_array().expect("a list");
    for (name, unit) in API_GOALS {
        let own: Vec<_> = results.iter().filter(|result| result["name"] == name).collect();
        assert_eq!(own.len(), 1, "{name}: {errors}");
        assert_eq!(own[0]["unit"], unit, "{name}");
    }
    for result in results {
        let number = |key: &str| result[key].as_f64().expect("a number");
        let (low, value, high) = (number("low"), number("value"), number("high"));
        // What memory grew by may be less than nothing.
        let is_growth = result["name"].as_str().is_some_and(|name| name.contains("-memory-"));
        assert!(is_growth || 0.0 <= low, "{result}");
        assert!(low <= value && value <= high, "{result}");
        assert!(result["goal"].is_null() && result["met"].is_null(), "so small a run: {result}");
    }
    let notes = report["notes"].to_string();
    assert!(notes.contains("4 drives, 1 arrays, 3 volumes; 5 volumes listed"), "{notes}");
    assert!(notes.contains("no goals"), "{notes}");
    let left: Vec<_> = std::fs::read_dir(dir.path()).expect("read").flatten().collect();
    assert_eq!(left.len(), 1, "its folders are gone: {left:?}");
}

#[test]
fn a_daemon_that_can_not_be_made_says_so() {
    let run = Command::new(env!("CARGO_BIN_EXE_palisade"))
        .args(["bench", "api", "--dir", "/nowhere"])
        .output()
        .expect("palisade runs");
    let errors = String::from_utf8_lossy(&run.stderr);
    assert_eq!((run.status.code(), run.stdout.len()), (Some(1), 0), "{errors}");
    assert!(errors.contains("palisade: /nowhere/palisade-bench-"), "{errors}");
}

#[test]
fn a_daemon_that_asks_drives_is_measured_beside_one_that_does_not() {
    let dir = tempfile::Builder::new().prefix("bench-health-").tempdir().expect("a directory");
    let out = dir.path().join("health.json");
    // Turns so short that on a busy machine, too, none has to hold a question of its own.
    let short = ["bench", "health", "--rounds", "1", "--seconds", "0.2", "--idle-seconds", "0.05"];
    let small = ["--drives", "4", "--dir"];
    let mut arguments: Vec<_> = short.iter().chain(&small).map(OsStr::new).collect();
    arguments.push(dir.path().as_os_str());
    let (status, errors, report) = measured(&arguments, &out);
    assert_eq!(status, Some(0), "{errors}");
    let names = names(&report);
    for name in ["health-iops", "health-cpu-us", "health-look-cpu-ms"] {
        assert!(names.contains(&name), "{name}: {names:?} {errors}");
    }
    for result in report["results"].as_array().expect("a list") {
        let number = |key: &str| result[key].as_f64().expect("a number");
        assert!(number("low") <= number("value") && number("value") <= number("high"), "{result}");
        let is_rate = result["name"].as_str().is_some_and(|name| name.contains("iops"));
        assert!(!is_rate || number("low") >= 0.0, "{result}");
        assert!(result["goal"].is_null() && result["met"].is_null(), "so small a run: {result}");
    }
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("4 drives, each asked every 1 s") && notes.contains("no goal"),
        "{notes}"
    );
    let left: Vec<_> = std::fs::read_dir(dir.path()).expect("read").flatten().collect();
    assert_eq!(left.len(), 1, "its folder is gone: {left:?}");
}

#[test]
fn a_target_that_may_use_no_cpu_beside_its_core_is_measured() {
    let small = ["--rounds", "1", "--seconds", "0.01", "--idle-seconds", "0.01"];
    let run = Command::new(env!("CARGO_BIN_EXE_palisade"))
        .args(["bench", "nvme-tcp", "--pin", "--json", "--connections", "8"])
        .args(small)
        .args(["--drive-size", "16M"])
        .output()
        .expect("palisade runs");
    let errors = String::from_utf8_lossy(&run.stderr);
    let report: Value = serde_json::from_slice(&run.stdout).unwrap_or_else(|_| panic!("{errors}"));
    let listed = |key: &str| report[key].as_array().cloned().unwrap_or_default();
    for name in ["4k-read-qd1-us", "4k-read-qd1-pinned-us"] {
        // Where the initiator has no CPU of its own it stays open.
        let all = [listed("results"), listed("open")].concat();
        let found = all.iter().find(|r| r["name"] == name);
        let found = found.unwrap_or_else(|| panic!("{name} is missing: {errors}"));
        assert!(found["value"].is_null() || found["unit"] == "us", "{found}");
        let has_goal = found["goal"].is_number();
        assert_eq!(has_goal, name.contains("pinned") && !found["value"].is_null(), "{found}");
    }
}

/// Without the parts that wait for a path's timers to run out.
#[test]
fn remote_drives_are_measured_from_both_ends() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-remote.json");
    let small = ["bench", "remote", "--only", "drive,array,reset,scaling,idle", "--rounds", "1"];
    let short = ["--seconds", "0.1", "--idle-seconds", "0.05", "--scale", "1/64"];
    let arguments: Vec<_> =
        small.iter().chain(&short).chain(&["--drive-size", "4M"]).map(OsStr::new).collect();
    let (status, errors, report) = measured(&arguments, &out);
    assert_eq!(status, Some(0), "{errors}");
    let listed = |key: &str| report[key].as_array().cloned().unwrap_or_default();
    let all = [listed("results"), listed("open")].concat();
    for name in [
        "remote-4k-read-qd32",
        "remote-qd1-added-us",
        "remote-raid5-4k-read",
        "remote-raid5-4k-write-of-bound",
        "remote-raid5-128k-read",
        "failover-reset-ms",
        "scaling-2",
        "scaling-3",
        "scaling-6",
        "idle-48-paths-cpu",
        "memory-per-path-kib",
    ] {
        // Where CPUs are few or others use them, some stay open.
        let found = all.iter().find(|own| own["name"] == name);
        let found = found.unwrap_or_else(|| panic!("{name} is missing: {errors}"));
        let is_open = found["value"].is_null() && found["reason"].is_string();
        assert!(is_open || found["goal"].is_number() && found["met"].is_boolean(), "{found}");
    }
    assert!(!all.iter().any(|own| own["name"] == "shelf-back-s"), "it was not asked for");
    assert_eq!(report["model"]["name"], "sn840");
    let (status, said) = bench("remote --only disk");
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("silence-timed"), "{said}");
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

/// `palisade bench parity`, small, with these arguments besides.
fn parity(more: &[&str]) -> std::process::Output {
    let small = ["--rounds", "2", "--seconds", "0.001", "--memory-strip", "64K", "--json"];
    Command::new(env!("CARGO_BIN_EXE_palisade"))
        .args(["bench", "parity"])
        .args(small)
        .args(more)
        .output()
        .expect("palisade runs")
}

/// The results of `bench parity` that have goals in a whole run.
const PARITY_GOALS: [&str; 14] = [
    "p-hot",
    "p-memory",
    "pq-hot",
    "pq-memory",
    "pqr-hot",
    "pqr-memory",
    "delta4k-pq-hot",
    "delta4k-pq-memory",
    "recover1-8p2-hot",
    "recover1-8p2-memory",
    "recover2-8p2-hot",
    "recover2-8p2-memory",
    "k16m4-hot",
    "k16m4-memory",
];

/// Whether the tests with ISA-L are skipped, said once. Where tools are required it is an error.
fn no_isal() -> bool {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let there = Command::new("sh")
        .args(["-c", "ldconfig -p | grep -q 'libisal\\.so\\.2 '"])
        .env("PATH", path)
        .status()
        .expect("sh runs");
    if there.success() {
        return false;
    }
    let says = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    let required = says("PALISADE_REQUIRE_TOOLS", "1") || says("CI", "true");
    assert!(!required, "libisal.so.2 is missing: install Debian's libisal2");
    println!("skipped: there is no libisal.so.2 (Debian's libisal2)");
    true
}

#[test]
fn parity_is_measured_against_isal() {
    if no_isal() {
        return;
    }
    let run = parity(&[]);
    let errors = String::from_utf8_lossy(&run.stderr);
    let report: Value =
        serde_json::from_slice(&run.stdout).unwrap_or_else(|e| panic!("{e}: {errors}"));
    assert_eq!(run.status.code(), Some(0), "{errors}");
    assert_eq!(report["schema"], 1);
    report["results"].as_array().unwrap().iter().for_each(check_result);
    let result = |name: &str| {
        let results = report["results"].as_array().unwrap();
        results.iter().find(|r| r["name"] == name).unwrap_or_else(|| panic!("no {name}")).clone()
    };
    for name in PARITY_GOALS {
        assert_eq!(result(name)["unit"], "ratio", "{name}");
        assert_eq!(result(&format!("{name}-isal-gbps"))["unit"], "GB/s");
        assert!(result(&format!("{name}-to-memcpy"))["goal"].is_null());
        assert_eq!(result(&format!("{name}-cpu-us"))["unit"], "us");
    }
    let mut results = report["results"].as_array().unwrap().iter();
    assert!(results.all(|r| r["goal"].is_null()), "so small a run has no goals: {report}");
    for further in ["pqr-4-hot", "recover2-16p2-memory-to-read", "crc32c-24b-hot"] {
        result(further);
    }
    let notes = report["notes"].to_string();
    assert!(notes.contains("parity kernel: ") && notes.contains("libisal.so.2"), "{notes}");
    assert!(notes.contains("no goals: fewer than 15 rounds"), "{notes}");
    assert!(notes.contains("outputs compared with: ISA-L's"), "{notes}");
    #[cfg(target_arch = "x86_64")]
    assert!(notes.contains("ec_encode_data_") && !notes.contains('?'), "names are known: {notes}");
}

#[test]
fn without_isal_nothing_is_compared_with_it() {
    let run = parity(&["--isal", "/nowhere/libisal.so.2"]);
    let errors = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{errors}");
    assert!(errors.contains("not measured: ratios to ISA-L: /nowhere/libisal.so.2"), "{errors}");
    let report: Value = serde_json::from_slice(&run.stdout).expect("the rest is measured");
    let names = names(&report);
    assert!(names.contains(&"pqr-memory-gbps") && names.contains(&"p-hot-to-read"), "{names:?}");
    assert!(PARITY_GOALS.iter().all(|name| !names.contains(name)), "{names:?}");
    assert!(!names.iter().any(|name| name.contains("isal")), "{names:?}");
    let notes = report["notes"].to_string();
    assert!(notes.contains("outputs compared with: plain computation"), "{notes}");
}

/// A library in front of ISA-L's that spoils one coefficient of each matrix of three rows.
const WRONG_MATRIX: &str = r#"
#include <dlfcn.h>
#include <string.h>
void ec_init_tables(int k, int rows, unsigned char *matrix, unsigned char *tables) {
    unsigned char wrong[1024];
    memcpy(wrong, matrix, k * rows);
    if (rows == 3)
        wrong[k + 3] ^= 1;
    void (*right)(int, int, unsigned char *, unsigned char *) =
        dlsym(dlopen("libisal.so.2", RTLD_NOW), "ec_init_tables");
    right(k, rows, wrong, tables);
}
"#;

#[test]
fn a_wrong_coefficient_ends_the_bench() {
    if no_isal() {
        return;
    }
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, library) = (dir.join("wrong-matrix.c"), dir.join("libwrong-matrix.so"));
    std::fs::write(&source, WRONG_MATRIX).expect("the source is written");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-Wl,--no-as-needed", "-o"])
        .args([&library, &source])
        .args(["-l:libisal.so.2", "-ldl"])
        .output()
        .expect("cc runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let run = parity(&["--isal", library.to_str().expect("a path in UTF-8")]);
    let errors = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{errors}");
    assert!(run.stdout.is_empty(), "no result counts");
    let said = "palisade: pqr-hot: output 1 differs from ISA-L's at byte ";
    assert!(errors.contains(said), "{errors}");
}

/// Where there is a GPU it is measured for a moment.
#[test]
fn without_a_gpu_one_line_says_what_to_do() {
    let run = Command::new(env!("CARGO_BIN_EXE_palisade"))
        .args(["bench", "parity", "--gpu", "--json", "--rounds", "1", "--seconds", "0.001"])
        .output()
        .expect("palisade runs");
    let errors = String::from_utf8_lossy(&run.stderr);
    if run.status.success() {
        assert!(String::from_utf8_lossy(&run.stdout).contains("\"resident-pq\""), "{run:?}");
        return;
    }
    assert_eq!((run.status.code(), run.stdout.len()), (Some(3), 0), "{run:?}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains("install NVIDIA's driver"), "{errors}");
}
