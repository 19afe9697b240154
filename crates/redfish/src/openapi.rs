//! The interface as an OpenAPI document (OpenAPI Specification 3.1.1; DSP0266, "OpenAPI schema
//! support"), made of the table of routes, the table of bodies and our own objects' types.
//!
//! Of standard resources it says their type, and where that is published; all of ours it says in
//! full. `x-palisade-privilege` is the privilege that a request needs.

mod operation;
mod parts;

use crate::routes::{ROUTES, Route};
use serde_json::{Map, Value, json};

/// The version of the specification.
const OPENAPI: &str = "3.1.1";

/// The version of what is described.
const VERSION: &str = "1.0.0";

/// The document.
pub fn document() -> Value {
    let paths = ROUTES.iter().map(|route| (route.uri.to_owned(), path(route)));
    json!({
        "openapi": OPENAPI,
        "info": {
            "title": "Palisade",
            "version": VERSION,
            "summary": "The management interface: Redfish, with Swordfish's storage model.",
        },
        "servers": [{"url": "/"}],
        "security": [{"Basic": []}, {"Session": []}],
        "paths": paths.collect::<Map<_, _>>(),
        "components": {
            "schemas": parts::schemas(),
            "parameters": parts::parameters(),
            "headers": parts::headers(),
            "responses": parts::responses(),
            "securitySchemes": {
                "Basic": {"type": "http", "scheme": "basic"},
                "Session": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
            },
        },
    })
}

/// What can be done at a URI.
fn path(route: &Route) -> Value {
    let mut path = Map::new();
    let ids: Vec<Value> = route.uri.split('/').filter_map(identifier).collect();
    if !ids.is_empty() {
        path.insert("parameters".to_owned(), Value::Array(ids));
    }
    for (method, privilege) in route.methods {
        for word in crate::privileges::methods(*method) {
            let operation = operation::operation(route, (*method, *word), *privilege);
            path.insert(word.to_ascii_lowercase(), operation);
        }
    }
    Value::Object(path)
}

/// The parameter that a part of a URI stands for.
fn identifier(part: &str) -> Option<Value> {
    let name = part.strip_prefix('{')?.strip_suffix('}')?;
    Some(json!({
        "name": name,
        "in": "path",
        "required": true,
        "schema": {"type": "string", "minLength": 1},
    }))
}

#[cfg(test)]
#[path = "openapi_tests.rs"]
mod tests;
