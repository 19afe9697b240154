//! The certificate of HTTPS: made, read, and found too old. No files, no clock.
//!
//! Purpose: [`Identity`] is a chain of certificates with the key of the first. It comes from PEM:
//! what the daemon made, or what a person gave it.
//!
//! Invariants
//! - A key is in [`Identity::pem`] only, which goes to the state directory and nowhere else.
//! - An identity's key is that of its first certificate.
//! - Reading certificates takes nothing of them for granted: they may come from a request.

mod der;

use der::Der;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use redfish::dates;
use redfish::messages as say;
use redfish::view::{Certificate, Error, Named};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// How long a certificate that the daemon makes is good.
pub const LIFE: Duration = Duration::from_secs(397 * 86_400);

/// How long before its end it is made anew.
pub const RENEWAL: Duration = Duration::from_secs(30 * 86_400);

/// Its beginning lies so far back: clients' clocks differ.
const BEFORE: Duration = Duration::from_secs(86_400);

/// The 1st of January 2026: a clock that shows less is wrong.
pub const SANE: u64 = 1_767_225_600;

/// No chain has more bytes: it is sent to each client, whoever that is.
const MOST_BYTES: usize = 64 << 10;

/// No chain is longer.
const MOST_CERTIFICATES: usize = 8;

/// What the file of a certificate that the daemon made begins with; readers of PEM skip it.
const MADE: &str = "made by palisade; it will be replaced before it ends\n";

/// Extensions (RFC 5280, section 4.2.1): other names, and what the key is for.
const OTHER_NAMES: [u8; 3] = [0x55, 0x1d, 0x11];
const USES: [u8; 3] = [0x55, 0x1d, 0x25];

/// Uses of a key (RFC 5280, section 4.2.1.12): any, and a server's.
const ANY_USE: [u8; 4] = [0x55, 0x1d, 0x25, 0x00];
const SERVER: [u8; 8] = [0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];

/// Who a certificate that the daemon made is of.
const ORGANIZATION: &str = "Palisade";

/// A chain of certificates, and the key of the first.
#[derive(Clone)]
pub struct Identity {
    /// For rustls.
    pub certified: Arc<CertifiedKey>,
    /// What may be known of it.
    pub shown: Certificate,
    /// It, and the key, as a file.
    pub pem: String,
}

/// What a certificate is made for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct For {
    /// The machine's name.
    pub host: String,
    /// Where HTTPS listens.
    pub addresses: BTreeSet<IpAddr>,
}

impl For {
    /// The names and addresses that are in it, in order.
    fn all(&self) -> BTreeSet<String> {
        let mut all: BTreeSet<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
        // What is no name of DNS can't be in it.
        if is_name(&self.host) {
            all.insert(self.host.clone());
        }
        let real = self.addresses.iter().filter(|address| !address.is_unspecified());
        all.extend(real.map(ToString::to_string));
        all
    }
}

fn is_name(text: &str) -> bool {
    let is_part = |part: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=63).contains(&part.len()) && part.bytes().all(allowed)
    };
    text.len() <= 253 && text.split('.').all(is_part)
}

fn unusable(why: &str) -> Error {
    Error::new(&say::CERTIFICATE_UNUSABLE, &[&why])
}

/// Makes a certificate that is good from now on (seconds since 1970), of this key (PEM), else of
/// one that is made, too.
///
/// # Errors
/// It can't be made.
pub fn make(wanted: &For, now: u64, key: Option<&str>) -> Result<Identity, Error> {
    let made = || {
        let mut params = CertificateParams::new(wanted.all().into_iter().collect::<Vec<_>>())?;
        let mut name = DistinguishedName::new();
        let host = if is_name(&wanted.host) { wanted.host.as_str() } else { "localhost" };
        // A common name has 64 characters at most (RFC 5280, appendix A.1).
        name.push(DnType::CommonName, host.chars().take(64).collect::<String>());
        name.push(DnType::OrganizationName, ORGANIZATION);
        params.distinguished_name = name;
        let now = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(now);
        params.not_before = now - BEFORE;
        params.not_after = now + LIFE;
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = match key {
            Some(pem) => KeyPair::from_pem(pem)?,
            None => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?,
        };
        let certificate = params.self_signed(&key)?;
        Ok::<_, rcgen::Error>(format!("{MADE}{}{}", certificate.pem(), key.serialize_pem()))
    };
    made().map_err(|error| unusable(&error.to_string())).and_then(|pem| read(&pem))
}

