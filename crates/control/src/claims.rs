//! Which drives there are, and which a request may take.
//!
//! Purpose: looks at drives, checks what only the control plane can see (paths, foreign content,
//! which drive is whose), and reserves them for a request.
//!
//! Invariants
//! - No drive that holds anything known is taken to be overwritten unless the request names it,
//!   none that a running array uses, named or not (D11), and none but the one that the request
//!   means, whatever is at its path by now. Who may name one that the configuration does not is
//!   [`crate::reach`]'s.
//! - Drives are reserved from before the look at them to the engine's answer, so that of two
//!   requests for one drive the second is refused; those that are erased, until that has ended.
//! - A drive that is reserved for a plan's look is there: who starts an array, or erases its
//!   records, waits for the look's end, and is refused if that does not come.
//! - The turn is held by who reserves drives, lets them go or begins looks at those that nobody
//!   has: for moments. No drive and no path is waited for meanwhile.

use crate::convert;
use crate::fabrics::{self, Fabrics};
use crate::failure;
use crate::inventory::{Found, Inventory, Known, Places};
use crate::lock::lock;
use crate::look::{self, Look, LookError, canonical};
use crate::manager::Manager;
use crate::nameplate::{self, Nameplate, Stamp};
use crate::names;
use crate::paths::{behind, configured, one_behind};
use crate::plan::holds_foreign;
use crate::probe;
use drives::remote::is_remote;
use drives::sysfs::ROOT as SYSFS;
use drives::{OpenError, SharedDrive};
use engine::manage::command::DriveRef;
use redfish::messages as say;
use redfish::view::{self, Error, NamedDrive};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::MutexGuard;
use tokio::time::Instant;
use units::Uuid;

/// How often, and how many times, it is looked whether the engine has closed a drive.
const CLOSED: (Duration, u32) = (Duration::from_millis(5), 200);

/// A look for a plan takes no longer: it waits for another, and is given up.
const PLAN: Duration = look::LOOK.saturating_mul(3);

/// So many lookups of paths are under way for requests at one time, those that hang included.
const LOOKUPS: usize = 8;

/// Whom a lookup of paths is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lookup {
    /// A request: what is at the paths that it names.
    Request,
    /// A request: what the configuration names.
    Patterns,
    /// A look at all drives: what the configuration names.
    Configured,
    /// A look at all drives: how they are.
    Stamps,
    /// A look which drives are there, and what the kernel says of them.
    Devices,
    /// A look what is around drives.
    Around,
    /// The same by the kernel's sensors in drives.
    Sensors,
    /// An indicator that is switched.
    Locate,
}

/// Lookups of paths that are not over, those that hang included.
#[derive(Default)]
pub struct Lookups(Vec<(Lookup, Weak<AtomicBool>)>);

impl Lookups {
    /// Begins one, unless there is no room: looks at all drives have one of each kind, so that they
    /// leave to requests what is theirs. It is over when what this gives is dropped, and hangs once
    /// that is true.
    fn begin(&mut self, kind: Lookup) -> Option<Arc<AtomicBool>> {
        self.0.retain(|(_, one)| one.strong_count() > 0);
        let is_of_request = |kind| matches!(kind, Lookup::Request | Lookup::Patterns);
        let (beside, most) = match is_of_request(kind) {
            true => (self.0.iter().filter(|(other, _)| is_of_request(*other)).count(), LOOKUPS),
            false => (self.0.iter().filter(|(other, _)| *other == kind).count(), 1),
        };
        // What the configuration names is the same for all: what hangs once hangs again.
        if beside >= most || kind == Lookup::Patterns && self.hangs() {
            return None;
        }
        let under_way = Arc::new(AtomicBool::new(false));
        self.0.push((kind, Arc::downgrade(&under_way)));
        Some(under_way)
    }

    /// Whether what the configuration names can't be looked up now.
    fn hangs(&self) -> bool {
        let of_patterns = |kind| matches!(kind, Lookup::Patterns | Lookup::Configured);
        let mut all = self.0.iter().filter(|(kind, _)| of_patterns(*kind));
        all.any(|(_, one)| one.upgrade().is_some_and(|hangs| hangs.load(Ordering::Acquire)))
    }
}

