//! Tests of what is different between two looks: a table, an oracle, and what always holds.

use super::*;
use crate::sysfs::{Identity, Kind};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// A device with this name, identity (`-` if nobody knows) and number of appearance (0 likewise).
fn device(name: &str, wwid: &str, diskseq: u64) -> Device {
    Device {
        name: name.to_owned(),
        diskseq: Some(diskseq).filter(|number| *number > 0),
        identity: Identity {
            wwid: Some(wwid.to_owned()).filter(|wwid| wwid != "-"),
            ..Identity::default()
        },
        kind: Kind::Nvme,
        ..Device::default()
    }
}

/// `a:A:1 b:B:2` as devices.
fn devices(text: &str) -> Vec<Device> {
    let each = text.split_whitespace().map(|word| {
        let parts: Vec<&str> = word.split(':').collect();
        device(parts[0], parts[1], parts[2].parse().expect("a number"))
    });
    each.collect()
}

/// Changes as one line: `-a` gone, `a>b` moved, `~a` replaced, `+a` appeared.
fn line(changes: &[Change]) -> String {
    let words: Vec<String> = changes
        .iter()
        .map(|change| match change {
            Change::Gone { name } => format!("-{name}"),
            Change::Moved { from, to } => format!("{from}>{to}"),
            Change::Replaced { name } => format!("~{name}"),
            Change::Appeared { name } => format!("+{name}"),
        })
        .collect();
    words.join(" ")
}

#[test]
fn two_looks_are_compared() {
    for (before, after, expected) in [
        ("", "", ""),
        ("a:A:1", "a:A:1", ""),
        ("a:A:1", "", "-a"),
        ("", "a:A:1", "+a"),
        // Taken out and put back: under another name, or under its own.
        ("a:A:1 b:B:2", "b:B:2 c:A:3", "a>c"),
        ("a:A:1", "a:A:2", "~a"),
        // Another drive in its place, new or from elsewhere.
        ("a:A:1", "a:B:2", "~a"),
        ("a:A:1 b:B:2", "a:B:3", "-a b>a"),
        ("a:A:1", "a:B:3 b:A:2", "a>b +a"),
        ("a:A:1 b:B:2", "a:B:3 b:A:4", "a>b b>a"),
        ("a:A:1 b:B:2 c:C:3", "a:B:4 b:C:5 c:A:6", "a>c b>a c>b"),
        // Nobody knows who it is: its number tells.
        ("a:-:1", "a:-:1", ""),
        ("a:-:1", "a:-:2", "~a"),
        ("a:-:0", "a:-:0", ""),
        ("a:-:1", "b:-:2", "-a +b"),
        ("a:A:1", "a:-:1", ""),
        ("a:-:1", "a:A:1", ""),
        ("a:A:1", "a:-:2 b:A:3", "a>b +a"),
        // Two ways to one drive, as SCSI has them: each way is one device.
        ("a:A:1 b:A:2", "b:A:2", "-a"),
        ("a:A:1 b:A:2", "b:A:2 c:A:3", "a>c"),
        ("a:A:1", "a:A:1 b:A:2", "+b"),
    ] {
        let found = changes(&devices(before), &devices(after));
        assert_eq!(line(&found), expected, "{before} / {after}");
    }
}

#[test]
fn hidden_paths_are_no_part_of_it() {
    let path = |name: &str| Device { hidden: true, ..device(name, "A", 7) };
    let head = device("nvme0n1", "A", 1);
    let before = [path("nvme0c0n1"), head.clone()];
    let after = [path("nvme0c1n1"), head.clone()];
    assert_eq!(changes(&before, &after), []);
    let found = changes(&before, &[path("nvme0c0n1")]);
    assert_eq!(found, [Change::Gone { name: head.name }]);
}

/// A look: for each name perhaps a device. Identities and numbers come from few.
fn look(identities: u64, silent: bool) -> impl Strategy<Value = Vec<Device>> {
    let one = (0..=identities, 0..4u64).prop_map(move |(who, diskseq)| match who {
        0 if silent => Some(("-".to_owned(), diskseq)),
        0 => None,
        who => Some((format!("drive {who}"), diskseq)),
    });
    prop::collection::vec(prop::option::of(one), 6).prop_map(|ones| {
        let named = ones.into_iter().enumerate().filter_map(|(at, one)| Some((at, one??)));
        named.map(|(at, (who, diskseq))| device(&format!("d{at}"), &who, diskseq)).collect()
    })
}

