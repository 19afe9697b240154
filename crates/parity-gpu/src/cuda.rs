//! NVIDIA's driver, found at run time.
//!
//! Purpose: the driver behind [`Driver`], by a few functions of its API that have been there, in
//! this form, since CUDA 7. Nothing of CUDA is needed to build, and a machine without the driver
//! only learns that it is missing.
//! Invariants: a function is called only with the types of `cuda.h`; the context is made current
//! before each, so that a device can move between threads. Memory is freed only once all marks
//! have passed.
//!
//! Reference: CUDA Driver API, module chapters 6.2 to 6.21. The kernels are PTX, which the driver
//! compiles for its device when one is opened.
#![allow(unsafe_code)]

mod api;
mod device;

use std::ffi::CString;
use std::sync::Arc;

use crate::driver::{Asked, Device, Driver, DriverError, Problem};
use api::Api;
use device::CudaDevice;

/// The driver's library, by the name that every driver installs.
const LIBRARY: &str = "libcuda.so.1";

/// The kernels, as `script/kernels` makes them.
pub(crate) const PTX: &str = include_str!("../kernels/parity.ptx");

/// NVIDIA's driver.
pub struct CudaDriver {
    api: Arc<Api>,
}

impl CudaDriver {
    /// Loads the driver of this machine. It is started only when it is asked for devices, as that
    /// can take long.
    ///
    /// # Errors
    ///
    /// [`Problem::Missing`] if there is none or it lacks a function.
    pub fn load() -> Result<CudaDriver, DriverError> {
        CudaDriver::load_from(LIBRARY)
    }

    /// Loads the library `name`, which has the driver's interface.
    ///
    /// # Errors
    ///
    /// As [`CudaDriver::load`].
    pub(crate) fn load_from(name: &str) -> Result<CudaDriver, DriverError> {
        Ok(CudaDriver { api: Arc::new(Api::load(name)?) })
    }

    /// How many devices there are. Starts the driver, if that was not done yet.
    fn count(&self) -> Result<i32, DriverError> {
        // SAFETY: `cuda.h` gives it one argument, which is 0.
        self.api.checked(Asked::Load, unsafe { (self.api.init)(0) })?;
        let mut count = 0;
        // SAFETY: it writes one number.
        self.api.checked(Asked::List, unsafe { (self.api.device_count)(&mut count) })?;
        Ok(count)
    }
}

impl Driver for CudaDriver {
    fn devices(&self) -> Result<Vec<String>, DriverError> {
        (0..self.count()?).map(|number| name(&self.api, number)).collect()
    }

    fn open(&self, number: usize) -> Result<Box<dyn Device>, DriverError> {
        let count = self.count()?;
        let Some(number) = i32::try_from(number).ok().filter(|&number| number < count) else {
            return Err(DriverError::new(Asked::Open, Problem::NoDevice));
        };
        let name = name(&self.api, number)?;
        let ptx = CString::new(PTX).expect("PTX is text");
        Ok(Box::new(CudaDevice::open(self.api.clone(), number, name, &ptx)?))
    }
}

/// Loads NVIDIA's driver; a [`Load`](crate::Load).
///
/// # Errors
///
/// As [`CudaDriver::load`].
pub fn load() -> Result<Box<dyn Driver>, DriverError> {
    Ok(Box::new(CudaDriver::load()?))
}

/// Ends the process at once with `status`: what a driver wants done at the end, which can hang as
/// its calls can, is not.
pub fn end_process(status: i32) -> ! {
    // SAFETY: it has no condition, and nothing of this process runs after it.
    unsafe { libc::_exit(status) }
}

/// The name of device `number`.
fn name(api: &Api, number: i32) -> Result<String, DriverError> {
    let mut bytes = [0u8; 256];
    let mut device = 0;
    // SAFETY: they write one number, and a text within the length they are given.
    unsafe {
        api.checked(Asked::List, (api.device_get)(&mut device, number))?;
        let status = (api.device_name)(bytes.as_mut_ptr().cast(), bytes.len() as i32, device);
        api.checked(Asked::List, status)?;
    }
    let len = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    Ok(String::from_utf8_lossy(&bytes[..len]).into_owned())
}

#[cfg(test)]
mod tests {
    use core::ffi::{CStr, c_void};
    use std::mem::transmute;
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::time::Duration;

    use super::*;
    use crate::fence::{Fence, Limits};
    use crate::queue::Queue;

