//! `palisade shelf`: a shelf of drives behind NVMe/TCP on this machine, and `palisade shelf ctl`,
//! which pulls parts of it out and puts them back.
//!
//! A program of its own behind the same name: it knows no daemon, and none knows it. Status 0:
//! done, or ended by SIGTERM; 1: failed; 2: what is asked for is not there, or can't be; 4: no
//! shelf answers at the socket.

use crate::bench::size;
use crate::demo::child::Interrupt;
use crate::output::{printable, table};
use ::bench::Scale;
use pace::Model;
use serde_json::{Value, json};
use shelf::plan::{Balance, Map};
use shelf::{Ask, Control, Plan, Pull, Service, Shelf, ShelfError, ZoneWords};
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// How often it is looked whether it is to end.
const LOOK: Duration = Duration::from_millis(50);

/// What `palisade shelf` takes.
#[derive(Debug, clap::Args)]
#[command(subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Address of the first port; the others have the TCP ports that follow. Port 0: any
    #[arg(long, value_name = "ADDR:PORT", required = true)]
    listen: Option<SocketAddr>,
    /// Address that hosts are told of all ports, if it is not the one of --listen
    #[arg(long, value_name = "ADDR")]
    advertise: Option<IpAddr>,
    /// Number of ports: A1, A2, … of IO module A, then as many of B
    #[arg(long, default_value_t = 6)]
    ports: usize,
    /// Number of drives
    #[arg(long, default_value_t = 24)]
    drives: usize,
    /// Namespaces of each drive, which share its size
    #[arg(long, default_value_t = 2)]
    namespaces: usize,
    /// Size of each drive
    #[arg(long, value_name = "SIZE", default_value = "128M", value_parser = size)]
    drive_size: u64,
    /// Folder in which drives are files, which the next shelf has again; without it they are in
    /// memory
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Serial number, of which names and identifiers are made [default: the one in the folder, else
    /// one at random]
    #[arg(long, value_name = "TEXT")]
    serial: Option<String>,
    /// Which drives are at which ports: an equal part at each pair of ports, such as drives 1 to 8
    /// at A1 and B1, or any drive at any port
    #[arg(long, value_enum, default_value_t = MapArg::Pairs)]
    map: MapArg,
    /// Whether both IO modules come to a drive as well, or the one that it is at home on does
    /// better
    #[arg(long, value_enum, default_value_t = AnaArg::Symmetric)]
    ana: AnaArg,
    /// Offer no cross-controller reset: hosts have to wait until a lost controller has ended
    #[arg(long)]
    no_ccr: bool,
    /// Take the time of this model of drives and ports: see `palisade bench model list`
    #[arg(long, value_parser = model)]
    model: Option<&'static Model>,
    /// How fast, of what the model is
    #[arg(long, value_name = "1|1/4…", default_value = "1", requires = "model",
        value_parser = part)]
    scale: f64,
    /// Socket for `palisade shelf ctl` [default: one in the folder, else among temporary files]
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Serve the management service that such shelves have: Redfish over HTTPS. Port 0: any
    #[arg(long, value_name = "ADDR:PORT")]
    redfish: Option<SocketAddr>,
    /// Threads that serve [default: half of this machine's CPUs]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=64))]
    cores: Option<u16>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Which drives are at which ports.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum MapArg {
    /// An equal part at each pair of ports
    #[value(name = "6x8")]
    Pairs,
    /// Any drive at any port
    Any,
}

/// How well ports come to drives.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum AnaArg {
    /// Both IO modules as well
    Symmetric,
    /// Drives of odd numbers are at home on A, the others on B
    Asymmetric,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Change a running shelf, or show it
    Ctl(Ctl),
}

