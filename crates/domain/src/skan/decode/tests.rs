use super::*;
use crate::skan::document::Window;
use crate::skan::samples::{document, on, value, window};
use proptest::prelude::*;
use rstest::rstest;

const DAY: i64 = 86_400_000;

fn day(number: i64) -> Timestamp {
    Timestamp::from_millis(number * DAY)
}

fn version(number: i64, from: i64, windows: &[Window]) -> DocumentVersion {
    DocumentVersion {
        number,
        applies_from: day(from),
        document: document(windows),
    }
}

/// Returns a window 0 in which value 40 means a purchase, with the given name.
fn paid(name: &str) -> Window {
    window(0, &[value(name, Some(40), &[on("purchase").at_least(1)])])
}

/// Returns a window 0 in which value 40 means a trial.
fn trial() -> Window {
    window(
        0,
        &[value("Trial", Some(40), &[on("start_trial").at_least(1)])],
    )
}

/// Returns the state and the names by version.
fn summary(decoded: &DecodedValue) -> (&'static str, Vec<(i64, Vec<&str>)>) {
    let interpretations: Vec<&Interpretation> = match decoded {
        DecodedValue::Withheld | DecodedValue::Undecoded => Vec::new(),
        DecodedValue::Decoded(interpretation) => vec![interpretation],
        DecodedValue::Ambiguous(interpretations) => interpretations.iter().collect(),
    };
    let all = interpretations
        .into_iter()
        .map(|interpretation| (interpretation.version, interpretation.names().collect()));
    (decoded.as_str(), all.collect())
}

fn fine(number: u8, received: i64, versions: &[DocumentVersion]) -> DecodedValue {
    decode(ReportedValue::Fine(number), 0, day(received), versions)
}

#[test]
fn a_missing_value_is_withheld_and_not_zero() {
    let versions = [version(1, 0, &[paid("Paid")])];
    let found = decode(ReportedValue::Nothing, 0, day(1), &versions);
    assert_eq!(summary(&found), ("withheld", vec![]));
}

#[rstest]
#[case::never_configured(vec![])]
#[case::another_number(vec![version(1, 0, &[window(0, &[value("A", Some(1), &[on("a").at_least(1)])])])])]
#[case::another_window(vec![version(1, 0, &[window(1, &[value("A", None, &[on("a").at_least(1)])])])])]
#[case::a_disabled_window(vec![version(1, 0, &[Window { enabled: false, ..paid("Paid") }])])]
#[case::a_later_document(vec![version(1, 11, &[paid("Paid")])])]
fn a_value_without_a_meaning_is_undecoded(#[case] versions: Vec<DocumentVersion>) {
    assert_eq!(summary(&fine(40, 10, &versions)), ("undecoded", vec![]));
}

#[test]
fn one_version_gives_one_meaning() {
    let versions = [version(3, 0, &[paid("Paid")])];
    assert_eq!(
        summary(&fine(40, 10, &versions)),
        ("decoded", vec![(3, vec!["Paid"])])
    );
    let DecodedValue::Decoded(interpretation) = fine(40, 10, &versions) else {
        panic!("decoded");
    };
    assert_eq!(
        (interpretation.window, interpretation.currency),
        (0, Currency::USD)
    );
    assert_eq!(
        interpretation.values,
        versions[0].document.windows[0].values
    );
}

#[rstest]
#[case::the_day_of_the_change(100, "ambiguous")]
#[case::the_day_before_it(99, "decoded")]
#[case::one_day_inside_the_horizon(147, "ambiguous")]
#[case::at_the_horizon(148, "decoded")]
#[case::one_day_outside_the_horizon(149, "decoded")]
fn a_change_is_ambiguous_for_48_days(#[case] received: i64, #[case] expected: &str) {
    let versions = [version(1, 0, &[paid("Paid")]), version(2, 100, &[trial()])];
    let found = fine(40, received, &versions);
    assert_eq!(found.as_str(), expected);
    if expected == "ambiguous" {
        let both = vec![(2, vec!["Trial"]), (1, vec!["Paid"])];
        assert_eq!(summary(&found), ("ambiguous", both));
    }
    let until = ambiguous_until(day(100));
    assert_eq!(day(received) >= until, received >= 148);
}

