//! What the command line prints: tables for people, JSON for programs, errors for both.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused for safety, 4 no daemon. With
//! `--exit-state` they tell an array's state, and 4 that it can't be told.
//!
//! Invariants: results go to the standard output, errors to the standard error, an error is one
//! line of what happened and one of what to do; colours only on a terminal and without
//! `NO_COLOR`; a reader that went away is no error; what a daemon or a drive says does nothing to
//! the terminal.

use crate::event::Severity;
use core::fmt::Display;
use redfish::error::Base;
use redfish::messages::{self as say, Entry};
use redfish::view::{self, Answer};
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Why a command did not do what it should.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    told: view::Error,
    exit: u8,
    plan: Option<Box<view::Plan>>,
    /// Seconds until it is worth asking again, as far as the daemon says so.
    after: u16,
}

impl Problem {
    /// This message with these arguments.
    pub fn new(entry: &Entry, args: &[&dyn Display]) -> Self {
        view::Error::new(entry, args).into()
    }

    /// With other advice.
    pub fn advise(self, hint: impl Into<String>) -> Self {
        Self { told: self.told.advise(hint), ..self }
    }

    /// Refused because `--yes` was not said.
    pub fn unconfirmed(what: &str) -> Self {
        Self::new(&say::UNCONFIRMED, &[&what])
    }

    /// The same, with the plan that came with it.
    pub fn with_plan(self, plan: Option<view::Plan>) -> Self {
        Self { plan: plan.map(Box::new), ..self }
    }

    /// The plan of what was not done, if it came with the answer.
    pub fn plan(&self) -> Option<&view::Plan> {
        self.plan.as_deref()
    }

    /// The same, after which the daemon asks to wait so many seconds.
    pub fn not_before(self, after: u16) -> Self {
        Self { after, ..self }
    }

    /// How long the daemon asks to wait.
    pub fn after(&self) -> Duration {
        Duration::from_secs(self.after.into())
    }

    /// The same for a command whose exit code tells a state: no state can be told.
    pub fn without_state(self) -> Self {
        Self { exit: 4, ..self }
    }

    /// Whether it is this message.
    pub fn is(&self, entry: &Entry) -> bool {
        self.told.is(entry)
    }

    /// Whether whoever asks may not, and somebody else might.
    pub fn is_refusal(&self) -> bool {
        self.told.is(&say::SOCKET_FORBIDDEN) || self.told.name == "InsufficientPrivilege"
    }

    /// Whether to ask again would be answered the same.
    pub fn is_final(&self) -> bool {
        [&say::SESSION_ENDED, &say::NOT_LOGGED_IN, &say::CERTIFICATE_CHANGED, &say::LOGINS_FAILED]
            .into_iter()
            .any(|entry| self.told.is(entry))
            || self.told.name == "InsufficientPrivilege"
    }

    /// What happened, one line.
    pub fn what(&self) -> String {
        printable(&self.told.error)
    }

    /// Whether it is that there is no such resource.
    pub fn is_missing(&self) -> bool {
        self.told.name == Base::RESOURCE_MISSING.name()
    }

    /// Tells it on the standard error; the exit code it means.
    pub fn report(&self) -> ExitCode {
        ExitCode::from(self.tell())
    }

    /// As [`Problem::report`], as a number.
    pub fn tell(&self) -> u8 {
        // Without a standard error there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "{}", harmless(&self.told.lines()));
        self.exit
    }
}

impl From<view::Error> for Problem {
    fn from(told: view::Error) -> Self {
        let exit = say::find(&told.name).map_or_else(|| told.code.exit(), Entry::exit);
        Self { told, exit, plan: None, after: 0 }
    }
}

/// How results are printed.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Output {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// How a change is made.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct How {
    /// Show what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub output: Output,
}

impl Output {
    /// Prints an answer: as it is, or as `text` makes of it.
    pub fn print<T: Serialize>(self, answer: &Answer<T>, text: impl FnOnce(&T) -> String) {
        say(&self.text(answer, text));
    }

    /// What [`Output::print`] prints.
    pub fn text<T: Serialize>(self, answer: &Answer<T>, text: impl FnOnce(&T) -> String) -> String {
        if self.json {
            let object = serde_json::to_string_pretty(answer);
            json(&object.expect("the interface's types always encode"))
        } else {
            text(&answer.body).trim_end_matches('\n').to_owned()
        }
    }
}

/// Prints a line, or several; whether somebody reads them. A reader that went away has seen enough.
pub fn say(text: &str) -> bool {
    text.is_empty() || writeln!(std::io::stdout(), "{}", harmless(text)).is_ok()
}

/// A colour of the terminal's own sixteen.
#[derive(Clone, Copy)]
enum Colour {
    Green = 32,
    Yellow = 33,
    Red = 31,
}

