//! Streams: what they tell, and when they end.

use super::*;
use crate::reply::Content;
use core::future::Future;
use http_body_util::BodyExt;
use redfish::change::EventsChange;
use redfish::events::{Event, MOST};
use redfish::messages as say;

const ROOT: Peer = Peer::Socket { user: 0, groups: Vec::new() };

fn run<F: Future<Output = ()>>(test: impl FnOnce(Arc<Manager>) -> F) {
    crate::renewal::tests::run_with(false, Vec::new(), test);
}

/// A stream of somebody on the socket.
fn begin(manager: &Arc<Manager>, query: &str, last: Option<u64>) -> Result<Content, Refusal> {
    begin_after(manager, query, last.map(|last| last.to_string()).as_deref(), ROOT)
}

fn begin_after(
    manager: &Arc<Manager>,
    query: &str,
    last: Option<&str>,
    peer: Peer,
) -> Result<Content, Refusal> {
    let mut request = Request::builder().uri(format!("/redfish/v1/EventService/SSE{query}"));
    if let Some(last) = last {
        request = request.header(LAST, last);
    }
    let mut asked = request.body(()).expect("a request");
    let caller = Caller::of(&peer, &manager.local());
    asked.extensions_mut().insert(peer);
    Ok(watch(manager, &asked, &caller)?.response().into_body())
}

/// What a stream says that has looked at all events.
fn silence(manager: &Manager) -> Option<String> {
    let ring = manager.events().ring();
    Some(format!(":\nid: {}\n\n", ring.id_before(ring.end())))
}

/// The next part; none at the end.
async fn next(stream: &mut Content) -> Option<String> {
    let frame = tokio::time::timeout(Duration::from_secs(60), stream.frame()).await;
    let frame = frame.expect("in time")?.expect("a frame");
    Some(String::from_utf8(frame.into_data().expect("data").to_vec()).expect("text"))
}

fn stopped(manager: &Manager, count: usize) {
    let one = |number| Event::new(&say::ARRAY_STOPPED, &[&number], "");
    manager.events().ring().put((0..count).map(one).collect(), 1);
}

#[test]
fn a_stream_tells_what_comes_and_what_was_missed() {
    run(|manager| async move {
        stopped(&manager, 3);
        let ids: Vec<u64> = manager.events().ring().entries().iter().map(|e| e.id).collect();
        let mut fresh = begin(&manager, "", None).expect("begun");
        assert_eq!(next(&mut fresh).await, silence(&manager));
        let mut back = begin(&manager, "", Some(ids[0])).expect("begun");
        assert_eq!(next(&mut back).await, Some(format!(":\nid: {}\n\n", ids[0])));
        let missed = next(&mut back).await.expect("two events");
        assert!(missed.starts_with(&format!("id: {}\ndata: {{", ids[1])), "{missed}");
        assert_eq!(missed.matches("\n\n").count(), 2, "{missed}");
        let mut old = begin(&manager, "", Some(1)).expect("begun");
        next(&mut old).await.expect("a comment");
        let notice = next(&mut old).await.expect("a notice");
        let gone = manager.events().ring().id_before(0);
        assert!(notice.starts_with(&format!("id: {gone}\ndata: ")), "{notice}");
        assert!(notice.contains("EventBufferExceeded"), "{notice}");
        assert_eq!(next(&mut old).await.expect("three").matches("id: ").count(), 3);
        manager.events().tell(&say::ARRAY_FAILED, &[&"tank"], "");
        for stream in [&mut fresh, &mut back, &mut old] {
            let told = next(stream).await.expect("the next");
            assert!(told.contains("\"array tank has failed\""), "{told}");
        }
    });
}

#[test]
fn a_filter_holds_and_reports_come_to_who_wants_them() {
    run(|manager| async move {
        let query = "?$filter=EventFormatType%20eq%20MetricReport";
        let mut reports = begin(&manager, query, None).expect("begun");
        next(&mut reports).await.expect("a comment");
        let mut grave =
            begin(&manager, "?$filter=Severity%20eq%20'Critical'", None).expect("begun");
        next(&mut grave).await.expect("a comment");
        assert!(manager.events().wants_reports("/r"));
        stopped(&manager, 1);
        manager.events().report(&serde_json::json!({"Id": "r"}), "/r");
        manager.events().tell(&say::ARRAY_FAILED, &[&"tank"], "");
        assert_eq!(next(&mut reports).await.as_deref(), Some("data: {\"Id\":\"r\"}\n\n"));
        assert!(next(&mut grave).await.expect("one").contains("ArrayFailed"));
        let wrong = begin(&manager, "?$filter=Name%20eq%20'x'", None);
        assert_eq!(wrong.err().map(|refusal| refusal.status), Some(400));
    });
}

