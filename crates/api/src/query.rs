//! Query strings. Unknown and duplicate parameters are rejected.

use crate::error::ApiError;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::borrow::Cow;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};

/// Maximum number of parameters per request. Further parameters are ignored.
const PARAMETERS_MAX: usize = 50;

/// Decoded query string of a request.
#[derive(Debug)]
pub(crate) struct QueryString(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for QueryString {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        Ok(Self::parse(parts.uri.query().unwrap_or_default()))
    }
}

impl QueryString {
    fn parse(query: &str) -> Self {
        let pairs = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .take(PARAMETERS_MAX);
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name).into_owned(), decode(value).into_owned())
        };
        Self(pairs.map(pair).collect())
    }

    /// Reads the parameters. Returns all faults, including unknown parameters, if there are any.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&mut QueryParameters<'_>) -> T,
    ) -> Result<T, ApiError> {
        let mut parameters = QueryParameters {
            given: &self.0,
            known: Vec::new(),
            former: Vec::new(),
            faults: Faults::new(),
        };
        let value = read(&mut parameters);
        parameters.finish()?;
        Ok(value)
    }

    /// Reads one parameter and ignores the others, because a newer SDK may send additional ones.
    pub(crate) fn read_one<T>(
        &self,
        name: &'static str,
        read: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> Result<Option<T>, ApiError> {
        let mut faults = Faults::new();
        let given = self.0.iter().find(|(given, _)| given == name);
        let value = given.and_then(|(_, value)| faults.check(name, read(value)));
        faults.into_result()?;
        Ok(value)
    }
}

/// Reader of query parameters.
pub(crate) struct QueryParameters<'a> {
    given: &'a [(String, String)],
    known: Vec<&'static str>,
    /// Former parameter names that the request used.
    former: Vec<&'static str>,
    faults: Faults,
}

impl QueryParameters<'_> {
    /// Reads an optional parameter.
    pub(crate) fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> Option<T> {
        self.known.push(name);
        let (_, value) = self.given.iter().find(|(given, _)| given == name)?;
        self.faults.check(name, read(value))
    }

    /// Reads a parameter that was renamed. The former name still works but is no longer documented.
    pub(crate) fn renamed<T>(
        &mut self,
        name: &'static str,
        former: &'static str,
        read: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> Option<T> {
        let is_given = |wanted: &str| self.given.iter().any(|(given, _)| given == wanted);
        let (has_name, has_former) = (is_given(name), is_given(former));
        if !has_former {
            return self.optional(name, read);
        }
        self.former.push(former);
        if has_name {
            let message = format!("This is the former name of {name}. Send only {name}.");
            let problem = Problem::new(FaultCode::NotAllowed, message);
            self.faults.add(former, problem);
            return self.optional(name, read);
        }
        self.known.push(name);
        let (_, value) = self.given.iter().find(|(given, _)| given == former)?;
        self.faults.check(former, read(value))
    }

    fn finish(mut self) -> Result<(), Faults> {
        for (index, (name, _)) in self.given.iter().enumerate() {
            let is_known = self.known.contains(&name.as_str());
            if !is_known && !self.former.contains(&name.as_str()) {
                let message = format!("Unknown parameter. Supported: {}.", self.known.join(", "));
                self.faults
                    .add(name.clone(), Problem::new(FaultCode::UnknownField, message));
            } else if self.given[..index]
                .iter()
                .any(|(earlier, _)| earlier == name)
            {
                let message = "Duplicate parameter.";
                self.faults.add(
                    name.clone(),
                    Problem::new(FaultCode::DuplicateField, message),
                );
            }
        }
        self.faults.into_result()
    }
}

/// Reads `true` or `false`.
pub(crate) fn parse_bool(text: &str) -> Result<bool, Problem> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Problem::new(
            FaultCode::UnknownValue,
            "Must be one of true, false.",
        )),
    }
}

/// Percent-decodes a part of a query; `+` is a space. Invalid UTF-8 becomes the replacement
/// character, which no parameter accepts.
fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let hex = bytes
            .get(index + 1..index + 3)
            .and_then(|pair| std::str::from_utf8(pair).ok());
        match (
            bytes[index],
            hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()),
        ) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                index += 3;
            }
            (b'+', _) => {
                decoded.push(b' ');
                index += 1;
            }
            (byte, _) => {
                decoded.push(byte);
                index += 1;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&decoded).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;
    use proptest::prelude::*;
    use rstest::rstest;

    fn limit(query: &str) -> Result<Option<String>, ApiError> {
        QueryString::parse(query).read(|query| query.optional("limit", |text| Ok(text.to_owned())))
    }

    #[test]
    fn parameters() {
        assert_eq!(limit("").unwrap(), None);
        assert_eq!(limit("limit=5").unwrap().as_deref(), Some("5"));
        assert_eq!(limit("limit=%35%20+x").unwrap().as_deref(), Some("5  x"));
        assert_eq!(limit("limit=5%").unwrap().as_deref(), Some("5%"));
        assert_eq!(
            limit("limit=5&limit=6").unwrap_err().code(),
            Code::ValidationFailed
        );
        assert_eq!(limit("limti=5").unwrap_err().code(), Code::UnknownField);
    }

    proptest! {
        #[test]
        fn nothing_panics(query in ".*") {
            let _any_outcome_is_fine = limit(&query);
        }
    }

    #[rstest]
    #[case::new("linkId=a", Ok(Some("a")))]
    #[case::former("link=a", Ok(Some("a")))]
    #[case::absent("", Ok(None))]
    #[case::both("linkId=a&link=b", Err("link"))]
    #[case::former_twice("link=a&link=b", Err("link"))]
    fn a_former_name_still_works(
        #[case] query: &str,
        #[case] expected: Result<Option<&str>, &str>,
    ) {
        let mut parameters = QueryParameters {
            given: &QueryString::parse(query).0,
            known: Vec::new(),
            former: Vec::new(),
            faults: Faults::new(),
        };
        let value = parameters.renamed("linkId", "link", |text| Ok(text.to_owned()));
        let read = parameters.finish().map(|()| value);
        let read = read.map_err(|faults| faults.iter().next().map(|fault| fault.field.clone()));
        let expected = expected
            .map(|value| value.map(str::to_owned))
            .map_err(|field| Some(field.to_owned()));
        assert_eq!(read, expected);
    }
}
