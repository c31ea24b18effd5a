//! Validators for the value types that networks use.

use super::{BodyNode, IsoCurrency, ReceivedMoney, ViolationKind, Violations};
use serde_json::{Number, Value};
use std::net::IpAddr;

/// SHA-256 of an empty text, which a sender gets by hashing an empty field.
const SHA256_OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// Maximum number of decimals. More decimals indicate binary floating point.
const FRACTION_DIGITS_MAX: usize = 6;
const UUID_CHARS: usize = 36;

impl<'v> BodyNode<'v, '_> {
    /// Expects an object with only these fields.
    pub(crate) fn object(&self, known: &[&str], violations: &mut Violations) -> bool {
        let Some(fields) = self.value.as_object() else {
            self.report(ViolationKind::Type("object"), violations);
            return false;
        };
        for name in fields.keys().filter(|name| !known.contains(&name.as_str())) {
            self.report_at(name, ViolationKind::Unknown, violations);
        }
        true
    }

    /// Expects an object with any fields.
    pub(crate) fn any_object(&self, violations: &mut Violations) -> bool {
        let is_object = self.value.is_object();
        if !is_object {
            self.report(ViolationKind::Type("object"), violations);
        }
        is_object
    }

    /// Expects a non-empty string.
    pub(crate) fn text(&self, violations: &mut Violations) -> Option<&'v str> {
        match self.value {
            Value::String(text) if text.trim().is_empty() => {
                self.report(ViolationKind::Empty, violations);
                None
            }
            Value::String(text) => Some(text),
            _ => {
                self.report(ViolationKind::Type("string"), violations);
                None
            }
        }
    }

    /// Expects a string with a certain format.
    pub(crate) fn text_matching(
        &self,
        is_formed: fn(&str) -> bool,
        message: &'static str,
        violations: &mut Violations,
    ) -> Option<&'v str> {
        let text = self.text(violations)?;
        if is_formed(text) {
            return Some(text);
        }
        self.report(ViolationKind::Format(message), violations);
        None
    }

    /// Expects one of these strings.
    pub(crate) fn choice(&self, choices: &[&str], violations: &mut Violations) -> Option<&'v str> {
        let text = self.text(violations)?;
        if choices.contains(&text) {
            return Some(text);
        }
        self.report(ViolationKind::Choice, violations);
        None
    }

    pub(crate) fn flag(&self, violations: &mut Violations) -> Option<bool> {
        let flag = self.value.as_bool();
        if flag.is_none() {
            self.report(ViolationKind::Type("boolean"), violations);
        }
        flag
    }

    pub(crate) fn integer(&self, violations: &mut Violations) -> Option<i64> {
        let integer = self.value.as_i64();
        if integer.is_none() {
            self.report(ViolationKind::Type("integer"), violations);
        }
        integer
    }

    /// Expects an amount in major units: a non-negative number without floating-point noise.
    pub(crate) fn amount(&self, violations: &mut Violations) -> Option<&'v Number> {
        let Value::Number(number) = self.value else {
            self.report(ViolationKind::Type("number"), violations);
            return None;
        };
        if is_amount(number) {
            return Some(number);
        }
        self.report(ViolationKind::Money, violations);
        None
    }

    /// Expects an ISO 4217 code. Meta's official client (`network_a`) sends it in lower case.
    pub(crate) fn currency(
        &self,
        is_lower_allowed: bool,
        violations: &mut Violations,
    ) -> Option<IsoCurrency> {
        let text = self.text(violations)?;
        let currency = IsoCurrency::parse(text, is_lower_allowed);
        if currency.is_none() {
            self.report(ViolationKind::Currency, violations);
        }
        currency
    }

    /// Expects an amount and a currency. The network decides whether either may be missing.
    pub(crate) fn money(
        &self,
        (amount, currency): (&str, &str),
        is_lower_allowed: bool,
        violations: &mut Violations,
    ) -> Option<ReceivedMoney> {
        let value = self.get(amount).and_then(|one| one.amount(violations));
        let code = self
            .get(currency)
            .and_then(|one| one.currency(is_lower_allowed, violations));
        Some(ReceivedMoney {
            amount: value?.clone(),
            currency: code?,
        })
    }

    /// Expects a SHA-256 hash in lower case.
    pub(crate) fn hash(&self, violations: &mut Violations) -> Option<&'v str> {
        let text = self.text(violations)?;
        if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            self.report(ViolationKind::NotHex, violations);
            return None;
        }
        let is_lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        if text.len() == SHA256_OF_NOTHING.len() && is_lower && text != SHA256_OF_NOTHING {
            return Some(text);
        }
        self.report(ViolationKind::NotSha256, violations);
        None
    }

    /// Expects a non-empty list up to a limit, and checks each item.
    pub(crate) fn each<R>(
        &self,
        most: usize,
        violations: &mut Violations,
        mut check: impl FnMut(BodyNode<'v, '_>, &mut Violations) -> R,
    ) {
        let Value::Array(entries) = self.value else {
            self.report(ViolationKind::Type("list"), violations);
            return;
        };
        if entries.is_empty() {
            self.report(ViolationKind::Empty, violations);
        }
        if entries.len() > most {
            self.report(ViolationKind::TooMany(most), violations);
            return;
        }
        for (index, value) in entries.iter().enumerate() {
            check(self.item(index, value), violations);
        }
    }

    pub(crate) fn ip(&self, violations: &mut Violations) {
        let is_ip = |text: &str| text.parse::<IpAddr>().is_ok();
        self.text_matching(is_ip, "must be an IPv4 or IPv6 address", violations);
    }

    pub(crate) fn uuid(&self, violations: &mut Violations) -> Option<&'v str> {
        self.text_matching(is_uuid, "must be a UUID", violations)
    }

    /// Expects a URL with scheme and host.
    pub(crate) fn url(&self, violations: &mut Violations) {
        let message = "must be an absolute http or https URL with a host";
        self.text_matching(is_url, message, violations);
    }
}

fn is_amount(number: &Number) -> bool {
    if number.is_u64() {
        return true;
    }
    // The shortest text that parses to the same number, which is what the sender wrote.
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
        && text
            .bytes()
            .enumerate()
            .all(|(position, byte)| match position {
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
    fn accepts_only_plain_amounts(#[case] value: Value, #[case] is_taken: bool) {
        let mut violations = Violations::default();
        let taken = BodyNode::root(&value).amount(&mut violations);
        assert_eq!(
            (taken.is_some(), violations.is_empty()),
            (is_taken, is_taken)
        );
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
    fn accepts_only_lower_case_sha256_hashes(
        #[case] text: &str,
        #[case] wrong: Option<ViolationKind>,
    ) {
        let (value, mut violations) = (json!(text), Violations::default());
        BodyNode::root(&value).hash(&mut violations);
        let first = violations.into_list().first().map(|one| one.kind);
        assert_eq!(first, wrong);
    }
}
