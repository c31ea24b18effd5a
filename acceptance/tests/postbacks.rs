//! Helpers for the tests of postbacks: posting them, reading results, Apple's published samples.

pub(crate) use tributary_testkit::postbacks::{
    ADATTRIBUTIONKIT, APP_STORE_ID, DEVELOPMENT, PRODUCTION, SKADNETWORK, adattributionkit,
    jws_postback, sign, skadnetwork, with_fields,
};

use reqwest::Method;
use serde_json::{Value, json};
use std::path::PathBuf;
use tributary_testkit::postbacks::test_keys;
use tributary_testkit::{Engine, TestResponse, TestServer, TestServerSettings};

/// Starts a server that trusts the test key.
pub(crate) async fn server(engine: Engine) -> TestServer {
    let settings = TestServerSettings {
        postback_keys: test_keys(),
        ..TestServerSettings::default()
    };
    TestServer::start_with(engine, settings).await
}

/// Creates an app with an App Store id. Returns its path.
pub(crate) async fn create_advertised_app(server: &TestServer, key: &str, store_id: i64) -> String {
    let body = json!({"name": "Runner", "ios": {"appStoreId": store_id.to_string()}});
    let created = server.post("/api/v1/apps", key, body).await.expect(201);
    format!("/api/v1/apps/{}", created.data()["id"].as_str().unwrap())
}

/// Posts a body to an endpoint, as a device does.
pub(crate) async fn post(
    server: &TestServer,
    path: &str,
    body: impl Into<reqwest::Body>,
) -> TestResponse {
    server
        .send(server.request(Method::POST, path).body(body))
        .await
}

/// Returns the published postbacks with name, body and expected result, if they are available.
pub(crate) fn vectors() -> Option<Vec<(String, String, Value)>> {
    let folder = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../shared/vectors/skan"
    ));
    let Ok(expected) = std::fs::read_to_string(folder.join("expected.json")) else {
        println!(
            "SKIPPED: the published postbacks are not at {}",
            folder.display()
        );
        return None;
    };
    let expected: Value = serde_json::from_str(&expected).unwrap();
    let read = |(name, expected): (&String, &Value)| {
        let body = std::fs::read_to_string(folder.join(name)).unwrap();
        (name.clone(), body, expected.clone())
    };
    Some(expected.as_object().unwrap().iter().map(read).collect())
}

/// Returns the postbacks of an app.
pub(crate) async fn list(server: &TestServer, app: &str, key: &str, query: &str) -> Vec<Value> {
    let path = format!("{app}/skan/postbacks?limit=500&{query}");
    let data = server.get(&path, key).await.expect(200).data();
    data.as_array().unwrap().clone()
}

/// Returns `meta.totals` of an app's SKAN statistics.
pub(crate) async fn totals(server: &TestServer, app: &str, key: &str) -> Value {
    let answer = server
        .get(&format!("{app}/skan/stats"), key)
        .await
        .expect(200);
    answer.json()["meta"]["totals"].clone()
}
