//! What the daemon keeps and shows: certificate, clock, state directory, socket.

use super::as_root;
use crate::Said;
use crate::facts::{Facts, Node, NodeKind};
use control::certificate::{RENEWAL, SANE};
use redfish::dates;
use redfish::view::Certificate;
use std::net::IpAddr;
use units::MIB;

/// Below so many bytes the state directory's file system is nearly full.
const SCARCE: u64 = 256 * MIB;

/// Below so many nothing more can be relied on to be kept.
const NONE: u64 = 32 * MIB;

/// By so much clocks of files and of this process may differ, in seconds.
const SLACK: u64 = 5;

/// Whether HTTPS is to be served.
fn is_served(facts: &Facts) -> bool {
    !facts.config.says.https.is_empty()
}

/// The certificate that can be used.
fn good(facts: &Facts) -> Option<&Certificate> {
    facts.https.certificate.as_ref()?.as_ref().ok()
}

/// The file of the certificate, for people.
fn file(facts: &Facts) -> String {
    facts.https.file.as_ref().map_or("the certificate".to_owned(), |own| own.display().to_string())
}

pub fn certificate(facts: &Facts) -> Vec<Said> {
    const RENEW: &str = "renew it, as with certbot renew, or take `certificate` and `key` out of \
                         the configuration: the daemon makes one; then: systemctl reload \
                         palisade";
    const WHY: &str = "clients refuse to connect over HTTPS: console, API and --url";
    if !is_served(facts) {
        return Vec::new();
    }
    let (file, now) = (file(facts), facts.now);
    let own = match &facts.https.certificate {
        None if facts.https.file.is_none() => {
            return vec![Said::ok("the daemon makes its certificate with the first account")];
        }
        None => {
            let why = "who asks may not read it";
            return vec![Said::unknown(
                format!("{file} can't be read"),
                why,
                format!("run: {}", as_root(facts)),
            )];
        }
        Some(Err(error)) => return vec![Said::critical(error.clone(), WHY, RENEW)],
        Some(Ok(own)) => own,
    };
    let told = |moment| dates::text(moment);
    vec![if own.not_after <= now {
        Said::critical(format!("{file} ended at {}", told(own.not_after)), WHY, RENEW)
    } else if now < own.not_before {
        Said::critical(
            format!("{file} is good from {} on only", told(own.not_before)),
            WHY,
            "set the clock: timedatectl set-ntp true; or use another certificate",
        )
    } else if !own.is_made && now.saturating_add(RENEWAL.as_secs()) >= own.not_after {
        let what = format!("{file} ends within 30 days, at {}", told(own.not_after));
        Said::warning(what, "from then on clients refuse to connect over HTTPS", RENEW)
    } else {
        Said::ok(format!("{file} is good until {}", told(own.not_after)))
    }]
}

/// Whether a name of a certificate leads nowhere but to the machine where it is asked for.
fn is_loopback(name: &str) -> bool {
    let is_name = ["localhost", "localhost.localdomain"].contains(&name);
    is_name || name.parse::<IpAddr>().is_ok_and(|own| own.to_canonical().is_loopback())
}

/// Which names lead here only those know who ask: a service's name, a proxy's, an address that is
/// translated on the way. It is told where none can.
pub fn names(facts: &Facts) -> Vec<Said> {
    let Some(own) = good(facts).filter(|_| is_served(facts)) else { return Vec::new() };
    let listen = facts.config.says.https.iter().map(|address| address.ip().to_canonical());
    let is_alone = listen.into_iter().all(|address| address.is_loopback());
    let all = own.names.join(", ");
    let names = match own.names.as_slice() {
        [] => "no name at all".to_owned(),
        own if !is_alone && own.iter().all(|name| is_loopback(name)) => format!("{all} only"),
        _ => return vec![Said::ok(format!("the certificate is for {all}"))],
    };
    let host = match facts.https.host.as_str() {
        "" => "this machine",
        host => host,
    };
    vec![Said::warning(
        format!("the certificate is for {names}"),
        "clients of other machines that check the name refuse to connect",
        format!(
            "have one made for {host} and its addresses; what is in it is shown by: openssl x509 \
             -noout -ext subjectAltName -in {}",
            file(facts)
        ),
    )]
}

pub fn served(facts: &Facts) -> Vec<Said> {
    let shown = facts.daemon.told().and_then(|told| told.fingerprint.as_ref());
    let (Some(shown), Some(own)) = (shown, good(facts)) else { return Vec::new() };
    let plain = |text: &str| text.replace(':', "").to_ascii_lowercase();
    if plain(shown) == plain(&own.fingerprint) {
        return vec![Said::ok("HTTPS shows this certificate")];
    }
    vec![Said::warning(
        format!("HTTPS shows another certificate than {} has", file(facts)),
        "a certificate that was renewed is of use only once the daemon has read it",
        "run: systemctl reload palisade",
    )]
}

pub fn key(facts: &Facts) -> Vec<Said> {
    let https = &facts.https;
    let (Some(key), Some(mode)) = (&https.key, https.key_mode) else { return Vec::new() };
    let key = key.display();
    let who = match mode {
        _ if mode & 0o007 != 0 => "everybody",
        _ if mode & 0o020 != 0 => "its group",
        _ => return vec![Said::ok(format!("nobody else may read {key}"))],
    };
    let may = if mode & 0o022 != 0 { "write" } else { "read" };
    vec![Said::critical(
        format!("{who} may {may} {key}, which has the private key"),
        "who has the key can pass for this daemon, and read passwords",
        format!("run: chmod 600 {key}; then have the certificate made anew with another key"),
    )]
}

