//! Bodies of what is created: arrays, volumes, exports.

use super::bodies::{MOST_DRIVES, MOST_NAMES};
use super::node::{Fields, Node};
use super::{Change, links, nothing};
use crate::access::Secret;
use crate::error::Refusal;
use crate::routes::Match;
use crate::view::{self, NamedDrive, View};

/// The strip size of an array that names none.
const STRIP: u32 = 65536;

/// Types of RAID (Swordfish, `Volume.RAIDType`), and levels.
const LEVELS: [(&str, &str); 6] = [
    ("RAID0", "0"),
    ("RAID1", "1"),
    ("RAID5", "5"),
    ("RAID6", "6"),
    ("RAID10", "10"),
    ("None", "jbod"),
];

/// Types of volumes that old clients send besides (`Volume.VolumeType`), and the levels they fit.
const TYPES: [(&str, &[&str]); 5] = [
    ("NonRedundant", &["0", "jbod"]),
    ("RawDevice", &["jbod"]),
    ("Mirrored", &["1"]),
    ("StripedWithParity", &["5", "6"]),
    ("SpannedMirrors", &["10"]),
];

/// The level that a type of RAID, or the product's own word, names; both must agree.
fn level(raid: Option<&Node<'_>>, own: Option<&Node<'_>>) -> Result<Option<&'static str>, Refusal> {
    let of_type = match raid {
        Some(node) => {
            let text = node.text()?;
            let known = LEVELS.iter().find(|(name, _)| *name == text);
            let (_, level) = known.ok_or_else(|| node.not_in(&LEVELS.map(|(name, _)| name)))?;
            Some(*level)
        }
        None => None,
    };
    let Some(node) = own else { return Ok(of_type) };
    let text = node.text()?;
    let known = LEVELS.iter().find(|(_, level)| *level == text);
    let (_, level) = known.ok_or_else(|| node.not_in(&LEVELS.map(|(_, level)| level)))?;
    match (of_type, raid) {
        (Some(other), Some(raid)) if other != *level => {
            Err(node.conflict(raid.path().trim_start_matches("#/")))
        }
        _ => Ok(Some(*level)),
    }
}

/// Drives whose foreign content may be destroyed.
pub fn overwrite(view: &View, fields: &mut Fields<'_>) -> Result<Vec<NamedDrive>, Refusal> {
    match fields.take("Overwrite") {
        Some(drives) => links::drives(view, &drives, 0, MOST_DRIVES),
        None => Ok(Vec::new()),
    }
}

/// Our own keys of a new array: which of its drives may be overwritten, whether some may die
/// together, and whether other servers may reach them.
fn of_drives(view: &View, mut oem: Fields<'_>) -> Result<(Vec<NamedDrive>, bool, bool), Refusal> {
    let overwrite = overwrite(view, &mut oem)?;
    let (same_drive, shared) = (oem.flag("SameDrive")?, oem.flag("Shared")?);
    oem.end()?;
    Ok((overwrite, same_drive, shared))
}

/// The members of `CapacitySources[0].{what}.Members`.
fn provided<'a>(sources: &Node<'a>, what: &str) -> Result<Node<'a>, Refusal> {
    let mut source = sources.only()?.fields()?;
    let mut providing = source.need(what)?.fields()?;
    let items = providing.need("Members")?;
    providing.end()?;
    source.end()?;
    Ok(items)
}

/// `POST StoragePools`.
pub fn array(view: &View, mut fields: Fields<'_>) -> Result<Change, Refusal> {
    let name = fields.need("Name")?.text()?.to_owned();
    let raid = match fields.take("SupportedRAIDTypes") {
        Some(types) => Some(types.only()?),
        None => None,
    };
    let mut oem = fields.oem()?;
    let own = oem.take("Level");
    let level = level(raid.as_ref(), own.as_ref())?;
    let level = level.ok_or_else(|| fields.missing("SupportedRAIDTypes"))?.to_owned();
    let items = provided(&fields.need("CapacitySources")?, "ProvidingDrives")?;
    let drives = links::drives(view, &items, 1, MOST_DRIVES)?;
    let strip_bytes = oem.take("StripSizeBytes").map_or(Ok(STRIP), |node| node.whole_u32(0))?;
    let block_bytes = oem.take("BlockSizeBytes").map(|node| node.whole_u32(1)).transpose()?;
    let (overwrite, same_drive, shared) = of_drives(view, oem)?;
    fields.end()?;
    Ok(Change::CreateArray(view::CreateArray {
        name,
        level,
        drives,
        strip_bytes,
        block_bytes,
        overwrite,
        same_drive,
        shared,
    }))
}

