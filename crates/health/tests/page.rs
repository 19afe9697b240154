//! docs/health.md says of keys and rules what the tables say.

use health::departures::{LONGEST, QUIET};
use health::rules::{READINGS_TO_CLEAR, READINGS_TO_RAISE, Rule};
use health::settings::{KEYS, Key, Unit};

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/health.md");
    std::fs::read_to_string(path).expect("the page is there")
}

/// The rows of the table with this heading.
fn rows<'p>(page: &'p str, heading: &str) -> Vec<&'p str> {
    let mut lines = page.lines().skip_while(|line| *line != heading).skip(2);
    lines.by_ref().take_while(|line| line.starts_with('|')).collect()
}

fn key(key: &Key) -> String {
    let unit = match key.unit {
        Unit::Seconds => " s",
        Unit::Hours => " h",
        Unit::Percent => "%",
        Unit::Celsius => " °C",
        Unit::Count | Unit::Switch => "",
    };
    let range = match key.unit {
        Unit::Switch => "`\"on\"`, `\"off\"`".to_owned(),
        _ => key.range(),
    };
    let default = key.written(key.default);
    format!("| `{}` | `{default}`{unit} | {range} | {} |", key.name, key.meaning)
}

#[test]
fn the_page_has_each_key_with_its_default() {
    let expected: Vec<_> = KEYS.iter().map(key).collect();
    assert_eq!(rows(&page(), "| Key | Default | May be | Means |"), expected);
}

#[test]
fn the_page_has_each_rule() {
    let row = |rule: &Rule| {
        let row = rule.row();
        let (name, raised, cleared, action) = (row.name, row.raised, row.cleared, row.action);
        format!("| `{name}` | {raised} | {cleared} | {action} |")
    };
    let expected: Vec<_> = Rule::ALL.iter().map(row).collect();
    let page = page();
    assert_eq!(rows(&page, "| Rule | Raised | Cleared | What to do |"), expected);
    let readings = [(READINGS_TO_RAISE, "raised", Rule::Link.row().raised)];
    let cleared = (READINGS_TO_CLEAR, "cleared", Rule::Wear.row().cleared);
    for (number, what, text) in readings.into_iter().chain([cleared]) {
        assert!(text.contains(&format!("{number} readings in a row")), "{what}: {text}");
    }
}

#[test]
fn the_page_says_how_long_departures_are_gathered() {
    let (quiet, longest) = (QUIET.as_millis(), LONGEST.as_millis());
    assert!(page().contains(&format!("{quiet} ms after the last")));
    assert!(page().contains(&format!("{longest} ms after the first")));
}