#[test]
fn renaming_keeps_the_meaning_and_shows_the_newest_name() {
    let versions = [
        version(1, 0, &[paid("Paid")]),
        version(2, 100, &[paid("Payer")]),
    ];
    let expected = ("decoded", vec![(2, vec!["Payer"])]);
    assert_eq!(summary(&fine(40, 110, &versions)), expected);
    let reversed: Vec<DocumentVersion> = versions.into_iter().rev().collect();
    assert_eq!(summary(&fine(40, 110, &reversed)), expected);
}

#[test]
fn a_version_that_cannot_have_produced_the_value_is_ignored() {
    let more = window(
        0,
        &[
            value("Paid", Some(40), &[on("purchase").at_least(1)]),
            value("Trial", Some(20), &[on("start_trial").at_least(1)]),
        ],
    );
    let versions = [version(1, 0, &[paid("Paid")]), version(2, 100, &[more])];
    assert_eq!(
        summary(&fine(20, 110, &versions)),
        ("decoded", vec![(2, vec!["Trial"])])
    );
    assert_eq!(
        summary(&fine(40, 110, &versions)),
        ("decoded", vec![(2, vec!["Paid"])])
    );
    let taken_out = [versions[1].clone(), version(3, 120, &[paid("Paid")])];
    assert_eq!(
        summary(&fine(20, 130, &taken_out)),
        ("decoded", vec![(2, vec!["Trial"])])
    );
    assert_eq!(summary(&fine(20, 168, &taken_out)), ("undecoded", vec![]));
}

#[test]
fn changing_back_is_still_ambiguous() {
    let versions = [
        version(1, 0, &[paid("Paid")]),
        version(2, 100, &[trial()]),
        version(3, 101, &[paid("Buyer")]),
    ];
    let both = vec![(3, vec!["Buyer"]), (2, vec!["Trial"])];
    assert_eq!(summary(&fine(40, 110, &versions)), ("ambiguous", both));
    assert_eq!(
        summary(&fine(40, 149, &versions)),
        ("decoded", vec![(3, vec!["Buyer"])])
    );
}

#[test]
fn two_values_with_one_fine_value_decode_to_both_names() {
    let or = |first: &str, second: &str| {
        let conditions = |event: &str| [on(event).at_least(1)];
        window(
            0,
            &[
                value(first, Some(5), &conditions(first)),
                value(second, Some(5), &conditions(second)),
            ],
        )
    };
    let versions = [
        version(1, 0, &[or("a", "b")]),
        version(2, 100, &[or("b", "a")]),
    ];
    assert_eq!(
        summary(&fine(5, 110, &versions)),
        ("decoded", vec![(2, vec!["b", "a"])])
    );
}

#[test]
fn a_coarse_value_of_window_0_decodes_to_all_its_values() {
    let high = |name: &str, number: u8| ConversionValue {
        coarse_value: CoarseValue::High,
        ..value(name, Some(number), &[on(name).at_least(1)])
    };
    let low = value("install", Some(0), &[on("install").at_least(1)]);
    let versions = [version(
        1,
        0,
        &[window(0, &[high("x", 9), high("y", 8), low])],
    )];
    let found = decode(
        ReportedValue::Coarse(CoarseValue::High),
        0,
        day(1),
        &versions,
    );
    assert_eq!(summary(&found), ("decoded", vec![(1, vec!["x", "y"])]));
    let found = decode(
        ReportedValue::Coarse(CoarseValue::Medium),
        0,
        day(1),
        &versions,
    );
    assert_eq!(summary(&found), ("undecoded", vec![]));
}

#[test]
fn later_windows_have_their_own_meanings() {
    let second = window(1, &[value("Active", None, &[on("open").at_least(1)])]);
    let versions = [version(1, 0, &[paid("Paid"), second])];
    let found = decode(
        ReportedValue::Coarse(CoarseValue::Low),
        1,
        day(1),
        &versions,
    );
    assert_eq!(summary(&found), ("decoded", vec![(1, vec!["Active"])]));
    let found = decode(ReportedValue::Fine(40), 1, day(1), &versions);
    assert_eq!(summary(&found), ("undecoded", vec![]));
}

