//! What a running daemon takes from a configuration that was read again (SIGHUP).
//!
//! Invariant: every key of [`Config`] is taken, or the daemon says that it needs a restart. A file
//! with a mistake changes nothing.

use crate::config::Config;
use crate::local;
use crate::manager::Manager;
use redfish::messages as say;
use redfish::service::uri;
use redfish::view::{Ending, Error};
use std::sync::Arc;

/// Reads the configuration as it is now, as the start did.
pub type Reader = Arc<dyn Fn() -> Result<Config, Error> + Send + Sync>;

/// What is said first of one that was taken.
const READ_AGAIN: &str = "the configuration was read again";

/// What differs between two configurations.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Changed {
    /// Keys that a running daemon takes.
    taken: Vec<&'static str>,
    /// Keys that need a restart.
    left: Vec<&'static str>,
}

/// Compares all keys.
fn changed(old: &Config, new: &Config) -> Changed {
    // A key that is added has to be put in its place here.
    let Config {
        socket,
        cores,
        drives,
        drive_deadline_ms,
        drive_wait_ms,
        parity,
        parity_check,
        confirm,
        counters,
        state,
        access,
        https,
        certificate,
        key,
        metrics,
        sysfs,
        services,
        health,
        enclosures,
        shelves,
        fabrics,
    } = old;
    let named = |all: &[(&'static str, bool)]| {
        all.iter().filter(|(_, differs)| *differs).map(|(key, _)| *key).collect()
    };
    Changed {
        taken: named(&[
            ("drives", *drives != new.drives),
            ("confirm", *confirm != new.confirm),
            ("access", *access != new.access),
            ("https", *https != new.https),
            ("certificate", *certificate != new.certificate),
            ("key", *key != new.key),
            ("metrics", *metrics != new.metrics),
            ("health", *health != new.health),
            ("enclosure", *enclosures != new.enclosures),
            ("shelf", *shelves != new.shelves),
        ]),
        left: named(&[
            ("socket", *socket != new.socket),
            ("cores", *cores != new.cores),
            ("drive_deadline_ms", *drive_deadline_ms != new.drive_deadline_ms),
            ("drive_wait_ms", *drive_wait_ms != new.drive_wait_ms),
            ("parity", *parity != new.parity),
            ("parity_check", *parity_check != new.parity_check),
            ("counters", *counters != new.counters),
            ("state", *state != new.state),
            ("sysfs", *sysfs != new.sysfs),
            ("services", *services != new.services),
            ("fabrics", *fabrics != new.fabrics),
        ]),
    }
}

/// Takes what can be taken. Afterwards `config` is what the daemon runs with.
async fn take(manager: &Manager, config: &mut Config, new: Config) -> Changed {
    let changed = changed(config, &new);
    config.drives.clone_from(&new.drives);
    config.confirm = new.confirm;
    manager.confirm.set_required(new.confirm);
    config.access.clone_from(&new.access);
    // Files that are named may hold others than before.
    manager.https().set(new.https());
    config.https.clone_from(&new.https);
    config.certificate.clone_from(&new.certificate);
    config.key.clone_from(&new.key);
    config.metrics = new.metrics;
    manager.metrics.set_open(new.metrics);
    config.health = new.health;
    config.enclosures.clone_from(&new.enclosures);
    config.shelves.clone_from(&new.shelves);
    manager.described.send_replace(new.described());
    // Users and groups may be others, though the configuration is not.
    if let Some(local) = local::known(config.access.as_ref()) {
        manager.set_local(local);
    }
    if let Some(Err(error)) = manager.socket().map(|own| own.open(config.access.is_some())) {
        runtime::say(format_args!(
            "palisade: {}: {error}\n  who may connect is as before; restart the daemon",
            config.socket().display()
        ));
    }
    manager.look_at(new.drives);
    // A drive that does not answer is listed as unusable.
    let _ = manager.find_drives(&[]).await;
    changed
}

/// The words of what was done, and what there is to do.
fn words(changed: &Changed) -> (String, Option<String>) {
    let taken = match changed.taken.as_slice() {
        [] => "nothing new to take".to_owned(),
        taken => format!("taken: {}", taken.join(", ")),
    };
    let left = changed.left.join(", ");
    let hint = (!left.is_empty()).then(|| format!("restart the daemon to take: {left}"));
    (format!("{READ_AGAIN}; {taken}"), hint)
}

/// Reads the configuration again, takes what can be taken, and says so.
pub async fn reload(manager: &Manager, config: &mut Config, read: &Reader) {
    let read = read.clone();
    // The file may be where nobody answers.
    let new = tokio::task::spawn_blocking(move || read()).await;
    let new = new.unwrap_or_else(|_| Err(Error::new(&say::STOPPING, &[])));
    match new {
        Ok(new) => {
            let changed = take(manager, config, new).await;
            let (what, hint) = words(&changed);
            let told = what.trim_start_matches(READ_AGAIN);
            let told = told.trim_start_matches(';').trim_start();
            let told = [Some(told), hint.as_deref()].map(Option::unwrap_or_default).join("; ");
            let told = told.trim_end_matches("; ");
            manager.events().tell(&say::CONFIGURATION_RELOADED, &[&told], uri::MANAGER);
            match &hint {
                None => runtime::say(format_args!("palisade: {what}")),
                Some(hint) => runtime::say(format_args!("palisade: {what}\n  {hint}")),
            }
            manager
                .audit()
                .say(&[Some(what), hint].map(Option::unwrap_or_default).join("; "), Ending::Ok);
        }
        Err(error) => {
            runtime::say(format_args!(
                "palisade: the configuration was not taken: {}\n  {}",
                error.error, error.hint
            ));
            let notice = &say::CONFIGURATION_NOT_TAKEN;
            manager.events().tell(notice, &[&error.error], uri::MANAGER);
            let what = format!("the configuration was not taken: {}", error.error);
            manager.audit().say(&what, Ending::Failed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_taken_or_needs_a_restart() {
        let old = Config::parse("").expect("valid");
        let text = "socket = \"/s\"\ncores = 2\ndrives = [\"/d\"]\ndrive_deadline_ms = 2000\n\
                    drive_wait_ms = 0\nparity = \"gpu\"\nparity_check = 16\nconfirm = \"off\"\n\
                    counters = \"off\"\nstate = \"/s\"\nhttps = [\"[::1]:1\"]\n\
                    certificate = \"/c\"\nkey = \"/k\"\nmetrics = \"open\"\n\
                    sysfs = \"/s\"\n[access]\n[health]\nask_every_s = 1\n\
                    [[enclosure]]\nname = \"shelf\"\n[[shelf]]\nredfish = \"https://s:1\"\n\
                    credentials = \"/c\"\nfingerprint = \"\
                    0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"\n";
        let changed = super::changed(&old, &Config::parse(text).expect("valid"));
        let taken = [
            "drives",
            "confirm",
            "access",
            "https",
            "certificate",
            "key",
            "metrics",
            "health",
            "enclosure",
            "shelf",
        ];
        assert_eq!(changed.taken, taken);
        assert_eq!(changed.left.len(), 9);
        let (what, hint) = words(&changed);
        assert_eq!(what, format!("the configuration was read again; taken: {}", taken.join(", ")));
        assert!(hint.is_some_and(|hint| hint.starts_with("restart the daemon to take: socket,")));
        assert_eq!(super::changed(&old, &old), Changed::default());
        assert!(words(&Changed::default()).0.ends_with("nothing new to take"));
    }
}
