//! What a request wants changed of the certificate of HTTPS.
//!
//! - `CertificateService.ReplaceCertificate`: `CertificateString`, `CertificateType`,
//!   `CertificateUri`. The text may have the private key, too.
//! - `CertificateService.GenerateCSR`: `CertificateCollection`, `CommonName`, `Organization`?,
//!   `OrganizationalUnit`?, `City`?, `State`?, `Country`?, `AlternativeNames`?,
//!   `KeyPairAlgorithm`?, `KeyCurveId`?.
//!
//! Invariant: no key is told in a refusal, nor by `Debug`.

use super::links;
use super::node::Fields;
use crate::access::Secret;
use crate::error::Refusal;
use crate::routes::Resource;
use crate::service::uri;
use crate::view::Named;

/// The most names that a request for a certificate has.
pub(super) const MOST_NAMES: usize = 64;

/// A change of the certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CertificateChange {
    /// Takes this certificate, as PEM, with its private key or without.
    Replace(Secret),
    /// Makes a request for a certificate (PKCS#10).
    Request {
        /// Whose.
        subject: Named,
        /// The names and addresses that it is to be for.
        names: Vec<String>,
    },
}

impl CertificateChange {
    /// What is to be done, in words.
    pub fn words(&self) -> String {
        match self {
            Self::Replace(_) => "replace the certificate of HTTPS".to_owned(),
            Self::Request { subject, .. } => {
                format!("make a key and a request for a certificate of {}", subject.common_name)
            }
        }
    }
}

/// Reads it; none if the request is of something else.
pub fn parse(
    resource: Resource,
    fields: &mut Fields<'_>,
) -> Option<Result<CertificateChange, Refusal>> {
    match resource {
        Resource::ReplaceCertificate => Some(replace(fields)),
        Resource::GenerateCsr => Some(request(fields)),
        _ => None,
    }
}

fn replace(fields: &mut Fields<'_>) -> Result<CertificateChange, Refusal> {
    let pem = fields.need("CertificateString")?.text()?.to_owned();
    fields.need("CertificateType")?.word(&["PEM", "PEMchain"])?;
    links::to(&fields.need("CertificateUri")?, Resource::HttpsCertificate, uri::CERTIFICATE)?;
    Ok(CertificateChange::Replace(Secret::new(pem)))
}

fn request(fields: &mut Fields<'_>) -> Result<CertificateChange, Refusal> {
    let to = &fields.need("CertificateCollection")?;
    links::to(to, Resource::HttpsCertificates, uri::CERTIFICATES)?;
    let common_name = fields.need("CommonName")?.text()?.to_owned();
    let mut text = |name: &str| match fields.take(name) {
        Some(node) => node.text().map(str::to_owned),
        None => Ok(String::new()),
    };
    let subject = Named {
        common_name,
        organization: text("Organization")?,
        unit: text("OrganizationalUnit")?,
        city: text("City")?,
        state: text("State")?,
        country: text("Country")?,
    };
    let names = fields.texts("AlternativeNames", MOST_NAMES)?;
    if let Some(algorithm) = fields.take("KeyPairAlgorithm") {
        algorithm.word(&["TPM_ALG_ECDSA"])?;
    }
    if let Some(curve) = fields.take("KeyCurveId") {
        curve.word(&["TPM_ECC_NIST_P256"])?;
    }
    Ok(CertificateChange::Request { subject, names })
}
