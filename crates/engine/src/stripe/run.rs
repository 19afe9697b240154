//! A run of bytes over several strips of a stripe, and what of it helps where one is lost.
//!
//! What the lost strip holds takes those of the others that the run asks for anyhow. So a run is
//! read as a whole, where strip by strip they would be read twice. Pure: who reads is in
//! [`crate::stripe::check`].
//!
//! Invariant: parts are neighbours, in the order of their strips; joined they are the run, in the
//! memory that was given where nothing took its place.

use crate::buffers::join;
use crate::limits::DRIVES_MAX;
use crate::stripe::plan::StripSet;
use arrayvec::ArrayVec;
use io::BufMut;

/// A run's bytes of one strip.
pub(super) struct Part {
    /// The strip.
    pub strip: usize,
    /// Where in it they begin.
    pub from: u32,
    /// The bytes.
    pub into: BufMut,
    bytes: u32,
}

impl Part {
    /// The bytes, for whoever fills them and gives them back.
    pub fn take(&mut self) -> BufMut {
        self.into.split_to(self.into.len())
    }

    fn span(&self) -> (u32, u32) {
        (self.from, self.from + self.bytes)
    }

    fn covers(&self, (from, to): (u32, u32)) -> bool {
        let own = self.span();
        own.0 <= from && to <= own.1
    }
}

/// See the module above.
pub(super) struct Run(ArrayVec<Part, DRIVES_MAX>);

/// What strips have behind the bytes that were lent of them.
pub(super) struct Lent(ArrayVec<(usize, BufMut), DRIVES_MAX>);

impl Run {
    /// Cuts a run that begins at a byte of the stripe's data at the strips' borders.
    pub fn cut(mut at: u32, mut into: BufMut, strip_bytes: u32) -> Self {
        let mut parts = ArrayVec::new();
        while !into.is_empty() {
            let (strip, from) = ((at / strip_bytes) as usize, at % strip_bytes);
            let bytes = (strip_bytes - from).min(into.len() as u32);
            parts.push(Part { strip, from, into: into.split_to(bytes as usize), bytes });
            at += bytes;
        }
        Self(parts)
    }

    /// Its parts.
    pub fn parts(&mut self) -> impl Iterator<Item = &mut Part> {
        self.0.iter_mut()
    }

    /// The strips, and what of each is wanted.
    pub fn spans(&self) -> impl Iterator<Item = (usize, (u32, u32))> + '_ {
        self.0.iter().map(|part| (part.strip, part.span()))
    }

    /// The strip that is not among the readable ones, and what of it is wanted; `None` unless it is
    /// exactly one of several.
    pub fn lacks(&self, readable: StripSet) -> Option<(usize, (u32, u32))> {
        let mut lost = self.spans().filter(|(strip, _)| !readable.has(*strip));
        let first = lost.next().filter(|_| self.0.len() > 1)?;
        lost.next().is_none().then_some(first)
    }

    /// The strips that have all of these bytes in their parts.
    pub fn covers(&self, span: (u32, u32)) -> StripSet {
        self.0.iter().filter(|part| part.covers(span)).map(|part| part.strip).collect()
    }

    fn part(&mut self, strip: usize) -> &mut Part {
        self.0.iter_mut().find(|part| part.strip == strip).expect("the strip has a part")
    }

    /// Puts a part's bytes back.
    pub fn give_back(&mut self, strip: usize, into: BufMut) {
        self.part(strip).into = into;
    }

    /// Fills a strip's part.
    pub fn fill(&mut self, strip: usize, content: &[u8]) {
        self.part(strip).into.copy_from_slice(content);
    }

    /// Makes these bytes of strips columns, without a copy.
    pub fn lend(
        &mut self,
        strips: StripSet,
        span: (u32, u32),
        columns: &mut [Option<BufMut>],
    ) -> Lent {
        let mut lent = ArrayVec::new();
        for part in self.0.iter_mut().filter(|part| strips.has(part.strip)) {
            let mut rest = part.take();
            part.into = rest.split_to((span.0 - part.from) as usize);
            columns[part.strip] = Some(rest.split_to((span.1 - span.0) as usize));
            lent.push((part.strip, rest));
        }
        Lent(lent)
    }

    /// The whole run.
    pub fn join(self) -> BufMut {
        let joined = self.0.into_iter().map(|part| part.into).reduce(join);
        joined.expect("a run has a part")
    }
}

impl Lent {
    /// Takes the columns back.
    pub fn end(self, run: &mut Run, columns: &mut [Option<BufMut>]) {
        for (strip, rest) in self.0 {
            let part = run.part(strip);
            let column = columns[strip].take().expect("a column stays where it is");
            part.into = join(join(part.take(), column), rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use io::Pool;

    #[test]
    fn a_run_is_one_buffer_again() {
        let mut into = Pool::single(3 * 4096);
        for (at, byte) in into.iter_mut().enumerate() {
            *byte = (at % 251) as u8;
        }
        let (before, address) = (into.to_vec(), into.as_ptr());
        let mut run = Run::cut(4096 + 1024, into, 4096);
        let spans: Vec<_> = run.spans().collect();
        let wanted = [(1, (1024, 4096)), (2, (0, 4096)), (3, (0, 4096)), (4, (0, 1024))];
        assert_eq!(spans, wanted);
        let all = StripSet::range(0, 8);
        assert_eq!(run.lacks(all), None);
        assert_eq!(run.lacks(all.without(StripSet::one(7))), None, "it is not asked for");
        assert_eq!(run.lacks(all.without(StripSet::range(2, 4))), None, "they are two");
        let lost = run.lacks(all.without(StripSet::one(1))).expect("one is lost");
        assert_eq!(lost, (1, (1024, 4096)));
        let covers = run.covers(lost.1);
        assert_eq!(covers.iter().collect::<Vec<_>>(), [1, 2, 3]);
        let mut columns: Vec<Option<BufMut>> = (0..8).map(|_| None).collect();
        let lent = run.lend(StripSet::range(2, 4), lost.1, &mut columns);
        // Byte 1024 of strip 2 is 3072 + 1024 bytes behind the run's begin.
        let column = columns[2].as_ref().expect("lent");
        assert_eq!(column[..], before[4096..][..3072]);
        assert!(columns[1].is_none() && columns[4].is_none());
        lent.end(&mut run, &mut columns);
        run.fill(1, &[9; 3072]);
        let whole = run.join();
        assert_eq!((whole.as_ptr(), &whole[..3072]), (address, &[9; 3072][..]));
        assert_eq!(whole[3072..], before[3072..]);
    }

    #[test]
    fn one_strip_is_no_run() {
        let mut run = Run::cut(10, Pool::single(100), 4096);
        assert_eq!(run.lacks(StripSet::default()), None);
        let part = run.parts().next().expect("one");
        let taken = part.take();
        run.give_back(0, taken);
        assert_eq!(run.join().len(), 100);
    }
}
