//! The daemon on NVMe drives that can be unplugged: it runs in an emulated machine with them.
//!
//! The checks are those of `script/guest.d/drives.sh`, which run in the guest, beside the daemon.
//! What has to happen to the drives they ask `script/guest` for. All of them have one boot, which
//! takes long.
//!
//! As the tests of [`crate::guest`] it has a name that ends with `is_a_host`.

use crate::common::{required, skip};
use crate::guest::guest;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The checks that are run, in order.
const CHECKS: &[&str] = &[
    "inventory",
    "smart",
    "smart_warning",
    "power",
    "write_read",
    "unplug_under_load",
    "unplug_idle",
    "cable",
];

/// The check that a browser of this machine leads.
const CONSOLE: &str = "console";

/// A browser that looks at the daemon in the guest, and says what happens there meanwhile.
///
/// Each side waits for the other: the guest's events are answered with what the browser asks for,
/// the browser is answered with how that ended.
struct Browser {
    tests: Child,
    answers: ChildStdin,
    asked: BufReader<ChildStdout>,
}

impl Browser {
    /// The console's tests that need a daemon and its drives, at this address.
    fn begin(address: &str, user: &str, password: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../script/console");
        let url = format!("https://{address}");
        let words = ["test", &url, user, password, "--", "lifeOfAnArray"];
        let mut command = Command::new(script);
        command.args(words).env("PALISADE_MACHINE", "yes");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut tests = command.spawn().expect("bash starts it");
        let answers = tests.stdin.take().expect("piped");
        let asked = BufReader::new(tests.stdout.take().expect("piped"));
        Self { tests, answers, asked }
    }

    /// The answer to the guest's event: what the browser asks for next, or how its tests ended.
    fn next(&mut self) -> String {
        for line in self.asked.by_ref().lines() {
            let line = line.expect("text");
            match line.strip_prefix("@ ") {
                Some(asked) => return format!("go {asked}"),
                None => println!("{line}"),
            }
        }
        match self.tests.wait().expect("waited for").success() {
            true => "go end".to_owned(),
            false => "the tests in the browser failed".to_owned(),
        }
    }
}

/// Whoever is outside: hears where the guest is, and has a browser for it.
#[derive(Default)]
struct Outside {
    address: Option<String>,
    browser: Option<Browser>,
}

impl Outside {
    fn line_came(&mut self, line: &str, guest: &mut ChildStdin) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match words[..] {
            ["forward", address, "443"] => {
                self.address = Some(address.to_owned());
                return;
            }
            ["@", CONSOLE, "begin", user, password] if has_chromium() => {
                let address = self.address.as_deref().expect("told before the guest starts");
                self.browser.insert(Browser::begin(address, user, password)).next()
            }
            ["@", CONSOLE, "begin", ..] => "no Chromium is here".to_owned(),
            ["@", CONSOLE, ref outcome @ ..] => {
                let browser = self.browser.as_mut().expect("it asked for this");
                // One that is gone says so below.
                let _ = writeln!(browser.answers, "{}", outcome.join(" "));
                browser.next()
            }
            _ => return,
        };
        writeln!(guest, "{answer}").expect("the guest listens");
    }
}

/// Whether there is a browser; where tools are required, `script/console` installs it.
fn has_chromium() -> bool {
    let named = std::env::var_os("PALISADE_CHROMIUM").unwrap_or("/usr/bin/chromium".into());
    required() || Path::new(&named).is_file()
}

#[test]
fn linux_6_12_with_nvme_drives_is_a_host() {
    let machine = ["run", "6.12", "--nvme", "4", "--nvme-size", "128", "--time-limit", "7200"];
    let outside = ["--events", "--forward", "0:443"];
    let program = ["--palisade", env!("CARGO_BIN_EXE_palisade"), "--", "drives"];
    // What the console's check leaves where it fails would be in the way of others.
    let words = [&machine[..], &outside, &program, CHECKS, &[CONSOLE]].concat();
    let mut own = Outside::default();
    let Some(said) = guest(&words, |line, input| own.line_came(line, input)) else { return };
    for check in CHECKS {
        assert!(said.contains(&format!("ok {check} ")), "{check}: {said}");
    }
    if !said.contains("ok console ") {
        skip("no Chromium");
    }
}
