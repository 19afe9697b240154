//! Changes of users of shares that `palisade services` is asked for.
//!
//! | a change is | meaning                              | left by                          |
//! |-------------|--------------------------------------|----------------------------------|
//! | to be sent  | nobody was told of it yet            | sent, or the connection ends     |
//! | asked       | its answer comes, with its number    | answered, or the connection ends |
//!
//! Invariant: whoever asked is answered, or finds that nobody is there any more.

use services::wire::{Order, UserChange};
use std::collections::BTreeMap;
use tokio::sync::oneshot;

/// What came of a change: why it could not be.
pub type Outcome = Result<(), String>;

/// Changes that are under way.
#[derive(Default)]
pub struct Users {
    /// The number of the last.
    number: u64,
    /// What is to be sent.
    orders: Vec<Order>,
    /// Who waits for an answer, by number.
    waits: BTreeMap<u64, oneshot::Sender<Outcome>>,
}

impl Users {
    /// A user of an export is to change. What comes of it is told there, unless the connection
    /// ends.
    pub fn ask(
        &mut self,
        id: String,
        user: String,
        change: UserChange,
    ) -> oneshot::Receiver<Outcome> {
        let (reply, told) = oneshot::channel();
        self.waits.retain(|_, waits| !waits.is_closed());
        self.number += 1;
        self.orders.push(Order::User { id, number: self.number, user, change });
        self.waits.insert(self.number, reply);
        told
    }

    /// What is to be sent; it is sent from here on.
    pub fn orders(&mut self) -> Vec<Order> {
        core::mem::take(&mut self.orders)
    }

    /// A change is answered.
    pub fn answer(&mut self, number: u64, outcome: Outcome) {
        if let Some(waits) = self.waits.remove(&number) {
            // Who does not wait any more was told so.
            let _ = waits.send(outcome);
        }
    }

    /// The connection has ended.
    pub fn end(&mut self) {
        self.orders.clear();
        self.waits.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_is_answered() {
        let mut users = Users::default();
        let ask = |users: &mut Users, user: &str| {
            users.ask("a-1".into(), user.into(), UserChange::Delete)
        };
        let (mut one, mut other) = (ask(&mut users, "a"), ask(&mut users, "b"));
        let numbers: Vec<u64> = users
            .orders()
            .iter()
            .map(|order| match order {
                Order::User { number, .. } => *number,
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(numbers[0] != numbers[1] && users.orders().is_empty());
        users.answer(numbers[1], Err("no".into()));
        assert_eq!(other.try_recv(), Ok(Err("no".to_owned())));
        assert!(one.try_recv().is_err(), "it is asked still");
        users.answer(numbers[1], Ok(()));
        // The connection ends: nobody answers.
        let mut last = ask(&mut users, "c");
        users.end();
        assert!(users.orders().is_empty());
        for told in [&mut one, &mut last] {
            assert_eq!(told.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        }
    }
}
