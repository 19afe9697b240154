//! Names of initiators and targets (RFC 7143, section 4.2.7): `iqn.`, `eui.` and `naa.`.
//!
//! They are what RFC 3722 makes of them: lower case, digits, `-`, `.` and `:`. Letters that are not
//! ASCII may stand in one as well; those of the form `iqn.` are compared as they are written here,
//! in lower case.

use core::fmt;
use thiserror::Error;

/// Most bytes of a name (RFC 7143, section 4.2.7.1).
pub const NAME_MOST: usize = 223;

/// A name that is possible.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Name(String);

/// Why a name is not possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum NameError {
    /// It has more bytes than a name may have.
    #[error("it is longer than 223 bytes")]
    Long,
    /// It has none of the three forms.
    #[error("it is not iqn.YYYY-MM.DOMAIN[:TEXT], eui. with 16 or naa. with 16 or 32 hex digits")]
    Form,
    /// It has others than lower-case letters, digits, `-`, `.` and `:`.
    #[error("it has characters other than letters, digits, '-', '.' and ':'")]
    Characters,
}

impl Name {
    /// A name, if it is possible; in lower case, as all names are compared.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let text = text.to_lowercase();
        if text.len() > NAME_MOST {
            return Err(NameError::Long);
        }
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_formed = match text.split_at_checked(4) {
            Some(("iqn.", rest)) => is_qualified(rest),
            Some(("eui.", rest)) => rest.len() == 16 && digits(rest),
            Some(("naa.", rest)) => [16, 32].contains(&rest.len()) && digits(rest),
            _ => false,
        };
        if !is_formed {
            return Err(NameError::Form);
        }
        let may_be = |one: char| one.is_alphanumeric() || ['-', '.', ':'].contains(&one);
        if text.chars().all(may_be) { Ok(Self(text)) } else { Err(NameError::Characters) }
    }

    /// A name of ours, which is one.
    pub(crate) fn of_ours(text: String) -> Self {
        Self(text)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether it is `YYYY-MM.DOMAIN[:TEXT]`.
fn is_qualified(text: &str) -> bool {
    let Some((date, rest)) = text.split_at_checked(8) else { return false };
    let is_date = date.bytes().zip(*b"0000-00.").all(|(byte, form)| match form {
        b'0' => byte.is_ascii_digit(),
        _ => byte == form,
    });
    let month = date.get(5..7).and_then(|month| month.parse().ok());
    let domain = rest.split(':').next().unwrap_or_default();
    is_date
        && month.is_some_and(|month| (1..=12).contains(&month))
        && domain.split('.').all(|label| !label.is_empty())
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_forms() {
        for good in [
            "iqn.1993-08.org.debian:01:abc",
            "iqn.1998-01.com.vmware:esx-1",
            "iqn.2001-04.com.example",
            "iqn.2001-04.example:",
            "eui.02004567A425678D",
            "naa.52004567BA64678D",
            "naa.62004567BA64678D0123456789ABCDEF",
        ] {
            assert_eq!(Name::new(good).map(|name| name.0), Ok(good.to_lowercase()));
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for (wrong, why) in [
            ("", NameError::Form),
            ("iqn", NameError::Form),
            ("iqn.", NameError::Form),
            ("iqn.2001-13.com.example", NameError::Form),
            ("iqn.2001-04.", NameError::Form),
            ("iqn.2001-04.a..b", NameError::Form),
            ("iqn.2001-4.com.example", NameError::Form),
            ("iqn.2001-04.com.example:a b", NameError::Characters),
            ("iqn.2001-04.com.example:a,b", NameError::Characters),
            ("iqn.2001-04.com.example:a\n", NameError::Characters),
            ("eui.0200", NameError::Form),
            ("naa.0200", NameError::Form),
            ("iqn.2001-04.com.example:/", NameError::Characters),
        ] {
            assert_eq!(Name::new(wrong), Err(why), "{wrong:?}");
        }
        let long = format!("iqn.2001-04.com.example:{}", "a".repeat(200));
        assert_eq!(Name::new(&long), Err(NameError::Long));
    }
}
