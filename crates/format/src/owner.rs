//! Owner pages: which server has a shared array, and that it lives. Code of `docs/owner-pages.md`.
//!
//! A page stands on each drive of the array, apart from the records: those are too large to be
//! written every second.
//!
//! Invariant: the first [`OWNER_NAMED_BYTES`] of a page say whose it is, and stay the same as long
//! as that server has the array: a program that can't read the rest can tell by them.

use crate::codec::{Reader, Writer, crc32c};
use crate::limits::{
    CONTROLLERS_MAX, NAME_MAX, OWNER_BYTES, OWNER_HEADER_BYTES, OWNER_MAGIC, OWNER_NAMED_BYTES,
};
use crate::record::Owner;
use units::Uuid;

/// A controller by which the owner reaches the drive (NVM Express Base 2.3, section 5.2.13: CNTLID,
/// CIU and CIRN).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Controller {
    /// Its number within the subsystem.
    pub number: u16,
    /// Tells it from earlier ones of that number.
    pub uniquifier: u8,
    /// The same, at random.
    pub random: u64,
}

/// What an owner page says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnerPage {
    /// The array.
    pub array: Uuid,
    /// Who has it; `None`: nobody.
    pub owner: Option<Owner>,
    /// Random; another one each time that a server takes the array.
    pub term: u64,
    /// Counts the writes of this page in its term.
    pub heartbeat: u64,
    /// When it was written, milliseconds since 1970 by the owner's clock; for people only.
    pub unix_millis: u64,
    /// How often the owner writes it, milliseconds.
    pub period_ms: u32,
    /// How long after the last contact what the owner sent may be carried out, milliseconds.
    pub fence_ms: u32,
    /// What people call the owner; at most 64 bytes.
    pub name: String,
    /// The controllers by which it reaches this drive.
    pub controllers: Vec<Controller>,
}

const CRC_AT: usize = 124;

impl OwnerPage {
    /// The page that says that nobody has an array.
    pub const fn nobody(array: Uuid) -> Self {
        Self {
            array,
            owner: None,
            term: 0,
            heartbeat: 0,
            unix_millis: 0,
            period_ms: 0,
            fence_ms: 0,
            name: String::new(),
            controllers: Vec::new(),
        }
    }
}

