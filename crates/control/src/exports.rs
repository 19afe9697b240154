//! What is served where: listeners, and the exports behind each.
//!
//! States of a listener: opened for a first export → accepting → closed with its last export,
//! and its connections with it. Several exports may share an address.
//!
//! Invariant: every export is in the table of at most one listener; a listener without exports
//! does not outlive the call that emptied it.

use crate::address::{self, Listener};
use crate::api::Error;
use crate::connection::{Table, Target};
use crate::data::Data;
use format::ExportAddress;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// How long accepting rests after an error, such as too many open files.
const REST: Duration = Duration::from_millis(100);

/// How often it is said again that clients can't be accepted.
const QUIET: Duration = Duration::from_secs(60);

struct Listening {
    address: ExportAddress,
    table: Arc<Table>,
    accepting: JoinHandle<()>,
}

/// All of it.
pub struct Exports {
    data: Data,
    /// By address.
    listening: BTreeMap<String, Listening>,
    /// By export: its address.
    served: BTreeMap<String, String>,
    /// By export: why it is not served.
    problems: BTreeMap<String, String>,
}

impl Exports {
    /// Nothing is served yet.
    pub fn new(data: Data) -> Self {
        let (listening, served, problems) = Default::default();
        Self { data, listening, served, problems }
    }

    /// Whether an export is served now.
    pub fn serves(&self, export: &str) -> bool {
        self.served.contains_key(export)
    }

    /// Whether any export that should be served is not.
    pub fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Why an export is not served.
    pub fn problem(&self, export: &str) -> Option<&String> {
        self.problems.get(export)
    }

    /// Listens on an address, unless that is done already; answers with the real address.
    pub async fn listen(&mut self, address: &ExportAddress) -> Result<ExportAddress, Error> {
        if self.listening.contains_key(&address::text(address)) {
            return Ok(address.clone());
        }
        let (listener, address) = address::listen(address).await?;
        let table = Arc::<Table>::default();
        let accepting = tokio::spawn(accept(
            listener,
            address::text(&address),
            self.data.clone(),
            table.clone(),
        ));
        let listening = Listening { address: address.clone(), table, accepting };
        self.listening.insert(address::text(&address), listening);
        Ok(address)
    }

    /// Serves an export; listens for it if nobody does yet.
    pub async fn add(
        &mut self,
        name: &str,
        target: Target,
        address: &ExportAddress,
    ) -> Result<(), Error> {
        let export = target.export.clone();
        let outcome = self.add_to_table(name, target, address).await;
        match &outcome {
            Ok(()) => self.problems.remove(&export),
            Err(error) => self.problems.insert(export, error.error.clone()),
        };
        outcome
    }

    async fn add_to_table(
        &mut self,
        name: &str,
        target: Target,
        address: &ExportAddress,
    ) -> Result<(), Error> {
        let key = address::text(&self.listen(address).await?);
        let export = target.export.clone();
        if !self.listening[&key].table.add(name, target) {
            return Err(Error::failed(
                format!("{name} is exported at {key} already"),
                "see the exports with: palisade export list",
            ));
        }
        self.served.insert(export, key);
        Ok(())
    }

    /// Ends an export: its connections, and the listener if it was the last there.
    pub async fn remove(&mut self, export: &str) {
        self.problems.remove(export);
        let Some(key) = self.served.remove(export) else { return };
        let table = self.listening[&key].table.clone();
        table.remove(export);
        self.data.end_connections(&table, Some(export)).await;
        self.close_if_unused(&key).await;
    }

    /// Closes a listener that serves nothing.
    pub async fn close_if_unused(&mut self, key: &str) {
        if self.served.values().any(|used| used == key) {
            return;
        }
        let Some(listening) = self.listening.remove(key) else { return };
        listening.accepting.abort();
        // Joined, so that the address is free again; it ends as cancelled, which is no error.
        let _ = listening.accepting.await;
        if let ExportAddress::NbdUnix(path) = &listening.address {
            // Someone may have removed it before.
            let _ = std::fs::remove_file(path);
        }
        self.data.end_connections(&listening.table, None).await;
    }
}

/// Hands connections to the data cores until it is aborted. Failures are said, but not more
/// often than every [`QUIET`].
async fn accept(listener: Listener, address: String, data: Data, table: Arc<Table>) {
    let mut said: Option<Instant> = None;
    loop {
        match accept_one(&listener).await {
            Ok(fd) => data.serve(fd, table.clone()),
            Err(error) => {
                if said.is_none_or(|then| then.elapsed() >= QUIET) {
                    said = Some(Instant::now());
                    eprintln!(
                        "palisade: clients of {address} can't be accepted: {error}\n  \
                         end other connections, or raise the limit of open files (ulimit -n)"
                    );
                }
                tokio::time::sleep(REST).await;
            }
        }
    }
}

async fn accept_one(listener: &Listener) -> std::io::Result<OwnedFd> {
    match listener {
        Listener::Tcp(listener) => Ok(listener.accept().await?.0.into_std()?.into()),
        Listener::Unix(listener) => Ok(listener.accept().await?.0.into_std()?.into()),
    }
}
