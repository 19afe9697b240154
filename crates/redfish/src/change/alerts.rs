//! What a request wants done with alerts.
//!
//! - `PalisadeServiceConditions.Acknowledge`: `Id`. `PalisadeServiceConditions.Test`: nothing.
//! - `PATCH` of the EventService: `SMTP`, with `ServiceEnabled`?, `ServerAddress`?, `Port`?,
//!   `FromAddress`?, `ConnectionProtocol`?, `Authentication`?, `Username`?, `Password`?. An empty
//!   text takes away what is there.
//!
//! Invariant: the password is told in no refusal, nor by `Debug`, nor in the audit log.

use super::node::{Fields, Node};
use crate::access::Secret;
use crate::error::Refusal;
use crate::events::smtp::{Authentication, Plain, Protocol, Settings, is_address, is_server};
use crate::routes::{Method, Resource};
use crate::view::View;

/// The longest name or password of a mail server's account, in characters.
const TEXT_CHARACTERS: usize = 256;

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AlertsChange {
    /// Somebody has seen an alert.
    Acknowledge {
        /// The alert's identifier.
        id: String,
    },
    /// Sends a message to all who are told of alerts, that says nothing.
    Test,
    /// Changes how mail is sent.
    Mail(MailChange),
}

/// What of how mail is sent is to be otherwise.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MailChange {
    /// Whether it is sent.
    pub is_enabled: Option<bool>,
    /// The server's name or address.
    pub server: Option<String>,
    /// The server's port.
    pub port: Option<u16>,
    /// The sender's address.
    pub from: Option<String>,
    /// How the connection is protected.
    pub protocol: Option<Protocol>,
    /// How the daemon says who it is.
    pub authentication: Option<Authentication>,
    /// As whom.
    pub user: Option<String>,
    /// The password; an empty one is none.
    pub password: Option<Secret>,
}

impl MailChange {
    /// Changes settings. A port that nobody gave is that of the protocol.
    pub fn apply(self, to: &mut Settings) {
        let usual = to.plain.protocol.port();
        let is_usual = to.plain.port == 0 || to.plain.port == usual;
        let Settings { plain, password } = to;
        plain.is_enabled = self.is_enabled.unwrap_or(plain.is_enabled);
        plain.protocol = self.protocol.unwrap_or(plain.protocol);
        plain.authentication = self.authentication.unwrap_or(plain.authentication);
        plain.port = match self.port {
            Some(port) => port,
            None if is_usual => plain.protocol.port(),
            None => plain.port,
        };
        let put = |text: &mut String, new: Option<String>| {
            if let Some(new) = new {
                *text = new;
            }
        };
        let to_whom = (plain.server.clone(), plain.user.clone());
        put(&mut plain.server, self.server);
        put(&mut plain.from, self.from);
        put(&mut plain.user, self.user);
        // A password is for the server and the user that it was given for.
        if to_whom != (plain.server.clone(), plain.user.clone()) {
            *password = None;
        }
        if let Some(new) = self.password {
            *password = Some(new).filter(|new| !new.reveal().is_empty());
        }
    }
}

impl AlertsChange {
    /// What is to be done, as the audit log has it.
    pub fn words(&self) -> String {
        match self {
            Self::Acknowledge { id } => format!("acknowledge alert {id}"),
            Self::Test => "send a test to all who are told of alerts".to_owned(),
            Self::Mail(change) => {
                let mut parts = Vec::new();
                parts.extend(change.is_enabled.map(|on| if on { "on" } else { "off" }.to_owned()));
                parts.extend(change.server.as_ref().map(|server| format!("server {server}")));
                parts.extend(change.port.map(|port| format!("port {port}")));
                parts.extend(change.from.as_ref().map(|from| format!("from {from}")));
                parts.extend(change.protocol.map(|own| own.word().to_owned()));
                parts.extend(change.authentication.map(|own| format!("log in: {}", own.word())));
                parts.extend(change.user.as_ref().map(|user| format!("user {user}")));
                parts.extend(change.password.as_ref().map(|_| "another password".to_owned()));
                format!("change how mail is sent: {}", parts.join(", "))
            }
        }
    }
}

