//! Units at Fibre Channel ports by the kernel's LIO, over a volume's ublk device (its
//! drivers/target/tcm_fc/tfc_conf.c and qla2xxx/tcm_qla2xxx.c).
//!
//! ```text
//! target/FABRIC/PORT/tpgt_1/lun/lun_N/palisade         a link to the export's device
//!                           acls/INITIATOR/lun_N/palisade   a link to lun/lun_N
//!                           enable                     1: it lets in; not all fabrics have it
//! ```
//!
//! | what is wanted  | what is there                | what is done                               |
//! |-----------------|------------------------------|--------------------------------------------|
//! | a unit          | nothing, or a part           | what misses is made; `enable` comes last   |
//! | a unit          | one of a device that is gone | it is ended, and made anew                 |
//! | a unit          | another's of that number     | nothing: that is an error                  |
//! | a unit          | it has others' mappings      | these are removed                          |
//! | a unit          | it rests                     | its device is told to serve                |
//! | a unit          | it, as it is wanted          | nothing                                    |
//! | that it rests   | a unit                       | its device is told that it is about to     |
//! |                 |                              | serve: initiators wait, and ask again      |
//! | no unit         | whatever of it               | its mappings, it, its device; of the port  |
//! |                 |                              | what nobody has any more                   |
//!
//! Who is logged in at the port as a stranger does not ask again by itself: once something was made
//! at a port that nothing else uses, its link begins anew.
//!
//! Invariants
//! - Of a port, which all its exports share, only the own unit and its mappings are touched, and
//!   what nobody has.
//! - The link of a port at which somebody is logged in, or by which more is done than LIO does, is
//!   left alone: what is under way might hang.

use crate::configfs::{
    LIO, changing, folders, is_unit, link, links, mkdir, name_of, put, read, remove_folder,
    remove_with_links, set,
};
use crate::{lio_device, lock};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// What a device says that serves, and one that is about to (SPC-4, "asymmetric access state").
const SERVES: &str = "0";
const IS_ABOUT_TO: &str = "15";
/// What has a port have no units for those that it has no access for; not all fabrics have it.
const CLOSED: [(&str, &str); 4] = [
    ("generate_node_acls", "0"),
    ("cache_dynamic_acls", "0"),
    ("demo_mode_login_only", "1"),
    ("demo_mode_write_protect", "1"),
];
/// Characters of a port's name.
const NAME: usize = 23;

/// An export's unit: where it is.
#[derive(Clone, Debug)]
pub struct Unit {
    config: PathBuf,
    port: String,
    number: u16,
    device: PathBuf,
    target: PathBuf,
}

/// What is wanted of a unit.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// The volume's device.
    pub path: &'a Path,
    /// The unit's serial number.
    pub serial: &'a str,
    /// Names of ports that may have it.
    pub initiators: BTreeSet<String>,
    /// By what the link of its port begins anew.
    pub link: &'a Path,
}

impl Unit {
    /// The unit of an export, of this number, at a port of this fabric.
    pub fn of(config: &Path, id: &str, (fabric, port): (&str, &str), number: u16) -> Self {
        let device = lio_device::place(config, id);
        let target = config.join(LIO).join(fabric).join(port);
        Self { config: config.to_owned(), port: port.to_owned(), number, device, target }
    }

    fn group(&self) -> PathBuf {
        self.target.join("tpgt_1")
    }

    fn name(&self) -> String {
        format!("lun_{}", self.number)
    }

    fn place(&self) -> PathBuf {
        self.group().join("lun").join(self.name())
    }

    /// What there is at its port of access, to whatever unit.
    fn accesses(&self) -> io::Result<Vec<PathBuf>> {
        let all = self.group().join("acls");
        if all.is_dir() { folders(&all) } else { Ok(Vec::new()) }
    }

    /// Its device's state of access.
    fn access_state(&self) -> PathBuf {
        self.device.join("alua/default_tg_pt_gp/alua_access_state")
    }

    /// Whether there is a unit of its number, and that is its own.
    fn is_own(&self) -> io::Result<Option<bool>> {
        leads_to(&self.place(), &self.device)
    }

