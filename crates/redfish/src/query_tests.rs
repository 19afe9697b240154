//! Queries: what each gives, and that nothing makes one do more than refuse.

use super::*;
use serde_json::json;

fn drive(number: u64) -> Value {
    let health = if number == 2 { "Warning" } else { "OK" };
    json!({
        "@odata.id": format!("/d/{number}"),
        "@odata.type": "#Drive.v1_22_0.Drive",
        "Id": number.to_string(),
        "Name": format!("Drive {number}"),
        "CapacityBytes": number * 1000,
        "Share": 0.25 * number as f64,
        "Status": {"Health": health, "State": "Enabled"},
        "Revision": null,
        "Failing": number == 2,
        "Spelling": "it's",
        "Tags": ["a"],
        "Links": {"Volumes": [{"@odata.id": "/v/1"}]},
        "Chassis": {"@odata.id": "/c"},
    })
}

fn get(uri: &str) -> Option<Value> {
    match uri {
        "/d" => Some(drives()),
        "/c" => Some(json!({
            "@odata.id": "/c", "Name": "Chassis",
            "Drives": {"@odata.id": "/d"}, "Lost": {"@odata.id": "/nowhere"},
        })),
        "/v/1" => Some(json!({"@odata.id": "/v/1", "Name": "v", "Drive": {"@odata.id": "/d/1"}})),
        "/one" => Some(json!({
            "@odata.id": "/one", "Members": [{"@odata.id": "/d/1"}], "Members@odata.count": 1,
        })),
        uri => uri.strip_prefix("/d/")?.parse().ok().map(drive),
    }
}

fn drives() -> Value {
    let items: Vec<Value> =
        (1..=4).map(|number| json!({"@odata.id": format!("/d/{number}")})).collect();
    json!({
        "@odata.id": "/d",
        "@odata.type": "#DriveCollection.DriveCollection",
        "Name": "Drives",
        "Members@odata.count": items.len(),
        "Members": items,
    })
}

fn ask(uri: &str, raw: &str) -> Result<Value, Refusal> {
    Query::parse(raw)?.apply(get(uri).unwrap(), &get)
}

fn why(raw: &str) -> (u16, String) {
    let refusal = ask("/d", raw).expect_err(raw);
    (refusal.status, refusal.messages[0].id.rsplit_once('.').unwrap().1.to_owned())
}

fn filtered(filter: &str) -> Vec<u64> {
    let answer = ask("/d", &format!("$filter={filter}")).unwrap();
    let items = answer["Members"].as_array().unwrap();
    assert_eq!(answer["Members@odata.count"], items.len());
    let number = |one: &Value| one["@odata.id"].as_str().unwrap()[3..].parse().unwrap();
    items.iter().map(number).collect()
}

#[test]
fn a_filter_compares() {
    for (filter, found) in [
        ("Status/Health eq 'Warning'", &[2][..]),
        ("Status/Health ne 'Warning'", &[1, 3, 4]),
        ("CapacityBytes gt 2000", &[3, 4]),
        ("CapacityBytes ge 2000", &[2, 3, 4]),
        ("CapacityBytes lt 2e3", &[1]),
        ("CapacityBytes le 2000.5", &[1, 2]),
        ("2000 lt CapacityBytes", &[3, 4]),
        ("Share eq 0.5", &[2]),
        ("Share ge 1", &[4]),
        ("Failing eq true", &[2]),
        ("Failing", &[2]),
        ("not Failing", &[1, 3, 4]),
        ("Revision eq null", &[1, 2, 3, 4]),
        ("Nothing/There eq null", &[1, 2, 3, 4]),
        ("Nothing ne null", &[]),
        ("Nothing gt 1", &[]),
        ("Nothing le null", &[]),
        ("Name gt 'Drive 3'", &[4]),
        ("Spelling eq 'it''s'", &[1, 2, 3, 4]),
        ("Tags eq 'a'", &[]),
        ("Name eq 7", &[]),
        ("Name ne 7", &[1, 2, 3, 4]),
        ("CapacityBytes gt -170141183460469231731687303715884105728", &[1, 2, 3, 4]),
        ("@odata.id eq '/d/3'", &[3]),
    ] {
        assert_eq!(filtered(filter), found, "{filter}");
    }
}

#[test]
fn a_filter_binds_as_it_must() {
    for (filter, found) in [
        ("Id eq '1' or Id eq '2' and Failing", &[1, 2][..]),
        ("(Id eq '1' or Id eq '2') and Failing", &[2]),
        ("not (Id eq '1' or Id eq '2')", &[3, 4]),
        ("not Failing and CapacityBytes gt 3000", &[4]),
        ("not not Failing", &[2]),
        ("CapacityBytes gt 1000 eq Failing", &[1, 2]),
        ("  (Id  eq '1')or(Id eq '4') ", &[1, 4]),
        ("Id+eq+'1'+or+Id%20eq%20'2'", &[1, 2]),
        ("Id eq inf", &[]),
    ] {
        assert_eq!(filtered(filter), found, "{filter}");
    }
}

