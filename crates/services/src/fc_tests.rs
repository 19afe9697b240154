//! Fibre Channel ports and exports at them, over folders that stand for the kernel's.

use super::*;
use std::fs;

const PORT: &str = "20:00:02:00:00:00:00:10";
const OTHER: &str = "20:00:02:00:00:00:00:0f";

/// What stands for the kernel's folders, and that of this process.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Self {
        let own = Self(tempfile::tempdir().expect("a folder"));
        let config = own.kernel().config;
        for inner in ["target/fc", "nvmet/hosts", "nvmet/subsystems", "nvmet/ports"] {
            fs::create_dir_all(config.join(inner)).expect("made");
        }
        fs::create_dir_all(own.folder()).expect("made");
        own
    }

    fn kernel(&self) -> Kernel {
        Kernel { hosts: self.0.path().join("class/fc_host"), config: self.0.path().join("config") }
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("services")
    }

    fn port(&self, host: &str, name: &str, files: &[(&str, &str)]) {
        let hosts = self.kernel().hosts;
        let own = hosts.join(host);
        fs::create_dir_all(&own).expect("made");
        fs::write(own.join("port_name"), format!("{name}\n")).expect("written");
        for (file, text) in files {
            fs::write(own.join(file), format!("{text}\n")).expect("written");
        }
    }

    fn usual_port(&self) {
        let files =
            [("node_name", "0x1000020000000010"), ("port_state", "Online"), ("speed", "10 Gbit")];
        let about = self.0.path().join("class/scsi_host/host3");
        fs::create_dir_all(&about).expect("made");
        fs::write(about.join("proc_name"), "fcoe\n").expect("written");
        self.port("host3", "0x2000020000000010", &files);
    }

    fn serve(&self, kind: Kind, device: u64) -> io::Result<Served> {
        let wanted = wanted(kind);
        self.kernel().serve(&self.folder(), &wanted, (Path::new("/dev/no-such"), device))
    }

    fn mark(&self) -> Option<Mark> {
        Mark::read(&self.folder(), "a-1")
    }
}

fn wanted(kind: Kind) -> Wanted {
    Wanted {
        id: "a-1".to_owned(),
        revision: 1,
        array: "a".to_owned(),
        volume: "v".to_owned(),
        kind,
        bytes: 1 << 30,
        block_bytes: 4096,
        best_bytes: 4096,
        discard_bytes: 4096,
        attached: true,
        leaving: false,
        suspended: false,
    }
}

fn unit(port: &str, unit: u16) -> Kind {
    let initiators = vec!["20:00:02:00:00:00:00:11".to_owned()];
    Kind::Fc(Box::new(Fc { port: port.to_owned(), unit, serial: "5e1a".to_owned(), initiators }))
}

fn subsystem(name: &str) -> Kind {
    Kind::NvmeFc(Box::new(NvmeFc {
        port: PORT.to_owned(),
        subsystem: name.to_owned(),
        uuid: "5E1A0000-0000-4000-8000-0123456789AB".to_owned(),
        hosts: vec!["nqn.h1".to_owned()],
    }))
}

#[test]
fn ports_are_listed() {
    let tree = Tree::new();
    let hosts = tree.kernel().hosts;
    assert_eq!(ports(&hosts), []);
    tree.usual_port();
    tree.port("host2", "0x200002000000000f", &[]);
    tree.port("host4", "none", &[]);
    let port = |name: &str, [driver, state, speed]: [&str; 3]| FcPort {
        name: name.to_owned(),
        driver: driver.to_owned(),
        state: state.to_owned(),
        speed: speed.to_owned(),
    };
    let usual = port(PORT, ["fcoe", "Online", "10 Gbit"]);
    assert_eq!(ports(&hosts), [port(OTHER, [UNKNOWN; 3]), usual]);
}

#[test]
fn a_mark_is_read_as_it_was_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let port = PORT.parse().expect("a name");
    for place in [Place::Fcp(LIBFC.to_owned(), 7), Place::Nvme("nqn.a:b".to_owned())] {
        for device in [None, Some(41)] {
            let names = ["nqn.b", "nqn.a"].map(str::to_owned).into();
            let mark = Mark { port, place: place.clone(), device, names };
            mark.write(folder.path(), "a-1").expect("written");
            assert_eq!(Mark::read(folder.path(), "a-1"), Some(mark));
        }
    }
    assert!(is_there(folder.path(), "a-1") && !is_there(folder.path(), "a"));
}

#[test]
fn another_place_is_taken() {
    let tree = Tree::new();
    tree.usual_port();
    let kernel = tree.kernel();
    let Served { sessions, note } = tree.serve(unit(PORT, 1), 5).expect("made");
    assert_eq!((sessions, note), (Vec::new(), None));
    let group = kernel.config.join("target/fc").join(PORT).join("tpgt_1");
    assert!(group.join("lun/lun_1").is_dir());
    assert_eq!(tree.mark().and_then(|mark| mark.device), Some(5));
    tree.serve(unit(PORT, 2), 5).expect("made");
    assert!(!group.join("lun/lun_1").exists() && group.join("lun/lun_2").is_dir());
    tree.serve(subsystem("nqn.a"), 5).expect("made");
    assert!(!group.exists());
    let port = kernel.config.join("nvmet/ports/7241");
    let address = configfs::read(&port.join("addr_traddr"));
    assert_eq!(address, "nn-0x1000020000000010:pn-0x2000020000000010");
    tree.serve(subsystem("nqn.b"), 6).expect("made");
    assert!(!kernel.config.join("nvmet/subsystems/nqn.a").exists());
    kernel.end(&tree.folder(), "a-1").expect("ended");
    assert!(tree.mark().is_none() && !port.exists());
    kernel.end(&tree.folder(), "a-1").expect("had ended");
}

