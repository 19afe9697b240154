//! Events as they are told, and who wants them.

use super::filter::{Filter, Subject, of_query};
use super::receiver::{Receiver, is_header};
use super::*;

fn event(notice: &Notice, args: &[&dyn Display], origin: &str) -> Event {
    Event { id: 7, at: 1, ..Event::new(notice, args, origin) }
}

fn degraded() -> Event {
    event(&messages::ARRAY_DEGRADED, &[&"tank"], &uri::pool("a-1"))
}

#[test]
fn an_event_is_told_as_redfish_has_it() {
    let told = payload(Some("mine"), [&degraded()]);
    assert_eq!((&told["@odata.type"], &told["Context"]), (&json!(TYPE), &json!("mine")));
    let record = &told["Events"][0];
    assert_eq!(record["MessageId"], "Palisade.1.0.ArrayDegraded");
    assert_eq!(record["Message"], "array tank is degraded");
    assert_eq!(record["MessageArgs"], json!(["tank"]));
    assert_eq!((&record["EventId"], &record["EventType"]), (&json!("7"), &json!("Alert")));
    assert_eq!(record["MessageSeverity"], "Warning");
    assert!(record["Resolution"].as_str().is_some_and(|text| text.contains("replace tank")));
    assert_eq!(record["OriginOfCondition"]["@odata.id"], uri::pool("a-1"));
    assert_eq!(record["EventTimestamp"], "1970-01-01T00:00:01Z");
    assert_eq!(degraded().resource_type(), "StoragePool");
}

#[test]
fn a_row_of_another_version_is_told_as_well_as_can_be() {
    let old = Event { name: "Gone".to_owned(), args: vec!["x".to_owned()], ..degraded() };
    assert_eq!((old.text().as_str(), old.severity()), ("Gone x", Severity::Ok));
    let fewer = Event { args: Vec::new(), ..degraded() };
    assert_eq!(fewer.text(), "ArrayDegraded ");
}

#[test]
fn every_kind_of_event_has_its_word() {
    for (notice, kind) in [
        (&messages::ARRAY_CREATED, Kind::ResourceAdded),
        (&messages::ARRAY_GONE, Kind::ResourceRemoved),
        (&messages::VOLUME_RESIZED, Kind::ResourceUpdated),
        (&messages::ARRAY_OPTIMAL, Kind::StatusChange),
        (&messages::SCRUB_FOUND, Kind::Alert),
        (&messages::TEST_EVENT, Kind::Other),
    ] {
        assert_eq!(super::kind(notice), kind, "{notice}");
    }
}

#[test]
fn a_filter_tells_events_apart() {
    let array = degraded();
    let login = event(&messages::LOGGED_IN, &[&"ann", &"10.0.0.1"], uri::SESSIONS);
    for (text, wants_array, wants_login) in [
        ("EventFormatType eq Event", true, true),
        ("EventFormatType eq 'Event'", true, true),
        ("EventFormatType eq 'MetricReport'", false, false),
        ("EventType eq 'Alert'", true, false),
        ("EventType ne 'Alert'", false, true),
        ("MessageId eq 'Palisade.1.0.ArrayDegraded'", true, false),
        ("MessageId eq 'Palisade.ArrayDegraded'", true, false),
        ("MessageId eq ArrayDegraded", true, false),
        ("MessageId eq 'Palisade.2.0.ArrayDegraded'", false, false),
        ("MessageId eq 'Base.1.0.ArrayDegraded'", false, false),
        ("RegistryPrefix eq Palisade", true, true),
        ("RegistryPrefix eq Base", false, false),
        ("ResourceType eq 'StoragePool'", true, false),
        ("Severity eq 'OK'", false, true),
        ("MessageSeverity eq Warning", true, false),
        ("not (ResourceType eq 'StoragePool')", false, true),
        ("EventType eq 'Alert' or MessageId eq 'LoggedIn'", true, true),
        ("EventType eq 'Alert' and Severity eq OK", false, false),
        ("OriginResource eq '/redfish/v1/SessionService/Sessions/'", false, true),
        ("OriginResource eq '/redfish/v1/SessionService'", false, false),
        (
            "(OriginResource eq '/redfish/v1/SessionService') and (SubordinateResources eq true)",
            false,
            true,
        ),
        ("OriginResource eq '/redfish/v1/Session' and SubordinateResources eq true", false, false),
        ("OriginResource eq '/redfish/v1' and SubordinateResources eq false", false, false),
    ] {
        let filter = Filter::read(text).expect(text);
        assert_eq!(filter.wants(Subject::Event(&array)), wants_array, "{text}");
        assert_eq!(filter.wants(Subject::Event(&login)), wants_login, "{text}");
    }
}