#[test]
fn a_filter_that_cannot_be_read_is_refused() {
    let deep = format!("{}Failing{}", "(".repeat(33), ")".repeat(33));
    let negated = format!("{}Failing", "not ".repeat(33));
    let long = vec!["Failing"; 300].join(" or ");
    for filter in [
        "",
        " ",
        "eq",
        "Id eq",
        "eq '1'",
        "Id '1'",
        "Id eq '1",
        "Id eq \"1\"",
        "(Id eq '1'",
        "Id eq '1')",
        "()",
        "not",
        "and",
        "Id eq '1' and",
        "or Id eq '1'",
        "Id = 1",
        "Id eq 1x",
        "Id eq --1",
        "Id eq -",
        "Id eq 1e999",
        "Id//x eq 1",
        "/Id eq 1",
        "Id/ eq 1",
        "Id eq '1' Id eq '2'",
        "a,b eq 1",
        "Id eq '1' nor Failing",
        &deep,
        &negated,
        &long,
    ] {
        let told = why(&format!("$filter={filter}"));
        assert_eq!(told, (400, "QueryParameterValueFormatError".to_owned()), "{filter}");
    }
    let most = format!("{}Failing{}", "(".repeat(32), ")".repeat(32));
    assert_eq!(filtered(&most), [2]);
}

#[test]
fn pages() {
    let ids = |raw: &str| {
        let answer = ask("/d", raw).unwrap();
        assert_eq!(answer["Members@odata.count"], 4, "the count is of all pages");
        let id = |one: &Value| one["@odata.id"].as_str().unwrap().to_owned();
        answer["Members"].as_array().unwrap().iter().map(id).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ids("$top=2"), "/d/1 /d/2");
    assert_eq!(ids("$skip=3"), "/d/4");
    assert_eq!(ids("$skip=1&$top=2"), "/d/2 /d/3");
    assert_eq!(ids("$top=0"), "");
    assert_eq!(ids("$skip=9&$top=9"), "");
    assert_eq!(ids("%24top=1"), "/d/1");
    let filtered = ask("/d", "$filter=CapacityBytes gt 1000&$skip=1&$top=1").unwrap();
    assert_eq!(filtered["Members"], json!([{"@odata.id": "/d/3"}]));
    assert_eq!(filtered["Members@odata.count"], 3);
    for (raw, name) in [
        ("$top=x", "QueryParameterValueTypeError"),
        ("$top=", "QueryParameterValueTypeError"),
        ("$top=1.5", "QueryParameterValueTypeError"),
        ("$top=-1", "QueryParameterOutOfRange"),
        ("$skip=99999999999999999999", "QueryParameterOutOfRange"),
        ("$top=1&$top=1", "QueryCombinationInvalid"),
    ] {
        assert_eq!(why(raw), (400, name.to_owned()), "{raw}");
    }
}

#[test]
fn what_is_for_collections_is_refused_elsewhere() {
    for raw in ["$top=1", "$skip=1", "$filter=Id eq '1'", "only"] {
        let refusal = ask("/d/1", raw).unwrap_err();
        assert!(refusal.messages[0].id.ends_with(".QueryNotSupportedOnResource"), "{raw}");
    }
}

#[test]
fn links_are_expanded() {
    let answer = ask("/d", "$expand=.").unwrap();
    assert_eq!(answer["Members"][2], drive(3));
    let answer = ask("/d/1", "$expand=.").unwrap();
    assert_eq!(answer["Chassis"]["Name"], "Chassis");
    assert_eq!(answer["Links"], drive(1)["Links"]);
    let answer = ask("/d/1", "$expand=~").unwrap();
    assert_eq!(answer["Chassis"], drive(1)["Chassis"]);
    assert_eq!(answer["Links"]["Volumes"][0]["Name"], "v");
    let answer = ask("/d/1", "$expand=*($levels=1)").unwrap();
    assert_eq!(answer["Chassis"]["Name"], "Chassis");
    assert_eq!(answer["Links"]["Volumes"][0]["Name"], "v");
    let round = json!({"@odata.id": "/d/1"});
    assert_eq!(answer["Links"]["Volumes"][0]["Drive"], round);
}

