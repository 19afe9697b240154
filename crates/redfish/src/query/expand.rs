//! `$expand` (DSP0266, "The `$expand` query parameter"): resources in the place of links to them.
//!
//! A link to a resource that it stands in stays a link: what is around it is told already.
//!
//! Invariant: an answer has at most [`MOST_VALUES`] values of JSON.

use serde_json::Value;

/// How many levels of links are followed at most.
pub const MOST_LEVELS: u64 = 3;

/// How many values of JSON an answer may have.
const MOST_VALUES: usize = 400_000;

/// Which links are followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// `*`
    All,
    /// `.`: those that are not under `Links`.
    Contained,
    /// `~`: those under `Links`.
    Linked,
}

/// What to expand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expand {
    /// Which links.
    pub which: Which,
    /// Over how many levels.
    pub levels: u64,
}

/// Why an expansion can't be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unreadable {
    /// Its syntax is wrong.
    Format,
    /// It has no level, or too many.
    Levels,
}

impl Expand {
    /// Reads `*`, `.` or `~`, with levels if there are any: `.($levels=2)`.
    pub fn read(text: &str) -> Result<Self, Unreadable> {
        let mut letters = text.chars();
        let which = match letters.next() {
            Some('*') => Which::All,
            Some('.') => Which::Contained,
            Some('~') => Which::Linked,
            _ => return Err(Unreadable::Format),
        };
        let rest = letters.as_str();
        if rest.is_empty() {
            return Ok(Self { which, levels: 1 });
        }
        let number = rest.strip_prefix("($levels=").and_then(|rest| rest.strip_suffix(')'));
        let number =
            number.filter(|own| !own.is_empty() && own.bytes().all(|b| b.is_ascii_digit()));
        let number = number.ok_or(Unreadable::Format)?;
        match number.parse() {
            Ok(levels) if (1..=MOST_LEVELS).contains(&levels) => Ok(Self { which, levels }),
            _ => Err(Unreadable::Levels),
        }
    }

    /// Puts resources in the place of links; none if that is too much.
    pub fn of(self, mut value: Value, get: &dyn Fn(&str) -> Option<Value>) -> Option<Value> {
        let mut work = Work { which: self.which, get, within: Vec::new(), values: 0 };
        work.resource(&mut value, self.levels)?;
        Some(value)
    }
}

/// The URI, if a value is nothing but a link.
pub fn link(value: &Value) -> Option<&str> {
    let own = value.as_object().filter(|own| own.len() == 1)?;
    own.get("@odata.id")?.as_str()
}

struct Work<'a> {
    which: Which,
    get: &'a dyn Fn(&str) -> Option<Value>,
    /// URIs of the resources around.
    within: Vec<String>,
    values: usize,
}

impl Work<'_> {
    fn resource(&mut self, value: &mut Value, levels: u64) -> Option<()> {
        let uri = value.get("@odata.id").and_then(Value::as_str).unwrap_or_default().to_owned();
        self.within.push(uri);
        self.within(value, levels, false)?;
        self.within.pop();
        Some(())
    }

    fn within(&mut self, value: &mut Value, levels: u64, is_linked: bool) -> Option<()> {
        self.values += 1;
        if self.values > MOST_VALUES {
            return None;
        }
        if let Some(uri) = link(value) {
            let is_wanted = match self.which {
                Which::All => true,
                Which::Contained => !is_linked,
                Which::Linked => is_linked,
            };
            let Some(below) = levels.checked_sub(1).filter(|_| is_wanted) else { return Some(()) };
            if self.within.iter().any(|around| around == uri) {
                return Some(());
            }
            if let Some(resource) = (self.get)(uri) {
                *value = resource;
                self.resource(value, below)?;
            }
            return Some(());
        }
        match value {
            Value::Object(own) => {
                for (name, value) in own {
                    self.within(value, levels, is_linked || name == "Links")?;
                }
            }
            Value::Array(own) => {
                for value in own {
                    self.within(value, levels, is_linked)?;
                }
            }
            _ => {}
        }
        Some(())
    }
}
