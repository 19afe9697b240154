//! What exports have beside what Redfish says of them.

use super::{ExportKind, Extension, IscsiServer, ServiceState};
use crate::view;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a connection has beside what Redfish says of it: a connection is an export.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Connection {
    /// The name of its array.
    pub array: String,
    /// The volume's name in the array.
    pub volume: String,
    /// The export's number in the array.
    pub number: u32,
    /// By what it is served; absent of a daemon of before.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kind: Option<ExportKind>,
    /// The block device of this machine that it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub device: Option<String>,
    /// The link to the device, which stays the same.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub link: Option<String>,
    /// The file of this machine that it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<String>,
    /// The socket of this machine at which a virtual machine has it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub socket: Option<String>,
    /// How it is served over iSCSI.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub iscsi: Option<Iscsi>,
    /// How it is served at a Fibre Channel port.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fc: Option<FibreChannel>,
    /// How it is, where others than the daemon serve it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub health: Option<ServiceHealth>,
    /// Where it is served: `ADDR:PORT`, or `unix:PATH` for NBD.
    pub listeners: Vec<String>,
    /// What hosts are told instead of these, in their order; empty if nothing else.
    #[serde(default)]
    pub advertise: Vec<String>,
    /// The qualified names of the hosts that may have it.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Any host may.
    #[serde(default)]
    pub any_host: bool,
    /// The subsystem's qualified name, over NVMe.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub subsystem: Option<String>,
    /// The namespace's number, over NVMe.
    #[serde(rename = "NSID", skip_serializing_if = "Option::is_none", default)]
    pub nsid: Option<u32>,
    /// What identifies the namespace for ever: 32 hexadecimal digits.
    #[serde(rename = "NGUID", skip_serializing_if = "Option::is_none", default)]
    pub nguid: Option<String>,
    /// The same, as a UUID: the volume's.
    #[serde(rename = "UUID", skip_serializing_if = "Option::is_none", default)]
    pub uuid: Option<String>,
    /// How clients name it: an NBD URI, or that of a namespace.
    #[serde(rename = "URI")]
    pub uri: String,
    /// Whether it is served now.
    pub serving: bool,
    /// Why it is not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<String>,
    /// Hosts that have it now, over NVMe.
    #[serde(default)]
    pub connected: Vec<Host>,
    /// Clients that have it now, over NBD.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub clients: Vec<Client>,
}

impl Extension for Connection {
    const OF: &'static str = "Connection";
}

/// How something is that others than the daemon serve, asked as a client asks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct ServiceHealth {
    /// How.
    pub state: ServiceState,
    /// When it was asked last, in seconds since 1970; absent: not yet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub checked: Option<u64>,
    /// What is wrong.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<String>,
}

/// A volume as the unit of an iSCSI target.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Iscsi {
    /// The target's name.
    pub target: String,
    /// The unit's number (LUN).
    pub unit: u8,
    /// Where it is served: `ADDR:PORT`.
    pub portals: Vec<String>,
    /// What initiators are told instead of these, in their order; empty if nothing else.
    #[serde(default)]
    pub advertise: Vec<String>,
    /// Names of the initiators that may have it.
    pub initiators: Vec<String>,
    /// The name by which they prove who they are (CHAP).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub user: Option<String>,
    /// Who serves it; absent: that is not known yet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server: Option<IscsiServer>,
    /// Names of the initiators that have it now.
    pub sessions: Vec<String>,
}

/// A volume at a Fibre Channel port.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct FibreChannel {
    /// The port's worldwide name.
    pub port: String,
    /// Who may have it: by FCP, worldwide names of ports; by NVMe, qualified names of hosts.
    pub initiators: Vec<String>,
    /// By FCP, the unit's number (LUN).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unit: Option<u16>,
    /// By NVMe, the subsystem's qualified name; it has one namespace, number 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub subsystem: Option<String>,
    /// By FCP, who has it now; by NVMe that is not known.
    pub sessions: Vec<String>,
}

