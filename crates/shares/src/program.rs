//! Programs of others: run within a time, with what they said.

use std::io::{self, ErrorKind, Write};
use std::process::{Command, Stdio};

/// How long one may take that asks, or changes little; and longer ones.
pub const SOON: &str = "20";
/// How long one may take that makes a file system.
pub const LONG: &str = "600";
/// How long one may take that reads all of a file system's structure.
pub const CHECKS: &str = "86400";

/// What coreutils' `timeout` ends with if there is no such program, or if it took too long.
const NO_PROGRAM: i32 = 127;
const TOO_LONG: &[i32] = &[124, 137];

/// A program, and the package that has it.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// What it is called.
    pub name: &'static str,
    /// Where it is from.
    pub package: &'static str,
}

/// What a program said.
#[derive(Debug)]
pub struct Said {
    /// What it ended with.
    pub code: i32,
    /// What it said.
    pub out: String,
    /// What went wrong.
    pub error: String,
}

impl Program {
    /// The program, with what is added to it, and at most so many seconds.
    pub fn command(self, limit: &str) -> Command {
        let mut command = Command::new("timeout");
        command.args(["-k", "1", limit, self.name]).env("LC_ALL", "C");
        command
    }

    /// Runs it, with an input.
    ///
    /// # Errors
    /// It can't be run, or took too long.
    pub fn run(self, command: &mut Command, input: &[u8]) -> io::Result<Said> {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn()?;
        if let Some(mut pipe) = child.stdin.take() {
            // One that reads nothing may have ended.
            let _ = pipe.write_all(input);
        }
        let output = child.wait_with_output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, error) = (text(&output.stdout), text(&output.stderr));
        match output.status.code() {
            Some(NO_PROGRAM) => Err(self.missing()),
            Some(code) if !TOO_LONG.contains(&code) => Ok(Said { code, out, error }),
            _ => Err(io::Error::other(format!("{} has taken too long", self.name))),
        }
    }

    /// Runs it to do something.
    ///
    /// # Errors
    /// As [`Program::run`]; or it says that it failed.
    pub fn done(self, command: &mut Command, input: &[u8]) -> io::Result<String> {
        let said = self.run(command, input)?;
        if said.code == 0 { Ok(said.out) } else { Err(self.failed(&said)) }
    }

    /// That it failed, in its own words.
    pub fn failed(self, said: &Said) -> io::Error {
        let both = [said.error.trim(), said.out.trim()];
        let text = both.into_iter().find(|text| !text.is_empty()).unwrap_or("it failed");
        io::Error::other(format!("{}: {}", self.name, joined(text)))
    }

    /// That it is not there.
    pub fn missing(self) -> io::Error {
        let text = format!("there is no {}; install {}", self.name, self.package);
        io::Error::new(ErrorKind::NotFound, text)
    }
}

/// Lines as one.
pub fn joined(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SH: Program = Program { name: "sh", package: "dash" };

    #[test]
    fn what_a_program_says_is_known() {
        let mut sh = SH.command(SOON);
        let out = SH.done(sh.args(["-c", "tr a b"]), b"aha").expect("done");
        assert_eq!(out, "bhb");
        let mut sh = SH.command(SOON);
        let told = SH.done(sh.args(["-c", "echo one >&2; echo two >&2; exit 3"]), b"");
        assert_eq!(told.expect_err("failed").to_string(), "sh: one; two");
        let mut sh = SH.command("0.01");
        let told = SH.run(sh.args(["-c", "sleep 600"]), b"").expect_err("long").to_string();
        assert!(told.contains("too long"), "{told}");
        let none = Program { name: "palisade-no-such", package: "other" };
        let told = none.run(&mut none.command(SOON), b"").expect_err("missing");
        assert!(told.kind() == ErrorKind::NotFound && told.to_string().contains("install other"));
    }
}
