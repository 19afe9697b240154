//! Shelves that run, with our own host: parts are pulled out and put back under it.

use drives::SharedDrive;
use drives::remote::host::{HostIdentity, PathState, Settings};
use drives::remote::{Fabric, Place, Wishes};
use io::{Buf, DriveError, Pool};
use nvme::nqn::Nqn;
use palisade_shelf::plan::Balance;
use palisade_shelf::{Answer, Ask, Control, Plan, Pull, Shelf, ShelfError, Shown, ZoneWords, ask};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};
use units::Nanos;

const LIMIT: Duration = Duration::from_secs(60);
const HOST: &str = "nqn.2026-11.example:host";

/// A host that notices soon.
fn fabric() -> Fabric {
    let host = HostIdentity { nqn: Nqn::new(HOST).expect("a name"), id: [3; 16] };
    let settings = Settings {
        entries: 32,
        reconnect_delay: Nanos::from_millis(20),
        fast_io_fail: Nanos::from_millis(30_000),
        ..Settings::default()
    };
    Fabric::start(host, settings, 1).expect("it starts")
}

fn place(shelf: &Shelf, port: &str) -> Place {
    let ports = shelf.ports();
    let (_, address) = ports.iter().find(|(name, _)| name == port).expect("there is one");
    Place { host: address.ip().to_string(), port: address.port() }
}

/// A part that is pulled out, or put back.
fn pull(shelf: &Shelf, part: &str, name: &str, how: Pull) {
    let (part, name) = (part.to_owned(), Some(name.to_owned()));
    shelf.ask(&Ask::Pull { part, name, how }).expect("pulled out");
}

fn restore(shelf: &Shelf, part: &str, name: &str) {
    let (part, name) = (part.to_owned(), Some(name.to_owned()));
    shelf.ask(&Ask::Restore { part, name }).expect("restored");
}

fn shown(shelf: &Shelf) -> Shown {
    match shelf.ask(&Ask::Show).expect("shown") {
        Answer::Shown(shown) => shown,
        Answer::Done {} => panic!("nothing is shown"),
    }
}

fn buffer(seed: u8) -> Buf {
    let mut buffer = Pool::single(4096);
    buffer.fill(seed);
    buffer.freeze()
}

fn read(drive: &SharedDrive) -> Result<u8, DriveError> {
    let mut into = Pool::single(4096);
    drive.read_blocking(8192, &mut into).map(|()| into[17])
}

