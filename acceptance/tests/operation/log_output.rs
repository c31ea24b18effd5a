//! A log that cannot be written, because its disk is full or its reader has gone, disturbs no request.

use super::metric;
use std::fs::File;
use std::process::Stdio;
use tributary_testkit::{Engine, ServerProcess, TestDatabase};

/// Enough that a server which panics on a log line dies several times over.
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

async fn requests_go_on(output: fn() -> Stdio) {
    let database = TestDatabase::new(Engine::Sqlite).await;
    let mut server = ServerProcess::start_writing_to(&database, output).await;
    for _ in 0..REQUESTS {
        let answer = server.try_call("GET", "/nowhere", "", None).await;
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
async fn a_full_disk_under_the_log_stops_no_request() {
    requests_go_on(full_disk).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_pipe_under_the_log_stops_no_request() {
    requests_go_on(closed_pipe).await;
}
