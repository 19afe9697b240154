//! Query parameters of a GET (DSP0266, "Query parameters"): `$expand`, `$select`, `$filter`,
//! `$top`, `$skip` and `only`.
//!
//! They are carried out in this order: `$filter`, `$skip`, `$top`, `$expand`, `$select`. Any other
//! `$…` is refused; whatever else has no `$` is ignored.
//!
//! Of a long log a GET without `$top` gives the first [`PAGE`] lines, and
//! `Members@odata.nextLink` leads to the rest (DSP0266, "Resource collections").

mod expand;
pub(crate) mod filter;
mod select;

use crate::error::{Base, Refusal};
use crate::routes::unescaped;
use core::ops::Range;
pub use expand::MOST_LEVELS;
use expand::{Expand, Unreadable};
use filter::Filter;
use select::Select;
use serde_json::Value;

/// How long a query may be, in bytes.
const MOST_BYTES: usize = 8192;

/// So many lines of a log are told at once, unless a client says how many.
const PAGE: usize = 200;

/// The type of collections that are told in pages.
const PAGED: &str = "#LogEntryCollection.LogEntryCollection";

/// How many parts a property's path may have.
const MOST_PARTS: usize = 16;

/// What a GET asks for, besides its URI.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Query {
    expand: Option<Expand>,
    select: Option<Select>,
    filter: Option<Filter>,
    top: Option<usize>,
    skip: Option<usize>,
    only: bool,
    /// What of it the next page is to be asked for with, too.
    again: String,
}

/// The parts of a property's path, such as `Status/Health`; none if it is no path.
fn path(text: &str) -> Option<Vec<String>> {
    let is_part = |part: &str| {
        !part.is_empty() && part.chars().all(|one| one.is_alphanumeric() || "_@.#-".contains(one))
    };
    let parts: Vec<&str> = text.split('/').collect();
    let is_path = parts.len() <= MOST_PARTS && parts.iter().all(|part| is_part(part));
    is_path.then(|| parts.into_iter().map(str::to_owned).collect())
}

/// A part of a query, decoded (RFC 3986, section 2.1; a plus is a space, as forms have it).
fn decoded(text: &str) -> Option<String> {
    unescaped(text, b'%', |byte| if byte == b'+' { b' ' } else { byte })
}

/// Puts a value that may be given once in its place.
fn once<T>(place: &mut Option<T>, value: T) -> Result<(), Refusal> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Refusal::base(&Base::QUERY_COMBINATION, &[])),
    }
}

/// The options that stand behind the `?` of a URI, with their values; what can't be decoded and has
/// no `$` is left out.
pub(crate) fn options(raw: &str) -> Result<Vec<(String, String)>, Refusal> {
    if raw.len() > MOST_BYTES {
        return Err(Refusal::base(&Base::QUERY_FORMAT, &["…", "?"]).with_status(414));
    }
    let mut all = Vec::new();
    for part in raw.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let name = decoded(name).unwrap_or_else(|| name.to_owned());
        match decoded(value) {
            Some(value) => all.push((name, value)),
            None if name.starts_with('$') => {
                return Err(Refusal::base(&Base::QUERY_FORMAT, &[value, &name]));
            }
            None => {}
        }
    }
    Ok(all)
}

