//! Alerts as the daemon keeps, tells and mails them: against a mail server of a few lines.

use super::*;
use core::future::Future;
use redfish::change::{EventsChange, NewSubscription};
use redfish::events::Policy;
use redfish::events::filter::Wanted;
use redfish::events::smtp::Protocol;
use redfish::messages::Severity;
use redfish::view::{Array, ArrayState, Server, Status};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

fn run(test: impl Future<Output = ()>) {
    let builder = &mut tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime").block_on(test);
}

/// How a mail server behaves.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// It takes mail.
    Works,
    /// It refuses recipients whose address begins with `bad`.
    RefusesBad,
    /// It ends the connection in the middle of a mail.
    BreaksOff,
    /// It ends the connection when a recipient is named whose address begins with `bad`.
    BreaksAtBad,
    /// It takes no mail at all now.
    Busy,
    /// It says nothing.
    Mute,
}

/// A mail server: what it has taken, and how it behaves.
struct MailServer {
    port: u16,
    taken: mpsc::UnboundedReceiver<String>,
    manner: tokio::sync::watch::Sender<Manner>,
}

impl MailServer {
    async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let port = listener.local_addr().expect("an address").port();
        let (put, taken) = mpsc::unbounded_channel();
        let manner = tokio::sync::watch::Sender::new(manner);
        let told = manner.subscribe();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (put, manner) = (put.clone(), *told.borrow());
                tokio::spawn(async move {
                    // A client may go.
                    let _ = talk(stream, manner, &put).await;
                });
            }
        });
        Self { port, taken, manner }
    }

    async fn next(&mut self) -> String {
        self.taken.recv().await.expect("a mail")
    }

    /// The subject of the next mail.
    async fn subject(&mut self) -> String {
        let mail = self.next().await;
        let line = mail.lines().find_map(|line| line.strip_prefix("Subject: "));
        line.unwrap_or_else(|| panic!("{mail}")).to_owned()
    }
}

async fn talk(
    stream: tokio::net::TcpStream,
    manner: Manner,
    put: &mpsc::UnboundedSender<String>,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    if manner == Manner::Mute {
        let mut line = String::new();
        // Nobody may listen.
        let _ = put.send("connected".to_owned());
        stream.read_line(&mut line).await?;
        return Ok(());
    }
    stream.write_all(b"220 mail.example\r\n").await?;
    let (mut line, mut mail, mut is_data) = (String::new(), String::new(), false);
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let reply = match (is_data, line.trim_end()) {
            (true, ".") => {
                is_data = false;
                // Nobody may listen.
                let _ = put.send(core::mem::take(&mut mail));
                "250 taken"
            }
            (true, text) => {
                mail.push_str(text);
                mail.push('\n');
                continue;
            }
            (false, text) if text.starts_with("EHLO") => "250 mail.example",
            (false, text) if text.starts_with("MAIL") && manner == Manner::Busy => {
                "451 come back later"
            }
            (false, text) if manner == Manner::BreaksAtBad && text.contains("<bad") => {
                return Ok(());
            }
            (false, text) if text.starts_with("RCPT") => {
                match manner == Manner::RefusesBad && text.contains("<bad") {
                    true => "550 nobody of that name",
                    false => "250 fine",
                }
            }
            (false, "DATA") if manner == Manner::BreaksOff => return Ok(()),
            (false, "DATA") => {
                is_data = true;
                "354 go on"
            }
            (false, "QUIT") => "221 bye",
            (false, _) => "250 fine",
        };
        stream.write_all(format!("{reply}\r\n").as_bytes()).await?;
    }
}

fn settings(port: u16) -> MailChange {
    MailChange {
        is_enabled: Some(true),
        server: Some("127.0.0.1".to_owned()),
        port: Some(port),
        from: Some("palisade@mail.example".to_owned()),
        protocol: Some(Protocol::None),
        ..MailChange::default()
    }
}

/// Alerts that try again soon, with events that have these recipients.
async fn alerts(port: u16, to: &[(&str, &[Severity])]) -> (Arc<Alerts>, Events) {
    let alerts = Alerts { first: Duration::from_millis(5), ..Alerts::in_memory() };
    let (alerts, events) = (Arc::new(alerts), Events::in_memory(None));
    alerts.change(settings(port)).await.expect("changed");
    for (address, severities) in to {
        subscribe(&events, address, severities).await;
    }
    alerts.start();
    (alerts, events)
}

