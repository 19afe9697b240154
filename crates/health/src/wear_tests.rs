//! The date at which a drive is worn out: tables, and random pasts against plain arithmetic.

use super::*;
use proptest::prelude::*;

const DAY: u64 = 86_400;
const START: u64 = 20_000 * DAY;

/// A trend of readings: the day since the start, and per cent.
fn of(readings: &[(u64, u8)]) -> Trend {
    let mut trend = Trend::default();
    for (day, percent) in readings {
        trend.saw(START + day * DAY, *percent);
    }
    trend
}

/// On which day since the start it is worn out, asked on a day.
fn day(readings: &[(u64, u8)], asked: u64) -> Option<u64> {
    of(readings).worn_out(START + asked * DAY).map(|at| (at - START) / DAY)
}

#[test]
fn the_date_follows_from_rises() {
    type Case = (&'static str, &'static [(u64, u8)], u64, Option<u64>);
    let cases: &[Case] = &[
        ("nothing is known", &[], 0, None),
        ("one reading", &[(0, 50)], 9, None),
        ("no rise", &[(0, 50), (100, 50)], 100, None),
        ("two rises", &[(0, 50), (10, 51), (20, 52)], 20, None),
        // From day 10, 49 more at 10 days each.
        ("three rises", &[(0, 50), (10, 51), (20, 52), (30, 53)], 30, Some(500)),
        (
            "readings between do not matter",
            &[(0, 50), (10, 51), (15, 51), (20, 52), (30, 53), (39, 53)],
            39,
            Some(500),
        ),
        ("three rises within days", &[(0, 50), (1, 51), (2, 52), (3, 53)], 3, None),
        ("two at once", &[(0, 50), (10, 51), (20, 52), (40, 55)], 40, Some(377)),
        // It rests: on day 130 at most 3 were used in 120 days.
        ("a rest", &[(0, 50), (10, 51), (20, 52), (30, 53), (130, 53)], 130, Some(1_970)),
        ("it was reached", &[(0, 97), (10, 98), (20, 99), (30, 100), (40, 102)], 50, Some(30)),
        ("it was worn out when it came", &[(0, 120), (10, 120)], 10, None),
        ("another drive", &[(0, 50), (10, 51), (20, 52), (30, 53), (40, 3)], 40, None),
        (
            "another drive wears as well",
            &[(0, 50), (10, 51), (20, 52), (30, 53), (40, 3), (50, 4), (60, 5), (70, 6)],
            70,
            Some(1_010),
        ),
        (
            "the clock went back by months",
            &[(100, 50), (110, 51), (120, 52), (130, 53), (9, 53)],
            9,
            None,
        ),
        (
            "the clock went back by a day",
            &[(0, 50), (10, 51), (20, 52), (30, 53), (29, 53)],
            29,
            Some(500),
        ),
    ];
    for (case, readings, asked, expected) in cases {
        assert_eq!(day(readings, *asked), *expected, "{case}");
    }
}

#[test]
fn the_past_is_bounded_and_the_newest_is_kept() {
    let mut trend = Trend::default();
    for percent in 0..=u8::MAX {
        trend.saw(START + u64::from(percent) * DAY, percent);
    }
    assert_eq!(trend.rises.len(), MOST_RISES);
    assert_eq!(trend.rises.last(), Some(&(START + 255 * DAY, 255)));
    let stored = serde_json::to_string(&trend).expect("written");
    assert_eq!(serde_json::from_str::<Trend>(&stored).expect("read"), trend);
}

#[test]
fn what_was_stored_wrongly_gives_no_date_and_no_panic() {
    let texts = [
        r#"{"last":[5,50],"rises":[[9,60],[5,50],[1,40]]}"#,
        r#"{"last":[18446744073709551615,50],"rises":[[0,1],[1,2],[18446744073709551615,3]]}"#,
        r#"{"last":[9,50],"rises":[[0,200],[1,99],[9000000,98]]}"#,
    ];
    for text in texts {
        let mut trend: Trend = serde_json::from_str(text).expect("read");
        let _ = (trend.worn_out(0), trend.worn_out(u64::MAX));
        trend.saw(u64::MAX, u8::MAX);
        trend.saw(0, 0);
        assert_eq!(trend.worn_out(0), None);
    }
}

proptest! {
    #[test]
    fn dates_are_those_of_plain_arithmetic(
        steps in prop::collection::vec((0u64..40 * DAY, 0u8..3), 1..80),
        rest in 0u64..400 * DAY,
    ) {
        let mut trend = Trend::default();
        let (mut now, mut percent, mut rises) = (START, 0u8, Vec::new());
        trend.saw(now, percent);
        for (wait, more) in steps {
            now += wait + 1;
            percent += more;
            trend.saw(now, percent);
            if more > 0 {
                rises.push((now, percent));
            }
        }
        now += rest;
        let rises: Vec<_> = rises.iter().rev().take(MOST_RISES).rev().copied().collect();
        let date = trend.worn_out(now);
        if percent >= 100 {
            let reached = rises.iter().find(|(_, percent)| *percent >= 100).map(|(at, _)| *at);
            prop_assert_eq!(date, reached);
            return Ok(());
        }
        let (Some((first, least)), Some((last, most))) = (rises.first(), rises.last()) else {
            prop_assert_eq!(date, None);
            return Ok(());
        };
        if rises.len() < LEAST_RISES || last - first < LEAST_SECONDS {
            prop_assert_eq!(date, None);
            return Ok(());
        }
        let rate = f64::from(most - least) / (last - first) as f64;
        let slow = (f64::from(most - least) + 1.0) / (now - first) as f64;
        let expected = *first as f64 + f64::from(100 - least) / rate.min(slow);
        let date = date.expect("enough is known");
        prop_assert!((date as f64 - expected).abs() < 200.0, "{date} {expected}");
        prop_assert!(date >= now);
        // A rest moves it later, never earlier; a further rise never later than that rest.
        let later = trend.worn_out(now + 30 * DAY).expect("known");
        prop_assert!(later >= date);
        if percent < 99 {
            trend.saw(now + 30 * DAY, percent + 1);
            if rises.len() < MOST_RISES {
                prop_assert!(trend.worn_out(now + 30 * DAY).expect("known") <= later);
            }
        }
    }
}
