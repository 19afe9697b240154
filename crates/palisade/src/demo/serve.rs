//! `palisade demo --serve`: an array to play with.
//!
//! States: making → serving → stopped. SIGTERM or Ctrl-C leads to the last one from any.

use super::child::{Interrupt, LOOK};
use super::daemon::{Daemon, VOLUME};
use super::error::DemoError;
use super::place::Place;
use super::plan::Plan;
use super::play::{Show, free_port, make_export, make_volume};
use std::io::Write;
use std::net::TcpListener;
use std::thread;
use units::format_size;

/// NBD's port at IANA.
const USUAL: &str = "127.0.0.1:10809";

/// Makes array and volume, says how to connect, and serves until somebody asks to end.
///
/// # Errors
/// If anything can't be made, or the daemon ends before it is asked to.
pub fn serve(plan: &Plan, place: &Place, interrupt: &Interrupt) -> Result<(), DemoError> {
    let mut show = Show::new(plan, place, interrupt);
    show.fill()?;
    let mut daemon = Daemon::start(place, interrupt)?;
    show.create(&daemon)?;
    let bytes = make_volume(&daemon)?;
    let address = match &plan.nbd {
        Some(address) => address.clone(),
        None if TcpListener::bind(USUAL).is_ok() => USUAL.into(),
        None => format!("127.0.0.1:{}", free_port()?),
    };
    let uri = make_export(&daemon, &address)?;
    let text = if plan.json {
        let socket = place.socket().to_string_lossy().into_owned();
        let serving = serde_json::json!({"schema": 1, "ok": true, "level": plan.level,
            "drives": plan.drives, "size_bytes": bytes, "uri": uri, "socket": socket});
        format!("{serving}\n")
    } else {
        ways(plan, place, bytes, &uri)
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(DemoError::file(std::path::Path::new("standard output")))?;
    while !interrupt.came() {
        if let Some(problem) = daemon.ended() {
            return Err(problem);
        }
        thread::sleep(LOOK * 10);
    }
    daemon.stop()
}

/// One line for each way to connect, and for a look.
fn ways(plan: &Plan, place: &Place, bytes: u64, uri: &str) -> String {
    let socket = place.socket();
    let socket = socket.display();
    let (size, level, drives) = (format_size(bytes), &plan.level, plan.drives);
    let mut text = format!("serving {VOLUME}, {size}, level {level} over {drives} drives\n");
    let mut way = |command: &str, what: &str| text += &format!("  {command:<58} # {what}\n");
    way(&format!("nbdinfo {uri}"), "what it is");
    way(&format!("nbdcopy --flush IMAGE {uri}"), "copy an image in");
    way(&format!("nbdcopy {uri} IMAGE"), "copy it out");
    way(&format!("qemu-img info {uri}"), "as QEMU sees it");
    // A URI without a port means NBD's own; the client takes them apart.
    let address = uri.strip_prefix("nbd://").and_then(|rest| rest.split('/').next());
    if let Some(address) = address {
        let (host, port) = address.rsplit_once(':').unwrap_or((address, "10809"));
        way(&format!("nbd-client -N {VOLUME} {host} {port} /dev/nbd0"), "a block device");
    }
    way(&format!("export PALISADE_SOCKET={socket}"), "for the command line:");
    way("palisade array show demo", "the array");
    way(&format!("palisade array fail demo --drive {}", place.drive(1).display()), "pull a drive");
    way("palisade status --watch", "what goes on");
    text += "until Ctrl-C or SIGTERM\n";
    text
}