/// Whether a certificate that the daemon made is to be made anew, at a moment in seconds since
/// 1970. A machine that has lost the time keeps the one that is there: clients know it.
pub fn is_due(shown: &Certificate, wanted: &For, now: u64) -> bool {
    let names: BTreeSet<String> = shown.names.iter().cloned().collect();
    shown.is_made
        && now >= SANE
        && now >= shown.not_before
        && (ends_soon(shown, now) || names != wanted.all())
}

fn ends_soon(shown: &Certificate, now: u64) -> bool {
    now.saturating_add(RENEWAL.as_secs()) >= shown.not_after
}

/// Checks the dates of a certificate that a client brings, at a moment in seconds since 1970.
///
/// # Errors
/// It has ended, or begins more than a day later.
pub fn check_dates(shown: &Certificate, now: u64) -> Result<(), Error> {
    if shown.not_after <= now {
        return Err(unusable("it has ended"));
    }
    if now >= SANE && shown.not_before > now.saturating_add(BEFORE.as_secs()) {
        return Err(unusable("it is not good yet"));
    }
    Ok(())
}

/// What is wrong with the dates of a certificate, at a moment in seconds since 1970, that the
/// daemon does not put right by itself.
pub fn problem(shown: &Certificate, now: u64) -> Option<Error> {
    let told = |message, date| Some(Error::new(message, &[&dates::text(date)]));
    if now < shown.not_before {
        return told(&say::CERTIFICATE_EARLY, shown.not_before);
    }
    if !shown.is_made && ends_soon(shown, now) {
        return told(&say::CERTIFICATE_ENDS, shown.not_after);
    }
    None
}

/// Reads certificates and the key of the first.
///
/// # Errors
/// They can't be read, are too many, or the key is another's.
pub fn read(pem: &str) -> Result<Identity, Error> {
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes());
    let key = key.map_err(|_| unusable("it has no private key that can be read"))?;
    let mut chain = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|_| unusable("it is no PEM"))?;
        if chain.len() == MOST_CERTIFICATES {
            return Err(unusable("it has too many certificates"));
        }
        chain.push(certificate);
    }
    let first = chain.first().ok_or_else(|| unusable("it has no certificate"))?;
    let mut shown = facts(first).ok_or_else(|| unusable("it is no X.509 certificate"))?;
    if chain.iter().map(|one| one.len()).sum::<usize>() > MOST_BYTES {
        return Err(unusable("its certificates are too large"));
    }
    if !chain.iter().all(|one| facts(one).is_some()) {
        return Err(unusable("a certificate behind the first is no X.509 certificate"));
    }
    if !is_for_servers(first) {
        return Err(unusable("its key is not for servers (extended key usage)"));
    }
    shown.is_made = pem.starts_with(MADE);
    shown.pem = public(&chain);
    let certified = CertifiedKey::from_der(chain, key, &default_provider());
    let certified = certified.map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => unusable("the private key is another certificate's"),
        other => unusable(&other.to_string()),
    })?;
    Ok(Identity { certified: Arc::new(certified), shown, pem: pem.to_owned() })
}

