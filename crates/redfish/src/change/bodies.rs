//! The table of bodies: what each POST and PATCH takes. The parser reads bodies by hand; tests hold
//! it against this table, row by row.
//!
//! OpenAPI's request bodies are made of it, and the resources that describe actions (`ActionInfo`),
//! and the actions in our own schemas.
//!
//! Invariant: a method that takes one of several forms of body has a row for each.

mod array;
mod exports;
mod fabric;
mod shares;
mod smtp;

use crate::change::{action_name, certificate, events};
use crate::routes::{Method, Resource};
use array::{ASSEMBLE, SAME_DRIVE, SHARED};
use exports::{FC_EXPORT, ISCSI_EXPORT, LOCAL_EXPORT, NBD_EXPORT, NVME_EXPORT};
use fabric::{CONNECT, DISCONNECT, DISCOVER};
use shares::{
    ADD_USER, CREATE_SHARE, DELETE_USER, SET_SHARE, SET_USER_PASSWORD, SHARE_FILE_SYSTEM,
};
use smtp::SMTP;

/// What a property takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// A text.
    Text,
    /// A password, which no refusal tells.
    Secret,
    /// A word of an enumeration: its name, and its words with what they mean.
    Word(&'static str, &'static [(&'static str, &'static str)]),
    /// A whole number within these.
    Whole(u64, u64),
    /// A yes or no.
    Truth,
    /// An `http` or `https` URI.
    Uri,
    /// An address of mail, or an empty text.
    Address,
    /// A `mailto` URI of one address.
    MailUri,
    /// Headers of HTTP: a list of objects, each property of which is one. No refusal tells them.
    Headers,
    /// A link to a resource of this kind.
    Link(Resource),
    /// A list: of what, and of so many at least and at most.
    List(&'static Takes, usize, usize),
    /// An object with these properties and no others.
    Object(&'static [Property]),
}

/// A property of a body, or a parameter of an action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Property {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// Whether it must be given.
    pub must: bool,
    /// What it means.
    pub about: &'static str,
}

/// A form of body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Body {
    /// The method.
    pub method: Method,
    /// What it is sent to.
    pub resource: Resource,
    /// The form's name, where there is more than one: of exports that of the fabric.
    pub form: &'static str,
    /// What the request does.
    pub about: &'static str,
    /// What it takes.
    pub properties: &'static [Property],
}

/// So many paths can be looked for at once.
pub(super) const MOST_PATHS: usize = 4096;

/// The highest number of a power state (NVMe Base 2.0, figure 275: `NPSS`).
pub(super) const LAST_POWER_STATE: u64 = 31;

/// More drives than any array has.
pub(super) const MOST_DRIVES: usize = 4096;

/// More listeners, or hosts, than any export has.
pub(super) const MOST_NAMES: usize = 4096;

const TCP_PORT: Takes = Takes::Whole(1, 65_535);
const SLOT: Takes = Takes::Whole(0, 65_535);
const BYTES: Takes = Takes::Whole(1, u64::MAX);
const DRIVE: Takes = Takes::Link(Resource::Drive);
const OVERWRITTEN: Takes = Takes::List(&DRIVE, 0, MOST_DRIVES);
const NAMES: Takes = Takes::List(&Takes::Text, 0, MOST_NAMES);

const RAID: Takes = Takes::Word(
    "RAIDType",
    &[
        ("RAID0", "Strips without redundancy."),
        ("RAID1", "Copies on all drives."),
        ("RAID5", "One strip of parity in each stripe."),
        ("RAID6", "Two strips of parity in each stripe."),
        ("RAID10", "Strips, each on two drives."),
        ("None", "Drives one after another."),
    ],
);

const VOLUME_TYPE: Takes = Takes::Word(
    "VolumeType",
    &[
        ("NonRedundant", "RAID 0, or drives one after another."),
        ("RawDevice", "Drives one after another."),
        ("Mirrored", "RAID 1."),
        ("StripedWithParity", "RAID 5 or 6."),
        ("SpannedMirrors", "RAID 10."),
    ],
);

const LEVEL: Takes = Takes::Word(
    "Level",
    &[
        ("0", "Strips without redundancy."),
        ("1", "Copies on all drives."),
        ("5", "One strip of parity in each stripe."),
        ("6", "Two strips of parity in each stripe."),
        ("10", "Strips, each on two drives."),
        ("jbod", "Drives one after another."),
    ],
);

const fn may(name: &'static str, takes: Takes, about: &'static str) -> Property {
    Property { name, takes, must: false, about }
}

