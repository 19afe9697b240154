//! The table of messages: what each row has to have.

use super::*;
use crate::error::{Base, Refusal, read};
use std::collections::BTreeSet;

/// The numbers behind percent signs.
fn used(text: &str) -> BTreeSet<usize> {
    let digit = |part: &str| part.chars().next().and_then(|c| c.to_digit(10)).expect("a digit");
    text.split('%').skip(1).map(|part| digit(part) as usize).collect()
}

#[test]
fn every_message_is_whole() {
    let mut names = BTreeSet::new();
    for entry in all() {
        let Entry { name, text, hint, why, args, .. } = entry;
        assert!(names.insert(name), "{name} is there twice");
        assert!(Base::find(name).is_none(), "{name} is one of Base, too");
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "{name}");
        assert!(name.starts_with(|c: char| c.is_ascii_uppercase()), "{name}");
        for line in [text, hint, why] {
            assert!(!line.is_empty() && !line.contains('\n') && !line.contains("  "), "{line:?}");
        }
        assert!(why.ends_with('.') && !hint.ends_with('.'), "{name}: {why:?} {hint:?}");
        // Every argument is said, if not in the text, then in the advice.
        let all: BTreeSet<usize> = (1..=args.len()).collect();
        assert_eq!(&used(text) | &used(hint), all, "{name}");
        assert!(!text.contains("NAME"), "{name}: only advice knows NAME");
        for arg in *args {
            let good = |c: char| c.is_ascii_uppercase() || c == '-';
            assert!(arg.name().chars().all(good), "{name}: {arg:?}");
        }
    }
}

/// Those that HTTP has a status for that says more than their kind does.
#[test]
fn a_status_that_is_not_its_kinds_is_meant() {
    let other = all().filter(|entry| entry.status() != entry.kind.status());
    let mut other: Vec<_> = other.map(|entry| (entry.name, entry.status())).collect();
    other.sort_unstable();
    assert_eq!(other, [("LoginLocked", 429), ("PasswordsBusy", 503), ("PlanChanged", 412)]);
}

#[test]
fn every_notice_is_whole() {
    let mut names: BTreeSet<&str> = all().map(|entry| entry.name).collect();
    for one in notices() {
        let Notice { name, text, hint, why, args, .. } = one;
        assert!(names.insert(name), "{name} is there twice");
        assert!(Base::find(name).is_none(), "{name} is one of Base, too");
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "{name}");
        for line in [text, hint, why] {
            assert!(!line.is_empty() && !line.contains('\n') && !line.contains("  "), "{line:?}");
        }
        assert!(why.ends_with('.') && !hint.ends_with('.'), "{name}: {why:?} {hint:?}");
        let all: BTreeSet<usize> = (1..=args.len()).collect();
        assert_eq!(&used(text) | &used(hint), all, "{name}");
        assert_eq!(notice(name), Some(one));
    }
    assert_eq!(notice("NoArray"), None);
    assert_eq!(CHANGE_DONE.text(&["ann", "stop array a"]), "ann: stop array a: done");
    for severity in Severity::ALL {
        assert_eq!(Severity::of(&severity.word().to_lowercase()), Some(severity));
    }
}

#[test]
fn arguments_come_into_text_and_advice() {
    let error = Error::new(&NO_VOLUME, &[&"a%2", &"v"]);
    assert_eq!(error.error, "array \"a%2\" has no volume \"v\"");
    assert_eq!((error.code, error.args.len()), (ErrorCode::Failed, 2));
    let error = Error::new(&SLOT_IN_USE, &[&3]).about("data");
    assert_eq!(error.hint, "take it out first with: palisade array fail data --drive slot:3");
    assert_eq!(error.clone().advise("x").hint, "x");
    assert!(error.is(&SLOT_IN_USE) && !error.is(&NO_VOLUME));
    assert_eq!(NO_VOLUME.example(), "array \"ARRAY\" has no volume \"VOLUME\"");
    assert_eq!(find("NoVolume"), Some(&NO_VOLUME));
    assert_eq!(find("Novolume"), None);
}

#[test]
fn people_read_which_message_is_explained() {
    let lines = Error::new(&NO_REDUNDANCY, &[]).lines();
    assert!(lines.ends_with(" (palisade explain NoRedundancy)"), "{lines}");
    let foreign = Error { name: "Else".into(), ..Error::new(&NO_REDUNDANCY, &[]) };
    assert!(!foreign.lines().contains("explain"), "{}", foreign.lines());
}

#[test]
fn every_message_is_told_by_redfish_and_read_back() {
    for entry in all() {
        let args: Vec<&dyn Display> = entry.args.iter().map(|arg| arg as &dyn Display).collect();
        let error = Error::new(entry, &args);
        let refusal = Refusal::from(&error);
        assert_eq!(refusal.status, entry.status());
        let body = refusal.body();
        assert_eq!(body["error"]["code"], format!("{PREFIX}{}", entry.name));
        assert_eq!(read(refusal.status, &body), Some(error));
    }
    for base in Base::ALL {
        let refusal = Refusal::base(base, &["a", "b", "c"]);
        let told = read(refusal.status, &refusal.body()).expect("an error");
        assert_eq!((told.name.as_ref(), told.code), (base.name(), base.kind()));
    }
}
