//! Which events somebody wants: the `$filter` of a stream (DSP0266, "The `$filter` query
//! parameter" of event streams), and the lists of a subscription.
//!
//! A filter compares properties with `eq` and `ne`, and joins that by `and`, `or`, `not` and
//! parentheses. A value may stand in quotes, and need not. `SubordinateResources eq true`
//! anywhere makes each `OriginResource` stand for what is below it, too.

use super::Event;
use crate::error::{Base, Refusal};
use crate::messages::Severity;
use crate::query::filter::{Comparison, Filter as Expression, Literal};

/// What a filter can compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// `Event` or `MetricReport`.
    EventFormatType,
    /// The kind of event.
    EventType,
    /// The message, with or without registry and version.
    MessageId,
    /// The resource whose report it is.
    MetricReportDefinition,
    /// The resource that an event is about.
    OriginResource,
    /// The registry of the message.
    RegistryPrefix,
    /// The type of the resource that an event is about.
    ResourceType,
    /// Whether what is below an origin counts, too.
    SubordinateResources,
    /// How grave it is.
    Severity,
}

impl Field {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "EventFormatType" => Self::EventFormatType,
            "EventType" => Self::EventType,
            "MessageId" => Self::MessageId,
            "MetricReportDefinition" => Self::MetricReportDefinition,
            "OriginResource" => Self::OriginResource,
            "RegistryPrefix" => Self::RegistryPrefix,
            "ResourceType" => Self::ResourceType,
            "SubordinateResources" => Self::SubordinateResources,
            "Severity" | "MessageSeverity" => Self::Severity,
            _ => return None,
        })
    }
}