/// One more recipient.
async fn subscribe(events: &Events, address: &str, severities: &[Severity]) {
    let new = NewSubscription {
        destination: format!("mailto:{address}"),
        context: None,
        wants: Wanted { severities: severities.to_vec(), ..Wanted::default() },
        policy: Policy::RetryForever,
        verify: true,
        headers: Vec::new(),
    };
    events.change(EventsChange::Subscribe(new)).await.map(drop).expect("subscribed");
}

/// A view with one array.
fn view(alerts: &Alerts, events: &Events, now: u64, state: ArrayState) -> View {
    let array =
        Array { name: "tank".to_owned(), uuid: "u-1".to_owned(), state, ..Array::default() };
    View {
        server: Server { name: "nas1".to_owned(), now, ..Server::default() },
        status: Status { ready: true, arrays: vec![array], ..Status::default() },
        events: alerts.complete(events.shown()),
        ..View::default()
    }
}

/// The names of the events that a view in this state makes.
fn follow(alerts: &Alerts, events: &Events, now: u64, state: ArrayState) -> Vec<String> {
    let (_, told) = alerts.follow(&view(alerts, events, now, state), false);
    told.into_iter().map(|event| event.name).collect()
}

fn problem(alerts: &Alerts, events: &Events) -> Option<String> {
    alerts.complete(events.shown()).mail.problem.clone()
}

/// Waits until something is so.
async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn what_is_wrong_is_told_and_mailed_once_and_that_it_is_over_too() {
    run(async {
        let mut server = MailServer::start(Manner::Works).await;
        let only: &[Severity] = &[Severity::Critical];
        let (alerts, events) =
            alerts(server.port, &[("all@mail.example", &[]), ("few@mail.example", only)]).await;
        let now = now();
        let told = |at, state| follow(&alerts, &events, now + at, state);
        assert_eq!(told(0, ArrayState::Degraded), ["AlertRaised"]);
        assert_eq!(told(1, ArrayState::Degraded), [""; 0]);
        let mail = server.next().await;
        for line in [
            "To: all@mail.example",
            "From: palisade@mail.example",
            "Subject: [palisade nas1] WARNING: array tank is degraded",
            "Auto-Submitted: auto-generated",
            "WARNING:    array tank is degraded",
        ] {
            assert!(mail.lines().any(|own| own == line), "{line}: {mail}");
        }
        assert_eq!(told(2, ArrayState::Optimal), ["AlertCleared"]);
        assert_eq!(server.subject().await, "[palisade nas1] CLEARED: array tank is degraded");
        // The one who wants critical alerts only gets the first of these two.
        assert_eq!(told(3, ArrayState::Failed), ["CriticalAlertRaised"]);
        let both = [server.next().await, server.next().await].concat();
        assert!(both.contains("To: few@mail.example") && both.contains("To: all@mail.example"));
        until(|| {
            alerts.complete(events.shown()).subscriptions.iter().all(|own| {
                own.standing.delivered == if own.recipient().starts_with("all") { 3 } else { 1 }
            })
        })
        .await;
        assert!(server.taken.try_recv().is_err());
    });
}

#[test]
fn a_mail_server_that_is_gone_is_an_alert_and_gets_what_waited_when_it_is_back() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let (alerts, events) = alerts(port, &[("ana@mail.example", &[])]).await;
        let now = now();
        assert_eq!(follow(&alerts, &events, now, ArrayState::Degraded), ["AlertRaised"]);
        until(|| problem(&alerts, &events).is_some()).await;
        // That is told, but not by mail.
        assert_eq!(follow(&alerts, &events, now + 1, ArrayState::Degraded), ["AlertRaised"]);
        let (shown, _) = alerts.follow(&view(&alerts, &events, now, ArrayState::Degraded), false);
        let names: Vec<&str> = shown.alerts.iter().map(|own| own.message.as_str()).collect();
        assert_eq!(names, ["ArrayDegraded", "MailNotSent"]);
        let mut server = MailServer::start(Manner::Works).await;
        alerts.change(settings(server.port)).await.expect("changed");
        assert_eq!(server.subject().await, "[palisade nas1] WARNING: array tank is degraded");
        until(|| alerts.inner().recipients.values().all(|own| own.outbox.is_empty())).await;
        assert_eq!(problem(&alerts, &events), None);
        assert_eq!(follow(&alerts, &events, now + 2, ArrayState::Degraded), ["AlertCleared"]);
        assert!(server.taken.try_recv().is_err());
    });
}

