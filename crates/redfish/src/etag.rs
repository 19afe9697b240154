//! ETags of resources, and requests that hold for some of them only (DSP0266, "ETags"; RFC 9110,
//! section 13).
//!
//! An ETag is of what a resource says, less what moves by itself ([`MOVING`]): two answers with one
//! ETag need not be equal byte by byte. Such ETags are weak (RFC 9110, section 8.8.1). RFC 9110
//! never finds a weak one in `If-Match`; DSP0266 wants ETags there as they were given, weak ones,
//! too. Therefore `W/` counts for nothing when ETags are compared.
//!
//! Invariants
//! - The ETag of a resource is a function of the resource alone.
//! - Time, progress and I/O change no ETag: a request with `If-Match` fails only where somebody
//!   changed something, or something happened that a person would want to know first. But the
//!   progress of a job or of a task changes its own, and so do the values of a report of metrics,
//!   of metrics of a volume, a drive or a supply, of a sensor and of a fan: who reads one again
//!   wants nothing else.

use crate::error::{Base, Refusal};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The annotation of a resource.
pub const PROPERTY: &str = "@odata.etag";

/// Properties that change though nobody changed anything: time, progress, and counters of I/O.
///
/// They are left out at whatever depth they are, with all that they hold.
pub const MOVING: [&str; 43] = [
    PROPERTY,
    // The words of a condition have the last reading; which it is, and how grave, is told besides.
    "Message",
    "MessageArgs",
    // Time.
    "DateTime",
    "Locked",
    "EstimatedCompletionTime",
    // When something was asked how it is.
    "Checked",
    // Progress of a job.
    "PercentComplete",
    "PercentageComplete",
    "DoneBytes",
    "SecondsLeft",
    // That whoever has an array lives.
    "HeartbeatAgeMs",
    // Whether I/O goes on in an array, and what it has met.
    "Unclean",
    "CrashSafe",
    "ReadErrors",
    "Rewritten",
    "WrongStrips",
    "Failures",
    "Timeouts",
    "WrittenBytes",
    "DirtyRegions",
    "WrittenPercents",
    "DriveRequests",
    // What was counted of volumes.
    "IOStatistics",
    "UncorrectableIOReadErrorCount",
    "UncorrectableIOWriteErrorCount",
    "Reads",
    "Writes",
    "Flushes",
    "Discards",
    // Queues of a host that stays.
    "Queues",
    // What a GPU has done.
    "GPUJobs",
    "GPUBytes",
    "GPUUndone",
    "GPUChecked",
    "GPUSharedBytes",
    "GPUKeptBytes",
    "Retries",
    // What a drive is asked for from time to time, and the power state that it takes by itself.
    "AskedTime",
    "SensorCelsius",
    "WornOutTime",
    "CurrentState",
    // What data cores did.
    "CoreTimes",
];

/// Properties that move in resources of one type only: a file system is written by its clients, and
/// those of a share come and go.
const MOVING_OF: [(&str, &[&str]); 2] =
    [("#FileSystem.", &["ConsumedBytes"]), ("#FileShare.", &["Clients"])];

/// Who reads one of these again wants its progress, or its values, and nothing else.
const OWN_PROGRESS: [&str; 9] = [
    "#Job.",
    "#Task.",
    "#MetricReport.",
    "#VolumeMetrics.",
    "#DriveMetrics.",
    "#Sensor.",
    "#Fan.",
    "#ThermalMetrics.",
    "#PowerSupplyMetrics.",
];

/// Of a digest so much is written: 96 bits in hexadecimal digits.
const BYTES: usize = 12;

/// The ETag of a resource, as headers and `@odata.etag` have it.
pub fn of(resource: &Value) -> String {
    let mut digest = Sha256::new();
    let kind = resource.get("@odata.type").and_then(Value::as_str).unwrap_or_default();
    let is_progress = OWN_PROGRESS.iter().any(|own| kind.starts_with(own));
    let of_type = MOVING_OF.iter().filter(|(own, _)| kind.starts_with(own));
    let mut left_out = if is_progress { vec![PROPERTY] } else { MOVING.to_vec() };
    left_out.extend(of_type.flat_map(|(_, names)| *names));
    feed(resource, &left_out, &mut digest);
    let mut text = String::from("W/\"");
    for byte in digest.finalize().iter().take(BYTES) {
        text.push_str(&format!("{byte:02x}"));
    }
    text.push('"');
    text
}

/// Gives a resource its ETag. What has no URI of its own is none.
pub fn put(resource: &mut Value) {
    if resource.get("@odata.id").is_none() {
        return;
    }
    let tag = of(resource);
    if let Some(own) = resource.as_object_mut() {
        own.insert(PROPERTY.to_owned(), Value::String(tag));
    }
}

/// What a resource says its ETag is.
pub fn read(resource: &Value) -> Option<&str> {
    resource.get(PROPERTY)?.as_str()
}

