//! Names of namespaces behind NVMe over Fabrics.
//!
//! `nvme://NQN/NSID` is one, whichever path leads there; `nvme+tcp://ADDR:PORT/NQN/NSID` is the
//! same, and a path to it. `*` stands for any subsystem or namespace that is found there.

use core::fmt;
use core::str::FromStr;
use nvme::nqn::Nqn;
use std::path::{Path, PathBuf};
use thiserror::Error;

const ANY_PATH: &str = "nvme://";
const TCP: &str = "nvme+tcp://";
const ANY: &str = "*";

/// Where a controller answers: an address or a host's name, and a port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// The address, or a name that leads to it; of IPv6 without brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

/// A namespace, or several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Name {
    /// A path to it.
    pub place: Option<Place>,
    /// Its subsystem; `None`: any that is found.
    pub subsystem: Option<Nqn>,
    /// Its number there; `None`: any that is found.
    pub namespace: Option<u32>,
}

/// Why a text is no such name.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum BadName {
    /// Another form.
    #[error(
        "{0:?} is not the name of a namespace: write nvme://NQN/NSID or \
         nvme+tcp://ADDR:PORT/NQN/NSID"
    )]
    Form(String),
    /// Not an address and a port.
    #[error("{0:?} is not an address and a port: write 192.0.2.1:4420 or [2001:db8::1]:4420")]
    Place(String),
    /// Not a subsystem's name.
    #[error("{0:?} is not the name of a subsystem: {1}")]
    Subsystem(String, String),
    /// Not a number of a namespace.
    #[error("{0:?} is not the number of a namespace: write one from 1 on, or *")]
    Namespace(String),
    /// Without an address nothing can be found.
    #[error("* stands for what is found at an address: write nvme+tcp://ADDR:PORT/NQN/NSID")]
    Nowhere,
}

impl Place {
    /// A port of an address, of IPv6 without brackets, or of a host by its name.
    ///
    /// # Errors
    /// It can be neither.
    pub fn new(host: &str, port: u16) -> Result<Self, BadName> {
        let is_v6 = host.parse::<std::net::Ipv6Addr>().is_ok();
        let is_name = !host.is_empty() && !host.contains([':', '[', ']', '/']);
        let place = Self { host: host.to_owned(), port };
        match port > 0 && (is_v6 || is_name) {
            true => Ok(place),
            false => Err(BadName::Place(place.to_string())),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        // Only an address of IPv6 stands in brackets, and only in them.
        let host = match bare {
            Some(v6) => v6.parse::<std::net::Ipv6Addr>().ok()?.to_string(),
            None => Some(host).filter(|host| !host.contains(':'))?.to_owned(),
        };
        Self::new(&host, port.parse().ok()?).ok()
    }
}

impl FromStr for Place {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        Self::parse(text).ok_or_else(|| BadName::Place(text.to_owned()))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl Name {
    /// The name that a path is meant to be, if it is one of those.
    pub fn of(path: &Path) -> Option<Result<Self, BadName>> {
        let text = path.to_str()?;
        let is_one = text.starts_with(ANY_PATH) || text.starts_with(TCP);
        is_one.then(|| text.parse())
    }

    /// The one name of a namespace.
    pub fn whole(subsystem: &Nqn, namespace: u32) -> PathBuf {
        PathBuf::from(format!("{ANY_PATH}{subsystem}/{namespace}"))
    }
}

impl FromStr for Name {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        let form = || BadName::Form(text.to_owned());
        let (place, rest) = match (text.strip_prefix(TCP), text.strip_prefix(ANY_PATH)) {
            (Some(rest), _) => {
                let (place, rest) = rest.split_once('/').ok_or_else(form)?;
                (Some(place.parse()?), rest)
            }
            (None, Some(rest)) => (None, rest),
            (None, None) => return Err(form()),
        };
        // A subsystem's name may have strokes.
        let (subsystem, namespace) = rest.rsplit_once('/').ok_or_else(form)?;
        let subsystem = match subsystem {
            ANY => None,
            name => Some(
                Nqn::new(name)
                    .map_err(|why| BadName::Subsystem(name.to_owned(), why.to_string()))?,
            ),
        };
        let namespace = match namespace {
            ANY => None,
            number => {
                let number: Option<u32> = number.parse().ok();
                let is_one = |number: &u32| (1..u32::MAX).contains(number);
                let found = number.filter(is_one);
                Some(found.ok_or_else(|| BadName::Namespace(namespace.to_owned()))?)
            }
        };
        if place.is_none() && (subsystem.is_none() || namespace.is_none()) {
            return Err(BadName::Nowhere);
        }
        Ok(Self { place, subsystem, namespace })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{TCP}{place}/")?,
            None => f.write_str(ANY_PATH)?,
        }
        match &self.subsystem {
            Some(subsystem) => write!(f, "{subsystem}/")?,
            None => write!(f, "{ANY}/")?,
        }
        match self.namespace {
            Some(namespace) => write!(f, "{namespace}"),
            None => f.write_str(ANY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_read_and_written() {
        for text in [
            "nvme://nqn.2026-11.org.example:s/1",
            "nvme+tcp://192.0.2.1:4420/nqn.2026-11.org.example:s/4294967294",
            "nvme+tcp://[2001:db8::1]:4420/nqn.2026-11.org.example:a/b/1",
            "nvme+tcp://shelf.example.org:8009/*/*",
            "nvme+tcp://shelf:1/*/2",
        ] {
            let name: Name = text.parse().unwrap();
            assert_eq!(name.to_string(), text);
            assert_eq!(Name::of(Path::new(text)), Some(Ok(name)));
        }
        assert_eq!(Name::of(Path::new("/dev/nvme0n1")), None);
        assert_eq!(Name::of(Path::new("nvme0n1")), None);
    }

    #[test]
    fn what_is_no_name_is_told_so() {
        for (text, what) in [
            ("nvme://", "write nvme://"),
            ("nvme+tcp://192.0.2.1:4420", "write nvme://"),
            ("nvme+rdma://192.0.2.1:4420/nqn.2026-11.org.example:s/1", "write nvme://"),
            ("nvme+tcp://192.0.2.1/nqn.2026-11.org.example:s/1", "an address and a port"),
            ("nvme+tcp://2001:db8::1:4420/nqn.2026-11.org.example:s/1", "an address and a port"),
            ("nvme+tcp://[192.0.2.1]:1/nqn.2026-11.org.example:s/1", "an address and a port"),
            ("nvme+tcp://:4420/nqn.2026-11.org.example:s/1", "an address and a port"),
            ("nvme+tcp://a:0/nqn.2026-11.org.example:s/1", "an address and a port"),
            ("nvme://s/1", "not the name of a subsystem"),
            ("nvme://nqn.2026-11.org.example:s/0", "number of a namespace"),
            ("nvme://nqn.2026-11.org.example:s/4294967295", "number of a namespace"),
            ("nvme://nqn.2026-11.org.example:s/one", "number of a namespace"),
            ("nvme://*/1", "found at an address"),
            ("nvme://nqn.2026-11.org.example:s/*", "found at an address"),
        ] {
            let told = text.parse::<Name>().unwrap_err().to_string();
            assert!(told.contains(what), "{text}: {told}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_name_or_none(text in "(nvme(\\+tcp)?://)?[a-z0-9:.*/\\[\\]]{0,60}") {
            if let Ok(name) = text.parse::<Name>() {
                prop_assert_eq!(name.to_string().parse(), Ok(name));
            }
        }
    }
}
