//! Volumes and exports: what the daemon does for its clients with them.

use crate::address;
use crate::connection::Target;
use crate::convert;
use crate::exports::{self, Exports};
use crate::failure;
use crate::holds::Held;
use crate::machines::device;
use crate::manager::Manager;
use crate::names;
use crate::nvme::VolumeKey;
use crate::services::Left;
use crate::shares::{self, has_none, shared_of};
use crate::{fc, iscsi};
use core::fmt::Display;
use engine::manage::command::{ArrayStatus, ExportStatus, ManageError, NewSize, Request, Shrink};
use format::{ArrayRecord, ExportAddress, IscsiExport, Listener, NvmeExport};
use redfish::messages as say;
use redfish::service::uri;
use redfish::view::{self, Error};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use tokio::sync::MutexGuard;
use units::Uuid;

/// How long a start waits for the lookup of names, all of them together, before it is over. What
/// needs no lookup is served meanwhile.
const LOOKUP_LIMIT: Duration = Duration::from_secs(1);

/// What is recorded, while nobody changes exports.
pub(crate) struct Recorded<'a> {
    /// Held meanwhile.
    pub exports: MutexGuard<'a, Exports>,
    /// The array that is asked for. It runs.
    pub array: ArrayStatus,
    /// All arrays that run.
    pub running: Vec<ArrayStatus>,
    /// Those that were found, and don't.
    pub found: BTreeMap<Uuid, ArrayRecord>,
}

