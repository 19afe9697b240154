//! Shares of a file system on a device of the tests' own, as clients of Samba and NFS-Ganesha see
//! them.

use crate::common::loops::{self, Loop};
use crate::common::services::share_servers as processes;
use crate::common::{Rng, output, program, run, text, tools_are_there, until};
use crate::iscsi::listed;
use ::shares::{Change, Make, Place, Served, Share, ShareName, Told, Type, UserName, Wanted};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

pub const TOOLS: &[&str] = &[
    "losetup",
    "mkfs.xfs",
    "mkfs.ext4",
    "blkid",
    "wipefs",
    "smbd",
    "smbclient",
    "smbpasswd",
    "testparm",
    "smbcontrol",
    "smbstatus",
    "ganesha.nfsd",
    "nfs-ls",
    "nfs-cat",
];
const BYTES: u64 = 400 << 20;
const SOON: Duration = Duration::from_secs(60);

/// A file system on a loop device, with all that serves it.
struct Own {
    folder: PathBuf,
    device: Option<Loop>,
    wanted: Wanted,
    // Last of all.
    place: tempfile::TempDir,
}

/// Addresses at which nobody listens.
pub fn free_ports() -> [SocketAddr; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("bound"));
    listeners.map(|listener| listener.local_addr().expect("known"))
}

fn name(text: &str) -> ShareName {
    ShareName::new(text).expect("a name")
}

fn user(text: &str) -> UserName {
    UserName::new(text).expect("a name")
}

fn share(text: &str) -> Share {
    Share {
        name: name(text),
        is_smb: true,
        is_nfs: true,
        is_read_only: false,
        users: Vec::new(),
        clients: vec![("127.0.0.0/8".parse().expect("addresses"), false)],
    }
}

impl Own {
    fn new() -> Option<Self> {
        Self::at_folder("services")
    }

    fn at_folder(name: &str) -> Option<Self> {
        if !tools_are_there(TOOLS) || !loops::are_to_be_had() {
            return None;
        }
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().canonicalize().expect("there").join(name);
        std::fs::create_dir(&folder).expect("made");
        std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).expect("open");
        let file = place.path().join("device");
        File::create(&file).and_then(|file| file.set_len(BYTES)).expect("made");
        let device = Some(Loop::new(&file, "512"));
        let [smb, nfs] = free_ports();
        let of = "t/v".to_owned();
        let wanted = Wanted { of, make: None, smb, nfs, shares: vec![share("docs")] };
        Some(Self { folder, device, wanted, place })
    }

    fn at(&self) -> Place<'_> {
        Place::new(&self.folder, "a-1")
    }

    fn device(&self) -> (&Path, u64) {
        (Path::new(&self.device.as_ref().expect("there").0), BYTES)
    }

    fn make(&mut self, kind: Type, overwrite: bool) -> Told {
        self.wanted.make = Some(Make { kind, overwrite });
        let told = self.at().serve(&self.wanted, self.device()).expect("made");
        self.wanted.make = None;
        told
    }

    fn serve(&self) -> Served {
        match self.at().serve(&self.wanted, self.device()).expect("served") {
            Told::Served(served) => *served,
            other => panic!("{other:?}"),
        }
    }

    /// Has it served, without a fault.
    fn serve_well(&self) -> Served {
        let served = self.serve();
        for own in [&served.smb, &served.nfs].into_iter().flatten() {
            assert!(own.problem.is_none() && own.problems.is_empty(), "{served:?}");
        }
        served
    }

    /// What `smbclient` says that does something at a share; whether it did it.
    fn smb(&self, (share, account): (&str, &str), words: &str) -> (bool, String) {
        let at = format!("//127.0.0.1/{share}");
        let port = self.wanted.smb.port().to_string();
        let done = output(program("smbclient").args([
            &*at,
            "-p",
            &port,
            "-s",
            "/dev/null",
            "-U",
            account,
            "-c",
            words,
        ]));
        (done.status.success(), text(&done))
    }

    fn url(&self, path: &str) -> String {
        format!("nfs://127.0.0.1{path}?version=4&nfsport={}", self.wanted.nfs.port())
    }

    fn nfs(&self, tool: &str, path: &str) -> (bool, String) {
        let at = self.url(path);
        let done = output(program(tool).arg(at));
        (done.status.success(), text(&done))
    }

    /// Ends all of it; nothing is left.
    fn end(mut self) {
        self.at().leave().expect("nobody uses it");
        assert!(!self.folder.with_extension("shares").exists(), "a mount is left");
        let left: Vec<_> = std::fs::read_dir(&self.folder).expect("read").flatten().collect();
        assert!(left.is_empty(), "{left:?}");
        assert_eq!(processes(self.place.path()), Vec::<i32>::new());
        self.device = None;
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = self.at().end();
    }
}

