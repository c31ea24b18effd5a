use super::*;
use crate::skan::document::{Condition, ConversionValue, WINDOWS_MAX};
use crate::skan::warning::warnings;
use proptest::prelude::*;
use rstest::rstest;

fn events(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn amounts(units: &[i64]) -> Vec<Amount> {
    let micros = units.iter().map(|unit| unit * 1_000_000);
    micros.map(Amount::from_micros).collect()
}

fn values(preset: &Preset, window: usize) -> Vec<ConversionValue> {
    let document = document(preset, Currency::USD).unwrap();
    document.windows[window].values.clone()
}

/// Returns name, fine value and coarse value of each value.
fn summary(values: &[ConversionValue]) -> Vec<(&str, Option<u8>, &str)> {
    let summary = |value: &'_ ConversionValue| (value.fine_value, value.coarse_value.as_str());
    values
        .iter()
        .map(|value| {
            let (fine, coarse) = summary(value);
            (value.name.as_str(), fine, coarse)
        })
        .collect()
}

#[test]
fn revenue_buckets_rise_with_the_revenue() {
    let preset = Preset::RevenueBuckets {
        event: "purchase".to_owned(),
        bounds: amounts(&[1, 10, 50]),
    };
    let first = values(&preset, 0);
    let expected = [
        ("50 or more", Some(3), "high"),
        ("10 to 50", Some(2), "medium"),
        ("1 to 10", Some(1), "low"),
        ("Install", Some(0), "low"),
    ];
    assert_eq!(summary(&first), expected);
    let middle = &first[1].conditions[0];
    let bounds = (middle.min_revenue, middle.max_revenue);
    assert_eq!(bounds, (Some(amounts(&[10])[0]), Some(amounts(&[50])[0])));
    assert_eq!(first[0].conditions[0].max_revenue, None);
    let later = values(&preset, 2);
    let expected = [
        ("50 or more", None, "high"),
        ("10 to 50", None, "medium"),
        ("1 to 10", None, "low"),
    ];
    assert_eq!(summary(&later), expected);
}

#[test]
fn a_funnel_ranks_the_last_event_highest() {
    let preset = Preset::Funnel {
        events: events(&["sign_up", "start_trial", "purchase"]),
    };
    let expected = [
        ("purchase", Some(3), "high"),
        ("start_trial", Some(2), "medium"),
        ("sign_up", Some(1), "low"),
        ("Install", Some(0), "low"),
    ];
    assert_eq!(summary(&values(&preset, 0)), expected);
}

#[test]
fn event_bits_add_up() {
    let preset = Preset::EventBits {
        events: events(&["a", "b", "c"]),
    };
    let expected = [
        ("a + b + c", Some(7), "high"),
        ("b + c", Some(6), "high"),
        ("a + c", Some(5), "high"),
        ("c", Some(4), "medium"),
        ("a + b", Some(3), "medium"),
        ("b", Some(2), "low"),
        ("a", Some(1), "low"),
        ("Install", Some(0), "low"),
    ];
    assert_eq!(summary(&values(&preset, 0)), expected);
}

#[test]
fn six_event_bits_skip_combinations_of_more_than_three() {
    let preset = Preset::EventBits {
        events: events(&["a", "b", "c", "d", "e", "f"]),
    };
    let all = values(&preset, 0);
    // 6 single events, 15 pairs, 20 triples, and the install.
    assert_eq!(all.len(), 42);
    assert_eq!(summary(&all)[0], ("d + e + f", Some(56), "high"));
    for value in &all {
        let bits = u32::from(value.fine_value.unwrap()).count_ones() as usize;
        let named = |condition: &&Condition| condition.event != INSTALL_EVENT;
        assert_eq!(value.conditions.iter().filter(named).count(), bits);
    }
}

#[test]
fn long_names_are_replaced_or_truncated() {
    let long: Vec<String> = ["a", "b"].iter().map(|one| one.repeat(60)).collect();
    let bits = values(
        &Preset::EventBits {
            events: long.clone(),
        },
        0,
    );
    assert_eq!(bits[0].name, "Value 3");
    let funnel = values(&Preset::Funnel { events: long }, 0);
    assert_eq!(funnel[0].name, "b".repeat(VALUE_NAME_CHARS_MAX));
}

#[rstest]
#[case::buckets(Preset::RevenueBuckets { event: "purchase".to_owned(), bounds: amounts(&[1, 5, 9]) })]
#[case::most_buckets(Preset::RevenueBuckets {
    event: "purchase".to_owned(),
    bounds: amounts(&(1..=63).collect::<Vec<_>>()),
})]
#[case::funnel(Preset::Funnel { events: events(&["a", "b"]) })]
#[case::longest_funnel(Preset::Funnel { events: (1..=63).map(|n| format!("e{n}")).collect() })]
#[case::bits(Preset::EventBits { events: events(&["a", "b", "c"]) })]
fn a_preset_has_no_warnings_and_is_disabled(#[case] preset: Preset) {
    let document = document(&preset, Currency::USD).unwrap();
    assert_eq!(warnings(&document), []);
    assert!(!document.enabled && !document.accept_test_signals);
    assert_eq!(document.windows.len(), WINDOWS_MAX);
}

