//! Shares of volumes: what the daemon, `palisade services` and the command line make of them, as
//! clients of Samba and NFS-Ganesha see it. The kernel's clients are in guests.

use crate::common::place::Daemon;
use crate::common::services::{Services, share_mounts, share_servers};
use crate::common::{
    count_of, output, program, random_file, run, text as said_by, tools_are_there, until,
};
use crate::services::{Life, lose_a_drive, text};
use crate::shares::{TOOLS, free_ports};
use rustix::fs::syncfs;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long one stage may take.
const STAGE: Duration = Duration::from_secs(120);
const MIB: u64 = 1 << 20;
const PASSWORD: &str = "correct password";
const ALICE: &str = "alice%correct password";

/// A life with a volume, and places for servers of its shares.
struct Own {
    life: Life,
    volume: String,
    smb: SocketAddr,
    nfs: SocketAddr,
}

impl Own {
    /// On drives of so many MiB.
    fn new(what: &str, drives: u64, size: &str) -> Option<Self> {
        if !tools_are_there(TOOLS) {
            return None;
        }
        let life = Life::new(what, drives)?;
        let volume = life.volume("v", size);
        let [smb, nfs] = free_ports();
        Some(Self { life, volume, smb, nfs })
    }

    fn daemon(&self) -> &Daemon {
        self.life.daemon()
    }

    /// The words that share its volume.
    fn create(&self, name: &str, more: &[&str]) -> Vec<String> {
        let words = ["share", "create", name, "--volume", &self.volume];
        let words = words.into_iter().chain(more.iter().copied());
        words.map(str::to_owned).collect()
    }

    /// Those, by SMB and NFS at its places.
    fn at_places(&self, name: &str, more: &[&str]) -> Vec<String> {
        let [smb, nfs] = [self.smb, self.nfs].map(|at| at.to_string());
        let by = ["--smb", "--smb-listen", &smb, "--nfs", "--nfs-listen", &nfs];
        self.create(name, &[&by[..], more].concat())
    }