fn kill(process: Option<Pid>) {
    let process = process.expect("it runs");
    kill_process(process, Signal::KILL).expect("killed");
    let place = PathBuf::from(format!("/proc/{}", process.as_raw_nonzero()));
    until("it is gone", SOON, || (!place.exists()).then_some(()));
}

#[test]
fn a_folder_in_which_samba_would_end_without_a_word_is_told() {
    let name = "a".repeat(80);
    let Some(mut own) = Own::at_folder(&name) else { return };
    assert!(matches!(own.make(Type::Ext4, false), Told::Made));
    let served = own.serve();
    let (smb, nfs) = (served.smb.expect("told"), served.nfs.expect("told"));
    // A process's socket is FOLDER.shares/a-1.locks/msg.sock/PID: 107 bytes at most.
    let most = std::fs::read_to_string("/proc/sys/kernel/pid_max").expect("read");
    let digits = most.trim().len();
    let over = own.folder.as_os_str().len() + ".shares/a-1.locks/msg.sock/".len() + digits - 107;
    let why = smb.problem.expect("it would end without a word");
    let advice = format!("with {over} bytes less");
    assert!(why.contains("too long paths") && why.contains(&advice), "{why}");
    assert!(smb.process.is_none() && nfs.problem.is_none() && nfs.problems.is_empty(), "{nfs:?}");
    let (is_there, said) = own.nfs("nfs-ls", "/docs");
    assert!(is_there, "{said}");
    own.end();
}

#[test]
fn a_file_system_is_made_and_shared() {
    let Some(mut own) = Own::new() else { return };
    assert!(matches!(own.make(Type::Xfs, false), Told::Made));
    // Nobody knew it yet: it is told once more, and not made again.
    let label = |own: &Own| run(program("blkid").args(["-p", "-s", "UUID"]).arg(own.device().0));
    let first = label(&own);
    assert!(matches!(own.make(Type::Xfs, true), Told::Made));
    assert_eq!(label(&own), first);
    let served = own.serve_well();
    assert_eq!((&*served.name, served.is_read_only), ("xfs", false));
    assert!(served.size > BYTES / 2 && served.used < served.size, "{served:?}");
    let (smb, nfs) = (served.smb.expect("served"), served.nfs.expect("served"));
    assert!(smb.version.starts_with(|one: char| one.is_ascii_digit()), "{}", smb.version);
    assert!(nfs.version.starts_with(|one: char| one.is_ascii_digit()), "{}", nfs.version);
    own.at().change(&user("alice"), Change::Add("its password 1")).expect("added");
    own.serve_well();

    // What one writes, others read.
    let mut rng = Rng::of_this_run("shares");
    let mut bytes = vec![0; 5 << 20];
    rng.fill(&mut bytes);
    let (source, back) = (own.place.path().join("source"), own.place.path().join("back"));
    std::fs::write(&source, &bytes).expect("written");
    let alice = ("docs", "alice%its password 1");
    let words = format!("put {} f; mkdir d; get f {}", source.display(), back.display());
    let (is_done, said) = own.smb(alice, &words);
    assert!(is_done && std::fs::read(&back).expect("there") == bytes, "{said}");
    let (is_done, said) = own.nfs("nfs-ls", "/docs");
    assert!(is_done && said.contains(" f") && said.contains(" d"), "{said}");
    let got = output(program("nfs-cat").arg(own.url("/docs/f")));
    assert!(
        got.status.success() && got.stdout == bytes,
        "{}",
        String::from_utf8_lossy(&got.stderr)
    );

    // It lies where it has to, and no user of the machine comes there.
    let at = own.at().at();
    let about = std::fs::metadata(at.join("shares/docs/f")).expect("there");
    assert_eq!((about.gid(), about.mode() & 0o777), (::shares::GROUP, 0o775));
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o7777;
    assert_eq!((mode(&at.join("state")), mode(at.parent().expect("one"))), (0o700, 0o710));
    // No secret stands where others may read it.
    let shown = run(program("ps").args(["-e", "-o", "args"]));
    assert!(!shown.contains("its password"), "{shown}");

    // Strangers are not let in.
    for account in ["alice%wrong", "bob%its password 1", "%"] {
        let (is_done, said) = own.smb(("docs", account), "ls");
        assert!(!is_done, "{said}");
    }
    let served = own.serve_well();
    assert_eq!(served.users.iter().map(|own| &*own.name).collect::<Vec<_>>(), ["alice"]);
    own.end();
}

