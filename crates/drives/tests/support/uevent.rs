//! A case of the fuzz target: bytes that may come where the kernel announces devices.
//!
//! Purpose: whatever comes, reading it ends; and what was read and is written again is read alike.

use palisade_drives::uevent::{Action, Event, parse};

fn word(action: Action) -> &'static str {
    match action {
        Action::Add => "add",
        Action::Remove => "remove",
        Action::Change => "change",
        Action::Move => "move",
        Action::Bind => "bind",
        Action::Unbind => "unbind",
        Action::Online => "online",
        Action::Offline => "offline",
        Action::Other => "other",
    }
}

/// The announcement as the kernel would write it.
fn written(event: &Event) -> Vec<u8> {
    let number = |number: &Option<u32>| number.map(|number| number.to_string());
    let mut text = format!("{}@{}\0", word(event.action), event.devpath);
    for (key, value) in [
        ("SUBSYSTEM", event.subsystem.clone()),
        ("MAJOR", number(&event.major)),
        ("MINOR", number(&event.minor)),
        ("DEVNAME", event.devname.clone()),
        ("DISKSEQ", event.diskseq.map(|number| number.to_string())),
    ] {
        if let Some(value) = value {
            text += &format!("{key}={value}\0");
        }
    }
    text.into_bytes()
}

/// One message.
pub fn run(input: &[u8]) {
    let Some(event) = parse(input) else { return };
    assert!(event.devpath.starts_with('/'), "{event:?}");
    assert_eq!(parse(&written(&event)).as_ref(), Some(&event));
}
