//! Classifies responses by error code. The message is only used to detect a wrong app secret. The
//! HTTP status is used if there is no known code, and for codes about parameters.

use super::usage::pace;
use crate::json::{integer, text};
use crate::response::NetworkResponse;
use crate::ruling::{Judgement, RetryAdvice, Ruling};
use serde_json::Value;

/// Codes that pause the queue: problems with the token, permissions, app or dataset, or a retired
/// API version.
const PAUSING: [i64; 11] = [3, 10, 12, 102, 104, 190, 200, 294, 803, 2_500, 2_635];
/// Too many calls. The codes in [`THROTTLING_OF_USE_CASES`] have the same meaning.
const THROTTLING: [i64; 5] = [4, 17, 32, 341, 613];
/// Too many calls, counted per use case.
const THROTTLING_OF_USE_CASES: std::ops::RangeInclusive<i64> = 80_000..=80_099;
/// Temporary errors. 21009: the dataset is not ready yet.
const TRANSIENT: [i64; 4] = [1, 2, 5_000, 21_009];
/// Invalid parameter; the subcode has the details.
const INVALID_PARAMETER: i64 = 100;
/// Subcodes of [`INVALID_PARAMETER`]: the pixel does not exist or the token has no access to it.
const NO_SUCH_OBJECT: [i64; 2] = [33, 34];
/// Subcodes of [`INVALID_PARAMETER`] about one event: too old, insufficient identity.
const EVENT_SUBCODES: [i64; 2] = [2_804_003, 2_804_050];
/// The message of [`INVALID_PARAMETER`] contains this if the app secret does not match the token.
/// There is no subcode for it.
const PROOF: &str = "appsecret_proof";
/// Temporarily blocked for policy violations.
const BLOCKED: i64 = 368;
/// Body that a response with a success status sometimes has instead of JSON.
const UNAVAILABLE: &str = "Service Unavailable";

pub(crate) fn judge(sent: usize, response: &NetworkResponse) -> Judgement {
    let body = response.object();
    let error = body.as_ref().and_then(|body| body.get("error"));
    let judgement = match (error, &body) {
        (Some(error), _) => judge_error(error, response.status),
        (None, Some(body)) if response.is_success() => {
            let received = integer(body, "events_received").and_then(|n| usize::try_from(n).ok());
            let all = received == Some(sent);
            Judgement::of(if all {
                Ruling::Delivered
            } else {
                Ruling::Unknown
            })
        }
        _ => Judgement::of(judge_without_code(response)),
    };
    let outdated = response.header("x-ad-api-version-warning");
    let trace = error.and_then(|error| text(error, "fbtrace_id"));
    let trace = trace.or_else(|| text(body.as_ref()?, "fbtrace_id"));
    Judgement {
        trace_id: trace.map(str::to_owned),
        pace: pace(response),
        warning: judgement.warning.clone().or(outdated.map(str::to_owned)),
        ..judgement
    }
}

fn judge_without_code(response: &NetworkResponse) -> Ruling {
    let says_unavailable = String::from_utf8_lossy(&response.body).contains(UNAVAILABLE);
    if response.is_success() && says_unavailable {
        return Ruling::retry();
    }
    Ruling::by_status(response.status)
}

fn judge_error(error: &Value, status: u16) -> Judgement {
    let code = integer(error, "code");
    let subcode = integer(error, "error_subcode");
    let is_transient = error.get("is_transient") == Some(&Value::Bool(true)) || status >= 500;
    let blames_proof = text(error, "message").is_some_and(|message| message.contains(PROOF));
    let known = code.and_then(|code| match code {
        INVALID_PARAMETER if blames_proof => Some(Ruling::Pause),
        code => judge_code(code, subcode, status),
    });
    let unknown = if is_transient {
        Ruling::retry()
    } else {
        Ruling::unnamed()
    };
    let warning = match (&known, code) {
        (Some(_), Some(BLOCKED)) => Some("The network has temporarily blocked this account."),
        (None, _) if !is_transient => {
            Some("The network rejected the request for an unknown reason.")
        }
        _ => None,
    };
    let written = code.map(|code| match subcode {
        Some(subcode) => format!("{code}/{subcode}"),
        None => code.to_string(),
    });
    let messages: Vec<&str> = ["message", "error_user_title", "error_user_msg"]
        .into_iter()
        .filter_map(|name| text(error, name))
        .collect();
    Judgement {
        code: written,
        message: (!messages.is_empty()).then(|| messages.join(" – ")),
        warning: warning.map(str::to_owned),
        ..Judgement::of(known.unwrap_or(unknown))
    }
}

/// Classifies known codes. They take precedence over `is_transient`, because a retry does not fix a
/// revoked token, for example. In a 5xx response, codes about parameters are not reliable.
fn judge_code(code: i64, subcode: Option<i64>, status: u16) -> Option<Ruling> {
    let is_one_of = |codes: [i64; 2]| subcode.is_some_and(|subcode| codes.contains(&subcode));
    match code {
        _ if PAUSING.contains(&code) => Some(Ruling::Pause),
        INVALID_PARAMETER if is_one_of(NO_SUCH_OBJECT) => Some(Ruling::Pause),
        INVALID_PARAMETER if status < 500 && is_one_of(EVENT_SUBCODES) => {
            Some(Ruling::InvalidEvent)
        }
        INVALID_PARAMETER if status < 500 => Some(Ruling::unnamed()),
        _ if THROTTLING.contains(&code) || THROTTLING_OF_USE_CASES.contains(&code) => {
            Some(Ruling::throttled())
        }
        BLOCKED => Some(Ruling::Retry(RetryAdvice {
            needs_longest_wait: true,
            ..RetryAdvice::default()
        })),
        _ if TRANSIENT.contains(&code) || code < 0 => Some(Ruling::retry()),
        _ => None,
    }
}
