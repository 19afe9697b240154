//! Sensors, fans and power supplies, as the kernel's hardware monitoring has them.
//!
//! Purpose: one [`Sensor`] for each channel of each chip below `/sys/class/hwmon`, and one
//! [`Supply`] for each chip that is a power supply. The files and their units are described by the
//! kernel's `Documentation/hwmon/sysfs-interface`, labels of supplies by
//! `Documentation/hwmon/pmbus`.
//!
//! Invariants
//! - Chips of drives are not among them: reading those asks the drive, which may hang.
//!   [`Sysfs::temperature`] reads one of them.
//! - An identifier is the same after a restart: the numbers of `hwmonN` and `nvmeN`, which are not,
//!   are no part of it.

use super::Sysfs;
use super::read::Dir;
use std::collections::{BTreeMap, BTreeSet};

/// What a sensor measures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Quantity {
    /// Thousandths of a degree Celsius.
    Temperature,
    /// Millivolts.
    Voltage,
    /// Milliamperes.
    Current,
    /// Microwatts.
    Power,
    /// Turns of a fan each minute.
    Fan,
}

impl Quantity {
    /// The word with which the kernel's files begin, with the quantity.
    const WORDS: [(&'static str, Self); 5] = [
        ("temp", Self::Temperature),
        ("in", Self::Voltage),
        ("curr", Self::Current),
        ("power", Self::Power),
        ("fan", Self::Fan),
    ];

    /// The word with which the kernel's files begin.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, quantity)| *quantity == self).map_or("", |(word, _)| word)
    }
}

/// How far off what a sensor measures is, by the chip's own word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Alarm {
    /// The chip raises none.
    None,
    /// A limit is passed.
    Raised,
    /// A critical limit is passed.
    Critical,
}

/// A sensor. Values are in the unit of what it measures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sensor {
    /// Names it, the same after a restart: letters, digits, `.`, `_` and `-`.
    pub id: String,
    /// The chip's name.
    pub chip: String,
    /// The chip's identifier, which all its sensors begin with.
    pub chip_id: String,
    /// What it measures.
    pub measures: Quantity,
    /// Its number among those of its chip that measure the same.
    pub number: u32,
    /// Its label, where the board gives one.
    pub label: Option<String>,
    /// What it reads now.
    pub reading: Option<i64>,
    /// What it should not be below.
    pub low: Option<i64>,
    /// What it should not be above.
    pub high: Option<i64>,
    /// What it must not be above.
    pub critical: Option<i64>,
    /// The chip's alarm.
    pub alarm: Alarm,
    /// Whether the sensor, or the fan, is broken.
    pub is_faulty: bool,
}

/// A power supply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Supply {
    /// Names it, the same after a restart.
    pub id: String,
    /// The name of its chip.
    pub chip: String,
    /// Whether it gives power.
    pub is_on: Option<bool>,
    /// What it takes, in microwatts.
    pub input_microwatts: Option<u64>,
    /// The gravest alarm of its sensors.
    pub alarm: Alarm,
    /// Whether one of its sensors or fans is broken.
    pub is_faulty: bool,
}

/// Chips that are drives: by [`Sensor::chip`].
const OF_DRIVES: &[&str] = &["nvme", "drivetemp"];

/// A chip's directory, name and identifier.
struct Chip<'a> {
    dir: Dir<'a>,
    name: String,
    id: String,
}

/// A name that is good in a URI.
pub(super) fn plain(name: &str) -> String {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    name.chars().map(|c| if good(c) { c } else { '-' }).collect()
}

/// The chips whose names `wanted` takes, with identifiers that differ.
fn chips<'a>(root: &Dir<'a>, wanted: impl Fn(&str) -> bool) -> Vec<Chip<'a>> {
    let Some(class) = root.at("class/hwmon") else { return Vec::new() };
    let mut found = Vec::new();
    for (_, dir) in class.children() {
        let Some(name) = dir.text("name").filter(|name| wanted(name)) else { continue };
        // Without a device, the chip belongs to what it lies in.
        let device = dir.at("device").or_else(|| dir.parent()).unwrap_or_else(|| dir.clone());
        found.push((device.path().to_owned(), name, dir));
    }
    // By place, so that the numbers of chips that have one name don't hang on `hwmonN`.
    found.sort_by(|one, two| (&one.0, &one.1).cmp(&(&two.0, &two.1)));
    let mut times = BTreeMap::new();
    let named = found.into_iter().map(|(device, name, dir)| {
        let place = device.file_name().unwrap_or_default().to_string_lossy();
        let id = plain(&format!("{name}-{place}"));
        let times = times.entry(id.clone()).and_modify(|times| *times += 1).or_insert(1);
        let id = if *times > 1 { format!("{id}-{times}") } else { id };
        Chip { dir, name, id }
    });
    named.collect()
}