#[test]
fn reports_of_metrics_are_told_to_who_asks_for_them() {
    let report = Subject::Report("/redfish/v1/TelemetryService/MetricReportDefinitions/Volumes");
    for (text, wanted) in [
        ("EventFormatType eq MetricReport", true),
        ("EventFormatType eq Event", false),
        ("RegistryPrefix ne Base", false),
        (
            "MetricReportDefinition eq \
             '/redfish/v1/TelemetryService/MetricReportDefinitions/Volumes'",
            true,
        ),
        ("MetricReportDefinition eq '/redfish/v1/TelemetryService'", false),
        ("EventFormatType eq Event or EventFormatType eq MetricReport", true),
    ] {
        assert_eq!(Filter::read(text).expect(text).wants(report), wanted, "{text}");
    }
    assert!(!filter::Wanted::default().has(report));
}

#[test]
fn what_is_no_filter_of_events_is_refused() {
    for (raw, status) in [
        ("$filter=", 400),
        ("$filter=Name%20eq%20'x'", 400),
        ("$filter=EventType%20gt%20'Alert'", 400),
        ("$filter=EventType", 400),
        ("$filter=EventType%20eq%205", 400),
        ("$filter=EventType%20eq%20", 400),
        ("$filter='Alert'%20eq%20EventType", 400),
        ("$filter=%ff", 400),
        ("$filter=EventType+eq+Alert&$filter=EventType+eq+Alert", 400),
        ("only", 400),
        ("$top=1", 501),
        ("$expand=.", 501),
    ] {
        assert_eq!(of_query(raw).expect_err(raw).status, status, "{raw}");
    }
    assert_eq!(of_query("x=1").expect("ignored"), None);
    assert!(of_query("$filter=EventType+eq+Alert").expect("good").is_some());
}

#[test]
fn a_list_that_is_empty_wants_all() {
    let mut wants = filter::Wanted::default();
    let array = degraded();
    let has = |wants: &filter::Wanted| wants.has(Subject::Event(&array));
    assert!(has(&wants));
    wants.severities = vec![Severity::Critical];
    assert!(!has(&wants));
    wants.severities.push(Severity::Warning);
    wants.types = vec!["Volume".to_owned(), "StoragePool".to_owned()];
    wants.messages = vec!["Palisade.1.0.ArrayDegraded".to_owned()];
    assert!(has(&wants));
    wants.registries = vec!["Base".to_owned()];
    assert!(!has(&wants));
}

#[test]
fn a_receiver_is_a_uri_without_credentials() {
    let read = |uri: &str| Receiver::read(uri).expect(uri);
    let plain = read("http://receiver.example");
    assert_eq!((plain.tls, plain.port, plain.path.as_str()), (false, 80, "/"));
    let six = read("HTTPS://[::1]:8443/a?b=%20c");
    assert_eq!((six.tls, six.host.as_str(), six.port), (true, "::1", 8443));
    assert_eq!((six.authority.as_str(), six.path.as_str()), ("[::1]:8443", "/a?b=%20c"));
    assert_eq!(read("https://a?b").path, "/?b");
    for uri in [
        "",
        "x",
        "ftp://a",
        "http://",
        "http:///a",
        "https://user:secret@a/",
        "https://user@a/",
        "https://a:0/",
        "https://a:99999/",
        "https://a:/",
        "https://a b/",
        "https://a/#b",
        "https://[::1",
        "https://[x]/",
        "https://[::1]x/",
        "//a/",
        "https://a/\r\nX: y",
        "https://ä/",
    ] {
        assert_eq!(Receiver::read(uri), None, "{uri}");
    }
}

#[test]
fn a_header_is_one_that_the_daemon_does_not_send() {
    assert!(is_header("Authorization", "Bearer a.b"));
    for (name, value) in
        [("", "x"), ("a b", "x"), ("a:", "x"), ("HOST", "x"), ("a", "x\r\ny"), ("a", "ä")]
    {
        assert!(!is_header(name, value), "{name}: {value}");
    }
}
