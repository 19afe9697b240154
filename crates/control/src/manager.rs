//! What the daemon does for its clients: arrays, and the drives they are made of.
//!
//! Purpose: checks what only the control plane can see (paths, foreign content, which drive is
//! whose), then asks the engine; the engine's answer is final.
//!
//! Invariants
//! - No drive that holds anything known is given to the engine to be overwritten unless the
//!   request names it, and none that a running array uses, named or not (D11).
//! - Drives are reserved from the check to the engine's answer, so that of two requests for one
//!   drive the second is refused.

use crate::api::{self, Error};
use crate::convert;
use crate::data::Data;
use crate::exports::Exports;
use crate::inventory::{self, Inventory, Known};
use crate::pattern;
use crate::probe;
use drives::{OpenError, SharedDrive};
use engine::manage::command::{
    ArrayStatus, DriveRef, ManageError, NewArray, Request, StartOptions,
};
use layout::{Layout, Level};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use units::{Slot, Uuid};

/// The control plane's state.
pub struct Manager {
    pub(crate) data: Data,
    pub(crate) exports: tokio::sync::Mutex<Exports>,
    inventory: Mutex<Inventory>,
    patterns: Vec<String>,
    /// Why arrays that were found do not run.
    problems: Mutex<BTreeMap<Uuid, String>>,
    ready: AtomicBool,
}

/// Array and slot by the path of a drive in use.
type Used = BTreeMap<String, (String, u16)>;

impl Manager {
    /// Knows nothing yet but where drives may be.
    pub fn new(data: Data, patterns: Vec<String>) -> Self {
        Self {
            exports: tokio::sync::Mutex::new(Exports::new(data.clone())),
            data,
            inventory: Mutex::default(),
            patterns,
            problems: Mutex::default(),
            ready: AtomicBool::new(false),
        }
    }

    pub(crate) fn inventory(&self) -> MutexGuard<'_, Inventory> {
        self.inventory.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn problems(&self) -> MutexGuard<'_, BTreeMap<Uuid, String>> {
        self.problems.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// All running arrays.
    pub(crate) async fn running(&self) -> Result<Vec<ArrayStatus>, Error> {
        self.data.ask(Request::Status).await
    }

    /// Opens what the configuration names and is not known yet; looks again at idle drives.
    /// Answers with what can't be opened.
    fn scan(&self, used: &Used) -> Vec<OpenError> {
        let mut inventory = self.inventory();
        inventory.look_again(|path| !used.contains_key(path));
        let mut problems = Vec::new();
        for path in self.patterns.iter().flat_map(|pattern| pattern::expand(pattern)) {
            let known = inventory.find(&path.to_string_lossy());
            if known.is_none_or(|known| known.drive.is_none() && !used.contains_key(&known.path))
                && let Err(problem) = inventory.open(&path, false)
            {
                problems.push(problem);
            }
        }
        problems
    }

    /// Start-up: opens all drives, starts every array found on them, and their exports. Answers
    /// with what went wrong, which is not fatal.
    pub async fn start(&self) -> Vec<Error> {
        let missing = |error: OpenError| {
            Error::failed(error.to_string(), "check the path in the configuration's drives")
        };
        let mut problems: Vec<Error> = self.scan(&Used::new()).into_iter().map(missing).collect();
        let found = convert::found_records(&self.inventory(), |_| true);
        for (uuid, record) in found {
            match self.assemble_found(uuid, StartOptions::default()).await {
                Ok(status) => problems.extend(self.start_exports(&status).await),
                Err(error) => problems.push(Error {
                    error: format!("array \"{}\" can't be started: {}", record.name, error.error),
                    ..error
                }),
            }
        }
        self.ready.store(true, Ordering::Release);
        problems
    }

    /// Stops every array cleanly. Answers with what went wrong.
    pub async fn shut_down(&self) -> Vec<Error> {
        let running = match self.running().await {
            Ok(running) => running,
            Err(error) => return vec![error],
        };
        let mut problems = Vec::new();
        for status in running {
            problems.extend(self.stop_running(&status).await.err());
        }
        problems
    }

