//! What a device draws, by NVIDIA's management library, found at run time.
//!
//! Purpose: watts beside rates, where the driver tells them. The library comes with the driver;
//! without it, or without rights to it, there is an error and no more.
//! Invariant: a device is known by its place on the PCI bus: the two libraries count differently,
//! and GPUs of one machine have the same name.
//!
//! Reference: NVML API, chapters of initialization, device queries.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ffi::CString;

/// The library, by the name that every driver installs.
const LIBRARY: &CStr = c"libnvidia-ml.so.1";

type Init = unsafe extern "C" fn() -> c_int;
type ByBus = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int;
type Usage = unsafe extern "C" fn(*mut c_void, *mut c_uint) -> c_int;

/// The library's functions that are used.
#[derive(Clone, Copy)]
struct Functions {
    init: Init,
    by_bus: ByBus,
    usage: Usage,
}

impl Functions {
    fn load(library: &CStr) -> Result<Functions, String> {
        // SAFETY: a text that ends with 0; what the library does then is its maker's.
        let opened = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if opened.is_null() {
            return Err(format!("no {}", library.to_string_lossy()));
        }
        let init = find(opened, c"nvmlInit_v2")?;
        let by_bus = find(opened, c"nvmlDeviceGetHandleByPciBusId_v2")?;
        let usage = find(opened, c"nvmlDeviceGetPowerUsage")?;
        // SAFETY: each function has the type that `nvml.h` gives this name.
        unsafe {
            Ok(Functions {
                init: core::mem::transmute::<*mut c_void, Init>(init),
                by_bus: core::mem::transmute::<*mut c_void, ByBus>(by_bus),
                usage: core::mem::transmute::<*mut c_void, Usage>(usage),
            })
        }
    }
}

/// The meter of one device.
pub struct Meter {
    usage: Usage,
    device: *mut c_void,
}

impl Meter {
    /// The meter of the device at this place on the PCI bus, see
    /// [`Device::bus`](crate::Device::bus).
    ///
    /// # Errors
    ///
    /// What is missing or was refused.
    pub fn open(bus: Option<&str>) -> Result<Meter, String> {
        Meter::with(bus, || Functions::load(LIBRARY))
    }

    fn with(
        bus: Option<&str>,
        functions: impl FnOnce() -> Result<Functions, String>,
    ) -> Result<Meter, String> {
        let bus = bus.ok_or("the driver does not tell which device of the machine it is")?;
        let text = CString::new(bus).map_err(|error| error.to_string())?;
        let (functions, mut device) = (functions()?, core::ptr::null_mut());
        // SAFETY: the text ends with 0; one handle is written.
        unsafe {
            checked("nvmlInit_v2", (functions.init)())?;
            let what = format!("nvmlDeviceGetHandleByPciBusId_v2 of {bus}");
            checked(&what, (functions.by_bus)(text.as_ptr(), &mut device))?;
        }
        Ok(Meter { usage: functions.usage, device })
    }

    /// What it draws now, or drew in the last second, in watts.
    ///
    /// # Errors
    ///
    /// That the device does not tell.
    pub fn watts(&self) -> Result<f64, String> {
        let mut milliwatts = 0;
        // SAFETY: it writes one number; the library stays loaded.
        checked("nvmlDeviceGetPowerUsage", unsafe { (self.usage)(self.device, &mut milliwatts) })?;
        Ok(f64::from(milliwatts) / 1e3)
    }
}

fn find(opened: *mut c_void, name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: the library is open and stays so; the text ends with 0.
    let found = unsafe { libc::dlsym(opened, name.as_ptr()) };
    match found.is_null() {
        true => Err(format!("no {} in {}", name.to_string_lossy(), LIBRARY.to_string_lossy())),
        false => Ok(found),
    }
}

fn checked(what: &str, status: c_int) -> Result<(), String> {
    if status == 0 { Ok(()) } else { Err(format!("{what}: error {status}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_or_function_is_named() {
        let error = |library| Functions::load(library).map(|_| ()).unwrap_err();
        assert_eq!(error(c"libno-such-meter.so.1"), "no libno-such-meter.so.1");
        assert!(error(c"libc.so.6").starts_with("no nvmlInit_v2"));
    }

    unsafe extern "C" fn init() -> c_int {
        0
    }

    /// Two devices, of 100 W and 200 W; 6 is `NVML_ERROR_NOT_FOUND`.
    unsafe extern "C" fn by_bus(text: *const c_char, device: *mut *mut c_void) -> c_int {
        // SAFETY: a text that ends with 0.
        let number = match unsafe { CStr::from_ptr(text) }.to_bytes() {
            b"0000:3b:00.0" => 100,
            b"0000:af:00.0" => 200,
            _ => return 6,
        };
        // SAFETY: one handle.
        unsafe { *device = core::ptr::without_provenance_mut(number) };
        0
    }

    unsafe extern "C" fn usage(device: *mut c_void, milliwatts: *mut c_uint) -> c_int {
        // SAFETY: one number.
        unsafe { *milliwatts = 1000 * device.addr() as c_uint };
        0
    }

    #[test]
    fn a_device_is_known_by_its_place() {
        let functions = || Ok(Functions { init, by_bus, usage });
        let of = |bus| Meter::with(bus, functions).and_then(|meter| meter.watts());
        assert_eq!((of(Some("0000:3b:00.0")), of(Some("0000:af:00.0"))), (Ok(100.0), Ok(200.0)));
        let other = of(Some("0000:00:00.0")).unwrap_err();
        assert_eq!(other, "nvmlDeviceGetHandleByPciBusId_v2 of 0000:00:00.0: error 6");
        assert!(of(None).unwrap_err().contains("does not tell"));
    }
}