    #[test]
    fn a_missing_driver_is_an_error_and_no_more() {
        let error = CudaDriver::load_from("libno-such-driver.so.1").map(|_| ()).unwrap_err();
        assert_eq!(error.asked, Asked::Load);
        assert!(matches!(error.problem, Problem::Missing(_)), "{error}");
    }

    /// The stand-in is one library for the whole process.
    static ONE: Mutex<()> = Mutex::new(());

    /// The stand-in, its driver, and nobody else.
    struct StandIn {
        driver: CudaDriver,
        _one: MutexGuard<'static, ()>,
    }

    impl StandIn {
        fn new() -> StandIn {
            let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
            let driver = CudaDriver::load_from(env!("PALISADE_STANDIN")).unwrap();
            StandIn { driver, _one: one }
        }

        /// The function `name` of the stand-in.
        fn function(name: &CStr) -> *mut c_void {
            let library = CString::new(env!("PALISADE_STANDIN")).unwrap();
            // SAFETY: both are texts; the library is loaded.
            unsafe {
                let opened = libc::dlopen(library.as_ptr(), libc::RTLD_NOW);
                libc::dlsym(opened, name.as_ptr())
            }
        }

        fn fail(calls: i32, status: i32) {
            let function = StandIn::function(c"standin_fail");
            // SAFETY: `standin.c` declares it so.
            let function: unsafe extern "C" fn(i32, i32) = unsafe { transmute(function) };
            // SAFETY: it takes two numbers.
            unsafe { function(calls, status) };
        }

        fn busy(yes: bool) {
            let function = StandIn::function(c"standin_busy");
            // SAFETY: `standin.c` declares it so.
            let function: unsafe extern "C" fn(i32) = unsafe { transmute(function) };
            // SAFETY: it takes a number.
            unsafe { function(yes.into()) };
        }

        /// Contexts, modules, memories, host memories, registered ones, streams and events.
        fn counts() -> [i32; 7] {
            let function = StandIn::function(c"standin_counts");
            // SAFETY: `standin.c` declares it so.
            let function: unsafe extern "C" fn(*mut i32) = unsafe { transmute(function) };
            let mut counts = [0; 7];
            // SAFETY: it writes seven numbers.
            unsafe { function(counts.as_mut_ptr()) };
            counts
        }
    }

    fn opened(device: Box<dyn Device>) -> Result<Queue<Vec<u8>, Vec<u8>, ()>, Fence> {
        let start = std::time::Instant::now();
        let limits = Limits { patience: Duration::from_secs(60), ..Limits::default() };
        let opened = crate::selftest::open(device, limits, &mut || start.elapsed());
        opened.map(|(queue, _)| queue)
    }

    /// Every call, in a thread that did not open the device; and everything is given back.
    #[test]
    fn the_stand_in_passes_the_known_answers() {
        let alone = StandIn::new();
        assert_eq!(alone.driver.devices().unwrap(), ["stand-in"]);
        assert_eq!(alone.driver.open(1).map(|_| ()).unwrap_err().problem, Problem::NoDevice);
        // A library that lacks what only meters need does for all else.
        assert_eq!(alone.driver.open(0).unwrap().bus(), None);
        let before = StandIn::counts();
        let device = alone.driver.open(0).unwrap();
        let tested = std::thread::spawn(move || {
            let queue = opened(device)?;
            let [.., streams, events] = StandIn::counts();
            assert_eq!((streams, events), (3 + before[5], 3 + before[6]));
            Ok::<_, Fence>(queue.device().to_owned())
        });
        assert_eq!(tested.join().unwrap(), Ok("stand-in".to_owned()));
        assert_eq!(StandIn::counts(), before, "all is given back");
    }

    /// Whichever call fails, an error says so, and everything is given back.
    #[test]
    fn any_call_can_fail() {
        let alone = StandIn::new();
        let before = StandIn::counts();
        let mut failed = 0;
        for calls in (0..60).chain([100, 200, 400]) {
            StandIn::fail(calls, 719);
            let unopened = StandIn::counts();
            let device = alone.driver.open(0).map_err(Fence::Failed);
            let given_back = StandIn::counts() == unopened;
            assert_eq!(device.is_err(), given_back, "a device that is not opened is given back");
            let tested = device.and_then(opened);
            StandIn::fail(-1, 0);
            match tested {
                Err(Fence::Failed(error)) => {
                    assert!(matches!(error.problem, Problem::Lost(_)), "{error}");
                    failed += 1;
                }
                Err(other) => panic!("{other}"),
                Ok(_) => {}
            }
        }
        assert!(failed > 50, "{failed} of 63 failed");
        let after = StandIn::counts();
        assert!(after.iter().zip(before).all(|(after, before)| *after >= before));
        StandIn::fail(0, 46);
        let busy = alone.driver.open(0).map(|_| ()).unwrap_err();
        assert_eq!((busy.asked, busy.problem), (Asked::Open, Problem::Busy));
    }

