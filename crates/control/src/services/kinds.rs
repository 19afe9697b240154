//! As what `palisade services` is to have each kind of export there.

use crate::{fc, iscsi, shares};
use format::{ExportAddress, ShareExport};
use redfish::access::Secret;
use services::wire::Kind;
use units::Uuid;

/// What it is told of an export; none of those that it has nothing to do with.
pub fn kind_of(address: &ExportAddress, volume: Uuid, secret: Option<&Secret>) -> Option<Kind> {
    match address {
        ExportAddress::Iscsi(own) => Some(Kind::Iscsi(Box::new(iscsi::told(own, volume, secret)))),
        ExportAddress::Shares(own) => Some(of_shares(own)),
        ExportAddress::Fc(own) => Some(Kind::Fc(Box::new(fc::told(own, volume)))),
        ExportAddress::NvmeFc(own) => Some(Kind::NvmeFc(Box::new(fc::told_nvme(own, volume)))),
        ExportAddress::Device => Some(Kind::Device),
        ExportAddress::Ublk => Some(Kind::Ublk),
        ExportAddress::File(path) => Some(Kind::File(path.clone())),
        _ => None,
    }
}

/// What it is told of a file system.
pub fn of_shares(own: &ShareExport) -> Kind {
    Kind::Shares(Box::new(shares::told(own)))
}
