//! A view becomes resources, and these the same view.

use crate::query::Query;
use crate::read::{self, Around, Fetched};
use crate::routes::{self, Method, Resource};
use crate::service::{render, uri};
use crate::view::{Array, FileSystem, Surroundings, View};
use crate::{oem, sample};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const VIEWS: u64 = 400;

fn get(view: &View, uri: &str) -> Value {
    let found = routes::find(uri).expect(uri);
    render(view, &found).expect(uri)
}

/// A collection with its members.
fn expanded(view: &View, uri: &str) -> Value {
    let mut collection = get(view, uri);
    for one in collection["Members"].as_array_mut().expect("members") {
        *one = get(view, one["@odata.id"].as_str().expect("a link"));
        // Two levels: metrics of drives are further resources.
        if let Some(below) = one.get("Metrics").and_then(|link| link["@odata.id"].as_str()) {
            let metrics = get(view, below);
            one["Metrics"] = metrics;
        }
        // Three levels: shares are in collections of their own.
        if let Some(below) = one.get("ExportedShares").and_then(|link| link["@odata.id"].as_str()) {
            let shares = expanded(view, below);
            one["ExportedShares"] = shares;
        }
    }
    collection
}

fn fetch(view: &View) -> Fetched {
    Fetched {
        root: get(view, routes::ROOT),
        manager: get(view, uri::MANAGER),
        pools: expanded(view, uri::POOLS),
        volumes: expanded(view, uri::VOLUMES),
        drives: expanded(view, uri::DRIVES),
        nvme: expanded(view, uri::NVME_CONNECTIONS),
        nbd: expanded(view, uri::NBD_CONNECTIONS),
        local: expanded(view, uri::LOCAL_CONNECTIONS),
        iscsi: expanded(view, uri::ISCSI_CONNECTIONS),
        fc: expanded(view, uri::FC_CONNECTIONS),
        filesystems: expanded(view, uri::FILE_SYSTEMS),
        jobs: expanded(view, uri::JOBS),
    }
}

/// Enclosures in the order of others: the machine's housing is told first.
fn in_order(mut own: Surroundings, other: &Surroundings) -> Surroundings {
    let at = |id: &str| other.enclosures.iter().position(|enclosure| enclosure.id == id);
    own.enclosures.sort_by_key(|enclosure| at(&enclosure.id));
    own
}

#[test]
fn a_view_comes_back() {
    for seed in 0..VIEWS {
        let view = View { tasks: Vec::new(), ..sample::view(seed) };
        let text = serde_json::to_string(&fetch(&view).pools).expect("encodes");
        let pools = serde_json::from_str(&text).expect("decodes");
        let fetched = Fetched { pools, ..fetch(&view) };
        let back = read::view(&fetched).expect("is read");
        for entry in &view.log.entries {
            let line = get(&view, &uri::audit_entry(entry.number));
            assert_eq!(read::entry(&line).as_ref(), Ok(&**entry), "seed {seed}");
        }
        let fabric = get(&view, uri::FC);
        assert_eq!(read::ports(&fabric).as_ref(), Ok(&view.ports), "seed {seed}");
        let accounts = read::all(&expanded(&view, uri::ACCOUNTS), read::account);
        assert_eq!(accounts.as_ref(), Ok(&view.access.accounts), "seed {seed}");
        let around = Around {
            chassis: expanded(&view, uri::CHASSIS_ALL),
            sensors: expanded(&view, uri::SENSORS),
            fans: expanded(&view, uri::FANS),
            supplies: expanded(&view, uri::SUPPLIES),
            ports: expanded(&view, uri::PORTS),
        };
        let surroundings = read::surroundings(&around).expect("is read");
        let surroundings = in_order(surroundings, &view.surroundings).into();
        // Of the logs, of accounts and of HTTPS a client reads what it wants.
        let (log, access) = (view.log.clone(), view.access.clone());
        let (https, events) = (view.https.clone(), view.events.clone());
        let alerts = read::alerts(&get(&view, uri::SERVICE_CONDITIONS));
        assert_eq!(alerts.as_ref(), Ok(&view.alerts.alerts), "seed {seed}");
        let alerts = view.alerts.clone();
        let ports = view.ports.clone();
        let back = View { log, access, https, events, alerts, surroundings, ports, ..back };
        assert_eq!(back, view, "seed {seed}");
        let printed = |view: &View| serde_json::to_string(&view.status).expect("encodes");
        assert_eq!(printed(&back), printed(&view), "seed {seed}");
    }
}

