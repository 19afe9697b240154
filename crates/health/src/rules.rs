//! What is wrong with a drive, by what was read of it.
//!
//! Purpose: a [`Judge`] belongs to one drive. At each reading it is given [`Facts`] and says how
//! well the drive is, with a [`Reason`] for each condition that is raised. [`Rule::ALL`] are the
//! rules; [`Rule::row`] describes each one for people.
//!
//! # States of a condition
//!
//! - *clear*: the rule has nothing to say.
//! - *raised* at a [`Level`], since a moment.
//!
//! # Transitions
//!
//! - To a graver level: the rule's limit for that is reached; of `link`, in
//!   [`READINGS_TO_RAISE`] readings in a row.
//! - From a number of the drive's own, or the link, to less: [`READINGS_TO_CLEAR`] readings in a
//!   row say less. It becomes what the last of them says.
//! - From a temperature to less: it is below the limit by the hysteresis.
//! - From new errors to clear: there was no new one within `rise_hours`.
//! - To clear: the configuration switches the rule off.
//!
//! A fact that is not known at a reading raises nothing and clears nothing.
//!
//! # Errors that are counted
//!
//! Only new errors count: the first reading of a counter says how many are old. A counter that is
//! less than before belongs to another drive, or was reset: it says anew how many are old.
//!
//! # Time
//!
//! `now` is the wall clock, which may jump. How long something lasts is therefore measured by a
//! clock of the judge's own, which a step back of the wall clock does not move, and a step ahead
//! moves by at most [`LONGEST_STEP`]. A moment that is shown is never later than `now`.
//!
//! Invariants: a condition's level is never less than what its rule says of the last reading, once
//! it is raised. A judge has at most [`MOST_RISES`] rises of each counter. It can be stored and
//! read again; then it goes on as if it had not been.

use crate::settings::Settings;
use crate::wear::Trend;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

mod counter;
mod words;

use counter::Counter;
pub use counter::MOST_RISES;
pub use words::Row;

/// So many readings in a row have to say less until a condition is cleared.
pub const READINGS_TO_CLEAR: u8 = 3;

/// So many readings in a row have to say that a link is not what it could be: it is that for a
/// moment whenever it is trained.
pub const READINGS_TO_RAISE: u8 = 2;

/// By so many seconds a step of the wall clock moves a judge's own at most: a day.
pub const LONGEST_STEP: u64 = 86_400;

/// How grave something is.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Nothing is wrong.
    #[default]
    Ok,
    /// Something should be seen to.
    Warning,
    /// Data or service is in danger.
    Critical,
}

/// A rule; what each one means is in [`Rule::row`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "rows of a table say what each one means")]
pub enum Rule {
    Spare,
    Reliability,
    ReadOnly,
    Backup,
    PersistentRegion,
    OtherWarning,
    TemperatureThreshold,
    Temperature,
    Wear,
    MediaErrors,
    Errors,
    Timeouts,
    Link,
}

/// What was read of a drive. What nobody knows is `None`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// What its SMART / Health Information log says; none if it could not be read.
    pub smart: Option<Smart>,
    /// Its temperature in degrees Celsius, by that log or by a sensor.
    pub celsius: Option<i32>,
    /// From which temperature it warns (`WCTEMP`), in degrees Celsius.
    pub warning_celsius: Option<i32>,
    /// From which temperature it is in danger (`CCTEMP`), in degrees Celsius.
    pub critical_celsius: Option<i32>,
    /// Requests to it that failed, timeouts not included, as the engine counted them.
    pub errors: Option<u64>,
    /// Requests to it that were not done within the deadline.
    pub timeouts: Option<u64>,
    /// Its PCI Express link.
    pub link: Option<Link>,
}

/// What the rules need of the SMART / Health Information log (NVMe Base 2.0, figure 207).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Smart {
    /// The bits of *critical warning*.
    pub critical_warning: u8,
    /// Spare capacity that is left, in per cent.
    pub spare_percent: u8,
    /// The least that should be left.
    pub threshold_percent: u8,
    /// Life that is used, in per cent; may exceed 100.
    pub used_percent: u8,
    /// Errors of media and of data's integrity over its life.
    pub media_errors: u128,
}

/// A PCI Express link, and what device and slot could be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Lanes in use.
    pub lanes: u8,
    /// Lanes that both could use; 0 if that is not known.
    pub max_lanes: u8,
    /// Megatransfers per second and lane.
    pub megatransfers: u32,
    /// What both could do; 0 if that is not known.
    pub max_megatransfers: u32,
}

