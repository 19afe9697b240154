//! `palisade export`: serving volumes.

use crate::client::Client;
use crate::output::{Output, Problem, state, table};
use crate::volume::Name;
use clap::Subcommand;
use control::api::{self, Answer};

/// What can be done with exports.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a volume
    Create {
        /// ARRAY/VOLUME
        name: Name,
        /// Over NBD at ADDR:PORT (port 0: any free one) or unix:PATH
        #[arg(long, value_name = "ADDR:PORT|unix:PATH")]
        nbd: String,
        #[command(flatten)]
        output: Output,
    },
    /// List all exports
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Stop serving; clients are disconnected
    Delete {
        /// As `export list` shows it
        id: String,
        #[command(flatten)]
        output: Output,
    },
}

/// Carries a command out.
pub async fn run(command: &Command, client: &Client) -> Result<(), Problem> {
    match command {
        Command::Create { name, nbd, output } => {
            let Name { array, volume } = name.clone();
            let request = api::CreateExport { array, volume, nbd: absolute(nbd) };
            let answer = client.post(&["exports"], &request).await?;
            output.print(&answer, |export: &api::Export| exports(core::slice::from_ref(export)));
        }
        Command::List { output } => {
            let answer: Answer<api::ExportList> = client.get(&["exports"]).await?;
            output.print(&answer, |list| exports(&list.exports));
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
