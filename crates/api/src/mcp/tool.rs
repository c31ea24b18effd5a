//! Tools that call the REST API. Their parameters come from the OpenAPI description, so that they
//! cannot differ from what the endpoints accept.

use super::tool_list::ToolSpec;
use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, header};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// A tool and the endpoint that it calls.
#[derive(Debug)]
pub(crate) struct RestTool {
    spec: &'static ToolSpec,
    method: Method,
    /// Path with parameters in braces.
    path: String,
    /// JSON Schema of the arguments.
    schema: Value,
}

/// Resolves tools against the OpenAPI description as JSON. Leaves out a tool whose operation does not
/// exist; a test compares the lists.
pub(crate) fn resolve(specs: &'static [ToolSpec], api: &Value) -> Vec<RestTool> {
    let tools = specs.iter().filter_map(|spec| RestTool::of(spec, api));
    tools.collect()
}

impl RestTool {
    fn of(spec: &'static ToolSpec, api: &Value) -> Option<Self> {
        let paths = api["paths"].as_object()?;
        let (path, method, operation) = paths.iter().find_map(|(path, item)| {
            let (method, operation) = item
                .as_object()?
                .iter()
                .find(|(_, operation)| operation["operationId"] == spec.operation)?;
            Some((path, method, operation))
        })?;
        Some(Self {
            spec,
            method: Method::from_bytes(method.to_ascii_uppercase().as_bytes()).ok()?,
            path: path.clone(),
            schema: schema(spec, operation),
        })
    }

    pub(super) const fn name(&self) -> &'static str {
        self.spec.name
    }

    /// Returns whether the tool only reads.
    pub(super) fn is_read_only(&self) -> bool {
        self.method == Method::GET
    }

    /// Describes the tool for `tools/list`.
    pub(super) fn definition(&self) -> Value {
        let is_read_only = self.is_read_only();
        json!({
            "name": self.spec.name,
            "title": self.spec.title,
            "description": self.spec.description,
            "inputSchema": self.schema,
            "annotations": {
                "title": self.spec.title,
                "readOnlyHint": is_read_only,
                "destructiveHint": false,
                "idempotentHint": is_read_only,
                // The tools work on this server's data only.
                "openWorldHint": false,
            },
        })
    }

    /// Builds the request to the endpoint. The error is a message for the model.
    pub(super) fn request(
        &self,
        mut arguments: Map<String, Value>,
    ) -> Result<Request<Body>, String> {
        for name in self.spec.required {
            if is_missing(arguments.get(*name)) {
                return Err(format!("`{name}` is required."));
            }
        }
        let path = self.fill_path(&mut arguments)?;
        arguments.retain(|_, value| !value.is_null());
        let request = Request::builder().method(self.method.clone());
        let built = if self.is_read_only() {
            let uri = path + &query(&arguments)?;
            request.uri(uri).body(Body::empty())
        } else {
            let json = HeaderValue::from_static("application/json");
            let body = Body::from(Value::Object(arguments).to_string());
            request
                .uri(path)
                .header(header::CONTENT_TYPE, json)
                .body(body)
        };
        built.map_err(|_| "The arguments are too long.".to_owned())
    }

    /// Puts the arguments that belong there into the path.
    fn fill_path(&self, arguments: &mut Map<String, Value>) -> Result<String, String> {
        let mut path = String::new();
        for segment in self.path.split('/').skip(1) {
            path.push('/');
            let name = segment
                .strip_prefix('{')
                .and_then(|rest| rest.strip_suffix('}'));
            let Some(name) = name else {
                path.push_str(segment);
                continue;
            };
            match arguments.remove(name) {
                Some(Value::String(id)) if !id.is_empty() => encode(&id, &mut path),
                None | Some(Value::Null) => return Err(format!("`{name}` is required.")),
                Some(_) => return Err(format!("`{name}` must be a text that is not empty.")),
            }
        }
        Ok(path)
    }
}

fn is_missing(value: Option<&Value>) -> bool {
    value.is_none_or(|value| value.is_null() || value == "")
}

/// Writes the query string. A list becomes text with commas, as the endpoints expect it.
fn query(arguments: &Map<String, Value>) -> Result<String, String> {
    let mut query = String::new();
    for (name, value) in arguments {
        let text = match value {
            Value::Array(items) => {
                let items: Option<Vec<String>> = items.iter().map(scalar).collect();
                items.map(|items| items.join(","))
            }
            value => scalar(value),
        };
        let text =
            text.ok_or_else(|| format!("`{name}` must be a text, a number or a boolean."))?;
        query.push(if query.is_empty() { '?' } else { '&' });
        encode(name, &mut query);
        query.push('=');
        encode(&text, &mut query);
    }
    Ok(query)
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is_true) => Some(is_true.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Percent-encodes everything but letters, digits and marks that have no meaning in a URL.
fn encode(text: &str, url: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            url.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _infallible = write!(url, "%{byte:02X}");
        }
    }
}

