//! How shares are told: as JSON, in tables, and with what clients type to have them.

use super::volume_of;
use crate::output::{self, printable, state};
use ::shares::{NFS_PORT, SMB_PORT};
use redfish::dates;
use redfish::view::{
    ExportHealth, FileSystem, Protocol, ServiceState, Share, ShareProtocol, ShareUser,
};
use serde::Serialize;
use std::net::IpAddr;
use units::format_size;

/// A share with what is of its file system.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Shown {
    /// Its name.
    pub name: String,
    /// The volume, as `ARRAY/VOLUME`.
    pub volume: String,
    /// Whether nobody may write.
    pub read_only: bool,
    /// Users that may have it by SMB, `NAME` or `NAME:ro`; none: all users.
    pub smb_users: Vec<String>,
    /// Clients that may have it by NFS, `CIDR` or `CIDR:ro`.
    pub nfs_clients: Vec<String>,
    /// The file system, whose other shares have the same.
    pub filesystem: Mounted,
    /// How it is by each protocol.
    pub protocols: Vec<ShareProtocol>,
}

/// A volume's file system.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Mounted {
    /// Which it is: `xfs` or `ext4`; null: not known yet.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Whether it is mounted.
    pub mounted: bool,
    /// Whether nothing can be written.
    pub read_only: bool,
    /// Its bytes.
    pub size_bytes: Option<u64>,
    /// Those of them that are used.
    pub used_bytes: Option<u64>,
    /// Where SMB is to be reached: `ADDR:PORT`.
    pub smb_listen: String,
    /// Where NFS is to be reached: `ADDR:PORT`.
    pub nfs_listen: String,
    /// Its users by SMB.
    pub users: Vec<ShareUser>,
    /// How it is.
    pub health: ExportHealth,
}

impl Shown {
    /// A share of a file system.
    pub fn new(of: &FileSystem, share: &Share) -> Self {
        let share = share.clone();
        Self {
            name: share.name,
            volume: volume_of(of),
            read_only: share.read_only,
            smb_users: share.smb_users,
            nfs_clients: share.nfs_clients,
            filesystem: Mounted {
                kind: of.kind.clone(),
                mounted: of.mounted,
                read_only: of.read_only,
                size_bytes: of.size_bytes,
                used_bytes: of.used_bytes,
                smb_listen: of.smb_listen.clone(),
                nfs_listen: of.nfs_listen.clone(),
                users: of.users.clone(),
                health: of.health.clone(),
            },
            protocols: share.protocols,
        }
    }

    fn is_by(&self, protocol: Protocol) -> bool {
        self.protocols.iter().any(|own| own.protocol == protocol)
    }
}

/// All shares of a file system.
pub fn of_system(of: &FileSystem) -> impl Iterator<Item = Shown> {
    of.shares.iter().map(|share| Shown::new(of, share))
}

/// How clients find a share by one protocol, and why: it is not better than its file system.
fn standing<'a>(of: &'a ExportHealth, by: &'a ExportHealth) -> (ServiceState, Option<&'a str>) {
    use ServiceState::{Failed, Ok, Starting};
    let (state, worse) = match (of.state, by.state) {
        (Failed, _) => (Failed, of),
        (_, Failed) => (Failed, by),
        (Starting, Ok) => (Starting, of),
        (_, Starting) => (Starting, by),
        (Ok, Ok) => (Ok, by),
    };
    let problem = worse.problem.as_ref().or(by.problem.as_ref()).or(of.problem.as_ref());
    (state, problem.map(String::as_str))
}

/// The headings of [`rows`].
const HEADINGS: [&str; 7] = ["SHARE", "VOLUME", "BY", "STATE", "CLIENTS", "URL", ""];

/// A row for each protocol of a share.
fn rows(share: &Shown) -> Vec<Vec<String>> {
    let row = |own: &ShareProtocol| {
        let (how, problem) = standing(&share.filesystem.health, &own.health);
        vec![
            share.name.clone(),
            share.volume.clone(),
            own.protocol.word().to_owned(),
            state(&how),
            own.clients.len().to_string(),
            own.url.clone(),
            problem.unwrap_or_default().to_owned(),
        ]
    };
    share.protocols.iter().map(row).collect()
}

