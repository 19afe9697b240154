//! Every way to a volume, and what a server may do to a client.

use super::line::Lines;
use super::nbd::Nbd;
use super::*;
use crate::evaluate::options::{Options, Profile, Source};
use crate::evaluate::shelf::Shelf;
use crate::evaluate::yard::Yard;
use crate::generated::Span;
use io::{BlockError, Blocks, Buf, BufMut, Pool, Priority};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;
use units::{CoreId, MIB};
use workload::{Order, Shape, Target};

fn options(through: Through) -> Options {
    Options {
        profile: Profile::Quick,
        through: Some(through),
        cores: 2,
        volumes: 3,
        ..Options::new(Source::Memory { bytes: 40 * MIB, count: 3 })
    }
}

#[test]
fn ways_are_called_as_they_are_asked_for() {
    for own in Through::ALL {
        assert_eq!(own.to_string().parse(), Ok(own));
    }
    assert!("scsi".parse::<Through>().is_err_and(|why| why.contains("iscsi")));
}

/// Fills what is served and has it asked for, in small and in large requests.
fn load(through: Through) {
    let options = options(through);
    let shelf = Shelf::open(&options, 2, |_| Ok(0.0)).unwrap();
    let yard = Yard::make(&options, &shelf).unwrap();
    let area = yard.bytes() / (4 * MIB) * (4 * MIB) - 12 * MIB;
    let (hosts, aim) = (yard.hosts(), yard.aim(1 << 20));
    assert!(matches!(aim, Aim::Remote(_)));
    hosts.fill(&aim, area).unwrap();
    let counts = || shelf.drives.iter().map(|own| own.io_counts().reads).sum::<u64>();
    let span = Span::of(Duration::from_millis(40));
    let before = counts();
    let reads = Shape { jobs: 4, ..Shape::one(100, Order::Random, 4096, 16, area) };
    let ran = hosts.generate(&aim, reads, span, 1).unwrap();
    let asked = counts() - before;
    assert!(ran.tally.operations() > 0);
    assert_eq!(asked, ran.tally.made, "each read of a host's is one of a drive's");
    let mixes = [(50, Order::Random, 8 << 10, 40), (50, Order::Random, 1 << 20, 4)];
    for (reads, order, bytes, depth) in
        mixes.into_iter().chain([(0, Order::Sequential, 1 << 20, 8)])
    {
        let shape = Shape { jobs: 2, ..Shape::one(reads, order, bytes, depth, area) };
        let ran = hosts.generate(&aim, shape, span, 2).unwrap();
        assert!(ran.tally.made > 0, "{reads} {bytes}");
    }
    // More than a connection has slots for. What the kernel has under way of a file is its own
    // business: it may take longer than this lasts until it has so much.
    let many = Shape { jobs: 2, ..Shape::one(100, Order::Random, 4096, 9_000, area) };
    let ran = hosts.generate(&aim, many, Span::of(Duration::from_millis(200)), 3).unwrap();
    let least = if matches!(through, Through::Fuse | Through::Ublk) { 1 } else { 18_000 };
    assert!(ran.tally.made >= least, "{}", ran.tally.made);
}

#[test]
fn volumes_are_loaded_over_nbd() {
    load(Through::Nbd);
}

#[test]
fn volumes_are_loaded_over_nvme_tcp() {
    load(Through::NvmeTcp);
}

/// Whether a test is skipped, as this machine lacks something, said once. Where tools are required
/// that is an error.
pub(crate) fn lacks(what: Result<(), BenchError>) -> bool {
    let Err(what) = what else { return false };
    let says = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    let required = says("PALISADE_REQUIRE_TOOLS", "1") || says("CI", "true");
    assert!(!required, "{what}; script/test installs what is needed");
    println!("skipped: {what}");
    true
}

fn has_tgt() -> Result<(), BenchError> {
    files::check(Through::Iscsi)?;
    let there = ["/usr/sbin/tgtd", "/sbin/tgtd", "/usr/bin/tgtd"].map(Path::new);
    match there.into_iter().any(Path::exists) {
        true => Ok(()),
        false => Err(BenchError::Process("there is no tgtd; install tgt".to_owned())),
    }
}