/// The same, and none, as they are written behind what begins a sequence (ECMA-48, SGR).
const COLOURS: [&str; 4] = ["32m", "33m", "31m", "0m"];

fn colours() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// The word of a state, coloured by how good it is.
pub fn state(word: &impl Serialize) -> String {
    let text = word_of(word);
    let colour = match text.as_str() {
        "optimal" | "in-sync" | "yes" | "ok" => Colour::Green,
        "degraded" | "rebuilding" | "missing" | "stopped" | "starting" => Colour::Yellow,
        "failed" | "no" | "unusable" => Colour::Red,
        _ => return text,
    };
    coloured(&text, colour)
}

/// The word of a severity, coloured by how bad it is.
pub fn severity(severity: Severity) -> String {
    let (word, colour) = match severity {
        Severity::Ok => ("ok", Colour::Green),
        Severity::Warning => ("warning", Colour::Yellow),
        Severity::Critical => ("critical", Colour::Red),
    };
    coloured(word, colour)
}

/// The word of a health, coloured by how bad it is.
pub fn health(health: view::Health) -> String {
    let colour = match health {
        view::Health::Ok => Colour::Green,
        view::Health::Warning => Colour::Yellow,
        view::Health::Critical => Colour::Red,
    };
    coloured(&word_of(&health), colour)
}

/// A text in a colour, where there are any.
fn coloured(text: &str, colour: Colour) -> String {
    match colours() {
        true => format!("\x1b[{}m{text}\x1b[0m", colour as u8),
        false => text.to_owned(),
    }
}

