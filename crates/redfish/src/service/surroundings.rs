//! Housings, and sensors, fans and power supplies of the machine's.

use super::{alerts, chassis, collection, link, ports, uri};
use crate::oem;
use crate::routes::{Match, Resource};
use crate::view::{Fan, Health, Measures, Sensor, Supply, View};
use serde_json::{Value, json};

/// A resource of what is around the drives, if it is one.
pub(super) fn rendered(view: &View, found: &Match) -> Option<Value> {
    use Resource as R;
    let own = &view.surroundings;
    let id = found.id(0);
    match found.route.resource {
        R::ChassisAll => Some(chassis::all(view)),
        R::Chassis => chassis::one(view, id),
        R::Sensors => {
            let uris = own.sensors.iter().map(|own| uri::sensor(&own.id));
            Some(collection(uri::SENSORS, "SensorCollection", "Sensors", uris))
        }
        R::Sensor => own.sensors.iter().find(|own| own.id == id).map(|own| sensor(view, own)),
        R::Thermal => Some(thermal(view)),
        R::ThermalMetrics => Some(thermal_metrics(view)),
        R::Fans => {
            let uris = own.fans.iter().map(|own| uri::fan(&own.id));
            Some(collection(uri::FANS, "FanCollection", "Fans", uris))
        }
        R::Fan => own.fans.iter().find(|own| own.id == id).map(|own| fan(view, own)),
        R::Power => Some(power(view)),
        R::PowerSupplies => {
            let uris = own.supplies.iter().map(|own| uri::supply(&own.id));
            Some(collection(uri::SUPPLIES, "PowerSupplyCollection", "Power supplies", uris))
        }
        R::PowerSupply => own.supplies.iter().find(|own| own.id == id).map(|own| supply(view, own)),
        R::PowerSupplyMetrics => {
            own.supplies.iter().find(|own| own.id == id).and_then(supply_metrics)
        }
        R::EthernetInterfaces => Some(ports::all(view)),
        R::EthernetInterface => ports::one(view, id),
        _ => None,
    }
}

/// What a sensor measures in Redfish: its type, its unit (UCUM), and how many of ours are one.
pub(crate) const fn unit(measures: Measures) -> (&'static str, &'static str, f64) {
    match measures {
        Measures::Temperature => ("Temperature", "Cel", 1e3),
        Measures::Voltage => ("Voltage", "V", 1e3),
        Measures::Current => ("Current", "A", 1e3),
        Measures::Power => ("Power", "W", 1e6),
    }
}

/// A reading in Redfish's unit.
#[allow(clippy::cast_precision_loss, reason = "no sensor reads as much as 2^53 of its units")]
fn reading(own: &Sensor, value: Option<i64>) -> Option<f64> {
    let (.., scale) = unit(own.measures);
    value.map(|value| value as f64 / scale)
}

fn status(is_there: bool, health: Health) -> Value {
    let state = if is_there { "Enabled" } else { "UnavailableOffline" };
    json!({"State": state, "Health": health.word()})
}

/// The same with what is wrong there.
fn told(view: &View, mut status: Value, of: &str) -> Value {
    alerts::put_conditions(view, &mut status, of);
    status
}

fn sensor(view: &View, own: &Sensor) -> Value {
    let at = uri::sensor(&own.id);
    let (kind, units, _) = unit(own.measures);
    let mut resource = json!({
        "@odata.id": at,
        "@odata.type": "#Sensor.v1_13_0.Sensor",
        "Id": own.id,
        "Name": own.name,
        "ReadingType": kind,
        "ReadingUnits": units,
        "Reading": reading(own, own.reading),
        "Status": told(view, status(own.reading.is_some(), own.health), &at),
    });
    let mut thresholds = json!({});
    for (name, limit) in [("UpperCaution", own.high), ("UpperCritical", own.critical)] {
        if let Some(limit) = reading(own, limit) {
            super::put(&mut thresholds, name, json!({"Reading": limit}));
        }
    }
    if own.high.is_some() || own.critical.is_some() {
        super::put(&mut resource, "Thresholds", thresholds);
    }
    resource
}