/// How many files are mounted by whoever measures.
fn mounted() -> usize {
    let all = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    all.lines().filter(|line| line.contains(" fuse.palisade palisade:bench@")).count()
}

#[test]
fn volumes_are_loaded_as_files() {
    if !lacks(files::check(Through::Fuse)) {
        load(Through::Fuse);
    }
}

#[test]
fn volumes_are_loaded_over_iscsi() {
    if !lacks(has_tgt()) {
        load(Through::Iscsi);
    }
}

#[test]
fn volumes_are_loaded_as_devices_where_the_kernel_has_such() {
    match devices::driver() {
        Ok(_) => load(Through::Ublk),
        Err(error) => {
            let said = error.to_string();
            assert_eq!(said, "this kernel has no ublk; load ublk_drv (Linux 6.12)");
            assert_eq!(error.status(), 1);
            // Nothing is left of an array that could not be served, and the next one can be.
            let options = options(Through::Ublk);
            let shelf = Shelf::open(&options, 2, |_| Ok(0.0)).unwrap();
            assert!(Yard::make(&options, &shelf).is_err_and(|own| own.to_string() == said));
            let options = Options { through: None, ..options };
            assert!(Yard::make(&options, &shelf).is_ok());
        }
    }
}

/// A volume of zeros, whose second half fails.
#[derive(Clone)]
struct Half;

const HALF: u64 = 512 << 10;

impl Half {
    fn at(offset: u64) -> Result<(), BlockError> {
        if offset < HALF { Ok(()) } else { Err(BlockError::Unavailable) }
    }
}

impl Blocks for Half {
    fn bytes(&self) -> u64 {
        2 * HALF
    }
    fn block_bytes(&self) -> u32 {
        512
    }
    fn strip_bytes(&self) -> u32 {
        64 << 10
    }
    fn stripe_bytes(&self) -> u32 {
        64 << 10
    }
    fn volatile_cache(&self) -> bool {
        false
    }
    async fn read(&self, offset: u64, mut into: BufMut) -> (Result<(), BlockError>, BufMut) {
        into.fill(0);
        (Self::at(offset), into)
    }
    async fn write(&self, offset: u64, _: Buf, _: bool) -> Result<(), BlockError> {
        Self::at(offset)
    }
    async fn compare_and_write(&self, at: u64, _: (Buf, Buf), _: bool) -> Result<bool, BlockError> {
        Self::at(at).map(|()| true)
    }
    async fn write_zeroes(&self, offset: u64, _: u64, _: bool) -> Result<(), BlockError> {
        Self::at(offset)
    }
    async fn discard(&self, offset: u64, _: u64) -> Result<(), BlockError> {
        Self::at(offset)
    }
    async fn flush(&self) -> Result<(), BlockError> {
        Ok(())
    }
}

/// Asks [`Half`] in both its halves, in turns: what fails is said to, and nothing else fails.
fn ask_halves(ways: Ways) {
    struct Halves(mpsc::Sender<Vec<bool>>);
    impl Visit for Halves {
        fn at(self, env: &Env, target: impl Target) {
            env.spawn(Priority::First, async move {
                let mut all = Vec::new();
                for at in [0, HALF, HALF - 4096, HALF + 4096] {
                    all.push(target.read(at, Pool::single(4096)).await.0);
                    all.push(target.write(at, Pool::single(4096).freeze()).await);
                }
                self.0.send(all).unwrap();
            });
        }
    }
    let rig = Rig::start_beside(1).unwrap();
    let (sender, answer) = mpsc::channel();
    rig.on_core(CoreId(0), move |env, _| ways.visit(env, Halves(sender)));
    let [yes, no] = [[true; 2], [false; 2]];
    assert_eq!(answer.recv().unwrap(), [yes, no, yes, no].concat());
}

