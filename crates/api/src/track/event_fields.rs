//! Parses a single event in a batch, independently of the other events.

use super::consent_fields;
use super::params::compact;
use crate::fields::{Fields, InputValue, amount, integer, text_as, value_as, wrong_type};
use tributary_domain::device::Consent;
use tributary_domain::event::sdk::{self, SdkEvent, occurred_at};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::id::EventId;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::text::{
    EVENT_NAME_CHARS_MAX, EXTERNAL_ID_BYTES_MAX, parse_event_name, reject_nul,
};
use tributary_domain::vocabulary::time::{EARLIEST_EVENT, Timestamp, event_time};

/// A rejected event.
#[derive(Debug)]
pub(super) struct RejectedEvent {
    /// The sender's event id, if it is valid.
    pub(super) external_id: Option<String>,
    pub(super) faults: Faults,
}

/// Builds the event to store. `index` is the event's position in its batch. The events of a batch
/// share their random bytes, because their positions distinguish them.
pub(super) fn into_sdk_event(
    event: ParsedSdkEvent,
    index: u16,
    received_at: Timestamp,
    random: [u8; 10],
) -> SdkEvent {
    let occurred_at = occurred_at(event.client_timestamp, received_at);
    let id = EventId::new(occurred_at, ordered_random_bytes(index, random));
    SdkEvent {
        id,
        external_id: event.external_id.unwrap_or_else(|| id.to_string()),
        name: event.name,
        occurred_at,
        revenue: event.revenue,
        currency: event.currency,
        params: event.params,
        consent: event.consent,
    }
}

/// Returns random bytes prefixed with the position in the batch, so that events with the same
/// millisecond keep their order.
fn ordered_random_bytes(index: u16, mut random: [u8; 10]) -> [u8; 10] {
    random[..2].copy_from_slice(&index.to_be_bytes());
    random
}

/// An event as the SDK sent it.
#[derive(Debug)]
pub(super) struct ParsedSdkEvent {
    external_id: Option<String>,
    name: String,
    client_timestamp: Option<Timestamp>,
    revenue: Option<Amount>,
    currency: Option<Currency>,
    params: Option<String>,
    consent: Option<Consent>,
}

/// Reads one event in a batch.
pub(super) fn read(event: InputValue<'_>) -> Result<ParsedSdkEvent, RejectedEvent> {
    let mut faults = Faults::new();
    if !event.is_object() {
        faults.add("event", wrong_type("an object"));
        return Err(RejectedEvent {
            external_id: None,
            faults,
        });
    }
    let (external_id, parsed) = fields(&mut Fields::lenient(event, &mut faults));
    let parsed = parsed.filter(|_| faults.is_empty());
    parsed.ok_or(RejectedEvent {
        external_id,
        faults,
    })
}

