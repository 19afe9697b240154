//! JSON Schemas of our own objects and actions (DSP0266, "JSON Schema").

use super::actions::{self, Action};
use super::shape::{Definition, Kind, Property, Shape};
use crate::change::bodies::{self, Takes};
use serde_json::{Map, Value, json};

/// Annotations that any object may have.
const ANNOTATIONS: &str =
    "^([a-zA-Z_][a-zA-Z0-9_]*)?@(odata|Redfish|Message)\\.[a-zA-Z_][a-zA-Z0-9_]*$";

/// What an annotation may be.
const ANY: [&str; 7] = ["array", "boolean", "integer", "number", "null", "object", "string"];

/// The schema of what extends `of`, which is found at `uri`.
pub fn file(of: &str, uri: &str, shape: Option<&Shape>) -> Value {
    let mut definitions = Map::new();
    let mut top = json!({
        "$id": uri,
        "$schema": "http://redfish.dmtf.org/schemas/v1/redfish-schema-v1.json",
        "title": format!("#Palisade{of}.v1_0_0.{of}"),
        "owningEntity": "Palisade",
        "language": "en",
    });
    if let Some(shape) = shape {
        definitions.insert(of.to_owned(), object(&shape.about, &shape.properties));
        for (name, about, definition) in &shape.definitions {
            let own = match definition {
                Definition::Object(properties) => object(about, properties),
                Definition::Words(words) => enumeration(about, words),
            };
            definitions.insert(name.clone(), own);
        }
        insert(&mut top, "$ref", json!(format!("#/definitions/{of}")));
    }
    for own in actions::on(of) {
        definitions.insert(own.name.to_owned(), action(&own));
        for parameter in &own.parameters {
            if let Takes::Word(name, words) = parameter.takes {
                definitions.insert(name.to_owned(), enumeration(parameter.about, words));
            }
        }
    }
    insert(&mut top, "definitions", Value::Object(definitions));
    top
}

fn insert(object: &mut Value, key: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}

fn object(about: &str, properties: &[Property]) -> Value {
    let own = properties.iter().map(|own| (own.name.clone(), property(own)));
    json!({
        "type": "object",
        "description": about,
        "longDescription": about,
        "additionalProperties": false,
        "patternProperties": {ANNOTATIONS: {"type": ANY}},
        "properties": own.collect::<Map<_, _>>(),
    })
}

/// The schema of a value of a primitive type of CSDL.
fn plain(kind: &str) -> (&'static str, Option<&'static str>) {
    match kind {
        "Edm.Int64" => ("integer", None),
        "Edm.Decimal" => ("number", None),
        "Edm.Boolean" => ("boolean", None),
        "Edm.DateTimeOffset" => ("string", Some("date-time")),
        "Edm.Guid" => ("string", Some("uuid")),
        _ => ("string", None),
    }
}

fn reference(to: &str, may_be_null: bool) -> Value {
    match may_be_null {
        true => json!({"anyOf": [{"$ref": to}, {"type": "null"}]}),
        false => json!({"$ref": to}),
    }
}

const LINK: &str = "http://redfish.dmtf.org/schemas/v1/odata-v4.json#/definitions/idRef";

fn value(kind: &Kind, may_be_null: bool) -> Value {
    match kind {
        Kind::Own(name) => reference(&format!("#/definitions/{name}"), may_be_null),
        Kind::Link => reference(LINK, may_be_null),
        Kind::Plain(kind) => {
            let (name, format) = plain(kind);
            let name = if may_be_null { json!([name, "null"]) } else { json!(name) };
            let mut own = json!({"type": name});
            if let Some(format) = format {
                insert(&mut own, "format", json!(format));
            }
            own
        }
    }
}

fn property(own: &Property) -> Value {
    let mut schema = match own.is_list {
        true => json!({"type": "array", "items": value(&own.kind, own.holds_null)}),
        false => value(&own.kind, own.may_be_null),
    };
    if let Some(minimum) = own.minimum.filter(|_| !own.is_list) {
        insert(&mut schema, "minimum", json!(minimum));
    }
    insert(&mut schema, "description", json!(own.about));
    insert(&mut schema, "longDescription", json!(own.about));
    insert(&mut schema, "readonly", json!(true));
    schema
}

fn enumeration<T: AsRef<str>>(about: &str, words: &[(T, T)]) -> Value {
    let names: Vec<&str> = words.iter().map(|(name, _)| name.as_ref()).collect();
    let described = words.iter().map(|(name, about)| (name.as_ref().to_owned(), about.as_ref()));
    let described: Map<_, _> = described.map(|(name, about)| (name, json!(about))).collect();
    json!({
        "type": "string",
        "description": about,
        "longDescription": about,
        "enum": names,
        "enumDescriptions": described,
    })
}

fn action(own: &Action) -> Value {
    let parameters = own.parameters.iter().map(|one| (one.name.to_owned(), parameter(one)));
    json!({
        "type": "object",
        "description": own.about,
        "longDescription": own.about,
        "additionalProperties": false,
        "parameters": parameters.collect::<Map<_, _>>(),
        "properties": {
            "target": {"type": "string", "format": "uri-reference"},
            "title": {"type": "string"},
        },
    })
}

/// The schema of what a parameter takes.
fn taken(takes: &Takes) -> Value {
    match *takes {
        Takes::Text | Takes::Uri | Takes::Address | Takes::MailUri | Takes::Secret => {
            value(&Kind::Plain("Edm.String"), false)
        }
        Takes::Whole(..) => value(&Kind::Plain("Edm.Int64"), false),
        Takes::Truth => value(&Kind::Plain("Edm.Boolean"), false),
        Takes::Word(name, _) => json!({"$ref": format!("#/definitions/{name}")}),
        Takes::Link(_) => json!({"$ref": LINK}),
        Takes::Object(_) | Takes::Headers => json!({"type": "object"}),
        Takes::List(of, ..) => json!({"type": "array", "items": taken(of)}),
    }
}

fn parameter(own: &bodies::Property) -> Value {
    let mut schema = taken(&own.takes);
    insert(&mut schema, "description", json!(own.about));
    insert(&mut schema, "longDescription", json!(own.about));
    if own.must {
        insert(&mut schema, "requiredParameter", json!(true));
    }
    schema
}
