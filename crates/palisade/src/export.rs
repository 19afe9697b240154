//! `palisade export`: manages exports.

use crate::client::Client;
use crate::output::{Output, Problem, state, table};
use crate::volume::Name;
use clap::Subcommand;
use control::api::{self, Answer};

/// What can be done with exports.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Export a volume to hosts
    Create {
        /// Volume, as ARRAY/VOLUME
        name: Name,
        #[command(flatten)]
        how: How,
        #[command(flatten)]
        output: Output,
    },
    /// Show an export and the hosts that are connected
    Show {
        /// ID of the export, as shown by `palisade export list`
        id: String,
        #[command(flatten)]
        output: Output,
    },
    /// List exports
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Delete an export; its hosts are disconnected
    Delete {
        /// ID of the export, as shown by `palisade export list`
        id: String,
        #[command(flatten)]
        output: Output,
    },
}

/// How a volume is served.
#[derive(Debug, clap::Args)]
pub struct How {
    /// Listen for NBD at ADDR:PORT (port 0: any free port) or unix:PATH
    #[arg(long, value_name = "ADDR:PORT|unix:PATH", required_unless_present = "nvme_tcp")]
    nbd: Option<String>,
    /// Listen for NVMe/TCP at ADDR:PORT (port 0: any free port); may be repeated
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "nbd")]
    nvme_tcp: Vec<String>,
    /// NVMe: NQN of the subsystem [default: one for this volume]
    #[arg(long, value_name = "NQN", conflicts_with = "nbd")]
    subsystem: Option<String>,
    /// NVMe: NQN of a host that may connect; may be repeated
    #[arg(long, value_name = "NQN", conflicts_with = "nbd")]
    host: Vec<String>,
    /// NVMe: let any host connect
    #[arg(long, conflicts_with_all = ["nbd", "host"])]
    any_host: bool,
    /// NVMe: address that hosts are told behind address translation, one for each --nvme-tcp
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "nbd")]
    advertise: Vec<String>,
}

impl How {
    fn request(&self, Name { array, volume }: Name) -> api::CreateExport {
        api::CreateExport {
            array,
            volume,
            nbd: self.nbd.as_deref().map(absolute),
            nvme_tcp: self.nvme_tcp.clone(),
            subsystem: self.subsystem.clone(),
            hosts: self.host.clone(),
            any_host: self.any_host,
            advertise: self.advertise.clone(),
        }
    }
}

/// Carries a command out.
pub async fn run(command: &Command, client: &Client) -> Result<(), Problem> {
    match command {
        Command::Create { name, how, output } => {
            let request = how.request(name.clone());
            let answer = client.post(&["exports"], &request).await?;
            output.print(&answer, |export: &api::Export| exports(core::slice::from_ref(export)));
        }
        Command::List { output } => {
            let answer: Answer<api::ExportList> = client.get(&["exports"]).await?;
            output.print(&answer, |list| exports(&list.exports));
        }
        Command::Show { id, output } => {
            let answer: Answer<api::Export> = client.get(&["exports", id]).await?;
            output.print(&answer, detail);
        }
        Command::Delete { id, output } => {
            let answer = client.delete(&["exports", id]).await?;
            output.print(&answer, |_: &api::Done| format!("export {id} is deleted"));
        }
    }
    Ok(())
}

/// A socket's path counts from here, not from where the daemon is.
fn absolute(nbd: &str) -> String {
    match nbd.strip_prefix("unix:").map(std::path::absolute) {
        Some(Ok(path)) => format!("unix:{}", path.display()),
        _ => nbd.to_owned(),
    }
}

/// All about an export.
fn detail(export: &api::Export) -> String {
    let mut text = exports(core::slice::from_ref(export));
    let Some(nvme) = &export.nvme else { return text };
    let mut line = |what: &str, value: String| text += &format!("\n{what:<12}{value}");
    line("subsystem", nvme.subsystem.clone());
    line("namespace", format!("{}, NGUID {}, UUID {}", nvme.nsid, nvme.nguid, nvme.uuid));
    line("listens at", nvme.listeners.join(", "));
    if !nvme.advertise.is_empty() {
        line("hosts told", nvme.advertise.join(", "));
    }
    line("hosts", if nvme.any_host { "any".into() } else { nvme.hosts.join(", ") });
    for c in &nvme.connections {
        let host = if c.host.is_empty() { "a host without a name" } else { &c.host };
        line("connected", format!("{host}, controller {}, {} queues", c.controller, c.queues));
    }
    text
}

/// A table of exports.
pub fn exports(exports: &[api::Export]) -> String {
    let row = |e: &api::Export| {
        let serving = state(&if e.serving { "yes" } else { "no" });
        let problem = e.problem.clone().unwrap_or_default();
        vec![e.id.clone(), format!("{}/{}", e.array, e.volume), serving, e.uri.clone(), problem]
    };
    let rows: Vec<_> = exports.iter().map(row).collect();
    table(&["ID", "VOLUME", "SERVED", "URI", ""], &rows)
}
