//! `palisade share user`: manages who may have shares by SMB.
//!
//! Each file system has users of its own. A change is of those of one share's, or of all: then it
//! goes from one file system to the next, and where one fails, who repeats the command goes on
//! there.

use super::{find, volume_of};
use crate::account::Password;
use crate::array::DONE;
use crate::client::{Change, Client};
use crate::complete;
use crate::confirm;
use crate::fetch;
use crate::output::{How, Output, Problem, printable, table};
use clap::Subcommand;
use clap_complete::engine::ArgValueCompleter;
use redfish::messages as say;
use redfish::service::uri;
use redfish::view::{Answer, FileSystem, Plan};
use serde::Serialize;
use serde_json::{Value, json};

/// What can be done with users.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Add a user to the file systems of all shares that lack it, or of one
    Add {
        #[command(flatten)]
        who: Who,
        #[command(flatten)]
        password: Password,
        #[command(flatten)]
        how: How,
    },
    /// Give a user a new password
    #[command(name = "password")]
    Passwd {
        #[command(flatten)]
        who: Known,
        #[command(flatten)]
        password: Password,
        #[command(flatten)]
        how: How,
    },
    /// Delete a user; the user's files stay
    Delete {
        #[command(flatten)]
        who: Known,
        /// Taken, though nothing is asked: a user holds no data
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        how: How,
    },
    /// List users
    List {
        /// Name of a user [default: all]
        #[arg(add = ArgValueCompleter::new(complete::share_users))]
        name: Option<String>,
        #[command(flatten)]
        of: Of,
        #[command(flatten)]
        output: Output,
    },
}

/// Which file systems are meant.
#[derive(Clone, Debug, clap::Args)]
pub struct Of {
    /// Only in the file system of this share [default: of all shares]
    #[arg(long, add = ArgValueCompleter::new(complete::shares))]
    share: Option<String>,
}

/// A user that is to be.
#[derive(Debug, clap::Args)]
pub struct Who {
    /// Name: lower-case letters, digits, '-', '_' and '.'
    name: String,
    #[command(flatten)]
    of: Of,
}

/// A user that there is.
#[derive(Debug, clap::Args)]
pub struct Known {
    /// Name of the user
    #[arg(add = ArgValueCompleter::new(complete::share_users))]
    name: String,
    #[command(flatten)]
    of: Of,
}

/// A user of a file system's shares.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct User {
    name: String,
    uid: u32,
    array: String,
    volume: String,
}

/// All users.
#[derive(Debug, Serialize)]
struct UserList {
    users: Vec<User>,
}

/// Carries a command out.
pub async fn run(command: &Command, client: &Client) -> Result<(), Problem> {
    match command {
        Command::Add { who: Who { name, of }, password, how } => {
            let all = fetch::filesystems(client).await?;
            let lacking = lacking(&meant(&all, of)?, name)?;
            let body = with_password(name, *password, *how, client).await?;
            change(&lacking, "AddUser", &body, *how, "is added", client).await?;
        }
        Command::Passwd { who: Known { name, of }, password, how } => {
            let all = fetch::filesystems(client).await?;
            let having = having(&meant(&all, of)?, name)?;
            let body = with_password(name, *password, *how, client).await?;
            change(&having, "SetUserPassword", &body, *how, "has a new password", client).await?;
        }
        Command::Delete { who: Known { name, of }, how, .. } => {
            let all = fetch::filesystems(client).await?;
            let having = having(&meant(&all, of)?, name)?;
            let body = json!({ "UserName": name });
            change(&having, "DeleteUser", &body, *how, "is deleted", client).await?;
        }
        Command::List { name, of, output } => {
            let all = fetch::filesystems(client).await?;
            let users = listed(&meant(&all, of)?, name.as_deref())?;
            output.print(&Answer::new(UserList { users }), |list| text(&list.users));
        }
    }
    Ok(())
}

/// The file systems that are meant.
fn meant<'a>(all: &'a [FileSystem], of: &Of) -> Result<Vec<&'a FileSystem>, Problem> {
    match &of.share {
        Some(share) => Ok(vec![find(all, share)?.0]),
        None => Ok(all.iter().collect()),
    }
}

