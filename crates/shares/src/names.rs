//! What shares and their users are called, and which addresses clients have: as texts that every
//! server takes as they are.
//!
//! A name of a share stands in smb.conf(5), where `%`, `;`, `"` and brackets mean something, in the
//! configuration of NFS-Ganesha, in URLs, and in a file system. It has letters and digits of any
//! script, `-`, `_`, `.` and single spaces between them, and nothing else. Names are equal whose
//! letters are, in whichever case: SMB compares them so.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;
use thiserror::Error;

/// Most characters of a share's name (MS-SRVS, section 2.2.4.23: `NNLEN`).
const SHARE_CHARACTERS: usize = 80;
/// Most bytes of one: it is the name of a directory, too.
pub const SHARE_BYTES: usize = 240;
/// Most bytes of a user's name (useradd(8)).
pub const USER_BYTES: usize = 32;
/// Names that mean something to a server (smb.conf(5), "SPECIAL SECTIONS"; MS-SRVS, section
/// 3.1.1.7).
const RESERVED: &[&str] = &["global", "homes", "printers", "printcap", "print", "ipc", "admin"];
/// Users that every system has, and those that ask here how shares are.
const TAKEN: &[&str] = &["root", "nobody", ASKER];

/// The user by which shares are asked how they are.
pub const ASKER: &str = "palisade-health";

/// What a share is called.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ShareName(String);

/// Why a text is no name of a share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum WrongShare {
    /// It has no characters.
    #[error("it is empty")]
    Empty,
    /// It has more than a name may have.
    #[error("it has more than 80 characters, or 240 bytes")]
    Long,
    /// Of others than these nobody knows what servers make of them.
    #[error("only letters, digits, '-', '_', '.' and single spaces may stand in it")]
    Characters,
    /// It begins or ends with something that servers or people overlook.
    #[error("it must begin and end with a letter or digit")]
    Ends,
    /// It means something to a server.
    #[error("it means something else to servers")]
    Reserved,
}

impl ShareName {
    /// A name, if it is possible.
    ///
    /// # Errors
    /// Why it is not.
    pub fn new(text: &str) -> Result<Self, WrongShare> {
        if text.is_empty() {
            return Err(WrongShare::Empty);
        }
        if text.len() > SHARE_BYTES || text.chars().count() > SHARE_CHARACTERS {
            return Err(WrongShare::Long);
        }
        // Clients may know only letters that UTF-16 has in one unit.
        let is_letter = |one: char| one.is_alphanumeric() && u32::from(one) <= 0xffff;
        let may_be = |one: char| is_letter(one) || ['-', '_', '.', ' '].contains(&one);
        if !text.chars().all(may_be) || text.contains("  ") {
            return Err(WrongShare::Characters);
        }
        if !text.starts_with(is_letter) || !text.ends_with(is_letter) {
            return Err(WrongShare::Ends);
        }
        if RESERVED.contains(&&*text.to_lowercase()) {
            return Err(WrongShare::Reserved);
        }
        Ok(Self(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether both are one name.
    pub fn is_same(&self, other: &Self) -> bool {
        folded(&self.0) == folded(&other.0)
    }
}

/// What is equal of names that differ by case.
pub fn folded(name: &str) -> String {
    // 'ß' is 'SS' in capitals, and stays what it is: a name has one form in lower case.
    name.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

impl fmt::Display for ShareName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a user of SMB is called.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UserName(String);

/// Why a text is no name of a user.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum WrongUser {
    /// It has another form than names of users have.
    #[error("it must be 1 to 32 of a-z, 0-9, '-', '_' and '.', and begin with a letter")]
    Form,
    /// Systems have such a user, or this program.
    #[error("it is the name of a user of the system")]
    Taken,
}

impl UserName {
    /// A name, if it is possible.
    ///
    /// # Errors
    /// Why it is not.
    pub fn new(text: &str) -> Result<Self, WrongUser> {
        let may_be =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
        let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
        if !begins || text.len() > USER_BYTES || !text.bytes().all(may_be) || text.ends_with('.') {
            return Err(WrongUser::Form);
        }
        if TAKEN.contains(&text) { Err(WrongUser::Taken) } else { Ok(Self(text.to_owned())) }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Addresses of clients: one, or all with the same first bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// Why a text is no such addresses.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum WrongNetwork {
    /// It has another form.
    #[error("it is no IP address, and no ADDRESS/BITS")]
    Form,
    /// There are not so many bits.
    #[error("an address of it has {0} bits")]
    Bits(u8),
    /// It says more than it means.
    #[error("bits behind the first {0} are set; {1} is meant")]
    Host(u8, Network),
}

impl Network {
    /// Whether an address is one of these.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => {
                first(address, self.bits) == self.address
            }
            _ => false,
        }
    }
}

/// An address without what is behind its first bits.
fn first(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(own) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            Ipv4Addr::from_bits(own.to_bits() & mask).into()
        }
        IpAddr::V6(own) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            Ipv6Addr::from_bits(own.to_bits() & mask).into()
        }
    }
}

