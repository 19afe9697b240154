//! What describes the resources: `$metadata`, and the schemas that are our own, as CSDL and as JSON
//! Schema, made of the types in [`crate::oem`] and of the table of our actions.
//!
//! | Function | Is served at |
//! |---|---|
//! | [`metadata`] | `/redfish/v1/$metadata` |
//! | [`csdl`] | `/redfish/v1/Schemas/{File}` |
//! | [`collection`] | `/redfish/v1/JsonSchemas` |
//! | [`file()`] | `/redfish/v1/JsonSchemas/{Schema}` |
//! | [`json()`] | `/redfish/v1/JsonSchemas/{Schema}/{File}` |
//!
//! DMTF's and SNIA's schemas are referred to where they publish them, and never served.

mod actions;
mod csdl;
mod json;
mod shape;

use crate::oem::{self, Extension};
use crate::routes::{ROOT, ROUTES, Route};
use serde_json::{Value, json};
use shape::Shape;
use std::collections::BTreeSet;

/// The namespace of elements that wrap CSDL.
const EDMX: &str = "http://docs.oasis-open.org/odata/ns/edmx";

/// The namespace of CSDL.
const EDM: &str = "http://docs.oasis-open.org/odata/ns/edm";

/// Schemas that SNIA publishes and DMTF does not.
const SNIA: [&str; 8] = [
    "Capacity",
    "FileShare",
    "FileShareCollection",
    "FileSystem",
    "FileSystemCollection",
    "StoragePool",
    "StoragePoolCollection",
    "VolumeMetrics",
];

/// Schemas that resources use without being of them.
const USED: [&str; 3] = ["Message.v1_3_0", "Resource", "RedfishExtensions.v1_0_0"];

/// The resource that an own object extends, or has actions for, and the object's schema.
type Own = (&'static str, Option<fn() -> schemars::Schema>);

const fn own<T: Extension>() -> Own {
    (T::OF, Some(schema_of::<T>))
}

fn schema_of<T: Extension>() -> schemars::Schema {
    schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>()
}

/// All that are our own.
const OWN: [Own; 21] = [
    own::<oem::Chassis>(),
    own::<oem::Connection>(),
    own::<oem::Drive>(),
    own::<oem::DriveMetrics>(),
    own::<oem::Endpoint>(),
    own::<oem::Fabric>(),
    own::<oem::EventDestination>(),
    own::<oem::Fan>(),
    own::<oem::FileShare>(),
    own::<oem::FileSystem>(),
    own::<oem::Job>(),
    own::<oem::LogEntry>(),
    ("LogService", None),
    own::<oem::Manager>(),
    own::<oem::ManagerAccount>(),
    own::<oem::MetricReport>(),
    own::<oem::ServiceConditions>(),
    ("Storage", None),
    own::<oem::StoragePool>(),
    own::<oem::Volume>(),
    own::<oem::VolumeMetrics>(),
];

/// The types of our own objects as JSON Schemas, with what each extends.
pub(crate) fn of_ours() -> Vec<(&'static str, Value)> {
    let own = OWN.iter().filter_map(|(of, schema)| Some((*of, schema.as_ref()?().to_value())));
    own.collect()
}

/// Where the JSON Schema of a row's resources is published.
pub(crate) fn published_json(route: &Route) -> String {
    let namespace = route.schema.trim_start_matches('#').rsplit_once('.').map_or("", |of| of.0);
    published(unversioned(namespace), &format!("{namespace}.json"))
}

/// The shape of an own object; none if there are only actions.
fn shape((_, schema): &Own) -> Option<Shape> {
    Shape::read(schema.as_ref()?().as_value())
}

/// What is published of a standard schema, such as `Drive`, in a folder of its owner.
fn published(name: &str, file: &str) -> String {
    let owner = if SNIA.contains(&name) { "swordfish/" } else { "" };
    format!("http://redfish.dmtf.org/schemas/{owner}v1/{file}")
}

/// Where a standard schema's CSDL is published.
fn standard_uri(name: &str) -> String {
    published(name, &format!("{name}_v1.xml"))
}

/// The namespaces of the standard schemas that resources are of, such as `Drive.v1_22_0`.
fn standard() -> BTreeSet<&'static str> {
    let types = ROUTES.iter().filter_map(|route| route.schema.strip_prefix('#'));
    types.filter_map(|one| Some(one.rsplit_once('.')?.0)).collect()
}

/// The first part of a namespace: the schema's name without its version.
fn unversioned(namespace: &str) -> &str {
    namespace.split_once('.').map_or(namespace, |(name, _)| name)
}

