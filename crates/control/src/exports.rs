//! What is served where: listeners, and the exports behind each.
//!
//! States of a listener: opened for a first export → accepting → closed with its last export,
//! and its connections with it. Several exports may share an address; an address speaks one
//! protocol.
//!
//! Invariant: every export is in the table of at most one NBD listener, or in the NVMe target; a
//! listener without exports does not outlive the call that emptied it.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "what is looked up was put in by these functions"
)]

use crate::address::{self, Bound};
use crate::connection::{Table, Target};
use crate::counters::Ledger;
use crate::data::Data;
use crate::lock::lock;
use crate::lookup::{self, Lookups, UnderWay};
use crate::machines::Socket;
use crate::nvme::{self, VolumeKey};
use crate::services::Services;
use ::machines::Config;
use ::nvme::nqn::Nqn;
use format::{ExportAddress, Listener, NvmeExport};
use nvme_target::{Absent, Export, Group, Hosts, Port, PortId, Refused, Way};
use redfish::messages as say;
use redfish::view::{Client, Connection, Error};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::task::{JoinHandle, JoinSet};
use units::Uuid;

/// How long accepting rests after an error, such as too many open files.
const REST: Duration = Duration::from_millis(100);

/// How often it is said again that clients can't be accepted.
const QUIET: Duration = Duration::from_secs(60);

/// Who waits for the lookup of a name.
#[derive(Clone, Copy)]
enum Lookup {
    /// Who listens there.
    Now,
    /// Nobody: without an answer it is an error for now.
    Aside,
}

/// Who serves a listener's connections.
enum Protocol {
    Nbd(ExportAddress, Arc<Table>),
    Nvme(PortId, Port),
    Machine(ExportAddress, Arc<Socket>),
}

struct Listening {
    protocol: Protocol,
    accepting: JoinHandle<()>,
}

/// Which exports are served, and why others are not: for whoever asks, whatever is being done.
#[derive(Clone)]
pub struct Standing {
    target: nvme::Target,
    /// Those that the server itself uses.
    services: Arc<Services>,
    ledger: Arc<Ledger>,
    how: Arc<Mutex<How>>,
}

/// Who has exports, by export.
#[derive(Default)]
pub struct Connections {
    /// Over NVMe.
    pub hosts: BTreeMap<String, Arc<[Connection]>>,
    /// Over NBD.
    pub clients: BTreeMap<String, Vec<Client>>,
}

#[derive(Default)]
struct How {
    /// By export: its addresses.
    served: BTreeMap<String, Vec<String>>,
    /// By export: why it is not served, or not everywhere.
    problems: BTreeMap<String, String>,
    /// By export: where a virtual machine has it.
    machines: BTreeMap<String, Arc<Socket>>,
}

impl Standing {
    /// Nothing is served.
    pub fn new(target: nvme::Target, ledger: Arc<Ledger>) -> Self {
        Self { target, services: Arc::default(), ledger, how: Arc::default() }
    }

    /// The exports that the server itself uses.
    pub const fn services(&self) -> &Arc<Services> {
        &self.services
    }

    fn how(&self) -> MutexGuard<'_, How> {
        lock(&self.how)
    }

    /// Whether an export is served now.
    pub fn serves(&self, export: &str) -> bool {
        self.how().served.contains_key(export) || self.services.serves(export)
    }

    /// Whether a virtual machine has an export now.
    pub fn has_machine(&self, export: &str) -> bool {
        self.how().machines.get(export).is_some_and(|socket| socket.is_taken())
    }

    /// Ends what virtual machines have of these exports, of all of them at once: that lasts as long
    /// as what is under way, and nobody else has to wait for it.
    pub async fn end_machines(&self, exports: impl Iterator<Item = String>) {
        let machines: Vec<_> = {
            let how = self.how();
            exports.filter_map(|export| how.machines.get(&export).cloned()).collect()
        };
        let ending = machines.into_iter().map(|socket| async move { socket.end().await });
        ending.collect::<JoinSet<()>>().join_all().await;
    }

    /// Why an export is not served, or not everywhere.
    pub fn problem(&self, export: &str) -> Option<String> {
        let own = {
            let how = self.how();
            let of_machine = || how.machines.get(export)?.problem();
            how.problems.get(export).cloned().or_else(of_machine)
        };
        own.or_else(|| self.services.shown(export)?.health?.problem)
    }

    /// Who has exports.
    pub fn connections(&self) -> Connections {
        let connection = |c: nvme_target::Connected| Connection {
            host: c.host,
            controller: c.controller,
            queues: c.queues,
            address: c.way.host,
            local_address: c.way.local,
        };
        let mut hosts = BTreeMap::new();
        for (exports, connected) in self.target.connections() {
            let connected: Arc<[Connection]> = connected.into_iter().map(connection).collect();
            hosts.extend(exports.into_iter().map(|export| (export, connected.clone())));
        }
        Connections { hosts, clients: self.ledger.clients() }
    }
}

