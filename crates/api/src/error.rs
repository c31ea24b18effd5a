//! Error responses.
//!
//! There are three kinds: refusals by the domain (4xx), an unavailable database (503) and bugs
//! (500, logged once). Extractors, fallbacks, rate limits, timeouts and caught panics all return
//! [`ApiError`]. The outermost layer writes the body, because it knows the request id; see
//! [`crate::request`].

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tributary_domain::access::AccessDenied;
use tributary_domain::node_role::NodeRole;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::fault::{FaultCode, Faults};
use tributary_store::report_slots::SlotRejection;
use tributary_store::{DatabaseDamaged, ReportTimeout, StoreError};

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $status:ident $text:literal,)*) => {
        /// Public error codes. Published codes are never renamed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        tributary_domain::keywords! { Code { $($variant => $text),* } }

        impl Code {
            /// Returns the HTTP status of the code.
            pub const fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status,)* }
            }
        }
    };
}

codes! {
    /// The body is not JSON.
    MalformedJson = BAD_REQUEST "malformed_json",
    /// The body is JSON but not a valid Apple postback.
    MalformedPostback = BAD_REQUEST "malformed_postback",
    /// The body is JSON but not a notification from the billing provider.
    MalformedNotification = BAD_REQUEST "malformed_notification",
    /// The notification is not authentic.
    WebhookUnauthorized = UNAUTHORIZED "webhook_unauthorized",
    /// The `Authorization` header is missing.
    MissingApiKey = UNAUTHORIZED "missing_api_key",
    /// The key is unknown, revoked or expired, or the scheme is not Bearer.
    InvalidApiKey = UNAUTHORIZED "invalid_api_key",
    /// The key's permission lacks the required scope.
    InsufficientPermission = FORBIDDEN "insufficient_permission",
    /// An SDK key was sent where a private key is required.
    PrivateKeyRequired = FORBIDDEN "private_key_required",
    /// A test key tried to change live settings.
    LiveOnly = FORBIDDEN "production_only",
    /// The key is limited to addresses, and the client's is none of them.
    AddressNotAllowed = FORBIDDEN "address_not_allowed",
    /// The key is limited to apps, and the request concerns the whole organization.
    AppNotAllowed = FORBIDDEN "app_not_allowed",
    /// A key tried to manage a key that can do more or lives longer.
    KeyExceedsOwn = FORBIDDEN "key_exceeds_own",
    /// The SDK is disabled for the app.
    SdkDisabled = FORBIDDEN "sdk_disabled",
    /// The token does not belong to the device.
    InvalidEraseToken = FORBIDDEN "invalid_erase_token",
    /// Web events are disabled for the app.
    WebEventsDisabled = FORBIDDEN "web_events_disabled",
    /// The app is archived.
    AppArchived = FORBIDDEN "app_archived",
    /// No such app.
    AppNotFound = NOT_FOUND "app_not_found",
    /// No such link.
    LinkNotFound = NOT_FOUND "link_not_found",
    /// No such notice.
    NoticeNotFound = NOT_FOUND "notice_not_found",
    /// The app has as many notices as it may have.
    TooManyNotices = CONFLICT "too_many_notices",
    /// No such key.
    KeyNotFound = NOT_FOUND "key_not_found",
    /// The key was revoked or has expired.
    KeyEnded = CONFLICT "key_ended",
    /// The key has a successor.
    KeyRotated = CONFLICT "key_rotated",
    /// The secret that the last rotation replaced is still valid.
    SecretRotated = CONFLICT "secret_rotated",
    /// The organization has as many valid keys as it may have.
    TooManyKeys = CONFLICT "too_many_keys",
    /// No such device.
    DeviceNotFound = NOT_FOUND "device_not_found",
    /// Nothing is stored about the user.
    UserNotFound = NOT_FOUND "user_not_found",
    /// No such delivery.
    DeliveryNotFound = NOT_FOUND "delivery_not_found",
    /// No such network.
    NetworkNotFound = NOT_FOUND "network_not_found",
    /// No such path.
    NotFound = NOT_FOUND "not_found",
    /// The path does not support the method.
    MethodNotAllowed = METHOD_NOT_ALLOWED "method_not_allowed",
    /// The request body did not arrive in time.
    RequestTimeout = REQUEST_TIMEOUT "request_timeout",
    /// The referenced payment has not been received yet.
    OriginalTransactionUnavailable = CONFLICT "original_transaction_unavailable",
    /// Another link has the slug.
    SlugTaken = CONFLICT "slug_taken",
    /// Another app has the App Store id.
    StoreIdTaken = CONFLICT "store_id_taken",
    /// Another app has verified the link domain.
    DomainTaken = CONFLICT "domain_taken",
    /// `If-Match` does not match the current version.
    VersionConflict = CONFLICT "version_conflict",
    /// The delivery is still pending or was already delivered.
    DeliveryNotRetryable = CONFLICT "delivery_not_retryable",
    /// The install was never held.
    InstallNotHeld = CONFLICT "install_not_held",
    /// Events of the released install were sent to a network.
    InstallForwarded = CONFLICT "install_forwarded",
    /// The body is too large.
    PayloadTooLarge = PAYLOAD_TOO_LARGE "payload_too_large",
    /// The content type is not supported.
    UnsupportedMediaType = UNSUPPORTED_MEDIA_TYPE "unsupported_media_type",
    /// Some fields are invalid.
    ValidationFailed = UNPROCESSABLE_ENTITY "validation_failed",
    /// The only faults are unknown fields.
    UnknownField = UNPROCESSABLE_ENTITY "unknown_field",
    /// The cursor is invalid or belongs to another list.
    InvalidCursor = UNPROCESSABLE_ENTITY "invalid_cursor",
    /// The event id was already used with a different payload.
    EventIdConflict = UNPROCESSABLE_ENTITY "event_id_conflict",
    /// No TXT record verifies the link domain.
    DomainNotVerified = UNPROCESSABLE_ENTITY "domain_not_verified",
    /// The click is unknown, forged, expired, from a bot, or belongs to another app.
    ClickNotVerified = UNPROCESSABLE_ENTITY "click_not_verified",
    /// The click is on a test link.
    TestClick = UNPROCESSABLE_ENTITY "test_click",
    /// The click did not come from a supported network.
    ClickNetworkUnsupported = UNPROCESSABLE_ENTITY "click_network_unsupported",
    /// The event's origin differs from the destination of the click's link.
    OriginMismatch = UNPROCESSABLE_ENTITY "origin_mismatch",
    /// The referenced event is not a payment of the required kind.
    OriginalTransactionInvalid = UNPROCESSABLE_ENTITY "original_transaction_invalid",
    /// The refunds would exceed the payment.
    RefundExceedsPayment = UNPROCESSABLE_ENTITY "refund_exceeds_payment",
    /// The refund's currency differs from the payment's.
    CurrencyMismatch = UNPROCESSABLE_ENTITY "currency_mismatch",
    /// Too many requests.
    RateLimited = TOO_MANY_REQUESTS "rate_limited",
    /// A bug.
    Internal = INTERNAL_SERVER_ERROR "internal",
    /// The database is unavailable, or this node does not serve the endpoint.
    Unavailable = SERVICE_UNAVAILABLE "unavailable",
    /// The DNS servers did not answer.
    DnsUnavailable = SERVICE_UNAVAILABLE "dns_unavailable",
}

