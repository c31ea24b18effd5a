//! Rotation of SDK keys with an overlap.

use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tributary_testkit::{TestServer, on_both_engines};

const DAY: Duration = Duration::from_hours(24);

struct KeyFixture {
    server: TestServer,
    key: String,
    app: String,
}

impl KeyFixture {
    /// Returns the keys of an environment.
    async fn keys(&self, environment: &str) -> Vec<Value> {
        let path = format!("{}/sdk-keys", self.app);
        let listed = self.server.get(&path, &self.key).await.expect(200);
        listed.data()[environment].as_array().unwrap().clone()
    }

    async fn rotate(&self, body: Value) -> Value {
        let path = format!("{}/sdk-keys/rotate", self.app);
        self.server
            .post(&path, &self.key, body)
            .await
            .expect(201)
            .data()
    }

    /// Returns the status of an SDK request.
    async fn ask(&self, sdk_key: &str) -> u16 {
        let request = self.server.request(Method::GET, "/api/track/skan");
        let request = request.header("x-tributary-key", sdk_key);
        self.server.send(request).await.status.as_u16()
    }
}

fn text(key: &Value) -> String {
    key["key"].as_str().unwrap().to_owned()
}

on_both_engines! {
    async fn a_replaced_key_works_until_its_end_or_its_revocation(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let app = server.app(&key).await;
        let fixture = KeyFixture { server, key, app };
        let first = text(&fixture.keys("live").await[0]);
        assert_eq!(fixture.ask(&first).await, 200);
        let rotated = fixture.rotate(json!({"environment": "live", "overlapDays": 2})).await;
        let second = text(&rotated["live"][0]);
        assert_eq!(rotated["live"][0]["state"], "current");
        assert_eq!(rotated["live"][1]["state"], "replaced");
        assert_eq!(text(&rotated["live"][1]), first);
        let shown = fixture.server.get(&fixture.app, &fixture.key).await.expect(200).data();
        assert_eq!(shown["sdk"]["liveKey"], json!(second));
        fixture.rotate(json!({"environment": "live"})).await;
        for sdk_key in [&first, &second] {
            assert_eq!(fixture.ask(sdk_key).await, 200);
        }
        let used = async || fixture.keys("live").await[1]["lastUsedAt"].is_string();
        while !used().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }

        fixture.server.clock.advance(DAY * 2);
        assert_eq!(fixture.ask(&first).await, 401, "its overlap is over");
        assert_eq!(fixture.ask(&second).await, 200, "the default overlap is longer");
        let path = format!("{}/sdk-keys/revoke", fixture.app);
        let current = text(&fixture.keys("live").await[0]);
        let refused = fixture.server.post(&path, &fixture.key, json!({"key": current})).await;
        assert_eq!(refused.expect(404).code(), "key_not_found");
        let body = json!({"key": second});
        for _ in 0..2 {
            fixture.server.post(&path, &fixture.key, body.clone()).await.expect(200);
        }
        assert_eq!(fixture.ask(&second).await, 401, "it was revoked");
        assert_eq!(fixture.ask(&current).await, 200);
    }

    async fn a_rotation_is_limited_and_checked(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let app = server.app(&key).await;
        let fixture = KeyFixture { server, key, app };
        for _ in 0..4 {
            fixture.rotate(json!({"environment": "test", "overlapDays": 1})).await;
        }
        let path = format!("{}/sdk-keys/rotate", fixture.app);
        let again = json!({"environment": "test", "overlapDays": 1});
        let refused = fixture.server.post(&path, &fixture.key, again).await;
        assert_eq!(refused.expect(409).code(), "too_many_keys");
        for body in [json!({}), json!({"environment": "x"}), json!({"environment": "live", "overlapDays": 731})] {
            fixture.server.post(&path, &fixture.key, body).await.expect(422);
        }
    }
}
