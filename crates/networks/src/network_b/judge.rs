//! Classifies immediate responses.

use super::account::GoogleAdsAccount;
use crate::json::{list, text};
use crate::response::NetworkResponse;
use crate::ruling::{Judgement, RetryAdvice, Ruling};
use crate::text::{numbers_between, valid_indexes};
use serde_json::Value;
use std::time::Duration;
use tributary_domain::forwarding::waits::DELIVERY_WAIT_MAX;

/// Reasons that pause the queue: problems with the account, the conversion action or an agreement.
/// Reasons that start with [`ACCOUNT_PREFIX`] or end with one of [`AGREEMENT_SUFFIXES`] pause it,
/// too.
const PAUSING: [&str; 7] = [
    "INVALID_CONVERSION_ACTION_ID",
    "INVALID_CONVERSION_ACTION_TYPE",
    "INVALID_DESTINATION",
    "EVENT_SOURCE_AND_DESTINATION_MISMATCH",
    "NOT_ALLOWLISTED",
    "OPERATING_ACCOUNT_LOGIN_ACCOUNT_MISMATCH",
    "TERMS_AND_CONDITIONS_NOT_SIGNED",
];
const ACCOUNT_PREFIX: &str = "DESTINATION_ACCOUNT_";
/// Suffixes of reasons for missing declarations or signatures, such as
/// `EU_POLITICAL_ADVERTISING_DECLARATION_REQUIRED`.
const AGREEMENT_SUFFIXES: [&str; 2] = ["_DECLARATION_REQUIRED", "_NOT_SIGNED"];
const TOO_MANY: [&str; 2] = ["TOO_MANY_EVENTS", "TOO_MANY_DESTINATIONS"];
const TRANSIENT: [&str; 2] = ["INTERNAL_ERROR", "DEADLINE_EXCEEDED"];
const TOO_NEW: &str = "CONVERSION_ACTION_TOO_RECENTLY_CREATED";
/// Time until a new conversion action is known to all of Google's systems.
const ACTION_PROPAGATION: Duration = Duration::from_hours(6);

const _: () = assert!(ACTION_PROPAGATION.as_secs() <= DELIVERY_WAIT_MAX.as_secs());

pub(crate) fn judge(
    account: &GoogleAdsAccount,
    sent: usize,
    response: &NetworkResponse,
) -> Judgement {
    let body = response.object();
    if response.is_success() {
        return judge_success(account, body.as_ref());
    }
    let Some(error) = body.as_ref().and_then(|body| body.get("error")) else {
        return Judgement::of(match response.status {
            401 => Ruling::TokenRefused,
            status => by_status(status),
        });
    };
    let error = GoogleError::read(error);
    let too_many = error.has(|reason| TOO_MANY.contains(&reason));
    let warning =
        "The network rejected a request because it contained too many events or destinations.";
    Judgement {
        code: error.code().map(str::to_owned),
        message: error.full_message(),
        trace_id: error.trace.map(str::to_owned),
        warning: too_many.then(|| warning.to_owned()),
        ..Judgement::of(ruling(&error, response.status, sent))
    }
}

/// Classifies a success response. It contains a request id, unless Google was asked to validate the
/// request only.
fn judge_success(account: &GoogleAdsAccount, body: Option<&Value>) -> Judgement {
    let request_id = body.and_then(|body| text(body, "requestId"));
    let ruling = if request_id.is_some() || account.validate_only {
        Ruling::Delivered
    } else {
        Ruling::Unknown
    };
    let warnings: Vec<String> = body
        .into_iter()
        .flat_map(|body| list(body, "fieldWarnings"))
        .map(|warning| {
            let part = |name| text(warning, name).unwrap_or("?");
            format!(
                "{}: {} ({})",
                part("field"),
                part("description"),
                part("reason")
            )
        })
        .collect();
    Judgement {
        trace_id: request_id.map(str::to_owned),
        warning: (!warnings.is_empty()).then(|| warnings.join("; ")),
        ..Judgement::of(ruling)
    }
}

