//! Rules, row by row: what readings come to, and when it ends.

use super::*;

const MINUTE: u64 = 60;
const HOUR: u64 = 3_600;
const START: u64 = 1_700_000_000;

/// A drive that is well.
fn well() -> Facts {
    Facts {
        smart: Some(Smart {
            critical_warning: 0,
            spare_percent: 100,
            threshold_percent: 10,
            used_percent: 5,
            media_errors: 7,
        }),
        celsius: Some(40),
        warning_celsius: Some(70),
        critical_celsius: Some(80),
        errors: Some(0),
        timeouts: Some(0),
        link: Some(Link {
            lanes: 4,
            max_lanes: 4,
            megatransfers: 16_000,
            max_megatransfers: 16_000,
        }),
    }
}

/// What a reading says otherwise than that of a drive that is well.
#[derive(Clone, Copy, Debug)]
enum But {
    Nothing,
    /// The log can't be read.
    Silent,
    Bits(u8),
    Left(u8, u8),
    Used(u8),
    Celsius(i32),
    /// Temperature, `WCTEMP`, `CCTEMP`.
    Limits(i32, Option<i32>, Option<i32>),
    Media(u128),
    Failed(u64),
    Late(u64),
    /// Lanes of 4, gigatransfers of 16.
    Lanes(u8, u32),
    NoLink,
    UnknownLink,
}

use But::*;

fn facts(but: But) -> Facts {
    let mut facts = well();
    let mut smart = facts.smart.unwrap_or_default();
    match but {
        Nothing | Silent => {}
        Bits(bits) => smart.critical_warning = bits,
        Left(left, least) => (smart.spare_percent, smart.threshold_percent) = (left, least),
        Used(used) => smart.used_percent = used,
        Celsius(celsius) => facts.celsius = Some(celsius),
        Limits(celsius, warning, critical) => {
            facts.celsius = Some(celsius);
            (facts.warning_celsius, facts.critical_celsius) = (warning, critical);
        }
        Media(errors) => smart.media_errors = errors,
        Failed(errors) => facts.errors = Some(errors),
        Late(timeouts) => facts.timeouts = Some(timeouts),
        Lanes(lanes, giga) => {
            if let Some(link) = &mut facts.link {
                (link.lanes, link.megatransfers) = (lanes, giga * 1_000);
            }
        }
        NoLink => facts.link = None,
        UnknownLink => {
            facts.link = Some(super::Link {
                lanes: 2,
                max_lanes: 0,
                megatransfers: 8_000,
                max_megatransfers: 0,
            });
        }
    }
    facts.smart = Some(smart);
    if let Silent = but {
        facts = Facts { smart: None, celsius: None, ..facts };
    }
    facts
}

/// The levels that readings a minute apart come to, a letter each: `.`, `W` and `C`. No rule but
/// the one that is named may say anything.
fn levels(rule: Rule, readings: &[But], settings: &Settings) -> String {
    let mut judge = Judge::default();
    let letter = |(minute, but): (u64, &But)| {
        let verdict = judge.judge(&facts(*but), settings, START + minute * MINUTE);
        let of = |reason: &Reason| reason.rule;
        assert!(verdict.reasons.iter().all(|reason| of(reason) == rule), "{verdict:?}");
        assert_eq!(verdict, judge.verdict());
        match verdict.level {
            Level::Ok => '.',
            Level::Warning => 'W',
            Level::Critical => 'C',
        }
    };
    (0..).zip(readings).map(letter).collect()
}

