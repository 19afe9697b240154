//! Our parity and layout against arrays that Linux md wrote (`tests/md`, see the page there).
//!
//! Purpose: for every strip of every array, what md put on the drive is what we would put there,
//! with every kernel of this processor; and what md wrote can be recovered by us.
//! Invariant: nothing here knows where md keeps parity; the layout under test says it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use layout::{Layout, Level, Place};
use palisade_parity::{Code, VARIABLE, kernels};
use units::{BAND_BYTES, GroupNo, Slot, StripIndex, StripeNo};

const GROUP: GroupNo = GroupNo(0);

/// One array as md left it. Strips of a stripe are in the order of the drives.
#[derive(Clone)]
struct Array {
    name: String,
    level: Level,
    drives: usize,
    stripes: usize,
    strip_bytes: usize,
    rotation: String,
    /// What was written to the array.
    data: Vec<u8>,
    /// Of each stripe, a digest of every strip.
    digests: Vec<Vec<String>>,
    /// Of each stripe, the strips that hold no data.
    parity: Vec<Vec<Vec<u8>>>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/md")
}

fn text(name: &str) -> String {
    fs::read_to_string(folder().join(name)).expect(name)
}

/// The bytes of SplitMix64.
fn random_bytes(seed: u64, length: usize) -> Vec<u8> {
    let words = (1..=length.div_ceil(8) as u64).flat_map(|i| {
        let z = seed.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).to_le_bytes()
    });
    words.take(length).collect()
}

/// FNV-1a of 64 bits.
fn digest(strip: &[u8]) -> String {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    format!("{:016x}", strip.iter().fold(0xcbf2_9ce4_8422_2325, step))
}

impl Array {
    /// The array of a line of the manifest: `array` and `key=value` words.
    fn of(line: &str) -> Self {
        let words: BTreeMap<_, _> = line.split(' ').filter_map(|w| w.split_once('=')).collect();
        let number = |key: &str| -> usize { words[key].parse().expect(line) };
        let (drives, stripes, strip_bytes) = (number("drives"), number("stripes"), number("strip"));
        let level: Level = words["level"].parse().expect(line);
        let parities = number("level") - 4;
        let name = format!("raid{level}-{drives}");
        let table = text(&format!("{name}.strips"));
        let digests: Vec<Vec<String>> =
            table.lines().map(|row| row.split(' ').map(str::to_owned).collect()).collect();
        assert_eq!(digests.len(), stripes, "{name}");
        let bytes = fs::read(folder().join(format!("{name}.parity"))).expect(&name);
        assert_eq!(bytes.len(), stripes * parities * strip_bytes, "{name}");
        let strips: Vec<Vec<u8>> = bytes.chunks(strip_bytes).map(<[u8]>::to_vec).collect();
        Self {
            level,
            drives,
            stripes,
            strip_bytes,
            rotation: words["layout"].to_owned(),
            data: random_bytes(number("seed") as u64, stripes * (drives - parities) * strip_bytes),
            digests,
            parity: strips.chunks(parities).map(<[_]>::to_vec).collect(),
            name,
        }
    }

    fn all() -> Vec<Self> {
        let manifest = text("manifest.txt");
        manifest.lines().filter(|line| line.starts_with("array ")).map(Self::of).collect()
    }

    fn one(name: &str) -> Self {
        Self::all().into_iter().find(|array| array.name == name).expect(name)
    }

    fn code(&self) -> Code {
        let parities = self.parity[0].len();
        Code::new(self.drives - parities, parities).expect("md's counts")
    }

    fn layout(&self) -> Layout {
        let strip_bytes = self.strip_bytes as u32;
        Layout::new(self.level, self.drives as u16, strip_bytes, BAND_BYTES).expect("md's numbers")
    }

    /// The strips of a stripe as we make them of the data: data strips, P, Q.
    fn ours(&self, layout: &Layout, stripe: usize) -> Vec<Vec<u8>> {
        let code = self.code();
        let stripe = StripeNo(stripe as u64);
        let mut strips: Vec<Vec<u8>> = (0..code.data() as u16)
            .map(|index| {
                let place = Place { group: GROUP, stripe, strip: StripIndex(index), offset: 0 };
                let at = layout.array_offset(place) as usize;
                self.data[at..at + self.strip_bytes].to_vec()
            })
            .collect();
        let mut parity = vec![vec![0; self.strip_bytes]; code.parities()];
        {
            let data: Vec<&[u8]> = strips.iter().map(Vec::as_slice).collect();
            let mut out: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
            code.generate(&data, &mut out);
        }
        strips.append(&mut parity);
        strips
    }

    /// The strips of a stripe as md wrote them: data strips, P, Q. The digests say that its data
    /// strips are ours; parity is taken from md's bytes.
    fn theirs(&self, layout: &Layout, stripe: usize) -> Vec<Vec<u8>> {
        let mut strips = self.ours(layout, stripe);
        let code = self.code();
        let places = (0..code.parities()).map(|i| {
            let index = code.data() + i;
            let strip = StripIndex(index as u16);
            (layout.slot(GROUP, StripeNo(stripe as u64), strip).0, index)
        });
        let mut places: Vec<(u16, usize)> = places.collect();
        places.sort_unstable();
        for ((_, index), parity) in places.into_iter().zip(&self.parity[stripe]) {
            strips[index].clone_from(parity);
        }
        strips
    }

