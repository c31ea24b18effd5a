//! Limits and timeouts: slow clients, many requests, many connections, shutdown during a request.

use reqwest::Method;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tributary_api::{RateSettings, Timeouts};
use tributary_domain::access::{Environment, Permission};
use tributary_testkit::{Engine, TestServer, TestServerSettings, on_both_engines};

const HEADER_TIMEOUT: Duration = Duration::from_millis(700);
const BODY_TIMEOUT: Duration = Duration::from_millis(1_200);

fn short_timeouts() -> TestServerSettings {
    TestServerSettings {
        header_timeout: HEADER_TIMEOUT,
        timeouts: Timeouts {
            body: BODY_TIMEOUT,
            request: Duration::from_secs(30),
        },
        ..TestServerSettings::default()
    }
}

/// Sends `first`, then `piece` again and again with pauses, until the server closes the connection.
/// Returns how long that took and the response.
async fn send_slowly(server: &TestServer, first: &str, piece: &str) -> (Duration, String) {
    let begun = Instant::now();
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    socket.write_all(first.as_bytes()).await.unwrap();
    let (mut reading, mut writing) = socket.into_split();
    let piece = piece.to_owned();
    let writer = tokio::spawn(async move {
        while !piece.is_empty() && writing.write_all(piece.as_bytes()).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // Keep the socket open, or the server would see the end of the request.
        tokio::time::sleep(Duration::from_secs(30)).await;
    });
    let mut answer = Vec::new();
    let read =
        tokio::time::timeout(Duration::from_secs(20), reading.read_to_end(&mut answer)).await;
    assert!(read.is_ok(), "the server never closed the connection");
    writer.abort();
    (
        begun.elapsed(),
        String::from_utf8_lossy(&answer).into_owned(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_clients_are_disconnected() {
    let server = TestServer::start_with(Engine::Sqlite, short_timeouts()).await;
    let key = server.full_key().await;
    let assert_within = |took: Duration, limit: Duration, name: &str| {
        assert!(
            took >= limit.mul_f32(0.8),
            "{name}: closed after only {took:?}"
        );
        assert!(
            took < limit + Duration::from_secs(10),
            "{name}: open for {took:?}"
        );
    };
    let (took, answer) = send_slowly(&server, "", "").await;
    assert_within(took, HEADER_TIMEOUT, "sends nothing");
    assert_eq!(answer, "");
    let (took, _) = send_slowly(&server, "GET /healthz HT", "").await;
    assert_within(took, HEADER_TIMEOUT, "half a request line");
    let (took, _) = send_slowly(
        &server,
        "GET /healthz HTTP/1.1\r\nhost: x\r\n",
        "x-a: b\r\n",
    )
    .await;
    assert_within(took, HEADER_TIMEOUT, "one header at a time");
    let (took, answer) = send_slowly(&server, "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", "").await;
    assert_within(took, HEADER_TIMEOUT, "idle after a response");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let head = format!(
        "POST /api/v1/apps HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: 100000\r\n\r\n"
    );
    let (took, answer) = send_slowly(&server, &head, "x").await;
    assert_within(took, BODY_TIMEOUT, "one byte of body at a time");
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("\"request_timeout\""), "{answer}");
    server.get("/api/v1/apps", &key).await.expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_idle_connections_do_not_block_other_clients() {
    let settings = TestServerSettings {
        connections: 50,
        ..short_timeouts()
    };
    let server = TestServer::start_with(Engine::Sqlite, settings).await;
    let mut idle = Vec::new();
    for _ in 0..200 {
        idle.push(TcpStream::connect(server.address).await.unwrap());
    }
    let answer = server.send(server.request(Method::GET, "/healthz")).await;
    answer.expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_never_reads_is_disconnected() {
    const CONNECTIONS: usize = 5;
    let settings = TestServerSettings {
        connections: CONNECTIONS,
        write_timeout: Duration::from_millis(700),
        ..TestServerSettings::default()
    };
    let server = TestServer::start_with(Engine::Sqlite, settings).await;
    // Much more than the socket buffers hold.
    let request = "GET /api/v1/docs/swagger-ui-bundle.js HTTP/1.1\r\nhost: x\r\n\r\n";
    let requests = request.repeat(20);
    let mut unread = Vec::new();
    for _ in 0..CONNECTIONS {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let mut socket = socket.connect(server.address).await.unwrap();
        socket.write_all(requests.as_bytes()).await.unwrap();
        unread.push(socket);
    }
    let answer = server.send(server.request(Method::GET, "/healthz"));
    let answer = tokio::time::timeout(Duration::from_secs(25), answer).await;
    answer.expect("their connections were closed").expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_heads_have_a_size_limit() {
    let server = TestServer::start(Engine::Sqlite).await;
    let key = server.full_key().await;
    let long = server.request(
        Method::GET,
        &format!("/api/v1/apps?cursor={}", "a".repeat(20_000)),
    );
    let status = server.send(long.bearer_auth(&key)).await.status.as_u16();
    assert!(matches!(status, 414 | 431), "{status}");
    let mut request = server.request(Method::GET, "/healthz");
    for number in 0..100 {
        request = request.header(format!("x-{number}"), "y");
    }
    assert_eq!(server.send(request).await.status.as_u16(), 431);
}

on_both_engines! {
    async fn a_rate_limit_applies_to_each_key_separately(engine: Engine) {
        let rates = RateSettings { per_key: 5, per_address: 0, failures_per_minute: 0 };
        let server = TestServer::start_with(engine, TestServerSettings { rates, ..TestServerSettings::default() }).await;
        let organization = server.organization("Example").await;
        let busy = server.key(organization, Permission::ReadOnly, Environment::Live).await;
        let calm = server.key(organization, Permission::ReadOnly, Environment::Live).await;
        let mut limited = None;
        for _ in 0..200 {
            let answer = server.get("/api/v1/apps", &busy).await;
            if answer.status.as_u16() == 429 {
                limited = Some(answer);
                break;
            }
        }
        let limited = limited.expect("a limit of 5 requests per second applies");
        assert_eq!(limited.code(), "rate_limited");
        assert_eq!(limited.json()["error"]["retryable"], true);
        assert_eq!(limited.header("retry-after"), Some("1"));
        assert_eq!(limited.header("ratelimit-policy"), Some("\"key\";q=5;w=1"));
        server.get("/api/v1/apps", &calm).await.expect(200);
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        server.get("/api/v1/apps", &busy).await.expect(200);
    }

    async fn forwarded_headers_do_not_bypass_the_address_rate_limit(engine: Engine) {
        let rates = RateSettings { per_key: 0, per_address: 5, failures_per_minute: 0 };
        let server = TestServer::start_with(engine, TestServerSettings { rates, ..TestServerSettings::default() }).await;
        let mut limited = 0;
        for number in 0..200 {
            let request = server.request(Method::GET, "/healthz");
            let request = request.header("x-forwarded-for", format!("203.0.113.{}", number % 250));
            limited += usize::from(server.send(request).await.status.as_u16() == 429);
        }
        assert!(limited > 50, "only {limited} requests were limited");
    }

    async fn shutdown_finishes_requests_in_progress(engine: Engine) {
        let mut server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        let body = json!({"name": "Last"}).to_string();
        let head = format!(
            "POST /api/v1/apps HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
            body.len()
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        // The server sends this when it starts to read the body: the request is in progress.
        let mut interim = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
        socket.read_exact(&mut interim).await.unwrap();
        assert!(interim.starts_with(b"HTTP/1.1 100"), "{interim:?}");
        let address = server.address;
        let stopping = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            socket.write_all(body.as_bytes()).await.unwrap();
            let mut answer = String::new();
            socket.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let (answer, ()) = tokio::join!(stopping, server.stop());
        assert!(answer.starts_with("HTTP/1.1 201 Created"), "{answer}");
        assert!(TcpStream::connect(address).await.is_err(), "no new connections are accepted");
    }
}
