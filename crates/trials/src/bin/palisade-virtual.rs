//! `palisade-virtual`: the engine in virtual time over drives of a model. `cargo xtask virtual`
//! starts it.

use layout::Level;
use pace::bound::State;
use std::process::ExitCode;
use trials::virtual_time::{Figure, Wanted};

const USAGE: &str = "\
usage: cargo xtask virtual --model NAME [--level 5] [--drives 8] [--strip 64K] [--cores 1] [--json]
Runs the engine over simulated drives of a model, at full speed, in virtual time: what drives limit,
not what the CPU costs. Status: 0 all was run, 1 something failed, 2 not understood.";

/// Every figure is the median of these seeds.
const SEEDS: [u64; 3] = [1, 2, 3];

struct Wish {
    wanted: Wanted,
    json: bool,
}

fn parse(arguments: &[String]) -> Result<Wish, String> {
    let (mut model, mut json) = (None, false);
    let (mut level, mut drives, mut strip, mut cores) = (Level::Raid5, 8, 64 << 10, 1);
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        if word == "--json" {
            json = true;
            continue;
        }
        let value = rest.next().ok_or_else(|| format!("{word} needs a value, or is unknown"))?;
        let wrong = || format!("{word} can't be {value}");
        let number = |least: usize, most: usize| {
            value.parse().ok().filter(|n| (least..=most).contains(n)).ok_or_else(wrong)
        };
        match word.as_str() {
            "--model" => model = Some(pace::by_name(value).ok_or_else(wrong)?),
            "--level" => level = value.parse().map_err(|_| wrong())?,
            "--drives" => drives = number(2, layout::MAX_DRIVES.into())?,
            "--cores" => cores = number(1, sim::world::CORES_MAX.into())? as u16,
            "--strip" => {
                let bytes = units::parse_size(value).and_then(|bytes| u32::try_from(bytes).ok());
                strip = bytes.ok_or_else(wrong)?;
            }
            _ => return Err(format!("{word} is unknown")),
        }
    }
    let model = model.ok_or_else(|| {
        let names: Vec<&str> = pace::model::MODELS.iter().map(|model| model.name).collect();
        format!("name a model: {}", names.join(", "))
    })?;
    let wanted = Wanted { model, level, drives, strip, cores, seed: 0 };
    Ok(Wish { wanted, json })
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wish = match parse(&arguments) {
        Ok(wish) => wish,
        Err(problem) => {
            eprintln!("virtual: {problem}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&wish.wanted) {
        Ok(rows) if wish.json => print!("{}", json(&wish.wanted, &rows, &arguments)),
        Ok(rows) => print!("{}", text(&wish.wanted, &rows)),
        Err(problem) => {
            eprintln!("virtual: {problem}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// A result: its name, unit, the values of all seeds and its goal.
struct Row {
    name: String,
    unit: &'static str,
    values: Vec<f64>,
    goal: Option<f64>,
}

impl Row {
    fn spread(&self) -> (f64, f64, f64) {
        let mut values = self.values.clone();
        values.sort_by(f64::total_cmp);
        (values[values.len() / 2], values[0], values[values.len() - 1])
    }

    fn met(&self) -> Option<bool> {
        self.goal.map(|goal| self.spread().0 >= goal)
    }
}

const fn word(state: State) -> &'static str {
    match state {
        State::Nominal => "nominal",
        State::DeviceDown => "device-down",
    }
}

/// What is told of a figure: name, unit, and where it is.
type Aspect = (&'static str, &'static str, fn(&Figure) -> f64);

const ASPECTS: [Aspect; 6] = [
    ("iops", "iops", |figure| figure.iops),
    ("of-bound", "ratio", |figure| figure.of_bound),
    ("to-baseline", "ratio", |figure| figure.to_baseline),
    ("drive-reads", "requests", |figure| figure.drive_reads),
    ("drive-writes", "requests", |figure| figure.drive_writes),
    ("p99-us", "us", |figure| figure.p99_us),
];

fn run(wanted: &Wanted) -> Result<Vec<Row>, String> {
    let may_lose = trials::scenario::shape(wanted.level, wanted.drives).0;
    let states = [State::Nominal, State::DeviceDown];
    let mut rows = Vec::new();
    for state in states.into_iter().filter(|state| *state == State::Nominal || may_lose > 0) {
        let seeds = SEEDS.iter().map(|seed| Wanted { seed: *seed, ..*wanted }.run(state));
        let seeds: Result<Vec<Vec<Figure>>, _> = seeds.collect();
        let seeds = seeds.map_err(|failure| failure.to_string())?;
        for (at, first) in seeds[0].iter().enumerate() {
            rows.extend(ASPECTS.map(|(aspect, unit, of)| Row {
                name: format!("virtual-{}-{}-{aspect}", word(state), first.workload),
                unit,
                values: seeds.iter().map(|figures| of(&figures[at])).collect(),
                goal: wanted.goal(state, &first.workload).filter(|_| aspect == "of-bound"),
            }));
        }
    }
    Ok(rows)
}

fn text(wanted: &Wanted, rows: &[Row]) -> String {
    let Wanted { model, level, drives, strip, cores, .. } = wanted;
    let mut text = format!(
        "level {level}, {drives} drives of the model {}, strips of {}, {cores} cores, virtual \
         time\n\n{:50} {:>12} {:8} {:>12} {:>12}  goal\n",
        model.name,
        units::format_size(u64::from(*strip)),
        "result",
        "value",
        "unit",
        "low",
        "high"
    );
    for row in rows {
        let (value, low, high) = row.spread();
        let goal = row.goal.map_or(String::new(), |goal| goal.to_string());
        let met = match row.met() {
            Some(true) => " met",
            Some(false) => " missed",
            None => "",
        };
        let line = format!(
            "{:50} {value:>12.3} {:8} {low:>12.3} {high:>12.3}  {goal}{met}",
            row.name, row.unit
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn json(wanted: &Wanted, rows: &[Row], arguments: &[String]) -> String {
    let null = || "null".to_owned();
    let row = |row: &Row| {
        let (value, low, high) = row.spread();
        let goal = row.goal.map_or_else(null, |goal| goal.to_string());
        let met = row.met().map_or_else(null, |met| met.to_string());
        format!(
            "    {{\"name\": \"{}\", \"value\": {value}, \"unit\": \"{}\", \"low\": {low}, \
             \"high\": {high}, \"goal\": {goal}, \"met\": {met}}}",
            row.name, row.unit
        )
    };
    let rows: Vec<String> = rows.iter().map(row).collect();
    format!(
        "{{\n  \"schema\": 1,\n  \"version\": \"{}\",\n  \"command\": {:?},\n  \"model\": \
         {{\"name\": \"{}\", \"scale\": 1}},\n  \"cores\": {},\n  \"results\": [\n{}\n  ]\n}}\n",
        env!("CARGO_PKG_VERSION"),
        format!("cargo xtask virtual {}", arguments.join(" ")),
        wanted.model.name,
        wanted.cores,
        rows.join(",\n")
    )
}
