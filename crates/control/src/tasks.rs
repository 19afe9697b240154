//! Changes that take long, and their answers, until these are fetched or too old.
//!
//! | a slow change is | becomes     | when                                                        |
//! |------------------|-------------|-------------------------------------------------------------|
//! | under way        | ended       | it comes to its end: its answer is kept                     |
//! | ended            | (forgotten) | [`KEPT`] seconds passed, or another slow one needs its room |
//!
//! Invariants
//! - Its answer is for who asked for it, and for administrators.
//! - At most [`MOST`] are known.

use crate::api::SlowRequest;
use crate::caller::{Caller, Role};
use crate::reply::Told;
use crate::snapshot::{now, random_uuid};
use redfish::error::{Base, Refusal};
use redfish::routes::Method;
use redfish::service::uri;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

/// How many seconds an answer is kept.
const KEPT: u64 = 5 * 60;

/// How many slow changes are known.
const MOST: usize = 64;

/// What a change is answered.
pub type Outcome = Result<Told, Refusal>;

/// A slow change.
struct Slow {
    told: SlowRequest,
    caller: Caller,
    outcome: Option<Outcome>,
}

/// All of them, in the order in which they began to be slow.
#[derive(Default)]
pub struct SlowOnes {
    all: Mutex<VecDeque<Slow>>,
}

impl SlowOnes {
    fn all(&self) -> MutexGuard<'_, VecDeque<Slow>> {
        self.all.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// For the view, without those whose time is over.
    pub fn list(&self, now: u64) -> Vec<SlowRequest> {
        let mut all = self.all();
        all.retain(|one| one.told.ended.is_none_or(|(at, _)| at.saturating_add(KEPT) >= now));
        all.iter().map(|one| one.told.clone()).collect()
    }

    /// A change is slow; its identifier, if there is room.
    pub fn begin(&self, caller: &Caller, method: Method, uri: &str) -> Option<String> {
        let mut all = self.all();
        if all.len() >= MOST {
            let oldest = all.iter().position(|one| one.outcome.is_some())?;
            all.remove(oldest);
        }
        let id = random_uuid().to_string();
        let (began, method) = (now(), method.word().to_owned());
        let told = SlowRequest { id: id.clone(), method, uri: uri.to_owned(), began, ended: None };
        all.push_back(Slow { told, caller: caller.clone(), outcome: None });
        Some(id)
    }

    /// It came to its end.
    pub fn end(&self, id: &str, outcome: Outcome) {
        if let Some(one) = self.all().iter_mut().find(|one| one.told.id == id) {
            one.told.ended = Some((now(), outcome.is_ok()));
            one.outcome = Some(outcome);
        }
    }

    /// The answer, for this caller; `None` while there is none.
    pub fn outcome(&self, id: &str, caller: &Caller) -> Result<Option<Outcome>, Refusal> {
        let all = self.all();
        let one = all.iter().find(|one| one.told.id == id);
        let one = one.ok_or_else(|| Refusal::not_found(&uri::task_monitor(id)))?;
        // A user of the machine and an account may have one name.
        let is_own = one.caller.name == caller.name
            && one.caller.account == caller.account
            && (one.caller.from == "socket") == (caller.from == "socket");
        match is_own || caller.role == Some(Role::Administrator) {
            true => Ok(one.outcome.clone()),
            false => Err(Refusal::base(&Base::INSUFFICIENT_PRIVILEGE, &[])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_known_and_so_long() {
        let (slow, own) = (SlowOnes::default(), caller());
        let ids: Vec<String> =
            (0..MOST).map(|_| slow.begin(&own, Method::Post, "/a").expect("has room")).collect();
        assert_eq!(slow.begin(&own, Method::Post, "/b"), None, "all are under way");
        slow.end(&ids[1], Err(Refusal::not_allowed()));
        let last = slow.begin(&own, Method::Delete, "/b").expect("has room");
        assert_eq!(slow.outcome(&ids[1], &own).err().map(|refusal| refusal.status), Some(404));
        assert_eq!(slow.begin(&own, Method::Post, "/c"), None);
        slow.end(&last, Ok(Told::nothing()));
        let listed = |at: u64| slow.list(at).iter().any(|one| one.id == last);
        assert!(listed(now()) && !listed(now() + KEPT + 1));
        assert_eq!(slow.list(now()).len(), MOST - 1, "those under way stay");
    }

    fn caller() -> Caller {
        let role = Some(Role::Operator);
        Caller { name: "ann".into(), role, from: "192.0.2.1".into(), ..Caller::default() }
    }
}