#[test]
fn what_a_process_left_that_was_killed_goes() {
    let tree = Tree::new();
    tree.usual_port();
    let kernel = tree.kernel();
    tree.serve(unit(PORT, 1), 5).expect("made");
    let target = kernel.config.join("target/fc").join(PORT);
    let access = configfs::folders(&target.join("tpgt_1/acls")).expect("listed").remove(0);
    std::fs::remove_dir_all(access.join("lun_1")).expect("removed");
    kernel.end(&tree.folder(), "a-1").expect("ended");
    assert!(!target.exists(), "access without a mapping");
    tree.serve(subsystem("nqn.a"), 5).expect("made");
    let root = kernel.config.join("nvmet");
    let allowed = root.join("subsystems/nqn.a/allowed_hosts");
    for link in configfs::links(&allowed).expect("listed") {
        std::fs::remove_file(link).expect("removed");
    }
    assert!(!configfs::folders(&root.join("hosts")).expect("listed").is_empty());
    kernel.end(&tree.folder(), "a-1").expect("ended");
    for folder in ["hosts", "subsystems", "ports"] {
        assert!(configfs::folders(&root.join(folder)).expect("listed").is_empty(), "{folder}");
    }
}

#[test]
fn what_another_export_has_stays() {
    let tree = Tree::new();
    tree.serve(subsystem("nqn.a"), 5).expect("made");
    let mark = tree.mark().expect("there");
    mark.write(&tree.folder(), "b-2").expect("written");
    let (kernel, own) = (tree.kernel(), tree.kernel().config.join("nvmet/subsystems/nqn.a"));
    kernel.end(&tree.folder(), "a-1").expect("ended");
    assert!(tree.mark().is_none() && own.is_dir());
    kernel.end(&tree.folder(), "b-2").expect("ended");
    assert!(!own.exists());
}

#[test]
fn what_an_export_had_alone_goes_with_it() {
    let tree = Tree::new();
    tree.serve(subsystem("nqn.a"), 5).expect("made");
    let mut mark = tree.mark().expect("there");
    let kernel = tree.kernel();
    // The subsystem is another export's by now, at another port; of the host that this one was to
    // let in no more than its name was known.
    mark.write(&tree.folder(), "b-2").expect("written");
    let root = kernel.config.join("nvmet");
    fs::create_dir(root.join("hosts/nqn.h2")).expect("made");
    mark.names = ["nqn.h2".to_owned()].into();
    mark.write(&tree.folder(), "a-1").expect("written");
    let port = root.join("ports/7241");
    configfs::unlink(&port.join("subsystems")).expect("left");
    kernel.end(&tree.folder(), "a-1").expect("ended");
    assert!(root.join("subsystems/nqn.a").is_dir() && root.join("hosts/nqn.h1").is_dir());
    assert!(!port.exists() && !root.join("hosts/nqn.h2").exists());
}

#[test]
fn the_link_of_a_port_begins_anew_only_where_nothing_else_uses_it() {
    let tree = Tree::new();
    tree.usual_port();
    let link = tree.kernel().hosts.join("host3/issue_lip");
    let far = tree.0.path().join("class/fc_remote_ports");
    for (name, role) in [("rport-3:0-1", "FCP Initiator"), ("rport-31:0-1", "FCP Target")] {
        fs::create_dir_all(far.join(name)).expect("made");
        fs::write(far.join(name).join("roles"), role).expect("written");
    }
    let is_told = |unit_of| {
        tree.serve(unit(PORT, unit_of), 5).expect("made");
        let is_told = link.exists();
        let _ = fs::remove_file(&link);
        is_told
    };
    assert!(is_told(1));
    fs::write(far.join("rport-3:0-1/roles"), "FCP Target, FCP Initiator").expect("written");
    assert!(!is_told(2), "this machine has units by it");
    fs::remove_dir_all(far).expect("removed");
    assert!(is_told(3));
    let port = tree.kernel().config.join("nvmet/ports/9");
    fs::create_dir_all(port.join("subsystems")).expect("made");
    fs::write(port.join("addr_trtype"), "fc").expect("written");
    fs::write(port.join("addr_traddr"), "nn-0x1:pn-0x2000020000000010").expect("written");
    assert!(is_told(4), "nvmet serves nothing at it");
    std::os::unix::fs::symlink("/", port.join("subsystems/nqn.other")).expect("made");
    assert!(!is_told(5), "nvmet serves something at it");
}

#[test]
fn what_is_missing_is_told() {
    let tree = Tree::new();
    let why = |kind| tree.serve(kind, 5).map(drop).expect_err("it can't be").to_string();
    let none = format!(
        "there is no Fibre Channel port {PORT} here; palisade port list shows those that there are"
    );
    assert_eq!(why(unit(PORT, 1)), none);
    tree.usual_port();
    fs::write(tree.kernel().hosts.join("host3/port_state"), "Linkdown").expect("written");
    let told = tree.serve(unit(PORT, 1), 5).expect("made");
    assert_eq!(told.note, Some(format!("port {PORT} is Linkdown")));
    let driver = tree.0.path().join("class/scsi_host/host3/proc_name");
    fs::write(driver, QLOGIC).expect("written");
    assert!(why(unit(PORT, 1)).contains("load target_core_iblock"));
    fs::remove_dir_all(tree.kernel().config.join(configfs::NVMET)).expect("removed");
    assert_eq!(why(subsystem("nqn.a")), nvmet::NONE);
}
