//! Tests of HTTPS, with real sockets and clients.

use super::*;
use hyper::body::Bytes;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// 24 November 2026.
const NOW: u64 = 1_795_500_000;

/// How long something may take that happens at once.
const LIMIT: Duration = Duration::from_secs(60);

fn run(test: impl Future<Output = ()>) {
    let builder = &mut tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime").block_on(test);
}

/// HTTPS that says to each who asks from where they come.
struct Served {
    https: Arc<Https>,
    /// What the audit log is told.
    told: Arc<Mutex<Vec<String>>>,
    accounts: watch::Sender<bool>,
    _dir: TempDir,
    task: JoinHandle<()>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Served {
    fn begin(clock: fn() -> u64, settings: Settings) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        Self::within(dir, clock, settings)
    }

    /// With its state in a directory.
    fn within(dir: TempDir, clock: fn() -> u64, settings: Settings) -> Self {
        let state = State::open(&dir.path().join("state")).expect("opened");
        let told = Arc::new(Mutex::new(Vec::new()));
        let trail = {
            let told = told.clone();
            move |what: &str| told.lock().expect("no panic").push(what.to_owned())
        };
        let https = Arc::new(Https::new(Some(Arc::new(state)), clock, trail));
        let (accounts, receiver) = watch::channel(false);
        let answer = |asked: Asked| async move {
            let peer = asked.extensions().get::<Peer>().and_then(Peer::address);
            let text = peer.map_or_else(String::new, |address| address.to_string());
            Response::new(Bytes::from(text).into())
        };
        https.set(settings);
        let task = tokio::spawn(https.clone().keep(Arc::default(), answer, receiver));
        Self { https, told, accounts, _dir: dir, task }
    }

    /// Open, on a port of its own.
    async fn open(clock: fn() -> u64) -> Self {
        let served = Self::begin(clock, on("127.0.0.1:0"));
        served.accounts.send_replace(true);
        served.until(|https| !https.listeners.is_empty()).await;
        served
    }

    /// Waits until it is so.
    async fn until(&self, is_so: impl Fn(&view::Https) -> bool) {
        let wait = async {
            while !is_so(&self.https.view()) {
                sleep(Duration::from_millis(2)).await;
            }
        };
        timeout(LIMIT, wait).await.unwrap_or_else(|_| panic!("{:?}", self.https.view()));
    }

    fn address(&self) -> SocketAddr {
        let view = self.https.view();
        view.listeners.first().expect("it listens").parse().expect("an address")
    }

    fn key(&self) -> String {
        self.https.view().certificate.clone().expect("a certificate").key
    }

    /// The last line for the audit log.
    fn last(&self) -> String {
        self.told.lock().expect("no panic").last().cloned().unwrap_or_default()
    }

    fn fingerprint(&self) -> String {
        self.https.view().certificate.clone().expect("a certificate").fingerprint
    }

    /// A client that trusts the certificate that is there now, and calls the server so.
    async fn client(&self, name: &str) -> std::io::Result<TlsStream<TcpStream>> {
        let pem = self.https.view().certificate.clone().expect("a certificate").pem;
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            roots.add(certificate.expect("PEM")).expect("a certificate");
        }
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&version::TLS13])
            .expect("TLS 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(self.address()).await?;
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }
}

fn on(address: &str) -> Settings {
    Settings { listen: vec![address.parse().expect("an address")], files: None }
}

/// What a client is answered; the connection stays.
async fn get(stream: &mut TlsStream<TcpStream>) -> String {
    stream.write_all(b"GET / HTTP/1.1\r\nhost: p\r\n\r\n").await.expect("sent");
    let (mut bytes, mut part) = (Vec::new(), [0; 512]);
    loop {
        let count = stream.read(&mut part).await.expect("read");
        bytes.extend(part.iter().take(count));
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match text.split_once("\r\n\r\n") {
            Some((head, body)) if head.contains(&format!("content-length: {}", body.len())) => {
                return body.to_owned();
            }
            _ => assert!(count > 0, "{text}"),
        }
    }
}

