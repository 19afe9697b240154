//! Reads DER (X.690, section 10), as far as certificates need it.
//!
//! Invariant: what is read lies within what was given.

/// Tags.
pub const BOOLEAN: u8 = 0x01;
pub const INTEGER: u8 = 0x02;
pub const OCTET_STRING: u8 = 0x04;
pub const OBJECT_IDENTIFIER: u8 = 0x06;
pub const UTC_TIME: u8 = 0x17;
pub const GENERALIZED_TIME: u8 = 0x18;
pub const SEQUENCE: u8 = 0x30;
pub const SET: u8 = 0x31;
/// Of a certificate.
pub const VERSION: u8 = 0xa0;
pub const EXTENSIONS: u8 = 0xa3;
/// Of an alternative name.
pub const DNS_NAME: u8 = 0x82;
pub const IP_ADDRESS: u8 = 0x87;

/// Elements, one behind the other.
#[derive(Clone, Copy)]
pub struct Der<'a> {
    rest: &'a [u8],
}

impl<'a> Der<'a> {
    /// Those in these bytes.
    pub const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// The next element: its tag, and what is in it. None at the end, or where it is none.
    pub fn any(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[tag, first], rest) = self.rest.split_first_chunk::<2>()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                let length = digits.iter().try_fold(0_usize, |length, digit| {
                    length.checked_mul(256)?.checked_add(usize::from(*digit))
                })?;
                (length, rest)
            }
            _ => return None,
        };
        let (inner, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        Some((tag, inner))
    }

    /// The next element with its tag and length.
    pub fn whole(&mut self) -> Option<&'a [u8]> {
        let before = self.rest;
        self.any()?;
        before.get(..before.len().checked_sub(self.rest.len())?)
    }

    /// The next element, if it is of this kind; else nothing is taken.
    pub fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let (own, inner) = ahead.any()?;
        (own == tag).then(|| {
            *self = ahead;
            inner
        })
    }

    /// Skips an element of this kind, if it is there.
    pub fn optional(&mut self, tag: u8) {
        let _ = self.take(tag);
    }

    /// What is in the next element, a sequence.
    pub fn sequence(&mut self) -> Option<Self> {
        self.take(SEQUENCE).map(Self::new)
    }

    /// What is in the next element, a set.
    pub fn set(&mut self) -> Option<Self> {
        self.take(SET).map(Self::new)
    }
}
