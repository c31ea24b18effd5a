//! JSON encoding and decoding.

use serde::ser::{Error, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use tributary_domain::vocabulary::money::Amount;

/// An amount as a JSON number with its exact digits, without a float conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal(pub(crate) Amount);

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digits = RawValue::from_string(self.0.to_string()).map_err(S::Error::custom)?;
        digits.serialize(serializer)
    }
}

/// The currency in which all amounts are sent.
pub(crate) const USD: &str = "USD";

/// Serialises a body.
pub(crate) fn bytes(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("bodies contain only text and numbers")
}

/// Returns an object's text field if it is not empty.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    let text = value.get(name)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

/// Returns an object's integer field; some networks send integers as text.
pub(crate) fn integer(value: &Value, name: &str) -> Option<i64> {
    match value.get(name)? {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// Returns the items in a list field.
pub(crate) fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value
        .get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("29.99")]
    #[case("0.01")]
    #[case("2000")]
    #[case("0")]
    #[case("9007199254.740993")]
    fn amounts_keep_their_digits(#[case] text: &str) {
        let amount = Decimal(Amount::parse(text).unwrap());
        assert_eq!(bytes(&[amount]), format!("[{text}]").into_bytes());
    }
}
