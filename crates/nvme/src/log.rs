//! Log pages: what Get Log Page gives, whole or a part of it.
//!
//! Base, section 5.16 (Get Log Page), figures 196 to 206 and 264; ANA in section 8.1.

use crate::bytes::{array_at, put, u16_at, u32_at, u64_at};
use crate::command::Command;
use crate::drive;
use crate::nqn::Nqn;
use crate::status::Status;
use alloc::vec::Vec;

/// Identifiers of log pages (Base, figure 202).
pub mod page {
    /// Log pages that there are.
    pub const SUPPORTED: u8 = 0x00;
    /// Errors of commands.
    pub const ERRORS: u8 = 0x01;
    /// Health.
    pub const HEALTH: u8 = 0x02;
    /// Firmware slots.
    pub const FIRMWARE: u8 = 0x03;
    /// Namespaces that changed since this was read.
    pub const CHANGED_NAMESPACES: u8 = 0x04;
    /// Commands that there are, and what they do.
    pub const EFFECTS: u8 = 0x05;
    /// Asymmetric namespace access.
    pub const ANA: u8 = 0x0c;
    /// Cross-controller resets: see [`crate::reset`].
    pub const RESETS: u8 = 0x1e;
    /// Subsystems, by the discovery service.
    pub const DISCOVERY: u8 = 0x70;
}

/// Which part of which page a command asks for (dwords 10 to 14).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// The page.
    pub page: u8,
    /// What the page makes of it.
    pub specific: u8,
    /// What it would tell of events is not taken off.
    pub retain: bool,
    /// Bytes, a multiple of 4, at most 16 GiB.
    pub bytes: u64,
    /// Where they begin in the page; or, by index, which of its entries is the first.
    pub offset: u64,
    /// The offset is an index.
    pub by_index: bool,
}

impl Wanted {
    /// Reads a Get Log Page, which the command must be.
    pub fn decode(command: &Command) -> Self {
        let (ten, eleven) = (command.dword(10), command.dword(11));
        let dwords = u64::from(ten >> 16) | u64::from(eleven & 0xffff) << 16;
        Self {
            page: ten as u8,
            specific: (ten >> 8) as u8 & 0x7f,
            retain: ten >> 15 & 1 == 1,
            bytes: (dwords + 1) * 4,
            offset: u64_at(&command.0, 48),
            by_index: command.dword(14) >> 23 & 1 == 1,
        }
    }

    /// The part of a page that is wanted, into `buffer`; what is behind its end is zero.
    ///
    /// # Errors
    /// The offset is no dword's, behind the page's end, or an index.
    pub fn part(&self, whole: &[u8], buffer: &mut [u8]) -> Result<(), Status> {
        if self.by_index || !self.offset.is_multiple_of(4) {
            return Err(Status::INVALID_FIELD);
        }
        let offset = usize::try_from(self.offset).map_err(|_| Status::INVALID_FIELD)?;
        let rest = whole.get(offset..).ok_or(Status::INVALID_FIELD)?;
        let count = rest.len().min(buffer.len());
        let (said, behind) = buffer.split_at_mut(count);
        said.copy_from_slice(&rest[..count]);
        behind.fill(0);
        Ok(())
    }
}

/// Where hosts find a subsystem (Base, figure 264: discovery log page entry).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// What is there.
    pub kind: PlaceKind,
    /// The subsystem.
    pub subsystem: Nqn,
    /// The port's number, of the subsystem's choice.
    pub port: u16,
    /// The address, as text; cut at 256 bytes.
    pub address: alloc::string::String,
    /// It is of IPv6; else of IPv4.
    pub is_v6: bool,
    /// The TCP port, as text.
    pub service: alloc::string::String,
}

/// What is at a [`Place`] (SUBTYPE).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum PlaceKind {
    /// Another discovery service.
    Referral = 1,
    /// A subsystem with namespaces.
    Subsystem = 2,
    /// This discovery service.
    Discovery = 3,
}

/// Bytes of the discovery page before its entries, and of each.
pub const DISCOVERY_ENTRY_BYTES: usize = 1024;
const TCP: u8 = 3;

