//! `/mcp`: the protocol, and tools that return what the REST API returns.

use crate::routes::{DEVICE, RouteFixture};
use reqwest::Method;
use serde_json::{Value, json};
use tributary_domain::access::{Environment, Permission};
use tributary_testkit::{Engine, TestResponse, TestServer, on_both_engines};

/// Newest version of the protocol.
pub(super) const VERSION: &str = "2026-07-28";

/// An agent with a key.
pub(super) struct Agent<'a> {
    pub(super) server: &'a TestServer,
    pub(super) key: String,
    /// Path of the endpoint, with `?write=1` if the agent wants to write.
    pub(super) path: &'static str,
}

impl<'a> Agent<'a> {
    pub(super) const fn new(server: &'a TestServer, key: String) -> Self {
        let path = "/mcp";
        Self { server, key, path }
    }

    /// Creates an agent with a new organization's key.
    pub(super) async fn with(
        server: &'a TestServer,
        permission: Permission,
        environment: Environment,
    ) -> Self {
        let organization = server.organization("Example").await;
        let key = server.key(organization, permission, environment).await;
        Self::new(server, key)
    }

    /// Sends a body as it is.
    pub(super) async fn post(&self, body: impl Into<reqwest::Body>) -> TestResponse {
        let request = self.server.request(Method::POST, self.path);
        let request = request.header("content-type", "application/json");
        let request = request.bearer_auth(&self.key).body(body);
        self.server.send(request).await
    }

    /// Sends a request of a version with a handshake.
    pub(super) async fn ask(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = self.post(body.to_string()).await.expect(200);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let answer = answer.json();
        assert_eq!(
            (&answer["jsonrpc"], &answer["id"]),
            (&json!("2.0"), &json!(1))
        );
        answer
    }

    /// Calls a tool and returns its result.
    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.ask("tools/call", params).await;
        assert!(answer["result"].is_object(), "{tool}: {answer}");
        answer["result"].clone()
    }

    /// Calls a tool that fails, and returns the code of the API's error.
    pub(super) async fn call_refused(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], true, "{tool}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        let error: Value = serde_json::from_str(text).unwrap();
        assert!(error["error"]["message"].is_string() && error["error"]["requestId"].is_string());
        error["error"]["code"].as_str().unwrap().to_owned()
    }

    /// Returns the names of the tools.
    pub(super) async fn tools(&self) -> Vec<String> {
        let listed = self.ask("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap().iter();
        tools
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }
}