/// `POST Volumes`: in an array, or on drives.
pub fn volume(view: &View, mut fields: Fields<'_>) -> Result<Change, Refusal> {
    match (fields.take("CapacitySources"), fields.take("Links")) {
        (Some(_), Some(links)) => Err(links.conflict("CapacitySources")),
        (Some(sources), None) => volume_in_array(view, fields, &sources),
        (None, Some(links)) => volume_on_drives(view, fields, &links),
        (None, None) => Err(fields.missing("CapacitySources")),
    }
}

fn volume_in_array(
    view: &View,
    mut fields: Fields<'_>,
    sources: &Node<'_>,
) -> Result<Change, Refusal> {
    let name = fields.need("Name")?.text()?.to_owned();
    let size_bytes = fields.need("CapacityBytes")?.whole(1, u64::MAX)?;
    let pool = provided(sources, "ProvidingPools")?.only()?;
    let array = links::pool(view, &pool)?.uuid.clone();
    fields.end()?;
    Ok(Change::CreateVolume(view::CreateVolume { array, name, size_bytes }))
}

/// A name that no array has.
fn free_name(view: &View) -> String {
    let name = |number: usize| format!("volume{number}");
    let is_free = |name: &String| view.status.arrays.iter().all(|array| array.name != *name);
    (1..).map(name).find(is_free).unwrap_or_default()
}

/// What clients say of a volume that has one answer here: its type follows from its level, and
/// nothing is encrypted.
fn agree(fields: &mut Fields<'_>, level: &str) -> Result<(), Refusal> {
    if let Some(kind) = fields.take("VolumeType") {
        let word = kind.word(&TYPES.map(|(name, _)| name))?;
        let fits = |(name, levels): &(&str, &[&str])| *name == word && levels.contains(&level);
        if !TYPES.iter().any(fits) {
            return Err(kind.conflict("RAIDType"));
        }
    }
    match fields.take("Encrypted") {
        Some(encrypted) if encrypted.truth()? => Err(encrypted.not_in(&["false"])),
        _ => Ok(()),
    }
}

fn volume_on_drives(
    view: &View,
    mut fields: Fields<'_>,
    linked: &Node<'_>,
) -> Result<Change, Refusal> {
    let name = fields.take("Name").map(|node| node.text()).transpose()?;
    let name = name.map_or_else(|| free_name(view), str::to_owned);
    let raid = fields.need("RAIDType")?;
    let mut oem = fields.oem()?;
    let own = oem.take("Level");
    let level = level(Some(&raid), own.as_ref())?.unwrap_or_default().to_owned();
    agree(&mut fields, &level)?;
    let mut linked = linked.fields()?;
    let drives = links::drives(view, &linked.need("Drives")?, 1, MOST_DRIVES)?;
    linked.end()?;
    let size_bytes =
        fields.take("CapacityBytes").map(|node| node.whole(1, u64::MAX)).transpose()?;
    let strip_bytes = fields.take("StripSizeBytes").map_or(Ok(STRIP), |node| node.whole_u32(1))?;
    let (overwrite, same_drive, shared) = of_drives(view, oem)?;
    fields.end()?;
    let block_bytes = None;
    let array = view::CreateArray {
        name,
        level,
        drives,
        strip_bytes,
        block_bytes,
        overwrite,
        same_drive,
        shared,
    };
    Ok(Change::CreateVolumeOnDrives { array, size_bytes })
}

