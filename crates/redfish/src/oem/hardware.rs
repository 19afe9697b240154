//! What drives have as devices beside what Redfish says of them: on the way to and from
//! [`crate::view`].
//!
//! Invariant: a standard property that says the same is not doubled. A drive's firmware, slot and
//! indicator, and the reasons for its health, are read from there.

use super::{Extension, Health, Link, Shelf};
use crate::counters::Latency;
use crate::dates;
use crate::view;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A drive as a device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Hardware {
    /// The kind of device: `nvme`, `scsi`, `virtio`, `loop` and so on; absent for a file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kind: Option<String>,
    /// How an NVMe drive is reached: `pcie`, `tcp`, `rdma`, `fc`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub transport: Option<String>,
    /// The kernel's name of its NVMe controller.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub controller: Option<String>,
    /// The number of its namespace.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub namespace: Option<u32>,
    /// Its address on the bus.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bus_address: Option<String>,
    /// Its link.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub link: Option<PcieLink>,
    /// The identifier of the enclosure in which it is; its slot there is the location's
    /// `ServiceLabel`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub enclosure: Option<String>,
    /// How well it is as a device. `Status.Health` is worse where the daemon can't use it.
    pub health: Health,
    /// Its temperature by the kernel's sensor, in degrees Celsius, where its log can't be read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sensor_celsius: Option<i32>,
    /// From this temperature it warns, in degrees Celsius.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub warning_celsius: Option<i32>,
    /// From this temperature it acts to protect itself, in degrees Celsius.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub critical_celsius: Option<i32>,
    /// Its power states; absent where it was not asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub power: Option<DrivePower>,
    /// When it will be worn out, at the rate of the past; absent while nobody can say.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(extend("format" = "date-time"))]
    pub worn_out_time: Option<String>,
    /// When it was last asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(extend("format" = "date-time"))]
    pub asked_time: Option<String>,
    /// Why it does not tell more of itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<String>,
}

impl Default for Hardware {
    fn default() -> Self {
        Self::from(&view::Hardware::default())
    }
}

impl From<&view::Hardware> for Hardware {
    fn from(own: &view::Hardware) -> Self {
        Self {
            kind: own.kind.clone(),
            transport: own.transport.clone(),
            controller: own.controller.clone(),
            namespace: own.namespace,
            bus_address: own.bus_address.clone(),
            link: own.link.map(PcieLink::from),
            enclosure: own.place.as_ref().map(|place| place.enclosure.clone()),
            health: own.health.into(),
            sensor_celsius: own.sensor_celsius,
            warning_celsius: own.warning_celsius,
            critical_celsius: own.critical_celsius,
            power: own.power.as_ref().map(DrivePower::from),
            worn_out_time: own.worn_out.map(dates::text),
            asked_time: own.asked.map(dates::text),
            problem: own.problem.clone(),
        }
    }
}

/// A link of PCI Express.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct PcieLink {
    /// Lanes in use.
    pub lanes: u8,
    /// Lanes that device and slot could use.
    pub max_lanes: u8,
    /// Megatransfers per second and lane.
    pub megatransfers: u32,
    /// Megatransfers per second and lane that could be.
    pub max_megatransfers: u32,
}

impl From<view::PcieLink> for PcieLink {
    fn from(own: view::PcieLink) -> Self {
        let view::PcieLink { lanes, max_lanes, megatransfers, max_megatransfers } = own;
        Self { lanes, max_lanes, megatransfers, max_megatransfers }
    }
}

impl From<PcieLink> for view::PcieLink {
    fn from(own: PcieLink) -> Self {
        let PcieLink { lanes, max_lanes, megatransfers, max_megatransfers } = own;
        Self { lanes, max_lanes, megatransfers, max_megatransfers }
    }
}

/// A drive's power states.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct DrivePower {
    /// The number of the state that it is in.
    pub current_state: u8,
    /// Those that it has, from 0.
    pub states: Vec<DrivePowerState>,
}

impl From<&view::DrivePower> for DrivePower {
    fn from(own: &view::DrivePower) -> Self {
        let states = own.states.iter().map(DrivePowerState::from).collect();
        Self { current_state: own.state, states }
    }
}

