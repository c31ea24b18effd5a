//! `tributary mcp`: forwards messages between a client on standard input and output and a server.
//!
//! One line is one message. Only messages go to standard output; notes go to standard error. The
//! server keeps no state, so a request is forwarded as it is, and requests run at the same time.

use super::client::connection::{checked_key, server_address};
use crate::cli::McpOptions;
use crate::config::{API_KEY_VARIABLE, client_variable};
use crate::outbound::{AddressPolicy, Outbound, OutboundError, read_body};
use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, BufRead, Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use url::Url;

/// Timeout of a request. A server gives up on a report earlier.
const REQUEST_MAX: Duration = Duration::from_mins(2);
/// Longest message from the client. The server accepts less and says so.
const LINE_BYTES_MAX: usize = 1024 * 1024;
/// Longest answer. Results of tools are far shorter; a document may be longer than those.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Requests at the same time. A server runs about as many reports of a key.
const REQUESTS_MAX: usize = 4;
/// Messages that wait to be forwarded or written. More would only use memory.
const WAITING_MAX: usize = 16;

/// Code for messages that are not JSON, as JSON-RPC defines it.
const PARSE_ERROR: i32 = -32_700;
/// Code for requests without an answer, as JSON-RPC defines it.
const INTERNAL_ERROR: i32 = -32_603;

/// Key of `_meta` with the protocol version, in versions that have no handshake.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// Runs the command until standard input ends.
pub async fn run(options: &McpOptions) -> anyhow::Result<()> {
    let server = Arc::new(McpServer::open(options)?);
    note(&format!("forwarding to {}", server.url));
    let (line, lines) = mpsc::channel(WAITING_MAX);
    let (answer, answers) = mpsc::channel(WAITING_MAX);
    // Threads, because reading a terminal cannot be interrupted.
    let reader = std::thread::spawn(move || read_lines(io::stdin().lock(), &line));
    let writer = std::thread::spawn(move || write_lines(io::stdout().lock(), answers));
    forward(&server, lines, answer).await;
    let ended = |_panic| anyhow::anyhow!("a thread ended unexpectedly");
    writer
        .join()
        .map_err(ended)?
        .context("cannot write to standard output")?;
    if reader.is_finished() {
        reader
            .join()
            .map_err(ended)?
            .context("cannot read from standard input")?;
    }
    Ok(())
}

/// Writes a line for people.
fn note(text: &str) {
    let _gone = writeln!(io::stderr().lock(), "tributary: {text}");
}

fn read_lines(mut input: impl BufRead, lines: &mpsc::Sender<Vec<u8>>) -> io::Result<()> {
    loop {
        let mut line = Vec::new();
        let longest = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
        let read = (&mut input).take(longest).read_until(b'\n', &mut line)?;
        if read == LINE_BYTES_MAX {
            let message = format!("a message has {LINE_BYTES_MAX} bytes or more");
            return Err(io::Error::other(message));
        }
        if read == 0 || lines.blocking_send(line).is_err() {
            return Ok(());
        }
    }
}

fn write_lines(mut output: impl io::Write, mut answers: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(mut answer) = answers.blocking_recv() {
        answer.push(b'\n');
        output.write_all(&answer)?;
        output.flush()?;
    }
    Ok(())
}

/// Forwards messages until they end, and waits for the last answers.
async fn forward(
    server: &Arc<McpServer>,
    mut lines: mpsc::Receiver<Vec<u8>>,
    answers: mpsc::Sender<Vec<u8>>,
) {
    let slots = Arc::new(Semaphore::new(REQUESTS_MAX));
    let (mut running, mut by_id) = (JoinSet::new(), HashMap::<String, AbortHandle>::new());
    while let Some(line) = lines.recv().await {
        while running.try_join_next().is_some() {}
        by_id.retain(|_, request| !request.is_finished());
        if line.trim_ascii().is_empty() {
            continue;
        }
        let Ok(message) = serde_json::from_slice::<Value>(&line) else {
            let message = "The line must be one JSON-RPC message in UTF-8.";
            let error = error_answer(None, PARSE_ERROR, message, None);
            if answers.send(error).await.is_err() {
                return;
            }
            continue;
        };
        let Some(id) = message
            .get("id")
            .filter(|_| message.get("method").is_some())
        else {
            if let Some(request) = cancelled(&message).and_then(|id| by_id.remove(&id)) {
                request.abort();
            }
            continue;
        };
        let id = id.to_string();
        let (server, slots, answers) = (server.clone(), slots.clone(), answers.clone());
        let request = running.spawn(async move {
            let _slot = slots.acquire().await;
            let answer = server.answer(&message, line).await;
            // The client has gone.
            let _gone = answers.send(answer).await;
        });
        by_id.insert(id, request);
    }
    while running.join_next().await.is_some() {}
}