    /// Everything at a glance.
    pub async fn status(&self) -> Result<api::Status, Error> {
        Ok(api::Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            cores: self.data.cores(),
            ready: self.ready.load(Ordering::Acquire),
            arrays: self.arrays().await?,
        })
    }

    /// All arrays, running and found.
    pub async fn arrays(&self) -> Result<Vec<api::Array>, Error> {
        let running = self.running().await?;
        let exports = self.exports.lock().await;
        let inventory = self.inventory();
        let mut arrays: Vec<_> =
            running.iter().map(|status| convert::array(status, &inventory, &exports)).collect();
        let problems = self.problems();
        for (uuid, record) in convert::found_records(&inventory, |k| !k.reserved) {
            if !running.iter().any(|status| status.uuid == uuid) {
                arrays.push(convert::found(&record, &inventory, problems.get(&uuid).cloned()));
            }
        }
        arrays.sort_by(|a, b| (&a.name, &a.uuid).cmp(&(&b.name, &b.uuid)));
        Ok(arrays)
    }

    /// One array, by name or identity.
    pub async fn array(&self, name: &str) -> Result<api::Array, Error> {
        let arrays = self.arrays().await?;
        let found = arrays.into_iter().find(|array| array.name == name || array.uuid == name);
        found.ok_or_else(|| unknown_array(name))
    }

    /// All drives.
    pub async fn drives(&self) -> Result<Vec<api::Drive>, Error> {
        let used = convert::in_use(&self.running().await?);
        // What can't be opened is listed as unusable.
        let _ = self.scan(&used);
        let inventory = self.inventory();
        let describe = |k: &Known| inventory::describe(k, used.get(&k.path).cloned());
        Ok(inventory.iter().map(describe).collect())
    }

    /// The running array of this name.
    pub(crate) async fn named(&self, name: &str) -> Result<ArrayStatus, Error> {
        let mut running = self.running().await?;
        let is_it = |s: &ArrayStatus| s.name == name || s.uuid.to_string() == name;
        if let Some(at) = running.iter().position(is_it) {
            return Ok(running.swap_remove(at));
        }
        self.array(name).await?;
        Err(Error::failed(
            format!("array \"{name}\" does not run"),
            format!("start it with: palisade array assemble {name}"),
        ))
    }

    pub(crate) async fn describe(&self, status: &ArrayStatus) -> api::Array {
        let exports = self.exports.lock().await;
        convert::array(status, &self.inventory(), &exports)
    }

    /// Opens drives that shall be overwritten, and checks that they may be. `own` is the array
    /// whose old drives need no further word. With `reserve`, they are reserved on success.
    fn take(
        &self,
        paths: &[String],
        overwrite: &[String],
        own: Option<Uuid>,
        used: &Used,
        reserve: bool,
    ) -> Result<Vec<Taken>, Error> {
        let mut inventory = self.inventory();
        let mut taken: Vec<Taken> = Vec::new();
        for path in paths {
            let in_use = inventory.find(path).is_some_and(|k| used.contains_key(&k.path));
            let known = inventory.open(Path::new(path), in_use).map_err(not_opened)?;
            check_free(known, used)?;
            if taken.iter().any(|t| t.reference.path == known.path) {
                return Err(Error::usage(
                    format!("{path} is named twice"),
                    "name each drive once, by one path",
                ));
            }
            let Some(reference) = known.reference() else {
                return Err(Error::failed(format!("{path} is not open"), "check the drive"));
            };
            let recorded = known.content.record.as_ref().map(|record| record.array);
            let is_own = own.is_some() && recorded == own;
            let foreign = known.content.signature.is_some() && !is_own;
            let slot = taken.len() as u16;
            let plan = convert::planned(slot, known, &reference.shared, foreign);
            taken.push(Taken { reference, plan });
        }
        for path in overwrite {
            let known = inventory.find(path).map(|known| known.path.clone());
            match taken.iter_mut().find(|t| known.as_ref() == Some(&t.plan.path)) {
                Some(named) => named.plan.refused = false,
                None => {
                    return Err(Error::usage(
                        format!("{path} is to be overwritten but is none of the drives"),
                        "name with --overwrite only drives of this request",
                    ));
                }
            }
        }
        if reserve {
            refuse_foreign(&taken)?;
            inventory.reserve(&paths_of(&taken), true);
        }
        Ok(taken)
    }

    /// Lets drives go that were reserved, and looks at them again if nobody uses them.
    async fn let_go(&self, paths: &[String]) {
        self.inventory().reserve(paths, false);
        if let Ok(running) = self.running().await {
            let used = convert::in_use(&running);
            self.inventory().look_again(|path| !used.contains_key(path));
        }
    }

    /// Makes an array.
    pub async fn create(&self, request: &api::CreateArray) -> Result<api::Array, Error> {
        let level = parse_level(&request.level)?;
        let running = self.running().await?;
        self.check_name(&request.name, &running)?;
        let used = convert::in_use(&running);
        let taken = self.take(&request.drives, &request.overwrite, None, &used, false)?;
        // What can't be made is said before anything is asked to be overwritten.
        plan(request, level, &taken)?;
        drop(taken);
        let taken = self.take(&request.drives, &request.overwrite, None, &used, true)?;
        let paths = paths_of(&taken);
        let new = NewArray {
            name: request.name.clone(),
            level,
            strip_bytes: request.strip_bytes,
            block_bytes: request.block_bytes,
        };
        let references: Vec<DriveRef<SharedDrive>> =
            taken.into_iter().map(|t| t.reference).collect();
        let outcome = self.data.ask(|reply| Request::Create(new, references, reply)).await;
        self.let_go(&paths).await;
        Ok(self.describe(&outcome?).await)
    }

    /// What making an array would do.
    pub async fn plan(&self, request: &api::CreateArray) -> Result<api::Plan, Error> {
        let level = parse_level(&request.level)?;
        let running = self.running().await?;
        self.check_name(&request.name, &running)?;
        let used = convert::in_use(&running);
        let taken = self.take(&request.drives, &request.overwrite, None, &used, false)?;
        plan(request, level, &taken)
    }

    fn check_name(&self, name: &str, running: &[ArrayStatus]) -> Result<(), Error> {
        if running.iter().any(|status| status.name == name) {
            return Err(ManageError::NameTaken(name.to_owned()).into());
        }
        Ok(())
    }

    /// Starts an array that does not run.
    pub async fn assemble(
        &self,
        name: &str,
        request: api::AssembleArray,
    ) -> Result<api::Array, Error> {
        let running = self.running().await?;
        if running.iter().any(|s| s.name == name || s.uuid.to_string() == name) {
            return Err(Error::failed(
                format!("array \"{name}\" runs already"),
                format!("see it with: palisade array show {name}"),
            ));
        }
        // What can't be opened is as good as missing; the engine decides what that means.
        let _ = self.scan(&convert::in_use(&running));
        let records = convert::found_records(&self.inventory(), |k| !k.reserved);
        let mut found = records.into_iter().filter(|(uuid, record)| {
            (record.name == name || uuid.to_string() == name)
                && !running.iter().any(|s| s.uuid == *uuid)
        });
        let (uuid, _) = found.next().ok_or_else(|| unknown_array(name))?;
        if let Some((other, _)) = found.next() {
            return Err(Error::refused(
                format!("two arrays are called \"{name}\": {uuid} and {other}"),
                "name the one you mean by its UUID",
            ));
        }
        let api::AssembleArray { start_degraded, accept_loss } = request;
        let options = StartOptions { start_degraded, accept_loss };
        let status = self.assemble_found(uuid, options).await?;
        // Exports that can't be served are listed with their problem.
        let _ = self.start_exports(&status).await;
        Ok(self.describe(&status).await)
    }

    async fn assemble_found(
        &self,
        uuid: Uuid,
        options: StartOptions,
    ) -> Result<ArrayStatus, Error> {
        let (references, paths) = {
            let mut inventory = self.inventory();
            let mine = |k: &&Known| {
                !k.reserved && k.content.record.as_ref().is_some_and(|r| r.array == uuid)
            };
            let references: Vec<_> =
                inventory.iter().filter(mine).filter_map(Known::reference).collect();
            let paths: Vec<String> = references.iter().map(|r| r.path.clone()).collect();
            inventory.reserve(&paths, true);
            (references, paths)
        };
        let name = Some(uuid.to_string());
        let outcome =
            self.data.ask(|reply| Request::Assemble(name, references, options, reply)).await;
        self.inventory().reserve(&paths, false);
        match outcome.map(|mut started| started.pop()) {
            Ok(Some(status)) => {
                self.problems().remove(&uuid);
                Ok(status)
            }
            Ok(None) => Err(ManageError::NothingFound.into()),
            Err(error) => {
                self.problems().insert(uuid, error.error.clone());
                Err(error)
            }
        }
    }

    /// Stops a running array.
    pub async fn stop(&self, name: &str) -> Result<(), Error> {
        let status = self.named(name).await?;
        self.stop_running(&status).await
    }

    async fn stop_running(&self, status: &ArrayStatus) -> Result<(), Error> {
        self.end_exports(status).await;
        let name = status.uuid.to_string();
        let outcome = self.data.ask(|reply| Request::Stop(name, reply)).await;
        self.let_go(&[]).await;
        outcome
    }

    /// Deletes an array, running or found: its records are erased.
    pub async fn delete(&self, name: &str) -> Result<(), Error> {
        let array = self.array(name).await?;
        if array.state == api::ArrayState::Stopped {
            return self.delete_found(&array).await;
        }
        let status = self.named(name).await?;
        self.end_exports(&status).await;
        let uuid = status.uuid.to_string();
        let outcome = self.data.ask(|reply| Request::Delete(uuid, reply)).await;
        self.let_go(&[]).await;
        outcome
    }

    async fn delete_found(&self, array: &api::Array) -> Result<(), Error> {
        let drives: Vec<(String, SharedDrive)> = {
            let inventory = self.inventory();
            let mine = |k: &&Known| {
                let record = k.content.record.as_ref();
                !k.reserved && record.is_some_and(|r| r.array.to_string() == array.uuid)
            };
            let open = |k: &Known| Some((k.path.clone(), k.drive.clone()?));
            inventory.iter().filter(mine).filter_map(open).collect()
        };
        for (path, drive) in &drives {
            probe::erase(drive).map_err(|error| {
                Error::failed(format!("{path}: {error}"), "check the drive, or leave it out")
            })?;
        }
        drop(drives);
        self.let_go(&[]).await;
        Ok(())
    }

    /// Takes a drive out of service.
    pub async fn fail(&self, name: &str, drive: &str) -> Result<api::Array, Error> {
        let array = self.named(name).await?.uuid.to_string();
        let known = self.inventory().find(drive).map(|known| known.path.clone());
        let drive = known.unwrap_or_else(|| drive.to_owned());
        let status = self.data.ask(|reply| Request::Fail(array, drive, reply)).await?;
        Ok(self.describe(&status).await)
    }

    /// Puts another drive in a slot.
    pub async fn replace(
        &self,
        name: &str,
        request: &api::ReplaceDrive,
    ) -> Result<api::Array, Error> {
        let array = self.named(name).await?;
        let used = convert::in_use(&self.running().await?);
        let with = [request.with.clone()];
        let mut taken = self.take(&with, &request.overwrite, Some(array.uuid), &used, true)?;
        let paths = paths_of(&taken);
        let Some(Taken { reference, .. }) = taken.pop() else {
            return Err(Error::usage("no drive is named", "name one with --with PATH"));
        };
        let (uuid, slot) = (array.uuid.to_string(), Slot(request.slot));
        let ask = |reply| Request::Replace(uuid, slot, reference, reply);
        let outcome = self.data.ask(ask).await;
        self.let_go(&paths).await;
        Ok(self.describe(&outcome?).await)
    }

    /// Starts a scrub.
    pub async fn scrub(&self, name: &str, repair: bool) -> Result<api::Array, Error> {
        let array = self.named(name).await?.uuid.to_string();
        let status = self.data.ask(|reply| Request::Scrub(array, repair, reply)).await?;
        Ok(self.describe(&status).await)
    }
}

