//! What paths lead to, behind a fabric or not: looked up, and waited for, by the caller.

use crate::fabrics::Fabrics;
use crate::inventory::Found;
use crate::pattern;
use ::nvme::nqn::Nqn;
use drives::remote::{Name, is_remote};
use layout::Layout;
use redfish::messages as say;
use redfish::view::Error;
use std::path::Path;
use units::GroupNo;

/// What these patterns name now.
pub fn configured(patterns: &[String], fabrics: &Fabrics) -> Vec<Found> {
    let found = |pattern: &String| -> Vec<Found> {
        let path = Path::new(pattern);
        match is_remote(path) {
            true => fabrics.expand(path).iter().map(|name| behind(name, fabrics)).collect(),
            false => pattern::expand(pattern).iter().map(|path| Found::at(path)).collect(),
        }
    };
    patterns.iter().flat_map(found).collect()
}

/// Refuses drives of one subsystem in one group with redundancy: that counts on drives that fail
/// each by itself.
pub fn check_groups(layout: &Layout, paths: &[&str]) -> Result<(), Error> {
    let subsystem = |path: &str| Name::of(Path::new(path))?.ok()?.subsystem;
    for group in (0..layout.groups()).map(GroupNo).filter(|group| layout.m(*group) > 0) {
        let mut seen: Vec<(Nqn, &str)> = Vec::new();
        for path in layout.slots(group).filter_map(|slot| paths.get(slot.index())) {
            let Some(own) = subsystem(path) else { continue };
            if let Some((_, other)) = seen.iter().find(|(other, _)| *other == own) {
                return Err(Error::new(&say::SAME_DRIVE, &[other, path]));
            }
            seen.push((own, path));
        }
    }
    Ok(())
}

/// A drive behind a fabric, by its one name.
pub fn behind(name: &Path, fabrics: &Fabrics) -> Found {
    Found { plain: name.to_owned(), canonical: name.to_owned(), plate: fabrics.plate(name) }
}

/// The one drive behind a fabric that a path names.
pub fn one_behind(path: &str, fabrics: &Fabrics) -> Result<Found, Error> {
    let names = fabrics.resolve(Path::new(path))?;
    match &names[..] {
        [name] => Ok(behind(name, fabrics)),
        _ => Err(Error::new(&say::NOT_ONE_DRIVE, &[&path, &names.len()])),
    }
}
