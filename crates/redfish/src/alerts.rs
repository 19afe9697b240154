//! Alerts: what is wrong, since when, who was told, and who has seen to it.
//!
//! - [`conditions`]: everything that is wrong in a view, by a table.
//! - [`Ledger`]: conditions over time, as alerts that are raised, acknowledged and cleared; it says
//!   what is to be told.
//! - [`Outbox`]: what one recipient is to be told: ten messages a minute, and the rest together.
//! - [`mail`]: how a mail says it.
//!
//! Invariants
//! - Nothing here reads a clock: moments are given, in seconds since 1970.
//! - Whether somebody can be told delays nothing: all this is state, and what sends is elsewhere.

mod conditions;
mod ledger;
pub mod mail;
mod outbox;

use crate::events::Event;
use crate::messages::{self as say, Severity};
use crate::service::uri;
use crate::view::{Alert, Health};
pub use conditions::{Condition, conditions};
pub use ledger::{DAY, FLAP, Ledger, NotThere, RISES, START};
pub use outbox::{A_MINUTE, Letter, MOST, Outbox};
use serde::{Deserialize, Serialize};
use std::fmt::Display;

/// What is told of an alert.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum News {
    /// It was raised.
    Raised,
    /// It is graver than it was.
    Worse,
    /// It still stands, a day after the last message.
    Stands,
    /// It is over.
    Cleared,
}

/// Whether an alert is about mail that can't be sent: that is not told by mail.
pub fn is_of_mail(alert: &Alert) -> bool {
    [say::MAIL_NOT_SENT.name, say::MAIL_REFUSED.name].contains(&alert.message.as_str())
}

/// Something to tell of an alert.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Told {
    /// What.
    pub news: News,
    /// The alert, as it is; as it was at its gravest, where it is over.
    pub alert: Alert,
    /// When, in seconds since 1970.
    pub at: u64,
}

impl Told {
    /// It as an event.
    pub fn event(&self) -> Event {
        let is_critical = self.alert.severity == Health::Critical;
        let notice = match (self.news, is_critical) {
            (News::Raised | News::Worse, false) => &say::ALERT_RAISED,
            (News::Raised | News::Worse, true) => &say::CRITICAL_ALERT_RAISED,
            (News::Stands, false) => &say::ALERT_STANDS,
            (News::Stands, true) => &say::CRITICAL_ALERT_STANDS,
            (News::Cleared, _) => &say::ALERT_CLEARED,
        };
        let args: [&dyn Display; 2] = [&self.alert.id, &self.alert.what];
        Event::new(notice, &args, self.alert.of.clone())
    }

    /// Whether somebody who wants alerts of these severities wants it; all if there are none. Who
    /// was told that an alert was raised is told that it is over.
    pub fn is_of(&self, severities: &[Severity]) -> bool {
        severities.is_empty() || severities.contains(&self.alert.severity.into())
    }
}

/// A letter as an event.
pub fn event(letter: &Letter) -> Event {
    if let ([one], 0) = (&letter.told[..], letter.left_out) {
        return one.event();
    }
    let told = &letter.told;
    let cleared = told.iter().filter(|one| one.news == News::Cleared).count();
    let raised = (told.len().saturating_sub(cleared) as u64).saturating_add(letter.left_out);
    let is_critical =
        |one: &Told| one.news != News::Cleared && one.alert.severity == Health::Critical;
    let notice = match told.iter().any(is_critical) {
        true => &say::CRITICAL_ALERTS_TOGETHER,
        false => &say::ALERTS_TOGETHER,
    };
    Event::new(notice, &[&raised, &cleared], uri::SERVICE_CONDITIONS)
}

impl From<Health> for Severity {
    fn from(health: Health) -> Self {
        match health {
            Health::Ok => Self::Ok,
            Health::Warning => Self::Warning,
            Health::Critical => Self::Critical,
        }
    }
}

impl From<Severity> for Health {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Ok => Self::Ok,
            Severity::Warning => Self::Warning,
            Severity::Critical => Self::Critical,
        }
    }
}
