//! One core's side of a subsystem: its requests, and a carrier for each path.
//!
//! States of a carrier: waiting for an association that it does not know → connecting → carrying →
//! waiting. The connection it had is gone before it says so.

use crate::begin::{Begin, Begun, begin};
use crate::dial::{Dial, Line};
use crate::keeper::{ANSWER, CONNECT, Problem, in_time};
use crate::limits::TRY_AGAIN;
use crate::queue::Queue;
use crate::requests::Requests;
use crate::subsystem::{Path, Subsystem, Terms};
use core::convert::Infallible;
use core::pin::pin;
use io::local::{First, first_of};
use io::{DriveError, Env, Priority};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

/// A core's requests to a subsystem: carried by connections that `dial` makes, by the queue of that
/// number of each association, until the subsystem is closed.
pub fn carry<E: Env, D: Dial>(
    env: &E,
    dial: &D,
    subsystem: &Arc<Subsystem>,
    queue: u16,
) -> Rc<Requests> {
    let requests = Rc::new(Requests::default());
    let core = Core { env: env.clone(), dial: dial.clone(), subsystem: subsystem.clone(), queue };
    env.spawn(Priority::First, core.follow(requests.clone()));
    requests
}

#[derive(Clone)]
struct Core<E, D> {
    env: E,
    dial: D,
    subsystem: Arc<Subsystem>,
    queue: u16,
}

impl<E: Env, D: Dial> Core<E, D> {
    /// Hands on to the requests what happens to the subsystem, and sees that each path has a
    /// carrier.
    async fn follow(self, requests: Rc<Requests>) {
        let (mut seen, mut known) = (0, BTreeSet::new());
        let mut doubts = pin!(self.doubt(&requests));
        loop {
            let news = self.subsystem.changed.wait_until(|| self.subsystem.news(seen));
            let news = match first_of(news, doubts.as_mut()).await {
                First::One(news) => news,
                First::Other(never) => match never {},
            };
            seen = news.version;
            requests.set_ways(&news.ways);
            news.over.into_iter().for_each(|over| requests.release(over));
            known.retain(|path| news.paths.contains(path));
            for path in news.paths {
                if known.insert(path) {
                    self.env.spawn(Priority::First, self.clone().carry(path, requests.clone()));
                }
            }
            if news.is_closed {
                return requests.refuse(DriveError::Gone);
            }
        }
    }

    /// Has paths looked at anew that do not carry out what they are sent, and tries them again
    /// after a while.
    async fn doubt(&self, requests: &Requests) -> Infallible {
        loop {
            let paths = requests.turned_away().await;
            self.subsystem.doubt(&paths);
            self.env.sleep(TRY_AGAIN).await;
            requests.try_again();
        }
    }

    /// Carries by a path for as long as there is that.
    async fn carry(self, path: Path, requests: Rc<Requests>) {
        let mut last = 0;
        while let Some(terms) = self.subsystem.enter(path, last).await {
            last = terms.association.turn;
            let mut entered = Entered { core: &self, path, has_queue: false, problem: None };
            entered.problem = Some(self.carry_once(&mut entered, &terms, &requests).await);
        }
    }

    /// Carries by one connection; why it is over.
    async fn carry_once(
        &self,
        entered: &mut Entered<'_, E, D>,
        terms: &Terms,
        requests: &Rc<Requests>,
    ) -> Problem {
        let path = entered.path;
        let over = || self.subsystem.over(path, terms.association);
        let begun = match first_of(self.connect(terms), over()).await {
            First::One(Ok(begun)) => begun,
            First::One(Err(problem)) => return problem,
            First::Other(()) => return Problem::Over,
        };
        self.subsystem.has_queue(path);
        entered.has_queue = true;
        requests.set_lapse(terms.lapse);
        let queue = begun.queue(terms.shape, requests.clone(), terms.association);
        let (own, subsystem, association) =
            (Rc::downgrade(&queue), self.subsystem.clone(), terms.association);
        let env = self.env.clone();
        self.env.spawn(Priority::First, async move {
            let silent = Queue::end_if_silent(own.clone(), &env);
            let ended = first_of(subsystem.over(path, association), silent).await;
            if let (First::One(()), Some(queue)) = (ended, own.upgrade()) {
                queue.close();
            }
        });
        Problem::Ended(queue.run(&self.env).await)
    }

    async fn connect(&self, terms: &Terms) -> Result<Begun<Line<D::Transport>>, Problem> {
        let Subsystem { name, host, settings, .. } = &*self.subsystem;
        let begin_as = Begin {
            queue: self.queue,
            entries: terms.entries,
            controller: terms.controller,
            keep_alive_ms: 0,
            digests: settings.digests,
            host: host.nqn.clone(),
            host_id: host.id,
            subsystem: name.clone(),
        };
        let transport = Rc::new(Line(self.dial.dial(terms.address, CONNECT).await?));
        Ok(in_time(&self.env, ANSWER, begin(transport, &begin_as)).await??)
    }
}

/// A core's part in an association. It ends with this, also where the core ends.
struct Entered<'a, E, D> {
    core: &'a Core<E, D>,
    path: Path,
    has_queue: bool,
    /// Why it does.
    problem: Option<Problem>,
}

impl<E, D> Drop for Entered<'_, E, D> {
    fn drop(&mut self) {
        let problem = self.problem.take().unwrap_or(Problem::Over);
        self.core.subsystem.leave(self.path, self.has_queue, problem);
    }
}
