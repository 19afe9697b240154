//! Connections that fall silent as a cable does that is pulled out: nothing is read, written or
//! closed any more, and the host learns of it by its own clock only.
//!
//! States of a gate: open ⇄ silent; closed by either side, or reset. While it is silent the target
//! may give the connection up, since it hears nothing. The socket is kept then, and closed when the
//! silence ends.
//!
//! Invariants
//! - What comes in silence is not told to the target before that is over, and never once the target
//!   has given the connection up.
//! - What was being sent as silence began may go out to its end.

use crate::switches::Switches;
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Poll, Waker};
use io::local::Event;
use io::{Closed, Transport};
use runtime::{Socket, Stream};
use std::io::IoSlice;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use units::Nanos;

/// The gates of a core.
pub(crate) struct Gates {
    switches: Arc<Switches>,
    /// Names of subsystems, by drive.
    names: Rc<[String]>,
    all: RefCell<Vec<Weak<State>>>,
    /// Sockets of connections that ended in silence.
    kept: RefCell<Vec<Kept>>,
}

struct Kept {
    #[expect(dead_code, reason = "it is there to be dropped")]
    socket: Socket,
    port: usize,
    drive: Option<usize>,
}

impl Gates {
    pub fn new(switches: Arc<Switches>, names: Rc<[String]>) -> Rc<Self> {
        Rc::new(Self { switches, names, all: RefCell::default(), kept: RefCell::default() })
    }

    /// A connection that came to a port.
    pub fn enter(self: &Rc<Self>, socket: Socket, port: usize) -> Gate {
        let state = Rc::new(State {
            port,
            drive: Cell::new(None),
            is_closed: Cell::new(false),
            changed: Event::default(),
            busy: Default::default(),
            socket: socket.clone(),
        });
        let mut all = self.all.borrow_mut();
        all.retain(|own| own.strong_count() > 0);
        all.push(Rc::downgrade(&state));
        let stream = Stream::new(socket, nvme_target::limits::AHEAD);
        Gate { gates: self.clone(), state, stream }
    }

    fn is_silent(&self, state: &State) -> bool {
        self.switches.is_silent(state.port, state.drive.get())
    }

    /// The switches were changed.
    pub fn look_again(&self) {
        // What is not kept any more is closed.
        self.kept.borrow_mut().retain(|own| self.switches.is_silent(own.port, own.drive));
        let all: Vec<_> = self.all.borrow().iter().filter_map(Weak::upgrade).collect();
        all.iter().for_each(|state| state.changed.notify());
    }

    /// Ends connections at once, whether or not they are silent.
    pub fn reset(&self, is_meant: impl Fn(usize, Option<usize>) -> bool) {
        self.kept.borrow_mut().retain(|own| !is_meant(own.port, own.drive));
        let all: Vec<_> = self.all.borrow().iter().filter_map(Weak::upgrade).collect();
        for state in all.iter().filter(|state| is_meant(state.port, state.drive.get())) {
            state.reset();
        }
    }
}

/// A connection has one who reads and one who writes.
#[derive(Clone, Copy)]
enum Side {
    Read,
    Write,
}

struct State {
    port: usize,
    /// Whose subsystem was asked for, once one was.
    drive: Cell<Option<usize>>,
    /// The target has given it up.
    is_closed: Cell<bool>,
    changed: Event,
    /// Who reads, and who writes.
    busy: [Cell<Option<Waker>>; 2],
    socket: Socket,
}

impl State {
    /// Nothing is read or written any more.
    fn give_up(&self) {
        self.is_closed.set(true);
        self.changed.notify();
        self.busy.iter().filter_map(Cell::take).for_each(Waker::wake);
    }

    fn reset(&self) {
        // Not sent any more: the host hears of a reset, not of an end. A connection that is gone
        // already is as closed as it can be.
        let _ = self.socket.sends_nothing_late(Nanos::from_millis(1));
        let _ = self.socket.shutdown();
        self.give_up();
    }
}

/// A connection that can fall silent.
pub(crate) struct Gate {
    gates: Rc<Gates>,
    state: Rc<State>,
    stream: Stream,
}

impl Gate {
    /// Waits until the gate is open.
    async fn open(&self) -> Result<(), Closed> {
        let state = &self.state;
        let is_open = || match state.is_closed.get() {
            true => Some(Err(Closed)),
            false => (!self.gates.is_silent(state)).then_some(Ok(())),
        };
        state.changed.wait_until(is_open).await
    }

    /// What comes of it, unless the connection is given up before.
    async fn unless_closed(
        &self,
        side: Side,
        what: impl Future<Output = Result<(), Closed>>,
    ) -> Result<(), Closed> {
        let mut what = pin!(what);
        poll_fn(|cx| {
            let polled = what.as_mut().poll(cx);
            if polled.is_pending() && self.state.is_closed.get() {
                return Poll::Ready(Err(Closed));
            }
            // Not with all who wait for the gate, where each that is begun would leave a waker
            // behind.
            self.state.busy[side as usize].set(Some(cx.waker().clone()));
            polled
        })
        .await
    }
}

impl Transport for Gate {
    async fn read_exact(&self, into: &mut [u8]) -> Result<(), Closed> {
        self.open().await?;
        self.unless_closed(Side::Read, self.stream.read_exact(into)).await?;
        self.open().await
    }

