//! Reads of 4 KiB, 32 at a time, of an iSCSI target that tgt serves: `export create --iscsi
//! --server tgt`, over the volume's file, beside one of another tgtd with the same settings over a
//! file in memory.
//!
//! An initiator reads all over the unit. CPU time is that of tgtd, and the daemon's besides where
//! a volume is read.

use super::clients::{FIRST, Initiator};
use super::place::{Place, fill, free_port, system};
use super::{Beside, Compared, Run, Side};
use crate::error::BenchError;
use crate::remote::process::failed;
use crate::through::targets::INITIATOR;
use iscsi::{Identity, Name};
use rustix::rand::{GetRandomFlags, getrandom};
use services::targets::Target;
use services::tgt::Instance;
use std::fs::File;
use std::net::SocketAddr;
use units::Uuid;

const WHAT: Compared = Compared { name: "iscsi-tgt-4k-read", goal: 0.7, bytes: None };

fn name(text: &str) -> Result<Name, BenchError> {
    Name::new(text).map_err(|error| failed("a name", &error))
}

/// A target over a file in memory.
struct Memory {
    target: Target,
    instance: Instance,
    // After those who use it.
    _folder: Beside,
}

impl Memory {
    fn start(place: &Place, bytes: u64) -> Result<Self, BenchError> {
        let folder = Beside::make(place.file("memory-iscsi"))?;
        let path = folder.file("unit");
        let made = File::create_new(&path).and_then(|file| fill(&file, bytes));
        made.map_err(system(&path))?;
        let portal = free_port()?;
        let mut uuid = [0; 16];
        getrandom(&mut uuid, GetRandomFlags::empty())
            .map_err(|error| failed("a random number", &error))?;
        let target = Target {
            portals: vec![portal],
            initiators: vec![name(INITIATOR)?],
            asker: name(&format!("{INITIATOR}-asker"))?,
            account: None,
            asker_account: None,
            path,
            block_bytes: place.block_bytes,
            identity: Identity::of(Uuid(uuid)),
        };
        let instance = Instance::of(folder.path(), &[portal]);
        // From here on it is ended, whatever comes of it.
        let own = Self { target, instance, _folder: folder };
        own.instance.serve(&own.target).map_err(|error| failed("tgtd", &error))?;
        Ok(own)
    }

    fn process(&self) -> Result<u32, BenchError> {
        let holder = self.instance.holder().map_err(|error| failed("tgtd", &error))?;
        let id = holder.ok_or_else(|| failed("tgtd", &"it has ended"))?;
        Ok(id.as_raw_nonzero().get().unsigned_abs())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Err(error) = self.instance.end(&self.target.identity.target) {
            eprintln!("palisade: tgtd that was compared with: {error}");
        }
    }
}

/// Measures it.
pub fn measure(run: &mut Run<'_>, place: &Place) -> Result<(), BenchError> {
    let volume = place.full_volume("unit", run.options.bytes)?;
    let portal: SocketAddr = free_port()?;
    let at = portal.to_string();
    let words = ["export", "create", &volume, "--iscsi", &at, "--initiator", INITIATOR];
    let export = place.command(&[&words[..], &["--server", "tgt"]].concat())?;
    let target = name(export["iscsi"]["target"].as_str().unwrap_or_default())?;
    let own = name(INITIATOR)?;
    let mut initiator = Initiator::new(portal, &target, &own);
    place.is_read_from_drives(FIRST * 4096, || initiator.read(run.options.span).map(drop))?;
    let memory = Memory::start(place, run.options.bytes)?;
    let mut other = Initiator::new(memory.target.portals[0], &memory.target.identity.target, &own);
    let servers = [vec![place.daemon()], place.servers("tgtd")?].concat();
    let a = Side {
        name: "memory",
        servers: vec![memory.process()?],
        read: Box::new(|span| other.read(span)),
    };
    let b = Side { name: "volume", servers, read: Box::new(|span| initiator.read(span)) };
    run.compare(&WHAT, a, b)
}
