//! Tests of certificates.

use super::*;

/// 24 November 2026.
const NOW: u64 = 1_795_500_000;

fn wanted() -> For {
    let addresses = ["192.0.2.7", "2001:db8::7", "0.0.0.0"];
    let addresses = addresses.map(|text| text.parse().expect("an address")).into();
    For { host: "nas.example.org".to_owned(), addresses }
}

#[test]
fn what_is_made_is_what_was_wanted() {
    let made = make(&wanted(), NOW, None).expect("made");
    let shown = &made.shown;
    let names = ["127.0.0.1", "192.0.2.7", "2001:db8::7", "::1", "localhost", "nas.example.org"];
    let mut found = shown.names.clone();
    found.sort();
    assert_eq!(found, names);
    assert_eq!(shown.subject.common_name, "nas.example.org");
    assert_eq!(shown.subject, shown.issuer);
    assert_eq!((shown.not_before, shown.not_after), (NOW - 86_400, NOW + LIFE.as_secs()));
    assert_eq!(shown.fingerprint.len(), 32 * 3 - 1);
    assert!(shown.is_made && made.pem.contains("PRIVATE KEY") && has_key(&made.pem));
    assert!(!format!("{shown:?}").contains("PRIVATE"), "a key is shown");
    let der = CertificateDer::from_pem_slice(shown.pem.as_bytes()).expect("our PEM is read back");
    assert_eq!(made.certified.cert.first(), Some(&der));
    assert!(shown.pem.lines().all(|line| line.len() <= 64));
    let again = make(&wanted(), NOW, None).expect("made");
    assert_ne!(again.shown.fingerprint, shown.fingerprint);
    let odd = For { host: "no name\n".to_owned(), ..For::default() };
    assert_eq!(
        make(&odd, NOW, None).expect("made all the same").shown.subject.common_name,
        "localhost"
    );
}

#[test]
fn it_is_due_a_month_before_its_end_or_when_names_differ() {
    let made = make(&wanted(), NOW, None).expect("made").shown;
    let end = NOW + LIFE.as_secs();
    assert!(!is_due(&made, &wanted(), NOW));
    assert!(!is_due(&made, &wanted(), end - RENEWAL.as_secs() - 1));
    assert!(is_due(&made, &wanted(), end - RENEWAL.as_secs()));
    assert!(is_due(&made, &wanted(), end + 1));
    let other = For { host: "other".to_owned(), ..wanted() };
    for wrong in [0, 1_577_836_800, NOW - 90_000] {
        // A machine that has lost the time begins in 1970, or when its firmware was made.
        assert!(!is_due(&made, &wanted(), wrong), "the clock is wrong now");
        assert!(!is_due(&made, &other, wrong), "the clock is wrong now");
    }
    let early = make(&wanted(), 0, None).expect("made").shown;
    assert!(is_due(&early, &wanted(), NOW), "the clock was wrong when it was made");
    assert!(is_due(&made, &other, NOW));
    let given = Certificate { is_made: false, ..made };
    assert!(!is_due(&given, &other, end + 1), "a person's is a person's");
}

#[test]
fn what_is_wrong_with_dates_is_told() {
    let made = make(&wanted(), NOW, None).expect("made").shown;
    let end = NOW + LIFE.as_secs();
    let given = Certificate { is_made: false, ..made.clone() };
    let month = RENEWAL.as_secs();
    for (shown, now, message) in [
        (&made, NOW - 90_000, Some(&say::CERTIFICATE_EARLY)),
        (&given, 0, Some(&say::CERTIFICATE_EARLY)),
        (&made, NOW, None),
        (&made, end + 1, None),
        (&given, end - month - 1, None),
        (&given, end - month, Some(&say::CERTIFICATE_ENDS)),
        (&given, end + 1, Some(&say::CERTIFICATE_ENDS)),
    ] {
        let found = problem(shown, now);
        let is_it = found.as_ref().zip(message).is_some_and(|(found, row)| found.is(row));
        assert!(is_it || (found.is_none() && message.is_none()), "{now}: {found:?}");
    }
    for (now, why) in [(end, "ended"), (NOW - 3 * 86_400, "not good yet")] {
        let error = check_dates(&given, now).expect_err(why);
        assert!(error.is(&say::CERTIFICATE_UNUSABLE) && error.error.contains(why), "{error:?}");
    }
    for now in [end - 1, NOW, NOW - 90_000, 0] {
        check_dates(&given, now).expect("the clock may be wrong");
    }
}

