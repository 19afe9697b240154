//! Tests of the drives that the daemon knows.

use super::*;
use crate::look::nothing_behind;

fn file(dir: &Path, name: &str, bytes: u64) -> PathBuf {
    let path = dir.join(name);
    let file = std::fs::File::create(&path).expect("created");
    file.set_len(bytes).expect("sized");
    path
}

fn look(inventory: &mut Inventory, path: &Path, hold: bool) -> Result<String, LookError> {
    let path = inventory.add(path);
    let seen = inventory.begin(&path, hold)?.expect("begins").look(&nothing_behind);
    let outcome = inventory.finish(&path, Some(seen), hold);
    inventory.name(core::slice::from_ref(&path));
    outcome.map(|()| path)
}

#[test]
fn a_drive_has_one_entry_whatever_it_is_called() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = file(dir.path(), "a", 4 << 20);
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&path, &link).expect("linked");
    let mut inventory = Inventory::default();
    look(&mut inventory, &path, true).expect("opens");
    let known = look(&mut inventory, &link, true).expect("is the same");
    assert_eq!(Path::new(&known), path);
    assert_eq!(inventory.iter().count(), 1);
}

#[test]
fn another_file_at_the_same_path_is_opened_anew() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = file(dir.path(), "a", 4 << 20);
    let mut inventory = Inventory::default();
    look(&mut inventory, &path, true).expect("opens");
    let held = inventory.iter().next().and_then(Known::reference).expect("is open");
    std::fs::rename(&path, dir.path().join("old")).expect("moved");
    file(dir.path(), "a", 8 << 20);
    look(&mut inventory, &path, true).expect("opens again");
    let known = inventory.iter().next().expect("is known");
    assert_eq!(known.drive.as_ref().map(|d| d.info().bytes), Some(8 << 20));
    assert_eq!(held.shared.info().bytes, 4 << 20);
}

#[test]
fn what_can_not_be_opened_is_listed_with_its_problem() {
    let mut inventory = Inventory::default();
    assert!(look(&mut inventory, Path::new("/no/such/drive"), false).is_err());
    let listed = describe(inventory.iter().next().expect("is known"), &Places::default());
    assert_eq!(listed.state, view::DriveState::Unusable);
    assert!(listed.problem.expect("why").contains("/no/such/drive"));
}

#[test]
fn a_free_drive_is_open_only_while_it_is_held() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = file(dir.path(), "a", 4 << 20);
    let mut inventory = Inventory::default();
    let name = look(&mut inventory, &path, false).expect("opens");
    let listed = describe(inventory.iter().next().expect("is known"), &Places::default());
    assert_eq!((listed.state, listed.bytes), (view::DriveState::Free, 4 << 20));
    let claim = || SharedDrive::open(&path, &drives::OpenOptions::default());
    assert!(claim().is_ok(), "it was closed");
    look(&mut inventory, &path, true).expect("opens");
    assert!(claim().is_err(), "it is held");
    inventory.reserve(std::slice::from_ref(&name), true);
    inventory.settle(std::slice::from_ref(&name));
    assert!(claim().is_err(), "it is reserved");
    inventory.reserve(std::slice::from_ref(&name), false);
    inventory.settle(&[name]);
    assert!(claim().is_ok(), "it was let go");
}

#[test]
fn a_drive_is_reserved_as_long_as_it_is_being_erased() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut inventory = Inventory::default();
    let path = [inventory.add(&file(dir.path(), "a", 4 << 20))];
    inventory.reserve(&path, true);
    let under_way = inventory.begin_erase(&path[0]);
    // The request has waited long enough.
    inventory.reserve(&path, false);
    let known = inventory.at(&path[0]).expect("is known");
    assert!(known.is_reserved() && Places::default().is_taken(known));
    drop(under_way);
    assert!(!inventory.at(&path[0]).expect("is known").is_reserved());
}

