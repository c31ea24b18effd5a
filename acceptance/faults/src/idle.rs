//! Connections that say nothing, held by another process: a process may have too few descriptors for
//! them and for the load.

use crate::raw_http::{RawClient, allowed_descriptors, hold_idle};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use tokio::net::TcpStream;

/// Name of this package's program.
const PROGRAM: &str = "tributary-faults";
/// Name of its subcommand.
const SUBCOMMAND: &str = "hold-idle";

/// Idle connections to one server. They end when it is dropped.
pub struct IdleConnections {
    holder: Child,
    output: BufReader<ChildStdout>,
}

impl IdleConnections {
    /// Opens this many connections to the server at a URL, or as many as possible. Blocks.
    pub fn open(server: &str, count: u64) -> Self {
        let mut holder = Command::new(program())
            .args([SUBCOMMAND, server, &count.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start the process that holds connections");
        let output = BufReader::new(holder.stdout.take().expect("its output"));
        Self { holder, output }
    }

    /// Returns how many connections the server keeps open. Blocks.
    pub fn count(&mut self) -> u64 {
        let input = self.holder.stdin.as_mut().expect("its input");
        input.write_all(b"count\n").expect("ask the process");
        let mut line = String::new();
        let read = self.output.read_line(&mut line);
        read.expect("the number of connections");
        line.trim().parse().expect("a number of connections")
    }
}

impl Drop for IdleConnections {
    fn drop(&mut self) {
        // The end of its input ends the process.
        drop(self.holder.stdin.take());
        let _status = self.holder.wait();
    }
}

/// Returns the path of this package's program. Tests are one folder below it.
fn program() -> PathBuf {
    let running = std::env::current_exe().expect("path of this program");
    let found = running
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(PROGRAM))
        .find(|program| program.exists());
    found.expect("the program is built together with its tests")
}

/// Opens connections and holds them until the input ends. Prints the number of open ones for each line
/// of the input.
pub async fn hold(server: &str, count: u64) {
    let _allowed = allowed_descriptors();
    let held = hold_idle(&RawClient::of_other_addresses(server), count).await;
    let answer = move || {
        for _line in std::io::stdin().lines() {
            let open = held.iter().filter(|stream| is_open(stream)).count();
            println!("{open}");
        }
    };
    let answered = tokio::task::spawn_blocking(answer).await;
    answered.expect("the input can be read");
}

/// Returns whether the server has neither closed the connection nor sent anything.
fn is_open(stream: &TcpStream) -> bool {
    let read = stream.try_read(&mut [0]);
    read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}
