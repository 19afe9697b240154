//! What is asked of a shelf's management service (DSP0266): its chassis, and what hangs on it.
//!
//! Invariants
//! - Paths that a service names are asked for only if they are its own resources'.
//! - A collection has at most [`MOST`] children: the rest is not asked for.

use super::chassis::Answers;
use crate::pinned::Connection;
use serde_json::Value;

/// Where a service begins.
const ROOT: &str = "/redfish/v1";

/// The most children of a collection that count.
const MOST: usize = 512;

/// The path of a resource of the service, if it is one.
fn path(value: &Value, pointer: &str) -> Option<String> {
    let path = value.pointer(pointer)?.as_str()?;
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"?#\\\"<>".contains(&byte);
    let is_own = path.strip_prefix(ROOT).is_some_and(|rest| rest.starts_with('/'));
    (is_own && path.len() <= 1024 && path.bytes().all(is_plain)).then(|| path.to_owned())
}

/// A link to another resource.
fn link(value: &Value, key: &str) -> Option<String> {
    path(value, &format!("/{key}/@odata.id"))
}

/// The resource that a link leads to; nothing without one.
async fn follow(own: &mut Connection, value: &Value, key: &str) -> Result<Value, String> {
    match link(value, key) {
        Some(path) => own.get(&path).await,
        None => Ok(Value::Null),
    }
}

/// The children of the collection that a link leads to; none without one.
async fn children(own: &mut Connection, value: &Value, key: &str) -> Result<Vec<Value>, String> {
    let Some(place) = link(value, key) else { return Ok(Vec::new()) };
    let mut whole = own.get(&format!("{place}?$expand=.")).await?;
    let all = whole.get_mut("Members").and_then(Value::as_array_mut).map(core::mem::take);
    let mut found = Vec::new();
    for child in all.unwrap_or_default().into_iter().take(MOST) {
        // A service that does not expand names its children.
        let is_named = child.as_object().is_some_and(|child| child.len() == 1);
        match path(&child, "/@odata.id").filter(|_| is_named) {
            Some(path) => found.push(own.get(&path).await?),
            None => found.push(child),
        }
    }
    Ok(found)
}

/// Where the service streams events from, if it does.
pub async fn stream(own: &mut Connection) -> Result<Option<String>, String> {
    let root = own.get(ROOT).await?;
    let events = follow(own, &root, "EventService").await?;
    Ok(path(&events, "/ServerSentEventUri"))
}

/// The chassis that is the shelf: the first that is an enclosure of storage, else the first.
fn shelf(mut all: Vec<Value>) -> Option<Value> {
    let is_shelf =
        |own: &Value| own.get("ChassisType").and_then(Value::as_str) == Some("StorageEnclosure");
    let at = all.iter().position(is_shelf).unwrap_or(0);
    (at < all.len()).then(|| all.swap_remove(at))
}

/// All that a shelf tells of itself.
pub async fn ask(own: &mut Connection) -> Result<Answers, String> {
    let root = own.get(ROOT).await?;
    let all = children(own, &root, "Chassis").await?;
    let chassis = shelf(all).ok_or_else(|| "it has no chassis".to_owned())?;
    let drives = children(own, &chassis, "Drives").await?;
    let mut modules = Vec::new();
    for module in children(own, &chassis, "NetworkAdapters").await? {
        let ports = children(own, &module, "Ports").await?;
        modules.push((module, ports));
    }
    let power = follow(own, &chassis, "PowerSubsystem").await?;
    let mut supplies = Vec::new();
    for supply in children(own, &power, "PowerSupplies").await? {
        let metrics = follow(own, &supply, "Metrics").await?;
        supplies.push((supply, metrics));
    }
    let thermal = follow(own, &chassis, "ThermalSubsystem").await?;
    let fans = children(own, &thermal, "Fans").await?;
    let sensors = children(own, &chassis, "Sensors").await?;
    Ok(Answers { chassis, drives, modules, supplies, fans, sensors })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_paths_of_the_services_own_resources_are_followed() {
        for (text, is_good) in [
            ("/redfish/v1/Chassis/a", true),
            ("/redfish/v1", false),
            ("/redfish/v12/a", false),
            ("https://other/redfish/v1/a", false),
            ("/redfish/v1/a b", false),
            ("/redfish/v1/a?$expand=.", false),
            ("/redfish/v1/a\r\nx: y", false),
        ] {
            let found = link(&json!({"Own": {"@odata.id": text}}), "Own");
            assert_eq!(found.is_some(), is_good, "{text:?}");
        }
        let all = vec![json!({"Id": "a"}), json!({"Id": "b", "ChassisType": "StorageEnclosure"})];
        assert_eq!(shelf(all.clone()).expect("one")["Id"], "b");
        assert_eq!(shelf(all[..1].to_vec()).expect("one")["Id"], "a");
        assert_eq!(shelf(Vec::new()), None);
    }
}
