//! Volumes that hosts have over iSCSI, by tgt: what the daemon, `palisade services` and the command
//! line make of an export, as initiators see it. The kernel's initiator, and LIO, are in guests.

use crate::common::place::{Daemon, Place};
use crate::common::services::Services;
use crate::common::targets::{self, portal, servers};
use crate::common::{
    output, program, random_file, run, start, text as said_by, tools_are_there, until,
};
use crate::services::{Life, lose_a_drive, served, text};
use ::iscsi::{Account, Asked, Name, Secret, UNIT, ask};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

const TOOLS: &[&str] = &[
    "tgtd",
    "tgtadm",
    "iscsi-ls",
    "iscsi-inq",
    "iscsi-readcapacity16",
    "iscsi-test-cu",
    "qemu-img",
    "qemu-storage-daemon",
    "pgrep",
];
/// How long one stage may take.
const STAGE: Duration = Duration::from_secs(120);
const MIB: u64 = 1 << 20;
/// The name that QEMU's initiator has.
const QEMU: &str = "iqn.2008-11.org.linux-kvm";
const HOST: &str = "iqn.2026-11.example:host";
const OTHER: &str = "iqn.2026-11.example:other";
/// What hosts are told instead of where it listens.
const TOLD: &str = "203.0.113.7:3260";
const USER: &str = "host-1";
const SECRET: &str = "correct-secret";

/// What tgt does not do as the tests of libiscsi want it: `SUITE.TEST HOW WHY` a line, where HOW is
/// `fails` or `slow`. What is slow is not run here. The list may only become shorter.
const TGT: &str = include_str!("iscsi/tgt.txt");

/// A life with tools for all of it.
fn life(what: &str) -> Option<Life> {
    if !tools_are_there(TOOLS) {
        return None;
    }
    Life::new(what, 64)
}

/// Whether an initiator is let in, and reads a block; why not.
fn told(portal: SocketAddr, target: &str, who: &str, secret: Option<&str>) -> Result<u64, String> {
    let [target, initiator] = [target, who].map(|name| Name::new(name).expect("a name"));
    let account = secret.map(|secret| {
        Account::new(USER, Secret::new(secret).expect("possible")).expect("possible")
    });
    let account = account.as_ref();
    let asked = Asked { portal, target: &target, unit: UNIT, initiator: &initiator, account };
    ask(&asked, STAGE).map(|told| told.bytes).map_err(|refusal| refusal.to_string())
}

fn url(portal: SocketAddr, target: &str) -> String {
    format!("iscsi://{USER}%{SECRET}@{portal}/{target}/{UNIT}")
}

/// Writes a file to a volume, and reads it again.
fn write(file: &Path, url: &str) {
    let file = file.to_str().expect("text");
    run(program("qemu-img").args(["convert", "-n", "-f", "raw", "-O", "raw", file, url]));
}

fn compare(file: &Path, url: &str) {
    let file = file.to_str().expect("text");
    run(program("qemu-img").args(["compare", "-f", "raw", "-F", "raw", file, url]));
}

/// An initiator that stays logged in; killed when dropped.
struct LoggedIn(Child);

impl LoggedIn {
    fn new(portal: SocketAddr, target: &str) -> Self {
        let about = format!(
            "driver=iscsi,node-name=v,transport=tcp,portal={portal},target={target},lun={UNIT},\
             initiator-name={HOST},user={USER},password-secret=secret"
        );
        let secret = format!("secret,id=secret,data={SECRET}");
        let mut daemon = program("qemu-storage-daemon");
        Self(start(daemon.args(["--object", &secret, "--blockdev", &about])))
    }
}