/// Has bob connected to a share, who waits there for what he is to do.
fn bob_at(own: &Own, share: &str) -> Child {
    let mut there = program("smbclient");
    let port = own.wanted.smb.port().to_string();
    let share = format!("//127.0.0.1/{share}");
    there.args([&*share, "-p", &port, "-s", "/dev/null", "-U", "bob%two"]);
    there.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let there = there.spawn().expect("started");
    until("bob is there", SOON, || {
        own.serve().smb.is_some_and(|smb| !smb.clients.is_empty()).then_some(())
    });
    there
}

/// Who is there with another password than is right from then on is there no more.
fn assert_cut_off(own: &Own, bob: &UserName) {
    let mut there = bob_at(own, "Größe 1");
    own.at().change(bob, Change::Password("three")).expect("changed");
    until("bob is gone", SOON, || {
        own.serve().smb.is_some_and(|smb| smb.clients.is_empty()).then_some(())
    });
    // It asks, and hears nothing.
    let _ = writeln!(there.stdin.take().expect("piped"), "ls");
    let said = text(&there.wait_with_output().expect("waited for"));
    assert!(said.contains("NT_STATUS_CONNECTION"), "{said}");
}

/// The names of shares that bob is told of.
fn bobs_list(own: &Own) -> Vec<String> {
    let port = own.wanted.smb.port().to_string();
    let words = ["-g", "-s", "/dev/null", "-U", "bob%two", "-L", "//127.0.0.1", "-p", &port];
    let listed = run(program("smbclient").args(words));
    let shares = listed.lines().filter_map(|line| line.strip_prefix("Disk|")?.split('|').next());
    let mut shares: Vec<_> = shares.map(str::to_owned).collect();
    shares.sort();
    shares
}

/// Who may have a share by NFS has it, and who may not has not, from the answer on, each time.
fn assert_counts_at_once(own: &mut Own) {
    let file = own.folder.join("a-1.shares/nfs/ganesha.conf");
    let read = || std::fs::read_to_string(&file).expect("there");
    let mut before = read();
    for round in 0..8 {
        let is_let_in = round % 2 == 1;
        let network = if is_let_in { "127.0.0.0/8" } else { "192.0.2.0/24" };
        own.wanted.shares[0].clients = vec![(network.parse().expect("addresses"), false)];
        own.serve_well();
        let (is_done, said) = own.nfs("nfs-cat", "/docs/f");
        assert_eq!(is_done, is_let_in, "{round}: {said}");
        // Who wrote what is wanted next may have been killed before Ganesha was told.
        let now = read();
        std::fs::write(&file, before).expect("written");
        before = now;
    }
}

