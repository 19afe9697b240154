//! NVMe qualified names of hosts and subsystems.
//!
//! Base, section 4.5 (NVMe Qualified Names): at most 223 bytes of UTF-8, ended by a zero byte where
//! a structure holds one. The two forms are `nqn.yyyy-mm.reverse.domain:string` and
//! `nqn.2014-08.org.nvmexpress:uuid:…`; hosts are not held to more than the begin.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;
use thiserror::Error;

/// Most bytes of a name.
pub const NAME_MOST: usize = 223;
/// Bytes of the field that holds one.
pub const FIELD: usize = 256;

/// The name of the discovery service that every host knows (Base, section 4.5).
pub const DISCOVERY: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// A name that is possible.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Nqn(String);

/// Why a name is not possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum NameError {
    /// It has no bytes.
    #[error("it is empty")]
    Empty,
    /// It has more bytes than a name may have, or no zero byte ends it.
    #[error("it is longer than 223 bytes, or not ended by a zero byte")]
    Long,
    /// It is not UTF-8, or has control characters in it.
    #[error("it has characters that can't be printed")]
    Text,
    /// It begins otherwise.
    #[error("it does not begin with nqn.YYYY-MM.")]
    Form,
}

impl Nqn {
    /// A name, if it is possible.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(name: &str) -> Result<Self, NameError> {
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if name.len() > NAME_MOST {
            return Err(NameError::Long);
        }
        if name.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(NameError::Text);
        }
        let dated = name.strip_prefix("nqn.").is_some_and(|rest| {
            let form = b"0000-00.";
            let begin = rest.as_bytes().get(..form.len());
            begin.is_some_and(|b| {
                b.iter().zip(form).all(|(b, f)| match f {
                    b'0' => b.is_ascii_digit(),
                    _ => b == f,
                })
            })
        });
        if dated { Ok(Self(name.to_owned())) } else { Err(NameError::Form) }
    }

    /// Reads a field; what lies behind the zero byte means nothing.
    ///
    /// # Errors
    /// What is wrong with the name.
    pub fn decode(field: &[u8; FIELD]) -> Result<Self, NameError> {
        let end = field.iter().position(|b| *b == 0).ok_or(NameError::Long)?;
        let name = core::str::from_utf8(&field[..end]).map_err(|_| NameError::Text)?;
        Self::new(name)
    }

    /// Writes a field.
    pub fn encode(&self) -> [u8; FIELD] {
        let mut field = [0; FIELD];
        field[..self.0.len()].copy_from_slice(self.0.as_bytes());
        field
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Nqn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;

    const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:0f01fb42-9f7f-4856-b0b3-51e60b8de349";

    #[test]
    fn names_are_read_as_they_were_written() {
        for name in [HOST, DISCOVERY, "nqn.2016-06.io.spdk:cnode1", "nqn.2026-11.example:ä"] {
            let nqn = Nqn::new(name).unwrap();
            assert_eq!(Nqn::decode(&nqn.encode()), Ok(nqn.clone()));
            assert_eq!(nqn.to_string(), name);
        }
        let longest = format!("nqn.2026-11.{}", "x".repeat(NAME_MOST - 12));
        assert_eq!(Nqn::decode(&Nqn::new(&longest).unwrap().encode()).unwrap().as_str(), longest);
        assert_eq!(Nqn::new(&(longest + "x")), Err(NameError::Long));
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let empty = [("", NameError::Empty), ("nqn.2026-11.a b", NameError::Text)];
        let forms = ["nqn.", "iqn.2026-11.a", "nqn.26-11.a", "nqn.2026-1", "nqn.2026-111a"];
        let all = empty.into_iter().chain(forms.map(|form| (form, NameError::Form)));
        for (name, error) in all {
            assert_eq!(Nqn::new(name), Err(error), "{name}");
        }
    }

    /// CVE-2023-6121: a name that no zero byte ends was read on into what lay behind it.
    #[test]
    fn a_name_without_an_end_is_refused() {
        let mut field = [b'x'; FIELD];
        field[..12].copy_from_slice(b"nqn.2026-11.");
        assert_eq!(Nqn::decode(&field), Err(NameError::Long));
        field[FIELD - 1] = 0;
        assert_eq!(Nqn::decode(&field), Err(NameError::Long), "255 bytes are too many");
        field[NAME_MOST] = 0;
        assert!(Nqn::decode(&field).is_ok());
        field[20] = 0xff;
        assert_eq!(Nqn::decode(&field), Err(NameError::Text));
    }
}
