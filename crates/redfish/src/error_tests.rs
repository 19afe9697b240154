//! Bodies of errors: what they hold, and that a client reads from them what the daemon said.

use super::*;

#[test]
fn what_the_daemon_says_comes_back_from_its_body() {
    for (error, status) in [
        (Error::new(&messages::NO_ARRAY, &[&"x"]), 409),
        (Error::new(&messages::BAD_NAME, &[&"x y"]), 400),
        (Error::new(&messages::SLOT_IN_USE, &[&3]).advise("take it out"), 403),
    ] {
        let refusal = Refusal::from(&error);
        assert_eq!(refusal.status, status);
        assert_eq!(read(refusal.status, &refusal.body()), Some(error.clone()));
        assert_eq!(body(&error), refusal.body());
    }
}

#[test]
fn a_message_of_the_base_registry_has_all_its_parts() {
    let refusal = Refusal::base(&Base::PROPERTY_TYPE, &["7", "Name"]).at("#/Name");
    assert_eq!(refusal.status, 400);
    let body = refusal.body();
    assert_eq!(body["error"]["code"], "Base.1.19.PropertyValueTypeError");
    let message = &body["error"]["@Message.ExtendedInfo"][0];
    assert_eq!(message["MessageId"], "Base.1.19.PropertyValueTypeError");
    assert_eq!(message["Message"], "The value 7 of the property Name has the wrong type.");
    assert_eq!(message["MessageArgs"], json!(["7", "Name"]));
    assert_eq!(message["MessageSeverity"], "Critical");
    assert_eq!(message["RelatedProperties"], json!(["#/Name"]));
    assert!(!message["Resolution"].as_str().unwrap().is_empty());
    assert_eq!(read(400, &body).unwrap().code, ErrorCode::Usage);
}

#[test]
fn what_stands_in_an_argument_is_left_as_it_is() {
    let refusal = Refusal::base(&Base::PROPERTY_TYPE, &["%2 100%", "%1"]);
    let text = "The value %2 100% of the property %1 has the wrong type.";
    assert_eq!(refusal.messages[0].text, text);
}

#[test]
fn several_reasons_are_told_together() {
    let one = |name: &str| Refusal::base(&Base::PROPERTY_UNKNOWN, &[name]);
    let body = Refusal::all(vec![one("A"), one("B")]).unwrap().body();
    assert_eq!(body["error"]["code"], "Base.1.19.GeneralError");
    assert_eq!(body["error"]["@Message.ExtendedInfo"].as_array().unwrap().len(), 2);
    assert_eq!(Refusal::all(Vec::new()), None);
}

#[test]
fn the_status_tells_what_a_foreign_message_means() {
    let of = |status: u16| {
        let body = json!({"error": {"code": "Base.1.0.GeneralError", "message": "m"}});
        read(status, &body).unwrap().code
    };
    assert_eq!(of(400), ErrorCode::Usage);
    assert_eq!(of(403), ErrorCode::Refused);
    assert_eq!(of(404), ErrorCode::Failed);
    assert_eq!(of(500), ErrorCode::Failed);
}

#[test]
fn what_is_no_body_of_an_error_is_none() {
    for body in [json!(null), json!({}), json!([]), json!({"error": 7}), json!({"error": {}})] {
        assert_eq!(read(400, &body), None, "{body}");
    }
}

#[test]
fn every_message_of_the_base_registry_is_in_the_table() {
    let text = include_str!("error.rs");
    let rows = text.matches(": Self =").count();
    // Those that have no name of their own are told as general errors.
    let general = text.matches("\"GeneralError\"").count() - 1;
    assert_eq!(Base::ALL.len(), rows - general);
}
