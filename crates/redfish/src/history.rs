//! The past: what charts show of the machine, of arrays, volumes and drives.
//!
//! Purpose: each second a sample is taken of what the view says ([`rows`]). Of all samples of a
//! second, a minute and an hour a point is made, and points are kept: ten minutes of seconds, a day
//! of minutes and 30 days of hours, the ones that go on included. What is kept of what is
//! [`series`]; who has to do without where memory is short is [`budget`].
//!
//! A point of a minute or an hour is made of all samples of its seconds, each counting the same:
//! the mean of rates, the most of temperature and the like, the mean over all requests of how long
//! they took, and for 99 of 100 requests the sum of the histograms of all samples
//! ([`series::How`]). It is not made of points, and a sample that is missing is not a zero: where
//! the daemon did not run, or was too busy to look, is a gap.
//!
//! | the second of a sample is | what is done                                                    |
//! |---------------------------|----------------------------------------------------------------- |
//! | later than all            | intervals that are over become points, those between are gaps   |
//! | kept already              | nothing: the clock was set back a little, and is waited for     |
//! | before what is kept       | once the clock is believed ([`clock`]), later points are dropped |
//! | not known                 | nothing                                                         |
//!
//! Counters that began anew, as those of a drive that was opened again, say nothing in the sample
//! that finds them so. The first sample after a start of the daemon says nothing.
//!
//! Invariants
//! - All of it takes [`budget::BYTES`] at most, and so does the file ([`file`]).
//! - A sample costs the same however long the past is.
//! - Who reads holds the past for the time in which one thing's points are copied.

pub mod budget;
pub mod clock;
pub mod file;
pub mod number;
pub mod object;
pub mod rows;
pub mod series;

use crate::view::View;
use budget::{BYTES, MOST, Want, given};
use clock::{Clock, Second};
use object::Object;
use rows::Key;
use series::{Field, Kind, Row};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many steps there are.
pub const STEPS: usize = 3;

/// How long the interval of a point is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs, reason = "each says how long it is")]
pub enum Step {
    Seconds,
    Minutes,
    Hours,
}

impl Step {
    /// All of them.
    pub const ALL: [Self; STEPS] = [Self::Seconds, Self::Minutes, Self::Hours];

    /// The identifier of its report.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Seconds => "Seconds",
            Self::Minutes => "Minutes",
            Self::Hours => "Hours",
        }
    }

    /// How long an interval is, in seconds.
    pub const fn seconds(self) -> u64 {
        match self {
            Self::Seconds => 1,
            Self::Minutes => 60,
            Self::Hours => 3600,
        }
    }

    /// How many points are kept.
    pub const fn points(self) -> usize {
        match self {
            Self::Seconds => 600,
            Self::Minutes => 1440,
            Self::Hours => 720,
        }
    }

    /// Which sum is made for it; none if a sample is a point.
    const fn sum(self) -> Option<usize> {
        match self {
            Self::Seconds => None,
            Self::Minutes => Some(0),
            Self::Hours => Some(1),
        }
    }

    /// An interval as ISO 8601 has it.
    pub const fn interval(self) -> &'static str {
        match self {
            Self::Seconds => "PT1S",
            Self::Minutes => "PT1M",
            Self::Hours => "PT1H",
        }
    }
}

/// The points of one thing.
#[derive(Clone, PartialEq, Debug)]
pub struct Points {
    /// When the first interval begins, in seconds since 1970.
    pub begin: u64,
    /// What each number of a point is.
    pub fields: &'static [Field],
    /// For each field a number an interval, oldest first; none is a gap.
    pub columns: Vec<Vec<Option<f64>>>,
}

/// All that is kept.
#[derive(Clone, Debug, Default)]
pub struct History {
    objects: BTreeMap<Key, Object>,
    /// The last interval of each step, which goes on.
    ends: [u64; STEPS],
    clock: Clock,
    /// The last sample's view.
    before: Option<Arc<View>>,
    /// In which minute rings were given last.
    given: u64,
    /// What things take without rings, in bytes.
    bare: usize,
    /// What rings take, in bytes.
    rings: usize,
}

impl History {
    fn end(&self, step: Step) -> u64 {
        self.ends.get(step as usize).copied().unwrap_or_default()
    }

    fn set_end(&mut self, step: Step, tick: u64) {
        if let Some(own) = self.ends.get_mut(step as usize) {
            *own = tick;
        }
    }

    /// What all of it takes, in bytes.
    pub const fn bytes(&self) -> usize {
        self.bare + self.rings
    }

    /// Takes a sample: the view in which the counters were read.
    pub fn sample(&mut self, view: &Arc<View>) {
        let now = &view.counters;
        let before = self.before.clone();
        let is_same =
            |last: &Arc<View>| (last.counters.since, last.counters.nanos) == (now.since, now.nanos);
        if now.nanos == 0 || before.as_ref().is_some_and(is_same) {
            return;
        }
        self.before = Some(view.clone());
        let second = match self.clock.second(now.at, now.nanos, self.end(Step::Seconds)) {
            Second::Unknown => return,
            Second::Is(second) if second <= self.end(Step::Seconds) => return,
            Second::Is(second) => second,
            Second::Back(second) => {
                self.set_back(second);
                second
            }
        };
        self.go_on(second);
        let goes_on =
            |last: &Arc<View>| last.counters.since == now.since && last.counters.nanos < now.nanos;
        if let Some(before) = before.filter(goes_on) {
            rows::rows(&before, view, &mut |key, row| self.add(key, &row, second));
        }
        let minute = second / Step::Minutes.seconds();
        if self.given != minute {
            self.given = minute;
            self.forget(second);
            self.give(second);
        }
    }

