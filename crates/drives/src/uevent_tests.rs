//! Tests of what the kernel announces: its bytes, and the real socket.

use super::*;
use rustix::net::SendFlags;

/// The announcement of an NVMe drive that went, as Linux 6.12 made it.
const GONE: &[u8] = b"remove@/devices/pci0000:00/0000:00:03.0/0000:02:00.0/nvme/nvme1/nvme1n1\0\
    ACTION=remove\0DEVPATH=/devices/pci0000:00/0000:00:03.0/0000:02:00.0/nvme/nvme1/nvme1n1\0\
    SUBSYSTEM=block\0MAJOR=259\0MINOR=3\0DEVNAME=nvme1n1\0DEVTYPE=disk\0DISKSEQ=12\0SEQNUM=1811\0";

#[test]
fn an_announcement_is_read() {
    let event = parse(GONE).expect("an announcement");
    assert_eq!(
        event,
        Event {
            action: Action::Remove,
            devpath: "/devices/pci0000:00/0000:00:03.0/0000:02:00.0/nvme/nvme1/nvme1n1".to_owned(),
            subsystem: Some("block".to_owned()),
            devname: Some("nvme1n1".to_owned()),
            diskseq: Some(12),
            major: Some(259),
            minor: Some(3),
        }
    );
    for (word, action) in [
        ("add", Action::Add),
        ("remove", Action::Remove),
        ("change", Action::Change),
        ("move", Action::Move),
        ("bind", Action::Bind),
        ("unbind", Action::Unbind),
        ("online", Action::Online),
        ("offline", Action::Offline),
        ("dance", Action::Other),
    ] {
        let event = parse(format!("{word}@/devices/x\0").as_bytes()).expect(word);
        assert_eq!((event.action, event.subsystem), (action, None), "{word}");
    }
}

#[test]
fn what_is_no_announcement_is_none() {
    for wrong in [&b""[..], b"\0", b"libudev\0\xfe\xed\xca\xfe", b"add", b"@/x", b"add@x", b"add@"]
    {
        assert_eq!(parse(wrong), None, "{wrong:?}");
    }
    let odd = b"add@/x\0MAJOR=-1\0MINOR=99999999999\0DEVNAME\0=\0SUBSYSTEM=\xff\0\0";
    let event = parse(odd).expect("an announcement");
    assert_eq!((event.major, event.minor, event.devname), (None, None, None));
    assert_eq!(event.subsystem.as_deref(), Some("\u{fffd}"));
}

/// Makes the kernel announce a device that is always there; `false` where we may not. When this is
/// over, whoever listens has the message.
fn announce() -> bool {
    std::fs::write("/sys/devices/virtual/mem/null/uevent", "change").is_ok()
}

/// All that there is to receive.
fn all(listener: &Listener) -> Vec<Notice> {
    std::iter::from_fn(|| listener.receive().expect("a socket that works")).collect()
}

fn is_null(notice: &Notice) -> bool {
    matches!(notice, Notice::Event(event) if event.devname.as_deref() == Some("null"))
}

#[test]
fn the_kernel_is_heard() {
    let listener = Listener::open().expect("no privilege is needed");
    if !announce() {
        assert!(!all(&listener).iter().any(is_null));
        return println!("skipped: only root makes the kernel announce something");
    }
    let heard = all(&listener);
    let found = heard.iter().find(|notice| is_null(notice));
    let Some(Notice::Event(event)) = found else { panic!("{heard:?}") };
    assert_eq!(event.action, Action::Change);
    assert_eq!(event.devpath, "/devices/virtual/mem/null");
    assert_eq!(event.subsystem.as_deref(), Some("mem"));
    assert_eq!((event.major, event.minor, event.diskseq), (Some(1), Some(3), None));
}

#[test]
fn what_a_process_says_is_passed_over() {
    let listener = Listener::open().expect("no privilege is needed");
    let own = rustix::net::getsockname(&listener).expect("it is bound");
    let own = SocketAddrNetlink::try_from(own).expect("of netlink");
    let flags = SocketFlags::CLOEXEC;
    let protocol = Some(KOBJECT_UEVENT);
    let family = AddressFamily::NETLINK;
    let socket = rustix::net::socket_with(family, SocketType::RAW, flags, protocol).expect("made");
    let to = SocketAddrNetlink::new(own.pid(), 0);
    match rustix::net::sendto(&socket, GONE, SendFlags::empty(), &to) {
        // The kernel lets nobody but root.
        Err(Errno::PERM) => {}
        sent => assert_eq!(sent, Ok(GONE.len())),
    }
    let is_said = |notice: &Notice| matches!(notice, Notice::Event(e) if e.diskseq == Some(12));
    assert!(!all(&listener).iter().any(is_said));
}

#[test]
fn what_is_lost_is_said() {
    let listener = Listener::open().expect("no privilege is needed");
    sockopt::set_socket_recv_buffer_size(&listener, 1).expect("set to the least");
    if !(0..64).all(|_| announce()) {
        return println!("skipped: only root makes the kernel announce something");
    }
    assert!(all(&listener).contains(&Notice::Lost));
    assert!(announce());
    assert!(all(&listener).iter().any(is_null), "it is of use after that");
}
