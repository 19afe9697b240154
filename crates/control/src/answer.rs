//! What a Redfish request is answered (DSP0266): the table of routes says what it leads to.
//!
//! Reads are answered by what the daemon knows already ([`Manager::view`]): neither drives nor the
//! engine are asked. Changes are carried out by [`crate::act`]; those that take long end behind
//! [`crate::slow`].
//!
//! Invariants
//! - Whatever a client sends is answered, and nothing of it is taken for granted.
//! - The audit log has one line for each refusal of what is no read: from here for what is not
//!   admitted, else from [`crate::act`].

use crate::act;
use crate::api::View;
use crate::caller::{self, Caller};
use crate::http::{Asked, NoBody};
use crate::login;
use crate::manager::Manager;
use crate::peer::Peer;
use crate::reply::{self, Body, Content, Told};
use crate::slow;
use crate::watching;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderMap, LINK};
use hyper::{Response, StatusCode};
use redfish::error::{Base, Refusal};
use redfish::etag;
use redfish::query::Query;
use redfish::routes::{self, Match, Method, Privilege, Resource, Route};
use redfish::{openapi, schema, service};
use std::sync::Arc;

/// Answers a request.
pub async fn answer(manager: &Arc<Manager>, asked: Asked) -> Response<Content> {
    let path = asked.uri().path();
    let found = match *asked.method() {
        hyper::Method::POST => routes::find_to_create(path),
        _ => routes::find(path),
    };
    let route = found.as_ref().map(|found| found.route);
    let (mut response, is_told) = match told(manager, &asked, found).await {
        Ok(told) => (told.response(), true),
        Err(refusal) => (reply::refusal(&refusal), false),
    };
    let headers = response.headers_mut();
    if let Some(route) = route {
        reply::put(headers, ALLOW, &route.allow());
        if let Some(schema) = schema_of(route).filter(|_| is_told) {
            reply::put(headers, LINK, &format!("<{schema}>; rel=describedby"));
        }
    }
    response
}

/// What is told, or why nothing is.
async fn told(
    manager: &Arc<Manager>,
    asked: &Asked,
    found: Option<Match>,
) -> Result<Told, Refusal> {
    let (caller, found, method) = admitted(manager, asked, found).await?;
    match method {
        Method::Get if found.route.resource == Resource::TaskMonitor => {
            slow::monitor(manager, &caller, found.id(0))
        }
        Method::Get if found.route.resource == Resource::EventStream => {
            watching::watch(manager, asked, &caller)
        }
        Method::Get => {
            if is_log(found.route.resource) {
                // Lines come between two views.
                manager.refresh();
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
            slow::log_in(manager, asked, &caller, &found).await
        }
        _ => slow::carry_out(manager, asked, &caller, &found, method).await,
    }
}

/// Whether a resource has lines that come without a change of anything else.
const fn is_log(resource: Resource) -> bool {
    matches!(
        resource,
        Resource::AuditEntries
            | Resource::AuditEntry
            | Resource::EventEntries
            | Resource::EventEntry
    )
}

/// Who asks what of which resource, if that is looked at any further. The audit log has a line of
/// a refusal, but of reads only where the caller may not do it.
async fn admitted(
    manager: &Manager,
    asked: &Asked,
    found: Option<Match>,
) -> Result<(Caller, Match, Method), Refusal> {
    let path = asked.uri().path();
    let peer = asked.extensions().get::<Peer>().ok_or_else(Refusal::internal)?;
    let own = method(asked.method());
    let privilege = found.as_ref().zip(own).and_then(|(found, own)| found.route.privilege(own));
    let request = format!("{} {path}", asked.method());
    // What everybody may have is no matter of who asks, but for what a query puts into it.
    let is_asked_of_nobody = privilege == Some(Privilege::Nobody)
        && (own != Some(Method::Get) || asked.uri().query().is_none());
    let caller = match is_asked_of_nobody {
        true => Caller::of(peer, &manager.local()),
        false => login::caller(manager, peer, asked.headers(), (&request, path)).await?,
    };
    let refusal = match allowed(manager, asked, found, &caller) {
        Ok((found, method)) => return Ok((caller, found, method)),
        Err(refusal) => refusal,
    };
    if refusal.status == StatusCode::UNAUTHORIZED || is_noted(asked, &refusal) {
        manager.audit().refused(&caller, &request, "", &refusal).await;
    }
    Err(refusal)
}

/// What is asked of which resource, if the caller may and the request is one.
fn allowed(
    manager: &Manager,
    asked: &Asked,
    found: Option<Match>,
    caller: &Caller,
) -> Result<(Match, Method), Refusal> {
    let body = asked.body().as_ref().map_err(|why| no_body(*why))?;
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
        if asked.uri().query().is_some_and(|query| !query.is_empty()) {
            return Err(Refusal::base(&Base::QUERY_NOT_ON_OPERATION, &[]));
        }
        check_type(asked.headers(), body)?;
    }
    Ok((found, method))
}

/// Whether everybody may read it.
fn is_everybodys(found: &Match) -> bool {
    found.route.privilege(Method::Get) == Some(Privilege::Nobody)
}

/// Whether the audit log has a line for a refusal: of all but reads, and of those that the caller
/// may not do.
fn is_noted(asked: &Asked, refusal: &Refusal) -> bool {
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

/// A body is JSON, if a client says what it is.
fn check_type(headers: &HeaderMap, body: &Bytes) -> Result<(), Refusal> {
    let Some(value) = headers.get(CONTENT_TYPE).filter(|_| !body.is_empty()) else {
        return Ok(());
    };
    let kind = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    if kind.trim().eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let refusal = Refusal::base(&Base::UNRECOGNIZED_BODY, &[]);
    Err(refusal.with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE.as_u16()))
}

/// Why a request without a whole body is refused.
fn no_body(why: NoBody) -> Refusal {
    match why {
        NoBody::TooLarge => Refusal::too_large(),
        NoBody::TooLate => Refusal::too_slow(),
        NoBody::Broken => Refusal::base(&Base::UNRECOGNIZED_BODY, &[]),
        NoBody::NoHost => Refusal::base(&Base::HEADER_MISSING, &["Host"]),
    }
}

/// What a GET is answered. What a query puts into it is there for who may have it.
fn read(view: &View, caller: &Caller, found: &Match, query: &str) -> Result<Told, Refusal> {
    let query = Query::parse(query)?;
    let missing = || Refusal::not_found(&found.uri());
    let body = match found.route.resource {
        Resource::Metadata => Body::Xml(schema::metadata()),
        Resource::CsdlFile => Body::Xml(schema::csdl(found.id(0)).ok_or_else(missing)?),
        // JSON is YAML (YAML 1.2, section 1.2).
        Resource::OpenApiYaml => Body::Yaml(openapi::document().to_string()),
        _ => {
            let resource = service::render(view, found).ok_or_else(missing)?;
            let other = |uri: &str| {
                let found = routes::find(uri)?;
                caller.check(view, &found, Method::Get).ok()?;
                service::render(view, &found)
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
