//! Requests succeed although the log cannot be written.

use super::metric;
use std::fs::File;
use std::process::Stdio;
use tributary_testkit::{Engine, ServerProcess, TestDatabase};

/// Enough requests to notice a panic on a log line.
const REQUESTS: u64 = 50;

fn full_disk() -> Stdio {
    let full = File::options().write(true).open("/dev/full").unwrap();
    full.into()
}

fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
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
    let metrics = server.call("GET", "/metrics", "", None).await.expect(200);
    let dropped = metric(&metrics.text, "tributary_log_lines_dropped_total");
    let dropped: u64 = dropped.expect("the metric exists").parse().unwrap();
    assert!(dropped >= REQUESTS, "{dropped}");
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
