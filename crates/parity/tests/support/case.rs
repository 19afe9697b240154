//! One case of the fuzz target: bytes choose a code, its data, a change, a loss and a fault.
//!
//! Purpose: hold every operation against definitions written here once more, byte by byte.
//! Invariants: any input is a case; the same input is the same case on every kernel. Where
//! strips lie within 64 bytes is the input's choice, alike or each differently, and a write
//! outside of a strip is found.

mod arena;

use arena::Arena;
use palisade_parity::{Change, Code, Located, Stores, copy_crc32c, crc32c};

/// Takes one choice after another from the input; 0 when it is used up.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::from(u16::from_le_bytes([self.byte(), self.byte()])) % limit
    }
}

impl Choices<'_> {
    fn stores(&mut self) -> Stores {
        if self.byte() % 2 == 0 { Stores::Cached } else { Stores::Streaming }
    }

    /// How many bytes after a multiple of 64 each of `count` strips begins: all alike, or each
    /// differently.
    fn skews(&mut self, count: usize) -> Vec<usize> {
        let (first, apart) = (usize::from(self.byte()), usize::from(self.byte()));
        // Half of all cases are alike, and streaming is for these.
        let apart = if apart < 128 { 0 } else { apart };
        (0..count).map(|i| (first + i * apart) % 64).collect()
    }
}

/// The product in GF(2^8) modulo 0x11d.
fn multiply(a: u8, b: u8) -> u8 {
    (0..8).rev().fold(0, |product: u8, bit| {
        let doubled = (product << 1) ^ if product & 0x80 != 0 { 0x1d } else { 0 };
        doubled ^ if b >> bit & 1 == 1 { a } else { 0 }
    })
}

/// A parity by its definition.
fn parity(code: Code, row: usize, data: &[Vec<u8>]) -> Vec<u8> {
    let mut sum = vec![0; data[0].len()];
    for (j, strip) in data.iter().enumerate() {
        let c = code.coefficient(row, j);
        sum.iter_mut().zip(strip).for_each(|(sum, byte)| *sum ^= multiply(c, *byte));
    }
    sum
}

fn slices(strips: &[Vec<u8>]) -> Vec<&[u8]> {
    strips.iter().map(Vec::as_slice).collect()
}

/// Runs the case that `input` chooses.
///
/// # Panics
///
/// If an operation is wrong.
pub fn run(input: &[u8]) {
    let mut choices = Choices(input);
    let most = if choices.byte() < 128 { 4 } else { Code::MAX_PARITIES };
    let m = 1 + choices.below(most);
    let most = if choices.byte() < 192 { 12 } else { Code::max_data(m) };
    let k = 1 + choices.below(most);
    let len = choices.below(if k + m < 24 { 700 } else { 150 });
    let code = Code::new(k, m).expect("within bounds");
    let mut strips: Vec<Vec<u8>> = (0..k).map(|_| filled(&mut choices, len)).collect();
    strips.extend((0..m).map(|row| parity(code, row, &strips[..k])).collect::<Vec<_>>());
    let mut arena = Arena::new(m, len);
    let mut inputs = Arena::new(k + m, len);
    let skews = choices.skews(k + m);
    let copies = inputs.place(len, &skews).into_iter().zip(&strips);
    copies.for_each(|(place, strip)| place.copy_from_slice(strip));
    let inputs: Vec<&[u8]> = inputs.finished().collect();
    generate(code, &inputs, &mut arena, &mut choices);
    lose(code, &inputs, &mut arena, &mut choices);
    checksum(&inputs, &mut arena, &mut choices);
    change(code, &mut strips, &mut arena, &mut choices);
    assert_eq!(code.verify(&slices(&strips)), None);
    spoil(code, &mut strips, &mut choices);
}

/// Bytes that follow from two of the input's.
fn filled(choices: &mut Choices<'_>, len: usize) -> Vec<u8> {
    let (mut value, step) = (choices.byte(), choices.byte());
    let next = |_| {
        value = value.wrapping_mul(5).wrapping_add(step);
        value ^ step.rotate_left(3)
    };
    (0..len).map(next).collect()
}

/// Parities are what the definition says, however they are stored.
fn generate(code: Code, strips: &[&[u8]], arena: &mut Arena, choices: &mut Choices<'_>) {
    let (k, len) = (code.data(), strips[0].len());
    let (stores, skews) = (choices.stores(), choices.skews(code.parities()));
    code.generate_to(&strips[..k], &mut arena.place(len, &skews), stores);
    arena.finished().zip(&strips[k..]).for_each(|(found, right)| assert_eq!(found, *right));
}

