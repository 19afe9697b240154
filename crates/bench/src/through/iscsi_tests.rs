//! Targets of a few lines: what they are sent, and what becomes of what they say.

use super::super::line::{Lines, Remote};
use super::*;
use crate::rig::Rig;
use io::{Env as _, Pool, Priority};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::mpsc;
use units::CoreId;
use workload::Target;

/// The next number of the target's of these tests.
const STATUS_NUMBER: u32 = 100;

fn session(command: u32, most: u32) -> Arc<Session> {
    let moving = Moving { command, most, status: STATUS_NUMBER, waiting: VecDeque::new() };
    Arc::new(Session { block: 512, immediate: 8192, segment: 4096, moving: Mutex::new(moving) })
}

/// The PDUs in what is sent.
fn sent(mut bytes: &[u8]) -> Vec<Pdu> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        all.push(Pdu::read(&mut bytes).unwrap());
    }
    all
}

#[test]
fn commands_wait_until_the_target_takes_them() {
    let (session, mut out) = (session(u32::MAX, u32::MAX), Vec::new());
    for slot in 0..4 {
        Iscsi::ask(&session, &mut out, slot, (1, 4096), Ask::Read(1024));
    }
    let command = &sent(&out)[..];
    let [command] = command else { panic!("one is taken: {command:?}") };
    assert_eq!((command.get(16), command.get(24), command.get(28)), (0, u32::MAX, STATUS_NUMBER));
    assert_eq!(command.header[..2], [0x01, 0xc1]);
    // Bytes; the unit; READ (16) of two blocks from the eighth on.
    assert_eq!((command.get(20), command.header[9]), (1024, 1));
    assert_eq!(command.header[32..], [0x88, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 2, 0, 0]);
    // An old number takes nothing, and none is taken back.
    let mut answer = Pdu::new(to_initiator::RESPONSE, FINAL, 0);
    answer.put(24, STATUS_NUMBER);
    answer.put(32, u32::MAX - 1);
    assert!(!session.note(&answer, true));
    answer.put(24, STATUS_NUMBER + 1);
    answer.put(32, 1);
    assert!(session.note(&answer, true));
    out.clear();
    session.moving().release(&mut out);
    let numbers = |own: &Pdu| (own.tag(), own.get(24), own.get(28));
    let status = STATUS_NUMBER + 2;
    assert_eq!(
        sent(&out).iter().map(numbers).collect::<Vec<_>>(),
        [(1, 0, status), (2, 1, status)]
    );
    // One that comes later does not overtake.
    out.clear();
    answer.put(32, 2);
    assert!(session.note(&answer, false));
    Iscsi::ask(&session, &mut out, 9, (1, 0), Ask::Read(512));
    assert!(out.is_empty());
    session.moving().release(&mut out);
    assert_eq!(sent(&out).iter().map(numbers).collect::<Vec<_>>(), [(3, 2, status)]);
}

#[test]
fn requests_count_in_blocks_of_the_unit() {
    let (own, mut out) = (session(5, 100), Vec::new());
    let own = Session { block: 4096, ..Arc::into_inner(own).unwrap() };
    Iscsi::ask(&Arc::new(own), &mut out, 0, (1, 16_384), Ask::Read(8192));
    let command = sent(&out).remove(0);
    assert_eq!(command.get(20), 8192);
    assert_eq!(command.header[32..], [0x88, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0]);
}

/// Has a target serve what is asked of a client; what came of it.
fn with<T: Send + 'static>(
    serve: impl FnOnce(&mut TcpStream) + Send + 'static,
    ask: impl AsyncFnOnce(Remote<Iscsi>) -> T + Send + 'static,
) -> T {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut server = listener.accept().unwrap().0;
    let serving = std::thread::spawn(move || serve(&mut server));
    let rig = Rig::start_beside(1).unwrap();
    let (sender, answer) = mpsc::channel();
    rig.on_core(CoreId(0), move |env, _| {
        let connection = Connection { stream, kept: session(5, 100) };
        let lines = Rc::new(Lines::new(env, &[connection]).unwrap());
        env.spawn(Priority::First, async move {
            sender.send(ask(Remote::new(lines, 1, 1 << 20)).await).unwrap();
        });
    });
    let outcome = answer.recv();
    serving.join().unwrap();
    outcome.unwrap()
}

fn say(server: &mut TcpStream, pdu: &Pdu) {
    server.write_all(&pdu.bytes()).unwrap();
}

fn response(command: &Pdu, status: u8) -> Pdu {
    let mut pdu = Pdu::new(to_initiator::RESPONSE, FINAL, command.tag());
    pdu.header[3] = status;
    pdu.put(24, STATUS_NUMBER);
    pdu.put(32, 100);
    pdu
}

