//! What the daemon knows, fetched as Redfish resources and read back.
//!
//! Each answer is of the moment at which it is given. Jobs are asked for before arrays: where an
//! array has no job left, the array is as the last one left it.
//!
//! A collection is read page by page, as the daemon answers 507 to what is too large. Which
//! resources it has is consistent all the same: every page has the collection's ETag, and where
//! that changes between two pages the collection is read again. What each resource says is of the
//! moment of its page. A collection that changes as often as [`TRIES`] in a row is told as it was
//! met: each resource once, though one that came or went meanwhile may lack or be there.

use crate::client::{self, Client};
use crate::output::Problem;
use hyper::StatusCode;
use redfish::etag;
use redfish::read::{self, Fetched};
use redfish::service::uri;
use redfish::told::Found;
use redfish::view::{Array, FcPort, FileSystem, Job, KnownDrive, Status};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Members of a page. The daemon may find that too many: then half as many are asked for.
const PAGE: usize = 512;

/// How often a collection that changes meanwhile is read again.
const TRIES: usize = 8;

/// What a collection contains (DSP0266, "The `$expand` query parameter").
const CONTENTS: &str = ".";

/// The same, with what is in collections of it.
const DEEP: &str = ".($levels=3)";

/// A collection that is read.
#[derive(Clone, Copy)]
struct Asked<'a> {
    client: &'a Client,
    collection: &'a str,
    /// What is to stand in the place of links.
    expand: &'static str,
}

/// A collection with what it contains.
pub async fn expanded(client: &Client, collection: &str) -> Result<Value, Problem> {
    whole(Asked { client, collection, expand: CONTENTS }).await
}

async fn whole(asked: Asked<'_>) -> Result<Value, Problem> {
    let mut size = PAGE;
    for _ in 1..TRIES {
        if let Some(whole) = pages(asked, &mut size, false).await? {
            return Ok(whole);
        }
    }
    Ok(pages(asked, &mut size, true).await?.unwrap_or_default())
}

/// All pages as one collection, each member once; none if they are not of the same collection,
/// unless that is to be taken.
async fn pages(
    from: Asked<'_>,
    size: &mut usize,
    or_changed: bool,
) -> Result<Option<Value>, Problem> {
    let mut whole = page(from, 0, size).await?;
    let tag = whole.get(etag::PROPERTY).cloned();
    let mut found = contents(&mut whole);
    let (mut asked, mut count) = (*size, count(&whole));
    while asked < count {
        let mut more = page(from, asked, size).await?;
        if more.get(etag::PROPERTY) != tag.as_ref() && !or_changed {
            return Ok(None);
        }
        asked += *size;
        count = self::count(&more);
        found.append(&mut contents(&mut more));
    }
    let mut seen = BTreeSet::new();
    found.retain(|one| {
        let uri = one.get("@odata.id").and_then(Value::as_str);
        uri.is_none_or(|uri| seen.insert(uri.to_owned()))
    });
    if let Some(whole) = whole.as_object_mut() {
        whole.insert("Members".to_owned(), Value::Array(found));
    }
    Ok(Some(whole))
}

/// A page, which `size` makes smaller where it is too large.
async fn page(from: Asked<'_>, skip: usize, size: &mut usize) -> Result<Value, Problem> {
    let Asked { client, collection, expand } = from;
    while *size > 1 {
        let uri = format!("{collection}?$expand={expand}&$skip={skip}&$top={size}");
        if let Some(page) = client.get_unless(&uri, &[StatusCode::INSUFFICIENT_STORAGE]).await? {
            return Ok(page);
        }
        *size /= 2;
    }
    client.get(&format!("{collection}?$expand={expand}&$skip={skip}&$top=1")).await
}

/// How many members a collection has, those of other pages included.
fn count(collection: &Value) -> usize {
    let count = collection.get("Members@odata.count").and_then(Value::as_u64).unwrap_or(0);
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Takes the members out of a collection.
fn contents(collection: &mut Value) -> Vec<Value> {
    match collection.get_mut("Members").map(Value::take) {
        Some(Value::Array(all)) => all,
        _ => Vec::new(),
    }
}

/// The members of a collection that leads from page to page by links.
pub async fn linked(client: &Client, collection: &str) -> Result<Vec<Value>, Problem> {
    let mut next = Some(collection.to_owned());
    let mut found = Vec::new();
    while let Some(page) = next {
        let mut page = client.get(&page).await?;
        found.append(&mut contents(&mut page));
        next = page.get("Members@odata.nextLink").and_then(Value::as_str).map(str::to_owned);
    }
    Ok(found)
}

/// What is fetched of arrays besides themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Their volumes.
    Volumes,
    /// Their exports.
    Exports,
    /// File systems of their volumes, with the shares.
    Shares,
    /// Their tasks.
    Tasks,
}