/// The right to reserve drives, and to begin looks at those that nobody has.
pub struct Turn<'a> {
    _guard: MutexGuard<'a, ()>,
    /// Where running arrays have drives.
    pub places: Places,
}

/// A drive that a request takes.
pub struct Taken {
    /// The drive for the engine.
    pub reference: DriveRef<SharedDrive>,
    /// What taking it means.
    pub plan: view::PlannedDrive,
}

/// How drives are reserved.
type Reserve = fn(&mut Inventory, &[String]);

/// To be used.
const RESERVE: Reserve = |inventory, paths| inventory.reserve(paths, true);

/// The paths of drives.
pub fn paths_of(taken: &[Taken]) -> Vec<String> {
    taken.iter().map(|t| t.reference.path.clone()).collect()
}

impl Manager {
    /// Waits for the turn.
    pub(crate) async fn turn(&self) -> Result<Turn<'_>, Error> {
        let guard = self.looking.lock().await;
        let places = convert::places(&self.running().await?);
        Ok(Turn { _guard: guard, places })
    }

    /// What the configuration names now, looked up aside; `None` if that takes too long, or an
    /// earlier time is not over.
    async fn configured(&self, kind: Lookup) -> Option<Vec<Found>> {
        let (patterns, fabrics) = (self.patterns(), self.data.fabrics().clone());
        let found = self.aside(kind, move || configured(&patterns, &fabrics)).await?;
        *self.named_paths() = found.iter().map(|found| found.canonical.clone()).collect();
        Some(found)
    }

    /// Looks paths up on a thread of its own; `None` if that takes too long, or too many that took
    /// too long are not over: of what hangs there are few threads, not one for every time.
    pub(crate) async fn aside<T: Send + 'static>(
        &self,
        kind: Lookup,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let lookups = || lock(&self.looking_up);
        let under_way = lookups().begin(kind)?;
        let hangs = Arc::downgrade(&under_way);
        let work = move || {
            let _under_way = under_way;
            work()
        };
        let found = look::within(look::LOOK, vec![work]).await.into_iter().next()?;
        if let Some(hangs) = hangs.upgrade().filter(|_| found.is_none()) {
            hangs.store(true, Ordering::Release);
        }
        found
    }

    /// Does something with the fabric, on a thread of its own.
    pub(crate) async fn behind<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Fabrics) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let fabrics = self.data.fabrics().clone();
        let done = self.aside(Lookup::Request, move || work(&fabrics)).await;
        done.unwrap_or_else(|| Err(fabrics::silent(look::LOOK)))
    }

    /// Begins looks at known drives that no array has. Answers with those, and with why others
    /// can't be looked at; where another look is under way, that is as good.
    fn begin_looks(&self, paths: &[String], claim: bool) -> (Vec<(String, Look)>, Vec<LookError>) {
        let (mut begun, mut problems) = (Vec::new(), Vec::new());
        let mut inventory = self.inventory();
        for path in paths {
            match inventory.begin(path, claim) {
                Ok(Some(look)) => begun.push((path.clone(), look)),
                Ok(None) => {}
                Err(problem) => problems.push(problem),
            }
        }
        (begun, problems)
    }

    /// Looks at drives, all at once. Answers with those that can't be. With `hold` they stay open.
    async fn finish_looks(&self, begun: Vec<(String, Look)>, hold: bool) -> Vec<LookError> {
        let (paths, looks): (Vec<String>, Vec<_>) = begun.into_iter().unzip();
        let fabrics = self.data.fabrics().clone();
        let look = |look: Look| {
            let fabrics = fabrics.clone();
            move || look.look(&move |path| (fabrics.open(path), fabrics.plate(path)))
        };
        let work = looks.into_iter().map(look).collect();
        let seen = look::within(look::LOOK, work).await;
        let mut inventory = self.inventory();
        let finish = |(path, seen): (&String, _)| inventory.finish(path, seen, hold).err();
        let problems = paths.iter().zip(seen).filter_map(finish).collect();
        inventory.name(&paths);
        problems
    }

    /// Waits until no look at these drives is under way but such as were given up.
    async fn until_seen(&self, paths: &[String]) {
        let end = Instant::now() + look::LOOK;
        while self.inventory().are_looked_at(paths) && Instant::now() < end {
            tokio::time::sleep(CLOSED.0).await;
        }
    }

    /// Looks at drives that this request has reserved. Answers with those that can't be.
    async fn look_at_own(&self, paths: &[String]) -> Vec<LookError> {
        // One that began before they were reserved.
        self.until_seen(paths).await;
        let (begun, mut problems) = self.begin_looks(paths, true);
        let is_begun = |path: &String| begun.iter().any(|(begun, _)| begun == path);
        if let Some(hung) = paths.iter().find(|path| !is_begun(path)) {
            problems.push(LookError::Silent(hung.into()));
        }
        problems.extend(self.finish_looks(begun, true).await);
        problems
    }

    /// Looks at what the configuration names and nobody has, but not at drives that a running
    /// array has excluded; forgets what it no longer names and holds no record. Answers with what
    /// can't be opened.
    pub(crate) async fn scan(&self) -> Result<Vec<LookError>, Error> {
        self.look_again(true).await
    }

    /// The same; unless `all` are meant, only at those that may have changed since the last look.
    pub(crate) async fn look_again(&self, all: bool) -> Result<Vec<LookError>, Error> {
        // Of two that look at all drives the second finds what changed since the first began.
        let _scanning = self.scanning.lock().await;
        let configured = self.configured(Lookup::Configured).await;
        // Connected by somebody: known for as long as it is.
        let fabrics = self.data.fabrics();
        let connected: Vec<Found> =
            fabrics.names().iter().map(|name| behind(name, fabrics)).collect();
        let stamps = self.stamps().await;
        let turn = self.turn().await?;
        let due: Vec<String> = {
            let mut inventory = self.inventory();
            let named: Option<Vec<String>> =
                configured.map(|found| found.iter().map(|f| inventory.add_found(f)).collect());
            let placed = |k: &Known| turn.places.has(k);
            let held = |k: &Known| {
                k.is_reserved() || placed(k) || k.content.record.is_some() || k.is_asked_for()
            };
            let connected: Vec<String> =
                connected.iter().map(|found| inventory.add_found(found)).collect();
            if let Some(named) = named {
                let is_there = |path: &String| named.contains(path) || connected.contains(path);
                inventory.retain(|k| held(k) || is_there(&k.path));
            }
            let may_have_changed = |k: &Known| match stamps.get(&k.path) {
                // What could not be opened may be allowed to be by now, which no stamp shows.
                Some(stamp) => k.is_due(stamp.as_ref()) || k.about.is_none(),
                // Where paths hang, a look would, too.
                None => false,
            };
            let idle = |k: &&Known| !k.is_reserved() && !placed(k);
            let due = |k: &&Known| all || may_have_changed(k);
            inventory.iter().filter(idle).filter(due).map(|k| k.path.clone()).collect()
        };
        let (begun, mut problems) = self.begin_looks(&due, false);
        drop(turn);
        problems.extend(self.finish_looks(begun, false).await);
        if all {
            self.until_seen(&due).await;
        }
        Ok(problems)
    }

    /// How what is at the paths of all known drives is now; also what the kernel says of it is
    /// taken. Nothing where that takes too long.
    async fn stamps(&self) -> BTreeMap<String, Option<Stamp>> {
        let paths: Vec<String> = self.inventory().iter().map(|known| known.path.clone()).collect();
        let fabrics = self.data.fabrics().clone();
        let look = move || {
            let (sysfs, mut all) = (Path::new(SYSFS), Vec::new());
            for path in paths {
                let (plate, stamp) = match Path::new(&path) {
                    path if is_remote(path) => (fabrics.plate(path), None),
                    path => (nameplate::of(sysfs, path), nameplate::stamp(sysfs, path)),
                };
                all.push((path, plate, stamp));
            }
            all
        };
        let found = self.aside(Lookup::Stamps, look).await.unwrap_or_default();
        let mut inventory = self.inventory();
        let take = |(path, plate, stamp): (String, Option<Nameplate>, _)| {
            inventory.look_up(&path, plate.as_ref());
            (path, stamp)
        };
        found.into_iter().map(take).collect()
    }

    /// Looks at a drive that somebody asks for by its path, if nobody has it and it was never
    /// looked at, or another is there; answers with the path that it is known by.
    pub(crate) async fn look_for(&self, path: &str) -> Result<String, Error> {
        let known = self.known_paths(core::slice::from_ref(&path.to_owned())).await?;
        let known = known.into_iter().next().unwrap_or_default();
        let turn = self.turn().await?;
        let is_new = {
            let mut inventory = self.inventory();
            inventory.ask_for(&known);
            let is_free = |k: &&Known| !k.is_reserved() && !turn.places.is_taken(k);
            inventory.at(&known).filter(is_free).is_some_and(Known::is_new)
        };
        if is_new {
            let known = core::slice::from_ref(&known);
            let (begun, _) = self.begin_looks(known, false);
            drop(turn);
            // What can't be opened is remembered with its problem.
            let _ = self.finish_looks(begun, false).await;
            self.until_seen(known).await;
        }
        Ok(known)
    }

    /// Whether the configuration names what is at a known path.
    pub(crate) fn is_named(&self, path: &str) -> bool {
        let (inventory, named) = (self.inventory(), self.named_paths());
        let real = inventory.at(path).map_or(Path::new(path), Known::real);
        named.iter().any(|named| named == real)
    }

    /// By which paths the configuration names what is at these.
    ///
    /// # Errors
    /// It does not name all of them. Whether there is anything at the others is not told.
    pub(crate) async fn as_named(&self, paths: &[String]) -> Result<Vec<String>, Error> {
        let wanted = paths.to_vec();
        let look = move || wanted.iter().map(|path| canonical(Path::new(path))).collect::<Vec<_>>();
        let hang = || not_looked_up(paths);
        let configured = self.configured(Lookup::Patterns).await.ok_or_else(hang)?;
        let real = self.aside(Lookup::Request, look).await.ok_or_else(hang)?;
        let as_named = |(path, real): (&String, PathBuf)| {
            let named = configured.iter().find(|named| named.canonical == real);
            let named = named.and_then(|named| named.plain.to_str()).map(str::to_owned);
            named.ok_or_else(|| Error::new(&say::DRIVE_NOT_NAMED, &[path]))
        };
        paths.iter().zip(real).map(as_named).collect()
    }

    /// Warns of an array's drives that the configuration does not name.
    pub(crate) fn warn(&self, arrays: &mut [view::Array]) {
        for array in arrays {
            let drives = array.slots.iter().filter_map(|slot| slot.drive.as_deref());
            let unnamed = drives.filter(|path| !self.is_named(path));
            array.warnings.extend(unnamed.map(|path| {
                let name = self.data.fabrics().with_place(path);
                format!(
                    "{path} is not in the daemon's configuration, and would be missing at its \
                     next start: add it to drives = [\"{name}\", …]"
                )
            }));
        }
    }

    /// The known paths of drives that a request names: as the configuration has them, if it does.
    async fn known_paths(&self, paths: &[String]) -> Result<Vec<String>, Error> {
        let (wanted, fabrics) = (paths.to_vec(), self.data.fabrics().clone());
        let look = move || {
            let found = |path: &String| {
                if is_remote(Path::new(path)) {
                    return one_behind(path, &fabrics).map(|found| (false, found));
                }
                let not_opened = |error| Error::new(&say::DRIVE_NOT_OPENED, &[path, &error]);
                let found = std::fs::metadata(path).map_err(not_opened)?;
                Ok((found.is_dir(), Found::at(Path::new(path))))
            };
            wanted.iter().map(found).collect::<Vec<_>>()
        };
        let configured = self.configured(Lookup::Patterns).await.unwrap_or_default();
        let found = self.aside(Lookup::Request, look).await.ok_or_else(|| not_looked_up(paths))?;
        let mut known = Vec::with_capacity(paths.len());
        for (path, found) in paths.iter().zip(found) {
            let (is_dir, found) = found?;
            let named = configured.iter().find(|named| named.canonical == found.canonical);
            if named.is_none() && is_dir {
                return Err(Error::new(&say::NOT_A_DRIVE, &[&path]));
            }
            known.push(self.inventory().add_found(named.unwrap_or(&found)));
        }
        Ok(known)
    }

    /// Reserves drives that shall be overwritten, opens them, and checks that they may be. `own` is
    /// the array whose old drives need no further word.
    async fn take(
        &self,
        drives: &[NamedDrive],
        overwrite: &[NamedDrive],
        (own, reserve): (Option<Uuid>, Reserve),
    ) -> Result<Vec<Taken>, Error> {
        let paths: Vec<String> = drives.iter().map(|drive| drive.path.clone()).collect();
        let mut named: Vec<String> = Vec::new();
        for (path, known) in paths.iter().zip(self.known_paths(&paths).await?) {
            if named.contains(&known) {
                return Err(names::named_twice(path));
            }
            named.push(known);
        }
        self.reserve_free(&named, reserve).await?;
        let problem = self.look_at_own(&named).await.into_iter().next();
        let taken = match problem {
            Some(problem) => Err(not_opened(&problem)),
            None => self
                .refuse_anothers(&named)
                .await
                .and_then(|()| describe_taken(&self.inventory(), (&named, drives), overwrite, own)),
        };
        if taken.is_err() {
            self.give_up(&named);
        }
        taken
    }

    /// Reserves drives that neither a running array nor another request has.
    async fn reserve_free(&self, paths: &[String], reserve: Reserve) -> Result<(), Error> {
        let turn = self.turn().await?;
        let mut inventory = self.inventory();
        for path in paths {
            check_free(&inventory, path, &turn.places)?;
        }
        reserve(&mut inventory, paths);
        Ok(())
    }

    /// Lets drives go that were looked at only.
    fn give_up(&self, paths: &[String]) {
        let mut inventory = self.inventory();
        inventory.reserve(paths, false);
        inventory.settle(paths);
    }

    /// Takes drives for a look only: what `check` makes of them.
    pub(crate) async fn inspect_drives<T>(
        &self,
        drives: &[NamedDrive],
        overwrite: &[NamedDrive],
        check: impl FnOnce(&[Taken]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let reserve = Inventory::reserve_for_plan;
        let taken = self.take(drives, overwrite, (None, reserve)).await?;
        let (outcome, paths) = (check(&taken), paths_of(&taken));
        drop(taken);
        self.give_up(&paths);
        outcome
    }

    /// Takes drives and keeps them reserved, if `check` has nothing against it. What can't be done
    /// is said before anything is asked to be overwritten.
    pub(crate) async fn claim(
        &self,
        drives: &[NamedDrive],
        overwrite: &[NamedDrive],
        own: Option<Uuid>,
        check: impl FnOnce(&[Taken]) -> Result<(), Error>,
    ) -> Result<Vec<Taken>, Error> {
        let taken = self.take(drives, overwrite, (own, RESERVE)).await?;
        let outcome = check(&taken).and_then(|()| refuse_foreign(&taken));
        let Err(error) = outcome else { return Ok(taken) };
        let paths = paths_of(&taken);
        drop(taken);
        self.give_up(&paths);
        Err(error)
    }

    /// Reserves drives that a running array has, for when it has them no more; refused if another
    /// request has one of them.
    pub(crate) async fn reserve(&self, paths: &[String]) -> Result<(), Error> {
        let _turn = self.turn().await?;
        let mut inventory = self.inventory();
        let other = |path: &&String| inventory.at(path).is_some_and(|known| known.is_reserved());
        if let Some(path) = paths.iter().find(other) {
            return Err(being_used(path));
        }
        inventory.reserve(paths, true);
        Ok(())
    }

    /// Lets drives go that this request has reserved, once it was looked what became of them.
    pub(crate) async fn let_go(&self, paths: &[String]) {
        let Ok(turn) = self.turn().await else { return };
        let (placed, free) = self.parted(&turn, paths);
        self.inventory().reserve(&placed, false);
        let being_erased =
            |path: &String| self.inventory().at(path).is_none_or(|known| known.is_being_erased());
        let looked: Vec<String> = free.iter().filter(|path| !being_erased(path)).cloned().collect();
        let (begun, _) = self.begin_looks(&looked, false);
        drop(turn);
        // What can't be opened is remembered with its problem.
        let _ = self.finish_looks(begun, false).await;
        self.inventory().reserve(&free, false);
        self.until_closed(&free).await;
    }

    /// Looks what became of drives that an array had.
    pub(crate) async fn revisit(&self, paths: &[String]) {
        let Ok(turn) = self.turn().await else { return };
        let (_, free) = self.parted(&turn, paths);
        let reserved =
            |path: &String| self.inventory().at(path).is_none_or(|known| known.is_reserved());
        let looked: Vec<String> = free.into_iter().filter(|path| !reserved(path)).collect();
        let (begun, _) = self.begin_looks(&looked, false);
        drop(turn);
        let _ = self.finish_looks(begun, false).await;
        self.until_seen(&looked).await;
        self.until_closed(&looked).await;
    }

    /// The drives that an array has now, of which is forgotten what was on them; and the others.
    fn parted(&self, turn: &Turn<'_>, paths: &[String]) -> (Vec<String>, Vec<String>) {
        let mut inventory = self.inventory();
        let has = |path: &String| inventory.at(path).is_some_and(|known| turn.places.has(known));
        let (placed, free): (Vec<String>, Vec<String>) = paths.iter().cloned().partition(has);
        placed.iter().for_each(|path| inventory.forget_content(path));
        (placed, free)
    }

    /// Closes drives that nobody has once the engine has closed them.
    async fn until_closed(&self, paths: &[String]) {
        for _ in 0..CLOSED.1 {
            if self.inventory().settle(paths) {
                break;
            }
            tokio::time::sleep(CLOSED.0).await;
        }
    }

    /// Reserves the drives that hold an array's record and that nobody has; of these, if it is a
    /// plan that is carried out, those that `may` be. Plans' looks at them end before.
    pub(crate) async fn claim_found(
        &self,
        array: Uuid,
        may: impl Fn(&Known) -> bool,
    ) -> Result<Vec<DriveRef<SharedDrive>>, Error> {
        let turn = self.turn_without_plans(array).await?;
        let mut inventory = self.inventory();
        let mine = |k: &&Known| !turn.places.is_taken(k) && k.recorded() == Some(array) && may(k);
        let found: Vec<_> = inventory.iter().filter(mine).filter_map(Known::reference).collect();
        let paths: Vec<String> = found.iter().map(|r| r.path.clone()).collect();
        inventory.reserve(&paths, true);
        Ok(found)
    }

    /// The turn, while no plan's look has a drive that may be an array's.
    async fn turn_without_plans(&self, array: Uuid) -> Result<Turn<'_>, Error> {
        let end = Instant::now() + PLAN;
        loop {
            let turn = self.turn().await?;
            let is_planned =
                |k: &&Known| k.is_planned() && (k.about.is_none() || k.recorded() == Some(array));
            let planned = self.inventory().iter().find(is_planned).map(|k| k.path.clone());
            let Some(path) = planned else { return Ok(turn) };
            drop(turn);
            if Instant::now() >= end {
                return Err(being_used(&path));
            }
            tokio::time::sleep(CLOSED.0).await;
        }
    }

    /// Erases the records of an array that does not run, on every drive that is there, but for
    /// those that a plan did not show. Answers with the serial numbers of those erased, with why
    /// others could not be, and with those that were left.
    pub(crate) async fn erase_records(
        &self,
        array: Uuid,
        planned: Option<&[view::PlannedDrive]>,
    ) -> Result<Erased, Error> {
        let _ = self.scan().await?;
        let is_planned = |known: &Known| planned.is_none_or(|all| known.is_among(all));
        let found = self.claim_found(array, is_planned).await?;
        let paths: Vec<String> = found.iter().map(|r| r.path.clone()).collect();
        let serials: Vec<String> = found.iter().map(|r| r.serial.clone()).collect();
        let outcomes = self.erase_all(found).await;
        self.let_go(&paths).await;
        let left = |k: &&Known| k.recorded() == Some(array) && !is_planned(k);
        let told = |k: &Known| {
            let serial = k.about.as_ref().map(|about| about.serial.as_str()).unwrap_or_default();
            format!("{} (serial {serial})", k.path)
        };
        let left = self.inventory().iter().filter(left).map(told).collect();
        let mut erased = Erased { left, ..Erased::default() };
        for ((path, serial), outcome) in paths.into_iter().zip(serials).zip(outcomes) {
            match outcome {
                None => erased.serials.push(serial),
                Some(problem) => erased.problems.push(format!("{path}: {problem}")),
            }
        }
        Ok(erased)
    }

    /// Erases the records of a drive that no running array counts on, what is foreign only if that
    /// is said. Answers with what was on it.
    pub(crate) async fn wipe_drive(&self, request: &view::WipeDrive) -> Result<view::Wiped, Error> {
        let stranger = || failure::has_stranger(&request.drive.path);
        let path = self.inventory().at(&request.drive.path).map(|known| known.path.clone());
        let path = [path.ok_or_else(stranger)?];
        self.reserve_free(&path, RESERVE).await?;
        let problem = self.look_at_own(&path).await.into_iter().next();
        let held = match problem {
            Some(problem) => Err(not_opened(&problem)),
            None => {
                let refused = self.refuse_anothers(&path).await;
                refused.and_then(|()| may_wipe(&self.inventory(), &path[0], request))
            }
        };
        let (drive, held) = match held {
            Ok(held) => held,
            Err(error) => {
                self.give_up(&path);
                return Err(error);
            }
        };
        let outcome = self.erase_all(vec![drive]).await.pop().flatten();
        self.let_go(&path).await;
        self.tell_absent().await;
        match outcome {
            None => Ok(view::Wiped { done: true, held }),
            Some(problem) => Err(Error::new(&say::WIPE_FAILED, &[&path[0], &problem])),
        }
    }

    /// Erases the records of drives, all at once; for each why it could not be. One that takes too
    /// long goes on, and its drive stays reserved until it has ended.
    async fn erase_all(&self, drives: Vec<DriveRef<SharedDrive>>) -> Vec<Option<String>> {
        let erase = |reference: DriveRef<SharedDrive>| {
            let under_way = self.inventory().begin_erase(&reference.path);
            move || {
                let outcome = probe::erase(&reference.shared);
                // What is about it ends before that is told.
                drop((reference, under_way));
                outcome
            }
        };
        let done = look::within(look::ERASE, drives.into_iter().map(erase).collect()).await;
        let problem = |outcome: Option<Result<(), io::DriveError>>| match outcome {
            Some(outcome) => outcome.err().map(|error| error.to_string()),
            None => Some(format!("no answer within {} s", look::ERASE.as_secs())),
        };
        done.into_iter().map(problem).collect()
    }
}

