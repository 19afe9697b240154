//! What the service manager is told: `Type=notify` and `WatchdogSec=` of a unit (sd_notify(3)).
//!
//! States: starting → ready ⇄ reloading → stopping. A start and a stop take as long as their drives
//! do: the manager is asked for more time. Each transition is a message. One that finds no room, as
//! the manager has not read what came before, is *owed*: it is tried again every [`AGAIN`] until it
//! is sent. The daemon goes on meanwhile, and so more than one may be owed:
//!
//! - The end of the start, the begin of a reload and its end are sent in this order. A manager that
//!   waits for a reload waits for both of its messages.
//! - A reload that begins takes the place of what is owed of the reloads before it: they are told
//!   as one.
//! - The stop takes the place of all that is owed. Nobody waits for anything else then, and it is
//!   the last phase that is told.
//!
//! Invariants
//! - Without `$NOTIFY_SOCKET` nothing is sent.
//! - Nothing here waits for the manager: the socket does not block. A manager that never reads
//!   again is owed three messages at most.
//! - The messages of phases are sent in the order in which the phases came, each once.
//! - A beat follows a turn of every core and of the control plane. So a thread that hangs is
//!   noticed where the manager watches, while a drive that does not answer keeps no core from
//!   turning. A beat that finds no room is not owed: the next turn is taken after [`AGAIN`]. What
//!   is owed needs no turn: it tells what was, not that threads turn now.
//! - More time is asked for with a beat only. So a stop in which a thread hangs ends by the
//!   manager's own limit; and one in which all threads turn, but which does not end, [`STOPS`]
//!   after it began. Then the manager kills the daemon.

use crate::lock::lock;
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::sleep;

/// How long until it is tried again to send what found no room.
const AGAIN: Duration = Duration::from_millis(100);

/// How often more time is asked for where the manager does not watch.
const ASKS: Duration = Duration::from_secs(10);

/// How many beats may be missing while the daemon starts or stops.
const MISSING: u32 = 6;

/// How long a stop may go on and ask for more time. Half an hour after a machine began to shut down
/// systemd turns it off, whatever runs (`JobTimeoutSec=` of its poweroff.target): a stop that hangs
/// ends earlier, so that other services are stopped in order.
const STOPS: Duration = Duration::from_secs(15 * 60);

/// The end of the start.
const SERVING: &str = "READY=1\nSTATUS=Serving";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Starting,
    Ready,
    Reloading,
    Stopping,
}

/// How far the daemon is, and how much of that the manager knows.
#[derive(Debug)]
struct Course {
    phase: Phase,
    /// What the manager is still to be told of phases, in their order.
    owed: VecDeque<String>,
    /// When the stop began.
    stops_since: Option<Instant>,
}

impl Course {
    /// What takes time that the manager is asked for; none if nothing does.
    fn prolonged(&self, now: Instant) -> Option<&'static str> {
        match (self.phase, self.stops_since) {
            (Phase::Starting, _) => Some("Starting arrays"),
            (Phase::Stopping, Some(since)) if now.duration_since(since) < STOPS => {
                Some("Stopping arrays")
            }
            _ => None,
        }
    }
}

/// The manager of this service, if there is one.
#[derive(Debug)]
pub struct Service {
    to: Option<(UnixDatagram, SocketAddr)>,
    /// How often it wants a beat, if it watches.
    beats: Option<Duration>,
    course: Mutex<Course>,
    /// Something is owed.
    owes: Notify,
    /// A stop began, which is to ask for time with the next turn.
    stops: Notify,
}

