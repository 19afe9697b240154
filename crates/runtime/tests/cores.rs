//! Tasks, priorities, mail, wakes from other threads, timers and sockets, on both back ends.

use io::local::yield_now;
use io::{Env as _, Priority};
use palisade_runtime::{
    Config, CoreEnv, Line, Listener, NoDrive, Runtime, Socket, run_single_with,
};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::time::{Duration, Instant};
use units::{CoreId, Nanos};

type Env = CoreEnv<u64, NoDrive>;

fn configs() -> [Config; 3] {
    let plain = Config::default();
    let sleepy = Config { spin: Duration::ZERO, ..Config::default() };
    let blocking = Config { blocking: true, ..Config::default() };
    [plain, sleepy, blocking]
}

#[test]
fn last_tasks_run_when_no_first_task_is_ready() {
    let order = run_single_with(Config::default(), async |env: Env| {
        let order = Rc::new(RefCell::new(Vec::new()));
        for (name, priority) in [("last", Priority::Last), ("first", Priority::First)] {
            let order = order.clone();
            env.spawn(priority, async move {
                for _ in 0..3 {
                    order.borrow_mut().push(name);
                    yield_now().await;
                }
            });
        }
        env.sleep(Nanos::from_millis(1)).await;
        order.take()
    });
    assert_eq!(order, ["first", "first", "first", "last", "last", "last"]);
}

#[test]
fn timers_fire_in_order_and_not_early() {
    for config in configs() {
        run_single_with(config, async |env: Env| {
            let (start, clock) = (env.now(), Instant::now());
            let (order, mut spans) = (Rc::new(RefCell::new(Vec::new())), vec![9, 3, 6, 1]);
            for span in spans.clone() {
                let (env, order) = (env.clone(), order.clone());
                env.clone().spawn(Priority::First, async move {
                    env.sleep(Nanos::from_millis(span)).await;
                    assert!(env.now().since(start) >= Nanos::from_millis(span));
                    order.borrow_mut().push(span);
                });
            }
            // A timer that is dropped does not keep the core awake or wake anybody.
            drop(env.sleep(Nanos::from_millis(2)));
            env.sleep(Nanos::from_millis(12)).await;
            assert!(clock.elapsed() >= Duration::from_millis(12));
            spans.sort_unstable();
            assert_eq!(*order.borrow(), spans);
        });
    }
}

#[test]
fn mail_goes_round_between_cores_and_none_is_lost() {
    const ROUNDS: u64 = 20_000;
    for config in configs() {
        let (done, finished) = mpsc::channel();
        let main = move |env: Env| {
            let done = done.clone();
            let here = env.core();
            env.clone().spawn(Priority::First, async move {
                let other = CoreId(1 - here.0);
                let mut sum = 0;
                for _ in 0..ROUNDS {
                    let mail = env.receive().await;
                    sum += mail;
                    if mail < ROUNDS {
                        env.post(other, mail + 1);
                    }
                }
                done.send(sum).unwrap();
            });
        };
        let config = Config { cores: 2, ..config };
        let runtime = Runtime::start_with(config, main).unwrap();
        let handle = runtime.handle();
        assert_eq!(handle.cores(), 2);
        // Two letters to one core, then each goes to and fro.
        handle.post(CoreId(0), 1);
        handle.post(CoreId(1), 1);
        let limit = Duration::from_secs(60);
        let sums = [(); 2].map(|()| finished.recv_timeout(limit).unwrap());
        assert_eq!(sums.iter().sum::<u64>(), ROUNDS * (ROUNDS + 1));
        for core in [0, 1].map(CoreId) {
            let counts = handle.counts(core).unwrap();
            assert_eq!(counts.mails, ROUNDS);
            assert!(counts.turns > 0);
        }
        runtime.stop();
    }
}

#[test]
fn a_waker_works_from_another_thread() {
    for config in configs() {
        run_single_with(config, async |_: Env| {
            for round in 0..200u64 {
                let flag = Arc::new(AtomicBool::new(false));
                let mut thread = None;
                poll_fn(|cx| {
                    if flag.load(Ordering::Acquire) {
                        return Poll::Ready(());
                    }
                    if thread.is_none() {
                        let (flag, waker) = (flag.clone(), cx.waker().clone());
                        thread = Some(std::thread::spawn(move || {
                            for _ in 0..round * 500 {
                                core::hint::spin_loop();
                            }
                            flag.store(true, Ordering::Release);
                            waker.wake();
                        }));
                    }
                    Poll::Pending
                })
                .await;
                thread.unwrap().join().unwrap();
            }
        });
    }
}

