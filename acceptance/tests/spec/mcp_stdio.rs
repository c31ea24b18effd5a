//! `tributary mcp`: an agent on standard input and output.

use super::mcp::VERSION;
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::{Output, Stdio};
use tributary_domain::access::{Environment, Permission};
use tributary_testkit::{Engine, ServerProcess, TestDatabase, TestServer};

/// Runs the command with these lines as input.
fn run(database: &TestDatabase, arguments: &[&str], key: Option<&str>, lines: &[String]) -> Output {
    let arguments = [&["mcp"], arguments].concat();
    let mut command = ServerProcess::command(database, &arguments);
    if let Some(key) = key {
        command.env("TRIBUTARY_API_KEY", key);
    }
    let command = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // Without a key, the command ends before it reads.
    let _gone = input.write_all((lines.join("\n") + "\n").as_bytes());
    drop(input);
    child.wait_with_output().unwrap()
}

/// Returns the messages on standard output; every line must be one.
fn messages(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn answer(messages: &[Value], id: &Value) -> Value {
    let found = messages.iter().find(|message| message["id"] == *id);
    found
        .unwrap_or_else(|| panic!("no {id} in {messages:?}"))
        .clone()
}

fn request(id: &Value, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_forwarded_with_the_key() {
    let server = TestServer::start(Engine::Sqlite).await;
    let organization = server.organization("Example").await;
    let key = server
        .key(organization, Permission::Full, Environment::Live)
        .await;
    let address = format!("http://{}", server.address);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let lines = [
        request(&json!(1), "tools/list", &json!({})),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        String::new(),
        "{".to_owned(),
        request(
            &json!("b"),
            "tools/call",
            &json!({"name": "list_apps", "_meta": meta}),
        ),
        request(&json!(3), "nothing", &json!({})),
    ];
    let output = run(
        &server.database,
        &["--server", &address],
        Some(&key),
        &lines,
    );
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{log}");
    let messages = messages(&output);
    assert_eq!(messages.len(), 4, "{messages:?}");
    let tools = answer(&messages, &json!(1))["result"]["tools"].clone();
    assert!(!tools.to_string().contains("create_link"));
    let called = answer(&messages, &json!("b"));
    assert_eq!(called["result"]["resultType"], "complete", "{called}");
    assert_eq!(answer(&messages, &json!(3))["error"]["code"], -32_601);
    let faulty = messages
        .iter()
        .find(|message| message.get("id").is_none())
        .unwrap();
    assert_eq!(faulty["error"]["code"], -32_700);
    assert!(!log.contains(&key), "{log}");

    let arguments = ["--allow-write", "--server", &address];
    let output = run(&server.database, &arguments, Some(&key), &lines[..1]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("create_link"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_become_answers() {
    let server = TestServer::start(Engine::Sqlite).await;
    let address = format!("http://{}", server.address);
    let ping = [request(&json!(1), "ping", &json!({}))];
    let wrong = "ak_live_000000000000000000000000000000000000000000000000";
    let output = run(
        &server.database,
        &["--server", &address],
        Some(wrong),
        &ping,
    );
    let refused = answer(&messages(&output), &json!(1))["error"].clone();
    assert_eq!(
        (&refused["code"], &refused["data"]["code"]),
        (&json!(401), &json!("invalid_api_key"))
    );

    let closed = ["--server", "http://127.0.0.1:1"];
    let output = run(&server.database, &closed, Some(wrong), &ping);
    let failed = answer(&messages(&output), &json!(1))["error"].clone();
    assert_eq!(failed["code"], -32_603);
    assert!(
        failed["message"].as_str().unwrap().contains("127.0.0.1:1"),
        "{failed}"
    );

    let output = run(&server.database, &["--server", &address], None, &ping);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("TRIBUTARY_API_KEY"), "{text}");
}
