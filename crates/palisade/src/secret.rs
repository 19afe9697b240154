//! Passwords, read from who types them: a terminal does not show them.
//!
//! States of the terminal: as it was → silent (while a password is typed; Ctrl-C is a character
//! then) → as it was, whatever comes of it.

use crate::output::Problem;
use core::fmt::Display;
use redfish::messages;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};

/// What Ctrl-C and Ctrl-D are as characters.
const ENDS: [u8; 2] = [3, 4];

/// The longest line that is read.
const MOST_BYTES: u64 = 4096;

fn not_read(why: &dyn Display) -> Problem {
    Problem::new(&messages::PASSWORD_NOT_READ, &[&why])
}

/// The first line of the standard input.
pub fn from_stdin() -> Result<String, Problem> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MOST_BYTES).read_to_end(&mut bytes);
    read.map_err(|error| not_read(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| not_read(&"it is not UTF-8"))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// Asks once at the terminal.
pub fn ask(prompt: &str) -> Result<String, Problem> {
    Silent::open()?.ask(prompt)
}

/// Asks twice at the terminal.
pub fn ask_twice(prompt: &str) -> Result<String, Problem> {
    let mut terminal = Silent::open()?;
    let first = terminal.ask(prompt)?;
    same(first, &terminal.ask("once more: ")?)
}

fn same(first: String, second: &str) -> Result<String, Problem> {
    match first == second {
        true => Ok(first),
        false => Err(Problem::new(&messages::PASSWORDS_DIFFER, &[])),
    }
}

/// The terminal, silent until it is dropped.
struct Silent {
    terminal: File,
    before: Termios,
}

impl Silent {
    fn open() -> Result<Self, Problem> {
        let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty");
        let terminal = terminal.map_err(|_| not_read(&"there is no terminal to ask at"))?;
        let before = tcgetattr(&terminal).map_err(|error| not_read(&error))?;
        let mut silent = before.clone();
        silent.local_modes -=
            LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ISIG | LocalModes::ICANON;
        let set = tcsetattr(&terminal, OptionalActions::Flush, &silent);
        set.map_err(|error| not_read(&error))?;
        Ok(Self { terminal, before })
    }

    /// A line.
    fn ask(&mut self, prompt: &str) -> Result<String, Problem> {
        let told = self.terminal.write_all(prompt.as_bytes()).and_then(|()| self.line());
        let _ = self.terminal.write_all(b"\n");
        let line = told.map_err(|error| not_read(&error))?;
        let line = line.ok_or_else(|| not_read(&"it was not typed to its end"))?;
        String::from_utf8(line).map_err(|_| not_read(&"it is not UTF-8"))
    }

    /// What is typed up to the end of a line; none if somebody gave up.
    fn line(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let (mut line, mut byte) = (Vec::new(), [0]);
        loop {
            if self.terminal.read(&mut byte)? == 0 || line.len() as u64 >= MOST_BYTES {
                return Ok(None);
            }
            match byte {
                [b'\n' | b'\r'] => return Ok(Some(line)),
                [end] if ENDS.contains(&end) => return Ok(None),
                // Backspace takes a character back, of however many bytes.
                [8 | 127] => while line.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
                [other] => line.push(other),
            }
        }
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        // A terminal that has gone needs nothing.
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_that_differ_are_refused() {
        assert_eq!(same("a".to_owned(), "a"), Ok("a".to_owned()));
        let differ = Problem::new(&messages::PASSWORDS_DIFFER, &[]);
        assert_eq!(same("a".to_owned(), "b"), Err(differ));
    }
}
