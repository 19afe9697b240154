//! The table of routes: what can be asked for, of which schema it is, and who may do what.
//!
//! One table yields the router, `Allow`, the privilege map, the tests of roles and the OpenAPI
//! document. A part of a URI in braces stands for an identifier.
//!
//! Invariant: no two rows match one path.

mod find;
mod resource;

pub(crate) use find::unescaped;
pub use find::{encoded, find, find_to_create, of};
pub use resource::Resource;

use Method::{Delete, Get, Patch, Post};
use Privilege::{
    ConfigureComponents, ConfigureManager, ConfigureSelf, ConfigureUsers, Login, Nobody,
};

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

impl Method {
    /// Its word in HTTP.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
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
    /// Read and change the own account and the own sessions. Who may change all accounts has those
    /// of others, too.
    ConfigureSelf,
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

    /// The URI, with its identifiers.
    pub fn uri(&self) -> String {
        let mut ids = self.ids.iter();
        let part = |part: &str| match part.starts_with('{') {
            true => ids.next().map(|id| encoded(id)).unwrap_or_default(),
            false => part.to_owned(),
        };
        self.route.uri.split('/').map(part).collect::<Vec<_>>().join("/")
    }

    /// The URI of what a request is about: of an action, that of what it acts on.
    pub fn subject(&self) -> String {
        let mut uri = self.uri();
        if let Some(at) = uri.find("/Actions/") {
            uri.truncate(at);
        }
        uri
    }
}

impl Route {
    /// The row of what a request is about: of an action, that of what it acts on.
    pub fn subject(&self) -> Option<&'static Self> {
        let uri = self.uri.split_once("/Actions/").map_or(self.uri, |(owner, _)| owner);
        ROUTES.iter().find(|row| row.uri == uri)
    }

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
const MANAGE: &[(Method, Privilege)] = &[(Post, ConfigureManager)];
const CREATE: &[(Method, Privilege)] = &[(Get, Login), (Post, ConfigureComponents)];
const END: &[(Method, Privilege)] = &[(Get, Login), (Delete, ConfigureComponents)];
const SWITCH: &[(Method, Privilege)] = &[(Get, Login), (Patch, ConfigureComponents)];
const CHANGE: &[(Method, Privilege)] =
    &[(Get, Login), (Patch, ConfigureComponents), (Delete, ConfigureComponents)];

const ACCOUNTS: &[(Method, Privilege)] = &[(Get, Login), (Post, ConfigureUsers)];
const ACCOUNT: &[(Method, Privilege)] =
    &[(Get, ConfigureSelf), (Patch, ConfigureSelf), (Delete, ConfigureUsers)];
const SUBSCRIBE: &[(Method, Privilege)] = &[(Get, Login), (Post, ConfigureManager)];
const SUBSCRIPTION: &[(Method, Privilege)] =
    &[(Get, Login), (Patch, ConfigureManager), (Delete, ConfigureManager)];
const MONITOR: &[(Method, Privilege)] = &[(Get, Login), (Delete, Login)];
const SET: &[(Method, Privilege)] = &[(Get, Login), (Patch, ConfigureManager)];
const SESSIONS: &[(Method, Privilege)] = &[(Get, Login), (Post, Nobody)];
const SESSION: &[(Method, Privilege)] = &[(Get, ConfigureSelf), (Delete, ConfigureSelf)];

const fn row(
    uri: &'static str,
    resource: Resource,
    schema: &'static str,
    methods: &'static [(Method, Privilege)],
) -> Route {
    Route { uri, resource, schema, methods }
}

