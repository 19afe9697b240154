//! Resources, made of the view: what a GET answers.
//!
//! Purpose: standard properties as DMTF's and SNIA's schemas have them, and what these lack under
//! `Oem.Palisade` (see [`crate::oem`]). [`crate::read`] is the way back.
//!
//! Invariant: nobody is asked. A resource that refers to another refers to one that is there in
//! the same view.

use crate::dates;
use crate::etag;
use crate::messages;
use crate::openapi;
use crate::routes::{self, Match, Resource};
use crate::schema;
use crate::telemetry::Report;
use crate::view::{Health, Problem, View};
use core::ops::Range;
use serde_json::{Value, json};

mod accounts;
mod actions;
mod alerts;
mod certificates;
mod chassis;
mod drive_metrics;
mod drives;
mod events;
mod fabrics;
mod history;
mod jobs;
mod logs;
mod machine;
mod pools;
mod ports;
mod registries;
mod root;
mod shares;
mod surroundings;
mod tasks;
mod telemetry;
pub mod uri;
mod volumes;

pub(crate) use drive_metrics::DATA_UNIT;
pub(crate) use surroundings::unit;

/// The resource, if there is one, with its ETag. Texts other than JSON are not among them.
pub fn render(view: &View, found: &Match) -> Option<Value> {
    render_part(view, found, &(0..usize::MAX))
}

/// The same, of a log with these of its lines only: null stands for each of the others.
pub fn render_part(view: &View, found: &Match, members: &Range<usize>) -> Option<Value> {
    let mut resource = match found.route.resource {
        Resource::AuditEntries => logs::entries(view, members),
        Resource::EventEntries => events::entries(view, members),
        _ => rendered(view, found)?,
    };
    actions::annotate(&mut resource);
    etag::put(&mut resource);
    Some(resource)
}

/// A report of the past without the values that take most of it; none if it is no such report.
/// It has no ETag: that would be another's.
pub fn render_brief(view: &View, found: &Match) -> Option<Value> {
    match found.route.resource {
        Resource::MetricReport => history::report(view, found.id(0), false),
        _ => None,
    }
}

/// The resource that a request is about: what its URI leads to, or for an action what it acts on.
pub fn subject(view: &View, found: &Match) -> Option<Value> {
    render(view, &routes::find(&found.subject())?)
}

/// A report of metrics: what a view says that the one before did not; none if that is nothing.
pub fn report(before: &View, view: &View, report: Report) -> Option<Value> {
    let changes = crate::telemetry::changes(before, view, report);
    (!changes.is_empty()).then(|| telemetry::report_of(view, report, &changes))
}

fn rendered(view: &View, found: &Match) -> Option<Value> {
    use Resource as R;
    let id = found.id(0);
    match found.route.resource {
        R::Versions => Some(root::versions()),
        R::ServiceRoot => Some(root::service_root(view)),
        R::Odata => Some(root::odata()),
        R::Systems => Some(machine::systems()),
        R::System => Some(machine::system(view)),
        R::Storages => Some(machine::storages()),
        R::Storage => Some(machine::storage(view)),
        R::Pools => Some(pools::pools(view)),
        R::Pool => pools::pool(view, id),
        R::CapacitySource => pools::capacity_source(view, id),
        R::ProvidingDrives => pools::providing_drives(view, id),
        R::AllocatedVolumes => pools::allocated_volumes(view, id),
        R::Volumes => Some(volumes::volumes(view)),
        R::Volume => volumes::volume(view, id),
        R::VolumeMetrics => volumes::metrics(view, id),
        R::Drives => Some(drives::drives(view)),
        R::Drive => drives::drive(view, id),
        R::DriveMetrics => drive_metrics::metrics(view, id),
        R::Managers => Some(machine::managers()),
        R::Manager => Some(machine::manager(view)),
        R::LogServices => Some(logs::services()),
        R::NetworkProtocol => Some(certificates::network_protocol(view)),
        R::HttpsCertificates => Some(certificates::all(view)),
        R::HttpsCertificate => certificates::one(view, id),
        R::CertificateService => Some(certificates::service()),
        R::CertificateLocations => Some(certificates::locations(view)),
        R::AuditLog => Some(logs::audit(view)),
        R::AuditEntry => logs::entry(view, id),
        R::Fabrics => Some(fabrics::fabrics()),
        R::Fabric => fabrics::fabric(view, id),
        R::Connections => fabrics::connections(view, id),
        R::Connection => fabrics::connection(view, id, found.id(1)),
        R::Endpoints => fabrics::endpoints(view, id),
        R::Endpoint => fabrics::endpoint(view, id, found.id(1)),
        R::JobService => Some(jobs::service(view)),
        R::Jobs => Some(jobs::jobs(view)),
        R::Job => jobs::job(view, id),
        R::TaskService => Some(tasks::service(view)),
        R::Tasks => Some(tasks::tasks(view)),
        R::Task => tasks::task(view, id),
        R::AccountService => Some(accounts::service(view)),
        R::Accounts => Some(accounts::accounts(view)),
        R::Account => accounts::account(view, id),
        R::Roles => Some(accounts::roles()),
        R::Role => accounts::role(id),
        R::SessionService => Some(accounts::session_service(view)),
        R::Sessions => Some(accounts::sessions(view)),
        R::Session => accounts::session(view, id),
        R::JsonSchemas => Some(schema::collection()),
        R::JsonSchema => schema::file(id),
        R::JsonSchemaText => schema::json(found.id(1)),
        R::OpenApi | R::OpenApiYaml => Some(openapi::document()),
        // Of texts and actions there is none.
        _ => registries::rendered(found)
            .or_else(|| actions::info(view, found))
            .or_else(|| surroundings::rendered(view, found))
            .or_else(|| shares::rendered(view, found))
            .or_else(|| events::rendered(view, found))
            .or_else(|| telemetry::rendered(view, found)),
    }
}

