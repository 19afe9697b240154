//! Compare and Write as one: both halves, in every form, whole and cut off.

use crate::support::host::{Data, Host, Pdu, blocks, command};
use crate::support::raw::{enter, host_data, with_io};
use crate::support::{BLOCK, Rig, export};
use io::BlockError;
use nvme::command::{Command, nvm};
use nvme::pdu::{Digests, flag};
use nvme::status::Status;
use sim::volume::Op;

const FIRST: u8 = 1;
const SECOND: u8 = 2;

fn fused(mut c: Command, half: u8) -> Command {
    c.0[1] |= half;
    c
}

fn compare(at: u64) -> Command {
    fused(blocks(nvm::COMPARE, at, 1), FIRST)
}

fn write(at: u64) -> Command {
    fused(blocks(nvm::WRITE, at, 1), SECOND)
}

fn hosts(rig: &Rig, digests: Digests) -> (Host, Host) {
    with_io(rig, |host| host.digests = digests)
}

/// Sends commands one behind the other; gives their statuses, and the order in which they ended.
async fn send<'a>(io: &Host, all: &[(Command, Data<'a>)]) -> (Vec<Status>, Vec<usize>) {
    let first = io.next_id();
    for (command, data) in all {
        io.begin(command.clone(), data).await.unwrap();
    }
    let (mut ended, mut order) = (vec![None; all.len()], Vec::new());
    while order.len() < all.len() {
        match io.next_pdu().await.unwrap() {
            Pdu::Done(done) => {
                let at = usize::from(done.id - first);
                assert!(ended[at].replace(done.status).is_none(), "answered twice");
                order.push(at);
            }
            Pdu::Ready(ready) => {
                let Data::In(data) = all[usize::from(ready.command - first)].1 else {
                    panic!("data that nobody has is asked for")
                };
                io.send_data(&ready, data, true).await.unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
    (ended.into_iter().flatten().collect(), order)
}

async fn statuses<'a>(io: &Host, all: &[(Command, Data<'a>)]) -> Vec<Status> {
    send(io, all).await.0
}

fn form(in_capsule: bool, data: &[u8]) -> Data<'_> {
    if in_capsule { Data::Capsule(data) } else { Data::In(data) }
}

#[test]
fn a_block_is_compared_and_written_in_every_form() {
    const FAILED: [Status; 2] = [Status::COMPARE_FAILURE, Status::ABORTED_FAILED_FUSED];
    for (seed, digest) in [false, true].into_iter().enumerate() {
        for forms in [(true, true), (true, false), (false, true), (false, false)] {
            let rig = Rig::new(seed as u64);
            let (admin, io) = hosts(&rig, Digests { header: digest, data: digest });
            let volume = rig.volume();
            rig.run(async move {
                enter(&admin, &io).await;
                let (was, next) = (volume.bytes_at(5 * BLOCK, BLOCK), vec![7; BLOCK]);
                let both = |expected, at| {
                    [(compare(at), form(forms.0, expected)), (write(at), form(forms.1, &next))]
                };
                let (ended, order) = send(&io, &both(&was, 5)).await;
                assert_eq!((ended, order), (vec![Status::SUCCESS; 2], vec![0, 1]));
                assert!(io.read(5, 1).await == next);
                let (ended, order) = send(&io, &both(&was, 5)).await;
                assert_eq!((ended, order), (FAILED.to_vec(), vec![0, 1]));
                let mut durable = both(&next, 5);
                durable[1].0.0[51] |= 0x40;
                assert_eq!(statuses(&io, &durable).await, [Status::SUCCESS; 2]);
                // The halves on their own are as ever.
                let plain = blocks(nvm::COMPARE, 5, 1);
                io.expect(plain, form(forms.0, &next), Status::SUCCESS).await;
                assert_eq!(admin.identify(1, 0).await[522], 1, "offered");
            });
            let (at, bytes) = (5 * BLOCK as u64, BLOCK);
            let read = Op::Read(at, bytes);
            let op = |fua| Op::CompareWrite(at, bytes, fua);
            let log = rig.volume().log();
            assert_eq!(log, [op(false), read.clone(), op(false), op(true), read]);
            rig.finish();
        }
    }
}