fn write(drive: &SharedDrive, seed: u8) {
    drive.write_blocking(8192, &[buffer(seed)]).expect("written");
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "{what} does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// States of paths, in the order in which they were added.
fn states(fabric: &Fabric) -> Vec<PathState> {
    let all = fabric.status();
    all.iter().flat_map(|own| own.paths.iter().map(|path| path.state)).collect()
}

#[test]
fn what_a_shelf_has_is_discovered_at_each_port_and_is_the_same_by_each() {
    let (shelf, fabric) = (Shelf::start(&Plan::small(6, 24)).expect("it starts"), fabric());
    let (_, places) = fabric.discover(&place(&shelf, "A1"), &Wishes::default()).expect("told");
    // Drives 1 to 8 at A1 and B1, and so on.
    assert_eq!(places.len(), 48);
    let own = Plan::small(6, 24).subsystem(8);
    let at: Vec<String> =
        places.iter().filter(|own_| own_.subsystem == own).map(|p| p.service.clone()).collect();
    let wanted = ["A2", "B2"].map(|port| place(&shelf, port).port.to_string());
    assert_eq!(at, wanted);
    for port in ["A2", "B2"] {
        fabric.connect(&place(&shelf, port), &own).expect("connected");
    }
    let elsewhere = fabric.connect(&place(&shelf, "A1"), &own);
    assert!(elsewhere.is_err(), "it is not there");
    let drives = [1, 2].map(|nsid| fabric.open(&own, nsid).expect("a drive"));
    assert_eq!(drives[0].info().bytes, 4 << 20);
    assert_eq!(drives[0].info().block_bytes, 4096);
    write(&drives[0], 5);
    write(&drives[1], 6);
    assert_eq!(drives.each_ref().map(read), [Ok(5), Ok(6)]);
    let shown = shown(&shelf);
    let ports: Vec<_> = shown.ioms.iter().flat_map(|module| &module.ports).collect();
    let with: Vec<_> = ports.iter().filter(|port| port.hosts == [HOST]).map(|p| &p.name).collect();
    assert_eq!(with, ["A2", "B2"]);
    let own = &shown.drives[8];
    assert_eq!((own.slot, own.hosts.as_slice()), (9, &[HOST.to_owned()][..]));
    assert_eq!(own.namespaces[1].uuid, Plan::small(6, 24).identifier(8, 2).to_string());
    assert_eq!(own.serial, fabric.status()[0].serial, "as its controllers say it");
}

/// One port falls silent, is reset, goes with its module: the other carries on each time.
#[test]
fn a_port_that_goes_is_noticed_by_who_looks_only() {
    let (shelf, fabric) = (Shelf::start(&Plan::small(2, 1)).expect("it starts"), fabric());
    let name = Plan::small(2, 1).subsystem(0);
    for port in ["A1", "B1"] {
        fabric.connect(&place(&shelf, port), &name).expect("connected");
    }
    let drive = fabric.open(&name, 1).expect("a drive");
    use PathState::Live;
    for (round, (part, which, how)) in [
        ("port", "A1", Pull::Reset),
        ("iom", "A", Pull::Silent),
        ("port", "A1", Pull::Silent),
        ("iom", "A", Pull::Reset),
    ]
    .into_iter()
    .enumerate()
    {
        let seed = round as u8 * 2 + 1;
        write(&drive, seed);
        pull(&shelf, part, which, how);
        wait_for("the loss", || states(&fabric)[0] != Live);
        assert_eq!(read(&drive), Ok(seed));
        write(&drive, seed + 1);
        restore(&shelf, part, which);
        wait_for("the return", || states(&fabric) == [Live, Live]);
        assert_eq!(read(&drive), Ok(seed + 1));
    }
    let status = fabric.status();
    assert!(status[0].paths[0].reconnects >= 4, "{status:?}");
}

/// A drive that is pulled out is found at no port, and comes back as it was.
#[test]
fn a_drive_that_goes_comes_back_with_what_it_had() {
    let (shelf, fabric) = (Shelf::start(&Plan::small(2, 2)).expect("it starts"), fabric());
    let names = [0, 1].map(|drive| Plan::small(2, 2).subsystem(drive));
    let drives = names.each_ref().map(|name| {
        fabric.connect(&place(&shelf, "A1"), name).expect("connected");
        fabric.open(name, 1).expect("a drive")
    });
    write(&drives[0], 1);
    write(&drives[1], 2);
    for how in [Pull::Reset, Pull::Silent] {
        pull(&shelf, "drive", "1", how);
        wait_for("the loss", || states(&fabric)[0] != PathState::Live);
        assert_eq!(read(&drives[1]), Ok(2), "another's");
        let (_, places) = fabric.discover(&place(&shelf, "A1"), &Wishes::default()).expect("told");
        assert_eq!(places.iter().any(|own| own.subsystem == names[0]), how == Pull::Silent);
        restore(&shelf, "drive", "1");
        wait_for("the return", || states(&fabric)[0] == PathState::Live);
        assert_eq!(drives.each_ref().map(read), [Ok(1), Ok(2)]);
    }
}

#[test]
fn a_port_that_is_pulled_out_keeps_its_number() {
    let shelf = Shelf::start(&Plan::small(2, 1)).expect("it starts");
    let address = shelf.ports()[1].1;
    for _ in 0..20 {
        pull(&shelf, "port", "B1", Pull::Reset);
        assert!(TcpStream::connect(address).is_err(), "it does not listen from then on");
        // Twice is once.
        pull(&shelf, "port", "B1", Pull::Reset);
        restore(&shelf, "port", "B1");
        TcpStream::connect(address).expect("it listens");
        restore(&shelf, "port", "B1");
    }
}

#[test]
fn access_is_asymmetric_if_so_wanted_and_as_it_is_set() {
    use nvme::log::Access::{Inaccessible, NonOptimized, Optimized};
    let plan = Plan { balance: Balance::Asymmetric, ..Plan::small(2, 2) };
    let (shelf, fabric) = (Shelf::start(&plan).expect("it starts"), fabric());
    let name = plan.subsystem(1);
    for port in ["A1", "B1"] {
        fabric.connect(&place(&shelf, port), &name).expect("connected");
    }
    // A path that is lost for a moment says nothing.
    let are = |wanted: [_; 2]| {
        let paths = &fabric.status()[0].paths;
        paths.iter().map(|path| path.access.get(&1).copied()).eq(wanted.map(Some))
    };
    wait_for("both paths", || are([NonOptimized, Optimized]));
    let drive = fabric.open(&name, 1).expect("a drive");
    write(&drive, 1);
    let set = |name: &str, value: &str| {
        let (name, value) = (name.to_owned(), value.to_owned());
        shelf.ask(&Ask::Set { name, value }).expect("set");
    };
    set("port.B1.ana", "inaccessible");
    wait_for("the event", || are([NonOptimized, Inaccessible]));
    assert_eq!(read(&drive), Ok(1));
    set("port.B1.ana.2", "optimized");
    wait_for("the event", || are([NonOptimized, Optimized]));
}

/// Once there is a zone, a host has what zones grant it, at the ports that they say.
#[test]
fn a_host_has_what_zones_grant() {
    let plan = Plan { map: palisade_shelf::plan::Map::Any, ..Plan::small(2, 3) };
    let (shelf, fabric) = (Shelf::start(&plan).expect("it starts"), fabric());
    let names = [0, 1, 2].map(|drive| plan.subsystem(drive));
    let found = || -> Vec<(String, String)> {
        let (_, places) = fabric.discover(&place(&shelf, "A1"), &Wishes::default()).expect("told");
        places.into_iter().map(|own| (own.subsystem.to_string(), own.service)).collect()
    };
    assert_eq!(found().len(), 6);
    for name in &names[..2] {
        for port in ["A1", "B1"] {
            fabric.connect(&place(&shelf, port), name).expect("connected");
        }
    }
    let drives = [0, 1].map(|drive| fabric.open(&names[drive], 1).expect("a drive"));
    write(&drives[0], 1);
    let zone = |name: &str, host: &str, drive: usize| ZoneWords {
        name: name.to_owned(),
        hosts: vec![host.to_owned()],
        drives: vec![drive],
        ..ZoneWords::default()
    };
    let ask = |asked: Ask| shelf.ask(&asked).expect("done");
    // Another host's: this one has nothing any more.
    ask(Ask::AddZone(zone("other", "nqn.2026-11.example:other", 2)));
    wait_for("the loss", || !states(&fabric).contains(&PathState::Live));
    assert_eq!(found(), []);
    let refused = fabric.connect(&place(&shelf, "A1"), &names[2]);
    assert!(refused.is_err_and(|error| error.to_string().contains("host")), "it may not");
    // The first namespace of the first drive, by one port.
    let own =
        ZoneWords { namespaces: vec![1], ports: vec!["B1".to_owned()], ..zone("own", HOST, 1) };
    ask(Ask::AddZone(own));
    let only = |port: &str| (names[0].to_string(), place(&shelf, port).port.to_string());
    assert_eq!(found(), [only("B1")]);
    wait_for("the return", || states(&fabric)[1] == PathState::Live);
    assert_eq!(read(&drives[0]), Ok(1), "what it wrote before");
    // One that knows nothing of before.
    let fresh = self::fabric();
    fresh.connect(&place(&shelf, "B1"), &names[0]).expect("connected");
    assert!(fresh.open(&names[0], 2).is_err(), "it has the first namespace only");
    assert_eq!(fresh.open(&names[0], 1).map(|drive| read(&drive)).ok(), Some(Ok(1)));
    drop(fresh);
    let live = |state: &PathState| *state == PathState::Live;
    assert_eq!(states(&fabric).iter().filter(|own| live(own)).count(), 1);
    // Pulled out and put back, a drive is whose it was.
    pull(&shelf, "drive", "1", Pull::Reset);
    restore(&shelf, "drive", "1");
    assert_eq!(found(), [only("B1")]);
    for name in ["own", "other"] {
        ask(Ask::RemoveZone { name: name.to_owned() });
    }
    assert_eq!(found().len(), 6, "any host has all again");
    wait_for("all", || states(&fabric).iter().all(live));
}

#[test]
fn a_slow_drive_takes_that_longer() {
    let (shelf, fabric) = (Shelf::start(&Plan::small(1, 2)).expect("it starts"), fabric());
    let name = Plan::small(1, 2).subsystem(0);
    fabric.connect(&place(&shelf, "A1"), &name).expect("connected");
    let drive = fabric.open(&name, 1).expect("a drive");
    shelf.ask(&Ask::Slow { drive: "1".to_owned(), ms: 50 }).expect("set");
    let begun = Instant::now();
    write(&drive, 1);
    assert!(begun.elapsed() >= Duration::from_millis(50));
    assert_eq!(shown(&shelf).drives[0].state, "slow");
    shelf.ask(&Ask::Slow { drive: "1".to_owned(), ms: 0 }).expect("set");
    assert_eq!(shown(&shelf).drives[0].state, "ok");
}

#[test]
fn drives_in_files_are_the_same_in_the_next_shelf() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = Plan { folder: Some(folder.path().to_owned()), ..Plan::small(1, 1) };
    let name = plan.subsystem(0);
    for turn in 0..2 {
        let (shelf, fabric) = (Shelf::start(&plan).expect("it starts"), fabric());
        fabric.connect(&place(&shelf, "A1"), &name).expect("connected");
        let drive = fabric.open(&name, 2).expect("a drive");
        assert_eq!(read(&drive), Ok(turn * 9));
        write(&drive, 9);
        let again = Shelf::start(&plan).map(drop).expect_err("it has the files");
        assert!(again.to_string().contains("in use"), "{again}");
    }
    let other = Plan { namespaces: 1, ..plan };
    let error = Shelf::start(&other).map(drop).expect_err("of another size");
    assert!(error.to_string().contains("--namespaces"), "{error}");
}

