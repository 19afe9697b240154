//! Every kernel and operation, with odd lengths and offsets.

use super::arena::Arena;
use super::{Random, each_kernel, slices, streams, stripe};
use crate::{Change, Code, CodeError, Located, Stores, locate, recover, reference};

/// Lengths around every step width, and a whole sector.
const LENGTHS: [usize; 12] = [0, 1, 7, 8, 31, 33, 64, 127, 255, 257, 387, 512];

/// Strips at odd offsets within their allocations, so that nothing is aligned.
struct Skewed {
    bytes: Vec<u8>,
    skew: usize,
}

impl Skewed {
    fn filled(len: usize, skew: usize) -> Skewed {
        Skewed { bytes: vec![0xa5; len + skew + 64], skew }
    }

    fn strip(&mut self) -> &mut [u8] {
        let end = self.bytes.len() - 64;
        &mut self.bytes[self.skew..end]
    }

    /// The strip, after a check that nothing around it was written.
    fn finished(&self) -> &[u8] {
        let end = self.bytes.len() - 64;
        let around = self.bytes[..self.skew].iter().chain(&self.bytes[end..]);
        assert!(around.copied().all(|byte| byte == 0xa5), "written outside of the strip");
        &self.bytes[self.skew..end]
    }
}

#[test]
fn generate_and_verify() {
    let mut random = Random(1);
    for (k, len) in (1..=16).flat_map(|k| LENGTHS.map(|len| (k, len))) {
        for m in [0, 1, 2, 3, 4, 5, 7, 10] {
            let mut strips = stripe(&mut random, k, m, len);
            let code = Code::new(k, m).unwrap();
            for kernel in each_kernel() {
                let mut out: Vec<_> = (0..m).map(|i| Skewed::filled(len, 1 + 12 * i)).collect();
                let mut parity: Vec<_> = out.iter_mut().map(Skewed::strip).collect();
                code.generate_with(&kernel, &slices(&strips[..k]), &mut parity, Stores::Cached);
                for (row, skewed) in out.iter().enumerate() {
                    assert_eq!(skewed.finished(), strips[k + row], "{} {k}+{m}", kernel.name());
                }
                assert_eq!(code.verify_with(&kernel, &slices(&strips)), None);
                if len > 0 && m > 0 {
                    let (low, strip) = (random.next() as usize % len, random.next() as usize);
                    let high = low + random.next() as usize % (len - low);
                    let strip = strip % (k + m);
                    // Two wrong bytes; the lower offset is reported.
                    for at in [high, low] {
                        strips[strip][at] ^= 0x80;
                        assert_eq!(code.verify_with(&kernel, &slices(&strips)), Some(at));
                        if low == high {
                            break;
                        }
                    }
                    strips[strip][low] ^= 0x80;
                    if low != high {
                        strips[strip][high] ^= 0x80;
                    }
                }
            }
        }
    }
}

#[test]
fn inputs_at_odd_offsets() {
    let mut random = Random(5);
    let (k, len) = (6, 700);
    let strips = stripe(&mut random, k, 2, len);
    let code = Code::new(k, 2).unwrap();
    for (kernel, skew) in each_kernel().iter().flat_map(|kernel| (1..66).map(move |s| (kernel, s)))
    {
        let shifted: Vec<_> = strips.iter().map(|strip| &strip[skew..]).collect();
        assert_eq!(code.verify_with(kernel, &shifted), None);
        let (mut x, mut y) = (vec![0; len - skew], vec![0; len - skew]);
        code.generate_with(kernel, &shifted[..k], &mut [&mut x, &mut y], Stores::Cached);
        assert_eq!([&x[..], &y[..]], shifted[k..], "{} +{skew}", kernel.name());
        let mut left: Vec<_> = shifted.iter().copied().map(Some).collect();
        (left[1], left[4]) = (None, None);
        recover::recover(kernel, code, &left, &[1, 4], &mut [&mut x, &mut y], Stores::Cached)
            .unwrap();
        assert_eq!([&x[..], &y[..]], [shifted[1], shifted[4]], "{} +{skew}", kernel.name());
    }
}

/// Streaming stores begin where outputs are aligned, if they are alike; around and between, and
/// in outputs that are not alike, every byte must be right too.
#[test]
fn streaming_at_all_offsets() {
    let mut random = Random(7);
    for m in 1..=6 {
        let strips = stripe(&mut random, 5, m, 900);
        let code = Code::new(5, m).unwrap();
        let mut arena = Arena::new(m, 900);
        for (kernel, turn) in each_kernel().iter().flat_map(|k| (0..192).map(move |t| (k, t))) {
            let (skew, apart) = (turn % 64, if turn < 128 { 0 } else { 1 + turn % 4 });
            let len = [900, 0, 1, 70, 300, 640, 129][turn % 7];
            let data: Vec<_> = strips[..5].iter().map(|strip| &strip[..len]).collect();
            let skews: Vec<_> = (0..m).map(|i| (skew + i * apart) % 64).collect();
            let mut parity = arena.place(len, &skews);
            let stores = Stores::Streaming;
            let generate = || code.generate_with(kernel, &data, &mut parity, stores);
            streams::checked(kernel, stores, len, &skews, generate).unwrap();
            for (row, found) in arena.finished().enumerate() {
                let name = kernel.name();
                assert_eq!(found, &strips[5 + row][..len], "{name} {m} +{skew}");
            }
        }
    }
}

