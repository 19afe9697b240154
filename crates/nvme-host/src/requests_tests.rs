//! What becomes of requests, by the paths that take them.

use super::*;

fn read(bytes: usize) -> Asked {
    Asked {
        what: What::Read,
        namespace: 1,
        by: None,
        lapse: 0,
        offset: 0,
        bytes: bytes as u64,
        shift: 9,
        data: Gather::new(),
        into: Some(Pool::single(bytes)),
    }
}

#[test]
fn who_has_begun_a_request_takes_all_of_it_unless_it_leaves() {
    let requests = Requests::default();
    let [one, other] = [0, 1].map(|path| requests.join(Association { path, turn: 1 }));
    let ticket = requests.ask(read(8192));
    let part = requests.take(one, 4096).expect("there is one");
    assert!(!requests.has_parts(other) && requests.take(other, 4096).is_none());
    assert!(requests.has_parts(one));
    // Others are not in the way.
    let behind = requests.ask(read(512));
    let next = requests.take(other, 4096).expect("there is another");
    assert_eq!((next.bytes, requests.take(other, 4096)), (512, None));
    requests.answered(&part, Ok(()), NO_ANSWER);
    requests.leave(one);
    let rest = requests.take(other, 4096).expect("it was left");
    assert_eq!((rest.entry, rest.from, rest.bytes), (part.entry, 4096, 4096));
    requests.answered(&rest, Ok(()), NO_ANSWER);
    requests.answered(&next, Ok(()), NO_ANSWER);
    [ticket, behind].into_iter().for_each(|ticket| requests.drop_ticket(ticket));
    assert!(requests.is_idle());
}

#[test]
fn paths_take_turns_and_what_is_left_of_one_is_taken_by_the_others() {
    let requests = Requests::default();
    let [one, two, three] = [0, 3, 63].map(|path| requests.join(Association { path, turn: 1 }));
    requests.set_ways(&[(1, Way::Paths(1 | 1 << 3 | 1 << 63)), (2, Way::Paths(1 << 3))]);
    let tickets: Vec<_> = (0..6).map(|_| requests.ask(read(512))).collect();
    let mut taken = Vec::new();
    for _ in 0..2 {
        for carrier in [three, two, one] {
            let part = requests.take(carrier, 4096).expect("its turn");
            taken.push((carrier.association.path, part.entry, part));
        }
    }
    assert!([one, two, three].into_iter().all(|own| !requests.has_parts(own)));
    let mut order: Vec<_> = taken.iter().map(|own| (own.1, own.0)).collect();
    order.sort_unstable();
    assert_eq!(order.iter().map(|own| own.1).collect::<Vec<_>>(), [0, 3, 63, 0, 3, 63]);
    taken.iter().for_each(|own| requests.answered(&own.2, Ok(()), NO_ANSWER));
    tickets.into_iter().for_each(|ticket| requests.drop_ticket(ticket));
    // A path that goes, and one that does not lead there any more, leave their turns to others.
    let tickets: Vec<_> = (0..3).map(|_| requests.ask(read(512))).collect();
    requests.leave(two);
    requests.set_ways(&[(1, Way::Paths(1 | 1 << 3))]);
    for _ in 0..3 {
        let part = requests.take(one, 4096).expect("nobody else's turn");
        requests.answered(&part, Ok(()), NO_ANSWER);
    }
    tickets.into_iter().for_each(|ticket| requests.drop_ticket(ticket));
    assert!(requests.is_idle());
}

#[test]
fn only_paths_that_lead_to_a_namespace_carry_its_requests() {
    let requests = Requests::default();
    let [one, other] = [0, 1].map(|path| requests.join(Association { path, turn: 1 }));
    requests.set_ways(&[(1, Way::Paths(0b10)), (2, Way::Paths(0b01))]);
    let ticket = requests.ask(read(512));
    let second = requests.ask(Asked { namespace: 2, ..read(512) });
    assert!(!requests.is_idle());
    let part = requests.take(one, 4096).expect("there is one");
    assert_eq!(requests.with(&part, |asked| asked.namespace), 2);
    assert!(!requests.has_parts(one) && requests.has_parts(other));
    // What waits is not carried; what is under way is answered.
    requests.set_ways(&[(1, Way::No(DriveError::Gone)), (2, Way::No(DriveError::Gone))]);
    assert!(!requests.has_parts(other));
    requests.answered(&part, Ok(()), NO_ANSWER);
    let waker = Waker::noop();
    let outcome = |ticket| match requests.poll(ticket, &mut Context::from_waker(waker)) {
        Poll::Ready(outcome) => Some(outcome.result),
        Poll::Pending => None,
    };
    assert_eq!(outcome(ticket), Some(Err(DriveError::Gone)));
    assert_eq!(outcome(second), Some(Ok(())));
    let third = requests.ask(read(512));
    assert_eq!(outcome(third), Some(Err(DriveError::Gone)));
    assert!(requests.is_idle());
}

