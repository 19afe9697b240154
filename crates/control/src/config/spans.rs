//! Values of a TOML file with the places where they are, and what is wrong there.
//!
//! Invariant: every mistake has the place of the key or value that it is about.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value with its place.
pub(super) type Value<'a> = Spanned<DeValue<'a>>;

/// Something that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Wrong {
    /// Where, in bytes from the text's start.
    pub(super) at: usize,
    /// What, one line.
    pub(super) what: String,
}

/// The mistakes that were found so far.
pub(super) type Found = Vec<Wrong>;

/// Something is wrong at a place.
pub(super) fn wrong(found: &mut Found, at: usize, what: String) {
    found.push(Wrong { at, what });
}

/// A value's kind, as people call it.
pub(super) const fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "a truth value",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// A whole number; none if it is something else, or too large.
pub(super) fn number(value: &Value<'_>) -> Option<i64> {
    let number = value.get_ref().as_integer()?;
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// A text that says something; else that is wrong.
pub(super) fn text(key: &str, value: &Value<'_>, found: &mut Found) -> Option<String> {
    match value.get_ref() {
        DeValue::String(text) if !text.trim().is_empty() => Some(text.clone().into_owned()),
        DeValue::String(_) => {
            wrong(found, value.span().start, format!("{key} must not be empty"));
            None
        }
        other => {
            let what = format!("{key} must be a text, not {}", kind(other));
            wrong(found, value.span().start, what);
            None
        }
    }
}

/// A whole number within a range; else that is wrong.
pub(super) fn within(
    key: &str,
    value: &Value<'_>,
    (least, most): (u16, u16),
    found: &mut Found,
) -> Option<u16> {
    let given = number(value);
    let good = given.and_then(|given| u16::try_from(given).ok());
    let good = good.filter(|good| (least..=most).contains(good));
    if good.is_none() {
        let given = given.map_or_else(|| kind(value.get_ref()).to_owned(), |n| n.to_string());
        let what = format!("{key} must be {least} to {most}, not {given}");
        wrong(found, value.span().start, what);
    }
    good
}

/// A table; else that is wrong.
pub(super) fn table<'v, 'i>(
    key: &str,
    value: &'v Value<'i>,
    found: &mut Found,
) -> Option<&'v DeTable<'i>> {
    let table = value.get_ref().as_table();
    if table.is_none() {
        let what = format!("{key} must be a table, not {}", kind(value.get_ref()));
        wrong(found, value.span().start, what);
    }
    table
}

/// The values of a list; else that is wrong.
pub(super) fn list<'v, 'i>(key: &str, value: &'v Value<'i>, found: &mut Found) -> &'v [Value<'i>] {
    match value.get_ref() {
        DeValue::Array(list) => list,
        other => {
            let what = format!("{key} must be a list, not {}", kind(other));
            wrong(found, value.span().start, what);
            &[]
        }
    }
}

/// The key of a table that a place is in, or in whose value.
pub(super) fn key_of(table: &DeTable<'_>, at: usize) -> Option<String> {
    let is_in = |key: &Spanned<_>, value| key.span().contains(&at) || covers(value, at);
    let own = table.iter().find(|(key, value)| is_in(key, value));
    own.map(|(key, _)| key.get_ref().clone().into_owned())
}

/// Whether a place is in a value. A table's own place is its heading alone.
fn covers(value: &Value<'_>, at: usize) -> bool {
    value.span().contains(&at)
        || match value.get_ref() {
            DeValue::Table(table) => key_of(table, at).is_some(),
            DeValue::Array(list) => list.iter().any(|value| covers(value, at)),
            _ => false,
        }
}
