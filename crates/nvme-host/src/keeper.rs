//! What keeps a path: an association with the controller there, and when it is over the next one.
//!
//! States of an association: connecting → beginning (the admin queue's Connect) → looking (what the
//! controller is and has) → live, its controller asked again and again whether it is there → over:
//! all its connections are closed, and its fence begins.
//!
//! Invariants
//! - Each step has a time, and none takes a core's.
//! - What a controller tells of is asked for before it is looked at: a change in between is told.
//! - What a look needs is given back when it is over: a path that lives holds none of it.

use crate::admin::{Admin, AdminError, Info};
use crate::begin::{Begin, NotBegun, begin};
use crate::dial::{Dial, Line, NoLine};
use crate::fences::Meant;
use crate::mutants::{self, Mutant};
use crate::queue::End;
use crate::requests::Association;
use crate::subsystem::{Found, FoundNamespace, HostIdentity, NamespaceInfo, Path, Subsystem};
use crate::{Can, Queue};
use core::convert::Infallible;
use core::future::{Future, pending};
use core::net::SocketAddr;
use core::pin::pin;
use io::local::{First, first_of};
use io::{DriveInfo, Env, Priority};
use nvme::drive::{Fabric, Namespace};
use nvme::fabrics::ANY_CONTROLLER;
use nvme::identify::{event, optional};
use nvme::log::{Access, Place};
use nvme::nqn::{DISCOVERY, Nqn};
use nvme::pdu::Digests;
use nvme::request::Request;
use nvme::reset::{Instance, Progress};
use nvme::status::Status;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use thiserror::Error;
use units::Nanos;

/// How long a connection may take to be made.
pub(crate) const CONNECT: Nanos = Nanos::from_millis(3_000);
/// How long a controller may take to begin a queue.
pub(crate) const ANSWER: Nanos = Nanos::from_millis(5_000);
/// How long it may take to become ready and to tell what it has.
const LOOK: Nanos = Nanos::from_millis(30_000);
/// Entries of an admin queue.
const ADMIN_ENTRIES: u16 = 32;
/// How often it is looked whether a controller has ended another.
const RESET_LOOK: Nanos = Nanos::from_millis(10);
/// Parts of the keep-alive timeout: after one the controller is asked, and has the others to
/// answer.
const BEATS: u64 = 4;

