//! The program `palisade-test-gpu` as a packed folder starts it.

use std::path::Path;
use std::process::{Command, Output};

fn program(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_palisade-test-gpu"));
    command.args(arguments).current_dir(folder).output().expect("the program runs")
}

/// Some of the vectors, as the whole takes a slow build long; with a GPU its kernels are checked.
#[test]
fn the_processors_kernels_are_checked_without_a_gpu() {
    let folder = tempfile::tempdir().unwrap();
    assert!(program(&["--write-vectors", "all"], folder.path()).status.success());
    let all = std::fs::read_to_string(folder.path().join("all")).unwrap();
    let some: Vec<&str> = all.lines().step_by(20).collect();
    std::fs::write(folder.path().join("some"), some.join("\n")).unwrap();
    let run = program(&["--json", "--vectors", "some"], folder.path());
    let found: serde_json::Value = serde_json::from_slice(&run.stdout).expect("JSON");
    let kernels = found["cpu"].as_array().unwrap();
    assert!(!kernels.is_empty());
    for kernel in kernels {
        assert_eq!(kernel["check"]["done"], some.len(), "{kernel}");
        assert!(kernel["gbps"]["pq"].as_f64().unwrap() > 0.0, "{kernel}");
    }
    if found["gpu"].is_null() {
        assert_eq!(run.status.code(), Some(3));
        assert!(found["problems"][0].as_str().unwrap().starts_with("no NVIDIA GPU"));
    }
}

/// Whatever it is that does not come back.
#[test]
fn who_is_not_done_in_time_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    assert!(program(&["--write-vectors", "all"], folder.path()).status.success());
    let run = program(&["--within", "0", "--vectors", "all"], folder.path());
    assert_eq!((run.status.code(), run.stdout.len()), (Some(1), 0));
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(
        said.contains("not done after 0 s, under way: ") && said.lines().count() == 1,
        "{said}"
    );
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(program(&["--no-such"], folder.path()).status.code(), Some(2));
    assert_eq!(program(&["--vectors", "none"], folder.path()).status.code(), Some(1));
    assert!(program(&["--version"], folder.path()).status.success());
}
