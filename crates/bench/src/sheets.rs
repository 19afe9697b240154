//! A report as files of comma-separated values (RFC 4180), for spreadsheets: `results.csv`,
//! `runs.csv`, and one for each table, by its name.

use crate::error::BenchError;
use crate::report::{Cell, Report};
use std::path::Path;

fn field(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => text.clone(),
        Cell::Number(value) => value.to_string(),
        Cell::Nothing(()) => String::new(),
    }
}

fn write(
    dir: &Path,
    name: &str,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> Result<(), BenchError> {
    let path = dir.join(format!("{name}.csv"));
    let all = || -> Result<(), csv::Error> {
        let mut writer = csv::WriterBuilder::new().flexible(true).from_path(&path)?;
        for row in rows {
            writer.write_record(&row)?;
        }
        Ok(writer.flush()?)
    };
    all().map_err(|error| BenchError::System { path, error: std::io::Error::other(error) })
}

fn texts<const N: usize>(row: [&str; N]) -> Vec<String> {
    row.map(str::to_owned).to_vec()
}

/// Writes them to a folder, which is made where there is none.
///
/// # Errors
/// When a file can't be written.
pub fn write_all(report: &Report, dir: &Path) -> Result<(), BenchError> {
    std::fs::create_dir_all(dir)
        .map_err(|error| BenchError::System { path: dir.to_owned(), error })?;
    let results = report.results.iter().map(|own| {
        let goal = own.goal.map_or(String::new(), |goal| goal.to_string());
        let met = own.met.map_or(String::new(), |met| met.to_string());
        let [value, low, high] = [own.value, own.low, own.high].map(|value| value.to_string());
        vec![own.name.clone(), value, own.unit.to_owned(), low, high, goal, met]
    });
    let heading = texts(["name", "value", "unit", "low", "high", "goal", "met"]);
    write(dir, "results", std::iter::once(heading).chain(results))?;
    let runs = report.runs.iter().map(|own| {
        let mut row = vec![
            own.name.clone(),
            own.instance.to_string(),
            own.counts.to_string(),
            own.flagged.to_string(),
            own.interval_seconds.to_string(),
        ];
        row.extend(own.series.iter().map(u64::to_string));
        row
    });
    let heading = texts(["name", "instance", "counts", "flagged", "interval_seconds", "series"]);
    write(dir, "runs", std::iter::once(heading).chain(runs))?;
    for table in &report.tables {
        let rows = table.rows.iter().map(|row| row.iter().map(field).collect());
        write(dir, &table.name, std::iter::once(table.columns.clone()).chain(rows))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::setup;
    use crate::stats::Spread;

    #[test]
    fn each_table_is_a_file_and_commas_are_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let mut report = Report::new("", "");
        report.add("x", "ratio", Spread::of([0.5]), None);
        let rows = vec![vec![Cell::from("a, \"b\"".to_owned()), 0.25.into(), None.into()]];
        report.tables.push(setup::table("t", "", &["what", "one", "none"], rows, String::new()));
        let within = dir.path().join("new");
        write_all(&report, &within).unwrap();
        let read = |name: &str| std::fs::read_to_string(within.join(name)).unwrap();
        assert_eq!(read("t.csv"), "what,one,none\n\"a, \"\"b\"\"\",0.25,\n");
        assert_eq!(read("results.csv").lines().nth(1), Some("x,0.5,ratio,0.5,0.5,,"));
        assert_eq!(read("runs.csv").lines().count(), 1);
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert!(write_all(&report, &dir.path().join("file")).is_err());
    }
}
