//! `palisade status`: everything at a glance.

use crate::client::Client;
use crate::fetch;
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
    /// Repeat every second until interrupted
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    output: Output,
}

/// Shows it, once or again and again.
pub async fn run(arguments: &Arguments, client: &Client) -> Result<(), Problem> {
    loop {
        let answer = Answer::new(fetch::status(client).await?);
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
    let mut text = match status.arrays.is_empty() {
        true => "no arrays; create one with: palisade array create".to_owned(),
        false => arrays(&status.arrays),
    };
    if let Some(gpu) = gpu(&status.parity) {
        text = format!("{}\n\n{gpu}", text.trim_end());
    }
    if !status.next.is_empty() {
        let lines = status.next.iter().map(|next| format!("{}; {}", next.what, next.action));
        text = format!("{}\n\n{}", text.trim_end(), lines.collect::<Vec<_>>().join("\n"));
    }
    if let api::Kept { directory: None, problem: None } = status.state {
        text = format!(
            "{}\n\nno state directory: the daemon serves on its socket only, and its audit log ends \
             with it",
            text.trim_end()
        );
    }
    text
}

/// What a GPU does for parity, where one does.
fn gpu(parity: &api::Parity) -> Option<String> {
    match (&parity.gpu, &parity.problem) {
        // It is told with what is to be done about it.
        (_, Some(_)) => None,
        (Some(gpu), None) => Some(format!(
            "parity also on {gpu} ({}): {} jobs, {}",
            parity.placement,
            parity.gpu_jobs,
            format_size(parity.gpu_bytes)
        )),
        (None, None) => None,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_shown_where_one_is_used() {
        let none = api::Parity {
            placement: "auto".to_owned(),
            kernel: "avx2".to_owned(),
            gpu: None,
            problem: None,
            gpu_suspect: false,
            gpu_jobs: 3,
            gpu_bytes: 3 << 20,
            gpu_undone: 0,
            gpu_checked: 0,
            gpu_shared_bytes: 0,
            gpu_kept_bytes: 0,
        };
        assert_eq!(gpu(&none), None);
        let some = api::Parity { gpu: Some("H200".to_owned()), ..none };
        assert_eq!(gpu(&some).as_deref(), Some("parity also on H200 (auto): 3 jobs, 3 MiB"));
        let fenced = api::Parity { problem: Some("it hung".to_owned()), ..some };
        assert_eq!(gpu(&fenced), None, "it is told below");
    }
}