/// What the parities are after the changes, generated anew.
fn generated(code: Code, strips: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let (k, len) = (code.data(), strips[0].len());
    let byte = |row, at| {
        let data = strips[..k].iter().map(|strip| strip[at]);
        reference::parity_byte(code.parities(), row, data)
    };
    (0..code.parities()).map(|row| (0..len).map(|at| byte(row, at)).collect()).collect()
}

/// One to all strips change, and any of the parities are wanted.
#[test]
fn update_equals_generate() {
    let mut random = Random(2);
    let shapes = (1..=16).flat_map(|k| [1, 2, 3, 4, 6, 9].map(|m| (k, m)));
    for ((k, m), len) in shapes.flat_map(|shape| LENGTHS.map(|len| (shape, len))) {
        let code = Code::new(k, m).unwrap();
        let before = stripe(&mut random, k, m, len);
        let mut after = before.clone();
        let first = random.next() as usize % k;
        let count = 1 + random.next() as usize % k;
        let changed: Vec<_> = (0..count).map(|i| (first + i) % k).collect();
        changed.iter().for_each(|&index| after[index] = random.bytes(len));
        let changes: Vec<_> = changed
            .iter()
            .map(|&index| Change { index, old: &before[index], new: &after[index] })
            .collect();
        let generated = generated(code, &after);
        for kernel in each_kernel() {
            let wanted = if random.next() % 2 == 0 { u64::MAX } else { random.next() };
            let mut updated = before.clone();
            let strips = updated[k..].iter_mut().enumerate();
            let mut parity: Vec<_> = strips
                .map(|(row, strip)| (wanted >> row & 1 == 1).then_some(strip.as_mut_slice()))
                .collect();
            code.update_with(&kernel, &changes, &mut parity);
            for row in 0..m {
                let changed = wanted >> row & 1 == 1;
                let right = if changed { &generated[row] } else { &before[k + row] };
                assert_eq!(&updated[k + row], right, "{} {k}+{m} {count}", kernel.name());
            }
        }
    }
}

#[test]
fn no_change_changes_nothing() {
    let code = Code::new(3, 4).unwrap();
    let mut parity = [[0x5a; 40]; 4];
    code.update_many(&[], &mut parity.each_mut().map(|strip| Some(&mut strip[..])));
    let change = Change { index: 2, old: &[1; 40], new: &[2; 40] };
    code.update_many(&[change], &mut [None, None, None, None]);
    assert_eq!(parity, [[0x5a; 40]; 4]);
}

/// Any single strip is named, wherever and however much of it is bad.
#[test]
fn locate_names_the_bad_strip() {
    let mut random = Random(8);
    for (k, m) in (1..=9).flat_map(|k| (1..=6).map(move |m| (k, m))) {
        let code = Code::new(k, m).unwrap();
        for bad in 0..k + m {
            let mut strips = stripe(&mut random, k, m, 300);
            for kernel in each_kernel() {
                let found = locate::locate(&kernel, code, &slices(&strips));
                assert_eq!(found, Located::Clean);
            }
            for _ in 0..1 + random.next() % 5 {
                let at = random.next() as usize % 300;
                strips[bad][at] ^= 1 + random.next() as u8 % 255;
            }
            if code.verify(&slices(&strips)).is_none() {
                continue;
            }
            // One parity cannot tell its strips apart, and with one data strip and two parities
            // all three are copies, of which the odd one is bad.
            let right = if m == 1 { Located::Unknown } else { Located::Strip(bad) };
            for kernel in each_kernel() {
                let found = locate::locate(&kernel, code, &slices(&strips));
                assert_eq!(found, right, "{} {k}+{m}", kernel.name());
            }
        }
    }
}

/// Two bad strips are never taken for one that is good.
#[test]
fn locate_does_not_blame_the_good() {
    let mut random = Random(9);
    for (k, m) in (1..=7).flat_map(|k| (2..=6).map(move |m| (k, m))) {
        let code = Code::new(k, m).unwrap();
        for (x, y) in (0..k + m).flat_map(|y| (0..y).map(move |x| (x, y))) {
            let mut strips = stripe(&mut random, k, m, 200);
            // At one offset, three parities or more are needed to know; at two, two do.
            let at = random.next() as usize % 100;
            let other = if m == 2 { at + 1 + random.next() as usize % 99 } else { at };
            strips[x][at] ^= 0x11;
            strips[y][other] ^= 0x42;
            assert_eq!(code.locate(&slices(&strips)), Located::Unknown, "{k}+{m}: {x} and {y}");
        }
    }
}

