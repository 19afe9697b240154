//! An open device of NVIDIA's.

use core::ffi::{CStr, c_void};
use std::ffi::CString;
use std::sync::Arc;

use super::api::{Address, Api, Handle, NOT_READY, Number, Status};
use crate::driver::{Asked, Device, DeviceMemory, DriverError, HostMemory, Problem, Stream};
use crate::kind::Kind;
use crate::pack::{Packed, THREADS};

/// `CU_MEMHOSTALLOC_PORTABLE`: pinned for every context.
const PORTABLE: u32 = 1;
/// `CU_MEMHOSTREGISTER_DEVICEMAP`: kernels reach it.
const MAPPED: u32 = 2;
/// `CU_STREAM_NON_BLOCKING`: not in step with the default stream.
const NON_BLOCKING: u32 = 1;
/// `CU_EVENT_DISABLE_TIMING`.
const NO_TIMING: u32 = 2;

/// A stream with the event that is its mark.
struct Row {
    stream: Handle,
    event: Handle,
    /// Whether something was asked for since the last mark.
    unmarked: bool,
}

/// See the module.
pub(crate) struct CudaDevice {
    api: Arc<Api>,
    number: Number,
    name: String,
    context: Handle,
    module: Handle,
    /// By the order of [`Kind::ALL`].
    kernels: Vec<Handle>,
    device: Vec<(Address, usize)>,
    host: Vec<(*mut u8, usize)>,
    rows: Vec<Row>,
    /// Where registered memory begins.
    registered: Vec<usize>,
}

// SAFETY: handles are the driver's, which may be used from any thread in which the context is
// current; `enter` makes it so. Host memory belongs to this value alone.
unsafe impl Send for CudaDevice {}

impl CudaDevice {
    /// Takes device `number` and compiles `ptx` for it.
    pub(crate) fn open(
        api: Arc<Api>,
        number: i32,
        name: String,
        ptx: &CStr,
    ) -> Result<CudaDevice, DriverError> {
        let mut device = CudaDevice {
            api,
            number: 0,
            name,
            context: core::ptr::null_mut(),
            module: core::ptr::null_mut(),
            kernels: Vec::new(),
            device: Vec::new(),
            host: Vec::new(),
            rows: Vec::new(),
            registered: Vec::new(),
        };
        let api = device.api.clone();
        // SAFETY: both write one handle or number.
        unsafe {
            api.checked(Asked::Open, (api.device_get)(&mut device.number, number))?;
            api.checked(Asked::Open, (api.retain)(&mut device.context, device.number))?;
        }
        device.enter(Asked::Open)?;
        // SAFETY: PTX is a text that ends with 0; one handle is written.
        let status = unsafe { (api.load_module)(&mut device.module, ptx.as_ptr().cast()) };
        api.checked(Asked::Open, status)?;
        for kind in Kind::ALL {
            let name = CString::new(kind.name()).expect("names have no 0");
            let mut kernel = core::ptr::null_mut();
            // SAFETY: the module is loaded, the name a text that ends with 0.
            let status = unsafe { (api.function)(&mut kernel, device.module, name.as_ptr()) };
            api.checked(Asked::Open, status)?;
            device.kernels.push(kernel);
        }
        Ok(device)
    }

    /// Makes the context current in this thread.
    fn enter(&self, asked: Asked) -> Result<(), DriverError> {
        // SAFETY: the context was retained and is not released.
        self.api.checked(asked, unsafe { (self.api.set_current)(self.context) })
    }

    fn checked(&self, asked: Asked, status: Status) -> Result<(), DriverError> {
        self.api.checked(asked, status)
    }

    /// The first `len` bytes of device memory.
    fn within(&self, of: DeviceMemory, len: usize) -> Result<Address, DriverError> {
        match self.device[of.0] {
            (address, bytes) if len <= bytes => Ok(address),
            _ => Err(DriverError::new(Asked::Copy, Problem::Arguments)),
        }
    }

    /// `len` bytes from `at` of host memory.
    fn place(&self, of: HostMemory, at: usize, len: usize) -> *mut u8 {
        let (start, bytes) = self.host[of.0];
        assert!(at <= bytes && len <= bytes - at, "a place in host memory");
        // SAFETY: it lies within the memory, as was just checked.
        unsafe { start.add(at) }
    }

    /// Fails where host memory is shorter than `len`.
    fn reaches(&self, of: HostMemory, len: usize) -> Result<*mut u8, DriverError> {
        match self.host[of.0] {
            (start, bytes) if len <= bytes => Ok(start),
            _ => Err(DriverError::new(Asked::Copy, Problem::Arguments)),
        }
    }