/// Why a drive is not well.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reason {
    /// The rule.
    pub rule: Rule,
    /// How grave that is.
    pub level: Level,
    /// What is wrong, one line.
    pub what: String,
    /// What to do, one line.
    pub action: String,
    /// Since when, in seconds since 1970.
    pub since: u64,
}

/// How well a drive is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Verdict {
    /// The gravest of the reasons' levels.
    pub level: Level,
    /// The reasons, the gravest first.
    pub reasons: Vec<Reason>,
}

/// A rule that has, or may soon have, something to say.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Condition {
    level: Level,
    /// Since when it is raised, in seconds since 1970.
    since: u64,
    what: String,
    /// Readings in a row that say more, or less, than the level.
    readings: u8,
}

/// What is remembered of one drive, and judges it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Judge {
    /// Seconds that passed by its own clock.
    clock: u64,
    /// The wall clock at the last reading.
    last: Option<u64>,
    conditions: BTreeMap<Rule, Condition>,
    media_errors: Counter,
    errors: Counter,
    timeouts: Counter,
    wear: Trend,
}

/// What a rule says of a reading.
struct Says {
    /// The level that its limits come to.
    level: Level,
    /// The least level that a raised condition keeps, by the rule's hysteresis; none if readings
    /// are counted instead.
    keeps: Option<Level>,
    what: String,
}

impl Judge {
    /// Judges a reading at a moment in seconds since 1970.
    pub fn judge(&mut self, facts: &Facts, settings: &Settings, now: u64) -> Verdict {
        self.pass_to(now);
        self.count(facts, settings);
        if let Some(smart) = facts.smart {
            self.wear.saw(now, smart.used_percent);
        }
        for rule in Rule::ALL {
            if rule == Rule::Link && settings.link == 0 {
                self.conditions.remove(&rule);
            } else if let Some(says) = self.says(rule, facts, settings) {
                self.take(rule, says, now);
            }
        }
        self.verdict()
    }

    /// What was said of the last reading.
    pub fn verdict(&self) -> Verdict {
        let raised = self.conditions.iter().filter(|(_, own)| own.level > Level::Ok);
        let mut reasons: Vec<_> = raised
            .map(|(rule, condition)| Reason {
                rule: *rule,
                level: condition.level,
                what: condition.what.clone(),
                action: rule.row().action.to_owned(),
                since: condition.since,
            })
            .collect();
        reasons.sort_by_key(|reason| core::cmp::Reverse(reason.level));
        let level = reasons.first().map_or(Level::Ok, |reason| reason.level);
        Verdict { level, reasons }
    }

    /// When the drive will be worn out, in seconds since 1970; none while nobody can say.
    pub fn worn_out(&self, now: u64) -> Option<u64> {
        self.wear.worn_out(now)
    }

    /// Lets the own clock go on, and keeps moments from being later than now.
    fn pass_to(&mut self, now: u64) {
        let step = now.saturating_sub(self.last.unwrap_or(now));
        self.clock = self.clock.saturating_add(step.min(LONGEST_STEP));
        self.last = Some(now);
        for condition in self.conditions.values_mut() {
            condition.since = condition.since.min(now);
        }
    }

    /// Takes what counters say.
    fn count(&mut self, facts: &Facts, settings: &Settings) {
        let media = facts.smart.map(|smart| u64::try_from(smart.media_errors).unwrap_or(u64::MAX));
        let within = settings.rise_hours.saturating_mul(3_600);
        for (counter, read) in [
            (&mut self.media_errors, media),
            (&mut self.errors, facts.errors),
            (&mut self.timeouts, facts.timeouts),
        ] {
            counter.pass_to(self.clock, within);
            if let Some(read) = read {
                counter.saw(self.clock, read);
            }
        }
    }

