//! How drives are as devices: what the kernel and they themselves say, and how well they are.
//!
//! Purpose: a drive's [`Hardware`] is put together from the kernel's device ([`drives::sysfs`]),
//! the drive's own answers ([`crate::asking`]) and the engine's counts of its errors, and judged by
//! [`health::rules`]. It is made anew behind each answer, each look at the kernel's devices and
//! each change of `[health]`; whoever makes a view takes what is there.
//!
//! A drive is judged once for each of its answers; one that gives none, once each `ask_every_s`.
//! Judges remember: since when what is wrong, and how counters rose. They are kept in the state
//! directory ([`crate::state::HEALTH`]) by the drives' ids, and go on where they were after a
//! restart.
//!
//! Invariants
//! - Nothing here asks a drive, and nobody waits for a file.
//! - A file that can't be read is not written over; judges begin anew then, which is said.
//! - No more than [`MOST`] drives are remembered; those that are there stay, and of the others the
//!   last that were.

use crate::around;
use crate::asking::{Answer, Askable, Asking, Times};
use crate::lock::lock;
use drives::sysfs::{Controller, Device, Kind};
use health::rules::{Facts, Judge, Level, Link, Smart};
use health::settings::Settings;
use redfish::view::{Enclosure, Hardware, Health, PcieLink, Reason, Surroundings};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

/// The form of the file.
const VERSION: u32 = 1;

/// The reason of a drive that is gone and not failed. Nothing sets it: it is no rule.
const GONE: &str = "gone";

/// How many drives are remembered.
const MOST: usize = 512;

/// A drive that is to be described.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subject {
    /// Names it for ever.
    pub id: String,
    /// Its path.
    pub path: String,
    /// The number of its device; `None` for a file, and while it is away.
    pub device: Option<u64>,
    /// What the engine counted: errors without timeouts, and timeouts; `None` where no array has
    /// it.
    pub counted: Option<(u64, u64)>,
    /// It is gone while an array uses it, and whether it is waited for.
    pub absent: Option<bool>,
}

/// A judge, and when it judged last, in seconds since 1970.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
struct Kept {
    judge: Judge,
    seen: u64,
}

/// What the file holds.
#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    drives: BTreeMap<String, Kept>,
}

/// One drive, as last described.
struct Known {
    hardware: Arc<Hardware>,
    /// The answer by which it was judged.
    answer: Option<Arc<Answer>>,
}

#[derive(Default)]
struct Inside {
    settings: Settings,
    judges: BTreeMap<String, Kept>,
    /// By path.
    drives: BTreeMap<String, Known>,
    asked: Vec<Askable>,
    /// All that is around.
    around: Arc<Surroundings>,
    /// What of it was seen, and which shelves tell of themselves.
    seen: Surroundings,
    shelves: Vec<Enclosure>,
    /// Temperatures by the kernel's sensors, of drives that do not tell theirs; by path.
    sensors: BTreeMap<String, i32>,
    /// Whether judges differ from those that were kept last.
    is_new: bool,
    /// Alive while they are being written.
    writing: Weak<()>,
    /// Whether it was read what was kept.
    is_recalled: bool,
}

/// All drives as devices.
pub struct Wellness {
    asking: Asking,
    /// Whether drives are asked by their own paths, whatever they are.
    is_by_path: bool,
    inside: Mutex<Inside>,
}

impl Wellness {
    /// Nothing is known yet of what these will be asked.
    pub fn new(asking: Asking) -> Self {
        Self { asking, is_by_path: false, inside: Mutex::default() }
    }

    /// The same, but that these will be asked by the paths of the drives themselves, files too:
    /// nobody but stand-ins answers to that.
    pub fn of_stand_ins(asking: Asking) -> Self {
        Self { is_by_path: true, ..Self::new(asking) }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        lock(&self.inside)
    }

    /// Who asks drives.
    pub const fn asking(&self) -> &Asking {
        &self.asking
    }

    /// How drives are judged, and how often they are asked, from now on.
    pub fn set(&self, settings: Settings) {
        let every = Duration::from_secs(settings.ask_every_s);
        self.inside().settings = settings;
        self.asking.set_times(Times { every, ..Times::default() });
    }

    /// How often drives are judged.
    pub fn every(&self) -> Duration {
        Duration::from_secs(self.inside().settings.ask_every_s)
    }

    /// The drive at a path, as last described.
    pub fn hardware(&self, path: &str) -> Option<Arc<Hardware>> {
        self.inside().drives.get(path).map(|known| known.hardware.clone())
    }

    /// What is around the drives, as last seen.
    pub fn around(&self) -> Arc<Surroundings> {
        self.inside().around.clone()
    }

    /// This is around the drives from now on, beside shelves that tell of themselves.
    pub fn see_around(&self, around: Surroundings) {
        let mut inside = self.inside();
        inside.seen = around;
        inside.see();
    }

    /// These shelves tell of themselves, from now on.
    pub fn see_shelves(&self, shelves: Vec<Enclosure>) {
        let mut inside = self.inside();
        if inside.shelves != shelves {
            inside.shelves = shelves;
            inside.see();
        }
    }

