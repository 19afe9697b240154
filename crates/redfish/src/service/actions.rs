//! What describes the parameters of actions: `ActionInfo`, made of the table of bodies.

use super::rendered;
use crate::change::action_name;
use crate::change::bodies::{self, BODIES, Property, Takes};
use crate::routes::{self, Match};
use crate::view::View;
use serde_json::{Map, Value, json};

/// What stands between a resource's URI and an action's short name.
const BELOW: &str = "/ActionInfo/";

/// The short name of an action: `Scrub` of `PalisadeStoragePool.Scrub`.
fn short(action: &str) -> &str {
    action.rsplit_once('.').map_or(action, |(_, name)| name)
}

/// Adds to each action that takes parameters where they are described.
pub(super) fn annotate(resource: &mut Value) {
    let uri = resource.get("@odata.id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(actions) = resource.get_mut("Actions").and_then(Value::as_object_mut) else { return };
    for (name, action) in actions.iter_mut() {
        match (name.strip_prefix('#'), action.as_object_mut()) {
            (Some(name), Some(action)) => describe(&uri, name, action),
            (None, Some(own)) => {
                for (name, action) in own.iter_mut() {
                    if let (Some(name), Some(action)) =
                        (name.strip_prefix('#'), action.as_object_mut())
                    {
                        describe(&uri, name, action);
                    }
                }
            }
            (_, None) => {}
        }
    }
}

fn describe(uri: &str, name: &str, action: &mut Map<String, Value>) {
    let takes = |body: &bodies::Body| {
        action_name(body.resource) == Some(name) && !body.properties.is_empty()
    };
    if BODIES.iter().any(takes) {
        let info = format!("{uri}{BELOW}{}", short(name));
        action.insert("@Redfish.ActionInfo".to_owned(), Value::String(info));
    }
}

/// The description of an action, if what it acts on is there.
pub(super) fn info(view: &View, found: &Match) -> Option<Value> {
    let uri = found.uri();
    let (owner, name) = uri.split_once(BELOW)?;
    let owner = routes::find(owner)?;
    let below = format!("{}/Actions/", owner.route.uri);
    let action = BODIES.iter().find_map(|body| {
        let is_own = routes::of(body.resource)?.uri.starts_with(&below);
        action_name(body.resource).filter(|action| is_own && short(action) == name)
    })?;
    let parameters = bodies::parameters(action);
    if parameters.is_empty() {
        return None;
    }
    rendered(view, &owner)?;
    Some(json!({
        "@odata.id": uri,
        "@odata.type": "#ActionInfo.v1_5_0.ActionInfo",
        "Id": name,
        "Name": format!("Parameters of {name}"),
        "Parameters": parameters.iter().map(parameter).collect::<Vec<_>>(),
    }))
}

fn parameter(own: &Property) -> Value {
    let mut told = json!({"Name": own.name, "Required": own.must});
    let (takes, is_list) = match own.takes {
        Takes::List(of, least, most) => {
            super::put(&mut told, "ArraySizeMinimum", json!(least));
            super::put(&mut told, "ArraySizeMaximum", json!(most));
            (*of, true)
        }
        one => (one, false),
    };
    let kind = match takes {
        Takes::Text
        | Takes::Uri
        | Takes::Address
        | Takes::MailUri
        | Takes::Secret
        | Takes::Word(..) => "String",
        Takes::Whole(..) => "Number",
        Takes::Truth => "Boolean",
        Takes::Link(_) | Takes::Object(_) | Takes::Headers | Takes::List(..) => "Object",
    };
    let kind = if is_list { format!("{kind}Array") } else { kind.to_owned() };
    super::put(&mut told, "DataType", json!(kind));
    match takes {
        Takes::Word(_, words) => {
            let (names, about): (Vec<&str>, Vec<&str>) = words.iter().copied().unzip();
            super::put(&mut told, "AllowableValues", json!(names));
            super::put(&mut told, "AllowableValueDescriptions", json!(about));
        }
        Takes::Whole(from, to) => {
            super::put(&mut told, "MinimumValue", json!(from));
            super::put(&mut told, "MaximumValue", json!(to));
        }
        Takes::Link(kind) => {
            let schema = routes::of(kind).map_or("", |route| route.schema);
            super::put_named(&mut told, "ObjectDataType", schema);
        }
        _ => {}
    }
    told
}
