//! `palisade alert`: what is wrong, who has seen it, and who is told of it.
//!
//! - [`mail`]: how alerts are mailed.

mod mail;

use crate::array::DONE;
use crate::client::{self, Change, Client};
use crate::confirm;
use crate::output::{How, Output, Problem, health, printable, table};
use clap::Subcommand;
use redfish::messages;
use redfish::service::uri;
use redfish::view::{Alert, Alerts, Answer};
use redfish::{dates, read, told};
use serde::Serialize;
use serde_json::json;
use std::process::ExitCode;

/// What can be done with alerts.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List what is wrong now, the gravest first
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Acknowledge an alert: it is not told again until it is graver, or over
    Ack {
        /// Its identifier
        id: String,
        #[command(flatten)]
        how: How,
    },
    /// Send a test to all who are told of alerts, and say what came of each; exits with 1 if one
    /// was not reached
    Test {
        #[command(flatten)]
        output: Output,
    },
    /// Show how alerts are mailed, and to whom; with options, say it
    Mail(mail::Mail),
}

/// Who was told of a test.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Tested {
    recipients: Vec<TestedOne>,
}

/// What came of a test.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct TestedOne {
    destination: String,
    delivered: bool,
    problem: Option<String>,
}

/// Carries a command out.
pub async fn run(command: &Command, client: &Client) -> Result<ExitCode, Problem> {
    match command {
        Command::List { output } => {
            let alerts = read::alerts(&client.get(uri::SERVICE_CONDITIONS).await?)?;
            output.print(&Answer::new(Alerts { alerts }), |all| text(&all.alerts));
        }
        Command::Ack { id, how } => {
            let body = json!({ "Id": id });
            let change = Change::post(action("Acknowledge"), body);
            if confirm::change(&change, *how, client).await?.is_some() {
                how.output.print(&DONE, |_| format!("alert {} is acknowledged", printable(id)));
            }
        }
        Command::Test { output } => test(*output, client).await?,
        Command::Mail(mail) => mail.carry_out(client).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The URI of an action on alerts.
fn action(name: &str) -> String {
    format!("{}/Actions/Oem/PalisadeServiceConditions.{name}", uri::SERVICE_CONDITIONS)
}

async fn test(output: Output, client: &Client) -> Result<(), Problem> {
    let told = client.post(&action("Test"), &json!({})).await?;
    let told::Tested { recipients } = client::read(told)?;
    let one = |own: told::TestedOne| {
        let told::TestedOne { destination, delivered, problem } = own;
        TestedOne { destination, delivered, problem }
    };
    let recipients: Vec<TestedOne> = recipients.into_iter().map(one).collect();
    let missed = recipients.iter().filter(|own| !own.delivered).count();
    output.print(&Answer::new(Tested { recipients }), |all| tested(&all.recipients));
    match missed {
        0 => Ok(()),
        missed => Err(Problem::new(&messages::TEST_NOT_DELIVERED, &[&missed])),
    }
}

/// A table of what came of a test.
fn tested(all: &[TestedOne]) -> String {
    if all.is_empty() {
        return "nobody is told of alerts: see palisade alert mail --help".to_owned();
    }
    let row = |own: &TestedOne| {
        let result = match (&own.problem, own.delivered) {
            (_, true) => "delivered".to_owned(),
            (Some(problem), false) => printable(problem),
            (None, false) => "not delivered".to_owned(),
        };
        vec![printable(&own.destination), result]
    };
    table(&["TO", "RESULT"], &all.iter().map(row).collect::<Vec<_>>())
}

/// A table of alerts, each with what to do.
fn text(alerts: &[Alert]) -> String {
    if alerts.is_empty() {
        return "no alerts".to_owned();
    }
    let row = |own: &Alert| {
        let seen = own.acknowledged.as_ref().map_or_else(String::new, |(_, who)| printable(who));
        let (since, what) = (dates::text(own.raised), printable(&own.what));
        vec![printable(&own.id), since, health(own.severity), seen, what]
    };
    let rows: Vec<_> = alerts.iter().map(row).collect();
    let mut text = table(&["ID", "SINCE", "SEVERITY", "SEEN BY", "WHAT"], &rows);
    text.push_str("\nwhat to do:\n");
    for own in alerts {
        text.push_str(&format!("  {}: {}\n", printable(&own.id), printable(&own.action)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use redfish::view::Health;

    fn alert(id: &str, acknowledged: Option<(u64, String)>) -> Alert {
        Alert {
            id: id.to_owned(),
            message: "ArrayDegraded".to_owned(),
            args: vec!["tank".to_owned()],
            severity: Health::Warning,
            what: "array tank is degraded".to_owned(),
            action: "replace what failed".to_owned(),
            of: "/redfish/v1/x".to_owned(),
            name: "tank".to_owned(),
            raised: 60,
            acknowledged,
        }
    }

    #[test]
    fn alerts_have_these_keys() {
        let alerts = vec![alert("7", Some((120, "ana".to_owned())))];
        let told = serde_json::to_value(Answer::new(Alerts { alerts })).expect("JSON");
        let own = json!({
            "id": "7", "message": "ArrayDegraded", "severity": "warning",
            "what": "array tank is degraded", "do": "replace what failed", "of": "/redfish/v1/x",
            "name": "tank", "raised": 60, "acknowledged": [120, "ana"],
        });
        assert_eq!(told, json!({ "schema": 1, "alerts": [own] }));
    }

    #[test]
    fn a_table_of_alerts_says_what_to_do() {
        assert_eq!(text(&[]), "no alerts");
        let told = text(&[alert("7", Some((120, "ana".to_owned()))), alert("8", None)]);
        assert!(told.contains("7   1970-01-01T00:01:00Z  warning   ana"), "{told}");
        assert!(told.ends_with("  7: replace what failed\n  8: replace what failed\n"), "{told}");
    }
}
