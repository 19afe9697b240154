//! Plans of what is there now: the view is renewed, and drives that would be overwritten are looked
//! at, before [`crate::plan`] makes a plan of them.

use crate::claims::Taken;
use crate::convert;
use crate::inventory::Known;
use crate::manager::Manager;
use crate::plan::{Looked, Planned, Seen, plan};
use crate::probe;
use redfish::change::{Change, ShareChange};
use redfish::view::{self, Error};
use units::Uuid;

impl Manager {
    /// What a change would do now. Nothing is done.
    pub(crate) async fn plan(&self, change: &Change) -> Result<Planned, Error> {
        let looked = match change {
            Change::CreateArray(request) | Change::CreateVolumeOnDrives { array: request, .. } => {
                self.look_for_array(request).await
            }
            Change::ReplaceDrive { array, request } => {
                self.look_for_replacement(array, request).await
            }
            Change::Wipe(request) => self.look_before_wipe(request).await,
            Change::DeleteArray { array } => self.look_before_delete(array).await,
            Change::Assemble { array, request } if request.accept_loss => {
                self.look_for_drives_of(array).await
            }
            Change::Access(change) => {
                let more = self.accounts().look(change);
                more.map(|more| Looked { more, ..Looked::default() })
            }
            Change::CreateExport(request)
                if request.local.is_some() || request.iscsi.is_some() || request.fc.is_some() =>
            {
                self.standing.services().check().await.map(|()| Looked::default())
            }
            Change::Share(change) if !matches!(change, ShareChange::Delete { .. }) => {
                self.standing.services().check().await.map(|()| Looked::default())
            }
            _ => Ok(Looked::default()),
        };
        // Also where a look met something else: who asks again asks by what is there now.
        self.renew().await;
        plan(&self.view(), change, looked?)
    }

    /// A drive that was just looked at, for a plan.
    pub(crate) fn seen(&self, taken: &Taken) -> Seen {
        let drive = taken.plan.clone();
        let identity = self.inventory().at(&drive.path).map(Known::seen).unwrap_or_default();
        Seen { drive, identity }
    }

    async fn look_for_replacement(
        &self,
        array: &str,
        request: &view::ReplaceDrive,
    ) -> Result<Looked, Error> {
        let own: Option<Uuid> = array.parse().ok();
        let look = |taken: &[Taken]| {
            let mut drives: Vec<Seen> = taken.iter().map(|taken| self.seen(taken)).collect();
            for Seen { drive, .. } in &mut drives {
                drive.slot = Some(request.slot);
                let recorded = self.inventory().at(&drive.path).and_then(|known| known.recorded());
                if own.is_some() && recorded == own {
                    // What it held the array has elsewhere.
                    (drive.destroys, drive.refused) = (None, false);
                }
            }
            Ok(Looked { drives, ..Looked::default() })
        };
        let with = [request.with.clone()];
        self.inspect_drives(&with, &request.overwrite, look).await
    }

    async fn look_before_delete(&self, array: &str) -> Result<Looked, Error> {
        let looked = self.look_for_drives_of(array).await?;
        if let Ok(array) = self.array(array).await {
            self.refuse_anothers_array(&array).await?;
        }
        Ok(looked)
    }

    /// All drives with a record of an array, but those that it has while it runs.
    async fn look_for_drives_of(&self, array: &str) -> Result<Looked, Error> {
        let Ok(wanted) = array.parse::<Uuid>() else { return Ok(Looked::default()) };
        // What can't be opened is as good as missing.
        let _ = self.scan().await?;
        let places = convert::places(&self.running().await?);
        let is_own =
            |known: &&Known| known.recorded() == Some(wanted) && places.of(known).is_none();
        let seen = |known: &Known| {
            let about = known.about.clone()?;
            let content = Some(known.content.told());
            let drive = view::PlannedDrive {
                slot: None,
                path: known.path.clone(),
                serial: about.serial,
                bytes: about.bytes,
                destroys: content.clone(),
                content,
                refused: false,
            };
            Some(Seen { drive, identity: known.seen() })
        };
        let drives = self.inventory().iter().filter(is_own).filter_map(seen).collect();
        Ok(Looked { drives, ..Looked::default() })
    }

    async fn look_before_wipe(&self, request: &view::WipeDrive) -> Result<Looked, Error> {
        let look = |taken: &[Taken]| {
            let mut drives: Vec<Seen> = taken.iter().map(|taken| self.seen(taken)).collect();
            for Seen { drive, .. } in &mut drives {
                (drive.slot, drive.refused) = (None, false);
                let content = self.inventory().at(&drive.path).map(|known| known.content.clone());
                let foreign = content.unwrap_or_default().foreign();
                if let Some(what) = foreign.filter(|_| !request.overwrite) {
                    return Err(probe::wipes_foreign(&drive.path, &what));
                }
            }
            Ok(Looked { drives, ..Looked::default() })
        };
        let drive = [request.drive.clone()];
        self.inspect_drives(&drive, &[], look).await
    }
}

#[cfg(test)]
#[path = "planning_tests.rs"]
mod tests;
