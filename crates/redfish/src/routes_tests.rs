//! The table of routes says one thing of each path.

use super::*;
use std::collections::BTreeSet;

fn sample(uri: &str) -> String {
    let part = |part: &str| if part.starts_with('{') { "x-1".to_owned() } else { part.to_owned() };
    uri.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[test]
fn no_two_rows_match_one_path() {
    let alike = |a: &str, b: &str| {
        let (a, b): (Vec<_>, Vec<_>) = (a.split('/').collect(), b.split('/').collect());
        let same = |(a, b): (&&str, &&str)| a == b || a.starts_with('{') || b.starts_with('{');
        a.len() == b.len() && a.iter().zip(&b).all(same)
    };
    for (at, row) in ROUTES.iter().enumerate() {
        for other in &ROUTES[at + 1..] {
            assert!(!alike(row.uri, other.uri), "{} and {}", row.uri, other.uri);
        }
    }
}

#[test]
fn every_row_is_found_with_its_identifiers() {
    for row in ROUTES {
        let path = sample(row.uri);
        let found = find(&path).expect(&path);
        assert_eq!(found.route, row);
        assert_eq!(found.ids, vec!["x-1"; row.uri.matches('{').count()], "{path}");
        assert_eq!(find(&format!("{path}/")), Some(found), "a slash at the end");
        assert!(!row.methods.is_empty() && row.privilege(Method::Delete) != Some(Nobody));
    }
}

#[test]
fn every_resource_has_one_row_and_every_resource_read_by_clients_a_type() {
    let resources: BTreeSet<_> = ROUTES.iter().map(|row| row.resource).collect();
    assert_eq!(resources.len(), ROUTES.len());
    assert_eq!(ROUTES.len(), Resource::TaskMonitor as usize + 1, "a resource lacks a row");
    for row in ROUTES {
        assert!(row.schema.is_empty() || row.schema.starts_with('#'), "{}", row.schema);
        assert!(row.schema.is_empty() || row.privilege(Method::Get).is_some(), "{}", row.uri);
    }
}

#[test]
fn identifiers_are_decoded_and_encoded() {
    let drives = under!(drive "/");
    let found = find(&format!("{drives}a%2Fb%20c%C3%A4")).expect("a drive");
    assert_eq!((found.route.resource, found.id(0)), (Resource::Drive, "a/b cä"));
    assert_eq!(found.id(1), "");
    assert_eq!(encoded("a/b cä~1"), "a%2Fb%20c%C3%A4~1");
    assert_eq!(find(&format!("{drives}{}", encoded("a/b cä~1"))).expect("found").id(0), "a/b cä~1");
    let found = find("/redfish/v1/%24metadata").expect("is the same");
    assert_eq!(found.route.resource, Resource::Metadata);
}

#[test]
fn a_collection_is_created_in_by_its_members_too() {
    let found = |uri: &str| find_to_create(uri).map(|found| found.route.resource);
    assert_eq!(found("/redfish/v1/SessionService/Sessions/Members"), Some(Resource::Sessions));
    assert_eq!(found("/redfish/v1/SessionService/Sessions"), Some(Resource::Sessions));
    assert_eq!(found("/redfish/v1/Chassis/local/Drives/Members"), Some(Resource::Drive));
    assert_eq!(found("/redfish/v1/Chassis/Members"), Some(Resource::Chassis));
    assert_eq!(found("/redfish/v1/Systems/Members"), None);
    assert_eq!(found("/redfish/v1/Members"), None);
}

#[test]
fn garbage_is_not_found() {
    let drives = under!(drive "");
    for path in [
        "",
        "/",
        "//",
        "redfish",
        "/redfish/",
        "/redfish//",
        "/redfish/v1//",
        "/redfish/v2",
        "/%",
        "/redfish/v1/Systems/other",
        "/redfish/v1/systems",
        "/redfish/v1/JobService/Jobs/a/b",
        "/%2",
        "/redfish%2Fv1",
        "/redfish/v1?",
        "/\u{0}",
        "/redfish/v1/Fabrics//Connections",
        "/%zz",
        "/%+1",
    ] {
        let expected = path.starts_with("/redfish/") && path.len() == 9;
        assert_eq!(find(path).is_some(), expected, "{path}");
    }
    for id in ["%ff", "%", "%1", "%é", "/x"] {
        assert_eq!(find(&format!("{drives}/{id}")), None, "{id}");
    }
    assert_eq!(find(&"/a".repeat(100_000)), None);
    assert_eq!(find(&format!("{drives}/{}", "%".repeat(100_000))), None);
}

#[test]
fn what_a_row_allows_is_told() {
    let found = find("/redfish/v1/Systems/local/Storage/palisade/Volumes/u").expect("a volume");
    assert_eq!(found.route.allow(), "GET, HEAD, PATCH, DELETE");
    assert_eq!(found.route.privilege(Method::Post), None);
    assert_eq!(found.route.privilege(Method::Get), Some(Login));
}
