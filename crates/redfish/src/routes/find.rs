//! The row of a path, and paths of identifiers: percent signs (RFC 3986, section 2.1).
//!
//! Invariant: what [`encoded`] makes of an identifier, [`find`] reads as the same.

use super::Method::Post;
use super::{Match, ROUTES, Resource, Route};

/// The row of a path, and the identifiers in it, decoded (RFC 3986, section 2.1). A slash at the
/// end counts for nothing.
pub fn find(path: &str) -> Option<Match> {
    let path = path.strip_prefix('/')?;
    let path = path.strip_suffix('/').unwrap_or(path);
    let segments: Vec<String> = path.split('/').map(decoded).collect::<Option<_>>()?;
    ROUTES.iter().find_map(|route| Some(Match { route, ids: identifiers(route.uri, &segments)? }))
}

/// The row of a resource.
pub fn of(resource: Resource) -> Option<&'static Route> {
    ROUTES.iter().find(|route| route.resource == resource)
}

/// The same of a POST, which may go to the members of a collection instead of the collection
/// (DSP0266, "POST (create)").
pub fn find_to_create(path: &str) -> Option<Match> {
    let creates = |found: &Match| found.route.privilege(Post).is_some();
    let collection = || find(path.trim_end_matches('/').strip_suffix("/Members")?);
    find(path).filter(creates).or_else(|| collection().filter(creates)).or_else(|| find(path))
}

/// What stands where the URI has braces, if it matches.
fn identifiers(uri: &str, segments: &[String]) -> Option<Vec<String>> {
    let mut wanted = uri.split('/').skip(1);
    let mut ids = Vec::new();
    for segment in segments {
        match wanted.next()? {
            own if own.starts_with('{') && !segment.is_empty() => ids.push(segment.clone()),
            own if own == segment => {}
            _ => return None,
        }
    }
    wanted.next().is_none().then_some(ids)
}

/// A part of a path without percent signs; none if it is not text.
fn decoded(segment: &str) -> Option<String> {
    unescaped(segment, b'%', |byte| byte)
}

/// A text in which two hexadecimal digits behind `escape` stand for a byte, and others for what
/// `plain` makes of them; none if it is none.
pub(crate) fn unescaped(text: &str, escape: u8, plain: impl Fn(u8) -> u8) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            byte if byte == escape => digit(rest.next()?)? << 4 | digit(rest.next()?)?,
            other => plain(other),
        });
    }
    String::from_utf8(bytes).ok()
}

/// A digit of a hexadecimal number.
fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// An identifier as a part of a path: what RFC 3986 does not leave unreserved is encoded.
pub fn encoded(id: &str) -> String {
    let mut text = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(byte));
            }
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}
