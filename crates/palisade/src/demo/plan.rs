//! What the demo will do, from its options.

use super::Options;
use super::error::DemoError;
use units::{MIB, parse_size};

/// Size of a drive unless told otherwise, in bytes.
const DRIVE_BYTES: u64 = 128 * MIB;
/// Smallest drive that still holds a file system worth the name, in bytes.
const DRIVE_MIN: u64 = 16 * MIB;
/// What `--serve` serves at least, in bytes.
const SERVED: u64 = 512 * MIB;
/// More than a drive's records take, in bytes.
const RECORDS: u64 = 4 * MIB;
/// Size of a drive of `--console`, in bytes. The files are sparse.
const SLOT_BYTES: u64 = 512 * MIB;
/// Drives of an array of `--console`.
const USUAL_SLOTS: usize = 12;
/// Slots of the enclosure of `--console`.
pub const ENCLOSURE_SLOTS: usize = 24;

/// What the demo will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The array's level.
    pub level: String,
    /// How many drives.
    pub drives: usize,
    /// Size of each, in bytes.
    pub drive_bytes: u64,
    /// Strip size as the command line takes it.
    pub strip: Option<String>,
    /// Where `--serve` was told to serve.
    pub nbd: Option<String>,
    /// Where `--serve` was told to serve over NVMe/TCP.
    pub nvme_tcp: Option<String>,
    /// Whether the drives stay.
    pub keep: bool,
    /// Whether programs read what is printed.
    pub json: bool,
    /// Whether the console is served: drives are sparse files in an enclosure.
    pub console: bool,
}

impl Plan {
    /// Reads the options.
    ///
    /// # Errors
    /// [`DemoError::Usage`] if they make no array.
    pub fn new(options: &Options) -> Result<Self, DemoError> {
        let mirrored_copies: usize = if options.serve { 2 } else { 8 };
        let usual = match (options.level.as_str(), options.console) {
            ("1", _) => mirrored_copies,
            (_, Some(_)) => USUAL_SLOTS,
            (_, None) => 8,
        };
        let drives = options.drives.map_or(usual, usize::from);
        if options.console.is_some() && drives > ENCLOSURE_SLOTS {
            let problem = format!("--drives {drives}: the enclosure has {ENCLOSURE_SLOTS} slots");
            return Err(DemoError::Usage(problem));
        }
        let least = match options.level.as_str() {
            "5" => 3,
            "6" | "10" => 4,
            _ => 2,
        };
        if drives < least || (options.level == "10" && drives % 2 != 0) {
            let even = if options.level == "10" { ", and an even number" } else { "" };
            let problem = format!("level {} needs {least} drives at least{even}", options.level);
            return Err(DemoError::Usage(problem));
        }
        let mut plan = Self {
            level: options.level.clone(),
            drives,
            drive_bytes: DRIVE_BYTES,
            strip: options.strip.clone(),
            nbd: options.nbd.clone(),
            nvme_tcp: options.nvme_tcp.clone(),
            keep: options.dir.is_some(),
            json: options.json,
            console: options.console.is_some(),
        };
        if options.serve {
            let share = SERVED.div_ceil(plan.data_drives());
            // Every slot of a stripe carries whole bands: leave room for the last one.
            plan.drive_bytes = (share + RECORDS).next_multiple_of(MIB).max(DRIVE_MIN);
        }
        if options.console.is_some() {
            plan.drive_bytes = SLOT_BYTES;
        }
        if let Some(text) = &options.drive_size {
            plan.drive_bytes = drive_size(text)?;
        }
        if let Some(text) = &options.strip {
            let bytes = parse_size(text).unwrap_or(0);
            if !bytes.is_power_of_two() || !(4096..=MIB).contains(&bytes) {
                let problem = format!("--strip {text}: a power of two from 4K to 1M");
                return Err(DemoError::Usage(problem));
            }
        }
        Ok(plan)
    }

    /// How many drives' worth of data the array holds.
    pub fn data_drives(&self) -> u64 {
        let drives = self.drives as u64;
        match self.level.as_str() {
            "1" => 1,
            "5" => drives - 1,
            "6" => drives - 2,
            "10" => drives / 2,
            _ => drives,
        }
    }

