//! The way back of what is known of drives as devices, and of what is around them.

use super::{lacks, number, optional, text};
use crate::dates;
use crate::messages::DRIVE_UNWELL;
use crate::oem;
use crate::service::{DATA_UNIT, unit};
use crate::view::{
    DrivePlace, Enclosure, EnclosureSlot, Error, Fan, Hardware, Health, Measures, Module,
    NetworkPort, Reason, Sensor, Smart, Supply, Surroundings,
};
use core::net::Ipv4Addr;
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
    const CRITICAL_WARNING: &str = "/Oem/Palisade/CriticalWarning";
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
        critical_warning: own.critical_warning.ok_or_else(|| lacks(metrics, CRITICAL_WARNING))?,
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

/// What clients fetch to know what is around the drives: collections with their members, and of
/// supplies with their metrics (query option `$expand=.($levels=2)`).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Around {
    /// `Chassis`, with members.
    pub chassis: Value,
    /// `Sensors` of the machine's housing, with members.
    pub sensors: Value,
    /// `Fans` of the machine's housing, with members.
    pub fans: Value,
    /// `PowerSupplies` of the machine's housing, with members and their metrics.
    pub supplies: Value,
    /// `EthernetInterfaces` of the machine, with members.
    pub ports: Value,
}

/// What is around the drives.
///
/// # Errors
///
/// It is not what this service would say.
pub fn surroundings(around: &Around) -> Result<Surroundings, Error> {
    Ok(Surroundings {
        enclosures: enclosures(&around.chassis)?,
        sensors: super::all(&around.sensors, sensor)?,
        fans: super::all(&around.fans, fan)?,
        supplies: super::all(&around.supplies, supply)?,
        ports: super::all(&around.ports, port)?,
    })
}

/// The enclosures, of `Chassis` with members.
///
/// # Errors
///
/// It is not what this service would say.
pub fn enclosures(chassis: &Value) -> Result<Vec<Enclosure>, Error> {
    let chassis = super::contents(chassis)?;
    let is_enclosure = |own: &&Value| own.pointer("/Oem/Palisade").is_some();
    chassis.iter().filter(is_enclosure).map(enclosure).collect()
}

fn enclosure(resource: &Value) -> Result<Enclosure, Error> {
    let own: oem::Chassis = oem::of(resource)?;
    let drive = |link: &oem::Link| Some(crate::routes::find(&link.id)?.id(0).to_owned());
    let slot = |slot: oem::EnclosureSlot| EnclosureSlot {
        drive: slot.drive.as_ref().and_then(drive),
        slot: slot.slot,
        located: slot.location_indicator_active,
    };
    let module = |own: oem::Module| Module {
        name: own.name,
        ports: own.ports.into_iter().map(|port| port.name).collect(),
    };
    Ok(Enclosure {
        id: text(resource, "/Id")?,
        name: text(resource, "/Name")?,
        model: optional(resource, "/Model"),
        columns: own.columns,
        slots: own.slots.into_iter().map(slot).collect(),
        modules: own.modules.into_iter().map(module).collect(),
        shelf: own.shelf.map(Into::into),
    })
}

fn health(resource: &Value) -> Result<Health, Error> {
    const HEALTH: &str = "/Status/Health";
    Health::of(&text(resource, HEALTH)?).ok_or_else(|| lacks(resource, HEALTH))
}

/// A number of Redfish's unit in ours, of which so many are one.
#[allow(clippy::cast_possible_truncation, reason = "a conversion of floating point saturates")]
fn scaled(resource: &Value, pointer: &str, scale: f64) -> Option<i64> {
    let value = resource.pointer(pointer).and_then(Value::as_f64)?;
    Some((value * scale).round() as i64)
}

fn sensor(resource: &Value) -> Result<Sensor, Error> {
    let word = text(resource, "/ReadingType")?;
    let all = [Measures::Temperature, Measures::Voltage, Measures::Current, Measures::Power];
    let measures = all.into_iter().find(|one| unit(*one).0 == word);
    let measures = measures.ok_or_else(|| lacks(resource, "/ReadingType"))?;
    let at = |pointer: &str| scaled(resource, pointer, unit(measures).2);
    Ok(Sensor {
        id: text(resource, "/Id")?,
        name: text(resource, "/Name")?,
        measures,
        reading: at("/Reading"),
        high: at("/Thresholds/UpperCaution/Reading"),
        critical: at("/Thresholds/UpperCritical/Reading"),
        health: health(resource)?,
    })
}

fn fan(resource: &Value) -> Result<Fan, Error> {
    let own: oem::Fan = oem::of(resource)?;
    let rpm = resource.pointer("/SpeedPercent/SpeedRPM").and_then(Value::as_u64);
    Ok(Fan {
        id: text(resource, "/Id")?,
        name: text(resource, "/Name")?,
        rpm: rpm.and_then(|rpm| u32::try_from(rpm).ok()),
        least_rpm: own.least_rpm,
        health: health(resource)?,
    })
}

fn supply(resource: &Value) -> Result<Supply, Error> {
    let input = scaled(resource, "/Metrics/InputPowerWatts/Reading", 1e6);
    Ok(Supply {
        id: text(resource, "/Id")?,
        name: text(resource, "/Name")?,
        is_on: optional(resource, "/LineInputStatus").map(|word| word == "Normal"),
        input_microwatts: input.and_then(|input| u64::try_from(input).ok()),
        health: health(resource)?,
    })
}

fn port(resource: &Value) -> Result<NetworkPort, Error> {
    let flag = |name: &str| resource.get(name).and_then(Value::as_bool);
    let small = |name: &str| {
        let number = resource.get(name).and_then(Value::as_u64);
        number.and_then(|number| u32::try_from(number).ok())
    };
    let each = |name: &str| resource.get(name).and_then(Value::as_array).into_iter().flatten();
    let old = each("IPv4Addresses").map(|own| {
        let mask = text(own, "/SubnetMask")?;
        let mask: Ipv4Addr = mask.parse().map_err(|_| lacks(own, "/SubnetMask"))?;
        Ok(format!("{}/{}", text(own, "/Address")?, mask.to_bits().count_ones()))
    });
    let new = each("IPv6Addresses")
        .map(|own| Ok(format!("{}/{}", text(own, "/Address")?, number(own, "/PrefixLength")?)));
    Ok(NetworkPort {
        id: text(resource, "/Id")?,
        mac: optional(resource, "/MACAddress"),
        has_link: optional(resource, "/LinkStatus").as_deref() == Some("LinkUp"),
        is_enabled: flag("InterfaceEnabled").ok_or_else(|| lacks(resource, "/InterfaceEnabled"))?,
        megabits: small("SpeedMbps"),
        full_duplex: flag("FullDuplex"),
        mtu: small("MTUSize").ok_or_else(|| lacks(resource, "/MTUSize"))?,
        addresses: old.chain(new).collect::<Result<_, Error>>()?,
    })
}