#[test]
fn levels_are_kept_and_what_is_around_stays_a_link() {
    let answer = ask("/c", "$expand=.($levels=1)").unwrap();
    assert_eq!(answer["Drives"]["Members"][0], json!({"@odata.id": "/d/1"}));
    let answer = ask("/c", "$expand=.($levels=3)").unwrap();
    assert_eq!(answer["Drives"]["Members"][0]["Id"], "1");
    assert_eq!(answer["Drives"]["Members"][0]["Chassis"], json!({"@odata.id": "/c"}));
    assert_eq!(answer["Lost"], json!({"@odata.id": "/nowhere"}), "it leads nowhere");
    for (raw, name) in [
        ("$expand=.($levels=0)", "QueryParameterOutOfRange"),
        ("$expand=.($levels=4)", "QueryParameterOutOfRange"),
        ("$expand=.($levels=99999999999999999999999)", "QueryParameterOutOfRange"),
        ("$expand=.($levels=)", "QueryParameterValueFormatError"),
        ("$expand=.($levels=-1)", "QueryParameterValueFormatError"),
        ("$expand=.($levels=1", "QueryParameterValueFormatError"),
        ("$expand=", "QueryParameterValueFormatError"),
        ("$expand", "QueryParameterValueFormatError"),
        ("$expand=Members", "QueryParameterValueFormatError"),
        ("$expand=.&$expand=*", "QueryCombinationInvalid"),
    ] {
        assert_eq!(why(raw), (400, name.to_owned()), "{raw}");
    }
}

#[test]
fn an_answer_does_not_grow_without_end() {
    let many = |uri: &str| {
        let link = |n: usize| json!({"@odata.id": format!("{uri}/{n}")});
        Some(json!({"@odata.id": uri, "Members": (0..100).map(link).collect::<Vec<_>>()}))
    };
    let query = Query::parse("$expand=*($levels=3)").unwrap();
    let refusal = query.apply(many("/x").unwrap(), &many).unwrap_err();
    assert_eq!(refusal.status, 507);
}

#[test]
fn properties_are_selected() {
    let answer = ask("/d/1", "$select=Name,Status/Health").unwrap();
    assert_eq!(
        answer,
        json!({
            "@odata.id": "/d/1", "@odata.type": "#Drive.v1_22_0.Drive",
            "Name": "Drive 1", "Status": {"Health": "OK"},
        })
    );
    let whole = json!({"Health": "OK", "State": "Enabled"});
    for both in ["$select=Status,Status/Health", "$select=Status/Health,Status"] {
        assert_eq!(ask("/d/1", both).unwrap()["Status"], whole);
    }
    assert_eq!(ask("/d/1", "$select=*").unwrap(), drive(1));
    assert_eq!(ask("/d/1", "$select=Nothing").unwrap().as_object().unwrap().len(), 2);
    assert_eq!(ask("/d", "$select=Members").unwrap()["Members@odata.count"], 4);
    assert_eq!(ask("/d", "$select=Name").unwrap().get("Members@odata.count"), None);
    let many = vec!["a"; 300].join(",");
    let deep = vec!["a"; 17].join("/");
    for raw in ["", ",", "a,", "a//b", "/a", "a/", "a b", "'a'", "../a?", &many, &deep] {
        let told = why(&format!("$select={raw}"));
        assert_eq!(told, (400, "QueryParameterValueFormatError".to_owned()), "{raw}");
    }
}

#[test]
fn all_go_together() {
    let raw = "$filter=CapacityBytes%20gt%201000&$top=1&$expand=.&$select=Members/Name";
    let answer = ask("/d", raw).unwrap();
    let drive = drive(2);
    let wanted = json!([{
        "@odata.id": "/d/2", "@odata.type": drive["@odata.type"], "Name": "Drive 2",
    }]);
    assert_eq!(answer["Members"], wanted);
    assert_eq!(answer["Members@odata.count"], 3);
    assert_eq!(answer.get("Name"), None);
}

#[test]
fn only_gives_the_one_there_is() {
    assert_eq!(ask("/one", "only").unwrap(), drive(1));
    assert_eq!(ask("/d", "only").unwrap(), drives());
    for raw in ["only&$top=1", "$expand=.&only", "only&$select=Name", "only&$filter=Id eq '1'"] {
        assert_eq!(why(raw), (400, "QueryCombinationInvalid".to_owned()), "{raw}");
    }
    assert_eq!(why("only=yes").0, 400);
}

#[test]
fn what_is_not_known_is_refused_if_it_has_a_dollar() {
    for raw in ["$count=true", "$orderby=Name", "$", "$search=x", "$Top=1", "$format=json"] {
        assert_eq!(why(raw), (501, "QueryParameterUnsupported".to_owned()), "{raw}");
    }
    for raw in ["", "&&", "x", "x=1&y", "excerpt", "=", "%zz=%zz", "a=%ff", "top=1", "Only"] {
        assert_eq!(ask("/d", raw).unwrap(), drives(), "{raw}");
    }
    assert!(Query::parse("x=1").unwrap().is_empty());
    assert_eq!(why("$top=%zz").0, 400);
    assert_eq!(why("$filter=%ff").0, 400);
    assert_eq!(why(&format!("x={}", "y".repeat(9000))).0, 414);
}

