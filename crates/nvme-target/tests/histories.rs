//! Histories drawn from a seed: hosts, what they send, and what goes wrong on the way.
//!
//! A history is one world: one to three hosts, each with a namespace of its own and an association
//! at a time; commands at random over its queues; connections that are cut, fall silent or flip
//! bits; resets; exports that go, come and change their size meanwhile.
//!
//! Oracle
//! - Every completion is of a command that was sent and not answered yet; on a connection that
//!   lives every command is answered.
//! - Per block the values that a read may give: the last that was acknowledged, and those of
//!   writes that nobody answered. After an association's end these may or may not be there, but
//!   once the next has begun what is read stays.
//! - A reset ends soon, and then what came before it does not come any more.
//! - A change of namespaces is told, or its host has looked since; one that was taken away serves
//!   nothing.
//! - Commands at the edges ([`edges`]) have the answer that they must have.
//! - Nothing is left at the end.
//!
//! Longer runs, and mutants: `cargo xtask histories`. A failure names its seed.

#[path = "histories/campaign.rs"]
mod campaign;
#[path = "histories/edges.rs"]
mod edges;
#[path = "histories/ledger.rs"]
mod ledger;
mod support;

use edges::Edge;
use io::{Env, Priority, Transport};
use ledger::{Block, Ledger, Sent, bytes_of, may_be};
use nvme::command::{Command, admin, nvm};
use nvme::fabrics::{ANY_CONTROLLER, Property, property};
use nvme::log::page;
use nvme::pdu::{Digests, Transfer, flag};
use nvme::status::Status;
use sim::net::{self, Cut, End, Weather};
use sim::{Rng, SimEnv};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Mutex;
use support::host::{Data, Host, Pdu, admin_command, command, log_page};
use support::{PORT, Rig, export, way};
use units::{CoreId, Nanos};

const BLOCK: usize = 512;
const BLOCKS: u64 = 24;
/// Milliseconds.
const KEEP_ALIVE: u64 = 500;

/// What the parts of a host share.
struct State {
    env: SimEnv<()>,
    rng: RefCell<Rng>,
    ledger: RefCell<Ledger>,
    nsid: u32,
    /// Changes of its namespace so far, and those it has heard of.
    changes: Cell<u64>,
    changed_at: Cell<Nanos>,
    heard: Cell<u64>,
    /// Its namespace is not there.
    gone: Cell<bool>,
    /// Associations that came to their end as they should.
    whole: Cell<u64>,
}

impl State {
    fn draw<T>(&self, with: impl FnOnce(&mut Rng) -> T) -> T {
        with(&mut self.rng.borrow_mut())
    }

    fn export_name(&self) -> String {
        format!("host {}", self.nsid)
    }

    async fn sleep(&self, most: u64) {
        let span = self.draw(|rng| rng.between(0, most));
        self.env.sleep(Nanos(span)).await;
    }
}

fn io_command(opcode: u8, nsid: u32, first: u64, count: u64) -> Command {
    let mut c = command(opcode, nsid);
    c.0[40..48].copy_from_slice(&first.to_le_bytes());
    c.0[48..52].copy_from_slice(&(count as u32 - 1).to_le_bytes());
    c
}

