//! Attends to drives as devices: has them asked, describes them anew as something changes, and
//! keeps what their judges remember.
//!
//! Invariants
//! - Nobody waits for a drive or for the state directory here but this task.
//! - Judges that could not be read at the start are not written over.

use crate::around::{self, Placed};
use crate::asking::Asking;
use crate::claims::Lookup;
use crate::config::Described;
use crate::inventory::Known;
use crate::manager::Manager;
use crate::plugs::is_used;
use crate::snapshot::now;
use crate::state::HEALTH as FILE;
use crate::wellness::{Subject, Wellness};
use drives::sysfs::Sysfs;
use engine::manage::command::{ArrayStatus, ErrorCounts};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// How often drives are described anew at least, for what nobody tells of.
const AGAIN: Duration = Duration::from_secs(5);

/// How long after one drive's answer all are described anew, so that many answers are one.
const TOGETHER: Duration = Duration::from_millis(20);

/// How long the start waits for what is kept.
const OPENS: Duration = Duration::from_secs(5);

/// How often it is looked what is around drives, if none comes or goes.
const AROUND: Duration = Duration::from_secs(10);

/// How often judges are kept, if they have changed.
const KEEP: Duration = Duration::from_secs(60);

impl Manager {
    /// Has stand-ins say how drives are, and asks no drive.
    #[must_use]
    pub fn asking_stand_ins(mut self) -> Self {
        let wake = self.attend.clone();
        let asking = Asking::by_stand_ins(move |_| wake.notify_one());
        self.wellness = Wellness::of_stand_ins(asking);
        self
    }

    /// Attends to drives for as long as the daemon runs.
    pub(crate) async fn keep_well(&self) {
        self.recall_judges().await;
        let asking = self.wellness.asking().clone();
        tokio::join!(asking.keep(), self.keep_describing());
    }

    async fn keep_describing(&self) {
        let mut described = self.described.subscribe();
        self.take_described(&described.borrow_and_update());
        let mut reading = Instant::now();
        let mut keep = Instant::now() + KEEP;
        let mut look = Instant::now();
        // Those that were looked for last.
        let mut placed = Vec::new();
        loop {
            let at = Instant::now();
            let is_due = at >= reading;
            if is_due {
                reading = at + self.wellness.every();
            }
            let drives = self.to_place();
            if at >= look || drives != placed {
                look = at + AROUND;
                // A look that hangs keeps others from being begun: these wait for the next.
                if self.look_around().await {
                    placed = drives;
                }
            }
            self.describe_drives(is_due);
            if at >= keep {
                keep = at + KEEP;
                self.keep_judges().await;
            }
            let next = (at + AGAIN).min(reading);
            tokio::select! {
                () = self.attend.notified() => sleep(TOGETHER).await,
                // Its sender is this manager's.
                _ = described.changed() => {
                    self.take_described(&described.borrow_and_update());
                    (reading, look) = (Instant::now(), Instant::now());
                }
                () = sleep_until(next) => {}
            }
        }
    }

    /// Takes what the configuration says.
    fn take_described(&self, described: &Described) {
        self.wellness.set(described.health);
        self.shelves.follow(&described.shelves);
    }

    /// Takes what shelves tell of themselves, and marks the daemon's drives there.
    fn see_shelves(&self) {
        let drives: Vec<(String, String)> =
            self.to_place().into_iter().map(|(id, path, _)| (id, path)).collect();
        self.wellness.see_shelves(self.shelves.enclosures(&drives));
    }

    /// The drives that may be in an enclosure: their identifiers, paths and serial numbers.
    fn to_place(&self) -> Vec<(String, String, Option<String>)> {
        let drive = |known: &Known| {
            let serial = known.about.as_ref().map(|about| about.serial.clone());
            Some((known.id()?.clone(), known.path.clone(), serial))
        };
        self.inventory().iter().filter_map(drive).collect()
    }

