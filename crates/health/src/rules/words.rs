//! What rules are called, and what they say.

use super::{Link, Rule, Smart};

/// A rule as people read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// What raises it, and to which level.
    pub raised: &'static str,
    /// What clears it.
    pub cleared: &'static str,
    /// What to do, one line.
    pub action: &'static str,
}

impl Rule {
    /// All rules, in the order of their bits, then of their numbers.
    pub const ALL: [Self; 13] = [
        Self::Spare,
        Self::Reliability,
        Self::ReadOnly,
        Self::Backup,
        Self::PersistentRegion,
        Self::OtherWarning,
        Self::TemperatureThreshold,
        Self::Temperature,
        Self::Wear,
        Self::MediaErrors,
        Self::Errors,
        Self::Timeouts,
        Self::Link,
    ];

    /// It as people read it.
    pub const fn row(self) -> Row {
        Row {
            name: self.name(),
            raised: self.raised(),
            cleared: self.cleared(),
            action: self.action(),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Spare => "spare",
            Self::Reliability => "reliability",
            Self::ReadOnly => "read-only",
            Self::Backup => "backup",
            Self::PersistentRegion => "persistent-region",
            Self::OtherWarning => "other-warning",
            Self::TemperatureThreshold => "temperature-threshold",
            Self::Temperature => "temperature",
            Self::Wear => "wear",
            Self::MediaErrors => "media-errors",
            Self::Errors => "errors",
            Self::Timeouts => "timeouts",
            Self::Link => "link",
        }
    }

    const fn raised(self) -> &'static str {
        match self {
            Self::Spare => {
                "critical: spare capacity is below the drive's threshold, or bit 0 of its \
                 critical warning is set. A drive that reports 0 and 0 is well"
            }
            Self::Reliability => "critical: bit 2, the drive is no longer reliable",
            Self::ReadOnly => "critical: bit 3, the drive takes no more writes",
            Self::Backup => {
                "critical: bit 4, the drive may lose what is in its memory when power fails"
            }
            Self::PersistentRegion => {
                "warning: bit 5, the drive's persistent memory region is read-only or unreliable. \
                 Palisade does not use it"
            }
            Self::OtherWarning => "warning: bit 6 or 7, which Palisade does not know",
            Self::TemperatureThreshold => {
                "warning: bit 1, the temperature is over or under a threshold that is set in the \
                 drive"
            }
            Self::Temperature => {
                "warning from the drive's `WCTEMP` on, critical from its `CCTEMP` on; a limit of \
                 0 is none"
            }
            Self::Wear => {
                "warning from `wear_warning_percent` of used life on, critical from \
                 `wear_critical_percent` on"
            }
            Self::MediaErrors => {
                "warning: `media_errors` new ones within `rise_hours`, critical: \
                 `media_errors_critical`"
            }
            Self::Errors => "warning: `errors` requests failed within `rise_hours`",
            Self::Timeouts => {
                "warning: `timeouts` requests took longer than `drive_deadline_ms` within \
                 `rise_hours`"
            }
            Self::Link => {
                "warning: 2 readings in a row say that the link has fewer lanes, or is slower, \
                 than drive and slot could; not with `link = \"off\"`"
            }
        }
    }

    const fn cleared(self) -> &'static str {
        match self {
            Self::Temperature => "it is `temperature_hysteresis_c` below the limit",
            Self::MediaErrors | Self::Errors | Self::Timeouts => "no new one within `rise_hours`",
            _ => "3 readings in a row do not say so",
        }
    }

    const fn action(self) -> &'static str {
        match self {
            Self::Spare | Self::Reliability | Self::ReadOnly | Self::Backup | Self::Wear => {
                "replace it with: palisade array replace NAME --slot N --with DRIVE"
            }
            Self::PersistentRegion => "ask the drive's maker, and have a spare drive ready",
            Self::OtherWarning => "look the bit up in the drive's manual",
            Self::TemperatureThreshold | Self::Temperature => {
                "see to what cools it: fans, filters, covers of empty slots, the room"
            }
            Self::MediaErrors => {
                "scrub its array with: palisade array scrub NAME --repair; replace it if they go on"
            }
            Self::Errors | Self::Timeouts => {
                "check the drive, its slot and its cable; replace it if they go on"
            }
            Self::Link => "plug the drive in again, clean its contacts, try another slot",
        }
    }

    /// Whether the drive warns by this rule's bit of *critical warning* (NVMe Base 2.0, figure
    /// 207; bits 6 and 7 are reserved there).
    pub(super) const fn has_bit(self, smart: Smart) -> bool {
        smart.critical_warning & self.bits() != 0
    }

    const fn bits(self) -> u8 {
        match self {
            Self::Spare => 1 << 0,
            Self::TemperatureThreshold => 1 << 1,
            Self::Reliability => 1 << 2,
            Self::ReadOnly => 1 << 3,
            Self::Backup => 1 << 4,
            Self::PersistentRegion => 1 << 5,
            Self::OtherWarning => 1 << 6 | 1 << 7,
            Self::Temperature
            | Self::Wear
            | Self::MediaErrors
            | Self::Errors
            | Self::Timeouts
            | Self::Link => 0,
        }
    }
}