/// Draws a command that fits what is under way.
fn draw_command(state: &State) -> Option<(Command, Sent)> {
    let mut ledger = state.ledger.borrow_mut();
    let (pick, first, count) =
        state.draw(|rng| (rng.below(22), rng.below(BLOCKS), rng.between(1, 8)));
    let gone = state.gone.get().then_some(state.changes.get());
    let none = Sent {
        opcode: 0,
        first,
        count: 0,
        value: 0,
        possible: vec![],
        data: vec![],
        got: vec![],
        answer: None,
        room: 0,
        gone,
    };
    if pick >= 20 {
        let Edge { command, data, room, status } = state.draw(|rng| edges::draw(rng, state.nsid));
        let opcode = command.opcode();
        return Some((command, Sent { opcode, data, room, answer: Some(status), ..none }));
    }
    let count = count.min(BLOCKS - first);
    let opcode = match pick {
        0..7 => nvm::WRITE,
        7..14 => nvm::READ,
        14 => nvm::FLUSH,
        15 => nvm::WRITE_ZEROES,
        16 => nvm::DATASET_MANAGEMENT,
        17 => nvm::VERIFY,
        _ => nvm::COMPARE,
    };
    let changes = matches!(opcode, nvm::WRITE | nvm::WRITE_ZEROES | nvm::DATASET_MANAGEMENT);
    // A host does not write what it is writing.
    if changes && ledger.is_busy(first, count) {
        return None;
    }
    let mut c = io_command(opcode, state.nsid, first, count);
    let room = if opcode == nvm::READ { (count * BLOCK as u64) as u32 } else { 0 };
    let mut sent = Sent { opcode, count, room, ..none };
    match opcode {
        nvm::WRITE => {
            sent.value = ledger.next;
            ledger.next += 1;
            sent.data = (first..first + count).flat_map(|b| bytes_of(sent.value, b)).collect();
        }
        nvm::DATASET_MANAGEMENT => {
            sent.data = vec![0; 32];
            sent.data[20..24].copy_from_slice(&(count as u32).to_le_bytes());
            sent.data[24..32].copy_from_slice(&first.to_le_bytes());
            c = admin_command(opcode, state.nsid, &[1, 4]);
        }
        nvm::COMPARE => {
            let one = |b: &Block| *b.may.first().unwrap();
            let values: Vec<_> = ledger.range(first, count).map(one).collect();
            sent.data = (first..).zip(values).flat_map(|(b, v)| bytes_of(v, b)).collect();
        }
        nvm::FLUSH => c = command(opcode, if pick % 2 == 0 { state.nsid } else { !0 }),
        _ => {}
    }
    if changes {
        let value = sent.value;
        ledger.each(&sent, |block| {
            block.under_way.insert(value);
        });
    }
    let possible = |b: &Block| b.may.union(&b.under_way).copied().collect();
    sent.possible = ledger.range(first, count).map(possible).collect();
    Some((c, sent))
}

/// A queue of a host: what was sent and not answered.
struct Queue {
    host: Host,
    open: RefCell<BTreeMap<u16, Sent>>,
}

/// One association.
struct Association {
    state: Rc<State>,
    queues: RefCell<Vec<Rc<Queue>>>,
    flips: bool,
    /// Goes up with everything that happens.
    steps: Cell<u64>,
    over: Cell<bool>,
}

impl Association {
    async fn send(&self, queue: &Queue) -> Result<(), io::Closed> {
        let Some((command, sent)) = draw_command(&self.state) else { return Ok(()) };
        let capsule = self.state.draw(|rng| rng.coin());
        let data = sent.data.clone();
        let told = match sent.opcode {
            nvm::READ => Data::Out(sent.room),
            _ if data.is_empty() => Data::None,
            _ if capsule => Data::Capsule(&data),
            _ => Data::In(&data),
        };
        if matches!(sent.opcode, nvm::WRITE | nvm::WRITE_ZEROES | nvm::DATASET_MANAGEMENT) {
            for other in self.queues.borrow().iter() {
                for open in other.open.borrow_mut().values_mut() {
                    may_be(open, &sent);
                }
            }
        }
        let id = queue.host.next_id();
        assert!(queue.open.borrow_mut().insert(id, sent).is_none());
        queue.host.begin(command, &told).await.map(|_| ())
    }

    async fn receive(&self, queue: &Queue) -> Result<(), io::Closed> {
        match queue.host.next_pdu().await? {
            Pdu::Ready(ready) => {
                let data = {
                    let open = queue.open.borrow();
                    let sent = open.get(&ready.command).expect("data of a command that was sent");
                    let from = ready.offset as usize;
                    sent.data[from..from + ready.bytes as usize].to_vec()
                };
                self.give(queue, ready, &data).await
            }
            Pdu::Data { command, offset, data, flags } => {
                let is_done = flags & flag::SUCCESS != 0;
                let mut open = queue.open.borrow_mut();
                let sent = open.get_mut(&command).expect("data for a command that was sent");
                assert_eq!((sent.opcode, offset as usize), (nvm::READ, sent.got.len()));
                sent.got.extend(data);
                drop(open);
                if is_done {
                    self.finish(queue, command, Status::SUCCESS);
                }
                Ok(())
            }
            Pdu::Done(done) => {
                self.finish(queue, done.id, done.status);
                Ok(())
            }
            Pdu::Termination(..) if self.flips => Err(io::Closed),
            Pdu::Termination(status, at) => panic!("terminated: {status} {at}"),
        }
    }

