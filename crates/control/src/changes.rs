//! What clients may change.
//!
//! Invariant: a change is answered when [`Manager::view`] says what it did, so that whoever made it
//! reads it; also one that failed, which may have done something.

use crate::manager::Manager;
use crate::plan::Planned;
use core::future::Future;
use engine::manage::command::TaskAction;
use redfish::change::ShareChange;
use redfish::messages as say;
use redfish::view::{self, Error};

impl Manager {
    async fn change<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let outcome = work.await;
        self.renew().await;
        outcome
    }

    /// Creates an array.
    pub async fn create(&self, request: &view::CreateArray) -> Result<view::Array, Error> {
        self.change(self.create_array(request)).await
    }

    /// Starts an array that does not run.
    pub async fn assemble(
        &self,
        uuid: &str,
        request: view::AssembleArray,
    ) -> Result<view::Array, Error> {
        self.change(self.assemble_array(uuid, request, None)).await
    }

    /// The same, as it was planned.
    ///
    /// # Errors
    /// Also if a drive that was seen for the plan is not there any more, or holds something else.
    pub async fn assemble_planned(
        &self,
        uuid: &str,
        request: view::AssembleArray,
        planned: &Planned,
    ) -> Result<view::Array, Error> {
        self.change(self.assemble_array(uuid, request, Some(planned))).await
    }

    /// Stops a running array.
    pub async fn stop(&self, uuid: &str) -> Result<(), Error> {
        self.change(self.stop_array(uuid)).await
    }

    /// Deletes an array, running or found.
    pub async fn delete(&self, uuid: &str) -> Result<view::Deleted, Error> {
        self.change(self.delete_array(uuid, None)).await
    }

    /// The same, as it was planned: drives that the plan did not show are left, and told.
    pub async fn delete_planned(
        &self,
        uuid: &str,
        planned: &Planned,
    ) -> Result<view::Deleted, Error> {
        self.change(self.delete_array(uuid, Some(planned))).await
    }

    /// Takes a drive out of service.
    pub async fn fail(&self, uuid: &str, drive: &str) -> Result<view::Array, Error> {
        self.change(self.fail_drive(uuid, drive)).await
    }

    /// Puts another drive in a slot.
    pub async fn replace(
        &self,
        uuid: &str,
        request: &view::ReplaceDrive,
    ) -> Result<view::Array, Error> {
        self.change(self.replace_drive(uuid, request)).await
    }

    /// Has a job's task wait, go on or end; with others of its kind, but for an end.
    pub async fn act_on_job(&self, id: &str, action: TaskAction) -> Result<(), Error> {
        self.change(self.act_on(id, action)).await
    }

    /// Starts a scrub.
    pub async fn scrub(&self, uuid: &str, wanted: view::ScrubArray) -> Result<view::Array, Error> {
        self.change(self.scrub_array(uuid, wanted)).await
    }

    /// Makes a volume.
    pub async fn create_volume(&self, request: &view::CreateVolume) -> Result<view::Volume, Error> {
        self.change(self.make_volume(request)).await
    }

    /// Changes a volume's size; to less only if the request says so.
    pub async fn resize_volume(
        &self,
        array: &str,
        volume: &str,
        request: view::ResizeVolume,
    ) -> Result<view::Volume, Error> {
        self.change(self.size_volume(array, volume, request)).await
    }

    /// Deletes a volume.
    pub async fn delete_volume(&self, array: &str, volume: &str) -> Result<(), Error> {
        self.change(self.remove_volume(array, volume)).await
    }

    /// Serves a volume.
    pub async fn create_export(&self, request: &view::CreateExport) -> Result<view::Export, Error> {
        self.change(self.make_export(request)).await
    }

    /// Forgets an export: `ARRAY-UUID:NUMBER`.
    pub async fn delete_export(&self, id: &str) -> Result<(), Error> {
        self.change(self.remove_export(id)).await
    }

    /// Makes, changes or ends a share, or changes a user of shares.
    pub async fn change_share(&self, change: &ShareChange) -> Result<(), Error> {
        self.change(self.make_share_change(change)).await
    }

    /// Erases the records of a drive that no running array counts on.
    pub async fn wipe(&self, request: &view::WipeDrive) -> Result<view::Wiped, Error> {
        self.change(self.wipe_drive(request)).await
    }

    /// Looks at the drives that the configuration names, and at these; answers with the ids of the
    /// latter, in their order.
    pub async fn find_drives(&self, paths: &[String]) -> Result<Vec<String>, Error> {
        self.change(async {
            // What can't be opened is listed as unusable.
            let _ = self.scan().await?;
            let mut ids = Vec::with_capacity(paths.len());
            for path in paths {
                let known = self.look_for(path).await?;
                let id = self.inventory().at(&known).and_then(|known| known.id().cloned());
                ids.push(id.ok_or_else(|| Error::new(&say::DRIVE_NOT_KNOWN, &[&path]))?);
            }
            Ok(ids)
        })
        .await
    }
}
