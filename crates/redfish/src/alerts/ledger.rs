//! Conditions over time: alerts.
//!
//! An alert is
//!
//! | state        | becomes      | when                                                       |
//! |--------------|--------------|------------------------------------------------------------|
//! | (none)       | raised       | its condition is there: a new identifier, told             |
//! | raised       | acknowledged | somebody says so                                           |
//! | raised       | raised       | [`DAY`] after it was last told: told again                 |
//! | acknowledged | raised       | it is graver than it ever was: told again                  |
//! | raised, acknowledged | cleared | its condition has gone: told                            |
//! | cleared      | raised, acknowledged as it was | its condition comes again within [`FLAP`] |
//! | cleared      | (none)       | [`FLAP`] have passed: what comes then is another alert     |
//!
//! An alert that was cleared and came again more than [`RISES`] times *flaps*: from then on it is
//! told that it stands, or is over, only when that has been so for [`FLAP`], and is not what was
//! told last.
//!
//! Invariants
//! - An identifier is never used again: those that a file may not know are left out
//!   ([`Ledger::reserved`]).
//! - Of one alert it is told in turn that it was raised and that it is over; what was told last is
//!   what is so, [`FLAP`] after the last change at the latest.
//! - After a restart an alert is not over before [`START`]: what is wrong may not be known yet.
//! - No moment that is waited from is after now: a clock that was set back makes nothing wait for
//!   longer than it would.

use super::{Condition, News, Told};
use crate::view::{Alert, Alerts, Health};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How long an alert that is over is remembered, and how long one that flaps has to stay as it is
/// before that is told, in seconds.
pub const FLAP: u64 = 600;

/// So often an alert comes again before it flaps.
pub const RISES: u32 = 2;

/// After so many seconds an alert that nobody has acknowledged is told again.
pub const DAY: u64 = 86_400;

/// So many seconds after a start alerts of before are not over yet.
pub const START: u64 = 120;

/// So many identifiers a file is ahead of what was used.
const AHEAD: u64 = 100;

/// No alert has this identifier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotThere;

/// An alert, standing or remembered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Record {
    id: u64,
    condition: Condition,
    raised: u64,
    acknowledged: Option<(u64, String)>,
    /// Whether its condition is there.
    stands: bool,
    /// Since when that is so.
    since: u64,
    /// How often it came again.
    rises: u32,
    /// Whether it was told last that it stands.
    is_told: bool,
    told_at: u64,
    /// How grave it was at most when it was told.
    told_severity: Health,
    /// Its condition was not seen since the start.
    #[serde(skip)]
    is_of_before: bool,
}

/// All alerts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Ledger {
    /// No smaller identifier is used for a new alert.
    next: u64,
    /// By the keys of conditions.
    #[serde(with = "listed")]
    records: BTreeMap<String, Record>,
    /// Until then alerts of before are not over.
    #[serde(skip)]
    patient_until: u64,
}

/// Records in a file: a list, as each has its key.
mod listed {
    use super::{BTreeMap, Record};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(
        all: &BTreeMap<String, Record>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        all.values().collect::<Vec<_>>().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<String, Record>, D::Error> {
        let all = Vec::<Record>::deserialize(from)?;
        Ok(all.into_iter().map(|one| (one.condition.key.clone(), one)).collect())
    }
}

impl Record {
    fn new(id: u64, condition: Condition, now: u64) -> Self {
        Self {
            id,
            raised: now,
            acknowledged: None,
            stands: true,
            since: now,
            rises: 0,
            is_told: false,
            told_at: now,
            told_severity: condition.severity,
            is_of_before: false,
            condition,
        }
    }

    fn alert(&self) -> Alert {
        let Condition { message, args, severity, what, action, of, name, .. } =
            self.condition.clone();
        let (id, raised) = (self.id.to_string(), self.raised);
        let acknowledged = self.acknowledged.clone();
        Alert { id, message, args, severity, what, action, of, name, raised, acknowledged }
    }

    fn tell(&mut self, news: News, at: u64, told: &mut Vec<Told>) {
        self.is_told = news != News::Cleared;
        self.told_at = at;
        let mut alert = self.alert();
        match news {
            // Those who were told that it was raised are told that it is over.
            News::Cleared => alert.severity = self.told_severity,
            _ => self.told_severity = self.told_severity.max(alert.severity),
        }
        told.push(Told { news, alert, at });
    }

