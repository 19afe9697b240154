//! Tokens: a change that destroys data is done once somebody sends back the token of its plan.
//!
//! | a token is | becomes  | when                                                                 |
//! |------------|----------|----------------------------------------------------------------------|
//! | given      | used     | its request came from its caller, and the state is as planned        |
//! | given      | outdated | the same, but the state is another                                   |
//! | given      | expired  | [`LIFE`] has gone by                                                 |
//!
//! One that is used, outdated or expired stays so, until it is forgotten.
//!
//! Invariants
//! - A token confirms one change at most: it is used up before the change begins.
//! - It confirms what its caller was told, and nothing else: the caller, the request (method, URI,
//!   and what its body says) and the state that the plan was made of are those that it was given
//!   for. Another caller, or another request, leaves it as it was.
//! - There are [`MOST`] at most, [`MOST_OF_ONE`] of one caller: the oldest of whoever has most go.
//!   So nobody makes the daemon forget those of somebody who has fewer.
//! - What is kept is a digest: neither memory nor a log shows a token, and how long a comparison
//!   takes says nothing of one.

use crate::caller::Caller;
use crate::chance;
use crate::digest::{Sum, sum};
use crate::lock::lock;
use crate::snapshot::random;
use redfish::error::Unconfirmed;
use redfish::routes::Method;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How long a token can be used.
pub const LIFE: Duration = Duration::from_secs(600);

/// So many tokens are known at one time.
const MOST: usize = 1024;

/// So many of one caller.
const MOST_OF_ONE: usize = 64;

/// Whether two digests are the same. Takes as long wherever they differ.
fn is_same(one: &Sum, other: &Sum) -> bool {
    one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// Who asks, and for what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    caller: Sum,
    request: Sum,
}

impl Asked {
    /// By this caller, with a body that is JSON or empty.
    pub fn new(caller: &Caller, method: Method, uri: &str, body: &[u8]) -> Self {
        let said = match serde_json::from_slice::<Value>(body) {
            Ok(body) => body.to_string(),
            Err(_) => "{}".to_owned(),
        };
        let method = format!("{method:?}");
        let caller = format!("{:?}", caller.identity());
        Self {
            caller: sum([caller.as_bytes()]),
            request: sum([method.as_bytes(), uri.as_bytes(), said.as_bytes()]),
        }
    }
}

/// How a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Given,
    Used,
    Outdated,
}

struct Token {
    digest: Sum,
    asked: Asked,
    planned: Sum,
    since: Instant,
    state: State,
}

/// All tokens, and whether they are needed.
pub struct Confirm {
    required: AtomicBool,
    /// The oldest first.
    tokens: Mutex<Vec<Token>>,
}

impl Confirm {
    /// Without tokens.
    pub fn new(required: bool) -> Self {
        Self { required: AtomicBool::new(required), tokens: Mutex::default() }
    }

    /// Whether changes that destroy data need a token.
    pub fn is_required(&self) -> bool {
        self.required.load(Ordering::Acquire)
    }

    /// From now on they do, or do not.
    pub fn set_required(&self, required: bool) {
        self.required.store(required, Ordering::Release);
    }

