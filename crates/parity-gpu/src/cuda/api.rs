//! The driver's functions, by the names and types of `cuda.h`.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ffi::CString;

use crate::driver::{Asked, DriverError, Problem};

/// `CUresult`.
pub(crate) type Status = c_int;
/// `CUdevice`.
pub(crate) type Number = c_int;
/// `CUdeviceptr`.
pub(crate) type Address = u64;
/// `CUcontext`, `CUmodule`, `CUfunction`, `CUstream` and `CUevent`: pointers to what only the
/// driver knows.
pub(crate) type Handle = *mut c_void;

/// Text, its most bytes, device.
pub(crate) type Bus = unsafe extern "C" fn(*mut c_char, c_int, Number) -> Status;
/// The function of that type.
const BUS: &str = "cuDeviceGetPCIBusId";

/// `CUDA_ERROR_OUT_OF_MEMORY`.
const OUT_OF_MEMORY: Status = 2;
/// `CUDA_ERROR_NO_DEVICE` and `CUDA_ERROR_INVALID_DEVICE`.
const NO_DEVICE: [Status; 2] = [100, 101];
/// `CUDA_ERROR_NOT_READY`.
pub(crate) const NOT_READY: Status = 600;
/// `CUDA_ERROR_DEVICE_UNAVAILABLE`: somebody else has it, or it is in a mode that forbids us.
const UNAVAILABLE: Status = 46;
/// Errors after which `cuda.h` says that the context is of no use any more: of ECC (214) and
/// NVLink (220), of memory (700, 714, 716, 717), of kernels (702, 710, 715, 718, 719), of the
/// context itself (709), unknown ones (999), and a device that is not ours any more (46).
const LOST: [Status; 14] =
    [UNAVAILABLE, 214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999];

macro_rules! api {
    ($($(#[doc = $doc:literal])* $field:ident = $name:literal ( $($argument:ty),* );)*) => {
        /// The functions that are used.
        pub(crate) struct Api {
            $($(#[doc = $doc])* pub(crate) $field: unsafe extern "C" fn($($argument),*) -> Status,)*
            /// `cuDeviceGetPCIBusId`, which nothing but a meter of watts needs.
            pub(crate) bus: Option<Bus>,
        }

        impl Api {
            /// Loads `library`. It stays loaded: a driver's threads don't end.
            pub(crate) fn load(library: &str) -> Result<Api, DriverError> {
                let opened = open(library)?;
                Ok(Api {
                    // SAFETY: the function has the type that `cuda.h` gives this name; a pointer
                    // to a function is as large as any.
                    $($field: unsafe {
                        core::mem::transmute::<
                            *mut c_void,
                            unsafe extern "C" fn($($argument),*) -> Status,
                        >(find(opened, library, $name)?)
                    },)*
                    // SAFETY: as above.
                    bus: find(opened, library, BUS).ok().map(|found| unsafe {
                        core::mem::transmute::<*mut c_void, Bus>(found)
                    }),
                })
            }
        }
    };
}

api! {
    init = "cuInit" (c_uint);
    device_count = "cuDeviceGetCount" (*mut c_int);
    device_get = "cuDeviceGet" (*mut Number, c_int);
    device_name = "cuDeviceGetName" (*mut c_char, c_int, Number);
    retain = "cuDevicePrimaryCtxRetain" (*mut Handle, Number);
    release = "cuDevicePrimaryCtxRelease" (Number);
    set_current = "cuCtxSetCurrent" (Handle);
    load_module = "cuModuleLoadData" (*mut Handle, *const c_void);
    unload = "cuModuleUnload" (Handle);
    function = "cuModuleGetFunction" (*mut Handle, Handle, *const c_char);
    allocate = "cuMemAlloc_v2" (*mut Address, usize);
    free = "cuMemFree_v2" (Address);
    allocate_host = "cuMemHostAlloc" (*mut *mut c_void, usize, c_uint);
    free_host = "cuMemFreeHost" (*mut c_void);
    register = "cuMemHostRegister_v2" (*mut c_void, usize, c_uint);
    mapped = "cuMemHostGetDevicePointer_v2" (*mut Address, *mut c_void, c_uint);
    unregister = "cuMemHostUnregister" (*mut c_void);
    stream = "cuStreamCreate" (*mut Handle, c_uint);
    end_stream = "cuStreamDestroy_v2" (Handle);
    event = "cuEventCreate" (*mut Handle, c_uint);
    end_event = "cuEventDestroy_v2" (Handle);
    record = "cuEventRecord" (Handle, Handle);
    query = "cuEventQuery" (Handle);
    copy_up = "cuMemcpyHtoDAsync_v2" (Address, *const c_void, usize, Handle);
    copy_down = "cuMemcpyDtoHAsync_v2" (*mut c_void, Address, usize, Handle);
    copy_within = "cuMemcpyDtoDAsync_v2" (Address, Address, usize, Handle);
    fill = "cuMemsetD8Async" (Address, u8, usize, Handle);
    /// Function; grid x, y, z; block x, y, z; bytes of shared memory; stream; pointers to the
    /// arguments; nothing.
    launch = "cuLaunchKernel" (
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle,
        *mut *mut c_void, *mut *mut c_void
    );
    error_name = "cuGetErrorName" (Status, *mut *const c_char);
}

impl Api {
    /// What `status` says.
    pub(crate) fn checked(&self, asked: Asked, status: Status) -> Result<(), DriverError> {
        let problem = match status {
            0 => return Ok(()),
            OUT_OF_MEMORY => Problem::Memory,
            status if NO_DEVICE.contains(&status) => Problem::NoDevice,
            UNAVAILABLE if asked == Asked::Open => Problem::Busy,
            status if LOST.contains(&status) => Problem::Lost(self.name_of(status)),
            status => Problem::Code(status, self.name_of(status)),
        };
        Err(DriverError::new(asked, problem))
    }

    fn name_of(&self, status: Status) -> String {
        let mut name = core::ptr::null();
        // SAFETY: it writes a pointer to a text that stays, or null.
        let known = unsafe { (self.error_name)(status, &mut name) } == 0 && !name.is_null();
        if !known {
            return "unknown".to_owned();
        }
        // SAFETY: the driver's texts end with 0.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    }
}

fn missing(what: String) -> DriverError {
    DriverError::new(Asked::Load, Problem::Missing(what))
}

fn open(library: &str) -> Result<*mut c_void, DriverError> {
    let name = CString::new(library).map_err(|_| missing(library.to_owned()))?;
    // SAFETY: a text that ends with 0. What the library does when it is loaded is what the
    // driver's maker had it do.
    let opened = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if opened.is_null() { Err(missing(library.to_owned())) } else { Ok(opened) }
}

fn find(opened: *mut c_void, library: &str, name: &str) -> Result<*mut c_void, DriverError> {
    let symbol = CString::new(name).expect("names have no 0");
    // SAFETY: the library is open and stays so; the text ends with 0.
    let found = unsafe { libc::dlsym(opened, symbol.as_ptr()) };
    if found.is_null() { Err(missing(format!("{name} in {library}"))) } else { Ok(found) }
}
