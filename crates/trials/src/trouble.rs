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
//!
//! Invariant: drawn from a generator of its own, so that the rest of a scenario stays as it is.

use crate::abilities::HUNG_DRIVES;
use crate::scenario::{Admin, End, Fault, Host, Scenario, Session, Step, What};
use sim::Rng;
use units::Nanos;

/// Adds trouble to some scenarios.
pub fn add(scenario: &mut Scenario) {
    let mut rng = Rng::new(scenario.seed ^ 0x6875_6e67);
    let redundant = scenario.victims.len() - usize::from(scenario.beyond);
    if scenario.victims.is_empty() || !rng.chance(45) {
        return;
    }
    let last = scenario.victims.len() - 1;
    let number = scenario.sessions.iter().map(|s| s.steps.len()).sum();
    let mut list = List { number, rng };
    let kind = if scenario.beyond { 6 } else { list.rng.index(6) };
    let session = list.rng.index(scenario.sessions.len());
    let victim = list.rng.index(redundant);
    if kind == 3 {
        for drive in &mut scenario.drives {
            (drive.latency_least, drive.latency_most) = (Nanos(0), Nanos(1_000));
        }
    }
    let session = &mut scenario.sessions[session];
    match kind {
        0 if HUNG_DRIVES.there => list.hung(session, victim),
        0 | 1 => list.away(session, victim),
        2 => list.flush(session, victim),
        3 => list.race(session, victim),
        4 => list.held(session, victim),
        5 => list.first(session, victim),
        _ => list.filled(session, victim, last),
    }
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
            all.extend(self.writes(count, 8));
            all.push(What::Person(Admin::Fail, victim));
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

    fn race(&mut self, session: &mut Session, victim: usize) {
        session.world.cores = 2 + self.rng.index(3) as u16;
        session.world.mail_delay_most = Nanos(300_000);
        (session.lanes, session.focus) = (8, 4);
        let mut all = self.writes(3, 4);
        all.push(What::Person(Admin::Fail, victim));
        for _ in 0..20 {
            all.push(What::Host(Host::Write { fua: false }, 1));
            all.push(What::Host(Host::Read, 4));
        }
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
