//! A machine's connection, by the other side of the protocol.

use palisade_machines::{Config, Cores, Line, Ring, talk};
use rustix::fs::{MemfdFlags, SealFlags};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use vhost::vhost_user::message::{
    VhostUserConfigFlags, VhostUserHeaderFlag, VhostUserInflight, VhostUserProtocolFeatures,
};
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vhost_user::wire::feature;
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryMmap};
use vmm_sys_util::eventfd::EventFd;

const MIB: usize = 1 << 20;
/// Where the process that runs the machine would have its memory.
const THERE: u64 = 0x7f00_0000_0000;
/// Where the machine has it.
const AT: u64 = 0x4000_0000;
const REQUESTS: u16 = 128;
/// `VHOST_USER_F_PROTOCOL_FEATURES`.
const PROTOCOL: u64 = 1 << 30;
const LATE: Duration = Duration::from_secs(60);

/// What is asked of cores.
enum Asked {
    Serve(u16, Box<Ring>),
    Stop(u16),
}

struct Told(Sender<Asked>);

impl Cores for Told {
    fn serve(&mut self, number: u16, ring: Ring) -> Result<(), String> {
        self.0.send(Asked::Serve(number, Box::new(ring))).map_err(|error| error.to_string())
    }

    fn stop(&mut self, number: u16) -> Option<u16> {
        let _ = self.0.send(Asked::Stop(number));
        Some(77 + number)
    }

    fn config(&self) -> Config {
        let (block_bytes, best_bytes, discard_bytes) = (512, 65_536, 3 << 20);
        Config { bytes: 64 << 20, block_bytes, best_bytes, discard_bytes, rings: 2 }
    }
}

/// A machine that has connected.
struct Machine {
    frontend: Frontend,
    line: Line,
    asked: Receiver<Asked>,
    talking: JoinHandle<Result<(), String>>,
    memory: File,
    kicks: Vec<EventFd>,
}

fn memory(bytes: usize) -> File {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file: File = rustix::fs::memfd_create("machine", flags).expect("made").into();
    file.set_len(bytes as u64).expect("sized");
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK).expect("sealed");
    file
}

impl Machine {
    fn connect() -> Self {
        let (own, other) = UnixStream::pair().expect("a pair");
        let ((sender, asked), line) = (channel(), Line::new(other));
        let talked = line.clone();
        let talking = std::thread::spawn(move || talk(&talked, Told(sender)));
        let frontend = Frontend::from_stream(own, 64);
        let kicks = (0..2).map(|_| EventFd::new(0).expect("made")).collect();
        Self { frontend, line, asked, talking, memory: memory(4 * MIB), kicks }
    }

    /// Agrees on all that is offered.
    fn agree(&mut self) {
        self.frontend.set_owner().expect("owned");
        let offered = self.frontend.get_features().expect("told");
        assert_eq!(offered, feature::OFFERED | PROTOCOL);
        self.frontend.set_features(offered).expect("taken");
        let parts = self.frontend.get_protocol_features().expect("told");
        self.frontend.set_protocol_features(parts).expect("taken");
        // From here on each request is answered.
        self.frontend.set_hdr_flags(VhostUserHeaderFlag::NEED_REPLY);
        assert!(parts.contains(VhostUserProtocolFeatures::INFLIGHT_SHMFD));
        assert_eq!(self.frontend.get_queue_num().expect("told"), 64);
    }

    fn share(&self, bytes: usize) -> bool {
        let info = VhostUserMemoryRegionInfo {
            guest_phys_addr: AT,
            memory_size: bytes as u64,
            userspace_addr: THERE,
            mmap_offset: 0,
            mmap_handle: self.memory.as_raw_fd(),
        };
        self.frontend.set_mem_table(&[info]).is_ok()
    }

    fn places(at: u64) -> VringConfigData {
        VringConfigData {
            queue_max_size: REQUESTS,
            queue_size: REQUESTS,
            flags: 0,
            desc_table_addr: at,
            used_ring_addr: at + 0x2000,
            avail_ring_addr: at + 0x1000,
            log_addr: None,
        }
    }

