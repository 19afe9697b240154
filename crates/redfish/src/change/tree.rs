//! JSON of a request, with nothing lost: properties keep their order, and doubled ones are seen.
//!
//! Invariant: reading takes memory in proportion to the text, and a stack of [`MOST_LEVELS`]
//! levels at most.

use crate::error::{Base, Refusal};
use serde::de::{Deserialize, DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeSet;
use std::fmt;

/// How deep objects and arrays may be within each other.
pub const MOST_LEVELS: u32 = 32;

/// A value of JSON.
#[derive(Clone, PartialEq, Debug)]
pub enum Tree {
    /// `null`.
    Null,
    /// `true` or `false`.
    Truth(bool),
    /// A whole number from 0.
    Whole(u64),
    /// Another number.
    Number(f64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Tree>),
    /// An object's properties, in their order.
    Object(Vec<(String, Tree)>),
}

/// Whether a text has PEM in it (RFC 7468): it may have a private key.
pub fn may_be_key(text: &str) -> bool {
    text.contains("-----BEGIN")
}

impl Tree {
    /// Reads a whole body. One that is empty is an empty object.
    pub fn read(body: &[u8]) -> Result<Self, Refusal> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self::Object(Vec::new()));
        }
        let malformed = |_| Refusal::base(&Base::MALFORMED_JSON, &[]);
        let mut reader = serde_json::Deserializer::from_slice(body);
        let tree = Level(MOST_LEVELS).deserialize(&mut reader).map_err(malformed)?;
        reader.end().map_err(malformed)?;
        Ok(tree)
    }

    /// How it is told to a person: what is long is cut, and what may be a key is left out.
    pub fn shown(&self) -> String {
        match self {
            Self::Text(text) if may_be_key(text) => "…".to_owned(),
            Self::Null => "null".to_owned(),
            Self::Truth(value) => value.to_string(),
            Self::Whole(value) => value.to_string(),
            Self::Number(value) => value.to_string(),
            Self::Text(text) if text.chars().count() > 80 => {
                format!("{}…", text.chars().take(80).collect::<String>())
            }
            Self::Text(text) => text.clone(),
            Self::List(_) => "[…]".to_owned(),
            Self::Object(_) => "{…}".to_owned(),
        }
    }

    /// Paths of properties that are there more than once: JSON pointers, of 16 at most.
    pub fn doubled(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.look_for_doubled(&mut "#".to_owned(), &mut found);
        found
    }

    /// `path` is the value's own, and is left as it was.
    fn look_for_doubled(&self, path: &mut String, found: &mut Vec<String>) {
        let length = path.len();
        match self {
            Self::List(items) => {
                for (number, item) in items.iter().enumerate() {
                    path.push('/');
                    path.push_str(&number.to_string());
                    item.look_for_doubled(path, found);
                    path.truncate(length);
                }
            }
            Self::Object(properties) => {
                let mut seen = BTreeSet::new();
                for (name, value) in properties {
                    path.push('/');
                    path.push_str(&pointer_part(name));
                    if !seen.insert(name) && found.len() < 16 && !found.contains(path) {
                        found.push(path.clone());
                    }
                    value.look_for_doubled(path, found);
                    path.truncate(length);
                }
            }
            _ => {}
        }
    }
}

/// A name as part of a JSON pointer (RFC 6901, section 3).
pub fn pointer_part(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Reads a value that has so many levels at most.
#[derive(Clone, Copy)]
struct Level(u32);

impl Level {
    fn below<E: serde::de::Error>(self) -> Result<Self, E> {
        self.0.checked_sub(1).map(Self).ok_or_else(|| E::custom("too deep"))
    }
}

impl<'de> DeserializeSeed<'de> for Level {
    type Value = Tree;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Tree, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Truth(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Whole(value))
    }

    #[allow(clippy::cast_precision_loss, reason = "negative numbers are only told")]
    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(u64::try_from(value).map_or(Tree::Number(value as f64), Tree::Whole))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Tree, E> {
        Ok(Tree::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Tree, A::Error> {
        let below = self.below()?;
        let mut items = Vec::new();
        while let Some(item) = from.next_element_seed(below)? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Tree, A::Error> {
        let below = self.below()?;
        let mut properties = Vec::new();
        while let Some(Name(name)) = from.next_key()? {
            properties.push((name, from.next_value_seed(below)?));
        }
        Ok(Tree::Object(properties))
    }
}

/// A property's name; one without an end is none.
struct Name(String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let name = String::deserialize(reader)?;
        if name.len() > 256 {
            return Err(D::Error::custom("a name is too long"));
        }
        Ok(Self(name))
    }
}
