//! What became of the health of a drive between two views.
//!
//! A reason that is new, or graver than before, is an event, as grave as the reason. If reasons
//! ended the drive is told to be well, or, where it was critical and is not well yet, with the
//! gravest reason that is left. Reasons that end while as grave ones are left are not told; neither
//! are reasons that only tell other numbers.

use super::Event;
use crate::hardware::{Hardware, Health, Reason};
use crate::messages as say;
use crate::service::uri;
use crate::view::KnownDrive;
use std::fmt::Display;

/// Tells what differs from how the drive was; from a drive that is well, if it was not known.
pub(super) fn changed(was: Option<&KnownDrive>, is: &KnownDrive, told: &mut Vec<Event>) {
    let well = Hardware::default();
    let before = was.map_or(&well, |was| &*was.hardware);
    let after = &*is.hardware;
    let mut tell = |health: Health, what: &str, action: &str| {
        let notice = match health {
            Health::Critical => &say::DRIVE_CRITICAL,
            Health::Warning | Health::Ok => &say::DRIVE_WARNS,
        };
        let args: [&dyn Display; 4] = [&is.drive.path, &word(before.health), &what, &action];
        told.push(Event::new(notice, &args, uri::drive(&is.id)));
    };
    let is_new = |reason: &&Reason| {
        let same = before.reasons.iter().filter(|own| own.rule == reason.rule);
        same.map(|own| own.health).max().unwrap_or_default() < reason.health
    };
    let mut any = false;
    for reason in after.reasons.iter().filter(is_new) {
        tell(reason.health, &reason.what, &reason.action);
        any = true;
    }
    if any || before.health == after.health {
        return;
    }
    if after.health == Health::Ok {
        let args: [&dyn Display; 2] = [&is.drive.path, &word(before.health)];
        told.push(Event::new(&say::DRIVE_WELL, &args, uri::drive(&is.id)));
        return;
    }
    match after.reasons.iter().max_by_key(|reason| reason.health) {
        Some(reason) => tell(after.health, &reason.what, &reason.action),
        None => tell(after.health, "it does not say why", "look at it with: palisade drive list"),
    }
}

const fn word(health: Health) -> &'static str {
    match health {
        Health::Ok => "well",
        Health::Warning => "not well",
        Health::Critical => "critical",
    }
}

#[cfg(test)]
mod tests {
    use super::super::between;
    use super::*;
    use crate::view::{Drive, DriveState, View};

    /// A view with one drive that has these reasons: a rule's name, and how grave.
    fn view(reasons: &[(&str, Health)]) -> View {
        let reasons: Vec<_> = reasons.iter().map(|(rule, health)| reason(rule, *health)).collect();
        let health = reasons.iter().map(|reason| reason.health).max().unwrap_or_default();
        of(Hardware { health, reasons, ..Hardware::default() })
    }

    fn reason(rule: &str, health: Health) -> Reason {
        let (what, action) = (format!("{rule} is high"), format!("see to {rule}"));
        Reason { rule: rule.to_owned(), health, what, action, since: 1 }
    }

    fn of(hardware: Hardware) -> View {
        let drive = Drive {
            path: "/dev/a".to_owned(),
            serial: "S".to_owned(),
            bytes: 1,
            block_bytes: 512,
            state: DriveState::Free,
            array: None,
            slot: None,
            signature: None,
            problem: None,
        };
        let known = KnownDrive {
            remote: None,
            id: "a".to_owned(),
            wwid: None,
            model: None,
            is_file: false,
            hardware: hardware.into(),
            drive,
        };
        let mut view = View { drives: vec![known], ..View::default() };
        view.status.ready = true;
        view
    }

    /// What is told: the message, how the drive was, and what it is about.
    fn told(before: &View, after: &View) -> Vec<String> {
        let line = |event: Event| {
            assert_eq!(
                (event.args[0].as_str(), event.origin.as_str()),
                ("/dev/a", uri::drive("a").as_str())
            );
            let what = event.args.get(2).map_or("", |what| what.trim_end_matches(" is high"));
            format!("{} {} {what}", event.name, event.args[1]).trim_end().to_owned()
        };
        between(before, after).into_iter().map(line).collect()
    }

    #[test]
    fn health_that_changes_is_told_with_its_reason() {
        use Health::{Critical, Warning};
        type Reasons = &'static [(&'static str, Health)];
        let cases: &[(Reasons, Reasons, &[&str])] = &[
            (&[], &[], &[]),
            (&[], &[("wear", Warning)], &["DriveWarns well wear"]),
            (&[], &[("wear", Critical)], &["DriveCritical well wear"]),
            (
                &[],
                &[("spare", Critical), ("link", Warning)],
                &["DriveCritical well spare", "DriveWarns well link"],
            ),
            (&[("wear", Warning)], &[("wear", Warning)], &[]),
            (&[("wear", Warning)], &[("wear", Critical)], &["DriveCritical not well wear"]),
            (
                &[("wear", Warning)],
                &[("wear", Warning), ("link", Warning)],
                &["DriveWarns not well link"],
            ),
            (&[("wear", Warning)], &[("link", Warning)], &["DriveWarns not well link"]),
            (&[("wear", Warning), ("link", Warning)], &[("link", Warning)], &[]),
            (&[("wear", Critical)], &[("wear", Warning)], &["DriveWarns critical wear"]),
            (
                &[("spare", Critical), ("link", Warning)],
                &[("link", Warning)],
                &["DriveWarns critical link"],
            ),
            (&[("wear", Critical)], &[], &["DriveWell critical"]),
            (&[("wear", Warning), ("link", Warning)], &[], &["DriveWell not well"]),
        ];
        for (before, after, expected) in cases {
            assert_eq!(told(&view(before), &view(after)), *expected, "{before:?} {after:?}");
        }
    }

    #[test]
    fn numbers_that_change_and_moments_are_no_events() {
        let before = view(&[("wear", Health::Warning)]);
        let mut other = reason("wear", Health::Warning);
        (other.what, other.since) = ("more".to_owned(), 9);
        let reasons = vec![other];
        let after = of(Hardware { health: Health::Warning, reasons, ..Hardware::default() });
        assert_eq!(told(&before, &after), [""; 0]);
    }

    #[test]
    fn a_drive_that_does_not_say_why_is_told_once() {
        let ill = of(Hardware { health: Health::Critical, ..Hardware::default() });
        assert_eq!(told(&view(&[]), &ill), ["DriveCritical well it does not say why"]);
        assert_eq!(told(&ill, &ill), [""; 0]);
    }

    #[test]
    fn a_drive_that_is_not_well_when_it_comes_or_at_a_start_is_told() {
        let ill = view(&[("wear", Health::Warning)]);
        let without = View { drives: Vec::new(), ..ill.clone() };
        let names = |before: &View, after: &View| -> Vec<String> {
            between(before, after).into_iter().map(|event| event.name).collect()
        };
        assert_eq!(names(&without, &ill), ["DriveCame", "DriveWarns"]);
        assert_eq!(names(&ill, &without), ["DriveGone"]);
        assert_eq!(names(&View::default(), &ill), ["DaemonStarted", "DriveWarns"]);
    }

    #[test]
    fn what_to_do_is_the_reasons() {
        let told = between(&view(&[]), &view(&[("wear", Health::Critical)]));
        let event = told.first().expect("one");
        let notice = event.notice().expect("of the registry");
        assert_eq!(event.text(), "drive /dev/a is critical, and was well: wear is high");
        assert_eq!(notice.advice(&event.args), "see to wear");
    }
}
