//! `palisade alert mail`: how alerts are mailed, and to whom.
//!
//! A mail server's password is read from the standard input. It is never an argument.
//!
//! A recipient is a subscription, which keeps the severities that it was made with: a recipient who
//! is to be told of others gets a new one, and then loses the old one. So there is no moment in
//! which nobody is told.

use crate::array::DONE;
use crate::client::{Change, Client};
use crate::confirm;
use crate::fetch;
use crate::output::{How, Problem, printable, table};
use crate::secret;
use clap::ValueEnum;
use redfish::events::smtp;
use redfish::messages::{self, Severity};
use redfish::service::uri;
use redfish::view::Answer;
use redfish::{oem, read};
use serde::Serialize;
use serde_json::{Map, Value, json};

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
    /// Tell this recipient, too, of alerts of this severity or graver (warning, if none is given);
    /// one who is told already is told of these from now on; may be repeated
    #[arg(long, value_name = "ADDRESS[:SEVERITY]", value_parser = recipient)]
    to: Vec<(String, Severity)>,
    /// Tell this recipient no more; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    remove: Vec<String>,
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

/// How alerts are mailed, as it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Told {
    mail: Way,
    recipients: Vec<Recipient>,
}

/// How mail is sent. A password is never told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Way {
    enabled: bool,
    server: Option<String>,
    port: Option<u64>,
    from: Option<String>,
    /// As `--tls` has it; Redfish knows one more way, `auto-detect`.
    tls: &'static str,
    user: Option<String>,
    has_password: bool,
}

/// Who is told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Recipient {
    #[serde(skip)]
    id: String,
    address: String,
    severities: Vec<&'static str>,
    delivered: u64,
    problem: Option<String>,
}

impl Told {
    async fn fetch(client: &Client) -> Result<Self, Problem> {
        let service = client.get(uri::EVENT_SERVICE).await?;
        let subscriptions = fetch::expanded(client, uri::SUBSCRIPTIONS).await?;
        let all = read::contents(&subscriptions)?.iter().filter_map(Recipient::of);
        Ok(Self { mail: Way::of(&service), recipients: all.collect() })
    }

    fn text(&self) -> String {
        let Way { enabled, server, port, from, tls, user, has_password } = &self.mail;
        let Some(server) = server else {
            let none = "no mail is sent: see palisade alert mail --help".to_owned();
            return if self.recipients.is_empty() {
                none
            } else {
                format!("{none}\n\n{}", self.table())
            };
        };
        let host = if server.contains(':') { format!("[{server}]") } else { server.clone() };
        let user = match (user, has_password) {
            (Some(user), true) => format!("{}, with a password", printable(user)),
            (Some(user), false) => format!("{}, without a password", printable(user)),
            (None, _) => "nobody logs in".to_owned(),
        };
        let from = from.as_deref().map_or_else(|| "nobody yet: give --from".to_owned(), printable);
        let mut text = String::new();
        for (what, value) in [
            ("mail", if *enabled { "on" } else { "off" }.to_owned()),
            ("server", printable(&format!("{host}:{}", port.unwrap_or_default()))),
            ("tls", (*tls).to_owned()),
            ("from", from),
            ("user", user),
        ] {
            text.push_str(&format!("{what:<8}{value}\n"));
        }
        if self.recipients.is_empty() {
            return format!("{text}\nnobody is told: add a recipient with --to ADDRESS");
        }
        format!("{text}\n{}", self.table())
    }

    /// The recipients.
    fn table(&self) -> String {
        let row = |own: &Recipient| {
            let problem = own.problem.as_deref().map(printable).unwrap_or_default();
            let severities = own.severities.join(", ");
            vec![printable(&own.address), severities, own.delivered.to_string(), problem]
        };
        let rows: Vec<_> = self.recipients.iter().map(row).collect();
        table(&["RECIPIENT", "TOLD OF", "DELIVERED", ""], &rows)
    }

    /// Subscriptions of an address: more than one may have been made.
    fn of<'a>(&'a self, address: &'a str) -> impl Iterator<Item = &'a Recipient> {
        self.recipients.iter().filter(move |own| own.address.eq_ignore_ascii_case(address))
    }
}

impl Way {
    fn of(service: &Value) -> Self {
        let at = |name: &str| service.pointer(&format!("/SMTP/{name}"));
        let text = |name: &str| at(name).and_then(Value::as_str).map(str::to_owned);
        let is = |name: &str| at(name).and_then(Value::as_bool).unwrap_or_default();
        Self {
            enabled: is("ServiceEnabled"),
            server: text("ServerAddress"),
            port: at("Port").and_then(Value::as_u64).filter(|port| *port > 0),
            from: text("FromAddress"),
            tls: match text("ConnectionProtocol").as_deref() {
                Some("StartTLS") => "starttls",
                Some("TLS_SSL") => "tls",
                Some("AutoDetect") => "auto-detect",
                _ => "none",
            },
            user: text("Username"),
            has_password: is("PasswordSet"),
        }
    }
}

impl Recipient {
    /// Of a subscription, if it is one of mail.
    fn of(subscription: &Value) -> Option<Self> {
        let text = |name: &str| subscription.get(name).and_then(Value::as_str);
        let address = smtp::recipient(text("Destination")?)?.to_owned();
        let told = subscription.get("Severities").and_then(Value::as_array);
        let told: Vec<&str> = told.into_iter().flatten().filter_map(Value::as_str).collect();
        let is_told = |own: &Severity| told.is_empty() || told.contains(&own.word());
        let own = oem::of::<oem::EventDestination>(subscription).ok();
        Some(Self {
            id: text("Id")?.to_owned(),
            address,
            severities: GRAVE.iter().filter(|own| is_told(own)).map(|own| word(*own)).collect(),
            delivered: own.as_ref().map_or(0, |own| own.delivered_events),
            problem: own.and_then(|own| own.problem),
        })
    }
}

