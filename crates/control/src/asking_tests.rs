//! Asking drives, by stand-ins.

use super::*;
use drives::admin::StandIn;
use nvme::command::admin;
use nvme::request::Request;
use nvme::status::Status;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::task::yield_now;

/// Longer than any test.
const LONG: Duration = Duration::from_secs(3600);
/// Short, for what is to be given up.
const SHORT: Duration = Duration::from_millis(20);

/// How many openings of a device there are, and were at most at one time.
#[derive(Default)]
struct Openings {
    now: AtomicU32,
    most: AtomicU32,
}

/// An opening, which lets other threads go on between requests.
struct Opened {
    drive: StandIn,
    openings: Arc<Openings>,
}

impl Opened {
    fn new(drive: StandIn, openings: Arc<Openings>) -> Self {
        let now = openings.now.fetch_add(1, Ordering::SeqCst) + 1;
        openings.most.fetch_max(now, Ordering::SeqCst);
        Self { drive, openings }
    }
}

impl Admin for Opened {
    fn ask(&self, request: &Request, into: &mut [u8]) -> Result<u32, AdminError> {
        std::thread::yield_now();
        self.drive.ask(request, into)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.openings.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Stand-ins, each with a device of its name, and who asks them.
struct Shelf {
    drives: Vec<StandIn>,
    openings: Vec<Arc<Openings>>,
    asking: Asking,
    answered: Arc<AtomicU32>,
    /// All that was told but answers.
    told: Arc<Mutex<Vec<News>>>,
}

fn key(number: usize) -> String {
    format!("drive-{number}")
}

fn askable(number: usize) -> Askable {
    Askable { key: key(number), device: PathBuf::from(format!("/dev/nvme{number}")) }
}

impl Shelf {
    /// So many drives, which are asked again only if told so.
    fn new(count: usize) -> Self {
        let drives: Vec<StandIn> = (0..count).map(|n| StandIn::new(&format!("S{n}"))).collect();
        let openings: Vec<Arc<Openings>> = (0..count).map(|_| Arc::default()).collect();
        let (answered, told) = <(Arc<AtomicU32>, Arc<Mutex<Vec<News>>>)>::default();
        let devices = drives.iter().cloned().zip(openings.iter().cloned()).enumerate();
        let devices: BTreeMap<PathBuf, (StandIn, Arc<Openings>)> =
            devices.map(|(number, device)| (askable(number).device, device)).collect();
        let open = move |path: &Path| match devices.get(path).cloned() {
            Some((drive, openings)) => Ok(Box::new(Opened::new(drive, openings)) as Box<dyn Admin>),
            None => Err(AdminError::Gone),
        };
        let notes = (answered.clone(), told.clone());
        let asking = Asking::new(open, move |news| match news {
            News::Answered => drop(notes.0.fetch_add(1, Ordering::Relaxed)),
            other => lock(&notes.1).push(other),
        });
        asking.set_times(Times { every: LONG, deadline: LONG });
        asking.set_drives((0..count).map(askable));
        Self { drives, openings, asking, answered, told }
    }

    fn give_up_soon(&self) {
        self.asking.set_times(Times { every: LONG, deadline: SHORT });
    }

    fn hang(&self, number: usize, hangs: bool) {
        self.drives[number].change(|standing| standing.hangs = hangs);
    }

    fn answer(&self, number: usize) -> Option<Arc<Answer>> {
        self.asking.answer(&key(number))
    }

    async fn ask(&self, number: usize) -> Answer {
        let answer = self.asking.ask_now(&key(number)).await.expect("it is asked");
        assert_eq!(self.answer(number), Some(answer.clone()));
        Answer::clone(&answer)
    }
}

impl Drop for Shelf {
    /// Threads that hang would keep the runtime from its end, also where a test has failed.
    fn drop(&mut self) {
        (0..self.drives.len()).for_each(|number| self.hang(number, false));
    }
}

/// Runs a test with drives on one thread, as the control plane is.
fn run(count: usize, test: impl AsyncFnOnce(&Shelf)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    // Dropped before the runtime.
    let shelf = Shelf::new(count);
    runtime.block_on(test(&shelf));
}

/// Runs a test beside what asks drives when they are due.
fn run_kept(count: usize, test: impl AsyncFnOnce(&Shelf)) {
    run(count, async |shelf| {
        tokio::select! {
            () = shelf.asking.keep() => {}
            () = test(shelf) => {}
        }
    });
}

async fn until(is: impl Fn() -> bool) {
    while !is() {
        yield_now().await;
    }
}

fn refused(what: What, status: Status) -> Option<Unanswered> {
    Some(Unanswered::Asked { what, error: AdminError::Refused(status) })
}

#[test]
fn a_drive_tells_what_it_is_and_how_it_is() {
    run(1, async |shelf| {
        assert_eq!(shelf.answer(0), None);
        shelf.drives[0].change(|standing| standing.power_state = 1);
        let (answer, is) = (shelf.ask(0).await, shelf.drives[0].standing());
        assert_eq!((answer.controller, answer.smart), (Some(is.controller), Some(is.smart)));
        assert_eq!((answer.power_state, answer.problem), (Some(1), None));
        assert!(answer.when.is_some_and(|when| when > 1_700_000_000));
        assert_eq!(shelf.asking.ask_now("another").await, None);
        assert_eq!(shelf.answered.load(Ordering::Relaxed), 1);
        assert_eq!(shelf.openings[0].now.load(Ordering::SeqCst), 0, "it is closed again");
    });
}

#[test]
fn all_drives_are_asked_at_once_and_one_that_hangs_delays_nobody() {
    run_kept(48, async |shelf| {
        (0..48).for_each(|number| shelf.hang(number, true));
        until(|| shelf.drives.iter().all(|drive| drive.waiting() == 1)).await;
        (1..48).for_each(|number| shelf.hang(number, false));
        until(|| (1..48).all(|number| shelf.answer(number).is_some())).await;
        // Those that answer are asked on, too.
        shelf.drives[7].change(|standing| standing.smart.media_errors = 9);
        assert_eq!(shelf.ask(7).await.smart.map(|smart| smart.media_errors), Some(9));
        assert_eq!((shelf.answer(0), shelf.drives[0].waiting()), (None, 1));
        shelf.hang(0, false);
        until(|| shelf.answer(0).is_some_and(|answer| answer.problem.is_none())).await;
    });
}

#[test]
fn a_drive_that_does_not_answer_is_given_up_and_not_asked_again_before_it_has_ended() {
    run(1, async |shelf| {
        let before = shelf.ask(0).await;
        shelf.hang(0, true);
        shelf.give_up_soon();
        let asked = shelf.drives[0].asked();
        let problem = Some(Unanswered::Silent(SHORT));
        let silent = Answer { problem, is_smart_told: false, ..before.clone() };
        for _ in 0..3 {
            assert_eq!(shelf.ask(0).await, silent, "what it told before is known still");
            // The thread may begin after that.
            until(|| shelf.drives[0].waiting() > 0).await;
            assert_eq!((shelf.drives[0].asked(), shelf.drives[0].waiting()), (asked + 1, 1));
        }
        let power = shelf.asking.set_power(&key(0), 1).await;
        assert_eq!(power, Err(Unanswered::Unsure(SHORT)));
        // Nor if it goes and comes back.
        shelf.asking.set_drives([]);
        assert_eq!((shelf.answer(0), shelf.asking.ask_now(&key(0)).await), (None, None));
        shelf.asking.set_drives([askable(0)]);
        assert_eq!(shelf.ask(0).await, Answer::without(Unanswered::Silent(SHORT)));
        assert_eq!((shelf.drives[0].asked(), shelf.drives[0].waiting()), (asked + 1, 1));
        shelf.asking.set_times(Times { every: LONG, deadline: LONG });
        shelf.hang(0, false);
        assert_eq!(shelf.ask(0).await.problem, None);
        assert_eq!(shelf.drives[0].most_at_once(), 1);
        assert_eq!(shelf.drives[0].standing().power_state, 0, "it was never told");
    });
}

#[test]
fn a_drive_is_asked_one_thing_at_a_time_by_whomever() {
    run_kept(1, async |shelf| {
        // Two drives of one controller, and its looks when they are due.
        let again = Askable { key: "again".to_owned(), ..askable(0) };
        shelf.asking.set_drives([askable(0), again]);
        shelf.asking.set_times(Times { every: Duration::from_micros(1), deadline: LONG });
        let asking = &shelf.asking;
        let ask = async |key: &str| {
            for _ in 0..20 {
                assert_eq!(asking.ask_now(key).await.expect("it is asked").problem, None);
            }
        };
        let (first, power) = (key(0), key(0));
        let power = async {
            for state in 0..20 {
                assert!(asking.set_power(&power, state % 3).await.is_ok());
            }
        };
        tokio::join!(ask(&first), ask(&first), ask("again"), ask("again"), power);
        assert_eq!(shelf.openings[0].most.load(Ordering::SeqCst), 1);
        assert_eq!(shelf.drives[0].most_at_once(), 1);
        // Each opening asks for three things, and sets the state in twenty.
        assert!(shelf.drives[0].asked() >= 3 * 100 + 20);
    });
}

#[test]
fn drives_are_asked_again_and_again_and_new_firmware_is_seen() {
    run_kept(2, async |shelf| {
        until(|| (0..2).all(|number| shelf.answer(number).is_some())).await;
        let firmware = |number| {
            let controller = shelf.answer(number)?.controller.clone()?;
            Some(controller.firmware)
        };
        assert_eq!(firmware(0), Some("1.0".to_owned()));
        shelf.drives[0].change(|standing| standing.controller.firmware = "2.0".to_owned());
        // It would be long until the next look.
        shelf.asking.set_times(Times { every: Duration::from_millis(1), deadline: LONG });
        until(|| firmware(0) == Some("2.0".to_owned())).await;
        let asked = shelf.drives[1].asked();
        until(|| shelf.drives[1].asked() > asked + 9).await;
    });
}

#[test]
fn that_asking_is_not_allowed_is_told_once_for_each_reason() {
    for (error, news) in
        [(AdminError::NotAllowed, News::NotAllowed), (AdminError::NotOpened, News::NotOpened)]
    {
        run(3, async |shelf| {
            for drive in &shelf.drives[..2] {
                drive.change(|standing| standing.fails = Some(error));
            }
            for number in [2, 0, 1, 0] {
                let answer = shelf.ask(number).await;
                let why = Unanswered::Asked { what: What::Controller, error };
                assert_eq!(answer.problem, (number < 2).then_some(why));
                assert_eq!(answer.is_forbidden(), number < 2);
            }
            assert!(shelf.asking.set_power(&key(1), 0).await.is_err());
            assert_eq!(*lock(&shelf.told), [news]);
            // The other reason is another to mend.
            let other = [AdminError::NotOpened, AdminError::NotAllowed];
            let other = other.into_iter().find(|other| *other != error);
            shelf.drives[2].change(|standing| standing.fails = other);
            shelf.ask(2).await;
            assert_eq!(lock(&shelf.told).len(), 2);
        });
    }
}

#[test]
fn what_a_drive_refuses_keeps_nothing_else_from_being_told() {
    run(1, async |shelf| {
        let before = shelf.ask(0).await;
        let status = Status::INVALID_LOG_PAGE;
        shelf.drives[0].change(|standing| {
            standing.refuses = [(admin::GET_LOG_PAGE, status)].into();
            (standing.power_state, standing.smart.kelvin) = (1, 350);
        });
        let after = shelf.ask(0).await;
        assert_eq!((after.smart, after.power_state), (before.smart, Some(1)));
        assert_eq!(after.problem, refused(What::Smart, status));
        let words = after.problem.map(|problem| problem.to_string());
        let told = "SMART log: the drive refused: Invalid Log Page (0x4109)";
        assert_eq!(words.as_deref(), Some(told));
        // Of what is there instead nothing is known but what it tells.
        shelf.drives[0].change(|standing| standing.controller.serial = "another".to_owned());
        assert_eq!(shelf.ask(0).await.smart, None);
        shelf.drives[0].change(|standing| standing.fails = Some(AdminError::Gone));
        shelf.drives[0].change(|standing| standing.refuses.clear());
        let gone = Unanswered::Asked { what: What::Controller, error: AdminError::Gone };
        let last = shelf.ask(0).await;
        assert_eq!((last.problem, last.power_state), (Some(gone), Some(1)));
    });
}

#[test]
fn a_power_state_is_set_or_refused_in_the_drives_words() {
    run(1, async |shelf| {
        let set = async |state| shelf.asking.set_power(&key(0), state).await;
        let answer = set(2).await.expect("it is set");
        assert_eq!((answer.power_state, shelf.answer(0)), (Some(2), Some(answer.clone())));
        let beyond = refused(What::Power, Status::INVALID_FIELD);
        assert_eq!([set(3).await.err(), set(255).await.err()], [beyond.clone(), beyond]);
        let status = Status::FEATURE_NOT_CHANGEABLE;
        shelf.drives[0]
            .change(|standing| standing.refuses = [(admin::SET_FEATURES, status)].into());
        let told = set(0).await.expect_err("it is refused").to_string();
        assert_eq!(told, "power state: the drive refused: Feature Not Changeable (0x410e)");
        let unknown = shelf.asking.set_power("another", 0).await;
        assert_eq!(unknown, Err(Unanswered::Unknown));
    });
}

#[test]
fn a_drive_that_comes_to_the_list_is_asked_at_once() {
    run_kept(2, async |shelf| {
        until(|| (0..2).all(|number| shelf.answer(number).is_some())).await;
        shelf.asking.set_drives([askable(1), askable(5)]);
        assert_eq!(shelf.answer(0), None);
        assert!(shelf.answer(1).is_some(), "nothing changed for it");
        until(|| shelf.answer(5).is_some()).await;
        let gone = Unanswered::Asked { what: What::Controller, error: AdminError::Gone };
        assert_eq!(
            shelf.answer(5).map(|answer| Answer::clone(&answer)),
            Some(Answer::without(gone))
        );
        let asked = shelf.drives[1].asked();
        shelf.asking.set_drives([askable(0), askable(1)]);
        until(|| shelf.answer(0).is_some()).await;
        assert_eq!(shelf.drives[1].asked(), asked, "nobody wanted to know");
    });
}

#[test]
fn an_answer_that_comes_late_takes_no_newer_ones_place() {
    let answer = |power_state| Answer { power_state: Some(power_state), ..Answer::default() };
    let mut device = Device::new();
    let table =
        [(Some(1), 1, 1), (Some(3), 3, 3), (Some(2), 2, 3), (Some(3), 4, 4), (Some(4), 5, 5)];
    for (turn, told, kept) in table {
        assert_eq!(device.take(turn, answer(told)).power_state, Some(kept), "{turn:?}");
    }
    let problem = Unanswered::Silent(SHORT);
    let given_up = device.take(None, Answer::without(problem.clone()));
    assert_eq!(*given_up, Answer { problem: Some(problem), ..answer(5) });
    assert_eq!(device.from, 4);
}

#[test]
fn answers_are_told_in_the_words_of_the_interface() {
    let firmware = Some("sysfs".to_owned());
    let mut hardware = Hardware { firmware, ..Hardware::default() };
    Answer::without(Unanswered::Silent(Duration::from_secs(10))).fill(&mut hardware);
    assert_eq!(hardware.firmware.as_deref(), Some("sysfs"));
    assert_eq!((hardware.asked, &hardware.power, &hardware.smart), (None, &None, &None));
    assert_eq!(hardware.problem.as_deref(), Some("the drive did not answer within 10 s"));
    let drive = StandIn::new("S1");
    drive.change(|standing| {
        (standing.smart.data_units_written, standing.smart.critical_warning) = (2, 4);
        standing.power_state = 1;
    });
    let answer = Answer::by(&drive);
    answer.fill(&mut hardware);
    assert_eq!(hardware.firmware.as_deref(), Some("1.0"));
    assert_eq!((hardware.warning_celsius, hardware.critical_celsius), (Some(70), Some(80)));
    assert_eq!((hardware.asked, hardware.problem), (answer.when, None));
    let smart = hardware.smart.expect("it has told");
    assert_eq!((smart.celsius, smart.written_bytes), (Some(37), 1_024_000));
    assert_eq!((smart.critical_warning, smart.sensors_celsius), (4, vec![Some(37)]));
    let power = hardware.power.expect("it has told");
    let states: Vec<_> =
        power.states.iter().map(|s| (s.state, s.max_milliwatts, s.serves, s.exit_us)).collect();
    let are = [(0, Some(25_000), true, 0), (1, Some(10_000), true, 100), (2, Some(5), false, 9000)];
    assert_eq!((power.state, states.as_slice()), (1, &are[..]));
}
