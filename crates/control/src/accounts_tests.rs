//! Who may log in is in the file, and nobody gets in who may not.

use super::*;
use core::future::Future;
use redfish::access::Role;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;

const PASSWORD: &str = "correct horse";

fn run(test: impl Future<Output = ()>) {
    let builder = &mut tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().expect("a runtime");
    runtime.block_on(test);
}

fn open(dir: &Path) -> Arc<Accounts> {
    let state = Arc::new(State::open(dir).expect("a state directory"));
    let found = Accounts::read(&state);
    Arc::new(Accounts::go_on(state, found))
}

/// What is shown of the file.
fn in_file(accounts: &Accounts) -> Access {
    Access { problem: None, locked: BTreeSet::new(), ..accounts.shown() }
}

fn from(last: u8) -> Origin {
    Origin::Network(IpAddr::from([192, 0, 2, last]))
}

fn secret(text: &str) -> Secret {
    Secret::new(text)
}

fn account(name: &str, role: Role) -> NewAccount {
    let (name, password) = (name.to_owned(), secret(PASSWORD));
    NewAccount { name, password, role, enabled: true, must_change: false }
}

async fn with_two(dir: &Path) -> Arc<Accounts> {
    let accounts = open(dir);
    accounts.create(account("root", Role::Administrator)).await.expect("created");
    accounts.create(account("ana", Role::Operator)).await.expect("created");
    accounts
}

async fn check(accounts: &Accounts, origin: Origin, password: &str) -> Result<bool, Denied> {
    let outcome = accounts.check(origin, "ana", &secret(password)).await;
    outcome.map(|(account, is_new)| {
        assert_eq!(account.name, "ana");
        is_new
    })
}

async fn begin(accounts: &Arc<Accounts>, origin: Origin) -> Result<Begun, Denied> {
    let proved = accounts.prove(origin, "ana", &secret(PASSWORD)).await?;
    match accounts.begin(&proved, "192.0.2.9").await {
        Ok(begun) => Ok(begun),
        Err(NotBegun::Gone) => Err(Denied::Wrong),
        Err(NotBegun::Full) => panic!("there is room"),
        Err(NotBegun::Failed(error)) => panic!("{error:?}"),
    }
}

fn password(text: &str) -> AccountChange {
    AccountChange { password: Some(secret(text)), ..AccountChange::default() }
}

#[test]
fn accounts_and_sessions_outlive_the_daemon() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let accounts = with_two(place.path()).await;
        assert!(*accounts.is_any().borrow());
        let begun = begin(&accounts, from(1)).await.expect("begun");
        let shown = in_file(&accounts);
        drop(accounts);
        let file = std::fs::read_to_string(place.path().join(ACCOUNTS)).expect("there");
        assert!(!file.contains(PASSWORD) && !file.contains(&begun.token), "{file}");
        let accounts = open(place.path());
        assert_eq!(in_file(&accounts), shown);
        // It has logged in there before.
        let there = Origin::Network(IpAddr::from([192, 0, 2, 9]));
        for number in 0..200 {
            lock(&accounts.lockout).failed("other", there, None, Duration::from_secs(number));
        }
        assert_eq!(check(&accounts, there, PASSWORD).await, Ok(true));
        let (session, account) = accounts.session(&begun.token).expect("still open");
        assert_eq!((session.id.as_str(), account.name.as_str()), (begun.id.as_str(), "ana"));
        accounts.end(&begun.id).await.expect("ended");
        assert!(accounts.session(&begun.token).is_none());
        drop(accounts);
        assert!(open(place.path()).session(&begun.token).is_none());
    });
}