#[test]
fn each_rule_raises_and_clears_by_its_row() {
    use Rule::*;
    let cases: &[(Rule, &[But], &str)] = &[
        (Wear, &[Nothing, Nothing], ".."),
        // Bits.
        (Spare, &[Bits(1), Nothing, Nothing, Nothing, Nothing], "CCC.."),
        (TemperatureThreshold, &[Bits(2), Nothing, Nothing, Nothing], "WWW."),
        (Reliability, &[Bits(4), Nothing, Nothing, Nothing], "CCC."),
        (ReadOnly, &[Bits(8), Nothing, Nothing, Nothing], "CCC."),
        (Backup, &[Bits(16), Nothing, Nothing, Nothing], "CCC."),
        (PersistentRegion, &[Bits(32), Nothing, Nothing, Nothing], "WWW."),
        (OtherWarning, &[Bits(64), Nothing, Nothing, Nothing], "WWW."),
        (OtherWarning, &[Bits(128), Nothing, Nothing, Nothing], "WWW."),
        // A reading between says so again.
        (ReadOnly, &[Bits(8), Nothing, Nothing, Bits(8), Nothing, Nothing, Nothing], "CCCCCC."),
        // What is not known changes nothing, and does not count.
        (ReadOnly, &[Silent, Bits(8), Silent, Nothing, Silent, Nothing, Nothing], ".CCCCC."),
        // Spare.
        (Spare, &[Left(10, 10), Left(9, 10), Left(10, 10)], ".CC"),
        (Spare, &[Left(0, 0), Left(100, 0), Left(0, 1)], "..C"),
        // Wear, and a drive that was replaced by another one of the same name.
        (Wear, &[Used(89), Used(90), Used(99), Used(100), Used(255)], ".WWCC"),
        (Wear, &[Used(100), Used(99), Used(99), Used(99), Used(1)], "CCCWW"),
        (Wear, &[Used(95), Used(1), Used(1), Used(1)], "WWW."),
        // Temperature: cleared 3 °C below.
        (Temperature, &[Celsius(69), Celsius(70), Celsius(68), Celsius(67)], ".WW."),
        (Temperature, &[Celsius(80), Celsius(78), Celsius(77), Celsius(68), Celsius(67)], "CCWW."),
        (Temperature, &[Celsius(80), Celsius(40), Celsius(-20)], "C.."),
        (Temperature, &[Celsius(70), Silent, Celsius(66)], "WW."),
        (Temperature, &[Limits(99, None, None), Limits(99, Some(0), Some(0))], ".."),
        (Temperature, &[Limits(99, None, Some(90)), Limits(99, Some(90), Some(0))], "CW"),
        // Errors: the first reading says how many are old.
        (MediaErrors, &[Nothing, Media(8), Media(8), Media(107), Media(107)], ".WWCC"),
        (MediaErrors, &[Media(u128::MAX), Media(u128::MAX)], ".."),
        (MediaErrors, &[Media(9), Media(3), Media(4)], "..W"),
        (MediaErrors, &[Media(9), Silent, Media(9), Silent, Media(10)], "....W"),
        (Errors, &[Failed(5), Failed(5), Failed(6), Failed(6)], "..WW"),
        (Errors, &[Failed(5), Failed(0), Failed(1)], "..W"),
        (Timeouts, &[Late(0), Late(1)], ".W"),
        // The link: twice in a row.
        (Link, &[Lanes(4, 16), Lanes(2, 16), Lanes(4, 16), Lanes(2, 16), Lanes(2, 16)], "....W"),
        (Link, &[Lanes(4, 8), Lanes(4, 8), Lanes(4, 16), Lanes(4, 16), Lanes(4, 16)], ".WWW."),
        (Link, &[NoLink, NoLink, UnknownLink, UnknownLink], "...."),
        (Link, &[Lanes(1, 16), NoLink, Lanes(1, 16), NoLink], "..WW"),
    ];
    for (rule, readings, expected) in cases {
        let levels = levels(*rule, readings, &Settings::default());
        assert_eq!(&levels, expected, "{rule:?} {readings:?}");
    }
}

#[test]
fn limits_are_those_of_the_configuration() {
    let cases: &[(&str, u64, Rule, &[But], &str)] = &[
        ("wear_warning_percent", 50, Rule::Wear, &[Used(49), Used(50)], ".W"),
        ("wear_critical_percent", 95, Rule::Wear, &[Used(94), Used(95)], "WC"),
        ("temperature_hysteresis_c", 0, Rule::Temperature, &[Celsius(70), Celsius(69)], "W."),
        (
            "temperature_hysteresis_c",
            10,
            Rule::Temperature,
            &[Celsius(70), Celsius(61), Celsius(60)],
            "WW.",
        ),
        ("media_errors", 3, Rule::MediaErrors, &[Nothing, Media(9), Media(10)], "..W"),
        ("media_errors_critical", 2, Rule::MediaErrors, &[Nothing, Media(8), Media(9)], ".WC"),
        ("errors", 2, Rule::Errors, &[Failed(0), Failed(1), Failed(2)], "..W"),
        ("timeouts", 2, Rule::Timeouts, &[Late(0), Late(1), Late(2)], "..W"),
        ("link", 0, Rule::Link, &[Lanes(1, 16), Lanes(1, 16), Lanes(1, 16)], "..."),
    ];
    for (key, value, rule, readings, expected) in cases {
        let mut settings = Settings::default();
        let value = match *value {
            0 if *key == "link" => crate::settings::Value::Text("off"),
            value => crate::settings::Value::Number(value as i64),
        };
        settings.set(key, value).expect("in range");
        assert_eq!(&levels(*rule, readings, &settings), expected, "{key} {readings:?}");
    }
}