/// Recovers with strips `missing` gone and those in `lost` wanted.
fn check_recovery(strips: &[Vec<u8>], code: Code, missing: &[usize], lost: &[usize]) {
    let len = strips[0].len();
    let left: Vec<_> = strips
        .iter()
        .enumerate()
        .map(|(i, strip)| (!missing.contains(&i)).then_some(strip.as_slice()))
        .collect();
    for kernel in each_kernel() {
        let mut out: Vec<_> = lost.iter().map(|i| Skewed::filled(len, 1 + 2 * i)).collect();
        let mut slices: Vec<_> = out.iter_mut().map(Skewed::strip).collect();
        recover::recover(&kernel, code, &left, lost, &mut slices, Stores::Cached).unwrap();
        for (index, skewed) in lost.iter().zip(&out) {
            let name = kernel.name();
            assert!(
                skewed.finished() == strips[*index],
                "{name}: strip {index} of {code:?} with {missing:?} missing, {len} bytes"
            );
        }
    }
}

/// Recovers every subset of `missing`.
fn check_subsets(strips: &[Vec<u8>], code: Code, missing: &[usize]) {
    for subset in 0..1 << missing.len() {
        let chosen = missing.iter().enumerate().filter(|(i, _)| subset >> i & 1 == 1);
        let lost: Vec<_> = chosen.map(|(_, index)| *index).collect();
        check_recovery(strips, code, missing, &lost);
    }
}

#[test]
fn recover_all_patterns() {
    let mut random = Random(3);
    for (k, m) in (1..=16).flat_map(|k| [(k, 1), (k, 2)]) {
        let code = Code::new(k, m).unwrap();
        for len in [1, 67, 383] {
            let strips = stripe(&mut random, k, m, len);
            check_subsets(&strips, code, &[]);
            for x in 0..k + m {
                check_subsets(&strips, code, &[x]);
                for y in (x + 1..k + m).filter(|_| m == 2) {
                    check_subsets(&strips, code, &[x, y]);
                }
            }
        }
    }
}

#[test]
fn recover_wide_codes() {
    let mut random = Random(4);
    for k in [62, 64, 65, 254, 255] {
        let code = Code::new(k, 2).unwrap();
        let strips = stripe(&mut random, k, 2, 70);
        for _ in 0..40 {
            let mut pair = [random.next() as usize % (k + 2), random.next() as usize % (k + 2)];
            pair.sort_unstable();
            if pair[0] != pair[1] {
                check_subsets(&strips, code, &pair);
            }
        }
        check_subsets(&strips, code, &[0, k - 1]);
        check_subsets(&strips, code, &[k - 1, k]);
        check_subsets(&strips, code, &[k - 1, k + 1]);
    }
}

#[test]
fn too_many_losses_are_refused() {
    let strips = [Some(&[0u8; 8][..]), None, None, None];
    let missing = |m| Err(CodeError::TooManyMissing { missing: 3, parities: m });
    let mut out = [0xa5; 8];
    let code = Code::new(2, 2).unwrap();
    assert_eq!(code.recover(&strips, &[1], &mut [&mut out]), missing(2));
    let code = Code::new(3, 1).unwrap();
    assert_eq!(code.recover(&strips, &[1], &mut [&mut out]), missing(1));
    assert_eq!(out, [0xa5; 8]);
}

#[test]
fn counts_are_bounded() {
    assert_eq!(Code::new(0, 1), Err(CodeError::DataCount { data: 0, parities: 1 }));
    assert_eq!(Code::new(256, 1), Err(CodeError::DataCount { data: 256, parities: 1 }));
    assert_eq!(Code::new(4, 33), Err(CodeError::ParityCount(33)));
    let code = Code::new(255, 2).unwrap();
    assert_eq!((code.data(), code.parities(), code.id()), (255, 2, 1));
}

/// P and Q of fixed bytes, worked out by hand from the definition.
#[test]
fn golden_parities() {
    let data: [&[u8]; 3] = [&[0x01, 0x80, 0xff], &[0x02, 0x80, 0x00], &[0x40, 0x80, 0xff]];
    let (mut p, mut q) = ([0; 3], [0; 3]);
    Code::new(3, 2).unwrap().generate(&data, &mut [&mut p, &mut q]);
    assert_eq!(p, [0x43, 0x80, 0x00]);
    // 1 + 2·2 + 4·0x40; 0x80·(1 + 2 + 4); 0xff·(1 + 4).
    assert_eq!(q, [0x01 ^ 0x04 ^ 0x1d, 0x80 ^ 0x1d ^ 0x3a, 0xff ^ 0xdb]);
}
