//! What drives say of their life: `DriveMetrics`.
//!
//! Invariant: a number that is larger than the schemas' integers can be is the largest of these.

use super::uri;
use crate::oem;
use crate::view::{Smart, View};
use serde_json::{Value, json};

/// Bytes of a data unit (NVMe Base 2.0, figure 207: thousands of 512 bytes).
pub(crate) const DATA_UNIT: u128 = 512_000;

/// The life of a drive, if the drive tells.
pub(super) fn metrics(view: &View, id: &str) -> Option<Value> {
    let known = view.drive(id)?;
    let smart = known.hardware.smart.as_ref()?;
    Some(json!({
        "@odata.id": uri::drive_metrics(id),
        "@odata.type": "#DriveMetrics.v1_4_0.DriveMetrics",
        "Id": "Metrics",
        "Name": format!("What drive {} says of its life", known.drive.path),
        "PowerOnHours": whole(smart.power_on_hours),
        "PowerCyclesLifetime": whole(smart.power_cycles),
        "ReadIOKiBytes": whole(smart.read_bytes / 1024),
        "WriteIOKiBytes": whole(smart.written_bytes / 1024),
        "NVMeSMART": nvme(smart),
        "Oem": oem::wrapped(&oem::DriveMetrics { critical_warning: smart.critical_warning }),
    }))
}

/// The log (DSP0268, `NVMeSMARTMetrics`).
fn nvme(smart: &Smart) -> Value {
    let warns = |bit: u8| smart.critical_warning >> bit & 1 == 1;
    json!({
        "CriticalWarnings": {
            "SpareCapacityWornOut": warns(0),
            "TemperatureThresholdCondition": warns(1),
            "OverallSubsystemDegraded": warns(2),
            "MediaInReadOnly": warns(3),
            "PowerBackupFailed": warns(4),
            "PMRUnreliable": warns(5),
        },
        "CompositeTemperatureCelsius": smart.celsius,
        "AvailableSparePercent": smart.available_spare_percent.min(100),
        "AvailableSpareThresholdPercent": smart.spare_threshold_percent.min(100),
        "PercentageUsed": smart.percentage_used,
        "DataUnitsRead": whole(smart.read_bytes / DATA_UNIT),
        "DataUnitsWritten": whole(smart.written_bytes / DATA_UNIT),
        "HostReadCommands": whole(smart.read_commands),
        "HostWriteCommands": whole(smart.write_commands),
        "ControllerBusyTimeMinutes": whole(smart.busy_minutes),
        "PowerCycles": whole(smart.power_cycles),
        "PowerOnHours": whole(smart.power_on_hours),
        "UnsafeShutdowns": whole(smart.unsafe_shutdowns),
        "MediaAndDataIntegrityErrors": whole(smart.media_errors),
        "NumberOfErrorInformationLogEntries": whole(smart.error_log_entries),
        "WarningCompositeTempTimeMinutes": smart.warning_minutes,
        "CriticalCompositeTempTimeMinutes": smart.critical_minutes,
        "TemperatureSensorsCelsius": smart.sensors_celsius,
    })
}

/// A count as a number of JSON that an `Edm.Int64` holds.
fn whole(count: u128) -> u64 {
    const MOST: u64 = i64::MAX.unsigned_abs();
    u64::try_from(count).map_or(MOST, |count| count.min(MOST))
}
