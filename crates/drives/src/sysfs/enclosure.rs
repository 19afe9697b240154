//! What drives are plugged into: enclosures that speak SES, and the server's own slots.
//!
//! Purpose: one [`Enclosure`] for each below `/sys/class/enclosure`, and one for the server where
//! the firmware names slots (`/sys/bus/pci/slots`) that hold drives.
//!
//! Of what an enclosure has, the kernel's SES driver tells slots only, not supplies or fans
//! (`drivers/scsi/ses.c`). One that is reached in two ways is there twice, with one identifier.

use super::Sysfs;
use super::device::Device;
use super::hwmon::plain;
use super::led;
use super::pcie;
use super::read::Dir;
use std::collections::BTreeSet;

/// What drives are plugged into.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Enclosure {
    /// Names it: letters, digits, `.`, `_` and `-`.
    pub id: String,
    /// Its name; `None` for the server itself.
    pub name: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// Its slots, in order.
    pub slots: Vec<Slot>,
}

/// A slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slot {
    /// Its number, or its label.
    pub label: String,
    /// The whole block devices of the drive in it ([`Device::name`]).
    pub devices: Vec<String>,
    /// Whether its indicator is on; `None` where it has none that can be switched.
    pub located: Option<bool>,
    /// Whether the enclosure says that what is in it is broken.
    pub is_faulty: Option<bool>,
    /// The enclosure's word about what is in it: `OK`, `not installed`, `critical` and so on.
    pub status: Option<String>,
}

/// Labels by their numbers where they are numbers, else by their letters.
fn order(label: &str) -> (u64, String) {
    let number: String = label.chars().filter(char::is_ascii_digit).collect();
    (number.parse().unwrap_or(u64::MAX), label.to_owned())
}

/// A slot of an enclosure that speaks SES.
fn component(dir: &Dir<'_>) -> Option<Slot> {
    let is_slot = matches!(dir.text("type").as_deref(), Some("device" | "array device"));
    let device = dir.at("device/block");
    let number: Option<u32> = dir.number("slot");
    is_slot.then(|| Slot {
        label: number.map_or_else(|| dir.name().to_owned(), |number| number.to_string()),
        devices: device.map(|device| device.entries()).unwrap_or_default(),
        located: led::of_slot(dir),
        is_faulty: dir.number("fault").map(|fault: u32| fault != 0),
        status: dir.text("status"),
    })
}

fn ses(dir: &Dir<'_>) -> Enclosure {
    let id = dir.text("id").unwrap_or_else(|| dir.name().to_owned());
    let vendor = dir.text("device/vendor");
    let model = dir.text("device/model");
    let name = match (&vendor, &model) {
        (Some(vendor), Some(model)) => Some(format!("{vendor} {model}")),
        _ => model.clone(),
    };
    let children = dir.children();
    let inside = children.iter().filter(|(_, child)| child.path().starts_with(dir.path()));
    let mut slots: Vec<Slot> = inside.filter_map(|(_, child)| component(child)).collect();
    slots.sort_by_key(|slot| order(&slot.label));
    let name = name.unwrap_or_else(|| id.clone());
    Enclosure { id: plain(&format!("ses-{id}")), name: Some(name), model, slots }
}

/// The server with the slots that hold drives, and with empty ones that have an indicator: what is
/// plugged in and out while a server runs is a drive.
fn server(root: &Dir<'_>, devices: &[Device]) -> Option<Enclosure> {
    let mut slots = Vec::new();
    for (label, dir) in root.at("bus/pci/slots")?.children() {
        let Some(address) = dir.text("address") else { continue };
        let own: Vec<&Device> = devices.iter().filter(|device| is_in(device, &address)).collect();
        let is_empty = || dir.number("adapter") == Some(0u32) && dir.has("attention");
        let located = match own.first() {
            Some(first) => led::located(root, first),
            None if is_empty() => led::attention(&dir, &address),
            None => continue,
        };
        let devices = own.iter().map(|device| device.name.clone()).collect();
        slots.push(Slot { label, devices, located, is_faulty: None, status: None });
    }
    slots.sort_by_key(|slot| order(&slot.label));
    let id = "server".to_owned();
    (!slots.is_empty()).then_some(Enclosure { id, name: None, model: None, slots })
}

/// Whether a whole drive is at this address of a slot.
fn is_in(device: &Device, address: &str) -> bool {
    let functions = device.controllers.iter().filter_map(|controller| controller.pci.as_ref());
    let mut at = functions.map(|function| pcie::without_function(&function.address));
    device.partition.is_none() && !device.hidden && at.any(|at| at.eq_ignore_ascii_case(address))
}

impl Sysfs {
    /// What the drives among `devices` are plugged into. Asks enclosures, and waits for them.
    pub fn enclosures(&self, devices: &[Device]) -> Vec<Enclosure> {
        let root = self.dir();
        let class = root.at("class/enclosure");
        let all = class.map(|class| class.children()).unwrap_or_default();
        let mut seen = BTreeSet::new();
        let speaking = all.iter().map(|(_, dir)| ses(dir));
        let mut enclosures: Vec<Enclosure> =
            speaking.filter(|enclosure| seen.insert(enclosure.id.clone())).collect();
        enclosures.extend(server(&root, devices));
        enclosures
    }
}
