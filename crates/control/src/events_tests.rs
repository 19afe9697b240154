//! Events as the daemon tells them: of arrays that leave, of logins, and to receivers.

use super::*;
use core::future::Future;
use redfish::change::{NewSubscription, SubscriptionChange};
use redfish::events::Policy;
use redfish::events::filter::Filter;
use redfish::messages::Severity;
use redfish::view::ArrayState;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

pub(super) fn run(test: impl Future<Output = ()>) {
    let builder = &mut tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime").block_on(test);
}

/// Views with one array, or none.
fn view(state: Option<ArrayState>) -> View {
    let mut view = View::default();
    view.status.ready = true;
    let array = |state| Array {
        name: "tank".to_owned(),
        uuid: "u-1".to_owned(),
        level: "1".to_owned(),
        state,
        block_bytes: 512,
        epoch: 1,
        ..Array::default()
    };
    view.status.arrays.extend(state.map(array));
    view
}

fn names(events: &Events) -> Vec<String> {
    events.ring().entries().iter().map(|event| event.name.clone()).collect()
}

#[test]
fn an_array_that_is_stopped_is_not_told_to_be_deleted() {
    use ArrayState::{Optimal, Stopped};
    let events = Events::in_memory(None);
    let leaving = events.leaving("u-1");
    events.follow(&view(Some(Optimal)), &view(None));
    events.follow(&view(None), &view(None));
    assert_eq!(names(&events), [""; 0], "it is not known yet");
    events.follow(&view(None), &view(Some(Stopped)));
    drop(leaving);
    assert_eq!(names(&events), ["ArrayStopped"]);
    events.follow(&view(Some(Stopped)), &view(Some(Stopped)));
    assert_eq!(names(&events).len(), 1);

    let events = Events::in_memory(None);
    let leaving = events.leaving("u-1");
    events.follow(&view(Some(Optimal)), &view(None));
    drop(leaving);
    events.follow(&view(None), &view(None));
    assert_eq!(names(&events), ["ArrayDeleted"]);
    events.follow(&view(None), &view(None));
    assert_eq!(names(&events).len(), 1);
}

#[test]
fn logins_do_not_fill_the_ring() {
    let events = Events::in_memory(None);
    for _ in 0..10_000 {
        events.login(&say::LOGIN_REFUSED, "ann", "192.0.2.1");
    }
    // Those that were refused don't hide the one that was not.
    events.login(&say::LOGGED_IN, "ann", "192.0.2.1");
    assert_eq!(names(&events)[REFUSALS as usize..], ["LoggedIn"]);
    for _ in 0..10_000 {
        events.login(&say::LOGGED_IN, "ann", "192.0.2.1");
    }
    assert_eq!(names(&events).len(), (LOGINS + REFUSALS) as usize);
    // Whoever makes the next view tells what was left out.
    lock(&events.logins).since = None;
    events.follow(&view(None), &view(None));
    let last = events.ring().entries().back().expect("some").clone();
    let left = 20_001 - u64::from(LOGINS + REFUSALS);
    assert_eq!((last.name.as_str(), &last.args), ("EventsOmitted", &vec![left.to_string()]));
    events.follow(&view(None), &view(None));
    assert_eq!(names(&events).len(), (LOGINS + REFUSALS) as usize + 1);
}

#[test]
fn a_lock_is_told_once() {
    let events = Events::in_memory(None);
    for seconds in [0, 60, 59, 1] {
        events.locked("ann", "192.0.2.1", seconds);
    }
    events.locked("ann", "192.0.2.2", 60);
    // The first was over at once.
    assert_eq!(names(&events), ["LoginsWait"; 3]);
    // Where no more refusals are told, it is told all the same.
    for _ in 0..=REFUSALS {
        events.login(&say::LOGIN_REFUSED, "bob", "192.0.2.3");
    }
    events.locked("bob", "192.0.2.3", 60);
    assert_eq!(names(&events).last().map(String::as_str), Some("LoginsWait"));
}

