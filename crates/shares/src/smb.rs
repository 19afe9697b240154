//! SMB by a private Samba: an `smbd` for each file system, with its own configuration, state,
//! sockets and users.
//!
//! Users are none of this system: `smbd` and its tools read them from files in the server's folder
//! (nss_wrapper), made from what the file system keeps. Passwords are in Samba's private directory
//! in the file system, and move with the volume. A user by itself asks how shares are; its password
//! is made anew with each server, and known here alone.
//!
//! Files of a share are of its users' one group, which may change all of them.
//!
//! A connection is a process, which works in its user's name. Whether another that holds a lock
//! still lives it sees by a file of that one: the folder of locks is one that users come to. One
//! that they do not come to has them take each other for dead, and their locks for free.
//!
//! | what is wanted        | what is there             | what is done                           |
//! |-----------------------|---------------------------|----------------------------------------|
//! | shares                | no `smbd`                 | one is started                         |
//! | shares                | another address           | it is ended, and one is started        |
//! | shares                | others, or other users    | it reads them anew, and those who have |
//! |                       |                           | what changed have to ask again         |
//! | no shares of SMB      | an `smbd`                 | it is ended, with all that it began    |
//!
//! Invariant: `smbd` is given no configuration that its own parser reads as other shares.

use crate::config::Samba;
use crate::instance::Instance;
use crate::kept::{GROUP, User};
use crate::names::{ASKER, ShareName, UserName};
use crate::program::{Program, SOON};
use crate::system::{self, gone, open_to_users, private};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

const SMBD: Program = Program { name: "smbd", package: "samba" };
const TESTPARM: Program = Program { name: "testparm", package: "samba-common-bin" };
const SMBPASSWD: Program = Program { name: "smbpasswd", package: "samba-common-bin" };
const SMBCONTROL: Program = Program { name: "smbcontrol", package: "samba-common-bin" };
const SMBSTATUS: Program = Program { name: "smbstatus", package: "samba" };
const SMBCLIENT: Program = Program { name: "smbclient", package: "smbclient" };
/// What Samba reads.
const CONFIGURATION: &str = "smb.conf";
/// The library by which users are read from files.
const WRAPPER: &str = "libnss_wrapper.so";
const WRAPPER_PACKAGE: &str = "libnss-wrapper";
/// What of Samba is loaded besides.
const MODULES: &[&str] = &["acl_xattr", "streams_xattr"];
const MODULES_PACKAGE: &str = "samba-vfs-modules";
/// The group of all users.
const GROUP_NAME: &str = "palisade-shares";
/// Characters of the asker's password.
const SECRET_CHARACTERS: usize = 32;

/// What is there by SMB.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Smb {
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
    /// Its folder.
    pub path: PathBuf,
    /// Nobody may write.
    pub is_read_only: bool,
    /// Who may have it, and whether only to read; all users, if it names none.
    pub users: Vec<(UserName, bool)>,
    /// Whether clients of NFS have it, too, whose users are of other groups.
    pub is_of_nfs: bool,
}

/// A Samba of its own.
pub struct Server<'a> {
    instance: Instance,
    /// What its processes know of each other.
    locks: PathBuf,
    /// Where the file system has Samba's private directory.
    private: PathBuf,
    users: &'a [User],
}

impl<'a> Server<'a> {
    /// With its files and its locks in these folders, of a file system that keeps its state there,
    /// and these users.
    pub fn new([folder, locks]: [PathBuf; 2], state: &Path, users: &'a [User]) -> Self {
        Self { instance: Instance::new(folder), locks, private: state.join("samba"), users }
    }

    /// Ends it.
    ///
    /// # Errors
    /// It does not end.
    pub fn end(&self) -> io::Result<()> {
        self.instance.end()?;
        gone(std::fs::remove_dir_all(&self.locks))?;
        self.instance.clear()
    }

    /// The process that others are begun by, if it is there.
    ///
    /// # Errors
    /// That can't be told.
    pub fn process(&self) -> io::Result<Option<Pid>> {
        self.instance.holder("pid/smbd.pid")
    }