    async fn give(&self, queue: &Queue, ready: Transfer, all: &[u8]) -> Result<(), io::Closed> {
        let mut from = 0;
        while from < all.len() {
            let most = (all.len() - from) as u64 / 4;
            let count = 4 * self.state.draw(|rng| rng.between(1, most)) as usize;
            let part =
                Transfer { offset: ready.offset + from as u32, bytes: count as u32, ..ready };
            let is_last = from + count == all.len();
            queue.host.send_data(&part, &all[from..from + count], is_last).await?;
            from += count;
        }
        Ok(())
    }

    fn finish(&self, queue: &Queue, id: u16, status: Status) {
        let sent = queue.open.borrow_mut().remove(&id).expect("a completion of what was sent");
        let mut ledger = self.state.ledger.borrow_mut();
        let changes =
            matches!(sent.opcode, nvm::WRITE | nvm::WRITE_ZEROES | nvm::DATASET_MANAGEMENT);
        let is_served = status == Status::SUCCESS && sent.opcode != nvm::FLUSH;
        let is_gone = sent.gone == Some(self.state.changes.get());
        assert!(!(is_served && is_gone), "a namespace serves that was taken away");
        match status {
            _ if sent.answer == Some(status) => {}
            Status::SUCCESS if sent.answer.is_some() => panic!("{:#x} is refused", sent.opcode),
            Status::SUCCESS if changes => ledger.done(&sent),
            Status::SUCCESS if sent.opcode == nvm::READ => {
                assert_eq!(sent.got.len() as u64, sent.count * BLOCK as u64);
                ledger.read(&sent, true);
            }
            Status::SUCCESS => {}
            Status::COMPARE_FAILURE => {
                let certain = sent.possible.iter().all(|values| values.len() == 1);
                assert!(sent.opcode == nvm::COMPARE && !certain, "it was not another");
            }
            Status::INVALID_NAMESPACE => {
                assert!(self.state.changes.get() > 0, "it was never taken away");
                if changes {
                    ledger.failed(&sent);
                }
            }
            Status::TRANSIENT_TRANSPORT if self.flips => {
                if changes {
                    ledger.failed(&sent);
                }
            }
            Status::ABORTED_QUEUE | Status::SEQUENCE_ERROR => {
                if changes {
                    ledger.failed(&sent);
                }
            }
            other => panic!("opcode {:#x} ended with {other:?}", sent.opcode),
        }
    }
}

const SECOND: u64 = 1_000_000_000;

/// How a history's connections behave; flips only where digests find them.
fn draw_weather(rng: &mut Rng) -> Weather {
    let piece_most = [0, 0, 0, 1, 9, 700][rng.index(6)];
    let delay = [0, 0, 20_000, 3_000_000][rng.index(4)];
    let delay = if piece_most == 1 { 0 } else { delay };
    let after = rng.between(0, 30_000);
    let cut = match rng.below(6) {
        0 => Some((after, Cut::Reset)),
        1 => Some((after, Cut::Silence)),
        _ => None,
    };
    Weather { delay_most: Nanos(delay), piece_most, cut, flip: None }
}

/// What a host needs to connect.
#[derive(Clone)]
struct Dial {
    env: SimEnv<()>,
    rig: Rc<Rig>,
    all: Rc<Vec<Rc<State>>>,
}

impl Dial {
    fn connect(&self, weather: Weather) -> End<()> {
        let (own, other) = net::connect(&self.env, &self.env, weather);
        let server = self.rig.servers[0].clone();
        self.env.spawn(Priority::First, async move {
            server.serve(Rc::new(other), PORT, &way()).await;
        });
        own
    }

    /// All hosts have one name, and find all namespaces: each has to hear of a change.
    fn told(&self) {
        for state in &*self.all {
            state.changes.set(state.changes.get() + 1);
            state.changed_at.set(self.env.now());
        }
    }

    fn take_away(&self, state: &State) {
        assert!(self.rig.target.remove(&state.export_name()));
        self.told();
        state.gone.set(true);
    }

