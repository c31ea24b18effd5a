//! `If-Match`: what the sender of a change believes to be changing.

use crate::error::{ApiError, Code};
use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use tributary_domain::vocabulary::revision::Precondition;

/// The header, read. Absent: no precondition.
#[derive(Debug)]
pub(crate) struct IfMatch(pub(crate) Precondition);

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let mut tags = Vec::new();
        for value in parts.headers.get_all(header::IF_MATCH) {
            // A header that cannot be read names no version, so none matches.
            tags.extend(value.to_str().unwrap_or_default().split(',').map(tag));
        }
        if tags.is_empty() {
            return Ok(Self(Precondition::None));
        }
        if tags.len() > TAGS_MAX {
            let message = format!("If-Match names more than {TAGS_MAX} versions.");
            return Err(ApiError::new(Code::VersionConflict, message));
        }
        Ok(Self(Precondition::AnyOf(tags)))
    }
}

/// Versions that one header may name.
const TAGS_MAX: usize = 20;

/// A tag without its quotes. A bare one is taken as well; a weak one (`W/"1"`) never matches, as HTTP has it.
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
