//! The device's thread: the only one that calls the driver.
//!
//! Purpose: take letters, feed the queue, hand on what comes back; at the end give everything
//! back that the device can't reach for any more.
//! Invariant: whatever ends this thread, a panic too, all tickets are answered.

use io::{Buf, BufMut};

use super::Load;
use super::desk::{Desk, Ended, Letter, Standing};
use crate::fence::Fence;
use crate::queue::Queue;
use crate::selftest;

type Jobs = Queue<Buf, BufMut, u64>;

/// Says that the thread is over, however it comes to be.
struct Farewell<'a> {
    desk: &'a Desk,
    ended: Ended,
}

impl Drop for Farewell<'_> {
    fn drop(&mut self) {
        self.desk.put_fence(Fence::Ended);
        self.desk.thread_ends(self.ended);
    }
}

/// The thread.
pub(super) fn run(load: Load, number: usize, desk: &Desk) {
    let mut farewell = Farewell { desk, ended: Ended::Unclean };
    nap_exactly();
    let mut clock = || {
        std::thread::yield_now();
        desk.now()
    };
    let device = load().and_then(|driver| driver.open(number)).map_err(Fence::Failed);
    let tested = device
        .and_then(|device| selftest::open::<Buf, BufMut, u64>(device, desk.limits(), &mut clock));
    let (mut queue, timed) = match tested {
        Ok(tested) => tested,
        Err(fence) => {
            // Nobody else's memory was reached for.
            farewell.ended = Ended::Clean;
            return desk.put_fence(fence);
        }
    };
    // Memory that is there already is shared before there are jobs.
    let mut kept = 0;
    while let Some(letters) = desk.early_letters() {
        kept += letters.into_iter().map(|letter| read(&mut queue, desk, letter)).sum::<usize>();
    }
    desk.begin(queue.device(), &timed);
    serve(&mut queue, desk, kept);
    if quiet(&mut queue, desk) && queue.unregister_all() {
        farewell.ended = Ended::Clean;
    }
    // The device goes before anybody hears that all is clean.
    drop(queue);
}

/// Has this thread's short sleeps end when they should, not up to 50 µs later (prctl(2),
/// PR_SET_TIMERSLACK).
fn nap_exactly() {
    // If it is refused, naps are longer.
    let _ = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(1000));
}

/// Until the service ends. `kept`: bytes that have to be kept already.
fn serve(queue: &mut Jobs, desk: &Desk, mut kept: usize) {
    // What was shared before is told at once.
    let mut device = Standing { news: true, ..Standing::default() };
    while let Some(letters) = desk.letters(device) {
        for letter in letters {
            kept += read(queue, desk, letter);
        }
        if let Some(fence) = desk.fence() {
            queue.put_fence(fence);
        }
        let finished = queue.poll(desk.now());
        let batches = queue.ended();
        device = Standing {
            works: !queue.is_empty() || !queue.is_quiet(),
            ends: queue.next_end(|bytes| desk.place().takes(bytes)),
            news: !finished.is_empty(),
            room: queue.has_room(),
        };
        desk.deliver(finished, &batches, (queue.reached(), std::mem::take(&mut kept)));
        if let Some(fence) = queue.fence() {
            desk.put_fence(fence.clone());
        }
    }
}

/// Does what a letter says; bytes that have to be kept for good.
fn read(queue: &mut Jobs, desk: &Desk, letter: Letter) -> usize {
    match letter {
        Letter::Job(number, job) => queue.submit(job, number),
        Letter::Begin(address, bytes) => {
            if let Err(error) = queue.register(address, bytes) {
                desk.not_shared(bytes, error);
            }
        }
        Letter::End(memory) if queue.unregister(memory.address()) => drop(memory),
        Letter::End(memory) => {
            let bytes = memory.bytes();
            std::mem::forget(memory);
            return bytes;
        }
    }
    0
}

/// Lets the device come to its end, as long as a batch may take; says whether it did.
fn quiet(queue: &mut Jobs, desk: &Desk) -> bool {
    queue.put_fence(Fence::Ended);
    let until = desk.now() + desk.limits().patience;
    loop {
        drop(queue.poll(desk.now()));
        if queue.is_quiet() || desk.now() >= until {
            return queue.is_quiet();
        }
        std::thread::yield_now();
    }
}