    /// Says all of a ring, and enables it.
    fn begin(&mut self, ring: usize) {
        let at = THERE + (ring * MIB) as u64;
        self.frontend.set_vring_num(ring, REQUESTS).expect("taken");
        self.frontend.set_vring_addr(ring, &Self::places(at)).expect("taken");
        self.frontend.set_vring_base(ring, 5).expect("taken");
        self.frontend.set_vring_kick(ring, &self.kicks[ring]).expect("taken");
        self.frontend.set_vring_enable(ring, true).expect("taken");
    }

    fn served(&self) -> (u16, Box<Ring>) {
        match self.asked.recv_timeout(LATE).expect("something is asked") {
            Asked::Serve(number, ring) => (number, ring),
            Asked::Stop(number) => panic!("ring {number} is stopped"),
        }
    }

    fn stopped(&self) -> u16 {
        match self.asked.recv_timeout(LATE).expect("something is asked") {
            Asked::Stop(number) => number,
            Asked::Serve(number, _) => panic!("ring {number} is served"),
        }
    }

    fn is_quiet(&self) -> bool {
        self.asked.try_recv().is_err()
    }

    /// Goes; how the connection ended.
    fn end(self) -> Result<(), String> {
        drop(self.frontend);
        self.talking.join().expect("no panic")
    }
}

#[test]
fn rings_are_served_as_the_machine_says() {
    let mut machine = Machine::connect();
    machine.agree();
    assert!(machine.share(4 * MIB));
    machine.begin(1);
    let (number, ring) = machine.served();
    assert_eq!((number, ring.place.requests, ring.place.taken), (1, REQUESTS, 5));
    let at = AT + MIB as u64;
    let place = [ring.place.descriptors, ring.place.offered, ring.place.answered];
    assert_eq!(place, [at, at + 0x1000, at + 0x2000]);
    assert!(ring.place.event_index && ring.kept.is_none());
    // It is the machine's memory.
    ring.memory.write_slice(b"palisade", GuestAddress(AT + 100)).expect("in memory");
    let range = (
        GuestAddress(0),
        4 * MIB,
        Some(FileOffset::new(machine.memory.try_clone().expect("cloned"), 0)),
    );
    let there = GuestMemoryMmap::<()>::from_ranges_with_files([range]).expect("mapped");
    let mut told = [0; 8];
    there.read_slice(&mut told, GuestAddress(100)).expect("in memory");
    assert_eq!(&told, b"palisade");
    // Bells, also one that comes later.
    machine.kicks[1].write(1).expect("rung");
    let mut own = [0; 8];
    File::from(ring.kick).read_exact(&mut own).expect("rung");
    let bell = EventFd::new(0).expect("made");
    machine.frontend.set_vring_call(1, &bell).expect("taken");
    bell.read().expect("rung, as something may have been answered");
    ring.call.ring();
    assert_eq!(bell.read().expect("rung"), 1);
    // Disabled, it is still; and goes on where it was.
    machine.frontend.set_vring_enable(1, false).expect("taken");
    assert_eq!(machine.stopped(), 1);
    machine.frontend.set_vring_enable(1, true).expect("taken");
    assert_eq!(machine.served().1.place.taken, 78);
    // Asked where it stands, it is still until there is a new bell.
    assert_eq!(machine.frontend.get_vring_base(1).expect("told"), 78);
    assert_eq!(machine.stopped(), 1);
    machine.frontend.set_vring_enable(1, true).expect("taken");
    assert!(machine.is_quiet());
    machine.frontend.set_vring_kick(1, &machine.kicks[1]).expect("taken");
    assert_eq!(machine.served().0, 1);
    // Other memory: none is served in what goes.
    assert!(machine.share(2 * MIB));
    assert_eq!((machine.stopped(), machine.served().0), (1, 1));
    // Whose driver knows of no flush has what is written on drives.
    let simple = (feature::OFFERED | PROTOCOL) & !feature::FLUSH;
    machine.frontend.set_features(simple).expect("taken");
    assert_eq!(machine.stopped(), 1);
    assert!(machine.served().1.place.write_through && !ring.place.write_through);
    let asked = machine.line.clone();
    drop(machine.frontend);
    assert!(matches!(machine.asked.recv_timeout(LATE), Ok(Asked::Stop(1))));
    assert_eq!(machine.talking.join().expect("no panic"), Ok(()));
    asked.changed();
}

