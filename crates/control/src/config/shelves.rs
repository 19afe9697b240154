//! The tables `[[shelf]]`: shelves of drives that tell of themselves by a management service.
//!
//! What is read here has no states. [`Credentials`] are read anew for each connection.
//!
//! Invariants
//! - Of what is read without a mistake no two shelves have one address, nor one name.
//! - A file of credentials is a regular file that nobody but its owner can read, and that is the
//!   daemon's user, or root: nothing else is read, and nobody waits for it but who reads it.

use super::enclosures::unknown;
use super::spans::{Found, Value, list, table, text, wrong};
use base64ct::{Base64, Encoding as _};
use redfish::access::Secret;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::geteuid;
use rustls::pki_types::ServerName;
use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::net::Ipv6Addr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

const KEYS: [&str; 4] = ["redfish", "fingerprint", "credentials", "name"];

const NO_URL: &str = "redfish must be https://HOST:PORT; name and password belong in the file of \
                      `credentials`";

/// The most bytes of a file of credentials.
const BYTES: u64 = 1024;

/// Where a management service is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Url {
    /// A name, or an address without brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

impl Url {
    /// Reads `https://HOST:PORT`.
    pub fn parse(text: &str) -> Option<Self> {
        let place = text.strip_prefix("https://")?;
        let place = place.strip_suffix('/').unwrap_or(place);
        let (host, port) = place.rsplit_once(':')?;
        let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|port| is_port && *port > 0)?;
        let host = match host.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').filter(|own| own.parse::<Ipv6Addr>().is_ok())?,
            None => Some(host).filter(|own| !own.contains(':'))?,
        };
        let host = host.to_ascii_lowercase();
        ServerName::try_from(host.as_str()).ok()?;
        Some(Self { host, port })
    }

    /// Host and port, as the header `Host` has them.
    pub fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "https://{}", self.authority())
    }
}

/// A shelf with a management service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shelf {
    /// Where the service is; no other shelf has it.
    pub redfish: Url,
    /// The SHA-256 of the only certificate that is taken for the service's.
    pub fingerprint: [u8; 32],
    /// A file with the line `USER:PASSWORD`.
    pub credentials: PathBuf,
    /// The shelf's name. Absent: host and port.
    pub name: Option<String>,
}

impl Shelf {
    /// What the shelf is called: the same whatever the service says.
    pub fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.redfish.authority())
    }
}

/// Reads all shelves.
pub(super) fn read(value: &Value<'_>, found: &mut Found) -> Vec<Shelf> {
    let (mut places, mut names) = (BTreeSet::new(), BTreeSet::new());
    let mut shelves = Vec::new();
    for value in list("shelf", value, found) {
        let Some(table) = table("shelf", value, found) else { continue };
        let Some(own) = shelf(table, value.span().start, found) else { continue };
        let mut twice = |key: &str, what: String| {
            let at = table.get(key).map_or(value.span().start, |value| value.span().start);
            wrong(found, at, what);
        };
        if !places.insert(own.redfish.clone()) {
            twice("redfish", format!("two shelves are at {}", own.redfish));
        }
        if !names.insert(own.name()) {
            twice("name", format!("two shelves have the name {}", own.name()));
        }
        shelves.push(own);
    }
    shelves
}

fn shelf(table: &DeTable<'_>, at: usize, found: &mut Found) -> Option<Shelf> {
    unknown("a shelf", table, &KEYS, found);
    let name = table.get("name").and_then(|value| text("name", value, found));
    let mut needed = |key: &str, what: &str| -> Option<(String, usize)> {
        let Some(value) = table.get(key) else {
            wrong(found, at, format!("a shelf needs {key}: {what}"));
            return None;
        };
        Some((text(key, value, found)?, value.span().start))
    };
    let place = needed("redfish", "https://HOST:PORT of its management service");
    let print = needed("fingerprint", "the SHA-256 of the service's certificate");
    let credentials = needed("credentials", "a file with the line USER:PASSWORD");
    let redfish = place.and_then(|(text, at)| {
        let url = Url::parse(&text);
        if url.is_none() {
            // It may have a password, and is not said again.
            wrong(found, at, NO_URL.to_owned());
        }
        url
    });
    let fingerprint = print.and_then(|(text, at)| {
        let print = fingerprint(&text);
        if print.is_none() {
            wrong(found, at, format!("fingerprint must be 64 hexadecimal digits, not {text}"));
        }
        print
    });
    let (redfish, fingerprint) = (redfish?, fingerprint?);
    Some(Shelf { redfish, fingerprint, credentials: credentials?.0.into(), name })
}