fn has(of: &FileSystem, name: &str) -> bool {
    of.users.iter().any(|user| user.name == name)
}

/// The volumes of file systems, in words.
fn volumes(all: &[&FileSystem]) -> String {
    all.iter().map(|of| volume_of(of)).collect::<Vec<_>>().join(", ")
}

/// Those that lack a user.
fn lacking<'a>(all: &[&'a FileSystem], name: &str) -> Result<Vec<&'a FileSystem>, Problem> {
    let lacking: Vec<_> = all.iter().copied().filter(|of| !has(of, name)).collect();
    match (all.is_empty(), lacking.is_empty()) {
        (true, _) => Err(Problem::new(&say::NO_SHARES, &[])),
        (false, true) => Err(Problem::new(&say::SHARE_USER_EXISTS, &[&name, &volumes(all)])),
        (false, false) => Ok(lacking),
    }
}

/// Those that have a user.
fn having<'a>(all: &[&'a FileSystem], name: &str) -> Result<Vec<&'a FileSystem>, Problem> {
    let having: Vec<_> = all.iter().copied().filter(|of| has(of, name)).collect();
    match (all.is_empty(), having.is_empty()) {
        (true, _) => Err(Problem::new(&say::NO_SHARES, &[])),
        (false, true) => Err(Problem::new(&say::NO_SHARE_USER, &[&name, &volumes(all)])),
        (false, false) => Ok(having),
    }
}

/// A user with the password that somebody types.
async fn with_password(
    name: &str,
    password: Password,
    how: How,
    client: &Client,
) -> Result<Value, Problem> {
    client.let_go().await;
    Ok(json!({ "UserName": name, "Password": password.read_or_piped(name, how)? }))
}

/// Changes a user of each of these, or shows what that would do.
async fn change(
    all: &[&FileSystem],
    action: &str,
    body: &Value,
    how: How,
    done: &str,
    client: &Client,
) -> Result<(), Problem> {
    let mut plan = Plan::default();
    for (before, of) in all.iter().enumerate() {
        let target = uri::file_system(&of.volume_uuid);
        let target = format!("{target}/Actions/Oem/PalisadeFileSystem.{action}");
        let change = Change::post(target, body.clone());
        if how.dry_run {
            plan.dry_run = true;
            plan.steps.extend(Plan::from(client.plan(&change).await?.plan).steps);
            continue;
        }
        if let Err(problem) = client.change(&change, None).await {
            if let Some(changed) = all.get(..before).filter(|changed| !changed.is_empty()) {
                eprintln!("palisade: done of {} only", printable(&volumes(changed)));
            }
            return Err(problem);
        }
    }
    match how.dry_run {
        true => confirm::print(&plan, how.output),
        false => {
            let name = body.get("UserName").and_then(Value::as_str).unwrap_or_default();
            how.output.print(&DONE, |_| format!("user {name} of {} {done}", volumes(all)));
        }
    }
    Ok(())
}

/// The users of file systems, or the one of this name.
fn listed(all: &[&FileSystem], name: Option<&str>) -> Result<Vec<User>, Problem> {
    if let Some(name) = name {
        having(all, name)?;
    }
    let users = all.iter().flat_map(|of| of.users.iter().map(move |user| (of, user)));
    let wanted = users.filter(|(_, user)| name.is_none_or(|name| user.name == name));
    let user = wanted.map(|(of, user)| User {
        name: user.name.clone(),
        uid: user.uid,
        array: of.array.clone(),
        volume: of.volume.clone(),
    });
    Ok(user.collect())
}

/// A table of users.
fn text(users: &[User]) -> String {
    let row = |user: &User| {
        let User { name, uid, array, volume } = user;
        vec![name.clone(), uid.to_string(), format!("{array}/{volume}")]
    };
    table(&["USER", "UID", "VOLUME"], &users.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
#[path = "user_tests.rs"]
mod tests;
