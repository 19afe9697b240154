//! `palisade share`: manages shares of volumes' file systems.
//!
//! - [`shown`]: how shares are told. [`user`]: who may have them by SMB.
//!
//! A share is found by its name, whatever the case of its letters: clients find it so. Where two
//! differ by that only, the one that is written the same is meant.

pub mod shown;
mod user;

use crate::array::DONE;
use crate::client::{Change, Client};
use crate::complete;
use crate::confirm::{self, Word};
use crate::fetch::{self, Part};
use crate::output::{How, Output, Problem};
use crate::volume::Name;
use clap::{ArgGroup, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use control::names;
use redfish::messages as say;
use redfish::service::uri;
use redfish::view::{self, Answer, FileSystem, Share};
use serde::Serialize;
use serde_json::{Map, Value, json};
use shown::Shown;

/// What can be done with shares.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Share the file system of a volume with clients
    Create(Box<Create>),
    /// List shares
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Show a share: its file system, who may have it, and how clients find it
    Show {
        /// Name of the share
        #[arg(add = ArgValueCompleter::new(complete::shares))]
        name: String,
        #[command(flatten)]
        output: Output,
    },
    /// Change a share; what is not named stays
    Set(Box<Set>),
    /// Delete a share; its clients are disconnected, and its files stay in the volume
    Delete {
        /// Name of the share
        #[arg(add = ArgValueCompleter::new(complete::shares))]
        name: String,
        /// Confirm that clients lose the share
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        how: How,
    },
    /// Manage users of shares, who have them by SMB
    #[command(subcommand)]
    User(user::Command),
}

/// A file system that can be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// XFS
    Xfs,
    /// ext4
    Ext4,
}

impl From<Format> for view::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Xfs => Self::Xfs,
            Format::Ext4 => Self::Ext4,
        }
    }
}

/// What `share create` takes.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("protocol").required(true).multiple(true).args(["smb", "nfs"]))]
pub struct Create {
    /// Name of the new share
    name: String,
    /// Volume, as ARRAY/VOLUME
    #[arg(long, value_name = "ARRAY/VOLUME", add = ArgValueCompleter::new(complete::volumes))]
    volume: Name,
    /// Make this file system on the volume first [default: share the one that is there]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Destroy what the volume holds
    #[arg(long, requires = "format")]
    overwrite: bool,
    /// Share it by SMB
    #[arg(long)]
    smb: bool,
    /// Share it by NFS, version 4
    #[arg(long)]
    nfs: bool,
    /// Let nobody write
    #[arg(long)]
    read_only: bool,
    /// SMB: a user that may have it, with :ro only to read; may be repeated [default: all users]
    #[arg(long, value_name = "NAME[:ro]", num_args = 1.., requires = "smb",
          add = ArgValueCompleter::new(complete::share_users))]
    smb_user: Vec<String>,
    /// NFS: addresses of clients that may have it, with :ro only to read; may be repeated
    #[arg(long, value_name = "CIDR[:ro]", num_args = 1.., requires = "nfs")]
    nfs_client: Vec<String>,
    /// SMB: listen at ADDR:PORT, for all shares of the volume
    #[arg(long, value_name = "ADDR:PORT", requires = "smb")]
    smb_listen: Option<String>,
    /// NFS: listen at ADDR:PORT, for all shares of the volume
    #[arg(long, value_name = "ADDR:PORT", requires = "nfs")]
    nfs_listen: Option<String>,
    /// Confirm that what the volume holds is destroyed
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    how: How,
}

/// Names of arguments that `share set` has, of which one at least is given.
const CHANGES: [&str; 12] = [
    "smb",
    "no_smb",
    "nfs",
    "no_nfs",
    "read_only",
    "read_write",
    "smb_user",
    "all_smb_users",
    "nfs_client",
    "no_nfs_clients",
    "smb_listen",
    "nfs_listen",
];

