//! The keys of `[health]` in the configuration: [`KEYS`] is the one table of them, with defaults
//! and ranges. [`Settings`] are read by it, its mistakes are told by it, and the page about health
//! is compared with it.
//!
//! Invariant: each value of a [`Settings`] is within its key's range.

/// What a key's value counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Hours.
    Hours,
    /// Per cent.
    Percent,
    /// Degrees Celsius.
    Celsius,
    /// Things, such as errors.
    Count,
    /// `"on"` (1) or `"off"` (0).
    Switch,
}

/// A key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Its value where the configuration has none.
    pub default: u64,
    /// The least that it may be.
    pub least: u64,
    /// The most that it may be.
    pub most: u64,
    /// What it counts.
    pub unit: Unit,
    /// What it is for.
    pub meaning: &'static str,
}

const fn key(
    name: &'static str,
    (default, least, most): (u64, u64, u64),
    unit: Unit,
    meaning: &'static str,
) -> Key {
    Key { name, default, least, most, unit, meaning }
}

/// All keys.
pub const KEYS: [Key; 10] = [
    key(
        "ask_every_s",
        (60, 1, 3_600),
        Unit::Seconds,
        "how long after one reading of a drive the next one begins",
    ),
    key(
        "wear_warning_percent",
        (90, 1, 255),
        Unit::Percent,
        "from this much used life on a drive warns",
    ),
    key(
        "wear_critical_percent",
        (100, 1, 255),
        Unit::Percent,
        "from this much used life on a drive is critical; at least `wear_warning_percent`",
    ),
    key(
        "temperature_hysteresis_c",
        (3, 0, 30),
        Unit::Celsius,
        "how far below a limit a drive has to cool down before it counts as cool",
    ),
    key(
        "media_errors",
        (1, 1, 1_000_000),
        Unit::Count,
        "so many new media errors within `rise_hours` make a drive warn",
    ),
    key(
        "media_errors_critical",
        (100, 1, 1_000_000),
        Unit::Count,
        "so many make it critical; at least `media_errors`",
    ),
    key(
        "errors",
        (1, 1, 1_000_000),
        Unit::Count,
        "so many failed requests within `rise_hours` make a drive warn",
    ),
    key(
        "timeouts",
        (1, 1, 1_000_000),
        Unit::Count,
        "so many requests over the deadline within `rise_hours` make a drive warn",
    ),
    key(
        "rise_hours",
        (24, 1, 8_760),
        Unit::Hours,
        "how long a new error counts; after so long without one the warning ends",
    ),
    key(
        "link",
        (1, 0, 1),
        Unit::Switch,
        "whether a drive warns whose PCI Express link is narrower or slower than it could be",
    ),
];

/// The values of all keys. Each field is the key of its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "KEYS says what each one means")]
pub struct Settings {
    pub ask_every_s: u64,
    pub wear_warning_percent: u64,
    pub wear_critical_percent: u64,
    pub temperature_hysteresis_c: u64,
    pub media_errors: u64,
    pub media_errors_critical: u64,
    pub errors: u64,
    pub timeouts: u64,
    pub rise_hours: u64,
    /// 1 if it is on, 0 if it is off.
    pub link: u64,
}

impl Default for Settings {
    fn default() -> Self {
        let mut settings = Self {
            ask_every_s: 0,
            wear_warning_percent: 0,
            wear_critical_percent: 0,
            temperature_hysteresis_c: 0,
            media_errors: 0,
            media_errors_critical: 0,
            errors: 0,
            timeouts: 0,
            rise_hours: 0,
            link: 0,
        };
        for key in KEYS {
            if let Some(field) = settings.field(key.name) {
                *field = key.default;
            }
        }
        settings
    }
}

/// What the configuration says for a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value<'a> {
    /// A whole number.
    Number(i64),
    /// A text.
    Text(&'a str),
    /// Something else, such as a list: what it is called.
    Other(&'a str),
}

impl core::fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Other(what) => write!(f, "{what}"),
        }
    }
}

impl Key {
    /// The key of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// A value as it is written in the configuration.
    pub fn written(&self, value: u64) -> String {
        match (self.unit, value) {
            (Unit::Switch, 0) => "\"off\"".to_owned(),
            (Unit::Switch, _) => "\"on\"".to_owned(),
            _ => value.to_string(),
        }
    }

    /// What it may be, as people read it.
    pub fn range(&self) -> String {
        match self.unit {
            Unit::Switch => "on or off".to_owned(),
            _ => format!("{} to {}", self.least, self.most),
        }
    }

    /// The number that a value stands for; none if it is of another kind, or out of range.
    fn read(&self, value: Value<'_>) -> Option<u64> {
        let number = match (self.unit, value) {
            (Unit::Switch, Value::Text("on")) => 1,
            (Unit::Switch, Value::Text("off")) => 0,
            (Unit::Switch, _) | (_, Value::Text(_) | Value::Other(_)) => return None,
            (_, Value::Number(number)) => u64::try_from(number).ok()?,
        };
        (self.least..=self.most).contains(&number).then_some(number)
    }
}

