//! The fuzz target's corpus, and each of its cases with bytes changed.
//!
//! Purpose: what fuzzing found once stays tested where nobody fuzzes.

#[path = "../../../fuzz/replay.rs"]
mod replay;
#[path = "support/uevent.rs"]
mod uevent;

#[test]
fn corpus_of_the_fuzz_target() {
    replay::corpus("uevent", 10, uevent::run);
}

#[test]
fn cases_with_bytes_changed() {
    replay::corpus("uevent", 10, |input| {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for _ in 0..400 {
            let mut input = input.to_vec();
            for _ in 0..1 + next() % 4 {
                let at = next() as usize % input.len().max(1);
                let byte = [0, b'@', b'/', b'=', 0xff, (next() >> 32) as u8][next() as usize % 6];
                input.get_mut(at).into_iter().for_each(|to| *to = byte);
            }
            input.truncate(next() as usize % (2 * input.len() + 1));
            uevent::run(&input);
        }
    });
}
