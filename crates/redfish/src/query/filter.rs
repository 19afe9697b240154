//! `$filter` (DSP0266, "The `$filter` query parameter"): an expression that is true of some
//! members of a collection.
//!
//! What binds most comes first: parentheses; `not`; `gt`, `ge`, `lt`, `le`; `eq`, `ne`; `and`;
//! `or`. A property is named by its path, with `/` between its parts; one that is not there is
//! null. Null is equal to null alone, and neither less nor greater than anything.
//!
//! Invariant: an expression has at most [`MOST_PARTS`] parts and [`MOST_LEVELS`] levels, so
//! reading and evaluating it takes little time and stack, whatever it is.

use serde_json::Value;
use std::cmp::Ordering;

/// How many words, values and parentheses there may be.
pub const MOST_PARTS: usize = 512;

/// How deep parentheses and `not` may be within each other.
pub const MOST_LEVELS: u32 = 32;

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Filter {
    /// A value that is written out.
    Literal(Literal),
    /// A property, by the parts of its path.
    Property(Vec<String>),
    /// `not`.
    Not(Box<Filter>),
    /// A comparison.
    Compare(Box<Filter>, Comparison, Box<Filter>),
    /// `and` between all.
    All(Vec<Filter>),
    /// `or` between all.
    Any(Vec<Filter>),
}

/// A value that is written out.
#[derive(Clone, PartialEq, Debug)]
pub enum Literal {
    /// `null`.
    Null,
    /// `true` or `false`.
    Truth(bool),
    /// A whole number.
    Whole(i128),
    /// Another number.
    Number(f64),
    /// A text.
    Text(String),
}

/// How two values are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// `eq`
    Equal,
    /// `ne`
    Unequal,
    /// `gt`
    Greater,
    /// `ge`
    GreaterOrEqual,
    /// `lt`
    Less,
    /// `le`
    LessOrEqual,
}

/// What an expression comes to.
#[derive(Clone, Copy, Debug)]
enum Outcome<'a> {
    Null,
    Truth(bool),
    Whole(i128),
    Number(f64),
    Text(&'a str),
    /// An object or an array: neither equal to anything nor ordered.
    Other,
}

impl Filter {
    /// Reads an expression; none if it can't be read.
    pub fn read(text: &str) -> Option<Self> {
        let tokens = tokens(text)?;
        let mut reader = Reader { tokens: tokens.into_iter().peekable(), levels: 0 };
        let filter = reader.any()?;
        reader.tokens.next().is_none().then_some(filter)
    }

    /// Whether it is true of a resource.
    pub fn is_true_of(&self, resource: &Value) -> bool {
        matches!(self.outcome(resource), Outcome::Truth(true))
    }

    fn outcome<'a>(&'a self, resource: &'a Value) -> Outcome<'a> {
        match self {
            Self::Literal(literal) => match literal {
                Literal::Null => Outcome::Null,
                Literal::Truth(value) => Outcome::Truth(*value),
                Literal::Whole(value) => Outcome::Whole(*value),
                Literal::Number(value) => Outcome::Number(*value),
                Literal::Text(text) => Outcome::Text(text),
            },
            Self::Property(path) => property(resource, path),
            Self::Not(inner) => match inner.outcome(resource) {
                Outcome::Truth(value) => Outcome::Truth(!value),
                _ => Outcome::Null,
            },
            Self::Compare(left, how, right) => {
                let (left, right) = (left.outcome(resource), right.outcome(resource));
                Outcome::Truth(how.holds(left, right))
            }
            Self::All(parts) => Outcome::Truth(parts.iter().all(|one| one.is_true_of(resource))),
            Self::Any(parts) => Outcome::Truth(parts.iter().any(|one| one.is_true_of(resource))),
        }
    }
}

fn property<'a>(resource: &'a Value, path: &[String]) -> Outcome<'a> {
    let found = path.iter().try_fold(resource, |at, part| at.get(part.as_str()));
    match found {
        None | Some(Value::Null) => Outcome::Null,
        Some(Value::Bool(value)) => Outcome::Truth(*value),
        Some(Value::String(text)) => Outcome::Text(text),
        Some(Value::Number(number)) => match (number.as_i128(), number.as_f64()) {
            (Some(whole), _) => Outcome::Whole(whole),
            (None, Some(value)) => Outcome::Number(value),
            (None, None) => Outcome::Other,
        },
        Some(Value::Array(_) | Value::Object(_)) => Outcome::Other,
    }
}

impl Comparison {
    fn holds(self, left: Outcome<'_>, right: Outcome<'_>) -> bool {
        let order = order(left, right);
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::Unequal => order != Some(Ordering::Equal),
            _ if is_unordered(left) || is_unordered(right) => false,
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => order.is_some_and(Ordering::is_le),
        }
    }
}

fn is_unordered(value: Outcome<'_>) -> bool {
    matches!(value, Outcome::Null | Outcome::Truth(_) | Outcome::Other)
}