#[test]
fn who_may_not_change_accounts_is_told_of_no_other() {
    run(|manager| async move {
        let access = toml::from_str("read_only = ['7']").expect("a table");
        manager.set_local(crate::local::Local::read(Some(&access)).expect("read"));
        let peer = Peer::Socket { user: 7, groups: Vec::new() };
        let mut stream = begin_after(&manager, "", None, peer).expect("begun");
        next(&mut stream).await.expect("a comment");
        manager.events().login(&say::LOGIN_REFUSED, "ann", "192.0.2.1");
        manager.events().tell(&say::ARRAY_FAILED, &[&"tank"], "");
        let told = next(&mut stream).await.expect("one");
        assert!(!told.contains("192.0.2.1") && told.contains("ArrayFailed"), "{told}");
    });
}

#[test]
fn what_is_no_identifier_is_not_known() {
    run(|manager| async move {
        stopped(&manager, 2);
        for last in ["x", "-1", "99999999999999999999999"] {
            let mut stream = begin_after(&manager, "", Some(last), ROOT).expect("begun");
            next(&mut stream).await.expect("a comment");
            let notice = next(&mut stream).await.expect("a notice");
            assert!(notice.contains("EventBufferExceeded"), "{notice}");
            assert_eq!(next(&mut stream).await.expect("all").matches("id: ").count(), 2);
        }
    });
}

#[test]
fn reports_that_come_together_are_all_told() {
    run(|manager| async move {
        let query = "?$filter=EventFormatType%20eq%20MetricReport";
        let mut stream = begin(&manager, query, None).expect("begun");
        next(&mut stream).await.expect("a comment");
        for number in 0..telemetry::Report::ALL.len() {
            manager.events().report(&serde_json::json!({"Id": number.to_string()}), "/r");
        }
        for number in 0..telemetry::Report::ALL.len() {
            let report = next(&mut stream).await.expect("a report");
            assert!(report.contains(&format!("{{\"Id\":\"{number}\"}}")), "{report}");
        }
    });
}

#[test]
fn a_client_that_is_slow_misses_reports_and_no_event() {
    run(|manager| async move {
        let query = "?$filter=EventFormatType%20eq%20MetricReport%20or%20Severity%20eq%20'OK'";
        let mut slow = begin(&manager, query, None).expect("begun");
        let large = serde_json::json!({"Id": "x".repeat(200_000)});
        for _ in 0..50 {
            manager.events().report(&large, "/r");
            tokio::task::yield_now().await;
        }
        stopped(&manager, 1);
        let mut all = String::new();
        while !all.contains("ArrayStopped") {
            let part = next(&mut slow).await.expect("a part");
            assert!(part.len() <= 64 << 10, "{} bytes at a time", part.len());
            all += &part;
        }
        let reports = all.matches("{\"Id\":\"xx").count();
        assert!((1..=PARTS).contains(&reports), "{reports} reports waited");
    });
}

#[test]
fn a_client_that_takes_nothing_loses_its_stream_and_costs_nobody_time() {
    run(|manager| async move {
        let mut slow = begin(&manager, "", None).expect("begun");
        next(&mut slow).await.expect("a comment");
        for _ in 0..3 {
            stopped(&manager, MOST);
            tokio::task::yield_now().await;
        }
        let limit = Instant::now() + Duration::from_secs(60);
        while !manager.events().shown().subscriptions.is_empty() {
            assert!(Instant::now() < limit, "it goes on");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // What waited for it is all that it gets.
        let mut parts = 0;
        while next(&mut slow).await.is_some() {
            parts += 1;
        }
        assert!(parts <= PARTS + 1, "{parts} parts");
    });
}

#[test]
fn a_stream_ends_with_its_subscription_its_client_and_its_role() {
    run(|manager| async move {
        let one = || manager.events().shown().subscriptions.first().map(|one| one.id.clone());
        let mut deleted = begin(&manager, "", None).expect("begun");
        next(&mut deleted).await.expect("a comment");
        let id = one().expect("it is a subscription");
        manager.events().change(EventsChange::Unsubscribe { id }).await.map(drop).expect("ended");
        assert_eq!(next(&mut deleted).await, None);
        // A client that goes.
        drop(begin(&manager, "", None).expect("begun"));
        let limit = Instant::now() + Duration::from_secs(60);
        while one().is_some() {
            assert!(Instant::now() < limit, "it goes on");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let mut outcast = begin(&manager, "", None).expect("begun");
        next(&mut outcast).await.expect("a comment");
        // Nobody but these, and they are nobody.
        manager.set_local(crate::local::Local::default());
        assert_eq!(Caller::of(&ROOT, &manager.local()).role, None);
        assert_eq!(next(&mut outcast).await, None);
    });
}

#[test]
fn so_many_streams_there_can_be() {
    run(|manager| async move {
        let most = redfish::events::STREAMS_MOST;
        let all: Vec<_> = (0..most).map(|_| begin(&manager, "", None).expect("begun")).collect();
        let refusal = begin(&manager, "", None).map(drop).expect_err("full");
        assert_eq!((refusal.status, refusal.retry_after), (503, Some(AGAIN)));
        drop(all);
    });
}
