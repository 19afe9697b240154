//! Accounts, roles and sessions.

use super::{Standing, collection, condition, link, uri};
use crate::access::{
    Account, FAILURES_FREE, LOCKOUT_SECONDS, PASSWORD_CHARACTERS, Role, SESSION_SECONDS,
};
use crate::dates;
use crate::oem;
use crate::privileges;
use crate::routes::Privilege;
use crate::view::View;
use serde_json::{Value, json};
use std::net::IpAddr;

pub(super) fn service(view: &View) -> Value {
    let mut service = json!({
        "@odata.id": uri::ACCOUNT_SERVICE,
        "@odata.type": "#AccountService.v1_18_1.AccountService",
        "Id": "AccountService",
        "Name": "Accounts",
        "ServiceEnabled": true,
        "Status": standing(view).status(),
        "LocalAccountAuth": "Enabled",
        "SupportedAccountTypes": ["Redfish"],
        "MinPasswordLength": PASSWORD_CHARACTERS.start(),
        "MaxPasswordLength": PASSWORD_CHARACTERS.end(),
        "AccountLockoutThreshold": FAILURES_FREE,
        "AccountLockoutDuration": LOCKOUT_SECONDS,
        "AccountLockoutCounterResetAfter": LOCKOUT_SECONDS,
        "Accounts": link(uri::ACCOUNTS),
        "Roles": link(uri::ROLES),
        "PrivilegeMap": link(privileges::URI),
    });
    if let (Some(status), Some(problem)) = (service.get_mut("Status"), &view.access.problem) {
        let condition = condition(problem, "Critical");
        super::put(status, "Conditions", json!([condition]));
    }
    service
}

/// Nobody logs in, or stays out, as the file says that can't be read or written.
fn standing(view: &View) -> Standing {
    match view.access.problem {
        Some(_) => Standing::enabled("Critical"),
        None => Standing::GOOD,
    }
}

pub(super) fn accounts(view: &View) -> Value {
    let uris = view.access.accounts.iter().map(|account| uri::account(&account.name));
    collection(uri::ACCOUNTS, "ManagerAccountCollection", "Accounts", uris)
}

pub(super) fn account(view: &View, name: &str) -> Option<Value> {
    let Account { name, role, enabled, must_change, generation } = view.access.account(name)?;
    let extension = oem::ManagerAccount { password_generation: *generation };
    Some(json!({
        "@odata.id": uri::account(name),
        "@odata.type": "#ManagerAccount.v1_14_1.ManagerAccount",
        "Id": name,
        "Name": "Account",
        "UserName": name,
        "Password": null,
        "RoleId": role.name(),
        "Enabled": enabled,
        "Locked": view.access.locked.contains(name),
        "PasswordChangeRequired": must_change,
        "AccountTypes": ["Redfish"],
        "Links": {"Role": link(uri::role(role.name()))},
        "Oem": oem::wrapped(&extension),
    }))
}

pub(super) fn roles() -> Value {
    let uris = Role::ALL.map(|role| uri::role(role.name()));
    collection(uri::ROLES, "RoleCollection", "Roles", uris)
}

pub(super) fn role(name: &str) -> Option<Value> {
    let role = Role::of(name)?;
    Some(json!({
        "@odata.id": uri::role(name),
        "@odata.type": "#Role.v1_3_3.Role",
        "Id": name,
        "Name": "Role",
        "RoleId": name,
        "IsPredefined": true,
        "AssignedPrivileges": assigned(role),
    }))
}

/// The names of a role's privileges.
fn assigned(role: Role) -> Vec<&'static str> {
    let all = [
        Privilege::Login,
        Privilege::ConfigureManager,
        Privilege::ConfigureUsers,
        Privilege::ConfigureComponents,
        Privilege::ConfigureSelf,
    ];
    all.into_iter().filter(|own| role.may(*own)).map(privileges::name).collect()
}

pub(super) fn session_service(view: &View) -> Value {
    json!({
        "@odata.id": uri::SESSION_SERVICE,
        "@odata.type": "#SessionService.v1_2_0.SessionService",
        "Id": "SessionService",
        "Name": "Sessions",
        "ServiceEnabled": true,
        "Status": Standing::GOOD.status(),
        "SessionTimeout": view.access.session_seconds,
        "SessionTimeout@Redfish.AllowableNumbers":
            [format!("{}:{}", SESSION_SECONDS.start(), SESSION_SECONDS.end())],
        "Sessions": link(uri::SESSIONS),
    })
}

pub(super) fn sessions(view: &View) -> Value {
    let uris = view.access.sessions.iter().map(|session| uri::session(&session.id));
    collection(uri::SESSIONS, "SessionCollection", "Sessions", uris)
}

pub(super) fn session(view: &View, id: &str) -> Option<Value> {
    let own = view.access.session(id)?;
    let mut session = json!({
        "@odata.id": uri::session(id),
        "@odata.type": "#Session.v1_8_0.Session",
        "Id": id,
        "Name": "Session",
        "UserName": own.account,
        "SessionType": "Redfish",
        "CreatedTime": dates::text(own.began),
    });
    if own.from.parse::<IpAddr>().is_ok() {
        super::put_named(&mut session, "ClientOriginIPAddress", &own.from);
    }
    if let Some(account) = view.access.account(&own.account) {
        super::put(&mut session, "Roles", json!([account.role.name()]));
    }
    Some(session)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Access;
    use crate::messages::{ACCOUNTS_NOT_READ, Error};
    use crate::view::Problem;

    #[test]
    fn accounts_that_can_not_be_read_are_told_by_their_service() {
        assert_eq!(service(&View::default())["Status"]["Health"], "OK");
        let problem = Problem { since: 0, what: Error::new(&ACCOUNTS_NOT_READ, &[&"why"]) };
        let access = Access { problem: Some(problem), ..Access::default() };
        let told = service(&View { access: access.into(), ..View::default() });
        let status = &told["Status"];
        assert_eq!(status["Health"], "Critical");
        let condition = &status["Conditions"][0];
        assert_eq!(condition["MessageId"], "Palisade.1.0.AccountsNotRead");
        assert_eq!(condition["Severity"], "Critical");
    }
}
