//! One mail to one recipient, by SMTP (RFC 5321).
//!
//! Invariants
//! - It is over within [`PATIENCE`], whatever name servers and mail servers do.
//! - A certificate has to be one that the machine trusts, wherever TLS is spoken: the file that
//!   `SSL_CERT_FILE` names, else those of the system.
//! - A password is sent to the server and told to nobody else.

use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::AsyncSmtpTransport;
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, AsyncTransport, Tokio1Executor};
use redfish::events::smtp::{Authentication, Protocol, Settings};
use std::error::Error as _;
use std::time::Duration;
use tokio::time::timeout;

/// How long a mail may take.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How long the server may take for one step of it.
const STEP: Duration = Duration::from_secs(20);

/// Replies that refuse who sends, not who receives (RFC 4954, section 6; RFC 5321, section 4.2.3).
const OF_SENDER: [u16; 6] = [503, 530, 534, 535, 538, 554];

/// Why a mail was not sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// One line.
    pub why: String,
    /// The server takes mail, but not for this recipient.
    pub is_of_recipient: bool,
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self { why, is_of_recipient: false }
    }
}

/// What a mail says.
pub struct Mail {
    /// The recipient's address.
    pub to: String,
    /// The subject, one line.
    pub subject: String,
    /// The text.
    pub text: String,
    /// What names the mail: no two have one.
    pub id: String,
}

/// A name that mail servers know hosts by.
fn host(name: &str) -> &str {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    if !name.is_empty() && name.bytes().all(is_part) { name } else { "localhost" }
}

/// What went wrong, one line, and whether it is the recipient's fault.
fn failure(error: &SmtpError) -> Failure {
    let code = error.status().map(u16::from);
    let is_of_recipient =
        error.is_permanent() && code.is_some_and(|code| !OF_SENDER.contains(&code));
    let mut why = error.to_string();
    // What lettre says of a cause that has a cause has only the first.
    let mut cause = error.source().and_then(std::error::Error::source);
    while let Some(more) = cause {
        let text = more.to_string();
        if !why.contains(&text) {
            why.push_str(&format!(": {text}"));
        }
        cause = more.source();
    }
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    Failure { why, is_of_recipient }
}

fn message(settings: &Settings, from: &str, mail: &Mail) -> Result<Message, Failure> {
    let own = |text: &str| text.parse::<Address>().map(|address| Mailbox::new(None, address));
    let sender = own(&settings.plain.from).map_err(|error| format!("the sender: {error}"))?;
    let recipient =
        own(&mail.to).map_err(|error| Failure { why: error.to_string(), is_of_recipient: true })?;
    // RFC 3834, section 5: no answer is wanted.
    let automatic = HeaderName::new_from_ascii_str("Auto-Submitted");
    Message::builder()
        .from(sender)
        .to(recipient)
        .subject(&mail.subject)
        .date_now()
        .message_id(Some(format!("<{}@{}>", mail.id, host(from))))
        .raw_header(HeaderValue::new(automatic, "auto-generated".to_owned()))
        .header(ContentType::TEXT_PLAIN)
        .body(mail.text.clone())
        .map_err(|error| Failure::from(error.to_string()))
}

/// How TLS is spoken. The machine's certificates are read on a thread of their own.
async fn tls(protocol: Protocol, server: String) -> Result<Tls, Failure> {
    if protocol == Protocol::None {
        return Ok(Tls::None);
    }
    let made = tokio::task::spawn_blocking(move || TlsParameters::builder(server).build_rustls());
    let made = made.await.map_err(|error| error.to_string())?;
    let parameters = made.map_err(|error| failure(&error))?;
    Ok(match protocol {
        Protocol::TlsSsl => Tls::Wrapper(parameters),
        Protocol::AutoDetect => Tls::Opportunistic(parameters),
        Protocol::StartTLS | Protocol::None => Tls::Required(parameters),
    })
}

/// Sends a mail from the machine of this name.
///
/// # Errors
/// Why it was not sent; whether it was is not known where the server did not answer in time.
pub async fn send(settings: &Settings, from: &str, mail: &Mail) -> Result<(), Failure> {
    let late = || Failure::from(format!("no answer within {} s", PATIENCE.as_secs()));
    timeout(PATIENCE, exchange(settings, from, mail)).await.map_err(|_| late())?
}

async fn exchange(settings: &Settings, from: &str, mail: &Mail) -> Result<(), Failure> {
    let plain = &settings.plain;
    let message = message(settings, from, mail)?;
    let tls = tls(plain.protocol, plain.server.clone()).await?;
    let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&plain.server)
        .port(plain.port)
        .tls(tls)
        .timeout(Some(STEP))
        .hello_name(ClientId::Domain(host(from).to_owned()));
    let password = settings.password.as_ref().map_or("", |own| own.reveal());
    if plain.authentication != Authentication::None {
        builder = builder
            .credentials(Credentials::new(plain.user.clone(), password.to_owned()))
            .authentication(match plain.authentication {
                Authentication::AutoDetect => vec![Mechanism::Plain, Mechanism::Login],
                _ => vec![Mechanism::Plain],
            });
    }
    let transport: AsyncSmtpTransport<Tokio1Executor> = builder.build();
    transport.send(message).await.map(drop).map_err(|error| failure(&error))
}
