//! Reading what providers write: every field may be missing, of another type, or too long.

use crate::json::Node;
use std::fmt::Write as _;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::text::foreign_id;
use tributary_domain::vocabulary::time::Timestamp;

/// What stands for what was removed.
const REMOVED: &str = "(removed)";
/// Names of members with personal data, in lower case and without a leading `$`. No rule needs them.
const PERSONAL: &[&str] = &[
    "email",
    "phonenumber",
    "phone",
    "displayname",
    "ip",
    "profile_ip_address",
    "apnstokens",
    "fcmtokens",
    "user_agent",
    "useragent",
];

/// A member of an object.
pub(super) fn member<'a>(node: &'a Node, name: &str) -> Option<&'a Node> {
    let Node::Object(members) = node else {
        return None;
    };
    let found = members.iter().find(|(member, _)| member == name);
    found.map(|(_, node)| node)
}

/// A text that is somebody's id or name: not blank, not long. Numbers are taken by their digits.
pub(super) fn text(node: &Node, name: &str) -> Option<String> {
    as_text(member(node, name)?)
}

pub(super) fn as_text(node: &Node) -> Option<String> {
    let (Node::Text(text) | Node::Number(text)) = node else {
        return None;
    };
    let text = text.trim();
    foreign_id(text).ok().map(str::to_owned)
}

/// An id: a text, and no number.
pub(super) fn id(node: &Node, name: &str) -> Option<String> {
    match member(node, name)? {
        Node::Text(text) => foreign_id(text).ok().map(str::to_owned),
        _ => None,
    }
}

/// Texts of a list.
pub(super) fn texts(node: &Node, name: &str) -> Vec<String> {
    match member(node, name) {
        Some(Node::List(items)) => items.iter().filter_map(as_text).collect(),
        _ => Vec::new(),
    }
}

pub(super) fn flag(node: &Node, name: &str) -> bool {
    member(node, name) == Some(&Node::Flag(true))
}

/// An amount, by its digits.
pub(super) fn amount(node: &Node, name: &str) -> Option<Amount> {
    match member(node, name)? {
        Node::Number(digits) => Amount::parse_number(digits).ok(),
        _ => None,
    }
}

pub(super) fn currency(node: &Node, name: &str) -> Option<Currency> {
    Currency::stored(&text(node, name)?.to_ascii_uppercase())
}

/// A share such as 0.3, in its own digits.
pub(super) fn share(node: &Node, name: &str) -> Option<String> {
    match member(node, name)? {
        Node::Number(digits) if digits.len() <= 32 => Some(digits.clone()),
        _ => None,
    }
}

/// A time in milliseconds. Some write fractions of them.
pub(super) fn time(node: &Node, name: &str) -> Option<Timestamp> {
    match member(node, name)? {
        Node::Number(digits) => {
            let whole = digits.split('.').next()?;
            whole.parse().ok().map(Timestamp::from_millis)
        }
        _ => None,
    }
}

/// Two letters.
pub(super) fn country(node: &Node, name: &str) -> Option<String> {
    let text = text(node, name)?;
    let is_code = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_code.then(|| text.to_ascii_uppercase())
}

/// The body as it is kept: everything that came, but for personal data.
pub(super) fn kept(body: &Node) -> String {
    let mut text = String::new();
    write(body, &mut text);
    text
}

fn is_personal(name: &str) -> bool {
    let name = name.trim_start_matches('$').to_ascii_lowercase();
    PERSONAL.contains(&name.as_str())
}

fn write(node: &Node, out: &mut String) {
    match node {
        Node::Null => out.push_str("null"),
        Node::Flag(flag) => {
            // Writing to a String cannot fail.
            let _infallible = write!(out, "{flag}");
        }
        Node::Number(digits) => out.push_str(digits),
        Node::Text(text) => quoted(text, out),
        Node::List(items) => {
            out.push('[');
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Node::Object(members) => {
            out.push('{');
            for (number, (name, value)) in members.iter().enumerate() {
                if number > 0 {
                    out.push(',');
                }
                quoted(name, out);
                out.push(':');
                if is_personal(name) && *value != Node::Null {
                    quoted(REMOVED, out);
                } else {
                    write(value, out);
                }
            }
            out.push('}');
        }
    }
}

fn quoted(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;
    use rstest::rstest;

    #[test]
    fn personal_data_is_not_kept() {
        let body = r#"{"a": {"$email": {"value": "x@example.com"}, "$ip": null, "IP": "10.0.0.1"},
                       "list": [{"phone": "123"}], "price": 8.140, "unknown": true}"#;
        let kept = kept(&parse(body).unwrap());
        let expected = r#"{"a":{"$email":"(removed)","$ip":null,"IP":"(removed)"},"list":[{"phone":"(removed)"}],"price":8.140,"unknown":true}"#;
        assert_eq!(kept, expected);
    }

    #[rstest]
    #[case::text(r#"{"x": "a"}"#, Some("a"))]
    #[case::number(r#"{"x": 12345678901234567890}"#, Some("12345678901234567890"))]
    #[case::blank(r#"{"x": "  "}"#, None)]
    #[case::empty(r#"{"x": ""}"#, None)]
    #[case::null(r#"{"x": null}"#, None)]
    #[case::list(r#"{"x": []}"#, None)]
    #[case::missing("{}", None)]
    #[case::nul(r#"{"x": "a\u0000"}"#, None)]
    #[case::no_object("[]", None)]
    fn texts_of_any_kind(#[case] body: &str, #[case] expected: Option<&str>) {
        assert_eq!(text(&parse(body).unwrap(), "x").as_deref(), expected);
    }

    #[rstest]
    #[case("1601258901000", Some(1_601_258_901_000))]
    #[case::a_fraction("1601258901000.5", Some(1_601_258_901_000))]
    #[case::absurd("99999999999999999999", None)]
    #[case::text("\"1601258901000\"", None)]
    fn times(#[case] number: &str, #[case] expected: Option<i64>) {
        let body = parse(&format!("{{\"x\": {number}}}")).unwrap();
        assert_eq!(time(&body, "x").map(Timestamp::as_millis), expected);
    }
}
