//! What the demo did: a table for people, one object for programs.

use serde::Serialize;
use std::fmt::Write;

/// One step that was done, or tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Its name.
    pub step: &'static str,
    /// Bytes that it moved, or checked; 0 where none.
    pub bytes: u64,
    /// How long it took.
    pub seconds: f64,
    /// Millions of bytes in a second; 0 where no bytes moved.
    pub mb_per_s: f64,
    /// Whether what it did was checked and is right.
    pub verified: bool,
}

impl Step {
    /// A step with its rate.
    pub fn new(step: &'static str, bytes: u64, seconds: f64, verified: bool) -> Self {
        let rate = if seconds > 0.0 { bytes as f64 / 1e6 / seconds } else { 0.0 };
        Self { step, bytes, seconds: round(seconds, 1e3), mb_per_s: round(rate, 10.0), verified }
    }
}

fn round(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

/// The whole demo.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Version of these keys.
    pub schema: u32,
    /// Whether every step was done and verified.
    pub ok: bool,
    /// The array's level.
    pub level: String,
    /// How many drives it has.
    pub drives: usize,
    /// The steps in order; after one that failed there is none.
    pub steps: Vec<Step>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Report {
    /// The table for people.
    pub fn table(&self) -> String {
        let mut text = format!(
            "\n{:<20} {:>14} {:>9} {:>9}  {}\n",
            "step", "bytes", "seconds", "MB/s", "verified"
        );
        for step in &self.steps {
            let (mut bytes, mut rate) = (step.bytes.to_string(), format!("{:.0}", step.mb_per_s));
            if step.bytes == 0 {
                (bytes, rate) = ("-".into(), "-".into());
            }
            let verified = if step.verified { "yes" } else { "NO" };
            let _ = writeln!(
                text,
                "{:<20} {bytes:>14} {:>9.2} {rate:>9}  {verified}",
                step.step, step.seconds
            );
        }
        let total: f64 = self.steps.iter().map(|step| step.seconds).sum();
        let _ = writeln!(text, "{:<20} {:>14} {total:>9.2}", "all", "");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_table() {
        let steps = vec![Step::new("copy-in", 3_000_000, 1.5, true), Step::new("x", 0, 0.0, false)];
        let report =
            Report { schema: 1, ok: false, level: "5".into(), drives: 8, steps, error: None };
        let json = serde_json::to_value(&report).expect("serializes");
        assert_eq!(
            json,
            serde_json::json!({"schema": 1, "ok": false, "level": "5", "drives": 8, "steps": [
                {"step": "copy-in", "bytes": 3_000_000, "seconds": 1.5, "mb_per_s": 2.0,
                 "verified": true},
                {"step": "x", "bytes": 0, "seconds": 0.0, "mb_per_s": 0.0, "verified": false}]})
        );
        let table = report.table();
        assert!(table.contains("copy-in") && table.contains("yes") && table.contains("NO"));
    }
}
