//! Runs of steps that belong together: each makes one kind of trouble likely that steps drawn one
//! by one meet rarely.
//!
//! | trouble | what it is about                                                              |
//! |---------|-------------------------------------------------------------------------------|
//! | hung    | a drive hangs past the deadline, its requests run late, it is put back        |
//! | away    | a drive is away while others are written, and is put back and caught up       |
//! | held    | one request takes so long that its region could be taken for idle             |
//! | first   | a drive fails one of the first writes after a start                           |
//! | flush   | a flush fails that hosts wait for, and power is cut                           |
//! | race    | cores follow the loss of a drive at different times                           |
//! | filled  | blocks that a rebuild needs can't be read                                     |
//! | worn    | so much is written without a drive that the journal goes round                |
//! | paused  | a rebuild is told to wait, to go on, to end, by people and by stops           |
//! | rows    | a volume is written and deleted, and another gets its rows                    |
//! | brown   | cuts of power spoil the pages and batches that are just being written         |
//! | again   | everything is written twice, without a drive, and the journal goes round       |
//! | lone    | the newest batch is on one drive, and that is lost while it is carried out    |
//!
//! Invariant: drawn from a generator of its own, so that the rest of a scenario stays as it is.

use crate::abilities::HUNG_DRIVES;
use crate::scenario::{Admin, End, Fault, Host, Scenario, Session, Step, What, shape};
use engine::manage::command::{TaskAction, TaskKind};
use layout::Level;
use sim::Rng;
use sim::drive::Tears;
use units::{MIB, Nanos};

/// A kind of trouble.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Hung.
    Hung,
    /// Away.
    Away,
    /// Held.
    Held,
    /// First.
    First,
    /// Flush.
    Flush,
    /// Race.
    Race,
    /// Filled.
    Filled,
    /// Worn.
    Worn,
    /// Paused.
    Paused,
    /// Rows.
    Rows,
    /// Brown.
    Brown,
    /// Again.
    Again,
    /// Lone.
    Lone,
}

/// Every kind, as people call it.
pub const KINDS: [(Kind, &str); 13] = [
    (Kind::Hung, "hung"),
    (Kind::Away, "away"),
    (Kind::Held, "held"),
    (Kind::First, "first"),
    (Kind::Flush, "flush"),
    (Kind::Race, "race"),
    (Kind::Filled, "filled"),
    (Kind::Worn, "worn"),
    (Kind::Paused, "paused"),
    (Kind::Rows, "rows"),
    (Kind::Brown, "brown"),
    (Kind::Again, "again"),
    (Kind::Lone, "lone"),
];

/// The kind of this name.
pub fn named(name: &str) -> Option<Kind> {
    KINDS.iter().find(|(_, n)| *n == name).map(|(kind, _)| *kind)
}

/// Adds trouble to some scenarios.
pub fn add(scenario: &mut Scenario) {
    let mut rng = Rng::new(scenario.seed ^ 0x6875_6e67);
    let redundant = scenario.victims.len() - usize::from(scenario.beyond);
    if scenario.victims.is_empty() || !rng.chance(45) {
        return more(scenario, redundant);
    }
    let last = scenario.victims.len() - 1;
    let number = scenario.sessions.iter().map(|s| s.steps.len()).sum();
    let mut list = List { number, rng };
    use Kind::{Away, Filled, First, Flush, Held, Hung, Race};
    let all = [Hung, Away, Flush, Race, Held, First];
    let kind = if scenario.beyond { Filled } else { all[list.rng.index(6)] };
    let kind = if kind == Hung && !HUNG_DRIVES.there { Away } else { kind };
    scenario.trouble = Some(kind);
    let session = list.rng.index(scenario.sessions.len());
    let victim = list.rng.index(redundant);
    if kind == Race {
        for drive in &mut scenario.drives {
            (drive.latency_least, drive.latency_most) = (Nanos(0), Nanos(1_000));
        }
    }
    let (_, k, _) = shape(scenario.level, scenario.width);
    let stripe = u64::from(scenario.strip) * k as u64 / scenario.unit;
    let session = &mut scenario.sessions[session];
    match kind {
        Hung => list.hung(session, victim),
        Away => list.away(session, victim),
        Flush => list.flush(session, victim),
        Race => list.race(session, victim, stripe),
        Held => list.held(session, victim),
        First => list.first(session, victim),
        Filled => list.filled(session, victim, last),
        _ => unreachable!("drawn below"),
    }
}

