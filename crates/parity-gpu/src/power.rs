//! What a device draws, by NVIDIA's management library, found at run time.
//!
//! Purpose: watts beside rates, where the driver tells them. The library comes with the driver;
//! without it, or without rights to it, there is an error and no more.
//! Invariant: a device is known by number and name, as the two libraries need not count alike.
//!
//! Reference: NVML API, chapters of initialization, device queries.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// The library, by the name that every driver installs.
const LIBRARY: &CStr = c"libnvidia-ml.so.1";

type Init = unsafe extern "C" fn() -> c_int;
type ByIndex = unsafe extern "C" fn(c_uint, *mut *mut c_void) -> c_int;
type Name = unsafe extern "C" fn(*mut c_void, *mut c_char, c_uint) -> c_int;
type Usage = unsafe extern "C" fn(*mut c_void, *mut c_uint) -> c_int;

/// The meter of one device.
pub struct Meter {
    usage: Usage,
    device: *mut c_void,
}

impl Meter {
    /// The meter of device `number`, if that is called `name`.
    ///
    /// # Errors
    ///
    /// What is missing or was refused.
    pub fn open(number: usize, name: &str) -> Result<Meter, String> {
        Meter::open_from(LIBRARY, number, name)
    }

    fn open_from(library: &CStr, number: usize, name: &str) -> Result<Meter, String> {
        // SAFETY: a text that ends with 0; what the library does then is its maker's.
        let opened = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if opened.is_null() {
            return Err(format!("no {}", library.to_string_lossy()));
        }
        // SAFETY: each function has the type that `nvml.h` gives this name.
        let (init, by_index, name_of, usage) = unsafe {
            (
                core::mem::transmute::<*mut c_void, Init>(find(opened, c"nvmlInit_v2")?),
                core::mem::transmute::<*mut c_void, ByIndex>(find(
                    opened,
                    c"nvmlDeviceGetHandleByIndex_v2",
                )?),
                core::mem::transmute::<*mut c_void, Name>(find(opened, c"nvmlDeviceGetName")?),
                core::mem::transmute::<*mut c_void, Usage>(find(
                    opened,
                    c"nvmlDeviceGetPowerUsage",
                )?),
            )
        };
        let (mut device, mut text) = (core::ptr::null_mut(), [0u8; 96]);
        let number = c_uint::try_from(number).map_err(|error| error.to_string())?;
        // SAFETY: they write one handle, and a text within the length they are given.
        unsafe {
            checked("nvmlInit_v2", init())?;
            checked("nvmlDeviceGetHandleByIndex_v2", by_index(number, &mut device))?;
            let len = text.len() as c_uint;
            checked("nvmlDeviceGetName", name_of(device, text.as_mut_ptr().cast(), len))?;
        }
        let found = CStr::from_bytes_until_nul(&text).unwrap_or_default().to_string_lossy();
        if found != name {
            return Err(format!("device {number} is {found} there, not {name}"));
        }
        Ok(Meter { usage, device })
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
        let error = |library| Meter::open_from(library, 0, "fake").map(|_| ()).unwrap_err();
        assert_eq!(error(c"libno-such-meter.so.1"), "no libno-such-meter.so.1");
        assert!(error(c"libc.so.6").starts_with("no nvmlInit_v2"));
    }
}
