//! Shares: how a request for one is carried out. What is recorded of them is [`crate::shares`]';
//! who mounts and serves them is `palisade services` ([`crate::services`]).
//!
//! | state of a volume                | left by                                                  |
//! |----------------------------------|----------------------------------------------------------|
//! | not shared                       | a share is recorded, with a file system to make, or none |
//! | shared, its file system not made | it is made, and recorded as made; or undone              |
//! | shared                           | a share comes, changes or goes, and that is recorded     |
//! | shared, the last share goes      | unmounted and forgotten; or somebody uses it: it stays   |
//!
//! Invariants
//! - What is wanted is recorded before anybody is asked for it. What can't be served is recorded as
//!   it was before, and answered with the words of who could not.
//! - A file system that may have been mounted is not made: that it is made is recorded before.
//! - A record is read and written while no other request changes exports. Shares of one volume
//!   change one after the other: what is undone is what was done.
//! - A share is recorded as long as its file system may be mounted.

use crate::convert;
use crate::failure;
use crate::manager::Manager;
use crate::served::{Recorded, target};
use crate::services::Left;
use crate::shares::{self, Shared, shared};
use engine::manage::command::{ArrayStatus, ExportStatus, ManageError, Request};
use format::{ExportAddress, Share, ShareExport};
use redfish::change::ShareChange;
use redfish::messages as say;
use redfish::view::{self, Error, UserChange};
use services::wire::{self, State};
use std::time::Duration;
use tokio::time::timeout;
use units::Uuid;

/// How long servers may take until a share can be had.
const STARTS: Duration = Duration::from_secs(90);
/// The same, where a file system is made before.
const MAKES: Duration = Duration::from_secs(660);
/// How long it is tried to undo what could not be served.
const UNDONE: Duration = Duration::from_secs(30);
/// How often, while nobody is there who could.
const AGAIN: Duration = Duration::from_secs(1);

impl Recorded<'_> {
    /// A volume of the array: its UUID, and what it is called: `ARRAY/VOLUME`.
    fn volume(&self, volume: &str) -> Result<(Uuid, String), Error> {
        let missing = || ManageError::NoVolume(self.array.name.clone(), volume.to_owned());
        let uuid: Option<Uuid> = volume.parse().ok();
        let own = self.array.volumes.iter().find(|own| Some(own.uuid) == uuid);
        let own = own.ok_or_else(|| failure::told(&missing()))?;
        Ok((own.uuid, format!("{}/{}", self.array.name, own.name)))
    }

    /// What is shared of a volume of the array, and its export.
    fn shared(&self, volume: Uuid) -> Option<(&ExportStatus, &ShareExport)> {
        let own = self.array.exports.iter().filter(|own| own.volume == volume);
        own.filter_map(|status| Some((status, shares::export(&status.address)?))).next()
    }

    /// What is shared of all other volumes, of arrays that don't run, too.
    fn others(&self, volume: Uuid) -> Vec<Shared> {
        let running = self.running.iter().flat_map(|array| {
            let own = array.exports.iter().filter(|own| own.volume != volume);
            own.filter_map(|own| shared(&array.name, &own.volume_name, &own.address))
        });
        let found = self.found.values().flat_map(|record| {
            record.exports.iter().filter(|own| own.volume != volume).filter_map(|own| {
                let name = record.volumes.iter().find(|known| known.uuid == own.volume);
                shared(&record.name, name.map_or("?", |known| &known.name), &own.address)
            })
        });
        running.chain(found).collect()
    }
}

impl Manager {
    /// Makes, changes or ends a share, or changes a user of shares.
    pub(crate) async fn make_share_change(&self, change: &ShareChange) -> Result<(), Error> {
        let _alone = self.holds.take(&format!("{} shares", change.volume()), true).await;
        match change {
            ShareChange::Create(request) => self.create_share(request).await,
            ShareChange::Set(request) => self.set_share(request).await,
            ShareChange::Delete { array, volume, name } => {
                self.end_share(array, volume, name).await
            }
            ShareChange::User(request) => self.set_share_user(request).await,
        }
    }

