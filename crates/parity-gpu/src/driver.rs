//! What is asked of a device and its driver.
//!
//! Purpose: the little that batches need: memory on both sides, streams, copies, launches, and
//! whether a stream has come so far. Every call can fail; none should wait for the device, but
//! drivers have been seen that do.
//! Invariants: what one stream is asked for is done in that order; streams go on side by side.
//! Memory lives as long as its device. A device that is dropped with work under way keeps that
//! work's memory until the work has ended, or for good.
#![allow(unsafe_code)]

use core::fmt;

use crate::pack::Packed;

/// A driver of devices.
pub trait Driver: Send {
    /// The names of its devices, by number.
    ///
    /// # Errors
    ///
    /// If the driver is missing or refuses.
    fn devices(&self) -> Result<Vec<String>, DriverError>;

    /// Takes device `number`, with its kernels loaded.
    ///
    /// # Errors
    ///
    /// If there is no such device or it can't run the kernels.
    fn open(&self, number: usize) -> Result<Box<dyn Device>, DriverError>;
}

/// Memory of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceMemory(pub(crate) usize);

/// Memory of this machine that a device can reach by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostMemory(pub(crate) usize);

/// A row of things for a device to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream(pub(crate) usize);

/// An open device. Memory and streams are named by what the same device gave.
pub trait Device: Send {
    /// Its name.
    fn name(&self) -> &str;

    /// Its place on the PCI bus, such as `0000:3b:00.0`, if the driver tells: by that other
    /// libraries know the same device.
    fn bus(&self) -> Option<String> {
        None
    }

    /// `bytes` of the device's memory, aligned to 256.
    ///
    /// # Errors
    ///
    /// [`Problem::Memory`] if it has no more; any other if it is in trouble.
    fn allocate(&mut self, bytes: usize) -> Result<DeviceMemory, DriverError>;

    /// Where `memory` begins, for kernels.
    fn address(&self, memory: DeviceMemory) -> u64;

    /// `bytes` of this machine's memory that copies reach without a detour (pinned), zeroed.
    ///
    /// # Errors
    ///
    /// As [`Device::allocate`].
    fn allocate_host(&mut self, bytes: usize) -> Result<HostMemory, DriverError>;

    /// A new stream.
    ///
    /// # Errors
    ///
    /// If the device is in trouble.
    fn stream(&mut self) -> Result<Stream, DriverError>;

    /// Puts `bytes` at `at` of `memory`. What a copy that is under way reads there is not defined.
    ///
    /// # Panics
    ///
    /// If they don't lie in it.
    fn write(&mut self, memory: HostMemory, at: usize, bytes: &[u8]);

    /// Fills `bytes` from `at` of `memory`. What a copy that is under way writes there may or may
    /// not be in it.
    ///
    /// # Panics
    ///
    /// If they don't lie in it.
    fn read(&self, memory: HostMemory, at: usize, bytes: &mut [u8]);

    /// Copies the first `len` bytes to the device.
    ///
    /// # Errors
    ///
    /// If the device is in trouble or one of the two is shorter.
    fn copy_up(
        &mut self,
        stream: Stream,
        from: HostMemory,
        to: DeviceMemory,
        len: usize,
    ) -> Result<(), DriverError>;

    /// Copies the first `len` bytes from the device.
    ///
    /// # Errors
    ///
    /// As [`Device::copy_up`].
    fn copy_down(
        &mut self,
        stream: Stream,
        from: DeviceMemory,
        to: HostMemory,
        len: usize,
    ) -> Result<(), DriverError>;

    /// Copies the first `len` bytes of one memory of the device to another.
    ///
    /// # Errors
    ///
    /// As [`Device::copy_up`].
    fn copy_within(
        &mut self,
        stream: Stream,
        from: DeviceMemory,
        to: DeviceMemory,
        len: usize,
    ) -> Result<(), DriverError>;

