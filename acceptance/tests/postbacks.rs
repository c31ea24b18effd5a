//! Posting postbacks, reading what became of them, and the genuine ones that are published.

pub(crate) use tributary_testkit::postbacks::{
    ADATTRIBUTIONKIT, APP_STORE_ID, DEVELOPMENT, PRODUCTION, SKADNETWORK, adattributionkit,
    jws_postback, sign, skadnetwork, with_fields,
};

use reqwest::Method;
use serde_json::{Value, json};
use std::path::PathBuf;
use tributary_testkit::postbacks::test_keys;
use tributary_testkit::{Engine, TestResponse, TestServer, TestServerSettings};

/// A server that believes our own key.
pub(crate) async fn server(engine: Engine) -> TestServer {
    let settings = TestServerSettings {
        postback_keys: test_keys(),
        ..TestServerSettings::default()
    };
    TestServer::start_with(engine, settings).await
}

/// Makes an app with an App Store id and gives its path.
pub(crate) async fn advertised(server: &TestServer, key: &str, store_id: i64) -> String {
    let body = json!({"name": "Runner", "ios": {"appStoreId": store_id.to_string()}});
    let made = server.post("/api/v1/apps", key, body).await.expect(201);
    format!("/api/v1/apps/{}", made.data()["id"].as_str().unwrap())
}

/// Posts bytes at a door, as a device does.
pub(crate) async fn post(
    server: &TestServer,
    door: &str,
    body: impl Into<reqwest::Body>,
) -> TestResponse {
    server
        .send(server.request(Method::POST, door).body(body))
        .await
}

/// The published postbacks: name, body, and what is expected. Nothing where they are not at hand, which is said.
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

/// The items of an app's list of postbacks.
pub(crate) async fn list(server: &TestServer, app: &str, key: &str, query: &str) -> Vec<Value> {
    let path = format!("{app}/skan/postbacks?limit=500&{query}");
    let data = server.get(&path, key).await.expect(200).data();
    data.as_array().unwrap().clone()
}

/// `meta.totals` of an app's figures.
pub(crate) async fn totals(server: &TestServer, app: &str, key: &str) -> Value {
    let answer = server
        .get(&format!("{app}/skan/stats"), key)
        .await
        .expect(200);
    answer.json()["meta"]["totals"].clone()
}
