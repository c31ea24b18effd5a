//! `GET /api/v1/apps/{appId}/undelivered`: what the networks did not receive, and why.

use crate::outbox::{Outcome, connect, settle};
use crate::website::Website;
use serde_json::{Value, json};
use tributary_domain::access::{Environment, Permission};
use tributary_testkit::{TestServer, on_both_engines};

on_both_engines! {
    async fn undelivered_events_are_counted_by_reason(engine: Engine) {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        let key = server.key(organization, Permission::Full, Environment::Live).await;
        let app = server.app(&key).await;
        let base = format!("http://{}", server.address);
        let site = Website::for_app(base, key.clone(), app.clone()).await;
        // Before the network is connected, the event is skipped; afterwards, the delivery fails.
        site.send_accepted(&site.purchase("skipped", "1")).await;
        connect(&site).await;
        site.send_accepted(&site.purchase("failed", "1")).await;
        settle(&server, &site.app, &Outcome::FAILED).await;

        let read = async |query: &str| {
            let path = format!("{app}/undelivered?from=2020-01-01{query}");
            server.get(&path, &key).await.expect(200).json()
        };
        let all = read("").await;
        assert_eq!(all["meta"], json!({"moreGroups": 0}));
        let groups = all["data"].as_array().unwrap();
        let of = |status: &str| -> Vec<&Value> {
            groups.iter().filter(|group| group["status"] == status).collect()
        };
        let failed = of("failed");
        assert_eq!(failed.len(), 1, "{all}");
        assert_eq!(failed[0]["losesConversion"], true);
        assert_eq!(failed[0]["events"], json!([{"name": "purchase", "count": 1}]));
        assert!(!of("skipped").is_empty(), "{all}");
        for group in of("skipped") {
            assert!(group["reason"].is_string() && group["count"].as_u64() > Some(0), "{group}");
        }
        let network = failed[0]["network"].as_str().unwrap();
        let one = read(&format!("&network={network}")).await;
        let only = |group: &Value| group["network"] == network;
        assert!(one["data"].as_array().unwrap().iter().all(only), "{one}");
        assert_eq!(read("&event=refund").await["data"], json!([]));

        for query in ["network=other", "event=", "from=today", "days=7", "timezone=Mars"] {
            let answer = server.get(&format!("{app}/undelivered?{query}"), &key).await;
            answer.expect(422);
        }
        let test = server.key(organization, Permission::Full, Environment::Test).await;
        let answer = server.get(&format!("{app}/undelivered"), &test).await.expect(200);
        assert_eq!(answer.data(), json!([]));
    }
}
