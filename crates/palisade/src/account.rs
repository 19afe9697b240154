//! `palisade account`: manages who may log in over the network.
//!
//! A password is read from a terminal, where it is not shown, or from the standard input. It is
//! never an argument.

use crate::array::DONE;
use crate::client::{Change, Client};
use crate::complete;
use crate::confirm;
use crate::fetch;
use crate::output::{How, Output, Problem, state, table};
use crate::secret;
use clap::Subcommand;
use clap_complete::engine::ArgValueCompleter;
use redfish::access::{Role, is_name};
use redfish::messages;
use redfish::read;
use redfish::service::uri;
use redfish::view::{Account, AccountList, Answer};
use serde_json::{Value, json};
use std::io::IsTerminal;

/// What can be done with accounts.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create an account, which may log in over the network
    Create {
        /// Name: letters, digits, dots, underscores and hyphens
        name: String,
        /// What it may do: Administrator (everything), Operator (arrays, volumes, exports) or
        /// ReadOnly
        #[arg(long, value_parser = role)]
        role: Role,
        /// It has to change its password before it can do anything else
        #[arg(long)]
        password_change_required: bool,
        #[command(flatten)]
        password: Password,
        #[command(flatten)]
        how: How,
    },
    /// List accounts
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Give an account a new password; its sessions end
    Passwd {
        /// Its name
        #[arg(add = ArgValueCompleter::new(complete::accounts))]
        name: String,
        #[command(flatten)]
        password: Password,
        #[command(flatten)]
        how: How,
    },
    /// Delete an account; its sessions end
    Delete {
        /// Its name
        #[arg(add = ArgValueCompleter::new(complete::accounts))]
        name: String,
        /// Taken, though nothing is asked: an account holds no data
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        how: How,
    },
}

/// Where the password comes from.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Password {
    /// Read the password from the standard input instead of asking for it at the terminal
    #[arg(long)]
    password_stdin: bool,
}

impl Password {
    /// The password; none is needed to plan. A standard input that is no terminal need not be asked
    /// for.
    pub fn read_or_piped(self, name: &str, how: How) -> Result<String, Problem> {
        let is_piped = !how.dry_run && !std::io::stdin().is_terminal();
        Self { password_stdin: self.password_stdin || is_piped }.read(name, how)
    }

    /// The password; none is needed to plan.
    fn read(self, name: &str, how: How) -> Result<String, Problem> {
        match (self.password_stdin, how.dry_run) {
            (true, _) => secret::from_stdin(),
            // What a plan is made for: any that could be one.
            (false, true) => Ok("not a password".to_owned()),
            (false, false) => secret::ask_twice(&format!("password of {name}: ")),
        }
    }
}

/// Reads a role for the command line; case counts for nothing.
fn role(text: &str) -> Result<Role, String> {
    let found = Role::ALL.into_iter().find(|role| {
        let plain = |text: &str| text.replace(['-', '_'], "").to_ascii_lowercase();
        plain(role.name()) == plain(text)
    });
    found.ok_or_else(|| format!("use {}", Role::ALL.map(Role::name).join(", ")))
}

/// Carries a command out.
pub async fn run(command: &Command, client: &Client) -> Result<(), Problem> {
    match command {
        Command::Create { name, role, password_change_required, password, how } => {
            let body = json!({
                "UserName": name,
                "RoleId": role.name(),
                "Password": password.read(name, *how)?,
                "PasswordChangeRequired": password_change_required,
            });
            let create = Change::post(uri::ACCOUNTS, body);
            if let Some(made) = confirm::change(&create, *how, client).await? {
                let made = Answer::new(read::account(&made)?);
                how.output.print(&made, |account| accounts(core::slice::from_ref(account)));
            }
        }
        Command::List { output } => {
            let accounts = all(client).await?;
            let answer = Answer::new(AccountList { accounts });
            output.print(&answer, |list| self::accounts(&list.accounts));
        }
        Command::Passwd { name, password, how } => {
            // Who may do nothing else may change its own.
            if !client.is_user(name) {
                known(name, client).await?;
            }
            let body = json!({ "Password": password.read(name, *how)? });
            let done = format!("account {name} has a new password");
            change(Change::patch(uri::account(name), body), &done, *how, client).await?;
        }
        Command::Delete { name, how, .. } => {
            known(name, client).await?;
            let done = format!("account {name} is deleted");
            change(Change::delete(uri::account(name)), &done, *how, client).await?;
        }
    }
    Ok(())
}

async fn change(change: Change, done: &str, how: How, client: &Client) -> Result<(), Problem> {
    let told: Option<Value> = confirm::change(&change, how, client).await?;
    if told.is_some() {
        how.output.print(&DONE, |_| done.to_owned());
    }
    Ok(())
}

/// All accounts that the caller may see; says of how many others there are.
async fn all(client: &Client) -> Result<Vec<Account>, Problem> {
    let collection = fetch::expanded(client, uri::ACCOUNTS).await?;
    let (mut seen, hidden) = parted(&collection)?;
    if let (true, Some(first)) = (seen.is_empty(), hidden.first()) {
        // Why not.
        seen.push(read::account(&client.get(first).await?)?);
    } else if !hidden.is_empty() {
        let count = hidden.len();
        eprintln!("palisade: {count} more, which only an Administrator may see");
    }
    Ok(seen)
}

/// The accounts of a collection, and the URIs of those of which there is only a link.
fn parted(collection: &Value) -> Result<(Vec<Account>, Vec<&str>), Problem> {
    let (mut seen, mut hidden) = (Vec::new(), Vec::new());
    for one in read::contents(collection)? {
        match one.get("UserName") {
            Some(_) => seen.push(read::account(one)?),
            None => hidden.extend(one.get("@odata.id").and_then(Value::as_str)),
        }
    }
    Ok((seen, hidden))
}

/// Refuses a name that no account has, in words of accounts.
async fn known(name: &str, client: &Client) -> Result<(), Problem> {
    let missing = || Problem::new(&messages::NO_ACCOUNT, &[&name]);
    if !is_name(name) {
        return Err(missing());
    }
    match client.get(&uri::account(name)).await {
        Err(problem) if problem.is_missing() => Err(missing()),
        outcome => outcome.map(drop),
    }
}

/// A table of accounts.
fn accounts(accounts: &[Account]) -> String {
    let row = |account: &Account| {
        let enabled = state(&if account.enabled { "yes" } else { "no" });
        let note = if account.must_change { "has to change its password" } else { "" };
        vec![account.name.clone(), account.role.to_string(), enabled, note.to_owned()]
    };
    let rows: Vec<_> = accounts.iter().map(row).collect();
    table(&["ACCOUNT", "ROLE", "ENABLED", ""], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_of_others_are_links() {
        let own = json!({
            "UserName": "ana", "RoleId": "Operator", "Enabled": true,
            "PasswordChangeRequired": false, "Oem": { "Palisade": { "PasswordGeneration": 1 } },
        });
        let link = json!({ "@odata.id": "/redfish/v1/AccountService/Accounts/root" });
        let collection = json!({ "Members": [own, link] });
        let (seen, hidden) = parted(&collection).expect("is read");
        assert_eq!(seen.iter().map(|own| own.name.as_str()).collect::<Vec<_>>(), ["ana"]);
        assert_eq!(hidden, ["/redfish/v1/AccountService/Accounts/root"]);
    }

    #[test]
    fn roles_are_read_in_any_case() {
        for text in ["ReadOnly", "readonly", "read-only", "READ_ONLY"] {
            assert_eq!(role(text), Ok(Role::ReadOnly), "{text}");
        }
        assert!(role("root").is_err());
    }
}
