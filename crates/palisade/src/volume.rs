//! `palisade volume`: manages volumes.

use crate::client::Client;
use crate::output::{Output, Problem, table};
use clap::Subcommand;
use control::api::{self, Answer};
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
            let Name { array, volume } = name.clone();
            let request = api::CreateVolume { array, name: volume, size_bytes: *size };
            let answer = client.post(&["volumes"], &request).await?;
            output.print(&answer, one);
        }
        Command::List { output } => {
            let answer: Answer<api::VolumeList> = client.get(&["volumes"]).await?;
            output.print(&answer, |list| volumes(&list.volumes));
        }
        Command::Resize { name, size, yes, output } => {
            let parts = ["volumes", &name.array, &name.volume, "resize"];
            let request = api::ResizeVolume { size_bytes: *size, shrink: *yes };
            output.print(&client.post(&parts, &request).await?, one);
        }
        Command::Delete { name, yes, output } => {
            let Name { array, volume } = name;
            if !yes {
                let what = format!("this deletes volume {array}/{volume} and its data");
                return Err(Problem::unconfirmed(&what));
            }
            let answer = client.delete(&["volumes", array, volume]).await?;
            output.print(&answer, |_: &api::Done| format!("volume {array}/{volume} is deleted"));
        }
    }
    Ok(())
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
