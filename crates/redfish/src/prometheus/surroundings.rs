//! What is around the drives: sensors, fans, power supplies, network ports.
//!
//! Invariant: what nobody reads has no sample.

use super::hardware::number;
use super::text::{Text, labels, truth};
use crate::view::{Fan, Health, Measures, NetworkPort, Sensor, Supply, View};

pub fn write(text: &mut Text, view: &View) {
    let own = &view.surroundings;
    sensors(text, &own.sensors);
    fans(text, &own.fans);
    supplies(text, &own.supplies);
    ports(text, &own.ports);
}

/// How well things of a kind are.
fn healths<'v>(
    text: &mut Text,
    (name, help): (&'static str, &'static str),
    all: impl Iterator<Item = (&'v String, Health)>,
) {
    text.gauge(name, help);
    all.for_each(|(labels, health)| text.put(labels, number(health)));
}

fn sensors(text: &mut Text, all: &[Sensor]) {
    let all: Vec<(String, &Sensor)> =
        all.iter().map(|own| (labels(&[("sensor", &own.id), ("name", &own.name)]), own)).collect();
    let families = [
        (Measures::Temperature, "palisade_sensor_temperature_celsius", "A temperature.", 1e3),
        (Measures::Voltage, "palisade_sensor_volts", "A voltage.", 1e3),
        (Measures::Current, "palisade_sensor_amperes", "A current.", 1e3),
        (Measures::Power, "palisade_sensor_watts", "Power that is taken.", 1e6),
    ];
    for (measures, name, help, scale) in families {
        text.gauge(name, help);
        for (labels, own) in all.iter().filter(|(_, own)| own.measures == measures) {
            own.reading.into_iter().for_each(|value| text.put(labels, scaled(value, scale)));
        }
    }
    let health = "How well what a sensor measures is: 0 well, 1 to be seen to, 2 in danger.";
    let told = all.iter().map(|(labels, own)| (labels, own.health));
    healths(text, ("palisade_sensor_health", health), told);
}

/// A reading in the unit of which so many of ours are one.
#[allow(clippy::cast_precision_loss, reason = "no sensor reads as much as 2^53 of its units")]
fn scaled(value: i64, scale: f64) -> f64 {
    value as f64 / scale
}

fn fans(text: &mut Text, all: &[Fan]) {
    let all: Vec<(String, &Fan)> =
        all.iter().map(|own| (labels(&[("fan", &own.id), ("name", &own.name)]), own)).collect();
    text.gauge("palisade_fan_speed_rpm", "Turns of a fan a minute.");
    for (labels, own) in &all {
        own.rpm.into_iter().for_each(|rpm| text.put(labels, rpm));
    }
    text.gauge("palisade_fan_least_speed_rpm", "Turns a minute below which a fan fails.");
    for (labels, own) in &all {
        own.least_rpm.into_iter().for_each(|rpm| text.put(labels, rpm));
    }
    let health = "How well a fan is: 0 well, 1 to be seen to, 2 in danger.";
    let told = all.iter().map(|(labels, own)| (labels, own.health));
    healths(text, ("palisade_fan_health", health), told);
}

#[allow(clippy::cast_precision_loss, reason = "no supply takes as much as 2^53 microwatts")]
fn supplies(text: &mut Text, all: &[Supply]) {
    let all: Vec<(String, &Supply)> =
        all.iter().map(|own| (labels(&[("supply", &own.id), ("name", &own.name)]), own)).collect();
    text.gauge("palisade_supply_on", "Whether a power supply gives power.");
    for (labels, own) in &all {
        own.is_on.into_iter().for_each(|is_on| text.put(labels, truth(is_on)));
    }
    text.gauge("palisade_supply_input_watts", "What a power supply takes.");
    for (labels, own) in &all {
        own.input_microwatts.into_iter().for_each(|own| text.put(labels, own as f64 / 1e6));
    }
    let health = "How well a power supply is: 0 well, 1 to be seen to, 2 in danger.";
    let told = all.iter().map(|(labels, own)| (labels, own.health));
    healths(text, ("palisade_supply_health", health), told);
}

fn ports(text: &mut Text, all: &[NetworkPort]) {
    let all: Vec<(String, &NetworkPort)> =
        all.iter().map(|own| (labels(&[("port", &own.id)]), own)).collect();
    text.gauge("palisade_port_link", "Whether a network port has a link.");
    all.iter().for_each(|(labels, own)| text.put(labels, truth(own.has_link)));
    text.gauge("palisade_port_enabled", "Whether a network port is switched on.");
    all.iter().for_each(|(labels, own)| text.put(labels, truth(own.is_enabled)));
    let speed = "What a network port sends or receives in a second at most.";
    text.gauge("palisade_port_speed_bytes", speed);
    for (labels, own) in &all {
        let bytes = own.megabits.map(|megabits| u64::from(megabits) * 125_000);
        bytes.into_iter().for_each(|bytes| text.put(labels, bytes));
    }
    text.gauge("palisade_port_mtu_bytes", "The most bytes of a packet of a network port.");
    all.iter().for_each(|(labels, own)| text.put(labels, own.mtu));
}
