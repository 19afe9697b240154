//! What is shown again whenever it changes: by the daemon's events, or once a second where the
//! daemon has no stream of them.
//!
//! Where there is no stream, one is asked for again each [`SELDOM`].
//!
//! States: drawn → waiting, for an event, for the next second while a task goes on (its progress is
//! no event), or for [`SELDOM`] → drawn. A daemon that goes away is waited for.
//!
//! Invariants: a terminal is drawn in place, and shows what fits; elsewhere there is a block for
//! each change and none without one. Ctrl-C ends it well.

use crate::client::Client;
use crate::output::{Output, Problem, harmless, say};
use crate::overview;
use crate::sse::Stream;
use std::io::{IsTerminal, Write};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How often it is drawn where progress is to be seen, or no events come.
const OFTEN: Duration = Duration::from_secs(1);

/// How often it is drawn though nothing is known to have changed.
const SELDOM: Duration = Duration::from_secs(10);

/// Events that come within this time are shown together.
const TOGETHER: Duration = Duration::from_millis(100);

/// What is to be seen.
pub struct Drawn {
    /// It.
    pub text: String,
    /// Whether it changes with time alone.
    pub goes_on: bool,
}

/// Shows what is drawn, until Ctrl-C.
pub async fn watch(
    client: &Client,
    output: Output,
    draw: impl AsyncFn(Option<usize>) -> Result<Drawn, Problem>,
) -> Result<(), Problem> {
    tokio::select! {
        ended = shown(client, output, draw) => ended,
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

async fn shown(
    client: &Client,
    output: Output,
    draw: impl AsyncFn(Option<usize>) -> Result<Drawn, Problem>,
) -> Result<(), Problem> {
    // What happens from here on is an event of the stream, or is drawn first.
    let (mut stream, mut due) = (None, Instant::now());
    let mut screen = Screen::default();
    let mut is_first = true;
    loop {
        if stream.is_none() && due <= Instant::now() {
            due = Instant::now() + SELDOM;
            let opened = timeout(SELDOM, Stream::open(client, None)).await;
            stream = opened.ok().and_then(Result::ok).map(Stream::quiet);
        }
        let mut pause = if stream.is_some() { SELDOM } else { OFTEN };
        match draw(overview::screen(output)).await {
            Ok(drawn) => {
                if !screen.show(&drawn.text, output) {
                    return Ok(());
                }
                if drawn.goes_on {
                    pause = OFTEN;
                }
            }
            Err(problem) if is_first || problem.is_final() => return Err(problem),
            Err(problem) => {
                screen.complain(&problem.what());
                pause = OFTEN;
            }
        }
        is_first = false;
        let Some(events) = &mut stream else {
            sleep(pause).await;
            continue;
        };
        if let Ok(event) = timeout(pause, events.next()).await {
            event?;
            let more = async {
                loop {
                    events.next().await?;
                }
            };
            if let Ok(ended) = timeout(TOGETHER, more).await {
                return ended;
            }
        }
    }
}

/// What was shown last.
#[derive(Default)]
struct Screen {
    last: String,
    is_drawn: bool,
    complaint: String,
}

impl Screen {
    /// Whether somebody looks.
    fn show(&mut self, text: &str, output: Output) -> bool {
        self.complaint.clear();
        let out = std::io::stdout();
        if !output.json && out.is_terminal() {
            let rows = rustix::termios::tcgetwinsize(&out).map_or(0, |size| size.ws_row);
            let is_drawn = core::mem::replace(&mut self.is_drawn, true);
            let whole = in_place(&harmless(text), usize::from(rows), is_drawn);
            let mut out = out.lock();
            return out.write_all(whole.as_bytes()).and_then(|()| out.flush()).is_ok();
        }
        if self.last == text {
            return true;
        }
        let between = if self.last.is_empty() || output.json { "" } else { "\n" };
        text.clone_into(&mut self.last);
        say(&format!("{between}{text}"))
    }

    /// Says once what keeps it from being drawn.
    fn complain(&mut self, what: &str) {
        if self.complaint != what {
            what.clone_into(&mut self.complaint);
            eprintln!("palisade: {what}; waiting for the daemon");
        }
    }
}

/// What draws a text over the last one: to the top left, each line cleared to its end, and the rest
/// of the screen (ECMA-48: CUP, EL, ED). What does not fit is counted.
fn in_place(text: &str, rows: usize, is_drawn: bool) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let fit = if rows < 3 { lines.len() } else { rows - 1 };
    let mut whole = if is_drawn { "\x1b[H" } else { "\x1b[H\x1b[2J" }.to_owned();
    let shown = if lines.len() > fit { fit - 1 } else { lines.len() };
    for line in lines.iter().take(shown) {
        whole.push_str(line);
        whole.push_str("\x1b[K\n");
    }
    if shown < lines.len() {
        whole.push_str(&format!("… {} lines more\x1b[K\n", lines.len() - shown));
    }
    whole.push_str("\x1b[J");
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use redfish::messages::SESSION_ENDED;
    use std::cell::Cell;
    use tokio::io::AsyncWriteExt;
    use tokio::net::UnixListener;

    #[test]
    fn a_terminal_is_drawn_in_place_and_shows_what_fits() {
        assert_eq!(in_place("a\nb", 24, true), "\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J");
        assert!(in_place("a", 24, false).starts_with("\x1b[H\x1b[2Ja"));
        let text = in_place("a\nb\nc\nd\ne", 4, true);
        assert_eq!(text, "\x1b[Ha\x1b[K\nb\x1b[K\n… 3 lines more\x1b[K\n\x1b[J");
        assert!(in_place("a\nb\nc", 0, true).contains('c'), "nobody knows how much fits");
    }

    #[test]
    fn without_a_stream_it_is_drawn_once_a_second() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let drawn = Cell::new(0);
        runtime.expect("a runtime").block_on(async {
            let dir = tempfile::tempdir().expect("a directory");
            let socket = dir.path().join("socket");
            let listener = UnixListener::bind(&socket).expect("bound");
            let daemon = async {
                let (mut stream, _) = listener.accept().await.expect("comes");
                let none = b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}";
                stream.write_all(none).await.expect("written");
                core::future::pending::<()>().await;
            };
            let draw = async |_| {
                drawn.set(drawn.get() + 1);
                match drawn.get() {
                    1 | 2 => Ok(Drawn { text: String::new(), goes_on: false }),
                    _ => Err(Problem::new(&SESSION_ENDED, &[&"here"])),
                }
            };
            let client = Client::new(socket);
            let begun = Instant::now();
            tokio::select! {
                ended = shown(&client, Output { json: false }, draw) => {
                    assert!(ended.is_err_and(|problem| problem.is(&SESSION_ENDED)));
                }
                () = daemon => {}
            }
            assert!(begun.elapsed() >= 2 * OFTEN, "as often as that, and not more often");
        });
        assert_eq!(drawn.get(), 3);
    }
}
