//! What `drive inspect` tells of a drive's record: read without the daemon, printed as the answers
//! of [`crate::view`] are.

use crate::view::{LastScrub, SlotInfo, Unreadable, Volume};
use serde::{Deserialize, Serialize};

/// What a drive's record says (`drive inspect`, read without the daemon).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Inspected {
    /// The drive's path.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Identity of its array.
    pub array_uuid: String,
    /// Name of its array.
    pub array_name: String,
    /// Identity of the drive in the array.
    pub drive_uuid: String,
    /// Its slot.
    pub slot: u16,
    /// `0`, `1`, `5`, `6`, `10` or `jbod`.
    pub level: String,
    /// Slots of the array.
    pub drives: u16,
    /// Strip size.
    pub strip_bytes: u32,
    /// Block size.
    pub block_bytes: u32,
    /// Where the data area begins.
    pub data_offset: u64,
    /// How long it is.
    pub data_bytes: u64,
    /// The epoch's counter.
    pub epoch: u64,
    /// How often records were written.
    pub sequence: u64,
    /// Whether the creation was finished.
    pub zeroed: bool,
    /// Whether any group may have had writes under way.
    pub unclean: bool,
    /// Whether the record has a journal key: batches and in-flight pages of the journal may count.
    pub journal: bool,
    /// Groups of which the journal stands for all that may have been under way.
    pub guarded_groups: Vec<u16>,
    /// Groups whose redundancy a person had trusted for want of anything better.
    pub loss_accepted_groups: Vec<u16>,
    /// What the record says of each slot, in order.
    pub slots: Vec<SlotInfo>,
    /// The volumes.
    pub volumes: Vec<Volume>,
    /// How many lost ranges the record lists; at most 4096 fit.
    pub lost_ranges: u64,
    /// These, as volumes have them; neighbours of one reason are one range.
    pub unreadable: Vec<Unreadable>,
    /// What the last finished scrub found.
    pub last_scrub: Option<LastScrub>,
}
