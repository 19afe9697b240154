//! Buffers that are made of other bytes: a copy of them, and one put together again whose parts
//! were filled one by one.
//!
//! A part may come back as another buffer of the same length, when the request that held it was
//! given up ([`crate::watch`]).

use io::{Buf, BufMut, Pool};

/// A buffer that holds these bytes. Allocates.
pub(crate) fn copy(bytes: &[u8]) -> Buf {
    let mut buffer = Pool::single(bytes.len());
    buffer.copy_from_slice(bytes);
    buffer.freeze()
}

/// `front` and `back` as one buffer: the same memory if they are neighbours, else a copy.
pub(crate) fn join(mut front: BufMut, back: BufMut) -> BufMut {
    let Err(back) = front.try_unsplit(back) else { return front };
    if front.is_empty() {
        return back;
    }
    if back.is_empty() {
        return front;
    }
    let mut whole = Pool::single(front.len() + back.len());
    whole[..front.len()].copy_from_slice(&front);
    whole[front.len()..].copy_from_slice(&back);
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_join_in_place_and_strangers_by_copy() {
        let pool = Pool::new(8192, 1);
        let mut back = pool.take(6000).expect("a piece");
        back.fill(2);
        let mut front = back.split_to(1000);
        front.fill(1);
        let at = front.as_ptr();
        let whole = join(front, back);
        assert_eq!((whole.as_ptr(), whole.len()), (at, 6000));

        let mut stranger = Pool::single(500);
        stranger.fill(3);
        let whole = join(whole, stranger);
        assert_eq!((whole[999], whole[1000], whole[5999], whole[6000]), (1, 2, 2, 3));
        assert_eq!((whole.len(), pool.free()), (6500, 1));
        assert_eq!(join(Pool::single(0), whole).len(), 6500);
    }
}
