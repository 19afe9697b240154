//! Block devices: what they are, what identifies them, and how they are reached.
//!
//! Purpose: one [`Device`] for each drive and partition that the kernel knows.
//!
//! An NVMe namespace that several controllers reach (native multipath) is one device below
//! `/sys/class/nvme-subsystem`, the *head*, with a hidden device for each path: the head `nvme0n1`
//! has the paths `nvme0c0n1` and `nvme0c1n1`. The head's controllers are those of its paths.
//!
//! The files are described by the kernel's `Documentation/ABI/stable/sysfs-block` and
//! `Documentation/ABI/testing/sysfs-nvme`; names of paths are those of `nvme_mpath_set_disk_name`.
//!
//! Invariant: what is read here is in the kernel's memory; a drive that hangs delays nobody.

use super::Sysfs;
use super::identity::Identity;
use super::pcie::{self, Pci, SlotLabel};
use super::read::Dir;
use super::way;
use std::path::PathBuf;

/// Bytes of the unit in which the kernel gives sizes, whatever a drive's blocks are.
const SECTOR: u64 = 512;

/// What sort of block device it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Kind {
    /// A namespace of an NVMe drive.
    Nvme,
    /// SCSI, SAS, SATA, USB.
    Scsi,
    /// A drive of a virtual machine.
    Virtio,
    /// A file as a block device.
    Loop,
    /// The device mapper.
    Mapper,
    /// Linux md.
    Md,
    /// Another sort.
    #[default]
    Other,
}

impl Kind {
    /// Its name for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nvme => "nvme",
            Self::Scsi => "scsi",
            Self::Virtio => "virtio",
            Self::Loop => "loop",
            Self::Mapper => "dm",
            Self::Md => "md",
            Self::Other => "other",
        }
    }
}

/// How an NVMe controller is reached, or another device behind a network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Transport {
    /// It is plugged into this machine.
    Pcie,
    /// NVMe over TCP, iSCSI, and other devices behind TCP.
    Tcp,
    /// NVMe over RDMA, iSER, SRP.
    Rdma,
    /// NVMe or SCSI over Fibre Channel.
    Fc,
    /// A target of this kernel's own.
    Loop,
    /// A way that we don't know.
    Other,
}

impl Transport {
    /// By the kernel's word (the file `transport`).
    fn of(text: &str) -> Self {
        match text {
            "pcie" => Self::Pcie,
            "tcp" => Self::Tcp,
            "rdma" => Self::Rdma,
            "fc" => Self::Fc,
            "loop" => Self::Loop,
            _ => Self::Other,
        }
    }

    /// Its name for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pcie => "pcie",
            Self::Tcp => "tcp",
            Self::Rdma => "rdma",
            Self::Fc => "fc",
            Self::Loop => "loop",
            Self::Other => "other",
        }
    }

    /// Whether a network is between: the drive may be well though it went.
    pub fn is_remote(self) -> bool {
        matches!(self, Self::Tcp | Self::Rdma | Self::Fc)
    }
}

/// An NVMe controller.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Controller {
    /// The kernel's name: `nvme0`.
    pub name: String,
    /// Major and minor number of its character device, which is [`Controller::node`].
    pub number: Option<(u32, u32)>,
    /// How it is reached.
    pub transport: Option<Transport>,
    /// What the kernel does with it: `live`, `connecting`, `deleting` and so on.
    pub state: Option<String>,
    /// Where it is: a PCI address, or `traddr=…,trsvcid=…`.
    pub address: Option<String>,
    /// Its PCI function, if it is plugged into this machine.
    pub pci: Option<Pci>,
}

impl Controller {
    /// Its character device, which takes admin commands.
    pub fn node(&self) -> PathBuf {
        PathBuf::from("/dev").join(&self.name)
    }
}

/// A block device: a whole drive, or a partition of one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Device {
    /// The kernel's name, as below `/dev`: `nvme0n1p1`.
    pub name: String,
    /// Major and minor number; a hidden device has none.
    pub number: Option<(u32, u32)>,
    /// The number of this appearance of the drive since the machine started: never used again,
    /// and another one when the drive was taken out and put back (Linux 5.15).
    pub diskseq: Option<u64>,
    /// Which partition of its drive it is; `None` for a whole drive.
    pub partition: Option<u32>,
    /// The kernel's name of the drive that it is a partition of: that of the directory above its
    /// own, whatever its own name is.
    pub part_of: Option<String>,
    /// Its size in bytes.
    pub bytes: Option<u64>,
    /// What identifies it.
    pub identity: Identity,
    /// Its drive's model.
    pub model: Option<String>,
    /// The version of its drive's firmware.
    pub firmware: Option<String>,
    /// What sort it is.
    pub kind: Kind,
    /// Whether it is only a path of another device, and nobody can open it.
    pub hidden: bool,
    /// The NVMe controllers that reach it, by name; empty for other kinds.
    pub controllers: Vec<Controller>,
    /// The network on a way to it, for other kinds than NVMe drives.
    pub network: Option<Transport>,
    /// The PCI function of its first controller, or of a virtual machine's drive.
    pub pci: Option<Pci>,
}