    /// Compares every strip of every drive with what we would put there, and md's parity byte for
    /// byte; says which strip differs first.
    fn compare(&self) -> Result<(), String> {
        let layout = self.layout();
        for stripe in 0..self.stripes {
            let ours = self.ours(&layout, stripe);
            let theirs = self.theirs(&layout, stripe);
            for slot in 0..self.drives {
                let (number, at) = (StripeNo(stripe as u64), Slot(slot as u16));
                let strip = layout.strip(GROUP, number, at).expect("a slot of the group");
                let index = strip.index();
                let place =
                    format!("{}: stripe {stripe}, drive {slot}, our strip {index}", self.name);
                if layout.slot(GROUP, number, strip) != at {
                    return Err(format!("{place}: our map has it elsewhere"));
                }
                if digest(&ours[index]) != self.digests[stripe][slot] {
                    return Err(format!("{place}: md holds other bytes"));
                }
                if let Some(at) =
                    (0..self.strip_bytes).find(|&i| ours[index][i] != theirs[index][i])
                {
                    return Err(format!("{place}: md's parity differs from byte {at} on"));
                }
            }
        }
        Ok(())
    }
}

#[test]
fn all_arrays_are_here() {
    let arrays = Array::all();
    let names: Vec<&str> = arrays.iter().map(|array| array.name.as_str()).collect();
    let all = ["raid5-4", "raid5-8", "raid5-16", "raid6-4", "raid6-8", "raid6-16"];
    assert_eq!(names, all);
    for array in &arrays {
        assert_eq!(array.rotation, "left-symmetric", "{}", array.name);
        assert!(array.stripes > array.drives, "{}: not every rotation", array.name);
    }
}

#[test]
fn every_strip_is_where_md_puts_it() {
    for array in Array::all() {
        array.compare().unwrap();
    }
}

/// This program once more, by the emulator that runs it if there is one.
fn this_program() -> Command {
    let program = std::env::current_exe().unwrap();
    match std::env::var_os("PALISADE_EMULATOR") {
        None => Command::new(program),
        Some(emulator) => {
            let mut command = Command::new(emulator);
            command.arg(program);
            command
        }
    }
}

/// A kernel is chosen once for a process, so each gets one.
#[test]
fn every_kernel_makes_the_parity_of_md() {
    for name in kernels() {
        let run = this_program()
            .args(["--exact", "every_strip_is_where_md_puts_it"])
            .env(VARIABLE, name)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success() && text.contains("1 passed"), "{name}: {text}");
    }
}

#[test]
fn strips_of_md_are_recovered() {
    for array in Array::all() {
        let (layout, code) = (array.layout(), array.code());
        for stripe in 0..array.stripes {
            let strips = array.theirs(&layout, stripe);
            for x in 0..array.drives {
                recover(code, &strips, &[x], &array.name);
                for y in x + 1..array.drives {
                    if code.parities() == 2 {
                        recover(code, &strips, &[x, y], &array.name);
                    }
                }
            }
        }
    }
}

fn recover(code: Code, strips: &[Vec<u8>], lost: &[usize], name: &str) {
    let left: Vec<Option<&[u8]>> =
        (0..).zip(strips).map(|(i, s)| (!lost.contains(&i)).then_some(s.as_slice())).collect();
    let mut found = vec![vec![0xa5; strips[0].len()]; lost.len()];
    let mut out: Vec<&mut [u8]> = found.iter_mut().map(Vec::as_mut_slice).collect();
    code.recover(&left, lost, &mut out).unwrap();
    for (&index, found) in lost.iter().zip(&found) {
        assert!(*found == strips[index], "{name}: strip {index} of lost {lost:?}");
    }
}

#[test]
fn parity_of_md_verifies() {
    for array in Array::all() {
        let (layout, code) = (array.layout(), array.code());
        for stripe in 0..array.stripes {
            let mut strips = array.theirs(&layout, stripe);
            let slices: Vec<&[u8]> = strips.iter().map(Vec::as_slice).collect();
            assert_eq!(code.verify(&slices), None, "{}: stripe {stripe}", array.name);
            let (index, at) = (stripe % array.drives, (stripe * 997) % array.strip_bytes);
            strips[index][at] ^= 0x40;
            let slices: Vec<&[u8]> = strips.iter().map(Vec::as_slice).collect();
            assert_eq!(code.verify(&slices), Some(at), "{}: stripe {stripe}", array.name);
        }
    }
}

#[test]
fn a_difference_is_seen() {
    let good = Array::one("raid6-8");
    let refused = |array: &Array, place: &str| {
        let error = array.compare().unwrap_err();
        assert!(error.contains(place), "{error}");
    };
    // The last bit of md's parity, P or Q.
    for (stripe, which) in [(0, 0), (3, 1), (8, 0)] {
        let mut array = good.clone();
        *array.parity[stripe][which].last_mut().unwrap() ^= 1;
        refused(&array, &format!("stripe {stripe},"));
        refused(&array, "differs from byte 4095");
    }
    // P and Q changed over, in a stripe that keeps P before Q.
    let mut array = good.clone();
    array.parity[4].swap(0, 1);
    refused(&array, "stripe 4,");
    // One byte of the data, strips of two drives changed over, a parity that does not rotate.
    let mut array = good.clone();
    array.data[6 * 4096 * 5 + 77] ^= 1;
    refused(&array, "stripe 5,");
    let mut array = good.clone();
    array.digests[2].swap(3, 4);
    refused(&array, "stripe 2, drive 3,");
    let mut array = good;
    array.digests[1].rotate_left(1);
    refused(&array, "stripe 1, drive 0,");
}
