//! Actions that Redfish does not have, as our own schemas describe them: of the table of bodies.

use crate::change::action_name;
use crate::change::bodies::{self, BODIES, Property};

/// An action on a resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Action {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    /// What it takes.
    pub parameters: Vec<Property>,
}

/// The actions on a resource's type, such as `StoragePool`.
pub fn on(of: &str) -> Vec<Action> {
    let prefix = format!("Palisade{of}.");
    let mut all: Vec<Action> = Vec::new();
    for body in BODIES {
        let whole = action_name(body.resource).unwrap_or_default();
        let Some(name) = whole.strip_prefix(&prefix) else { continue };
        if all.iter().all(|action| action.name != name) {
            let parameters = bodies::parameters(whole);
            all.push(Action { name, about: body.about, parameters });
        }
    }
    all
}

/// The version of a standard schema that has the type `OemActions`.
pub fn version_of_actions(of: &str) -> &'static str {
    match of {
        "FileSystem" => "v1_1_0",
        "StoragePool" => "v1_3_0",
        _ => "v1_0_0",
    }
}
