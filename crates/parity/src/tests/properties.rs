//! Property tests: what must hold for any data, shape and loss.

use proptest::prelude::*;

use super::{Random, slices, stripe};
use crate::Code;

proptest! {
    #[test]
    fn any_loss_comes_back(
        seed: u64,
        k in 1usize..=62,
        m in 1usize..=9,
        len in 0usize..1500,
        picks: [prop::sample::Index; 9],
    ) {
        let code = Code::new(k, m).unwrap();
        let strips = stripe(&mut Random(seed), k, m, len);
        prop_assert_eq!(code.verify(&slices(&strips)), None);
        let mut lost: Vec<_> = picks[..m].iter().map(|pick| pick.index(k + m)).collect();
        lost.sort_unstable();
        lost.dedup();
        let mut left: Vec<_> = strips.iter().map(|strip| Some(strip.as_slice())).collect();
        lost.iter().for_each(|&i| left[i] = None);
        let mut out = vec![vec![0; len]; lost.len()];
        let mut outputs: Vec<_> = out.iter_mut().map(Vec::as_mut_slice).collect();
        code.recover(&left, &lost, &mut outputs).unwrap();
        for (index, strip) in lost.iter().zip(&out) {
            prop_assert_eq!(strip, &strips[*index]);
        }
    }

    #[test]
    fn updates_in_any_order_equal_generation(
        seed: u64,
        k in 1usize..=62,
        m in 1usize..=8,
        len in 0usize..600,
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut random = Random(seed);
        let code = Code::new(k, m).unwrap();
        let mut strips = stripe(&mut random, k, m, len);
        for pick in order {
            let (data, parity) = strips.split_at_mut(k);
            let mut outputs: Vec<_> = parity.iter_mut().map(|p| Some(p.as_mut_slice())).collect();
            let new = random.bytes(len);
            let index = pick.index(k);
            code.update(index, &data[index], &new, &mut outputs);
            data[index] = new;
        }
        prop_assert_eq!(code.verify(&slices(&strips)), None);
        let mut parity = vec![vec![0; len]; m];
        let mut outputs: Vec<_> = parity.iter_mut().map(Vec::as_mut_slice).collect();
        code.generate(&slices(&strips[..k]), &mut outputs);
        prop_assert_eq!(&parity, &strips[k..]);
    }

    /// A code is linear: the parities of a sum are the sums of the parities.
    #[test]
    fn parities_are_linear(seed: u64, k in 1usize..=12, m in 1usize..=8, len in 0usize..300) {
        let mut random = Random(seed);
        let (a, b) = (stripe(&mut random, k, m, len), stripe(&mut random, k, m, len));
        let sum = |(a, b): (&Vec<u8>, &Vec<u8>)| a.iter().zip(b).map(|(a, b)| a ^ b).collect();
        let strips: Vec<Vec<u8>> = a.iter().zip(&b).map(sum).collect();
        prop_assert_eq!(Code::new(k, m).unwrap().verify(&slices(&strips)), None);
    }
}
