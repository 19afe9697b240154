//! `palisade demo --serve`: an array to play with.
//!
//! States: making → serving → stopped. SIGTERM or Ctrl-C leads to the last one from any.

use super::child::{Interrupt, LOOK};
use super::daemon::{Daemon, VOLUME};
use super::error::DemoError;
use super::place::Place;
use super::plan::{ENCLOSURE_SLOTS, Plan};
use super::play::{ANY_PORT, Show, make_export, make_volume, text};
use serde_json::Value;
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
    let mut daemon = Daemon::start(place, "", interrupt)?;
    show.create(&daemon)?;
    let bytes = make_volume(&daemon)?;
    let ways = Ways::make(&daemon, plan)?;
    match plan.json {
        true => print(&format!("{}\n", object(plan, place, bytes, &ways)))?,
        false => print(&told(plan, place, bytes, &ways))?,
    }
    watch(|| daemon.ended(), interrupt)?;
    daemon.stop()
}

/// What programs read of what is served.
pub fn object(plan: &Plan, place: &Place, bytes: u64, ways: &Ways) -> Value {
    let socket = place.socket().to_string_lossy().into_owned();
    let mut serving = serde_json::json!({"schema": 1, "ok": true, "level": plan.level,
        "drives": plan.drives, "size_bytes": bytes, "uri": ways.uri, "socket": socket});
    if let Some(connect) = &ways.connect {
        serving["connect"] = connect.as_str().into();
    }
    serving
}

/// Prints on the standard output, at once.
///
/// # Errors
/// If nobody reads it.
pub fn print(text: &str) -> Result<(), DemoError> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(DemoError::file(std::path::Path::new("standard output")))
}

/// Waits until somebody asks to end.
///
/// # Errors
/// That of what `ended` looks at, if that ends first.
pub fn watch(
    mut ended: impl FnMut() -> Option<DemoError>,
    interrupt: &Interrupt,
) -> Result<(), DemoError> {
    while !interrupt.came() {
        if let Some(problem) = ended() {
            return Err(problem);
        }
        thread::sleep(LOOK * 10);
    }
    Ok(())
}

/// How clients come to the volume.
pub struct Ways {
    /// What it is called.
    uri: String,
    /// The one command of a Linux host, for NVMe/TCP.
    connect: Option<String>,
    /// Commands, and what each is for.
    commands: Vec<(String, &'static str)>,
}

impl Ways {
    /// Exports the volume as the options say.
    ///
    /// # Errors
    /// If the daemon refuses.
    pub fn make(daemon: &Daemon, plan: &Plan) -> Result<Self, DemoError> {
        match &plan.nvme_tcp {
            Some(address) => serve_nvme(daemon, address),
            None => serve_nbd(daemon, plan),
        }
    }
}

fn serve_nbd(daemon: &Daemon, plan: &Plan) -> Result<Ways, DemoError> {
    let address = match &plan.nbd {
        Some(address) => address.clone(),
        None if TcpListener::bind(USUAL).is_ok() => USUAL.into(),
        None => ANY_PORT.into(),
    };
    let uri = make_export(daemon, &address)?;
    let mut commands = vec![
        (format!("nbdinfo {uri}"), "what it is"),
        (format!("nbdcopy --flush IMAGE {uri}"), "copy an image in"),
        (format!("nbdcopy {uri} IMAGE"), "copy it out"),
        (format!("qemu-img info {uri}"), "as QEMU sees it"),
    ];
    // A URI without a port means NBD's own; the client takes them apart.
    let address = uri.strip_prefix("nbd://").and_then(|rest| rest.split('/').next());
    if let Some(address) = address {
        let (host, port) = address.rsplit_once(':').unwrap_or((address, "10809"));
        let client = format!("nbd-client -N {VOLUME} {host} {port} /dev/nbd0");
        commands.push((client, "a block device"));
    }
    Ok(Ways { uri, connect: None, commands })
}

fn serve_nvme(daemon: &Daemon, address: &str) -> Result<Ways, DemoError> {
    let made = daemon.call(&["export", "create", VOLUME, "--nvme-tcp", address, "--any-host"])?;
    let (uri, subsystem) = (text(&made, "uri")?, text(&made, "subsystem")?);
    let listener = text(&made["listeners"], 0)?;
    let (host, port) = listener.rsplit_once(':').unwrap_or((&listener, "4420"));
    let host = host.trim_matches(['[', ']']);
    let connect = format!("nvme connect -t tcp -a {host} -s {port} -n {subsystem}");
    let commands = vec![
        (format!("nvme discover -t tcp -a {host} -s {port}"), "what is served"),
        (format!("nvme disconnect -n {subsystem}"), "end it"),
    ];
    Ok(Ways { uri, connect: Some(connect), commands })
}

/// One line for each way to connect, and for a look.
pub fn told(plan: &Plan, place: &Place, bytes: u64, ways: &Ways) -> String {
    let socket = place.socket();
    let socket = socket.display();
    let (size, level, drives) = (format_size(bytes), &plan.level, plan.drives);
    let mut text = format!("serving {VOLUME}, {size}, level {level} over {drives} drives");
    match &ways.connect {
        Some(connect) => text += &format!(", to any host\n{connect}\n"),
        None => text.push('\n'),
    }
    let mut way = |command: &str, what: &str| text += &format!("  {command:<58} # {what}\n");
    ways.commands.iter().for_each(|(command, what)| way(command, what));
    way(&format!("export PALISADE_SOCKET={socket}"), "for the command line:");
    way("palisade array show demo", "the array");
    way(&format!("palisade array fail demo --drive {}", place.drive(1).display()), "pull a drive");
    if plan.console && plan.drives < ENCLOSURE_SLOTS {
        let with = place.drive(plan.drives).display().to_string();
        way(&format!("palisade array replace demo --slot 1 --with {with}"), "or in the console");
    }
    way("palisade status --watch", "what goes on");
    if plan.console && plan.keep {
        let config = place.config().display().to_string();
        way(&format!("palisade serve --config {config}"), "the same again, later");
    }
    text += "until Ctrl-C or SIGTERM\n";
    text
}
