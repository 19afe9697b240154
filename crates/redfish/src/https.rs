//! HTTPS as the daemon serves it, and its certificate; never a key.

use crate::messages::Error;

/// Where HTTPS is served, or why it is not.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Https {
    /// Where clients connect: `ADDR:PORT`.
    pub listeners: Vec<String>,
    /// Why it is not served as the configuration says, and what to do.
    pub problems: Vec<Problem>,
    /// What clients are shown.
    pub certificate: Option<Certificate>,
}

/// Why HTTPS is not as the configuration says, or accounts can't be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Since when, in seconds since 1970.
    pub since: u64,
    /// What it is, and what to do.
    pub what: Error,
}

/// A certificate (RFC 5280).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Certificate {
    /// It, and those that it depends on, as PEM.
    pub pem: String,
    /// Its serial number, in hexadecimal.
    pub serial: String,
    /// Its SHA-256, in hexadecimal.
    pub fingerprint: String,
    /// The SHA-256 of its public key (`SubjectPublicKeyInfo`), in hexadecimal.
    pub key: String,
    /// Whose it is.
    pub subject: Named,
    /// Who says so.
    pub issuer: Named,
    /// From when it is good, in seconds since 1970.
    pub not_before: u64,
    /// Until when it is good, in seconds since 1970.
    pub not_after: u64,
    /// The names and addresses that it is for.
    pub names: Vec<String>,
    /// Whether the daemon made it, and makes another before its end.
    pub is_made: bool,
}

/// A name in a certificate; what is not in it is empty.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Named {
    /// Common name.
    pub common_name: String,
    /// Organization.
    pub organization: String,
    /// Organizational unit.
    pub unit: String,
    /// City.
    pub city: String,
    /// State or province.
    pub state: String,
    /// Country: two letters.
    pub country: String,
}