/// A reference.
fn link(uri: impl Into<String>) -> Value {
    json!({"@odata.id": uri.into()})
}

/// References.
fn links(uris: impl IntoIterator<Item = String>) -> Vec<Value> {
    uris.into_iter().map(link).collect()
}

/// A text, or nothing where it is empty.
fn named(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// Adds a property.
fn put(resource: &mut Value, property: &str, value: Value) {
    if let Some(resource) = resource.as_object_mut() {
        resource.insert(property.to_owned(), value);
    }
}

/// Adds a property whose text is not empty; schemas want the others left out.
fn put_named(resource: &mut Value, property: &str, text: &str) {
    if let Some(text) = named(text) {
        put(resource, property, json!(text));
    }
}

/// A collection of `schema`s, such as `StoragePoolCollection`.
fn collection(
    uri: &str,
    schema: &str,
    name: &str,
    uris: impl IntoIterator<Item = String>,
) -> Value {
    let all = links(uris);
    json!({
        "@odata.id": uri,
        "@odata.type": format!("#{schema}.{schema}"),
        "Name": name,
        "Members@odata.count": all.len(),
        "Members": all,
    })
}

/// What is wrong, as `Resource.Condition` has it.
fn condition(problem: &Problem, severity: &str) -> Value {
    let Problem { since, what } = problem;
    json!({
        "MessageId": format!("{}{}", messages::PREFIX, what.name),
        "Message": what.error,
        "MessageArgs": what.args,
        "Resolution": what.hint,
        "Severity": severity,
        "Timestamp": dates::text(*since),
    })
}

/// The newest lines of a log first. A collection of lines holds the lines themselves (DSP0268,
/// "LogEntryCollection"); null stands for those that are not among `members`.
fn log_entries<T>(
    uri: &str,
    name: &str,
    lines: impl DoubleEndedIterator<Item = T>,
    members: &Range<usize>,
    line: impl Fn(T) -> Value,
) -> Value {
    let lines = lines.rev().enumerate().map(|(at, own)| match members.contains(&at) {
        true => line(own),
        false => Value::Null,
    });
    let lines: Vec<Value> = lines.collect();
    let mut all = collection(uri, "LogEntryCollection", name, core::iter::empty());
    put(&mut all, "Members@odata.count", json!(lines.len()));
    put(&mut all, "Members", Value::Array(lines));
    all
}

/// How something is, in two words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Standing {
    state: &'static str,
    health: &'static str,
}

impl Standing {
    const GOOD: Self = Self::enabled("OK");

    const fn enabled(health: &'static str) -> Self {
        Self { state: "Enabled", health }
    }

    /// Its health.
    fn known(self) -> Option<Health> {
        Health::of(self.health)
    }

    fn status(self) -> Value {
        json!({"State": self.state, "Health": self.health})
    }
}

/// How many hundredths of `whole` a part is; all of nothing.
pub(crate) fn percent(part: u64, whole: u64) -> u64 {
    let hundredths = u128::from(part.min(whole)) * 100;
    let percent = hundredths.checked_div(u128::from(whole)).unwrap_or(100);
    u64::try_from(percent).unwrap_or(100)
}