/// Shortens the table: under the service's root, and under the one Storage.
macro_rules! under {
    (root $tail:literal) => {
        concat!("/redfish/v1", $tail)
    };
    (conditions $tail:literal) => {
        concat!("/redfish/v1/ServiceConditions", $tail)
    };
    (alerts $tail:literal) => {
        concat!("/redfish/v1/ServiceConditions/Actions/Oem/PalisadeServiceConditions.", $tail)
    };
    (storage $tail:literal) => {
        concat!("/redfish/v1/Systems/local/Storage/palisade", $tail)
    };
    (pool $tail:literal) => {
        concat!("/redfish/v1/Systems/local/Storage/palisade/StoragePools/{StoragePool}", $tail)
    };
    (filesystem $tail:literal) => {
        concat!("/redfish/v1/Systems/local/Storage/palisade/FileSystems/{FileSystem}", $tail)
    };
    (chassis $tail:literal) => {
        concat!("/redfish/v1/Chassis/local", $tail)
    };
    (drive $tail:literal) => {
        concat!("/redfish/v1/Chassis/local/Drives", $tail)
    };
    (audit $tail:literal) => {
        concat!("/redfish/v1/Managers/palisade/LogServices/Audit", $tail)
    };
    (manager $tail:literal) => {
        concat!("/redfish/v1/Managers/palisade/Actions/Oem/PalisadeManager.", $tail)
    };
    (fabric $tail:literal) => {
        concat!("/redfish/v1/Fabrics/{Fabric}", $tail)
    };
    (certificates $tail:literal) => {
        concat!("/redfish/v1/Managers/palisade/NetworkProtocol/HTTPS/Certificates", $tail)
    };
    (account $tail:literal) => {
        concat!("/redfish/v1/AccountService", $tail)
    };
    (telemetry $tail:literal) => {
        concat!("/redfish/v1/TelemetryService", $tail)
    };
    (event $tail:literal) => {
        concat!("/redfish/v1/EventService", $tail)
    };
    (events $tail:literal) => {
        concat!("/redfish/v1/Managers/palisade/LogServices/Events", $tail)
    };
    (job $tail:literal) => {
        concat!("/redfish/v1/JobService/Jobs/{Job}", $tail)
    };
}