#[test]
fn nobody_gets_in_with_what_is_wrong_or_no_more_right() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let accounts = with_two(place.path()).await;
        assert_eq!(check(&accounts, from(1), "correct hors").await, Err(Denied::Wrong));
        assert_eq!(check(&accounts, from(1), PASSWORD).await, Ok(true), "it is computed");
        assert_eq!(check(&accounts, from(1), PASSWORD).await, Ok(false), "it is known");
        let token = begin(&accounts, from(1)).await.expect("begun").token;
        accounts.alter("ana", password("another one")).await.expect("changed");
        assert!(accounts.session(&token).is_none());
        assert_eq!(check(&accounts, from(1), PASSWORD).await, Err(Denied::Wrong));
        assert_eq!(check(&accounts, from(1), "another one").await, Ok(true));

        let disable = AccountChange { enabled: Some(false), ..AccountChange::default() };
        accounts.alter("ana", disable).await.expect("changed");
        assert_eq!(check(&accounts, from(1), "another one").await, Err(Denied::Wrong));
        let enable = AccountChange { enabled: Some(true), ..AccountChange::default() };
        accounts.alter("ana", enable).await.expect("changed");
        assert_eq!(check(&accounts, from(1), "another one").await, Ok(true));
        accounts.delete("ana").await.expect("deleted");
        assert_eq!(check(&accounts, from(1), "another one").await, Err(Denied::Wrong));
    });
}

#[test]
fn a_password_that_is_changed_while_it_is_looked_at_lets_nobody_in() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let accounts = with_two(place.path()).await;
        // The new one is computed first, and written while the old one is looked at.
        let change = accounts.alter("ana", password("another one"));
        let (changed, old) = tokio::join!(change, check(&accounts, from(1), PASSWORD));
        changed.expect("changed");
        // Whichever came first: now it is wrong.
        let _ = old;
        assert_eq!(check(&accounts, from(1), PASSWORD).await, Err(Denied::Wrong));
        assert!(!lock(&accounts.basic).knows("ana", PASSWORD, accounts.moment()));
    });
}

#[test]
fn failures_are_counted_but_not_of_who_has_a_role_on_the_socket() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let accounts = with_two(place.path()).await;
        for _ in 0..access::FAILURES_FREE {
            assert_eq!(check(&accounts, from(1), "wrong").await, Err(Denied::Wrong));
        }
        assert!(matches!(check(&accounts, from(1), PASSWORD).await, Err(Denied::Locked(_))));
        assert!(matches!(begin(&accounts, from(1)).await, Err(Denied::Locked(_))));
        assert_eq!(check(&accounts, from(2), PASSWORD).await, Ok(true));
        for _ in 0..2 * access::FAILURES_FREE {
            let denied = check(&accounts, Origin::Socket(7), "wrong").await;
            assert_eq!(denied, Err(Denied::Wrong));
        }
        assert_eq!(check(&accounts, Origin::Socket(7), PASSWORD).await, Ok(false));
    });
}

#[test]
fn an_administrator_lifts_a_lock_also_where_nothing_can_be_written() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let accounts = with_two(place.path()).await;
        for _ in 0..access::FAILURES_FREE {
            let _ = check(&accounts, from(1), "wrong").await;
        }
        assert_eq!(accounts.shown().locked.into_iter().collect::<Vec<_>>(), ["ana"]);
        std::fs::create_dir(place.path().join(format!("{ACCOUNTS}.new"))).expect("made");
        let unlock = AccountChange { unlock: true, ..AccountChange::default() };
        accounts.alter("ana", unlock.clone()).await.expect("done");
        assert!(accounts.shown().locked.is_empty());
        assert_eq!(check(&accounts, from(1), PASSWORD).await, Ok(true));
        let error = accounts.alter("none", unlock).await.expect_err("there is none");
        assert!(error.is(&say::NO_ACCOUNT), "{error:?}");
    });
}

#[test]
fn who_has_no_role_on_the_socket_is_locked_out_there() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let accounts = with_two(place.path()).await;
        for _ in 0..access::FAILURES_FREE {
            let denied = check(&accounts, Origin::Stranger(7), "wrong").await;
            assert_eq!(denied, Err(Denied::Wrong));
        }
        let denied = begin(&accounts, Origin::Stranger(7)).await;
        assert!(matches!(denied, Err(Denied::Locked(_))));
        assert!(begin(&accounts, Origin::Stranger(8)).await.is_ok());
    });
}