/// All of it.
pub struct Exports {
    data: Data,
    standing: Standing,
    lookups: Lookups,
    /// By address.
    listening: BTreeMap<String, Listening>,
    /// The next NVMe port's number.
    next_port: u16,
    /// By subsystem: the numbers that were given since the start, and to which volume.
    numbers: BTreeMap<String, BTreeMap<u32, Uuid>>,
}

impl Exports {
    /// Nothing is served yet.
    pub fn new(data: Data, standing: Standing) -> Self {
        let (listening, numbers) = Default::default();
        let lookups = Lookups::new();
        Self { data, standing, lookups, listening, next_port: 1, numbers }
    }

    /// Lookups of names of recorded exports that are not over.
    pub fn lookups(&self) -> Arc<UnderWay> {
        self.lookups.under_way()
    }

    /// Every export is served: what was looked up for it is out of date when one is not.
    pub fn forget_lookups(&mut self) {
        self.lookups.forget();
    }

    /// Whether an export is served now.
    pub fn serves(&self, export: &str) -> bool {
        self.standing.serves(export)
    }

    /// Whether any export that should be served is not, or not everywhere.
    pub fn has_problems(&self) -> bool {
        !self.standing.how().problems.is_empty()
    }

    /// Why an export is not served, or not everywhere.
    pub fn problem(&self, export: &str) -> Option<String> {
        self.standing.how().problems.get(export).cloned()
    }

    /// A volume was resized to so many bytes: hosts that have it over NVMe are told, and machines.
    pub fn resized(&self, volume: VolumeKey, bytes: u64) {
        self.data.target().resized(&volume);
        for socket in self.standing.how().machines.values() {
            socket.resized(&volume, bytes);
        }
    }

    /// Listens wherever an export is to be served, unless that is done already; answers with the
    /// real addresses. What was opened in vain is closed again.
    pub async fn listen(&mut self, address: &ExportAddress) -> Result<ExportAddress, Error> {
        let export = match address {
            ExportAddress::NvmeTcp(export) => export,
            other if other.is_others() => return Ok(address.clone()),
            ExportAddress::VhostUser(path) => return self.listen_machine(address, path).await,
            _ => return self.listen_nbd(address, Lookup::Now).await,
        };
        let mut listeners = Vec::new();
        for listener in &export.listeners {
            match self.listen_nvme(listener, Lookup::Now).await {
                Ok(real) => listeners.push(real),
                Err(error) => {
                    let opened = NvmeExport { listeners, ..export.clone() };
                    self.close_if_unused(&ExportAddress::NvmeTcp(opened)).await;
                    return Err(error);
                }
            }
        }
        Ok(ExportAddress::NvmeTcp(NvmeExport { listeners, ..export.clone() }))
    }