    async fn create_share(&self, request: &view::CreateShare) -> Result<(), Error> {
        shares::check_create(request)?;
        let ended = request.volume.parse().map(|volume| self.standing.services().has_ended(volume));
        if let Ok(ended) = ended
            && !ended.await
        {
            let why = "what was there of its volume before has not ended";
            return Err(Error::new(&say::SHARE_FAILED, &[&request.name, &why]));
        }
        let recorded = self.recorded(&request.array).await?;
        let (uuid, name) = recorded.volume(&request.volume)?;
        let before = recorded.shared(uuid);
        if before.is_none()
            && let Some(other) = recorded.array.exports.iter().find(|own| own.volume == uuid)
        {
            let id = convert::export_id(&recorded.array.name, other.id);
            return Err(Error::new(&say::SHARE_ON_EXPORTED, &[&name, &id]));
        }
        let own = before.map(|(_, own)| own);
        let wanted = shares::created(request, (&name, own), &recorded.others(uuid))?;
        self.standing.services().check().await?;
        let before = before.map(|(status, own)| (status.id, own.clone()));
        let array = &recorded.array;
        let status = match &before {
            Some((id, _)) => self.record(array, *id, &wanted).await?,
            None => {
                let address = ExportAddress::Shares(wanted.clone());
                let ask = |array, reply| Request::ExportCreate(array, uuid.into(), address, reply);
                let status = self.ask_of(array, ask).await?;
                let of = target(array, &status);
                self.standing.services().want(array, &status, of, Ok(None));
                status
            }
        };
        let array = array.clone();
        drop(recorded);
        let Err(why) = self.share_served(&array, &status, &request.name).await else {
            return Ok(());
        };
        match before {
            Some((_, before)) => self.undo(&array, (status.id, before)).await,
            None if self.undo_first(&array, status.id).await => {}
            None => {
                let name = &request.name;
                let stays = format!("{}; it stays until: palisade share delete {name}", why.error);
                return Err(Error::new(&say::SHARE_FAILED, &[name, &stays]));
            }
        }
        Err(why)
    }

    async fn set_share(&self, request: &view::SetShare) -> Result<(), Error> {
        let recorded = self.recorded(&request.array).await?;
        let (uuid, name) = recorded.volume(&request.volume)?;
        let missing = || Error::new(&say::NO_SHARE, &[&request.name]);
        let (status, own) = recorded.shared(uuid).ok_or_else(missing)?;
        let wanted = shares::changed(request, (&name, own), &recorded.others(uuid))?;
        self.standing.services().check().await?;
        let (number, before, array) = (status.id, own.clone(), recorded.array.clone());
        let status = self.record(&array, number, &wanted).await?;
        drop(recorded);
        let Err(why) = self.share_served(&array, &status, &request.name).await else {
            return Ok(());
        };
        self.undo(&array, (number, before)).await;
        Err(why)
    }

    /// Has it recorded what an export is, and then served so.
    async fn record(
        &self,
        array: &ArrayStatus,
        number: u32,
        wanted: &ShareExport,
    ) -> Result<ExportStatus, Error> {
        let address = ExportAddress::Shares(wanted.clone());
        let ask = |array, reply| Request::ExportSet(array, number, address, reply);
        let status = self.ask_of(array, ask).await?;
        let id = convert::export_id(&array.name, number);
        self.standing.services().set_shares(&id, wanted);
        Ok(status)
    }

    /// Records what was before. What can't be recorded stays, and is shown as it is.
    async fn undo(&self, array: &ArrayStatus, (number, before): (u32, ShareExport)) {
        let Ok(recorded) = self.recorded(&array.uuid.to_string()).await else { return };
        // What was made meanwhile is.
        let now = recorded.array.exports.iter().find(|own| own.id == number);
        let make = before.make.filter(|_| now.is_some_and(is_to_be_made));
        let _ = self.record(&recorded.array, number, &ShareExport { make, ..before }).await;
    }

    /// Forgets what is shared of a volume, once nothing of it is there; whether it is forgotten.
    /// What does not go stays recorded, and is shown as it is.
    async fn undo_first(&self, array: &ArrayStatus, number: u32) -> bool {
        let id = convert::export_id(&array.name, number);
        let services = self.standing.services();
        let gone = async {
            loop {
                match services.leave_within(&id, UNDONE).await {
                    Ok(left) => return matches!(left, Left::Gone),
                    // Who ends may come again.
                    Err(_) if services.check().await.is_ok() => {}
                    Err(_) => tokio::time::sleep(AGAIN).await,
                }
            }
        };
        if !timeout(UNDONE, gone).await.unwrap_or(false) {
            services.set_leaving(&id, false);
            return false;
        }
        self.forget_shares(&array.uuid.to_string(), (number, &id)).await.is_ok()
    }

    /// Forgets an export of which nothing is there any more; one that can't be forgotten stays.
    async fn forget_shares(&self, array: &str, (number, id): (u32, &str)) -> Result<(), Error> {
        let forgotten = async {
            let recorded = self.recorded(array).await?;
            let ask = |array, reply| Request::ExportDelete(array, number, reply);
            self.ask_of(&recorded.array, ask).await?;
            self.standing.services().forget(id);
            Ok(())
        };
        forgotten.await.inspect_err(|_| {
            self.standing.services().set_leaving(id, false);
        })
    }

    /// Waits until a share can be had that was just recorded.
    async fn share_served(
        &self,
        array: &ArrayStatus,
        status: &ExportStatus,
        name: &str,
    ) -> Result<(), Error> {
        let id = convert::export_id(&array.name, status.id);
        let services = self.standing.services();
        let failed = |why: &str| Err(Error::new(&say::SHARE_FAILED, &[&name, &why]));
        let mut patience = if is_to_be_made(status) { MAKES } else { STARTS };
        loop {
            match services.wait(&id, patience).await? {
                Some((State::Made, _)) => {
                    self.settle(array, status.id).await?;
                    patience = STARTS;
                }
                Some((State::Holds, what)) => {
                    let volume = format!("{}/{}", array.name, status.volume_name);
                    return Err(Error::new(&say::VOLUME_HOLDS, &[&volume, &what]));
                }
                Some((State::Ok, _)) => return Ok(()),
                Some((_, why)) => {
                    // Others of its file system may have been as they are.
                    let files = services.shown(&id).and_then(|shown| shown.files);
                    return match (files, recorded_share(status, name)) {
                        (Some(files), Some(share)) => match shares::problem(share, &files) {
                            Some(why) => failed(&why),
                            None => Ok(()),
                        },
                        _ => failed(&why),
                    };
                }
                None => return failed("no answer in time"),
            }
        }
    }

