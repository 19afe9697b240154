//! What mails say.

use super::*;
use crate::alerts::outbox::tests::told;

fn letter(told: Vec<Told>) -> Letter {
    Letter { told, left_out: 0 }
}

#[test]
fn a_subject_says_from_where_how_grave_and_what() {
    let mut one = told(3);
    let subject = |one: &Told| subject("nas1", &letter(vec![one.clone()]));
    assert_eq!(subject(&one), "[palisade nas1] WARNING: array tank is degraded");
    one.alert.severity = Health::Critical;
    for (news, word) in [
        (News::Raised, "CRITICAL"),
        (News::Worse, "CRITICAL"),
        (News::Stands, "STILL CRITICAL"),
        (News::Cleared, "CLEARED"),
    ] {
        one.news = news;
        assert_eq!(subject(&one), format!("[palisade nas1] {word}: array tank is degraded"));
    }
    let two = letter(vec![told(1), one]);
    let said = super::subject("", &two);
    assert_eq!(said, "[palisade] 2 messages: 0 critical, 1 warning, 1 cleared");
}

#[test]
fn names_make_no_further_lines() {
    let mut one = told(1);
    one.alert.what = format!("array a\r\nBcc: b@c\n{} is degraded", "ä".repeat(300));
    let subject = subject("h\nX: y", &letter(vec![one.clone()]));
    assert!(!subject.contains(['\r', '\n']) && subject.ends_with('…'), "{subject}");
    assert_eq!(subject.chars().count(), SUBJECT + 1);
    let text = text("h", &letter(vec![one]));
    assert!(text.lines().all(|line| !line.starts_with("Bcc")), "{text}");
    assert!(!text.contains('\r'));
}

#[test]
fn a_text_says_what_to_do_since_when_and_where() {
    let text = |letter: &Letter| text("nas1", letter);
    assert_eq!(
        text(&letter(vec![told(3)])),
        "WARNING:    array tank is degraded\n\
         Do:         replace what failed\n\
         Since:      1970-01-01T00:00:07Z\n\
         Alert:      3\n\
         Of:         tank\n\
         Machine:    nas1\n\
         Resource:   /redfish/v1\n\
         More:       palisade explain ArrayDegraded\n\
         \n\
         \n\
         What stands now: palisade alert list\n\
         To have an alert rest: palisade alert ack ID\n"
    );
    let many = Letter { told: (0..12).map(told).collect(), left_out: 2 };
    let said = text(&many);
    assert_eq!(said.matches("Since:").count(), WHOLE);
    assert!(
        said.contains("1970-01-01T00:00:07Z  WARNING: array tank is degraded\n2 more"),
        "{said}"
    );
    let over = Told { news: News::Cleared, at: 60, ..told(3) };
    let said = text(&letter(vec![over]));
    assert!(said.contains("Over:       1970-01-01T00:01:00Z") && !said.contains("Do:"), "{said}");
}

#[test]
fn a_test_says_that_nothing_is_wrong() {
    assert_eq!(test_subject("nas1"), "[palisade nas1] TEST: mail of alerts arrives");
    assert!(test_text("nas1", "ana").contains("ana") && test_text("", "").contains("Nothing"));
}