#[test]
fn a_storm_of_logins_keeps_nobody_else_out() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let accounts = with_two(place.path()).await;
        let storm: Vec<_> = (0..200)
            .map(|number| {
                let accounts = accounts.clone();
                tokio::spawn(
                    async move { check(&accounts, from(1), &format!("wrong {number}")).await },
                )
            })
            .collect();
        tokio::task::yield_now().await;
        assert_eq!(check(&accounts, from(2), PASSWORD).await, Ok(true));
        let (mut wrong, mut waits) = (0, 0);
        for one in storm {
            match one.await.expect("ends") {
                Err(Denied::Wrong) => wrong += 1,
                Err(Denied::Locked(seconds) | Denied::Busy(seconds)) if seconds > 0 => waits += 1,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((wrong, waits), (access::FAILURES_FREE, 200 - access::FAILURES_FREE));
    });
}

#[test]
fn right_requests_at_one_time_cost_one_computation() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let accounts = with_two(place.path()).await;
        let ask = |_| {
            let accounts = accounts.clone();
            tokio::spawn(async move { check(&accounts, from(1), PASSWORD).await })
        };
        let all: Vec<_> = (0..10).map(ask).collect();
        let mut computed = 0;
        for one in all {
            computed += u32::from(one.await.expect("ends").expect("right"));
        }
        assert_eq!(computed, 1);
    });
}

#[test]
fn without_a_state_directory_there_are_no_accounts() {
    run(async {
        let accounts = Arc::new(Accounts::none());
        let error = accounts.create(account("root", Role::Administrator)).await.expect_err("none");
        assert!(error.error.contains("no state directory"), "{error:?}");
        assert!(!*accounts.is_any().borrow());
        assert_eq!(check(&accounts, from(1), PASSWORD).await, Err(Denied::Wrong));
    });
}

#[test]
fn a_file_that_can_not_be_read_is_left_as_it_is() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join(ACCOUNTS);
        drop(open(place.path()));
        std::fs::write(&file, b"{\"version\": 1").expect("written");
        let accounts = open(place.path());
        let problem = accounts.problem().expect("is told").what;
        assert!(
            problem.is(&say::ACCOUNTS_NOT_READ) && problem.error.contains(ACCOUNTS),
            "{problem:?}"
        );
        let made = accounts.create(account("root", Role::Administrator)).await;
        assert_eq!(made, Err(problem));
        assert_eq!(std::fs::read(&file).expect("there"), b"{\"version\": 1");
    });
}

#[test]
fn sessions_end_by_a_clock_that_nobody_sets() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let mut accounts = Arc::into_inner(with_two(place.path()).await).expect("one's own");
        // The machine's clock was wrong when the daemon started, and is right now.
        accounts.began -= 1_000_000;
        let mut accounts = Arc::new(accounts);
        let begun = begin(&accounts, from(1)).await.expect("begun");
        assert!(accounts.session(&begun.token).is_some() && accounts.use_session(&begun.id));
        let late = |accounts: Arc<Accounts>, seconds| {
            let mut accounts = Arc::into_inner(accounts).expect("one's own");
            accounts.start -= Duration::from_secs(seconds);
            Arc::new(accounts)
        };
        accounts = late(accounts, 1790);
        assert!(accounts.use_session(&begun.id));
        accounts = late(accounts, 1801);
        assert!(accounts.session(&begun.token).is_none() && !accounts.use_session(&begun.id));
        assert!(accounts.shown().sessions.is_empty());
    });
}

