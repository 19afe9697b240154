//! What a Redfish request is answered (DSP0266): the table of routes says what it leads to.
//!
//! Reads are answered by what the daemon knows already ([`Manager::view`]): neither drives nor the
//! engine are asked. Changes are carried out by [`crate::act`]; those that take long end behind
//! [`crate::slow`].
//!
//! Invariants
//! - Whatever a client sends is answered, and nothing of it is taken for granted.
//! - A body is read after the rest of the request has said that its sender may ask for this.
//! - The audit log has one line for each refusal of what is no read: from here for what is not
//!   admitted, else from [`crate::act`].

use crate::act;
use crate::body::{BODY_BYTES, NOBODYS_BYTES, NoBody};
use crate::caller::{self, Caller};
use crate::console;
use crate::http::{AGAIN, Asked, Takes};
use crate::login;
use crate::manager::Manager;
use crate::metrics::NoText;
use crate::peer::{Origin, Peer};
use crate::pools::Share;
use crate::reply::{self, Body, Content, Told};
use crate::slow;
use crate::watching;
use hyper::body::Bytes;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, LINK, ORIGIN,
    WWW_AUTHENTICATE,
};
use hyper::{Request, Response, StatusCode};
use redfish::error::{Base, Refusal};
use redfish::etag;
use redfish::messages as say;
use redfish::query::Query;
use redfish::routes::{self, Match, Method, Privilege, Resource, Route};
use redfish::view::{Error, View};
use redfish::{openapi, prometheus, schema, service};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::{Arc, LazyLock};

/// Who a browser says has it ask (Fetch Metadata Request Headers).
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Answers a request.
pub async fn answer(manager: &Arc<Manager>, asked: Asked) -> Response<Content> {
    let asked = match page(asked).await {
        Ok(page) => {
            manager.metrics.answered(page.status().as_u16());
            return page;
        }
        Err(asked) => asked,
    };
    let is_script = console::is_script(asked.headers());
    let path = asked.uri().path();
    let found = match *asked.method() {
        hyper::Method::POST => routes::find_to_create(path),
        _ => routes::find(path),
    };
    let route = found.as_ref().map(|found| found.route);
    let (mut response, is_told) = match told(manager, asked, found).await {
        Ok((told, takes)) => {
            let mut response = told.response();
            response.extensions_mut().insert(takes);
            (response, true)
        }
        Err(refusal) => (reply::refusal(&refusal), false),
    };
    manager.metrics.answered(response.status().as_u16());
    let headers = response.headers_mut();
    if is_script && headers.contains_key(WWW_AUTHENTICATE) {
        // A browser would open a dialog of its own.
        headers.insert(WWW_AUTHENTICATE, console::BY_SESSION);
    }
    if let Some(route) = route {
        if route.privilege(Method::Get) == Some(Privilege::Nobody) {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        }
        reply::put(headers, ALLOW, &route.allow());
        if let Some(schema) = schema_of(route).filter(|_| is_told) {
            reply::put(headers, LINK, &format!("<{schema}>; rel=describedby"));
        }
    }
    response
}

/// What the console answers, or the request if it is none of its. What comes with it means nothing.
async fn page(asked: Asked) -> Result<Response<Content>, Asked> {
    let peer = asked.extensions().get::<Peer>();
    let page = console::answer(peer, asked.method(), asked.uri().path(), asked.headers());
    let Some(page) = page else { return Err(asked) };
    let body = asked.into_body();
    let mut page = match body.check() {
        Ok(()) => page,
        Err(why) => reply::refusal(&no_body(why)),
    };
    body.drain().await;
    page.extensions_mut().insert(Takes(None));
    Ok(page)
}

