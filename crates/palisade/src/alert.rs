//! `palisade alert`: what is wrong, who has seen it, and who is told of it.
//!
//! A mail server's password is read from the standard input. It is never an argument.

use crate::array::DONE;
use crate::client::{self, Change, Client};
use crate::confirm;
use crate::event;
use crate::output::{How, Output, Problem, printable, severity, table};
use crate::secret;
use clap::{Subcommand, ValueEnum};
use redfish::events::smtp;
use redfish::messages::{self, Severity};
use redfish::service::uri;
use redfish::view::{Alert, Alerts, Answer, Health};
use redfish::{dates, read, told};
use serde::Serialize;
use serde_json::{Map, Value, json};
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
    /// Say how alerts are mailed, and to whom
    Mail(Mail),
}

/// How alerts are mailed.
#[derive(Debug, clap::Args)]
pub struct Mail {
    /// The mail server: a name or an address, with a port if it is not the usual one
    #[arg(long, value_name = "HOST[:PORT]", value_parser = server)]
    server: Option<(String, Option<u16>)>,
    /// The sender's address
    #[arg(long, value_name = "ADDRESS")]
    from: Option<String>,
    /// How the connection is protected
    #[arg(long, value_enum)]
    tls: Option<Protected>,
    /// Log in as this user; read the password from the standard input
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Tell this recipient, too, of alerts of this severity or graver; may be repeated
    #[arg(long, value_name = "ADDRESS[:SEVERITY]", value_parser = recipient)]
    to: Vec<(String, Severity)>,
    /// Send no mail
    #[arg(long, conflicts_with_all = ["server", "to"])]
    off: bool,
    #[command(flatten)]
    how: How,
}

/// How a connection to a mail server is protected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Protected {
    /// TLS that begins with a command, usually at port 587
    Starttls,
    /// TLS from the beginning, usually at port 465
    Tls,
    /// None: passwords and mails can be read on the way
    None,
}

/// Reads a server with or without a port; an IPv6 address with a port stands in brackets.
fn server(text: &str) -> Result<(String, Option<u16>), String> {
    let wrong = || "use HOST, HOST:PORT or [IPV6-ADDRESS]:PORT".to_owned();
    let number = |port: &str| port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong);
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or_else(wrong)?;
            (host, rest.strip_prefix(':').map(number).transpose()?)
        }
        None => match text.split_once(':') {
            Some((host, port)) if !port.contains(':') => (host, Some(number(port)?)),
            _ => (text, None),
        },
    };
    if smtp::is_server(host) { Ok((host.to_owned(), port)) } else { Err(wrong()) }
}

/// Reads a recipient with or without a severity.
fn recipient(text: &str) -> Result<(String, Severity), String> {
    let (address, least) = text.rsplit_once(':').unwrap_or((text, "warning"));
    let least = Severity::of(least).ok_or("the severity is warning or critical")?;
    match smtp::is_address(address) {
        true => Ok((address.to_owned(), least)),
        false => Err("use an address such as ana@example.org".to_owned()),
    }
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

/// The word of a health.
fn word(health: Health) -> String {
    severity(match health {
        Health::Ok => event::Severity::Ok,
        Health::Warning => event::Severity::Warning,
        Health::Critical => event::Severity::Critical,
    })
}

/// A table of alerts, each with what to do.
fn text(alerts: &[Alert]) -> String {
    if alerts.is_empty() {
        return "no alerts".to_owned();
    }
    let row = |own: &Alert| {
        let seen = own.acknowledged.as_ref().map_or_else(String::new, |(_, who)| printable(who));
        let (since, what) = (dates::text(own.raised), printable(&own.what));
        vec![printable(&own.id), since, word(own.severity), seen, what]
    };
    let rows: Vec<_> = alerts.iter().map(row).collect();
    let mut text = table(&["ID", "SINCE", "SEVERITY", "SEEN BY", "WHAT"], &rows);
    text.push_str("\nwhat to do:\n");
    for own in alerts {
        text.push_str(&format!("  {}: {}\n", printable(&own.id), printable(&own.action)));
    }
    text
}

impl Mail {
    /// What the service is to have otherwise.
    fn smtp(&self) -> Result<Map<String, Value>, Problem> {
        let mut own = Map::new();
        let mut put = |name: &str, value: Value| {
            own.insert(name.to_owned(), value);
        };
        if let Some((host, port)) = &self.server {
            put("ServiceEnabled", json!(true));
            put("ServerAddress", json!(host));
            if let Some(port) = port {
                put("Port", json!(port));
            }
        }
        if self.off {
            put("ServiceEnabled", json!(false));
        }
        if let Some(from) = &self.from {
            put("FromAddress", json!(from));
        }
        if let Some(tls) = self.tls {
            let word = match tls {
                Protected::Starttls => smtp::Protocol::StartTLS,
                Protected::Tls => smtp::Protocol::TlsSsl,
                Protected::None => smtp::Protocol::None,
            };
            put("ConnectionProtocol", json!(word.word()));
        }
        if let Some(user) = &self.user {
            put("Authentication", json!(smtp::Authentication::AutoDetect.word()));
            put("Username", json!(user));
            // None is needed to plan.
            let password = if self.how.dry_run { String::new() } else { secret::from_stdin()? };
            put("Password", json!(password));
        }
        Ok(own)
    }

    async fn carry_out(&self, client: &Client) -> Result<(), Problem> {
        let own = self.smtp()?;
        let mut changes = Vec::new();
        if !own.is_empty() {
            changes.push(Change::patch(uri::EVENT_SERVICE, json!({ "SMTP": own })));
        }
        for (address, least) in &self.to {
            let severities = Severity::ALL.into_iter().filter(|own| own >= least);
            changes.push(Change::post(
                uri::SUBSCRIPTIONS,
                json!({
                    "Destination": format!("mailto:{address}"),
                    "Protocol": "SMTP",
                    "Severities": severities.map(Severity::word).collect::<Vec<_>>(),
                }),
            ));
        }
        for change in &changes {
            confirm::change(change, self.how, client).await?;
        }
        if !self.how.dry_run {
            self.how.output.print(&DONE, |_| "try it with: palisade alert test".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn servers_and_recipients_are_read() {
        let host = |host: &str, port| Ok((host.to_owned(), port));
        assert_eq!(server("mail.example"), host("mail.example", None));
        assert_eq!(server("mail.example:25"), host("mail.example", Some(25)));
        assert_eq!(server("[::1]:25"), host("::1", Some(25)));
        assert_eq!(server("::1"), host("::1", None));
        for wrong in ["", "a b", "mail:0", "mail:x", "[::1", "mail:70000"] {
            assert!(server(wrong).is_err(), "{wrong}");
        }
        let to = |least| Ok(("ana@example.org".to_owned(), least));
        assert_eq!(recipient("ana@example.org"), to(Severity::Warning));
        assert_eq!(recipient("ana@example.org:critical"), to(Severity::Critical));
        assert!(recipient("ana").is_err() && recipient("ana@example.org:loud").is_err());
    }
}
