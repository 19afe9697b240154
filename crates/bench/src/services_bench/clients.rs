//! Who reads: clients that others keep, the same on both sides. What each does in one turn, and how
//! that is told.

use super::place::USER;
use crate::error::BenchError;
use crate::remote::process::failed;
use crate::stats::Sample;
use iscsi::{Name, UNIT};
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use units::MIB;

/// Requests of an initiator in flight.
const DEPTH: &str = "32";
/// Requests of its first turn, when it is not known how long they take.
pub const FIRST: u64 = 1000;
/// Blocks of 4 KiB from one request of an initiator to the next: odd, so that all of a power of two
/// are read before one is read again.
const STEP: u64 = 10_007;

/// Runs a client, which has to succeed; what it said on both outputs.
fn run(command: &mut Command, what: &str) -> Result<String, BenchError> {
    let output = command.stdin(Stdio::null()).env("LC_ALL", "C").output();
    let output = output.map_err(|error| failed(what, &error))?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    match output.status.success() {
        true => Ok(said),
        false => Err(failed(what, &said.trim_end())),
    }
}

/// An initiator: `qemu-img bench`, with libiscsi.
pub struct Initiator {
    options: String,
    /// Requests per second in the turn before.
    rate: Option<f64>,
}

impl Initiator {
    /// Of a target.
    pub fn new(portal: SocketAddr, target: &Name, initiator: &Name) -> Self {
        let options = format!(
            "driver=iscsi,transport=tcp,portal={portal},target={target},lun={UNIT},\
             initiator-name={initiator}"
        );
        Self { options, rate: None }
    }

    /// Reads 4 KiB at a time for about this long.
    pub fn read(&mut self, span: Duration) -> Result<Sample, BenchError> {
        let count = self.rate.map_or(FIRST, |rate| (rate * span.as_secs_f64()).ceil() as u64);
        let (count, step) = (count.max(1), STEP * 4096);
        let mut command = Command::new("qemu-img");
        command.args(["bench", "-d", DEPTH, "-s", "4096", "-S", &step.to_string()]);
        command.args(["-c", &count.to_string(), "--image-opts", &self.options]);
        let said = run(&mut command, "qemu-img")?;
        let elapsed = completed(&said).ok_or_else(|| failed("qemu-img", &said.trim_end()))?;
        let sample = Sample { operations: count, elapsed, cpu: Duration::ZERO };
        self.rate = Some(sample.rate());
        Ok(sample)
    }
}

/// How long `qemu-img bench` says that its requests took.
fn completed(said: &str) -> Option<Duration> {
    let (_, rest) = said.split_once("Run completed in ")?;
    let seconds: f64 = rest.split_once(' ')?.0.parse().ok()?;
    Some(Duration::from_secs_f64(seconds.max(1e-3)))
}

/// A client of a share that has one file in it.
#[derive(Clone, Debug)]
pub enum Reader {
    /// `smbclient`, at an address, with an account in a file.
    Smb(SocketAddr, PathBuf),
    /// `nfs-cat`, with libnfs.
    Nfs(SocketAddr),
}

/// The share, and its file.
pub const SHARE: &str = "bench";
/// See [`SHARE`].
pub const FILE: &str = "file";

impl Reader {
    /// Of SMB, with the account of [`USER`] in a file that is written.
    pub fn smb(at: SocketAddr, account: PathBuf, password: &str) -> Result<Self, BenchError> {
        let text = format!("username={USER}\npassword={password}\n");
        let written = File::options().write(true).create_new(true).mode(0o600).open(&account);
        let written = written.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(super::place::system(&account))?;
        Ok(Self::Smb(at, account))
    }

    /// The same, of a share at another address.
    pub fn at(&self, at: SocketAddr) -> Self {
        match self {
            Self::Smb(_, account) => Self::Smb(at, account.clone()),
            Self::Nfs(_) => Self::Nfs(at),
        }
    }