/// Returns the id of the request that a notification cancels. The server needs no notification.
fn cancelled(message: &Value) -> Option<String> {
    let is_cancellation = message["method"] == "notifications/cancelled";
    let id = message["params"].get("requestId");
    id.filter(|_| is_cancellation).map(ToString::to_string)
}

/// A server and the key for it.
struct McpServer {
    client: Outbound,
    url: Url,
    key: SecretString,
}

impl McpServer {
    /// Reads the address and the key from the arguments and the variables. Sends nothing yet.
    fn open(options: &McpOptions) -> anyhow::Result<Self> {
        let key = client_variable(API_KEY_VARIABLE).with_context(|| {
            format!(
                "there is no API key: set {API_KEY_VARIABLE}. `tributary admin key create \
                 --permission read-only` creates a key"
            )
        })?;
        let server = server_address(options.server.as_ref())?;
        Ok(Self {
            // The operator names the server, so it may have a private address.
            client: Outbound::new(AddressPolicy::Anywhere, REQUEST_MAX)?,
            url: endpoint(server, options.allow_write),
            key: checked_key(&key)?,
        })
    }

    /// Forwards a request and returns the line with its answer.
    async fn answer(&self, message: &Value, line: Vec<u8>) -> Vec<u8> {
        let id = message.get("id");
        match self.send(message, line).await {
            Ok((status, body)) => answer_line(id, status, body),
            Err(error) => {
                let text = format!("There is no complete answer from {}: {error}.", self.url);
                note(&text);
                error_answer(id, INTERNAL_ERROR, &text, None)
            }
        }
    }

    async fn send(&self, message: &Value, line: Vec<u8>) -> Result<(u16, Vec<u8>), OutboundError> {
        let mut request = self
            .client
            .request(Method::POST, &self.url)
            .bearer_auth(self.key.expose_secret())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        for (name, value) in repeated_headers(message) {
            request = request.header(name, value);
        }
        let response = self.client.send(request.body(line)).await?;
        let status = response.status().as_u16();
        Ok((status, read_body(response, ANSWER_BYTES_MAX).await?))
    }
}

fn endpoint(mut server: Url, allow_write: bool) -> Url {
    let path = format!("{}/mcp", server.path().trim_end_matches('/'));
    server.set_path(&path);
    server.set_query(allow_write.then_some("write=1"));
    server
}

/// Returns the headers that repeat parts of a message, in versions that require them.
fn repeated_headers(message: &Value) -> Vec<(&'static str, String)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let params = &message["params"];
    let Some(version) = text(&params["_meta"][META_VERSION]) else {
        return Vec::new();
    };
    let method = text(&message["method"]).unwrap_or_default();
    let name = match method.as_str() {
        "tools/call" => text(&params["name"]),
        "resources/read" => text(&params["uri"]),
        _ => None,
    };
    let headers = [
        ("mcp-protocol-version", Some(version)),
        ("mcp-method", Some(method)),
        ("mcp-name", name),
    ];
    let present = headers
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    present
        .map(|(name, value)| (name, header_text(value)))
        .collect()
}

/// Encodes a text that fits in no header in Base64, between markers that the protocol defines.
fn header_text(text: String) -> String {
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_plain && text.trim() == text && !text.starts_with("=?base64?") {
        return text;
    }
    format!("=?base64?{}?=", STANDARD.encode(text))
}

