//! `tributary move`: from SQLite to PostgreSQL, and back.

mod every_table;
mod running_server;

use std::process::{Child, Command, Stdio};
use tributary_testkit::{ServerProcess, TestDatabase};

/// Moves from or to the SQLite database. Returns what the command printed.
fn run_move(sqlite: &TestDatabase, arguments: &[&str]) -> Result<String, String> {
    let arguments: Vec<&str> = ["move"].iter().chain(arguments).copied().collect();
    tokio::task::block_in_place(|| ServerProcess::run(sqlite, &arguments))
}

/// Starts a move from or to the SQLite database.
fn spawn_move(sqlite: &TestDatabase, arguments: [&str; 2]) -> Child {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(|deps| deps.parent()).unwrap();
    Command::new(folder.join("tributary"))
        .arg("move")
        .args(arguments)
        .env_clear()
        .env("TRIBUTARY_DATA_DIR", sqlite.folder())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}