impl Manager {
    /// What is recorded around an array that runs; nobody changes exports until that is dropped.
    pub(crate) async fn recorded(&self, array: &str) -> Result<Recorded<'_>, Error> {
        let named = self.running_array(array).await?;
        if self.returns.is_waiting(named.uuid) {
            return Err(failure::told(&ManageError::State(named.state)));
        }
        let exports = self.exports.lock().await;
        let running = self.running().await?;
        let Some(array) = running.iter().find(|array| array.id == named.id).cloned() else {
            return Err(Error::new(&say::ARRAY_STOPPED_MEANWHILE, &[&named.name]));
        };
        if self.holds.is_held(&stops(&array)) {
            return Err(Error::new(&say::ARRAY_STOPPED_MEANWHILE, &[&named.name]));
        }
        let found = self.not_running(&running);
        Ok(Recorded { exports, array, running, found })
    }

    /// An array is about to stop: from here on it gets no exports, until what is returned is
    /// dropped.
    ///
    /// # Errors
    /// It has shares.
    pub(crate) async fn is_to_stop(&self, array: &ArrayStatus) -> Result<Held<'_>, Error> {
        let held = self.holds.take(&stops(array), false).await;
        // Whoever was making one has recorded it when the lock is free.
        let exports = self.exports.lock().await;
        let running = self.running().await?;
        drop(exports);
        let now = running.iter().find(|own| own.uuid == array.uuid);
        now.map_or(Ok(()), |now| has_none(&now.name, &shares::recorded(now)))?;
        Ok(held)
    }

    /// Makes a volume.
    pub(crate) async fn make_volume(
        &self,
        request: &view::CreateVolume,
    ) -> Result<view::Volume, Error> {
        let array = self.running_array(&request.array).await?;
        let (name, bytes) = (request.name.clone(), request.size_bytes);
        let ask = |uuid, reply| Request::VolumeCreate(uuid, name, bytes, reply);
        Ok(convert::volume(&array.name, &self.ask_of(&array, ask).await?))
    }

    /// Changes a volume's size; to less only if the request says so.
    pub(crate) async fn size_volume(
        &self,
        array: &str,
        volume: &str,
        request: view::ResizeVolume,
    ) -> Result<view::Volume, Error> {
        let array = self.running_array(array).await?;
        let view::ResizeVolume { size_bytes: bytes, shrink } = request;
        let uuid = volume_uuid(&array, volume)?;
        let known = array.volumes.iter().find(|known| known.uuid == uuid);
        // Whatever is asked of the engine between this and the request.
        if let (Some(shared), Some(known)) = (shared_of(&array, uuid), known)
            && bytes < known.bytes
        {
            return Err(Error::new(&say::SHARED_SHRINK, &[&shared.volume]));
        }
        let shrink = match (shrink, known) {
            (true, Some(known)) => Shrink::From(known.bytes),
            _ => Shrink::Never,
        };
        let size = NewSize { bytes, shrink };
        let ask = |array, reply| Request::VolumeResize(array, uuid.into(), size, reply);
        let status = self.ask_of(&array, ask).await?;
        let key = VolumeKey { array: array.id, volume: status.uuid };
        self.exports.lock().await.resized(key, status.bytes);
        self.standing.services().resized(status.uuid, status.bytes).await;
        Ok(convert::volume(&array.name, &status))
    }

    /// Deletes a volume.
    pub(crate) async fn remove_volume(&self, array: &str, volume: &str) -> Result<(), Error> {
        let array = self.running_array(array).await?;
        let uuid = volume_uuid(&array, volume)?;
        if let Some(shared) = shared_of(&array, uuid) {
            return Err(shared.refuses(&say::VOLUME_SHARED));
        }
        let ask = |array, reply| Request::VolumeDelete(array, uuid.into(), reply);
        let export = array.exports.iter().find(|export| export.volume == uuid);
        let outcome = self.ask_of(&array, ask).await;
        if outcome.is_ok() {
            self.data.ledger().forget_volume(uuid);
        }
        outcome.map_err(|error| match export {
            Some(export) => {
                let id = convert::export_id(&array.name, export.id);
                Error { hint: error.hint.replace("delete ID", &format!("delete {id}")), ..error }
            }
            None => error,
        })
    }

    /// Serves a volume. The address is taken before the export is recorded, so that an address
    /// that can't be had is an error of this request.
    pub(crate) async fn make_export(
        &self,
        request: &view::CreateExport,
    ) -> Result<view::Export, Error> {
        check_export(request)?;
        // From here to the record nobody else makes an export.
        let Recorded { mut exports, array, running, found } = self.recorded(&request.array).await?;
        let array = &array;
        let recorded = recorded(&running, &found);
        let address = wanted(request, array, &recorded, &exports)?;
        let volume = volume_uuid(array, &request.volume)?;
        if let Some(shared) = shared_of(array, volume) {
            return Err(shared.refuses(&say::EXPORT_OF_SHARED));
        }
        if address.is_others() {
            self.standing.services().check().await?;
        }
        is_free(&address, volume, &recorded)?;
        let same = |e: &&ExportStatus| e.volume == volume && is_same(&e.address, &address);
        if let Some(existing) = array.exports.iter().find(same) {
            let id = convert::export_id(&array.name, existing.id);
            if exports.serves(&id) || !is_alike(&existing.address, &address) {
                return Err(is_exported(&array.name, existing, &id));
            }
            // Who asks waits for names; what can't be had is told by what follows.
            let _ = exports.listen(&existing.address).await;
            self.keep_secret(request, array, existing).await?;
            self.serve(&mut exports, array, existing).await?;
            if address.is_others() {
                drop(exports);
                self.standing.services().renew(&id);
                self.standing.services().served(&id).await?;
            }
            return Ok(self.described(array, existing));
        }
        let address = exports.listen(&address).await?;
        let recorded = address.clone();
        let ask = |uuid, reply| Request::ExportCreate(uuid, volume.into(), recorded, reply);
        match self.ask_of(array, ask).await {
            Ok(status) => {
                if let Err(why) = self.keep_secret(request, array, &status).await {
                    let id = status.id;
                    self.ask_of(array, |uuid, reply| Request::ExportDelete(uuid, id, reply))
                        .await?;
                    return Err(why);
                }
                self.serve(&mut exports, array, &status).await?;
                drop(exports);
                if status.address.is_others() {
                    self.served_or_undone(array, &status).await?;
                }
                Ok(self.described(array, &status))
            }
            Err(error) => {
                exports.close_if_unused(&address).await;
                Err(error)
            }
        }
    }

    /// Keeps the secret that a request gives, of the export that it makes.
    async fn keep_secret(
        &self,
        request: &view::CreateExport,
        array: &ArrayStatus,
        status: &ExportStatus,
    ) -> Result<(), Error> {
        let Some(secret) = request.iscsi.as_ref().and_then(|iscsi| iscsi.secret.clone()) else {
            return Ok(());
        };
        let kept = self.chap.set(key(array, status), secret).await;
        kept.map_err(|why| Error::new(&say::CHAP_NOT_KEPT, &[&why]))
    }

    /// Serves an export of an array that runs.
    async fn serve(
        &self,
        exports: &mut Exports,
        array: &ArrayStatus,
        status: &ExportStatus,
    ) -> Result<(), Error> {
        let target = target(array, status);
        if status.address.is_others() {
            let secret = match &status.address {
                ExportAddress::Iscsi(IscsiExport { user: Some(_), .. }) => {
                    self.chap.of(&key(array, status)).map(Some)
                }
                _ => Ok(None),
            };
            self.standing.services().want(array, status, target, secret);
            return Ok(());
        }
        let device = device(array, status.volume);
        exports.add(&name(array, status), (target, device), &status.address).await
    }

    /// Waits for an export that was just recorded, and that this machine itself is to use. One that
    /// can't be had is forgotten again.
    async fn served_or_undone(
        &self,
        array: &ArrayStatus,
        status: &ExportStatus,
    ) -> Result<(), Error> {
        let id = convert::export_id(&array.name, status.id);
        let services = self.standing.services();
        let Err(why) = services.served(&id).await else { return Ok(()) };
        let number = status.id;
        let _exports = self.exports.lock().await;
        self.ask_of(array, |uuid, reply| Request::ExportDelete(uuid, number, reply)).await?;
        services.forget(&id);
        let own = key(array, status);
        self.chap.forget(|key| key == own).await;
        Err(why)
    }

    /// Has all exports of an array go that this machine itself uses, before that array stops.
    ///
    /// # Errors
    /// One is in use: all stay.
    pub(crate) async fn leave_exports(&self, array: &ArrayStatus) -> Result<(), Error> {
        let ids = |is: fn(&ExportAddress) -> bool| {
            let own = array.exports.iter().filter(move |status| is(&status.address));
            own.map(|status| convert::export_id(&array.name, status.id)).collect::<Vec<_>>()
        };
        let own = ids(ExportAddress::is_local);
        for id in &own {
            let outcome = self.standing.services().leave(id).await;
            if let Ok(Left::Busy(_)) | Err(_) = outcome {
                own.iter().for_each(|id| self.standing.services().stay(id));
            }
            in_use(id, outcome?)?;
        }
        for id in &own {
            self.standing.services().forget(id);
        }
        let targets = ids(|address| {
            let is_fc = matches!(address, ExportAddress::Fc(_) | ExportAddress::NvmeFc(_));
            is_fc || matches!(address, ExportAddress::Iscsi(_))
        });
        self.standing.services().rest(&targets).await;
        Ok(())
    }

    /// The daemon ends. File systems that are shared rest before, where they stand on what ends
    /// with it: what was written to them is on the drives then.
    pub(crate) async fn end_services(&self) {
        let services = self.standing.services();
        let running = self.running().await.unwrap_or_default();
        let all = running.iter().flat_map(|array| {
            let own = array.exports.iter().filter(|own| shares::export(&own.address).is_some());
            own.map(|own| convert::export_id(&array.name, own.id))
        });
        let all: Vec<String> = all.filter(|id| !services.is_ublk(id)).collect();
        services.rest(&all).await;
        services.end();
    }

    fn described(&self, array: &ArrayStatus, export: &ExportStatus) -> view::Export {
        let standing = (&self.standing, &self.standing.connections());
        convert::export(&array.name, export, standing)
    }

    /// Forgets an export: `ARRAY:NUMBER`. No command for it is under way then, so that its volume
    /// may be deleted next.
    pub(crate) async fn remove_export(&self, id: &str) -> Result<(), Error> {
        let wrong = || names::no_export(id);
        let (array, number) = id.rsplit_once(':').ok_or_else(wrong)?;
        let number: u32 = number.parse().map_err(|_| wrong())?;
        let array = self.running_array(array).await?;
        let Some(export) = array.exports.iter().find(|e| e.id == number) else {
            return Err(failure::told(&ManageError::NoExport(array.name, number)));
        };
        let volume = VolumeKey { array: array.id, volume: export.volume };
        let is_nvme = matches!(export.address, ExportAddress::NvmeTcp(_));
        let own = convert::export_id(&array.name, number);
        if export.address.is_others() {
            in_use(&own, self.standing.services().leave(&own).await?)?;
        }
        let mut exports = self.exports.lock().await;
        let ask = |uuid, reply| Request::ExportDelete(uuid, number, reply);
        let outcome = self.ask_of(&array, ask).await;
        if outcome.is_err() {
            self.standing.services().stay(&own);
        }
        outcome?;
        exports.remove(&own).await;
        let secret = key(&array, export);
        self.chap.forget(|key| key == secret).await;
        drop(exports);
        self.tell_absent().await;
        if is_nvme && !self.data.let_go(volume).await {
            return Err(Error::new(&say::EXPORT_LINGERS, &[&id, &array.name]));
        }
        Ok(())
    }

    /// Serves the recorded exports of an array that just started, wherever that can be now; names
    /// are looked up aside.
    pub(crate) async fn start_exports(&self, array: &ArrayStatus) {
        if self.returns.is_waiting(array.uuid) {
            return;
        }
        let mut exports = self.exports.lock().await;
        // What is shared may be another since.
        let running = self.running().await.unwrap_or_default();
        let array = running.iter().find(|own| own.id == array.id).unwrap_or(array);
        for status in &array.exports {
            // What can't be served is tried again, and then told.
            let _ = self.serve(&mut exports, array, status).await;
        }
    }

    /// Serves the recorded exports of an array that runs again, as soon as their names are looked
    /// up. What can't be served is listed with its problem.
    pub(crate) async fn serve_all(&self, array: &ArrayStatus) {
        self.start_exports(array).await;
        let _ = self.settle_exports(core::slice::from_ref(array)).await;
    }

    /// Serves what could not be served of arrays that just started, once all names are looked up or
    /// that takes too long; what can't be yet is answered, and left to
    /// [`Manager::retry_exports`].
    pub(crate) async fn settle_exports(&self, arrays: &[ArrayStatus]) -> Vec<Error> {
        let lookups = self.exports.lock().await.lookups();
        // Who is late is a problem below.
        let _ = tokio::time::timeout(LOOKUP_LIMIT, lookups.settled()).await;
        let mut problems = Vec::new();
        for array in arrays {
            for status in &array.exports {
                problems.extend(self.retry(array, status).await.and_then(Result::err));
            }
        }
        problems
    }

    /// Serves an export that could not be served. An export whose array is about to stop is waiting
    /// for nothing, and neither is one whose array waits for drives.
    async fn retry(&self, array: &ArrayStatus, status: &ExportStatus) -> Option<Result<(), Error>> {
        let mut exports = self.exports.lock().await;
        if self.returns.is_waiting(array.uuid) {
            return None;
        }
        exports.problem(&convert::export_id(&array.name, status.id))?;
        Some(self.serve(&mut exports, array, status).await)
    }

    /// Serves what could not be served yet, such as at an address that was busy; says of what it
    /// now can.
    pub(crate) async fn retry_exports(&self) {
        if self.standing.services().are_made() {
            // The next turn is soon.
            let _ = self.settle_shares().await;
        }
        let mut exports = self.exports.lock().await;
        if !exports.has_problems() {
            exports.forget_lookups();
            return;
        }
        drop(exports);
        // The next turn is soon.
        let Ok(running) = self.running().await else { return };
        for array in &running {
            for status in &array.exports {
                if let Some(Ok(())) = self.retry(array, status).await {
                    let (name, at) = (name(array, status), address::text(&status.address));
                    runtime::say(format_args!("palisade: {name} is now exported at {at}"));
                }
            }
        }
    }

    /// Ends what virtual machines have of an array whose exports are about to end.
    pub(crate) async fn end_machines(&self, array: &ArrayStatus) {
        let ids = array.exports.iter().map(|status| convert::export_id(&array.name, status.id));
        self.standing.end_machines(ids).await;
    }

    /// Ends all exports of an array that is about to stop; they stay recorded, and hosts may come
    /// back for them.
    pub(crate) async fn end_exports(&self, array: &ArrayStatus) {
        self.end_machines(array).await;
        let mut exports = self.exports.lock().await;
        for status in &array.exports {
            exports.suspend(&convert::export_id(&array.name, status.id)).await;
        }
    }

    /// An array has stopped that had these exports: whether they may come back depends on what is
    /// found of it.
    pub(crate) async fn exports_ended(&self, array: &ArrayStatus) {
        self.tell_absent().await;
        let exports = self.exports.lock().await;
        for status in &array.exports {
            let id = convert::export_id(&array.name, status.id);
            exports.forget(&id);
            // Of one that starts again by itself nothing is found meanwhile: it is known here.
            if !self.returns.is_waiting(array.uuid) {
                self.standing.services().forget(&id);
            }
        }
    }

    /// Tells the target which exports may come: those of arrays that were found and don't run, and
    /// those that can't be served yet. To be called when another may be one of these, or none any
    /// more.
    pub(crate) async fn tell_absent(&self) {
        // Who can't say what runs is stopping.
        let Ok(running) = self.running().await else { return };
        let found = self.not_running(&running);
        self.standing.services().set_absent(found.values());
        let all = found.values().flat_map(|record| &record.exports).map(|e| &e.address);
        let exports = self.exports.lock().await;
        let waits = |id: u32, array: &ArrayStatus| {
            exports.problem(&convert::export_id(&array.name, id)).is_some()
        };
        let waiting = running.iter().flat_map(|array| {
            array.exports.iter().filter(|e| waits(e.id, array)).map(|e| &e.address)
        });
        // Of those that start again by themselves no record may be found meanwhile.
        let stopped = self.returns.stopped();
        let stopped = stopped.iter().flat_map(|array| &array.exports).map(|e| &e.address);
        exports.set_absent(all.chain(waiting).chain(stopped));
    }
}

