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
//! - [`Strips`] and [`Changes`], which calls take, exist only after every slice was found to be of
//!   one length that is a multiple of 64 and to begin at a multiple of 64, which is what ISA-L asks
//!   for or more. They hold the pointers, so that a timed call builds and checks none.
//! - The library is never closed, so its functions stay where they are.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_int, c_uchar, c_uint, c_void};
use core::marker::PhantomData;
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
        let (mut change, tables) = (io::Pool::single(ALIGN), self.tables(2, 2, &[1, 1, 1, 2]));
        self.xor_gen(&mut Strips::new(&[&data, &data], vec![&mut p]));
        let mut strips = Strips::new(&[&data, &data], vec![&mut p, &mut q]);
        self.pq_gen(&mut strips);
        self.encode(&tables, &mut strips);
        let mut changes = Changes::new(&mut change);
        changes.add(&data, &data, [&mut p, &mut q]);
        self.change(&tables, 1, &mut changes);
        self.crc32c(0, &data);
    }

    /// The output = the sum of the inputs (`xor_gen`).
    pub fn xor_gen(&self, strips: &mut Strips<'_>) {
        assert_eq!(strips.rows(), 1, "one output");
        let (count, all) = (strips.pointers.len() as c_int, strips.pointers.as_mut_ptr());
        // SAFETY: the last pointer is the output's; `Strips` checked lengths and alignment.
        let rc = unsafe { (self.xor_gen)(count, strips.bytes as c_int, all) };
        assert_eq!(rc, 0, "xor_gen takes these strips");
    }

    /// P and Q of the inputs (`pq_gen`).
    pub fn pq_gen(&self, strips: &mut Strips<'_>) {
        assert_eq!(strips.rows(), 2, "two outputs");
        let (count, all) = (strips.pointers.len() as c_int, strips.pointers.as_mut_ptr());
        // SAFETY: the last two pointers are the outputs'; `Strips` checked lengths and alignment.
        let rc = unsafe { (self.pq_gen)(count, strips.bytes as c_int, all) };
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

    /// The matrix times the inputs (`ec_encode_data`).
    pub fn encode(&self, tables: &Tables, strips: &mut Strips<'_>) {
        assert_eq!((strips.data, strips.rows()), (tables.data, tables.rows), "as the matrix has");
        let (k, rows) = (tables.data as c_int, tables.rows as c_int);
        let table = tables.bytes.as_ptr().cast_mut();
        let (inputs, outputs) = strips.pointers.split_at_mut(strips.data);
        let (inputs, outputs) = (inputs.as_mut_ptr().cast(), outputs.as_mut_ptr().cast());
        // SAFETY: as many strips as the tables were made for, lengths and alignment checked by
        // `Strips`; ISA-L only reads the tables and the inputs.
        unsafe { (self.encode)(strips.bytes as c_int, k, rows, table, inputs, outputs) }
    }

    /// At each place: the sum of old and new (`xor_gen`), then column `index` of the matrix times
    /// it, added to the parities (`ec_encode_data_update`).
    pub fn change<const N: usize>(
        &self,
        tables: &Tables,
        index: usize,
        changes: &mut Changes<'_, N>,
    ) {
        assert!(index < tables.data && N == tables.rows, "as the matrix has");
        let table = tables.bytes.as_ptr().cast_mut();
        let (k, rows, index) = (tables.data as c_int, N as c_int, index as c_int);
        let (bytes, change) = (changes.bytes as c_int, changes.change.cast());
        for place in &mut changes.places {
            // SAFETY: old, new and their sum, then the sum and as many parities as the tables
            // have rows; `Changes` checked lengths and alignment; `index` is a column.
            unsafe {
                let rc = (self.xor_gen)(3, bytes, place.sum.as_mut_ptr());
                assert_eq!(rc, 0, "xor_gen takes these pieces");
                let parities = place.parities.as_mut_ptr().cast();
                (self.update)(bytes, k, rows, index, table, change, parities);
            }
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

/// A strip's address, after a look at what ISA-L demands.
fn checked(at: *const u8, bytes: usize, wanted: usize) -> *mut c_void {
    assert!(bytes == wanted && c_int::try_from(bytes).is_ok(), "strips of one length");
    assert!(bytes.is_multiple_of(ALIGN), "a length that is a multiple of {ALIGN}");
    assert!(at.addr().is_multiple_of(ALIGN), "strips begin at multiples of {ALIGN}");
    at.cast_mut().cast()
}

/// The strips of a call, in the form in which ISA-L takes them: pointers to the inputs, then to
/// the outputs. Made once, so that a call only passes them on.
pub struct Strips<'a> {
    pointers: Vec<*mut c_void>,
    data: usize,
    bytes: usize,
    borrowed: PhantomData<(&'a [u8], &'a mut [u8])>,
}

impl<'a> Strips<'a> {
    /// These inputs and outputs.
    ///
    /// # Panics
    /// If there are too many, lengths differ, or a length or address is no multiple of 64.
    pub fn new(inputs: &[&'a [u8]], outputs: Vec<&'a mut [u8]>) -> Self {
        assert!(inputs.len() + outputs.len() <= MAX_STRIPS, "that many strips");
        let bytes = inputs[0].len();
        let inputs_at = inputs.iter().map(|strip| checked(strip.as_ptr(), strip.len(), bytes));
        let outputs_at =
            outputs.into_iter().map(|strip| checked(strip.as_mut_ptr(), strip.len(), bytes));
        let pointers = inputs_at.chain(outputs_at).collect();
        Self { pointers, data: inputs.len(), bytes, borrowed: PhantomData }
    }

    /// Outputs.
    pub fn rows(&self) -> usize {
        self.pointers.len() - self.data
    }

    /// What the outputs hold.
    pub fn outputs(&self) -> impl Iterator<Item = &[u8]> {
        let outputs = self.pointers[self.data..].iter();
        // SAFETY: an output of this length, exclusively borrowed; nobody writes while `self` is.
        outputs.map(|at| unsafe { core::slice::from_raw_parts(at.cast(), self.bytes) })
    }

    /// The outputs, to be written.
    pub fn outputs_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let outputs = self.pointers[self.data..].iter();
        // SAFETY: outputs of this length, each exclusively borrowed, and so is `self`.
        outputs.map(|at| unsafe { core::slice::from_raw_parts_mut(at.cast(), self.bytes) })
    }
}

/// Pointers of one place of [`Changes`].
struct Pointers<const N: usize> {
    /// Old, new, and their sum.
    sum: [*mut c_void; 3],
    parities: [*mut c_void; N],
}

/// Small changes of one strip, each with its `N` parities, in the form in which ISA-L takes them.
pub struct Changes<'a, const N: usize> {
    places: Vec<Pointers<N>>,
    /// Where the sum of old and new is, at every place the same.
    change: *mut c_void,
    bytes: usize,
    borrowed: PhantomData<(&'a [u8], &'a mut [u8])>,
}

impl<'a, const N: usize> Changes<'a, N> {
    /// No changes yet; `change` is the room for the sum of old and new.
    ///
    /// # Panics
    /// If its length or address is no multiple of 64.
    pub fn new(change: &'a mut [u8]) -> Self {
        let bytes = change.len();
        let change = checked(change.as_mut_ptr(), bytes, bytes);
        Self { places: Vec::new(), change, bytes, borrowed: PhantomData }
    }

    /// Adds a place.
    ///
    /// # Panics
    /// If a length is not that of the room for the sum, or an address no multiple of 64.
    pub fn add(&mut self, old: &'a [u8], new: &'a [u8], parities: [&'a mut [u8]; N]) {
        let at = |strip: &[u8]| checked(strip.as_ptr(), strip.len(), self.bytes);
        let sum = [at(old), at(new), self.change];
        let parities = parities.map(|strip| checked(strip.as_mut_ptr(), strip.len(), self.bytes));
        self.places.push(Pointers { sum, parities });
    }

    /// What the parities hold, place by place.
    pub fn outputs(&self) -> impl Iterator<Item = &[u8]> {
        let outputs = self.places.iter().flat_map(|place| &place.parities);
        // SAFETY: a parity of this length, exclusively borrowed; nobody writes while `self` is.
        outputs.map(|at| unsafe { core::slice::from_raw_parts(at.cast(), self.bytes) })
    }

    /// The parities, to be written, place by place.
    pub fn outputs_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let outputs = self.places.iter().flat_map(|place| &place.parities);
        // SAFETY: parities of this length, each exclusively borrowed, and so is `self`.
        outputs.map(|at| unsafe { core::slice::from_raw_parts_mut(at.cast(), self.bytes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_five_pointers() {
        // The timed side reads one of these per small write: no more than ISA-L itself needs.
        assert_eq!(size_of::<Pointers<2>>(), 5 * size_of::<usize>());
    }

    #[test]
    fn inputs_come_first_and_outputs_are_told_apart() {
        let (a, b) = (io::Pool::single(ALIGN), io::Pool::single(ALIGN));
        let (mut p, mut q) = (io::Pool::single(ALIGN), io::Pool::single(ALIGN));
        let wanted: Vec<usize> = [&a, &b, &p, &q].map(|strip| strip.as_ptr().addr()).to_vec();
        let mut strips = Strips::new(&[&a, &b], vec![&mut p, &mut q]);
        let found: Vec<usize> = strips.pointers.iter().map(|at| at.addr()).collect();
        assert_eq!((found, strips.rows()), (wanted, 2));
        strips.outputs_mut().zip([1, 2]).for_each(|(strip, byte)| strip.fill(byte));
        let held: Vec<&[u8]> = strips.outputs().collect();
        assert_eq!(held, [[1; ALIGN], [2; ALIGN]]);
    }

    #[test]
    #[should_panic(expected = "begin at multiples")]
    fn an_odd_address_is_refused() {
        let strip = io::Pool::single(2 * ALIGN);
        Strips::new(&[&strip[8..8 + ALIGN]], Vec::new());
    }

    #[test]
    #[should_panic(expected = "one length")]
    fn another_length_is_refused() {
        let (data, mut p) = (io::Pool::single(ALIGN), io::Pool::single(2 * ALIGN));
        Strips::new(&[&data], vec![&mut p[..]]);
    }
}