    /// A device that is dropped with work under way keeps all that this work may reach.
    #[test]
    fn nothing_is_freed_under_a_device_that_works() {
        let alone = StandIn::new();
        let mut device = alone.driver.open(0).unwrap();
        let stream = device.stream().unwrap();
        let (up, down) = (device.allocate_host(64).unwrap(), device.allocate(64).unwrap());
        device.copy_up(stream, up, down, 64).unwrap();
        let before = StandIn::counts();
        drop(device);
        assert_eq!(StandIn::counts(), before, "no mark behind the copy");

        let mut device = alone.driver.open(0).unwrap();
        let stream = device.stream().unwrap();
        device.mark(stream).unwrap();
        StandIn::busy(true);
        let before = StandIn::counts();
        drop(device);
        StandIn::busy(false);
        assert_eq!(StandIn::counts(), before, "the mark has not passed");
    }

    /// Each call in a thread of its own, where no context is current yet.
    #[test]
    fn a_device_moves_between_threads() {
        fn apart<T: Send>(call: impl FnOnce() -> T + Send) -> T {
            std::thread::scope(|scope| scope.spawn(call).join().unwrap())
        }
        let alone = StandIn::new();
        let mut device = alone.driver.open(0).unwrap();
        let memory = apart(|| device.allocate(64)).unwrap();
        let host = apart(|| device.allocate_host(64)).unwrap();
        let stream = apart(|| device.stream()).unwrap();
        device.write(host, 0, &[7; 64]);
        apart(|| device.copy_up(stream, host, memory, 64)).unwrap();
        apart(|| device.zero(stream, memory, 32)).unwrap();
        let second = apart(|| device.allocate(64)).unwrap();
        apart(|| device.copy_within(stream, memory, second, 64)).unwrap();
        let memory = second;
        apart(|| device.copy_down(stream, memory, host, 64)).unwrap();
        apart(|| device.mark(stream)).unwrap();
        assert!(!apart(|| device.passed(stream)).unwrap(), "not at first");
        while !apart(|| device.passed(stream)).unwrap() {}
        let mut bytes = [1; 64];
        device.read(host, 0, &mut bytes);
        assert_eq!((&bytes[..32], &bytes[32..]), (&[0; 32][..], &[7; 32][..]));
        let too_far = device.copy_up(stream, host, memory, 65).unwrap_err();
        assert_eq!(too_far.problem, Problem::Arguments);
        let own = crate::memory::Aligned::zeros(4096);
        let address = own.as_ptr().expose_provenance();
        let before = StandIn::counts();
        assert_eq!(apart(|| device.register(address, 4096)), Ok(address as u64));
        assert_eq!(StandIn::counts()[4], before[4] + 1);
        apart(|| device.unregister(address)).unwrap();
        assert_eq!(StandIn::counts(), before);
        assert!(device.unregister(address).is_err());
    }

    /// More than the stand-in gives.
    #[test]
    fn too_little_memory_is_an_error_and_no_more() {
        let alone = StandIn::new();
        let error = alone.driver.open(0).unwrap().allocate(2 << 30).unwrap_err();
        assert_eq!((error.asked, error.problem), (Asked::Allocate, Problem::Memory));
    }

    #[test]
    fn a_library_without_the_interface_is_named() {
        let error = CudaDriver::load_from("libc.so.6").map(|_| ()).unwrap_err();
        let missing = Problem::Missing("cuInit in libc.so.6".to_owned());
        assert_eq!(error.problem, missing);
    }

    #[test]
    fn every_kernel_is_in_the_ptx() {
        for kind in crate::Kind::ALL {
            assert!(PTX.contains(&format!(".visible .entry {}(", kind.name())), "{kind:?}");
        }
        assert!(PTX.contains(".version 6.0") && PTX.contains(".target sm_70"));
    }
}
