//! Jobs: a plan with the buffers it is done on, by a device or here.

use std::sync::Arc;

use crate::plan::{Answer, Plan};

/// A plan, once, on these strips. It owns its buffers until it is finished.
#[derive(Clone, Debug)]
pub struct Job<I, O> {
    /// The stripe it belongs to, any number: jobs of one stripe are finished in order.
    pub stripe: u64,
    /// What to do.
    pub plan: Arc<Plan>,
    /// What is read; see [`Plan::input_strips`].
    pub inputs: Vec<I>,
    /// What is written, or added to; see [`Plan::output_strips`].
    pub outputs: Vec<O>,
}

impl<I: AsRef<[u8]>, O: AsRef<[u8]> + AsMut<[u8]>> Job<I, O> {
    /// Bytes of its strips.
    pub fn strip_len(&self) -> usize {
        self.inputs.first().map_or(0, |input| input.as_ref().len())
    }

    /// Whether the buffers are those of the plan.
    pub(crate) fn is_whole(&self) -> bool {
        let len = self.strip_len();
        self.inputs.len() == self.plan.input_strips().len()
            && self.outputs.len() == self.plan.output_strips().len()
            && self.inputs.iter().all(|input| input.as_ref().len() == len)
            && self.outputs.iter().all(|output| output.as_ref().len() == len)
    }

    /// Does it here, with the parity crate.
    ///
    /// # Panics
    ///
    /// If counts or lengths of buffers are not the plan's.
    pub fn compute(&mut self) -> Answer {
        let inputs: Vec<&[u8]> = self.inputs.iter().map(AsRef::as_ref).collect();
        let mut outputs: Vec<&mut [u8]> = self.outputs.iter_mut().map(AsMut::as_mut).collect();
        self.plan.compute(&inputs, &mut outputs)
    }
}