/// Whether a request says what it has to, in a possible form, whatever there is to be served.
///
/// # Errors
/// It does not, or not in such a form.
pub fn check_export(request: &view::CreateExport) -> Result<(), Error> {
    let view::CreateExport { nbd, nvme_tcp, subsystem, hosts, any_host, advertise, .. } = request;
    let says_of_nvme =
        subsystem.is_some() || !hosts.is_empty() || *any_host || !advertise.is_empty();
    let has_others = nbd.is_some() || !nvme_tcp.is_empty() || request.local.is_some();
    match (&request.iscsi, &request.fc) {
        (None, None) => {}
        (Some(iscsi), None) if !has_others && !says_of_nvme => return iscsi::check(iscsi),
        (None, Some(fc)) if !has_others && !says_of_nvme => return fc::check(fc),
        _ => return Err(Error::new(&say::EXPORT_PROTOCOL, &[])),
    }
    match (nbd, &nvme_tcp[..], &request.local) {
        (Some(nbd), [], None) if !says_of_nvme => address::parse(nbd).map(|_| ()),
        (None, [_, ..], None) => check_nvme(request),
        (None, [], Some(view::LocalExport::Device | view::LocalExport::Ublk)) if !says_of_nvme => {
            Ok(())
        }
        (None, [], Some(view::LocalExport::File(path))) if !says_of_nvme => {
            address::check_file(path)
        }
        (None, [], Some(view::LocalExport::VhostUser(path))) if !says_of_nvme => {
            address::check_socket(path)
        }
        _ => Err(Error::new(&say::EXPORT_PROTOCOL, &[])),
    }
}

