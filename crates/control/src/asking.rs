//! Asking drives how they are: each NVMe drive tells its health, its temperature and its power
//! states by itself, now and then and when somebody wants to know.
//!
//! Purpose: what drives answer is kept, so that a view of it can be made at any moment. A drive is
//! asked by its controller's device. Drives of one controller (its namespaces, their partitions)
//! share what it answers.
//!
//! States of a device: idle → asked (a time of [`Times::every`] is over, or somebody calls
//! [`Asking::ask_now`] or [`Asking::set_power`]: a thread opens the device, asks, and closes it) →
//! answered, refused in part or at all, or given up when [`Times::deadline`] is over → idle. What
//! was given up goes on, and its result is dropped. Until its thread has ended the device is not
//! asked again: whoever wants to waits, and gives up after the same time.
//!
//! What a drive answered last is kept while it answers nothing, or refuses: with the time it is
//! from, and the problem. Nothing is kept of a drive when another answers in its place, or when it
//! is not among those to be asked any more.
//!
//! Invariants
//! - One thread at a time has a device, and asks one thing at a time. A device is a path, whoever
//!   else means it.
//! - No device waits for another, and the caller's runtime waits for none.
//! - A device is closed when its thread has asked what it wanted.
//! - That this process may not ask is told once, whichever drive it is.

use crate::lock::lock;
use drives::admin::{Admin, AdminError, KernelAdmin, StandIn};
use nvme::drive::{Controller, PowerState};
use redfish::view::{DrivePower, DrivePowerState, Hardware};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{Mutex as Turns, Notify};
use tokio::time::{Instant, timeout_at};

/// A drive that is to be asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Askable {
    /// Names the drive.
    pub key: String,
    /// Its controller's device, such as `/dev/nvme0`.
    pub device: PathBuf,
}

/// How often drives are asked, and how long one may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// From the begin of one look to the next.
    pub every: Duration,
    /// Whoever wants to know gives up after this time.
    pub deadline: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self { every: Duration::from_secs(60), deadline: Duration::from_secs(10) }
    }
}

/// Why a drive does not tell all.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unanswered {
    /// It could not be asked, or refused.
    #[error("{what}: {error}")]
    Asked {
        /// What was asked for.
        what: What,
        /// Why.
        error: AdminError,
    },
    /// It does not answer.
    #[error("the drive did not answer within {} s", .0.as_secs_f64())]
    Silent(Duration),
    /// It was told to be in a power state, and does not answer.
    #[error(
        "the drive did not answer within {} s: whether it is in that power state is not known",
        .0.as_secs_f64()
    )]
    Unsure(Duration),
    /// It is not among those that are asked.
    #[error("this drive takes no NVMe commands from here")]
    Unknown,
}

impl Unanswered {
    /// What is told where this process has not the right to ask.
    fn lacks(&self) -> Option<News> {
        match self {
            Self::Asked { error: AdminError::NotAllowed, .. } => Some(News::NotAllowed),
            Self::Asked { error: AdminError::NotOpened, .. } => Some(News::NotOpened),
            _ => None,
        }
    }
}

/// What a drive is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// What it is.
    Controller,
    /// Its SMART / Health Information log.
    Smart,
    /// Its power state, or to be in another.
    Power,
}

impl core::fmt::Display for What {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Controller => "Identify",
            Self::Smart => "SMART log",
            Self::Power => "power state",
        })
    }
}

/// What a drive told.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    /// What it is, with its power states.
    pub controller: Option<Controller>,
    /// How it is.
    pub smart: Option<nvme::smart::Smart>,
    /// Whether it told that when it was asked last.
    pub is_smart_told: bool,
    /// The power state that it is in.
    pub power_state: Option<u8>,
    /// When it last answered anything, in seconds since 1970.
    pub when: Option<u64>,
    /// Why it did not tell all when it was asked last.
    pub problem: Option<Unanswered>,
}

/// What is told of asking as it happens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum News {
    /// A drive has answered, or was given up: an [`Answer`] is another.
    Answered,
    /// This process may not ask, for want of a right. Told once.
    NotAllowed,
    /// This process may not open a device. Told once.
    NotOpened,
}

