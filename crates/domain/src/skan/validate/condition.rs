//! Validates a condition: an event with bounds on its count and revenue.

use crate::skan::document::{Condition, EVENT_CHARS_MAX};
use crate::skan::draft::DraftCondition;
use crate::skan::field_path::FieldPath;
use crate::skan::validate::checks::{FieldResult, check_field, optional, report, required};
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::field_input::FieldInput;
use crate::vocabulary::money::Amount;
use crate::vocabulary::text;

/// Validates a condition.
pub(super) fn condition(
    draft: DraftCondition,
    path: FieldPath<'_>,
    faults: &mut Faults,
) -> FieldResult<Condition> {
    let bounded = require_bound(&draft, path, faults);
    let event = required(draft.event, path.field("event"), faults)
        .and_then(|name| event(name, path.field("event"), faults));
    let counts = bounds(
        (draft.min_count, draft.max_count),
        (0, "minCount"),
        (path.field("minCount"), path.field("maxCount")),
        faults,
    );
    let revenue = bounds(
        (draft.min_revenue, draft.max_revenue),
        (Amount::ZERO, "minRevenue"),
        (path.field("minRevenue"), path.field("maxRevenue")),
        faults,
    );
    bounded?;
    let (min_count, max_count) = counts?;
    let (min_revenue, max_revenue) = revenue?;
    Ok(Condition {
        event: event?,
        min_count,
        max_count,
        min_revenue,
        max_revenue,
    })
}

/// Validates an event name. It is not trimmed, because event names are compared exactly.
pub(super) fn event(name: String, path: FieldPath<'_>, faults: &mut Faults) -> FieldResult<String> {
    check_field(text::check_length(&name, 1, EVENT_CHARS_MAX), path, faults)?;
    Ok(name)
}

/// Requires at least one bound. A condition without bounds could mean "always" or "once the event
/// happened"; the sender has to say which.
fn require_bound(
    draft: &DraftCondition,
    path: FieldPath<'_>,
    faults: &mut Faults,
) -> FieldResult<()> {
    let counts = draft.min_count.is_present() || draft.max_count.is_present();
    let revenue = draft.min_revenue.is_present() || draft.max_revenue.is_present();
    if counts || revenue {
        return Ok(());
    }
    let message = "Must have at least one of minCount, maxCount, minRevenue, maxRevenue.";
    Err(report(
        path,
        Problem::new(FaultCode::Required, message),
        faults,
    ))
}

/// Validates two bounds: not negative, and the lower not above the upper. Equal bounds are allowed,
/// as documented, although no revenue lies between them.
fn bounds<T: Ord + Copy>(
    (min, max): (FieldInput<T>, FieldInput<T>),
    (zero, min_name): (T, &str),
    (min_path, max_path): (FieldPath<'_>, FieldPath<'_>),
    faults: &mut Faults,
) -> FieldResult<(Option<T>, Option<T>)> {
    let min = not_negative(min, zero, min_path, faults);
    let max = not_negative(max, zero, max_path, faults);
    let (min, max) = (min?, max?);
    match (min, max) {
        (Some(least), Some(most)) if least > most => {
            let message = format!("Must not be less than {min_name}.");
            Err(report(
                max_path,
                Problem::new(FaultCode::OutOfRange, message),
                faults,
            ))
        }
        bounds => Ok(bounds),
    }
}

