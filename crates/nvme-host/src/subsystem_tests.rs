//! By which paths namespaces are reached, and what is taken up of what controllers say of them.

use super::*;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Waker};

const FAIL: Nanos = Nanos(5_000);

fn namespace(bytes: u64, uuid: u8) -> NamespaceInfo {
    NamespaceInfo {
        info: DriveInfo { bytes, block_bytes: 512, volatile_cache: false, inline: false },
        known: Identifiers { uuid: [uuid; 16], ..Identifiers::default() },
        can: Can::default(),
    }
}

fn found(is: NamespaceInfo, access: Access) -> FoundNamespace {
    FoundNamespace { is, access, is_cache_told: true }
}

#[test]
fn a_cache_is_what_anybody_says_that_there_is() {
    let mut state = State::default();
    let mut meet = |has_cache: Option<bool>| {
        let mut own = found(namespace(4096, 1), Access::Optimized);
        own.is.info.volatile_cache = has_cache.unwrap_or(true);
        own.is_cache_told = has_cache.is_some();
        state.meet([(1, own)].into());
        let known = &state.namespaces[&1];
        (known.is.info.volatile_cache, known.has_changed)
    };
    assert_eq!(meet(Some(false)), (false, false));
    assert_eq!(meet(None), (false, false), "who does not say changes nothing");
    assert_eq!(meet(Some(true)), (false, true), "nobody flushes what it has now");
    assert_eq!(meet(Some(false)), (false, false));
    let mut state = State::default();
    let mut own = found(namespace(4096, 1), Access::Optimized);
    own.is.info.volatile_cache = true;
    state.meet([(1, FoundNamespace { is_cache_told: false, ..own.clone() })].into());
    own.is.info.volatile_cache = false;
    state.meet([(1, own)].into());
    let known = &state.namespaces[&1];
    assert!(known.is.info.volatile_cache && !known.has_changed);
}

/// Live paths by which one namespace is reached so.
fn state(accesses: &[Access]) -> State {
    let mut state = State::default();
    for (path, access) in (0..).zip(accesses) {
        let mut record = PathRecord::new(1, SocketAddr::from(([192, 0, 2, path], 4420)));
        record.stage = Stage::Live;
        record.access = state.meet([(1, found(namespace(4096, 1), *access))].into());
        state.paths.insert(path, record);
    }
    state
}

fn way(state: &mut State, now: u64) -> (Way, Option<Nanos>) {
    let (ways, next) = state.ways(Nanos(now), FAIL);
    assert_eq!((ways.len(), ways[0].0), (1, 1));
    (ways[0].1, next)
}

#[test]
fn the_best_paths_are_taken() {
    use Access::{Change, Inaccessible, NonOptimized, Optimized, PersistentLoss};
    for (accesses, paths) in [
        (&[Optimized, Optimized, NonOptimized][..], 0b011),
        (&[NonOptimized, Inaccessible, NonOptimized], 0b101),
        (&[Inaccessible, Optimized], 0b10),
        (&[Inaccessible, PersistentLoss, Change], 0),
    ] {
        let next = (paths == 0).then_some(FAIL);
        assert_eq!(way(&mut state(accesses), 0), (Way::Paths(paths), next), "{accesses:?}");
    }
}

#[test]
fn requests_wait_for_a_path_but_not_for_ever() {
    let mut state = state(&[Access::Optimized]);
    assert_eq!(way(&mut state, 100), (Way::Paths(1), None));
    state.paths.get_mut(&0).expect("is there").ends(Problem::Over);
    assert_eq!(way(&mut state, 1_000), (Way::Paths(0), Some(Nanos(6_000))));
    assert_eq!(way(&mut state, 5_999), (Way::Paths(0), Some(Nanos(6_000))));
    assert_eq!(way(&mut state, 6_000), (Way::No(DriveError::Gone), None));
    state.paths.get_mut(&0).expect("is there").stage = Stage::Live;
    assert_eq!(way(&mut state, 9_000), (Way::Paths(1), None));
    state.paths.clear();
    assert_eq!(way(&mut state, 10_000), (Way::Paths(0), Some(Nanos(15_000))));
}

#[test]
fn what_a_namespace_is_does_not_change() {
    let mut state = state(&[Access::Optimized]);
    let meet = |state: &mut State, is: NamespaceInfo| {
        let access = state.meet([(1, found(is, Access::Optimized))].into());
        state.paths.get_mut(&0).expect("is there").access = access;
        way(state, 0).0
    };
    assert_eq!(meet(&mut state, namespace(8192, 1)), Way::No(DriveError::Gone));
    assert_eq!(state.namespaces[&1].is, namespace(4096, 1));
    assert_eq!(meet(&mut state, namespace(4096, 1)), Way::Paths(1));
    // Another that has its number.
    assert_eq!(meet(&mut state, namespace(4096, 2)), Way::Paths(0));
    assert_eq!(meet(&mut state, namespace(4096, 1)), Way::Paths(1));
}

/// A core that looks when the path is gone already.
#[test]
fn cores_learn_that_the_fence_of_a_path_is_over_that_is_forgotten() {
    let host = HostIdentity { nqn: Nqn::new("nqn.2014-08.org.nvmexpress:a").unwrap(), id: [1; 16] };
    let subsystem = Subsystem::new(host.nqn.clone(), host, Settings::default());
    let (path, _) = subsystem.add(SocketAddr::from(([192, 0, 2, 1], 4420))).unwrap();
    let (association, _) = subsystem.begins(path).unwrap();
    subsystem.fences(path, association);
    subsystem.remove(path);
    let seen = subsystem.news(0).unwrap();
    assert!(!seen.over.contains(&association));
    subsystem.fenced(association);
    let forget = pin!(subsystem.forget(path));
    assert!(forget.poll(&mut Context::from_waker(Waker::noop())).is_ready());
    let news = subsystem.news(seen.version).unwrap();
    assert!(news.paths.is_empty() && news.over.contains(&association), "{:?}", news.over);
    // As long as nobody comes behind it there.
    let (next, _) = subsystem.add(SocketAddr::from(([192, 0, 2, 2], 4420))).unwrap();
    assert!(next.number == path.number && next != path);
    let (behind, _) = subsystem.begins(next).unwrap();
    let news = subsystem.news(news.version).unwrap();
    assert!(news.over.contains(&association) && !news.over.contains(&behind));
}

/// Under another name they would seem to have ended.
#[test]
fn by_an_alias_no_controllers_are_named_or_ended() {
    let host = HostIdentity { nqn: Nqn::new("nqn.2014-08.org.nvmexpress:a").unwrap(), id: [1; 16] };
    let own = Subsystem::alias(host.nqn.clone(), host, Settings::default());
    let (path, _) = own.add(SocketAddr::from(([192, 0, 2, 1], 4420))).unwrap();
    own.begins(path).unwrap();
    let instance = Instance { controller: 1, uniquifier: 2, random: 3 };
    let found = Found {
        controller: 1,
        serial: String::new(),
        entries: 16,
        shape: Shape { commands: 16, data_most: 4096, capsule_data: 0 },
        namespaces: BTreeMap::new(),
        fence: Nanos(1),
        instance: Some(instance),
        resets: true,
    };
    own.lives(path, found, true);
    assert!(own.controllers().is_empty());
    let end = pin!(own.end(instance));
    let ended = end.poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(ended, core::task::Poll::Ready(false));
}
