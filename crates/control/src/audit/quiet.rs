//! Which refusals have a line of the audit log: whoever asks for what is refused again and again
//! must not push out what the log had before.
//!
//! | who is refused | lines in [`SPAN`] |
//! |---|---|
//! | an account, or a user of the machine who may something | [`KNOWN`] each |
//! | somebody who is not known, by network or user | [`NOBODY`] each |
//! | all who are not known together | [`NOBODIES`] |
//!
//! What has no line is counted; the next line of the same says how many there were.
//!
//! Invariant: at most [`MOST`] are counted one by one; those beyond share one row.

use crate::caller::Caller;
use crate::peer::Origin;
use std::collections::BTreeMap;
use std::time::Duration;

/// So long lines are counted together.
const SPAN: Duration = Duration::from_secs(60);
/// Lines of somebody who is known.
const KNOWN: u32 = 60;
/// Lines of somebody who is not.
const NOBODY: u32 = 20;
/// Lines of all who are not known.
const NOBODIES: u32 = 300;
/// Most rows.
const MOST: usize = 1024;

/// Who counts as one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Key {
    /// By name, on the socket or not.
    Known(String, bool),
    Nobody(Origin),
    /// Those for whom there is no row.
    Others,
    /// All who are not known.
    Nobodies,
}

#[derive(Clone, Copy, Debug, Default)]
struct Row {
    since: Duration,
    said: u32,
    left_out: u64,
}

impl Row {
    /// Whether there may be another line.
    fn has_room(&mut self, most: u32, now: Duration) -> bool {
        if now >= self.since.saturating_add(SPAN) {
            (self.since, self.said) = (now, 0);
        }
        self.said < most
    }
}

/// Who was refused lately, and how often.
#[derive(Debug, Default)]
pub struct Quiet {
    rows: BTreeMap<Key, Row>,
}

impl Quiet {
    /// Whether a refusal of somebody has a line, and how many before it had none. Moments are of a
    /// clock that nobody sets.
    pub fn take(&mut self, caller: &Caller, now: Duration) -> Option<u64> {
        let is_known = caller.role.is_some();
        let key = match caller.role {
            Some(_) => Key::Known(caller.name.clone(), matches!(caller.origin, Origin::Socket(_))),
            None => Key::Nobody(caller.origin),
        };
        let has_room = is_known || self.row(Key::Nobodies, now).has_room(NOBODIES, now);
        let row = self.row(key, now);
        let most = if is_known { KNOWN } else { NOBODY };
        if !row.has_room(most, now) || !has_room {
            row.left_out = row.left_out.saturating_add(1);
            return None;
        }
        row.said += 1;
        let left_out = core::mem::take(&mut row.left_out);
        if !is_known {
            self.row(Key::Nobodies, now).said += 1;
        }
        Some(left_out)
    }

    fn row(&mut self, key: Key, now: Duration) -> &mut Row {
        if self.rows.len() >= MOST && !self.rows.contains_key(&key) {
            // Those whose time is over, unless something was left out that is to be said.
            let is_old = |row: &Row| now >= row.since.saturating_add(SPAN) && row.left_out == 0;
            self.rows.retain(|_, row| !is_old(row));
        }
        let is_full = self.rows.len() >= MOST && !self.rows.contains_key(&key);
        let key = if is_full && key != Key::Nobodies { Key::Others } else { key };
        self.rows.entry(key).or_insert(Row { since: now, ..Row::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redfish::access::Role;

    fn nobody(number: u32) -> Caller {
        let origin = Origin::Network(std::net::Ipv4Addr::from_bits(number).into());
        Caller { origin, ..Caller::default() }
    }

    #[test]
    fn who_is_refused_again_and_again_has_a_few_lines() {
        let (mut quiet, second) = (Quiet::default(), Duration::from_secs(1));
        let lines = (0..10_000).filter(|_| quiet.take(&nobody(1), second).is_some()).count();
        assert_eq!(lines, NOBODY as usize);
        assert_eq!(quiet.take(&nobody(2), second), Some(0), "another has lines of its own");
        let known = Caller { name: "ana".into(), role: Some(Role::ReadOnly), ..nobody(1) };
        assert_eq!(quiet.take(&known, second), Some(0), "who is known is no nobody");
        assert_eq!(quiet.take(&nobody(1), second + SPAN), Some(10_000 - u64::from(NOBODY)));
        assert_eq!(quiet.take(&nobody(1), second + SPAN), Some(0));
        let lines = (0..1000).filter(|_| quiet.take(&known, second).is_some()).count();
        assert_eq!(lines, KNOWN as usize - 1);
    }

    #[test]
    fn many_who_are_not_known_have_lines_of_all_together() {
        let (mut quiet, now) = (Quiet::default(), Duration::from_secs(1));
        let lines = (0..100_000).filter(|n| quiet.take(&nobody(*n), now).is_some()).count();
        assert_eq!(lines, NOBODIES as usize);
        assert!(quiet.rows.len() <= MOST + 2, "{}", quiet.rows.len());
        let known = Caller { name: "ana".into(), role: Some(Role::Operator), ..nobody(1) };
        assert!(quiet.take(&known, now).is_some(), "who is known is heard beside them");
        assert!(quiet.take(&nobody(1), now + SPAN).is_some());
    }
}