/// Sends a request of a version without a handshake, with these headers.
async fn ask_stateless(
    agent: &Agent<'_>,
    method: &str,
    params: Value,
    headers: &[(&str, &str)],
) -> TestResponse {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({"jsonrpc": "2.0", "id": "a", "method": method, "params": params});
    let mut request = agent.server.request(Method::POST, agent.path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.header("content-type", "application/json");
    let request = request.bearer_auth(&agent.key).body(body.to_string());
    agent.server.send(request).await
}

on_both_engines! {
    async fn a_tool_returns_what_its_endpoint_returns(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let fixture = RouteFixture::with_website(&server, &key).await;
        let agent = Agent::new(&server, key.clone());
        let app = format!("/api/v1/apps/{}", fixture.app);
        let (id, delivery) = (&fixture.app, &fixture.delivery);
        for (tool, arguments, path) in [
            ("list_apps", json!({}), "/api/v1/apps".to_owned()),
            ("get_overview", json!({"appId": id}), format!("{app}/overview")),
            (
                "get_stats",
                json!({"appId": id, "groupBy": ["day", "network"], "limit": 2}),
                format!("{app}/stats?groupBy=day,network&limit=2"),
            ),
            ("get_cohorts", json!({"appId": id, "maxAge": 1}), format!("{app}/cohorts?maxAge=1")),
            ("compare_apps", json!({"sort": "name"}), "/api/v1/portfolio?sort=name".to_owned()),
            ("list_events", json!({"appId": id, "source": "web"}), format!("{app}/events?source=web")),
            (
                "get_event",
                json!({"appId": id, "eventId": "fixture-1"}),
                format!("{app}/events?eventId=fixture-1"),
            ),
            (
                "explain_device",
                json!({"appId": id, "deviceId": DEVICE}),
                format!("{app}/devices/{DEVICE}"),
            ),
            (
                "list_deliveries",
                json!({"appId": id, "status": "failed"}),
                format!("{app}/deliveries?status=failed"),
            ),
            (
                "get_delivery",
                json!({"appId": id, "deliveryId": delivery}),
                format!("{app}/deliveries/{delivery}"),
            ),
            (
                "get_undelivered",
                json!({"appId": id, "from": "2020-01-01"}),
                format!("{app}/undelivered?from=2020-01-01"),
            ),
            ("list_integrations", json!({"appId": id}), format!("{app}/integrations")),
            ("list_links", json!({"appId": id, "search": "spring"}), format!("{app}/links?search=spring")),
        ] {
            let expected = server.get(&path, &key).await.expect(200);
            let result = agent.call(tool, arguments).await;
            assert_eq!(result["isError"], false, "{tool}: {result}");
            assert_eq!(result["structuredContent"], expected.json(), "{tool}");
            assert_eq!(result["content"], json!([{"type": "text", "text": expected.text}]), "{tool}");
        }
    }

    async fn an_error_of_the_endpoint_is_a_result(engine: Engine) {
        let server = TestServer::start(engine).await;
        let agent = Agent::with(&server, Permission::Full, Environment::Live).await;
        let app = server.app(&agent.key).await;
        let app = app.rsplit('/').next().unwrap();
        for (tool, arguments, code) in [
            ("get_stats", json!({"appId": "app_01k9z3v7q8e4r9m2x5c6b7n8d0"}), "app_not_found"),
            ("get_stats", json!({"appId": app, "groupBy": "colour"}), "validation_failed"),
            ("get_stats", json!({"appId": app, "colour": "red"}), "unknown_field"),
            ("list_events", json!({"appId": app, "cursor": "x"}), "invalid_cursor"),
            ("explain_device", json!({"appId": app, "deviceId": DEVICE}), "device_not_found"),
        ] {
            assert_eq!(agent.call_refused(tool, arguments).await, code, "{tool}");
        }
        let result = agent.call("get_stats", json!({})).await;
        assert_eq!(result["content"][0]["text"], "`appId` is required.");
        // Another organization's app looks like a missing one.
        let other = Agent::with(&server, Permission::Full, Environment::Live).await;
        assert_eq!(other.call_refused("get_overview", json!({"appId": app})).await, "app_not_found");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_with_a_handshake_is_served() {
    let server = TestServer::start(Engine::Sqlite).await;
    let agent = Agent::with(&server, Permission::ReadOnly, Environment::Live).await;
    let params = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"},
    });
    let agreed = agent.ask("initialize", params).await["result"].clone();
    assert_eq!(agreed["protocolVersion"], "2025-06-18");
    assert_eq!(
        agreed["capabilities"],
        json!({"tools": {}, "resources": {}})
    );
    assert_eq!(agreed["serverInfo"]["name"], "tributary");
    assert!(
        agreed["instructions"]
            .as_str()
            .unwrap()
            .contains("list_apps")
    );
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let answer = agent.post(ready.to_string()).await.expect(202);
    assert_eq!(answer.text, "");
    assert_eq!(agent.ask("ping", json!({})).await["result"], json!({}));
    for missing in ["prompts/list", "server/discover", "nothing"] {
        let answer = agent.ask(missing, json!({})).await;
        assert_eq!(answer["error"]["code"], -32_601, "{missing}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_without_a_handshake_is_served() {
    let server = TestServer::start(Engine::Sqlite).await;
    let agent = Agent::with(&server, Permission::ReadOnly, Environment::Live).await;
    let version = ("mcp-protocol-version", VERSION);
    let discover = [version, ("mcp-method", "server/discover")];
    let found = ask_stateless(&agent, "server/discover", json!({}), &discover).await;
    let found = found.expect(200).json()["result"].clone();
    assert_eq!(found["supportedVersions"][0], VERSION);
    assert_eq!(
        (&found["resultType"], &found["cacheScope"]),
        (&json!("complete"), &json!("private"))
    );
    let server_info = &found["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(server_info["name"], "tributary");

    let call = [
        version,
        ("mcp-method", "tools/call"),
        ("mcp-name", "list_apps"),
    ];
    let called = ask_stateless(&agent, "tools/call", json!({"name": "list_apps"}), &call).await;
    let called = called.expect(200).json()["result"].clone();
    assert_eq!(called["resultType"], "complete");
    assert_eq!(called["structuredContent"]["data"], json!([]));

    for (headers, params, code) in [
        (&call[..2], json!({"name": "list_apps"}), -32_020),
        (&call[1..], json!({"name": "list_apps"}), -32_020),
        (&call[..], json!({"name": "get_stats"}), -32_020),
    ] {
        let answer = ask_stateless(&agent, "tools/call", params, headers).await;
        assert_eq!(answer.expect(400).json()["error"]["code"], code);
    }
    let initialize = [version, ("mcp-method", "initialize")];
    let answer = ask_stateless(&agent, "initialize", json!({}), &initialize).await;
    assert_eq!(answer.expect(404).json()["error"]["code"], -32_601);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_are_none_are_rejected() {
    let server = TestServer::start(Engine::Sqlite).await;
    let agent = Agent::with(&server, Permission::Full, Environment::Live).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for (body, code) in [
        ("{".to_owned(), -32_700),
        (json!([ping]).to_string(), -32_600),
        (json!({"jsonrpc": "2.0", "id": 1}).to_string(), -32_600),
        (
            json!({"jsonrpc": "2.0", "method": "tools/list"}).to_string(),
            -32_600,
        ),
    ] {
        let answer = agent.post(body).await.expect(400).json();
        assert_eq!(answer["error"]["code"], code);
        assert_eq!(answer.get("id"), None);
    }
    let unknown = json!({"name": "drop_table", "arguments": {}});
    let answer = agent.ask("tools/call", unknown).await;
    assert_eq!(answer["error"]["code"], -32_602);
    let wrong = json!({"name": "list_apps", "arguments": []});
    let answer = agent.ask("tools/call", wrong).await;
    assert_eq!(answer["error"]["code"], -32_602);
    // At the limit, and one byte more.
    let padded = |length: usize| {
        let message = ping.to_string();
        let blanks = " ".repeat(length - message.len());
        message + &blanks
    };
    agent.post(padded(64 * 1024)).await.expect(200);
    let answer = agent.post(padded(64 * 1024 + 1)).await.expect(413);
    assert_eq!(answer.code(), "payload_too_large");
    let request = server.request(Method::POST, "/mcp").bearer_auth(&agent.key);
    let answer = server
        .send(request.body(ping.to_string()))
        .await
        .expect(415);
    assert_eq!(answer.code(), "unsupported_media_type");
    for method in ["GET", "DELETE", "PUT"] {
        let answer = server
            .call(method, "/mcp", &agent.key, None)
            .await
            .expect(405);
        assert_eq!(answer.header("allow"), Some("POST"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_pages_of_other_origins_are_rejected() {
    let server = TestServer::start(Engine::Sqlite).await;
    let agent = Agent::with(&server, Permission::Full, Environment::Live).await;
    for (origin, status) in [
        ("https://t.example.com", 200),
        ("https://evil.example", 403),
        ("http://t.example.com", 403),
        ("https://t.example.com:8443", 403),
        ("null", 403),
    ] {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
        let request = server
            .request(Method::POST, "/mcp")
            .header("origin", origin);
        let request = request.header("content-type", "application/json");
        let request = request.bearer_auth(&agent.key).body(body);
        let answer = server.send(request).await.expect(status);
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_documents_can_be_searched_and_read() {
    let server = TestServer::start(Engine::Sqlite).await;
    let agent = Agent::with(&server, Permission::Analytics, Environment::Live).await;
    let found = agent
        .call("search_docs", json!({"query": "key addresses limit"}))
        .await;
    let hits = found["structuredContent"]["data"].as_array().unwrap();
    assert!(!hits.is_empty() && hits.len() <= 8);
    let hit = &hits[0];
    let read = json!({"name": hit["document"], "section": hit["section"]});
    let section = agent.call("read_doc", read).await;
    assert_eq!(section["isError"], false, "{hit}: {section}");
    let text = section["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(hit["section"].as_str().unwrap()), "{text}");
    for (arguments, part) in [
        (json!({}), "Documents: "),
        (json!({"name": "NONE.md"}), "API.md"),
        (json!({"name": "API.md", "section": "None"}), "Sections: "),
    ] {
        let result = agent.call("read_doc", arguments).await;
        assert_eq!(result["isError"], true);
        assert!(
            result["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains(part),
            "{result}"
        );
    }
    let long = agent
        .call("search_docs", json!({"query": "x".repeat(501)}))
        .await;
    assert_eq!(long["isError"], true);

    let listed = agent.ask("resources/list", json!({})).await["result"]["resources"].clone();
    let listed = listed.as_array().unwrap();
    let index = listed
        .iter()
        .find(|one| one["name"] == "README.md")
        .unwrap();
    assert_eq!(index["uri"], "https://t.example.com/docs/README.md");
    let read = agent
        .ask("resources/read", json!({"uri": index["uri"]}))
        .await;
    let content = &read["result"]["contents"][0];
    assert!(
        content["text"]
            .as_str()
            .unwrap()
            .starts_with("# Documentation")
    );
    let missing = agent
        .ask(
            "resources/read",
            json!({"uri": "https://t.example.com/keys"}),
        )
        .await;
    assert_eq!(missing["error"]["code"], -32_602);
}