#[test]
fn a_target_gets_the_data_that_it_asks_for() {
    let data: Vec<u8> = (0..20_480u32).map(|at| (at % 251) as u8).collect();
    let wanted = data.clone();
    let serve = move |server: &mut TcpStream| {
        let command = Pdu::read(server).unwrap();
        assert_eq!((command.header[0], command.flags()), (to_target::COMMAND, 0xa1));
        assert_eq!((command.header[32], command.get(42)), (WRITE, 40));
        assert_eq!(command.data, wanted[..8192]);
        let mut ready = Pdu::new(to_initiator::READY, FINAL, command.tag());
        ready.put(20, 77);
        ready.put(32, 100);
        ready.put(40, 8192);
        ready.put(44, 12_288);
        say(server, &ready);
        for number in 0..3usize {
            let part = Pdu::read(server).unwrap();
            let flags = if number == 2 { FINAL } else { 0 };
            assert_eq!((part.header[0], part.flags()), (to_target::DATA, flags));
            assert_eq!((part.tag(), part.get(20)), (command.tag(), 77));
            let from = 8192 + number * 4096;
            assert_eq!((part.get(36), part.get(40)), (number as u32, from as u32));
            assert_eq!(part.data, wanted[from..from + 4096]);
        }
        say(server, &response(&command, 0));
    };
    let is_written = with(serve, async move |remote| {
        let mut own = Pool::single(data.len());
        own.copy_from_slice(&data);
        remote.write(0, own.freeze()).await
    });
    assert!(is_written);
}

#[test]
fn data_comes_in_parts_and_a_target_that_asks_is_answered() {
    let serve = |server: &mut TcpStream| {
        let command = Pdu::read(server).unwrap();
        let mut ping = Pdu::new(to_initiator::NOP, FINAL, NO_TAG);
        ping.put(20, 33);
        ping.put(24, STATUS_NUMBER);
        ping.put(32, 100);
        ping.data = vec![1; 7];
        say(server, &ping);
        let pong = Pdu::read(server).unwrap();
        assert_eq!((pong.header[0], pong.tag(), pong.get(20)), (to_target::NOP, NO_TAG, 33));
        // It has the next command's number, and uses up none.
        assert_eq!((pong.get(24), pong.get(28)), (6, STATUS_NUMBER));
        for (from, bytes, flags) in [(0, 1001, 0), (1001, 3095, FINAL | STATUS)] {
            let mut part = Pdu::new(to_initiator::DATA, flags, command.tag());
            part.put(24, STATUS_NUMBER);
            part.put(32, 100);
            part.put(40, from);
            part.data = vec![from as u8 + 1; bytes];
            say(server, &part);
        }
        let next = Pdu::read(server).unwrap();
        assert_eq!((next.get(24), next.get(28)), (6, STATUS_NUMBER + 1));
        say(server, &response(&next, 0));
    };
    let (is_read, into, is_written) = with(serve, async |remote| {
        let (is_read, into) = remote.read(0, Pool::single(4096)).await;
        (is_read, into.to_vec(), remote.write(0, Pool::single(512).freeze()).await)
    });
    assert!(is_read && is_written);
    assert!(into[..1001].iter().all(|byte| *byte == 1));
    assert!(into[1001..].iter().all(|byte| *byte == (1001u32 as u8) + 1));
}

#[test]
fn what_a_target_does_not_carry_out_fails() {
    let serve = |server: &mut TcpStream| {
        // CHECK CONDITION with sense data; a failure of the target; less than was asked for.
        let mut command = Pdu::read(server).unwrap();
        let mut answer = response(&command, 2);
        answer.data = vec![0; 21];
        say(server, &answer);
        command = Pdu::read(server).unwrap();
        answer = response(&command, 0);
        answer.header[2] = 1;
        say(server, &answer);
        command = Pdu::read(server).unwrap();
        answer = response(&command, 0);
        answer.header[1] |= 2;
        say(server, &answer);
        command = Pdu::read(server).unwrap();
        say(server, &response(&command, 0));
        // Then a task that there is not.
        command = Pdu::read(server).unwrap();
        command.put(16, 12);
        say(server, &response(&command, 0));
    };
    let succeeded = with(serve, async |remote| {
        let mut all = Vec::new();
        for _ in 0..6 {
            all.push(remote.write(0, Pool::single(512).freeze()).await);
        }
        all
    });
    // After the last but one it is over.
    assert_eq!(succeeded, [false, false, false, true, false, false]);
}
