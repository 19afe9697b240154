//! Clients that read while something happens to the drives.
//!
//! Invariant: a reader is under way from before the event to after its end. Readers follow one
//! another without pause, the event starts in the middle of one, and none starts after its end.

use super::child::{self, Interrupt, LOOK, Running};
use super::error::DemoError;
use super::random::{self, Sum};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

/// What readers and event tell each other.
#[derive(Default)]
struct Shared {
    /// Bytes that came so far.
    bytes: AtomicU64,
    /// The event is over.
    over: AtomicBool,
    /// The demo gives up: readers end.
    given_up: AtomicBool,
}

/// Lets a program that prints what it reads do so over and over while `event` goes on, and compares
/// what each read with `expected`. `reader` is its command line, asked for each time. Returns how
/// many bytes were read.
///
/// # Errors
/// That of the event, of a reader, or of bytes that differ.
pub fn read_during(
    reader: &(dyn Fn() -> Command + Sync),
    expected: (Sum, u64),
    interrupt: &Interrupt,
    event: impl FnOnce() -> Result<(), DemoError>,
) -> Result<u64, DemoError> {
    let shared = Shared::default();
    thread::scope(|scope| {
        let readers = scope.spawn(|| read_until_over(reader, expected, &shared, interrupt));
        while shared.bytes.load(Ordering::Acquire) < expected.1 / 4 && !readers.is_finished() {
            thread::sleep(LOOK);
        }
        let event = if readers.is_finished() { Ok(()) } else { event() };
        shared.over.store(true, Ordering::Release);
        shared.given_up.store(event.is_err(), Ordering::Release);
        let read = readers.join().expect("a reader does not panic");
        event.and(read)
    })
}

fn read_until_over(
    reader: &(dyn Fn() -> Command + Sync),
    expected: (Sum, u64),
    shared: &Shared,
    interrupt: &Interrupt,
) -> Result<u64, DemoError> {
    while !shared.over.load(Ordering::Acquire) {
        let sum = read_once(&mut reader(), shared, interrupt)?;
        if sum != expected {
            let problem = "bytes read while a drive was pulled are not those written";
            return Err(DemoError::Wrong(problem.into()));
        }
    }
    Ok(shared.bytes.load(Ordering::Acquire))
}

/// One reader from start to end.
fn read_once(
    command: &mut Command,
    shared: &Shared,
    interrupt: &Interrupt,
) -> Result<(Sum, u64), DemoError> {
    let before = shared.bytes.load(Ordering::Acquire);
    sum_while(
        command,
        || interrupt.came() || shared.given_up.load(Ordering::Acquire),
        |length| shared.bytes.store(before + length, Ordering::Release),
    )
}

/// The sum of what a program prints, and its length.
///
/// # Errors
/// If the program fails, or `interrupt` came.
pub fn sum_of_output(
    command: &mut Command,
    interrupt: &Interrupt,
) -> Result<(Sum, u64), DemoError> {
    sum_while(command, || interrupt.came(), |_| ())
}

/// Sums what a program prints; kills it, though it may hang, once `enough` says so.
fn sum_while(
    command: &mut Command,
    enough: impl Fn() -> bool + Sync,
    mut each: impl FnMut(u64),
) -> Result<(Sum, u64), DemoError> {
    let mut running = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let mut stdout = running.child().stdout.take().expect("piped");
    let stderr = child::drain(running.child().stderr.take());
    let (start, ended) = (Instant::now(), AtomicBool::new(false));
    let sum = thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Acquire) {
                if enough() || start.elapsed() > child::LIMIT {
                    running.kill();
                }
                thread::sleep(LOOK);
            }
        });
        let sum = random::sum(&mut stdout, |length| {
            each(length);
            if enough() { Err(DemoError::Interrupted) } else { Ok(()) }
        });
        ended.store(true, Ordering::Release);
        sum
    })?;
    let status = running.wait(None, child::LIMIT)?;
    if enough() {
        return Err(DemoError::Interrupted);
    }
    if !status.success() {
        let said = child::tail(&stderr.join().unwrap_or_default());
        return Err(running.failure(child::how(status), said));
    }
    sum.map_err(|error| running.failure("could not be read".into(), error.to_string()))
}