/// Returns the JSON Schema of a tool's arguments: the parameters of the operation and the fields of
/// its body.
fn schema(spec: &ToolSpec, operation: &Value) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default();
        if spec.parameters.is_some_and(|shown| !shown.contains(&name)) {
            continue;
        }
        let mut property = parameter["schema"].clone();
        property["description"] = parameter["description"].clone();
        properties.insert(name.to_owned(), property);
        if parameter["required"] == true || spec.required.contains(&name) {
            required.push(json!(name));
        }
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    for (name, property) in body["properties"].as_object().into_iter().flatten() {
        properties.insert(name.clone(), property.clone());
    }
    required.extend(body["required"].as_array().into_iter().flatten().cloned());
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tool_list::REST_TOOLS;
    use super::*;
    use rstest::rstest;

    fn tools() -> Vec<RestTool> {
        let (_, api) = crate::described_routes();
        resolve(REST_TOOLS, &serde_json::to_value(&api).unwrap())
    }

    fn tool(name: &str) -> RestTool {
        let mut tools = tools().into_iter();
        tools.find(|tool| tool.name() == name).unwrap()
    }

    fn uri(name: &str, arguments: Value) -> Result<String, String> {
        let request = tool(name).request(arguments.as_object().unwrap().clone())?;
        Ok(request.uri().to_string())
    }

    #[test]
    fn every_tool_has_an_operation_and_a_whole_schema() {
        let tools = tools();
        let names: Vec<&str> = tools.iter().map(RestTool::name).collect();
        let specs: Vec<&str> = REST_TOOLS.iter().map(|spec| spec.name).collect();
        assert_eq!(names, specs);
        for tool in &tools {
            let text = tool.definition().to_string();
            assert!(!text.contains("$ref"), "{text}");
            for name in tool
                .spec
                .required
                .iter()
                .chain(tool.spec.parameters.unwrap_or_default())
            {
                let property = &tool.schema["properties"][name];
                assert!(property["type"].is_string(), "{} lacks {name}", tool.name());
            }
        }
    }

    /// Tools hand out no keys and no secrets.
    #[test]
    fn no_tool_creates_a_credential() {
        for tool in tools() {
            let path = tool.path.to_lowercase();
            assert!(!path.contains("key") && !path.contains("secret"), "{path}");
            assert!(
                !path.contains("/data") && !path.contains("export"),
                "{path}"
            );
        }
    }

    #[rstest]
    #[case::query(
        "get_stats",
        json!({"appId": "app_1", "groupBy": ["day", "network"], "limit": 5, "from": null}),
        "/api/v1/apps/app_1/stats?groupBy=day%2Cnetwork&limit=5"
    )]
    #[case::encoded(
        "explain_device",
        json!({"appId": "app_1", "deviceId": "../a b?c"}),
        "/api/v1/apps/app_1/devices/..%2Fa%20b%3Fc"
    )]
    #[case::body("create_link", json!({"appId": "app_1", "name": "x"}), "/api/v1/apps/app_1/links")]
    fn requests(#[case] name: &str, #[case] arguments: Value, #[case] expected: &str) {
        assert_eq!(uri(name, arguments).unwrap(), expected);
    }

    #[rstest]
    #[case::no_app("get_stats", json!({}), "`appId` is required.")]
    #[case::empty_app("get_stats", json!({"appId": ""}), "`appId` must be a text that is not empty.")]
    #[case::number("get_stats", json!({"appId": 5}), "`appId` must be a text that is not empty.")]
    #[case::no_event("get_event", json!({"appId": "app_1"}), "`eventId` is required.")]
    #[case::object(
        "get_stats",
        json!({"appId": "app_1", "network": {}}),
        "`network` must be a text, a number or a boolean."
    )]
    #[case::too_long(
        "get_stats",
        json!({"appId": "app_1", "network": "x".repeat(70_000)}),
        "The arguments are too long."
    )]
    fn faults(#[case] name: &str, #[case] arguments: Value, #[case] expected: &str) {
        assert_eq!(uri(name, arguments).unwrap_err(), expected);
    }
}