#[test]
fn it_is_off_until_an_account_exists() {
    run(async {
        let served = Served::begin(|| NOW, on("127.0.0.1:0"));
        served.until(|https| !https.problems.is_empty()).await;
        let view = served.https.view();
        let problem = view.problems.first().expect("a problem").what.clone();
        let (what, hint) = (problem.error, problem.hint);
        assert!(what.contains("no account") && hint.contains("palisade account create"), "{what}");
        assert!(view.listeners.is_empty() && view.certificate.is_none());
        served.accounts.send_replace(true);
        served.https.begun().await;
        let view = served.https.view();
        assert!(!view.listeners.is_empty() && view.problems.is_empty(), "{view:?}");
        let mut client = served.client("localhost").await.expect("let in");
        assert_eq!(get(&mut client).await, "127.0.0.1");
        // Nobody listens where nothing is configured, and nobody who was there goes on.
        served.https.set(Settings::default());
        served.until(|https| https.listeners.is_empty()).await;
        let mut rest = Vec::new();
        let end = timeout(Duration::from_secs(5), client.read_to_end(&mut rest)).await;
        end.expect("it ends at once").expect("with TLS's own end");
        assert!(rest.is_empty());

        let https = Arc::new(Https::new(None, || NOW, |_| {}));
        https.set(on("127.0.0.1:0"));
        let (tls, error) = https.prepare(&on("127.0.0.1:0"), true, true).await;
        let error = error.filter(|_| tls.is_none()).expect("no state");
        assert!(error.hint.contains("state = \"DIR\""), "{}", error.hint);
        assert!(https.replace(String::new()).await.is_err());
    });
}

#[test]
fn only_tls_1_3_is_spoken() {
    run(async {
        let served = Served::open(|| NOW).await;
        for name in ["localhost", "127.0.0.1"] {
            let mut client = served.client(name).await.expect(name);
            assert_eq!(get(&mut client).await, "127.0.0.1");
            let (_, session) = client.get_ref();
            assert_eq!(session.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_3));
        }
        // A name that the server does not know is for the client to mind.
        assert!(served.client("other.example.org").await.is_err());

        // A greeting of TLS 1.2: one cipher suite, no extension.
        let mut hello = vec![0x16, 3, 1, 0, 45, 1, 0, 0, 41, 3, 3];
        hello.extend([7; 32]);
        hello.extend([0, 0, 2, 0xc0, 0x2b, 1, 0]);
        for bytes in [&hello[..], b"GET / HTTP/1.1\r\nhost: p\r\n\r\n", &[0xff; 100]] {
            let mut stream = TcpStream::connect(served.address()).await.expect("connected");
            stream.write_all(bytes).await.expect("sent");
            let mut answer = Vec::new();
            let read = timeout(LIMIT, stream.read_to_end(&mut answer)).await.expect("it ends");
            // An alert, or nothing: the end may come as a reset.
            assert!(
                read.is_err() || answer.first().is_none_or(|first| *first == 0x15),
                "{answer:?}"
            );
        }
    });
}

#[test]
fn a_handshake_that_does_not_come_ends() {
    run(async {
        let served = Served::open(|| NOW).await;
        let begun = std::time::Instant::now();
        let mut stream = TcpStream::connect(served.address()).await.expect("connected");
        stream.write_all(&[0x16, 3, 1]).await.expect("sent");
        let mut client = served.client("localhost").await.expect("others are let in");
        assert_eq!(get(&mut client).await, "127.0.0.1");
        let mut answer = Vec::new();
        let _ = timeout(LIMIT, stream.read_to_end(&mut answer)).await.expect("it ends");
        assert!(begun.elapsed() >= HANDSHAKE_TIME - Duration::from_secs(1), "{answer:?}");
    });
}

#[test]
fn an_address_has_its_share_of_connections() {
    run(async {
        let served = Served::open(|| NOW).await;
        let mut all = Vec::new();
        for _ in 0..64 {
            let mut client = served.client("localhost").await.expect("let in");
            assert_eq!(get(&mut client).await, "127.0.0.1");
            all.push(client);
        }
        assert!(served.client("localhost").await.is_err());
        all.pop();
        let again = async { while served.client("localhost").await.is_err() {} };
        timeout(LIMIT, again).await.expect("room again");
    });
}

