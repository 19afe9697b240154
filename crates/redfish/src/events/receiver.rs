//! Where a webhook goes: the URI of a receiver, and headers that are sent with each request.
//!
//! Invariant: a URI has no name and no password in it: those would be told in each GET.

use crate::access::Secret;

/// The longest URI, in bytes.
pub const URI_BYTES: usize = 2048;

/// The most headers of a subscription.
pub const HEADERS_MOST: usize = 16;

/// The longest value of a header, in bytes.
const VALUE_BYTES: usize = 4096;

/// Headers that the daemon sends by itself.
const OWN: [&str; 7] =
    ["host", "content-length", "content-type", "transfer-encoding", "connection", "te", "upgrade"];

/// A header, whose value is shown nowhere.
pub type Header = (String, Secret);

/// A URI, in its parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receiver {
    /// Whether it is asked by TLS.
    pub tls: bool,
    /// Its name or address, an IPv6 address without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Host and port as they stand in the URI.
    pub authority: String,
    /// Path and query.
    pub path: String,
}

impl Receiver {
    /// The receiver of a URI; none if it is no `http` or `https` URI, or says who logs in.
    pub fn read(uri: &str) -> Option<Self> {
        if uri.len() > URI_BYTES || !uri.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        if uri.contains(['#', '"', '<', '>', '\\', '^', '`', '{', '|', '}']) {
            return None;
        }
        let (scheme, rest) = uri.split_once("://")?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end)?;
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest.split_once(']')?;
                host.parse::<std::net::Ipv6Addr>().ok()?;
                (host, if after.is_empty() { None } else { Some(after.strip_prefix(':')?) })
            }
            None => {
                let (host, port) = match authority.split_once(':') {
                    Some((host, port)) => (host, Some(port)),
                    None => (authority, None),
                };
                let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
                if host.is_empty() || host.len() > 253 || !host.bytes().all(is_name) {
                    return None;
                }
                (host, port)
            }
        };
        let port = match port {
            None if tls => 443,
            None => 80,
            Some(digits) if !digits.bytes().all(|byte| byte.is_ascii_digit()) => return None,
            Some(digits) => digits.parse().ok().filter(|port: &u16| *port > 0)?,
        };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Some(Self { tls, host: host.to_owned(), port, authority: authority.to_owned(), path })
    }
}

/// A receiver's URI without its path and query, which may be secrets. The address of a recipient of
/// mail stays.
pub fn shortened(uri: &str) -> &str {
    if super::smtp::recipient(uri).is_some() {
        return uri;
    }
    let authority = uri.find("://").map_or(0, |at| at.saturating_add(3));
    let end = uri.get(authority..).and_then(|rest| rest.find(['/', '?']));
    end.and_then(|end| uri.get(..authority.saturating_add(end))).unwrap_or(uri)
}

/// Whether a subscription can have this header.
pub fn is_header(name: &str, value: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_name = (1..=128).contains(&name.len()) && name.bytes().all(is_token);
    let is_value = value.len() <= VALUE_BYTES
        && value.bytes().all(|byte| byte == b' ' || byte == b'\t' || byte.is_ascii_graphic());
    is_name && is_value && !OWN.iter().any(|own| own.eq_ignore_ascii_case(name))
}
