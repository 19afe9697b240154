//! What a change of accounts or sessions would do, without doing it.

use super::kept::{Account, Kept};
use redfish::access;
use redfish::change::{AccessChange, NewAccount};
use redfish::view::Error;

/// Stands for what is kept of a password that was not computed.
const NEW: &str = "new";

/// What a change would do besides what it says; `kept` is what it would be made of.
///
/// # Errors
/// It would be refused.
pub fn look(mut kept: Kept, change: &AccessChange, now: u64) -> Result<Vec<String>, Error> {
    kept.expire(now);
    let before = kept.sessions.len();
    match change {
        AccessChange::Create(new) => {
            let NewAccount { name, role, enabled, must_change, .. } = new.clone();
            let shown = access::Account { name, role, enabled, must_change, generation: 0 };
            kept.create(Account { shown, password: NEW.to_owned(), generation: 0, created: now })?;
        }
        AccessChange::Change { name, change } => {
            kept.change(name, change, change.password.as_ref().map(|_| NEW.to_owned()))?;
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