impl Drop for LoggedIn {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn sessions(shown: &Value) -> Vec<&str> {
    let all = shown["iscsi"]["sessions"].as_array().expect("a list");
    all.iter().map(|name| name.as_str().expect("text")).collect()
}

/// A life with a target that has CHAP, of a volume with these bytes.
struct Served {
    life: Life,
    id: String,
    at: SocketAddr,
    target: String,
    url: String,
    create: Vec<String>,
    known: PathBuf,
}

impl Served {
    fn new(what: &str, last: u8) -> Option<Self> {
        let life = life(what)?;
        let name = life.volume("v", "64M");
        let (id, at) = (format!("{}:1", life.array), portal(last));
        let secret = life.place.file("secret");
        std::fs::write(&secret, format!("{SECRET}\n")).expect("written");
        let (at_text, secret) = (at.to_string(), secret.to_str().expect("text").to_owned());
        // Names are the same in capital letters.
        let host = HOST.to_uppercase();
        let create: Vec<String> = [
            ["export", "create", &name, "--iscsi", &at_text, "--initiator", QEMU, &host],
            ["--chap", USER, "--secret-file", &secret, "--advertise", TOLD, "--server", "tgt"],
        ]
        .concat()
        .iter()
        .map(ToString::to_string)
        .collect();
        let made = life.daemon().call(&words(&create));
        assert_eq!((text(&made, "kind"), text(&made["health"], "state")), ("iscsi", "ok"));
        let about = &made["iscsi"];
        assert_eq!((text(about, "server"), about["lun"].as_u64()), ("tgt", Some(UNIT.into())));
        assert_eq!(about["portals"], serde_json::json!([at_text]));
        assert_eq!(about["initiators"], serde_json::json!([QEMU, HOST]));
        assert!(!made.to_string().contains(SECRET), "{made}");
        assert!(text(&made, "uri").starts_with(&format!("iscsi://{TOLD}/")), "{made}");
        assert!(made["connect"].to_string().contains(&format!("-p {TOLD} -o new")), "{made}");
        let target = text(about, "target").to_owned();
        let (url, known) = (url(at, &target), life.place.file("known"));
        random_file(&known, 64 * MIB, &mut life.place.rng.clone());
        Some(Self { life, id, at, target, url, create, known })
    }

    fn told(&self) -> Result<u64, String> {
        told(self.at, &self.target, HOST, Some(SECRET))
    }

    fn folder(&self) -> PathBuf {
        self.life.place.file("services")
    }

    fn served(&self) -> Value {
        served(self.life.daemon(), &self.id)
    }

    fn has_sessions(&self, wanted: &[&str]) {
        until("who is logged in is told", STAGE, || {
            (sessions(&self.served()) == wanted).then_some(())
        });
    }

    /// Ends the daemon, and starts another.
    fn restart(&mut self, between: impl FnOnce(&Self)) {
        self.life.daemon.take().expect("runs").stop();
        between(self);
        self.life.daemon = Some(Daemon::start(&self.life.place, 2));
    }

    fn end(self) {
        self.life.daemon().call(&["export", "delete", &self.id]);
        if !self.life.daemon().call(&["export", "list"]).to_string().contains("host-2") {
            self.is_forgotten();
        }
        self.life.end();
    }

