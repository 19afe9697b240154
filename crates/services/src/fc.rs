//! Exports at Fibre Channel ports: units by FCP, which the kernel's LIO serves ([`crate::fcp`]),
//! and namespaces by NVMe, which its nvmet does ([`crate::nvmet`]); both over a ublk device.
//!
//! | the mark says  | what is wanted | what is done                                               |
//! |----------------|----------------|------------------------------------------------------------|
//! | nothing        | an export      | a mark is written; the volume's device is taken; the mark  |
//! |                |                | says which; all else is made                               |
//! | another place  | an export      | what is there is ended; then the same                      |
//! | another device | an export      | the mark has none; the device is taken anew; as above      |
//! | the same       | an export      | what is otherwise is set                                   |
//! | a place        | that it rests  | whoever has it asks again until it is served               |
//! | a place        | no export      | what is there is ended; then the mark goes                 |
//! | nothing        | no export      | nothing                                                    |
//!
//! `ID.fc` in the folder of this process is the mark. It is there before anything is made, and
//! until all is gone: whoever ends it needs to know no more. It says `fcp FABRIC PORT NUMBER` or
//! `nvme PORT SUBSYSTEM`; and, once that is taken, on which device it stands, as a ublk device that
//! was made anew may have the name of one that nvmet has still open. Who is let in follows, a name
//! in a line.
//!
//! Invariants
//! - What is there of an export is at the place that its mark says.
//! - What is as it is wanted is not touched.

use crate::keeper::{Host, put};
use crate::targets::Served;
use crate::wire::{Fc, FcPort, Kind, NvmeFc, Wanted};
use crate::{blocks, configfs, device, fcp, nvmet};
use ::shares::system::gone;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use units::{Uuid, Wwpn};

/// Where the kernel lists Fibre Channel ports of this machine.
pub const FC_HOSTS: &str = "/sys/class/fc_host";

/// How a port is that works.
const ONLINE: &str = "Online";
/// What the roles of a port elsewhere have that serves something (its scsi_transport_fc.c).
const TARGET: &str = "Target";
/// What the kernel's words are where it has none.
const UNKNOWN: &str = "unknown";
/// The driver whose ports LIO has a fabric of their own for, and what others have.
const QLOGIC: &str = "qla2xxx";
const LIBFC: &str = "fc";

/// A port, and where the kernel has it.
struct Port {
    folder: PathBuf,
    name: Wwpn,
    node: Option<Wwpn>,
    seen: FcPort,
}

impl Port {
    fn all(root: &Path) -> Vec<Self> {
        let all = std::fs::read_dir(root).into_iter().flatten().flatten();
        let mut all: Vec<Self> = all.filter_map(|own| Self::at(root, own.path())).collect();
        all.sort_by_key(|own| own.name);
        all
    }

    fn at(root: &Path, folder: PathBuf) -> Option<Self> {
        let name_in = |file: &str| configfs::read(&folder.join(file)).parse::<Wwpn>().ok();
        let words = |file: PathBuf| match configfs::read(&file) {
            none if none.is_empty() => UNKNOWN.to_owned(),
            text => text,
        };
        let name = name_in("port_name")?;
        let host = folder.file_name()?;
        let driver = words(root.parent()?.join("scsi_host").join(host).join("proc_name"));
        let [state, speed] = ["port_state", "speed"].map(|file| words(folder.join(file)));
        let seen = FcPort { name: name.to_string(), driver, state, speed };
        Some(Self { name, node: name_in("node_name"), seen, folder })
    }