#[allow(clippy::cast_precision_loss, reason = "a fraction is compared as near as can be")]
fn order(left: Outcome<'_>, right: Outcome<'_>) -> Option<Ordering> {
    use Outcome::{Null, Number, Text, Truth, Whole};
    match (left, right) {
        (Null, Null) => Some(Ordering::Equal),
        (Truth(left), Truth(right)) => Some(left.cmp(&right)),
        (Whole(left), Whole(right)) => Some(left.cmp(&right)),
        (Number(left), Number(right)) => left.partial_cmp(&right),
        (Whole(left), Number(right)) => (left as f64).partial_cmp(&right),
        (Number(left), Whole(right)) => left.partial_cmp(&(right as f64)),
        (Text(left), Text(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

/// A part of an expression's text.
#[derive(Clone, PartialEq, Debug)]
enum Token {
    Open,
    Close,
    And,
    Or,
    Not,
    Compare(Comparison),
    Literal(Literal),
    Property(Vec<String>),
}

fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut rest = text.trim_start();
    let mut all = Vec::new();
    while let Some(first) = rest.chars().next() {
        let (token, after) = match first {
            '(' => (Token::Open, rest.strip_prefix('(')?),
            ')' => (Token::Close, rest.strip_prefix(')')?),
            '\'' => quoted(rest.strip_prefix('\'')?)?,
            _ => {
                let end = rest.find(|letter: char| {
                    letter.is_whitespace() || matches!(letter, '(' | ')' | '\'')
                });
                let (word, after) = rest.split_at_checked(end.unwrap_or(rest.len()))?;
                (named(word)?, after)
            }
        };
        all.push(token);
        if all.len() > MOST_PARTS {
            return None;
        }
        rest = after.trim_start();
    }
    Some(all)
}

/// A text up to its quote; a quote in it is doubled.
fn quoted(mut rest: &str) -> Option<(Token, &str)> {
    let mut text = String::new();
    loop {
        let (part, after) = rest.split_once('\'')?;
        text.push_str(part);
        match after.strip_prefix('\'') {
            Some(more) => {
                text.push('\'');
                rest = more;
            }
            None => return Some((Token::Literal(Literal::Text(text)), after)),
        }
    }
}

fn named(word: &str) -> Option<Token> {
    Some(match word {
        "and" => Token::And,
        "or" => Token::Or,
        "not" => Token::Not,
        "eq" => Token::Compare(Comparison::Equal),
        "ne" => Token::Compare(Comparison::Unequal),
        "gt" => Token::Compare(Comparison::Greater),
        "ge" => Token::Compare(Comparison::GreaterOrEqual),
        "lt" => Token::Compare(Comparison::Less),
        "le" => Token::Compare(Comparison::LessOrEqual),
        "true" => Token::Literal(Literal::Truth(true)),
        "false" => Token::Literal(Literal::Truth(false)),
        "null" => Token::Literal(Literal::Null),
        word if word.starts_with(|first: char| first.is_ascii_digit() || first == '-') => {
            Token::Literal(number(word)?)
        }
        word => Token::Property(super::path(word)?),
    })
}

fn number(word: &str) -> Option<Literal> {
    if let Ok(whole) = word.parse::<i128>() {
        return Some(Literal::Whole(whole));
    }
    let is_plain = word.chars().all(|one| one.is_ascii_digit() || "+-.eE".contains(one));
    let value = word.parse::<f64>().ok().filter(|value| is_plain && value.is_finite())?;
    Some(Literal::Number(value))
}

struct Reader {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    levels: u32,
}

impl Reader {
    /// Parts between which a word stands.
    fn between(
        &mut self,
        word: &Token,
        part: fn(&mut Self) -> Option<Filter>,
    ) -> Option<Vec<Filter>> {
        let mut parts = vec![part(self)?];
        while self.tokens.next_if_eq(word).is_some() {
            parts.push(part(self)?);
        }
        Some(parts)
    }

    fn any(&mut self) -> Option<Filter> {
        let mut parts = self.between(&Token::Or, Self::all)?;
        if parts.len() == 1 { parts.pop() } else { Some(Filter::Any(parts)) }
    }

    fn all(&mut self) -> Option<Filter> {
        let mut parts = self.between(&Token::And, Self::equal)?;
        if parts.len() == 1 { parts.pop() } else { Some(Filter::All(parts)) }
    }

    fn equal(&mut self) -> Option<Filter> {
        let is_it = |how| matches!(how, Comparison::Equal | Comparison::Unequal);
        self.compared(is_it, Self::ordered)
    }

    fn ordered(&mut self) -> Option<Filter> {
        let is_it = |how| !matches!(how, Comparison::Equal | Comparison::Unequal);
        self.compared(is_it, Self::one)
    }

    fn compared(
        &mut self,
        is_it: fn(Comparison) -> bool,
        part: fn(&mut Self) -> Option<Filter>,
    ) -> Option<Filter> {
        let mut left = part(self)?;
        while let Some(Token::Compare(how)) =
            self.tokens.next_if(|token| matches!(token, Token::Compare(how) if is_it(*how)))
        {
            left = Filter::Compare(Box::new(left), how, Box::new(part(self)?));
        }
        Some(left)
    }

    fn one(&mut self) -> Option<Filter> {
        match self.tokens.next()? {
            Token::Literal(literal) => Some(Filter::Literal(literal)),
            Token::Property(path) => Some(Filter::Property(path)),
            Token::Not => self.deeper(|own| Some(Filter::Not(Box::new(own.one()?)))),
            Token::Open => self.deeper(|own| {
                let inner = own.any()?;
                own.tokens.next_if_eq(&Token::Close)?;
                Some(inner)
            }),
            Token::Close | Token::And | Token::Or | Token::Compare(_) => None,
        }
    }

    fn deeper(&mut self, read: fn(&mut Self) -> Option<Filter>) -> Option<Filter> {
        self.levels += 1;
        let inner = if self.levels > MOST_LEVELS { None } else { read(self) };
        self.levels = self.levels.saturating_sub(1);
        inner
    }
}