#[test]
fn a_link_that_is_no_longer_judged_is_no_reason() {
    let (mut judge, mut settings) = (Judge::default(), Settings::default());
    for minute in 0..2 {
        judge.judge(&facts(Lanes(1, 16)), &settings, START + minute * MINUTE);
    }
    assert_eq!(judge.verdict().level, Level::Warning);
    settings.link = 0;
    assert_eq!(
        judge.judge(&facts(Lanes(1, 16)), &settings, START + 3 * MINUTE),
        Verdict::default()
    );
}

/// The hours after the first reading at which there is a warning, asked each hour of two days.
fn warned(steps: impl Fn(u64) -> u128, clock: impl Fn(u64) -> u64) -> Vec<u64> {
    warned_within(24, steps, clock)
}

fn warned_within(
    rise_hours: u64,
    steps: impl Fn(u64) -> u128,
    clock: impl Fn(u64) -> u64,
) -> Vec<u64> {
    let mut judge = Judge::default();
    let settings = Settings { rise_hours, ..Settings::default() };
    let is_warned = |hour: &u64| {
        let verdict = judge.judge(&facts(Media(steps(*hour))), &settings, clock(*hour));
        verdict.level > Level::Ok
    };
    (0..48).filter(is_warned).collect()
}

#[test]
fn new_errors_count_for_a_day_whatever_the_clock_does() {
    let one = |hour| if hour < 2 { 7 } else { 8 };
    let steady = |hour| START + hour * HOUR;
    let day: Vec<_> = (2..26).collect();
    assert_eq!(warned(one, steady), day);
    // Another one on the next day.
    let two = |hour| if hour < 20 { one(hour) } else { 9 };
    assert_eq!(warned(two, steady), (2..44).collect::<Vec<_>>());
    // The clock goes back by ten days: that hour does not count.
    let back = |hour| if hour < 10 { steady(hour) } else { steady(hour) - 240 * HOUR };
    assert_eq!(warned(one, back), (2..27).collect::<Vec<_>>());
    // It goes ahead by ten days: that counts as one.
    let ahead = |hour| if hour < 10 { steady(hour) } else { steady(hour) + 240 * HOUR };
    assert_eq!(warned(one, ahead), (2..10).collect::<Vec<_>>());
    assert_eq!(warned_within(40, one, ahead), (2..19).collect::<Vec<_>>());
    // It stands still.
    assert_eq!(warned(one, |_| START), (2..48).collect::<Vec<_>>());
}

#[test]
fn a_moment_is_never_later_than_now() {
    let (mut judge, settings) = (Judge::default(), Settings::default());
    let since = |verdict: Verdict| verdict.reasons.first().map(|reason| reason.since);
    assert_eq!(since(judge.judge(&facts(Bits(8)), &settings, START)), Some(START));
    assert_eq!(since(judge.judge(&facts(Bits(8)), &settings, START + HOUR)), Some(START));
    let back = START - 9 * HOUR;
    assert_eq!(since(judge.judge(&facts(Bits(8)), &settings, back)), Some(back));
    assert_eq!(since(judge.judge(&facts(Bits(8)), &settings, START)), Some(back));
}

