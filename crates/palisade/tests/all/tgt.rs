//! Targets that tgt serves over a file, asked as an initiator asks.

use crate::common::targets::{portal, servers};
use crate::common::{skip, tools_are_there};
use ::iscsi::{Account, Asked, Identity, Name, Secret, UNIT, ask};
use services::targets::Target;
use services::tgt::Instance;
use std::fs::File;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use units::Uuid;

const LIMIT: Duration = Duration::from_secs(60);
const BYTES: u64 = 8 << 20;

fn name(text: &str) -> Name {
    Name::new(&format!("iqn.2026-11.example:{text}")).expect("a name")
}

fn account(user: &str, secret: &str) -> Account {
    Account::new(user, Secret::new(secret).expect("possible")).expect("possible")
}

/// A volume's file that begins with this letter, and its target.
fn target(folder: &Path, letter: u8, portal: SocketAddr) -> Target {
    let path = folder.join(format!("volume-{}", letter as char));
    let mut file = File::create(&path).expect("made");
    file.write_all(&[letter; 512]).and_then(|()| file.set_len(BYTES)).expect("written");
    Target {
        portals: vec![portal],
        initiators: vec![name("host")],
        asker: name("asker"),
        account: None,
        asker_account: None,
        path,
        block_bytes: 512,
        identity: Identity {
            target: name(&format!("target-{}", letter as char)),
            ..Identity::of(Uuid([letter; 16]))
        },
    }
}

/// What who asks is told: the first letter, or why there is none.
fn told(target: &Target, initiator: &str, account: Option<&Account>) -> Result<u8, String> {
    let initiator = name(initiator);
    let (portal, name) = (target.portals[0], &target.identity.target);
    let asked = Asked { portal, target: name, unit: UNIT, initiator: &initiator, account };
    ask(&asked, LIMIT).map(|told| told.block[0]).map_err(|refusal| refusal.to_string())
}

#[test]
fn a_target_of_tgt_is_made_kept_and_ended() {
    if !can_be() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (own, portal) = (folder.path(), portal(1));
    let (mut one, other) = (target(own, b'A', portal), target(own, b'B', portal));
    let instance = Instance::of(own, &[portal]);
    for target in [&one, &other, &one] {
        instance.serve(target).expect("served");
    }
    assert_eq!(told(&one, "host", None), Ok(b'A'));
    assert_eq!(told(&other, "asker", None), Ok(b'B'));
    let stranger = told(&one, "stranger", None).expect_err("not let in");
    assert!(stranger.contains("there is no such target"), "{stranger}");
    assert_eq!(servers(own).len(), 1);

    // With a secret, which no process shows.
    let secret = "sEcret-3f9a-x";
    one.account = Some(account("user", "its-old-secret"));
    one.asker_account = Some(account("asker", "its-own-secret"));
    instance.serve(&one).expect("served");
    assert_eq!(told(&one, "asker", one.asker_account.as_ref()), Ok(b'A'));
    one.account = Some(account("user", secret));
    instance.serve(&one).expect("served");
    assert_eq!(told(&one, "host", one.account.as_ref()), Ok(b'A'));
    assert_eq!(told(&other, "host", None), Ok(b'B'));
    let wrong = [("user", "sEcret-3f9a-y"), ("resu", secret), ("user", "its-old-secret")];
    let wrong = wrong.map(|(user, secret)| Some(account(user, secret)));
    for wrong in wrong.into_iter().chain([None]) {
        let why = told(&one, "host", wrong.as_ref()).expect_err("not let in");
        assert!(why.contains("0x0201"), "{why}");
    }
    let mut second = other.clone();
    second.account = Some(account("user", "another-secret"));
    let why = instance.serve(&second).expect_err("one secret for a user").to_string();
    assert!(why.contains("another export at these portals has the user user"), "{why}");
    is_to_ask_again(&other);
    instance.serve(&other).expect("served");

    // An account that a process left which ended there stands in nobody's way.
    let socket = std::fs::read_dir(own).expect("read").flatten().map(|entry| entry.path());
    let socket =
        socket.map(|path| path.join("tgtd")).find(|path| path.with_extension("0").exists());
    let mut admin = Command::new("tgtadm");
    admin.args(["-C", "0", "--lld", "iscsi", "--op", "new", "--mode", "account"]);
    admin.args(["--user", "left", "--password", "of-somebody"]);
    admin.env("TGT_IPC_SOCKET", socket.expect("a socket"));
    assert!(admin.status().expect("run").success());
    second.account = Some(account("left", "another-secret"));
    instance.serve(&second).expect("served");
    assert_eq!(told(&second, "host", second.account.as_ref()), Ok(b'B'));
    instance.serve(&other).expect("served");
    end(&instance, own, &[&one, &other]);
}

/// Whether initiators of a target are told to try again.
fn is_to_ask_again(target: &Target) {
    let why = told(target, "host", None).expect_err("not served");
    assert!(why.contains("0x0300"), "{why}");
}