    /// These are the temperatures of drives that may not be asked, by path.
    pub fn see_sensors(&self, sensors: BTreeMap<String, i32>) {
        self.inside().sensors = sensors;
    }

    /// The paths of drives that this process may not ask, with their controllers: nobody else asks
    /// these.
    pub fn untold(&self) -> Vec<(String, String)> {
        let inside = self.inside();
        let untold = inside.drives.iter().filter_map(|(path, known)| {
            known.answer.as_ref().filter(|answer| answer.is_forbidden())?;
            Some((path.clone(), known.hardware.controller.clone()?))
        });
        untold.collect()
    }

    /// Describes these drives anew, among these devices of the kernel, at a moment in seconds since
    /// 1970. Drives with a new answer are judged; if that `is_due`, those that give none, too.
    pub fn describe(&self, subjects: &[Subject], devices: &[Device], now: u64, is_due: bool) {
        let mut inside = self.inside();
        let mut asked = Vec::new();
        let mut before = core::mem::take(&mut inside.drives);
        for subject in subjects {
            let number = subject.device.map(crate::plugs::numbers);
            let own = |device: &&Device| number.is_some() && device.number == number;
            let device = devices.iter().find(own);
            asked.extend(match self.is_by_path {
                true => Some(Askable { key: subject.path.clone(), device: (&subject.path).into() }),
                false => device.and_then(|device| askable(subject, device)),
            });
            let answer = self.asking.answer(&subject.path);
            let before = before.remove(&subject.path);
            let was = before.as_ref().and_then(|known| known.answer.clone());
            let is_same = match (&was, &answer) {
                (Some(was), Some(now)) => Arc::ptr_eq(was, now),
                (was, now) => was.is_none() && now.is_none(),
            };
            let mut hardware = kernels_word(device);
            answer.iter().for_each(|answer| answer.fill(&mut hardware));
            inside.place(subject, &mut hardware);
            let is_reading = !is_same || is_due && answer.is_none();
            let told = answer.as_ref().is_none_or(|answer| answer.is_smart_told);
            inside.judge((subject, told), &mut hardware, now, is_reading);
            if let Some(is_waited_for) = subject.absent {
                let before = before.map(|known| known.hardware);
                miss(&mut hardware, before.as_deref(), is_waited_for, now);
            }
            let known = Known { hardware: Arc::new(hardware), answer };
            inside.drives.insert(subject.path.clone(), known);
        }
        if inside.asked != asked {
            inside.asked.clone_from(&asked);
            self.asking.set_drives(asked);
        }
        inside.forget(subjects);
    }

    /// The file's text, if judges have changed since the last time, and what to drop when that is
    /// written: until then there is nothing to keep.
    pub fn to_keep(&self) -> Option<(Vec<u8>, Arc<()>)> {
        let mut inside = self.inside();
        if !inside.is_recalled || inside.writing.strong_count() > 0 || !inside.is_new {
            return None;
        }
        let file = File { version: VERSION, drives: inside.judges.clone() };
        let bytes = serde_json::to_vec(&file).ok()?;
        let under_way = Arc::new(());
        (inside.is_new, inside.writing) = (false, Arc::downgrade(&under_way));
        Some((bytes, under_way))
    }

    /// What was taken to be kept could not be.
    pub fn not_kept(&self) {
        self.inside().is_new = true;
    }

    /// Goes on with the judges of a file, if there is one; what was judged before that counts for
    /// nothing. From then on there is something to keep.
    ///
    /// # Errors
    /// Why it can't be read.
    pub fn go_on(&self, bytes: Option<&[u8]>) -> Result<(), String> {
        let mut judges = BTreeMap::new();
        if let Some(bytes) = bytes {
            let file: File = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
            if file.version != VERSION {
                return Err(format!("it has version {}, not {VERSION}", file.version));
            }
            judges = file.drives;
        }
        let mut inside = self.inside();
        (inside.judges, inside.is_recalled) = (judges, true);
        Ok(())
    }
}

impl Inside {
    /// Puts together what is around the drives.
    fn see(&mut self) {
        let around = around::with_shelves(self.seen.clone(), &self.shelves);
        if *self.around != around {
            self.around = Arc::new(around);
        }
    }

    /// Says where a drive is plugged in, whether its indicator is on, and how warm it is where it
    /// does not say so itself.
    fn place(&self, subject: &Subject, hardware: &mut Hardware) {
        hardware.place = around::place(&self.around, &subject.id);
        let slots = self.around.enclosures.iter().flat_map(|enclosure| &enclosure.slots);
        let mut own = slots.filter(|slot| slot.drive.as_ref() == Some(&subject.id));
        hardware.located = own.next().and_then(|slot| slot.located);
        hardware.sensor_celsius = self.sensors.get(&subject.path).copied();
    }