fn not_negative<T: Ord + Copy>(
    input: FieldInput<T>,
    zero: T,
    path: FieldPath<'_>,
    faults: &mut Faults,
) -> FieldResult<Option<T>> {
    let bound = optional(input)?;
    if bound.is_some_and(|bound| bound < zero) {
        let problem = Problem::new(FaultCode::OutOfRange, "Must not be negative.");
        return Err(report(path, problem, faults));
    }
    Ok(bound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skan::samples::codes;
    use FieldInput::{Absent, Invalid, Value as V};
    use rstest::rstest;

    fn found(draft: DraftCondition) -> Vec<(String, FaultCode)> {
        let mut faults = Faults::new();
        let result = condition(draft, FieldPath::Root.field("c"), &mut faults);
        let found = codes(&faults);
        assert_eq!(result.is_ok(), found.is_empty());
        found
    }

    #[rstest]
    #[case::one_character("a".to_owned(), None)]
    #[case::a_hundred_characters_not_bytes("ä".repeat(100), None)]
    #[case::kept_with_its_white_space(" a ".to_owned(), None)]
    #[case::empty(String::new(), Some(FaultCode::TooShort))]
    #[case::a_hundred_and_one("a".repeat(101), Some(FaultCode::TooLong))]
    #[case::nul("a\0".to_owned(), Some(FaultCode::InvalidCharacter))]
    fn the_event_has_1_to_100_characters(
        #[case] event: String,
        #[case] expected: Option<FaultCode>,
    ) {
        let draft = DraftCondition {
            event: V(event),
            min_count: V(1),
            ..Default::default()
        };
        let expected: Vec<_> = expected
            .map(|code| ("c.event".to_owned(), code))
            .into_iter()
            .collect();
        assert_eq!(found(draft), expected);
    }

    #[rstest]
    #[case::min_alone(V(0), Absent, None)]
    #[case::max_alone(Absent, V(0), None)]
    #[case::equal(V(3), V(3), None)]
    #[case::crossed(V(3), V(2), Some("c.maxCount"))]
    #[case::negative_min(V(-1), Absent, Some("c.minCount"))]
    #[case::negative_max(Absent, V(-1), Some("c.maxCount"))]
    #[case::negative_and_crossed_is_one_fault(V(0), V(-1), Some("c.maxCount"))]
    fn counts_are_not_negative_and_in_order(
        #[case] min_count: FieldInput<i64>,
        #[case] max_count: FieldInput<i64>,
        #[case] faulty: Option<&str>,
    ) {
        let event = V("purchase".to_owned());
        let draft = DraftCondition {
            event,
            min_count,
            max_count,
            ..Default::default()
        };
        let expected: Vec<_> = faulty
            .map(|field| (field.to_owned(), FaultCode::OutOfRange))
            .into_iter()
            .collect();
        assert_eq!(found(draft), expected);
    }

    #[rstest]
    #[case::min_alone(V(0), Absent, None)]
    #[case::max_alone(Absent, V(0), None)]
    #[case::equal(V(1), V(1), None)]
    #[case::crossed_by_a_millionth(V(2), V(1), Some("c.maxRevenue"))]
    #[case::negative_min(V(-1), Absent, Some("c.minRevenue"))]
    #[case::negative_max(Absent, V(-1), Some("c.maxRevenue"))]
    fn revenue_is_not_negative_and_in_order(
        #[case] min_micros: FieldInput<i64>,
        #[case] max_micros: FieldInput<i64>,
        #[case] faulty: Option<&str>,
    ) {
        let amount = |input| match input {
            V(micros) => V(Amount::from_micros(micros)),
            Invalid => Invalid,
            Absent => Absent,
        };
        let draft = DraftCondition {
            event: V("purchase".to_owned()),
            min_revenue: amount(min_micros),
            max_revenue: amount(max_micros),
            ..Default::default()
        };
        let expected: Vec<_> = faulty
            .map(|field| (field.to_owned(), FaultCode::OutOfRange))
            .into_iter()
            .collect();
        assert_eq!(found(draft), expected);
    }

    #[test]
    fn a_condition_needs_an_event_and_a_bound() {
        let expected = [
            ("c".to_owned(), FaultCode::Required),
            ("c.event".to_owned(), FaultCode::Required),
        ];
        assert_eq!(found(DraftCondition::default()), expected);
    }

    #[test]
    fn a_bound_of_the_wrong_type_is_still_a_bound() {
        let mut faults = Faults::new();
        let event = V("purchase".to_owned());
        let draft = DraftCondition {
            event,
            max_revenue: Invalid,
            ..Default::default()
        };
        assert!(condition(draft, FieldPath::Root.field("c"), &mut faults).is_err());
        assert!(faults.is_empty());
    }
}