#[test]
fn rises_are_bounded_and_none_is_forgotten_early() {
    let (mut judge, settings) = (Judge::default(), Settings::default());
    for minute in 0..200 {
        let reading = facts(Media(u128::from(minute)));
        judge.judge(&reading, &settings, START + minute * MINUTE);
    }
    assert_eq!(judge.media_errors.lately(), 199);
    let stored = serde_json::to_string(&judge).expect("written");
    assert!(stored.len() < 2_000, "{}", stored.len());
    assert_eq!(serde_json::from_str::<Judge>(&stored).expect("read"), judge);
}

#[test]
fn a_judge_that_was_stored_goes_on() {
    let readings = [Bits(8), Nothing, Lanes(1, 16), Lanes(1, 16), Media(9), Celsius(75), Nothing];
    let settings = Settings::default();
    let (mut judge, mut stored) = (Judge::default(), Judge::default());
    for (minute, reading) in (0..).zip(readings) {
        let now = START + minute * MINUTE;
        let text = serde_json::to_string(&stored).expect("written");
        stored = serde_json::from_str(&text).expect("read");
        let verdict = judge.judge(&facts(reading), &settings, now);
        assert_eq!(stored.judge(&facts(reading), &settings, now), verdict);
    }
    assert_eq!(stored, judge);
    assert!(serde_json::from_str::<Judge>("{}").expect("read") == Judge::default());
}

#[test]
fn reasons_say_what_is_and_what_to_do_the_gravest_first() {
    let mut judge = Judge::default();
    let settings = Settings::default();
    judge.judge(&well(), &settings, START);
    let mut bad = facts(Bits(0b1111_1100));
    if let Some(smart) = &mut bad.smart {
        (smart.spare_percent, smart.used_percent, smart.media_errors) = (3, 93, 8);
    }
    (bad.celsius, bad.errors, bad.timeouts) = (Some(71), Some(2), Some(1));
    bad.link = Some(super::Link {
        lanes: 2,
        max_lanes: 4,
        megatransfers: 2_500,
        max_megatransfers: 16_000,
    });
    judge.judge(&bad, &settings, START + 1);
    let verdict = judge.judge(&bad, &settings, START + 2);
    let told: Vec<_> = verdict.reasons.iter().map(|reason| reason.what.as_str()).collect();
    assert_eq!(
        told,
        [
            "3% of its spare capacity is left, less than its threshold of 10%",
            "it warns that it is no longer reliable",
            "it takes no more writes",
            "it may lose what is in its memory when power fails",
            "its persistent memory region is read-only or unreliable",
            "it warns by bits that are not known: 0xc0",
            "it has 71 °C; it warns from 70 °C on, is in danger from 80 °C on",
            "93% of its life is used",
            "1 new media error",
            "2 new failed requests",
            "1 new request over the deadline",
            "its link has 2 of 4 lanes at 2.5 of 16 GT/s",
        ]
    );
    assert_eq!(verdict.level, Level::Critical);
    for reason in &verdict.reasons {
        assert_eq!(reason.action, reason.rule.row().action);
        assert!(!reason.action.is_empty() && !reason.action.contains('\n'));
        let by_link = reason.rule == Rule::Link;
        assert_eq!(reason.since, START + 1 + u64::from(by_link), "{reason:?}");
    }
    // Numbers follow while a condition says so, and stay when it only waits to be cleared.
    let verdict = judge.judge(&facts(Used(94)), &settings, START + 3);
    let what = |rule| {
        let own = verdict.reasons.iter().find(|reason| reason.rule == rule);
        own.map(|reason| reason.what.clone()).unwrap_or_default()
    };
    assert_eq!(what(Rule::Wear), "94% of its life is used");
    assert!(what(Rule::Spare).starts_with("3%"));
}

#[test]
fn rules_have_names_of_their_own_that_are_stored() {
    let mut names: Vec<_> = Rule::ALL.iter().map(|rule| rule.row().name).collect();
    for rule in Rule::ALL {
        assert_eq!(serde_json::to_value(rule).expect("a word"), rule.row().name);
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Rule::ALL.len());
}

#[test]
fn the_date_of_wear_is_known_by_readings() {
    let mut judge = Judge::default();
    let day = 86_400;
    for (at, used) in [(0, 50), (10, 51), (20, 52), (30, 53)] {
        judge.judge(&facts(Used(used)), &Settings::default(), START + at * day);
    }
    assert_eq!(judge.worn_out(START + 30 * day), Some(START + 500 * day));
}
