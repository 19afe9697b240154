//! How long somebody has to wait who logs in with wrong passwords.
//!
//! | Failures are counted for | free | then the wait doubles from 1 s to |
//! |---|---|---|
//! | an account from one address | 5 | 15 minutes |
//! | an address, whatever the account | 20 | 15 minutes, of loopback 60 seconds |
//! | an account, from wherever | 50 | 30 seconds |
//!
//! On the socket a user who has no role there counts as an address does.
//!
//! The last row slows down who guesses from many addresses. An account that has logged in from an
//! address before waits there for its own failures only, and at most 30 seconds: nobody can keep it
//! out. One wrong password again and again, as of a client that has an old one, counts once but for
//! its account from its address. Failures are forgotten after 15 minutes without another, those of
//! an account from an address also when it logs in, all of an account when it has a new password.
//!
//! Invariants
//! - Each table has at most [`MOST`] rows: what failed least often is forgotten first.
//! - A wait is no failure: who asks while it lasts does not make it longer.

use crate::peer::Origin;
use redfish::access::{FAILURES_FREE, LOCKOUT_SECONDS};
use std::collections::{BTreeMap, BTreeSet};
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
/// The machine itself, which may be all users of a proxy.
const LOOPBACK: Rule = Rule { most: Duration::from_secs(60), ..ADDRESS };
const KNOWN_PAIR: Rule = Rule { most: ACCOUNT.most, ..PAIR };

