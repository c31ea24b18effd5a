//! The description: committed, served and true.

use crate::routes::{Needs, Place, ROUTES};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use tributary_testkit::{Engine, TestServer};

const METHODS: &[&str] = &["get", "put", "post", "patch", "delete"];

fn description() -> Value {
    yaml_serde::from_str(&tributary_api::openapi_yaml()).expect("the description is YAML")
}

/// Every operation: its path, its method, and what is said of it.
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
fn the_committed_description_is_the_one_of_the_code() {
    let committed =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../openapi.yaml"))
            .expect("openapi.yaml is committed");
    assert!(
        committed == tributary_api::openapi_yaml(),
        "openapi.yaml is old: cargo run -- openapi > openapi.yaml"
    );
}

/// Names of the shapes in a file: of whatever follows a derived `ToSchema`.
fn shapes(text: &str) -> Vec<String> {
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

/// The description keeps one of two shapes of the same name and says nothing about it.
#[test]
fn no_two_shapes_have_one_name() {
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
            for name in shapes(&std::fs::read_to_string(entry.path()).unwrap()) {
                let place = entry.path().display().to_string();
                assert!(seen.insert(name.clone()), "a second {name} in {place}");
            }
        }
    }
    assert!(seen.len() > 50, "the shapes are found: {}", seen.len());
}

#[test]
fn every_route_has_a_row() {
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
            assert!(example.is_some(), "{name} has no example of a body");
        }
        let responses = operation["responses"].as_object().unwrap();
        for (status, response) in responses
            .iter()
            .filter(|(status, _)| status.starts_with('2'))
        {
            if status != "204" {
                let content = response["content"].as_object();
                let content =
                    content.unwrap_or_else(|| panic!("{name} answers {status} with nothing"));
                // A file is described in words.
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

/// Every example of a body is accepted as it is printed, but for the click that a website event names: nobody can
/// print one that is verified.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_examples_work() {
    let server = TestServer::start(Engine::Sqlite).await;
    let key = server.full_key().await;
    let place = Place::with_website(&server, &key).await;
    for (path, method, operation) in operations(&description()) {
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
        let key = route.key(&place, &key);
        let answer = route
            .call(&server, &place, key, Some(place.fill(example.clone())))
            .await;
        assert!(answer.status.is_success(), "{method} {path}: {answer:?}");
    }
}

/// The codes that the description lists for an operation and a status.
fn listed(operation: &Value, status: u16) -> BTreeSet<String> {
    let response = &operation["responses"][status.to_string()];
    let words = response["description"].as_str().unwrap_or_default();
    words
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// Each operation lists the errors that it answers: without a key, with keys that do not suffice, with bodies and
/// queries that cannot be read, and on ids that name nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_that_are_seen_are_listed() {
    let server = TestServer::start(Engine::Sqlite).await;
    let key = server.full_key().await;
    let place = Place::with_website(&server, &key).await;
    let nowhere = Place {
        app: "app_00000000000000000000000000".to_owned(),
        link: "lnk_00000000000000000000000000".to_owned(),
        delivery: "dlv_00000000000000000000000000".to_owned(),
        ..place.clone()
    };
    let api = description();
    let mut seen = BTreeSet::new();
    for route in ROUTES {
        let operation = &api["paths"][route.path][route.method.to_lowercase()];
        let own = route.key(&place, &key);
        let body = operation
            .get("requestBody")
            .map(|_| json!({"fieldThatIsNot": []}));
        let mut answers = vec![
            route.call(&server, &place, "nonsense", body.clone()).await,
            route
                .call(&server, &place, &place.sdk_keys[1], body.clone())
                .await,
            route.call(&server, &place, own, body.clone()).await,
            route
                .call(&server, &place, own, body.as_ref().map(|_| json!([])))
                .await,
            route.call(&server, &nowhere, own, body.clone()).await,
        ];
        for query in ["cursor=x", "fieldThatIsNot=1"] {
            let path = format!("{}?{query}", route.at(&place));
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
                listed(operation, status).contains(&code),
                "{method} {path} answers {status} {code}, which is not listed: {answer:?}"
            );
            seen.insert(code);
        }
    }
    assert!(seen.len() > 8, "{seen:?}");
}

/// The description has the errors that an operation lists beside its handler, and no others.
#[test]
fn operations_list_their_own_errors() {
    let api = description();
    let web_event = &api["paths"]["/api/v1/apps/{appId}/web-events"]["post"];
    assert!(listed(web_event, 422).contains("refund_exceeds_payment"));
    assert_eq!(listed(web_event, 409).len(), 1);
    let app = &api["paths"]["/api/v1/apps/{appId}"]["get"];
    assert!(app["responses"].get("409").is_none() && app["responses"].get("422").is_none());
    let retry = &api["paths"]["/api/v1/apps/{appId}/deliveries/{deliveryId}/retry"]["post"];
    assert!(listed(retry, 409).contains("delivery_not_retryable"));
}