#[test]
fn a_renewed_certificate_has_the_key_of_the_one_before() {
    let first = make(&wanted(), NOW, None).expect("made");
    let key = key_of(&first.pem);
    let second = make(&wanted(), NOW + 1, key.as_deref()).expect("made").shown;
    assert_eq!(second.key, first.shown.key);
    assert_ne!(second.fingerprint, first.shown.fingerprint);
    let other = make(&wanted(), NOW, None).expect("made").shown;
    assert_ne!(other.key, first.shown.key);
}

#[test]
fn a_key_for_clients_is_not_taken_for_a_server() {
    let of = |uses: Vec<ExtendedKeyUsagePurpose>| {
        let mut params = CertificateParams::new(vec!["nas".to_owned()]).expect("a name");
        params.extended_key_usages = uses;
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
        let own = params.self_signed(&key).expect("signed");
        read(&format!("{}{}", own.pem(), key.serialize_pem()))
    };
    use ExtendedKeyUsagePurpose::{Any, ClientAuth, ServerAuth};
    for uses in [vec![], vec![Any], vec![ClientAuth, ServerAuth]] {
        of(uses).map(drop).expect("it is for servers");
    }
    let error = of(vec![ClientAuth]).err().expect("it is not");
    assert!(error.error.contains("not for servers"), "{}", error.error);
}

/// PEM of what is no certificate.
const NONE: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

#[test]
fn only_a_certificate_with_its_key_is_taken() {
    let (one, two) =
        (make(&wanted(), NOW, None).expect("made"), make(&wanted(), NOW, None).expect("made"));
    let given = one.pem.strip_prefix(MADE).expect("marked");
    assert!(!read(given).expect("read").shown.is_made);
    let key = key_of(&one.pem).expect("a key");
    assert!(has_key(&key) && !has_key(&one.shown.pem));
    let joined = format!("{}{key}", one.shown.pem);
    assert_eq!(read(&joined).expect("read").shown.fingerprint, one.shown.fingerprint);
    let chain = format!("{}{}{key}", one.shown.pem, two.shown.pem);
    let chain = read(&chain).expect("read");
    assert_eq!((chain.certified.cert.len(), &chain.shown.serial), (2, &one.shown.serial));
    let large = public(&[vec![0; MOST_BYTES].into()]);
    for (pem, why) in [
        (format!("{}{key}", two.shown.pem), "another certificate's"),
        (one.shown.pem.clone(), "no private key"),
        (key.clone(), "no certificate"),
        (format!("{}{key}", one.shown.pem.repeat(9)), "too many"),
        (format!("{NONE}{key}"), "X.509"),
        (format!("{}{NONE}{key}", one.shown.pem), "X.509"),
        (format!("{}{large}{key}", one.shown.pem), "too large"),
        (String::new(), "no private key"),
    ] {
        let error = read(&pem).err().unwrap_or_else(|| panic!("{why}"));
        assert!(error.error.contains(why), "{}", error.error);
        assert!(!error.error.contains("BEGIN"), "{}", error.error);
    }
}

#[test]
fn bytes_that_are_no_certificate_do_no_harm() {
    let made = make(&wanted(), NOW, None).expect("made");
    let der = made.certified.cert.first().expect("one").to_vec();
    assert!(facts(&der).is_some());
    for length in 0..der.len() {
        let _ = facts(&der[..length]);
    }
    for at in 0..der.len() {
        for value in [0, 1, 0x7f, 0x80, 0x84, 0xff, der[at].wrapping_add(1)] {
            let mut other = der.clone();
            other[at] = value;
            let _ = facts(&other);
        }
    }
    let deep = [0x30, 0x84, 0xff, 0xff, 0xff, 0xff];
    assert!(facts(&deep).is_none());
}

#[test]
fn base64_is_that_of_its_page() {
    // RFC 4648, section 10.
    for (bytes, text) in
        [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
    {
        assert_eq!(base64(bytes.as_bytes()), text);
    }
}

#[test]
fn a_request_has_a_key_of_its_own() {
    let subject = Named {
        common_name: "nas.example.org".to_owned(),
        organization: "Example".to_owned(),
        ..Named::default()
    };
    let wanted = Request { subject, names: vec!["nas.example.org".to_owned()] };
    let (request, key) = super::request(&wanted).expect("made");
    assert!(request.starts_with("-----BEGIN CERTIFICATE REQUEST-----"), "{request}");
    assert!(!has_key(&request) && has_key(&key));
    let odd = Request { names: vec!["ä".to_owned()], ..Request::default() };
    assert!(super::request(&odd).is_err());
}