#[test]
fn the_device_and_its_changes_are_told() {
    let mut machine = Machine::connect();
    machine.agree();
    let flags = VhostUserConfigFlags::WRITABLE;
    let (_, told) = machine.frontend.get_config(0, 60, flags, &[0; 60]).expect("told");
    let config = Told(channel().0).config();
    assert_eq!(told, config.encode());
    machine.line.changed();
    let (own, mut other) = UnixStream::pair().expect("a pair");
    machine.frontend.set_backend_request_fd(&own).expect("taken");
    drop(own);
    machine.line.changed();
    let mut message = [0; 12];
    other.read_exact(&mut message).expect("told");
    // VHOST_USER_BACKEND_CONFIG_CHANGE_MSG, version 1, no bytes.
    assert_eq!(message, [2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(machine.end(), Ok(()));
}

#[test]
fn what_is_under_way_stays_the_machines() {
    let mut machine = Machine::connect();
    machine.agree();
    let wanted = VhostUserInflight::new(0, 0, 2, REQUESTS);
    let (told, file) = machine.frontend.get_inflight_fd(&wanted).expect("made");
    assert_eq!({ told.mmap_size }, 2 * 2112);
    assert_eq!(file.metadata().expect("told").len(), 2 * 2112);
    assert!(file.set_len(0).is_err(), "it does not shrink");
    machine.frontend.set_inflight_fd(&told, file.as_raw_fd()).expect("taken");
    assert!(machine.share(4 * MIB));
    machine.begin(0);
    let (_, ring) = machine.served();
    let (kept, number) = ring.kept.expect("it is kept");
    assert_eq!(number, (0, REQUESTS));
    kept.write_slice(&[9], GuestAddress(4000)).expect("in memory");
    let mut own = [0; 1];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut own, 4000).expect("read");
    assert_eq!(own, [9]);
    assert_eq!(machine.end(), Ok(()));
}

/// Each is refused, and its machine's connection has ended for that alone.
#[test]
fn what_cannot_be_ends_the_connection() {
    type Wrong = (&'static str, fn(&mut Machine) -> bool);
    let all: [Wrong; 11] = [
        ("memory that may shrink", |own| {
            own.memory = rustix::fs::memfd_create("m", MemfdFlags::CLOEXEC).expect("made").into();
            own.memory.set_len(MIB as u64).expect("sized");
            own.share(MIB)
        }),
        ("memory that may run out", |own| {
            let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB;
            // A kernel may have no such memory.
            let Ok(file) = rustix::fs::memfd_create("m", flags) else { return false };
            own.memory = file.into();
            own.memory.set_len(4 * MIB as u64).expect("sized");
            rustix::fs::fcntl_add_seals(&own.memory, SealFlags::SHRINK).expect("sealed");
            own.share(4 * MIB)
        }),
        ("more memory than its file has", |own| own.share(5 * MIB)),
        ("a ring before memory", |own| {
            own.frontend.set_vring_addr(0, &Machine::places(THERE)).is_ok()
        }),
        ("a ring outside of memory", |own| {
            let outside = Machine::places(THERE + 4 * MIB as u64);
            own.share(4 * MIB) && own.frontend.set_vring_addr(0, &outside).is_ok()
        }),
        ("a ring that there is not", |own| {
            own.frontend.set_vring_num(63, REQUESTS).is_ok()
                && own.frontend.set_vring_num(64, REQUESTS).is_ok()
        }),
        ("a ring of 100", |own| own.frontend.set_vring_num(0, 100).is_ok()),
        ("a ring of 4096", |own| own.frontend.set_vring_num(0, 4096).is_ok()),
        ("features that are none", |own| own.frontend.set_features(1 << 26).is_ok()),
        ("memory for 1000 rings", |own| {
            own.frontend.get_inflight_fd(&VhostUserInflight::new(0, 0, 1000, REQUESTS)).is_ok()
        }),
        ("too little memory for what is under way", |own| {
            let file = memory(1000);
            let told = VhostUserInflight::new(1000, 0, 2, REQUESTS);
            own.frontend.set_inflight_fd(&told, file.as_raw_fd()).is_ok()
        }),
    ];
    for (what, wrong) in all {
        let mut machine = Machine::connect();
        machine.agree();
        assert!(!wrong(&mut machine), "{what}");
        assert!(machine.is_quiet(), "{what}");
        let _ = machine.end();
    }
}