    /// As [`Exports::listen`], wherever that can be, such as on interfaces that are up already, and
    /// under names that are known already. An error comes beside the addresses that could be had,
    /// or in their place.
    async fn listen_where_possible(
        &mut self,
        address: &ExportAddress,
    ) -> Result<(ExportAddress, Result<(), Error>), Error> {
        if let ExportAddress::VhostUser(path) = address {
            return Ok((self.listen_machine(address, path).await?, Ok(())));
        }
        let ExportAddress::NvmeTcp(export) = address else {
            return Ok((self.listen_nbd(address, Lookup::Aside).await?, Ok(())));
        };
        let (mut listeners, mut failed) = (Vec::new(), Ok(()));
        for listener in &export.listeners {
            match self.listen_nvme(listener, Lookup::Aside).await {
                Ok(real) => listeners.push(real),
                Err(error) => failed = failed.and(Err(error)),
            }
        }
        if listeners.is_empty() {
            failed?;
            failed = Ok(());
        }
        Ok((ExportAddress::NvmeTcp(NvmeExport { listeners, ..export.clone() }), failed))
    }

    /// What `ADDR:PORT` stands for.
    async fn find(&mut self, text: &str, lookup: Lookup) -> Result<Vec<SocketAddr>, Error> {
        let found = match lookup {
            Lookup::Now => lookup::now(text).await,
            Lookup::Aside => self.lookups.find(text),
        };
        found.map_err(|error| Error::new(&say::ADDRESS_NOT_FOUND, &[&text, &error]))
    }

    async fn listen_nbd(
        &mut self,
        address: &ExportAddress,
        lookup: Lookup,
    ) -> Result<ExportAddress, Error> {
        let known = self.listening.get(&address::text(address));
        if known.is_some_and(|known| matches!(known.protocol, Protocol::Nbd(..))) {
            return Ok(address.clone());
        }
        let (listener, address) = match address {
            ExportAddress::NbdUnix(path) => address::listen_unix(path).await?,
            other => {
                let text = address::text(other);
                let at = self.find(&text, lookup).await?;
                let (listener, real, _) = address::listen_tcp(&text, &at).await?;
                (Bound::Tcp(listener), ExportAddress::NbdTcp(real))
            }
        };
        let table = Arc::<Table>::default();
        let (data, own) = (self.data.clone(), table.clone());
        let serve = move |fd, way| data.serve(fd, way, own.clone());
        let accepting = tokio::spawn(accept(listener, address::text(&address), serve));
        let protocol = Protocol::Nbd(address.clone(), table);
        self.listening.insert(address::text(&address), Listening { protocol, accepting });
        Ok(address)
    }

    async fn listen_machine(
        &mut self,
        address: &ExportAddress,
        path: &str,
    ) -> Result<ExportAddress, Error> {
        let key = address::text(address);
        if self.listening.contains_key(&key) {
            return Ok(address.clone());
        }
        let listener = address::listen_machine(path).await?;
        let socket = Socket::new(self.data.clone());
        let own = socket.clone();
        let serve = move |fd, _| own.came(fd);
        let accepting = tokio::spawn(accept(listener, key.clone(), serve));
        let protocol = Protocol::Machine(address.clone(), socket);
        self.listening.insert(key, Listening { protocol, accepting });
        Ok(address.clone())
    }

    async fn listen_nvme(&mut self, wanted: &Listener, lookup: Lookup) -> Result<Listener, Error> {
        if let Some(known) = self.listening.get(&wanted.address)
            && let Protocol::Nvme(_, port) = &known.protocol
        {
            let same = match &wanted.advertise {
                Some(other) => address::told(other) == (port.address.clone(), port.service),
                None => true,
            };
            return if same { Ok(wanted.clone()) } else { Err(told_otherwise(wanted, port)) };
        }
        let at = self.find(&wanted.address, lookup).await?;
        let (listener, address, bound) = address::listen_tcp(&wanted.address, &at).await?;
        let port = match &wanted.advertise {
            Some(other) => address::told(other),
            None => {
                let ip = bound.ip();
                ((!ip.is_unspecified()).then(|| ip.to_string()), bound.port())
            }
        };
        let port = Port { address: port.0, service: port.1 };
        let id = self.free_port();
        self.data.target().set_port(id, port.clone());
        let data = self.data.clone();
        let serve = move |fd, way: Option<Way>| {
            if let Some(way) = way {
                data.serve_nvme(fd, id, way);
            }
        };
        let accepting = tokio::spawn(accept(Bound::Tcp(listener), address.clone(), serve));
        let protocol = Protocol::Nvme(id, port);
        self.listening.insert(address.clone(), Listening { protocol, accepting });
        Ok(Listener { address, advertise: wanted.advertise.clone() })
    }