/// Opens a controller's device.
type Open = dyn Fn(&Path) -> Result<Box<dyn Admin>, AdminError> + Send + Sync;

/// One device, and what is known by it.
struct Device {
    /// Whoever asks it has this. How often it was had.
    turn: Arc<Turns<u64>>,
    /// Whether it is to be asked.
    is_listed: bool,
    /// A look is under way that nobody called for.
    is_looked_at: bool,
    /// When the next one is due.
    due: Instant,
    answer: Option<Arc<Answer>>,
    /// Which turn the answer is from.
    from: u64,
}

#[derive(Default)]
struct State {
    times: Times,
    /// The device of each drive.
    drives: BTreeMap<String, PathBuf>,
    devices: BTreeMap<PathBuf, Device>,
    /// What was told of rights that are lacking.
    told: BTreeSet<News>,
}

struct Inside {
    open: Box<Open>,
    tell: Box<dyn Fn(News) + Send + Sync>,
    state: Mutex<State>,
    /// Something may be due.
    wake: Notify,
}

/// Asks drives. Clones are the same.
#[derive(Clone)]
pub struct Asking(Arc<Inside>);

/// A device whose turn somebody wants.
struct Wanted {
    path: PathBuf,
    turn: Arc<Turns<u64>>,
    deadline: Duration,
}

/// Which turn it was, and what came of it; `None`: it was given up.
type Outcome<T> = Option<(u64, Result<T, Unanswered>)>;

impl Asking {
    /// Asks by devices that `open` opens, on threads that may wait. `tell` is called without a lock
    /// being held.
    pub fn new(
        open: impl Fn(&Path) -> Result<Box<dyn Admin>, AdminError> + Send + Sync + 'static,
        tell: impl Fn(News) + Send + Sync + 'static,
    ) -> Self {
        let (open, tell) = (Box::new(open), Box::new(tell));
        Self(Arc::new(Inside { open, tell, state: Mutex::default(), wake: Notify::new() }))
    }

    /// Asks by the kernel.
    pub fn by_kernel(tell: impl Fn(News) + Send + Sync + 'static) -> Self {
        let open = |path: &Path| Ok(Box::new(KernelAdmin::open(path)?) as Box<dyn Admin>);
        Self::new(open, tell)
    }

    /// Asks a stand-in in place of whatever is at a path, which is not opened: only to measure what
    /// asking costs.
    pub fn by_stand_ins(tell: impl Fn(News) + Send + Sync + 'static) -> Self {
        let all: Mutex<BTreeMap<PathBuf, StandIn>> = Mutex::default();
        let open = move |path: &Path| {
            let mut all = lock(&all);
            let own = all.entry(path.to_owned()).or_insert_with_key(|path| {
                StandIn::new(&path.file_name().unwrap_or_default().to_string_lossy())
            });
            Ok(Box::new(own.clone()) as Box<dyn Admin>)
        };
        Self::new(open, tell)
    }

    /// How often, and how long, from now on.
    pub fn set_times(&self, times: Times) {
        let mut state = lock(&self.0.state);
        state.times = times;
        let latest = Instant::now() + times.every;
        state.devices.values_mut().for_each(|device| device.due = device.due.min(latest));
        drop(state);
        self.0.wake.notify_one();
    }

    /// Which drives are asked from now on. Those that are new are asked at once.
    pub fn set_drives(&self, drives: impl IntoIterator<Item = Askable>) {
        let mut state = lock(&self.0.state);
        let drives = drives.into_iter().map(|drive| (drive.key, drive.device)).collect();
        state.set_drives(drives);
        drop(state);
        self.0.wake.notify_one();
    }

    /// What a drive told last; `None`: it is not asked, or did not answer yet.
    pub fn answer(&self, key: &str) -> Option<Arc<Answer>> {
        let state = lock(&self.0.state);
        state.device(key)?.1.answer.clone()
    }