    /// Unless another has done so.
    fn put_back(&self, state: &State) {
        if !state.gone.get() {
            return;
        }
        let export = export(state.nsid, state.nsid as u8);
        self.rig.target.add(&state.export_name(), export).unwrap();
        self.told();
        state.gone.set(false);
    }

    /// Now and then a write that is under way takes its time: what a host leaves behind.
    fn hold(&self, state: &State) {
        let at = state.ledger.borrow().blocks.iter().position(|block| !block.under_way.is_empty());
        let Some(at) = at.filter(|_| state.draw(Rng::coin)) else { return };
        let volume = self.rig.shelf.0.borrow()[state.nsid as usize - 1].1.clone();
        volume.hold(Some((at * BLOCK) as u64));
        let (env, span) = (self.env.clone(), state.draw(|rng| rng.between(0, SECOND / 4)));
        self.env.spawn(Priority::First, async move {
            env.sleep(Nanos(span)).await;
            volume.hold(None);
        });
    }

    /// A step of connecting: now and then the host's namespace goes, or is there again.
    fn step(&self, state: &State) {
        match state.draw(|rng| rng.below(8)) {
            0 if !state.gone.get() => self.take_away(state),
            1..5 => self.put_back(state),
            _ => {}
        }
    }
}

impl Association {
    fn host(&self, dial: &Dial, digests: Digests) -> Host {
        let mut weather = self.state.draw(draw_weather);
        if self.flips && self.state.draw(Rng::coin) {
            // Parameters have no digests.
            weather.flip = Some(256 + self.state.draw(|rng| rng.below(20_000)));
        }
        let mut host = Host::new(dial.connect(weather));
        host.subsystem = support::SUBSYSTEM.into();
        host.host_id = [self.state.nsid as u8; 16];
        host.digests = digests;
        host.attributes = if self.state.draw(Rng::coin) { 4 } else { 0 };
        host.tolerant = self.flips;
        host
    }

    /// A connection may have fallen silent: the target does not know that it was closed.
    fn is_silent(&self, admin: &Admin) -> bool {
        let is = |host: &Host| matches!(host.end.weather().cut, Some((_, Cut::Silence)));
        is(&admin.queue.host) || self.queues.borrow().iter().any(|queue| is(&queue.host))
    }

    fn close(&self, admin: &Admin) {
        admin.queue.host.end.close();
        self.queues.borrow().iter().for_each(|queue| queue.host.end.close());
    }

    /// A queue's commands, a few at a time, until it has had enough.
    async fn work(&self, queue: &Queue) -> Result<(), io::Closed> {
        for _ in 0..self.state.draw(|rng| rng.between(2, 9)) {
            for _ in 0..self.state.draw(|rng| rng.between(1, 6)) {
                self.send(queue).await?;
            }
            while !queue.open.borrow().is_empty() {
                self.receive(queue).await?;
                self.steps.set(self.steps.get() + 1);
            }
            self.state.sleep(3_000_000).await;
        }
        Ok(())
    }
}

/// An admin queue with a request for events.
struct Admin {
    queue: Queue,
    event: Cell<Option<u16>>,
    /// Requests that a reset ended, which may have been answered just before.
    past: RefCell<BTreeSet<u16>>,
    told: Cell<bool>,
}

impl Admin {
    /// A command from begin to end, and events that come meanwhile.
    async fn call(&self, command: Command, data: Data<'_>) -> Result<(Status, u64), io::Closed> {
        let host = &self.queue.host;
        let id = host.begin(command, &data).await?;
        loop {
            match host.next_pdu().await? {
                Pdu::Done(done) if Some(done.id) == self.event.get() => {
                    assert_eq!((done.status, done.result), (Status::SUCCESS, 0x04_00_02));
                    self.event.set(None);
                    self.told.set(true);
                }
                Pdu::Done(done) if self.past.borrow_mut().remove(&done.id) => {}
                Pdu::Done(done) => {
                    assert_eq!(done.id, id, "a completion of what was sent");
                    return Ok((done.status, done.result));
                }
                Pdu::Data { command, flags, .. } => {
                    assert_eq!(command, id);
                    if flags & flag::SUCCESS != 0 {
                        return Ok((Status::SUCCESS, 0));
                    }
                }
                Pdu::Termination(..) if host.tolerant => return Err(io::Closed),
                other => panic!("{other:?}"),
            }
        }
    }

