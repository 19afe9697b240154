//! The audit log: its newest lines.

use super::{Standing, collection, link, uri};
use crate::dates;
use crate::messages::{CHANGE_BEGINS, CHANGE_DONE, CHANGE_NOT_DONE, CHANGE_NOT_KNOWN, Notice};
use crate::oem;
use crate::view::{Ending, Entry, View};
use core::ops::Range;
use serde_json::{Value, json};
use std::net::IpAddr;

pub(super) fn services() -> Value {
    let uris = [uri::AUDIT.to_owned(), uri::EVENT_LOG.to_owned()];
    collection(uri::LOG_SERVICES, "LogServiceCollection", "Logs", uris)
}

/// How the logs are that the state directory keeps.
pub(super) fn standing(view: &View) -> Standing {
    match view.status.state.problem {
        None => Standing::GOOD,
        Some(_) => Standing::enabled("Warning"),
    }
}

pub(super) fn audit(view: &View) -> Value {
    json!({
        "@odata.id": uri::AUDIT,
        "@odata.type": "#LogService.v1_9_0.LogService",
        "Id": "Audit",
        "Name": "Changes, logins and refusals",
        "ServiceEnabled": true,
        "DateTime": dates::text(view.server.now),
        "DateTimeLocalOffset": "+00:00",
        "LogEntryType": "OEM",
        "LogPurposes": ["Security"],
        "MaxNumberOfRecords": view.log.most,
        "OverWritePolicy": "WrapsWhenFull",
        "Persistency": view.log.is_kept,
        "Status": standing(view).status(),
        "Entries": link(uri::AUDIT_ENTRIES),
        "Actions": {"Oem": {
            "#PalisadeLogService.Verify": {
                "target": format!("{}/Actions/Oem/PalisadeLogService.Verify", uri::AUDIT),
            },
        }},
    })
}

pub(super) fn entries(view: &View, members: &Range<usize>) -> Value {
    let (name, lines) = ("Lines of the audit log", view.log.entries.iter());
    super::log_entries(uri::AUDIT_ENTRIES, name, lines, members, |entry| line(view, entry))
}

pub(super) fn entry(view: &View, id: &str) -> Option<Value> {
    let number: u64 = id.parse().ok().filter(|number: &u64| number.to_string() == id)?;
    Some(line(view, view.log.entry(number)?))
}

fn line(view: &View, entry: &Entry) -> Value {
    let number = entry.number;
    let notice = notice(entry.result);
    let args = args(entry);
    let mut resource = json!({
        "@odata.id": uri::audit_entry(number),
        "@odata.type": "#LogEntry.v1_21_0.LogEntry",
        "Id": number.to_string(),
        "Name": format!("Line {number} of the audit log"),
        "EntryType": "Oem",
        "OemRecordFormat": "Palisade audit log",
        "Created": dates::text(entry.time),
        "Severity": notice.severity.word(),
        "Message": notice.text(&args),
        "OriginatorType": if entry.from.is_empty() { "Internal" } else { "Client" },
        "Persistency": view.log.is_kept,
        "Oem": oem::wrapped(&oem::LogEntry::from(entry)),
    });
    super::put_named(&mut resource, "Username", &entry.who);
    match &entry.message {
        Some(id) => super::put(&mut resource, "MessageId", json!(id)),
        None => {
            super::put(&mut resource, "MessageId", json!(notice.id()));
            super::put(&mut resource, "MessageArgs", json!(args));
        }
    }
    if let Ok(address) = entry.from.parse::<IpAddr>() {
        let host = match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        super::put(&mut resource, "OriginAddress", json!(format!("https://{host}")));
    }
    resource
}

/// What is said of a line where no refusal says it.
const fn notice(result: Ending) -> Notice {
    match result {
        Ending::Intent => CHANGE_BEGINS,
        Ending::Ok => CHANGE_DONE,
        Ending::Refused | Ending::Failed => CHANGE_NOT_DONE,
        Ending::NotKnown => CHANGE_NOT_KNOWN,
    }
}

fn args(entry: &Entry) -> [&str; 2] {
    let what = if entry.what.is_empty() { &entry.request } else { &entry.what };
    [&entry.who, what]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;
    use crate::read;

    #[test]
    fn every_line_names_a_message() {
        for (result, name, severity) in [
            (Ending::Intent, "ChangeBegins", "OK"),
            (Ending::Ok, "ChangeDone", "OK"),
            (Ending::Failed, "ChangeNotDone", "Warning"),
            (Ending::NotKnown, "ChangeNotKnown", "Warning"),
        ] {
            let mut entry = Entry {
                number: 1,
                time: 0,
                who: "ann".to_owned(),
                from: "socket".to_owned(),
                request: "DELETE /a".to_owned(),
                what: "delete array a".to_owned(),
                result,
                message: None,
                of: None,
            };
            let told = line(&View::default(), &entry);
            assert_eq!(told["MessageId"], format!("{}{name}", messages::PREFIX));
            assert_eq!(told["MessageArgs"], json!(["ann", "delete array a"]));
            assert_eq!(told["Severity"], severity);
            assert_eq!(read::entry(&told).expect("a line"), entry);
            // The refusal says it where there is one.
            entry.message = Some("Palisade.1.0.NoArray".to_owned());
            let told = line(&View::default(), &entry);
            assert_eq!(
                (&told["MessageId"], told.get("MessageArgs")),
                (&json!(entry.message), None)
            );
            assert_eq!(read::entry(&told).expect("a line"), entry);
        }
    }
}