    /// Reads the file to one of this machine.
    fn get(&self, to: &Path) -> Result<String, BenchError> {
        match self {
            Self::Smb(at, account) => {
                let words = format!("iosize {MIB}; get {FILE} {}", to.display());
                let mut client = Command::new("smbclient");
                client.arg(format!("//{}/{SHARE}", at.ip())).args(["-p", &at.port().to_string()]);
                client.args(["-m", "SMB3_11", "-s", "/dev/null", "-A"]).arg(account);
                run(client.args(["-c", &words]), "smbclient")
            }
            Self::Nfs(at) => {
                let (ip, port) = (at.ip(), at.port());
                let url = format!("nfs://{ip}/{SHARE}/{FILE}?version=4&nfsport={port}");
                let to = File::create(to).map_err(super::place::system(to))?;
                let mut client = Command::new("nfs-cat");
                let client = client.arg(url).stdin(Stdio::null()).stdout(to).stderr(Stdio::piped());
                let ended = client.spawn().and_then(std::process::Child::wait_with_output);
                let ended = ended.map_err(|error| failed("nfs-cat", &error))?;
                let said = String::from_utf8_lossy(&ended.stderr).into_owned();
                if ended.status.success() { Ok(said) } else { Err(failed("nfs-cat", &said)) }
            }
        }
    }

    /// Reads the file, which has so many bytes, and keeps nothing: requests of 1 MiB.
    pub fn read(&self, bytes: u64) -> Result<Sample, BenchError> {
        let begun = Instant::now();
        let said = self.get(Path::new("/dev/null"))?;
        let elapsed = match self {
            // What logging in takes is not the share's.
            Self::Smb(..) => {
                got(&said, bytes).ok_or_else(|| failed("smbclient", &said.trim_end()))?
            }
            Self::Nfs(_) => begun.elapsed(),
        };
        Ok(Sample { operations: bytes / MIB, elapsed, cpu: Duration::ZERO })
    }

    /// Whether what it reads is what the file has.
    pub fn is_right(&self, file: &Path, scratch: &Path) -> Result<(), BenchError> {
        self.get(scratch)?;
        let read = |path: &Path| std::fs::read(path).map_err(super::place::system(path));
        let is_same = read(scratch)? == read(file)?;
        std::fs::remove_file(scratch).map_err(super::place::system(scratch))?;
        let what = match self {
            Self::Smb(..) => "smbclient",
            Self::Nfs(_) => "nfs-cat",
        };
        if is_same { Ok(()) } else { Err(BenchError::OtherBytes(what)) }
    }
}

/// How long `smbclient` says that it took to read a file: it tells the rate, in KiB per second, and
/// counts time in milliseconds.
fn got(said: &str, bytes: u64) -> Option<Duration> {
    let line = said.lines().find(|line| line.starts_with("getting file "))?;
    let rate: f64 = line.split_once(" KiloBytes/sec")?.0.rsplit_once('(')?.1.parse().ok()?;
    let seconds = bytes as f64 / 1024.0 / rate;
    (rate > 0.0).then(|| Duration::from_secs_f64(seconds.max(1e-3)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_say_is_understood() {
        let said = "Sending 2000 read requests, 4096 bytes each, 32 in parallel (starting at \
                    offset 0, step size 4096)\nRun completed in 0.250 seconds.\n";
        assert_eq!(completed(said), Some(Duration::from_millis(250)));
        assert_eq!(completed("qemu-img: no"), None);
        let said = "getting file \\file of size 1048576 as /dev/null (2048.0 KiloBytes/sec) \
                    (average 2048.0 KiloBytes/sec)\n";
        assert_eq!(got(said, MIB), Some(Duration::from_millis(500)));
        let soon = Duration::from_millis(1);
        assert_eq!(got(&said.replace("2048.0", "inf"), MIB), Some(soon));
        assert_eq!(got(&said.replace("2048.0", "0.0"), MIB), None);
        assert_eq!(got("NT_STATUS_LOGON_FAILURE", MIB), None);
    }
}
