//! What a new export takes, by fabric.

use super::{
    ABOUT_OEM, Body, CONNECTION_TYPE, EXPORTED, MOST_NAMES, NAMES, Takes, body, may, must,
};
use crate::routes::{Method, Resource};

pub(super) const NVME_EXPORT: Body = body(
    Method::Post,
    Resource::Connections,
    "nvme",
    "Exports a volume over NVMe/TCP.",
    &[
        CONNECTION_TYPE,
        EXPORTED,
        must(
            "Oem",
            Takes::Object(&[must(
                "Palisade",
                Takes::Object(&[
                    must(
                        "Listeners",
                        Takes::List(&Takes::Text, 1, MOST_NAMES),
                        "Addresses with ports to listen at.",
                    ),
                    may("Hosts", NAMES, "Qualified names of the hosts that may connect."),
                    may("AnyHost", Takes::Truth, "Whether any host may connect."),
                    may("Subsystem", Takes::Text, "The subsystem's qualified name."),
                    may("Advertise", NAMES, "Addresses with ports that discovery tells."),
                ]),
                ABOUT_OEM,
            )]),
            ABOUT_OEM,
        ),
    ],
);

pub(super) const NBD_EXPORT: Body = body(
    Method::Post,
    Resource::Connections,
    "nbd",
    "Exports a volume over NBD.",
    &[
        CONNECTION_TYPE,
        EXPORTED,
        must(
            "Oem",
            Takes::Object(&[must(
                "Palisade",
                Takes::Object(&[must(
                    "Listeners",
                    Takes::List(&Takes::Text, 1, 1),
                    "An address with a port, or `unix:` and a path.",
                )]),
                ABOUT_OEM,
            )]),
            ABOUT_OEM,
        ),
    ],
);

pub(super) const ISCSI_EXPORT: Body = body(
    Method::Post,
    Resource::Connections,
    "iscsi",
    "Exports a volume over iSCSI.",
    &[
        CONNECTION_TYPE,
        EXPORTED,
        must(
            "Oem",
            Takes::Object(&[must(
                "Palisade",
                Takes::Object(&[
                    must(
                        "Portals",
                        Takes::List(&Takes::Text, 1, MOST_NAMES),
                        "Addresses with ports to listen at.",
                    ),
                    must(
                        "Initiators",
                        Takes::List(&Takes::Text, 1, MOST_NAMES),
                        "Names of the initiators that may log in.",
                    ),
                    may("Advertise", NAMES, "Addresses with ports that initiators are told."),
                    may("User", Takes::Text, "The name by which initiators log in (CHAP)."),
                    may("Secret", Takes::Secret, "The secret of that. It is never shown."),
                    may(
                        "Server",
                        Takes::Word(
                            "IscsiServer",
                            &[("Lio", "The kernel's LIO."), ("Tgt", "tgt.")],
                        ),
                        "Who is to serve it; whoever can if absent.",
                    ),
                ]),
                ABOUT_OEM,
            )]),
            ABOUT_OEM,
        ),
    ],
);

pub(super) const FC_EXPORT: Body = body(
    Method::Post,
    Resource::Connections,
    "fc",
    "Exports a volume at a Fibre Channel port.",
    &[
        CONNECTION_TYPE,
        EXPORTED,
        must(
            "Oem",
            Takes::Object(&[must(
                "Palisade",
                Takes::Object(&[
                    must("Port", Takes::Text, "The port's worldwide name."),
                    must(
                        "Initiators",
                        Takes::List(&Takes::Text, 1, MOST_NAMES),
                        "Who may have it: worldwide names of ports; by NVMe, qualified names.",
                    ),
                    may(
                        "Protocol",
                        Takes::Word(
                            "FibreChannelProtocol",
                            &[("Fcp", "SCSI, by FCP."), ("Nvme", "NVMe, by FC-NVMe.")],
                        ),
                        "By what it is served; by FCP if absent.",
                    ),
                ]),
                ABOUT_OEM,
            )]),
            ABOUT_OEM,
        ),
    ],
);

pub(super) const LOCAL_EXPORT: Body = body(
    Method::Post,
    Resource::Connections,
    "local",
    "Makes a volume a block device or a file of the machine.",
    &[
        CONNECTION_TYPE,
        EXPORTED,
        may(
            "Oem",
            Takes::Object(&[may(
                "Palisade",
                Takes::Object(&[
                    may("File", Takes::Text, "The path of the file; without it, a block device."),
                    may("Ublk", Takes::Truth, "A block device by ublk, or none."),
                    may(
                        "Socket",
                        Takes::Text,
                        "The path of a socket for a virtual machine (vhost-user).",
                    ),
                ]),
                ABOUT_OEM,
            )]),
            ABOUT_OEM,
        ),
    ],
);