impl Service {
    /// The one that the environment names.
    pub fn found() -> Self {
        let variable = |name: &str| std::env::var_os(name);
        let number = |name| variable(name).and_then(|text| text.to_str()?.parse::<u64>().ok());
        // Variables of a parent that was watched are not for us.
        let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|_| is_ours).map(Duration::from_micros);
        Self::at(variable("NOTIFY_SOCKET").as_deref(), watchdog)
    }

    /// One that is told at a path, or at an abstract name behind `@`, and waits so long for a beat.
    fn at(name: Option<&OsStr>, watchdog: Option<Duration>) -> Self {
        let to = name.and_then(|name| {
            let address = match name.as_bytes() {
                [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
                _ => SocketAddr::from_pathname(name),
            };
            let socket = UnixDatagram::unbound().ok()?;
            socket.set_nonblocking(true).ok()?;
            Some((socket, address.ok()?))
        });
        // Half of the time: a beat that is late is still in time.
        let beats = watchdog.filter(|time| !time.is_zero()).map(|time| time / 2);
        let course = Course { phase: Phase::Starting, owed: VecDeque::new(), stops_since: None };
        let (owes, stops) = (Notify::new(), Notify::new());
        Self { to, beats, course: Mutex::new(course), owes, stops }
    }

    /// Sends a message; whether there was room for it. Where there is no manager there always is.
    fn tell(&self, text: &str) -> bool {
        let sent = self.to.as_ref().map(|(to, at)| to.send_to_addr(text.as_bytes(), at));
        sent.is_none_or(|sent| sent.is_ok())
    }

    /// Sends what is owed as far as there is room; whether nothing is left.
    fn tell_owed(&self, course: &mut Course) -> bool {
        while course.owed.front().is_some_and(|next| self.tell(next)) {
            course.owed.pop_front();
        }
        course.owed.is_empty()
    }

    /// Goes on to another phase and tells it, if the phase is one of these.
    fn go_on(&self, from: &[Phase], to: Phase, text: &str) {
        let mut course = lock(&self.course);
        if !from.contains(&course.phase) {
            return;
        }
        course.phase = to;
        match to {
            Phase::Reloading => course.owed.retain(|owed| owed == SERVING),
            Phase::Stopping => {
                course.owed.clear();
                course.stops_since = Some(Instant::now());
                self.stops.notify_one();
            }
            Phase::Starting | Phase::Ready => {}
        }
        course.owed.push_back(text.to_owned());
        if !self.tell_owed(&mut course) {
            self.owes.notify_one();
        }
    }

    /// Clients can connect, and arrays that can be started are.
    pub fn ready(&self) {
        self.go_on(&[Phase::Starting], Phase::Ready, SERVING);
    }

    /// The configuration is read again; [`Self::reloaded`] ends that.
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let now = now.tv_sec.saturating_mul(1_000_000).saturating_add(now.tv_nsec / 1000);
        let text = format!("RELOADING=1\nMONOTONIC_USEC={now}");
        self.go_on(&[Phase::Ready], Phase::Reloading, &text);
    }

    /// It was read, whatever came of that.
    pub fn reloaded(&self) {
        self.go_on(&[Phase::Reloading], Phase::Ready, "READY=1");
    }

    /// Arrays are being stopped.
    pub fn stopping(&self) {
        let from = [Phase::Starting, Phase::Ready, Phase::Reloading];
        self.go_on(&from, Phase::Stopping, "STOPPING=1\nSTATUS=Stopping arrays");
    }

    /// Tells of each turn, as often as the manager wants to hear of one, and what is owed. Never
    /// ends where there is a manager.
    pub async fn keep<F: Future<Output = bool>>(&self, turn: impl Fn() -> F) {
        if self.to.is_some() {
            tokio::join!(self.keep_beating(turn), self.keep_telling());
        }
    }

    async fn keep_beating<F: Future<Output = bool>>(&self, turn: impl Fn() -> F) {
        let every = self.beats.unwrap_or(ASKS);
        loop {
            let is_unheard = turn().await && !self.beat(every);
            tokio::select! {
                () = sleep(if is_unheard { AGAIN.min(every) } else { every }) => {}
                () = self.stops.notified() => {}
            }
        }
    }

    async fn keep_telling(&self) {
        loop {
            self.owes.notified().await;
            while !self.tell_owed(&mut lock(&self.course)) {
                sleep(AGAIN).await;
            }
        }
    }

    /// Tells of a turn; whether there was room for that.
    fn beat(&self, every: Duration) -> bool {
        if self.beats.is_some() && !self.tell("WATCHDOG=1") {
            return false;
        }
        let Some(status) = lock(&self.course).prolonged(Instant::now()) else { return true };
        let more = every.max(ASKS).saturating_mul(MISSING).as_micros();
        self.tell(&format!("EXTEND_TIMEOUT_USEC={more}\nSTATUS={status}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use std::io::ErrorKind;

    /// A manager, and what it was told since the last time.
    struct Manager {
        socket: UnixDatagram,
        _place: tempfile::TempDir,
    }

    impl Manager {
        fn new(watchdog: Option<Duration>) -> (Self, Service) {
            let place = tempfile::tempdir().expect("a directory");
            let path = place.path().join("notify");
            let socket = UnixDatagram::bind(&path).expect("bound");
            socket.set_nonblocking(true).expect("set");
            let service = Service::at(Some(path.as_os_str()), watchdog);
            (Self { socket, _place: place }, service)
        }

        /// Fills its queue, so that nothing more finds room until it has read.
        fn fill(&self) {
            let to = self.socket.local_addr().expect("bound");
            // A sender may reach its own limit before the queue does: then another goes on.
            let full = loop {
                let other = UnixDatagram::unbound().expect("a socket");
                other.set_nonblocking(true).expect("set");
                if let Err(full) = other.send_to_addr(b"", &to) {
                    break full;
                }
                while other.send_to_addr(b"", &to).is_ok() {}
            };
            assert_eq!(full.kind(), ErrorKind::WouldBlock);
        }

        /// What it is told once it reads again, while nothing turns; so many messages.
        fn told_later(&self, service: &Service, count: usize) -> Vec<String> {
            let mut told = self.told();
            told.retain(|text| !text.is_empty());
            assert_eq!(told, [""; 0], "there was no room");
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let read = async {
                while told.len() < count {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    told.extend(self.told());
                }
            };
            runtime.expect("a runtime").block_on(async {
                tokio::select! {
                    () = service.keep(core::future::pending) => {}
                    () = read => {}
                    () = tokio::time::sleep(Duration::from_secs(120)) => {}
                }
            });
            told
        }

        fn told(&self) -> Vec<String> {
            let mut all = Vec::new();
            let mut bytes = [0; 512];
            while let Ok(length) = self.socket.recv(&mut bytes) {
                all.push(String::from_utf8_lossy(&bytes[..length]).into_owned());
            }
            all
        }
    }

    #[test]
    fn each_phase_is_told_once() {
        let (manager, service) = Manager::new(None);
        // Nobody waits for a reload before the start is over, and it does not end the start.
        service.reloading();
        service.reloaded();
        assert_eq!(manager.told(), [""; 0]);
        service.ready();
        service.ready();
        assert_eq!(manager.told(), ["READY=1\nSTATUS=Serving"]);
        service.reloading();
        service.reloaded();
        let told = manager.told();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("RELOADING=1\nMONOTONIC_USEC="), "{told:?}");
        assert!(!told[0].ends_with("=0") && told[1] == "READY=1", "{told:?}");
        service.stopping();
        service.reloaded();
        service.ready();
        assert_eq!(manager.told(), ["STOPPING=1\nSTATUS=Stopping arrays"]);
    }

    #[test]
    fn a_beat_follows_a_turn_and_prolongs_the_start() {
        let (manager, service) = Manager::new(Some(Duration::from_secs(60)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let beat = |turns: bool| {
            let kept = service.keep(|| async move { turns });
            let first = async { tokio::task::yield_now().await };
            runtime.as_ref().expect("a runtime").block_on(async {
                tokio::select! { biased; () = kept => {}, () = first => {} }
            });
            manager.told()
        };
        let told = beat(true);
        assert_eq!(told[0], "WATCHDOG=1", "{told:?}");
        // Six beats of half a minute.
        assert!(told[1].starts_with("EXTEND_TIMEOUT_USEC=180000000\n"), "{told:?}");
        assert_eq!(beat(false), [""; 0]);
        service.ready();
        assert_eq!(beat(true)[1..], ["WATCHDOG=1"]);
    }

    #[test]
    fn a_manager_that_does_not_watch_is_only_asked_for_time() {
        let (manager, service) = Manager::new(None);
        service.beat(ASKS);
        assert_eq!(manager.told().len(), 1);
        service.ready();
        manager.told();
        service.beat(ASKS);
        assert_eq!(manager.told(), [""; 0]);
    }

    #[test]
    fn what_found_no_room_is_told_later_and_in_order() {
        let (manager, service) = Manager::new(None);
        manager.fill();
        service.ready();
        assert_eq!(manager.told_later(&service, 1), ["READY=1\nSTATUS=Serving"]);
        // A reload whose begin could not be told.
        manager.fill();
        service.reloading();
        service.reloaded();
        let told = manager.told_later(&service, 2);
        assert!(told[0].starts_with("RELOADING=1\n") && told[1] == "READY=1", "{told:?}");
        // Its begin was told, its end could not be.
        service.reloading();
        assert_eq!(manager.told().len(), 1);
        manager.fill();
        service.reloaded();
        assert_eq!(manager.told_later(&service, 1), ["READY=1"]);
        manager.fill();
        service.reloading();
        service.stopping();
        // Nobody waits for the reload any more.
        let stopping = ["STOPPING=1\nSTATUS=Stopping arrays"];
        assert_eq!(manager.told_later(&service, 1), stopping);
        assert_eq!(manager.told(), [""; 0]);
    }

    #[test]
    fn reloads_that_could_not_be_told_are_told_as_one() {
        let (manager, service) = Manager::new(None);
        manager.fill();
        service.ready();
        for _ in 0..100 {
            service.reloading();
            service.reloaded();
        }
        let told = manager.told_later(&service, 3);
        assert!(told[1].starts_with("RELOADING=1\n"), "{told:?}");
        assert_eq!([&told[0], &told[2]], ["READY=1\nSTATUS=Serving", "READY=1"]);
        assert_eq!(manager.told(), [""; 0]);
    }

    #[test]
    fn a_beat_that_found_no_room_follows_another_turn() {
        // The next beat would come in half an hour.
        let (manager, service) = Manager::new(Some(Duration::from_secs(3600)));
        service.ready();
        manager.told();
        manager.fill();
        let turns = Cell::new(0);
        let turn = || {
            turns.set(turns.get() + 1);
            if turns.get() == 2 {
                assert!(manager.told().iter().all(String::is_empty));
            }
            async { true }
        };
        let read = async {
            while turns.get() < 2 || manager.told() != ["WATCHDOG=1"] {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            true
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let is_told = runtime.expect("a runtime").block_on(async {
            tokio::select! {
                () = service.keep(turn) => false,
                is_told = read => is_told,
                () = tokio::time::sleep(Duration::from_secs(120)) => false,
            }
        });
        assert!(is_told, "{turns:?} turns");
        assert_eq!(turns.get(), 2);
    }

    #[test]
    fn a_stop_asks_for_time_with_each_turn_but_not_for_ever() {
        let (manager, service) = Manager::new(None);
        service.ready();
        service.stopping();
        manager.told();
        assert!(service.beat(ASKS));
        let told = manager.told();
        assert_eq!(told, ["EXTEND_TIMEOUT_USEC=60000000\nSTATUS=Stopping arrays"]);
        let course = lock(&service.course);
        let since = course.stops_since.expect("it stops");
        let at = |more: Duration| course.prolonged(since + more);
        assert_eq!(at(STOPS - Duration::from_secs(1)), Some("Stopping arrays"));
        assert_eq!(at(STOPS), None);
    }

    #[test]
    fn a_name_behind_an_at_is_abstract() {
        let name = format!("palisade-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let socket = UnixDatagram::bind_addr(&address).expect("bound");
        Service::at(Some(OsStr::new(&format!("@{name}"))), None).ready();
        let mut bytes = [0; 64];
        let length = socket.recv(&mut bytes).expect("told");
        assert!(bytes[..length].starts_with(b"READY=1\n"));
    }

    #[test]
    fn nobody_is_told_where_there_is_no_manager() {
        let service = Service::at(None, None);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(service.keep(|| async { true }));
        service.ready();
        // One that went away keeps nobody.
        let (manager, service) = Manager::new(None);
        drop(manager);
        service.ready();
    }
}
