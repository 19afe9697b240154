//! Shared arrays: says who this server is before it has one, leaves alone what others have, and
//! lets go of what others have taken over ([`crate::ownership`]).
//!
//! | an array is | becomes | when                                                                |
//! |-------------|---------|---------------------------------------------------------------------|
//! | running     | taken   | the engine has met another server's page on its drives              |
//! | taken       | stopped | its exports are ended, and the engine has let go of it              |
//! | waiting     | taken   | its drives are reached again, and another server has it             |
//! | refused     | found   | the server that had it has stopped it                               |
//!
//! Invariants
//! - What another server has is neither erased nor overwritten here.
//! - An array that another server had is started by a person only.
//! - An array that can't be stopped holds up no other.

use crate::convert::{self, FoundOwner};
use crate::fabrics::is_behind;
use crate::failure::host_words;
use crate::inventory::{Inventory, Known};
use crate::manager::Manager;
use crate::ownership::{self, now_millis, taken_by};
use core::fmt::Display;
use engine::manage::command::{Identity, Request};
use format::{ArrayRecord, Owner};
use redfish::messages as say;
use redfish::service::uri;
use redfish::view::{self, Error};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use units::Uuid;

/// How often it is looked whether shared arrays that were found have owners, and these live.
const LOOK: Duration = Duration::from_secs(1);

impl Manager {
    /// Who this server is; found once, on a thread of its own.
    async fn server(&self) -> Result<Owner, Error> {
        if let Some(own) = self.ownership.known() {
            return Ok(own);
        }
        let own = self.behind(ownership::find).await?;
        self.ownership.set(own);
        Ok(own)
    }

    /// Says who this server is, before it has a shared array.
    ///
    /// # Errors
    /// That is not known, or another process of this machine is the same server.
    pub(crate) async fn identify(&self) -> Result<(), Error> {
        let mut identified = self.ownership.identified.lock().await;
        let (is_held, is_told) = &mut *identified;
        if *is_told {
            return Ok(());
        }
        let Owner { host, boot } = self.server().await?;
        if !*is_held {
            self.behind(move |_| ownership::hold(Owner { host, boot })).await?;
            *is_held = true;
        }
        let name = self.view().server.name.clone();
        let heartbeat = self.data.fabrics().heartbeat();
        let identity = Identity { host, boot, name, heartbeat };
        self.data.ask(|reply| Request::Identify(identity, reply)).await?;
        *is_told = true;
        Ok(())
    }

    /// The same before an array is started that was found, if it is shared.
    pub(crate) async fn identify_for(&self, array: Uuid) -> Result<(), Error> {
        let is_shared = {
            let inventory = self.inventory();
            let is_own = |known: &&Known| known.recorded() == Some(array);
            inventory.iter().filter(is_own).any(|known| {
                let record = known.content.record.as_ref();
                record.is_some_and(|record| record.shared) || is_behind(&known.path)
            })
        };
        if is_shared { self.identify().await } else { Ok(()) }
    }

    /// Who has an array that was found, for the interface.
    pub(crate) fn shown_owner(
        &self,
        record: &ArrayRecord,
        inventory: &Inventory,
    ) -> Option<view::Owner> {
        let FoundOwner { owner, name, heartbeat } = convert::found_owner(record, inventory)?;
        Some(view::Owner {
            host_id: owner.host.to_string(),
            boot_id: owner.boot.to_string(),
            name,
            own: self.ownership.known() == Some(owner),
            heartbeat_age_ms: heartbeat.map(|then| now_millis().saturating_sub(then)),
        })
    }

    /// Who has an array that does not run here, by what was found, and what it is called.
    fn owner_of(&self, array: Uuid) -> Option<(FoundOwner, String)> {
        let inventory = self.inventory();
        let record = convert::found_records(&inventory, |_| true).remove(&array)?;
        Some((convert::found_owner(&record, &inventory)?, record.name))
    }

    /// The words of another server that has an array; none if nobody has it, or only this one.
    ///
    /// # Errors
    /// Another process of this machine may have it.
    async fn another(&self, found: &FoundOwner) -> Result<Option<String>, Error> {
        if found.owner.host == self.server().await?.host {
            self.identify().await?;
            return Ok(None);
        }
        let age = found.heartbeat.map(|then| now_millis().saturating_sub(then));
        Ok(Some(host_words(&found.name, &found.owner.host, age)))
    }

    /// Refuses drives of arrays that other servers have, and that do not run here.
    pub(crate) async fn refuse_anothers(&self, paths: &[String]) -> Result<(), Error> {
        let places = convert::places(&self.running().await?);
        for path in paths {
            let array = self.inventory().at(path).and_then(Known::recorded);
            let array = array.filter(|array| !places.arrays.contains(array));
            let Some((found, name)) = array.and_then(|array| self.owner_of(array)) else {
                continue;
            };
            if let Some(host) = self.another(&found).await? {
                let args: [&dyn Display; 3] = [path, &name, &host];
                return Err(Error::new(&say::DRIVE_OF_SERVER, &args).about(&name));
            }
        }
        Ok(())
    }