impl Device {
    /// Its node.
    pub fn node(&self) -> PathBuf {
        PathBuf::from("/dev").join(&self.name)
    }

    /// How it is reached, as far as is known: by the first of its controllers that says so, or by
    /// the network that is between.
    pub fn transport(&self) -> Option<Transport> {
        self.controllers.iter().find_map(|controller| controller.transport).or(self.network)
    }

    /// Whether a network is between on some way to it: if it goes, it may still be well.
    pub fn is_remote(&self) -> bool {
        let transports = self.controllers.iter().filter_map(|c| c.transport);
        transports.chain(self.network).any(Transport::is_remote)
    }
}

/// `259:0`.
fn numbers(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The number behind a word, and nothing else: 0 in `nvme0` for `nvme`.
pub(super) fn number_behind<'a>(name: &'a str, word: &str) -> Option<&'a str> {
    let number = name.strip_prefix(word)?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(number)
}

/// Whether a hidden device is a path of this head: `nvme0c1n2` of `nvme0n2`.
fn is_path_of(path: &str, head: &str) -> bool {
    let halves = |name: &str| -> Option<(String, String)> {
        let (before, namespace) = name.rsplit_once('n')?;
        Some((before.to_owned(), namespace.to_owned()))
    };
    let (Some((path, namespace)), Some((head, same))) = (halves(path), halves(head)) else {
        return false;
    };
    let Some((subsystem, controller)) = path.rsplit_once('c') else { return false };
    let is_number = !controller.is_empty() && controller.bytes().all(|b| b.is_ascii_digit());
    namespace == same && subsystem == head && is_number
}

fn controller(dir: &Dir<'_>, slots: &[SlotLabel]) -> Controller {
    let transport = dir.text("transport").map(|text| Transport::of(&text));
    let is_plugged = transport == Some(Transport::Pcie);
    Controller {
        name: dir.name().to_owned(),
        number: dir.text("dev").and_then(|text| numbers(&text)),
        transport,
        state: dir.text("state"),
        address: dir.text("address"),
        pci: is_plugged.then(|| pcie::function_of(dir, slots)).flatten(),
    }
}

/// The controllers that reach a namespace. `of` is what its `device` leads to: the only controller,
/// or the subsystem of a head.
fn controllers(drive: &Dir<'_>, of: &Dir<'_>, slots: &[SlotLabel]) -> Vec<Controller> {
    if of.has("transport") {
        return vec![controller(of, slots)];
    }
    let reaches = |dir: &Dir<'_>| dir.entries().iter().any(|path| is_path_of(path, drive.name()));
    let all = of.children().into_iter();
    let named = all.filter(|(name, _)| number_behind(name, "nvme").is_some());
    named.filter(|(_, dir)| reaches(dir)).map(|(_, dir)| controller(&dir, slots)).collect()
}

/// The network on a way to the NVMe drive in this directory.
pub(super) fn fabric(drive: &Dir<'_>) -> Option<Transport> {
    let of = drive.at("device").filter(|_| kind(drive) == Kind::Nvme)?;
    let transports = controllers(drive, &of, &[]).into_iter().filter_map(|c| c.transport);
    transports.into_iter().find(|transport| transport.is_remote())
}

fn kind(drive: &Dir<'_>) -> Kind {
    let of = drive.at("device").and_then(|device| device.linked("subsystem"));
    match of.as_deref() {
        Some("nvme" | "nvme-subsystem") => Kind::Nvme,
        Some("scsi") => Kind::Scsi,
        Some("virtio") => Kind::Virtio,
        _ if drive.has("dm") => Kind::Mapper,
        _ if drive.has("md") => Kind::Md,
        _ if number_behind(drive.name(), "loop").is_some() => Kind::Loop,
        _ => Kind::Other,
    }
}

/// What identifies the drive in this directory, or its partition.
fn identity(drive: &Dir<'_>, partition: Option<u32>) -> Identity {
    let first = |names: &[&str]| names.iter().find_map(|name| drive.text(name));
    let wwid = first(&["wwid", "device/wwid", "dm/uuid"]);
    Identity {
        wwid: wwid.map(|wwid| match partition {
            Some(number) => format!("{wwid}-part{number}"),
            None => wwid,
        }),
        serial: first(&["device/serial", "serial"]),
        namespace: drive.number("nsid"),
        partition,
    }
}

/// The drive of what is in this directory, and which partition of it that is.
pub(super) fn drive_of<'a>(own: &Dir<'a>) -> (Dir<'a>, Option<u32>) {
    let partition = own.number("partition");
    match (partition, own.parent()) {
        (Some(_), Some(parent)) => (parent, partition),
        _ => (own.clone(), partition),
    }
}

