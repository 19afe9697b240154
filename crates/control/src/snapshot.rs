//! What the daemon knows at a moment, ready for whoever asks: nobody is asked for it then.
//!
//! Purpose: answers of the interface are made of a [`View`] that is there already. It is made anew
//! whenever something changes, and once in a while for what moves by itself.
//!
//! Invariants
//! - [`Manager::view`] waits for nothing but the moment in which the view is put in its place:
//!   neither for drives, the engine, a name server nor a host.
//! - A change is answered after the view says what it did ([`Manager::renew`]).

use crate::api::{self, Error, KnownDrive, Server, View};
use crate::manager::Manager;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often the view is made anew for what moves by itself.
const AGAIN: Duration = Duration::from_millis(500);

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The view that is there.
pub struct Snapshot {
    view: Mutex<Arc<View>>,
}

impl Snapshot {
    /// Nothing is known but the daemon itself.
    pub fn new(status: api::Status) -> Self {
        let since = now();
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let server = Server { name, uuid: String::new(), now: since, since };
        let (drives, jobs) = (Vec::new(), Vec::new());
        let view = View { server, status, drives, jobs };
        Self { view: Mutex::new(Arc::new(view)) }
    }

    fn view(&self) -> Arc<View> {
        self.view.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    fn put(&self, view: View) {
        *self.view.lock().unwrap_or_else(|e| e.into_inner()) = Arc::new(view);
    }
}

impl Manager {
    /// What the daemon knows now.
    pub fn view(&self) -> Arc<View> {
        self.snapshot.view()
    }

    /// Makes the view say what changed before this was called.
    pub async fn renew(&self) {
        let Ok(status) = self.status().await else { return };
        let old = self.view();
        let server = Server { now: now(), ..old.server.clone() };
        let places = crate::convert::places(&self.running().await.unwrap_or_default());
        let drives = self
            .inventory()
            .iter()
            .map(|known| KnownDrive {
                id: id(&known.path),
                wwid: None,
                model: None,
                is_file: known.reference().is_some_and(|reference| reference.is_file),
                drive: crate::inventory::describe(known, &places),
            })
            .collect();
        self.snapshot.put(View { server, status, drives, jobs: Vec::new() });
    }

    /// Makes the view anew, again and again.
    pub async fn keep_view(&self) {
        loop {
            self.renew().await;
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Looks at the drives that the configuration names, and at these; answers with the ids of the
    /// latter, in their order.
    pub async fn find_drives(&self, paths: &[String]) -> Result<Vec<String>, Error> {
        let _ = self.scan().await?;
        for path in paths {
            let _ = self.named_drive(path)?;
        }
        self.renew().await;
        let view = self.view();
        let mut ids = Vec::new();
        for path in paths {
            let known = self.inventory().find(path).map(|known| known.path.clone());
            let found = view.drives.iter().find(|d| Some(&d.drive.path) == known.as_ref());
            ids.extend(found.map(|found| found.id.clone()));
        }
        Ok(ids)
    }
}

/// A name that is good in a URI.
fn id(name: &str) -> String {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    name.chars().map(|c| if good(c) { c } else { '-' }).collect()
}
