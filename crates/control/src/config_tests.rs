//! What configurations say, and how their mistakes are told.

use super::*;
use units::Nanos;

#[test]
fn reads_all_keys() {
    let text = "socket = \"/tmp/s\"\ncores = 2\ndrives = [\"/dev/nvme?n1\", \"/d/a*.img\"]\n\
                drive_deadline_ms = 2000\ndrive_wait_ms = 0\nparity = \"gpu\"\n\
                parity_check = 16\nconfirm = \"off\"\nstate = \"/s\"\n\
                https = [\"[::1]:8443\"]\ncertificate = \"/c\"\nkey = \"/k\"\n\
                metrics = \"open\"\nsysfs = \"/y\"\n[access]\n\
                operators = [\"@wheel\"]\n";
    let config = Config::parse(text).expect("valid");
    assert_eq!(config.socket, Some("/tmp/s".into()));
    assert_eq!((config.cores, config.drive_deadline_ms), (2, 2_000));
    assert_eq!(config.drive_wait_ms, 0);
    assert_eq!((config.parity, config.parity_check), (Placement::Gpu, 16));
    assert_eq!(config.state, Some("/s".into()));
    assert_eq!(config.sysfs(), PathBuf::from("/y"));
    let files = Some(("/c".into(), "/k".into()));
    let listen = vec!["[::1]:8443".parse().expect("an address")];
    assert_eq!(config.https(), https::Settings { listen, files });
    let access = config.access.expect("is there");
    assert_eq!(access.operators, ["@wheel"]);
    assert_eq!(access.administrators, ["root", "@palisade"]);
    assert!(!config.confirm && config.metrics);
    assert_eq!(config.drives, ["/dev/nvme?n1", "/d/a*.img"]);
}

#[test]
fn everything_has_a_default() {
    let config = Config {
        socket: None,
        cores: 1,
        drives: vec![],
        drive_deadline_ms: 10_000,
        drive_wait_ms: 30_000,
        parity: Placement::Auto,
        parity_check: 1024,
        state: None,
        confirm: true,
        counters: true,
        access: None,
        https: vec![],
        certificate: None,
        key: None,
        metrics: false,
        sysfs: None,
        services: None,
        health: Settings::default(),
        enclosures: vec![],
        shelves: vec![],
        fabrics: Fabrics::default(),
    };
    assert_eq!(config.sysfs(), PathBuf::from("/sys"));
    assert_eq!(Config::parse(""), Ok(config));
}

#[test]
fn fabrics_are_described_in_the_words_of_nvme_cli() {
    let id = "3e0a1c52-7d7c-4bb5-9b2e-1f0c5a8d9e01";
    let text = format!(
        "cores = 3\n[fabrics]\nhostnqn = \"nqn.2026-11.org.example:h\"\nhostid = \"{id}\"\n\
         nr_io_queues = 4\nqueue_size = 64\nhdr_digest = true\ndata_digest = \"on\"\n\
         keep_alive_tmo = 4\nreconnect_delay = 2\nfast_io_fail_tmo = 7\nctrl_loss_tmo = 60\n\
         heartbeat_ms = 250\n"
    );
    let Fabrics { hostnqn, hostid, nr_io_queues, heartbeat, settings } =
        Config::parse(&text).unwrap().fabrics;
    assert_eq!(heartbeat, Nanos::from_millis(250));
    assert_eq!(Fabrics::default().heartbeat, Nanos::from_millis(1_000));
    assert_eq!(hostnqn.map(|nqn| nqn.to_string()).as_deref(), Some("nqn.2026-11.org.example:h"));
    assert_eq!((hostid.map(|id| id.to_string()).as_deref(), nr_io_queues), (Some(id), Some(4)));
    assert!(settings.digests.header && settings.digests.data);
    let times = [
        settings.keep_alive,
        settings.reconnect_delay,
        settings.fast_io_fail,
        settings.controller_loss,
    ];
    assert_eq!(times.map(|time| time.0 / 1_000_000_000), [4, 2, 7, 60]);
    assert_eq!(settings.entries, 64);
    for (line, what) in [
        ("keep_alive_tmo = 0", "1 to 300"),
        ("nr_io_queues = 1", "2 to 65535"),
        ("queue_size = 4096", "16 to 1024"),
        ("hdr_digest = \"yes\"", "on or off"),
        ("hostid = \"1\"", "must be a UUID"),
        ("hostnqn = \"h\"", "hostnqn: h"),
        ("hostnqn = \"nqn.2026-11.org.example:h\"", "hostnqn needs hostid"),
        ("heartbeat_ms = 99", "100 to 60000"),
        ("heartbeat_ms = 60001", "100 to 60000"),
        ("keepalive = 1", "fabrics has no key keepalive"),
    ] {
        let problem = Config::parse(&format!("[fabrics]\n{line}\n")).expect_err(line);
        assert!(problem.contains(what), "{line}: {problem}");
    }
}

