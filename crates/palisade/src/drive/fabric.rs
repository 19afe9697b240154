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
use redfish::change::{DISCOVERY_PORT, PORT};
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
pub async fn discover(service: &Service, output: Output, client: &Client) -> Result<(), Problem> {
    let body = json!({ "Address": service.traddr, "Port": service.trsvcid });
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
pub async fn connect(path: &Path, how: How, client: &Client) -> Result<(), Problem> {
    let Path { traddr, trsvcid, nqn } = path;
    let body = json!({ "Address": traddr, "Port": trsvcid, "Subsystem": nqn });
    connect_as(body, how, client).await
}

/// Connects all subsystems that a discovery service tells of.
pub async fn connect_all(service: &Service, how: How, client: &Client) -> Result<(), Problem> {
    let body = json!({ "Address": service.traddr, "Port": service.trsvcid });
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