#[test]
fn functions_run_on_the_core_they_are_sent_to() {
    let runtime = Runtime::<u64, NoDrive>::start(2, true, |_| {});
    let (answer, answers) = mpsc::channel();
    for core in [1, 0, 1] {
        let answer = answer.clone();
        let call = Box::new(move |env: &Env| answer.send(env.core()).unwrap());
        runtime.handle().run_on(CoreId(core), call);
        assert_eq!(answers.recv_timeout(Duration::from_secs(10)).unwrap(), CoreId(core));
    }
    runtime.stop();
}

/// Also while it sleeps, and with nobody to wake it.
#[test]
fn a_core_with_nothing_to_do_is_asleep_or_looks_around() {
    for config in configs() {
        let runtime = Runtime::<u64, NoDrive>::start_with(config, |_| {}).unwrap();
        let counts = || runtime.handle().counts(CoreId(0)).unwrap();
        assert_eq!(runtime.handle().counts(CoreId(1)), None);
        let mut last = counts();
        for _ in 0..3 {
            let mut next = counts();
            while next.asleep <= last.asleep {
                std::thread::yield_now();
                next = counts();
            }
            assert!(next.time > last.time && next.looking >= last.looking, "{last:?} {next:?}");
            assert!(next.looking.0 + next.asleep.0 <= next.time.0, "{next:?}");
            last = next;
        }
        runtime.stop();
    }
}

#[test]
fn stopping_drops_tasks_that_wait_for_ever() {
    let alive = Arc::new(());
    let held = alive.clone();
    let runtime = Runtime::<u64, NoDrive>::start(2, false, move |env| {
        let held = held.clone();
        env.clone().spawn(Priority::Last, async move {
            env.sleep(Nanos(u64::MAX)).await;
            drop(held);
        });
    });
    runtime.stop();
    assert_eq!(Arc::strong_count(&alive), 1);
}

/// Sends back what it gets, in a task of its own for each direction.
fn echo(env: &Env, socket: Socket) {
    let queue = Rc::new(RefCell::new(Vec::new()));
    let event = Rc::new(io::local::Event::default());
    let (reader, to, more) = (socket.clone(), queue.clone(), event.clone());
    env.spawn(Priority::First, async move {
        let mut buffer = vec![0; 65536];
        loop {
            let count = reader.read(&mut buffer).await.unwrap();
            to.borrow_mut().push(buffer[..count].to_vec());
            more.notify();
            if count == 0 {
                return;
            }
        }
    });
    env.spawn(Priority::First, async move {
        loop {
            let batch: Vec<Vec<u8>> =
                event.wait_until(|| Some(queue.take()).filter(|batch| !batch.is_empty())).await;
            let slices: Vec<_> = batch.iter().map(|part| IoSlice::new(part)).collect();
            socket.write_vectored_all(&slices).await.unwrap();
            if batch.last().unwrap().is_empty() {
                return socket.shutdown().unwrap();
            }
        }
    });
}

