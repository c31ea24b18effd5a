//! How anything that goes wrong is answered.
//!
//! Three kinds meet here: refusals (the domain's, the caller's business), faults (the database is away,
//! 503) and bugs (500, logged once). Whatever answers goes through [`ApiError`]: extractors, fallbacks,
//! limits, time-outs, caught panics. The body is written by the outermost layer, which knows the request's
//! id; see [`crate::request`].

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tributary_domain::access::AccessDenied;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::fault::{FaultCode, Faults};
use tributary_store::{DatabaseDamaged, StoreError};

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $status:ident $text:literal,)*) => {
        /// Every code that an error can have. Never renamed once published.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        tributary_domain::keywords! { Code { $($variant => $text),* } }

        impl Code {
            /// The status it is answered with.
            pub const fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status,)* }
            }
        }
    };
}

codes! {
    /// The body is not JSON.
    MalformedJson = BAD_REQUEST "malformed_json",
    /// The body is JSON and no postback of Apple's.
    MalformedPostback = BAD_REQUEST "malformed_postback",
    /// The body is JSON and no notification of the billing provider's.
    MalformedNotification = BAD_REQUEST "malformed_notification",
    /// A notification did not prove who it is from.
    WebhookUnauthorized = UNAUTHORIZED "webhook_unauthorized",
    /// No Authorization header.
    MissingApiKey = UNAUTHORIZED "missing_api_key",
    /// Not Bearer; an unknown, revoked or expired key.
    InvalidApiKey = UNAUTHORIZED "invalid_api_key",
    /// The key's permission does not cover this.
    InsufficientPermission = FORBIDDEN "insufficient_permission",
    /// An SDK key where a private key belongs.
    PrivateKeyRequired = FORBIDDEN "private_key_required",
    /// A test key where live settings are changed.
    LiveOnly = FORBIDDEN "production_only",
    /// The app told its SDKs to stop.
    SdkDisabled = FORBIDDEN "sdk_disabled",
    /// The app takes no website events.
    WebEventsDisabled = FORBIDDEN "web_events_disabled",
    /// The app is archived.
    AppArchived = FORBIDDEN "app_archived",
    /// No such app.
    AppNotFound = NOT_FOUND "app_not_found",
    /// No such link.
    LinkNotFound = NOT_FOUND "link_not_found",
    /// No such device.
    DeviceNotFound = NOT_FOUND "device_not_found",
    /// No such delivery.
    DeliveryNotFound = NOT_FOUND "delivery_not_found",
    /// No such network.
    NetworkNotFound = NOT_FOUND "network_not_found",
    /// No such path.
    NotFound = NOT_FOUND "not_found",
    /// The path has other methods.
    MethodNotAllowed = METHOD_NOT_ALLOWED "method_not_allowed",
    /// The request did not arrive in time.
    RequestTimeout = REQUEST_TIMEOUT "request_timeout",
    /// The payment that an event refers to is not here yet.
    OriginalTransactionUnavailable = CONFLICT "original_transaction_unavailable",
    /// The slug is another link's.
    SlugTaken = CONFLICT "slug_taken",
    /// The App Store id is another app's.
    StoreIdTaken = CONFLICT "store_id_taken",
    /// The link domain is another app's.
    DomainTaken = CONFLICT "domain_taken",
    /// `If-Match` names an old version.
    VersionConflict = CONFLICT "version_conflict",
    /// The delivery is on its way, or arrived.
    DeliveryNotRetryable = CONFLICT "delivery_not_retryable",
    /// The body is too large.
    PayloadTooLarge = PAYLOAD_TOO_LARGE "payload_too_large",
    /// The body is not said to be JSON.
    UnsupportedMediaType = UNSUPPORTED_MEDIA_TYPE "unsupported_media_type",
    /// Fields are at fault.
    ValidationFailed = UNPROCESSABLE_ENTITY "validation_failed",
    /// Fields that do not exist, and nothing else.
    UnknownField = UNPROCESSABLE_ENTITY "unknown_field",
    /// A cursor that is not one of ours, or of another list.
    InvalidCursor = UNPROCESSABLE_ENTITY "invalid_cursor",
    /// Another payload has this event id.
    EventIdConflict = UNPROCESSABLE_ENTITY "event_id_conflict",
    /// Unknown, forged, expired, a bot's or another app's click.
    ClickNotVerified = UNPROCESSABLE_ENTITY "click_not_verified",
    /// A click that came from none of the four networks.
    ClickNetworkUnsupported = UNPROCESSABLE_ENTITY "click_network_unsupported",
    /// The event happened elsewhere than the click's link leads to.
    OriginMismatch = UNPROCESSABLE_ENTITY "origin_mismatch",
    /// What an event refers to is no payment of the kind it needs.
    OriginalTransactionInvalid = UNPROCESSABLE_ENTITY "original_transaction_invalid",
    /// More would be given back than was paid.
    RefundExceedsPayment = UNPROCESSABLE_ENTITY "refund_exceeds_payment",
    /// A refund in another currency than its payment.
    CurrencyMismatch = UNPROCESSABLE_ENTITY "currency_mismatch",
    /// Too many requests.
    RateLimited = TOO_MANY_REQUESTS "rate_limited",
    /// A bug.
    Internal = INTERNAL_SERVER_ERROR "internal",
    /// The database cannot commit or be read.
    Unavailable = SERVICE_UNAVAILABLE "unavailable",
}