/// What is told and whose memory that takes, or why nothing is.
async fn told(
    manager: &Arc<Manager>,
    asked: Asked,
    found: Option<Match>,
) -> Result<(Told, Takes), Refusal> {
    let (caller, found, method, asked) = admitted(manager, asked, found).await?;
    if let Some(body) = document(manager, &asked, &found, method).await? {
        return Ok((Told { status: StatusCode::OK, body, ..Told::nothing() }, Takes(None)));
    }
    let takes = Takes(Some(share(&caller)));
    let told = match method {
        Method::Get if found.route.resource == Resource::TaskMonitor => {
            slow::monitor(manager, &caller, found.id(0))
        }
        Method::Delete if found.route.resource == Resource::TaskMonitor => {
            slow::forget(manager, &caller, &found, asked.headers()).await
        }
        Method::Get if found.route.resource == Resource::EventStream => {
            watching::watch(manager, &asked, &caller)
        }
        Method::Get => {
            // Lines come between two views.
            match found.route.resource {
                Resource::AuditEntries | Resource::AuditEntry => drop(manager.refresh()),
                resource if is_of_events(resource) => manager.refresh_events(),
                _ => {}
            }
            let conditions = act::conditions(asked.headers())?;
            let query = asked.uri().query().unwrap_or_default();
            let told = read(&manager.view(), &caller, &found, query)?;
            match conditions.is_unchanged(told.etag.as_deref())? {
                true => Ok(told.known()),
                false => Ok(told),
            }
        }
        Method::Post if found.route.resource == Resource::Sessions => {
            slow::log_in(manager, &asked, &caller, &found).await
        }
        _ => slow::carry_out(manager, &asked, &caller, &found, method).await,
    };
    told.map(|told| (told, takes))
}

/// Whose memory a request and its answer take.
const fn share(caller: &Caller) -> Share {
    match (caller.role, caller.origin) {
        (None, _) => Share::Nobody,
        (Some(_), Origin::Network(_) | Origin::Stranger(_)) => Share::Network,
        (Some(_), Origin::Socket(_)) => Share::Socket,
    }
}

/// What is the same for all who ask.
async fn document(
    manager: &Manager,
    asked: &Request<Bytes>,
    found: &Match,
    method: Method,
) -> Result<Option<Body>, Refusal> {
    static METADATA: LazyLock<Bytes> = LazyLock::new(|| schema::metadata().into());
    static OPENAPI: LazyLock<Bytes> = LazyLock::new(|| openapi::document().to_string().into());
    let body = match found.route.resource {
        _ if method != Method::Get => return Ok(None),
        Resource::Metadata => Body::Text(reply::XML, METADATA.clone()),
        Resource::OpenApi => Body::Text(reply::JSON, OPENAPI.clone()),
        // JSON is YAML (YAML 1.2, section 1.2).
        Resource::OpenApiYaml => Body::Text(reply::YAML, OPENAPI.clone()),
        Resource::Metrics => {
            let text = manager.metrics.text(manager.view()).await.map_err(|why| match why {
                NoText::NoRoom => Refusal::no_room(AGAIN),
                NoText::Failed => Refusal::internal(),
            })?;
            return Ok(Some(Body::Text(prometheus::CONTENT_TYPE, text)));
        }
        _ => return Ok(None),
    };
    Query::parse(asked.uri().query().unwrap_or_default())?;
    act::conditions(asked.headers())?.is_unchanged(None)?;
    Ok(Some(body))
}

/// Whether a resource tells events, or who is told of them.
const fn is_of_events(resource: Resource) -> bool {
    matches!(
        resource,
        Resource::EventEntries
            | Resource::EventEntry
            | Resource::Subscriptions
            | Resource::Subscription
    )
}