    /// Asks a drive now, and waits for it no longer than [`Times::deadline`]; `None`: it is not
    /// among those that are asked. Where the caller goes away, what was begun goes on, and its
    /// result is dropped.
    pub async fn ask_now(&self, key: &str) -> Option<Arc<Answer>> {
        let wanted = lock(&self.0.state).wanted(key)?;
        Some(self.look(&wanted).await)
    }

    /// Has a drive be in another power state, until it is told another or loses power; what it told
    /// after that. Waits no longer than [`Times::deadline`]. Where the caller goes away, what was
    /// begun goes on, and its result is dropped.
    ///
    /// # Errors
    /// The drive refused, with its words; or it could not be asked or did not answer.
    pub async fn set_power(&self, key: &str, state: u8) -> Result<Arc<Answer>, Unanswered> {
        let wanted = lock(&self.0.state).wanted(key).ok_or(Unanswered::Unknown)?;
        let work = move |admin: &dyn Admin| {
            admin
                .set_power_state(state)
                .map_err(|error| Unanswered::Asked { what: What::Power, error })?;
            Ok(Answer::by(admin))
        };
        match self.on_thread(&wanted, work).await {
            None => Err(Unanswered::Unsure(wanted.deadline)),
            Some((_, Err(problem))) => {
                self.heed(&problem);
                Err(problem)
            }
            Some((turn, Ok(answer))) => Ok(self.keep_answer(&wanted.path, Some(turn), answer)),
        }
    }

    /// Asks every drive when it is due, for ever.
    pub async fn keep(&self) {
        loop {
            let next = self.begin_due();
            let woken = self.0.wake.notified();
            match next {
                // Whichever comes first.
                Some(next) => {
                    let _ = timeout_at(next, woken).await;
                }
                None => woken.await,
            }
        }
    }

    /// Begins what is due; when the next is, if nothing else happens.
    fn begin_due(&self) -> Option<Instant> {
        let (mut state, now) = (lock(&self.0.state), Instant::now());
        let Times { every, deadline } = state.times;
        let mut next: Option<Instant> = None;
        for (path, device) in &mut state.devices {
            if !device.is_listed || device.is_looked_at {
                continue;
            }
            if device.due <= now {
                (device.is_looked_at, device.due) = (true, now + every);
                let wanted = Wanted { path: path.clone(), turn: device.turn.clone(), deadline };
                let this = self.clone();
                tokio::spawn(async move { this.look_when_due(&wanted).await });
            }
            next = Some(next.map_or(device.due, |next| next.min(device.due)));
        }
        next
    }

    async fn look_when_due(&self, wanted: &Wanted) {
        self.look(wanted).await;
        if let Some(device) = lock(&self.0.state).devices.get_mut(&wanted.path) {
            device.is_looked_at = false;
        }
        self.0.wake.notify_one();
    }

    /// Asks a device, and keeps what it told.
    async fn look(&self, wanted: &Wanted) -> Arc<Answer> {
        let told = self.on_thread(wanted, |admin| Ok(Answer::by(admin))).await;
        let silent = || Answer::without(Unanswered::Silent(wanted.deadline));
        let (turn, answer) = match told {
            None => (None, silent()),
            Some((turn, answer)) => (Some(turn), answer.unwrap_or_else(Answer::without)),
        };
        self.keep_answer(&wanted.path, turn, answer)
    }

    /// Has a thread open a device and do something with it, when its turn has come. All of that
    /// takes no longer than the deadline, or is given up.
    async fn on_thread<T: Send + 'static>(
        &self,
        wanted: &Wanted,
        work: impl FnOnce(&dyn Admin) -> Result<T, Unanswered> + Send + 'static,
    ) -> Outcome<T> {
        let end = Instant::now() + wanted.deadline;
        let mut turn = timeout_at(end, wanted.turn.clone().lock_owned()).await.ok()?;
        let (inside, path) = (self.0.clone(), wanted.path.clone());
        let thread = tokio::task::spawn_blocking(move || {
            *turn += 1;
            let outcome = match (inside.open)(&path) {
                // Closed here, before the turn is over.
                Ok(admin) => work(&*admin),
                Err(error) => Err(Unanswered::Asked { what: What::Controller, error }),
            };
            (*turn, outcome)
        });
        timeout_at(end, thread).await.ok()?.ok()
    }

    /// Keeps what a device told in one of its turns ([`Device::take`]); what is known then.
    fn keep_answer(&self, path: &Path, turn: Option<u64>, answer: Answer) -> Arc<Answer> {
        if let Some(problem) = &answer.problem {
            self.heed(problem);
        }
        let kept = match lock(&self.0.state).devices.get_mut(path) {
            Some(device) if device.is_listed => device.take(turn, answer),
            _ => Arc::new(answer),
        };
        (self.0.tell)(News::Answered);
        kept
    }

    /// Tells, once, that this process may not ask.
    fn heed(&self, problem: &Unanswered) {
        let Some(news) = problem.lacks() else { return };
        if lock(&self.0.state).told.insert(news) {
            (self.0.tell)(news);
        }
    }
}