#[derive(Debug, clap::Args)]
struct Ctl {
    /// Socket of the shelf, as it printed it
    #[arg(long, value_name = "SOCKET")]
    control: PathBuf,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Pull a part out: it falls silent, as if its cable were cut
    Pull {
        #[command(flatten)]
        part: Part,
        /// Nothing is read, written, accepted or closed [default]
        #[arg(long, conflicts_with = "reset")]
        silent: bool,
        /// Connections are reset, and none are accepted
        #[arg(long)]
        reset: bool,
    },
    /// Put a part back
    Restore(Part),
    /// Make each request to a drive take longer
    #[command(subcommand)]
    Slow(Slow),
    /// Say what a sensor reads: drive.7.temperature, fan.1 (a number, or absent); what a port is
    /// like: port.A1.mbps, port.A1.mtu, port.A1.ana, port.A1.ana.1 (optimized, non-optimized,
    /// inaccessible, persistent-loss, change); or switch a drive's indicator: drive.7.locate (on,
    /// off)
    Set {
        /// What
        name: String,
        /// Its value
        value: String,
    },
    /// Say which hosts have which drives. Once there is a zone, hosts have what zones grant them,
    /// and nothing else
    #[command(subcommand)]
    Zone(Zone),
    /// Show ports, drives, sensors and zones
    Show {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// A part of a shelf.
#[derive(Debug, clap::Args)]
struct Part {
    /// drive, port, iom or shelf
    part: String,
    /// Number of the drive, or name of the port or IO module
    name: Option<String>,
}

#[derive(Debug, clap::Subcommand)]
enum Slow {
    /// Make each request to a drive take longer
    Drive {
        /// Number of the drive
        drive: String,
        /// By so many milliseconds; 0: no longer than usual
        #[arg(long)]
        ms: u64,
    },
}

#[derive(Debug, clap::Subcommand)]
enum Zone {
    /// Add one
    Add {
        /// Its name
        name: String,
        /// Hosts that have it
        #[arg(long, value_name = "NQN", required = true, num_args = 1..)]
        host: Vec<String>,
        /// Drives that they have, such as 1-8 or 1,3,17-24
        #[arg(long, value_name = "LIST", value_parser = numbers)]
        drives: Numbers,
        /// Namespaces of each drive [default: all]
        #[arg(long, value_name = "LIST", value_parser = numbers)]
        namespaces: Option<Numbers>,
        /// Ports at which they have them, such as A1,B1 [default: all at which the drives are]
        #[arg(long, value_name = "PORTS", value_delimiter = ',')]
        ports: Vec<String>,
    },
    /// Remove one: its hosts lose what no other zone grants them
    Remove {
        /// Its name
        name: String,
    },
}

/// Numbers, as 1,3,17-24 says them.
#[derive(Clone, PartialEq, Debug, Default)]
struct Numbers(Vec<usize>);

fn numbers(text: &str) -> Result<Numbers, String> {
    let told = || "give numbers, such as 1-8 or 1,3,17-24".to_owned();
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u16>().map_err(|_| told());
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(told());
        }
        all.extend((first..=last).map(usize::from));
    }
    Ok(Numbers(all))
}

fn model(text: &str) -> Result<&'static Model, String> {
    pace::by_name(text).ok_or_else(|| {
        let names: Vec<&str> = pace::model::MODELS.iter().map(|model| model.name).collect();
        format!("there is no such model; use {}", names.join(", "))
    })
}

/// How many times as slow as its model a shelf is.
fn part(text: &str) -> Result<f64, String> {
    match text.parse()? {
        Scale::Part(slower) => Ok(f64::from(slower)),
        Scale::Auto => Err("use 1, or a part such as 1/4".to_owned()),
    }
}

/// Runs a shelf, or asks one for something.
pub fn run(arguments: &Arguments) -> ExitCode {
    match &arguments.command {
        Some(Command::Ctl(ctl)) => ask(ctl),
        None => match serve(arguments) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => tell(&error),
        },
    }
}

/// Tells an error; the status that it means.
fn tell(error: &ShelfError) -> ExitCode {
    let (status, hint) = match error {
        ShelfError::Usage(_) => (2, "see palisade shelf --help, and palisade shelf ctl --help"),
        ShelfError::Failed(_) => (1, "nothing was changed; try again when it is mended"),
    };
    eprintln!("palisade: {}\n  {hint}", printable(&error.to_string()));
    ExitCode::from(status)
}