#[test]
fn a_fence_that_outlasts_the_deadline_is_told() {
    let told = |text: &str| Config::parse(text).expect("valid").fences_too_long();
    let long = "drive_deadline_ms = 6000";
    assert_eq!(told(long), None, "no drive is behind a fabric");
    let drive = "drives = [\"nvme://nqn.2026-11.org.example:s/1\"]";
    let found = told(&format!("{long}\n{drive}")).expect("is too long");
    assert!(found.contains("6000 ms") && found.contains("keep_alive_tmo"), "{found}");
    assert_eq!(told(&format!("drive_deadline_ms = 6001\n{drive}")), None);
    assert!(told("[fabrics]\nkeep_alive_tmo = 4").is_some());
    let all = Config::parse("[fabrics]\nkeep_alive_tmo = 4").expect("valid").warnings();
    assert_eq!(all.len(), 1, "{all:?}");
}

#[test]
fn mistakes_are_named_with_their_line() {
    let problem = Config::parse("cores = 1\ndrivs = []\n").expect_err("unknown key");
    assert!(problem.contains("line 2") && problem.contains("drivs"), "{problem}");
    assert!(!problem.contains('\n'), "{problem}");
    let problem = Config::parse("[access]\nadmins = []").expect_err("unknown key");
    assert!(problem.contains("admins"), "{problem}");
    let problem = Config::parse("cores = \"two\"").expect_err("wrong kind");
    assert!(problem.contains("line 1"), "{problem}");
    let problem = Config::parse("drive_deadline_ms = 1").expect_err("too short");
    assert!(problem.contains("500 to 600000"), "{problem}");
    let problem = Config::parse("drive_wait_ms = 600001").expect_err("too long");
    assert!(problem.contains("at most 600000"), "{problem}");
    let problem = Config::parse("parity = \"fpga\"").expect_err("no such place");
    assert!(problem.contains("cpu, gpu or auto") && problem.contains("fpga"), "{problem}");
    let problem = Config::parse("confirm = \"no\"").expect_err("no such word");
    assert!(problem.contains("confirm: on or off, not no"), "{problem}");
    let problem = Config::parse("counters = \"yes\"").expect_err("no such word");
    assert!(problem.contains("counters: on or off, not yes"), "{problem}");
    let problem = Config::parse("metrics = \"on\"").expect_err("no such word");
    assert!(problem.contains("open or login, not on"), "{problem}");
    assert!(Config::parse("cores = 0").expect_err("none").contains("1 to 64"));
}