impl State {
    /// The device of a drive.
    fn device(&self, key: &str) -> Option<(&PathBuf, &Device)> {
        self.devices.get_key_value(self.drives.get(key)?)
    }

    fn wanted(&self, key: &str) -> Option<Wanted> {
        let (path, device) = self.device(key)?;
        let (path, turn) = (path.clone(), device.turn.clone());
        Some(Wanted { path, turn, deadline: self.times.deadline })
    }

    fn set_drives(&mut self, drives: BTreeMap<String, PathBuf>) {
        for device in self.devices.values_mut() {
            device.is_listed = false;
        }
        for path in drives.values() {
            let device = self.devices.entry(path.clone()).or_insert_with(Device::new);
            device.is_listed = true;
        }
        for device in self.devices.values_mut().filter(|device| !device.is_listed) {
            // If it comes back, it may be another.
            (device.answer, device.due) = (None, Instant::now());
        }
        // A device that somebody still asks is known until that has ended.
        self.devices.retain(|_, device| {
            device.is_listed || device.is_looked_at || device.turn.try_lock().is_err()
        });
        self.drives = drives;
    }
}

impl Device {
    /// One that is to be asked at once.
    fn new() -> Self {
        let (turn, due) = (Arc::default(), Instant::now());
        Self { turn, is_listed: true, is_looked_at: false, due, answer: None, from: 0 }
    }

    /// Takes what it told in a turn, unless a later one is known already; where it was given up,
    /// there is no turn, and nothing but the problem. What is known then.
    fn take(&mut self, turn: Option<u64>, answer: Answer) -> Arc<Answer> {
        let kept = match self.answer.take() {
            Some(before) if turn.is_some_and(|turn| turn < self.from) => before,
            before => Arc::new(answer.over(before.as_deref())),
        };
        self.from = turn.map_or(self.from, |turn| self.from.max(turn));
        self.answer = Some(kept.clone());
        kept
    }
}

impl Answer {
    /// Nothing, and why.
    fn without(problem: Unanswered) -> Self {
        Self { problem: Some(problem), ..Self::default() }
    }

    /// Asks a drive for everything, as far as it goes: what it refuses is left out.
    fn by(admin: &dyn Admin) -> Self {
        let mut told = Self::default();
        if let Err(problem) = told.ask_all(admin) {
            told.problem = Some(problem);
        }
        let Self { controller, smart, power_state, .. } = &told;
        let is_any = controller.is_some() || smart.is_some() || power_state.is_some();
        told.is_smart_told = told.smart.is_some();
        told.when = is_any.then(now);
        told
    }

    /// Asks one after the other; what is more than a refusal ends it.
    fn ask_all(&mut self, admin: &dyn Admin) -> Result<(), Unanswered> {
        self.controller = self.unless_refused(What::Controller, admin.controller())?;
        self.smart = self.unless_refused(What::Smart, admin.smart())?;
        self.power_state = self.unless_refused(What::Power, admin.power_state())?;
        Ok(())
    }

    /// What was told, or nothing if the drive refused it: the first refusal is the problem.
    fn unless_refused<T>(
        &mut self,
        what: What,
        told: Result<T, AdminError>,
    ) -> Result<Option<T>, Unanswered> {
        match told {
            Ok(told) => Ok(Some(told)),
            Err(error @ AdminError::Refused(_)) => {
                self.problem.get_or_insert(Unanswered::Asked { what, error });
                Ok(None)
            }
            Err(error) => Err(Unanswered::Asked { what, error }),
        }
    }

