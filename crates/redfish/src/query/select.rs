//! `$select` (DSP0266, "The `$select` query parameter"): which properties of a resource are told.
//!
//! A path goes through arrays, and into what `$expand` put in the place of links. Annotations such
//! as `@odata.id` are always told.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How many paths there may be.
const MOST_PATHS: usize = 256;

/// The properties that are wanted, and what of each; all of it if nothing is said.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Select {
    wanted: BTreeMap<String, Select>,
}

impl Select {
    /// Reads paths, with commas between them; none if they can't be read.
    pub fn read(text: &str) -> Option<Self> {
        let mut all = Self::default();
        let mut whole = Vec::new();
        let paths: Vec<&str> = text.split(',').map(str::trim).collect();
        if paths.len() > MOST_PATHS {
            return None;
        }
        for path in paths {
            let parts = if path == "*" { vec![path.to_owned()] } else { super::path(path)? };
            let mut at = &mut all;
            for part in &parts {
                at = at.wanted.entry(part.clone()).or_default();
            }
            whole.push(parts);
        }
        // What is wanted whole is not narrowed by a path into it.
        for parts in whole {
            let mut at = Some(&mut all);
            for part in &parts {
                at = at.and_then(|own| own.wanted.get_mut(part));
            }
            if let Some(own) = at {
                own.wanted.clear();
            }
        }
        Some(all)
    }

    /// Whether something of a property is wanted.
    pub fn has(&self, property: &str) -> bool {
        self.wanted.is_empty()
            || self.wanted.contains_key("*")
            || self.wanted.contains_key(property)
    }

    /// What is left of a value.
    pub fn of(&self, value: Value) -> Value {
        if self.wanted.is_empty() || self.wanted.contains_key("*") {
            return value;
        }
        match value {
            Value::Object(own) => {
                let kept = own.into_iter().filter_map(|(name, value)| self.kept(name, value));
                Value::Object(kept.collect::<Map<_, _>>())
            }
            Value::Array(own) => own.into_iter().map(|one| self.of(one)).collect(),
            other => other,
        }
    }

    fn kept(&self, name: String, value: Value) -> Option<(String, Value)> {
        let (property, annotation) =
            name.split_once('@').map_or((name.as_str(), None), |parts| (parts.0, Some(parts.1)));
        if annotation.is_some() {
            let is_kept = property.is_empty() || self.wanted.contains_key(property);
            return is_kept.then_some((name, value));
        }
        let own = self.wanted.get(property)?;
        let value = own.of(value);
        Some((name, value))
    }
}
