//! What the daemon knows, fetched as Redfish resources and read back.
//!
//! Each answer is of the moment at which it is given. Jobs are asked for before arrays: where an
//! array has no job left, the array is as the last one left it.

use crate::client::{self, Client};
use crate::output::Problem;
use control::api::{Array, KnownDrive, Status};
use redfish::read::{self, Fetched};
use redfish::service::uri;
use redfish::told::Found;
use serde_json::{Value, json};

/// A collection with its members.
async fn members(client: &Client, collection: &str) -> Result<Value, Problem> {
    client.get(&format!("{collection}?$expand=.")).await
}

/// Resources of which arrays are made.
async fn all(client: &Client) -> Result<Fetched, Problem> {
    Ok(Fetched {
        jobs: members(client, uri::JOBS).await?,
        nvme: members(client, uri::NVME_CONNECTIONS).await?,
        nbd: members(client, uri::NBD_CONNECTIONS).await?,
        volumes: members(client, uri::VOLUMES).await?,
        pools: members(client, uri::POOLS).await?,
        ..Fetched::default()
    })
}

/// All arrays, with volumes, exports and tasks.
pub async fn arrays(client: &Client) -> Result<Vec<Array>, Problem> {
    Ok(read::arrays(&all(client).await?)?)
}

/// All arrays without volumes, exports and tasks.
pub async fn pools(client: &Client) -> Result<Vec<Array>, Problem> {
    Ok(read::all(&members(client, uri::POOLS).await?, read::array)?)
}

/// All arrays with volumes, without exports and tasks.
pub async fn with_volumes(client: &Client) -> Result<Vec<Array>, Problem> {
    let none = || json!({ "Members": [] });
    let fetched = Fetched {
        volumes: members(client, uri::VOLUMES).await?,
        pools: members(client, uri::POOLS).await?,
        jobs: none(),
        nvme: none(),
        nbd: none(),
        ..Fetched::default()
    };
    Ok(read::arrays(&fetched)?)
}

/// Everything at a glance.
pub async fn status(client: &Client) -> Result<Status, Problem> {
    let mut fetched = all(client).await?;
    fetched.manager = client.get(uri::MANAGER).await?;
    Ok(read::status(&fetched)?)
}

/// All drives, as the daemon last saw them.
pub async fn drives(client: &Client) -> Result<Vec<KnownDrive>, Problem> {
    Ok(read::all(&members(client, uri::DRIVES).await?, read::drive)?)
}

/// Has the daemon look at its drives, and at those of these paths; the URIs of the latter.
pub async fn find_drives(client: &Client, paths: &[String]) -> Result<Vec<String>, Problem> {
    let action = format!("{}/Actions/Oem/PalisadeStorage.FindDrives", uri::STORAGE);
    let answer = client.post(&action, &json!({ "Paths": paths })).await?;
    let Found { drives } = client::read(answer.body)?;
    match drives.len() == paths.len() {
        true => Ok(drives.into_iter().map(|link| link.uri).collect()),
        false => Err(read::strange("FindDrives: /Drives").into()),
    }
}
