//! `/mcp` and keys: an agent may do what its key may do through the REST API, and changes only what
//! its client opted in to.

use super::mcp::Agent;
use crate::routes::RouteFixture;
use reqwest::Method;
use serde_json::{Value, json};
use tributary_api::RateSettings;
use tributary_domain::access::{Environment, Permission};
use tributary_testkit::{Engine, TestServer, TestServerSettings, on_both_engines};

/// Path of the endpoint for agents that want to write.
const WRITING: &str = "/mcp?write=1";

fn message(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

/// Every kind of message.
fn messages() -> [String; 7] {
    [
        message("ping", &json!({})),
        message("tools/list", &json!({})),
        message("tools/call", &json!({"name": "list_apps"})),
        message(
            "tools/call",
            &json!({"name": "search_docs", "arguments": {"query": "key"}}),
        ),
        message("tools/call", &json!({"name": "none"})),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        "{".to_owned(),
    ]
}

on_both_engines! {
    async fn every_message_needs_a_valid_private_key(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let fixture = RouteFixture::new(&server, &key).await;
        let unknown = "ak_live_000000000000000000000000000000000000000000000000";
        for body in messages() {
            let request = server.request(Method::POST, "/mcp").body(body.clone());
            let request = request.header("content-type", "application/json");
            let answer = server.send(request).await.expect(401);
            assert_eq!(answer.code(), "missing_api_key", "{body}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            for (key, status, code) in [
                (unknown, 401, "invalid_api_key"),
                ("nonsense", 401, "invalid_api_key"),
                (fixture.sdk_keys[0].as_str(), 403, "private_key_required"),
            ] {
                let agent = Agent::new(&server, key.to_owned());
                let answer = agent.post(body.clone()).await.expect(status);
                assert_eq!(answer.code(), code, "{body}");
            }
        }
    }

    async fn a_tool_needs_the_scope_of_its_endpoint(engine: Engine) {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        let owner = server.key(organization, Permission::Full, Environment::Live).await;
        let app = server.app(&owner).await.rsplit('/').next().unwrap().to_owned();
        let key = server.key(organization, Permission::Analytics, Environment::Live).await;
        let agent = Agent::new(&server, key);
        let figures = agent.call("get_stats", json!({"appId": app})).await;
        assert_eq!(figures["isError"], false);
        for (tool, arguments) in [
            ("list_apps", json!({})),
            ("list_links", json!({"appId": app})),
            ("get_undelivered", json!({"appId": app})),
        ] {
            let code = agent.call_refused(tool, arguments).await;
            assert_eq!(code, "insufficient_permission", "{tool}");
        }
    }

    async fn a_test_key_sees_test_data_only(engine: Engine) {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        let owner = server.key(organization, Permission::Full, Environment::Live).await;
        let fixture = RouteFixture::with_website(&server, &owner).await;
        let key = server.key(organization, Permission::Full, Environment::Test).await;
        let (live, test) = (Agent::new(&server, owner), Agent::new(&server, key));
        let seen = async |agent: &Agent<'_>, tool: &str| {
            let result = agent.call(tool, json!({"appId": fixture.app})).await;
            result["structuredContent"]["data"].as_array().unwrap().clone()
        };
        for (agent, environment) in [(&live, "live"), (&test, "test")] {
            let events = seen(agent, "list_events").await;
            assert!(!events.is_empty());
            assert!(events.iter().all(|event| event["environment"] == environment), "{events:?}");
        }
        // Test events are never forwarded.
        assert!(!seen(&live, "list_deliveries").await.is_empty());
        assert!(seen(&test, "list_deliveries").await.is_empty());
        let test = Agent { path: WRITING, ..test };
        assert!(!test.tools().await.contains(&"create_link".to_owned()));
        let link = json!({"appId": fixture.app, "name": "Winter"});
        assert_eq!(test.call_refused("create_link", link).await, "production_only");
    }

    async fn changes_need_the_key_and_the_client(engine: Engine) {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        let full = server.key(organization, Permission::Full, Environment::Live).await;
        let reading = server.key(organization, Permission::ReadOnly, Environment::Live).await;
        let path = server.app(&full).await;
        let link = json!({"appId": path.rsplit('/').next(), "name": "Winter", "tags": ["a", "b"]});
        let create = "create_link".to_owned();

        let agent = Agent::new(&server, full.clone());
        assert!(!agent.tools().await.contains(&create), "the client did not opt in");
        let params = json!({"name": create, "arguments": link});
        let answer = agent.ask("tools/call", params).await;
        assert_eq!(answer["error"]["code"], -32_602);

        let agent = Agent { path: WRITING, ..Agent::new(&server, reading) };
        assert!(!agent.tools().await.contains(&create), "the key may not write");
        let code = agent.call_refused(&create, link.clone()).await;
        assert_eq!(code, "insufficient_permission");
        let links = format!("{path}/links");
        assert_eq!(server.get(&links, &full).await.expect(200).data(), json!([]));

        let agent = Agent { path: WRITING, ..Agent::new(&server, full.clone()) };
        assert!(agent.tools().await.contains(&create));
        let faulty = json!({"appId": link["appId"], "name": ""});
        assert_eq!(agent.call_refused(&create, faulty).await, "validation_failed");
        let created = agent.call(&create, link).await["structuredContent"]["data"].clone();
        let stored = server.get(&links, &full).await.expect(200).data();
        assert_eq!(stored, json!([created]));
        assert_eq!((&created["name"], &created["tags"]), (&json!("Winter"), &json!(["a", "b"])));
        let log = server.get("/api/v1/audit-log?limit=1", &full).await.expect(200).data();
        assert_eq!(log[0]["action"], "link.created");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_say_what_they_do() {
    let server = TestServer::start(Engine::Sqlite).await;
    let agent = Agent {
        path: WRITING,
        ..Agent::with(&server, Permission::Full, Environment::Live).await
    };
    let listed = agent.ask("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert!(tools.len() > 12, "{}", tools.len());
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        let hints = &tool["annotations"];
        assert_eq!(
            hints["readOnlyHint"],
            json!(name != "create_link"),
            "{name}"
        );
        assert_eq!(hints["destructiveHint"], false, "{name}");
        assert!(tool["description"].as_str().unwrap().len() > 60, "{name}");
        let schema = &tool["inputSchema"];
        assert_eq!(schema["additionalProperties"], false, "{name}");
        for required in schema["required"].as_array().unwrap() {
            let property = &schema["properties"][required.as_str().unwrap()];
            assert!(property["description"].is_string(), "{name}: {required}");
        }
    }
}

/// A call of a tool counts as one request of the key, like any request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rate_limit_of_the_key_applies() {
    let settings = TestServerSettings {
        rates: RateSettings {
            per_key: 3,
            per_address: 0,
            failures_per_minute: 0,
        },
        ..TestServerSettings::default()
    };
    let server = TestServer::start_with(Engine::Sqlite, settings).await;
    let agent = Agent::with(&server, Permission::Full, Environment::Live).await;
    let mut results = Vec::new();
    for _ in 0..20 {
        results.push(agent.call("list_apps", json!({})).await);
    }
    let refused: Vec<&Value> = results
        .iter()
        .filter(|one| one["isError"] == true)
        .collect();
    assert!(
        !refused.is_empty() && refused.len() < 20,
        "{}",
        refused.len()
    );
    let text = refused[0]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("\"rate_limited\""), "{text}");
    let answer = agent.post(message("ping", &json!({}))).await;
    assert_eq!(answer.expect(429).code(), "rate_limited");
}
