//! What the service manager is told: `Type=notify` and `WatchdogSec=` of a unit (sd_notify(3)).
//!
//! States: starting (the start takes as long as its drives do: the manager is asked for more time)
//! → ready ⇄ reloading → stopping. Who was told of the stop is told nothing else.
//!
//! Invariants
//! - Without `$NOTIFY_SOCKET` nothing is sent. What can't be sent is not sent: the daemon serves
//!   all the same, and waits for the manager no longer than [`PATIENCE`].
//! - A beat follows a turn of every core and of the control plane. So a thread that hangs is
//!   noticed where the manager watches, while a drive that does not answer keeps no core from
//!   turning.

use crate::lock::lock;
use rustix::time::{ClockId, clock_gettime};
use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Mutex;
use std::time::Duration;

/// How long a message may wait for the manager to read what came before.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often more time is asked for where the manager does not watch.
const ASKS: Duration = Duration::from_secs(10);

/// How many beats may be missing while the daemon starts.
const MISSING: u32 = 6;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Starting,
    Ready,
    Reloading,
    Stopping,
}

/// The manager of this service, if there is one.
#[derive(Debug)]
pub struct Service {
    to: Option<(UnixDatagram, SocketAddr)>,
    /// How often it wants a beat, if it watches.
    beats: Option<Duration>,
    phase: Mutex<Phase>,
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
            socket.set_write_timeout(Some(PATIENCE)).ok()?;
            Some((socket, address.ok()?))
        });
        // Half of the time: a beat that is late is still in time.
        let beats = watchdog.filter(|time| !time.is_zero()).map(|time| time / 2);
        Self { to, beats, phase: Mutex::new(Phase::Starting) }
    }

    fn tell(&self, text: &str) {
        if let Some((socket, address)) = &self.to {
            let _ = socket.send_to_addr(text.as_bytes(), address);
        }
    }

    /// Goes on to another phase and tells it, if the phase is one of these.
    fn go_on(&self, from: &[Phase], to: Phase, text: &str) {
        let mut phase = lock(&self.phase);
        if from.contains(&phase) {
            *phase = to;
            self.tell(text);
        }
    }

    /// Clients can connect, and arrays that can be started are.
    pub fn ready(&self) {
        self.go_on(&[Phase::Starting], Phase::Ready, "READY=1\nSTATUS=Serving");
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

    /// Tells of each turn, as often as the manager wants to hear of one. Never ends where there is
    /// a manager.
    pub async fn keep<F: Future<Output = bool>>(&self, turn: impl Fn() -> F) {
        if self.to.is_none() {
            return;
        }
        let every = self.beats.unwrap_or(ASKS);
        loop {
            if turn().await {
                self.beat(every);
            }
            tokio::time::sleep(every).await;
        }
    }

    fn beat(&self, every: Duration) {
        if self.beats.is_some() {
            self.tell("WATCHDOG=1");
        }
        if *lock(&self.phase) == Phase::Starting {
            let more = every.max(ASKS).saturating_mul(MISSING).as_micros();
            self.tell(&format!("EXTEND_TIMEOUT_USEC={more}\nSTATUS=Starting arrays"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