    /// Looks what is around drives, aside: enclosures and chips may take their time. Whether that
    /// was seen.
    pub(crate) async fn look_around(&self) -> bool {
        let sysfs = Sysfs::new(self.sysfs.clone());
        let described = self.described.borrow().enclosures.clone();
        let drives = self.to_place();
        let of_sysfs = sysfs.clone();
        let look = move || {
            let placed = drives.iter().map(|(id, path, serial)| Placed {
                id,
                path,
                serial: serial.as_deref(),
            });
            let placed: Vec<Placed<'_>> = placed.collect();
            around::surroundings(&of_sysfs, &described, &placed)
        };
        let around = self.aside(Lookup::Around, look).await;
        let is_seen = around.is_some();
        if let Some(around) = around {
            self.wellness.see_around(around);
        }
        self.look_at_sensors(sysfs).await;
        self.describe_drives(false);
        is_seen
    }

    /// Has the kernel's sensors say how warm drives are that may not be asked: it asks them.
    async fn look_at_sensors(&self, sysfs: Sysfs) {
        let untold = self.wellness.untold();
        if untold.is_empty() {
            return;
        }
        let look = move || {
            let sensors = untold.into_iter().filter_map(|(path, controller)| {
                let reading = sysfs.temperature(&controller)?.reading?;
                Some((path, i32::try_from(reading / 1000).ok()?))
            });
            sensors.collect()
        };
        if let Some(sensors) = self.aside(Lookup::Sensors, look).await {
            self.wellness.see_sensors(sensors);
        }
    }

    /// Describes all drives by what is known now.
    pub(crate) fn describe_drives(&self, is_due: bool) {
        self.see_shelves();
        let subjects: Vec<Subject> = {
            let (told, inventory) = (self.snapshot.told(), self.inventory());
            let absent: BTreeMap<String, bool> = {
                let all = self.plugs.absent(&told.arrays).into_iter();
                all.map(|absent| (absent.path, absent.is_waited_for)).collect()
            };
            let subject = |known: &Known| {
                Some(Subject {
                    id: known.id()?.clone(),
                    path: known.path.clone(),
                    device: known.device(),
                    counted: counted(&told.arrays, &known.path),
                    absent: absent.get(&known.path).copied(),
                })
            };
            inventory.iter().filter_map(subject).collect()
        };
        self.wellness.describe(&subjects, &self.plugs.devices(), now(), is_due);
        self.refresh();
    }

    /// Goes on with what judges remembered at the last end.
    async fn recall_judges(&self) {
        let Some(state) = self.state().cloned() else { return };
        let file = state.dir().join(FILE);
        let read = timeout(OPENS, spawn_blocking(move || state.read(FILE))).await;
        let outcome = match read {
            Ok(Ok(Ok(bytes))) => self.wellness.go_on(bytes.as_deref()),
            Ok(Ok(Err(error))) => Err(error.to_string()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no answer within {} s", OPENS.as_secs())),
        };
        if let Err(problem) = outcome {
            runtime::say(format_args!(
                "palisade: what was known of drives' health can't be read: {}: {problem}\n  \
                 remove the file and restart the daemon; until then nothing of it is kept",
                file.display()
            ));
        }
    }

    /// Keeps what judges remember, if that has changed, and waits for no directory that hangs.
    pub(crate) async fn keep_judges(&self) {
        let Some(state) = self.state().cloned() else { return };
        let Some((bytes, under_way)) = self.wellness.to_keep() else { return };
        let write = move || {
            let written = state.replace(FILE, &bytes);
            drop(under_way);
            written
        };
        let written = timeout(OPENS, spawn_blocking(write)).await;
        if !matches!(written, Ok(Ok(Ok(())))) {
            // A directory that can't be written is told by those who need it more.
            self.wellness.not_kept();
        }
    }
}

/// What the engine counted of the drive that arrays have at this path.
fn counted(arrays: &[ArrayStatus], path: &str) -> Option<(u64, u64)> {
    let slots = arrays.iter().flat_map(|array| &array.slots);
    let slot = slots.filter(|slot| is_used(slot.health)).find(|s| s.path.as_deref() == Some(path));
    slot.map(|slot| {
        let ErrorCounts { read_errors, failures, timeouts, .. } = slot.errors;
        (read_errors.saturating_add(failures.saturating_sub(timeouts)), timeouts)
    })
}
