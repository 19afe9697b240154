//! What drives say of their life, and how long they take: `DriveMetrics`.
//!
//! Invariant: a number that is larger than the schemas' integers can be is the largest of these.

use super::uri;
use crate::oem;
use crate::view::{DriveState, KnownDrive, Smart, View};
use serde_json::{Value, json};

/// Bytes of a data unit (NVMe Base 2.0, figure 207: thousands of 512 bytes).
pub(crate) const DATA_UNIT: u128 = 512_000;

/// The life of a drive, if the drive tells, and the times of its requests, if it is open.
pub(super) fn metrics(view: &View, id: &str) -> Option<Value> {
    let known = view.drive(id).filter(|known| has_metrics(view, known))?;
    let (smart, times) = (known.hardware.smart.as_ref(), view.counters.drive(id));
    let mut resource = json!({
        "@odata.id": uri::drive_metrics(id),
        "@odata.type": "#DriveMetrics.v1_4_0.DriveMetrics",
        "Id": "Metrics",
        "Name": format!("Metrics of drive {}", known.drive.path),
        "Oem": oem::wrapped(&oem::DriveMetrics {
            critical_warning: smart.map(|smart| smart.critical_warning),
            reads: times.map(|times| (&times.reads).into()),
            writes: times.map(|times| (&times.writes).into()),
        }),
    });
    if let Some(smart) = smart {
        super::put(&mut resource, "PowerOnHours", json!(whole(smart.power_on_hours)));
        super::put(&mut resource, "PowerCyclesLifetime", json!(whole(smart.power_cycles)));
        super::put(&mut resource, "ReadIOKiBytes", json!(whole(smart.read_bytes / 1024)));
        super::put(&mut resource, "WriteIOKiBytes", json!(whole(smart.written_bytes / 1024)));
        super::put(&mut resource, "NVMeSMART", nvme(smart));
    }
    Some(resource)
}

/// Whether there is something to say, or will be: what an array uses is open, though nothing may
/// have been counted yet.
pub(super) fn has_metrics(view: &View, known: &KnownDrive) -> bool {
    let is_open = || view.counters.drive(&known.id).is_some();
    known.hardware.smart.is_some() || known.drive.state == DriveState::InUse || is_open()
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
