//! Pictures of a running machine: its drives as a cut of power at this moment would leave them,
//! with what their blocks may hold then.
//!
//! A picture costs a copy of lists of pages, so one run gives many crash points. Pictures are
//! taken at the borders of requests (a request was submitted or completed); when there are too
//! many, every second is dropped and from then on half as many are taken. Some more are taken
//! while pages of the region map are being written, which is rare, or where else one looks.
//!
//! Invariant: taking a picture changes nothing of what runs.

use crate::machine::Message;
use crate::owed::Owed;
use crate::rig::Watch;
use crate::versions::Versions;
use core::ops::Range;
use sim::{Rng, SharedSimDrive, World};
use std::cell::RefCell;
use std::rc::Rc;
use units::MIB;

/// Bytes at the begin of the map area in which drives of the trials have their pages.
const MAP_BEGIN: u64 = 64 << 10;

/// A moment of a machine.
#[derive(Clone)]
pub struct Picture {
    /// Its place among those of the trial.
    pub number: usize,
    /// How many borders of requests lay before it in its run.
    pub border: u64,
    /// All drives, as they are left.
    pub drives: Vec<SharedSimDrive>,
    /// What their blocks may hold.
    pub versions: Versions,
    /// Power was cut; else only the process ended.
    pub power: bool,
    /// What the array may owe by its starts so far.
    pub owed: Owed,
}

/// Takes pictures.
pub struct Camera {
    drives: Vec<SharedSimDrive>,
    versions: Rc<RefCell<Versions>>,
    rng: Rng,
    every: u64,
    next: u64,
    most: usize,
    /// How many more it may take while this place is written, at so many borders of a hundred, and
    /// the border of the last look.
    extra: usize,
    place: Range<u64>,
    percent: u8,
    looked: u64,
    /// Where writes have to be under way for the only picture, and at how many borders before.
    aim: Option<(Vec<Range<u64>>, u64)>,
    /// What the array may owe by its starts so far.
    pub owed: Owed,
    /// What was taken.
    pub pictures: Vec<Picture>,
}

impl Camera {
    /// A camera that takes the first picture at border `first`, and keeps at most `most`.
    pub fn new(
        drives: &[SharedSimDrive],
        versions: &Rc<RefCell<Versions>>,
        mut rng: Rng,
        most: usize,
    ) -> Self {
        let every = 1 + rng.below(3);
        let next = if most == 0 { u64::MAX } else { rng.below(4) };
        let (drives, versions) = (drives.to_vec(), versions.clone());
        let extra = if most > 1 { most / 4 } else { 0 };
        let pictures = Vec::new();
        let (place, percent) = (MIB..MIB + MAP_BEGIN, 20);
        let (looked, aim) = (0, None);
        Self {
            drives,
            versions,
            rng,
            every,
            next,
            most,
            extra,
            place,
            percent,
            looked,
            aim,
            owed: Owed::default(),
            pictures,
        }
    }

    /// Takes more pictures while this place of a drive is written, and none while the map is.
    pub fn look_within(&mut self, place: Range<u64>) {
        (self.place, self.percent, self.extra) = (place, 50, self.most);
    }

    /// A camera that takes one picture, at `border`.
    pub fn once(
        drives: &[SharedSimDrive],
        versions: &Rc<RefCell<Versions>>,
        rng: Rng,
        border: u64,
    ) -> Self {
        let mut camera = Self::new(drives, versions, rng, 1);
        (camera.next, camera.every) = (border, u64::MAX / 2);
        camera
    }

    /// A camera that takes one picture, at the border before which there were so many more while
    /// writes to one of these places of a drive were under way.
    pub fn aimed(
        drives: &[SharedSimDrive],
        versions: &Rc<RefCell<Versions>>,
        rng: Rng,
        aim: (Vec<Range<u64>>, u64),
    ) -> Self {
        let mut camera = Self::once(drives, versions, rng, u64::MAX);
        camera.aim = Some(aim);
        camera
    }

    /// Whether the picture is due that is aimed at.
    fn hit(&mut self) -> bool {
        let Some((places, left)) = &mut self.aim else { return false };
        let writes = |d: &SharedSimDrive| places.iter().any(|at| d.writes_within(at.clone()));
        if !self.drives.iter().any(writes) {
            return false;
        }
        let hit = *left == 0;
        *left = left.saturating_sub(1);
        if hit {
            self.aim = None;
        }
        hit
    }

    fn take(&mut self, border: u64) {
        let power = self.rng.chance(85);
        let mut versions = self.versions.borrow().clone();
        versions.crashed();
        let rng = &mut self.rng;
        let drives = self.drives.iter().map(|d| d.after_cut(power, rng.bits())).collect();
        let (number, owed) = (0, self.owed);
        self.pictures.push(Picture { number, border, drives, versions, power, owed });
        if self.pictures.len() >= 2 * self.most {
            let mut odd = false;
            self.pictures.retain(|_| {
                odd = !odd;
                odd
            });
            self.every *= 2;
        }
    }
}

impl Watch for Camera {
    fn look(&mut self, world: &World<Message>) {
        let border = world.boundaries();
        if border > self.looked && self.hit() {
            self.take(border);
        } else if border >= self.next {
            self.next = border + self.every;
            self.take(border);
        } else if self.extra > 0 && border > self.looked {
            let written = |d: &SharedSimDrive| d.writes_within(self.place.clone());
            if self.drives.iter().any(written) && self.rng.chance(self.percent) {
                self.extra -= 1;
                self.take(border);
            }
        }
        self.looked = border;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_camera_keeps_fewer_than_twice_the_pictures_that_it_may() {
        let versions = Rc::new(RefCell::new(Versions::new(512, false)));
        for most in [1, 2, 10] {
            let mut camera = Camera::new(&[], &versions, Rng::new(1), most);
            for border in 0..1000 {
                if border >= camera.next {
                    camera.next = border + camera.every;
                    camera.take(border);
                }
                assert!(camera.pictures.len() < 2 * most, "more than twice {most}");
            }
            assert!(!camera.pictures.is_empty());
        }
    }
}