#[test]
fn a_paced_shelf_takes_the_time_of_its_model() {
    let model = pace::by_name("sn840").map(|model| (model, 20.0));
    let plan = Plan { model, ..Plan::small(2, 1) };
    let (shelf, fabric) = (Shelf::start(&plan).expect("it starts"), fabric());
    let name = plan.subsystem(0);
    fabric.connect(&place(&shelf, "A1"), &name).expect("connected");
    let drive = fabric.open(&name, 1).expect("a drive");
    write(&drive, 4);
    let begun = Instant::now();
    assert_eq!(read(&drive), Ok(4));
    // 85 us are what its reads take at least, and it is 20 times as slow.
    assert!(begun.elapsed() >= Duration::from_micros(85 * 20));
}

#[test]
fn a_shelf_is_asked_over_its_socket() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("shelf.sock");
    let shelf = Shelf::start(&Plan::small(2, 2)).expect("it starts");
    let control = Control::start(&shelf, &path).expect("it answers");
    let other = Control::start(&shelf, &path).map(drop).expect_err("one is there");
    assert!(other.to_string().contains("another --control"), "{other}");
    let asked = |wanted: &Ask| ask(&path, wanted).expect("it answers");
    let drive = |name: &str| Ask::Pull {
        part: "drive".to_owned(),
        name: Some(name.to_owned()),
        how: Pull::Silent,
    };
    asked(&drive("2")).expect("pulled out");
    let shown = asked(&Ask::Show).expect("shown");
    assert_eq!(shown["drives"][1]["state"], "silent");
    assert_eq!(shown["ioms"][1]["ports"][0]["address"], shelf.ports()[1].1.to_string());
    assert_eq!(shown["zones"], serde_json::json!([]));
    assert!(matches!(asked(&drive("3")), Err(ShelfError::Usage(told)) if told.contains("1 to 2")));
    // What is no question is answered, and what is none at all is let go.
    let raw = |line: &str| {
        use std::io::{Read as _, Write as _};
        let mut stream = std::os::unix::net::UnixStream::connect(&path).expect("connected");
        stream.write_all(line.as_bytes()).expect("sent");
        let mut told = String::new();
        stream.read_to_string(&mut told).expect("answered");
        told
    };
    assert!(raw("{\"do\":\"dance\"}\n").contains("not understood"));
    assert!(raw("\n").contains("not understood"));
    drop(control);
    assert!(!path.exists());
    // One that nobody answers on is replaced; what is no socket is not.
    drop(std::os::unix::net::UnixListener::bind(&path).expect("made"));
    drop(Control::start(&shelf, &path).expect("it answers"));
    std::fs::write(&path, "text").expect("written");
    assert!(Control::start(&shelf, Path::new(&path)).is_err());
    assert_eq!(std::fs::read(&path).expect("read"), b"text");
}
