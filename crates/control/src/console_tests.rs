//! What a browser is answered: which path leads where, with which headers.

use super::*;
use core::net::Ipv4Addr;
use hyper::header::HeaderName;

const SOCKET: Peer = Peer::Socket { user: 0, groups: Vec::new() };

fn network() -> Peer {
    Peer::Network { address: Ipv4Addr::LOCALHOST.into() }
}

fn with(headers: &[(HeaderName, &str)]) -> HeaderMap {
    let pair = |(name, value): &(HeaderName, &str)| {
        (name.clone(), HeaderValue::from_str(value).expect("a value"))
    };
    headers.iter().map(pair).collect()
}

fn get(path: &str, headers: &[(HeaderName, &str)]) -> Response<Content> {
    answer(Some(&network()), &Method::GET, path, &with(headers)).expect("of the console")
}

fn text<'a>(response: &'a Response<Content>, name: &HeaderName) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().expect("a text"))
}

#[test]
fn it_is_for_the_network_and_not_for_the_interface() {
    let none = HeaderMap::new();
    for peer in [None, Some(&SOCKET)] {
        assert!(answer(peer, &Method::GET, "/", &none).is_none());
    }
    let interface = ["/redfish", "/redfish/", "/redfish/v1", "/redfish/v1/None", "/metrics"];
    for path in interface.into_iter().chain(["/metrics/"]) {
        assert!(answer(Some(&network()), &Method::GET, path, &none).is_none(), "{path}");
    }
    for path in ["/redfishes", "/metrics2", "/x"] {
        assert_eq!(get(path, &[]).status(), 404, "{path}");
    }
}

#[test]
fn pages_and_files_have_the_headers_that_keep_a_browser_to_them() {
    let pages = ["/", "/shelf", "/drives/nvme%20x", "/arrays/1", "/accounts"];
    let files = console::all().iter().map(|file| file.path);
    for path in pages.into_iter().chain(files) {
        let told = get(path, &[]);
        assert_eq!(told.status(), 200, "{path}");
        assert!(text(&told, &CONTENT_SECURITY_POLICY).starts_with("default-src 'self';"), "{path}");
        assert!(!text(&told, &CONTENT_SECURITY_POLICY).contains("unsafe"), "{path}");
        assert_eq!(text(&told, &X_CONTENT_TYPE_OPTIONS), "nosniff");
        assert_eq!(text(&told, &REFERRER_POLICY), "no-referrer");
        let cache = if path.starts_with("/assets/") { LASTING } else { "no-cache" };
        assert_eq!(text(&told, &CACHE_CONTROL), cache, "{path}");
        let file = console::find(path).expect("a file");
        assert_eq!(text(&told, &CONTENT_TYPE), file.kind);
        assert_eq!(told.into_body().whole(), file.plain);
    }
}

#[test]
fn a_browser_that_takes_gzip_gets_gzip() {
    let file = console::find("/").expect("the page");
    for (accepted, is_gzip) in [
        ("gzip, deflate, br", true),
        ("br;q=1.0, GZIP;q=0.5", true),
        ("gzip;q=0", false),
        ("gzip; q=0.000", false),
        ("identity", false),
        ("xgzip", false),
    ] {
        let told = get("/", &[(ACCEPT_ENCODING, accepted)]);
        assert_eq!(text(&told, &CONTENT_ENCODING) == "gzip", is_gzip, "{accepted}");
        assert_eq!(text(&told, &VARY), "accept-encoding");
        let bytes = told.into_body().whole();
        assert_eq!(bytes, if is_gzip { file.gzip } else { file.plain }, "{accepted}");
    }
}

#[test]
fn what_a_browser_has_is_not_sent_again() {
    let gzip = (ACCEPT_ENCODING, "gzip");
    let plain = text(&get("/", &[]), &ETAG).to_owned();
    let packed = text(&get("/", core::slice::from_ref(&gzip)), &ETAG).to_owned();
    assert_ne!(plain, packed);
    for (headers, status) in [
        (vec![(IF_NONE_MATCH, plain.as_str())], 304),
        (vec![(IF_NONE_MATCH, packed.as_str()), gzip.clone()], 304),
        (vec![(IF_NONE_MATCH, packed.as_str())], 200),
        (vec![(IF_NONE_MATCH, "\"other\"")], 200),
        (vec![(IF_NONE_MATCH, "*")], 304),
    ] {
        let told = get("/", &headers);
        assert_eq!(told.status(), status, "{headers:?}");
        assert_eq!(told.into_body().whole().is_empty(), status == 304, "{headers:?}");
    }
    let listed = format!("\"other\", W/{plain}");
    assert_eq!(get("/", &[(IF_NONE_MATCH, &listed)]).status(), 304);
}

#[test]
fn nothing_else_is_found_and_nothing_is_changed() {
    for path in ["/index.html", "/assets/../index.rs", "/assets/%2e%2e/index.rs", "/drives/a/b"] {
        let told = get(path, &[]);
        assert_eq!(told.status(), 404, "{path}");
        assert_eq!(text(&told, &CACHE_CONTROL), "no-store");
    }
    let told = get("/none", &[(ACCEPT, "text/html,application/xhtml+xml,*/*;q=0.8")]);
    assert_eq!((told.status().as_u16(), text(&told, &CACHE_CONTROL)), (404, "no-cache"));
    assert_eq!(told.into_body().whole(), console::find("/").expect("the page").plain);
    let none = HeaderMap::new();
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
        let told = answer(Some(&network()), &method, "/", &none).expect("of the console");
        assert_eq!(told.status(), 405, "{method}");
        assert_eq!(text(&told, &ALLOW), "GET, HEAD");
        let told = answer(Some(&network()), &method, "/x", &none).expect("of the console");
        assert_eq!(told.status(), 404, "{method}");
    }
    let told = answer(Some(&network()), &Method::HEAD, "/", &none).expect("of the console");
    assert_eq!(told.status(), 200);
}