/// Sends 8 MiB from one thread and reads it back in another.
fn check_echo(stream: TcpStream) {
    let data: Vec<u8> = (0..8 << 20).map(|n: u32| (n.wrapping_mul(n) >> 7) as u8).collect();
    let (mut sending, sent) = (stream.try_clone().unwrap(), data.clone());
    let sender = std::thread::spawn(move || {
        sending.write_all(&sent).unwrap();
        sending.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let (mut got, mut stream) = (Vec::new(), stream);
    stream.read_to_end(&mut got).unwrap();
    sender.join().unwrap();
    assert!(got == data);
}

#[test]
fn sockets_echo_in_both_directions_at_once() {
    for config in configs() {
        run_single_with(config, async |env: Env| {
            let std_listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = std_listener.local_addr().unwrap();
            let listener = Listener::from_tcp(env.reactor(), std_listener).unwrap();
            let clients: Vec<_> = (0..3)
                .map(|_| {
                    std::thread::spawn(move || check_echo(TcpStream::connect(address).unwrap()))
                })
                .collect();
            for _ in 0..3 {
                echo(&env, listener.accept().await.unwrap());
            }
            while !clients.iter().all(|client| client.is_finished()) {
                env.sleep(Nanos::from_millis(1)).await;
            }
            clients.into_iter().for_each(|client| client.join().unwrap());
        });
    }
}

/// Whether the kernel has a keep-alive timer for the connection between these ports: the timer's
/// kind is the first part of the sixth field.
fn is_asked(own: u16, other: u16) -> bool {
    let all = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let ends = |port: u16| format!(":{port:04X}");
    let mut lines = all.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.any(|f| {
        f[1].ends_with(&ends(own)) && f[2].ends_with(&ends(other)) && f[5].starts_with("02:")
    })
}

#[test]
fn a_connection_is_looked_at_from_any_thread() {
    run_single_with(Config::default(), async |env: Env| {
        let (mut peer, own) = UnixStream::pair().expect("a pair");
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("told");
        let mut host = TcpStream::connect(address).expect("connected");
        let (accepted, _) = listener.accept().expect("accepted");
        let sockets = [
            Socket::from_unix(env.reactor(), own).expect("taken over"),
            Socket::from_tcp(env.reactor(), accepted).expect("taken over"),
        ];
        let lines = sockets.each_ref().map(Socket::line);
        let look = |line: &Line| {
            let line = line.clone();
            std::thread::spawn(move || line.is_over()).join().expect("looked")
        };
        peer.write_all(b"unread").expect("sent");
        host.write_all(b"unread").expect("sent");
        assert!(!lines.iter().any(look));
        drop((peer, host));
        assert!(look(&lines[0]), "whatever is unread");
        let end = Instant::now() + Duration::from_secs(60);
        while !look(&lines[1]) {
            assert!(Instant::now() < end, "TCP tells of it, too");
        }
        lines[1].shutdown().expect("open");
    });
}

/// Beside one who reads and one who writes, and whatever was not received.
#[test]
fn the_end_of_a_connection_is_waited_for() {
    for config in configs() {
        run_single_with(config, async |env: Env| {
            for here in [false, true] {
                let (mut peer, own) = UnixStream::pair().expect("a pair");
                let socket = Socket::from_unix(env.reactor(), own).expect("taken over");
                let writer = socket.clone();
                let is_stopped = Rc::new(Cell::new(false));
                let stopped = is_stopped.clone();
                env.spawn(Priority::First, async move {
                    while writer.write_all(&[0; 1 << 16]).await.is_ok() {}
                    stopped.set(true);
                });
                peer.write_all(b"unread").expect("sent");
                let mut over = std::pin::pin!(socket.over());
                for _ in 0..3 {
                    env.sleep(Nanos::from_millis(1)).await;
                    poll_fn(|cx| {
                        assert!(over.as_mut().poll(cx).is_pending(), "both are there");
                        Poll::Ready(())
                    })
                    .await;
                }
                match here {
                    true => socket.shutdown().expect("open"),
                    false => drop(peer),
                }
                over.await;
                while !is_stopped.get() {
                    env.sleep(Nanos::from_millis(1)).await;
                }
            }
        });
    }
}

#[test]
fn a_peer_that_may_have_vanished_is_asked() {
    run_single_with(Config::default(), async |env: Env| {
        let std_listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = std_listener.local_addr().unwrap();
        let listener = Listener::from_tcp(env.reactor(), std_listener).unwrap();
        let client = TcpStream::connect(address).unwrap();
        let _socket = listener.accept().await.unwrap();
        assert!(is_asked(address.port(), client.local_addr().unwrap().port()));
    });
}

#[test]
fn a_dropped_read_leaves_the_socket_usable() {
    for config in configs() {
        run_single_with(config, async |env: Env| {
            let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().unwrap();
            let socket = Socket::from_unix(env.reactor(), ours).unwrap();
            let mut byte = [0];
            for n in 0..50 {
                {
                    let mut reading = std::pin::pin!(socket.read(&mut byte));
                    poll_fn(|cx| {
                        assert!(reading.as_mut().poll(cx).is_pending());
                        Poll::Ready(())
                    })
                    .await;
                }
                theirs.write_all(&[n]).unwrap();
                socket.read_exact(&mut byte).await.unwrap();
                assert_eq!(byte, [n]);
            }
            drop(socket);
            // The close reaches the peer although polls of the socket were cancelled.
            theirs.set_nonblocking(true).unwrap();
            loop {
                match theirs.read(&mut byte) {
                    Ok(n) => break assert_eq!(n, 0),
                    Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
                }
                env.sleep(Nanos::from_millis(1)).await;
            }
        });
    }
}
