//! `palisade demo --serve --console`: an enclosure to play with, and its page.
//!
//! States: making → the page answers → serving → stopped. SIGTERM or Ctrl-C leads to the last one
//! from any.
//!
//! Invariants: the standard output is one line (or one object), once somebody can log in; other
//! words go to the standard error. Before that line only what the page is to show is made, which
//! takes seconds. The port is kept for the daemon from the first moment on. The password is new
//! each time, is never an argument, and goes only to the daemon, and to who started the demo. The
//! configuration names the port that is used, so that a daemon that is started again with it has
//! the same page.

use super::child::{Interrupt, LOOK};
use super::daemon::{ARRAY, Daemon};
use super::error::DemoError;
use super::load::Load;
use super::place::Place;
use super::plan::{ENCLOSURE_SLOTS, Plan};
use super::play::{Show, array_bytes};
use super::serve::{self, Ways};
use crate::client::{Asked, Client};
use crate::logins::Login;
use crate::output::Problem;
use crate::remote::{self, Url};
use control::chance;
use hyper::StatusCode;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};
use tokio::net::TcpSocket;
use units::MIB;

/// The account.
const USER: &str = "admin";
/// Letters and digits that nobody takes for others; as many as five bits tell apart.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// Letters of a password: 100 bits.
const PASSWORD_LETTERS: usize = 20;
/// Longest until the page answers, on the busiest machine.
const ANSWERS: Duration = Duration::from_secs(120);
/// The volume under load, and the ones beside it: their part of the array, one of so many.
const LOADED: &str = "demo/database";
const PARTS: [(&str, u64); 3] = [("demo/vol", 4), (LOADED, 8), ("demo/archive", 4)];

/// Makes drives, array and volumes, loads one, tells where the page is, and serves until somebody
/// asks to end.
///
/// # Errors
/// If anything can't be made, or the daemon ends before it is asked to.
pub fn serve(
    plan: &Plan,
    place: &Place,
    address: SocketAddr,
    interrupt: &Interrupt,
) -> Result<(), DemoError> {
    let kept = keep(address)?;
    let address = kept.address;
    let drives = sparse(plan, place)?;
    let mut daemon = Daemon::start(place, &more(place, address, &drives), interrupt)?;
    let mut show = Show::new(plan, place, interrupt);
    show.take(drives[..plan.drives].to_vec());
    show.create(&daemon)?;
    let bytes = make_volumes(&daemon)?;
    let ways = Ways::make(&daemon, plan)?;
    let socket = place.load_socket();
    daemon.call(&["export", "create", LOADED, "--nbd", &format!("unix:{}", socket.display())])?;
    let load = Load::start(socket, LOADED).map_err(DemoError::file(place.dir()))?;
    let password = password()?;
    make_account(&daemon, &password)?;
    await_page(&mut daemon, address, interrupt)?;
    drop(kept);
    let url = format!("https://{address}/");
    if plan.json {
        let mut object = serve::object(plan, place, bytes, &ways);
        object["console"] = url.into();
        object["user"] = USER.into();
        object["password"] = password.into();
        serve::print(&format!("{object}\n"))?;
    } else {
        eprint!("{}", serve::told(plan, place, bytes, &ways));
        serve::print(&format!("console {url} {USER} {password}\n"))?;
    }
    serve::watch(|| daemon.ended(), interrupt)?;
    drop(load);
    daemon.stop()
}

/// An address that is kept for the daemon for as long as this lives.
struct Kept {
    address: SocketAddr,
    _socket: TcpSocket,
}

/// Keeps the address, with a port that is free, by a socket that listens to nobody. The kernel
/// gives its port to nobody who takes any, and lets the daemon listen there: like this socket, the
/// daemon's has `SO_REUSEADDR` (socket(7)).
fn keep(address: SocketAddr) -> Result<Kept, DemoError> {
    let bound = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(Kept { address: socket.local_addr()?, _socket: socket })
    };
    bound().map_err(|error: std::io::Error| {
        let what = match error.kind() {
            ErrorKind::AddrInUse => "another program listens there; choose another port, or 0",
            ErrorKind::AddrNotAvailable => "this machine does not have that address",
            ErrorKind::PermissionDenied => "only root may listen there; choose 1024 or above, or 0",
            _ => return DemoError::Usage(format!("--console {address}: {error}")),
        };
        DemoError::Usage(format!("--console {address}: {what}"))
    })
}

/// Makes a drive for each slot of the enclosure.
fn sparse(plan: &Plan, place: &Place) -> Result<Vec<PathBuf>, DemoError> {
    let make = |number| {
        let path = place.drive(number);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        file.and_then(|file| file.set_len(plan.drive_bytes)).map_err(DemoError::file(&path))?;
        Ok(path)
    };
    (0..ENCLOSURE_SLOTS).map(make).collect()
}