/// All of them.
pub const ROUTES: &[Route] = &{
    use Resource as R;
    [
        row("/redfish", R::Versions, "", OPEN),
        row(under!(root ""), R::ServiceRoot, "#ServiceRoot.v1_21_0.ServiceRoot", OPEN),
        row(
            under!(conditions ""),
            R::ServiceConditions,
            "#ServiceConditions.v1_0_1.ServiceConditions",
            READ,
        ),
        row(
            under!(conditions "/ActionInfo/{Action}"),
            R::ConditionsActionInfo,
            "#ActionInfo.v1_5_0.ActionInfo",
            READ,
        ),
        row(under!(alerts "Acknowledge"), R::Acknowledge, "", ACT),
        row(under!(alerts "Test"), R::TestAlerts, "", MANAGE),
        row(under!(root "/odata"), R::Odata, "", OPEN),
        row(under!(root "/$metadata"), R::Metadata, "", OPEN),
        row(under!(root "/openapi.json"), R::OpenApi, "", OPEN),
        row(under!(root "/openapi.yaml"), R::OpenApiYaml, "", OPEN),
        row(under!(root "/Schemas/{File}"), R::CsdlFile, "", OPEN),
        row(
            under!(root "/JsonSchemas"),
            R::JsonSchemas,
            "#JsonSchemaFileCollection.JsonSchemaFileCollection",
            READ,
        ),
        row(
            under!(root "/JsonSchemas/{Schema}"),
            R::JsonSchema,
            "#JsonSchemaFile.v1_1_5.JsonSchemaFile",
            READ,
        ),
        row(under!(root "/JsonSchemas/{Schema}/{File}"), R::JsonSchemaText, "", OPEN),
        row(
            under!(root "/Registries"),
            R::Registries,
            "#MessageRegistryFileCollection.MessageRegistryFileCollection",
            READ,
        ),
        row(
            under!(root "/Registries/{Registry}"),
            R::Registry,
            "#MessageRegistryFile.v1_1_5.MessageRegistryFile",
            READ,
        ),
        row(under!(root "/Registries/{Registry}/{File}"), R::RegistryText, "", READ),
        row(
            under!(root "/Systems"),
            R::Systems,
            "#ComputerSystemCollection.ComputerSystemCollection",
            READ,
        ),
        row(
            under!(root "/Systems/local"),
            R::System,
            "#ComputerSystem.v1_28_0.ComputerSystem",
            READ,
        ),
        row(
            under!(root "/Systems/local/Storage"),
            R::Storages,
            "#StorageCollection.StorageCollection",
            READ,
        ),
        row(under!(storage ""), R::Storage, "#Storage.v1_22_0.Storage", READ),
        row(under!(storage "/Actions/Oem/PalisadeStorage.FindDrives"), R::FindDrives, "", ACT),
        row(
            under!(storage "/ActionInfo/{Action}"),
            R::StorageActionInfo,
            "#ActionInfo.v1_5_0.ActionInfo",
            READ,
        ),
        row(
            under!(storage "/StoragePools"),
            R::Pools,
            "#StoragePoolCollection.StoragePoolCollection",
            CREATE,
        ),
        row(under!(pool ""), R::Pool, "#StoragePool.v1_9_2.StoragePool", END),
        row(
            under!(pool "/CapacitySources/1"),
            R::CapacitySource,
            "#Capacity.v1_2_2.CapacitySource",
            READ,
        ),
        row(
            under!(pool "/CapacitySources/1/ProvidingDrives"),
            R::ProvidingDrives,
            "#DriveCollection.DriveCollection",
            READ,
        ),
        row(
            under!(pool "/AllocatedVolumes"),
            R::AllocatedVolumes,
            "#VolumeCollection.VolumeCollection",
            READ,
        ),
        row(under!(pool "/Actions/Oem/PalisadeStoragePool.Stop"), R::Stop, "", ACT),
        row(under!(pool "/Actions/Oem/PalisadeStoragePool.Assemble"), R::Assemble, "", ACT),
        row(under!(pool "/Actions/Oem/PalisadeStoragePool.FailDrive"), R::FailDrive, "", ACT),
        row(under!(pool "/Actions/Oem/PalisadeStoragePool.ReplaceDrive"), R::ReplaceDrive, "", ACT),
        row(under!(pool "/Actions/Oem/PalisadeStoragePool.Scrub"), R::Scrub, "", ACT),
        row(
            under!(pool "/ActionInfo/{Action}"),
            R::PoolActionInfo,
            "#ActionInfo.v1_5_0.ActionInfo",
            READ,
        ),
        row(under!(storage "/Volumes"), R::Volumes, "#VolumeCollection.VolumeCollection", CREATE),
        row(under!(storage "/Volumes/{Volume}"), R::Volume, "#Volume.v1_10_2.Volume", CHANGE),
        row(
            under!(storage "/Volumes/{Volume}/Metrics"),
            R::VolumeMetrics,
            "#VolumeMetrics.v1_2_0.VolumeMetrics",
            READ,
        ),
        row(
            under!(storage "/Volumes/{Volume}/Actions/Volume.CheckConsistency"),
            R::CheckConsistency,
            "",
            ACT,
        ),
        row(
            under!(storage "/FileSystems"),
            R::FileSystems,
            "#FileSystemCollection.FileSystemCollection",
            CREATE,
        ),
        row(under!(filesystem ""), R::FileSystem, "#FileSystem.v1_4_2.FileSystem", READ),
        row(
            under!(filesystem "/ActionInfo/{Action}"),
            R::FileSystemActionInfo,
            "#ActionInfo.v1_5_0.ActionInfo",
            READ,
        ),
        row(under!(filesystem "/Actions/Oem/PalisadeFileSystem.AddUser"), R::AddShareUser, "", ACT),
        row(
            under!(filesystem "/Actions/Oem/PalisadeFileSystem.SetUserPassword"),
            R::SetShareUserPassword,
            "",
            ACT,
        ),
        row(
            under!(filesystem "/Actions/Oem/PalisadeFileSystem.DeleteUser"),
            R::DeleteShareUser,
            "",
            ACT,
        ),
        row(
            under!(filesystem "/ExportedFileShares"),
            R::FileShares,
            "#FileShareCollection.FileShareCollection",
            CREATE,
        ),
        row(
            under!(filesystem "/ExportedFileShares/{FileShare}"),
            R::FileShare,
            "#FileShare.v1_3_0.FileShare",
            CHANGE,
        ),
        row(
            under!(root "/Systems/local/EthernetInterfaces"),
            R::EthernetInterfaces,
            "#EthernetInterfaceCollection.EthernetInterfaceCollection",
            READ,
        ),
        row(
            under!(root "/Systems/local/EthernetInterfaces/{EthernetInterface}"),
            R::EthernetInterface,
            "#EthernetInterface.v1_12_5.EthernetInterface",
            READ,
        ),
        row(under!(root "/Chassis"), R::ChassisAll, "#ChassisCollection.ChassisCollection", READ),
        row(under!(root "/Chassis/{Chassis}"), R::Chassis, "#Chassis.v1_28_0.Chassis", READ),
        row(under!(chassis "/Sensors"), R::Sensors, "#SensorCollection.SensorCollection", READ),
        row(under!(chassis "/Sensors/{Sensor}"), R::Sensor, "#Sensor.v1_13_0.Sensor", READ),
        row(
            under!(chassis "/ThermalSubsystem"),
            R::Thermal,
            "#ThermalSubsystem.v1_5_0.ThermalSubsystem",
            READ,
        ),
        row(
            under!(chassis "/ThermalSubsystem/ThermalMetrics"),
            R::ThermalMetrics,
            "#ThermalMetrics.v1_3_3.ThermalMetrics",
            READ,
        ),
        row(
            under!(chassis "/ThermalSubsystem/Fans"),
            R::Fans,
            "#FanCollection.FanCollection",
            READ,
        ),
        row(under!(chassis "/ThermalSubsystem/Fans/{Fan}"), R::Fan, "#Fan.v1_6_0.Fan", READ),
        row(
            under!(chassis "/PowerSubsystem"),
            R::Power,
            "#PowerSubsystem.v1_1_4.PowerSubsystem",
            READ,
        ),
        row(
            under!(chassis "/PowerSubsystem/PowerSupplies"),
            R::PowerSupplies,
            "#PowerSupplyCollection.PowerSupplyCollection",
            READ,
        ),
        row(
            under!(chassis "/PowerSubsystem/PowerSupplies/{PowerSupply}"),
            R::PowerSupply,
            "#PowerSupply.v1_7_0.PowerSupply",
            READ,
        ),
        row(
            under!(chassis "/PowerSubsystem/PowerSupplies/{PowerSupply}/Metrics"),
            R::PowerSupplyMetrics,
            "#PowerSupplyMetrics.v1_2_0.PowerSupplyMetrics",
            READ,
        ),
        row(under!(drive ""), R::Drives, "#DriveCollection.DriveCollection", READ),
        row(under!(drive "/{Drive}"), R::Drive, "#Drive.v1_22_0.Drive", SWITCH),
        row(
            under!(drive "/{Drive}/Metrics"),
            R::DriveMetrics,
            "#DriveMetrics.v1_4_0.DriveMetrics",
            READ,
        ),
        row(under!(drive "/{Drive}/Actions/Oem/PalisadeDrive.Wipe"), R::Wipe, "", ACT),
        row(
            under!(drive "/{Drive}/Actions/Oem/PalisadeDrive.SetPowerState"),
            R::SetPowerState,
            "",
            ACT,
        ),
        row(
            under!(drive "/{Drive}/ActionInfo/{Action}"),
            R::DriveActionInfo,
            "#ActionInfo.v1_5_0.ActionInfo",
            READ,
        ),
        row(under!(root "/Managers"), R::Managers, "#ManagerCollection.ManagerCollection", READ),
        row(under!(root "/Managers/palisade"), R::Manager, "#Manager.v1_25_0.Manager", READ),
        row(
            under!(root "/Managers/palisade/ActionInfo/{Action}"),
            R::ManagerActionInfo,
            "#ActionInfo.v1_5_0.ActionInfo",
            READ,
        ),
        row(under!(manager "Discover"), R::Discover, "", MANAGE),
        row(under!(manager "Connect"), R::Connect, "", MANAGE),
        row(under!(manager "Disconnect"), R::Disconnect, "", MANAGE),
        row(
            under!(root "/Managers/palisade/LogServices"),
            R::LogServices,
            "#LogServiceCollection.LogServiceCollection",
            READ,
        ),
        row(
            under!(root "/Managers/palisade/NetworkProtocol"),
            R::NetworkProtocol,
            "#ManagerNetworkProtocol.v1_13_0.ManagerNetworkProtocol",
            READ,
        ),
        row(
            under!(certificates ""),
            R::HttpsCertificates,
            "#CertificateCollection.CertificateCollection",
            READ,
        ),
        row(
            under!(certificates "/{Certificate}"),
            R::HttpsCertificate,
            "#Certificate.v1_11_0.Certificate",
            READ,
        ),
        row(
            under!(root "/CertificateService"),
            R::CertificateService,
            "#CertificateService.v1_2_2.CertificateService",
            READ,
        ),
        row(
            under!(root "/CertificateService/ActionInfo/{Action}"),
            R::CertificateActionInfo,
            "#ActionInfo.v1_5_0.ActionInfo",
            READ,
        ),
        row(
            under!(root "/CertificateService/CertificateLocations"),
            R::CertificateLocations,
            "#CertificateLocations.v1_0_4.CertificateLocations",
            READ,
        ),
        row(
            under!(root "/CertificateService/Actions/CertificateService.GenerateCSR"),
            R::GenerateCsr,
            "",
            MANAGE,
        ),
        row(
            under!(root "/CertificateService/Actions/CertificateService.ReplaceCertificate"),
            R::ReplaceCertificate,
            "",
            MANAGE,
        ),
        row(under!(audit ""), R::AuditLog, "#LogService.v1_9_0.LogService", READ),
        row(
            under!(audit "/Entries"),
            R::AuditEntries,
            "#LogEntryCollection.LogEntryCollection",
            READ,
        ),
        row(under!(audit "/Entries/{LogEntry}"), R::AuditEntry, "#LogEntry.v1_21_0.LogEntry", READ),
        row(under!(audit "/Actions/Oem/PalisadeLogService.Verify"), R::VerifyLog, "", MANAGE),
        row(under!(events ""), R::EventLog, "#LogService.v1_9_0.LogService", READ),
        row(
            under!(events "/Entries"),
            R::EventEntries,
            "#LogEntryCollection.LogEntryCollection",
            READ,
        ),
        row(
            under!(events "/Entries/{LogEntry}"),
            R::EventEntry,
            "#LogEntry.v1_21_0.LogEntry",
            READ,
        ),
        row(under!(root "/Fabrics"), R::Fabrics, "#FabricCollection.FabricCollection", READ),
        row(under!(fabric ""), R::Fabric, "#Fabric.v1_4_0.Fabric", READ),
        row(
            under!(fabric "/Connections"),
            R::Connections,
            "#ConnectionCollection.ConnectionCollection",
            CREATE,
        ),
        row(
            under!(fabric "/Connections/{Connection}"),
            R::Connection,
            "#Connection.v1_4_0.Connection",
            END,
        ),
        row(
            under!(fabric "/Endpoints"),
            R::Endpoints,
            "#EndpointCollection.EndpointCollection",
            READ,
        ),
        row(under!(fabric "/Endpoints/{Endpoint}"), R::Endpoint, "#Endpoint.v1_8_2.Endpoint", READ),
        row(under!(root "/JobService"), R::JobService, "#JobService.v1_1_0.JobService", READ),
        row(under!(root "/JobService/Jobs"), R::Jobs, "#JobCollection.JobCollection", READ),
        row(under!(job ""), R::Job, "#Job.v1_3_0.Job", READ),
        row(under!(job "/Actions/Job.Suspend"), R::Suspend, "", ACT),
        row(under!(job "/Actions/Job.Resume"), R::Resume, "", ACT),
        row(under!(job "/Actions/Job.Cancel"), R::Cancel, "", ACT),
        row(under!(account ""), R::AccountService, "#AccountService.v1_18_1.AccountService", READ),
        row(
            under!(account "/Accounts"),
            R::Accounts,
            "#ManagerAccountCollection.ManagerAccountCollection",
            ACCOUNTS,
        ),
        row(
            under!(account "/Accounts/{ManagerAccount}"),
            R::Account,
            "#ManagerAccount.v1_14_1.ManagerAccount",
            ACCOUNT,
        ),
        row(under!(account "/Roles"), R::Roles, "#RoleCollection.RoleCollection", READ),
        row(under!(account "/Roles/{Role}"), R::Role, "#Role.v1_3_3.Role", READ),
        row(
            under!(root "/SessionService"),
            R::SessionService,
            "#SessionService.v1_2_0.SessionService",
            SET,
        ),
        row(
            under!(root "/SessionService/Sessions"),
            R::Sessions,
            "#SessionCollection.SessionCollection",
            SESSIONS,
        ),
        row(
            under!(root "/SessionService/Sessions/{Session}"),
            R::Session,
            "#Session.v1_8_0.Session",
            SESSION,
        ),
        row(under!(event ""), R::EventService, "#EventService.v1_12_0.EventService", SET),
        row(under!(event "/SSE"), R::EventStream, "", READ),
        row(
            under!(event "/ActionInfo/{Action}"),
            R::EventActionInfo,
            "#ActionInfo.v1_5_0.ActionInfo",
            READ,
        ),
        row(under!(event "/Actions/EventService.SubmitTestEvent"), R::SubmitTestEvent, "", MANAGE),
        row(
            under!(event "/Subscriptions"),
            R::Subscriptions,
            "#EventDestinationCollection.EventDestinationCollection",
            SUBSCRIBE,
        ),
        row(
            under!(event "/Subscriptions/{EventDestination}"),
            R::Subscription,
            "#EventDestination.v1_17_0.EventDestination",
            SUBSCRIPTION,
        ),
        row(
            under!(event
                "/Subscriptions/{EventDestination}/Actions/EventDestination.ResumeSubscription"),
            R::ResumeSubscription,
            "",
            MANAGE,
        ),
        row(under!(root "/TaskService"), R::TaskService, "#TaskService.v1_2_1.TaskService", READ),
        row(under!(root "/TaskService/Tasks"), R::Tasks, "#TaskCollection.TaskCollection", READ),
        row(under!(root "/TaskService/Tasks/{Task}"), R::Task, "#Task.v1_7_4.Task", READ),
        row(under!(root "/TaskService/TaskMonitors/{TaskMonitor}"), R::TaskMonitor, "", MONITOR),
        row(
            under!(telemetry ""),
            R::TelemetryService,
            "#TelemetryService.v1_4_1.TelemetryService",
            READ,
        ),
        row(
            under!(telemetry "/MetricDefinitions"),
            R::MetricDefinitions,
            "#MetricDefinitionCollection.MetricDefinitionCollection",
            READ,
        ),
        row(
            under!(telemetry "/MetricDefinitions/{MetricDefinition}"),
            R::MetricDefinition,
            "#MetricDefinition.v1_3_6.MetricDefinition",
            READ,
        ),
        row(
            under!(telemetry "/MetricReportDefinitions"),
            R::MetricReportDefinitions,
            "#MetricReportDefinitionCollection.MetricReportDefinitionCollection",
            READ,
        ),
        row(
            under!(telemetry "/MetricReportDefinitions/{MetricReportDefinition}"),
            R::MetricReportDefinition,
            "#MetricReportDefinition.v1_4_7.MetricReportDefinition",
            READ,
        ),
        row(
            under!(telemetry "/MetricReports"),
            R::MetricReports,
            "#MetricReportCollection.MetricReportCollection",
            READ,
        ),
        row(
            under!(telemetry "/MetricReports/{MetricReport}"),
            R::MetricReport,
            "#MetricReport.v1_5_2.MetricReport",
            READ,
        ),
        row("/metrics", R::Metrics, "", READ),
    ]
};

#[cfg(test)]
#[path = "routes_tests.rs"]
mod tests;
