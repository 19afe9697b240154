//! Batches that are compared with the CPU: before they are timed, and after the last turn.
//!
//! A comparison begins with a *blank*: the outputs of the jobs that will be compared get bytes that
//! no job makes. What ran since has to have replaced them; the CPU does the same jobs.
//!
//! Invariant: between a blank and its check nothing but the batch itself writes its strips.

use super::stage::{Stage, Wait, finish};
use super::works::Work;
use crate::error::BenchError;
use ::parity::offload::{Answer, What};
use parity_gpu::{Device, DriverError, Place, Stream, Track};

/// What outputs hold before.
const BLANK: u8 = 0xa5;

/// A batch with its work.
pub struct Tried {
    track: Track,
    work: Work,
    /// How often it was computed since the last blank, and whether it went down each time.
    runs: u64,
    down: bool,
}

/// A job's inputs, outputs and answer, if all of it was done.
type Job = (Vec<Vec<u8>>, Vec<Vec<u8>>, Option<Answer>);

impl Tried {
    pub(super) fn new(work: &Work, track: Track) -> Tried {
        Tried { track, work: work.clone(), runs: 0, down: true }
    }

    /// The batch itself.
    pub fn track(&self) -> &Track {
        &self.track
    }

    /// Its stream.
    pub fn stream(&self) -> Stream {
        self.track.stream()
    }

    /// Asks for the kernel alone.
    ///
    /// # Errors
    /// If the device is in trouble.
    pub fn compute(&mut self, device: &mut dyn Device) -> Result<(), DriverError> {
        (self.runs, self.down) = (self.runs + 1, false);
        self.track.compute(device)
    }

    /// Asks for the batch to go up, through the kernel and down.
    ///
    /// # Errors
    /// If the device is in trouble.
    pub fn pass(&mut self, device: &mut dyn Device) -> Result<(), DriverError> {
        self.track.up(device)?;
        self.compute(device)?;
        self.down = true;
        self.track.down(device)
    }

    /// The jobs that are compared.
    fn jobs(&self) -> [usize; 3] {
        [0, self.track.jobs() / 2, self.track.jobs() - 1]
    }

    /// Whether doing it twice takes it back: kernels add to what is there, on strips that went up
    /// with each batch or stayed; answers start from 0 as a batch goes up.
    fn takes_back(&self) -> bool {
        let adds = matches!(self.work.operation.what(), What::Update(_));
        let answers = matches!(self.work.operation.what(), What::Checksum(_) | What::Verify(_));
        adds || (answers && !self.down)
    }
}

impl Stage {
    /// Blanks what will be compared. The batch is on the device then, and no answers are.
    ///
    /// # Errors
    /// If the device is in trouble.
    pub fn blank(&mut self, tried: &mut Tried) -> Result<(), BenchError> {
        let (device, track) = (&mut *self.device, &mut tried.track);
        let blank = vec![BLANK; tried.work.strip];
        for job in [0, track.jobs() / 2, track.jobs() - 1] {
            match track.places(job) {
                // All of a piece, inputs too: outputs hold noise then.
                Some((_, outputs, _)) => {
                    let (stream, noise) = (self.large.stream(), self.large.input().0);
                    for (piece, _) in outputs {
                        let memory = self.pieces.memory()[piece];
                        device.copy_up(stream, noise, memory, self.pieces.each())?;
                        finish(device, &[stream], Wait::Looking)?;
                    }
                }
                None => {
                    let outputs = 0..tried.work.operation.writes().len();
                    outputs.for_each(|output| track.load_output(device, job, output, &blank));
                }
            }
            track.load_answer(device, job, [BLANK; 4]);
        }
        track.up_with_outputs(device)?;
        finish(device, &[track.stream()], Wait::Looking)?;
        (tried.runs, tried.down) = (0, true);
        Ok(())
    }

    /// Compares what ran since the last blank, if anything did.
    ///
    /// # Errors
    /// If the device is in trouble or computed anything wrong.
    pub fn check(&mut self, tried: &mut Tried) -> Result<(), BenchError> {
        if tried.runs == 0 {
            return Ok(());
        }
        let device = &mut *self.device;
        if tried.runs.is_multiple_of(2) && tried.takes_back() {
            match tried.down {
                true => tried.pass(device)?,
                false => tried.compute(device)?,
            }
        }
        if !tried.down {
            tried.track.down(device)?;
        }
        finish(device, &[tried.stream()], Wait::Looking)?;
        for job in tried.jobs() {
            let (inputs, found, answer) = self.job(tried, job)?;
            let mut outputs = vec![vec![BLANK; tried.work.strip]; found.len()];
            let right = tried.work.operation.compute_in(&inputs, &mut outputs);
            let differs = |(output, (a, b)): (usize, (&Vec<u8>, &Vec<u8>))| {
                a.iter().zip(b).position(|(a, b)| a != b).map(|offset| (output, offset))
            };
            let differing = found.iter().zip(&outputs).enumerate().find_map(differs);
            let wrong_answer = (answer != Some(right)).then_some((0, 0));
            if let Some((output, offset)) = differing.or(wrong_answer) {
                let operation = format!("{} on the GPU", tried.work.name);
                let than = "the CPU's";
                return Err(BenchError::Different { operation, output, offset, than });
            }
        }
        Ok(())
    }

    /// What a job read, wrote and answered.
    fn job(&mut self, tried: &Tried, job: usize) -> Result<Job, BenchError> {
        let answer = tried.track.answer(&*self.device, job);
        let Some((inputs, outputs, len)) = tried.track.places(job) else {
            let device = &*self.device;
            return Ok((tried.track.inputs(device, job), tried.track.outputs(device, job), answer));
        };
        let strips = self.fetch(&[&inputs[..], &outputs[..]].concat(), len)?;
        let (inputs, outputs) = strips.split_at(inputs.len());
        Ok((inputs.to_vec(), outputs.to_vec(), answer))
    }

    /// Strips of pieces.
    fn fetch(&mut self, places: &[Place], len: usize) -> Result<Vec<Vec<u8>>, BenchError> {
        let (device, mut brought) = (&mut *self.device, None);
        let (stream, here) = (self.large.stream(), self.large.output().0);
        let mut strips = Vec::new();
        for &(piece, at) in places {
            if brought != Some(piece) {
                device.copy_down(stream, self.pieces.memory()[piece], here, self.pieces.each())?;
                finish(device, &[stream], Wait::Looking)?;
                brought = Some(piece);
            }
            let mut strip = vec![0; len];
            device.read(here, at, &mut strip);
            strips.push(strip);
        }
        Ok(strips)
    }
}

#[cfg(test)]
mod tests {
    use super::super::works::works;
    use super::*;
    use parity_gpu::fake::FakeDriver;

    /// Said to have run, and did not.
    #[test]
    fn a_batch_that_did_nothing_is_wrong() {
        let driver = FakeDriver::new(3, 1 << 30);
        let mut stage = Stage::open(&driver, 0, (2 << 20, 8 << 20), (1, 2 << 20)).unwrap();
        for work in works() {
            let mut all = vec![stage.resident(&work).unwrap()];
            all.extend(stage.streamed(&work).unwrap());
            all.extend(stage.mapped(&work).unwrap().unwrap_or_default());
            for (side, tried) in all.iter_mut().enumerate() {
                for down in [true, false] {
                    stage.blank(tried).unwrap();
                    (tried.runs, tried.down) = (1, down);
                    let found = stage.check(tried);
                    let is_wrong = matches!(found, Err(BenchError::Different { .. }));
                    assert!(is_wrong, "{}, side {side}, {down}: {found:?}", work.name);
                }
            }
        }
    }
}
