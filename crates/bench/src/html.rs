//! A report as one page: nothing is fetched, no script runs, and it is light or dark as the
//! reader's system is.
//!
//! - What was to be reached comes first. Then each table has a chart, and the table itself below:
//!   the numbers are the report's, all their digits in `data-value`.
//! - Charts are bars of plain HTML, so that their words stay as large on a telephone as on a wall.
//!   Bars of one row share a scale; where all rows have one unit they share it together.
//! - Series of runs are lines.

use crate::report::{Cell, Metric, Report, Run, Table, number};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Colours are told apart in both schemes, and by those who see no red or green (Okabe and Ito,
/// Color Universal Design, 2008).
const STYLE: &str = "
:root{color-scheme:light dark;--ground:#fff;--ink:#1b1f24;--faint:#5c6670;--line:#d7dce1;
--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#cc79a7;--c4:#b58900;--good:#00734d;--bad:#b3261e}
@media(prefers-color-scheme:dark){:root{--ground:#14171a;--ink:#e8ebee;--faint:#a3adb6;
--line:#363d44;--c0:#56b4e9;--c1:#f28e4b;--c2:#2fc69b;--c3:#e2a3c7;--c4:#e0c04c;--good:#4fd1a5;
--bad:#ff8a80}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:76rem;padding:1rem;background:var(--ground);color:var(--ink);
font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.5rem;margin:.5rem 0}h2{font-size:1.2rem;margin:2.5rem 0 .25rem}
p{margin:.25rem 0}.faint{color:var(--faint)}code{font-size:.9em}
figure{margin:1rem 0}.group{margin:.75rem 0}.row{display:grid;align-items:center;gap:0 .5rem;
grid-template-columns:minmax(6rem,14rem) 1fr minmax(3.5rem,auto)}
.row>span:first-child{color:var(--faint);font-size:.85rem}
.row>span:last-child{font-variant-numeric:tabular-nums;text-align:right;font-size:.85rem}
.track{background:var(--line);height:.85rem;border-radius:.2rem;overflow:hidden}
.bar{height:100%;min-width:1px}.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.85rem;overflow-wrap:normal}
th,td{padding:.25rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.met{color:var(--good)}.missed{color:var(--bad)}summary{cursor:pointer;margin:.5rem 0}
svg{width:100%;height:4rem;display:block}.lines{display:grid;gap:1rem;
grid-template-columns:repeat(auto-fill,minmax(min(100%,18rem),1fr))}
@media(max-width:30rem){.row{grid-template-columns:1fr auto}.track{grid-row:2;grid-column:1/3}}
";

/// Colours of bars and lines.
const COLOURS: [&str; 5] = ["var(--c0)", "var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)"];

/// Lines that are drawn at most.
const LINES: usize = 200;

/// A chart of a table: by which texts its rows are named, which columns are bars, and whether all
/// rows have one scale.
struct Chart {
    names: Vec<usize>,
    bars: Vec<usize>,
    is_one_scale: bool,
    rows: Vec<usize>,
}

/// Which columns of a table are its chart, by the beginnings of their headings; all that have
/// numbers where nothing is said.
fn wanted(table: &str) -> (&'static [&'static str], bool) {
    match table {
        "random" | "sequential" => (&["to baseline", "to its baseline"], true),
        "product-sheet" => (&["per drive", "published per drive"], false),
        "nominal" | "device-down" | "device-rebuild" => (&["value", "published"], true),
        "performance" | "efficiency" => (&[], false),
        "life-cycle" => (&["to baseline"], true),
        "life-cycle-drives" => (&["drives' requests for one"], true),
        "rebuild-idle" => (&["of the drive's writes"], true),
        "rebuild-load" => (&["of idle"], true),
        "scale" => (&["value", "published"], false),
        name if name.starts_with("local-") || name.starts_with("remote-") => {
            (&["IOPS", "published: md IOPS", "published: SupremeRAID IOPS"], true)
        }
        "single-drive" => (&["IOPS", "published: IOPS"], false),
        _ => (&[], true),
    }
}

impl Chart {
    /// Of a table that has numbers to be shown.
    fn of(table: &Table) -> Option<Self> {
        if ["setup", "topology", "process", "fio-parameters"].contains(&table.name.as_str()) {
            return None;
        }
        let (wanted, is_one_scale) = wanted(&table.name);
        let is_bar = |at: &usize| {
            let own = &table.columns[*at];
            let is_wanted = wanted.is_empty()
                || wanted.iter().any(|start| own == start || own.starts_with(&format!("{start},")))
                || wanted.contains(&"published") && own.starts_with("published");
            table.has_numbers(*at) && is_wanted
        };
        let bars: Vec<usize> = (0..table.columns.len()).filter(is_bar).collect();
        let is_name = |at: &usize| {
            !table.has_numbers(*at) && !["unit", "panel"].contains(&&*table.columns[*at])
        };
        let names = (0..table.columns.len()).filter(is_name).collect();
        // Of panels only the ratio is of one unit.
        let panel = table.columns.iter().position(|own| own == "panel");
        let is_shown = |at: &usize| {
            let row = &table.rows[*at];
            let is_ratio = |panel: usize| row[panel] == Cell::Text("ratio".to_owned());
            let has_bar = bars.iter().any(|bar| matches!(row[*bar], Cell::Number(_)));
            has_bar && panel.is_none_or(is_ratio)
        };
        let rows: Vec<usize> = (0..table.rows.len()).filter(is_shown).collect();
        (!bars.is_empty() && !rows.is_empty()).then_some(Self { names, bars, is_one_scale, rows })
    }

    fn show(&self, table: &Table) -> Markup {
        let value = |row: usize, at: usize| match table.rows[row].get(at) {
            Some(Cell::Number(value)) if value.is_finite() => Some(*value),
            _ => None,
        };
        let most = |rows: &[usize]| {
            let all = rows.iter().flat_map(|row| self.bars.iter().map(move |at| (*row, *at)));
            all.filter_map(|(row, at)| value(row, at)).fold(0.0f64, f64::max)
        };
        let all = most(&self.rows);
        html! {
            figure role="group" aria-label=(format!("Chart of {}", table.title)) {
                @for row in &self.rows {
                    @let scale = if self.is_one_scale { all } else { most(&[*row]) };
                    div.group {
                        @let names = self.names.iter().map(|at| table.rows[*row][*at].text());
                        @let name = names.collect::<Vec<_>>().join(", ");
                        div { (name) " " span.faint { (unit(table, *row)) } }
                        @for (number, at) in self.bars.iter().enumerate() {
                            @if let Some(value) = value(*row, *at) {
                                @let part = if scale > 0.0 { value / scale * 100.0 } else { 0.0 };
                                @let colour = COLOURS[number % COLOURS.len()];
                                div.row {
                                    span { (table.columns[*at]) }
                                    div.track { div.bar style=(format!(
                                        "width:{:.2}%;background:{colour}", part.clamp(0.0, 100.0)
                                    )) {} }
                                    span { (Cell::Number(value).text()) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What stands in a row's column `unit`, if it has one.
fn unit(table: &Table, row: usize) -> String {
    let at = table.columns.iter().position(|own| own == "unit");
    let is_ratio = table.columns.first().is_some_and(|own| own == "panel");
    match at {
        Some(at) if !is_ratio => table.rows[row][at].text(),
        _ => String::new(),
    }
}

fn cell(cell: &Cell, is_number: bool) -> Markup {
    match cell {
        Cell::Number(value) => html! { td.n data-value=(value) { (cell.text()) } },
        _ => html! { td.n[is_number] { (cell.text()) } },
    }
}

fn table(own: &Table) -> Markup {
    let numeric: Vec<bool> = (0..own.columns.len()).map(|at| own.has_numbers(at)).collect();
    html! {
        section id=(own.name) {
            h2 { (own.title) }
            p.faint { (own.name) @if !own.source.is_empty() { ", after " (own.source) } }
            @if let Some(chart) = Chart::of(own) { (chart.show(own)) }
            div.scroll tabindex="0" role="region" aria-label=(format!("Table of {}", own.title)) {
                table {
                    thead { tr {
                        @for (at, name) in own.columns.iter().enumerate() {
                            th.n[numeric[at]] scope="col" { (name) }
                        }
                    } }
                    tbody { @for row in &own.rows { tr {
                        @for (at, one) in row.iter().enumerate() { (cell(one, numeric[at])) }
                    } } }
                }
            }
        }
    }
}

fn results(all: &[&Metric]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Results" {
            table {
                thead { tr {
                    th scope="col" { "result" }
                    @for name in ["value", "low", "high", "goal"] { th.n scope="col" { (name) } }
                    th scope="col" { "unit" }
                    th scope="col" { "" }
                } }
                tbody { @for own in all { tr data-result=(own.name) {
                    td { (own.name) }
                    @for value in [own.value, own.low, own.high] {
                        td.n data-value=(value) { (number(value, own.unit)) }
                    }
                    td.n { @if let Some(goal) = own.goal { (format!("{goal:.2}")) } }
                    td { (own.unit) }
                    td.met[own.met == Some(true)].missed[own.met == Some(false)] {
                        @match own.met { Some(true) => "met", Some(false) => "missed", None => "" }
                    }
                } } }
            }
        }
    }
}

/// A run's series as a line.
fn line(run: &Run) -> Markup {
    let most = run.series.iter().copied().max().unwrap_or(0).max(1) as f64;
    let step = 100.0 / (run.series.len().max(2) - 1) as f64;
    let point = |(at, value): (usize, &u64)| {
        format!("{:.2},{:.2}", at as f64 * step, 38.0 - *value as f64 / most * 36.0)
    };
    let points: Vec<String> = run.series.iter().enumerate().map(point).collect();
    let rate = most / run.interval_seconds.max(f64::MIN_POSITIVE);
    html! {
        div {
            div { (run.name) " " span.faint { "instance " (run.instance)
                @if run.flagged { ", varied" } } }
            svg viewBox="0 0 100 40" preserveAspectRatio="none" role="img"
                aria-label=(format!("Requests in each {} s", run.interval_seconds)) {
                polyline points=(points.join(" ")) fill="none" stroke="var(--c0)"
                    stroke-width="2" vector-effect="non-scaling-stroke" {}
            }
            div.faint { "up to " (format!("{rate:.0}")) " requests a second" }
        }
    }
}

/// The page.
pub fn page(report: &Report) -> String {
    let machine = &report.machine;
    let judged: Vec<&Metric> = report.results.iter().filter(|own| own.goal.is_some()).collect();
    let all: Vec<&Metric> = report.results.iter().collect();
    let lines: Vec<&Run> = report.runs.iter().filter(|run| run.series.len() > 1).collect();
    let policy = "default-src 'none'; style-src 'unsafe-inline'";
    // A text in a script ends at the next `<`.
    let json = report.to_json().replace('<', "\\u003c");
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy);
                title { (report.command) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    h1 { (report.command) }
                    p { (machine.cpu) ", " (machine.cpus) " CPUs, "
                        (units::format_size(machine.memory_bytes)) " memory, Linux "
                        (machine.kernel) ", palisade " (report.version) }
                    @if let Some(model) = &report.model {
                        p { "Drives of the model " (model.name) ", " (model.scale)
                            " times as fast as it is." }
                    }
                    @if !judged.is_empty() { h2 { "Goals" } (results(&judged)) }
                    @for own in &report.tables { (table(own)) }
                    @if !report.notes.is_empty() || !report.open.is_empty() {
                        h2 { "Notes" }
                        ul {
                            @for note in &report.notes { li { (note) } }
                            @for open in &report.open { li { (open.name) ": " (open.reason) } }
                        }
                    }
                    @if !lines.is_empty() {
                        h2 { "Runs" }
                        div.lines { @for run in lines.iter().take(LINES) { (line(run)) } }
                    }
                    h2 { "All results" }
                    details { summary { (all.len()) " results" } (results(&all)) }
                }
                script type="application/json" id="report" { (PreEscaped(json)) }
            }
        }
    };
    page.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::setup;
    use crate::report::Goal;
    use crate::stats::Spread;

    fn report() -> Report {
        let mut report = Report::new("1.2.3", "palisade bench <b>x</b>");
        let goal = Some(Goal::AtLeast(0.5));
        report.add("nominal-x-of-bound", "ratio", Spread::of([0.123456789]), goal);
        let row = |name: &str, ours: f64, theirs: Option<f64>| {
            vec![Cell::from(name.to_owned()), ours.into(), 2.0.into(), ours.into(), theirs.into()]
        };
        let rows = vec![row("a</script>", 0.25, Some(0.5)), row("b", 1.0, None)];
        let columns = ["workload", "baseline", "palisade", "to baseline", "to its baseline"];
        report.tables.push(setup::table("random", "a title", &columns, rows, "W".to_owned()));
        report.runs.push(Run {
            name: "nominal-x".to_owned(),
            instance: 1,
            counts: true,
            flagged: false,
            interval_seconds: 1.0,
            series: vec![10, 20, 0],
        });
        report
    }

    #[test]
    fn the_page_has_the_reports_numbers_and_fetches_nothing() {
        let page = page(&report());
        assert!(page.contains("data-value=\"0.123456789\""), "{page}");
        assert!(page.contains("palisade bench &lt;b&gt;x&lt;/b&gt;"), "{page}");
        assert_eq!(page.matches("</script>").count(), 1, "no text ends the script");
        for away in ["http://", "https://", "url(", "@import", " src=", " href="] {
            assert!(!page.contains(away), "{away}");
        }
        assert!(page.contains("missed") && page.contains("<polyline"));
        // One scale for all rows: a quarter, and the whole.
        assert!(page.contains("width:25.00%") && page.contains("width:100.00%"), "{page}");
        let json =
            page.split("id=\"report\">").nth(1).and_then(|rest| rest.split("</script>").next());
        let json: serde_json::Value = serde_json::from_str(json.unwrap_or_default()).expect("JSON");
        assert_eq!(json["tables"][0]["rows"][0][0], "a</script>");
    }

    #[test]
    fn charts_have_the_columns_that_belong_together() {
        let table = &report().tables[0];
        let chart = Chart::of(table).expect("has numbers");
        assert_eq!((&chart.names[..], &chart.bars[..]), (&[0][..], &[3, 4][..]));
        let setup = Table { name: "setup".to_owned(), ..table.clone() };
        assert!(Chart::of(&setup).is_none());
    }
}
