//! Frames over a pair of sockets.

use super::*;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::net::UnixStream;

fn received<T: DeserializeOwned>(receiver: &mut Receiver, from: &UnixStream) -> (T, Vec<OwnedFd>) {
    loop {
        if let Some(frame) = receiver.receive(from.as_fd()).expect("received") {
            return frame;
        }
    }
}

#[test]
fn what_is_said_comes_with_its_descriptors() {
    let (one, other) = UnixStream::pair().expect("a pair");
    let look = FileLook { uid: 1, gid: 2, mode: 0o640, seconds: 3 };
    let attach = |number: u64| Word::Attach { id: format!("{number}"), look };
    let file = |number: u64| {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&number.to_le_bytes()).expect("written");
        file.rewind().expect("rewound");
        OwnedFd::from(file)
    };
    for number in 0..3 {
        let own: Vec<_> = (0..number).map(|at| file(number * 10 + at)).collect();
        let mut frame = Frame::new(&attach(number)).expect("a frame");
        while !frame.send(one.as_fd(), &own).expect("sent") {}
    }
    let mut receiver = Receiver::default();
    for number in 0..3 {
        let (word, own) = received::<Word>(&mut receiver, &other);
        assert_eq!((word, own.len() as u64), (attach(number), number));
        for (at, fd) in own.into_iter().enumerate() {
            let mut bytes = [0; 8];
            File::from(fd).read_exact(&mut bytes).expect("read");
            assert_eq!(u64::from_le_bytes(bytes), number * 10 + at as u64);
        }
    }
    drop(one);
    let end = receiver.receive::<Word>(other.as_fd()).expect_err("the other has gone");
    assert_eq!(end.kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn a_long_frame_comes_in_parts_and_one_that_is_too_long_not_at_all() {
    let (one, other) = UnixStream::pair().expect("a pair");
    let said = Order::Refused("x".repeat(FRAME_MAX - 100));
    let sent = said.clone();
    let sender = std::thread::spawn(move || {
        let mut frame = Frame::new(&sent).expect("a frame");
        while !frame.send(one.as_fd(), &[]).expect("sent") {}
        one
    });
    assert!(received::<Order>(&mut Receiver::default(), &other).0 == said);
    let mut one = sender.join().expect("sent");
    let long = Order::Refused("x".repeat(FRAME_MAX));
    assert!(Frame::new(&long).is_err());
    one.write_all(&(FRAME_MAX as u32 + 1).to_le_bytes()).expect("written");
    let mut receiver = Receiver::default();
    assert!(receiver.receive::<Order>(other.as_fd()).expect("its count").is_none());
    let wrong = receiver.receive::<Order>(other.as_fd()).expect_err("too long");
    assert_eq!(wrong.kind(), ErrorKind::InvalidData);
}
