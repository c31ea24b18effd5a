//! Single objects, as JSON or as one line per field.

use super::connection::ApiConnection;
use super::table::{aligned_pairs, cell, printable};
use super::write_out;
use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct ObjectAnswer<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
}

/// Prints an object.
pub(super) async fn print(
    connection: &ApiConnection,
    path: &[String],
    is_json: bool,
) -> anyhow::Result<()> {
    let body = connection.read(path, &[]).await?;
    let answer: ObjectAnswer<'_> = serde_json::from_slice(&body)
        .context("the answer is not an object of the API; check --server")?;
    let text = if is_json {
        format!("{}\n", answer.data.get())
    } else {
        let mut fields = Vec::new();
        flatten(
            String::new(),
            &serde_json::from_str(answer.data.get())?,
            &mut fields,
        );
        aligned_pairs(&fields)
    };
    // There is nothing to stop after a closed pipe.
    let _end = write_out(text.as_bytes())?;
    Ok(())
}

/// Adds one line per field. `ios.bundleId` is a field of an object, `attempts[0].at` of a list.
fn flatten(path: String, value: &Value, fields: &mut Vec<(String, String)>) {
    match value {
        Value::Object(object) if !object.is_empty() => {
            for (name, value) in object {
                let name = printable(name);
                let path = if path.is_empty() {
                    name
                } else {
                    format!("{path}.{name}")
                };
                flatten(path, value, fields);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (number, item) in items.iter().enumerate() {
                flatten(format!("{path}[{number}]"), item, fields);
            }
        }
        value => fields.push((path, cell(value))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_have_their_paths() {
        let mut fields = Vec::new();
        let object = json!({"id": "dlv_1", "event": {"name": "a"}, "attempts": [{"status": 400}],
            "tags": ["x", "y"], "reason": null, "params": {}});
        flatten(String::new(), &object, &mut fields);
        fields.sort();
        let text = aligned_pairs(&fields);
        assert_eq!(
            text,
            "attempts[0].status  400\nevent.name          a\nid                  dlv_1\n\
             params              {}\nreason              -\ntags                x,y\n"
        );
    }
}
