//! Just enough of Rust's lexical rules to tell code from comments, strings and characters.
//!
//! Invariant: [`blank`] keeps every line break and the byte length, so that a place in the
//! blanked text is the same place in the original.

/// Replaces the content of comments, strings and character literals by spaces.
pub fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match skipped(bytes, at) {
            Some(end) => end.min(bytes.len()),
            None => {
                at += 1;
                continue;
            }
        };
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    String::from_utf8(out).expect("whole literals and comments were replaced")
}

/// The end of the comment or literal that starts at `at`, if one does.
fn skipped(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    match rest[0] {
        b'/' if rest.starts_with(b"//") => {
            Some(at + rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()))
        }
        b'/' if rest.starts_with(b"/*") => Some(at + block_comment(rest)),
        b'"' => Some(at + quoted(rest, b'"')),
        b'r' | b'b' | b'c' if at == 0 || !is_word(bytes[at - 1]) => prefixed(bytes, at),
        b'\'' => character(rest).map(|length| at + length),
        _ => None,
    }
}

/// Length of a block comment, which may hold others.
fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Length of a literal between two `quote`s, where a backslash takes the next byte along.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b if b == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The end of a literal with a prefix: `b"`, `c"`, `r"`, `br#"`, `b'`.
fn prefixed(bytes: &[u8], at: usize) -> Option<usize> {
    let letters = bytes[at..].iter().take_while(|b| b"rbc".contains(b)).count();
    let open = at + letters;
    let raw = bytes[at..open].contains(&b'r');
    let rest = bytes.get(open..)?;
    if letters > 2 || rest.is_empty() {
        return None;
    }
    if !raw {
        return match rest[0] {
            b'"' => Some(open + quoted(rest, b'"')),
            b'\'' if bytes[at] == b'b' => Some(open + quoted(rest, b'\'')),
            _ => None,
        };
    }
    let hashes = rest.iter().take_while(|b| **b == b'#').count();
    if rest.get(hashes) != Some(&b'"') {
        return None;
    }
    let close: Vec<u8> = [b'"'].into_iter().chain(std::iter::repeat_n(b'#', hashes)).collect();
    let body = &rest[hashes + 1..];
    let end = body.windows(close.len()).position(|w| w == close).unwrap_or(body.len());
    Some(open + hashes + 1 + end + close.len())
}

/// Length of a character literal; `None` if the quote begins a lifetime or label.
fn character(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        return Some(quoted(rest, b'\''));
    }
    let text = core::str::from_utf8(&rest[1..rest.len().min(6)]);
    let valid = match text {
        Ok(text) => text,
        Err(e) => core::str::from_utf8(&rest[1..1 + e.valid_up_to()]).unwrap_or(""),
    };
    let first = valid.chars().next()?;
    (valid[first.len_utf8()..].starts_with('\'')).then_some(first.len_utf8() + 2)
}

/// True for bytes that identifiers are made of.
pub fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric() || byte >= 0x80
}

/// The line, counted from 1, that holds byte `at`.
pub fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|b| **b == b'\n').count() + 1
}

/// Every identifier or keyword of blanked code with its place.
pub fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let bytes = code.as_bytes();
    let mut at = 0;
    core::iter::from_fn(move || {
        while at < bytes.len() && !is_word(bytes[at]) {
            at += 1;
        }
        let start = at;
        while at < bytes.len() && is_word(bytes[at]) {
            at += 1;
        }
        (at > start).then(|| (start, &code[start..at]))
    })
}

/// Places where `pattern` stands in `code` and is not part of a longer word.
pub fn places<'a>(code: &'a str, pattern: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    let last = pattern.as_bytes()[pattern.len() - 1];
    code.match_indices(pattern).map(|(at, _)| at).filter(move |at| {
        let before = *at == 0 || !is_word(bytes[at - 1]);
        let after = bytes.get(at + pattern.len()).is_none_or(|b| !is_word(*b) || !is_word(last));
        before && after
    })
}

/// The place just behind the brace that closes the one at `open`.
pub fn closing(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (offset, byte) in code.as_bytes()[open..].iter().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(open + offset + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The code with the bodies of `#[cfg(test)]` modules blanked.
pub fn without_tests(code: &str) -> String {
    let mut out = code.to_owned();
    for (at, mark) in code.match_indices("#[cfg(test)]") {
        let rest = &code[at + mark.len()..];
        let item = rest.find(['{', ';']).map(|i| at + mark.len() + i);
        let Some(open) = item.filter(|open| code.as_bytes()[*open] == b'{') else { continue };
        let Some(end) = closing(code, open) else { continue };
        let spaces: String =
            code[at..end].bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }).collect();
        out.replace_range(at..end, &spaces);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_in_place() {
        let cases = [
            ("a // b\nc", "a     \nc"),
            ("a /* { /* } */ { */ b", "a                   b"),
            (r#"f("{", 'x', '\'', b'{')"#, "f(   ,    ,     ,     )"),
            (r##"r#"{"}"# b"##, "         b"),
            (r#"br"{" x"#, "      x"),
            (r#"c"{" x"#, "     x"),
            ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
            ("'é' x", "     x"),
            (r#"for"{""#, "for   "),
            ("'label: loop {}", "'label: loop {}"),
        ];
        for (text, expected) in cases {
            assert_eq!(blank(text), expected, "of {text}");
            assert_eq!(blank(text).len(), text.len());
        }
    }

    #[test]
    fn broken_input_ends() {
        for text in ["\"abc", "/* abc", "r#\"abc", "'", "b", "'\\", "r#"] {
            assert_eq!(blank(text).len(), text.len());
        }
    }

    #[test]
    fn words_and_places() {
        assert_eq!(words("a_b(c1)").collect::<Vec<_>>(), [(0, "a_b"), (4, "c1")]);
        assert_eq!(places("std::fs std::fsx xstd::fs", "std::fs").collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn test_modules_are_cut_out() {
        let code = "a\n#[cfg(test)]\nmod tests {\n b {} }\nc\n#[cfg(test)]\nmod t;\nd {}";
        let cut = without_tests(code);
        assert_eq!(cut.split_whitespace().collect::<Vec<_>>().join(" "), {
            "a c #[cfg(test)] mod t; d {}"
        });
        assert_eq!(cut.lines().count(), code.lines().count());
    }
}