/// Returns the server's answer as one line. An answer that is no message, such as an error about the
/// key, becomes the error of the request.
fn answer_line(id: Option<&Value>, status: u16, mut body: Vec<u8>) -> Vec<u8> {
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    if answer.get("jsonrpc").is_some() {
        // The body stays as it is, because amounts are exact decimals. In JSON, line breaks are only
        // between values.
        for byte in &mut body {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        return body;
    }
    let error = &answer["error"];
    let message = match error["message"].as_str() {
        Some(message) => message.to_owned(),
        None => format!("The server answered {status} without a message; check --server."),
    };
    note(&message);
    let data = json!({"code": error["code"], "requestId": error["requestId"]});
    error_answer(id, i32::from(status), &message, Some(data))
}

fn error_answer(id: Option<&Value>, code: i32, message: &str, data: Option<Value>) -> Vec<u8> {
    let mut answer = json!({"jsonrpc": "2.0", "error": {"code": code, "message": message}});
    if let Some(id) = id {
        answer["id"] = id.clone();
    }
    if let Some(data) = data {
        answer["error"]["data"] = data;
    }
    answer.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("http://127.0.0.1:8080", false, "http://127.0.0.1:8080/mcp")]
    #[case("https://example.com/t/", true, "https://example.com/t/mcp?write=1")]
    fn endpoints(#[case] server: &str, #[case] allow_write: bool, #[case] expected: &str) {
        let url = endpoint(server.parse().unwrap(), allow_write);
        assert_eq!(url.as_str(), expected);
    }

    #[test]
    fn earlier_versions_need_no_headers() {
        let message = json!({"id": 1, "method": "tools/call", "params": {"name": "list_apps"}});
        assert_eq!(repeated_headers(&message), Vec::new());
    }

    #[rstest]
    #[case("list_apps", "list_apps")]
    #[case("ü", "=?base64?w7w=?=")]
    #[case(" a", "=?base64?IGE=?=")]
    #[case("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?=")]
    fn headers_repeat_the_message(#[case] name: &str, #[case] expected: &str) {
        let params = json!({"name": name, "_meta": {META_VERSION: "2026-07-28"}});
        let message = json!({"id": 1, "method": "tools/call", "params": params});
        let pair = |name, value: &str| (name, value.to_owned());
        let expected = [
            pair("mcp-protocol-version", "2026-07-28"),
            pair("mcp-method", "tools/call"),
            pair("mcp-name", expected),
        ];
        assert_eq!(repeated_headers(&message), expected);
    }

    fn answer(status: u16, body: &str) -> Value {
        let line = answer_line(Some(&json!(7)), status, body.as_bytes().to_vec());
        assert!(!line.contains(&b'\n'));
        serde_json::from_slice(&line).unwrap()
    }

    #[test]
    fn a_message_is_passed_on_as_one_line() {
        let body = "{\"jsonrpc\": \"2.0\",\n\"id\": 7, \"result\": {}}\n";
        let expected = json!({"jsonrpc": "2.0", "id": 7, "result": {}});
        assert_eq!(answer(200, body), expected);
    }

    #[test]
    fn an_error_about_the_key_becomes_the_error_of_the_request() {
        let body = "{\"error\": {\"code\": \"invalid_api_key\", \"message\": \"No.\", \"requestId\": \"r\"}}";
        let data = json!({"code": "invalid_api_key", "requestId": "r"});
        let expected = json!({
            "jsonrpc": "2.0", "id": 7, "error": {"code": 401, "message": "No.", "data": data},
        });
        assert_eq!(answer(401, body), expected);
        let other = answer(502, "<html>Bad Gateway</html>");
        assert_eq!(
            (&other["id"], &other["error"]["code"]),
            (&json!(7), &json!(502))
        );
    }

    #[test]
    fn lines_have_a_limit() {
        let read = |input: &[u8]| {
            let (line, mut lines) = mpsc::channel(WAITING_MAX);
            let read = read_lines(input, &line);
            drop(line);
            let mut found = Vec::new();
            while let Some(line) = lines.blocking_recv() {
                found.push(line);
            }
            (read.is_ok(), found)
        };
        let two = vec![b"{}\n".to_vec(), b"[]".to_vec()];
        assert_eq!(read(b"{}\n[]"), (true, two));
        assert_eq!(
            read(" ".repeat(LINE_BYTES_MAX).as_bytes()),
            (false, Vec::new())
        );
    }

    #[test]
    fn a_notification_cancels_a_request() {
        let message = |method: &str| json!({"method": method, "params": {"requestId": "a"}});
        let cancelled = |method| cancelled(&message(method));
        assert_eq!(
            cancelled("notifications/cancelled"),
            Some("\"a\"".to_owned())
        );
        assert_eq!(cancelled("notifications/initialized"), None);
    }
}
