//! Sends canary values wherever the API accepts secrets or personal data, and searches everything
//! that the process writes.

use serde_json::json;
use tributary_testkit::{ServerProcess, TestDatabase, on_both_engines};

const CANARY: &str = "canary7f3kQ9";

on_both_engines! {
    async fn no_secret_reaches_logs_responses_metrics_or_the_database(engine: Engine) {
        let database = TestDatabase::new(engine).await;
        let settings = [("TRIBUTARY_LOG__LEVEL", "trace"), ("TRIBUTARY_LOG__FORMAT", "json")];
        let server = ServerProcess::start_with(&database, &settings).await;
        let key = ServerProcess::full_key(&database);
        let app = server.call("POST", "/api/v1/apps", &key, Some(json!({"name": "Runner"}))).await.expect(201);
        let path = format!("/api/v1/apps/{}", app.data()["id"].as_str().unwrap());
        let mut answers = String::new();
        let secret = format!("{CANARY}-0123456789");
        let calls = [
            ("PATCH", path.clone(), json!({"attribution": {"socialReferrerKey": secret}})),
            ("PATCH", path.clone(), json!({"billing": {"revenuecat": {"secret": secret}}})),
            ("PATCH", format!("{path}/integrations/network_a"), json!({"credentials": {"accessToken": secret, "appSecret": secret}})),
            ("PATCH", format!("{path}/integrations/network_b"), json!({"credentials": {"serviceAccountKey": secret}})),
            // Rejected requests with the canary as the invalid value.
            ("PATCH", path.clone(), json!({"timezone": CANARY, "linkDomain": format!("https://{CANARY}"), CANARY.to_lowercase(): 1})),
            ("PATCH", format!("{path}/integrations/network_a"), json!({"credentials": {"accessToken": [secret]}})),
        ];
        for (method, path, body) in calls {
            answers += &server.call(method, &path, &key, Some(body)).await.text;
        }
        let sdk_key = server.call("GET", &path, &key, None).await.data()["sdk"]["liveKey"].as_str().unwrap().to_owned();
        let identify = format!("/api/track/identify?key={sdk_key}");
        let plain_text = json!({"deviceId": "d1", "matching": {"email": format!("{CANARY}@example.com"), "phone": CANARY}});
        answers += &server.call("POST", &identify, &key, Some(plain_text)).await.expect(422).text;
        let token = format!("{CANARY:A<43}");
        for endpoint in ["configure", "erase"] {
            let path = format!("/api/track/{endpoint}?key={sdk_key}");
            let device = "6f9619ff-8b86-4011-b42d-00c04fc964ff";
            let body = json!({"deviceId": device, "platform": "ios", "eraseToken": token});
            answers += &server.call("POST", &path, &key, Some(body)).await.expect(200).text;
            let wrong = json!({"deviceId": "d2", "platform": "ios", "eraseToken": format!("{token}{CANARY}")});
            answers += &server.call("POST", &path, &key, Some(wrong)).await.text;
        }
        let wrong = format!("/api/track/configure?key=pk_live_{CANARY}");
        answers += &server.call("POST", &wrong, &key, Some(json!({"deviceId": CANARY}))).await.expect(401).text;
        for wrong in [format!("ak_live_{CANARY}"), CANARY.to_owned(), format!("pk_live_{CANARY}")] {
            answers += &server.call("GET", &path, &wrong, None).await.text;
        }
        answers += &server.call("GET", &format!("{path}?token={CANARY}"), &key, None).await.text;
        answers += &server.call("GET", &format!("/unknown/{CANARY}"), &key, None).await.text;
        let callback = "/sign-in/sso/org_canary7f3kQ9/callback?code=canary7f3kQ9&state=canary7f3kQ9";
        for page in ["/setup/setup_canary7f3kQ9", "/reset/reset_canary7f3kQ9", "/shared/share_canary7f3kQ9", callback] {
            answers += &server.call("GET", page, &key, None).await.text;
        }
        for read in ["", "/integrations", "/links", "/skan"] {
            answers += &server.call("GET", &format!("{path}{read}"), &key, None).await.text;
        }
        answers += &server.call("GET", "/api/v1/audit-log", &key, None).await.text;
        let metrics = server.call("GET", "/metrics", &key, None).await.text;
        assert!(metrics.contains("tributary_http_requests_total"), "{metrics}");
        let log = server.log();
        assert!(log.contains("http.route"), "the log is not empty");
        for (name, text) in [("responses", &answers), ("metrics", &metrics), ("log", &log)] {
            assert!(!text.contains(CANARY), "{name} contains the canary: {}", around(text));
            assert!(!text.contains(&key), "{name} contains the API key");
        }
        assert!(server.terminate().success());
        if engine == tributary_testkit::Engine::Sqlite {
            for file in std::fs::read_dir(database.folder()).unwrap().map(Result::unwrap) {
                let bytes = std::fs::read(file.path()).unwrap();
                let found = bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
                assert!(!found, "{} contains the canary in plain text", file.path().display());
            }
        }
    }
}

/// Returns the text before the canary for an error message.
fn around(text: &str) -> &str {
    let at = text.find(CANARY).unwrap_or(0);
    let begin = (0..=at.saturating_sub(200))
        .rev()
        .find(|begin| text.is_char_boundary(*begin))
        .unwrap_or(0);
    &text[begin..at + CANARY.len()]
}
