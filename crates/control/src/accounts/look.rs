//! What a change of accounts or sessions would do, without doing it.

use super::kept::{Account, Kept};
use super::{Accounts, Place, no_state};
use crate::api::Error;
use crate::snapshot::now;
use redfish::access;
use redfish::change::{AccessChange, NewAccount};

/// Stands for what is kept of a password that was not computed.
const NEW: &str = "new";

impl Accounts {
    /// What a change would do besides what it says.
    ///
    /// # Errors
    /// It would be refused.
    pub fn look(&self, change: &AccessChange) -> Result<Vec<String>, Error> {
        if let Some(problem) = self.problem() {
            return Err(problem);
        }
        if matches!(self.place, Place::None) {
            return Err(no_state());
        }
        let mut kept = Kept::clone(&self.kept());
        kept.expire(now());
        let before = kept.sessions.len();
        match change {
            AccessChange::Create(new) => {
                let NewAccount { name, role, enabled, must_change, .. } = new.clone();
                let shown = access::Account { name, role, enabled, must_change };
                kept.create(Account { shown, password: NEW.to_owned(), created: now() })?;
            }
            AccessChange::Change { name, change } => {
                let password = change.password.as_ref().map(|_| NEW.to_owned());
                kept.change(name, change, password)?;
            }
            AccessChange::Delete { name } => kept.delete(name)?,
            AccessChange::LogIn { .. }
            | AccessChange::LogOut { .. }
            | AccessChange::KeepSessions { .. } => {}
        }
        Ok(match before.saturating_sub(kept.sessions.len()) {
            0 => Vec::new(),
            1 => vec!["end its session".to_owned()],
            ended => vec![format!("end its {ended} sessions")],
        })
    }
}
