//! `palisade drive show`: all that is known of one drive.
//!
//! Invariant: what nobody knows has no line.

use super::power::watts;
use crate::client::Client;
use crate::named;
use crate::output::{Output, Problem, health, printable, state};
use redfish::dates;
use redfish::read;
use redfish::service::uri;
use redfish::view::{self, Answer, DriveState, Hardware, KnownDrive, PcieLink, Reason, Smart};
use serde::Serialize;
use std::path::Path;
use units::format_size;

/// A drive, as it is printed.
#[derive(Debug, Serialize)]
struct Shown {
    /// Names it for ever.
    id: String,
    /// How well it is.
    health: view::Health,
    /// Its World Wide Identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    wwid: Option<String>,
    /// Its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// What is known of it.
    #[serde(flatten)]
    drive: view::Drive,
    /// It as a device.
    hardware: Hardware,
}

impl From<KnownDrive> for Shown {
    fn from(known: KnownDrive) -> Self {
        let health = known.health();
        let KnownDrive { id, wwid, model, drive, hardware, .. } = known;
        Self { id, health, wwid, model, drive, hardware: hardware.as_ref().clone() }
    }
}

/// Shows a drive, with what it says of its life.
pub async fn run(name: &Path, output: Output, client: &Client) -> Result<(), Problem> {
    let known = named::one(client, name).await?;
    let whole = client.get(&format!("{}?$expand=.", uri::drive(&known.id))).await?;
    output.print(&Answer::new(Shown::from(read::drive(&whole)?)), text);
    Ok(())
}

/// Lines of what there is: a key and what it says.
#[derive(Default)]
struct Lines(Vec<[String; 2]>);

impl Lines {
    fn put(&mut self, key: &str, value: impl Into<String>) {
        self.0.push([key.to_owned(), printable(&value.into())]);
    }