#[test]
fn another_certificate_is_for_those_who_come_later() {
    run(async {
        let served = Served::open(|| NOW).await;
        let mut early = served.client("localhost").await.expect("let in");
        let before = served.fingerprint();
        let wanted = For { host: "other".to_owned(), ..For::default() };
        let other = certificate::make(&wanted, NOW, None).expect("made");

        served.https.replace(other.pem.clone()).await.expect("taken");
        assert_ne!(served.fingerprint(), before);
        assert!(served.last().contains("with another key: "), "{}", served.last());
        assert!(served.last().ends_with(&format!("that a client brought; before: {before}")));
        assert_eq!(served.fingerprint(), other.shown.fingerprint);
        assert_eq!(get(&mut early).await, "127.0.0.1");
        let mut late = served.client("other").await.expect("let in");
        let shown = late.get_ref().1.peer_certificates().and_then(<[_]>::first).cloned();
        assert_eq!(shown, other.certified.cert.first().cloned());
        assert_eq!(get(&mut late).await, "127.0.0.1");

        // What can't be used changes nothing.
        for pem in [String::new(), other.shown.pem.replace('A', "B"), "x".repeat(100)] {
            served.https.replace(pem).await.expect_err("no certificate");
            assert_eq!(served.fingerprint(), other.shown.fingerprint);
        }
        // Without a key: that of the certificate that is there.
        served.https.replace(other.shown.pem.clone()).await.expect("taken");
        assert!(!served.https.view().certificate.clone().expect("one").is_made);

        // Files of a person's, read again on demand.
        let (certificate, key) = (served._dir.path().join("c"), served._dir.path().join("k"));
        let third = certificate::make(&wanted, NOW, None).expect("made");
        std::fs::write(&certificate, &third.shown.pem).expect("written");
        std::fs::write(&key, certificate::key_of(&third.pem).expect("a key")).expect("written");
        let settings = Settings { files: Some((certificate.clone(), key)), ..on("127.0.0.1:0") };
        served.https.set(settings.clone());
        served
            .until(|https| {
                https
                    .certificate
                    .as_ref()
                    .is_some_and(|own| own.fingerprint == third.shown.fingerprint)
            })
            .await;
        let error = served.https.replace(other.pem).await.expect_err("the configuration's");
        assert!(error.hint.contains("SIGHUP"), "{}", error.hint);
        // What is wrong with them keeps nobody out, nor from another address.
        std::fs::write(&certificate, "").expect("written");
        let mut both = settings.clone();
        both.listen.push("127.0.0.2:0".parse().expect("an address"));
        served.https.set(both);
        served.until(|https| !https.problems.is_empty() && https.listeners.len() == 2).await;
        assert_eq!(served.fingerprint(), third.shown.fingerprint);
        assert_eq!(get(&mut late).await, "127.0.0.1");
        served.client("other").await.expect("let in as before");
    });
}

