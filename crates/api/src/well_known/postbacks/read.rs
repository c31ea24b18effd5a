//! Parses postbacks. The domain validates their fields.

use crate::body::malformed;
use crate::error::{ApiError, Code};
use crate::json::{self, JsonNode};
use std::collections::BTreeSet;
use tributary_domain::skan::postback::{
    JWS_FIELD, JWS_HEADER, JWS_PAYLOAD, Keys, ParsedPostback, PostbackFields, Protocol, Scalar,
    parse_adattributionkit, parse_skadnetwork,
};
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::jws::Jws;

/// Parses a postback. Also returns its original text.
pub(super) fn read_postback(
    protocol: Protocol,
    bytes: &[u8],
    keys: &Keys,
) -> Result<(ParsedPostback, String), ApiError> {
    let text = std::str::from_utf8(bytes).map_err(|_| malformed())?;
    let body = json::parse(text).map_err(|_| malformed())?;
    let fields = read_object(&body, "body").map_err(malformed_postback)?;
    let received = match protocol {
        Protocol::SkAdNetwork => parse_skadnetwork(&fields, keys),
        Protocol::AdAttributionKit => read_signed(&fields, keys),
    };
    Ok((received.map_err(malformed_postback)?, text.to_owned()))
}

/// Returns 400 with all faults.
fn malformed_postback(faults: Faults) -> ApiError {
    let message = "Not a valid Apple postback; see details.";
    ApiError::with_faults(Code::MalformedPostback, message, faults)
}

fn fault(field: &str, code: FaultCode, message: &str) -> Faults {
    let mut faults = Faults::new();
    faults.add(field, Problem::new(code, message));
    faults
}

fn read_signed(envelope: &PostbackFields, keys: &Keys) -> Result<ParsedPostback, Faults> {
    let Some(text) = envelope.text(JWS_FIELD) else {
        return Err(match envelope.get(JWS_FIELD) {
            None => fault(JWS_FIELD, FaultCode::Required, "Required."),
            Some(_) => fault(JWS_FIELD, FaultCode::WrongType, "Must be a string."),
        });
    };
    let jws = Jws::split(text).map_err(|problem| {
        let mut faults = Faults::new();
        faults.add(JWS_FIELD, problem);
        faults
    })?;
    let header = read_part(&jws.header, JWS_HEADER)?;
    let payload = read_part(&jws.payload, JWS_PAYLOAD)?;
    parse_adattributionkit(envelope, &jws, &header, &payload, keys)
}

fn read_part(bytes: &[u8], name: &str) -> Result<PostbackFields, Faults> {
    let text = std::str::from_utf8(bytes).ok();
    let node = text.and_then(|text| json::parse(text).ok());
    let node = node.ok_or_else(|| fault(name, FaultCode::InvalidFormat, "Must be JSON."))?;
    read_object(&node, name)
}

fn read_object(node: &JsonNode, name: &str) -> Result<PostbackFields, Faults> {
    let JsonNode::Object(members) = node else {
        return Err(fault(name, FaultCode::WrongType, "Must be an object."));
    };
    let mut seen = BTreeSet::new();
    for (member, _) in members {
        // With duplicates, the value that was verified and the value that is used could differ.
        if !seen.insert(member) {
            return Err(fault(name, FaultCode::DuplicateField, "Duplicate field."));
        }
    }
    Ok(members
        .iter()
        .map(|(member, node)| (member.clone(), scalar(node)))
        .collect())
}

fn scalar(node: &JsonNode) -> Scalar {
    match node {
        JsonNode::Null => Scalar::Null,
        JsonNode::Flag(flag) => Scalar::Boolean(*flag),
        JsonNode::Text(text) => Scalar::Text(text.clone()),
        // Apple writes integers without a fraction, an exponent or `-0`.
        JsonNode::Number(digits) => match digits.parse() {
            Ok(number) if digits != "-0" => Scalar::Integer(number),
            _ => Scalar::Other,
        },
        JsonNode::List(_) | JsonNode::Object(_) => Scalar::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case("1", Scalar::Integer(1))]
    #[case("-1", Scalar::Integer(-1))]
    #[case("9223372036854775807", Scalar::Integer(i64::MAX))]
    #[case::too_large("9223372036854775808", Scalar::Other)]
    #[case::a_fraction("1.0", Scalar::Other)]
    #[case::an_exponent("1e2", Scalar::Other)]
    #[case::negative_zero("-0", Scalar::Other)]
    #[case::a_number_in_a_string("\"1\"", Scalar::Text("1".to_owned()))]
    #[case("true", Scalar::Boolean(true))]
    #[case("null", Scalar::Null)]
    #[case("[1]", Scalar::Other)]
    #[case("{}", Scalar::Other)]
    fn preserves_types(#[case] text: &str, #[case] expected: Scalar) {
        assert_eq!(scalar(&json::parse(text).unwrap()), expected);
    }

    #[rstest]
    #[case::empty("", Code::MalformedJson)]
    #[case::a_list("[]", Code::MalformedPostback)]
    #[case::a_word("\"x\"", Code::MalformedPostback)]
    #[case::nothing_in_it("{}", Code::MalformedPostback)]
    #[case::duplicate_field(r#"{"app-id": 1, "app-id": 2}"#, Code::MalformedPostback)]
    #[case::no_jws(r#"{"jws-string": 5}"#, Code::MalformedPostback)]
    #[case::two_parts(r#"{"jws-string": "e30.e30"}"#, Code::MalformedPostback)]
    #[case::parts_are_not_json(r#"{"jws-string": "AAAA.AAAA.AAAA"}"#, Code::MalformedPostback)]
    #[case::empty_parts(r#"{"jws-string": "e30.e30.AAAA"}"#, Code::MalformedPostback)]
    fn rejects_malformed_postbacks(#[case] body: &str, #[case] expected: Code) {
        for protocol in Protocol::ALL {
            let error = read_postback(protocol, body.as_bytes(), &Keys::apple()).unwrap_err();
            assert_eq!(error.code(), expected, "{protocol:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(body in ".*", bytes: Vec<u8>) {
            for protocol in Protocol::ALL {
                let _any_outcome_is_fine = read_postback(protocol, body.as_bytes(), &Keys::apple());
                let _any_outcome_is_fine = read_postback(protocol, &bytes, &Keys::apple());
            }
        }
    }
}
