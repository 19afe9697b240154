//! `palisade doctor`: what is wrong with this machine for a daemon on it.
//!
//! Exit codes: 0 nothing to mend, 1 findings, 2 wrong usage.

use crate::client::{Client, socket_or_default};
use crate::event::Severity;
use crate::fetch;
use crate::output::{Output, Problem, padded, printable, severity, wrapped};
use ::doctor::facts::{Daemon, Told};
use ::doctor::{CONFIG, Outcome, Report, Status, examine, gather};
use clap::CommandFactory;
use clap::error::ErrorKind;
use hyper::StatusCode;
use redfish::messages as say;
use redfish::service::uri;
use redfish::view::Answer;
use std::path::PathBuf;
use std::process::ExitCode;

/// Columns of the word of a status, and of the name of a check.
const COLUMNS: (usize, usize) = (10, 19);

/// Columns of a line.
const WIDTH: usize = 100;

/// What `palisade doctor` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 nothing to mend, 1 findings, 2 wrong usage")]
pub struct Arguments {
    /// The daemon's configuration
    #[arg(long, value_name = "FILE", default_value = CONFIG)]
    config: PathBuf,
    /// Where the kernel tells of processes, as in a container that has the machine's elsewhere
    #[arg(long, value_name = "DIR", default_value = gather::PROC)]
    proc: PathBuf,
    #[command(flatten)]
    output: Output,
}

/// Looks at the machine, and tells what was found.
pub fn run(
    arguments: &Arguments,
    socket: Option<PathBuf>,
    url: Option<&str>,
) -> Result<ExitCode, Problem> {
    if url.is_some() {
        let told = "'doctor' looks at the machine where it runs: run it there, without '--url'";
        crate::Arguments::command().error(ErrorKind::ArgumentConflict, told).exit();
    }
    let config = gather::configuration(&arguments.config);
    // As the daemon does.
    let socket = socket.or_else(|| config.says.socket.clone());
    let socket = socket.unwrap_or_else(|| socket_or_default(None));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Problem::new(&say::COMMAND_CANNOT_START, &[&error]))?;
    let daemon = runtime.block_on(ask(&Client::new(socket.clone())));
    let report = examine(&::doctor::gather(config, daemon, &socket, &arguments.proc));
    let code = if report.ok { ExitCode::SUCCESS } else { ExitCode::from(1) };
    arguments.output.print(&Answer::new(report), text);
    Ok(code)
}

/// Asks a daemon what only it knows.
async fn ask(client: &Client) -> Daemon {
    let told = async {
        let (status, _) = fetch::status(client).await?;
        let absent = [StatusCode::NOT_FOUND];
        let certificate = client.get_unless(uri::CERTIFICATE, &absent).await?;
        let fingerprint = certificate.as_ref().and_then(|own| own.get("Fingerprint")?.as_str());
        Ok::<_, Problem>(Told {
            version: status.version,
            pid: status.pid,
            memory: status.memory,
            state: status.state.directory,
            state_problem: status.state.problem,
            drives: fetch::drives(client).await?,
            exports: status.arrays.into_iter().flat_map(|array| array.exports).collect(),
            fingerprint: fingerprint.map(str::to_owned),
        })
    };
    match told.await {
        Ok(told) => Daemon::Running(Box::new(told)),
        Err(problem) if problem.is(&say::NO_DAEMON) => Daemon::Absent,
        Err(problem) => Daemon::Silent { why: problem.what(), is_refusal: problem.is_refusal() },
    }
}

/// A report for people: a line each, and for what is to be mended why and how.
fn text(report: &Report) -> String {
    let mut lines = Vec::new();
    for outcome in &report.checks {
        let word = match outcome.status {
            Status::Ok => severity(Severity::Ok),
            Status::Unknown => "unknown".to_owned(),
            Status::Warning => severity(Severity::Warning),
            Status::Critical => severity(Severity::Critical),
        };
        let (first, second) = COLUMNS;
        let (word, id) = (padded(&word, first), padded(outcome.id, second));
        let what = wrapped(&printable(&outcome.what), WIDTH, first + second, first + second);
        lines.push(format!("{word}{id}{}", what.trim_start()));
        for (word, more) in [("why:  ", &outcome.why), ("mend: ", &outcome.mend)] {
            if !more.is_empty() {
                let more = wrapped(&printable(more), WIDTH, first + 6, first + 6);
                lines.push(format!("{}{word}{}", " ".repeat(first), more.trim_start()));
            }
        }
    }
    lines.push(summary(&report.checks));
    lines.join("\n")
}

/// How many findings there are.
fn summary(checks: &[Outcome]) -> String {
    let count = |status| checks.iter().filter(|own| own.status == status).count();
    let (critical, warning) = (count(Status::Critical), count(Status::Warning));
    let unknown = match count(Status::Unknown) {
        0 => String::new(),
        count => format!(", {count} not known"),
    };
    match critical + warning {
        0 => format!("nothing to mend{unknown}"),
        1 => format!("1 finding{unknown}"),
        all => format!("{all} findings: {critical} critical, {warning} warning{unknown}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(status: Status, why: &str, mend: &str) -> Outcome {
        let (why, mend) = (why.to_owned(), mend.to_owned());
        Outcome { id: "drive-link", area: "drives", status, what: "it \u{1b}is".into(), why, mend }
    }

    #[test]
    fn what_is_well_is_a_line_and_what_is_not_has_why_and_mend() {
        let bad = outcome(Status::Warning, "as", "run: it");
        let checks = vec![outcome(Status::Ok, "", ""), bad];
        let told = text(&Report { ok: false, checks });
        let expected = "ok        drive-link         it \\u{1b}is\n\
                        warning   drive-link         it \\u{1b}is\n          why:  as\n          \
                        mend: run: it\n1 finding";
        assert_eq!(told, expected);
    }

    #[test]
    fn findings_are_counted() {
        let of = |all: &[Status]| {
            summary(&all.iter().map(|status| outcome(*status, "", "")).collect::<Vec<_>>())
        };
        use Status::{Critical, Ok, Unknown, Warning};
        assert_eq!(of(&[Ok, Ok]), "nothing to mend");
        assert_eq!(of(&[Ok, Unknown]), "nothing to mend, 1 not known");
        assert_eq!(of(&[Critical, Unknown]), "1 finding, 1 not known");
        assert_eq!(of(&[Critical, Warning, Warning]), "3 findings: 1 critical, 2 warning");
    }
}
