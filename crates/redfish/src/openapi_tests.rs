//! The document says what the tables say, and each of its references leads somewhere.

use super::*;
use crate::change::bodies;
use crate::routes::{Method, Privilege, Resource};

fn references(of: &Value, found: &mut Vec<String>) {
    match of {
        Value::Object(own) => own.iter().for_each(|(key, value)| match value {
            Value::String(to) if key == "$ref" => found.push(to.clone()),
            value => references(value, found),
        }),
        Value::Array(own) => own.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn references_lead_to_components_and_no_component_is_idle() {
    let document = document();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 1000);
    for to in &found {
        let pointer = to.strip_prefix('#').expect(to);
        assert!(document.pointer(pointer).is_some(), "{to}");
    }
    for (kind, all) in document["components"].as_object().expect("components") {
        for name in all.as_object().expect("an object").keys().filter(|_| kind != "securitySchemes")
        {
            let to = format!("#/components/{kind}/{name}");
            assert!(found.contains(&to), "{to}");
        }
    }
}

#[test]
fn every_method_of_every_route_is_an_operation() {
    let document = document();
    let mut ids = std::collections::BTreeSet::new();
    for route in ROUTES {
        let path = document["paths"][route.uri].as_object().expect(route.uri);
        let mut methods: Vec<_> = path.keys().filter(|key| *key != "parameters").collect();
        let mut allowed: Vec<_> = route.allow().split(", ").map(str::to_ascii_lowercase).collect();
        methods.sort();
        allowed.sort();
        assert_eq!(methods, allowed.iter().collect::<Vec<_>>(), "{}", route.uri);
        let named = route.uri.matches('{').count();
        let ids_in_path = path.get("parameters").and_then(Value::as_array).map_or(0, Vec::len);
        assert_eq!(ids_in_path, named, "{}", route.uri);
        for (method, privilege) in route.methods {
            for word in crate::privileges::methods(*method) {
                let own = &path[&word.to_ascii_lowercase()];
                assert!(ids.insert(own["operationId"].as_str().expect("an id").to_owned()));
                assert_eq!(own["x-palisade-privilege"], crate::privileges::name(*privilege));
                let is_open = *privilege == Privilege::Nobody;
                assert_eq!(own.get("security").is_some(), is_open, "{}", route.uri);
                // A login needs none before it, and may be refused as one.
                let is_login = (route.resource, *method) == (Resource::Sessions, Method::Post);
                let may_be_nobody = own["responses"].get("401").is_some();
                assert_eq!(may_be_nobody, !is_open || is_login, "{}", route.uri);
                let forms = bodies::of(*method, route.resource).count();
                assert_eq!(own.get("requestBody").is_some(), forms > 0, "{}", route.uri);
                let any = own["requestBody"]["content"]["application/json"]["schema"]["anyOf"]
                    .as_array()
                    .map_or(forms.min(1), Vec::len);
                assert_eq!(any, forms, "{}", route.uri);
                let successes = own["responses"].as_object().expect("answers").keys();
                assert!(successes.filter(|status| status.starts_with('2')).count() > 0);
                if *method == Method::Get {
                    assert!(own["responses"]["200"].is_object());
                }
            }
        }
    }
}

#[test]
fn headers_of_requests_and_answers_are_told() {
    let paths = &document()["paths"];
    let has = |uri: &str, method: &str, name: &str| {
        let own = &paths[uri][method]["parameters"];
        let to = format!("#/components/parameters/{name}");
        own.as_array().expect(uri).iter().any(|one| one["$ref"] == to)
    };
    assert!(has("/redfish/v1/EventService/SSE", "get", "Last-Event-ID"));
    for name in ["If-Match", "If-None-Match", "Palisade-Plan", "Palisade-Confirm", "Prefer"] {
        assert!(has("/redfish/v1/SessionService/Sessions", "post", name), "{name}");
    }
    assert!(!has("/redfish/v1/Systems", "get", "Prefer"));
    let answers = &paths["/redfish/v1/SessionService/Sessions"]["post"]["responses"];
    assert!(answers["201"]["headers"]["X-Auth-Token"].is_object(), "{answers}");
}

#[test]
fn our_own_objects_are_told_in_full() {
    let schemas = &document()["components"]["schemas"];
    let slots = &schemas["PalisadeStoragePool"]["properties"]["Slots"]["items"]["$ref"];
    assert_eq!(slots, "#/components/schemas/PalisadeStoragePool.Slot");
    assert!(schemas["PalisadeStoragePool.Slot"]["properties"]["ReadErrors"].is_object());
    let pool = &schemas["StoragePool"];
    let own = &pool["properties"]["Oem"]["properties"]["Palisade"]["$ref"];
    assert_eq!(own, "#/components/schemas/PalisadeStoragePool");
    assert_eq!(pool["properties"]["@odata.type"]["const"], "#StoragePool.v1_9_2.StoragePool");
    assert!(pool["externalDocs"]["url"].as_str().is_some_and(|url| url.contains("swordfish")));
}