    /// The slots whose drives are pulled: those of the first time, those of the second. All slots
    /// of one time may be missing at once.
    pub fn pulls(&self) -> Vec<Vec<usize>> {
        let last = self.drives - 1;
        match self.level.as_str() {
            "0" => vec![],
            "1" if self.drives == 2 => vec![vec![1], vec![0]],
            "1" | "6" | "10" => vec![vec![1, last], vec![0]],
            _ => vec![vec![1], vec![last]],
        }
    }

    /// What all files together take, in bytes, with room for the copied files.
    pub fn file_bytes(&self) -> u64 {
        if self.console {
            // What is written at first is little; one more is filled when a drive is replaced.
            return 2 * self.drive_bytes;
        }
        let replacements: usize = self.pulls().iter().map(Vec::len).sum();
        let drives = (self.drives + replacements) as u64 * self.drive_bytes;
        drives + 3 * self.data_drives() * self.drive_bytes
    }
}

fn drive_size(text: &str) -> Result<u64, DemoError> {
    match parse_size(text) {
        Some(bytes) if bytes >= DRIVE_MIN => Ok(bytes / MIB * MIB),
        Some(_) => {
            Err(DemoError::Usage(format!("--drive-size {text} is too small: use at least 16M")))
        }
        None => {
            Err(DemoError::Usage(format!("--drive-size {text} is not a size: use one like 128M")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(level: &str) -> Options {
        Options { level: level.into(), ..Options::default() }
    }

    #[test]
    fn eight_drives_of_128_mib() {
        for level in ["0", "1", "5", "6", "10"] {
            let plan = Plan::new(&options(level)).expect("valid");
            assert_eq!((plan.drives, plan.drive_bytes), (8, 128 * MIB));
        }
    }

    #[test]
    fn served_volumes_are_large_enough() {
        for (level, drives) in [("0", 2), ("1", 2), ("5", 3), ("6", 32), ("10", 4), ("5", 8)] {
            let options = Options { serve: true, drives: Some(drives), ..options(level) };
            let plan = Plan::new(&options).expect("valid");
            assert!((plan.drive_bytes - RECORDS) * plan.data_drives() >= SERVED, "{level}");
        }
    }

    #[test]
    fn a_console_has_free_slots_unless_told_otherwise() {
        let console = "127.0.0.1:0".parse().ok();
        for (level, drives) in [("1", 2), ("5", 12), ("6", 12), ("10", 12)] {
            let options = Options { serve: true, console, ..options(level) };
            let plan = Plan::new(&options).expect("valid");
            assert_eq!((plan.drives, plan.drive_bytes), (drives, SLOT_BYTES), "{level}");
        }
        let all = Options { serve: true, console, drives: Some(24), ..options("6") };
        assert!(Plan::new(&all).is_ok());
        let more = Options { drives: Some(25), ..all };
        assert!(matches!(Plan::new(&more), Err(DemoError::Usage(_))));
    }

    #[test]
    fn pulls_leave_the_data() {
        for (level, drives, at_once) in [("1", 2, 1), ("1", 3, 2), ("5", 3, 1), ("6", 4, 2)] {
            let plan = Plan::new(&Options { drives: Some(drives), ..options(level) });
            for slots in plan.expect("valid").pulls() {
                assert!((1..=at_once).contains(&slots.len()), "{level}");
                assert!(slots.iter().all(|slot| *slot < usize::from(drives)));
            }
        }
        let plan = Plan::new(&Options { drives: Some(4), ..options("10") }).expect("valid");
        for slots in plan.pulls() {
            let pairs: Vec<usize> = slots.iter().map(|slot| slot / 2).collect();
            assert!(pairs.len() == 1 || pairs[0] != pairs[1]);
        }
    }

    #[test]
    fn what_makes_no_array_is_refused() {
        for (level, drives) in [("5", 2), ("6", 3), ("10", 5), ("10", 2)] {
            let wrong = Options { drives: Some(drives), ..options(level) };
            assert!(matches!(Plan::new(&wrong), Err(DemoError::Usage(_))), "{level} {drives}");
        }
        for size in ["1M", "much"] {
            let wrong = Options { drive_size: Some(size.into()), ..options("5") };
            assert!(matches!(Plan::new(&wrong), Err(DemoError::Usage(_))));
        }
        for strip in ["3K", "2K", "2M", "wide"] {
            let wrong = Options { strip: Some(strip.into()), ..options("5") };
            assert!(matches!(Plan::new(&wrong), Err(DemoError::Usage(_))), "{strip}");
        }
    }
}
