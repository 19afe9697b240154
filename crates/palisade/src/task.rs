//! `palisade task`: manages the background tasks of arrays.

use crate::array::{show, text};
use crate::client::{Change, Client};
use crate::fetch::{self, Part};
use crate::output::{How, Output, Problem, percent, say, table, word_of};
use crate::watch::{self, Drawn};
use crate::{complete, confirm};
use clap::Subcommand;
use clap_complete::engine::ArgValueCompleter;
use control::names;
use redfish::service::uri;
use redfish::view::{self, Answer};
use serde_json::json;
use units::format_size;

/// What can be done with tasks.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List tasks
    List {
        /// Show them again whenever something changes, until interrupted
        #[arg(long)]
        watch: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Pause a task until it is resumed, also across restarts
    Pause {
        /// ID of the task, as shown by `palisade task list`
        #[arg(add = ArgValueCompleter::new(complete::tasks))]
        id: String,
        #[command(flatten)]
        how: How,
    },
    /// Resume a paused task
    Resume {
        /// ID of the task, as shown by `palisade task list`
        #[arg(add = ArgValueCompleter::new(complete::tasks))]
        id: String,
        #[command(flatten)]
        how: How,
    },
    /// Cancel a rebuild or scrub; the drive of a cancelled rebuild stays out of service
    Cancel {
        /// ID of the task, as shown by `palisade task list`
        #[arg(add = ArgValueCompleter::new(complete::tasks))]
        id: String,
        #[command(flatten)]
        how: How,
    },
}

/// Ends a job.
const CANCEL: &str = "Job.Cancel";

/// Carries a command out.
pub async fn run(command: &Command, client: &Client) -> Result<(), Problem> {
    let (id, action, how) = match command {
        Command::List { watch, output } => return list(*watch, *output, client).await,
        Command::Pause { id, how } => (id, "Job.Suspend", how),
        Command::Resume { id, how } => (id, "Job.Resume", how),
        Command::Cancel { id, how } => (id, CANCEL, how),
    };
    act(id, action, *how, client).await
}

async fn list(is_watched: bool, output: Output, client: &Client) -> Result<(), Problem> {
    let draw = async |_| {
        let arrays = fetch::arrays(client, &[Part::Tasks]).await?;
        let tasks: Vec<view::Task> = arrays.into_iter().flat_map(|array| array.tasks).collect();
        let goes_on = !tasks.is_empty();
        let answer = Answer::new(view::TaskList { tasks });
        Ok(Drawn { text: output.text(&answer, |list| self::tasks(&list.tasks)), goes_on })
    };
    match is_watched {
        true => watch::watch(client, output, draw).await,
        false => {
            say(&draw(None).await?.text);
            Ok(())
        }
    }
}

/// Acts on a task, and shows its array as it is then.
async fn act(id: &str, action: &str, how: How, client: &Client) -> Result<(), Problem> {
    let (name, kind) = names::task(id)?;
    let jobs = fetch::jobs(client).await?;
    let arrays = fetch::arrays(client, &[]).await?;
    let array = names::running(&arrays, name)?;
    let is_it =
        |job: &&view::Job| job.ended.is_none() && job.array == array.uuid && job.task.kind == kind;
    let mut meant: Vec<_> = jobs.iter().filter(is_it).collect();
    // Tasks of one kind wait and go on together, and end one by one.
    if action != CANCEL {
        meant.truncate(1);
    }
    if meant.is_empty() {
        return Err(names::no_task_of(array, kind).into());
    }
    let change = |job: &view::Job| {
        Change::post(format!("{}/Actions/{action}", uri::job(&job.id)), json!({}))
    };
    if how.dry_run {
        let mut plan = view::Plan { dry_run: true, ..view::Plan::default() };
        for job in meant {
            plan.steps.extend(client.plan(&change(job)).await?.plan.steps);
        }
        confirm::print(&plan, how.output);
        return Ok(());
    }
    for job in meant {
        client.change(&change(job), None).await?;
    }
    how.output.print(&show(&array.uuid, client).await?, text);
    Ok(())
}

/// A table of tasks.
fn tasks(tasks: &[view::Task]) -> String {
    if tasks.is_empty() {
        return "no tasks".to_owned();
    }
    let row = |task: &view::Task| {
        vec![
            task.id.clone(),
            word_of(&task.state),
            percent(task),
            format!("{} of {}", format_size(task.done_bytes), format_size(task.total_bytes)),
            time_left(task),
            task.problem.clone().unwrap_or_default(),
        ]
    };
    let rows: Vec<_> = tasks.iter().map(row).collect();
    table(&["ID", "STATE", "DONE", "PER DRIVE", "LEFT", ""], &rows)
}

/// How long a task will take; nothing while nothing is known.
pub fn time_left(task: &view::Task) -> String {
    let Some(seconds) = task.seconds_left else { return String::new() };
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s}s"),
        (0, m, s) => format!("{m}m {s:02}s"),
        (h, m, _) => format!("{h}h {m:02}m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_said_in_two_units() {
        let left = |seconds_left| {
            let state = view::TaskState::Running;
            let task = view::Task {
                id: "a:scrub".into(),
                kind: view::TaskKind::Scrub,
                done_bytes: 1,
                total_bytes: 2,
                progress: 0.5,
                seconds_left,
                state,
                problem: None,
                hindrance: None,
            };
            time_left(&task)
        };
        let times = [None, Some(9), Some(65), Some(3600), Some(360_059)].map(left);
        assert_eq!(times, ["", "9s", "1m 05s", "1h 00m", "100h 00m"]);
    }
}
