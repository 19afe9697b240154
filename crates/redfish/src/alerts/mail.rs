//! How a mail says what is told: its subject and its text.
//!
//! Invariant: a subject is one line, whatever names arrays and drives have.

use super::{Letter, News, Told};
use crate::dates;
use crate::view::Health;

/// The most characters of a subject.
const SUBJECT: usize = 160;

/// How many alerts a mail tells with all that is known of them; of more a line each.
const WHOLE: usize = 10;

/// One line, of what may be several.
fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn word(told: &Told) -> &'static str {
    match (told.news, told.alert.severity) {
        (News::Cleared, _) => "CLEARED",
        (News::Stands, Health::Critical) => "STILL CRITICAL",
        (News::Stands, _) => "STILL WARNING",
        (_, Health::Critical) => "CRITICAL",
        (_, _) => "WARNING",
    }
}

fn tagged(host: &str, rest: &str) -> String {
    let host = if host.is_empty() { String::new() } else { format!(" {}", line(host)) };
    let subject = format!("[palisade{host}] {}", line(rest));
    match subject.char_indices().nth(SUBJECT) {
        Some((at, _)) => format!("{}…", subject.get(..at).unwrap_or_default()),
        None => subject,
    }
}

/// The subject of a letter from a machine.
pub fn subject(host: &str, letter: &Letter) -> String {
    if let ([told], 0) = (&letter.told[..], letter.left_out) {
        return tagged(host, &format!("{}: {}", word(told), told.alert.what));
    }
    if letter.told.is_empty() {
        return tagged(host, &format!("{} messages were left out", letter.left_out));
    }
    let count = |is_it: &dyn Fn(&Told) -> bool| letter.told.iter().filter(|one| is_it(one)).count();
    let is_over = |one: &Told| one.news == News::Cleared;
    let critical = count(&|one| !is_over(one) && one.alert.severity == Health::Critical);
    let warning = count(&|one| !is_over(one) && one.alert.severity != Health::Critical);
    let all = (letter.told.len() as u64).saturating_add(letter.left_out);
    let rest = format!(
        "{all} messages: {critical} critical, {warning} warning, {} cleared",
        count(&is_over)
    );
    tagged(host, &rest)
}

/// The text of a letter.
pub fn text(host: &str, letter: &Letter) -> String {
    let mut text = String::new();
    for (at, told) in letter.told.iter().enumerate() {
        match at < WHOLE {
            true => whole(host, told, &mut text),
            false => text.push_str(&format!(
                "{}  {}: {}\n",
                dates::text(told.at),
                word(told),
                line(&told.alert.what)
            )),
        }
    }
    if letter.left_out > 0 {
        let more = format!("{} more messages came and were left out.\n", letter.left_out);
        text.push_str(&more);
    }
    text.push_str(
        "\nWhat stands now: palisade alert list\nTo have an alert rest: palisade alert ack ID\n",
    );
    text
}

fn whole(host: &str, told: &Told, text: &mut String) {
    let alert = &told.alert;
    let mut put = |name: &str, value: &str| {
        text.push_str(&format!("{:<12}{}\n", format!("{name}:"), line(value)));
    };
    put(word(told), &alert.what);
    if told.news != News::Cleared {
        put("Do", &alert.action);
    }
    put("Since", &dates::text(alert.raised));
    if told.news == News::Cleared {
        put("Over", &dates::text(told.at));
    }
    put("Alert", &alert.id);
    put("Of", &alert.name);
    put("Machine", host);
    put("Resource", &alert.of);
    put("More", &format!("palisade explain {}", alert.message));
    text.push('\n');
}

/// The subject of a mail that somebody sends to try whether mail arrives.
pub fn test_subject(host: &str) -> String {
    tagged(host, "TEST: mail of alerts arrives")
}

/// The text of that mail.
pub fn test_text(host: &str, who: &str) -> String {
    format!(
        "{} asked the daemon on {} to send this: palisade alert test\nNothing is wrong.\n",
        line(who),
        line(host)
    )
}

#[cfg(test)]
#[path = "mail_tests.rs"]
mod tests;
