//! How many times as slow as their model paced drives are.
//!
//! Everything takes so many times as long, latencies too: then so many requests under way are as
//! much of a load as they are at full speed. A share of a bound means the same at any scale, as
//! long as the cores are not what limits.

use core::fmt;
use core::str::FromStr;

/// Slower than this nothing is measured in a time that anybody waits.
const MOST: u32 = 1024;

/// A part of full speed, or the largest that leaves the cores time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// The largest at which cores are idle for [`IDLE`] of their time.
    Auto,
    /// One in so many.
    Part(u32),
}

/// The part of the time that cores have nothing to do in, at least.
pub const IDLE: f64 = 0.3;

impl FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("use auto, 1, or a part such as 1/4, down to 1/{MOST}");
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let part = if text == "1" { "1" } else { text.strip_prefix("1/").ok_or_else(wrong)? };
        let part = part.parse().ok().filter(|part| (1..=MOST).contains(part));
        part.map(Self::Part).ok_or_else(wrong)
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Part(1) => f.write_str("1"),
            Self::Part(part) => write!(f, "1/{part}"),
        }
    }
}

impl Scale {
    /// How many times as slow; `busy` says how busy the cores are at a scale.
    ///
    /// # Errors
    /// Those of `busy`.
    pub fn slower<E>(self, mut busy: impl FnMut(u32) -> Result<f64, E>) -> Result<u32, E> {
        let Self::Part(part) = self else {
            let mut part = 1;
            while part < MOST && busy(part)? > 1.0 - IDLE {
                part *= 2;
            }
            return Ok(part);
        };
        Ok(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_read_and_shown() {
        for text in ["auto", "1", "1/4", "1/1024"] {
            assert_eq!(text.parse::<Scale>().map(|scale| scale.to_string()), Ok(text.to_owned()));
        }
        for wrong in ["", "2", "0", "1/0", "1/2048", "4/1", "1/x", "0.5"] {
            assert!(wrong.parse::<Scale>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_largest_that_leaves_time_is_taken() {
        let busy = |part: u32| Ok::<_, ()>(2.0 / f64::from(part));
        assert_eq!(Scale::Auto.slower(busy), Ok(4));
        assert_eq!(Scale::Auto.slower(|_| Ok::<_, ()>(0.7)), Ok(1));
        assert_eq!(Scale::Auto.slower(|_| Ok::<_, ()>(1.0)), Ok(MOST));
        assert_eq!(Scale::Part(3).slower(|_| Err("not asked")), Ok(3));
    }
}
