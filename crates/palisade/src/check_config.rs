//! `palisade check-config`: whether a configuration can be used, without using it.
//!
//! Exit codes: 0 it can be, 1 it can't be read, 2 it has mistakes.

use crate::output::{Output, Problem, say};
use control::config::{self, Config, Mistake};
use redfish::messages;
use redfish::view::Answer;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// What `palisade check-config` takes.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The configuration
    #[arg(default_value = doctor::CONFIG)]
    file: PathBuf,
    #[command(flatten)]
    output: Output,
}

/// What was found in a configuration.
#[derive(Serialize)]
struct Found {
    /// The file.
    file: PathBuf,
    /// Why the daemon would not start.
    mistakes: Vec<Mistake>,
    /// Why it would not do what it seems to say.
    warnings: Vec<String>,
}

/// Checks a configuration.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Problem> {
    let file = arguments.file.clone();
    let text = std::fs::read_to_string(&file).map_err(|error| {
        Problem::new(&messages::CONFIG_NOT_READ, &[&file.display(), &error])
            .advise("name a readable file")
    })?;
    let mistakes = config::mistakes(&text);
    let warnings = Config::parse(&text).map_or_else(|_| Vec::new(), |config| config.warnings());
    let code = if mistakes.is_empty() { 0 } else { 2 };
    let found = Found { file, mistakes, warnings };
    if arguments.output.json {
        arguments.output.print(&Answer::new(found), |_| String::new());
    } else {
        let name = found.file.display();
        for mistake in &found.mistakes {
            say(&format!("{name}: {mistake}"));
        }
        for warning in &found.warnings {
            say(&format!("{name}: warning: {warning}"));
        }
        if found.mistakes.is_empty() {
            say(&format!("{name}: the daemon can use it"));
        }
    }
    Ok(ExitCode::from(code))
}