#[rstest]
#[case::no_bounds(Preset::RevenueBuckets { event: "p".to_owned(), bounds: vec![] }, "bounds", FaultCode::TooShort)]
#[case::too_many_bounds(
    Preset::RevenueBuckets { event: "p".to_owned(), bounds: amounts(&(1..=64).collect::<Vec<_>>()) },
    "bounds", FaultCode::TooLong)]
#[case::falling_bounds(Preset::RevenueBuckets { event: "p".to_owned(), bounds: amounts(&[5, 1]) }, "bounds", FaultCode::OutOfRange)]
#[case::equal_bounds(Preset::RevenueBuckets { event: "p".to_owned(), bounds: amounts(&[5, 5]) }, "bounds", FaultCode::OutOfRange)]
#[case::from_0(Preset::RevenueBuckets { event: "p".to_owned(), bounds: amounts(&[0, 5]) }, "bounds", FaultCode::OutOfRange)]
#[case::no_events(Preset::Funnel { events: vec![] }, "events", FaultCode::TooShort)]
#[case::too_many_stages(
    Preset::Funnel { events: (0..64).map(|n| format!("e{n}")).collect() }, "events", FaultCode::TooLong)]
#[case::an_event_twice(Preset::Funnel { events: events(&["a", "a"]) }, "events", FaultCode::Duplicate)]
#[case::the_install(Preset::EventBits { events: events(&["install"]) }, "events", FaultCode::NotAllowed)]
#[case::seven_bits(
    Preset::EventBits { events: events(&["a", "b", "c", "d", "e", "f", "g"]) }, "events", FaultCode::TooLong)]
fn rejects_invalid_presets(#[case] preset: Preset, #[case] field: &str, #[case] code: FaultCode) {
    let faults = document(&preset, Currency::USD).unwrap_err();
    let found: Vec<_> = faults
        .iter()
        .map(|one| (one.field.as_str(), one.code))
        .collect();
    assert_eq!(found, [(field, code)]);
}

#[test]
fn event_names_are_validated() {
    let preset = Preset::Funnel {
        events: events(&["", "b"]),
    };
    let faults = document(&preset, Currency::USD).unwrap_err();
    assert!(!faults.is_empty());
}

proptest! {
    #[test]
    fn a_preset_returns_a_document_or_faults(
        names in prop::collection::vec(".{0,60}", 0..70),
        units in prop::collection::vec(-1..1_000_i64, 0..70),
    ) {
        let presets = [
            Preset::Funnel { events: names.clone() },
            Preset::EventBits { events: names.clone() },
            Preset::RevenueBuckets { event: names.concat(), bounds: amounts(&units) },
        ];
        for preset in presets {
            match document(&preset, Currency::USD) {
                Ok(document) => prop_assert_eq!(document.windows.len(), WINDOWS_MAX),
                Err(faults) => prop_assert!(!faults.is_empty()),
            }
        }
    }
}