/// Whether a request for an export over NVMe/TCP says what it has to, in a possible form.
fn check_nvme(request: &view::CreateExport) -> Result<(), Error> {
    let view::CreateExport { nvme_tcp, advertise, hosts, any_host, .. } = request;
    if hosts.is_empty() != *any_host {
        return Err(Error::new(&say::EXPORT_HOSTS, &[]));
    }
    if !advertise.is_empty() && advertise.len() != nvme_tcp.len() {
        return Err(Error::new(&say::ADVERTISE_COUNT, &[&advertise.len(), &nvme_tcp.len()]));
    }
    nvme_tcp.iter().try_for_each(|text| address::check_tcp(text, "--nvme-tcp"))?;
    advertise.iter().try_for_each(|text| address::check_advertise(text))?;
    let several: BTreeSet<&String> = nvme_tcp.iter().filter(|at| !at.ends_with(":0")).collect();
    let any_port = nvme_tcp.iter().filter(|at| at.ends_with(":0")).count();
    if several.len() + any_port < nvme_tcp.len() {
        return Err(Error::new(&say::ADDRESS_TWICE, &[]));
    }
    for name in hosts.iter().chain(&request.subsystem) {
        address::nqn(name)?;
    }
    Ok(())
}

/// All exports that are recorded, and the volume of each; those of arrays that don't run, too:
/// they may be served any time.
fn recorded(
    running: &[ArrayStatus],
    found: &BTreeMap<Uuid, ArrayRecord>,
) -> Vec<(ExportAddress, Uuid)> {
    let running = running.iter().flat_map(|array| &array.exports);
    let running = running.map(|export| (export.address.clone(), export.volume));
    let found = found.values().flat_map(|record| &record.exports);
    running.chain(found.map(|export| (export.address.clone(), export.volume))).collect()
}

