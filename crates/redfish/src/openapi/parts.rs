//! What operations refer to: schemas, parameters, headers, and answers that say why not.

use crate::query::MOST_LEVELS;
use crate::routes::{ROUTES, Route};
use crate::schema;
use serde_json::{Map, Value, json};

/// A reference to a component.
pub fn reference(kind: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{kind}/{name}")})
}

/// The name of a row's schema, such as `StoragePool`.
pub fn schema_name(route: &Route) -> &'static str {
    route.schema.rsplit('.').next().unwrap_or_default()
}

/// What every resource has. A query may leave out all else.
fn resource(odata_type: Value, about: String, published: String) -> Value {
    json!({
        "type": "object",
        "description": about,
        "externalDocs": {"url": published},
        "required": ["@odata.id", "@odata.type"],
        "properties": {
            "@odata.id": {"type": "string", "format": "uri-reference"},
            "@odata.type": odata_type,
            "@odata.etag": {"type": "string", "pattern": "^W/\"[0-9a-f]+\"$"},
            "Id": {"type": "string"},
            "Name": {"type": "string"},
        },
    })
}

/// Schemas of resources, of our own objects, and of errors.
pub fn schemas() -> Value {
    let mut all = Map::new();
    let own: Vec<(&str, Value)> = schema::of_ours();
    for route in ROUTES.iter().filter(|route| !route.schema.is_empty()) {
        let name = schema_name(route);
        if name.ends_with("Collection") || all.contains_key(name) {
            continue;
        }
        let about = format!("A resource of the type {}.", route.schema);
        let mut schema =
            resource(json!({"const": route.schema}), about, schema::published_json(route));
        if own.iter().any(|(of, _)| *of == name) {
            let palisade = reference("schemas", &format!("Palisade{name}"));
            let oem = json!({"type": "object", "properties": {"Palisade": palisade}});
            if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
                properties.insert("Oem".to_owned(), oem);
            }
        }
        all.insert(name.to_owned(), schema);
    }
    for (of, schema) in own {
        add_own(of, schema, &mut all);
    }
    let text = json!({"type": "string"});
    let published = "http://redfish.dmtf.org/schemas/v1/redfish-schema-v1.json".to_owned();
    let mut collection = resource(text.clone(), "A collection.".to_owned(), published.clone());
    if let Some(own) = collection.get_mut("properties").and_then(Value::as_object_mut) {
        let member = json!({"type": "object", "required": ["@odata.id"]});
        own.insert("Members".to_owned(), json!({"type": "array", "items": member}));
        own.insert("Members@odata.count".to_owned(), json!({"type": "integer", "minimum": 0}));
    }
    all.insert("Collection".to_owned(), collection);
    let made = resource(text, "A resource that was made.".to_owned(), published);
    all.insert("Made".to_owned(), made);
    all.insert("Error".to_owned(), error());
    Value::Object(all)
}

/// One of our own objects, with those that it holds as components of their own.
fn add_own(of: &str, mut schema: Value, all: &mut Map<String, Value>) {
    let definitions = schema.as_object_mut().and_then(|own| own.remove("$defs"));
    let mut add = |name: String, mut schema: Value| {
        adapt(of, &mut schema);
        all.insert(name, schema);
    };
    if let Some(Value::Object(definitions)) = definitions {
        for (name, schema) in definitions {
            add(format!("Palisade{of}.{name}"), schema);
        }
    }
    add(format!("Palisade{of}"), schema);
}

/// References lead to components. Nothing is required, as a query may leave it out.
fn adapt(of: &str, schema: &mut Value) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(|one| adapt(of, one)),
        Value::Object(own) => {
            own.remove("$schema");
            own.retain(|key, value| key != "required" || !value.is_array());
            if let Some(Value::String(to)) = own.get_mut("$ref")
                && let Some(name) = to.strip_prefix("#/$defs/")
            {
                *to = format!("#/components/schemas/Palisade{of}.{name}");
            }
            own.values_mut().for_each(|one| adapt(of, one));
        }
        _ => {}
    }
}

/// The body of a refusal (DSP0266, "Error responses").
fn error() -> Value {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let message = json!({
        "type": "object",
        "required": ["@odata.type", "MessageId", "Message", "Resolution"],
        "properties": {
            "@odata.type": {"type": "string"},
            "MessageId": {"type": "string", "pattern": "^(Base|Palisade)\\.[0-9.]+\\.[A-Za-z]+$"},
            "Message": {"type": "string"},
            "MessageArgs": texts,
            "MessageSeverity": {"enum": ["OK", "Warning", "Critical"]},
            "Resolution": {"type": "string"},
            "RelatedProperties": texts,
        },
    });
    json!({
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["code", "message", "@Message.ExtendedInfo"],
                "properties": {
                    "code": {"type": "string"},
                    "message": {"type": "string"},
                    "@Message.ExtendedInfo": {"type": "array", "minItems": 1, "items": message},
                },
            },
            "Plan": {"type": "object", "description": "What would be done and lost."},
            "Token": {"type": "string", "description": "Confirms it, in Palisade-Confirm."},
            "Expires": {"type": "string", "format": "date-time"},
        },
    })
}

fn query(name: &str, about: &str, schema: Value) -> Value {
    json!({"name": name, "in": "query", "description": about, "schema": schema})
}