/// What the EventService has, and keeps as it is.
const READ_ONLY: [&str; 10] = [
    "Id",
    "Name",
    "ServiceEnabled",
    "DeliveryRetryAttempts",
    "DeliveryRetryIntervalSeconds",
    "EventFormatTypes",
    "Subscriptions",
    "Status",
    "Actions",
    "Oem",
];

/// Reads what a request wants; none if its route is about something else.
pub(super) fn parse(
    view: &View,
    resource: Resource,
    method: Method,
    fields: &mut Fields<'_>,
) -> Option<Result<AlertsChange, Refusal>> {
    Some(match (method, resource) {
        (Method::Post, Resource::Acknowledge) => acknowledge(fields),
        (Method::Post, Resource::TestAlerts) => Ok(AlertsChange::Test),
        (Method::Patch, Resource::EventService) => {
            mail(&view.events.mail.plain, fields).map(AlertsChange::Mail)
        }
        _ => return None,
    })
}

fn acknowledge(fields: &mut Fields<'_>) -> Result<AlertsChange, Refusal> {
    Ok(AlertsChange::Acknowledge { id: fields.need("Id")?.text()?.to_owned() })
}

fn mail(now: &Plain, fields: &mut Fields<'_>) -> Result<MailChange, Refusal> {
    fields.not_empty()?;
    if let Some(node) = READ_ONLY.iter().find_map(|name| fields.take(name)) {
        return Err(node.read_only());
    }
    let mut own = fields.need("SMTP")?.fields()?;
    if let Some(node) = own.take("PasswordSet") {
        return Err(node.read_only());
    }
    let change = MailChange {
        is_enabled: own.take("ServiceEnabled").map(|node| node.truth()).transpose()?,
        server: own.take("ServerAddress").map(|node| fits(&node, is_server)).transpose()?,
        port: own.take("Port").map(|node| port(&node)).transpose()?,
        from: own.take("FromAddress").map(|node| fits(&node, is_address)).transpose()?,
        protocol: of_words(&mut own, "ConnectionProtocol", &Protocol::ALL, Protocol::word)?,
        authentication: {
            of_words(&mut own, "Authentication", &Authentication::ALL, Authentication::word)?
        },
        user: own.take("Username").map(|node| fits(&node, is_user)).transpose()?,
        password: own.take("Password").map(|node| password(&node)).transpose()?,
    };
    // What is switched on has to be whole.
    let mut next = Settings { plain: now.clone(), password: None };
    change.clone().apply(&mut next);
    if let Some(lacks) = next.plain.lacks().filter(|_| next.plain.is_enabled) {
        return Err(own.missing(lacks));
    }
    own.end()?;
    Ok(change)
}

/// A text that is empty, or right.
fn fits(node: &Node<'_>, is_right: impl Fn(&str) -> bool) -> Result<String, Refusal> {
    let text = node.text()?;
    match text.is_empty() || is_right(text) {
        true => Ok(text.to_owned()),
        false => Err(node.wrong_format()),
    }
}

fn is_user(text: &str) -> bool {
    text.chars().count() <= TEXT_CHARACTERS && !text.chars().any(char::is_control)
}

fn port(node: &Node<'_>) -> Result<u16, Refusal> {
    let most = u16::MAX.into();
    u16::try_from(node.whole(1, most)?).map_err(|_| node.out_of_range(1, most))
}

fn password(node: &Node<'_>) -> Result<Secret, Refusal> {
    let text = node.secret()?;
    match is_user(text) {
        true => Ok(Secret::new(text)),
        false => Err(node.wrong_secret()),
    }
}

