//! The daemon's stream of events: server-sent events (WHATWG HTML, "Server-sent events"; DSP0266,
//! "Server-sent events"), which goes on where it was when its connection breaks.
//!
//! States of a stream: to be opened → open → broken, when its connection ends or nothing comes for
//! [`SILENCE`] → to be opened again, from where it was on (`Last-Event-ID`), after a pause.
//!
//! Invariant: the daemon is not asked without a pause, whatever it answers: from one time to the
//! next at least twice as long, up to [`SELDOM`], until a stream lasts longer than that.

use crate::client::{Asked, Client, Opened};
use crate::output::Problem;
use http_body_util::BodyExt;
use redfish::service::uri;
use serde_json::Value;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// How long a stream may be silent: the daemon sends something every 15 s.
const SILENCE: Duration = Duration::from_secs(45);

/// How long after it was opened a stream is opened again at the soonest.
const AGAIN: Duration = Duration::from_millis(500);

/// The same after many times.
const SELDOM: Duration = Duration::from_secs(30);

/// No event is larger.
const MOST_BYTES: usize = 4 << 20;

/// What came; without data it only says where the stream is.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Message {
    id: Option<String>,
    data: String,
}

/// Takes a stream apart.
#[derive(Debug, Default)]
struct Parser {
    line: Vec<u8>,
    /// The last byte ended a line and was a carriage return: a line feed after it is part of it.
    has_returned: bool,
    id: Option<String>,
    data: String,
    bytes: usize,
}

impl Parser {
    /// What is whole by now.
    fn feed(&mut self, bytes: &[u8]) -> Vec<Message> {
        let mut found = Vec::new();
        for byte in bytes {
            match byte {
                b'\n' if self.has_returned => self.has_returned = false,
                b'\n' | b'\r' => {
                    self.has_returned = *byte == b'\r';
                    found.extend(self.end_line());
                }
                other => {
                    self.has_returned = false;
                    self.bytes += 1;
                    // What is too large is left out.
                    if self.bytes <= MOST_BYTES {
                        self.line.push(*other);
                    }
                }
            }
        }
        found
    }

    fn end_line(&mut self) -> Option<Message> {
        let line = String::from_utf8_lossy(&core::mem::take(&mut self.line)).into_owned();
        if line.is_empty() {
            let (id, mut data) = (self.id.take(), core::mem::take(&mut self.data));
            let is_whole = core::mem::take(&mut self.bytes) <= MOST_BYTES;
            data.truncate(data.trim_end_matches('\n').len());
            let says = id.is_some() || !data.is_empty();
            return (says && is_whole).then_some(Message { id, data });
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                self.data.push_str(value);
                self.data.push('\n');
            }
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            _ => {}
        }
        None
    }
}

/// The events from now on.
pub struct Stream<'a> {
    client: &'a Client,
    uri: String,
    last: Option<String>,
    open: Option<Opened>,
    parser: Parser,
    ready: VecDeque<Message>,
    has_told: bool,
    is_quiet: bool,
    pause: Duration,
    /// It is not opened again before.
    due: Instant,
}

impl<'a> Stream<'a> {
    /// Opens it; a filter is one of DSP0266's.
    pub async fn open(client: &'a Client, filter: Option<&str>) -> Result<Self, Problem> {
        let filter = filter.map(|filter| format!("?$filter={}", redfish::routes::encoded(filter)));
        let uri = format!("{}{}", uri::EVENT_STREAM, filter.unwrap_or_default());
        let mut stream = Self {
            client,
            uri,
            last: None,
            open: None,
            parser: Parser::default(),
            ready: VecDeque::new(),
            has_told: false,
            is_quiet: false,
            pause: AGAIN,
            due: Instant::now() + AGAIN,
        };
        stream.open = Some(stream.opened().await?);
        Ok(stream)
    }

    /// The same, which does not say that it waits for the daemon.
    pub fn quiet(self) -> Self {
        Self { is_quiet: true, ..self }
    }

    async fn opened(&self) -> Result<Opened, Problem> {
        let asked = Asked::get(&*self.uri).with("accept", "text/event-stream");
        self.client
            .open_stream(&match &self.last {
                Some(last) => asked.with("last-event-id", last.as_str()),
                None => asked,
            })
            .await
    }