/// What alerts can be.
const GRAVE: [Severity; 2] = [Severity::Warning, Severity::Critical];

const fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Ok => "ok",
        Severity::Warning => "warning",
        Severity::Critical => "critical",
    }
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

    /// Whether nothing is to be otherwise.
    fn only_shows(&self) -> bool {
        let Self { server, from, tls, user, to, remove, off, how: _ } = self;
        let has_words = server.is_some() || from.is_some() || tls.is_some() || user.is_some();
        !has_words && to.is_empty() && remove.is_empty() && !off
    }

    /// Whom to tell of what, each once: the last `--to` of an address counts, unless it is removed.
    fn told(&self) -> impl Iterator<Item = &(String, Severity)> {
        let is_removed = |own: &str| self.remove.iter().any(|at| at.eq_ignore_ascii_case(own));
        let is_last = |at: usize, own: &str| {
            !self.to[at + 1..].iter().any(|(later, _)| later.eq_ignore_ascii_case(own))
        };
        let all = self.to.iter().enumerate();
        all.filter(move |(at, (own, _))| is_last(*at, own) && !is_removed(own)).map(|(_, own)| own)
    }

    /// Whom to tell no more, each once.
    fn removed(&self) -> impl Iterator<Item = &String> {
        let is_first = |at: usize, own: &str| {
            !self.remove[..at].iter().any(|before| before.eq_ignore_ascii_case(own))
        };
        let all = self.remove.iter().enumerate();
        all.filter(move |(at, own)| is_first(*at, own)).map(|(_, own)| own)
    }

    /// What is to be changed of recipients, in order.
    fn recipients(&self, now: &Told) -> Result<Vec<Change>, Problem> {
        let end = |own: &Recipient| Change::delete(uri::subscription(&own.id));
        let mut changes = Vec::new();
        for (address, least) in self.told() {
            let severities: Vec<Severity> = GRAVE.into_iter().filter(|own| own >= least).collect();
            let words: Vec<&str> = severities.iter().map(|own| word(*own)).collect();
            let mut old: Vec<&Recipient> = now.of(address).collect();
            match old.iter().position(|own| own.severities == words) {
                Some(at) => drop(old.remove(at)),
                None => changes.push(Change::post(
                    uri::SUBSCRIPTIONS,
                    json!({
                        "Destination": format!("mailto:{address}"),
                        "Protocol": "SMTP",
                        "Severities": severities.iter().map(|own| own.word()).collect::<Vec<_>>(),
                    }),
                )),
            }
            changes.extend(old.into_iter().map(end));
        }
        for address in self.removed() {
            let before = changes.len();
            changes.extend(now.of(address).map(end));
            if changes.len() == before {
                return Err(Problem::new(&messages::NO_RECIPIENT, &[address]));
            }
        }
        Ok(changes)
    }

    /// Shows how alerts are mailed, or has it otherwise.
    pub async fn carry_out(&self, client: &Client) -> Result<(), Problem> {
        if self.only_shows() {
            let told = Told::fetch(client).await?;
            self.how.output.print(&Answer::new(told), Told::text);
            return Ok(());
        }
        let own = self.smtp()?;
        let mut changes = Vec::new();
        if !own.is_empty() {
            changes.push(Change::patch(uri::EVENT_SERVICE, json!({ "SMTP": own })));
        }
        if !self.to.is_empty() || !self.remove.is_empty() {
            changes.extend(self.recipients(&Told::fetch(client).await?)?);
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

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        mail: Mail,
    }

    /// How many changes a command line makes where ana is told of warnings.
    fn changes(line: &[&str]) -> Result<usize, Problem> {
        let line = std::iter::once("mail").chain(line.iter().copied());
        let mail = <Line as clap::Parser>::try_parse_from(line).expect("a command line").mail;
        let way = Way::of(&Value::Null);
        let recipient = Recipient {
            id: "1".to_owned(),
            address: "ana@example.org".to_owned(),
            severities: vec!["warning", "critical"],
            delivered: 0,
            problem: None,
        };
        Ok(mail.recipients(&Told { mail: way, recipients: vec![recipient] })?.len())
    }

    #[test]
    fn an_address_that_is_named_twice_is_changed_once() {
        let of = |line: &[&str]| changes(line).ok();
        // A new subscription, and the end of the old one.
        let critical = ["--to", "ana@example.org", "--to", "Ana@example.org:critical"];
        assert_eq!(of(&critical), Some(2));
        let last = ["--to", "ana@example.org:critical", "--to", "ana@example.org"];
        assert_eq!(of(&last), Some(0));
        let twice = ["--to", "bob@example.org", "--to", "bob@example.org"];
        assert_eq!(of(&twice), Some(1));
        let removed = ["--to", "ana@example.org:critical", "--remove", "ana@example.org"];
        assert_eq!(of(&removed), Some(1));
        let removed = ["--remove", "ana@example.org", "--remove", "ANA@example.org"];
        assert_eq!(of(&removed), Some(1));
        assert_eq!(of(&["--remove", "eve@example.org"]), None);
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