#[test]
fn what_is_held_waits_for_its_own_path() {
    let requests = Requests::default();
    let flush = |what| Asked { what, bytes: 512, into: None, ..read(512) };
    let [one, other] = [3, 5].map(|path| requests.join(Association { path, turn: 7 }));
    let tickets = [(); 2].map(|()| requests.ask(flush(What::Zeroes)));
    for carrier in [one, other] {
        let part = requests.take(carrier, 4096).expect("there is one");
        requests.give_back(&part);
        requests.leave(carrier);
    }
    assert_eq!(requests.held(), 2);
    requests.release(Association { path: 3, turn: 6 });
    requests.release(Association { path: 4, turn: 9 });
    assert_eq!(requests.held(), 2, "others ended");
    requests.release(Association { path: 3, turn: 7 });
    assert_eq!(requests.held(), 1);
    requests.refuse(DriveError::Gone);
    assert_eq!(requests.held(), 1, "it may still be carried out");
    requests.release(Association { path: 5, turn: 8 });
    tickets.into_iter().for_each(|ticket| requests.drop_ticket(ticket));
    assert!(requests.is_idle());
}

#[test]
fn what_a_path_did_not_do_another_does_and_it_does_itself_later() {
    let requests = Requests::default();
    let [one, other] = [0, 1].map(|path| requests.join(Association { path, turn: 1 }));
    let write = Asked { what: What::Zeroes, bytes: 512, into: None, ..read(512) };
    let ticket = requests.ask(write);
    let part = requests.take(one, 4096).expect("there is one");
    assert!(requests.turn_away(&part));
    assert_eq!(requests.held(), 0, "nobody carries it out");
    assert!(!requests.has_parts(one) && requests.has_parts(other));
    let part = requests.take(other, 4096).expect("it waits");
    assert!(requests.turn_away(&part));
    assert!(!requests.has_parts(one) && !requests.has_parts(other));
    let take_any = || requests.take(one, 4096).or_else(|| requests.take(other, 4096));
    // Another namespace's are taken.
    let second = requests.ask(Asked { namespace: 2, ..read(512) });
    let part = requests.take(one, 4096).expect("there is another");
    requests.answered(&part, Ok(()), NO_ANSWER);
    requests.drop_ticket(second);
    for _ in 2..TURNS_AWAY {
        requests.try_again();
        let part = take_any().expect("it waits");
        assert!(requests.turn_away(&part));
    }
    requests.try_again();
    let part = take_any().expect("it waits");
    assert!(!requests.turn_away(&part), "that was often enough");
    requests.answered(&part, Err(DriveError::Fault), NO_ANSWER);
    requests.drop_ticket(ticket);
    assert!(requests.is_idle());
}

#[test]
fn a_request_of_which_a_part_came_back_is_held_also_if_one_was_not_carried_out() {
    let requests = Requests::default();
    let one = requests.join(Association { path: 0, turn: 1 });
    let data = core::iter::once(Pool::single(8192).freeze()).collect();
    let write = Asked { what: What::Write { fua: false }, data, into: None, ..read(8192) };
    let ticket = requests.ask(write);
    let parts = [(); 2].map(|()| requests.take(one, 4096).expect("there is one"));
    assert!(requests.turn_away(&parts[0]));
    requests.give_back(&parts[1]);
    assert_eq!(requests.held(), 1);
    requests.leave(one);
    requests.refuse(DriveError::Gone);
    requests.release(Association { path: 0, turn: 1 });
    requests.drop_ticket(ticket);
    assert!(requests.is_idle());
}

#[test]
fn what_came_back_is_carried_from_its_begin() {
    let requests = Requests::default();
    let [one, other] = [0, 1].map(|path| requests.join(Association { path, turn: 1 }));
    let ticket = requests.ask(read(3 * 4096));
    let parts = [(); 2].map(|()| requests.take(one, 4096).expect("there is one"));
    requests.give_back(&parts[0]);
    assert!(!requests.has_parts(one), "another part of it is under way");
    requests.answered(&parts[1], Ok(()), NO_ANSWER);
    requests.leave(one);
    assert_eq!(requests.take(other, 8192).map(|part| (part.from, part.bytes)), Some((0, 8192)));
    requests.drop_ticket(ticket);
    assert!(!requests.is_idle(), "it goes on");
}

fn zeroes(namespace: u32) -> Asked {
    Asked { what: What::Zeroes, namespace, bytes: 512, into: None, ..read(512) }
}

/// What came of a request, if it is over.
fn outcome(requests: &Requests, ticket: Ticket) -> Option<Result<(), DriveError>> {
    match requests.poll(ticket, &mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => Some(outcome.result),
        Poll::Pending => None,
    }
}

