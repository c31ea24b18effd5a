//! `tributary move`: from SQLite to PostgreSQL.

mod every_table;
mod running_server;

use std::process::{Child, Command, Stdio};
use tributary_testkit::{ServerProcess, TestDatabase};

/// Moves the SQLite database. Returns what the command printed.
fn run_move(sqlite: &TestDatabase, arguments: &[&str]) -> Result<String, String> {
    let arguments: Vec<&str> = ["move"].iter().chain(arguments).copied().collect();
    tokio::task::block_in_place(|| ServerProcess::run(sqlite, &arguments))
}

/// Starts to move the SQLite database.
fn spawn_move(sqlite: &TestDatabase, to: &str) -> Child {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(|deps| deps.parent()).unwrap();
    Command::new(folder.join("tributary"))
        .args(["move", "--to", to])
        .env_clear()
        .env("TRIBUTARY_DATA_DIR", sqlite.folder())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}
