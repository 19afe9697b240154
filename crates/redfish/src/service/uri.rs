//! URIs of resources, and the identifiers in them.

use crate::routes::{encoded, unescaped};

/// The machine.
pub const SYSTEM: &str = "/redfish/v1/Systems/local";
/// The engine: the one Storage.
pub const STORAGE: &str = "/redfish/v1/Systems/local/Storage/palisade";
/// All arrays.
pub const POOLS: &str = "/redfish/v1/Systems/local/Storage/palisade/StoragePools";
/// All volumes.
pub const VOLUMES: &str = "/redfish/v1/Systems/local/Storage/palisade/Volumes";
/// All file systems that are shared.
pub const FILE_SYSTEMS: &str = "/redfish/v1/Systems/local/Storage/palisade/FileSystems";
/// The machine's housing.
pub const CHASSIS: &str = "/redfish/v1/Chassis/local";
/// All drives.
pub const DRIVES: &str = "/redfish/v1/Chassis/local/Drives";
/// The machine's network ports.
pub const PORTS: &str = "/redfish/v1/Systems/local/EthernetInterfaces";
/// Housings: the machine's, and enclosures.
pub const CHASSIS_ALL: &str = "/redfish/v1/Chassis";
/// The machine's sensors.
pub const SENSORS: &str = "/redfish/v1/Chassis/local/Sensors";
/// What cools the machine.
pub const THERMAL: &str = "/redfish/v1/Chassis/local/ThermalSubsystem";
/// The machine's temperatures.
pub const THERMAL_METRICS: &str = "/redfish/v1/Chassis/local/ThermalSubsystem/ThermalMetrics";
/// The machine's fans.
pub const FANS: &str = "/redfish/v1/Chassis/local/ThermalSubsystem/Fans";
/// What gives the machine power.
pub const POWER: &str = "/redfish/v1/Chassis/local/PowerSubsystem";
/// The machine's power supplies.
pub const SUPPLIES: &str = "/redfish/v1/Chassis/local/PowerSubsystem/PowerSupplies";
/// The daemon.
pub const MANAGER: &str = "/redfish/v1/Managers/palisade";
/// The daemon's logs.
pub const LOG_SERVICES: &str = "/redfish/v1/Managers/palisade/LogServices";
/// The audit log.
pub const AUDIT: &str = "/redfish/v1/Managers/palisade/LogServices/Audit";
/// The newest lines of the audit log.
pub const AUDIT_ENTRIES: &str = "/redfish/v1/Managers/palisade/LogServices/Audit/Entries";
/// The log of events.
pub const EVENT_LOG: &str = "/redfish/v1/Managers/palisade/LogServices/Events";
/// The last events.
pub const EVENT_ENTRIES: &str = "/redfish/v1/Managers/palisade/LogServices/Events/Entries";
/// What tells of events.
pub const EVENT_SERVICE: &str = "/redfish/v1/EventService";
/// A stream of events.
pub const EVENT_STREAM: &str = "/redfish/v1/EventService/SSE";
/// What is wrong now.
pub const SERVICE_CONDITIONS: &str = "/redfish/v1/ServiceConditions";
/// Who is told of events.
pub const SUBSCRIPTIONS: &str = "/redfish/v1/EventService/Subscriptions";
/// What the daemon speaks on the network.
pub const NETWORK_PROTOCOL: &str = "/redfish/v1/Managers/palisade/NetworkProtocol";
/// The certificates of HTTPS.
pub const CERTIFICATES: &str = "/redfish/v1/Managers/palisade/NetworkProtocol/HTTPS/Certificates";
/// The certificate of HTTPS.
pub const CERTIFICATE: &str = "/redfish/v1/Managers/palisade/NetworkProtocol/HTTPS/Certificates/1";
/// What changes certificates.
pub const CERTIFICATE_SERVICE: &str = "/redfish/v1/CertificateService";
/// All fabrics.
pub const FABRICS: &str = "/redfish/v1/Fabrics";
/// Exports over NVMe.
pub const NVME_CONNECTIONS: &str = "/redfish/v1/Fabrics/nvme/Connections";
/// Exports over NBD.
pub const NBD_CONNECTIONS: &str = "/redfish/v1/Fabrics/nbd/Connections";
/// Fibre Channel, and its ports.
pub const FC: &str = "/redfish/v1/Fabrics/fc";
/// Exports at Fibre Channel ports.
pub const FC_CONNECTIONS: &str = "/redfish/v1/Fabrics/fc/Connections";
/// Exports over iSCSI.
pub const ISCSI_CONNECTIONS: &str = "/redfish/v1/Fabrics/iscsi/Connections";
/// Exports that the machine itself uses.
pub const LOCAL_CONNECTIONS: &str = "/redfish/v1/Fabrics/local/Connections";
/// Registries of messages.
pub const REGISTRIES: &str = "/redfish/v1/Registries";
/// All jobs.
pub const JOBS: &str = "/redfish/v1/JobService/Jobs";

