//! The way back of what is known of drives as devices.

use super::{lacks, number, optional, text};
use crate::dates;
use crate::messages::DRIVE_UNWELL;
use crate::oem;
use crate::service::DATA_UNIT;
use crate::view::{DrivePlace, Error, Hardware, Health, Reason, Smart};
use serde_json::Value;

/// A drive as a device, of its resource and of what that has of our own.
pub(super) fn of_drive(resource: &Value, own: oem::Hardware) -> Result<Hardware, Error> {
    let place = own.enclosure.map(|enclosure| -> Result<DrivePlace, Error> {
        let slot = text(resource, "/PhysicalLocation/PartLocation/ServiceLabel")?;
        Ok(DrivePlace { enclosure, slot })
    });
    let moment = |text: Option<String>| text.as_deref().and_then(dates::seconds);
    let metrics = resource.get("Metrics").filter(|metrics| metrics.get("NVMeSMART").is_some());
    Ok(Hardware {
        kind: own.kind,
        transport: own.transport,
        controller: own.controller,
        namespace: own.namespace,
        firmware: optional(resource, "/FirmwareVersion"),
        bus_address: own.bus_address,
        link: own.link.map(Into::into),
        place: place.transpose()?,
        located: resource.get("LocationIndicatorActive").and_then(Value::as_bool),
        health: own.health.into(),
        reasons: reasons(resource)?,
        smart: metrics.map(smart).transpose()?,
        sensor_celsius: own.sensor_celsius,
        warning_celsius: own.warning_celsius,
        critical_celsius: own.critical_celsius,
        power: own.power.map(Into::into),
        worn_out: moment(own.worn_out_time),
        asked: moment(own.asked_time),
        problem: own.problem,
    })
}

/// Why a drive is not well: its conditions that are of a health rule.
fn reasons(resource: &Value) -> Result<Vec<Reason>, Error> {
    let all = resource.pointer("/Status/Conditions").and_then(Value::as_array);
    let is_own = |own: &&Value| optional(own, "/MessageId").as_deref() == Some(&DRIVE_UNWELL.id());
    all.into_iter().flatten().filter(is_own).map(reason).collect()
}

fn reason(condition: &Value) -> Result<Reason, Error> {
    let lacks = |pointer: &str| lacks(condition, &format!("/Status/Conditions{pointer}"));
    let word = text(condition, "/Severity")?;
    Ok(Reason {
        rule: text(condition, "/MessageArgs/2")?,
        health: Health::of(&word).ok_or_else(|| lacks("/Severity"))?,
        what: text(condition, "/MessageArgs/1")?,
        action: text(condition, "/Resolution")?,
        since: super::moment(condition, "/Timestamp")?,
    })
}

/// What a drive says of its life, of its `DriveMetrics`.
///
/// # Errors
///
/// It is not what this service would say.
pub fn smart(metrics: &Value) -> Result<Smart, Error> {
    let own: oem::DriveMetrics = oem::of(metrics)?;
    let at = |name: &str| format!("/NVMeSMART/{name}");
    let count = |name: &str| number(metrics, &at(name)).map(u128::from);
    let small = |name: &str| {
        u8::try_from(number(metrics, &at(name))?).map_err(|_| lacks(metrics, &at(name)))
    };
    let minutes = |name: &str| {
        u32::try_from(number(metrics, &at(name))?).map_err(|_| lacks(metrics, &at(name)))
    };
    let celsius = |value: &Value| value.as_i64().and_then(|value| i32::try_from(value).ok());
    let sensors = metrics.pointer(&at("TemperatureSensorsCelsius")).and_then(Value::as_array);
    Ok(Smart {
        critical_warning: own.critical_warning,
        celsius: metrics.pointer(&at("CompositeTemperatureCelsius")).and_then(celsius),
        available_spare_percent: small("AvailableSparePercent")?,
        spare_threshold_percent: small("AvailableSpareThresholdPercent")?,
        percentage_used: small("PercentageUsed")?,
        read_bytes: count("DataUnitsRead")? * DATA_UNIT,
        written_bytes: count("DataUnitsWritten")? * DATA_UNIT,
        read_commands: count("HostReadCommands")?,
        write_commands: count("HostWriteCommands")?,
        busy_minutes: count("ControllerBusyTimeMinutes")?,
        power_cycles: count("PowerCycles")?,
        power_on_hours: count("PowerOnHours")?,
        unsafe_shutdowns: count("UnsafeShutdowns")?,
        media_errors: count("MediaAndDataIntegrityErrors")?,
        error_log_entries: count("NumberOfErrorInformationLogEntries")?,
        warning_minutes: minutes("WarningCompositeTempTimeMinutes")?,
        critical_minutes: minutes("CriticalCompositeTempTimeMinutes")?,
        sensors_celsius: sensors.into_iter().flatten().map(celsius).collect(),
    })
}
