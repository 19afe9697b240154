//! HTTPS and its certificate: `ManagerNetworkProtocol`, `CertificateService`, `Certificate`.
//!
//! Invariant: no key is told.

use super::{collection, condition, link, links, put, put_named, uri};
use crate::dates;
use crate::view::{Certificate, Named, View};
use serde_json::{Value, json};

/// The only certificate.
const ID: &str = "1";

pub(super) fn network_protocol(view: &View) -> Value {
    let https = &view.https;
    let port = https.listeners.first().and_then(|address| address.rsplit_once(':'));
    let port = port.and_then(|(_, port)| port.parse::<u16>().ok());
    let health = if https.problems.is_empty() { "OK" } else { "Warning" };
    let mut protocol = json!({
        "@odata.id": uri::NETWORK_PROTOCOL,
        "@odata.type": "#ManagerNetworkProtocol.v1_13_0.ManagerNetworkProtocol",
        "Id": "NetworkProtocol",
        "Name": "What the daemon speaks on the network",
        "Status": {"State": "Enabled", "Health": health},
        "HTTP": {"ProtocolEnabled": false, "Port": Value::Null},
        "HTTPS": {
            "ProtocolEnabled": !https.listeners.is_empty(),
            "Port": port,
            "Certificates": link(uri::CERTIFICATES),
        },
        "SSDP": {"ProtocolEnabled": false},
    });
    let conditions = https.problems.iter().map(|problem| condition(problem, "Warning")).collect();
    if let (Some(status), false) = (protocol.get_mut("Status"), https.problems.is_empty()) {
        put(status, "Conditions", conditions);
    }
    put_named(&mut protocol, "HostName", &view.server.name);
    protocol
}

pub(super) fn all(view: &View) -> Value {
    let certificates = view.https.certificate.iter().map(|_| uri::CERTIFICATE.to_owned());
    collection(uri::CERTIFICATES, "CertificateCollection", "Certificates of HTTPS", certificates)
}

pub(super) fn one(view: &View, id: &str) -> Option<Value> {
    let certificate = view.https.certificate.as_ref().filter(|_| id == ID)?;
    let Certificate {
        pem, serial, fingerprint, subject, issuer, not_before, not_after, names, ..
    } = certificate;
    let is_chain = pem.matches("-----BEGIN").count() > 1;
    Some(json!({
        "@odata.id": uri::CERTIFICATE,
        "@odata.type": "#Certificate.v1_11_0.Certificate",
        "Id": ID,
        "Name": "Certificate of HTTPS",
        "CertificateString": pem,
        "CertificateType": if is_chain { "PEMchain" } else { "PEM" },
        "CertificateUsageTypes": ["Web"],
        "SerialNumber": serial,
        "Fingerprint": fingerprint,
        "FingerprintHashAlgorithm": "TPM_ALG_SHA256",
        "Subject": named(subject, names),
        "Issuer": named(issuer, &[]),
        "ValidNotBefore": dates::text(*not_before),
        "ValidNotAfter": dates::text(*not_after),
    }))
}

fn named(name: &Named, alternatives: &[String]) -> Value {
    let mut own = json!({});
    for (property, text) in [
        ("CommonName", &name.common_name),
        ("Organization", &name.organization),
        ("OrganizationalUnit", &name.unit),
        ("City", &name.city),
        ("State", &name.state),
        ("Country", &name.country),
    ] {
        put_named(&mut own, property, text);
    }
    if !alternatives.is_empty() {
        put(&mut own, "AlternativeNames", json!(alternatives));
    }
    own
}

pub(super) fn service() -> Value {
    let action = |name: &str| {
        let target = format!("{}/Actions/CertificateService.{name}", uri::CERTIFICATE_SERVICE);
        json!({ "target": target })
    };
    json!({
        "@odata.id": uri::CERTIFICATE_SERVICE,
        "@odata.type": "#CertificateService.v1_2_2.CertificateService",
        "Id": "CertificateService",
        "Name": "Certificates",
        "CertificateLocations": link(format!("{}/CertificateLocations", uri::CERTIFICATE_SERVICE)),
        "Actions": {
            "#CertificateService.GenerateCSR": action("GenerateCSR"),
            "#CertificateService.ReplaceCertificate": action("ReplaceCertificate"),
        },
    })
}

pub(super) fn locations(view: &View) -> Value {
    let certificates = links(view.https.certificate.iter().map(|_| uri::CERTIFICATE.to_owned()));
    json!({
        "@odata.id": format!("{}/CertificateLocations", uri::CERTIFICATE_SERVICE),
        "@odata.type": "#CertificateLocations.v1_0_4.CertificateLocations",
        "Id": "CertificateLocations",
        "Name": "Where certificates are",
        "Links": {
            "Certificates@odata.count": certificates.len(),
            "Certificates": certificates,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{Error, HTTPS_OFF};
    use crate::view::Https;
    use std::sync::Arc;

    #[test]
    fn what_is_wrong_with_https_is_told() {
        let what = Error::new(&HTTPS_OFF, &[&"there is no account"]);
        let https =
            Https { problems: vec![crate::view::Problem { since: 0, what }], ..Https::default() };
        let mut view = View::default();
        assert_eq!(network_protocol(&view)["Status"], json!({"State": "Enabled", "Health": "OK"}));
        view.https = Arc::new(https);
        let status = network_protocol(&view)["Status"].clone();
        assert_eq!(status["Health"], "Warning");
        let condition = &status["Conditions"][0];
        assert_eq!(condition["MessageId"], "Palisade.1.0.HttpsOff");
        assert_eq!(condition["Message"], "HTTPS is off: there is no account");
        assert_eq!(condition["Timestamp"], "1970-01-01T00:00:00Z");
    }
}