/// Classifies an error by known reasons first, then by status, because Google keeps adding reasons.
fn ruling(error: &GoogleError<'_>, status: u16, sent: usize) -> Ruling {
    if error.has(|reason| reason == TOO_NEW) {
        return Ruling::after(ACTION_PROPAGATION);
    }
    if error.has(|reason| TRANSIENT.contains(&reason)) {
        return Ruling::retry();
    }
    match status {
        401 => Ruling::TokenRefused,
        429 => over_quota(error.quota_limit),
        400 | 422 => judge_rejection(error, sent),
        status => by_status(status),
    }
}

/// Classifies a response by status. 409: concurrent change. 499: the request was cancelled.
fn by_status(status: u16) -> Ruling {
    match status {
        409 | 499 => Ruling::retry(),
        status => Ruling::by_status(status),
    }
}

fn judge_rejection(error: &GoogleError<'_>, sent: usize) -> Ruling {
    if error.has(is_account_reason) {
        return Ruling::Pause;
    }
    if error.has(|reason| TOO_MANY.contains(&reason)) {
        return Ruling::TooLarge;
    }
    let fields = || error.violations.iter().filter_map(|one| text(one, "field"));
    // A wrong destination is not the fault of any event.
    if fields().next().is_some() && fields().all(|field| field.starts_with("destinations")) {
        return Ruling::Pause;
    }
    let named = fields().flat_map(|field| numbers_between(field, "events[", ']').take(1));
    Ruling::Rejected {
        named: valid_indexes(named, sent),
    }
}

fn is_account_reason(reason: &str) -> bool {
    PAUSING.contains(&reason)
        || reason.starts_with(ACCOUNT_PREFIX)
        || AGREEMENT_SUFFIXES
            .iter()
            .any(|ending| reason.ends_with(ending))
}

fn over_quota(limit: Option<&str>) -> Ruling {
    let per_day = limit.is_some_and(|limit| limit.contains("PerDay"));
    let wait = if per_day {
        Duration::from_hours(1)
    } else {
        Duration::from_mins(1)
    };
    Ruling::Retry(RetryAdvice {
        throttled: true,
        at_least: Some(wait),
        ..RetryAdvice::default()
    })
}

/// An error with its details.
#[derive(Default)]
struct GoogleError<'a> {
    status: Option<&'a str>,
    message: Option<&'a str>,
    reason: Option<&'a str>,
    quota_limit: Option<&'a str>,
    trace: Option<&'a str>,
    violations: Vec<&'a Value>,
}

impl<'a> GoogleError<'a> {
    /// Reads the details, which come in any order and may have unknown types.
    fn read(error: &'a Value) -> Self {
        let mut parsed = Self {
            status: text(error, "status"),
            message: text(error, "message"),
            ..Self::default()
        };
        for detail in list(error, "details") {
            let tag = text(detail, "@type").unwrap_or_default();
            match tag.rsplit('.').next() {
                Some("ErrorInfo") => {
                    parsed.reason = text(detail, "reason");
                    let metadata = detail.get("metadata");
                    parsed.quota_limit = metadata.and_then(|data| text(data, "quota_limit"));
                }
                Some("BadRequest") => parsed.violations.extend(list(detail, "fieldViolations")),
                Some("RequestInfo") => parsed.trace = text(detail, "requestId"),
                _ => {}
            }
        }
        parsed
    }

    fn reasons(&self) -> impl Iterator<Item = &'a str> {
        let of_fields = self.violations.iter().filter_map(|one| text(one, "reason"));
        of_fields.chain(self.reason)
    }

    fn has(&self, is: impl Fn(&str) -> bool) -> bool {
        self.reasons().any(is)
    }

    /// Returns the most specific code: a field's reason, the error's reason, or the status.
    fn code(&self) -> Option<&'a str> {
        self.reasons().next().or(self.status)
    }

    fn full_message(&self) -> Option<String> {
        let violations = self.violations.iter().filter_map(|one| {
            let (field, description) = (text(one, "field")?, text(one, "description")?);
            Some(format!("{field}: {description}"))
        });
        let parts: Vec<String> = self
            .message
            .map(str::to_owned)
            .into_iter()
            .chain(violations)
            .collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    }
}
