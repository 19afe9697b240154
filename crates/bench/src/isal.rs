//! Intel ISA-L, loaded at run time: the yardstick of `palisade bench parity`, and of nothing else.
//!
//! The library is opened by `dlopen`; the product neither links it nor needs it. Its functions
//! choose their own best code for the processor when they are called first ("multibinary"), and
//! each one's entry then is a jump through a pointer to that code, or to the linker's stub for it,
//! which is another such jump. [`Isal::chosen`] follows the jumps and asks the loader for the
//! symbol where they end, so the names are those of the code that runs, not a guess from
//! processor features. Where an entry has another form (other
//! processors than x86-64), the name is not known.
//!
//! Sources: ISA-L 2.30, `include/raid.h`, `include/erasure_code.h`, `include/crc.h`,
//! `include/multibinary.asm`.
//!
//! Invariants
//! - Nothing is called before every slice was found to be of one length that is a multiple of 64
//!   and to begin at a multiple of 64, which is what ISA-L asks for or more.
//! - The library is never closed, so its functions stay where they are.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_int, c_uchar, c_uint, c_void};
use std::ffi::CString;
use std::path::{Path, PathBuf};

/// The name under which distributions install the library.
pub const SONAME: &str = "libisal.so.2";
/// Strips that one call takes, at most.
const MAX_STRIPS: usize = 64;
/// Alignment and granularity of everything passed.
const ALIGN: usize = 64;

type XorGen = unsafe extern "C" fn(c_int, c_int, *mut *mut c_void) -> c_int;
type InitTables = unsafe extern "C" fn(c_int, c_int, *const c_uchar, *mut c_uchar);
type Encode =
    unsafe extern "C" fn(c_int, c_int, c_int, *mut c_uchar, *mut *mut c_uchar, *mut *mut c_uchar);
type Update =
    unsafe extern "C" fn(c_int, c_int, c_int, c_int, *mut c_uchar, *mut c_uchar, *mut *mut c_uchar);
type Invert = unsafe extern "C" fn(*mut c_uchar, *mut c_uchar, c_int) -> c_int;
type Crc = unsafe extern "C" fn(*const c_uchar, c_int, c_uint) -> c_uint;

/// The library's functions.
pub struct Isal {
    file: PathBuf,
    xor_gen: XorGen,
    pq_gen: XorGen,
    init_tables: InitTables,
    encode: Encode,
    update: Update,
    invert: Invert,
    crc32_iscsi: Crc,
}

/// A matrix in the form that ISA-L's kernels multiply by.
pub struct Tables {
    bytes: Vec<u8>,
    data: usize,
    rows: usize,
}

/// What the loader says about its last failure.
fn loader_error() -> String {
    // SAFETY: `dlerror` gives null or a string that lives until this thread's next call.
    let text = unsafe {
        let text = libc::dlerror();
        if text.is_null() { None } else { Some(CStr::from_ptr(text)) }
    };
    text.map_or("unknown".to_owned(), |t| t.to_string_lossy().into_owned())
}

/// A function of the library, as an address.
fn symbol(library: *mut c_void, name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: `library` is an open library, `name` a string of C.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    if address.is_null() { Err(loader_error()) } else { Ok(address) }
}

/// The file that holds an address, and the symbol that begins exactly there.
fn place(address: *const c_void) -> Option<(PathBuf, Option<String>)> {
    let mut found = libc::Dl_info {
        dli_fname: core::ptr::null(),
        dli_fbase: core::ptr::null_mut(),
        dli_sname: core::ptr::null(),
        dli_saddr: core::ptr::null_mut(),
    };
    // SAFETY: any address may be asked for; `found` is exclusive.
    if unsafe { libc::dladdr(address, &mut found) } == 0 || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's strings live as long as the library, which is never closed.
    let text = |at| unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned();
    let exact = !found.dli_sname.is_null() && found.dli_saddr.cast_const() == address;
    let file = PathBuf::from(text(found.dli_fname));
    Some((file.canonicalize().unwrap_or(file), exact.then(|| text(found.dli_sname))))
}

/// Where code that is only a jump (`endbr64`, `jmp *offset(%rip)`, with or without `bnd`) goes
/// to; `None` if it has another form.
#[cfg(target_arch = "x86_64")]
fn jump_target(code: *const c_void) -> Option<*const c_void> {
    // SAFETY: `code` is a function or a stub of a loaded library. Its text is mapped for reading
    // in whole pages, and what follows the text's last function in its page is zeros.
    let bytes: [u8; 11] = unsafe { code.cast::<[u8; 11]>().read() };
    let endbr64 = if bytes.starts_with(&[0xf3, 0x0f, 0x1e, 0xfa]) { 4 } else { 0 };
    let bnd = usize::from(bytes[endbr64] == 0xf2);
    let (jump, end) = (endbr64 + bnd, endbr64 + bnd + 6);
    let offset: [u8; 4] = bytes[jump..end].strip_prefix(&[0xff, 0x25])?.try_into().ok()?;
    let offset = i32::from_le_bytes(offset) as isize;
    let slot = code.wrapping_byte_add(end).wrapping_byte_offset(offset);
    // SAFETY: the jump itself reads this pointer, so it is mapped.
    Some(unsafe { slot.cast::<*const c_void>().read_unaligned() })
}