/// All changes that take long.
pub const TASKS: &str = "/redfish/v1/TaskService/Tasks";
/// The service of accounts.
pub const ACCOUNT_SERVICE: &str = "/redfish/v1/AccountService";
/// All accounts.
pub const ACCOUNTS: &str = "/redfish/v1/AccountService/Accounts";
/// All roles.
pub const ROLES: &str = "/redfish/v1/AccountService/Roles";
/// The service of sessions.
pub const SESSION_SERVICE: &str = "/redfish/v1/SessionService";
/// All sessions.
pub const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

/// The service of metrics.
pub const TELEMETRY: &str = "/redfish/v1/TelemetryService";
/// What is measured.
pub const METRIC_DEFINITIONS: &str = "/redfish/v1/TelemetryService/MetricDefinitions";
/// What reports of metrics there are.
pub const METRIC_REPORT_DEFINITIONS: &str = "/redfish/v1/TelemetryService/MetricReportDefinitions";
/// Reports of metrics.
pub const METRIC_REPORTS: &str = "/redfish/v1/TelemetryService/MetricReports";

/// A metric, by its identifier.
pub fn metric_definition(id: &str) -> String {
    format!("{METRIC_DEFINITIONS}/{}", encoded(id))
}

/// What a report of metrics is of, by its identifier.
pub fn metric_report_definition(id: &str) -> String {
    format!("{METRIC_REPORT_DEFINITIONS}/{}", encoded(id))
}

/// A report of metrics, by its identifier.
pub fn metric_report(id: &str) -> String {
    format!("{METRIC_REPORTS}/{}", encoded(id))
}

/// An account, by its name.
pub fn account(name: &str) -> String {
    format!("{ACCOUNTS}/{}", encoded(name))
}

/// A role, by its name.
pub fn role(name: &str) -> String {
    format!("{ROLES}/{}", encoded(name))
}

/// A session, by its identifier.
pub fn session(id: &str) -> String {
    format!("{SESSIONS}/{}", encoded(id))
}

/// An array, by its UUID.
pub fn pool(uuid: &str) -> String {
    format!("{POOLS}/{}", encoded(uuid))
}

/// A volume, by its UUID.
pub fn volume(uuid: &str) -> String {
    format!("{VOLUMES}/{}", encoded(uuid))
}

/// What was counted of a volume, by its UUID.
pub fn volume_metrics(uuid: &str) -> String {
    format!("{VOLUMES}/{}/Metrics", encoded(uuid))
}

/// A volume's file system, by the volume's UUID.
pub fn file_system(volume: &str) -> String {
    format!("{FILE_SYSTEMS}/{}", encoded(volume))
}

/// The shares of a volume's file system, by the volume's UUID.
pub fn file_shares(volume: &str) -> String {
    format!("{}/ExportedFileShares", file_system(volume))
}

/// A share of a volume's file system, by the volume's UUID and its name.
pub fn file_share(volume: &str, name: &str) -> String {
    format!("{}/{}", file_shares(volume), encoded(name))
}

/// A drive, by its identifier.
pub fn drive(id: &str) -> String {
    format!("{DRIVES}/{}", encoded(id))
}

/// What a drive says of its life, by its identifier.
pub fn drive_metrics(id: &str) -> String {
    format!("{}/Metrics", drive(id))
}

/// A housing, by the identifier of its enclosure.
pub fn chassis(id: &str) -> String {
    format!("{CHASSIS_ALL}/{}", encoded(id))
}

/// A sensor, by its identifier.
pub fn sensor(id: &str) -> String {
    format!("{SENSORS}/{}", encoded(id))
}

/// A fan, by its identifier.
pub fn fan(id: &str) -> String {
    format!("{FANS}/{}", encoded(id))
}

/// A power supply, by its identifier.
pub fn supply(id: &str) -> String {
    format!("{SUPPLIES}/{}", encoded(id))
}

