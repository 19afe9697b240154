//! CHAP (RFC 7143, section 12.1.3; RFC 1994): who an initiator is, by a secret that both know.

use crate::keys;
use core::fmt;
use md5::{Digest, Md5};
use thiserror::Error;

/// Bytes of a secret that all initiators and targets take: Windows' are 12 to 16 (RFC 7143, section
/// 9.2.1 has 96 bits at least).
const BYTES: core::ops::RangeInclusive<usize> = 12..=16;

/// A secret; it is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Why a secret is not possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum WrongSecret {
    /// It is too short or too long.
    #[error("it has not 12 to 16 characters")]
    Length,
    /// It has characters that not every initiator can be given.
    #[error("it has characters other than letters, digits and punctuation of ASCII")]
    Characters,
}

impl Secret {
    /// A secret, if it is possible.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(text: &str) -> Result<Self, WrongSecret> {
        if !BYTES.contains(&text.chars().count()) {
            return Err(WrongSecret::Length);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(WrongSecret::Characters);
        }
        Ok(Self(text.to_owned()))
    }

    /// The secret itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl Secret {
    /// What tells this secret from others, and not what it is: a digest behind some salt.
    pub fn mark(&self, salt: &str) -> String {
        let mut all = Md5::new();
        all.update(salt.as_bytes());
        all.update([0]);
        all.update(self.0.as_bytes());
        keys::digits(&all.finalize())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Who an initiator says that it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Account {
    user: String,
    secret: Secret,
}

/// A user's name is not possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("it has not 1 to 64 letters, digits and punctuation of ASCII, or has ',' or '=' in it")]
pub struct WrongUser;

impl Account {
    /// Of this user, if that may be its name.
    ///
    /// # Errors
    /// It may not.
    pub fn new(user: &str, secret: Secret) -> Result<Self, WrongUser> {
        let may_be = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b',' | b'=');
        match (1..=64).contains(&user.len()) && user.bytes().all(may_be) {
            true => Ok(Self { user: user.to_owned(), secret }),
            false => Err(WrongUser),
        }
    }

    /// The user's name.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// What proves it.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }
}

/// What answers a challenge with this number: MD5 of the number, the secret and the challenge (RFC
/// 1994, section 4.1).
pub fn response(number: u8, secret: &Secret, challenge: &[u8]) -> [u8; 16] {
    let mut all = Md5::new();
    all.update([number]);
    all.update(secret.0.as_bytes());
    all.update(challenge);
    all.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_what_all_take() {
        let secret = Secret::new("abcdefghijkl").expect("possible");
        assert_eq!((secret.expose(), &*format!("{secret:?}")), ("abcdefghijkl", "Secret(…)"));
        assert_eq!(Secret::new("abcdefghijk"), Err(WrongSecret::Length));
        assert_eq!(Secret::new("abcdefghijklmnopq"), Err(WrongSecret::Length));
        assert_eq!(Secret::new("abcdefghi jkl"), Err(WrongSecret::Characters));
        assert_eq!(Secret::new("äbcdefghijkl"), Err(WrongSecret::Characters));
    }

    #[test]
    fn a_mark_tells_secrets_apart_and_users_are_plain() {
        let [one, other] =
            ["abcdefghijkl", "abcdefghijkm"].map(|s| Secret::new(s).expect("possible"));
        assert_eq!(one.mark("a"), one.mark("a"));
        assert_ne!(one.mark("a"), other.mark("a"));
        assert_ne!(one.mark("a"), one.mark("b"));
        assert_eq!(Account::new("esx-1", one.clone()).expect("possible").user(), "esx-1");
        let long = "u".repeat(65);
        for wrong in ["", " a", "a ", "a,b", "a=b", "a\nb", "ä", &long] {
            assert_eq!(Account::new(wrong, one.clone()), Err(WrongUser), "{wrong:?}");
        }
    }

    #[test]
    fn an_answer_is_the_digest_of_all() {
        // By Python: hashlib.md5(b"\x07" + b"secretsecret" + bytes(range(16))).
        let challenge: Vec<u8> = (0..16).collect();
        let secret = Secret::new("secretsecret").expect("possible");
        let expected = "6ecf51cbe0f7ac32d9cd952f3fd639c0";
        let told: String =
            response(7, &secret, &challenge).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(told, expected);
    }
}