    /// The next event, whenever it comes. Nothing is lost where this is given up half-way.
    ///
    /// # Errors
    /// The session has ended, or the daemon does not let this client in any more.
    pub async fn next(&mut self) -> Result<Value, Problem> {
        loop {
            while let Some(message) = self.ready.pop_front() {
                if message.id.is_some() {
                    self.last = message.id;
                }
                if let Ok(event) = serde_json::from_str(&message.data) {
                    return Ok(event);
                }
            }
            let Some(open) = &mut self.open else {
                sleep_until(self.due).await;
                self.reopen().await?;
                continue;
            };
            let bytes = match timeout(SILENCE, open.answer.body_mut().frame()).await {
                Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
                Ok(None | Some(Err(_))) | Err(_) => {
                    // What is not whole comes again.
                    (self.open, self.parser) = (None, Parser::default());
                    if self.due <= Instant::now() {
                        self.pause = AGAIN;
                    }
                    continue;
                }
            };
            self.ready.extend(self.parser.feed(&bytes));
        }
    }

    async fn reopen(&mut self) -> Result<(), Problem> {
        self.due = Instant::now() + self.pause;
        self.pause = (2 * self.pause).min(SELDOM);
        match self.opened().await {
            Ok(opened) => (self.open, self.has_told) = (Some(opened), false),
            Err(problem) if problem.is_final() => return Err(problem),
            Err(problem) => {
                if !core::mem::replace(&mut self.has_told, true) && !self.is_quiet {
                    eprintln!("palisade: {}; waiting for the daemon", problem.what());
                }
                let asked = problem.after().min(SELDOM);
                self.due = self.due.max(Instant::now() + asked);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixListener;

    /// What a stream holds, whatever the parts in which it comes.
    fn parsed(text: &str) -> Vec<(Option<String>, String)> {
        let whole = Parser::default().feed(text.as_bytes());
        for size in 1..text.len() {
            let mut parser = Parser::default();
            let parts = text.as_bytes().chunks(size).flat_map(|part| parser.feed(part));
            assert_eq!(parts.collect::<Vec<_>>(), whole, "parts of {size}");
        }
        whole.into_iter().map(|message| (message.id, message.data)).collect()
    }

    #[test]
    fn events_are_taken_apart_whatever_ends_their_lines() {
        let id = |id: &str| Some(id.to_owned());
        let text = ": hello\n\nid: 7\ndata: {\"A\":\ndata: 1}\n\nevent: x\ndata:two\n\nid: 9\n\n";
        let all = vec![
            (id("7"), "{\"A\":\n1}".to_owned()),
            (None, "two".to_owned()),
            (id("9"), String::new()),
        ];
        assert_eq!(parsed(text), all);
        assert_eq!(parsed(&text.replace('\n', "\r\n")), all);
        assert_eq!(parsed(&text.replace('\n', "\r")), all);
        assert_eq!(parsed("data: not whole\n"), Vec::new());
    }

    #[test]
    fn what_is_too_large_is_left_out_and_the_next_is_not() {
        let text = format!("data: {}\n\ndata: 1\n\n", "x".repeat(MOST_BYTES + 1));
        let found = Parser::default().feed(text.as_bytes());
        assert_eq!(found, [Message { id: None, data: "1".to_owned() }]);
    }

    #[test]
    fn a_stream_goes_on_where_it_was_and_is_not_asked_for_without_a_pause() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let dir = tempfile::tempdir().expect("a directory");
            let socket = dir.path().join("socket");
            let listener = UnixListener::bind(&socket).expect("bound");
            let parts = [":\nid: 7\n\n", "", "data: {\"A\":1}\n\n"];
            let daemon = async {
                let (mut asked, mut bytes) = (Vec::new(), [0; 4096]);
                for part in parts {
                    let (mut stream, _) = listener.accept().await.expect("comes");
                    let read = stream.read(&mut bytes).await.expect("reads");
                    asked.push(String::from_utf8_lossy(&bytes[..read]).to_lowercase());
                    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
                    stream.write_all(format!("{head}{part}").as_bytes()).await.expect("written");
                }
                asked
            };
            let client = Client::new(socket);
            let begun = Instant::now();
            let told = async {
                let mut stream = Stream::open(&client, None).await.expect("opens");
                stream.next().await.expect("an event")
            };
            let (asked, told) = tokio::join!(daemon, told);
            assert_eq!(told, serde_json::json!({ "A": 1 }));
            assert!(begun.elapsed() >= 2 * AGAIN, "{:?}", begun.elapsed());
            assert!(!asked[0].contains("last-event-id"), "{asked:?}");
            for again in &asked[1..] {
                assert!(again.contains("last-event-id: 7\r\n"), "a part without data has it");
            }
        });
    }
}