#[test]
fn what_a_server_broke_off_or_did_not_take_is_sent_again() {
    run(async {
        for (manner, why) in [(Manner::BreaksOff, ""), (Manner::Busy, "come back later")] {
            let mut server = MailServer::start(manner).await;
            let (alerts, events) = alerts(server.port, &[("ana@mail.example", &[])]).await;
            follow(&alerts, &events, now(), ArrayState::Degraded);
            until(|| problem(&alerts, &events).is_some_and(|own| own.contains(why))).await;
            server.manner.send_replace(Manner::Works);
            assert_eq!(server.subject().await, "[palisade nas1] WARNING: array tank is degraded");
            until(|| problem(&alerts, &events).is_none()).await;
            until(|| alerts.inner().recipients.values().all(|own| own.outbox.is_empty())).await;
            assert!(server.taken.try_recv().is_err());
        }
    });
}

#[test]
fn a_server_that_says_nothing_delays_nobody_else() {
    run(async {
        let mut server = MailServer::start(Manner::Mute).await;
        let (alerts, events) = alerts(server.port, &[("ana@mail.example", &[])]).await;
        let now = now();
        assert_eq!(follow(&alerts, &events, now, ArrayState::Degraded), ["AlertRaised"]);
        // The connection is there, and nothing comes.
        assert_eq!(server.next().await, "connected");
        // What is told is told while the mail is being sent.
        assert_eq!(follow(&alerts, &events, now + 1, ArrayState::Optimal), ["AlertCleared"]);
        alerts.close().await;
    });
}

#[test]
fn a_recipient_that_is_refused_is_an_alert_of_its_own_and_others_get_their_mail() {
    run(async {
        let mut server = MailServer::start(Manner::RefusesBad).await;
        let to: [(&str, &[Severity]); 2] = [("bad@mail.example", &[]), ("good@mail.example", &[])];
        let (alerts, events) = alerts(server.port, &to).await;
        let now = now();
        follow(&alerts, &events, now, ArrayState::Degraded);
        assert!(server.next().await.contains("To: good@mail.example"));
        let refused = || {
            let shown = alerts.complete(events.shown());
            let mut all = shown.subscriptions.iter().filter(|own| own.standing.problem.is_some());
            all.next().map(|own| (own.recipient().to_owned(), own.standing.problem.clone()))
        };
        until(|| refused().is_some()).await;
        let (who, why) = refused().expect("one");
        assert!(who == "bad@mail.example" && why.is_some_and(|why| why.contains("nobody of that")));
        assert_eq!(problem(&alerts, &events), None, "the server takes mail");
        assert_eq!(follow(&alerts, &events, now + 1, ArrayState::Degraded), ["AlertRaised"]);
        let (shown, _) = alerts.follow(&view(&alerts, &events, now, ArrayState::Degraded), false);
        assert!(shown.alerts.iter().any(|own| own.message == "MailRefused"), "{shown:?}");
    });
}

#[test]
fn a_recipient_at_whom_the_server_fails_keeps_the_others_from_nothing() {
    run(async {
        let mut server = MailServer::start(Manner::BreaksAtBad).await;
        let (alerts, events) = alerts(server.port, &[]).await;
        // Until the good one is tried after the bad one: identifiers are of chance.
        loop {
            subscribe(&events, "bad@mail.example", &[]).await;
            let bad = events.shown().subscriptions[0].id.clone();
            subscribe(&events, "good@mail.example", &[]).await;
            let all: Vec<_> =
                events.shown().subscriptions.iter().map(|own| own.id.clone()).collect();
            if all.iter().max() != Some(&bad) {
                break;
            }
            for id in all {
                events.change(EventsChange::Unsubscribe { id }).await.map(drop).expect("ended");
            }
        }
        follow(&alerts, &events, now(), ArrayState::Degraded);
        assert!(server.next().await.contains("To: good"));
    });
}

