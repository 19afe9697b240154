//! Accounts, roles and sessions.

use super::{Standing, collection, link, uri};
use crate::access::{
    Account, FAILURES_FREE, LOCKOUT_SECONDS, PASSWORD_CHARACTERS, Role, SESSION_SECONDS,
};
use crate::dates;
use crate::routes::Privilege;
use crate::view::View;
use serde_json::{Value, json};
use std::net::IpAddr;

pub(super) fn service() -> Value {
    json!({
        "@odata.id": uri::ACCOUNT_SERVICE,
        "@odata.type": "#AccountService.v1_18_1.AccountService",
        "Id": "AccountService",
        "Name": "Accounts",
        "ServiceEnabled": true,
        "Status": Standing::GOOD.status(),
        "LocalAccountAuth": "Enabled",
        "SupportedAccountTypes": ["Redfish"],
        "MinPasswordLength": PASSWORD_CHARACTERS.start(),
        "MaxPasswordLength": PASSWORD_CHARACTERS.end(),
        "AccountLockoutThreshold": FAILURES_FREE,
        "AccountLockoutDuration": LOCKOUT_SECONDS,
        "AccountLockoutCounterResetAfter": LOCKOUT_SECONDS,
        "Accounts": link(uri::ACCOUNTS),
        "Roles": link(uri::ROLES),
        "PrivilegeMap": link(uri::registry(privileges::NAME)),
    })
}

pub(super) fn accounts(view: &View) -> Value {
    let uris = view.access.accounts.iter().map(|account| uri::account(&account.name));
    collection(uri::ACCOUNTS, "ManagerAccountCollection", "Accounts", uris)
}

pub(super) fn account(view: &View, name: &str) -> Option<Value> {
    let Account { name, role, enabled, must_change } = view.access.account(name)?;
    Some(json!({
        "@odata.id": uri::account(name),
        "@odata.type": "#ManagerAccount.v1_14_1.ManagerAccount",
        "Id": name,
        "Name": "Account",
        "UserName": name,
        "Password": null,
        "RoleId": role.name(),
        "Enabled": enabled,
        "PasswordChangeRequired": must_change,
        "AccountTypes": ["Redfish"],
        "Links": {"Role": link(uri::role(role.name()))},
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
        "AssignedPrivileges": privileges(role),
    }))
}

/// The names of a role's privileges (DSP0266, "Privileges").
fn privileges(role: Role) -> Vec<&'static str> {
    let all = [
        (Privilege::Login, "Login"),
        (Privilege::ConfigureManager, "ConfigureManager"),
        (Privilege::ConfigureUsers, "ConfigureUsers"),
        (Privilege::ConfigureComponents, "ConfigureComponents"),
        (Privilege::ConfigureSelf, "ConfigureSelf"),
    ];
    all.into_iter().filter(|(own, _)| role.may(*own)).map(|(_, name)| name).collect()
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
