//! Functions of PCI Express: their links, and the slots that they are plugged into.
//!
//! The files are described by the kernel's `Documentation/ABI/testing/sysfs-bus-pci`.

use super::read::Dir;

/// How fast and wide a link is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Width {
    /// Lanes.
    pub lanes: u8,
    /// Megatransfers per second and lane: 8,000 for generation 3.
    pub megatransfers: u32,
}

/// A link of PCI Express.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// What is in use.
    pub now: Width,
    /// What the device could use.
    pub device: Width,
    /// What the port above it could use, where that is known.
    pub port: Option<Width>,
}

impl Link {
    /// What device and port could use together.
    pub fn could_be(&self) -> Width {
        let port = self.port.unwrap_or(self.device);
        Width {
            lanes: self.device.lanes.min(port.lanes),
            megatransfers: self.device.megatransfers.min(port.megatransfers),
        }
    }

    /// Whether it is narrower or slower than it could be.
    pub fn is_reduced(&self) -> bool {
        let most = self.could_be();
        self.now.lanes < most.lanes || self.now.megatransfers < most.megatransfers
    }
}

/// A function of a PCI device.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pci {
    /// Its address, such as `0000:01:00.0`.
    pub address: String,
    /// Its link; `None` where it has none, as in virtual machines.
    pub link: Option<Link>,
    /// The label of its slot, where the firmware names slots.
    pub slot: Option<String>,
}

/// Whether a name is a function's address: `DDDD:BB:DD.F` in hexadecimal digits. Domains of five
/// digits and more are those of host bridges that Linux numbers itself.
fn is_address(name: &str) -> bool {
    let hexadecimal = |text: &str, least: usize, most: usize| {
        (least..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let mut parts = name.split(':');
    let (Some(domain), Some(bus), Some(rest), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let Some((device, function)) = rest.split_once('.') else { return false };
    hexadecimal(domain, 4, 8)
        && hexadecimal(bus, 2, 2)
        && hexadecimal(device, 2, 2)
        && hexadecimal(function, 1, 1)
}

/// `8.0 GT/s PCIe` in megatransfers per second. Kernels before 5.8 wrote `8 GT/s`.
fn megatransfers(text: &str) -> Option<u32> {
    let number = text.split(' ').next()?;
    let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
    let (whole, tenths): (u32, u32) = (whole.parse().ok()?, tenths.parse().ok()?);
    let all = whole.checked_mul(1000)?.checked_add(tenths.checked_mul(100)?)?;
    (tenths < 10 && all > 0).then_some(all)
}

/// What a function says of its link; `which` is `current` or `max`.
fn width(function: &Dir<'_>, which: &str) -> Option<Width> {
    let lanes = function.number(&format!("{which}_link_width"))?;
    let speed = function.text(&format!("{which}_link_speed"))?;
    // No link has 0 lanes; the kernel gives 255 for what it does not know.
    let is_known = (1..=32).contains(&lanes);
    is_known.then_some(Width { lanes, megatransfers: megatransfers(&speed)? })
}

fn link(function: &Dir<'_>) -> Option<Link> {
    let port = function.parent().filter(|port| is_address(port.name()));
    Some(Link {
        now: width(function, "current")?,
        device: width(function, "max")?,
        port: port.and_then(|port| width(&port, "max")),
    })
}

/// A slot that the firmware names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SlotLabel {
    /// Its label.
    pub label: String,
    /// Domain, bus and device of what may be plugged in: `0000:01:00`.
    pub address: String,
}

/// The slots that the firmware names (`/sys/bus/pci/slots`).
pub(super) fn labels(root: &Dir<'_>) -> Vec<SlotLabel> {
    let Some(slots) = root.at("bus/pci/slots") else { return Vec::new() };
    let slots = slots.children().into_iter();
    slots
        .filter_map(|(label, dir)| Some(SlotLabel { label, address: dir.text("address")? }))
        .collect()
}

/// Domain, bus and device of a function's address.
pub(super) fn without_function(address: &str) -> &str {
    address.rsplit_once('.').map_or(address, |(device, _)| device)
}

/// The directory of the function that a device belongs to: the last one on its way.
pub(super) fn function<'a>(device: &Dir<'a>) -> Option<Dir<'a>> {
    let mut function = device.clone();
    while !is_address(function.name()) {
        function = function.parent()?;
    }
    Some(function)
}

/// The function that a device belongs to.
pub(super) fn function_of(device: &Dir<'_>, slots: &[SlotLabel]) -> Option<Pci> {
    let function = function(device)?;
    let address = function.name().to_owned();
    let device = without_function(&address);
    let slot = slots.iter().find(|slot| slot.address.eq_ignore_ascii_case(device));
    Some(Pci { link: link(&function), slot: slot.map(|slot| slot.label.clone()), address })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_other_names() {
        for (name, expected) in [
            ("0000:01:00.0", true),
            ("10000:e1:00.0", true),
            ("0000:af:1f.7", true),
            ("pci0000:00", false),
            ("0000:01:00", false),
            ("0000:01:00.0:pcie204", false),
            ("0:0:0:0", false),
            ("nvme0", false),
            ("", false),
        ] {
            assert_eq!(is_address(name), expected, "{name}");
        }
    }

    #[test]
    fn speeds_are_read() {
        for (text, expected) in [
            ("2.5 GT/s PCIe", Some(2500)),
            ("8.0 GT/s PCIe", Some(8000)),
            ("8 GT/s", Some(8000)),
            ("64.0 GT/s PCIe", Some(64000)),
            ("Unknown", None),
            ("Unknown speed", None),
            ("0.0 GT/s", None),
            ("8.25 GT/s", None),
            ("99999999999 GT/s", None),
            ("4294967.9 GT/s", None),
            ("", None),
        ] {
            assert_eq!(megatransfers(text), expected, "{text}");
        }
    }

    #[test]
    fn a_link_could_be_what_both_ends_can() {
        let width = |lanes, megatransfers| Width { lanes, megatransfers };
        for (now, device, port, could_be, reduced) in [
            (width(4, 8000), width(4, 16000), Some(width(4, 8000)), width(4, 8000), false),
            (width(2, 8000), width(4, 8000), Some(width(16, 32000)), width(4, 8000), true),
            (width(4, 2500), width(4, 8000), None, width(4, 8000), true),
            (width(4, 8000), width(4, 8000), None, width(4, 8000), false),
            (width(2, 16000), width(4, 16000), Some(width(2, 32000)), width(2, 16000), false),
        ] {
            let link = Link { now, device, port };
            assert_eq!((link.could_be(), link.is_reduced()), (could_be, reduced), "{link:?}");
        }
    }
}
