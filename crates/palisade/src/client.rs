//! The daemon's client: JSON over HTTP/1.1 on its Unix socket, one connection a request.

use crate::output::Problem;
use control::api::{self, Answer};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tokio::net::UnixStream;

/// Where the daemon is asked. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
}

/// The socket that is meant: the argument, else `PALISADE_SOCKET`, else the default.
pub fn socket_or_default(argument: Option<PathBuf>) -> PathBuf {
    argument
        .or_else(|| std::env::var_os("PALISADE_SOCKET").map(PathBuf::from))
        .unwrap_or_else(|| api::DEFAULT_SOCKET.into())
}

/// A path's parts, quoted (RFC 3986, section 2.1) and joined behind the interface's prefix.
pub fn path(parts: &[&str]) -> String {
    let mut path = api::PREFIX.to_owned();
    for part in parts {
        path.push('/');
        for byte in part.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                path.push(char::from(byte));
            } else {
                path.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    path
}

impl Client {
    /// A client of the daemon behind this socket.
    pub fn new(socket: PathBuf) -> Self {
        Self { socket }
    }

    /// Asks for something.
    pub async fn get<T: DeserializeOwned>(&self, parts: &[&str]) -> Result<Answer<T>, Problem> {
        self.call(Method::GET, parts, None::<&()>).await
    }

    /// Asks for a change.
    pub async fn post<T: DeserializeOwned>(
        &self,
        parts: &[&str],
        body: &impl Serialize,
    ) -> Result<Answer<T>, Problem> {
        self.call(Method::POST, parts, Some(body)).await
    }

    /// Asks for an end.
    pub async fn delete<T: DeserializeOwned>(&self, parts: &[&str]) -> Result<Answer<T>, Problem> {
        self.call(Method::DELETE, parts, None::<&()>).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        parts: &[&str],
        body: Option<&impl Serialize>,
    ) -> Result<Answer<T>, Problem> {
        let body = match body {
            Some(body) => serde_json::to_vec(body).map_err(|e| broken(&e.to_string()))?,
            None => Vec::new(),
        };
        let stream = UnixStream::connect(&self.socket)
            .await
            .map_err(|error| not_connected(&self.socket, &error))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| broken(&error.to_string()))?;
        // Its errors are those of the request below.
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path(parts))
            .header("host", "palisade")
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| broken(&error.to_string()))?;
        let answer =
            sender.send_request(request).await.map_err(|error| broken(&error.to_string()))?;
        let ok = answer.status().is_success();
        let bytes = answer.into_body().collect().await;
        let bytes = bytes.map_err(|error| broken(&error.to_string()))?.to_bytes();
        if ok {
            return serde_json::from_slice(&bytes).map_err(|error| broken(&error.to_string()));
        }
        match serde_json::from_slice::<Answer<api::Error>>(&bytes) {
            Ok(error) => Err(error.body.into()),
            Err(_) => Err(broken("its answer is not valid")),
        }
    }
}

fn broken(what: &str) -> Problem {
    Problem::failed(
        format!("the daemon did not answer: {what}"),
        "read the daemon's log; daemon and command line must be of one release",
    )
}

fn not_connected(socket: &Path, error: &std::io::Error) -> Problem {
    let place = socket.display();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => Problem::no_daemon(
            format!("no daemon answers on {place}"),
            "start it with: palisade serve --config FILE; or name its socket with --socket PATH",
        ),
        ErrorKind::PermissionDenied => Problem::failed(
            format!("{place}: {error}"),
            "run as root, or as a member of the socket's group",
        ),
        _ => Problem::failed(
            format!("{place}: {error}"),
            "name the daemon's socket with --socket PATH",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_not_leave_their_part_of_the_path() {
        assert_eq!(path(&["arrays", "data", "stop"]), "/v1/arrays/data/stop");
        assert_eq!(path(&["arrays", "a/b c%"]), "/v1/arrays/a%2Fb%20c%25");
        assert_eq!(path(&["exports", "data:1"]), "/v1/exports/data%3A1");
    }
}
