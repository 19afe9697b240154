//! iSCSI targets by the kernel's LIO, over a volume's ublk device. What there is, and is to be, are
//! directories, files and links of configfs (Documentation/target/ of the kernel; its
//! drivers/target/target_core_configfs.c and iscsi/iscsi_target_configfs.c).
//!
//! ```text
//! target/core/iblock_7241/palisade-ID/          the volume's device
//! target/iscsi/NAME/tpgt_1/np/ADDR:PORT/        a portal
//!                          lun/lun_1/palisade   a link to the device
//!                          acls/IQN/auth/       who may log in, and by what
//!                                   lun_1/unit  a link to lun_1
//!                          enable               1: it lets in
//! ```
//!
//! | what is wanted | what is there              | what is done                              |
//! |----------------|----------------------------|-------------------------------------------|
//! | a target       | nothing                    | it is made; `enable` comes last           |
//! | a target       | it is otherwise, or a part | it is emptied, disabled, and filled       |
//! | a target       | its device is another      | the same                                  |
//! | a target       | it, as it is wanted        | it is enabled, if it is not               |
//! | a portal       | nobody listens there       | LIO is told to                            |
//! | that it rests  | a target                   | it is disabled                            |
//! | no target      | whatever of it             | it is ended; then its device is let go    |
//!
//! Invariants
//! - Only what is named after an export of ours, and its target, is touched.
//! - Nobody is let in before a target is as it is wanted.
//! - Who asks how a target is can't write.

use crate::configfs::{
    self, CONFIG, LINK, disable, folders, is_unit, link, mkdir, name_of, put, read, rmdir, unlink,
};
use crate::lio_device;
use crate::targets::Target;
use ::iscsi::{Account, Name, UNIT};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// What a user or secret that begins so is taken for: none.
const NONE: &str = "NULL";

/// Whether the kernel has LIO with iSCSI; what of it can be loaded is.
pub fn load() -> bool {
    let modules = ["target_core_mod", "target_core_iblock", "iscsi_target_mod"];
    configfs::load(Path::new(CONFIG), "target/iscsi", &modules)
}

/// The place of an export's device.
fn device_of(id: &str) -> PathBuf {
    lio_device::place(Path::new(CONFIG), id)
}

/// The places of a target.
struct Places {
    device: PathBuf,
    target: PathBuf,
    group: PathBuf,
}

impl Places {
    fn of(id: &str, target: &Name) -> Self {
        let target = Path::new(CONFIG).join("target/iscsi").join(target.as_str());
        Self { device: device_of(id), group: target.join("tpgt_1"), target }
    }

    fn unit(&self) -> PathBuf {
        self.group.join(format!("lun/lun_{UNIT}"))
    }

    fn access(&self, name: &Name) -> PathBuf {
        self.group.join("acls").join(name.as_str())
    }

    /// What is there of access.
    fn accesses(&self) -> io::Result<Vec<PathBuf>> {
        folders(&self.group.join("acls"))
    }
}

/// Makes of what is there of an export what is wanted of its target.
///
/// # Errors
/// What the kernel says.
pub fn serve(id: &str, target: &Target) -> io::Result<()> {
    let places = Places::of(id, &target.identity.target);
    if is_as_wanted(&places, target) {
        let listens = listen(&places, target);
        let enable = places.group.join("enable");
        let enabled = if read(&enable) == "1" { Ok(()) } else { put(&enable, "1") };
        return enabled.and(listens);
    }
    empty(&places, &target.portals.iter().map(ToString::to_string).collect())?;
    make(&places, target)
}

/// Lets a target rest, whoever has it: initiators are told that it can't serve now, and ask again.
/// What is under way is waited for.
///
/// # Errors
/// What the kernel says.
pub fn rest(id: &str, target: &Name) -> io::Result<()> {
    disable(&Places::of(id, target).group.join("enable"))
}

/// Ends a target, whoever has it, and lets its device go.
///
/// # Errors
/// What the kernel says.
pub fn end(id: &str, target: &Name) -> io::Result<()> {
    let places = Places::of(id, target);
    empty(&places, &BTreeSet::new())?;
    rmdir(&places.group)?;
    rmdir(&places.target)
}

/// Lets the device of an export go.
///
/// # Errors
/// What the kernel says.
pub fn let_go(id: &str) -> io::Result<()> {
    lio_device::free(&device_of(id))
}

