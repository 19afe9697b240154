//! What a Redfish request is answered: the table of routes says what it leads to.

use crate::http::Asked;
use crate::manager::Manager;
use hyper::body::Bytes;
use hyper::{Response, StatusCode};
use std::sync::Arc;

/// Answers a request.
pub async fn answer(_manager: &Arc<Manager>, asked: Asked) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = match asked.body() {
        Ok(_) => StatusCode::NOT_FOUND,
        Err(why) => why.status(),
    };
    response
}
