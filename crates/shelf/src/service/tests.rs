//! The resources without a network, and the service as a client sees it.

use super::*;
use crate::plan::Plan;
use crate::sensors::Reading;
use crate::zone::ZoneWords;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};

const HOST: &str = "nqn.2026-11.example:one";
const LIMIT: Duration = Duration::from_secs(60);

/// A shelf with a service, which is known by the certificate in its folder.
struct Scene {
    shelf: Shelf,
    service: Service,
    folder: tempfile::TempDir,
}

type Stream = BufReader<StreamOwned<ClientConnection, std::net::TcpStream>>;

impl Scene {
    fn new() -> Self {
        Self::again(tempfile::tempdir().unwrap())
    }

    fn again(folder: tempfile::TempDir) -> Self {
        let plan = Plan { folder: Some(folder.path().to_owned()), ..Plan::small(4, 8) };
        let shelf = Shelf::start(&plan).unwrap();
        let service = Service::start(&shelf, "127.0.0.1:0".parse().unwrap()).unwrap();
        Self { shelf, service, folder }
    }

    fn connect(&self) -> Stream {
        let pem = std::fs::read(self.folder.path().join("redfish.pem")).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&pem).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let address = self.service.access().url.strip_prefix("https://").unwrap();
        let stream = std::net::TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        BufReader::new(StreamOwned::new(connection, stream))
    }

    fn login(&self) -> String {
        let Access { user, password, .. } = self.service.access();
        format!(
            "authorization: Basic {}\r\n",
            Base64::encode_string(format!("{user}:{password}").as_bytes())
        )
    }

    /// What a request is answered: its status, its head and its body.
    fn asks(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String, Value) {
        let mut stream = self.connect();
        send(&mut stream, (method, path), headers, body);
        let (status, head) = head(&mut stream);
        let mut text = String::new();
        // The end of the connection comes without TLS's word for it.
        let _ = stream.read_to_string(&mut text);
        (status, head, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    fn get(&self, path: &str) -> Value {
        let (status, _, value) = self.asks("GET", path, &self.login(), "");
        assert_eq!(status, 200, "{path}: {value}");
        value
    }

    fn change(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let (status, _, value) = self.asks(method, path, &self.login(), &body.to_string());
        (status, value)
    }

    fn shown(&self) -> Shown {
        let Answer::Shown(shown) = self.shelf.ask(&Ask::Show).unwrap() else { panic!("shown") };
        shown
    }
}

fn send(stream: &mut Stream, (method, path): (&str, &str), headers: &str, body: &str) {
    let length = body.len();
    let text = format!(
        "{method} {path} HTTP/1.1\r\nhost: shelf\r\nconnection: close\r\n{headers}content-length: \
         {length}\r\n\r\n{body}"
    );
    stream.get_mut().write_all(text.as_bytes()).unwrap();
}

fn head(stream: &mut Stream) -> (u16, String) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "{head}");
    }
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_lowercase())
}

/// Every link that is in a value.
fn links(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(all) => {
            for (key, value) in all {
                match value {
                    Value::String(path) if matches!(&**key, "@odata.id" | "DataSourceUri") => {
                        found.insert(path.clone());
                    }
                    _ => links(value, found),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|value| links(value, found)),
        _ => {}
    }
}

#[test]
fn every_link_leads_to_a_resource_that_says_what_it_is() {
    let shelf = Shelf::start(&Plan::small(4, 3)).unwrap();
    let zone = ZoneWords {
        name: "z".to_owned(),
        hosts: vec![HOST.to_owned()],
        drives: vec![2],
        ..ZoneWords::default()
    };
    shelf.ask(&Ask::AddZone(zone)).unwrap();
    let Ok(Answer::Shown(shown)) = shelf.ask(&Ask::Show) else { panic!("shown") };
    let facts = Facts { plan: shelf.rack().plan(), shown: &shown };
    let (mut next, mut seen) = (vec![ROOT.to_owned()], BTreeSet::new());
    while let Some(path) = next.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let value = tree::resource(&facts, &path).unwrap_or_else(|| panic!("no {path}"));
        assert_eq!(value["@odata.id"], path, "{value}");
        let kind = value["@odata.type"].as_str().unwrap();
        assert!(kind.starts_with('#') && value["Name"].is_string(), "{value}");
        assert!(kind.contains("Collection") || value["Id"].is_string(), "{value}");
        let mut found = BTreeSet::new();
        links(&value, &mut found);
        next.extend(found);
    }
    let has = |what: &str| seen.iter().filter(|path| path.contains(what)).count();
    let kinds =
        ["/Drives/", "/Ports/", "Supplies/", "/Fans/", "/Sensors/", "/Endpoints/", "/Zones/"];
    assert_eq!(kinds.map(has), [3, 4, 4, 4, 11, 4, 1]);
    assert_eq!(seen.len(), 50, "{seen:#?}");
    for none in ["/redfish/v1x", "/redfish/v1/Chassis/shelf/Drives/4", "/redfish/v1/%zz", "/"] {
        assert!(tree::resource(&facts, none).is_none(), "{none}");
    }
    let encoded = HOST.replace(':', "%3A");
    assert!(tree::resource(&facts, &format!("{ROOT}/Fabrics/nvme/Endpoints/{encoded}")).is_some());
}