#[test]
fn what_keeps_https_from_being_served_is_a_warning() {
    use crate::certificate::{self, For};
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str, mode| {
        let path = place.path().join(name);
        std::fs::write(&path, text).expect("written");
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&path, mode).expect("set");
    };
    let found = |text: &str| {
        let text = text.replace("DIR", &place.path().display().to_string());
        let found = Config::parse(&text).expect("valid").warnings();
        found.join("\n").replace(&place.path().display().to_string(), "DIR")
    };
    let (listen, files) = (
        "state = 'DIR/state'\nhttps = ['127.0.0.1:1']\n",
        "certificate = 'DIR/c'\nkey = 'DIR/k'\n",
    );
    let both = format!("{listen}{files}");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let good = certificate::make(&For::default(), now, None).expect("made");
    let key = certificate::key_of(&good.pem).expect("a key");
    assert!(found(&both).contains("certificate: DIR/c can't be read: No such file"));
    file("c", &good.shown.pem, 0o644);
    file("k", &key, 0o640);
    assert_eq!(found(&both), "");
    file("k", &key, 0o644);
    assert_eq!(found(&both), "key: everybody may read or write DIR/k");
    assert!(found(files).starts_with("certificate: it is shown nowhere"), "{}", found(files));
    file("k", "", 0o600);
    assert!(found(&both).contains("no private key"), "{}", found(&both));
    let ended = certificate::make(&For::default(), now - 400 * 86_400, None).expect("made");
    file("c", &ended.shown.pem, 0o644);
    file("k", &key, 0o600);
    assert!(found(&both).contains("another certificate's"), "{}", found(&both));
    file("k", &certificate::key_of(&ended.pem).expect("a key"), 0o600);
    assert!(found(&both).contains("certificate: the certificate of HTTPS is good until"));
    if std::env::var_os(state::VARIABLE).is_none() {
        let told = found("https = ['127.0.0.1:1']");
        assert!(told.starts_with("https: it needs a state directory"), "{told}");
    }
}

#[test]
fn all_mistakes_of_a_file_are_named_with_their_lines() {
    let text = "# mine\ncores = 65\ndrivs = [\n  \"/dev/a\",\n]\nparity = \"fpga\"\n\
                socket = 1\ndrive_wait_ms = 600001\n";
    let found = mistakes(text);
    let lines: Vec<_> = found.iter().map(|mistake| mistake.line).collect();
    assert_eq!(lines, [2, 3, 6, 7, 8].map(Some), "{found:?}");
    assert!(found[1].what.contains("drivs") && found[0].what.contains("1 to 64"), "{found:?}");
    assert_eq!(mistakes("cores = 2\n"), []);
    assert_eq!(mistakes("cores = 2\n[drives\n").len(), 1);
    assert_eq!(mistakes("cores = 1\ncores = 2\n")[0].line, Some(2));
    // A table that nobody knows, and what is in one.
    assert_eq!(mistakes("cores = 65\n[cpu]\nfast = 1\n").len(), 2);
}

const SHELVES: &str = r#"
[health]
ask_every_s = 1
link = "off"

[[enclosure]]
name = "shelf"
model = "Data24"
slots = 24
columns = 24
modules = [
  { name = "A", ports = ["eth0", "eth1"] },
  { name = "B", ports = ["eth2"] },
]
drives = { "1" = "S1", "24" = "/dev/disk/by-id/a" }

[[enclosure]]
name = "other"
[enclosure.drives]
"1" = "S2"
"#;

#[test]
fn health_and_enclosures_are_read() {
    let config = Config::parse(SHELVES).expect("valid");
    let health = Settings { ask_every_s: 1, link: 0, ..Settings::default() };
    assert_eq!(config.health, health);
    let module = |name: &str, ports: &[&str]| Module {
        name: name.to_owned(),
        ports: ports.iter().map(|port| (*port).to_owned()).collect(),
    };
    let shelf = Enclosure {
        name: "shelf".to_owned(),
        model: Some("Data24".to_owned()),
        slots: Some(24),
        columns: Some(24),
        modules: vec![module("A", &["eth0", "eth1"]), module("B", &["eth2"])],
        drives: [(1, "S1".to_owned()), (24, "/dev/disk/by-id/a".to_owned())].into(),
    };
    let drives = [(1, "S2".to_owned())].into();
    let other = Enclosure { name: "other".to_owned(), drives, ..Enclosure::default() };
    assert_eq!(config.enclosures, [shelf, other]);
    let (enclosures, shelves) = (config.enclosures.clone(), Vec::new());
    assert_eq!(config.described(), Described { health, enclosures, shelves });
}

