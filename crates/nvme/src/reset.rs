//! Cross-Controller Reset: a host has a controller of its own ended by another, to be sure that
//! nothing more comes of what it had sent there.
//!
//! Base 2.3 (which has TP8028): section 5.4.3 and figure 522 for the command, figures 304 and 305
//! for the log page 1Eh; what tells controllers apart is in Identify Controller (figure 328: CIU,
//! CIRN, CCRL).

use crate::bytes::{u16_at, u64_at};
use crate::command::Command;
use alloc::vec::Vec;

/// A controller as long as it lasts: another that has its number later is another instance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Instance {
    /// Its number in the subsystem (ICID).
    pub controller: u16,
    /// Differs from that of the instance before (CIU); 0: controllers do not say.
    pub uniquifier: u8,
    /// At random (CIRN).
    pub random: u64,
}

impl Instance {
    /// The command's dwords 10 to 15.
    pub fn dwords(self) -> [u32; 6] {
        let ten = u32::from(self.controller) | u32::from(self.uniquifier) << 16;
        [ten, 0, self.random as u32, (self.random >> 32) as u32, 0, 0]
    }

    /// Of which controller a command is.
    pub fn decode(command: &Command) -> Self {
        let ten = command.dword(10);
        Self {
            controller: ten as u16,
            uniquifier: (ten >> 16) as u8,
            random: u64_at(&command.0, 48),
        }
    }
}

/// Bit of the command's result: it is done, and there is no entry in the page.
pub const IMMEDIATE: u64 = 1;

/// Bit of the specific field of the page: entries of what is over are removed (RMC).
pub const REMOVE: u8 = 1;

/// What has become of a reset (CCRS).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// It goes on.
    UnderWay,
    /// The controller has ended, with all it had begun.
    Done,
    /// It can't be said that it has.
    Failed,
}

/// A reset in the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The controller that is ended.
    pub controller: u16,
    /// Which instance of that.
    pub uniquifier: u8,
    /// The controller that was asked to (ACID).
    pub by: u16,
    /// What has become of it.
    pub progress: Progress,
}

impl Entry {
    /// Whether it is of this controller.
    pub fn is_of(&self, instance: Instance) -> bool {
        self.controller == instance.controller && self.uniquifier == instance.uniquifier
    }
}

/// Bytes of the page's head, and of an entry.
const ENTRY: usize = 8;

/// The page of resets.
pub fn page(entries: &[Entry]) -> Vec<u8> {
    let mut all = alloc::vec![0; ENTRY];
    all[..2].copy_from_slice(&(entries.len() as u16).to_le_bytes());
    for entry in entries {
        let [low, high] = entry.controller.to_le_bytes();
        let [by_low, by_high] = entry.by.to_le_bytes();
        let (status, flags) = match entry.progress {
            // Validated, and the reset has begun.
            Progress::UnderWay => (0, 0b11),
            Progress::Done => (1, 0b11),
            Progress::Failed => (2, 0b11),
        };
        all.extend([low, high, entry.uniquifier, 0, by_low, by_high, status, flags]);
    }
    all
}

/// Reads the page, as far as it goes. A status that is not known is no success.
pub fn entries(b: &[u8]) -> Vec<Entry> {
    let Some((head, rest)) = b.split_first_chunk::<ENTRY>() else { return Vec::new() };
    let (all, _) = rest.as_chunks::<ENTRY>();
    let entry = |own: &[u8; ENTRY]| Entry {
        controller: u16_at(own, 0),
        uniquifier: own[2],
        by: u16_at(own, 4),
        progress: match own[6] {
            0 => Progress::UnderWay,
            1 => Progress::Done,
            _ => Progress::Failed,
        },
    };
    all.iter().take(u16_at(head, 0).into()).map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::admin;
    use crate::sgl::Sgl;

    #[test]
    fn a_command_names_an_instance() {
        let instance = Instance { controller: 0x1234, uniquifier: 0x56, random: 0x0102_0304_0506 };
        let command = Command::new(admin::CROSS_CONTROLLER_RESET, 0, 0, Sgl::Other(0));
        let command = command.with_dwords(instance.dwords());
        assert_eq!(command.0[0], 0x38);
        assert_eq!(command.0[40..44], [0x34, 0x12, 0x56, 0]);
        assert_eq!(command.0[48..56], [6, 5, 4, 3, 2, 1, 0, 0]);
        assert_eq!(Instance::decode(&command), instance);
    }

    #[test]
    fn the_page_is_read_as_it_was_written_and_no_further() {
        let entry = |controller, progress| Entry { controller, uniquifier: 7, by: 3, progress };
        let all = [Progress::UnderWay, Progress::Done, Progress::Failed];
        let all: Vec<_> = (1..).zip(all).map(|(n, progress)| entry(n, progress)).collect();
        let mut b = page(&all);
        assert_eq!((b.len(), &b[8..16]), (32, &[1, 0, 7, 0, 3, 0, 0, 3][..]));
        assert_eq!(entries(&b), all);
        b[14] = 9;
        assert_eq!(entries(&b)[0].progress, Progress::Failed);
        b[0] = 9;
        assert_eq!(entries(&b).len(), 3);
        assert_eq!(entries(&b[..20]).len(), 1);
        assert_eq!(entries(&b[..7]).len(), 0);
        assert_eq!(entries(&page(&[])), []);
    }
}