/// What the description says a body takes is what the reader of the body takes: an unknown field is told
/// which ones there are, and that list has to be the description's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_take_the_fields_that_are_described_and_no_others() {
    let server = TestServer::start(Engine::Sqlite).await;
    let key = server.full_key().await;
    let place = Place::new(&server, &key).await;
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
            // These doors ignore what they do not know; see the next test.
            continue;
        }
        let schema = &body["content"]["application/json"]["schema"];
        let mut objects = Vec::new();
        described_objects(&api, schema, &mut Vec::new(), &mut objects);
        for (place_in_body, fields) in objects {
            let body = body_with(&place_in_body, json!({"fieldThatIsNot": 1}));
            let answer = server
                .call(&method, &route.at(&place), &key, Some(body))
                .await;
            let taken = taken_fields(&answer.json(), &place_in_body);
            assert_eq!(
                taken, fields,
                "{method} {path} at {place_in_body:?}: {answer:?}"
            );
            compared += 1;
        }
    }
    assert!(compared > 20, "only {compared} objects were compared");
}

/// The doors of the SDK ignore what they do not know, so there each described field is sent as what it cannot
/// be: whoever reads it says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doors_of_the_sdk_read_every_field_that_is_described() {
    let server = TestServer::start(Engine::Sqlite).await;
    let key = server.full_key().await;
    let place = Place::new(&server, &key).await;
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
        for (way, fields) in objects {
            for field in fields {
                // No field is both a list and an object.
                let mut faulty = false;
                for wrong in [json!([[]]), json!({"x": 1})] {
                    let body = body_with(&way, json!({ field.as_str(): wrong }));
                    let key = &place.sdk_keys[0];
                    let answer = route.call(&server, &place, key, Some(body)).await;
                    faulty |= faulty_fields(&answer.json(), &way).contains(&field);
                }
                assert!(faulty, "{} does not read {way:?} {field}", route.path);
                compared += 1;
            }
        }
    }
    assert!(compared > 30, "only {compared} fields were compared");
}

/// The fields of an object that are at fault. Those of an event are in the outcome of that event.
fn faulty_fields(answer: &Value, way: &[String]) -> BTreeSet<String> {
    let in_event = way.iter().any(|step| step == "[]");
    let steps = way.iter().map(String::as_str);
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

/// Objects with named fields inside a schema, with the way to each; `[]` is an item of a list.
fn described_objects(
    api: &Value,
    schema: &Value,
    way: &mut Vec<String>,
    found: &mut Vec<(Vec<String>, BTreeSet<String>)>,
) {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap();
        return described_objects(api, &api["components"]["schemas"][name], way, found);
    }
    for alternative in ["oneOf", "allOf"] {
        for option in schema[alternative].as_array().into_iter().flatten() {
            described_objects(api, option, way, found);
        }
    }
    if let Some(properties) = schema["properties"].as_object() {
        found.push((way.clone(), properties.keys().cloned().collect()));
        for (name, property) in properties {
            way.push(name.clone());
            described_objects(api, property, way, found);
            way.pop();
        }
    }
    if let Some(items) = schema.get("items") {
        way.push("[]".to_owned());
        described_objects(api, items, way, found);
        way.pop();
    }
}

fn body_with(way: &[String], object: Value) -> Value {
    let mut body = way
        .iter()
        .rev()
        .fold(object, |inner, step| match step.as_str() {
            "[]" => json!([inner]),
            name => json!({ name: inner }),
        });
    // A batch is only looked into when its device is known.
    if way.first().is_some_and(|first| first == "events") {
        body["deviceId"] = json!("d1");
    }
    body
}

fn taken_fields(answer: &Value, way: &[String]) -> BTreeSet<String> {
    let path = way
        .iter()
        .fold(String::new(), |path, step| match step.as_str() {
            "[]" => format!("{path}[0]"),
            name if path.is_empty() => name.to_owned(),
            name => format!("{path}.{name}"),
        });
    let field = if path.is_empty() {
        "fieldThatIsNot".to_owned()
    } else {
        format!("{path}.fieldThatIsNot")
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
        .strip_prefix("No such field. This object takes: ")
        .unwrap_or_default();
    list.trim_end_matches('.')
        .split(", ")
        .map(str::to_owned)
        .collect()
}
