//! `palisade port`: the machine's Fibre Channel ports.

use crate::client::Client;
use crate::fetch::{self, Part};
use crate::output::{Output, Problem, table};
use clap::Subcommand;
use redfish::view::{Answer, Export, FcPort};
use serde::Serialize;

/// What can be done with ports.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the Fibre Channel ports of the daemon's machine
    List {
        #[command(flatten)]
        output: Output,
    },
}

/// The ports, with the exports at each.
#[derive(Debug, Serialize)]
struct Ports {
    ports: Vec<Port>,
}

/// A port.
#[derive(Debug, Serialize)]
struct Port {
    #[serde(flatten)]
    port: FcPort,
    /// IDs of the exports at it.
    exports: Vec<String>,
}

/// Carries a command out.
pub async fn run(command: &Command, client: &Client) -> Result<(), Problem> {
    let Command::List { output } = command;
    let ports = fetch::ports(client).await?;
    let arrays = fetch::arrays(client, &[Part::Exports]).await?;
    let exports: Vec<Export> = arrays.into_iter().flat_map(|array| array.exports).collect();
    let with = |port: FcPort| {
        let is_at = |export: &&Export| export.fc.as_ref().is_some_and(|fc| fc.port == port.name);
        let exports = exports.iter().filter(is_at).map(|export| export.id.clone()).collect();
        Port { port, exports }
    };
    let ports = ports.into_iter().map(with).collect();
    output.print(&Answer::new(Ports { ports }), |own| listed(&own.ports));
    Ok(())
}

fn listed(ports: &[Port]) -> String {
    if ports.is_empty() {
        return "the machine has no Fibre Channel port, or no driver for it is loaded".to_owned();
    }
    let row = |own: &Port| {
        let FcPort { name, driver, state, speed } = own.port.clone();
        vec![name, driver, state, speed, own.exports.join(", ")]
    };
    let rows: Vec<_> = ports.iter().map(row).collect();
    table(&["WWPN", "DRIVER", "STATE", "SPEED", "EXPORTS"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_listed_with_what_is_at_them() {
        let text = |text: &str| text.to_owned();
        let (name, driver) = (text("20:00:00:25:b5:00:00:1f"), text("qla2xxx"));
        let port = FcPort { name, driver, state: text("Online"), speed: text("32 Gbit") };
        let own = Port { port, exports: vec![text("tank:1"), text("tank:2")] };
        let json = serde_json::to_value(&own).expect("encodes");
        assert_eq!(json["wwpn"], "20:00:00:25:b5:00:00:1f");
        assert!(listed(&[own]).contains("32 Gbit"), "{json}");
        assert!(listed(&[]).contains("no Fibre Channel port"));
    }
}
