//! NVIDIA's driver, found at run time.
//!
//! Purpose: the driver behind [`Driver`], by 23 functions of its API that have been there, in this
//! form, since CUDA 7. Nothing of CUDA is needed to build, and a machine without the driver only
//! learns that it is missing.
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
    /// Loads the driver of this machine.
    ///
    /// # Errors
    ///
    /// [`Problem::Missing`] if there is none or it lacks a function; another if it can't start,
    /// as where no device is.
    pub fn load() -> Result<CudaDriver, DriverError> {
        CudaDriver::load_from(LIBRARY)
    }

    /// Loads the library `name`, which has the driver's interface.
    ///
    /// # Errors
    ///
    /// As [`CudaDriver::load`].
    pub(crate) fn load_from(name: &str) -> Result<CudaDriver, DriverError> {
        let api = Arc::new(Api::load(name)?);
        // SAFETY: `cuda.h` gives it one argument, which is 0.
        api.checked(Asked::Load, unsafe { (api.init)(0) })?;
        Ok(CudaDriver { api })
    }

    fn count(&self) -> Result<i32, DriverError> {
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
    use super::*;

    #[test]
    fn a_missing_driver_is_an_error_and_no_more() {
        let error = CudaDriver::load_from("libno-such-driver.so.1").map(|_| ()).unwrap_err();
        assert_eq!(error.asked, Asked::Load);
        assert!(matches!(error.problem, Problem::Missing(_)), "{error}");
    }

    /// Every call, in a thread that did not open the device.
    #[test]
    fn the_stand_in_passes_the_known_answers() {
        let driver = CudaDriver::load_from(env!("PALISADE_STANDIN")).unwrap();
        assert_eq!(driver.devices().unwrap(), ["stand-in"]);
        assert_eq!(driver.open(1).map(|_| ()).unwrap_err().problem, Problem::NoDevice);
        let device = driver.open(0).unwrap();
        let tested = std::thread::spawn(move || {
            let start = std::time::Instant::now();
            let mut clock = || start.elapsed();
            let queue = crate::open::<Vec<u8>, Vec<u8>>(device, Default::default(), &mut clock);
            queue.map(|queue| queue.device().to_owned())
        });
        assert_eq!(tested.join().unwrap(), Ok("stand-in".to_owned()));
    }

    /// Each call in a thread of its own, where no context is current yet.
    #[test]
    fn a_device_moves_between_threads() {
        fn apart<T: Send>(call: impl FnOnce() -> T + Send) -> T {
            std::thread::scope(|scope| scope.spawn(call).join().unwrap())
        }
        let driver = CudaDriver::load_from(env!("PALISADE_STANDIN")).unwrap();
        let mut device = driver.open(0).unwrap();
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
        assert!(apart(|| device.passed(stream)).unwrap());
        let mut bytes = [1; 64];
        device.read(host, 0, &mut bytes);
        assert_eq!((&bytes[..32], &bytes[32..]), (&[0; 32][..], &[7; 32][..]));
        let too_far = device.copy_up(stream, host, memory, 65).unwrap_err();
        assert_eq!(too_far.problem, Problem::Arguments);
    }

    /// More than the stand-in gives.
    #[test]
    fn too_little_memory_is_an_error_and_no_more() {
        let driver = CudaDriver::load_from(env!("PALISADE_STANDIN")).unwrap();
        let error = driver.open(0).unwrap().allocate(2 << 30).unwrap_err();
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
        assert!(PTX.contains(".version 6.3") && PTX.contains(".target sm_75"));
    }
}