/// As what a volume is wanted on the machine.
fn local(oem: &mut Fields<'_>) -> Result<view::LocalExport, Refusal> {
    let mut text = |name| oem.take(name).map(|node| node.text().map(str::to_owned)).transpose();
    let (file, socket) = (text("File")?, text("Socket")?);
    Ok(match (file, socket, oem.flag("Ublk")?) {
        (Some(path), None, false) => view::LocalExport::File(path),
        (None, Some(path), false) => view::LocalExport::VhostUser(path),
        (None, None, true) => view::LocalExport::Ublk,
        (None, None, false) => view::LocalExport::Device,
        _ => view::LocalExport::Several,
    })
}

/// How a volume is wanted over iSCSI.
fn iscsi(oem: &mut Fields<'_>) -> Result<view::CreateIscsi, Refusal> {
    const SERVERS: [(&str, view::IscsiServer); 2] =
        [("Lio", view::IscsiServer::Lio), ("Tgt", view::IscsiServer::Tgt)];
    let server = oem.take("Server").map(|node| node.word(&SERVERS.map(|(word, _)| word)));
    let server = server.transpose()?;
    let user = oem.take("User").map(|node| node.text()).transpose()?;
    let secret = oem.take("Secret").map(|node| node.secret().map(Secret::new)).transpose()?;
    Ok(view::CreateIscsi {
        portals: oem.need("Portals")?.texts(1, MOST_NAMES)?,
        initiators: oem.need("Initiators")?.texts(1, MOST_NAMES)?,
        advertise: oem.texts("Advertise", MOST_NAMES)?,
        user: user.map(str::to_owned),
        secret,
        server: SERVERS.iter().find(|(word, _)| server == Some(*word)).map(|(_, own)| *own),
    })
}

/// How a volume is wanted at a Fibre Channel port.
fn fc(oem: &mut Fields<'_>) -> Result<view::CreateFc, Refusal> {
    let protocol = oem.take("Protocol").map(|node| node.word(&["Fcp", "Nvme"])).transpose()?;
    Ok(view::CreateFc {
        port: oem.need("Port")?.text()?.to_owned(),
        is_nvme: protocol == Some("Nvme"),
        initiators: oem.need("Initiators")?.texts(1, MOST_NAMES)?,
    })
}

/// `POST Connections` of a fabric.
pub fn export(view: &View, found: &Match, mut fields: Fields<'_>) -> Result<Change, Refusal> {
    let fabric = found.id(0);
    if !["nvme", "nbd", "iscsi", "fc", "local"].contains(&fabric) {
        return Err(nothing(found));
    }
    if let Some(kind) = fields.take("ConnectionType") {
        kind.word(&["Storage"])?;
    }
    let mut info = fields.need("VolumeInfo")?.only()?.fields()?;
    let (array, volume) = links::linked_volume(view, &info.need("Volume")?)?;
    info.end()?;
    let mut oem = fields.oem()?;
    let mut request = view::CreateExport {
        array: array.uuid.clone(),
        volume: volume.uuid.clone(),
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
    if fabric == "iscsi" {
        request.iscsi = Some(iscsi(&mut oem)?);
    } else if fabric == "fc" {
        request.fc = Some(fc(&mut oem)?);
    } else if fabric == "local" {
        request.local = Some(local(&mut oem)?);
    } else if fabric == "nvme" {
        let listeners = oem.need("Listeners")?;
        request.nvme_tcp = listeners.texts(1, MOST_NAMES)?;
        let subsystem = oem.take("Subsystem").map(|node| node.text()).transpose()?;
        request.subsystem = subsystem.map(str::to_owned);
        request.hosts = oem.texts("Hosts", MOST_NAMES)?;
        request.any_host = oem.flag("AnyHost")?;
        request.advertise = oem.texts("Advertise", MOST_NAMES)?;
    } else {
        request.nbd = Some(oem.need("Listeners")?.only()?.text()?.to_owned());
    }
    oem.end()?;
    fields.end()?;
    Ok(Change::CreateExport(request))
}
