//! `palisade export`: manages exports.

use crate::array::DONE;
use crate::client::{Change, Client};
use crate::complete;
use crate::confirm;
use crate::fetch::{self, Part};
use crate::output::{How, Output, Problem, state, table};
use crate::volume::Name;
use clap::Subcommand;
use clap_complete::engine::ArgValueCompleter;
use control::names;
use redfish::access::Secret;
use redfish::messages as say;
use redfish::read;
use redfish::service::uri;
use redfish::view::{self, Answer};
use serde::Serialize;
use serde_json::{Value, json};
use services::Kept;
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// What can be done with exports.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Export a volume to hosts
    Create {
        /// Volume, as ARRAY/VOLUME
        #[arg(add = ArgValueCompleter::new(complete::volumes))]
        name: Name,
        #[command(flatten)]
        service: Box<Service>,
        #[command(flatten)]
        how: How,
    },
    /// Show an export and the hosts that are connected
    Show {
        /// ID of the export, as shown by `palisade export list`
        #[arg(add = ArgValueCompleter::new(complete::exports))]
        id: String,
        #[command(flatten)]
        output: Output,
    },
    /// List exports
    List {
        #[command(flatten)]
        output: Output,
    },
    /// End the block device of a volume on this machine, where no daemon comes back to serve it
    Release {
        /// Volume, as ARRAY/VOLUME
        name: Name,
        #[command(flatten)]
        output: Output,
    },
    /// Delete an export; its hosts are disconnected
    Delete {
        /// ID of the export, as shown by `palisade export list`
        #[arg(add = ArgValueCompleter::new(complete::exports))]
        id: String,
        #[command(flatten)]
        how: How,
    },
}

/// What serves nobody over NVMe.
const NO_NVME: [&str; 7] = ["nbd", "local", "ublk", "fuse", "vhost_user", "iscsi", "fc"];

/// What tells hosts of no address.
const NO_HOSTS: [&str; 7] = ["nbd", "local", "ublk", "fuse", "vhost_user", "fc", "nvme_fc"];

/// What serves no initiators.
const NO_SCSI: [&str; 7] = ["nbd", "nvme_tcp", "nvme_fc", "local", "ublk", "fuse", "vhost_user"];

/// What has no portals, and no CHAP.
const FC: &str = "fc";

/// What has one subsystem for each volume, of named hosts.
const NVME_FC: &str = "nvme_fc";

/// Most bytes of a file with a secret that are read.
const SECRET_MOST: u64 = 4096;

/// How a volume is served.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("protocol").required(true)))]
pub struct Service {
    /// Listen for NBD at ADDR:PORT (port 0: any free port) or unix:PATH
    #[arg(long, value_name = "ADDR:PORT|unix:PATH", group = "protocol")]
    nbd: Option<String>,
    /// Make a block device of this machine: /dev/palisade/ARRAY/VOLUME
    #[arg(long, group = "protocol")]
    local: bool,
    /// Make a block device of this machine as --local does, by ublk or not at all
    #[arg(long, group = "protocol")]
    ublk: bool,
    /// Mount the volume as a file of this machine, over a new or empty file
    #[arg(long, value_name = "PATH", group = "protocol")]
    fuse: Option<PathBuf>,
    /// Serve a virtual machine of this machine at a new socket (vhost-user-blk)
    #[arg(long, value_name = "SOCKET", group = "protocol")]
    vhost_user: Option<PathBuf>,
    /// Listen for NVMe/TCP at ADDR:PORT (port 0: any free port); may be repeated
    #[arg(long, value_name = "ADDR:PORT", group = "protocol")]
    nvme_tcp: Vec<String>,
    /// NVMe/TCP: NQN of the subsystem [default: one for this volume]
    #[arg(long, value_name = "NQN", conflicts_with_all = NO_NVME, conflicts_with = NVME_FC)]
    subsystem: Option<String>,
    /// NVMe: NQN of a host that may connect; may be repeated
    #[arg(long, value_name = "NQN", num_args = 1.., conflicts_with_all = NO_NVME)]
    host: Vec<String>,
    /// NVMe/TCP: let any host connect
    #[arg(long, conflicts_with_all = ["host", NVME_FC], conflicts_with_all = NO_NVME)]
    any_host: bool,
    /// NVMe/TCP, iSCSI: address that hosts are told behind address translation, one for each
    #[arg(long, value_name = "ADDR:PORT", num_args = 1.., conflicts_with_all = NO_HOSTS)]
    advertise: Vec<String>,
    /// Serve an iSCSI target at ADDR:PORT, with an IP address; may be repeated
    #[arg(long, value_name = "ADDR:PORT", num_args = 1.., group = "protocol")]
    iscsi: Vec<String>,
    /// Serve by FCP at this Fibre Channel port of this machine, as shown by `palisade port list`
    #[arg(long, value_name = "WWPN", group = "protocol", requires = "initiator")]
    fc: Option<String>,
    /// Serve by NVMe at this Fibre Channel port of this machine
    #[arg(long, value_name = "WWPN", group = "protocol", requires = "host")]
    nvme_fc: Option<String>,
    /// iSCSI, FCP: IQN or WWPN of an initiator that may log in; may be repeated
    #[arg(long, value_name = "IQN|WWPN", num_args = 1.., conflicts_with_all = NO_SCSI)]
    initiator: Vec<String>,
    /// iSCSI: name by which initiators log in, with a secret (CHAP)
    #[arg(long, value_name = "USER", conflicts_with_all = NO_SCSI, conflicts_with = FC)]
    chap: Option<String>,
    /// iSCSI: file with the secret of --chap, 12 to 16 characters (-: standard input)
    #[arg(long, value_name = "PATH", conflicts_with_all = NO_SCSI, conflicts_with = FC)]
    secret_file: Option<PathBuf>,
    /// iSCSI: who serves the target [default: lio where the kernel has it and ublk, else tgt]
    #[arg(long, value_enum, conflicts_with_all = NO_SCSI, conflicts_with = FC)]
    server: Option<Server>,
}

