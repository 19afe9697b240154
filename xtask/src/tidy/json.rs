//! JSON, as far as records in the tree need it (RFC 8259): read whole, or refused with the line.

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A string; escapes are kept as they are written.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// An object, in the order of the text, with the line that each key is on.
    Object(Vec<(String, usize, Value)>),
}

impl Value {
    /// The value of a key of an object.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let Self::Object(pairs) = self else { return None };
        pairs.iter().find(|(name, ..)| name == key).map(|(.., value)| value)
    }
}

/// Reads a text; or else the line, from 1, at which it is no JSON.
pub fn parse(text: &str) -> Result<Value, usize> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value().ok_or_else(|| reader.line())?;
    reader.blank();
    if reader.at == text.len() { Ok(value) } else { Err(reader.line()) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn line(&self) -> usize {
        1 + self.text[..self.at].matches('\n').count()
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn blank(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    /// Takes this, behind blanks.
    fn take(&mut self, word: &str) -> Option<()> {
        self.blank();
        self.rest().starts_with(word).then(|| self.at += word.len())
    }

    fn value(&mut self) -> Option<Value> {
        let words =
            [("null", Value::Null), ("true", Value::Bool(true)), ("false", Value::Bool(false))];
        for (word, value) in words {
            if self.take(word).is_some() {
                return Some(value);
            }
        }
        match self.rest().chars().next()? {
            '"' => self.string().map(Value::Text),
            '[' => self.list(),
            '{' => self.object(),
            _ => self.number(),
        }
    }

    fn string(&mut self) -> Option<String> {
        self.take("\"")?;
        let mut escaped = false;
        let end = self.rest().find(|c: char| {
            let ends = c == '"' && !escaped || c < ' ';
            escaped = c == '\\' && !escaped;
            ends
        })?;
        let text = self.rest()[..end].to_owned();
        self.at += end;
        self.take("\"").map(|()| text)
    }

    fn number(&mut self) -> Option<Value> {
        let is_part = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
        let length = self.rest().find(|c| !is_part(c)).unwrap_or(self.rest().len());
        let value = self.rest()[..length].parse().ok()?;
        self.at += length;
        Some(Value::Number(value))
    }

    fn list(&mut self) -> Option<Value> {
        self.take("[")?;
        let mut values = Vec::new();
        while self.take("]").is_none() {
            if !values.is_empty() {
                self.take(",")?;
            }
            values.push(self.value()?);
        }
        Some(Value::List(values))
    }

    fn object(&mut self) -> Option<Value> {
        self.take("{")?;
        let mut pairs = Vec::new();
        while self.take("}").is_none() {
            if !pairs.is_empty() {
                self.take(",")?;
            }
            self.blank();
            let line = self.line();
            let key = self.string()?;
            self.take(":")?;
            pairs.push((key, line, self.value()?));
        }
        Some(Value::Object(pairs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_are_read() {
        let read =
            parse(" [null, true, -1.5e3, \"a\\\"b\\\\\",\n {\"k\": [], \"l\": {}} ]\n").unwrap();
        let object = Value::Object(vec![
            ("k".into(), 2, Value::List(vec![])),
            ("l".into(), 2, Value::Object(vec![])),
        ]);
        let text = Value::Text("a\\\"b\\\\".into());
        let all = vec![Value::Null, Value::Bool(true), Value::Number(-1500.0), text, object];
        assert_eq!(read, Value::List(all));
        assert_eq!(parse("{\"a\": 1}").unwrap().get("a"), Some(&Value::Number(1.0)));
    }

    #[test]
    fn what_is_wrong_is_refused_at_its_line() {
        for (text, line) in [
            ("", 1),
            ("[1,\n2", 2),
            ("[1 2]", 1),
            ("{\"a\"\n1}", 2),
            ("\"a", 1),
            ("1\n2", 2),
            ("x", 1),
        ] {
            assert_eq!(parse(text), Err(line), "{text:?}");
        }
    }
}