    /// Makes of what is there what is wanted.
    ///
    /// # Errors
    /// Samba refuses it: what it says.
    pub fn serve(&self, wanted: &Smb) -> io::Result<()> {
        self.prepare()?;
        let text = self.configuration(wanted)?;
        let before = self.instance.known(CONFIGURATION);
        if before != text {
            self.check(&text, wanted)?;
        }
        let running = self.process()?;
        let is_elsewhere = section(&before, "global") != section(&text, "global");
        let (Some(process), false) = (running, is_elsewhere) else {
            return self.start(wanted, &text);
        };
        if before != text {
            self.instance.put(CONFIGURATION, text.as_bytes())?;
            kill_process(process, Signal::HUP)?;
            // Who has it already has what it was allowed then. All are tried.
            let closed: Vec<io::Result<String>> = changed(&before, &text)
                .iter()
                .map(|name| {
                    let mut close = self.tool(SMBCONTROL);
                    SMBCONTROL.done(close.args(["smbd", "close-share", name]), &[])
                })
                .collect();
            closed.into_iter().try_for_each(|closed| closed.map(drop))?;
            self.instance.set_known(CONFIGURATION, &text)?;
        }
        Ok(())
    }

    /// Asks for each share as a client does: why it can't be had.
    ///
    /// # Errors
    /// Nobody can log in, or there is none that could ask.
    pub fn ask(&self, wanted: &Smb) -> io::Result<BTreeMap<ShareName, String>> {
        let mut words = String::new();
        for share in &wanted.shares {
            words += &format!("tcon \"{}\"; allinfo /; ", share.name);
        }
        let host = system::reached(wanted.address);
        let mut client = SMBCLIENT.command(SOON);
        client.arg(format!("//{}/IPC$", host.ip())).args(["-p", &host.port().to_string()]);
        client.args(["-m", "SMB3_11", "-s", "/dev/null", "-A"]).arg(self.instance.file(ASKER));
        let said = SMBCLIENT.run(client.args(["-t", "10", "-c", &words]), &[])?;
        told(&said.out, wanted).ok_or_else(|| SMBCLIENT.failed(&said))
    }

    /// Sets a user's password, whether it had one or not.
    ///
    /// # Errors
    /// Samba refuses it: what it says.
    pub fn set_password(&self, user: &UserName, password: &str) -> io::Result<()> {
        self.prepare()?;
        self.set(user.as_str(), password)
    }

    /// Forgets a user's password.
    ///
    /// # Errors
    /// Samba refuses it: what it says.
    pub fn forget(&self, user: &UserName) -> io::Result<()> {
        self.prepare()?;
        let mut forget = self.tool(SMBPASSWD);
        let said = SMBPASSWD.run(forget.args(["-x", user.as_str()]), &[])?;
        let has_none = said.error.contains("Failed to find entry");
        if said.code == 0 || has_none { Ok(()) } else { Err(SMBPASSWD.failed(&said)) }
    }

    /// Ends connections of a user: what was allowed when they began may be so no more.
    ///
    /// # Errors
    /// It can't be told which there are.
    pub fn close_sessions(&self, user: &UserName) -> io::Result<()> {
        if self.process()?.is_none() {
            return Ok(());
        }
        let mut status = self.tool(SMBSTATUS);
        let told = SMBSTATUS.done(status.args(["-p", "-u", user.as_str()]), &[])?;
        for process in sessions(&told, user.as_str()) {
            // It may have ended.
            let _ = kill_process(process, Signal::TERM);
        }
        Ok(())
    }

    /// Makes what its programs need to be there.
    fn prepare(&self) -> io::Result<()> {
        for folder in ["state", "cache", "pid", "rpc"] {
            private(&self.instance.file(folder))?;
        }
        open_to_users(&self.locks)?;
        private(&self.private)?;
        let user = |name: &str, id: u32| format!("{name}:x:{id}:{GROUP}::/:/usr/sbin/nologin\n");
        let mut users = "root:x:0:0::/:/usr/sbin/nologin\n".to_owned();
        users += "nobody:x:65534:65534::/:/usr/sbin/nologin\n";
        users += &user(ASKER, GROUP);
        users.extend(self.users.iter().map(|own| user(&own.name, own.uid)));
        self.instance.put("passwd", users.as_bytes())?;
        let groups = format!("root:x:0:\nnogroup:x:65534:\n{GROUP_NAME}:x:{GROUP}:\n");
        self.instance.put("group", groups.as_bytes())?;
        let path = self.instance.file(CONFIGURATION);
        if !path.exists() {
            // Tools read it, too.
            let mut own = Samba::default();
            self.set_global(&mut own, None)?;
            self.instance.put(CONFIGURATION, own.text().as_bytes())?;
        }
        Ok(())
    }

