//! Links to devices: a volume's stays the same, whatever number its device has.

use crate::ublk::{self, Driver};
use crate::{lock, loops};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Where they are.
pub const LINKS: &str = "/dev/palisade";

/// Held while links and their folders are changed: each export has a thread.
static LINKING: Mutex<()> = Mutex::new(());

/// The link to a volume's device; none where it would lead out of [`LINKS`].
pub fn link(array: &str, volume: &str) -> Option<PathBuf> {
    let is_plain =
        |name: &&str| !name.is_empty() && *name != "." && *name != ".." && !name.contains('/');
    [array, volume].iter().all(is_plain).then(|| Path::new(LINKS).join(array).join(volume))
}

/// Whether a device is that of an export, made here, or there is no such device.
fn is_ours(device: &Path, (folder, id): (&Path, &str)) -> io::Result<bool> {
    let Some(name) = device.to_str() else { return Ok(!device.exists()) };
    if let Some(file) = loops::file_of(name.trim_start_matches("/dev/")) {
        return Ok(file.parent() == Some(folder));
    }
    if let Some(number) = ublk::number(name)
        && let Some(driver) = Driver::open()?
    {
        let known = driver.info(number)?;
        return Ok(known.is_none_or(|info| info.own == ublk::own(folder, id)));
    }
    // Nothing is behind it, or what was there.
    Ok(name.starts_with("/dev/loop") || !device.exists())
}

/// Has a link lead to a device. One that leads to a device of another, or is no link, stays.
///
/// # Errors
/// It stays, or can't be made.
pub fn set_link(link: &Path, device: &str, of: (&Path, &str)) -> io::Result<()> {
    let _own = lock(&LINKING);
    match std::fs::read_link(link) {
        Ok(known) if known == Path::new(device) => return Ok(()),
        Ok(known) if !is_ours(&known, of)? => {
            return Err(io::Error::other(format!("it leads to {}", known.display())));
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            link.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        }
        Err(error) => return Err(error),
    }
    // Whoever opens it meanwhile finds the one or the other.
    let new = link.with_file_name(".new");
    let _ = std::fs::remove_file(&new);
    std::os::unix::fs::symlink(device, &new)?;
    std::fs::rename(&new, link)
}

/// Removes a link that leads to a device, and folders that are empty without it.
pub fn remove_link(link: &Path, device: &str) {
    let _own = lock(&LINKING);
    if std::fs::read_link(link).is_ok_and(|known| known == Path::new(device)) {
        let _ = std::fs::remove_file(link);
        // One that is not empty stays.
        for folder in link.ancestors().skip(1).take(2) {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// All links, and where each leads.
fn all() -> Vec<(PathBuf, PathBuf)> {
    let within = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let links = within(Path::new(LINKS)).flat_map(|array| within(&array.path()));
    let links = links.map(|link| link.path());
    links.filter_map(|link| std::fs::read_link(&link).ok().map(|known| (link, known))).collect()
}

/// Removes links to devices of ublk that are not there any more.
pub fn remove_dangling() {
    for (link, known) in all() {
        let device = known.to_str().unwrap_or_default();
        if ublk::number(device).is_some() && !known.exists() {
            remove_link(&link, device);
        }
    }
}

/// Removes whatever link leads to a device.
pub fn remove_links_to(device: &str) {
    for (link, _) in all() {
        remove_link(&link, device);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_nowhere_else() {
        assert_eq!(link("a", "b.c"), Some("/dev/palisade/a/b.c".into()));
        for (array, volume) in [("..", "sda"), ("a", ".."), (".", "v"), ("a", "b/c"), ("", "v")] {
            assert_eq!(link(array, volume), None, "{array} {volume}");
        }
    }

    #[test]
    fn a_link_of_somebody_else_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path().join("array/v");
        set_link(&at, "/dev/loop900", (folder.path(), "v")).expect("made");
        set_link(&at, "/dev/loop901", (folder.path(), "v")).expect("nothing is behind it");
        assert_eq!(std::fs::read_link(&at).expect("a link"), Path::new("/dev/loop901"));
        remove_link(&at, "/dev/loop900");
        assert!(at.is_symlink());
        std::fs::remove_file(&at).expect("removed");
        std::os::unix::fs::symlink("/dev/null", &at).expect("linked");
        assert!(set_link(&at, "/dev/loop901", (folder.path(), "v")).is_err());
        std::fs::remove_file(&at).expect("removed");
        std::fs::write(&at, "").expect("written");
        assert!(set_link(&at, "/dev/loop901", (folder.path(), "v")).is_err());
    }
}
