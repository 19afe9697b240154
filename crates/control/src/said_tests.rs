//! Messages that only an unlucky machine brings about, by what makes them.

use crate::failure;
use crate::look::LookError;
use crate::{claims, creating, exports, names, served, server};
use format::NvmeExport;
use nvme_target::Refused;
use redfish::messages as say;
use redfish::view::CreateExport;

#[test]
fn an_unlucky_machine_is_told_of_by_name() {
    let export = NvmeExport {
        subsystem: "nqn.2026-11.org.example:a".into(),
        nsid: 7,
        listeners: Vec::new(),
        hosts: None,
    };
    let request = CreateExport {
        array: "a".into(),
        volume: "v".into(),
        nbd: None,
        nvme_tcp: Vec::new(),
        subsystem: None,
        hosts: Vec::new(),
        any_host: false,
        advertise: Vec::new(),
        local: None,
        iscsi: None,
        fc: None,
    };
    for (told, entry) in [
        (names::one_of("a", &["0a", "0b"]), &say::NAME_AMBIGUOUS),
        (creating::parse_level("7").map(drop), &say::BAD_LEVEL),
        (served::check_export(&request), &say::EXPORT_PROTOCOL),
        (Err(failure::another_drive("/dev/a")), &say::ANOTHER_DRIVE),
        (Err(failure::unsure_drive("/dev/a")), &say::DRIVE_UNSURE),
        (Err(exports::refused(Refused::NamespaceTaken, &export)), &say::NAMESPACE_TAKEN),
        (Err(exports::refused(Refused::NamespaceNumber, &export)), &say::NAMESPACE_NUMBER),
        (Err(server::cannot_start(&std::io::ErrorKind::OutOfMemory.into())), &say::CANNOT_START),
        (Err(claims::told(&LookError::Silent("/dev/a".into()))), &say::DRIVE_SILENT),
        (Err(claims::not_open("/dev/a")), &say::DRIVE_NOT_OPEN),
        (Err(claims::being_used("/dev/a")), &say::DRIVE_RESERVED),
        (Err(claims::not_looked_up(&["/dev/a".to_owned()])), &say::PATHS_HANG),
    ] {
        let told = told.expect_err(entry.name);
        assert!(told.is(entry) && told.code == entry.kind, "{told:?}");
    }
}