    /// A tool of Samba's, by this configuration and with these users.
    fn tool(&self, program: Program) -> Command {
        let mut tool = program.command(SOON);
        self.with_users(&mut tool);
        let option = if program.name == SMBPASSWD.name { "-c" } else { "-s" };
        tool.arg(option).arg(self.instance.file(CONFIGURATION));
        tool
    }

    fn with_users(&self, command: &mut Command) {
        command.env("LD_PRELOAD", WRAPPER);
        command.env("NSS_WRAPPER_PASSWD", self.instance.file("passwd"));
        command.env("NSS_WRAPPER_GROUP", self.instance.file("group"));
    }

    fn set(&self, user: &str, password: &str) -> io::Result<()> {
        let twice = format!("{password}\n{password}\n");
        let mut set = self.tool(SMBPASSWD);
        let set = set.args(["-s", "-a", user]);
        let said = SMBPASSWD.run(set, twice.as_bytes())?;
        if said.code == 0 {
            return Ok(());
        }
        if said.error.contains("cannot be preloaded") {
            let text = format!("there is no {WRAPPER}; install {WRAPPER_PACKAGE}");
            return Err(io::Error::other(text));
        }
        Err(SMBPASSWD.failed(&said))
    }

    /// Starts an `smbd` of this configuration, in place of one that is there.
    fn start(&self, wanted: &Smb, text: &str) -> io::Result<()> {
        let built = SMBD.done(SMBD.command(SOON).arg("-b"), &[])?;
        if let Some(missing) = missing_module(&built) {
            return Err(io::Error::other(missing));
        }
        self.end()?;
        self.prepare()?;
        self.instance.put(CONFIGURATION, text.as_bytes())?;
        let secret = system::secret(SECRET_CHARACTERS)?;
        self.set(ASKER, &secret)?;
        let account = format!("username={ASKER}\npassword={secret}\n");
        self.instance.put(ASKER, account.as_bytes())?;
        let mut smbd = Command::new(SMBD.name);
        self.with_users(&mut smbd);
        smbd.args(["-F", "--no-process-group", "-s"]).arg(self.instance.file(CONFIGURATION));
        let serves = || self.ask(wanted).map(drop);
        self.instance.start((SMBD, &mut smbd), serves, complaints)?;
        self.instance.set_known(CONFIGURATION, text)
    }

    fn set_global(&self, own: &mut Samba, address: Option<SocketAddr>) -> io::Result<()> {
        own.section("global")?;
        for (name, value) in [
            ("server role", "standalone server"),
            ("server string", "Palisade"),
            ("server min protocol", "SMB3_00"),
            ("server signing", "mandatory"),
            ("map to guest", "never"),
            ("restrict anonymous", "2"),
            ("access based share enum", "yes"),
            ("passdb backend", "tdbsam"),
            ("disable netbios", "yes"),
            ("multicast dns register", "no"),
            ("load printers", "no"),
            ("printcap name", "/dev/null"),
            ("disable spoolss", "yes"),
            ("usershare max shares", "0"),
            ("unix charset", "UTF-8"),
            // Rights and streams of Windows, which no mode tells, stand beside the files.
            ("vfs objects", &MODULES.join(" ")),
            ("log level", "0"),
            ("max log size", "1000"),
        ] {
            own.set(name, value)?;
        }
        own.set_path("log file", &self.instance.file("log"))?;
        own.set_path("private dir", &self.private)?;
        own.set_path("lock directory", &self.locks)?;
        for (name, folder) in [
            ("state directory", "state"),
            ("cache directory", "cache"),
            ("pid directory", "pid"),
            ("ncalrpc dir", "rpc"),
        ] {
            own.set_path(name, &self.instance.file(folder))?;
        }
        if let Some(address) = address {
            own.set("smb ports", address.port())?;
            if !address.ip().is_unspecified() {
                own.set("interfaces", address.ip())?;
                own.set("bind interfaces only", "yes")?;
            }
        }
        Ok(())
    }