/// Some strips are lost, and some of these are wanted.
fn lose(code: Code, strips: &[&[u8]], arena: &mut Arena, choices: &mut Choices<'_>) {
    let mut left: Vec<_> = strips.iter().copied().map(Some).collect();
    for _ in 0..choices.below(code.parities() + 1) {
        left[choices.below(strips.len())] = None;
    }
    let mut lost: Vec<_> = (0..strips.len()).filter(|&i| left[i].is_none()).collect();
    lost.retain(|_| choices.byte() < 200);
    let (stores, skews) = (choices.stores(), choices.skews(lost.len()));
    let mut out = arena.place(strips[0].len(), &skews);
    let recovered = code.recover_to(&left, &lost, &mut out, stores);
    recovered.expect("not more are lost than there are parities");
    lost.iter().zip(arena.finished()).for_each(|(&i, found)| assert_eq!(found, strips[i]));
}

/// CRC-32C by its definition, bit by bit.
fn naive_crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 }
        })
    })
}

/// Checksums at once, in two parts and with a copy.
fn checksum(strips: &[&[u8]], arena: &mut Arena, choices: &mut Choices<'_>) {
    let strip = strips[choices.below(strips.len())];
    let (head, rest) = strip.split_at(choices.below(strip.len() + 1));
    let right = naive_crc32c(strip);
    assert_eq!(crc32c(0, strip), right);
    assert_eq!(crc32c(crc32c(0, head), rest), right);
    let mut places = arena.place(strip.len(), &choices.skews(1));
    let (first, second) = places[0].split_at_mut(head.len());
    assert_eq!(copy_crc32c(copy_crc32c(0, head, first), rest, second), right);
    arena.finished().for_each(|copy| assert_eq!(copy, strip));
}

/// Some data strips change, and the parities that are there follow.
fn change(code: Code, strips: &mut [Vec<u8>], arena: &mut Arena, choices: &mut Choices<'_>) {
    let (k, len) = (code.data(), strips[0].len());
    let (first, count) = (choices.below(k), 1 + choices.below(k.min(5)));
    let new: Vec<_> = (0..count).map(|i| ((first + i) % k, filled(choices, len))).collect();
    // Each parity is there in half of the cases, all of them in half of the cases.
    let all = choices.byte() < 128;
    let wanted: Vec<_> = (0..code.parities()).map(|_| all || choices.byte() < 128).collect();
    let skews = choices.skews(wanted.len());
    let mut out: Vec<_> = arena.place(len, &skews).into_iter().map(Some).collect();
    for ((place, strip), wanted) in out.iter_mut().zip(&strips[k..]).zip(&wanted) {
        match place {
            Some(to) if *wanted => to.copy_from_slice(strip),
            _ => *place = None,
        }
    }
    let changes: Vec<_> = new
        .iter()
        .map(|(index, new)| Change { index: *index, old: &strips[*index], new })
        .collect();
    match &changes[..] {
        [one] if choices.byte() % 2 == 0 => code.update(one.index, one.old, one.new, &mut out),
        many => code.update_many(many, &mut out),
    }
    new.into_iter().for_each(|(index, new)| strips[index] = new);
    for (row, (updated, wanted)) in arena.finished().zip(&wanted).enumerate() {
        let right = parity(code, row, &strips[..k]);
        let untouched = || updated.iter().all(|byte| *byte == arena::FILL);
        assert!(if *wanted { updated == right } else { untouched() }, "parity {row}");
        strips[k + row] = right;
    }
}

/// One strip goes bad, and is named.
fn spoil(code: Code, strips: &mut [Vec<u8>], choices: &mut Choices<'_>) {
    let (bad, len) = (choices.below(strips.len()), strips[0].len());
    let mut places: Vec<_> = (0..choices.below(4).min(len)).map(|_| choices.below(len)).collect();
    places.sort_unstable();
    places.dedup();
    places.iter().for_each(|&at| strips[bad][at] ^= 1 + choices.byte() % 255);
    let strips = slices(strips);
    assert_eq!(code.verify(&strips), places.first().copied());
    let right = match (places.is_empty(), code.parities()) {
        (true, _) => Located::Clean,
        (false, 1) => Located::Unknown,
        (false, _) => Located::Strip(bad),
    };
    assert_eq!(code.locate(&strips), right);
}
