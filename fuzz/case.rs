//! One case of each fuzz target of the control plane: what a client gives is answered, and does no
//! harm.

use crate::certificate as certificates;
use crate::stranger::Stranger;

/// Bytes of a client that is not known. What it is answered are answers of HTTP/1, and each refusal
/// says why.
pub fn http(stranger: &Stranger, input: &[u8]) {
    let told = stranger.told(input).expect("the connection ends");
    let mut rest = told.as_slice();
    while !rest.is_empty() {
        rest = behind(rest).unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&told)));
    }
}

/// What is behind one answer.
fn behind(told: &[u8]) -> Option<&[u8]> {
    let end = told.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = core::str::from_utf8(told.get(..end)?).ok()?;
    let rest = told.get(end + 4..)?;
    let status: u16 = head.strip_prefix("HTTP/1.")?.get(2..5)?.parse().ok()?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(Some(0), |length| length.parse().ok())?;
    // What is asked with HEAD has a length and no body.
    if rest.is_empty() || rest.starts_with(b"HTTP/1.") {
        return Some(rest);
    }
    // A client that says no more may be let go before it has all of the last.
    let Some(body) = rest.get(..length) else { return Some(&[]) };
    // The console's page says itself that there is no such page.
    if status >= 400 && !head.contains("content-type: text/html") {
        let body: serde_json::Value = serde_json::from_slice(body).ok()?;
        let messages = body.pointer("/error/@Message.ExtendedInfo")?.as_array()?;
        assert!(!messages.is_empty(), "{body}");
    }
    rest.get(length..)
}

/// A file with certificates and keys, as a client brings it. One that is taken is taken again, as
/// the daemon keeps it.
pub fn certificate(input: &[u8]) {
    let _ = certificates::facts(input);
    let text = String::from_utf8_lossy(input);
    let half = text.len() / 2;
    let (first, second) = text.split_at_checked(half).unwrap_or((&text, &text));
    for outcome in [
        certificates::read(&text),
        certificates::pair(&text, &text),
        certificates::pair(first, second),
    ] {
        let identity = match outcome {
            Ok(identity) => identity,
            Err(error) => {
                assert!(!error.error.contains("PRIVATE KEY"), "{}", error.error);
                continue;
            }
        };
        let again = certificates::read(&identity.pem).unwrap_or_else(|e| panic!("{}", e.error));
        assert_eq!(again.shown.fingerprint, identity.shown.fingerprint);
        assert!(!identity.shown.pem.contains("PRIVATE KEY"), "a key is shown");
        let _ = certificates::problem(&identity.shown, identity.shown.not_after);
    }
}
