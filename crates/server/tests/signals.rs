//! Tests the binary's signal handling before the server is up.

use rustix::process::{Pid, Signal, kill_process};
use std::net::TcpListener;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Time limit for the process to exit after a signal. Well below the database timeout, so that the
/// test fails if the process waits for the database instead.
const END_MAX: Duration = Duration::from_secs(20);

fn wait(child: &mut Child) -> Option<ExitStatus> {
    let started_at = Instant::now();
    while started_at.elapsed() < END_MAX {
        if let Some(status) = child.try_wait().expect("the process is ours") {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("the process is ours");
    None
}

#[test]
fn stops_while_the_database_does_not_respond() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_tributary"))
        .arg("serve")
        .env_clear()
        .env("TRIBUTARY_LISTEN", "127.0.0.1:0")
        .env(
            "TRIBUTARY_DATABASE_URL",
            format!("postgres://u:p@{address}/d"),
        )
        .env("TRIBUTARY_SECRET_KEY", "ab".repeat(32))
        .env("TRIBUTARY_POSTGRES__CONNECT_TIMEOUT_SECONDS", "600")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Now the process is waiting for the database and listening for signals.
    let _unanswered = silent.accept().unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let status = wait(&mut child).expect("the stop was heard");
    assert_eq!(status.code(), Some(0), "{status}");
}
