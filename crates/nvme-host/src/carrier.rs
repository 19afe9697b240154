//! One core's side of a subsystem: its requests, and a carrier for each path.
//!
//! States of a carrier: waiting for an association that it does not know → connecting → carrying →
//! waiting. The connection it had is gone before it says so.
//!
//! A connection that is made while namespaces have guards is *unchecked* for each of these: it
//! carries no change there. Once what the guard asks for was read by it, it may change that place,
//! and nothing else. It is checked, for good, once that place names its controller, or need not, or
//! there is no guard any more. Something else that is read breaks the guard. A read that fails
//! says nothing, and is done again after a while.

use crate::admin::outcome;
use crate::begin::{Begin, Begun, begin};
use crate::dial::{Dial, Line};
use crate::keeper::{ANSWER, CONNECT, Problem, in_time};
use crate::limits::{GUARD_BYTES, READS, TRY_AGAIN};
use crate::queue::Queue;
use crate::requests::{Asked, Association, Outcome, Requests, What};
use crate::subsystem::{Path, Subsystem, Terms};
use core::convert::Infallible;
use core::pin::pin;
use io::local::{First, all_of, first_of};
use io::{DriveError, Env, Gather, Guard, Pool, Priority};
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
            requests.set_barred(&news.barred);
            news.over.into_iter().for_each(|over| requests.release(over));
            known.retain(|path| news.paths.contains(path));
            for path in news.paths {
                if known.insert(path) {
                    self.env.spawn(Priority::First, self.clone().carry(path, requests.clone()));
                }
            }
            if news.is_closed {
                requests.refuse(DriveError::Gone);
            }
            // What is held ends with the fences.
            if news.is_closed && known.is_empty() {
                return;
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
        let guarded = self.subsystem.has_queue(path);
        entered.has_queue = true;
        requests.set_unchecked(&guarded, terms.association);
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
        if !guarded.is_empty() {
            let check = self.clone().check_all(path, terms.association, guarded, requests.clone());
            self.env.spawn(Priority::First, check);
        }
        Problem::Ended(queue.run(&self.env).await)
    }

    /// Looks, as long as there is that association, whether it may change these namespaces.
    async fn check_all(
        self,
        path: Path,
        association: Association,
        namespaces: Vec<u32>,
        requests: Rc<Requests>,
    ) {
        let check = |namespace: &u32| self.check(*namespace, association, &requests);
        let checks = all_of(namespaces.iter().map(check).collect());
        first_of(self.subsystem.over(path, association), checks).await;
    }

    /// Waits until an association may change a namespace. One that can't say what stands there is
    /// not changed: whoever wants to learns that soon.
    async fn check(&self, namespace: u32, association: Association, requests: &Rc<Requests>) {
        let mut tries = 0;
        while let Some(guard) = self.subsystem.guard(namespace).await {
            match self.stands(namespace, association, requests, &guard).await {
                Ok(true) => {
                    requests.stands(namespace, association, guard.offset);
                    self.subsystem.is_named(namespace, association).await;
                    break;
                }
                Ok(false) => self.subsystem.breaks(namespace, &guard),
                // The association is over.
                Err(DriveError::Gone) => self.env.sleep(TRY_AGAIN).await,
                Err(_) if tries < READS => {
                    tries += 1;
                    self.env.sleep(TRY_AGAIN).await;
                }
                Err(_) => self.subsystem.breaks(namespace, &guard),
            }
        }
        requests.checked(namespace, association);
    }

    /// Whether what a guard asks for stands on a namespace, read by this association.
    async fn stands(
        &self,
        namespace: u32,
        association: Association,
        requests: &Rc<Requests>,
        guard: &Guard,
    ) -> Result<bool, DriveError> {
        let is = self.subsystem.namespace(namespace).ok_or(DriveError::Gone)?.info;
        is.check(guard.offset, GUARD_BYTES as u64)?;
        let asked = Asked {
            what: What::Read,
            namespace,
            by: Some(association),
            lapse: 0,
            offset: guard.offset,
            bytes: GUARD_BYTES as u64,
            shift: is.block_bytes.trailing_zeros() as u8,
            data: Gather::new(),
            into: Some(Pool::single(GUARD_BYTES)),
        };
        let Outcome { result, into, .. } = outcome(requests, asked).await;
        result?;
        Ok(into.is_some_and(|page| page.starts_with(&guard.begins)))
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
