//! Volumes and exports: what the daemon does for its clients with them.

use crate::address;
use crate::api::{self, Error};
use crate::connection::Target;
use crate::convert;
use crate::manager::Manager;
use engine::manage::command::{ArrayStatus, ExportStatus, ManageError, Request};

impl Manager {
    /// All volumes of running arrays.
    pub async fn volumes(&self) -> Result<Vec<api::Volume>, Error> {
        let arrays = self.arrays().await?;
        let running = arrays.into_iter().filter(|a| a.state != api::ArrayState::Stopped);
        let mut volumes: Vec<_> = running.flat_map(|array| array.volumes).collect();
        volumes.sort_by(|a, b| (&a.array, &a.name).cmp(&(&b.array, &b.name)));
        Ok(volumes)
    }

    /// Makes a volume.
    pub async fn create_volume(&self, request: &api::CreateVolume) -> Result<api::Volume, Error> {
        let array = self.named(&request.array).await?;
        let (uuid, name) = (array.uuid.to_string(), request.name.clone());
        let ask = |reply| Request::VolumeCreate(uuid, name, request.size_bytes, reply);
        Ok(convert::volume(&array.name, &self.data.ask(ask).await?))
    }

    /// Changes a volume's size.
    pub async fn resize_volume(
        &self,
        array: &str,
        volume: &str,
        bytes: u64,
    ) -> Result<api::Volume, Error> {
        let array = self.named(array).await?;
        let (uuid, name) = (array.uuid.to_string(), volume.to_owned());
        let ask = |reply| Request::VolumeResize(uuid, name, bytes, reply);
        Ok(convert::volume(&array.name, &self.data.ask(ask).await?))
    }

    /// Deletes a volume.
    pub async fn delete_volume(&self, array: &str, volume: &str) -> Result<(), Error> {
        let uuid = self.named(array).await?.uuid.to_string();
        let name = volume.to_owned();
        self.data.ask(|reply| Request::VolumeDelete(uuid, name, reply)).await
    }

    /// All exports of running arrays.
    pub async fn exports(&self) -> Result<Vec<api::Export>, Error> {
        Ok(self.arrays().await?.into_iter().flat_map(|array| array.exports).collect())
    }

    /// Serves a volume. The address is taken before the export is recorded, so that an address
    /// that can't be had is an error of this request.
    pub async fn create_export(&self, request: &api::CreateExport) -> Result<api::Export, Error> {
        let address = address::parse(&request.nbd)?;
        let array = self.named(&request.array).await?;
        let same = |e: &&ExportStatus| e.volume_name == request.volume && e.address == address;
        if let Some(existing) = array.exports.iter().find(same) {
            return Err(Error::failed(
                format!("{}/{} is exported there already", array.name, existing.volume_name),
                "see the exports with: palisade export list",
            ));
        }
        let mut exports = self.exports.lock().await;
        let address = exports.listen(&address).await?;
        let (uuid, volume) = (array.uuid.to_string(), request.volume.clone());
        let recorded = address.clone();
        let ask = |reply| Request::ExportCreate(uuid, volume, recorded, reply);
        match self.data.ask(ask).await {
            Ok(status) => {
                let target = target(&array, &status);
                exports.add(&name(&array, &status), target, &status.address).await?;
                Ok(convert::export(&array.name, &status, &exports))
            }
            Err(error) => {
                exports.close_if_unused(&address::text(&address)).await;
                Err(error)
            }
        }
    }

    /// Forgets an export: `ARRAY:NUMBER`.
    pub async fn delete_export(&self, id: &str) -> Result<(), Error> {
        let wrong = || {
            let text = format!("no export is called \"{id}\"");
            Error::failed(text, "list them with: palisade export list")
        };
        let (array, number) = id.rsplit_once(':').ok_or_else(wrong)?;
        let number: u32 = number.parse().map_err(|_| wrong())?;
        let array = self.named(array).await?;
        if !array.exports.iter().any(|e| e.id == number) {
            return Err(ManageError::NoExport(array.name, number).into());
        }
        let mut exports = self.exports.lock().await;
        let uuid = array.uuid.to_string();
        self.data.ask(|reply| Request::ExportDelete(uuid, number, reply)).await?;
        exports.remove(&convert::export_id(&array.name, number)).await;
        Ok(())
    }

    /// Serves the recorded exports of an array that just started; what can't be is answered.
    pub(crate) async fn start_exports(&self, array: &ArrayStatus) -> Vec<Error> {
        let mut exports = self.exports.lock().await;
        let mut problems = Vec::new();
        for status in &array.exports {
            let (name, target) = (name(array, status), target(array, status));
            problems.extend(exports.add(&name, target, &status.address).await.err());
        }
        problems
    }

    /// Ends all exports of an array that is about to stop; they stay recorded.
    pub(crate) async fn end_exports(&self, array: &ArrayStatus) {
        let mut exports = self.exports.lock().await;
        for status in &array.exports {
            exports.remove(&convert::export_id(&array.name, status.id)).await;
        }
    }
}

/// The name that NBD clients use.
fn name(array: &ArrayStatus, export: &ExportStatus) -> String {
    format!("{}/{}", array.name, export.volume_name)
}

fn target(array: &ArrayStatus, export: &ExportStatus) -> Target {
    Target {
        export: convert::export_id(&array.name, export.id),
        array: array.id,
        volume: export.volume,
    }
}