/// Who serves a target.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Server {
    /// The kernel's LIO, over a ublk device
    Lio,
    /// tgt, over a file of FUSE
    Tgt,
}

/// The secret in a file: its first line.
fn secret(path: &Path) -> Result<Secret, Problem> {
    let mut text = String::new();
    let read = match path.to_str() {
        Some("-") => io::stdin().lock().take(SECRET_MOST).read_to_string(&mut text),
        _ => File::open(path).and_then(|f| f.take(SECRET_MOST).read_to_string(&mut text)),
    };
    read.map_err(|error| Problem::new(&say::SECRET_NOT_READ, &[&path.display(), &error]))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(Secret::new(line.strip_suffix('\r').unwrap_or(line)))
}

impl Service {
    fn request(&self, Name { array, volume }: Name) -> Result<view::CreateExport, Problem> {
        let iscsi = !self.iscsi.is_empty();
        let fc = self.fc();
        Ok(view::CreateExport {
            array,
            volume,
            nbd: self.nbd.as_deref().map(absolute),
            nvme_tcp: self.nvme_tcp.clone(),
            subsystem: self.subsystem.clone(),
            hosts: if fc.is_some() { Vec::new() } else { self.host.clone() },
            any_host: self.any_host,
            advertise: if iscsi { Vec::new() } else { self.advertise.clone() },
            local: match (&self.fuse, &self.vhost_user) {
                (Some(path), _) => Some(view::LocalExport::File(absolute_path(path))),
                (None, Some(path)) => Some(view::LocalExport::VhostUser(absolute_path(path))),
                (None, None) if self.ublk => Some(view::LocalExport::Ublk),
                (None, None) => self.local.then_some(view::LocalExport::Device),
            },
            iscsi: if iscsi { Some(self.iscsi()?) } else { None },
            fc,
        })
    }

    fn fc(&self) -> Option<view::CreateFc> {
        let (port, is_nvme, initiators) = match (&self.fc, &self.nvme_fc) {
            (Some(port), _) => (port, false, &self.initiator),
            (None, Some(port)) => (port, true, &self.host),
            (None, None) => return None,
        };
        Some(view::CreateFc { port: port.clone(), is_nvme, initiators: initiators.clone() })
    }

    fn iscsi(&self) -> Result<view::CreateIscsi, Problem> {
        Ok(view::CreateIscsi {
            portals: self.iscsi.clone(),
            initiators: self.initiator.clone(),
            advertise: self.advertise.clone(),
            user: self.chap.clone(),
            secret: self.secret_file.as_deref().map(secret).transpose()?,
            server: self.server.map(|server| match server {
                Server::Lio => view::IscsiServer::Lio,
                Server::Tgt => view::IscsiServer::Tgt,
            }),
        })
    }
}

