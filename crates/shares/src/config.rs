//! What servers are told, in the form that each reads: smb.conf(5), ganesha-config(8).
//!
//! Invariant: a text that the server would read as something else than it is can't be written.

use std::fmt::{Display, Write};
use std::io;
use std::path::Path;

fn not_sayable(text: &str) -> io::Error {
    io::Error::other(format!("{text:?} can't stand in the configuration of a server"))
}

/// A configuration of Samba: sections of parameters.
#[derive(Default)]
pub struct Samba(String);

impl Samba {
    /// A section begins.
    ///
    /// # Errors
    /// It can't have this name.
    pub fn section(&mut self, name: &str) -> io::Result<()> {
        let has_others = |one: char| one.is_control() || "[]\\".contains(one);
        if name.is_empty() || name.trim() != name || name.contains(has_others) {
            return Err(not_sayable(name));
        }
        // Writing to a `String` can't fail.
        let _ = writeln!(self.0, "[{name}]");
        Ok(())
    }

    /// A parameter of the section.
    ///
    /// # Errors
    /// It can't have this value.
    pub fn set(&mut self, name: &str, value: impl Display) -> io::Result<()> {
        let value = value.to_string();
        // `%` is replaced by something (smb.conf(5), "VARIABLE SUBSTITUTIONS"); `\` at the end
        // makes the next line one with this; quotes are taken away.
        let has_others = |one: char| one.is_control() || "%\\\"".contains(one);
        if value.trim() != value || value.contains(has_others) {
            return Err(not_sayable(&value));
        }
        let _ = writeln!(self.0, "    {name} = {value}");
        Ok(())
    }

    /// A parameter whose value is a path.
    ///
    /// # Errors
    /// It can't have this value.
    pub fn set_path(&mut self, name: &str, path: &Path) -> io::Result<()> {
        self.set(name, path_text(path)?)
    }

    /// The file.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// A configuration of NFS-Ganesha: blocks of parameters, and of blocks.
#[derive(Default)]
pub struct Ganesha {
    text: String,
    depth: usize,
}

impl Ganesha {
    /// A block, with what is in it.
    ///
    /// # Errors
    /// What writing it gives.
    pub fn block(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        self.line(format_args!("{name} {{"));
        self.depth += 1;
        fill(self)?;
        self.depth -= 1;
        self.line(format_args!("}}"));
        Ok(())
    }

    /// A parameter whose value is a word of Ganesha's, a number, or addresses.
    ///
    /// # Errors
    /// It can't have this value.
    pub fn set(&mut self, name: &str, value: impl Display) -> io::Result<()> {
        let value = value.to_string();
        let is_plain = |one: char| one.is_ascii_alphanumeric() || "_.:/, ".contains(one);
        if value.is_empty() || !value.chars().all(is_plain) {
            return Err(not_sayable(&value));
        }
        self.line(format_args!("{name} = {value};"));
        Ok(())
    }

    /// A parameter whose value is a text.
    ///
    /// # Errors
    /// It can't have this value.
    pub fn set_text(&mut self, name: &str, value: &str) -> io::Result<()> {
        let has_others = |one: char| one.is_control() || "\"\\$".contains(one);
        if value.contains(has_others) {
            return Err(not_sayable(value));
        }
        self.line(format_args!("{name} = \"{value}\";"));
        Ok(())
    }

    /// A parameter whose value is a path.
    ///
    /// # Errors
    /// It can't have this value.
    pub fn set_path(&mut self, name: &str, path: &Path) -> io::Result<()> {
        self.set_text(name, path_text(path)?)
    }

    fn line(&mut self, line: impl Display) {
        let _ = writeln!(self.text, "{:indent$}{line}", "", indent = 4 * self.depth);
    }

    /// The file.
    pub fn text(&self) -> &str {
        &self.text
    }
}

fn path_text(path: &Path) -> io::Result<&str> {
    path.to_str().ok_or_else(|| not_sayable(&path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samba_reads_what_is_meant() {
        let mut own = Samba::default();
        own.section("größe 1").expect("a name");
        own.set("path", "/srv/a b;c#d").expect("a value");
        assert_eq!(own.text(), "[größe 1]\n    path = /srv/a b;c#d\n");
        for wrong in ["", "a]", "[a", " a", "a\n", "a\\"] {
            own.section(wrong).expect_err(wrong);
        }
        for wrong in [" a", "a%u", "a\\", "a\nb = c", "\"a\"", "a\t"] {
            own.set("path", wrong).expect_err(wrong);
        }
    }

    #[test]
    fn ganesha_reads_what_is_meant() {
        let mut own = Ganesha::default();
        let filled = own.block("EXPORT", |own| {
            own.set_text("Pseudo", "/größe 1")?;
            own.block("CLIENT", |own| own.set("Clients", "10.0.0.0/8, fd00::/64"))
        });
        filled.expect("written");
        let text = "EXPORT {\n    Pseudo = \"/größe 1\";\n    CLIENT {\n        \
                    Clients = 10.0.0.0/8, fd00::/64;\n    }\n}\n";
        assert_eq!(own.text(), text);
        for wrong in ["", "a;", "a\"", "{", "a\n", "größe"] {
            own.set("Path", wrong).expect_err(wrong);
        }
        for wrong in ["a\"", "a\\", "a\n", "$a"] {
            own.set_text("Path", wrong).expect_err(wrong);
        }
    }
}
