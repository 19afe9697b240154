//! The files of alerts: `alerts.json` and `mail.json` of the state directory.
//!
//! `alerts.json` has alerts and what waits to be mailed; `mail.json` how mail is sent, with the
//! password. Both are the owner's alone, as all files of the directory are.
//!
//! Invariants
//! - Identifiers of alerts in the file are ahead of those that are used, but at the daemon's end:
//!   one that dies uses none twice.
//! - An `alerts.json` whose content is of no use is set aside before alerts are written anew; a
//!   `mail.json` is left as it is until a person has seen to it.

use crate::snapshot::now;
use crate::state::{ALERTS, ALERTS_ASIDE, MAIL, State};
use redfish::access::Secret;
use redfish::alerts::{Ledger, Outbox};
use redfish::events::smtp::{Plain, Settings};
use redfish::messages as say;
use redfish::view::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;

/// The version of the files.
const VERSION: u32 = 1;

/// What `alerts.json` holds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Told {
    version: u32,
    pub ledger: Ledger,
    /// What is to be told as events.
    pub events: Outbox,
    /// What is to be mailed, by the identifiers of subscriptions.
    pub mail: BTreeMap<String, Outbox>,
}

/// What `mail.json` holds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mail {
    version: u32,
    smtp: Plain,
    password: Option<String>,
}

/// What was found in a state directory.
pub struct Found {
    /// Alerts; why they can't be read.
    pub told: Result<Told, Error>,
    /// How mail is sent; why that can't be read.
    pub settings: Result<Settings, Error>,
}

impl Told {
    /// What is to be written.
    pub fn new(ledger: Ledger, events: Outbox, mail: BTreeMap<String, Outbox>) -> Self {
        Self { version: VERSION, ledger, events, mail }
    }

    /// Nothing was told yet; the first alert has this identifier.
    pub fn nothing(first: u64) -> Self {
        Self::new(Ledger::new(first), Outbox::default(), BTreeMap::new())
    }

    /// Writes it. Waits for the file system.
    ///
    /// # Errors
    /// It can't be written.
    pub fn write(&self, state: &State) -> io::Result<()> {
        state.replace(ALERTS, &serde_json::to_vec(self)?)
    }
}

/// Reads a file of this version.
fn file<T: DeserializeOwned>(
    state: &State,
    name: &str,
    version: impl Fn(&T) -> u32,
) -> Result<Option<T>, Error> {
    let read = || match state.read(name).map_err(|error| error.to_string())? {
        None => Ok(None),
        Some(bytes) => match serde_json::from_slice::<T>(&bytes) {
            Ok(file) if version(&file) == VERSION => Ok(Some(file)),
            Ok(file) => Err(format!("it is of version {}", version(&file))),
            Err(error) => Err(error.to_string()),
        },
    };
    read().map_err(|why: String| {
        let why = format!("{}: {why}", state.dir().join(name).display());
        Error::new(&say::ALERTS_NOT_READ, &[&why])
    })
}

/// Reads what a state directory has of alerts. Waits for the file system.
pub fn read(state: &State) -> Found {
    let told = file(state, ALERTS, |own: &Told| own.version);
    let settings = file(state, MAIL, |own: &Mail| own.version);
    if told.is_err()
        && let Ok(Some(bytes)) = state.read(ALERTS)
    {
        // Where that can't be, there is no more to be done.
        let _ = state.replace(ALERTS_ASIDE, &bytes);
    }
    Found {
        told: told.map(|own| match own {
            Some(own) => Told { ledger: own.ledger.restarted(now()), ..own },
            None => Told::nothing(1),
        }),
        settings: settings.map(|own| {
            own.map_or_else(Settings::default, |own| Settings {
                plain: own.smtp,
                password: own.password.map(Secret::new),
            })
        }),
    }
}

/// Writes how mail is sent. Waits for the file system.
///
/// # Errors
/// It can't be written.
pub fn write_settings(state: &State, settings: &Settings) -> io::Result<()> {
    let password = settings.password.as_ref().map(|own| own.reveal().to_owned());
    let file = Mail { version: VERSION, smtp: settings.plain.clone(), password };
    state.replace(MAIL, &serde_json::to_vec(&file)?)
}
