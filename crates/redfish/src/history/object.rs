//! What is kept of one thing: rings of points by seconds, minutes and hours, and what of the minute
//! and the hour that go on is known.
//!
//! A ring has a place for each interval of its window; an interval's place follows from its number.
//! Time itself is the [`super::History`]'s.
//!
//! | a place is | its interval                         | becomes                              |
//! |------------|--------------------------------------|--------------------------------------|
//! | a gap      | is to come, goes on or had no sample | a point: it is over, with a sample   |
//! | a point    | is over                              | a gap: the window has left it, or the |
//! |            |                                      | clock was set back before it         |

use super::number::{GAP, decode, encode};
use super::series::{Buckets, Field, How, Kind, Row, of_99_percent};
use super::{STEPS, Step};

/// A ring of points.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ring {
    codes: Box<[u16]>,
}

impl Ring {
    fn new(kind: Kind, step: Step) -> Self {
        Self { codes: vec![GAP; kind.fields().len() * step.points()].into() }
    }

    /// The place of an interval.
    fn place(width: usize, step: Step, tick: u64) -> core::ops::Range<usize> {
        let at = (tick % step.points() as u64) as usize * width;
        at..at + width
    }

    fn put(&mut self, place: core::ops::Range<usize>, codes: impl Iterator<Item = u16>) {
        let own = self.codes.get_mut(place).unwrap_or_default();
        own.iter_mut().zip(codes).for_each(|(own, code)| *own = code);
    }
}

/// What the samples of an interval say together.
#[derive(Clone, PartialEq, Debug)]
pub struct Sum {
    /// The interval's number.
    pub tick: u64,
    /// For each field what is summed up or the greatest, and by what that is divided, or how often
    /// something was known.
    pub parts: Box<[(f32, f32)]>,
    /// How long reads and writes took.
    pub buckets: Option<Box<Buckets>>,
}

impl Sum {
    /// Of no sample yet.
    pub fn new(kind: Kind, tick: u64) -> Self {
        let parts = vec![(0.0, 0.0); kind.fields().len()].into();
        let buckets = kind.has_latencies().then(Box::default);
        Self { tick, parts, buckets }
    }

    fn begin(&mut self, tick: u64) {
        self.tick = tick;
        self.parts.fill((0.0, 0.0));
        if let Some(buckets) = &mut self.buckets {
            **buckets = Buckets::default();
        }
    }

    fn add(&mut self, fields: &[Field], row: &Row) {
        for ((own, field), value) in self.parts.iter_mut().zip(fields).zip(row.values) {
            let weight = match field.how {
                How::MeanOfRequests(which) => row.done.get(which).copied().unwrap_or_default(),
                _ => 1.0,
            };
            match field.how {
                How::Of99Percent(_) => {}
                _ if value.is_nan() || weight <= 0.0 => {}
                How::Most if own.1 > 0.0 => *own = (own.0.max(value), 1.0),
                How::Most => *own = (value, 1.0),
                How::Mean | How::MeanOfRequests(_) => {
                    *own = (own.0 + value * weight, own.1 + weight);
                }
            }
        }
        if let (Some(own), Some(more)) = (&mut self.buckets, &row.buckets) {
            let all = own.iter_mut().flatten().zip(more.iter().flatten());
            all.for_each(|(own, more)| *own += more);
        }
    }

    /// The point's codes.
    fn codes<'a>(&'a self, fields: &'a [Field]) -> impl Iterator<Item = u16> + 'a {
        fields.iter().zip(&self.parts).map(|(field, (sum, weight))| {
            let value = match field.how {
                How::Of99Percent(which) => {
                    let buckets = self.buckets.as_ref().and_then(|all| all.get(which));
                    buckets.and_then(of_99_percent)
                }
                How::Most => Some(f64::from(*sum)).filter(|_| *weight > 0.0),
                _ => Some(f64::from(sum / weight)).filter(|_| *weight > 0.0),
            };
            value.map_or(GAP, |value| encode(value + f64::from(field.offset)))
        })
    }

    /// Whether no sample said anything.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(|(_, weight)| *weight == 0.0)
    }
}

/// What is kept of one thing.
#[derive(Clone, PartialEq, Debug)]
pub struct Object {
    /// What it is.
    pub kind: Kind,
    /// In which second it was seen last.
    pub seen: u64,
    /// Its requests a second, lately.
    pub activity: f32,
    /// By step; none where there is no room.
    pub rings: [Option<Ring>; STEPS],
    /// The minute and the hour that go on.
    pub sums: [Sum; 2],
}

/// How many seconds `lately` is.
const LATELY: f32 = 600.0;

impl Object {
    /// Nothing is known of it yet.
    pub fn new(kind: Kind) -> Self {
        let sums = [Sum::new(kind, 0), Sum::new(kind, 0)];
        Self { kind, seen: 0, activity: 0.0, rings: [None, None, None], sums }
    }

    /// What it takes without rings, in bytes; `key` is what its name takes.
    pub fn bytes(kind: Kind, key: usize) -> usize {
        let width = kind.fields().len();
        let buckets = if kind.has_latencies() { size_of::<Buckets>() } else { 0 };
        // Beside itself: what allocations and the map's nodes take.
        size_of::<Self>() + key + 2 * (width * size_of::<(f32, f32)>() + buckets) + 160
    }