    /// LIO's fabric of it.
    fn fabric(&self) -> &'static str {
        if self.seen.driver == QLOGIC { QLOGIC } else { LIBFC }
    }

    /// Whether this machine has units of others by it. They are lost for moments where its link
    /// begins anew.
    fn has_targets(&self) -> bool {
        let host = configfs::name_of(&self.folder);
        let number = host.trim_start_matches(|own: char| !own.is_ascii_digit());
        let own = format!("rport-{number}:");
        let Some(class) = self.folder.parent().and_then(Path::parent) else { return false };
        let is_target = |port: &PathBuf| {
            configfs::name_of(port).starts_with(&own)
                && configfs::read(&port.join("roles")).contains(TARGET)
        };
        match std::fs::read_dir(class.join("fc_remote_ports")) {
            Ok(all) => all.flatten().any(|port| is_target(&port.path())),
            // What can't be seen may be there.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// What is wrong with it.
    fn note(&self) -> Option<String> {
        let FcPort { name, state, .. } = &self.seen;
        (state != ONLINE && state != UNKNOWN).then(|| format!("port {name} is {state}"))
    }
}

/// The Fibre Channel ports of this machine, which the kernel lists there, by their names.
pub fn ports(root: &Path) -> Vec<FcPort> {
    Port::all(root).into_iter().map(|own| own.seen).collect()
}

/// Where an export is.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Place {
    /// A unit: its port's fabric, and its number.
    Fcp(String, u16),
    /// A subsystem: its name.
    Nvme(String),
}

/// What stands in `ID.fc`.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Mark {
    port: Wwpn,
    place: Place,
    /// The device that it stands on, once it does: [`blocks::instance`].
    device: Option<u64>,
    /// Who is let in, or was to be.
    names: BTreeSet<String>,
}

fn mark_of(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.fc"))
}

impl Mark {
    fn read(folder: &Path, id: &str) -> Option<Self> {
        let text = std::fs::read_to_string(mark_of(folder, id)).ok()?;
        let (first, names) = text.split_once('\n').unwrap_or((&text, ""));
        let mut words = first.split_whitespace();
        let (port, place) = match words.next()? {
            "fcp" => {
                let (fabric, port) = (words.next()?, words.next()?);
                (port, Place::Fcp(fabric.to_owned(), words.next()?.parse().ok()?))
            }
            _ => (words.next()?, Place::Nvme(words.next()?.to_owned())),
        };
        let device = words.next().and_then(|word| word.parse().ok());
        let names = names.split_whitespace().map(str::to_owned).collect();
        Some(Self { port: port.parse().ok()?, place, device, names })
    }

    fn write(&self, folder: &Path, id: &str) -> io::Result<()> {
        let port = self.port;
        let mut text = match &self.place {
            Place::Fcp(fabric, number) => format!("fcp {fabric} {port} {number}"),
            Place::Nvme(subsystem) => format!("nvme {port} {subsystem}"),
        };
        if let Some(device) = self.device {
            text.push_str(&format!(" {device}"));
        }
        self.names.iter().for_each(|name| text.push_str(&format!("\n{name}")));
        put(folder, id, &mark_of(folder, id), text.as_bytes())
    }

