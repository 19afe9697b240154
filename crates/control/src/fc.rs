//! Exports at Fibre Channel ports: what a request has to say, what `palisade services` is told, and
//! what is shown. The kernel speaks the protocols, and has the ports.

use crate::address;
use ::iscsi::Identity;
use format::limits::UNITS_MAX;
use format::{ExportAddress, FcExport, NvmeFcExport};
use redfish::messages as say;
use redfish::view::{self, Error};
use services::fc::FC_HOSTS;
use services::wire::{Fc, NvmeFc};
use std::collections::BTreeSet;
use std::path::Path;
use units::{Uuid, Wwpn};

/// Whether a request says what it has to, in a possible form.
///
/// # Errors
/// It does not, or not in such a form.
pub fn check(request: &view::CreateFc) -> Result<(), Error> {
    let view::CreateFc { port, is_nvme, initiators } = request;
    wwpn(port)?;
    let names: BTreeSet<String> = initiators
        .iter()
        .map(|text| match is_nvme {
            true => host(text),
            false => wwpn(text).map(|name| name.to_string()),
        })
        .collect::<Result<_, _>>()?;
    match names.len() < initiators.len() {
        true => Err(Error::new(&say::PORTAL_TWICE, &[])),
        false => Ok(()),
    }
}

/// The name of an NVMe host: the kernel's nvmet has a folder of that name.
fn host(text: &str) -> Result<String, Error> {
    let name = address::nqn(text)?;
    match text.contains('/') {
        true => Err(Error::new(&say::BAD_NQN, &[&text, &"nvmet takes no name that has a /"])),
        false => Ok(name.to_string()),
    }
}

fn wwpn(text: &str) -> Result<Wwpn, Error> {
    text.parse().map_err(|_| Error::new(&say::BAD_WWPN, &[&text]))
}

/// What a request that was checked asks for, beside these exports that there are, or may be. Names
/// are recorded in one form each.
///
/// # Errors
/// It was not checked, or the port has as many as it can have.
pub fn wanted<'a>(
    request: &view::CreateFc,
    recorded: impl Iterator<Item = &'a ExportAddress>,
) -> Result<ExportAddress, Error> {
    let port = wwpn(&request.port)?;
    if request.is_nvme {
        let hosts = request.initiators.clone();
        return Ok(ExportAddress::NvmeFc(NvmeFcExport { port, hosts }));
    }
    let unit_of = |address: &ExportAddress| match address {
        ExportAddress::Fc(own) if own.port == port => Some(own.unit),
        _ => None,
    };
    let taken: BTreeSet<u16> = recorded.filter_map(unit_of).collect();
    let free = (1..=UNITS_MAX).find(|unit| !taken.contains(unit));
    let unit = free.ok_or_else(|| Error::new(&say::PORT_FULL, &[&port]))?;
    let initiators = request.initiators.iter().map(|text| wwpn(text)).collect::<Result<_, _>>()?;
    Ok(ExportAddress::Fc(FcExport { port, unit, initiators }))
}

/// What is said of a volume that another export has at a port.
pub fn already_there(array: &str, volume: &str, id: &str) -> Error {
    Error::new(&say::ALREADY_AT_A_PORT, &[&array, &volume, &id])
}

/// What `palisade services` is to serve by FCP.
pub fn told(export: &FcExport, volume: Uuid) -> Fc {
    Fc {
        port: export.port.to_string(),
        unit: export.unit,
        serial: Identity::of(volume).serial,
        initiators: export.initiators.iter().map(ToString::to_string).collect(),
    }
}

/// What `palisade services` is to serve by NVMe.
pub fn told_nvme(export: &NvmeFcExport, volume: Uuid) -> NvmeFc {
    NvmeFc {
        port: export.port.to_string(),
        subsystem: address::fc_subsystem(volume),
        uuid: volume.to_string(),
        hosts: export.hosts.clone(),
    }
}