/// Adds trouble to some of the scenarios that have none.
fn more(scenario: &mut Scenario, redundant: usize) {
    let mut rng = Rng::new(scenario.seed ^ 0x6d6f_7265);
    if !rng.chance(25) {
        return brown(scenario, redundant);
    }
    let kind = match rng.index(4) {
        0 => Kind::Rows,
        _ if redundant == 0 => return,
        1 => Kind::Worn,
        _ => Kind::Paused,
    };
    if kind == Kind::Rows && scenario.data.1 < 2 * MIB {
        return;
    }
    scenario.trouble = Some(kind);
    let number = scenario.sessions.iter().map(|s| s.steps.len()).sum();
    let mut list = List { number, rng };
    let session = list.rng.index(scenario.sessions.len());
    let victim = list.rng.index(redundant.max(1));
    let session = &mut scenario.sessions[session];
    match kind {
        Kind::Rows => list.rows(session),
        Kind::Worn => list.worn(session, victim),
        _ => list.paused(session, victim),
    }
}

/// Has cuts of power spoil what is being written before the data area, in some of the scenarios
/// that have no other trouble.
fn brown(scenario: &mut Scenario, redundant: usize) {
    let mut rng = Rng::new(scenario.seed ^ 0x6272_6f77);
    if redundant == 0 || !rng.chance(25) {
        return again(scenario, redundant);
    }
    scenario.trouble = Some(Kind::Brown);
    for session in &mut scenario.sessions {
        session.steps.retain(|step| !matches!(step.what, What::Drive(..)));
    }
    for drive in &mut scenario.drives {
        drive.tears.harsh = MIB..scenario.data.0;
    }
    let number = scenario.sessions.iter().map(|s| s.steps.len()).sum();
    let mut list = List { number, rng };
    let session = list.rng.index(scenario.sessions.len());
    let session = &mut scenario.sessions[session];
    session.steps.truncate(20);
    (session.lanes, session.end) = (6, End::Cut);
    let mut all = Vec::new();
    if redundant > 1 && list.rng.coin() {
        // What is in the journal then is on two drives.
        all.extend([What::Person(Admin::Fail, 0), What::Answered]);
    }
    all.extend(list.writes(30, 12));
    list.insert(session, 0, all);
}

/// Has a parity group without a drive write everything twice, one behind the other, until its
/// journal goes round, and lose the begin of what is being written: a batch that is torn so must
/// not stand where two others do that count, or the older of these is carried out alone.
fn again(scenario: &mut Scenario, redundant: usize) {
    let mut rng = Rng::new(scenario.seed ^ 0x6167_6169);
    let parity = matches!(scenario.level, Level::Raid5 | Level::Raid6);
    if redundant == 0 || !parity || !rng.chance(25) {
        return lone(scenario, redundant);
    }
    scenario.trouble = Some(Kind::Again);
    scenario.drives.iter_mut().for_each(|drive| drive.tears.backwards = true);
    let number = scenario.sessions.iter().map(|s| s.steps.len()).sum();
    let mut list = List { number, rng };
    let session = &mut scenario.sessions[0];
    session.steps.clear();
    // Each core has a part of the journal.
    session.world.cores = 4;
    (session.lanes, session.focus, session.end) = (1, 40, End::Cut);
    list.insert(session, 0, vec![What::Person(Admin::Fail, 0), What::Answered]);
    let writes = list.writes(75, 6);
    list.insert(session, 2, writes);
    for at in (2..session.steps.len()).rev() {
        let twice = Step { number: list.number, ..session.steps[at] };
        list.number += 1;
        session.steps.insert(at, twice);
    }
}