    fn configuration(&self, wanted: &Smb) -> io::Result<String> {
        let mut own = Samba::default();
        self.set_global(&mut own, Some(wanted.address))?;
        for share in &wanted.shares {
            own.section(share.name.as_str())?;
            own.set_path("path", &share.path)?;
            let all = |is_one: fn(&bool) -> bool| {
                let names = share.users.iter().filter(move |(_, only_reads)| is_one(only_reads));
                names.map(|(name, _)| name.as_str()).chain([ASKER]).collect::<Vec<_>>().join(" ")
            };
            own.set("read only", if share.is_read_only { "yes" } else { "no" })?;
            if !share.users.is_empty() {
                own.set("valid users", all(|_| true))?;
            }
            own.set("read list", all(|only_reads| *only_reads))?;
            // Who comes over NFS is of another group.
            let (file, folder) = if share.is_of_nfs { ("0664", "2775") } else { ("0660", "2770") };
            own.set("create mask", file)?;
            own.set("force create mode", file)?;
            own.set("directory mask", folder)?;
            own.set("force directory mode", folder)?;
            if share.is_of_nfs {
                // What a client keeps of a file to itself it gives up when NFS opens that.
                own.set("kernel oplocks", "yes")?;
            }
        }
        Ok(own.text().to_owned())
    }

    /// Has Samba's own parser read a configuration.
    fn check(&self, text: &str, wanted: &Smb) -> io::Result<()> {
        self.instance.put("smb.conf.wanted", text.as_bytes())?;
        let mut testparm = TESTPARM.command(SOON);
        self.with_users(&mut testparm);
        let path = self.instance.file("smb.conf.wanted");
        let said = TESTPARM.run(testparm.arg("-s").arg(path), &[])?;
        // What it only warns of, it says there, too.
        let words = complaints(&said.error);
        if said.code != 0 || said.error.contains("Unknown parameter") {
            return Err(io::Error::other(format!("testparm: {words}")));
        }
        let is_section = |line: &&str| line.starts_with('[') && line.ends_with(']');
        let mut sections: BTreeSet<&str> = said.out.lines().filter(is_section).collect();
        sections.remove("[global]");
        let names: Vec<String> =
            wanted.shares.iter().map(|share| format!("[{}]", share.name)).collect();
        match names.iter().map(String::as_str).collect::<BTreeSet<_>>() == sections {
            true => Ok(()),
            false => Err(io::Error::other("testparm reads other shares than those that are meant")),
        }
    }
}

/// The module that is missing, where `smbd` is built so: it has clients hear that there is no such
/// share.
fn missing_module(built: &str) -> Option<String> {
    let folder = built.lines().find_map(|line| line.trim().strip_prefix("MODULESDIR:"))?;
    let folder = Path::new(folder.trim()).join("vfs");
    let name = MODULES.iter().find(|name| !folder.join(format!("{name}.so")).exists())?;
    Some(format!("Samba's module {name} is not there; install {MODULES_PACKAGE}"))
}

/// Lines in which a program of Samba's says what is wrong.
fn complaints(text: &str) -> String {
    let others = [
        "Load smb config files",
        "Loaded services file",
        "Weak crypto is allowed",
        "Copyright Andrew Tridgell",
        "smbd version",
    ];
    let is_one = |line: &&str| {
        let line = line.trim();
        // What is in brackets says when, and where in the program.
        !line.is_empty() && !line.starts_with('[') && !others.iter().any(|own| line.contains(own))
    };
    // Behind a line of these it says how to report it.
    let own = text.lines().take_while(|line| !line.contains("======"));
    crate::program::joined(&own.filter(is_one).collect::<Vec<_>>().join("\n"))
}

/// The lines of a section.
fn section<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let begin = format!("[{name}]");
    let own = text.lines().skip_while(|line| *line != begin).skip(1);
    own.take_while(|line| !line.starts_with('[')).collect()
}

/// Shares that one configuration has otherwise than another, or not.
fn changed(before: &str, after: &str) -> Vec<String> {
    let name = |line: &str| Some(line.strip_prefix('[')?.strip_suffix(']')?.to_owned());
    let names = before.lines().filter_map(name).filter(|name| name != "global");
    names.filter(|name| section(before, name) != section(after, name)).collect()
}

/// What `smbclient` says of each share: why it can't be had. None, if it has not asked for all.
fn told(said: &str, wanted: &Smb) -> Option<BTreeMap<ShareName, String>> {
    let mut answers: Vec<String> = Vec::new();
    for line in said.lines() {
        if line.starts_with("tcon to ") {
            answers.push(String::new());
        } else if let Some(why) = line.strip_prefix("tcon failed: ") {
            answers.push(why.to_owned());
        } else if let Some(answer) = answers.last_mut()
            && answer.is_empty()
            && line.starts_with("NT_STATUS")
        {
            line.clone_into(answer);
        }
    }
    if answers.len() != wanted.shares.len() {
        return None;
    }
    let names = wanted.shares.iter().map(|share| share.name.clone());
    Some(names.zip(answers).filter(|(_, why)| !why.is_empty()).collect())
}