#[test]
fn it_is_made_once_and_renewed_before_its_end() {
    static CLOCK: AtomicU64 = AtomicU64::new(NOW);
    run(async {
        let served = Served::open(|| CLOCK.load(Ordering::Relaxed)).await;
        let (first, key) = (served.fingerprint(), served.key());
        assert_eq!(
            served.last(),
            format!("HTTPS shows the certificate with SHA-256 {first}, that the daemon made")
        );
        let settings = on("127.0.0.1:0");
        let file = served._dir.path().join("state").join(CERTIFICATE);
        let mode = std::os::unix::fs::PermissionsExt::mode;
        let permissions = std::fs::metadata(&file).expect("kept").permissions();
        assert_eq!(mode(&permissions) & 0o777, 0o600);
        served.https.renew(&settings).await.expect("read");
        assert_eq!(served.fingerprint(), first);
        CLOCK
            .fetch_add((certificate::LIFE - certificate::RENEWAL).as_secs() - 1, Ordering::Relaxed);
        served.https.renew(&settings).await.expect("read");
        assert_eq!(served.fingerprint(), first);
        let mut early = served.client("localhost").await;
        CLOCK.fetch_add(1, Ordering::Relaxed);
        served.https.renew(&settings).await.expect("made");
        let second = served.fingerprint();
        assert_ne!(second, first);
        let line = format!(
            "HTTPS shows another certificate, with the same key: SHA-256 {second}, that the daemon \
             made; before: {first}"
        );
        assert_eq!(served.last(), line);
        if let Ok(early) = &mut early {
            assert_eq!(get(early).await, "127.0.0.1");
        }
        // Another address is another certificate.
        served.https.renew(&on("192.0.2.1:443")).await.expect("made");
        assert_ne!(served.fingerprint(), second);
        assert_eq!(served.key(), key, "clients may know it");
        // A machine that has lost the time keeps it, and says so.
        let third = served.fingerprint();
        let now = CLOCK.swap(NOW, Ordering::Relaxed);
        served.https.renew(&settings).await.expect("read");
        assert_eq!(served.fingerprint(), third);
        let problem = served.https.dated().expect("a problem");
        assert!(problem.is(&say::CERTIFICATE_EARLY), "{problem:?}");
        CLOCK.store(now, Ordering::Relaxed);
        assert_eq!(served.https.dated(), None);
        // One that can't be read is not thrown away.
        std::fs::write(&file, "broken").expect("written");
        let error = served.https.renew(&settings).await.expect_err("broken");
        assert!(error.hint.contains("https.pem"), "{}", error.hint);
        assert_eq!(std::fs::read(&file).expect("there"), b"broken");
    });
}

#[test]
fn a_certificate_that_was_asked_for_finds_its_key() {
    run(async {
        let served = Served::open(|| NOW).await;
        let wanted = Request { names: vec!["nas".to_owned()], ..Request::default() };
        let request = served.https.request(wanted).await.expect("made");
        assert!(request.contains("CERTIFICATE REQUEST") && !request.contains("PRIVATE"));
        let key = served._dir.path().join("state").join(REQUESTED);
        let key = std::fs::read_to_string(key).expect("kept");
        let key = rcgen::KeyPair::from_pem(&key).expect("a key");
        let params = rcgen::CertificateParams::new(vec!["nas".to_owned()]).expect("valid");
        let signed = params.self_signed(&key).expect("signed");
        let before = served.fingerprint();
        served.https.replace(signed.pem()).await.expect("its key is there");
        assert_ne!(served.fingerprint(), before);
        assert!(!served._dir.path().join("state").join(REQUESTED).exists());
    });
}

#[test]
fn a_key_that_is_waited_for_stays_when_another_is_used() {
    run(async {
        let served = Served::open(|| NOW).await;
        served.https.request(Request::default()).await.expect("made");
        let requested = served._dir.path().join("state").join(REQUESTED);
        let other = certificate::make(&For::default(), NOW, None).expect("made");
        served.https.replace(other.pem).await.expect("it has its key");
        assert!(requested.exists(), "the certificate that comes needs this key");
        assert!(!served.https.view().certificate.clone().expect("one").is_made, "it was brought");
    });
}

#[test]
fn what_has_ended_is_not_taken() {
    run(async {
        let served = Served::open(|| NOW).await;
        let before = served.fingerprint();
        let ended = certificate::make(&For::default(), NOW - 400 * 86_400, None).expect("made");
        let error = served.https.replace(ended.pem).await.expect_err("it has ended");
        assert!(error.is(&say::CERTIFICATE_UNUSABLE), "{error:?}");
        assert_eq!(served.fingerprint(), before);
    });
}