#[test]
fn who_may_have_a_share_changes_while_it_is_served() {
    let Some(mut own) = Own::new() else { return };
    own.make(Type::Ext4, false);
    own.wanted.shares.push(share("Größe 1"));
    own.serve_well();
    for (name, password) in [("alice", "one"), ("bob", "two")] {
        own.at().change(&user(name), Change::Add(password)).expect("added");
    }
    let twice = own.at().change(&user("bob"), Change::Add("x")).expect_err("there").to_string();
    assert!(twice.contains("already"), "{twice}");
    let touch =
        |own: &Own, share: &str, account: &str| own.smb((share, account), "mkdir a; rmdir a; ls").0;
    let writes = |own: &Own, share: &str, account: &str| {
        let (is_done, said) = own.smb((share, account), "mkdir a; rmdir a");
        is_done && !said.contains("NT_STATUS")
    };
    assert!(writes(&own, "docs", "alice%one") && writes(&own, "Größe 1", "bob%two"));
    // Names are listed as they are, and those alone.
    assert_eq!(bobs_list(&own), ["Größe 1", "docs"]);

    // Only alice, and bob who reads.
    own.wanted.shares[0].users = vec![(user("alice"), false), (user("bob"), true)];
    own.serve_well();
    assert!(writes(&own, "docs", "alice%one") && !writes(&own, "docs", "bob%two"));
    assert!(touch(&own, "docs", "bob%two"));
    let mut there = bob_at(&own, "docs");
    own.wanted.shares[0].users.pop();
    own.serve_well();
    assert!(!touch(&own, "docs", "bob%two"));
    // Nor in a connection that he had.
    let asks = b"ls\ntcon docs\nls\n";
    there.stdin.take().expect("piped").write_all(asks).expect("asked");
    let said = text(&there.wait_with_output().expect("waited for"));
    assert!(said.contains("tcon failed: NT_STATUS_ACCESS_DENIED"), "{said}");
    // Nobody writes.
    own.wanted.shares[0].is_read_only = true;
    own.serve_well();
    assert!(!writes(&own, "docs", "alice%one") && touch(&own, "docs", "alice%one"));
    assert_eq!(bobs_list(&own), ["Größe 1"], "bob has no other");
    // Of other addresses, over NFS.
    std::fs::write(own.at().at().join("shares/docs/f"), "read").expect("written");
    assert!(own.nfs("nfs-cat", "/docs/f").0);
    assert_counts_at_once(&mut own);
    // One goes, and with the last of a protocol its server.
    own.wanted.shares.remove(0);
    own.serve_well();
    assert_eq!(bobs_list(&own), ["Größe 1"]);
    assert!(!own.nfs("nfs-ls", "/docs").0 && own.nfs("nfs-ls", "/Größe 1").0);
    own.wanted.shares[0].is_smb = false;
    assert!(own.serve_well().smb.is_none());
    assert!(!touch(&own, "Größe 1", "bob%two"));
    own.wanted.shares[0].is_smb = true;
    own.serve_well();
    assert!(writes(&own, "Größe 1", "bob%two"), "the server is another, bob the same");
    assert_cut_off(&own, &user("bob"));
    assert!(!touch(&own, "Größe 1", "bob%two") && writes(&own, "Größe 1", "bob%three"));
    own.at().change(&user("bob"), Change::Delete).expect("gone");
    assert!(!touch(&own, "Größe 1", "bob%three"));
    own.end();
}

/// A text that may be the name of a share: of what servers, clients and people may misread.
fn any_name(rng: &mut Rng) -> String {
    const PARTS: &[&str] = &[
        "a", "B", "7", "docs", "ß", "ö", "文", "ﬁ", "é", "e\u{301}", "\u{200b}", "𝒜", "%U", "%",
        ";", "#", "\"", "'", "\\", "/", "\n", "\t", "]", "[", "$", "..", ".", "-", "_", " ", "  ",
        "=", ",", "*", "global", "IPC$", "{", "}", "\u{202e}", "\0",
    ];
    let count = 1 + rng.below(5);
    (0..count).map(|_| PARTS[rng.below(PARTS.len() as u64) as usize]).collect()
}