#[test]
fn mistakes_of_health_and_enclosures_have_their_lines() {
    // A line, where it is wrong, and what is said there.
    type Case = (&'static str, &'static str, &'static [(usize, &'static str)]);
    let cases: &[Case] = &[
        ("ask_every_s = 1", "ask_every_s = 0", &[(3, "ask_every_s must be 1 to 3600, not 0")]),
        ("ask_every_s = 1", "wear = 1", &[(3, "health has no key wear, only ask_every_s,")]),
        ("ask_every_s = 1", "errors = [1]", &[(3, "errors must be 1 to 1000000, not a list")]),
        ("ask_every_s = 1", "errors = 1.5", &[(3, "errors must be 1 to 1000000, not a fraction")]),
        ("ask_every_s = 1", "errors = 0x7fffffffffffffff", &[(3, "errors must be 1 to 1000000")]),
        ("\"off\"", "true", &[(4, "link: on or off, not a truth value")]),
        ("\"off\"", "\"maybe\"", &[(4, "link: on or off, not \"maybe\"")]),
        (
            "ask_every_s = 1",
            "wear_warning_percent = 101",
            &[(3, "wear_critical_percent must be at least wear_warning_percent, which is 101")],
        ),
        ("[health]\nask_every_s = 1\nlink = \"off\"", "health = 1\n\n", &[(2, "health must be a")]),
        ("name = \"shelf\"\n", "\n", &[(6, "an enclosure needs a name")]),
        ("name = \"shelf\"", "name = \" \"", &[(7, "name must not be empty")]),
        ("name = \"shelf\"", "name = 7", &[(7, "name must be a text, not a number")]),
        ("name = \"shelf\"", "name = \"other\"", &[(18, "two enclosures have the name other")]),
        ("model = \"Data24\"", "modell = \"D\"", &[(8, "an enclosure has no key modell, only")]),
        ("model = \"Data24\"", "model = []", &[(8, "model must be a text, not a list")]),
        ("slots = 24", "slots = 0", &[(9, "slots must be 1 to 256, not 0")]),
        ("slots = 24", "slots = 257", &[(9, "slots must be 1 to 256, not 257")]),
        ("slots = 24", "slots = \"24\"", &[(9, "slots must be 1 to 256, not a text")]),
        ("slots = 24", "slots = 23", &[(15, "slot 24 is not one of 1 to 23")]),
        ("columns = 24", "columns = -1", &[(10, "columns must be 1 to 256, not -1")]),
        ("name = \"B\", ", "", &[(13, "a module needs a name")]),
        ("name = \"B\"", "name = \"A\"", &[(13, "two modules of the enclosure have the name A")]),
        ("name = \"B\"", "name = \"B\", mac = 1", &[(13, "a module has no key mac, only name")]),
        ("[\"eth2\"]", "[\"eth1\"]", &[(13, "port eth1 is in module A of shelf already")]),
        ("[\"eth2\"]", "\"eth2\"", &[(13, "ports must be a list, not a text")]),
        ("[\"eth2\"]", "[2]", &[(13, "a port must be a text, not a number")]),
        ("\"24\" =", "\"0\" =", &[(15, "slot 0 is not one of 1 to 24")]),
        ("\"24\" =", "\"a\" =", &[(15, "slot a is not one of 1 to 24")]),
        ("\"24\" =", "\"01\" =", &[(15, "slot 1 is there twice")]),
        ("\"24\" =", "\"1\" =", &[(15, "duplicate key")]),
        ("\"/dev/disk/by-id/a\"", "\"S1\"", &[(15, "drive S1 is in slot 1 of shelf already")]),
        ("\"/dev/disk/by-id/a\"", "24", &[(15, "a drive must be a text, not a number")]),
        ("\"S2\"", "\"S1\"", &[(20, "drive S1 is in slot 1 of shelf already")]),
        ("\"1\" = \"S2\"", "\"257\" = \"S2\"", &[(20, "slot 257 is not one of 1 to 256")]),
        (
            "[[enclosure]]\nname = \"other\"\n[enclosure.drives]",
            "[other]",
            &[(17, "unknown field `other`")],
        ),
        (
            "columns = 24",
            "columns = 0\ncolours = 3",
            &[(10, "columns must be"), (11, "an enclosure has no key colours")],
        ),
    ];
    for (from, to, expected) in cases {
        assert!(SHELVES.contains(from), "{from}");
        let text = SHELVES.replacen(from, to, 1);
        let found = mistakes(&text);
        let lines: Vec<_> = found.iter().map(|mistake| mistake.line).collect();
        let wanted: Vec<_> = expected.iter().map(|(line, _)| Some(*line)).collect();
        assert_eq!(lines, wanted, "{to}: {found:?}");
        for (mistake, (_, what)) in found.iter().zip(*expected) {
            assert!(mistake.what.starts_with(what), "{to}: {found:?}");
        }
        // What a reload says.
        let told = Config::parse(&text).expect_err(to);
        assert!(told.starts_with(&found[0].to_string()), "{told}");
    }
    assert_eq!(mistakes(SHELVES), []);
}