#[test]
fn files_that_are_not_there_or_have_no_end_are_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    let made = certificate::make(&For::default(), NOW, None).expect("made");
    std::fs::write(path("whole"), &made.pem).expect("written");
    std::fs::write(path("large"), "x".repeat(1 << 20) + "x").expect("written");
    let read = |certificate: &Path, key: &Path| given(certificate, key);
    for bad in [path("none"), dir.path().to_owned(), path("large")] {
        let error = read(&bad, &path("whole")).err().expect("it can't be read");
        assert!(error.is(&say::CERTIFICATE_NOT_READ), "{error:?}");
        assert!(error.error.contains(&bad.display().to_string()), "{}", error.error);
        assert!(read(&path("whole"), &bad).is_err());
    }
    // One file for both; and a key of its own, whatever else is beside the certificate.
    let both = read(&path("whole"), &path("whole")).expect("read");
    assert_eq!((both.certified.cert.len(), both.shown.is_made), (1, false));
    let other = certificate::make(&For::default(), NOW, None).expect("made");
    let key = certificate::key_of(&made.pem).expect("a key");
    let stale = certificate::key_of(&other.pem).expect("a key");
    std::fs::write(path("mixed"), format!("{}{stale}", made.shown.pem)).expect("written");
    std::fs::write(path("key"), key).expect("written");
    let mixed = read(&path("mixed"), &path("key")).expect("the key of the file for keys");
    assert_eq!(mixed.shown.fingerprint, made.shown.fingerprint);
}

#[test]
fn what_can_not_be_kept_is_not_shown() {
    run(async {
        let served = Served::open(|| NOW).await;
        let before = served.fingerprint();
        let state = served._dir.path().join("state");
        std::fs::create_dir(state.join(format!("{CERTIFICATE}.new"))).expect("made");
        let other = certificate::make(&For::default(), NOW, None).expect("made");
        let error = served.https.replace(other.pem).await.expect_err("not kept");
        assert!(error.is(&say::CERTIFICATE_NOT_KEPT), "{error:?}");
        assert_eq!(served.fingerprint(), before);
    });
}

#[test]
fn one_that_was_made_is_shown_though_it_can_not_be_kept() {
    run(async {
        let dir = tempfile::tempdir().expect("a directory");
        let blocked = dir.path().join("state").join(format!("{CERTIFICATE}.new"));
        std::fs::create_dir_all(&blocked).expect("made");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(dir.path().join("state"), mode).expect("set");
        let served = Served::within(dir, || NOW, on("127.0.0.1:0"));
        served.accounts.send_replace(true);
        served.until(|https| !https.listeners.is_empty() && !https.problems.is_empty()).await;
        let problem = served.https.view().problems.first().expect("a problem").what.clone();
        assert!(problem.is(&say::CERTIFICATE_NOT_KEPT), "{problem:?}");
        let before = served.fingerprint();
        served.client("localhost").await.expect("let in");
        // It is the same when it is tried again, and as soon as it can be kept, it is.
        served.https.renew(&on("127.0.0.1:0")).await.expect_err("not kept");
        assert_eq!(served.fingerprint(), before);
        std::fs::remove_dir(&blocked).expect("removed");
        served.https.set(on("127.0.0.1:0"));
        served.until(|https| https.problems.is_empty()).await;
        assert_eq!(served.fingerprint(), before);
        let file = served._dir.path().join("state").join(CERTIFICATE);
        let kept = std::fs::read_to_string(file).expect("kept");
        assert_eq!(certificate::read(&kept).expect("read").shown.fingerprint, before);
    });
}

#[test]
fn the_end_of_a_certificate_that_a_person_gave_is_told() {
    const END: u64 = NOW + certificate::LIFE.as_secs();
    run(async {
        let served = Served::open(|| END - 60).await;
        assert_eq!(served.https.view().problems, []);
        let early = certificate::make(&For::default(), NOW, None).expect("made");
        served.https.replace(early.pem).await.expect("taken");
        served.https.set(on("127.0.0.1:0"));
        served.until(|https| !https.problems.is_empty()).await;
        let problem = served.https.view().problems.first().expect("a problem").what.clone();
        assert!(problem.is(&say::CERTIFICATE_ENDS), "{problem:?}");
        served.client("localhost").await.expect("let in as before");
    });
}

