//! Subscriptions whose file is late, that go on after a restart, and that would not take an event.

use super::*;
use crate::events::ring::Begin;
use crate::events::tests::{receiver, run, subscription};
use std::time::Instant;

fn event(number: u64) -> Event {
    Event::new(&say::ARRAY_STOPPED, &[&number], "")
}

fn ring() -> Arc<Ring> {
    Arc::new(Ring::new(Begin { last: 100, gone: 100, ..Begin::default() }))
}

/// Waits until something is so.
async fn until(is_it: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !is_it() {
        assert!(Instant::now() < limit, "in time");
        sleep(Duration::from_millis(1)).await;
    }
}

fn open(place: &std::path::Path) -> Arc<State> {
    Arc::new(State::open(place).expect("opened"))
}

#[test]
fn a_subscription_whose_file_was_late_is_delivered_to() {
    run(async {
        let (uri, mut told) = receiver(&["200 OK"]).await;
        let place = tempfile::tempdir().expect("a directory");
        let ring = ring();
        let own = Webhooks::new(ring.clone(), Some(open(place.path())), Ok(File::default()));
        let own = Arc::new(own);
        own.start();
        // Whoever asked gives up while it is being written.
        assert!(!is_ready(own.subscribe(subscription(uri))));
        until(|| own.list().len() == 1).await;
        ring.put(vec![event(1)], 1);
        assert!(told.recv().await.expect("told").contains("ArrayStopped"));
        until(|| own.is_idle()).await;
        own.close().await;
    });
}

#[test]
fn what_waits_for_a_receiver_is_delivered_after_a_restart_and_drops_stay_counted() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let (state, ring) = (open(place.path()), ring());
        let start = |found| {
            let own = Arc::new(Webhooks::new(ring.clone(), Some(state.clone()), found));
            own.start();
            own
        };
        // Nobody listens there.
        let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = free.local_addr().expect("bound");
        drop(free);
        let own = start(Ok(File::default()));
        let new = subscription(format!("http://{address}/"));
        let id = own.subscribe(new).await.expect("written").expect("room");
        ring.put((0..redfish::events::MOST as u64 + 7).map(event).collect(), 1);
        until(|| own.list()[0].standing.problem.is_some()).await;
        assert!(own.is_idle());
        own.close().await;
        drop(own);
        let found = read(&state).expect("read");
        assert_eq!(found.subscriptions[0].progress.dropped, 7);
        // Its receiver is another one by then: of what came before the stop it has nothing.
        let (uri, mut told) = receiver(&["200 OK"; 200]).await;
        let mut found = found;
        found.subscriptions[0].destination = uri;
        let own = start(Ok(found));
        let mut first = told.recv().await.expect("told");
        assert!(first.contains("\"EventId\":\"108\""), "{}", first.split_off(400));
        tokio::spawn(async move { while told.recv().await.is_some() {} });
        until(|| own.list()[0].standing.delivered == redfish::events::MOST as u64).await;
        assert_eq!(own.list()[0].standing.dropped, 7);
        own.close().await;
        drop(own);
        // Nothing is told twice after an end in order.
        let own = start(Ok(read(&state).expect("read")));
        assert_eq!(own.all().get(&id).map(|own| own.place), Some(ring.end()));
        own.close().await;
    });
}

#[test]
fn a_file_of_another_version_is_left_as_it_is() {
    let place = tempfile::tempdir().expect("a directory");
    let text = r#"{"version":2,"subscriptions":[]}"#;
    std::fs::write(place.path().join(FILE), text).expect("written");
    let why = read(&open(place.path())).err().expect("another version");
    assert!(why.is(&say::SUBSCRIPTIONS_NOT_READ), "{why:?}");
}

#[test]
fn an_event_that_a_receiver_will_not_take_keeps_none_after_it_from_it() {
    run(async {
        const NO: &str = "400 No";
        // As often as it is tried; then one by one.
        let answers = &[NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, "200 OK"];
        let (uri, mut told) = receiver(answers).await;
        let ring = ring();
        let own = Webhooks::new(ring.clone(), None, Ok(File::default()));
        let own = Arc::new(Webhooks { interval: Duration::ZERO, ..own });
        own.subscribe(subscription(uri)).await.expect("made").expect("room");
        ring.put((0..2).map(event).collect(), 1);
        let mut last = String::new();
        for _ in answers {
            last = told.recv().await.expect("a request");
        }
        assert!(!last.contains("\"EventId\":\"101\"") && last.contains("\"EventId\":\"102\""));
        until(|| own.is_idle() && own.list()[0].standing.problem.is_none()).await;
        let standing = own.list()[0].standing.clone();
        assert_eq!((standing.delivered, standing.dropped), (1, 1));
        own.close().await;
    });
}

#[test]
fn a_change_of_one_does_not_hurry_another() {
    run(async {
        let own = Arc::new(Webhooks::new(ring(), None, Ok(File::default())));
        let new = || subscription("http://127.0.0.1:1/".to_owned());
        let mut ids = Vec::new();
        for _ in 0..2 {
            ids.push(own.subscribe(new()).await.expect("made").expect("room"));
        }
        let change = SubscriptionChange { context: Some("x".to_owned()), ..Default::default() };
        own.alter(&ids[0], change).await.expect("changed");
        let hurried = |id: &String| {
            let changed = own.all().get(id).map(|own| own.changed.clone()).expect("there");
            is_ready(changed.notified())
        };
        assert_eq!(ids.iter().map(hurried).collect::<Vec<_>>(), [true, false]);
        own.close().await;
    });
}

/// Whether a future is ready at once.
fn is_ready(future: impl core::future::Future) -> bool {
    let future = core::pin::pin!(future);
    let waker = core::task::Waker::noop();
    future.poll(&mut core::task::Context::from_waker(waker)).is_ready()
}