impl Code {
    /// Tells whether the same request may succeed later.
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::OriginalTransactionUnavailable
                | Self::RateLimited
                | Self::Internal
                | Self::Unavailable
                | Self::DnsUnavailable
        )
    }
}

/// `Retry-After` in seconds while the database is unavailable.
const UNAVAILABLE_RETRY_SECONDS: u64 = 1;

/// Error response.
#[derive(Debug, Clone)]
pub struct ApiError {
    code: Code,
    message: String,
    details: Faults,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl ApiError {
    /// Creates an error. The message says what is wrong and what to do.
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

    /// Creates an error with details about invalid fields.
    pub(crate) fn with_faults(code: Code, message: impl Into<String>, faults: Faults) -> Self {
        Self {
            details: faults,
            ..Self::new(code, message)
        }
    }

    /// Creates the error for a bug. Its cause is logged, not sent to the client.
    pub fn internal() -> Self {
        Self::new(
            Code::Internal,
            "Internal error. Try again; if the error persists, report the request id.",
        )
    }

    /// Creates the error of a node without the role that an endpoint needs. The status is one after
    /// which SDKs, billing providers and load balancers retry, because another node has the role.
    pub(crate) fn missing_role(role: NodeRole) -> Self {
        let message = format!(
            "This node does not have the role `{}`, which this endpoint needs. Send the request to a \
             node with this role.",
            role.as_str()
        );
        Self::new(Code::Unavailable, message)
    }

    /// Adds a response header.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Returns the error code.
    pub const fn code(&self) -> Code {
        self.code
    }

    /// Returns the JSON body.
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
    /// Builds a response with status and headers but without a body. The error is added to the
    /// response extensions, where the outermost layer finds it and writes the body.
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
                "Remove the unknown fields; see details.",
            )
        } else {
            (
                Code::ValidationFailed,
                "Some fields are invalid; see details.",
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
            AccessDenied::AddressNotAllowed => Code::AddressNotAllowed,
        };
        Self::new(code, denied.to_string())
    }
}

