//! What is asked of a shelf's management service (DSP0266): its chassis, and what hangs on it.
//!
//! Invariants
//! - Paths that a service names are asked for only if they are its own resources'.
//! - All collections together have at most [`MOST`] children: the rest is not asked for.
//! - What the service does not tell of a part is not there. Only without its root, its chassis, an
//!   answer to who asks, or a connection, there is nothing at all.

use super::chassis::Answers;
use crate::pinned::{Connection, Failure};
use hyper::StatusCode;
use serde_json::Value;

/// Where a service begins.
const ROOT: &str = "/redfish/v1";

/// The most children that count, of all collections together.
const MOST: usize = 2000;

/// The most pages of a collection.
const PAGES: usize = 100;

/// A path of the service, if it is one: of a resource, or of a page with a query.
fn place(value: &Value, pointer: &str, is_page: bool) -> Option<String> {
    let path = value.pointer(pointer)?.as_str()?;
    let is_plain = |byte: u8| {
        byte.is_ascii_graphic() && !b"#\\\"<>".contains(&byte) && (is_page || byte != b'?')
    };
    let is_own = path.strip_prefix(ROOT).is_some_and(|rest| rest.starts_with('/'));
    (is_own && path.len() <= 1024 && path.bytes().all(is_plain)).then(|| path.to_owned())
}

/// The path of a resource of the service, if it is one.
fn path(value: &Value, pointer: &str) -> Option<String> {
    place(value, pointer, false)
}

/// A link to another resource.
fn link(value: &Value, key: &str) -> Option<String> {
    path(value, &format!("/{key}/@odata.id"))
}

/// What is not told is not there, if the service answers and knows who asks.
fn told(answer: Result<Value, Failure>) -> Result<Option<Value>, String> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(Failure::Odd(_)) => Ok(None),
        Err(Failure::Refused { status, .. }) if status != StatusCode::UNAUTHORIZED => Ok(None),
        Err(why) => Err(why.to_string()),
    }
}

/// Who reads a shelf once.
struct Reader<'a> {
    own: &'a mut Connection,
    /// How many more children count.
    left: usize,
    /// Whether the service takes `$expand`, as far as is known.
    expands: bool,
}

impl Reader<'_> {
    /// The resource that a link leads to; nothing without one.
    async fn follow(&mut self, value: &Value, key: &str) -> Result<Value, String> {
        let Some(path) = link(value, key) else { return Ok(Value::Null) };
        Ok(told(self.own.get(&path).await)?.unwrap_or_default())
    }

    /// The first page of a collection: with all that its children say, where a service does that.
    async fn collection(&mut self, path: &str) -> Result<Value, Failure> {
        if self.expands {
            match self.own.get(&format!("{path}?$expand=.")).await {
                Err(Failure::Refused {
                    status: StatusCode::NOT_IMPLEMENTED | StatusCode::BAD_REQUEST,
                    ..
                }) => self.expands = false,
                answer => return answer,
            }
        }
        self.own.get(path).await
    }

    /// The children of the collection that a link leads to; none without one. Those that the
    /// service does not tell are left out, or fail all of it if all are needed.
    async fn children(
        &mut self,
        value: &Value,
        key: &str,
        is_needed: bool,
    ) -> Result<Vec<Value>, String> {
        let mut found = Vec::new();
        let Some(first) = link(value, key) else { return Ok(found) };
        let told = |answer: Result<Value, Failure>| match is_needed {
            true => answer.map(Some).map_err(|why| why.to_string()),
            false => told(answer),
        };
        let mut page = told(self.collection(&first).await)?;
        for _ in 0..PAGES {
            let Some(mut whole) = page.take() else { break };
            let all = whole.get_mut("Members").and_then(Value::as_array_mut);
            for child in all.map(core::mem::take).unwrap_or_default() {
                let Some(left) = self.left.checked_sub(1) else { return Ok(found) };
                self.left = left;
                // A service that does not expand names its children.
                let is_named = child.as_object().is_some_and(|child| child.len() == 1);
                match path(&child, "/@odata.id").filter(|_| is_named) {
                    Some(path) => found.extend(told(self.own.get(&path).await)?),
                    None => found.push(child),
                }
            }
            let Some(next) = place(&whole, "/Members@odata.nextLink", true) else { break };
            page = told(self.own.get(&next).await)?;
        }
        Ok(found)
    }
}

/// The root of the service.
pub async fn root(own: &mut Connection) -> Result<Value, String> {
    own.get(ROOT).await.map_err(|why| why.to_string())
}

/// Where the service of this root streams events from, if it does.
pub async fn stream(own: &mut Connection, root: &Value) -> Result<Option<String>, String> {
    let mut reader = Reader { own, left: MOST, expands: true };
    let events = reader.follow(root, "EventService").await?;
    Ok(path(&events, "/ServerSentEventUri"))
}

/// The chassis that is the shelf: the first that is an enclosure of storage, else the first.
fn shelf(mut all: Vec<Value>) -> Option<Value> {
    let is_shelf =
        |own: &Value| own.get("ChassisType").and_then(Value::as_str) == Some("StorageEnclosure");
    let at = all.iter().position(is_shelf).unwrap_or(0);
    (at < all.len()).then(|| all.swap_remove(at))
}

/// All that the shelf tells of itself whose service has this root.
pub async fn ask(own: &mut Connection, root: &Value) -> Result<Answers, String> {
    let mut own = Reader { own, left: MOST, expands: true };
    // Without one of them another would be taken for the shelf.
    let all = own.children(root, "Chassis", true).await?;
    let chassis = shelf(all).ok_or_else(|| "it has no chassis".to_owned())?;
    let drives = own.children(&chassis, "Drives", false).await?;
    let mut modules = Vec::new();
    for module in own.children(&chassis, "NetworkAdapters", false).await? {
        let ports = own.children(&module, "Ports", false).await?;
        modules.push((module, ports));
    }
    let power = own.follow(&chassis, "PowerSubsystem").await?;
    let mut supplies = Vec::new();
    for supply in own.children(&power, "PowerSupplies", false).await? {
        let metrics = own.follow(&supply, "Metrics").await?;
        supplies.push((supply, metrics));
    }
    let thermal = own.follow(&chassis, "ThermalSubsystem").await?;
    let fans = own.children(&thermal, "Fans", false).await?;
    let sensors = own.children(&chassis, "Sensors", false).await?;
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
        for (text, is_good) in [
            ("/redfish/v1/Chassis?$skip=50", true),
            ("/redfish/v1?$skip=50", false),
            ("//other/redfish/v1/a", false),
        ] {
            let found = place(&json!({"Own": text}), "/Own", true);
            assert_eq!(found.is_some(), is_good, "{text:?}");
        }
        let all = vec![json!({"Id": "a"}), json!({"Id": "b", "ChassisType": "StorageEnclosure"})];
        assert_eq!(shelf(all.clone()).expect("one")["Id"], "b");
        assert_eq!(shelf(all[..1].to_vec()).expect("one")["Id"], "a");
        assert_eq!(shelf(Vec::new()), None);
    }
}