/// The discovery page: its generation, then every place.
pub fn discovery(generation: u64, places: &[Place]) -> Vec<u8> {
    let mut all = alloc::vec![0; DISCOVERY_ENTRY_BYTES * (1 + places.len())];
    all[..8].copy_from_slice(&generation.to_le_bytes());
    all[8..16].copy_from_slice(&(places.len() as u64).to_le_bytes());
    let entries = all[DISCOVERY_ENTRY_BYTES..].chunks_exact_mut(DISCOVERY_ENTRY_BYTES);
    for (entry, place) in entries.zip(places) {
        let family = if place.is_v6 { 2 } else { 1 };
        // Nothing is said of secure channels: where they are "not required" libnvme asks for TLS.
        // Submission queue flow control may be off.
        entry[..4].copy_from_slice(&[TCP, family, place.kind as u8, 0b100]);
        entry[4..6].copy_from_slice(&place.port.to_le_bytes());
        // Controllers are made as hosts connect.
        entry[6..8].copy_from_slice(&0xffffu16.to_le_bytes());
        entry[8..10].copy_from_slice(&32u16.to_le_bytes());
        text(&mut entry[32..64], &place.service);
        entry[256..512].copy_from_slice(&place.subsystem.encode());
        text(&mut entry[512..768], &place.address);
    }
    all
}

/// Reads the begin of the discovery page: its generation, and how many entries follow.
pub fn discovery_head(b: &[u8; DISCOVERY_ENTRY_BYTES]) -> (u64, u64) {
    (u64_at(b, 0), u64_at(b, 8))
}

/// Reads entries of the discovery page. Those of other transports, of kinds that are not known, and
/// those without a possible name are passed over.
pub fn places(entries: &[u8]) -> Vec<Place> {
    let (all, _) = entries.as_chunks::<DISCOVERY_ENTRY_BYTES>();
    all.iter().filter_map(place).collect()
}

fn place(b: &[u8; DISCOVERY_ENTRY_BYTES]) -> Option<Place> {
    let kind = match b[2] {
        1 => PlaceKind::Referral,
        2 => PlaceKind::Subsystem,
        3 => PlaceKind::Discovery,
        _ => return None,
    };
    let is_v6 = match (b[0], b[1]) {
        (TCP, 1) => false,
        (TCP, 2) => true,
        _ => return None,
    };
    let (service, address) = (drive::text(&b[32..64]), drive::text(&b[512..768]));
    let subsystem = Nqn::decode(&array_at(b, 256)).ok()?;
    Some(Place { kind, subsystem, port: u16_at(b, 4), address, is_v6, service })
}

/// Puts ASCII text padded with blanks.
fn text(into: &mut [u8], text: &str) {
    into.fill(b' ');
    into.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
}

/// Health (Base, figure 205), as far as an array has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Health {
    /// It can lose fewer drives than it should: spare is below the threshold (bit 0), reliability
    /// is degraded (bit 2).
    pub is_degraded: bool,
    /// Nobody can write it.
    pub is_read_only: bool,
    /// Bytes that hosts have read.
    pub read_bytes: u64,
    /// Bytes that hosts have written.
    pub written_bytes: u64,
    /// Their commands that read.
    pub reads: u64,
    /// Their commands that write.
    pub writes: u64,
    /// Blocks that can't be given back.
    pub media_errors: u64,
    /// Errors that the page of errors has counted.
    pub errors: u64,
}

impl Health {
    /// Writes the page.
    pub fn encode(&self) -> [u8; 512] {
        let mut b = [0; 512];
        let degraded = u8::from(self.is_degraded);
        b[0] = degraded | degraded << 2 | u8::from(self.is_read_only) << 3;
        // 300 kelvin: temperatures are the drives' own matter.
        put(&mut b, 1, &300u16.to_le_bytes());
        (b[3], b[4]) = (if self.is_degraded { 0 } else { 100 }, 10);
        // Units of a thousand blocks of 512 bytes, rounded up.
        let units = |bytes: u64| bytes.div_ceil(512_000);
        let all = [
            (32, units(self.read_bytes)),
            (48, units(self.written_bytes)),
            (64, self.reads),
            (80, self.writes),
            (160, self.media_errors),
            (176, self.errors),
        ];
        all.into_iter().for_each(|(at, value)| put(&mut b, at, &value.to_le_bytes()));
        b
    }
}