fn no_volume(array: &ArrayStatus, volume: &str) -> Error {
    failure::told(&ManageError::NoVolume(array.name.clone(), volume.to_owned()))
}

/// A volume's UUID.
fn volume_uuid(array: &ArrayStatus, volume: &str) -> Result<Uuid, Error> {
    volume.parse().map_err(|_| no_volume(array, volume))
}

/// What a request to serve a volume asks for.
fn wanted(
    request: &view::CreateExport,
    array: &ArrayStatus,
    recorded: &[(ExportAddress, Uuid)],
    exports: &Exports,
) -> Result<ExportAddress, Error> {
    if let Some(iscsi) = &request.iscsi {
        return iscsi::wanted(iscsi);
    }
    if let Some(own) = &request.fc {
        return fc::wanted(own, recorded.iter().map(|(address, _)| address));
    }
    match (&request.nbd, &request.local) {
        (Some(nbd), _) => address::parse(nbd),
        (None, Some(view::LocalExport::Device)) => Ok(ExportAddress::Device),
        (None, Some(view::LocalExport::Ublk)) => Ok(ExportAddress::Ublk),
        (None, Some(view::LocalExport::File(path))) => Ok(ExportAddress::File(path.clone())),
        (None, Some(view::LocalExport::VhostUser(path))) => {
            Ok(ExportAddress::VhostUser(path.clone()))
        }
        (None, Some(view::LocalExport::Several)) => Err(Error::new(&say::EXPORT_PROTOCOL, &[])),
        (None, None) => Ok(ExportAddress::NvmeTcp(nvme_wanted(request, array, recorded, exports)?)),
    }
}