    fn tokens(&self) -> MutexGuard<'_, Vec<Token>> {
        lock(&self.tokens)
    }

    /// A new token for what is asked, planned of this state.
    pub fn give(&self, asked: &Asked, planned: Sum, now: Instant) -> String {
        let token = chance::hex(&random::<32>());
        let mut tokens = self.tokens();
        let own = |token: &Token| token.asked.caller == asked.caller;
        let is_full = tokens.iter().filter(|token| own(token)).count() >= MOST_OF_ONE;
        if is_full && let Some(oldest) = tokens.iter().position(own) {
            tokens.remove(oldest);
        } else if tokens.len() >= MOST {
            let count = |one: &Token| {
                tokens.iter().filter(|token| token.asked.caller == one.asked.caller).count()
            };
            // The oldest of whoever has most.
            let most = tokens.iter().map(count).max().unwrap_or(0);
            if let Some(oldest) = tokens.iter().position(|token| count(token) == most) {
                tokens.remove(oldest);
            }
        }
        let (digest, asked) = (sum([token.as_bytes()]), asked.clone());
        tokens.push(Token { digest, asked, planned, since: now, state: State::Given });
        token
    }

    /// Uses a token up for what is asked, while the state is this.
    ///
    /// # Errors
    /// It does not confirm that.
    pub fn take(
        &self,
        token: Option<&str>,
        asked: &Asked,
        planned: Sum,
        now: Instant,
    ) -> Result<(), Unconfirmed> {
        let digest = sum([token.ok_or(Unconfirmed::NotAsked)?.as_bytes()]);
        let mut tokens = self.tokens();
        // All are looked at, whichever it is.
        let mut found = None;
        for token in tokens.iter_mut() {
            if is_same(&token.digest, &digest) {
                found = Some(token);
            }
        }
        let token = found.ok_or(Unconfirmed::Unknown)?;
        if !is_same(&token.asked.caller, &asked.caller) {
            return Err(Unconfirmed::OtherCaller);
        }
        if !is_same(&token.asked.request, &asked.request) {
            return Err(Unconfirmed::OtherRequest);
        }
        match token.state {
            State::Used => return Err(Unconfirmed::Used),
            State::Outdated => return Err(Unconfirmed::Outdated),
            State::Given if now.saturating_duration_since(token.since) >= LIFE => {
                return Err(Unconfirmed::Expired);
            }
            State::Given => {}
        }
        if !is_same(&token.planned, &planned) {
            token.state = State::Outdated;
            return Err(Unconfirmed::Outdated);
        }
        token.state = State::Used;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Role;
    use crate::peer::Origin;

    fn caller(name: &str, from: &str) -> Caller {
        let role = Some(Role::Administrator);
        let origin = match from.parse() {
            Ok(address) => Origin::Network(address),
            Err(_) => Origin::Socket(0),
        };
        Caller { name: name.into(), role, from: from.into(), origin, ..Caller::default() }
    }

    fn asked(name: &str, body: &str) -> Asked {
        Asked::new(&caller(name, "socket"), Method::Post, "/a", body.as_bytes())
    }

    const STATE: Sum = [7; 32];

    #[test]
    fn a_token_is_good_once() {
        let (confirm, now) = (Confirm::new(true), Instant::now());
        let asked = asked("ann", "{}");
        let token = confirm.give(&asked, STATE, now);
        let other = confirm.give(&asked, STATE, now);
        assert_ne!(token, other);
        assert_eq!(token.len(), 64);
        let take = |token: &str| confirm.take(Some(token), &asked, STATE, now);
        assert_eq!(confirm.take(None, &asked, STATE, now), Err(Unconfirmed::NotAsked));
        assert_eq!(take("no such"), Err(Unconfirmed::Unknown));
        assert_eq!(take(&token[1..]), Err(Unconfirmed::Unknown));
        assert_eq!(take(&token), Ok(()));
        assert_eq!(take(&token), Err(Unconfirmed::Used));
        assert_eq!(take(&other), Ok(()), "each is used up by itself");
    }

    #[test]
    fn a_token_is_good_for_ten_minutes() {
        let (confirm, now) = (Confirm::new(true), Instant::now());
        let asked = asked("ann", "{}");
        let [token, other] = [now, now].map(|now| confirm.give(&asked, STATE, now));
        let take = |token: &str, now| confirm.take(Some(token), &asked, STATE, now);
        assert_eq!(take(&token, now + LIFE), Err(Unconfirmed::Expired));
        assert_eq!(take(&other, now + LIFE - Duration::from_millis(1)), Ok(()));
    }

    #[test]
    fn a_token_is_good_for_its_caller_and_request_only() {
        let (confirm, now) = (Confirm::new(true), Instant::now());
        let own = asked("ann", r#"{"A": 1, "B": [2]}"#);
        let token = confirm.give(&own, STATE, now);
        let take = |asked: &Asked| confirm.take(Some(&token), asked, STATE, now);
        let ann = caller("ann", "socket");
        let as_ann = |method, uri, body: &str| Asked::new(&ann, method, uri, body.as_bytes());
        let body = r#"{"A": 1, "B": [2]}"#;
        assert_eq!(take(&asked("bob", body)), Err(Unconfirmed::OtherCaller));
        let away = caller("ann", "192.0.2.1");
        let away = Asked::new(&away, Method::Post, "/a", body.as_bytes());
        assert_eq!(take(&away), Err(Unconfirmed::OtherCaller));
        // An account of this name is another one with each password.
        let account =
            |generation| Caller { account: Some("ann".into()), generation, ..ann.clone() };
        let of_account = |caller: &Caller| Asked::new(caller, Method::Post, "/a", body.as_bytes());
        let token = confirm.give(&of_account(&account(1)), STATE, now);
        let take_again =
            |generation| confirm.take(Some(&token), &of_account(&account(generation)), STATE, now);
        assert_eq!(take_again(2), Err(Unconfirmed::OtherCaller));
        assert_eq!(take_again(1), Ok(()));
        for other in [
            as_ann(Method::Delete, "/a", body),
            as_ann(Method::Post, "/b", body),
            as_ann(Method::Post, "/a", r#"{"A": 1, "B": [3]}"#),
            as_ann(Method::Post, "/a", r#"{"A": 1}"#),
            as_ann(Method::Post, "/a", ""),
        ] {
            assert_eq!(take(&other), Err(Unconfirmed::OtherRequest));
        }
        // Nobody else's attempt costs the token, and how a body is written is no matter.
        assert_eq!(take(&as_ann(Method::Post, "/a", r#" {"B":[2],"A":1} "#)), Ok(()));
    }

    #[test]
    fn another_state_ends_a_token() {
        let (confirm, now) = (Confirm::new(true), Instant::now());
        let asked = asked("ann", "");
        let token = confirm.give(&asked, STATE, now);
        let take = |state| confirm.take(Some(&token), &asked, state, now);
        assert_eq!(take([8; 32]), Err(Unconfirmed::Outdated));
        assert_eq!(take(STATE), Err(Unconfirmed::Outdated), "it stays so");
    }

    #[test]
    fn tokens_are_bounded_and_nobody_pushes_out_anothers() {
        let (confirm, now) = (Confirm::new(true), Instant::now());
        let ann = asked("ann", "");
        let own = confirm.give(&ann, STATE, now);
        let bob = asked("bob", "");
        let bobs: Vec<String> =
            (0..2 * MOST_OF_ONE).map(|_| confirm.give(&bob, STATE, now)).collect();
        assert_eq!(confirm.tokens().len(), 1 + MOST_OF_ONE);
        let take = |token: &String, asked| confirm.take(Some(token), asked, STATE, now);
        assert_eq!(take(&bobs[0], &bob), Err(Unconfirmed::Unknown), "the oldest went");
        assert_eq!(take(&bobs[MOST_OF_ONE], &bob), Ok(()));
        assert_eq!(take(&own, &ann), Ok(()));
        for number in 0..MOST {
            confirm.give(&asked(&number.to_string(), ""), STATE, now);
        }
        assert_eq!(confirm.tokens().len(), MOST);
    }
}
