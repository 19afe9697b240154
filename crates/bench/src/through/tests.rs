//! Both protocols, and what a server may do to a client.

use super::line::Lines;
use super::nbd::Nbd;
use super::*;
use crate::evaluate::options::{Options, Profile, Source};
use crate::evaluate::shelf::Shelf;
use crate::evaluate::yard::Yard;
use crate::generated::Span;
use io::{Pool, Priority};
use std::io::{Read, Write};
use std::net::TcpListener;
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
        assert!(ran.tally.operations() > 0, "{reads} {bytes}");
    }
    // More than a connection has slots for.
    let many = Shape { jobs: 2, ..Shape::one(100, Order::Random, 4096, 9_000, area) };
    assert!(
        hosts.generate(&aim, many, Span::of(Duration::from_millis(200)), 3).unwrap().tally.made
            >= 18_000
    );
}

#[test]
fn volumes_are_loaded_over_nbd() {
    load(Through::Nbd);
}

#[test]
fn volumes_are_loaded_over_nvme_tcp() {
    load(Through::NvmeTcp);
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
        let lines = Rc::new(Lines::new::<Nbd>(env, &[stream]).unwrap());
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