/// What is looked at: an event, or a report of metrics.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// An event.
    Event(&'a Event),
    /// A report, by the URI of its definition.
    Report(&'a str),
}

/// A filter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filter {
    root: Node,
    with_subordinates: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Node {
    Is(Field, String),
    Not(Box<Node>),
    All(Vec<Node>),
    Any(Vec<Node>),
}

/// The only registry that events are of.
pub const REGISTRY: &str = "Palisade";

impl Filter {
    /// Reads one; none if it can't be read, or names what can't be compared.
    pub fn read(text: &str) -> Option<Self> {
        let root = node(&Expression::read(text)?)?;
        let with_subordinates = root.has(|field, value| {
            field == Field::SubordinateResources && value.eq_ignore_ascii_case("true")
        });
        Some(Self { root, with_subordinates })
    }

    /// Whether it names reports of metrics.
    fn asks_for_reports(&self) -> bool {
        self.root.has(|field, value| match field {
            Field::EventFormatType => value.eq_ignore_ascii_case("MetricReport"),
            field => field == Field::MetricReportDefinition,
        })
    }

    /// Whether somebody with this filter wants it. Reports of metrics are told to who asks for
    /// them by name.
    pub fn wants(&self, subject: Subject<'_>) -> bool {
        let is_asked_for = matches!(subject, Subject::Event(_)) || self.asks_for_reports();
        is_asked_for && self.root.holds(subject, self.with_subordinates)
    }
}

/// An expression of the query's grammar as one of ours.
fn node(of: &Expression) -> Option<Node> {
    let all = |parts: &[Expression]| parts.iter().map(node).collect::<Option<Vec<_>>>();
    Some(match of {
        Expression::Not(inner) => Node::Not(Box::new(node(inner)?)),
        Expression::All(parts) => Node::All(all(parts)?),
        Expression::Any(parts) => Node::Any(all(parts)?),
        Expression::Compare(left, how, right) => {
            let Expression::Property(path) = &**left else { return None };
            let [name] = path.as_slice() else { return None };
            let is = Node::Is(Field::of(name)?, value(right)?);
            match how {
                Comparison::Equal => is,
                Comparison::Unequal => Node::Not(Box::new(is)),
                _ => return None,
            }
        }
        Expression::Literal(_) | Expression::Property(_) => return None,
    })
}

/// A value, with or without quotes.
fn value(of: &Expression) -> Option<String> {
    match of {
        Expression::Literal(Literal::Text(text)) => Some(text.clone()),
        Expression::Literal(Literal::Truth(truth)) => Some(truth.to_string()),
        Expression::Property(path) => Some(path.join("/")),
        _ => None,
    }
}

impl Node {
    fn has(&self, is_it: impl Fn(Field, &str) -> bool + Copy) -> bool {
        match self {
            Self::Is(field, value) => is_it(*field, value),
            Self::Not(inner) => inner.has(is_it),
            Self::All(parts) | Self::Any(parts) => parts.iter().any(|part| part.has(is_it)),
        }
    }

    fn holds(&self, subject: Subject<'_>, below: bool) -> bool {
        match self {
            Self::Is(field, value) => is(*field, value, subject, below),
            Self::Not(inner) => !inner.holds(subject, below),
            Self::All(parts) => parts.iter().all(|part| part.holds(subject, below)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(subject, below)),
        }
    }
}

fn is(field: Field, value: &str, subject: Subject<'_>, below: bool) -> bool {
    match (field, subject) {
        (Field::SubordinateResources, _) => true,
        (Field::EventFormatType, Subject::Event(_)) => value == "Event",
        (Field::EventFormatType, Subject::Report(_)) => value == "MetricReport",
        (Field::MetricReportDefinition, Subject::Report(uri)) => is_uri(value, uri),
        (Field::EventType, Subject::Report(_)) => value == "MetricReport",
        (Field::MetricReportDefinition, Subject::Event(_)) | (_, Subject::Report(_)) => false,
        (Field::EventType, Subject::Event(event)) => event.kind.word() == value,
        (Field::MessageId, Subject::Event(event)) => is_message(value, event),
        (Field::OriginResource, Subject::Event(event)) => is_origin(value, &event.origin, below),
        (Field::RegistryPrefix, Subject::Event(_)) => value == REGISTRY,
        (Field::ResourceType, Subject::Event(event)) => event.resource_type() == value,
        (Field::Severity, Subject::Event(event)) => Severity::of(value) == Some(event.severity()),
    }
}

fn is_uri(wanted: &str, uri: &str) -> bool {
    wanted.trim_end_matches('/') == uri
}

fn is_origin(wanted: &str, origin: &str, below: bool) -> bool {
    let wanted = wanted.trim_end_matches('/');
    let rest = origin.strip_prefix(wanted);
    rest.is_some_and(|rest| rest.is_empty() || (below && rest.starts_with('/')))
}

/// Whether a text names an event's message: with registry and version, with the registry, or alone.
fn is_message(wanted: &str, event: &Event) -> bool {
    let name = wanted.rsplit('.').next().unwrap_or_default();
    let id = event.message_id();
    name == event.name
        && (wanted == id || wanted == name || *wanted == format!("{REGISTRY}.{name}"))
}

/// What stands behind the `?` of a stream's URI.
///
/// # Errors
/// 400 if the filter can't be read or is not supported, 501 for other options of queries.
pub fn of_query(raw: &str) -> Result<Option<Filter>, Refusal> {
    let mut found = None;
    for (name, value) in crate::query::options(raw)? {
        match name.as_str() {
            "$filter" if found.is_some() => {
                return Err(Refusal::base(&Base::QUERY_COMBINATION, &[]));
            }
            "$filter" => {
                let wrong = || Refusal::base(&Base::QUERY_FORMAT, &[value.as_str(), "$filter"]);
                found = Some(Filter::read(&value).ok_or_else(wrong)?);
            }
            "only" => return Err(Refusal::base(&Base::QUERY_NOT_HERE, &[])),
            name if name.starts_with('$') => {
                return Err(Refusal::base(&Base::QUERY_UNSUPPORTED, &[name]));
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Which events a subscription wants: those that each of its lists has. An empty list has all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// The filter of a stream.
    pub filter: Option<Filter>,
    /// Registries of messages.
    pub registries: Vec<String>,
    /// Types of resources.
    pub types: Vec<String>,
    /// Messages.
    pub messages: Vec<String>,
    /// How grave.
    pub severities: Vec<Severity>,
    /// Resources that events are about.
    pub origins: Vec<String>,
    /// Whether what is below these counts, too.
    pub with_subordinates: bool,
}

impl Wanted {
    /// Whether reports of metrics may be wanted.
    pub fn asks_for_reports(&self) -> bool {
        self.filter.as_ref().is_some_and(Filter::asks_for_reports)
    }

    /// Whether it is wanted.
    pub fn has(&self, subject: Subject<'_>) -> bool {
        let filtered = match (&self.filter, subject) {
            (Some(filter), subject) => filter.wants(subject),
            (None, Subject::Event(_)) => true,
            (None, Subject::Report(_)) => false,
        };
        let Subject::Event(event) = subject else { return filtered };
        let any = |all: &[String], is_it: &dyn Fn(&str) -> bool| {
            all.is_empty() || all.iter().any(|one| is_it(one))
        };
        filtered
            && any(&self.registries, &|own| own == REGISTRY)
            && any(&self.types, &|own| own == event.resource_type())
            && any(&self.messages, &|own| is_message(own, event))
            && any(&self.origins, &|own| is_origin(own, &event.origin, self.with_subordinates))
            && (self.severities.is_empty() || self.severities.contains(&event.severity()))
    }
}
