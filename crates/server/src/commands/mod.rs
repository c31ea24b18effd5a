//! The binary's commands, one module each.

pub mod admin;
pub mod audit;
pub mod backup;
pub mod client;
pub mod config;
pub mod demo;
pub mod doctor;
pub mod fx;
pub mod import;
pub mod manual;
pub mod mcp;
pub mod migrate;
pub mod move_database;
mod ownership;
pub mod restore;
pub mod rollups;
mod second_factors;
pub mod secret_key;
pub mod serve;
pub mod simulator;
mod users;
mod wipe;

use std::io::Write as _;

/// Writes a line to standard output. A closed pipe (`| head`) is not an error.
fn print_line(line: impl AsRef<str>) {
    let _gone = writeln!(std::io::stdout().lock(), "{}", line.as_ref());
}
