//! What comes of requests of nobody that is known, and plans of changes of accounts.

use super::*;

#[test]
fn the_log_is_nobodys_to_fill() {
    run(async |manager| {
        let before = manager.audit().log().entries.len();
        let long = format!("/redfish/v1/Systems/{}", "a".repeat(4000));
        for number in 0..2000 {
            let (asked, body) = match number % 3 {
                0 => (("PUT", long.as_str()), Value::Null),
                1 => (("POST", "/redfish/v1/SessionService/Sessions?x"), json!({})),
                _ => (("POST", "/redfish/v1/SessionService/Sessions"), json!([])),
            };
            let told = ask(&manager, network(3), None, asked, &body).await;
            assert!(told.status().is_client_error(), "{told:?}");
        }
        let log = manager.audit().log();
        let lines: Vec<_> = log.entries.iter().skip(before).collect();
        assert!((1..100).contains(&lines.len()), "{}", lines.len());
        assert!(lines.iter().all(|line| line.request.len() < 300));
        // Who is known has lines all the same.
        let told = ask(
            &manager,
            network(3),
            Some(basic("eye", PASSWORD)),
            ("POST", "/redfish/v1/AccountService/Accounts"),
            &json!({}),
        )
        .await;
        assert_eq!(told.status(), 403);
        let log = manager.audit().log();
        assert_eq!(log.entries.back().map(|line| line.who.as_str()), Some("eye"));
    });
}

#[test]
fn a_login_is_nobodys_task_and_its_token_nobody_elses() {
    run(async |manager| {
        let body = json!({"UserName": "ops", "Password": PASSWORD});
        let asked = ("POST", uri::SESSIONS);
        let impatient = || Some(("prefer", "respond-async".to_owned()));
        let told = ask(&manager, network(4), impatient(), asked, &body).await;
        assert_eq!(told.status(), 201, "{told:?}");
        let wrong = json!({"UserName": "ops", "Password": "incorrect battery"});
        let told = ask(&manager, network(4), impatient(), asked, &wrong).await;
        assert_eq!(told.status(), 401, "{told:?}");
        assert_eq!(manager.view().tasks.len(), 0);
        assert_eq!(manager.view().access.sessions.len(), 1);
        // One whose client goes before it is told ends.
        let gone = tokio::spawn({
            let manager = manager.clone();
            async move { ask(&manager, network(4), None, asked, &body).await }
        });
        tokio::task::yield_now().await;
        gone.abort();
        let lines =
            || manager.audit().log().entries.iter().filter(|line| line.who == "ops").count();
        let before = lines();
        let ended = async {
            while lines() == before || manager.accounts().shown().sessions.len() > 1 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), ended).await.expect("it ends");
    });
}

#[test]
fn what_everybody_may_have_costs_no_computation() {
    run(async |manager| {
        let before = manager.audit().log().entries.len();
        for _ in 0..30 {
            let header = Some(basic("root", "incorrect battery"));
            let told =
                ask(&manager, network(9), header, ("GET", "/redfish/v1"), &Value::Null).await;
            assert_eq!(told.status(), 200);
        }
        assert_eq!(manager.audit().log().entries.len(), before);
        let get = ("GET", "/redfish/v1/Systems");
        let told =
            ask(&manager, network(9), Some(basic("root", PASSWORD)), get, &Value::Null).await;
        assert_eq!(told.status(), 200, "nobody was locked out: {told:?}");
        // What a query puts into an answer depends on who asks.
        let header = Some(basic("root", "incorrect battery"));
        let all = ("GET", "/redfish/v1?$expand=.");
        let told = ask(&manager, network(9), header, all, &Value::Null).await;
        assert_eq!(told.status(), 401);
    });
}

#[test]
fn a_plan_of_accounts_says_what_is_refused_and_which_sessions_end() {
    run(async |manager| {
        let plan = async |name: Role, (method, uri): (&str, &str), body: &Value| {
            let (header, code) = basic(self::name(name), PASSWORD);
            let bytes = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
            let request = Request::builder().method(method).uri(uri).header(header, code);
            let request = request.header(PLAN_HEADER, "only");
            let request = request.header("content-type", "application/json");
            let mut asked: Asked = request.body(Ok(bytes).into()).expect("a request");
            asked.extensions_mut().insert(network(5));
            let told = answer::answer(&manager, asked).await.map(Content::whole);
            let body: Value = serde_json::from_slice(told.body()).unwrap_or_default();
            (told.status().as_u16(), message(&told), body)
        };
        let account = |name: &str| uri::account(name);
        let (root, ops) = (account("root"), account("ops"));
        let (status, name, _) = plan(Role::Administrator, ("DELETE", &root), &Value::Null).await;
        assert_eq!((status, name.as_str()), (403, "LastAdministrator"));
        let new = json!({"UserName": "eye", "Password": PASSWORD, "RoleId": "ReadOnly"});
        let accounts = uri::ACCOUNTS;
        let (status, name, _) = plan(Role::Administrator, ("POST", accounts), &new).await;
        assert_eq!((status, name.as_str()), (409, "AccountExists"));
        let role = json!({"RoleId": "Administrator"});
        let (status, name, _) = plan(Role::Operator, ("PATCH", &ops), &role).await;
        assert_eq!((status, name.as_str()), (403, "InsufficientPrivilege"));
        for _ in 0..2 {
            assert_eq!(log_in(&manager, network(5), "ops").await.status(), 201);
        }
        let (status, _, told) = plan(Role::Administrator, ("DELETE", &ops), &Value::Null).await;
        assert_eq!(status, 200);
        assert_eq!(told["Plan"]["Steps"][1], "end its 2 sessions", "{told}");
        assert_eq!(manager.view().access.sessions.len(), 2, "nothing was done");
        let login = json!({"UserName": "ops", "Password": PASSWORD});
        let (status, ..) = plan(Role::Operator, ("POST", uri::SESSIONS), &login).await;
        assert_eq!(status, 400, "there is no plan of a login");
    });
}
