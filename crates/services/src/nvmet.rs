//! Subsystems at Fibre Channel ports by the kernel's nvmet, over a volume's ublk device (its
//! drivers/nvme/target/configfs.c and fc.c).
//!
//! ```text
//! nvmet/hosts/HOST                               a host's qualified name
//!       subsystems/NQN/attr_*                    what hosts know it by
//!                      allowed_hosts/HOST        a link to hosts/HOST
//!                      namespaces/1/device_path  the volume's device
//!                                   ana_grpid    G: its group, of it alone
//!                                   enable       1: it has the device open
//!       ports/N/addr_*                           a Fibre Channel port
//!               ana_groups/G/ana_state           how it has that group
//!               subsystems/NQN                   a link to the subsystem: it is served
//! ```
//!
//! | what is wanted | what is there                 | what is done                                |
//! |----------------|-------------------------------|---------------------------------------------|
//! | a subsystem    | nothing, or a part            | what misses is made; the port's link comes  |
//! |                |                               | last                                        |
//! | a subsystem    | one of another device         | it leaves its port; its namespace is made   |
//! |                |                               | anew; it comes back                         |
//! | a subsystem    | it lets others in             | these are removed; it leaves its port and   |
//! |                |                               | comes back: hosts that are there would stay |
//! | a subsystem    | it, as it is wanted           | nothing                                     |
//! | that it rests  | a subsystem                   | its port has its group inaccessible: hosts  |
//! |                |                               | wait until that is optimized                |
//! | no subsystem   | whatever of it                | it leaves its port, and is removed; so are  |
//! |                |                               | its hosts and port, if nobody else has them |
//!
//! Hosts that find their subsystem at its port no more may give it up at once (its drivers/nvme/
//! target/core.c, `nvmet_alloc_ctrl`: DNR): it leaves only to end, or to cut hosts off.
//!
//! Invariants
//! - A subsystem is at its port only while it is as it is wanted.
//! - A port is removed only if its number is one of ours, and it serves nothing.
//! - A host is removed only if no subsystem lets it in.

use crate::configfs::{
    self, CONFIG, NVMET, changing, disable, folders, links, mkdir, name_of, named, put, read,
    remove_folder, remove_link, rmdir, set,
};
use crate::{lock, modprobe};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Numbers of ports that are made here.
const FIRST: u16 = 7241;
const LAST: u16 = 7999;
/// Groups of asymmetric access: the first is all others'.
const FIRST_GROUP: u16 = 2;
const LAST_GROUP: u16 = 128;
/// That which each port has from the kernel.
const KERNELS_GROUP: &str = "1";
/// How a port has a group that is served, and one that rests (NVM Express Base, section 8.1.1).
const SERVES: &str = "optimized";
const RESTS: &str = "inaccessible";
/// What hosts are told of who made it.
const MODEL: &str = "PALISADE VOLUME";
/// Characters of a serial number.
const SERIAL: usize = 20;

/// What is wrong where that is not to be had.
pub const NONE: &str = "this kernel has no nvmet over Fibre Channel; load nvmet-fc";

/// Whether the kernel has nvmet; what of it can be loaded is, and its part for Fibre Channel.
pub fn load(config: &Path) -> bool {
    let is_real = config == Path::new(CONFIG);
    if is_real && !Path::new("/sys/module/nvmet_fc").is_dir() {
        modprobe(&["nvmet-fc"]);
    }
    configfs::load(config, NVMET, &["nvmet", "nvmet-fc"])
}

/// An export's subsystem: where it is.
#[derive(Clone, Debug)]
pub struct Subsystem {
    root: PathBuf,
    name: String,
    /// The name of its port, eight pairs of digits.
    port: String,
}

/// What is wanted of a subsystem.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// The volume's device.
    pub path: &'a Path,
    /// The volume's UUID.
    pub uuid: &'a str,
    /// Names of the hosts that may have it.
    pub hosts: BTreeSet<String>,
    /// The name of the node that its port belongs to.
    pub node: &'a str,
}

impl Subsystem {
    /// The subsystem of this name at the port of this name.
    pub fn of(config: &Path, name: &str, port: &str) -> Self {
        Self { root: config.join(NVMET), name: name.to_owned(), port: port.to_owned() }
    }

    fn place(&self) -> PathBuf {
        self.root.join("subsystems").join(&self.name)
    }

    fn space(&self) -> PathBuf {
        self.place().join("namespaces/1")
    }

    fn allowed(&self) -> PathBuf {
        self.place().join("allowed_hosts")
    }

