//! Completion in bash, with names from the daemon.

use crate::common::place::{Daemon, Place};
use crate::common::{output, program};
use std::path::Path;
use std::time::{Duration, Instant};

/// What bash offers at the end of a line.
const OFFER: &str = r#"
source <(palisade completion bash)
COMP_LINE="$1" COMP_POINT=${#1} COMP_TYPE=9
_palisade_words
if ((${#COMPREPLY[@]})); then printf '%s\n' "${COMPREPLY[@]}"; fi
"#;

/// What is offered for a line; nothing may be said.
fn offered(place: &Place, line: &str) -> Vec<String> {
    let own = Path::new(env!("CARGO_BIN_EXE_palisade")).parent().expect("a directory");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::iter::once(own.to_owned()).chain(std::env::split_paths(&path));
    let mut bash = program("bash");
    bash.args(["--norc", "-c", OFFER, "bash", line]);
    bash.env("PATH", std::env::join_paths(dirs).expect("a path"));
    bash.env_remove("PALISADE_URL").env("PALISADE_SOCKET", place.file("socket"));
    let output = output(bash.current_dir(place.file("")));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.is_empty(), "{line}: {said}");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_names_of_the_daemon() {
    let mut place = Place::new("completion", 16);
    let drives = place.drives(5);
    let daemon = Daemon::start(&place, 1);
    daemon.create("tank", "5", &drives[..3], &[]);
    daemon.create("other", "1", &drives[3..], &[]);
    daemon.volume(&place, "tank/db", "4M");
    daemon.call(&["array", "scrub", "tank", "--check"]);
    daemon.settle("tank");
    let none: [&str; 0] = [];
    let id = daemon.call(&["drive", "list"])["drives"][0]["id"].as_str().expect("an id").to_owned();
    for (line, names) in [
        ("palisade arr", &["array"][..]),
        ("palisade array sh", &["show"]),
        ("palisade array show t", &["tank"]),
        ("palisade array show ", &["other", "tank"]),
        ("palisade array show x", &none),
        ("palisade volume create o", &["other/"]),
        ("palisade volume delete tank/", &["tank/db"]),
        // Bash replaces only what is behind the colon.
        ("palisade export show tank:", &["1"]),
        ("palisade export show t", &["tank:1"]),
        ("palisade array fail tank --drive sl", &none),
        ("palisade explain NoDa", &["NoDaemon"]),
        ("palisade api GET Chassis/loc", &["Chassis/local"]),
    ] {
        let mut found = offered(&place, line);
        found.retain(|name| !name.starts_with('-') && name != "help");
        found.sort();
        assert_eq!(found, names, "{line}");
    }
    let found = offered(&place, &format!("palisade array fail tank --drive {}", &drives[0]));
    assert_eq!(found, [drives[0].as_str()]);
    let found = offered(&place, &format!("palisade drive wipe {id}"));
    assert!(found.iter().any(|name| id.ends_with(name)), "{id}: {found:?}");
    daemon.stop();

    let begun = Instant::now();
    assert_eq!(offered(&place, "palisade array show t"), none);
    // It is asked for once a word, and nobody waits for it.
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn every_shell_has_a_script() {
    for shell in ["bash", "elvish", "fish", "zsh"] {
        let mut palisade = program(env!("CARGO_BIN_EXE_palisade"));
        let output = output(palisade.args(["completion", shell]));
        let script = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && script.contains("PALISADE_COMPLETE"), "{shell}");
    }
}
