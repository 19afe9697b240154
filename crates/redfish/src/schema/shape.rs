//! The shape of our own objects, read from the JSON Schema that is made of their types.
//!
//! Only what our types use is understood: objects, enumerations, lists, texts, numbers, yes or no,
//! dates and links. [`Shape::read`] gives nothing for anything else; a test reads them all.

use serde_json::{Map, Value};

/// What a property holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A primitive type, as CSDL names it.
    Plain(&'static str),
    /// A definition of the same shape.
    Own(String),
    /// A link to any resource.
    Link,
}

/// A property of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Property {
    /// Its name.
    pub name: String,
    /// What it means.
    pub about: String,
    /// What it holds, or each of its members.
    pub kind: Kind,
    /// Whether it is a list.
    pub is_list: bool,
    /// Whether it may be null.
    pub may_be_null: bool,
    /// Whether members of it may be null, if it is a list.
    pub holds_null: bool,
    /// The least number.
    pub minimum: Option<i64>,
}

/// What a definition is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Definition {
    /// An object's properties.
    Object(Vec<Property>),
    /// The members of an enumeration, with what they mean.
    Words(Vec<(String, String)>),
}

/// An object, and all that it holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// What the object means.
    pub about: String,
    /// Its own properties.
    pub properties: Vec<Property>,
    /// What these hold, by name: with what it means.
    pub definitions: Vec<(String, String, Definition)>,
}

/// What a schema says that it describes, in one line.
fn about(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn text<'a>(schema: &'a Value, key: &str) -> Option<&'a str> {
    schema.get(key).and_then(Value::as_str)
}

/// Whether an object is `{"@odata.id": URI}`.
fn is_link(schema: &Value) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.is_some_and(|all| all.len() == 1 && all.contains_key("@odata.id"))
}

impl Shape {
    /// Reads an object's schema.
    pub fn read(schema: &Value) -> Option<Self> {
        let none = Map::new();
        let defined = schema.get("$defs").map_or(Some(&none), Value::as_object)?;
        let mut definitions = Vec::new();
        for (name, own) in defined.iter().filter(|(_, own)| !is_link(own)) {
            definitions.push((name.clone(), about(own), definition(own, defined)?));
        }
        let properties = properties(schema, defined)?;
        Some(Self { about: about(schema), properties, definitions })
    }
}

fn definition(schema: &Value, defined: &Map<String, Value>) -> Option<Definition> {
    if schema.get("properties").is_some() {
        return properties(schema, defined).map(Definition::Object);
    }
    let mut words = Vec::new();
    if let Some(plain) = schema.get("enum").and_then(Value::as_array) {
        for word in plain {
            words.push((word.as_str()?.to_owned(), String::new()));
        }
    }
    if let Some(described) = schema.get("oneOf").and_then(Value::as_array) {
        for one in described {
            match one.get("enum").and_then(Value::as_array) {
                Some(plain) => {
                    for word in plain {
                        words.push((word.as_str()?.to_owned(), String::new()));
                    }
                }
                None => words.push((text(one, "const")?.to_owned(), about(one))),
            }
        }
    }
    (!words.is_empty()).then_some(Definition::Words(words))
}

fn properties(schema: &Value, defined: &Map<String, Value>) -> Option<Vec<Property>> {
    let all = schema.get("properties")?.as_object()?;
    let own = all.iter().filter(|(name, _)| !name.contains('@'));
    own.map(|(name, schema)| property(name, schema, defined)).collect()
}

fn property(name: &str, schema: &Value, defined: &Map<String, Value>) -> Option<Property> {
    let (inner, may_be_null) = without_null(schema)?;
    let (item, is_list, holds_null) = match inner.get("items") {
        Some(item) => {
            let (item, holds_null) = without_null(item)?;
            (item, true, holds_null)
        }
        None => (inner, false, false),
    };
    Some(Property {
        name: name.to_owned(),
        about: about(schema),
        kind: kind(item, defined)?,
        is_list,
        may_be_null,
        holds_null,
        minimum: item.get("minimum").and_then(Value::as_i64),
    })
}

/// The schema of what is not null, and whether null may be.
fn without_null(schema: &Value) -> Option<(&Value, bool)> {
    let is_null = |one: &&Value| text(one, "type") == Some("null");
    if let Some(any) = schema.get("anyOf").and_then(Value::as_array) {
        let mut others = any.iter().filter(|one| !is_null(one));
        let first = others.next()?;
        return others.next().is_none().then_some((first, any.iter().any(|one| is_null(&one))));
    }
    let types = schema.get("type").and_then(Value::as_array);
    Some((schema, types.is_some_and(|types| types.iter().any(|one| one == "null"))))
}

/// The type of a value that is no list.
fn kind(schema: &Value, defined: &Map<String, Value>) -> Option<Kind> {
    if let Some(name) = text(schema, "$ref").and_then(|to| to.strip_prefix("#/$defs/")) {
        let known = defined.get(name)?;
        return Some(if is_link(known) { Kind::Link } else { Kind::Own(name.to_owned()) });
    }
    let named = match schema.get("type")? {
        Value::Array(types) => types.iter().filter_map(Value::as_str).find(|one| *one != "null")?,
        one => one.as_str()?,
    };
    Some(Kind::Plain(match (named, text(schema, "format")) {
        ("string", Some("date-time")) => "Edm.DateTimeOffset",
        ("string", Some("uuid")) => "Edm.Guid",
        ("string", _) => "Edm.String",
        ("integer", _) => "Edm.Int64",
        ("number", _) => "Edm.Decimal",
        ("boolean", _) => "Edm.Boolean",
        _ => return None,
    }))
}