    /// What a ring takes, in bytes.
    pub const fn ring_bytes(width: usize, step: Step) -> usize {
        width * step.points() * size_of::<u16>() + 16
    }

    /// What its rings take, in bytes.
    pub fn rings_bytes(&self) -> usize {
        let width = self.kind.fields().len();
        let has = |step: &Step| self.rings.get(*step as usize).is_some_and(Option::is_some);
        Step::ALL.into_iter().filter(has).map(|step| Self::ring_bytes(width, step)).sum()
    }

    /// Gives it a ring, or takes it away.
    pub fn set_ring(&mut self, step: Step, is_kept: bool) {
        let kind = self.kind;
        if let Some(own) = self.rings.get_mut(step as usize) {
            match is_kept {
                true => drop(own.get_or_insert_with(|| Ring::new(kind, step))),
                false => *own = None,
            }
        }
    }

    /// Puts a point in its place.
    pub fn put(&mut self, step: Step, tick: u64, codes: impl Iterator<Item = u16>) {
        let width = self.kind.fields().len();
        if let Some(Some(ring)) = self.rings.get_mut(step as usize) {
            ring.put(Ring::place(width, step, tick), codes);
        }
    }

    /// Intervals from one to another, both included, have no points.
    pub fn clear(&mut self, step: Step, from: u64, to: u64) {
        let from = from.max(to.saturating_sub(step.points() as u64 - 1));
        for tick in from..=to {
            self.put(step, tick, core::iter::repeat(GAP));
        }
    }

    /// The interval that went on is over.
    pub fn close(&mut self, step: Step, tick: u64) {
        let fields = self.kind.fields();
        let Some(sum) = step.sum().and_then(|at| self.sums.get(at)) else { return };
        if sum.tick != tick || sum.is_empty() {
            return;
        }
        let width = fields.len();
        if let Some(Some(ring)) = self.rings.get_mut(step as usize) {
            ring.put(Ring::place(width, step, tick), sum.codes(fields));
        }
    }

    /// The sum of what goes on counts for nothing if it is of a later interval.
    pub fn forget_after(&mut self, step: Step, tick: u64) {
        if let Some(sum) = step.sum().and_then(|at| self.sums.get_mut(at))
            && sum.tick > tick
        {
            sum.begin(0);
        }
    }

    /// A sample of a second.
    pub fn add(&mut self, second: u64, row: &Row) {
        let fields = self.kind.fields();
        self.seen = second;
        let rate = row.values.iter().take(2).filter(|rate| !rate.is_nan()).sum::<f32>();
        self.activity += (rate - self.activity) / LATELY;
        let codes = fields.iter().zip(row.values).map(|(field, value)| match field.how {
            How::Of99Percent(which) => {
                let buckets = row.buckets.as_ref().and_then(|all| all.get(which));
                buckets.and_then(of_99_percent).map_or(GAP, encode)
            }
            _ => encode(f64::from(value) + f64::from(field.offset)),
        });
        self.put(Step::Seconds, second, codes);
        for step in [Step::Minutes, Step::Hours] {
            let tick = second / step.seconds();
            let Some(sum) = step.sum().and_then(|at| self.sums.get_mut(at)) else { continue };
            if sum.tick != tick {
                sum.begin(tick);
            }
            sum.add(fields, row);
        }
    }

    /// The codes of an interval; of one that goes on, those of what is known of it.
    fn codes(&self, step: Step, tick: u64, end: u64) -> Option<Vec<u16>> {
        let fields = self.kind.fields();
        let ring = self.rings.get(step as usize)?.as_ref()?;
        let sum = step.sum().and_then(|at| self.sums.get(at));
        if let Some(sum) = sum.filter(|sum| tick == end && sum.tick == end && !sum.is_empty()) {
            return Some(sum.codes(fields).collect());
        }
        ring.codes.get(Ring::place(fields.len(), step, tick)).map(<[u16]>::to_vec)
    }

    /// The points up to an interval, from the first that there is on: its interval, and for each
    /// field a number an interval.
    pub fn points(&self, step: Step, end: u64) -> (u64, Vec<Vec<Option<f64>>>) {
        let fields = self.kind.fields();
        let begin = end.saturating_sub(step.points() as u64 - 1);
        let mut columns = vec![Vec::new(); fields.len()];
        let mut first = None;
        for tick in begin..=end {
            let codes = self.codes(step, tick, end).unwrap_or_default();
            if first.is_none() && codes.iter().all(|code| *code == GAP) {
                continue;
            }
            first.get_or_insert(tick);
            for ((column, code), field) in columns.iter_mut().zip(codes).zip(fields) {
                column.push(decode(code).map(|value| value - f64::from(field.offset)));
            }
        }
        (first.unwrap_or(end), columns)
    }

    /// The codes of a ring in the order of time, up to an interval, from the first that is no gap
    /// on; none without a ring.
    pub fn kept(&self, step: Step, end: u64) -> Option<impl Iterator<Item = &[u16]>> {
        let width = self.kind.fields().len();
        let ring = self.rings.get(step as usize)?.as_ref()?;
        let begin = end.saturating_sub(step.points() as u64 - 1);
        let codes = move |tick| ring.codes.get(Ring::place(width, step, tick)).unwrap_or_default();
        let is_gap = |codes: &&[u16]| codes.iter().all(|code| *code == GAP);
        Some((begin..=end).map(codes).skip_while(is_gap))
    }
}