    fn call(&self, words: &[String]) -> Value {
        self.daemon().call(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn shown(&self, name: &str) -> Value {
        self.daemon().call(&["share", "show", name])
    }

    /// A command that reads a password.
    fn with_password(&self, words: &[&str], password: &str) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
        command.args(words).env("PALISADE_SOCKET", self.daemon().socket());
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("started");
        // One that was refused before does not read it.
        let _ = writeln!(child.stdin.take().expect("piped"), "{password}");
        let ended = child.wait_with_output().expect("waited for");
        (ended.status.code(), said_by(&ended))
    }

    fn add(&self, user: &str) {
        let (code, said) = self.with_password(&["share", "user", "add", user], PASSWORD);
        assert_eq!(code, Some(0), "{said}");
    }

    fn smb(&self, (share, account): (&str, &str), words: &str) -> (bool, String) {
        let (at, port) = (format!("//127.0.0.1/{share}"), self.smb.port().to_string());
        let words = [&*at, "-p", &port, "-s", "/dev/null", "-U", account, "-c", words];
        let done = output(program("smbclient").args(words));
        (done.status.success(), said_by(&done))
    }

    /// Whether a user can write.
    fn writes(&self, share: &str, account: &str) -> bool {
        let (is_done, said) = self.smb((share, account), "mkdir a; rmdir a");
        is_done && !said.contains("NT_STATUS")
    }

    fn nfs(&self, tool: &str, path: &str) -> std::process::Output {
        let at = format!("nfs://127.0.0.1{path}?version=4&nfsport={}", self.nfs.port());
        output(program(tool).arg(at))
    }

    /// Waits until a share is `ok` by all of its protocols.
    fn well(&self, name: &str) -> Value {
        until("a share can be had", STAGE, || {
            let shown = self.shown(name);
            let all = shown["protocols"].as_array().expect("a list").clone();
            let is_ok = all.iter().all(|own| own["health"]["state"] == "ok");
            is_ok.then_some(shown)
        })
    }

    /// Has what clients wrote on its drives: a loop device does not outlive the daemon.
    fn sync(&self) {
        let [at] = &share_mounts(&self.life.place.file("services"))[..] else { panic!("a mount") };
        syncfs(File::open(at).expect("opened")).expect("written");
    }

    /// Ends all of it; nothing is left.
    fn end(self) {
        let shares = self.daemon().call(&["share", "list"]);
        for share in shares["shares"].as_array().expect("a list") {
            self.daemon().call(&["share", "delete", text(share, "name"), "--yes"]);
        }
        let folder = self.life.place.file("services");
        assert_eq!(share_servers(&folder), Vec::<i32>::new(), "a server is left");
        assert!(!folder.with_extension("shares").exists(), "a mount is left");
        self.life.end();
    }
}

/// A new share is told as it is.
fn assert_described(own: &Own, made: &Value) {
    assert_eq!((text(made, "name"), text(made, "volume")), ("docs", &*own.volume));
    let of = &made["filesystem"];
    assert_eq!((text(of, "type"), of["mounted"].as_bool()), ("xfs", Some(true)));
    assert!(of["size_bytes"].as_u64() > of["used_bytes"].as_u64(), "{of}");
    let by: Vec<_> = made["protocols"].as_array().expect("a list").iter().collect();
    let told = |own: &Value| {
        let health = text(&own["health"], "state").to_owned();
        (text(own, "protocol").to_owned(), text(own, "url").to_owned(), health)
    };
    let urls = [("smb", own.smb), ("nfs", own.nfs)]
        .map(|(word, at)| (word.to_owned(), format!("{word}://{at}/docs"), "ok".to_owned()));
    assert_eq!(by.iter().map(|own| told(own)).collect::<Vec<_>>(), urls);
    assert!(!text(by[0], "version").is_empty() && text(by[1], "server") == "NFS-Ganesha");
}

#[test]
fn a_share_outlives_whoever_serves_it() {
    let Some(mut own) = Own::new("shares", 128, "300M") else { return };
    let made = own.call(&own.at_places("docs", &["--format", "xfs", "--nfs-client", "127.0.0.1"]));
    assert_described(&own, &made);
    own.add("alice");
    let known = own.life.place.file("known");
    random_file(&known, 20 * MIB, &mut own.life.place.rng.clone());
    let bytes = std::fs::read(&known).expect("read");
    let (put, back) = (format!("put {} f", known.display()), own.life.place.file("back"));
    let is_whole = |own: &Own| {
        let (is_done, said) = own.smb(("docs", ALICE), &format!("get f {}", back.display()));
        assert!(is_done && std::fs::read(&back).expect("there") == bytes, "{said}");
        // Those that had it before may claim what they had open, first.
        let read = until("NFS gives the file", STAGE, || {
            let read = own.nfs("nfs-cat", "/docs/f");
            read.status.success().then_some(read.stdout)
        });
        assert!(read == bytes, "it is another");
    };
    // A drive goes while a client writes.
    std::thread::scope(|scope| {
        let (smb, put) = (own.smb, &put);
        let worker = scope.spawn(move || {
            for _ in 0..3 {
                let (at, port) = ("//127.0.0.1/docs", smb.port().to_string());
                let words = [at, "-p", &port, "-s", "/dev/null", "-U", ALICE, "-c", put];
                run(program("smbclient").args(words));
            }
        });
        lose_a_drive(&mut own.life, || ());
        worker.join().expect("written");
    });
    is_whole(&own);
    own.sync();

    // Clients notice nothing of the end of who runs the servers.
    own.life.services.take().expect("runs").kill();
    is_whole(&own);
    own.life.services = Some(Services::start(&own.life.place));
    own.well("docs");
    // The daemon's they may: what is there again is what was there.
    own.life.daemon.take().expect("runs").kill();
    own.life.daemon = Some(Daemon::start(&own.life.place, 2));
    own.well("docs");
    is_whole(&own);

    // It grows with its volume.
    let before = own.shown("docs")["filesystem"]["size_bytes"].as_u64();
    own.daemon().call(&["volume", "resize", &own.volume, "--size", "340M"]);
    let after = own.well("docs");
    assert!(after["filesystem"]["size_bytes"].as_u64() > before, "{before:?}: {after}");
    is_whole(&own);

    // Its files and users stay when its last share goes, and are there with the next.
    own.daemon().call(&["share", "delete", "docs", "--yes"]);
    assert_eq!(Services::made(&own.life.place), Vec::<String>::new());
    let again = own.call(&own.at_places("Docs 2", &[]));
    assert_eq!(again["filesystem"]["users"], json!([{"name": "alice", "uid": 70001}]));
    own.daemon().call(&["share", "delete", "Docs 2", "--yes"]);
    own.call(&own.at_places("docs", &["--nfs-client", "127.0.0.0/8"]));
    is_whole(&own);
    own.end();
}

#[test]
fn who_may_have_a_share_is_said_while_it_is_had() {
    let Some(own) = Own::new("shares and users", 64, "64M") else { return };
    own.call(&own.at_places("docs", &["--format", "ext4"]));
    // A further one, by what the first is by.
    own.call(&own.create("Team 1", &["--smb", "--smb-user", "bob:ro"]));
    own.add("alice");
    own.add("bob");
    let bob = format!("bob%{PASSWORD}");
    assert!(own.writes("docs", ALICE) && own.writes("docs", &bob));
    assert!(!own.writes("Team 1", &bob) && own.smb(("Team 1", &bob), "ls").0);
    assert!(!own.smb(("Team 1", ALICE), "ls").0, "a stranger");
    assert!(!own.smb(("docs", "alice%wrong"), "ls").0, "a wrong password");
    let known = own.life.place.file("known");
    random_file(&known, MIB, &mut own.life.place.rng.clone());
    assert!(own.smb(("docs", ALICE), &format!("put {} f", known.display())).0);
    let reads = |own: &Own| own.nfs("nfs-cat", "/docs/f").status.success();
    assert!(!reads(&own), "no client of NFS was named");
    let set = |words: &[&str]| own.daemon().call(&[&["share", "set", "docs"], words].concat());
    let by = set(&["--nfs-client", "127.0.0.1", "--read-only"]);
    assert_eq!((&by["nfs_clients"], &by["read_only"]), (&json!(["127.0.0.1/32"]), &json!(true)));
    assert!(reads(&own));
    assert!(!own.writes("docs", ALICE) && own.smb(("docs", ALICE), "ls").0);
    let by = set(&["--no-nfs", "--read-write", "--smb-user", "alice"]);
    assert_eq!((&by["nfs_clients"], &by["smb_users"]), (&json!([]), &json!(["alice"])));
    assert!(!reads(&own));
    assert!(own.writes("docs", ALICE) && !own.smb(("docs", &bob), "ls").0);

    // Users.
    let (code, said) = own.with_password(&["share", "user", "password", "alice"], "another");
    assert_eq!(code, Some(0), "{said}");
    assert!(!own.writes("docs", ALICE) && own.writes("docs", "alice%another"));
    let users = |own: &Own| {
        let listed = own.daemon().call(&["share", "user", "list"]);
        let all = listed["users"].as_array().expect("a list").clone();
        all.iter().map(|user| text(user, "name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(users(&own), ["alice", "bob"]);
    // One who is named is not forgotten by mistake.
    let refused = own.daemon().ends(3, &["share", "user", "delete", "bob"]);
    assert!(refused.contains("ShareUserNamed") && refused.contains("Team 1"), "{refused}");
    own.daemon().call(&["share", "set", "Team 1", "--all-smb-users"]);
    own.daemon().call(&["share", "user", "delete", "bob"]);
    assert_eq!(users(&own), ["alice"]);
    assert!(!own.smb(("Team 1", &bob), "ls").0);
    own.daemon().call(&["share", "delete", "docs", "--yes"]);
    assert!(!own.smb(("docs", "alice%another"), "ls").0 && own.writes("Team 1", "alice%another"));
    own.end();
}

impl Own {
    /// A command ends so, and says this.
    fn ends(&self, code: i32, words: &[String], with: &str) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = self.daemon().ends(code, &words);
        assert!(said.contains(with), "{words:?}: {said}");
    }

    /// A command on a user ends so, and says this.
    fn user_ends(&self, (what, name, password): (&str, &str, &str), code: i32, with: &str) {
        let (ended, said) = self.with_password(&["share", "user", what, name], password);
        assert!(ended == Some(code) && said.contains(with), "{what} {name}: {ended:?} {said}");
    }
}

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

const EXT4: [&str; 2] = ["--format", "ext4"];

#[test]
fn what_is_no_share_is_refused() {
    let Some(own) = Own::new("refused shares", 64, "64M") else { return };
    let create = |name: &str, more: &[&str]| own.at_places(name, more);
    own.ends(2, &create("a%b", &EXT4), "ShareName");
    own.ends(2, &create("docs", &["--smb-user", "A b"]), "ShareUserName");
    own.ends(2, &create("docs", &["--nfs-client", "10.0.0.5/24"]), "ShareClient");
    own.ends(2, &create("docs", &["--smb-user", "a", "a:ro"]), "ShareTwice");
    own.ends(2, &own.create("docs", &["--smb", "--smb-listen", "nas:445"]), "ShareListen");
    own.ends(2, &own.create("docs", &[]), "--smb");
    own.ends(2, &own.create("docs", &["--smb", "--nfs-client", "::1"]), "--nfs");
    own.ends(2, &create("docs", &["--overwrite"]), "--format");
    // It holds nothing to share.
    own.ends(1, &create("docs", &[]), "ShareFailed");
    // Another program has the port: undone, and told in the server's words.
    let taken = TcpListener::bind(own.nfs).expect("listens");
    own.ends(1, &create("docs", &EXT4), "ganesha.nfsd: ");
    drop(taken);
    assert_eq!(own.daemon().call(&["share", "list"])["shares"], json!([]));
    assert_eq!(Services::made(&own.life.place), Vec::<String>::new());
    // What was made then holds: nothing is made in its place.
    own.ends(3, &create("docs", &EXT4), "VolumeHolds");
    own.call(&create("docs", &[&EXT4[..], &["--overwrite"]].concat()));
    // It is shared.
    own.ends(3, &own.create("DOCS", &["--smb"]), "ShareExists");
    own.ends(3, &own.create("more", &[&EXT4[..], &["--smb"]].concat()), "SharedNotFormatted");
    own.ends(3, &words(&["export", "create", &own.volume, "--local"]), "ExportOfShared");
    own.ends(3, &words(&["volume", "delete", &own.volume, "--yes"]), "VolumeShared");
    own.ends(3, &words(&["array", "stop", &own.life.array]), "ArrayShared");
    own.ends(3, &words(&["array", "delete", &own.life.array, "--yes"]), "ArrayShared");
    let shrink = ["volume", "resize", &own.volume, "--size", "32M", "--yes"];
    own.ends(3, &words(&shrink), "SharedShrink");
    own.ends(3, &words(&["share", "delete", "docs"]), "Unconfirmed");
    own.ends(1, &words(&["share", "show", "other"]), "NoShare");
    own.ends(1, &words(&["share", "delete", "other", "--yes"]), "NoShare");
    own.call(&own.create("solo", &["--smb"]));
    own.ends(2, &words(&["share", "set", "solo", "--no-smb"]), "ShareProtocol");
    own.ends(2, &words(&["share", "set", "solo", "--nfs-client", "::1"]), "ShareWithoutProtocol");
    // Another volume's.
    let other = own.life.volume("w", "16M");
    let (smb, local) = (own.smb.to_string(), ["export", "create", &other, "--local"]);
    let share = ["share", "create", "w", "--volume", &other, "--format", "ext4", "--smb"];
    own.ends(3, &words(&[&share[..], &["--smb-listen", &smb]].concat()), "ShareListens");
    own.daemon().call(&local);
    let elsewhere = [&share[..], &["--smb-listen", "127.0.0.1:1"]].concat();
    own.ends(3, &words(&elsewhere), "ShareOnExported");
    own.end();
}

#[test]
fn what_can_not_be_done_with_shares_is_told() {
    let Some(mut own) = Own::new("shares and what fails", 64, "64M") else { return };
    own.call(&own.at_places("docs", &EXT4));
    own.add("alice");
    own.user_ends(("add", "alice", PASSWORD), 3, "ShareUserExists");
    own.user_ends(("add", "Bob", PASSWORD), 2, "ShareUserName");
    own.user_ends(("add", "bob", ""), 2, "ShareUserPassword");
    own.user_ends(("password", "bob", PASSWORD), 1, "NoShareUser");
    own.user_ends(("delete", "bob", PASSWORD), 1, "NoShareUser");
    // What is kept of users can't be read.
    let at = share_mounts(&own.life.place.file("services")).remove(0);
    let kept = at.join("state/shares.toml");
    let text = std::fs::read(&kept).expect("read");
    std::fs::write(&kept, "version = 7").expect("written");
    own.user_ends(("add", "carol", PASSWORD), 1, "ShareUserFailed");
    std::fs::write(&kept, text).expect("written");
    own.well("docs");
    // A process of this machine uses the file system.
    let open = File::open(&at).expect("opened");
    own.ends(3, &words(&["share", "delete", "docs", "--yes"]), "ShareInUse");
    drop(open);
    own.well("docs");
    // Nobody is there who could.
    own.life.services.take().expect("runs").kill();
    own.user_ends(("add", "carol", PASSWORD), 1, "ServicesAbsent");
    own.ends(1, &words(&["share", "delete", "docs", "--yes"]), "ServicesAbsent");
    own.life.services = Some(Services::start(&own.life.place));
    own.well("docs");
    own.end();
}

#[test]
fn what_clients_wrote_outlives_the_machines_stop() {
    let Some(mut own) = Own::new("shares and a stop", 64, "64M") else { return };
    own.call(&own.at_places("docs", &EXT4));
    own.add("alice");
    let known = own.life.place.file("known");
    random_file(&known, 8 * MIB, &mut own.life.place.rng.clone());
    let put = |own: &Own, name: &str| {
        let (is_done, said) = own.smb(("docs", ALICE), &format!("put {} {name}", known.display()));
        assert!(is_done, "{said}");
    };
    let is_whole = |own: &Own, name: &str| {
        let back = own.life.place.file("back");
        let (is_done, said) = own.smb(("docs", ALICE), &format!("get {name} {}", back.display()));
        let bytes = [&known, &back].map(|file| std::fs::read(file).unwrap_or_default());
        assert!(is_done && bytes[0] == bytes[1], "{said}");
    };
    put(&own, "one");
    let programs = own.life.place.file("programs");
    std::fs::create_dir(&programs).expect("made");
    let systemctl = programs.join("systemctl");
    let says = |what: &str| {
        std::fs::write(&systemctl, format!("#!/bin/sh\necho {what}\n")).expect("written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&systemctl, mode).expect("set");
    };
    // A restart of the service is nothing to its clients.
    says("running");
    let folder = own.life.place.file("services");
    own.life.services.take().expect("runs").stop();
    is_whole(&own, "one");
    own.life.services = Some(Services::start(&own.life.place));
    own.well("docs");
    // The machine stops: all is unmounted, and then the daemon ends.
    says("stopping");
    own.life.services.take().expect("runs").stop();
    assert_eq!((share_mounts(&folder), share_servers(&folder)), (Vec::new(), Vec::new()));
    own.life.daemon.take().expect("runs").kill();
    own.life.daemon = Some(Daemon::start(&own.life.place, 2));
    own.life.services = Some(Services::start(&own.life.place));
    own.well("docs");
    is_whole(&own, "one");
    // The daemon alone stops: what stands on it is unmounted first.
    put(&own, "two");
    own.life.daemon.take().expect("runs").stop();
    assert_eq!(share_mounts(&folder), Vec::<std::path::PathBuf>::new());
    own.life.daemon = Some(Daemon::start(&own.life.place, 2));
    own.well("docs");
    is_whole(&own, "two");
    own.end();
}

/// Nothing stands there twice, and what is wanted is there, whenever who makes it is killed.
#[test]
fn a_kill_leaves_no_half() {
    kills("kills of shares", count_of("PALISADE_SHARE_KILLS", 6));
}

fn kills(what: &str, rounds: usize) {
    let Some(mut own) = Own::new(what, 64, "64M") else { return };
    let (mut is_there, mut is_made) = (false, false);
    let kept = |at: &Path| at.join("shares/docs/kept");
    for round in 0..rounds {
        let words = match is_there {
            true => ["share", "delete", "docs", "--yes"].map(str::to_owned).to_vec(),
            false if is_made => own.at_places("docs", &[]),
            false => own.at_places("docs", &["--format", "ext4", "--overwrite"]),
        };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let wait = Duration::from_millis(own.life.place.rng.below(1500));
        let services = own.life.services.take().expect("runs");
        let call = own.daemon().start_call(&words);
        std::thread::sleep(wait);
        services.kill();
        own.life.services = Some(Services::start(&own.life.place));
        let ended = call.wait_with_output().expect("waited for");
        // What was answered counts; what failed is as it was before, or said that it is not.
        let stays = said_by(&ended).contains("it stays until: palisade share delete docs");
        is_there ^= ended.status.success() || stays;
        is_made |= is_there;
        println!("round {round}: after {wait:?} {words:?} {:?}", ended.status.code());
        let listed = own.daemon().call(&["share", "list"]);
        assert_eq!(listed["shares"] != json!([]), is_there, "{}", said_by(&ended));
        let folder = own.life.place.file("services");
        match is_there {
            true => {
                own.well("docs");
                let file = kept(&share_mounts(&folder)[0]);
                match words.contains(&"--format") {
                    true => std::fs::write(&file, "kept").expect("written"),
                    false => assert_eq!(std::fs::read(&file).expect("it stays"), b"kept"),
                }
                own.sync();
            }
            false => until("nothing is left", STAGE, || {
                let is_gone = Services::made(&own.life.place).is_empty();
                (is_gone && share_servers(&folder).is_empty()).then_some(())
            }),
        }
        let servers = share_servers(&folder);
        let mains = servers.iter().filter(|id| is_main(**id)).count();
        assert!(mains <= 2, "a server runs twice: {servers:?}");
    }
    own.end();
}

/// Whether a process is the first of a server: none of its parents is one.
fn is_main(id: i32) -> bool {
    let name = |id: &str| std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap_or_default();
    let parent = name(parent.trim());
    Path::new(&format!("/proc/{id}")).exists()
        && !["smbd", "samba", "rpcd", "ganesha"].iter().any(|own| parent.contains(own))
}
