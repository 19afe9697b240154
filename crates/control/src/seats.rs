//! Drives in the slots of arrays: taken out, replaced, put back as they went.

use crate::claims::{Taken, not_open, paths_of};
use crate::manager::Manager;
use engine::manage::command::{ArrayStatus, Request, SlotStatus};
use redfish::view::{self, Error, NamedDrive};
use units::Slot;

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
        let with = [request.with.clone()];
        let (own, check) = (Some(array.uuid), |_: &[Taken]| Ok(()));
        let mut taken = self.claim(&with, &request.overwrite, own, check).await?;
        let paths = paths_of(&taken);
        let Some(Taken { reference, .. }) = taken.pop() else {
            return Err(not_open(&request.with.path));
        };
        let slot = Slot(request.slot);
        let ask = |uuid, reply| Request::Replace(uuid, slot, reference, reply);
        let outcome = self.ask_of(&array, ask).await;
        self.let_go(&paths).await;
        Ok(self.describe(&outcome?).await)
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
        let taken = self.claim(&[named], &[], Some(array.uuid), |_| Ok(())).await?;
        let paths = paths_of(&taken);
        let outcome = match taken.into_iter().next() {
            Some(taken) => {
                let back = taken.reference;
                self.ask_of(array, |uuid, reply| Request::Return(uuid, slot, back, reply)).await
            }
            None => Err(not_open(path)),
        };
        self.let_go(&paths).await;
        outcome.map(drop)
    }
}
