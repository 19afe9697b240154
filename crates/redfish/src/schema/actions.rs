//! Actions that Redfish does not have, with their parameters.

/// What a parameter takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// A primitive type, as CSDL names it.
    Plain(&'static str),
    /// Texts.
    Texts,
    /// A link to a drive.
    Drive,
    /// Links to drives.
    Drives,
    /// A word of an enumeration: its name, and its members with what they mean.
    Word(&'static str, &'static [(&'static str, &'static str)]),
}

/// A parameter of an action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// Whether it must be given.
    pub must: bool,
    /// What it means.
    pub about: &'static str,
}

/// An action on a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Action {
    /// The resource's type.
    pub of: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    /// What it takes.
    pub parameters: &'static [Parameter],
}

const fn parameter(name: &'static str, takes: Takes, must: bool, about: &'static str) -> Parameter {
    Parameter { name, takes, must, about }
}

const YES_NO: Takes = Takes::Plain("Edm.Boolean");

/// All of them.
pub const ACTIONS: [Action; 8] = [
    Action {
        of: "LogService",
        name: "Verify",
        about: "Follows the log's chain of hashes through all lines, and tells where it breaks.",
        parameters: &[],
    },
    Action {
        of: "Storage",
        name: "FindDrives",
        about: "Looks for drives that the configuration names, and at further paths.",
        parameters: &[parameter("Paths", Takes::Texts, false, "Further paths to look at.")],
    },
    Action {
        of: "StoragePool",
        name: "Stop",
        about: "Stops the array. Its drives keep what they hold.",
        parameters: &[],
    },
    Action {
        of: "StoragePool",
        name: "Assemble",
        about: "Starts an array that was stopped or could not be started.",
        parameters: &[
            parameter(
                "StartDegraded",
                YES_NO,
                false,
                "Start though drives are missing that no record says failed.",
            ),
            parameter(
                "AcceptLoss",
                YES_NO,
                false,
                "Start though blocks written at a crash may be wrong, or newest records are gone.",
            ),
        ],
    },
    Action {
        of: "StoragePool",
        name: "FailDrive",
        about: "Takes a drive out of service. Either Drive or Slot must be given.",
        parameters: &[
            parameter("Drive", Takes::Drive, false, "The drive."),
            parameter("Slot", Takes::Plain("Edm.Int64"), false, "The drive's slot, from 0."),
        ],
    },
    Action {
        of: "StoragePool",
        name: "ReplaceDrive",
        about: "Puts another drive in a slot, and rebuilds it.",
        parameters: &[
            parameter("Slot", Takes::Plain("Edm.Int64"), true, "The slot, from 0."),
            parameter("With", Takes::Drive, true, "The new drive."),
            parameter(
                "Overwrite",
                Takes::Drives,
                false,
                "Drives whose foreign content may be destroyed.",
            ),
        ],
    },
    Action {
        of: "StoragePool",
        name: "Scrub",
        about: "Compares redundancy with the data.",
        parameters: &[
            parameter(
                "Mode",
                Takes::Word(
                    "ScrubMode",
                    &[
                        ("Check", "Wrong strips are only counted."),
                        ("Repair", "Strips that are known to be wrong are written anew."),
                    ],
                ),
                false,
                "Whether wrong strips are written anew; Check if absent.",
            ),
            parameter(
                "TrustData",
                YES_NO,
                false,
                "With Repair: where nobody can know what is wrong, write what the data says.",
            ),
        ],
    },
    Action {
        of: "Drive",
        name: "Wipe",
        about: "Erases Palisade's records on the drive.",
        parameters: &[parameter(
            "Overwrite",
            YES_NO,
            false,
            "Erase also what is foreign there, or not known.",
        )],
    },
];

/// The version of a standard schema that has the type `OemActions`.
pub fn version_of_actions(of: &str) -> &'static str {
    match of {
        "StoragePool" => "v1_3_0",
        _ => "v1_0_0",
    }
}