#[test]
fn handshakes_beyond_those_of_a_second_come_one_after_the_other() {
    let (pace, begin) = (Pace::default(), Instant::now());
    let turns: Vec<_> = (0..3 * HANDSHAKES).map(|_| pace.turn(begin)).collect();
    let at_once = turns.iter().filter(|turn| **turn <= begin).count();
    assert_eq!(at_once, HANDSHAKES as usize + 1);
    let last = turns.last().expect("one").duration_since(begin);
    assert!(last < Duration::from_secs(2) && last > Duration::from_millis(1900), "{last:?}");
    // Who comes later has not saved more than a second.
    let later = begin + Duration::from_secs(60);
    let at_once = (0..3 * HANDSHAKES).filter(|_| pace.turn(later) <= later).count();
    assert_eq!(at_once, HANDSHAKES as usize + 1);
}

#[test]
fn a_port_that_is_taken_is_told() {
    run(async {
        let taken = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = taken.local_addr().expect("bound");
        let served = Served::begin(|| NOW, on(&address.to_string()));
        served.accounts.send_replace(true);
        served.until(|https| !https.problems.is_empty() && https.certificate.is_some()).await;
        let what = served.https.view().problems.first().expect("a problem").what.error.clone();
        assert!(what.contains(&address.to_string()), "{what}");
        assert!(served.https.view().listeners.is_empty());
    });
}

#[test]
fn it_listens_on_ipv6_too_and_says_where_it_can_not() {
    run(async {
        let Ok(taken) = TcpListener::bind("[::1]:0").await else {
            println!("skipped: no IPv6 here");
            return;
        };
        let address = taken.local_addr().expect("bound");
        let both = Settings { listen: vec![address, on("[::1]:0").listen[0]], files: None };
        let served = Served::begin(|| NOW, both);
        served.accounts.send_replace(true);
        served.until(|https| !https.problems.is_empty() && !https.listeners.is_empty()).await;
        let what = served.https.view().problems.first().expect("a problem").what.error.clone();
        assert!(what.contains(&address.to_string()), "{what}");
        let mut client = served.client("::1").await.expect("let in");
        assert_eq!(get(&mut client).await, "::1");
    });
}

#[test]
fn a_file_that_does_not_answer_keeps_nobody_waiting() {
    run(async {
        let served = Served::open(|| NOW).await;
        let before = served.fingerprint();
        // Whose opening waits for the other end.
        let hanging = served._dir.path().join("hanging");
        let made = std::process::Command::new("mkfifo").arg(&hanging).status().expect("runs");
        assert!(made.success());
        let files = (hanging.clone(), hanging.clone());
        let hang = |certificate: &Path, _: &Path| {
            let _ = std::fs::read(certificate);
            Err(off("it hung", ""))
        };
        let late = served.https.read(files.clone(), hang).await.err().expect("it hangs");
        assert!(
            late.is(&say::CERTIFICATE_NOT_READ) && late.error.contains("no answer"),
            "{late:?}"
        );
        // It is not read once more while it hangs.
        served.https.set(Settings { files: Some(files.clone()), ..on("127.0.0.1:0") });
        served.until(|https| https.problems.iter().any(|own| own.what == late)).await;
        served.client("localhost").await.expect("let in as before");
        // Other files are taken, and what the daemon keeps is changed.
        served.https.set(on("127.0.0.1:0"));
        served.until(|https| https.problems.is_empty()).await;
        assert_eq!(served.fingerprint(), before);
        let wanted = Request { names: vec!["nas".to_owned()], ..Request::default() };
        served.https.request(wanted).await.expect("made");
        let mut end = std::fs::OpenOptions::new();
        drop(end.read(true).write(true).open(&hanging).expect("the other end"));
        drop(served);
    });
}

#[test]
fn each_address_that_is_taken_is_told() {
    run(async {
        let mut all = Vec::new();
        for _ in 0..2 {
            all.push(TcpListener::bind("127.0.0.1:0").await.expect("bound"));
        }
        let listen: Vec<_> = all.iter().map(|own| own.local_addr().expect("bound")).collect();
        let served = Served::begin(|| NOW, Settings { listen: listen.clone(), files: None });
        served.accounts.send_replace(true);
        served.until(|https| https.problems.len() == 2).await;
        let view = served.https.view();
        for (address, problem) in listen.iter().zip(&view.problems) {
            assert!(problem.what.is(&say::HTTPS_NOT_BOUND), "{problem:?}");
            assert_eq!(problem.what.args.first(), Some(&address.to_string()));
            assert_eq!(problem.since, NOW);
        }
    });
}