    /// What a rule says; none if what it needs is not known.
    fn says(&self, rule: Rule, facts: &Facts, settings: &Settings) -> Option<Says> {
        let smart = facts.smart;
        let counted = |level: Level, what: String| Some(Says { level, keeps: None, what });
        match rule {
            Rule::Spare => {
                let smart = smart?;
                let is_below = smart.spare_percent < smart.threshold_percent;
                let level =
                    if is_below || rule.has_bit(smart) { Level::Critical } else { Level::Ok };
                counted(level, words::spare(smart))
            }
            Rule::Reliability | Rule::ReadOnly | Rule::Backup => {
                let level = if rule.has_bit(smart?) { Level::Critical } else { Level::Ok };
                counted(level, words::bit(rule, smart?))
            }
            Rule::PersistentRegion | Rule::OtherWarning | Rule::TemperatureThreshold => {
                let level = if rule.has_bit(smart?) { Level::Warning } else { Level::Ok };
                counted(level, words::bit(rule, smart?))
            }
            Rule::Wear => {
                let used = smart?.used_percent;
                let limits = (settings.wear_warning_percent, settings.wear_critical_percent);
                counted(reached(u64::from(used), limits), words::wear(used))
            }
            Rule::Temperature => temperature(facts, settings),
            Rule::MediaErrors => {
                let limits = (settings.media_errors, settings.media_errors_critical);
                Some(rising(&self.media_errors, limits, rule))
            }
            Rule::Errors => Some(rising(&self.errors, (settings.errors, u64::MAX), rule)),
            Rule::Timeouts => Some(rising(&self.timeouts, (settings.timeouts, u64::MAX), rule)),
            Rule::Link => {
                let link = facts.link?;
                let level = if link.is_less() { Level::Warning } else { Level::Ok };
                counted(level, words::link(link))
            }
        }
    }

    /// Takes what a rule says into its condition.
    fn take(&mut self, rule: Rule, says: Says, now: u64) {
        let own = self.conditions.entry(rule).or_default();
        let level = match says.keeps {
            Some(keeps) => says.level.max(own.level.min(keeps)),
            None => {
                let needed = match says.level.cmp(&own.level) {
                    core::cmp::Ordering::Equal => u8::MAX,
                    core::cmp::Ordering::Greater if rule != Rule::Link => 0,
                    core::cmp::Ordering::Greater => READINGS_TO_RAISE,
                    core::cmp::Ordering::Less => READINGS_TO_CLEAR,
                };
                own.readings = if needed == u8::MAX { 0 } else { own.readings.saturating_add(1) };
                if own.readings >= needed { says.level } else { own.level }
            }
        };
        if level != own.level {
            own.readings = 0;
        }
        if own.level == Level::Ok {
            own.since = now;
        }
        // What is wrong is told with the last numbers that said so.
        if says.level == level || says.keeps.is_some() {
            own.what = says.what;
        }
        own.level = level;
        if own.level == Level::Ok && own.readings == 0 {
            self.conditions.remove(&rule);
        }
    }
}

/// The level of a number that has reached limits (warning, critical).
fn reached(number: u64, (warning, critical): (u64, u64)) -> Level {
    match number {
        number if number >= critical => Level::Critical,
        number if number >= warning => Level::Warning,
        _ => Level::Ok,
    }
}

/// What new errors come to.
fn rising(counter: &Counter, limits: (u64, u64), rule: Rule) -> Says {
    let new = counter.lately();
    let keeps = if new > 0 { Level::Critical } else { Level::Ok };
    Says { level: reached(new, limits), keeps: Some(keeps), what: words::rising(rule, new) }
}

/// What a temperature comes to, by the limits that the drive says; 0 is no limit (NVMe Base 2.0,
/// figure 275: `WCTEMP` and `CCTEMP` of 0h are not reported).
fn temperature(facts: &Facts, settings: &Settings) -> Option<Says> {
    let celsius = facts.celsius?;
    let limits = (facts.warning_celsius, facts.critical_celsius);
    limits.0.or(limits.1)?;
    let less = i32::try_from(settings.temperature_hysteresis_c).unwrap_or(0);
    let level_at = |celsius: i32| {
        let is_over = |limit: Option<i32>| limit.is_some_and(|limit| limit > 0 && celsius >= limit);
        match (is_over(facts.critical_celsius), is_over(facts.warning_celsius)) {
            (true, _) => Level::Critical,
            (false, true) => Level::Warning,
            (false, false) => Level::Ok,
        }
    };
    let keeps = level_at(celsius.saturating_add(less.saturating_sub(1).max(0)));
    let what = words::temperature(celsius, limits);
    Some(Says { level: level_at(celsius), keeps: Some(keeps), what })
}

impl Link {
    /// Whether it is narrower or slower than it could be.
    fn is_less(self) -> bool {
        self.lanes < self.max_lanes || self.megatransfers < self.max_megatransfers
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
