//! NFS by a private NFS-Ganesha: a `ganesha.nfsd` for each file system, for NFS version 4 only: it
//! needs no portmapper, and nothing of the kernel.
//!
//! Minor versions are those that a test reads through: 4.0 and 4.1. Who may come is told by its
//! address, and says itself who its users are: it is trusted as far as that, `root` included. Who
//! asks here how shares are comes from a port that only `root` can have, and may only look up
//! names.
//!
//! What clients have open stands in the file system (`state/nfs`): one that starts waits for those
//! who had something, and gives it to them again.
//!
//! A mistake in a block has Ganesha leave that block out and go on: what it serves is asked.

use crate::ask_nfs;
use crate::config::Ganesha;
use crate::instance::Instance;
use crate::names::{Network, ShareName};
use crate::program::{Program, SOON};
use crate::system::{self, private};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const GANESHA: Program = Program { name: "ganesha.nfsd", package: "nfs-ganesha-vfs" };
/// How long a client may be silent until what it has is another's, and how long one that has
/// started waits for clients, in seconds.
const LEASE: u32 = 20;
const GRACE: u32 = 25;
/// How long it may take to read what changed, and how often it is looked whether it has.
const READS: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(50);

/// What it says then.
const HAS_READ: &str = "Reread exports complete";

/// What Ganesha reads, and the block of a share there.
const CONFIGURATION: &str = "ganesha.conf";
const EXPORT: &str = "EXPORT";

/// What is there by NFS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nfs {
    /// Where it is to be reached.
    pub address: SocketAddr,
    /// The shares, with their folders.
    pub shares: Vec<Share>,
}

/// A share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Share {
    /// What it is called.
    pub name: ShareName,
    /// Its number, which file handles of clients have.
    pub number: u16,
    /// Its folder.
    pub path: PathBuf,
    /// Nobody may write.
    pub is_read_only: bool,
    /// Who may have it, and whether only to read.
    pub clients: Vec<(Network, bool)>,
}

/// A Ganesha of its own.
pub struct Server {
    instance: Instance,
    /// Where the file system has what clients have open.
    recovery: PathBuf,
}

impl Server {
    /// With its files in this folder, of a file system that keeps its state there.
    pub fn new(folder: PathBuf, state: &Path) -> Self {
        Self { instance: Instance::new(folder), recovery: state.join("nfs") }
    }

    /// Ends it.
    ///
    /// # Errors
    /// It does not end.
    pub fn end(&self) -> io::Result<()> {
        self.instance.end()?;
        self.instance.clear()
    }

    /// The process, if it is there.
    ///
    /// # Errors
    /// That can't be told.
    pub fn process(&self) -> io::Result<Option<Pid>> {
        self.instance.holder("pid")
    }

    /// Makes of what is there what is wanted.
    ///
    /// # Errors
    /// Ganesha refuses it: what it says.
    pub fn serve(&self, wanted: &Nfs) -> io::Result<()> {
        self.instance.make()?;
        private(&self.recovery)?;
        let core = self.core(wanted)?;
        let text = format!("{core}{}", exports(wanted)?);
        let before = self.instance.known(CONFIGURATION);
        // What is not of a share is read once.
        let is_elsewhere = before.find(EXPORT).and_then(|at| before.get(..at)) != Some(&*core);
        let (Some(process), false) = (self.process()?, is_elsewhere) else {
            return self.start(wanted, &text);
        };
        if before != text {
            self.instance.put(CONFIGURATION, text.as_bytes())?;
            let from = self.instance.begin_log()?;
            kill_process(process, Signal::HUP)?;
            self.wait_until_read(from)?;
            self.instance.set_known(CONFIGURATION, &text)?;
            self.wait_for(wanted, from)?;
        }
        Ok(())
    }

