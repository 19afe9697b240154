//! The text is what Prometheus' format says, of whatever view; and of one view it is a known one.

use super::*;
use crate::counters::*;
use crate::log::{Ending, Entry, Log};
use crate::sample;
use crate::view::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Names and values.
type Labels = Vec<(String, String)>;

/// A family as a naive reader has it.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    help: String,
    /// Name, labels and value.
    samples: Vec<(String, Labels, f64)>,
}

fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_lowercase())
        && letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Labels between braces, unescaped.
fn labels_of(mut text: &str) -> Labels {
    let mut all = Vec::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"").expect("a label");
        let (mut value, mut letters) = (String::new(), rest.char_indices());
        let end = loop {
            match letters.next().expect("an end") {
                (at, '"') => break at + 1,
                (_, '\\') => value.push(match letters.next().expect("more").1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, other) => value.push(other),
            }
        };
        assert!(is_name(name), "{name}");
        all.push((name.to_owned(), value));
        text = &rest[end..];
        text = text.strip_prefix(',').unwrap_or(text);
    }
    all
}

/// Reads a text, and finds fault with what Prometheus would.
fn read(text: &str) -> BTreeMap<String, Family> {
    let mut all: BTreeMap<String, Family> = BTreeMap::new();
    let mut name = String::new();
    let mut seen = BTreeSet::new();
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (of, help) = rest.split_once(' ').expect("help");
            name = of.to_owned();
            let family = Family { help: help.to_owned(), ..Family::default() };
            assert!(all.insert(name.clone(), family).is_none(), "{name} is in two places");
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (of, kind) = rest.split_once(' ').expect("a type");
            assert_eq!(of, name);
            all.get_mut(of).expect("help").kind = kind.to_owned();
            continue;
        }
        let (head, value) = line.rsplit_once(' ').expect("a value");
        let (own, labels) = match head.split_once('{') {
            Some((own, labels)) => (own, labels.strip_suffix('}').expect("a brace")),
            None => (head, ""),
        };
        let family = all.get_mut(&name).expect("a family");
        let suffix = own.strip_prefix(&name[..]).expect("of its family");
        let suffixes = ["_bucket", "_sum", "_count"];
        assert_eq!(suffixes.contains(&suffix), family.kind == "histogram", "{line}");
        let mut labels = labels_of(labels);
        labels.sort();
        let names: BTreeSet<_> = labels.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), labels.len(), "{line}");
        assert!(seen.insert((own.to_owned(), labels.clone())), "twice: {line}");
        let value = value.parse().expect("a number");
        family.samples.push((own.to_owned(), labels, value));
    }
    all
}

/// What the conventions say of names, and the format of histograms.
fn judge(all: &BTreeMap<String, Family>) {
    for (name, family) in all {
        assert!(is_name(name) && !family.samples.is_empty(), "{name}");
        assert!(name.starts_with("palisade_") || name.starts_with("process_"), "{name}");
        assert!(family.help.ends_with('.'), "{name}: {}", family.help);
        assert_eq!(name.ends_with("_total"), family.kind == "counter", "{name}");
        assert!(["counter", "gauge", "histogram"].contains(&&family.kind[..]), "{name}");
        for suffix in ["_ms", "_us", "_kb", "_count", "_sum", "_bucket", "_percent"] {
            assert!(!name.ends_with(suffix), "{name}");
        }
        if family.kind != "histogram" {
            continue;
        }
        let mut last: BTreeMap<_, (f64, f64)> = BTreeMap::new();
        for (own, labels, value) in &family.samples {
            let is_bound = |label: &&(String, String)| label.0 == "le";
            let others: Vec<_> = labels.iter().filter(|label| !is_bound(label)).collect();
            let known = last.entry(others).or_insert((0.0, 0.0));
            if let Some((_, bound)) = labels.iter().find(is_bound) {
                let bound: f64 = bound.parse().expect("a bound");
                assert!(bound > known.0 && *value >= known.1, "{labels:?}");
                *known = (bound, *value);
            } else if own.ends_with("_count") {
                assert_eq!((known.0, known.1), (f64::INFINITY, *value), "{labels:?}");
            }
        }
    }
}

