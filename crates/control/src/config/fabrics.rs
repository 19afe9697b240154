//! The table `[fabrics]`: who this host is to drives behind NVMe over Fabrics and to other servers
//! that reach the same drives, and how its paths are used. Keys have nvme-cli's names, where it has
//! such.

use super::spans::{Found, Value, kind, table, text, within, wrong};
use ::nvme::nqn::Nqn;
use drives::remote::host::Settings;
use redfish::change::fabric;
use toml::de::DeValue;
use units::{Nanos, Uuid};

/// The least and the most milliseconds between two heartbeats.
const HEARTBEAT: (u16, u16) = (100, 60_000);

/// What the table says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fabrics {
    /// The host's name.
    pub hostnqn: Option<Nqn>,
    /// The host's identifier.
    pub hostid: Option<Uuid>,
    /// I/O queues of an association, if it says how many.
    pub nr_io_queues: Option<u16>,
    /// How often this host says on the drives of its shared arrays that it lives.
    pub heartbeat: Nanos,
    /// How paths are used. The number of queues follows from that of cores.
    pub settings: Settings,
}

const fn seconds(count: u16) -> Nanos {
    Nanos::from_millis(1_000 * count as u64)
}

impl Default for Fabrics {
    fn default() -> Self {
        let settings = Settings::default();
        let heartbeat = Nanos::from_millis(1_000);
        Self { hostnqn: None, hostid: None, nr_io_queues: None, heartbeat, settings }
    }
}

/// Reads the table; what is wrong keeps its default.
pub(super) fn read(value: &Value<'_>, cores: u16, found: &mut Found) -> Fabrics {
    let mut own = Fabrics::default();
    let Some(table) = table("fabrics", value, found) else { return own };
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let mut time = |range, into: &mut Nanos| {
            if let Some(count) = within(name, value, range, found) {
                *into = seconds(count);
            }
        };
        match name {
            "keep_alive_tmo" => time(fabric::KEEP_ALIVE, &mut own.settings.keep_alive),
            "reconnect_delay" => time(fabric::RECONNECT_DELAY, &mut own.settings.reconnect_delay),
            "fast_io_fail_tmo" => time(fabric::FAST_IO_FAIL, &mut own.settings.fast_io_fail),
            "ctrl_loss_tmo" => time(fabric::CONTROLLER_LOSS, &mut own.settings.controller_loss),
            "queue_size" => {
                own.settings.entries =
                    within(name, value, fabric::QUEUE_SIZE, found).unwrap_or(fabric::QUEUE_SIZE.0);
            }
            "nr_io_queues" => {
                // One for each core, and one for what waits.
                own.nr_io_queues = within(name, value, (1 + cores, u16::MAX), found);
            }
            "heartbeat_ms" => {
                if let Some(count) = within(name, value, HEARTBEAT, found) {
                    own.heartbeat = Nanos::from_millis(count.into());
                }
            }
            "caches_stay" => own.settings.caches_stay = on_or_off(name, value, found),
            "hdr_digest" => own.settings.digests.header = on_or_off(name, value, found),
            "data_digest" => own.settings.digests.data = on_or_off(name, value, found),
            "hostnqn" | "hostid" => host(&mut own, name, value, found),
            _ => {
                let what = format!(
                    "fabrics has no key {name}: hostnqn, hostid, nr_io_queues, queue_size, \
                     hdr_digest, data_digest, keep_alive_tmo, reconnect_delay, fast_io_fail_tmo, \
                     ctrl_loss_tmo, caches_stay, heartbeat_ms"
                );
                wrong(found, key.span().start, what);
            }
        }
    }
    if own.hostnqn.is_some() != own.hostid.is_some() {
        let (given, missing) = match own.hostid {
            None => ("hostnqn", "hostid"),
            Some(_) => ("hostid", "hostnqn"),
        };
        let what = format!("{given} needs {missing}: subsystems know a host by both");
        wrong(found, value.span().start, what);
    }
    own
}

/// Reads one of the two names of the host.
fn host(own: &mut Fabrics, name: &str, value: &Value<'_>, found: &mut Found) {
    let at = value.span().start;
    let Some(text) = text(name, value, found) else { return };
    match (name, Nqn::new(&text)) {
        ("hostid", _) => {
            own.hostid = text.parse().ok();
            if own.hostid.is_none() {
                wrong(found, at, format!("{name} must be a UUID, not {text}"));
            }
        }
        (_, Ok(nqn)) => own.hostnqn = Some(nqn),
        (_, Err(why)) => wrong(found, at, format!("{name}: {text}: {why}")),
    }
}

fn on_or_off(key: &str, value: &Value<'_>, found: &mut Found) -> bool {
    match value.get_ref() {
        DeValue::Boolean(is_on) => return *is_on,
        DeValue::String(word) if word == "on" => return true,
        DeValue::String(word) if word == "off" => return false,
        DeValue::String(word) => {
            wrong(found, value.span().start, format!("{key}: on or off, not {word}"));
        }
        other => wrong(found, value.span().start, format!("{key}: on or off, not {}", kind(other))),
    }
    false
}