/// Reads an event. Returns its id separately, because a rejected event is reported with its id.
pub(super) fn fields(fields: &mut Fields<'_>) -> (Option<String>, Option<ParsedSdkEvent>) {
    let id = text_as(parse_external_id).about(
        "Idempotency key, 1–255 bytes. An event with an id that was already recorded is a \
         duplicate, even if its content differs. Absent: the service creates an id.",
    );
    let external_id = fields.optional("eventId", id);
    let name = text_as(parse_event_name).size(1..=EVENT_NAME_CHARS_MAX);
    let name = fields.required("name", name.about("1–255 characters."));
    // An invalid time is a fault, because the service cannot guess the correct time.
    let time = integer()
        .then(event_time)
        .at_least(EARLIEST_EVENT.as_millis())
        .about(
            "Unix time of the event in milliseconds, not before 2015. A time more than ten minutes \
         after the request's arrival is clamped. Absent: now.",
        );
    let client_timestamp = fields.optional("timestampMs", time);
    let revenue = fields.input(
        "revenue",
        amount().about("A number or a decimal string. If absent, `params.revenue` is used."),
    );
    let currency = text_as(sdk::currency);
    let currency = fields.input(
        "currency",
        currency.about("ISO 4217 code. If absent, `params.currency` is used."),
    );
    let params = value_as(params).about("At most 16 KiB as compact JSON.");
    let params = fields.optional("params", params).unwrap_or_default();
    let about = "The user's consent when the event was tracked; `{}` if the user was not asked. The \
                 stricter of this and the device's consent holds. Unreadable values are ignored. \
                 Absent: only the device's consent holds.";
    let consent = fields.ignoring_faults(|fields| consent_fields::read(fields, about));
    let event = name.map(|name| ParsedSdkEvent {
        external_id: external_id.clone(),
        name,
        client_timestamp,
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
        consent,
    });
    (external_id, event)
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

/// An event's parameters. They may contain revenue and currency, which are ignored if invalid.
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
    use tributary_domain::device::Tracking;

    fn parse(json: &str) -> Result<ParsedSdkEvent, RejectedEvent> {
        read(InputValue::Text(serde_json::from_str(json).unwrap()))
    }

    #[test]
    fn only_the_name_is_required() {
        let event = parse(r#"{"name": " Boss Defeated! \ud83d "}"#).unwrap();
        assert_eq!(event.name, " Boss Defeated! \u{fffd}\u{fffd}\u{fffd} ");
        assert_eq!(
            (event.external_id, event.client_timestamp, event.revenue),
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
    fn invalid_events_are_rejected(#[case] json: &str, #[case] expected: &[(&str, &str)]) {
        let rejected = parse(json).unwrap_err();
        let found: Vec<(&str, &str)> = rejected
            .faults
            .iter()
            .map(|fault| (fault.field.as_str(), fault.code.as_str()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_rejected_event_keeps_its_id() {
        assert_eq!(
            parse(r#"{"eventId": "e1"}"#)
                .unwrap_err()
                .external_id
                .as_deref(),
            Some("e1")
        );
        assert_eq!(parse(r#"{"eventId": 1}"#).unwrap_err().external_id, None);
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
    #[case::read_independently(
        r#""revenue": 1, "params": {"revenue": 2, "currency": "USD"}"#,
        Some("1"),
        Some("USD")
    )]
    #[case::null_is_absent(r#""revenue": null, "params": {"revenue": 2}"#, Some("2"), None)]
    #[case::not_money_inside(r#""params": {"revenue": "a lot", "currency": 5}"#, None, None)]
    #[case::currency_alone(r#""currency": "USD""#, None, Some("USD"))]
    fn money(#[case] fields: &str, #[case] amount: Option<&str>, #[case] currency: Option<&str>) {
        let event = parse(&format!(r#"{{"name": "purchase", {fields}}}"#)).unwrap();
        assert_eq!(
            event.revenue.map(|amount| amount.to_string()).as_deref(),
            amount
        );
        assert_eq!(event.currency.as_ref().map(Currency::as_str), currency);
    }

    #[rstest]
    #[case::plain("1700000000000", 1_700_000_000_000)]
    #[case::float("1794727000000.0", 1_794_727_000_000)]
    #[case::exponent("1.794727e12", 1_794_727_000_000)]
    #[case::the_earliest("1420070400000", 1_420_070_400_000)]
    #[case::beyond_all_numbers("99999999999999999999", i64::MAX)]
    fn moments(#[case] millis: &str, #[case] expected: i64) {
        let event = parse(&format!(r#"{{"name": "a", "timestampMs": {millis}}}"#)).unwrap();
        assert_eq!(
            event.client_timestamp,
            Some(Timestamp::from_millis(expected))
        );
    }

    #[test]
    fn events_of_the_same_millisecond_have_different_ids_in_order() {
        let at = Timestamp::from_millis(1_700_000_000_000);
        let id = |index| {
            let event = parse(r#"{"name": "a"}"#).unwrap();
            into_sdk_event(event, index, at, [255; 10]).id
        };
        let ids: Vec<EventId> = [0, 1, 99].map(id).into();
        assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
    }

    const NOT_ASKED: Consent = Consent {
        ad_user_data: None,
        ad_personalization: None,
        tracking: None,
    };

    #[rstest]
    #[case::older_sdk("{}", None)]
    #[case::null(r#"{"consent": null}"#, None)]
    #[case::not_an_object(r#"{"consent": "no"}"#, None)]
    #[case::not_asked(r#"{"consent": {}}"#, Some(NOT_ASKED))]
    #[case::refused(
        r#"{"consent": {"adUserData": false, "adPersonalization": false, "tracking": "restricted"}}"#,
        Some(Consent {
            ad_user_data: Some(false),
            ad_personalization: Some(false),
            tracking: Some(Tracking::Denied),
        })
    )]
    #[case::granted(
        r#"{"consent": {"adUserData": true, "adPersonalization": null, "tracking": "authorized"}}"#,
        Some(Consent {
            ad_user_data: Some(true),
            tracking: Some(Tracking::Authorized),
            ..NOT_ASKED
        })
    )]
    #[case::unreadable_parts(
        r#"{"consent": {"adUserData": false, "adPersonalization": "x", "tracking": "perhaps", "y": 1}}"#,
        Some(Consent { ad_user_data: Some(false), ..NOT_ASKED })
    )]
    fn consent_is_read_leniently(#[case] json: &str, #[case] expected: Option<Consent>) {
        let with_name = json.replacen('{', r#"{"name": "a","#, 1).replace(",}", "}");
        let event = parse(&with_name).unwrap();
        assert_eq!(event.consent, expected);
        let at = Timestamp::from_millis(1_700_000_000_000);
        assert_eq!(into_sdk_event(event, 0, at, [1; 10]).consent, expected);
    }

    #[test]
    fn parameters_are_stored_unchanged() {
        let event = parse(r#"{"name": "a", "params": { "n": 1.10, "revenue": 5 }}"#).unwrap();
        assert_eq!(event.params.as_deref(), Some(r#"{"n":1.10,"revenue":5}"#));
    }
}