    fn is_forgotten(&self) {
        let kept = self.life.place.file("state").join("chap.json");
        assert!(!std::fs::read_to_string(kept).expect("there").contains(SECRET));
    }
}

fn words(all: &[String]) -> Vec<&str> {
    all.iter().map(String::as_str).collect()
}

#[test]
fn a_target_is_what_it_says_and_lets_in_whom_it_names() {
    let Some(own) = Served::new("iscsi", 11) else { return };
    assert_eq!(own.told(), Ok(64 * MIB));
    for (who, secret) in [(OTHER, Some(SECRET)), (HOST, Some("wrong-secret")), (HOST, None)] {
        let told = told(own.at, &own.target, who, secret);
        assert!(told.is_err(), "{who} {secret:?} is let in");
    }
    let place = format!("iscsi://{USER}%{SECRET}@{}", own.at);
    let listed = run(program("iscsi-ls").args(["-i", HOST, "-s", &place]));
    assert!(listed.contains(&own.target) && listed.contains("Lun:1 "), "{listed}");
    let about = run(program("iscsi-inq").args(["-i", HOST, &own.url]));
    assert!(about.contains("Vendor:PALISADE") && about.contains("Product:VOLUME "), "{about}");
    let serial = run(program("iscsi-inq").args(["-i", HOST, "-e", "1", "-c", "128", &own.url]));
    let uuid = own.target.rsplit_once(':').expect("a UUID").1;
    assert!(serial.contains(&format!("[{uuid}]")), "{serial}");
    let size = run(program("iscsi-readcapacity16").args(["-i", HOST, &own.url]));
    assert!(size.contains(&format!("Total size:{}", 64 * MIB)), "{size}");
    write(&own.known, &own.url);
    compare(&own.known, &own.url);
    // Another volume at the same portal, with a user of its own; one user is one export's.
    let (other, at) = (own.life.volume("w", "16M"), own.at.to_string());
    let secret = own.life.place.file("secret");
    let create = ["export", "create", &other, "--iscsi", &at, "--initiator", HOST, "--chap"];
    let secret = ["--secret-file", secret.to_str().expect("text")];
    let said = own.life.daemon().ends(1, &[&create[..], &[USER], &secret].concat());
    assert!(said.contains("has the user host-1"), "{said}");
    let made = own.life.daemon().call(&[&create[..], &["host-2"], &secret].concat());
    assert_eq!(text(&made["health"], "state"), "ok");
    assert_eq!(own.told(), Ok(64 * MIB));
    own.end();
}

#[test]
fn a_target_goes_on_without_a_drive_and_without_its_servers() {
    let Some(mut own) = Served::new("iscsi goes on", 15) else { return };
    let (folder, url, known) = (own.folder(), own.url.clone(), own.known.clone());
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| (0..3).for_each(|_| write(&known, &url)));
        lose_a_drive(&mut own.life, || {
            let before = servers(&folder);
            targets::kill(&folder);
            until("another serves", STAGE, || {
                let now = servers(&folder);
                (!now.is_empty() && now != before).then_some(())
            });
        });
        worker.join().expect("written");
    });
    compare(&known, &url);
    own.served();
    // Targets go on without `palisade services`, which finds them again.
    let before = servers(&folder);
    let logged_in = LoggedIn::new(own.at, &own.target);
    own.has_sessions(&[HOST]);
    own.life.services.take().expect("runs").kill();
    compare(&known, &url);
    own.life.services = Some(Services::start(&own.life.place));
    own.has_sessions(&[HOST]);
    assert_eq!(servers(&folder), before);
    // The daemon goes, and comes again.
    drop(logged_in);
    own.life.daemon.take().expect("runs").kill();
    own.life.daemon = Some(Daemon::start(&own.life.place, 2));
    own.served();
    compare(&known, &url);
    own.end();
}

#[test]
fn a_target_has_the_volumes_size_and_rests_with_its_array() {
    let Some(own) = Served::new("iscsi rests", 16) else { return };
    write(&own.known, &own.url);
    let name = format!("{}/v", own.life.array);
    // A target has the size that it had for as long as somebody has it.
    let logged_in = LoggedIn::new(own.at, &own.target);
    own.has_sessions(&[HOST]);
    own.life.daemon().call(&["volume", "resize", &name, "--size", "72M"]);
    until("it is told", STAGE, || {
        let shown = own.life.daemon().call(&["export", "show", &own.id]);
        let problem = shown["health"]["problem"].as_str().unwrap_or_default().to_owned();
        problem.contains(&format!("has {} bytes until", 64 * MIB)).then_some(())
    });
    drop(logged_in);
    until("it has the size", STAGE, || (own.told() == Ok(72 * MIB)).then_some(()));
    compare_start(&own.known, &own.url);
    // While its array does not run, who comes is told to come again, and has no errors.
    let array = own.life.array.clone();
    let logged_in = LoggedIn::new(own.at, &own.target);
    own.has_sessions(&[HOST]);
    own.life.daemon().call(&["array", "stop", &array]);
    let why = own.told().expect_err("it rests");
    assert!(why.contains("0x0300"), "{why}");
    own.life.daemon().call(&["array", "assemble", &array]);
    own.served();
    drop(logged_in);
    compare_start(&own.known, &own.url);
    own.end();
}

#[test]
fn a_secret_stands_in_one_file_and_is_given_again() {
    let Some(mut own) = Served::new("iscsi secrets", 17) else { return };
    write(&own.known, &own.url);
    let state = own.life.place.file("state");
    let all = std::fs::read_dir(&state).expect("is there").flatten();
    let with_it = all.filter(|file| {
        String::from_utf8_lossy(&std::fs::read(file.path()).unwrap_or_default()).contains(SECRET)
    });
    let with_it: Vec<_> = with_it.map(|file| file.file_name()).collect();
    assert_eq!(with_it, ["chap.json"]);
    let shown = own.life.daemon().call(&["export", "list"]);
    assert!(!shown.to_string().contains(SECRET));
    own.restart(|own| {
        // The records have what is not secret.
        let record = Place::read_array(&["--info"], &own.life.drives);
        assert!(record.contains(HOST) && record.contains(USER), "{record}");
        assert!(!record.contains(SECRET));
        std::fs::remove_file(state.join("chap.json")).expect("removed");
    });
    let shown = own.life.daemon().call(&["export", "show", &own.id]);
    assert!(text(&shown, "problem").contains("CHAP secret is not here"), "{shown}");
    assert_eq!((&shown["serving"], text(&shown["health"], "state")), (&false.into(), "failed"));
    until("nobody is let in", STAGE, || own.told().is_err().then_some(()));
    own.life.daemon().call(&words(&own.create));
    assert_eq!(own.told(), Ok(64 * MIB));
    compare(&own.known, &own.url);
    own.end();
}

