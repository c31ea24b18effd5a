//! One event of a batch, read and checked apart from its neighbours.

use super::params::compact;
use super::raw::{Fields, Object, digits, integer, text, text_as};
use crate::fields::wrong_type;
use crate::state::ApiState;
use serde_json::value::RawValue;
use tributary_domain::event::sdk::{self, SdkEvent, occurred_at};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::id::EventId;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::text::{FOREIGN_ID_BYTES_MAX, event_name, without_nul};
use tributary_domain::vocabulary::time::{Timestamp, event_time};
use utoipa::ToSchema;

/// An event that is not taken.
#[derive(Debug)]
pub(super) struct Rejected {
    /// The id that its sender gave, where that was one.
    pub(super) given_id: Option<String>,
    pub(super) faults: Faults,
}

/// Reads the event at this place of its batch.
pub(super) fn read(
    raw: &RawValue,
    place: u16,
    received_at: Timestamp,
    state: &ApiState,
) -> Result<SdkEvent, Rejected> {
    let sent = sent(raw)?;
    let occurred_at = occurred_at(sent.said_at, received_at);
    let id = EventId::new(occurred_at, in_order(place, state.source.bytes()));
    Ok(SdkEvent {
        id,
        given_id: sent.given_id.unwrap_or_else(|| id.to_string()),
        name: sent.name,
        occurred_at,
        revenue: sent.revenue,
        currency: sent.currency,
        params: sent.params,
    })
}

/// Random bytes that begin with the place in the batch: events of one millisecond keep their order in the log.
fn in_order(place: u16, mut random: [u8; 10]) -> [u8; 10] {
    random[..2].copy_from_slice(&place.to_be_bytes());
    random
}

/// What was sent.
#[derive(Debug)]
struct Sent {
    given_id: Option<String>,
    name: String,
    said_at: Option<Timestamp>,
    revenue: Option<Amount>,
    currency: Option<Currency>,
    params: Option<String>,
}

fn sent(raw: &RawValue) -> Result<Sent, Rejected> {
    let mut faults = Faults::new();
    let Some(object) = Object::of(raw) else {
        faults.add("event", wrong_type("an object"));
        return Err(Rejected {
            given_id: None,
            faults,
        });
    };
    let mut fields = Fields::of(Some(object), String::new(), &mut faults);
    let given_id = fields.optional("eventId", text_as(given_id));
    let name = fields.required("name", text_as(event_name));
    let said_at = fields.optional("timestampMs", moment);
    let revenue = fields.optional("revenue", amount);
    let currency = fields.optional("currency", text_as(sdk::currency));
    let (has_revenue, has_currency) = (fields.has("revenue"), fields.has("currency"));
    let params = fields.optional("params", params);
    let (Some(name), true) = (name, faults.is_empty()) else {
        return Err(Rejected { given_id, faults });
    };
    // Money may stand among the parameters, too. There it is the app's own text: what cannot be read is none.
    let inside = params.as_ref().map(|(object, _)| object);
    let inner = |name| inside.and_then(|object| object.get(name));
    let inner_amount = || inner("revenue").and_then(|raw| amount(raw).ok());
    let inner_currency = || inner("currency").and_then(|raw| text_as(sdk::currency)(raw).ok());
    Ok(Sent {
        given_id,
        name,
        said_at,
        revenue: if has_revenue { revenue } else { inner_amount() },
        currency: if has_currency {
            currency
        } else {
            inner_currency()
        },
        params: params.map(|(_, text)| text),
    })
}

fn given_id(text: &str) -> Result<String, Problem> {
    without_nul(text)?;
    if text.is_empty() {
        return Err(Problem::new(FaultCode::TooShort, "Must not be empty."));
    }
    if text.len() > FOREIGN_ID_BYTES_MAX {
        let message = format!("Must have at most {FOREIGN_ID_BYTES_MAX} bytes.");
        return Err(Problem::new(FaultCode::TooLong, message));
    }
    Ok(text.to_owned())
}

/// When it happened. What cannot be read is a fault: without it a time would have to be made up.
fn moment(raw: &RawValue) -> Result<Timestamp, Problem> {
    event_time(integer(raw)?)
}

/// An amount: a number, or a decimal in a string. A number may carry a float's noise, a string is meant.
fn amount(raw: &RawValue) -> Result<Amount, Problem> {
    match (digits(raw), text(raw)) {
        (Ok(digits), _) => Amount::parse_number(digits),
        (_, Ok(text)) => Amount::parse_text(&text),
        _ => Err(wrong_type("a number or a decimal string")),
    }
}

fn params(raw: &RawValue) -> Result<(Object<'_>, String), Problem> {
    let object = Object::of(raw).ok_or_else(|| wrong_type("an object"))?;
    Ok((object, compact(raw)?))
}