#[test]
fn an_unchecked_path_carries_no_changes_and_has_no_turn_of_them() {
    let requests = Requests::default();
    let [old, new] = [(0, 1), (1, 2)].map(|(path, turn)| Association { path, turn });
    let one = requests.join(old);
    requests.set_unchecked(&[1], new);
    let other = requests.join(new);
    let end = |carrier, asked: Asked| {
        let ticket = requests.ask(asked);
        let part = requests.take(carrier, 4096);
        part.inspect(|part| requests.answered(part, Ok(()), NO_ANSWER));
        requests.drop_ticket(ticket);
        part.is_some()
    };
    // In turn it would be the other's now and then.
    for what in [What::Write { fua: false }, What::Zeroes, What::Zeros, What::Discard] {
        for _ in 0..2 {
            assert!(end(one, Asked { what: what.clone(), ..zeroes(1) }), "{what:?}");
        }
    }
    // What changes nothing, and other namespaces, take turns.
    for _ in 0..2 {
        assert!(end(other, read(512)) && end(one, Asked { what: What::Flush, ..zeroes(1) }));
        assert!(end(other, zeroes(2)) && end(one, zeroes(2)));
    }
    requests.leave(one);
    let ticket = requests.ask(zeroes(1));
    assert!(!requests.has_parts(other), "nobody may carry it");
    requests.checked(1, Association { turn: 1, ..new });
    requests.checked(2, new);
    assert!(!requests.has_parts(other));
    requests.checked(1, new);
    let part = requests.take(other, 4096).expect("it may");
    requests.answered(&part, Ok(()), NO_ANSWER);
    assert_eq!(outcome(&requests, ticket), Some(Ok(())));
    assert!(requests.is_idle());
}

#[test]
fn a_barred_namespace_is_not_changed() {
    let requests = Requests::default();
    let one = requests.join(Association { path: 0, turn: 1 });
    // Under way, held, begun, and waiting.
    let tickets = [(); 3].map(|()| requests.ask(zeroes(1)));
    let parts = [(); 2].map(|()| requests.take(one, 4096).expect("there is one"));
    requests.give_back(&parts[1]);
    let [looked, other] = [read(512), zeroes(2)].map(|asked| requests.ask(asked));
    requests.set_barred(&[1]);
    let all = tickets.map(|ticket| outcome(&requests, ticket));
    assert_eq!(all, [None, None, Some(Err(DriveError::Gone))]);
    assert_eq!(requests.held(), 1, "it may still be carried out");
    requests.release(Association { path: 0, turn: 1 });
    assert_eq!(outcome(&requests, tickets[1]), Some(Err(DriveError::Gone)));
    requests.answered(&parts[0], Ok(()), NO_ANSWER);
    assert_eq!(outcome(&requests, tickets[0]), Some(Ok(())));
    for ticket in [looked, other] {
        let part = requests.take(one, 4096).expect("no change, or of another");
        requests.answered(&part, Ok(()), NO_ANSWER);
        assert_eq!(outcome(&requests, ticket), Some(Ok(())));
    }
    let later = requests.ask(zeroes(1));
    assert_eq!(outcome(&requests, later), Some(Err(DriveError::Gone)));
    requests.unbar(1);
    let last = requests.ask(zeroes(1));
    assert!(requests.has_parts(one));
    requests.drop_ticket(last);
}

#[test]
fn what_an_association_asks_for_itself_nobody_else_carries() {
    let requests = Requests::default();
    let [own, other] = [0, 1].map(|path| Association { path, turn: 4 });
    requests.set_unchecked(&[1], own);
    let [one, another] = [own, other].map(|by| requests.join(by));
    let asked = || Asked { by: Some(own), ..read(512) };
    for _ in 0..3 {
        let ticket = requests.ask(asked());
        assert!(!requests.has_parts(another));
        // Nor where its own path does not lead there.
        requests.set_ways(&[(1, Way::Paths(0b10))]);
        assert!(!requests.has_parts(one) && !requests.has_parts(another));
        requests.set_ways(&[(1, Way::Paths(0b11))]);
        let part = requests.take(one, 4096).expect("it is its own");
        requests.answered(&part, Ok(()), NO_ANSWER);
        assert_eq!(outcome(&requests, ticket), Some(Ok(())));
    }
    // Back, and waiting, when its queue leaves.
    let tickets = [(); 2].map(|()| requests.ask(asked()));
    let part = requests.take(one, 4096).expect("it is its own");
    requests.give_back(&part);
    requests.leave(one);
    let gone = Some(Err(DriveError::Gone));
    assert_eq!(tickets.map(|ticket| outcome(&requests, ticket)), [gone; 2]);
    // The next association of that path is not it.
    let next = Association { turn: 5, ..own };
    requests.set_unchecked(&[1], next);
    requests.join(next);
    let late = requests.ask(asked());
    assert_eq!(outcome(&requests, late), gone);
    assert!(requests.is_idle());
}