    /// Says how well a drive is; by its SMART log only if it `told` that now.
    fn judge(
        &mut self,
        (subject, told): (&Subject, bool),
        hardware: &mut Hardware,
        now: u64,
        is_reading: bool,
    ) {
        if is_reading && !self.judges.contains_key(&subject.id) {
            self.judges.insert(subject.id.clone(), Kept::default());
        }
        let Some(kept) = self.judges.get_mut(&subject.id) else { return };
        let verdict = match is_reading {
            true => {
                (kept.seen, self.is_new) = (now, true);
                let mut facts = facts(hardware, subject.counted);
                if !told {
                    (facts.smart, facts.celsius) = (None, hardware.sensor_celsius);
                }
                kept.judge.judge(&facts, &self.settings, now)
            }
            false => kept.judge.verdict(),
        };
        hardware.health = level(verdict.level);
        hardware.worn_out = kept.judge.worn_out(now);
        let reasons = verdict.reasons.into_iter().map(|reason| Reason {
            rule: serde_json::to_value(reason.rule)
                .ok()
                .and_then(|word| word.as_str().map(str::to_owned))
                .unwrap_or_default(),
            health: level(reason.level),
            what: reason.what,
            action: reason.action,
            since: reason.since,
        });
        hardware.reasons = reasons.collect();
    }

    /// Forgets the drives that were not seen for longest, where there are too many.
    fn forget(&mut self, subjects: &[Subject]) {
        let excess = self.judges.len().saturating_sub(MOST);
        let is_there = |id: &String| subjects.iter().any(|subject| subject.id == *id);
        let mut away: Vec<(u64, String)> = self
            .judges
            .iter()
            .filter(|(id, _)| excess > 0 && !is_there(id))
            .map(|(id, kept)| (kept.seen, id.clone()))
            .collect();
        away.sort();
        for (_, id) in away.into_iter().take(excess) {
            self.judges.remove(&id);
            self.is_new = true;
        }
    }
}

/// Says that a drive is gone, and since when that is known.
fn miss(hardware: &mut Hardware, before: Option<&Hardware>, is_waited_for: bool, now: u64) {
    let known = before.and_then(|before| before.reasons.iter().find(|own| own.rule == GONE));
    let (what, action) = match is_waited_for {
        true => ("it went with its path over the network", "check the network and its target"),
        false => (
            "it is gone, with more drives than redundancy covers",
            "check the cable and the power of its enclosure: palisade status says how to go on",
        ),
    };
    let reason = Reason {
        rule: GONE.to_owned(),
        health: Health::Critical,
        what: what.to_owned(),
        action: action.to_owned(),
        since: known.map_or(now, |known| known.since),
    };
    hardware.reasons.insert(0, reason);
    hardware.health = Health::Critical;
}

/// How a drive is asked, if it takes NVMe commands: by a way that is open, if one is.
fn askable(subject: &Subject, device: &Device) -> Option<Askable> {
    let is_live = |one: &&Controller| one.state.as_deref() == Some("live");
    let open = device.controllers.iter().find(is_live).or_else(|| device.controllers.first());
    let controller = open.filter(|_| device.kind == Kind::Nvme)?;
    Some(Askable { key: subject.path.clone(), device: controller.node() })
}

/// What the kernel says of a device.
fn kernels_word(device: Option<&Device>) -> Hardware {
    let Some(device) = device else { return Hardware::default() };
    let link = device.pci.as_ref().and_then(|pci| pci.link.as_ref());
    Hardware {
        kind: Some(device.kind.name().to_owned()),
        transport: device.transport().map(|transport| transport.name().to_owned()),
        controller: device.controllers.first().map(|controller| controller.name.clone()),
        namespace: device.identity.namespace,
        firmware: device.firmware.clone(),
        bus_address: device.pci.as_ref().map(|pci| pci.address.clone()),
        link: link.map(|link| PcieLink {
            lanes: link.now.lanes,
            max_lanes: link.could_be().lanes,
            megatransfers: link.now.megatransfers,
            max_megatransfers: link.could_be().megatransfers,
        }),
        ..Hardware::default()
    }
}

/// What the rules need to know.
fn facts(hardware: &Hardware, counted: Option<(u64, u64)>) -> Facts {
    let smart = hardware.smart.as_ref();
    Facts {
        smart: smart.map(|smart| Smart {
            critical_warning: smart.critical_warning,
            spare_percent: smart.available_spare_percent,
            threshold_percent: smart.spare_threshold_percent,
            used_percent: smart.percentage_used,
            media_errors: smart.media_errors,
        }),
        celsius: smart.and_then(|smart| smart.celsius).or(hardware.sensor_celsius),
        warning_celsius: hardware.warning_celsius,
        critical_celsius: hardware.critical_celsius,
        errors: counted.map(|(errors, _)| errors),
        timeouts: counted.map(|(_, timeouts)| timeouts),
        link: hardware.link.map(|link| Link {
            lanes: link.lanes,
            max_lanes: link.max_lanes,
            megatransfers: link.megatransfers,
            max_megatransfers: link.max_megatransfers,
        }),
    }
}

const fn level(level: Level) -> Health {
    match level {
        Level::Ok => Health::Ok,
        Level::Warning => Health::Warning,
        Level::Critical => Health::Critical,
    }
}

#[cfg(test)]
#[path = "wellness_tests.rs"]
mod tests;