/// How an export is shown that is at a port, and that these initiators have.
pub fn shown(
    address: &ExportAddress,
    volume: Uuid,
    sessions: Vec<String>,
) -> Option<view::FcExport> {
    match address {
        ExportAddress::Fc(own) => Some(view::FcExport {
            port: own.port.to_string(),
            initiators: own.initiators.iter().map(ToString::to_string).collect(),
            unit: Some(own.unit),
            subsystem: None,
            sessions,
        }),
        ExportAddress::NvmeFc(own) => Some(view::FcExport {
            port: own.port.to_string(),
            initiators: own.hosts.clone(),
            unit: None,
            subsystem: Some(address::fc_subsystem(volume)),
            sessions,
        }),
        _ => None,
    }
}

/// The ports of this machine.
pub fn ports() -> Vec<view::FcPort> {
    let all = services::fc::ports(Path::new(FC_HOSTS)).into_iter();
    let port = |own: services::wire::FcPort| {
        let services::wire::FcPort { name, driver, state, speed } = own;
        view::FcPort { name, driver, state, speed }
    };
    all.map(port).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT: &str = "20:00:00:25:b5:00:00:1f";

    fn request(is_nvme: bool, initiators: &[&str]) -> view::CreateFc {
        let initiators = initiators.iter().map(|own| (*own).to_owned()).collect();
        view::CreateFc { port: PORT.to_owned(), is_nvme, initiators }
    }

    #[test]
    fn what_is_no_name_of_a_port_is_refused() {
        let name = |request: &view::CreateFc| check(request).expect_err("refused").name;
        let well = request(false, &["0x20000025b5000001", "20:00:00:25:b5:00:00:02"]);
        assert_eq!(check(&well), Ok(()));
        assert_eq!(name(&view::CreateFc { port: "fc0".into(), ..well }), "BadWwpn");
        assert_eq!(name(&request(false, &["nqn.2026-11.example:a"])), "BadWwpn");
        assert_eq!(name(&request(true, &["20:00:00:25:b5:00:00:02"])), "BadNqn");
        assert_eq!(check(&request(true, &["nqn.2026-11.example:a"])), Ok(()));
        // It would lead out of the folder of the kernel's that hosts are in.
        assert_eq!(name(&request(true, &["nqn.2026-11.example:a/../../x"])), "BadNqn");
        // One name in two forms.
        let twice = request(false, &["0x20000025b5000001", "20:00:00:25:B5:00:00:01"]);
        assert_eq!(name(&twice), "PortalTwice");
    }

    #[test]
    fn a_volume_is_at_a_port_once() {
        let said = already_there("tank", "db", "tank:1");
        assert_eq!(said.name, "AlreadyAtAPort");
        assert!(said.error.contains("tank/db") && said.hint.contains("tank:1"), "{said:?}");
    }

    #[test]
    fn a_port_gives_each_volume_a_number() {
        let mut all: Vec<ExportAddress> = Vec::new();
        for expected in [1, 2, 3] {
            let address = wanted(&request(false, &[PORT]), all.iter()).expect("possible");
            let ExportAddress::Fc(own) = &address else { panic!("by FCP") };
            assert_eq!(own.unit, expected);
            all.push(address);
        }
        all.remove(1);
        let other = view::CreateFc { port: "1".repeat(16), ..request(false, &[PORT]) };
        for (request, expected) in [(other, 1), (request(false, &[PORT]), 2)] {
            let address = wanted(&request, all.iter()).expect("possible");
            let ExportAddress::Fc(own) = &address else { panic!("by FCP") };
            assert_eq!(own.unit, expected);
        }
    }

    #[test]
    fn a_port_that_has_all_units_takes_no_other() {
        let port: Wwpn = PORT.parse().expect("a name");
        let at = |unit| ExportAddress::Fc(FcExport { port, unit, initiators: Vec::new() });
        let mut all: Vec<ExportAddress> = (1..=UNITS_MAX).map(at).collect();
        let said = wanted(&request(false, &[PORT]), all.iter()).expect_err("it is full");
        assert_eq!(said.name, "PortFull");
        all.pop();
        let last = wanted(&request(false, &[PORT]), all.iter()).expect("one is free");
        let own = FcExport { port, unit: UNITS_MAX, initiators: vec![port] };
        assert_eq!(last, ExportAddress::Fc(own));
    }
}
