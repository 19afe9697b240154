//! A case of the fuzz target: bytes choose what hosts send to a target, in which pieces, and when
//! they stop.
//!
//! Purpose: whatever a host sends in whatever state of its connection, all of it ends, and nothing
//! is left. Checksums are put right, and most headers, so that what lies behind them is reached.

use super::Rig;
use super::host::Host;
use super::raw::{capsule, host_data, shortest};
use io::{Env, Priority, Transport};
use nvme::command::Command;
use nvme::fabrics::ANY_CONTROLLER;
use nvme::pdu::{Digests, Transfer};
use nvme::sgl::Sgl;
use sim::net::Weather;
use std::cell::RefCell;
use std::rc::Rc;
use units::{CoreId, Nanos};

/// Takes one choice after another from the input; 0 when it is used up.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn fill(&mut self, into: &mut [u8]) {
        into.iter_mut().for_each(|byte| *byte = self.byte());
    }

    fn is_over(&self) -> bool {
        self.0.is_empty()
    }
}

/// One PDU, or some bytes.
fn pdu(choices: &mut Choices<'_>, digests: Digests, is_io: bool) -> Vec<u8> {
    match choices.byte() % 8 {
        0 => shortest(choices.byte() % 12),
        1 => {
            let mut bytes = vec![0; usize::from(choices.byte() % 64)];
            choices.fill(&mut bytes);
            bytes
        }
        2 | 3 => {
            let bytes = 512 * u32::from(choices.byte() % 4);
            let transfer = Transfer {
                command: u16::from(choices.byte()),
                tag: u16::from(choices.byte() % 8),
                offset: 512 * u32::from(choices.byte() % 4),
                bytes,
            };
            host_data(digests, &transfer, choices.byte() & 4, &vec![9; bytes as usize])
        }
        _ => {
            let mut command = Command([0; 64]);
            let common: &[u8] = match is_io {
                true => &[0, 1, 2, 5, 8, 9, 0xc, 0x7f],
                false => &[2, 6, 8, 9, 0xa, 0xc, 0x18, 0x7f],
            };
            let choice = choices.byte();
            let common = common[usize::from(choice % 8)];
            (command.0[0], command.0[1]) = (if choice < 200 { common } else { choice }, 0x40);
            (command.0[2], command.0[4]) = (choices.byte(), choices.byte() % 3);
            choices.fill(&mut command.0[40..52]);
            if choice % 2 == 0 {
                // A few blocks near the begin.
                command.0[41..48].fill(0);
                command.0[48] %= 4;
                command.0[49..52].fill(0);
            }
            let length = match choices.byte() % 4 {
                0 => 512 * (u32::from(command.0[48]) + 1),
                1 => 4096,
                2 => 16 * (u32::from(command.0[40]) + 1),
                _ => u32::from(choices.byte()) << (choices.byte() % 25),
            };
            let inside = choices.byte() % 2 == 0 && length <= 16384;
            let sgl = match inside {
                true => Sgl::InCapsule { offset: 0, length },
                false => Sgl::Transport { length },
            };
            command.0[24..40].copy_from_slice(&sgl.encode());
            let data = vec![3; if inside { length as usize } else { 0 }];
            capsule(digests, &command, &data)
        }
    }
}

/// What one connection does: how far it comes as it should, then what it sends.
async fn script(host: Host, stage: u8, controller: u16, all: Vec<Vec<u8>>) {
    let reach = async || {
        if stage > 0 {
            host.initialize().await?;
        }
        match stage {
            2 => host.join(0, ANY_CONTROLLER).await.map(|_| ())?,
            3 => {
                host.join(0, ANY_CONTROLLER).await?;
                host.try_enable().await?;
            }
            4.. => host.join(1, controller).await.map(|_| ())?,
            _ => {}
        }
        for bytes in &all {
            host.send(bytes).await?;
        }
        Ok::<(), io::Closed>(())
    };
    let _ = reach().await;
}

/// Runs the case that `input` chooses.
///
/// # Panics
/// If the target does, or leaves something.
pub fn run(input: &[u8]) {
    let mut choices = Choices(input);
    let rig = Rig::small(u64::from(choices.byte()));
    let env = rig.world.env(CoreId(0));
    let admin = rig.host();
    let id = Rc::new(RefCell::new(0));
    let told = id.clone();
    rig.run(async move { *told.borrow_mut() = admin.enter().await });
    for _ in 0..1 + choices.byte() % 3 {
        let (stage, bits) = (choices.byte() % 8, choices.byte());
        let piece_most = [0, 1, 7, 100][usize::from(bits >> 2 & 3)];
        let weather = Weather { piece_most, ..Weather::default() };
        let end = rig.connect(0, weather).0;
        let mut host = Host::new(end.clone());
        host.digests = Digests { header: bits & 1 != 0, data: bits & 2 != 0 };
        host.attributes = bits >> 4 & 4;
        host.tolerant = true;
        let mut all = Vec::new();
        while !choices.is_over() && all.len() < 24 {
            all.push(pdu(&mut choices, host.digests, stage > 3));
        }
        let controller = *id.borrow();
        env.spawn(Priority::First, script(host, stage, controller, all));
        if bits & 0x80 != 0 {
            rig.world.run_for(Nanos::from_millis(1));
            end.close();
        }
    }
    rig.world.run_for(Nanos::from_millis(5));
    rig.finish();
}