    /// A number that no port has.
    fn free_port(&mut self) -> PortId {
        let is_taken = |id: u16| {
            let mut all = self.listening.values().map(|listening| &listening.protocol);
            all.any(|protocol| matches!(protocol, Protocol::Nvme(other, _) if other.0 == id))
        };
        let mut id = self.next_port;
        while is_taken(id) {
            id = id.wrapping_add(1).max(1);
        }
        self.next_port = id.wrapping_add(1).max(1);
        PortId(id)
    }

    /// The number that a volume gets in a subsystem: the one it had, or one that none has had since
    /// the daemon started. A host may still have requests for what was there before.
    pub fn number(&self, subsystem: &str, volume: Uuid, recorded: &BTreeMap<u32, Uuid>) -> u32 {
        let none = BTreeMap::new();
        let given = self.numbers.get(subsystem).unwrap_or(&none);
        let own = given.iter().find(|(nsid, of)| **of == volume && !recorded.contains_key(nsid));
        if let Some((nsid, _)) = own {
            return *nsid;
        }
        let highest = given.keys().chain(recorded.keys()).max().copied().unwrap_or(0);
        if highest < nvme_target::limits::NAMESPACES {
            return highest + 1;
        }
        let is_free = |nsid: &u32| !recorded.contains_key(nsid);
        (1..).find(is_free).expect("numbers don't end")
    }

    /// Serves an export; listens for it where nobody does yet. Where it can't be served, that is an
    /// error; it is served at its other addresses all the same.
    pub async fn add(
        &mut self,
        name: &str,
        (target, device): (Target, Config),
        address: &ExportAddress,
    ) -> Result<(), Error> {
        let export = target.export.clone();
        let outcome = self.add_to_listeners(name, (target, device), address).await;
        match &outcome {
            Ok(()) => self.standing.how().problems.remove(&export),
            Err(error) => self.standing.how().problems.insert(export, error.error.clone()),
        };
        outcome
    }

    async fn add_to_listeners(
        &mut self,
        name: &str,
        (target, device): (Target, Config),
        address: &ExportAddress,
    ) -> Result<(), Error> {
        let (address, elsewhere) = self.listen_where_possible(address).await?;
        let keys = address::keys(&address);
        let export = target.export.clone();
        if self.standing.how().served.get(&export) == Some(&keys) {
            // Tried again, and there is nothing new to tell hosts.
            return elsewhere;
        }
        let outcome = match &address {
            ExportAddress::NvmeTcp(nvme) => self.add_namespace(&target, nvme),
            ExportAddress::NbdTcp(_) | ExportAddress::NbdUnix(_) => {
                self.add_to_table(name, target, &keys[0])
            }
            ExportAddress::VhostUser(_) => self.add_to_socket(target, device, &keys[0]),
            // They are others'.
            ExportAddress::Device
            | ExportAddress::File(_)
            | ExportAddress::Ublk
            | ExportAddress::Iscsi(_)
            | ExportAddress::Fc(_)
            | ExportAddress::NvmeFc(_)
            | ExportAddress::Shares(_) => return Ok(()),
        };
        match outcome {
            Ok(()) => self.standing.how().served.insert(export, keys),
            Err(error) => {
                self.close_if_unused(&address).await;
                return Err(error);
            }
        };
        elsewhere
    }

    fn add_to_table(&self, name: &str, target: Target, key: &str) -> Result<(), Error> {
        let taken = || Error::new(&say::EXPORT_NAME_TAKEN, &[&name, &key]);
        match &self.listening[key].protocol {
            Protocol::Nbd(_, table) => {
                self.data.ledger().know_export(&target.export);
                if table.add(name, target) { Ok(()) } else { Err(taken()) }
            }
            Protocol::Nvme(..) | Protocol::Machine(..) => Err(taken()),
        }
    }

