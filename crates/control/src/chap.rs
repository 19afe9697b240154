//! Secrets of CHAP: one file of the state directory, as records on drives hold none.
//!
//! Invariants
//! - A secret is in that file and in memory only, and goes to `palisade services` alone.
//! - What could not be read is not written over: a person has to see to it.
//! - A secret counts once it is in the file.

use crate::lock::lock;
use crate::state::{CHAP, State};
use redfish::access::Secret;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

/// The version of the file.
const VERSION: u32 = 1;

/// What the file holds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    version: u32,
    /// By export: its array's UUID and number, and the number of its secret.
    secrets: BTreeMap<String, String>,
}

type Secrets = BTreeMap<String, Secret>;

/// All secrets, or why there are none.
#[derive(Clone)]
pub struct Chap {
    state: Option<Arc<State>>,
    known: Arc<Mutex<Result<Secrets, String>>>,
    /// Held while the file is written.
    writing: Arc<tokio::sync::Mutex<()>>,
}

impl Chap {
    /// Those of a state directory. Waits for the file system.
    pub fn read(state: Option<Arc<State>>) -> Self {
        let read = state.as_deref().map_or_else(
            || Err("the daemon has no state directory (state = DIR)".to_owned()),
            |state| {
                let named = |why: String| format!("{}: {why}", state.dir().join(CHAP).display());
                file(state).map_err(named)
            },
        );
        Self { state, known: Arc::new(Mutex::new(read)), writing: Arc::default() }
    }

    /// That of an export.
    ///
    /// # Errors
    /// There is none: why.
    pub fn of(&self, export: &str) -> Result<Secret, String> {
        let known = lock(&self.known);
        let all = known.as_ref().map_err(|why| format!("its CHAP secret is not here: {why}"))?;
        let missing = || {
            "its CHAP secret is not here; to give it, create the export again as it is".to_owned()
        };
        all.get(export).cloned().ok_or_else(missing)
    }

    /// Keeps that of an export.
    ///
    /// # Errors
    /// It can't be kept.
    pub async fn set(&self, export: String, secret: Secret) -> Result<(), String> {
        self.change(|all| drop(all.insert(export, secret))).await
    }

    /// Forgets those of exports.
    pub async fn forget(&self, is_of: impl Fn(&str) -> bool) {
        let is_known = |all: &Secrets| all.keys().any(|key| is_of(key));
        if lock(&self.known).as_ref().is_ok_and(is_known) {
            // What stays is of no export: the next one's secret has another number.
            let _ = self.change(|all| all.retain(|key, _| !is_of(key))).await;
        }
    }

    async fn change(&self, change: impl FnOnce(&mut Secrets)) -> Result<(), String> {
        let _writing = self.writing.lock().await;
        let mut all = lock(&self.known).clone()?;
        change(&mut all);
        let state = self.state.clone().ok_or("there is no state directory")?;
        let secrets = all.iter().map(|(of, secret)| (of.clone(), secret.reveal().to_owned()));
        let kept = Kept { version: VERSION, secrets: secrets.collect() };
        let write = move || state.replace(CHAP, &serde_json::to_vec(&kept)?);
        let written = tokio::task::spawn_blocking(write).await;
        written.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(|e| e.to_string())?;
        *lock(&self.known) = Ok(all);
        Ok(())
    }
}

fn file(state: &State) -> Result<Secrets, String> {
    let Some(bytes) = state.read(CHAP).map_err(|error| error.to_string())? else {
        return Ok(Secrets::new());
    };
    // What is wrong with it may quote it.
    let kept: Kept = serde_json::from_slice(&bytes)
        .map_err(|error| format!("line {}, column {}", error.line(), error.column()))?;
    if kept.version != VERSION {
        return Err(format!("it is of version {}", kept.version));
    }
    Ok(kept.secrets.into_iter().map(|(of, secret)| (of, Secret::new(secret))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[tokio::test]
    async fn a_secret_is_kept_and_forgotten() {
        let place = tempfile::tempdir().expect("a folder");
        let dir = place.path().join("state");
        let open = || Some(Arc::new(State::open(&dir).expect("opened")));
        let chap = Chap::read(open());
        assert!(chap.of("a-1").expect_err("none").contains("create the export again"));
        chap.set("a-1".into(), Secret::new("abcdefghijkl")).await.expect("kept");
        chap.set("b-1".into(), Secret::new("other-secret")).await.expect("kept");
        let mode = std::fs::metadata(dir.join(CHAP)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        chap.forget(|key| key == "b-1").await;
        drop(chap);
        let chap = Chap::read(open());
        assert_eq!(chap.of("a-1").expect("kept").reveal(), "abcdefghijkl");
        assert!(chap.of("b-1").is_err());
    }

    #[tokio::test]
    async fn what_can_not_be_read_stays() {
        let place = tempfile::tempdir().expect("a folder");
        let dir = place.path().join("state");
        let state = Arc::new(State::open(&dir).expect("opened"));
        for text in ["{\"hidden\":", "{\"version\":9,\"secrets\":{}}"] {
            state.replace(CHAP, text.as_bytes()).expect("written");
            let chap = Chap::read(Some(state.clone()));
            let why = chap.of("a-1").expect_err("not read");
            assert!(why.contains("chap.json") && !why.contains("hidden"), "{why}");
            chap.set("a-1".into(), Secret::new("abcdefghijkl")).await.expect_err("not read");
            assert_eq!(std::fs::read(dir.join(CHAP)).expect("there"), text.as_bytes());
        }
        let chap = Chap::read(None);
        assert!(chap.set("a".into(), Secret::new("x")).await.expect_err("none").contains("state"));
    }
}
