//! The steps of the demo, in order.
//!
//! States of the array: made → full → (drives pulled → read → rebuilt) twice → checked →
//! stopped → read from outside. Each step ends with a check of its own; the first that fails ends
//! the demo. Level 0 has no redundancy: nothing is pulled, and it says so.

use super::child::{self, Interrupt};
use super::daemon::{ARRAY, Daemon, VOLUME};
use super::error::DemoError;
use super::place::Place;
use super::plan::Plan;
use super::random::{self, Sum};
use super::report::{Report, Step};
use super::{image, stream, tools};
use serde_json::Value;
use std::fmt::Display;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;
use units::format_size;

/// An address that the daemon chooses the port of, so that nobody else can have it.
pub const ANY_PORT: &str = "127.0.0.1:0";

/// Names of the steps of one pull: the first and the second time.
const PULLS: [[&str; 3]; 2] =
    [["pull", "read-degraded", "rebuild"], ["pull-again", "read-degraded-again", "rebuild-again"]];

/// The array under play.
pub struct Show<'a> {
    plan: &'a Plan,
    place: &'a Place,
    interrupt: &'a Interrupt,
    steps: Vec<Step>,
    /// Drive of each slot.
    slots: Vec<PathBuf>,
    /// Drives made so far.
    made: usize,
    /// NBD URIs of the volume: by Unix socket, by TCP.
    uris: [String; 2],
    /// What was written.
    written: (Sum, u64),
}

/// Plays all steps and prints the report. The error is none where the report tells it.
///
/// # Errors
/// What failed, where the report is not for people.
pub fn play(plan: &Plan, place: &Place, interrupt: &Interrupt) -> Result<(), Option<DemoError>> {
    let mut show = Show::new(plan, place, interrupt);
    let result = show.all();
    show.tell(result)
}

impl<'a> Show<'a> {
    /// Nothing made yet.
    pub fn new(plan: &'a Plan, place: &'a Place, interrupt: &'a Interrupt) -> Self {
        Self {
            plan,
            place,
            interrupt,
            steps: Vec::new(),
            slots: Vec::new(),
            made: 0,
            uris: Default::default(),
            written: ([0; 32], 0),
        }
    }

    /// Prints the report of what was played. The error is none where the report tells it.
    ///
    /// # Errors
    /// What failed, where the report is not for people.
    pub fn tell(self, result: Result<(), DemoError>) -> Result<(), Option<DemoError>> {
        let report = Report {
            schema: 1,
            ok: result.is_ok(),
            level: self.plan.level.clone(),
            drives: self.plan.drives,
            steps: self.steps,
            error: result.as_ref().err().map(ToString::to_string),
        };
        if self.plan.json {
            println!("{}", serde_json::to_value(&report).expect("plain values"));
        } else {
            print!("{}", report.table());
            if result.is_ok() {
                print!("{}", next(self.plan, self.place));
            }
        }
        result.map_err(Some)
    }

    fn all(&mut self) -> Result<(), DemoError> {
        let (level, drives) = (self.plan.level.clone(), self.plan.drives);
        let size = format_size(self.plan.drive_bytes);
        self.say(&format!("{drives} drives of {size} (files in {})", self.place.dir().display()));
        self.step("fill", "filling them with random bytes", Self::fill)?;
        let mut daemon = Daemon::start(self.place, "", self.interrupt)?;
        let result = self.with_daemon(&daemon, &level);
        result.map_err(|why| daemon.cause(why))?;
        self.step("stop", "stopping the array and the daemon", |_| {
            daemon.call(&["array", "stop", ARRAY])?;
            daemon.stop().map(|()| 0)
        })?;
        self.outside()
    }

