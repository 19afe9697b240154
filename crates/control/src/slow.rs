//! Changes that take long: their clients are told where the answer will be (DSP0266, "Asynchronous
//! operations").
//!
//! | a change is       | becomes     | when                                                        |
//! |-------------------|-------------|-------------------------------------------------------------|
//! | under way         | answered    | it ends within [`PATIENCE`]                                 |
//! | under way         | a slow one  | it does not, or its client asks not to wait; there is room  |
//! | a slow one        | ended       | it comes to its end: its answer is kept                     |
//! | ended             | (forgotten) | [`KEPT`] seconds passed, or another slow one needs its room |
//!
//! Invariants
//! - A change goes on to its end, whoever waits for it.
//! - Its answer is for who asked for it, and for administrators.
//! - At most [`MOST`] are known. While all of them are under way, clients wait for their answers.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::indexing_slicing
    )
)]

use crate::act;
use crate::api::SlowRequest;
use crate::caller::{Caller, Role};
use crate::http::Asked;
use crate::manager::Manager;
use crate::reply::Told;
use crate::snapshot::{now, random_uuid};
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::Poll;
use core::time::Duration;
use hyper::StatusCode;
use hyper::header::HeaderMap;
use redfish::error::{Base, Refusal};
use redfish::routes::{self, Match, Method};
use redfish::service::{self, uri};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::time::timeout;

/// How long a client waits for its answer, unless it asks not to.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many seconds an answer is kept.
const KEPT: u64 = 5 * 60;

/// How many slow changes are known.
const MOST: usize = 64;

/// The preference of a client that does not wait (RFC 7240, section 4.1).
const ASYNC: &str = "respond-async";

/// What a change is answered.
type Outcome = Result<Told, Refusal>;

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
    fn begin(&self, caller: &Caller, method: Method, uri: &str) -> Option<String> {
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
    fn end(&self, id: &str, outcome: Outcome) {
        if let Some(one) = self.all().iter_mut().find(|one| one.told.id == id) {
            one.told.ended = Some((now(), outcome.is_ok()));
            one.outcome = Some(outcome);
        }
    }

    /// The answer, for this caller; `None` while there is none.
    fn outcome(&self, id: &str, caller: &Caller) -> Result<Option<Outcome>, Refusal> {
        let all = self.all();
        let one = all.iter().find(|one| one.told.id == id);
        let one = one.ok_or_else(|| Refusal::not_found(&uri::task_monitor(id)))?;
        // On the socket and elsewhere the same name is of two.
        let is_own = one.caller.name == caller.name
            && (one.caller.from == "socket") == (caller.from == "socket");
        match is_own || caller.role == Role::Administrator {
            true => Ok(one.outcome.clone()),
            false => Err(Refusal::base(&Base::INSUFFICIENT_PRIVILEGE, &[])),
        }
    }
}

/// Carries a change out, or begins to.
pub async fn carry_out(
    manager: &Arc<Manager>,
    asked: &Asked,
    caller: &Caller,
    found: &Match,
    method: Method,
) -> Outcome {
    let patience = if is_impatient(asked.headers()) { Duration::ZERO } else { PATIENCE };
    carry_out_within(patience, manager, asked, caller, (found, method)).await
}

/// Whether a client asks not to wait.
fn is_impatient(headers: &HeaderMap) -> bool {
    let values = headers.get_all("prefer").into_iter().filter_map(|value| value.to_str().ok());
    let mut all = values.flat_map(|value| value.split(','));
    all.any(|one| one.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(ASYNC))
}

/// The same, for a client that waits so long.
async fn carry_out_within(
    patience: Duration,
    manager: &Arc<Manager>,
    asked: &Asked,
    caller: &Caller,
    (found, method): (&Match, Method),
) -> Outcome {
    let body = asked.body().clone().unwrap_or_default();
    let mut work: Pin<Box<dyn Future<Output = Outcome> + Send>> = Box::pin({
        let (manager, caller, found) = (manager.clone(), caller.clone(), found.clone());
        let headers = asked.headers().clone();
        async move { act::carry_out(&manager, &caller, &found, method, &headers, &body).await }
    });
    // What needs no wait, such as a refusal, is nobody's task.
    let at_once = poll_fn(|cx| {
        Poll::Ready(match work.as_mut().poll(cx) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        })
    });
    if let Some(outcome) = at_once.await {
        return outcome;
    }
    // Whoever asked may go meanwhile.
    let mut work = tokio::spawn(work);
    let broken = |_| Err(Refusal::internal());
    if let Ok(done) = timeout(patience, &mut work).await {
        return done.unwrap_or_else(broken);
    }
    let Some(id) = manager.slow.begin(caller, method, asked.uri().path()) else {
        return work.await.unwrap_or_else(broken);
    };
    manager.refresh();
    tokio::spawn({
        let (manager, id) = (manager.clone(), id.clone());
        async move {
            let outcome = work.await.unwrap_or_else(broken);
            manager.slow.end(&id, outcome);
            manager.refresh();
        }
    });
    Ok(accepted(manager, &id))
}

/// A change goes on.
fn accepted(manager: &Manager, id: &str) -> Told {
    let task = routes::find(&uri::task(id));
    let task = task.and_then(|found| service::render(&manager.view(), &found));
    let mut told = task.map_or_else(Told::nothing, Told::json);
    told.status = StatusCode::ACCEPTED;
    told.location = Some(uri::task_monitor(id));
    told
}

/// What a GET of a slow change's monitor is answered: that it goes on, or what the change is.
pub fn monitor(manager: &Manager, caller: &Caller, id: &str) -> Outcome {
    let outcome = manager.slow.outcome(id, caller)?;
    outcome.unwrap_or_else(|| Ok(accepted(manager, id)))
}

#[cfg(test)]
#[path = "slow_tests.rs"]
mod tests;