/// The page of firmware slots: one, which is active.
pub fn firmware(revision: &str) -> [u8; 512] {
    let mut b = [0; 512];
    b[0] = 1;
    text(&mut b[8..16], revision);
    b
}

/// The page of commands: those of the admin queue and of I/O queues that there are.
pub fn effects(admin: &[u8], io: &[u8], writes: &[u8]) -> [u8; 4096] {
    let mut b = [0; 4096];
    for opcode in admin {
        b[4 * usize::from(*opcode)] = 1;
    }
    for opcode in io {
        // Supported (bit 0), and changes the content of blocks (bit 1).
        let at = 1024 + 4 * usize::from(*opcode);
        b[at] = 1 | u8::from(writes.contains(opcode)) << 1;
    }
    b
}

/// The page of pages that there are.
pub fn supported(pages: &[u8]) -> [u8; 1024] {
    let mut b = [0; 1024];
    pages.iter().for_each(|page| b[4 * usize::from(*page)] = 1);
    b
}

/// The page of asymmetric access (Base, figures 218 and 219): how often anything of it changed, and
/// the groups.
pub fn ana(changes: u64, groups: &[AccessGroup]) -> Vec<u8> {
    let mut head = [0; 16];
    put(&mut head, 0, &changes.to_le_bytes());
    put(&mut head, 8, &(groups.len() as u16).to_le_bytes());
    let mut all = head.to_vec();
    for group in groups {
        let mut own = [0; 32];
        put(&mut own, 0, &group.id.to_le_bytes());
        put(&mut own, 4, &(group.namespaces.len() as u32).to_le_bytes());
        put(&mut own, 8, &group.changes.to_le_bytes());
        own[16] = group.access.code();
        all.extend(own);
        group.namespaces.iter().for_each(|id| all.extend(id.to_le_bytes()));
    }
    all
}

/// How a controller comes to a group of namespaces (Base, section 8.1.2, and figure 219).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// As well as any controller.
    Optimized,
    /// Not as well as others.
    NonOptimized,
    /// Not now.
    Inaccessible,
    /// Never again.
    PersistentLoss,
    /// It is changing.
    Change,
}

impl Access {
    /// As the page has it.
    const fn code(self) -> u8 {
        match self {
            Self::Optimized => 1,
            Self::NonOptimized => 2,
            Self::Inaccessible => 3,
            Self::PersistentLoss => 4,
            Self::Change => 0xf,
        }
    }

    /// How a command to a namespace ends to which there is no way now (Base, section 8.1.2.3):
    /// another controller may have one.
    pub const fn refusal(self) -> Option<Status> {
        match self {
            Self::Optimized | Self::NonOptimized => None,
            Self::Inaccessible => Some(Status::ACCESS_INACCESSIBLE),
            Self::PersistentLoss => Some(Status::ACCESS_LOST),
            Self::Change => Some(Status::ACCESS_CHANGES),
        }
    }
}

/// A group of namespaces with the same access.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessGroup {
    /// Its number.
    pub id: u32,
    /// How the controller comes to it.
    pub access: Access,
    /// What the page's count was when that changed last.
    pub changes: u64,
    /// Its namespaces.
    pub namespaces: Vec<u32>,
}

/// Reads the page of asymmetric access: its change count, and its groups. Groups whose state is not
/// known are inaccessible; those that do not stand in the page to their end are left out, and so is
/// what follows them.
pub fn access(b: &[u8]) -> Option<(u64, Vec<AccessGroup>)> {
    let (head, mut rest) = b.split_first_chunk::<16>()?;
    let mut groups = Vec::new();
    for _ in 0..u16_at(head, 8) {
        let Some((own, behind)) = rest.split_first_chunk::<32>() else { break };
        let bytes = (u32_at(own, 4) as usize).checked_mul(4);
        let Some((ids, behind)) = bytes.and_then(|bytes| behind.split_at_checked(bytes)) else {
            break;
        };
        let access = match own[16] & 0xf {
            1 => Access::Optimized,
            2 => Access::NonOptimized,
            4 => Access::PersistentLoss,
            0xf => Access::Change,
            _ => Access::Inaccessible,
        };
        let (ids, _) = ids.as_chunks::<4>();
        let namespaces = ids.iter().map(|id| u32::from_le_bytes(*id)).collect();
        let (id, changes) = (u32_at(own, 0), u64_at(own, 8));
        groups.push(AccessGroup { id, access, changes, namespaces });
        rest = behind;
    }
    Some((u64_at(head, 0), groups))
}