/// Stands for a password that was wrong; none if there is none.
pub type Mark = Option<[u8; 32]>;

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    last: Duration,
    /// The last password.
    mark: Mark,
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

    /// Counts a failure; whether it was with another password than the one before.
    fn failed(&mut self, key: K, mark: Mark, now: Duration) -> bool {
        let known = self.0.get(&key).filter(|known| known.counts(now));
        let count = known.map_or(0, |known| known.count).saturating_add(1);
        let is_other = mark.is_none() || known.is_none_or(|known| known.mark != mark);
        if self.0.len() >= MOST && !self.0.contains_key(&key) {
            self.0.retain(|_, known| known.counts(now));
            let least = self.0.iter().min_by_key(|(_, known)| (known.count, known.last));
            let least = least.map(|(key, _)| key.clone()).filter(|_| self.0.len() >= MOST);
            if let Some(least) = least {
                self.0.remove(&least);
            }
        }
        self.0.insert(key, Failures { count, last: now, mark });
        is_other
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
        if self.known.contains_key(&pair) {
            return self.pairs.wait(&pair, KNOWN_PAIR, now);
        }
        let of_pair = self.pairs.wait(&pair, PAIR, now);
        let of_account = self.accounts.wait(&pair.0, ACCOUNT, now);
        let rule = if from.is_loopback() { LOOPBACK } else { ADDRESS };
        of_pair.max(self.addresses.wait(&from, rule, now)).max(of_account)
    }

    /// Accounts that have to wait: from an address at least.
    pub fn locked(&self, now: Duration) -> BTreeSet<String> {
        let waits = |pair: &&(String, Origin)| {
            let rule = if self.known.contains_key(pair) { KNOWN_PAIR } else { PAIR };
            !self.pairs.wait(pair, rule, now).is_zero()
        };
        let pairs = self.pairs.0.keys().filter(waits).map(|(account, _)| account);
        let waits = |account: &&String| !self.accounts.wait(account, ACCOUNT, now).is_zero();
        pairs.chain(self.accounts.0.keys().filter(waits)).cloned().collect()
    }

    /// A login failed with a password that this stands for.
    pub fn failed(&mut self, account: &str, from: Origin, mark: Mark, now: Duration) {
        if self.pairs.failed((account.to_owned(), from), mark, now) {
            self.addresses.failed(from, None, now);
            self.accounts.failed(account.to_owned(), None, now);
        }
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

    /// An account has another password, may not log in, or is unlocked: what failed counts for
    /// nothing.
    pub fn renew(&mut self, account: &str) {
        self.pairs.0.retain(|(own, _), _| own != account);
        self.accounts.0.remove(account);
    }

    /// An account is no more: where it came from counts for nothing, either.
    pub fn forget(&mut self, account: &str) {
        self.renew(account);
        self.known.retain(|(own, _), _| own != account);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Peer;
    use std::net::IpAddr;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(1_000_000 + seconds)
    }

    fn ip(last: u8) -> Origin {
        Origin::Network(IpAddr::from([192, 0, 2, last]))
    }

    fn fail(lockout: &mut Lockout, account: &str, from: Origin, times: u32, now: Duration) {
        (0..times).for_each(|_| lockout.failed(account, from, None, now));
    }

    #[test]
    fn the_wait_grows_and_ends() {
        let lockout = &mut Lockout::new();
        fail(lockout, "a", ip(1), 4, at(0));
        assert_eq!(lockout.wait("a", ip(1), at(0)), Duration::ZERO);
        for (failure, seconds) in [1, 2, 4, 8, 16].into_iter().enumerate() {
            lockout.failed("a", ip(1), None, at(failure as u64));
            let wait = Duration::from_secs(seconds);
            assert_eq!(lockout.wait("a", ip(1), at(failure as u64)), wait);
            assert_eq!(lockout.wait("a", ip(1), at(failure as u64) + wait), Duration::ZERO);
        }
        fail(lockout, "a", ip(1), 100, at(10));
        assert_eq!(lockout.wait("a", ip(1), at(10)), COUNTS, "at most");
        assert_eq!(lockout.wait("a", ip(1), at(10) + COUNTS), Duration::ZERO);
        lockout.failed("a", ip(1), None, at(10) + COUNTS);
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
        // What others do from its address keeps it out as little as what it did itself.
        fail(lockout, "other", ip(1), 200, at(1));
        assert_eq!(lockout.wait("admin", ip(1), at(1)), Duration::ZERO);
        assert_eq!(lockout.wait("new", ip(1), at(1)), COUNTS);
        fail(lockout, "admin", ip(1), 200, at(1));
        assert_eq!(lockout.wait("admin", ip(1), at(1)), ACCOUNT.most);
        let locked = |lockout: &Lockout| lockout.locked(at(1)).into_iter().collect::<Vec<_>>();
        assert_eq!(locked(lockout), ["admin", "other"]);
        assert!(lockout.locked(at(1) + COUNTS).is_empty());
        lockout.renew("admin");
        assert_eq!(locked(lockout), ["other"]);
        assert_eq!(lockout.wait("admin", ip(1), at(1)), Duration::ZERO);
        assert_eq!(lockout.wait("admin", ip(3), at(1)), Duration::ZERO);
        lockout.forget("admin");
        assert_eq!(lockout.wait("admin", ip(1), at(1)), COUNTS, "as for all of the address");
    }

    #[test]
    fn the_machine_itself_waits_for_a_minute_at_most() {
        for address in ["127.0.0.1", "::1"] {
            let address = address.parse().expect("an address");
            let from = Peer::Network { address }.origin(false);
            let lockout = &mut Lockout::new();
            fail(lockout, "other", from, 200, at(1));
            assert_eq!(lockout.wait("admin", from, at(1)), LOOPBACK.most);
            assert_eq!(lockout.wait("other", from, at(1)), COUNTS);
        }
    }

    #[test]
    fn a_client_with_an_old_password_keeps_nobody_else_out() {
        let lockout = &mut Lockout::new();
        for second in 0..100 {
            lockout.failed("scraper", ip(1), Some([7; 32]), at(second));
        }
        assert!(lockout.wait("scraper", ip(1), at(100)) > Duration::ZERO);
        assert_eq!(lockout.wait("other", ip(1), at(100)), Duration::ZERO);
        assert_eq!(lockout.wait("scraper", ip(2), at(100)), Duration::ZERO);
        // Who guesses has another one each time.
        for second in 0..100 {
            lockout.failed("scraper", ip(1), Some([second; 32]), at(100));
        }
        assert_eq!(lockout.wait("other", ip(1), at(100)), COUNTS);
    }

    #[test]
    fn names_that_are_made_up_push_nobody_out() {
        let lockout = &mut Lockout::new();
        fail(lockout, "admin", ip(1), 60, at(0));
        for number in 0..2 * MOST {
            let address = Origin::Network(IpAddr::from((number as u32).to_be_bytes()));
            fail(lockout, &format!("a{number}"), address, 1, at(1));
        }
        assert_eq!(lockout.wait("admin", ip(2), at(1)), ACCOUNT.most - Duration::from_secs(1));
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
