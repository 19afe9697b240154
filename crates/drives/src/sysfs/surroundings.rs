//! What is around the drives, in one look.
//!
//! Invariant: a look takes as long as the slowest chip and enclosure; it is for threads that may
//! wait, and no drive is asked.

use super::Sysfs;
use super::device::Device;
use super::enclosure::Enclosure;
use super::hwmon::{Sensor, Supply};
use super::network::Port;

/// What is around the drives.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Surroundings {
    /// What they are plugged into.
    pub enclosures: Vec<Enclosure>,
    /// Sensors and fans, but those of drives.
    pub sensors: Vec<Sensor>,
    /// Power supplies.
    pub supplies: Vec<Supply>,
    /// Network ports.
    pub ports: Vec<Port>,
}

impl Sysfs {
    /// What is around these devices.
    pub fn surroundings(&self, devices: &[Device]) -> Surroundings {
        let (sensors, supplies) = self.sensors();
        Surroundings {
            enclosures: self.enclosures(devices),
            sensors,
            supplies,
            ports: self.ports(),
        }
    }
}
