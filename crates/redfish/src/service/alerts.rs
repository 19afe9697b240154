//! What is wrong now: the service's conditions, and those of a resource.
//!
//! Invariant: a resource's own conditions lead to no other resource, so that rendering one renders
//! no other.

use super::{Standing, link, uri};
use crate::dates;
use crate::messages::{self, Severity};
use crate::oem;
use crate::routes;
use crate::view::{Alert, View};
use serde_json::{Value, json};

const ACTIONS: [&str; 2] = ["Acknowledge", "Test"];

pub(super) fn service_conditions(view: &View) -> Value {
    let mut actions = serde_json::Map::new();
    for name in ACTIONS {
        let name = format!("PalisadeServiceConditions.{name}");
        let target = format!("{}/Actions/Oem/{name}", uri::SERVICE_CONDITIONS);
        actions.insert(format!("#{name}"), json!({"target": target}));
    }
    let all = &view.alerts.alerts;
    let conditions: Vec<Value> = all.iter().map(|own| originated(view, own)).collect();
    json!({
        "@odata.id": uri::SERVICE_CONDITIONS,
        "@odata.type": "#ServiceConditions.v1_0_1.ServiceConditions",
        "Id": "ServiceConditions",
        "Name": "What is wrong now",
        "HealthRollup": worst(view, |_| true).word(),
        "Conditions": conditions,
        "Actions": {"Oem": actions},
        "Oem": oem::wrapped(&oem::ServiceConditions {
            alerts: all.iter().map(oem::Alert::from).collect(),
        }),
    })
}

/// The gravest of the alerts about these URIs.
pub(super) fn worst(view: &View, is_of: impl Fn(&str) -> bool) -> Severity {
    let own = view.alerts.alerts.iter().filter(|own| is_of(&own.of));
    own.map(|own| own.severity.into()).max().unwrap_or(Severity::Ok)
}

/// An alert, as `Resource.Condition` has it.
fn condition(alert: &Alert) -> Value {
    json!({
        "MessageId": format!("{}{}", messages::PREFIX, alert.message),
        "Message": alert.what,
        "MessageArgs": alert.args,
        "Severity": Severity::from(alert.severity).word(),
        "Timestamp": dates::text(alert.raised),
        "Resolution": alert.action,
    })
}

/// The same, with what it is about.
fn originated(view: &View, alert: &Alert) -> Value {
    let mut condition = condition(alert);
    // What has gone since can't be linked to.
    let is_there =
        routes::find(&alert.of).is_some_and(|found| super::rendered(view, &found).is_some());
    if is_there {
        super::put(&mut condition, "OriginOfCondition", link(alert.of.clone()));
    }
    condition
}

/// Adds to how a resource is what is wrong with it, if anything is.
pub(super) fn put_conditions(view: &View, status: &mut Value, own: &str) {
    let all = view.alerts.alerts.iter().filter(|alert| alert.of == own);
    let conditions: Vec<Value> = all.map(condition).collect();
    if !conditions.is_empty() {
        super::put(status, "Conditions", json!(conditions));
    }
}