/// The block device in this directory.
fn device(own: &Dir<'_>, slots: &[SlotLabel]) -> Device {
    let (drive, partition) = drive_of(own);
    let kind = kind(&drive);
    let of = drive.at("device");
    let controllers = match (kind, &of) {
        (Kind::Nvme, Some(of)) => controllers(&drive, of, slots),
        _ => Vec::new(),
    };
    let of_controller = controllers.iter().find_map(|controller| controller.pci.clone());
    let own_function = (kind == Kind::Virtio).then(|| pcie::function_of(&drive, slots)).flatten();
    let sectors: Option<u64> = own.number("size");
    // The kernel has `!` where `/dev` has a directory.
    let name = |dir: &Dir<'_>| dir.name().replace('!', "/");
    Device {
        name: name(own),
        number: own.text("dev").and_then(|text| numbers(&text)),
        diskseq: drive.number("diskseq"),
        partition,
        part_of: partition.is_some().then(|| name(&drive)),
        bytes: sectors.and_then(|sectors| sectors.checked_mul(SECTOR)),
        identity: identity(&drive, partition),
        model: drive.text("device/model"),
        firmware: drive.text("device/firmware_rev").or_else(|| drive.text("device/rev")),
        kind,
        hidden: drive.text("hidden").as_deref() == Some("1"),
        pci: of_controller.or(own_function),
        network: (kind != Kind::Nvme).then(|| way::network(&drive)).flatten(),
        controllers,
    }
}

impl Sysfs {
    /// All block devices by name: drives, their partitions, and hidden paths.
    pub fn devices(&self) -> Vec<Device> {
        let Some(class) = self.dir().at("class/block") else { return Vec::new() };
        let slots = pcie::labels(&self.dir());
        class.children().iter().map(|(_, dir)| device(dir, &slots)).collect()
    }

    /// The block device with this major and minor number.
    pub fn device(&self, major: u32, minor: u32) -> Option<Device> {
        let own = self.block(major, minor)?;
        Some(device(&own, &pcie::labels(&self.dir())))
    }

    /// Where the kernel tells of the block device with this number.
    pub fn directory(&self, major: u32, minor: u32) -> Option<PathBuf> {
        Some(self.block(major, minor)?.whole_path())
    }

    /// What identifies the block device with this number, and its drive's model.
    pub fn identify(&self, major: u32, minor: u32) -> Option<(Identity, Option<String>)> {
        let (drive, partition) = drive_of(&self.block(major, minor)?);
        Some((identity(&drive, partition), drive.text("device/model")))
    }

    /// What was written to the block device with this number since the machine started: requests,
    /// those merged with others, and units of 512 bytes (the kernel's `Documentation/block/stat`).
    pub fn writes(&self, major: u32, minor: u32) -> Option<[u64; 3]> {
        let text = self.block(major, minor)?.text("stat")?;
        let numbers: Option<Vec<u64>> =
            text.split(' ').skip(4).take(3).map(|n| n.parse().ok()).collect();
        numbers?.try_into().ok()
    }

    fn block(&self, major: u32, minor: u32) -> Option<Dir<'_>> {
        self.dir().at(&format!("dev/block/{major}:{minor}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_known_by_their_names() {
        for (path, head, expected) in [
            ("nvme0c0n1", "nvme0n1", true),
            ("nvme10c12n3", "nvme10n3", true),
            ("nvme0c0n1", "nvme0n2", false),
            ("nvme0c0n1", "nvme1n1", false),
            ("nvme0c0n11", "nvme0n1", false),
            ("nvme0n1", "nvme0n1", false),
            ("nvme0cn1", "nvme0n1", false),
            ("hwmon1", "nvme0n1", false),
            ("ng0n1", "nvme0n1", false),
            ("", "nvme0n1", false),
        ] {
            assert_eq!(is_path_of(path, head), expected, "{path} {head}");
        }
    }

    #[test]
    fn words_of_the_kernel_are_known() {
        for (text, transport, remote) in [
            ("pcie", Transport::Pcie, false),
            ("tcp", Transport::Tcp, true),
            ("rdma", Transport::Rdma, true),
            ("fc", Transport::Fc, true),
            ("loop", Transport::Loop, false),
            ("apple", Transport::Other, false),
        ] {
            assert_eq!(Transport::of(text), transport);
            assert_eq!(transport.is_remote(), remote, "{text}");
            assert!(transport.name() == text || transport == Transport::Other);
        }
        assert_eq!(numbers("259:3"), Some((259, 3)));
        for wrong in ["", "259", "259:", ":3", "a:b", "1:2:3"] {
            assert_eq!(numbers(wrong), None, "{wrong}");
        }
    }
}