/// Carries a command out.
pub async fn run(command: &Command, client: &Client) -> Result<(), Problem> {
    match command {
        Command::Create { name, service, how } => {
            create(service.request(name.clone())?, *how, client).await?;
        }
        Command::List { output } => {
            let arrays = fetch::arrays(client, &[Part::Exports]).await?;
            let exports = arrays.into_iter().flat_map(|array| array.exports).collect();
            let answer = Answer::new(view::ExportList { exports });
            output.print(&answer, |list| self::exports(&list.exports));
        }
        Command::Show { id, output } => {
            let arrays = fetch::arrays(client, &[Part::Exports]).await?;
            output.print(&Answer::new(names::export(&arrays, id)?.clone()), detail);
        }
        Command::Release { name, output } => {
            let volume = format!("{}/{}", name.array, name.volume);
            let device =
                services::release(&name.array, &name.volume).map_err(|kept| match kept {
                    Kept::Served(device) => Problem::new(&say::RELEASE_SERVED, &[&volume, &device]),
                    Kept::Failed(why) => Problem::new(&say::RELEASE_FAILED, &[&volume, &why]),
                })?;
            output.print(&Answer::new(json!({ "device": device })), |_| {
                format!("{device} of {volume} is released")
            });
        }
        Command::Delete { id, how } => {
            let arrays = fetch::arrays(client, &[Part::Exports]).await?;
            let (array, export, number) = names::export_of(&arrays, id)?;
            let own = uri::connection_id(&array.uuid, number);
            let own = uri::connection(export.kind.fabric(), &own);
            if confirm::change(&Change::delete(own), *how, client).await?.is_some() {
                how.output.print(&DONE, |_| format!("export {id} is deleted"));
            }
        }
    }
    Ok(())
}

async fn create(request: view::CreateExport, how: How, client: &Client) -> Result<(), Problem> {
    control::check_export(&request)?;
    let arrays = fetch::arrays(client, &[Part::Volumes]).await?;
    let volume = names::volume(names::running(&arrays, &request.array)?, &request.volume)?;
    let collection = match (&request.nbd, &request.local, &request.iscsi, &request.fc) {
        (Some(_), ..) => uri::NBD_CONNECTIONS,
        (None, Some(_), ..) => uri::LOCAL_CONNECTIONS,
        (None, None, Some(_), _) => uri::ISCSI_CONNECTIONS,
        (None, None, None, Some(_)) => uri::FC_CONNECTIONS,
        (None, None, None, None) => uri::NVME_CONNECTIONS,
    };
    let body = json!({
        "VolumeInfo": [{ "Volume": fetch::link(&uri::volume(&volume.uuid)) }],
        "Oem": { "Palisade": wanted(&request) },
    });
    if let Some(made) = confirm::change(&Change::post(collection, body), how, client).await? {
        let export = read::export(&made)?;
        let connect = match (&export.nvme, &export.iscsi) {
            (Some(nvme), _) => connect(nvme),
            (None, Some(iscsi)) => log_in(iscsi),
            (None, None) => Vec::new(),
        };
        how.output.print(&Answer::new(Created { export, connect }), created);
    }
    Ok(())
}

/// An export that was made.
#[derive(Debug, Serialize)]
struct Created {
    #[serde(flatten)]
    export: view::Export,
    /// What hosts run to have it; nothing of NBD.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    connect: Vec<String>,
}

fn created(made: &Created) -> String {
    let text = exports(core::slice::from_ref(&made.export));
    if made.connect.is_empty() {
        return text;
    }
    let on = match made.connect.iter().any(|line| line.contains(ANY_ADDRESS)) {
        true => format!("on the host, where {ANY_ADDRESS} is an address of this machine:"),
        false => "on the host:".to_owned(),
    };
    format!("{text}\n{on}\n    {}", made.connect.join("\n    "))
}

/// Stands for an address where the daemon listens on all that its machine has.
const ANY_ADDRESS: &str = "ADDR";

/// What connects hosts to an export (`nvme connect` of nvme-cli): a line for each address, and for
/// each host where only some may connect.
fn connect(nvme: &view::NvmeExport) -> Vec<String> {
    let told = if nvme.advertise.is_empty() { &nvme.listeners } else { &nvme.advertise };
    let one = |address: &String| {
        let (host, port) = address.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_any = host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified());
        let host = if is_any { ANY_ADDRESS } else { host };
        Some(format!("nvme connect -t tcp -a {host} -s {port} -n {}", nvme.subsystem))
    };
    let lines: Vec<String> = told.iter().filter_map(one).collect();
    if nvme.any_host || nvme.hosts.is_empty() {
        return lines;
    }
    let of_host =
        |host: &String| lines.iter().map(|line| format!("{line} -q {host}")).collect::<Vec<_>>();
    nvme.hosts.iter().flat_map(of_host).collect()
}