#[test]
fn nobody_but_an_administrator_takes_all_places_of_streams() {
    let events = Events::in_memory(None);
    let open = |who: &str, is_administrator| {
        let next = || events.open(Wanted::default(), who, is_administrator);
        core::iter::from_fn(next).collect::<Vec<_>>()
    };
    let one = open("ann", false);
    assert_eq!(one.len(), OWN_STREAMS);
    let others: Vec<_> = ["bob", "cy", "dee", "eve"].map(|who| open(who, false)).into();
    let all = STREAMS_MOST - SPARE_STREAMS - OWN_STREAMS;
    assert_eq!(others.iter().map(Vec::len).sum::<usize>(), all);
    assert_eq!(open("root", true).len(), SPARE_STREAMS);
    drop(one);
    assert_eq!(open("root", true).len(), SPARE_STREAMS + OWN_STREAMS);
}

#[test]
fn reports_that_slow_streams_hold_are_bounded() {
    let events = Events::in_memory(None);
    let mut slow = events.reports();
    let report = serde_json::json!({"Id": "x".repeat(REPORTS_BYTES / 4)});
    let mut held = Vec::new();
    for _ in 0..100 {
        events.report(&report, "/r");
        held.extend(slow.try_recv().ok());
    }
    assert_eq!(held.len(), 4);
    held.pop();
    events.report(&report, "/r");
    slow.try_recv().expect("there is room again");
}

#[test]
fn identifiers_grow_over_restarts_without_a_state_directory() {
    let told = |events: &Events| {
        events.tell(&say::DAEMON_ENDS, &[], "");
        events.ring().entries().back().map(|event| event.id)
    };
    let first = told(&Events::in_memory(None));
    assert!(first > Some(1 << 40) && first < Some(1 << 53), "{first:?}");
    let streams: Vec<_> = {
        let events = Events::in_memory(None);
        (0..STREAMS_MOST + 1).map_while(|_| events.open(Wanted::default(), "root", true)).collect()
    };
    assert_eq!(streams.len(), STREAMS_MOST);
}

#[test]
fn a_stream_is_a_subscription_until_it_ends() {
    run(async {
        let events = Events::in_memory(None);
        let filter = Filter::read("EventFormatType eq MetricReport");
        let mut stream =
            events.open(Wanted { filter, ..Wanted::default() }, "a", false).expect("room");
        let other = events.open(Wanted::default(), "a", false).expect("room");
        assert!(events.wants_reports("/x"));
        assert_eq!(events.shown().subscriptions.len(), 2);
        let id = stream.id.clone();
        let change = SubscriptionChange::default();
        let outcome = events.change(EventsChange::Change { id: id.clone(), change }).await;
        assert_eq!(outcome.err().map(|refusal| refusal.status), Some(405));
        events.change(EventsChange::Unsubscribe { id }).await.expect("ended");
        // Either it says so, or nobody is there to say it.
        let _ = stream.ended.changed().await;
        assert_eq!(events.shown().subscriptions.len(), 1);
        assert!(!events.wants_reports("/x"));
        drop((stream, other));
        assert_eq!(events.shown().subscriptions.len(), 0);
    });
}

/// A receiver that answers so, one request after the other, and tells what it was sent.
pub(super) async fn receiver(
    answers: &'static [&'static str],
) -> (String, tokio::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let uri = format!("http://{}/hook", listener.local_addr().expect("bound"));
    let (tell, told) = tokio::sync::mpsc::channel(64);
    tokio::spawn(async move {
        for status in answers {
            let (mut stream, _) = listener.accept().await.expect("accepted");
            let (mut request, mut part) = (Vec::new(), [0; 4096]);
            let is_whole = |request: &[u8]| {
                let text = String::from_utf8_lossy(request).into_owned();
                let (head, body) = text.split_once("\r\n\r\n")?;
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
                (body.len() >= length.parse().expect("a length")).then_some(text.clone())
            };
            let text = loop {
                let count = stream.read(&mut part).await.expect("read");
                assert!(count > 0, "it went");
                request.extend_from_slice(&part[..count]);
                if let Some(text) = is_whole(&request) {
                    break text;
                }
            };
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.expect("written");
            tell.send(text).await.expect("somebody listens");
        }
    });
    (uri, told)
}

