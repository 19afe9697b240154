//! `palisade drive discover`, `connect`, `connect-all`, `disconnect` and `paths`: subsystems behind
//! NVMe over Fabrics, in the words of nvme-cli.

use crate::array::DONE;
use crate::client::{self, Change, Client};
use crate::confirm;
use crate::output::{How, Output, Problem, table};
use crate::{fetch, named};
use control::fabrics::Fabrics;
use control::failure;
use drives::SharedDrive;
use drives::remote::{Name, Place};
use redfish::change::{DISCOVERY_PORT, PORT, fabric};
use redfish::messages;
use redfish::service::uri;
use redfish::told;
use redfish::view::{Answer, Drive, KnownDrive, Remote, RemotePath};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::OnceLock;

/// A discovery service.
#[derive(Debug, clap::Args)]
pub struct Service {
    /// Address of the discovery service, or a name that leads there
    #[arg(short = 'a', long, value_name = "ADDR")]
    traddr: String,
    /// Its TCP port
    #[arg(short = 's', long, value_name = "PORT", default_value_t = DISCOVERY_PORT,
        value_parser = clap::value_parser!(u16).range(1..))]
    trsvcid: u16,
}

/// Who this host is there, and digests.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Instead of [fabrics] in the configuration")]
pub struct Host {
    /// NQN of this host
    #[arg(short = 'q', long, value_name = "NQN")]
    hostnqn: Option<String>,
    /// Identifier of this host, a UUID; without it the one in its NQN
    #[arg(short = 'I', long, value_name = "UUID", requires = "hostnqn")]
    hostid: Option<String>,
    /// Protect headers by CRC-32C
    #[arg(short = 'g', long, value_name = "on|off", num_args = 0..=1, require_equals = true,
        default_missing_value = "on")]
    hdr_digest: Option<OnOff>,
    /// Protect data by CRC-32C
    #[arg(short = 'G', long, value_name = "on|off", num_args = 0..=1, require_equals = true,
        default_missing_value = "on")]
    data_digest: Option<OnOff>,
}

/// A yes or no, in the words of the configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum OnOff {
    On,
    Off,
}

/// How a subsystem is connected, by nvme-cli's names.
#[derive(Debug, clap::Args)]
pub struct Terms {
    #[command(flatten)]
    host: Host,
    /// I/O queues of a path: at least one for each data core, and one
    #[arg(short = 'i', long, value_name = "COUNT", value_parser = range(fabric::IO_QUEUES))]
    nr_io_queues: Option<u16>,
    /// Entries of an I/O queue
    #[arg(short = 'Q', long, value_name = "COUNT", value_parser = range(fabric::QUEUE_SIZE))]
    queue_size: Option<u16>,
    /// Keep-alive timeout
    #[arg(short = 'k', long, value_name = "SECONDS", value_parser = range(fabric::KEEP_ALIVE))]
    keep_alive_tmo: Option<u16>,
    /// From a try to connect to the next
    #[arg(short = 'c', long, value_name = "SECONDS",
        value_parser = range(fabric::RECONNECT_DELAY))]
    reconnect_delay: Option<u16>,
    /// How long requests wait where there is no path
    #[arg(long, value_name = "SECONDS", value_parser = range(fabric::FAST_IO_FAIL))]
    fast_io_fail_tmo: Option<u16>,
    /// How long it is tried to connect a lost path anew
    #[arg(short = 'l', long, value_name = "SECONDS",
        value_parser = range(fabric::CONTROLLER_LOSS))]
    ctrl_loss_tmo: Option<u16>,
}

fn range((least, most): (u16, u16)) -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(i64::from(least)..=i64::from(most))
}

impl Host {
    /// As the API has it: what is given.
    fn add(&self, body: &mut Value) {
        let truth = |word: Option<OnOff>| word.map(|word| json!(word == OnOff::On));
        let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
        add(body, "HostNQN", text(&self.hostnqn));
        add(body, "HostID", text(&self.hostid));
        add(body, "HeaderDigest", truth(self.hdr_digest));
        add(body, "DataDigest", truth(self.data_digest));
    }
}

impl Terms {
    /// As the API has it: what is given.
    fn add(&self, body: &mut Value) {
        self.host.add(body);
        for (name, value) in [
            ("IOQueues", self.nr_io_queues),
            ("QueueSize", self.queue_size),
            ("KeepAliveSeconds", self.keep_alive_tmo),
            ("ReconnectDelaySeconds", self.reconnect_delay),
            ("FastIOFailSeconds", self.fast_io_fail_tmo),
            ("ControllerLossSeconds", self.ctrl_loss_tmo),
        ] {
            add(body, name, value.map(|value| json!(value)));
        }
    }
}

