//! Cases that the shared table lacks; `tests/conversion_values.rs` runs the table itself.

use super::*;
use crate::skan::document::{FINE_VALUE_MAX, INSTALL_EVENT};
use crate::skan::samples::{document, on, value, window};
use proptest::prelude::*;
use rstest::rstest;

#[rstest]
#[case::launch(0, Some(0))]
#[case::end_of_the_first(48 * 3_600 - 1, Some(0))]
#[case::second(48 * 3_600, Some(1))]
#[case::end_of_the_second(168 * 3_600 - 1, Some(1))]
#[case::third(168 * 3_600, Some(2))]
#[case::end_of_the_third(840 * 3_600 - 1, Some(2))]
#[case::over(840 * 3_600, None)]
#[case::long_over(u64::MAX, None)]
fn window_boundaries(#[case] seconds: u64, #[case] expected: Option<u8>) {
    assert_eq!(window_at(Duration::from_secs(seconds)), expected);
}

fn cached(document: Document) -> CachedDocument {
    CachedDocument {
        document,
        rates: vec![(
            Currency::parse("EUR").unwrap(),
            RateValue::parse("1.5").unwrap(),
        )],
        server: Vec::new(),
        fetched_at: Duration::ZERO,
        max_age: DOCUMENT_AGE_MAX,
    }
}

#[rstest]
#[case::a_third_of_a_millionth_is_none(1, "0.333333333", 0)]
#[case::a_half_is_one(1, "0.5", 1)]
#[case::a_negative_half_is_minus_one(-1, "0.5", -1)]
#[case::just_below_a_half_is_none(1, "0.499999999", 0)]
#[case::exact(2_000_000, "1.5", 3_000_000)]
#[case::more_than_fits(i64::MAX, "2", 0)]
fn conversion_rounds_once_to_the_nearest_millionth(
    #[case] micros: i64,
    #[case] rate: &str,
    #[case] expected: i64,
) {
    let euro = Currency::parse("EUR").unwrap();
    let mut cached = cached(document(&[]));
    cached.rates = vec![(euro, RateValue::parse(rate).unwrap())];
    let event = TrackedEvent {
        name: "purchase".to_owned(),
        revenue: Some((Amount::from_micros(micros), euro)),
    };
    let mut counters = Counters::default();
    counters.add(&event, &cached);
    let counter = counters.0["purchase"];
    assert_eq!((counter.count, counter.revenue.micros()), (1, expected));
}

#[test]
fn replay_returns_the_calls_of_a_device() {
    let values = [
        value("Paid", Some(40), &[on("purchase").at_least(2)]),
        value("Install", Some(0), &[on(INSTALL_EVENT).at_least(1)]),
    ];
    let cached = cached(document(&[window(0, &values)]));
    let purchase = TrackedEvent {
        name: "purchase".to_owned(),
        revenue: None,
    };
    let events = [1, 2, 3].map(|second| (Duration::from_secs(second), purchase.clone()));
    let calls: Vec<_> = replay(&cached, &events)
        .into_iter()
        .map(|(after, update)| (after, update.fine))
        .collect();
    assert_eq!(calls, [(0, 0), (2, 40)]);
}

fn step() -> impl Strategy<Value = (u64, u8, Option<i64>, bool)> {
    (
        0..4_000_000_u64,
        0..4_u8,
        prop::option::of(-100..100_i64),
        any::<bool>(),
    )
}

/// Returns a document with badly ordered values, locks and all windows.
fn awkward() -> Document {
    let all = |fine: bool| {
        let number = |number: u8| fine.then_some(number);
        let lock = ConversionValue {
            lock: true,
            coarse_value: CoarseValue::High,
            ..value("d", number(63), &[on("e3").at_least(4)])
        };
        let values = [
            value("a", number(3), &[on("e1").at_least(1).at_most(2)]),
            value("b", number(9), &[on("e2").from(10)]),
            lock,
            value("c", number(1), &[on(INSTALL_EVENT).at_least(0)]),
        ];
        values.to_vec()
    };
    document(&[
        window(0, &all(true)),
        window(1, &all(false)),
        window(2, &all(false)),
    ])
}

proptest! {
    #[test]
    fn every_call_is_one_that_apple_accepts(
        mut steps in prop::collection::vec(step(), 0..40),
        in_order in any::<bool>(),
    ) {
        if in_order {
            steps.sort_unstable();
        }
        let cached = cached(awkward());
        let mut state = SkanDeviceState::default();
        let first = evaluate(Some(&cached), &state, Duration::ZERO, None);
        prop_assert!(first.update.is_some());
        state = first.state;
        for (at, event, revenue, known) in steps {
            let before = state.last_update.unwrap();
            let event = TrackedEvent {
                name: format!("e{event}"),
                revenue: revenue.map(|units| (Amount::from_micros(units * 1_000_000), Currency::USD)),
            };
            let device = known.then_some(&cached);
            let next = evaluate(device, &state, Duration::from_secs(at), Some(&event));
            if let Some(update) = next.update {
                prop_assert!(update.window >= before.window);
                prop_assert!(update.fine <= FINE_VALUE_MAX);
                prop_assert_ne!(update, before);
                if update.window == before.window {
                    prop_assert!(!before.lock);
                    prop_assert!(update.fine >= before.fine);
                }
                prop_assert_eq!(next.state.last_update, Some(update));
            } else {
                prop_assert_eq!(next.state.last_update, Some(before));
            }
            state = next.state;
        }
    }
}
