//! Drives behind NVMe over Fabrics.

use serde::Serialize;

/// A drive behind NVMe over Fabrics.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Remote {
    /// The namespace's identifier of 128 bits (NGUID), as hexadecimal digits.
    pub nguid: Option<String>,
    /// Its UUID.
    pub uuid: Option<String>,
    /// The paths of its subsystem.
    pub paths: Vec<RemotePath>,
}

/// A path to a drive behind NVMe over Fabrics.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RemotePath {
    /// Address and port of the controller.
    pub address: String,
    /// What becomes of requests by it.
    pub state: PathState,
    /// How the controller comes to the namespace, as it said last.
    pub ana: Option<PathAccess>,
    /// The controller's number in its subsystem, while the path is live.
    pub cntlid: Option<u16>,
    /// I/O queues that are connected.
    pub queues: u16,
    /// How often an association ended, or could not begin.
    pub errors: u64,
    /// Associations behind the first.
    pub reconnects: u64,
    /// What was wrong last.
    pub last_error: Option<String>,
    /// The time until it is tried again, if it will be.
    pub next_try_seconds: Option<u64>,
}

/// What becomes of requests by a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathState {
    /// They are carried.
    Live,
    /// It is being connected, or will be.
    Connecting,
    /// What went by it may still be carried out.
    Fencing,
    /// It is not tried any more.
    Lost,
}

/// How a controller comes to a namespace (ANA).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathAccess {
    /// As well as any.
    Optimized,
    /// Not as well as others.
    NonOptimized,
    /// Not now.
    Inaccessible,
    /// Never again.
    PersistentLoss,
    /// It is changing.
    Change,
}
