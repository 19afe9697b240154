//! Mail of alerts: how it is sent, and where it goes.
//!
//! Invariant: a password is in [`Settings`] only, which is shown nowhere.

use crate::access::Secret;
use serde::{Deserialize, Serialize};

/// The longest address of a recipient or a sender, in bytes (RFC 5321, section 4.5.3.1.3).
pub const ADDRESS_BYTES: usize = 254;

/// What the URI of a recipient begins with (RFC 6068).
const SCHEME: &str = "mailto:";

/// How the connection to a mail server is protected (`SMTPConnectionProtocol`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Protocol {
    /// Not at all.
    None,
    /// By TLS where the server offers it, else not at all.
    AutoDetect,
    /// By TLS that begins with a command; without it nothing is sent (RFC 3207).
    #[default]
    StartTLS,
    /// By TLS from its beginning (RFC 8314).
    #[serde(rename = "TLS_SSL")]
    TlsSsl,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::None, Self::AutoDetect, Self::StartTLS, Self::TlsSsl];

    /// Its word in Redfish.
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::AutoDetect => "AutoDetect",
            Self::StartTLS => "StartTLS",
            Self::TlsSsl => "TLS_SSL",
        }
    }

    /// The port that servers have for it.
    pub const fn port(self) -> u16 {
        match self {
            Self::None | Self::AutoDetect => 25,
            Self::StartTLS => 587,
            Self::TlsSsl => 465,
        }
    }
}

/// How the daemon says who it is (`SMTPAuthenticationMethods`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Authentication {
    /// Not at all.
    #[default]
    None,
    /// As the server offers it, if there is a password.
    AutoDetect,
    /// By `PLAIN` (RFC 4616).
    Plain,
}

impl Authentication {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::None, Self::AutoDetect, Self::Plain];

    /// Its word in Redfish.
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::AutoDetect => "AutoDetect",
            Self::Plain => "Plain",
        }
    }
}

/// How mail is sent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// What of it is no secret.
    pub plain: Plain,
    /// The password, if there is one.
    pub password: Option<Secret>,
}

/// How mail is sent, without the password.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plain {
    /// Whether it is sent.
    pub is_enabled: bool,
    /// The server's name or address; empty if nobody said.
    pub server: String,
    /// The server's port.
    pub port: u16,
    /// The sender's address; empty if nobody said.
    pub from: String,
    /// How the connection is protected.
    pub protocol: Protocol,
    /// How the daemon says who it is.
    pub authentication: Authentication,
    /// As whom; empty if nobody said.
    pub user: String,
}

impl Plain {
    /// What is lacking before mail can be sent: a property of Redfish.
    pub fn lacks(&self) -> Option<&'static str> {
        if self.server.is_empty() {
            Some("ServerAddress")
        } else if self.from.is_empty() {
            Some("FromAddress")
        } else if self.authentication != Authentication::None && self.user.is_empty() {
            Some("Username")
        } else {
            None
        }
    }

    /// Whether mail is sent.
    pub fn is_used(&self) -> bool {
        self.is_enabled && self.lacks().is_none()
    }
}

/// Mail, as it can be shown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Mail {
    /// How it is sent.
    pub plain: Plain,
    /// Whether there is a password.
    pub has_password: bool,
    /// The server that is used: `HOST:PORT`; empty if none is.
    pub server: String,
    /// Why it does not take mail.
    pub problem: Option<String>,
}

/// The address of a recipient's URI; none if it is no such URI.
pub fn recipient(uri: &str) -> Option<&str> {
    let scheme = uri.get(..SCHEME.len())?;
    let address = uri.get(SCHEME.len()..)?;
    (scheme.eq_ignore_ascii_case(SCHEME) && is_address(address)).then_some(address)
}

/// Whether this is one address of mail, without a name (RFC 5321, section 4.1.2, of which quoted
/// local parts and those with percent signs are left out).
pub fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let is_local = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&'*+-/=^_`{|}~.".contains(&byte);
    let dots = |part: &str| part.starts_with('.') || part.ends_with('.') || part.contains("..");
    let is_domain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    text.len() <= ADDRESS_BYTES
        && (1..=64).contains(&local.len())
        && local.bytes().all(is_local)
        && !dots(local)
        && !domain.is_empty()
        && domain.bytes().all(is_domain)
        && !dots(domain)
        && !domain.split('.').any(|part| part.starts_with('-') || part.ends_with('-'))
}

/// Whether a mail server can have this name: one of DNS, or an IP address without brackets.
pub fn is_server(text: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_dns = (1..=253).contains(&text.len()) && text.bytes().all(is_name);
    is_dns || text.parse::<std::net::IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipients_are_plain_addresses() {
        for good in ["mailto:a@b", "MAILTO:first.last+tag@mail.example.org", "mailto:a@127.0.0.1"] {
            assert!(recipient(good).is_some(), "{good}");
        }
        let long = format!("mailto:a@{}", "b".repeat(260));
        let bad = [
            "",
            "mailto:",
            "mailto:a",
            "mailto:@b",
            "mailto:a@",
            "mailto:a@b,c@d",
            "mailto:a b@c",
            "mailto:a@b?subject=x",
            "mailto:a@b\r\nBcc: c@d",
            "mailto:<a@b>",
            "mailto:.a@b",
            "mailto:a..b@c",
            "mailto:a@-b",
            "mailto:a%40b@c",
            "https://a@b",
            "mailto:ä@b",
            &long,
        ];
        for bad in bad {
            assert_eq!(recipient(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_mail_needs_is_named() {
        let mut plain = Plain { is_enabled: true, ..Plain::default() };
        assert_eq!(plain.lacks(), Some("ServerAddress"));
        plain.server = "mail.example".to_owned();
        assert_eq!(plain.lacks(), Some("FromAddress"));
        plain.from = "a@b".to_owned();
        assert!(plain.is_used());
        plain.authentication = Authentication::Plain;
        assert_eq!((plain.lacks(), plain.is_used()), (Some("Username"), false));
        for server in ["", "a b", "[::1]", "a:25", "a/b"] {
            assert!(!is_server(server), "{server}");
        }
        assert!(is_server("::1") && is_server("mail.example") && is_server("127.0.0.1"));
    }
}
