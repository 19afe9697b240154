//! `palisade volume`: manages volumes.

use crate::array::DONE;
use crate::client::{Change, Client};
use crate::complete;
use crate::confirm::{self, Word};
use crate::fetch::{self, Part};
use crate::output::{How, Output, Problem, table};
use clap::Subcommand;
use clap_complete::engine::ArgValueCompleter;
use control::names;
use redfish::read;
use redfish::service::uri;
use redfish::view::{self, Answer};
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
        #[arg(add = ArgValueCompleter::new(complete::of_arrays))]
        name: Name,
        /// Size, such as 100G; K, M, G and T are powers of 1024
        #[arg(long, value_parser = size)]
        size: u64,
        #[command(flatten)]
        how: How,
    },
    /// List volumes
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Grow or shrink a volume
    Resize {
        /// Volume, as ARRAY/VOLUME
        #[arg(add = ArgValueCompleter::new(complete::volumes))]
        name: Name,
        /// New size, such as 200G; what lies behind a smaller size is destroyed
        #[arg(long, value_parser = size)]
        size: u64,
        /// Confirm that a smaller size destroys data
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        how: How,
    },
    /// Delete a volume and its data
    Delete {
        /// Volume, as ARRAY/VOLUME
        #[arg(add = ArgValueCompleter::new(complete::volumes))]
        name: Name,
        /// Confirm that the volume's data is destroyed
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        how: How,
    },
}

/// Carries a command out.
pub async fn run(command: &Command, client: &Client) -> Result<(), Problem> {
    match command {
        Command::Create { name, size, how } => create(name, *size, *how, client).await?,
        Command::List { output } => {
            let arrays = fetch::arrays(client, &[Part::Volumes]).await?;
            let running = arrays.into_iter().filter(|a| a.state != view::ArrayState::Stopped);
            let mut volumes: Vec<_> = running.flat_map(|array| array.volumes).collect();
            volumes.sort_by(|a, b| (&a.array, &a.name).cmp(&(&b.array, &b.name)));
            let answer = Answer::new(view::VolumeList { volumes });
            output.print(&answer, |list| self::volumes(&list.volumes));
        }
        Command::Resize { name, size, yes, how } => {
            resize(name, *size, *yes, *how, client).await?;
        }
        Command::Delete { name, yes, how } => delete(name, *yes, *how, client).await?,
    }
    Ok(())
}

async fn delete(name: &Name, yes: bool, how: How, client: &Client) -> Result<(), Problem> {
    let Name { array, volume } = name;
    let whole = format!("{array}/{volume}");
    if !yes && !how.dry_run && !confirm::is_terminal() {
        return Err(Problem::unconfirmed(&format!("this deletes volume {whole} and its data")));
    }
    let arrays = fetch::arrays(client, &[Part::Volumes]).await?;
    let known = names::volume(names::running(&arrays, array)?, volume)?;
    let delete = Change::delete(uri::volume(&known.uuid));
    let word = Word { name: &whole, yes, is_named: false };
    if confirm::destroy(&delete, word, how, client).await?.is_some() {
        how.output.print(&DONE, |_| format!("volume {whole} is deleted"));
    }
    Ok(())
}

async fn create(name: &Name, size: u64, how: How, client: &Client) -> Result<(), Problem> {
    let arrays = fetch::arrays(client, &[]).await?;
    let array = names::running(&arrays, &name.array)?;
    names::volume_size(array, size)?;
    let pool = fetch::link(&uri::pool(&array.uuid));
    let body = json!({
        "Name": name.volume,
        "CapacityBytes": size,
        "CapacitySources": [{ "ProvidingPools": { "Members": [pool] } }],
    });
    if let Some(made) = confirm::change(&Change::post(uri::VOLUMES, body), how, client).await? {
        how.output.print(&Answer::new(read::volume(&made)?), one);
    }
    Ok(())
}

async fn resize(
    name: &Name,
    size: u64,
    yes: bool,
    how: How,
    client: &Client,
) -> Result<(), Problem> {
    let arrays = fetch::arrays(client, &[Part::Volumes]).await?;
    let array = names::running(&arrays, &name.array)?;
    let volume = names::volume(array, &name.volume)?;
    names::volume_size(array, size)?;
    let change = Change::patch(uri::volume(&volume.uuid), json!({ "CapacityBytes": size }));
    let whole = format!("{}/{}", name.array, name.volume);
    let word = Word { name: &whole, yes, is_named: false };
    let resized = match size < volume.size_bytes {
        true => confirm::destroy(&change, word, how, client).await?,
        false => confirm::change(&change, how, client).await?,
    };
    if let Some(resized) = resized {
        how.output.print(&Answer::new(read::volume(&resized)?), one);
    }
    Ok(())
}

fn one(volume: &view::Volume) -> String {
    volumes(core::slice::from_ref(volume))
}

/// A table of volumes.
pub fn volumes(volumes: &[view::Volume]) -> String {
    let row = |v: &view::Volume| {
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
