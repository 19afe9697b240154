//! Changes that take long: their clients are told where the answer will be (DSP0266, "Asynchronous
//! operations"). [`crate::tasks`] keeps these.
//!
//! | a change is | becomes  | when                                                              |
//! |-------------|----------|-------------------------------------------------------------------|
//! | under way   | answered | it ends within [`PATIENCE`]                                       |
//! | under way   | slow     | it does not, or its client asks not to wait; there is room        |
//!
//! Invariants
//! - A change goes on to its end, whoever waits for it.
//! - While there is no room for another slow one, clients wait for their answers.
//! - Nobody stops one: it may be half done.
//! - A login is never slow: nobody else reads the token of a session.

use crate::act;
use crate::caller::Caller;
use crate::manager::Manager;
use crate::reply::Told;
use crate::tasks::Outcome;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::Poll;
use core::time::Duration;
use hyper::body::Bytes;
use hyper::header::HeaderMap;
use hyper::{Request, StatusCode};
use redfish::error::{Base, Refusal};
use redfish::routes::{self, Match, Method};
use redfish::service::{self, uri};
use redfish::told::PLAN_HEADER;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long a client waits for its answer, unless it asks not to.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a client waits for a session.
const LOGIN: Duration = Duration::from_secs(25);

/// The preference of a client that does not wait (RFC 7240, section 4.1).
const ASYNC: &str = "respond-async";

/// Carries a change out, or begins to.
pub async fn carry_out(
    manager: &Arc<Manager>,
    asked: &Request<Bytes>,
    caller: &Caller,
    found: &Match,
    method: Method,
) -> Outcome {
    let patience = if is_impatient(asked.headers()) { Duration::ZERO } else { PATIENCE };
    carry_out_within(patience, manager, asked, caller, (found, method)).await
}

/// Begins a session, for a client that waits. It is nobody's task: what is told opens the session.
/// A session whose client has gone, or waited for too long, ends.
///
/// # Errors
/// Why there is no session.
pub async fn log_in(
    manager: &Arc<Manager>,
    asked: &Request<Bytes>,
    caller: &Caller,
    found: &Match,
) -> Outcome {
    let body = asked.body().clone();
    let (manager, caller, found) = (manager.clone(), caller.clone(), found.clone());
    let headers = asked.headers().clone();
    let (answer, answered) = oneshot::channel();
    tokio::spawn(async move {
        let outcome =
            act::carry_out(&manager, &caller, &found, Method::Post, &headers, &body).await;
        if let Err(Ok(told)) = answer.send(outcome)
            && let Some(session) = told.location.as_deref().and_then(routes::find)
        {
            // Nobody has its token.
            let _ = manager.accounts().end(session.id(0)).await;
        }
    });
    match timeout(LOGIN, answered).await {
        Ok(outcome) => outcome.unwrap_or_else(|_| Err(Refusal::internal())),
        Err(_) => {
            let wait = LOGIN.as_secs();
            let refusal = Refusal::base(&Base::SERVICE_UNAVAILABLE, &[&wait.to_string()]);
            Err(refusal.after(wait))
        }
    }
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
    asked: &Request<Bytes>,
    caller: &Caller,
    (found, method): (&Match, Method),
) -> Outcome {
    let body = asked.body().clone();
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
    if !patience.is_zero()
        && let Ok(done) = timeout(patience, &mut work).await
    {
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

/// Forgets what a slow change was answered (DSP0266, "Asynchronous operations": a DELETE of its
/// monitor).
pub async fn forget(
    manager: &Arc<Manager>,
    caller: &Caller,
    found: &Match,
    headers: &HeaderMap,
) -> Outcome {
    let outcome = match headers.contains_key(PLAN_HEADER) {
        true => Err(Refusal::base(&Base::HEADER_INVALID, &[PLAN_HEADER])),
        false => manager.slow.forget(found.id(0), caller),
    };
    if let Err(refusal) = &outcome {
        let request = act::words(Method::Delete, found);
        manager.audit().refused(caller, &request, "", refusal).await;
    }
    manager.refresh();
    outcome.map(|()| Told::nothing())
}

#[cfg(test)]
#[path = "slow_tests.rs"]
mod tests;
