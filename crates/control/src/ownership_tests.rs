//! That one process at a time is a server.

use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

fn owner(host: u8) -> Owner {
    Owner { host: Uuid([host; 16]), boot: Uuid([9; 16]) }
}

#[test]
fn one_at_a_time_is_a_host_since_one_start_of_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let dirs = [dir.path().to_owned()];
    assert_eq!(hold_in(&dirs, owner(1)), Ok(()));
    let told = hold_in(&dirs, owner(1)).expect_err("it is held");
    assert!(told.is(&say::HOST_ID_TAKEN) && told.error.contains(&Uuid([1; 16]).to_string()));
    assert_eq!(hold_in(&dirs, owner(2)), Ok(()), "another host is another matter");
    let again = Owner { boot: Uuid([8; 16]), ..owner(1) };
    assert_eq!(hold_in(&dirs, again), Ok(()), "what was before a start of the machine is over");
}

/// A file that the process before left is no lock.
#[test]
fn what_nobody_holds_any_more_is_free() {
    let dir = tempfile::tempdir().expect("a directory");
    let name = format!("palisade-{}-{}.lock", owner(3).host, owner(3).boot);
    let left = File::create(dir.path().join(&name)).expect("made");
    left.lock().expect("locked");
    let dirs = [dir.path().to_owned()];
    assert!(hold_in(&dirs, owner(3)).is_err());
    drop(left);
    assert_eq!(hold_in(&dirs, owner(3)), Ok(()));
    let mode = std::fs::metadata(dir.path().join(name)).expect("is there").permissions().mode();
    assert_ne!(mode & 0o400, 0);
}

#[test]
fn a_directory_that_is_not_there_is_passed_over_and_a_link_is_not_followed() {
    let dir = tempfile::tempdir().expect("a directory");
    let none = dir.path().join("none");
    assert_eq!(hold_in(&[none.clone(), dir.path().to_owned()], owner(4)), Ok(()));
    assert!(hold_in(&[dir.path().to_owned()], owner(4)).is_err(), "it was locked there");
    assert!(hold_in(&[none], owner(5)).is_err(), "nobody can tell");
    let name = format!("palisade-{}-{}.lock", owner(6).host, owner(6).boot);
    symlink(dir.path().join("elsewhere"), dir.path().join(name)).expect("linked");
    assert!(hold_in(&[dir.path().to_owned()], owner(6)).is_err());
    assert!(!dir.path().join("elsewhere").exists());
}

#[test]
fn a_server_is_known_by_its_host_id_and_its_start() {
    let own = Fabrics::new(1, Box::new(|_| ()));
    let found = find(&own).expect("is known");
    assert_eq!(find(&own), Ok(found));
    assert_eq!(found.host, Uuid(own.host().expect("is known").id));
    assert_ne!(found.boot, Uuid::NIL);
    let dir = tempfile::tempdir().expect("a directory");
    let boot = dir.path().join("boot_id");
    let told = || find_by(&own, &boot).expect_err("is not known");
    assert!(told().is(&say::SERVER_NOT_KNOWN), "{:?}", told());
    std::fs::write(&boot, "17\n").expect("written");
    assert!(told().error.ends_with("it is no UUID"), "{:?}", told());
    std::fs::write(&boot, format!("{}\n", Uuid([7; 16]))).expect("written");
    assert_eq!(find_by(&own, &boot), Ok(Owner { boot: Uuid([7; 16]), ..found }));
}

#[test]
fn an_array_is_held_once_its_lease_is_over() {
    let period = Nanos::from_millis(250);
    assert!(!is_over(None, period), "it was never confirmed: it is just being started");
    assert!(!is_over(Some(1_000), period) && is_over(Some(1_001), period));
}

/// As an engine tells of an array that another server has taken.
#[test]
fn who_has_a_running_array_is_told_of_it() {
    let identity = engine::manage::command::Identity {
        host: Uuid([1; 16]),
        boot: Uuid([2; 16]),
        name: "srv1".to_owned(),
        heartbeat: Nanos::from_millis(250),
    };
    let lease = std::sync::Arc::new(engine::watch::Lease::new(Nanos(1)));
    let mut array = crate::plugs::tests::status(Uuid([7; 16]), &[0]);
    assert!(shown(&array, 5).is_none() && taken_by(&array).is_none());
    array.owner = Some(engine::manage::command::OwnerStatus {
        identity: identity.into(),
        lease,
        is_held: false,
        taken_by: None,
    });
    let told = shown(&array, 5).expect("it is shared");
    assert_eq!((told.name.as_str(), told.own, told.heartbeat_age_ms), ("srv1", true, None));
    assert_eq!(taken_by(&array), None);
    if let Some(own) = &mut array.owner {
        own.taken_by = Some("srv2".to_owned());
    }
    assert_eq!(taken_by(&array), Some("srv2"));
}