impl From<SlotRejection> for ApiError {
    fn from(rejection: SlotRejection) -> Self {
        let (kind, seconds) = (rejection.kind.as_str(), rejection.kind.retry_seconds());
        let message = format!(
            "Too many concurrent {kind}s of this key or organization. Retry after {seconds} \
             seconds, with fewer requests at a time."
        );
        Self::new(Code::RateLimited, message)
            .with_header(header::RETRY_AFTER, HeaderValue::from(seconds))
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let code = match &refusal {
            Refusal::AppNotFound => Code::AppNotFound,
            Refusal::LinkNotFound => Code::LinkNotFound,
            Refusal::NoticeNotFound => Code::NoticeNotFound,
            Refusal::TooManyNotices => Code::TooManyNotices,
            Refusal::AppNotAllowed => Code::AppNotAllowed,
            Refusal::KeyNotFound | Refusal::SdkKeyNotFound => Code::KeyNotFound,
            Refusal::KeyEnded => Code::KeyEnded,
            Refusal::KeyRotated => Code::KeyRotated,
            Refusal::AlertSecretRotated => Code::SecretRotated,
            Refusal::TooManyKeys | Refusal::TooManySdkKeys => Code::TooManyKeys,
            // The key was revoked between authentication and the change.
            Refusal::KeyManagerInvalid => Code::InvalidApiKey,
            Refusal::KeyExceedsManager(fields) => {
                return Self::with_faults(Code::KeyExceedsOwn, refusal.to_string(), fields.clone());
            }
            Refusal::DeviceNotFound => Code::DeviceNotFound,
            Refusal::AppUserNotFound => Code::UserNotFound,
            Refusal::InvalidEraseToken => Code::InvalidEraseToken,
            Refusal::DeliveryNotFound => Code::DeliveryNotFound,
            Refusal::DeliveryNotRetryable => Code::DeliveryNotRetryable,
            Refusal::InstallNotHeld => Code::InstallNotHeld,
            Refusal::InstallForwarded => Code::InstallForwarded,
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
            Refusal::TestClick => Code::TestClick,
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
            Refusal::DomainUnproven => Code::DomainNotVerified,
            Refusal::DnsUnavailable => Code::DnsUnavailable,
            Refusal::VersionConflict => Code::VersionConflict,
            Refusal::Invalid(faults) => return faults.clone().into(),
            // Only the command line and the dashboard can cause these refusals.
            Refusal::OrganizationNotFound
            | Refusal::MemberNotFound
            | Refusal::LastOwner
            | Refusal::AccountNotFound
            | Refusal::ResetLinkInvalid
            | Refusal::CredentialChanged
            | Refusal::FactorNotFound
            | Refusal::AuthenticatorExists
            | Refusal::TooManyFactors
            | Refusal::LastFactor
            | Refusal::LastPasskey
            | Refusal::PasskeyExists
            | Refusal::OwnFactorMissing
            | Refusal::SetupLinkInvalid
            | Refusal::TooManyViews
            | Refusal::TooManyShares
            | Refusal::SingleSignOnNotFound
            | Refusal::SignOnRefused(_)
            | Refusal::OwnerNeedsPassword
            | Refusal::EmailTaken => Code::NotFound,
        };
        Self::new(code, refusal.to_string())
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(refusal) => refusal.into(),
            StoreError::Unavailable { during, source } if source.is::<ReportTimeout>() => {
                tracing::warn!(during, "report took too long");
                let message = "The report took too long and was stopped. Request fewer days or \
                               fewer dimensions.";
                Self::new(Code::Unavailable, message)
            }
            StoreError::Unavailable { during, source } => {
                tracing::error!(during, error = %source, "database unavailable");
                let message = if source.is::<DatabaseDamaged>() {
                    "The database is damaged and an operator must restore it. Keep the request and \
                     send it again later."
                } else {
                    "The database is unavailable. Send the same request again."
                };
                Self::new(Code::Unavailable, message)
            }
            corrupt @ StoreError::Corrupt { .. } => {
                tracing::error!(error = %corrupt, "failed to decode stored value");
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
    fn only_transient_errors_are_retryable() {
        let retryable: Vec<u16> = Code::ALL
            .iter()
            .filter(|code| code.is_retryable())
            .map(|code| code.status().as_u16())
            .collect();
        assert_eq!(retryable, [409, 429, 500, 503, 503]);
    }

    #[test]
    fn unknown_fields_alone_have_their_own_code() {
        let mut faults = Faults::new();
        faults.add(
            "nmae",
            Problem::new(FaultCode::UnknownField, "Unknown field."),
        );
        assert_eq!(ApiError::from(faults.clone()).code(), Code::UnknownField);
        faults.add("name", Problem::new(FaultCode::Required, "Required field."));
        assert_eq!(ApiError::from(faults).code(), Code::ValidationFailed);
    }

    /// Returns the error's JSON body.
    fn body(error: &ApiError) -> serde_json::Value {
        serde_json::from_str(&error.body("req_1")).unwrap()
    }

    #[test]
    fn bodies() {
        let mut faults = Faults::new();
        faults.add("name", Problem::new(FaultCode::Required, "Required field."));
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