/// Counters as varied as they can be: all words differ.
fn counters(view: &View, from: u64) -> Counters {
    let mut next = from;
    let mut word = || {
        next += 1;
        next
    };
    let mut operations = || Operations {
        under_way: word(),
        latency: Latency { buckets: core::array::from_fn(|_| word()), nanos: word() * 1_000_001 },
        bytes: word(),
        errors: Errors { bounds: word(), unavailable: word(), stopped: word() },
        abandoned: word(),
    };
    let all = view.status.arrays.iter().flat_map(|array| &array.volumes);
    let mut volumes: Vec<_> = all
        .map(|volume| {
            Arc::new(VolumeCounters {
                volume: volume.uuid.clone(),
                reads: operations(),
                writes: operations(),
                flushes: operations(),
                discards: Operations::default(),
            })
        })
        .collect();
    volumes.sort_by(|a, b| a.volume.cmp(&b.volume));
    let all = view.status.arrays.iter().flat_map(|array| &array.exports);
    let exports = all.map(|export| ExportCounters {
        export: export.id.clone(),
        connections: 1,
        connected: 2,
    });
    Counters {
        is_on: true,
        since: 0,
        nanos: 5_000_000_000,
        at: 1_700_000_000_123,
        volumes,
        drives: view.drives.iter().take(1).map(drive_times).collect(),
        exports: exports.collect(),
        hosts: vec![HostCounters {
            host: "nqn.a:b".to_owned(),
            controllers: vec![ControllerCounters::default()],
            connected: 2,
            commands: Commands { reads: 3, writes: 4, read_bytes: 5, written_bytes: 6 },
        }],
        cores: vec![CoreCounters {
            core: 0,
            nanos: 5_000_000_000,
            looking_nanos: 1_500_000_000,
            asleep_nanos: 3_000_000_001,
            turns: 7,
            mails: 8,
            requests: 9,
        }],
        jobs: TaskKind::ALL
            .map(|kind| JobCounters {
                kind,
                started: 4,
                completed: 3,
                cancelled: 2,
                interrupted: 1,
                stuck: 0,
            })
            .to_vec(),
        turned_away: TurnedAway { nbd: 1, nvme: 2 },
    }
}

/// One that was read, and not written.
fn drive_times(known: &KnownDrive) -> DriveCounters {
    let reads = Latency { buckets: core::array::from_fn(|n| n as u64 + 1), nanos: 1_234_567_890 };
    DriveCounters { drive: known.id.clone(), reads, writes: Latency::default() }
}

fn daemon() -> Daemon {
    let process = Process {
        cpu_seconds: 1.25,
        resident_bytes: 1 << 20,
        virtual_bytes: 1 << 30,
        open_files: 9,
        most_files: Some(1024),
        threads: 3,
    };
    Daemon { process: Some(process), answers: [0, 10, 1, 4, 0] }
}

#[test]
fn whatever_the_view_the_text_can_be_read() {
    for seed in 0..300 {
        let mut view = sample::view(seed);
        view.counters = Arc::new(counters(&view, seed));
        let text = exposition(&view, &daemon(), 0);
        let all = read(&text);
        judge(&all);
        assert_eq!(text, exposition(&view, &daemon(), 0), "seed {seed}");
        let states = all.get("palisade_array_state").map_or(0, |family| family.samples.len());
        assert_eq!(states, view.status.arrays.len() * 4);
        let open = view.jobs.iter().filter(|job| job.ended.is_none()).count();
        let jobs = all.get("palisade_job_progress_ratio").map_or(0, |family| family.samples.len());
        assert_eq!(jobs, open);
    }
    let empty = read(&exposition(&View::default(), &Daemon::default(), 0));
    judge(&empty);
    assert!(empty.contains_key("palisade_ready"), "{:?}", empty.keys());
}

/// Names that hosts made up are series for as long as they are there, and no longer.
#[test]
fn a_host_that_left_is_told_if_an_export_names_it() {
    let mut view = small();
    let host = |host: &str| HostCounters { host: host.to_owned(), ..Default::default() };
    let hosts = vec![host("nqn.gone"), host("nqn.named")];
    view.counters = Arc::new(Counters { hosts, ..counters(&view, 0) });
    let nvme = view.status.arrays[0].exports[0].nvme.as_mut().expect("NVMe");
    nvme.hosts = vec!["nqn.named".to_owned()];
    let all = read(&exposition(&view, &daemon(), 0));
    let told: Vec<_> =
        all["palisade_host_controllers"].samples.iter().map(|own| &own.1[0].1).collect();
    assert_eq!(told, ["nqn.named"]);
    assert_eq!(all["palisade_hosts_omitted"].samples[0].2, 1.0);
}

#[test]
fn labels_are_escaped() {
    let made = text::labels(&[("a", "x\\y\"z\nä"), ("none", ""), ("b", "1")]);
    assert_eq!(made, "a=\"x\\\\y\\\"z\\nä\",b=\"1\"");
    let back = labels_of(&made);
    assert_eq!(back[0], ("a".to_owned(), "x\\y\"z\nä".to_owned()));
}

