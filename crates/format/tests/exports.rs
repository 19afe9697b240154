//! Exports in records: what each kind has to say, and the flags that announce it.

mod common;

use common::{eventful, seal, with_fc, with_iscsi, with_local, with_nvme, with_shares};
use layout::Level;
use palisade_format::{ExportRecord, decode, encode, limits};
use units::Slot;

/// An export over NVMe/TCP says no more than there is room for, and a flag says that it is there.
#[test]
fn nvme_exports_are_bounded() {
    let record = with_nvme(eventful(Level::Raid5, 3));
    let mut image = encode(&record);
    assert_eq!(image[24], 4);
    image[24] = 0;
    seal(&mut image);
    assert!(decode(&image).is_err(), "an entry that no flag announces");
    type Change = fn(&mut palisade_format::NvmeExport);
    let wrong: [Change; 9] = [
        |e| e.nsid = 0,
        |e| e.nsid = limits::NAMESPACES_MAX + 1,
        |e| e.subsystem.clear(),
        |e| e.subsystem = "x".repeat(limits::NQN_MAX + 1),
        |e| e.listeners.clear(),
        |e| e.listeners = vec![e.listeners[0].clone(); limits::LISTENERS_MAX + 1],
        |e| e.listeners[0].advertise = Some(String::new()),
        |e| e.hosts = Some(Vec::new()),
        |e| e.hosts = Some(vec!["x".repeat(150); limits::HOSTS_MAX]),
    ];
    for (at, change) in wrong.into_iter().enumerate() {
        let mut record = record.clone();
        let palisade_format::ExportAddress::NvmeTcp(export) = &mut record.exports[2].address else {
            panic!("the third is over NVMe");
        };
        change(export);
        assert!(record.check().is_err(), "{at}");
    }
    // Each is possible, all together are too much.
    let mut many = record;
    let palisade_format::ExportAddress::NvmeTcp(export) = &mut many.exports[2].address else {
        panic!("the third is over NVMe");
    };
    export.hosts = Some(vec!["x".repeat(120); limits::HOSTS_MAX]);
    assert!(many.check().is_ok());
    for id in 20..25 {
        let mut more = palisade_format::ExportRecord { id, ..many.exports[2].clone() };
        if let palisade_format::ExportAddress::NvmeTcp(export) = &mut more.address {
            export.nsid = id;
        }
        many.exports.push(more);
    }
    assert!(many.check().is_err());
    let mut twice = with_nvme(eventful(Level::Raid5, 3));
    twice.exports[3].address = twice.exports[2].address.clone();
    assert!(twice.check().is_err(), "two exports that are one namespace");
}

#[test]
fn exports_that_the_server_uses_keep_their_rules() {
    let record = with_local(eventful(Level::Raid5, 3));
    for wrong in [String::new(), "srv/v".into(), format!("/{}", "x".repeat(limits::ADDRESS_MAX))] {
        let mut record = record.clone();
        record.exports[3].address = palisade_format::ExportAddress::File(wrong.clone());
        assert!(record.check().is_err(), "{wrong}");
    }
    let mut image = encode(&record.for_slot(Slot(0)));
    assert_eq!(image[24], 16, "a release that does not know such exports does not read on");
    image[24] = 0;
    seal(&mut image);
    assert!(decode(&image).is_err(), "an entry that no flag announces");
    let mut image = encode(&eventful(Level::Raid5, 3).for_slot(Slot(0)));
    image[24] = 16;
    seal(&mut image);
    assert!(decode(&image).is_err(), "a flag without an entry");
}

#[test]
fn exports_over_iscsi_keep_their_rules() {
    use palisade_format::{ExportAddress, IscsiExport};
    let record = with_iscsi(eventful(Level::Raid5, 3));
    let at = record.exports.len() - 1;
    let ExportAddress::Iscsi(own) = record.exports[at].address.clone() else { panic!("iSCSI") };
    let long = |most: usize| "x".repeat(most + 1);
    for wrong in [
        IscsiExport { portals: Vec::new(), ..own.clone() },
        IscsiExport { portals: vec![own.portals[0].clone(); 17], ..own.clone() },
        IscsiExport { initiators: Vec::new(), ..own.clone() },
        IscsiExport { initiators: vec!["iqn.x".into(); 129], ..own.clone() },
        IscsiExport { initiators: vec![String::new()], ..own.clone() },
        IscsiExport { initiators: vec![long(limits::IQN_MAX)], ..own.clone() },
        IscsiExport { user: Some(String::new()), ..own.clone() },
        IscsiExport { secret: limits::SECRETS_END, ..own.clone() },
        IscsiExport { user: Some(long(limits::USER_MAX)), ..own.clone() },
        IscsiExport { initiators: vec!["x".repeat(223); 100], ..own },
    ] {
        let mut record = record.clone();
        record.exports[at].address = ExportAddress::Iscsi(wrong.clone());
        assert!(record.check().is_err(), "{wrong:?}");
    }
    let mut twice = record.clone();
    twice.exports[at].volume = twice.exports[at - 1].volume;
    assert!(twice.check().is_err(), "two targets of one name");
    let mut image = encode(&record.for_slot(Slot(0)));
    assert_eq!(image[24], 32, "a release that does not know such exports does not read on");
    image[24] = 0;
    seal(&mut image);
    assert!(decode(&image).is_err(), "an entry that no flag announces");
    let mut image = encode(&eventful(Level::Raid5, 3).for_slot(Slot(0)));
    image[24] = 32;
    seal(&mut image);
    assert!(decode(&image).is_err(), "a flag without an entry");
}