    /// What was told now, and what was known before where that says nothing; unless another drive
    /// has told it.
    fn over(self, before: Option<&Self>) -> Self {
        let Some(before) = before.filter(|before| !before.is_of_other(&self)) else { return self };
        Self {
            controller: self.controller.or_else(|| before.controller.clone()),
            is_smart_told: self.is_smart_told,
            smart: self.smart.or(before.smart),
            power_state: self.power_state.or(before.power_state),
            when: self.when.or(before.when),
            problem: self.problem,
        }
    }

    /// Whether another drive has told the later one.
    fn is_of_other(&self, now: &Self) -> bool {
        let name = |answer: &Self| {
            let controller = answer.controller.as_ref()?;
            Some((controller.vendor, controller.serial.clone(), controller.model.clone()))
        };
        name(self).zip(name(now)).is_some_and(|(then, now)| then != now)
    }

    /// Whether this process may not ask it.
    pub fn is_forbidden(&self) -> bool {
        self.problem.as_ref().is_some_and(|problem| problem.lacks().is_some())
    }

    /// Puts what the drive told into the words of the interface. What it did not tell stays as it
    /// is there.
    pub fn fill(&self, hardware: &mut Hardware) {
        if let Some(controller) = &self.controller {
            if !controller.firmware.is_empty() {
                hardware.firmware = Some(controller.firmware.clone());
            }
            hardware.warning_celsius = controller.warning_celsius();
            hardware.critical_celsius = controller.critical_celsius();
            let states = (0..).zip(&controller.power_states).map(describe_state).collect();
            hardware.power = self.power_state.map(|state| DrivePower { state, states });
        }
        if let Some(smart) = &self.smart {
            hardware.smart = Some(describe_smart(smart));
        }
        hardware.asked = self.when;
        hardware.problem = self.problem.as_ref().map(ToString::to_string);
    }
}

fn describe_state((state, it): (u8, &PowerState)) -> DrivePowerState {
    DrivePowerState {
        state,
        max_milliwatts: it.max_milliwatts(),
        serves: !it.is_non_operational,
        enter_us: it.enter_us,
        exit_us: it.exit_us,
    }
}

fn describe_smart(smart: &nvme::smart::Smart) -> redfish::view::Smart {
    redfish::view::Smart {
        critical_warning: smart.critical_warning,
        celsius: smart.celsius(),
        available_spare_percent: smart.available_spare,
        spare_threshold_percent: smart.spare_threshold,
        percentage_used: smart.percentage_used,
        read_bytes: smart.read_bytes(),
        written_bytes: smart.written_bytes(),
        read_commands: smart.read_commands,
        write_commands: smart.write_commands,
        busy_minutes: smart.busy_minutes,
        power_cycles: smart.power_cycles,
        power_on_hours: smart.power_on_hours,
        unsafe_shutdowns: smart.unsafe_shutdowns,
        media_errors: smart.media_errors,
        error_log_entries: smart.error_log_entries,
        warning_minutes: smart.warning_minutes,
        critical_minutes: smart.critical_minutes,
        sensors_celsius: smart.sensors_celsius(),
    }
}

/// Says what keeps drives from being asked how they are.
pub fn say_not_allowed() {
    runtime::say(format_args!(
        "palisade: drives can't be asked for their health: that takes CAP_SYS_ADMIN\n  give the \
         daemon's service AmbientCapabilities=CAP_SYS_ADMIN; until then only what the kernel says \
         of drives is known"
    ));
}

/// Says what keeps the devices of drives from being opened to ask.
pub fn say_not_opened() {
    runtime::say(format_args!(
        "palisade: drives can't be asked for their health: the daemon may not open their \
         controllers, such as /dev/nvme0\n  give its user these nodes by a rule of udev, as the \
         Debian package does, and let its service's DeviceAllow= have them; until then only what \
         the kernel says of drives is known"
    ));
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
#[path = "asking_tests.rs"]
mod tests;