    fn ports(&self) -> io::Result<Vec<PathBuf>> {
        folders(&self.root.join("ports"))
    }

    fn link_at(&self, port: &Path) -> PathBuf {
        port.join("subsystems").join(&self.name)
    }

    /// Has it stand on the volume's device. What there is of it does, unless `is_other`.
    ///
    /// # Errors
    /// What the kernel says, or it waits for what is under way.
    pub fn stand(&self, wanted: &Wanted<'_>, is_other: bool) -> io::Result<()> {
        let changing = changing(NVMET);
        let _held = lock(&changing);
        mkdir(&self.place())?;
        self.look_as(wanted)?;
        let space = self.space();
        let path = wanted.path.display().to_string();
        let is_same = read(&space.join("device_path")) == path
            && read(&space.join("device_uuid")) == wanted.uuid
            && read(&space.join("enable")) == "1";
        if is_same && !is_other {
            return Ok(());
        }
        self.leave_ports()?;
        mkdir(&space)?;
        disable(&space.join("enable"))?;
        put(&space.join("device_path"), &path)?;
        put(&space.join("device_uuid"), wanted.uuid)?;
        put(&space.join("ana_grpid"), &self.free_group()?.to_string())?;
        put(&space.join("enable"), "1")
    }

    /// The number of a group that no other namespace is in: its own, if that is one.
    fn free_group(&self) -> io::Result<u16> {
        let mut taken = BTreeSet::new();
        for subsystem in folders(&self.root.join("subsystems"))? {
            if subsystem != self.place() {
                let spaces = folders(&subsystem.join("namespaces"))?;
                taken.extend(spaces.iter().map(|space| read(&space.join("ana_grpid"))));
            }
        }
        let is_free = |group: &u16| !taken.contains(&group.to_string());
        let own = self.group().filter(is_free);
        own.or_else(|| (FIRST_GROUP..=LAST_GROUP).find(is_free))
            .ok_or_else(|| io::Error::other("nvmet has no group for another namespace"))
    }

    /// The number of its group, if that is one of its own.
    fn group(&self) -> Option<u16> {
        let group: u16 = read(&self.space().join("ana_grpid")).parse().ok()?;
        (group >= FIRST_GROUP).then_some(group)
    }

    /// How a port has its group.
    fn access_at(&self, port: &Path) -> Option<PathBuf> {
        Some(port.join("ana_groups").join(self.group()?.to_string()))
    }

    /// Makes of what is there, which stands on the volume's device, what is wanted.
    ///
    /// # Errors
    /// Its port can't have it, or what the kernel says.
    pub fn serve(&self, wanted: &Wanted<'_>) -> io::Result<()> {
        let changing = changing(NVMET);
        let _held = lock(&changing);
        self.let_in(&wanted.hosts)?;
        self.come_to_port(wanted.node)
    }

    /// Sets what hosts know it by: it can't be changed once one has seen it.
    fn look_as(&self, wanted: &Wanted<'_>) -> io::Result<()> {
        let digits = wanted.uuid.chars().filter(|one| *one != '-');
        let serial: String = digits.take(SERIAL).collect();
        let own = [("attr_allow_any_host", "0"), ("attr_serial", &serial), ("attr_model", MODEL)];
        own.iter().try_for_each(|(file, text)| set(&self.place().join(file), text))
    }

    /// Lets in these hosts, and no others.
    fn let_in(&self, hosts: &BTreeSet<String>) -> io::Result<()> {
        for host in hosts {
            let known = self.host(host)?;
            let own = self.allowed().join(host);
            if !own.is_symlink() {
                mkdir(&known)?;
                symlink(&known, &own).map_err(|error| named(&own, &error))?;
            }
        }
        let mut others = links(&self.allowed())?;
        others.retain(|own| !hosts.contains(&name_of(own)));
        if others.is_empty() {
            return Ok(());
        }
        // Those that are there would stay. Whoever comes next finds them still let in, and does it
        // again.
        self.leave_ports()?;
        others.iter().try_for_each(|own| remove_link(own))?;
        self.forget_hosts(others.iter().map(|own| name_of(own)));
        Ok(())
    }

    fn forget_hosts(&self, hosts: impl Iterator<Item = String>) {
        for host in hosts.filter_map(|name| self.host(&name).ok()) {
            // Other subsystems may let it in.
            let _ = rmdir(&host);
        }
    }