/// A table of shares.
pub fn table(shares: &[Shown]) -> String {
    output::table(&HEADINGS, &shares.iter().flat_map(rows).collect::<Vec<_>>())
}

/// The same within so many columns, for a summary: in the place of its URL what is wrong with one;
/// empty if there are none.
pub fn table_within(columns: usize, systems: &[&FileSystem]) -> String {
    let shares = systems.iter().flat_map(|of| of_system(of));
    let short = |mut row: Vec<String>| {
        let problem = row.pop().filter(|problem| !problem.is_empty());
        if let (Some(problem), Some(url)) = (problem, row.last_mut()) {
            *url = problem;
        }
        // A state has its colour.
        let cell = |(at, cell): (usize, String)| if at == 3 { cell } else { printable(&cell) };
        row.into_iter().enumerate().map(cell).collect()
    };
    let rows: Vec<Vec<String>> = shares.flat_map(|share| rows(&share)).map(short).collect();
    if rows.is_empty() {
        return String::new();
    }
    let headings = HEADINGS.get(..6).unwrap_or(&HEADINGS);
    output::table_within(columns, headings, &rows, &[0, 1, 5])
}

/// All about a share.
pub fn detail(share: &Shown) -> String {
    let mut text = table(core::slice::from_ref(share));
    let mut line = |what: &str, value: String| text += &format!("\n{what:<13}{value}");
    line("file system", of_filesystem(&share.filesystem));
    if share.read_only {
        line("access", "read only".to_owned());
    }
    for own in &share.protocols {
        let word = own.protocol.word();
        let version = own.version.as_ref().map(|text| format!(" {text}")).unwrap_or_default();
        let asked = match own.health.checked {
            Some(at) => format!("asked as a client {}", dates::text(at)),
            None => "not asked as a client yet".to_owned(),
        };
        line(word, format!("{}{version}, {asked}", own.server));
        match own.protocol {
            Protocol::Smb => line("smb users", users(share)),
            Protocol::Nfs => line("nfs clients", listed(&share.nfs_clients, "none")),
        }
        for client in &own.clients {
            line("connected", format!("{client} by {word}"));
        }
    }
    let of = &share.filesystem.health;
    if of.state == ServiceState::Failed {
        line("problem", of.problem.clone().unwrap_or_else(|| "not known".to_owned()));
    }
    let by = share.protocols.iter().filter(|own| own.health.state == ServiceState::Failed);
    for own in by.clone() {
        let problem = own.health.problem.as_deref().unwrap_or("not known");
        line("problem", format!("by {}: {problem}", own.protocol.word()));
    }
    if of.state == ServiceState::Failed || by.count() > 0 {
        line("what to do", ExportHealth::ACTION.to_owned());
    }
    text
}

/// A file system in words.
fn of_filesystem(own: &Mounted) -> String {
    let mut parts = vec![own.kind.clone().unwrap_or_else(|| "not known yet".to_owned())];
    parts.push(if own.mounted { "mounted" } else { "not mounted" }.to_owned());
    if own.read_only {
        parts.push("nothing can be written".to_owned());
    }
    match (own.used_bytes, own.size_bytes) {
        (Some(used), Some(size)) => {
            parts.push(format!("{} of {} used", format_size(used), format_size(size)));
        }
        (None, Some(size)) => parts.push(format_size(size)),
        (_, None) => {}
    }
    parts.join(", ")
}

fn listed(all: &[String], none: &str) -> String {
    if all.is_empty() { none.to_owned() } else { all.join(", ") }
}

/// Who may have a share by SMB.
fn users(share: &Shown) -> String {
    if !share.smb_users.is_empty() {
        return share.smb_users.join(", ");
    }
    let all: Vec<String> = share.filesystem.users.iter().map(|user| user.name.clone()).collect();
    match all.is_empty() {
        true => "all, and there are none".to_owned(),
        false => format!("all: {}", all.join(", ")),
    }
}

/// Stands for an address where a server listens on all that its machine has.
const ANY_ADDRESS: &str = "ADDR";

