//! Who may do what, as clients can read it (DSP0266, "Privilege model"): a registry made of the
//! table of routes.
//!
//! Its mappings are by type of resource. A POST to an action is one to what it acts on. Where two
//! rows of one type differ, the later one is an override of its URI.

use crate::routes::{Method, Privilege, ROUTES, Route};
use serde_json::{Map, Value, json};

/// The registry's name, with its version.
pub const NAME: &str = "PalisadePrivileges.1.0.0";

/// Where it is served.
pub const URI: &str = "/redfish/v1/Registries/PalisadePrivileges/PalisadePrivileges.1.0.0.json";

/// How a privilege is called (DSP2046, `Privileges`).
pub const fn name(privilege: Privilege) -> &'static str {
    match privilege {
        Privilege::Nobody => "NoAuth",
        Privilege::Login => "Login",
        Privilege::ConfigureComponents => "ConfigureComponents",
        Privilege::ConfigureManager => "ConfigureManager",
        Privilege::ConfigureUsers => "ConfigureUsers",
        Privilege::ConfigureSelf => "ConfigureSelf",
    }
}

/// The methods of HTTP that a method stands for.
pub const fn methods(method: Method) -> &'static [&'static str] {
    match method {
        Method::Get => &["GET", "HEAD"],
        Method::Post => &["POST"],
        Method::Patch => &["PATCH"],
        Method::Delete => &["DELETE"],
    }
}

/// The type of what a row is about, such as `StoragePool`: of an action, of what it acts on. None
/// for texts.
fn entity(row: &Route) -> Option<&'static str> {
    let of = row.subject()?.schema.strip_prefix('#')?;
    of.split('.').next()
}

/// One type's privileges.
#[derive(Default)]
struct Mapping {
    operations: Map<String, Value>,
    overrides: Vec<Value>,
}

fn operation(privilege: Privilege) -> Value {
    json!([{"Privilege": [name(privilege)]}])
}

impl Mapping {
    fn add(&mut self, row: &Route) {
        let mut other = Map::new();
        for (method, privilege) in row.methods {
            for word in methods(*method) {
                let own = operation(*privilege);
                match self.operations.get(*word) {
                    Some(there) if *there != own => drop(other.insert((*word).to_owned(), own)),
                    Some(_) => {}
                    None => drop(self.operations.insert((*word).to_owned(), own)),
                }
            }
        }
        if !other.is_empty() {
            self.overrides.push(json!({"Targets": [row.uri], "OperationMap": other}));
        }
    }
}

/// The registry (DSP2046, `PrivilegeRegistry`).
pub fn registry() -> Value {
    let mut all: Vec<(&str, Mapping)> = Vec::new();
    let mut used: Vec<&str> = Vec::new();
    for row in ROUTES {
        let Some(entity) = entity(row) else { continue };
        used.extend(row.methods.iter().map(|(_, privilege)| name(*privilege)));
        match all.iter_mut().find(|(own, _)| *own == entity) {
            Some((_, mapping)) => mapping.add(row),
            None => {
                let mut mapping = Mapping::default();
                mapping.add(row);
                all.push((entity, mapping));
            }
        }
    }
    used.sort_unstable();
    used.dedup();
    let mapping = |(entity, own): (&str, Mapping)| {
        let mut told = json!({"Entity": entity, "OperationMap": own.operations});
        if let Some(told) = told.as_object_mut().filter(|_| !own.overrides.is_empty()) {
            told.insert("ResourceURIOverrides".to_owned(), Value::Array(own.overrides));
        }
        told
    };
    json!({
        "@odata.id": URI,
        "@odata.type": "#PrivilegeRegistry.v1_2_0.PrivilegeRegistry",
        "Id": NAME,
        "Name": "Privileges of Palisade",
        "PrivilegesUsed": used,
        "OEMPrivilegesUsed": [],
        "Mappings": all.into_iter().map(mapping).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the registry says of a method.
    fn told(registry: &Value, row: &Route, method: &str) -> Option<String> {
        let all = registry["Mappings"].as_array().expect("mappings");
        let own = all.iter().find(|own| own["Entity"].as_str() == entity(row))?;
        let overrides = own["ResourceURIOverrides"].as_array().into_iter().flatten();
        let mut overrides = overrides.filter(|own| own["Targets"] == json!([row.uri]));
        let over = overrides.find_map(|own| own["OperationMap"].get(method));
        let operation = over.or_else(|| own["OperationMap"].get(method))?;
        operation[0]["Privilege"][0].as_str().map(str::to_owned)
    }

    #[test]
    fn the_registry_says_what_the_table_of_routes_says() {
        let registry = registry();
        let mut entities = 0;
        for row in ROUTES.iter().filter(|row| entity(row).is_some()) {
            for (method, privilege) in row.methods {
                for word in methods(*method) {
                    let expected = Some(name(*privilege).to_owned());
                    assert_eq!(told(&registry, row, word), expected, "{word} {}", row.uri);
                }
            }
            entities += usize::from(!row.schema.is_empty());
        }
        assert!(entities > 30);
        let names: Vec<_> = registry["Mappings"]
            .as_array()
            .expect("mappings")
            .iter()
            .map(|m| &m["Entity"])
            .collect();
        let mut once = names.clone();
        once.sort_by_key(|name| name.to_string());
        once.dedup();
        assert_eq!(once.len(), names.len(), "a type has one mapping");
        let action = ROUTES.iter().find(|row| row.uri.ends_with(".Scrub")).expect("a row");
        assert_eq!(told(&registry, action, "POST").as_deref(), Some("ConfigureComponents"));
        assert_eq!(told(&registry, action, "DELETE").as_deref(), Some("ConfigureComponents"));
    }
}
