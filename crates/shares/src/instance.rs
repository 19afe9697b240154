//! A server that serves one file system: its folder, and its processes.
//!
//! A server is no child that ends with this process: who has its files goes on when this process
//! ends, and the next one finds it. Its main process holds a lock of a file in the folder; others
//! are its own, and begin more. All of them have the folder in their environment, or a file open
//! there: by that they are found to be ended, also after their main process has.

use crate::program::Program;
use crate::system::{gone, holder, private, reap, replace};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// By what a process says whose it is.
const MARK: &str = "PALISADE_SERVER";
/// How long processes may take to end.
const ENDS: Duration = Duration::from_secs(10);
/// How long a server may take to serve.
const COMES: Duration = Duration::from_secs(30);
/// How often it is looked whether they have, and whether it does.
const LOOK: Duration = Duration::from_millis(20);
/// Most bytes of what a server said that are looked at, and that are kept.
const SAID: u64 = 16 << 10;
const LOG_MOST: u64 = 1 << 20;

/// A server's folder.
#[derive(Clone, Debug)]
pub struct Instance {
    folder: PathBuf,
}

impl Instance {
    /// With its files in this folder, whose path leads through no links.
    pub const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// A file there.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn log(&self) -> PathBuf {
        self.file("log")
    }

    /// Makes the folder, if it is not there.
    ///
    /// # Errors
    /// It can't be made.
    pub fn make(&self) -> io::Result<()> {
        private(&self.folder)
    }

    /// Writes a file there, that nobody else may read; whether it was other before.
    ///
    /// # Errors
    /// It can't be written.
    pub fn put(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        let path = self.file(name);
        if std::fs::read(&path).is_ok_and(|own| own == bytes) {
            return Ok(false);
        }
        replace(&path, &self.file(&format!("{name}.new")), bytes)?;
        Ok(true)
    }

    /// What the server is known to have read of a file there that it reads anew when it is told
    /// to: whoever wrote it may have ended before telling.
    pub fn known(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(&format!("{name}.known"))).unwrap_or_default()
    }

    /// Keeps that the server has read this of a file there.
    ///
    /// # Errors
    /// It can't be written.
    pub fn set_known(&self, name: &str, text: &str) -> io::Result<()> {
        self.put(&format!("{name}.known"), text.as_bytes()).map(drop)
    }

    /// The process that holds the lock of a file there.
    ///
    /// # Errors
    /// That can't be told.
    pub fn holder(&self, name: &str) -> io::Result<Option<Pid>> {
        holder(&self.file(name))
    }

    /// Starts the server, and waits until it serves: `serves` says that, or why it does not yet.
    /// `complaints` are what of its log tells why.
    ///
    /// # Errors
    /// It has ended, or does not serve in time: in its own words, if it has some. `NotFound`: a
    /// program is missing, or who asks.
    pub fn start(
        &self,
        (program, server): (Program, &mut Command),
        serves: impl Fn() -> io::Result<()>,
        complaints: impl Fn(&str) -> String,
    ) -> io::Result<()> {
        let from = self.begin_log()?;
        let started = self.begin((program, server), serves);
        started.map_err(|why| {
            let _ = self.end();
            if why.kind() == ErrorKind::NotFound {
                return why;
            }
            let said = complaints(&self.said(from));
            let said = if said.is_empty() { why.to_string() } else { said };
            io::Error::other(format!("{}: {said}", program.name))
        })
    }

    fn begin(
        &self,
        (program, server): (Program, &mut Command),
        serves: impl Fn() -> io::Result<()>,
    ) -> io::Result<()> {
        let log = File::options().append(true).create(true).mode(0o600).open(self.log())?;
        server.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        // A signal of the terminal is not its.
        server.env(MARK, &self.folder).current_dir("/").process_group(0);
        let is_missing = |error: &io::Error| error.kind() == ErrorKind::NotFound;
        let spawned = server.spawn();
        let mut child =
            spawned.map_err(|error| if is_missing(&error) { program.missing() } else { error })?;
        let end = Instant::now() + COMES;
        loop {
            let Err(why) = serves() else {
                reap(child);
                return Ok(());
            };
            let has_ended = child.try_wait()?.is_some();
            if has_ended || is_missing(&why) || Instant::now() > end {
                let _ = child.kill();
                let _ = child.wait();
                return Err(why);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Ends all its processes.
    ///
    /// # Errors
    /// Some don't end.
    pub fn end(&self) -> io::Result<()> {
        let end = Instant::now() + ENDS;
        loop {
            let all = processes(&self.folder);
            let Some(one) = all.first() else { return Ok(()) };
            for process in &all {
                let _ = kill_process(*process, Signal::KILL);
            }
            if Instant::now() > end {
                let what = format!("process {} can't be ended", one.as_raw_nonzero());
                return Err(io::Error::other(what));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Removes its folder: it has no processes.
    ///
    /// # Errors
    /// It can't be removed.
    pub fn clear(&self) -> io::Result<()> {
        gone(std::fs::remove_dir_all(&self.folder))
    }

    /// How much the server has said, so that what it says from here on is known; a log that has
    /// become long begins anew.
    ///
    /// # Errors
    /// The log can't be had.
    pub fn begin_log(&self) -> io::Result<u64> {
        let log = File::options().append(true).create(true).mode(0o600).open(self.log())?;
        if log.metadata()?.len() > LOG_MOST {
            log.set_len(0)?;
        }
        Ok(log.metadata()?.len())
    }

    /// What the server has said from there on, at most the last of it.
    pub fn said(&self, from: u64) -> String {
        let mut said = Vec::new();
        let read = File::open(self.log()).and_then(|mut file| {
            let from = file.metadata()?.len().saturating_sub(SAID).max(from);
            file.seek(SeekFrom::Start(from))?;
            file.take(SAID).read_to_end(&mut said)
        });
        match read {
            Ok(_) => String::from_utf8_lossy(&said).into_owned(),
            Err(error) => format!("{}: {error}", self.log().display()),
        }
    }
}

/// Processes of the server with this folder. Those of this program are none: what is about to
/// become a server is this program until then.
fn processes(folder: &Path) -> Vec<Pid> {
    let own = std::fs::read_link("/proc/self/exe").ok();
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let id = process.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(id) = id.and_then(Pid::from_raw) else { continue };
        let path = process.path();
        let exe = std::fs::read_link(path.join("exe")).ok();
        if exe.is_some() && exe != own && (is_marked(&path, folder) || has_open(&path, folder)) {
            found.push(id);
        }
    }
    found
}

/// Whether a process says that it is of the server with this folder (proc(5), `environ`).
fn is_marked(process: &Path, folder: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let environment = std::fs::read(process.join("environ")).unwrap_or_default();
    let own = [MARK.as_bytes(), b"=", folder.as_os_str().as_bytes()].concat();
    environment.split(|byte| *byte == 0).any(|variable| variable == own)
}

fn has_open(process: &Path, folder: &Path) -> bool {
    let open = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let leads_there = |path: PathBuf| path.starts_with(folder);
    open.into_iter().any(|fd| std::fs::read_link(fd.path()).is_ok_and(leads_there))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SH: Program = Program { name: "sh", package: "dash" };

    fn instance() -> (tempfile::TempDir, Instance) {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().canonicalize().expect("there").join("server");
        let own = Instance::new(folder);
        own.make().expect("made");
        (place, own)
    }

    /// Starts a shell that does something, and waits until it has made a file.
    fn start(own: &Instance, what: &str) {
        let mut sh = Command::new("sh");
        let there = || match own.file("there").exists() {
            true => Ok(()),
            false => Err(ErrorKind::WouldBlock.into()),
        };
        let sh = sh.args(["-c", what, own.file("there").to_str().expect("text")]);
        own.start((SH, sh), there, str::to_owned).expect("it serves");
    }

    #[test]
    fn all_processes_of_a_server_are_ended() {
        let (_place, own) = instance();
        // One has another environment, and one has nothing open.
        start(
            &own,
            "env -i sleep 600 & sleep 600 >/dev/null 2>&1 </dev/null & : >\"$0\"; sleep 600",
        );
        assert!(processes(&own.folder).len() >= 3);
        let other = Instance::new(own.folder.with_extension("b"));
        other.end().expect("it has none");
        assert!(processes(&own.folder).len() >= 3);
        own.end().expect("ended");
        assert_eq!(processes(&own.folder), []);
        own.clear().expect("removed");
        own.clear().expect("is gone");
    }

    #[test]
    fn a_server_that_ends_is_told_with_its_words() {
        let (_place, own) = instance();
        let from = own.begin_log().expect("a log");
        let mut sh = Command::new("sh");
        let never = || Err(io::Error::other("not yet"));
        let told = own
            .start((SH, sh.args(["-c", "echo no such luck"])), never, str::to_owned)
            .expect_err("ended");
        assert_eq!(told.to_string(), "sh: no such luck\n");
        assert_eq!(own.said(from), "no such luck\n");
        assert_eq!(own.said(own.begin_log().expect("a log")), "");
    }

    #[test]
    fn a_program_that_is_missing_is_not_waited_for() {
        let (_place, own) = instance();
        let none = Program { name: "palisade-no-such", package: "other" };
        let told = own
            .start((none, &mut Command::new(none.name)), || Ok(()), str::to_owned)
            .expect_err("none");
        assert_eq!(told.to_string(), none.missing().to_string());
        // Who asks is missing: nobody can say whether it serves.
        let begun = Instant::now();
        let mut sleeps = Command::new("sleep");
        let told = own
            .start((SH, sleeps.arg("600")), || Err(none.missing()), str::to_owned)
            .expect_err("none");
        assert_eq!(told.to_string(), none.missing().to_string());
        assert!(begun.elapsed() < COMES && processes(&own.folder).is_empty());
    }

    #[test]
    fn a_file_is_written_once() {
        use std::os::unix::fs::PermissionsExt;
        let (_place, own) = instance();
        assert!(own.put("conf", b"one").expect("written"));
        assert!(!own.put("conf", b"one").expect("the same"));
        assert!(own.put("conf", b"two").expect("written"));
        let about = std::fs::metadata(own.file("conf")).expect("there");
        assert_eq!(about.permissions().mode() & 0o777, 0o600);
        assert_eq!(own.holder("conf").expect("told"), None);
    }
}