fn add(body: &mut Value, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        body[name] = value;
    }
}

/// A path to a subsystem.
#[derive(Debug, clap::Args)]
pub struct Path {
    /// Address of the controller, or a name that leads there
    #[arg(short = 'a', long, value_name = "ADDR")]
    traddr: String,
    /// Its TCP port
    #[arg(short = 's', long, value_name = "PORT", default_value_t = PORT,
        value_parser = clap::value_parser!(u16).range(1..))]
    trsvcid: u16,
    /// NQN of the subsystem
    #[arg(short = 'n', long, value_name = "NQN")]
    nqn: String,
}

/// A subsystem, or one path to it.
#[derive(Debug, clap::Args)]
pub struct Gone {
    /// NQN of the subsystem
    #[arg(short = 'n', long, value_name = "NQN")]
    nqn: String,
    /// Address of the path; without it all paths are taken away
    #[arg(short = 'a', long, value_name = "ADDR")]
    traddr: Option<String>,
    /// Its TCP port; 4420 where none is given
    #[arg(short = 's', long, value_name = "PORT", requires = "traddr",
        value_parser = clap::value_parser!(u16).range(1..))]
    trsvcid: Option<u16>,
}

/// What a discovery service tells, as it is printed.
#[derive(Debug, Serialize)]
struct Discovered {
    generation: u64,
    entries: Vec<Entry>,
}

/// Where a subsystem is, in the words of nvme-cli.
#[derive(Debug, Serialize)]
struct Entry {
    subtype: String,
    subnqn: String,
    traddr: String,
    trsvcid: String,
    portid: u16,
}

/// The drives that were connected, as they are printed.
#[derive(Debug, Serialize)]
struct Connected {
    drives: Vec<String>,
}

/// Opens a remote drive by connections of this process, which last as long as that.
pub fn open(path: &std::path::Path) -> Result<SharedDrive, Problem> {
    static HERE: OnceLock<Fabrics> = OnceLock::new();
    let fabrics = HERE.get_or_init(|| Fabrics::new(0, Box::new(|_| ())));
    let found = fabrics.resolve(path)?;
    let [name] = &found[..] else {
        return Err(Problem::new(&messages::NOT_ONE_DRIVE, &[&path.display(), &found.len()]));
    };
    fabrics.open(name).map_err(|error| failure::not_opened(&error).into())
}

fn action(name: &str) -> String {
    format!("{}/Actions/Oem/PalisadeManager.{name}", uri::MANAGER)
}

/// Asks a discovery service where subsystems are.
pub async fn discover(
    (service, host): (&Service, &Host),
    output: Output,
    client: &Client,
) -> Result<(), Problem> {
    let mut body = json!({ "Address": service.traddr, "Port": service.trsvcid });
    host.add(&mut body);
    let told = client.post(&action("Discover"), &body).await?;
    let told::Discovered { generation, entries } = client::read(told)?;
    let entry = |own: told::DiscoveredEntry| Entry {
        subtype: own.subsystem_type,
        subnqn: own.subsystem_nqn,
        traddr: own.address,
        trsvcid: own.port,
        portid: own.port_id,
    };
    let entries = entries.into_iter().map(entry).collect();
    output.print(&Answer::new(Discovered { generation, entries }), text);
    Ok(())
}

fn text(told: &Discovered) -> String {
    let row = |own: &Entry| {
        let Entry { subtype, subnqn, traddr, trsvcid, portid } = own;
        vec![subtype.clone(), subnqn.clone(), traddr.clone(), trsvcid.clone(), portid.to_string()]
    };
    let rows: Vec<_> = told.entries.iter().map(row).collect();
    table(&["SUBTYPE", "SUBNQN", "TRADDR", "TRSVCID", "PORTID"], &rows)
}

/// The drives behind fabrics, as they are printed.
#[derive(Debug, Serialize)]
struct Reached {
    drives: Vec<ReachedDrive>,
}

/// One of them.
#[derive(Debug, Serialize)]
struct ReachedDrive {
    drive: String,
    serial: String,
    nguid: Option<String>,
    uuid: Option<String>,
    bytes: u64,
    paths: Vec<RemotePath>,
}