/// A drive that may be erased, and what is on it.
fn may_wipe(
    inventory: &Inventory,
    path: &str,
    request: &view::WipeDrive,
) -> Result<(DriveRef<SharedDrive>, Option<String>), Error> {
    let not_open = || not_open(path);
    let known = inventory.at(path).ok_or_else(not_open)?;
    known.is_meant(&request.drive)?;
    match known.content.foreign().filter(|_| !request.overwrite) {
        Some(what) => Err(probe::wipes_foreign(path, &what)),
        None => {
            let drive = known.reference().ok_or_else(not_open)?;
            Ok((drive, known.content.signature.clone()))
        }
    }
}

/// What became of an array's records.
#[derive(Default)]
pub struct Erased {
    /// Serial numbers of the drives that have none any more.
    pub serials: Vec<String>,
    /// What went wrong on others.
    pub problems: Vec<String>,
    /// Drives that hold a record still, as nobody was told before that it would be erased.
    pub left: Vec<String>,
}

/// What taking the drives of these known paths means, which are those that a request names; they
/// are open.
fn describe_taken(
    inventory: &Inventory,
    (paths, drives): (&[String], &[NamedDrive]),
    overwrite: &[NamedDrive],
    own: Option<Uuid>,
) -> Result<Vec<Taken>, Error> {
    let mut taken: Vec<Taken> = Vec::new();
    for (path, named) in paths.iter().zip(drives) {
        let not_open = || not_open(path);
        let known = inventory.at(path).ok_or_else(not_open)?;
        known.is_meant(named)?;
        let reference = known.reference().ok_or_else(not_open)?;
        let is_own = own.is_some() && known.recorded() == own;
        let foreign = known.content.holds().is_some() && !is_own;
        let slot = taken.len() as u16;
        let plan = convert::planned(slot, known, &reference.shared, foreign);
        taken.push(Taken { reference, plan });
    }
    for named in overwrite {
        let at = drives.iter().position(|drive| drive == named);
        match at.and_then(|at| taken.get_mut(at)) {
            Some(named) => named.plan.refused = false,
            None => return Err(names::overwrites_other(&named.path)),
        }
    }
    Ok(taken)
}

