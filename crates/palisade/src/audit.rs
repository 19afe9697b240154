//! `palisade audit`: reads and verifies the audit log.

use crate::client::{self, Client};
use crate::fetch;
use crate::output::{Output, Problem, printable, say, table};
use clap::Subcommand;
use core::fmt::Display;
use redfish::service::uri;
use redfish::view::{Answer, Entry, Verified};
use redfish::{messages, read, told};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What can be done with the audit log.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List changes, logins and refusals, the newest last
    List {
        /// Only so many, the newest
        #[arg(long, value_name = "N")]
        last: Option<usize>,
        #[command(flatten)]
        output: Output,
    },
    /// Check that no line was changed or taken away; exits with 1 if one was
    Verify {
        /// A state directory, or a copy of one, to check without the daemon
        dir: Option<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
}

/// Lines of the audit log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Entries {
    /// In the order of their numbers.
    entries: Vec<Entry>,
}

/// Carries a command out.
pub async fn run(command: &Command, client: &Client) -> Result<ExitCode, Problem> {
    match command {
        Command::List { last, output } => {
            let entries = list(*last, client).await?;
            output.print(&Answer::new(Entries { entries }), |all| text(&all.entries));
            Ok(ExitCode::SUCCESS)
        }
        Command::Verify { dir: Some(dir), output } => Ok(tell(verify(dir)?, *output)),
        Command::Verify { dir: None, output } => {
            let action = format!("{}/Actions/Oem/PalisadeLogService.Verify", uri::AUDIT);
            let answer = client.post(&action, &json!({})).await?;
            let found: told::Verified = client::read(answer)?;
            Ok(tell(found.into(), *output))
        }
    }
}

/// The newest lines, in order.
async fn list(last: Option<usize>, client: &Client) -> Result<Vec<Entry>, Problem> {
    let top = last.map_or_else(String::new, |last| format!("&$top={last}"));
    let lines = fetch::linked(client, &format!("{}?$expand=.{top}", uri::AUDIT_ENTRIES)).await?;
    let entries: Result<Vec<Entry>, _> = lines.iter().map(read::entry).collect();
    let mut entries = entries?;
    // Lines that came between two pages have moved others to the next.
    entries.sort_by_key(|entry| entry.number);
    entries.dedup_by_key(|entry| entry.number);
    Ok(entries)
}

/// A table of lines.
fn text(entries: &[Entry]) -> String {
    if entries.is_empty() {
        return "no lines".to_owned();
    }
    let row = |entry: &Entry| {
        let what = if entry.what.is_empty() { &entry.request } else { &entry.what };
        let mut result = entry.result.word().to_owned();
        if let Some(message) = &entry.message {
            result.push_str(&format!(" ({message})"));
        }
        if let Some(of) = entry.of {
            result.push_str(&format!(", begun in {of}"));
        }
        let time = redfish::dates::text(entry.time);
        let cells = [&entry.number.to_string(), &time, &entry.who, &entry.from, what, &result];
        cells.map(|cell| printable(cell)).to_vec()
    };
    let rows: Vec<_> = entries.iter().map(row).collect();
    table(&["NUMBER", "TIME", "WHO", "FROM", "WHAT", "RESULT"], &rows)
}

/// Verifies the log in a directory, without the daemon.
fn verify(dir: &Path) -> Result<Verified, Problem> {
    let not_read =
        |why: &dyn Display| Problem::new(&messages::AUDIT_NOT_READ, &[&dir.display(), why]);
    let found = control::audit::files::verify(dir, None).map_err(|error| not_read(&error))?;
    // A daemon writes a line as soon as it starts.
    if found.lines == 0 {
        return Err(not_read(&"there is none").advise("name a state directory, or a copy of one"));
    }
    Ok(found)
}

/// Says what was found; 0 if the chain is whole, else 1.
fn tell(found: Verified, output: Output) -> ExitCode {
    let code = u8::from(!found.breaks.is_empty());
    if output.json {
        output.print(&Answer::new(found), |_| String::new());
        return ExitCode::from(code);
    }
    let Verified { lines, first, last, breaks } = found;
    let numbers = match (first, last) {
        (Some(first), Some(last)) => format!(", numbers {first} to {last}"),
        _ => String::new(),
    };
    match breaks.as_slice() {
        [] => {
            say(&format!("the audit log is whole: {lines} lines{numbers}"));
        }
        breaks => {
            say(&breaks.join("\n"));
            return Problem::new(&messages::AUDIT_BROKEN, &[&breaks.len()]).report();
        }
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;
    use redfish::view::Ending;

    #[test]
    fn what_a_name_would_do_to_a_terminal_is_shown() {
        let entry = Entry {
            number: 7,
            time: 0,
            who: "root".into(),
            from: "socket".into(),
            request: "POST /redfish/v1".into(),
            what: "create array \u{1b}[2J".into(),
            result: Ending::Refused,
            message: Some("Palisade.1.0.NameTaken".into()),
            of: Some(6),
        };
        let shown = text(&[entry]);
        assert!(shown.contains("\\u{1b}[2J") && !shown.contains('\u{1b}'), "{shown}");
        assert!(shown.contains("refused (Palisade.1.0.NameTaken), begun in 6"), "{shown}");
        assert_eq!(text(&[]), "no lines");
    }

    #[test]
    fn a_directory_without_a_log_is_not_whole() {
        let place = tempfile::tempdir().expect("a directory");
        let dir = place.path();
        let args: [&dyn Display; 2] = [&dir.display(), &"there is none"];
        let told = Problem::new(&messages::AUDIT_NOT_READ, &args);
        let told = told.advise("name a state directory, or a copy of one");
        assert_eq!(verify(dir), Err(told.clone()));
        // Nor is one whose lines were all taken away.
        std::fs::write(dir.join("audit-00000000000000000001.log"), "").expect("written");
        assert_eq!(verify(dir), Err(told));
    }
}