#[test]
fn what_fails_of_a_file_is_told() {
    if lacks(files::check(Through::Fuse)) {
        return;
    }
    let rig = Rig::start(2, None).unwrap();
    let files = files::mount(&rig, 1, |_, _| Half).unwrap();
    let drives = files.open().unwrap();
    assert!(mounted() > 0);
    let path = files.paths[0].clone();
    drop(files);
    assert!(!path.exists(), "what is open needs no mount");
    ask_halves(Ways::opened(drives, 2 * HALF));
}

#[test]
fn what_fails_of_a_ring_is_told() {
    let rig = Rig::start(1, None).unwrap();
    let machines = rings::serve(&rig, |_| Half).unwrap();
    let ways = Ways::rings(machines, 2 * HALF);
    // Who comes next goes on where the one before ended.
    for _ in 0..3 {
        ask_halves(ways.clone());
    }
}

#[test]
fn what_fails_of_a_target_is_told() {
    if lacks(has_tgt()) {
        return;
    }
    let rig = Rig::start(2, None).unwrap();
    let files = files::mount(&rig, 1, |_, _| Half).unwrap();
    let targets = targets::Targets::serve(&[Uuid([7; 16])], 512, &files).unwrap();
    drop(files);
    let all = by_iscsi(&rig, &targets).unwrap();
    ask_halves(Ways { by: By::Iscsi(all.into()), bytes: [2 * HALF].into() });
    let portal = targets.portal;
    drop(targets);
    assert!(std::net::TcpStream::connect(portal).is_err(), "nobody listens any more");
}

/// A server that answers the first request and then does something else.
fn after_one(then: fn(std::net::TcpStream)) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut server = listener.accept().unwrap().0;
    std::thread::spawn(move || {
        let mut request = [0; ::nbd::wire::REQUEST_BYTES];
        server.read_exact(&mut request).unwrap();
        let mut reply = ::nbd::wire::SIMPLE_REPLY_MAGIC.to_be_bytes().to_vec();
        reply.extend([0; 4]);
        reply.extend(&request[8..16]);
        reply.extend([7; 4096]);
        server.write_all(&reply).unwrap();
        then(server);
    });
    stream
}

/// Reads twice of a server: whether each succeeded, and that the first has its bytes.
fn two_reads(stream: TcpStream) -> [bool; 2] {
    let rig = Rig::start_beside(1).unwrap();
    let (sender, answer) = mpsc::channel();
    rig.on_core(CoreId(0), move |env, _| {
        let lines = Rc::new(Lines::<Nbd>::new(env, &[stream.into()]).unwrap());
        let remote = Remote::<Nbd>::new(lines, 1, 1 << 20);
        env.spawn(Priority::First, async move {
            let (first, into) = remote.read(0, Pool::single(4096)).await;
            assert_eq!(into[..], [7; 4096]);
            let (second, _) = remote.read(0, Pool::single(4096)).await;
            // All of it fails at once, and more is not asked.
            assert!(second || !remote.write(0, Pool::single(4096).freeze()).await);
            sender.send([first, second]).unwrap();
        });
    });
    answer.recv().unwrap()
}

#[test]
fn what_a_server_leaves_unanswered_fails() {
    let ends: [fn(std::net::TcpStream); 4] = [
        |server| drop(server),
        |mut server| server.write_all(&[0; 16]).unwrap(),
        // A reply to nobody's request.
        |mut server| {
            let mut reply = ::nbd::wire::SIMPLE_REPLY_MAGIC.to_be_bytes().to_vec();
            reply.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0]);
            server.write_all(&reply).unwrap();
            // Only the client ends it.
            let _ = server.read_to_end(&mut Vec::new());
        },
        // It refuses.
        |mut server| {
            let mut request = [0; ::nbd::wire::REQUEST_BYTES];
            server.read_exact(&mut request).unwrap();
            let mut reply = ::nbd::wire::SIMPLE_REPLY_MAGIC.to_be_bytes().to_vec();
            reply.extend([0, 0, 0, 5]);
            reply.extend(&request[8..16]);
            server.write_all(&reply).unwrap();
        },
    ];
    for end in ends {
        assert_eq!(two_reads(after_one(end)), [true, false]);
    }
}