/// Whether an export that is asked for is one that is there, in all that its clients see.
fn is_alike(one: &ExportAddress, other: &ExportAddress) -> bool {
    match (one, other) {
        (ExportAddress::NvmeTcp(one), ExportAddress::NvmeTcp(other)) => {
            let NvmeExport { subsystem, listeners, hosts, .. } = one;
            (subsystem, listeners, hosts) == (&other.subsystem, &other.listeners, &other.hosts)
        }
        (ExportAddress::Iscsi(one), ExportAddress::Iscsi(other)) => {
            *one == IscsiExport { secret: one.secret, ..other.clone() }
        }
        (ExportAddress::Fc(one), ExportAddress::Fc(other)) => {
            (one.port, &one.initiators) == (other.port, &other.initiators)
        }
        _ => one == other,
    }
}

/// Whether two exports of one volume are one: those over NVMe are, since hosts take namespaces that
/// are known by the same for one namespace, those over iSCSI, as a target is a volume's, those at
/// ports by one protocol, as what a host reserves is a unit's or a subsystem's, and block devices
/// of this machine, which have one link.
fn is_same(one: &ExportAddress, other: &ExportAddress) -> bool {
    let is_alone = |address: &ExportAddress| match address {
        ExportAddress::NvmeTcp(_) => Some("nvme"),
        ExportAddress::Device | ExportAddress::Ublk => Some("device"),
        ExportAddress::Iscsi(_) => Some("target"),
        ExportAddress::Fc(_) => Some("unit"),
        ExportAddress::NvmeFc(_) => Some("subsystem"),
        _ => None,
    };
    one == other || is_alone(one).is_some() && is_alone(one) == is_alone(other)
}

