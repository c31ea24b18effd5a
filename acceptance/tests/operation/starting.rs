//! Start and shutdown of the server: waiting for the database, refusals, signals.

use crate::command_line::tributary;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use tributary_testkit::{Engine, ServerProcess, TestDatabase};

/// Maximum time until the server logs a retry.
const LOG_WAIT_MAX: Duration = Duration::from_secs(20);

fn free_address() -> SocketAddr {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap()
}

/// Starts a proxy between two addresses.
async fn start_proxy(from: SocketAddr, to: SocketAddr) {
    let listener = tokio::net::TcpListener::bind(from).await.unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut server = TcpStream::connect(to).await.unwrap();
                let _ended = copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_waits_for_an_unreachable_database() {
    let database = TestDatabase::new(Engine::Postgres).await;
    let url = reqwest::Url::parse(&database.url()).unwrap();
    let host = url.host_str().unwrap();
    let port = url.port().unwrap_or(5432);
    let real = tokio::net::lookup_host((host, port))
        .await
        .unwrap()
        .next()
        .unwrap();
    let address = free_address();
    let mut through = url.clone();
    through.set_host(Some("127.0.0.1")).unwrap();
    through.set_port(Some(address.port())).unwrap();
    let settings = [("TRIBUTARY_DATABASE_URL", through.as_str())];
    let mut server = ServerProcess::spawn(&database, &settings);
    let begun = Instant::now();
    while server.log().matches("retrying").count() < 2 {
        assert!(server.is_running(), "{}", server.log());
        assert!(begun.elapsed() < LOG_WAIT_MAX, "{}", server.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    start_proxy(address, real).await;
    server.wait_until_ready().await.unwrap();
    assert_eq!(server.terminate().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_waits_for_the_database_can_be_stopped() {
    let database = TestDatabase::new(Engine::Postgres).await;
    let url = format!("postgres://someone:canary@{}/x", free_address());
    let mut server = ServerProcess::spawn(&database, &[("TRIBUTARY_DATABASE_URL", &url)]);
    let begun = Instant::now();
    while !server.log().contains("retrying") {
        assert!(server.is_running() && begun.elapsed() < LOG_WAIT_MAX);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(!server.log().contains("canary"), "{}", server.log());
    assert_eq!(server.terminate().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_stop_signal_drains() {
    for signal in ["TERM", "INT", "HUP"] {
        let database = TestDatabase::new(Engine::Sqlite).await;
        let server = ServerProcess::start(&database).await;
        let status = server.signal_and_wait(signal);
        assert_eq!(
            (status.code(), status.signal()),
            (Some(0), None),
            "{signal}"
        );
    }
}

#[test]
fn a_lost_secret_key_is_reported_and_no_new_one_is_written() {
    let folder = TestDatabase::temp_folder();
    let data = folder.path().to_str().unwrap();
    let environment = [
        ("TRIBUTARY_DATA_DIR", data),
        ("TRIBUTARY_LISTEN", "127.0.0.1:0"),
        ("TRIBUTARY_RATES__URL", ""),
    ];
    let key = folder.path().join("secret_key");
    let run = |words: &[&str]| tributary(words, &environment);
    assert!(run(&["migrate"]).status.success());
    assert!(!key.exists(), "an empty database needs no key");
    let create = ["admin", "key", "create", "--permission", "full"];
    assert!(run(&create).status.success());
    let secret_key = std::fs::read_to_string(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    for command in [&["serve"][..], &create] {
        let output = run(command);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        let path = key.to_str().unwrap();
        assert!(
            text.contains(path) && text.contains("restore the file"),
            "{text}"
        );
        assert!(!key.exists(), "{command:?}");
    }
    let environment = [("TRIBUTARY_SECRET_KEY", secret_key.trim()), environment[0]];
    assert!(tributary(&create, &environment).status.success());
}
