//! Where links of a request lead: to a drive, an array, a volume.

use super::node::Node;
use crate::error::Refusal;
use crate::routes::{self, Resource};
use crate::view::{Array, Export, NamedDrive, View, Volume};

/// The export that a connection of a fabric is: `ARRAY-UUID-NUMBER` becomes `ARRAY-UUID:NUMBER`.
pub fn export(view: &View, fabric: &str, id: &str) -> Option<String> {
    let (uuid, number) = id.rsplit_once('-')?;
    let array = view.array(uuid)?;
    let is_it = |export: &&Export| {
        export.id.rsplit_once(':').is_some_and(|(_, own)| own == number)
            && fabric == export.kind.fabric()
    };
    array.exports.iter().find(is_it).map(|_| format!("{}:{number}", array.uuid))
}

/// The identifier in a link that must lead to this kind of resource.
fn id(node: &Node<'_>, kind: Resource, wanted: &str) -> Result<(String, String), Refusal> {
    let uri = node.link()?;
    let Some(found) = routes::find(uri) else { return Err(node.leads_nowhere(uri)) };
    if found.route.resource != kind {
        return Err(node.other_kind(uri, wanted));
    }
    Ok((found.ids.last().cloned().unwrap_or_default(), uri.to_owned()))
}

/// Checks that a link leads to this one resource of its kind.
pub fn to(node: &Node<'_>, kind: Resource, wanted: &str) -> Result<(), Refusal> {
    let (_, uri) = id(node, kind, "certificate")?;
    let is_it = routes::find(&uri).is_some_and(|found| found.uri() == wanted);
    if is_it { Ok(()) } else { Err(node.leads_nowhere(&uri)) }
}

/// The drive that a link leads to.
pub fn drive(view: &View, node: &Node<'_>) -> Result<NamedDrive, Refusal> {
    let (id, uri) = id(node, Resource::Drive, "drive")?;
    let known = view.drive(&id).ok_or_else(|| node.leads_nowhere(&uri))?;
    Ok(known.into())
}

/// The drives that a list of links leads to: so many at least, and at most.
pub fn drives(
    view: &View,
    node: &Node<'_>,
    least: usize,
    most: usize,
) -> Result<Vec<NamedDrive>, Refusal> {
    node.list(least, most)?.iter().map(|one| drive(view, one)).collect()
}

/// The array that a link leads to.
pub fn pool<'a>(view: &'a View, node: &Node<'_>) -> Result<&'a Array, Refusal> {
    let (id, uri) = id(node, Resource::Pool, "storage pool")?;
    view.array(&id).ok_or_else(|| node.leads_nowhere(&uri))
}

/// The volume that a link leads to, and its array.
pub fn linked_volume<'a>(
    view: &'a View,
    node: &Node<'_>,
) -> Result<(&'a Array, &'a Volume), Refusal> {
    let (id, uri) = id(node, Resource::Volume, "volume")?;
    view.volume(&id).ok_or_else(|| node.leads_nowhere(&uri))
}