    async fn set(&self, offset: u32, value: u64) -> Result<(), io::Closed> {
        let property = Property { offset, wide: false, value };
        self.call(property.encode(0, true), Data::None).await.map(|_| ())
    }

    /// Looks after events, and says that the host lives.
    async fn attend(&self, state: &State) -> Result<(), io::Closed> {
        if self.event.get().is_none() {
            let request = command(admin::ASYNC_EVENT_REQUEST, 0);
            self.event.set(Some(self.queue.host.begin(request, &Data::None).await?));
        }
        let (status, _) = self.call(command(admin::KEEP_ALIVE, 0), Data::None).await?;
        assert_eq!(status, Status::SUCCESS);
        if self.told.take() {
            self.call(log_page(page::CHANGED_NAMESPACES, 4096, 0), Data::Out(4096)).await?;
            // One that came meanwhile is in the page, or is told of again.
            state.heard.set(state.changes.get());
        }
        Ok(())
    }
}

/// One epoch of a controller: I/O queues, their commands, and a reset at its end or not.
async fn epoch(a: &Rc<Association>, admin: &Admin, dial: &Dial, id: u16) -> Result<(), io::Closed> {
    let state = &a.state;
    state.heard.set(state.changes.get());
    let left = Rc::new(Cell::new(0));
    for number in 1..=state.draw(|rng| rng.between(1, 3)) as u16 {
        let host = a.host(dial, admin.queue.host.digests);
        let queue = Rc::new(Queue { host, open: RefCell::default() });
        a.queues.borrow_mut().push(queue.clone());
        dial.step(state);
        let done = queue.host.join(number, id).await?;
        if a.flips && done.status == Status::TRANSIENT_TRANSPORT {
            return Err(io::Closed);
        }
        assert!(done.status.is_success() || a.over.get(), "{done:?}");
        left.set(left.get() + 1);
        let (a, left) = (a.clone(), left.clone());
        state.env.spawn(Priority::First, async move {
            if a.work(&queue).await.is_err() {
                a.over.set(true);
            }
            left.set(left.get() - 1);
        });
    }
    let hasty = state.draw(|rng| rng.chance(50));
    while left.get() > 0 && !a.over.get() && !(hasty && state.draw(Rng::coin)) {
        admin.attend(state).await?;
        a.steps.set(a.steps.get() + u64::from(left.get() == 0));
        state.env.sleep(Nanos(20_000_000)).await;
    }
    if a.over.get() {
        return Err(io::Closed);
    }
    if left.get() == 0 {
        // Nothing is under way: what changed is told by now.
        for _ in 0..4 {
            state.env.sleep(Nanos(SECOND / 10)).await;
            admin.attend(state).await?;
        }
        let quiet = state.env.now().since(state.changed_at.get()) > Nanos(SECOND / 3);
        assert!(!quiet || state.heard.get() == state.changes.get(), "a change was not told");
        state.whole.set(state.whole.get() + 1);
    }
    Ok(())
}

/// A host that does not wait until the controller is enabled is refused.
async fn join_early(
    a: &Association,
    admin: &Admin,
    dial: &Dial,
    id: u16,
) -> Result<(), io::Closed> {
    if !a.state.draw(|rng| rng.chance(20)) {
        return Ok(());
    }
    let host = a.host(dial, admin.queue.host.digests);
    let number = a.state.draw(|rng| rng.between(1, 3)) as u16;
    let queue = Rc::new(Queue { host, open: RefCell::default() });
    a.queues.borrow_mut().push(queue.clone());
    // Its connection may be cut, and the association go on.
    let outcome = queue.host.join(number, id).await;
    queue.host.end.close();
    if let Ok(done) = outcome {
        let damaged = a.flips && done.status == Status::TRANSIENT_TRANSPORT;
        let lost = done.status == Status::CONNECT_PARAMETERS && a.over.get();
        assert!(done.status == Status::SEQUENCE_ERROR || damaged || lost, "{done:?}");
    }
    Ok(())
}

