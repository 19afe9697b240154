//! What a shelf measures of itself: temperatures, fans, power supplies. They are what was said.

use crate::error::ShelfError;
use crate::plan::{Module, Plan};
use serde::Serialize;

/// How a reading is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reading {
    /// As it should be.
    Ok,
    /// Beyond where it is told.
    Warning,
    /// Beyond what the part stands.
    Critical,
    /// The part is not there.
    Absent,
}

/// Kinds of sensors: the unit, what is read at first, and from where on it is a warning and
/// critical; where that is below the first reading, less is worse.
struct Kind {
    unit: &'static str,
    value: f64,
    warning: f64,
    critical: f64,
}

const DRIVE: Kind = Kind { unit: "celsius", value: 38.0, warning: 70.0, critical: 78.0 };
const MODULE: Kind = Kind { unit: "celsius", value: 52.0, warning: 90.0, critical: 100.0 };
const FAN: Kind = Kind { unit: "rpm", value: 9000.0, warning: 4000.0, critical: 1000.0 };
const SUPPLY: Kind = Kind { unit: "watts", value: 310.0, warning: 750.0, critical: 800.0 };
/// Fans and power supplies of a shelf.
const FANS: usize = 4;
const SUPPLIES: usize = 2;

/// A sensor.
pub(crate) struct Sensor {
    name: String,
    kind: &'static Kind,
    /// `None`: its part is not there.
    value: Option<f64>,
}

/// A sensor, as it is shown.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ShownSensor {
    /// What is measured.
    pub name: String,
    /// What was read.
    pub value: Option<f64>,
    /// In which unit.
    pub unit: &'static str,
    /// From where on it is a warning; below it, where that is more than what is critical.
    #[serde(skip)]
    pub warning: f64,
    /// From where on it is critical.
    #[serde(skip)]
    pub critical: f64,
    /// How that is.
    pub state: Reading,
}

/// All sensors of a shelf.
pub(crate) fn all(plan: &Plan) -> Vec<Sensor> {
    let sensor = |name: String, kind| Sensor { name, kind, value: Some(kind.value) };
    let drives = (1..=plan.drives).map(|n| sensor(format!("drive.{n}.temperature"), &DRIVE));
    let modules = Module::ALL.iter().map(|m| sensor(format!("iom.{m}.temperature"), &MODULE));
    let fans = (1..=FANS).map(|n| sensor(format!("fan.{n}"), &FAN));
    let supplies = (1..=SUPPLIES).map(|n| sensor(format!("psu.{n}"), &SUPPLY));
    drives.chain(modules).chain(fans).chain(supplies).collect()
}

impl Sensor {
    fn state(&self) -> Reading {
        let Some(value) = self.value else { return Reading::Absent };
        let Kind { value: usual, warning, critical, .. } = *self.kind;
        let is_beyond = |limit: f64| if limit < usual { value <= limit } else { value >= limit };
        match () {
            () if is_beyond(critical) => Reading::Critical,
            () if is_beyond(warning) => Reading::Warning,
            () => Reading::Ok,
        }
    }

    /// As it is shown.
    pub fn shown(&self) -> ShownSensor {
        ShownSensor {
            name: self.name.clone(),
            value: self.value,
            unit: self.kind.unit,
            warning: self.kind.warning,
            critical: self.kind.critical,
            state: self.state(),
        }
    }
}

/// Says what the sensor of a name reads: a number, or `absent`. Nothing if there is none.
pub(crate) fn set(
    sensors: &mut [Sensor],
    name: &str,
    value: &str,
) -> Option<Result<(), ShelfError>> {
    let sensor = sensors.iter_mut().find(|sensor| sensor.name == name)?;
    let number = value.parse::<f64>().ok().filter(|number| number.is_finite());
    Some(match (value, number) {
        ("absent", _) => {
            sensor.value = None;
            Ok(())
        }
        (_, Some(number)) => {
            sensor.value = Some(number);
            Ok(())
        }
        _ => {
            let told = format!("{value:?} is nothing that {name} can be: a number, or absent");
            Err(ShelfError::Usage(told))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_judged_by_what_its_part_stands() {
        let mut sensors = all(&Plan::small(6, 24));
        assert_eq!(sensors.len(), 24 + 2 + 4 + 2);
        assert!(sensors.iter().all(|sensor| sensor.state() == Reading::Ok));
        let mut state = |name: &str, value: &str| {
            set(&mut sensors, name, value)
                .expect("there is one")
                .map(|()| sensors.iter().find(|own| own.name == name).expect("is there").state())
        };
        for (name, value, wanted) in [
            ("drive.7.temperature", "71.5", Reading::Warning),
            ("drive.7.temperature", "78", Reading::Critical),
            ("drive.7.temperature", "20", Reading::Ok),
            ("iom.A.temperature", "95", Reading::Warning),
            ("fan.1", "3000", Reading::Warning),
            ("fan.1", "0", Reading::Critical),
            ("psu.2", "absent", Reading::Absent),
        ] {
            assert_eq!(state(name, value).unwrap(), wanted, "{name} {value}");
        }
        assert!(state("fan.1", "NaN").is_err() && state("fan.1", "fast").is_err());
        assert!(set(&mut sensors, "fan.5", "1").is_none());
    }
}