#[test]
fn every_drive_has_an_id_of_its_own_and_keeps_it() {
    let mut inventory = Inventory::default();
    let add = |inventory: &mut Inventory, path: &str, wwid: Option<&str>| {
        let plate = Nameplate { wwid: wwid.map(str::to_owned), ..Nameplate::default() };
        let (plain, canonical) = (PathBuf::from(path), PathBuf::from(path));
        let path = inventory.add_found(&Found { plain, canonical, plate: Some(plate) });
        inventory.name(core::slice::from_ref(&path));
        inventory.at(&path).and_then(|known| known.id().cloned()).expect("it has an id")
    };
    let first = add(&mut inventory, "/no/b", Some("t10.Disk 1"));
    assert_eq!(first, "t10.Disk-1");
    assert_eq!(add(&mut inventory, "/no/c", Some("t10.Disk 1")), "t10.Disk-1~2");
    assert_eq!(add(&mut inventory, "/no/a", None), "-no-a");
    assert_eq!(add(&mut inventory, "/no/b", Some("t10.Disk 1")), first);
    // What it held, and whether it can be opened, does not matter, nor that it is gone.
    assert!(look(&mut inventory, Path::new("/no/b"), false).is_err());
    assert_eq!(inventory.at("/no/b").and_then(Known::id), Some(&first));
}

#[test]
fn a_drive_takes_its_id_along_and_keeps_it_while_the_kernel_says_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut inventory = Inventory::default();
    let plate = |wwid: &str| Nameplate { wwid: Some(wwid.to_owned()), ..Nameplate::default() };
    let paths: Vec<String> = ["a", "b"]
        .map(|name| file(dir.path(), name, 4 << 20))
        .map(|path| inventory.add_found(&Found { plate: None, ..Found::at(&path) }))
        .to_vec();
    let see = |inventory: &mut Inventory, at: usize, plate: Option<Nameplate>| {
        let path = &paths[at];
        let look = inventory.begin(path, false).expect("can begin").expect("begins");
        let seen = Seen { plate, ..look.look(&nothing_behind) };
        inventory.finish(path, Some(seen), false).expect("is seen");
        inventory.name(core::slice::from_ref(path));
        inventory.at(path).and_then(|known| known.id().cloned()).expect("an id")
    };
    let is_meant = |inventory: &Inventory, at: usize, id: &str| {
        let known = inventory.at(&paths[at]).expect("is known");
        let (id, path) = (id.to_owned(), known.path.clone());
        known.is_meant(&NamedDrive { id, path, ..NamedDrive::default() }).is_ok()
    };
    assert_eq!(see(&mut inventory, 0, Some(plate("X"))), "X");
    assert!(is_meant(&inventory, 0, "X"));
    for silence in [Some(Nameplate::default()), None] {
        assert_eq!(see(&mut inventory, 0, silence), "X");
        assert!(!is_meant(&inventory, 0, "X"), "nobody knows");
    }
    assert_eq!(see(&mut inventory, 0, Some(plate("X"))), "X");
    assert!(is_meant(&inventory, 0, "X"));
    // It is found elsewhere while its old path leads nowhere.
    see(&mut inventory, 0, None);
    assert_eq!(see(&mut inventory, 1, Some(plate("X"))), "X");
    let left = inventory.at(&paths[0]).and_then(|known| known.id().cloned());
    assert_eq!(left, Some(nameplate::id(&paths[0])));
    // Another is in its old place.
    assert_eq!(see(&mut inventory, 0, Some(plate("Y"))), "Y");
    assert_eq!(see(&mut inventory, 0, Some(plate("X"))), "X~2", "two say that they are X");
}

