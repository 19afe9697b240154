//! Logins of one origin are looked at one after the other.
//!
//! So whoever guesses fast waits for itself, not others for it, and each login knows how the one
//! before it ended.
//!
//! Invariant: at most [`WAITING`] wait for their turn, of each origin. An origin for which nobody
//! waits takes no room.

use crate::lock::lock;
use crate::peer::Origin;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::OwnedMutexGuard;

/// So many wait at most, of each origin.
pub const WAITING: usize = 16;

/// Whose turn it is.
#[derive(Default)]
pub struct Turns(Mutex<BTreeMap<Origin, Arc<tokio::sync::Mutex<()>>>>);

impl Turns {
    /// For how many origins there is a line.
    #[cfg(test)]
    pub fn size(&self) -> usize {
        lock(&self.0).len()
    }

    /// Waits for a turn; none if too many do. It lasts until it is dropped.
    pub async fn take(&self, origin: Origin) -> Option<OwnedMutexGuard<()>> {
        let line = {
            let mut lines = lock(&self.0);
            lines.retain(|_, line| Arc::strong_count(line) > 1);
            let line = lines.entry(origin).or_default();
            // One is the table's, one that of whose turn it is.
            if Arc::strong_count(line) > WAITING + 1 {
                return None;
            }
            line.clone()
        };
        Some(line.lock_owned().await)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_so_many_wait() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let turns = Arc::new(Turns::default());
            let first = turns.take(Origin::Socket(0)).await.expect("free");
            let waiting: Vec<_> = (0..WAITING)
                .map(|_| {
                    let turns = turns.clone();
                    tokio::spawn(async move { turns.take(Origin::Socket(0)).await.is_some() })
                })
                .collect();
            while Arc::strong_count(&turns) <= WAITING {
                tokio::task::yield_now().await;
            }
            tokio::task::yield_now().await;
            assert!(turns.take(Origin::Socket(0)).await.is_none(), "too many wait");
            assert!(turns.take(Origin::Socket(1)).await.is_some(), "others do not");
            drop(first);
            for one in waiting {
                assert!(one.await.expect("ends"));
            }
            assert!(turns.take(Origin::Socket(1)).await.is_some());
            assert_eq!(turns.0.lock().expect("free").len(), 1);
        });
    }
}