/// What a fabric has beside what Redfish says of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Fabric {
    /// The machine's Fibre Channel ports.
    pub ports: Vec<FibreChannelPort>,
}

impl Extension for Fabric {
    const OF: &'static str = "Fabric";
}

/// A Fibre Channel port of the machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct FibreChannelPort {
    /// Its worldwide name (WWPN).
    pub name: String,
    /// Its driver.
    pub driver: String,
    /// How it is, in the kernel's words.
    pub state: String,
    /// Its speed, in the kernel's words.
    pub speed: String,
}

/// A host that is connected to a namespace's subsystem.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Host {
    /// The host's qualified name; absent if it gave none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host: Option<String>,
    /// Its controller's number.
    pub controller: u16,
    /// Its queues: connections of TCP, the admin queue's included.
    pub queues: usize,
    /// Its address, as its admin queue came.
    #[serde(default)]
    pub address: String,
    /// The address of this machine that it came through.
    #[serde(default)]
    pub local_address: String,
}

/// A client that is connected over NBD.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Client {
    /// Its address; absent: it is a process of the machine itself, at a socket.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub address: Option<String>,
    /// The address of this machine that it came through.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub local_address: Option<String>,
}

/// What an endpoint has beside what Redfish says of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Endpoint {
    /// Of a subsystem or of NBD: where it is served.
    #[serde(default)]
    pub listeners: Vec<String>,
    /// Of a host: how many controllers it is connected to now.
    #[serde(default)]
    pub controllers: u64,
}

impl Extension for Endpoint {
    const OF: &'static str = "Endpoint";
}

impl Connection {
    /// An export, by its number.
    pub fn new(export: &view::Export, number: u32) -> Self {
        let nvme = export.nvme.as_ref();
        let names = |names: fn(&view::NvmeExport) -> &Vec<String>| {
            nvme.map(|nvme| names(nvme).clone()).unwrap_or_default()
        };
        let connected = nvme.map(|nvme| nvme.connections.iter().map(Host::from).collect());
        Self {
            array: export.array.clone(),
            volume: export.volume.clone(),
            number,
            kind: Some(export.kind.into()),
            device: export.device.clone(),
            link: export.link.clone(),
            file: export.file.clone(),
            socket: export.socket.clone(),
            iscsi: export.iscsi.clone().map(Iscsi::from),
            fc: export.fc.clone().map(FibreChannel::from),
            health: export.health.clone().map(ServiceHealth::from),
            listeners: match &export.nbd {
                Some(listener) => vec![listener.clone()],
                None => names(|nvme| &nvme.listeners),
            },
            advertise: names(|nvme| &nvme.advertise),
            hosts: names(|nvme| &nvme.hosts),
            any_host: nvme.is_some_and(|nvme| nvme.any_host),
            subsystem: nvme.map(|nvme| nvme.subsystem.clone()),
            nsid: nvme.map(|nvme| nvme.nsid),
            nguid: nvme.map(|nvme| nvme.nguid.clone()),
            uuid: nvme.map(|nvme| nvme.uuid.clone()),
            uri: export.uri.clone(),
            serving: export.serving,
            problem: export.problem.clone(),
            connected: connected.unwrap_or_default(),
            clients: export.clients.iter().map(Client::from).collect(),
        }
    }
}

impl From<view::ExportHealth> for ServiceHealth {
    fn from(own: view::ExportHealth) -> Self {
        let view::ExportHealth { state, checked, problem } = own;
        Self { state: state.into(), checked, problem }
    }
}

impl From<ServiceHealth> for view::ExportHealth {
    fn from(own: ServiceHealth) -> Self {
        let ServiceHealth { state, checked, problem } = own;
        Self { state: state.into(), checked, problem }
    }
}

impl From<view::IscsiExport> for Iscsi {
    fn from(own: view::IscsiExport) -> Self {
        let view::IscsiExport { target, unit, portals, advertise, initiators, .. } = own;
        let (user, server, sessions) = (own.user, own.server.map(Into::into), own.sessions);
        Self { target, unit, portals, advertise, initiators, user, server, sessions }
    }
}

