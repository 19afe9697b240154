//! The table `[health]`: from when on a drive is not well. The crate `health` has the keys.

use super::spans::{Found, Value, kind, number, table, wrong};
use health::settings::{Settings, Value as Given};
use toml::de::DeValue;

/// Reads the table; what is wrong keeps its default.
pub(super) fn read(value: &Value<'_>, found: &mut Found) -> Settings {
    let mut settings = Settings::default();
    let Some(table) = table("health", value, found) else { return settings };
    for (key, value) in table {
        let given = match value.get_ref() {
            DeValue::String(text) => Given::Text(text),
            other => number(value).map_or_else(|| Given::Other(kind(other)), Given::Number),
        };
        if let Err(what) = settings.set(key.get_ref(), given) {
            wrong(found, key.span().start, what);
        }
    }
    for (pair, what) in settings.contradictions() {
        // The file has one of the two at least, as defaults do not contradict each other.
        let own = pair.iter().find_map(|name| table.keys().find(|key| key.get_ref() == name));
        wrong(found, own.map_or(value.span().start, |key| key.span().start), what);
    }
    settings
}