pub(crate) fn not_looked_up(paths: &[String]) -> Error {
    Error::new(&say::PATHS_HANG, &[&paths.join(", ")])
}

pub(crate) fn not_open(path: &str) -> Error {
    Error::new(&say::DRIVE_NOT_OPEN, &[&path])
}

/// What is said of a drive that can't be looked at.
pub fn told(error: &LookError) -> Error {
    match error {
        LookError::Open(error) => failure::not_opened(error),
        LookError::Silent(path) => {
            Error::new(&say::DRIVE_SILENT, &[&path.display(), &look::LOOK.as_secs()])
        }
    }
}

fn not_opened(error: &LookError) -> Error {
    match error {
        LookError::Open(OpenError::InUse { .. }) => {
            told(error).advise("use another drive, or unmount or stop what uses this one")
        }
        _ => told(error),
    }
}

/// Refuses a drive that a running array or another request has.
fn check_free(inventory: &Inventory, path: &str, places: &Places) -> Result<(), Error> {
    if let Some(place) = places.in_use(path) {
        return Err(Error::new(&say::DRIVE_OF_ARRAY, &[&path, &place.slot, &place.array]));
    }
    if inventory.at(path).is_some_and(|known| known.is_reserved()) {
        return Err(being_used(path));
    }
    Ok(())
}

