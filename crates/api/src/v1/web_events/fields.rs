//! The fields of a website event.

use crate::body::JsonBody;
use crate::error::ApiError;
use crate::fields::{Fields, amount, choice, integer, text_as};
use crate::state::ApiState;
use axum::extract::{FromRequest, Request};
use tributary_domain::device::{DeviceKey, Matching};
use tributary_domain::event::AHEAD_MAX;
use tributary_domain::event::web::{GivenFields, WebEventKind, check};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::given::Given;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::text::foreign_id;
use tributary_domain::vocabulary::time::{Timestamp, event_time};
use tributary_domain::vocabulary::web_url::HttpsUrl;
use utoipa::ToSchema;

const KINDS: &str = "purchase, renewal, refund, sign_up, checkout_started, start_trial";

/// What is sent, for the description.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the body; the fields are read by name")]
pub(crate) struct WebEventFields {
    /// Unique and stable. Retries reuse it; renewals and refunds name it as `originalTransactionId`.
    #[schema(min_length = 1, max_length = 255)]
    event_id: String,
    /// The `ar_click_id` that the redirect to your page carried.
    #[schema(min_length = 1, max_length = 255)]
    ar_click_id: String,
    /// An anonymous id of the visitor's device. A placeholder such as all zeros is accepted and marked on the event; it
    /// identifies no device.
    #[schema(min_length = 1, max_length = 255)]
    device_id: String,
    /// When it happened, in milliseconds since 1970. At most ten minutes in the future, at most ten minutes before the
    /// click, and not before 2015.
    #[schema(minimum = 1_420_070_400_000_i64)]
    timestamp_ms: i64,
    /// What happened.
    #[schema(pattern = "^(purchase|renewal|refund|sign_up|checkout_started|start_trial)$")]
    event_type: String,
    /// In major units, exactly: more than 0 for purchase and renewal, less than 0 for refund, 0 or more for
    /// `checkout_started` and `start_trial`, absent or 0 for `sign_up`.
    #[schema(inline, value_type = Option<crate::choices::AmountChoice>)]
    revenue: Option<String>,
    /// A current ISO 4217 code; required but for `sign_up`.
    currency: Option<String>,
    /// The page it happened on: https, without query and fragment, on the origin that the click's link leads to.
    #[schema(format = "uri", max_length = 2000)]
    source_url: String,
    /// For a renewal the eventId of the initial purchase, for a refund that of the payment it reverses.
    #[schema(min_length = 1, max_length = 255)]
    original_transaction_id: Option<String>,
    /// SHA-256 of the e-mail address, trimmed and lower-cased, in hex.
    #[schema(pattern = "^[0-9a-fA-F]{64}$")]
    email_sha256: Option<String>,
}

/// The body of a website event, each field checked.
#[derive(Debug)]
pub struct WebEventRequest {
    pub(super) given_id: String,
    pub(super) click_text: String,
    pub(super) device: DeviceKey,
    pub(super) occurred_at: Timestamp,
    pub(super) kind: WebEventKind,
    pub(super) amount: Option<Amount>,
    pub(super) currency: Option<Currency>,
    pub(super) source_url: HttpsUrl,
    pub(super) parent: Option<String>,
    pub(super) email_sha256: Option<String>,
    pub(super) received_at: Timestamp,
}

impl WebEventRequest {
    /// Returns the id that the sender gave the event.
    pub fn event_id(&self) -> &str {
        &self.given_id
    }
}

impl FromRequest<ApiState> for WebEventRequest {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, ApiError> {
        let body = JsonBody::from_request(request, state).await?;
        let now = state.source.now();
        body.read_whole(|fields| read(fields, now))
    }
}

fn id(text: &str) -> Result<String, Problem> {
    foreign_id(text).map(str::to_owned)
}

/// Reads every field, and what must hold between them.
fn read(fields: &mut Fields<'_>, now: Timestamp) -> Option<WebEventRequest> {
    let latest = now.plus(AHEAD_MAX);
    let timestamp = |node: &_| {
        let time = event_time(integer(node)?)?;
        if time <= latest {
            return Ok(time);
        }
        let message = "Must be at most ten minutes in the future.";
        Err(Problem::new(FaultCode::OutOfRange, message))
    };
    let given_id = fields.required("eventId", text_as(id));
    let click_text = fields.required("arClickId", text_as(id));
    let device = fields.required("deviceId", text_as(DeviceKey::parse_any));
    let occurred_at = fields.required("timestampMs", timestamp);
    let kind = fields.required("eventType", choice(WebEventKind::parse, KINDS));
    let revenue = fields.given("revenue", amount);
    let currency = fields.given("currency", text_as(Currency::parse));
    let source_url = fields.required("sourceUrl", text_as(HttpsUrl::parse_clean));
    let parent = fields.given("originalTransactionId", text_as(id));
    let email = fields.given("emailSha256", text_as(Matching::hash));
    let given = GivenFields {
        revenue: value(&revenue),
        has_revenue: !matches!(revenue, Given::Absent),
        has_currency: !matches!(currency, Given::Absent),
        has_parent: !matches!(parent, Given::Absent),
    };
    if let Some(kind) = kind {
        fields.check(|faults| check(kind, &given, faults));
    }
    Some(WebEventRequest {
        given_id: given_id?,
        click_text: click_text?,
        device: device?,
        occurred_at: occurred_at?,
        kind: kind?,
        amount: value(&revenue),
        currency: value(&currency),
        source_url: source_url?,
        parent: value(&parent),
        email_sha256: value(&email),
        received_at: now,
    })
}

fn value<T: Clone>(given: &Given<T>) -> Option<T> {
    match given {
        Given::Value(value) => Some(value.clone()),
        Given::Absent | Given::Faulty => None,
    }
}