/// The look without the second and further devices of an identity.
fn without_clones(look: Vec<Device>) -> Vec<Device> {
    let mut seen = BTreeSet::new();
    look.into_iter().filter(|device| seen.insert(device.identity.clone())).collect()
}

/// What became of each, where everybody is known and there once: by identity, then by name.
fn oracle(before: &[Device], after: &[Device]) -> BTreeSet<Change> {
    let by_identity = |look: &[Device]| -> BTreeMap<Identity, (String, Option<u64>)> {
        look.iter().map(|d| (d.identity.clone(), (d.name.clone(), d.diskseq))).collect()
    };
    let (old, new) = (by_identity(before), by_identity(after));
    let (mut gone, mut came, mut all) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (who, (name, diskseq)) in &old {
        match new.get(who) {
            None => drop(gone.insert(name.clone())),
            Some((now, _)) if now != name => {
                all.insert(Change::Moved { from: name.clone(), to: now.clone() });
            }
            Some((_, now)) if diskseq.is_some() && now.is_some() && diskseq != now => {
                all.insert(Change::Replaced { name: name.clone() });
            }
            Some(_) => {}
        }
    }
    let strangers = new.iter().filter(|(who, _)| !old.contains_key(who));
    came.extend(strangers.map(|(_, (name, _))| name.clone()));
    for name in gone.union(&came) {
        let name = name.clone();
        all.insert(match (gone.contains(&name), came.contains(&name)) {
            (true, true) => Change::Replaced { name },
            (true, false) => Change::Gone { name },
            _ => Change::Appeared { name },
        });
    }
    all
}

/// The names of a list that changes speak of, each as often as they do.
fn named(changes: &[Change], is_before: bool) -> Vec<&str> {
    let mut names: Vec<&str> = changes
        .iter()
        .filter_map(|change| match change {
            Change::Gone { name } => is_before.then_some(name.as_str()),
            Change::Appeared { name } => (!is_before).then_some(name.as_str()),
            Change::Moved { from, to } => Some(if is_before { from } else { to }),
            Change::Replaced { name } => Some(name.as_str()),
        })
        .collect();
    names.sort_unstable();
    names
}

proptest! {
    #[test]
    fn known_drives_change_as_the_oracle_says(
        before in look(5, false).prop_map(without_clones),
        after in look(5, false).prop_map(without_clones),
    ) {
        let found = changes(&before, &after);
        let set: BTreeSet<Change> = found.iter().cloned().collect();
        prop_assert_eq!(set.len(), found.len(), "said twice");
        prop_assert_eq!(set, oracle(&before, &after));
    }

    #[test]
    fn each_device_stayed_or_is_named_once(before in look(3, true), after in look(3, true)) {
        let found = changes(&before, &after);
        let find = |look: &[Device], name: &str| look.iter().find(|d| d.name == name).cloned();
        for (look, is_before) in [(&before, true), (&after, false)] {
            let names = named(&found, is_before);
            for device in look {
                let times = names.iter().filter(|name| **name == device.name).count();
                let both = (find(&before, &device.name), find(&after, &device.name));
                let kept = matches!(&both, (Some(one), Some(two)) if stayed(one, two));
                prop_assert_eq!(times, usize::from(!kept), "{} in {:?}", device.name, found);
            }
            prop_assert!(names.iter().all(|name| find(look, name).is_some()));
        }
        // A drive that is known and went is nowhere among those that came.
        for change in &found {
            let Change::Gone { name } = change else { continue };
            let one = find(&before, name).expect("it was there");
            for change in &found {
                let Change::Appeared { name } = change else { continue };
                let two = find(&after, name).expect("it is there");
                prop_assert_ne!(one.identity.compare(&two.identity), Comparison::Same);
            }
        }
        prop_assert_eq!(changes(&before, &before), []);
    }
}