/// Has RAID 6 without a drive log a few small writes, each batch on a quick drive and a slow one:
/// where power is cut between the two, the newest is on one drive only. It must be on another
/// before any of it is in place, as that drive may be lost at the next cut.
fn lone(scenario: &mut Scenario, redundant: usize) {
    let mut rng = Rng::new(scenario.seed ^ 0x6c6f_6e65);
    let raid6 = scenario.level == Level::Raid6;
    if redundant < 2 || !raid6 || !rng.chance(40) {
        return;
    }
    scenario.trouble = Some(Kind::Lone);
    for (number, drive) in scenario.drives.iter_mut().enumerate() {
        let (least, most) = if number % 2 == 0 { (1, 5) } else { (200, 400) };
        (drive.latency_least, drive.latency_most) =
            (Nanos::from_micros(least), Nanos::from_micros(most));
        drive.tears = Tears::default();
    }
    scenario.sessions.truncate(1);
    let mut list = List { number: 0, rng };
    let session = &mut scenario.sessions[0];
    session.steps.clear();
    session.world.cores = 1;
    (session.lanes, session.focus, session.end) = (1, u64::MAX, End::Cut);
    // Where few count, the newest is carried out early.
    let count = 2 + list.rng.below(10);
    let mut all = vec![What::Person(Admin::Fail, 0), What::Answered];
    all.extend(list.writes(count, 2));
    list.insert(session, 0, all);
}

/// Makes steps.
struct List {
    number: usize,
    rng: Rng,
}

impl List {
    /// Puts steps into a session, one behind the other.
    fn insert(&mut self, session: &mut Session, mut at: usize, all: Vec<What>) {
        for what in all {
            let step = Step { number: self.number, what, seed: self.rng.bits() };
            session.steps.insert(at, step);
            (at, self.number) = (at + 1, self.number + 1);
        }
    }

    fn anywhere(&mut self, session: &Session) -> usize {
        self.rng.index(session.steps.len() + 1)
    }

    fn writes(&mut self, count: u64, most: u64) -> Vec<What> {
        let fua = |rng: &mut Rng| What::Host(Host::Write { fua: rng.coin() }, most);
        (0..count).map(|_| fua(&mut self.rng)).collect()
    }

    fn hung(&mut self, session: &mut Session, victim: usize) {
        let seconds = [11, 14, 20, 40][self.rng.index(4)];
        let mut all = vec![What::Drive(Fault::Hung(seconds), victim)];
        let count = 1 + self.rng.below(4);
        all.extend(self.writes(count, 8));
        for _ in 0..self.rng.below(3) {
            all.push(What::Wait(13 + self.rng.below(10)));
            all.push(What::Person(Admin::Return, victim));
            let count = self.rng.below(4);
            all.extend(self.writes(count, 8));
            all.push(What::Host(Host::Read, 200));
        }
        let at = self.anywhere(session);
        self.insert(session, at, all);
    }

    fn away(&mut self, session: &mut Session, victim: usize) {
        let mut all = self.writes(2, 8);
        all.push(What::Host(Host::Flush, 1));
        all.push(match self.rng.index(3) {
            0 => What::Drive(Fault::Vanish, victim),
            1 => What::Drive(Fault::Write, victim),
            _ => What::Person(Admin::Fail, victim),
        });
        let count = 1 + self.rng.below(5);
        all.extend(self.writes(count, 8));
        if self.rng.chance(25) {
            // Another drive takes its place, and is taken out before it is filled.
            all.push(What::Person(Admin::Replace, victim));
            let count = 1 + self.rng.below(3);
            if self.rng.coin() {
                let pause = Admin::Task(TaskKind::Rebuild, TaskAction::Pause);
                all.extend([What::Answered, What::Person(pause, victim), What::Answered]);
            }
            all.extend(self.writes(count, 8));
            all.push(What::Person(Admin::Fail, victim));
            all.push(What::Answered);
            all.extend(self.writes(2, 8));
        }
        // Mostly for so long that regions become clean meanwhile.
        if self.rng.chance(75) {
            all.push(What::Wait(7 + self.rng.below(4)));
        }
        all.push(What::Person(Admin::Return, victim));
        all.extend((0..self.rng.below(8)).map(|_| What::Host(Host::Read, 200)));
        let count = self.rng.below(4);
        all.extend(self.writes(count, 8));
        let at = self.anywhere(session);
        self.insert(session, at, all);
    }

    fn held(&mut self, session: &mut Session, victim: usize) {
        let mut all = self.writes(2, 8);
        all.push(What::Drive(Fault::Held(8), victim));
        all.extend(self.writes(4, 4));
        all.push(What::Wait(9));
        let at = self.anywhere(session);
        if self.rng.coin() {
            // The regions may be clean by then.
            session.steps.truncate(at);
            session.end = End::Cut;
        }
        self.insert(session, at, all);
    }

