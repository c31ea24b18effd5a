//! Request body for a web event.

use crate::body::JsonBody;
use crate::error::ApiError;
use crate::fields::{Fields, amount, choice, described_body, integer, text_as};
use crate::state::ApiState;
use axum::extract::{FromRequest, Request};
use tributary_domain::device::{ContactHashes, DeviceKey};
use tributary_domain::event::FUTURE_SKEW_MAX;
use tributary_domain::event::web::{WebEventFields, WebEventKind, check};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::text::{EXTERNAL_ID_BYTES_MAX, check_external_id};
use tributary_domain::vocabulary::time::{EARLIEST_EVENT, Timestamp, event_time};
use tributary_domain::vocabulary::web_url::{PageUrl, URL_CHARS_MAX};

described_body! {
    /// A web event.
    pub(super) WebEventBody("WebEventFields") = |fields| read(fields, Timestamp::from_millis(0))
}

/// Validated body of a web event.
#[derive(Debug)]
pub struct WebEventRequest {
    pub(super) external_id: String,
    pub(super) click_text: String,
    pub(super) device: DeviceKey,
    pub(super) occurred_at: Timestamp,
    pub(super) kind: WebEventKind,
    pub(super) amount: Option<Amount>,
    pub(super) currency: Option<Currency>,
    pub(super) source_url: PageUrl,
    pub(super) parent: Option<String>,
    pub(super) email_sha256: Option<String>,
    pub(super) received_at: Timestamp,
}

impl WebEventRequest {
    /// Returns the sender's event id.
    pub fn event_id(&self) -> &str {
        &self.external_id
    }
}

impl FromRequest<ApiState> for WebEventRequest {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, ApiError> {
        let body = JsonBody::from_request(request, state).await?;
        let now = state.runtime.now();
        body.read_whole(|fields| read(fields, now))
    }
}

fn id(text: &str) -> Result<String, Problem> {
    check_external_id(text).map(str::to_owned)
}

/// Reads all fields and checks their combination.
fn read(fields: &mut Fields<'_>, now: Timestamp) -> Option<WebEventRequest> {
    let latest = now.plus(FUTURE_SKEW_MAX);
    let timestamp = integer()
        .at_least(EARLIEST_EVENT.as_millis())
        .then(|millis| {
            let time = event_time(millis)?;
            if time <= latest {
                return Ok(time);
            }
            let message = "Must be at most ten minutes in the future.";
            Err(Problem::new(FaultCode::OutOfRange, message))
        });
    let id = |about| text_as(id).size(1..=EXTERNAL_ID_BYTES_MAX).about(about);
    let external_id = fields.required(
        "eventId",
        id(
            "Unique, stable id. Retries must reuse it; renewals and refunds refer to it as \
         `originalTransactionId`.",
        ),
    );
    let click_text = fields.required(
        "arClickId",
        id("The `ar_click_id` query parameter that the redirect added to your page's URL."),
    );
    let device = text_as(DeviceKey::parse_any).size(1..=EXTERNAL_ID_BYTES_MAX).about(
        "Anonymous id of the visitor's device. A placeholder, such as all zeros, is accepted and \
         marked on the event, but identifies no device.",
    );
    let device = fields.required("deviceId", device);
    let occurred_at = fields.required("timestampMs", timestamp.about(
        "Unix time of the event in milliseconds: at most ten minutes in the future, at most ten \
         minutes before the click, and not before 2015.",
    ));
    let kind = choice(WebEventKind::ALL, WebEventKind::as_str).about("Type of the event.");
    let kind = fields.required("eventType", kind);
    let revenue = fields.input("revenue", amount().about(
        "Amount in major units: positive for `purchase` and `renewal`, negative for `refund`, 0 or \
         more for `checkout_started` and `start_trial`, missing or 0 for `sign_up`. A number or a \
         decimal string.",
    ));
    let currency =
        text_as(Currency::parse).about("Current ISO 4217 code. Required except for `sign_up`.");
    let currency = fields.input("currency", currency);
    let source_url = text_as(PageUrl::parse_without_query)
        .format("uri")
        .size(0..=URL_CHARS_MAX)
        .about(
            "HTTPS URL of the page, without query and fragment. It must have the same origin as \
         the link's destination, which is http://localhost only for a test link.",
        );
    let source_url = fields.required("sourceUrl", source_url);
    let parent = fields.input("originalTransactionId", id(
        "Renewals: `eventId` of the initial purchase. Refunds: `eventId` of the refunded payment.",
    ));
    let email = text_as(ContactHashes::parse_hash)
        .pattern("^[0-9a-fA-F]{64}$")
        .about("SHA-256 of the trimmed, lower-case email address in hexadecimal.");
    let email = fields.input("emailSha256", email);
    let given = WebEventFields {
        revenue: revenue.clone().value(),
        has_revenue: revenue.is_present(),
        has_currency: currency.is_present(),
        has_parent: parent.is_present(),
    };
    if let Some(kind) = kind {
        fields.check(|faults| check(kind, &given, faults));
    }
    Some(WebEventRequest {
        external_id: external_id?,
        click_text: click_text?,
        device: device?,
        occurred_at: occurred_at?,
        kind: kind?,
        amount: revenue.value(),
        currency: currency.value(),
        source_url: source_url?,
        parent: parent.value(),
        email_sha256: email.value(),
        received_at: now,
    })
}
