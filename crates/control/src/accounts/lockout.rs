//! How long somebody has to wait who logs in with wrong passwords.
//!
//! | Failures are counted for | free | then the wait doubles from 1 s to |
//! |---|---|---|
//! | an account from one address | 5 | 15 minutes |
//! | an address, whatever the account | 20 | 15 minutes |
//! | an account, from wherever | 50 | 30 seconds |
//!
//! On the socket a user who has no role there counts as an address does.
//!
//! The last row slows down who guesses from many addresses. It does not count for an address from
//! which the account has logged in before, so that nobody can keep the account out there. Failures
//! are forgotten after 15 minutes without another, those of an account from an address also when it
//! logs in.
//!
//! Invariants
//! - Each table has at most [`MOST`] rows: what failed longest ago is forgotten first.
//! - A wait is no failure: who asks while it lasts does not make it longer.

use crate::peer::Origin;
use redfish::access::{FAILURES_FREE, LOCKOUT_SECONDS};
use std::collections::BTreeMap;
use std::time::Duration;

/// Rows of a table.
pub const MOST: usize = 1024;

/// How long a failure counts.
const COUNTS: Duration = Duration::from_secs(LOCKOUT_SECONDS);

/// So many failures are free, then there is a wait of up to so many seconds.
#[derive(Clone, Copy)]
struct Rule {
    free: u32,
    most: Duration,
}

const PAIR: Rule = Rule { free: FAILURES_FREE, most: COUNTS };
const ADDRESS: Rule = Rule { free: 20, most: COUNTS };
const ACCOUNT: Rule = Rule { free: 50, most: Duration::from_secs(30) };

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    last: Duration,
}

struct Table<K>(BTreeMap<K, Failures>);

impl<K: Ord + Clone> Table<K> {
    fn wait(&self, key: &K, rule: Rule, now: Duration) -> Duration {
        let Some(known) = self.0.get(key).filter(|known| known.counts(now)) else {
            return Duration::ZERO;
        };
        let Some(over) = known.count.checked_sub(rule.free) else { return Duration::ZERO };
        let delay = Duration::from_secs(1_u64.checked_shl(over).unwrap_or(u64::MAX)).min(rule.most);
        (known.last + delay).saturating_sub(now)
    }

    fn failed(&mut self, key: K, now: Duration) {
        let known = self.0.get(&key).filter(|known| known.counts(now));
        let count = known.map_or(0, |known| known.count).saturating_add(1);
        if self.0.len() >= MOST && !self.0.contains_key(&key) {
            self.0.retain(|_, known| known.counts(now));
            let oldest = self.0.iter().min_by_key(|(_, known)| known.last);
            if let Some(oldest) =
                oldest.map(|(key, _)| key.clone()).filter(|_| self.0.len() >= MOST)
            {
                self.0.remove(&oldest);
            }
        }
        self.0.insert(key, Failures { count, last: now });
    }
}

impl Failures {
    fn counts(&self, now: Duration) -> bool {
        now < self.last + COUNTS
    }
}

/// What failed, and where logins came from. Times are those of one clock.
pub struct Lockout {
    pairs: Table<(String, Origin)>,
    addresses: Table<Origin>,
    accounts: Table<String>,
    /// From where accounts have logged in, and when last.
    known: BTreeMap<(String, Origin), Duration>,
}

impl Lockout {
    /// Nobody has failed.
    pub fn new() -> Self {
        let (pairs, addresses, accounts) = Default::default();
        Self {
            pairs: Table(pairs),
            addresses: Table(addresses),
            accounts: Table(accounts),
            known: BTreeMap::new(),
        }
    }

    /// How many rows each table has.
    #[cfg(test)]
    pub fn sizes(&self) -> [usize; 4] {
        let [pairs, known] = [self.pairs.0.len(), self.known.len()];
        [pairs, self.addresses.0.len(), self.accounts.0.len(), known]
    }

    /// How long a login has to wait; zero: it need not.
    pub fn wait(&self, account: &str, from: Origin, now: Duration) -> Duration {
        let pair = (account.to_owned(), from);
        let of_account = match self.known.contains_key(&pair) {
            true => Duration::ZERO,
            false => self.accounts.wait(&pair.0, ACCOUNT, now),
        };
        let of_pair = self.pairs.wait(&pair, PAIR, now);
        of_pair.max(self.addresses.wait(&from, ADDRESS, now)).max(of_account)
    }