/// One of some words.
fn of_words<T: Copy>(
    fields: &mut Fields<'_>,
    name: &str,
    all: &[T],
    word: impl Fn(T) -> &'static str,
) -> Result<Option<T>, Refusal> {
    let Some(node) = fields.take(name) else { return Ok(None) };
    let words: Vec<&str> = all.iter().map(|own| word(*own)).collect();
    let given = node.word(&words)?;
    Ok(all.iter().copied().find(|own| word(*own) == given))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{self, Change};
    use crate::routes;
    use serde_json::{Value, json};

    fn patch(body: &Value) -> Result<MailChange, Refusal> {
        let found = routes::find("/redfish/v1/EventService").expect("a route");
        let view = change::tests::view();
        match change::parse(&view, &found, Method::Patch, body.to_string().as_bytes())? {
            Change::Alerts(AlertsChange::Mail(change)) => Ok(change),
            other => panic!("{other:?}"),
        }
    }

    fn message(refusal: &Refusal) -> &str {
        refusal.messages[0].id.rsplit('.').next().unwrap_or_default()
    }

    #[test]
    fn a_change_of_mail_changes_what_it_names() {
        let change = patch(&json!({"SMTP": {
            "ServerAddress": "mail.example", "FromAddress": "a@b.example", "ServiceEnabled": true,
            "ConnectionProtocol": "TLS_SSL", "Password": "secret horse",
        }}));
        let change = change.expect("a change");
        let said = AlertsChange::Mail(change.clone());
        let words = said.words();
        assert_eq!(
            words,
            "change how mail is sent: on, server mail.example, from a@b.example, TLS_SSL, another \
             password"
        );
        assert!(!format!("{said:?}").contains("horse"));
        let mut settings = Settings::default();
        change.apply(&mut settings);
        assert_eq!((settings.plain.port, settings.plain.is_used()), (465, true));
        assert_eq!(settings.password, Some(Secret::new("secret horse")));
        // A port that somebody gave stays, and an empty text takes away.
        MailChange { port: Some(2525), ..MailChange::default() }.apply(&mut settings);
        let protocol = Some(Protocol::StartTLS);
        let password = Some(Secret::new(""));
        MailChange { protocol, password, ..MailChange::default() }.apply(&mut settings);
        assert_eq!((settings.plain.port, &settings.password), (2525, &None));
        assert_eq!(settings.plain.server, "mail.example");
    }

    #[test]
    fn a_password_is_for_the_server_and_the_user_that_it_was_given_for() {
        let given = || MailChange {
            server: Some("mail.example".to_owned()),
            user: Some("ana".to_owned()),
            password: Some(Secret::new("horse")),
            ..MailChange::default()
        };
        let after = |change: MailChange| {
            let mut settings = Settings::default();
            given().apply(&mut settings);
            change.apply(&mut settings);
            settings.password
        };
        let text = |text: &str| Some(text.to_owned());
        let kept = Some(Secret::new("horse"));
        assert_eq!(after(MailChange { from: text("x@b.example"), ..MailChange::default() }), kept);
        assert_eq!(
            after(MailChange { server: text("mail.example"), ..MailChange::default() }),
            kept
        );
        assert_eq!(
            after(MailChange { server: text("other.example"), ..MailChange::default() }),
            None
        );
        assert_eq!(after(MailChange { user: text("bob"), ..MailChange::default() }), None);
        let other = Some(Secret::new("staple"));
        let both =
            MailChange { user: text("bob"), password: other.clone(), ..MailChange::default() };
        assert_eq!(after(both), other);
    }

    #[test]
    fn what_can_not_be_used_is_refused() {
        for (own, expected) in [
            (json!({"ServiceEnabled": true}), "PropertyMissing"),
            (json!({"FromAddress": "nobody"}), "PropertyValueFormatError"),
            (json!({"ServerAddress": "a b"}), "PropertyValueFormatError"),
            (json!({"Username": "a\nb"}), "PropertyValueFormatError"),
            (json!({"Password": "a\nb"}), "PropertyValueError"),
            (json!({"Port": 0}), "PropertyValueOutOfRange"),
            (json!({"PasswordSet": true}), "PropertyNotWritable"),
            (json!({"Authentication": "Login"}), "PropertyValueNotInList"),
        ] {
            let refusal = patch(&json!({"SMTP": own})).expect_err("refused");
            assert_eq!(message(&refusal), expected, "{own}");
            let told = format!("{:?}", refusal.messages);
            assert!(!told.contains("a\\nb") || expected != "PropertyValueError", "{told}");
        }
        let refusal = patch(&json!({"ServiceEnabled": false})).expect_err("refused");
        assert_eq!(message(&refusal), "PropertyNotWritable");
    }
}
