//! The fuzz target's corpus, and cases made at random, on the kernel in use.
//!
//! Purpose: what fuzzing found once stays tested where nobody fuzzes.

#[path = "support/case.rs"]
mod case;
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn corpus_of_the_fuzz_target() {
    replay::corpus("parity", 20, case::run);
}

#[test]
fn cases_made_at_random() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..400 {
        let input: Vec<u8> = (0..128)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 32) as u8
            })
            .collect();
        case::run(&input);
    }
}