/// All that there is.
pub const ALL: &[Part] = &[Part::Volumes, Part::Exports, Part::Shares, Part::Tasks];

async fn parts(client: &Client, wanted: &[Part]) -> Result<Fetched, Problem> {
    let none = || json!({ "Members": [] });
    let (mut jobs, mut volumes, mut filesystems) = (none(), none(), none());
    let (mut nvme, mut nbd, mut local) = (none(), none(), none());
    let (mut iscsi, mut fc) = (none(), none());
    if wanted.contains(&Part::Tasks) {
        jobs = expanded(client, uri::JOBS).await?;
    }
    if wanted.contains(&Part::Exports) {
        nvme = expanded(client, uri::NVME_CONNECTIONS).await?;
        nbd = expanded(client, uri::NBD_CONNECTIONS).await?;
        local = expanded(client, uri::LOCAL_CONNECTIONS).await?;
        iscsi = expanded(client, uri::ISCSI_CONNECTIONS).await?;
        fc = expanded(client, uri::FC_CONNECTIONS).await?;
    }
    if wanted.contains(&Part::Shares) {
        filesystems = shared(client).await?;
    }
    if wanted.contains(&Part::Volumes) {
        volumes = expanded(client, uri::VOLUMES).await?;
    }
    let pools = expanded(client, uri::POOLS).await?;
    let rest = Fetched::default();
    Ok(Fetched { pools, volumes, nvme, nbd, local, iscsi, fc, filesystems, jobs, ..rest })
}

/// All file systems, with their shares in the place of links.
async fn shared(client: &Client) -> Result<Value, Problem> {
    whole(Asked { client, collection: uri::FILE_SYSTEMS, expand: DEEP }).await
}

/// All file systems that are shared, with their shares.
pub async fn filesystems(client: &Client) -> Result<Vec<FileSystem>, Problem> {
    Ok(read::all(&shared(client).await?, |one| Ok(read::filesystem(one)?.1))?)
}

/// All arrays, with these parts of them.
pub async fn arrays(client: &Client, wanted: &[Part]) -> Result<Vec<Array>, Problem> {
    Ok(read::arrays(&parts(client, wanted).await?)?)
}

/// All jobs, with those that have ended.
pub async fn jobs(client: &Client) -> Result<Vec<Job>, Problem> {
    Ok(read::all(&expanded(client, uri::JOBS).await?, read::job)?)
}

/// Everything at a glance, and the daemon's time in seconds since 1970.
pub async fn status(client: &Client) -> Result<(Status, u64), Problem> {
    let mut fetched = parts(client, ALL).await?;
    fetched.manager = client.get(uri::MANAGER).await?;
    let now = read::server(&Value::Null, &fetched.manager)?.now;
    Ok((read::status(&fetched)?, now))
}

/// The machine's Fibre Channel ports.
pub async fn ports(client: &Client) -> Result<Vec<FcPort>, Problem> {
    Ok(read::ports(&client.get(uri::FC).await?)?)
}

/// All drives, as the daemon last saw them.
pub async fn drives(client: &Client) -> Result<Vec<KnownDrive>, Problem> {
    Ok(read::all(&expanded(client, uri::DRIVES).await?, read::drive)?)
}

/// Has the daemon look at its drives, and at those of these paths; the URIs of the latter.
pub async fn find_drives(client: &Client, paths: &[String]) -> Result<Vec<String>, Problem> {
    let action = format!("{}/Actions/Oem/PalisadeStorage.FindDrives", uri::STORAGE);
    let answer = client.post(&action, &json!({ "Paths": paths })).await?;
    let Found { drives } = client::read(answer)?;
    match drives.len() == paths.len() {
        true => Ok(drives.into_iter().map(|link| link.uri).collect()),
        false => Err(read::strange("FindDrives: /Drives").into()),
    }
}

/// A link to a resource.
pub fn link(uri: &str) -> Value {
    json!({ "@odata.id": uri })
}

/// Links to resources.
pub fn links(uris: &[String]) -> Value {
    uris.iter().map(|uri| link(uri)).collect()
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
mod tests;
