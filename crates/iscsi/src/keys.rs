//! The pairs of a login (RFC 7143, section 6): `KEY=VALUE`, each ended by a zero byte.

/// Pairs, as they are sent.
pub fn written(pairs: &[(&str, &str)]) -> Vec<u8> {
    pairs.iter().flat_map(|(key, value)| format!("{key}={value}\0").into_bytes()).collect()
}

/// The value of a key in what was received.
pub fn value<'a>(data: &'a [u8], key: &str) -> Option<&'a str> {
    data.split(|byte| *byte == 0).find_map(|pair| {
        let (own, value) = core::str::from_utf8(pair).ok()?.split_once('=')?;
        (own == key).then_some(value)
    })
}

/// Bytes that are written as hexadecimal digits (RFC 7143, section 6.1).
pub fn bytes(value: &str) -> Option<Vec<u8>> {
    let digits = value.strip_prefix("0x").or_else(|| value.strip_prefix("0X"))?;
    let digits: Vec<u8> = digits.bytes().collect();
    if digits.len() % 2 != 0 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let byte = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(byte).collect()
}

/// Bytes as hexadecimal digits.
pub fn digits(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("0x{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_by_their_key() {
        let all = written(&[("A", "1"), ("TargetName", "iqn.x=y"), ("AuthMethod", "CHAP")]);
        assert_eq!(all, b"A=1\0TargetName=iqn.x=y\0AuthMethod=CHAP\0");
        assert_eq!(value(&all, "AuthMethod"), Some("CHAP"));
        assert_eq!(value(&all, "TargetName"), Some("iqn.x=y"));
        assert_eq!(value(&all, "Auth"), None);
        assert_eq!(value(b"\xff=1\0=\0B=2", "B"), Some("2"));
    }

    #[test]
    fn bytes_are_hexadecimal_digits() {
        assert_eq!(bytes("0x00fFa1"), Some(vec![0, 255, 161]));
        assert_eq!(bytes(&digits(&[1, 254])), Some(vec![1, 254]));
        for wrong in ["", "00", "0x0", "0xgg", "0b+A==", "0x+1"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }
}
