//! Schemas: that all our types are described, and that what is written is well formed.

use super::*;
use crate::routes::{self, Resource};

/// Checks that elements are closed in their order, and gives their names.
fn elements(xml: &str) -> Vec<String> {
    let (mut open, mut all) = (Vec::new(), Vec::new());
    let body = xml.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").unwrap();
    for tag in body.split('<').skip(1) {
        let (tag, rest) = tag.split_once('>').unwrap();
        assert!(rest.trim().is_empty(), "text between elements: {rest}");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name)),
            None => {
                let name = tag.split([' ', '/']).next().unwrap().to_owned();
                if !tag.ends_with('/') {
                    open.push(name.clone());
                }
                all.push(name);
            }
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    all
}

#[test]
fn every_type_of_ours_has_a_shape() {
    for own in OWN.iter().filter(|(_, schema)| schema.is_some()) {
        let shape = shape(own).unwrap_or_else(|| panic!("{} can't be described", own.0));
        assert!(!shape.properties.is_empty(), "{}", own.0);
        let own_ones = shape.properties.iter().chain(shape.definitions.iter().flat_map(
            |(_, _, definition)| match definition {
                shape::Definition::Object(properties) => properties.as_slice(),
                shape::Definition::Words(_) => &[],
            },
        ));
        for property in own_ones {
            assert!(!property.about.is_empty(), "{} of {} says nothing", property.name, own.0);
            if let shape::Kind::Own(name) = &property.kind {
                assert!(shape.definitions.iter().any(|(own, _, _)| own == name), "{name}");
            }
        }
    }
}

#[test]
fn csdl_is_well_formed_and_of_its_namespaces() {
    for file in csdl_files() {
        let xml = csdl(&file).unwrap();
        let names = elements(&xml);
        assert_eq!(names.iter().filter(|name| *name == "Schema").count(), 2, "{file}");
        let space = file.strip_suffix("_v1.xml").unwrap();
        assert!(xml.contains(&format!("Namespace=\"{space}\"")), "{file}");
        assert!(xml.contains(&format!("Namespace=\"{space}.v1_0_0\"")), "{file}");
    }
    for unknown in ["", "Palisade_v1.xml", "Drive_v1.xml", "PalisadeDrive_v1.xml/", "../x"] {
        assert_eq!(csdl(unknown), None);
    }
}

#[test]
fn csdl_has_what_our_types_say() {
    let xml = csdl("PalisadeStoragePool_v1.xml").unwrap();
    for part in [
        "<ComplexType Name=\"StoragePool\" BaseType=\"Resource.OemObject\" Abstract=\"true\">",
        "<ComplexType Name=\"StoragePool\" BaseType=\"PalisadeStoragePool.StoragePool\">",
        "<Property Name=\"StripSizeBytes\" Type=\"Edm.Int64\" Nullable=\"false\">",
        "<Property Name=\"CrashSafe\" Type=\"Edm.Boolean\" Nullable=\"true\">",
        "<Property Name=\"Shared\" Type=\"Edm.Boolean\" Nullable=\"false\">",
        "<Property Name=\"Owner\" Type=\"PalisadeStoragePool.v1_0_0.Owner\"",
        "<Parameter Name=\"TakeOver\" Type=\"Edm.Boolean\"",
        "<Property Name=\"Warnings\" Type=\"Collection(Edm.String)\" Nullable=\"false\">",
        "<Property Name=\"State\" Type=\"PalisadeStoragePool.v1_0_0.ArrayState\"",
        "<Property Name=\"Slots\" Type=\"Collection(PalisadeStoragePool.v1_0_0.Slot)\"",
        "<NavigationProperty Name=\"Drive\" Type=\"Resource.Item\" Nullable=\"true\">",
        "<NavigationProperty Name=\"Jobs\" Type=\"Collection(Resource.Item)\"",
        "<Property Name=\"EndTime\" Type=\"Edm.DateTimeOffset\"",
        "<Member Name=\"Degraded\">",
        "<Action Name=\"ReplaceDrive\" IsBound=\"true\">",
        "<Parameter Name=\"StoragePool\" Type=\"StoragePool.v1_3_0.OemActions\"/>",
        "<Parameter Name=\"With\" Type=\"Drive.Drive\" Nullable=\"false\">",
        "<Parameter Name=\"Mode\" Type=\"PalisadeStoragePool.ScrubMode\">",
        "Uri=\"http://redfish.dmtf.org/schemas/swordfish/v1/StoragePool_v1.xml\"",
    ] {
        assert!(xml.contains(part), "{part} is not in {xml}");
    }
}

#[test]
fn attributes_are_escaped() {
    let mut xml = csdl::Xml::new();
    xml.element("a", &[("b", "<\"&>\u{1}")]);
    assert!(xml.end().ends_with("<a b=\"&lt;&quot;&amp;&gt; \"/>\n"));
}

#[test]
fn metadata_names_every_schema_of_a_route_and_all_of_ours() {
    let xml = metadata();
    elements(&xml);
    for route in routes::ROUTES.iter().filter(|route| !route.schema.is_empty()) {
        let namespace = route.schema.trim_start_matches('#').rsplit_once('.').unwrap().0;
        assert!(xml.contains(&format!("Namespace=\"{namespace}\"")), "{namespace}");
    }
    for file in csdl_files() {
        assert!(xml.contains(&format!("Uri=\"/redfish/v1/Schemas/{file}\"")), "{file}");
    }
    assert!(xml.contains("Extends=\"ServiceRoot.v1_21_0.ServiceContainer\""));
    assert!(xml.contains("schemas/swordfish/v1/Capacity_v1.xml"));
    assert!(xml.contains("schemas/v1/VolumeCollection_v1.xml"));
}

#[test]
fn every_action_of_a_route_is_described() {
    for route in routes::ROUTES {
        let Some((_, name)) = route.uri.split_once("/Actions/Oem/Palisade") else { continue };
        let (of, name) = name.split_once('.').unwrap();
        assert!(actions::on(of).iter().any(|action| action.name == name), "{name}");
        assert!(OWN.iter().any(|(own, _)| *own == of), "{of}");
    }
}

#[test]
fn json_schemas_are_found_by_the_collection() {
    let all = collection();
    let items = all["Members"].as_array().unwrap();
    assert!(items.len() > 20);
    let mut own = 0;
    for item in items {
        let uri = item["@odata.id"].as_str().unwrap();
        let found = routes::find(uri).unwrap();
        assert_eq!(found.route.resource, Resource::JsonSchema);
        let file = file(found.id(0)).unwrap();
        assert_eq!(file["@odata.id"], uri);
        if let Some(uri) = file["Location"][0]["Uri"].as_str() {
            let found = routes::find(uri).unwrap();
            assert_eq!(found.route.resource, Resource::JsonSchemaText);
            let schema = json(found.id(1)).unwrap();
            assert_eq!(schema["$id"], uri);
            assert_eq!(schema["title"], file["Schema"]);
            own += 1;
        }
    }
    assert_eq!(own, names().len());
    assert_eq!(file("Nothing.v1_0_0"), None);
    assert_eq!(json("Drive.v1_22_0"), None);
}

#[test]
fn references_within_a_json_schema_lead_somewhere() {
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
    for name in names() {
        let schema = json(&name).unwrap();
        let mut found = Vec::new();
        references(&schema, &mut found);
        for to in found.iter().filter(|to| to.starts_with('#')) {
            assert!(schema.pointer(&to[1..]).is_some(), "{to} in {name}");
        }
    }
}
