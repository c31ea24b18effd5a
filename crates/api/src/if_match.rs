//! `If-Match`: the version that a change is based on.

use crate::error::{ApiError, Code};
use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use tributary_domain::vocabulary::revision::Precondition;

/// Parsed `If-Match` header. Without the header there is no precondition.
#[derive(Debug)]
pub(crate) struct IfMatch(pub(crate) Precondition);

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let mut tags = Vec::new();
        for value in parts.headers.get_all(header::IF_MATCH) {
            // An unreadable header becomes an empty tag, which matches no version.
            tags.extend(value.to_str().unwrap_or_default().split(',').map(tag));
        }
        if tags.is_empty() {
            return Ok(Self(Precondition::None));
        }
        if tags.len() > TAGS_MAX {
            let message = format!("If-Match must list at most {TAGS_MAX} tags.");
            return Err(ApiError::new(Code::VersionConflict, message));
        }
        Ok(Self(Precondition::AnyOf(tags)))
    }
}

/// Maximum number of tags accepted in one request.
const TAGS_MAX: usize = 20;

/// Strips the quotes from a tag. Unquoted tags are accepted. Weak tags (`W/"1"`) never match, as
/// HTTP requires.
fn tag(text: &str) -> String {
    let text = text.trim();
    text.strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(text)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("\"7\"", "7")]
    #[case(" \"7.3t\" ", "7.3t")]
    #[case("7", "7")]
    #[case("*", "*")]
    #[case("W/\"7\"", "W/\"7\"")]
    #[case("\"", "\"")]
    #[case("", "")]
    fn tags(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(tag(text), expected);
    }
}