/// What `share set` takes.
#[derive(Debug, clap::Args)]
#[command(
    group = ArgGroup::new("change").required(true).multiple(true).args(CHANGES),
    override_usage = "palisade share set <NAME> <CHANGE>..."
)]
pub struct Set {
    /// Name of the share
    #[arg(add = ArgValueCompleter::new(complete::shares))]
    name: String,
    /// Share it by SMB
    #[arg(long, conflicts_with = "no_smb")]
    smb: bool,
    /// Share it by SMB no longer
    #[arg(long, conflicts_with_all = ["no_nfs", "smb_user", "all_smb_users", "smb_listen"])]
    no_smb: bool,
    /// Share it by NFS, version 4
    #[arg(long, conflicts_with = "no_nfs")]
    nfs: bool,
    /// Share it by NFS no longer
    #[arg(long, conflicts_with_all = ["nfs_client", "no_nfs_clients", "nfs_listen"])]
    no_nfs: bool,
    /// Let nobody write
    #[arg(long, conflicts_with = "read_write")]
    read_only: bool,
    /// Let those write who are not named with :ro
    #[arg(long)]
    read_write: bool,
    /// SMB: a user that may have it, with :ro only to read, in place of those who could; may be
    /// repeated
    #[arg(long, value_name = "NAME[:ro]", num_args = 1.., conflicts_with = "all_smb_users",
          add = ArgValueCompleter::new(complete::share_users))]
    smb_user: Vec<String>,
    /// SMB: let all users have it
    #[arg(long)]
    all_smb_users: bool,
    /// NFS: addresses of clients that may have it, with :ro only to read, in place of those that
    /// could; may be repeated
    #[arg(long, value_name = "CIDR[:ro]", num_args = 1.., conflicts_with = "no_nfs_clients")]
    nfs_client: Vec<String>,
    /// NFS: let no client have it
    #[arg(long)]
    no_nfs_clients: bool,
    /// SMB: listen at ADDR:PORT, for all shares of the volume
    #[arg(long, value_name = "ADDR:PORT")]
    smb_listen: Option<String>,
    /// NFS: listen at ADDR:PORT, for all shares of the volume
    #[arg(long, value_name = "ADDR:PORT")]
    nfs_listen: Option<String>,
    #[command(flatten)]
    how: How,
}

/// All shares.
#[derive(Debug, Serialize)]
struct ShareList {
    shares: Vec<Shown>,
}

/// A share that was made or changed.
#[derive(Debug, Serialize)]
struct Made {
    #[serde(flatten)]
    share: Shown,
    /// What clients run to have it.
    connect: Vec<String>,
}

/// Carries a command out.
pub async fn run(command: &Command, client: &Client) -> Result<(), Problem> {
    match command {
        Command::Create(create) => self::create(create, client).await?,
        Command::List { output } => {
            let all = fetch::filesystems(client).await?;
            let shares = all.iter().flat_map(shown::of_system).collect();
            output.print(&Answer::new(ShareList { shares }), |list| shown::table(&list.shares));
        }
        Command::Show { name, output } => {
            let all = fetch::filesystems(client).await?;
            let (of, share) = find(&all, name)?;
            output.print(&Answer::new(Shown::new(of, share)), shown::detail);
        }
        Command::Set(set) => self::set(set, client).await?,
        Command::Delete { name, yes, how } => delete(name, *yes, *how, client).await?,
        Command::User(command) => user::run(command, client).await?,
    }
    Ok(())
}

/// The share of this name, with its file system.
fn find<'a>(all: &'a [FileSystem], name: &str) -> Result<(&'a FileSystem, &'a Share), Problem> {
    let shares = || all.iter().flat_map(|of| of.shares.iter().map(move |share| (of, share)));
    let same = || shares().find(|(_, share)| share.name == name);
    let folded = shares::names::folded(name);
    let alike = || shares().find(|(_, share)| shares::names::folded(&share.name) == folded);
    let found = same().or_else(alike);
    found.ok_or_else(|| Problem::new(&say::NO_SHARE, &[&name]))
}

/// What a file system is called: by its volume.
fn volume_of(of: &FileSystem) -> String {
    format!("{}/{}", of.array, of.volume)
}

impl Create {
    /// What is asked for; the volume is named as people name it.
    fn request(&self) -> view::CreateShare {
        view::CreateShare {
            array: self.volume.array.clone(),
            volume: self.volume.volume.clone(),
            name: self.name.clone(),
            format: self.format.map(view::Format::from),
            overwrite: self.overwrite,
            smb: self.smb,
            nfs: self.nfs,
            read_only: self.read_only,
            smb_users: self.smb_user.clone(),
            nfs_clients: self.nfs_client.clone(),
            smb_listen: self.smb_listen.clone(),
            nfs_listen: self.nfs_listen.clone(),
        }
    }
}