    fn first(&mut self, session: &mut Session, victim: usize) {
        let mut all = vec![What::Drive(Fault::Write, victim)];
        all.extend(self.writes(4, 8));
        session.steps.truncate(12);
        self.insert(session, 0, all);
    }

    fn flush(&mut self, session: &mut Session, victim: usize) {
        let mut all: Vec<_> = (0..4).map(|_| What::Host(Host::Write { fua: false }, 4)).collect();
        all.push(What::Drive(Fault::Flush, victim));
        all.push(What::Host(Host::Flush, 1));
        (session.lanes, session.end) = (1, End::Cut);
        self.insert(session, session.steps.len(), all);
    }

    fn race(&mut self, session: &mut Session, victim: usize, stripe: u64) {
        session.world.cores = 2 + self.rng.index(3) as u16;
        session.world.mail_delay_most = Nanos(300_000);
        let focus = if self.rng.coin() { 4 } else { stripe.min(200) };
        (session.lanes, session.focus) = (8, focus);
        let mut all = self.writes(3, 4);
        all.push(What::Person(Admin::Fail, victim));
        for _ in 0..20 {
            all.push(What::Host(Host::Write { fua: false }, if focus > 4 { 8 } else { 1 }));
            all.push(What::Host(Host::Read, focus));
        }
        let at = self.anywhere(session);
        self.insert(session, at, all);
    }

    fn worn(&mut self, session: &mut Session, victim: usize) {
        let out = if self.rng.coin() { Fault::Vanish } else { Fault::Write };
        let mut all = vec![What::Drive(out, victim)];
        let most = [8, 12, 40][self.rng.index(3)];
        let count = 60 + self.rng.below(100);
        all.extend(self.writes(count, most));
        // Each core has a part of the journal, and all is one core's.
        session.world.cores = 4;
        (session.lanes, session.focus) = (6, 40);
        session.steps.truncate(6);
        self.insert(session, 0, all);
    }

    fn paused(&mut self, session: &mut Session, victim: usize) {
        use TaskAction::{Cancel, Pause, Resume};
        let person = |action| What::Person(Admin::Task(TaskKind::Rebuild, action), victim);
        let mut all = self.writes(6, 40);
        all.push(What::Person(Admin::Fail, victim));
        let count = self.rng.below(4);
        all.extend(self.writes(count, 8));
        all.extend([What::Answered, What::Person(Admin::Replace, victim), What::Answered]);
        all.push(person(Pause));
        all.push(What::Answered);
        let count = 1 + self.rng.below(20);
        all.extend(self.writes(count, 40));
        match self.rng.below(4) {
            0 => {}
            3 => {
                // The regions become clean while it is filled; then it is put back.
                all.extend([What::Wait(7 + self.rng.below(4)), person(Cancel), What::Answered]);
                all.extend([What::Person(Admin::Return, victim), What::Answered]);
            }
            1 => all.extend([What::Answered, person(Cancel), What::Answered]),
            _ => all.extend([What::Answered, person(Resume)]),
        }
        let count = self.rng.below(6);
        all.extend(self.writes(count, 8));
        all.push(What::Host(Host::Read, 200));
        let at = self.anywhere(session);
        self.insert(session, at, all);
    }

    fn rows(&mut self, session: &mut Session) {
        let mut all = Vec::new();
        for _ in 0..1 + self.rng.below(2) {
            all.extend([What::Person(Admin::Create, 0), What::Answered]);
            let count = 4 + self.rng.below(8);
            all.extend(self.writes(count, 40));
            all.extend([What::Person(Admin::Delete, 0), What::Answered]);
        }
        all.extend([What::Person(Admin::Create, 0), What::Answered]);
        all.extend((0..4).map(|_| What::Host(Host::Read, 200)));
        let at = self.anywhere(session);
        self.insert(session, at, all);
    }

    fn filled(&mut self, session: &mut Session, victim: usize, other: usize) {
        let mut all = self.writes(6, 40);
        all.push(What::Person(Admin::Fail, victim));
        all.extend((0..12).map(|_| What::Drive(Fault::UnreadableFront, other)));
        all.push(What::Person(Admin::Replace, victim));
        all.extend((0..12).map(|_| What::Host(Host::Read, 200)));
        let at = self.anywhere(session);
        self.insert(session, at, all);
    }
}