#[test]
fn what_the_shelf_shows_is_told_and_what_is_told_to_it_is_done() {
    let scene = Scene::new();
    let (chassis, ok) = ("/redfish/v1/Chassis/shelf", (204, Value::Null));
    assert_eq!(scene.get(chassis)["Status"]["HealthRollup"], "OK");
    let off = json!({"ResetType": "ForceOff"});
    let reset = format!("{chassis}/Drives/3/Actions/Drive.Reset");
    assert_eq!(scene.change("POST", &reset, &off), ok);
    assert_eq!(scene.shown().drives[2].state, "reset");
    let drive = scene.get(&format!("{chassis}/Drives/3"));
    assert_eq!(
        (&drive["PowerState"], &drive["Status"]["State"]),
        (&"Off".into(), &"Absent".into())
    );
    assert_eq!(scene.change("POST", &reset, &json!({"ResetType": "On"})), ok);
    assert_eq!(scene.shown().drives[2].state, "ok");
    let lit = json!({"LocationIndicatorActive": true});
    let (status, drive) = scene.change("PATCH", &format!("{chassis}/Drives/3"), &lit);
    assert_eq!((status, &drive["LocationIndicatorActive"]), (200, &true.into()));
    assert!(scene.shown().drives[2].located);
    let port = format!("{chassis}/NetworkAdapters/B/Ports/B2");
    let (_, told) = scene.change("PATCH", &port, &json!({"InterfaceEnabled": false}));
    assert_eq!(
        (&told["LinkStatus"], scene.shown().ioms[1].ports[1].state),
        (&"LinkDown".into(), "reset")
    );
    let module = format!("{chassis}/NetworkAdapters/A/Actions/NetworkAdapter.Reset");
    assert_eq!(scene.change("POST", &module, &off), ok);
    assert_eq!(scene.shown().ioms[0].state, "reset");
    let set = Ask::Set { name: "fan.2".to_owned(), value: "0".to_owned() };
    scene.shelf.ask(&set).unwrap();
    let fan = scene.get(&format!("{chassis}/ThermalSubsystem/Fans/2"));
    assert_eq!(
        (&fan["SpeedPercent"]["SpeedRPM"], &fan["Status"]["Health"]),
        (&0.0.into(), &"Critical".into())
    );
    let expanded = scene.get(&format!("{chassis}/Sensors?$expand=.($levels=1)"));
    let fan = expanded["Members"].as_array().unwrap().iter().find(|own| own["Id"] == "fan.2");
    assert_eq!(fan.unwrap()["Thresholds"]["LowerCritical"]["Reading"], 1000.0);
    assert_eq!(
        scene.shown().sensors.iter().filter(|own| own.state == Reading::Critical).count(),
        1
    );
    assert_eq!(scene.get(chassis)["Status"]["HealthRollup"], "Critical");
}