/// Who asks what of which resource, if that is looked at any further. The audit log has a line of
/// a refusal, but of reads only where the caller may not do it.
async fn admitted(
    manager: &Arc<Manager>,
    asked: Asked,
    found: Option<Match>,
) -> Result<(Caller, Match, Method, Request<Bytes>), Refusal> {
    let (head, body) = asked.into_parts();
    let head = Request::from_parts(head, ());
    let path = head.uri().path();
    let peer = head.extensions().get::<Peer>().ok_or_else(Refusal::internal)?;
    let own = method(head.method());
    let view = manager.view();
    let needed = |(found, own)| caller::needed(&view, found, own);
    let privilege = found.as_ref().zip(own).and_then(needed);
    let request = format!("{} {path}", head.method());
    // What everybody may have is no matter of who asks, but for what a query puts into it.
    let is_asked_of_nobody = privilege == Some(Privilege::Nobody)
        && (own != Some(Method::Get) || head.uri().query().is_none());
    let caller = match is_asked_of_nobody {
        true => Caller::of(peer, &manager.local()),
        false => match login::caller(manager, peer, head.headers(), (&request, path)).await {
            Ok(caller) => caller,
            Err(refusal) => {
                body.drain().await;
                return Err(refusal);
            }
        },
    };
    let is_broken = body.check();
    let mut unread = Some(body);
    let whole = async {
        is_broken.map_err(no_body)?;
        let (found, method) = allowed(manager, &head, found, &caller)?;
        let body = match unread.take_if(|_| method != Method::Get) {
            // What comes with a read means nothing (RFC 9110, section 9.3.1).
            None => Bytes::new(),
            Some(body) => {
                let share = share(&caller);
                let most = if share == Share::Nobody { NOBODYS_BYTES } else { BODY_BYTES };
                let body = body.read(share, most).await.map_err(no_body)?;
                check_type(head.headers(), &body)?;
                body
            }
        };
        Ok::<_, Refusal>((found, method, body))
    };
    let outcome = whole.await;
    if let Some(body) = unread {
        body.drain().await;
    }
    let refusal = match outcome {
        Ok((found, method, body)) => {
            let (head, ()) = head.into_parts();
            return Ok((caller, found, method, Request::from_parts(head, body)));
        }
        Err(refusal) => refusal,
    };
    if refusal.status == StatusCode::UNAUTHORIZED || is_noted(&head, &refusal) {
        manager.audit().refused(&caller, &request, "", &refusal).await;
    }
    Err(refusal)
}

/// What is asked of which resource, if the caller may; of its body nothing is known.
fn allowed(
    manager: &Manager,
    asked: &Request<()>,
    found: Option<Match>,
    caller: &Caller,
) -> Result<(Match, Method), Refusal> {
    let path = asked.uri().path();
    let found = match found {
        Some(found) => found,
        // Who is nobody learns nothing of what there is.
        None if caller.is_nobody() => return Err(caller::nobody(path)),
        None => return Err(Refusal::not_found(path)),
    };
    let method = match method(asked.method()) {
        Some(method) => method,
        None if caller.is_nobody() && !is_everybodys(&found) => return Err(caller::nobody(path)),
        None => return Err(Refusal::not_allowed()),
    };
    caller.check(&manager.view(), &found, method)?;
    let wanted = asked.headers().get(&reply::ODATA_VERSION);
    if wanted.is_some_and(|wanted| wanted != reply::VERSION) {
        return Err(Refusal::base(&Base::PRECONDITION_FAILED, &[]));
    }
    if method != Method::Get {
        check_site(asked.headers())?;
    }
    if method != Method::Get && asked.uri().query().is_some_and(|query| !query.is_empty()) {
        return Err(Refusal::base(&Base::QUERY_NOT_ON_OPERATION, &[]));
    }
    Ok((found, method))
}

/// Whether everybody may read it.
fn is_everybodys(found: &Match) -> bool {
    found.route.privilege(Method::Get) == Some(Privilege::Nobody)
}

/// Whether the audit log has a line for a refusal: of all but reads, and of those that the caller
/// may not do.
fn is_noted(asked: &Request<()>, refusal: &Refusal) -> bool {
    let is_read = matches!(*asked.method(), hyper::Method::GET | hyper::Method::HEAD);
    !is_read || refusal.status == StatusCode::FORBIDDEN.as_u16()
}

/// A request's method, if any route could know it.
fn method(method: &hyper::Method) -> Option<Method> {
    match *method {
        hyper::Method::GET | hyper::Method::HEAD => Some(Method::Get),
        hyper::Method::POST => Some(Method::Post),
        hyper::Method::PATCH => Some(Method::Patch),
        hyper::Method::DELETE => Some(Method::Delete),
        _ => None,
    }
}

/// A body is JSON, and says so: a page of another site could not send it then.
fn check_type(headers: &HeaderMap, body: &Bytes) -> Result<(), Refusal> {
    if body.is_empty() {
        return Ok(());
    }
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = value.split(';').next().unwrap_or_default();
    if kind.trim().eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let refusal = Refusal::base(&Base::UNRECOGNIZED_BODY, &[]);
    Err(refusal.with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE.as_u16()))
}