/// An association from begin to end.
async fn associate(a: &Rc<Association>, admin: &Admin, dial: &Dial) -> Result<(), io::Closed> {
    dial.step(&a.state);
    let done = admin.queue.host.join(0, ANY_CONTROLLER).await?;
    if !done.status.is_success() {
        let damaged = a.flips && done.status == Status::TRANSIENT_TRANSPORT;
        assert!(damaged || done.status == Status::CONNECT_BUSY, "{done:?}");
        return Ok(());
    }
    let id = done.result as u16;
    for _ in 0..a.state.draw(|rng| rng.between(1, 3)) {
        dial.step(&a.state);
        join_early(a, admin, dial, id).await?;
        admin.set(property::CONFIGURATION, 0x46_0001).await?;
        let timer = admin_command(admin::SET_FEATURES, 0, &[0x0f, KEEP_ALIVE as u32]);
        assert_eq!(admin.call(timer, Data::None).await?.0, Status::SUCCESS);
        epoch(a, admin, dial, id).await?;
        a.steps.set(a.steps.get() + 1);
        admin.past.borrow_mut().extend(admin.event.take());
        // It looks at everything after the reset, and forgets what it was told of before.
        admin.told.set(false);
        dial.hold(&a.state);
        admin.set(property::CONFIGURATION, 0x46_0000).await?;
        dial.step(&a.state);
        join_early(a, admin, dial, id).await?;
        let status = Property { offset: property::STATUS, wide: false, value: 0 };
        let begun = a.state.env.now();
        while admin.call(status.encode(0, false), Data::None).await?.1 & 1 != 0 {
            // The volume takes its time, a quarter of a second at most for a command.
            let span = a.state.env.now().since(begun);
            assert!(span < Nanos(3 * SECOND / 2), "a reset does not end");
            a.state.env.sleep(Nanos(5_000_000)).await;
        }
        // What is not there now never will be; answers that are late are not read.
        a.queues.borrow().iter().for_each(|queue| queue.host.end.close());
        a.state.ledger.borrow_mut().settle();
    }
    Ok(())
}

/// A host: one association after the other.
async fn live(state: Rc<State>, dial: Dial, rounds: u64) {
    for _ in 0..rounds {
        let flips = state.draw(|rng| rng.chance(20));
        let digests = Digests {
            header: flips || state.draw(Rng::coin),
            data: flips || state.draw(Rng::coin),
        };
        let (steps, over) = (Cell::new(0), Cell::new(false));
        let queues = RefCell::default();
        let a = Rc::new(Association { state: state.clone(), queues, flips, steps, over });
        let queue = Queue { host: a.host(&dial, digests), open: RefCell::default() };
        let admin = Rc::new(Admin {
            queue,
            event: Cell::new(None),
            past: RefCell::default(),
            told: Cell::new(false),
        });
        let (watched, closed) = (a.clone(), Rc::new(Cell::new(false)));
        let (ends, over) = (admin.clone(), closed.clone());
        state.env.spawn(Priority::First, async move {
            let (mut seen, mut idle) = (0, 0);
            while !over.get() {
                watched.state.env.sleep(Nanos(SECOND / 10)).await;
                let now = watched.steps.get();
                idle = if now == seen { idle + 1 } else { 0 };
                seen = now;
                if idle > 20 {
                    let excused = watched.flips || watched.is_silent(&ends);
                    assert!(excused, "commands wait without end");
                    watched.close(&ends);
                }
            }
        });
        let _ = associate(&a, &admin, &dial).await;
        dial.hold(&state);
        closed.set(true);
        a.over.set(true);
        a.close(&admin);
        // What was sent has come, or the keep-alive timer ran out, before it comes again: who does
        // not wait that long is not protected by any target.
        state.env.sleep(Nanos(if a.is_silent(&admin) { SECOND } else { 4_000_000 })).await;
        state.ledger.borrow_mut().settle();
    }
}