/// The name is not known.
#[cfg(not(target_arch = "x86_64"))]
fn jump_target(_code: *const c_void) -> Option<*const c_void> {
    None
}

impl Isal {
    /// Opens the library at `path`, or the one of that name that the loader finds.
    ///
    /// # Errors
    /// What the loader says if the library or one of its functions is not there.
    pub fn load(path: &Path) -> Result<Self, String> {
        let name = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|e| e.to_string())?;
        // SAFETY: opening runs the library's initialisers; ISA-L's have no demands.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return Err(loader_error());
        }
        let xor_gen = symbol(library, c"xor_gen")?;
        let (file, _) = place(xor_gen).ok_or("the loader does not know its file")?;
        // SAFETY: each function has the type that ISA-L's headers declare under its name.
        unsafe {
            Ok(Self {
                file,
                xor_gen: core::mem::transmute::<*mut c_void, XorGen>(xor_gen),
                pq_gen: core::mem::transmute::<*mut c_void, XorGen>(symbol(library, c"pq_gen")?),
                init_tables: core::mem::transmute::<*mut c_void, InitTables>(symbol(
                    library,
                    c"ec_init_tables",
                )?),
                encode: core::mem::transmute::<*mut c_void, Encode>(symbol(
                    library,
                    c"ec_encode_data",
                )?),
                update: core::mem::transmute::<*mut c_void, Update>(symbol(
                    library,
                    c"ec_encode_data_update",
                )?),
                invert: core::mem::transmute::<*mut c_void, Invert>(symbol(
                    library,
                    c"gf_invert_matrix",
                )?),
                crc32_iscsi: core::mem::transmute::<*mut c_void, Crc>(symbol(
                    library,
                    c"crc32_iscsi",
                )?),
            })
        }
    }

    /// The library's file, links resolved: its name carries the release (`…so.2.0.30` is 2.30).
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The code that each function chose for this processor, where that can be told; the
    /// function's own name and `?` where not. A function that was never called is called first.
    pub fn chosen(&self) -> Vec<String> {
        self.call_each_once();
        let functions: [(&str, *const c_void); 5] = [
            ("xor_gen", self.xor_gen as *const c_void),
            ("pq_gen", self.pq_gen as *const c_void),
            ("ec_encode_data", self.encode as *const c_void),
            ("ec_encode_data_update", self.update as *const c_void),
            ("crc32_iscsi", self.crc32_iscsi as *const c_void),
        ];
        let name = |(function, entry): (&str, *const c_void)| {
            // From the entry to the pointer's target, which may be one more jump of the linker's.
            let first = jump_target(entry);
            let last = first.map(|first| jump_target(first).unwrap_or(first));
            let name = last.and_then(place).and_then(|(_, name)| name);
            name.unwrap_or_else(|| format!("{function}?"))
        };
        functions.into_iter().map(name).collect()
    }

    /// Makes every function choose its code.
    fn call_each_once(&self) {
        let data = io::Pool::single(ALIGN);
        let (mut p, mut q) = (io::Pool::single(ALIGN), io::Pool::single(ALIGN));
        let tables = self.tables(2, 2, &[1, 1, 1, 2]);
        self.xor_gen(&[&data, &data], &mut p);
        self.pq_gen(&[&data, &data], &mut p, &mut q);
        self.encode(&tables, &[&data, &data], &mut [&mut p, &mut q]);
        self.update(&tables, 1, &data, [&mut p, &mut q]);
        self.crc32c(0, &data);
    }

    /// `to` = the sum of `data` (`xor_gen`).
    pub fn xor_gen(&self, data: &[&[u8]], to: &mut [u8]) {
        let mut pointers = Pointers::new(to.len());
        data.iter().for_each(|strip| pointers.input(strip));
        pointers.output(to);
        // SAFETY: the last pointer is the output's, all of the checked length and alignment.
        let rc = unsafe { (self.xor_gen)(pointers.count(), pointers.len(), pointers.void()) };
        assert_eq!(rc, 0, "xor_gen takes these strips");
    }

    /// P and Q of `data` (`pq_gen`).
    pub fn pq_gen(&self, data: &[&[u8]], p: &mut [u8], q: &mut [u8]) {
        let mut pointers = Pointers::new(p.len());
        data.iter().for_each(|strip| pointers.input(strip));
        pointers.output(p);
        pointers.output(q);
        // SAFETY: the last two pointers are the outputs', all of the checked length and alignment.
        let rc = unsafe { (self.pq_gen)(pointers.count(), pointers.len(), pointers.void()) };
        assert_eq!(rc, 0, "pq_gen takes these strips");
    }

    /// Prepares `matrix`: `rows` rows of `data` coefficients (`ec_init_tables`).
    pub fn tables(&self, data: usize, rows: usize, matrix: &[u8]) -> Tables {
        assert_eq!(matrix.len(), data * rows, "one coefficient for each row and strip");
        assert!(data <= MAX_STRIPS && rows <= MAX_STRIPS, "that many strips");
        let mut bytes = vec![0; 32 * data * rows];
        // SAFETY: ISA-L reads data·rows bytes and writes 32·data·rows.
        unsafe {
            let (k, rows) = (data as c_int, rows as c_int);
            (self.init_tables)(k, rows, matrix.as_ptr(), bytes.as_mut_ptr());
        }
        Tables { bytes, data, rows }
    }

    /// The matrix times `data` (`ec_encode_data`).
    pub fn encode(&self, tables: &Tables, data: &[&[u8]], to: &mut [&mut [u8]]) {
        assert_eq!((data.len(), to.len()), (tables.data, tables.rows), "as the matrix has");
        let len = data[0].len();
        let (mut inputs, mut outputs) = (Pointers::new(len), Pointers::new(len));
        data.iter().for_each(|strip| inputs.input(strip));
        to.iter_mut().for_each(|strip| outputs.output(strip));
        let table = tables.bytes.as_ptr().cast_mut();
        // SAFETY: as many strips as the tables were made for, all of the checked length; ISA-L
        // only reads the tables and the inputs.
        unsafe {
            let (k, rows) = (inputs.count(), outputs.count());
            (self.encode)(inputs.len(), k, rows, table, inputs.bytes(), outputs.bytes());
        }
    }

    /// Adds column `index` of the matrix times `change` to the outputs
    /// (`ec_encode_data_update`).
    pub fn update<const N: usize>(
        &self,
        tables: &Tables,
        index: usize,
        change: &[u8],
        to: [&mut [u8]; N],
    ) {
        assert!(index < tables.data && N == tables.rows, "as the matrix has");
        let (mut input, mut outputs) = (Pointers::new(change.len()), Pointers::new(change.len()));
        input.input(change);
        to.into_iter().for_each(|strip| outputs.output(strip));
        let table = tables.bytes.as_ptr().cast_mut();
        // SAFETY: as in `encode`; `index` is a column of the tables.
        unsafe {
            let (k, rows) = (tables.data as c_int, outputs.count());
            let (index, change) = (index as c_int, change.as_ptr().cast_mut());
            (self.update)(input.len(), k, rows, index, table, change, outputs.bytes());
        }
    }

    /// The inverse of a square matrix of `n` rows (`gf_invert_matrix`); `None` if it has none.
    pub fn inverse(&self, matrix: &[u8], n: usize) -> Option<Vec<u8>> {
        assert!(matrix.len() == n * n && n <= MAX_STRIPS, "a square matrix");
        let (mut work, mut inverse) = (matrix.to_vec(), vec![0; n * n]);
        // SAFETY: ISA-L reads and writes n·n bytes of each.
        let rc = unsafe { (self.invert)(work.as_mut_ptr(), inverse.as_mut_ptr(), n as c_int) };
        (rc == 0).then_some(inverse)
    }

    /// CRC-32C of `bytes` after bytes whose CRC-32C is `seed` (`crc32_iscsi`, which leaves both
    /// inversions to its caller).
    pub fn crc32c(&self, seed: u32, bytes: &[u8]) -> u32 {
        let len = c_int::try_from(bytes.len()).expect("a strip is below 2 GiB");
        // SAFETY: ISA-L reads `len` bytes.
        !unsafe { (self.crc32_iscsi)(bytes.as_ptr(), len, !seed) }
    }
}