    /// The clock may have been set back.
    fn seen_at(&mut self, now: u64) {
        (self.since, self.told_at) = (self.since.min(now), self.told_at.min(now));
    }

    /// Whether a change is told: one of an alert that flaps only once it lasts.
    fn is_due(&self, now: u64) -> bool {
        self.rises <= RISES || now.saturating_sub(self.since) >= FLAP
    }

    /// Its condition is there.
    fn there(&mut self, condition: &Condition, now: u64, told: &mut Vec<Told>) {
        if self.condition != *condition {
            self.condition.clone_from(condition);
        }
        self.is_of_before = false;
        if !self.stands {
            (self.stands, self.since) = (true, now);
            self.rises = self.rises.saturating_add(1);
        }
        if !self.is_told {
            if self.is_due(now) {
                self.tell(News::Raised, now, told);
            }
        } else if condition.severity > self.told_severity {
            self.acknowledged = None;
            self.tell(News::Worse, now, told);
        } else if self.acknowledged.is_none() && now.saturating_sub(self.told_at) >= DAY {
            self.tell(News::Stands, now, told);
        }
    }

    /// Its condition is not there; whether the alert is still remembered.
    fn gone(&mut self, now: u64, told: &mut Vec<Told>) -> bool {
        if self.stands {
            (self.stands, self.since) = (false, now);
        }
        if self.is_told && self.is_due(now) {
            self.tell(News::Cleared, now, told);
        }
        self.is_told || now.saturating_sub(self.since) < FLAP
    }
}

impl Ledger {
    /// An empty one, whose first alert has this identifier.
    pub fn new(first: u64) -> Self {
        Self { next: first, ..Self::default() }
    }

    /// One that was read, at a start.
    #[must_use]
    pub fn restarted(mut self, now: u64) -> Self {
        self.patient_until = now.saturating_add(START);
        self.records.values_mut().for_each(|record| record.is_of_before = true);
        self
    }

    /// It as it is written: a daemon that dies before it is written again uses no identifier twice.
    #[must_use]
    pub fn reserved(&self) -> Self {
        Self { next: self.next.saturating_add(AHEAD), ..self.clone() }
    }

    /// What is wrong now. Answers with what is to be told.
    pub fn follow(&mut self, conditions: &[Condition], now: u64) -> Vec<Told> {
        let mut told = Vec::new();
        let keys: BTreeSet<&str> = conditions.iter().map(|one| one.key.as_str()).collect();
        self.patient_until = self.patient_until.min(now.saturating_add(START));
        let patient_until = self.patient_until;
        self.records.values_mut().for_each(|record| record.seen_at(now));
        self.records.retain(|key, record| {
            let is_awaited = record.is_of_before && record.stands && now < patient_until;
            keys.contains(key.as_str()) || is_awaited || record.gone(now, &mut told)
        });
        for condition in conditions {
            let next = &mut self.next;
            let record = self.records.entry(condition.key.clone()).or_insert_with(|| {
                let id = *next;
                *next = next.saturating_add(1);
                Record::new(id, condition.clone(), now)
            });
            record.there(condition, now, &mut told);
        }
        told
    }

    /// Somebody has seen an alert.
    ///
    /// # Errors
    /// There is none of this identifier that stands.
    pub fn acknowledge(&mut self, id: &str, who: &str, now: u64) -> Result<Alert, NotThere> {
        let is_it = |record: &&mut Record| record.stands && record.id.to_string() == id;
        let record = self.records.values_mut().find(is_it).ok_or(NotThere)?;
        record.acknowledged.get_or_insert_with(|| (now, who.to_owned()));
        Ok(record.alert())
    }

    /// Those that stand: the gravest first, of these the oldest.
    pub fn alerts(&self) -> Alerts {
        let mut all: Vec<&Record> = self.records.values().filter(|own| own.stands).collect();
        all.sort_by_key(|own| (core::cmp::Reverse(own.condition.severity), own.id));
        Alerts { alerts: all.into_iter().map(Record::alert).collect() }
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