#[test]
fn one_port_is_of_both_protocols() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let _inside = runtime.enter();
    let any = "0.0.0.0:0".parse().expect("an address");
    let first = bind(any, &[any]).expect("bound").local_addr().expect("bound");
    let both = [first, SocketAddr::new("::".parse().expect("an address"), first.port())];
    let Ok(six) = bind(both[1], &both) else {
        println!("skipped: no IPv6 here");
        return;
    };
    let four = bind(first, &both).expect("the other's clients are not its own");
    drop((six, four));
}

/// What these bytes are answered over TLS, to the end of the connection.
async fn sent(served: &Served, parts: &[&str], is_cut: bool) -> Vec<u8> {
    let mut client = served.client("localhost").await.expect("let in");
    for part in parts {
        client.write_all(part.as_bytes()).await.expect("sent");
        client.flush().await.expect("sent");
    }
    if is_cut {
        client.shutdown().await.expect("shut");
    }
    let mut answer = Vec::new();
    let end = timeout(LIMIT, client.read_to_end(&mut answer)).await.expect("it ends");
    // Who is let go without TLS's own end is let go.
    let _ = end;
    answer
}

/// How many answers these are.
fn statuses(answer: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(answer).into_owned();
    text.match_indices("HTTP/1.1 ").map(|(at, _)| text[at + 9..at + 12].to_owned()).collect()
}

#[test]
fn requests_are_smuggled_and_cut_behind_tls_no_more_than_before_it() {
    run(async {
        let served = Served::open(|| NOW).await;
        let second = "GET /2 HTTP/1.1\r\nhost: p\r\nconnection: close\r\n\r\n";
        let head = "GET / HTTP/1.1\r\nhost: p\r\n";
        let chunked = "transfer-encoding: chunked\r\n";
        let hidden = [
            format!("{head}content-length: 4\r\n{chunked}\r\n0\r\n\r\n{second}"),
            format!("{head}{chunked}content-length: 4\r\n\r\n0\r\n\r\n{second}"),
            format!("{head}content-length: {}\r\n\r\n{second}", second.len()),
            format!("{head}{chunked}\r\nx\r\n{second}"),
        ];
        for bytes in &hidden {
            let found = statuses(&sent(&served, &[bytes], false).await);
            assert_eq!(found.len(), 1, "{bytes}: {found:?}");
        }
        let two = format!("{head}content-length: 0\r\n\r\n{second}");
        assert_eq!(statuses(&sent(&served, &[&two], false).await), ["200", "200"]);
        for wrong in ["GET\r\n\r\n", "\u{16}\u{3}\u{1}\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
        {
            assert_eq!(statuses(&sent(&served, &[wrong], false).await), ["400"], "{wrong}");
        }
        let large = format!("{head}x: {}\r\n\r\n", "y".repeat(17 << 10));
        assert_eq!(statuses(&sent(&served, &[&large], false).await), ["431"]);
        // In as many records as bytes; and each beginning of it, behind which TLS ends.
        let whole = format!("{head}connection: close\r\n\r\n");
        let bytes: Vec<_> = (0..whole.len()).map(|at| &whole[at..=at]).collect();
        assert_eq!(statuses(&sent(&served, &bytes, false).await), ["200"]);
        for at in (0..whole.len()).step_by(7) {
            let found = statuses(&sent(&served, &[&whole[..at]], true).await);
            assert!(found.is_empty() || found == ["400"], "{at}: {found:?}");
        }
    });
}

#[test]
fn who_is_slow_behind_tls_is_let_go() {
    run(async {
        let served = Served::open(|| NOW).await;
        let begun = std::time::Instant::now();
        let (nothing, head) = tokio::join!(
            sent(&served, &[], false),
            sent(&served, &["GET / HTTP/1.1\r\nhost: p\r\n"], false),
        );
        assert!(nothing.is_empty());
        assert_eq!(statuses(&head), ["408"]);
        assert!(begun.elapsed() >= http::HEADER_TIME - Duration::from_secs(1));
    });
}
