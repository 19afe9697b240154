//! One export's ublk device: what is done so that it is as it is wanted.
//!
//! | the daemon has it | the device     | what is done                                            |
//! |-------------------|----------------|---------------------------------------------------------|
//! | no                | is not there   | it is made, handed over and started                     |
//! | no                | never started  | it is ended, and made anew                              |
//! | no                | is served      | its server is about to be gone: that is waited for      |
//! | no                | waits          | recovery is begun, it is handed over, recovery is ended |
//! | yes               | never started  | it is ended, and made anew                              |
//! | yes               | waits          | recovery is ended                                       |
//! | yes               | is served      | nothing                                                 |
//!
//! Whatever process is killed in between, the next one finds one of these. `ID.ublk` in the folder
//! of this process is there before the device, and until it is gone: the kernel knows whose it is,
//! and not the export's name. It says the device's number, and which process opened what its server
//! has: Linux, from 6.16 on, wants recovery to be ended in the name of that.
//!
//! Not covered: a daemon that is killed while it takes a device over that waited, with some of its
//! queues taken. Linux 6.12 does not tell that from a server that has gone, and fails to take the
//! rest from nobody (`ublk_queue_reinit`).

use crate::keeper::{Host, put};
use crate::ublk::{self, Driver, Shape};
use crate::wire::Wanted;
use crate::{blocks, links};
use ::ublk::wire::control::{DeviceState, Info};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long what is under way may take, and how often it is looked.
const SETTLES: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

/// What stands in `ID.ublk`.
#[derive(Clone, Copy, Default)]
struct Mark {
    /// The device's number, if it is made.
    device: Option<u32>,
    /// Who opened its server's side last.
    opener: u32,
}

fn mark_of(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.ublk"))
}

impl Mark {
    fn read(folder: &Path, id: &str) -> Option<Self> {
        let text = std::fs::read_to_string(mark_of(folder, id)).ok()?;
        let mut words = text.split_whitespace();
        let device = words.next().and_then(|word| word.parse().ok());
        let opener = words.next().and_then(|word| word.parse().ok()).unwrap_or_default();
        Some(Self { device, opener })
    }

    fn write(self, folder: &Path, id: &str) -> io::Result<()> {
        let text = self.device.map(|device| format!("{device} {}", self.opener));
        put(folder, id, &mark_of(folder, id), text.unwrap_or_default().as_bytes())
    }
}

/// The driver, and the export's device, if there may be one.
///
/// # Errors
/// That can't be told.
pub fn find(folder: &Path, id: &str) -> io::Result<Option<(Driver, Info)>> {
    let Some(mark) = Mark::read(folder, id) else { return Ok(None) };
    let Some(driver) = Driver::open()? else { return Ok(None) };
    let own = ublk::own(folder, id);
    if let Some(known) = mark.device
        && let Ok(Some(info)) = driver.info(known)
        && info.own == own
    {
        return Ok(Some((driver, info)));
    }
    // One is made only where there is none. One that is not shown is of no use to anybody.
    let mut all = driver.find(own);
    all.sort_by_key(|info| info.state == DeviceState::Dead);
    let rest = all.split_off(all.len().min(1));
    rest.iter().try_for_each(|info| driver.end(info.device))?;
    Ok(all.pop().map(|info| (driver, info)))
}

/// What a device is, once it is served.
pub struct Served {
    /// Its path.
    pub device: String,
    /// What is still other than it is wanted.
    pub note: Option<String>,
}

/// Has the export's device served, which is made if there is none. One that is held is used, though
/// that can't be seen by itself: by whom, in words.
///
/// # Errors
/// It can't be.
pub fn serve(
    host: &impl Host,
    driver: &Driver,
    found: Option<Info>,
    wanted: &mut Wanted,
    held: Option<String>,
) -> io::Result<Served> {
    let info = match found {
        None => make(host, driver, wanted)?,
        Some(info) => go_on(host, driver, wanted, info)?,
    };
    let device = ublk::device(info.device);
    let bytes = blocks::bytes(&device)?;
    if bytes == wanted.bytes {
        return Ok(Served { device, note: None });
    }
    // A device keeps its size.
    if let Some(user) = held.or_else(|| blocks::user(&device)) {
        let note = format!("{user}: {device} has {bytes} bytes until it is not used");
        return Ok(Served { device, note: Some(note) });
    }
    driver.end_if_idle(&info)?;
    let info = make(host, driver, wanted)?;
    Ok(Served { device: ublk::device(info.device), note: None })
}

const fn shape(wanted: &Wanted) -> Shape {
    let Wanted { bytes, block_bytes, best_bytes, discard_bytes, .. } = *wanted;
    Shape { bytes, block_bytes, best_bytes, discard_bytes }
}

