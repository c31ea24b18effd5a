//! Decodes the three encodings: JSON, and the two kinds of forms that official clients send. A
//! form's field `data` contains JSON or a list of JSON strings.

use crate::ledger::RecordedBody;
use crate::request_pipeline::ReceivedRequest;
use serde_json::{Map, Value};
use url::form_urlencoded;

/// Form fields that are not part of the events.
const CREDENTIALS: &[&str] = &["access_token", "appsecret_proof"];

/// A decoded request body.
#[derive(Debug)]
pub(super) struct Submission {
    body: Value,
    /// Form fields; `None` for JSON.
    form: Option<Vec<(String, String)>>,
}

impl Submission {
    /// Returns the body as JSON.
    pub(super) fn body(&self) -> &Value {
        &self.body
    }

    /// Returns whether the body is a form. Official clients send forms, with currencies in lower
    /// case.
    pub(super) fn is_form(&self) -> bool {
        self.form.is_some()
    }

    /// Returns a form field.
    pub(super) fn field(&self, name: &str) -> Option<String> {
        let pairs = self.form.as_ref()?;
        let found = pairs.iter().find(|(one, _)| one == name);
        found.map(|(_, value)| value.clone())
    }

    pub(super) fn into_events(mut self) -> Vec<Value> {
        match self.body.get_mut("data").map(Value::take) {
            Some(Value::Array(events)) => events,
            _ => Vec::new(),
        }
    }
}

/// Decodes a body, or returns what is wrong with its encoding.
pub(super) fn read(received: &mut ReceivedRequest) -> Result<Submission, &'static str> {
    let pairs = match received.content_type() {
        "application/json" => {
            let body = received.json.take().ok_or("The body is not valid JSON")?;
            return Ok(Submission { body, form: None });
        }
        "application/x-www-form-urlencoded" => form_urlencoded::parse(&received.body)
            .into_owned()
            .collect(),
        "multipart/form-data" => {
            let whole = received.header("content-type").unwrap_or_default();
            multipart(whole, &received.body).ok_or("The multipart body cannot be read")?
        }
        _ => return Err("The Content-Type must be JSON or a form"),
    };
    received.recorded_body = Some(RecordedBody::form(&pairs));
    let body = from_form(&pairs)?;
    received.count_events(&body);
    let form = Some(pairs);
    Ok(Submission { body, form })
}

fn from_form(pairs: &[(String, String)]) -> Result<Value, &'static str> {
    let mut body = Map::new();
    for (name, value) in pairs {
        if CREDENTIALS.contains(&name.as_str()) {
            continue;
        }
        let value = match name.as_str() {
            "data" => events(value)?,
            _ => Value::String(value.clone()),
        };
        body.insert(name.clone(), value);
    }
    Ok(Value::Object(body))
}

/// Parses a list of events, each an object or a string with JSON.
fn events(text: &str) -> Result<Value, &'static str> {
    let not_json = "(#100) param data must be an array.";
    let mut list = serde_json::from_str(text).map_err(|_| not_json)?;
    if let Value::Array(events) = &mut list {
        for event in events {
            if let Value::String(text) = event {
                *event = serde_json::from_str(text).map_err(|_| not_json)?;
            }
        }
    }
    Ok(list)
}

/// Parses a multipart body. Files are treated like other fields.
fn multipart(content_type: &str, body: &[u8]) -> Option<Vec<(String, String)>> {
    let boundary = content_type
        .split(';')
        .find_map(|part| part.trim().strip_prefix("boundary="))?;
    let delimiter = format!("--{}", boundary.trim_matches('"'));
    let text = std::str::from_utf8(body).ok()?;
    let mut pairs = Vec::new();
    for part in text.split(delimiter.as_str()).skip(1) {
        if part.starts_with("--") {
            return Some(pairs);
        }
        let (head, content) = part.split_once("\r\n\r\n")?;
        let name = head.lines().find_map(field_name)?;
        let content = content.strip_suffix("\r\n")?;
        pairs.push((name.to_owned(), content.to_owned()));
    }
    None
}

/// Returns the name in `Content-Disposition: form-data; name="data"`.
fn field_name(line: &str) -> Option<&str> {
    let (header, value) = line.split_once(':')?;
    if !header.eq_ignore_ascii_case("content-disposition") {
        return None;
    }
    let name = value
        .split(';')
        .find_map(|part| part.trim().strip_prefix("name="))?;
    Some(name.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn data_is_a_list_of_objects_or_json_strings() {
        let plain = events(r#"[{"event_id":"1"}]"#);
        let strings = events(r#"["{\"event_id\":\"1\"}"]"#);
        assert_eq!(plain, Ok(json!([{"event_id": "1"}])));
        assert_eq!(strings, plain);
        assert!(events("[\"no json\"]").is_err());
    }

    #[test]
    fn parses_a_multipart_body() {
        let body = "--b\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n[]\r\n\
                    --b\r\ncontent-disposition: form-data; name=\"partner_agent\"\r\n\r\nx--by\r\n--b--\r\n";
        let read = multipart("multipart/form-data; boundary=\"b\"", body.as_bytes());
        assert!(read.is_none(), "the boundary must not occur inside");
        let body = body.replace("x--by", "xy");
        let read = multipart("multipart/form-data; boundary=b", body.as_bytes());
        let expected = [("data", "[]"), ("partner_agent", "xy")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(read.as_deref(), Some(&expected[..]));
    }
}