const fn must(name: &'static str, takes: Takes, about: &'static str) -> Property {
    Property { name, takes, must: true, about }
}

const NAME: Property = must("Name", Takes::Text, "The name.");
const ABOUT_OEM: &str = "What Redfish lacks.";
const ABOUT_OVERWRITE: &str = "Drives whose foreign content may be destroyed.";
const ABOUT_LEVEL: &str = "The level, in the product's own word.";
const OVERWRITE: Property = may("Overwrite", OVERWRITTEN, ABOUT_OVERWRITE);

const STRIP: Property = may(
    "StripSizeBytes",
    Takes::Whole(0, u32::MAX as u64),
    "The size of a strip; 65536 if absent.",
);

const BLOCK: Property = may(
    "BlockSizeBytes",
    Takes::Whole(1, u32::MAX as u64),
    "The size of a block; that of the drives if absent.",
);

const ON_DRIVES: Property = must(
    "CapacitySources",
    Takes::List(
        &Takes::Object(&[must(
            "ProvidingDrives",
            Takes::Object(&[must(
                "Members",
                Takes::List(&DRIVE, 1, MOST_DRIVES),
                "The drives, by slot.",
            )]),
            "What the array is made of.",
        )]),
        1,
        1,
    ),
    "What the array is made of.",
);

const IN_POOL: Property = must(
    "CapacitySources",
    Takes::List(
        &Takes::Object(&[must(
            "ProvidingPools",
            Takes::Object(&[must(
                "Members",
                Takes::List(&Takes::Link(Resource::Pool), 1, 1),
                "The array.",
            )]),
            "Where the volume lies.",
        )]),
        1,
        1,
    ),
    "Where the volume lies.",
);

const EXPORTED: Property = must(
    "VolumeInfo",
    Takes::List(
        &Takes::Object(&[must("Volume", Takes::Link(Resource::Volume), "The volume.")]),
        1,
        1,
    ),
    "What is exported.",
);

const USER_NAME: Property = must("UserName", Takes::Text, "The account's name.");

const ROLE: Takes = Takes::Word(
    "RoleId",
    &[
        ("Administrator", "May do everything."),
        ("Operator", "May change arrays, volumes and exports."),
        ("ReadOnly", "May read."),
    ],
);

const ENABLED: Property = may("Enabled", Takes::Truth, "Whether the account can log in.");

const MUST_CHANGE: Property = may(
    "PasswordChangeRequired",
    Takes::Truth,
    "Whether the account has to change its password before it can do anything else.",
);

const CONTEXT: Property = may("Context", Takes::Text, "What the client calls it.");

const RETRIES: Property = may(
    "DeliveryRetryPolicy",
    Takes::Word(
        "DeliveryRetryPolicy",
        &[
            ("TerminateAfterRetries", "The subscription is deleted after some attempts."),
            ("SuspendRetries", "The subscription is suspended after some attempts."),
            ("RetryForever", "The receiver is tried for ever."),
        ],
    ),
    "What becomes of the subscription if its receiver can't be reached; RetryForever if absent.",
);

const VERIFY: Property = may(
    "VerifyCertificate",
    Takes::Truth,
    "Whether the receiver's certificate has to be right; true if absent.",
);

const HEADERS: Property =
    may("HttpHeaders", Takes::Headers, "Headers that are sent with each request.");

const SUBSCRIPTION_TYPE: Property = may(
    "SubscriptionType",
    Takes::Word("SubscriptionType", &[("RedfishEvent", "What is told is sent there.")]),
    "How events are delivered.",
);

const EVENT_FORMAT: Property = may(
    "EventFormatType",
    Takes::Word("EventFormatType", &[("Event", "Events.")]),
    "What is delivered.",
);

const SEVERITIES: Property = may(
    "Severities",
    Takes::List(
        &Takes::Word(
            "Severity",
            &[
                ("OK", "As it should be."),
                ("Warning", "Somebody should see to it."),
                ("Critical", "Somebody must see to it now."),
            ],
        ),
        0,
        events::MOST,
    ),
    "How grave; all if absent.",
);

const EVENT_TEXTS: Takes = Takes::List(&Takes::Text, 0, events::MOST);

const CONNECTION_TYPE: Property = may(
    "ConnectionType",
    Takes::Word("ConnectionType", &[("Storage", "A connection to a volume.")]),
    "The kind of connection.",
);

const fn body(
    method: Method,
    resource: Resource,
    form: &'static str,
    about: &'static str,
    properties: &'static [Property],
) -> Body {
    Body { method, resource, form, about, properties }
}