    /// Asks for each share as a client does: why it can't be had.
    ///
    /// # Errors
    /// Nobody answers.
    pub fn ask(&self, wanted: &Nfs) -> io::Result<BTreeMap<ShareName, String>> {
        let names = wanted.shares.iter().map(|share| share.name.clone()).collect::<Vec<_>>();
        let told = ask_nfs::ask(system::reached(wanted.address), &names)?;
        let mut problems = told.problems;
        let known: BTreeSet<&str> = names.iter().map(ShareName::as_str).collect();
        if let Some(other) = told.names.iter().find(|name| !known.contains(name.as_str())) {
            let why = format!("{other} is there, too, that was not asked for");
            problems.extend(names.first().map(|first| (first.clone(), why)));
        }
        Ok(problems)
    }

    /// Waits until it has read what changed: until then, whoever was let in before is.
    fn wait_until_read(&self, from: u64) -> io::Result<()> {
        self.wait_while(from, || {
            let has_read = self.instance.said(from).contains(HAS_READ);
            Ok((!has_read).then(|| "it does not read what changed".to_owned()))
        })
    }

    /// Waits until it serves what is wanted, and nothing else.
    fn wait_for(&self, wanted: &Nfs, from: u64) -> io::Result<()> {
        self.wait_while(from, || {
            let problem = self.ask(wanted)?.into_iter().next();
            Ok(problem.map(|(name, why)| format!("{name}: {why}")))
        })
    }

