//! Creates arrays.
//!
//! Invariant: a name that two arrays have, running or found, is given to no third one.

use crate::claims::{Taken, paths_of};
use crate::convert;
use crate::fabrics::is_behind;
use crate::failure;
use crate::inventory::Known;
use crate::manager::Manager;
use crate::plan::{Looked, new_array, planned};
use drives::SharedDrive;
use engine::manage::command::{DriveRef, ManageError, Request};
use engine::manage::plan::Offered;
use layout::Level;
use redfish::messages as say;
use redfish::view::{self, Error};
use units::Uuid;

impl Manager {
    /// Creates an array.
    pub(crate) async fn create_array(
        &self,
        request: &view::CreateArray,
    ) -> Result<view::Array, Error> {
        let level = parse_level(&request.level)?;
        self.check_name(request).await?;
        if request.shared || request.drives.iter().any(|drive| is_behind(&drive.path)) {
            self.identify().await?;
        }
        let (new, cores) = (new_array(request, level), self.data.cores());
        let same = request.same_drive;
        let check = |taken: &[Taken]| planned(&new, &offered(taken), (cores, same)).map(|_| ());
        let taken = self.claim(&request.drives, &request.overwrite, None, check).await?;
        let paths = paths_of(&taken);
        let references: Vec<DriveRef<SharedDrive>> =
            taken.into_iter().map(|t| t.reference).collect();
        let outcome = self.data.ask(|reply| Request::Create(new, references, reply)).await;
        self.let_go(&paths).await;
        // It may have taken drives of an array that was found.
        self.tell_absent().await;
        let status = outcome.map_err(|error| error.about(&request.name))?;
        self.in_hand().insert(status.uuid);
        Ok(self.describe(&status).await)
    }

    /// What creating an array would give, of drives as they are now.
    pub(crate) async fn look_for_array(
        &self,
        request: &view::CreateArray,
    ) -> Result<Looked, Error> {
        let level = parse_level(&request.level)?;
        self.check_name(request).await?;
        let (new, cores) = (new_array(request, level), self.data.cores());
        let check = |taken: &[Taken]| {
            let array = Some(planned(&new, &offered(taken), (cores, request.same_drive))?);
            let drives = taken.iter().map(|taken| self.seen(taken)).collect();
            Ok(Looked { array, drives, ..Looked::default() })
        };
        self.inspect_drives(&request.drives, &request.overwrite, check).await
    }

    /// Refuses a name that a running array has, or one that was found on other drives than the
    /// request's.
    async fn check_name(&self, request: &view::CreateArray) -> Result<(), Error> {
        let name = &request.name;
        if name.parse::<Uuid>().is_ok() {
            return Err(Error::new(&say::NAME_IS_UUID, &[name]));
        }
        let running = self.running().await?;
        if running.iter().any(|status| status.name == *name) {
            return Err(failure::told(&ManageError::NameTaken(name.clone())));
        }
        let places = convert::places(&running);
        let inventory = self.inventory();
        let own: Vec<&str> = request
            .drives
            .iter()
            .filter_map(|d| Some(inventory.at(&d.path)?.path.as_str()))
            .collect();
        let other = |k: &Known| !places.is_taken(k) && !own.contains(&k.path.as_str());
        let found = convert::found_records(&inventory, other);
        match found.values().find(|r| r.name == *name && !places.arrays.contains(&r.array)) {
            None => Ok(()),
            Some(taken) => Err(Error::new(&say::NAME_TAKEN_STOPPED, &[name, &taken.array])),
        }
    }
}

pub(crate) fn parse_level(text: &str) -> Result<Level, Error> {
    text.parse().map_err(|error: layout::NotLevel| Error::new(&say::BAD_LEVEL, &[&text, &error]))
}

/// Drives as the engine plans with them.
fn offered(taken: &[Taken]) -> Vec<Offered> {
    let offered = |taken: &Taken| Offered {
        path: taken.plan.path.clone(),
        bytes: taken.reference.shared.info().bytes,
        block_bytes: taken.reference.shared.info().block_bytes,
        is_file: taken.reference.is_file,
    };
    taken.iter().map(offered).collect()
}