    /// Has it stand on the volume's device. What there is of it does, unless `is_other`.
    ///
    /// # Errors
    /// Its number is another's, or what the kernel says.
    pub fn stand(&self, wanted: &Wanted<'_>, is_other: bool) -> io::Result<()> {
        let changing = changing(&self.port);
        let _held = lock(&changing);
        self.is_free()?;
        let Wanted { path, serial, .. } = *wanted;
        if is_other || !lio_device::is_as_wanted(&self.device, path, serial) {
            self.end_held(&wanted.initiators)?;
            lio_device::make(&self.config, &self.device, path, serial)?;
        }
        Ok(())
    }

    /// Its number is no other's.
    fn is_free(&self) -> io::Result<()> {
        if self.is_own()? == Some(false) { Err(self.is_anothers()) } else { Ok(()) }
    }

    fn is_anothers(&self) -> io::Error {
        let (number, port) = (self.number, &self.port);
        io::Error::other(format!(
            "LUN {number} of port {port} is another's; delete this export, and create it anew"
        ))
    }

    /// Makes of what is there, which stands on the volume's device, what is wanted. `is_used` says
    /// whether more is done by its port than LIO does. Initiators that have it then.
    ///
    /// # Errors
    /// Its number is another's, or what the kernel says.
    pub fn serve(
        &self,
        wanted: &Wanted<'_>,
        is_used: impl FnOnce() -> bool,
    ) -> io::Result<Vec<String>> {
        let changing = changing(&self.port);
        let _held = lock(&changing);
        self.is_free()?;
        let is_new = self.make(wanted)?;
        self.unmap(|initiator| !wanted.initiators.contains(initiator))?;
        let enable = self.group().join("enable");
        if enable.exists() {
            set(&enable, "1")?;
        }
        if is_told_otherwise(&self.access_state(), SERVES) {
            put(&self.access_state(), SERVES)?;
        }
        let is_alone = || self.accesses().is_ok_and(|all| !all.iter().any(|own| is_had(own)));
        if is_new && is_alone() && !is_used() {
            // A port whose link can't begin anew has none, or asks by itself.
            let _ = put(wanted.link, "1");
        }
        self.sessions()
    }

    /// Makes what misses; whether a unit or access to one was made.
    fn make(&self, wanted: &Wanted<'_>) -> io::Result<bool> {
        mkdir(&self.target)?;
        mkdir(&self.group())?;
        for (file, text) in CLOSED {
            let own = self.group().join("attrib").join(file);
            if own.exists() {
                set(&own, text)?;
            }
        }
        let place = self.place();
        let mut is_new = mkdir(&place)?;
        if links(&place)?.is_empty() {
            link(&self.device, &place)?;
        }
        for initiator in &wanted.initiators {
            let access = self.group().join("acls").join(initiator);
            is_new |= mkdir(&access)?;
            let mapping = access.join(self.name());
            is_new |= mkdir(&mapping)?;
            match leads_to(&mapping, &place)? {
                Some(true) => {}
                Some(false) => return Err(self.is_anothers()),
                None => link(&place, &mapping)?,
            }
            set(&mapping.join("write_protect"), "0")?;
        }
        Ok(is_new)
    }

    /// Removes mappings of these initiators, and those that have no other.
    fn unmap(&self, is_unwanted: impl Fn(&str) -> bool) -> io::Result<()> {
        for access in self.accesses()? {
            let mapping = access.join(self.name());
            let is_others =
                || Ok::<_, io::Error>(leads_to(&mapping, &self.place())? == Some(false));
            if !is_unwanted(&name_of(&access)) || !mapping.is_dir() || is_others()? {
                continue;
            }
            remove_with_links(&mapping)?;
            if !folders(&access)?.iter().any(|own| is_unit(own)) {
                remove_folder(&access)?;
            }
        }
        Ok(())
    }

