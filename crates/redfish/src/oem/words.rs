//! Enumerations: the words of [`crate::view`], as Redfish writes them.

use crate::view;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An enumeration with the same words as one of the view's.
macro_rules! words {
    (
        $(#[doc = $doc:literal])+
        $name:ident { $($(#[doc = $means:literal])+ $word:ident,)+ }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
        pub enum $name {
            $($(#[doc = $means])+ $word,)+
        }

        impl From<view::$name> for $name {
            fn from(own: view::$name) -> Self {
                match own {
                    $(view::$name::$word => Self::$word,)+
                }
            }
        }

        impl From<$name> for view::$name {
            fn from(own: $name) -> Self {
                match own {
                    $($name::$word => Self::$word,)+
                }
            }
        }
    };
}

words! {
    /// How an array is.
    ArrayState {
        /// All drives count.
        Optimal,
        /// Redundancy is less than it should be; all data is there.
        Degraded,
        /// More drives are missing than redundancy covers.
        Failed,
        /// Found on drives, not running.
        Stopped,
    }
}

words! {
    /// By what a volume is served.
    ExportKind {
        /// NBD.
        Nbd,
        /// NVMe/TCP.
        NvmeTcp,
        /// A file of this machine, by FUSE.
        Fuse,
        /// A loop device of this machine.
        Loop,
        /// A ublk device of this machine.
        Ublk,
        /// A virtual machine of this machine, over vhost-user.
        VhostUser,
        /// iSCSI.
        Iscsi,
        /// Fibre Channel, by FCP.
        Fc,
        /// Fibre Channel, by NVMe.
        NvmeFc,
    }
}

words! {
    /// Who serves an iSCSI target.
    IscsiServer {
        /// The kernel's LIO.
        Lio,
        /// tgt.
        Tgt,
    }
}

words! {
    /// How something is that others than the daemon serve.
    ServiceState {
        /// A client can use it.
        Ok,
        /// It is not known yet.
        Starting,
        /// No client can use it.
        Failed,
    }
}

words! {
    /// By what a share is served.
    Protocol {
        /// SMB.
        Smb,
        /// NFS.
        Nfs,
    }
}

words! {
    /// What becomes of requests by a path.
    PathState {
        /// They are carried.
        Live,
        /// It is being connected, or will be.
        Connecting,
        /// What went by it may still be carried out.
        Fencing,
        /// It is not tried any more.
        Lost,
    }
}

words! {
    /// How a controller comes to a namespace (ANA).
    PathAccess {
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
}

/// How well something is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum Health {
    /// Nothing is wrong.
    #[serde(rename = "OK")]
    Ok,
    /// Something should be seen to.
    Warning,
    /// Data or service is in danger.
    Critical,
}

impl From<view::Health> for Health {
    fn from(own: view::Health) -> Self {
        match own {
            view::Health::Ok => Self::Ok,
            view::Health::Warning => Self::Warning,
            view::Health::Critical => Self::Critical,
        }
    }
}

impl From<Health> for view::Health {
    fn from(own: Health) -> Self {
        match own {
            Health::Ok => Self::Ok,
            Health::Warning => Self::Warning,
            Health::Critical => Self::Critical,
        }
    }
}

words! {
    /// How a slot is.
    SlotState {
        /// Its drive counts.
        InSync,
        /// Its drive is being filled.
        Rebuilding,
        /// Its drive was taken out of service.
        Failed,
        /// Its drive is not there.
        Missing,
    }
}

words! {
    /// What a task does.
    TaskKind {
        /// Fills a replaced drive.
        Rebuild,
        /// Makes parity and copies right after a crash.
        Resync,
        /// Compares parity and copies with the data.
        Scrub,
    }
}

words! {
    /// How a task is.
    TaskState {
        /// It goes on.
        Running,
        /// It can't go on. It tries again from time to time.
        Stuck,
        /// It waits until it is told to go on, also over restarts.
        Paused,
    }
}

words! {
    /// How background work ended.
    JobEnd {
        /// It came to its end.
        Completed,
        /// A person ended it.
        Cancelled,
        /// Its array was stopped, or lost what it needs.
        Interrupted,
    }
}

words! {
    /// Why a task is stuck.
    Hindrance {
        /// A drive can't read blocks that no other drive can give.
        Unreadable,
        /// Drives are missing, or their redundancy is not right yet.
        Unavailable,
        /// The list of lost blocks is full.
        ListFull,
    }
}

words! {
    /// Why a range can't be given back.
    UnreadableReason {
        /// A drive can't read it now and nothing else gives it. If that changes it is there again.
        Media,
        /// Lost: a drive was rebuilt while another could not read what that needed.
        Rebuild,
        /// Lost: a resync needed blocks that a drive could not read.
        Resync,
        /// Lost: blocks of its stripe were written while nothing could give it.
        Write,
        /// Lost: it was being written at a crash after which its drive was gone.
        Crash,
    }
}

words! {
    /// What the daemon makes of a drive.
    DriveState {
        /// Part of a running array.
        InUse,
        /// Holds the record of an array that does not run.
        Found,
        /// Excluded by a running array, or holds an old record of one.
        Failed,
        /// Holds something that is not Palisade's.
        Foreign,
        /// Holds nothing known.
        Free,
        /// Can't be opened or read.
        Unusable,
    }
}

words! {
    /// Whether a part is there.
    ShelfState {
        /// It is there and works.
        Enabled,
        /// It is there and does not work, or is switched off.
        Offline,
        /// It is not there.
        Absent,
    }
}

words! {
    /// What a part of a shelf is.
    ShelfKind {
        /// An I/O module.
        Module,
        /// A power supply.
        Supply,
        /// A fan.
        Fan,
        /// A sensor of nothing that is told by itself.
        Sensor,
    }
}

words! {
    /// A unit.
    ShelfUnit {
        /// Degrees Celsius.
        Celsius,
        /// Turns a minute.
        Rpm,
        /// Per cent.
        Percent,
        /// Watts.
        Watts,
        /// Volts.
        Volts,
        /// Amperes.
        Amperes,
    }
}