/// Who a browser sends with its user's name and password is a page of this service, or nobody's.
fn check_site(headers: &HeaderMap) -> Result<(), Refusal> {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let own = format!("https://{host}");
    let is_own = |origin: &HeaderValue| origin.as_bytes().eq_ignore_ascii_case(own.as_bytes());
    let is_near = |site: &HeaderValue| site == "same-origin" || site == "none";
    let mut sites = headers.get_all(SITE).iter();
    let origin = match headers.get_all(ORIGIN).iter().find(|origin| !is_own(origin)) {
        Some(origin) => String::from_utf8_lossy(origin.as_bytes()).into_owned(),
        None if sites.all(is_near) => return Ok(()),
        None => "another site".to_owned(),
    };
    let refusal = Refusal::from(Error::new(&say::ANOTHER_SITE, &[&origin]));
    Err(refusal.with_status(StatusCode::FORBIDDEN.as_u16()))
}

/// Why a request without a whole body is refused.
fn no_body(why: NoBody) -> Refusal {
    match why {
        NoBody::TooLarge => Refusal::too_large(),
        NoBody::TooLate => Refusal::too_slow(),
        NoBody::Broken => Refusal::base(&Base::UNRECOGNIZED_BODY, &[]),
        NoBody::NoHost => Refusal::base(&Base::HEADER_MISSING, &["Host"]),
        NoBody::NoRoom => Refusal::no_room(AGAIN),
    }
}

/// What a GET is answered. What a query puts into it is there for who may have it.
fn read(view: &View, caller: &Caller, found: &Match, query: &str) -> Result<Told, Refusal> {
    let query = Query::parse(query)?;
    let missing = || Refusal::not_found(&found.uri());
    let body = match found.route.resource {
        Resource::CsdlFile => Body::Xml(schema::csdl(found.id(0)).ok_or_else(missing)?),
        _ => {
            let (own, whole) = (query.part(), Query::default().part());
            let shown = OnceCell::new();
            let render = |found: &Match, page: &_| {
                let is_told = is_of_events(found.route.resource);
                let view = match is_told {
                    true => shown.get_or_init(|| shown_to(caller, view)),
                    false => view,
                };
                service::render_part(view, found, page)
            };
            // What is most of a report of the past is not made for who wants the rest.
            let brief =
                query.leaves_out("MetricValues").then(|| service::render_brief(view, found));
            let resource = brief.flatten().or_else(|| render(found, &own)).ok_or_else(missing)?;
            let other = |uri: &str| {
                let found = routes::find(uri)?;
                caller.check(view, &found, Method::Get).ok()?;
                render(&found, &whole)
            };
            Body::Json(query.apply(resource, &other)?)
        }
    };
    // What a query makes of a resource has no ETag: it may hold others.
    let etag = match &body {
        Body::Json(resource) if query.is_empty() => etag::read(resource).map(str::to_owned),
        _ => None,
    };
    Ok(Told { status: StatusCode::OK, etag, body, ..Told::nothing() })
}

/// A view with the events that somebody may know of, and without the URIs of others' receivers,
/// which may be secrets.
fn shown_to<'a>(caller: &Caller, view: &'a View) -> Cow<'a, View> {
    if caller.may(Privilege::ConfigureUsers) {
        return Cow::Borrowed(view);
    }
    let events = Arc::new(view.events.without(|event| !caller.knows(event)));
    Cow::Owned(View { events, ..view.clone() })
}

/// Where the schema of a route's resources is described; none if it has none.
fn schema_of(route: &Route) -> Option<String> {
    let name = route.schema.strip_prefix('#')?;
    let (name, _) = name.rsplit_once('.')?;
    let folder = match name.split('.').next()? {
        "StoragePool" | "StoragePoolCollection" | "Capacity" => "swordfish/v1",
        _ => "v1",
    };
    Some(format!("http://redfish.dmtf.org/schemas/{folder}/{name}.json"))
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
