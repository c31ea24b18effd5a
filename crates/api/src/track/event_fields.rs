//! One event of a batch, read and checked apart from its neighbours.

use super::params::compact;
use crate::fields::{Fields, InputValue, amount, integer, text_as, value_as, wrong_type};
use crate::state::ApiState;
use tributary_domain::event::sdk::{self, SdkEvent, occurred_at};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::id::EventId;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::text::{
    EVENT_NAME_CHARS_MAX, EXTERNAL_ID_BYTES_MAX, parse_event_name, reject_nul,
};
use tributary_domain::vocabulary::time::{EARLIEST_EVENT, Timestamp, event_time};

/// An event that is not taken.
#[derive(Debug)]
pub(super) struct RejectedEvent {
    /// The id that its sender gave, where that was one.
    pub(super) external_id: Option<String>,
    pub(super) faults: Faults,
}

/// Completes the event at this place of its batch.
pub(super) fn into_sdk_event(
    sent: ParsedSdkEvent,
    place: u16,
    received_at: Timestamp,
    state: &ApiState,
) -> SdkEvent {
    let occurred_at = occurred_at(sent.client_timestamp, received_at);
    let id = EventId::new(
        occurred_at,
        ordered_random_bytes(place, state.runtime.random_bytes()),
    );
    SdkEvent {
        id,
        external_id: sent.external_id.unwrap_or_else(|| id.to_string()),
        name: sent.name,
        occurred_at,
        revenue: sent.revenue,
        currency: sent.currency,
        params: sent.params,
    }
}

/// Random bytes that begin with the place in the batch: events of one millisecond keep their order in the log.
fn ordered_random_bytes(place: u16, mut random: [u8; 10]) -> [u8; 10] {
    random[..2].copy_from_slice(&place.to_be_bytes());
    random
}

/// What was sent.
#[derive(Debug)]
pub(super) struct ParsedSdkEvent {
    external_id: Option<String>,
    name: String,
    client_timestamp: Option<Timestamp>,
    revenue: Option<Amount>,
    currency: Option<Currency>,
    params: Option<String>,
}

/// Reads one event of a batch.
pub(super) fn read(event: InputValue<'_>) -> Result<ParsedSdkEvent, RejectedEvent> {
    let mut faults = Faults::new();
    if !event.is_object() {
        faults.add("event", wrong_type("an object"));
        return Err(RejectedEvent {
            external_id: None,
            faults,
        });
    }
    let (given_id, sent) = fields(&mut Fields::lenient(event, &mut faults));
    let sent = sent.filter(|_| faults.is_empty());
    sent.ok_or(RejectedEvent {
        external_id: given_id,
        faults,
    })
}

/// Reads the fields of an event: its id, which a rejected one is named by, and all of it.
pub(super) fn fields(fields: &mut Fields<'_>) -> (Option<String>, Option<ParsedSdkEvent>) {
    let id = text_as(parse_external_id).about(
        "The same id again is a duplicate, whatever else differs. 1–255 bytes; absent: the service makes one.",
    );
    let given_id = fields.optional("eventId", id);
    let name = text_as(parse_event_name).size(1..=EVENT_NAME_CHARS_MAX);
    let name = fields.required("name", name.about("1–255 characters of any kind."));
    // What cannot be read is a fault: without it a time would have to be made up.
    let moment = integer().then(event_time).at_least(EARLIEST_EVENT.as_millis()).about(
        "When it happened, in milliseconds since 1970; not before 2015. A time more than ten minutes after its arrival is \
         clamped. Absent: now.",
    );
    let said_at = fields.optional("timestampMs", moment);
    let revenue = fields.input(
        "revenue",
        amount().about(
            "A number or a decimal string; also taken from `params`, where it does not stand here.",
        ),
    );
    let currency = text_as(sdk::currency);
    let currency = fields.input(
        "currency",
        currency.about("ISO 4217; also taken from `params`, where it does not stand here."),
    );
    let params = value_as(params).about("At most 16 KiB as compact JSON.");
    let params = fields.optional("params", params).unwrap_or_default();
    let sent = name.map(|name| ParsedSdkEvent {
        external_id: given_id.clone(),
        name,
        client_timestamp: said_at,
        revenue: if revenue.is_present() {
            revenue.value()
        } else {
            params.revenue
        },
        currency: if currency.is_present() {
            currency.value()
        } else {
            params.currency
        },
        params: params.text,
    });
    (given_id, sent)
}

fn parse_external_id(text: &str) -> Result<String, Problem> {
    reject_nul(text)?;
    if text.is_empty() {
        return Err(Problem::new(FaultCode::TooShort, "Must not be empty."));
    }
    if text.len() > EXTERNAL_ID_BYTES_MAX {
        let message = format!("Must have at most {EXTERNAL_ID_BYTES_MAX} bytes.");
        return Err(Problem::new(FaultCode::TooLong, message));
    }
    Ok(text.to_owned())
}

/// The parameters of an event. Money may be among them. There it is the app's own text: what cannot be read is none.
#[derive(Default)]
struct EventParams {
    text: Option<String>,
    revenue: Option<Amount>,
    currency: Option<Currency>,
}

fn params(value: InputValue<'_>) -> Result<EventParams, Problem> {
    let InputValue::Text(raw) = value else {
        return Ok(EventParams::default());
    };
    if !value.is_object() {
        return Err(wrong_type("an object"));
    }
    let text = compact(raw)?;
    let mut ignored = Faults::new();
    let mut inside = Fields::lenient(value, &mut ignored);
    Ok(EventParams {
        text: Some(text),
        revenue: inside.optional("revenue", amount()),
        currency: inside.optional("currency", text_as(sdk::currency)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn of(json: &str) -> Result<ParsedSdkEvent, RejectedEvent> {
        read(InputValue::Text(serde_json::from_str(json).unwrap()))
    }

    #[test]
    fn a_name_is_all_it_takes() {
        let sent = of(r#"{"name": " Boss Defeated! \ud83d "}"#).unwrap();
        assert_eq!(sent.name, " Boss Defeated! \u{fffd}\u{fffd}\u{fffd} ");
        assert_eq!(
            (sent.external_id, sent.client_timestamp, sent.revenue),
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
            of(r#"{"eventId": "e1"}"#)
                .unwrap_err()
                .external_id
                .as_deref(),
            Some("e1")
        );
        assert_eq!(of(r#"{"eventId": 1}"#).unwrap_err().external_id, None);
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
        assert_eq!(
            sent.client_timestamp,
            Some(Timestamp::from_millis(expected))
        );
    }

    #[test]
    fn events_of_one_moment_keep_their_order() {
        let at = Timestamp::from_millis(1_700_000_000_000);
        let ids: Vec<EventId> = [(0, 255), (1, 0), (99, 7)]
            .map(|(place, random)| EventId::new(at, ordered_random_bytes(place, [random; 10])))
            .into();
        assert!(ids.is_sorted());
    }

    #[test]
    fn parameters_are_kept_as_they_were_sent() {
        let sent = of(r#"{"name": "a", "params": { "n": 1.10, "revenue": 5 }}"#).unwrap();
        assert_eq!(sent.params.as_deref(), Some(r#"{"n":1.10,"revenue":5}"#));
    }
}