const fn act(resource: Resource, about: &'static str, properties: &'static [Property]) -> Body {
    body(Method::Post, resource, "", about, properties)
}

const FAIL: &str = "Takes a drive out of service. Either Drive or Slot must be given.";

/// All of them, in the order of the routes.
pub const BODIES: &[Body] = &[
    act(
        Resource::Acknowledge,
        "Notes that somebody has seen an alert. It is not told again until it is graver or over.",
        &[must("Id", Takes::Text, "The alert's identifier.")],
    ),
    act(
        Resource::TestAlerts,
        "Sends a message to each recipient of mail and each receiver, and tells what came of it.",
        &[],
    ),
    act(Resource::Discover, "Asks a discovery service where subsystems are.", DISCOVER),
    act(
        Resource::Connect,
        "Connects a subsystem by a path, or all that a discovery service tells of.",
        CONNECT,
    ),
    act(
        Resource::Disconnect,
        "Disconnects a subsystem: the path that is given, or all.",
        DISCONNECT,
    ),
    act(
        Resource::FindDrives,
        "Looks for drives that the configuration names, and at further paths.",
        &[may("Paths", Takes::List(&Takes::Text, 0, MOST_PATHS), "Further paths to look at.")],
    ),
    body(
        Method::Post,
        Resource::Pools,
        "RAID type",
        "Creates an array.",
        &[
            NAME,
            must("SupportedRAIDTypes", Takes::List(&RAID, 1, 1), "The level, as Swordfish has it."),
            ON_DRIVES,
            may(
                "Oem",
                Takes::Object(&[may(
                    "Palisade",
                    Takes::Object(&[
                        may("Level", LEVEL, ABOUT_LEVEL),
                        STRIP,
                        BLOCK,
                        OVERWRITE,
                        SAME_DRIVE,
                        SHARED,
                    ]),
                    ABOUT_OEM,
                )]),
                ABOUT_OEM,
            ),
        ],
    ),
    body(
        Method::Post,
        Resource::Pools,
        "level",
        "Creates an array.",
        &[
            NAME,
            ON_DRIVES,
            must(
                "Oem",
                Takes::Object(&[must(
                    "Palisade",
                    Takes::Object(&[
                        must("Level", LEVEL, ABOUT_LEVEL),
                        STRIP,
                        BLOCK,
                        OVERWRITE,
                        SAME_DRIVE,
                        SHARED,
                    ]),
                    ABOUT_OEM,
                )]),
                ABOUT_OEM,
            ),
        ],
    ),
    act(Resource::Stop, "Stops the array. Its drives keep what they hold.", &[]),
    act(Resource::Assemble, "Starts an array that was stopped or could not be started.", ASSEMBLE),
    body(Method::Post, Resource::FailDrive, "drive", FAIL, &[must("Drive", DRIVE, "The drive.")]),
    body(
        Method::Post,
        Resource::FailDrive,
        "slot",
        FAIL,
        &[must("Slot", SLOT, "The drive's slot, from 0.")],
    ),
    act(
        Resource::ReplaceDrive,
        "Puts another drive in a slot, and rebuilds it.",
        &[
            must("Slot", SLOT, "The slot, from 0."),
            must("With", DRIVE, "The new drive."),
            OVERWRITE,
        ],
    ),
    act(
        Resource::Scrub,
        "Compares redundancy with the data.",
        &[
            may(
                "Mode",
                Takes::Word(
                    "ScrubMode",
                    &[
                        ("Check", "Wrong strips are only counted."),
                        ("Repair", "Strips that are known to be wrong are written anew."),
                    ],
                ),
                "Whether wrong strips are written anew; Check if absent.",
            ),
            may(
                "TrustData",
                Takes::Truth,
                "With Repair: where nobody can know what is wrong, write what the data says.",
            ),
        ],
    ),
    body(
        Method::Post,
        Resource::Volumes,
        "in an array",
        "Creates a volume in an array.",
        &[NAME, must("CapacityBytes", BYTES, "The volume's size."), IN_POOL],
    ),
    body(
        Method::Post,
        Resource::Volumes,
        "on drives",
        "Creates an array, and a volume of the same name in it.",
        &[
            may("Name", Takes::Text, "The name; one that is free if absent."),
            must("RAIDType", RAID, "The level, as Swordfish has it."),
            may("VolumeType", VOLUME_TYPE, "The same as `RAIDType`, as older clients say it."),
            may("Encrypted", Takes::Truth, "Must be false."),
            may("CapacityBytes", BYTES, "The volume's size; all that the array has if absent."),
            may(
                "StripSizeBytes",
                Takes::Whole(1, u32::MAX as u64),
                "The size of a strip; 65536 if absent.",
            ),
            must(
                "Links",
                Takes::Object(&[must(
                    "Drives",
                    Takes::List(&DRIVE, 1, MOST_DRIVES),
                    "The drives, by slot.",
                )]),
                "What the array is made of.",
            ),
            may(
                "Oem",
                Takes::Object(&[may(
                    "Palisade",
                    Takes::Object(&[
                        may("Level", LEVEL, ABOUT_LEVEL),
                        OVERWRITE,
                        SAME_DRIVE,
                        SHARED,
                    ]),
                    ABOUT_OEM,
                )]),
                ABOUT_OEM,
            ),
        ],
    ),
    body(
        Method::Patch,
        Resource::Volume,
        "",
        "Changes a volume's size.",
        &[must("CapacityBytes", BYTES, "The new size.")],
    ),
    act(Resource::CheckConsistency, "Compares the redundancy of the volume's array.", &[]),
    SHARE_FILE_SYSTEM,
    ADD_USER,
    SET_USER_PASSWORD,
    DELETE_USER,
    CREATE_SHARE,
    SET_SHARE,
    body(
        Method::Patch,
        Resource::Drive,
        "",
        "Switches the drive's indicator on or off.",
        &[must("LocationIndicatorActive", Takes::Truth, "Whether it is to be on.")],
    ),
    act(
        Resource::Wipe,
        "Erases Palisade's records on the drive.",
        &[may("Overwrite", Takes::Truth, "Erase also what is foreign there, or not known.")],
    ),
    act(
        Resource::SetPowerState,
        "Puts an NVMe drive in one of its power states.",
        &[must("State", Takes::Whole(0, LAST_POWER_STATE), "The state's number, from 0.")],
    ),
    act(
        Resource::VerifyLog,
        "Follows the log's chain of hashes through all lines, and tells where it breaks.",
        &[],
    ),
    NVME_EXPORT,
    NBD_EXPORT,
    FC_EXPORT,
    ISCSI_EXPORT,
    LOCAL_EXPORT,
    act(Resource::Suspend, "Lets the job wait.", &[]),
    act(Resource::Resume, "Lets the job go on.", &[]),
    act(Resource::Cancel, "Ends the job.", &[]),
    body(
        Method::Post,
        Resource::Accounts,
        "",
        "Creates an account.",
        &[
            USER_NAME,
            must("Password", Takes::Secret, "The password, of 8 to 128 characters."),
            must("RoleId", ROLE, "What the account may do."),
            ENABLED,
            MUST_CHANGE,
            may(
                "AccountTypes",
                Takes::List(
                    &Takes::Word("AccountType", &[("Redfish", "An account of this service.")]),
                    1,
                    1,
                ),
                "What the account is for.",
            ),
        ],
    ),
    body(
        Method::Patch,
        Resource::Account,
        "",
        "Changes an account. A new password ends its sessions.",
        &[
            may("Password", Takes::Secret, "The password, of 8 to 128 characters."),
            may("RoleId", ROLE, "What the account may do."),
            ENABLED,
            MUST_CHANGE,
            may("Locked", Takes::Truth, "false: nobody waits after wrong passwords of it."),
        ],
    ),
    act(
        Resource::GenerateCsr,
        "Makes a key, and a request for a certificate of it.",
        &[
            must(
                "CertificateCollection",
                Takes::Link(Resource::HttpsCertificates),
                "Where the certificate will be.",
            ),
            must("CommonName", Takes::Text, "The machine's name."),
            may("Organization", Takes::Text, "The organization."),
            may("OrganizationalUnit", Takes::Text, "The part of the organization."),
            may("City", Takes::Text, "The city."),
            may("State", Takes::Text, "The state or province."),
            may("Country", Takes::Text, "The country, in two letters."),
            may(
                "AlternativeNames",
                Takes::List(&Takes::Text, 0, certificate::MOST_NAMES),
                "Names and addresses of the machine.",
            ),
            may(
                "KeyPairAlgorithm",
                Takes::Word("KeyPairAlgorithm", &[("TPM_ALG_ECDSA", "ECDSA.")]),
                "The kind of key.",
            ),
            may(
                "KeyCurveId",
                Takes::Word("KeyCurveId", &[("TPM_ECC_NIST_P256", "NIST P-256.")]),
                "The curve of the key.",
            ),
        ],
    ),
    act(
        Resource::ReplaceCertificate,
        "Replaces the certificate. Without a private key in it the last request's is taken.",
        &[
            must("CertificateString", Takes::Text, "The certificate, as PEM."),
            must(
                "CertificateType",
                Takes::Word(
                    "CertificateType",
                    &[
                        ("PEM", "One certificate."),
                        ("PEMchain", "A certificate, and those that it depends on."),
                    ],
                ),
                "What the text is.",
            ),
            must(
                "CertificateUri",
                Takes::Link(Resource::HttpsCertificate),
                "Which certificate is replaced.",
            ),
        ],
    ),
    act(
        Resource::SubmitTestEvent,
        "Tells an event that says nothing, to try whether events arrive.",
        &[
            must("MessageId", Takes::Text, "Which message the client has in mind."),
            may("Message", Takes::Text, "A text."),
        ],
    ),
    body(
        Method::Patch,
        Resource::EventService,
        "",
        "Changes how mail of alerts is sent. An empty text takes away what is there.",
        &[must("SMTP", Takes::Object(SMTP), "How mail is sent.")],
    ),
    body(
        Method::Post,
        Resource::Subscriptions,
        "mail",
        "Has a recipient told of alerts by mail. Whether mail arrives is not tried first.",
        &[
            must("Destination", Takes::MailUri, "The recipient: `mailto:` and an address."),
            must(
                "Protocol",
                Takes::Word("EventDestinationProtocol", &[("SMTP", "Mail of alerts.")]),
                "How it is told.",
            ),
            CONTEXT,
            SUBSCRIPTION_TYPE,
            EVENT_FORMAT,
            SEVERITIES,
        ],
    ),
    body(
        Method::Post,
        Resource::Subscriptions,
        "webhook",
        "Has a receiver told of events. Whether it can be reached is not tried first.",
        &[
            must("Destination", Takes::Uri, "The receiver's URI."),
            must(
                "Protocol",
                Takes::Word("EventDestinationProtocol", &[("Redfish", "Redfish's events.")]),
                "How it is told.",
            ),
            CONTEXT,
            SUBSCRIPTION_TYPE,
            EVENT_FORMAT,
            may(
                "RegistryPrefixes",
                Takes::List(
                    &Takes::Word("RegistryPrefix", &[("Palisade", "The product's own.")]),
                    0,
                    events::MOST,
                ),
                "Registries of messages; all if absent.",
            ),
            may("ResourceTypes", EVENT_TEXTS, "Types of resources; all if absent."),
            may("MessageIds", EVENT_TEXTS, "Messages; all if absent."),
            SEVERITIES,
            RETRIES,
            VERIFY,
            HEADERS,
        ],
    ),
    body(
        Method::Patch,
        Resource::Subscription,
        "",
        "Changes a subscription.",
        &[CONTEXT, RETRIES, VERIFY, HEADERS],
    ),
    act(Resource::ResumeSubscription, "Has deliveries go on that were suspended.", &[]),
    body(
        Method::Patch,
        Resource::SessionService,
        "",
        "Changes how long a session is kept without a use.",
        &[must("SessionTimeout", Takes::Whole(30, 86_400), "So many seconds.")],
    ),
    body(
        Method::Post,
        Resource::Sessions,
        "",
        "Logs in: begins a session, whose token is in the header X-Auth-Token of the answer.",
        &[USER_NAME, must("Password", Takes::Secret, "The account's password.")],
    ),
];

/// The forms of body that a method of a resource takes.
pub fn of(method: Method, resource: Resource) -> impl Iterator<Item = &'static Body> {
    BODIES.iter().filter(move |body| body.method == method && body.resource == resource)
}

/// The parameters of an action, by its name as resources have it under `Actions`: of all its forms.
/// One must be given if every form needs it.
pub fn parameters(action: &str) -> Vec<Property> {
    let forms = || BODIES.iter().filter(|body| action_name(body.resource) == Some(action));
    let mut all: Vec<Property> = Vec::new();
    for own in forms().flat_map(|body| body.properties) {
        if all.iter().any(|other| other.name == own.name) {
            continue;
        }
        let is_needed =
            |body: &Body| body.properties.iter().any(|other| other.name == own.name && other.must);
        all.push(Property { must: forms().all(is_needed), ..*own });
    }
    all
}

#[cfg(test)]
#[path = "bodies_tests.rs"]
mod tests;
