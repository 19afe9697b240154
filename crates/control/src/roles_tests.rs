//! Every role × route × method: what the table of routes says, held against rules in few words.

use super::Role;
use redfish::routes::{Method, Privilege, ROUTES};

/// Who may do something at least.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Least {
    Anybody,
    ReadOnly,
    Operator,
    Administrator,
}

/// URIs below the root that anybody may read: those of DSP0266, "Authentication requirements", and
/// texts that describe the interface.
const OPEN: [&str; 7] = [
    "",
    "/odata",
    "/$metadata",
    "/openapi.json",
    "/openapi.yaml",
    "/Schemas/{File}",
    "/JsonSchemas/{Schema}/{File}",
];

/// What changes what is stored.
const STORAGE: [&str; 4] = ["Systems", "Chassis", "Fabrics", "JobService"];

/// What changes the daemon, and who may use it.
const DAEMON: [&str; 5] =
    ["Managers", "AccountService", "SessionService", "CertificateService", "EventService"];

fn least(method: Method, uri: &str) -> Least {
    if (method, uri) == (Method::Get, "/metrics") {
        // Anybody, where the configuration says so.
        return Least::ReadOnly;
    }
    let Some(below) = uri.strip_prefix("/redfish/v1") else { return Least::Anybody };
    let of = below.split('/').nth(1).unwrap_or_default();
    match (method, below) {
        (Method::Get, _) if OPEN.contains(&below) => Least::Anybody,
        (Method::Post, "/SessionService/Sessions") => Least::Anybody,
        // Their own; others' is an administrator's.
        (Method::Delete, "/SessionService/Sessions/{Session}")
        | (Method::Delete, "/TaskService/TaskMonitors/{TaskMonitor}")
        | (Method::Patch, "/AccountService/Accounts/{ManagerAccount}")
        | (Method::Get, _) => Least::ReadOnly,
        // To have seen an alert is an operator's work; to write to people is not.
        (Method::Post, "/ServiceConditions/Actions/Oem/PalisadeServiceConditions.Acknowledge") => {
            Least::Operator
        }
        (Method::Post, "/ServiceConditions/Actions/Oem/PalisadeServiceConditions.Test") => {
            Least::Administrator
        }
        _ if STORAGE.contains(&of) => Least::Operator,
        _ if DAEMON.contains(&of) => Least::Administrator,
        _ => panic!("say here who may {method:?} {uri}"),
    }
}

#[test]
fn every_role_may_do_what_it_is_for_and_nothing_else() {
    let roles = [
        (None, Least::Anybody),
        (Some(Role::ReadOnly), Least::ReadOnly),
        (Some(Role::Operator), Least::Operator),
        (Some(Role::Administrator), Least::Administrator),
    ];
    let mut tried = 0;
    for route in ROUTES {
        for method in [Method::Get, Method::Post, Method::Patch, Method::Delete] {
            let privilege = route.privilege(method);
            for (role, rank) in roles {
                let may = privilege.is_some_and(|privilege| match role {
                    Some(role) => role.may(privilege),
                    None => privilege == Privilege::Nobody,
                });
                let expected = privilege.is_some() && rank >= least(method, route.uri);
                assert_eq!(may, expected, "{role:?} {method:?} {}", route.uri);
                tried += 1;
            }
        }
    }
    assert_eq!(tried, ROUTES.len() * 16);
}
