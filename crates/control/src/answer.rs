//! What a Redfish request is answered (DSP0266): the table of routes says what it leads to.
//!
//! Reads are answered by what the daemon knows already ([`Manager::view`]): neither drives nor the
//! engine are asked. Changes are carried out by [`crate::change`].
//!
//! Invariant: whatever a client sends is answered, and nothing of it is taken for granted.

use crate::api::View;
use crate::change;
use crate::http::{Asked, NoBody};
use crate::manager::Manager;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::header::{LINK, LOCATION};
use hyper::{Response, StatusCode};
use redfish::error::{Base, Refusal};
use redfish::query::Query;
use redfish::routes::{self, Match, Method, Resource, Route};
use redfish::{schema, service};
use serde_json::Value;
use std::sync::Arc;

/// The version of OData, asked for and answered (DSP0266, "Headers").
const ODATA_VERSION: HeaderName = HeaderName::from_static("odata-version");

/// The only one that there is.
const VERSION: &str = "4.0";

/// What is answered.
pub enum Body {
    /// Nothing.
    Nothing,
    /// A resource, or what an action tells.
    Json(Value),
    /// A schema.
    Xml(String),
}

/// An answer that is no error.
pub struct Told {
    /// The status of HTTP.
    pub status: StatusCode,
    /// What was made.
    pub location: Option<String>,
    /// What is told.
    pub body: Body,
}

impl Told {
    /// There is nothing to tell.
    pub fn nothing() -> Self {
        Self { status: StatusCode::NO_CONTENT, location: None, body: Body::Nothing }
    }

    /// An object.
    pub fn json(value: Value) -> Self {
        Self { status: StatusCode::OK, location: None, body: Body::Json(value) }
    }
}

/// Answers a request.
pub async fn answer(manager: &Arc<Manager>, asked: Asked) -> Response<Bytes> {
    let found = routes::find(asked.uri().path());
    let route = found.as_ref().map(|found| found.route);
    let (mut response, is_told) = match told(manager, &asked, found).await {
        Ok(told) => (told_response(told), true),
        Err(refusal) => (refused(&refusal), false),
    };
    let headers = response.headers_mut();
    headers.insert(ODATA_VERSION, HeaderValue::from_static(VERSION));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Some(route) = route {
        put(headers, ALLOW, &route.allow());
        if let Some(schema) = schema_of(route).filter(|_| is_told) {
            put(headers, LINK, &format!("<{schema}>; rel=describedby"));
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
    let body = match asked.body() {
        Ok(body) => body,
        Err(why) => return Err(no_body(*why)),
    };
    let path = asked.uri().path();
    let found = found.ok_or_else(|| Refusal::not_found(path))?;
    let method = method(asked.method()).filter(|method| found.route.privilege(*method).is_some());
    let method = method.ok_or_else(Refusal::not_allowed)?;
    let wanted = asked.headers().get(ODATA_VERSION);
    if wanted.is_some_and(|wanted| wanted != VERSION) {
        return Err(Refusal::base(&Base::PRECONDITION_FAILED, &[]));
    }
    let query = asked.uri().query().unwrap_or_default();
    match method {
        Method::Get => read(&manager.view(), &found, query, path),
        _ => {
            if !query.is_empty() {
                return Err(Refusal::base(&Base::QUERY_NOT_ON_OPERATION, &[]));
            }
            check_type(asked.headers(), body)?;
            change::carry_out(manager, &found, method, asked.headers(), body).await
        }
    }
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
    let refusal = match why {
        NoBody::TooLarge => Refusal::too_large(),
        NoBody::TooLate | NoBody::Broken => Refusal::base(&Base::UNRECOGNIZED_BODY, &[]),
    };
    refusal.with_status(why.status().as_u16())
}

/// What a GET is answered.
fn read(view: &View, found: &Match, query: &str, path: &str) -> Result<Told, Refusal> {
    let query = Query::parse(query)?;
    let missing = || Refusal::not_found(path);
    let body = match found.route.resource {
        Resource::Metadata => Body::Xml(schema::metadata()),
        Resource::CsdlFile => Body::Xml(schema::csdl(found.id(0)).ok_or_else(missing)?),
        Resource::JsonSchemaText => Body::Json(schema::json(found.id(0)).ok_or_else(missing)?),
        _ => {
            let resource = service::render(view, found).ok_or_else(missing)?;
            let other = |uri: &str| service::render(view, &routes::find(uri)?);
            Body::Json(query.apply(resource, &other)?)
        }
    };
    Ok(Told { status: StatusCode::OK, location: None, body })
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

fn told_response(told: Told) -> Response<Bytes> {
    let (kind, body) = match told.body {
        Body::Nothing => (None, Bytes::new()),
        Body::Json(value) => (Some("application/json;charset=utf-8"), text(&value)),
        Body::Xml(text) => (Some("application/xml;charset=utf-8"), Bytes::from(text)),
    };
    let mut response = Response::new(body);
    *response.status_mut() = told.status;
    if let Some(kind) = kind {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    if let Some(location) = told.location {
        put(response.headers_mut(), LOCATION, &location);
    }
    response
}

fn refused(refusal: &Refusal) -> Response<Bytes> {
    let status = StatusCode::from_u16(refusal.status);
    let told = Told {
        status: status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        location: None,
        body: Body::Json(refusal.body()),
    };
    told_response(told)
}

/// JSON as bytes: of a value that is always possible.
fn text(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}

/// Adds a header. Its value is from our tables and identifiers in URIs: it can be one.
fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