/// Whoever changes exports, and volumes that take their time.
async fn disturb(dial: Dial, over: Rc<Cell<bool>>) {
    let Dial { env, rig, all } = &dial;
    let mut rng = Rng::new(env.random());
    let volume = rig.volume();
    while !over.get() {
        env.sleep(Nanos(rng.between(0, SECOND / 8))).await;
        let state = &all[rng.index(all.len())];
        match rng.below(8) {
            0 if !state.gone.get() => {
                rig.target.resized(&(state.nsid as u8));
                dial.told();
            }
            1 if !state.gone.get() => {
                dial.take_away(state);
                env.sleep(Nanos(rng.between(0, SECOND / 50))).await;
                dial.put_back(state);
            }
            _ => {
                let held = rng.index(all.len());
                let volume = rig.shelf.0.borrow()[held + 1].1.clone();
                volume.hold(Some(rng.below(BLOCKS) * BLOCK as u64));
                env.sleep(Nanos(rng.between(0, SECOND / 4))).await;
                volume.hold(None);
            }
        }
    }
    drop(volume);
}

/// Runs a history; gives how many epochs came to their end as they should.
fn history(seed: u64) -> u64 {
    let rig = Rc::new(Rig::small(seed));
    let mut rng = Rng::new(seed);
    let env = rig.world.env(CoreId(0));
    let count = rng.between(1, 3) as u32;
    let mut hosts = Vec::new();
    for nsid in 2..2 + count {
        let volume = sim::volume::MemoryVolume::new(BLOCKS as usize * BLOCK, BLOCK as u32);
        volume.0.data.borrow_mut().fill(0);
        rig.shelf.0.borrow_mut().push((nsid as u8, volume));
        rig.target.add(&format!("host {nsid}"), export(nsid, nsid as u8)).unwrap();
        let block = Block { may: [0].into(), under_way: BTreeSet::new() };
        let ledger = Ledger { blocks: vec![block; BLOCKS as usize], next: 1 };
        hosts.push(Rc::new(State {
            env: env.clone(),
            rng: RefCell::new(rng.fork()),
            ledger: RefCell::new(ledger),
            nsid,
            changes: Cell::default(),
            changed_at: Cell::default(),
            heard: Cell::default(),
            gone: Cell::default(),
            whole: Cell::default(),
        }));
    }
    let over = Rc::new(Cell::new(false));
    let left = Rc::new(Cell::new(count));
    let all = Rc::new(hosts);
    let dial = Dial { env: env.clone(), rig: rig.clone(), all: all.clone() };
    env.spawn(Priority::First, disturb(dial.clone(), over.clone()));
    for state in &*all {
        let (state, dial, rounds) = (state.clone(), dial.clone(), rng.between(1, 4));
        let left = left.clone();
        env.spawn(Priority::First, async move {
            live(state, dial, rounds).await;
            left.set(left.get() - 1);
        });
    }
    let limit = Nanos(200 * SECOND);
    while left.get() > 0 {
        rig.world.run_for(Nanos(SECOND));
        assert!(rig.world.now() < limit, "it does not end");
    }
    over.set(true);
    rig.world.run_for(Nanos(3 * SECOND));
    drop(dial);
    rig.finish();
    all.iter().map(|state| state.whole.get()).sum()
}

/// A mutant is a whole process's: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn histories_at_random() {
    let _alone = ALONE.lock();
    match campaign::again(history) {
        Ok(count) => println!("{count} histories that failed once do not"),
        Err((seed, why)) => {
            println!("history {seed} failed: {why}");
            panic!("it failed once before");
        }
    }
    let extent = campaign::extent();
    let sum = campaign::run(&extent, history);
    if let Some((seed, why)) = &sum.failed {
        println!("history {seed} failed: {why}");
    }
    let (from, to, whole, seconds) = (extent.seeds.start, sum.next, sum.whole, sum.seconds);
    println!("histories {from}..{to}: {whole} epochs ended as they should");
    let (count, threads) = (to - from, campaign::threads());
    let rate = count as f64 / seconds;
    println!("{count} histories in {seconds:.1} s on {threads} threads, {rate:.0} a second");
    let again = sum.failed.map(|(seed, _)| format!("{seed}..{}", seed + 1));
    assert_eq!(again, None, "PALISADE_HISTORIES of the one that failed");
    assert!(whole >= count / 2, "too little happens: {whole}");
}

#[cfg(feature = "mutants")]
#[test]
fn mutants_are_caught() {
    let _alone = ALONE.lock();
    // What is expected is not told at length.
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let missed = campaign::hunt(history);
    std::panic::set_hook(usual);
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
