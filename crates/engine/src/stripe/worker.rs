//! The workers of a core: each takes all jobs of a stripe and has them carried out, the writes
//! together, then what else is wanted, one after the other.
//!
//! Invariant: the stripe is busy with one worker from before its first job to behind its last, so
//! what a compare and write reads is what it writes over.

use crate::Host;
use crate::array::Array;
use crate::array::message::{Checked, Job, LostChange, Outcome, Repair};
use crate::mutants::{self, Mutant};
use crate::stripe::check;
use crate::stripe::execute::write_batch;
use crate::stripe::slice::{Batch, Fragment};
use crate::stripe::table::{Origin, StripeKey, Waiting};
use io::{BlockError, Buf, Pool};
use layout::CodeKind;

/// What a worker works with; kept between stripes, so that nothing is allocated.
pub(super) struct Bench {
    /// The stripe's jobs as they were taken.
    jobs: Vec<Waiting>,
    /// What is to be written, of all writes together.
    pub(super) batch: Batch,
    /// The part of the batch that lies in one slice.
    pub(super) part: Vec<Fragment>,
    /// Who wrote.
    writers: Vec<Origin>,
    /// Everything that is not a write.
    others: Vec<Waiting>,
    /// Writes of a stripe without redundancy.
    alone: Vec<Waiting>,
    /// Whether any writer wants to be durable.
    pub(super) durable: bool,
    /// Whether any writer brings more than zeros.
    content: bool,
}

/// Takes ready stripes and carries out their jobs until the table is closed. Workers begin when
/// stripes wait for them ([`crate::stripe::table::StripeTable::hire`]).
pub async fn run<E: Host>(array: Array<E>, number: u32) {
    let mut bench = Bench {
        jobs: Vec::with_capacity(8),
        batch: Batch::with_room(),
        part: Vec::with_capacity(64),
        writers: Vec::with_capacity(8),
        others: Vec::with_capacity(8),
        alone: Vec::new(),
        durable: false,
        content: false,
    };
    let mut woken = true;
    while let Some((at, key)) = array.table().take(number, &mut woken, &mut bench.jobs).await {
        array.hire();
        carry_out(&array, key, &mut bench).await;
        array.table().finish(at);
    }
}

/// Carries out all jobs of a stripe: the writes together, then what else is wanted.
async fn carry_out<E: Host>(array: &Array<E>, key: StripeKey, bench: &mut Bench) {
    let (strip_bytes, is_alone) = {
        let view = &array.bound().view;
        (view.layout.strip_bytes(), view.code(key) == CodeKind::None)
    };
    (bench.durable, bench.content) = (false, false);
    for waiting in bench.jobs.drain(..) {
        match waiting.job {
            Job::Write { .. } | Job::Zero { .. } if is_alone => bench.alone.push(waiting),
            Job::Write { at, data, fua } => {
                bench.batch.add(at, data, strip_bytes);
                bench.writers.push(waiting.origin);
                bench.durable |= fua;
                bench.content = true;
            }
            Job::Zero { at, bytes, fua } => {
                bench.batch.add_zeros(at, bytes, array.zeros(), strip_bytes);
                bench.writers.push(waiting.origin);
                bench.durable |= fua;
            }
            Job::CompareWrite { .. } | Job::Read { .. } | Job::Rebuild(_) | Job::Check(_) => {
                bench.others.push(waiting);
            }
        }
    }
    if !bench.writers.is_empty() {
        let written = write_writers(array, key, bench).await;
        bench.batch.clear();
        for origin in bench.writers.drain(..) {
            array.answer(origin, Outcome::Done(written));
        }
    }
    if is_alone {
        // Rare: its state does not make every worker's larger.
        Box::pin(array.change_here(key, &mut bench.alone)).await;
    }
    let mut others = core::mem::take(&mut bench.others);
    for Waiting { job, origin } in others.drain(..) {
        let outcome = match job {
            Job::CompareWrite { at, expected, data, fua } => {
                let (before, after) = ((at, expected), (data, fua));
                let compared = match is_alone {
                    true => Box::pin(array.compare_here(key, before, after)).await,
                    false => Box::pin(compare_write(array, key, before, after, bench)).await,
                };
                Outcome::Compared(compared)
            }
            job => other(array, key, job).await,
        };
        array.answer(origin, outcome);
    }
    bench.others = others;
}