/// Sensors that measure this.
fn of(view: &View, measures: Measures) -> impl Iterator<Item = &Sensor> {
    view.surroundings.sensors.iter().filter(move |own| own.measures == measures)
}

fn thermal(view: &View) -> Value {
    let sensors = of(view, Measures::Temperature).map(|own| own.health);
    let all = sensors.chain(view.surroundings.fans.iter().map(|own| own.health));
    json!({
        "@odata.id": uri::THERMAL,
        "@odata.type": "#ThermalSubsystem.v1_5_0.ThermalSubsystem",
        "Id": "ThermalSubsystem",
        "Name": "What cools the machine",
        "Status": chassis::status(all.max().unwrap_or_default()),
        "Fans": link(uri::FANS),
        "ThermalMetrics": link(uri::THERMAL_METRICS),
    })
}

fn thermal_metrics(view: &View) -> Value {
    let one = |own: &Sensor| {
        let mut copy = json!({
            "DataSourceUri": uri::sensor(&own.id),
            "Reading": reading(own, own.reading),
        });
        super::put_named(&mut copy, "DeviceName", &own.name);
        copy
    };
    let all: Vec<Value> = of(view, Measures::Temperature).map(one).collect();
    json!({
        "@odata.id": uri::THERMAL_METRICS,
        "@odata.type": "#ThermalMetrics.v1_3_3.ThermalMetrics",
        "Id": "ThermalMetrics",
        "Name": "The machine's temperatures",
        "TemperatureReadingsCelsius@odata.count": all.len(),
        "TemperatureReadingsCelsius": all,
    })
}

fn fan(view: &View, own: &Fan) -> Value {
    let at = uri::fan(&own.id);
    let mut resource = json!({
        "@odata.id": at,
        "@odata.type": "#Fan.v1_6_0.Fan",
        "Id": own.id,
        "Name": own.name,
        "Status": told(view, status(own.rpm.is_some(), own.health), &at),
        "Oem": oem::wrapped(&oem::Fan { least_rpm: own.least_rpm }),
    });
    if let Some(rpm) = own.rpm {
        super::put(&mut resource, "SpeedPercent", json!({"SpeedRPM": rpm}));
    }
    resource
}

fn power(view: &View) -> Value {
    let others = [Measures::Voltage, Measures::Current, Measures::Power];
    let sensors = others.into_iter().flat_map(|one| of(view, one)).map(|own| own.health);
    let all = sensors.chain(view.surroundings.supplies.iter().map(|own| own.health));
    json!({
        "@odata.id": uri::POWER,
        "@odata.type": "#PowerSubsystem.v1_1_4.PowerSubsystem",
        "Id": "PowerSubsystem",
        "Name": "What gives the machine power",
        "Status": chassis::status(all.max().unwrap_or_default()),
        "PowerSupplies": link(uri::SUPPLIES),
    })
}

fn supply(view: &View, own: &Supply) -> Value {
    let at = uri::supply(&own.id);
    let mut resource = json!({
        "@odata.id": at,
        "@odata.type": "#PowerSupply.v1_7_0.PowerSupply",
        "Id": own.id,
        "Name": own.name,
        "Status": told(view, status(own.is_on != Some(false), own.health), &at),
    });
    if let Some(is_on) = own.is_on {
        let input = if is_on { "Normal" } else { "LossOfInput" };
        super::put(&mut resource, "LineInputStatus", json!(input));
    }
    if own.input_microwatts.is_some() {
        super::put(&mut resource, "Metrics", link(uri::supply_metrics(&own.id)));
    }
    resource
}

#[allow(clippy::cast_precision_loss, reason = "no supply takes as much as 2^53 microwatts")]
fn supply_metrics(own: &Supply) -> Option<Value> {
    let watts = own.input_microwatts? as f64 / 1e6;
    Some(json!({
        "@odata.id": uri::supply_metrics(&own.id),
        "@odata.type": "#PowerSupplyMetrics.v1_2_0.PowerSupplyMetrics",
        "Id": "Metrics",
        "Name": format!("What {} takes", own.name),
        "Status": status(own.is_on != Some(false), own.health),
        "InputPowerWatts": {"Reading": watts},
    }))
}

#[cfg(test)]
#[path = "surroundings_tests.rs"]
mod tests;
