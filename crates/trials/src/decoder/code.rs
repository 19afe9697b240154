//! P and Q by the definition in docs/format.md: byte by byte over GF(2^8) with polynomial 0x11d.

use super::PAGE;

/// A page of one strip.
pub type Page = [u8; PAGE];

/// `g * v` with `g` = 2.
fn twice(v: u8) -> u8 {
    (v << 1) ^ if v >= 0x80 { 0x1d } else { 0 }
}

/// The product of two elements, by repeated doubling.
fn times(a: u8, b: u8) -> u8 {
    let (mut sum, mut power) = (0, a);
    for bit in 0..8 {
        if b >> bit & 1 == 1 {
            sum ^= power;
        }
        power = twice(power);
    }
    sum
}

/// `g` to the power of `n`.
fn power(n: usize) -> u8 {
    (0..n).fold(1, |v, _| twice(v))
}

/// What multiplied with `a` gives 1.
fn inverse(a: u8) -> u8 {
    (1..=255).find(|b| times(a, *b) == 1).expect("only 0 has no inverse")
}

fn scale(page: &mut Page, by: u8) {
    let table: [u8; 256] = core::array::from_fn(|v| times(v as u8, by));
    page.iter_mut().for_each(|v| *v = table[usize::from(*v)]);
}

fn add(page: &mut Page, other: &Page) {
    page.iter_mut().zip(other).for_each(|(a, b)| *a ^= b);
}

/// The sum of the data strips that are there.
pub fn p(data: &[Option<&Page>]) -> Page {
    let mut sum = [0; PAGE];
    data.iter().flatten().for_each(|page| add(&mut sum, page));
    sum
}

/// The weighted sum of the data strips that are there.
pub fn q(data: &[Option<&Page>]) -> Page {
    let mut sum = [0; PAGE];
    for page in data.iter().rev() {
        sum.iter_mut().for_each(|v| *v = twice(*v));
        if let Some(page) = page {
            add(&mut sum, page);
        }
    }
    sum
}

/// The data strips that are lost (`None` in `data`), in their order; `None` if what is left does
/// not say. `parity` is P and Q as far as they are there.
pub fn recover(data: &[Option<&Page>], parity: [Option<&Page>; 2]) -> Option<Vec<Page>> {
    let lost: Vec<usize> = (0..data.len()).filter(|i| data[*i].is_none()).collect();
    match (&lost[..], parity) {
        ([], _) => Some(Vec::new()),
        ([_], [Some(found), _]) => {
            let mut page = p(data);
            add(&mut page, found);
            Some(vec![page])
        }
        ([x], [None, Some(found)]) => {
            let mut page = q(data);
            add(&mut page, found);
            scale(&mut page, inverse(power(*x)));
            Some(vec![page])
        }
        ([x, y], [Some(found_p), Some(found_q)]) => {
            let (mut a, mut b) = (p(data), q(data));
            add(&mut a, found_p);
            add(&mut b, found_q);
            let mut first = a;
            scale(&mut first, power(*y));
            add(&mut first, &b);
            scale(&mut first, inverse(power(*x) ^ power(*y)));
            add(&mut a, &first);
            Some(vec![first, a])
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_is_that_of_the_document() {
        assert_eq!((power(8), times(2, 0x80), times(0x53, inverse(0x53))), (0x1d, 0x1d, 1));
    }

    #[test]
    fn any_two_strips_come_back() {
        let data: Vec<Page> =
            (0..5u8).map(|i| core::array::from_fn(|at| (at as u8).wrapping_mul(i + 3))).collect();
        let all: Vec<Option<&Page>> = data.iter().map(Some).collect();
        let (p, q) = (p(&all), q(&all));
        for x in 0..5 {
            for y in x..5 {
                let mut left = all.clone();
                (left[x], left[y]) = (None, None);
                let back = recover(&left, [Some(&p), Some(&q)]).unwrap();
                assert_eq!(back[0], data[x]);
                assert_eq!(back[back.len() - 1], data[y]);
                if x == y {
                    assert_eq!(recover(&left, [None, Some(&q)]).unwrap()[0], data[x]);
                } else {
                    assert!(recover(&left, [Some(&p), None]).is_none());
                }
            }
        }
    }
}