impl Settings {
    /// Sets a key. The error is one line for people; nothing is set then.
    pub fn set(&mut self, name: &str, value: Value<'_>) -> Result<(), String> {
        let Some((key, field)) = Key::find(name).zip(self.field(name)) else {
            let known: Vec<_> = KEYS.iter().map(|key| key.name).collect();
            return Err(format!("health has no key {name}, only {}", known.join(", ")));
        };
        let number = key.read(value);
        *field = number.ok_or_else(|| match key.unit {
            Unit::Switch => format!("{name}: {}, not {value}", key.range()),
            _ => format!("{name} must be {}, not {value}", key.range()),
        })?;
        Ok(())
    }

    /// The value of a key; none if there is no such key.
    pub fn get(&self, name: &str) -> Option<u64> {
        let mut copy = *self;
        copy.field(name).map(|field| *field)
    }

    /// Pairs of keys whose values do not fit each other, and why.
    pub fn contradictions(&self) -> Vec<([&'static str; 2], String)> {
        let pairs = [
            ["wear_critical_percent", "wear_warning_percent"],
            ["media_errors_critical", "media_errors"],
        ];
        let fits = |[more, less]: &[&str; 2]| self.get(more) >= self.get(less);
        let told = |[more, less]: [&'static str; 2]| {
            let value = self.get(less).unwrap_or_default();
            ([more, less], format!("{more} must be at least {less}, which is {value}"))
        };
        pairs.into_iter().filter(|pair| !fits(pair)).map(told).collect()
    }

    fn field(&mut self, name: &str) -> Option<&mut u64> {
        Some(match name {
            "ask_every_s" => &mut self.ask_every_s,
            "wear_warning_percent" => &mut self.wear_warning_percent,
            "wear_critical_percent" => &mut self.wear_critical_percent,
            "temperature_hysteresis_c" => &mut self.temperature_hysteresis_c,
            "media_errors" => &mut self.media_errors,
            "media_errors_critical" => &mut self.media_errors_critical,
            "errors" => &mut self.errors,
            "timeouts" => &mut self.timeouts,
            "rise_hours" => &mut self.rise_hours,
            "link" => &mut self.link,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_a_field_that_begins_with_its_default() {
        let mut settings = Settings::default();
        for (at, key) in KEYS.iter().enumerate() {
            assert_eq!(settings.get(key.name), Some(key.default), "{}", key.name);
            assert!((key.least..=key.most).contains(&key.default), "{}", key.name);
            assert!(KEYS.iter().skip(at + 1).all(|other| other.name != key.name));
            let other = if key.default == key.least { key.most } else { key.least };
            let written = if other == 0 { Value::Text("off") } else { Value::Text("on") };
            let value = match key.unit {
                Unit::Switch => written,
                _ => Value::Number(i64::try_from(other).expect("small")),
            };
            assert_eq!(settings.set(key.name, value), Ok(()));
            // Only its own.
            let differ = |key: &&Key| settings.get(key.name) != Some(key.default);
            assert_eq!(KEYS.iter().filter(differ).count(), 1, "{}", key.name);
            settings = Settings::default();
        }
        assert_eq!(settings.contradictions(), []);
    }

    #[test]
    fn values_that_can_not_be_are_refused_and_change_nothing() {
        let cases = [
            ("wear", Value::Number(1), "health has no key wear, only ask_every_s, wear_warning"),
            ("ask_every_s", Value::Number(0), "ask_every_s must be 1 to 3600, not 0"),
            ("ask_every_s", Value::Number(3_601), "ask_every_s must be 1 to 3600, not 3601"),
            ("ask_every_s", Value::Number(-1), "ask_every_s must be 1 to 3600, not -1"),
            ("errors", Value::Text("1"), "errors must be 1 to 1000000, not \"1\""),
            ("errors", Value::Other("a list"), "errors must be 1 to 1000000, not a list"),
            ("link", Value::Text("no"), "link: on or off, not \"no\""),
            ("link", Value::Number(1), "link: on or off, not 1"),
        ];
        for (name, value, expected) in cases {
            let mut settings = Settings::default();
            let told = settings.set(name, value).expect_err(name);
            assert!(told.starts_with(expected), "{told}");
            assert_eq!(settings, Settings::default());
        }
    }

    #[test]
    fn what_is_critical_is_no_less_than_what_warns() {
        let mut settings = Settings::default();
        settings.set("wear_warning_percent", Value::Number(101)).expect("in range");
        settings.set("media_errors_critical", Value::Number(1)).expect("in range");
        let told = settings.contradictions();
        let what = "wear_critical_percent must be at least wear_warning_percent, which is 101";
        let pair = ["wear_critical_percent", "wear_warning_percent"];
        assert_eq!(told, [(pair, what.to_owned())]);
    }
}
