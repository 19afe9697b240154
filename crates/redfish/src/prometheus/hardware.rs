//! Drives as devices: health, temperature, wear.
//!
//! Invariant: what a drive does not say has no sample.

use super::text::{Text, labels};
use crate::view::{Hardware, Health, Smart, View};
use core::fmt::Display;

/// A health as a number: 0 well, 1 something should be seen to, 2 something is in danger.
pub(super) const fn number(health: Health) -> u8 {
    match health {
        Health::Ok => 0,
        Health::Warning => 1,
        Health::Critical => 2,
    }
}

/// A part of a hundred.
fn ratio(percent: u8) -> f64 {
    f64::from(percent) / 100.0
}

/// Drives with their labels.
type Drives<'v> = Vec<(String, &'v Hardware)>;

pub fn write(text: &mut Text, view: &View) {
    let drives: Drives<'_> = view
        .drives
        .iter()
        .map(|known| (labels(&[("drive", &known.id)]), known.hardware.as_ref()))
        .collect();
    let health = "How well a drive is as a device: 0 well, 1 to be seen to, 2 in danger.";
    text.gauge("palisade_drive_health", health);
    drives.iter().for_each(|(labels, own)| text.put(labels, number(own.health)));
    temperatures(text, &drives);
    life(text, &drives);
}

fn temperatures(text: &mut Text, drives: &Drives<'_>) {
    let mut each = |name, help, of: fn(&Hardware) -> Option<i32>| {
        text.gauge(name, help);
        for (labels, own) in drives {
            of(own).into_iter().for_each(|celsius| text.put(labels, celsius));
        }
    };
    let own = "A drive's temperature.";
    each("palisade_drive_temperature_celsius", own, Hardware::celsius);
    let warning = "From this temperature a drive warns.";
    each("palisade_drive_temperature_warning_celsius", warning, |own| own.warning_celsius);
    let critical = "From this temperature a drive acts to protect itself.";
    each("palisade_drive_temperature_critical_celsius", critical, |own| own.critical_celsius);
}

/// What the log of a drive's life says.
fn life(text: &mut Text, drives: &Drives<'_>) {
    let logs = || drives.iter().filter_map(|(labels, own)| Some((labels, own.smart.as_ref()?)));
    let wear = "Life of a drive that is used: 1 is all that it was made for, and it may be more.";
    text.gauge("palisade_drive_wear_ratio", wear);
    logs().for_each(|(labels, smart)| text.put(labels, ratio(smart.percentage_used)));
    text.gauge("palisade_drive_spare_ratio", "Spare capacity of a drive that is left.");
    logs().for_each(|(labels, smart)| text.put(labels, ratio(smart.available_spare_percent)));
    let threshold = "Below this spare capacity a drive warns.";
    text.gauge("palisade_drive_spare_threshold_ratio", threshold);
    logs().for_each(|(labels, smart)| text.put(labels, ratio(smart.spare_threshold_percent)));
    let errors = "Errors of a drive's media, or of its data's integrity, over its life.";
    count(text, logs(), "palisade_drive_media_errors_total", errors, |own| own.media_errors);
    let entries = "Entries in a drive's error log over its life.";
    count(text, logs(), "palisade_drive_error_log_entries_total", entries, |own| {
        own.error_log_entries
    });
    let on = "Time that a drive was on over its life, which it counts in hours.";
    count(text, logs(), "palisade_drive_power_on_seconds_total", on, |own| {
        own.power_on_hours.saturating_mul(3600)
    });
    let cycles = "How often a drive was powered on over its life.";
    count(text, logs(), "palisade_drive_power_cycles_total", cycles, |own| own.power_cycles);
    let unsafe_ones = "How often a drive lost power without notice over its life.";
    count(text, logs(), "palisade_drive_unsafe_shutdowns_total", unsafe_ones, |own| {
        own.unsafe_shutdowns
    });
    let bytes = "Bytes read from a drive, and written to it, over its life.";
    text.counter("palisade_drive_lifetime_bytes_total", bytes);
    for (labels, smart) in logs() {
        text.with(labels, ("op", "read"), smart.read_bytes);
        text.with(labels, ("op", "write"), smart.written_bytes);
    }
    let worn = "When a drive will be worn out at the rate of the past, in seconds since 1970.";
    text.gauge("palisade_drive_worn_out_timestamp_seconds", worn);
    for (labels, own) in drives {
        own.worn_out.into_iter().for_each(|at| text.put(labels, at));
    }
}

fn count<'v, T: Display>(
    text: &mut Text,
    logs: impl Iterator<Item = (&'v String, &'v Smart)>,
    name: &'static str,
    help: &'static str,
    of: fn(&Smart) -> T,
) {
    text.counter(name, help);
    logs.for_each(|(labels, smart)| text.put(labels, of(smart)));
}