/// Shows the paths to a drive, or to all.
pub async fn paths(
    drive: Option<&std::path::Path>,
    output: Output,
    client: &Client,
) -> Result<(), Problem> {
    let known = match drive {
        Some(name) => vec![named::one(client, name).await?],
        None => fetch::drives(client).await?,
    };
    if let (Some(_), [KnownDrive { drive, remote: None, .. }]) = (drive, &known[..]) {
        return Err(Problem::new(&messages::DRIVE_NOT_REMOTE, &[&drive.path]));
    }
    let reached = |known: KnownDrive| {
        let remote = known.remote?;
        let Remote { nguid, uuid, paths } = (*remote).clone();
        let Drive { path: drive, serial, bytes, .. } = known.drive;
        Some(ReachedDrive { drive, serial, nguid, uuid, bytes, paths })
    };
    let drives = known.into_iter().filter_map(reached).collect();
    output.print(&Answer::new(Reached { drives }), text_of_paths);
    Ok(())
}

fn text_of_paths(told: &Reached) -> String {
    let word = |word: serde_json::Result<Value>| {
        word.ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or("-".to_owned())
    };
    let row = |drive: &str, path: &RemotePath| {
        let next = path.next_try_seconds.map(|next| format!("next try in {next} s"));
        let about: Vec<String> = path.last_error.iter().cloned().chain(next).collect();
        vec![
            drive.to_owned(),
            path.address.clone(),
            word(serde_json::to_value(path.state)),
            word(serde_json::to_value(path.ana)),
            path.cntlid.map_or("-".to_owned(), |id| id.to_string()),
            path.queues.to_string(),
            path.errors.to_string(),
            path.reconnects.to_string(),
            about.join("; "),
        ]
    };
    let rows = |own: &ReachedDrive| -> Vec<_> {
        own.paths.iter().map(|path| row(&own.drive, path)).collect()
    };
    let rows: Vec<_> = told.drives.iter().flat_map(rows).collect();
    let heads =
        ["DRIVE", "PATH", "STATE", "ANA", "CNTLID", "QUEUES", "ERRORS", "RECONNECTS", "LAST ERROR"];
    table(&heads, &rows)
}

/// Connects a subsystem by a path.
pub async fn connect(
    (path, terms): (&Path, &Terms),
    how: How,
    client: &Client,
) -> Result<(), Problem> {
    let Path { traddr, trsvcid, nqn } = path;
    let mut body = json!({ "Address": traddr, "Port": trsvcid, "Subsystem": nqn });
    terms.add(&mut body);
    connect_as(body, how, client).await
}

/// Connects all subsystems that a discovery service tells of.
pub async fn connect_all(
    (service, terms): (&Service, &Terms),
    how: How,
    client: &Client,
) -> Result<(), Problem> {
    let mut body = json!({ "Address": service.traddr, "Port": service.trsvcid });
    terms.add(&mut body);
    connect_as(body, how, client).await
}

/// Connects what a name with `*` stands for; the drives that it names, each by its one name.
pub async fn reach(name: &Name, client: &Client) -> Result<Vec<PathBuf>, Problem> {
    let Some(Place { host, port }) = &name.place else { return Ok(Vec::new()) };
    let mut body = json!({ "Address": host, "Port": port });
    if let Some(subsystem) = &name.subsystem {
        body["Subsystem"] = json!(subsystem.as_str());
    }
    let told::Connected { drives } = client::read(client.post(&action("Connect"), &body).await?)?;
    let is_meant = |path: &PathBuf| {
        let namespace = Name::of(path).and_then(Result::ok).and_then(|own| own.namespace);
        name.namespace.is_none_or(|wanted| namespace == Some(wanted))
    };
    Ok(drives.into_iter().map(PathBuf::from).filter(is_meant).collect())
}

async fn connect_as(body: Value, how: How, client: &Client) -> Result<(), Problem> {
    let change = Change::post(action("Connect"), body);
    let Some(told) = confirm::change(&change, how, client).await? else { return Ok(()) };
    let told::Connected { drives } = client::read(told)?;
    how.output.print(&Answer::new(Connected { drives }), |told| match told.drives.is_empty() {
        true => "nothing that can be a drive is there".to_owned(),
        false => told.drives.join("\n"),
    });
    Ok(())
}

/// Disconnects a subsystem, or takes one path to it away.
pub async fn disconnect(gone: &Gone, how: How, client: &Client) -> Result<(), Problem> {
    let mut body = json!({ "Subsystem": gone.nqn });
    if let Some(address) = &gone.traddr {
        body["Address"] = json!(address);
        body["Port"] = json!(gone.trsvcid.unwrap_or(PORT));
    }
    let change = Change::post(action("Disconnect"), body);
    if confirm::change(&change, how, client).await?.is_some() {
        how.output.print(&DONE, |_| match &gone.traddr {
            Some(address) => format!("{} is disconnected from {address}", gone.nqn),
            None => format!("{} is disconnected", gone.nqn),
        });
    }
    Ok(())
}