/// Commands one behind the other, and how they end.
type Case<'a> = (Vec<(Command, Data<'a>)>, Vec<Status>);

/// Pairs that are none, for blocks of one and of two.
fn wrong_pairs<'a>(in_capsule: bool, one: &'a [u8], two: &'a [u8]) -> Vec<Case<'a>> {
    use Status as S;
    const END: u64 = (8 << 20) / BLOCK as u64;
    let one = || form(in_capsule, one);
    let two = || form(in_capsule, two);
    let wide = |opcode, half| fused(blocks(opcode, 0, 2), half);
    let other = |mut c: Command| {
        c.0[4] = 2;
        c
    };
    let first = || (compare(0), one());
    let second = || (write(0), one());
    let flush = || (command(nvm::FLUSH, 1), Data::None);
    let second_wrong = || vec![S::ABORTED_FAILED_FUSED, S::INVALID_FIELD];
    let first_wrong = |status| vec![status, S::ABORTED_FAILED_FUSED];
    vec![
        (
            vec![(wide(nvm::COMPARE, FIRST), two()), (wide(nvm::WRITE, SECOND), two())],
            first_wrong(S::ATOMIC_UNIT),
        ),
        (vec![first(), (write(1), one())], second_wrong()),
        (vec![first(), (other(write(0)), one())], second_wrong()),
        (vec![first(), (fused(blocks(nvm::COMPARE, 0, 1), SECOND), one())], second_wrong()),
        (vec![first(), (wide(nvm::WRITE, SECOND), two())], second_wrong()),
        (
            vec![(fused(blocks(nvm::WRITE, 0, 1), FIRST), one()), second()],
            first_wrong(S::INVALID_FIELD),
        ),
        (vec![(compare(END), one()), (write(END), one())], first_wrong(S::LBA_RANGE)),
        (
            vec![(other(compare(0)), one()), (other(write(0)), one())],
            first_wrong(S::INVALID_NAMESPACE),
        ),
        (
            vec![(fused(command(nvm::FLUSH, 1), FIRST), Data::None), second()],
            first_wrong(S::INVALID_FIELD),
        ),
        // What the field must not say.
        (
            vec![(fused(compare(0), SECOND), one()), second()],
            vec![S::INVALID_FIELD, S::ABORTED_MISSING_FUSED],
        ),
        (vec![second()], vec![S::ABORTED_MISSING_FUSED]),
        (vec![first(), flush()], vec![S::ABORTED_MISSING_FUSED, S::SUCCESS]),
        (
            vec![first(), (compare(1), one()), flush()],
            vec![S::ABORTED_MISSING_FUSED, S::ABORTED_MISSING_FUSED, S::SUCCESS],
        ),
    ]
}

#[test]
fn halves_that_do_not_fit_are_both_refused() {
    let rig = Rig::new(3);
    let (admin, io) = hosts(&rig, Digests::default());
    rig.run(async move {
        enter(&admin, &io).await;
        let (one, two) = (vec![1; BLOCK], vec![2; 2 * BLOCK]);
        for in_capsule in [true, false] {
            for (n, (commands, wanted)) in
                wrong_pairs(in_capsule, &one, &two).into_iter().enumerate()
            {
                assert_eq!(statuses(&io, &commands).await, wanted, "case {n}");
            }
        }
        let half = fused(command(nvme::command::admin::KEEP_ALIVE, 0), FIRST);
        admin.expect(half, Data::None, Status::INVALID_FIELD).await;
    });
    let log = rig.volume().log();
    assert!(log.iter().all(|op| *op == Op::Flush), "nothing was compared or written: {log:?}");
    rig.finish();
}

