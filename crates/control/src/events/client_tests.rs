//! Receivers behind TLS, and names that are looked up.

use super::*;
use crate::certificate::{For, make};
use crate::events::tests::run;
use rustls::ServerConfig;
use rustls::server::ResolvesServerCert;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// One certificate for all who ask.
#[derive(Debug)]
struct One(Arc<rustls::sign::CertifiedKey>);

impl ResolvesServerCert for One {
    fn resolve(
        &self,
        _: rustls::server::ClientHello<'_>,
    ) -> Option<Arc<rustls::sign::CertifiedKey>> {
        Some(self.0.clone())
    }
}

/// A receiver whose certificate nobody signed but itself; what it was sent, connection by
/// connection.
async fn receiver() -> (Receiver, tokio::sync::mpsc::Receiver<Option<String>>) {
    let identity = make(&For::default(), crate::snapshot::now(), None).expect("made");
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_protocol_versions(&[&version::TLS13]).expect("TLS 1.3");
    let resolver = Arc::new(One(identity.certified));
    let config = config.with_no_client_auth().with_cert_resolver(resolver);
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let uri = format!("https://localhost:{}/hook", listener.local_addr().expect("bound").port());
    let (tell, told) = tokio::sync::mpsc::channel(4);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut request = None;
            if let Ok(mut stream) = acceptor.accept(stream).await {
                let mut part = vec![0; 4096];
                if let Ok(count @ 1..) = stream.read(&mut part).await {
                    request = Some(String::from_utf8_lossy(&part[..count]).into_owned());
                    // An answer whose body never ends is one.
                    let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n";
                    stream.write_all(answer.as_bytes()).await.expect("written");
                    stream.flush().await.expect("written");
                }
                if tell.send(request).await.is_err() {
                    return;
                }
                let _ = stream.read(&mut part).await;
            } else if tell.send(None).await.is_err() {
                return;
            }
        }
    });
    (Receiver::read(&uri).expect("a receiver"), told)
}

#[test]
fn a_wrong_certificate_is_told_nothing_unless_none_has_to_be_right() {
    run(async {
        let (to, mut told) = receiver().await;
        let (client, body) = (Client::default(), Bytes::from_static(b"{}"));
        let secret = [("x-key".to_owned(), redfish::access::Secret::new("hidden"))];
        let failure = client.post(&to, true, &secret, body.clone()).await.expect_err("refused");
        // Either nobody is trusted here, or this one is not.
        let is_trust = failure.why.contains("certificate") && !failure.is_of_content;
        assert!(is_trust, "{failure:?}");
        assert_eq!(told.recv().await.expect("a connection"), None);
        client.post(&to, false, &secret, body).await.expect("taken");
        let request = told.recv().await.expect("a connection").expect("a request");
        assert!(request.starts_with("POST /hook HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("x-key: hidden\r\n"), "{request}");
    });
}

#[test]
fn a_lookup_that_hangs_delays_who_needs_that_name_only() {
    run(async {
        let client = Client::default();
        let (hung, told) = watch::channel(None);
        lock(&client.lookups).insert("dead.example".to_owned(), told);
        let waiting = client.look_up("dead.example".to_owned(), 1);
        let mut waiting = core::pin::pin!(waiting);
        let found = tokio::select! {
            biased;
            _ = &mut waiting => panic!("it is not there yet"),
            found = client.look_up("localhost".to_owned(), 80) => found,
        };
        assert!(found.expect("it is known").iter().all(|address| address.port() == 80));
        hung.send_replace(Some(Err("no such name".to_owned())));
        assert_eq!(waiting.await, Err("no such name".to_owned()));
        // Lookups that nobody waits for are counted.
        for number in 1..LOOKUPS {
            let (_, told) = watch::channel(None);
            lock(&client.lookups).insert(number.to_string(), told);
        }
        let full = client.look_up("other.example".to_owned(), 1).await.expect_err("too many");
        assert!(full.contains("too many"), "{full}");
    });
}