#[test]
fn nothing_makes_a_query_panic() {
    let words = [
        "(", ")", "'", "''", " ", "not ", "and", " or ", "eq", " lt ", "-", "1", "9e9", "a/b", "@",
        "%", "%2", "%27", "é", "\u{0}", "$levels=", "*", ".", "~", ",", "/", "&", "=", "$filter=",
        "$select=", "$expand=", "$top=", "only",
    ];
    // A sequence without chance: each of these is tried in many mixes (Numerical Recipes' LCG).
    let mut state = 7_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as usize
    };
    for _ in 0..20_000 {
        let mut raw = ["$filter=", "$select=", "$expand=", ""][next() % 4].to_owned();
        for _ in 0..next() % 12 {
            raw.push_str(words[next() % words.len()]);
        }
        let _ = ask("/d", &raw);
        let _ = ask("/d/1", &raw);
    }
}

/// A log of so many lines, the newest first.
fn log(lines: usize) -> Value {
    let uri = "/redfish/v1/Managers/palisade/LogServices/Audit/Entries";
    let line = |number: usize| json!({"@odata.id": format!("{uri}/{number}")});
    let lines: Vec<Value> = (1..=lines).rev().map(line).collect();
    json!({
        "@odata.id": uri,
        "@odata.type": PAGED,
        "Members@odata.count": lines.len(),
        "Members": lines,
    })
}

#[test]
fn a_long_log_is_told_in_pages() {
    let get = |uri: &str| {
        let number = uri.rsplit_once('/').and_then(|(_, last)| last.parse::<u64>().ok());
        match number {
            Some(number) => Some(json!({"@odata.id": uri, "Number": number})),
            None => Some(log(450)),
        }
    };
    let mut raw = "$expand=.&$select=Members/Number".to_owned();
    let (mut numbers, mut pages) = (Vec::new(), 0);
    loop {
        let page = Query::parse(&raw).expect("read").apply(log(450), &get).expect("told");
        pages += 1;
        assert_eq!(page["Members@odata.count"], 450);
        let members = page["Members"].as_array().expect("a list");
        assert!(members.len() <= PAGE);
        numbers.extend(members.iter().map(|one| one["Number"].as_u64().expect("expanded")));
        let Some(next) = page["Members@odata.nextLink"].as_str() else { break };
        raw = next.split_once('?').expect("a query").1.to_owned();
    }
    assert_eq!((pages, numbers.len()), (3, 450));
    assert!(numbers.is_sorted_by(|a, b| a > b), "each once, the newest first");
    // Who says how many gets these, and no more pages.
    let page = Query::parse("$top=300").expect("read").apply(log(450), &get).expect("told");
    assert_eq!(page["Members"].as_array().map(Vec::len), Some(300));
    assert!(page["Members@odata.nextLink"].is_null());
    // One that stands in another is cut as well.
    let around = json!({"@odata.id": "/a", "Entries": {"@odata.id": "/log"}});
    let whole = Query::parse("$expand=.").expect("read").apply(around, &get).expect("told");
    assert_eq!(whole["Entries"]["Members"].as_array().map(Vec::len), Some(PAGE));
    assert!(whole["Entries"]["Members@odata.nextLink"].is_string());
}

#[test]
fn a_page_of_a_log_is_made_alone() {
    use crate::view::{Ending, Entry, Log, View};
    use crate::{etag, routes, service};
    let line = |number| Entry {
        number,
        time: number,
        who: "ann".to_owned(),
        from: "socket".to_owned(),
        request: String::new(),
        what: String::new(),
        result: Ending::Ok,
        message: None,
        of: None,
    };
    let entries = (1..=450).map(|number| line(number).into()).collect();
    let view = View { log: Log { entries, ..Log::default() }.into(), ..View::default() };
    let found = routes::find(service::uri::AUDIT_ENTRIES).expect("a route");
    let whole = service::render(&view, &found).expect("there");
    for (raw, made) in [
        ("", PAGE),
        ("$top=3", 3),
        ("$skip=2&$top=3", 3),
        ("$skip=200", PAGE),
        ("$skip=449&$top=9", 1),
        ("$skip=1000", 0),
        ("$top=0", 0),
        ("$top=1000&$select=Members/Id", 450),
        ("$filter=Id eq '7'&$top=1", 450),
        ("only", 450),
    ] {
        let query = Query::parse(raw).expect("read");
        let part = service::render_part(&view, &found, &query.part()).expect("there");
        let lines = part["Members"].as_array().expect("a list");
        assert_eq!(lines.iter().filter(|line| !line.is_null()).count(), made, "{raw}");
        let told = |mut value: Value| {
            value[etag::PROPERTY].take();
            query.apply(value, &|_| None).expect("told")
        };
        assert_eq!(told(part), told(whole.clone()), "{raw}");
    }
}
