//! Tests of shelves that tell of themselves, with services of their own on real sockets.

use super::*;
use crate::config::shelves::Url;
use redfish::view::{Enclosure, Health};
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, broadcast};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// How long something may take that happens at once.
const LIMIT: Duration = Duration::from_secs(60);

/// `admin:secret`.
const KNOWN: &str = "authorization: Basic YWRtaW46c2VjcmV0\r\n";

fn run(test: impl Future<Output = ()>) {
    let builder = &mut tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime").block_on(test);
}

/// What a service does with a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mood {
    Answers,
    Hangs,
    /// Its answers are larger than anybody needs.
    Rambles,
    /// Each is small enough, and all together are not.
    Chats,
}

/// What all connections of a service share.
struct Site {
    tls: TlsAcceptor,
    fan: Mutex<Value>,
    mood: Mutex<Mood>,
    asked: AtomicUsize,
    /// How often it was read.
    readings: AtomicUsize,
    /// How often a stream began.
    streams: AtomicUsize,
    /// What it does not answer, and how.
    refused: Mutex<Vec<(&'static str, &'static str)>>,
    /// Whether each reading is an event.
    echoes: AtomicBool,
    news: broadcast::Sender<()>,
}

impl Site {
    fn resource(&self, path: &str) -> Option<Value> {
        let link = |path: &str| json!({"@odata.id": format!("/redfish/v1/{path}")});
        let chassis = json!({"@odata.id": "/redfish/v1/Chassis/s", "Model": "M",
            "Drives": link("Chassis/s/Drives"), "ThermalSubsystem": link("Thermal")});
        let names = json!([{"DurableNameFormat": "NQN", "DurableName": "nqn.2026-11.example:1"}]);
        let drive = json!({"Id": "1", "SerialNumber": "S1", "Identifiers": names});
        Some(match path.strip_prefix("/redfish/v1")? {
            "" => json!({"Chassis": link("Chassis"), "EventService": link("Events")}),
            "/Events" => json!({"ServerSentEventUri": "/redfish/v1/Stream"}),
            "/Chassis" => json!({"Members": [link("Chassis/s")]}),
            "/Chassis/s" => chassis,
            "/Chassis/s/Drives" => json!({"Members": [drive]}),
            "/Thermal" => json!({"Fans": link("Fans")}),
            "/Fans" => json!({"Members": [lock(&self.fan).clone(), link("Fans/2")],
                "Members@odata.nextLink": "/redfish/v1/Fans?$skip=2"}),
            "/Fans?$skip=2" => json!({"Members": [{"Name": "Fan 3"}]}),
            "/Fans/2" => json!({"@odata.id": "/redfish/v1/Fans/2", "Name": "Fan 2"}),
            _ => return None,
        })
    }

    /// Answers until the client goes.
    async fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut stream = self.tls.accept(stream).await?;
        loop {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await?);
            }
            self.asked.fetch_add(1, Ordering::Relaxed);
            let head = String::from_utf8_lossy(&head).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default();
            let mood = *lock(&self.mood);
            let refused = |own: &(&'static str, &'static str)| path.ends_with(own.0);
            let refused = lock(&self.refused).iter().copied().find(refused);
            if let Some((_, status)) = refused {
                say(&mut stream, status, "what").await?;
                continue;
            }
            let path = path.strip_suffix("?$expand=.").unwrap_or(path);
            if path == "/redfish/v1/Chassis" {
                self.readings.fetch_add(1, Ordering::Relaxed);
                if self.echoes.load(Ordering::Relaxed) {
                    let _ = self.news.send(());
                }
            }
            match mood {
                Mood::Hangs => core::future::pending().await,
                _ if !head.contains(KNOWN) => say(&mut stream, "401 Unauthorized", "").await?,
                Mood::Rambles => say(&mut stream, "200 OK", &"x".repeat(5 << 20)).await?,
                Mood::Chats => {
                    let mut value = self.resource(path).unwrap_or_default();
                    value["More"] = "x".repeat(3 << 20).into();
                    say(&mut stream, "200 OK", &value.to_string()).await?;
                }
                Mood::Answers if path == "/redfish/v1/Stream" => self.stream(&mut stream).await?,
                Mood::Answers => match self.resource(path) {
                    Some(value) => say(&mut stream, "200 OK", &value.to_string()).await?,
                    None => say(&mut stream, "404 Not Found", "").await?,
                },
            }
        }
    }

    async fn stream(&self, stream: &mut TlsStream<TcpStream>) -> std::io::Result<()> {
        let mut news = self.news.subscribe();
        stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n:\n\n").await?;
        stream.flush().await?;
        self.streams.fetch_add(1, Ordering::Relaxed);
        while news.recv().await.is_ok() {
            stream.write_all(b"data: {}\n\n").await?;
            stream.flush().await?;
        }
        Err(std::io::ErrorKind::BrokenPipe.into())
    }
}