#[test]
fn where_nobody_waits_for_mail_any_more_no_mail_fails() {
    run(async {
        let (alerts, events) = alerts(9, &[("ana@mail.example", &[])]).await;
        let now = now();
        follow(&alerts, &events, now, ArrayState::Degraded);
        until(|| problem(&alerts, &events).is_some()).await;
        assert_eq!(follow(&alerts, &events, now + 1, ArrayState::Degraded), ["AlertRaised"]);
        let id = events.shown().subscriptions[0].id.clone();
        events.change(EventsChange::Unsubscribe { id }).await.map(drop).expect("unsubscribed");
        follow(&alerts, &events, now + 2, ArrayState::Degraded);
        assert_eq!(problem(&alerts, &events), None);
        assert_eq!(follow(&alerts, &events, now + 3, ArrayState::Degraded), ["AlertCleared"]);
    });
}

#[test]
fn more_than_ten_a_minute_are_told_together() {
    run(async {
        let (alerts, events) = alerts(9, &[]).await;
        let mut view = view(&alerts, &events, 1000, ArrayState::Degraded);
        let one = view.status.arrays[0].clone();
        view.status.arrays = (0..14)
            .map(|at| Array { name: format!("a{at}"), uuid: format!("u-{at}"), ..one.clone() })
            .collect();
        let (shown, told) = alerts.follow(&view, false);
        assert_eq!((shown.alerts.len(), told.len()), (14, 10));
        view.server.now = 1059;
        assert_eq!(alerts.follow(&view, false).1, []);
        view.server.now = 1060;
        let told = alerts.follow(&view, false).1;
        assert_eq!((told.len(), told[0].name.as_str()), (1, "AlertsTogether"));
        assert_eq!(told[0].text(), "4 more alerts were raised, and 0 are over");
    });
}

#[test]
fn while_the_daemon_starts_or_ends_nothing_is_raised_or_over() {
    run(async {
        let (alerts, events) = alerts(9, &[]).await;
        let mut starting = view(&alerts, &events, 1000, ArrayState::Degraded);
        starting.status.ready = false;
        assert_eq!(alerts.follow(&starting, false).1, []);
        assert_eq!(follow(&alerts, &events, 1001, ArrayState::Degraded), ["AlertRaised"]);
        let ending = view(&alerts, &events, 1002, ArrayState::Stopped);
        let (shown, told) = alerts.follow(&ending, true);
        assert_eq!((shown.alerts.len(), told.len()), (1, 0));
    });
}

fn open(dir: &Path) -> (Arc<Alerts>, Vec<Error>) {
    let state = Arc::new(State::open(dir).expect("opened"));
    let found = kept::read(&state);
    let (alerts, problems) = Alerts::kept(state, found);
    (Arc::new(alerts), problems)
}

#[test]
fn alerts_what_waits_and_how_mail_is_sent_outlive_the_daemon() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let events = Events::in_memory(None);
        let (alerts, problems) = open(place.path());
        assert!(problems.is_empty());
        let password = Some(redfish::access::Secret::new("correct horse"));
        alerts.change(MailChange { password, ..settings(9) }).await.expect("changed");
        let mode = std::fs::metadata(place.path().join("mail.json")).expect("there").permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        let shown = alerts.complete(events.shown());
        assert!(shown.mail.has_password && !format!("{shown:?}").contains("horse"));
        let now = now();
        assert_eq!(follow(&alerts, &events, now, ArrayState::Degraded), ["AlertRaised"]);
        alerts.acknowledge("1", "ana").expect("acknowledged");
        let unknown = alerts.acknowledge("7", "ana").expect_err("there is none");
        assert!(unknown.is(&say::NO_ALERT), "{unknown:?}");
        alerts.close().await;
        drop(alerts);
        let (alerts, problems) = open(place.path());
        assert!(problems.is_empty());
        let inner = alerts.inner();
        assert_eq!(inner.shown.alerts[0].acknowledged.as_ref().map(|own| &*own.1), Some("ana"));
        assert_eq!(inner.settings.password.as_ref().map(|own| own.reveal()), Some("correct horse"));
        drop(inner);
        assert_eq!(follow(&alerts, &events, now + 1, ArrayState::Degraded), [""; 0]);
        // It is another one that comes later.
        let told = follow(&alerts, &events, now + 2, ArrayState::Failed);
        assert_eq!(told, ["AlertCleared", "CriticalAlertRaised"]);
        assert_eq!(alerts.inner().shown.alerts[0].id, "2");
    });
}