/// The pointers of one call.
struct Pointers {
    all: [*mut c_void; MAX_STRIPS],
    used: usize,
    bytes: usize,
}

impl Pointers {
    fn new(bytes: usize) -> Self {
        assert!(bytes.is_multiple_of(ALIGN) && c_int::try_from(bytes).is_ok(), "a strip's length");
        Self { all: [core::ptr::null_mut(); MAX_STRIPS], used: 0, bytes }
    }

    fn add(&mut self, strip: *mut c_void, bytes: usize) {
        assert_eq!(bytes, self.bytes, "strips of one length");
        assert_eq!(strip.addr() % ALIGN, 0, "strips begin at multiples of {ALIGN}");
        self.all[self.used] = strip;
        self.used += 1;
    }

    /// A strip that ISA-L only reads.
    fn input(&mut self, strip: &[u8]) {
        self.add(strip.as_ptr().cast_mut().cast(), strip.len());
    }

    fn output(&mut self, strip: &mut [u8]) {
        self.add(strip.as_mut_ptr().cast(), strip.len());
    }

    fn count(&self) -> c_int {
        self.used as c_int
    }

    fn len(&self) -> c_int {
        self.bytes as c_int
    }

    fn void(&mut self) -> *mut *mut c_void {
        self.all.as_mut_ptr()
    }

    fn bytes(&mut self) -> *mut *mut c_uchar {
        self.all.as_mut_ptr().cast()
    }
}