/// The port that clients take by themselves.
const fn usual_port(protocol: Protocol) -> u16 {
    match protocol {
        Protocol::Smb => SMB_PORT,
        Protocol::Nfs => NFS_PORT,
    }
}

/// Where a URL leads: the host, and the port if it has one (RFC 3986, section 3.2).
fn place(url: &str) -> Option<(&str, Option<u16>)> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split('/').next().unwrap_or(rest);
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port = match port.strip_prefix(':') {
        Some(port) => Some(port.parse().ok()?),
        None => None,
    };
    (!host.is_empty()).then_some((host, port))
}

/// A text as a shell takes it for one word (POSIX, "Shell Command Language", section 2.2.2).
fn word(text: &str) -> String {
    let is_plain = |one: char| one.is_alphanumeric() || "-_./:,=%@".contains(one);
    match text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// What clients type to have a share, where `DIR` is a directory there: mount.cifs(8) and
/// smbclient(1), mount.nfs(8).
pub fn connect(share: &Shown) -> Vec<String> {
    let mut lines = Vec::new();
    for own in &share.protocols {
        let Some((host, port)) = place(&own.url) else { continue };
        let address = host.parse().ok();
        let is_any = address.is_some_and(|address: IpAddr| address.is_unspecified());
        let host = if is_any { ANY_ADDRESS } else { host };
        let port = port.filter(|port| *port != usual_port(own.protocol));
        match own.protocol {
            Protocol::Smb => {
                let (path, user) = (word(&format!("//{host}/{}", share.name)), a_user(share));
                let [mount, ask] = match port {
                    Some(port) => [format!(",port={port}"), format!(" -p {port}")],
                    None => [String::new(), String::new()],
                };
                lines.push(format!("mount -t cifs {path} DIR -o username={user}{mount}"));
                lines.push(format!("smbclient {path} -U {user}{ask}"));
            }
            Protocol::Nfs => {
                let is_long = !is_any && address.is_some_and(|address| address.is_ipv6());
                let host = if is_long { format!("[{host}]") } else { host.to_owned() };
                let path = word(&format!("{host}:/{}", share.name));
                let more = port.map(|port| format!(" -o port={port}")).unwrap_or_default();
                lines.push(format!("mount -t nfs4 {path} DIR{more}"));
            }
        }
    }
    lines
}

/// A user that may have a share, or what stands for one.
fn a_user(share: &Shown) -> &str {
    let allowed = share.smb_users.first().map(|own| own.strip_suffix(":ro").unwrap_or(own));
    let any = || share.filesystem.users.first().map(|user| user.name.as_str());
    allowed.or_else(any).unwrap_or("USER")
}

/// What is to be done until clients have a share: who is not let in yet, and what they type.
pub fn what_next(share: &Shown, connect: &[String]) -> String {
    let mut text = String::new();
    let name = word(&share.name);
    if share.is_by(Protocol::Smb) {
        let there = &share.filesystem.users;
        let add = |user: &str| format!("palisade share user add {user} --share {name}");
        if share.smb_users.is_empty() && there.is_empty() {
            text += &format!("\nby SMB nobody is let in until: {}", add("NAME"));
        }
        for user in share.smb_users.iter().map(|own| own.strip_suffix(":ro").unwrap_or(own)) {
            if there.iter().all(|own| own.name != user) {
                text += &format!("\nby SMB {user} is let in once added: {}", add(user));
            }
        }
    }
    if share.is_by(Protocol::Nfs) && share.nfs_clients.is_empty() {
        let set = format!("palisade share set {name} --nfs-client CIDR");
        text += &format!("\nby NFS nobody is let in until: {set}");
    }
    if !connect.is_empty() {
        let on = match connect.iter().any(|line| line.contains(ANY_ADDRESS)) {
            true => format!("on the client, where {ANY_ADDRESS} is an address of this machine:"),
            false => "on the client:".to_owned(),
        };
        text += &format!("\n{on}\n    {}", connect.join("\n    "));
    }
    text
}

#[cfg(test)]
#[path = "shown_tests.rs"]
mod tests;
