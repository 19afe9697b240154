//! One case of the fuzz target: bytes choose a code, its data, a change, a loss and a fault.
//!
//! Purpose: hold every operation against definitions written here once more, byte by byte.
//! Invariant: any input is a case; the same input is the same case on every kernel.

use palisade_parity::{Change, Code, Located, Stores};

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
    generate(code, &strips, &mut choices);
    change(code, &mut strips, &mut choices);
    assert_eq!(code.verify(&slices(&strips)), None);
    lose(code, &strips, &mut choices);
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
fn generate(code: Code, strips: &[Vec<u8>], choices: &mut Choices<'_>) {
    let (k, len, skew) = (code.data(), strips[0].len(), choices.below(64));
    let stores = if choices.byte() % 2 == 0 { Stores::Cached } else { Stores::Streaming };
    let mut room = vec![vec![0xa5; len + 64]; code.parities()];
    let mut out: Vec<_> = room.iter_mut().map(|r| &mut r[skew..skew + len]).collect();
    code.generate_to(&slices(&strips[..k]), &mut out, stores);
    for (room, right) in room.iter().zip(&strips[k..]) {
        assert_eq!(&room[skew..skew + len], right);
        assert!(room[..skew].iter().chain(&room[skew + len..]).all(|byte| *byte == 0xa5));
    }
}

/// Some data strips change, and the parities follow.
fn change(code: Code, strips: &mut [Vec<u8>], choices: &mut Choices<'_>) {
    let (k, len) = (code.data(), strips[0].len());
    let (data, parities) = strips.split_at_mut(k);
    let (first, count) = (choices.below(k), 1 + choices.below(k.min(5)));
    let new: Vec<_> = (0..count).map(|i| ((first + i) % k, filled(choices, len))).collect();
    let change = |(index, new)| Change { index, old: &data[index], new };
    let changes: Vec<_> = new.iter().map(|(index, new)| change((*index, new.as_slice()))).collect();
    let mut out: Vec<_> = parities.iter_mut().map(|strip| Some(strip.as_mut_slice())).collect();
    code.update_many(&changes, &mut out);
    new.into_iter().for_each(|(index, new)| data[index] = new);
}

/// Some strips are lost, and some of these are wanted.
fn lose(code: Code, strips: &[Vec<u8>], choices: &mut Choices<'_>) {
    let mut left: Vec<_> = strips.iter().map(|strip| Some(strip.as_slice())).collect();
    for _ in 0..choices.below(code.parities() + 1) {
        left[choices.below(strips.len())] = None;
    }
    let mut lost: Vec<_> = (0..strips.len()).filter(|&i| left[i].is_none()).collect();
    lost.retain(|_| choices.byte() < 200);
    let mut found = vec![vec![0; strips[0].len()]; lost.len()];
    let mut out: Vec<_> = found.iter_mut().map(Vec::as_mut_slice).collect();
    code.recover(&left, &lost, &mut out).expect("not more are lost than there are parities");
    lost.iter().zip(&found).for_each(|(&index, strip)| assert_eq!(strip, &strips[index]));
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
