//! Asymmetric access: how groups of namespaces are reached at ports.

use crate::support::host::{Data, Host, Pdu, admin_command, blocks, command};
use crate::support::{BLOCK, PORT, Rig, export, nqn};
use nvme::command::{Command, admin, nvm};
use nvme::identify::cns;
use nvme::log::{Access, AccessGroup, access, page};
use nvme::status::Status;
use palisade_nvme_target::access::{Group, PortId};
use palisade_nvme_target::{Export, limits};

/// The page, as this host reads it.
async fn groups(host: &Host) -> (u64, Vec<AccessGroup>) {
    access(&host.log(page::ANA, 4096).await).expect("a page")
}

fn group(id: u32, access: Access, changes: u64, namespaces: &[u32]) -> AccessGroup {
    AccessGroup { id, access, changes, namespaces: namespaces.to_vec() }
}

async fn event(host: &Host) -> u64 {
    match host.next_pdu().await.expect("a PDU") {
        Pdu::Done(done) => done.result,
        other => panic!("{other:?}"),
    }
}

/// Two groups, and a third that only another host has some of.
fn rig(seed: u64) -> Rig {
    let rig = Rig::new(seed);
    let volume = rig.volume();
    rig.shelf.0.borrow_mut().extend([(2, volume.clone()), (3, volume)]);
    let of = |number| Group::new(number).expect("a group");
    rig.target.add("two", Export { group: of(2), ..export(2, 2) }).expect("added");
    let hosts = palisade_nvme_target::Hosts::Only([nqn("nqn.2026-11.example:x")].into());
    rig.target.add("three", Export { group: of(3), hosts, ..export(3, 3) }).expect("added");
    rig
}

#[test]
fn the_page_says_how_groups_are_reached_and_an_event_when_that_changes() {
    let rig = rig(21);
    let (host, target) = (rig.host(), rig.target.clone());
    rig.run(async move {
        host.enter().await;
        let c = host.identify(cns::CONTROLLER, 0).await;
        let at = |at: usize| u32::from_le_bytes(c[at..at + 4].try_into().expect("four"));
        assert_eq!((at(344), at(348)), (limits::ACCESS_GROUPS, limits::ACCESS_GROUPS));
        assert_eq!(at(92) & 1 << 11, 1 << 11, "it tells of changes");
        let well = Access::Optimized;
        let at_first = vec![group(1, well, 0, &[1]), group(2, well, 0, &[2])];
        assert_eq!(groups(&host).await, (0, at_first));
        assert_eq!(host.identify(cns::NAMESPACE, 2).await[92], 2);
        assert_eq!(host.identify(cns::NAMESPACE_INDEPENDENT, 2).await[4], 2);
        host.begin(command(admin::ASYNC_EVENT_REQUEST, 0), &Data::None).await.expect("sent");
        // What it does not see it is not told of: another port, another's group, no change.
        let of = |number| Group::new(number).expect("a group");
        target.set_access(PortId(7), of(2), Access::Inaccessible);
        target.set_access(PORT, of(3), Access::Inaccessible);
        target.set_access(PORT, of(2), Access::Optimized);
        let seen = groups(&host).await;
        assert_eq!(seen, (2, vec![group(1, well, 0, &[1]), group(2, well, 0, &[2])]));
        target.set_access(PORT, of(2), Access::NonOptimized);
        assert_eq!(event(&host).await, 0x0c_03_02);
        let told = vec![group(1, well, 0, &[1]), group(2, Access::NonOptimized, 3, &[2])];
        assert_eq!(groups(&host).await, (3, told));
        // Without numbers of namespaces.
        let (bytes, dwords) = (256u32, [u32::from(page::ANA) | 1 << 8 | (256 / 4 - 1) << 16]);
        let short = admin_command(admin::GET_LOG_PAGE, u32::MAX, &dwords);
        let short = host.expect(short, Data::Out(bytes), Status::SUCCESS).await;
        let all = access(&short).expect("a page").1;
        assert!(all.len() == 2 && all.iter().all(|group| group.namespaces.is_empty()));
    });
    rig.finish();
}

#[test]
fn what_is_not_reached_here_is_refused_as_that_and_nothing_else_is() {
    let rig = rig(22);
    let (admin, io, target) = (rig.host(), rig.host(), rig.target.clone());
    rig.run(async move {
        let id = admin.enter().await;
        assert_eq!(io.join(1, id).await.expect("joined").status, Status::SUCCESS);
        let of = |namespace: u32, opcode| -> Command {
            let mut own = blocks(opcode, 0, 1);
            own.0[4..8].copy_from_slice(&namespace.to_le_bytes());
            own
        };
        let data = vec![7; BLOCK];
        let group = Group::new(2).expect("a group");
        for (access, status) in [
            (Access::NonOptimized, Status::SUCCESS),
            (Access::Inaccessible, Status::ACCESS_INACCESSIBLE),
            (Access::PersistentLoss, Status::ACCESS_LOST),
            (Access::Change, Status::ACCESS_CHANGES),
            (Access::Optimized, Status::SUCCESS),
        ] {
            target.set_access(PORT, group, access);
            let bytes = BLOCK as u32;
            io.expect(of(2, nvm::READ), Data::Out(bytes), status).await;
            io.expect(of(2, nvm::WRITE), Data::Capsule(&data), status).await;
            io.expect(of(2, nvm::WRITE), Data::In(&data), status).await;
            io.expect(command(nvm::FLUSH, 2), Data::None, status).await;
            assert!(!status.is_lasting());
            io.expect(of(1, nvm::READ), Data::Out(bytes), Status::SUCCESS).await;
        }
    });
    rig.finish();
}