/// The data of either half is damaged: neither is carried out, both are answered, and the slots are
/// nobody's halves afterwards.
#[test]
fn damage_of_one_half_ends_both() {
    const BOTH: Digests = Digests { header: true, data: true };
    for damaged in [&[0][..], &[1], &[0, 1]] {
        let rig = Rig::new(4);
        let (admin, io) = hosts(&rig, BOTH);
        rig.run(async move {
            enter(&admin, &io).await;
            let block = vec![9; BLOCK];
            let first = io.begin(compare(0), &Data::In(&block)).await.unwrap();
            let second = io.begin(write(0), &Data::In(&block)).await.unwrap();
            let mut ended = [None, None];
            while ended.contains(&None) {
                match io.next_pdu().await.unwrap() {
                    Pdu::Ready(ready) => {
                        let half = usize::from(ready.command == second);
                        if damaged.contains(&half) {
                            let mut pdu = host_data(BOTH, &ready, flag::LAST, &block);
                            *pdu.last_mut().unwrap() ^= 1;
                            io.send(&pdu).await.unwrap();
                        } else {
                            io.send_data(&ready, &block, true).await.unwrap();
                        }
                    }
                    Pdu::Done(done) => {
                        ended[usize::from(done.id != first)] = Some(done.status);
                    }
                    other => panic!("{other:?}"),
                }
            }
            let status = |half| match damaged.contains(&half) {
                true => Some(Status::TRANSIENT_TRANSPORT),
                false => Some(Status::ABORTED_FAILED_FUSED),
            };
            // What is lost already is not looked at.
            let second = if damaged.len() == 2 { ended[1] } else { status(1) };
            assert_eq!(ended, [status(0), second]);
            // The slots are used again by others.
            let next = vec![8; BLOCK];
            io.expect(blocks(nvm::WRITE, 1, 1), Data::In(&next), Status::SUCCESS).await;
            assert!(io.read(1, 1).await == next);
        });
        let log = rig.volume().log();
        assert!(!log.iter().any(|op| matches!(op, Op::CompareWrite(..))));
        rig.finish();
    }
}

/// A volume that fails, and a namespace that goes between the halves' arrival and their turn.
#[test]
fn what_can_not_be_carried_out_ends_both() {
    let rig = Rig::new(5);
    let (admin, io) = hosts(&rig, Digests::default());
    let (volume, target) = (rig.volume(), rig.target.clone());
    rig.run(async move {
        enter(&admin, &io).await;
        let block = vec![9; BLOCK];
        let both = || [(compare(0), Data::Capsule(&block)), (write(0), Data::Capsule(&block))];
        volume.fail(0..4096, BlockError::Unavailable);
        let wanted = [Status::WRITE_FAULT, Status::ABORTED_FAILED_FUSED];
        assert_eq!(statuses(&io, &both()).await, wanted);
        target.add("other", export(2, 1)).unwrap();
        let first = io.begin(compare(0), &Data::Capsule(&block)).await.unwrap();
        assert!(target.remove("one"));
        let second = io.begin(write(0), &Data::Capsule(&block)).await.unwrap();
        let mut ended = Vec::new();
        while ended.len() < 2 {
            let Pdu::Done(done) = io.next_pdu().await.unwrap() else { panic!() };
            ended.push((done.id, done.status));
        }
        ended.sort_by_key(|(id, _)| *id);
        assert!(ended.iter().all(|(_, status)| !status.is_success()), "{ended:?}");
        assert_eq!((ended[0].0, ended[1].0), (first, second));
    });
    rig.finish();
}

/// A connection that ends between the halves leaves nothing behind.
#[test]
fn a_connection_ends_between_the_halves() {
    for in_capsule in [true, false] {
        let rig = Rig::new(6);
        let (admin, io) = hosts(&rig, Digests::default());
        rig.run(async move {
            enter(&admin, &io).await;
            let block = vec![9; BLOCK];
            io.begin(compare(0), &form(in_capsule, &block)).await.unwrap();
            if !in_capsule {
                let Pdu::Ready(ready) = io.next_pdu().await.unwrap() else { panic!() };
                io.send_data(&ready, &block, true).await.unwrap();
                io.begin(write(0), &Data::In(&block)).await.unwrap();
                io.next_pdu().await.unwrap();
            }
        });
        let log = rig.volume().log();
        assert!(log.is_empty());
        rig.finish();
    }
}