    /// Lets it rest: initiators are told that it is about to be served, and ask again.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn rest(&self) -> io::Result<()> {
        let state = self.access_state();
        if is_told_otherwise(&state, IS_ABOUT_TO) { put(&state, IS_ABOUT_TO) } else { Ok(()) }
    }

    /// Ends it, whoever has it, and lets its device go. These names are those that it was to let
    /// in: who made their access may have ended before it had a mapping.
    ///
    /// # Errors
    /// What the kernel says, or it waits for what is under way.
    pub fn end(&self, names: &BTreeSet<String>) -> io::Result<()> {
        let changing = changing(&self.port);
        let _held = lock(&changing);
        self.end_held(names)
    }

    fn end_held(&self, names: &BTreeSet<String>) -> io::Result<()> {
        if self.is_own()? != Some(false) {
            self.unmap(|_| true)?;
            for access in names.iter().map(|name| self.group().join("acls").join(name)) {
                if access.is_dir() && !folders(&access)?.iter().any(|own| is_unit(own)) {
                    remove_folder(&access)?;
                }
            }
            remove_with_links(&self.place())?;
            let group = self.group();
            let has_none = |own: &str| folders(&group.join(own)).is_ok_and(|all| all.is_empty());
            if has_none("lun") && has_none("acls") {
                remove_folder(&group)?;
            }
            let is_group = |own: &PathBuf| name_of(own).starts_with("tpgt_");
            if folders(&self.target).is_ok_and(|all| !all.iter().any(is_group)) {
                remove_folder(&self.target)?;
            }
        }
        lio_device::free(&self.device)
    }

    /// Initiators that have it now.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn sessions(&self) -> io::Result<Vec<String>> {
        let who = |access: PathBuf| logged_in(&access.join(self.name()));
        let mut all: Vec<String> = self.accesses()?.into_iter().filter_map(who).collect();
        all.sort();
        Ok(all)
    }
}

/// Whether the link in a folder leads to another one, if there is one.
fn leads_to(folder: &Path, other: &Path) -> io::Result<Option<bool>> {
    let Some(own) = links(folder)?.pop() else { return Ok(None) };
    let leads_there = |own: PathBuf| other.canonicalize().is_ok_and(|other| own == other);
    Ok(Some(own.canonicalize().is_ok_and(leads_there)))
}

/// Whether a device is told another state of access.
fn is_told_otherwise(state: &Path, wanted: &str) -> bool {
    let told = read(state);
    !told.is_empty() && told != wanted
}

/// Whether whoever has this access is logged in.
fn is_had(access: &Path) -> bool {
    let all = folders(access).unwrap_or_default();
    all.iter().any(|own| is_unit(own) && logged_in(own).is_some())
}