/// A SHA-256 of 64 hexadecimal digits, with colons or without.
fn fingerprint(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u32> =
        text.chars().filter(|c| *c != ':').map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let byte = |two: &[u32]| two.iter().fold(0, |high, low| high * 16 + low) as u8;
    let bytes: Vec<u8> = digits.chunks(2).map(byte).collect();
    if digits.len() == 64 { bytes.try_into().ok() } else { None }
}

/// What a service is told, so that it answers.
pub struct Credentials(Secret);

impl Credentials {
    /// Reads a file. Waits for the file system.
    ///
    /// # Errors
    /// Why it is of no use, without its path.
    pub fn read(path: &Path) -> Result<Self, String> {
        let user = geteuid().as_raw();
        Self::of(path, |owner| owner == 0 || owner == user)
    }

    /// Whether a file is of use. Root asks for a daemon that may be another user. Waits for the
    /// file system.
    ///
    /// # Errors
    /// Why it is of no use, without its path.
    pub fn check(path: &Path) -> Result<(), String> {
        match geteuid().is_root() {
            true => Self::of(path, |_| true).map(drop),
            false => Self::read(path).map(drop),
        }
    }

    /// Reads a file of somebody who may own it.
    fn of(path: &Path, may_own: impl Fn(u32) -> bool) -> Result<Self, String> {
        // Nobody waits for who writes to a pipe.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let file = File::from(open(path, flags, Mode::empty()).map_err(|own| own.to_string())?);
        let about = file.metadata().map_err(|error| error.to_string())?;
        if !about.is_file() {
            return Err("it is no regular file".to_owned());
        }
        if !may_own(about.uid()) {
            return Err(format!("it is user {}'s: chown it to the daemon's user", about.uid()));
        }
        if about.mode() & 0o077 != 0 {
            return Err("others than its owner can use it: chmod 600".to_owned());
        }
        let mut whole = String::new();
        let read = file.take(BYTES + 1).read_to_string(&mut whole);
        read.map_err(|error| error.to_string())?;
        let line = whole.strip_suffix('\n').unwrap_or(&whole);
        let is_one = line.len() as u64 <= BYTES && !line.chars().any(char::is_control);
        match line.split_once(':') {
            Some((user, password)) if is_one && !user.is_empty() && !password.is_empty() => {
                let text = Base64::encode_string(line.as_bytes());
                Ok(Self(Secret::new(format!("Basic {text}"))))
            }
            _ => Err("it has not one line USER:PASSWORD".to_owned()),
        }
    }

    /// What the header `Authorization` says.
    pub fn header(&self) -> &str {
        self.0.reveal()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn urls_are_read_in_one_form() {
        for (text, authority) in [
            ("https://Shelf.example:8443", "shelf.example:8443"),
            ("https://192.0.2.7:443/", "192.0.2.7:443"),
            ("https://[2001:db8::7]:1", "[2001:db8::7]:1"),
        ] {
            assert_eq!(Url::parse(text).expect(text).authority(), authority);
        }
        for text in [
            "",
            "http://shelf:1",
            "https://shelf",
            "https://shelf:",
            "https://shelf:0",
            "https://shelf:+1",
            "https://shelf:65536",
            "https://shelf:1/redfish",
            "https://user@shelf:1",
            "https://::1:1",
            "https://[shelf]:1",
            "https://:1",
        ] {
            assert_eq!(Url::parse(text), None, "{text}");
        }
    }

    #[test]
    fn credentials_are_one_line_of_a_file_that_is_its_owners_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("own");
        let write = |text: &str, mode: u32| {
            std::fs::write(&path, text).expect("written");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("set");
            Credentials::read(&path).map(|own| own.header().to_owned())
        };
        let refused = |path: &Path| Credentials::read(path).err().expect("is of no use");
        assert_eq!(write("admin:a:b\n", 0o600).as_deref(), Ok("Basic YWRtaW46YTpi"));
        assert_eq!(write("admin:x", 0o400).as_deref(), Ok("Basic YWRtaW46eA=="));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("set");
        for text in ["", "admin", ":x", "admin:", "admin:x\nmore\n", &"x:".repeat(600)] {
            let why = write(text, 0o600).expect_err(text);
            assert!(why.contains("one line"), "{why}");
        }
        if geteuid().is_root() {
            write("admin:x\n", 0o600).expect("root's");
            std::os::unix::fs::chown(&path, Some(4242), None).expect("root may");
            assert!(refused(&path).contains("user 4242's"));
            assert_eq!(Credentials::check(&path), Ok(()));
            std::os::unix::fs::chown(&path, Some(0), None).expect("root may");
        }
        assert!(write("admin:x\n", 0o640).expect_err("others").contains("chmod 600"));
        assert!(refused(folder.path()).contains("no regular file"));
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("is there");
        assert!(made.success());
        assert!(refused(&pipe).contains("no regular file"));
        assert!(refused(&folder.path().join("none")).contains("No such file"));
    }
}
