//! What can be done at a URI: an operation with its parameters, body and answers.

use super::parts::{self, reference};
use crate::change::action_name;
use crate::change::bodies::{self, Body, Property, Takes};
use crate::privileges;
use crate::routes::{Method, Privilege, Resource, Route};
use serde_json::{Map, Value, json};

/// Answers that any request can have.
const ANY: [u16; 6] = [400, 408, 412, 413, 431, 503];

/// Answers that a request can have that is a login, or for which one has to log in.
const CLOSED: [u16; 3] = [401, 403, 429];

/// What a row answers a GET with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Collection,
    Resource,
    /// JSON that is no resource.
    Json,
    Xml,
    Yaml,
    Text,
    /// Events, without an end.
    Stream,
}

fn kind(route: &Route) -> Kind {
    match route.schema {
        "" if matches!(route.resource, Resource::Metadata | Resource::CsdlFile) => Kind::Xml,
        "" if route.resource == Resource::OpenApiYaml => Kind::Yaml,
        "" if route.resource == Resource::Metrics => Kind::Text,
        "" if route.resource == Resource::EventStream => Kind::Stream,
        "" => Kind::Json,
        schema if schema.ends_with("Collection") => Kind::Collection,
        _ => Kind::Resource,
    }
}

/// An operation: `word` is the method as HTTP has it.
pub fn operation(
    route: &Route,
    (method, word): (Method, &'static str),
    privilege: Privilege,
) -> Value {
    let mut own = json!({
        "operationId": format!("{}{:?}", word.to_ascii_lowercase(), route.resource),
        "summary": summary(route, method),
        "x-palisade-privilege": privileges::name(privilege),
        "parameters": parameters(route, method),
        "responses": responses(route, (method, word), privilege),
    });
    let Some(into) = own.as_object_mut() else { return own };
    if privilege == Privilege::Nobody {
        into.insert("security".to_owned(), json!([]));
    }
    let forms: Vec<&Body> = bodies::of(method, route.resource).collect();
    if !forms.is_empty() {
        let is_needed = forms.iter().all(|body| body.properties.iter().any(|own| own.must));
        let body = json!({
            "required": is_needed,
            "content": {"application/json": {"schema": schema_of(&forms)}},
        });
        into.insert("requestBody".to_owned(), body);
    }
    own
}

fn summary(route: &Route, method: Method) -> String {
    let mut forms = bodies::of(method, route.resource);
    match (forms.next(), method) {
        (Some(body), _) if action_name(route.resource).is_some() => body.about.to_owned(),
        (Some(body), _) => {
            let others = forms.filter(|other| other.about != body.about).map(|other| other.about);
            std::iter::once(body.about).chain(others).collect::<Vec<_>>().join(" Or: ")
        }
        (None, Method::Delete) => "Deletes it.".to_owned(),
        (None, _) => "Reads it.".to_owned(),
    }
}

fn parameters(route: &Route, method: Method) -> Vec<Value> {
    let names: &[&str] = match (method, kind(route)) {
        (Method::Get, Kind::Collection) => {
            &["Expand", "Select", "Filter", "Top", "Skip", "Only", "If-Match", "If-None-Match"]
        }
        (Method::Get, Kind::Resource) => &["Expand", "Select", "If-Match", "If-None-Match"],
        (Method::Get, Kind::Stream) => &["Filter", "Last-Event-ID"],
        (Method::Get, _) => &[],
        _ => &["If-Match", "If-None-Match", "Palisade-Plan", "Palisade-Confirm", "Prefer"],
    };
    names.iter().map(|name| reference("parameters", name)).collect()
}

/// The statuses that answer a request, but for those of success.
fn refusals(route: &Route, method: Method, privilege: Privilege) -> Vec<u16> {
    let mut all = ANY.to_vec();
    let is_login = (route.resource, method) == (Resource::Sessions, Method::Post);
    if privilege != Privilege::Nobody || is_login {
        all.extend(CLOSED);
    }
    if route.uri.contains('{') {
        all.push(404);
    }
    match (method, kind(route)) {
        (Method::Get, Kind::Collection | Kind::Resource) => all.extend([414, 501, 507]),
        (Method::Get, _) => all.extend([414, 501]),
        // A link of the body may lead nowhere: that is 400.
        _ => all.extend([403, 409, 415, 507]),
    }
    all.sort_unstable();
    all.dedup();
    all
}

fn responses(route: &Route, (method, word): (Method, &'static str), privilege: Privilege) -> Value {
    let is_head = word == "HEAD";
    let mut all = Map::new();
    for status in refusals(route, method, privilege) {
        let name = parts::named(status, is_head);
        all.insert(status.to_string(), reference("responses", &name));
    }
    let mut put = |status: u16, response: Value| drop(all.insert(status.to_string(), response));
    match (method, kind(route)) {
        (Method::Get, kind) => {
            put(200, read(route, kind, is_head));
            if matches!(kind, Kind::Collection | Kind::Resource) {
                put(304, json!({"description": "It is as it was.", "headers": headers(&["ETag"])}));
            }
        }
        (Method::Post, _) if action_name(route.resource).is_none() => {
            put(201, made(route.resource));
            put(200, object("What would be done, if only that was asked for."));
            put(202, later());
        }
        _ => {
            put(200, object("What came of it, or would be done if only that was asked for."));
            put(202, later());
            put(204, done());
        }
    }
    Value::Object(all)
}

fn headers(names: &[&str]) -> Value {
    let header = |name: &&str| ((*name).to_owned(), reference("headers", name));
    Value::Object(names.iter().map(header).collect::<Map<_, _>>())
}

fn json_content(schema: Value) -> Value {
    json!({"application/json": {"schema": schema}})
}

/// What a GET answers.
fn read(route: &Route, kind: Kind, is_head: bool) -> Value {
    let content = match kind {
        Kind::Collection => json_content(reference("schemas", "Collection")),
        Kind::Resource => json_content(reference("schemas", parts::schema_name(route))),
        Kind::Json => json_content(json!({"type": "object"})),
        Kind::Xml => json!({"application/xml": {"schema": {"type": "string"}}}),
        Kind::Text => json!({"text/plain": {"schema": {"type": "string"}}}),
        Kind::Yaml => json!({"application/yaml": {"schema": {"type": "object"}}}),
        Kind::Stream => json!({"text/event-stream": {"schema": {"type": "string"}}}),
    };
    let names: &[&str] = match kind {
        Kind::Collection | Kind::Resource => &["Allow", "ETag", "Link"],
        Kind::Json | Kind::Xml | Kind::Yaml | Kind::Text | Kind::Stream => &["Allow"],
    };
    let mut response = json!({"description": "It.", "headers": headers(names)});
    if let Some(response) = response.as_object_mut().filter(|_| !is_head) {
        response.insert("content".to_owned(), content);
    }
    response
}

fn made(resource: Resource) -> Value {
    let names: &[&str] = match resource {
        Resource::Sessions => &["Location", "ETag", "X-Auth-Token"],
        _ => &["Location", "ETag"],
    };
    json!({
        "description": "What was made.",
        "headers": headers(names),
        "content": json_content(reference("schemas", "Made")),
    })
}

fn done() -> Value {
    json!({
        "description": "It is done, or has begun as a job; there is nothing else to tell.",
        "headers": headers(&["Location"]),
    })
}

fn later() -> Value {
    json!({
        "description": "It goes on; Location is where its end can be waited for.",
        "headers": headers(&["Location"]),
        "content": json_content(json!({"type": "object"})),
    })
}

fn object(about: &str) -> Value {
    json!({
        "description": about,
        "headers": headers(&["ETag"]),
        "content": json_content(json!({"type": "object"})),
    })
}

/// The schema of one of several bodies.
fn schema_of(forms: &[&Body]) -> Value {
    match forms {
        [one] => object_of(one.properties),
        several => {
            let form = |body: &&Body| {
                let mut schema = object_of(body.properties);
                put(&mut schema, "title", json!(body.form));
                put(&mut schema, "description", json!(body.about));
                schema
            };
            json!({"anyOf": several.iter().map(form).collect::<Vec<_>>()})
        }
    }
}

fn put(schema: &mut Value, key: &str, value: Value) {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert(key.to_owned(), value);
    }
}

fn object_of(properties: &[Property]) -> Value {
    let property = |own: &Property| {
        let mut schema = value_of(&own.takes);
        put(&mut schema, "description", json!(own.about));
        (own.name.to_owned(), schema)
    };
    let needed = properties.iter().filter(|own| own.must).map(|own| own.name);
    json!({
        "type": "object",
        "properties": properties.iter().map(property).collect::<Map<_, _>>(),
        "required": needed.collect::<Vec<_>>(),
        "additionalProperties": false,
    })
}

fn value_of(takes: &Takes) -> Value {
    match *takes {
        Takes::Text => json!({"type": "string"}),
        Takes::Uri => json!({"type": "string", "format": "uri", "pattern": "^https?://"}),
        Takes::Address => json!({"type": "string", "pattern": "^([^@ ]+@[^@ ]+)?$"}),
        Takes::MailUri => json!({"type": "string", "format": "uri", "pattern": "^mailto:[^@ ]+@"}),
        Takes::Headers => json!({
            "type": "array",
            "items": {"type": "object", "additionalProperties": {"type": "string"}},
            "writeOnly": true,
        }),
        Takes::Secret => json!({"type": "string", "format": "password"}),
        Takes::Word(_, words) => {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            json!({"type": "string", "enum": words})
        }
        Takes::Whole(from, to) => json!({"type": "integer", "minimum": from, "maximum": to}),
        Takes::Truth => json!({"type": "boolean"}),
        Takes::Link(_) => json!({
            "type": "object",
            "properties": {"@odata.id": {"type": "string", "format": "uri-reference"}},
            "required": ["@odata.id"],
            "additionalProperties": false,
        }),
        Takes::List(of, least, most) => {
            json!({"type": "array", "items": value_of(of), "minItems": least, "maxItems": most})
        }
        Takes::Object(properties) => object_of(properties),
    }
}
