//! The kinds of values that the networks ask for.

use super::{BodyNode, IsoCurrency, ReceivedMoney, ViolationKind, Violations};
use serde_json::{Number, Value};
use std::net::IpAddr;

/// SHA-256 of nothing: a sender who hashed an empty field.
const SHA256_OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// Digits after the point. More come from binary floating point.
const FRACTION_DIGITS_MAX: usize = 6;
const UUID_CHARS: usize = 36;

impl<'v> BodyNode<'v, '_> {
    /// An object with no other fields than these.
    pub(crate) fn object(&self, known: &[&str], found: &mut Violations) -> bool {
        let Some(fields) = self.value.as_object() else {
            self.report(ViolationKind::Type("object"), found);
            return false;
        };
        for name in fields.keys().filter(|name| !known.contains(&name.as_str())) {
            self.report_at(name, ViolationKind::Unknown, found);
        }
        true
    }

    /// An object with whatever fields.
    pub(crate) fn any_object(&self, found: &mut Violations) -> bool {
        let is_object = self.value.is_object();
        if !is_object {
            self.report(ViolationKind::Type("object"), found);
        }
        is_object
    }

    /// A string that is not empty.
    pub(crate) fn text(&self, found: &mut Violations) -> Option<&'v str> {
        match self.value {
            Value::String(text) if text.trim().is_empty() => {
                self.report(ViolationKind::Empty, found);
                None
            }
            Value::String(text) => Some(text),
            _ => {
                self.report(ViolationKind::Type("string"), found);
                None
            }
        }
    }

    /// A string of a certain form.
    pub(crate) fn text_matching(
        &self,
        is_formed: fn(&str) -> bool,
        words: &'static str,
        found: &mut Violations,
    ) -> Option<&'v str> {
        let text = self.text(found)?;
        if is_formed(text) {
            return Some(text);
        }
        self.report(ViolationKind::Format(words), found);
        None
    }

    /// One of a few strings.
    pub(crate) fn choice(&self, choices: &[&str], found: &mut Violations) -> Option<&'v str> {
        let text = self.text(found)?;
        if choices.contains(&text) {
            return Some(text);
        }
        self.report(ViolationKind::Choice, found);
        None
    }

    pub(crate) fn flag(&self, found: &mut Violations) -> Option<bool> {
        let flag = self.value.as_bool();
        if flag.is_none() {
            self.report(ViolationKind::Type("boolean"), found);
        }
        flag
    }

    pub(crate) fn integer(&self, found: &mut Violations) -> Option<i64> {
        let integer = self.value.as_i64();
        if integer.is_none() {
            self.report(ViolationKind::Type("integer"), found);
        }
        integer
    }

    /// An amount in major units: a number, not negative, without the noise of binary floating point.
    pub(crate) fn amount(&self, found: &mut Violations) -> Option<&'v Number> {
        let Value::Number(number) = self.value else {
            self.report(ViolationKind::Type("number"), found);
            return None;
        };
        if is_amount(number) {
            return Some(number);
        }
        self.report(ViolationKind::Money, found);
        None
    }

    /// A code of ISO 4217. The official client of `network_a` writes it in lower case.
    pub(crate) fn currency(
        &self,
        is_lower_allowed: bool,
        found: &mut Violations,
    ) -> Option<IsoCurrency> {
        let text = self.text(found)?;
        let currency = IsoCurrency::parse(text, is_lower_allowed);
        if currency.is_none() {
            self.report(ViolationKind::Currency, found);
        }
        currency
    }

    /// Two fields that make an amount of money. Whether one may be alone, the network says.
    pub(crate) fn money(
        &self,
        (amount, currency): (&str, &str),
        is_lower_allowed: bool,
        found: &mut Violations,
    ) -> Option<ReceivedMoney> {
        let value = self.get(amount).and_then(|one| one.amount(found));
        let code = self
            .get(currency)
            .and_then(|one| one.currency(is_lower_allowed, found));
        Some(ReceivedMoney {
            amount: value?.clone(),
            currency: code?,
        })
    }

    /// A SHA-256 as the networks take it.
    pub(crate) fn hash(&self, found: &mut Violations) -> Option<&'v str> {
        let text = self.text(found)?;
        if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            self.report(ViolationKind::NotHex, found);
            return None;
        }
        let is_lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        if text.len() == SHA256_OF_NOTHING.len() && is_lower && text != SHA256_OF_NOTHING {
            return Some(text);
        }
        self.report(ViolationKind::NotSha256, found);
        None
    }

    /// A list of one or more, up to a limit, each checked.
    pub(crate) fn each<R>(
        &self,
        most: usize,
        found: &mut Violations,
        mut check: impl FnMut(BodyNode<'v, '_>, &mut Violations) -> R,
    ) {
        let Value::Array(entries) = self.value else {
            self.report(ViolationKind::Type("list"), found);
            return;
        };
        if entries.is_empty() {
            self.report(ViolationKind::Empty, found);
        }
        if entries.len() > most {
            self.report(ViolationKind::TooMany(most), found);
            return;
        }
        for (index, value) in entries.iter().enumerate() {
            check(self.item(index, value), found);
        }
    }

    pub(crate) fn ip(&self, found: &mut Violations) {
        let is_ip = |text: &str| text.parse::<IpAddr>().is_ok();
        self.text_matching(is_ip, "must be an IPv4 or IPv6 address", found);
    }

    pub(crate) fn uuid(&self, found: &mut Violations) -> Option<&'v str> {
        self.text_matching(is_uuid, "must be a UUID", found)
    }

    /// An address with scheme and host.
    pub(crate) fn url(&self, found: &mut Violations) {
        let words = "must be an absolute http or https URL with a host";
        self.text_matching(is_url, words, found);
    }
}

