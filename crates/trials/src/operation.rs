//! What a host, a person or a fault does to a small array.

use crate::rig::Machine;
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
#[derive(Default)]
pub struct Pending(Vec<End>);

impl Pending {
    /// A request begins: where its end is to be put.
    pub fn begin(&mut self) -> End {
        self.0.push(End::default());
        self.0[self.0.len() - 1].clone()
    }

    /// Whether all have ended.
    pub fn over(&self) -> bool {
        self.0.iter().all(|end| end.borrow().is_some())
    }

    /// Forgets those that ended; whether one of them failed.
    pub fn failed(&mut self) -> bool {
        core::mem::take(&mut self.0).iter().any(|end| *end.borrow() != Some(Ok(())))
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