/// The page of namespaces that changed, in ascending order; of more than 1024 only that.
pub fn changed_namespaces(ids: &[u32]) -> [u8; 4096] {
    let mut b = [0; 4096];
    if ids.len() > b.len() / 4 {
        b[..4].fill(0xff);
        return b;
    }
    ids.iter().enumerate().for_each(|(i, id)| put(&mut b, 4 * i, &id.to_le_bytes()));
    b
}

/// Whether a host that reads so many bytes of the page of changed namespaces has read them all.
pub fn is_all_changed(b: &[u8; 4096], bytes: usize) -> bool {
    bytes >= b.len() || (bytes >= 4 && u32_at(b, bytes.next_multiple_of(4) - 4) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{COMMAND_BYTES, admin};

    fn command(ten: u32, eleven: u32, offset: u64) -> Command {
        let mut bytes = [0; COMMAND_BYTES];
        bytes[0] = admin::GET_LOG_PAGE;
        put(&mut bytes, 40, &ten.to_le_bytes());
        put(&mut bytes, 44, &eleven.to_le_bytes());
        put(&mut bytes, 48, &offset.to_le_bytes());
        Command(bytes)
    }

    #[test]
    fn what_a_linux_host_asks_of_discovery_is_read() {
        // libnvme, nvme_discovery_log: the header first, 1024 bytes.
        let wanted = Wanted::decode(&command(255 << 16 | 0x70, 0, 0));
        assert_eq!((wanted.page, wanted.bytes, wanted.offset), (page::DISCOVERY, 1024, 0));
        let wanted = Wanted::decode(&command(0xffff << 16 | 1 << 15 | 0x0c, 1, 1 << 33));
        assert_eq!((wanted.bytes, wanted.retain), ((1 << 17) * 4, true));
        assert_eq!(wanted.offset, 1 << 33);
    }

    /// CVE-2026-64320: the offset of the discovery page was believed.
    #[test]
    fn a_part_never_reaches_outside_of_its_page() {
        let whole: Vec<u8> = (0..100).collect();
        let part = |offset, bytes: usize| {
            let mut buffer = alloc::vec![7; bytes];
            let wanted = Wanted::decode(&command(0x70, 0, offset));
            wanted.part(&whole, &mut buffer).map(|()| buffer)
        };
        assert_eq!(part(96, 8), Ok(alloc::vec![96, 97, 98, 99, 0, 0, 0, 0]));
        assert_eq!(part(100, 4), Ok(alloc::vec![0; 4]));
        for offset in [104, 2, u64::MAX - 3, 1 << 63, u64::from(u32::MAX) - 3] {
            assert_eq!(part(offset, 4), Err(Status::INVALID_FIELD), "{offset}");
        }
    }

    #[test]
    fn the_discovery_page_stands_where_the_document_says() {
        let place = Place {
            kind: PlaceKind::Subsystem,
            subsystem: Nqn::new("nqn.2026-11.example:a").unwrap(),
            port: 2,
            address: "192.0.2.7".into(),
            is_v6: false,
            service: "4420".into(),
        };
        let all = discovery(9, &[place.clone(), Place { is_v6: true, ..place }]);
        assert_eq!((all.len(), all[0], all[8]), (3072, 9, 2));
        let entry = &all[1024..2048];
        assert_eq!(&entry[..10], &[3, 1, 2, 4, 2, 0, 0xff, 0xff, 32, 0]);
        assert_eq!((&entry[32..37], &entry[512..522]), (&b"4420 "[..], &b"192.0.2.7 "[..]));
        assert_eq!((&entry[256..278], all[2049]), (&b"nqn.2026-11.example:a\0"[..], 2));
    }

    #[test]
    fn the_discovery_page_is_read_as_it_was_written() {
        let place = |port, is_v6, service: &str| Place {
            kind: PlaceKind::Subsystem,
            subsystem: Nqn::new("nqn.2026-11.example:a").unwrap(),
            port,
            address: "192.0.2.7".into(),
            is_v6,
            service: service.into(),
        };
        let all = [place(1, false, "4420"), place(2, true, "")];
        let mut b = discovery(9, &all);
        let head = *b.first_chunk().unwrap();
        assert_eq!(discovery_head(&head), (9, 2));
        assert_eq!(places(&b[1024..]), all);
        // Cut, of another transport, of a kind that nobody knows, without a name.
        assert_eq!(places(&b[1024..3071]), all[..1]);
        for (at, value) in [(1024, 1), (1025, 3), (1026, 4), (1280, 0)] {
            let before = core::mem::replace(&mut b[at], value);
            assert_eq!(places(&b[1024..]), all[1..], "{at}");
            b[at] = before;
        }
        b[1536] = 7;
        assert_eq!(places(&b[1024..])[0].address, "?92.0.2.7");
    }

    #[test]
    fn the_page_of_access_is_read_as_it_was_written() {
        let group = |access, namespaces| AccessGroup { id: 5, access, changes: 7, namespaces };
        let mut b = ana(8, &[group(Access::Optimized, alloc::vec![3, 4])]);
        let read = |b: &[u8]| access(b).map(|(count, groups)| (count, groups[..].to_vec()));
        let is = |state| Some((8, alloc::vec![group(state, alloc::vec![3, 4])]));
        assert_eq!(read(&b), is(Access::Optimized));
        for (value, state) in [
            (2, Access::NonOptimized),
            (3, Access::Inaccessible),
            (4, Access::PersistentLoss),
            (0xf, Access::Change),
            (9, Access::Inaccessible),
        ] {
            b[32] = value;
            let is_known = state.code() == value;
            assert!(!is_known || b == ana(8, &[group(state, alloc::vec![3, 4])]));
            assert_eq!(read(&b), is(state));
            assert_eq!(state.refusal().is_none(), value == 2);
        }
        // More groups, or namespaces, than there are in the page.
        b[8] = 3;
        assert_eq!(read(&b).map(|own| own.1.len()), Some(1));
        b[20..24].fill(0xff);
        assert_eq!(read(&b).map(|own| own.1.len()), Some(0));
        assert_eq!(read(&b[..15]), None);
    }

    #[test]
    fn pages_stand_where_the_document_says() {
        let health =
            Health { is_degraded: true, read_bytes: 512_001, reads: 3, ..Health::default() };
        let b = health.encode();
        assert_eq!((b[0], b[3], u64_at(&b, 32), u64_at(&b, 64)), (0b101, 0, 2, 3));
        let b = effects(&[0x06], &[0x01, 0x02], &[0x01]);
        assert_eq!((b[24], b[1028], b[1032], b[0]), (1, 3, 1, 0));
        assert_eq!(&firmware("0.1.0")[..14], b"\x01\0\0\0\0\0\0\x000.1.0 ");
        let group = AccessGroup {
            id: 1,
            access: Access::Optimized,
            changes: 0,
            namespaces: alloc::vec![3, 4],
        };
        let b = ana(0, &[group]);
        assert_eq!((b[8], b[16], b[20], b[32], b.len(), b[48], b[52]), (1, 1, 2, 1, 56, 3, 4));
        assert_eq!((supported(&[2])[8], supported(&[2])[4]), (1, 0));
        let b = changed_namespaces(&[1, 5]);
        assert_eq!((u32_at(&b, 0), u32_at(&b, 4), u32_at(&b, 8)), (1, 5, 0));
        assert!(!is_all_changed(&b, 8) && is_all_changed(&b, 12) && is_all_changed(&b, 4096));
        assert_eq!(changed_namespaces(&[1; 1025])[..8], [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    }
}
