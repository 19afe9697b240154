//! `palisade services` as a process, and what it makes.

use super::place::{Daemon, Place};
use super::{output, program, run, start};
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Child;

/// The process; killed when dropped, with all that it made.
pub struct Services {
    child: Child,
    folder: PathBuf,
}

impl Services {
    /// Starts it beside the daemon of a place, and waits until it knows what is wanted.
    pub fn start(place: &Place) -> Self {
        let folder = place.file("services");
        let mut services = Self { child: Self::spawn(place), folder };
        let out = BufReader::new(services.child.stdout.take().expect("piped"));
        let ready = out.lines().map_while(Result::ok).find(|line| line == "ready");
        assert!(ready.is_some(), "it ended: {}", services.said());
        services
    }

    /// With the rights that its unit gives it, and no others.
    fn spawn(place: &Place) -> Child {
        let mut command = program("setpriv");
        command.arg(format!("--bounding-set=-all{}", rights())).arg("--no-new-privs");
        command.arg(env!("CARGO_BIN_EXE_palisade"));
        // Guests have devices of ublk, with tests of their own.
        command.env("PALISADE_UBLK", "off");
        // What it asks of a service manager a stand-in answers, if there is one.
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", place.file("programs").display()));
        start(command.args(["services", "--config"]).arg(place.file("palisade.toml")))
    }

    /// What it says that can't run.
    pub fn refused(place: &Place) -> String {
        let mut command = program(env!("CARGO_BIN_EXE_palisade"));
        let ended = output(command.args(["services", "--config"]).arg(place.file("palisade.toml")));
        assert_eq!(ended.status.code(), Some(1), "{}", super::text(&ended));
        super::text(&ended)
    }

    /// What it wrote to its standard error, once it has ended.
    fn said(&mut self) -> String {
        let _ = self.child.kill();
        let mut said = String::new();
        if let Some(mut pipe) = self.child.stderr.take() {
            let _ = std::io::Read::read_to_string(&mut pipe, &mut said);
        }
        said
    }

    /// Ends it as a service manager does; what is there then stays.
    pub fn stop(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("told");
        assert!(self.child.wait().expect("waited for").success());
        // Not dropped: that would end what it made.
        core::mem::forget(self);
    }

    /// `kill -9`; what it made stays.
    pub fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("waited for");
        // Not dropped: that would end what it made.
        core::mem::forget(self);
    }

    /// Files and devices of the place's that are there.
    pub fn made(place: &Place) -> Vec<String> {
        let folder = place.file("services");
        let mounts = mounts_of(&folder).into_iter().map(|path| path.display().to_string());
        let shared = share_mounts(&folder).into_iter().map(|path| path.display().to_string());
        mounts.chain(shared).chain(loops_of(&folder)).collect()
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        super::targets::kill(&self.folder);
        for server in share_servers(&self.folder) {
            let _ = kill_process(Pid::from_raw(server).expect("a number"), Signal::KILL);
        }
        for mounted in share_mounts(&self.folder) {
            let _ = unmount(&mounted, UnmountFlags::DETACH);
        }
        let devices = loops_of(&self.folder);
        for link in links() {
            let device = std::fs::read_link(&link).unwrap_or_default();
            if devices.iter().any(|own| device == Path::new(own)) {
                let _ = std::fs::remove_file(&link);
                let _ = std::fs::remove_dir(link.parent().expect("a folder"));
            }
        }
        loops_of(&self.folder).iter().for_each(|device| {
            output(program("losetup").arg("--detach").arg(device));
        });
        for mounted in mounts_of(&self.folder) {
            let _ = unmount(&mounted, UnmountFlags::DETACH);
        }
    }
}

/// The capabilities of its unit, of those that this process may hand on, as setpriv(1) takes them.
fn rights() -> String {
    const UNIT: &str =
        include_str!("../../../../../packaging/debian/palisade.palisade-services.service");
    let bounding = run(program("setpriv").arg("--dump"));
    let bounding = bounding.lines().find_map(|line| line.strip_prefix("Capability bounding set: "));
    let bounding: Vec<&str> = bounding.expect("it is told").split(',').collect();
    let named = UNIT.lines().filter_map(|line| line.strip_prefix("CapabilityBoundingSet="));
    let named = named.flat_map(|names| names.split(' '));
    let named = named.map(|name| name.trim_start_matches("CAP_").to_lowercase());
    named.filter(|name| bounding.contains(&&**name)).map(|name| format!(",+{name}")).collect()
}

/// All links to devices of volumes.
fn links() -> Vec<PathBuf> {
    let all = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let arrays = all(Path::new("/dev/palisade"));
    arrays
        .flat_map(|array| all(&array.path()).map(|link| link.path()).collect::<Vec<_>>())
        .collect()
}

/// Where files are that the process with this folder has mounted.
fn mounts_of(folder: &Path) -> Vec<PathBuf> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").expect("read");
    let source = format!("@{}", folder.display());
    let of = |line: &str| {
        let (place, what) = line.split_once(" - ")?;
        let is_own = what.split(' ').nth(1)?.ends_with(&source);
        is_own.then(|| place.split(' ').nth(4).unwrap_or_default().into())
    };
    text.lines().filter_map(of).collect()
}

/// Processes of servers that have their files below a folder.
pub fn share_servers(folder: &Path) -> Vec<i32> {
    let own = folder.to_str().expect("text").to_owned();
    let mut all = Vec::new();
    for process in std::fs::read_dir("/proc").expect("read").flatten() {
        let Some(id) = process.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        let is_server = ["smbd", "samba", "rpcd", "ganesha"].iter().any(|own| name.contains(own));
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        if is_server && String::from_utf8_lossy(&environment).contains(&own) {
            all.push(id);
        }
    }
    all
}

/// Where file systems are mounted that are shared by the process with this folder.
pub fn share_mounts(folder: &Path) -> Vec<PathBuf> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").expect("read");
    let below = format!("{}.shares/", folder.display());
    let places = text.lines().filter_map(|line| line.split(' ').nth(4));
    places.filter(|place| place.starts_with(&below)).map(Into::into).collect()
}

/// Loop devices over files in a folder.
fn loops_of(folder: &Path) -> Vec<String> {
    let told = output(
        program("losetup")
            .args(["--list", "--noheadings", "--raw"])
            .args(["--output", "NAME,BACK-FILE"]),
    );
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    let folder = folder.display().to_string();
    let of = |line: &str| {
        let (name, file) = line.split_once(' ')?;
        file.starts_with(&folder).then(|| name.to_owned())
    };
    text.lines().filter_map(of).collect()
}

/// What an export's JSON says of it.
pub fn export(daemon: &Daemon, id: &str) -> Value {
    daemon.call(&["export", "show", id])
}
