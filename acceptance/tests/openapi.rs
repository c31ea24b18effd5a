//! Checks the OpenAPI description: it is committed, served and matches the server.

use crate::routes::{Needs, ROUTES, RouteFixture};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use tributary_testkit::{Engine, TestServer};

const METHODS: &[&str] = &["get", "put", "post", "patch", "delete"];

fn description() -> Value {
    yaml_serde::from_str(&tributary_api::openapi_yaml()).expect("the description is YAML")
}

/// Returns every operation with its path and method.
fn operations(api: &Value) -> Vec<(String, String, Value)> {
    let mut operations = Vec::new();
    for (path, item) in api["paths"].as_object().unwrap() {
        for method in METHODS {
            if let Some(operation) = item.get(method) {
                operations.push((path.clone(), method.to_uppercase(), operation.clone()));
            }
        }
    }
    operations
}

#[test]
fn the_committed_description_is_up_to_date() {
    let committed =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../openapi.yaml"))
            .expect("openapi.yaml is committed");
    assert!(
        committed == tributary_api::openapi_yaml(),
        "openapi.yaml is outdated; run: cargo run -- openapi > openapi.yaml"
    );
}

/// Returns the names of the types that derive `ToSchema`.
fn schema_names(text: &str) -> Vec<String> {
    let derived = text.split("ToSchema").skip(1);
    let named = derived.filter_map(|rest| {
        let (_, rest) = rest.split_once('\n')?;
        let line = rest.lines().find(|line| {
            let line = line.trim_start();
            !line.starts_with("#[") && !line.starts_with("///")
        })?;
        let words: Vec<&str> = line.split([' ', '<', '(']).collect();
        let kind = words
            .iter()
            .position(|word| ["struct", "enum"].contains(word))?;
        words.get(kind + 1).map(|name| (*name).to_owned())
    });
    named.collect()
}

/// utoipa silently drops one of two schemas with the same name.
#[test]
fn no_two_schemas_share_a_name() {
    let mut folders = vec![PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../crates/api/src"
    ))];
    let mut seen = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
                continue;
            }
            for name in schema_names(&std::fs::read_to_string(entry.path()).unwrap()) {
                let path = entry.path().display().to_string();
                assert!(seen.insert(name.clone()), "a second {name} in {path}");
            }
        }
    }
    assert!(seen.len() > 50, "found only {} schemas", seen.len());
}

#[test]
fn every_route_is_described_and_tested() {
    let api = description();
    let described: BTreeSet<(String, String)> = operations(&api)
        .into_iter()
        .map(|(path, method, _)| (method, path))
        .collect();
    let rows: BTreeSet<(String, String)> = ROUTES
        .iter()
        .map(|route| (route.method.to_owned(), route.path.to_owned()))
        .collect();
    assert_eq!(described, rows);
}