/// The word that the interface has for a value.
pub fn word_of(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// Columns under headings, wide enough for what is in them.
pub fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = headings.iter().map(|h| width(h)).collect();
    for row in rows {
        for (column, cell) in widths.iter_mut().zip(row) {
            *column = (*column).max(width(cell));
        }
    }
    let headings = headings.iter().map(|h| (*h).to_owned()).collect();
    let mut text = String::new();
    for row in core::iter::once(&headings).chain(rows) {
        let mut line = String::new();
        for (cell, column) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.extend(core::iter::repeat_n(' ', column - width(cell) + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A text with spaces behind it, as wide as this.
pub fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// As [`table`], within so many columns: what is too wide in the columns that may be shortened is
/// shortened in its middle.
pub fn table_within(
    columns: usize,
    headings: &[&str],
    rows: &[Vec<String>],
    may_shrink: &[usize],
) -> String {
    let widest = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| width(cell));
        cells.max().unwrap_or(0).max(headings.get(at).map_or(0, |heading| width(heading)))
    };
    let mut widths: Vec<usize> = (0..headings.len()).map(widest).collect();
    let mut excess =
        (widths.iter().sum::<usize>() + 2 * widths.len()).saturating_sub(2).saturating_sub(columns);
    while excess > 0 {
        let widest = may_shrink.iter().copied().max_by_key(|at| widths.get(*at).copied());
        let Some(own) = widest.and_then(|at| widths.get_mut(at)) else { break };
        if *own <= LEAST_WIDTH {
            break;
        }
        *own -= 1;
        excess -= 1;
    }
    let fit = |(at, cell): (usize, &String)| match may_shrink.contains(&at) {
        true => shortened(cell, widths.get(at).copied().unwrap_or(usize::MAX)),
        false => cell.clone(),
    };
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().enumerate().map(fit).collect()).collect();
    table(headings, &rows)
}

/// Nothing is shortened to less.
const LEAST_WIDTH: usize = 8;

/// A text without colours, without its middle if it is wider than this.
fn shortened(text: &str, columns: usize) -> String {
    let count = text.chars().count();
    if count <= columns {
        return text.to_owned();
    }
    let kept = columns.saturating_sub(1);
    let (first, last) = (kept / 2, kept - kept / 2);
    let begin: String = text.chars().take(first).collect();
    let end: String = text.chars().skip(count - last).collect();
    format!("{begin}…{end}")
}

/// Columns that a text takes on a terminal; colours take none.
fn width(text: &str) -> usize {
    let mut count = 0;
    let mut hidden = false;
    for c in text.chars() {
        match c {
            '\x1b' => hidden = true,
            'm' if hidden => hidden = false,
            _ if !hidden => count += 1,
            _ => {}
        }
    }
    count
}

/// How far a task is, in per cent.
pub fn percent(task: &view::Task) -> String {
    let total = task.total_bytes.max(1);
    let tenths = u128::from(task.done_bytes) * 1000 / u128::from(total);
    format!("{}.{}%", tenths / 10, tenths % 10)
}

/// A text in lines of so many columns, of which the first begins after so many spaces, and the
/// others after as many as are said last. A word that is too long has a line of its own.
pub fn wrapped(text: &str, columns: usize, first: usize, others: usize) -> String {
    let (mut lines, mut line) = (Vec::new(), " ".repeat(first));
    let mut is_empty = true;
    for word in text.split(' ') {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > columns {
            lines.push(core::mem::replace(&mut line, " ".repeat(others)));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push(line);
    lines.join("\n")
}

/// Whether a character stands for itself: it neither moves a terminal's cursor nor hides, joins or
/// turns round what is beside it (Unicode, categories Cc, Cf, Zl and Zp).
fn is_shown(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
            | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}')
}

/// A text whose characters do nothing to a terminal: names are whatever was asked for.
pub fn printable(text: &str) -> String {
    escaped(text, is_shown)
}

/// The same for a text of lines, and of colours where there are any.
pub fn harmless(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut whole = escaped(parts.next().unwrap_or_default(), |c| c == '\n' || is_shown(c));
    for part in parts {
        let is_colour = colours() && COLOURS.iter().any(|colour| part.starts_with(colour));
        whole.push_str(if is_colour { "\x1b[" } else { "\\u{1b}[" });
        whole.push_str(&escaped(part, |c| c == '\n' || is_shown(c)));
    }
    whole
}

/// A text with other characters than these as Rust writes them.
fn escaped(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut whole = String::with_capacity(text.len());
    for c in text.chars() {
        match stays(c) {
            true => whole.push(c),
            false => whole.extend(c.escape_default()),
        }
    }
    whole
}

/// JSON whose characters do nothing to a terminal. Only its strings have such.
pub fn json(text: &str) -> String {
    let mut whole = String::with_capacity(text.len());
    for c in text.chars() {
        match c == '\n' || is_shown(c) {
            true => whole.push(c),
            false => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                whole.push_str(&format!("\\u{unit:04x}"));
            }),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_their_colour() {
        let rows = [
            vec!["a".to_owned(), "\x1b[32mok\x1b[0m".to_owned(), "x".to_owned()],
            vec!["long".to_owned(), "bad-one".to_owned(), "y".to_owned()],
        ];
        let text = table(&["N", "STATE", "Z"], &rows);
        let plain = text.replace("\x1b[32m", "").replace("\x1b[0m", "");
        assert_eq!(plain, "N     STATE    Z\na     ok       x\nlong  bad-one  y\n");
    }

    #[test]
    fn a_table_is_as_wide_as_it_may_be_and_no_wider() {
        let long: String = ('a'..='z').collect();
        let rows = [vec![long.clone(), "\x1b[32mok\x1b[0m".to_owned(), long.repeat(2)]];
        let text = table_within(40, &["NAME", "STATE", "WHERE"], &rows, &[0, 2]);
        assert!(text.lines().all(|line| width(line) <= 40), "{text}");
        assert!(text.contains("\x1b[32mok\x1b[0m") && text.contains("abcdefg…"), "{text}");
        assert_eq!(
            table_within(100, &["A", "B", "C"], &rows, &[0, 2]),
            table(&["A", "B", "C"], &rows)
        );
        assert!(!table_within(1, &["A", "B", "C"], &rows, &[0, 2]).is_empty());
        assert_eq!(shortened("abcdef", 4), "a…ef");
    }

    #[test]
    fn nothing_does_anything_to_a_terminal() {
        assert_eq!(
            printable("a\u{9b}2J\u{202e}b\u{200b}ä 漢"),
            "a\\u{9b}2J\\u{202e}b\\u{200b}ä 漢"
        );
        assert_eq!(printable("a\nb"), "a\\nb");
        assert_eq!(harmless("a\n\u{1b}[2Jb\u{1b}c\r"), "a\n\\u{1b}[2Jb\\u{1b}c\\r");
        let text = serde_json::json!({ "a": "\u{9b}\u{e0001}\u{1b}" }).to_string();
        let shown = json(&text);
        assert_eq!(shown, r#"{"a":"\u009b\udb40\udc01\u001b"}"#);
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(read(&shown), read(&text));
        let problem = Problem::new(&say::NO_ANSWER, &[&"\u{1b}[2J"]);
        assert!(!problem.what().contains('\u{1b}'), "{problem:?}");
    }

    #[test]
    fn progress_is_cut_not_rounded() {
        let task = |done_bytes, total_bytes| view::Task {
            id: "a:scrub".into(),
            progress: 0.0,
            seconds_left: None,
            kind: view::TaskKind::Scrub,
            done_bytes,
            total_bytes,
            state: view::TaskState::Running,
            problem: None,
            hindrance: None,
        };
        assert_eq!(percent(&task(999_999, 1_000_000)), "99.9%");
        assert_eq!(percent(&task(0, 0)), "0.0%");
        assert_eq!(percent(&task(5, 5)), "100.0%");
    }
}