    /// Makes the first `len` bytes zero.
    ///
    /// # Errors
    ///
    /// As [`Device::copy_up`].
    fn zero(&mut self, stream: Stream, memory: DeviceMemory, len: usize)
    -> Result<(), DriverError>;

    /// Runs the kernel of `batch`, whose places are addresses.
    ///
    /// # Errors
    ///
    /// If the device is in trouble.
    ///
    /// # Safety
    ///
    /// When the stream comes to it, the batch's metadata is at its places in memory of this
    /// device. Until it has passed, all strips that the metadata names are memory of the device,
    /// or registered, and nobody else writes them, or uses those that it writes.
    unsafe fn launch(&mut self, stream: Stream, batch: &Packed) -> Result<(), DriverError>;

    /// Lets the device reach `bytes` of this machine's memory from `address`, and says by which
    /// address it does.
    ///
    /// # Errors
    ///
    /// If it can't; nothing has changed then.
    fn register(&mut self, address: usize, bytes: usize) -> Result<u64, DriverError>;

    /// Takes registered memory from the device. It must be what [`Device::register`] was given,
    /// with nothing under way that reaches for it.
    ///
    /// # Errors
    ///
    /// If the device is in trouble: it may reach for the memory yet.
    fn unregister(&mut self, address: usize) -> Result<(), DriverError>;

    /// Marks the end of what `stream` has been asked for until now.
    ///
    /// # Errors
    ///
    /// If the device is in trouble.
    fn mark(&mut self, stream: Stream) -> Result<(), DriverError>;

    /// Whether `stream` has come to its last mark.
    ///
    /// # Errors
    ///
    /// If the device is in trouble, or something before the mark failed.
    fn passed(&mut self, stream: Stream) -> Result<bool, DriverError>;
}

/// What was being done when a driver failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// Loading the driver's library.
    Load,
    /// Listing devices.
    List,
    /// Taking a device and loading kernels.
    Open,
    /// Allocating memory, or making a stream.
    Allocate,
    /// Letting a device reach memory, or taking it away.
    Register,
    /// A copy, or zeros.
    Copy,
    /// A launch.
    Launch,
    /// Waiting for a mark.
    Mark,
}

/// What was wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Problem {
    /// There is no driver; the text says what was looked for.
    Missing(String),
    /// There is no such device.
    NoDevice,
    /// There is not enough memory.
    Memory,
    /// Somebody else has the device for himself.
    Busy,
    /// The device is gone or has to be reset; the driver's name for it.
    Lost(String),
    /// The arguments are wrong, by our own checks.
    Arguments,
    /// The driver's own number, and name if it has one.
    Code(i32, String),
}

/// Why a driver or device did not do what it was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriverError {
    /// What was being done.
    pub asked: Asked,
    /// What was wrong.
    pub problem: Problem,
}

impl DriverError {
    pub(crate) fn new(asked: Asked, problem: Problem) -> DriverError {
        DriverError { asked, problem }
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.asked {
            Asked::Load => "loading the GPU's driver",
            Asked::List => "listing GPUs",
            Asked::Open => "opening a GPU",
            Asked::Allocate => "getting memory of a GPU",
            Asked::Register => "sharing memory with a GPU",
            Asked::Copy => "copying to or from a GPU",
            Asked::Launch => "starting a GPU's kernel",
            Asked::Mark => "waiting for a GPU",
        })?;
        match &self.problem {
            Problem::Missing(what) => write!(f, ": no {what}"),
            Problem::NoDevice => f.write_str(": no such device"),
            Problem::Memory => f.write_str(": not enough memory"),
            Problem::Busy => f.write_str(": busy, somebody else has it"),
            Problem::Lost(name) => write!(f, ": the device is lost ({name})"),
            Problem::Arguments => f.write_str(": arguments that make no sense"),
            Problem::Code(code, name) => write!(f, ": error {code} ({name})"),
        }
    }
}

impl std::error::Error for DriverError {}