/// The begin of a volume that is larger than the file.
fn compare_start(file: &Path, url: &str) {
    let mut compare = program("qemu-img");
    let compare = compare.args(["compare", "-f", "raw", "-F", "raw"]).arg(file).arg(url);
    let told = output(compare);
    // What is behind reads as zeros: they count as the same.
    assert!(said_by(&told).contains("Images are identical"), "{}", said_by(&told));
}

#[test]
fn a_secret_that_is_not_kept_makes_no_export() {
    let Some(mut life) = life("iscsi secrets that are not kept") else { return };
    let name = life.volume("v", "16M");
    let (state, secret) = (life.place.file("state"), life.place.file("secret"));
    std::fs::write(&secret, SECRET).expect("written");
    life.daemon.take().expect("runs").stop();
    std::fs::write(state.join("chap.json"), "{").expect("written");
    life.daemon = Some(Daemon::start(&life.place, 2));
    let (at, secret) = (portal(18).to_string(), secret.to_str().expect("text"));
    let create = ["export", "create", &name, "--iscsi", &at, "--initiator", HOST];
    let chap = ["--chap", USER, "--secret-file", secret];
    let said = life.daemon().ends(1, &[&create[..], &chap].concat());
    assert!(said.contains("ChapNotKept") && said.contains("chap.json"), "{said}");
    assert_eq!(life.daemon().call(&["export", "list"])["exports"], serde_json::json!([]));
    // Others are made, and the file stays for a person to see to.
    life.daemon().call(&create);
    assert_eq!(std::fs::read_to_string(state.join("chap.json")).expect("there"), "{");
    life.daemon().call(&["export", "delete", &format!("{}:1", life.array)]);
    assert_eq!(servers(&life.place.file("services")), Vec::<i32>::new());
}

#[test]
fn what_is_no_target_is_refused() {
    let Some(life) = life("refused iscsi") else { return };
    let name = life.volume("v", "16M");
    let at = portal(12).to_string();
    let short = life.place.file("short");
    std::fs::write(&short, "short\n").expect("written");
    let good = life.place.file("good");
    std::fs::write(&good, SECRET).expect("written");
    let [short, good] = [&short, &good].map(|file| file.to_str().expect("text").to_owned());
    let none = life.place.file("none").to_str().expect("text").to_owned();
    let begin = ["export", "create", &name, "--iscsi"];
    let ends = |code, words: &[&str], with: &str| {
        let said = life.daemon().ends(code, &[&begin[..], words].concat());
        assert!(said.contains(with), "{words:?}: {said}");
    };
    ends(2, &[&at], "NoInitiators");
    ends(2, &[&at, "--initiator", "host"], "BadIqn");
    ends(2, &[&at, "--initiator", "iqn.2026-13.example:a"], "BadIqn");
    ends(2, &["localhost:3260", "--initiator", HOST], "BadPortal");
    ends(2, &["127.0.0.1:0", "--initiator", HOST], "BadPortal");
    ends(2, &["127.0.0.1", "--initiator", HOST], "BadPortal");
    ends(2, &[&at, &at, "--initiator", HOST], "PortalTwice");
    ends(2, &[&at, "--initiator", HOST, &HOST.to_uppercase()], "PortalTwice");
    let told = ["--advertise", "203.0.113.7:3260", "203.0.113.8:3260"];
    ends(2, &[&[&at, "--initiator", HOST][..], &told].concat(), "PortalCount");
    ends(2, &[&at, "--initiator", HOST, "--chap", USER], "ChapHalf");
    ends(2, &[&at, "--initiator", HOST, "--secret-file", &good], "ChapHalf");
    ends(2, &[&at, "--initiator", HOST, "--chap", USER, "--secret-file", &short], "ChapSecret");
    ends(2, &[&at, "--initiator", HOST, "--chap", "a,b", "--secret-file", &good], "ChapUser");
    ends(1, &[&at, "--initiator", HOST, "--chap", USER, "--secret-file", &none], "SecretNotRead");
    ends(2, &[&at, "--initiator", HOST, "--nbd", "127.0.0.1:0"], "cannot be used");
    ends(2, &[&at, "--initiator", HOST, "--host", "nqn.2026-11.example:a"], "cannot be used");
    ends(1, &[&at, "--initiator", HOST, "--server", "lio"], "has no ublk");
    // Another program has the port.
    let taken = TcpListener::bind(portal(13)).expect("listens");
    let there = portal(13).to_string();
    ends(1, &[&there, "--initiator", HOST], "Address already in use");
    drop(taken);
    let listed = life.daemon().call(&["export", "list"]);
    assert_eq!(listed["exports"], serde_json::json!([]));
    assert_eq!(
        servers(&life.place.file("services")),
        Vec::<i32>::new(),
        "what could not be leaves nothing"
    );
    // A volume is one target, and as it is served now.
    let made = life.daemon().call(&[&begin[..], &[&at, "--initiator", HOST, QEMU]].concat());
    let known = life.place.file("known");
    random_file(&known, 16 * MIB, &mut life.place.rng.clone());
    write(&known, &format!("iscsi://{at}/{}/{UNIT}", text(&made["iscsi"], "target")));
    ends(1, &[&at, "--initiator", OTHER], "AlreadyATarget");
    ends(1, &[&at, "--initiator", HOST, QEMU], "AlreadyATarget");
    life.end();
}

