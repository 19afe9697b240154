//! Registries: what the messages mean that errors name.

use super::{collection, uri};
use crate::messages::{self, Arg, Entry};
use crate::privileges;
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

pub(super) fn all() -> Value {
    let uris = REGISTRIES.iter().map(|one| format!("{}/{}", uri::REGISTRIES, one.id));
    collection(uri::REGISTRIES, "MessageRegistryFileCollection", "Registries", uris)
}

fn find(id: &str) -> Option<&'static Registry> {
    REGISTRIES.iter().find(|one| one.id == id)
}

pub(super) fn file(id: &str) -> Option<Value> {
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

pub(super) fn text(id: &str, file: &str) -> Option<Value> {
    let registry = find(id)?;
    if file.strip_suffix(".json")? != registry.name {
        return None;
    }
    (registry.text)()
}

/// Our own registry.
fn own() -> Value {
    let all: Map<String, Value> =
        messages::all().map(|entry| (entry.name.to_owned(), message(entry))).collect();
    json!({
        "@odata.type": "#MessageRegistry.v1_6_3.MessageRegistry",
        "Id": "Palisade.1.0.0",
        "Name": "Messages of Palisade",
        "Description": "What the daemon and the command line say when something was not done",
        "Language": "en",
        "RegistryPrefix": "Palisade",
        "RegistryVersion": "1.0.0",
        "OwningEntity": "Palisade",
        "Messages": all,
    })
}

fn message(entry: &Entry) -> Value {
    let kind = |arg: &Arg| match arg {
        Arg::Text(_) => "string",
        Arg::Number(_) => "number",
    };
    let about = |arg: &Arg| arg.name().to_ascii_lowercase().replace('-', " ");
    let mut message = json!({
        "Description": entry.example(),
        "LongDescription": entry.why,
        "Message": entry.text,
        "Severity": "Critical",
        "MessageSeverity": "Critical",
        "NumberOfArgs": entry.args.len(),
        "Resolution": entry.advice(),
    });
    if !entry.args.is_empty() {
        let types: Vec<&str> = entry.args.iter().map(kind).collect();
        let texts: Vec<String> = entry.args.iter().map(about).collect();
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
            messages::all().count()
        );
        let one = &served["Messages"]["NoVolume"];
        assert_eq!(one["Message"], "array \"%1\" has no volume \"%2\"");
        assert_eq!(one["ParamTypes"], json!(["string", "string"]));
        assert_eq!(
            (&one["NumberOfArgs"], &one["MessageSeverity"]),
            (&json!(2), &json!("Critical"))
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
