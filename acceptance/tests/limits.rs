//! Limits and timeouts: slow clients, many requests, many connections, shutdown during a request.

use reqwest::Method;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tributary_api::{RateSettings, Timeouts};
use tributary_domain::access::admission::AdmissionLimits;
use tributary_domain::access::{Environment, Permission};
use tributary_store::report_slots::ReportSlots;
use tributary_testkit::{Engine, TestServer, TestServerSettings, on_both_engines};

const HEADER_TIMEOUT: Duration = Duration::from_millis(700);
const BODY_TIMEOUT: Duration = Duration::from_millis(1_200);

fn short_timeouts() -> TestServerSettings {
    TestServerSettings {
        header_timeout: HEADER_TIMEOUT,
        timeouts: Timeouts {
            body: BODY_TIMEOUT,
            request: Duration::from_secs(30),
            export_idle: Duration::from_secs(30),
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

/// Returns the first line of the response to a request on a new connection, or nothing if the server
/// closed the connection.
async fn first_line(server: &TestServer) -> (TcpStream, String) {
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let _may_be_closed = socket
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        .await;
    let mut answer = vec![0; 1_024];
    let length = socket.read(&mut answer).await.unwrap_or(0);
    let text = String::from_utf8_lossy(&answer[..length]).into_owned();
    let line = text.lines().next().unwrap_or_default().to_owned();
    (socket, line)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_has_a_limited_number_of_connections() {
    let settings = TestServerSettings {
        connections_per_address: 5,
        ..TestServerSettings::default()
    };
    let server = TestServer::start_with(Engine::Sqlite, settings).await;
    let mut open = Vec::new();
    for _ in 0..5 {
        let (socket, line) = first_line(&server).await;
        assert_eq!(line, "HTTP/1.1 200 OK");
        open.push(socket);
    }
    for _ in 0..20 {
        let (_, line) = first_line(&server).await;
        // If the request arrives first, the reset overtakes the response.
        assert!(
            line.is_empty() || line == "HTTP/1.1 429 Too Many Requests",
            "{line}"
        );
    }
    // Without a request, no reset overtakes the response.
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let mut answer = String::new();
    silent.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 429 Too Many Requests\r\n"),
        "{answer}"
    );
    drop(open);
    let accepted = async {
        while first_line(&server).await.1 != "HTTP/1.1 200 OK" {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let accepted = tokio::time::timeout(Duration::from_secs(20), accepted).await;
    accepted.expect("closed connections make room");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trusted_proxy_may_open_any_number_of_connections() {
    let settings = TestServerSettings {
        connections_per_address: 5,
        proxies: vec!["127.0.0.1".parse().unwrap()],
        ..TestServerSettings::default()
    };
    let server = TestServer::start_with(Engine::Sqlite, settings).await;
    let mut open = Vec::new();
    for _ in 0..50 {
        let (socket, line) = first_line(&server).await;
        assert_eq!(line, "HTTP/1.1 200 OK");
        open.push(socket);
    }
}

/// Requests an export on a new connection and reads nothing.
async fn unread_export(server: &TestServer, path: &str, key: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut socket = socket.connect(server.address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\r\n");
    socket.write_all(head.as_bytes()).await.unwrap();
    socket
}

/// Number of exports at a time in the test of slow readers.
const EXPORTS: usize = 2;
/// Requests of a hundred events each, with large parameters: an export of several times what the
/// sockets buffer.
const EXPORTED_REQUESTS: usize = 60;

on_both_engines! {
    async fn slow_export_readers_are_limited_and_disconnected(engine: Engine) {
        let limits = AdmissionLimits {
            total: EXPORTS,
            per_organization: EXPORTS,
            per_key: EXPORTS,
            waiting: 0,
            waiting_per_organization: 0,
        };
        let mut settings = TestServerSettings {
            report_slots: ReportSlots::new(AdmissionLimits::UNLIMITED, AdmissionLimits::UNLIMITED, limits),
            ..TestServerSettings::default()
        };
        settings.timeouts.export_idle = Duration::from_millis(700);
        let server = TestServer::start_with(engine, settings).await;
        let key = server.full_key().await;
        let app = server.app(&key).await;
        let sdk_key = server.get(&app, &key).await.data()["sdk"]["liveKey"].as_str().unwrap().to_owned();
        let padding = "x".repeat(2_000);
        for request in 0..EXPORTED_REQUESTS {
            let event = |number: usize| json!({
                "eventId": format!("{request}-{number}"), "name": "open", "params": {"padding": padding},
            });
            let body = json!({"deviceId": "d1", "events": (0..100).map(event).collect::<Vec<_>>()});
            let sent = server.request(Method::POST, "/api/track/events").header("x-tributary-key", &sdk_key);
            let sent = sent.header("content-type", "application/json").body(body.to_string());
            server.send(sent).await.expect(202);
        }
        let path = format!("{app}/export?format=ndjson");
        let mut unread = Vec::new();
        for _ in 0..EXPORTS {
            let mut socket = unread_export(&server, &path, &key).await;
            // The head of the response shows that the export has its slot.
            let mut first = [0; 12];
            socket.read_exact(&mut first).await.unwrap();
            assert_eq!(&first, b"HTTP/1.1 200");
            unread.push(socket);
        }
        let rejected = server.get(&path, &key).await.expect(429);
        assert_eq!(rejected.code(), "rate_limited");
        assert!(rejected.header("retry-after").is_some());
        let accepted = async {
            loop {
                let answer = server.get(&path, &key).await;
                if answer.status.as_u16() == 200 {
                    return answer.text.lines().count();
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let lines = tokio::time::timeout(Duration::from_secs(30), accepted).await;
        let lines = lines.expect("slow readers lose their slots");
        assert!(lines >= EXPORTED_REQUESTS * 100, "{lines} lines");
        drop(unread);
    }

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