#[test]
fn a_target_that_is_to_be_is_there_and_rests() {
    if !can_be() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (own, portal) = (folder.path(), portal(5));
    let (one, other) = (target(own, b'A', portal), target(own, b'B', portal));
    let names = [&one, &other].map(|own| own.identity.target.clone());
    let instance = Instance::of(own, &[portal]).with(names.to_vec());
    instance.serve(&one).expect("served");
    is_to_ask_again(&other);
    instance.serve(&other).expect("served");
    assert_eq!(told(&other, "host", None), Ok(b'B'));
    // It rests: nobody has its file, and it is served again.
    instance.rest(&names[0]).expect("rests");
    is_to_ask_again(&one);
    let pid = servers(own)[0];
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("read").flatten();
    let open: Vec<_> = open.filter_map(|fd| std::fs::read_link(fd.path()).ok()).collect();
    assert!(open.contains(&other.path) && !open.contains(&one.path), "{open:?}");
    assert_eq!(told(&other, "host", None), Ok(b'B'));
    instance.rest(&names[0]).expect("rests");
    instance.serve(&one).expect("served");
    assert_eq!(told(&one, "host", None), Ok(b'A'));
    // It listens nowhere else.
    let own_portal = format!("{:08X}:{:04X}", u32::from_le_bytes(octets(portal)), portal.port());
    let listens = std::fs::read_to_string("/proc/net/tcp").expect("read");
    let sockets: Vec<_> = open_sockets(pid);
    let of = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_own = words.get(3) == Some(&"0A") && sockets.contains(&(*words.get(9)?).to_owned());
        is_own.then(|| words[1].to_owned())
    };
    assert_eq!(listens.lines().filter_map(of).collect::<Vec<_>>(), [own_portal]);
    end(&instance, own, &[&one, &other]);
}

fn octets(portal: SocketAddr) -> [u8; 4] {
    match portal.ip() {
        std::net::IpAddr::V4(ip) => ip.octets(),
        std::net::IpAddr::V6(_) => [0; 4],
    }
}

/// The inodes of a process' sockets.
fn open_sockets(pid: i32) -> Vec<String> {
    let all = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("read").flatten();
    let leads = all.filter_map(|fd| std::fs::read_link(fd.path()).ok());
    let inode = |path: std::path::PathBuf| {
        let text = path.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned();
        Some(text)
    };
    leads.filter_map(inode).collect()
}

/// Ends these; nothing is left then but the volumes.
fn end(instance: &Instance, own: &Path, all: &[&Target]) {
    for target in all {
        instance.end(&target.identity.target).expect("ended");
    }
    assert_eq!(servers(own), Vec::<i32>::new());
    let left: Vec<_> = std::fs::read_dir(own).expect("read").flatten().collect();
    assert_eq!(left.len(), all.len(), "{left:?}");
}

/// Whether there are the tools, and who runs this may use them.
fn can_be() -> bool {
    if !rustix::process::geteuid().is_root() {
        skip("tgtd is root's");
        return false;
    }
    tools_are_there(&["tgtd", "tgtadm", "pgrep"])
}

#[test]
fn a_tgtd_is_found_started_anew_and_ended() {
    if !can_be() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (own, portal) = (folder.path(), portal(3));
    let (mut one, other) = (target(own, b'A', portal), target(own, b'B', portal));
    let instance = Instance::of(own, &[portal]);
    one.account = Some(account("user", "its-own-secret"));
    for target in [&one, &other] {
        instance.serve(target).expect("served");
    }

    // Killed, it is started anew; a process of before goes on being used by the next of ours.
    let [pid] = servers(own)[..] else { panic!("one process") };
    let pid = rustix::process::Pid::from_raw(pid).expect("a number");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("killed");
    instance.serve(&one).expect("served");
    assert_eq!(told(&one, "host", one.account.as_ref()), Ok(b'A'));
    let same = servers(own);
    Instance::of(own, &[portal]).serve(&one).expect("served");
    assert_eq!(servers(own), same);

    // The target's volume is another file now.
    one.path.clone_from(&other.path);
    instance.serve(&one).expect("served");
    assert_eq!(told(&one, "host", one.account.as_ref()), Ok(b'B'));

    // After the last nothing is left.
    instance.serve(&other).expect("served");
    instance.end(&one.identity.target).expect("ended");
    assert!(told(&one, "host", None).expect_err("ended").contains("no such target"));
    assert_eq!(told(&other, "host", None), Ok(b'B'));
    end(&instance, own, &[&other, &one]);

    // What is wanted no more, and was not ended, is found.
    instance.serve(&one).expect("served");
    Instance::sweep(own, &[Instance::of(own, &[portal])]).expect("all is wanted");
    assert_eq!(servers(own).len(), 1);
    Instance::sweep(own, &[]).expect("ended");
    assert_eq!(servers(own), Vec::<i32>::new());
}

#[test]
fn a_portal_that_is_taken_is_told() {
    if !can_be() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let portal = portal(2);
    let taken = TcpListener::bind(portal).expect("bound");
    let one = target(folder.path(), b'A', portal);
    let instance = Instance::of(folder.path(), &[portal]);
    let why = instance.serve(&one).expect_err("taken").to_string();
    assert!(why.contains("tgtd") && why.contains("in use"), "{why}");
    assert_eq!(servers(folder.path()), Vec::<i32>::new());
    drop(taken);
    instance.serve(&one).expect("served");
    assert_eq!(told(&one, "host", None), Ok(b'A'));
    instance.end(&one.identity.target).expect("ended");
}
