//! The answers. The status decides; never the `type`, which says `server_error` of anything.

use crate::answer::Answer;
use crate::json::{list, text};
use crate::ruling::{Judgement, Ruling};
use crate::text::{numbers_between, places};
use serde_json::Value;

/// What a request cannot do without: the pixel in its query, the list in its body.
const OF_THE_REQUEST: [&str; 2] = ["pid", "events"];
/// Words between the name of a field and the word that says that it is missing.
const WORDS_BETWEEN: usize = 3;

pub(crate) fn judge(sent: usize, answer: &Answer) -> Judgement {
    let trace = answer.header("x-request-id").map(str::to_owned);
    if answer.is_success() {
        return Judgement {
            trace,
            ..Judgement::of(Ruling::Delivered)
        };
    }
    let body = answer.object().unwrap_or_default();
    let error = body.get("error").unwrap_or(&Value::Null);
    let ruling = match answer.status {
        400 | 422 => of_request(error, sent),
        status => Ruling::by_status(status),
    };
    let first = |name| every(error, name).next();
    let words: Vec<&str> = every(error, "message").collect();
    Judgement {
        code: first("code").map(str::to_owned),
        words: (!words.is_empty()).then(|| words.join(" ")),
        trace,
        ..Judgement::of(ruling)
    }
}

/// A field of the error, and of each of the errors within it.
fn every<'a>(error: &'a Value, name: &'a str) -> impl Iterator<Item = &'a str> {
    let within = list(error, "errors").filter_map(move |one| text(one, name));
    text(error, name).into_iter().chain(within)
}

fn of_request(error: &Value, sent: usize) -> Ruling {
    let indexed = |param| numbers_between(param, "events[", ']').take(1);
    let named: Vec<usize> = every(error, "param").flat_map(indexed).collect();
    if named.is_empty() && is_about_the_request(error) {
        return Ruling::Pause;
    }
    Ruling::Rejected {
        named: places(named.into_iter(), sent),
    }
}

/// Whether the request itself is incomplete, so that no event is to blame.
fn is_about_the_request(error: &Value) -> bool {
    let missing = every(error, "code")
        .chain(every(error, "message"))
        .any(|text| words(text).any(|word| says_missing(&word)));
    let by_param = every(error, "param")
        .any(|param| param == "pid" || (OF_THE_REQUEST.contains(&param) && missing));
    by_param || every(error, "message").any(misses_a_field)
}

/// `Missing required parameter: events`, `pid is required`.
fn misses_a_field(message: &str) -> bool {
    let words: Vec<String> = words(message).collect();
    let places = |is: fn(&str) -> bool| {
        let found = words.iter().enumerate().filter(move |(_, word)| is(word));
        found.map(|(place, _)| place).collect::<Vec<usize>>()
    };
    let fields = places(|word| OF_THE_REQUEST.contains(&word));
    let missing = places(says_missing);
    fields.iter().any(|field| {
        missing
            .iter()
            .any(|place| place.abs_diff(*field) <= WORDS_BETWEEN)
    })
}

fn says_missing(word: &str) -> bool {
    matches!(word, "missing" | "required")
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
}
