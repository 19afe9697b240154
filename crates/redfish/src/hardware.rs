//! What is known of drives as devices, of what is around them, and of what is wrong with either.
//!
//! Purpose: the daemon fills these types from the kernel's tree of devices and from the drives' own
//! answers; [`crate::service`] makes resources of them and the command line prints them. Nothing
//! here asks anything.
//!
//! Invariants: temperatures are degrees Celsius, speeds of links megabits or megatransfers per
//! second, times seconds since 1970. What nobody knows is `None`, never zero. Identifiers that name
//! something in URIs are of letters, digits, `-`, `.`, `_` and `~` (RFC 3986, section 2.3): others
//! would be found, but clients of Redfish do not expect `%`.

use crate::shelf::Shelf;
use crate::view::{DriveState, KnownDrive, NamedDrive};
use serde::{Deserialize, Serialize};

/// How well something is.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Health {
    /// Nothing is wrong.
    #[default]
    Ok,
    /// Something should be seen to.
    Warning,
    /// Data or service is in danger.
    Critical,
}

impl Health {
    /// All of them, the best first.
    pub const ALL: [Self; 3] = [Self::Ok, Self::Warning, Self::Critical];

    /// Its word in Redfish (DSP0268, `Status`).
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "Warning",
            Self::Critical => "Critical",
        }
    }

    /// The health that a word of Redfish stands for.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }
}

/// Why a drive is not well.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reason {
    /// The health rule, such as `wear`: the key of `[health]` that sets it.
    pub rule: String,
    /// How grave that is.
    pub health: Health,
    /// What is wrong, one line.
    pub what: String,
    /// What to do, one line.
    #[serde(rename = "do")]
    pub action: String,
    /// Since when, in seconds since 1970.
    pub since: u64,
}

impl From<&KnownDrive> for NamedDrive {
    fn from(known: &KnownDrive) -> Self {
        let (path, serial) = (known.drive.path.clone(), known.drive.serial.clone());
        Self { id: known.id.clone(), path, serial, seen: None }
    }
}

impl KnownDrive {
    /// How well the drive is: the worse of what it is as a device and of what the daemon makes of
    /// it.
    pub fn health(&self) -> Health {
        match self.drive.state {
            DriveState::Failed | DriveState::Unusable => Health::Critical,
            DriveState::InUse | DriveState::Found | DriveState::Foreign | DriveState::Free => {
                self.hardware.health
            }
        }
    }
}

impl Hardware {
    /// Whether it is an NVMe drive.
    pub fn is_nvme(&self) -> bool {
        self.kind.as_deref() == Some("nvme")
    }

    /// Its temperature: by its log, else by the kernel's sensor.
    pub fn celsius(&self) -> Option<i32> {
        self.smart.as_ref().and_then(|smart| smart.celsius).or(self.sensor_celsius)
    }
}

/// A drive as a device.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Hardware {
    /// `nvme`, `scsi`, `virtio`, `loop` and so on; absent for a file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kind: Option<String>,
    /// How an NVMe drive is reached: `pcie`, `tcp`, `rdma`, `fc`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub transport: Option<String>,
    /// The kernel's name of its NVMe controller, such as `nvme0`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub controller: Option<String>,
    /// The namespace's number.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub namespace: Option<u32>,
    /// The version of its firmware.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub firmware: Option<String>,
    /// Its address on the bus, such as `0000:01:00.0`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bus_address: Option<String>,
    /// Its link.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub link: Option<PcieLink>,
    /// Where it is plugged in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub place: Option<DrivePlace>,
    /// Whether its indicator is on; absent where it has none that can be switched.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub located: Option<bool>,
    /// How well it is.
    pub health: Health,
    /// Why, the gravest first; empty where it is well.
    pub reasons: Vec<Reason>,
    /// Its SMART / Health Information log, as last read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub smart: Option<Smart>,
    /// Its temperature by the kernel's sensor, where the log can't be read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sensor_celsius: Option<i32>,
    /// From which temperature it warns (`WCTEMP`) and acts (`CCTEMP`); absent where it says none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub warning_celsius: Option<i32>,
    /// See above.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub critical_celsius: Option<i32>,
    /// Its power states; absent where it was not asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub power: Option<DrivePower>,
    /// When it will be worn out, at the rate of the past, in seconds since 1970; absent while
    /// nobody can say.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub worn_out: Option<u64>,
    /// When it was last asked, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub asked: Option<u64>,
    /// Why it does not tell more: it refused, did not answer, or the daemon may not ask.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<String>,
}

