//! Decides whether conditions imply others.
//!
//! A device's state is a count and a revenue per event. The later value's conditions on an event
//! are combined into one [`EventRange`]. An earlier condition is implied if that range lies inside
//! the condition's own range. Three facts hold in every state: a count is never negative, revenue
//! above zero takes at least one event, and in window 0 the install has happened.
//!
//! Nothing else is assumed. In particular revenue may be negative, since an event may have a
//! negative amount. A missed warning does little harm, but a false warning would make people
//! distrust all warnings.

use crate::skan::document::{Condition, FINE_VALUE_WINDOW, INSTALL_EVENT};
use crate::vocabulary::money::Amount;

/// Counts from `min_count` to `max_count`, revenue from `min_revenue` to below `max_revenue`.
/// `None` means no bound.
#[derive(Debug, Clone, Copy)]
struct EventRange {
    min_count: i64,
    max_count: Option<i64>,
    min_revenue: Option<Amount>,
    max_revenue: Option<Amount>,
}

impl EventRange {
    /// Returns the range of an event without any condition on it.
    fn before_conditions(event: &str, window: u8) -> Self {
        // Counters start at zero in every window, so the install counts only in window 0.
        let installed = event == INSTALL_EVENT && window == FINE_VALUE_WINDOW;
        let min_count = i64::from(installed);
        Self {
            min_count,
            max_count: None,
            min_revenue: None,
            max_revenue: None,
        }
    }

    fn of(condition: &Condition) -> Self {
        let paid = condition
            .min_revenue
            .is_some_and(|bound| bound > Amount::ZERO);
        Self {
            min_count: condition.min_count.unwrap_or(0).max(i64::from(paid)),
            max_count: condition.max_count,
            min_revenue: condition.min_revenue,
            max_revenue: condition.max_revenue,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            min_count: self.min_count.max(other.min_count),
            max_count: lower(self.max_count, other.max_count),
            // `None` orders below any lower bound.
            min_revenue: self.min_revenue.max(other.min_revenue),
            max_revenue: lower(self.max_revenue, other.max_revenue),
        }
    }

    fn is_within(self, outer: Self) -> bool {
        self.min_count >= outer.min_count
            && is_not_above(self.max_count, outer.max_count)
            && self.min_revenue >= outer.min_revenue
            && is_not_above(self.max_revenue, outer.max_revenue)
    }
}

/// Returns the lower of two upper bounds.
fn lower<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn is_not_above<T: Ord>(inner: Option<T>, outer: Option<T>) -> bool {
    outer.is_none_or(|outer| inner.is_some_and(|inner| inner <= outer))
}

