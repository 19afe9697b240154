//! What alerts say: a row a condition that no event tells, and the events that tell of alerts.

use super::{Notice, Severity};
use crate::messages::Arg::{Number, Text};

notices! { ALERTS:
    DRIVE_NOT_WELL: "DriveNotWell" Warning [Text("DRIVE"), Text("PROBLEM"), Text("ADVICE")]
        "drive %1 is not well: %2",
        "%3",
        "The drive's own figures, or the kernel's, break a health rule. The rules are in the \
         configuration under `health`.";
    MEMORY_NOT_LOCKED: "MemoryNotLocked" Warning [Text("PROBLEM")]
        "programs that write to volumes may hang when memory is short: %1",
        "give the daemon's service LimitMEMLOCK=infinity and \
         AmbientCapabilities=CAP_SYS_RESOURCE",
        "A kernel that is short of memory may write it out to the daemon's own volumes. A daemon \
         whose memory can be taken away then waits for itself.";
    SENSOR_NOT_WELL: "SensorNotWell" Warning [Text("SENSOR"), Text("READING")]
        "sensor %1 reads %2",
        "check the cooling and the power of the machine",
        "The sensor is beyond the limit that it has itself.";
    FAN_NOT_WELL: "FanNotWell" Warning [Text("FAN"), Text("READING")]
        "fan %1 turns at %2",
        "check the fan, and replace it if it stands still",
        "The fan turns more slowly than it should.";
    SUPPLY_NOT_WELL: "SupplyNotWell" Warning [Text("SUPPLY"), Text("PROBLEM")]
        "power supply %1 %2",
        "check the supply and its cable",
        "The machine has no spare power while one of its supplies gives none.";
    SHELF_SILENT: "ShelfSilent" Warning
        [Text("ENCLOSURE"), Text("URL"), Text("SINCE"), Text("PROBLEM")]
        "shelf %1 has told nothing of itself since %3: %2: %4",
        "see to the shelf's management service, its fingerprint and its credentials",
        "The management service of the shelf does not answer. What the shelf told last is shown. \
         Its drives are used all the same, and the service is tried again with growing pauses.";
    SHELF_PART_NOT_WELL: "ShelfPartNotWell" Warning
        [Text("ENCLOSURE"), Text("PART"), Text("READING")]
        "shelf %1: %2: %3",
        "check the part, and replace it if it has failed",
        "The shelf says by its management service that the part is not as it should be, or is not \
         there.";
    PORT_WITHOUT_LINK: "PortWithoutLink" Warning [Text("PORT"), Text("LISTENER")]
        "network port %1, at which %2 is served, has no link",
        "check the cable and the switch",
        "Hosts can't reach the address of a listener by this port.";
    MAIL_NOT_SENT: "MailNotSent" Warning [Text("SERVER"), Text("PROBLEM")]
        "mail can't be sent by %1: %2",
        "see to the mail server, then try it with: palisade alert test",
        "The mail server can't be reached, or does not take mail. What is to be sent waits, and \
         the server is tried again with growing pauses. This alert is not sent by mail.";
    MAIL_REFUSED: "MailRefused" Warning [Text("RECIPIENT"), Text("PROBLEM")]
        "mail to %1 is refused: %2",
        "correct the address, then try it with: palisade alert test",
        "The mail server takes mail, but none for this recipient. This alert is not sent by mail.";
    WEBHOOK_FAILS: "WebhookFails" Warning [Text("RECEIVER"), Text("PROBLEM")]
        "events can't be delivered to %1: %2",
        "see to the receiver, then try it with: palisade alert test",
        "The receiver of a subscription can't be reached, or does not take events. It is tried \
         again unless the subscription is suspended.";
    EVENTS_DROPPED: "EventsDropped" Warning [Text("RECEIVER"), Number("EVENTS")]
        "%2 events were never delivered to %1",
        "have the receiver read the log of events, which may have them",
        "More events came than are kept while the receiver took none. This is told for a day.";
    ALERT_RAISED: "AlertRaised" Warning [Text("ALERT"), Text("WHAT")]
        "alert %1: %2",
        "see what to do with: palisade alert list",
        "Something is wrong, and stays so until it is told that the alert is over.";
    CRITICAL_ALERT_RAISED: "CriticalAlertRaised" Critical [Text("ALERT"), Text("WHAT")]
        "alert %1: %2",
        "see what to do with: palisade alert list",
        "Data or service is in danger, until it is told that the alert is over.";
    ALERT_STANDS: "AlertStands" Warning [Text("ALERT"), Text("WHAT")]
        "alert %1 still stands: %2",
        "see to it, or have it rest with: palisade alert ack %1",
        "Told once a day while nobody has acknowledged the alert.";
    CRITICAL_ALERT_STANDS: "CriticalAlertStands" Critical [Text("ALERT"), Text("WHAT")]
        "alert %1 still stands: %2",
        "see to it, or have it rest with: palisade alert ack %1",
        "Told once a day while nobody has acknowledged the alert.";
    ALERT_CLEARED: "AlertCleared" Ok [Text("ALERT"), Text("WHAT")]
        "alert %1 is over: %2",
        "nothing",
        "What was wrong is no longer so.";
    ALERT_ACKNOWLEDGED: "AlertAcknowledged" Ok [Text("ALERT"), Text("WHO")]
        "alert %1 was acknowledged by %2",
        "nothing",
        "The alert stays until what is wrong is right, and is not told again.";
    ALERTS_TOGETHER: "AlertsTogether" Warning [Number("RAISED"), Number("CLEARED")]
        "%1 more alerts were raised, and %2 are over",
        "list what stands with: palisade alert list",
        "More than ten messages of alerts came within a minute: the others are told together.";
    CRITICAL_ALERTS_TOGETHER: "CriticalAlertsTogether" Critical
        [Number("RAISED"), Number("CLEARED")]
        "%1 more alerts were raised, some of them critical, and %2 are over",
        "list what stands with: palisade alert list",
        "More than ten messages of alerts came within a minute: the others are told together.";
}