impl From<Iscsi> for view::IscsiExport {
    fn from(own: Iscsi) -> Self {
        let Iscsi { target, unit, portals, advertise, initiators, user, .. } = own;
        let (server, sessions) = (own.server.map(Into::into), own.sessions);
        Self { target, unit, portals, advertise, initiators, user, server, sessions }
    }
}

impl From<view::FcExport> for FibreChannel {
    fn from(own: view::FcExport) -> Self {
        let view::FcExport { port, initiators, unit, subsystem, sessions } = own;
        Self { port, initiators, unit, subsystem, sessions }
    }
}

impl From<FibreChannel> for view::FcExport {
    fn from(own: FibreChannel) -> Self {
        let FibreChannel { port, initiators, unit, subsystem, sessions } = own;
        Self { port, initiators, unit, subsystem, sessions }
    }
}

impl From<view::FcPort> for FibreChannelPort {
    fn from(own: view::FcPort) -> Self {
        let view::FcPort { name, driver, state, speed } = own;
        Self { name, driver, state, speed }
    }
}

impl From<FibreChannelPort> for view::FcPort {
    fn from(own: FibreChannelPort) -> Self {
        let FibreChannelPort { name, driver, state, speed } = own;
        Self { name, driver, state, speed }
    }
}

impl From<&view::Connection> for Host {
    fn from(host: &view::Connection) -> Self {
        let view::Connection { host, controller, queues, address, local_address } = host.clone();
        let host = Some(host).filter(|host| !host.is_empty());
        Self { host, controller, queues, address, local_address }
    }
}

impl From<Host> for view::Connection {
    fn from(host: Host) -> Self {
        let Host { host, controller, queues, address, local_address } = host;
        Self { host: host.unwrap_or_default(), controller, queues, address, local_address }
    }
}

impl From<&view::Client> for Client {
    fn from(client: &view::Client) -> Self {
        let told = |address: &String| Some(address.clone()).filter(|address| !address.is_empty());
        Self { address: told(&client.address), local_address: told(&client.local_address) }
    }
}

impl From<Client> for view::Client {
    fn from(client: Client) -> Self {
        let Client { address, local_address } = client;
        let told = |address: Option<String>| address.unwrap_or_default();
        Self { address: told(address), local_address: told(local_address) }
    }
}

impl From<Connection> for view::Export {
    fn from(own: Connection) -> Self {
        let id = format!("{}:{}", own.array, own.number);
        let (mut nbd, mut nvme) = (None, None);
        match own.subsystem {
            Some(subsystem) => {
                nvme = Some(view::NvmeExport {
                    subsystem,
                    nsid: own.nsid.unwrap_or_default(),
                    nguid: own.nguid.unwrap_or_default(),
                    uuid: own.uuid.unwrap_or_default(),
                    listeners: own.listeners,
                    advertise: own.advertise,
                    hosts: own.hosts,
                    any_host: own.any_host,
                    connections: own.connected.into_iter().map(view::Connection::from).collect(),
                });
            }
            None => nbd = own.listeners.into_iter().next(),
        }
        let usual = match nvme {
            Some(_) => view::ExportKind::NvmeTcp,
            None => view::ExportKind::Nbd,
        };
        Self {
            id,
            kind: own.kind.map_or(usual, view::ExportKind::from),
            device: own.device,
            link: own.link,
            file: own.file,
            socket: own.socket,
            iscsi: own.iscsi.map(view::IscsiExport::from),
            fc: own.fc.map(view::FcExport::from),
            health: own.health.map(view::ExportHealth::from),
            array: own.array,
            volume: own.volume,
            nbd,
            clients: own.clients.into_iter().map(view::Client::from).collect(),
            nvme,
            uri: own.uri,
            serving: own.serving,
            problem: own.problem,
        }
    }
}