/// Each kind of value begins with a byte of its own, and what has a length with the length: no two
/// values are fed alike.
fn feed(value: &Value, left_out: &[&str], digest: &mut Sha256) {
    match value {
        Value::Null => digest.update(b"0"),
        Value::Bool(value) => digest.update(if *value { b"1" } else { b"2" }),
        Value::Number(number) => text(b'n', &number.to_string(), digest),
        Value::String(own) => text(b't', own, digest),
        Value::Array(all) => {
            digest.update(b"[");
            all.iter().for_each(|one| feed(one, left_out, digest));
            digest.update(b"]");
        }
        Value::Object(own) => {
            digest.update(b"{");
            for (name, value) in own.iter().filter(|(name, _)| !left_out.contains(&name.as_str())) {
                text(b'p', name, digest);
                feed(value, left_out, digest);
            }
            digest.update(b"}");
        }
    }
}

fn text(kind: u8, text: &str, digest: &mut Sha256) {
    digest.update([kind]);
    digest.update((text.len() as u64).to_le_bytes());
    digest.update(text.as_bytes());
}

/// ETags that a header lists, or all.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Listed {
    /// `*`: whatever is there.
    All,
    /// The ETags' texts, without `W/` and quotes.
    These(Vec<String>),
}

impl Listed {
    /// Reads a header's value (RFC 9110, sections 8.8.3 and 13.1.1); none if it can't be read. A
    /// text without quotes, as some clients send it, is read to its comma.
    fn read(value: &str) -> Option<Self> {
        if value.trim() == "*" {
            return Some(Self::All);
        }
        let mut all = Vec::new();
        let mut rest = value.trim_start();
        while !rest.is_empty() {
            let tag = rest.strip_prefix("W/").unwrap_or(rest);
            let (tag, after) = match tag.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"')?,
                None => tag.split_at(tag.find(',').unwrap_or(tag.len())),
            };
            let tag = tag.trim_end();
            if tag.is_empty() || tag == "*" || tag.contains('"') {
                return None;
            }
            all.push(tag.to_owned());
            let after = after.trim_start();
            rest = match after.strip_prefix(',') {
                Some(more) => Some(more.trim_start()).filter(|more| !more.is_empty())?,
                None => Some(after).filter(|after| after.is_empty())?,
            };
        }
        (!all.is_empty()).then_some(Self::These(all))
    }

    /// Whether an ETag is among them.
    fn has(&self, tag: &str) -> bool {
        let bare = tag.trim_start_matches("W/").trim_matches('"');
        match self {
            Self::All => true,
            Self::These(all) => all.iter().any(|one| one == bare),
        }
    }
}

/// Of which resource a request holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Conditions {
    matching: Option<Listed>,
    unlike: Option<Listed>,
}

impl Conditions {
    /// Reads the values of `If-Match` and `If-None-Match`; several headers of one name are joined
    /// with commas. An `If-Match` that can't be read names no ETag that there is.
    ///
    /// # Errors
    ///
    /// 400 if `If-None-Match` can't be read.
    pub fn read(if_match: Option<&str>, if_none_match: Option<&str>) -> Result<Self, Refusal> {
        let none = Listed::These(Vec::new());
        let wrong = || Refusal::base(&Base::HEADER_INVALID, &["If-None-Match"]);
        let unlike = if_none_match.map(|value| Listed::read(value).ok_or_else(wrong));
        Ok(Self {
            matching: if_match.map(|value| Listed::read(value).unwrap_or(none)),
            unlike: unlike.transpose()?,
        })
    }

    /// Whether a request asks for nothing.
    pub const fn is_empty(&self) -> bool {
        self.matching.is_none() && self.unlike.is_none()
    }

    /// Whether a change may be made of a resource, which has this ETag if it is there. What is not
    /// there is told otherwise.
    ///
    /// # Errors
    ///
    /// 412 if not.
    pub fn check(&self, tag: Option<&str>) -> Result<(), Refusal> {
        let Some(tag) = tag else { return Ok(()) };
        let is_other = self.matching.as_ref().is_some_and(|listed| !listed.has(tag));
        if is_other || self.is_known(tag) {
            return Err(Refusal::base(&Base::PRECONDITION_FAILED, &[]));
        }
        Ok(())
    }

    /// Whether who reads has what has this ETag already.
    ///
    /// # Errors
    ///
    /// 412 if another one was asked for.
    pub fn is_unchanged(&self, tag: Option<&str>) -> Result<bool, Refusal> {
        Self { matching: self.matching.clone(), unlike: None }.check(tag)?;
        Ok(tag.is_some_and(|tag| self.is_known(tag)))
    }

    fn is_known(&self, tag: &str) -> bool {
        self.unlike.as_ref().is_some_and(|listed| listed.has(tag))
    }
}

#[cfg(test)]
#[path = "etag_tests.rs"]
mod tests;