    /// Records of file systems that are made that they are: they are mounted next.
    pub(crate) async fn settle_shares(&self) -> Result<(), Error> {
        let running = self.running().await?;
        for array in &running {
            for status in array.exports.iter().filter(|own| is_to_be_made(own)) {
                let id = convert::export_id(&array.name, status.id);
                if self.standing.services().is_made(&id) {
                    self.settle(array, status.id).await?;
                }
            }
        }
        Ok(())
    }

    async fn settle(&self, array: &ArrayStatus, number: u32) -> Result<(), Error> {
        let recorded = self.recorded(&array.uuid.to_string()).await?;
        let own = recorded.array.exports.iter().find(|own| own.id == number);
        let Some(own) = own.and_then(|own| shares::export(&own.address)) else { return Ok(()) };
        let id = convert::export_id(&recorded.array.name, number);
        if !self.standing.services().is_made(&id) {
            return Ok(());
        }
        let made = ShareExport { make: None, ..own.clone() };
        match own.make.is_some() {
            true => self.record(&recorded.array, number, &made).await.map(drop),
            // It was settled meanwhile.
            false => {
                self.standing.services().set_shares(&id, &made);
                Ok(())
            }
        }
    }

    async fn end_share(&self, array: &str, volume: &str, name: &str) -> Result<(), Error> {
        let recorded = self.recorded(array).await?;
        let (uuid, _) = recorded.volume(volume)?;
        let missing = || Error::new(&say::NO_SHARE, &[&name]);
        let (status, own) = recorded.shared(uuid).ok_or_else(missing)?;
        let id = convert::export_id(&recorded.array.name, status.id);
        let left = shares::without(own, name)?;
        let number = status.id;
        if !left.shares.is_empty() {
            return self.end_one(recorded, number, left).await;
        }
        // Whatever is written there is written first, which takes its time.
        drop(recorded);
        match self.standing.services().leave(&id).await? {
            Left::Gone => {}
            Left::Busy(why) => return Err(Error::new(&say::SHARE_IN_USE, &[&name, &why])),
        }
        self.forget_shares(array, (number, &id)).await
    }

    /// Ends a share of several: nobody has it any more once this is answered.
    async fn end_one(
        &self,
        recorded: Recorded<'_>,
        number: u32,
        left: ShareExport,
    ) -> Result<(), Error> {
        let services = self.standing.services();
        services.check().await?;
        self.record(&recorded.array, number, &left).await?;
        let id = convert::export_id(&recorded.array.name, number);
        drop(recorded);
        // How the others are is told by themselves.
        services.wait(&id, STARTS).await.map(drop)
    }

    async fn set_share_user(&self, request: &view::SetShareUser) -> Result<(), Error> {
        let view::SetShareUser { array, volume, name, change } = request;
        let recorded = self.recorded(array).await?;
        let (uuid, called) = recorded.volume(volume)?;
        let missing = || Error::new(&say::NO_SHARE, &[&called]);
        let (status, own) = recorded.shared(uuid).ok_or_else(missing)?;
        let failed = |why: &str| Error::new(&say::SHARE_USER_FAILED, &[name, &called, &why]);
        shares::check_user_change(request, (&called, own))?;
        let id = convert::export_id(&recorded.array.name, status.id);
        drop(recorded);
        let services = self.standing.services();
        services.check().await?;
        let Some(files) = services.shown(&id).and_then(|shown| shown.files) else {
            return Err(failed("its file system is not mounted"));
        };
        let is_there = files.users.iter().any(|(known, _)| known == name);
        shares::check_user_is(request, &called, is_there)?;
        let hidden = |own: &redfish::access::Secret| own.reveal().to_owned().into();
        let change = match change {
            UserChange::Add(password) => wire::UserChange::Add(hidden(password)),
            UserChange::Password(password) => wire::UserChange::Password(hidden(password)),
            UserChange::Delete => wire::UserChange::Delete,
        };
        services.change_user(&id, name, change).await?.map_err(|why| failed(&why))?;
        // Who asks next sees it.
        services.renew(&id);
        let _ = services.wait(&id, STARTS).await;
        Ok(())
    }
}

/// Whether an export's file system is to be made.
fn is_to_be_made(status: &ExportStatus) -> bool {
    shares::export(&status.address).is_some_and(|own| own.make.is_some())
}

/// A share of an export.
fn recorded_share<'a>(status: &'a ExportStatus, name: &str) -> Option<&'a Share> {
    shares::export(&status.address)?.shares.iter().find(|share| share.name == name)
}
