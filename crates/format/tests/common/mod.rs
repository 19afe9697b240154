//! Records for the tests.
#![allow(dead_code)]

use layout::{Layout, Level};
use palisade_format::{
    Access, ArrayRecord, ExportAddress, ExportRecord, Extent, FcExport, Filesystem, IscsiExport,
    IscsiServer, LastScrub, Listener, LostRange, LostReason, MakeFilesystem, NvmeExport,
    NvmeFcExport, Owner, Paused, ScrubMode, ScrubRecord, Share, ShareExport, SlotState,
    VolumeRecord, split,
};
use units::{MIB, Uuid, Wwpn};

pub fn uuid(n: u8) -> Uuid {
    Uuid::from_random([n; 16])
}

/// A clean array of `drives` drives of 8 MiB data area, made in epoch 1.
pub fn plain(level: Level, drives: u16) -> ArrayRecord {
    let split = split(12 * MIB);
    let layout = Layout::new(level, drives, 64 << 10, split.data_bytes).unwrap();
    assert_eq!(layout.data_bytes(), 8 * MIB);
    let slots: Vec<_> = (0..drives).map(|n| (uuid(n as u8 + 1), format!("S{n:04}"))).collect();
    let mut record = ArrayRecord::new(uuid(0xa0), "tank", 0x1111, 4096, &layout, &split, &slots);
    record.zeroed = true;
    record
}

/// An array in which everything that can be recorded is: a failed and a rebuilding drive, each
/// whole up to some epoch, an unclean group, two volumes, exports, a scrub, an owner.
pub fn eventful(level: Level, drives: u16) -> ArrayRecord {
    let mut record = plain(level, drives);
    let layout = record.layout().unwrap();
    record.slots[1].state = SlotState::Failed;
    record.next_epoch(0x2222);
    record.slots[0].state = SlotState::Rebuilding { border: 17 };
    record.next_epoch(0x3333);
    for slot in record.slots.iter_mut().filter(|slot| slot.state != SlotState::InSync) {
        slot.since = slot.last.counter.min(2);
    }
    record.sequence = 77;
    record.groups[0].unclean = true;
    let row = layout.row_bytes(0);
    let extent = |n: u64| Extent { array_start: n * row, bytes: row };
    record.volumes = vec![
        VolumeRecord {
            uuid: uuid(0xb0),
            name: "data".into(),
            bytes: 2 * row - 4096,
            extents: vec![extent(3), extent(1)],
        },
        VolumeRecord {
            uuid: uuid(0xb1),
            name: "Zürich".into(),
            bytes: row,
            extents: vec![extent(0)],
        },
    ];
    let export = |id, volume, address| ExportRecord { id, volume, address };
    record.exports = vec![
        export(1, uuid(0xb0), ExportAddress::NbdTcp("127.0.0.1:10809".into())),
        export(7, uuid(0xb1), ExportAddress::NbdUnix("/run/palisade/nbd.sock".into())),
    ];
    record.last_scrub = Some(LastScrub {
        checked_bytes: 123 << 20,
        mismatches: 2,
        repaired: 1,
        unlocated: 0,
        unreadable: 0,
        unix_seconds: 1_790_000_000,
    });
    record.owner = Some(Owner { host: uuid(0xc0), boot: uuid(0xc1) });
    record.heartbeat = 99;
    record.started_degraded = true;
    record
}

/// The same array with exports over NVMe/TCP.
pub fn with_nvme(mut record: ArrayRecord) -> ArrayRecord {
    let listener = |address: &str, advertise: Option<&str>| Listener {
        address: address.into(),
        advertise: advertise.map(Into::into),
    };
    let export = |nsid, listeners, hosts| {
        let subsystem = "nqn.2026-11.example:store".into();
        ExportAddress::NvmeTcp(NvmeExport { subsystem, nsid, listeners, hosts })
    };
    let two = vec![
        listener("0.0.0.0:4420", Some("203.0.113.7:44200")),
        listener("[2001:db8::1]:4420", None),
    ];
    let hosts = vec!["nqn.2026-11.example:a".into(), "nqn.2026-11.example:b".into()];
    let record_of = |id, volume, address| ExportRecord { id, volume, address };
    let (one, other) = (record.exports[0].volume, record.exports[1].volume);
    record.exports.push(record_of(8, one, export(1, two, Some(hosts))));
    let alone = vec![listener("127.0.0.1:4420", None)];
    record.exports.push(record_of(9, other, export(2, alone, None)));
    record
}

/// The same array with exports that the server itself uses.
pub fn with_local(mut record: ArrayRecord) -> ArrayRecord {
    let volume = record.exports[0].volume;
    record.exports.push(ExportRecord { id: 18, volume, address: ExportAddress::Device });
    let address = ExportAddress::File("/srv/Zürich/volume 1".into());
    record.exports.push(ExportRecord { id: 19, volume, address });
    record.exports.push(ExportRecord { id: 20, volume, address: ExportAddress::Ublk });
    let address = ExportAddress::VhostUser("/run/machine 1.sock".into());
    record.exports.push(ExportRecord { id: 21, volume, address });
    record
}

