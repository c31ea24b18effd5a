//! Removes personal data from notifications before they are stored.

use crate::json::JsonNode;
use std::fmt::Write as _;

/// Replacement for personal data.
const REMOVED: &str = "(removed)";
/// Names of members with personal data, in lower case, without a leading `$`.
const PERSONAL: &[&str] = &[
    "email",
    "phonenumber",
    "phone_number",
    "phone",
    "displayname",
    "ip",
    "profile_ip_address",
    "apnstokens",
    "fcmtokens",
    "user_agent",
    "useragent",
    "_q_email",
    "billing_details",
    "client_secret",
    "collected_information",
    "custom_fields",
    "customer_address",
    "customer_details",
    "customer_email",
    "customer_name",
    "customer_phone",
    "customer_shipping",
    "customer_tax_ids",
    "evidence",
    "hosted_invoice_url",
    "invoice_pdf",
    "payment_method_details",
    "receipt_email",
    "receipt_url",
    "shipping",
    "shipping_details",
];

/// Returns the body as JSON text with personal data replaced.
pub(super) fn redact(body: &JsonNode) -> String {
    let mut text = String::new();
    write(body, &mut text);
    text
}

fn is_personal(name: &str) -> bool {
    let name = name.trim_start_matches('$').to_ascii_lowercase();
    PERSONAL.contains(&name.as_str())
}

fn write(node: &JsonNode, out: &mut String) {
    match node {
        JsonNode::Null => out.push_str("null"),
        JsonNode::Flag(flag) => {
            // Writing to a String cannot fail.
            let _infallible = write!(out, "{flag}");
        }
        JsonNode::Number(digits) => out.push_str(digits),
        JsonNode::Text(text) => quoted(text, out),
        JsonNode::List(items) => {
            out.push('[');
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        JsonNode::Object(members) => {
            out.push('{');
            for (number, (name, value)) in members.iter().enumerate() {
                if number > 0 {
                    out.push(',');
                }
                quoted(name, out);
                out.push(':');
                if is_personal(name) && *value != JsonNode::Null {
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

    #[test]
    fn personal_data_is_not_stored() {
        let body = r#"{"a": {"$email": {"value": "x@example.com"}, "$ip": null, "IP": "10.0.0.1"},
                       "list": [{"phone": "123"}], "price": 8.140, "unknown": true}"#;
        let stored = redact(&parse(body).unwrap());
        let expected = r#"{"a":{"$email":"(removed)","$ip":null,"IP":"(removed)"},"list":[{"phone":"(removed)"}],"price":8.140,"unknown":true}"#;
        assert_eq!(stored, expected);
    }
}
