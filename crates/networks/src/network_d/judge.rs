//! Classifies responses by status. The `type` does not help, because it is `server_error` for every
//! error.

use crate::json::{integer, list, text};
use crate::response::NetworkResponse;
use crate::ruling::{Judgement, Ruling};
use crate::text::{numbers_between, valid_indexes};
use serde_json::Value;

/// Required parts of a request: the pixel in its query, the events in its body.
const REQUEST_FIELDS: [&str; 2] = ["pid", "events"];
/// Error fields with an event's index in the batch.
const INDEX_FIELDS: [&str; 2] = ["index", "event_index"];
/// Elements that a path may start with, before the field names.
const PATH_PREFIXES: [&str; 2] = ["body", "query"];
/// Maximum number of words between a field's name and "missing" or "required".
const WORDS_BETWEEN: usize = 3;

pub(crate) fn judge(sent: usize, response: &NetworkResponse) -> Judgement {
    let trace = response.header("x-request-id").map(str::to_owned);
    if response.is_success() {
        return Judgement {
            trace_id: trace,
            ..Judgement::of(Ruling::Delivered)
        };
    }
    let body = response.object().unwrap_or_default();
    let errors = Errors::read(&body);
    let ruling = match response.status {
        400 | 422 => judge_rejection(&errors, sent),
        status => Ruling::by_status(status),
    };
    let messages: Vec<&str> = errors.texts(&["message", "msg"]).collect();
    Judgement {
        code: errors.code().map(str::to_owned),
        message: (!messages.is_empty()).then(|| messages.join(" ")),
        trace_id: trace,
        ..Judgement::of(ruling)
    }
}

/// All errors in a response: an `error` with a list `errors` or `details`, or a list `detail` whose
/// items have a path `loc`.
struct Errors<'a> {
    all: Vec<&'a Value>,
}

impl<'a> Errors<'a> {
    fn read(body: &'a Value) -> Self {
        let error = body.get("error").unwrap_or(&Value::Null);
        let within = |name| list(error, name);
        let all = std::iter::once(error)
            .chain(within("errors"))
            .chain(within("details"))
            .chain(list(body, "errors"))
            .chain(list(body, "detail"));
        Self { all: all.collect() }
    }

    /// Returns the first of these fields in each error.
    fn texts(&self, names: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
        let first = |error: &&'a Value| names.iter().find_map(|name| text(error, name));
        self.all.iter().filter_map(first)
    }

    /// Returns the error code. `type` is used only next to a path; elsewhere it is `server_error`
    /// for every error.
    fn code(&self) -> Option<&'a str> {
        let of_path = || self.all.iter().filter(|error| error.get("loc").is_some());
        self.texts(&["code"])
            .next()
            .or_else(|| of_path().find_map(|error| text(error, "type")))
    }

    /// Returns the paths of invalid fields, such as `events[1].data`.
    fn params(&self) -> impl Iterator<Item = String> {
        self.all.iter().filter_map(|error| {
            let param = text(error, "param").map(str::to_owned);
            param.or_else(|| Some(format_path(error.get("loc")?.as_array()?)))
        })
    }

    /// Returns the batch indexes that the errors name.
    fn named(&self) -> Vec<usize> {
        let by_param = |param: String| {
            let brackets = numbers_between(&param, "events[", ']').take(1);
            let dots = numbers_between(&param, "events.", '.').take(1);
            brackets.chain(dots).collect::<Vec<usize>>()
        };
        let by_index = |error: &&Value| {
            let index = INDEX_FIELDS.iter().find_map(|name| integer(error, name))?;
            usize::try_from(index).ok()
        };
        let indexes = self.all.iter().filter_map(by_index);
        self.params().flat_map(by_param).chain(indexes).collect()
    }
}

/// Formats a path such as `["body", "events", 1, "data"]` as `events[1].data`.
fn format_path(path: &[Value]) -> String {
    let part = |part: &Value| match part {
        Value::Number(number) => format!("[{number}]"),
        Value::String(name) if PATH_PREFIXES.contains(&name.as_str()) => String::new(),
        Value::String(name) => format!(".{name}"),
        _ => String::new(),
    };
    let text: String = path.iter().map(part).collect();
    text.trim_start_matches('.').to_owned()
}

fn judge_rejection(errors: &Errors<'_>, sent: usize) -> Ruling {
    let named = errors.named();
    if named.is_empty() && is_request_error(errors) {
        return Ruling::Pause;
    }
    Ruling::Rejected {
        named: valid_indexes(named.into_iter(), sent),
    }
}

/// Returns whether the request itself is incomplete, so that no event is at fault.
fn is_request_error(errors: &Errors<'_>) -> bool {
    let missing = errors
        .texts(&["code"])
        .chain(errors.texts(&["message", "msg"]))
        .chain(errors.code())
        .any(|text| words(text).any(|word| means_missing(&word)));
    let by_param = errors
        .params()
        .any(|param| param == "pid" || (REQUEST_FIELDS.contains(&param.as_str()) && missing));
    by_param || errors.texts(&["message", "msg"]).any(reports_missing_field)
}

/// Recognises `Missing required parameter: events` and `pid is required`.
fn reports_missing_field(message: &str) -> bool {
    let words: Vec<String> = words(message).collect();
    let positions = |is: fn(&str) -> bool| {
        let found = words.iter().enumerate().filter(move |(_, word)| is(word));
        found.map(|(position, _)| position).collect::<Vec<usize>>()
    };
    let fields = positions(|word| REQUEST_FIELDS.contains(&word));
    let missing = positions(means_missing);
    fields.iter().any(|field| {
        missing
            .iter()
            .any(|position| position.abs_diff(*field) <= WORDS_BETWEEN)
    })
}

fn means_missing(word: &str) -> bool {
    matches!(word, "missing" | "required")
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
}
