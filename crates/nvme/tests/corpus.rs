//! The fuzz target's corpus, and cases made at random.
//!
//! Purpose: what fuzzing found once stays tested where nobody fuzzes.

#[path = "support/case.rs"]
mod case;
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn corpus_of_the_fuzz_target() {
    replay::corpus("nvme-pdu", 10, case::run);
}

/// Random bytes behind a header that some PDU has.
#[test]
fn cases_made_at_random() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for round in 0..4000 {
        let mut input: Vec<u8> = (0..1100)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 32) as u8
            })
            .collect();
        if round % 2 == 0 {
            let (kind, bytes) = [(0, 128), (2, 24), (4, 72), (5, 24), (6, 24), (7, 24)][round % 6];
            (input[1], input[3], input[7], input[8]) = (kind, bytes, 0, 0);
        }
        case::run(&input);
    }
}