#[test]
fn a_drive_that_failed_gives_its_path_to_the_next() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut inventory = Inventory::default();
    let path = file(dir.path(), "a", 4 << 20);
    let name = look(&mut inventory, &path, false).expect("is seen");
    let about = inventory.at(&name).and_then(|known| known.about.clone());
    let serial = about.expect("is known").serial;
    let place = Place { array: "tank".into(), slot: 3, serial, failed: true };
    let places = Places { by_path: [(name.clone(), place)].into(), arrays: Vec::new() };
    let state = |inventory: &Inventory| {
        let known = inventory.at(&name).expect("is known");
        (describe(known, &places).state, places.has(known))
    };
    let failed = view::DriveState::Failed;
    assert_eq!(state(&inventory), (failed, true), "nobody looks at it");
    inventory.look_up(&name, None);
    assert_eq!(state(&inventory), (failed, false), "it is gone");
    let old = dir.path().join("old");
    std::fs::rename(&path, &old).expect("moved");
    look(&mut inventory, &path, false).expect_err("nothing is there");
    assert_eq!(state(&inventory), (failed, false));
    let other = file(dir.path(), "b", 8 << 20);
    std::fs::rename(&other, &path).expect("moved");
    look(&mut inventory, &path, false).expect("another is there");
    assert_eq!(state(&inventory), (view::DriveState::Free, false));
    std::fs::rename(&old, &path).expect("moved");
    look(&mut inventory, &path, false).expect("it is back");
    assert_eq!(state(&inventory), (failed, true));
}

#[test]
fn what_was_seen_before_a_request_took_a_drive_counts_for_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut inventory = Inventory::default();
    let path = [inventory.add(&file(dir.path(), "a", 4 << 20))];
    let look = inventory.begin(&path[0], false).expect("can begin").expect("begins");
    let seen = look.look(&nothing_behind);
    inventory.reserve(&path, true);
    inventory.finish(&path[0], Some(seen), false).expect("is over");
    assert!(inventory.at(&path[0]).is_some_and(|known| known.about.is_none()));
}

#[test]
fn a_drive_is_not_looked_at_twice_at_the_same_time() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut inventory = Inventory::default();
    let path = inventory.add(&file(dir.path(), "a", 4 << 20));
    let first = inventory.begin(&path, false).expect("can begin").expect("begins");
    assert!(inventory.begin(&path, true).is_ok_and(|second| second.is_none()));
    let given_up = inventory.finish(&path, None, false);
    assert!(matches!(given_up, Err(LookError::Silent(_))));
    assert!(matches!(inventory.begin(&path, true), Err(LookError::Silent(_))));
    let listed = describe(inventory.iter().next().expect("is known"), &Places::default());
    assert_eq!(listed.state, view::DriveState::Unusable);
    drop(first.look(&nothing_behind));
    assert!(inventory.begin(&path, false).is_ok_and(|look| look.is_some()));
}

#[test]
fn a_drive_that_was_written_since_it_was_seen_is_not_the_one_that_was_agreed_to() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut inventory = Inventory::default();
    let path = file(dir.path(), "a", 4 << 20);
    let path = look(&mut inventory, &path, false).expect("is seen");
    inventory.name(core::slice::from_ref(&path));
    let known = |inventory: &Inventory| {
        let known = inventory.at(&path).expect("is known");
        (known.id().cloned().expect("an id"), known.seen())
    };
    let (id, seen) = known(&inventory);
    let named = NamedDrive { id, path: path.clone(), seen: Some(seen), ..NamedDrive::default() };
    let is_meant =
        |inventory: &Inventory| inventory.at(&path).expect("is known").is_meant(&named).is_ok();
    let again = |inventory: &mut Inventory| {
        look(inventory, Path::new(&path), false).expect("is seen");
    };
    again(&mut inventory);
    assert!(is_meant(&inventory), "a look changes nothing");
    // Swap space: its signature ends the first page (mkswap(8)).
    let mut content = vec![0; 4 << 20];
    content[4086..4096].copy_from_slice(b"SWAPSPACE2");
    std::fs::write(&path, &content).expect("written");
    again(&mut inventory);
    assert!(!is_meant(&inventory));
    // Another of the same kind: its UUID is in its header.
    let (_, seen) = known(&inventory);
    let named = NamedDrive { seen: Some(seen), ..named };
    let is_meant =
        |inventory: &Inventory| inventory.at(&path).expect("is known").is_meant(&named).is_ok();
    again(&mut inventory);
    assert!(is_meant(&inventory), "a look changes nothing");
    look(&mut inventory, Path::new(&path), true).expect("is claimed");
    assert!(is_meant(&inventory), "nor does a claim");
    content[1036..1052].fill(7);
    std::fs::write(&path, &content).expect("written");
    again(&mut inventory);
    assert!(!is_meant(&inventory));
}