    fn may(&mut self, key: &str, value: Option<impl Into<String>>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    /// A line that is coloured already.
    fn coloured(&mut self, key: &str, value: String) {
        self.0.push([key.to_owned(), value]);
    }

    fn text(&self) -> String {
        let line = |[key, value]: &[String; 2]| format!("{key:<14}{value}").trim_end().to_owned();
        self.0.iter().map(line).collect::<Vec<_>>().join("\n") + "\n"
    }
}

/// It for people.
fn text(shown: &Shown) -> String {
    let Shown { drive, hardware, .. } = shown;
    let mut lines = Lines::default();
    lines.put("drive", &drive.path);
    lines.coloured("health", health(shown.health));
    for reason in &hardware.reasons {
        let Reason { what, action, since, .. } = reason;
        lines.coloured("", format!("{}: {}", health(reason.health), printable(what)));
        lines.put("", format!("since {}; {action}", dates::text(*since)));
    }
    lines.may("problem", drive.problem.as_deref());
    lines.may("model", shown.model.as_deref());
    lines.may("serial", Some(&drive.serial[..]).filter(|serial| !serial.is_empty()));
    lines.may("firmware", hardware.firmware.as_deref());
    lines.put("id", &shown.id);
    lines.may("wwid", shown.wwid.as_deref());
    let blocks = format!("{} in blocks of {} bytes", format_size(drive.bytes), drive.block_bytes);
    lines.put("size", format!("{blocks} ({} bytes)", drive.bytes));
    lines.coloured("state", state_text(drive));
    place(&mut lines, hardware);
    life(&mut lines, hardware);
    if let Some(power) = &hardware.power {
        let most = power.states.iter().find(|own| own.state == power.state);
        let most = most.and_then(|own| own.max_milliwatts);
        let most = most.map_or(String::new(), |most| format!(", at most {}", watts(most)));
        let last = power.states.iter().map(|own| own.state).max().unwrap_or(power.state);
        lines.put("power state", format!("{} of 0 to {last}{most}", power.state));
    }
    lines.may("asked", hardware.asked.map(dates::text));
    lines.may("not known", hardware.problem.as_deref());
    lines.text()
}

/// What the daemon makes of it, with its array and slot or what it holds.
fn state_text(drive: &view::Drive) -> String {
    let word = state(&drive.state);
    let slot = drive.slot.map_or(String::new(), |slot| format!(" slot {slot}"));
    match (&drive.array, &drive.signature) {
        (Some(array), _) if drive.state == DriveState::InUse => {
            format!("{word}: array {}{slot}", printable(array))
        }
        (Some(array), _) => format!("{word}: record of array {}{slot}", printable(array)),
        (None, Some(signature)) => format!("{word}: {}", printable(signature)),
        (None, None) => word,
    }
}

/// How it is reached, and where it is.
fn place(lines: &mut Lines, hardware: &Hardware) {
    let parts = [
        hardware.kind.as_deref().map(|kind| match (kind, hardware.transport.as_deref()) {
            ("nvme", Some("pcie")) => "NVMe over PCI Express".to_owned(),
            ("nvme", Some(transport)) => format!("NVMe over {}", transport.to_uppercase()),
            ("nvme", None) => "NVMe".to_owned(),
            (kind, Some(network)) => format!("{kind} over {}", network.to_uppercase()),
            (kind, None) => kind.to_owned(),
        }),
        hardware.controller.clone(),
        hardware.namespace.map(|number| format!("namespace {number}")),
        hardware.bus_address.as_ref().map(|address| format!("at {address}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    lines.may("device", Some(parts.join(", ")).filter(|text| !text.is_empty()));
    lines.may("link", hardware.link.as_ref().map(link));
    if let Some(place) = &hardware.place {
        lines.put("place", format!("enclosure {}, slot {}", place.enclosure, place.slot));
    }
    lines.may("indicator", hardware.located.map(|on| if on { "on" } else { "off" }));
}

/// A link, and what it could be where that is more.
fn link(link: &PcieLink) -> String {
    let speed = |lanes: u8, each: u32| {
        let (whole, tenths) = (each / 1000, each % 1000 / 100);
        let each = if tenths == 0 { whole.to_string() } else { format!("{whole}.{tenths}") };
        format!("{lanes} lanes at {each} GT/s")
    };
    let own = speed(link.lanes, link.megatransfers);
    match link.is_less() {
        true => format!("{own}, of {}", speed(link.max_lanes, link.max_megatransfers)),
        false => own,
    }
}

/// Temperature, wear, and what it has done.
fn life(lines: &mut Lines, hardware: &Hardware) {
    lines.may("temperature", temperature(hardware));
    let Some(smart) = &hardware.smart else { return };
    let worn = hardware.worn_out.map(dates::text);
    let worn = worn.as_deref().and_then(|text| text.split_once('T'));
    let worn = worn.map_or(String::new(), |(day, _)| format!("; worn out about {day}"));
    lines.put("life used", format!("{}%{worn}", smart.percentage_used));
    let Smart { available_spare_percent, spare_threshold_percent, .. } = smart;
    lines.put(
        "spare",
        format!("{available_spare_percent}% (warns below {spare_threshold_percent}%)"),
    );
    lines.put("media errors", smart.media_errors.to_string());
    lines.put("error log", format!("{} entries", smart.error_log_entries));
    let (cycles, unsafe_ones) = (smart.power_cycles, smart.unsafe_shutdowns);
    let on = format!("{} hours, {cycles} times on", smart.power_on_hours);
    lines.put("powered", format!("{on}, {unsafe_ones} times off without notice"));
    lines.put("read", amount(smart.read_bytes, smart.read_commands));
    lines.put("written", amount(smart.written_bytes, smart.write_commands));
    lines.put("busy", format!("{} minutes", smart.busy_minutes));
}

/// Bytes and commands.
fn amount(bytes: u128, commands: u128) -> String {
    let size = format_size(u64::try_from(bytes).unwrap_or(u64::MAX));
    format!("{size} by {commands} commands")
}

/// How warm it is, and from where it warns.
fn temperature(hardware: &Hardware) -> Option<String> {
    let mut text = format!("{} °C", hardware.celsius()?);
    let limits = [
        hardware.warning_celsius.map(|limit| format!("warns from {limit} °C")),
        hardware.critical_celsius.map(|limit| format!("acts from {limit} °C")),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    if !limits.is_empty() {
        text.push_str(&format!(" ({})", limits.join(", ")));
    }
    let Some(smart) = &hardware.smart else { return Some(text) };
    let sensors = smart.sensors_celsius.iter().flatten().map(|one| format!("{one} °C"));
    let sensors: Vec<String> = sensors.collect();
    if !sensors.is_empty() {
        text.push_str(&format!("; sensors {}", sensors.join(", ")));
    }
    let (warm, hot) = (smart.warning_minutes, smart.critical_minutes);
    if warm > 0 || hot > 0 {
        text.push_str(&format!("; {warm} minutes above the first, {hot} above the second"));
    }
    Some(text)
}

#[cfg(test)]
#[path = "show_tests.rs"]
mod tests;