/// A link of PCI Express.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PcieLink {
    /// Lanes in use.
    pub lanes: u8,
    /// Lanes that device and slot could use.
    pub max_lanes: u8,
    /// Megatransfers per second and lane: 8,000 for generation 3.
    pub megatransfers: u32,
    /// What they could be.
    pub max_megatransfers: u32,
}

impl PcieLink {
    /// Gigabits per second of all lanes in use, and of those that could be, coding included.
    pub fn gigabits(&self) -> (f64, f64) {
        let speed = |lanes: u8, each: u32| f64::from(lanes) * f64::from(each) / 1000.0;
        (speed(self.lanes, self.megatransfers), speed(self.max_lanes, self.max_megatransfers))
    }

    /// Whether it is narrower or slower than it could be.
    pub const fn is_less(&self) -> bool {
        self.lanes < self.max_lanes || self.megatransfers < self.max_megatransfers
    }
}

/// Where a drive is plugged in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DrivePlace {
    /// The identifier of its enclosure ([`Enclosure::id`]).
    pub enclosure: String,
    /// The slot's number there, or its label.
    pub slot: String,
}

/// The SMART / Health Information log (NVMe Base 2.0, figure 207; log 02h), in plain units.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Smart {
    /// The bits of *critical warning*, as the drive gave them.
    pub critical_warning: u8,
    /// The composite temperature.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub celsius: Option<i32>,
    /// Spare capacity that is left, in per cent.
    pub available_spare_percent: u8,
    /// Below this it warns.
    pub spare_threshold_percent: u8,
    /// Life that is used, in per cent; may exceed 100.
    pub percentage_used: u8,
    /// Bytes read by hosts: data units of 512,000 bytes.
    pub read_bytes: u128,
    /// Bytes written by hosts.
    pub written_bytes: u128,
    /// Commands that read.
    pub read_commands: u128,
    /// Commands that wrote.
    pub write_commands: u128,
    /// Minutes that the controller was busy.
    pub busy_minutes: u128,
    /// How often it was powered on.
    pub power_cycles: u128,
    /// Hours that it was on.
    pub power_on_hours: u128,
    /// How often it lost power without notice.
    pub unsafe_shutdowns: u128,
    /// Errors of its media, or of data's integrity.
    pub media_errors: u128,
    /// Entries in its error log over its life.
    pub error_log_entries: u128,
    /// Minutes at or above its warning temperature.
    pub warning_minutes: u32,
    /// Minutes at or above its critical temperature.
    pub critical_minutes: u32,
    /// Its temperature sensors, from 1; absent where it has none of that number.
    pub sensors_celsius: Vec<Option<i32>>,
}

/// A drive's power states (NVMe Base 2.0, section 8.15; feature 02h).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DrivePower {
    /// The state that it is in.
    pub state: u8,
    /// Those that it has, from 0.
    pub states: Vec<DrivePowerState>,
}

/// One of a drive's power states.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DrivePowerState {
    /// Its number.
    pub state: u8,
    /// The most that it takes, in milliwatts; absent where the drive does not say.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_milliwatts: Option<u32>,
    /// Whether the drive serves requests in it.
    pub serves: bool,
    /// Microseconds to enter it.
    pub enter_us: u32,
    /// Microseconds to leave it.
    pub exit_us: u32,
}

/// What is around the drives.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Surroundings {
    /// Enclosures: those that the system knows, those that the configuration describes, and shelves
    /// that tell of themselves. The server itself is one where it has slots that are known.
    pub enclosures: Vec<Enclosure>,
    /// Sensors of temperature, voltage, current and power.
    pub sensors: Vec<Sensor>,
    /// Fans.
    pub fans: Vec<Fan>,
    /// Power supplies.
    pub supplies: Vec<Supply>,
    /// Network ports.
    pub ports: Vec<NetworkPort>,
}

impl Surroundings {
    /// The enclosure of this identifier.
    pub fn enclosure(&self, id: &str) -> Option<&Enclosure> {
        self.enclosures.iter().find(|own| own.id == id)
    }