/// What a power supply takes, by its identifier.
pub fn supply_metrics(id: &str) -> String {
    format!("{}/Metrics", supply(id))
}

/// A network port, by its interface's name.
pub fn port(id: &str) -> String {
    format!("{PORTS}/{}", encoded(id))
}

/// A job, by its identifier.
pub fn job(id: &str) -> String {
    format!("{JOBS}/{}", encoded(id))
}

/// A change that takes long, by its identifier.
pub fn task(id: &str) -> String {
    format!("{TASKS}/{}", encoded(id))
}

/// Where the answer of a change that takes long will be, by its identifier.
pub fn task_monitor(id: &str) -> String {
    format!("/redfish/v1/TaskService/TaskMonitors/{}", encoded(id))
}

/// A line of the audit log.
pub fn audit_entry(number: u64) -> String {
    format!("{AUDIT_ENTRIES}/{number}")
}

/// An event in the log of events.
pub fn event_entry(id: u64) -> String {
    format!("{EVENT_ENTRIES}/{id}")
}

/// Somebody who is told of events, by identifier.
pub fn subscription(id: &str) -> String {
    format!("{SUBSCRIPTIONS}/{}", encoded(id))
}

/// A fabric: `nvme` or `nbd`.
pub fn fabric(id: &str) -> String {
    format!("{FABRICS}/{id}")
}

/// An export of a fabric, by the identifier that [`connection_id`] gives.
pub fn connection(fabric: &str, id: &str) -> String {
    format!("{FABRICS}/{fabric}/Connections/{}", encoded(id))
}

/// An endpoint of a fabric, by the identifier that [`endpoint_id`] gives.
pub fn endpoint(fabric: &str, id: &str) -> String {
    format!("{FABRICS}/{fabric}/Endpoints/{}", encoded(id))
}

/// The identifier of an export: its array's UUID and its number there.
pub fn connection_id(array: &str, number: u32) -> String {
    format!("{array}-{number}")
}

/// The array's UUID and the export's number that an identifier stands for.
pub fn connection_of(id: &str) -> Option<(&str, u32)> {
    let (array, number) = id.rsplit_once('-')?;
    let number = number.parse().ok()?;
    (connection_id(array, number) == id).then_some((array, number))
}

/// The number of an export that the view calls `ARRAY:NUMBER`.
pub fn export_number(id: &str) -> Option<u32> {
    id.rsplit_once(':')?.1.parse().ok()
}

/// The identifier of an endpoint: its role, and its name without what a URI would have encoded. No
/// two names have one.
pub fn endpoint_id(role: &str, name: &str) -> String {
    let mut id = format!("{role}-");
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' => id.push(char::from(byte)),
            b':' => id.push('~'),
            other => id.push_str(&format!("_{other:02X}")),
        }
    }
    id
}

/// The role and the name that an identifier of an endpoint stands for.
pub fn endpoint_of(id: &str) -> Option<(&str, String)> {
    let (role, rest) = id.split_once('-')?;
    let name = unescaped(rest, b'_', |byte| if byte == b'~' { b':' } else { byte })?;
    (endpoint_id(role, &name) == id).then_some((role, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_are_named_by_array_and_number() {
        assert_eq!(connection_of(&connection_id("a-b", 7)), Some(("a-b", 7)));
        for id in ["", "a", "a-", "a-x", "a-+1", "a-01", "a-4294967296"] {
            assert_eq!(connection_of(id), None, "{id}");
        }
        assert_eq!(export_number("a:b:3"), Some(3));
        assert_eq!(export_number("a3"), None);
    }

    #[test]
    fn endpoints_have_identifiers_of_their_own() {
        let names = ["nqn.a:b", "nqn.a-b", "nqn.a~b", "nqn.a_b", "nqn.a_3Ab", "nqn.a/b", "ä"];
        let ids: std::collections::BTreeSet<_> =
            names.iter().map(|name| endpoint_id("host", name)).collect();
        assert_eq!(ids.len(), names.len(), "{ids:?}");
        assert!(ids.iter().all(|id| encoded(id) == *id), "{ids:?}");
        for name in names {
            let id = endpoint_id("host", name);
            assert_eq!(endpoint_of(&id), Some(("host", name.to_owned())));
        }
        for id in ["", "host", "host-_", "host-_2", "host-_zz", "host-_ff", "host-_41", "host-a:b"]
        {
            assert_eq!(endpoint_of(id), None, "{id}");
        }
    }
}