    /// Whether another export has the place by now, and this one was deleted.
    fn is_others(&self, folder: &Path, id: &str) -> io::Result<bool> {
        for file in std::fs::read_dir(folder)?.flatten() {
            let name = file.file_name().into_string().unwrap_or_default();
            if let Some(other) = name.strip_suffix(".fc").filter(|other| *other != id)
                && let Some(mark) = Self::read(folder, other)
                && mark.place == self.place
                && mark.device.is_some()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Where the kernel has what is needed of it.
struct Kernel {
    hosts: PathBuf,
    config: PathBuf,
}

impl Default for Kernel {
    fn default() -> Self {
        Self { hosts: FC_HOSTS.into(), config: configfs::CONFIG.into() }
    }
}

impl Kernel {
    fn port(&self, name: Wwpn) -> Option<Port> {
        Port::all(&self.hosts).into_iter().find(|own| own.name == name)
    }

    fn unit(&self, id: &str, port: Wwpn, (fabric, number): (&str, u16)) -> fcp::Unit {
        fcp::Unit::of(&self.config, id, (fabric, &port.to_string()), number)
    }

    fn subsystem(&self, port: Wwpn, name: &str) -> nvmet::Subsystem {
        nvmet::Subsystem::of(&self.config, name, &port.to_string())
    }

    /// Has an export served over a device, which is that of this number.
    fn serve(
        &self,
        folder: &Path,
        wanted: &Wanted,
        (path, device): (&Path, u64),
    ) -> io::Result<Served> {
        match &wanted.kind {
            Kind::Fc(own) => self.serve_unit((folder, &wanted.id), own, (path, device)),
            Kind::NvmeFc(own) => self.serve_subsystem((folder, &wanted.id), own, (path, device)),
            _ => Err(io::Error::other("it is not at a Fibre Channel port")),
        }
    }

    fn serve_unit(
        &self,
        (folder, id): (&Path, &str),
        own: &Fc,
        (path, device): (&Path, u64),
    ) -> io::Result<Served> {
        let name = name_of(&own.port)?;
        let port = self.port(name).ok_or_else(|| {
            let what = format!("there is no Fibre Channel port {name} here");
            io::Error::other(format!("{what}; palisade port list shows those that there are"))
        })?;
        let fabric = port.fabric();
        let module = if fabric == QLOGIC { "tcm_qla2xxx" } else { "tcm_fc" };
        let modules = ["target_core_mod", "target_core_iblock", module];
        if !configfs::load(&self.config, &format!("{}/{fabric}", configfs::LIO), &modules) {
            let what = "this kernel has no LIO for such ports";
            return Err(io::Error::other(format!("{what}; load target_core_iblock and {module}")));
        }
        let initiators = own.initiators.iter().map(|text| Ok(name_of(text)?.to_string()));
        let link = port.folder.join("issue_lip");
        let all = fcp::Wanted {
            path,
            serial: &own.serial,
            initiators: initiators.collect::<io::Result<BTreeSet<_>>>()?,
            link: &link,
        };
        let place = Place::Fcp(fabric.to_owned(), own.unit);
        let names = all.initiators.clone();
        let mark = Mark { port: name, place, device: Some(device), names };
        let unit = self.unit(id, name, (fabric, own.unit));
        self.stand((folder, id), mark, |is_other| unit.stand(&all, is_other))?;
        let is_used = || port.has_targets() || nvmet::is_at_work(&self.config, &name.to_string());
        Ok(Served { sessions: unit.serve(&all, is_used)?, note: port.note() })
    }

    fn serve_subsystem(
        &self,
        (folder, id): (&Path, &str),
        own: &NvmeFc,
        (path, device): (&Path, u64),
    ) -> io::Result<Served> {
        let name = name_of(&own.port)?;
        if !nvmet::load(&self.config) {
            return Err(io::Error::other(nvmet::NONE));
        }
        let port = self.port(name);
        // One that stands for a port is listed nowhere: its node has its name.
        let node = port.as_ref().and_then(|own| own.node).unwrap_or(name).to_string();
        let uuid: Uuid = own.uuid.parse().map_err(|_| io::Error::other("it has no UUID"))?;
        let hosts = own.hosts.iter().cloned().collect();
        let all = nvmet::Wanted { path, uuid: &uuid.to_string(), hosts, node: &node };
        let place = Place::Nvme(own.subsystem.clone());
        let mark = Mark { port: name, place, device: Some(device), names: all.hosts.clone() };
        let subsystem = self.subsystem(name, &own.subsystem);
        self.stand((folder, id), mark, |is_other| subsystem.stand(&all, is_other))?;
        subsystem.serve(&all)?;
        Ok(Served { sessions: Vec::new(), note: port.and_then(|own| own.note()) })
    }

    /// Has an export stand on the device that a mark is to say: what is there of it may stand on
    /// another.
    fn stand(
        &self,
        (folder, id): (&Path, &str),
        mut mark: Mark,
        stand: impl FnOnce(bool) -> io::Result<()>,
    ) -> io::Result<()> {
        if let Some(known) = Mark::read(folder, id) {
            if known == mark {
                return stand(false);
            }
            if (known.port, &known.place) != (mark.port, &mark.place) {
                self.end(folder, id)?;
            } else {
                // Of others that were let in something may be there.
                mark.names.extend(known.names);
                if known.device == mark.device {
                    mark.write(folder, id)?;
                    return stand(false);
                }
            }
        }
        Mark { device: None, ..mark.clone() }.write(folder, id)?;
        stand(true)?;
        mark.write(folder, id)
    }

    fn rest(&self, folder: &Path, id: &str) -> io::Result<()> {
        let Some(Mark { port, place, .. }) = Mark::read(folder, id) else { return Ok(()) };
        match place {
            Place::Fcp(fabric, number) => self.unit(id, port, (&fabric, number)).rest(),
            Place::Nvme(name) => self.subsystem(port, &name).rest(),
        }
    }

    fn end(&self, folder: &Path, id: &str) -> io::Result<()> {
        let Some(mark) = Mark::read(folder, id) else { return Ok(()) };
        match &mark.place {
            Place::Fcp(fabric, number) => {
                self.unit(id, mark.port, (fabric, *number)).end(&mark.names)?;
            }
            Place::Nvme(name) => {
                let subsystem = self.subsystem(mark.port, name);
                match mark.is_others(folder, id)? {
                    true => subsystem.leave(&mark.names)?,
                    false => subsystem.end(&mark.names)?,
                }
            }
        }
        gone(std::fs::remove_file(mark_of(folder, id)))
    }
}

fn name_of(text: &str) -> io::Result<Wwpn> {
    text.parse().map_err(|_| io::Error::other(format!("{text} is no name of a port")))
}

/// Has an export served at its port over a volume's device.
///
/// # Errors
/// It can't be: what is to be done.
pub fn serve(host: &impl Host, wanted: &Wanted, path: &Path) -> io::Result<Served> {
    let device = blocks::instance(&path.display().to_string())?;
    Kernel::default().serve(host.folder(), wanted, (path, device))
}

/// Lets what there is of an export at a port rest: whoever has it asks again until it is served.
///
/// # Errors
/// It can't be.
pub fn rest(folder: &Path, id: &str) -> io::Result<()> {
    if !is_there(folder, id) {
        return Ok(());
    }
    Kernel::default().rest(folder, id)?;
    // What was let through before is answered first.
    match device::is_at_hand(folder, id) {
        Ok(()) => device::settle(folder, id),
        Err(_) => Ok(()),
    }
}

/// Has an export's port, if it has one, let its volume go, so that others may be asked whether they
/// use that.
///
/// # Errors
/// Somebody else uses its device, or it can't be.
pub fn let_go(folder: &Path, id: &str) -> io::Result<()> {
    let user = match Mark::read(folder, id).map(|mark| mark.place) {
        None => return Ok(()),
        // LIO has it to itself.
        Some(Place::Fcp(..)) => device::opener(folder, id)?,
        Some(Place::Nvme(_)) => device::user(folder, id)?,
    };
    user.map_or_else(|| end(folder, id), |user| Err(io::Error::other(user)))
}

/// Lets an export's device go, which has another size than it is to have, where that harms nobody:
/// whoever serves it keeps the size that it has. Who has a unit would lose it, and who has a
/// namespace, of whom nobody knows.
///
/// # Errors
/// It can't be.
pub fn let_size_change(folder: &Path, id: &str) -> io::Result<()> {
    let Some(Mark { port, place: Place::Fcp(fabric, number), .. }) = Mark::read(folder, id) else {
        return Ok(());
    };
    if device::is_at_hand(folder, id).is_err() {
        // What is under way waits for it: it has to be served first.
        return Ok(());
    }
    let unit = Kernel::default().unit(id, port, (&fabric, number));
    let is_free = unit.sessions().is_ok_and(|all| all.is_empty());
    if is_free && device::opener(folder, id)?.is_none() { end(folder, id) } else { Ok(()) }
}

/// Ends what there is of an export at a port, whoever has it.
///
/// # Errors
/// It can't be ended.
pub fn end(folder: &Path, id: &str) -> io::Result<()> {
    Kernel::default().end(folder, id)
}

/// Whether there may be something of an export at a port. Nvmet may have its device then, which
/// nobody sees by that.
pub fn is_there(folder: &Path, id: &str) -> bool {
    Mark::read(folder, id).is_some()
}

#[cfg(test)]
#[path = "fc_tests.rs"]
mod tests;