fn serve(arguments: &Arguments) -> Result<(), ShelfError> {
    let failed = |what: &str, error: std::io::Error| ShelfError::Failed(format!("{what}: {error}"));
    let plan = plan_of(arguments)?;
    // From here on whoever ends this is heard, and the socket goes with it.
    let interrupt = Interrupt::watch().map_err(|error| failed("signals", error))?;
    let shelf = Shelf::start(&plan)?;
    let ports = shelf.ports();
    let control = arguments.control.clone().unwrap_or_else(|| match &plan.folder {
        Some(folder) => folder.join("control.sock"),
        None => {
            let port = ports.first().map_or(0, |(_, address)| address.port());
            std::env::temp_dir().join(format!("palisade-shelf-{port}.sock"))
        }
    });
    let _control = Control::start(&shelf, &control)?;
    let service = arguments.redfish.map(|listen| Service::start(&shelf, listen)).transpose()?;
    let access = service.as_ref().map(Service::access);
    let text = match arguments.json {
        true => {
            let ports: Vec<Value> = ports
                .iter()
                .map(|(name, address)| json!({"name": name, "address": address.to_string()}))
                .collect();
            let redfish = access.map(|own| {
                json!({"url": own.url, "fingerprint": own.fingerprint, "user": own.user,
                    "password": own.password})
            });
            let told = json!({"schema": 1, "control": control, "serial": plan.serial,
                "ports": ports, "redfish": redfish});
            told.to_string()
        }
        false => {
            let redfish = access.map_or_else(String::new, |own| {
                format!(
                    "\nmanagement service: {}, user {}, password {}\nits certificate: SHA-256 {}",
                    own.url, own.user, own.password, own.fingerprint
                )
            });
            started(&plan, &ports, &control) + &redfish
        }
    };
    let mut out = std::io::stdout();
    let written = writeln!(out, "{text}").and_then(|()| out.flush());
    written.map_err(|error| failed("the standard output", error))?;
    while !interrupt.came() {
        std::thread::sleep(LOOK);
    }
    Ok(())
}

fn plan_of(arguments: &Arguments) -> Result<Plan, ShelfError> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = arguments.cores.unwrap_or((cpus / 2).clamp(1, arguments.ports.max(1)) as u16);
    let serial = match (&arguments.serial, &arguments.dir) {
        (Some(serial), _) => serial.clone(),
        (None, folder) => shelf::serial(folder.as_deref())?,
    };
    Ok(Plan {
        listen: arguments.listen.expect("the command line has it where there is no other command"),
        advertise: arguments.advertise,
        ports: arguments.ports,
        drives: arguments.drives,
        namespaces: arguments.namespaces,
        drive_bytes: arguments.drive_size,
        folder: arguments.dir.clone(),
        serial,
        map: match arguments.map {
            MapArg::Pairs => Map::Pairs,
            MapArg::Any => Map::Any,
        },
        balance: match arguments.ana {
            AnaArg::Symmetric => Balance::Symmetric,
            AnaArg::Asymmetric => Balance::Asymmetric,
        },
        resets: !arguments.no_ccr,
        model: arguments.model.map(|model| (model, arguments.scale)),
        cores,
    })
}

/// What is printed when a shelf runs.
fn started(plan: &Plan, ports: &[(String, SocketAddr)], control: &Path) -> String {
    let at = |port: usize| {
        let drives = (0..plan.drives).filter(|drive| plan.ports_of(*drive).contains(&port));
        let drives: Vec<usize> = drives.map(|drive| drive + 1).collect();
        match (drives.first(), drives.last()) {
            (Some(first), Some(last)) => format!("{first} to {last}"),
            _ => "none".to_owned(),
        }
    };
    let rows: Vec<Vec<String>> = ports
        .iter()
        .enumerate()
        .map(|(port, (name, address))| vec![name.clone(), address.to_string(), at(port)])
        .collect();
    let first = ports.first().map_or_else(String::new, |(_, address)| {
        format!("palisade drive discover -a {} -s {}", address.ip(), address.port())
    });
    format!(
        "shelf {}: {} drives of {}, {} namespaces each\n\n{}\nsee what is at a port: {first}\n\
         pull parts out: palisade shelf ctl --control {} --help\nend with Ctrl-C or SIGTERM",
        plan.serial,
        plan.drives,
        units::format_size(plan.drive_bytes),
        plan.namespaces,
        table(&["PORT", "ADDRESS", "DRIVES"], &rows),
        control.display(),
    )
}