    /// A login failed.
    pub fn failed(&mut self, account: &str, from: Origin, now: Duration) {
        self.pairs.failed((account.to_owned(), from), now);
        self.addresses.failed(from, now);
        self.accounts.failed(account.to_owned(), now);
    }

    /// A login was right.
    pub fn succeeded(&mut self, account: &str, from: Origin, now: Duration) {
        let pair = (account.to_owned(), from);
        self.pairs.0.remove(&pair);
        if self.known.len() >= MOST && !self.known.contains_key(&pair) {
            let oldest = self.known.iter().min_by_key(|(_, last)| **last);
            if let Some(oldest) = oldest.map(|(pair, _)| pair.clone()) {
                self.known.remove(&oldest);
            }
        }
        self.known.insert(pair, now);
    }

    /// An account is no more, or has another password: where it came from counts for nothing.
    pub fn forget(&mut self, account: &str) {
        self.known.retain(|(own, _), _| own != account);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(1_000_000 + seconds)
    }

    fn ip(last: u8) -> Origin {
        Origin::Network(IpAddr::from([192, 0, 2, last]))
    }

    fn fail(lockout: &mut Lockout, account: &str, from: Origin, times: u32, now: Duration) {
        (0..times).for_each(|_| lockout.failed(account, from, now));
    }

    #[test]
    fn the_wait_grows_and_ends() {
        let lockout = &mut Lockout::new();
        fail(lockout, "a", ip(1), 4, at(0));
        assert_eq!(lockout.wait("a", ip(1), at(0)), Duration::ZERO);
        for (failure, seconds) in [1, 2, 4, 8, 16].into_iter().enumerate() {
            lockout.failed("a", ip(1), at(failure as u64));
            let wait = Duration::from_secs(seconds);
            assert_eq!(lockout.wait("a", ip(1), at(failure as u64)), wait);
            assert_eq!(lockout.wait("a", ip(1), at(failure as u64) + wait), Duration::ZERO);
        }
        fail(lockout, "a", ip(1), 100, at(10));
        assert_eq!(lockout.wait("a", ip(1), at(10)), COUNTS, "at most");
        assert_eq!(lockout.wait("a", ip(1), at(10) + COUNTS), Duration::ZERO);
        lockout.failed("a", ip(1), at(10) + COUNTS);
        assert_eq!(lockout.wait("a", ip(1), at(10) + COUNTS), Duration::ZERO, "begins anew");
    }

    #[test]
    fn an_account_is_kept_out_nowhere_else_and_nobody_for_ever() {
        let lockout = &mut Lockout::new();
        lockout.succeeded("admin", ip(1), at(0));
        fail(lockout, "admin", ip(2), 200, at(1));
        assert_eq!(lockout.wait("admin", ip(1), at(1)), Duration::ZERO, "it was here before");
        assert_eq!(lockout.wait("admin", ip(3), at(1)), ACCOUNT.most, "it was not");
        assert_eq!(lockout.wait("other", ip(2), at(1)), COUNTS, "the address has to wait");
        assert_eq!(lockout.wait("other", ip(3), at(1)), Duration::ZERO);
        lockout.forget("admin");
        assert_eq!(lockout.wait("admin", ip(1), at(1)), ACCOUNT.most);
    }

    #[test]
    fn a_right_password_ends_the_wait_of_its_account() {
        let lockout = &mut Lockout::new();
        fail(lockout, "a", ip(1), 6, at(0));
        lockout.succeeded("a", ip(1), at(3));
        fail(lockout, "a", ip(1), 4, at(4));
        assert_eq!(lockout.wait("a", ip(1), at(4)), Duration::ZERO);
    }

    #[test]
    fn tables_have_an_end() {
        let lockout = &mut Lockout::new();
        for number in 0..5 * MOST {
            let address = Origin::Network(IpAddr::from((number as u32).to_be_bytes()));
            fail(lockout, &format!("a{number}"), address, 1, at(number as u64 / 100));
            lockout.succeeded(&format!("b{number}"), address, at(number as u64 / 100));
        }
        assert_eq!(lockout.sizes(), [MOST; 4]);
    }
}