/// Leaves nothing of a target but its name and these portals: initiators are told that it can't
/// serve now. Those that are told that there is none give up.
fn empty(places: &Places, portals: &BTreeSet<String>) -> io::Result<()> {
    if places.group.is_dir() {
        disable(&places.group.join("enable"))?;
        for access in places.accesses()? {
            for unit in folders(&access)?.into_iter().filter(|own| is_unit(own)) {
                unlink(&unit)?;
                rmdir(&unit)?;
            }
            rmdir(&access)?;
        }
        for portal in folders(&places.group.join("np"))? {
            if !portals.contains(&name_of(&portal)) {
                rmdir(&portal)?;
            }
        }
        for unit in folders(&places.group.join("lun"))? {
            unlink(&unit)?;
            rmdir(&unit)?;
        }
    }
    lio_device::free(&places.device)
}

/// Who has a target now.
///
/// # Errors
/// What the kernel says.
pub fn sessions(id: &str, target: &Name) -> io::Result<Vec<String>> {
    let places = Places::of(id, target);
    let has = |access: &PathBuf| {
        let about = fs::read_to_string(access.join("info")).unwrap_or_default();
        about.lines().any(|line| line.starts_with("InitiatorName:"))
    };
    Ok(places.accesses()?.iter().filter(|own| has(own)).map(|own| name_of(own)).collect())
}

fn make(places: &Places, target: &Target) -> io::Result<()> {
    // It stands for none.
    let is_none =
        |own: &Account| [own.user(), own.secret().expose()].iter().any(|t| t.starts_with(NONE));
    if target.accounts().any(is_none) {
        return Err(io::Error::other("LIO takes no user or secret that begins with NULL"));
    }
    let serial = &target.identity.serial;
    lio_device::make(Path::new(CONFIG), &places.device, &target.path, serial)?;
    let group = |file: &str, text: &str| put(&places.group.join(file), text);
    mkdir(&places.target)?;
    mkdir(&places.group)?;
    // Who comes by now is told that it can't serve yet.
    let listens = listen(places, target);
    if folders(&places.group.join("np"))?.is_empty() {
        return listens;
    }
    mkdir(&places.unit())?;
    link(&places.device, &places.unit())?;
    group("attrib/generate_node_acls", "0")?;
    // A stranger is not told that it is there.
    group("attrib/demo_mode_discovery", "0")?;
    group("attrib/authentication", if target.account.is_some() { "1" } else { "0" })?;
    for name in target.allowed() {
        let access = places.access(name);
        mkdir(&access)?;
        let account = account_of(target, name);
        if let Some(account) = account {
            put(&access.join("auth/userid"), account.user())?;
            put(&access.join("auth/password"), account.secret().expose())?;
        }
        let unit = access.join(format!("lun_{UNIT}"));
        mkdir(&unit)?;
        link(&places.unit(), &unit)?;
        put(&unit.join("write_protect"), if *name == target.asker { "1" } else { "0" })?;
    }
    group("enable", "1").and(listens)
}

/// Has it listen where it does not; where some portals can't be had, it does at the others.
fn listen(places: &Places, target: &Target) -> io::Result<()> {
    let place = |portal: &SocketAddr| places.group.join("np").join(portal.to_string());
    let missing = target.portals.iter().map(place).filter(|place| !place.is_dir());
    // All are tried.
    let tried: Vec<io::Result<()>> = missing.map(|place| mkdir(&place).map(drop)).collect();
    tried.into_iter().collect()
}

/// By what a name is proved.
fn account_of<'a>(target: &'a Target, name: &Name) -> Option<&'a Account> {
    let own = target.account.as_ref()?;
    if *name == target.asker { target.asker_account.as_ref() } else { Some(own) }
}

fn is_as_wanted(places: &Places, target: &Target) -> bool {
    let group = |file: &str| read(&places.group.join(file));
    let names = |folder: &str| {
        let all = folders(&places.group.join(folder)).unwrap_or_default();
        all.iter().map(|own| name_of(own)).collect::<BTreeSet<_>>()
    };
    let access = |name: &Name| {
        let own = places.access(name);
        let account = account_of(target, name);
        let of_account = |own: fn(&Account) -> &str| account.map_or("", own);
        let unit = own.join(format!("lun_{UNIT}"));
        let writes = if *name == target.asker { "1" } else { "0" };
        read(&own.join("auth/userid")) == of_account(Account::user)
            && read(&own.join("auth/password")) == of_account(|own| own.secret().expose())
            && read(&unit.join("write_protect")) == writes
            && unit.join(LINK).is_symlink()
    };
    lio_device::is_as_wanted(&places.device, &target.path, &target.identity.serial)
        && names("np").is_subset(&target.portals.iter().map(ToString::to_string).collect())
        && names("acls") == target.allowed().map(ToString::to_string).collect()
        && target.allowed().all(access)
        && group("attrib/authentication") == if target.account.is_some() { "1" } else { "0" }
        && places.unit().join(LINK).is_symlink()
}
