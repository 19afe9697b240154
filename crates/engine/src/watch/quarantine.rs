//! Drives that may still be written by requests of an opening that is over (D16).
//!
//! A request whose outcome nobody knows may be carried out at any time later, over whatever is
//! written meanwhile. So until every request of the old opening has ended, its drive is not
//! opened for writing again: not put back in its slot, not made part of another array, and no
//! array is started with it. Nothing waits for that end, since it may never come.
//!
//! Invariant: a path is held from the exclusion of its drive, or the stop of its array, to the
//! end of the opening's last request. Like all of the engine's knowledge of drives it ends with
//! the process; the kernel keeps an exclusive opening until its requests are over.

use crate::mutants::{self, Mutant};
use core::cell::RefCell;
use std::sync::Weak;

/// The paths of such drives.
#[derive(Default)]
pub(crate) struct Quarantine {
    held: RefCell<Vec<(String, Weak<()>)>>,
}

impl Quarantine {
    /// Holds a path as long as the token of its old opening lives.
    pub fn hold(&self, path: &str, token: Weak<()>) {
        let mut held = self.held.borrow_mut();
        held.retain(|(_, token)| token.strong_count() > 0);
        if token.strong_count() > 0 {
            held.push((path.to_owned(), token));
        }
    }

    /// Whether requests of an old opening of this drive are under way.
    pub fn holds(&self, path: &str) -> bool {
        if mutants::is(Mutant::QuarantineOff) {
            return false;
        }
        let held = self.held.borrow();
        held.iter().any(|(known, token)| known == path && token.strong_count() > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_path_is_held_until_its_last_opening_is_over() {
        let quarantine = Quarantine::default();
        let (first, second) = (Arc::new(()), Arc::new(()));
        quarantine.hold("a", Arc::downgrade(&first));
        quarantine.hold("a", Arc::downgrade(&second));
        quarantine.hold("b", Weak::new());
        assert!(quarantine.holds("a") && !quarantine.holds("b"));
        drop(second);
        assert!(quarantine.holds("a"));
        drop(first);
        assert!(!quarantine.holds("a"));
    }
}