    async fn write_all(&self, parts: &mut [IoSlice<'_>]) -> Result<(), Closed> {
        self.open().await?;
        self.unless_closed(Side::Write, self.stream.write_all(parts)).await
    }

    fn finish(&self) {
        if !self.gates.is_silent(&self.state) {
            self.stream.finish();
        }
    }

    fn is_for(&self, name: &str) {
        self.state.drive.set(self.gates.names.iter().position(|own| own == name));
    }

    fn close(&self) {
        if !self.gates.is_silent(&self.state) {
            self.stream.close();
        }
        self.state.give_up();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if self.gates.is_silent(&self.state) {
            let State { port, drive, socket, .. } = &*self.state;
            let kept = Kept { socket: socket.clone(), port: *port, drive: drive.get() };
            self.gates.kept.borrow_mut().push(kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Env;
    use core::task::Context;
    use io::local::{First, first_of, yield_now};
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::os::unix::net::UnixStream;
    use std::task::Wake;

    struct Rig {
        switches: Arc<Switches>,
        gates: Rc<Gates>,
        gate: Gate,
        /// The host's end; it does not wait.
        host: UnixStream,
    }

    impl Rig {
        /// A connection to drive `a`, at port 1.
        fn new(env: &Env) -> Self {
            let switches = Arc::new(Switches::new(2, 1));
            let gates = Gates::new(switches.clone(), ["a".to_owned()].into());
            let (host, ours) = UnixStream::pair().expect("a pair");
            host.set_nonblocking(true).expect("set");
            let socket = Socket::from_unix(env.reactor(), ours).expect("taken over");
            let gate = gates.enter(socket, 1);
            gate.is_for("a");
            Self { switches, gates, gate, host }
        }

        fn silence(&self, is_silent: bool) {
            self.switches.silence_port(1, is_silent);
            self.gates.look_again();
        }

        /// What the host reads; `None` if there is nothing.
        fn heard(&mut self) -> Option<Vec<u8>> {
            let mut bytes = [0; 16];
            match self.host.read(&mut bytes) {
                Ok(count) => Some(bytes[..count].to_vec()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => None,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => Some(Vec::new()),
                Err(error) => panic!("{error}"),
            }
        }
    }

    async fn read(gate: &Gate) -> Result<[u8; 1], Closed> {
        let mut into = [0];
        gate.read_exact(&mut into).await.map(|()| into)
    }

    /// Whether it is still going on after many turns of the core.
    async fn waits<T>(what: impl Future<Output = T>) -> bool {
        let turns = async {
            for _ in 0..100 {
                yield_now().await;
            }
        };
        matches!(first_of(what, turns).await, First::Other(()))
    }

    #[test]
    fn in_silence_nothing_is_read_or_written_and_then_it_goes_on() {
        runtime::run_single(async |env: Env| {
            let mut rig = Rig::new(&env);
            rig.host.write_all(b"1").expect("sent");
            assert_eq!(read(&rig.gate).await, Ok(*b"1"));
            rig.silence(true);
            rig.host.write_all(b"2").expect("sent");
            assert!(waits(read(&rig.gate)).await);
            assert!(waits(rig.gate.write_all(&mut [IoSlice::new(b"x")])).await);
            assert_eq!(rig.heard(), None);
            rig.silence(false);
            assert_eq!(read(&rig.gate).await, Ok(*b"2"));
            rig.gate.write_all(&mut [IoSlice::new(b"y")]).await.expect("sent");
            assert_eq!(rig.heard().as_deref(), Some(&b"y"[..]));
            // By the drive's switch as well.
            rig.switches.silence_drive(0, true);
            rig.host.write_all(b"3").expect("sent");
            assert!(waits(read(&rig.gate)).await);
        });
    }

    struct Counted;

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {}
    }

    /// A connection may live for years, and reads all the time.
    #[test]
    fn reads_leave_nothing_behind() {
        runtime::run_single(async |env: Env| {
            let rig = Rig::new(&env);
            let counted = Arc::new(Counted);
            let waker = Waker::from(counted.clone());
            let held_after = |reads: usize| {
                for _ in 0..reads {
                    let once = async {
                        yield_now().await;
                        Ok(())
                    };
                    let mut reading = pin!(rig.gate.unless_closed(Side::Read, once));
                    let mut cx = Context::from_waker(&waker);
                    assert!(reading.as_mut().poll(&mut cx).is_pending());
                    assert!(reading.as_mut().poll(&mut cx).is_ready());
                }
                Arc::strong_count(&counted)
            };
            assert_eq!(held_after(1), held_after(100));
        });
    }

    /// What was sent in silence to a target that has given the host up is never told to it; and the
    /// host learns of that behind the silence only.
    #[test]
    fn what_was_given_up_in_silence_stays_so_and_is_closed_behind_it() {
        runtime::run_single(async |env: Env| {
            let mut rig = Rig::new(&env);
            rig.silence(true);
            rig.host.write_all(b"1").expect("sent");
            let given_up = async {
                yield_now().await;
                rig.gate.close();
                core::future::pending::<()>().await;
            };
            assert_eq!(first_of(read(&rig.gate), given_up).await, First::One(Err(Closed)));
            rig.gate.finish();
            assert_eq!(rig.heard(), None);
            let Rig { switches, gates, gate, mut host } = rig;
            drop(gate);
            let mut bytes = [0; 4];
            let error = host.read(&mut bytes).expect_err("it is open");
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            switches.silence_port(1, false);
            gates.look_again();
            assert!(matches!(host.read(&mut bytes), Ok(0) | Err(_)));
            assert!(gates.kept.borrow().is_empty());
        });
    }

    #[test]
    fn a_reset_is_heard_at_once_also_in_silence() {
        runtime::run_single(async |env: Env| {
            let mut rig = Rig::new(&env);
            rig.silence(true);
            rig.gates.reset(|port, drive| port == 0 && drive == Some(0));
            assert_eq!(rig.heard(), None, "another port");
            rig.gates.reset(|port, _| port == 1);
            assert_eq!(rig.heard(), Some(Vec::new()));
            assert_eq!(read(&rig.gate).await, Err(Closed));
        });
    }
}