impl FromStr for Network {
    type Err = WrongNetwork;

    fn from_str(text: &str) -> Result<Self, WrongNetwork> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| WrongNetwork::Form)?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let bits = match bits {
            None => all,
            Some(text) if is_number(text) => text.parse().map_err(|_| WrongNetwork::Form)?,
            Some(_) => return Err(WrongNetwork::Form),
        };
        if bits > all {
            return Err(WrongNetwork::Bits(all));
        }
        let own = Self { address: first(address, bits), bits };
        if own.address == address { Ok(own) } else { Err(WrongNetwork::Host(bits, own)) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_of_shares() {
        for good in ["docs", "Team 1", "größe", "a.b-c_d", "文書", "9"] {
            assert_eq!(ShareName::new(good).map(|own| own.0), Ok(good.to_owned()));
        }
        let long = "a".repeat(81);
        for (wrong, why) in [
            ("", WrongShare::Empty),
            (&*long, WrongShare::Long),
            ("a%b", WrongShare::Characters),
            ("a;b", WrongShare::Characters),
            ("a\"b", WrongShare::Characters),
            ("a\nb", WrongShare::Characters),
            ("a/b", WrongShare::Characters),
            ("a]", WrongShare::Characters),
            ("a  b", WrongShare::Characters),
            ("a$", WrongShare::Characters),
            ("a\u{301}", WrongShare::Characters),
            ("𝒜", WrongShare::Characters),
            (" a", WrongShare::Ends),
            ("a.", WrongShare::Ends),
            ("..", WrongShare::Ends),
            ("Global", WrongShare::Reserved),
        ] {
            assert_eq!(ShareName::new(wrong), Err(why), "{wrong:?}");
        }
        let name = |text| ShareName::new(text).expect("a name");
        assert!(name("Größe").is_same(&name("GRÖSSE")) && !name("a").is_same(&name("b")));
    }

    #[test]
    fn names_of_users() {
        for good in ["alice", "a.b-c_1"] {
            assert_eq!(UserName::new(good).map(|own| own.0), Ok(good.to_owned()));
        }
        for wrong in ["", "Alice", "1a", "a b", "a%", "a:b", "a.", &"a".repeat(33)] {
            assert_eq!(UserName::new(wrong), Err(WrongUser::Form), "{wrong:?}");
        }
        assert_eq!(UserName::new("root"), Err(WrongUser::Taken));
        assert_eq!(UserName::new(ASKER), Err(WrongUser::Taken));
    }

    #[test]
    fn addresses_of_clients() {
        let network = |text: &str| text.parse::<Network>();
        for (text, told) in [
            ("10.0.0.0/24", "10.0.0.0/24"),
            ("10.1.2.3", "10.1.2.3/32"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("fd00::/64", "fd00::/64"),
            ("::1", "::1/128"),
            ("::/0", "::/0"),
        ] {
            assert_eq!(network(text).map(|own| own.to_string()), Ok(told.to_owned()));
        }
        for wrong in ["", "a", "10.0.0/8", "10.0.0.0/", "10.0.0.0/x", "10.0.0.0/+8", "1.2.3.4/8/9"]
        {
            assert_eq!(network(wrong), Err(WrongNetwork::Form), "{wrong}");
        }
        assert_eq!(network("10.0.0.0/33"), Err(WrongNetwork::Bits(32)));
        let told = network("10.0.0.5/24").expect_err("it says more").to_string();
        assert!(told.contains("10.0.0.0/24 is meant"), "{told}");
        let own = network("10.0.0.0/24").expect("addresses");
        let contains = |text: &str| own.contains(text.parse().expect("an address"));
        assert!(contains("10.0.0.255") && !contains("10.0.1.0") && !contains("fd00::"));
    }

    proptest! {
        #[test]
        fn a_name_that_is_taken_is_plain(text in "\\PC{1,20}") {
            if let Ok(name) = ShareName::new(&text) {
                let name = name.as_str();
                prop_assert_eq!(name.trim(), name);
                let means = "%;\"[]\\/$#=:,*?<>|'";
                prop_assert!(!name.chars().any(|one| one.is_control() || means.contains(one)));
                prop_assert!(folded(name) == folded(&name.to_uppercase()));
            }
        }
    }
}