/// Whether no other volume is to be at the path of a file, or of a machine's socket.
fn is_free(
    address: &ExportAddress,
    volume: Uuid,
    recorded: &[(ExportAddress, Uuid)],
) -> Result<(), Error> {
    let path_of = |address: &ExportAddress| match address {
        ExportAddress::File(path) | ExportAddress::VhostUser(path) => Some(path.clone()),
        _ => None,
    };
    let Some(path) = &path_of(address) else { return Ok(()) };
    let is_same = |other: &ExportAddress| {
        path_of(other).is_some_and(|other| Path::new(&other) == Path::new(path))
    };
    match recorded.iter().any(|(other, of)| *of != volume && is_same(other)) {
        true => Err(Error::new(&say::FILE_TAKEN, &[path])),
        false => Ok(()),
    }
}

/// Whether an export has gone.
fn in_use(id: &str, left: Left) -> Result<(), Error> {
    match left {
        Left::Gone => Ok(()),
        Left::Busy(why) => Err(Error::new(&say::EXPORT_IN_USE, &[&id, &why])),
    }
}

fn is_exported(array: &str, export: &ExportStatus, id: &str) -> Error {
    let volume = &export.volume_name;
    match &export.address {
        ExportAddress::NvmeTcp(nvme) => {
            let args: [&dyn Display; 5] = [&array, volume, &nvme.nsid, &nvme.subsystem, &id];
            Error::new(&say::ALREADY_IN_SUBSYSTEM, &args)
        }
        ExportAddress::Iscsi(_) => Error::new(&say::ALREADY_A_TARGET, &[&array, volume, &id]),
        ExportAddress::Fc(_) | ExportAddress::NvmeFc(_) => fc::already_there(array, volume, id),
        _ => Error::new(&say::ALREADY_EXPORTED, &[&array, volume]),
    }
}

/// The subsystem of a volume alone: its name is the volume's, whoever serves it (Base, section 4.5,
/// the form for those without a domain). So what a host has left to do for a volume that is gone
/// never comes to another.
fn own_subsystem(volume: Uuid) -> String {
    format!("nqn.2014-08.org.nvmexpress:uuid:{volume}")
}

/// What a request for an export over NVMe/TCP asks for, with the number that it gets.
fn nvme_wanted(
    request: &view::CreateExport,
    array: &ArrayStatus,
    recorded: &[(ExportAddress, Uuid)],
    exports: &Exports,
) -> Result<NvmeExport, Error> {
    let view::CreateExport { nvme_tcp, advertise, hosts, any_host, .. } = request;
    let volume = volume_uuid(array, &request.volume)?;
    if !array.volumes.iter().any(|known| known.uuid == volume) {
        return Err(no_volume(array, &request.volume));
    }
    let subsystem = request.subsystem.clone().unwrap_or_else(|| own_subsystem(volume));
    let recorded: BTreeMap<u32, Uuid> = recorded
        .iter()
        .filter_map(|(address, volume)| match address {
            ExportAddress::NvmeTcp(nvme) if nvme.subsystem == subsystem => {
                Some((nvme.nsid, *volume))
            }
            _ => None,
        })
        .collect();
    let nsid = exports.number(&subsystem, volume, &recorded);
    let listener = |(at, address): (usize, &String)| Listener {
        address: address.clone(),
        advertise: advertise.get(at).cloned(),
    };
    let listeners = nvme_tcp.iter().enumerate().map(listener).collect();
    let hosts = (!any_host).then(|| hosts.clone());
    let export = NvmeExport { subsystem, nsid, listeners, hosts };
    exports::check(&export)?;
    Ok(export)
}

/// What is held of an array that is about to stop.
fn stops(array: &ArrayStatus) -> String {
    format!("{} stops", array.uuid)
}

/// What an export's secret is kept under.
fn key(array: &ArrayStatus, status: &ExportStatus) -> String {
    let number = match &status.address {
        ExportAddress::Iscsi(own) => own.secret,
        _ => 0,
    };
    format!("{}.{number:06x}", uri::connection_id(&array.uuid.to_string(), status.id))
}

/// The name that NBD clients use.
fn name(array: &ArrayStatus, export: &ExportStatus) -> String {
    format!("{}/{}", array.name, export.volume_name)
}

pub(crate) fn target(array: &ArrayStatus, export: &ExportStatus) -> Target {
    Target {
        export: convert::export_id(&array.name, export.id),
        array: array.id,
        volume: export.volume,
    }
}