/// The same array with exports over iSCSI.
pub fn with_iscsi(mut record: ArrayRecord) -> ArrayRecord {
    let listener = |address: &str, advertise: Option<&str>| Listener {
        address: address.into(),
        advertise: advertise.map(Into::into),
    };
    let two = vec![
        listener("0.0.0.0:3260", Some("203.0.113.7:32600")),
        listener("[2001:db8::1]:3260", None),
    ];
    let names = ["iqn.2026-11.example:a", "eui.02004567a425678d"];
    let (one, other) = (record.exports[0].volume, record.exports[1].volume);
    let address = ExportAddress::Iscsi(IscsiExport {
        portals: two,
        initiators: names.map(Into::into).to_vec(),
        user: Some("host-a".into()),
        secret: 0x0012_3456,
        server: IscsiServer::Tgt,
    });
    record.exports.push(ExportRecord { id: 28, volume: one, address });
    let address = ExportAddress::Iscsi(IscsiExport {
        portals: vec![listener("127.0.0.1:3260", None)],
        initiators: vec![names[0].into()],
        user: None,
        secret: 0,
        server: IscsiServer::Any,
    });
    record.exports.push(ExportRecord { id: 29, volume: other, address });
    record
}

/// The same array with shares of a volume that has no other exports.
pub fn with_shares(mut record: ArrayRecord) -> ArrayRecord {
    let own = |who: &str, read_only| Access { who: who.into(), read_only };
    let docs = Share {
        name: "docs".into(),
        smb: true,
        nfs: true,
        read_only: false,
        users: vec![own("alice", false), own("bob", true)],
        clients: vec![own("10.0.0.0/8", false), own("fd00::/64", true)],
    };
    let (users, clients) = (Vec::new(), Vec::new());
    let name = "Größe 1".into();
    let other = Share { name, smb: true, nfs: false, read_only: true, users, clients };
    let shares = |make, shares| {
        let (smb, nfs) = ("0.0.0.0:445".into(), "[::1]:2049".into());
        ExportAddress::Shares(ShareExport { make, smb, nfs, shares })
    };
    let make = MakeFilesystem { kind: Filesystem::Ext4, overwrite: true };
    let (one, two) = (record.exports[0].volume, record.exports[1].volume);
    let address = shares(None, vec![docs.clone(), other]);
    record.exports = vec![ExportRecord { id: 38, volume: one, address }];
    let address = shares(Some(make), vec![Share { name: "more".into(), smb: false, ..docs }]);
    record.exports.push(ExportRecord { id: 39, volume: two, address });
    record
}

/// The same array with volumes at Fibre Channel ports, by FCP and by NVMe.
pub fn with_fc(mut record: ArrayRecord) -> ArrayRecord {
    let name = |last| Wwpn([0x20, 0, 0, 0x25, 0xb5, 0, 0, last]);
    let (one, other) = (record.exports[0].volume, record.exports[1].volume);
    let (port, initiators) = (name(0x1f), vec![name(1), name(2)]);
    let address = ExportAddress::Fc(FcExport { port, unit: 7, initiators });
    record.exports.push(ExportRecord { id: 48, volume: one, address });
    let hosts = vec!["nqn.2026-11.example:a".into(), "nqn.2026-11.example:b".into()];
    let address = ExportAddress::NvmeFc(NvmeFcExport { port, hosts });
    record.exports.push(ExportRecord { id: 49, volume: other, address });
    record
}

/// The same array with lost ranges, tasks that wait, and a scrub that has not ended.
pub fn troubled(mut record: ArrayRecord) -> ArrayRecord {
    let range = |start, bytes, reason| LostRange { start, bytes, reason };
    record.lost = vec![
        range(0, 4096, LostReason::Crash),
        range(4096, 8192, LostReason::Rebuild),
        range(1 << 20, 3 << 20, LostReason::Resync),
    ];
    record.paused = Paused { rebuild: true, resync: false, scrub: true };
    record.scrub = Some(ScrubRecord {
        mode: ScrubMode::Repair,
        group: 0,
        stripe: 5,
        checked_bytes: 6,
        mismatches: 7,
        repaired: 8,
        unlocated: 9,
        unreadable: 10,
    });
    if let Some(scrub) = &mut record.last_scrub {
        (scrub.unlocated, scrub.unreadable) = (3, 4);
    }
    record
}

/// Levels and widths that stand for all.
pub const SHAPES: [(Level, u16); 6] = [
    (Level::Jbod, 3),
    (Level::Raid0, 2),
    (Level::Raid1, 3),
    (Level::Raid5, 8),
    (Level::Raid6, 32),
    (Level::Raid10, 6),
];

/// Makes both CRCs right again after the image was changed.
pub fn seal(image: &mut [u8]) {
    let crc = |bytes: &[u8]| {
        // Bit by bit, after the document, so that the test does not trust the code's CRC.
        let mut crc = u32::MAX;
        for byte in bytes {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
            }
        }
        (!crc).to_le_bytes()
    };
    assert_eq!(crc(b"123456789"), 0xe306_9283_u32.to_le_bytes());
    let len = u32::from_le_bytes(image[28..32].try_into().unwrap()) as usize;
    let end = (palisade_format::limits::HEADER_BYTES + len).min(image.len());
    let body = crc(&image[palisade_format::limits::HEADER_BYTES..end]);
    image[40..44].copy_from_slice(&body);
    let header = crc(&image[..124]);
    image[124..128].copy_from_slice(&header);
}