/// Returns whether all of `earlier` hold in this window whenever all of `later` do.
pub(super) fn implies(later: &[Condition], earlier: &[Condition], window: u8) -> bool {
    earlier.iter().all(|condition| {
        let known = later
            .iter()
            .filter(|other| other.event == condition.event)
            .map(EventRange::of)
            .fold(
                EventRange::before_conditions(&condition.event, window),
                EventRange::and,
            );
        known.is_within(EventRange::of(condition))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skan::samples::on;
    use proptest::prelude::*;
    use rstest::rstest;

    fn buy() -> Condition {
        on("purchase")
    }

    #[rstest]
    #[case::the_same(vec![buy().at_least(1)], vec![buy().at_least(1)])]
    #[case::a_higher_count(vec![buy().at_least(2)], vec![buy().at_least(1)])]
    #[case::a_lower_upper_count(vec![buy().at_most(1)], vec![buy().at_most(2)])]
    #[case::a_count_inside(vec![buy().at_least(2).at_most(3)], vec![buy().at_least(1).at_most(3)])]
    #[case::an_upper_count_where_there_was_none(
        vec![buy().at_least(1).at_most(3)], vec![buy().at_least(1)])]
    #[case::higher_revenue(vec![buy().from(50)], vec![buy().from(20)])]
    #[case::revenue_with_the_same_upper_bound(
        vec![buy().from(20).below(50)], vec![buy().from(10).below(50)])]
    #[case::revenue_beside_a_count(vec![buy().at_least(1).from(50)], vec![buy().at_least(1)])]
    #[case::revenue_takes_an_event(vec![buy().from(1)], vec![buy().at_least(1)])]
    #[case::one_more_event(
        vec![buy().at_least(1), on("login").at_least(1)], vec![buy().at_least(1)])]
    #[case::the_same_in_another_order(
        vec![buy().at_least(1), on("login").at_least(1)],
        vec![on("login").at_least(1), buy().at_least(1)])]
    #[case::two_conditions_that_are_one(
        vec![buy().at_least(2), buy().at_most(3)], vec![buy().at_least(1).at_most(4)])]
    #[case::one_condition_that_is_two(
        vec![buy().at_least(2).from(5)], vec![buy().at_least(1), buy().from(5)])]
    #[case::a_bound_that_always_holds(vec![on("login").at_least(1)], vec![buy().at_least(0)])]
    fn implies_the_same_or_weaker_conditions(
        #[case] later: Vec<Condition>,
        #[case] earlier: Vec<Condition>,
    ) {
        assert!(implies(&later, &earlier, 1));
    }

    #[rstest]
    #[case::a_lower_count(vec![buy().at_least(1)], vec![buy().at_least(2)])]
    #[case::a_higher_upper_count(vec![buy().at_most(3)], vec![buy().at_most(2)])]
    #[case::no_upper_count(vec![buy().at_least(1)], vec![buy().at_least(1).at_most(3)])]
    #[case::lower_revenue(vec![buy().from(20)], vec![buy().from(50)])]
    #[case::higher_upper_revenue(vec![buy().below(51)], vec![buy().below(50)])]
    #[case::neighbouring_revenue(vec![buy().from(50).below(90)], vec![buy().from(20).below(50)])]
    #[case::a_count_says_nothing_of_revenue(vec![buy().at_least(9)], vec![buy().from(1)])]
    #[case::no_revenue_takes_no_event(vec![buy().from(0)], vec![buy().at_least(1)])]
    #[case::revenue_takes_one_event_not_two(vec![buy().from(50)], vec![buy().at_least(2)])]
    #[case::revenue_could_be_negative(vec![buy().at_least(1)], vec![buy().from(0)])]
    #[case::another_event(vec![on("login").at_least(1)], vec![buy().at_least(1)])]
    #[case::another_spelling(vec![on("Purchase").at_least(1)], vec![buy().at_least(1)])]
    #[case::one_event_fewer(
        vec![buy().at_least(1)], vec![buy().at_least(1), on("login").at_least(1)])]
    fn does_not_imply_other_conditions(
        #[case] later: Vec<Condition>,
        #[case] earlier: Vec<Condition>,
    ) {
        assert!(!implies(&later, &earlier, 1));
    }

    #[rstest]
    #[case::window_0_begins_with_the_install(0, on(INSTALL_EVENT).at_least(1), true)]
    #[case::but_with_one_only(0, on(INSTALL_EVENT).at_least(2), false)]
    #[case::an_app_may_send_more_of_them(0, on(INSTALL_EVENT).at_most(1), false)]
    #[case::window_1_begins_without_it(1, on(INSTALL_EVENT).at_least(1), false)]
    #[case::window_2_begins_without_it(2, on(INSTALL_EVENT).at_least(1), false)]
    fn the_install_holds_in_window_0_only(
        #[case] window: u8,
        #[case] earlier: Condition,
        #[case] expected: bool,
    ) {
        assert_eq!(implies(&[buy().at_least(1)], &[earlier], window), expected);
    }

    const EVENTS: [&str; 3] = [INSTALL_EVENT, "purchase", "login"];

    /// Generates conditions with small bounds, so that they often overlap.
    fn conditions() -> impl Strategy<Value = Vec<Condition>> {
        let count = || prop::option::of(0..4_i64);
        let revenue = || prop::option::of((0..4_i64).prop_map(Amount::from_micros));
        let condition = (0..EVENTS.len(), count(), count(), revenue(), revenue()).prop_map(
            |(event, min_count, max_count, min_revenue, max_revenue)| Condition {
                event: EVENTS[event].to_owned(),
                min_count,
                max_count,
                min_revenue,
                max_revenue,
            },
        );
        prop::collection::vec(condition, 1..=3)
    }

    /// Evaluates conditions as the SDK does, over counts and revenue of the events.
    fn hold(conditions: &[Condition], state: &[(i64, i64)]) -> bool {
        conditions.iter().all(|condition| {
            EVENTS
                .iter()
                .zip(state)
                .filter(|(event, _)| **event == condition.event)
                .all(|(_, (count, micros))| {
                    let revenue = Amount::from_micros(*micros);
                    condition.min_count.is_none_or(|min| *count >= min)
                        && condition.max_count.is_none_or(|max| *count <= max)
                        && condition.min_revenue.is_none_or(|min| revenue >= min)
                        && condition.max_revenue.is_none_or(|max| revenue < max)
                })
        })
    }

    proptest! {
        #[test]
        fn implied_conditions_hold_in_every_state(
            later in conditions(),
            earlier in conditions(),
            window in 0..3_u8,
            drawn in prop::collection::vec((0..4_i64, -2..5_i64), EVENTS.len()),
        ) {
            // No revenue without an event, and no window 0 without the install.
            let mut state: Vec<_> = drawn
                .iter()
                .map(|(count, micros)| (*count, if *count == 0 { 0 } else { *micros }))
                .collect();
            if window == FINE_VALUE_WINDOW {
                state[0].0 = state[0].0.max(1);
            }
            if implies(&later, &earlier, window) && hold(&later, &state) {
                prop_assert!(hold(&earlier, &state));
            }
        }
    }
}
