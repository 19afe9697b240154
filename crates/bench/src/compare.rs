//! `palisade bench compare`: two reports side by side, result by result.
//!
//! A result is the ratio of its values, the second report's over the first's. Which way is better
//! is known of rates and times, of ratios to a bare drive or a bound, and wherever a goal says it;
//! others are shown and not judged. Reports of another model, or of one at another scale, are not
//! compared: a ratio of theirs would say nothing.

use crate::error::BenchError;
use crate::report::{Goal, Metric, Report};
use crate::stats::Spread;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A report that was written.
struct Read {
    json: Value,
    results: BTreeMap<String, Past>,
}

/// A result of it.
struct Past {
    value: f64,
    low: f64,
    high: f64,
    unit: String,
    goal: Option<(f64, bool)>,
}

fn refused(path: &Path, why: &str) -> BenchError {
    BenchError::Refused(format!("{}: {why}", path.display()))
}

fn read(path: &Path) -> Result<Read, BenchError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| BenchError::System { path: path.to_owned(), error })?;
    let is_none = "it is no report of palisade bench: give a file that --out or --json made";
    let json: Value = serde_json::from_str(&text).map_err(|_| refused(path, is_none))?;
    match json["schema"].as_u64() {
        Some(1) => {}
        Some(other) => return Err(refused(path, &format!("schema {other} is not known here"))),
        None => return Err(refused(path, is_none)),
    }
    let past = |own: &Value| {
        let number = |key: &str| own[key].as_f64();
        let past = Past {
            value: number("value")?,
            low: number("low")?,
            high: number("high")?,
            unit: own["unit"].as_str()?.to_owned(),
            goal: number("goal").zip(own["met"].as_bool()),
        };
        Some((own["name"].as_str()?.to_owned(), past))
    };
    let all = json["results"].as_array().ok_or_else(|| refused(path, is_none))?;
    let results = all.iter().filter_map(past).collect();
    Ok(Read { json, results })
}

/// Which way is better.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Better {
    More,
    Less,
    Unknown,
}

impl Past {
    fn better(&self, name: &str) -> Better {
        match self.unit.as_str() {
            "us" | "ms" | "s" => return Better::Less,
            "iops" | "GB/s" | "MIOPS" => return Better::More,
            "ratio" | "MiB" => {}
            _ => return Better::Unknown,
        }
        // A value that meets a goal lies on its better side.
        match self.goal {
            Some((goal, is_met)) if self.value != goal => {
                if (self.value > goal) == is_met {
                    Better::More
                } else {
                    Better::Less
                }
            }
            _ if name.ends_with("-to-baseline") || name.ends_with("-of-bound") => Better::More,
            _ if name.ends_with("waf") || self.unit == "MiB" => Better::Less,
            _ => Better::Unknown,
        }
    }
}

/// What two reports must have alike, and what it is called.
const ALIKE: [(&str, &str, &str); 2] =
    [("/model/name", "model", "--model"), ("/model/scale", "scale", "--scale")];

fn check_alike(a: &Read, b: &Read) -> Result<(), BenchError> {
    for (pointer, what, flag) in ALIKE {
        let [first, second] = [a, b].map(|own| own.json.pointer(pointer));
        if first != second {
            let told = |own: Option<&Value>| own.map_or("none".to_owned(), Value::to_string);
            return Err(BenchError::Refused(format!(
                "the reports' {what} is {} and {}: run one of them again with the other's {flag}",
                told(first),
                told(second)
            )));
        }
    }
    Ok(())
}

