//! Moments as Redfish writes them (DSP0266, "Date-Time properties"): `2026-11-24T09:30:00Z`.
//!
//! Invariant: of every moment of the years 1970 to 9999 [`seconds`] of [`text`] is itself.

const DAY: u64 = 86_400;

/// The last second of the year 9999, which is the last that has a text.
const LAST: u64 = 253_402_300_799;

/// A moment, given in seconds since 1970. What is later than the year 9999 is its last second.
pub fn text(seconds: u64) -> String {
    let seconds = seconds.min(LAST);
    let (days, rest) = (seconds / DAY, seconds % DAY);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The same, given in milliseconds.
pub fn text_of_millis(millis: u64) -> String {
    let whole = text(millis / 1000);
    format!("{}.{:03}Z", whole.trim_end_matches('Z'), millis % 1000)
}

/// The moment that a text of this service stands for, in seconds since 1970.
pub fn seconds(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let days = days(year, month, day)?;
    let is_time = hour < 24 && minute < 60 && second < 60;
    is_time.then_some(days * DAY + hour * 3600 + minute * 60 + second)
}

fn numbers(text: &str, between: char) -> Option<[u64; 3]> {
    let mut parts = text.split(between).map(|part| {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse().ok()).flatten()
    });
    let three = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(three)
}

/// Days from the first of March of the year 0 to 1970, in the Gregorian calendar. Years that begin
/// in March have the day of a leap year at their end.
const TO_1970: u64 = 719_468;

/// Days of 400 years.
const ERA: u64 = 146_097;

/// Year, month and day of a day after 1970.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + TO_1970;
    let (era, of_era) = (days / ERA, days % ERA);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

/// The days from 1970 to this date, if there is one.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let is_date = (1970..=9999).contains(&year) && (1..=12).contains(&month) && day >= 1;
    let of_march = year.checked_sub(u64::from(month <= 2)).filter(|_| is_date)?;
    let (era, year_of_era) = (of_march / 400, of_march % 400);
    let march = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * march + 2) / 5 + day.min(31) - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    let days = (era * ERA + of_era).checked_sub(TO_1970)?;
    (date(days) == (year, month, day)).then_some(days)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        for (moment, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_795_511_640, "2026-11-24T09:14:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (LAST, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(text(moment), expected);
            assert_eq!(seconds(expected), Some(moment));
        }
        assert_eq!(text(u64::MAX), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn every_day_comes_back() {
        for day in (0..LAST / DAY).step_by(7) {
            let moment = day * DAY + day % DAY;
            assert_eq!(seconds(&text(moment)), Some(moment), "{}", text(moment));
        }
    }

    #[test]
    fn what_is_no_moment_has_no_seconds() {
        for text in [
            "",
            "Z",
            "TZ",
            "2026-11-24",
            "2026-02-29T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "2026-11-24T24:00:00Z",
            "2026-11-24T09:30:00",
            "2026-11-24T09:30Z",
            "2026-13-01T0:0:0Z",
            "+2026-11-24T09:30:00Z",
            "2026-11-99999999999999999999T09:30:00Z",
            "2026-0-1T0:0:0Z",
            "18446744073709551615-01-01T00:00:00Z",
            "2026-11-18446744073709551615T00:00:00Z",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
