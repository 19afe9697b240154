//! Real clients over a Unix socket: `nbdinfo`, `nbdcopy` and `qemu-img`. A tool that is not
//! installed is left out, and the test says so.

mod support;

use palisade_nbd::{Closed, ConnectionMemory, MemorySize, Transport, serve_connection};
use sim::volume::MemoryVolume;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::task::{Context, Poll};
use support::executor::{Core, TestEnv};
use support::{Choice, Fences, Shelf};

/// A socket that is asked again and again.
struct Socket(UnixStream);

fn again<T>(cx: &mut Context<'_>) -> Poll<T> {
    std::thread::yield_now();
    cx.waker().wake_by_ref();
    Poll::Pending
}

impl Transport for Socket {
    fn read_exact(&self, into: &mut [u8]) -> impl Future<Output = Result<(), Closed>> {
        let mut filled = 0;
        poll_fn(move |cx| {
            while filled < into.len() {
                match (&self.0).read(&mut into[filled..]) {
                    Ok(0) => return Poll::Ready(Err(Closed)),
                    Ok(count) => filled += count,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return again(cx),
                    Err(_) => return Poll::Ready(Err(Closed)),
                }
            }
            Poll::Ready(Ok(()))
        })
    }

    async fn write_all(&self, parts: &mut [IoSlice<'_>]) -> Result<(), Closed> {
        let mut parts = parts;
        poll_fn(move |cx| {
            while !parts.is_empty() {
                match (&self.0).write_vectored(parts) {
                    Ok(count) => IoSlice::advance_slices(&mut parts, count),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return again(cx),
                    Err(_) => return Poll::Ready(Err(Closed)),
                }
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    fn finish(&self) {
        let _ = self.0.shutdown(std::net::Shutdown::Write);
    }

    fn close(&self) {
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}

/// A directory of this test's own, removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("palisade-nbd-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Serves the shelf on the socket until the command has ended and succeeded; gives what it
/// printed, or `None` if it is not installed.
fn serve_while(shelf: &Shelf, socket: &Path, mut command: Command) -> Option<String> {
    let _ = std::fs::remove_file(socket);
    let listener = UnixListener::bind(socket).unwrap();
    listener.set_nonblocking(true).unwrap();
    let shown = format!("{command:?}");
    let client = std::thread::spawn(move || command.output());
    let ended = Rc::new(Cell::new(false));
    let (core, memory) = (Core::new(), ConnectionMemory::new(MemorySize::default()));
    let (server, shelf, used) = (core.clone(), shelf.clone(), memory.clone());
    let fences = Fences::default();
    let told = ended.clone();
    let output = Rc::new(Cell::new(None));
    let mut client = Some(client);
    let given = output.clone();
    core.block_on(poll_fn(move |cx| {
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true).unwrap();
            let (env, memory) = (TestEnv(server.clone()), used.clone());
            let choice = Choice::new(&shelf, &fences);
            server.spawn(async move {
                serve_connection(env, Rc::new(Socket(stream)), choice, memory).await;
            });
        }
        if let Some(client) = client.take_if(|client| client.is_finished()) {
            given.set(Some(client.join().unwrap()));
            told.set(true);
        }
        if told.get() && used.connections() == 0 { Poll::Ready(()) } else { again(cx) }
    }));
    assert!(memory.is_idle());
    match output.take().unwrap() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("left out, not installed: {shown}");
            None
        }
        Err(error) => panic!("{shown}: {error}"),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{shown}: {text}");
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
    }
}

fn command(tool: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(tool);
    command.args(arguments);
    command
}

/// Bytes without a short period, from a seed.
fn noise(bytes: usize, mut seed: u64) -> Vec<u8> {
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 56) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

const BYTES: usize = 24 << 20;

#[test]
fn nbdinfo_sees_what_is_served() {
    let directory = Directory::new("info");
    let socket = directory.0.join("socket");
    let shelf = Shelf(vec![("a/vol".into(), MemoryVolume::new(BYTES, 4096))]);
    let uri = format!("nbd+unix:///?socket={}", socket.display());
    let Some(text) = serve_while(&shelf, &socket, command("nbdinfo", &["--json", &uri])) else {
        return;
    };
    let wanted = [
        "\"protocol\": \"newstyle-fixed\"",
        "\"structured\": true",
        "\"base:allocation\"",
        "\"is_read_only\": false",
        "\"can_flush\": true",
        "\"can_fua\": true",
        "\"can_multi_conn\": true",
        "\"can_trim\": true",
        "\"can_zero\": true",
        "\"block_size_minimum\": 4096",
        "\"block_size_preferred\": 65536",
        "\"block_size_maximum\": 33554432",
        "\"export-size\": 25165824",
    ];
    for wanted in wanted {
        assert!(text.contains(wanted), "{wanted} is missing in {text}");
    }
    let list = serve_while(&shelf, &socket, command("nbdinfo", &["--list", "--json", &uri]));
    assert!(list.unwrap().contains("\"export-name\": \"a/vol\""));
    let map = serve_while(&shelf, &socket, command("nbdinfo", &["--map", &uri])).unwrap();
    let map = map.split_whitespace().collect::<Vec<_>>();
    assert_eq!(map, ["0", "25165824", "0", "data"]);
}

#[test]
fn nbdcopy_copies_in_and_out() {
    let directory = Directory::new("copy");
    let socket = directory.0.join("socket");
    let (from, to) = (directory.0.join("from"), directory.0.join("to"));
    let mut data = noise(BYTES, 7);
    data[5 << 20..9 << 20].fill(0);
    std::fs::write(&from, &data).unwrap();
    let volume = MemoryVolume::new(BYTES, 4096);
    let shelf = Shelf(vec![("vol".into(), volume.clone())]);
    let uri = format!("nbd+unix:///vol?socket={}", socket.display());
    let (from, to) = (from.to_str().unwrap(), to.to_str().unwrap());
    for more in [&[][..], &["--connections=4", "--requests=64", "--flush"], &["--synchronous"]] {
        volume.0.data.borrow_mut().fill(0xee);
        let copy = command("nbdcopy", &[more, &[from, &uri]].concat());
        if serve_while(&shelf, &socket, copy).is_none() {
            return;
        }
        assert!(*volume.0.data.borrow() == data, "copied in with {more:?}");
        let copy = command("nbdcopy", &[more, &[&uri, to]].concat());
        serve_while(&shelf, &socket, copy).unwrap();
        assert!(std::fs::read(to).unwrap() == data, "copied out with {more:?}");
        std::fs::remove_file(to).unwrap();
    }
}

#[test]
fn qemu_img_converts_and_compares() {
    let directory = Directory::new("qemu");
    let socket = directory.0.join("socket");
    let from = directory.0.join("from");
    let data = noise(BYTES, 11);
    std::fs::write(&from, &data).unwrap();
    let volume = MemoryVolume::new(BYTES, 512);
    let shelf = Shelf(vec![("vol".into(), volume.clone())]);
    let uri = format!("nbd+unix:///vol?socket={}", socket.display());
    let from = from.to_str().unwrap();
    let convert = ["convert", "-n", "-f", "raw", "-O", "raw", from, &uri];
    if serve_while(&shelf, &socket, command("qemu-img", &convert)).is_none() {
        return;
    }
    assert!(*volume.0.data.borrow() == data);
    let compare = ["compare", "-f", "raw", "-F", "raw", from, &uri];
    let text = serve_while(&shelf, &socket, command("qemu-img", &compare)).unwrap();
    assert!(text.contains("identical"));
}
