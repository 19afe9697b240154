//! A slow change is told where its answer will be, and so is who may read it.

use super::*;
use crate::caller::Role;
use crate::peer::Origin;
use crate::renewal::tests::run_with;
use crate::reply::Body;

const FIND: &str =
    "/redfish/v1/Systems/local/Storage/palisade/Actions/Oem/PalisadeStorage.FindDrives";

fn caller(name: &str, role: Role) -> Caller {
    let (name, role, from) = (name.to_owned(), Some(role), "192.0.2.1".to_owned());
    Caller { name, role, from, ..Caller::default() }
}

fn asked(body: &'static str, prefer: &str) -> Request<Bytes> {
    let request = Request::builder().method("POST").uri(FIND).header("prefer", prefer);
    request.body(Bytes::from_static(body.as_bytes())).expect("a request")
}

/// Asks for a look at drives.
async fn ask(manager: &Arc<Manager>, patience: Duration, body: &'static str) -> Outcome {
    let (asked, found) = (asked(body, ""), routes::find(FIND).expect("a route"));
    let own = caller("ann", Role::Operator);
    carry_out_within(patience, manager, &asked, &own, (&found, Method::Post)).await
}

/// The identifier that an answer leads to.
fn id_of(told: &Told) -> String {
    assert_eq!(told.status, StatusCode::ACCEPTED);
    let location = told.location.as_deref().expect("a monitor");
    routes::find(location).expect("a route").id(0).to_owned()
}

#[test]
fn a_slow_change_is_answered_by_its_monitor_to_who_asked() {
    run_with(false, Vec::new(), |manager| async move {
        manager.start(Duration::ZERO).await;
        // Who looks at drives waits for this.
        let turn = manager.looking.lock().await;
        let told = ask(&manager, Duration::from_millis(20), "").await.expect("is begun");
        let id = id_of(&told);
        let (own, other) = (caller("ann", Role::Operator), caller("bob", Role::Operator));
        let again = monitor(&manager, &own, &id).expect("goes on");
        assert_eq!(id_of(&again), id);
        let refused = monitor(&manager, &other, &id).expect_err("is refused");
        assert_eq!(refused.status, 403);
        let local = Caller { origin: Origin::Socket(7), ..own.clone() };
        assert_eq!(monitor(&manager, &local, &id).err().map(|refused| refused.status), Some(403));
        assert_eq!(monitor(&manager, &own, "x").err().map(|refused| refused.status), Some(404));
        let task = manager.view().tasks.first().cloned().expect("a task");
        assert_eq!((task.uri.as_str(), task.method.as_str(), task.ended), (FIND, "POST", None));
        drop(turn);
        let answer = loop {
            let told = monitor(&manager, &caller("root", Role::Administrator), &id).expect("told");
            if told.status != StatusCode::ACCEPTED {
                break told;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(answer.status, StatusCode::OK);
        assert!(matches!(answer.body, Body::Json(value) if value["Drives"].is_array()));
        assert!(manager.view().tasks[0].ended.is_some_and(|(_, is_done)| is_done));
    });
}

#[test]
fn what_can_be_said_at_once_is_said_at_once() {
    run_with(false, Vec::new(), |manager| async move {
        manager.start(Duration::ZERO).await;
        let refused = ask(&manager, Duration::ZERO, r#"{"None":1}"#).await.err();
        assert_eq!(refused.map(|refusal| refusal.status), Some(400));
        assert!(manager.view().tasks.is_empty());
        for (prefer, is_impatient) in [
            ("respond-async", true),
            ("wait=5, Respond-Async; x=1", true),
            ("return=minimal", false),
        ] {
            assert_eq!(super::is_impatient(asked("", prefer).headers()), is_impatient, "{prefer}");
        }
    });
}