/// Who is logged in that has this mapping: that alone can be read then.
fn logged_in(mapping: &Path) -> Option<String> {
    let told = read(&mapping.join("statistics/scsi_att_intr_port/port_ident"));
    told.get(..NAME).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configfs::LINK;
    use std::fs;

    const PORT: &str = "20:00:02:00:00:00:00:10";
    const INITIATOR: &str = "20:00:02:00:00:00:00:11";
    const OTHER: &str = "20:00:02:00:00:00:00:12";

    /// What stands for configfs.
    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Self {
            let own = Self(tempfile::tempdir().expect("a folder"));
            fs::create_dir_all(own.0.path().join(LIO).join("fc")).expect("made");
            own
        }

        fn group(&self) -> PathBuf {
            self.0.path().join(LIO).join("fc").join(PORT).join("tpgt_1")
        }

        fn unit(&self, id: &str, number: u16) -> Unit {
            Unit::of(self.0.path(), id, ("fc", PORT), number)
        }

        fn link(&self) -> PathBuf {
            self.0.path().join("issue_lip")
        }

        fn serve(&self, unit: &Unit, initiators: &[&str]) -> io::Result<Vec<String>> {
            let link = self.link();
            let wanted = Wanted {
                path: Path::new("/dev/no-such"),
                serial: "5e1a",
                initiators: initiators.iter().map(|own| (*own).to_owned()).collect(),
                link: &link,
            };
            unit.stand(&wanted, false).and_then(|()| unit.serve(&wanted, || false))
        }

        fn log_in(&self, initiator: &str, unit: &Unit) {
            let own = self.group().join("acls").join(initiator).join(unit.name());
            let own = own.join("statistics/scsi_att_intr_port");
            fs::create_dir_all(&own).expect("made");
            fs::write(own.join("port_ident"), format!("{initiator}+i+\n")).expect("written");
        }
    }

    #[test]
    fn a_unit_comes_and_goes() {
        let tree = Tree::new();
        let unit = tree.unit("a-1", 1);
        tree.serve(&unit, &[INITIATOR, OTHER]).expect("made");
        let group = tree.group();
        assert_eq!(unit.is_own().expect("looked"), Some(true));
        assert_eq!(read(&tree.link()), "1", "nobody was logged in");
        let mapping = group.join("acls").join(OTHER).join("lun_1");
        assert_eq!(read(&mapping.join("write_protect")), "0");
        // Once more: nothing is done.
        fs::remove_file(tree.link()).expect("there");
        tree.serve(&unit, &[INITIATOR, OTHER]).expect("as it is");
        assert!(!tree.link().exists());
        tree.serve(&unit, &[INITIATOR]).expect("one less");
        assert!(!group.join("acls").join(OTHER).exists() && !tree.link().exists());
        unit.end(&BTreeSet::new()).expect("ended");
        assert!(!unit.target.exists() && !unit.device.exists());
        unit.end(&BTreeSet::new()).expect("had ended");
    }

    #[test]
    fn a_port_is_shared() {
        let tree = Tree::new();
        let [one, two, same] = [("a-1", 1), ("b-2", 2), ("c-3", 1)].map(|(i, n)| tree.unit(i, n));
        tree.serve(&one, &[INITIATOR]).expect("made");
        tree.log_in(INITIATOR, &one);
        fs::remove_file(tree.link()).expect("told");
        assert_eq!(tree.serve(&two, &[INITIATOR]).expect("made"), Vec::<String>::new());
        assert!(!tree.link().exists(), "somebody is logged in");
        assert_eq!(one.sessions().expect("told"), [INITIATOR]);
        let error = tree.serve(&same, &[INITIATOR]).expect_err("another's").to_string();
        assert_eq!(
            error,
            format!("LUN 1 of port {PORT} is another's; delete this export, and create it anew")
        );
        same.end(&BTreeSet::new()).expect("nothing of it");
        assert_eq!(one.is_own().expect("looked"), Some(true));
        one.end(&BTreeSet::new()).expect("ended");
        let access = tree.group().join("acls").join(INITIATOR);
        assert!(!access.join("lun_1").exists() && access.join("lun_2").join(LINK).is_symlink());
        two.end(&BTreeSet::new()).expect("ended");
        assert!(!two.target.exists());
    }

    #[test]
    fn a_mapping_of_others_stays() {
        let tree = Tree::new();
        let [one, five] = [("a-1", 1), ("b-2", 5)].map(|(id, number)| tree.unit(id, number));
        tree.serve(&five, &[INITIATOR]).expect("made");
        let own = tree.group().join("acls").join(INITIATOR).join("lun_1");
        mkdir(&own).and_then(|_| link(&five.place(), &own)).expect("made");
        let error = tree.serve(&one, &[INITIATOR]).expect_err("another's").to_string();
        assert_eq!(
            error,
            format!("LUN 1 of port {PORT} is another's; delete this export, and create it anew")
        );
        one.end(&BTreeSet::new()).expect("ended");
        assert!(own.join(LINK).is_symlink() && !one.place().exists());
    }

    #[test]
    fn a_unit_rests() {
        let tree = Tree::new();
        let unit = tree.unit("a-1", 7);
        unit.rest().expect("nothing of it");
        tree.serve(&unit, &[]).expect("made");
        fs::write(unit.access_state(), "0").expect("the kernel's");
        unit.rest().expect("told");
        assert_eq!(read(&unit.access_state()), IS_ABOUT_TO);
        tree.serve(&unit, &[]).expect("served");
        assert_eq!(read(&unit.access_state()), SERVES);
    }

    #[test]
    fn a_part_is_made_whole() {
        let tree = Tree::new();
        let unit = tree.unit("a-1", 3);
        tree.serve(&unit, &[INITIATOR]).expect("made");
        fs::remove_file(tree.group().join("acls").join(INITIATOR).join("lun_3").join(LINK))
            .and_then(|()| fs::remove_file(unit.place().join(LINK)))
            .expect("there");
        assert_eq!(unit.is_own().expect("looked"), None);
        tree.serve(&unit, &[INITIATOR]).expect("made whole");
        assert_eq!(unit.is_own().expect("looked"), Some(true));
        unit.end(&BTreeSet::new()).expect("ended");
        assert!(!unit.target.exists());
    }
}