#[test]
fn file_systems_and_their_shares_are_read_by_one_request() {
    let query = Query::parse("$expand=.($levels=3)").expect("a query");
    let mut shares = 0;
    for seed in 0..VIEWS / 10 {
        let view = sample::view(seed);
        let other = |uri: &str| render(&view, &routes::find(uri)?);
        let all = query.apply(get(&view, uri::FILE_SYSTEMS), &other).expect("is answered");
        let read = read::all(&all, read::filesystem).expect("is read");
        let own = |array: &Array| {
            let one = |own: &FileSystem| (array.uuid.clone(), own.clone());
            array.filesystems.iter().map(one).collect::<Vec<_>>()
        };
        assert_eq!(read, view.status.arrays.iter().flat_map(own).collect::<Vec<_>>());
        shares += read.iter().map(|(_, own)| own.shares.len()).sum::<usize>();
    }
    assert!(shares > 0);
    let view = (0..)
        .map(sample::view)
        .find(|view| view.status.arrays.iter().any(|array| !array.filesystems.is_empty()));
    let view = view.expect("one has file systems");
    let uri = get(&view, uri::FILE_SYSTEMS)["Members"][0]["@odata.id"].clone();
    let bare = get(&view, uri.as_str().expect("a link"));
    assert!(read::filesystem(&bare).is_err(), "its shares were not fetched");
}

/// Every URI that a resource links to.
fn linked(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Array(all) => all.iter().for_each(|value| linked(value, into)),
        Value::Object(all) => {
            for name in ["@odata.id", "@Redfish.ActionInfo"] {
                into.extend(all.get(name).and_then(Value::as_str).map(str::to_owned));
            }
            all.values().for_each(|value| linked(value, into));
        }
        _ => {}
    }
}

/// All resources that can be reached, by URI.
fn reached(view: &View) -> BTreeMap<String, Value> {
    let mut found: BTreeMap<String, Value> = BTreeMap::new();
    let mut open = BTreeSet::from([routes::ROOT.to_owned()]);
    while let Some(uri) = open.pop_first() {
        let resource = get(view, &uri);
        let mut next = BTreeSet::new();
        linked(&resource, &mut next);
        found.insert(uri, resource);
        open.extend(next.into_iter().filter(|uri| !found.contains_key(uri)));
    }
    found
}

#[test]
fn every_link_leads_to_a_resource_of_the_type_that_the_table_says() {
    let mut kinds = BTreeSet::new();
    for seed in 0..VIEWS / 10 {
        for (uri, resource) in reached(&sample::view(seed)) {
            let route = routes::find(&uri).expect(&uri).route;
            kinds.insert(route.resource);
            assert_eq!(resource["@odata.id"], json!(uri));
            // A registry's type is that of the registry.
            let kind = resource["@odata.type"].as_str().expect("a type");
            let is_registry = route.resource == Resource::RegistryText;
            assert!(kind == route.schema || is_registry, "{uri}: {kind}");
            assert!(resource["Name"].is_string(), "{uri}");
            if let Some(all) = resource.get("Members") {
                let count = all.as_array().expect("an array").len();
                assert_eq!(resource["Members@odata.count"], json!(count), "{uri}");
            } else {
                assert!(resource["Id"].is_string(), "{uri}");
            }
        }
    }
    let unreached: Vec<_> = routes::ROUTES
        .iter()
        .filter(|row| !row.schema.is_empty() && !kinds.contains(&row.resource))
        .map(|row| row.resource)
        .collect();
    assert_eq!(unreached, []);
}

/// Set to a folder in which others' tools find resources of a machine that has all that a machine
/// can have: `redfish/v1/…/index.json`.
const MOCKUP: &str = "PALISADE_MOCKUP";