fn make(host: &impl Host, driver: &Driver, wanted: &mut Wanted) -> io::Result<Info> {
    let folder = host.folder();
    wanted.attached = false;
    Mark::default().write(folder, &wanted.id)?;
    let info = driver.add(ublk::own(folder, &wanted.id), host.cores(), shape(wanted))?;
    let started = hand_over(host, driver, wanted, &info).and_then(|()| driver.start(&info));
    if let Err(why) = started {
        let _ = driver.end(info.device);
        return Err(why);
    }
    Ok(info)
}

fn hand_over(
    host: &impl Host,
    driver: &Driver,
    wanted: &mut Wanted,
    info: &Info,
) -> io::Result<()> {
    let mark = Mark { device: Some(info.device), opener: std::process::id() };
    mark.write(host.folder(), &wanted.id)?;
    let side = driver.server_side(info)?;
    let handed = host.attach_device(&wanted.id, (info.queues, info.depth), side);
    *wanted = handed.map_err(io::Error::other)?;
    Ok(())
}

fn go_on(host: &impl Host, driver: &Driver, wanted: &mut Wanted, info: Info) -> io::Result<Info> {
    let info = if wanted.attached { info } else { driver.left(info)? };
    match info.state {
        DeviceState::Live => {}
        DeviceState::Dead => {
            driver.end(info.device)?;
            return make(host, driver, wanted);
        }
        _ if wanted.attached => {
            let mark = Mark::read(host.folder(), &wanted.id).unwrap_or_default();
            driver.end_recovery(&info, mark.opener)?;
        }
        _ => {
            driver.begin_recovery(&info)?;
            hand_over(host, driver, wanted, &info)?;
            driver.end_recovery(&info, std::process::id())?;
        }
    }
    Ok(info)
}

/// Whether who waits for the export's device, if there is one, is served.
///
/// # Errors
/// It waits for the daemon, or that can't be told.
pub fn is_at_hand(folder: &Path, id: &str) -> io::Result<()> {
    find(folder, id)?.map_or(Ok(()), |(_, info)| is_served(&info))
}

/// Which process has the export's device open, in words.
///
/// # Errors
/// That can't be told.
pub fn opener(folder: &Path, id: &str) -> io::Result<Option<String>> {
    let device = find(folder, id)?.map(|(_, info)| ublk::device(info.device));
    Ok(device.and_then(|device| blocks::opened(&device)))
}

/// Who uses the export's device, in words: also where it is mounted.
///
/// # Errors
/// That can't be told.
pub fn user(folder: &Path, id: &str) -> io::Result<Option<String>> {
    let device = find(folder, id)?.map(|(_, info)| ublk::device(info.device));
    Ok(device.and_then(|device| blocks::user(&device)))
}

/// Waits until nothing is under way at the export's device, for as long as that may take.
///
/// # Errors
/// Something still is.
pub fn settle(folder: &Path, id: &str) -> io::Result<()> {
    let Some((_, info)) = find(folder, id)? else { return Ok(()) };
    let device = ublk::device(info.device);
    let end = Instant::now() + SETTLES;
    while blocks::in_flight(&device) > 0 {
        if Instant::now() > end {
            return Err(io::Error::other(format!("requests of {device} are under way")));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

fn is_served(info: &Info) -> io::Result<()> {
    if matches!(info.state, DeviceState::Live | DeviceState::Dead) {
        return Ok(());
    }
    let device = ublk::device(info.device);
    let why = "waits for the daemon to serve it; to end it: palisade export release";
    Err(io::Error::new(ErrorKind::ResourceBusy, format!("{device} {why}")))
}

/// Ends the export's device, unless somebody uses it.
///
/// # Errors
/// It is used, or can't be ended.
pub fn leave(folder: &Path, id: &str) -> io::Result<()> {
    let Some((driver, info)) = find(folder, id)? else {
        links::remove_dangling();
        return Ok(());
    };
    let device = ublk::device(info.device);
    is_served(&info)?;
    driver.end_if_idle(&info)?;
    links::remove_links_to(&device);
    Ok(())
}

/// Ends the export's device, whoever uses it.
///
/// # Errors
/// It can't be ended.
pub fn end(folder: &Path, id: &str) -> io::Result<()> {
    let Some((driver, info)) = find(folder, id)? else {
        links::remove_dangling();
        return Ok(());
    };
    let device = ublk::device(info.device);
    // Before the number may be another's.
    links::remove_links_to(&device);
    if info.state == DeviceState::Live {
        // It is tried: nobody has a use for it any more.
        let _ = blocks::claim(&device).map(|claim| ublk::flush(&claim));
    }
    driver.end(info.device)
}