/// Compares a block, and writes it if it holds what is expected. The stripe is busy with both.
async fn compare_write<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    (at, expected): (u32, Buf),
    (data, fua): (Buf, bool),
    bench: &mut Bench,
) -> Result<bool, BlockError> {
    // As a change, so that no discard comes between.
    let entry = array.enter_change(key).await?;
    let (read, now) = check::read(array, key, at, Pool::single(expected.len())).await;
    let mut done = read.map(|()| now[..] == expected[..]);
    if done == Ok(true) {
        bench.batch.add(at, data, array.bound().view.layout.strip_bytes());
        bench.durable = fua;
        done = write_entered(array, key, bench).await.map(|()| true);
        bench.batch.clear();
    }
    array.leave(entry);
    done
}

/// Writes a batch; zeros for a band that was never written are there already.
async fn write_writers<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    bench: &mut Bench,
) -> Result<(), BlockError> {
    let lost = array.lost_of(key, &bench.batch);
    if !bench.content && array.never_written(key) && lost.is_empty() {
        return array.unwritten_durably(key).await;
    }
    let entry = array.enter_change(key).await?;
    let written = write_entered(array, key, bench).await;
    array.leave(entry);
    written
}

/// Writes a batch to a stripe that was entered.
async fn write_entered<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    bench: &mut Bench,
) -> Result<(), BlockError> {
    let mut lost = array.lost_of(key, &bench.batch);
    if mutants::is(Mutant::HealEarly) && !lost.is_empty() {
        array.change_lost(LostChange::Heal(core::mem::take(&mut lost))).await?;
    }
    loop {
        // What is no longer called lost must be there after a crash.
        bench.durable |= !lost.is_empty();
        let written = write_batch(array, key, bench).await;
        let before = core::mem::replace(&mut lost, array.lost_of(key, &bench.batch));
        if written.is_err() || lost.is_empty() {
            return written;
        }
        if before == lost {
            return array.change_lost(LostChange::Heal(lost)).await;
        }
        // Something was given up on the way.
    }
}

/// Carries out what is not a write. What was never written reads as zeros, and is neither checked
/// nor filled.
async fn other<E: Host>(array: &Array<E>, key: StripeKey, job: Job) -> Outcome {
    // What repairs makes its region dirty, as a write does.
    let repairs = matches!(&job, Job::Check(repair) if *repair != Repair::Nothing);
    let entered = match repairs && !array.never_written(key) {
        true => match array.enter_change(key).await {
            Ok(entry) => Some(entry),
            Err(error) => return Outcome::Checked(Err(error)),
        },
        false => array.enter_unchanged(key),
    };
    let Some(mut entry) = entered else {
        return match job {
            Job::Read { mut into, .. } => {
                into.fill(0);
                Outcome::Read(Ok(()), into)
            }
            _ => Outcome::Checked(Ok(Checked::alone())),
        };
    };
    let outcome = match job {
        Job::Read { at, into } => {
            let (result, into) = check::read_run(array, key, at, into).await;
            Outcome::Read(result, into)
        }
        Job::Rebuild(slot) => {
            let filled = check::rebuild(array, key, slot, false).await;
            if filled.is_ok_and(|checked| checked.beyond) {
                // What is given up changes the stripe.
                array.leave(entry);
                if array.never_written(key) {
                    return Outcome::Checked(Ok(Checked::alone()));
                }
                entry = match array.enter_change(key).await {
                    Ok(entry) => entry,
                    Err(error) => return Outcome::Checked(Err(error)),
                };
                Outcome::Checked(check::rebuild(array, key, slot, true).await)
            } else {
                Outcome::Checked(filled)
            }
        }
        Job::Check(repair) => {
            let mut checked = check::check(array, key, repair, false).await;
            if repair == Repair::Resync && checked.is_ok_and(|checked| checked.beyond) {
                checked = check::check(array, key, repair, true).await;
            }
            Outcome::Checked(checked)
        }
        Job::Write { .. } | Job::Zero { .. } | Job::CompareWrite { .. } => {
            unreachable!("what writes is not here")
        }
    };
    array.leave(entry);
    outcome
}