/// What logs Linux hosts in to a target (iscsiadm of open-iscsi): lines for each portal. Nodes are
/// named, not discovered: discovery tells the addresses that the server has.
fn log_in(iscsi: &view::IscsiExport) -> Vec<String> {
    let told = if iscsi.advertise.is_empty() { &iscsi.portals } else { &iscsi.advertise };
    let of_portal = |portal: &String| {
        let any = portal.parse().ok().filter(|at: &SocketAddr| at.ip().is_unspecified());
        let portal =
            any.map_or_else(|| portal.clone(), |at| format!("{ANY_ADDRESS}:{}", at.port()));
        let node = format!("iscsiadm -m node -T {} -p {portal}", iscsi.target);
        let set = |name: &str, value: &str| format!("{node} -o update -n {name} -v {value}");
        let mut lines = vec![format!("{node} -o new")];
        if let Some(user) = &iscsi.user {
            lines.push(set("node.session.auth.authmethod", "CHAP"));
            lines.push(set("node.session.auth.username", user));
            lines.push(set("node.session.auth.password", "SECRET"));
        }
        lines.push(format!("{node} --login"));
        lines
    };
    told.iter().flat_map(of_portal).collect()
}

/// How a request wants a volume to be served over iSCSI.
fn wanted_of(iscsi: &view::CreateIscsi) -> Value {
    let mut own = json!({ "Portals": iscsi.portals, "Initiators": iscsi.initiators });
    if !iscsi.advertise.is_empty() {
        own["Advertise"] = json!(iscsi.advertise);
    }
    if let Some(user) = &iscsi.user {
        own["User"] = json!(user);
    }
    if let Some(secret) = &iscsi.secret {
        own["Secret"] = json!(secret.reveal());
    }
    if let Some(server) = iscsi.server {
        own["Server"] = json!(match server {
            view::IscsiServer::Lio => "Lio",
            view::IscsiServer::Tgt => "Tgt",
        });
    }
    own
}

/// How a request wants a volume to be served.
fn wanted(request: &view::CreateExport) -> Value {
    if let Some(iscsi) = &request.iscsi {
        return wanted_of(iscsi);
    }
    if let Some(fc) = &request.fc {
        let protocol = if fc.is_nvme { "Nvme" } else { "Fcp" };
        return json!({ "Port": fc.port, "Initiators": fc.initiators, "Protocol": protocol });
    }
    if let Some(nbd) = &request.nbd {
        return json!({ "Listeners": [nbd] });
    }
    match &request.local {
        Some(view::LocalExport::Device) => return json!({}),
        Some(view::LocalExport::Ublk) => return json!({ "Ublk": true }),
        Some(view::LocalExport::File(path)) => return json!({ "File": path }),
        Some(view::LocalExport::VhostUser(path)) => return json!({ "Socket": path }),
        Some(view::LocalExport::Several) | None => {}
    }
    let mut own = json!({ "Listeners": request.nvme_tcp, "AnyHost": request.any_host });
    if !request.hosts.is_empty() {
        own["Hosts"] = json!(request.hosts);
    }
    if !request.advertise.is_empty() {
        own["Advertise"] = json!(request.advertise);
    }
    if let Some(subsystem) = &request.subsystem {
        own["Subsystem"] = json!(subsystem);
    }
    own
}

/// A socket's path counts from here, not from where the daemon is.
fn absolute(nbd: &str) -> String {
    match nbd.strip_prefix("unix:") {
        Some(path) => format!("unix:{}", absolute_path(Path::new(path))),
        None => nbd.to_owned(),
    }
}

