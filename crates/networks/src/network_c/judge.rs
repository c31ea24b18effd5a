//! The answers. Errors mostly come with the status of a success; the code tells.

use crate::answer::Answer;
use crate::json::{integer, text};
use crate::ruling::{Judgement, Ruling};
use crate::text::{numbers_between, places};

const OK: i64 = 0;
/// By its name a success of parts; what it means is not documented.
const PARTIAL: i64 = 20_001;
const NO_PERMISSION: i64 = 40_001;
const INVALID_PARAMETER: i64 = 40_002;
const TOO_MANY_REQUESTS: i64 = 40_100;
/// What it means is not documented; it is reported to pass.
const PASSING: i64 = 40_700;

pub(crate) fn judge(sent: usize, answer: &Answer) -> Judgement {
    let body = answer.object();
    let code = body.as_ref().and_then(|body| integer(body, "code"));
    let message = body.as_ref().and_then(|body| text(body, "message"));
    let trace = body.as_ref().and_then(|body| text(body, "request_id"));
    let ruling = match (answer.status, code) {
        (429, _) => Ruling::throttled(),
        (500.., _) | (_, None) => Ruling::by_status(answer.status),
        (_, Some(code)) => of_code(code, answer, message.unwrap_or_default(), sent),
    };
    let warning = code.filter(|code| !is_known(*code)).map(|code| {
        let trace = trace.unwrap_or("none");
        format!("The network answered with code {code}, whose meaning is not known (request id: {trace}).")
    });
    let failed = code != Some(OK);
    Judgement {
        code: code.filter(|_| failed).map(|code| code.to_string()),
        words: message.filter(|_| failed).map(str::to_owned),
        trace: trace.map(str::to_owned),
        warning,
        ..Judgement::of(ruling)
    }
}

fn of_code(code: i64, answer: &Answer, message: &str, sent: usize) -> Ruling {
    match code {
        OK if answer.is_success() => Ruling::Delivered,
        OK => Ruling::by_status(answer.status),
        PARTIAL => Ruling::Delivered,
        INVALID_PARAMETER => Ruling::Rejected {
            named: places(numbers_between(message, "Batch.", '.'), sent),
        },
        TOO_MANY_REQUESTS => Ruling::throttled(),
        NO_PERMISSION | 40_101..=40_199 => Ruling::Pause,
        PASSING | 50_000..=59_999 => Ruling::retry(),
        40_000..=49_999 => Ruling::unnamed(),
        // Nobody knows what it says about the events.
        _ => Ruling::Unknown,
    }
}

const fn is_known(code: i64) -> bool {
    matches!(
        code,
        OK | NO_PERMISSION
            | INVALID_PARAMETER
            | TOO_MANY_REQUESTS..=40_199
            | PASSING
            | 50_000..=59_999
    )
}