    /// Where a host of this name is known.
    fn host(&self, name: &str) -> io::Result<PathBuf> {
        if name.is_empty() || name.starts_with('.') || name.contains('/') {
            return Err(io::Error::other(format!("{name} is no name that nvmet takes for a host")));
        }
        Ok(self.root.join("hosts").join(name))
    }

    /// Has its port serve it, and no other.
    fn come_to_port(&self, node: &str) -> io::Result<()> {
        let address = format!("nn-0x{}:pn-0x{}", digits(node), digits(&self.port));
        let mut ports = self.ports()?;
        let known = ports.iter().find(|port| is_at(port, |own| own == address)).cloned();
        ports.retain(|port| Some(port) != known.as_ref());
        ports.iter().try_for_each(|port| remove_link(&self.link_at(port)))?;
        let port = match known {
            Some(port) => port,
            None => self.make_port(&address, &ports)?,
        };
        if let Some(access) = self.access_at(&port) {
            mkdir(&access)?;
            set(&access.join("ana_state"), SERVES)?;
        }
        let link = self.link_at(&port);
        if link.is_symlink() {
            return Ok(());
        }
        symlink(self.place(), &link).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::NXIO) => {
                io::Error::other(format!("no Fibre Channel port {} takes NVMe here", self.port))
            }
            Some(Errno::ALREADY) => {
                io::Error::other(format!("port {} is served by others' nvmet", self.port))
            }
            // The kernel knows no such ports.
            Some(Errno::INVAL) => io::Error::other(NONE),
            _ => named(&link, &error),
        })
    }

    /// Makes the port of an address, beside these. One that a process left that was killed while it
    /// made it is taken.
    fn make_port(&self, address: &str, ports: &[PathBuf]) -> io::Result<PathBuf> {
        let all = self.root.join("ports");
        let is_free = |port: &PathBuf| {
            !ports.contains(port) || read(&port.join("addr_traddr")).is_empty() && !is_used(port)
        };
        let port = (FIRST..=LAST).map(|number| all.join(number.to_string())).find(is_free);
        let port = port.ok_or_else(|| io::Error::other("nvmet has no number for another port"))?;
        mkdir(&port)?;
        put(&port.join("addr_trtype"), "fc")?;
        put(&port.join("addr_adrfam"), "fc")?;
        put(&port.join("addr_traddr"), address)?;
        Ok(port)
    }

    /// Has no port serve it: hosts that are there go.
    fn leave_ports(&self) -> io::Result<()> {
        let ports = self.ports()?;
        ports.iter().try_for_each(|port| remove_link(&self.link_at(port)))
    }

    /// Lets it rest: hosts wait until it is served. Nothing is waited for here.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn rest(&self) -> io::Result<()> {
        if !self.root.is_dir() {
            return Ok(());
        }
        let ports = self.ports()?;
        let mut own = ports.iter().filter(|port| self.link_at(port).is_symlink());
        let mut all = own.by_ref().filter_map(|port| self.access_at(port));
        all.try_for_each(|access| set(&access.join("ana_state"), RESTS))
    }

    /// Ends it, whoever has it, and lets its device go. These names are those that it was to let
    /// in: who made them may have ended before they were.
    ///
    /// # Errors
    /// What the kernel says, or it waits for what is under way.
    pub fn end(&self, names: &BTreeSet<String>) -> io::Result<()> {
        let changing = changing(NVMET);
        let _held = lock(&changing);
        if !self.root.is_dir() {
            return Ok(());
        }
        self.leave_ports()?;
        self.leave_groups()?;
        disable(&self.space().join("enable"))?;
        remove_folder(&self.space())?;
        let hosts = links(&self.allowed())?;
        hosts.iter().try_for_each(|own| remove_link(own))?;
        remove_folder(&self.place())?;
        let known = hosts.iter().map(|own| name_of(own));
        self.forget_hosts(known.chain(names.iter().cloned()));
        self.remove_port()
    }

    /// Leaves it to another export, which has it by now: hosts of these names and the port go, if
    /// nobody has them.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn leave(&self, names: &BTreeSet<String>) -> io::Result<()> {
        let changing = changing(NVMET);
        let _held = lock(&changing);
        if !self.root.is_dir() {
            return Ok(());
        }
        self.leave_groups()?;
        self.forget_hosts(names.iter().cloned());
        self.remove_port()
    }

    /// Has its port, where that does not serve it, not have its group any more.
    fn leave_groups(&self) -> io::Result<()> {
        let mut all = ports_of(&self.root, &self.port)?;
        all.retain(|port| !self.link_at(port).is_symlink());
        all.iter().filter_map(|port| self.access_at(port)).try_for_each(|access| rmdir(&access))
    }

    /// Removes its port, if that was made here and serves nothing, with all groups that it has:
    /// namespaces may have been in others before.
    fn remove_port(&self) -> io::Result<()> {
        for port in ports_of(&self.root, &self.port)? {
            let is_ours = name_of(&port).parse().is_ok_and(|own| (FIRST..=LAST).contains(&own));
            if !is_ours || is_used(&port) {
                continue;
            }
            for group in folders(&port.join("ana_groups"))? {
                if name_of(&group) != KERNELS_GROUP {
                    rmdir(&group)?;
                }
            }
            remove_folder(&port)?;
        }
        Ok(())
    }
}