#[test]
fn zones_are_made_of_endpoints_and_go_again() {
    let scene = Scene::new();
    let zones = "/redfish/v1/Fabrics/nvme/Zones";
    let end =
        |name: &str| json!({"@odata.id": format!("/redfish/v1/Fabrics/nvme/Endpoints/{name}")});
    let drive = scene.shown().drives[1].subsystem.clone();
    let wanted = json!({"Name": "z", "Links": {"Endpoints": [end(&drive), end(HOST)]},
        "Oem": {"Palisade": {"Namespaces": [2], "Ports": ["A1"]}}});
    let (status, head, zone) = scene.asks("POST", zones, &scene.login(), &wanted.to_string());
    assert_eq!(status, 201, "{zone}");
    assert!(head.contains("location: /redfish/v1/fabrics/nvme/zones/z\r\n"), "{head}");
    assert_eq!(
        zone["Oem"]["Palisade"],
        json!({"Hosts": [HOST], "Drives": [2], "Namespaces": [2],
        "Ports": ["A1"]})
    );
    assert_eq!(scene.shown().zones.len(), 1);
    let refused = |body: Value, told: &str| {
        let (status, value) = scene.change("POST", zones, &body);
        let message = value["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(status == 400 && message.contains(told), "{value}");
    };
    refused(wanted, "there is a zone z already");
    refused(json!({"Name": "y", "Links": {"Endpoints": [end(HOST)]}}), "one drive");
    refused(json!({"Name": "y", "Links": {"Endpoints": [{"@odata.id": "/x"}]}}), "no endpoint");
    refused(json!({"Name": "y", "ZoneType": "Default"}), "ZoneOfEndpoints");
    refused(json!({"Title": "y"}), "unknown field `Title`");
    assert_eq!(scene.change("DELETE", &format!("{zones}/z"), &Value::Null).0, 204);
    assert_eq!(scene.change("DELETE", &format!("{zones}/z"), &Value::Null).0, 404);
    assert_eq!(scene.get(zones)["Members@odata.count"], 0);
}

#[test]
fn nobody_is_let_in_without_the_password_and_mistakes_are_told() {
    let scene = Scene::new();
    let drive = "/redfish/v1/Chassis/shelf/Drives/1";
    for wrong in ["", "authorization: Basic YWRtaW46YWRtaW4=\r\n", "authorization: Bearer x\r\n"] {
        let (status, head, value) = scene.asks("GET", drive, wrong, "");
        assert_eq!(status, 401, "{value}");
        assert!(head.contains("www-authenticate: basic"), "{head}");
        assert_eq!(scene.asks("PATCH", drive, wrong, "{}").0, 401);
        assert_eq!(scene.asks("GET", STREAM, wrong, "").0, 401);
        assert_eq!(scene.asks("GET", "/redfish/v1/", wrong, "").0, 200);
        assert_eq!(scene.asks("POST", "/redfish/v1/", wrong, "").0, 401);
    }
    let own = scene.login();
    let (status, head, _) = scene.asks("DELETE", drive, &own, "");
    assert!(status == 405 && head.contains("allow: get, head, patch\r\n"), "{head}");
    assert_eq!(scene.asks("GET", "/redfish/v1/Chassis/shelf/Drives/9", &own, "").0, 404);
    for (body, told) in [("{", "EOF"), ("{}", "missing field"), ("[1]", "invalid")] {
        let (status, _, value) = scene.asks("PATCH", drive, &own, body);
        assert!(status == 400 && value.to_string().contains(told), "{value}");
    }
    let large = format!("{{\"x\":\"{}\"}}", "x".repeat(BODY));
    assert_eq!(scene.asks("PATCH", drive, &own, &large).0, 400);
    let (_, value) =
        scene.change("POST", &format!("{drive}/Actions/Drive.Reset"), &json!({"ResetType": "Nmi"}));
    assert!(value.to_string().contains("On or ForceOff"), "{value}");
}

#[test]
fn a_stream_is_told_of_each_change() {
    let scene = Scene::new();
    let mut stream = scene.connect();
    send(&mut stream, ("GET", STREAM), &scene.login(), "");
    let (status, head) = head(&mut stream);
    assert!(status == 200 && head.contains("text/event-stream"), "{head}");
    let mut next = |wanted: &str| {
        let mut line = String::new();
        while !line.contains(wanted) {
            line.clear();
            assert!(stream.read_line(&mut line).unwrap() > 0, "it has ended before {wanted}");
        }
        line
    };
    // From the first comment on all is told.
    next(":");
    let part = |part: &str, name: &str| (part.to_owned(), Some(name.to_owned()));
    let ((part_a, port), (part_b, drive)) = (part("port", "b1"), part("drive", "7"));
    scene.shelf.ask(&Ask::Restore { part: part_a, name: port }).unwrap();
    next("/redfish/v1/Chassis/shelf/NetworkAdapters/B/Ports/B1");
    scene.shelf.ask(&Ask::Restore { part: part_b, name: drive }).unwrap();
    let told = next("/redfish/v1/Chassis/shelf/Drives/7");
    let event: Value = serde_json::from_str(told.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(event["Events"][0]["MessageId"], "ResourceEvent.1.4.ResourceChanged");
    assert_eq!(event["Id"], "2");
}

#[test]
fn the_next_shelf_of_a_folder_is_known_by_the_same() {
    let scene = Scene::new();
    let Access { fingerprint, password, .. } = scene.service.access().clone();
    let Scene { shelf, service, folder } = scene;
    drop((service, shelf));
    let again = Scene::again(folder);
    let own = again.service.access();
    assert_eq!((&own.fingerprint, &own.password), (&fingerprint, &password));
    assert_eq!(again.get("/redfish/v1/Chassis")["Members@odata.count"], 1);
    std::fs::write(again.folder.path().join("redfish.pem"), "nothing").unwrap();
    let listen = "127.0.0.1:0".parse().unwrap();
    let error = Service::start(&again.shelf, listen).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
}