/// Why a path is not live.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Problem {
    /// There is no connection.
    #[error(transparent)]
    NoLine(#[from] NoLine),
    /// A queue did not begin.
    #[error(transparent)]
    NotBegun(#[from] NotBegun),
    /// The controller does not tell what it has.
    #[error(transparent)]
    Refused(#[from] AdminError),
    /// Not each core can have a queue.
    #[error("the controller gives {0} I/O queues, and {1} are needed: one for each core")]
    Queues(u16, u16),
    /// It has no namespaces.
    #[error("the controller is one of the discovery service")]
    Discovery,
    /// A step took too long.
    #[error("the controller did not answer within {} s", .0.0 / 1_000_000_000)]
    Slow(Nanos),
    /// It does not say that it is there.
    #[error("the controller did not answer Keep Alive within {} ms", .0.0 / 1_000_000)]
    Silent(Nanos),
    /// A connection ended.
    #[error(transparent)]
    Ended(#[from] End),
    /// The path was taken away, or ended for another reason, which was told.
    #[error("the path was taken away")]
    Over,
}

/// What comes of it within so long.
pub(crate) async fn in_time<E: Env, T>(
    env: &E,
    span: Nanos,
    what: impl Future<Output = T>,
) -> Result<T, Problem> {
    match first_of(what, env.sleep(span)).await {
        First::One(value) => Ok(value),
        First::Other(()) => Err(Problem::Slow(span)),
    }
}

/// How long it is until the next multiple of so much time: what is done again and again at such
/// moments wakes a core once, however many do it.
pub(crate) fn until_next(span: Nanos, now: Nanos) -> Nanos {
    Nanos(span.0 - now.0 % span.0)
}

/// The admin queue of a controller, while somebody has this.
struct Reached<T: io::Transport> {
    admin: Admin,
    controller: u16,
    queue: Rc<Queue<T>>,
    end: Rc<Cell<Option<End>>>,
}

/// Connects an admin queue. `ended` is called when its connection is over.
async fn reach<E: Env, D: Dial>(
    (env, dial): (&E, &D),
    address: SocketAddr,
    how: &Begin,
    ended: impl FnOnce() + 'static,
) -> Result<Reached<Line<D::Transport>>, Problem> {
    let transport = Rc::new(Line(dial.dial(address, CONNECT).await?));
    let begun = in_time(env, ANSWER, begin(transport, how)).await??;
    let (admin, end) = (Admin::default(), Rc::new(Cell::new(None)));
    let controller = begun.controller;
    let queue = begun.admin_queue(&admin);
    let (own, running, told) = (env.clone(), queue.clone(), end.clone());
    env.spawn(Priority::First, async move {
        told.set(Some(running.run(&own).await));
        ended();
    });
    Ok(Reached { admin, controller, queue, end })
}

fn begin_admin(name: &Nqn, host: &HostIdentity, digests: Digests, keep_alive: Nanos) -> Begin {
    Begin {
        queue: 0,
        entries: ADMIN_ENTRIES,
        controller: ANY_CONTROLLER,
        keep_alive_ms: u32::try_from(keep_alive.0 / 1_000_000).unwrap_or(u32::MAX),
        digests,
        host: host.nqn.clone(),
        host_id: host.id,
        subsystem: name.clone(),
    }
}

/// Asks the discovery service at an address where subsystems are: its generation, and the places.
///
/// # Errors
/// Why it does not tell.
pub async fn discover<E: Env, D: Dial>(
    env: &E,
    dial: &D,
    address: SocketAddr,
    host: &HostIdentity,
    digests: Digests,
) -> Result<(u64, Vec<Place>), Problem> {
    let name = Nqn::new(DISCOVERY).expect("a name that is possible");
    let how = begin_admin(&name, host, digests, Nanos(0));
    let reached = reach((env, dial), address, &how, || ()).await?;
    let told = in_time(env, LOOK, async {
        reached.admin.enable(env).await?;
        reached.admin.discover().await
    });
    let told = told.await;
    reached.queue.close();
    Ok(told??)
}

/// Keeps a path until it is taken away.
pub async fn keep<E: Env, D: Dial>(env: E, dial: D, subsystem: Arc<Subsystem>, path: Path) {
    let keeper = Keeper { env, dial, subsystem, path };
    let settings = keeper.subsystem.settings;
    let mut since = keeper.env.now();
    while let Some((association, address)) = keeper.subsystem.begins(path) {
        let lived = keeper.associate(association, address).await;
        let now = keeper.env.now();
        if lived.is_some() {
            since = now;
        }
        let delay = match lived {
            // One that is lost at once is so again, perhaps.
            Some(lived) if lived > settings.reconnect_delay => Nanos(0),
            _ => settings.reconnect_delay,
        };
        let goes_on = now.since(since) < settings.controller_loss;
        keeper.subsystem.waits(path, goes_on.then(|| now.after(delay)));
        let wait = async {
            match goes_on {
                true => keeper.env.sleep(delay).await,
                false => pending().await,
            }
        };
        first_of(keeper.subsystem.removed(path), wait).await;
    }
    keeper.subsystem.forget(path).await;
}

/// Says by which paths namespaces are reached, until the subsystem is closed.
pub async fn oversee<E: Env>(env: E, subsystem: Arc<Subsystem>) {
    let mut seen = 0;
    loop {
        let now = env.now();
        let next = subsystem.renew(now);
        let until = async {
            match next {
                Some(next) => env.sleep(next.since(now)).await,
                None => pending().await,
            }
        };
        match first_of(subsystem.changes(seen), until).await {
            First::One(Some(version)) => seen = version,
            First::One(None) => return,
            First::Other(()) => {}
        }
    }
}

#[derive(Clone)]
struct Keeper<E, D> {
    env: E,
    dial: D,
    subsystem: Arc<Subsystem>,
    path: Path,
}

impl<E: Env, D: Dial> Keeper<E, D> {
    /// An association from its begin to its end; how long it was live, if it was.
    async fn associate(&self, association: Association, address: SocketAddr) -> Option<Nanos> {
        let Subsystem { name, host, settings, .. } = &*self.subsystem;
        let how = begin_admin(name, host, settings.digests, settings.keep_alive);
        let subsystem = self.subsystem.clone();
        let reach =
            reach((&self.env, &self.dial), address, &how, move || subsystem.changed.notify());
        let mut life = Life::default();
        match first_of(Box::pin(reach), self.subsystem.removed(self.path)).await {
            First::One(Ok(reached)) => {
                let Err(problem) = self.live(&reached, association, &mut life).await;
                self.subsystem.ends(self.path, problem);
                self.close(reached).await;
            }
            First::One(Err(problem)) => self.subsystem.ends(self.path, problem),
            First::Other(()) => self.subsystem.ends(self.path, Problem::Over),
        }
        self.subsystem.closed(self.path).await;
        let since = life.since?;
        self.fence(association, &life);
        Some(self.env.now().since(since))
    }

    /// Closes the admin queue, and waits until its connection is gone.
    async fn close(&self, reached: Reached<Line<D::Transport>>) {
        let Reached { queue, end, .. } = reached;
        queue.close();
        drop(queue);
        self.subsystem.changed.wait_until(|| end.get()).await;
    }

    /// The fence of an association that nothing is sent to any more.
    fn fence(&self, association: Association, life: &Life) {
        let (env, subsystem, mut span) = (self.env.clone(), self.subsystem.clone(), life.fence);
        if mutants::is(Mutant::FenceShort) {
            span = Nanos(span.0 / 100);
        }
        subsystem.fences(self.path, association);
        self.env.spawn(Priority::First, async move {
            env.sleep(span).await;
            subsystem.fenced(association);
        });
    }

    /// Looks at a controller, and lives with it; ends by an error only.
    async fn live(
        &self,
        reached: &Reached<Line<D::Transport>>,
        association: Association,
        life: &mut Life,
    ) -> Result<Infallible, Problem> {
        let ended = self.subsystem.changed.wait_until(|| reached.end.get());
        let gone = first_of(ended, self.subsystem.removed(self.path));
        // Boxed: what is handed on as it is takes its place twice, for as long as the path lives.
        let lost = Box::pin(first_of(gone, self.beat(&reached.admin)));
        let live = Box::pin(async {
            let look = Box::pin(self.look(&reached.admin, reached.controller));
            let begun = self.env.now();
            let (info, found) = in_time(&self.env, LOOK, look).await??;
            // Also of a namespace that this controller does not list, or not yet.
            let has_cache = found.namespaces.values().any(|own| own.is.info.volatile_cache);
            let has_cache = has_cache || self.subsystem.has_cache();
            let is_kept = self.subsystem.settings.caches_stay
                || has_cache && self.subsystem.vouched(self.path, begun).await;
            (life.fence, life.since) = (found.fence, Some(self.env.now()));
            self.subsystem.lives(self.path, found, is_kept);
            let over = self.subsystem.over(self.path, association);
            let resets = self.reset_others(&reached.admin, association, &info);
            let works = Box::pin(first_of(self.listen(&reached.admin, &info), resets));
            Err(match first_of(over, works).await {
                First::One(()) => Problem::Over,
                First::Other(First::One(problem)) => problem,
                First::Other(First::Other(never)) => match never {},
            })
        });
        match first_of(live, lost).await {
            First::One(ended) => ended,
            First::Other(First::One(First::One(end))) => Err(end.into()),
            First::Other(First::One(First::Other(()))) => Err(Problem::Over),
            First::Other(First::Other(problem)) => Err(problem),
        }
    }

    /// What the controller is, and what it has.
    async fn look(&self, admin: &Admin, controller: u16) -> Result<(Info, Found), Problem> {
        let settings = &self.subsystem.settings;
        let info = admin.enable(&self.env).await?;
        if info.fabric.is_discovery {
            return Err(Problem::Discovery);
        }
        let given = admin.queues(settings.io_queues).await?;
        if given < settings.io_queues {
            return Err(Problem::Queues(given, settings.io_queues));
        }
        let events = wanted_events(&info);
        if events != 0 {
            admin.ask(Request::set_events(events)).await?;
        }
        let entries = settings.entries.min(u16::try_from(info.entries_most).unwrap_or(u16::MAX));
        let namespaces = namespaces(admin, &info).await?;
        let instance = info.fabric.instance;
        let found = Found {
            controller,
            fence: fence_time(settings.keep_alive, &info.fabric),
            // One that says nothing of its instance can't be told from another.
            instance: (instance.uniquifier != 0).then_some(instance),
            resets: info.fabric.resets_most > 0,
            serial: info.controller.serial.clone(),
            entries,
            shape: info.shape(entries),
            namespaces,
        };
        Ok((info, found))
    }

    /// Asks again and again whether the controller is there: at the moments at which all paths
    /// with this keep-alive timeout do, so that a core is woken once for all of them.
    async fn beat(&self, admin: &Admin) -> Problem {
        let beat = Nanos(self.subsystem.settings.keep_alive.0 / BEATS);
        let most = Nanos(beat.0 * (BEATS - 1));
        loop {
            self.env.sleep(until_next(beat, self.env.now())).await;
            let asked = self.env.now();
            match first_of(admin.keep_alive(), self.env.sleep(most)).await {
                First::One(Ok(())) => self.subsystem.hears(self.path, asked),
                First::One(Err(error)) => return error.into(),
                First::Other(()) => return Problem::Silent(most),
            }
        }
    }

    /// Asks this controller to end those of associations that are over, and others that are to be
    /// ended, where it can.
    async fn reset_others(&self, admin: &Admin, by: Association, info: &Info) -> Infallible {
        if info.fabric.resets_most == 0 {
            return pending().await;
        }
        loop {
            let (of, controller) = self.subsystem.wanted(by).await;
            let subsystem = &*self.subsystem;
            let mut asking = Asking { subsystem, of, by, is_refused: false };
            if self.reset_other(admin, (of, controller)).await {
                subsystem.is_ended(of);
            } else {
                asking.is_refused = true;
            }
        }
    }

    /// Asks this controller to end another; whether that has ended, with all it began.
    async fn reset_other(&self, admin: &Admin, (of, controller): (Meant, Instance)) -> bool {
        match admin.reset(controller).await {
            Ok(true) => return true,
            Ok(false) | Err(AdminError::Refused(Status::RESET_IN_PROGRESS)) => {}
            Err(AdminError::Ended) => return pending().await,
            Err(_) => return false,
        }
        while self.subsystem.is_wanted(of) {
            let Ok(all) = admin.resets().await else { return false };
            match all.iter().find(|own| own.is_of(controller)).map(|own| own.progress) {
                Some(Progress::UnderWay) => self.env.sleep(RESET_LOOK).await,
                Some(Progress::Done) => return true,
                Some(Progress::Failed) | None => return false,
            }
        }
        true
    }

    /// Looks again whenever the controller tells that something has changed, or did not do what it
    /// should have a way to.
    async fn listen(&self, admin: &Admin, info: &Info) -> Problem {
        let mut event = pin!(self.event(admin, info));
        loop {
            match first_of(event.as_mut(), self.subsystem.doubted(self.path)).await {
                First::One(Ok(())) => {
                    // Read so that it tells of the next change.
                    if let Err(error) = admin.changed_namespaces().await {
                        return error.into();
                    }
                    event.set(self.event(admin, info));
                }
                First::One(Err(error)) => return error.into(),
                First::Other(()) => {}
            }
            match Box::pin(namespaces(admin, info)).await {
                Ok(found) => self.subsystem.finds(self.path, found),
                Err(error) => return error.into(),
            }
        }
    }

    /// Waits until the controller tells of something, which some never do.
    async fn event(&self, admin: &Admin, info: &Info) -> Result<(), AdminError> {
        if wanted_events(info) == 0 {
            return pending().await;
        }
        match admin.ask(Request::event()).await {
            Ok(_) => Ok(()),
            Err(AdminError::Ended) => Err(AdminError::Ended),
            // It tells of nothing, then.
            Err(_) => pending().await,
        }
    }
}

/// How long an association was live, and what its fence takes.
#[derive(Default)]
struct Life {
    since: Option<Nanos>,
    fence: Nanos,
}

/// A controller that an association asks to be ended: until this is dropped, or it is known what
/// comes of that.
struct Asking<'a> {
    subsystem: &'a Subsystem,
    of: Meant,
    by: Association,
    is_refused: bool,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.subsystem.asked(self.of, self.by, self.is_refused);
    }
}

/// Events that say when something is to be looked at again.
fn wanted_events(info: &Info) -> u32 {
    info.fabric.events & (event::NAMESPACES | event::ACCESS)
}

/// How long what was sent to a controller may still be carried out, behind the last byte (Base,
/// "Communication Loss Handling"): it may have a keep-alive timeout's rest left when that byte
/// comes, takes as long again to notice where traffic counts, and is done some time later.
fn fence_time(keep_alive: Nanos, fabric: &Fabric) -> Nanos {
    let unit = u64::from(fabric.keep_alive_units.max(1)) * 100_000_000;
    let timeout = keep_alive.0.div_ceil(unit) * unit;
    let times = if fabric.is_alive_by_traffic { 3 } else { 2 };
    Nanos(times * timeout + u64::from(fabric.quiesce_ms) * 1_000_000)
}

/// Bytes of a namespace's blocks, if it can be a drive: has blocks as large as those of drives, and
/// no metadata between them.
fn drive_blocks(namespace: &Namespace) -> Option<u32> {
    let is_plain = namespace.blocks > 0 && namespace.metadata_bytes == 0;
    namespace.block_bytes().filter(|bytes| is_plain && matches!(bytes, 512 | 4096))
}

/// A controller's namespaces that can be drives, and how it comes to them.
async fn namespaces(
    admin: &Admin,
    info: &Info,
) -> Result<BTreeMap<u32, FoundNamespace>, AdminError> {
    let mut all = BTreeMap::new();
    for id in admin.namespaces().await? {
        let (namespace, known) = match admin.namespace(id).await {
            // It went meanwhile.
            Err(AdminError::Refused(_)) => continue,
            other => other?,
        };
        let Some(block_bytes) = drive_blocks(&namespace) else { continue };
        let has = |bit| info.controller.optional & bit != 0;
        let has_cache = match info.controller.write_cache {
            true => admin.has_no_cache(id).await?.map(|has_none| !has_none),
            false => Some(false),
        };
        let is = NamespaceInfo {
            info: DriveInfo {
                bytes: namespace.blocks.saturating_mul(u64::from(block_bytes)),
                block_bytes,
                volatile_cache: has_cache.unwrap_or(true),
                inline: false,
            },
            known,
            can: Can {
                write_zeroes: has(optional::WRITE_ZEROES),
                discard: has(optional::DATASET_MANAGEMENT)
                    && info.fabric.capsule_data >= crate::limits::RANGE_BYTES,
            },
        };
        let (access, is_cache_told) = (Access::Optimized, has_cache.is_some());
        all.insert(id, FoundNamespace { is, access, is_cache_told });
    }
    if info.fabric.has_ana {
        // Those that it does not list are not there for anybody.
        all.values_mut().for_each(|own| own.access = Access::Inaccessible);
        for group in admin.access(info).await?.1 {
            for id in group.namespaces {
                if let Some(own) = all.get_mut(&id) {
                    own.access = group.access;
                }
            }
        }
    }
    Ok(all)
}
