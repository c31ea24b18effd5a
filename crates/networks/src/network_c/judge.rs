//! Classifies responses by code, because most errors have a success status.

use crate::json::{integer, list, text};
use crate::response::NetworkResponse;
use crate::ruling::{Judgement, Ruling};
use crate::text::{numbers_between, valid_indexes};
use serde_json::Value;

const OK: i64 = 0;
/// All events except the listed ones were accepted. TikTok does not document what the code means
/// without a list.
const PARTIAL: i64 = 20_001;
const NO_PERMISSION: i64 = 40_001;
const INVALID_PARAMETER: i64 = 40_002;
/// The pixel does not exist or the token has no access to it.
const NO_SUCH_PIXEL: i64 = 40_007;
/// Words that the message of [`INVALID_PARAMETER`] contains if the pixel is wrong.
const PIXEL_WORDS: [&str; 2] = ["pixel", "event_source_id"];
const TOO_MANY_REQUESTS: i64 = 40_100;
/// Undocumented, but reported to be temporary.
const TRANSIENT: i64 = 40_700;

pub(crate) fn judge(sent: usize, response: &NetworkResponse) -> Judgement {
    let body = response.object();
    let code = body.as_ref().and_then(|body| integer(body, "code"));
    let message = body.as_ref().and_then(|body| text(body, "message"));
    let failed_events: Vec<&Value> = body.as_ref().map_or_else(Vec::new, failed_events);
    let trace = body.as_ref().and_then(|body| text(body, "request_id"));
    let ruling = match (response.status, code) {
        (429, _) => Ruling::throttled(),
        (500.., _) | (_, None) => Ruling::by_status(response.status),
        (_, Some(PARTIAL)) if !failed_events.is_empty() => partial_success(&failed_events, sent),
        (_, Some(code)) => judge_code(code, response, message.unwrap_or_default(), sent),
    };
    let is_explained = matches!(ruling, Ruling::DeliveredExcept { .. });
    let is_odd = |code: &i64| !is_known(*code) && !is_explained;
    let warning = code.filter(is_odd).map(|code| {
        let trace = trace.unwrap_or("none");
        format!("The network responded with the unknown code {code} (request id: {trace}).")
    });
    let failed = code != Some(OK);
    let of_events = failed_events
        .iter()
        .filter_map(|event| text(event, "error_message"));
    let messages: Vec<&str> = message.into_iter().chain(of_events).collect();
    Judgement {
        code: code.filter(|_| failed).map(|code| code.to_string()),
        message: (failed && !messages.is_empty()).then(|| messages.join(" ")),
        trace_id: trace.map(str::to_owned),
        warning,
        ..Judgement::of(ruling)
    }
}

/// Returns the failed events in a partial success.
fn failed_events(body: &Value) -> Vec<&Value> {
    body.get("data")
        .map(|data| list(data, "failed_events").collect())
        .unwrap_or_default()
}

/// Classifies a partial success. If the list is unreadable or names events that were not sent, all
/// events count as delivered.
fn partial_success(failed_events: &[&Value], sent: usize) -> Ruling {
    let index_of = |event: &&Value| usize::try_from(integer(event, "order_in_batch")?).ok();
    let failed: Option<Vec<usize>> = failed_events
        .iter()
        .map(|event| index_of(event).filter(|index| *index < sent))
        .collect();
    match failed {
        Some(failed) => Ruling::DeliveredExcept {
            failed: valid_indexes(failed.into_iter(), sent),
        },
        None => Ruling::Delivered,
    }
}

fn invalid_parameter(message: &str, sent: usize) -> Ruling {
    let named = valid_indexes(numbers_between(message, "Batch.", '.'), sent);
    let lower = message.to_ascii_lowercase();
    let is_of_pixel = PIXEL_WORDS.iter().any(|name| lower.contains(name));
    if named.is_empty() && is_of_pixel && !lower.contains("batch.") {
        Ruling::Pause
    } else {
        Ruling::Rejected { named }
    }
}

fn judge_code(code: i64, response: &NetworkResponse, message: &str, sent: usize) -> Ruling {
    match code {
        OK if response.is_success() => Ruling::Delivered,
        OK => Ruling::by_status(response.status),
        PARTIAL => Ruling::Delivered,
        INVALID_PARAMETER => invalid_parameter(message, sent),
        TOO_MANY_REQUESTS => Ruling::throttled(),
        NO_PERMISSION | NO_SUCH_PIXEL | 40_101..=40_199 => Ruling::Pause,
        TRANSIENT | 50_000..=59_999 => Ruling::retry(),
        40_000..=49_999 => Ruling::unnamed(),
        // The effect on the events is unknown.
        _ => Ruling::Unknown,
    }
}

const fn is_known(code: i64) -> bool {
    matches!(
        code,
        OK | NO_PERMISSION
            | INVALID_PARAMETER
            | NO_SUCH_PIXEL
            | TOO_MANY_REQUESTS..=40_199
            | TRANSIENT
            | 50_000..=59_999
    )
}