/// The document at `$metadata`: where each schema is that a resource is of (DSP0266, "OData
/// $metadata").
pub fn metadata() -> String {
    let mut xml = csdl::Xml::new();
    xml.open("edmx:Edmx", &[("xmlns:edmx", EDMX), ("Version", "4.0")]);
    let mut namespaces = standard();
    namespaces.extend(USED);
    for namespace in namespaces {
        let name = unversioned(namespace);
        let uri = standard_uri(name);
        match (name, name == namespace) {
            ("RedfishExtensions", _) => xml.reference(&uri, &[(namespace, Some("Redfish"))]),
            (_, true) => xml.reference(&uri, &[(name, None)]),
            _ => xml.reference(&uri, &[(name, None), (namespace, None)]),
        }
    }
    for (of, _) in OWN {
        let space = format!("Palisade{of}");
        let versioned = format!("{space}.v1_0_0");
        let uri = format!("{ROOT}/Schemas/{space}_v1.xml");
        xml.reference(&uri, &[(&space, None), (&versioned, None)]);
    }
    xml.open("edmx:DataServices", &[]);
    xml.open("Schema", &[("xmlns", EDM), ("Namespace", "Service")]);
    let root = standard().into_iter().find(|one| one.starts_with("ServiceRoot."));
    let container = format!("{}.ServiceContainer", root.unwrap_or("ServiceRoot"));
    xml.element("EntityContainer", &[("Name", "Service"), ("Extends", &container)]);
    xml.end()
}

/// The names of our own files of CSDL.
pub fn csdl_files() -> Vec<String> {
    OWN.iter().map(|(of, _)| format!("Palisade{of}_v1.xml")).collect()
}

/// A file of CSDL that is our own, such as `PalisadeDrive_v1.xml`.
pub fn csdl(file: &str) -> Option<String> {
    let of = file.strip_prefix("Palisade")?.strip_suffix("_v1.xml")?;
    let own = OWN.iter().find(|(own, _)| *own == of)?;
    Some(csdl::file(of, shape(own).as_ref()))
}

/// The names of the schemas that are our own, such as `PalisadeDrive.v1_0_0`.
pub fn names() -> Vec<String> {
    OWN.iter().map(|(of, _)| format!("Palisade{of}.v1_0_0")).collect()
}

/// Which of our own a name such as `PalisadeDrive.v1_0_0` is of.
fn named(name: &str) -> Option<&'static Own> {
    let of = name.strip_prefix("Palisade")?.strip_suffix(".v1_0_0")?;
    OWN.iter().find(|(own, _)| *own == of)
}

/// Where the JSON Schema of one of our own is.
fn json_uri(name: &str) -> String {
    format!("{ROOT}/JsonSchemas/{name}/{name}.json")
}

/// The JSON Schema of one of our own: of `PalisadeDrive.v1_0_0`, or of that with `.json`.
pub fn json(name: &str) -> Option<Value> {
    let name = name.strip_suffix(".json").unwrap_or(name);
    let own = named(name)?;
    Some(json::file(own.0, &json_uri(name), shape(own).as_ref()))
}

/// The resource that says where a schema is: one of our own, or of those that resources are of.
pub fn file(name: &str) -> Option<Value> {
    let (title, location) = match named(name) {
        Some((of, _)) => {
            (format!("#{name}.{of}"), json!({"Language": "en", "Uri": json_uri(name)}))
        }
        None => {
            let namespace = standard().into_iter().find(|one| *one == name)?;
            let of = unversioned(namespace);
            let uri = published(of, &format!("{namespace}.json"));
            (format!("#{namespace}.{of}"), json!({"Language": "en", "PublicationUri": uri}))
        }
    };
    Some(json!({
        "@odata.id": format!("{ROOT}/JsonSchemas/{name}"),
        "@odata.type": "#JsonSchemaFile.v1_1_5.JsonSchemaFile",
        "Id": name,
        "Name": format!("Schema {name}"),
        "Schema": title,
        "Languages": ["en"],
        "Location": [location],
    }))
}

/// The collection of all schemas.
pub fn collection() -> Value {
    let mut all = names();
    all.extend(standard().into_iter().map(str::to_owned));
    let link = |name: &String| json!({"@odata.id": format!("{ROOT}/JsonSchemas/{name}")});
    let items: Vec<Value> = all.iter().map(link).collect();
    json!({
        "@odata.id": format!("{ROOT}/JsonSchemas"),
        "@odata.type": "#JsonSchemaFileCollection.JsonSchemaFileCollection",
        "Name": "Schemas",
        "Members@odata.count": items.len(),
        "Members": items,
    })
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