/// Compares two reports; results worse by more than the part `worse` miss their goal.
///
/// # Errors
/// When a file is no report, or the reports have nothing that can be compared.
pub fn bench_compare(
    (a, b): (&Path, &Path),
    worse: f64,
    version: &str,
    command: &str,
) -> Result<Report, BenchError> {
    if !(0.0..1.0).contains(&worse) {
        return Err(BenchError::Refused("--worse is a part from 0 to below 1".to_owned()));
    }
    let (first, second) = (read(a)?, read(b)?);
    check_alike(&first, &second)?;
    let mut report = Report::new(version, command);
    let command_of = |own: &Read| own.json["command"].as_str().unwrap_or_default().to_owned();
    let machine = |own: &Read| own.json["machine"].clone();
    report.notes.push(format!("A is {}: {}", a.display(), command_of(&first)));
    report.notes.push(format!("B is {}: {}", b.display(), command_of(&second)));
    if machine(&first) != machine(&second) {
        report.notes.push("A and B were measured on other machines or kernels".to_owned());
    }
    for (name, own) in &first.results {
        let Some(other) = second.results.get(name) else {
            report.notes.push(format!("{name} is in A only"));
            continue;
        };
        if own.value == 0.0 || own.unit != other.unit {
            continue;
        }
        let ratios = Spread {
            median: other.value / own.value,
            low: other.low / own.high.max(f64::MIN_POSITIVE),
            high: other.high / own.low.max(f64::MIN_POSITIVE),
        };
        let better = match own.better(name) {
            Better::Unknown => other.better(name),
            known => known,
        };
        let goal = match better {
            Better::More => Some(Goal::AtLeast(1.0 - worse)),
            Better::Less => Some(Goal::AtMost(1.0 + worse)),
            Better::Unknown => None,
        };
        report.results.push(Metric::new(name.clone(), "ratio", ratios, goal));
    }
    let only = second.results.keys().filter(|name| !first.results.contains_key(*name));
    report.notes.extend(only.map(|name| format!("{name} is in B only")));
    match report.results.is_empty() {
        true => Err(BenchError::Refused("the reports have no result in common".to_owned())),
        false => Ok(report),
    }
}

/// Whether no result is worse by more than was allowed.
pub fn is_no_worse(report: &Report) -> bool {
    report.results.iter().all(|own| own.met != Some(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ModelUsed;
    use std::path::PathBuf;

    struct Files(tempfile::TempDir);

    impl Files {
        fn put(&self, name: &str, iops: f64, micros: f64, scale: Option<f64>) -> PathBuf {
            let mut report = Report::new("1", name);
            report.add("x", "iops", Spread::of([iops]), None);
            report.add("x-p99-us", "us", Spread::of([micros]), None);
            report.add("x-cov", "ratio", Spread::of([iops]), None);
            report.add("y", "ratio", Spread::of([0.5]), Some(Goal::AtMost(0.3)));
            report.model = scale.map(|scale| ModelUsed { name: "sn840".to_owned(), scale });
            let path = self.0.path().join(name);
            std::fs::write(&path, report.to_json()).unwrap();
            path
        }
    }

    fn compare(a: &Path, b: &Path) -> Result<Report, BenchError> {
        bench_compare((a, b), 0.05, "1", "palisade bench compare")
    }

    #[test]
    fn rates_may_not_fall_and_times_may_not_rise() {
        let files = Files(tempfile::tempdir().unwrap());
        let a = files.put("a", 100.0, 10.0, None);
        let met = |b: &Path| {
            let report = compare(&a, b).unwrap();
            let of = |name: &str| report.results.iter().find(|own| own.name == name).unwrap().met;
            (["x", "x-p99-us", "x-cov", "y"].map(of), is_no_worse(&report))
        };
        let yes = Some(true);
        assert_eq!(met(&files.put("same", 96.0, 10.4, None)), ([yes, yes, None, yes], true));
        let slow = met(&files.put("slow", 94.0, 10.0, None));
        assert_eq!(slow, ([Some(false), yes, None, yes], false));
        let late = met(&files.put("late", 200.0, 10.6, None));
        assert_eq!(late, ([yes, Some(false), None, yes], false));
    }

    #[test]
    fn what_can_not_be_compared_is_refused() {
        let files = Files(tempfile::tempdir().unwrap());
        let a = files.put("a", 100.0, 10.0, Some(0.25));
        let b = files.put("b", 100.0, 10.0, Some(0.5));
        let why = |b: &Path| compare(&a, b).unwrap_err().to_string();
        assert!(why(&b).contains("scale is 0.25 and 0.5"), "{}", why(&b));
        assert!(why(&files.put("c", 1.0, 1.0, None)).contains("model"));
        let text = files.0.path().join("text");
        std::fs::write(&text, "{}").unwrap();
        assert!(why(&text).contains("no report"), "{}", why(&text));
        assert!(why(&files.0.path().join("none")).contains("none"));
        let same = (&*a, &*a);
        assert!(bench_compare(same, 1.0, "", "").is_err());
        assert!(bench_compare(same, 0.0, "", "").is_ok());
    }
}