/// What the configuration has besides socket and drives. A JSON string is a TOML string, too.
fn more(place: &Place, address: SocketAddr, drives: &[PathBuf]) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let mut text = format!(
        "state = {}\nhttps = [\"{address}\"]\n\n[[enclosure]]\nname = \"demo\"\n\
         model = \"NVMe-oF 24-bay\"\nslots = {ENCLOSURE_SLOTS}\ncolumns = {ENCLOSURE_SLOTS}\n\
         modules = [\n",
        quoted(&place.state().to_string_lossy())
    );
    for (name, ports) in ["A", "B"].iter().zip(modules(interfaces())) {
        let ports: Vec<String> = ports.iter().map(|port| quoted(port)).collect();
        let _ = writeln!(text, "  {{ name = \"{name}\", ports = [{}] }},", ports.join(", "));
    }
    text.push_str("]\n\n[enclosure.drives]\n");
    for (number, path) in drives.iter().enumerate() {
        let _ = writeln!(text, "{} = {}", number + 1, quoted(&path.to_string_lossy()));
    }
    text
}

/// This machine's network interfaces by name; the loopback comes last.
fn interfaces() -> Vec<String> {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_by_key(|name| (name == "lo", name.clone()));
    names
}

/// The ports of two modules: two each at most, the first ones going around.
fn modules(interfaces: Vec<String>) -> [Vec<String>; 2] {
    let mut modules = [const { Vec::new() }; 2];
    for (number, name) in interfaces.into_iter().take(4).enumerate() {
        modules[number % 2].push(name);
    }
    modules
}

/// Makes the volumes; returns the size of the first, in bytes.
fn make_volumes(daemon: &Daemon) -> Result<u64, DemoError> {
    let all = array_bytes(daemon)?;
    let bytes = PARTS.map(|(_, part)| (all / part / MIB).max(1) * MIB);
    for ((name, _), bytes) in PARTS.iter().zip(bytes) {
        daemon.call(&["volume", "create", name, "--size", &bytes.to_string()])?;
    }
    Ok(bytes[0])
}

/// A new password.
///
/// # Errors
/// If the system has no chance numbers.
pub fn password() -> Result<String, DemoError> {
    let bytes = chance::bytes::<PASSWORD_LETTERS>()
        .map_err(|error| DemoError::Wrong(format!("no password: {error}")))?;
    Ok(bytes.map(|byte| char::from(LETTERS[usize::from(byte) % LETTERS.len()])).iter().collect())
}

/// Makes the account.
fn make_account(daemon: &Daemon, password: &str) -> Result<(), DemoError> {
    let words = ["account", "create", USER, "--role", "Administrator", "--password-stdin"];
    daemon.call_typing(&words, password).map(drop)
}

/// Waits until the page answers.
fn await_page(
    daemon: &mut Daemon,
    address: SocketAddr,
    interrupt: &Interrupt,
) -> Result<(), DemoError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| DemoError::Wrong(format!("no runtime: {error}")))?;
    let start = Instant::now();
    loop {
        interrupt.check()?;
        if let Some(problem) = daemon.ended() {
            return Err(problem);
        }
        let why = match runtime.block_on(page(address)) {
            Ok(StatusCode::OK) => return Ok(()),
            Ok(status) => format!("status {status}"),
            Err(problem) => problem.what(),
        };
        if start.elapsed() > ANSWERS {
            let said = daemon.said();
            return Err(DemoError::Wrong(format!(
                "{ARRAY}'s page at {address} does not answer: {why}; the daemon said: {said}"
            )));
        }
        thread::sleep(LOOK * 10);
    }
}

/// Asks for the page as a browser does that is told to trust the certificate.
async fn page(address: SocketAddr) -> Result<StatusCode, Problem> {
    let url = Url::parse(&format!("https://{address}"))?;
    let shown = remote::look(&url).await?;
    let login = Login {
        url: url.to_string(),
        fingerprint: shown.fingerprint,
        key: shown.key,
        user: USER.to_owned(),
        session: None,
    };
    let asked = Asked::get("/");
    Ok(Client::logged_in(url, login).send(&asked).await?.status())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_long_and_new() {
        let all: std::collections::BTreeSet<String> =
            (0..8).map(|_| password().expect("random")).collect();
        assert_eq!(all.len(), 8);
        let is_plain = |word: &String| word.bytes().all(|byte| LETTERS.contains(&byte));
        assert!(all.iter().all(|word| word.len() == PASSWORD_LETTERS && is_plain(word)), "{all:?}");
    }

    #[test]
    fn a_port_is_kept_for_the_daemon() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let kept = keep("127.0.0.1:0".parse().expect("an address"));
        let kept = kept.unwrap_or_else(|problem| panic!("{problem}"));
        let other = || TcpSocket::new_v4().expect("a socket");
        let refused = other().bind(kept.address).expect_err("it is kept");
        assert_eq!(refused.kind(), ErrorKind::AddrInUse);
        // As the daemon does.
        let listens = |socket: TcpSocket| {
            socket.set_reuseaddr(true)?;
            socket.bind(kept.address)?;
            let _context = runtime.enter();
            socket.listen(1)
        };
        let listener = listens(other()).expect("the daemon may listen there");
        let refused = keep(kept.address).err().expect("somebody listens there").to_string();
        assert!(refused.contains("choose another port"), "{refused}");
        drop(listener);
    }

    #[test]
    fn ports_are_of_one_module_each() {
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(modules(names(&["lo"])), [names(&["lo"]), names(&[])]);
        let all = modules(names(&["a", "b", "c", "d", "e"]));
        assert_eq!(all, [names(&["a", "c"]), names(&["b", "d"])]);
    }
}
