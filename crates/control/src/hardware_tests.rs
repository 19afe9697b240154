//! What drives can't do is told in their words.

use super::*;
use crate::asking::{Askable, Asking};
use crate::renewal::tests::{drives, run_with};
use crate::wellness::Wellness;
use ::drives::admin::{Admin, StandIn};
use ::nvme::command::admin::SET_FEATURES;
use ::nvme::status::Status;
use std::path::Path;

#[test]
fn an_indicator_that_is_not_switched_says_why() {
    let dir = tempfile::tempdir().expect("a directory");
    run_with(false, drives(dir.path(), 1), async move |manager| {
        manager.find_drives(&[]).await.expect("are found");
        let view = manager.view();
        let known = view.drives.first().expect("a drive");
        assert!(switched(known, Some(Ok(()))).is_ok());
        let drive = "sda".to_owned();
        let refused = switched(known, Some(Err(LedError::Unchanged { drive }))).expect_err("fails");
        assert!(refused.is(&say::DRIVE_INDICATOR_FAILED), "{refused:?}");
        assert!(refused.hint.contains("the enclosure's own management"), "{refused:?}");
        let silent = switched(known, None).expect_err("fails");
        assert!(silent.is(&say::DRIVE_INDICATOR_FAILED) && silent.error.contains("no answer"));
        let drive = "sda".to_owned();
        let none = switched(known, Some(Err(LedError::None { drive }))).expect_err("fails");
        assert!(none.is(&say::DRIVE_NO_INDICATOR), "{none:?}");
    });
}

#[test]
fn a_drive_takes_a_power_state_or_refuses_in_its_words() {
    let dir = tempfile::tempdir().expect("a directory");
    let stand_in = StandIn::new("S0");
    let own = stand_in.clone();
    let open = move |_: &Path| Ok(Box::new(own.clone()) as Box<dyn Admin>);
    let well = Wellness::new(Asking::new(open, |_| {}));
    run_with(false, drives(dir.path(), 1), async move |manager| {
        manager.find_drives(&[]).await.expect("are found");
        let view = manager.view();
        let known = view.drives.first().expect("a drive");
        let refused = manager.set_drive_power(&known.id, 1).await.expect_err("it is a file");
        assert!(refused.is(&say::DRIVE_NOT_NVME), "{refused:?}");
        let refused = manager.locate_drive(&known.id, true).await.expect_err("it is a file");
        assert!(refused.is(&say::DRIVE_NO_INDICATOR), "{refused:?}");
        let refused = manager.set_drive_power("gone", 1).await.expect_err("no such drive");
        assert!(refused.is(&say::DRIVE_NOT_KNOWN), "{refused:?}");
        // The same asked as if it were an NVMe drive.
        let path = known.drive.path.clone();
        let key = path.clone();
        well.asking().set_drives([Askable { key, device: "/dev/nvme0".into() }]);
        set_power(&well, &path, 1).await.expect("is taken");
        assert_eq!(stand_in.standing().power_state, 1);
        let status = Status(0x410d);
        stand_in.change(|standing| {
            standing.refuses.insert(SET_FEATURES, status);
        });
        let refused = set_power(&well, &path, 0).await.expect_err("is refused");
        assert!(refused.is(&say::DRIVE_POWER_REFUSED), "{refused:?}");
        let words = status.words();
        assert!(refused.error.contains(words) && refused.error.contains("0x410d"), "{refused:?}");
    });
}