    fn with_daemon(&mut self, daemon: &Daemon, level: &str) -> Result<(), DemoError> {
        let what = format!("making an array of level {level}");
        self.step("create", &what, |show| show.create(daemon))?;
        self.step("export", "a volume, served by NBD, seen by nbdinfo", |show| {
            show.export(daemon)
        })?;
        self.step("image", "a file system image of files of this machine", Self::image)?;
        self.step("copy-in", "copying it in by nbdcopy", Self::copy_in)?;
        self.step("read-back", "reading it back by a fresh client", Self::read_back)?;
        let pulls = self.plan.pulls();
        if pulls.is_empty() {
            self.say("level 0 has no redundancy: no drive is pulled");
        }
        for (slots, names) in pulls.iter().zip(PULLS) {
            self.outlive(daemon, slots, names)?;
        }
        if !pulls.is_empty() {
            self.step("scrub", "comparing redundancy with the data", |show| show.scrub(daemon))?;
        }
        self.step("e2fsck", "checking the file system that was read back", |show| {
            image::check(&show.place.read_back(), show.interrupt).map(|()| show.written.1)
        })?;
        self.step("qemu-compare", "comparing volume and image by qemu-img", Self::compare)
    }

    /// Drives are pulled while clients read; everything is read; replacements are filled.
    fn outlive(
        &mut self,
        daemon: &Daemon,
        slots: &[usize],
        names: [&'static str; 3],
    ) -> Result<(), DemoError> {
        let list: Vec<String> = slots.iter().map(ToString::to_string).collect();
        let list = list.join(" and ");
        self.step(
            names[0],
            &format!("pulling the drive of slot {list} while a client reads: failed, overwritten"),
            |show| show.pull(daemon, slots),
        )?;
        self.step(names[1], "reading everything by a fresh client", Self::read_back)?;
        let drives: Vec<PathBuf> =
            slots.iter().map(|_| self.new_drive()).collect::<Result<_, _>>()?;
        self.step(names[2], &format!("rebuilding slot {list} on a replacement"), |show| {
            show.rebuild(daemon, slots, drives)
        })
    }

    /// Does one step and records it. `run` returns the bytes it moved.
    pub fn step(
        &mut self,
        name: &'static str,
        what: &str,
        run: impl FnOnce(&mut Self) -> Result<u64, DemoError>,
    ) -> Result<(), DemoError> {
        self.interrupt.check()?;
        self.say(what);
        let start = Instant::now();
        let result = run(self);
        let seconds = start.elapsed().as_secs_f64();
        let bytes = *result.as_ref().unwrap_or(&0);
        self.steps.push(Step::new(name, bytes, seconds, result.is_ok()));
        result.map(|_| ())
    }

    /// Says what is done, to people.
    pub fn say(&self, what: &str) {
        if !self.plan.json {
            println!("{what}");
        }
    }

    /// A new drive full of random bytes; returns its file.
    pub fn new_drive(&mut self) -> Result<PathBuf, DemoError> {
        let path = self.place.drive(self.made);
        self.made += 1;
        random::overwrite(&path, self.plan.drive_bytes, self.made as u64, self.interrupt)?;
        Ok(path)
    }

    /// Makes the drives.
    pub fn fill(&mut self) -> Result<u64, DemoError> {
        for _ in 0..self.plan.drives {
            let path = self.new_drive()?;
            self.slots.push(path);
        }
        let mut bytes = 0;
        for path in &self.slots {
            bytes += std::fs::metadata(path).map_err(DemoError::file(path))?.len();
        }
        expect(bytes, self.plan.drives as u64 * self.plan.drive_bytes, "bytes of drives")?;
        Ok(bytes)
    }

    /// Takes drives that are there already for the array's slots.
    pub fn take(&mut self, drives: Vec<PathBuf>) {
        self.slots = drives;
    }

    /// Makes the array and waits until it can be used.
    pub fn create(&mut self, daemon: &Daemon) -> Result<u64, DemoError> {
        let mut words = vec!["array", "create", ARRAY, "--level", &self.plan.level];
        if let Some(strip) = &self.plan.strip {
            words.extend(["--strip", strip]);
        }
        words.push("--drives");
        let paths: Vec<String> =
            self.slots.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        words.extend(paths.iter().map(String::as_str));
        daemon.call(&words)?;
        let shown = daemon.settle("creation", "optimal")?;
        let slots = shown["slots"].as_array().map_or(0, Vec::len);
        expect(slots as u64, self.plan.drives as u64, "slots")?;
        expect_text(&shown["level"], &self.plan.level)?;
        Ok(self.plan.drives as u64 * self.plan.drive_bytes)
    }

    /// Makes a volume of the whole array and serves it by a Unix socket and by TCP.
    fn export(&mut self, daemon: &Daemon) -> Result<u64, DemoError> {
        let bytes = make_volume(daemon)?;
        let socket = format!("unix:{}", self.place.nbd_socket().display());
        self.uris = [make_export(daemon, &socket)?, make_export(daemon, ANY_PORT)?];
        for uri in &self.uris {
            let seen = child::run(tools::program("nbdinfo").args(["--size", uri]), self.interrupt)?;
            let seen = String::from_utf8_lossy(&seen).trim().parse().unwrap_or(0);
            expect(seen, bytes, "bytes of the volume that nbdinfo sees")?;
        }
        self.written.1 = bytes;
        Ok(0)
    }

    fn image(&mut self) -> Result<u64, DemoError> {
        let path = self.place.image();
        let files = image::make(&path, self.written.1, self.interrupt)?;
        let (sum, bytes) = random::sum_of_file(&path, self.interrupt)?;
        expect(bytes, self.written.1, "bytes of the image")?;
        self.written.0 = sum;
        self.say(&format!("  {files} files, SHA-256 {}", hex(&sum)));
        Ok(bytes)
    }

    fn copy_in(&mut self) -> Result<u64, DemoError> {
        let mut command = tools::program("nbdcopy");
        command.arg("--flush").arg(self.place.image()).arg(&self.uris[0]);
        child::run(&mut command, self.interrupt)?;
        Ok(self.written.1)
    }

    fn read_back(&mut self) -> Result<u64, DemoError> {
        let path = self.place.read_back();
        let _ = std::fs::remove_file(&path);
        let mut command = tools::program("nbdcopy");
        command.arg("--flush").arg(&self.uris[0]).arg(&path);
        child::run(&mut command, self.interrupt)?;
        let read = random::sum_of_file(&path, self.interrupt)?;
        if read == self.written {
            return Ok(read.1);
        }
        Err(DemoError::Wrong(format!(
            "read back: {} bytes with SHA-256 {}; written: {} with {}",
            read.1,
            hex(&read.0),
            self.written.1,
            hex(&self.written.0)
        )))
    }

    fn pull(&mut self, daemon: &Daemon, slots: &[usize]) -> Result<u64, DemoError> {
        let reader = || {
            let mut command = tools::program("nbdcopy");
            command.args([&self.uris[0], "-"]);
            command
        };
        self.pull_during(daemon, slots, (&reader, self.written))
    }

    /// Pulls the drives of slots while a client reads.
    pub fn pull_during(
        &self,
        daemon: &Daemon,
        slots: &[usize],
        (reader, expected): (&(dyn Fn() -> Command + Sync), (Sum, u64)),
    ) -> Result<u64, DemoError> {
        stream::read_during(reader, expected, self.interrupt, || {
            for slot in slots {
                let path = &self.slots[*slot];
                let text = path.to_string_lossy();
                daemon.call(&["array", "fail", ARRAY, "--drive", &text])?;
                let seed = 1000 + *slot as u64;
                random::overwrite(path, self.plan.drive_bytes, seed, self.interrupt)?;
            }
            let shown = daemon.show()?;
            expect_text(&shown["state"], "degraded")?;
            slots.iter().try_for_each(|slot| expect_text(&shown["slots"][*slot]["state"], "failed"))
        })
    }

    /// Rebuilds slots on these drives.
    pub fn rebuild(
        &mut self,
        daemon: &Daemon,
        slots: &[usize],
        drives: Vec<PathBuf>,
    ) -> Result<u64, DemoError> {
        for (slot, path) in slots.iter().zip(drives) {
            let (number, text) = (slot.to_string(), path.to_string_lossy().into_owned());
            daemon.call(&["array", "replace", ARRAY, "--slot", &number, "--with", &text])?;
            self.slots[*slot] = path;
        }
        daemon.settle("rebuild", "optimal")?;
        Ok(slots.len() as u64 * self.plan.drive_bytes)
    }

    /// Compares redundancy with the data.
    pub fn scrub(&mut self, daemon: &Daemon) -> Result<u64, DemoError> {
        daemon.call(&["array", "scrub", ARRAY, "--check"])?;
        let shown = daemon.settle("scrub", "optimal")?;
        let found = &shown["last_scrub"];
        match (found["checked_bytes"].as_u64(), found["mismatches"].as_u64()) {
            (Some(bytes), Some(0)) if bytes > 0 => Ok(bytes),
            _ => Err(DemoError::Wrong(format!("the scrub found {found}"))),
        }
    }

    fn compare(&mut self) -> Result<u64, DemoError> {
        let mut command = tools::program("qemu-img");
        command.args(["compare", "-f", "raw", "-F", "raw"]);
        command.arg(self.place.image()).arg(&self.uris[1]);
        child::run(&mut command, self.interrupt)?;
        Ok(self.written.1)
    }

    /// A program of other make reads the drives at rest.
    fn outside(&mut self) -> Result<(), DemoError> {
        let script = match tools::read_array() {
            Ok(script) => script,
            Err(why) => {
                eprintln!("palisade demo: script/read-array is not used: {why}");
                return Ok(());
            }
        };
        self.step("outside-check", "script/read-array checks the drives' redundancy", |show| {
            let mut command = tools::python(&script);
            command.arg("--check").args(&show.slots);
            child::run(&mut command, show.interrupt)?;
            Ok(show.plan.drives as u64 * show.plan.drive_bytes)
        })?;
        self.step("outside-read", "script/read-array reads the volume from the drives", |show| {
            let mut command = tools::python(&script);
            let volume = VOLUME.trim_start_matches(ARRAY).trim_start_matches('/');
            command.args(["--volume", volume]).args(&show.slots);
            let read = stream::sum_of_output(&mut command, show.interrupt)?;
            if read == show.written {
                return Ok(read.1);
            }
            Err(DemoError::Wrong("script/read-array reads other bytes than were written".into()))
        })
    }
}

/// Makes a volume of all the array holds; returns its size in bytes.
///
/// # Errors
/// If the daemon refuses.
pub fn make_volume(daemon: &Daemon) -> Result<u64, DemoError> {
    let bytes = array_bytes(daemon)?;
    daemon.call(&["volume", "create", VOLUME, "--size", &bytes.to_string()])?;
    Ok(bytes)
}

/// What the array holds, in bytes.
///
/// # Errors
/// If the daemon does not say.
pub fn array_bytes(daemon: &Daemon) -> Result<u64, DemoError> {
    Ok(daemon.show()?["size_bytes"].as_u64().unwrap_or(0))
}

/// Serves the volume at an address; returns the URI by which clients name it.
///
/// # Errors
/// If the daemon refuses, or does not serve.
pub fn make_export(daemon: &Daemon, address: &str) -> Result<String, DemoError> {
    let made = daemon.call(&["export", "create", VOLUME, "--nbd", address])?;
    text(&made, "uri")
}

/// What `export create` says of an export.
///
/// # Errors
/// If it does not.
pub fn text(
    made: &Value,
    key: impl serde_json::value::Index + Display + Copy,
) -> Result<String, DemoError> {
    let missing = || DemoError::Wrong(format!("`export create` names no {key}: {made}"));
    made[key].as_str().map(str::to_owned).ok_or_else(missing)
}

fn expect(found: u64, expected: u64, what: &str) -> Result<(), DemoError> {
    if found == expected {
        return Ok(());
    }
    Err(DemoError::Wrong(format!("{found} {what}, not {expected}")))
}

fn expect_text(found: &Value, expected: &str) -> Result<(), DemoError> {
    if found == expected {
        return Ok(());
    }
    Err(DemoError::Wrong(format!("`array show` says {found}, not {expected:?}")))
}

/// A sum in digits.
pub fn hex(sum: &Sum) -> String {
    sum.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What to try next.
fn next(plan: &Plan, place: &Place) -> String {
    let other = if plan.level == "6" { "10" } else { "6" };
    let mut text = format!(
        "\nall as it should be. Next:\n\
         \x20 palisade demo --level {other}      another level\n\
         \x20 palisade demo --serve        an array to play with; prints how to connect\n\
         \x20 palisade demo --share        a file share that outlives a drive\n"
    );
    if plan.keep {
        text += &format!(
            "  palisade serve --config {}      this array again; it was stopped cleanly\n",
            place.config().display()
        );
    } else {
        text += "  palisade demo --dir DIR      keeps the drives for a look\n";
    }
    text
}
