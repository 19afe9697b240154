//! Lanes: one batch's way to a device and back.
//!
//! Purpose: a stream with memory of its own on both sides, so that one lane's copies run while
//! another computes. Strips that the device reaches where they are are not copied here.
//! Invariant: a lane's memory belongs to the batch that it runs; between batches to nobody.
#![allow(unsafe_code)]

use parity::offload::{Answer, Job};

use crate::driver::{Device, DeviceMemory, DriverError, HostMemory, Stream};
use crate::pack::{Packed, Packer, Placed, Room, Stage};
use crate::plan::Plan;
use crate::ranges::Ranges;

/// See the module.
pub(crate) struct Lane {
    stream: Stream,
    /// `in` on both sides.
    input: (HostMemory, DeviceMemory),
    /// `out` on both sides.
    out: (HostMemory, DeviceMemory),
    packer: Packer,
}

/// A lane's memory on this side.
struct Staged<'a> {
    device: &'a mut dyn Device,
    ranges: &'a Ranges,
    input: HostMemory,
    out: HostMemory,
}

impl Stage for Staged<'_> {
    fn put_in(&mut self, at: usize, bytes: &[u8]) {
        self.device.write(self.input, at, bytes);
    }

    fn put_out(&mut self, at: usize, bytes: &[u8]) {
        self.device.write(self.out, at, bytes);
    }

    fn reached(&self, bytes: &[u8]) -> Option<u64> {
        self.ranges.find(bytes)
    }
}

impl Lane {
    /// A lane with `in_bytes` and `out_bytes` of memory on each side.
    pub(crate) fn new(
        device: &mut dyn Device,
        in_bytes: usize,
        out_bytes: usize,
    ) -> Result<Lane, DriverError> {
        let stream = device.stream()?;
        let input = (device.allocate_host(in_bytes)?, device.allocate(in_bytes)?);
        let out = (device.allocate_host(out_bytes)?, device.allocate(out_bytes)?);
        let room = |memory, bytes| Room { address: device.address(memory), bytes };
        let packer = Packer::new(room(input.1, in_bytes), room(out.1, out_bytes));
        Ok(Lane { stream, input, out, packer })
    }

    /// The batch to put together.
    pub(crate) fn packer(&mut self) -> &mut Packer {
        &mut self.packer
    }

    /// Adds a job to the batch, its strips in their places, if there is room.
    pub(crate) fn push<I: AsRef<[u8]>, O: AsRef<[u8]>>(
        &mut self,
        (device, ranges): (&mut dyn Device, &Ranges),
        plan: &std::sync::Arc<Plan>,
        job: &Job<I, O>,
    ) -> Option<Placed> {
        let mut stage = Staged { device, ranges, input: self.input.0, out: self.out.0 };
        self.packer.push(plan, (&job.inputs, &job.outputs), &mut stage)
    }

    /// Asks for all that the batch needs.
    pub(crate) fn start(
        &mut self,
        (device, ranges): (&mut dyn Device, &Ranges),
    ) -> (Packed, Result<(), DriverError>) {
        let mut stage = Staged { device, ranges, input: self.input.0, out: self.out.0 };
        let batch = self.packer.finish(&mut stage);
        (batch, self.ask(stage.device, &batch))
    }

    fn ask(&self, device: &mut dyn Device, batch: &Packed) -> Result<(), DriverError> {
        device.copy_up(self.stream, self.input.0, self.input.1, batch.in_len)?;
        if batch.out_len > 0 && batch.kind().adds() {
            device.copy_up(self.stream, self.out.0, self.out.1, batch.out_len)?;
        } else if batch.out_len > 0 {
            // Answers start from 0. Outputs do too, so that none is a batch's before.
            device.zero(self.stream, self.out.1, batch.out_len)?;
        }
        // SAFETY: the metadata was written to the memory that the copy before this takes there,
        // by a packer for these memories. Whoever runs the batch keeps the jobs' own memory, if
        // the device reaches for it, until the mark has passed.
        unsafe { device.launch(self.stream, batch) }?;
        if batch.out_len > 0 {
            device.copy_down(self.stream, self.out.1, self.out.0, batch.out_len)?;
        }
        device.mark(self.stream)
    }

    /// Marks what was asked for until now, though not all of it could be.
    pub(crate) fn mark(&self, device: &mut dyn Device) -> Result<(), DriverError> {
        device.mark(self.stream)
    }

    /// Whether all that was asked for is done.
    pub(crate) fn passed(&self, device: &mut dyn Device) -> Result<bool, DriverError> {
        device.passed(self.stream)
    }

    /// Takes a job's result over into its outputs, if it is not there yet. `None`: the device has
    /// not done all of it.
    pub(crate) fn take<I, O: AsMut<[u8]>>(
        &self,
        device: &dyn Device,
        (plan, placed): (&Plan, &Placed),
        job: &mut Job<I, O>,
    ) -> Option<Answer> {
        let mut at = placed.outputs;
        for output in &mut job.outputs {
            let output = output.as_mut();
            if let Some(at) = &mut at {
                device.read(self.out.0, *at, output);
                *at += output.len();
            }
        }
        self.answer(device, (plan, placed))
    }

    /// Whether a job's result is `right`.
    pub(crate) fn agrees<I, O: AsRef<[u8]>>(
        &self,
        device: &dyn Device,
        (plan, placed): (&Plan, &Placed),
        job: &Job<I, O>,
        right: &(Answer, Vec<Vec<u8>>),
    ) -> bool {
        let mut found = Vec::new();
        let same = |(i, (output, right)): (usize, (&O, &Vec<u8>))| match placed.outputs {
            None => output.as_ref() == &right[..],
            Some(at) => {
                found.resize(right.len(), 0);
                device.read(self.out.0, at + i * right.len(), &mut found);
                found == *right
            }
        };
        job.outputs.iter().zip(&right.1).enumerate().all(same)
            && self.answer(device, (plan, placed)).as_ref() == Some(&right.0)
    }

    fn answer(&self, device: &dyn Device, (plan, placed): (&Plan, &Placed)) -> Option<Answer> {
        let (at, count) = placed.answers;
        let mut bytes = vec![0; 4 * count];
        device.read(self.out.0, at, &mut bytes);
        plan.answer(&bytes, placed.len)
    }
}
