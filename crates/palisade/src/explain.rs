//! `palisade explain`: what a message means, from the table that the daemon and this command share.
//!
//! Messages are those of `Palisade.1.0` ([`messages`]) and those of DMTF's `Base` registry that the
//! daemon uses ([`Base`]).

use crate::output::{Output, Problem, table, wrapped};
use clap_complete::engine::ArgValueCompleter;
use redfish::error::Base;
use redfish::messages::{
    self, Entry, ErrorCode, NO_SUCH_MESSAGE, Notice, PREFIX, Severity, Teller,
};
use redfish::view::Answer;
use serde::Serialize;

/// Columns of explanations.
const WIDTH: usize = 80;

/// How many names are offered for one that there is not.
const OFFERED: usize = 3;

/// What `explain` takes.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Name of the message, as errors tell it [default: list all]
    #[arg(add = ArgValueCompleter::new(crate::complete::messages))]
    name: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// A message, explained.
#[derive(Debug, Serialize)]
struct Explained {
    name: &'static str,
    message_id: String,
    kind: &'static str,
    exit_status: Option<u8>,
    http_status: Option<u16>,
    told_by: &'static str,
    message: String,
    arguments: Vec<&'static str>,
    resolution: String,
    explanation: &'static str,
}

/// All messages.
#[derive(Debug, Serialize)]
struct List {
    messages: Vec<Explained>,
}

/// Explains a message, or lists all.
pub fn run(arguments: &Arguments) -> Result<(), Problem> {
    match &arguments.name {
        Some(name) => {
            let found = all().find(|message| is_called(message, name)).ok_or_else(|| none(name))?;
            arguments.output.print(&Answer::new(found), text);
        }
        None => arguments.output.print(&Answer::new(List { messages: all().collect() }), list),
    }
    Ok(())
}

fn all() -> impl Iterator<Item = Explained> {
    let own = messages::all().map(of_ours).chain(messages::notices().map(of_notice));
    own.chain(Base::ALL.iter().map(of_base))
}

fn of_ours(entry: &Entry) -> Explained {
    Explained {
        name: entry.name,
        message_id: format!("{PREFIX}{}", entry.name),
        kind: word(entry.kind),
        exit_status: Some(entry.exit()),
        http_status: Some(entry.status()),
        told_by: match entry.teller {
            Teller::Daemon => "daemon",
            Teller::Command => "command line",
            Teller::Both => "daemon and command line",
        },
        message: entry.example(),
        arguments: entry.args.iter().map(|arg| arg.name()).collect(),
        resolution: entry.advice(),
        explanation: entry.why,
    }
}

fn of_notice(notice: &Notice) -> Explained {
    let arguments = notice.placeholders();
    Explained {
        name: notice.name,
        message_id: notice.id(),
        kind: match notice.severity {
            Severity::Ok => "notice",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        },
        exit_status: None,
        http_status: None,
        told_by: "daemon",
        message: notice.text(&arguments),
        resolution: notice.advice(&arguments),
        arguments,
        explanation: notice.why,
    }
}

fn of_base(base: &Base) -> Explained {
    let kind = base.kind();
    Explained {
        name: base.name(),
        message_id: base.id(),
        kind: word(kind),
        exit_status: Some(kind.exit()),
        http_status: Some(base.status()),
        told_by: "daemon",
        message: base.text().to_owned(),
        arguments: Vec::new(),
        resolution: base.resolution().to_owned(),
        explanation: "A message of the registry that all Redfish services share: it is about the \
                      request's form, and nothing was done. The commands of palisade send no such \
                      requests; another client, or palisade of another release, may.",
    }
}

const fn word(kind: ErrorCode) -> &'static str {
    match kind {
        ErrorCode::Failed => "failed",
        ErrorCode::Usage => "usage",
        ErrorCode::Refused => "refused",
    }
}

/// Whether people who say this mean the message.
fn is_called(message: &Explained, name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    name.eq_ignore_ascii_case(&message.message_id) || last.eq_ignore_ascii_case(message.name)
}

/// What is said of a name that there is not: those that are nearest to it.
fn none(name: &str) -> Problem {
    let said = name.to_ascii_lowercase();
    let distance = |message: Explained| {
        let own = message.name.to_ascii_lowercase();
        let within = own.contains(&said) || said.contains(&own);
        (if within { 0 } else { edits(&own, &said) }, message.name)
    };
    let mut near: Vec<(usize, &str)> = all().map(distance).collect();
    near.sort_unstable();
    near.retain(|(edits, _)| *edits <= said.len().max(3) / 2);
    let near: Vec<&str> = near.into_iter().take(OFFERED).map(|(_, name)| name).collect();
    let problem = Problem::new(&NO_SUCH_MESSAGE, &[&name]);
    match near.split_last() {
        None => problem,
        Some((last, [])) => problem.advise(format!("you may mean {last}")),
        Some((last, rest)) => problem.advise(format!("you may mean {} or {last}", rest.join(", "))),
    }
}

/// How many letters have to be put in, left out or changed (Wagner and Fischer, "The
/// String-to-String Correction Problem", 1974).
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, b) in other.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

fn text(message: &Explained) -> String {
    let Explained { message_id, kind, exit_status, http_status, .. } = message;
    let exit = exit_status.map(|status| format!(", exit status {status}")).unwrap_or_default();
    let http = http_status.map(|status| format!(", HTTP {status}")).unwrap_or_default();
    format!(
        "{message_id}: {kind}{exit}{http}; told by the {}\n\n  {}\n  {}\n\n{}",
        message.told_by,
        message.message,
        message.resolution,
        wrapped(message.explanation, WIDTH, 0, 0)
    )
}

fn list(list: &List) -> String {
    let row = |message: &Explained| {
        vec![message.name.to_owned(), message.kind.to_owned(), message.message.clone()]
    };
    let rows: Vec<Vec<String>> = list.messages.iter().map(row).collect();
    table(&["NAME", "KIND", "MESSAGE"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (one, other, count) in [("", "", 0), ("", "ab", 2), ("ab", "ba", 2), ("kit", "sit", 1)]
        {
            assert_eq!(edits(one, other), count, "{one} {other}");
        }
    }

    #[test]
    fn lines_are_not_too_long() {
        for message in all() {
            assert!(text(&message).lines().skip(4).all(|line| line.len() <= WIDTH), "{message:?}");
            assert_eq!(
                wrapped(message.explanation, WIDTH, 0, 0).replace('\n', " "),
                message.explanation
            );
        }
    }
}
