//! Prometheus' text format, version 0.0.4: families of samples, one behind the other.
//!
//! Invariants
//! - The samples of a family stand together, below its help and its type. A family without samples
//!   is not there.
//! - No value of a label breaks its line.

use core::fmt::{Display, Write};

/// What a family's values are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It only grows, but for restarts. Its name ends with `_total`.
    Counter,
    /// It goes up and down.
    Gauge,
    /// How many observations were how large.
    Histogram,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A family's name, type and help.
type Family = (&'static str, Kind, &'static str);

/// What is written so far.
#[derive(Default)]
pub struct Text {
    out: String,
    /// The family whose samples come now.
    name: &'static str,
    /// The same, until it has a sample.
    begins: Option<Family>,
}

impl Text {
    /// Nothing is written; there is room for so many bytes.
    pub fn with_room(bytes: usize) -> Self {
        Self { out: String::with_capacity(bytes), ..Self::default() }
    }

    /// A family begins.
    pub const fn family(&mut self, kind: Kind, name: &'static str, help: &'static str) {
        self.name = name;
        self.begins = Some((name, kind, help));
    }

    /// What is counted.
    pub const fn counter(&mut self, name: &'static str, help: &'static str) {
        self.family(Kind::Counter, name, help);
    }

    /// What is measured.
    pub const fn gauge(&mut self, name: &'static str, help: &'static str) {
        self.family(Kind::Gauge, name, help);
    }

    /// A family of one sample without labels.
    pub fn one(
        &mut self,
        kind: Kind,
        (name, help): (&'static str, &'static str),
        value: impl Display,
    ) {
        self.family(kind, name, help);
        self.put("", value);
    }

    /// A sample; `labels` are those of [`labels`].
    pub fn put(&mut self, labels: &str, value: impl Display) {
        self.sample("", labels, ("", ""), value);
    }

    /// A sample with one label more, whose value needs no escaping.
    pub fn with(&mut self, labels: &str, more: (&str, &str), value: impl Display) {
        self.sample("", labels, more, value);
    }

    /// The samples of one state: 1 for the one that is, 0 for the others.
    pub fn states<S: PartialEq>(&mut self, labels: &str, all: &[(S, &str)], now: &S) {
        for (state, word) in all {
            self.with(labels, ("state", word), u8::from(state == now));
        }
    }

    /// A histogram: how many observations were at most so large, for growing bounds that are
    /// written as they are given, then how many there were, and their sum.
    pub fn histogram<'b>(
        &mut self,
        labels: &str,
        buckets: impl Iterator<Item = (&'b str, u64)>,
        count: u64,
        sum: impl Display,
    ) {
        for (bound, below) in buckets {
            self.sample("_bucket", labels, ("le", bound), below);
        }
        self.sample("_bucket", labels, ("le", "+Inf"), count);
        self.sample("_sum", labels, ("", ""), sum);
        self.sample("_count", labels, ("", ""), count);
    }

    fn sample(
        &mut self,
        suffix: &str,
        labels: &str,
        (more, word): (&str, &str),
        value: impl Display,
    ) {
        let out = &mut self.out;
        if let Some((name, kind, help)) = self.begins.take() {
            for part in ["# HELP ", name, " ", help, "\n# TYPE ", name, " ", kind.word(), "\n"] {
                out.push_str(part);
            }
        }
        out.push_str(self.name);
        out.push_str(suffix);
        if !(labels.is_empty() && more.is_empty()) {
            out.push('{');
            out.push_str(labels);
            if !more.is_empty() {
                let comma = if labels.is_empty() { "" } else { "," };
                for part in [comma, more, "=\"", word, "\""] {
                    out.push_str(part);
                }
            }
            out.push('}');
        }
        out.push(' ');
        // A text takes all that is written.
        let _ = write!(out, "{value}");
        out.push('\n');
    }

    /// All of it.
    pub fn end(self) -> String {
        self.out
    }
}

/// Labels as samples have them. One whose value is empty is as good as absent, and left out.
pub fn labels(all: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (name, value) in all.iter().filter(|(_, value)| !value.is_empty()) {
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(name);
        out.push_str("=\"");
        for letter in value.chars() {
            match letter {
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                '\n' => out.push_str("\\n"),
                other => out.push(other),
            }
        }
        out.push('"');
    }
    out
}

/// A truth as a number.
pub const fn truth(is: bool) -> u8 {
    is as u8
}