#[test]
fn a_name_is_refused_or_means_that_share() {
    let Some(mut own) = Own::new() else { return };
    let mut rng = Rng::of_this_run("names of shares");
    let mut names = vec!["Team 1".to_owned(), "a.b-c_d".to_owned(), "größe".to_owned()];
    while names.len() < 24 {
        let text = any_name(&mut rng);
        let is_new = |name: &ShareName| {
            names.iter().all(|known| !name.is_same(&ShareName::new(known).expect("a name")))
        };
        if ShareName::new(&text).is_ok_and(|name| is_new(&name)) {
            names.push(text);
        }
    }
    names.sort();
    own.wanted.shares = names.iter().map(|name| share(name)).collect();
    own.make(Type::Ext4, false);
    own.serve_well();
    own.at().change(&user("alice"), Change::Add("one")).expect("added");
    let port = own.wanted.smb.port().to_string();
    let words = ["-g", "-s", "/dev/null", "-U", "alice%one", "-L", "//127.0.0.1", "-p", &port];
    let listed = run(program("smbclient").args(words));
    let by_smb = listed.lines().filter_map(|line| line.strip_prefix("Disk|")?.split('|').next());
    let mut by_smb: Vec<_> = by_smb.collect();
    by_smb.sort_unstable();
    assert_eq!(by_smb, names);
    // What stands below the root of NFS: `MODE LINKS USER GROUP SIZE NAME`.
    let listed = own.nfs("nfs-ls", "/").1;
    let name = |line: &str| {
        let mut rest = line;
        for _ in 0..5 {
            rest = rest.trim_start().split_once(' ')?.1;
        }
        Some(rest.trim_start().to_owned())
    };
    let by_nfs = listed.lines().filter(|line| line.starts_with('d')).filter_map(name);
    let mut by_nfs: Vec<_> = by_nfs.filter(|name| name != "." && name != "..").collect();
    by_nfs.sort_unstable();
    assert_eq!(by_nfs, names, "{listed}");
    own.end();
}

#[test]
fn what_a_device_holds_stays_unless_it_may_go() {
    let Some(mut own) = Own::new() else { return };
    own.make(Type::Ext4, false);
    own.serve_well();
    let twice =
        Wanted { make: Some(Make { kind: Type::Xfs, overwrite: true }), ..own.wanted.clone() };
    let refused = own.at().serve(&twice, own.device()).expect_err("mounted").to_string();
    assert!(refused.contains("not made again"), "{refused}");
    own.at().leave().expect("ended");
    match own.make(Type::Xfs, false) {
        Told::Holds(what) => assert_eq!(what, "a file system (ext4)"),
        other => panic!("{other:?}"),
    }
    // It is served as it is.
    assert_eq!(own.serve_well().name, "ext4");
    own.at().leave().expect("ended");
    assert!(matches!(own.make(Type::Xfs, true), Told::Made));
    assert_eq!(own.serve_well().name, "xfs");
    own.at().leave().expect("ended");
    let device = File::options().write(true).open(own.device().0).expect("opened");
    device.write_all_at(&[0; 1 << 20], 0).expect("written");
    let none = own.at().serve(&own.wanted, own.device()).expect_err("none").to_string();
    assert!(none.contains("no file system to share"), "{none}");
    own.end();
}

#[test]
fn servers_that_end_are_started_and_found_again() {
    let Some(mut own) = Own::new() else { return };
    own.make(Type::Xfs, false);
    let served = own.serve_well();
    own.at().change(&user("alice"), Change::Add("one")).expect("added");
    let before = processes(own.place.path());
    own.serve_well();
    assert_eq!(processes(own.place.path()), before, "they are as they were");
    kill(served.smb.expect("served").process);
    kill(served.nfs.expect("served").process);
    let served = own.serve_well();
    assert!(own.smb(("docs", "alice%one"), "mkdir a").0 && own.nfs("nfs-ls", "/docs").0);
    // Only the worker that speaks the protocol: a client asks again.
    let main = served.smb.expect("served").process.expect("runs").as_raw_nonzero().get();
    for process in processes(own.place.path()).into_iter().filter(|own| *own != main) {
        let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        if name.starts_with("smbd") {
            kill(Pid::from_raw(process));
        }
    }
    until("Samba serves", SOON, || {
        let served = own.serve();
        served.smb.is_some_and(|own| own.problem.is_none() && own.problems.is_empty()).then_some(())
    });
    assert!(own.smb(("docs", "alice%one"), "rmdir a; mkdir b").0);
    // The volume moves: its users and files with it.
    own.at().leave().expect("ended");
    let other = Place::new(&own.folder, "b-7");
    match other.serve(&own.wanted, own.device()).expect("served") {
        Told::Served(served) => assert!(served.users.iter().any(|own| own.name == "alice")),
        other => panic!("{other:?}"),
    }
    let (is_done, said) = own.smb(("docs", "alice%one"), "cd b");
    assert!(is_done, "{said}");
    other.leave().expect("ended");
    own.end();
}