fn is_amount(number: &Number) -> bool {
    if number.is_u64() {
        return true;
    }
    // The shortest text that reads back as the same number: what the sender wrote.
    let text = number.to_string();
    match text.split_once('.') {
        Some((whole, fraction)) => {
            whole.bytes().all(|byte| byte.is_ascii_digit())
                && fraction.len() <= FRACTION_DIGITS_MAX
                && fraction.bytes().all(|byte| byte.is_ascii_digit())
        }
        None => false,
    }
}

fn is_uuid(text: &str) -> bool {
    text.len() == UUID_CHARS
        && text.bytes().enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn is_url(text: &str) -> bool {
    url::Url::parse(text)
        .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case(json!(29.99), true)]
    #[case(json!(0), true)]
    #[case(json!(2000), true)]
    #[case::written_with_an_exponent(json!(0.000_001), false)]
    #[case(json!(29.990_000_000_000_002), false)]
    #[case(json!(-1), false)]
    #[case(json!(-0.5), false)]
    #[case(json!("29.99"), false)]
    #[case(json!(null), false)]
    fn an_amount_is_a_plain_number(#[case] value: Value, #[case] is_taken: bool) {
        let mut found = Violations::default();
        let taken = BodyNode::root(&value).amount(&mut found);
        assert_eq!((taken.is_some(), found.is_empty()), (is_taken, is_taken));
    }

    #[rstest]
    #[case(
        "b5fc85e55755f9e0d030a10ab4429b6b2944855f9a0d60077fe832becbc41d72",
        None
    )]
    #[case(
        "B5FC85E55755F9E0D030A10AB4429B6B2944855F9A0D60077FE832BECBC41D72",
        Some(ViolationKind::NotSha256)
    )]
    #[case(SHA256_OF_NOTHING, Some(ViolationKind::NotSha256))]
    #[case("b5fc", Some(ViolationKind::NotSha256))]
    #[case("joe@example.com", Some(ViolationKind::NotHex))]
    #[case("", Some(ViolationKind::Empty))]
    fn a_hash_is_sixty_four_lower_case_digits(
        #[case] text: &str,
        #[case] wrong: Option<ViolationKind>,
    ) {
        let (value, mut found) = (json!(text), Violations::default());
        BodyNode::root(&value).hash(&mut found);
        let first = found.into_list().first().map(|one| one.kind);
        assert_eq!(first, wrong);
    }
}