#[test]
fn what_can_not_be_written_did_not_happen() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let accounts = with_two(place.path()).await;
        std::fs::create_dir(place.path().join(format!("{ACCOUNTS}.new"))).expect("made");
        let shown = in_file(&accounts);
        let bob = account("bob", Role::ReadOnly);
        let error = accounts.create(bob).await.expect_err("not written");
        assert!(error.is(&say::ACCOUNTS_NOT_WRITTEN), "{error:?}");
        let role = AccountChange { role: Some(Role::Administrator), ..AccountChange::default() };
        let error = accounts.alter("ana", role).await.expect_err("not written");
        assert!(error.is(&say::ACCOUNTS_NOT_WRITTEN), "{error:?}");
        let proved = accounts.prove(from(1), "ana", &secret(PASSWORD)).await.expect("right");
        assert!(matches!(accounts.begin(&proved, "x").await, Err(NotBegun::Failed(_))));
        assert_eq!(in_file(&accounts), shown);
        assert_eq!(check(&accounts, from(1), PASSWORD).await, Ok(false));
    });
}

#[test]
fn what_is_taken_away_counts_though_it_can_not_be_written() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let accounts = with_two(place.path()).await;
        let tokens = [begin(&accounts, from(1)).await, begin(&accounts, from(1)).await];
        let [first, second] = tokens.map(|begun| begun.expect("begun"));
        let new = place.path().join(format!("{ACCOUNTS}.new"));
        std::fs::create_dir(&new).expect("made");
        let is_told = |outcome: Result<(), Error>| {
            let error = outcome.expect_err("not written");
            assert!(error.is(&say::ACCOUNTS_UNWRITTEN), "{error:?}");
        };
        is_told(accounts.end(&first.id).await);
        assert!(accounts.session(&first.token).is_none() && !accounts.use_session(&first.id));
        assert!(accounts.session(&second.token).is_some());
        is_told(accounts.alter("ana", password("another one")).await);
        assert!(accounts.session(&second.token).is_none());
        assert_eq!(check(&accounts, from(1), PASSWORD).await, Err(Denied::Wrong));
        assert_eq!(check(&accounts, from(1), "another one").await, Ok(true));
        is_told(accounts.delete("ana").await);
        assert_eq!(check(&accounts, from(1), "another one").await, Err(Denied::Wrong));
        let error = accounts.delete("root").await.expect_err("it is the last one");
        assert!(error.is(&say::LAST_ADMINISTRATOR), "{error:?}");
        assert!(accounts.problem().is_some_and(|own| own.what.is(&say::ACCOUNTS_NOT_WRITTEN)));
        // Whoever starts anew has the file.
        std::fs::remove_dir(&new).expect("removed");
        accounts.close().await;
        let shown = in_file(&accounts);
        assert_eq!((shown.accounts.len(), accounts.problem()), (1, None));
        drop(accounts);
        assert_eq!(in_file(&open(place.path())), shown);
    });
}

#[test]
fn what_is_late_is_told_and_comes_about_behind_nothing_else() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let mut accounts = Arc::into_inner(with_two(place.path()).await).expect("one's own");
        accounts.patience = Duration::from_millis(50);
        let accounts = Arc::new(accounts);
        assert_eq!(accounts.problem(), None);
        // A file whose opening waits for the other end.
        let hanging = place.path().join(format!("{ACCOUNTS}.new"));
        let made = std::process::Command::new("mkfifo").arg(&hanging).status().expect("runs");
        assert!(made.success());
        let before = accounts.shown().session_seconds;
        let error = accounts.keep_sessions(60).await.expect_err("late");
        assert!(error.is(&say::ACCOUNTS_LATE), "{error:?}");
        assert_eq!(accounts.problem().map(|own| own.what), Some(error));
        assert_eq!(accounts.shown().session_seconds, before, "it does not count yet");
        let error = accounts.keep_sessions(90).await.expect_err("waits for the first");
        assert!(error.is(&say::ACCOUNTS_NOT_WRITTEN), "{error:?}");
        assert_eq!(check(&accounts, from(1), PASSWORD).await, Ok(true), "others get in");
        let error = accounts.delete("ana").await.expect_err("it waits, too");
        assert!(error.is(&say::ACCOUNTS_UNWRITTEN), "{error:?}");
        assert_eq!(check(&accounts, from(1), PASSWORD).await, Err(Denied::Wrong));
        // The file system answers: what can't be synchronized was not written.
        let mut end = std::fs::OpenOptions::new();
        let end = end.read(true).write(true).open(&hanging).expect("the other end");
        drop(accounts.changing.clone().lock_owned().await);
        assert!(accounts.problem().is_some_and(|own| own.what.is(&say::ACCOUNTS_NOT_WRITTEN)));
        let shown = in_file(&accounts);
        assert_eq!((shown.session_seconds, shown.account("ana")), (before, None));
        drop(end);
        assert!(!hanging.exists(), "what could not be written leaves no file");
        // This one may be late, too.
        accounts.close().await;
        drop(accounts.changing.clone().lock_owned().await);
        assert_eq!(accounts.problem(), None);
        drop(accounts);
        assert_eq!(in_file(&open(place.path())), shown);
    });
}