impl Code {
    /// Whether the same request may succeed later.
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::OriginalTransactionUnavailable
                | Self::RateLimited
                | Self::Internal
                | Self::Unavailable
        )
    }
}

/// How long a client should wait when the database is away, in seconds.
const UNAVAILABLE_RETRY_SECONDS: u64 = 1;

/// An error on its way out.
#[derive(Debug, Clone)]
pub struct ApiError {
    code: Code,
    message: String,
    details: Faults,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl ApiError {
    /// An error with what to do about it.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let mut headers = Vec::new();
        if code.status() == StatusCode::UNAUTHORIZED && code != Code::WebhookUnauthorized {
            headers.push((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
        }
        if code == Code::Unavailable {
            let seconds = HeaderValue::from(UNAVAILABLE_RETRY_SECONDS);
            headers.push((header::RETRY_AFTER, seconds));
        }
        Self {
            code,
            message: message.into(),
            details: Faults::new(),
            headers,
        }
    }

    /// An error with the fields that are at fault.
    pub(crate) fn with_faults(code: Code, message: impl Into<String>, faults: Faults) -> Self {
        Self {
            details: faults,
            ..Self::new(code, message)
        }
    }

    /// A bug. The cause is for the log, not for the client.
    pub fn internal() -> Self {
        Self::new(
            Code::Internal,
            "Something went wrong on our side. Try again; if it stays, report the request id.",
        )
    }

    /// With another header.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// What the code is.
    pub const fn code(&self) -> Code {
        self.code
    }

    /// The body, once the request's id is known.
    pub(crate) fn body(&self, request_id: &str) -> String {
        let details: Vec<_> = self
            .details
            .iter()
            .map(|fault| {
                json!({"field": fault.field, "code": fault.code.as_str(), "message": fault.message})
            })
            .collect();
        let mut error = json!({
            "code": self.code.as_str(),
            "message": self.message,
            "retryable": self.code.is_retryable(),
            "requestId": request_id,
        });
        if !details.is_empty() {
            error["details"] = details.into();
        }
        json!({ "error": error }).to_string()
    }
}

impl IntoResponse for ApiError {
    /// The status and headers. The error itself travels along; the outermost layer writes its body.
    fn into_response(self) -> Response {
        let mut response = self.code.status().into_response();
        for (name, value) in &self.headers {
            response.headers_mut().insert(name.clone(), value.clone());
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl From<Faults> for ApiError {
    fn from(faults: Faults) -> Self {
        let only_unknown = faults
            .iter()
            .all(|fault| fault.code == FaultCode::UnknownField);
        let (code, message) = if only_unknown {
            (
                Code::UnknownField,
                "Remove the fields that do not exist; see details.",
            )
        } else {
            (
                Code::ValidationFailed,
                "Some fields are at fault; see details.",
            )
        };
        Self::with_faults(code, message, faults)
    }
}

impl From<AccessDenied> for ApiError {
    fn from(denied: AccessDenied) -> Self {
        let code = match denied {
            AccessDenied::InsufficientPermission => Code::InsufficientPermission,
            AccessDenied::LiveOnly => Code::LiveOnly,
        };
        Self::new(code, denied.to_string())
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let code = match &refusal {
            Refusal::AppNotFound => Code::AppNotFound,
            Refusal::LinkNotFound => Code::LinkNotFound,
            Refusal::DeviceNotFound => Code::DeviceNotFound,
            Refusal::DeliveryNotFound => Code::DeliveryNotFound,
            Refusal::DeliveryNotRetryable => Code::DeliveryNotRetryable,
            Refusal::WebEventsDisabled => Code::WebEventsDisabled,
            Refusal::AppArchived => Code::AppArchived,
            Refusal::EventIdConflict(fields) => {
                return Self::with_faults(
                    Code::EventIdConflict,
                    refusal.to_string(),
                    fields.clone(),
                );
            }
            Refusal::ClickNotVerified => Code::ClickNotVerified,
            Refusal::ClickNetworkUnsupported => Code::ClickNetworkUnsupported,
            Refusal::OriginMismatch => Code::OriginMismatch,
            Refusal::OriginalTransactionUnavailable => Code::OriginalTransactionUnavailable,
            Refusal::OriginalTransactionInvalid => Code::OriginalTransactionInvalid,
            Refusal::RefundExceedsPayment => Code::RefundExceedsPayment,
            Refusal::CurrencyMismatch => Code::CurrencyMismatch,
            Refusal::NetworkNotFound => Code::NetworkNotFound,
            Refusal::SlugTaken => Code::SlugTaken,
            Refusal::StoreIdTaken => Code::StoreIdTaken,
            Refusal::DomainTaken => Code::DomainTaken,
            Refusal::VersionConflict => Code::VersionConflict,
            Refusal::Invalid(faults) => return faults.clone().into(),
            // These belong to the command line and the dashboard, and to no door of this crate.
            Refusal::OrganizationNotFound
            | Refusal::KeyNotFound
            | Refusal::MemberNotFound
            | Refusal::LastOwner
            | Refusal::SetupLinkInvalid
            | Refusal::EmailTaken => Code::NotFound,
        };
        Self::new(code, refusal.to_string())
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(refusal) => refusal.into(),
            StoreError::Unavailable { during, source } => {
                tracing::error!(during, error = %source, "the database is unavailable");
                let message = if source.is::<DatabaseDamaged>() {
                    "The database is damaged and accepts nothing until an operator has restored it. Keep the request \
                     and send it again later."
                } else {
                    "The database cannot answer right now. Send the same request again."
                };
                Self::new(Code::Unavailable, message)
            }
            corrupt @ StoreError::Corrupt { .. } => {
                tracing::error!(error = %corrupt, "a stored value cannot be read");
                Self::internal()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_domain::vocabulary::fault::Problem;

    #[test]
    fn codes_are_unique() {
        let mut codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), Code::ALL.len());
    }

    #[test]
    fn only_what_may_succeed_later_is_retryable() {
        let retryable: Vec<u16> = Code::ALL
            .iter()
            .filter(|code| code.is_retryable())
            .map(|code| code.status().as_u16())
            .collect();
        assert_eq!(retryable, [409, 429, 500, 503]);
    }

    #[test]
    fn unknown_fields_alone_have_a_code_of_their_own() {
        let mut faults = Faults::new();
        faults.add(
            "nmae",
            Problem::new(FaultCode::UnknownField, "No such field."),
        );
        assert_eq!(ApiError::from(faults.clone()).code(), Code::UnknownField);
        faults.add("name", Problem::new(FaultCode::Required, "Must be there."));
        assert_eq!(ApiError::from(faults).code(), Code::ValidationFailed);
    }

    /// The body of an error, as it is answered.
    fn body(error: &ApiError) -> serde_json::Value {
        serde_json::from_str(&error.body("req_1")).unwrap()
    }

    #[test]
    fn bodies() {
        let mut faults = Faults::new();
        faults.add("name", Problem::new(FaultCode::Required, "Must be there."));
        let faulty = ApiError::from(faults.clone());
        let conflict = ApiError::from(Refusal::EventIdConflict(faults));
        let errors = [
            faulty,
            conflict,
            ApiError::from(Refusal::AppNotFound),
            ApiError::from(Refusal::VersionConflict),
            ApiError::from(Refusal::OriginalTransactionUnavailable),
            ApiError::from(Refusal::RefundExceedsPayment),
            ApiError::internal(),
        ];
        let bodies: Vec<serde_json::Value> = errors.iter().map(body).collect();
        insta::assert_json_snapshot!(bodies);
    }
}
