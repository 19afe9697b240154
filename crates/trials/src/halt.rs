//! A server that stands still, or is no more, while another takes its array over.
//!
//! | the first server | becomes | when                                                          |
//! |------------------|---------|---------------------------------------------------------------|
//! | runs             | halted  | its session is over; some writes are under way                |
//! | runs             | dead    | the same; the shelf may hear of it, and may not               |
//! | halted           | awake   | another has the array, some time after that                   |
//! | awake            | over    | some seconds later; or the other's session ends               |
//!
//! Behind a shelf both are in one world: what the first had sent is still on its way there, or
//! waits in a drive, when the other comes. Else each has a world of its own, and the first's clock
//! goes on as that of the other does, and so do its drives.
//!
//! Invariants
//! - What was under way is old or new when the other starts, as after a crash. With worlds of their
//!   own it is over by then.
//! - What its hosts write when it is awake is nobody's data: it is found wherever it lands.

use crate::failure::Outcome;
use crate::machine::{Machine, Message};
use crate::paths::KEEP_ALIVE;
use crate::rig::{Rig, Watch};
use crate::scenario::Next;
use crate::versions::Versions;
use engine::volume::Volume;
use io::{Blocks, Env, Pool, Priority};
use sim::{Rng, World};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use units::{CoreId, Nanos};

/// What it still has to do once it is awake.
const AWAKE: Nanos = Nanos::from_millis(6_000);
/// After this long nothing is under way any more at its drives.
const QUIET: Nanos = Nanos::from_millis(300);
/// The longest from its end to the begin of the other, behind a shelf.
const LATER_MOST: Nanos = Nanos::from_millis(2_000);
/// After this long nothing is under way any more of a server that is no more, in whichever drive.
const LANDED: Nanos = Nanos(3 * KEEP_ALIVE.0);
/// From one write of its hosts to the next, then.
const PAUSE: Nanos = Nanos::from_millis(70);

/// A server that stands still, or did, or is no more.
pub struct Halted {
    rig: Rig,
    /// When it was halted, and when the other began, each by its own clock.
    begun: (Nanos, Nanos),
    /// When it goes on, by the other's clock.
    wakes: Option<Nanos>,
    is_awake: Rc<Cell<bool>>,
    /// Who comes after it, if it does not go on.
    next: Option<Next>,
}

impl Halted {
    /// Has a server stand still, or be no more, that has the array, with some writes to its volumes
    /// under way.
    pub fn new(
        rig: Rig,
        volumes: &[(usize, Vec<Volume<Machine>>)],
        versions: &Rc<RefCell<Versions>>,
        (unit, next): (u64, Option<Next>),
        rng: &mut Rng,
    ) -> Self {
        let is_awake = Rc::<Cell<bool>>::default();
        for (at, cores) in volumes {
            for _ in 0..rng.below(4) {
                let core = rng.index(cores.len());
                let env = rig.env(CoreId(core as u16));
                let (volume, own) = (cores[core].clone(), rng.fork());
                begin_write(&env, &volume, (versions, *at), rng);
                env.clone().spawn(Priority::First, go_on(env, volume, unit, is_awake.clone(), own));
            }
        }
        rig.world.run_steps(rng.below(120));
        rig.halt(true);
        match &rig.paths {
            None => rig.world.run_for(QUIET),
            Some(paths) => {
                paths.shelf.book.first_is_over();
                next.inspect(|next| paths.die(*next == Next::Process, rng));
                rig.world.run_for(Nanos(rng.below(LATER_MOST.0) * rng.below(2)));
            }
        }
        let begun = (rig.world.now(), Nanos(0));
        Self { rig, begun, wakes: None, is_awake, next }
    }

    /// Whether the other is in the same world.
    pub fn is_beside(&self) -> bool {
        self.rig.paths.is_some()
    }

    /// The server that comes after it in the same world.
    ///
    /// # Errors
    /// `Stall` if it is never connected.
    pub fn next(&self, host: u8) -> Outcome<Rig> {
        self.rig.next(host, self.next == Some(Next::Process))
    }

    /// What the tally calls it.
    pub fn name(&self) -> &'static str {
        self.next.map_or("taken over", Next::name)
    }

    /// The other has the array: this one goes on so much later, if it does.
    pub fn wakes(&mut self, now: Nanos, later: Nanos) {
        self.wakes = self.next.is_none().then(|| now.after(later));
    }

    /// Goes on as far as the other has.
    fn follow(&mut self, now: Nanos) {
        if self.wakes.is_some_and(|at| at <= now) && !self.is_awake.replace(true) {
            self.rig.halt(false);
        }
        if self.is_beside() {
            return;
        }
        let until = self.begun.0.after(now.since(self.begun.1));
        let span = until.0.saturating_sub(self.rig.world.now().0);
        if span > 0 {
            self.rig.world.run_for(Nanos(span));
        }
    }

    /// It ends, when it has gone on for long enough.
    pub fn end(mut self, other: &Rig) {
        if self.next.is_some() {
            // By then all has landed, or never will.
            let landed = self.begun.0.after(LANDED);
            return other.world.run_for(landed.since(other.world.now()));
        }
        if self.is_beside() {
            let now = other.world.now();
            let wakes = self.wakes.map_or(now, |at| at.max(now));
            other.world.run_for(wakes.since(now));
            self.follow(wakes);
            return other.world.run_for(AWAKE);
        }
        let now = self.begun.1.after(self.rig.world.now().since(self.begun.0));
        let wakes = self.wakes.map_or(now, |at| at.max(now));
        self.wakes = Some(wakes);
        self.follow(wakes);
        self.follow(wakes.after(AWAKE));
        self.rig.world.kill();
    }
}

/// Begins a write of which nobody hears the end, if its place is free.
fn begin_write(
    env: &Machine,
    volume: &Volume<Machine>,
    (versions, at): (&Rc<RefCell<Versions>>, usize),
    rng: &mut Rng,
) {
    let mut versions = versions.borrow_mut();
    if versions.volumes().get(at).is_none_or(|own| own.unborn) {
        return;
    }
    let (from, bytes) = versions.pick(at, rng, (versions.grain(), u64::MAX), 8);
    if !versions.claim(at, from, bytes) {
        return;
    }
    let version = versions.begin(at, from, bytes, false);
    let mut data = Pool::single(bytes as usize);
    versions.data(at, from, version, &mut data);
    let volume = volume.clone();
    env.spawn(Priority::First, async move {
        // It may have ended well, and counts as if nobody knew.
        let _ = volume.write(from, data.freeze(), false).await;
    });
}

/// Writes what is nobody's once the server is awake.
async fn go_on(
    env: Machine,
    volume: Volume<Machine>,
    unit: u64,
    is_awake: Rc<Cell<bool>>,
    mut rng: Rng,
) {
    loop {
        env.sleep(PAUSE).await;
        if !is_awake.get() {
            continue;
        }
        let units = volume.bytes() / unit;
        if units == 0 {
            return;
        }
        let mut data = Pool::single(unit as usize);
        data.fill(rng.bits() as u8 | 1);
        // It is refused, or waits for ever.
        let _ = volume.write(rng.below(units) * unit, data.freeze(), rng.coin()).await;
    }
}

/// Has a halted server follow a machine that is watched.
pub struct Beside<'a> {
    /// Whoever else watches.
    pub other: &'a mut dyn Watch,
    /// The server, if there is one.
    pub halted: &'a mut Option<Halted>,
}

impl Watch for Beside<'_> {
    fn look(&mut self, world: &World<Message>) {
        self.other.look(world);
        if let Some(halted) = self.halted {
            halted.follow(world.now());
        }
    }
}