/// Which Samba there is.
///
/// # Errors
/// There is none.
pub fn version() -> io::Result<String> {
    let said = SMBD.done(SMBD.command(SOON).arg("--version"), &[])?;
    Ok(said.trim().trim_start_matches("Version ").to_owned())
}

/// Processes that serve a user's connections, of what `smbstatus -p` tells: a line for each, with
/// the process and the user first.
fn sessions(told: &str, user: &str) -> Vec<Pid> {
    let of = |line: &str| {
        let mut words = line.split_whitespace();
        let process = words.next()?.parse().ok()?;
        if words.next() == Some(user) { Pid::from_raw(process) } else { None }
    };
    told.lines().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn smb(names: &[&str]) -> Smb {
        let share = |name: &&str| Share {
            name: ShareName::new(name).expect("a name"),
            path: format!("/srv/{name}").into(),
            is_read_only: false,
            users: Vec::new(),
            is_of_nfs: false,
        };
        let address = "127.0.0.1:4450".parse().expect("an address");
        Smb { address, shares: names.iter().map(share).collect() }
    }

    #[test]
    fn the_connections_of_a_user_are_told() {
        let told = "\nSamba version 4.17.12-Debian\nPID     Username     Group        Machine\n\
            ----------------\n\
            23886   alice        palisade-shares 127.0.0.1 (ipv4:127.0.0.1:41092)  SMB3_11 -\n\
            23890   alicea       palisade-shares 127.0.0.1 (ipv4:127.0.0.1:41096)  SMB3_11 -\n";
        let own = sessions(told, "alice");
        assert_eq!(own, Vec::from_iter(Pid::from_raw(23886)));
        assert!(sessions(told, "bob").is_empty());
    }

    #[test]
    fn a_module_that_is_missing_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let built = format!("Paths:\n   MODULESDIR: {}\n", folder.path().display());
        std::fs::create_dir(folder.path().join("vfs")).expect("made");
        let told = missing_module(&built).expect("none is there");
        assert!(told.contains("acl_xattr") && told.contains("install samba-vfs-modules"), "{told}");
        for name in MODULES {
            let path = folder.path().join(format!("vfs/{name}.so"));
            std::fs::write(path, []).expect("written");
        }
        assert_eq!(missing_module(&built), None);
        assert_eq!(missing_module("some other words"), None);
    }

    #[test]
    fn who_may_have_a_share_is_said() {
        let server =
            Server::new(["/run/a", "/run/b"].map(Into::into), Path::new("/mnt/state"), &[]);
        let mut own = smb(&["docs"]);
        let text = server.configuration(&own).expect("written");
        let has =
            |text: &str, line: &str| section(text, "docs").iter().any(|own| own.trim() == line);
        assert!(has(&text, "read only = no") && has(&text, "read list = palisade-health"));
        assert!(!text.contains("valid users"), "all users");
        let user = |text| UserName::new(text).expect("a name");
        own.shares[0].users = vec![(user("alice"), false), (user("bob"), true)];
        let other = server.configuration(&own).expect("written");
        assert!(has(&other, "valid users = alice bob palisade-health"));
        assert!(has(&other, "read list = bob palisade-health"));
        assert_eq!(changed(&text, &other), ["docs"]);
        assert_eq!(section(&text, "global"), section(&other, "global"));
        own.address.set_port(445);
        let other = server.configuration(&own).expect("written");
        assert_ne!(section(&text, "global"), section(&other, "global"));
    }

    #[test]
    fn what_a_client_is_told_of_each_share() {
        let own = smb(&["a", "b", "c"]);
        let said = "tcon to a successful, tid: 1\naltname: .\ncreate_time: x\n\
                    tcon failed: NT_STATUS_BAD_NETWORK_NAME\nNT_STATUS_NETWORK_NAME_DELETED x\n\
                    tcon to c successful, tid: 2\nNT_STATUS_IO_TIMEOUT getting alt name for .\n";
        let told: Vec<_> = told(said, &own).expect("told").into_values().collect();
        assert_eq!(
            told,
            ["NT_STATUS_BAD_NETWORK_NAME", "NT_STATUS_IO_TIMEOUT getting alt name for ."]
        );
        assert!(super::told("", &own).is_none());
    }
}