    /// How well sensors, fans and supplies are.
    pub fn healths(&self) -> impl Iterator<Item = Health> {
        let sensors = self.sensors.iter().map(|own| own.health);
        let fans = self.fans.iter().map(|own| own.health);
        sensors.chain(fans).chain(self.supplies.iter().map(|own| own.health))
    }
}

/// What drives are plugged into.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Enclosure {
    /// Names it in URIs; `local` is the server itself.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its model, where that is known.
    pub model: Option<String>,
    /// Slots side by side as one looks at its front; 0 where nobody said.
    pub columns: u16,
    /// Its slots, in order.
    pub slots: Vec<EnclosureSlot>,
    /// Its I/O modules.
    pub modules: Vec<Module>,
    /// What it tells of itself; absent where it has no service that is asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shelf: Option<Shelf>,
}

/// A slot of an enclosure.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct EnclosureSlot {
    /// Its number, or its label.
    pub slot: String,
    /// The identifier of the drive in it; absent if it is empty, or nobody knows.
    pub drive: Option<String>,
    /// Whether its indicator is on; absent where it has none that can be switched.
    pub located: Option<bool>,
}

/// An I/O module of an enclosure.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Module {
    /// Its name.
    pub name: String,
    /// The identifiers of its network ports: their interfaces' names.
    pub ports: Vec<String>,
}

/// What a sensor measures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measures {
    /// Thousandths of a degree Celsius.
    Temperature,
    /// Millivolts.
    Voltage,
    /// Milliamperes.
    Current,
    /// Microwatts.
    Power,
}

/// A sensor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Sensor {
    /// Names it in URIs; the same over restarts.
    pub id: String,
    /// Its label, or chip and number.
    pub name: String,
    /// What it measures, and in which unit.
    pub measures: Measures,
    /// What it reads now.
    pub reading: Option<i64>,
    /// From what it warns.
    pub high: Option<i64>,
    /// From what something is in danger.
    pub critical: Option<i64>,
    /// How well what it measures is.
    pub health: Health,
}

/// A fan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Fan {
    /// Names it in URIs; the same over restarts.
    pub id: String,
    /// Its label, or chip and number.
    pub name: String,
    /// Turns a minute.
    pub rpm: Option<u32>,
    /// Below this it fails.
    pub least_rpm: Option<u32>,
    /// How well it is.
    pub health: Health,
}

/// A power supply.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Supply {
    /// Names it in URIs; the same over restarts.
    pub id: String,
    /// Its label.
    pub name: String,
    /// Whether it gives power.
    pub is_on: Option<bool>,
    /// What it takes, in microwatts.
    pub input_microwatts: Option<u64>,
    /// How well it is.
    pub health: Health,
}

/// A network port.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NetworkPort {
    /// The interface's name; names it in URIs.
    pub id: String,
    /// Its hardware address.
    pub mac: Option<String>,
    /// Whether it has a link.
    pub has_link: bool,
    /// Whether it is switched on.
    pub is_enabled: bool,
    /// Its speed, in megabits per second.
    pub megabits: Option<u32>,
    /// Whether it sends and receives at once.
    pub full_duplex: Option<bool>,
    /// The most bytes of a packet.
    pub mtu: u32,
    /// Its addresses, with the length of their networks' prefixes: `192.0.2.1/24`. Those of IPv4
    /// come first.
    pub addresses: Vec<String>,
}

/// What is wrong now: conditions, the gravest first.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Alerts {
    /// Those that are raised.
    pub alerts: Vec<Alert>,
}

/// A condition that is raised.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Alert {
    /// Names it; never used again.
    pub id: String,
    /// The message of the registry, such as `ArrayDegraded`.
    pub message: String,
    /// How grave it is.
    pub severity: Health,
    /// What stands for `%1` and so on in the message's text.
    #[serde(skip)]
    pub args: Vec<String>,
    /// What is wrong, one line.
    pub what: String,
    /// What to do, one line.
    #[serde(rename = "do")]
    pub action: String,
    /// The URI of what it is about.
    pub of: String,
    /// What that is called: an array, a drive's path.
    pub name: String,
    /// When it was raised, in seconds since 1970.
    pub raised: u64,
    /// When somebody acknowledged it, and who.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub acknowledged: Option<(u64, String)>,
}