pub(super) fn subscription(destination: String) -> NewSubscription {
    NewSubscription {
        destination,
        context: Some("mine".to_owned()),
        wants: Wanted::default(),
        policy: Policy::RetryForever,
        verify: true,
        headers: vec![("X-Key".to_owned(), redfish::access::Secret::new("hidden"))],
    }
}

/// Waits until a subscription is as it should be.
async fn until(events: &Events, is_it: impl Fn(&[Subscription]) -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !is_it(&events.shown().subscriptions) {
        assert!(Instant::now() < limit, "{:?}", events.shown().subscriptions);
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn a_receiver_that_fails_twice_is_told_in_the_end() {
    run(async {
        let answers = &["500 No", "301 Moved\r\nlocation: http://127.0.0.1:1/", "204 Done"];
        let (uri, mut told) = receiver(answers).await;
        let events = Events::in_memory(None);
        let made = events.change(EventsChange::Subscribe(subscription(uri))).await;
        assert!(matches!(made, Ok(Changed::Made(_))));
        let before = Instant::now();
        events.tell(&say::ARRAY_DEGRADED, &[&"tank"], "");
        let mut bodies = Vec::new();
        for _ in answers {
            bodies.push(told.recv().await.expect("a request"));
        }
        // The second attempt waits a second, the third two.
        assert!(before.elapsed() >= Duration::from_secs(3));
        let request = &bodies[2];
        assert!(request.starts_with("POST /hook HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("\r\nx-key: hidden\r\n"), "{request}");
        assert!(request.contains("\"Context\":\"mine\""), "{request}");
        assert!(request.contains("Palisade.1.0.ArrayDegraded"), "{request}");
        let is_well =
            |one: &Subscription| one.standing.problem.is_none() && one.standing.delivered == 1;
        until(&events, |all| all.iter().all(is_well)).await;
        assert!(!format!("{:?}", events.shown()).contains("hidden"));
    });
}

#[test]
fn a_receiver_that_hangs_delays_nobody_else() {
    run(async {
        // It takes connections, and never answers.
        let hanging = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let hung = format!("http://{}/", hanging.local_addr().expect("bound"));
        let (uri, mut told) = receiver(&["200 OK"]).await;
        let events = Events::in_memory(None);
        for uri in [hung, uri] {
            events
                .change(EventsChange::Subscribe(subscription(uri)))
                .await
                .map(drop)
                .expect("made");
        }
        events.tell(&say::ARRAY_STOPPED, &[&"tank"], "");
        told.recv().await.expect("it is told");
        // What the other misses is counted once it is asked again; nothing is kept for it.
        for _ in 0..5 {
            let burst = |number| Event::new(&say::ARRAY_STOPPED, &[&number], "");
            events.ring().put((0..1000).map(burst).collect(), 1);
        }
        assert_eq!(events.ring().entries().len(), redfish::events::MOST);
    });
}

#[test]
fn subscriptions_come_back_after_a_restart_and_only_those_that_were_written() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let start = async || {
            // Tasks that were told to end hold it until they have.
            let state = loop {
                match State::open(place.path()) {
                    Ok(state) => break Arc::new(state),
                    Err(why) => assert!(why.is(&say::STATE_TAKEN), "{why:?}"),
                }
                tokio::task::yield_now().await;
            };
            let kept = Events::read(&state).expect("read");
            Events::go_on(&state, kept).expect("goes on")
        };
        let events = start().await;
        let new = subscription("http://127.0.0.1:1/".to_owned());
        events.change(EventsChange::Subscribe(new.clone())).await.map(drop).expect("made");
        // A directory in its place keeps the file from being replaced.
        std::fs::create_dir(place.path().join("subscriptions.json.new")).expect("made");
        let outcome = events.change(EventsChange::Subscribe(new.clone())).await;
        let refusal = outcome.err().expect("it can't be written");
        assert!(refusal.messages[0].id.ends_with(".SubscriptionsNotWritten"), "{refusal:?}");
        let shown = events.shown();
        assert_eq!(shown.subscriptions.len(), 1);
        events.close().await;
        drop(events);
        std::fs::remove_dir(place.path().join("subscriptions.json.new")).expect("removed");
        let events = start().await;
        assert_eq!(events.shown().subscriptions[0].destination, new.destination);
        for _ in 1..redfish::events::SUBSCRIPTIONS_MOST {
            events.change(EventsChange::Subscribe(new.clone())).await.map(drop).expect("made");
        }
        let full = events.change(EventsChange::Subscribe(new.clone())).await.err().expect("full");
        assert!(full.messages[0].id.ends_with(".EventSubscriptionLimitExceeded"), "{full:?}");
        events.close().await;
        drop(events);
        std::fs::write(place.path().join("subscriptions.json"), "{").expect("written");
        let events = start().await;
        assert!(events.problem().is_some_and(|why| why.is(&say::SUBSCRIPTIONS_NOT_READ)));
        let refused = events.change(EventsChange::Subscribe(new)).await.err().expect("not read");
        assert!(refused.messages[0].id.ends_with(".SubscriptionsNotRead"), "{refused:?}");
        events.close().await;
        assert_eq!(std::fs::read(place.path().join("subscriptions.json")).expect("there"), b"{");
    });
}

#[test]
fn events_that_can_not_be_read_are_told_by_name() {
    let place = tempfile::tempdir().expect("a directory");
    let state = Arc::new(State::open(place.path()).expect("opened"));
    std::fs::create_dir(place.path().join("events.jsonl")).expect("made");
    let why = Events::read(&state).err().expect("it is a directory");
    assert!(why.is(&say::EVENTS_NOT_READ), "{why:?}");
}

#[test]
fn a_subscription_wants_what_its_lists_say() {
    run(async {
        let (uri, mut told) = receiver(&["200 OK"]).await;
        let events = Events::in_memory(None);
        let severities = vec![Severity::Critical];
        let wants = Wanted { severities, ..Wanted::default() };
        let new = NewSubscription { wants, ..subscription(uri) };
        events.change(EventsChange::Subscribe(new)).await.map(drop).expect("made");
        events.tell(&say::ARRAY_DEGRADED, &[&"tank"], "");
        events.tell(&say::ARRAY_FAILED, &[&"tank"], "");
        let body = told.recv().await.expect("told");
        assert!(body.contains("ArrayFailed") && !body.contains("ArrayDegraded"), "{body}");
    });
}

#[test]
fn what_a_receiver_misses_is_counted_and_told() {
    run(async {
        let (uri, mut told) = receiver(&["200 OK"; 200]).await;
        let events = Events::in_memory(None);
        let made = events.change(EventsChange::Subscribe(subscription(uri))).await;
        let Ok(Changed::Made(made)) = made else { panic!("it is not made") };
        let id = made.rsplit('/').next().expect("an identifier").to_owned();
        events.webhooks.suspend(&id, true).await.expect("suspended");
        assert!(events.shown().subscriptions[0].standing.is_suspended);
        let one = |number| Event::new(&say::ARRAY_STOPPED, &[&number], "");
        events.ring().put((0..10).map(one).collect(), 1);
        // It has these at hand, and waits.
        until(&events, |_| true).await;
        tokio::task::yield_now().await;
        let most = redfish::events::MOST;
        events.ring().put((0..most + 500).map(one).collect(), 1);
        events.change(EventsChange::Resume { id }).await.map(drop).expect("resumed");
        let reader = tokio::spawn(async move { while told.recv().await.is_some() {} });
        let all = (most + 510) as u64;
        let is_done = |one: &Subscription| one.standing.delivered + one.standing.dropped == all;
        until(&events, |all| all.iter().all(is_done)).await;
        let standing = events.shown().subscriptions[0].standing.clone();
        assert!((500..=510).contains(&standing.dropped), "{standing:?}");
        assert!(!standing.is_suspended);
        reader.abort();
    });
}