/// How a resource is, with what is wrong with it, and how grave the worst is of what belongs to it.
pub(super) fn status(
    view: &View,
    standing: Standing,
    own: &str,
    has: impl Fn(&str) -> bool,
) -> Value {
    let mut status = standing.status();
    let rollup = worst(view, |of| of == own || has(of));
    let health = Severity::of(standing.health).unwrap_or(Severity::Ok);
    super::put(&mut status, "HealthRollup", json!(rollup.max(health).word()));
    put_conditions(view, &mut status, own);
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::tests::view;
    use crate::events::Shown;
    use crate::events::smtp::{Mail, Plain};
    use crate::view::{Alerts, Health};
    use std::sync::Arc;

    fn alert(id: u64, severity: Health, of: &str) -> Alert {
        Alert {
            id: id.to_string(),
            message: "ArrayDegraded".to_owned(),
            args: vec!["tank".to_owned()],
            severity,
            what: "array tank is degraded".to_owned(),
            action: "replace what failed".to_owned(),
            of: of.to_owned(),
            name: "tank".to_owned(),
            raised: 60,
            acknowledged: (id == 1).then(|| (120, "ana".to_owned())),
        }
    }

    fn with(alerts: Vec<Alert>) -> View {
        View { alerts: Arc::new(Alerts { alerts }), ..view() }
    }

    fn get(view: &View, uri: &str) -> Value {
        super::super::render(view, &routes::find(uri).expect(uri)).expect(uri)
    }

    #[test]
    fn conditions_say_what_is_wrong_with_what() {
        let pool = uri::pool("aaaa-1");
        let view = with(vec![
            alert(1, Health::Critical, &pool),
            alert(2, Health::Warning, "/redfish/v1/gone"),
        ]);
        let own = get(&view, uri::SERVICE_CONDITIONS);
        assert_eq!(own["HealthRollup"], "Critical");
        assert_eq!(
            own["Conditions"][0],
            json!({
                "MessageId": "Palisade.1.0.ArrayDegraded", "MessageArgs": ["tank"],
                "Message": "array tank is degraded", "Severity": "Critical",
                "Resolution": "replace what failed", "Timestamp": "1970-01-01T00:01:00Z",
                "OriginOfCondition": {"@odata.id": pool},
            })
        );
        let gone = &own["Conditions"][1];
        assert!(gone.get("OriginOfCondition").is_none(), "{gone}");
        assert_eq!(own["Oem"]["Palisade"]["Alerts"][0]["AcknowledgedBy"], "ana");
        assert_eq!(get(&with(Vec::new()), uri::SERVICE_CONDITIONS)["HealthRollup"], "OK");
        assert_eq!(get(&view, routes::ROOT)["ServiceConditions"]["@odata.id"], own["@odata.id"]);
    }

    #[test]
    fn a_resource_has_its_own_conditions_and_the_worst_of_what_belongs_to_it() {
        let (pool, drive) = (uri::pool("aaaa-1"), uri::drive("a"));
        let all = vec![
            alert(1, Health::Critical, &drive),
            alert(2, Health::Warning, &pool),
            alert(3, Health::Warning, uri::MANAGER),
        ];
        let view = with(all);
        let status = |of: &str| get(&view, of)["Status"].clone();
        let conditions = |of: &str| status(of)["Conditions"].as_array().map_or(0, Vec::len);
        let rollup = |of: &str| status(of)["HealthRollup"].clone();
        assert_eq!((conditions(&pool), rollup(&pool)), (1, json!("Warning")), "not its drive");
        assert_eq!((conditions(uri::STORAGE), rollup(uri::STORAGE)), (0, json!("Critical")));
        assert_eq!((conditions(uri::CHASSIS), rollup(uri::CHASSIS)), (0, json!("Critical")));
        assert_eq!((conditions(uri::MANAGER), rollup(uri::MANAGER)), (1, json!("Warning")));
        assert_eq!(rollup(uri::SYSTEM), "Critical");
        assert_eq!(rollup(&uri::pool("bbbb-2")), "OK");
        let exports = uri::connection("nbd", &uri::connection_id("bbbb-2", 1));
        let view = with(vec![alert(4, Health::Warning, &exports)]);
        assert_eq!(get(&view, &uri::pool("bbbb-2"))["Status"]["HealthRollup"], "Warning");
    }

    #[test]
    fn a_mail_servers_password_is_not_shown() {
        let plain = Plain { server: "mail.example".to_owned(), port: 587, ..Plain::default() };
        let mail = Arc::new(Mail { plain, has_password: true, ..Mail::default() });
        let events = Arc::new(Shown { mail, ..Shown::default() });
        let own = get(&View { events, ..view() }, uri::EVENT_SERVICE);
        let expected = json!({
            "ServiceEnabled": false, "ServerAddress": "mail.example", "Port": 587,
            "FromAddress": null, "ConnectionProtocol": "StartTLS", "Authentication": "None",
            "Username": null, "Password": null, "PasswordSet": true,
        });
        assert_eq!(own["SMTP"], expected);
    }
}