#[rstest]
#[case::of_an_amount(on("purchase").from(5), "ambiguous")]
#[case::of_a_count(on("purchase").at_least(5), "decoded")]
fn a_currency_change_affects_amounts_only(#[case] condition: Condition, #[case] expected: &str) {
    let windows = [window(0, &[value("Paid", Some(40), &[condition])])];
    let mut euros = version(2, 100, &windows);
    euros.document.currency = Currency::parse("EUR").unwrap();
    let versions = [version(1, 0, &windows), euros];
    assert_eq!(fine(40, 110, &versions).as_str(), expected);
}

#[rstest]
#[case::a_range(vec![vec![on("a").from(5).below(9)]], Some((5, Some(9))))]
#[case::without_end(vec![vec![on("a").from(5)]], Some((5, None)))]
#[case::without_start(vec![vec![on("a").below(9)]], Some((0, Some(9))))]
#[case::counts_only(vec![vec![on("a").at_least(5)]], None)]
#[case::with_a_count(vec![vec![on("a").from(5), on("b").at_least(1)]], Some((5, None)))]
#[case::two_events(vec![vec![on("a").from(5).below(9), on("b").from(1).below(2)]], Some((6, Some(11))))]
#[case::two_events_one_open(vec![vec![on("a").from(5).below(9), on("b").from(1)]], Some((6, None)))]
#[case::one_event_twice(vec![vec![on("a").from(5), on("a").below(9)]], Some((5, Some(9))))]
#[case::one_event_twice_turned(vec![vec![on("a").below(9), on("a").from(5)]], Some((5, Some(9))))]
#[case::two_values(vec![vec![on("a").from(5).below(9)], vec![on("a").from(9).below(20)]], Some((5, Some(20))))]
#[case::two_values_one_open(vec![vec![on("a").from(5).below(9)], vec![on("a").from(9)]], Some((5, None)))]
#[case::two_values_one_silent(vec![vec![on("a").from(5)], vec![on("b").at_least(1)]], None)]
#[case::two_values_the_first_silent(vec![vec![on("b").at_least(1)], vec![on("a").from(5)]], None)]
fn revenue_ranges(
    #[case] conditions: Vec<Vec<Condition>>,
    #[case] expected: Option<(i64, Option<i64>)>,
) {
    let values = conditions.iter().map(|all| value("x", Some(1), all));
    let interpretation = Interpretation {
        version: 1,
        window: 0,
        currency: Currency::USD,
        values: values.collect(),
    };
    let found = interpretation.revenue();
    let found = found.map(|range| (range.min.micros(), range.max.map(Amount::micros)));
    assert_eq!(found, expected);
}

proptest! {
    #[test]
    fn decoding_never_panics_and_states_are_consistent(
        number in any::<u8>(),
        index in any::<u8>(),
        received in any::<i64>(),
        from in prop::collection::vec((any::<i64>(), any::<i64>(), any::<bool>()), 0..5),
    ) {
        let versions: Vec<DocumentVersion> = from
            .into_iter()
            .map(|(number, from, first)| DocumentVersion {
                number,
                applies_from: Timestamp::from_millis(from),
                document: document(&[if first { paid("Paid") } else { trial() }]),
            })
            .collect();
        let at = Timestamp::from_millis(received);
        let found = decode(ReportedValue::Fine(number), index, at, &versions);
        match found {
            DecodedValue::Ambiguous(interpretations) => prop_assert!(interpretations.len() > 1),
            DecodedValue::Decoded(interpretation) => prop_assert!(!interpretation.values.is_empty()),
            DecodedValue::Undecoded => {}
            DecodedValue::Withheld => prop_assert!(false),
        }
    }
}

#[rstest]
#[case::never_configured(vec![], vec![(0, 100)])]
#[case::within(vec![version(1, 10, &[])], vec![(0, 10), (10, 58), (58, 100)])]
#[case::at_its_ends(vec![version(1, 0, &[]), version(2, 100, &[])], vec![(0, 48), (48, 100)])]
#[case::long_before(vec![version(1, -60, &[])], vec![(0, 100)])]
#[case::two(vec![version(1, -8, &[]), version(2, 40, &[])], vec![(0, 40), (40, 88), (88, 100)])]
fn a_period_is_split_where_meanings_change(
    #[case] versions: Vec<DocumentVersion>,
    #[case] expected: Vec<(i64, i64)>,
) {
    let expected: Vec<_> = expected
        .into_iter()
        .map(|(from, until)| (day(from), day(until)))
        .collect();
    assert_eq!(split_by_versions((day(0), day(100)), &versions), expected);
}
