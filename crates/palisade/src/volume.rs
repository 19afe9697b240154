//! `palisade volume`: manages volumes.

use crate::array::DONE;
use crate::client::Client;
use crate::fetch::{self, Part};
use crate::output::{Output, Problem, table};
use clap::Subcommand;
use control::api::{self, Answer};
use control::names;
use redfish::read;
use redfish::service::uri;
use serde_json::json;
use units::format_size;

/// A volume as people name it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Name {
    /// Its array.
    pub array: String,
    /// Its name there.
    pub volume: String,
}

impl core::str::FromStr for Name {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((array, volume)) if !array.is_empty() && !volume.is_empty() => {
                Ok(Self { array: array.to_owned(), volume: volume.to_owned() })
            }
            _ => Err("name a volume as ARRAY/VOLUME"),
        }
    }
}

/// Reads a size for the command line.
pub fn size(text: &str) -> Result<u64, String> {
    units::parse_size(text).ok_or_else(|| "use a size like 64K, 10G or 1.5T".to_owned())
}

/// What can be done with volumes.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a volume
    Create {
        /// Volume, as ARRAY/VOLUME
        name: Name,
        /// Size, such as 100G; K, M, G and T are powers of 1024
        #[arg(long, value_parser = size)]
        size: u64,
        #[command(flatten)]
        output: Output,
    },
    /// List volumes
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Grow or shrink a volume
    Resize {
        /// Volume, as ARRAY/VOLUME
        name: Name,
        /// New size, such as 200G; what lies behind a smaller size is destroyed
        #[arg(long, value_parser = size)]
        size: u64,
        /// Confirm that a smaller size destroys data
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Delete a volume and its data
    Delete {
        /// Volume, as ARRAY/VOLUME
        name: Name,
        /// Confirm that the volume's data is destroyed
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        output: Output,
    },
}

/// Carries a command out.
pub async fn run(command: &Command, client: &Client) -> Result<(), Problem> {
    match command {
        Command::Create { name, size, output } => {
            output.print(&create(name, *size, client).await?, one);
        }
        Command::List { output } => {
            let arrays = fetch::arrays(client, &[Part::Volumes]).await?;
            let running = arrays.into_iter().filter(|a| a.state != api::ArrayState::Stopped);
            let mut volumes: Vec<_> = running.flat_map(|array| array.volumes).collect();
            volumes.sort_by(|a, b| (&a.array, &a.name).cmp(&(&b.array, &b.name)));
            let answer = Answer::new(api::VolumeList { volumes });
            output.print(&answer, |list| self::volumes(&list.volumes));
        }
        Command::Resize { name, size, yes, output } => {
            output.print(&resize(name, *size, *yes, client).await?, one);
        }
        Command::Delete { name, yes, output } => {
            let Name { array, volume } = name;
            if !yes {
                let what = format!("this deletes volume {array}/{volume} and its data");
                return Err(Problem::unconfirmed(&what));
            }
            let arrays = fetch::arrays(client, &[Part::Volumes]).await?;
            let known = names::volume(names::running(&arrays, array)?, volume)?;
            client.delete(&uri::volume(&known.uuid)).await?;
            output.print(&DONE, |_| format!("volume {array}/{volume} is deleted"));
        }
    }
    Ok(())
}

async fn create(name: &Name, size: u64, client: &Client) -> Result<Answer<api::Volume>, Problem> {
    let arrays = fetch::arrays(client, &[]).await?;
    let array = names::running(&arrays, &name.array)?;
    names::volume_size(array, size)?;
    let pool = fetch::link(&uri::pool(&array.uuid));
    let body = json!({
        "Name": name.volume,
        "CapacityBytes": size,
        "CapacitySources": [{ "ProvidingPools": { "Members": [pool] } }],
    });
    let made = client.post(uri::VOLUMES, &body).await?;
    Ok(Answer::new(read::volume(&made)?))
}

async fn resize(
    name: &Name,
    size: u64,
    shrink: bool,
    client: &Client,
) -> Result<Answer<api::Volume>, Problem> {
    let arrays = fetch::arrays(client, &[Part::Volumes]).await?;
    let array = names::running(&arrays, &name.array)?;
    let volume = names::volume(array, &name.volume)?;
    names::volume_size(array, size)?;
    let body = json!({ "CapacityBytes": size, "Oem": { "Palisade": { "Shrink": shrink } } });
    let resized = client.patch(&uri::volume(&volume.uuid), &body).await?;
    Ok(Answer::new(read::volume(&resized)?))
}

fn one(volume: &api::Volume) -> String {
    volumes(core::slice::from_ref(volume))
}

/// A table of volumes.
pub fn volumes(volumes: &[api::Volume]) -> String {
    let row = |v: &api::Volume| {
        vec![format!("{}/{}", v.array, v.name), format_size(v.size_bytes), v.uuid.clone()]
    };
    let rows: Vec<_> = volumes.iter().map(row).collect();
    table(&["VOLUME", "SIZE", "UUID"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_named_with_its_array() {
        let name = Name { array: "a".into(), volume: "v".into() };
        assert_eq!("a/v".parse(), Ok(name));
        for text in ["", "a", "/v", "a/", "/"] {
            assert!(text.parse::<Name>().is_err(), "{text}");
        }
    }
}