#[test]
fn a_server_that_can_not_serve_is_told_in_its_words() {
    let Some(mut own) = Own::new() else { return };
    own.make(Type::Xfs, false);
    let taken = TcpListener::bind(own.wanted.nfs).expect("bound");
    let served = own.serve();
    let why = served.nfs.and_then(|own| own.problem).expect("it can't");
    assert!(why.starts_with("ganesha.nfsd: "), "{why}");
    assert!(served.smb.is_some_and(|own| own.problem.is_none()), "the other serves");
    drop(taken);
    own.serve_well();
    // Users can't come there.
    own.at().leave().expect("ended");
    let closed = |mode| std::fs::set_permissions(own.place.path(), PermissionsExt::from_mode(mode));
    closed(0o700).expect("closed");
    let told = own.at().serve(&own.wanted, own.device()).expect_err("closed").to_string();
    assert!(told.contains("is closed to them (mode 0700)"), "{told}");
    closed(0o755).expect("open");
    own.serve_well();
    // Clients' files of a share are gone: health tells it.
    let at = own.at().at().join("shares/docs");
    std::fs::rename(&at, at.with_extension("old")).expect("renamed");
    std::fs::write(&at, "no folder").expect("written");
    let told = own.at().serve(&own.wanted, own.device()).expect_err("none").to_string();
    assert!(told.contains("is no directory"), "{told}");
    std::fs::remove_file(&at)
        .and_then(|()| std::fs::rename(at.with_extension("old"), &at))
        .expect("back");
    own.serve_well();
    own.end();
}

/// Suites of Samba's tests of SMB that are run: those that end soon, and are of what shares do.
const SUITES: &[&str] = &[
    "acls",
    "charset",
    "compound",
    "connect",
    "create",
    "credits",
    "delete-on-close-perms",
    "durable-open",
    "durable-v2-open",
    "fileid",
    "getinfo",
    "ioctl",
    "lock",
    "mangle",
    "maximum_allowed",
    "mkdir",
    "openattr",
    "read",
    "rename",
    "rw",
    "sdread",
    "session",
    "session-id",
    "session-require-signing",
    "setinfo",
    "sharemode",
    "streams",
    "tcon",
    "winattr",
];

/// What shares do not do as Samba's tests want it: `SUITE.TEST fails WHY` a line. The list may only
/// become shorter.
const SMB: &str = include_str!("shares/smb.txt");

#[test]
fn smb_does_what_its_list_says() {
    if !tools_are_there(&["smbtorture"]) {
        return;
    }
    let Some(mut own) = Own::new() else { return };
    own.wanted.shares[0].is_nfs = false;
    own.make(Type::Ext4, false);
    own.serve_well();
    own.at().change(&user("alice"), Change::Add("one")).expect("added");
    let port = own.wanted.smb.port().to_string();
    let mut found = BTreeSet::new();
    for suite in SUITES {
        let mut test = program("smbtorture");
        test.current_dir(own.place.path());
        test.args(["//127.0.0.1/docs", "-p", &port, "-s", "/dev/null", "-U", "alice%one"]);
        let said = text(&output(test.arg(format!("smb2.{suite}"))));
        assert!(said.lines().any(|line| line.starts_with("test: ")), "{suite}: {said}");
        let failed = said.lines().filter_map(|line| {
            let (how, test) = line.strip_suffix(" [")?.split_once(": ")?;
            let test = test.split_whitespace().next()?;
            ["failure", "error"].contains(&how).then(|| format!("{suite}.{test}"))
        });
        found.extend(failed);
    }
    assert_eq!(found, listed(SMB, "fails"), "the list of SMB is another");
    own.end();
}
