//! Tests of how drives are described and judged.

use super::*;
use drives::admin::{Admin, AdminError, StandIn};
use drives::sysfs::{Controller, Identity, Pci, Transport};
use redfish::view::DrivePower;
use std::path::Path;

const NOW: u64 = 1_800_000_000;

fn subject(number: u32) -> Subject {
    Subject {
        id: format!("eui.{number}"),
        path: format!("/dev/nvme{number}n1"),
        device: Some(rustix::fs::makedev(259, number)),
        counted: None,
        absent: None,
    }
}

fn device(number: u32) -> Device {
    let controller = Controller {
        name: format!("nvme{number}"),
        transport: Some(Transport::Pcie),
        ..Controller::default()
    };
    Device {
        name: format!("nvme{number}n1"),
        number: Some((259, number)),
        identity: Identity { namespace: Some(1), ..Identity::default() },
        firmware: Some("old".to_owned()),
        kind: Kind::Nvme,
        controllers: vec![controller],
        pci: Some(Pci { address: "0000:01:00.0".to_owned(), ..Pci::default() }),
        ..Device::default()
    }
}

/// Drives that are asked on this stand-in.
fn well(stand_in: &StandIn) -> Wellness {
    let own = stand_in.clone();
    let open = move |_: &Path| Ok(Box::new(own.clone()) as Box<dyn Admin>);
    let well = Wellness::new(Asking::new(open, |_| {}));
    well.go_on(None).expect("nothing was kept");
    well
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

fn rules(hardware: &Hardware) -> Vec<&str> {
    hardware.reasons.iter().map(|reason| reason.rule.as_str()).collect()
}

#[test]
fn a_drive_is_described_by_the_kernel_and_by_itself() {
    let stand_in = StandIn::new("S0");
    let well = well(&stand_in);
    let (subjects, devices) = ([subject(0)], [device(0)]);
    run(async {
        well.describe(&subjects, &devices, NOW, false);
        let by_kernel = well.hardware("/dev/nvme0n1").expect("is described");
        assert_eq!(by_kernel.kind.as_deref(), Some("nvme"));
        assert_eq!(by_kernel.transport.as_deref(), Some("pcie"));
        assert_eq!(by_kernel.controller.as_deref(), Some("nvme0"));
        assert_eq!((by_kernel.namespace, by_kernel.smart.is_some()), (Some(1), false));
        well.asking().ask_now("/dev/nvme0n1").await.expect("is asked");
        well.describe(&subjects, &devices, NOW, false);
        let by_both = well.hardware("/dev/nvme0n1").expect("is described");
        assert_eq!(by_both.firmware.as_deref(), Some("1.0"), "the drive knows better");
        assert_eq!(by_both.smart.as_ref().and_then(|smart| smart.celsius), Some(37));
        assert!(
            matches!(&by_both.power, Some(DrivePower { state: 0, states }) if states.len() == 3)
        );
        assert_eq!((by_both.health, by_both.reasons.len()), (Health::Ok, 0));
    });
}

#[test]
fn a_drive_is_where_its_enclosure_says() {
    use redfish::view::{DrivePlace, Enclosure, EnclosureSlot};
    let well = well(&StandIn::new("S0"));
    let (subjects, devices) = ([subject(0), subject(1)], [device(0), device(1)]);
    let slot = |number: u32| EnclosureSlot {
        slot: (number + 7).to_string(),
        drive: Some(format!("eui.{number}")),
        located: Some(number == 1),
    };
    let enclosure =
        Enclosure { id: "shelf".into(), slots: vec![slot(1), slot(2)], ..Enclosure::default() };
    run(async {
        well.describe(&subjects, &devices, NOW, false);
        let around = Surroundings { enclosures: vec![enclosure], ..Surroundings::default() };
        well.see_around(around.clone());
        well.see_sensors([("/dev/nvme0n1".to_owned(), 41)].into());
        well.describe(&subjects, &devices, NOW, false);
        let told = |number: u32| {
            let path = format!("/dev/nvme{number}n1");
            let hardware = well.hardware(&path).expect("is described");
            (hardware.place.clone(), hardware.located, hardware.sensor_celsius)
        };
        assert_eq!(told(0), (None, None, Some(41)));
        let place = DrivePlace { enclosure: "shelf".into(), slot: "8".into() };
        assert_eq!(told(1), (Some(place), Some(true), None));
        assert_eq!(*well.around(), around);
    });
}

#[test]
fn a_drive_is_judged_once_for_each_answer() {
    let stand_in = StandIn::new("S0");
    let well = well(&stand_in);
    let (subjects, devices) = ([subject(0)], [device(0)]);
    let hardware = || well.hardware("/dev/nvme0n1").expect("is described");
    run(async {
        well.describe(&subjects, &devices, NOW, false);
        let ask = async |warning: u8, at: u64| {
            stand_in.change(|standing| standing.smart.critical_warning = warning);
            well.asking().ask_now("/dev/nvme0n1").await.expect("is asked");
            for _ in 0..5 {
                // What is described anew without an answer is no reading.
                well.describe(&subjects, &devices, at, true);
            }
        };
        ask(1 << 2, NOW).await;
        assert_eq!(
            (hardware().health, rules(&hardware())),
            (Health::Critical, vec!["reliability"])
        );
        assert_eq!(hardware().reasons[0].since, NOW);
        for reading in 1..health::rules::READINGS_TO_CLEAR {
            ask(0, NOW + 60 * u64::from(reading)).await;
            assert_eq!(hardware().health, Health::Critical, "{reading} say that it is well");
        }
        ask(0, NOW + 600).await;
        assert_eq!(hardware().health, Health::Ok);
    });
}

#[test]
fn what_a_drive_told_before_is_no_reading() {
    let stand_in = StandIn::new("S0");
    stand_in.change(|standing| standing.smart.critical_warning = 1 << 2);
    let well = well(&stand_in);
    let (subjects, devices) = ([subject(0)], [device(0)]);
    run(async {
        well.describe(&subjects, &devices, NOW, false);
        let ask = async |at: u64| {
            well.asking().ask_now("/dev/nvme0n1").await.expect("is asked");
            well.describe(&subjects, &devices, at, false);
            well.hardware("/dev/nvme0n1").expect("is described").health
        };
        assert_eq!(ask(NOW).await, Health::Critical);
        stand_in.change(|standing| standing.smart.critical_warning = 0);
        assert_eq!(ask(NOW + 60).await, Health::Critical, "one reading says that it is well");
        stand_in.change(|standing| standing.fails = Some(AdminError::Gone));
        for minute in 2..9 {
            assert_eq!(ask(NOW + 60 * minute).await, Health::Critical, "it says nothing");
        }
    });
}

#[test]
fn a_drive_that_is_gone_and_not_failed_is_critical() {
    let well = well(&StandIn::new("S0"));
    let gone = |is_waited_for| Subject { absent: Some(is_waited_for), ..subject(0) };
    let hardware = || well.hardware("/dev/nvme0n1").expect("is described");
    run(async {
        well.describe(&[gone(false)], &[], NOW, false);
        assert_eq!((hardware().health, rules(&hardware())), (Health::Critical, vec!["gone"]));
        well.describe(&[gone(true)], &[], NOW + 60, true);
        assert_eq!(hardware().reasons[0].since, NOW, "it is known since then");
        assert!(hardware().reasons[0].what.contains("network"));
        well.describe(&[subject(0)], &[device(0)], NOW + 90, false);
        assert_eq!((hardware().health, hardware().reasons.len()), (Health::Ok, 0));
    });
}

#[test]
fn what_the_engine_counts_is_judged_where_a_drive_says_nothing() {
    let well = well(&StandIn::new(""));
    let file = |errors| Subject {
        id: "-a".to_owned(),
        path: "/a".to_owned(),
        device: None,
        counted: Some((errors, 0)),
        absent: None,
    };
    let health = || well.hardware("/a").expect("is described").health;
    run(async {
        well.describe(&[file(5)], &[], NOW, true);
        assert_eq!(health(), Health::Ok, "these are old");
        well.describe(&[file(500)], &[], NOW + 1, false);
        assert_eq!(health(), Health::Ok, "it is not due");
        well.describe(&[file(500)], &[], NOW + 60, true);
        assert_eq!(health(), Health::Warning);
    });
}

#[test]
fn judges_go_on_where_they_were() {
    let stand_in = StandIn::new("S0");
    stand_in.change(|standing| standing.smart.percentage_used = 95);
    let first = well(&stand_in);
    let (subjects, devices) = ([subject(0)], [device(0)]);
    run(async {
        first.describe(&subjects, &devices, NOW, false);
        first.asking().ask_now("/dev/nvme0n1").await.expect("is asked");
        first.describe(&subjects, &devices, NOW, false);
        let (kept, under_way) = first.to_keep().expect("there is something");
        assert!(first.to_keep().is_none(), "nothing is new");
        first.not_kept();
        assert!(first.to_keep().is_none(), "it is being written");
        drop(under_way);
        assert_eq!(first.to_keep().map(|(again, _)| again).as_ref(), Some(&kept));
        let second = well(&stand_in);
        second.go_on(Some(&kept)).expect("is read");
        second.describe(&subjects, &devices, NOW + 9, false);
        let hardware = second.hardware("/dev/nvme0n1").expect("is described");
        assert_eq!((rules(&hardware), hardware.reasons[0].since), (vec!["wear"], NOW));
    });
}

#[test]
fn a_file_that_can_not_be_read_is_not_written_over() {
    let stand_in = StandIn::new("S0");
    let own = stand_in.clone();
    let open = move |_: &Path| Ok::<_, AdminError>(Box::new(own.clone()) as Box<dyn Admin>);
    for bytes in ["", "{", "{\"version\":2,\"drives\":{}}"] {
        let well = Wellness::new(Asking::new(open.clone(), |_| {}));
        assert!(well.go_on(Some(bytes.as_bytes())).is_err());
        well.describe(&[subject(0)], &[device(0)], NOW, true);
        assert!(well.to_keep().is_none());
    }
}

#[test]
fn of_drives_that_are_gone_the_last_are_remembered() {
    let well = well(&StandIn::new(""));
    let file = |number: usize| Subject {
        id: format!("-{number}"),
        path: format!("/{number}"),
        device: None,
        counted: None,
        absent: None,
    };
    for number in 0..MOST + 3 {
        well.describe(&[file(number)], &[], NOW + number as u64, true);
    }
    let inside = well.inside();
    assert_eq!(inside.judges.len(), MOST);
    assert!(!inside.judges.contains_key("-2") && inside.judges.contains_key("-3"));
}

#[test]
fn stand_ins_answer_for_files_and_no_drive_is_asked() {
    run(async {
        let well = Wellness::of_stand_ins(Asking::by_stand_ins(|_| {}));
        well.go_on(None).expect("nothing was kept");
        let file = Subject {
            id: "file".to_owned(),
            path: "/nowhere/drive-07.img".to_owned(),
            device: None,
            counted: None,
            absent: None,
        };
        // One that the kernel calls NVMe, too, and whose controller is not there.
        let subjects = [file, subject(0)];
        well.describe(&subjects, &[device(0)], NOW, false);
        for subject in &subjects {
            let answer = well.asking().ask_now(&subject.path).await.expect("it is asked");
            let serial = answer.controller.as_ref().map(|controller| controller.serial.clone());
            let name = Path::new(&subject.path).file_name().and_then(|name| name.to_str());
            assert_eq!(serial.as_deref(), name, "each has a stand-in of its own");
        }
        well.describe(&subjects, &[device(0)], NOW, false);
        let hardware = well.hardware("/nowhere/drive-07.img").expect("described");
        assert_eq!(hardware.smart.as_ref().and_then(|smart| smart.celsius), Some(37));
        assert!(hardware.asked.is_some() && hardware.problem.is_none(), "{hardware:?}");
    });
}