#[test]
fn arrays_of_one_name_are_told_apart() {
    let mut view = small();
    let mut twin = view.status.arrays[0].clone();
    "22222222-0000-4000-8000-000000000000".clone_into(&mut twin.uuid);
    view.status.arrays.push(twin);
    let all = read(&exposition(&view, &daemon(), 0));
    let names: BTreeSet<_> =
        all["palisade_array_size_bytes"].samples.iter().map(|sample| &sample.1[0].1).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn an_array_can_lose_what_its_level_and_its_slots_say() {
    let mut view = small();
    let mut left = |level: &str, slots: usize, state: ArrayState, failed: usize| {
        let array = &mut view.status.arrays[0];
        (array.level, array.state) = (level.to_owned(), state);
        array.slots = (0..slots)
            .map(|slot| SlotInfo {
                slot: slot as u16,
                state: if slot < failed { SlotState::Failed } else { SlotState::InSync },
                ..array.slots[0].clone()
            })
            .collect();
        let all = read(&exposition(&view, &daemon(), 0));
        let of = |name: &str| all.get(name).map(|family| family.samples[0].2);
        let whole = of("palisade_array_redundancy_intended_drives");
        of("palisade_array_redundancy_drives").zip(whole)
    };
    use ArrayState::*;
    assert_eq!(left("6", 6, Optimal, 0), Some((2.0, 2.0)));
    assert_eq!(left("6", 6, Degraded, 1), Some((1.0, 2.0)));
    assert_eq!(left("6", 6, Failed, 3), Some((0.0, 2.0)));
    assert_eq!(left("5", 3, Degraded, 1), Some((0.0, 1.0)));
    assert_eq!(left("1", 3, Optimal, 0), Some((2.0, 2.0)));
    assert_eq!(left("10", 4, Degraded, 1), Some((0.0, 1.0)));
    assert_eq!(left("0", 2, Optimal, 0), Some((0.0, 0.0)));
    assert_eq!(left("jbod", 2, Optimal, 0), Some((0.0, 0.0)));
    assert_eq!(left("6", 6, Stopped, 0), None);
}

/// The largest text that is likely: a thousand volumes that had requests of each kind, each with
/// an export that all hosts have, and more hosts than are told.
#[test]
fn a_thousand_volumes_are_a_bounded_text() {
    let mut view = small();
    let array = &view.status.arrays[0];
    let volume = |number: usize| Volume {
        name: format!("volume-{number:04}"),
        uuid: format!("{number:08x}-0000-4000-8000-000000000000"),
        ..array.volumes[0].clone()
    };
    view.status.arrays[0].volumes = (0..1000).map(volume).collect();
    let hosts: Vec<String> = (0..1024).map(|n| format!("nqn.{n:04}{}", "x".repeat(215))).collect();
    let connection = |host: &String| Connection {
        host: host.clone(),
        controller: 1,
        queues: 5,
        ..Connection::default()
    };
    let connections: Arc<[Connection]> = hosts.iter().map(connection).collect();
    let export = |number: usize| Export {
        id: format!("tank:{number}"),
        volume: format!("volume-{number:04}"),
        nvme: Some(NvmeExport { connections: connections.clone(), ..nvme() }),
        ..export()
    };
    view.status.arrays[0].exports = (0..1000).map(export).collect();
    let mut all = counters(&view, 1 << 20);
    for volume in &mut all.volumes {
        let own = Arc::make_mut(volume);
        own.discards = own.flushes;
    }
    all.exports.sort_by(|a, b| a.export.cmp(&b.export));
    let controllers = vec![ControllerCounters::default()];
    let host = |host| HostCounters { host, controllers: controllers.clone(), ..Default::default() };
    all.hosts = hosts.into_iter().map(host).collect();
    view.counters = Arc::new(all);
    let begun = std::time::Instant::now();
    let text = exposition(&view, &daemon(), 0);
    println!("{} bytes, {} lines in {:?}", text.len(), text.lines().count(), begun.elapsed());
    assert!(text.len() < 12 << 20, "{}", text.len());
    let all = read(&text);
    assert_eq!(all["palisade_export_connections"].samples.len(), 1000);
    assert_eq!(all["palisade_host_queues"].samples.len(), 256);
    assert_eq!(all["palisade_hosts_omitted"].samples[0].2, 768.0);
}

const ARRAY: &str = "11111111-0000-4000-8000-000000000000";

fn slot(number: u16, state: SlotState) -> SlotInfo {
    SlotInfo {
        slot: number,
        drive: Some(format!("/dev/nvme{number}n1")),
        serial: format!("S{number}"),
        state,
        read_errors: 3,
        rewritten: 2,
        wrong_strips: 1,
        failures: 0,
        timeouts: 0,
        reason: None,
        quarantined: false,
    }
}

/// The first drive tells all, the other one only what the kernel knows.
fn hardware(number: u16) -> Hardware {
    let smart = Smart {
        celsius: Some(41),
        available_spare_percent: 98,
        spare_threshold_percent: 10,
        percentage_used: 93,
        read_bytes: 1 << 70,
        written_bytes: 512_000,
        power_cycles: 12,
        power_on_hours: 4123,
        unsafe_shutdowns: 3,
        media_errors: 2,
        error_log_entries: 5,
        ..Smart::default()
    };
    match number {
        0 => Hardware {
            health: Health::Warning,
            smart: Some(smart),
            sensor_celsius: Some(30),
            warning_celsius: Some(70),
            critical_celsius: Some(80),
            worn_out: Some(1_800_000_000),
            ..Hardware::default()
        },
        _ => Hardware { sensor_celsius: Some(-3), ..Hardware::default() },
    }
}

/// One that does not answer any more.
fn shelf() -> Enclosure {
    let part = |name: &str, state, health, reading| ShelfPart {
        kind: ShelfKind::Fan,
        name: name.to_owned(),
        state,
        health,
        reading,
        unit: Some(ShelfUnit::Rpm),
        warning: None,
        critical: None,
    };
    let fan = part("Fan 1", ShelfState::Enabled, Health::Ok, Some(9_000_500));
    let worse = ShelfPart { health: Health::Warning, ..fan.clone() };
    let gone = part("Fan 2", ShelfState::Absent, Health::Critical, None);
    let port = |module: &str, has_link: bool| ShelfPort {
        module: module.to_owned(),
        name: "1".to_owned(),
        has_link: Some(has_link),
        ..ShelfPort::default()
    };
    let told = Shelf {
        silence: Some(Silence::default()),
        bays: vec![ShelfBay { slot: "1".to_owned(), ..ShelfBay::default() }],
        ports: vec![port("A", true), port("B", false), port("B", true)],
        parts: vec![fan.clone(), worse, fan, gone],
        ..Shelf::default()
    };
    Enclosure { id: "left".to_owned(), shelf: Some(told), ..Enclosure::default() }
}

fn surroundings() -> Surroundings {
    let sensor = |id: &str, measures, reading| Sensor {
        id: id.to_owned(),
        name: format!("The \"{id}\""),
        measures,
        reading,
        high: None,
        critical: None,
        health: Health::Ok,
    };
    let port = NetworkPort {
        id: "eth0".to_owned(),
        has_link: true,
        is_enabled: true,
        megabits: Some(100_000),
        mtu: 9_000,
        ..NetworkPort::default()
    };
    Surroundings {
        enclosures: vec![Enclosure::default(), shelf()],
        sensors: vec![
            sensor("t", Measures::Temperature, Some(41_500)),
            sensor("v", Measures::Voltage, Some(12_034)),
            sensor("a", Measures::Current, Some(-1)),
            sensor("w", Measures::Power, Some(123_456_789)),
            sensor("x", Measures::Power, None),
        ],
        fans: vec![Fan {
            id: "fan1".to_owned(),
            name: "Rear".to_owned(),
            rpm: Some(0),
            least_rpm: Some(500),
            health: Health::Critical,
        }],
        supplies: vec![Supply {
            id: "psu1".to_owned(),
            name: "Left".to_owned(),
            is_on: Some(true),
            input_microwatts: Some(250_500_000),
            health: Health::Ok,
        }],
        ports: vec![port],
    }
}

fn drive(number: u16) -> KnownDrive {
    KnownDrive {
        remote: None,
        id: format!("eui.{number}"),
        wwid: None,
        model: Some("Fast \"One\"".to_owned()),
        is_file: false,
        hardware: hardware(number).into(),
        drive: Drive {
            path: format!("/dev/nvme{number}n1"),
            serial: format!("S{number}"),
            bytes: 1 << 40,
            block_bytes: 4096,
            state: DriveState::InUse,
            array: Some("tank".to_owned()),
            slot: Some(number),
            signature: None,
            problem: None,
        },
    }
}

fn task() -> Task {
    Task {
        id: "tank:rebuild".to_owned(),
        kind: TaskKind::Rebuild,
        done_bytes: 1 << 30,
        total_bytes: 1 << 32,
        progress: 0.25,
        seconds_left: Some(90),
        state: TaskState::Running,
        problem: None,
        hindrance: None,
    }
}

fn nvme() -> NvmeExport {
    NvmeExport {
        subsystem: "nqn.2014-08.org.nvmexpress:uuid:1".to_owned(),
        nsid: 1,
        nguid: String::new(),
        uuid: String::new(),
        listeners: vec!["10.0.0.1:4420".to_owned()],
        advertise: vec![],
        hosts: vec![],
        any_host: true,
        connections: [Connection {
            host: "nqn.a:b".to_owned(),
            controller: 1,
            queues: 5,
            ..Connection::default()
        }]
        .into(),
    }
}

fn export() -> Export {
    Export {
        id: "tank:1".to_owned(),
        array: "tank".to_owned(),
        volume: "db".to_owned(),
        kind: ExportKind::NvmeTcp,
        nvme: Some(nvme()),
        serving: true,
        ..Export::default()
    }
}

fn array() -> Array {
    Array {
        name: "tank".to_owned(),
        uuid: ARRAY.to_owned(),
        level: "5".to_owned(),
        state: ArrayState::Degraded,
        strip_bytes: 65536,
        block_bytes: 4096,
        size_bytes: 1 << 41,
        free_bytes: 1 << 40,
        epoch: 3,
        unclean: true,
        crash_safe: Some(false),
        slots: vec![slot(0, SlotState::InSync), slot(1, SlotState::Rebuilding)],
        tasks: vec![task()],
        last_scrub: Some(LastScrub {
            checked_bytes: 1 << 41,
            uncompared_bytes: None,
            mismatches: 4,
            repaired: 3,
            unlocated: 1,
            unreadable: 0,
            ended: 1_700_000_000,
        }),
        unreadable: vec![Unreadable {
            volume: "db".to_owned(),
            offset: 0,
            length: 4096,
            reason: UnreadableReason::Rebuild,
        }],
        region_map: Some(RegionMap {
            written_bytes: 1 << 39,
            dirty_regions: 2,
            lost_pages: 0,
            parts: Default::default(),
        }),
        drive_io: vec![DriveIo {
            slot: 0,
            reads: 10,
            writes: 20,
            flushes: 2,
            read_bytes: 40960,
            write_bytes: 81920,
            retries: 1,
        }],
        volumes: vec![Volume {
            array: "tank".to_owned(),
            name: "db".to_owned(),
            uuid: "33333333-0000-4000-8000-000000000000".to_owned(),
            size_bytes: 1 << 40,
        }],
        exports: vec![export()],
        ..Array::default()
    }
}

/// An array with all there is of one, and nothing random.
fn small() -> View {
    let job =
        Job { id: "j-1".to_owned(), array: ARRAY.to_owned(), task: task(), began: 1, ended: None };
    let memory = Memory { io_flusher: true, locked: true, left_to_gpu: false, problem: None };
    let entry = Entry {
        number: 12,
        time: 1,
        who: String::new(),
        from: String::new(),
        request: String::new(),
        what: String::new(),
        result: Ending::Ok,
        message: None,
        of: None,
    };
    let status = Status {
        version: "0.1.0".to_owned(),
        pid: 1,
        cores: 1,
        ready: true,
        parity: Parity {
            placement: "cpu".to_owned(),
            kernel: "avx2".to_owned(),
            ..Parity::default()
        },
        memory,
        arrays: vec![array()],
        next: vec![],
        state: Kept { directory: Some("/var/lib/palisade".to_owned()), problem: None },
    };
    let certificate = Certificate { not_after: 1_800_000_000, is_made: true, ..Default::default() };
    View {
        server: Server { since: 1_699_999_000, ..Server::default() },
        status,
        drives: vec![drive(0), drive(1)],
        surroundings: Arc::new(surroundings()),
        jobs: vec![job],
        log: Arc::new(Log { entries: [Arc::new(entry)].into(), most: 4096, is_kept: true }),
        https: Arc::new(Https {
            listeners: vec!["127.0.0.1:8443".to_owned()],
            problems: Vec::new(),
            certificate: Some(certificate),
        }),
        ..View::default()
    }
}

/// `PALISADE_WRITE_GOLDEN=1` writes it anew.
#[test]
fn the_text_of_a_known_view_is_a_known_one() {
    let mut view = small();
    view.counters = Arc::new(counters(&view, 0));
    let text = exposition(&view, &daemon(), 0);
    judge(&read(&text));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/prometheus/golden.txt");
    if std::env::var_os("PALISADE_WRITE_GOLDEN").is_some() {
        std::fs::write(path, &text).expect("writes");
    }
    let golden = std::fs::read_to_string(path).expect("reads");
    for (own, known) in text.lines().zip(golden.lines()) {
        assert_eq!(own, known);
    }
    assert_eq!(text, golden);
}