/// A machine with a shelf of drives, every resource of which is told in full.
#[test]
fn a_machine_with_a_shelf_is_told() {
    let view = sample::hardware::shelf();
    let found = reached(&view);
    let metrics = found.keys().filter(|uri| uri.ends_with("/Metrics") && uri.contains("/Drives/"));
    assert_eq!(metrics.count(), view.drives.len());
    let Some(folder) = std::env::var_os(MOCKUP) else { return };
    let is_standard = |uri: &&String| !uri.contains("/Registries") && !uri.contains("/JsonSchemas");
    for uri in found.keys().filter(is_standard) {
        let folder = std::path::Path::new(&folder).join(uri.trim_start_matches('/'));
        std::fs::create_dir_all(&folder).expect("a folder");
        let text = serde_json::to_string_pretty(&found[uri]).expect("encodes");
        std::fs::write(folder.join("index.json"), text).expect("written");
    }
}

#[test]
fn every_action_has_a_row() {
    let mut acted = BTreeSet::new();
    for seed in 0..VIEWS / 10 {
        for (uri, resource) in reached(&sample::view(seed)) {
            let Some(actions) = resource.get("Actions").and_then(Value::as_object) else {
                continue;
            };
            let oem = actions.get("Oem").and_then(Value::as_object);
            let all = actions.iter().chain(oem.into_iter().flatten());
            for (name, action) in all.filter(|(name, _)| *name != "Oem") {
                let target = action["target"].as_str().expect(name);
                let found = routes::find(target).expect(target);
                assert!(found.route.privilege(Method::Post).is_some(), "{target}");
                assert!(target.starts_with(&uri), "{target} of {uri}");
                assert!(target.ends_with(name.trim_start_matches('#')), "{target}: {name}");
                acted.insert(found.route.resource);
            }
        }
    }
    let with_actions = routes::ROUTES.iter().filter(|row| row.uri.contains("/Actions/"));
    assert_eq!(acted, with_actions.map(|row| row.resource).collect());
}

#[test]
fn what_is_not_there_is_not_rendered() {
    let view = sample::view(3);
    for row in routes::ROUTES.iter().filter(|row| row.uri.contains('{')) {
        for id in ["x", "nvme", "", "x-1", "ä"] {
            let ids = vec![id.to_owned(), "y-1".to_owned()];
            let found = routes::Match { route: row, ids };
            let is_fabric = id == "nvme"
                && matches!(
                    row.resource,
                    Resource::Fabric | Resource::Connections | Resource::Endpoints
                );
            assert_eq!(render(&view, &found).is_some(), is_fabric, "{} of {id}", row.uri);
        }
    }
}

#[test]
fn a_job_behind_the_tasks_of_its_array_waits() {
    let is_wanted = |view: &View| {
        let open = view.jobs.iter().filter(|job| job.ended.is_none()).count();
        open > view.status.arrays.iter().map(|array| array.tasks.len()).sum()
    };
    let view = (0..).map(sample::view).find(is_wanted).expect("one has such a job");
    let states: Vec<_> = view.jobs.iter().map(|job| get(&view, &uri::job(&job.id))).collect();
    let pending = states.iter().filter(|job| job["JobState"] == "Pending").count();
    let tasks: usize = view.status.arrays.iter().map(|array| array.tasks.len()).sum();
    assert_eq!(pending, view.jobs.iter().filter(|job| job.ended.is_none()).count() - tasks);
}

#[test]
fn what_can_not_be_read_is_told() {
    let view = (0..).map(sample::view).find(|view| !view.status.arrays.is_empty());
    let fetched = fetch(&view.expect("one has arrays"));
    let mut pools = fetched.pools.clone();
    pools["Members"][0]["Oem"]["Palisade"]["State"] = json!("Odd");
    let error = read::view(&Fetched { pools, ..fetched.clone() }).expect_err("is no state");
    assert!(error.error.contains("/StoragePools/") && error.error.contains("Odd"), "{error:?}");
    let error = read::view(&Fetched { jobs: json!({}), ..fetched }).expect_err("no collection");
    assert!(error.error.contains("Members"), "{error:?}");
    assert!(read::view(&Fetched::default()).is_err());
}

#[test]
fn extensions_say_their_type() {
    let wrapped = oem::wrapped(&oem::Volume { array: "tank".to_owned(), unreadable_bytes: 0 });
    assert_eq!(
        wrapped,
        json!({"Palisade": {"@odata.type": "#PalisadeVolume.v1_0_0.Volume", "Array": "tank",
                            "UnreadableBytes": 0}})
    );
}
