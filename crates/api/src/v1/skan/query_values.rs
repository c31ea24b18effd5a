//! Values of query parameters for this resource.

use tributary_domain::skan::postback::{Protocol, TEXT_CHARS_MAX};
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::text::check_length;

/// Parses one of a set of keywords.
pub(super) fn parse_choice<T: Copy>(
    text: &str,
    all: &[T],
    word: fn(T) -> &'static str,
) -> Result<T, Problem> {
    let found = all.iter().copied().find(|one| word(*one) == text);
    found.ok_or_else(|| {
        let words: Vec<&str> = all.iter().map(|one| word(*one)).collect();
        let message = format!("Must be one of {}.", words.join(", "));
        Problem::new(FaultCode::UnknownValue, message)
    })
}

/// Parses Apple's framework.
pub(super) fn protocol(text: &str) -> Result<Protocol, Problem> {
    parse_choice(text, &Protocol::ALL, Protocol::as_str)
}

/// Parses an ad network id. Ids are compared in lower case.
pub(super) fn ad_network_id(text: &str) -> Result<String, Problem> {
    check_length(text, 1, TEXT_CHARS_MAX).map(|()| text.to_lowercase())
}