pub(super) fn spare(smart: Smart) -> String {
    let (left, least) = (smart.spare_percent, smart.threshold_percent);
    match left < least {
        true => {
            format!("{left}% of its spare capacity is left, less than its threshold of {least}%")
        }
        false => format!("it warns that its spare capacity is low; {left}% is left"),
    }
}

pub(super) fn bit(rule: Rule, smart: Smart) -> String {
    match rule {
        Rule::Reliability => "it warns that it is no longer reliable".to_owned(),
        Rule::ReadOnly => "it takes no more writes".to_owned(),
        Rule::Backup => "it may lose what is in its memory when power fails".to_owned(),
        Rule::PersistentRegion => {
            "its persistent memory region is read-only or unreliable".to_owned()
        }
        Rule::TemperatureThreshold => {
            "it warns that its temperature is over or under a threshold".to_owned()
        }
        _ => format!("it warns by bits that are not known: {:#04x}", smart.critical_warning & 0xc0),
    }
}

pub(super) fn wear(used: u8) -> String {
    format!("{used}% of its life is used")
}

pub(super) fn temperature(celsius: i32, limits: (Option<i32>, Option<i32>)) -> String {
    let limit = |(word, limit): (&str, Option<i32>)| {
        limit.filter(|limit| *limit > 0).map(|limit| format!("{word} from {limit} °C on"))
    };
    let limits = [("it warns", limits.0), ("is in danger", limits.1)];
    let limits: Vec<_> = limits.into_iter().filter_map(limit).collect();
    format!("it has {celsius} °C; {}", limits.join(", "))
}

pub(super) fn rising(rule: Rule, new: u64) -> String {
    let (one, more) = match rule {
        Rule::MediaErrors => ("media error", "media errors"),
        Rule::Timeouts => ("request over the deadline", "requests over the deadline"),
        _ => ("failed request", "failed requests"),
    };
    format!("{new} new {}", if new == 1 { one } else { more })
}

pub(super) fn link(link: Link) -> String {
    let Link { lanes, max_lanes, megatransfers, max_megatransfers } = link;
    let lanes = match lanes < max_lanes {
        true => format!("{lanes} of {max_lanes} lanes"),
        false => format!("{lanes} lanes"),
    };
    let gigatransfers = |mega: u32| match mega % 1_000 {
        0 => format!("{}", mega / 1_000),
        rest => format!("{}.{}", mega / 1_000, rest / 100),
    };
    let speed = gigatransfers(megatransfers);
    match megatransfers < max_megatransfers {
        true => {
            let most = gigatransfers(max_megatransfers);
            format!("its link has {lanes} at {speed} of {most} GT/s")
        }
        false => format!("its link has {lanes} at {speed} GT/s"),
    }
}
