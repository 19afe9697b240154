//! A real Linux host on a shelf's two ports, of which each goes in the midst of writing: see
//! `guest`.

use crate::common::shelf::Shelf;
use crate::guest::{ADDRESS, guest};
use std::io::Write;
use std::process::ChildStdin;

/// The checks that need nothing of a daemon's.
const CHECKS: &str = "discover,connect_all,unknown_subsystem,id_ctrl,id_ns,list_subsys,ns_descs,\
    log_pages,fio_mixed_sizes,fio_trim,large_io,write_zeroes,discard,compare,out_of_range,\
    both_digests,many_queues,names_last,disconnect,restart_in_io,two_ports,ana_change,\
    port_pulled_in_io,iom_pulled_in_io";

/// Does to the shelf what the guest asks for, and answers.
fn answer(shelf: &Shelf, line: &str, guest: &mut ChildStdin) {
    let Some(event) = line.trim().strip_prefix("@ ") else { return };
    match event.split_whitespace().collect::<Vec<_>>()[..] {
        ["pull", _, part, name, how] => {
            shelf.ctl(&["pull", part, name, &format!("--{how}")]);
        }
        ["restore", _, part, name] => {
            shelf.ctl(&["restore", part, name]);
        }
        ["ana", _, port, state] => {
            shelf.ctl(&["set", &format!("port.{port}.ana"), state]);
        }
        ["restart", _] => {
            shelf.ctl(&["pull", "shelf", "--reset"]);
            shelf.ctl(&["restore", "shelf"]);
        }
        ref other => panic!("not known: {other:?}"),
    }
    guest.write_all(b"go\n").expect("the guest listens");
}

/// What differs from kernel to kernel.
const PART: &str = "discover,id_ns,both_digests,two_ports,ana_change,port_pulled_in_io,\
    iom_pulled_in_io";

fn checks(kernel: &str, which: &str) {
    let words = "--ports 2 --drives 2 --namespaces 1 --drive-size 256M --advertise";
    let shelf = Shelf::start(&[&words.split(' ').collect::<Vec<_>>()[..], &[ADDRESS]].concat());
    let [(_, first), (_, second)] = ["A1", "B1"].map(|port| shelf.port(port));
    let run = ["run", kernel, "--events", "--time-limit", "7200", "--", "checks"];
    let options = ["--short", "--only", which, "--also", &second, ADDRESS, &first];
    let subsystems = [1, 2].map(|drive| shelf.subsystem(drive));
    let subsystems = subsystems.each_ref().map(String::as_str);
    let words = [&run[..], &options, &subsystems].concat();
    let Some(said) = guest(&words, |line, input| answer(&shelf, line, input)) else { return };
    for check in ["two_ports", "ana_change", "port_pulled_in_io", "iom_pulled_in_io"] {
        assert!(said.contains(&format!("ok {check} ")), "{said}");
    }
    assert!(!said.contains("skipped "), "{said}");
    shelf.stop();
}

#[test]
fn linux_6_12_on_a_shelf_is_a_host() {
    checks("6.12", CHECKS);
}

#[test]
fn linux_6_1_on_a_shelf_is_a_host() {
    checks("6.1", PART);
}
