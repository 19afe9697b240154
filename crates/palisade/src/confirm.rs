//! Plans before acts: what a command would do is shown, and what destroys data is agreed to.
//!
//! States of a command that may destroy data: planned (by the daemon) → shown and agreed to → done
//! with the token of its plan; or refused. Who agrees is a person on a terminal, who types the name
//! of what is destroyed; `--yes`; or, where there is no terminal, the arguments that name what is
//! destroyed (`--overwrite PATH`, `--accept-loss`).
//!
//! Invariants
//! - Nothing is sent for a change before it is agreed to; with `--dry-run` nothing at all but the
//!   question what it would do.
//! - What is done is what was shown: if that is no longer so, the daemon refuses it, and the plan
//!   of then is shown.

use crate::client::{Change, Client};
use crate::output::{How, Output, Problem, harmless, printable, table};
use redfish::messages as say;
use redfish::view::{Answer, Plan, PlannedArray, PlannedDrive};
use serde_json::Value;
use std::io::{BufRead, IsTerminal, Write};
use units::format_size;

/// What makes a command be done that may destroy data.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    /// The name of what is destroyed, which a person types.
    pub name: &'a str,
    /// `--yes` was given.
    pub yes: bool,
    /// Arguments name what is destroyed.
    pub is_named: bool,
}

/// Whether a person can be asked.
pub fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

impl Word<'_> {
    /// Makes sure that a plan is agreed to.
    ///
    /// # Errors
    /// It is not.
    pub fn agree(&self, plan: &Plan) -> Result<(), Problem> {
        if self.yes || (self.is_named && !is_terminal()) {
            return Ok(());
        }
        if !is_terminal() {
            let lost = printable(&plan.lost.join("; "));
            return Err(Problem::unconfirmed(&format!("this destroys {lost}")));
        }
        show(plan);
        let _ = write!(std::io::stderr(), "type {} to do this: ", printable(self.name));
        let mut typed = String::new();
        // Whoever types nothing agrees to nothing.
        let _ = std::io::stdin().lock().read_line(&mut typed);
        match typed.trim() == self.name {
            true => Ok(()),
            false => Err(Problem::new(&say::NOT_TYPED, &[&self.name])),
        }
    }
}

/// Shows a plan to who may be asked.
fn show(plan: &Plan) {
    // Without a standard error there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "{}", harmless(text(plan).trim_end_matches('\n')));
}

/// Makes a change that destroys nothing, or only shows what it would do; what is told, or none if
/// it was only shown.
pub async fn change(change: &Change, how: How, client: &Client) -> Result<Option<Value>, Problem> {
    if how.dry_run {
        print(&client.plan(change).await?.plan.into(), how.output);
        return Ok(None);
    }
    client.change(change, None).await.map(Some)
}

/// Makes a change that may destroy data, once it is agreed to; or only shows what it would do.
pub async fn destroy(
    change: &Change,
    word: Word<'_>,
    how: How,
    client: &Client,
) -> Result<Option<Value>, Problem> {
    let planned = client.plan(change).await?;
    let plan = Plan::from(planned.plan);
    if how.dry_run {
        print(&plan, how.output);
        return Ok(None);
    }
    let is_refused = plan.drives.iter().any(|drive| drive.refused);
    if plan.lost.is_empty() || is_refused {
        return client.change(change, None).await.map(Some);
    }
    client.let_go().await;
    word.agree(&plan)?;
    let outcome = client.change(change, Some(&planned.token)).await;
    outcome.map(Some).map_err(|problem| match problem.plan() {
        None => problem,
        Some(plan) => {
            show(plan);
            Problem::new(&say::PLAN_OUTDATED, &[])
        }
    })
}

/// Makes a change that destroys nothing, but ends what people use, once it is agreed to; or only
/// shows what it would do.
pub async fn interrupt(
    change: &Change,
    word: Word<'_>,
    how: How,
    client: &Client,
) -> Result<Option<Value>, Problem> {
    if !how.dry_run && !word.yes {
        let plan = client.plan(change).await?.plan.into();
        client.let_go().await;
        word.agree(&plan)?;
    }
    self::change(change, how, client).await
}

/// Prints a plan as the result of a command.
pub fn print(plan: &Plan, output: Output) {
    output.print(&Answer::new(plan.clone()), text);
}

/// A plan for people.
fn text(plan: &Plan) -> String {
    if let Some(array) = &plan.array {
        return of_array(array, plan);
    }
    let list = |heading: &str, lines: &[String]| match lines.is_empty() {
        true => String::new(),
        false => {
            let lines: Vec<_> = lines.iter().map(|line| printable(line)).collect();
            format!("{heading}:\n  {}\n", lines.join("\n  "))
        }
    };
    let mut text = list("this would", &plan.steps) + &list("it would destroy", &plan.lost);
    if !plan.drives.is_empty() {
        text.push_str(&format!("\n{}", drives(&plan.drives)));
    }
    text
}

fn of_array(array: &PlannedArray, plan: &Plan) -> String {
    format!(
        "would create {}: level {}, strip {}, block {} bytes, {} usable\n\n{}",
        printable(&array.name),
        array.level,
        format_size(array.strip_bytes.into()),
        array.block_bytes,
        format_size(array.size_bytes),
        drives(&plan.drives)
    )
}

fn drives(drives: &[PlannedDrive]) -> String {
    let row = |drive: &PlannedDrive| {
        let word = match (drive.refused, &drive.destroys) {
            (true, _) => "needs --overwrite",
            (false, Some(_)) => "will be destroyed",
            (false, None) => "",
        };
        let held = drive.destroys.as_ref().or(drive.content.as_ref());
        vec![
            drive.slot.map_or("-".to_owned(), |slot| slot.to_string()),
            printable(&drive.path),
            printable(&drive.serial),
            format_size(drive.bytes),
            held.map(|held| printable(held)).unwrap_or_default(),
            word.to_owned(),
        ]
    };
    let rows: Vec<_> = drives.iter().map(row).collect();
    table(&["SLOT", "DRIVE", "SERIAL", "SIZE", "HOLDS", ""], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_name_would_do_to_a_terminal_is_shown() {
        let clears = "a\u{1b}[2J".to_owned();
        let drive = PlannedDrive {
            slot: None,
            path: format!("/dev/{clears}"),
            serial: clears.clone(),
            bytes: 1 << 20,
            content: Some(clears.clone()),
            destroys: None,
            refused: false,
        };
        let (steps, lost) = (vec![clears.clone()], vec![clears]);
        let plan = Plan { steps, lost, drives: vec![drive], ..Plan::default() };
        let shown = text(&plan);
        assert!(!shown.contains('\u{1b}'), "{shown}");
        assert_eq!(shown.matches("a\\u{1b}[2J").count(), 5, "{shown}");
    }
}
