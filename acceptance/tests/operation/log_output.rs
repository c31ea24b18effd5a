//! Requests succeed although the log cannot be written.

use super::metric;
use std::fs::File;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tributary_testkit::{Engine, ServerProcess, TestDatabase};

/// Enough requests to notice a panic on a log line.
const REQUESTS: u64 = 50;
/// Maximum time until the lines of all requests are dropped.
const DROPPED_MAX: Duration = Duration::from_secs(30);

fn full_disk() -> Stdio {
    let full = File::options().write(true).open("/dev/full").unwrap();
    full.into()
}

fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

async fn dropped_lines(server: &ServerProcess) -> u64 {
    let metrics = server.call("GET", "/metrics", "", None).await.expect(200);
    let dropped = metric(&metrics.text, "tributary_log_lines_dropped_total");
    dropped.expect("the metric exists").parse().unwrap()
}

/// Checks that requests succeed and dropped log lines are counted.
async fn assert_requests_succeed(output: fn() -> Stdio) {
    let database = TestDatabase::new(Engine::Sqlite).await;
    let mut server = ServerProcess::start_writing_to(&database, output).await;
    for _ in 0..REQUESTS {
        let answer = server.try_call("GET", "/unknown", "", None).await;
        answer.expect("every request is answered").expect(404);
    }
    assert!(server.is_running());
    let begun = Instant::now();
    loop {
        let dropped = dropped_lines(&server).await;
        if dropped >= REQUESTS {
            break;
        }
        assert!(begun.elapsed() < DROPPED_MAX, "{dropped}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(server.terminate().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_succeed_when_the_log_disk_is_full() {
    assert_requests_succeed(full_disk).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_succeed_when_the_log_pipe_is_closed() {
    assert_requests_succeed(closed_pipe).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_writes_the_last_lines() {
    let database = TestDatabase::new(Engine::Sqlite).await;
    let path = database.folder().join("stopped.log");
    let output = || -> Stdio {
        let file = File::options().create(true).append(true).open(&path);
        file.unwrap().into()
    };
    let server = ServerProcess::start_writing_to(&database, output).await;
    assert_eq!(server.terminate().code(), Some(0));
    let log = std::fs::read_to_string(&path).unwrap();
    let last = log.lines().last().unwrap_or_default();
    assert!(last.ends_with("stopped"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_keys_are_logged_as_a_number() {
    let database = TestDatabase::new(Engine::Sqlite).await;
    let server = ServerProcess::start(&database).await;
    for _ in 0..5 {
        let answer = server.call("GET", "/api/v1/apps", "ak_live_canary", None);
        answer.await.expect(401);
    }
    let lines = || {
        let log = server.log();
        assert!(!log.contains("canary"), "{log}");
        log.matches("rejected API keys").count()
    };
    let begun = Instant::now();
    while lines() == 0 && begun.elapsed() < DROPPED_MAX {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(lines(), 1, "{}", server.log());
}