fn header(name: &str, about: &str, schema: Value) -> Value {
    json!({"name": name, "in": "header", "description": about, "schema": schema})
}

/// Parameters of queries, and headers of requests.
pub fn parameters() -> Value {
    let expand = format!("^[*.~](\\(\\$levels=[1-{MOST_LEVELS}]\\))?$");
    let number = json!({"type": "integer", "minimum": 0, "maximum": u64::MAX});
    let text = json!({"type": "string", "minLength": 1});
    let mut only = query(
        "only",
        "Tells the one member of a collection instead of it. It has no value and goes with no \
         other query.",
        json!({"type": "string", "maxLength": 0}),
    );
    if let Some(only) = only.as_object_mut() {
        only.insert("allowEmptyValue".to_owned(), Value::Bool(true));
    }
    json!({
        "Expand": query(
            "$expand",
            "Tells resources in the place of links: all, those not under Links, or those there.",
            json!({"type": "string", "pattern": expand}),
        ),
        "Select": query(
            "$select",
            "Which properties are told: paths, with commas between them.",
            text.clone(),
        ),
        "Filter": query(
            "$filter",
            "Which members are told: an expression of DSP0266.",
            text.clone(),
        ),
        "Top": query("$top", "How many members are told at most.", number.clone()),
        "Skip": query("$skip", "How many members are left out first.", number),
        "Only": only,
        "If-Match": header(
            "If-Match",
            "ETags, one of which the resource must have; or `*`.",
            text.clone(),
        ),
        "If-None-Match": header(
            "If-None-Match",
            "ETags that the resource must not have.",
            text.clone(),
        ),
        "Palisade-Plan": header(
            "Palisade-Plan",
            "Asks what the request would do; nothing is done.",
            json!({"const": "only"}),
        ),
        "Palisade-Confirm": header(
            "Palisade-Confirm",
            "The token of a plan: confirms a request that destroys data.",
            text.clone(),
        ),
        "Prefer": header(
            "Prefer",
            "With `respond-async` the answer is 202 at once; other preferences count for nothing.",
            json!({"type": "string"}),
        ),
        "Last-Event-ID": header(
            "Last-Event-ID",
            "The identifier of the last event that the client was told: it is told all that came \
             since.",
            text,
        ),
    })
}

/// Headers of answers.
pub fn headers() -> Value {
    let header = |about: &str, schema: Value| json!({"description": about, "schema": schema});
    let text = || json!({"type": "string"});
    let uri = || json!({"type": "string", "format": "uri-reference"});
    json!({
        "Allow": header("The methods that there are.", text()),
        "ETag": header("What tells this state of the resource from others.", text()),
        "Link": header("Where the schema is.", text()),
        "Location": header("Where what was made is, or what goes on.", uri()),
        "Retry-After": header("In how many seconds it may be tried again.", text()),
        "WWW-Authenticate": header("How one can log in.", text()),
        "X-Auth-Token": header("What requests of the session send, in the same header.", text()),
    })
}

/// Statuses, and why they are answered.
const REFUSALS: [(u16, &str, &str); 15] = [
    (400, "BadRequest", "The request is wrong."),
    (401, "Unauthorized", "One has to log in."),
    (403, "Forbidden", "The account may not do it, or it must be confirmed by the plan's token."),
    (404, "NotFound", "There is nothing at the URI."),
    (408, "Timeout", "The body did not come in time."),
    (409, "Conflict", "It can't be done as things are."),
    (412, "PreconditionFailed", "The resource, or the plan, is another one by now."),
    (413, "TooLarge", "The body is too large."),
    (414, "TooLong", "The query is too long."),
    (415, "UnsupportedType", "The body is not JSON."),
    (429, "TooMany", "Too many attempts to log in."),
    (431, "HeadersTooLarge", "The headers are too large."),
    (501, "NotImplemented", "The query is none that is known."),
    (503, "Unavailable", "The daemon serves as many clients as it can."),
    (507, "TooMuch", "The answer would be too large, or there is no room."),
];

/// The name of the component that says why a request was refused; a HEAD is told nothing else.
pub fn named(status: u16, is_head: bool) -> String {
    let name = REFUSALS.iter().find(|(own, ..)| *own == status).map_or("BadRequest", |own| own.1);
    if is_head { format!("{name}.HEAD") } else { name.to_owned() }
}

/// Answers that say why not.
pub fn responses() -> Value {
    let mut all = Map::new();
    for (status, _, about) in REFUSALS {
        let headers: &[&str] = match status {
            401 => &["WWW-Authenticate"],
            429 | 503 => &["Retry-After"],
            _ => &[],
        };
        let headers = headers.iter().map(|name| ((*name).to_owned(), reference("headers", name)));
        let headers = Value::Object(headers.collect::<Map<_, _>>());
        let told = json!({"description": about, "headers": headers});
        if !matches!(status, 409 | 415) {
            // What only changes are answered.
            all.insert(named(status, true), told.clone());
        }
        let mut whole = told;
        if let Some(whole) = whole.as_object_mut() {
            let schema = reference("schemas", "Error");
            whole.insert("content".to_owned(), json!({"application/json": {"schema": schema}}));
        }
        all.insert(named(status, false), whole);
    }
    Value::Object(all)
}