#[test]
fn what_is_in_the_file_counts_though_it_may_not_last() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let accounts = with_two(place.path()).await;
        let Place::State(state) = &accounts.place else { panic!("there is one") };
        state.is_volatile.store(true, std::sync::atomic::Ordering::Relaxed);
        let error = accounts.delete("ana").await.expect_err("it may not last");
        assert!(error.is(&say::ACCOUNTS_LATE), "{error:?}");
        let shown = in_file(&accounts);
        assert!(shown.account("ana").is_none());
        assert_eq!(check(&accounts, from(1), PASSWORD).await, Err(Denied::Wrong));
        drop(accounts);
        assert_eq!(in_file(&open(place.path())), shown);
    });
}

#[test]
fn who_logs_in_has_the_role_of_now() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let accounts = with_two(place.path()).await;
        let held = accounts.hold_passwords();
        let own = accounts.clone();
        let login = async move { own.check(from(1), "ana", &secret(PASSWORD)).await };
        let demote = async {
            let change = AccountChange { role: Some(Role::ReadOnly), ..AccountChange::default() };
            accounts.alter("ana", change).await.expect("changed");
            drop(held);
        };
        let (login, ()) = tokio::join!(login, demote);
        assert_eq!(login.expect("right").0.role, Role::ReadOnly);
    });
}

#[test]
fn who_sends_a_password_again_and_again_logged_in_once() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let accounts = with_two(place.path()).await;
        assert_eq!(check(&accounts, from(1), PASSWORD).await, Ok(true));
        lock(&accounts.basic).expire();
        assert_eq!(check(&accounts, from(1), PASSWORD).await, Ok(false), "the minute is over");
        lock(&accounts.basic).expire();
        assert_eq!(check(&accounts, from(2), PASSWORD).await, Ok(true), "from another address");
    });
}

#[test]
fn who_guesses_leaves_room_for_new_passwords() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let accounts = with_two(place.path()).await;
        let held = accounts.hold_passwords();
        let storm: Vec<_> = (0..2 * hasher::WAITING as u8)
            .map(|address| {
                let accounts = accounts.clone();
                tokio::spawn(async move { check(&accounts, from(address), "wrong").await })
            })
            .collect();
        tokio::task::yield_now().await;
        let own = accounts.clone();
        let chosen = tokio::spawn(async move { own.alter("ana", password("another one")).await });
        tokio::task::yield_now().await;
        drop(held);
        chosen.await.expect("ends").expect("changed");
        for one in storm {
            one.await.expect("ends").expect_err("wrong, or too many");
        }
    });
}