/// A file's path, too.
fn absolute_path(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// All about an export.
fn detail(export: &view::Export) -> String {
    let mut text = exports(core::slice::from_ref(export));
    let mut line = |what: &str, value: String| text += &format!("\n{what:<12}{value}");
    for view::Client { address, local_address } in &export.clients {
        line(
            "connected",
            match &address[..] {
                "" => "a process of the daemon's machine".to_owned(),
                _ => format!("a client{}", way(address, local_address)),
            },
        );
    }
    let mut more = |what: &str, value: &Option<String>| {
        if let Some(value) = value {
            line(what, value.clone());
        }
    };
    more("device", &export.device);
    more("link", &export.link);
    more("file", &export.file);
    more("socket", &export.socket);
    if let Some(iscsi) = &export.iscsi {
        more("target", &Some(format!("{}, LUN {}", iscsi.target, iscsi.unit)));
        more("served by", &iscsi.server.map(|server| server.word().to_owned()));
        more("portals", &Some(iscsi.portals.join(", ")));
        let told = Some(iscsi.advertise.join(", "));
        more("hosts told", &told.filter(|_| !iscsi.advertise.is_empty()));
        more("initiators", &Some(iscsi.initiators.join(", ")));
        more("CHAP user", &iscsi.user);
        for session in &iscsi.sessions {
            more("logged in", &Some(session.clone()));
        }
    }
    if let Some(fc) = &export.fc {
        let unit = fc.unit.map(|unit| format!(", LUN {unit}")).unwrap_or_default();
        more("port", &Some(format!("{}{unit}", fc.port)));
        more("subsystem", &fc.subsystem);
        let who = if fc.unit.is_some() { "initiators" } else { "hosts" };
        more(who, &Some(fc.initiators.join(", ")));
        for session in &fc.sessions {
            more("logged in", &Some(session.clone()));
        }
    }
    if let Some(health) = &export.health {
        more("health", &Some(health.state.word().to_owned()));
        more("problem", &health.problem);
    }
    let Some(nvme) = &export.nvme else { return text };
    line("subsystem", nvme.subsystem.clone());
    line("namespace", format!("{}, NGUID {}, UUID {}", nvme.nsid, nvme.nguid, nvme.uuid));
    line("listens at", nvme.listeners.join(", "));
    if !nvme.advertise.is_empty() {
        line("hosts told", nvme.advertise.join(", "));
    }
    line("hosts", if nvme.any_host { "any".into() } else { nvme.hosts.join(", ") });
    for c in nvme.connections.iter() {
        let host = if c.host.is_empty() { "a host without a name" } else { &c.host };
        let way = way(&c.address, &c.local_address);
        line("connected", format!("{host}{way}, controller {}, {} queues", c.controller, c.queues));
    }
    text
}

/// By which addresses somebody came; a daemon of before does not tell.
fn way(address: &str, local: &str) -> String {
    if address.is_empty() { String::new() } else { format!(" from {address} by {local}") }
}

/// A table of exports.
pub fn exports(exports: &[view::Export]) -> String {
    let row = |e: &view::Export| {
        let serving = state(&if e.serving { "yes" } else { "no" });
        let problem = e.problem.clone().unwrap_or_default();
        vec![e.id.clone(), format!("{}/{}", e.array, e.volume), serving, e.uri.clone(), problem]
    };
    let rows: Vec<_> = exports.iter().map(row).collect();
    table(&["ID", "VOLUME", "SERVED", "URI", ""], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_connects_a_host_is_said() {
        let nvme = |listeners: &[&str], hosts: &[&str]| {
            let text = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
            view::NvmeExport {
                subsystem: "nqn.s".to_owned(),
                nsid: 1,
                nguid: String::new(),
                uuid: String::new(),
                listeners: text(listeners),
                advertise: Vec::new(),
                hosts: text(hosts),
                any_host: hosts.is_empty(),
                connections: [].into(),
            }
        };
        let line = |address: &str| format!("nvme connect -t tcp -a {address} -s 4420 -n nqn.s");
        let one = nvme(&["192.0.2.1:4420"], &[]);
        assert_eq!(connect(&one), [line("192.0.2.1")]);
        let both = nvme(&["[::1]:4420", "0.0.0.0:4420"], &["a", "b"]);
        let lines = ["::1", "ADDR"].map(line);
        let whole: Vec<_> = ["a", "b"]
            .iter()
            .flat_map(|host| lines.iter().map(move |line| format!("{line} -q {host}")))
            .collect();
        assert_eq!(connect(&both), whole);
        let iscsi = |user: Option<&str>, portal: &str| view::IscsiExport {
            target: "iqn.t".to_owned(),
            unit: 1,
            portals: vec![portal.to_owned()],
            advertise: Vec::new(),
            initiators: vec!["iqn.i".to_owned()],
            user: user.map(str::to_owned),
            server: None,
            sessions: Vec::new(),
        };
        let node = "iscsiadm -m node -T iqn.t -p ADDR:3260";
        let lines = log_in(&iscsi(None, "0.0.0.0:3260"));
        assert_eq!(lines, [format!("{node} -o new"), format!("{node} --login")]);
        let lines = log_in(&iscsi(Some("u"), "[::1]:3260"));
        assert_eq!(lines.len(), 5);
        assert!(lines[2].contains("-p [::1]:3260 -o update -n node.session.auth.username -v u"));
        let told = view::NvmeExport { advertise: vec!["198.51.100.1:4420".to_owned()], ..one };
        assert_eq!(connect(&told), [line("198.51.100.1")]);
    }
}