/// How a share of the volume with this URI is asked for.
fn wanted(request: &view::CreateShare, volume: &str) -> Value {
    let mut own = Map::new();
    let mut put = |name: &str, value: Value| own.insert(name.to_owned(), value);
    put("Volume", fetch::link(volume));
    put("Name", json!(request.name));
    put("Smb", json!(request.smb));
    put("Nfs", json!(request.nfs));
    if let Some(format) = request.format {
        put("Format", json!(format.word()));
    }
    for (name, is_said) in [("Overwrite", request.overwrite), ("ReadOnly", request.read_only)] {
        if is_said {
            put(name, json!(true));
        }
    }
    for (name, list) in [("SmbUsers", &request.smb_users), ("NfsClients", &request.nfs_clients)] {
        if !list.is_empty() {
            put(name, json!(list));
        }
    }
    for (name, at) in [("SmbListen", &request.smb_listen), ("NfsListen", &request.nfs_listen)] {
        if let Some(at) = at {
            put(name, json!(at));
        }
    }
    json!({ "Oem": { "Palisade": own } })
}

async fn create(create: &Create, client: &Client) -> Result<(), Problem> {
    let request = create.request();
    control::check_share(&request)?;
    let arrays = fetch::arrays(client, &[Part::Volumes]).await?;
    let volume = names::volume(names::running(&arrays, &request.array)?, &request.volume)?;
    let whole = format!("{}/{}", request.array, request.volume);
    let change = Change::post(uri::FILE_SYSTEMS, wanted(&request, &uri::volume(&volume.uuid)));
    let word = Word { name: &whole, yes: create.yes, is_named: true };
    let made = match request.overwrite {
        true => confirm::destroy(&change, word, create.how, client).await?,
        false => confirm::change(&change, create.how, client).await?,
    };
    match made {
        Some(_) => tell(&request.name, create.how.output, client).await,
        None => Ok(()),
    }
}

impl Set {
    /// What is to be another, as a request has it.
    fn body(&self) -> Value {
        let mut own = Map::new();
        let truths = [
            ("Smb", self.smb, self.no_smb),
            ("Nfs", self.nfs, self.no_nfs),
            ("ReadOnly", self.read_only, self.read_write),
        ];
        for (name, yes, no) in truths {
            if yes || no {
                own.insert(name.to_owned(), json!(yes));
            }
        }
        let lists = [
            ("SmbUsers", &self.smb_user, self.all_smb_users),
            ("NfsClients", &self.nfs_client, self.no_nfs_clients),
        ];
        for (name, list, is_emptied) in lists {
            if is_emptied || !list.is_empty() {
                own.insert(name.to_owned(), json!(list));
            }
        }
        for (name, at) in [("SmbListen", &self.smb_listen), ("NfsListen", &self.nfs_listen)] {
            if let Some(at) = at {
                own.insert(name.to_owned(), json!(at));
            }
        }
        json!({ "Oem": { "Palisade": own } })
    }
}

async fn set(set: &Set, client: &Client) -> Result<(), Problem> {
    let all = fetch::filesystems(client).await?;
    let (of, share) = find(&all, &set.name)?;
    let change = Change::patch(uri::file_share(&of.volume_uuid, &share.name), set.body());
    match confirm::change(&change, set.how, client).await? {
        Some(_) => tell(&share.name, set.how.output, client).await,
        None => Ok(()),
    }
}

/// Prints a share that was made or changed, and how clients have it.
async fn tell(name: &str, output: Output, client: &Client) -> Result<(), Problem> {
    let all = fetch::filesystems(client).await?;
    let (of, share) = find(&all, name)?;
    let share = Shown::new(of, share);
    let connect = shown::connect(&share);
    output.print(&Answer::new(Made { share, connect }), |made| {
        let text = shown::detail(&made.share);
        format!("{text}\n{}", shown::what_next(&made.share, &made.connect))
    });
    Ok(())
}

async fn delete(name: &str, yes: bool, how: How, client: &Client) -> Result<(), Problem> {
    if !yes && !how.dry_run && !confirm::is_terminal() {
        let what = format!("this takes share {name} from its clients; its files stay");
        return Err(Problem::unconfirmed(&what));
    }
    let all = fetch::filesystems(client).await?;
    let (of, share) = find(&all, name)?;
    let delete = Change::delete(uri::file_share(&of.volume_uuid, &share.name));
    let word = Word { name: &share.name, yes, is_named: false };
    if confirm::interrupt(&delete, word, how, client).await?.is_some() {
        let done = format!("share {} is deleted; its files stay in {}", share.name, volume_of(of));
        how.output.print(&DONE, |_| done);
    }
    Ok(())
}

#[cfg(test)]
#[path = "share_tests.rs"]
pub mod tests;