async fn say(stream: &mut TlsStream<TcpStream>, status: &str, text: &str) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", text.len());
    stream.write_all(format!("{head}{text}").as_bytes()).await?;
    stream.flush().await
}

/// A service, and who follows it.
struct Scene {
    site: Arc<Site>,
    shelves: Shelves,
    told: Arc<Notify>,
    own: config::Shelf,
    serving: JoinHandle<()>,
    _folder: TempDir,
}

async fn serve(site: Arc<Site>, listener: TcpListener) {
    let mut all = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let site = site.clone();
        // How it ends is the client's affair.
        all.spawn(async move { drop(site.serve(stream).await) });
    }
}

impl Scene {
    async fn new() -> Self {
        let key = rcgen::KeyPair::generate().expect("a key");
        let params = rcgen::CertificateParams::new(vec!["other.example".to_owned()]).expect("good");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        let own = CertificateDer::from_pem_slice(pem.as_bytes()).expect("read");
        let fingerprint: [u8; 32] = Sha256::digest(&own).into();
        let secret = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).expect("read");
        let tls = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .and_then(|tls| tls.with_no_client_auth().with_single_cert(vec![own], secret));
        let site = Arc::new(Site {
            tls: TlsAcceptor::from(Arc::new(tls.expect("good"))),
            fan: Mutex::new(json!({"Name": "Fan 1", "Status": {"State": "Enabled"}})),
            mood: Mutex::new(Mood::Answers),
            asked: AtomicUsize::new(0),
            readings: AtomicUsize::new(0),
            streams: AtomicUsize::new(0),
            refused: Mutex::default(),
            echoes: AtomicBool::new(false),
            news: broadcast::channel(256).0,
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let port = listener.local_addr().expect("known").port();
        let serving = tokio::spawn(serve(site.clone(), listener));
        let folder = tempfile::tempdir().expect("a folder");
        let credentials = folder.path().join("own");
        std::fs::write(&credentials, "admin:secret\n").expect("written");
        std::fs::set_permissions(&credentials, PermissionsExt::from_mode(0o600)).expect("set");
        let told: Arc<Notify> = Arc::default();
        let mut shelves = Shelves::new({
            let told = told.clone();
            move || told.notify_one()
        });
        let millis = Duration::from_millis;
        (shelves.pace.first, shelves.pace.longest) = (millis(10), millis(40));
        // Only events have it read again.
        shelves.pace.again = LIMIT * 60;
        let redfish = Url { host: "127.0.0.1".to_owned(), port };
        let name = Some("left".to_owned());
        let own = config::Shelf { redfish, fingerprint, credentials, name };
        Self { site, shelves, told, own, serving, _folder: folder }
    }

    fn follow(&self) {
        self.shelves.follow(core::slice::from_ref(&self.own));
    }

    fn shown(&self) -> Enclosure {
        let drive =
            |number: u32| (format!("d{number}"), format!("nvme://nqn.2026-11.example:{number}/1"));
        let all = self.shelves.enclosures(&[drive(1), drive(11)]);
        assert_eq!(all.len(), 1);
        all.into_iter().next().expect("one")
    }

    /// Waits until the shelf is shown so; each change is told.
    async fn until(&self, what: &str, is_so: impl Fn(&view::Shelf) -> bool) -> Enclosure {
        let wait = async {
            loop {
                let shown = self.shown();
                if shown.shelf.as_ref().is_some_and(&is_so) {
                    return shown;
                }
                self.told.notified().await;
            }
        };
        timeout(LIMIT, wait).await.unwrap_or_else(|_| panic!("{what}: {:?}", self.shown()))
    }

    /// Waits until a stream has begun as often.
    async fn streams(&self, often: usize) {
        let wait = async {
            while self.site.streams.load(Ordering::Relaxed) < often {
                sleep(Duration::from_millis(2)).await;
            }
        };
        timeout(LIMIT, wait).await.expect("it is asked for again");
    }

    /// How often it was read once as many milliseconds are over.
    async fn readings(&self, millis: u64) -> usize {
        sleep(Duration::from_millis(millis)).await;
        self.site.readings.load(Ordering::Relaxed)
    }

    /// Waits until it is silent, and says why.
    async fn why(&self) -> String {
        let shown = self.until("silence", |own| own.silence.is_some()).await;
        shown.shelf.and_then(|own| own.silence).expect("it is silent").why
    }
}

#[test]
fn a_shelf_is_read_and_read_again_on_an_event() {
    run(async {
        let scene = Scene::new().await;
        scene.follow();
        let shown = scene.until("a reading", |own| own.read.is_some()).await;
        assert_eq!((shown.id.as_str(), shown.model.as_deref()), ("left", Some("M")));
        assert_eq!((shown.slots.len(), shown.slots[0].drive.as_deref()), (1, Some("d1")));
        let shelf = shown.shelf.expect("it tells");
        assert_eq!((&shelf.bays[0].own, shelf.worst()), (&vec!["d1".to_owned()], Health::Ok));
        *lock(&scene.site.fan) = json!({"Name": "Fan 1", "Status": {"State": "Absent"}});
        // The stream may not have begun yet.
        let tell = async {
            loop {
                let _ = scene.site.news.send(());
                sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            _ = scene.until("the change", |own| own.worst() == Health::Critical) => {}
            () = tell => {}
        }
    });
}

#[test]
fn a_silent_service_leaves_what_it_said_and_comes_back() {
    run(async {
        let mut scene = Scene::new().await;
        scene.follow();
        scene.until("a reading", |own| own.read.is_some()).await;
        scene.serving.abort();
        let _ = (&mut scene.serving).await;
        let why = scene.why().await;
        assert!(why.contains("refused"), "{why}");
        // A new configuration changes nothing of that, and tries at once.
        scene.follow();
        let shown = scene.shown().shelf.expect("it told");
        assert!(shown.silence.is_some() && shown.read.is_some() && shown.bays.len() == 1);
        let place = ("127.0.0.1", scene.own.redfish.port);
        let listener = TcpListener::bind(place).await.expect("bound again");
        scene.serving = tokio::spawn(serve(scene.site.clone(), listener));
        scene.until("the return", |own| own.silence.is_none()).await;
        scene.shelves.follow(&[]);
        assert!(scene.shelves.enclosures(&[]).is_empty());
    });
}

#[test]
fn another_certificate_is_asked_nothing() {
    run(async {
        let mut scene = Scene::new().await;
        scene.own.fingerprint[0] ^= 1;
        scene.follow();
        let why = scene.why().await;
        assert!(why.contains("another fingerprint"), "{why}");
        assert_eq!(scene.site.asked.load(Ordering::Relaxed), 0);
        assert!(scene.shown().shelf.is_some_and(|own| own.read.is_none()));
    });
}

#[test]
fn a_service_that_hangs_or_rambles_is_silent() {
    run(async {
        let mut scene = Scene::new().await;
        scene.shelves.pace.limits.answer = Duration::from_millis(50);
        for (mood, told) in [
            (Mood::Hangs, "does not come within"),
            (Mood::Rambles, "length limit"),
            (Mood::Chats, "length limit"),
        ] {
            *lock(&scene.site.mood) = mood;
            scene.shelves.pace.limits.answer = match mood {
                Mood::Hangs => Duration::from_millis(50),
                _ => LIMIT,
            };
            scene.shelves.follow(&[]);
            scene.follow();
            let why = scene.why().await;
            assert!(why.contains(told), "{why}");
        }
        *lock(&scene.site.mood) = Mood::Answers;
        scene.until("an answer", |own| own.silence.is_none() && own.read.is_some()).await;
    });
}

#[test]
fn credentials_are_read_for_each_attempt() {
    run(async {
        let scene = Scene::new().await;
        let write = |text: &str| std::fs::write(&scene.own.credentials, text).expect("written");
        write("admin:other\n");
        scene.follow();
        let why = scene.why().await;
        assert!(why.contains("401"), "{why}");
        write("");
        scene
            .until("no credentials", |own| {
                own.silence.as_ref().is_some_and(|own| own.why.contains("one line"))
            })
            .await;
        write("admin:secret\n");
        scene.until("an answer", |own| own.read.is_some() && own.silence.is_none()).await;
    });
}

#[test]
fn many_events_are_few_readings() {
    run(async {
        let mut scene = Scene::new().await;
        scene.shelves.pace.together = Duration::from_millis(200);
        scene.follow();
        scene.until("a reading", |own| own.read.is_some()).await;
        scene.streams(1).await;
        for _ in 0..100 {
            let _ = scene.site.news.send(());
            sleep(Duration::from_millis(1)).await;
        }
        let readings = scene.readings(1000).await;
        assert!((2..=6).contains(&readings), "{readings}");
    });
}

#[test]
fn a_service_that_tells_of_each_reading_is_read_less_and_less() {
    run(async {
        let mut scene = Scene::new().await;
        scene.shelves.pace.together = Duration::from_millis(10);
        scene.site.echoes.store(true, Ordering::Relaxed);
        scene.follow();
        let readings = scene.readings(1500).await;
        assert!((2..=12).contains(&readings), "{readings}");
    });
}

#[test]
fn a_stream_that_is_silent_or_refused_is_asked_for_again() {
    run(async {
        let mut scene = Scene::new().await;
        scene.shelves.pace.again = Duration::from_millis(20);
        scene.shelves.pace.limits.quiet = Duration::from_millis(100);
        lock(&scene.site.refused).push(("/Stream", "503 Service Unavailable"));
        scene.follow();
        scene.until("a reading", |own| own.read.is_some()).await;
        assert_eq!(scene.site.streams.load(Ordering::Relaxed), 0);
        lock(&scene.site.refused).clear();
        scene.streams(3).await;
        assert!(scene.shown().shelf.is_some_and(|own| own.silence.is_none()));
    });
}

#[test]
fn a_part_that_is_not_told_is_not_there_and_the_others_are() {
    run(async {
        let mut scene = Scene::new().await;
        scene.shelves.pace.again = Duration::from_millis(20);
        scene.follow();
        // With a child by its name, and one of the next page.
        scene.until("all", |own| own.parts.len() == 3).await;
        let refuse = |all: &[(&'static str, &'static str)]| {
            *lock(&scene.site.refused) = all.to_vec();
        };
        let (none, all) = ("404 Not Found", "501 Not Implemented");
        refuse(&[("/Fans/2", none), ("?$expand=.", all), ("/Events", none)]);
        scene.until("all but one", |own| own.parts.len() == 2 && own.bays.len() == 1).await;
        refuse(&[("/Thermal", none), ("?$expand=.", "400 Bad Request")]);
        scene.until("only drives", |own| own.parts.is_empty() && own.bays.len() == 1).await;
        assert!(scene.shown().shelf.is_some_and(|own| own.silence.is_none()));
        for (path, status) in [
            ("/redfish/v1", none),
            ("/Chassis/s", "500 Internal Server Error"),
            ("/Fans/2", "401 Unauthorized"),
        ] {
            refuse(&[(path, status)]);
            let why = scene.why().await;
            assert!(why.contains(path) && why.contains(status), "{why}");
            refuse(&[]);
            scene.until("its return", |own| own.silence.is_none()).await;
        }
    });
}
