//! What a new share takes, a change of one, and one of a user.

use super::{ABOUT_OEM, Body, NAME, NAMES, Property, Takes, act, body, may, must};
use crate::routes::{Method, Resource};

const SMB: Property = may("Smb", Takes::Truth, "Whether it is shared by SMB.");
const NFS: Property = may("Nfs", Takes::Truth, "Whether it is shared by NFS.");
const READ_ONLY: Property = may("ReadOnly", Takes::Truth, "Whether nobody may write.");
const SMB_USERS: Property = may(
    "SmbUsers",
    NAMES,
    "Users that may have it by SMB, `NAME` or `NAME:ro`; none: all users of the file system.",
);
const NFS_CLIENTS: Property = may(
    "NfsClients",
    NAMES,
    "Clients that may have it by NFS: an address or `ADDRESS/BITS`, with `:ro` only to read.",
);
const SMB_LISTEN: Property =
    may("SmbListen", Takes::Text, "The address with a port of SMB, for all of the file system.");
const NFS_LISTEN: Property =
    may("NfsListen", Takes::Text, "The address with a port of NFS, for all of the file system.");

/// How a share is wanted.
const TERMS: [Property; 7] = [SMB, NFS, READ_ONLY, SMB_USERS, NFS_CLIENTS, SMB_LISTEN, NFS_LISTEN];

const USER: Property = must("UserName", Takes::Text, "The user's name.");
const PASSWORD: Property = must("Password", Takes::Secret, "The password. It is never shown.");

pub(super) const SHARE_FILE_SYSTEM: Body = body(
    Method::Post,
    Resource::FileSystems,
    "",
    "Shares a volume's file system, which is made first where that is asked for.",
    &[must(
        "Oem",
        Takes::Object(&[must(
            "Palisade",
            Takes::Object(&[
                must("Volume", Takes::Link(Resource::Volume), "The volume."),
                must("Name", Takes::Text, "The share's name."),
                may(
                    "Format",
                    Takes::Word("FileSystemType", &[("xfs", "XFS."), ("ext4", "ext4.")]),
                    "Which file system is made; if absent, the volume has one.",
                ),
                may("Overwrite", Takes::Truth, "Whether what the volume holds may be lost."),
                SMB,
                NFS,
                READ_ONLY,
                SMB_USERS,
                NFS_CLIENTS,
                SMB_LISTEN,
                NFS_LISTEN,
            ]),
            ABOUT_OEM,
        )]),
        ABOUT_OEM,
    )],
);

pub(super) const CREATE_SHARE: Body = body(
    Method::Post,
    Resource::FileShares,
    "",
    "Makes another share of the file system.",
    &[
        NAME,
        may("Oem", Takes::Object(&[may("Palisade", Takes::Object(&TERMS), ABOUT_OEM)]), ABOUT_OEM),
    ],
);

pub(super) const SET_SHARE: Body = body(
    Method::Patch,
    Resource::FileShare,
    "",
    "Changes a share. What is absent stays; lists are in the place of those that were there.",
    &[may("Oem", Takes::Object(&[may("Palisade", Takes::Object(&TERMS), ABOUT_OEM)]), ABOUT_OEM)],
);

pub(super) const ADD_USER: Body = act(
    Resource::AddShareUser,
    "Adds a user, who can have the file system's shares by SMB.",
    &[USER, PASSWORD],
);

pub(super) const SET_USER_PASSWORD: Body =
    act(Resource::SetShareUserPassword, "Gives a user another password.", &[USER, PASSWORD]);

pub(super) const DELETE_USER: Body =
    act(Resource::DeleteShareUser, "Deletes a user. The files of the user stay.", &[USER]);
