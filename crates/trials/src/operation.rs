//! What a host, a person or a fault does to a small array.

use crate::machine::Machine;
use crate::small::BLOCK;
use crate::versions::Versions;
use engine::manage::command::{TaskAction, TaskKind};
use io::{BlockError, Blocks, Pool};
use std::cell::RefCell;
use std::rc::Rc;

/// One operation. Places and lengths are in blocks of the volume.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// A write, durable or not.
    Write(u64, u64, bool),
    /// The same, and nobody waits for it until [`Operation::Join`], or another request, is over.
    Begin(u64, u64, bool),
    /// All requests that began end.
    Join,
    /// So many borders of requests pass.
    Pass(u64),
    /// A write of zeros.
    Zero(u64, u64),
    /// A flush.
    Flush,
    /// A person takes this slot's drive out.
    Fail(usize),
    /// This slot's drive is gone, and nobody has said so.
    Vanish(usize),
    /// The spare drive is put into this slot.
    Replace(usize),
    /// This slot's own drive is there again, and put back.
    Return(usize),
    /// A person acts upon a task.
    Task(TaskKind, TaskAction),
    /// No task runs any more.
    Rest,
    /// Nothing happens until all regions are clean.
    Idle,
}

/// How a request ended.
type End = Rc<RefCell<Option<Result<(), BlockError>>>>;

/// Requests under way.
#[derive(Clone, Default)]
pub struct Pending(Rc<RefCell<Vec<End>>>);

impl Pending {
    /// A request begins: where its end is to be put, and how many began before it.
    pub fn begin(&self) -> (End, usize) {
        let (end, mut all) = (End::default(), self.0.borrow_mut());
        all.push(end.clone());
        (end, all.len() - 1)
    }

    /// How many are under way.
    pub fn under_way(&self) -> usize {
        self.0.borrow().iter().filter(|end| end.borrow().is_none()).count()
    }

    /// Forgets those that ended; whether one of them failed.
    pub fn failed(&self) -> bool {
        self.0.take().iter().any(|end| *end.borrow() != Some(Ok(())))
    }
}

/// Carries a host's request out and keeps record of it.
///
/// # Errors
/// The volume's.
pub async fn carry_out(
    volume: &engine::Volume<Machine>,
    versions: &Rc<RefCell<Versions>>,
    operation: Operation,
) -> Result<(), BlockError> {
    match operation {
        Operation::Write(at, count, fua) | Operation::Begin(at, count, fua) => {
            let (from, bytes) = (at * BLOCK, count * BLOCK);
            let version = versions.borrow_mut().begin(0, from, bytes, false);
            let mut data = Pool::single(bytes as usize);
            versions.borrow().data(0, from, version, &mut data);
            volume.write(from, data.freeze(), fua).await?;
            versions.borrow_mut().end(0, from, bytes, version, fua);
        }
        Operation::Zero(at, count) => {
            let (from, bytes) = (at * BLOCK, count * BLOCK);
            let version = versions.borrow_mut().begin(0, from, bytes, true);
            volume.write_zeroes(from, bytes, false).await?;
            versions.borrow_mut().end(0, from, bytes, version, false);
        }
        Operation::Flush => {
            let flush = versions.borrow().flush_begins();
            volume.flush().await?;
            versions.borrow_mut().flush_ends(&flush);
        }
        _ => {}
    }
    Ok(())
}
