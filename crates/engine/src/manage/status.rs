//! What the manager tells of an array.

use crate::Host;
use crate::array::view::SlotState as ViewState;
use crate::manage::command::{
    ArrayState, ArrayStatus, ExportStatus, RegionMapStatus, SlotHealth, SlotStatus, VolumeStatus,
};
use crate::manage::managed::Managed;
use crate::manage::parts;
use format::SlotState;
use layout::CodeKind;
use units::{BAND_BYTES, GroupNo, Slot};

impl<E: Host> Managed<E> {
    /// How the array is.
    pub fn state(&self) -> ArrayState {
        let view = self.view();
        let layout = self.layout();
        let mut state = ArrayState::Optimal;
        for group in (0..layout.groups()).map(GroupNo) {
            let counting = |s: &Slot| view.slots[s.index()].state == ViewState::InSync;
            let lacking = layout.slots(group).filter(|s| !counting(s)).count();
            if lacking > usize::from(layout.m(group)) {
                return ArrayState::Failed;
            }
            if lacking > 0 || (self.owes_regions(group) && layout.m(group) > 0) {
                state = ArrayState::Degraded;
            }
        }
        state
    }

    /// Usable bytes that no volume has.
    pub fn free_bytes(&self) -> u64 {
        let record = self.record();
        let used: u64 =
            record.volumes.iter().flat_map(|v| &v.extents).map(|extent| extent.bytes).sum();
        self.layout().array_bytes() - used
    }

    /// Whether all redundancy that a start would need can be trusted after a crash: a parity group
    /// that lacks a drive has the journal stand for it.
    fn crash_safe(&self) -> bool {
        let (record, layout) = (self.record(), self.layout());
        (0..layout.groups()).map(GroupNo).all(|group| {
            let parity = layout.descriptor(group).code == CodeKind::Parity;
            let g = record.groups[group.index()];
            !parity || !self.lacks(group) || g.guarded || g.loss_accepted
        })
    }

    /// What is written and dirty.
    fn region_map(&self) -> RegionMapStatus {
        let map = self.keeper().map.borrow();
        let groups = || (0..self.layout().groups()).map(GroupNo);
        let (parts, written) = parts::of(&map, self.layout().groups());
        let row = |g: GroupNo| u64::from(self.layout().k(g)) * units::BAND_BYTES;
        let bytes = |(g, bits)| bits * map.geometry().bands_per_bit() * row(g);
        RegionMapStatus {
            written_bytes: groups().zip(written).map(bytes).sum(),
            dirty_regions: groups().map(|g| map.dirty_regions(g)).sum(),
            lost_pages: self.lost_pages.get(),
            parts,
        }
    }

    /// Everything about the array.
    pub fn status(&self) -> ArrayStatus {
        let record = self.record();
        let seats = self.seats.borrow();
        let is_missing = |i: usize| self.missing.borrow().contains(&Slot(i as u16));
        let quarantined = |i: usize| {
            let drive = seats[i].drive.as_ref();
            drive.is_some_and(|d| self.quarantine.holds(&d.0.path))
        };
        let slot = |i: usize| SlotStatus {
            slot: Slot(i as u16),
            path: seats[i].drive.as_ref().map(|d| d.0.path.clone()),
            serial: record.slots[i].serial.clone(),
            health: match record.slots[i].state {
                _ if seats[i].drive.is_none() && is_missing(i) => SlotHealth::Missing,
                _ if seats[i].dropped => SlotHealth::Failed,
                SlotState::Failed => SlotHealth::Failed,
                SlotState::InSync => SlotHealth::InSync,
                SlotState::Rebuilding { .. } => SlotHealth::Rebuilding,
            },
            errors: self.errors.of(Slot(i as u16), seats[i].incarnation),
            left_behind: seats[i].dropped,
            quarantined: quarantined(i),
        };
        let volume = |v: &format::VolumeRecord| VolumeStatus {
            name: v.name.clone(),
            uuid: v.uuid,
            bytes: v.bytes,
        };
        let export = |e: &format::ExportRecord| ExportStatus {
            id: e.id,
            volume: e.volume,
            volume_name: record
                .volumes
                .iter()
                .find(|v| v.uuid == e.volume)
                .map_or_else(String::new, |v| v.name.clone()),
            address: e.address.clone(),
        };
        ArrayStatus {
            id: self.id(),
            name: record.name.clone(),
            uuid: record.array,
            level: record.level,
            state: self.state(),
            strip_bytes: self.layout().strip_bytes(),
            block_bytes: record.block_bytes,
            discard_bytes: u32::from(self.layout().descriptor(GroupNo(0)).k) * BAND_BYTES as u32,
            size_bytes: self.layout().array_bytes(),
            free_bytes: self.free_bytes(),
            epoch: record.epoch.counter,
            unclean: record.groups.iter().any(|g| g.unclean),
            crash_safe: self.crash_safe(),
            slots: (0..seats.len()).map(slot).collect(),
            tasks: self.task_list(),
            unended: self.tasks.numbers.unended(),
            ended: self.tasks.numbers.ended(),
            last_scrub: record.last_scrub,
            uncompared_bytes: self.tasks.left_uncompared.get(),
            unreadable: self.unreadable_ranges(),
            region_map: self.region_map(),
            volumes: record.volumes.iter().map(volume).collect(),
            exports: record.exports.iter().map(export).collect(),
            owner: self.owner_status(),
        }
    }
}