/// A drive that a request takes.
struct Taken {
    reference: DriveRef<SharedDrive>,
    plan: api::PlannedDrive,
}

fn paths_of(taken: &[Taken]) -> Vec<String> {
    taken.iter().map(|t| t.reference.path.clone()).collect()
}

fn unknown_array(name: &str) -> Error {
    Error::failed(format!("no array is called \"{name}\""), "list them with: palisade array list")
}

fn parse_level(text: &str) -> Result<Level, Error> {
    text.parse().map_err(|error: layout::NotLevel| {
        Error::usage(format!("\"{text}\": {error}"), "name one of these levels")
    })
}

fn not_opened(error: OpenError) -> Error {
    let text = error.to_string();
    match error {
        OpenError::InUse { .. } => Error::refused(text, "take another drive, or free this one"),
        _ => Error::failed(text, "name an existing file or block device"),
    }
}

/// Refuses a drive that a running array or another request has.
fn check_free(known: &Known, used: &Used) -> Result<(), Error> {
    if let Some((array, slot)) = used.get(&known.path) {
        return Err(Error::refused(
            format!("{} is in use: slot {slot} of array \"{array}\"", known.path),
            "take another drive",
        ));
    }
    if known.reserved {
        return Err(Error::refused(
            format!("{} is being used by another request", known.path),
            "wait for it, or take another drive",
        ));
    }
    Ok(())
}

