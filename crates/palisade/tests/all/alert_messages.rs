//! Which tests bring about what is said of alerts, and of drives as devices: rows as those of
//! [`crate::messages`].

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
        "shelves_that_tell_of_themselves_are_told",
        &["ShelfSilent", "ShelfPartNotWell"],
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
        &["AlertAcknowledged", "TestNotDelivered", "NoRecipient"],
    ),
    (
        "crates/control/src/plugging_tests.rs",
        "a_drive_that_is_back_is_shown_with_the_command_that_uses_it",
        &["DriveReturned"],
    ),
    (
        "crates/control/src/plugging_tests.rs",
        "drives_that_are_not_failed_are_told",
        &["DrivePathGone", "DrivesGoneTogether"],
    ),
    (
        "crates/palisade/tests/all/shelf.rs",
        "a_drive_of_a_shelf_comes_back_by_itself_unless_somebody_had_it",
        &["DriveNotTaken", "DriveNotAsItWent"],
    ),
    (
        "crates/palisade/tests/all/shelf.rs",
        "a_shelf_that_starts_anew_fails_no_drive",
        &["ArrayWaits"],
    ),
    (
        "crates/control/src/hardware_tests.rs",
        "an_indicator_that_is_not_switched_says_why",
        &["DriveIndicatorFailed"],
    ),
    (
        "crates/control/src/hardware_tests.rs",
        "a_drive_takes_a_power_state_or_refuses_in_its_words",
        &["DrivePowerRefused"],
    ),
];