impl Query {
    /// Reads what stands behind the `?` of a URI.
    ///
    /// # Errors
    ///
    /// 400 if a parameter can't be read or does not go with another, 501 if it is not known.
    pub fn parse(raw: &str) -> Result<Self, Refusal> {
        let mut query = Self::default();
        if raw.len() > MOST_BYTES {
            return Err(Refusal::base(&Base::QUERY_FORMAT, &["…", "?"]).with_status(414));
        }
        for part in raw.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let name = decoded(name).unwrap_or_else(|| name.to_owned());
            let Some(value) = decoded(value) else {
                if name.starts_with('$') {
                    return Err(Refusal::base(&Base::QUERY_FORMAT, &[value, &name]));
                }
                continue;
            };
            query.take(&name, &value)?;
            if name.starts_with('$') && name != "$skip" {
                query.again.push_str(&format!("&{part}"));
            }
        }
        let Self { expand, select, filter, top, skip, only, .. } = &query;
        let others = expand.is_some() || select.is_some() || filter.is_some();
        if *only && (others || top.is_some() || skip.is_some()) {
            return Err(Refusal::base(&Base::QUERY_COMBINATION, &[]));
        }
        Ok(query)
    }

    fn take(&mut self, name: &str, value: &str) -> Result<(), Refusal> {
        let wrong = || Refusal::base(&Base::QUERY_FORMAT, &[value, name]);
        match name {
            "$expand" => {
                let expand = Expand::read(value).map_err(|why| match why {
                    Unreadable::Format => wrong(),
                    Unreadable::Levels => {
                        let range = format!("1 to {}", MOST_LEVELS);
                        Refusal::base(&Base::QUERY_RANGE, &[value, name, &range])
                    }
                })?;
                once(&mut self.expand, expand)
            }
            "$select" => once(&mut self.select, Select::read(value).ok_or_else(wrong)?),
            "$filter" => once(&mut self.filter, Filter::read(value).ok_or_else(wrong)?),
            "$top" => once(&mut self.top, count(name, value)?),
            "$skip" => once(&mut self.skip, count(name, value)?),
            "only" if value.is_empty() => {
                self.only = true;
                Ok(())
            }
            "only" => Err(wrong()),
            name if name.starts_with('$') => Err(Refusal::base(&Base::QUERY_UNSUPPORTED, &[name])),
            _ => Ok(()),
        }
    }

    /// Whether it asks for nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it leaves a property of the resource out.
    pub fn leaves_out(&self, property: &str) -> bool {
        self.select.as_ref().is_some_and(|select| !select.has(property))
    }

    /// Which lines of a log it is about, of those that there are: what is told in pages is
    /// made in pages, unless it is filtered.
    pub fn part(&self) -> Range<usize> {
        if self.filter.is_some() || self.only {
            return 0..usize::MAX;
        }
        let skip = self.skip.unwrap_or(0);
        skip..skip.saturating_add(self.top.unwrap_or(PAGE))
    }

    /// Carries it out on a resource. `get` gives other resources, by their URIs.
    ///
    /// # Errors
    ///
    /// 400 if the resource is no collection and the query is for one, 507 if the answer is too
    /// large.
    pub fn apply(
        &self,
        mut value: Value,
        get: &dyn Fn(&str) -> Option<Value>,
    ) -> Result<Value, Refusal> {
        let pages = self.filter.is_some() || self.top.is_some() || self.skip.is_some();
        if pages || self.only {
            let items = value.get_mut("Members").and_then(Value::as_array_mut);
            let items = items.ok_or_else(|| Refusal::base(&Base::QUERY_NOT_HERE, &[]))?;
            if self.only {
                let [only] = items.as_slice() else { return Ok(value) };
                let resource = expand::link(only).and_then(get);
                return Ok(resource.unwrap_or(value));
            }
            let total = self.page(items, get);
            if let Some(count) = value.get_mut("Members@odata.count") {
                *count = Value::from(total);
            }
        }
        if self.top.is_none() {
            value = first_page(value, self.skip.unwrap_or(0), &self.again);
        }
        if let Some(expand) = self.expand {
            let too_large = || Refusal::base(&Base::TOO_MUCH, &[]);
            let get = |uri: &str| get(uri).map(|value| first_page(value, 0, ""));
            value = expand.of(value, &get).ok_or_else(too_large)?;
        }
        if let Some(select) = &self.select {
            value = select.of(value);
        }
        Ok(value)
    }

    /// Keeps the members that are asked for, and says how many there are but for pages.
    fn page(&self, items: &mut Vec<Value>, get: &dyn Fn(&str) -> Option<Value>) -> usize {
        if let Some(filter) = &self.filter {
            items.retain(|item| match expand::link(item).and_then(get) {
                Some(resource) => filter.is_true_of(&resource),
                None => filter.is_true_of(item),
            });
        }
        let total = items.len();
        items.drain(..self.skip.unwrap_or(0).min(total));
        items.truncate(self.top.unwrap_or(usize::MAX));
        total
    }
}

/// The first page of a collection that is told in pages, from which `skip` members were left out;
/// the next page is asked for with `again`, too. Anything else stays as it is.
fn first_page(mut value: Value, skip: usize, again: &str) -> Value {
    let is_paged = value.get("@odata.type").and_then(Value::as_str) == Some(PAGED);
    let uri = value.get("@odata.id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let items = value.get_mut("Members").and_then(Value::as_array_mut);
    if let Some(items) = items.filter(|items| is_paged && items.len() > PAGE) {
        items.truncate(PAGE);
        let next = format!("{uri}?$skip={}{again}", skip.saturating_add(PAGE));
        if let Some(object) = value.as_object_mut() {
            object.insert("Members@odata.nextLink".to_owned(), Value::from(next));
        }
    }
    value
}

/// A number of members.
fn count(name: &str, value: &str) -> Result<usize, Refusal> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refusal::base(&Base::QUERY_TYPE, &[value, name]));
    }
    let number = value.parse().ok().filter(|_| digits == value);
    let range = || format!("0 to {}", usize::MAX);
    number.ok_or_else(|| Refusal::base(&Base::QUERY_RANGE, &[value, name, &range()]))
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
