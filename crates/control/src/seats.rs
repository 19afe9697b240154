//! Drives in the slots of arrays: taken out, replaced, put back as they went.

use crate::claims::{Taken, not_open, paths_of};
use crate::manager::Manager;
use drives::SharedDrive;
use engine::manage::command::{ArrayStatus, DriveRef, Reply, Request, SlotStatus};
use redfish::view::{self, Error, NamedDrive};
use units::Slot;

/// A drive for the engine.
type OwnRef = DriveRef<SharedDrive>;

impl Manager {
    /// Takes a drive out of service.
    pub(crate) async fn fail_drive(&self, uuid: &str, drive: &str) -> Result<view::Array, Error> {
        let array = self.running_array(uuid).await?;
        let known = self.inventory().at(drive).map(|known| known.path.clone());
        let drive = known.unwrap_or_else(|| drive.to_owned());
        // Not back by itself, whatever becomes of its paths.
        let meant = |slot: &SlotStatus| {
            let named = format!("slot:{}", slot.slot);
            slot.path.as_ref() == Some(&drive) || slot.serial == drive || drive == named
        };
        let slots: Vec<Slot> =
            array.slots.iter().filter(|slot| meant(slot)).map(|slot| slot.slot).collect();
        self.returns.failing(array.uuid, &slots);
        // One that is just being put back is failed behind that.
        self.returns.put_back(array.uuid).await;
        let ask = |uuid, reply| Request::Fail(uuid, vec![drive], reply);
        let outcome = self.ask_of(&array, ask).await;
        self.returns.failed(array.uuid, &slots, outcome.is_ok());
        Ok(self.describe(&outcome?).await)
    }

    /// Puts another drive in a slot.
    pub(crate) async fn replace_drive(
        &self,
        uuid: &str,
        request: &view::ReplaceDrive,
    ) -> Result<view::Array, Error> {
        let array = self.running_array(uuid).await?;
        let (slot, drive) = (Slot(request.slot), (&request.with, &request.overwrite[..]));
        let ask = |uuid, with, reply| Request::Replace(uuid, slot, with, reply);
        let status = self.ask_with(&array, drive, ask).await?;
        Ok(self.describe(&status).await)
    }

    /// Has a drive take the slot again that it left, if it is as it was then.
    pub(crate) async fn return_drive(
        &self,
        array: &ArrayStatus,
        (path, slot): (&str, Slot),
    ) -> Result<(), Error> {
        let named = {
            let inventory = self.inventory();
            let known = inventory.at(path);
            let serial = known.and_then(|known| known.about.as_ref()).map(|own| own.serial.clone());
            NamedDrive {
                id: known.and_then(|known| known.id().cloned()).unwrap_or_default(),
                path: path.to_owned(),
                serial: serial.unwrap_or_default(),
                seen: None,
            }
        };
        let ask = |uuid, back, reply| Request::Return(uuid, slot, back, reply);
        self.ask_with(array, (&named, &[]), ask).await.map(drop)
    }

    /// Asks the engine for something with a drive that no array has, and that may be overwritten
    /// if it is among these.
    async fn ask_with(
        &self,
        array: &ArrayStatus,
        (drive, overwrite): (&NamedDrive, &[NamedDrive]),
        make: impl FnOnce(String, OwnRef, Reply<ArrayStatus>) -> Request<SharedDrive>,
    ) -> Result<ArrayStatus, Error> {
        let drives = core::slice::from_ref(drive);
        let mut taken = self.claim(drives, overwrite, Some(array.uuid), |_| Ok(())).await?;
        let paths = paths_of(&taken);
        let Some(Taken { reference, .. }) = taken.pop() else {
            return Err(not_open(&drive.path));
        };
        let outcome = self.ask_of(array, |uuid, reply| make(uuid, reference, reply)).await;
        self.let_go(&paths).await;
        outcome
    }
}