#[test]
fn tgt_does_what_its_list_says() {
    let Some(life) = life("libiscsi's tests") else { return };
    // What tgt fills it does block by block.
    let name = life.volume("v", "4M");
    let at = portal(14);
    let words = ["--iscsi", &at.to_string(), "--initiator", HOST, OTHER, "--server", "tgt"];
    let made = life.daemon().call(&[&["export", "create", &name][..], &words].concat());
    let url = format!("iscsi://{at}/{}/{UNIT}", text(&made["iscsi"], "target"));
    let found = failures(TGT, &url);
    assert_eq!(found, listed(TGT, "fails"), "the list of tgt is another");
    life.daemon().call(&["export", "delete", &format!("{}:1", life.array)]);
    life.end();
}

/// The tests of a list that it says this of.
pub fn listed(list: &str, how: &str) -> BTreeSet<String> {
    let of = |line: &str| {
        let (test, rest) = line.split_once(' ')?;
        (rest.split_whitespace().next() == Some(how)).then(|| test.to_owned())
    };
    list.lines().filter(|line| !line.starts_with('#')).filter_map(of).collect()
}

/// The tests of libiscsi that fail, of those that a list does not call slow.
fn failures(list: &str, url: &str) -> BTreeSet<String> {
    let slow = listed(list, "slow");
    let all = run(program("iscsi-test-cu").arg("--list"));
    let all: Vec<&str> = all.lines().filter_map(|line| line.strip_prefix("ALL.")).collect();
    assert!(all.len() > 200, "{all:?}");
    let mut found = BTreeSet::new();
    for suite in all.iter().filter(|name| !name.contains('.')) {
        let tests = all
            .iter()
            .filter(|name| name.strip_prefix(suite).is_some_and(|rest| rest.starts_with('.')));
        let run_of = |name: &str| {
            let mut test = program("iscsi-test-cu");
            test.args(["-i", HOST, "-I", OTHER, "--dataloss", "-n", "-t"]);
            said_by(&output(test.arg(format!("ALL.{name}")).arg(url)))
        };
        let is_whole = tests.clone().all(|test| !slow.contains(*test));
        let said: String = match is_whole {
            true => run_of(suite),
            false => tests.filter(|test| !slow.contains(**test)).map(|test| run_of(test)).collect(),
        };
        assert!(said.contains("Run Summary") || !is_whole, "{suite}: {said}");
        let failed = said.lines().filter_map(|line| {
            let (_, about) = line.split_once("Suite ")?;
            let (suite, test) = about.strip_suffix(" had failures:")?.split_once(", Test ")?;
            Some(format!("{suite}.{test}"))
        });
        found.extend(failed);
    }
    found
}