#[test]
fn what_waits_behind_a_removal_does_not_bring_it_back() {
    let builder = &mut tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().max_blocking_threads(1).build().expect("a runtime");
    runtime.block_on(async {
        let place = tempfile::tempdir().expect("a directory");
        let accounts = with_two(place.path()).await;
        let new = place.path().join(format!("{ACCOUNTS}.new"));
        std::fs::create_dir(&new).expect("made");
        // The only thread that could write waits until another change waits behind the removal; it
        // can write again in between.
        let (go_on, wait) = std::sync::mpsc::channel::<()>();
        let waiting = spawn_blocking(move || wait.recv());
        let own = accounts.clone();
        let deleting = tokio::spawn(async move { own.delete("ana").await });
        let own = accounts.clone();
        let keeping = tokio::spawn(async move { own.keep_sessions(60).await });
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        let freeing = spawn_blocking(move || std::fs::remove_dir(new));
        drop(go_on);
        let error = deleting.await.expect("ran").expect_err("not written");
        assert!(error.is(&say::ACCOUNTS_UNWRITTEN), "{error:?}");
        keeping.await.expect("ran").expect("written");
        let _ = waiting.await;
        freeing.await.expect("ran").expect("removed");
        assert_eq!(check(&accounts, from(1), PASSWORD).await, Err(Denied::Wrong));
        accounts.close().await;
        drop(accounts);
        let shown = open(place.path()).shown();
        assert_eq!((shown.session_seconds, shown.account("ana")), (60, None));
    });
}

#[test]
fn what_was_late_counts_once_it_is_written() {
    let builder = &mut tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().max_blocking_threads(1).build().expect("a runtime");
    runtime.block_on(async {
        let place = tempfile::tempdir().expect("a directory");
        let mut accounts = Arc::into_inner(with_two(place.path()).await).expect("one's own");
        accounts.patience = Duration::from_millis(50);
        let accounts = Arc::new(accounts);
        assert_eq!(check(&accounts, from(1), PASSWORD).await, Ok(true));
        // The only thread that could write waits for something else.
        let (go_on, wait) = std::sync::mpsc::channel::<()>();
        let waiting = spawn_blocking(move || wait.recv());
        let error = accounts.keep_sessions(60).await.expect_err("late");
        assert!(error.is(&say::ACCOUNTS_LATE), "{error:?}");
        let error = accounts.delete("ana").await.expect_err("behind it");
        assert!(error.is(&say::ACCOUNTS_UNWRITTEN), "{error:?}");
        drop(go_on);
        let _ = waiting.await;
        drop(accounts.changing.clone().lock_owned().await);
        assert_eq!(accounts.problem(), None);
        let shown = in_file(&accounts);
        assert_eq!((shown.session_seconds, shown.account("ana")), (60, None));
        assert_eq!(check(&accounts, from(1), PASSWORD).await, Err(Denied::Wrong));
        accounts.close().await;
        drop(accounts.changing.clone().lock_owned().await);
        drop(accounts);
        assert_eq!(in_file(&open(place.path())), shown);
    });
}

#[test]
fn a_password_that_must_be_changed_is_not_changed_to_itself() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let accounts = with_two(place.path()).await;
        let must = AccountChange { must_change: Some(true), ..AccountChange::default() };
        accounts.alter("ana", must).await.expect("changed");
        let error = accounts.alter("ana", password(PASSWORD)).await.expect_err("the old one");
        assert!(error.is(&say::SAME_PASSWORD), "{error:?}");
        accounts.alter("ana", password("another one")).await.expect("changed");
        assert!(!accounts.shown().account("ana").expect("there").must_change);
    });
}

#[test]
fn too_many_passwords_are_told() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let accounts = with_two(place.path()).await;
        let ask = |_| {
            let accounts = accounts.clone();
            tokio::spawn(async move { accounts.alter("ana", password("another one")).await })
        };
        let all: Vec<_> = (0..3 * hasher::WAITING).map(ask).collect();
        let mut busy = 0;
        for one in all {
            let outcome = one.await.expect("ends");
            assert!(outcome.as_ref().err().is_none_or(|error| error.is(&say::PASSWORDS_BUSY)));
            busy += usize::from(outcome.is_err());
        }
        assert!(busy >= hasher::WAITING, "{busy}");
    });
}