#[test]
fn mistakes_of_all_tables_are_told_together() {
    let text = "cores = 65\nenclosure = 3\nparity = \"fpga\"\nsysfs = 1\n[health]\nlink = 1\n\
                wear = 2\n[access]\nadmins = []\n";
    let lines: Vec<_> = mistakes(text).iter().map(|mistake| mistake.line).collect();
    assert_eq!(lines, [1, 2, 3, 4, 6, 7, 9].map(Some));
}

#[test]
fn a_tree_of_devices_that_is_not_there_is_a_warning() {
    let told = Config::parse("sysfs = \"/no/such/tree\"").expect("valid").warnings();
    assert_eq!(told, ["sysfs: no directory is at /no/such/tree"]);
    assert_eq!(Config::parse("sysfs = \"/\"").expect("valid").warnings(), [""; 0]);
}

const SERVICES: &str = r#"[[shelf]]
redfish = "https://shelf.example:8443"
fingerprint = "00:11:22:33:44:55:66:77:88:99:aa:BB:cc:dd:ee:ff:00112233445566778899aabbccddeeff"
credentials = "/etc/palisade/shelf"
name = "left"
[[shelf]]
redfish = "https://[::1]:1"
fingerprint = "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"
credentials = "other"
"#;

#[test]
fn shelves_are_read() {
    let config = Config::parse(SERVICES).expect("valid");
    let print = core::array::from_fn(|at| (at % 16 * 0x11) as u8);
    let left = Shelf {
        redfish: shelves::Url { host: "shelf.example".to_owned(), port: 8443 },
        fingerprint: print,
        credentials: "/etc/palisade/shelf".into(),
        name: Some("left".to_owned()),
    };
    assert_eq!((config.shelves.len(), &config.shelves[0]), (2, &left));
    assert_eq!(config.shelves[1].name(), "[::1]:1");
    let told = config.warnings();
    let own: Vec<_> = told.iter().filter(|text| text.starts_with("credentials: ")).collect();
    assert_eq!(own.len(), 2, "{told:?}");
}

#[test]
fn mistakes_of_shelves_have_their_lines() {
    let cases: &[(&str, &str, usize, &str)] = &[
        ("redfish = \"https://[::1]:1\"\n", "\n", 6, "a shelf needs redfish: https://HOST:PORT"),
        ("[::1]:1", "shelf.example:8443/", 7, "two shelves are at https://shelf.example:8443"),
        ("https://[::1]:1", "http://a:1", 7, "redfish must be https://HOST:PORT"),
        ("https://[::1]:1", "https://user:pass@a:1", 7, "redfish must be https://HOST:PORT; name"),
        ("ffeedd", "fe", 8, "fingerprint must be 64 hexadecimal digits, not feccbb"),
        ("ffeedd", "gfeedd", 8, "fingerprint must be 64 hexadecimal digits"),
        ("\"other\"", "7", 9, "credentials must be a text, not a number"),
        ("\"other\"", "\"\"", 9, "credentials must not be empty"),
        ("\"other\"", "\"other\"\nname = \"left\"", 10, "two shelves have the name left"),
        ("name = ", "nam = ", 5, "a shelf has no key nam, only redfish, fingerprint"),
    ];
    for (from, to, line, what) in cases {
        let text = SERVICES.replacen(from, to, 1);
        let found = mistakes(&text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert_eq!(found[0].line, Some(*line), "{found:?}");
        assert!(found[0].what.starts_with(what), "{found:?}");
    }
    let secret = SERVICES.replacen("https://[::1]:1", "https://user:pass@a:1", 1);
    assert!(!mistakes(&secret)[0].what.contains("pass@"));
    assert!(mistakes("shelf = 7\n")[0].what.starts_with("shelf must be a list"));
}
