//! The table of bodies and the parser agree.

use super::*;
use crate::change::{self, Change};
use crate::error::Refusal;
use crate::routes::{self, ROUTES};
use serde_json::{Map, Value, json};

fn id(part: &str, form: &'static str) -> &'static str {
    match part {
        "{StoragePool}" => "aaaa-1",
        "{Volume}" => "volume-of-aaaa-1",
        "{FileSystem}" => "volume-of-aaaa-1",
        "{FileShare}" => "docs",
        "{Drive}" => "a",
        "{Job}" => "j1",
        "{Certificate}" => "1",
        "{ManagerAccount}" => "ana",
        "{EventDestination}" => "s1",
        "{Fabric}" => form,
        other => panic!("which {other} is there?"),
    }
}

fn uri(body: &Body) -> String {
    let part = |part: &str| match part.starts_with('{') {
        true => id(part, body.form).to_owned(),
        false => part.to_owned(),
    };
    let route = routes::of(body.resource).expect("has a route");
    route.uri.split('/').map(part).collect::<Vec<_>>().join("/")
}

fn parsed(body: &Body, text: &str) -> Result<Change, Refusal> {
    let found = routes::find(&uri(body)).expect("is found");
    change::parse(&change::tests::view(), &found, body.method, text.as_bytes())
}

/// A value that is right; with `all` also what may be left out.
fn right(takes: &Takes, all: bool) -> Value {
    match *takes {
        Takes::Text => json!("x"),
        Takes::Secret => json!("correct horse"),
        Takes::Uri => json!("https://receiver.example/events"),
        Takes::Address => json!("palisade@mail.example"),
        Takes::MailUri => json!("mailto:ana@mail.example"),
        Takes::Headers => json!([{"X-Key": "secret"}]),
        Takes::Word(_, words) => json!(words[0].0),
        Takes::Whole(from, _) => json!(from),
        Takes::Truth => json!(false),
        Takes::Link(kind) => {
            let uri = routes::of(kind).expect("has a route").uri;
            let uri: Vec<&str> =
                uri.split('/').map(|p| if p.starts_with('{') { id(p, "") } else { p }).collect();
            json!({"@odata.id": uri.join("/")})
        }
        Takes::List(of, least, _) => (0..least.max(1)).map(|_| right(of, all)).collect(),
        Takes::Object(properties) => {
            let wanted = properties.iter().filter(|own| all || own.must);
            let own = wanted.map(|own| (own.name.to_owned(), right(&own.takes, all)));
            Value::Object(own.collect::<Map<_, _>>())
        }
    }
}

/// Every property, with its place as a JSON pointer.
fn properties(of: &Takes, at: &str, found: &mut Vec<(String, Property)>) {
    match *of {
        Takes::Object(own) => {
            for property in own {
                let at = format!("{at}/{}", property.name);
                properties(&property.takes, &at, found);
                found.push((at, *property));
            }
        }
        Takes::List(of, ..) => properties(of, &format!("{at}/0"), found),
        _ => {}
    }
}

/// Every object's place, and that of every link.
fn objects(of: &Takes, at: &str, found: &mut Vec<String>) {
    match *of {
        Takes::Object(own) => {
            found.push(at.to_owned());
            own.iter().for_each(|own| objects(&own.takes, &format!("{at}/{}", own.name), found));
        }
        Takes::Link(_) => found.push(at.to_owned()),
        Takes::List(of, ..) => objects(of, &format!("{at}/0"), found),
        _ => {}
    }
}

/// JSON in which the property at a place is there twice.
fn doubled(value: &Value, at: &str, place: &str) -> String {
    match value {
        Value::Object(own) => {
            let one = |(name, value): (&String, &Value)| {
                let at = format!("{at}/{name}");
                let text = format!("{}:{}", json!(name), doubled(value, &at, place));
                if at == place { format!("{text},{text}") } else { text }
            };
            format!("{{{}}}", own.iter().map(one).collect::<Vec<_>>().join(","))
        }
        Value::Array(all) => {
            let one = |(number, value)| doubled(value, &format!("{at}/{number}"), place);
            format!("[{}]", all.iter().enumerate().map(one).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

/// Values that are wrong, and how each is refused.
fn wrong(takes: &Takes) -> Vec<(Value, &'static str)> {
    let mut all: Vec<(Value, &str)> = match *takes {
        Takes::Text
        | Takes::Uri
        | Takes::Address
        | Takes::MailUri
        | Takes::Secret
        | Takes::Word(..) => {
            vec![json!(7), json!(true), json!(["x"])]
        }
        Takes::Whole(..) => vec![json!("7"), json!(1.5), json!(false)],
        Takes::Truth => vec![json!("true"), json!(1), json!({})],
        Takes::Link(_) => vec![json!("/redfish/v1"), json!(7), json!([])],
        Takes::List(..) => vec![json!("x"), json!({}), json!(7)],
        Takes::Headers => vec![json!("x"), json!({}), json!(["x"]), json!([{"Host": "x"}])],
        Takes::Object(_) => vec![json!("x"), json!([]), json!(7)],
    }
    .into_iter()
    .chain([Value::Null])
    .map(|value| {
        (
            value,
            if matches!(takes, Takes::Secret | Takes::Headers) {
                "ValueError"
            } else {
                "ValueTypeError"
            },
        )
    })
    .collect();
    match *takes {
        Takes::Word(..) => all.push((json!("nonsense"), "ValueNotInList")),
        Takes::Uri => all.push((json!("ftp://receiver.example"), "ValueFormatError")),
        Takes::Address => all.push((json!("ana"), "ValueFormatError")),
        Takes::MailUri => all.push((json!("mailto:ana"), "ValueFormatError")),
        Takes::Whole(from, to) => {
            all.push((json!(-1), "ValueOutOfRange"));
            all.extend(from.checked_sub(1).map(|below| (json!(below), "ValueOutOfRange")));
            all.extend(to.checked_add(1).map(|above| (json!(above), "ValueOutOfRange")));
        }
        Takes::List(of, least, most) => {
            all.push((vec![right(of, true); most + 1].into(), "ArraySizeTooLong"));
            if least > 0 {
                all.push((vec![right(of, true); least - 1].into(), "ArraySizeTooShort"));
            }
        }
        _ => {}
    }
    all
}

/// How a request is refused: the message, and the property.
fn why(body: &Body, text: &str) -> (String, String) {
    let refusal = parsed(body, text).expect_err(text);
    let message = &refusal.messages[0];
    assert_eq!(refusal.status, 400, "{text}: {message:?}");
    let name = message.id.rsplit('.').next().unwrap_or_default();
    (name.to_owned(), message.related.first().cloned().unwrap_or_default())
}

/// The name of a message, which is another one for parameters of actions.
fn named(body: &Body, tail: &str) -> String {
    match (action_name(body.resource), tail) {
        (_, tail) if tail.starts_with("Array") => tail.to_owned(),
        (Some(_), tail) => format!("ActionParameter{tail}"),
        (None, tail) => format!("Property{tail}"),
    }
}

fn all_of(body: &Body) -> Takes {
    Takes::Object(body.properties)
}

#[test]
fn every_method_that_takes_a_body_has_a_row_and_no_other() {
    for route in ROUTES {
        for (method, _) in route.methods {
            let takes = matches!(method, Method::Post | Method::Patch);
            let rows = of(*method, route.resource).count();
            assert_eq!(rows > 0, takes, "{method:?} {}", route.uri);
        }
    }
    for body in BODIES {
        let route = routes::of(body.resource).expect("has a route");
        assert!(route.privilege(body.method).is_some(), "{} {:?}", route.uri, body.method);
        let forms = of(body.method, body.resource).count();
        assert_eq!(forms > 1, !body.form.is_empty(), "{}", route.uri);
        assert!(body.about.ends_with('.'));
    }
}

#[test]
fn what_the_table_has_is_taken() {
    for body in BODIES {
        for all in [false, true] {
            let value = right(&all_of(body), all);
            if body.method == Method::Patch && value == json!({}) {
                // A change of nothing is none.
                assert_eq!(why(body, "{}").0, "EmptyJSON");
                continue;
            }
            assert!(parsed(body, &value.to_string()).is_ok(), "{} {value}", uri(body));
        }
        let mut found = Vec::new();
        properties(&all_of(body), "", &mut found);
        for (at, property) in found {
            let Takes::Word(_, words) = property.takes else { continue };
            for (word, _) in words {
                let mut value = right(&all_of(body), false);
                let Some(place) = value.pointer_mut(&at) else { continue };
                *place = json!(word);
                let refusal = parsed(body, &value.to_string()).err();
                assert_eq!(refusal, None, "{} {value}", uri(body));
            }
        }
    }
}

#[test]
fn what_must_be_given_is_missed_by_name() {
    for body in BODIES {
        let mut found = Vec::new();
        properties(&all_of(body), "", &mut found);
        for (at, property) in found.into_iter().filter(|(_, property)| property.must) {
            let bare = right(&all_of(body), false);
            let is_there = bare.pointer(&at).is_some();
            // With all that may be given, it may be another form.
            let mut value = if is_there { bare } else { right(&all_of(body), true) };
            let (above, name) = at.rsplit_once('/').expect("is within something");
            let object = value.pointer_mut(above).and_then(Value::as_object_mut);
            object.expect(above).remove(name).expect(&at);
            let (message, place) = why(body, &value.to_string());
            if body.method == Method::Patch && value == json!({}) {
                assert_eq!(message, "EmptyJSON");
                continue;
            }
            // Of several forms, another one may be meant.
            if body.form.is_empty() || body.resource == Resource::Connections {
                assert_eq!(message, named(body, "Missing"), "{value}");
                // An object's property that must be given is missed where the object is.
                assert!(place.starts_with(&format!("#{at}")), "{place}: {value}");
            } else {
                assert_eq!(message, named(body, "Missing"), "{value} without {}", property.name);
            }
        }
    }
}

#[test]
fn what_is_wrong_is_refused_by_name() {
    for body in BODIES {
        let mut found = Vec::new();
        properties(&all_of(body), "", &mut found);
        for (at, property) in found {
            for (value, message) in wrong(&property.takes) {
                let mut whole = right(&all_of(body), true);
                *whole.pointer_mut(&at).expect(&at) = value.clone();
                let expected = (named(body, message), format!("#{at}"));
                let text = whole.to_string();
                assert_eq!(why(body, &text), expected, "{} {at}: {value}", uri(body));
            }
            if let Takes::List(of, ..) = property.takes {
                let at = format!("{at}/0");
                for (value, message) in wrong(of) {
                    let mut whole = right(&all_of(body), true);
                    *whole.pointer_mut(&at).expect(&at) = value.clone();
                    let expected = (named(body, message), format!("#{at}"));
                    let text = whole.to_string();
                    assert_eq!(why(body, &text), expected, "{} {at}: {value}", uri(body));
                }
            }
        }
    }
}

#[test]
fn what_is_doubled_is_refused_by_name() {
    for body in BODIES {
        let mut found = Vec::new();
        properties(&all_of(body), "", &mut found);
        for (at, _) in found {
            let text = doubled(&right(&all_of(body), true), "", &at);
            let expected = (named(body, "Duplicate"), format!("#{at}"));
            assert_eq!(why(body, &text), expected, "{} {text}", uri(body));
        }
    }
}

#[test]
fn what_the_table_has_not_is_refused_by_name() {
    for body in BODIES {
        let mut found = Vec::new();
        objects(&all_of(body), "", &mut found);
        for at in found {
            let mut value = right(&all_of(body), true);
            let object = value.pointer_mut(&at).and_then(Value::as_object_mut);
            object.expect(&at).insert("Extra".to_owned(), json!(1));
            let expected = (named(body, "Unknown"), format!("#{at}/Extra"));
            assert_eq!(why(body, &value.to_string()), expected, "{} {value}", uri(body));
        }
    }
}

#[test]
fn the_parameters_of_an_action_are_those_of_all_its_forms() {
    let names = |action| {
        let all = parameters(action);
        all.iter().map(|own| (own.name, own.must)).collect::<Vec<_>>()
    };
    assert_eq!(names("PalisadeStoragePool.FailDrive"), [("Drive", false), ("Slot", false)]);
    let replace = [("Slot", true), ("With", true), ("Overwrite", false)];
    assert_eq!(names("PalisadeStoragePool.ReplaceDrive"), replace);
    assert_eq!(names("PalisadeStoragePool.Stop"), []);
    assert_eq!(names("Nothing"), []);
}