fn refuse_foreign(taken: &[Taken]) -> Result<(), Error> {
    match taken.iter().find(|t| t.plan.refused) {
        None => Ok(()),
        Some(Taken { plan, .. }) => Err(Error::refused(
            format!(
                "{} (serial {}) holds {}",
                plan.path,
                plan.serial,
                plan.destroys.as_deref().unwrap_or("something")
            ),
            format!("take another drive, or destroy it with: --overwrite {}", plan.path),
        )),
    }
}

/// What making the array would give; fails where the drives can't make it.
fn plan(request: &api::CreateArray, level: Level, taken: &[Taken]) -> Result<api::Plan, Error> {
    let drives = taken.iter().map(|t| &t.reference);
    let sizes = drives.clone().map(|r| format::data_bytes(r.shared.info().bytes, !r.is_file));
    let count = taken.len() as u16;
    let layout = Layout::new(level, count, request.strip_bytes, sizes.min().unwrap_or(0))
        .map_err(ManageError::from)?;
    let largest = drives.map(|r| r.shared.info().block_bytes).max().unwrap_or(512);
    let block_bytes = request.block_bytes.unwrap_or(largest);
    if largest > block_bytes {
        return Err(ManageError::BlockSize { drive: largest, array: block_bytes }.into());
    }
    if !matches!(block_bytes, 512 | 4096) {
        return Err(Error::usage(
            format!("a block of {block_bytes} bytes is not possible"),
            "say --block 512 or --block 4096",
        ));
    }
    Ok(api::Plan {
        dry_run: true,
        name: request.name.clone(),
        level: level.to_string(),
        strip_bytes: request.strip_bytes,
        block_bytes,
        size_bytes: layout.array_bytes(),
        drives: taken.iter().map(|t| t.plan.clone()).collect(),
    })
}
