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

use crate::targets::Target;
use crate::{lock, modprobe, not_started};
use ::iscsi::{Account, Name, PRODUCT, UNIT, VENDOR};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Where the kernel has them.
const ROOT: &str = "/sys/kernel/config/target";
/// What devices of ours are under: an adapter of the kind `iblock`, with a number of ours.
const ADAPTER: &str = "core/iblock_7241";
/// What the names of devices of ours begin with.
const PREFIX: &str = "palisade-";
/// What a user or secret that begins so is taken for: none.
const NONE: &str = "NULL";
/// How long a target may take to be disabled, and how often it is looked.
const LIMIT: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);
/// What links are called.
const LINK: &str = "palisade";

/// Whether the kernel has LIO with iSCSI; what of it can be loaded is.
pub fn load() -> bool {
    let is_there = || Path::new(ROOT).join("iscsi").is_dir();
    if is_there() {
        return true;
    }
    modprobe(&["configfs", "target_core_mod", "target_core_iblock", "iscsi_target_mod"]);
    let config = Path::new(ROOT).parent().unwrap_or(Path::new(ROOT));
    if !Path::new(ROOT).is_dir() && config.is_dir() {
        let flags = rustix::mount::MountFlags::empty();
        // What came of it is seen by what is there.
        let _ = rustix::mount::mount("configfs", config, "configfs", flags, None);
    }
    let _ = fs::create_dir(Path::new(ROOT).join("iscsi"));
    is_there()
}

/// The place of an export's device.
fn device_of(id: &str) -> PathBuf {
    Path::new(ROOT).join(ADAPTER).join(format!("{PREFIX}{id}"))
}

/// The places of a target.
struct Places {
    device: PathBuf,
    target: PathBuf,
    group: PathBuf,
}

impl Places {
    fn of(id: &str, target: &Name) -> Self {
        let target = Path::new(ROOT).join("iscsi").join(target.as_str());
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
    free(&device_of(id))
}

fn free(device: &Path) -> io::Result<()> {
    rmdir(device)?;
    if let Some(adapter) = device.parent() {
        // It has others, or is gone.
        let _ = fs::remove_dir(adapter);
    }
    Ok(())
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
    free(&places.device)
}

/// Disables a target: what is under way is waited for. It waits for a device that waits for the
/// daemon, and this process has to bring that back: a child does it.
fn disable(enable: &Path) -> io::Result<()> {
    static AT_WORK: Mutex<BTreeMap<PathBuf, Child>> = Mutex::new(BTreeMap::new());
    let late = || io::Error::other("LIO waits for what is under way");
    let mut child = match lock(&AT_WORK).remove(enable) {
        Some(child) => child,
        None if read(enable) != "1" => return Ok(()),
        None => {
            let mut tee = Command::new("tee");
            let tee = tee.arg(enable).stdin(Stdio::piped()).stdout(Stdio::null());
            let mut child = tee
                .stderr(Stdio::null())
                .spawn()
                .map_err(|error| not_started("tee", "coreutils", &error))?;
            if let Some(mut pipe) = child.stdin.take() {
                pipe.write_all(b"0")?;
            }
            child
        }
    };
    let end = Instant::now() + LIMIT;
    while child.try_wait()?.is_none() {
        if Instant::now() > end {
            lock(&AT_WORK).insert(enable.to_owned(), child);
            return Err(late());
        }
        std::thread::sleep(LOOK);
    }
    if read(enable) == "1" { Err(late()) } else { Ok(()) }
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
    fs::create_dir_all(&places.device).map_err(|error| named(&places.device, &error))?;
    // Where reservations are kept that are to last: without it there are none.
    let kept = read(&Path::new(ROOT).join("dbroot"));
    if !kept.is_empty() {
        let _ = fs::create_dir_all(Path::new(&kept).join("pr"));
    }
    let device = |file: &str, text: &str| put(&places.device.join(file), text);
    let path = target.path.display().to_string();
    device("control", &format!("udev_path={path}"))?;
    device("udev_path", &path)?;
    device("enable", "1")?;
    device("wwn/vendor_id", VENDOR)?;
    device("wwn/product_id", PRODUCT)?;
    device("wwn/vpd_unit_serial", &target.identity.serial)?;
    device("attrib/emulate_tpu", "1")?;
    device("attrib/emulate_tpws", "1")?;
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
    let tried: Vec<io::Result<()>> = missing.map(|place| mkdir(&place)).collect();
    tried.into_iter().collect()
}

/// By what a name is proved.
fn account_of<'a>(target: &'a Target, name: &Name) -> Option<&'a Account> {
    let own = target.account.as_ref()?;
    if *name == target.asker { target.asker_account.as_ref() } else { Some(own) }
}

fn is_as_wanted(places: &Places, target: &Target) -> bool {
    let device = |file: &str| read(&places.device.join(file));
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
    device("udev_path") == target.path.display().to_string()
        && device("enable") == "1"
        && device("wwn/vpd_unit_serial").ends_with(&target.identity.serial)
        && names("np").is_subset(&target.portals.iter().map(ToString::to_string).collect())
        && names("acls") == target.allowed().map(ToString::to_string).collect()
        && target.allowed().all(access)
        && group("attrib/authentication") == if target.account.is_some() { "1" } else { "0" }
        && places.unit().join(LINK).is_symlink()
        // A device that is gone, and was made anew, is one that nobody has.
        && crate::blocks::user(&target.path.display().to_string()).is_some()
}

/// What a file says, or nothing.
fn read(file: &Path) -> String {
    fs::read_to_string(file).map(|text| text.trim().to_owned()).unwrap_or_default()
}

fn put(file: &Path, text: &str) -> io::Result<()> {
    fs::write(file, text).map_err(|error| named(file, &error))
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    let path = path.strip_prefix(ROOT).unwrap_or(path).display();
    io::Error::new(error.kind(), format!("LIO: {path}: {error}"))
}

fn mkdir(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(named(folder, &error)),
        _ => Ok(()),
    }
}

fn link(to: &Path, folder: &Path) -> io::Result<()> {
    symlink(to, folder.join(LINK)).map_err(|error| named(folder, &error))
}

fn is_gone(error: io::Error) -> io::Result<()> {
    if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

fn rmdir(folder: &Path) -> io::Result<()> {
    fs::remove_dir(folder).map_err(|error| named(folder, &error)).or_else(is_gone)
}

/// Removes the links in a folder.
fn unlink(folder: &Path) -> io::Result<()> {
    for file in fs::read_dir(folder)?.flatten() {
        if file.path().is_symlink() {
            fs::remove_file(file.path()).map_err(|error| named(folder, &error))?;
        }
    }
    Ok(())
}

/// The folders in a folder.
fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let all = fs::read_dir(folder).map_err(|error| named(folder, &error))?.flatten();
    Ok(all.map(|own| own.path()).filter(|own| own.is_dir() && !own.is_symlink()).collect())
}

fn is_unit(folder: &Path) -> bool {
    name_of(folder).starts_with("lun_")
}

fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
