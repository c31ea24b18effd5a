//! Request bodies from the SDK: JSON, with the content type of JSON or plain text. Without a CORS
//! preflight, `sendBeacon` can send only plain text.

use crate::body::{content_type, is_json, malformed, read_bytes};
use crate::error::{ApiError, Code};
use crate::fields::{Fields, InputValue, wrong_type};
use crate::state::ApiState;
use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use serde_json::value::RawValue;
use tributary_domain::vocabulary::fault::Faults;

/// A received body. Only handlers that need the body parse it.
#[derive(Debug)]
pub(super) struct TrackBody(Bytes);

impl FromRequest<ApiState> for TrackBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let is_accepted =
            |essence: &str| is_json(essence) || essence.eq_ignore_ascii_case("text/plain");
        if !content_type(&parts.headers).is_some_and(is_accepted) {
            let message =
                "Send JSON with the header `Content-Type: application/json` or `text/plain`.";
            return Err(ApiError::new(Code::UnsupportedMediaType, message));
        }
        read_bytes(&parts.headers, body, state).await.map(Self)
    }
}

impl TrackBody {
    /// Reads the fields with `read`. If any field has a fault, returns an error that lists all
    /// faults.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&mut Fields<'_>) -> Option<T>,
    ) -> Result<T, ApiError> {
        let (value, faults) = self.try_read(read)?;
        faults.into_result()?;
        // A reader that returns `None` has added a fault.
        value.ok_or_else(ApiError::internal)
    }

    /// Reads the fields and ignores invalid optional fields. Fails only if the reader returns
    /// `None`; the error then lists all faults.
    pub(super) fn read_lenient<T>(
        &self,
        read: impl FnOnce(&mut Fields<'_>) -> Option<T>,
    ) -> Result<T, ApiError> {
        let (value, faults) = self.try_read(read)?;
        if let Some(value) = value {
            return Ok(value);
        }
        faults.into_result()?;
        Err(ApiError::internal())
    }

    /// Returns the value that was read and all faults.
    fn try_read<T>(
        &self,
        read: impl FnOnce(&mut Fields<'_>) -> Option<T>,
    ) -> Result<(Option<T>, Faults), ApiError> {
        let text = std::str::from_utf8(&self.0).map_err(|_| malformed())?;
        let raw: &RawValue = serde_json::from_str(text).map_err(|_| malformed())?;
        let mut faults = Faults::new();
        let body = InputValue::Text(raw);
        if !body.is_object() {
            faults.add("body", wrong_type("an object"));
            return Err(faults.into());
        }
        let value = read(&mut Fields::lenient(body, &mut faults));
        Ok((value, faults))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::text;
    use rstest::rstest;

    #[rstest]
    #[case::valid(r#"{"a": "x"}"#, Ok("x"))]
    #[case::outer_blanks(" \n{\"a\": \"x\"}\t", Ok("x"))]
    #[case::the_last_of_two(r#"{"a": "x", "a": "y"}"#, Ok("y"))]
    #[case::unknown_fields_are_ignored(r#"{"b": [1], "a": "x"}"#, Ok("x"))]
    #[case::missing("{}", Err(Code::ValidationFailed))]
    #[case::null_is_missing(r#"{"a": null}"#, Err(Code::ValidationFailed))]
    #[case::wrong_type(r#"{"a": 1}"#, Err(Code::ValidationFailed))]
    #[case::a_list("[]", Err(Code::ValidationFailed))]
    #[case::null("null", Err(Code::ValidationFailed))]
    #[case::empty("", Err(Code::MalformedJson))]
    #[case::broken(r#"{"a": "x""#, Err(Code::MalformedJson))]
    #[case::two_values("{} {}", Err(Code::MalformedJson))]
    fn bodies(#[case] body: &'static str, #[case] expected: Result<&str, Code>) {
        let body = TrackBody(Bytes::from_static(body.as_bytes()));
        let read = body.read(|fields| fields.required("a", text()));
        assert_eq!(
            read.as_deref().map_err(ApiError::code),
            expected.as_ref().map(|text| *text).map_err(|code| *code)
        );
    }

    #[rstest]
    #[case::valid(r#"{"a": "x", "b": "y"}"#, Ok(("x", Some("y"))))]
    #[case::invalid_optional_field_is_ignored(r#"{"a": "x", "b": 1}"#, Ok(("x", None)))]
    #[case::invalid_required_field(r#"{"a": 1, "b": 1}"#, Err(Code::ValidationFailed))]
    #[case::a_list("[]", Err(Code::ValidationFailed))]
    #[case::broken(r#"{"a": "x""#, Err(Code::MalformedJson))]
    fn lenient_bodies(
        #[case] body: &'static str,
        #[case] expected: Result<(&str, Option<&str>), Code>,
    ) {
        let body = TrackBody(Bytes::from_static(body.as_bytes()));
        let read = body.read_lenient(|fields| {
            let b = fields.optional("b", text());
            Some((fields.required("a", text())?, b))
        });
        let read = read.as_ref().map(|(a, b)| (a.as_str(), b.as_deref()));
        assert_eq!(read.map_err(ApiError::code), expected);
    }

    #[test]
    fn rejects_a_body_that_is_not_utf_8() {
        let body = TrackBody(Bytes::from_static(b"{\"a\": \"\xff\"}"));
        let read = body.read(|fields| fields.required("a", text()));
        assert_eq!(read.unwrap_err().code(), Code::MalformedJson);
    }
}
