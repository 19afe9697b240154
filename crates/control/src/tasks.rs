//! Changes that take long, and their answers, until these are fetched or too old.
//!
//! | a slow change is | becomes     | when                                                        |
//! |------------------|-------------|-------------------------------------------------------------|
//! | under way        | ended       | it comes to its end: its answer is kept                     |
//! | ended            | (forgotten) | [`KEPT`] seconds passed, or another slow one needs its room |
//! | ended            | (forgotten) | who may have its answer deletes its monitor                 |
//!
//! Invariants
//! - Its answer is for who asked for it, and for administrators.
//! - At most [`MOST`] are known.

use crate::caller::{Caller, Identity, Role};
use crate::lock::lock;
use crate::reply::Told;
use crate::snapshot::{now, random_uuid};
use redfish::error::{Base, Refusal};
use redfish::messages as say;
use redfish::routes::Method;
use redfish::service::uri;
use redfish::view::{Error, SlowRequest};
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
    asked_by: Identity,
    outcome: Option<Outcome>,
}

impl Slow {
    /// Whether somebody may have its answer.
    fn is_for(&self, caller: &Caller) -> bool {
        self.asked_by == caller.identity() || caller.role == Some(Role::Administrator)
    }
}

/// All of them, in the order in which they began to be slow.
#[derive(Default)]
pub struct SlowOnes {
    all: Mutex<VecDeque<Slow>>,
}

impl SlowOnes {
    fn all(&self) -> MutexGuard<'_, VecDeque<Slow>> {
        lock(&self.all)
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
        all.push_back(Slow { told, asked_by: caller.identity(), outcome: None });
        Some(id)
    }

    /// It came to its end.
    pub fn end(&self, id: &str, outcome: Outcome) {
        if let Some(one) = self.all().iter_mut().find(|one| one.told.id == id) {
            one.told.ended = Some((now(), outcome.is_ok()));
            one.outcome = Some(outcome);
        }
    }

    /// Forgets an answer, for who may have it.
    pub fn forget(&self, id: &str, caller: &Caller) -> Result<(), Refusal> {
        if self.outcome(id, caller)?.is_none() {
            return Err(Error::new(&say::CHANGE_UNDER_WAY, &[]).into());
        }
        self.all().retain(|one| one.told.id != id);
        Ok(())
    }

    /// The answer, for this caller; `None` while there is none.
    pub fn outcome(&self, id: &str, caller: &Caller) -> Result<Option<Outcome>, Refusal> {
        let all = self.all();
        let one = all.iter().find(|one| one.told.id == id);
        let one = one.ok_or_else(|| Refusal::not_found(&uri::task_monitor(id)))?;
        match one.is_for(caller) {
            true => Ok(one.outcome.clone()),
            false => Err(Refusal::base(&Base::INSUFFICIENT_PRIVILEGE, &[])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Origin;

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

    #[test]
    fn who_asked_may_have_an_answer_forgotten_once_there_is_one() {
        let (slow, own) = (SlowOnes::default(), caller());
        let id = slow.begin(&own, Method::Post, "/a").expect("has room");
        let status = |caller: &Caller| slow.forget(&id, caller).map_err(|refusal| refusal.status);
        assert_eq!(
            status(&own),
            Err(Refusal::from(Error::new(&say::CHANGE_UNDER_WAY, &[])).status)
        );
        slow.end(&id, Err(Refusal::not_allowed()));
        let other = Caller { name: "bob".into(), ..own.clone() };
        assert_eq!(status(&other), Err(403));
        assert_eq!(status(&own), Ok(()));
        assert_eq!(status(&own), Err(404));
        assert!(slow.list(now()).is_empty());
    }

    #[test]
    fn an_answer_is_for_who_asked_and_not_for_who_has_the_name_now() {
        let slow = SlowOnes::default();
        let own = Caller { account: Some("ann".into()), generation: 1, ..caller() };
        let id = slow.begin(&own, Method::Post, "/a").expect("has room");
        let is_let_in = |caller: &Caller| slow.outcome(&id, caller).is_ok();
        let elsewhere = Caller { origin: Origin::Stranger(1), from: "x".into(), ..own.clone() };
        assert!(is_let_in(&own) && is_let_in(&elsewhere));
        let again = Caller { generation: 2, ..own.clone() };
        let user = Caller { account: None, ..own.clone() };
        assert!(!is_let_in(&again) && !is_let_in(&user) && !is_let_in(&caller()));
        assert!(is_let_in(&Caller { role: Some(Role::Administrator), ..again }));
        // A user of the machine by number.
        let id = slow.begin(&user, Method::Post, "/a").expect("has room");
        let other = Caller { origin: Origin::Socket(7), ..user.clone() };
        assert!(slow.outcome(&id, &user).is_ok() && slow.outcome(&id, &other).is_err());
    }

    fn caller() -> Caller {
        let role = Some(Role::Operator);
        Caller { name: "ann".into(), role, from: "192.0.2.1".into(), ..Caller::default() }
    }
}
