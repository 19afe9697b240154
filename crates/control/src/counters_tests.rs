//! Sums of what cores count, against plain lists of requests.

use super::*;
use front::counters::Outcome;
use io::BlockError;
use std::time::Duration;
use units::Nanos;

fn uuid(n: u8) -> Uuid {
    Uuid([n; 16])
}

fn nothing() -> Seen {
    Seen { cores: Vec::new(), drives: Vec::new(), visits: Visits::default(), jobs: Vec::new() }
}

/// A sample with no others before.
fn sums(ledger: &Ledger) -> Counters {
    ledger.add_up(nothing(), &Counters::default())
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// A request that is over, and the volume that it was for.
type Line = (u8, Kind, Outcome, u64);

/// What the lines of a volume's requests of a kind come to.
fn expected(lines: &[Line], volume: u8, kind: Kind) -> Operations {
    let mut sum = Operations::default();
    for (_, _, outcome, micros) in lines.iter().filter(|line| (line.0, line.1) == (volume, kind)) {
        match outcome {
            Outcome::Done(bytes) => {
                let limits: Vec<_> = Latency::limits().collect();
                let fits = |most: &Option<u64>| most.is_none_or(|most| *micros <= most);
                let at = limits.iter().position(fits).expect("the last has no limit");
                sum.latency.buckets[at] += 1;
                sum.latency.nanos += micros * 1000;
                sum.bytes += bytes;
            }
            Outcome::Failed(BlockError::Bounds) => sum.errors.bounds += 1,
            Outcome::Failed(BlockError::Unavailable) => sum.errors.unavailable += 1,
            Outcome::Failed(BlockError::Stopped) => sum.errors.stopped += 1,
            Outcome::Abandoned => sum.abandoned += 1,
        }
    }
    sum
}

#[test]
fn sums_are_of_all_cores_and_an_idle_volume_is_not_added_up_again() {
    let ledger = Arc::new(Ledger::new(true, 5));
    let cores = [0, 1, 2].map(|core| OnCore::new(CoreId(core), ledger.clone()));
    let (mut random, mut lines) = (Random(77), Vec::<Line>::new());
    let (mut before, mut asked) = (sums(&ledger), [0; 3]);
    assert_eq!((before.is_on, before.since, before.volumes.len()), (true, 5, 0));
    for _ in 0..500 {
        let mut touched = Vec::new();
        for _ in 0..random.below(4) {
            let (core, volume) = (random.below(3) as usize, random.below(5) as u8);
            let kind = Kind::ALL[random.below(4) as usize];
            let outcome = match random.below(8) {
                0 => Outcome::Failed(BlockError::Bounds),
                1 => Outcome::Failed(BlockError::Unavailable),
                2 => Outcome::Failed(BlockError::Stopped),
                3 => Outcome::Abandoned,
                _ => Outcome::Done(random.below(1 << 20)),
            };
            let most = 1 << (1 + random.below(27));
            let micros = random.below(most);
            let writer = cores[core].writer(uuid(volume)).expect("it counts");
            writer.begin(kind);
            writer.end(kind, outcome, Nanos(micros * 1000));
            lines.push((volume, kind, outcome, micros));
            asked[core] += 1;
            touched.push(uuid(volume).to_string());
        }
        let seen = Seen { cores: vec![CoreCounts::default(); 3], ..nothing() };
        let now = ledger.add_up(seen, &before);
        for counters in &now.volumes {
            let volume = counters.volume.parse::<Uuid>().expect("a UUID").0[0];
            let [reads, writes, flushes, discards] =
                Kind::ALL.map(|kind| expected(&lines, volume, kind));
            let volume = counters.volume.clone();
            assert_eq!(**counters, VolumeCounters { volume, reads, writes, flushes, discards });
            let old = before.volumes.iter().find(|old| old.volume == counters.volume);
            let is_same = old.is_some_and(|old| Arc::ptr_eq(old, counters));
            assert_eq!(is_same, !touched.contains(&counters.volume));
        }
        assert!(now.volumes.is_sorted_by(|a, b| a.volume < b.volume));
        assert_eq!([0, 1, 2].map(|core| now.cores[core].requests), asked);
        before = now;
    }
    assert_eq!(before.volumes.len(), 5);
}

#[test]
fn cores_count_at_once_and_nothing_falls() {
    const EACH: u64 = 20_000;
    let ledger = Arc::new(Ledger::new(true, 0));
    let count = |core| {
        let ledger = ledger.clone();
        move || {
            let core = OnCore::new(CoreId(core), ledger);
            for n in 0..EACH {
                let writer = core.writer(uuid((n % 3) as u8)).expect("it counts");
                writer.begin(Kind::Read);
                writer.end(Kind::Read, Outcome::Done(512), Nanos(n));
            }
        }
    };
    let reads = |counters: &Counters| -> (u64, u64) {
        let all = counters.volumes.iter().map(|volume| volume.reads);
        all.fold((0, 0), |sum, reads| (sum.0 + reads.done(), sum.1 + reads.bytes))
    };
    std::thread::scope(|scope| {
        let threads = [0, 1].map(|core| scope.spawn(count(core)));
        let mut last = (0, 0);
        while !threads.iter().all(|thread| thread.is_finished()) {
            let now = reads(&sums(&ledger));
            assert!(now.0 >= last.0 && now.1 >= last.1, "{last:?} {now:?}");
            last = now;
        }
    });
    assert_eq!(reads(&sums(&ledger)), (2 * EACH, 2 * EACH * 512));
    assert!(sums(&ledger).volumes.iter().all(|volume| volume.reads.under_way == 0));
}

#[test]
fn a_deleted_volume_goes_and_what_its_cores_did_stays() {
    let ledger = Arc::new(Ledger::new(true, 0));
    let core = OnCore::new(CoreId(0), ledger.clone());
    let read = |writer: &Writer| {
        writer.begin(Kind::Read);
        writer.end(Kind::Read, Outcome::Done(1), Nanos(0));
    };
    let look = |before: &Counters| {
        let cores = vec![CoreCounts::default()];
        ledger.add_up(Seen { cores, ..nothing() }, before)
    };
    let (old, other) =
        (core.writer(uuid(1)).expect("counts"), core.writer(uuid(2)).expect("counts"));
    assert!(Rc::ptr_eq(&old, &core.writer(uuid(1)).expect("counts")), "one writer a core");
    read(&old);
    read(&other);
    let before = look(&Counters::default());
    assert_eq!((before.volumes.len(), before.cores[0].requests), (2, 2));
    ledger.forget_volume(uuid(1));
    // A queue may have it yet.
    read(&old);
    let after = look(&before);
    assert_eq!((after.volumes.len(), after.cores[0].requests), (1, 2));
    assert!(after.volume(&uuid(1).to_string()).is_none());
    read(&core.writer(uuid(1)).expect("counts"));
    let again = look(&after);
    let counters = again.volume(&uuid(1).to_string()).expect("opened again");
    assert_eq!((counters.reads.done(), again.cores[0].requests), (1, 3));
}

#[test]
fn a_volume_that_was_opened_and_asked_nothing_is_known() {
    let ledger = Arc::new(Ledger::new(true, 0));
    let core = OnCore::new(CoreId(0), ledger.clone());
    let _writer = core.writer(uuid(1));
    let expected = VolumeCounters { volume: uuid(1).to_string(), ..Default::default() };
    assert_eq!(sums(&ledger).volumes, [Arc::new(expected)]);
    let off = Arc::new(Ledger::new(false, 0));
    assert!(OnCore::new(CoreId(0), off.clone()).writer(uuid(1)).is_none());
    assert_eq!((sums(&off).is_on, sums(&off).volumes.len()), (false, 0));
}

#[test]
fn exports_of_both_protocols_are_counted_by_name() {
    let ledger = Ledger::new(true, 0);
    ledger.know_export("tank:2");
    let way = Way { host: "192.0.2.7".to_owned(), local: "192.0.2.1".to_owned() };
    let (first, second) = (ledger.arrive("tank:2", None), ledger.arrive("tank:2", Some(way)));
    let client = |address: &str, local: &str| Client {
        address: address.to_owned(),
        local_address: local.to_owned(),
    };
    let far = client("192.0.2.7", "192.0.2.1");
    assert_eq!(ledger.clients()["tank:2"], [client("", ""), far.clone()]);
    drop(first);
    assert_eq!(ledger.clients()["tank:2"], [far]);
    ledger.know_export("tank:2");
    ledger.turn_away_nbd();
    ledger.turn_away_nbd();
    ledger.turn_away_nvme();
    let visited = |export: &str| nvme_target::Visited {
        export: export.to_owned(),
        connections: 3,
        connected: 4,
    };
    let exports = vec![visited("tank:1"), visited("tank:3")];
    let visits = Visits { exports, hosts: Vec::new(), turned_away: 7 };
    let told = ledger.add_up(Seen { visits, ..nothing() }, &Counters::default());
    let short: Vec<_> =
        told.exports.iter().map(|of| (&of.export[..], of.connections, of.connected)).collect();
    assert_eq!(short, [("tank:1", 3, 4), ("tank:2", 1, 2), ("tank:3", 3, 4)]);
    assert_eq!((told.turned_away.nbd, told.turned_away.nvme), (2, 8));
    ledger.forget_exports(|export| export == "tank:2");
    let late = ledger.arrive("tank:2", None);
    assert!(sums(&ledger).exports.is_empty());
    ledger.know_export("tank:2");
    drop((second, late));
    let again = &sums(&ledger).exports[0];
    assert_eq!((again.connections, again.connected), (0, 0), "another of this name");
}

#[test]
fn no_time_of_a_core_falls_though_its_words_are_read_one_by_one() {
    let counts = |time, looking, asleep| CoreCounts {
        time: Nanos(time),
        looking: Nanos(looking),
        asleep: Nanos(asleep),
        turns: 1,
        mails: 2,
    };
    let first = core_counters(0, counts(100, 10, 60), 9, None);
    assert_eq!((first.nanos, first.busy_nanos(), first.requests), (100, 30, 9));
    // It fell asleep just behind the moment that was read.
    let second = core_counters(0, counts(101, 10, 58), 9, Some(&first));
    assert_eq!((second.asleep_nanos, second.busy_nanos()), (60, 31));
    let third = core_counters(0, counts(102, 15, 65), 9, Some(&second));
    assert_eq!((third.busy_nanos(), third.looking_nanos, third.asleep_nanos), (31, 15, 65));
}

#[test]
fn a_sample_is_taken_anew_in_each_second() {
    // A start that is to come has the first second last.
    let start = Instant::now() + Duration::from_secs(3600);
    let ledger = Ledger { start, ..Ledger::new(true, 0) };
    let first = ledger.sample(nothing);
    let second = ledger.sample(|| panic!("it is new enough"));
    assert!(Arc::ptr_eq(&first, &second) && first.at > 1_700_000_000_000);
    *lock(&ledger.last) = Some((u64::MAX, first.clone()));
    assert!(!Arc::ptr_eq(&ledger.sample(nothing), &first), "the next second has one of its own");
}