/// The bytes of a page. A name that is too long is cut, and so are the controllers.
pub fn encode(page: &OwnerPage) -> Vec<u8> {
    let mut out = Writer::default();
    out.0.extend(OWNER_MAGIC);
    out.uuid(page.array);
    out.uuid(page.owner.map_or(Uuid::NIL, |owner| owner.host));
    out.uuid(page.owner.map_or(Uuid::NIL, |owner| owner.boot));
    out.u64(page.term);
    debug_assert_eq!(out.0.len(), OWNER_NAMED_BYTES, "whose it is");
    out.u64(page.heartbeat);
    out.u64(page.unix_millis);
    out.u32(page.period_ms);
    out.u32(page.fence_ms);
    let controllers = &page.controllers[..page.controllers.len().min(CONTROLLERS_MAX)];
    out.count(controllers.len());
    let name = cut(&page.name);
    out.u8(name.len() as u8);
    out.zeros(CRC_AT + 4 - out.0.len());
    out.text(&name);
    out.zeros(OWNER_HEADER_BYTES - out.0.len());
    for controller in controllers {
        out.u16(controller.number);
        out.u8(controller.uniquifier);
        out.zeros(5);
        out.u64(controller.random);
    }
    out.zeros(OWNER_BYTES - out.0.len());
    let crc = crc32c(&out.0);
    out.0[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
    out.0
}

/// A name as a page may hold it: cut, and without control characters.
fn cut(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars().filter(|c| !c.is_control()) {
        if text.len() + c.len_utf8() > NAME_MAX {
            break;
        }
        text.push(c);
    }
    text
}

/// Reads a page; `None` if these bytes are none.
pub fn decode(bytes: &[u8]) -> Option<OwnerPage> {
    let bytes = bytes.get(..OWNER_BYTES).filter(|bytes| bytes.starts_with(&OWNER_MAGIC))?;
    let crc = &bytes[CRC_AT..CRC_AT + 4];
    let mut covered = bytes.to_vec();
    covered[CRC_AT..CRC_AT + 4].fill(0);
    if crc32c(&covered).to_le_bytes() != *crc {
        return None;
    }
    fields(&covered[OWNER_MAGIC.len()..])
}

/// Reads what is behind the magic of a page that is whole.
fn fields(bytes: &[u8]) -> Option<OwnerPage> {
    let from = &mut Reader(bytes);
    let array = from.uuid().ok()?;
    let owner = Owner { host: from.uuid().ok()?, boot: from.uuid().ok()? };
    let mut page = OwnerPage {
        owner: (owner.host != Uuid::NIL).then_some(owner),
        term: from.u64().ok()?,
        heartbeat: from.u64().ok()?,
        unix_millis: from.u64().ok()?,
        period_ms: from.u32().ok()?,
        fence_ms: from.u32().ok()?,
        ..OwnerPage::nobody(array)
    };
    let (count, name) = (usize::from(from.u16().ok()?), usize::from(from.u8().ok()?));
    from.zeros(CRC_AT + 4 - 91).ok()?;
    page.name = from.text(name, NAME_MAX).ok()?;
    from.zeros(NAME_MAX - name).ok()?;
    if page.owner.is_none() && owner.boot != Uuid::NIL || count > CONTROLLERS_MAX {
        return None;
    }
    for _ in 0..count {
        let (number, uniquifier) = (from.u16().ok()?, from.u8().ok()?);
        from.zeros(5).ok()?;
        page.controllers.push(Controller { number, uniquifier, random: from.u64().ok()? });
    }
    from.zeros(from.0.len()).ok()?;
    Some(page)
}

/// What the pages of a term of an array begin with, and no others.
pub fn named(array: Uuid, owner: Owner, term: u64) -> Vec<u8> {
    let page = OwnerPage { owner: Some(owner), term, ..OwnerPage::nobody(array) };
    let mut bytes = encode(&page);
    bytes.truncate(OWNER_NAMED_BYTES);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> OwnerPage {
        let uuid = |n: u8| Uuid::from_random([n; 16]);
        OwnerPage {
            array: uuid(1),
            owner: Some(Owner { host: uuid(2), boot: uuid(3) }),
            term: 4,
            heartbeat: 5,
            unix_millis: 6,
            period_ms: 7,
            fence_ms: 8,
            name: "host".into(),
            controllers: vec![Controller { number: 9, uniquifier: 10, random: 11 }; 3],
        }
    }

    #[test]
    fn a_page_is_read_as_it_was_written() {
        for page in [page(), OwnerPage::nobody(Uuid::from_random([9; 16]))] {
            assert_eq!(decode(&encode(&page)), Some(page));
        }
        let long = OwnerPage {
            name: "ä".repeat(40) + "\n",
            controllers: vec![Controller { number: 1, uniquifier: 2, random: 3 }; 500],
            ..page()
        };
        let read = decode(&encode(&long)).expect("is one");
        assert_eq!((read.name, read.controllers.len()), ("ä".repeat(32), CONTROLLERS_MAX));
    }

    #[test]
    fn a_page_with_a_bit_changed_is_none() {
        let image = encode(&page());
        for at in 0..OWNER_BYTES {
            let mut image = image.clone();
            image[at] ^= 1;
            assert_eq!(decode(&image), None, "byte {at}");
        }
        assert_eq!(decode(&image[..OWNER_BYTES - 1]), None);
    }

    #[test]
    fn the_begin_of_a_page_says_whose_it_is() {
        let page = page();
        let of = |page: &OwnerPage| {
            let owner = page.owner.expect("has one");
            named(page.array, owner, page.term)
        };
        let later = OwnerPage { heartbeat: 99, controllers: Vec::new(), ..page.clone() };
        assert!(encode(&later).starts_with(&of(&page)));
        let other = OwnerPage { term: 5, ..page.clone() };
        assert!(!encode(&other).starts_with(&of(&page)));
    }
}
