//! Names and passwords that were found right a moment ago, so that clients which send them with
//! each request do not cost a computation each.
//!
//! Invariants
//! - What is kept is a keyed hash (HMAC, RFC 2104) under a key of this process only.
//! - It counts for [`LASTS`] after the password was found right, and no longer: a use does not
//!   prolong it.
//! - An account that is used so from one address is told as a login once in [`TOLD`], so that a
//!   scraper fills neither the audit log nor the events.

use crate::chance;
use crate::peer::Origin;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::time::Duration;
use subtle::ConstantTimeEq;

/// How long a password that was found right counts.
pub const LASTS: Duration = Duration::from_secs(60);

/// How long the same account from the same address is no new login.
const TOLD: Duration = Duration::from_secs(24 * 60 * 60);

/// How many of these are known at most; others are told each time.
const TOLD_MOST: usize = 256;

/// The block of SHA-256, in bytes.
const BLOCK: usize = 64;

/// What was found right. Times are those of one clock.
pub struct Basic {
    /// None: the kernel gave no random bytes, and nothing is known.
    key: Option<[u8; BLOCK]>,
    known: BTreeMap<String, ([u8; 32], Duration)>,
    /// When who was told.
    told: BTreeMap<(String, Origin), Duration>,
}

impl Basic {
    /// Nothing was.
    pub fn new() -> Self {
        Self { key: chance::bytes().ok(), known: BTreeMap::new(), told: BTreeMap::new() }
    }

    /// What stands for a name and a password, in this process only.
    pub fn hash(&self, name: &str, password: &str) -> Option<[u8; 32]> {
        let key = self.key?;
        let pad = |with: u8| key.map(|byte| byte ^ with);
        // Names have no such byte.
        let text = format!("{name}\0{password}");
        let inner = Sha256::new().chain_update(pad(0x36)).chain_update(text).finalize();
        Some(Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().into())
    }

    /// Whether this password of this name was found right a moment ago.
    pub fn knows(&self, name: &str, password: &str, now: Duration) -> bool {
        let (Some(given), Some((kept, since))) = (self.hash(name, password), self.known.get(name))
        else {
            return false;
        };
        now < *since + LASTS && bool::from(kept.ct_eq(&given))
    }

    /// It was found right now.
    pub fn learn(&mut self, name: &str, password: &str, now: Duration) {
        let Some(hash) = self.hash(name, password) else { return };
        self.known.retain(|_, (_, since)| now < *since + LASTS);
        self.known.insert(name.to_owned(), (hash, now));
    }

    /// Whether a login is to be told; it is then.
    pub fn is_news(&mut self, name: &str, origin: Origin, now: Duration) -> bool {
        self.told.retain(|_, since| now < *since + TOLD);
        let key = (name.to_owned(), origin);
        if self.told.contains_key(&key) {
            return false;
        }
        if self.told.len() < TOLD_MOST {
            self.told.insert(key, now);
        }
        true
    }

    /// A password of this name was wrong: the next that is right is told.
    pub fn doubt(&mut self, name: &str, origin: Origin) {
        self.told.remove(&(name.to_owned(), origin));
    }

    /// What was found right counts no more, as after a minute.
    #[cfg(test)]
    pub fn expire(&mut self) {
        self.known.clear();
    }

    /// How many names there are.
    #[cfg(test)]
    pub fn size(&self) -> usize {
        self.known.len()
    }

    /// What was found right of this name counts no more.
    pub fn forget(&mut self, name: &str) {
        self.known.remove(name);
        self.told.retain(|(known, _), _| known != name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scraper_logs_in_once_a_day() {
        let mut basic = Basic::new();
        let from = |last| Origin::Network(std::net::Ipv4Addr::new(192, 0, 2, last).into());
        let at = |seconds| Duration::from_secs(seconds);
        let told = (0..1439).filter(|minute| basic.is_news("p", from(1), at(60 * minute))).count();
        assert_eq!(told, 1);
        assert!(basic.is_news("p", from(2), at(60)) && basic.is_news("q", from(1), at(60)));
        assert!(basic.is_news("p", from(1), at(24 * 60 * 60)));
        basic.forget("p");
        assert!(basic.is_news("p", from(1), at(24 * 60 * 60 + 1)), "a new password is news");
        assert!(!basic.is_news("q", from(1), at(60 * 60)));
        basic.doubt("q", from(1));
        assert!(basic.is_news("q", from(1), at(60 * 60)), "one was wrong meanwhile");
    }

    #[test]
    fn it_counts_for_a_minute_and_for_this_password_only() {
        let at = Duration::from_secs;
        let mut basic = Basic::new();
        assert!(!basic.knows("a", "secret", at(10)));
        basic.learn("a", "secret", at(10));
        assert!(basic.knows("a", "secret", at(10)) && basic.knows("a", "secret", at(69)));
        assert!(!basic.knows("a", "secre", at(10)) && !basic.knows("b", "secret", at(10)));
        assert!(!basic.knows("a", "secret", at(70)));
        basic.learn("a", "secret", at(80));
        basic.forget("a");
        assert!(!basic.knows("a", "secret", at(80)));
        basic.learn("a", "secret", at(80));
        basic.learn("b", "secret", at(200));
        assert_eq!(basic.known.len(), 1);
    }
}
