//! Names of recorded addresses, looked up beside everything else: a name server that does not
//! answer must keep nobody from what has nothing to do with it.
//!
//! States of a name: unknown → asked for → answered → unknown, when who asks next takes the answer.
//! Nothing here waits but [`Lookups::settled`], which waits for all names at once.

use core::future::Future;
use core::pin::Pin;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

type Answer = io::Result<Vec<SocketAddr>>;
type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Lookups that are not over.
#[derive(Default)]
pub struct UnderWay {
    count: AtomicUsize,
    over: Notify,
}

impl UnderWay {
    /// Waits until none is under way.
    pub async fn settled(&self) {
        loop {
            let over = self.over.notified();
            if self.count.load(Ordering::Acquire) == 0 {
                return;
            }
            over.await;
        }
    }
}

/// A name that was asked for.
#[derive(Default)]
struct Name {
    answer: Option<oneshot::Receiver<Answer>>,
    /// What the lookup before came to.
    failed: Option<String>,
}

/// All of them.
pub struct Lookups {
    look_up: Box<dyn Fn(String) -> Answering + Send>,
    names: BTreeMap<String, Name>,
    under_way: Arc<UnderWay>,
}

impl Lookups {
    /// Asks the system.
    pub fn new() -> Self {
        Self::by(|text| Box::pin(async move { now(&text).await }))
    }

    fn by(look_up: impl Fn(String) -> Answering + Send + 'static) -> Self {
        let (names, under_way) = Default::default();
        Self { look_up: Box::new(look_up), names, under_way }
    }

    /// What `ADDR:PORT` stands for: at once if it needs no lookup or was asked for before; else it
    /// is asked for.
    ///
    /// # Errors
    /// `WouldBlock` without an answer yet; or what the lookup came to.
    pub fn find(&mut self, text: &str) -> Answer {
        if let Ok(address) = text.parse() {
            return Ok(vec![address]);
        }
        let name = self.names.entry(text.to_owned()).or_default();
        let Some(answer) = &mut name.answer else {
            let (tell, answer) = oneshot::channel();
            name.answer = Some(answer);
            let (looking, under_way) = ((self.look_up)(text.to_owned()), self.under_way.clone());
            under_way.count.fetch_add(1, Ordering::AcqRel);
            tokio::spawn(async move {
                // Nobody may want it any more.
                let _ = tell.send(looking.await);
                under_way.count.fetch_sub(1, Ordering::AcqRel);
                under_way.over.notify_waiters();
            });
            return Err(name.failed.clone().map_or_else(late, io::Error::other));
        };
        match answer.try_recv() {
            Ok(Ok(found)) => {
                self.names.remove(text);
                Ok(found)
            }
            Ok(Err(error)) => {
                *name = Name { answer: None, failed: Some(error.to_string()) };
                Err(error)
            }
            Err(_) => Err(name.failed.clone().map_or_else(late, io::Error::other)),
        }
    }

    /// Nobody wants to know any more what was asked for.
    pub fn forget(&mut self) {
        self.names.clear();
    }

    /// Lookups that are not over, to wait for them.
    pub fn under_way(&self) -> Arc<UnderWay> {
        self.under_way.clone()
    }
}

fn late() -> io::Error {
    io::Error::new(ErrorKind::WouldBlock, "looking it up takes too long")
}

/// The longest that somebody who asks for an export waits for a name.
const NOW_LIMIT: Duration = Duration::from_secs(5);

/// What `ADDR:PORT` stands for, for somebody who waits for it.
pub async fn now(text: &str) -> Answer {
    let looking = tokio::time::timeout(NOW_LIMIT, tokio::net::lookup_host(text));
    Ok(looking.await.map_err(|_| late())??.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::future::pending;

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(test);
    }

    fn kind(answer: Answer) -> Result<Vec<SocketAddr>, ErrorKind> {
        answer.map_err(|error| error.kind())
    }

    const HERE: &str = "127.0.0.1:1";

    /// One name is known, one is not, and of all others nothing is ever heard.
    fn lookups() -> Lookups {
        Lookups::by(|text| match text.as_str() {
            "known:1" => Box::pin(async { Ok(vec![HERE.parse().expect("an address")]) }),
            "none:1" => Box::pin(async { Err(ErrorKind::NotFound.into()) }),
            _ => Box::pin(pending()),
        })
    }

    #[test]
    fn an_address_needs_no_lookup() {
        let mut lookups = Lookups::by(|text| panic!("{text} is looked up"));
        for address in [HERE, "[::1]:4420"] {
            assert_eq!(lookups.find(address).expect(address), [address.parse().expect(address)]);
        }
    }

    #[test]
    fn a_name_server_that_does_not_answer_holds_nobody_up() {
        run(async {
            let mut lookups = lookups();
            for text in ["silent:1", "silent:2", "known:1"] {
                assert_eq!(kind(lookups.find(text)), Err(ErrorKind::WouldBlock), "{text}");
            }
            tokio::task::yield_now().await;
            assert_eq!(kind(lookups.find("silent:1")), Err(ErrorKind::WouldBlock));
            assert_eq!(kind(lookups.find("known:1")), Ok(vec![HERE.parse().expect("an address")]));
        });
    }

    #[test]
    fn a_name_that_is_not_known_is_asked_for_again() {
        run(async {
            let mut lookups = lookups();
            assert_eq!(kind(lookups.find("none:1")), Err(ErrorKind::WouldBlock));
            lookups.under_way().settled().await;
            assert_eq!(kind(lookups.find("none:1")), Err(ErrorKind::NotFound));
            // What it came to is said while it is asked for again.
            let again = lookups.find("none:1").expect_err("it is not known");
            assert!(again.to_string().contains("not found"), "{again}");
            lookups.under_way().settled().await;
            assert_eq!(kind(lookups.find("none:1")), Err(ErrorKind::NotFound));
        });
    }
}
