//! What paths lead to, behind a fabric or not: looked up, and waited for, by the caller.

use crate::fabrics::Fabrics;
use crate::inventory::Found;
use crate::pattern;
use drives::remote::is_remote;
use redfish::messages as say;
use redfish::view::Error;
use std::path::Path;

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