/// `temp1_input` as its channel.
fn channel(file: &str) -> Option<(Quantity, u32)> {
    let (channel, _) = file.split_once('_')?;
    let (_, quantity) = *Quantity::WORDS.iter().find(|(word, _)| {
        channel
            .strip_prefix(word)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    })?;
    let number = channel.strip_prefix(quantity.word())?.parse().ok()?;
    Some((quantity, number))
}

fn sensor(chip: &Chip<'_>, measures: Quantity, number: u32) -> Sensor {
    let channel = format!("{}{number}", measures.word());
    let value = |what: &str| chip.dir.number::<i64>(&format!("{channel}_{what}"));
    let is_set = |what: &str| value(what).is_some_and(|value| value != 0);
    let is_faulty = is_set("fault");
    let alarm = if ["crit_alarm", "lcrit_alarm", "emergency_alarm"].into_iter().any(is_set) {
        Alarm::Critical
    } else if ["alarm", "max_alarm", "min_alarm", "cap_alarm"].into_iter().any(is_set) {
        Alarm::Raised
    } else {
        Alarm::None
    };
    Sensor {
        id: format!("{}-{channel}", chip.id),
        chip: chip.name.clone(),
        chip_id: chip.id.clone(),
        measures,
        number,
        label: chip.dir.text(&format!("{channel}_label")),
        // What a broken sensor reads means nothing; a broken fan's turns do.
        reading: match is_faulty && measures != Quantity::Fan {
            true => None,
            false => value("input").or_else(|| value("average")),
        },
        low: value("min").or_else(|| value("lcrit")),
        high: value("max"),
        critical: value("crit").or_else(|| value("emergency")),
        alarm,
        is_faulty,
    }
}

fn sensors_of(chip: &Chip<'_>) -> Vec<Sensor> {
    let entries = chip.dir.entries();
    let channels: BTreeSet<_> = entries.iter().filter_map(|file| channel(file)).collect();
    channels.into_iter().map(|(measures, number)| sensor(chip, measures, number)).collect()
}

/// The supply whose chip has these sensors. One that measures what goes in (label `vin` or `pin`)
/// and has a fan is a supply; a converter on a board has no fan.
fn supply(sensors: &[Sensor]) -> Option<Supply> {
    let first = sensors.first()?;
    let label = |word: &str| {
        sensors.iter().find(|sensor| sensor.label.as_deref().is_some_and(|l| l.starts_with(word)))
    };
    let input = label("pin");
    if input.or_else(|| label("vin")).is_none()
        || !sensors.iter().any(|sensor| sensor.measures == Quantity::Fan)
    {
        return None;
    }
    // By what it gives; where that is not measured, by what it takes.
    let reading = |word: &str| label(word)?.reading;
    let gives = ["pout", "vout", "pin"].into_iter().find_map(reading);
    Some(Supply {
        id: first.chip_id.clone(),
        chip: first.chip.clone(),
        is_on: gives.map(|gives| gives > 0),
        input_microwatts: input.and_then(|input| u64::try_from(input.reading?).ok()),
        alarm: sensors.iter().map(|sensor| sensor.alarm).max().unwrap_or(Alarm::None),
        is_faulty: sensors.iter().any(|sensor| sensor.is_faulty),
    })
}

impl Sysfs {
    /// The sensors and fans that are not of drives, and the power supplies. Reading them may take
    /// long where a chip is slow.
    pub fn sensors(&self) -> (Vec<Sensor>, Vec<Supply>) {
        let (mut sensors, mut supplies) = (Vec::new(), Vec::new());
        for chip in chips(&self.dir(), |name| !OF_DRIVES.contains(&name)) {
            let own = sensors_of(&chip);
            supplies.extend(supply(&own));
            sensors.extend(own);
        }
        (sensors, supplies)
    }

    /// The temperature of the drive that has this NVMe controller, by the kernel's sensor: asks the
    /// drive, and waits for it. `None` where the kernel has no such sensor.
    pub fn temperature(&self, controller: &str) -> Option<Sensor> {
        let of = self.dir().at(&format!("class/nvme/{controller}"))?;
        let chips = chips(&self.dir(), |name| name == "nvme");
        let own = chips.into_iter().find(|chip| chip.dir.path().starts_with(of.path()))?;
        Some(sensor(&own, Quantity::Temperature, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_their_names() {
        for (file, expected) in [
            ("temp1_input", Some((Quantity::Temperature, 1))),
            ("in0_lcrit_alarm", Some((Quantity::Voltage, 0))),
            ("curr12_label", Some((Quantity::Current, 12))),
            ("power1_average", Some((Quantity::Power, 1))),
            ("fan2_min", Some((Quantity::Fan, 2))),
            ("intrusion0_alarm", None),
            ("pwm1", None),
            ("pwm1_enable", None),
            ("temp_input", None),
            ("temp1", None),
            ("temp99999999999_input", None),
            ("tempx1_input", None),
            ("name", None),
        ] {
            assert_eq!(channel(file), expected, "{file}");
        }
    }
}
