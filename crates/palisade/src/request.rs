//! `palisade api`: any request, and its answer as it is.

use crate::client::{Asked, Client};
use crate::output::{Problem, harmless, json};
use clap_complete::engine::ArgValueCompleter;
use http_body_util::BodyExt;
use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Response};
use redfish::messages as say;
use redfish::told::{CONFIRM_HEADER, PLAN_HEADER, Planned};
use serde_json::Value;
use std::io::{IsTerminal, Read, Write};

/// What the paths of resources begin with.
const ROOT: &str = "/redfish/v1";

/// What else there is.
const OTHERS: [&str; 2] = ["/redfish", "/metrics"];

/// Streams have it as their type.
const STREAM: &str = "text/event-stream";

/// What `api` takes.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// GET, HEAD, POST, PATCH, PUT or DELETE
    method: String,
    /// Path and query, such as Systems/local or '/redfish/v1/Chassis?$expand=.'
    #[arg(add = ArgValueCompleter::new(crate::complete::paths))]
    path: String,
    /// JSON: as it is, @FILE, or - for the standard input
    body: Option<String>,
    /// Print status and headers, too
    #[arg(long)]
    include: bool,
    /// Ask what the change would do, and change nothing
    #[arg(long, visible_alias = "dry-run", conflicts_with_all = ["confirm", "yes"])]
    plan: bool,
    /// Confirm a change by the token of its plan
    #[arg(long, value_name = "TOKEN")]
    confirm: Option<String>,
    /// Confirm a change, whatever its plan says
    #[arg(long, conflicts_with = "confirm")]
    yes: bool,
    /// Change only what still has this ETag
    #[arg(long, value_name = "ETAG")]
    if_match: Option<String>,
}

/// Sends a request and prints its answer; what is no success is an error, too.
pub async fn run(arguments: &Arguments, client: &Client) -> Result<(), Problem> {
    let mut asked = asked(arguments)?;
    if arguments.yes
        && let Some(token) = token(&asked, client).await?
    {
        asked = asked.with(CONFIRM_HEADER, token);
    }
    let opened = client.open(&asked).await?;
    let (head, mut body) = opened.answer.into_parts();
    if arguments.include {
        let mut text = format!("{:?} {}\n", head.version, head.status);
        for (name, value) in &head.headers {
            text.push_str(&format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())));
        }
        print(format!("{text}\n").as_bytes());
    }
    let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let broken = |error: hyper::Error| crate::client::broken(&error.to_string());
    if kind.is_some_and(|kind| kind.starts_with(STREAM)) && head.status.is_success() {
        while let Some(frame) = body.frame().await {
            if let Ok(bytes) = frame.map_err(broken)?.into_data()
                && !print(&bytes)
            {
                break;
            }
        }
        return Ok(());
    }
    let answer = client.whole(Response::from_parts(head, body)).await?;
    print(&pretty(answer.body()));
    match answer.status().is_success() {
        true => Ok(()),
        // What is no JSON is printed as it is; as an error it says no more.
        false => client.understood(answer).map(|_| ()),
    }
}

/// The token of a change's plan. What can't be planned has none: the request itself is told why.
async fn token(asked: &Asked, client: &Client) -> Result<Option<String>, Problem> {
    if [Method::GET, Method::HEAD].contains(&asked.method) {
        return Ok(None);
    }
    let answer = client.send(&asked.clone().with(PLAN_HEADER, "only")).await?;
    let told = serde_json::from_slice::<Planned>(answer.body());
    Ok(told.ok().filter(|_| answer.status().is_success()).map(|planned| planned.token))
}

fn asked(arguments: &Arguments) -> Result<Asked, Problem> {
    let Arguments { method, path, .. } = arguments;
    let wrong = |why: &dyn core::fmt::Display| {
        Problem::new(&say::REQUEST_WRONG, &[&format!("{method} {path}"), why])
    };
    let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes());
    let mut asked = Asked::new(method.map_err(|error| wrong(&error))?, uri(path));
    if let Some(body) = &arguments.body {
        let text = match body.strip_prefix('@') {
            Some(file) => std::fs::read_to_string(file).map_err(|error| wrong(&error))?,
            None if body == "-" => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).map_err(|error| wrong(&error))?;
                text
            }
            None => body.clone(),
        };
        // Sent as it is written: what is doubled in it is the daemon's to find.
        serde_json::from_str::<Value>(&text).map_err(|error| wrong(&error))?;
        asked.body = Some(text);
    }
    if arguments.plan {
        asked = asked.with(PLAN_HEADER, "only");
    }
    if let Some(token) = &arguments.confirm {
        asked = asked.with(CONFIRM_HEADER, token.as_str());
    }
    if let Some(tag) = &arguments.if_match {
        asked = asked.with("if-match", tag.as_str());
    }
    Ok(asked)
}

/// The path that is meant. What can't stand in one is encoded.
fn uri(path: &str) -> String {
    let is_whole = OTHERS.iter().any(|other| {
        path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
    });
    let slash = if path.starts_with(['/', '?']) || path.is_empty() { "" } else { "/" };
    let path = if is_whole { path.to_owned() } else { format!("{ROOT}{slash}{path}") };
    let mut whole = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'!'..=b'~' if !b"\"<>\\^`{|}#".contains(&byte) => whole.push(char::from(byte)),
            other => whole.push_str(&format!("%{other:02X}")),
        }
    }
    whole
}

/// JSON as people read it; anything else as it is.
fn pretty(bytes: &Bytes) -> Vec<u8> {
    let value = serde_json::from_slice::<Value>(bytes).ok();
    let text = value.and_then(|value| serde_json::to_string_pretty(&value).ok());
    match text {
        Some(text) => format!("{}\n", json(&text)).into_bytes(),
        None => bytes.to_vec(),
    }
}

/// Whether somebody reads it. A terminal is not sent what does something to it.
fn print(bytes: &[u8]) -> bool {
    let mut out = std::io::stdout().lock();
    let shown = out.is_terminal().then(|| harmless(&String::from_utf8_lossy(bytes)));
    out.write_all(shown.as_deref().map_or(bytes, str::as_bytes)).and_then(|()| out.flush()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_resources_unless_they_say_otherwise() {
        for (path, whole) in [
            ("", "/redfish/v1"),
            ("/", "/redfish/v1/"),
            ("Systems/local", "/redfish/v1/Systems/local"),
            ("/Systems", "/redfish/v1/Systems"),
            ("?$expand=.", "/redfish/v1?$expand=."),
            ("/redfish", "/redfish"),
            ("/redfish/v1/Chassis", "/redfish/v1/Chassis"),
            ("/metrics", "/metrics"),
            ("/metricsX", "/redfish/v1/metricsX"),
            ("X?$filter=Name eq 'ä'", "/redfish/v1/X?$filter=Name%20eq%20'%C3%A4'"),
            ("a%20b", "/redfish/v1/a%20b"),
        ] {
            assert_eq!(uri(path), whole, "{path}");
        }
    }

    #[test]
    fn json_is_printed_for_people_and_the_rest_as_it_is() {
        assert_eq!(pretty(&Bytes::from("{\"A\":1}")), b"{\n  \"A\": 1\n}\n");
        assert_eq!(pretty(&Bytes::from("<a/>")), b"<a/>");
        assert_eq!(pretty(&Bytes::new()), b"");
    }
}
