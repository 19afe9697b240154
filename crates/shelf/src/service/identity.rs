//! Who the management service is, and who may use it: a certificate with its key, and a password.
//! A shelf with a folder keeps both there, so that the next one is known by the same.

use crate::error::ShelfError;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use sha2::{Digest as _, Sha256};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

/// The only user.
pub(super) const USER: &str = "admin";

/// A certificate and a password.
pub(super) struct Identity {
    pub tls: Arc<ServerConfig>,
    /// The certificate's SHA-256: capitals, with colons.
    pub fingerprint: String,
    pub password: String,
}

/// A text of the folder, which is made if it is not there, for its owner alone.
fn kept(
    folder: Option<&Path>,
    name: &str,
    make: impl FnOnce() -> Result<String, ShelfError>,
) -> Result<String, ShelfError> {
    let Some(path) = folder.map(|folder| folder.join(name)) else { return make() };
    let of = |error| ShelfError::of(path.display(), &error);
    match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        text => return text.map_err(of),
    }
    let text = make()?;
    let new = path.with_extension("new");
    let mut options = OpenOptions::new();
    let made = options.write(true).create(true).truncate(true).mode(0o600).open(&new);
    let written = made.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, &path)
    });
    written.map_err(of)?;
    Ok(text)
}

fn random() -> Result<String, ShelfError> {
    let mut bytes = [0; 16];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut all| all.read_exact(&mut bytes));
    read.map_err(|error| ShelfError::of("/dev/urandom", &error))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn certificate(serial: &str, address: IpAddr) -> Result<String, rcgen::Error> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let own = address.to_string();
    if !address.is_unspecified() && !names.contains(&own) {
        names.push(own);
    }
    let mut params = CertificateParams::new(names)?;
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, serial);
    name.push(DnType::OrganizationName, "Palisade shelf");
    params.distinguished_name = name;
    let key = KeyPair::generate()?;
    Ok(format!("{}{}", params.self_signed(&key)?.pem(), key.serialize_pem()))
}

impl Identity {
    /// That of a shelf.
    ///
    /// # Errors
    /// It can't be made, or what the folder has can't be used.
    pub fn of(serial: &str, folder: Option<&Path>, address: IpAddr) -> Result<Self, ShelfError> {
        let failed = |why: &dyn core::fmt::Display| {
            ShelfError::Failed(format!("the management service's certificate: {why}"))
        };
        let pem = kept(folder, "redfish.pem", || {
            certificate(serial, address).map_err(|error| failed(&error))
        })?;
        let password = kept(folder, "redfish.password", random)?.trim().to_owned();
        if password.is_empty() {
            let told = "redfish.password is empty: remove it, and another is made";
            return Err(ShelfError::Failed(told.to_owned()));
        }
        let first = CertificateDer::from_pem_slice(pem.as_bytes());
        let first = first.map_err(|error| failed(&error))?;
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| failed(&error))?;
        let hash = Sha256::digest(&first);
        let bytes: Vec<String> = hash.iter().map(|byte| format!("{byte:02X}")).collect();
        let mut tls = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])
            .and_then(|own| own.with_no_client_auth().with_single_cert(vec![first], key))
            .map_err(|error| failed(&error))?;
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { tls: Arc::new(tls), fingerprint: bytes.join(":"), password })
    }
}