    /// Waits while something is wrong, for as long as reading may take. Else: why, in Ganesha's own
    /// words, which begin there in its log, if it has some.
    fn wait_while(
        &self,
        from: u64,
        wrong: impl Fn() -> io::Result<Option<String>>,
    ) -> io::Result<()> {
        let end = Instant::now() + READS;
        while let Some(why) = wrong()? {
            if Instant::now() > end {
                let said = complaints(&self.instance.said(from));
                let said = if said.is_empty() { why } else { said };
                return Err(io::Error::other(format!("ganesha.nfsd: {said}")));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn start(&self, wanted: &Nfs, text: &str) -> io::Result<()> {
        self.instance.end()?;
        self.instance.clear()?;
        self.instance.make()?;
        self.instance.put(CONFIGURATION, text.as_bytes())?;
        let from = self.instance.begin_log()?;
        let mut ganesha = Command::new(GANESHA.name);
        ganesha.arg("-F").arg("-f").arg(self.instance.file(CONFIGURATION));
        ganesha.arg("-p").arg(self.instance.file("pid")).args(["-L", "/dev/stderr"]);
        let serves = || self.ask(wanted).map(drop);
        self.instance.start((GANESHA, &mut ganesha), serves, complaints)?;
        self.instance.set_known(CONFIGURATION, text)?;
        self.wait_for(wanted, from)
    }

    /// What is not of a share.
    fn core(&self, wanted: &Nfs) -> io::Result<String> {
        let mut own = Ganesha::default();
        own.block("NFS_CORE_PARAM", |own| {
            own.set("Protocols", 4)?;
            own.set("NFS_Port", wanted.address.port())?;
            own.set("Bind_addr", wanted.address.ip())?;
            own.set("Enable_NLM", false)?;
            own.set("Enable_RQUOTA", false)?;
            own.set("Enable_UDP", false)
        })?;
        own.block("NFS_KRB5", |own| own.set("Active_krb5", false))?;
        own.block("NFSv4", |own| {
            own.set("Minor_Versions", "0, 1")?;
            own.set("Lease_Lifetime", LEASE)?;
            own.set("Grace_Period", GRACE)?;
            own.set("Delegations", false)?;
            own.set("Only_Numeric_Owners", true)?;
            own.set("RecoveryBackend", "fs")?;
            own.set_path("RecoveryRoot", &self.recovery)
        })?;
        own.block("LOG", |own| {
            own.set("Default_Log_Level", "WARN")?;
            // It says when it has read its configuration.
            own.block("COMPONENTS", |own| own.set("CONFIG", "EVENT"))
        })?;
        Ok(own.text().to_owned())
    }
}

fn exports(wanted: &Nfs) -> io::Result<String> {
    let mut own = Ganesha::default();
    let asker = system::reached(wanted.address).ip();
    for share in &wanted.shares {
        own.block(EXPORT, |own| {
            own.set("Export_Id", share.number)?;
            own.set("Filesystem_Id", format_args!("{0}.{0}", share.number))?;
            own.set_path("Path", &share.path)?;
            own.set_text("Pseudo", &format!("/{}", share.name))?;
            own.set("Protocols", 4)?;
            own.set("Transports", "TCP")?;
            own.set("SecType", "sys")?;
            own.set("Squash", "No_Root_Squash")?;
            own.set("Access_Type", "None")?;
            for (network, only_reads) in &share.clients {
                own.block("CLIENT", |own| {
                    own.set("Protocols", 4)?;
                    own.set("Clients", network)?;
                    let only_reads = *only_reads || share.is_read_only;
                    own.set("Access_Type", if only_reads { "RO" } else { "RW" })
                })?;
            }
            if !share.clients.iter().any(|(network, _)| network.contains(asker)) {
                own.block("CLIENT", |own| {
                    own.set("Protocols", 4)?;
                    own.set("Clients", asker)?;
                    own.set("PrivilegedPort", true)?;
                    own.set("Access_Type", "MDONLY_RO")
                })?;
            }
            own.block("FSAL", |own| own.set("Name", "VFS"))
        })?;
    }
    Ok(own.text().to_owned())
}

/// What Ganesha says that is wrong, without where it says it from.
fn complaints(text: &str) -> String {
    let about = |line: &str| {
        let (_, rest) = [" :CRIT :", " :MAJ :", " :FATAL :"]
            .into_iter()
            .find_map(|level| line.split_once(level))?;
        // It has no such thing, and needs none.
        let others = ["DBUS", "credentials for principal", "Cannot register"];
        (!others.iter().any(|own| line.contains(own))).then(|| rest.to_owned())
    };
    let mut lines: Vec<String> = text.lines().filter_map(about).collect();
    lines.dedup();
    lines.join("; ")
}

/// Which Ganesha there is.
///
/// # Errors
/// There is none.
pub fn version() -> io::Result<String> {
    let said = GANESHA.done(GANESHA.command(SOON).arg("-v"), &[])?;
    let version = said.split("Release = ").nth(1).unwrap_or(&said);
    Ok(version.lines().next().unwrap_or_default().trim().trim_start_matches('V').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_come_is_said() {
        let network = |text: &str| text.parse::<Network>().expect("addresses");
        let mut own = Nfs {
            address: "0.0.0.0:2049".parse().expect("an address"),
            shares: vec![Share {
                name: ShareName::new("größe 1").expect("a name"),
                number: 7,
                path: "/srv/größe 1".into(),
                is_read_only: false,
                clients: vec![(network("10.0.0.0/8"), false), (network("fd00::/64"), true)],
            }],
        };
        let text = exports(&own).expect("written");
        assert!(text.contains("Pseudo = \"/größe 1\"") && text.contains("Export_Id = 7;"));
        assert!(text.contains("Clients = 10.0.0.0/8;\n        Access_Type = RW;"), "{text}");
        assert!(text.contains("Clients = fd00::/64;\n        Access_Type = RO;"), "{text}");
        assert!(text.contains("Clients = 127.0.0.1;\n        PrivilegedPort = true;"), "{text}");
        own.shares[0].is_read_only = true;
        own.shares[0].clients = vec![(network("0.0.0.0/0"), false)];
        let text = exports(&own).expect("written");
        assert!(!text.contains("PrivilegedPort") && !text.contains("RW"), "{text}");
    }

    #[test]
    fn what_ganesha_says_is_told_in_its_words() {
        let said = "30/11/2026 04:24:22 : epoch 1 : vm : nfs-ganesha-1[main] config_errs_to_log \
                    :CONFIG :CRIT :Config File (a:31): Expected a client\n\
                    30/11/2026 04:24:22 : epoch 1 : vm : x[main] y :DBUS :CRIT :no DBUS\n\
                    30/11/2026 04:24:22 : epoch 1 : vm : x[main] y :RPC :EVENT :well\n";
        assert_eq!(complaints(said), "Config File (a:31): Expected a client");
    }
}