/// Reads what a person gave: the certificates of one text, and the key of another. Either may have
/// what belongs to the other.
///
/// # Errors
/// They can't be read, are too many, or the key is another's.
pub fn pair(certificates: &str, key: &str) -> Result<Identity, Error> {
    let key = key_of(key).ok_or_else(|| unusable("it has no private key that can be read"))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates.as_bytes())
        .take(MOST_CERTIFICATES + 1)
        .collect();
    let chain = chain.map_err(|_| unusable("it is no PEM"))?;
    read(&format!("{}{key}", public(&chain)))
}

/// Whether a text has a private key.
pub fn has_key(pem: &str) -> bool {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).is_ok()
}

/// The key of an identity as PEM, for another certificate of it.
pub fn key_of(pem: &str) -> Option<String> {
    let end = |kind: &str| format!("-----END {kind}PRIVATE KEY-----");
    ["", "EC ", "RSA "].iter().find_map(|kind| {
        let begin = pem.find(&format!("-----BEGIN {kind}PRIVATE KEY-----"))?;
        let end = end(kind);
        let length = pem.get(begin..)?.find(&end)? + end.len();
        Some(format!("{}\n", pem.get(begin..begin + length)?))
    })
}

/// Certificates as PEM (RFC 7468).
fn public(chain: &[CertificateDer<'_>]) -> String {
    let mut text = String::new();
    for certificate in chain {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let encoded = base64(certificate);
        for (at, sign) in encoded.chars().enumerate() {
            if at > 0 && at % 64 == 0 {
                text.push('\n');
            }
            text.push(sign);
        }
        text.push_str("\n-----END CERTIFICATE-----\n");
    }
    text
}

/// Base64 (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let all = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let sign = SIGNS.get((all >> (18 - 6 * at) & 63) as usize).copied().unwrap_or(b'=');
            text.push(if at > three.len() { '=' } else { char::from(sign) });
        }
    }
    text
}

/// What a certificate says of itself (RFC 5280, section 4.1); none if it can't be read.
pub fn facts(certificate: &[u8]) -> Option<Certificate> {
    let mut fields = Der::new(certificate).sequence()?.sequence()?;
    fields.optional(der::VERSION);
    let serial = fields.take(der::INTEGER)?;
    fields.sequence()?;
    let issuer = named(fields.sequence()?);
    let mut validity = fields.sequence()?;
    let (not_before, not_after) = (moment(&mut validity)?, moment(&mut validity)?);
    let subject = named(fields.sequence()?);
    let key = fields.whole()?;
    Some(Certificate {
        serial: hex(serial),
        fingerprint: hex(&Sha256::digest(certificate)),
        key: hex(&Sha256::digest(key)),
        issuer,
        subject,
        not_before,
        not_after,
        names: alternatives(fields).unwrap_or_default(),
        ..Certificate::default()
    })
}

/// Bytes in hexadecimal, with colons between.
fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        let colon = if text.is_empty() { "" } else { ":" };
        // A text takes all that is written to it.
        let _ = write!(text, "{colon}{byte:02X}");
    }
    text
}

