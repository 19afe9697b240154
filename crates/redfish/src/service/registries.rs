//! Registries: what the messages mean that errors name.

use super::{collection, uri};
use crate::messages::{self, Arg, Severity};
use crate::privileges;
use crate::routes::{Match, Resource};
use serde_json::{Map, Value, json};

/// A registry of messages.
struct Registry {
    /// What its URI ends with.
    id: &'static str,
    /// Its name and version, as identifiers of messages have them.
    name: &'static str,
    about: &'static str,
    /// Where everybody finds it, unless it is served.
    published: Option<&'static str>,
    /// What is served.
    text: fn() -> Option<Value>,
}

const REGISTRIES: [Registry; 3] = [
    Registry {
        id: "Base",
        name: "Base.1.19",
        about: "Messages that all Redfish services share",
        published: Some("https://redfish.dmtf.org/registries/Base.1.19.0.json"),
        text: || None,
    },
    Registry {
        id: "Palisade",
        name: "Palisade.1.0",
        about: "Messages of Palisade",
        published: None,
        text: || Some(own()),
    },
    Registry {
        id: "PalisadePrivileges",
        name: privileges::NAME,
        about: "Privileges of Palisade",
        published: None,
        text: || Some(privileges::registry()),
    },
];

/// A registry, or one of the collection and texts; nothing for another resource.
pub(super) fn rendered(found: &Match) -> Option<Value> {
    match found.route.resource {
        Resource::Registries => Some(all()),
        Resource::Registry => file(found.id(0)),
        Resource::RegistryText => text(found.id(0), found.id(1)),
        _ => None,
    }
}

fn all() -> Value {
    let uris = REGISTRIES.iter().map(|one| format!("{}/{}", uri::REGISTRIES, one.id));
    collection(uri::REGISTRIES, "MessageRegistryFileCollection", "Registries", uris)
}

fn find(id: &str) -> Option<&'static Registry> {
    REGISTRIES.iter().find(|one| one.id == id)
}

fn file(id: &str) -> Option<Value> {
    let Registry { id, name, about, published, .. } = find(id)?;
    let location = match published {
        Some(uri) => json!({"Language": "en", "PublicationUri": uri}),
        None => {
            let uri = format!("{}/{id}/{name}.json", uri::REGISTRIES);
            json!({"Language": "en", "Uri": uri})
        }
    };
    Some(json!({
        "@odata.id": format!("{}/{id}", uri::REGISTRIES),
        "@odata.type": "#MessageRegistryFile.v1_1_5.MessageRegistryFile",
        "Id": id,
        "Name": about,
        "Registry": name,
        "Languages": ["en"],
        "Location": [location],
    }))
}

fn text(id: &str, file: &str) -> Option<Value> {
    let registry = find(id)?;
    if file.strip_suffix(".json")? != registry.name {
        return None;
    }
    (registry.text)()
}

/// Our own registry.
fn own() -> Value {
    let errors = messages::all().map(|entry| {
        let said = [entry.example(), entry.advice()];
        let texts = [&said[0], entry.text, &said[1], entry.why];
        (entry.name.to_owned(), message(Severity::Critical, entry.args, texts))
    });
    let notices = messages::notices().map(|notice| {
        let stand = notice.placeholders();
        let said = [notice.text(&stand), notice.advice(&stand)];
        let texts = [&said[0], notice.text, &said[1], notice.why];
        (notice.name.to_owned(), message(notice.severity, notice.args, texts))
    });
    let all: Map<String, Value> = errors.chain(notices).collect();
    json!({
        "@odata.type": "#MessageRegistry.v1_6_3.MessageRegistry",
        "Id": "Palisade.1.0.0",
        "Name": "Messages of Palisade",
        "Description": "What the daemon and the command line say: errors, lines of logs, events",
        "Language": "en",
        "RegistryPrefix": "Palisade",
        "RegistryVersion": "1.0.0",
        "OwningEntity": "Palisade",
        "Messages": all,
    })
}

/// A message: its texts are what it says, the same with places of arguments, what to do, and why.
fn message(severity: Severity, args: &[Arg], texts: [&str; 4]) -> Value {
    let [said, text, advice, why] = texts;
    let kind = |arg: &Arg| match arg {
        Arg::Text(_) => "string",
        Arg::Number(_) => "number",
    };
    let about = |arg: &Arg| arg.name().to_ascii_lowercase().replace('-', " ");
    let mut message = json!({
        "Description": said,
        "LongDescription": why,
        "Message": text,
        "MessageSeverity": severity.word(),
        "NumberOfArgs": args.len(),
        "Resolution": advice,
    });
    if !args.is_empty() {
        let types: Vec<&str> = args.iter().map(kind).collect();
        let texts: Vec<String> = args.iter().map(about).collect();
        super::put(&mut message, "ParamTypes", json!(types));
        super::put(&mut message, "ArgDescriptions", json!(texts));
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_in_the_registry_that_its_identifier_names() {
        let name = messages::PREFIX.trim_end_matches('.');
        let served = text("Palisade", &format!("{name}.json")).expect("is served");
        assert_eq!(
            served["Messages"].as_object().expect("messages").len(),
            messages::all().count() + messages::notices().count()
        );
        let one = &served["Messages"]["NoVolume"];
        assert_eq!(one["Message"], "array \"%1\" has no volume \"%2\"");
        assert_eq!(one["ParamTypes"], json!(["string", "string"]));
        assert_eq!(
            (&one["NumberOfArgs"], &one["MessageSeverity"]),
            (&json!(2), &json!("Critical"))
        );
        let one = &served["Messages"]["ChangeDone"];
        assert_eq!(
            (&one["Message"], &one["MessageSeverity"]),
            (&json!("%1: %2: done"), &json!("OK"))
        );
        let version = format!("{}.", served["RegistryVersion"].as_str().expect("a version"));
        assert!(version.starts_with(&format!("{}.", name.trim_start_matches("Palisade."))));
    }

    #[test]
    fn a_registry_that_is_not_served_has_no_text() {
        for (id, file) in [
            ("Base", "Base.1.19.json"),
            ("Palisade", "Palisade.1.1.json"),
            ("Palisade", "Palisade.1.0"),
            ("None", "None.json"),
        ] {
            assert_eq!(text(id, file), None, "{id} {file}");
        }
        assert_eq!(super::file("None"), None);
    }
}
