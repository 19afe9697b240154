//! How exports are shown that `palisade services` makes.

use redfish::view::{ExportHealth, ServiceState};
use services::wire::{Files, Kind, Server, Standing, State, Wanted};
use std::time::Duration;

/// How old what was said of an export may be.
const STALE: u64 = 4 * services::CHECK.as_secs();
/// How long `palisade services` may take to come: after the daemon's start, or another end of it.
const COMES: Duration = Duration::from_secs(10);

/// How an export is shown that is one of these.
#[derive(Default)]
pub struct Shown {
    /// The block device that it is, or stands on.
    pub device: Option<String>,
    /// The link to that.
    pub link: Option<String>,
    /// Who serves its target.
    pub server: Option<Server>,
    /// Initiators that have it.
    pub sessions: Vec<String>,
    /// Its file system, as it was told last; while nobody tells of it there is none.
    pub files: Option<Box<Files>>,
    /// How it is.
    pub health: Option<ExportHealth>,
}

/// What is known of an export.
pub struct Known<'a> {
    /// What is wanted.
    pub wanted: &'a Wanted,
    /// What was said of it.
    pub standing: Option<&'a Standing>,
    /// Why nobody is asked for it.
    pub problem: Option<&'a String>,
}

impl Shown {
    /// Of what is known. While nobody is there to tell of it: since when, and what is then said.
    pub fn new(known: &Known<'_>, nobody: Option<(Duration, String)>) -> Self {
        let said = known.standing.filter(|_| nobody.is_none());
        let (state, checked) = (ServiceState::Starting, said.map(|said| said.checked));
        let mut health = ExportHealth { state, checked, problem: None };
        let mut fail = |problem: String| {
            (health.state, health.problem) = (ServiceState::Failed, Some(problem));
        };
        let since = said.map_or(0, |said| services::now().saturating_sub(said.checked));
        let mut is_told = false;
        if let Some(problem) = known.problem {
            fail(problem.clone());
        } else if known.wanted.suspended {
            fail("its array does not run".to_owned());
        } else if since > STALE {
            fail(format!("`palisade services` has said nothing of it for {since} s"));
        } else if let Some(said) = said {
            is_told = true;
            health.state = match said.state {
                State::Ok | State::Busy => ServiceState::Ok,
                State::Made => ServiceState::Starting,
                State::Failed | State::Gone | State::Holds => ServiceState::Failed,
            };
            health.problem = said.problem.clone().filter(|_| said.state != State::Busy);
        } else if let Some((_, why)) = nobody.filter(|(waits, _)| *waits >= COMES) {
            fail(why);
        }
        let Wanted { kind, array, volume, .. } = known.wanted;
        let is_device = matches!(kind, Kind::Device | Kind::Ublk);
        let link = services::link(array, volume).filter(|_| is_device);
        Self {
            device: said.and_then(|said| said.device.clone()),
            link: link.map(|link| link.display().to_string()),
            server: said.and_then(|said| said.server),
            sessions: said.map(|said| said.sessions.clone()).unwrap_or_default(),
            files: said.filter(|_| is_told).and_then(|said| said.files.clone()),
            health: Some(health),
        }
    }
}