    fn add_to_socket(&self, target: Target, device: Config, key: &str) -> Result<(), Error> {
        let export = target.export.clone();
        match &self.listening[key].protocol {
            Protocol::Machine(_, socket) if socket.set(target, device) => {
                self.standing.how().machines.insert(export, socket.clone());
                Ok(())
            }
            _ => Err(Error::new(&say::EXPORT_NAME_TAKEN, &[&export, &key])),
        }
    }

    fn add_namespace(&mut self, target: &Target, nvme: &NvmeExport) -> Result<(), Error> {
        let given = self.numbers.entry(nvme.subsystem.clone()).or_default();
        given.insert(nvme.nsid, target.volume);
        let port = |listener: &Listener| match self.listening[&listener.address].protocol {
            Protocol::Nvme(id, _) => Some(id),
            Protocol::Nbd(..) | Protocol::Machine(..) => None,
        };
        let export = Export {
            subsystem: address::nqn(&nvme.subsystem)?,
            nsid: nvme.nsid,
            volume: VolumeKey { array: target.array, volume: target.volume },
            nguid: target.volume.0,
            uuid: target.volume.0,
            ports: nvme.listeners.iter().filter_map(port).collect(),
            hosts: hosts(nvme)?,
            group: Group::FIRST,
        };
        self.data.target().add(&target.export, export).map_err(|why| refused(why, nvme))
    }

    /// Ends an export: its connections, and every listener whose last it was.
    pub async fn remove(&mut self, export: &str) {
        if self.standing.services.forget(export) {
            return;
        }
        self.data.target().remove(export);
        self.close(export).await;
        self.data.ledger().forget_exports(|other| other == export);
    }

    /// As [`Exports::remove`], of an export that may come back: hosts that ask for it go on asking.
    /// Whether hosts have it: not the server itself, which knows by itself that it is suspended.
    pub async fn suspend(&mut self, export: &str) -> bool {
        let is_hosts = !self.standing.services.suspend(export);
        if is_hosts {
            self.data.target().suspend(export);
            self.close(export).await;
        }
        is_hosts
    }

    /// The same of an array that runs; `why` it is not served.
    pub async fn suspend_as(&mut self, export: &str, why: &str) {
        if self.suspend(export).await {
            self.standing.how().problems.insert(export.to_owned(), why.to_owned());
        }
    }

    /// An export that was suspended is known as one that may come, or does not come back.
    pub fn forget(&self, export: &str) {
        self.data.target().forget(export);
    }

    /// Says which exports may come, those of arrays that don't run: hosts that ask for them go on
    /// asking.
    pub fn set_absent<'a>(&self, all: impl Iterator<Item = &'a ExportAddress>) {
        let known = |address: &ExportAddress| {
            let ExportAddress::NvmeTcp(nvme) = address else { return None };
            // What can't be served can't come.
            let subsystem = address::nqn(&nvme.subsystem).ok()?;
            Some(Absent { subsystem, nsid: nvme.nsid, hosts: hosts(nvme).ok()? })
        };
        self.data.target().set_absent(all.filter_map(known));
    }

    async fn close(&mut self, export: &str) {
        let keys = {
            let mut how = self.standing.how();
            how.problems.remove(export);
            how.machines.remove(export);
            how.served.remove(export)
        };
        let Some(keys) = keys else { return };
        for key in keys {
            let protocol = self.listening.get(&key).map(|listening| &listening.protocol);
            if let Some(Protocol::Nbd(_, table)) = protocol {
                let table = table.clone();
                table.remove(export);
                self.data.end_connections(&table, Some(export)).await;
            }
            self.close_key_if_unused(&key).await;
        }
    }

    /// Closes the listeners of an address that serve nothing.
    pub async fn close_if_unused(&mut self, address: &ExportAddress) {
        for key in address::keys(address) {
            self.close_key_if_unused(&key).await;
        }
    }

    async fn close_key_if_unused(&mut self, key: &str) {
        if self.standing.how().served.values().flatten().any(|used| used == key) {
            return;
        }
        let Some(listening) = self.listening.remove(key) else { return };
        listening.accepting.abort();
        // Joined, so that the address is free again; it ends as cancelled, which is no error.
        let _ = listening.accepting.await;
        match listening.protocol {
            Protocol::Nbd(address, table) => {
                if let ExportAddress::NbdUnix(path) = &address {
                    // Someone may have removed it before.
                    let _ = std::fs::remove_file(path);
                }
                self.data.end_connections(&table, None).await;
            }
            Protocol::Nvme(id, _) => self.data.target().remove_port(id),
            Protocol::Machine(address, socket) => {
                if let ExportAddress::VhostUser(path) = &address {
                    // Someone may have removed it before.
                    let _ = std::fs::remove_file(path);
                }
                // Who wants that waited for has waited before ([`Standing::end_machines`]).
                tokio::spawn(async move { socket.end().await });
            }
        }
    }
}