#[test]
fn a_daemon_that_is_killed_knows_its_alerts_and_uses_no_identifier_again() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let events = Events::in_memory(None);
        let (alerts, _) = open(place.path());
        let now = now();
        follow(&alerts, &events, now, ArrayState::Degraded);
        assert!(alerts.write(false).await);
        // This one is told, and the daemon dies before it is written.
        follow(&alerts, &events, now + 1, ArrayState::Failed);
        let told = alerts.inner().shown.alerts[0].id.clone();
        drop(alerts);
        let (alerts, _) = open(place.path());
        assert_eq!(alerts.inner().shown.alerts[0].id, "1");
        assert_eq!(follow(&alerts, &events, now + 2, ArrayState::Failed), ["CriticalAlertRaised"]);
        let id = alerts.inner().shown.alerts[0].id.clone();
        assert!(told == "2" && id.parse::<u64>().is_ok_and(|id| id > 2), "{told}, then {id}");
    });
}

#[test]
fn files_that_can_not_be_read_or_written_are_told_and_left() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        for (file, text) in [("alerts.json", "{"), ("mail.json", "{\"version\":9}")] {
            std::fs::write(place.path().join(file), text).expect("written");
        }
        let (alerts, problems) = open(place.path());
        assert_eq!(problems.len(), 2);
        assert!(problems.iter().all(|own| own.is(&say::ALERTS_NOT_READ)), "{problems:?}");
        let refused = alerts.change(settings(9)).await.expect_err("it is left as it is");
        assert!(refused.is(&say::ALERTS_NOT_READ));
        let left = std::fs::read(place.path().join("mail.json")).expect("read");
        assert_eq!(left, b"{\"version\":9}");
        drop(alerts);
        for file in ["alerts.json", "mail.json"] {
            std::fs::remove_file(place.path().join(file)).expect("removed");
            // A directory in its place keeps a file from being written.
            std::fs::create_dir(place.path().join(format!("{file}.new"))).expect("made");
        }
        let (alerts, problems) = open(place.path());
        assert!(problems.is_empty());
        let refused = alerts.change(settings(9)).await.expect_err("it can't be written");
        assert!(refused.is(&say::MAIL_NOT_WRITTEN), "{refused:?}");
        assert!(!alerts.inner().settings.plain.is_enabled, "it did not happen");
        assert!(!alerts.write(false).await);
        assert!(alerts.unkept().is_some_and(|why| why.starts_with("alerts can't be written")));
    });
}

#[test]
fn a_test_says_what_came_of_it_for_each() {
    run(async {
        let mut server = MailServer::start(Manner::RefusesBad).await;
        let to: [(&str, &[Severity]); 2] = [("bad@mail.example", &[]), ("good@mail.example", &[])];
        let (alerts, events) = alerts(server.port, &to).await;
        follow(&alerts, &events, now(), ArrayState::Optimal);
        let hook = NewSubscription {
            destination: "http://127.0.0.1:9/secret".to_owned(),
            context: None,
            wants: Wanted::default(),
            policy: Policy::RetryForever,
            verify: true,
            headers: Vec::new(),
        };
        events.change(EventsChange::Subscribe(hook)).await.map(drop).expect("subscribed");
        let tested = alerts.test(&events, "ana").await.recipients;
        let of = |at: usize| (tested[at].destination.as_str(), tested[at].delivered);
        assert_eq!(of(0), ("http://127.0.0.1:9", false));
        assert_eq!(of(1), ("mailto:bad@mail.example", false));
        assert_eq!(of(2), ("mailto:good@mail.example", true));
        assert!(tested[0].problem.is_some() && tested[2].problem.is_none());
        assert!(server.subject().await.contains("TEST"));
        alerts
            .change(MailChange { is_enabled: Some(false), ..MailChange::default() })
            .await
            .expect("changed");
        let tested = alerts.test(&events, "ana").await.recipients;
        assert_eq!(tested[2].problem.as_deref(), Some("mail is switched off"));
    });
}