pub fn clock(facts: &Facts) -> Vec<Said> {
    const SET: &str =
        "run: timedatectl set-ntp true; without systemd-timesyncd: apt install chrony";
    let mut found = Vec::new();
    let latest = facts.clock.latest.unwrap_or(0);
    let made = good(facts).map_or(0, |own| own.not_before);
    if facts.now < SANE || facts.now.saturating_add(SLACK) < latest.max(made) {
        let (now, since) = (dates::text(facts.now), dates::text(latest.max(made).max(SANE)));
        found.push(Said::critical(
            format!("the clock shows {now}, and it was {since} already"),
            "certificates count as not good yet, sessions and the order of events go wrong",
            SET,
        ));
    }
    match facts.clock.is_kept {
        Some(false) => found.push(Said::warning(
            "nothing keeps the clock right",
            "times of events, the audit log and alerts can't be compared with those of other \
             machines, and certificates end at the wrong moment",
            SET,
        )),
        None if found.is_empty() => found.push(Said::unknown(
            "whether something keeps the clock right is not known",
            "the kernel could not be asked",
            "run: timedatectl",
        )),
        _ => {}
    }
    if found.is_empty() {
        found.push(Said::ok("the clock is kept right"));
    }
    found
}

pub fn state(facts: &Facts) -> Vec<Said> {
    let state = &facts.state;
    let file = facts.config.file.display();
    let Some(dir) = &state.dir else {
        if !facts.config.is_usable() {
            return Vec::new();
        }
        return vec![Said::warning(
            "there is no state directory",
            "without one there are no accounts, no HTTPS and no console, and the audit log ends \
             with the daemon",
            format!("write state = \"/var/lib/palisade\" in {file}, and restart the daemon"),
        )];
    };
    let (dir, node) = (dir.display(), &state.node);
    let problem = facts.daemon.told().and_then(|told| told.state_problem.as_ref());
    let critical = |what: String, mend: String| {
        let why = "the daemon does not use it: no accounts, no HTTPS, no audit log that stays";
        vec![Said::critical(what, why, mend)]
    };
    if let Some(NodeKind::Other | NodeKind::Socket) = node.kind {
        let mend = format!("run: ls -ld {dir}; and name a directory: `state` in {file}");
        return critical(format!("{dir} is no directory"), mend);
    }
    if state.is_read_only == Some(true) {
        let mend = format!("run: mount -o remount,rw $(findmnt -no TARGET --target {dir})");
        return critical(format!("the file system of {dir} is read-only"), mend);
    }
    if node.kind.is_none() {
        return vec![Said::ok(format!("{dir} is made by the daemon"))];
    }
    if node.mode & 0o022 != 0 {
        let what = format!("others may write {dir} (mode {:o})", node.mode);
        return critical(what, format!("run: chmod 700 {dir}"));
    }
    let process = &facts.process;
    if let Some(user) = process.user.filter(|user| process.is_daemon && *user != node.user) {
        let what = format!("{dir} is user {}'s, and the daemon is user {user}", node.user);
        return critical(what, format!("run: chown -R {user} {dir}"));
    }
    if let Some(problem) = problem {
        let mend = "see the daemon's log: journalctl -u palisade".to_owned();
        return critical(format!("the daemon can't use {dir}: {problem}"), mend);
    }
    if node.mode & 0o077 != 0 {
        return vec![Said::warning(
            format!("others may read {dir} (mode {:o})", node.mode),
            "accounts, keys and the mail server's password are there",
            format!("run: chmod 700 {dir}"),
        )];
    }
    vec![Said::ok(format!("{dir} is its owner's alone"))]
}

pub fn room(facts: &Facts) -> Vec<Said> {
    const WHY: &str = "when it is full, accounts, alerts, history and the audit log are not kept, \
                       and changes of accounts are refused";
    let (Some(dir), Some(free)) = (&facts.state.dir, facts.state.free) else { return Vec::new() };
    let dir = dir.display();
    let what = format!("{} MiB are free at {dir}", free / MIB);
    let mend =
        || format!("make room there; what takes it is shown by: du -xh $(dirname {dir}) | sort -h");
    vec![match free {
        0..NONE => Said::critical(what, WHY, mend()),
        NONE..SCARCE => Said::warning(what, WHY, mend()),
        _ => Said::ok(what),
    }]
}

pub fn socket(facts: &Facts) -> Vec<Said> {
    let Node { path, kind, mode, parent_mode, .. } = &facts.socket;
    let shown = path.display();
    match kind {
        Some(NodeKind::Socket) | None => {}
        Some(_) => {
            return vec![Said::critical(
                format!("{shown} is no socket"),
                "the daemon does not start: it leaves alone what it did not make",
                format!("see what it is, and move it away: mv {shown} {shown}.old"),
            )];
        }
    }
    // What may be written but not renamed by others is safe in a sticky directory.
    if parent_mode.is_some_and(|mode| mode & 0o022 != 0 && mode & 0o1000 == 0) {
        let dir = path.parent().map_or(String::new(), |dir| dir.display().to_string());
        return vec![Said::warning(
            format!("others may write {dir}, where the socket is"),
            "they can put a socket of their own there, and be told what is meant for the daemon",
            format!("run: chmod go-w {dir}"),
        )];
    }
    let is_open = facts.config.says.access.is_some();
    if kind.is_some() && !is_open && mode & 0o007 != 0 {
        return vec![Said::warning(
            format!("everybody may connect to {shown} (mode {mode:o})"),
            "without `[access]` it is for root and the group palisade only",
            format!("run: chmod 660 {shown}"),
        )];
    }
    match kind {
        Some(_) => vec![Said::ok(format!("{shown} is open to whom it should be"))],
        None => Vec::new(),
    }
}