#[test]
fn every_operation_has_an_id_a_summary_and_examples() {
    for (path, method, operation) in operations(&description()) {
        let name = format!("{method} {path}");
        assert!(
            operation["operationId"].is_string(),
            "{name} has no operationId"
        );
        assert!(operation["summary"].is_string(), "{name} has no summary");
        if let Some(body) = operation.get("requestBody") {
            let content = &body["content"]["application/json"];
            let example = content
                .get("example")
                .or_else(|| content["schema"].get("example"));
            assert!(example.is_some(), "{name} has no example of its body");
        }
        let responses = operation["responses"].as_object().unwrap();
        for (status, response) in responses
            .iter()
            .filter(|(status, _)| status.starts_with('2'))
        {
            if status != "204" {
                let content = response["content"].as_object();
                let content =
                    content.unwrap_or_else(|| panic!("{name} has no content for {status}"));
                // Responses other than JSON need no example.
                let has_example = content
                    .get("application/json")
                    .is_none_or(|json| json.get("example").is_some());
                assert!(has_example, "{name} has no example of {status}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_served_description_is_the_committed_one() {
    let server = TestServer::start(Engine::Sqlite).await;
    let request = server.request(reqwest::Method::GET, "/openapi.yaml");
    let answer = server.send(request).await.expect(200);
    assert_eq!(answer.header("content-type"), Some("application/yaml"));
    assert_eq!(answer.text, tributary_api::openapi_yaml());
}

/// Sends every example of a request body. Only the click id of a web event is replaced, because it
/// must be signed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_is_accepted() {
    let server = TestServer::start(Engine::Sqlite).await;
    let key = server.full_key().await;
    let fixture = RouteFixture::with_website(&server, &key).await;
    let mut operations = operations(&description());
    // Last, because the other requests need the device.
    operations.sort_by_key(|(path, ..)| path == "/api/track/erase");
    for (path, method, operation) in operations {
        let Some(body) = operation.get("requestBody") else {
            continue;
        };
        let content = &body["content"]["application/json"];
        let example = content
            .get("example")
            .or_else(|| content["schema"].get("example"))
            .unwrap();
        let route = ROUTES
            .iter()
            .find(|one| one.path == path && one.method == method)
            .unwrap();
        let key = route.key(&fixture, &key);
        let answer = route
            .call(&server, &fixture, key, Some(fixture.fill(example.clone())))
            .await;
        assert!(answer.status.is_success(), "{method} {path}: {answer:?}");
    }
}

/// Returns the error codes that the description lists for a status of an operation.
fn listed_codes(operation: &Value, status: u16) -> BTreeSet<String> {
    let response = &operation["responses"][status.to_string()];
    let words = response["description"].as_str().unwrap_or_default();
    words
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// Calls each operation with invalid keys, bodies, queries and unknown ids. The operation must list
/// every error that it returns.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_returned_error_is_listed() {
    let server = TestServer::start(Engine::Sqlite).await;
    let key = server.full_key().await;
    let fixture = RouteFixture::with_website(&server, &key).await;
    let unknown_ids = RouteFixture {
        app: "app_00000000000000000000000000".to_owned(),
        link: "lnk_00000000000000000000000000".to_owned(),
        delivery: "dlv_00000000000000000000000000".to_owned(),
        ..fixture.clone()
    };
    let api = description();
    let mut seen = BTreeSet::new();
    for route in ROUTES {
        let operation = &api["paths"][route.path][route.method.to_lowercase()];
        let own = route.key(&fixture, &key);
        let body = operation
            .get("requestBody")
            .map(|_| json!({"unknownField": []}));
        let mut answers = vec![
            route
                .call(&server, &fixture, "nonsense", body.clone())
                .await,
            route
                .call(&server, &fixture, &fixture.sdk_keys[1], body.clone())
                .await,
            route.call(&server, &fixture, own, body.clone()).await,
            route
                .call(&server, &fixture, own, body.as_ref().map(|_| json!([])))
                .await,
            route.call(&server, &unknown_ids, own, body.clone()).await,
        ];
        for query in ["cursor=x", "unknownField=1"] {
            let path = format!("{}?{query}", route.path_for(&fixture));
            answers.push(server.call(route.method, &path, own, None).await);
        }
        for answer in answers {
            let status = answer.status.as_u16();
            if status < 400 {
                continue;
            }
            let code = answer.code();
            let (method, path) = (route.method, route.path);
            assert!(
                listed_codes(operation, status).contains(&code),
                "{method} {path} returns {status} {code}, which is not listed: {answer:?}"
            );
            seen.insert(code);
        }
    }
    assert!(seen.len() > 8, "{seen:?}");
}

/// The description contains exactly the errors that the handler declares.
#[test]
fn operations_list_their_own_errors() {
    let api = description();
    let web_event = &api["paths"]["/api/v1/apps/{appId}/web-events"]["post"];
    assert!(listed_codes(web_event, 422).contains("refund_exceeds_payment"));
    assert_eq!(listed_codes(web_event, 409).len(), 1);
    let validation = &api["paths"]["/api/v1/apps/{appId}/web-events/validate"]["post"];
    for status in [401, 403, 404, 409, 422] {
        let mut codes = listed_codes(web_event, status);
        // A test key may validate events, and clicks on test links pass.
        codes.retain(|code| !["production_only", "test_click"].contains(&code.as_str()));
        assert_eq!(listed_codes(validation, status), codes, "{status}");
    }
    let app = &api["paths"]["/api/v1/apps/{appId}"]["get"];
    assert!(app["responses"].get("409").is_none() && app["responses"].get("422").is_none());
    let retry = &api["paths"]["/api/v1/apps/{appId}/deliveries/{deliveryId}/retry"]["post"];
    assert!(listed_codes(retry, 409).contains("delivery_not_retryable"));
}

/// The error about an unknown field lists the known ones. That list must match the description.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_accept_exactly_the_described_fields() {
    let server = TestServer::start(Engine::Sqlite).await;
    let key = server.full_key().await;
    let fixture = RouteFixture::new(&server, &key).await;
    let api = description();
    let mut compared = 0;
    for (path, method, operation) in operations(&api) {
        let Some(body) = operation.get("requestBody") else {
            continue;
        };
        let route = ROUTES
            .iter()
            .find(|one| one.path == path && one.method == method)
            .unwrap();
        if route.needs == Needs::SdkKey {
            // SDK endpoints ignore unknown fields; see the next test.
            continue;
        }
        let schema = &body["content"]["application/json"]["schema"];
        let mut objects = Vec::new();
        described_objects(&api, schema, &mut Vec::new(), &mut objects);
        for (path_in_body, fields) in objects {
            let body = body_with(&path_in_body, json!({"unknownField": 1}));
            let answer = server
                .call(&method, &route.path_for(&fixture), &key, Some(body))
                .await;
            let known = known_fields(&answer.json(), &path_in_body);
            assert_eq!(
                known, fields,
                "{method} {path} at {path_in_body:?}: {answer:?}"
            );
            compared += 1;
        }
    }
    assert!(compared > 20, "only {compared} objects were compared");
}

/// SDK endpoints ignore unknown fields, so each described field is sent with a wrong type. An error
/// about the field shows that the endpoint reads it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sdk_endpoints_read_every_described_field() {
    let server = TestServer::start(Engine::Sqlite).await;
    let key = server.full_key().await;
    let fixture = RouteFixture::new(&server, &key).await;
    let api = description();
    let mut compared = 0;
    for route in ROUTES.iter().filter(|route| route.needs == Needs::SdkKey) {
        let method = route.method.to_lowercase();
        let Some(body) = api["paths"][route.path][method.as_str()].get("requestBody") else {
            continue;
        };
        let schema = &body["content"]["application/json"]["schema"];
        let mut objects = Vec::new();
        described_objects(&api, schema, &mut Vec::new(), &mut objects);
        for (object_path, fields) in objects {
            // What cannot be read in an event's consent is ignored; a unit test shows that it is read.
            let is_ignored = |name: &str| route.path == "/api/track/events" && name == "consent";
            if object_path.iter().any(|step| is_ignored(step)) {
                continue;
            }
            for field in fields.into_iter().filter(|field| !is_ignored(field)) {
                // No field is both a list and an object.
                let mut is_rejected = false;
                for wrong in [json!([[]]), json!({"x": 1})] {
                    let body = body_with(&object_path, json!({ field.as_str(): wrong }));
                    let key = &fixture.sdk_keys[0];
                    let answer = route.call(&server, &fixture, key, Some(body)).await;
                    is_rejected |= rejected_fields(&answer.json(), &object_path).contains(&field);
                }
                assert!(
                    is_rejected,
                    "{} does not read {object_path:?} {field}",
                    route.path
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 30, "only {compared} fields were compared");
}

/// Returns the rejected fields of an object. The result of an event lists those of the event.
fn rejected_fields(answer: &Value, object_path: &[String]) -> BTreeSet<String> {
    let in_event = object_path.iter().any(|step| step == "[]");
    let steps = object_path.iter().map(String::as_str);
    let path = steps
        .filter(|step| *step != "[]" && !(in_event && *step == "events"))
        .fold(String::new(), |path, step| path + step + ".");
    let error = if in_event {
        &answer["data"][0]["error"]
    } else {
        &answer["error"]
    };
    let details = error["details"].as_array().into_iter().flatten();
    let fields = details.filter_map(|detail| detail["field"].as_str()?.strip_prefix(&path));
    fields.map(str::to_owned).collect()
}

/// Collects the objects inside a schema with the path to each; `[]` is an item of a list.
fn described_objects(
    api: &Value,
    schema: &Value,
    object_path: &mut Vec<String>,
    found: &mut Vec<(Vec<String>, BTreeSet<String>)>,
) {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap();
        return described_objects(api, &api["components"]["schemas"][name], object_path, found);
    }
    for alternative in ["oneOf", "allOf"] {
        for option in schema[alternative].as_array().into_iter().flatten() {
            described_objects(api, option, object_path, found);
        }
    }
    if let Some(properties) = schema["properties"].as_object() {
        found.push((object_path.clone(), properties.keys().cloned().collect()));
        for (name, property) in properties {
            object_path.push(name.clone());
            described_objects(api, property, object_path, found);
            object_path.pop();
        }
    }
    if let Some(items) = schema.get("items") {
        object_path.push("[]".to_owned());
        described_objects(api, items, object_path, found);
        object_path.pop();
    }
}

/// Builds a body that contains an object at this path.
fn body_with(object_path: &[String], object: Value) -> Value {
    let mut body = object_path
        .iter()
        .rev()
        .fold(object, |inner, step| match step.as_str() {
            "[]" => json!([inner]),
            name => json!({ name: inner }),
        });
    // A batch is read only if it names a device.
    if object_path.first().is_some_and(|first| first == "events") {
        body["deviceId"] = json!("d1");
    }
    body
}

/// Returns the fields that an error about an unknown field lists.
fn known_fields(answer: &Value, object_path: &[String]) -> BTreeSet<String> {
    let path = object_path
        .iter()
        .fold(String::new(), |path, step| match step.as_str() {
            "[]" => format!("{path}[0]"),
            name if path.is_empty() => name.to_owned(),
            name => format!("{path}.{name}"),
        });
    let field = if path.is_empty() {
        "unknownField".to_owned()
    } else {
        format!("{path}.unknownField")
    };
    let details = answer["error"]["details"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let fault = details
        .iter()
        .find(|fault| fault["field"] == field.as_str());
    let message = fault
        .and_then(|fault| fault["message"].as_str())
        .unwrap_or_default();
    let list = message
        .strip_prefix("Unknown field. Known fields: ")
        .unwrap_or_default();
    list.trim_end_matches('.')
        .split(", ")
        .map(str::to_owned)
        .collect()
}
