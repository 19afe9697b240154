//! Records that scripts keep in the tree can be read, and have their keys.

use super::Finding;
use super::files::File;
use super::json::{Value, parse};

const RUNS: &str = "docs/runs.json";
const TIMES: &str = "docs/test-times.json";
const UNCHANGED: &str = "docs/unchanged.json";

/// The kind of a key's value.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Number,
    TextOrNull,
}
use Kind::{Number, Text, TextOrNull};

/// What every run says (script/runs.py).
const RUN: &[(&str, Kind)] = &[
    ("date", Text),
    ("what", Text),
    ("count", Number),
    ("unit", Text),
    ("found", TextOrNull),
    ("hours", Number),
    ("commit", Text),
];
/// What a record of steps' seconds says, and each step (script/test).
const STEPS: &[(&str, Kind)] = &[("machine", Text), ("commit", Text), ("cold_seconds", Number)];
const STEP: &[(&str, Kind)] = &[("name", Text), ("seconds", Number)];

/// What an object lacks.
fn lacks(value: &Value, keys: &[(&str, Kind)]) -> Option<String> {
    let wrong = keys.iter().find(|(key, kind)| {
        let found = value.get(key);
        !matches!(
            (found, kind),
            (Some(Value::Text(_)), Text | TextOrNull)
                | (Some(Value::Null), TextOrNull)
                | (Some(Value::Number(_)), Number)
        )
    });
    wrong.map(|(key, _)| format!("no `{key}`, or of another kind"))
}

/// What a run lacks, beside that it is of seeds or has a scope.
fn run_lacks(run: &Value) -> Option<String> {
    lacks(run, RUN).or_else(|| {
        let of_seeds = lacks(run, &[("from", Number), ("to", Number)]).is_none();
        let scoped = lacks(run, &[("scope", Text)]).is_none();
        (of_seeds == scoped).then(|| "either `from` and `to`, or `scope`".to_owned())
    })
}

/// What is wrong with a record, and the line where that is known.
fn wrong(path: &str, value: &Value) -> Option<(usize, String)> {
    let line_of = |value: &Value| match value {
        Value::Object(pairs) => pairs.first().map_or(1, |(_, line, _)| *line),
        _ => 1,
    };
    let each = |values: &[Value], lacks: &dyn Fn(&Value) -> Option<String>| {
        values.iter().find_map(|value| Some((line_of(value), lacks(value)?)))
    };
    match (path, value) {
        (RUNS, Value::List(runs)) => each(runs, &run_lacks),
        (TIMES, value) => lacks(value, STEPS).map(|message| (1, message)).or_else(|| {
            let Some(Value::List(steps)) = value.get("steps") else {
                return Some((1, "no list of `steps`".to_owned()));
            };
            each(steps, &|step| lacks(step, STEP))
        }),
        (UNCHANGED, Value::Object(steps)) => steps.iter().find_map(|(step, line, hash)| {
            let is_text = matches!(hash, Value::Text(_));
            (!is_text).then(|| (*line, format!("the hash of `{step}` is no text")))
        }),
        _ => Some((1, "not the kind of value that its script writes".to_owned())),
    }
}

/// docs/runs.json, docs/test-times.json and docs/unchanged.json are JSON with the keys that their
/// scripts need.
pub fn readable(files: &[File]) -> Vec<Finding> {
    let records = files.iter().filter(|f| [RUNS, TIMES, UNCHANGED].contains(&f.path.as_str()));
    let found = records.filter_map(|file| {
        let (line, message) = match parse(&file.text) {
            Ok(value) => wrong(&file.path, &value)?,
            Err(line) => (line, "no JSON".to_owned()),
        };
        Some(Finding::new(file, line, format!("{message}: let its script write it")))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    const GOOD: &str = "{\"date\": \"d\", \"what\": \"sim\", \"from\": 0, \"to\": 9, \"count\": 1, \
                        \"unit\": \"u\", \"found\": null, \"hours\": 0.1, \"commit\": \"c\"}";

    #[test]
    fn runs_without_their_keys_are_found() {
        let scoped = GOOD.replace("\"from\": 0, \"to\": 9", "\"scope\": \"all\"");
        let file = |text: &str| [File::new(RUNS, text, false)];
        expect(readable, &file(&format!("[\n{GOOD},\n{scoped}\n]\n")), &[]);
        expect(readable, &file("[\n"), &["docs/runs.json:2"]);
        expect(readable, &file("{}\n"), &["docs/runs.json:1"]);
        for (right, wrong) in [
            ("\"count\": 1", "\"count\": \"1\""),
            ("\"found\": null", "\"found\": 0"),
            ("\"to\": 9, ", ""),
            ("\"from\": 0", "\"scope\": \"all\", \"from\": 0"),
        ] {
            let bad = GOOD.replace(right, wrong);
            expect(readable, &file(&format!("[\n{GOOD},\n{bad}\n]\n")), &["docs/runs.json:3"]);
        }
    }

    #[test]
    fn times_and_hashes_of_another_form_are_found() {
        let times = "{\"machine\": \"m\", \"commit\": \"c\", \"cold_seconds\": 1.5, \"steps\": \
                     [{\"name\": \"fmt\", \"seconds\": 1}]}";
        let file = |path: &str, text: &str| [File::new(path, text, false)];
        expect(readable, &file(TIMES, times), &[]);
        expect(readable, &file(TIMES, &times.replace("cold_", "")), &["docs/test-times.json:1"]);
        expect(readable, &file(TIMES, &times.replace("fmt\"", "fmt\", \"n\": 0")), &[]);
        let nameless = times.replace("name", "step");
        expect(readable, &file(TIMES, &nameless), &["docs/test-times.json:1"]);
        expect(readable, &file(UNCHANGED, "{\n\"neon\": \"1\"}\n"), &[]);
        expect(readable, &file(UNCHANGED, "{\n\"neon\": 1}\n"), &["docs/unchanged.json:2"]);
    }
}
