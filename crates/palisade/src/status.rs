//! `palisade status`: everything at a glance.

use crate::client::Client;
use crate::output::{Output, Problem, percent, say, state, table, word_of};
use control::api::{self, Answer};
use std::io::IsTerminal;
use std::time::Duration;
use units::format_size;

/// How often `--watch` looks.
const INTERVAL: Duration = Duration::from_secs(1);

/// What `palisade status` takes.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Show it again every second, until interrupted
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    output: Output,
}

/// Shows it, once or again and again.
pub async fn run(arguments: &Arguments, client: &Client) -> Result<(), Problem> {
    loop {
        let answer: Answer<api::Status> = client.get(&["status"]).await?;
        if arguments.watch && !arguments.output.json && std::io::stdout().is_terminal() {
            // To the top left, and clear (ECMA-48: CUP, ED).
            say("\x1b[H\x1b[2J");
        }
        arguments.output.print(&answer, text);
        if !arguments.watch {
            return Ok(());
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

fn text(status: &api::Status) -> String {
    if status.arrays.is_empty() {
        return "no arrays; make one with: palisade array create".to_owned();
    }
    arrays(&status.arrays)
}

/// A table of arrays with what they are busy with.
pub fn arrays(arrays: &[api::Array]) -> String {
    let row = |a: &api::Array| {
        vec![
            a.name.clone(),
            a.level.clone(),
            state(&a.state),
            format_size(a.size_bytes),
            format_size(a.free_bytes),
            drives(a),
            doing(a),
        ]
    };
    let rows: Vec<_> = arrays.iter().map(row).collect();
    table(&["ARRAY", "LEVEL", "STATE", "SIZE", "FREE", "DRIVES", "DOING"], &rows)
}

/// How many slots' drives count, and which do not.
fn drives(array: &api::Array) -> String {
    let (good, bad): (Vec<_>, Vec<_>) =
        array.slots.iter().partition(|slot| slot.state == api::SlotState::InSync);
    let mut text = format!("{}/{}", good.len(), array.slots.len());
    for slot in bad {
        text.push_str(&format!(" {}:{}", slot.slot, word_of(&slot.state)));
    }
    text
}

fn standing(task: &api::Task) -> &'static str {
    match task.state {
        api::TaskState::Running => "",
        api::TaskState::Stuck => " (stuck)",
        api::TaskState::Paused => " (paused)",
    }
}

fn doing(array: &api::Array) -> String {
    let tasks: Vec<String> = array
        .tasks
        .iter()
        .map(|t| format!("{} {}{}", word_of(&t.kind), percent(t), standing(t)))
        .collect();
    match &array.problem {
        Some(problem) => problem.clone(),
        None => tasks.join(", "),
    }
}