/// Who may have an export.
fn hosts(nvme: &NvmeExport) -> Result<Hosts, Error> {
    let Some(names) = &nvme.hosts else { return Ok(Hosts::Any) };
    let names = names.iter().map(|name| address::nqn(name));
    Ok(Hosts::Only(names.collect::<Result<BTreeSet<Nqn>, Error>>()?))
}

/// Whether the target could take an export, before it is recorded.
pub fn check(nvme: &NvmeExport) -> Result<(), Error> {
    if nvme.subsystem == ::nvme::nqn::DISCOVERY {
        return Err(refused(Refused::DiscoveryName, nvme));
    }
    if nvme.nsid > nvme_target::limits::NAMESPACES {
        return Err(refused(Refused::NamespaceNumber, nvme));
    }
    Ok(())
}

/// Why the target refuses an export.
pub(crate) fn refused(why: Refused, nvme: &NvmeExport) -> Error {
    let NvmeExport { subsystem, nsid, .. } = nvme;
    match why {
        Refused::NamespaceTaken => Error::new(&say::NAMESPACE_TAKEN, &[subsystem, nsid]),
        Refused::NamespaceNumber => Error::new(&say::NAMESPACE_NUMBER, &[subsystem, nsid]),
        Refused::DiscoveryName => Error::new(&say::DISCOVERY_NQN, &[subsystem]),
    }
}

fn told_otherwise(wanted: &Listener, port: &Port) -> Error {
    let Port { address, service } = port;
    let address = address.as_deref().unwrap_or("its own address");
    Error::new(&say::ADVERTISED_OTHERWISE, &[&wanted.address, &address, service])
}

/// Hands connections to the data cores until it is aborted. Failures are said, but not more
/// often than every [`QUIET`].
async fn accept(
    listener: Bound,
    address: String,
    serve: impl Fn(OwnedFd, Option<Way>) + Send + 'static,
) {
    let mut said: Option<Instant> = None;
    loop {
        match accept_one(&listener).await {
            Ok((fd, way)) => serve(fd, way),
            Err(error) => {
                if said.is_none_or(|then| then.elapsed() >= QUIET) {
                    said = Some(Instant::now());
                    runtime::say(format_args!(
                        "palisade: connections to {address} can't be accepted: {error}\n  \
                         close other connections, or raise the limit of open files (ulimit -n)"
                    ));
                }
                tokio::time::sleep(REST).await;
            }
        }
    }
}

/// A connection, and how it came over the network.
async fn accept_one(listener: &Bound) -> std::io::Result<(OwnedFd, Option<Way>)> {
    match listener {
        Bound::Tcp(listener) => {
            let (stream, peer) = listener.accept().await?;
            let text = |address: SocketAddr| address.ip().to_canonical().to_string();
            let local = stream.local_addr().ok();
            let way = local.map(|local| Way { host: text(peer), local: text(local) });
            Ok((stream.into_std()?.into(), way))
        }
        Bound::Unix(listener) => Ok((listener.accept().await?.0.into_std()?.into(), None)),
    }
}