/// Asks a running shelf for something, and prints what it says.
fn ask(ctl: &Ctl) -> ExitCode {
    let wanted = match &ctl.what {
        What::Pull { part: Part { part, name }, reset, .. } => {
            let how = if *reset { Pull::Reset } else { Pull::Silent };
            Ask::Pull { part: part.clone(), name: name.clone(), how }
        }
        What::Restore(Part { part, name }) => {
            Ask::Restore { part: part.clone(), name: name.clone() }
        }
        What::Slow(Slow::Drive { drive, ms }) => Ask::Slow { drive: drive.clone(), ms: *ms },
        What::Set { name, value } => Ask::Set { name: name.clone(), value: value.clone() },
        What::Zone(Zone::Add { name, host, drives, namespaces, ports }) => {
            Ask::AddZone(ZoneWords {
                name: name.clone(),
                hosts: host.clone(),
                drives: drives.0.clone(),
                namespaces: namespaces.clone().unwrap_or_default().0,
                ports: ports.clone(),
            })
        }
        What::Zone(Zone::Remove { name }) => Ask::RemoveZone { name: name.clone() },
        What::Show { .. } => Ask::Show,
    };
    match shelf::ask(&ctl.control, &wanted) {
        Ok(Ok(answer)) => {
            let text = match ctl.what {
                What::Show { json: true } => Some(answer.to_string()),
                What::Show { json: false } => Some(shown(&answer)),
                _ => None,
            };
            // Who does not read it does not want it.
            let _ = text.map(|text| writeln!(std::io::stdout(), "{}", text.trim_end()));
            ExitCode::SUCCESS
        }
        Ok(Err(error)) => tell(&error),
        Err(error) => {
            let socket = printable(&ctl.control.display().to_string());
            eprintln!(
                "palisade: no shelf answers at {socket}: {error}\n  name the socket that `palisade \
                 shelf` printed when it started"
            );
            ExitCode::from(4)
        }
    }
}

/// A shelf as a person reads it.
fn shown(answer: &Value) -> String {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let cell = |value: &Value| match value {
        Value::String(text) => printable(text),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    };
    let names = |value: &Value| {
        let names: Vec<String> = list(value).iter().map(cell).collect();
        if names.is_empty() { "-".to_owned() } else { names.join(" ") }
    };
    let cells = |of: &Value, keys: &[&str]| -> Vec<String> {
        keys.iter().map(|key| cell(&of[*key])).chain([names(&of["hosts"])]).collect()
    };
    let ports: Vec<Vec<String>> = list(&answer["ioms"])
        .iter()
        .flat_map(|module| list(&module["ports"]))
        .map(|port| cells(&port, &["name", "address", "state", "mbps", "mtu"]))
        .collect();
    let drives: Vec<Vec<String>> = list(&answer["drives"])
        .iter()
        .map(|drive| cells(drive, &["slot", "serial", "state", "subsystem"]))
        .collect();
    let wrong: Vec<Vec<String>> = list(&answer["sensors"])
        .iter()
        .filter(|sensor| sensor["state"] != "ok")
        .map(|sensor| ["name", "value", "unit", "state"].map(|key| cell(&sensor[key])).to_vec())
        .collect();
    let sensors = match wrong.is_empty() {
        true => "all sensors are ok\n".to_owned(),
        false => table(&["SENSOR", "VALUE", "UNIT", "STATE"], &wrong),
    };
    let zones: Vec<Vec<String>> = list(&answer["zones"])
        .iter()
        .map(|zone| {
            let mut cells = vec![cell(&zone["name"])];
            let own = ["drives", "namespaces", "ports", "hosts"];
            cells.extend(own.map(|key| names(&zone[key])));
            cells
        })
        .collect();
    let zones = match zones.is_empty() {
        true => "no zones: any host has all\n".to_owned(),
        false => table(&["ZONE", "DRIVES", "NAMESPACES", "PORTS", "HOSTS"], &zones),
    };
    let ports = table(&["PORT", "ADDRESS", "STATE", "MBPS", "MTU", "HOSTS"], &ports);
    let drives = table(&["SLOT", "SERIAL", "STATE", "SUBSYSTEM", "HOSTS"], &drives);
    format!("{ports}\n{drives}\n{sensors}\n{zones}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_said_as_lists_and_spans() {
        let read = |text| numbers(text).map(|own| own.0);
        assert_eq!(read("1-3"), Ok(vec![1, 2, 3]));
        assert_eq!(read("7,1, 9-10"), Ok(vec![7, 1, 9, 10]));
        for wrong in ["", "1-", "3-1", "a", "1,,2", "-1", "1-2-3", "70000"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
