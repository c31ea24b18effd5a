//! Results of requests and tools.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Longest text of a result in bytes: about 25,000 tokens, above which common clients cut results off.
pub(super) const RESULT_BYTES_MAX: usize = 100_000;

/// The result of a request.
#[derive(Debug, Serialize)]
pub(super) struct RpcResult {
    #[serde(flatten)]
    fields: Map<String, Value>,
    /// What the text of a tool's result says, as JSON. It stays raw, because amounts are exact
    /// decimals.
    #[serde(rename = "structuredContent", skip_serializing_if = "Option::is_none")]
    structured: Option<Box<RawValue>>,
}

impl RpcResult {
    /// Builds a result from an object.
    pub(super) fn of(fields: Value) -> Self {
        let fields = match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        Self {
            fields,
            structured: None,
        }
    }

    /// Sets a field.
    pub(super) fn set(&mut self, name: &str, value: Value) {
        self.fields.insert(name.to_owned(), value);
    }
}

/// Builds a tool's result from JSON. The error says that the text is not JSON.
pub(super) fn json_result(text: String) -> Result<RpcResult, serde_json::Error> {
    if text.len() > RESULT_BYTES_MAX {
        return Ok(too_large(text.len()));
    }
    let structured = RawValue::from_string(text)?;
    Ok(RpcResult {
        structured: Some(structured.clone()),
        ..text_result(structured.get())
    })
}

/// Builds a tool's result that is text only.
pub(super) fn text_result(text: &str) -> RpcResult {
    RpcResult::of(json!({"content": [content(text)], "isError": false}))
}

/// Builds the result of a tool that failed. The model sees the message and can correct its call.
pub(super) fn error_result(message: &str) -> RpcResult {
    RpcResult::of(json!({"content": [content(message)], "isError": true}))
}

fn too_large(length: usize) -> RpcResult {
    error_result(&format!(
        "The result has {length} bytes, more than {RESULT_BYTES_MAX}. Ask for less: a smaller `limit`, fewer \
         days (`from`, `to`), more filters, or a coarser `groupBy`. Continue a list with `meta.cursor`."
    ))
}

fn content(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result for a JSON text of this length.
    fn result(length: usize) -> Value {
        let text = format!("\"{}\"", "x".repeat(length - 2));
        serde_json::to_value(json_result(text).unwrap()).unwrap()
    }

    #[test]
    fn a_result_has_a_limit() {
        let whole = result(RESULT_BYTES_MAX);
        assert_eq!(whole["isError"], false);
        let text = whole["content"][0]["text"].as_str().unwrap();
        assert_eq!(text.len(), RESULT_BYTES_MAX);
        assert_eq!(whole["structuredContent"].to_string(), text);
        let cut = result(RESULT_BYTES_MAX + 1);
        assert_eq!(cut["isError"], true);
        assert_eq!(cut.get("structuredContent"), None);
        let text = cut["content"][0]["text"].as_str().unwrap();
        assert!(
            text.contains("100001 bytes") && text.contains("smaller `limit`"),
            "{text}"
        );
    }

    #[test]
    fn digits_are_kept() {
        let amount = "{\"revenue\":12345678901234567.123456}";
        let result = json_result(amount.to_owned()).unwrap();
        let text = serde_json::to_string(&result).unwrap();
        assert!(
            text.contains(&format!("\"structuredContent\":{amount}")),
            "{text}"
        );
        assert!(json_result("<html>".to_owned()).is_err());
    }
}
