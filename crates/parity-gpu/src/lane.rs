//! Lanes: one batch's way to a device and back.
//!
//! Purpose: a stream with memory of its own on both sides, so that one lane's copies run while
//! another computes.
//! Invariant: a lane's memory belongs to the batch that it runs; between batches to nobody. Jobs'
//! own memory is never a device's.
#![allow(unsafe_code)]

use crate::driver::{Device, DeviceMemory, DriverError, HostMemory, Stream};
use crate::job::Job;
use crate::pack::{Packed, Placed};
use crate::plan::Answer;

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct Lane {
    stream: Stream,
    /// `in` on both sides.
    input: (HostMemory, DeviceMemory),
    /// `out` on both sides.
    out: (HostMemory, DeviceMemory),
}

impl Lane {
    /// A lane with `in_bytes` and `out_bytes` of memory on each side.
    pub(crate) fn new(
        device: &mut dyn Device,
        in_bytes: usize,
        out_bytes: usize,
    ) -> Result<Lane, DriverError> {
        Ok(Lane {
            stream: device.stream()?,
            input: (device.allocate_host(in_bytes)?, device.allocate(in_bytes)?),
            out: (device.allocate_host(out_bytes)?, device.allocate(out_bytes)?),
        })
    }

    /// Puts a job's strips in their places.
    pub(crate) fn load<I: AsRef<[u8]>, O: AsRef<[u8]>>(
        &self,
        device: &mut dyn Device,
        job: &Job<I, O>,
        placed: &Placed,
    ) {
        for (&at, input) in placed.inputs.iter().zip(&job.inputs) {
            device.write(self.input.0, at, input.as_ref());
        }
        if job.plan.kind().adds() {
            for (&at, output) in placed.outputs.iter().zip(&job.outputs) {
                device.write(self.out.0, at, output.as_ref());
            }
        }
    }

    /// Asks for all that a batch needs, whose jobs are loaded.
    pub(crate) fn start(&self, device: &mut dyn Device, batch: &Packed) -> Result<(), DriverError> {
        for (at, bytes) in &batch.metadata {
            device.write(self.input.0, *at, bytes);
        }
        device.copy_up(self.stream, self.input.0, self.input.1, batch.in_len)?;
        if batch.kind.adds() {
            device.copy_up(self.stream, self.out.0, self.out.1, batch.out_len)?;
        } else {
            // Answers start from 0. Outputs do too, so that none is a batch's before.
            device.zero(self.stream, self.out.1, batch.out_len)?;
        }
        // SAFETY: the metadata was written to the memory that the copy before this takes there.
        unsafe { device.launch(self.stream, (self.input.1, self.out.1), batch) }?;
        device.copy_down(self.stream, self.out.1, self.out.0, batch.out_len)?;
        device.mark(self.stream)
    }

    /// Whether all that was asked for is done.
    pub(crate) fn passed(&self, device: &mut dyn Device) -> Result<bool, DriverError> {
        device.passed(self.stream)
    }

    /// Takes a job's result over into its outputs.
    pub(crate) fn take<I, O: AsMut<[u8]>>(
        &self,
        device: &dyn Device,
        job: &mut Job<I, O>,
        placed: &Placed,
    ) -> Answer {
        for (&at, output) in placed.outputs.iter().zip(&mut job.outputs) {
            device.read(self.out.0, at, output.as_mut());
        }
        self.answer(device, job, placed)
    }

    /// Whether a job's result is what its outputs and `answer` are.
    pub(crate) fn agrees<I, O: AsRef<[u8]>>(
        &self,
        device: &dyn Device,
        job: &Job<I, O>,
        placed: &Placed,
        answer: &Answer,
    ) -> bool {
        let mut found = vec![0; placed.len];
        let outputs = placed.outputs.iter().zip(&job.outputs).all(|(&at, output)| {
            device.read(self.out.0, at, &mut found);
            found == output.as_ref()
        });
        outputs && self.answer(device, job, placed) == *answer
    }

    fn answer<I, O>(&self, device: &dyn Device, job: &Job<I, O>, placed: &Placed) -> Answer {
        let (at, count) = placed.answers;
        let mut bytes = vec![0; 4 * count];
        device.read(self.out.0, at, &mut bytes);
        job.plan.answer(&bytes)
    }
}
