//! The service itself: where everything begins.

use super::{link, uri};
use crate::query;
use crate::routes::ROOT;
use crate::view::View;
use serde_json::{Value, json};

/// The version of the protocol (DSP0266).
const PROTOCOL: &str = "1.22.0";

/// The versions that are served.
pub(super) fn versions() -> Value {
    json!({"v1": format!("{ROOT}/")})
}

pub(super) fn service_root(view: &View) -> Value {
    let server = &view.server;
    let mut root = json!({
        "@odata.id": ROOT,
        "@odata.type": "#ServiceRoot.v1_21_0.ServiceRoot",
        "Id": "RootService",
        "Name": "Palisade",
        "Product": "Palisade",
        "RedfishVersion": PROTOCOL,
        "ProtocolFeaturesSupported": {
            "ExpandQuery": {
                "ExpandAll": true, "Links": true, "NoLinks": true, "Levels": true,
                "MaxLevels": query::MOST_LEVELS,
            },
            "SelectQuery": true,
            "FilterQuery": true,
            "FilterQueryComparisonOperations": true,
            "FilterQueryCompoundOperations": true,
            "TopSkipQuery": true,
            "OnlyMemberQuery": true,
            "ExcerptQuery": false,
            "IncludeOriginOfConditionQuery": false,
            "ClientContextQuery": false,
            "MultipleHTTPRequests": true,
            "DeepOperations": {"DeepPATCH": false, "DeepPOST": false},
        },
        "ServiceConditions": link(uri::SERVICE_CONDITIONS),
        "Systems": link(format!("{ROOT}/Systems")),
        "Chassis": link(format!("{ROOT}/Chassis")),
        "Managers": link(format!("{ROOT}/Managers")),
        "Fabrics": link(uri::FABRICS),
        "JobService": link(format!("{ROOT}/JobService")),
        "EventService": link(uri::EVENT_SERVICE),
        "Tasks": link(format!("{ROOT}/TaskService")),
        "AccountService": link(uri::ACCOUNT_SERVICE),
        "CertificateService": link(uri::CERTIFICATE_SERVICE),
        "SessionService": link(uri::SESSION_SERVICE),
        "TelemetryService": link(uri::TELEMETRY),
        "JsonSchemas": link(format!("{ROOT}/JsonSchemas")),
        "Registries": link(uri::REGISTRIES),
        "Links": {
            "Sessions": link(uri::SESSIONS),
            "ManagerProvidingService": link(uri::MANAGER),
        },
    });
    super::put_named(&mut root, "UUID", &server.uuid);
    super::put_named(&mut root, "ServiceIdentification", &server.name);
    root
}

/// OData's service document (DSP0266, "OData service document").
pub(super) fn odata() -> Value {
    let singleton = |name: &str, tail: &str| {
        let url = format!("{ROOT}{tail}");
        json!({"name": name, "kind": "Singleton", "url": url})
    };
    json!({
        "@odata.context": format!("{ROOT}/$metadata"),
        "value": [
            singleton("Service", "/"),
            singleton("ServiceConditions", "/ServiceConditions"),
            singleton("Systems", "/Systems"),
            singleton("Chassis", "/Chassis"),
            singleton("Managers", "/Managers"),
            singleton("Fabrics", "/Fabrics"),
            singleton("JobService", "/JobService"),
            singleton("EventService", "/EventService"),
            singleton("Tasks", "/TaskService"),
            singleton("AccountService", "/AccountService"),
            singleton("CertificateService", "/CertificateService"),
            singleton("SessionService", "/SessionService"),
            singleton("TelemetryService", "/TelemetryService"),
            singleton("JsonSchemas", "/JsonSchemas"),
            singleton("Registries", "/Registries"),
            singleton("Sessions", "/SessionService/Sessions"),
        ],
    })
}
