//! The web console over HTTP: its files, and the headers that keep a browser to them.
//!
//! Purpose: a browser that is given the daemon's address gets the console ([`console`]), which then
//! asks the management interface as any other client does. Nobody has to log in for it: it holds
//! nothing of this machine.
//!
//! Invariants
//! - It is served to clients of the network only, that is, over HTTPS. Who asks on the socket is
//!   answered as before.
//! - What begins with `/redfish` or is `/metrics` is never of the console.
//! - Whatever else a browser asks for is answered here, so that no answer of it opens the browser's
//!   own dialog for a name and a password.

use crate::peer::Peer;
use crate::reply::{self, Content};
use console::File;
use hyper::body::Bytes;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Response, StatusCode};
use redfish::error::Refusal;

/// What the page may load and do: its own files, and to talk to this daemon (Content Security
/// Policy Level 3).
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; object-src 'none'";

/// How long a file may be kept whose name tells what it holds (RFC 8246).
const LASTING: &str = "public, max-age=31536000, immutable";

/// What asks for a script's own way of logging in: the console sends it with each request.
const ASKED_BY: HeaderName = HeaderName::from_static("x-requested-with");

/// How a script logs in. No browser knows this scheme: it opens no dialog for it, as it does for
/// `Basic` (RFC 9110, section 11.6.1).
pub const BY_SESSION: HeaderValue = HeaderValue::from_static("PalisadeSession realm=\"Palisade\"");

/// Whether a script of a page asks.
pub fn is_script(headers: &HeaderMap) -> bool {
    headers.contains_key(ASKED_BY)
}

/// What the console answers; nothing if the request is none of its.
pub fn answer(
    peer: Option<&Peer>,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
) -> Option<Response<Content>> {
    if !matches!(peer, Some(Peer::Network { .. })) || is_of_interface(path) {
        return None;
    }
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    Some(match console::find(path) {
        Some(file) if is_read => served(file, headers),
        Some(_) => {
            let mut response = refused(&Refusal::not_allowed());
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            response
        }
        // A person sees the page, which says that it knows no such page.
        None if is_read && takes_pages(headers) => match console::find("/") {
            Some(file) => {
                let mut response = served(file, &HeaderMap::new());
                *response.status_mut() = StatusCode::NOT_FOUND;
                response
            }
            None => refused(&Refusal::not_found(path)),
        },
        None => refused(&Refusal::not_found(path)),
    })
}

/// Whether a path is of the management interface, or of its metrics.
fn is_of_interface(path: &str) -> bool {
    ["/redfish", "/metrics"].iter().any(|start| {
        path.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// A file, or that the browser has it.
fn served(file: &File, headers: &HeaderMap) -> Response<Content> {
    let is_gzip = takes_gzip(headers);
    let tag = format!("\"{}{}\"", file.hash, if is_gzip { "-gzip" } else { "" });
    let is_known = headers.get_all(IF_NONE_MATCH).iter().any(|value| has(value, &tag));
    let bytes = match (is_known, is_gzip) {
        (true, _) => Bytes::new(),
        (false, true) => Bytes::from_static(file.gzip),
        (false, false) => Bytes::from_static(file.plain),
    };
    let mut response = guarded(Response::new(bytes.into()));
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    let cache = if file.is_lasting() { LASTING } else { "no-cache" };
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(file.kind));
    if is_gzip {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// Why there is no file.
fn refused(refusal: &Refusal) -> Response<Content> {
    guarded(reply::refusal(refusal))
}

/// Whether who asks is a browser that shows what it gets (RFC 9110, section 12.5.1).
fn takes_pages(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|text| text.contains("text/html"))
}

/// An answer with what every one of the console has.
fn guarded(mut response: Response<Content>) -> Response<Content> {
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Whether a client takes gzip (RFC 9110, section 12.5.3): it names it, and not with weight 0.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).any(|part| {
        let (name, weight) = part.split_once(';').unwrap_or((part, ""));
        let weight = weight.trim().strip_prefix("q=").unwrap_or("1");
        name.trim().eq_ignore_ascii_case("gzip")
            && weight.trim().parse::<f32>().is_ok_and(|weight| weight > 0.0)
    })
}

/// Whether a list of ETags has this one (RFC 9110, section 13.1.2: compared weakly).
fn has(value: &HeaderValue, tag: &str) -> bool {
    let text = value.to_str().unwrap_or_default();
    let own = |part: &str| {
        let part = part.trim();
        part == "*" || part.strip_prefix("W/").unwrap_or(part) == tag
    };
    text.split(',').any(own)
}

#[cfg(test)]
#[path = "console_tests.rs"]
mod tests;