impl From<DrivePower> for view::DrivePower {
    fn from(own: DrivePower) -> Self {
        let states = own.states.into_iter().map(Into::into).collect();
        Self { state: own.current_state, states }
    }
}

/// One of a drive's power states.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct DrivePowerState {
    /// Its number.
    pub number: u8,
    /// The most that the drive takes in it, in milliwatts; absent where it does not say.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_milliwatts: Option<u32>,
    /// Whether the drive serves requests in it.
    pub operational: bool,
    /// Microseconds to enter it.
    pub enter_microseconds: u32,
    /// Microseconds to leave it.
    pub exit_microseconds: u32,
}

impl From<&view::DrivePowerState> for DrivePowerState {
    fn from(own: &view::DrivePowerState) -> Self {
        Self {
            number: own.state,
            max_milliwatts: own.max_milliwatts,
            operational: own.serves,
            enter_microseconds: own.enter_us,
            exit_microseconds: own.exit_us,
        }
    }
}

impl From<DrivePowerState> for view::DrivePowerState {
    fn from(own: DrivePowerState) -> Self {
        Self {
            state: own.number,
            max_milliwatts: own.max_milliwatts,
            serves: own.operational,
            enter_us: own.enter_microseconds,
            exit_us: own.exit_microseconds,
        }
    }
}

/// What a drive's metrics have beside what Redfish says of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct DriveMetrics {
    /// The bits of *critical warning*, as the drive gave them (NVMe Base 2.0, figure 207); nothing
    /// where a drive does not tell of its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critical_warning: Option<u8>,
    /// How long reads took; nothing of a drive that the daemon has not opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<DriveTimes>,
    /// How long writes took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<DriveTimes>,
}

/// How long requests of one kind took, since the daemon opened the drive: the hosts' and its own.
/// Of a drive in memory one in eight is timed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct DriveTimes {
    /// Requests that were done and timed.
    pub timed: u64,
    /// The time that they took together, nanoseconds.
    pub nanoseconds: u64,
    /// They, by the time that they took: up to 1 microsecond, up to 2, up to 4 and so on to 2^24,
    /// and longer.
    pub latencies: Vec<u64>,
}

impl From<&Latency> for DriveTimes {
    fn from(from: &Latency) -> Self {
        let (timed, latencies) = (from.count(), from.buckets.to_vec());
        Self { timed, nanoseconds: from.nanos, latencies }
    }
}

impl Extension for DriveMetrics {
    const OF: &'static str = "DriveMetrics";
}

/// What an enclosure has beside what Redfish says of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Chassis {
    /// Slots side by side as one looks at its front; 0 where nobody said.
    pub columns: u16,
    /// Its slots, in order, empty ones included.
    pub slots: Vec<EnclosureSlot>,
    /// Its I/O modules.
    pub modules: Vec<Module>,
    /// What it tells of itself; absent where it has no service that is asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shelf: Option<Shelf>,
}

impl Extension for Chassis {
    const OF: &'static str = "Chassis";
}

/// A slot of an enclosure.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct EnclosureSlot {
    /// Its number, or its label.
    pub slot: String,
    /// The drive in it; absent if it is empty, or nobody knows.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub drive: Option<Link>,
    /// Whether its indicator is on; absent where it has none that can be switched.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub location_indicator_active: Option<bool>,
}

/// An I/O module of an enclosure.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Module {
    /// Its name.
    pub name: String,
    /// Its network ports.
    pub ports: Vec<ModulePort>,
}

/// A network port of an I/O module.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct ModulePort {
    /// The name of its interface.
    pub name: String,
    /// It; absent while the machine has no such interface.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ethernet_interface: Option<Link>,
}

/// What a fan has beside what Redfish says of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Fan {
    /// Turns a minute below which it fails; absent where nobody says.
    #[serde(rename = "LeastRPM", skip_serializing_if = "Option::is_none", default)]
    pub least_rpm: Option<u32>,
}

impl Extension for Fan {
    const OF: &'static str = "Fan";
}