    /// Refuses an array that does not run here and that another server has.
    pub(crate) async fn refuse_anothers_array(&self, array: &view::Array) -> Result<(), Error> {
        let found = array.uuid.parse().ok().and_then(|uuid| self.owner_of(uuid));
        let Some((found, name)) = found.filter(|_| array.state == view::ArrayState::Stopped) else {
            return Ok(());
        };
        match self.another(&found).await? {
            None => Ok(()),
            Some(host) => Err(Error::new(&say::ARRAY_OF_SERVER, &[&name, &host]).about(&name)),
        }
    }

    /// Lets go of arrays that other servers take over, for as long as the daemon runs.
    pub(crate) async fn keep_owned(self: Arc<Self>) {
        let mut under_way = JoinSet::new();
        loop {
            self.ownership.news.notified().await;
            let arrays = self.running().await.unwrap_or_default();
            for array in arrays.into_iter().filter(|array| taken_by(array).is_some()) {
                if !self.ownership.begins(array.uuid) {
                    continue;
                }
                let own = self.clone();
                under_way.spawn(async move {
                    own.let_taken_go(array.uuid).await;
                    own.ownership.ends(array.uuid);
                    own.renew().await;
                });
            }
            while under_way.try_join_next().is_some() {}
        }
    }

    /// Ends the exports of an array that another server has taken over, and stops it.
    async fn let_taken_go(&self, array: Uuid) {
        let uuid = array.to_string();
        let _held = self.holds.take(&uuid, false).await;
        let Ok(status) = self.running_array(&uuid).await else { return };
        let Some(host) = taken_by(&status) else { return };
        // Before it is stopped: nobody may start it.
        let problem = self.tell_taken(array, &status.name, host);
        let paths = status.slots.iter().filter_map(|slot| slot.path.clone()).collect();
        self.refuse_at(array, problem.clone(), paths);
        // What can't be stopped is tried again.
        if self.stop_running(&status).await.is_ok() {
            // By the drives that are found of it.
            self.refuse(array, problem);
        }
        self.tell_absent().await;
    }

    /// Says once that another server has taken an array over, and leaves it to people from then on;
    /// why it does not run.
    fn tell_taken(&self, array: Uuid, name: &str, host: &str) -> Error {
        let problem = Error::new(&say::TAKEN_OVER, &[&host]).about(name);
        self.take_in_hand(array);
        if !self.is_refused_as(array, &[&say::TAKEN_OVER]) {
            let args: [&dyn Display; 2] = [&name, &host];
            self.events().tell(&say::ARRAY_TAKEN_OVER, &args, &uri::pool(&array.to_string()));
            runtime::say(format_args!(
                "palisade: array \"{name}\" was {}\n  {}",
                problem.error, problem.hint
            ));
        }
        problem
    }

    /// An array that ran here until its drives were out of reach can't be started, as another
    /// server has it: that has taken it over meanwhile.
    pub(crate) async fn was_taken_meanwhile(&self, array: Uuid) {
        let paths = Vec::from_iter(self.inventory().paths_of(array));
        self.revisit(&paths).await;
        let Some((found, name)) = self.owner_of(array) else { return };
        if self.server().await.is_ok_and(|own| own.host != found.owner.host) {
            let id = found.owner.host.to_string();
            let host = if found.name.is_empty() { id } else { found.name };
            let problem = self.tell_taken(array, &name, &host);
            self.refuse(array, problem);
        }
    }

    /// Looks again and again at the drives of shared arrays that were found, for as long as the
    /// daemon runs.
    pub(crate) async fn keep_seeing_owners(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            if self.view().status.ready {
                self.see_owners().await;
            }
        }
    }

    async fn see_owners(&self) {
        let is_shared =
            |known: &Known| known.content.record.as_ref().is_some_and(|record| record.shared);
        if !self.inventory().iter().any(is_shared) {
            return;
        }
        let shared = self.shared_found().await;
        if shared.is_empty() {
            return;
        }
        // What can't be found out is not shown.
        let _ = self.server().await;
        let mut paths = Vec::new();
        for array in shared.keys() {
            paths.extend(self.inventory().paths_of(*array));
        }
        self.revisit(&paths).await;
        for (array, has_owner) in self.shared_found().await {
            let all = [&say::ARRAY_OWNED, &say::OWNER_MEANWHILE, &say::TAKEN_OVER];
            if !has_owner && self.is_refused_as(array, &all) {
                // Who had it has stopped it.
                self.forget_problem(array);
            }
        }
    }

    /// The shared arrays that were found, and whether somebody has them.
    async fn shared_found(&self) -> BTreeMap<Uuid, bool> {
        let found = self.found().await.unwrap_or_default();
        let inventory = self.inventory();
        let shared = found.into_iter().filter(|(_, record)| record.shared);
        let has_owner = |record: &ArrayRecord| convert::found_owner(record, &inventory).is_some();
        shared.map(|(array, record)| (array, has_owner(&record))).collect()
    }
}

#[cfg(test)]
#[path = "owning_tests.rs"]
mod tests;