    /// The stream, which is about to be asked for something.
    fn busy(&mut self, stream: Stream) -> Handle {
        let row = &mut self.rows[stream.0];
        row.unmarked = true;
        row.stream
    }

    /// Whether nothing is under way.
    fn is_idle(&mut self) -> bool {
        (0..self.rows.len()).all(|i| !self.rows[i].unmarked && self.passed(Stream(i)) == Ok(true))
    }
}

impl Device for CudaDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn bus(&self) -> Option<String> {
        let (bus, mut text) = (self.api.bus?, [0u8; 32]);
        // SAFETY: it writes a text within the length that it is given.
        let status = unsafe { bus(text.as_mut_ptr().cast(), text.len() as i32, self.number) };
        let text = CStr::from_bytes_until_nul(&text).ok().filter(|_| status == 0)?;
        Some(text.to_string_lossy().into_owned()).filter(|bus| !bus.is_empty())
    }

    fn allocate(&mut self, bytes: usize) -> Result<DeviceMemory, DriverError> {
        self.enter(Asked::Allocate)?;
        let mut address = 0;
        // SAFETY: it writes one address.
        let status = unsafe { (self.api.allocate)(&mut address, bytes.max(1)) };
        self.checked(Asked::Allocate, status)?;
        self.device.push((address, bytes));
        Ok(DeviceMemory(self.device.len() - 1))
    }

    fn address(&self, memory: DeviceMemory) -> u64 {
        self.device[memory.0].0
    }

    fn allocate_host(&mut self, bytes: usize) -> Result<HostMemory, DriverError> {
        self.enter(Asked::Allocate)?;
        let mut start: *mut c_void = core::ptr::null_mut();
        // SAFETY: it writes one pointer.
        let status = unsafe { (self.api.allocate_host)(&mut start, bytes.max(1), PORTABLE) };
        self.checked(Asked::Allocate, status)?;
        // SAFETY: the driver has just given us that many bytes.
        unsafe { start.cast::<u8>().write_bytes(0, bytes) };
        self.host.push((start.cast(), bytes));
        Ok(HostMemory(self.host.len() - 1))
    }

    fn stream(&mut self) -> Result<Stream, DriverError> {
        self.enter(Asked::Allocate)?;
        let (mut stream, mut event) = (core::ptr::null_mut(), core::ptr::null_mut());
        // SAFETY: both write one handle.
        unsafe {
            self.checked(Asked::Allocate, (self.api.stream)(&mut stream, NON_BLOCKING))?;
            self.checked(Asked::Allocate, (self.api.event)(&mut event, NO_TIMING))?;
        }
        self.rows.push(Row { stream, event, unmarked: false });
        Ok(Stream(self.rows.len() - 1))
    }

    fn write(&mut self, memory: HostMemory, at: usize, bytes: &[u8]) {
        let to = self.place(memory, at, bytes.len());
        // SAFETY: the bytes lie in memory that only this value and the device reach.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
    }

    fn read(&self, memory: HostMemory, at: usize, bytes: &mut [u8]) {
        let from = self.place(memory, at, bytes.len());
        // SAFETY: as above.
        unsafe { core::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) }
    }

    fn copy_up(
        &mut self,
        stream: Stream,
        from: HostMemory,
        to: DeviceMemory,
        len: usize,
    ) -> Result<(), DriverError> {
        self.enter(Asked::Copy)?;
        let (from, to) = (self.reaches(from, len)?, self.within(to, len)?);
        let stream = self.busy(stream);
        // SAFETY: both sides have `len` bytes, which stay as long as work is under way.
        let status = unsafe { (self.api.copy_up)(to, from.cast_const().cast(), len, stream) };
        self.checked(Asked::Copy, status)
    }

    fn copy_down(
        &mut self,
        stream: Stream,
        from: DeviceMemory,
        to: HostMemory,
        len: usize,
    ) -> Result<(), DriverError> {
        self.enter(Asked::Copy)?;
        let (from, to) = (self.within(from, len)?, self.reaches(to, len)?);
        let stream = self.busy(stream);
        // SAFETY: both sides have `len` bytes, which stay as long as work is under way.
        let status = unsafe { (self.api.copy_down)(to.cast(), from, len, stream) };
        self.checked(Asked::Copy, status)
    }

    fn copy_within(
        &mut self,
        stream: Stream,
        from: DeviceMemory,
        to: DeviceMemory,
        len: usize,
    ) -> Result<(), DriverError> {
        self.enter(Asked::Copy)?;
        let (from, to) = (self.within(from, len)?, self.within(to, len)?);
        let stream = self.busy(stream);
        // SAFETY: both memories have `len` bytes, which stay as long as work is under way.
        self.checked(Asked::Copy, unsafe { (self.api.copy_within)(to, from, len, stream) })
    }

    fn zero(
        &mut self,
        stream: Stream,
        memory: DeviceMemory,
        len: usize,
    ) -> Result<(), DriverError> {
        self.enter(Asked::Copy)?;
        let address = self.within(memory, len)?;
        let stream = self.busy(stream);
        // SAFETY: the memory has `len` bytes.
        let status = unsafe { (self.api.fill)(address, 0, len, stream) };
        self.checked(Asked::Copy, status)
    }

    unsafe fn launch(&mut self, stream: Stream, batch: &Packed) -> Result<(), DriverError> {
        self.enter(Asked::Launch)?;
        // Places are addresses, for which both bases are null.
        let (mut input, mut out, mut jobs): (Address, Address, u64) = (0, 0, batch.jobs());
        let kernel = self.kernels[batch.kind() as usize];
        let stream = self.busy(stream);
        let mut arguments: [*mut c_void; 3] =
            [(&raw mut input).cast(), (&raw mut out).cast(), (&raw mut jobs).cast()];
        // SAFETY: the kernel has these three arguments, which the call copies; its caller vouches
        // for what it will find in memory.
        let status = unsafe {
            let (list, nothing) = (arguments.as_mut_ptr(), core::ptr::null_mut());
            let (blocks, count) = (batch.blocks(), batch.count());
            (self.api.launch)(kernel, blocks, count, 1, THREADS, 1, 1, 0, stream, list, nothing)
        };
        self.checked(Asked::Launch, status)
    }

    fn register(&mut self, address: usize, bytes: usize) -> Result<u64, DriverError> {
        self.enter(Asked::Register)?;
        let (memory, mut reached): (*mut c_void, Address) =
            (core::ptr::with_exposed_provenance_mut(address), 0);
        // SAFETY: whoever registers memory keeps it until it is taken back. One address is
        // written.
        unsafe {
            let status = (self.api.register)(memory, bytes, PORTABLE | MAPPED);
            self.checked(Asked::Register, status)?;
            let status = (self.api.mapped)(&mut reached, memory, 0);
            if let Err(error) = self.checked(Asked::Register, status) {
                (self.api.unregister)(memory);
                return Err(error);
            }
        }
        self.registered.push(address);
        Ok(reached)
    }

    fn unregister(&mut self, address: usize) -> Result<(), DriverError> {
        self.enter(Asked::Register)?;
        let Some(at) = self.registered.iter().position(|&known| known == address) else {
            return Err(DriverError::new(Asked::Register, Problem::Arguments));
        };
        // SAFETY: it is registered, and nothing under way reaches for it.
        let status =
            unsafe { (self.api.unregister)(core::ptr::with_exposed_provenance_mut(address)) };
        self.checked(Asked::Register, status)?;
        self.registered.swap_remove(at);
        Ok(())
    }

    fn mark(&mut self, stream: Stream) -> Result<(), DriverError> {
        self.enter(Asked::Mark)?;
        let row = &self.rows[stream.0];
        // SAFETY: both handles are this device's.
        let status = unsafe { (self.api.record)(row.event, row.stream) };
        self.checked(Asked::Mark, status)?;
        self.rows[stream.0].unmarked = false;
        Ok(())
    }

    fn passed(&mut self, stream: Stream) -> Result<bool, DriverError> {
        self.enter(Asked::Mark)?;
        // SAFETY: the event is this device's. One that was never recorded has passed.
        match unsafe { (self.api.query)(self.rows[stream.0].event) } {
            NOT_READY => Ok(false),
            status => self.checked(Asked::Mark, status).map(|()| true),
        }
    }
}

impl Drop for CudaDevice {
    /// Gives everything back if nothing is under way. Otherwise the device may yet write to its
    /// memory, and waiting for a device that hangs would hang, so all is kept.
    fn drop(&mut self) {
        if self.context.is_null() || self.enter(Asked::Open).is_err() || !self.is_idle() {
            return;
        }
        // SAFETY: nothing is under way, and nothing uses any of it after this.
        unsafe {
            for address in &self.registered {
                (self.api.unregister)(core::ptr::with_exposed_provenance_mut(*address));
            }
            for (address, _) in &self.device {
                (self.api.free)(*address);
            }
            for (start, _) in &self.host {
                (self.api.free_host)(start.cast());
            }
            for row in &self.rows {
                (self.api.end_event)(row.event);
                (self.api.end_stream)(row.stream);
            }
            if !self.module.is_null() {
                (self.api.unload)(self.module);
            }
            (self.api.release)(self.number);
        }
    }
}
