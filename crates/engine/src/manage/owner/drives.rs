//! Single drives of a shared array: one comes to it, is let go, or is to be erased.
//!
//! | a drive is  | becomes  | when                                                              |
//! |-------------|----------|-------------------------------------------------------------------|
//! | nobody's    | claimed  | its page is no other host's, and this server has written its own  |
//! | claimed     | owned    | a period later that still stands there                            |
//! | as it went  | owned    | its page is no other server's                                     |
//! | owned       | taken part | it joins; until then its page is written by itself              |
//! | owned, taken part | barred | the array lets it go: nothing that was asked is carried out  |
//!
//! Invariants
//! - Nothing but its page is written on a drive before it is owned.
//! - What is asked of an owned drive is carried out only as long as its page stands there.

use super::{Ownership, read, unguard};
use crate::Host;
use crate::limits::LEASE;
use crate::manage::command::ManageError;
use crate::manage::managed::Managed;
use crate::manage::store;
use crate::watch::Watched;
use format::owner::OwnerPage;
use io::{Drive, DriveError, Priority};
use std::rc::Rc;
use units::Nanos;

impl<E: Host> Managed<E> {
    /// Refused if a drive that comes back has another server's page.
    pub(in crate::manage) async fn may_come_back(
        &self,
        drive: &Watched<E>,
    ) -> Result<(), ManageError> {
        let Some(own) = &self.owner else { return Ok(()) };
        let page = read(drive).await.ok().flatten();
        self.nobodys(page.filter(|page| own.terms.is_foreign(page)).into_iter().collect())
    }

    /// Makes sure that a drive of this array, which is over, is this server's, and stays so as
    /// long as its page stands there.
    pub(in crate::manage) async fn may_be_erased(
        &self,
        path: &str,
        drive: &Watched<E>,
    ) -> Result<(), ManageError> {
        let Some(own) = &self.owner else { return Ok(()) };
        let failed = |error| ManageError::Drive(path.to_owned(), error);
        let page = read(drive).await.map_err(failed)?;
        if own.taken_by.borrow().is_some() {
            return Err(self.meanwhile());
        }
        page.map_or(Ok(()), |page| self.is_still_own(own, page))?;
        self.guard_drive(own, drive).await.map_err(failed)
    }

    /// Refused if a page is not this server's any more.
    fn is_still_own(&self, own: &Ownership, page: OwnerPage) -> Result<(), ManageError> {
        match page.owner {
            _ if own.is_own(&page) => Ok(()),
            Some(_) => self.nobodys(vec![page]),
            None => Err(self.meanwhile()),
        }
    }

    /// Another server had it in between.
    fn meanwhile(&self) -> ManageError {
        ManageError::Meanwhile(self.record().name.clone())
    }

    /// Writes the page of a drive anew once a period while it joins, if it is this server's: until
    /// it takes part nobody else does, and its paths may come and go. As long as what is returned
    /// lives.
    pub(in crate::manage) fn name_while_it_joins(self: Rc<Self>, drive: &Watched<E>) -> Rc<()> {
        let (joins, drive) = (Rc::new(()), drive.clone());
        let until = Rc::downgrade(&joins);
        if self.owner.is_some() && drive.reached().is_some() {
            self.env().clone().spawn(Priority::First, async move {
                let Some(own) = &self.owner else { return };
                loop {
                    self.env().sleep(own.period()).await;
                    if until.strong_count() == 0 {
                        return;
                    }
                    let asked = self.env().now();
                    let page = read(&drive).await.ok().flatten();
                    let is_own = page.is_some_and(|page| own.is_own(&page));
                    if is_own && self.may_write_page(own, asked) {
                        // As any request to the drive finds out.
                        let _ = self.write_page(own, &drive).await;
                    }
                }
            });
        }
        joins
    }

    /// Whether what was read of a page then still says that it may be written over.
    pub(super) fn may_write_page(&self, own: &Ownership, asked: Nanos) -> bool {
        let is_late = self.env().now().since(asked) >= Nanos(LEASE * own.period().0);
        !is_late && !own.is_over.get() && !own.lease.is_revoked()
    }

    /// Makes a drive this server's that is new in the array. Behind this all but its page may be
    /// erased.
    pub(in crate::manage) async fn claim_drive(
        &self,
        path: &str,
        drive: &Watched<E>,
    ) -> Result<(), ManageError> {
        let Some(own) = &self.owner else { return Ok(()) };
        let failed = |error| ManageError::Drive(path.to_owned(), error);
        let page = read(drive).await.map_err(failed)?;
        let is_anothers =
            |page: &OwnerPage| page.owner.is_some_and(|owner| owner.host != own.identity.host);
        let period = page.as_ref().map_or(0, |page| page.period_ms);
        self.nobodys(page.filter(is_anothers).into_iter().collect())?;
        self.own_drive(drive).await.map_err(failed)?;
        self.env().sleep(own.period().max(Nanos::from_millis(period.into()))).await;
        let page = read(drive).await.map_err(failed)?.ok_or_else(|| self.meanwhile())?;
        self.is_still_own(own, page)
    }

    /// A drive that is to be put in a slot gets a page, and is changed by this server only.
    pub(in crate::manage) async fn own_drive(&self, drive: &Watched<E>) -> Result<(), DriveError> {
        let Some(own) = &self.owner else { return Ok(()) };
        self.guard_drive(own, drive).await?;
        drive.lease(&own.lease);
        Ok(())
    }

    /// Writes the page of a drive, which is changed by this server only from then on.
    async fn guard_drive(&self, own: &Ownership, drive: &Watched<E>) -> Result<(), DriveError> {
        unguard(drive);
        self.write_page(own, drive).await?;
        let guard = own.guard(self.record().array);
        drive.reached().inspect(|reached| reached.guard(Some(guard)));
        self.name_anew(own, drive).await
    }

    /// Writes the page of a drive that is reached by connections, as there may be others by now
    /// than it names.
    pub(super) async fn name_anew(
        &self,
        own: &Ownership,
        drive: &Watched<E>,
    ) -> Result<(), DriveError> {
        match drive.reached() {
            Some(_) => self.write_page(own, drive).await,
            None => Ok(()),
        }
    }

    /// Leaves no record and no signature on a drive. What says that a drive of a shared array is
    /// this server's goes last, or stays, if it `keeps` that: it is to be the array's.
    pub(in crate::manage) async fn erase(
        &self,
        drive: &Watched<E>,
        keeps: bool,
    ) -> Result<(), DriveError> {
        match self.owner {
            Some(_) if keeps => store::erase_all_but_page(drive).await,
            Some(_) => store::erase_page_last(drive).await,
            None => store::erase(drive).await,
        }
    }

    /// Has nothing more be changed on a drive that the array lets go: nobody would name the
    /// connections that come.
    pub(in crate::manage) fn bar(&self, drive: &Watched<E>) {
        let Some(own) = &self.owner else { return };
        let guard = own.guard(self.record().array);
        drive.reached().inspect(|reached| reached.bar(&guard));
    }
}
