//! Which tests bring about what is said of alerts: rows as those of [`crate::messages`].

/// The test's file and name, and the messages.
pub const ALERTS: &[(&str, &str, &[&str])] = &[
    (
        "crates/control/src/alerts_tests.rs",
        "files_that_can_not_be_read_or_written_are_told_and_left",
        &["AlertsNotRead", "MailNotWritten"],
    ),
    (
        "crates/control/src/alerts_tests.rs",
        "what_is_wrong_is_told_and_mailed_once_and_that_it_is_over_too",
        &["AlertRaised", "AlertCleared", "CriticalAlertRaised"],
    ),
    (
        "crates/control/src/alerts_tests.rs",
        "more_than_ten_a_minute_are_told_together",
        &["AlertsTogether"],
    ),
    (
        "crates/redfish/src/alerts/ledger_tests.rs",
        "what_is_told_is_an_event",
        &["AlertStands", "CriticalAlertStands", "CriticalAlertsTogether"],
    ),
    (
        "crates/redfish/src/alerts/conditions_tests.rs",
        "mail_and_webhooks_that_fail_are_told",
        &["MailNotSent", "MailRefused", "WebhookFails", "EventsDropped"],
    ),
    (
        "crates/redfish/src/alerts/conditions_tests.rs",
        "what_is_around_the_drives_is_told",
        &["SensorNotWell", "FanNotWell", "SupplyNotWell"],
    ),
    (
        "crates/redfish/src/alerts/conditions_tests.rs",
        "a_port_without_link_is_told_if_something_listens_there",
        &["PortWithoutLink"],
    ),
    (
        "crates/redfish/src/alerts/conditions_tests.rs",
        "each_reason_of_a_drive_is_one",
        &["DriveNotWell"],
    ),
    (
        "crates/redfish/src/alerts/conditions_tests.rs",
        "exports_drives_and_the_daemon_are_told",
        &["MemoryNotLocked"],
    ),
    (
        "crates/palisade/tests/all/events.rs",
        "alerts_are_listed_acknowledged_and_tested",
        &["AlertAcknowledged", "TestNotDelivered"],
    ),
];
