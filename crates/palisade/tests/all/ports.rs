//! Fibre Channel ports where the machine has none. [`crate::guest_fc`] has some.

use crate::common::services::Services;
use crate::services::Life;
use serde_json::json;

const PORT: &str = "20:00:00:25:b5:00:00:1f";
const INITIATOR: &str = "20:00:00:25:b5:00:00:01";
const HOST: &str = "nqn.2026-11.example:a";

#[test]
fn what_is_no_port_is_refused() {
    let Some(life) = Life::new("refused ports", 64) else { return };
    let name = life.volume("v", "16M");
    let daemon = life.daemon();
    assert_eq!(daemon.call(&["port", "list"])["ports"], json!([]));
    let ends = |code, words: &[&str], with: &str| {
        let said = daemon.ends(code, &[&["export", "create", &name][..], words].concat());
        assert!(said.contains(with), "{words:?}: {said}");
    };
    ends(2, &["--fc", "fc0", "--initiator", INITIATOR], "BadWwpn");
    ends(2, &["--fc", PORT, "--initiator", "20:00:00:25:b5:00:00"], "BadWwpn");
    ends(2, &["--fc", PORT, "--initiator", HOST], "BadWwpn");
    ends(2, &["--nvme-fc", PORT, "--host", INITIATOR], "BadNqn");
    ends(2, &["--fc", PORT, "--initiator", INITIATOR, "0x20000025b5000001"], "PortalTwice");
    ends(2, &["--fc", PORT], "--initiator");
    ends(2, &["--nvme-fc", PORT], "--host");
    ends(2, &["--nvme-fc", PORT, "--any-host"], "--host");
    for other in [&["--local"][..], &["--nvme-fc", PORT], &["--chap", "a"], &["--host", HOST]] {
        ends(2, &[&["--fc", PORT, "--initiator", INITIATOR], other].concat(), "cannot be used");
    }
    // This kernel has neither ublk nor a port.
    ends(1, &["--fc", PORT, "--initiator", INITIATOR], "has no ublk");
    ends(1, &["--nvme-fc", PORT, "--host", HOST], "has no ublk");
    assert_eq!(daemon.call(&["export", "list"])["exports"], json!([]));
    assert!(Services::made(&life.place).is_empty(), "what could not be leaves nothing");
}
