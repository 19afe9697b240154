//! The machine's network ports: `EthernetInterface`.

use super::{alerts, collection, link, uri};
use crate::view::{NetworkPort, View};
use core::net::{IpAddr, Ipv4Addr};
use serde_json::{Value, json};

pub(super) fn all(view: &View) -> Value {
    let uris = view.surroundings.ports.iter().map(|own| uri::port(&own.id));
    collection(uri::PORTS, "EthernetInterfaceCollection", "Network ports", uris)
}

pub(super) fn one(view: &View, id: &str) -> Option<Value> {
    let own = view.surroundings.ports.iter().find(|own| own.id == id)?;
    let (old, new): (Vec<_>, Vec<_>) =
        own.addresses.iter().filter_map(|text| address(text)).partition(|(ip, _)| ip.is_ipv4());
    let old: Vec<Value> = old.iter().map(|(ip, bits)| old_address(*ip, *bits)).collect();
    let new: Vec<Value> =
        new.iter().map(|(ip, bits)| json!({"Address": ip, "PrefixLength": bits})).collect();
    let at = uri::port(id);
    let state = if own.is_enabled { "Enabled" } else { "Disabled" };
    let health = alerts::worst(view, |of| of == at);
    let mut status = json!({"State": state, "Health": health.word()});
    alerts::put_conditions(view, &mut status, &at);
    let mut resource = json!({
        "@odata.id": at,
        "@odata.type": "#EthernetInterface.v1_12_5.EthernetInterface",
        "Id": id,
        "Name": id,
        "InterfaceEnabled": own.is_enabled,
        "LinkStatus": link_status(own),
        "SpeedMbps": own.megabits,
        "FullDuplex": own.full_duplex,
        "MTUSize": own.mtu,
        "Status": status,
        "IPv4Addresses": old,
        "IPv6Addresses": new,
        "Links": {"Chassis": link(uri::CHASSIS)},
    });
    if let Some(mac) = own.mac.as_ref().filter(|mac| is_mac(mac)) {
        super::put(&mut resource, "MACAddress", json!(mac));
    }
    Some(resource)
}

/// `LinkUp`, or whether the port is switched on without one (DSP0268, `LinkStatus`).
const fn link_status(own: &NetworkPort) -> &'static str {
    match (own.has_link, own.is_enabled) {
        (true, _) => "LinkUp",
        (false, true) => "NoLink",
        (false, false) => "LinkDown",
    }
}

/// An address, with the length of its network's prefix.
fn address(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = text.split_once('/')?;
    Some((address.parse().ok()?, bits.parse().ok()?))
}

fn old_address(ip: IpAddr, bits: u8) -> Value {
    let bits = u32::from(bits).min(32);
    let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
    json!({"Address": ip, "SubnetMask": Ipv4Addr::from(mask)})
}

/// Six bytes as Redfish writes them.
fn is_mac(text: &str) -> bool {
    let mut parts = text.split(':');
    let is_byte = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
    parts.clone().count() == 6 && parts.all(is_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_masks_and_prefixes() {
        for (text, mask) in [
            ("192.0.2.1/24", "255.255.255.0"),
            ("192.0.2.1/0", "0.0.0.0"),
            ("192.0.2.1/32", "255.255.255.255"),
            ("192.0.2.1/31", "255.255.255.254"),
        ] {
            let (ip, bits) = address(text).expect(text);
            assert_eq!(old_address(ip, bits)["SubnetMask"], mask, "{text}");
        }
        for text in ["", "192.0.2.1", "192.0.2.1/x", "x/1", "192.0.2.1/300"] {
            assert_eq!(address(text), None, "{text}");
        }
        assert!(is_mac("00:11:22:aa:BB:cc"));
        for text in ["", "00:11:22:33:44", "00:11:22:33:44:55:66", "00:11:22:33:44:5x"] {
            assert!(!is_mac(text), "{text}");
        }
    }
}