#[test]
fn exports_at_ports_keep_their_rules() {
    use palisade_format::{ExportAddress, FcExport, NvmeFcExport};
    use units::Wwpn;
    let record = with_fc(eventful(Level::Raid5, 3));
    let [at, by_nvme] = [2, 1].map(|behind| record.exports.len() - behind);
    let ExportAddress::Fc(own) = record.exports[at].address.clone() else { panic!("FCP") };
    let ExportAddress::NvmeFc(nvme) = record.exports[by_nvme].address.clone() else {
        panic!("NVMe")
    };
    let none = Wwpn([0; 8]);
    let hosts = |hosts: Vec<String>| NvmeFcExport { hosts, ..nvme.clone() };
    for (at, wrong) in [
        (at, ExportAddress::Fc(FcExport { port: none, ..own.clone() })),
        (at, ExportAddress::Fc(FcExport { unit: 0, ..own.clone() })),
        (at, ExportAddress::Fc(FcExport { unit: limits::UNITS_MAX + 1, ..own.clone() })),
        (at, ExportAddress::Fc(FcExport { initiators: vec![none], ..own.clone() })),
        (at, ExportAddress::Fc(FcExport { initiators: Vec::new(), ..own.clone() })),
        (at, ExportAddress::Fc(FcExport { initiators: vec![own.port; 129], ..own.clone() })),
        (by_nvme, ExportAddress::NvmeFc(NvmeFcExport { port: none, ..nvme.clone() })),
        (by_nvme, ExportAddress::NvmeFc(hosts(Vec::new()))),
        (by_nvme, ExportAddress::NvmeFc(hosts(vec![String::new()]))),
        (by_nvme, ExportAddress::NvmeFc(hosts(vec!["x".repeat(224)]))),
        (by_nvme, ExportAddress::NvmeFc(hosts(vec!["x".repeat(223); 100]))),
    ] {
        let mut record = record.clone();
        record.exports[at].address = wrong.clone();
        assert!(record.check().is_err(), "{wrong:?}");
    }
    for again in [at, by_nvme] {
        let mut twice = record.clone();
        let other = twice.exports[again].clone();
        twice.exports.push(palisade_format::ExportRecord { id: 99, ..other });
        assert!(twice.check().is_err(), "{again}: two of one volume");
    }
    let mut image = encode(&record.for_slot(Slot(0)));
    assert_eq!(image[24], 128, "a release that does not know such exports does not read on");
    image[24] = 0;
    seal(&mut image);
    assert!(decode(&image).is_err(), "an entry that no flag announces");
    let mut image = encode(&eventful(Level::Raid5, 3).for_slot(Slot(0)));
    image[24] = 128;
    seal(&mut image);
    assert!(decode(&image).is_err(), "a flag without an entry");
}

#[test]
fn shares_keep_their_rules() {
    use palisade_format::{Access, ExportAddress, Share, ShareExport};
    let record = with_shares(eventful(Level::Raid5, 3));
    let ExportAddress::Shares(own) = record.exports[0].address.clone() else { panic!("shares") };
    let with = |share: Share| ShareExport { shares: vec![share], ..own.clone() };
    let who = |who: String| vec![Access { who, read_only: false }];
    let docs = own.shares[0].clone();
    let long = |most: usize| "x".repeat(most + 1);
    let names = (0..129).map(|number| Share { name: format!("{number}"), ..docs.clone() });
    for wrong in [
        ShareExport { shares: Vec::new(), ..own.clone() },
        ShareExport { shares: names.collect(), ..own.clone() },
        ShareExport { shares: vec![docs.clone(), docs.clone()], ..own.clone() },
        ShareExport { smb: String::new(), ..own.clone() },
        ShareExport { nfs: long(limits::ADDRESS_MAX), ..own.clone() },
        with(Share { name: String::new(), ..docs.clone() }),
        with(Share { name: long(limits::SHARE_NAME_MAX), ..docs.clone() }),
        with(Share { name: "more".into(), ..docs.clone() }),
        with(Share { smb: false, nfs: false, ..docs.clone() }),
        with(Share { users: who(String::new()), ..docs.clone() }),
        with(Share { clients: who(long(limits::USER_MAX)), ..docs.clone() }),
        with(Share { users: vec![docs.users[0].clone(); 129], ..docs.clone() }),
        ShareExport {
            shares: (0..128)
                .map(|number| Share {
                    name: format!("{number}"),
                    users: vec![who(long(62)).remove(0); 3],
                    ..docs.clone()
                })
                .collect(),
            ..own.clone()
        },
    ] {
        let mut record = record.clone();
        record.exports[0].address = ExportAddress::Shares(wrong.clone());
        assert!(record.check().is_err(), "{wrong:?}");
    }
    let mut exported = record.clone();
    let address = ExportAddress::Device;
    exported.exports.push(ExportRecord { id: 40, volume: record.exports[0].volume, address });
    assert!(exported.check().is_err(), "a second writer");
    let mut image = encode(&record.for_slot(Slot(0)));
    assert_eq!(image[24], 64, "a release that does not know shares does not read on");
    image[24] = 0;
    seal(&mut image);
    assert!(decode(&image).is_err(), "an entry that no flag announces");
    let mut image = encode(&eventful(Level::Raid5, 3).for_slot(Slot(0)));
    image[24] = 64;
    seal(&mut image);
    assert!(decode(&image).is_err(), "a flag without an entry");
}
