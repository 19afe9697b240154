//! What a mutex holds, whatever became of who held it before.

use std::sync::{Mutex, MutexGuard};

/// Locks; a panic elsewhere ends the daemon anyway.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
