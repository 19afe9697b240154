//! Why bytes are not an array record.

use crate::limits::FORMAT_VERSION;
use crate::record::ArrayRecord;
use layout::LayoutError;
use thiserror::Error;

/// Why a record slot's bytes are not a record this program reads.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum FormatError {
    /// There is no magic: not a Palisade drive.
    #[error("no Palisade record")]
    NoMagic,
    /// The header's CRC is wrong, or there are fewer bytes than a header.
    #[error("the record's header is damaged")]
    HeaderDamaged,
    /// The record's CRC is wrong, or its bytes are not all there: an interrupted write.
    #[error("the record is damaged")]
    RecordDamaged,
    /// Written in another version of the format.
    #[error("the record has format version {0}, this release reads version {FORMAT_VERSION}")]
    Version(u32),
    /// Written by a later release with features that this one does not know.
    #[error("the record uses features that this release does not know (incompat {0:#x})")]
    Incompatible(u32),
    /// The record breaks a rule of the format.
    #[error("the record is not valid: {0}")]
    Invalid(&'static str),
    /// Records that were written are neither at the drive's end nor where that may have been.
    #[error("its newest record may be missing: its size changed, or its end was overwritten")]
    TailMissing {
        /// The newest record that is there, which at most one followed.
        record: Box<ArrayRecord>,
        /// Its slot.
        slot: usize,
    },
    /// The record's layout does not hold together.
    #[error("the record is not valid: {0}")]
    Layout(#[from] LayoutError),
}

impl FormatError {
    /// True for what an interrupted write leaves behind: older records of the drive count then.
    pub const fn is_torn(&self) -> bool {
        matches!(self, Self::NoMagic | Self::HeaderDamaged | Self::RecordDamaged)
    }

    /// The newest record that is there of a drive whose newest may be missing.
    pub fn in_doubt(&self) -> Option<ArrayRecord> {
        match self {
            Self::TailMissing { record, .. } => Some((**record).clone()),
            _ => None,
        }
    }
}