pub(crate) fn being_used(path: &str) -> Error {
    Error::new(&say::DRIVE_RESERVED, &[&path])
}

fn refuse_foreign(taken: &[Taken]) -> Result<(), Error> {
    match taken.iter().find(|t| t.plan.refused) {
        None => Ok(()),
        Some(Taken { plan, .. }) => Err(holds_foreign(plan)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookups_that_hang_leave_room_for_others() {
        let mut all = Lookups::default();
        let hung =
            [Lookup::Configured, Lookup::Stamps].map(|kind| all.begin(kind).expect("begins"));
        assert!(all.begin(Lookup::Configured).is_none() && all.begin(Lookup::Stamps).is_none());
        let requests: Vec<_> = (0..LOOKUPS).filter_map(|_| all.begin(Lookup::Request)).collect();
        assert_eq!(requests.len(), LOOKUPS);
        assert!(all.begin(Lookup::Request).is_none() && all.begin(Lookup::Patterns).is_none());
        drop(requests);
        assert!(all.begin(Lookup::Patterns).is_some(), "the other may end yet");
        let [configured, _stamps] = hung;
        configured.store(true, Ordering::Release);
        assert!(all.begin(Lookup::Patterns).is_none() && all.begin(Lookup::Request).is_some());
        drop(configured);
        assert!(all.begin(Lookup::Patterns).is_some() && all.begin(Lookup::Configured).is_some());
        assert!(all.begin(Lookup::Stamps).is_none());
    }
}