/// An event.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(
    dead_code,
    reason = "describes what sent reads; a test compares the two"
)]
pub(super) struct EventFields {
    /// The same id again is a duplicate, whatever else differs. 1–255 bytes; absent: the service makes one.
    event_id: Option<String>,
    /// 1–255 characters of any kind.
    #[schema(min_length = 1, max_length = 255)]
    name: String,
    /// When it happened, in milliseconds since 1970; not before 2015. A time more than ten minutes after its arrival is
    /// clamped. Absent: now.
    #[schema(minimum = 1_420_070_400_000_i64)]
    timestamp_ms: Option<i64>,
    /// A number or a decimal string; also taken from `params`, where it does not stand here.
    #[schema(inline, value_type = Option<crate::choices::AmountChoice>)]
    revenue: Option<f64>,
    /// ISO 4217; also taken from `params`, where it does not stand here.
    currency: Option<String>,
    /// At most 16 KiB as compact JSON.
    params: Option<serde_json::Map<String, serde_json::Value>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn of(json: &str) -> Result<Sent, Rejected> {
        sent(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn a_name_is_all_it_takes() {
        let sent = of(r#"{"name": " Boss Defeated! \ud83d "}"#).unwrap();
        assert_eq!(sent.name, " Boss Defeated! \u{fffd}\u{fffd}\u{fffd} ");
        assert_eq!(
            (sent.given_id, sent.said_at, sent.revenue),
            (None, None, None)
        );
    }

    #[rstest]
    #[case::no_object("5", &[("event", "wrong_type")])]
    #[case::no_name("{}", &[("name", "required")])]
    #[case::empty_name(r#"{"name": ""}"#, &[("name", "too_short")])]
    #[case::nul(r#"{"name": "a\u0000"}"#, &[("name", "invalid_character")])]
    #[case::every_fault_at_once(
        r#"{"eventId": "", "name": 5, "timestampMs": -1, "revenue": true, "currency": "EURO", "params": []}"#,
        &[
            ("eventId", "too_short"), ("name", "wrong_type"), ("timestampMs", "out_of_range"),
            ("revenue", "wrong_type"), ("currency", "invalid_format"), ("params", "wrong_type"),
        ]
    )]
    #[case::time_in_a_text(r#"{"name": "a", "timestampMs": "1794727000000"}"#, &[("timestampMs", "wrong_type")])]
    #[case::fraction_of_a_time(r#"{"name": "a", "timestampMs": 1.5}"#, &[("timestampMs", "wrong_type")])]
    #[case::negative_float(r#"{"name": "a", "timestampMs": -1.0}"#, &[("timestampMs", "out_of_range")])]
    #[case::exponent_in_a_text(r#"{"name": "a", "revenue": "1e3"}"#, &[("revenue", "invalid_format")])]
    #[case::too_much(r#"{"name": "a", "revenue": 1e300}"#, &[("revenue", "out_of_range")])]
    fn what_is_rejected(#[case] json: &str, #[case] expected: &[(&str, &str)]) {
        let rejected = of(json).unwrap_err();
        let found: Vec<(&str, &str)> = rejected
            .faults
            .iter()
            .map(|fault| (fault.field.as_str(), fault.code.as_str()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_rejected_event_is_named_where_it_has_a_name() {
        assert_eq!(
            of(r#"{"eventId": "e1"}"#).unwrap_err().given_id.as_deref(),
            Some("e1")
        );
        assert_eq!(of(r#"{"eventId": 1}"#).unwrap_err().given_id, None);
    }

    #[rstest]
    #[case::top_level(r#""revenue": 9.99, "currency": "eur""#, Some("9.99"), Some("EUR"))]
    #[case::in_a_text(r#""revenue": "9.990""#, Some("9.99"), None)]
    #[case::noise(r#""revenue": 9.990000000000002"#, Some("9.99"), None)]
    #[case::inside(
        r#""params": {"revenue": "9.99", "currency": "USD"}"#,
        Some("9.99"),
        Some("USD")
    )]
    #[case::top_level_wins(
        r#""revenue": 1, "currency": "EUR", "params": {"revenue": 2, "currency": "USD"}"#,
        Some("1"),
        Some("EUR")
    )]
    #[case::each_for_itself(
        r#""revenue": 1, "params": {"revenue": 2, "currency": "USD"}"#,
        Some("1"),
        Some("USD")
    )]
    #[case::null_is_absent(r#""revenue": null, "params": {"revenue": 2}"#, Some("2"), None)]
    #[case::not_money_inside(r#""params": {"revenue": "a lot", "currency": 5}"#, None, None)]
    #[case::currency_alone(r#""currency": "USD""#, None, Some("USD"))]
    fn money(#[case] fields: &str, #[case] amount: Option<&str>, #[case] currency: Option<&str>) {
        let sent = of(&format!(r#"{{"name": "purchase", {fields}}}"#)).unwrap();
        assert_eq!(
            sent.revenue.map(|amount| amount.to_string()).as_deref(),
            amount
        );
        assert_eq!(sent.currency.as_ref().map(Currency::as_str), currency);
    }

    #[rstest]
    #[case::plain("1700000000000", 1_700_000_000_000)]
    #[case::float("1794727000000.0", 1_794_727_000_000)]
    #[case::exponent("1.794727e12", 1_794_727_000_000)]
    #[case::the_earliest("1420070400000", 1_420_070_400_000)]
    #[case::beyond_all_numbers("99999999999999999999", i64::MAX)]
    fn moments(#[case] millis: &str, #[case] expected: i64) {
        let sent = of(&format!(r#"{{"name": "a", "timestampMs": {millis}}}"#)).unwrap();
        assert_eq!(sent.said_at, Some(Timestamp::from_millis(expected)));
    }

    #[test]
    fn events_of_one_moment_keep_their_order() {
        let at = Timestamp::from_millis(1_700_000_000_000);
        let ids: Vec<EventId> = [(0, 255), (1, 0), (99, 7)]
            .map(|(place, random)| EventId::new(at, in_order(place, [random; 10])))
            .into();
        assert!(ids.is_sorted());
    }

    #[test]
    fn parameters_are_kept_as_they_were_sent() {
        let sent = of(r#"{"name": "a", "params": { "n": 1.10, "revenue": 5 }}"#).unwrap();
        assert_eq!(sent.params.as_deref(), Some(r#"{"n":1.10,"revenue":5}"#));
    }
}