/// What nvmet has, whose folder this is, of the Fibre Channel port of a name.
fn ports_of(root: &Path, name: &str) -> io::Result<Vec<PathBuf>> {
    let end = format!(":pn-0x{}", digits(name));
    let mut all = folders(&root.join("ports"))?;
    all.retain(|port| is_at(port, |own| own.ends_with(&end)));
    Ok(all)
}

/// Whether nvmet serves something at the Fibre Channel port of this name.
pub fn is_at_work(config: &Path, port: &str) -> bool {
    let root = config.join(NVMET);
    // What can't be seen may be there.
    root.is_dir() && ports_of(&root, port).map_or(true, |all| all.iter().any(|own| is_used(own)))
}

/// The digits of a port's name.
fn digits(name: &str) -> String {
    name.chars().filter(|one| *one != ':').collect()
}

/// Whether a port is one of Fibre Channel, of such an address.
fn is_at(port: &Path, is_own: impl Fn(&str) -> bool) -> bool {
    let address = read(&port.join("addr_traddr")).to_ascii_lowercase();
    read(&port.join("addr_trtype")) == "fc" && is_own(&address)
}

/// Whether a port serves something.
fn is_used(port: &Path) -> bool {
    links(&port.join("subsystems")).map_or(true, |all| !all.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const PORT: &str = "20:00:02:00:00:00:00:10";
    const UUID: &str = "5e1a0000-0000-4000-8000-0123456789ab";
    const NAMES: [&str; 2] = ["nqn.2026-11.example:a", "nqn.2026-11.example:b"];

    /// What stands for configfs.
    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Self {
            let own = Self(tempfile::tempdir().expect("a folder"));
            for inner in ["hosts", "subsystems", "ports"] {
                fs::create_dir_all(own.root().join(inner)).expect("made");
            }
            own
        }

        fn root(&self) -> PathBuf {
            self.0.path().join(NVMET)
        }

        fn subsystem(&self, name: &str) -> Subsystem {
            Subsystem::of(self.0.path(), name, PORT)
        }

        fn names(&self, folder: &str) -> Vec<String> {
            let mut all: Vec<_> = folders(&self.root().join(folder))
                .expect("listed")
                .iter()
                .map(|own| name_of(own))
                .collect();
            all.sort();
            all
        }

        /// A port of somebody else's.
        fn port(&self, number: u16, kind: &str, address: &str) -> PathBuf {
            let port = self.root().join("ports").join(number.to_string());
            mkdir(&port).expect("made");
            put(&port.join("addr_trtype"), kind).expect("written");
            put(&port.join("addr_traddr"), address).expect("written");
            port
        }
    }

    fn wanted(hosts: &[&str]) -> Wanted<'static> {
        let hosts = hosts.iter().map(|own| (*own).to_owned()).collect();
        Wanted { path: Path::new("/dev/no-such"), uuid: UUID, hosts, node: PORT }
    }

    fn serve(own: &Subsystem, wanted: &Wanted<'_>, is_other: bool) -> io::Result<()> {
        own.stand(wanted, is_other).and_then(|()| own.serve(wanted))
    }

    fn is_served(own: &Subsystem) -> bool {
        own.ports().expect("listed").iter().any(|port| own.link_at(port).is_symlink())
    }

    #[test]
    fn a_subsystem_comes_and_goes() {
        let tree = Tree::new();
        let own = tree.subsystem(NAMES[0]);
        own.end(&BTreeSet::new()).expect("nothing of it");
        serve(&own, &wanted(&["nqn.h1", "nqn.h2"]), false).expect("made");
        assert_eq!(read(&own.place().join("attr_serial")), "5e1a0000000040008000");
        assert_eq!(read(&own.space().join("enable")), "1");
        let port = tree.root().join("ports/7241");
        let address = read(&port.join("addr_traddr"));
        assert_eq!(address, "nn-0x2000020000000010:pn-0x2000020000000010");
        assert!(is_served(&own));
        let state = port.join("ana_groups/2/ana_state");
        assert_eq!(
            (read(&own.space().join("ana_grpid")), read(&state)),
            ("2".into(), SERVES.into())
        );
        own.rest().expect("rests");
        assert!(is_served(&own) && read(&state) == RESTS);
        assert!(is_at_work(tree.0.path(), PORT) && !is_at_work(tree.0.path(), UUID));
        serve(&own, &wanted(&["nqn.h1"]), false).expect("one less");
        assert_eq!(read(&state), SERVES);
        assert!(is_served(&own));
        assert_eq!(tree.names("hosts"), ["nqn.h1"]);
        own.end(&BTreeSet::new()).expect("ended");
        for folder in ["hosts", "subsystems", "ports"] {
            assert_eq!(tree.names(folder), Vec::<String>::new(), "{folder}");
        }
        assert!(!is_at_work(tree.0.path(), PORT));
    }

    #[test]
    fn a_port_goes_whatever_groups_it_had() {
        let tree = Tree::new();
        let [one, two] = NAMES.map(|name| tree.subsystem(name));
        serve(&one, &wanted(&[]), false).expect("made");
        serve(&two, &wanted(&[]), false).expect("made");
        assert_eq!((one.group(), two.group()), (Some(2), Some(3)));
        one.end(&BTreeSet::new()).expect("ended");
        // Made anew it keeps its group, though a lower one is free.
        serve(&two, &wanted(&[]), true).expect("made anew");
        assert_eq!(two.group(), Some(3));
        fs::create_dir(tree.root().join("ports/7241/ana_groups/9")).expect("made");
        two.end(&BTreeSet::new()).expect("ended");
        assert_eq!(tree.names("ports"), Vec::<String>::new());
    }

    #[test]
    fn a_name_leads_to_no_other_folder() {
        let tree = Tree::new();
        let own = tree.subsystem(NAMES[0]);
        let victim = tree.root().join("victim");
        fs::create_dir(&victim).expect("made");
        for name in ["../victim", "nqn.a/../../victim", "..", ""] {
            let told = serve(&own, &wanted(&[name]), false).expect_err(name).to_string();
            assert!(told.contains("no name that nvmet takes"), "{told}");
            own.end(&BTreeSet::from([name.to_owned()])).expect("ended");
            assert!(victim.is_dir(), "{name}");
        }
    }

    #[test]
    fn ports_and_hosts_are_shared() {
        let tree = Tree::new();
        tree.port(7241, "tcp", "192.0.2.1");
        let [one, two] = NAMES.map(|name| tree.subsystem(name));
        serve(&one, &wanted(&["nqn.h1"]), false).expect("made");
        serve(&two, &wanted(&["nqn.h1", "nqn.h2"]), false).expect("made");
        assert_eq!(tree.names("ports"), ["7241", "7242"]);
        two.end(&BTreeSet::new()).expect("ended");
        assert!(is_served(&one));
        assert_eq!(tree.names("ports"), ["7241", "7242"]);
        one.end(&BTreeSet::new()).expect("ended");
        assert_eq!(tree.names("ports"), ["7241"]);
    }

    #[test]
    fn a_port_of_others_is_used() {
        let tree = Tree::new();
        let port = tree.port(3, "fc", "nn-0x2000020000000010:pn-0x2000020000000010");
        let own = tree.subsystem(NAMES[0]);
        serve(&own, &wanted(&[]), false).expect("made");
        assert!(port.join("subsystems").join(NAMES[0]).is_symlink());
        own.end(&BTreeSet::new()).expect("ended");
        assert_eq!(tree.names("ports"), ["3"]);
    }

    #[test]
    fn another_device_is_taken() {
        let tree = Tree::new();
        let own = tree.subsystem(NAMES[0]);
        serve(&own, &wanted(&[]), false).expect("made");
        let other = Wanted { path: Path::new("/dev/other"), ..wanted(&[]) };
        serve(&own, &other, false).expect("made anew");
        assert_eq!(read(&own.space().join("device_path")), "/dev/other");
        assert!(is_served(&own));
        put(&own.space().join("device_path"), "the same").expect("written");
        serve(&own, &wanted(&[]), true).expect("made anew");
        assert_eq!(read(&own.space().join("device_path")), "/dev/no-such");
    }
}
