//! `POST /api/v1/apps/{appId}/skan/evaluate` — simulates a device's conversion values.

use super::fields::read_draft;
use crate::body::{Envelope, JsonBody, JsonResponse};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::fields::{
    Fields, amount, described_body, integer_in, objects, text_as, text_map, wrong_type,
};
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use std::collections::BTreeMap;
use tributary_domain::access::AppsRead;
use tributary_domain::exchange::RateValue;
use tributary_domain::skan::try_out::{
    SimulatedCall, SimulatedEvent, TRY_OUT_EVENTS_MAX, TRY_OUT_SECONDS_MAX, simulate,
};
use tributary_domain::skan::{Document, EVENT_CHARS_MAX, validate};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::field_input::FieldInput;
use tributary_domain::vocabulary::text::check_length;
use utoipa::ToSchema;

struct EvaluateRequest {
    document: Option<Document>,
    rates: Vec<(Currency, RateValue)>,
    events: Vec<SimulatedEvent>,
}

described_body! {
    /// Configuration and events to simulate.
    EvaluateFields("ConversionValueTryOut") = read
}

fn event(fields: &mut Fields<'_>) -> Option<SimulatedEvent> {
    let name = |text: &str| check_length(text, 1, EVENT_CHARS_MAX).map(|()| text.to_owned());
    let name = fields.required("name", text_as(name).size(1..=EVENT_CHARS_MAX));
    let after = integer_in(0..=TRY_OUT_SECONDS_MAX);
    let after = fields.input(
        "afterSeconds",
        after.about("Seconds after the first launch. Default: 0."),
    );
    let amount = amount().about("A number or a decimal string.");
    let amount = fields.input("revenue", amount);
    let currency = text_as(Currency::parse)
        .about("Default: the document's currency. Without a rate, revenue meets no condition.");
    let currency = fields.input("currency", currency);
    Some(SimulatedEvent {
        name: name?,
        after_seconds: after.value().unwrap_or(0),
        amount: amount.value(),
        currency: currency.value(),
    })
}

fn read(fields: &mut Fields<'_>) -> EvaluateRequest {
    let about =
        "Document as in PUT. Default: the stored document. Evaluated as if it were enabled.";
    let draft = fields.object("document", about, read_draft);
    let document = draft.value().and_then(|draft| {
        fields.check(|faults| {
            let mut own = Faults::new();
            let document = validate(draft, &mut own);
            for fault in &own {
                let problem = Problem::new(fault.code, fault.message.clone());
                faults.add(format!("document.{}", fault.field), problem);
            }
            document
        })
    });
    let rates = text_map().about(
        "Units of the document's currency per unit of the key's currency, as decimal \
                strings.",
    );
    let rates = fields.input("rates", rates).value().unwrap_or_default();
    let rates = fields.check(|faults| read_rates(&rates, faults));
    let list = objects()
        .size(0..=TRY_OUT_EVENTS_MAX)
        .about("The device's events after its first launch.");
    let events = fields.items("events", list, event);
    let events = events.value().unwrap_or_default();
    for (index, event) in events.iter().enumerate() {
        // A null in the list is not an event.
        if matches!(event, FieldInput::Absent) {
            let problem = wrong_type("an object with name and afterSeconds");
            fields.check(|faults| faults.add(format!("events[{index}]"), problem));
        }
    }
    if events.len() > TRY_OUT_EVENTS_MAX {
        let message = format!("Must have at most {TRY_OUT_EVENTS_MAX} items.");
        fields.check(|faults| faults.add("events", Problem::new(FaultCode::TooLong, message)));
    }
    EvaluateRequest {
        document,
        rates,
        events: events.into_iter().filter_map(|one| one.value()?).collect(),
    }
}

fn read_rates(rates: &BTreeMap<String, String>, faults: &mut Faults) -> Vec<(Currency, RateValue)> {
    let mut read = Vec::new();
    for (code, rate) in rates {
        let currency = faults.check("rates", Currency::parse(code));
        let rate = faults.check("rates", RateValue::parse(rate));
        read.extend(currency.zip(rate));
    }
    read
}

/// A call to Apple's API.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct UpdateOut {
    /// Seconds after the first launch.
    after_seconds: i64,
    /// Event that caused the call; null for the first launch.
    event: Option<String>,
    /// Conversion window in which the device makes the call: 0, 1 or 2.
    window: u8,
    /// Fine value. 0 in windows 1 and 2, where Apple ignores it.
    fine_value: u8,
    #[schema(inline, value_type = crate::choices::CoarseChoice)]
    coarse_value: &'static str,
    /// True if the call locks the conversion window.
    lock_window: bool,
    /// Names of the document's conversion values that use this fine or coarse value.
    names: Vec<String>,
}

/// Result of a simulation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(title = "ConversionValueEvaluation")]
struct EvaluationOut {
    /// The device's calls in order. A postback contains the last value of its window, unless Apple
    /// withholds it.
    updates: Vec<UpdateOut>,
}

impl From<SimulatedCall> for UpdateOut {
    fn from(call: SimulatedCall) -> Self {
        Self {
            after_seconds: call.after_seconds,
            event: call.event,
            window: call.update.window,
            fine_value: call.update.fine,
            coarse_value: call.update.coarse.as_str(),
            lock_window: call.update.lock,
            names: call.names,
        }
    }
}

type EvaluationEnvelope = Envelope<EvaluationOut>;

#[utoipa::path(
    post, path = "/api/v1/apps/{appId}/skan/evaluate", tag = "Conversion value",
    operation_id = "evaluateSkan",
    summary = "Simulate a conversion-value document",
    description = "Simulates a device with these events and returns its calls to Apple's API. \
                   Nothing is stored. Requires `apps:read`.",
    params(("appId" = String, Path, description = "App id.")),
    request_body(content = inline(EvaluateFields), description = "The document and the events.",
        example = json!({
        "events": [
            {"name": "start_trial", "afterSeconds": 600},
            {"name": "purchase", "afterSeconds": 86_400, "revenue": 59.99, "currency": "USD"}
        ]
    })),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [Code::AppNotFound]]))),
    responses((status = 200, description = "The device's calls.", body = inline(EvaluationEnvelope),
        example = json!({"data": {"updates": [
            {"afterSeconds": 0, "event": null, "window": 0, "fineValue": 0, "coarseValue": "low", "lockWindow": false,
             "names": ["Install"]},
            {"afterSeconds": 86_400, "event": "purchase", "window": 0, "fineValue": 63, "coarseValue": "high",
             "lockWindow": true, "names": ["Paid 50 or more"]},
        ]}})))
)]
pub(crate) async fn try_out(
    caller: Caller<AppsRead>,
    ids: PathIds,
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let request = body.read(read)?;
    let app = ids.app()?;
    // Read even if the body has a document, to check that the app belongs to the caller's
    // organization.
    let stored = state.store.skan(&caller.authorized, app).await?;
    let document = request.document.unwrap_or(stored.document);
    let calls = simulate(document, request.rates, request.events);
    Ok(JsonResponse::ok(EvaluationOut {
        updates: calls.into_iter().map(UpdateOut::from).collect(),
    }))
}