    /// Time goes on to a second: intervals that are over become points.
    fn go_on(&mut self, second: u64) {
        for step in Step::ALL {
            let (tick, end) = (second / step.seconds(), self.end(step));
            if tick <= end {
                continue;
            }
            for object in self.objects.values_mut() {
                object.close(step, end);
                object.clear(step, end + 1, tick);
            }
            self.set_end(step, tick);
        }
    }

    /// Time is set back to a second: there are no points of it, nor of later ones.
    fn set_back(&mut self, second: u64) {
        for step in Step::ALL {
            let (tick, end) = (second / step.seconds(), self.end(step));
            for object in self.objects.values_mut() {
                object.clear(step, tick, end);
                object.forget_after(step, tick);
                object.seen = object.seen.min(second);
            }
            self.set_end(step, tick);
        }
        // So that the second itself is later than all.
        self.set_end(Step::Seconds, second.saturating_sub(1));
    }

    fn add(&mut self, key: Key, row: &Row, second: u64) {
        if let Some(object) = self.objects.get_mut(&key) {
            return object.add(second, row);
        }
        if !row.is_known() || (self.objects.len() >= MOST && !self.make_room(second)) {
            return;
        }
        let mut object = Object::new(key.kind());
        self.bare += Object::bytes(key.kind(), key.bytes());
        for step in [Step::Hours, Step::Minutes, Step::Seconds] {
            let bytes = Object::ring_bytes(key.kind().fields().len(), step);
            if self.bytes() + bytes <= BYTES {
                object.set_ring(step, true);
                self.rings += bytes;
            } else {
                // Rings are given anew behind this sample.
                self.given = 0;
            }
        }
        object.add(second, row);
        self.objects.insert(key, object);
    }

    /// Forgets what has been gone for longest; whether anything is.
    fn make_room(&mut self, now: u64) -> bool {
        let gone = self.objects.iter().filter(|(_, own)| own.seen + budget::GONE < now);
        let longest = gone.min_by_key(|(_, own)| own.seen).map(|(key, _)| key.clone());
        longest.is_some_and(|key| self.remove(&key))
    }

    fn remove(&mut self, key: &Key) -> bool {
        let gone = self.objects.remove(key);
        if let Some(object) = &gone {
            self.bare = self.bare.saturating_sub(Object::bytes(object.kind, key.bytes()));
            self.rings = self.rings.saturating_sub(object.rings_bytes());
        }
        gone.is_some()
    }

    /// Forgets what has no point any more.
    fn forget(&mut self, now: u64) {
        let window = Step::Hours.points() as u64 * Step::Hours.seconds();
        let is_over = |own: &Object| own.seen.saturating_add(window) < now;
        let over: Vec<Key> = self
            .objects
            .iter()
            .filter(|(_, own)| is_over(own))
            .map(|(key, _)| key.clone())
            .collect();
        for key in over {
            self.remove(&key);
        }
    }

    /// Gives rings, and takes them.
    fn give(&mut self, now: u64) {
        let wants = |object: &Object| Step::ALL.map(|step| Want::of(object, step, now));
        let wants: Vec<Want> = self.objects.values().flat_map(wants).collect();
        if wants.iter().all(|want| want.has) {
            return;
        }
        let given = given(&wants, BYTES.saturating_sub(self.bare));
        let mut all = given.iter();
        self.rings = 0;
        for object in self.objects.values_mut() {
            for step in Step::ALL {
                object.set_ring(step, all.next().copied().unwrap_or_default());
            }
            self.rings += object.rings_bytes();
        }
    }

    /// The points of one thing; none if nothing is kept of it.
    pub fn points(&self, key: &Key, step: Step) -> Option<Points> {
        let object = self.objects.get(key)?;
        let (first, columns) = object.points(step, self.end(step));
        let begin = first.saturating_mul(step.seconds());
        Some(Points { begin, fields: object.kind.fields(), columns })
    }

    /// The last second of which there may be points.
    pub fn last(&self) -> u64 {
        self.end(Step::Seconds)
    }
}

/// The past that all views share. It goes on while they are read, and so is nothing in which two of
/// them differ.
#[derive(Clone, Default)]
pub struct Past(Arc<Mutex<History>>);

impl PartialEq for Past {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl core::fmt::Debug for Past {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Past")
    }
}

impl Past {
    /// This one.
    pub fn new(history: History) -> Self {
        Self(Arc::new(Mutex::new(history)))
    }

    /// It, until that is dropped.
    pub fn lock(&self) -> MutexGuard<'_, History> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The identifier of the report of a thing.
pub fn report_id(step: Step, key: &Key) -> String {
    match key.name() {
        "" => step.id().to_owned(),
        name => format!("{}.{}.{name}", step.id(), key.kind().word()),
    }
}

/// What the report of an identifier is of.
pub fn report_of(id: &str) -> Option<(Step, Key)> {
    let (step, rest) = id.split_once('.').map_or((id, None), |(step, rest)| (step, Some(rest)));
    let step = Step::ALL.into_iter().find(|own| own.id() == step)?;
    let Some(rest) = rest else { return Some((step, Key::Machine)) };
    let (word, name) = rest.split_once('.').filter(|(_, name)| !name.is_empty())?;
    let kind = Kind::ALL.into_iter().find(|kind| kind.word() == word)?;
    Some((step, Key::of(kind, name)?))
}

#[cfg(test)]
#[path = "history/history_tests.rs"]
pub(crate) mod tests;
