//! Which users are changed where.

use super::*;
use crate::share::tests::system;

fn names<'a>(all: &[&'a FileSystem]) -> Vec<&'a str> {
    all.iter().map(|of| of.volume.as_str()).collect()
}

fn of(share: Option<&str>) -> Of {
    Of { share: share.map(str::to_owned) }
}

#[test]
fn a_user_is_added_where_it_is_not_and_changed_where_it_is() {
    let all = [
        system("docs", "docs", &["alice", "bob"]),
        system("media", "music", &["bob"]),
        system("old", "attic", &[]),
    ];
    let every = meant(&all, &of(None)).expect("all");
    let one = meant(&all, &of(Some("MUSIC"))).expect("one");
    assert_eq!((names(&every), names(&one)), (vec!["docs", "media", "old"], vec!["media"]));
    let none = meant(&all, &of(Some("none"))).expect_err("no share");
    assert!(none.is(&say::NO_SHARE), "{none:?}");

    let added = |all: &[_], name| lacking(all, name).map(|own| names(&own));
    assert_eq!(added(&every, "alice"), Ok(vec!["media", "old"]));
    assert_eq!(added(&every, "carol"), Ok(vec!["docs", "media", "old"]));
    assert_eq!(added(&one, "alice"), Ok(vec!["media"]));
    let there = |volumes: &str| Problem::new(&say::SHARE_USER_EXISTS, &[&"bob", &volumes]);
    assert_eq!(added(&one, "bob"), Err(there("tank/media")));
    assert_eq!(added(&every[..2], "bob"), Err(there("tank/docs, tank/media")));

    let changed = |all: &[_], name| having(all, name).map(|own| names(&own));
    assert_eq!(changed(&every, "bob"), Ok(vec!["docs", "media"]));
    assert_eq!(changed(&one, "bob"), Ok(vec!["media"]));
    let none = |volumes: &str| Problem::new(&say::NO_SHARE_USER, &[&"alice", &volumes]);
    assert_eq!(changed(&one, "alice"), Err(none("tank/media")));
    assert_eq!(changed(&every[1..], "alice"), Err(none("tank/media, tank/old")));
}

#[test]
fn where_nothing_is_shared_a_share_comes_first() {
    let first = Problem::new(&say::NO_SHARES, &[]);
    assert_eq!(lacking(&[], "alice"), Err(first.clone()));
    assert_eq!(having(&[], "alice"), Err(first.clone()));
    assert_eq!(listed(&[], Some("alice")), Err(first));
    assert_eq!(listed(&[], None), Ok(Vec::new()));
}

#[test]
fn users_have_these_keys() {
    let all = [system("docs", "docs", &["alice", "bob"]), system("media", "music", &["bob"])];
    let every: Vec<_> = all.iter().collect();
    let users = listed(&every, Some("bob")).expect("users");
    let told = serde_json::to_value(Answer::new(UserList { users })).expect("JSON");
    let bob =
        |uid, volume: &str| json!({"name": "bob", "uid": uid, "array": "tank", "volume": volume});
    let both = [bob(70_002, "docs"), bob(70_001, "media")];
    assert_eq!(told, json!({ "schema": 1, "users": both }));
    let table = text(&listed(&every, None).expect("users"));
    let whole = "\
USER   UID    VOLUME
alice  70001  tank/docs
bob    70002  tank/docs
bob    70001  tank/media
";
    assert_eq!(table, whole);
}
