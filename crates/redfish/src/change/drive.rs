//! Changes of a drive: its records, its indicator, its power state.

use super::bodies::LAST_POWER_STATE;
use super::node::Fields;
use super::{Change, last, nothing};
use crate::error::Refusal;
use crate::routes::Match;
use crate::view::{self, KnownDrive, View};

/// What a drive has, and nobody changes.
const READ_ONLY: [&str; 24] = [
    "Id",
    "Name",
    "Status",
    "Model",
    "SerialNumber",
    "Revision",
    "FirmwareVersion",
    "CapacityBytes",
    "BlockSizeBytes",
    "Protocol",
    "MediaType",
    "Identifiers",
    "PhysicalLocation",
    "NegotiatedSpeedGbs",
    "CapableSpeedGbs",
    "PredictedMediaLifeLeftPercent",
    "FailurePredicted",
    "Multipath",
    "HotspareType",
    "EncryptionStatus",
    "EncryptionAbility",
    "Metrics",
    "Links",
    "Actions",
];

fn known<'a>(view: &'a View, found: &Match) -> Result<&'a KnownDrive, Refusal> {
    view.drive(last(found)).ok_or_else(|| nothing(found))
}

/// Erases the drive's records.
pub fn wipe(view: &View, found: &Match, mut fields: Fields<'_>) -> Result<Change, Refusal> {
    let known = known(view, found)?;
    let overwrite = fields.flag("Overwrite")?;
    fields.end()?;
    Ok(Change::Wipe(view::WipeDrive { drive: known.into(), overwrite }))
}

/// Switches the drive's indicator.
pub fn locate(view: &View, found: &Match, mut fields: Fields<'_>) -> Result<Change, Refusal> {
    let known = known(view, found)?;
    fields.not_empty()?;
    fields.oem()?.end()?;
    if let Some(node) = READ_ONLY.iter().find_map(|name| fields.take(name)) {
        return Err(node.read_only());
    }
    let on = fields.need("LocationIndicatorActive")?.truth()?;
    fields.end()?;
    Ok(Change::LocateDrive { id: known.id.clone(), on })
}

/// Puts the drive in a power state.
pub fn power(view: &View, found: &Match, mut fields: Fields<'_>) -> Result<Change, Refusal> {
    let known = known(view, found)?;
    let node = fields.need("State")?;
    let state = node.whole(0, LAST_POWER_STATE)?;
    let state = u8::try_from(state).map_err(|_| node.out_of_range(0, LAST_POWER_STATE))?;
    fields.end()?;
    Ok(Change::SetDrivePower { id: known.id.clone(), state })
}