/// A moment, in seconds since 1970; of years before that 0.
fn moment(fields: &mut Der<'_>) -> Option<u64> {
    let (tag, bytes) = fields.any()?;
    let text = core::str::from_utf8(bytes).ok()?;
    let text = match tag {
        der::UTC_TIME => {
            let century = if text.get(..2)? < "50" { "20" } else { "19" };
            format!("{century}{text}")
        }
        der::GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let part = |from: usize, to: usize| text.get(from..to);
    let (date, time) = (
        format!("{}-{}-{}", part(0, 4)?, part(4, 6)?, part(6, 8)?),
        format!("{}:{}:{}", part(8, 10)?, part(10, 12)?, part(12, 14)?),
    );
    (part(14, text.len())? == "Z").then_some(())?;
    Some(dates::seconds(&format!("{date}T{time}Z")).unwrap_or(0))
}

/// The parts of a name that Redfish has.
fn named(mut name: Der<'_>) -> Named {
    let mut found = Named::default();
    while let Some(mut set) = name.set() {
        while let Some(mut part) = set.sequence() {
            let kind = part.take(der::OBJECT_IDENTIFIER);
            let (Some([0x55, 0x04, kind]), Some((_, text))) = (kind, part.any()) else { continue };
            let text = String::from_utf8_lossy(text).into_owned();
            match kind {
                3 => found.common_name = text,
                6 => found.country = text,
                7 => found.city = text,
                8 => found.state = text,
                10 => found.organization = text,
                11 => found.unit = text,
                _ => {}
            }
        }
    }
    found
}

/// The sequence in an extension of a certificate, whose fields these are.
fn extension<'a>(mut fields: Der<'a>, id: &[u8]) -> Option<Der<'a>> {
    let mut all = loop {
        if let (der::EXTENSIONS, inner) = fields.any()? {
            break Der::new(inner).sequence()?;
        }
    };
    while let Some(mut extension) = all.sequence() {
        if extension.take(der::OBJECT_IDENTIFIER)? == id {
            extension.optional(der::BOOLEAN);
            return Der::new(extension.take(der::OCTET_STRING)?).sequence();
        }
    }
    None
}

/// Whether clients take a certificate for a server's: it says so, or does not say what it is for.
fn is_for_servers(certificate: &[u8]) -> bool {
    let fields = Der::new(certificate).sequence().and_then(|mut own| own.sequence());
    let Some(mut uses) = fields.and_then(|fields| extension(fields, &USES)) else { return true };
    let mut all = core::iter::from_fn(|| uses.take(der::OBJECT_IDENTIFIER));
    all.any(|one| one == SERVER || one == ANY_USE)
}

/// The names and addresses that the certificate is for (RFC 5280, section 4.2.1.6).
fn alternatives(fields: Der<'_>) -> Option<Vec<String>> {
    let mut names = extension(fields, &OTHER_NAMES)?;
    let mut found = Vec::new();
    while let Some((tag, bytes)) = names.any() {
        match (tag, bytes.len()) {
            (der::DNS_NAME, _) => found.push(String::from_utf8_lossy(bytes).into_owned()),
            (der::IP_ADDRESS, 4) => {
                let address = <[u8; 4]>::try_from(bytes).ok()?;
                found.push(IpAddr::from(address).to_string());
            }
            (der::IP_ADDRESS, 16) => {
                let address = <[u8; 16]>::try_from(bytes).ok()?;
                found.push(IpAddr::from(address).to_string());
            }
            _ => {}
        }
    }
    Some(found)
}

/// What a request for a certificate says of who wants it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Request {
    /// Of whom.
    pub subject: Named,
    /// Names and addresses.
    pub names: Vec<String>,
}

/// Makes a key, and a request for a certificate of it (PKCS#10): the request, and the key.
///
/// # Errors
/// A name can't be in a certificate.
pub fn request(wanted: &Request) -> Result<(String, String), Error> {
    let made = || {
        let mut params = CertificateParams::new(wanted.names.clone())?;
        let mut name = DistinguishedName::new();
        let subject = &wanted.subject;
        for (kind, text) in [
            (DnType::CountryName, &subject.country),
            (DnType::StateOrProvinceName, &subject.state),
            (DnType::LocalityName, &subject.city),
            (DnType::OrganizationName, &subject.organization),
            (DnType::OrganizationalUnitName, &subject.unit),
            (DnType::CommonName, &subject.common_name),
        ] {
            if !text.is_empty() {
                name.push(kind, text.as_str());
            }
        }
        params.distinguished_name = name;
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let request = params.serialize_request(&key)?;
        Ok::<_, rcgen::Error>((request.pem()?, key.serialize_pem()))
    };
    made().map_err(|error: rcgen::Error| Error::new(&say::CERTIFICATE_REQUEST, &[&error]))
}

#[cfg(test)]
#[path = "certificate_tests.rs"]
mod tests;
